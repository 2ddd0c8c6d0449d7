/* test_session_switch.c - one session after another in one process: switching, renaming, deleting,
 * showing what another program has open, and small changes of the conversation. */
#include <config.h>

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../src/clock.h"
#include "../src/recorder.h"
#include "../src/runtime.h"
#include "../src/saved.h"
#include "../src/session.h"
#include "../src/transcript.h"
#include "fixture.h"

static char scratch[FIXTURE_PATH], model[FIXTURE_PATH];

#define DEADLINE 600.0 /* seconds; reached only when something hangs */

static struct run_config make_config(const char *name)
{
    struct run_config cfg;
    run_config_init(&cfg);
    cfg.engine.model_dir = model;
    cfg.engine.budget = 2000000000;
    cfg.engine.context = 1024;
    cfg.engine.threads = 1;
    cfg.engine.io = K3_IO_BUFFERED;
    cfg.thinking = K3_THINK_OFF;
    cfg.max_tokens = 4;
    cfg.ignore_stop = true;
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

/* Drops events up to one of that kind and hands it out. Errors are not expected. */
static struct session_event wait_for(struct session *s, enum session_event_kind kind)
{
    const double until = clock_now() + DEADLINE;
    for (;;) {
        struct session_event ev;
        if (!session_next_event(s, &ev)) {
            struct pollfd p = {.fd = session_fd(s), .events = POLLIN};
            poll(&p, 1, 1000);
            if (clock_now() > until)
                fail_msg("no event for %.0f s", DEADLINE);
            continue;
        }
        if (ev.kind == kind)
            return ev;
        if (ev.kind == EVENT_ERROR)
            fail_msg("unexpected error: %s", ev.text);
        session_event_free(&ev);
    }
}

static void wait_text(struct session *s, enum session_event_kind kind, const char *part)
{
    for (;;) {
        struct session_event ev = wait_for(s, kind);
        const bool found = strstr(ev.text, part) != NULL;
        session_event_free(&ev);
        if (found)
            return;
    }
}

static void wait_phase(struct session *s, enum session_phase phase)
{
    while (wait_for(s, EVENT_PHASE).phase != phase)
        continue;
}

static void one_turn(struct session *s, const char *text)
{
    struct k3_error err = {0};
    assert_int_equal(session_send(s, text, strlen(text), &err), K3_OK);
    wait_for(s, EVENT_ANSWER_END);
    wait_phase(s, PHASE_IDLE);
}

static void expect_name(struct session *s, const char *name)
{
    struct session_status st;
    session_get_status(s, &st);
    assert_string_equal(st.session_name, name);
}

static const char *file_of(const char *name)
{
    char dir[FIXTURE_PATH];
    static char path[FIXTURE_PATH];
    fixture_join(dir, scratch, "k3chat/sessions");
    fixture_join(path, dir, name);
    return path;
}

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
    return c;
}

static void expect_messages(const char *name, size_t n)
{
    struct transcript_contents c = transcript_of(name);
    assert_int_equal(c.conversation.n, n);
    conversation_free(&c.conversation);
}

/* ---- going from one to the other --------------------------------------------------------- */

/* The model is loaded once; what is said goes where it belongs; the answers are those of a session
 * that was opened for itself. */
static void to_another_and_back(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct run_config cfg = make_config("one");
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "first");
    assert_int_equal(session_switch(s, "two", false, &err), K3_OK);
    wait_for(s, EVENT_OPENED);
    wait_phase(s, PHASE_IDLE);
    expect_name(s, "two");
    one_turn(s, "second");
    assert_int_equal(session_switch(s, "one", false, &err), K3_OK);
    wait_for(s, EVENT_OPENED);
    struct session_event ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "first");
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "third");
    assert_int_equal(session_switch(s, "one", false, &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "open already");
    assert_int_equal(session_switch(s, "a/b", false, &err), K3_USAGE);
    session_close(s);
    expect_messages("one", 4);
    expect_messages("two", 2);

    cfg = make_config("alone");
    s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "second");
    session_close(s);
    struct transcript_contents a = transcript_of("two"), b = transcript_of("alone");
    const struct k3_ids *x = &a.conversation.v[1].ids, *y = &b.conversation.v[1].ids;
    assert_int_equal(x->n, y->n);
    assert_memory_equal(x->v, y->v, x->n * sizeof *x->v);
    conversation_free(&a.conversation);
    conversation_free(&b.conversation);
}

