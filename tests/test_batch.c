/* test_batch.c - the program from outside: --batch through a pipe, its JSON, its exit statuses. */
#include <config.h>

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../src/transcript.h"
#include "fixture.h"
#include "program.h"

static char scratch[FIXTURE_PATH], out_dir[FIXTURE_PATH];
static struct fixture model;   /* "tiny", with the reference's results */
static char *prompt_ids, *full_ids, *greedy_ids; /* comma-separated */

/* What every run of these tests is given. */
#define RUN "--batch", "--model", model.dir, "--threads", "1", "--io", "buffered", "--budget", "2GB"

static char *join_ids(const int32_t *ids, size_t n)
{
    char *text = malloc(16 * n + 1);
    assert_non_null(text);
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)sprintf(text + at, "%s%d", i == 0 ? "" : ",", (int)ids[i]);
    return text;
}

static char *in_out_dir(char path[FIXTURE_PATH], const char *name)
{
    fixture_join(path, out_dir, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void expect_status(const struct child *c, int status)
{
    if (c->status != status)
        fail_msg("exit status %d instead of %d; stdout '%s', stderr '%s'", c->status, status,
                 c->out_text, c->err_text);
}

static void expect_said(const struct child *c, const char *part)
{
    if (strstr(c->err_text, part) == NULL)
        fail_msg("stderr lacks '%s': '%s'", part, c->err_text);
}

/* Files in the output folder; leftovers of temporary names count. */
static size_t count_files(void)
{
    size_t n = 0;
    DIR *d = opendir(out_dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void empty_out_dir(void)
{
    DIR *d = opendir(out_dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[FIXTURE_PATH];
        if (e->d_name[0] != '.')
            assert_int_equal(unlink(in_out_dir(path, e->d_name)), 0);
    }
    closedir(d);
}

static json_t *parse_json(const char *text)
{
    json_error_t why;
    json_t *j = json_loads(text, 0, &why);
    if (j == NULL)
        fail_msg("no JSON: %s in '%s'", why.text, text);
    return j;
}

static void expect_ids(const json_t *j, const char *key, const int32_t *ids, size_t n)
{
    const json_t *list = json_object_get(j, key);
    assert_true(json_is_array(list));
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(json_integer_value(json_array_get(list, i)), ids[i]);
}

static const char *text_of(const json_t *j, const char *key)
{
    const json_t *s = json_object_get(j, key);
    assert_true(json_is_string(s));
    return json_string_value(s);
}

/* ---- the contract of the JSON ------------------------------------------------------------ */

/* Exactly these members, in these types: i = integer, r = number, s = string, o = object,
 * a = array. */
static void expect_members(const json_t *object, const char *const *members)
{
    size_t n = 0;
    assert_true(json_is_object(object));
    for (; members[n] != NULL; n++) {
        const json_t *v = json_object_get(object, members[n] + 2);
        const char t = members[n][0];
        const bool right = t == 'i'   ? json_is_integer(v)
                           : t == 'r' ? json_is_number(v)
                           : t == 's' ? json_is_string(v)
                           : t == 'o' ? json_is_object(v)
                                      : json_is_array(v);
        if (!right)
            fail_msg("member '%s' is missing or of the wrong type", members[n] + 2);
    }
    assert_int_equal(json_object_size(object), n);
}

static void expect_contract(const json_t *j)
{
    static const char *const top[] = {"a prompt_ids",
                                      "a generated_ids",
                                      "s text",
                                      "s reasoning",
                                      "s content",
                                      "s finish",
                                      "a teacher_forced_argmax",
                                      "a steps",
                                      "o prefill",
                                      "o totals",
                                      "o memory",
                                      "o run",
                                      NULL};
    static const char *const step[] = {"i token",         "r seconds",       "r wait_trunk_s",
                                       "r wait_experts_s", "i bytes_trunk",  "i bytes_experts",
                                       "i requests",      "i resident",      "i prefetched",
                                       "i waited",        NULL};
    static const char *const prefill[] = {"i tokens",        "r seconds",       "i bytes_trunk",
                                          "i bytes_experts", "i reused_tokens", NULL};
    static const char *const totals[] = {"r seconds",
                                         "r disk_wait_fraction",
                                         "r true_resident_hit_rate",
                                         "r raw_hit_rate",
                                         "i bytes_read",
                                         "r device_busy_fraction",
                                         "r trunk_bytes_per_token",
                                         "i plan_bytes_per_token",
                                         NULL};
    static const char *const memory[] = {"i budget", "o plan", "i peak_rss", NULL};
    static const char *const run[] = {"s isa",   "i threads", "s io", "i chunk",
                                      "s model", "s version", "r first_read_s", NULL};
    expect_members(j, top);
    expect_members(json_object_get(j, "prefill"), prefill);
    expect_members(json_object_get(j, "totals"), totals);
    expect_members(json_object_get(j, "memory"), memory);
    expect_members(json_object_get(j, "run"), run);
    const json_t *steps = json_object_get(j, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++)
        expect_members(json_array_get(steps, i), step);
}

/* ---- results ----------------------------------------------------------------------------- */

static void greedy_ids_on_stdout(void **state)
{
    (void)state;
    char max[16], json[FIXTURE_PATH], logits[FIXTURE_PATH];
    const size_t n = model.n - model.n_prompt;
    snprintf(max, sizeof max, "%zu", n);
    struct child c =
        program_start(NULL, RUN, "--ids", prompt_ids, "--max-tokens", max, "--ignore-stop",
                      "--json", in_out_dir(json, "r.json"), "--logits",
                      in_out_dir(logits, "l.bin"), NULL);
    program_wait(&c);
    expect_status(&c, 0);
    char line[4096];
    snprintf(line, sizeof line, "%s\n", greedy_ids);
    assert_string_equal(c.out_text, line);
    expect_said(&c, "memory plan: ");
    expect_said(&c, "true resident hit rate");
    assert_null(strchr(c.err_text, '\r')); /* no progress where nobody sees it */
    program_free(&c);

    json_t *j = fixture_json(out_dir, "r.json");
    expect_contract(j);
    expect_ids(j, "prompt_ids", model.ids, model.n_prompt);
    expect_ids(j, "generated_ids", model.ids + model.n_prompt, n);
    expect_ids(j, "teacher_forced_argmax", NULL, 0);
    assert_string_equal(text_of(j, "finish"), "length");
    assert_int_equal(json_array_size(json_object_get(j, "steps")), n);
    json_decref(j);

    /* one row for each generated id, of which it is the largest */
    size_t bytes = 0;
    char *rows = fixture_read(out_dir, "l.bin", &bytes);
    assert_int_equal(bytes, n * model.vocab * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        const float *row = (const float *)(const void *)rows + i * model.vocab;
        for (uint32_t k = 0; k < model.vocab; k++)
            assert_true(row[k] <= row[model.ids[model.n_prompt + i]]);
    }
    free(rows);
    assert_int_equal(count_files(), 2);
    empty_out_dir();
}

static void teacher_forcing_with_routing(void **state)
{
    (void)state;
    char file[FIXTURE_PATH], logits[FIXTURE_PATH], trace[FIXTURE_PATH];
    write_text(in_out_dir(file, "ids.txt"), full_ids);
    struct child c = program_start(NULL, RUN, "--ids-file", file, "--teacher-force", "--json", "-",
                                   "--dump-routing", "--logits", in_out_dir(logits, "l"), "--trace",
                                   in_out_dir(trace, "t"), NULL);
    program_wait(&c);
    expect_status(&c, 0);
    json_t *j = parse_json(c.out_text);
    program_free(&c);
    const json_t *want = json_object_get(model.expected, "argmax");
    const json_t *got = json_object_get(j, "teacher_forced_argmax");
    assert_int_equal(json_array_size(got), model.n);
    assert_true(json_equal(got, want));
    expect_ids(j, "generated_ids", NULL, 0);

    const json_t *routing = json_object_get(j, "routing");
    const json_t *experts = json_object_get(model.expected, "experts");
    const size_t layers = json_array_size(routing);
    size_t requests = 0;
    assert_int_equal(layers, json_array_size(experts));
    for (size_t i = 0; i < layers; i++) {
        const json_t *layer = json_array_get(routing, i);
        assert_int_equal(json_is_null(layer), json_is_null(json_array_get(experts, i)));
        if (json_is_null(layer))
            continue;
        assert_int_equal(json_array_size(layer), model.n);
        for (size_t t = 0; t < model.n; t++)
            requests += json_array_size(json_array_get(layer, t));
    }
    json_object_del(j, "routing");
    expect_contract(j);
    json_decref(j);
    struct stat st;
    assert_int_equal(stat(trace, &st), 0);
    assert_int_equal(st.st_size, requests * 8);
    assert_int_equal(stat(logits, &st), 0);
    assert_int_equal(st.st_size, model.n * model.vocab * sizeof(float));
    assert_int_equal(count_files(), 3);
    empty_out_dir();
}

#define SYSTEM_MESSAGE "{\"role\":\"system\",\"content\":\"Be brief.\"}"
#define USER_MESSAGE "{\"role\":\"user\",\"content\":\"Hi\"}"

static void text_and_chat(void **state)
{
    (void)state;
    char json[FIXTURE_PATH], file[FIXTURE_PATH];
    struct child c = program_start(NULL, RUN, "--prompt", "Once <|open|> upon", "--max-tokens",
                                   "20", "--ignore-stop", "--json", in_out_dir(json, "r.json"),
                                   NULL);
    program_wait(&c);
    expect_status(&c, 0);
    json_t *j = fixture_json(out_dir, "r.json");
    const char *text = text_of(j, "text");
    const size_t n = strlen(text);
    assert_true(n > 0);
    assert_memory_equal(c.out_text, text, n); /* and nothing else but the line break */
    assert_true(c.out_len == n + 1 - (text[n - 1] == '\n') && c.out_text[c.out_len - 1] == '\n');
    /* plain text can never become a control token */
    const json_t *ids = json_object_get(j, "prompt_ids");
    for (size_t i = 0; i < json_array_size(ids); i++)
        assert_true(json_integer_value(json_array_get(ids, i)) < (json_int_t)model.vocab - 256);
    json_decref(j);
    program_free(&c);

    static const char *const forms[] = {
        SYSTEM_MESSAGE "\n\n" USER_MESSAGE "\n",
        " [" SYSTEM_MESSAGE ",\n " USER_MESSAGE "]",
    };
    char *first = NULL;
    for (size_t i = 0; i < 2; i++) {
        write_text(in_out_dir(file, "chat"), forms[i]);
        c = program_start(NULL, RUN, "--chat", file, "--max-tokens", "20", "--ignore-stop",
                          "--thinking", "off", "--json", "-", NULL);
        program_wait(&c);
        expect_status(&c, 0);
        j = parse_json(c.out_text);
        expect_contract(j);
        assert_string_equal(text_of(j, "text"), text_of(j, "content"));
        assert_string_equal(text_of(j, "reasoning"), "");
        char *made = json_dumps(json_object_get(j, "generated_ids"), 0);
        if (first != NULL)
            assert_string_equal(made, first);
        free(first);
        first = made;
        json_decref(j);
        program_free(&c);
    }
    free(first);
    empty_out_dir();
}

/* The same seed draws the same; without any of the three options nothing is drawn. */
static void sampling_repeats(void **state)
{
    (void)state;
    char *texts[3] = {0};
    static const char *const seeds[] = {"1", "1", "2"};
    for (size_t i = 0; i < 3; i++) {
        struct child c = program_start(NULL, RUN, "--ids", prompt_ids, "--max-tokens", "24",
                                       "--ignore-stop", "--temperature", "3", "--seed", seeds[i],
                                       NULL);
        program_wait(&c);
        expect_status(&c, 0);
        texts[i] = strdup(c.out_text);
        assert_non_null(texts[i]);
        program_free(&c);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_not_equal(texts[0], texts[2]);
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
}

static void the_demo_model(void **state)
{
    (void)state;
    struct child c = program_start(NULL, "--batch", "--ids", "1,2,3", "--max-tokens", "2",
                                   "--threads", "1", "--io", "buffered", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    expect_said(&c, "the built-in demo model");
    program_free(&c);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void usage_errors(void **state)
{
    (void)state;
    char json[FIXTURE_PATH], bad[FIXTURE_PATH], latin[FIXTURE_PATH];
    write_text(in_out_dir(bad, "bad.jsonl"), "{\"role\":\"user\",\"content\":\"a\"}\n{oops\n");
    write_text(in_out_dir(latin, "role.jsonl"), "{\"role\":\"wizard\",\"content\":\"a\"}\n");
    in_out_dir(json, "never.json");
    const struct {
        const char *a, *b, *c, *d, *part;
    } rows[] = {
        {"--max-tokens", "3", NULL, NULL, "--batch needs a prompt"},
        {"--ids", "", NULL, NULL, "there is no token id"},
        {"--ids", "1,x", NULL, NULL, "'x' (number 2) is no token id"},
        {"--ids", "-1", NULL, NULL, "'-1' (number 1) is no token id"},
        {"--ids", "1,99999999999", NULL, NULL, "is no token id"},
        {"--ids", "1,640", NULL, NULL, "token id 640 (number 2 of the prompt) is out of range"},
        {"--ids", "1,2,3", "--context", "2", "has 3 tokens and the context has room for 2"},
        {"--ids", "1", "--prompt", "x", "--ids was given already"},
        {"--ids-file", "/nonexistent/ids", NULL, NULL, "--ids-file: /nonexistent/ids: No"},
        {"--prompt", "", NULL, NULL, "the prompt is empty"},
        {"--chat", bad, NULL, NULL, "bad.jsonl:2:"},
        {"--chat", latin, NULL, NULL, "role"},
        {"--ids", "1", "--dump-routing", NULL, "needs --json"},
        {"--ids", "1", "--session", "x", "--session in a batch run needs --chat"},
        {"--ids", "1", "--isa", "mmx", "'mmx' is not known"},
        {"--ids", "1", "--nonsense", NULL, "unknown option '--nonsense'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        /* a result is asked for in all rows but the one that wants it missing */
        const bool with_json = strstr(rows[i].part, "--json") == NULL;
        struct child c = program_start(NULL, RUN, with_json ? "--json" : "--logits", json,
                                       rows[i].a, rows[i].b, rows[i].c, rows[i].d, NULL);
        program_wait(&c);
        expect_said(&c, rows[i].part);
        expect_status(&c, 2);
        assert_int_equal(c.out_len, 0);
        program_free(&c);
    }
    assert_int_equal(count_files(), 2); /* the inputs; no result, no temporary file */
    empty_out_dir();
}

static void failures(void **state)
{
    (void)state;
    char nowhere[FIXTURE_PATH];
    in_out_dir(nowhere, "no/such/folder/r.json");
    const struct {
        const char *a, *b, *c, *d, *part;
    } rows[] = {
        {"--model", "/nonexistent/model", NULL, NULL, "/nonexistent/model"},
        {"--budget", "1MB", NULL, NULL, "the budget of 0.001 GB is too small"},
        {"--json", nowhere, NULL, NULL, "no/such/folder/r.json"},
        {"--logits", nowhere, NULL, NULL, "no/such/folder/r.json"},
        {"--trace", nowhere, NULL, NULL, "no/such/folder/r.json"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct child c = program_start(NULL, RUN, "--ids", "1,2", rows[i].a, rows[i].b, NULL);
        program_wait(&c);
        expect_said(&c, rows[i].part);
        expect_status(&c, 1);
        assert_int_equal(c.out_len, 0);
        program_free(&c);
    }
    assert_int_equal(count_files(), 0);
}

static void a_full_device_is_an_error(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    struct child c = program_start("/dev/full", RUN, "--ids", "1,2", "--max-tokens", "3", NULL);
    program_wait(&c);
    expect_said(&c, "stdout cannot be written");
    expect_status(&c, 1);
    program_free(&c);
    c = program_start(NULL, RUN, "--ids", "1,2", "--max-tokens", "3", "--json", "/dev/full", NULL);
    program_wait(&c);
    expect_said(&c, "No space left");
    expect_status(&c, 1);
    program_free(&c);
}

static void a_damaged_checkpoint(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], shard[FIXTURE_PATH], json[FIXTURE_PATH];
    fixture_join(dir, scratch, "damaged");
    const struct k3_synth tiny = fixture_preset("tiny");
    fixture_write(&tiny, dir);
    const struct fixture_tensor t =
        fixture_find(dir, "language_model.model.layers.3.mlp_res_norm.weight");
    fixture_join(shard, dir, t.shard);
    assert_int_equal(truncate(shard, (off_t)t.begin), 0);
    in_out_dir(json, "r.json");
    struct child c = program_start(NULL, "--batch", "--model", dir, "--ids", "1", "--json", json,
                                   NULL);
    program_wait(&c);
    expect_status(&c, 1);
    expect_said(&c, t.shard);
    assert_int_equal(count_files(), 0);
    program_free(&c);
    c = program_start(NULL, "verify", "--model", dir, NULL);
    program_wait(&c);
    expect_status(&c, 1);
    expect_said(&c, t.shard);
    program_free(&c);
}

/* ---- interrupted ------------------------------------------------------------------------- */

/* A run that has shown its first text and would go on for long. */
static struct child start_long_run(const char *json)
{
    struct child c = program_start(NULL, RUN, "--context", "60000", "--prompt", "Once upon a time",
                                   "--max-tokens", "50000", "--ignore-stop", "--json", json, NULL);
    program_wait_bytes(&c, 1);
    return c;
}

static void an_interrupt_keeps_what_there_is(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < 3; i++) {
        char json[FIXTURE_PATH];
        struct child c = start_long_run(in_out_dir(json, "r.json"));
        assert_int_equal(kill(c.pid, signals[i]), 0);
        program_wait(&c);
        expect_status(&c, 130);
        json_t *j = fixture_json(out_dir, "r.json");
        expect_contract(j);
        assert_string_equal(text_of(j, "finish"), "cancelled");
        const size_t n = json_array_size(json_object_get(j, "generated_ids"));
        assert_true(n > 0 && n < 50000);
        assert_int_equal(json_array_size(json_object_get(j, "steps")), n);
        const char *text = text_of(j, "text");
        assert_memory_equal(c.out_text, text, strlen(text));
        json_decref(j);
        program_free(&c);
        assert_int_equal(count_files(), 1);
        empty_out_dir();
    }
}

/* ps, top and killall know the program by its name. */
static void the_process_has_a_name(void **state)
{
    (void)state;
    char json[FIXTURE_PATH], path[64], name[32] = "";
    struct child c = start_long_run(in_out_dir(json, "r.json"));
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)c.pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(name, sizeof name, f));
    fclose(f);
    assert_int_equal(kill(c.pid, SIGTERM), 0);
    program_wait(&c);
    expect_status(&c, 130);
    program_free(&c);
    empty_out_dir();
    assert_string_equal(name, "k3chat\n");
}

/* Killed without a chance to clean up: what had been recorded is there, and it goes on. */
static void killed_and_continued(void **state)
{
    (void)state;
    char file[FIXTURE_PATH], sessions[FIXTURE_PATH], path[FIXTURE_PATH];
    fixture_join(sessions, scratch, "data/k3chat/sessions");
    write_text(in_out_dir(file, "chat"), "{\"role\":\"user\",\"content\":\"go\"}\n");
    struct child c = program_start(NULL, RUN, "--context", "60000", "--chat", file, "--max-tokens",
                                   "50000", "--ignore-stop", "--thinking", "off", "--session",
                                   "killed", NULL);
    fixture_join(path, sessions, "killed.jsonl");
    program_wait_file(&c, path, "\"type\":\"partial\"", 3);
    assert_int_equal(kill(c.pid, SIGKILL), 0);
    program_wait(&c);
    expect_status(&c, 128 + SIGKILL);

    struct transcript_contents t;
    struct k3_error err = {0};
    size_t n = 0, len = 0;
    char *text = fixture_read(sessions, "killed.jsonl", &n);
    if (transcript_parse(text, n, "killed", &t, &err) != K3_OK)
        fail_msg("%s", err.message);
    free(text);
    assert_int_equal(t.conversation.n, 2);
    assert_true(t.conversation.v[1].unfinished && t.conversation.v[1].ids.n >= 24);
    const char *had = message_text(&t.conversation.v[1], "content", &len);
    assert_true(len <= c.out_len); /* a beginning of what was shown */
    assert_memory_equal(had, c.out_text, len);
    conversation_free(&t.conversation);
    program_free(&c);

    c = program_start(NULL, RUN, "--context", "60000", "--chat", file, "--max-tokens", "3",
                      "--ignore-stop", "--thinking", "off", "--session", "killed", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    program_free(&c);
    text = fixture_read(sessions, "killed.jsonl", &n);
    assert_int_equal(transcript_parse(text, n, "killed", &t, &err), K3_OK);
    free(text);
    assert_false(t.torn);
    assert_int_equal(t.conversation.n, 4);
    const struct message *last = &t.conversation.v[t.conversation.n - 1];
    assert_int_equal(last->ids.n, 3);
    assert_int_equal(last->finish, FINISH_LENGTH);
    conversation_free(&t.conversation);
    empty_out_dir();
}

/* ---- the rest of the command line -------------------------------------------------------- */

static void help_version_commands(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int status;
        const char *out, *err;
    } rows[] = {
        {"--help", NULL, 0, "--teacher-force", NULL},
        {"--version", NULL, 0, "k3chat ", NULL},
        {"--nonsense", NULL, 2, NULL, "unknown option '--nonsense'"},
        {"frobnicate", NULL, 2, NULL, "unknown command 'frobnicate'"},
        {"doctor", "--help", 0, "Usage: k3chat doctor", NULL},
        {"doctor", NULL, 0, "next: k3chat", NULL},
        {"verify", NULL, 2, NULL, "verify needs --model DIR"},
        {"verify", "--batch", 2, NULL, "'--batch' is for --batch only"},
        {"trace", NULL, 2, NULL, ""},
        {"--budget", "5GB", 2, NULL, "--batch"}, /* the chat without a terminal */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct child c = program_start(NULL, rows[i].a, rows[i].b, NULL);
        program_wait(&c);
        expect_status(&c, rows[i].status);
        if (rows[i].out != NULL)
            assert_non_null(strstr(c.out_text, rows[i].out));
        else
            assert_int_equal(c.out_len, 0);
        if (rows[i].err != NULL)
            expect_said(&c, rows[i].err);
        program_free(&c);
    }
}

static void doctor_and_verify_of_a_model(void **state)
{
    (void)state;
    char dir[FIXTURE_PATH], file[FIXTURE_PATH];
    struct child c = program_start(NULL, "verify", "--model", model.dir, NULL);
    program_wait(&c);
    expect_status(&c, 0);
    assert_non_null(strstr(c.out_text, "nothing is missing"));
    program_free(&c);
    /* the config alone is enough for the plan */
    size_t n = 0;
    char *config = fixture_read(model.dir, "config.json", &n);
    fixture_join(dir, scratch, "config-only");
    assert_int_equal(mkdir(dir, 0700), 0);
    fixture_join(file, dir, "config.json");
    write_text(file, config);
    free(config);
    c = program_start(NULL, "doctor", "--model", dir, "--budget", "1GB", NULL);
    program_wait(&c);
    expect_status(&c, 0);
    assert_non_null(strstr(c.out_text, "memory plan: "));
    assert_non_null(strstr(c.out_text, "least budget for this model"));
    program_free(&c);
}

static int setup(void **state)
{
    (void)state;
    char path[FIXTURE_PATH];
    fixture_scratch(scratch);
    fixture_join(path, scratch, "data");
    setenv("XDG_DATA_HOME", path, 1);
    fixture_join(path, scratch, "cache");
    setenv("XDG_CACHE_HOME", path, 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent/config", 1);
    unsetenv("K3CHAT_CONF");
    fixture_join(out_dir, scratch, "out");
    assert_int_equal(mkdir(out_dir, 0700), 0);
    assert_true(fixture_open(&model, "tiny"));
    prompt_ids = join_ids(model.ids, model.n_prompt);
    full_ids = join_ids(model.ids, model.n);
    greedy_ids = join_ids(model.ids + model.n_prompt, model.n - model.n_prompt);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(prompt_ids);
    free(full_ids);
    free(greedy_ids);
    fixture_close(&model);
    fixture_scratch_end(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_ids_on_stdout),
        cmocka_unit_test(teacher_forcing_with_routing),
        cmocka_unit_test(text_and_chat),
        cmocka_unit_test(sampling_repeats),
        cmocka_unit_test(the_demo_model),
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(failures),
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(a_damaged_checkpoint),
        cmocka_unit_test(an_interrupt_keeps_what_there_is),
        cmocka_unit_test(the_process_has_a_name),
        cmocka_unit_test(killed_and_continued),
        cmocka_unit_test(help_version_commands),
        cmocka_unit_test(doctor_and_verify_of_a_model),
    };
    return cmocka_run_group_tests_name("batch", tests, setup, teardown);
}
