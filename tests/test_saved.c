/* test_saved.c - the list of sessions and the files that the chat writes on request. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../src/saved.h"

static char home[256];

static int make_home(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/k3saved-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(home))
        return -1;
    setenv("HOME", home, 1);
    setenv("XDG_DATA_HOME", home, 1);
    return 0;
}

static int remove_home(void **state)
{
    (void)state;
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", home);
    return system(cmd) == 0 ? 0 : -1;
}

static const char *in_home(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", home, name);
    return path;
}

static void put_file(const char *name, const char *text, int64_t when)
{
    const char *path = in_home(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    const struct timespec t[2] = {{.tv_sec = when}, {.tv_sec = when}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void expect_file(const char *name, const char *part)
{
    char text[4096];
    FILE *f = fopen(in_home(name), "rb");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    assert_non_null(strstr(text, part));
}

static const char header[] =
    "{\"format\":\"k3chat-transcript\",\"version\":1,\"created\":1,\"program\":\"0.1.0\"}\n";
static const char question[] = "{\"type\":\"message\",\"id\":1,\"parent\":null,\"time\":1,"
                               "\"role\":\"user\",\"content\":\"What is\\nrust?\"}\n";
static const char answer[] = "{\"type\":\"message\",\"id\":2,\"parent\":1,\"time\":2,\"role\":"
                             "\"assistant\",\"content\":\"Iron **oxide**.\",\"finish\":\"stop\"}\n";

static void test_nothing_there(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct saved_session *list;
    size_t n = 7;
    assert_int_equal(saved_list(&list, &n, &err), K3_OK);
    assert_int_equal(n, 0);
    free(list);
    char title[64];
    assert_int_equal(saved_read("nothing", &n, title, sizeof title, &err), K3_USAGE);
    assert_non_null(strstr(err.message, "nothing"));
}

static void test_list(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct saved_session *list;
    char text[2048], title[64];
    size_t n, messages;
    assert_int_equal(mkdir(in_home("k3chat"), 0700), 0);
    assert_int_equal(mkdir(in_home("k3chat/sessions"), 0700), 0);
    snprintf(text, sizeof text, "%s%s%s", header, question, answer);
    put_file("k3chat/sessions/older.jsonl", text, 1000);
    put_file("k3chat/sessions/newer.jsonl", text, 2000);
    snprintf(text, sizeof text, "%s{\"type\":\"message\",\"id\":\"x\"}\n%s", header, question);
    put_file("k3chat/sessions/damaged.jsonl", text, 500);
    put_file("k3chat/sessions/.hidden.jsonl", text, 3000);
    put_file("k3chat/sessions/older.state", "x", 3000);
    for (int i = 0; i < 70; i++) { /* more than one step of the growing list */
        snprintf(title, sizeof title, "k3chat/sessions/many-%02d.jsonl", i);
        put_file(title, header, 100 + i);
    }
    assert_int_equal(saved_list(&list, &n, &err), K3_OK);
    assert_int_equal(n, 73);
    assert_string_equal(list[0].name, "newer");
    assert_int_equal(list[0].used, 2000);
    assert_string_equal(list[1].name, "older");
    assert_string_equal(list[2].name, "damaged");
    assert_string_equal(list[72].name, "many-00");
    free(list);
    assert_int_equal(saved_read("newer", &messages, title, sizeof title, &err), K3_OK);
    assert_int_equal(messages, 2);
    assert_string_equal(title, "What is rust?");
    assert_int_equal(saved_read("damaged", &messages, title, sizeof title, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "damaged.jsonl"));
    assert_int_equal(saved_check_name("a/b", &err), K3_USAGE);
    assert_int_equal(saved_check_name("a b", &err), K3_OK);
}

