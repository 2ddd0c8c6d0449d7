/* test_fetch_again.c - k3chat fetch: what earlier runs left, tokens and redirects, disks, names. */
#include <config.h>

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "fetch_rig.h"

/* ---- parts of earlier runs --------------------------------------------------------------- */

/* A run that dies by the signal when the server has sent so much of the shard. */
static void die_at(uint64_t bytes, int sig, int status)
{
    struct fs_file *f = fs_file(&server, shard);
    f->stall_after = bytes;
    f->stall_times = 1;
    struct child c = program_start(NULL, FETCH, address, dest, NULL);
    fs_wait_sent(&server, f, bytes);
    char part[300];
    snprintf(part, sizeof part, "%s.part", shard);
    /* What the server has sent must have been taken as well. */
    while (fr_size_of(part) < bytes)
        usleep(2000);
    kill(c.pid, sig);
    program_wait(&c);
    fr_expect_status(&c, status);
    if (sig == SIGINT)
        fr_expect_said(&c, "the same command goes on from there");
    program_free(&c);
    assert_false(fr_is_there(shard));
    f->stall_times = 0;
    f->sent = 0;
    f->gets = 0;
}

static void a_killed_run_goes_on(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    die_at(200000, SIGKILL, 128 + SIGKILL);
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "of them here already");
    program_free(&c);
    fr_expect_whole();
    assert_int_equal(f->gets, 1);
    assert_int_equal(f->last_from, 200000 - 65536); /* a little again, to see that it fits */
    assert_int_equal(f->sent, f->size - f->last_from);
}

static void an_interrupted_run_says_so_and_goes_on(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    die_at(200000, SIGINT, 130);
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->last_from, 200000 - 65536);
}

static void a_changed_file_is_not_glued_by_its_etag(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->etag = "\"one\"";
    die_at(200000, SIGKILL, 128 + SIGKILL);
    f->etag = "\"two\"";
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->last_from, 0);
}

static void what_goes_on_does_so_on_condition(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->etag = "\"one\"";
    f->cut_after = 100000;
    f->cut_times = 1;
    fr_fetch_free(0);
    fr_expect_whole();
    assert_string_equal(f->if_range, "\"one\"");
    assert_int_equal(f->last_from, 100000);
}

static void a_file_that_changes_under_a_request_is_begun_anew(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->etag = "\"one\"";
    f->etag_after = "\"two\"";
    f->cut_after = 100000;
    f->cut_times = 1;
    f->flip_at = 5; /* of the old version: it must not stay */
    f->flip_times = 1;
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->gets, 2);
    assert_int_equal(f->last_from, 0);
}

static void a_changed_file_without_an_etag_is_seen_by_its_bytes(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    die_at(200000, SIGKILL, 128 + SIGKILL);
    f->data[199000] ^= 1; /* within what is compared */
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "is not what the server sends now");
    program_free(&c);
    fr_expect_whole();
    assert_int_equal(f->last_from, 0);
}

static void a_part_is_thrown_away_when_the_checksum_has_changed(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    char hex[DIGEST_HEX];
    fr_tell_sums();
    die_at(200000, SIGKILL, 128 + SIGKILL);
    f->data[120000] ^= 1; /* before what is compared */
    fr_digest_of(f, hex);
    f->sha256 = hex;
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->last_from, 0);
}

static void a_part_that_is_whole_is_only_checked(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    fr_tell_sums();
    fr_fetch_free(0);
    char path[FIXTURE_PATH], part[FIXTURE_PATH + 8], tag[128];
    fixture_join(path, dest, shard);
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_equal(rename(path, part), 0);
    snprintf(part, sizeof part, "%s.part.tag", shard);
    snprintf(tag, sizeof tag, "%" PRIu64 " sha256 %s\n", f->size, f->sha256);
    fr_write_into(dest, part, tag, strlen(tag));
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->gets, 1);
}

/* ---- redirects and the token ------------------------------------------------------------- */

static void the_token_goes_to_its_own_server_only(void **state)
{
    (void)state;
    struct file_server other;
    char there[128];
    fs_start(&other, origin, REPO);
    other.token = server.token = SECRET;
    server.locked = true;
    /* The same machine by another name, and another port. */
    snprintf(there, sizeof there, "http://localhost:%u", other.port);
    for (unsigned i = 0; i < server.n_files; i++)
        server.files[i].redirect = there;
    setenv("K3CHAT_TOKEN", SECRET, 1);
    struct child c = fr_fetch(0);
    fr_expect_unsaid(&c, SECRET);
    program_free(&c);
    fr_expect_whole();
    for (unsigned i = 0; i < server.n_files; i++) {
        assert_true(server.files[i].with_token > 0);
        assert_int_equal(server.files[i].with_token, server.files[i].requests);
        assert_true(other.files[i].requests > 0);
        assert_int_equal(other.files[i].with_token, 0);
    }
    fs_stop(&other);
    size_t n;
    char *memory = fixture_read(dest, ".k3chat-files", &n);
    assert_null(strstr(memory, SECRET));
    free(memory);
}