/* What is sent behind a switch is answered there; when that session is only shown, it comes back. */
static void queued_behind_a_switch(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct run_config here = make_config("here"), there = make_config("taken");
    struct session *other = open_session(&there);
    wait_phase(other, PHASE_IDLE);
    one_turn(other, "again");
    here.engine.simulate_rate = 1000000; /* the first prompt takes a second, and all that follows waits */
    struct session *s = open_session(&here);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_send(s, "busy", 4, &err), K3_OK);
    assert_int_equal(session_switch(s, "taken", false, &err), K3_OK);
    assert_int_equal(session_send(s, "again", 5, &err), K3_OK);
    assert_int_equal(session_send(s, "more", 4, &err), K3_OK);
    wait_text(s, EVENT_WITHDRAWN, "again\n\nmore");
    assert_int_equal(session_queued(s), 0);
    session_close(other);
    assert_int_equal(session_switch(s, "taken", false, &err), K3_OK);
    struct session_event ev = wait_for(s, EVENT_OPENED);
    assert_int_equal(session_send(s, "again", 5, &err), K3_OK);
    for (bool sent = false; !sent; sent = ev.sent) { /* the old one of that text is none that was queued */
        ev = wait_for(s, EVENT_MESSAGE);
        assert_int_equal(ev.sent, ev.index == 2);
        session_event_free(&ev);
    }
    wait_for(s, EVENT_ANSWER_END);
    session_close(s);
    expect_messages("taken", 4);
}

/* A transcript that cannot be read: told, and the session is as before. */
static void to_a_damaged_one(void **state)
{
    (void)state;
    struct k3_error err = {0};
    const struct run_config cfg = make_config("whole");
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    FILE *f = fopen(file_of("damaged.jsonl"), "w");
    assert_non_null(f);
    fputs("no transcript\n{}\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(session_switch(s, "damaged", false, &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "damaged.jsonl");
    expect_name(s, "whole");
    one_turn(s, "still here");
    session_close(s);
    expect_messages("whole", 2);
}

static void without_a_model(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct run_config cfg = make_config("lost");
    cfg.engine.model_dir = "/nonexistent/model";
    struct session *s = open_session(&cfg);
    struct session_event ev = wait_for(s, EVENT_ERROR);
    session_event_free(&ev);
    wait_phase(s, PHASE_FAILED);
    assert_int_equal(session_send(s, "x", 1, &err), K3_FAILED);
    assert_int_equal(session_switch(s, "one", false, &err), K3_OK); /* it can be read */
    wait_for(s, EVENT_OPENED);
    ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "first");
    session_event_free(&ev);
    ev = wait_for(s, EVENT_ERROR); /* it was tried to load the model again */
    assert_non_null(strstr(ev.text, "/nonexistent/model"));
    session_event_free(&ev);
    wait_phase(s, PHASE_FAILED);
    session_close(s);
}

/* ---- names ------------------------------------------------------------------------------- */

static void renamed_and_deleted(void **state)
{
    (void)state;
    struct k3_error err = {0};
    const struct run_config cfg = make_config("before");
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "kept");
    assert_int_equal(session_rename(s, "one", &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "one.jsonl"); /* that name is taken */
    expect_name(s, "before");
    assert_int_equal(session_rename(s, "after", &err), K3_OK);
    one_turn(s, "also kept"); /* behind the rename, in the queue and in the file */
    expect_name(s, "after");
    assert_int_not_equal(access(file_of("before.jsonl"), F_OK), 0);
    expect_messages("after", 4);
    assert_int_equal(session_rename(s, ".x", &err), K3_USAGE);

    assert_int_equal(session_switch(s, "next", true, &err), K3_OK);
    wait_for(s, EVENT_OPENED);
    wait_phase(s, PHASE_IDLE);
    assert_int_not_equal(access(file_of("after.jsonl"), F_OK), 0);
    one_turn(s, "on");
    session_close(s);
    expect_messages("next", 2);
}

