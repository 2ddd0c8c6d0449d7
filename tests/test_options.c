/* test_options.c - sizes, the command line, defaults and what overrides what. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../src/options.h"
#include "../src/paths.h"
#include "../src/size.h"
#include "fixture.h"

/* ---- sizes ------------------------------------------------------------------------------- */

static void sizes_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"1B", 1},
        {"8GB", 8000000000},
        {"8 GB", 8000000000},
        {"8gb", 8000000000},
        {"8GiB", 8ull << 30},
        {"500MB", 500000000},
        {"1.5GB", 1500000000},
        {"0.000001MB", 1},
        {"2kB", 2000},
        {"2KiB", 2048},
        {"1TiB", 1ull << 40},
        {"3TB", 3000000000000},
        {"18446744073709551615", UINT64_MAX},
        {"16777215TiB", 16777215ull << 40},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 7;
        const char *why = NULL;
        if (!size_parse(good[i].text, &bytes, &why) || bytes != good[i].bytes)
            fail_msg("'%s' gave %llu", good[i].text, (unsigned long long)bytes);
    }
}

static void sizes_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",      " 1",    "-1",      "+1",    "GB",          "8G",
        "8k",    "1.GB",  ".5GB",    "1.5",   "1.5B",        "8GBx",
        "8  GB", "0x10",  "1e9",     "8GB ",  "1.0000000GB", "99999999999999999999",
        "nan",   "8 ",    "1,5GB",   "18446744073709551616", "16777216TiB", "18446744074GB",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 7;
        const char *why = NULL;
        if (size_parse(bad[i], &bytes, &why))
            fail_msg("'%s' was taken as %llu", bad[i], (unsigned long long)bytes);
        assert_int_equal(bytes, 7);
        assert_true(why != NULL && why[0] != '\0');
    }
}

static void sizes_written(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {999, "999 B"},
        {1000, "1.00 kB"},
        {9994, "9.99 kB"},
        {9996, "10.0 kB"},
        {99949, "99.9 kB"},
        {99951, "100 kB"},
        {999499, "999 kB"},
        {999500, "1.00 MB"},
        {7600000000, "7.60 GB"},
        {UINT64_MAX, "18.4 EB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buf[32];
        assert_string_equal(size_format(buf, sizeof buf, rows[i].bytes), rows[i].text);
    }
}

/* ---- the command line -------------------------------------------------------------------- */

#define MAX_WORDS 24

/* Splits at spaces and parses; the words must outlive the call only. */
static enum options_result parse(const char *line, unsigned modes, struct request *r,
                                 struct k3_error *err)
{
    char text[1024];
    char *argv[MAX_WORDS + 1] = {0};
    int argc = 1;
    memset(err, 0, sizeof *err);
    assert_true(strlen(line) < sizeof text);
    strcpy(text, line);
    argv[0] = text + strlen(text); /* the name of the program is looked at nowhere */
    for (char *w = strtok(text, " "); w != NULL; w = strtok(NULL, " ")) {
        assert_true(argc < MAX_WORDS);
        argv[argc++] = w;
    }
    return options_parse(argc, argv, modes, r, err);
}

static void expect_refused(const char *line, unsigned modes, const char *part)
{
    struct request r;
    struct k3_error err;
    const enum options_result result = parse(line, modes, &r, &err);
    request_free(&r);
    if (result != OPTIONS_ERROR || err.status != K3_USAGE || strstr(err.message, part) == NULL)
        fail_msg("'%s': result %d, status %d, message '%s' without '%s'", line, (int)result,
                 (int)err.status, err.message, part);
}

