/* test_fetch.c - k3chat fetch from outside, against a server that does everything that servers do. */
#include <config.h>

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fetch_rig.h"

/* ---- when all goes well ------------------------------------------------------------------ */

static void everything_is_fetched_and_the_second_run_fetches_nothing(void **state)
{
    (void)state;
    struct child c = fr_fetch(0);
    fr_expect_whole();
    fr_expect_said(&c, "whole: ");
    fr_expect_said(&c, "next: k3chat doctor --model ");
    program_free(&c);
    const uint64_t sent = fs_sent(&server);
    c = fr_fetch(0);
    fr_expect_said(&c, "fetched now: 0 files, 0 B");
    program_free(&c);
    assert_int_equal(fs_sent(&server), sent);
}

static void only_what_is_missing_or_wrong_is_fetched_again(void **state)
{
    (void)state;
    fr_tell_sums();
    fr_fetch_free(0);
    struct fs_file *damaged = fs_file(&server, shard), *missing = fs_file(&server, "tiktoken.model"),
                   *cut = fs_file(&server, "config.json");
    fixture_flip(dest, shard, 1000);
    char path[FIXTURE_PATH];
    fixture_join(path, dest, missing->name);
    assert_int_equal(unlink(path), 0);
    fixture_join(path, dest, cut->name);
    assert_int_equal(truncate(path, (off_t)cut->size / 2), 0);
    const unsigned gets = fs_gets(&server);
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "contents are not what they must be");
    fr_expect_said(&c, "fetched now: 3 files");
    program_free(&c);
    fr_expect_whole();
    assert_int_equal(fs_gets(&server), gets + 3);
    assert_int_equal(damaged->gets, 2);
    assert_int_equal(missing->gets, 2);
    assert_int_equal(cut->gets, 2);
}

static void a_checkpoint_in_one_file_needs_no_index(void **state)
{
    (void)state;
    struct file_server single;
    struct k3_synth s = fixture_preset("tiny");
    char dir[FIXTURE_PATH], from[FIXTURE_PATH], to[FIXTURE_PATH];
    s.scatter = 1;
    fixture_join(dir, work, "single");
    fixture_write(&s, dir);
    fixture_join(from, dir, "model-00001-of-000001.safetensors");
    fixture_join(to, dir, "model.safetensors");
    assert_int_equal(rename(from, to), 0);
    fixture_join(from, dir, "model.safetensors.index.json");
    assert_int_equal(unlink(from), 0);
    fs_start(&single, dir, "/");
    char where[128];
    snprintf(where, sizeof where, "http://127.0.0.1:%u", single.port);
    struct child c = program_start(NULL, FETCH, where, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    program_free(&c);
    assert_true(fr_is_there("model.safetensors"));
    assert_int_equal(fr_size_of("model.safetensors"), fs_file(&single, "model.safetensors")->size);
    fs_stop(&single);
}

static void a_dry_run_fetches_the_index_only(void **state)
{
    (void)state;
    struct child c = program_start(NULL, FETCH, "--dry-run", address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    fr_expect_said(&c, "files to fetch: ");
    program_free(&c);
    assert_int_equal(fs_gets(&server), 1);
    assert_int_equal(fs_file(&server, "model.safetensors.index.json")->gets, 1);
}

static void an_empty_file_is_a_file(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, "generation_config.json");
    f->size = 0;
    /* Fetched as it is; that it is no JSON is another matter. */
    fr_fetch_free(0);
    assert_true(fr_is_there(f->name));
    assert_int_equal(fr_size_of(f->name), 0);
}

/* ---- cut connections, errors, silence ---------------------------------------------------- */

static void a_cut_connection_goes_on_where_it_was(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->cut_after = 100000;
    f->cut_times = 2;
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "again in 0 s");
    program_free(&c);
    fr_expect_whole();
    assert_int_equal(f->gets, 3);
    assert_int_equal(f->ranged, 2);
    assert_int_equal(f->last_from, 200000);
    assert_int_equal(f->sent, f->size);
}

static void a_file_that_never_goes_on_is_given_up(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->cut_after = 0;
    f->cut_times = FS_ALWAYS;
    struct child c = program_start(NULL, FETCH, "--retries", "2", address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "1 file could not be fetched");
    fr_expect_said(&c, shard);
    program_free(&c);
    assert_int_equal(f->gets, 3);
    assert_false(fr_is_there(shard));
    /* The others are there; the doctor knows what to type, and the next run gets the rest. */
    c = program_start(NULL, "doctor", "--model", dest, NULL);
    program_wait(&c);
    char words[FIXTURE_PATH + 512];
    snprintf(words, sizeof words, "next: k3chat fetch %.*s %s\n", (int)strlen(address) - 1, address,
             dest);
    fr_expect_said(&c, words);
    program_free(&c);
    f->cut_times = 0;
    const unsigned gets = fs_gets(&server);
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(fs_gets(&server), gets + 1);
}

