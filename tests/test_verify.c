/* test_verify.c - k3chat verify --sha256 and --write-sums from outside: damaged, short, missing,
 * unlisted; stopped and gone on with. */
#include <config.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH], list[FIXTURE_PATH];
static char shard[128]; /* one of three */

#define VERIFY "verify", "--model", model

static void expect(struct child *c, int status, const char *part)
{
    program_wait(c);
    if (c->status != status)
        fail_msg("exit status %d instead of %d; stdout '%s', stderr '%s'", c->status, status,
                 c->out_text, c->err_text);
    if (part != NULL && strstr(c->out_text, part) == NULL && strstr(c->err_text, part) == NULL)
        fail_msg("'%s' was not said; stdout '%s', stderr '%s'", part, c->out_text, c->err_text);
}

/* Runs with --sha256 and looks for the text. */
static void verify(int status, const char *part)
{
    struct child c = program_start(NULL, VERIFY, "--sha256", NULL);
    expect(&c, status, part);
    program_free(&c);
}

static void said(const char *fmt, const char *word, char out[256])
{
    snprintf(out, 256, fmt, word);
}

static void path_in(char out[FIXTURE_PATH], const char *name)
{
    fixture_join(out, model, name);
}

static void append(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int before(void **state)
{
    (void)state;
    struct k3_synth s = fixture_preset("tiny");
    s.scatter = 3;
    fixture_scratch(scratch);
    fixture_join(model, scratch, "model");
    fixture_write(&s, model);
    snprintf(shard, sizeof shard, "model-00002-of-000003.safetensors");
    fixture_join(list, model, "SHA256SUMS");
    struct child c = program_start(NULL, VERIFY, "--write-sums", NULL);
    expect(&c, 0, "written, 8 files");
    program_free(&c);
    return 0;
}

static int after(void **state)
{
    (void)state;
    fixture_scratch_end(scratch);
    return 0;
}

/* ---- the list ---------------------------------------------------------------------------- */

static void the_list_is_what_sha256sum_takes(void **state)
{
    (void)state;
    char command[3 * FIXTURE_PATH];
    snprintf(command, sizeof command, "cd '%s' && sha256sum --strict --check --quiet SHA256SUMS",
             model);
    if (system("sha256sum --version >/dev/null 2>&1") != 0)
        skip();
    assert_int_equal(system(command), 0);
}

static void a_list_is_not_written_over(void **state)
{
    (void)state;
    const uint64_t was = fixture_digest(model);
    struct child c = program_start(NULL, VERIFY, "--write-sums", NULL);
    expect(&c, 2, "is there already");
    program_free(&c);
    assert_int_equal(fixture_digest(model), was);
}

static void no_list_is_written_of_half_a_checkpoint(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], out[FIXTURE_PATH];
    path_in(path, shard);
    assert_int_equal(unlink(path), 0);
    fixture_join(out, scratch, "sums");
    struct child c = program_start(NULL, VERIFY, "--write-sums", out, NULL);
    expect(&c, 1, "no list is written");
    program_free(&c);
    assert_int_equal(access(out, F_OK), -1);
}

static void other_forms_of_a_list_are_read(void **state)
{
    (void)state;
    size_t n = 0;
    char *text = fixture_read(model, "SHA256SUMS", &n), *save = NULL, out[FIXTURE_PATH];
    fixture_join(out, scratch, "forms");
    append(out, "# of a release\r\n\n");
    unsigned i = 0;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        char form[256];
        if (i % 2 == 0)
            snprintf(form, sizeof form, "%.64s *./%s\r\n", line, line + 66);
        else
            snprintf(form, sizeof form, "SHA256 (%s) = %.64s\n", line + 66, line);
        append(out, form);
        i++;
    }
    free(text);
    struct child c = program_start(NULL, VERIFY, "--sha256", out, NULL);
    expect(&c, 0, "8 files have the contents");
    program_free(&c);
}

static void lines_that_are_not_understood_are_refused(void **state)
{
    (void)state;
    append(list, "0123  config.json\n");
    verify(2, "SHA256SUMS:9: '0123  config.json' is no line of sha256sum");
}

static void two_sums_of_one_file_are_refused(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "%064d  %s\n", 0, "config.json");
    append(list, line);
    verify(2, "config.json stands on line");
}

static void an_empty_list_is_refused(void **state)
{
    (void)state;
    assert_int_equal(truncate(list, 0), 0);
    verify(2, "there is no checksum in this list");
}

static void without_a_list_it_says_which_is_meant(void **state)
{
    (void)state;
    assert_int_equal(unlink(list), 0);
    verify(2, "name the list");
}

static void what_else_is_listed_is_no_matter(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "%064d  figures/picture.png\n", 0);
    append(list, line);
    verify(0, "8 files have the contents");
}