static void the_token_stays_on_a_redirect_to_the_same_server(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, "generation_config.json");
    server.token = SECRET;
    server.locked = true;
    f->redirect = REPO "config.json";
    f->redirect_status = 307;
    setenv("K3CHAT_TOKEN", SECRET, 1);
    fr_fetch_free(0);
    assert_int_equal(fr_size_of(f->name), fs_file(&server, "config.json")->size);
}

static void without_the_token_it_is_asked_for(void **state)
{
    (void)state;
    server.locked = true;
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "wants a token");
    program_free(&c);
    setenv("K3CHAT_TOKEN", "wrong-" SECRET, 1);
    c = fr_fetch(1);
    fr_expect_said(&c, "the token is not accepted there");
    fr_expect_unsaid(&c, SECRET);
    program_free(&c);
}

static void the_hub_token_is_for_repositories(void **state)
{
    (void)state;
    char endpoint[128];
    server.token = SECRET;
    setenv("HF_TOKEN", SECRET, 1);
    fr_fetch_free(0); /* from an address */
    for (unsigned i = 0; i < server.n_files; i++)
        assert_int_equal(server.files[i].with_token, 0);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", server.port);
    setenv("HF_ENDPOINT", endpoint, 1);
    struct child c = program_start(NULL, FETCH, "owner/name", dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    fr_expect_unsaid(&c, SECRET);
    program_free(&c);
    assert_true(fs_file(&server, "config.json")->with_token > 0);
}

static void a_password_in_the_address_is_used_and_never_shown(void **state)
{
    (void)state;
    char where[256];
    snprintf(where, sizeof where, "http://me:" SECRET "@127.0.0.1:%u" REPO "?key=" SECRET,
             server.port);
    struct fs_file *f = fs_file(&server, shard);
    f->status = 404;
    f->status_times = FS_ALWAYS;
    struct child c = program_start(NULL, FETCH, where, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, shard);
    fr_expect_unsaid(&c, SECRET);
    program_free(&c);
    assert_int_equal(f->with_password, 1);
    size_t n;
    char *memory = fixture_read(dest, ".k3chat-files", &n);
    assert_null(strstr(memory, SECRET));
    free(memory);
}

static void no_token_goes_unencrypted_to_another_machine(void **state)
{
    (void)state;
    setenv("K3CHAT_TOKEN", SECRET, 1);
    struct child c = program_start(NULL, FETCH, "http://k3.example/files", dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 2);
    fr_expect_said(&c, "unencrypted");
    fr_expect_unsaid(&c, SECRET);
    program_free(&c);
}

static void a_token_with_a_line_break_is_refused(void **state)
{
    (void)state;
    setenv("K3CHAT_TOKEN", SECRET "\r\nX-Evil: 1", 1);
    struct child c = fr_fetch(2);
    fr_expect_said(&c, "K3CHAT_TOKEN");
    fr_expect_unsaid(&c, SECRET);
    program_free(&c);
}

static void redirects_in_a_circle_end(void **state)
{
    (void)state;
    fs_file(&server, shard)->redirect = "";
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "redirects more than");
    program_free(&c);
}

static void a_redirect_to_a_file_of_this_machine_is_refused(void **state)
{
    (void)state;
    fs_file(&server, shard)->redirect = "file:///etc/passwd?";
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "no http or https address");
    program_free(&c);
    assert_false(fr_is_there(shard));
}

static void a_repository_is_fetched_from_one_commit(void **state)
{
    (void)state;
    char endpoint[128];
    server.commit = "0123456789abcdef0123456789abcdef01234567";
    server.also = "/owner/name/resolve/0123456789abcdef0123456789abcdef01234567/";
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u/", server.port);
    struct child c = program_start(NULL, FETCH, "--endpoint", endpoint, "owner/name", dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    program_free(&c);
    fr_expect_whole();
    /* The branch is asked once; all else is asked for by the commit. */
    unsigned requests = 0;
    for (unsigned i = 0; i < server.n_files; i++)
        requests += server.files[i].requests;
    assert_int_equal(requests - 1, atomic_load(&server.also_requests));
    /* Where it came from is told by k3chat verify. */
    fixture_flip(dest, shard, 0);
    c = program_start(NULL, "verify", "--model", dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    snprintf(endpoint, sizeof endpoint, "k3chat fetch --endpoint http://127.0.0.1:%u/ owner/name ",
             server.port);
    fr_expect_said(&c, endpoint);
    program_free(&c);
}

static void a_branch_that_moves_meanwhile_is_told(void **state)
{
    (void)state;
    server.commit = "0123456789abcdef0123456789abcdef01234567";
    fr_fetch_free(0);
    /* An address is not pinned: a file of another commit does not go with the others. */
    struct fs_file *f = fs_file(&server, shard);
    f->commit = "89abcdef0123456789abcdef0123456789abcdef";
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "changes while it is being fetched");
    program_free(&c);
}

/* ---- the disk ---------------------------------------------------------------------------- */

static void what_does_not_fit_is_not_begun(void **state)
{
    (void)state;
    fs_file(&server, shard)->claim = UINT64_C(4000000000000000000);
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "make room");
    program_free(&c);
    assert_int_equal(fs_gets(&server), 1); /* the index */
}

