/* test_transcript.c - the transcript on disk: reading, faults, torn ends, locks, full disks. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../src/paths.h"
#include "../src/recorder.h"
#include "fixture.h"

static char scratch[FIXTURE_PATH], sessions[FIXTURE_PATH];

#define HEADER "{\"format\":\"k3chat-transcript\",\"version\":1,\"created\":1,\"program\":\"t\"}\n"
#define MESSAGE "{\"type\":\"message\","
#define USER1 MESSAGE "\"id\":1,\"parent\":null,\"time\":10,\"role\":\"user\",\"content\":\"hi\"}\n"
#define PART2 "{\"type\":\"partial\",\"id\":2,\"parent\":1,\"time\":11,\"from\":0,\"ids\":[5,6]," \
              "\"reasoning_content\":\"hm\",\"content\":\"\",\"reasoning_tokens\":2}\n"
#define PART2B "{\"type\":\"partial\",\"id\":2,\"parent\":1,\"time\":12,\"from\":2,\"ids\":[7]," \
               "\"reasoning_content\":\"m\",\"content\":\"Yes\",\"reasoning_tokens\":2}\n"
#define DONE2 MESSAGE "\"id\":2,\"parent\":1,\"time\":11,\"role\":\"assistant\"," \
              "\"content\":\"Yes.\",\"reasoning_content\":\"hmm\",\"ids\":[5,6,7,8]," \
              "\"finish\":\"stop\",\"tokens\":4,\"reasoning_tokens\":2,\"seconds\":1.5}\n"
#define USER3 MESSAGE "\"id\":3,\"parent\":2,\"time\":13,\"role\":\"user\",\"content\":\"more\"}\n"
#define CANCEL3 "{\"type\":\"cancel\",\"id\":3,\"time\":14}\n"

static void path_of(char path[FIXTURE_PATH], const char *name, const char *suffix)
{
    char file[256];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    fixture_join(path, sessions, file);
}

static void write_session(const char *name, const char *text, size_t n)
{
    char path[FIXTURE_PATH];
    path_of(path, name, ".jsonl");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static char *read_session(const char *name, size_t *n)
{
    char file[256];
    snprintf(file, sizeof file, "%s.jsonl", name);
    return fixture_read(sessions, file, n);
}

static void expect_text(const struct message *m, const char *field, const char *want)
{
    size_t n = 0;
    const char *text = message_text(m, field, &n);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, n);
}

static struct transcript_contents parse(const char *text)
{
    struct transcript_contents c;
    struct k3_error err = {0};
    if (transcript_parse(text, strlen(text), "t.jsonl", &c, &err) != K3_OK)
        fail_msg("%s", err.message);
    return c;
}

/* ---- the reader -------------------------------------------------------------------------- */

static void a_conversation_is_read(void **state)
{
    (void)state;
    struct transcript_contents c = parse(HEADER USER1 PART2 PART2B DONE2 USER3);
    assert_int_equal(c.conversation.n, 3);
    assert_int_equal(c.last_id, 3);
    assert_int_equal(c.records, 5);
    assert_true(c.has_header && !c.torn);
    const struct message *m = c.conversation.v;
    assert_string_equal(message_role(&m[0]), "user");
    expect_text(&m[0], "content", "hi");
    assert_int_equal(m[0].time, 10);
    expect_text(&m[1], "content", "Yes.");
    expect_text(&m[1], "reasoning_content", "hmm");
    assert_int_equal(m[1].ids.n, 4);
    assert_int_equal(m[1].ids.v[3], 8);
    assert_int_equal(m[1].tokens, 4);
    assert_int_equal(m[1].reasoning_tokens, 2);
    assert_int_equal(m[1].finish, FINISH_STOP);
    assert_true(m[1].seconds == 1.5 && !m[1].unfinished);
    /* the fields of the record are not part of the message that is rendered */
    assert_null(json_object_get(m[1].body, "ids"));
    assert_null(json_object_get(m[1].body, "type"));
    assert_int_equal(json_object_size(m[1].body), 3);
    conversation_free(&c.conversation);
}