static void every_option_arrives(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(
        parse("--model /m --budget 8GB --context 100 --threads 3 --chunk 5 --isa scalar "
              "--io buffered --ring 64MiB --experts 0 --thinking high --session night",
              FOR_BOTH, &r, &err),
        OPTIONS_RUN);
    const struct k3_options *e = &r.run.engine;
    assert_string_equal(e->model_dir, "/m");
    assert_int_equal(e->budget, 8000000000);
    assert_int_equal(e->context, 100);
    assert_int_equal(e->threads, 3);
    assert_int_equal(e->chunk, 5);
    assert_int_equal(e->isa, K3_ISA_SCALAR);
    assert_int_equal(e->io, K3_IO_BUFFERED);
    assert_int_equal(e->ring, 64 << 20);
    assert_int_equal(e->experts, 0);
    assert_int_equal(r.run.thinking, K3_THINK_HIGH);
    assert_string_equal(r.run.session_name, "night");
    assert_false(r.batch);
    request_free(&r);

    assert_int_equal(parse("--batch --ids=1,2 --max-tokens 9 --ignore-stop --teacher-force "
                           "--logits l --json - --trace t --dump-routing --expert-policy lru "
                           "--simulate-disk 300MB --depth 4",
                           FOR_BOTH, &r, &err),
                     OPTIONS_RUN);
    assert_true(r.batch && r.run.ignore_stop && r.todo.teacher_force && r.todo.dump_routing);
    assert_int_equal(r.todo.kind, PROMPT_IDS);
    assert_string_equal(r.todo.text, "1,2");
    assert_int_equal(r.run.max_tokens, 9);
    assert_string_equal(r.todo.logits_path, "l");
    assert_string_equal(r.todo.json_path, "-");
    assert_string_equal(r.run.engine.trace_path, "t");
    assert_int_equal(r.run.engine.policy, K3_POLICY_LRU);
    assert_int_equal(r.run.engine.simulate_rate, 300000000);
    assert_int_equal(r.run.engine.io_depth, 4);
    request_free(&r);
}

static void defaults(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(parse("--model /m", FOR_BOTH, &r, &err), OPTIONS_RUN);
    assert_int_equal(r.run.engine.budget, 0);
    assert_int_equal(r.run.engine.experts, UINT64_MAX);
    assert_int_equal(r.run.thinking, K3_THINK_MAX);
    assert_true(r.run.sampling.greedy);
    assert_int_equal(r.run.max_tokens, 0);
    assert_null(r.run.session_name);
    request_free(&r);
}

static void any_of_three_turns_sampling_on(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool greedy;
        float temperature, top_p;
        uint64_t seed;
    } rows[] = {
        {"--model m --temperature 0.5", false, 0.5f, 1, 0},
        {"--model m --top-p 0.9", false, 1, 0.9f, 0},
        {"--model m --seed 7", false, 1, 1, 7},
        {"--model m --temperature 0 --seed 7", true, 0, 1, 7},
        {"--model m --seed 7 --temperature 0", true, 0, 1, 7},
        {"--model m --seed 9223372036854775807", false, 1, 1, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request r;
        struct k3_error err;
        assert_int_equal(parse(rows[i].line, FOR_BOTH, &r, &err), OPTIONS_RUN);
        assert_int_equal(r.run.sampling.greedy, rows[i].greedy);
        assert_true(r.run.sampling.temperature == rows[i].temperature);
        assert_true(r.run.sampling.top_p == rows[i].top_p);
        assert_int_equal(r.run.sampling.seed, rows[i].seed);
        request_free(&r);
    }
}

static void sampling_and_states(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(parse("--model m", FOR_BOTH, &r, &err), OPTIONS_RUN);
    assert_true(r.run.sampling.greedy && r.run.sampling.top_k == 0 && r.run.sampling.min_p == 0 &&
                r.run.sampling.repetition_penalty == 0);
    assert_true(r.run.states_keep == 3 && r.run.states_disk == 8000000000 &&
                r.run.save_every == 1800 && r.run.ask_reread == 60);
    request_free(&r);
    assert_int_equal(parse("--model m --top-k 40 --min-p 0.05 --repetition-penalty 1.1 --states 5 "
                           "--state-disk 2GB --state-every 0.5 --ask-reread 2.5", FOR_BOTH, &r, &err),
                     OPTIONS_RUN);
    assert_true(!r.run.sampling.greedy && r.run.sampling.top_k == 40);
    assert_true(r.run.sampling.min_p == 0.05f && r.run.sampling.repetition_penalty == 1.1f);
    assert_true(r.run.states_keep == 5 && r.run.states_disk == 2000000000 &&
                r.run.save_every == 30 && r.run.ask_reread == 2.5);
    request_free(&r);
}

