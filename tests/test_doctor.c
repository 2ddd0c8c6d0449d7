/* test_doctor.c - `k3chat doctor` from outside: without a checkpoint, with a part of one, with a whole
 * one, and what it measures with. */
#include <config.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH], tiny[FIXTURE_PATH];

static void expect_words(const struct child *c, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(c->out_text, *words) == NULL)
            fail_msg("'%s' is not in '%s' (stderr '%s')", *words, c->out_text, c->err_text);
}

static void expect_word(const struct child *c, const char *word)
{
    const char *const words[] = {word, NULL};
    expect_words(c, words);
}

static void expect_status(const struct child *c, int status)
{
    if (c->status != status)
        fail_msg("status %d, not %d: '%s', stderr '%s'", c->status, status, c->out_text,
                 c->err_text);
}

static double figure_behind(const struct child *c, const char *words)
{
    expect_word(c, words);
    return strtod(strstr(c->out_text, words) + strlen(words), NULL);
}

/* ---- what is there ----------------------------------------------------------------------- */

static void without_a_checkpoint(void **state)
{
    (void)state;
    static const char *const words[] = {
        "CPU: ", "instruction sets:", "kernels: scalar", "RAM: ", "disk of .: ", " free of ",
        "its reading was not measured: there are no shards", "model: none named",
        "what the released model would take:", "memory plan: ", "time per token",
        "next: k3chat (the demo model", NULL};
    struct child c = program_start(NULL, "doctor", "--budget", "8GB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_words(&c, words);
    const double least = figure_behind(&c, "least budget for this model with 4096 positions: ");
    assert_true(least > 0.8 && least <= 2.0);
    program_free(&c);
    /* the context asked for, beside the usual one */
    c = program_start(NULL, "doctor", "--budget", "8GB", "--context", "65536", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    const double usual = figure_behind(&c, "with 4096 positions: ");
    assert_true(usual > least - 0.05 && usual < least + 0.05); /* the program itself varies */
    assert_true(figure_behind(&c, "with 65536 positions: ") > least + 0.1);
    program_free(&c);
    /* nothing has failed when the released model does not fit */
    c = program_start(NULL, "doctor", "--budget", "100MB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_word(&c, "the budget of 0.100 GB is too small");
    program_free(&c);
}

static void before_the_download(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], below[FIXTURE_PATH], line[2 * FIXTURE_PATH];
    fixture_join(dir, scratch, "not yet");
    fixture_join(below, dir, "there");
    struct child c = program_start(NULL, "doctor", "--model", below, "--budget", "8GB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    snprintf(line, sizeof line, "disk of %s: ", scratch); /* the nearest folder that is there */
    expect_word(&c, line);
    expect_word(&c, "there is no such folder yet");
    expect_word(&c, "what the released model would take:");
    snprintf(line, sizeof line, "next: k3chat fetch SOURCE '%s' (", below); /* as a shell takes it */
    expect_word(&c, line);
    program_free(&c);
    assert_int_equal(access(dir, F_OK), -1); /* nothing was made */
}

static void a_part_of_it(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], shard[FIXTURE_PATH];
    const struct k3_synth s = fixture_preset("tiny");
    fixture_join(dir, scratch, "part");
    fixture_write(&s, dir);
    fixture_join(shard, dir, fixture_find(dir, "language_model.lm_head.weight").shard);
    assert_int_equal(unlink(shard), 0);
    struct child c = program_start(NULL, "doctor", "--model", dir, "--budget", "1GB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_word(&c, "config.json is there, the weights are not whole");
    expect_word(&c, shard);
    expect_word(&c, "complete the download");
    expect_word(&c, "memory plan: ");
    assert_null(strstr(c.out_text, "released"));
    expect_word(&c, "next: k3chat fetch SOURCE ");
    program_free(&c);
}

static void a_whole_one(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    fixture_join(dir, scratch, "it's here");
    assert_int_equal(symlink(tiny, dir), 0);
    struct child c = program_start(NULL, "doctor", "--model", dir, "--budget", "1GB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_word(&c, ": whole, 10 files, ");
    expect_word(&c, "there is too little to read");
    expect_word(&c, "memory plan: ");
    expect_word(&c, "it'\\''s here'\n");
    program_free(&c);
    c = program_start(NULL, "doctor", "--model", tiny, "--budget", "1MB", NULL);
    program_wait(&c);
    expect_status(&c, 1);
    assert_non_null(strstr(c.err_text, "too small"));
    program_free(&c);
    assert_int_equal(unlink(dir), 0);
}

/* ---- measuring --------------------------------------------------------------------------- */

static void expect_rates(const struct child *c)
{
    assert_true(figure_behind(c, "trunk blocks of ") > 0);
    assert_true(figure_behind(c, " 16 in flight: ") > 0);
    assert_true(figure_behind(c, "experts of ") > 0);
    assert_true(figure_behind(c, "each token takes the disk ") > 0);
}

static size_t count_files(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void with_a_temporary_file(void **state)
{
    (void)state;
    const size_t before = count_files(scratch);
    struct child c = program_start(NULL, "doctor", "--model", scratch, "--budget", "8GB",
                                   "--measure", "96MB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_word(&c, "there is no config.json");
    expect_word(&c, "measured with a temporary file of 96.0 MB");
    expect_rates(&c);
    assert_null(strstr(c.out_text, "holes"));
    assert_int_equal(count_files(scratch), before);
    program_free(&c);
    c = program_start(NULL, "doctor", "--measure", "1MB", NULL);
    program_wait(&c);
    expect_status(&c, 2);
    assert_non_null(strstr(c.err_text, "--measure"));
    program_free(&c);
}

/* Shards of released width without weights: no disk is read for them, and that is said. */
static void with_the_shards(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    struct k3_synth s = fixture_preset("full");
    fixture_join(dir, scratch, "full");
    s.holes = 1;
    fixture_write(&s, dir);
    struct child c = program_start(NULL, "doctor", "--model", dir, "--budget", "2GB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_word(&c, ": whole, ");
    expect_word(&c, "measured with the shards there, ");
    expect_rates(&c);
    expect_word(&c, "most of the files is holes");
    program_free(&c);
}

static int setup(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    fixture_scratch(scratch);
    fixture_join(path, scratch, "cache");
    setenv("XDG_CACHE_HOME", path, 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    unsetenv("K3CHAT_CONF");
    fixture_join(tiny, scratch, "tiny");
    const struct k3_synth s = fixture_preset("tiny");
    fixture_write(&s, tiny);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_scratch_end(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_checkpoint), cmocka_unit_test(before_the_download),
        cmocka_unit_test(a_part_of_it),         cmocka_unit_test(a_whole_one),
        cmocka_unit_test(with_a_temporary_file), cmocka_unit_test(with_the_shards),
    };
    return cmocka_run_group_tests_name("doctor", tests, setup, teardown);
}