/* Killed in the midst of an answer: the partial records are the answer. */
static void partial_records_add_up(void **state)
{
    (void)state;
    struct transcript_contents c = parse(HEADER USER1 PART2 PART2B);
    assert_int_equal(c.conversation.n, 2);
    const struct message *m = &c.conversation.v[1];
    assert_true(m->unfinished);
    assert_int_equal(m->finish, FINISH_CANCELLED);
    expect_text(m, "reasoning_content", "hmm");
    expect_text(m, "content", "Yes");
    assert_int_equal(m->ids.n, 3);
    assert_int_equal(m->reasoning_tokens, 2);
    conversation_free(&c.conversation);
}

/* A message taken back is not in the conversation; a second child of a parent takes its place. */
static void withdrawn_and_branched(void **state)
{
    (void)state;
    struct transcript_contents c = parse(HEADER USER1 DONE2 USER3 CANCEL3);
    assert_int_equal(c.conversation.n, 2);
    conversation_free(&c.conversation);
    c = parse(HEADER USER1 DONE2 USER3
              "{\"type\":\"message\",\"id\":4,\"parent\":2,\"time\":20,\"role\":\"user\","
              "\"content\":\"edited\",\"name\":\"ann\"}\n");
    assert_int_equal(c.conversation.n, 3);
    expect_text(&c.conversation.v[2], "content", "edited");
    expect_text(&c.conversation.v[2], "name", "ann");
    assert_int_equal(c.last_id, 4);
    conversation_free(&c.conversation);
}

static void faults_name_file_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *part;
    } rows[] = {
        {"{}\n" USER1, "line 1", "no transcript"},
        {"[]\n" USER1, "line 1", "a record is a JSON object"},
        {"{\"format\":\"k3chat-transcript\"}\n" USER1, "line 1", "'version' is missing"},
        {"{\"format\":\"k3chat-transcript\",\"version\":2}\n" USER1, "line 1", "newer"},
        {"rubbish\n" USER1, "line 1", "no valid JSON in the middle"},
        {HEADER "{\"type\":\"mess\n" USER1, "line 2", "no valid JSON in the middle"},
        {HEADER "\n" USER1, "line 2", "no valid JSON in the middle"},
        {HEADER "[7]\n", "line 2", "a record is a JSON object"},
        {HEADER "{\"id\":1}\n", "line 2", "'type' is missing"},
        {HEADER "{\"type\":\"photo\"}\n", "line 2", "'photo' is not known"},
        {HEADER USER1 MESSAGE "\"parent\":1,\"time\":1,\"role\":\"user\"}\n", "line 3",
         "'id' is missing"},
        {HEADER MESSAGE "\"id\":\"1\",\"parent\":null,\"time\":1,\"role\":\"user\"}\n",
         "line 2", "'id' is no whole number"},
        {HEADER "{\"type\":\"message\",\"id\":0,\"parent\":null,\"time\":1,\"role\":\"user\"}\n",
         "line 2", "'id' is out of range"},
        {HEADER "{\"type\":\"message\",\"id\":1,\"time\":1,\"role\":\"user\"}\n", "line 2",
         "'parent' is missing"},
        {HEADER "{\"type\":\"message\",\"id\":1,\"parent\":1,\"time\":1,\"role\":\"user\"}\n",
         "line 2", "'parent' 1 is no earlier message"},
        {HEADER "{\"type\":\"message\",\"id\":1,\"parent\":null,\"role\":\"user\"}\n", "line 2",
         "'time' is missing"},
        {HEADER "{\"type\":\"message\",\"id\":1,\"parent\":null,\"time\":1}\n", "line 2",
         "'role' is missing"},
        {HEADER USER1 USER1, "line 3", "'id' 1 is there already"},
        {HEADER USER1 DONE2 PART2, "line 4", "'id' 2 is there already"},
        {HEADER USER1 PART2B, "line 3", "'from' is 2, but 0 tokens came before"},
        {HEADER USER1 PART2 PART2, "line 4", "'from' is 0, but 2 tokens came before"},
        {HEADER USER1 DONE2 USER3 PART2, "line 5", "'id' 2 is there already"},
        {HEADER USER1 "{\"type\":\"cancel\",\"id\":9,\"time\":1}\n", "line 3", "'id' 9"},
        {HEADER USER1 "{\"type\":\"partial\",\"id\":2,\"parent\":1,\"time\":1,\"from\":0,"
                      "\"ids\":[-1]}\n",
         "line 3", "no token id"},
        {HEADER USER1 "{\"type\":\"partial\",\"id\":2,\"parent\":1,\"time\":1,\"from\":0,"
                      "\"ids\":7}\n",
         "line 3", "'ids' is no array"},
        {HEADER USER1 MESSAGE "\"id\":2,\"parent\":1,\"time\":1,\"role\":\"assistant\","
                      "\"finish\":\"bored\"}\n",
         "line 3", "'finish' is none of"},
        {HEADER USER1 "{\"type\":\"message\",\"id\":2,\"id\":3,\"parent\":1,\"time\":1,"
                      "\"role\":\"user\"}\n" USER3,
         "line 3", "duplicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct transcript_contents c;
        struct k3_error err = {0};
        const enum k3_status status =
            transcript_parse(rows[i].text, strlen(rows[i].text), "t.jsonl", &c, &err);
        if (status != K3_FAILED || strstr(err.message, "t.jsonl") == NULL ||
            strstr(err.message, rows[i].where) == NULL || strstr(err.message, rows[i].part) == NULL)
            fail_msg("row %zu: status %d, '%s' lacks '%s' or '%s'", i, (int)status, err.message,
                     rows[i].where, rows[i].part);
    }
}

