/* test_session.c - the session: events, queue, cancel, resume, equality with a fresh one. */
#include <config.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../src/buffer.h"
#include "../src/clock.h"
#include "../src/run_config.h"
#include "../src/session.h"
#include "../src/stats.h"
#include "../src/transcript.h"
#include "fixture.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH];

#define SHARDS 10
#define DEADLINE 600.0 /* seconds; generous, reached only when something hangs */

static struct run_config make_config(const char *name, uint32_t max_tokens)
{
    struct run_config cfg;
    run_config_init(&cfg);
    cfg.engine.model_dir = model;
    cfg.engine.budget = 2000000000;
    cfg.engine.context = 1024;
    cfg.engine.threads = 1;
    cfg.engine.io = K3_IO_BUFFERED;
    cfg.thinking = K3_THINK_LOW;
    cfg.max_tokens = max_tokens;
    cfg.ignore_stop = true; /* an answer of noise has the length that the test wants */
    cfg.session_name = name;
    return cfg;
}

static struct session *open_session(const struct run_config *cfg)
{
    struct k3_error err = {0};
    struct session *s = session_open(cfg, &err);
    if (s == NULL)
        fail_msg("session_open: %s", err.message);
    return s;
}

/* The next event; waits for it. */
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
    return ev;
}

/* Drops events up to one of that kind and hands it out. Errors are not expected. */
static struct session_event wait_for(struct session *s, enum session_event_kind kind)
{
    for (;;) {
        struct session_event ev = next(s);
        if (ev.kind == kind)
            return ev;
        if (ev.kind == EVENT_ERROR)
            fail_msg("unexpected error: %s", ev.text);
        session_event_free(&ev);
    }
}

static void wait_phase(struct session *s, enum session_phase phase)
{
    for (;;) {
        const struct session_event ev = wait_for(s, EVENT_PHASE);
        if (ev.phase == phase)
            return;
    }
}

static void send_text(struct session *s, const char *text)
{
    struct k3_error err = {0};
    assert_int_equal(session_send(s, text, strlen(text), &err), K3_OK);
}

/* ---- what the transcript says ------------------------------------------------------------ */

static struct transcript_contents transcript_of(const char *name)
{
    char dir[FIXTURE_PATH], file[256];
    struct transcript_contents c;
    struct k3_error err = {0};
    size_t n = 0;
    fixture_join(dir, scratch, "k3chat/sessions");
    snprintf(file, sizeof file, "%s.jsonl", name);
    char *text = fixture_read(dir, file, &n);
    if (transcript_parse(text, n, file, &c, &err) != K3_OK)
        fail_msg("%s", err.message);
    free(text);
    assert_false(c.torn);
    return c;
}

static void copy_transcript(const char *from, const char *to)
{
    char dir[FIXTURE_PATH], file[256], path[FIXTURE_PATH];
    size_t n = 0;
    fixture_join(dir, scratch, "k3chat/sessions");
    snprintf(file, sizeof file, "%s.jsonl", from);
    char *text = fixture_read(dir, file, &n);
    snprintf(file, sizeof file, "%s.jsonl", to);
    fixture_join(path, dir, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(text);
}

static void expect_content(const struct message *m, const char *want)
{
    size_t n = 0;
    const char *text = message_text(m, "content", &n);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, n);
}

/* ---- tests ------------------------------------------------------------------------------- */