static void a_file_that_nobody_vouches_for_is_told(void **state)
{
    (void)state;
    char text[256];
    fixture_replace(model, "SHA256SUMS", shard, "another.safetensors");
    said("%s is not in the list", shard, text);
    verify(1, text);
}

/* ---- contents ---------------------------------------------------------------------------- */

static void right_contents_are_right(void **state)
{
    (void)state;
    verify(0, "8 files were read before and have not changed since");
    struct child c = program_start(NULL, VERIFY, "--sha256", "--afresh", NULL);
    expect(&c, 0, "8 files have the contents");
    assert_null(strstr(c.out_text, "read before"));
    program_free(&c);
}

static void a_damaged_file_is_named_with_the_way_out(void **state)
{
    (void)state;
    char text[256], memory[FIXTURE_PATH];
    struct stat st;
    path_in(memory, shard);
    assert_int_equal(stat(memory, &st), 0);
    fixture_flip(model, shard, (size_t)st.st_size - 1);
    said("%s is damaged", shard, text);
    verify(1, text);
    verify(1, "k3chat fetch SOURCE ");
    path_in(memory, ".k3chat-files");
    append(memory, "source owner/name\n");
    verify(1, "k3chat fetch owner/name ");
    fixture_flip(model, shard, (size_t)st.st_size - 1);
    verify(0, NULL);
}

static void a_short_file_is_damaged(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], text[256];
    struct stat st;
    path_in(path, shard);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    said("%s is damaged", shard, text);
    verify(1, text);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], text[256];
    path_in(path, shard);
    assert_int_equal(unlink(path), 0);
    said("%s is missing", shard, text);
    verify(1, text);
    /* Also without reading anything, and then nothing is left behind. */
    path_in(path, ".k3chat-files");
    assert_int_equal(unlink(path), 0);
    struct child c = program_start(NULL, VERIFY, NULL);
    expect(&c, 1, text);
    program_free(&c);
    c = program_start(NULL, VERIFY, NULL);
    expect(&c, 1, "k3chat fetch SOURCE ");
    program_free(&c);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_folder_in_place_of_a_file_is_told(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], text[256];
    path_in(path, shard);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    said("%s cannot be read", shard, text);
    verify(1, text);
    assert_int_equal(rmdir(path), 0);
}

static void files_behind_links_are_read(void **state)
{
    (void)state;
    char path[FIXTURE_PATH], other[FIXTURE_PATH];
    path_in(path, shard);
    fixture_join(other, scratch, "elsewhere");
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    verify(0, "8 files have the contents");
    fixture_flip(scratch, "elsewhere", 5000);
    verify(1, "is damaged");
}

/* ---- stopped and gone on with ------------------------------------------------------------ */

static void a_killed_run_goes_on(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    path_in(path, ".k3chat-files");
    assert_int_equal(unlink(path), 0);
    struct child c = program_start(NULL, VERIFY, "--sha256", NULL);
    program_wait_text(&c, true, ": read");
    kill(c.pid, SIGKILL);
    program_wait(&c);
    program_free(&c);
    verify(0, " files were read before and have not changed since");
    verify(0, "8 files were read before");
}

static void a_line_that_was_cut_off_is_no_harm(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    struct stat st;
    path_in(path, ".k3chat-files");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 7), 0);
    verify(0, "7 files were read before");
    verify(0, "8 files were read before");
}

static void a_memory_of_another_kind_is_not_guessed_at(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    path_in(path, ".k3chat-files");
    assert_int_equal(truncate(path, 0), 0);
    append(path, "something else\n");
    verify(1, "remove it");
}

static void what_has_changed_is_read_again(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    path_in(path, shard);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    verify(0, "7 files were read before");
}

static void two_at_once_are_one_too_many(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    path_in(path, ".k3chat-files");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(flock(fileno(f), LOCK_EX), 0);
    verify(1, "another k3chat is fetching or verifying");
    fclose(f);
}

#define T(f) cmocka_unit_test_setup_teardown(f, before, after)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_list_is_what_sha256sum_takes),
        T(a_list_is_not_written_over),
        T(no_list_is_written_of_half_a_checkpoint),
        T(other_forms_of_a_list_are_read),
        T(lines_that_are_not_understood_are_refused),
        T(two_sums_of_one_file_are_refused),
        T(an_empty_list_is_refused),
        T(without_a_list_it_says_which_is_meant),
        T(what_else_is_listed_is_no_matter),
        T(a_file_that_nobody_vouches_for_is_told),
        T(right_contents_are_right),
        T(a_damaged_file_is_named_with_the_way_out),
        T(a_short_file_is_damaged),
        T(a_missing_file_is_named),
        T(a_folder_in_place_of_a_file_is_told),
        T(files_behind_links_are_read),
        T(a_killed_run_goes_on),
        T(a_line_that_was_cut_off_is_no_harm),
        T(a_memory_of_another_kind_is_not_guessed_at),
        T(what_has_changed_is_read_again),
        T(two_at_once_are_one_too_many),
    };
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
