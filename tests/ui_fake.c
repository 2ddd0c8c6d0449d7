/* ui_fake.c - the screen over a session that does what a test says, when the test says it.
 *
 * Descriptor 3 brings one command a line, descriptor 4 takes one line for each call of the screen.
 * No clock and no thread of its own: the test is the clock. Text in lines is escaped: \n, \t, \\
 * and \xHH.
 *
 *   phase NAME                          the phase, and its event
 *   set FIELD VALUE                     a figure of the status (see fields[])
 *   message ROLE TIME TOKENS TEXT       a message of the conversation; ROLE sent: one that was queued
 *   take TIME                           the oldest queued message becomes one
 *   answer TIME / think TEXT / say TEXT / end FINISH SECONDS
 *   step|prefill TOKENS SECONDS WAIT_TRUNK WAIT_EXPERTS BUSY BYTES_TRUNK BYTES_EXPERTS REQUESTS
 *                RESIDENT PREFETCHED WAITED
 *   layers FIRST REQUESTS SLOTS         counts for the layers from FIRST on
 *   dropped INDEX                       the messages from there on leave
 *   withdrawn TEXT / notice TEXT / error TEXT
 *   saved NAME USED MESSAGES TITLE      one more saved session
 *   opened                              this is another session now
 *   stderr TEXT                         something writes to stderr
 *   wake                                nothing but a reason to look
 *
 * and reports: open, send TEXT, edit INDEX TEXT, continue, regenerate, discard, branch ID, system TEXT,
 * unqueue, drop TEXT, first TEXT, cancel, decide read|view, thinking EFFORT, text TEXT, save FILE, export NAME FILE, [forget,] switch NAME, rename NAME,
 * renamed NAME to NAME, deleted NAME, closed STATUS MESSAGE. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/saved.h"
#include "../src/session.h"
#include "../ui/ui.h"

#define CONTROL_FD 3
#define REPORT_FD 4

struct session {
    struct session_status st;
    char *in;          /* bytes of the control pipe not yet carried out */
    size_t len, cap, done; /* done: of them, carried out after all */
    char *queue[64];
    size_t n_queue;
    struct k3_layer_counts layers[512];
    uint32_t first_moe;
    uint32_t n_messages; /* of the conversation */
    struct saved_session saved[64];
    size_t n_saved, saved_messages[64];
    char saved_title[64][128];
    bool unsaved;      /* the disk is full */
    bool ended;        /* the control pipe is closed */
};

static struct session fake;

/* ---- lines ------------------------------------------------------------------------------- */

static void report(const char *what, const char *text, size_t len)
{
    static FILE *f;
    if (!f && !(f = fdopen(REPORT_FD, "w")))
        abort();
    fprintf(f, "%s%s", what, len > 0 ? " " : "");
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            fputs("\\n", f);
        else if (c == '\\')
            fputs("\\\\", f);
        else if (c < 0x20)
            fprintf(f, "\\x%02x", c);
        else
            putc(c, f);
    }
    putc('\n', f);
    fflush(f);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes the escapes, in place; returns the length. */
static size_t unescape(char *s)
{
    size_t n = 0;
    for (const char *p = s; *p; p++) {
        if (*p != '\\') {
            s[n++] = *p;
        } else if (p[1] == 'x' && hex(p[2]) >= 0 && hex(p[3]) >= 0) {
            s[n++] = (char)(hex(p[2]) * 16 + hex(p[3]));
            p += 3;
        } else if (p[1]) {
            p++;
            s[n++] = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
        }
    }
    s[n] = '\0';
    return n;
}

static void put_text(struct session_event *ev, const char *s)
{
    ev->text = strdup(s);
    ev->len = ev->text ? unescape(ev->text) : 0;
}

/* ---- commands ---------------------------------------------------------------------------- */