/* One turn, every event in its place, and the same text on the screen and on disk. */
static void events_in_order(void **state)
{
    (void)state;
    const struct run_config cfg = make_config("order", 12);
    struct session *s = open_session(&cfg);
    struct session_status st;
    session_get_status(s, &st);
    assert_true(st.phase == PHASE_LOADING || st.phase == PHASE_IDLE);
    assert_string_equal(st.session_name, "order");
    assert_string_equal(st.thinking, "low");
    wait_phase(s, PHASE_IDLE);
    session_get_status(s, &st);
    assert_int_equal(st.context, 1024);
    assert_true(st.plan.total > 0 && st.rss > 0 && st.peak_rss >= st.rss / 2);
    assert_false(st.demo);

    send_text(s, "hello there");
    static const enum session_event_kind order[] = {EVENT_PHASE, EVENT_MESSAGE, EVENT_PREFILL,
                                                    EVENT_ANSWER};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct session_event ev = next(s);
        assert_int_equal(ev.kind, order[i]);
        if (ev.kind == EVENT_MESSAGE) {
            assert_int_equal(ev.role, ROLE_USER);
            assert_string_equal(ev.text, "hello there");
            assert_true(ev.time > 0);
        } else if (ev.kind == EVENT_PREFILL) {
            assert_true(ev.step.tokens > 70); /* the effort message alone has that many */
            assert_true(ev.step.seconds > 0 && ev.step.bytes_trunk > 0);
        }
        session_event_free(&ev);
    }
    struct buffer reasoning = {0}, content = {0};
    uint32_t steps = 0;
    struct session_event ev;
    for (;;) {
        ev = next(s);
        if (ev.kind == EVENT_ANSWER_END)
            break;
        if (ev.kind == EVENT_REASONING)
            buffer_add(&reasoning, ev.text, ev.len);
        else if (ev.kind == EVENT_CONTENT)
            buffer_add(&content, ev.text, ev.len);
        else if (ev.kind == EVENT_STEP) {
            assert_int_equal(ev.step.tokens, steps == 0 ? 0 : 1);
            steps++;
        } else
            assert_int_equal(ev.kind, EVENT_PHASE);
        session_event_free(&ev);
    }
    assert_int_equal(steps, 12);
    assert_int_equal(ev.tokens, 12);
    assert_int_equal(ev.finish, FINISH_LENGTH);
    assert_true(ev.seconds > 0);
    wait_phase(s, PHASE_IDLE);
    session_get_status(s, &st);
    assert_int_equal(st.answer_tokens, 12);
    assert_int_equal(st.totals.tokens, 11);
    assert_true(st.mean_step_seconds > 0 && st.p95_step_seconds >= st.mean_step_seconds / 2);
    assert_true(st.position > 80);
    struct k3_layer_counts layer;
    assert_false(session_get_layer(s, 0, &layer)); /* the first layer is dense */
    assert_true(session_get_layer(s, 1, &layer));
    assert_true(layer.requests > 0);
    session_close(s);

    struct transcript_contents c = transcript_of("order");
    assert_int_equal(c.conversation.n, 2);
    const struct message *m = &c.conversation.v[1];
    size_t n = 0;
    const char *text = message_text(m, "reasoning_content", &n);
    assert_true(n >= reasoning.n); /* the end may hold back part of a character */
    assert_memory_equal(text, reasoning.n > 0 ? reasoning.v : "", reasoning.n);
    text = message_text(m, "content", &n);
    assert_true(n >= content.n);
    assert_memory_equal(text, content.n > 0 ? content.v : "", content.n);
    assert_int_equal(m->ids.n, 12);
    assert_int_equal(m->finish, FINISH_LENGTH);
    conversation_free(&c.conversation);
    buffer_free(&reasoning);
    buffer_free(&content);
}

static uint32_t one_turn(struct session *s, const char *text)
{
    send_text(s, text);
    const struct session_event prefill = wait_for(s, EVENT_PREFILL);
    struct session_event end = wait_for(s, EVENT_ANSWER_END);
    session_event_free(&end);
    wait_phase(s, PHASE_IDLE);
    return prefill.step.tokens;
}

/* A session that goes on and a fresh one that reads the transcript give the same ids. */
static void a_fresh_session_goes_on_alike(void **state)
{
    (void)state;
    const struct run_config cfg = make_config("first", 10);
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "tell me about the storm");
    copy_transcript("first", "second");
    one_turn(s, "and then?");
    session_close(s);

    const struct run_config again = make_config("second", 10);
    s = open_session(&again);
    struct session_event ev = next(s);
    assert_int_equal(ev.kind, EVENT_MESSAGE);
    assert_string_equal(ev.text, "tell me about the storm");
    session_event_free(&ev);
    ev = next(s);
    assert_int_equal(ev.kind, EVENT_MESSAGE);
    assert_int_equal(ev.role, ROLE_ASSISTANT);
    assert_int_equal(ev.tokens, 10);
    assert_int_equal(ev.finish, FINISH_LENGTH);
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "and then?");
    session_close(s);

    struct transcript_contents a = transcript_of("first"), b = transcript_of("second");
    assert_int_equal(a.conversation.n, 4);
    assert_int_equal(b.conversation.n, 4);
    for (size_t i = 1; i < 4; i += 2) {
        const struct k3_ids *x = &a.conversation.v[i].ids, *y = &b.conversation.v[i].ids;
        assert_int_equal(x->n, y->n);
        assert_memory_equal(x->v, y->v, x->n * sizeof *x->v);
    }
    conversation_free(&a.conversation);
    conversation_free(&b.conversation);
}

