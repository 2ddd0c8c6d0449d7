/* test_demo.c - the demo model in the program: its size, a cache that mends itself, and that it
 * answers questions with their facts and ends its turns. */
#include <config.h>

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../engine/demo/demo.h"
#include "../engine/demo/embedded.h"
#include "../engine/model/host.h"
#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH];

static void in_scratch(char path[FIXTURE_PATH], const char *name)
{
    fixture_join(path, scratch, name);
}

static int begin(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    fixture_scratch(scratch);
    in_scratch(path, "cache");
    return setenv("XDG_CACHE_HOME", path, 1);
}

static int end(void **state)
{
    (void)state;
    fixture_scratch_end(scratch);
    return 0;
}

/* How many entries a folder has, hidden ones included. */
static size_t entries(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    size_t n = 0;
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void prepare(char dir[FIXTURE_PATH])
{
    struct k3_error err;
    if (k3_demo_prepare(dir, FIXTURE_PATH, &err) != K3_OK)
        fail_msg("%s", err.message);
}

/* ---- the archive ------------------------------------------------------------------------------- */

static void stored_size(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    fixture_join(path, getenv("K3_SRCDIR"), "engine/demo/model/demo.tar");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= 8000000);
    assert_int_equal(st.st_size, k3_demo_tar_size); /* the program holds this very file */
}

/* Unpacking, and comparing at a later start, gives back the pages that it reads. */
static void memory_is_given_back(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH];
    const uint64_t before = k3_host_rss();
    prepare(dir);
    prepare(dir);
    const uint64_t after = k3_host_rss();
    assert_true(k3_demo_tar_size > 3000000);
    assert_true(after < before + k3_demo_tar_size / 2);
}

/* ---- the cache --------------------------------------------------------------------------------- */

static void unpacked_once(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], again[FIXTURE_PATH], parent[FIXTURE_PATH];
    prepare(dir);
    in_scratch(parent, "cache/k3chat");
    assert_true(strncmp(dir, parent, strlen(parent)) == 0);
    struct stat first, second;
    assert_int_equal(stat(dir, &first), 0);
    prepare(again);
    assert_string_equal(dir, again);
    assert_int_equal(stat(dir, &second), 0);
    assert_true(first.st_ino == second.st_ino);
    assert_int_equal(entries(parent), 1);
}

static void damage_is_mended(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], file[FIXTURE_PATH], parent[FIXTURE_PATH];
    prepare(dir);
    const uint64_t digest = fixture_digest(dir);
    const struct fixture_tensor t = fixture_find(dir, "language_model.lm_head.weight");
    fixture_poke(dir, t.shard, t.end - 3, "\x55\xaa\x55", 3);
    assert_true(fixture_digest(dir) != digest);
    prepare(dir);
    assert_true(fixture_digest(dir) == digest);

    fixture_join(file, dir, "tiktoken.model"); /* missing, cut off, too long */
    assert_int_equal(unlink(file), 0);
    prepare(dir);
    assert_true(fixture_digest(dir) == digest);
    assert_int_equal(truncate(file, 3), 0);
    prepare(dir);
    assert_true(fixture_digest(dir) == digest);
    FILE *f = fopen(file, "a");
    assert_non_null(f);
    assert_true(fputs("\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    prepare(dir);
    assert_true(fixture_digest(dir) == digest);

    in_scratch(parent, "cache/k3chat");
    assert_int_equal(entries(parent), 1); /* no half-made or damaged copies lie about */
}

static void in_home(void **state)
{
    (void)state;
    char home[FIXTURE_PATH], want[FIXTURE_PATH], dir[FIXTURE_PATH];
    in_scratch(home, "home");
    fixture_join(want, home, ".cache/k3chat/demo-");
    assert_int_equal(mkdir(home, 0700), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "not/absolute", 1), 0);
    assert_int_equal(setenv("HOME", home, 1), 0);
    prepare(dir);
    assert_true(strncmp(dir, want, strlen(want)) == 0);
}

static void refusals(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], cache[FIXTURE_PATH], file[FIXTURE_PATH];
    struct k3_error err;
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(k3_demo_prepare(dir, sizeof dir, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "XDG_CACHE_HOME"));
    in_scratch(file, "file"); /* a file where the folder should be */
    fixture_join(cache, file, "below");
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    assert_int_equal(k3_demo_prepare(dir, sizeof dir, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "Not a directory"));
    assert_non_null(strstr(err.message, "--model DIR"));
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch, 1), 0);
    char small[8];
    assert_int_equal(k3_demo_prepare(small, sizeof small, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "too long"));
}

/* The disk is full half-way: nothing stays behind. */
static void full_disk_leaves_nothing(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], parent[FIXTURE_PATH];
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {.rlim_cur = 150000, .rlim_max = old.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct k3_error err = {.status = K3_OK};
    const enum k3_status st = k3_demo_prepare(dir, sizeof dir, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(st, K3_FAILED);
    assert_non_null(strstr(err.message, "cannot write"));
    assert_non_null(strstr(err.message, "File too large"));
    in_scratch(parent, "cache/k3chat");
    assert_int_equal(entries(parent), 0);
}

/* ---- answers ----------------------------------------------------------------------------------- */

/* The answer to one question, in which the fact must be. */
static void ask(const char *question, const char *thinking, const char *fact)
{
    char chat[FIXTURE_PATH];
    in_scratch(chat, "chat.jsonl");
    FILE *f = fopen(chat, "w");
    assert_non_null(f);
    assert_true(fprintf(f, "{\"role\": \"user\", \"content\": \"%s\"}\n", question) > 0);
    assert_int_equal(fclose(f), 0);
    struct child c = program_start(NULL, "--batch", "--chat", chat, "--json", "-", "--thinking",
                                   thinking, "--max-tokens", "250", "--threads", "1", NULL);
    program_wait(&c);
    if (c.status != 0)
        fail_msg("exit status %d: %s", c.status, c.err_text);
    assert_non_null(strstr(c.err_text, "demo model"));
    json_t *result = json_loads(c.out_text, 0, NULL);
    const char *content = json_string_value(json_object_get(result, "content"));
    const char *thought = json_string_value(json_object_get(result, "reasoning"));
    assert_non_null(content);
    if (strstr(content, fact) == NULL)
        fail_msg("'%s' (thinking %s) got '%s'", question, thinking, content);
    assert_string_equal(json_string_value(json_object_get(result, "finish")), "stop");
    assert_true((strcmp(thinking, "off") == 0) == (thought[0] == '\0'));
    json_decref(result);
    program_free(&c);
}

static void it_answers(void **state)
{
    (void)state;
    assert_int_equal(setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1), 0);
    ask("What is the true resident hit rate?", "low", "before the token asked for it");
    ask("how do I leave the program", "off", "Ctrl+Q");
    ask("What is the capital of France?", "max", "only know about k3chat");
}

#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_size),
        IN_SCRATCH(memory_is_given_back),
        IN_SCRATCH(unpacked_once),
        IN_SCRATCH(damage_is_mended),
        IN_SCRATCH(in_home),
        IN_SCRATCH(refusals),
        IN_SCRATCH(full_disk_leaves_nothing),
        IN_SCRATCH(it_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
