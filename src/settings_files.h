/* settings_files.h - the values of the commands about a checkpoint's files (settings_files.c), and what
 * settings.c lends them. */
#ifndef K3CHAT_SETTINGS_FILES_H
#define K3CHAT_SETTINGS_FILES_H

#include "settings.h"

void settings_files_init(struct request *r);

enum k3_status set_sha256(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_write_sums(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_write_blocks(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_afresh(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_endpoint(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_revision(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_sums(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_connections(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_retries(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_retry_wait(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_timeout(struct request *r, const char *v, struct k3_error *err);
enum k3_status set_dry_run(struct request *r, const char *v, struct k3_error *err);

/* In settings.c. The value, copied: empty ones are refused. */
enum k3_status settings_keep(struct request *r, const char *value, const char **out,
                             struct k3_error *err);
enum k3_status settings_u32(const char *value, uint32_t min, uint32_t max, uint32_t *out,
                            struct k3_error *err);
enum k3_status settings_real(const char *value, double *out, struct k3_error *err);

#endif