static void errors_of_the_server_that_pass_are_waited_for(void **state)
{
    (void)state;
    static const unsigned statuses[] = {500, 503, 429, 408};
    for (unsigned i = 0; i < 4; i++) {
        server.files[i].status = statuses[i];
        server.files[i].status_times = 2;
    }
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "status 503; again in 0 s (2 of 8)");
    program_free(&c);
    fr_expect_whole();
}

static void a_server_says_how_long_to_wait(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->status = 503;
    f->status_times = 1;
    f->retry_after = 1;
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "again in 1 s");
    program_free(&c);
    fr_expect_whole();
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->status = 404;
    f->status_times = FS_ALWAYS;
    struct child c = fr_fetch(1);
    fr_expect_said(&c, shard);
    fr_expect_said(&c, "status 404");
    program_free(&c);
    assert_int_equal(f->requests, 1);
}

static void what_can_be_missing_may_be_missing(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, "generation_config.json");
    f->status = 404;
    f->status_times = FS_ALWAYS;
    fr_fetch_free(0);
    assert_false(fr_is_there(f->name));
    assert_true(fr_is_there("config.json"));
}

static void silence_counts_as_a_cut_connection(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->stall_after = 150000;
    f->stall_times = 1;
    struct child c = program_start(NULL, FETCH, "--timeout", "1", address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    fr_expect_said(&c, "nothing came for 1 s");
    program_free(&c);
    fr_expect_whole();
    assert_int_equal(f->gets, 2);
    assert_int_equal(f->last_from, 150000);
}

static void nobody_listens(void **state)
{
    (void)state;
    char where[128];
    /* A port that was free a moment ago. */
    struct file_server other;
    fs_start(&other, origin, "/");
    snprintf(where, sizeof where, "http://127.0.0.1:%u", other.port);
    fs_stop(&other);
    struct child c = program_start(NULL, FETCH, "--retries", "1", where, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, where);
    program_free(&c);
}

/* ---- lies -------------------------------------------------------------------------------- */

static void a_size_that_changes_is_an_error(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->claim_get = f->size + 5;
    struct child c = program_start(NULL, FETCH, "--retries", "1", address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "and said");
    program_free(&c);
    assert_false(fr_is_there(shard));
}

static void a_promise_of_more_than_comes_is_an_error(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->claim = f->size + 1000;
    f->ignore_range = true;
    struct child c = program_start(NULL, FETCH, "--retries", "1", "--timeout", "1", address, dest,
                                   NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    program_free(&c);
    assert_false(fr_is_there(shard));
}

static void more_than_was_promised_is_an_error(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    /* The first look is answered with the size; what follows ends when it ends. */
    f->no_length = true;
    f->extra = 500;
    f->claim = 0;
    struct fs_file *g = f;
    g->sha256 = sums[g - server.files];
    g->ignore_range = true;
    struct child c = program_start(NULL, FETCH, "--retries", "1", address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "sends more than");
    program_free(&c);
    assert_false(fr_is_there(shard));
}

static void an_end_that_comes_early_is_no_end(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->sha256 = sums[f - server.files];
    f->no_length = f->ignore_range = true;
    f->cut_after = 70000;
    f->cut_times = 1;
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->gets, 2);
}

static void shards_smaller_than_their_tensors_are_not_begun(void **state)
{
    (void)state;
    fs_file(&server, shard)->claim = 1000;
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "metadata.total_size");
    program_free(&c);
    assert_int_equal(fs_file(&server, shard)->gets, 0);
}

static void two_sizes_are_one_too_many(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->sha256 = sums[f - server.files];
    f->claim = f->size + 1;
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "two sizes");
    program_free(&c);
}

static void a_range_that_begins_elsewhere_is_not_taken(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->cut_after = 100000;
    f->cut_times = 1;
    f->shift = 7;
    struct child c = program_start(NULL, FETCH, "--retries", "2", address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "instead of");
    program_free(&c);
    assert_false(fr_is_there(shard));
}

static void a_server_that_ignores_ranges_is_begun_anew(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    f->ignore_range = true;
    f->cut_after = 100000;
    f->cut_times = 2;
    fr_fetch_free(0);
    fr_expect_whole();
    assert_int_equal(f->gets, 3);
    assert_int_equal(f->sent, f->size + 200000);
}

/* ---- checksums --------------------------------------------------------------------------- */