static void test_files(void **state)
{
    (void)state;
    struct k3_error err = {0};
    char path[600];
    assert_int_equal(saved_export("newer", in_home("out.md"), &err), K3_OK);
    expect_file("out.md", "Iron **oxide**.");
    assert_int_equal(saved_export("newer", "~/out.jsonl", &err), K3_OK);
    expect_file("out.jsonl", "\"role\"");
    assert_int_equal(saved_export("newer", in_home("out.txt"), &err), K3_OK);
    expect_file("out.txt", "Iron");
    assert_int_equal(saved_export("newer", in_home("out.md"), &err), K3_FAILED); /* it exists */
    assert_non_null(strstr(err.message, "out.md"));
    assert_int_equal(saved_export("nothing", in_home("new.md"), &err), K3_USAGE);
    assert_int_not_equal(access(in_home("new.md"), F_OK), 0);
    assert_int_equal(saved_write(in_home("text"), "a\0b", 3, &err), K3_OK);
    struct stat st;
    assert_int_equal(stat(in_home("text"), &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/no/such/folder/x", home);
    assert_int_equal(saved_write(path, "x", 1, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "no/such/folder"));
    if (access("/dev/full", W_OK) == 0) { /* exists already: refused, not written over */
        assert_int_equal(saved_write("/dev/full", "x", 1, &err), K3_FAILED);
    }
}

static char hits[2048];

static void note_hit(void *ud, const struct saved_hit *hit)
{
    (void)ud;
    snprintf(hits + strlen(hits), sizeof hits - strlen(hits), "%zu %s: %s\n", hit->message,
             hit->role, hit->excerpt);
}

static void expect_hits(const char *name, const char *what, const char *expected)
{
    struct k3_error err = {0};
    hits[0] = '\0';
    assert_int_equal(saved_search(name, what, note_hit, NULL, &err), K3_OK);
    assert_string_equal(hits, expected);
}

/* Excerpts begin and end with whole words, wherever the place is. */
static void test_search(void **state)
{
    (void)state;
    struct k3_error err = {0};
    char text[4096];
    const char *words = "one two three four five six seven eight nine ten eleven twelve thirteen "
                        "fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one "
                        "twenty-two twenty-three twenty-four twenty-five twenty-six";
    snprintf(text, sizeof text, "%s{\"type\":\"message\",\"id\":1,\"parent\":null,\"time\":1,"
             "\"role\":\"user\",\"content\":\"%s\"}\n%s", header, words, answer);
    put_file("k3chat/sessions/words.jsonl", text, 1);
    expect_hits("words", "ONE ", "1 user: one two three four five six seven eight nine ten eleven "
                                 "twelve thirteen fourteen \xe2\x80\xa6\n");
    expect_hits("words", "nineteen", "1 user: \xe2\x80\xa6 fifteen sixteen seventeen eighteen "
                                     "nineteen twenty twenty-one twenty-two twenty-three "
                                     "twenty-four twenty-five twenty-six\n");
    expect_hits("words", "iron", "2 assistant: Iron **oxide**.\n");
    expect_hits("words", "nowhere", "");
    memset(text, 'x', 400);
    text[400] = '\0';
    char longer[1024]; /* one word of 400 letters: cut within characters never */
    snprintf(longer, sizeof longer, "%s{\"type\":\"message\",\"id\":1,\"parent\":null,"
             "\"time\":1,\"role\":\"user\",\"content\":\"%.200s\xc3\xa4%.200s\"}\n", header,
             text, text);
    put_file("k3chat/sessions/long.jsonl", longer, 1);
    hits[0] = '\0';
    assert_int_equal(saved_search("long", "\xc3\x84", note_hit, NULL, &err), K3_OK);
    assert_non_null(strstr(hits, "x\xc3\xa4x"));
    assert_int_equal(saved_search("nobody", "x", note_hit, NULL, &err), K3_USAGE);
}

static void test_changes(void **state)
{
    (void)state;
    struct k3_error err = {0};
    assert_int_equal(saved_rename("words", "newer", &err), K3_USAGE); /* taken */
    assert_int_equal(saved_rename("words", "../x", &err), K3_USAGE);
    assert_int_equal(saved_rename("words", "phrases", &err), K3_OK);
    assert_int_not_equal(access(in_home("k3chat/sessions/words.jsonl"), F_OK), 0);
    expect_file("k3chat/sessions/phrases.jsonl", "\"rename\"");
    assert_int_equal(saved_delete("words", &err), K3_USAGE);
    assert_int_equal(saved_delete("phrases", &err), K3_OK);
    assert_int_not_equal(access(in_home("k3chat/sessions/phrases.jsonl"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