/* A disk so slow that the first pass takes many seconds, so that a cancel comes in its midst. */
#define SLOW_RATE 150000

static void cancel_while_reading_gives_the_text_back(void **state)
{
    (void)state;
    struct run_config cfg = make_config("withdrawn", 8);
    cfg.engine.simulate_rate = SLOW_RATE;
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    send_text(s, "never mind");
    wait_phase(s, PHASE_READING);
    struct session_status st;
    do { /* inside the pass */
        session_get_status(s, &st);
    } while (!st.metrics.running);
    assert_true(st.prompt_total > 70 && st.prompt_done < st.prompt_total);
    session_cancel(s);
    session_get_status(s, &st);
    assert_true(st.phase == PHASE_CANCELLING || st.phase == PHASE_IDLE);
    struct session_event ev = wait_for(s, EVENT_WITHDRAWN);
    assert_string_equal(ev.text, "never mind");
    assert_false(ev.edited);
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    struct transcript_contents c = transcript_of("withdrawn");
    assert_int_equal(c.conversation.n, 0);
    assert_int_equal(c.records, 2);
    conversation_free(&c.conversation);
}

static void cancel_keeps_what_there_is(void **state)
{
    (void)state;
    const struct run_config cfg = make_config("kept", 900);
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    send_text(s, "write a long story");
    for (int i = 0; i < 3; i++) {
        struct session_event step = wait_for(s, EVENT_STEP);
        session_event_free(&step);
    }
    session_cancel(s);
    struct session_event end = wait_for(s, EVENT_ANSWER_END);
    assert_int_equal(end.finish, FINISH_CANCELLED);
    assert_true(end.tokens >= 3 && end.tokens < 900);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "go on"); /* and the conversation goes on behind it; cut off by its length */
    session_close(s);
    struct transcript_contents c = transcript_of("kept");
    assert_int_equal(c.conversation.n, 4);
    assert_int_equal(c.conversation.v[1].finish, FINISH_CANCELLED);
    assert_int_equal(c.conversation.v[1].ids.n, end.tokens);
    conversation_free(&c.conversation);
}

static void closing_in_the_midst_keeps_everything(void **state)
{
    (void)state;
    const struct run_config cfg = make_config("closed", 900);
    struct session *s = open_session(&cfg);
    send_text(s, "one"); /* before it is loaded */
    struct session_event step = wait_for(s, EVENT_STEP);
    session_event_free(&step);
    send_text(s, "two");
    send_text(s, "three");
    session_close(s);
    struct transcript_contents c = transcript_of("closed");
    assert_int_equal(c.conversation.n, 3);
    assert_int_equal(c.conversation.v[1].finish, FINISH_CANCELLED);
    expect_content(&c.conversation.v[2], "two\n\nthree");
    conversation_free(&c.conversation);

    s = open_session(&cfg); /* what was not answered comes back to the editor */
    struct session_event ev = wait_for(s, EVENT_WITHDRAWN);
    assert_string_equal(ev.text, "two\n\nthree");
    session_event_free(&ev);
    session_close(s);
}

/* The same while the first one is being read: it comes back with those behind it. */
static void closing_while_reading_keeps_the_queue(void **state)
{
    (void)state;
    struct run_config cfg = make_config("closed early", 4);
    cfg.engine.simulate_rate = SLOW_RATE;
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    send_text(s, "one");
    wait_phase(s, PHASE_READING);
    send_text(s, "two");
    session_close(s);
    struct transcript_contents c = transcript_of("closed early");
    assert_int_equal(c.conversation.n, 1);
    expect_content(&c.conversation.v[0], "one\n\ntwo");
    conversation_free(&c.conversation);
    s = open_session(&cfg);
    struct session_event ev = wait_for(s, EVENT_WITHDRAWN);
    assert_string_equal(ev.text, "one\n\ntwo");
    session_event_free(&ev);
    session_close(s);
}