enum type { U32, U64, DOUBLE, BOOL, TEXT };
static const struct field {
    const char *name;
    enum type type;
    void *at;
    size_t size;
} fields[] = {
    {"load_done", U64, &fake.st.load_done, 0},
    {"load_total", U64, &fake.st.load_total, 0},
    {"prompt_done", U64, &fake.st.prompt_done, 0},
    {"prompt_total", U64, &fake.st.prompt_total, 0},
    {"phase_seconds", DOUBLE, &fake.st.phase_seconds, 0},
    {"eta", DOUBLE, &fake.st.prompt_eta_s, 0},
    {"answer_tokens", U32, &fake.st.answer_tokens, 0},
    {"reasoning_tokens", U32, &fake.st.reasoning_tokens, 0},
    {"step_seconds", DOUBLE, &fake.st.step_seconds, 0},
    {"last", DOUBLE, &fake.st.last_step_seconds, 0},
    {"mean", DOUBLE, &fake.st.mean_step_seconds, 0},
    {"p95", DOUBLE, &fake.st.p95_step_seconds, 0},
    {"position", U32, &fake.st.position, 0},
    {"context", U32, &fake.st.context, 0},
    {"reread", U32, &fake.st.reread_tokens, 0},
    {"reread_seconds", DOUBLE, &fake.st.reread_seconds, 0},
    {"reread_planned", BOOL, &fake.st.reread_planned, 0},
    {"rss", U64, &fake.st.rss, 0},
    {"anon", U64, &fake.st.rss_anon, 0},
    {"peak", U64, &fake.st.peak_rss, 0},
    {"page_cache", U64, &fake.st.page_cache, 0},
    {"budget", U64, &fake.st.plan.budget, 0},
    {"plan_total", U64, &fake.st.plan.total, 0},
    {"plan_experts", U64, &fake.st.plan.experts, 0},
    {"plan_residents", U64, &fake.st.plan.residents, 0},
    {"plan_ring", U64, &fake.st.plan.ring, 0},
    {"plan_state", U64, &fake.st.plan.state, 0},
    {"plan_latent", U64, &fake.st.plan.latent, 0},
    {"plan_layers", U32, &fake.st.plan.layers, 0},
    {"expert_bytes", U64, &fake.st.metrics.expert_bytes_resident, 0},
    {"running", BOOL, &fake.st.metrics.running, 0},
    {"layer", U32, &fake.st.metrics.layer, 0},
    {"layers", U32, &fake.st.metrics.layers, 0},
    {"roof", DOUBLE, &fake.st.disk_roof, 0},
    {"simulated", BOOL, &fake.st.disk_simulated, 0},
    {"demo", BOOL, &fake.st.demo, 0},
    {"temporary", BOOL, &fake.st.temporary, 0},
    {"detail", TEXT, fake.st.detail, sizeof fake.st.detail},
    {"session", TEXT, fake.st.session_name, sizeof fake.st.session_name},
    {"profile", TEXT, fake.st.profile_name, sizeof fake.st.profile_name},
    {"model", TEXT, fake.st.model_name, sizeof fake.st.model_name},
    {"thinking", TEXT, fake.st.thinking, sizeof fake.st.thinking},
};

static void set_field(char *arg)
{
    char *value = strchr(arg, ' ');
    if (!value)
        return;
    *value++ = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        if (strcmp(f->name, arg) != 0)
            continue;
        switch (f->type) {
        case U32: *(uint32_t *)f->at = (uint32_t)strtoul(value, NULL, 10); return;
        case U64: *(uint64_t *)f->at = strtoull(value, NULL, 10); return;
        case DOUBLE: *(double *)f->at = strtod(value, NULL); return;
        case BOOL: *(bool *)f->at = *value == '1'; return;
        case TEXT:
            unescape(value);
            snprintf(f->at, f->size, "%s", value);
            return;
        }
    }
    report("no such field:", arg, strlen(arg));
}

static bool set_phase(const char *arg, struct session_event *ev)
{
    static const char *const names[] = {
        [PHASE_LOADING] = "loading", [PHASE_READING] = "reading", [PHASE_THINKING] = "thinking",
        [PHASE_ANSWERING] = "answering", [PHASE_CANCELLING] = "cancelling",
        [PHASE_SAVING] = "saving", [PHASE_IDLE] = "idle", [PHASE_FAILED] = "failed",
        [PHASE_ASKING] = "asking",
        [PHASE_VIEWING] = "viewing",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], arg) == 0)
            fake.st.phase = ev->phase = (enum session_phase)i;
    ev->kind = EVENT_PHASE;
    return true;
}

static bool make_message(char *arg, struct session_event *ev)
{
    char role[16] = "";
    long long when = 0;
    int at = 0;
    sscanf(arg, "%15s %lld %" SCNu32 " %n", role, &when, &ev->tokens, &at);
    ev->kind = EVENT_MESSAGE;
    ev->index = fake.n_messages++;
    ev->sent = strcmp(role, "sent") == 0;
    ev->role = ev->sent || strcmp(role, "user") == 0 ? ROLE_USER
               : strcmp(role, "system") == 0 ? ROLE_SYSTEM : ROLE_ASSISTANT;
    ev->time = when;
    put_text(ev, arg + at);
    return true;
}