/* ---- a second program -------------------------------------------------------------------- */

/* The first one is a recorder of this process: a lock is a lock. */
static void a_second_one_looks_on(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct conversation c = {0};
    char *notice = NULL;
    struct transcript *t = transcript_open("shared", &c, &notice, &err);
    assert_non_null(t);
    struct recorder *r = recorder_new(t, 0, NULL, NULL, &err);
    struct message m = {.body = body_new("user", "from the first", 14, &err)};
    recorder_add(r, &m);
    message_free(&m);

    const struct run_config cfg = make_config("shared");
    struct session *s = open_session(&cfg);
    struct session_event ev = wait_for(s, EVENT_MESSAGE);
    assert_string_equal(ev.text, "from the first");
    session_event_free(&ev);
    wait_text(s, EVENT_NOTICE, "READ ONLY");
    struct session_status st;
    session_get_status(s, &st);
    assert_int_equal(st.phase, PHASE_VIEWING);
    assert_string_equal(st.session_name, "shared");
    assert_int_equal(st.plan.total, 0); /* no model is loaded for that */
    assert_int_equal(session_send(s, "x", 1, &err), K3_FAILED);
    assert_non_null(strstr(err.message, "another k3chat"));

    recorder_begin(r, NULL); /* the first one's answer is followed */
    recorder_content(r, "half an", 7);
    recorder_token(r, 1, false);
    recorder_flush(r);
    wait_for(s, EVENT_ANSWER);
    wait_text(s, EVENT_CONTENT, "half an");
    struct message whole = {.body = body_new("assistant", "half an answer", 14, &err), .time = 1};
    recorder_end(r, &whole, NULL);
    message_free(&whole);
    assert_int_equal(wait_for(s, EVENT_DROPPED).index, 1);
    wait_text(s, EVENT_MESSAGE, "half an answer");

    assert_int_equal(session_switch(s, "shared", false, &err), K3_OK); /* still not to be had */
    wait_text(s, EVENT_NOTICE, "READ ONLY");
    assert_int_equal(recorder_rename(r, "elsewhere", &err), K3_OK); /* not begun anew by its old name */
    assert_int_equal(session_switch(s, "shared", false, &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "renamed or deleted");
    assert_int_equal(recorder_rename(r, "shared", &err), K3_OK);
    recorder_free(r);
    assert_int_equal(session_switch(s, "shared", false, &err), K3_OK);
    wait_for(s, EVENT_OPENED);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "mine now");
    session_close(s);
    expect_messages("shared", 4);
}

/* ---- small changes ----------------------------------------------------------------------- */

static void taken_back_and_told(void **state)
{
    (void)state;
    struct k3_error err = {0};
    const struct run_config cfg = make_config("changes");
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_discard(s, &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "no question");
    one_turn(s, "stays");
    one_turn(s, "goes");
    assert_int_equal(session_discard(s, &err), K3_OK);
    assert_int_equal(wait_for(s, EVENT_DROPPED).index, 2);
    wait_text(s, EVENT_WITHDRAWN, "goes");
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_system(s, "Be brief.", 9, &err), K3_OK);
    struct session_event ev = wait_for(s, EVENT_MESSAGE);
    assert_int_equal(ev.role, ROLE_SYSTEM);
    session_event_free(&ev);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "instead");
    session_close(s);
    struct transcript_contents c = transcript_of("changes");
    static const char *const roles[] = {"user", "assistant", "system", "user", "assistant"};
    assert_int_equal(c.conversation.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(message_role(&c.conversation.v[i]), roles[i]);
    conversation_free(&c.conversation);
}

