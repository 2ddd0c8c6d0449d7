/* test_profile.c - profiles: the shipped ones, every key, every fault and its place, lookup. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../src/options.h"
#include "../src/profile.h"
#include "fixture.h"

static char scratch[FIXTURE_PATH];

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Reads a profile from text; the request is the caller's. */
static enum k3_status load_text(const char *text, size_t n, struct request *r, struct k3_error *err)
{
    char path[FIXTURE_PATH];
    fixture_join(path, scratch, "p.yaml");
    write_file(path, text, n);
    memset(err, 0, sizeof *err);
    request_init(r);
    return profile_load(r, path, err);
}

static void every_key_arrives(void **state)
{
    (void)state;
    static const char text[] = "name: mine\n"
                               "memory:\n"
                               "  budget: 8GB   # a comment\n"
                               "  ring: 128MiB\n"
                               "  experts: 3GB\n"
                               "  context: 8192\n"
                               "io: {backend: direct, depth: 8}\n"
                               "compute: {threads: 4, isa: scalar, chunk: 32}\n"
                               "model: {path: /data/kimi-k3}\n"
                               "generation: {thinking: low, max_tokens: 77, temperature: 0.7,\n"
                               "             top_p: 0.9, seed: 5}\n"
                               "ui: {theme: mono, graph: ascii, notify: osc777, history: off, mouse: wheel,\n"
                               "     panes: [memory, hits]}\n"
                               "keys:\n"
                               "  help: F5\n"
                               "  external-editor: [Alt+E, Ctrl+X Ctrl+E]\n";
    struct request r;
    struct k3_error err;
    assert_int_equal(load_text(text, sizeof text - 1, &r, &err), K3_OK);
    const struct k3_options *e = &r.run.engine;
    assert_string_equal(r.run.profile_name, "mine");
    assert_int_equal(e->budget, 8000000000);
    assert_int_equal(e->ring, 128 << 20);
    assert_int_equal(e->experts, 3000000000);
    assert_int_equal(e->context, 8192);
    assert_int_equal(e->io, K3_IO_DIRECT);
    assert_int_equal(e->io_depth, 8);
    assert_int_equal(e->threads, 4);
    assert_int_equal(e->isa, K3_ISA_SCALAR);
    assert_int_equal(e->chunk, 32);
    assert_string_equal(e->model_dir, "/data/kimi-k3");
    assert_int_equal(r.run.thinking, K3_THINK_LOW);
    assert_int_equal(r.run.max_tokens, 77);
    assert_false(r.run.sampling.greedy);
    assert_true(r.run.sampling.temperature == 0.7f && r.run.sampling.top_p == 0.9f);
    assert_int_equal(r.run.sampling.seed, 5);
    assert_int_equal(r.run.ui.theme, UI_THEME_MONO);
    assert_int_equal(r.run.ui.graph, UI_GRAPH_ASCII);
    assert_int_equal(r.run.ui.notify, UI_NOTIFY_OSC777);
    assert_true(r.run.ui.mouse);
    assert_true(r.run.ui.no_history);
    assert_int_equal(r.run.ui.n_panes, 2);
    assert_string_equal(r.run.ui.panes[0], "memory");
    assert_string_equal(r.run.ui.panes[1], "hits");
    const struct ui_key *k = r.run.ui.keys;
    assert_int_equal(r.run.ui.n_keys, 3);
    assert_string_equal(k[0].action, "help");
    assert_string_equal(k[0].key, "F5");
    assert_non_null(strstr(k[0].where, "p.yaml:15:9")); /* the screen checks it later */
    assert_string_equal(k[2].action, "external-editor");
    assert_string_equal(k[2].key, "Ctrl+X Ctrl+E");
    assert_non_null(strstr(k[2].where, "p.yaml:16:28"));
    request_free(&r);
}

/* What is left out stays as it was. */
static void an_empty_profile_sets_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# nothing\n", "---\n", "name: p\n", "{}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct request r, untouched;
        struct k3_error err;
        assert_int_equal(load_text(texts[i], strlen(texts[i]), &r, &err), K3_OK);
        request_init(&untouched);
        assert_string_equal(r.run.profile_name, "p");
        r.run.profile_name = untouched.run.profile_name;
        void *owned = r.run.owned;
        r.run.owned = NULL;
        assert_memory_equal(&r.run, &untouched.run, sizeof r.run);
        r.run.owned = owned;
        request_free(&r);
    }
}

