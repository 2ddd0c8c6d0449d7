/* test_reread.c - asking before a long conversation is read again: sessions without their saved states,
 * over the real engine. */
#include <config.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../src/clock.h"
#include "../src/session.h"
#include "../src/sessions.h"
#include "fixture.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH];

#define DEADLINE 600.0 /* seconds; reached only when something hangs */

static struct run_config make_config(const char *name, double ask)
{
    struct run_config cfg;
    run_config_init(&cfg);
    assert_true(cfg.ask_reread == 60);
    cfg.engine.model_dir = model;
    cfg.engine.budget = 2000000000;
    cfg.engine.context = 2048;
    cfg.engine.threads = 1;
    cfg.engine.io = K3_IO_BUFFERED;
    cfg.engine.no_checkpoints = true;
    cfg.thinking = K3_THINK_LOW;
    cfg.max_tokens = 9;
    cfg.ignore_stop = true;
    cfg.session_name = name;
    cfg.states_keep = 0;
    cfg.ask_reread = ask;
    return cfg;
}

/* What came up to a phase. */
struct heard {
    unsigned asked, dropped, messages, answers;
    char notices[1024], withdrawn[64];
};

static void note(struct heard *h, const struct session_event *ev)
{
    h->asked += ev->kind == EVENT_PHASE && ev->phase == PHASE_ASKING;
    h->dropped += ev->kind == EVENT_DROPPED;
    h->messages += ev->kind == EVENT_MESSAGE;
    h->answers += ev->kind == EVENT_ANSWER_END;
    if (ev->kind == EVENT_WITHDRAWN)
        snprintf(h->withdrawn, sizeof h->withdrawn, "%s", ev->text);
    if (ev->kind == EVENT_NOTICE) {
        const size_t at = strlen(h->notices);
        snprintf(h->notices + at, sizeof h->notices - at, "%s\n", ev->text);
    }
    if (ev->kind == EVENT_ERROR)
        fail_msg("unexpected error: %s", ev->text);
}

static void next_event(struct session *s, struct session_event *ev)
{
    const double until = clock_now() + DEADLINE;
    while (!session_next_event(s, ev)) {
        struct pollfd p = {.fd = session_fd(s), .events = POLLIN};
        poll(&p, 1, 1000);
        if (clock_now() > until)
            fail_msg("no event for %.0f s", DEADLINE);
    }
}

static void wait_notice(struct session *s, const char *text)
{
    for (bool found = false; !found;) {
        struct session_event ev;
        next_event(s, &ev);
        found = ev.kind == EVENT_NOTICE && strstr(ev.text, text) != NULL;
        session_event_free(&ev);
    }
}

static struct heard wait_phase(struct session *s, enum session_phase phase)
{
    struct heard h = {0};
    for (;;) {
        struct session_event ev;
        next_event(s, &ev);
        note(&h, &ev);
        session_event_free(&ev);
        if (ev.kind == EVENT_PHASE && ev.phase == phase)
            return h;
    }
}

static struct session *open_session(const struct run_config *cfg, struct heard *h)
{
    struct k3_error err = {0};
    struct session *s = session_open(cfg, &err);
    if (s == NULL)
        fail_msg("session_open: %s", err.message);
    *h = wait_phase(s, PHASE_IDLE);
    return s;
}

static void send_text(struct session *s, const char *text)
{
    struct k3_error err = {0};
    assert_int_equal(session_send(s, text, strlen(text), &err), K3_OK);
}

static struct transcript_contents contents_of(const char *name)
{
    struct transcript_contents in;
    struct k3_error err = {0};
    if (sessions_load(name, &in, &err) != K3_OK)
        fail_msg("%s", err.message);
    return in;
}

static void expect_messages(const char *name, size_t n)
{
    struct transcript_contents in = contents_of(name);
    assert_int_equal(in.conversation.n, n);
    conversation_free(&in.conversation);
}

/* Two questions and their answers. */
static void make_conversation(const char *name, const struct run_config *cfg)
{
    struct run_config quiet = *cfg;
    struct heard h;
    struct session *s = open_session(cfg, &h);
    send_text(s, "tell me about the storm");
    h = wait_phase(s, PHASE_IDLE);
    assert_int_equal(h.asked, 0); /* what is new is not read again */
    session_close(s);
    quiet.ask_reread = 0;
    s = open_session(&quiet, &h);
    send_text(s, "and then?");
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    expect_messages(name, 4);
}