/* An edited message and what it took the place of: both can be gone on from. */
static void from_branch_to_branch(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct saved_branch *list;
    size_t n = 0;
    const struct run_config cfg = make_config("tree");
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "root");
    one_turn(s, "left");
    assert_int_equal(session_edit(s, 2, "right", 5, &err), K3_OK);
    wait_for(s, EVENT_ANSWER_END);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(saved_branches("tree", &list, &n, &err), K3_OK);
    assert_int_equal(n, 2);
    assert_string_equal(list[0].question, "left");
    assert_false(list[0].current);
    assert_string_equal(list[1].question, "right");
    assert_true(list[1].current);
    assert_int_equal(list[0].messages, 4);
    assert_int_equal(session_branch(s, list[0].tip, &err), K3_OK);
    assert_int_equal(wait_for(s, EVENT_DROPPED).index, 2);
    wait_text(s, EVENT_MESSAGE, "left");
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "left again");
    assert_int_equal(session_branch(s, 999, &err), K3_OK);
    wait_text(s, EVENT_ERROR, "no message 999");
    session_close(s);
    free(list);
    expect_messages("tree", 6);
    assert_int_equal(saved_branches("tree", &list, &n, &err), K3_OK);
    assert_int_equal(n, 2);
    assert_true(list[1].current && list[1].messages == 6);
    free(list);
}

/* A branch that ends with a question: it comes back, and what is said next does not stand behind it. */
static void to_a_branch_without_an_answer(void **state)
{
    (void)state;
    struct k3_error err = {0};
    struct run_config cfg = make_config("open end");
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "root");
    session_close(s);
    FILE *f = fopen(file_of("open end.jsonl"), "a");
    assert_non_null(f);
    fputs("{\"type\":\"message\",\"id\":3,\"parent\":2,\"time\":1,\"role\":\"user\",\"content\":"
          "\"cut off\"}\n", f);
    assert_int_equal(fclose(f), 0);
    s = open_session(&cfg);
    wait_text(s, EVENT_WITHDRAWN, "cut off");
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_branch(s, 3, &err), K3_OK);
    wait_text(s, EVENT_WITHDRAWN, "cut off");
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_send(s, "instead", 7, &err), K3_OK);
    assert_int_equal(wait_for(s, EVENT_ANSWER).index, 3);
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    expect_messages("open end", 4);
}

static int32_t stop_id(void)
{
    struct run_config cfg = make_config("unused");
    const struct runtime_needs needs = {.tokenizer = true};
    const struct runtime_listener quiet = {.ud = NULL};
    struct runtime rt;
    struct k3_error err = {0};
    if (runtime_load(&rt, &cfg, &needs, &quiet, &err) != K3_OK)
        fail_msg("%s", err.message);
    assert_true(rt.line.n_stops > 0);
    const int32_t id = rt.line.stops[0];
    runtime_close(&rt);
    return id;
}

/* An answer of which only partial records are left, as after kill -9, ending in this token. */
static void write_unfinished(const char *name, int32_t last)
{
    FILE *f = fopen(file_of(name), "w");
    assert_non_null(f);
    fprintf(f, "{\"format\":\"k3chat-transcript\",\"version\":1,\"created\":1,\"program\":\"0\"}\n"
               "{\"type\":\"message\",\"id\":1,\"parent\":null,\"time\":1,\"role\":\"user\","
               "\"content\":\"q\"}\n"
               "{\"type\":\"partial\",\"id\":2,\"parent\":1,\"time\":2,\"from\":0,\"ids\":[70,%d],"
               "\"reasoning_content\":\"\",\"content\":\"x\",\"reasoning_tokens\":0}\n",
            (int)last);
    assert_int_equal(fclose(f), 0);
}