static bool take_queued(const char *arg, struct session_event *ev)
{
    if (fake.n_queue == 0)
        return false;
    ev->kind = EVENT_MESSAGE;
    ev->index = fake.n_messages++;
    ev->role = ROLE_USER;
    ev->sent = true;
    ev->time = atoll(arg);
    ev->text = fake.queue[0];
    ev->len = strlen(ev->text);
    memmove(fake.queue, fake.queue + 1, --fake.n_queue * sizeof *fake.queue);
    return true;
}

static bool make_step(const char *arg, struct session_event *ev, enum session_event_kind kind)
{
    struct step_stats *s = &ev->step;
    ev->kind = kind;
    sscanf(arg, "%" SCNu32 " %lf %lf %lf %lf %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                " %" SCNu64 " %" SCNu64,
           &s->tokens, &s->seconds, &s->wait_trunk_s, &s->wait_experts_s, &s->device_busy_s,
           &s->bytes_trunk, &s->bytes_experts, &s->requests, &s->resident, &s->prefetched,
           &s->waited);
    return true;
}

static bool make_end(const char *arg, struct session_event *ev)
{
    static const char *const names[] = {"stop", "length", "cancelled", "error"};
    char finish[16] = "";
    ev->kind = EVENT_ANSWER_END;
    sscanf(arg, "%15s %lf", finish, &ev->seconds);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], finish) == 0)
            ev->finish = (enum session_finish)i;
    ev->tokens = fake.st.answer_tokens;
    ev->reasoning_tokens = fake.st.reasoning_tokens;
    return true;
}

/* Layers differ, so that a picture of them has a shape. */
static void set_layers(const char *arg)
{
    uint64_t requests = 0;
    uint32_t slots = 0;
    sscanf(arg, "%" SCNu32 " %" SCNu64 " %" SCNu32, &fake.first_moe, &requests, &slots);
    for (uint32_t i = fake.first_moe; i < 512; i++)
        fake.layers[i] = (struct k3_layer_counts){requests, requests * (i * 37 % 100) / 100, slots,
                                                  slots - i % 3};
}

static void add_saved(const char *arg)
{
    const size_t i = fake.n_saved;
    int at = 0;
    if (i == 64 || sscanf(arg, "%127s %" SCNd64 " %zu %n", fake.saved[i].name, &fake.saved[i].used,
                          &fake.saved_messages[i], &at) != 3)
        return;
    snprintf(fake.saved_title[i], sizeof fake.saved_title[i], "%s", arg + at);
    unescape(fake.saved_title[i]);
    fake.n_saved++;
}

static bool make_text(const char *arg, struct session_event *ev, enum session_event_kind kind)
{
    ev->kind = kind;
    put_text(ev, arg);
    return true;
}

/* True when the line makes an event. */
static bool carry_out(char *line, struct session_event *ev)
{
    char *arg = strchr(line, ' ');
    if (arg)
        *arg++ = '\0';
    else
        arg = line + strlen(line);
    *ev = (struct session_event){.kind = EVENT_PHASE, .phase = fake.st.phase};
    if (strcmp(line, "phase") == 0) return set_phase(arg, ev);
    if (strcmp(line, "message") == 0) return make_message(arg, ev);
    if (strcmp(line, "take") == 0) return take_queued(arg, ev);
    if (strcmp(line, "think") == 0) return make_text(arg, ev, EVENT_REASONING);
    if (strcmp(line, "say") == 0) return make_text(arg, ev, EVENT_CONTENT);
    if (strcmp(line, "withdrawn") == 0) return make_text(arg, ev, EVENT_WITHDRAWN);
    if (strcmp(line, "unedited") == 0) { /* INDEX TEXT */
        ev->edited = true;
        ev->index = (uint32_t)strtoul(arg, &arg, 10);
        return make_text(arg + 1, ev, EVENT_WITHDRAWN);
    }
    if (strcmp(line, "unsaved") == 0) {
        fake.unsaved = *arg != '0';
        return false;
    }
    if (strcmp(line, "notice") == 0) return make_text(arg, ev, EVENT_NOTICE);
    if (strcmp(line, "error") == 0) return make_text(arg, ev, EVENT_ERROR);
    if (strcmp(line, "step") == 0) return make_step(arg, ev, EVENT_STEP);
    if (strcmp(line, "prefill") == 0) return make_step(arg, ev, EVENT_PREFILL);
    if (strcmp(line, "end") == 0) return make_end(arg, ev);
    if (strcmp(line, "answer") == 0) {
        ev->kind = EVENT_ANSWER;
        ev->index = fake.n_messages++;
        ev->time = atoll(arg);
        return true;
    }
    if (strcmp(line, "opened") == 0) {
        ev->kind = EVENT_OPENED;
        fake.n_messages = 0;
        return true;
    }
    if (strcmp(line, "dropped") == 0) {
        ev->kind = EVENT_DROPPED;
        ev->index = fake.n_messages = (uint32_t)atoi(arg);
        return true;
    }
    if (strcmp(line, "set") == 0)
        set_field(arg);
    else if (strcmp(line, "saved") == 0)
        add_saved(arg);
    else if (strcmp(line, "layers") == 0)
        set_layers(arg);
    else if (strcmp(line, "stderr") == 0) {
        unescape(arg);
        fprintf(stderr, "%s", arg);
    } else if (strcmp(line, "wake") != 0)
        report("no such command:", line, strlen(line));
    return false;
}