static void a_message_is_not_begun(void **state)
{
    (void)state;
    struct run_config cfg = make_config("asked", 1e-9);
    struct session_status st;
    struct heard h;
    make_conversation("asked", &cfg);
    struct session *s = open_session(&cfg, &h);
    /* How long is said from a twentieth of a second on: a quick machine needs less. */
    assert_non_null(strstr(h.notices, "tokens to read again before the next answer"));
    session_get_status(s, &st);
    assert_true(st.position >= st.reread_tokens); /* it is in the context, read or not */
    send_text(s, "x");
    wait_phase(s, PHASE_ASKING);
    session_get_status(s, &st);
    assert_true(st.reread_tokens > 100 && st.reread_seconds > 0 && !st.reread_planned);
    assert_int_equal(st.metrics.tokens, 0);
    session_decide(s, false);
    h = wait_phase(s, PHASE_IDLE);
    assert_string_equal(h.withdrawn, "x");
    session_get_status(s, &st);
    assert_int_equal(st.metrics.tokens, 0);
    assert_true(st.reread_tokens > 100); /* the cost stands */
    expect_messages("asked", 4);

    send_text(s, "x");
    wait_phase(s, PHASE_ASKING);
    session_decide(s, true);
    h = wait_phase(s, PHASE_IDLE);
    assert_int_equal(h.answers, 1);
    session_get_status(s, &st);
    assert_int_equal(st.reread_tokens, 0);
    session_close(s);
    expect_messages("asked", 6);
}

/* Another thinking setting, another answer, the same one going on, an edited message. */
static void all_work_asks(void **state)
{
    (void)state;
    struct run_config cfg = make_config("work", 1e-9);
    struct k3_error err = {0};
    struct heard h;
    make_conversation("work", &cfg);
    struct session *s = open_session(&cfg, &h);
    assert_int_equal(session_regenerate(s, &err), K3_OK);
    h = wait_phase(s, PHASE_ASKING);
    assert_int_equal(h.dropped, 0); /* the answer stays to be seen */
    session_cancel(s);
    h = wait_phase(s, PHASE_IDLE);
    assert_int_equal(h.dropped + h.messages, 0);

    assert_int_equal(session_continue(s, &err), K3_OK);
    h = wait_phase(s, PHASE_ASKING);
    assert_int_equal(h.dropped, 0);
    session_decide(s, true);
    h = wait_phase(s, PHASE_IDLE);
    assert_int_equal(h.dropped, 1);
    assert_int_equal(h.answers, 1);

    session_set_thinking(s, "off");
    send_text(s, "short, please");
    wait_phase(s, PHASE_ASKING);
    session_decide(s, false);
    assert_string_equal(wait_phase(s, PHASE_IDLE).withdrawn, "short, please");

    assert_int_equal(session_edit(s, 2, "edited", 6, &err), K3_OK);
    wait_phase(s, PHASE_ASKING);
    session_decide(s, false);
    h = wait_phase(s, PHASE_IDLE);
    assert_string_equal(h.withdrawn, "edited");
    assert_int_equal(h.messages, 2); /* the old ones are back */
    session_close(s);

    struct transcript_contents in = contents_of("work");
    size_t len = 0;
    assert_int_equal(in.conversation.n, 4);
    assert_string_equal(message_text(&in.conversation.v[2], "content", &len), "and then?");
    assert_int_equal(in.conversation.v[3].ids.n, 18);
    conversation_free(&in.conversation);
}

/* The effort stands at the beginning of the prompt: all that follows is read again, and whoever changes
 * it is told so before a message is sent; changed back, everything is there. */
static void another_effort_is_told(void **state)
{
    (void)state;
    struct run_config cfg = make_config("effort", 1e-9);
    struct session_status st;
    struct heard h;
    make_conversation("effort", &cfg);
    cfg.ask_reread = 0;
    struct session *s = open_session(&cfg, &h);
    send_text(s, "x");
    wait_phase(s, PHASE_IDLE);
    session_get_status(s, &st);
    assert_int_equal(st.reread_tokens, 0);
    session_set_thinking(s, "high");
    wait_notice(s, "tokens to read again before the next answer");
    session_get_status(s, &st);
    assert_true(st.reread_tokens > 100);
    session_set_thinking(s, "low");
    const double until = clock_now() + DEADLINE;
    while (st.reread_tokens > 0) {
        struct pollfd p = {.fd = session_fd(s), .events = POLLIN};
        struct session_event ev;
        poll(&p, 1, 1000);
        while (session_next_event(s, &ev)) {
            assert_int_not_equal(ev.kind, EVENT_NOTICE);
            session_event_free(&ev);
        }
        session_get_status(s, &st);
        assert_true(clock_now() < until);
    }
    session_close(s);
}