static void a_full_disk_keeps_what_is_there(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 200000; /* all other files may be larger or smaller: only the run's end counts */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct child c = program_start(NULL, FETCH, "--connections", "1", address, dest, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, ".part: cannot be written: ");
    program_free(&c);
    f->sent = 0;
    fr_fetch_free(0);
    fr_expect_whole();
}

static void a_folder_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    fr_write_into(work, "file", "x", 1);
    snprintf(dest, sizeof dest, "%.*s/file/k3", FIXTURE_PATH - 20, work);
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "/file");
    program_free(&c);
}

static void two_at_once_are_one_too_many(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->stall_after = 100000;
    f->stall_times = 1;
    struct child first = program_start(NULL, FETCH, address, dest, NULL);
    fs_wait_sent(&server, f, 100000);
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "another k3chat is fetching");
    program_free(&c);
    fs_release(&server);
    program_wait(&first);
    fr_expect_status(&first, 0);
    program_free(&first);
    fr_expect_whole();
}

/* ---- names and words --------------------------------------------------------------------- */

static void names_do_not_lead_out_of_the_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"../evil.safetensors", "/tmp/evil.safetensors",
                                        "a/b.safetensors", ".hidden.safetensors", "evil.sh",
                                        "..", "ev\\u001bil.safetensors"};
    struct fs_file *f = fs_file(&server, "model.safetensors.index.json");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[256];
        const int n = snprintf(text, sizeof text, "{\"weight_map\": {\"w\": \"%s\"}}", names[i]);
        f->data = (uint8_t *)text;
        f->size = (uint64_t)n;
        struct child c = fr_fetch(1);
        fr_expect_said(&c, "not a plain file name");
        fr_expect_unsaid(&c, "\033");
        program_free(&c);
    }
    assert_int_equal(atomic_load(&server.other_requests), sizeof names / sizeof names[0]);
}

static void an_index_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"<html>", "{}", "{\"weight_map\": {}}",
                                        "{\"weight_map\": {\"w\": 1}}"};
    struct fs_file *f = fs_file(&server, "model.safetensors.index.json");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        f->data = (uint8_t *)texts[i];
        f->size = strlen(texts[i]);
        struct child c = fr_fetch(1);
        fr_expect_said(&c, "model.safetensors.index.json");
        program_free(&c);
    }
}

static void files_that_do_not_fit_together_are_told(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->data[0] ^= 0x40; /* the length of the header */
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "does not fit together");
    fr_expect_said(&c, shard);
    program_free(&c);
}

static void words_that_are_no_source_are_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"kimi",          "a/b/c",     "../x",    "ftp://host/x",
                                        "https://",      "owner/",    "/name",   "a b/c"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct child c = program_start(NULL, FETCH, words[i], dest, NULL);
        program_wait(&c);
        fr_expect_status(&c, 2);
        program_free(&c);
        assert_int_equal(access(dest, F_OK), -1);
    }
    struct child c = program_start(NULL, FETCH, "owner/name", NULL);
    program_wait(&c);
    fr_expect_status(&c, 2);
    fr_expect_said(&c, "k3chat fetch SOURCE FOLDER");
    program_free(&c);
    c = program_start(NULL, FETCH, "--revision", "v2", "https://h/x", dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 2);
    program_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_killed_run_goes_on),
        T(an_interrupted_run_says_so_and_goes_on),
        T(a_changed_file_is_not_glued_by_its_etag),
        T(what_goes_on_does_so_on_condition),
        T(a_file_that_changes_under_a_request_is_begun_anew),
        T(a_changed_file_without_an_etag_is_seen_by_its_bytes),
        T(a_part_is_thrown_away_when_the_checksum_has_changed),
        T(a_part_that_is_whole_is_only_checked),
        T(the_token_goes_to_its_own_server_only),
        T(the_token_stays_on_a_redirect_to_the_same_server),
        T(without_the_token_it_is_asked_for),
        T(the_hub_token_is_for_repositories),
        T(a_password_in_the_address_is_used_and_never_shown),
        T(no_token_goes_unencrypted_to_another_machine),
        T(a_token_with_a_line_break_is_refused),
        T(redirects_in_a_circle_end),
        T(a_redirect_to_a_file_of_this_machine_is_refused),
        T(a_repository_is_fetched_from_one_commit),
        T(a_branch_that_moves_meanwhile_is_told),
        T(what_does_not_fit_is_not_begun),
        T(a_full_disk_keeps_what_is_there),
        T(a_folder_that_cannot_be_made_is_named),
        T(two_at_once_are_one_too_many),
        T(names_do_not_lead_out_of_the_folder),
        T(an_index_that_is_none_is_refused),
        T(files_that_do_not_fit_together_are_told),
        T(words_that_are_no_source_are_refused),
    };
    return cmocka_run_group_tests_name("fetch again", tests, fr_before_all, fr_after_all);
}