/* ---- the session ------------------------------------------------------------------------- */

void session_event_free(struct session_event *ev)
{
    free(ev->text);
    free(ev->reasoning);
    ev->text = ev->reasoning = NULL;
}

int session_fd(const struct session *s)
{
    (void)s;
    return CONTROL_FD;
}

static void read_control(struct session *s)
{
    if (s->done > 0)
        memmove(s->in, s->in + s->done, s->len - s->done);
    s->len -= s->done;
    s->done = 0;
    for (;;) {
        if (s->cap - s->len < 65536) {
            s->cap = s->cap * 2 + 131072;
            s->in = realloc(s->in, s->cap);
            if (!s->in)
                abort();
        }
        const ssize_t n = read(CONTROL_FD, s->in + s->len, s->cap - s->len - 1);
        if (n > 0)
            s->len += (size_t)n;
        else if (n == 0 && !s->ended) { /* nothing more will come: a pipe that stays silent */
            int quiet[2];
            s->ended = true;
            if (pipe(quiet) != 0 || dup2(quiet[0], CONTROL_FD) < 0)
                abort();
            fcntl(CONTROL_FD, F_SETFL, O_NONBLOCK);
        } else
            return;
    }
}

bool session_next_event(struct session *s, struct session_event *ev)
{
    for (;;) {
        char *nl = s->len > s->done ? memchr(s->in + s->done, '\n', s->len - s->done) : NULL;
        if (!nl) {
            const size_t before = s->len - s->done;
            read_control(s);
            if (s->len == before)
                return false;
            continue;
        }
        char *line = s->in + s->done;
        *nl = '\0';
        s->done = (size_t)(nl + 1 - s->in);
        if (carry_out(line, ev))
            return true;
    }
}

void session_get_status(struct session *s, struct session_status *out)
{
    *out = s->st;
}

bool session_get_layer(struct session *s, uint32_t layer, struct k3_layer_counts *out)
{
    if (layer < s->first_moe || layer >= 512)
        return false;
    *out = s->layers[layer];
    return true;
}

enum k3_status session_send(struct session *s, const char *text, size_t len, struct k3_error *err)
{
    if (s->st.phase == PHASE_FAILED)
        return k3_fail(err, K3_FAILED, "the engine has stopped");
    if (s->n_queue == sizeof s->queue / sizeof *s->queue)
        return k3_fail(err, K3_FAILED, "the queue is full");
    report("send", text, len);
    s->queue[s->n_queue] = strndup(text, len);
    s->n_queue += s->queue[s->n_queue] != NULL;
    return K3_OK;
}

enum k3_status session_continue(struct session *s, struct k3_error *err)
{
    (void)s, (void)err;
    report("continue", "", 0);
    return K3_OK;
}

enum k3_status session_regenerate(struct session *s, struct k3_error *err)
{
    (void)s, (void)err;
    report("regenerate", "", 0);
    return K3_OK;
}

enum k3_status session_branch(struct session *s, int64_t tip, struct k3_error *err)
{
    char b[32];
    (void)s, (void)err;
    snprintf(b, sizeof b, "%" PRId64, tip);
    report("branch", b, strlen(b));
    return K3_OK;
}

enum k3_status session_discard(struct session *s, struct k3_error *err)
{
    (void)s, (void)err;
    report("discard", "", 0);
    return K3_OK;
}