/* Leaving in the face of the question keeps the message; going elsewhere gives it back. */
static void leaving_answers_no(void **state)
{
    (void)state;
    struct run_config cfg = make_config("left", 1e-9);
    struct k3_error err = {0};
    struct heard h;
    make_conversation("left", &cfg);
    struct session *s = open_session(&cfg, &h);
    send_text(s, "still there");
    wait_phase(s, PHASE_ASKING);
    session_close(s);
    s = open_session(&cfg, &h);
    assert_string_equal(h.withdrawn, "still there");
    send_text(s, "elsewhere");
    wait_phase(s, PHASE_ASKING);
    assert_int_equal(session_switch(s, "", false, &err), K3_OK);
    h = wait_phase(s, PHASE_LOADING);
    assert_string_equal(h.withdrawn, "elsewhere");
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    expect_messages("left", 4);
}

/* Short ones are not asked about, nor when it is not wanted. */
static void not_asked(void **state)
{
    (void)state;
    struct run_config cfg = make_config("short", 100000);
    struct heard h;
    make_conversation("short", &cfg);
    for (int i = 0; i < 2; i++) {
        struct session *s = open_session(&cfg, &h);
        send_text(s, "x");
        h = wait_phase(s, PHASE_IDLE);
        assert_int_equal(h.asked, 0);
        assert_int_equal(h.answers, 1);
        session_close(s);
        cfg.ask_reread = 0;
    }
}

static void a_state_is_ready(void **state)
{
    (void)state;
    struct run_config cfg = make_config("ready", 1e-9);
    struct heard h;
    cfg.states_keep = 2;
    make_conversation("ready", &cfg);
    struct session *s = open_session(&cfg, &h);
    assert_non_null(strstr(h.notices, "state saved: ready at once"));
    send_text(s, "x");
    h = wait_phase(s, PHASE_IDLE);
    assert_int_equal(h.asked, 0);
    session_close(s);
}

/* A conversation of which no figures are recorded, on a disk that is known to be slow. */
static void estimated_by_the_plan(void **state)
{
    (void)state;
    char file[FIXTURE_PATH], line[256];
    struct k3_error err = {0};
    struct session_status st;
    struct heard h;
    fixture_join(file, scratch, "messages.jsonl");
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    for (int i = 0; i < 10; i++) {
        snprintf(line, sizeof line, "{\"role\":\"%s\",\"content\":\"it rained on day %d, and on\"}\n",
                 i % 2 ? "assistant" : "user", i);
        fputs(line, f);
    }
    fclose(f);
    if (sessions_import(file, "planned", &err) != K3_OK)
        fail_msg("%s", err.message);
    struct run_config cfg = make_config("planned", 1);
    cfg.engine.simulate_rate = 100000;
    struct session *s = open_session(&cfg, &h);
    assert_non_null(strstr(h.notices, " by the plan"));
    send_text(s, "x");
    wait_phase(s, PHASE_ASKING);
    session_get_status(s, &st);
    assert_true(st.reread_planned && st.reread_tokens > 50);
    /* the whole trunk once, and experts */
    const double trunk = (double)st.plan.residents / 100000;
    assert_true(trunk > 1 && st.reread_seconds >= trunk && st.reread_seconds < 4 * trunk);
    session_close(s);
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
        cmocka_unit_test(a_message_is_not_begun),
        cmocka_unit_test(all_work_asks),
        cmocka_unit_test(another_effort_is_told),
        cmocka_unit_test(leaving_answers_no),
        cmocka_unit_test(not_asked),
        cmocka_unit_test(a_state_is_ready),
        cmocka_unit_test(estimated_by_the_plan),
    };
    return cmocka_run_group_tests_name("reread", tests, setup, teardown);
}