static void a_path_is_resolved(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
    } rows[] = {
        {"model: {path: ~/kimi}\n", "/home/x/kimi"},
        {"model: {path: models/kimi}\n", NULL}, /* relative to the profile's folder */
    };
    setenv("HOME", "/home/x", 1);
    for (size_t i = 0; i < 2; i++) {
        struct request r;
        struct k3_error err;
        char want[FIXTURE_PATH];
        fixture_join(want, scratch, "models/kimi");
        assert_int_equal(load_text(rows[i].text, strlen(rows[i].text), &r, &err), K3_OK);
        assert_string_equal(r.run.engine.model_dir, rows[i].path != NULL ? rows[i].path : want);
        request_free(&r);
    }
}

/* Every fault: status, place in the file, and a word of the message. */
static void faults_name_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *part;
    } rows[] = {
        {"nmae: x\n", ":1:1:", "unknown key 'nmae'; known here: model, name, memory"},
        {"memory:\n  bugdet: 8GB\n", ":2:3:", "unknown key 'memory.bugdet'; known here: budget"},
        {"memory.budget: 8GB\n", ":1:1:", "unknown key 'memory.budget'"},
        {"memory:\n  budget: 8G\n", ":2:11:", "memory.budget: '8G' is ambiguous"},
        {"memory:\n  budget: lots\n", ":2:11:", "'lots' is not a size"},
        {"memory: {context: many}\n", ":1:19:", "'many' is not a whole number"},
        {"memory: {context: -1}\n", ":1:19:", "not a whole number"},
        {"memory: 8GB\n", ":1:9:", "'memory' is a single value; a mapping belongs here"},
        {"memory:\n", ":1:8:", "'memory' is a single value; a mapping belongs here"},
        {"memory:\n  budget:\n    a: 1\n", ":3:5:", "'memory.budget' is a mapping; a single value"},
        {"memory:\n  budget: [8GB]\n", ":2:11:", "'memory.budget' is a list; a single value"},
        {"memory:\n  budget:\n", ":2:10:", "'memory.budget' has no value"},
        {"ui: {panes: timing}\n", ":1:13:", "'ui.panes' is a single value; a list belongs here"},
        {"ui:\n  panes:\n    - timing\n    - clock\n", ":4:7:", "'clock' is not known: say timing"},
        {"keys: [F5]\n", ":1:7:", "'keys' is a list; a mapping belongs here"},
        {"keys: {help: {a: b}}\n", ":1:14:", "'keys.help' is a mapping; a single value"},
        {"keys: {help: F5, help: F6}\n", ":1:18:", "key 'help' is given twice"},
        {"keys:\n  help: ''\n", ":2:9:", "'keys.help' has no value"},
        {"ui: {panes: [timing, [x]]}\n", ":1:22:", "'ui.panes' is a list; a single value"},
        {"ui: {theme: pink}\n", ":1:13:", "auto, dark, light or mono"},
        {"io: {backend: mmap}\n", ":1:15:", "auto, uring, direct or buffered"},
        {"generation: {thinking: medium}\n", ":1:24:", "off, low, high or max"},
        {"generation: {top_p: 2}\n", ":1:21:", "more than 0, at most 1"},
        {"name: a\nmemory: {}\nname: b\n", ":3:1:", "'name' is given twice, first in line 1"},
        {"memory:\n  ring: auto\n  ring: 1MB\n", ":3:3:", "'ring' is given twice"},
        {"- name\n", ":1:1:", "a profile is a mapping of keys, this is a list"},
        {"just words\n", ":1:1:", "this is a single value"},
        {"name: a\n---\nname: b\n", ":3:1:", "a second document"},
        {"name: \"open\n", ":2:1:", "no valid YAML"},
        {"name: a\n  b: c\n", ":2:4:", "no valid YAML"},
        {"name: [a\n", ":2:1:", "no valid YAML"},
        {"\tname: a\n", ":1:1:", "no valid YAML"},
        {"name: *nobody\n", ":1:7:", "no valid YAML"},
        {"? [a, b]\n: c\n", ":1:3:", "'a key' is a list"},
        {"name: \"a\\0b\"\n", ":1:7:", "zero byte"},
        {"name: x\nui: {graph: \xff}\n", ":2:13:", "no valid YAML"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request r;
        struct k3_error err;
        const enum k3_status status = load_text(rows[i].text, strlen(rows[i].text), &r, &err);
        request_free(&r);
        if (status != K3_USAGE || strstr(err.message, "p.yaml:") == NULL ||
            strstr(err.message, rows[i].place) == NULL || strstr(err.message, rows[i].part) == NULL)
            fail_msg("'%s': status %d, '%s' lacks '%s' or '%s'", rows[i].text, (int)status,
                     err.message, rows[i].place, rows[i].part);
    }
}