/* Any byte of a good file changed: read or refused, and no report from the sanitizers. */
static void changed_bytes_end_in_a_message(void **state)
{
    (void)state;
    char text[] = HEADER USER1 PART2 PART2B DONE2 USER3 CANCEL3;
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        for (int bit = 0; bit < 8; bit += 3) {
            struct transcript_contents c;
            struct k3_error err = {0};
            text[i] = (char)(text[i] ^ (1 << bit));
            if (transcript_parse(text, sizeof text - 1, "t.jsonl", &c, &err) == K3_OK)
                conversation_free(&c.conversation);
            else
                assert_non_null(strstr(err.message, "line "));
            text[i] = (char)(text[i] ^ (1 << bit));
        }
    }
}

/* ---- the file ---------------------------------------------------------------------------- */

static struct transcript *open_session(const char *name, struct conversation *c, char **notice)
{
    struct k3_error err = {0};
    memset(c, 0, sizeof *c);
    struct transcript *t = transcript_open(name, c, notice, &err);
    if (t == NULL)
        fail_msg("no session: %s", err.message);
    return t;
}

static struct recorder *open_recorder(const char *name, struct conversation *c, char **notice)
{
    struct k3_error err = {0};
    struct transcript *t = open_session(name, c, notice);
    struct recorder *r = recorder_new(t, c->n == 0 ? 0 : c->v[c->n - 1].id, NULL, NULL, &err);
    assert_non_null(r);
    return r;
}

static void say(struct recorder *r, const char *text)
{
    struct k3_error err = {0};
    struct message m = {.body = body_new("user", text, strlen(text), &err)};
    assert_non_null(m.body);
    recorder_add(r, &m);
    message_free(&m);
}

/* Cut at every byte: what was whole is there, the rest is cut off with a notice and a copy, and
 * what is recorded next can be read. */
static void truncated_at_every_byte(void **state)
{
    (void)state;
    static const char text[] = HEADER USER1 PART2 PART2B DONE2 USER3;
    for (size_t n = 0; n < sizeof text; n++) {
        struct conversation c;
        char *notice = NULL;
        size_t whole = n;
        while (whole > 0 && text[whole - 1] != '\n')
            whole--;
        write_session("torn", text, n);
        struct recorder *r = open_recorder("torn", &c, &notice);
        assert_int_equal(notice != NULL, whole != n);
        struct transcript_contents before;
        struct k3_error err = {0};
        assert_int_equal(transcript_parse(text, whole, "x", &before, &err), K3_OK);
        assert_int_equal(c.n, before.conversation.n);
        if (whole != n) {
            size_t k = 0;
            char *copy = fixture_read(sessions, "torn.jsonl.torn", &k);
            assert_int_equal(k, n - whole);
            assert_memory_equal(copy, text + whole, k);
            free(copy);
        }
        const size_t had = c.n;
        conversation_free(&before.conversation);
        conversation_free(&c);
        free(notice);
        say(r, "after");
        recorder_free(r);
        struct transcript *t = open_session("torn", &c, &notice);
        assert_null(notice);
        assert_int_equal(c.n, had + 1);
        expect_text(&c.v[had], "content", "after");
        conversation_free(&c);
        transcript_close(t);
    }
}