enum k3_status session_system(struct session *s, const char *text, size_t len,
                              struct k3_error *err)
{
    (void)s, (void)err;
    report("system", text, len);
    return K3_OK;
}

enum k3_status session_switch(struct session *s, const char *name, bool forget,
                              struct k3_error *err)
{
    (void)s;
    if (name && strchr(name, '/'))
        return k3_fail(err, K3_USAGE, "no name for a session: %s", name);
    if (!name)
        name = "(temporary)";
    report(forget ? "forget, switch" : "switch", name, strlen(name));
    return K3_OK;
}

enum k3_status session_rename(struct session *s, const char *name, struct k3_error *err)
{
    (void)s, (void)err;
    report("rename", name, strlen(name));
    return K3_OK;
}

enum k3_status session_edit(struct session *s, uint32_t index, const char *text, size_t len,
                            struct k3_error *err)
{
    char b[32];
    (void)s, (void)err;
    snprintf(b, sizeof b, "edit %u", index);
    report(b, text, len);
    return K3_OK;
}

bool session_unsaved(struct session *s)
{
    return s->unsaved;
}

size_t session_queued(struct session *s)
{
    return s->n_queue;
}

char *session_unqueue(struct session *s, size_t *len)
{
    if (s->n_queue == 0)
        return NULL;
    report("unqueue", "", 0);
    *len = strlen(s->queue[--s->n_queue]);
    return s->queue[s->n_queue];
}

void session_decide(struct session *s, bool read)
{
    if (s->st.phase == PHASE_ASKING)
        report(read ? "decide read" : "decide view", "", 0);
}

static size_t find_queued(const struct session *s, const char *text)
{
    size_t i = 0;
    while (i < s->n_queue && strcmp(s->queue[i], text) != 0)
        i++;
    return i;
}

bool session_queue_drop(struct session *s, const char *text, size_t len)
{
    const size_t i = find_queued(s, text);
    report("drop", text, len);
    if (i == s->n_queue)
        return false;
    free(s->queue[i]);
    memmove(s->queue + i, s->queue + i + 1, (--s->n_queue - i) * sizeof *s->queue);
    return true;
}

bool session_queue_first(struct session *s, const char *text, size_t len)
{
    const size_t i = find_queued(s, text);
    report("first", text, len);
    if (i == s->n_queue)
        return false;
    char *q = s->queue[i];
    memmove(s->queue + 1, s->queue, i * sizeof *s->queue);
    s->queue[0] = q;
    return true;
}

void session_cancel(struct session *s)
{
    (void)s;
    report("cancel", "", 0);
}

void session_set_thinking(struct session *s, const char *effort)
{
    snprintf(s->st.thinking, sizeof s->st.thinking, "%s", effort);
    report("thinking", effort, strlen(effort));
}

/* ---- saved sessions ---------------------------------------------------------------------- */

enum k3_status saved_list(struct saved_session **list, size_t *n, struct k3_error *err)
{
    *n = fake.n_saved;
    *list = malloc((*n + 1) * sizeof **list);
    if (!*list)
        return k3_fail_memory(err, "the list", *n);
    memcpy(*list, fake.saved, *n * sizeof **list);
    return K3_OK;
}

enum k3_status saved_read(const char *name, size_t *messages, char *title, size_t cap,
                          struct k3_error *err)
{
    for (size_t i = 0; i < fake.n_saved; i++) {
        if (strcmp(fake.saved[i].name, name) != 0)
            continue;
        if (fake.saved_messages[i] == 0)
            return k3_fail(err, K3_FAILED, "%s.jsonl:7: damaged", name);
        *messages = fake.saved_messages[i];
        snprintf(title, cap, "%s", fake.saved_title[i]);
        return K3_OK;
    }
    return k3_fail(err, K3_USAGE, "there is no session '%s'", name);
}

static size_t find_saved(const char *name)
{
    size_t i = 0;
    while (i < fake.n_saved && strcmp(fake.saved[i].name, name) != 0)
        i++;
    return i;
}

enum k3_status saved_rename(const char *name, const char *new_name, struct k3_error *err)
{
    char b[300];
    if (find_saved(new_name) < fake.n_saved)
        return k3_fail(err, K3_USAGE, "%s.jsonl: File exists", new_name);
    snprintf(b, sizeof b, "renamed %s to", name);
    report(b, new_name, strlen(new_name));
    snprintf(fake.saved[find_saved(name)].name, sizeof fake.saved[0].name, "%s", new_name);
    return K3_OK;
}

