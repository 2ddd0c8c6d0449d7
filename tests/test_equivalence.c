/* test_equivalence.c - the gate of retained state: a long conversation with cancels, edits, second
 * answers and restarts in between, whatever was kept of it and where, has the tokens and the bits of
 * a fresh run over the complete history. */
#include <config.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../src/clock.h"
#include "../src/session_internal.h"
#include "../src/sessions.h"
#include "fixture.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH];

#define DEADLINE 600.0 /* seconds; reached only when something hangs */

/* What is kept between the turns. */
struct way {
    const char *name;
    uint32_t states;
    bool in_memory, restarts, greedy;
};

struct chat {
    struct run_config cfg;
    struct session *s;
    const struct way *way;
    uint32_t reused; /* turns that did not begin at position 0 */
};

static struct run_config make_config(const struct way *w)
{
    struct run_config cfg;
    run_config_init(&cfg);
    cfg.engine.model_dir = model;
    cfg.engine.budget = 2000000000;
    cfg.engine.context = 2048;
    cfg.engine.threads = 1;
    cfg.engine.io = K3_IO_BUFFERED;
    cfg.engine.no_checkpoints = !w->in_memory;
    cfg.thinking = K3_THINK_LOW;
    cfg.max_tokens = 9;
    cfg.ignore_stop = true; /* an answer of noise has the length that the test wants */
    cfg.session_name = w->name;
    cfg.states_keep = w->states;
    if (!w->greedy)
        cfg.sampling = (struct k3_sampling){.temperature = 0.9f, .top_p = 0.95f, .seed = 11,
                                            .repetition_penalty = 1.2f};
    return cfg;
}

/* ---- events ------------------------------------------------------------------------------ */

static struct session_event next(struct session *s)
{
    struct session_event ev;
    const double until = clock_now() + DEADLINE;
    while (!session_next_event(s, &ev)) {
        struct pollfd p = {.fd = session_fd(s), .events = POLLIN};
        poll(&p, 1, 1000);
        if (clock_now() > until)
            fail_msg("no event for %.0f s", DEADLINE);
    }
    if (ev.kind == EVENT_ERROR)
        fail_msg("unexpected error: %s", ev.text);
    return ev;
}

/* Drops events up to PHASE_IDLE; cancels after so many steps (0 = not at all). */
static void wait_idle(struct session *s, uint32_t cancel_after)
{
    for (uint32_t steps = 0;;) {
        struct session_event ev = next(s);
        session_event_free(&ev);
        if (ev.kind == EVENT_STEP && ++steps == cancel_after)
            session_cancel(s);
        if (ev.kind == EVENT_PHASE && ev.phase == PHASE_IDLE)
            return;
    }
}

static void start(struct chat *c)
{
    struct k3_error err = {0};
    c->s = session_open(&c->cfg, &err);
    if (c->s == NULL)
        fail_msg("session_open: %s", err.message);
    wait_idle(c->s, 0);
}

/* ---- against a fresh engine -------------------------------------------------------------- */

/* The engine thread sleeps while the session is idle. */
static void expect_fresh_logits(const struct chat *c)
{
    const struct timeline *line = &c->s->rt.line;
    const int32_t *pending;
    struct k3_error err;
    if (!line->has_logits || k3_pending(line->engine, &pending) > 0)
        return;
    struct k3_options opt = fixture_options(model);
    opt.context = 2048;
    opt.chunk = 7;
    k3_engine *fresh = fixture_engine(&opt);
    assert_int_equal(k3_feed(fresh, line->fed.v, line->fed.n, K3_WANT_LAST, NULL, NULL, &err),
                     K3_OK);
    assert_memory_equal(k3_logits(fresh), k3_logits(line->engine), line->vocab * sizeof(float));
    k3_close(fresh);
}