/* The record of the end was lost, but the last token says that there was one: nothing goes on. */
static void ended_by_its_last_token(void **state)
{
    (void)state;
    struct k3_error err = {0};
    const int32_t stop = stop_id();
    struct run_config cfg = make_config("ended");
    cfg.ignore_stop = false;
    write_unfinished("ended.jsonl", stop);
    struct session *s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_continue(s, &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "is complete");
    wait_phase(s, PHASE_IDLE);
    session_close(s);
    expect_messages("ended", 2);

    cfg = make_config("ended"); /* who goes past the stop ids goes past this one */
    s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_continue(s, &err), K3_OK);
    assert_int_equal(wait_for(s, EVENT_DROPPED).index, 1);
    assert_true(wait_for(s, EVENT_ANSWER_END).tokens > 2);
    session_close(s);

    cfg = make_config("open"); /* any other token: it was cut off */
    cfg.ignore_stop = false;
    write_unfinished("open.jsonl", 71);
    s = open_session(&cfg);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_continue(s, &err), K3_OK);
    assert_int_equal(wait_for(s, EVENT_DROPPED).index, 1);
    assert_true(wait_for(s, EVENT_ANSWER_END).tokens > 2);
    session_close(s);
}

static size_t files_in(const char *folder)
{
    char path[FIXTURE_PATH];
    fixture_join(path, scratch, folder);
    DIR *d = opendir(path);
    size_t n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n;
}

/* A temporary session: everything works but what needs a file, and there is none. */
static void temporary(void **state)
{
    (void)state;
    struct run_config cfg = make_config(NULL);
    struct k3_error err = {0};
    struct session_status st;
    const size_t before = files_in("k3chat/sessions");
    cfg.temporary = true;
    struct session *s = open_session(&cfg);
    wait_text(s, EVENT_NOTICE, "TEMPORARY");
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "a secret");
    session_get_status(s, &st);
    assert_true(st.temporary);
    assert_string_equal(st.session_name, "");
    assert_int_equal(session_regenerate(s, &err), K3_OK);
    wait_for(s, EVENT_ANSWER_END);
    assert_int_equal(session_edit(s, 0, "another", 7, &err), K3_OK);
    wait_for(s, EVENT_ANSWER_END);
    wait_phase(s, PHASE_IDLE);
    assert_int_equal(session_rename(s, "named", &err), K3_OK);
    wait_text(s, EVENT_NOTICE, "temporary");
    assert_int_equal(files_in("k3chat/sessions"), before);

    assert_int_equal(session_switch(s, "kept", false, &err), K3_OK); /* and back to one */
    wait_for(s, EVENT_OPENED);
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "no secret");
    session_get_status(s, &st);
    assert_false(st.temporary);
    const size_t with_kept = files_in("k3chat/sessions");
    assert_true(with_kept > before);
    assert_int_equal(session_switch(s, NULL, false, &err), K3_OK);
    wait_for(s, EVENT_OPENED);
    wait_text(s, EVENT_NOTICE, "TEMPORARY");
    wait_phase(s, PHASE_IDLE);
    one_turn(s, "a secret");
    assert_int_equal(session_send(s, "queued", 6, &err), K3_OK);
    session_close(s);
    assert_int_equal(files_in("k3chat/sessions"), with_kept);
    assert_int_equal(saved_delete("kept", &err), K3_OK);
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
        cmocka_unit_test(to_another_and_back),
        cmocka_unit_test(queued_behind_a_switch),
        cmocka_unit_test(to_a_damaged_one),
        cmocka_unit_test(without_a_model),
        cmocka_unit_test(renamed_and_deleted),
        cmocka_unit_test(a_second_one_looks_on),
        cmocka_unit_test(taken_back_and_told),
        cmocka_unit_test(from_branch_to_branch),
        cmocka_unit_test(to_a_branch_without_an_answer),
        cmocka_unit_test(ended_by_its_last_token),
        cmocka_unit_test(temporary),
    };
    return cmocka_run_group_tests_name("session_switch", tests, setup, teardown);
}
