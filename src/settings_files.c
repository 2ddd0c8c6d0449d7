/* settings_files.c - values of the commands about a checkpoint's files. */
#include <config.h>

#include "settings_internal.h"

void settings_files_init(struct request *r)
{
    r->fetch.connections = 4;
    r->fetch.retries = 8;
    r->fetch.timeout = 60;
    r->fetch.retry_wait = 1;
}

/* ---- verify ------------------------------------------------------------------------------ */

enum k3_status set_sha256(struct request *r, const char *v, struct k3_error *err)
{
    r->verify.sha256 = true;
    return v[0] == '\0' ? K3_OK : settings_keep(r, v, &r->verify.sums, err);
}

enum k3_status set_write_sums(struct request *r, const char *v, struct k3_error *err)
{
    r->verify.write_sums = true;
    return v[0] == '\0' ? K3_OK : settings_keep(r, v, &r->verify.sums_out, err);
}

enum k3_status set_write_blocks(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->verify.write_blocks = true;
    return K3_OK;
}

enum k3_status set_afresh(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->verify.afresh = true;
    return K3_OK;
}

/* ---- fetch ------------------------------------------------------------------------------- */

enum k3_status set_endpoint(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->fetch.endpoint, err);
}

enum k3_status set_revision(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->fetch.revision, err);
}

enum k3_status set_sums(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->fetch.sums, err);
}

enum k3_status set_connections(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 1, 64, &r->fetch.connections, err);
}

enum k3_status set_retries(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 0, 1000, &r->fetch.retries, err);
}

enum k3_status set_retry_wait(struct request *r, const char *v, struct k3_error *err)
{
    double seconds = 0;
    if (settings_real(v, &seconds, err) != K3_OK)
        return err->status;
    if (seconds < 0 || seconds > 3600)
        return k3_fail(err, K3_USAGE, "'%s' is out of range: 0 to 3600 seconds", v);
    r->fetch.retry_wait = seconds;
    return K3_OK;
}

enum k3_status set_timeout(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 1, 3600, &r->fetch.timeout, err);
}

enum k3_status set_dry_run(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->fetch.dry_run = true;
    return K3_OK;
}