static void check_transcript(const struct way *w)
{
    struct run_config cfg = make_config(w);
    struct runtime rt;
    struct transcript_contents t;
    struct sessions_checked done;
    struct k3_error err = {0};
    const struct runtime_listener quiet = {.ud = NULL};
    const struct runtime_needs needs = {.tokenizer = true};
    const struct states_limits none = {.keep = 0};
    if (runtime_load(&rt, &cfg, &needs, &quiet, &err) != K3_OK ||
        sessions_load(w->name, &t, &err) != K3_OK)
        fail_msg("%s", err.message);
    char *path = transcript_file(w->name, &err);
    struct states *s = states_open(path, &none, NULL, NULL, &err);
    assert_non_null(s);
    if (sessions_check(&rt, &t.conversation, s, cfg.thinking, NULL, &done, &err) != K3_OK)
        fail_msg("%s: %s", w->name, err.message);
    assert_true(done.answers >= 8 && done.tokens > 50);
    assert_int_equal(done.foreign, 0);
    assert_true((done.from_state > 100) == (w->states > 0));

    for (size_t i = t.conversation.n; i-- > 0;) /* one wrong token is found */
        if (t.conversation.v[i].ids.n > 3) {
            t.conversation.v[i].ids.v[2] ^= 1;
            break;
        }
    assert_int_equal(sessions_check(&rt, &t.conversation, NULL, cfg.thinking, NULL, &done, &err),
                     K3_FAILED);
    assert_non_null(strstr(err.message, "token 3 of the answer"));
    states_close(s);
    free(path);
    conversation_free(&t.conversation);
    runtime_close(&rt);
}

/* ---- the script -------------------------------------------------------------------------- */

static void after(struct chat *c, uint32_t cancel_after)
{
    wait_idle(c->s, cancel_after);
    expect_fresh_logits(c);
    if (c->way->restarts) {
        session_close(c->s);
        start(c);
    }
}

static void say(struct chat *c, const char *text, uint32_t cancel_after)
{
    struct k3_error err;
    assert_int_equal(session_send(c->s, text, strlen(text), &err), K3_OK);
    after(c, cancel_after);
}

static void edit(struct chat *c, uint32_t index, const char *text, uint32_t cancel_after)
{
    struct k3_error err;
    assert_int_equal(session_edit(c->s, index, text, strlen(text), &err), K3_OK);
    after(c, cancel_after);
}

static void again(struct chat *c, uint32_t cancel_after)
{
    struct k3_error err;
    assert_int_equal(session_regenerate(c->s, &err), K3_OK);
    after(c, cancel_after);
}

static void go_on(struct chat *c, uint32_t cancel_after)
{
    struct k3_error err;
    assert_int_equal(session_continue(c->s, &err), K3_OK);
    after(c, cancel_after);
}

static void run_script(const struct way *w)
{
    struct chat c = {.cfg = make_config(w), .way = w};
    start(&c);
    say(&c, "tell me about the storm", 0);
    say(&c, "and then?", 3);
    say(&c, "go back to the beginning", 0);
    edit(&c, 2, "and what came after it?", 0);
    again(&c, 0);
    say(&c, "<|open|>nothing special<|sep|> \xc3\xa4\xc3\xb6 \xf0\x9f\x8c\xa9", 2);
    go_on(&c, 2);
    go_on(&c, 0);
    say(&c, "why?", 0);
    again(&c, 1);
    again(&c, 0);
    session_set_thinking(c.s, "off");
    say(&c, "short, please", 0);
    session_set_thinking(c.s, "low");
    say(&c, "once more with thoughts", 4);
    say(&c, "x", 0);
    edit(&c, 10, "y", 0);
    say(&c, "the end", 0);
    say(&c, "really the end", 0);
    go_on(&c, 0); /* as long again */
    session_close(c.s);
    check_transcript(w);
}

static void with_files_and_memory(void **state)
{
    (void)state;
    run_script(&(struct way){"both", 3, true, false, false});
}

static void with_files(void **state)
{
    (void)state;
    run_script(&(struct way){"files", 3, false, false, false});
}

static void with_memory(void **state)
{
    (void)state;
    run_script(&(struct way){"memory", 0, true, false, false});
}

static void with_nothing(void **state)
{
    (void)state;
    run_script(&(struct way){"nothing", 0, false, false, true});
}

static void with_files_over_restarts(void **state)
{
    (void)state;
    run_script(&(struct way){"restarts", 3, false, true, false});
}

static void with_nothing_over_restarts(void **state)
{
    (void)state;
    run_script(&(struct way){"restarts-nothing", 0, false, true, true});
}

/* ---- what it costs ----------------------------------------------------------------------- */