/* A last line of zero bytes, as file systems leave it after a power cut, is torn as well. */
static void zero_bytes_at_the_end(void **state)
{
    (void)state;
    static const char text[] = HEADER USER1 "\0\0\0\0\0\0\0\0";
    struct conversation c;
    char *notice = NULL;
    write_session("zero", text, sizeof text - 1);
    transcript_close(open_session("zero", &c, &notice));
    assert_non_null(notice);
    assert_int_equal(c.n, 1);
    free(notice);
    conversation_free(&c);
    size_t n = 0;
    char *now = read_session("zero", &n);
    assert_int_equal(n, strlen(HEADER USER1));
    free(now);
}

/* Damage in the middle: refused, and not a byte of the file is changed. */
static void damage_in_the_middle_is_left_alone(void **state)
{
    (void)state;
    static const char text[] = HEADER "{\"type\":\"mess\n" USER1 "{\"to";
    struct conversation c = {0};
    struct k3_error err = {0};
    char *notice = NULL;
    write_session("damaged", text, sizeof text - 1);
    assert_null(transcript_open("damaged", &c, &notice, &err));
    assert_int_equal(err.status, K3_FAILED);
    assert_non_null(strstr(err.message, "damaged.jsonl: line 2"));
    size_t n = 0;
    char *now = read_session("damaged", &n);
    assert_int_equal(n, sizeof text - 1);
    assert_memory_equal(now, text, n);
    free(now);
}

static void modes_names_and_empty_sessions(void **state)
{
    (void)state;
    struct conversation c;
    char *notice = NULL, path[FIXTURE_PATH];
    struct stat st;
    struct recorder *r = open_recorder("modes", &c, &notice);
    path_of(path, "modes", ".jsonl");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(sessions, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    recorder_free(r);
    assert_int_not_equal(stat(path, &st), 0); /* nothing was said: nothing is left */

    /* without a name: one made of the time, and another for the next */
    struct transcript *a = open_session(NULL, &c, &notice);
    struct transcript *b = open_session(NULL, &c, &notice);
    assert_string_not_equal(transcript_name(a), transcript_name(b));
    struct k3_error err;
    assert_int_equal(transcript_check_name(transcript_name(b), &err), K3_OK);
    transcript_close(a);
    transcript_close(b);

    static const char *const bad[] = {"", "a/b", "/", ".", "..", ".x", "a\nb", "\x1b[2J", "\xff",
                                      "a\xc3", "\xc2\x9b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(transcript_check_name(bad[i], &err), K3_USAGE);
    char longest[TRANSCRIPT_NAME_MAX + 2];
    memset(longest, 'n', sizeof longest);
    longest[TRANSCRIPT_NAME_MAX + 1] = '\0';
    assert_int_equal(transcript_check_name(longest, &err), K3_USAGE);
    longest[TRANSCRIPT_NAME_MAX] = '\0';
    assert_int_equal(transcript_check_name(longest, &err), K3_OK);
    assert_int_equal(transcript_check_name("Gespr\xc3\xa4" "ch 1", &err), K3_OK);
}

static void a_second_process_is_refused(void **state)
{
    (void)state;
    struct conversation c;
    char *notice = NULL;
    struct recorder *r = open_recorder("locked", &c, &notice);
    say(r, "mine");
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct conversation other = {0};
        struct k3_error err = {0};
        char *note = NULL;
        const struct transcript *t = transcript_open("locked", &other, &note, &err);
        const bool right = t == NULL && err.status == K3_FAILED &&
                           strstr(err.message, "is open in another k3chat") != NULL;
        _exit(right ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    recorder_free(r);
    transcript_close(open_session("locked", &c, &notice)); /* free again */
    assert_int_equal(c.n, 1);
    conversation_free(&c);
}

/* An unwritable or impossible folder: refused with its name. (A plain file in the way also stops
 * root, whom permissions do not.) */
static void a_folder_that_cannot_be(void **state)
{
    (void)state;
    char file[FIXTURE_PATH];
    struct conversation c = {0};
    struct k3_error err = {0};
    char *notice = NULL;
    fixture_join(file, scratch, "plain");
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    setenv("XDG_DATA_HOME", file, 1);
    assert_null(transcript_open("x", &c, &notice, &err));
    setenv("XDG_DATA_HOME", scratch, 1);
    assert_int_equal(err.status, K3_FAILED);
    assert_non_null(strstr(err.message, "plain/k3chat"));
}

/* ---- full disk --------------------------------------------------------------------------- */

static int faults, repairs;
static char fault_text[512];

static void count_fault(void *ud, const char *message)
{
    (void)ud;
    if (message == NULL) {
        repairs++;
    } else {
        faults++;
        snprintf(fault_text, sizeof fault_text, "%s", message);
    }
}

static void limit_files_to(rlim_t bytes)
{
    struct rlimit lim;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &lim), 0);
    lim.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &lim), 0);
}