static void wrong_contents_of_the_right_size_are_fetched_once_more(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    fr_tell_sums();
    f->flip_at = 123456;
    f->flip_times = 1;
    struct child c = fr_fetch(0);
    fr_expect_said(&c, "wrong contents");
    fr_expect_said(&c, "fetched once more");
    program_free(&c);
    fr_expect_whole();
    assert_int_equal(f->gets, 2);
}

static void wrong_contents_twice_never_get_the_name(void **state)
{
    (void)state;
    struct fs_file *f = fs_file(&server, shard);
    fr_tell_sums();
    f->flip_at = 123456;
    f->flip_times = FS_ALWAYS;
    struct child c = fr_fetch(1);
    fr_expect_said(&c, "twice");
    program_free(&c);
    assert_int_equal(f->gets, 2);
    assert_false(fr_is_there(shard));
}

static void a_list_in_a_file_decides(void **state)
{
    (void)state;
    char list[FIXTURE_PATH];
    fr_write_sums(work, shard);
    fixture_join(list, work, "SHA256SUMS");
    struct child c = program_start(NULL, FETCH, "--sums", list, address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "wrong contents");
    program_free(&c);
    assert_false(fr_is_there(shard));
    fr_write_sums(work, NULL);
    c = program_start(NULL, FETCH, "--sums", list, address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    program_free(&c);
    fr_expect_whole();
    /* The list that was used stays for k3chat verify --sha256. */
    c = program_start(NULL, "verify", "--model", dest, "--sha256", NULL);
    program_wait(&c);
    fr_expect_status(&c, 0);
    program_free(&c);
}

static void a_list_on_the_server_is_used(void **state)
{
    (void)state;
    struct file_server listed;
    char dir[FIXTURE_PATH];
    struct k3_synth s = fixture_preset("tiny");
    s.scatter = 3;
    fixture_join(dir, work, "listed");
    fixture_write(&s, dir);
    fr_write_sums(dir, shard);
    fs_start(&listed, dir, "/");
    char where[128];
    snprintf(where, sizeof where, "http://127.0.0.1:%u/", listed.port);
    struct child c = program_start(NULL, FETCH, where, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "wrong contents");
    program_free(&c);
    fs_stop(&listed);
}

static void list_and_server_must_agree(void **state)
{
    (void)state;
    char list[FIXTURE_PATH];
    fr_tell_sums();
    fr_write_sums(work, shard);
    fixture_join(list, work, "SHA256SUMS");
    struct child c = program_start(NULL, FETCH, "--sums", list, address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 1);
    fr_expect_said(&c, "the list is of another version");
    program_free(&c);
    assert_int_equal(fs_file(&server, shard)->gets, 0);
}

static void a_list_that_is_none_is_refused(void **state)
{
    (void)state;
    char list[FIXTURE_PATH];
    fr_write_into(work, "list", "# sums\nnot a sum\n", 17);
    fixture_join(list, work, "list");
    struct child c = program_start(NULL, FETCH, "--sums", list, address, dest, NULL);
    program_wait(&c);
    fr_expect_status(&c, 2);
    fr_expect_said(&c, "list:2: 'not a sum' is no line of sha256sum");
    program_free(&c);
    assert_int_equal(fs_gets(&server), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(everything_is_fetched_and_the_second_run_fetches_nothing),
        T(only_what_is_missing_or_wrong_is_fetched_again),
        T(a_checkpoint_in_one_file_needs_no_index),
        T(a_dry_run_fetches_the_index_only),
        T(an_empty_file_is_a_file),
        T(a_cut_connection_goes_on_where_it_was),
        T(a_file_that_never_goes_on_is_given_up),
        T(errors_of_the_server_that_pass_are_waited_for),
        T(a_server_says_how_long_to_wait),
        T(a_file_that_is_not_there_is_named),
        T(what_can_be_missing_may_be_missing),
        T(silence_counts_as_a_cut_connection),
        T(nobody_listens),
        T(a_size_that_changes_is_an_error),
        T(a_promise_of_more_than_comes_is_an_error),
        T(more_than_was_promised_is_an_error),
        T(an_end_that_comes_early_is_no_end),
        T(shards_smaller_than_their_tensors_are_not_begun),
        T(two_sizes_are_one_too_many),
        T(a_range_that_begins_elsewhere_is_not_taken),
        T(a_server_that_ignores_ranges_is_begun_anew),
        T(wrong_contents_of_the_right_size_are_fetched_once_more),
        T(wrong_contents_twice_never_get_the_name),
        T(a_list_in_a_file_decides),
        T(a_list_on_the_server_is_used),
        T(list_and_server_must_agree),
        T(a_list_that_is_none_is_refused),
    };
    return cmocka_run_group_tests_name("fetch", tests, fr_before_all, fr_after_all);
}