/* Tokens that the next answer's prompt reads. */
static uint32_t prompt_tokens(struct session *s)
{
    uint32_t tokens = 0;
    for (;;) {
        struct session_event ev = next(s);
        session_event_free(&ev);
        if (ev.kind == EVENT_PREFILL)
            tokens = ev.step.tokens;
        if (ev.kind == EVENT_PHASE && ev.phase == PHASE_IDLE)
            return tokens;
    }
}

/* A resumed session reads what is new and no more; without its states it says what it will cost. */
static void a_resume_reads_only_what_is_new(void **state)
{
    (void)state;
    struct chat c = {.way = &(struct way){"resume", 3, false, false, true}};
    struct k3_error err;
    struct session_status st;
    c.cfg = make_config(c.way);
    start(&c);
    say(&c, "tell me about the storm", 0);
    say(&c, "and then?", 0);
    session_close(c.s);
    start(&c);
    session_get_status(c.s, &st);
    assert_int_equal(st.reread_tokens, 0);
    session_regenerate(c.s, &err);
    assert_int_equal(prompt_tokens(c.s), 0); /* the end of the prompt was saved, logits included */
    session_send(c.s, "x", 1, &err);
    const uint32_t live = prompt_tokens(c.s);
    assert_true(live < 100);
    session_close(c.s);

    char *path = transcript_file("resume", &err);
    assert_int_equal(states_remove(path, &err), K3_OK);
    free(path);
    c.s = session_open(&c.cfg, &err);
    assert_non_null(c.s);
    bool told = false;
    for (;;) {
        struct session_event ev = next(c.s);
        told = told || (ev.kind == EVENT_NOTICE && strstr(ev.text, "tokens to read again before"));
        session_event_free(&ev);
        if (ev.kind == EVENT_PHASE && ev.phase == PHASE_IDLE)
            break;
    }
    assert_true(told);
    session_get_status(c.s, &st);
    assert_true(st.reread_tokens > 100 && st.reread_seconds > 0);
    session_send(c.s, "x", 1, &err);
    assert_true(prompt_tokens(c.s) >= st.reread_tokens);
    session_get_status(c.s, &st);
    assert_int_equal(st.reread_tokens, 0);
    session_close(c.s);
}

/* A state that is damaged or of another model is named and does no harm. */
static void bad_states_are_told(void **state)
{
    (void)state;
    struct chat c = {.way = &(struct way){"damaged", 1, false, false, true}};
    struct k3_error err;
    c.cfg = make_config(c.way);
    start(&c);
    say(&c, "tell me about the storm", 0);
    const struct k3_ids *fed = &c.s->rt.line.fed;
    char name[FIXTURE_PATH], dir[FIXTURE_PATH];
    struct states_usage u;
    char *path = transcript_file("damaged", &err);
    assert_int_equal(states_measure(path, &u, &err), K3_OK);
    assert_int_equal(u.files, 1); /* retention */
    assert_int_equal(u.longest, fed->n);
    session_close(c.s);
    fixture_join(dir, scratch, "k3chat/sessions");
    snprintf(name, sizeof name, "damaged.state-%06u-", (unsigned)u.longest);
    free(path);
    fixture_flip(dir, name, 100);
    c.s = session_open(&c.cfg, &err);
    assert_non_null(c.s);
    bool told = false;
    for (;;) {
        struct session_event ev = next(c.s);
        told = told || (ev.kind == EVENT_NOTICE && strstr(ev.text, "is not used") &&
                        strstr(ev.text, "damaged"));
        session_event_free(&ev);
        if (ev.kind == EVENT_PHASE && ev.phase == PHASE_IDLE)
            break;
    }
    assert_true(told);
    say(&c, "and then?", 0);
    session_close(c.s);
}

static int setup(void **state)
{
    (void)state;
    fixture_scratch(scratch);
    setenv("XDG_DATA_HOME", scratch, 1);
    fixture_join(model, scratch, "model");
    const struct k3_synth tiny = fixture_preset("tiny");
    fixture_write(&tiny, model);
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
        cmocka_unit_test(with_files_and_memory),
        cmocka_unit_test(with_files),
        cmocka_unit_test(with_memory),
        cmocka_unit_test(with_nothing),
        cmocka_unit_test(with_files_over_restarts),
        cmocka_unit_test(with_nothing_over_restarts),
        cmocka_unit_test(a_resume_reads_only_what_is_new),
        cmocka_unit_test(bad_states_are_told),
    };
    return cmocka_run_group_tests_name("equivalence", tests, setup, teardown);
}