/* Left with a full disk: what found no room is in a file that makes the transcript whole again. */
static void what_found_no_room_is_kept_elsewhere(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    struct conversation c;
    struct k3_error err = {0};
    struct stat st;
    char *notice = NULL, path[FIXTURE_PATH];
    setenv("TMPDIR", scratch, 1);
    struct transcript *t = open_session("rest", &c, &notice);
    struct recorder *r = recorder_new(t, 0, count_fault, NULL, &err);
    say(r, "first");
    path_of(path, "rest", ".jsonl");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(recorder_save(r, &err), K3_OK);
    limit_files_to((rlim_t)st.st_size);
    say(r, "second");
    assert_true(recorder_failing(r));
    assert_int_equal(recorder_save(r, &err), K3_FAILED);
    limit_files_to(RLIM_INFINITY);
    recorder_free(r);
    assert_int_equal(stat(path, &st), 0);
    char *rest = strstr(err.message, "but in ");
    assert_non_null(rest);
    rest += strlen("but in ");
    *strchr(rest, ':') = '\0';
    size_t n = 0;
    char *text = path_read_file(rest, 1 << 20, &n, &err);
    assert_non_null(text);
    FILE *f = fopen(path, "a");
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(text);
    t = open_session("rest", &c, &notice);
    assert_null(notice);
    assert_int_equal(c.n, 2);
    expect_text(&c.v[1], "content", "second");
    conversation_free(&c);
    transcript_close(t);
    unsetenv("TMPDIR");
}

/* For each number of bytes that still fit: one error, a file of whole records, and everything there
 * once there is room again. */
static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t room = 0; room < 200; room += 7) {
        struct conversation c;
        struct k3_error err = {0};
        struct stat st;
        char *notice = NULL, path[FIXTURE_PATH];
        faults = repairs = 0;
        struct transcript *t = open_session("full", &c, &notice);
        struct recorder *r = recorder_new(t, 0, count_fault, NULL, &err);
        assert_non_null(r);
        say(r, "first");
        path_of(path, "full", ".jsonl");
        assert_int_equal(stat(path, &st), 0);
        limit_files_to((rlim_t)st.st_size + room);
        say(r, "second, which does not fit any more because of its one hundred and more letters, "
               "all of which are here only to make the record longer than what may be written now");
        say(r, "third");
        limit_files_to(RLIM_INFINITY);
        assert_int_equal(faults, 1);
        assert_int_equal(repairs, 0);
        assert_non_null(strstr(fault_text, "full.jsonl: "));
        struct stat now;
        assert_int_equal(stat(path, &now), 0);
        assert_int_equal(now.st_size, st.st_size);
        say(r, "fourth");
        assert_int_equal(repairs, 1);
        recorder_free(r);
        t = open_session("full", &c, &notice);
        assert_null(notice);
        assert_int_equal(c.n, 4);
        expect_text(&c.v[2], "content", "third");
        assert_int_equal(c.v[3].parent, c.v[2].id);
        conversation_free(&c);
        transcript_close(t);
        assert_int_equal(unlink(path), 0);
    }
}