/* Whatever is cut off or changed in a good file: an answer, and no report from the sanitizers. */
static void damaged_files_end_in_a_message(void **state)
{
    (void)state;
    size_t n = 0;
    char conf[FIXTURE_PATH];
    fixture_join(conf, getenv("K3_SRCDIR"), "conf");
    char *text = fixture_read(conf, "laptop.yaml", &n);
    for (size_t i = 0; i < 2 * n; i++) {
        struct request r;
        struct k3_error err;
        const size_t at = i / 2;
        const char old = text[at];
        size_t len = n;
        if (i % 2 == 0)
            len = at;
        else
            text[at] = (char)(old ^ (1 << (at % 8)));
        if (load_text(text, len, &r, &err) != K3_OK)
            assert_true(err.message[0] != '\0' && err.status == K3_USAGE);
        text[at] = old;
        request_free(&r);
    }
    free(text);
}

static void the_shipped_profiles(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t budget;
    } rows[] = {
        {"laptop", 8000000000},   {"desktop", 32000000000}, {"workstation", 96000000000},
        {"server", 128000000000}, {"max", 0},               {"demo", 0},
    };
    char conf[FIXTURE_PATH];
    fixture_join(conf, getenv("K3_SRCDIR"), "conf");
    setenv("K3CHAT_CONF", conf, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request r;
        struct k3_error err = {0};
        request_init(&r);
        assert_int_equal(profile_load_for(&r, rows[i].name, false, &err), K3_OK);
        assert_string_equal(r.run.profile_name, rows[i].name);
        assert_int_equal(r.run.engine.budget, rows[i].budget);
        assert_null(r.run.engine.model_dir);
        request_free(&r);
    }
    unsetenv("K3CHAT_CONF");
}

/* The user's folder comes before the others; options override what the profile says. */
static void lookup_and_override(void **state)
{
    (void)state;
    char config[FIXTURE_PATH], mine[FIXTURE_PATH], conf[FIXTURE_PATH];
    fixture_join(conf, getenv("K3_SRCDIR"), "conf");
    setenv("K3CHAT_CONF", conf, 1);
    fixture_join(config, scratch, "k3chat");
    assert_int_equal(mkdir(config, 0700), 0);
    setenv("XDG_CONFIG_HOME", scratch, 1);
    fixture_join(mine, config, "laptop.yaml");
    static const char text[] = "name: my laptop\nmemory: {budget: 5GB, context: 300}\n";
    write_file(mine, text, sizeof text - 1);

    char *argv[] = {(char *)(uintptr_t) "k3chat",  (char *)(uintptr_t) "--budget",
                    (char *)(uintptr_t) "6GB",     (char *)(uintptr_t) "--profile",
                    (char *)(uintptr_t) "laptop",  NULL};
    struct request r;
    struct k3_error err = {0};
    assert_int_equal(options_parse(5, argv, FOR_BOTH, &r, &err), OPTIONS_RUN);
    assert_string_equal(r.run.profile_name, "my laptop");
    assert_int_equal(r.run.engine.budget, 6000000000); /* although it stands in front */
    assert_int_equal(r.run.engine.context, 300);
    request_free(&r);

    /* without --profile: the user's default, else (and only without a model) the demo profile */
    assert_int_equal(options_parse(1, argv, FOR_BOTH, &r, &err), OPTIONS_RUN);
    assert_string_equal(r.run.profile_name, "demo");
    request_free(&r);
    fixture_join(mine, config, "default.yaml");
    static const char standard[] = "memory: {context: 55}\n";
    write_file(mine, standard, sizeof standard - 1);
    assert_int_equal(options_parse(1, argv, FOR_BOTH, &r, &err), OPTIONS_RUN);
    assert_string_equal(r.run.profile_name, "default");
    assert_int_equal(r.run.engine.context, 55);
    request_free(&r);
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    unsetenv("K3CHAT_CONF");
}

static void missing_files(void **state)
{
    (void)state;
    static const char *const names[] = {"/nonexistent/p.yaml", "there-is-none", "", "../x", "."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct request r;
        struct k3_error err = {0};
        request_init(&r);
        assert_int_equal(profile_load_for(&r, names[i], true, &err), K3_USAGE);
        assert_true(err.message[0] != '\0');
        request_free(&r);
    }
}

static int setup(void **state)
{
    (void)state;
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    unsetenv("K3CHAT_CONF");
    fixture_scratch(scratch);
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
        cmocka_unit_test(every_key_arrives),
        cmocka_unit_test(an_empty_profile_sets_nothing),
        cmocka_unit_test(a_path_is_resolved),
        cmocka_unit_test(faults_name_line_and_column),
        cmocka_unit_test(damaged_files_end_in_a_message),
        cmocka_unit_test(the_shipped_profiles),
        cmocka_unit_test(lookup_and_override),
        cmocka_unit_test(missing_files),
    };
    return cmocka_run_group_tests_name("profile", tests, setup, teardown);
}