static void the_queue_is_answered_in_order(void **state)
{
    (void)state;
    struct run_config cfg = make_config("queue", 2);
    cfg.engine.simulate_rate = SLOW_RATE; /* the first message keeps it busy meanwhile */
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    send_text(s, "a");
    wait_phase(s, PHASE_READING);
    send_text(s, "b");
    send_text(s, "c");
    assert_int_equal(session_queued(s), 2);
    struct session_status st = {.phase = PHASE_READING};
    while (st.phase == PHASE_READING && st.prompt_total == 0) {
        poll(NULL, 0, 1);
        session_get_status(s, &st);
    }
    if (st.phase == PHASE_READING) /* the context fills while the first prompt is read */
        assert_int_equal(st.position, st.prompt_done);
    size_t len = 0;
    char *text = session_unqueue(s, &len);
    assert_string_equal(text, "c");
    assert_int_equal(len, 1);
    free(text);
    assert_int_equal(session_queued(s), 1);
    send_text(s, "d");
    send_text(s, "e");
    assert_true(session_queue_first(s, "e", 1));
    assert_true(session_queue_drop(s, "d", 1));
    assert_false(session_queue_drop(s, "d", 1));
    assert_false(session_queue_first(s, "a", 1)); /* it is being answered */
    assert_int_equal(session_queued(s), 2);
    session_cancel(s); /* only the running one */
    struct session_event ev = wait_for(s, EVENT_WITHDRAWN);
    assert_string_equal(ev.text, "a");
    session_event_free(&ev);
    ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "e");
    session_event_free(&ev);
    session_cancel(s);
    ev = wait_for(s, EVENT_WITHDRAWN);
    session_event_free(&ev);
    ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "b");
    session_event_free(&ev);
    assert_int_equal(session_queued(s), 0);
    assert_null(session_unqueue(s, &len));
    struct k3_error err = {0};
    assert_int_equal(session_send(s, "", 0, &err), K3_USAGE);
    session_close(s);
}

static void a_full_context_ends_the_answer(void **state)
{
    (void)state;
    struct run_config cfg = make_config("context", 900);
    cfg.thinking = K3_THINK_OFF;
    cfg.engine.context = 80;
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    send_text(s, "x");
    struct session_event ev = wait_for(s, EVENT_ANSWER_END);
    assert_int_equal(ev.finish, FINISH_LENGTH);
    assert_true(ev.tokens > 1 && ev.tokens <= 80);
    ev = wait_for(s, EVENT_NOTICE);
    assert_non_null(strstr(ev.text, "context is full"));
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);

    /* the next message does not fit: said with both numbers, text given back, nothing broken */
    send_text(s, "and this does not fit any more");
    for (;;) {
        ev = next(s);
        if (ev.kind == EVENT_ERROR)
            break;
        if (ev.kind == EVENT_WITHDRAWN)
            assert_string_equal(ev.text, "and this does not fit any more");
        session_event_free(&ev);
    }
    assert_non_null(strstr(ev.text, "room for 80"));
    session_event_free(&ev);
    struct session_status st;
    wait_phase(s, PHASE_IDLE);
    session_get_status(s, &st);
    assert_int_equal(st.phase, PHASE_IDLE);
    session_close(s);
}

static void cannot_be_loaded(const char *dir, const char *why)
{
    struct run_config cfg = make_config("failed", 8);
    cfg.engine.model_dir = dir;
    struct session *s = open_session(&cfg);
    struct session_event ev;
    for (;;) {
        ev = next(s);
        if (ev.kind == EVENT_ERROR)
            break;
        session_event_free(&ev);
    }
    assert_non_null(strstr(ev.text, dir));
    assert_non_null(strstr(ev.text, why));
    session_event_free(&ev);
    wait_phase(s, PHASE_FAILED);
    struct session_status st;
    session_get_status(s, &st);
    assert_int_equal(st.phase, PHASE_FAILED);
    assert_non_null(strstr(st.detail, dir));
    struct k3_error err = {0};
    assert_int_equal(session_send(s, "x", 1, &err), K3_FAILED);
    session_close(s);
}

static void a_model_that_cannot_be_loaded(void **state)
{
    (void)state;
    cannot_be_loaded("/nonexistent/model", "there is no such folder");
    cannot_be_loaded(scratch, "no checkpoint: neither model.safetensors.index.json");
}

/* Cuts every shard behind its header, or puts back what was cut off. */
static void cut_shards(char *data[SHARDS], size_t size[SHARDS], bool back)
{
    char name[64], path[FIXTURE_PATH];
    for (unsigned i = 0; i < SHARDS; i++) {
        snprintf(name, sizeof name, "model-%05u-of-%06u.safetensors", i + 1, SHARDS);
        fixture_join(path, model, name);
        if (!back) {
            data[i] = fixture_read(model, name, &size[i]);
            assert_int_equal(truncate(path, 4096), 0);
            continue;
        }
        FILE *f = fopen(path, "r+"); /* the same file: the engine has it open */
        assert_non_null(f);
        assert_int_equal(fwrite(data[i], 1, size[i], f), size[i]);
        assert_int_equal(fclose(f), 0);
        free(data[i]);
    }
}