enum k3_status saved_delete(const char *name, struct k3_error *err)
{
    const size_t i = find_saved(name);
    if (strcmp(name, "busy") == 0 || i == fake.n_saved)
        return k3_fail(err, K3_FAILED, "session '%s' is open in another k3chat", name);
    report("deleted", name, strlen(name));
    fake.n_saved--;
    memmove(&fake.saved[i], &fake.saved[i + 1], (fake.n_saved - i) * sizeof fake.saved[0]);
    memmove(&fake.saved_messages[i], &fake.saved_messages[i + 1],
            (fake.n_saved - i) * sizeof fake.saved_messages[0]);
    memmove(fake.saved_title[i], fake.saved_title[i + 1],
            (fake.n_saved - i) * sizeof fake.saved_title[0]);
    return K3_OK;
}

/* Two of them, always. */
enum k3_status saved_branches(const char *name, struct saved_branch **list, size_t *n,
                              struct k3_error *err)
{
    static const struct saved_branch two[] = {
        {.tip = 2, .messages = 2, .question = "asked first", .answer = "answered first"},
        {.tip = 4, .messages = 2, .current = true, .question = "asked again"},
    };
    (void)name;
    *n = 2;
    *list = malloc(sizeof two);
    if (!*list)
        return k3_fail_memory(err, "branches", sizeof two);
    memcpy(*list, two, sizeof two);
    return K3_OK;
}

/* The title stands for all that was said. */
enum k3_status saved_search(const char *name, const char *what,
                            void (*fn)(void *ud, const struct saved_hit *hit), void *ud,
                            struct k3_error *err)
{
    const size_t i = find_saved(name);
    (void)err;
    if (i < fake.n_saved && strstr(fake.saved_title[i], what))
        fn(ud, &(struct saved_hit){.message = 1, .role = "user", .excerpt = fake.saved_title[i]});
    return K3_OK;
}

static enum k3_status report_file(const char *what, const char *path, struct k3_error *err)
{
    if (strcmp(path, "full") == 0)
        return k3_fail(err, K3_FAILED, "full: no space left");
    report(what, path, strlen(path));
    return K3_OK;
}

enum k3_status saved_export(const char *name, const char *path, struct k3_error *err)
{
    char b[160];
    snprintf(b, sizeof b, "export %s", name);
    return report_file(b, path, err);
}

enum k3_status saved_write(const char *path, const char *s, size_t len, struct k3_error *err)
{
    report("text", s, len);
    return report_file("save", path, err);
}

int main(int argc, char **argv)
{
    struct ui_config cfg = {0};
    struct k3_error err = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--mono") == 0)
            cfg.theme = UI_THEME_MONO;
        else if (strcmp(argv[i], "--plain") == 0)
            cfg.plain = true;
        else if (strcmp(argv[i], "--mouse") == 0)
            cfg.mouse = true;
        else if (strcmp(argv[i], "--osc") == 0)
            cfg.notify = UI_NOTIFY_OSC;
        else if (strcmp(argv[i], "--osc777") == 0)
            cfg.notify = UI_NOTIFY_OSC777;
        else if (strcmp(argv[i], "--no-history") == 0)
            cfg.no_history = true;
        else if (strcmp(argv[i], "--graph-ascii") == 0)
            cfg.graph = UI_GRAPH_ASCII;
        else if (strcmp(argv[i], "--graph-block") == 0)
            cfg.graph = UI_GRAPH_BLOCK;
        else if (strcmp(argv[i], "--keys") == 0) {
            cfg.keys[cfg.n_keys++] = (struct ui_key){"help", "F5", "profile.yaml:3:9"};
            cfg.keys[cfg.n_keys++] = (struct ui_key){"thinking", "Alt+T", "profile.yaml:4:9"};
            cfg.keys[cfg.n_keys++] = (struct ui_key){"bare", "none", "profile.yaml:5:9"};
        }
    }
    fake.st.prompt_eta_s = -1;
    fcntl(CONTROL_FD, F_SETFL, O_NONBLOCK);
    report("open", "", 0);
    const int status = ui_run(&fake, &cfg, &err);
    char b[160];
    snprintf(b, sizeof b, "closed %d", status);
    report(b, err.message, strlen(err.message));
    if (status != 0)
        fprintf(stderr, "ui_fake: %s\n", err.message);
    for (size_t i = 0; i < fake.n_queue; i++)
        free(fake.queue[i]);
    free(fake.in);
    return status;
}
