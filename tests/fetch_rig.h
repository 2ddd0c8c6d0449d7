/* fetch_rig.h - what the tests of k3chat fetch share: a served checkpoint, a folder for each test, and
 * what there is to see afterwards. */
#ifndef K3_TEST_FETCH_RIG_H
#define K3_TEST_FETCH_RIG_H

#include "../src/digest.h"
#include "file_server.h"
#include "fixture.h"
#include "program.h"

#define REPO "/owner/name/resolve/main/"
#define SECRET "hf_aVerySecretToken"
#define FETCH "fetch", "--retry-wait", "0"

extern char origin[FIXTURE_PATH]; /* the checkpoint that is served */
extern char work[FIXTURE_PATH];   /* of one test */
extern char dest[FIXTURE_PATH];   /* work/k3, where it is fetched to */
extern char address[256];         /* of the files */
extern char shard[256];           /* one of them, a large one */
extern char sums[FS_FILES][DIGEST_HEX]; /* of the server's files, in its order */
extern struct file_server server;

void fr_expect_status(const struct child *c, int status);
void fr_expect_said(const struct child *c, const char *part);
void fr_expect_unsaid(const struct child *c, const char *part);
/* Runs k3chat fetch from the server into dest; it must end so. */
struct child fr_fetch(int status);
void fr_fetch_free(int status);
bool fr_is_there(const char *name);
uint64_t fr_size_of(const char *name);
void fr_write_into(const char *dir, const char *name, const void *bytes, size_t n);
/* The file is here, byte for byte. */
void fr_expect_file(const struct fs_file *f);
void fr_expect_whole(void);
void fr_tell_sums(void);
/* "DIGEST  NAME" for every file, one of them wrong if asked for. */
void fr_write_sums(const char *dir, const char *wrong);
void fr_digest_of(const struct fs_file *f, char hex[DIGEST_HEX]);
int fr_before_all(void **state);
int fr_after_all(void **state);
int fr_before(void **state);
int fr_after(void **state);

#define T(f) cmocka_unit_test_setup_teardown(f, fr_before, fr_after)

#endif