static enum session_event_kind wait_end_or_error(struct session *s)
{
    for (;;) {
        struct session_event ev = next(s);
        const enum session_event_kind kind = ev.kind;
        session_event_free(&ev);
        if (kind == EVENT_ANSWER_END)
            assert_int_equal(ev.finish, FINISH_LENGTH);
        if (kind == EVENT_ANSWER_END || kind == EVENT_ERROR)
            return kind;
    }
}

static void a_disk_that_fails_and_comes_back(void **state)
{
    (void)state;
    const struct run_config cfg = make_config("disk", 6);
    char *data[SHARDS];
    size_t size[SHARDS];
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    cut_shards(data, size, false);
    send_text(s, "Hello");
    struct session_event ev;
    bool withdrawn = false;
    for (;;) { /* the text comes back to the editor, and the error says which file */
        ev = next(s);
        withdrawn = withdrawn || ev.kind == EVENT_WITHDRAWN;
        if (ev.kind == EVENT_ERROR)
            break;
        session_event_free(&ev);
    }
    cut_shards(data, size, true);
    assert_true(withdrawn);
    assert_non_null(strstr(ev.text, ".safetensors"));
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);
    /* The reader runs ahead: what it read between the failure and the repair may fail once more,
     * when the compute comes to it; what it reads from then on is whole. */
    send_text(s, "Hello again");
    if (wait_end_or_error(s) == EVENT_ERROR) {
        wait_phase(s, PHASE_IDLE);
        send_text(s, "Hello again");
        assert_int_equal(wait_end_or_error(s), EVENT_ANSWER_END);
    }
    session_close(s);
    struct transcript_contents c = transcript_of("disk");
    assert_int_equal(c.conversation.n, 2);
    expect_content(&c.conversation.v[0], "Hello again");
    conversation_free(&c.conversation);
}

static void thinking_changes_with_the_next_message(void **state)
{
    (void)state;
    const struct run_config cfg = make_config("thinking", 4);
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    const uint32_t low = one_turn(s, "x");
    session_set_thinking(s, "off");
    session_set_thinking(s, "medium"); /* no such effort: nothing happens */
    struct session_status st;
    session_get_status(s, &st);
    assert_string_equal(st.thinking, "off");
    const uint32_t off = one_turn(s, "y");
    assert_true(off < low); /* the whole history, and no effort message before it */
    session_close(s);
}

/* ---- other branches ---------------------------------------------------------------------- */

static struct session_event wait_dropped(struct session *s, uint32_t index)
{
    struct session_event ev = wait_for(s, EVENT_DROPPED);
    assert_int_equal(ev.index, index);
    return ev;
}

/* Another answer, an edited message, and the branches on disk. */
static void other_branches(void **state)
{
    (void)state;
    struct k3_error err;
    struct run_config cfg = make_config("branches", 6);
    cfg.sampling = (struct k3_sampling){.temperature = 1, .top_p = 1, .seed = 40};
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "a");
    assert_int_equal(session_regenerate(s, &err), K3_OK);
    wait_dropped(s, 1);
    struct session_event ev = wait_for(s, EVENT_ANSWER);
    assert_int_equal(ev.index, 1);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "b");
    assert_int_equal(session_edit(s, 0, "A", 1, &err), K3_OK);
    wait_dropped(s, 0);
    ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "A");
    assert_int_equal(ev.index, 0);
    session_event_free(&ev);
    ev = wait_for(s, EVENT_ANSWER_END);
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    struct transcript_contents c = transcript_of("branches");
    assert_int_equal(c.conversation.n, 2);
    expect_content(&c.conversation.v[0], "A");
    assert_int_equal(c.records, 7); /* a, two answers, b and its answer, A and its answer */
    assert_int_equal(json_integer_value(json_object_get(c.conversation.v[1].settings, "seed")), 40);
    conversation_free(&c.conversation);
}

