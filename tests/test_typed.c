/* test_typed.c - the history of what was typed: kept, bounded, shared, and tolerant. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/typed.h"

#define WRITERS 4

static char home[256], file[300];

static int make_home(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/k3typed-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(home))
        return -1;
    snprintf(file, sizeof file, "%s/k3chat/history.jsonl", home);
    return setenv("XDG_DATA_HOME", home, 1);
}

static int remove_home(void **state)
{
    (void)state;
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", home);
    return system(cmd) == 0 ? 0 : -1;
}

struct texts {
    char *v[4096];
    size_t n;
};

static void take(void *ud, const char *text, size_t len)
{
    struct texts *t = ud;
    assert_true(t->n < sizeof t->v / sizeof *t->v);
    assert_int_equal(strlen(text), len);
    t->v[t->n++] = strdup(text);
}

static void read_all(struct texts *t)
{
    struct k3_error err = {0};
    *t = (struct texts){.n = 0};
    assert_int_equal(typed_read(take, t, &err), K3_OK);
}

static void free_all(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i]);
}

static void add(const char *text)
{
    struct k3_error err = {0};
    assert_int_equal(typed_add(text, strlen(text), &err), K3_OK);
}

static void put_raw(const char *text)
{
    FILE *f = fopen(file, "ab");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static size_t file_size(void)
{
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    return (size_t)st.st_size;
}

static void test_kept(void **state)
{
    (void)state;
    struct texts t;
    struct stat st;
    read_all(&t);
    assert_int_equal(t.n, 0);
    assert_int_equal(access(file, F_OK), -1); /* reading makes nothing */
    add("first");
    add("two\nlines \"and\" a \\ and \xE6\xBC\xA2");
    read_all(&t);
    assert_int_equal(t.n, 2);
    assert_string_equal(t.v[0], "first");
    assert_string_equal(t.v[1], "two\nlines \"and\" a \\ and \xE6\xBC\xA2");
    free_all(&t);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_damage(void **state)
{
    (void)state;
    struct texts t;
    add("before");
    put_raw("no JSON\n{\"text\":7}\n[]\n\n{\"text\":\"added by hand\"}\n{\"text\":\"torn");
    add("after");
    read_all(&t);
    assert_int_equal(t.n, 3);
    assert_string_equal(t.v[0], "before");
    assert_string_equal(t.v[1], "added by hand");
    assert_string_equal(t.v[2], "after");
    free_all(&t);
}

/* What is too long is left out; beyond the size of the file the oldest go. */
static void test_bounded(void **state)
{
    (void)state;
    struct texts t;
    char *text = malloc(TYPED_TEXT_BYTES + 2);
    assert_non_null(text);
    memset(text, 'x', TYPED_TEXT_BYTES + 1);
    text[TYPED_TEXT_BYTES + 1] = '\0';
    add(text);
    assert_int_equal(access(file, F_OK), -1);
    text[30000] = '\0';
    for (int i = 0; i < 100; i++) {
        sprintf(text, "%04d", i);
        text[4] = ' ';
        add(text);
        assert_true(file_size() <= TYPED_FILE_BYTES);
    }
    assert_true(file_size() > TYPED_FILE_BYTES / 3);
    read_all(&t);
    assert_true(t.n >= 12 && t.n < 100);
    for (size_t i = 0; i < t.n; i++) {
        assert_int_equal(atoi(t.v[i]), 100 - (int)t.n + (int)i);
        assert_int_equal(strlen(t.v[i]), 30000);
    }
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    free_all(&t);
    free(text);
}

static void write_side_by_side(int lines, size_t size)
{
    char text[8192];
    for (int w = 0; w < WRITERS; w++) {
        if (fork() != 0)
            continue;
        struct k3_error err = {0};
        memset(text, 'x', size);
        text[size] = '\0';
        for (int i = 0; i < lines; i++) {
            text[snprintf(text, sizeof text, "%d %d", w, i)] = ' ';
            if (typed_add(text, size, &err) != K3_OK)
                _exit(1);
        }
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

/* Every text is whole, and those of a program stand in its order without a gap. */
static size_t check_orders(void)
{
    struct texts t;
    int last[WRITERS] = {-1, -1, -1, -1};
    read_all(&t);
    for (size_t i = 0; i < t.n; i++) {
        int w = -1, n = -1;
        assert_int_equal(sscanf(t.v[i], "%d %d ", &w, &n), 2);
        assert_true(w >= 0 && w < WRITERS && (last[w] < 0 || n == last[w] + 1));
        last[w] = n;
    }
    free_all(&t);
    return t.n;
}

static void test_several_programs(void **state)
{
    (void)state;
    write_side_by_side(100, 100);
    assert_int_equal(check_orders(), WRITERS * 100);
    unlink(file);
    write_side_by_side(200, 4000); /* three times as much as the file may hold */
    const size_t n = check_orders();
    assert_true(n >= 120 && n < WRITERS * 200);
    assert_true(file_size() <= TYPED_FILE_BYTES);
}

static void test_refused(void **state)
{
    (void)state;
    struct k3_error err = {0};
    char folder[300];
    snprintf(folder, sizeof folder, "%s/k3chat", home);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_int_equal(typed_add("x", 1, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "history.jsonl"));
    assert_int_not_equal(typed_read(take, NULL, &err), K3_OK);
    assert_non_null(strstr(err.message, "history.jsonl"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, make_home, remove_home),
        cmocka_unit_test_setup_teardown(test_damage, make_home, remove_home),
        cmocka_unit_test_setup_teardown(test_bounded, make_home, remove_home),
        cmocka_unit_test_setup_teardown(test_several_programs, make_home, remove_home),
        cmocka_unit_test_setup_teardown(test_refused, make_home, remove_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