/* Stands before the C library's (linked with --wrap): a file system that shortens no file. */
static bool cuts_refused;
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    if (!cuts_refused)
        return __real_ftruncate(fd, size);
    errno = EIO;
    return -1;
}

/* The beginning of a record that could not be cut off gets nothing behind it: that would be damage in the
 * middle, with which the file cannot be opened any more. */
static void a_remnant_has_nothing_behind_it(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    struct conversation c;
    struct k3_error err = {0};
    struct stat st, now;
    char *notice = NULL, path[FIXTURE_PATH];
    struct transcript *t = open_session("remnant", &c, &notice);
    struct recorder *r = recorder_new(t, 0, count_fault, NULL, &err);
    say(r, "first");
    path_of(path, "remnant", ".jsonl");
    assert_int_equal(stat(path, &st), 0);
    cuts_refused = true;
    limit_files_to((rlim_t)st.st_size + 9);
    say(r, "second");
    limit_files_to(RLIM_INFINITY);
    say(r, "third");
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(now.st_size, st.st_size + 9);
    cuts_refused = false;
    say(r, "fourth");
    recorder_free(r);
    t = open_session("remnant", &c, &notice);
    assert_null(notice);
    assert_int_equal(c.n, 4);
    expect_text(&c.v[1], "content", "second");
    conversation_free(&c);
    transcript_close(t);
}

/* Stands before the C library's: something happens between opening a file and locking it. */
static char lost_path[FIXTURE_PATH];
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
    if (lost_path[0] != '\0')
        assert_int_equal(unlink(lost_path), 0);
    lost_path[0] = '\0';
    return __real_flock(fd, operation);
}

/* The other program leaves a session that it never used, just when this one opens it. */
static void a_file_that_goes_while_it_is_opened(void **state)
{
    (void)state;
    struct conversation c;
    char *notice = NULL, path[FIXTURE_PATH];
    transcript_close(open_session("going", &c, &notice));
    path_of(path, "going", ".jsonl");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    memcpy(lost_path, path, sizeof lost_path);
    struct recorder *r = open_recorder("going", &c, &notice);
    assert_int_equal(lost_path[0], '\0');
    say(r, "still there");
    recorder_free(r);
    transcript_close(open_session("going", &c, &notice));
    assert_int_equal(c.n, 1);
    expect_text(&c.v[0], "content", "still there");
    conversation_free(&c);
}

/* ---- the recorder ------------------------------------------------------------------------ */

/* What has been shown is on disk after eight tokens at the latest, without any help. */
static void partial_records_come_in_time(void **state)
{
    (void)state;
    struct conversation c, seen;
    char *notice = NULL;
    struct recorder *r = open_recorder("partial", &c, &notice);
    say(r, "count");
    recorder_begin(r, NULL);
    for (int i = 0; i < 20; i++) {
        recorder_content(r, "x", 1);
        recorder_token(r, 100 + i, false);
        struct transcript_contents now;
        struct k3_error err = {0};
        size_t n = 0;
        char *text = read_session("partial", &n);
        assert_int_equal(transcript_parse(text, n, "p", &now, &err), K3_OK);
        seen = now.conversation;
        const size_t saved = seen.n < 2 ? 0 : seen.v[1].ids.n;
        assert_true((size_t)i + 1 - saved < RECORDER_TOKENS);
        assert_true(saved == 0 || seen.v[1].ids.v[saved - 1] == 100 + (int)saved - 1);
        conversation_free(&seen);
        free(text);
    }
    struct k3_error err = {0};
    struct message m = {.body = body_new("assistant", "the whole", 9, &err), .tokens = 20};
    recorder_end(r, &m, NULL);
    message_free(&m);
    say(r, "thanks");
    recorder_free(r);
    transcript_close(open_session("partial", &c, &notice));
    assert_int_equal(c.n, 3);
    expect_text(&c.v[1], "content", "the whole");
    assert_false(c.v[1].unfinished);
    conversation_free(&c);
}