/* Cancelled before any output, an edit brings the old branch back: on the screen and on disk. */
static void a_cancelled_edit_changes_nothing(void **state)
{
    (void)state;
    struct k3_error err;
    struct run_config cfg = make_config("unedited", 4);
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "first");
    session_close(s);
    cfg.engine.simulate_rate = SLOW_RATE;
    s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_edit(s, 0, "second", 6, &err), K3_OK);
    wait_dropped(s, 0);
    struct session_event ev = wait_for(s, EVENT_MESSAGE);
    session_event_free(&ev);
    session_cancel(s);
    ev = wait_for(s, EVENT_WITHDRAWN);
    assert_string_equal(ev.text, "second");
    assert_true(ev.edited && ev.index == 0);
    session_event_free(&ev);
    ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "first");
    session_event_free(&ev);
    ev = wait_for(s, EVENT_MESSAGE);
    assert_int_equal(ev.role, ROLE_ASSISTANT);
    assert_int_equal(ev.index, 1);
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    struct transcript_contents c = transcript_of("unedited");
    assert_int_equal(c.conversation.n, 2);
    expect_content(&c.conversation.v[0], "first");
    assert_int_equal(c.conversation.v[1].ids.n, 4);
    conversation_free(&c.conversation);
}

/* What cannot be done is told, and nothing else happens. */
static void nothing_to_do_is_told(void **state)
{
    (void)state;
    struct k3_error err;
    const struct run_config cfg = make_config("nothing", 4);
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    session_continue(s, &err);
    struct session_event ev = wait_for(s, EVENT_NOTICE);
    assert_non_null(strstr(ev.text, "no answer to go on with"));
    session_event_free(&ev);
    session_regenerate(s, &err);
    ev = wait_for(s, EVENT_NOTICE);
    assert_non_null(strstr(ev.text, "no answer that could be given again"));
    session_event_free(&ev);
    session_edit(s, 3, "x", 1, &err);
    ev = wait_for(s, EVENT_NOTICE);
    assert_non_null(strstr(ev.text, "no such message"));
    session_event_free(&ev);
    ev = wait_for(s, EVENT_WITHDRAWN); /* the text is not lost */
    assert_string_equal(ev.text, "x");
    session_event_free(&ev);
    assert_int_equal(session_edit(s, 0, "", 0, &err), K3_USAGE);
    assert_int_equal(session_queued(s), 0);
    session_close(s);
}

/* ---- figures ----------------------------------------------------------------------------- */

static void pace_of_known_samples(void **state)
{
    (void)state;
    struct pace p = {0};
    for (int i = 1; i <= 100; i++)
        pace_add(&p, i);
    assert_true(p.last == 100 && p.mean == 50.5 && p.p95 == 95);
    for (int i = 0; i < PACE_WINDOW; i++)
        pace_add(&p, 2);
    assert_true(p.mean == 2 && p.p95 == 2 && p.n == 100 + PACE_WINDOW);
}

static void rates_of_known_counts(void **state)
{
    (void)state;
    const struct step_stats s = {.seconds = 10,
                                 .wait_trunk_s = 3,
                                 .wait_experts_s = 1,
                                 .device_busy_s = 12,
                                 .requests = 200,
                                 .resident = 50,
                                 .prefetched = 100,
                                 .waited = 50};
    const struct step_stats none = {0};
    assert_true(stats_wait_fraction(&s) == 0.4);
    assert_true(stats_hit_rate(&s) == 0.25);
    assert_true(stats_raw_hit_rate(&s) == 1);
    assert_true(stats_busy_fraction(&s, 2) == 0.6);
    assert_true(stats_wait_fraction(&none) == 0 && stats_hit_rate(&none) == 0 &&
                stats_raw_hit_rate(&none) == 0 && stats_busy_fraction(&none, 0) == 0);
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
        cmocka_unit_test(events_in_order),
        cmocka_unit_test(a_fresh_session_goes_on_alike),
        cmocka_unit_test(cancel_while_reading_gives_the_text_back),
        cmocka_unit_test(cancel_keeps_what_there_is),
        cmocka_unit_test(closing_in_the_midst_keeps_everything),
        cmocka_unit_test(closing_while_reading_keeps_the_queue),
        cmocka_unit_test(the_queue_is_answered_in_order),
        cmocka_unit_test(a_full_context_ends_the_answer),
        cmocka_unit_test(a_model_that_cannot_be_loaded),
        cmocka_unit_test(a_disk_that_fails_and_comes_back),
        cmocka_unit_test(thinking_changes_with_the_next_message),
        cmocka_unit_test(other_branches),
        cmocka_unit_test(a_cancelled_edit_changes_nothing),
        cmocka_unit_test(nothing_to_do_is_told),
        cmocka_unit_test(pace_of_known_samples),
        cmocka_unit_test(rates_of_known_counts),
    };
    return cmocka_run_group_tests_name("session", tests, setup, teardown);
}
