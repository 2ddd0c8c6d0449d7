/* fetch_rig.c - see fetch_rig.h. */
#include <config.h>

#include "fetch_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char scratch[FIXTURE_PATH]; /* of all tests */
char origin[FIXTURE_PATH], work[FIXTURE_PATH], dest[FIXTURE_PATH];
char address[256], shard[256], sums[FS_FILES][DIGEST_HEX];
struct file_server server;

/* ---- means ------------------------------------------------------------------------------- */

void fr_expect_status(const struct child *c, int status)
{
    if (c->status != status)
        fail_msg("exit status %d instead of %d; stdout '%s', stderr '%s'", c->status, status,
                 c->out_text, c->err_text);
}

void fr_expect_said(const struct child *c, const char *part)
{
    if (strstr(c->err_text, part) == NULL && strstr(c->out_text, part) == NULL)
        fail_msg("'%s' was not said; stdout '%s', stderr '%s'", part, c->out_text, c->err_text);
}

void fr_expect_unsaid(const struct child *c, const char *part)
{
    if (strstr(c->err_text, part) != NULL || strstr(c->out_text, part) != NULL)
        fail_msg("'%s' was said; stdout '%s', stderr '%s'", part, c->out_text, c->err_text);
}

struct child fr_fetch(int status)
{
    struct child c = program_start(NULL, FETCH, address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, status);
    return c;
}

void fr_fetch_free(int status)
{
    struct child c = fr_fetch(status);
    program_free(&c);
}

bool fr_is_there(const char *name)
{
    char path[FIXTURE_PATH];
    fixture_join(path, dest, name);
    return access(path, F_OK) == 0;
}

uint64_t fr_size_of(const char *name)
{
    char path[FIXTURE_PATH];
    struct stat st;
    fixture_join(path, dest, name);
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void fr_write_into(const char *dir, const char *name, const void *bytes, size_t n)
{
    char path[FIXTURE_PATH];
    fixture_join(path, dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void fr_expect_file(const struct fs_file *f)
{
    size_t n = 0;
    char *have = fixture_read(dest, f->name, &n);
    if (n != f->size || memcmp(have, f->data, n) != 0)
        fail_msg("%s is not what the server has", f->name);
    free(have);
}

void fr_expect_whole(void)
{
    for (unsigned i = 0; i < server.n_files; i++) {
        char part[300];
        fr_expect_file(&server.files[i]);
        snprintf(part, sizeof part, "%s.part", server.files[i].name);
        assert_false(fr_is_there(part));
        snprintf(part, sizeof part, "%s.part.tag", server.files[i].name);
        assert_false(fr_is_there(part));
    }
}

void fr_tell_sums(void)
{
    for (unsigned i = 0; i < server.n_files; i++)
        server.files[i].sha256 = sums[i];
}

void fr_write_sums(const char *dir, const char *wrong)
{
    char text[FS_FILES * 256] = "";
    for (unsigned i = 0; i < server.n_files; i++) {
        char line[256];
        const bool bad = wrong != NULL && strcmp(server.files[i].name, wrong) == 0;
        snprintf(line, sizeof line, "%s  %s\n", bad ? sums[(i + 1) % server.n_files] : sums[i],
                 server.files[i].name);
        strcat(text, line);
    }
    fr_write_into(dir, "SHA256SUMS", text, strlen(text));
}

/* ---- before and after -------------------------------------------------------------------- */

void fr_digest_of(const struct fs_file *f, char hex[DIGEST_HEX])
{
    struct digest d = {0};
    struct k3_error err;
    assert_int_equal(digest_begin(&d, &err), K3_OK);
    assert_int_equal(digest_add(&d, f->data, f->size, &err), K3_OK);
    assert_int_equal(digest_end(&d, hex, &err), K3_OK);
    digest_free(&d);
}

int fr_before_all(void **state)
{
    (void)state;
    struct k3_synth s = fixture_preset("tiny");
    s.scatter = 3;
    fixture_scratch(scratch);
    fixture_join(origin, scratch, "origin");
    fixture_write(&s, origin);
    fs_start(&server, origin, REPO);
    snprintf(address, sizeof address, "http://127.0.0.1:%u" REPO, server.port);
    const struct fs_file *largest = NULL;
    for (unsigned i = 0; i < server.n_files; i++) {
        fr_digest_of(&server.files[i], sums[i]);
        if (strstr(server.files[i].name, ".safetensors") != NULL &&
            strstr(server.files[i].name, ".json") == NULL &&
            (largest == NULL || server.files[i].size > largest->size))
            largest = &server.files[i];
    }
    assert_non_null(largest);
    assert_true(largest->size > 300000); /* the faults below are put at bytes up to that */
    snprintf(shard, sizeof shard, "%s", largest->name);
    unsetenv("K3CHAT_TOKEN");
    unsetenv("HF_TOKEN");
    unsetenv("HF_ENDPOINT");
    setenv("no_proxy", "*", 1);
    return 0;
}

int fr_after_all(void **state)
{
    (void)state;
    fs_stop(&server);
    fixture_scratch_end(scratch);
    return 0;
}

int fr_before(void **state)
{
    (void)state;
    fs_reset(&server);
    fixture_scratch(work);
    fixture_join(dest, work, "k3");
    return 0;
}

int fr_after(void **state)
{
    (void)state;
    unsetenv("K3CHAT_TOKEN");
    unsetenv("HF_TOKEN");
    unsetenv("HF_ENDPOINT");
    fixture_scratch_end(work);
    return 0;
}