static void withdrawing(void **state)
{
    (void)state;
    struct conversation c;
    char *notice = NULL;
    struct k3_error err = {0};
    struct recorder *r = open_recorder("withdraw", &c, &notice);
    say(r, "kept");
    struct message m = {.body = body_new("user", "taken back", 10, &err)};
    recorder_add(r, &m);
    recorder_withdraw(r, &m);
    message_free(&m);
    recorder_free(r);

    /* put off: still there when nothing follows, gone when something does */
    for (int followed = 0; followed < 2; followed++) {
        r = open_recorder("withdraw", &c, &notice);
        assert_int_equal(c.n, 1);
        recorder_withdraw_later(r, &c.v[0]);
        if (followed)
            say(r, "instead");
        conversation_free(&c);
        recorder_free(r);
    }
    transcript_close(open_session("withdraw", &c, &notice));
    assert_int_equal(c.n, 1);
    expect_text(&c.v[0], "content", "instead");
    assert_int_equal(c.v[0].parent, 0);
    conversation_free(&c);
}

/* Bytes that are no text, zero characters, and text that looks like records. */
static void any_text_survives(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
        size_t n, k;
    } rows[] = {
        {"a\0b", "a\0b", 3, 3},
        {"\xff\xfe" "x", "\xef\xbf\xbd\xef\xbf\xbdx", 3, 7},
        {"half \xe2\x82", "half \xef\xbf\xbd", 7, 8},
        {"line\n" CANCEL3, "line\n" CANCEL3, 4 + sizeof CANCEL3, 4 + sizeof CANCEL3},
        {"\xf0\x9f\x99\x82\x1b[31m", "\xf0\x9f\x99\x82\x1b[31m", 9, 9},
    };
    struct conversation c;
    char *notice = NULL;
    struct recorder *r = open_recorder("any", &c, &notice);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct k3_error err = {0};
        struct message m = {.body = body_new("user", rows[i].in, rows[i].n, &err)};
        assert_non_null(m.body);
        recorder_add(r, &m);
        message_free(&m);
    }
    recorder_free(r);
    transcript_close(open_session("any", &c, &notice));
    assert_int_equal(c.n, sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < c.n; i++) {
        size_t n = 0;
        const char *text = message_text(&c.v[i], "content", &n);
        assert_int_equal(n, rows[i].k);
        assert_memory_equal(text, rows[i].out, n);
    }
    conversation_free(&c);
}

static int setup(void **state)
{
    (void)state;
    fixture_scratch(scratch);
    setenv("XDG_DATA_HOME", scratch, 1);
    fixture_join(sessions, scratch, "k3chat/sessions");
    struct conversation c = {0};
    char *notice = NULL;
    transcript_close(open_session("first", &c, &notice)); /* makes the folders */
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
        cmocka_unit_test(a_conversation_is_read),
        cmocka_unit_test(partial_records_add_up),
        cmocka_unit_test(withdrawn_and_branched),
        cmocka_unit_test(faults_name_file_and_line),
        cmocka_unit_test(changed_bytes_end_in_a_message),
        cmocka_unit_test(truncated_at_every_byte),
        cmocka_unit_test(zero_bytes_at_the_end),
        cmocka_unit_test(damage_in_the_middle_is_left_alone),
        cmocka_unit_test(modes_names_and_empty_sessions),
        cmocka_unit_test(a_second_process_is_refused),
        cmocka_unit_test(a_folder_that_cannot_be),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_remnant_has_nothing_behind_it),
        cmocka_unit_test(a_file_that_goes_while_it_is_opened),
        cmocka_unit_test(what_found_no_room_is_kept_elsewhere),
        cmocka_unit_test(partial_records_come_in_time),
        cmocka_unit_test(withdrawing),
        cmocka_unit_test(any_text_survives),
    };
    return cmocka_run_group_tests_name("transcript", tests, setup, teardown);
}