static void the_last_one_wins_and_two_dashes_end(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(parse("--model a --model b --context 5 --context auto --", FOR_BOTH, &r, &err),
                     OPTIONS_RUN);
    assert_string_equal(r.run.engine.model_dir, "b");
    assert_int_equal(r.run.engine.context, 0);
    request_free(&r);
    expect_refused("-- --model", FOR_BOTH, "'--model' is no option");
    expect_refused("--model m word", FOR_BOTH, "'word' is no option");
}

static void refusals_name_the_option(void **state)
{
    (void)state;
    static const struct {
        const char *line, *part;
    } rows[] = {
        {"--nonsense", "unknown option '--nonsense'"},
        {"--nonsense=3", "unknown option '--nonsense'"},
        {"-q", "unknown option '-q'"},
        {"--model", "'--model' needs a value"},
        {"--batch=1", "'--batch' takes no value"},
        {"--ids 1", "'--ids' is for --batch only"},
        {"--json x", "'--json' is for --batch only"},
        {"--budget 8G", "'--budget': '8G' is ambiguous"},
        {"--budget lots", "'--budget': 'lots' is not a size"},
        {"--budget 0", "too small"},
        {"--context 0", "1 to 16777216"},
        {"--context 5x", "'5x' is not a whole number"},
        {"--context -5", "'-5' is not a whole number"},
        {"--threads 1025", "out of range"},
        {"--chunk 99999999999999999999", "out of range"},
        {"--isa mmx", "auto, scalar, avx2, avx512 or neon"},
        {"--io mmap", "auto, uring, direct or buffered"},
        {"--thinking medium", "off, low, high or max"},
        {"--temperature hot", "not a number"},
        {"--temperature -1", "out of range"},
        {"--temperature inf", "not a number"},
        {"--top-p 0", "more than 0, at most 1"},
        {"--top-p 1.01", "more than 0, at most 1"},
        {"--seed -3", "not a whole number"},
        {"--min-p 1.5", "out of range"},
        {"--repetition-penalty 0", "out of range"},
        {"--state-every -1", "out of range"},
        {"--ask-reread -1", "seconds, 0 (never ask)"},
        {"--states many", "not a whole number"},
        {"--session a/x", "'/'"},
        {"--session .hidden", "dot"},
        {"--session x --temporary", "no file that --session could name"},
        {"--temporary --session x", "no file that --session could name"},
        {"--batch --ids 1 --prompt x", "--ids was given already"},
        {"--expert-policy fifo", "quota or lru"},
        {"--profile nowhere-to-be-found", "there is no profile 'nowhere-to-be-found'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_refused(rows[i].line, FOR_BOTH, rows[i].part);
    expect_refused("--max-tokens 3", FOR_VERIFY, "not for this command");
    expect_refused("--batch", FOR_DOCTOR, "for --batch only");
}

/* Some values can be left out, and stand behind a space or "=". */
static void values_that_can_be_left_out(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(parse("--sha256 --model d --write-sums out", FOR_VERIFY, &r, &err), OPTIONS_RUN);
    assert_true(r.verify.sha256 && r.verify.write_sums && r.verify.sums == NULL);
    assert_string_equal(r.verify.sums_out, "out");
    request_free(&r);
    assert_int_equal(parse("--model d --sha256=list", FOR_VERIFY, &r, &err), OPTIONS_RUN);
    assert_string_equal(r.verify.sums, "list");
    request_free(&r);
    expect_refused("--model d --sha256 list more", FOR_VERIFY, "'more' is no option");
}

static void fetch_takes_two_words(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(parse("o/n --connections 7 dir", FOR_FETCH, &r, &err), OPTIONS_RUN);
    assert_int_equal(r.n_words, 2);
    assert_string_equal(r.words[0], "o/n");
    assert_string_equal(r.words[1], "dir");
    assert_int_equal(r.fetch.connections, 7);
    assert_int_equal(r.fetch.retries, 8);
    request_free(&r);
    expect_refused("a b c", FOR_FETCH, "'c' is no option");
    expect_refused("word", FOR_BOTH, "'word' is no option");
    expect_refused("a b --connections 0", FOR_FETCH, "out of range");
    expect_refused("a b --retry-wait -1", FOR_FETCH, "out of range");
    expect_refused("a b --timeout 0", FOR_FETCH, "out of range");
}

static void help_and_version_come_first(void **state)
{
    (void)state;
    struct request r;
    struct k3_error err;
    assert_int_equal(parse("--budget nonsense --help", FOR_BOTH, &r, &err), OPTIONS_HELP);
    request_free(&r);
    assert_int_equal(parse("--version --budget nonsense", FOR_BOTH, &r, &err), OPTIONS_VERSION);
    request_free(&r);
}

/* The help is made from the table: every option is in it, and no line is wider than a screen. */
static void help_names_everything(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    help_print(f);
    options_print(f, FOR_DOCTOR | FOR_FETCH | FOR_VERIFY, FOR_BOTH); /* these commands tell their own */
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < n_settings; i++) {
        char word[64];
        if (settings[i].option == NULL)
            continue;
        snprintf(word, sizeof word, "  --%s ", settings[i].option);
        if (strstr(text, word) == NULL)
            fail_msg("--help does not name --%s", settings[i].option);
    }
    for (const struct command *c = commands; c->name != NULL; c++)
        assert_non_null(strstr(text, c->usage));
    for (const char *p = text; *p != '\0'; p += strcspn(p, "\n") + 1)
        assert_true(strcspn(p, "\n") <= 90);
    free(text);
}

/* ---- paths ------------------------------------------------------------------------------- */

static void xdg_rules(void **state)
{
    (void)state;
    struct k3_error err;
    setenv("HOME", "/home/x", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    char *path = path_data_dir(&err);
    assert_string_equal(path, "/data/k3chat");
    free(path);
    static const char *const useless[] = {"", "relative/path"};
    for (size_t i = 0; i < 2; i++) {
        setenv("XDG_DATA_HOME", useless[i], 1);
        path = path_data_dir(&err);
        assert_string_equal(path, "/home/x/.local/share/k3chat");
        free(path);
    }
    unsetenv("XDG_CONFIG_HOME");
    path = path_config_dir(&err);
    assert_string_equal(path, "/home/x/.config/k3chat");
    free(path);
    path = path_expand_home("~/kimi-k3", &err);
    assert_string_equal(path, "/home/x/kimi-k3");
    free(path);
    path = path_expand_home("~other/x", &err);
    assert_string_equal(path, "~other/x");
    free(path);
}

static void folders_are_made_with_parents(void **state)
{
    (void)state;
    struct k3_error err = {0};
    char dir[FIXTURE_PATH], deep[FIXTURE_PATH], file[FIXTURE_PATH];
    fixture_scratch(dir);
    fixture_join(deep, dir, "a/b/c");
    assert_int_equal(path_make_dirs(deep, &err), K3_OK);
    assert_int_equal(path_make_dirs(deep, &err), K3_OK);
    fixture_join(file, dir, "file");
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    fixture_join(deep, dir, "file/x");
    assert_int_equal(path_make_dirs(deep, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "file"));
    fixture_scratch_end(dir);
}

/* No test may see the profiles of the person who runs it. */
static int no_user_files(void **state)
{
    (void)state;
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    setenv("HOME", "/nonexistent/home", 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_read),
        cmocka_unit_test(sizes_refused),
        cmocka_unit_test(sizes_written),
        cmocka_unit_test(every_option_arrives),
        cmocka_unit_test(defaults),
        cmocka_unit_test(any_of_three_turns_sampling_on),
        cmocka_unit_test(sampling_and_states),
        cmocka_unit_test(the_last_one_wins_and_two_dashes_end),
        cmocka_unit_test(refusals_name_the_option),
        cmocka_unit_test(values_that_can_be_left_out),
        cmocka_unit_test(fetch_takes_two_words),
        cmocka_unit_test(help_and_version_come_first),
        cmocka_unit_test(help_names_everything),
        cmocka_unit_test(xdg_rules),
        cmocka_unit_test(folders_are_made_with_parents),
    };
    return cmocka_run_group_tests_name("options", tests, no_user_files, NULL);
}
