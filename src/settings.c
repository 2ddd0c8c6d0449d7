/* settings.c - see settings.h. */
#include <config.h>

#include "settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "settings_files.h"
#include "size.h"
#include "transcript.h"

#define CONTEXT_MAX (1u << 24)

void request_init(struct request *r)
{
    memset(r, 0, sizeof *r);
    run_config_init(&r->run);
    settings_files_init(r);
}

void request_free(struct request *r)
{
    run_config_free(&r->run);
}

/* ---- values ------------------------------------------------------------------------------ */

static enum k3_status bad(struct k3_error *err, const char *value, const char *why)
{
    return k3_fail(err, K3_USAGE, "'%s' is %s", value, why);
}

enum k3_status settings_keep(struct request *r, const char *value, const char **out,
                             struct k3_error *err)
{
    if (value[0] == '\0')
        return k3_fail(err, K3_USAGE, "the value is empty");
    *out = run_config_keep(&r->run, value, err);
    return *out == NULL ? err->status : K3_OK;
}

static bool is_auto(const char *value)
{
    return strcmp(value, "auto") == 0;
}

static enum k3_status take_u64(const char *value, uint64_t min, uint64_t max, uint64_t *out,
                               struct k3_error *err)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long v = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0')
        return bad(err, value, "not a whole number");
    if (errno == ERANGE || v < min || v > max)
        return k3_fail(err, K3_USAGE, "'%s' is out of range: %llu to %llu are possible", value,
                       (unsigned long long)min, (unsigned long long)max);
    *out = v;
    return K3_OK;
}

enum k3_status settings_u32(const char *value, uint32_t min, uint32_t max, uint32_t *out,
                            struct k3_error *err)
{
    uint64_t v = 0;
    if (take_u64(value, min, max, &v, err) != K3_OK)
        return err->status;
    *out = (uint32_t)v;
    return K3_OK;
}

/* The same, with "auto" for the default (0). */
static enum k3_status take_u32_auto(const char *value, uint32_t max, uint32_t *out,
                                    struct k3_error *err)
{
    if (is_auto(value)) {
        *out = 0;
        return K3_OK;
    }
    return settings_u32(value, 1, max, out, err);
}

static enum k3_status take_size(const char *value, uint64_t min, uint64_t *out,
                                struct k3_error *err)
{
    const char *why = NULL;
    uint64_t bytes = 0;
    if (!size_parse(value, &bytes, &why))
        return bad(err, value, why);
    if (bytes < min)
        return k3_fail(err, K3_USAGE, "'%s' is too small: at least %llu bytes", value,
                       (unsigned long long)min);
    *out = bytes;
    return K3_OK;
}

enum k3_status settings_real(const char *value, double *out, struct k3_error *err)
{
    char *end = NULL;
    const double v = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(v))
        return bad(err, value, "not a number");
    *out = v;
    return K3_OK;
}

struct word {
    const char *name;
    int value;
};

/* One of a few words; the message lists them. */
static enum k3_status take_word(const char *value, const struct word *words, size_t n, int *out,
                                struct k3_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(value, words[i].name) == 0) {
            *out = words[i].value;
            return K3_OK;
        }
    }
    char list[256] = "";
    for (size_t i = 0; i < n; i++) {
        strncat(list, i == 0 ? "" : i + 1 < n ? ", " : " or ", sizeof list - strlen(list) - 1);
        strncat(list, words[i].name, sizeof list - strlen(list) - 1);
    }
    return k3_fail(err, K3_USAGE, "'%s' is not known: say %s", value, list);
}

#define TAKE_WORD(value, words, out, err) \
    take_word(value, words, sizeof(words) / sizeof(words)[0], out, err)

/* ---- model and machine ------------------------------------------------------------------- */

static enum k3_status set_model(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->run.engine.model_dir, err);
}

static enum k3_status set_profile(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->profile, err);
}

static enum k3_status set_name(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->run.profile_name, err);
}

static enum k3_status set_budget(struct request *r, const char *v, struct k3_error *err)
{
    if (is_auto(v)) {
        r->run.engine.budget = 0;
        return K3_OK;
    }
    return take_size(v, 1, &r->run.engine.budget, err);
}

static enum k3_status set_context(struct request *r, const char *v, struct k3_error *err)
{
    return take_u32_auto(v, CONTEXT_MAX, &r->run.engine.context, err);
}

static enum k3_status set_threads(struct request *r, const char *v, struct k3_error *err)
{
    return take_u32_auto(v, 1024, &r->run.engine.threads, err);
}

static enum k3_status set_chunk(struct request *r, const char *v, struct k3_error *err)
{
    return take_u32_auto(v, 1u << 16, &r->run.engine.chunk, err);
}

static enum k3_status set_isa(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", K3_ISA_AUTO},
                                        {"scalar", K3_ISA_SCALAR},
                                        {"avx2", K3_ISA_AVX2},
                                        {"avx512", K3_ISA_AVX512},
                                        {"neon", K3_ISA_NEON}};
    int isa = 0;
    if (TAKE_WORD(v, words, &isa, err) != K3_OK)
        return err->status;
    r->run.engine.isa = (enum k3_isa)isa;
    return K3_OK;
}

static enum k3_status set_io(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", K3_IO_AUTO},
                                        {"uring", K3_IO_URING},
                                        {"direct", K3_IO_DIRECT},
                                        {"buffered", K3_IO_BUFFERED}};
    int io = 0;
    if (TAKE_WORD(v, words, &io, err) != K3_OK)
        return err->status;
    r->run.engine.io = (enum k3_io_kind)io;
    return K3_OK;
}

static enum k3_status set_depth(struct request *r, const char *v, struct k3_error *err)
{
    return take_u32_auto(v, 1024, &r->run.engine.io_depth, err);
}

static enum k3_status set_ring(struct request *r, const char *v, struct k3_error *err)
{
    if (is_auto(v)) {
        r->run.engine.ring = 0;
        return K3_OK;
    }
    return take_size(v, 1, &r->run.engine.ring, err);
}

static enum k3_status set_experts(struct request *r, const char *v, struct k3_error *err)
{
    if (is_auto(v)) {
        r->run.engine.experts = UINT64_MAX;
        return K3_OK;
    }
    return take_size(v, 0, &r->run.engine.experts, err);
}

static enum k3_status set_policy(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"quota", K3_POLICY_QUOTA}, {"lru", K3_POLICY_LRU}};
    int policy = 0;
    if (TAKE_WORD(v, words, &policy, err) != K3_OK)
        return err->status;
    r->run.engine.policy = (enum k3_policy)policy;
    return K3_OK;
}

static enum k3_status set_simulate(struct request *r, const char *v, struct k3_error *err)
{
    return take_size(v, 1, &r->run.engine.simulate_rate, err);
}

static enum k3_status set_check_reads(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->run.engine.check_reads = true;
    return K3_OK;
}

/* ---- the answer -------------------------------------------------------------------------- */

static enum k3_status set_thinking(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"off", K3_THINK_OFF},
                                        {"low", K3_THINK_LOW},
                                        {"high", K3_THINK_HIGH},
                                        {"max", K3_THINK_MAX}};
    int t = 0;
    if (TAKE_WORD(v, words, &t, err) != K3_OK)
        return err->status;
    r->run.thinking = (enum k3_thinking)t;
    return K3_OK;
}

static enum k3_status set_temperature(struct request *r, const char *v, struct k3_error *err)
{
    double t = 0;
    if (settings_real(v, &t, err) != K3_OK)
        return err->status;
    if (t < 0 || t > 100)
        return bad(err, v, "out of range: 0 (greedy) to 100 are possible");
    r->run.sampling.temperature = (float)t;
    r->run.sampling.greedy = t == 0;
    return K3_OK;
}

static enum k3_status set_top_p(struct request *r, const char *v, struct k3_error *err)
{
    double p = 0;
    if (settings_real(v, &p, err) != K3_OK)
        return err->status;
    if (p <= 0 || p > 1)
        return bad(err, v, "out of range: more than 0, at most 1");
    r->run.sampling.greedy = r->run.sampling.temperature == 0;
    r->run.sampling.top_p = (float)p;
    return K3_OK;
}

static enum k3_status set_seed(struct request *r, const char *v, struct k3_error *err)
{
    r->run.sampling.greedy = r->run.sampling.temperature == 0;
    return take_u64(v, 0, INT64_MAX, &r->run.sampling.seed, err);
}

static void turn_sampling_on(struct request *r)
{
    r->run.sampling.greedy = r->run.sampling.temperature == 0;
}

static enum k3_status set_top_k(struct request *r, const char *v, struct k3_error *err)
{
    turn_sampling_on(r);
    return settings_u32(v, 0, CONTEXT_MAX, &r->run.sampling.top_k, err);
}

static enum k3_status set_min_p(struct request *r, const char *v, struct k3_error *err)
{
    double p = 0;
    if (settings_real(v, &p, err) != K3_OK)
        return err->status;
    if (p < 0 || p > 1)
        return bad(err, v, "out of range: 0 (off) to 1");
    turn_sampling_on(r);
    r->run.sampling.min_p = (float)p;
    return K3_OK;
}

static enum k3_status set_penalty(struct request *r, const char *v, struct k3_error *err)
{
    double p = 0;
    if (settings_real(v, &p, err) != K3_OK)
        return err->status;
    if (p < 0.01 || p > 100)
        return bad(err, v, "out of range: 0.01 to 100; 1 is off");
    turn_sampling_on(r);
    r->run.sampling.repetition_penalty = (float)p;
    return K3_OK;
}

static enum k3_status set_max_tokens(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 1, CONTEXT_MAX, &r->run.max_tokens, err);
}

static enum k3_status one_of_two(struct k3_error *err)
{
    return k3_fail(err, K3_USAGE, "a temporary chat has no file that --session could name; give "
                                  "--session or --temporary");
}

static enum k3_status set_temporary(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    r->run.temporary = true;
    return r->run.session_name == NULL ? K3_OK : one_of_two(err);
}

static enum k3_status set_session(struct request *r, const char *v, struct k3_error *err)
{
    if (r->run.temporary)
        return one_of_two(err);
    if (transcript_check_name(v, err) != K3_OK)
        return err->status;
    return settings_keep(r, v, &r->run.session_name, err);
}

static enum k3_status set_states(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 0, 1000, &r->run.states_keep, err);
}

static enum k3_status set_state_disk(struct request *r, const char *v, struct k3_error *err)
{
    return take_size(v, 0, &r->run.states_disk, err);
}

static enum k3_status set_state_every(struct request *r, const char *v, struct k3_error *err)
{
    double minutes = 0;
    if (settings_real(v, &minutes, err) != K3_OK)
        return err->status;
    if (minutes < 0 || minutes > 100000)
        return bad(err, v, "out of range: minutes, 0 (off) to 100000");
    r->run.save_every = 60 * minutes;
    return K3_OK;
}

static enum k3_status set_ask_reread(struct request *r, const char *v, struct k3_error *err)
{
    double seconds = 0;
    if (settings_real(v, &seconds, err) != K3_OK)
        return err->status;
    if (seconds < 0 || seconds > 10000000)
        return bad(err, v, "out of range: seconds, 0 (never ask) to 10000000");
    r->run.ask_reread = seconds;
    return K3_OK;
}

static enum k3_status set_sync(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"messages", RUN_SYNC_MESSAGES},
                                        {"partials", RUN_SYNC_PARTIALS},
                                        {"never", RUN_SYNC_NEVER}};
    int sync = 0;
    if (TAKE_WORD(v, words, &sync, err) != K3_OK)
        return err->status;
    r->run.sync = (enum run_sync)sync;
    return K3_OK;
}

/* ---- batch ------------------------------------------------------------------------------- */

static enum k3_status set_batch(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->batch = true;
    return K3_OK;
}

static enum k3_status set_prompt(struct request *r, const char *v, enum prompt_kind kind,
                                 const char *option, struct k3_error *err)
{
    if (r->todo.kind != PROMPT_NONE)
        return k3_fail(err, K3_USAGE, "%s was given already; one prompt is possible",
                       r->todo.prompt_option);
    r->todo.kind = kind;
    r->todo.prompt_option = option;
    r->todo.text = run_config_keep(&r->run, v, err);
    return r->todo.text == NULL ? err->status : K3_OK;
}

static enum k3_status set_ids(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_IDS, "--ids", err);
}

static enum k3_status set_ids_file(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_IDS_FILE, "--ids-file", err);
}

static enum k3_status set_prompt_text(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_TEXT, "--prompt", err);
}

static enum k3_status set_prompt_file(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_TEXT_FILE, "--prompt-file", err);
}

static enum k3_status set_chat(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_CHAT, "--chat", err);
}

static enum k3_status set_continue(struct request *r, const char *v, struct k3_error *err)
{
    r->run.continue_answer = true;
    return set_prompt(r, v, PROMPT_CONTINUE, "--continue", err);
}

static enum k3_status set_ignore_stop(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->run.ignore_stop = true;
    return K3_OK;
}

static enum k3_status set_teacher_force(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->todo.teacher_force = true;
    return K3_OK;
}

static enum k3_status set_logits(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->todo.logits_path, err);
}

static enum k3_status set_json(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->todo.json_path, err);
}

static enum k3_status set_trace(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->run.engine.trace_path, err);
}

static enum k3_status set_dump_routing(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->todo.dump_routing = true;
    return K3_OK;
}

/* ---- doctor ------------------------------------------------------------------------------ */

static enum k3_status set_measure(struct request *r, const char *v, struct k3_error *err)
{
    return take_size(v, UINT64_C(64) << 20, &r->measure, err);
}

/* ---- screen ------------------------------------------------------------------------------ */

static enum k3_status set_plain(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->run.ui.plain = true;
    return K3_OK;
}

static enum k3_status set_mode(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"full", 0}, {"plain", 1}};
    int m = 0;
    if (TAKE_WORD(v, words, &m, err) != K3_OK)
        return err->status;
    r->run.ui.plain = m != 0;
    return K3_OK;
}

static enum k3_status set_theme(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", UI_THEME_AUTO},
                                        {"dark", UI_THEME_DARK},
                                        {"light", UI_THEME_LIGHT},
                                        {"mono", UI_THEME_MONO}};
    int t = 0;
    if (TAKE_WORD(v, words, &t, err) != K3_OK)
        return err->status;
    r->run.ui.theme = (enum ui_theme)t;
    return K3_OK;
}

static enum k3_status set_graph(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", UI_GRAPH_AUTO},
                                        {"braille", UI_GRAPH_BRAILLE},
                                        {"block", UI_GRAPH_BLOCK},
                                        {"ascii", UI_GRAPH_ASCII}};
    int g = 0;
    if (TAKE_WORD(v, words, &g, err) != K3_OK)
        return err->status;
    r->run.ui.graph = (enum ui_graph)g;
    return K3_OK;
}

static enum k3_status set_notify(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"auto", UI_NOTIFY_AUTO},
                                        {"bell", UI_NOTIFY_BELL},
                                        {"osc", UI_NOTIFY_OSC},
                                        {"osc777", UI_NOTIFY_OSC777},
                                        {"off", UI_NOTIFY_OFF}};
    int n = 0;
    if (TAKE_WORD(v, words, &n, err) != K3_OK)
        return err->status;
    r->run.ui.notify = (enum ui_notify)n;
    return K3_OK;
}

static enum k3_status set_mouse(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"off", 0}, {"wheel", 1}};
    int wheel = 0;
    if (TAKE_WORD(v, words, &wheel, err) != K3_OK)
        return err->status;
    r->run.ui.mouse = wheel != 0;
    return K3_OK;
}

static enum k3_status set_history(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"on", 0}, {"off", 1}};
    int off = 0;
    if (TAKE_WORD(v, words, &off, err) != K3_OK)
        return err->status;
    r->run.ui.no_history = off != 0;
    return K3_OK;
}

static enum k3_status set_pane(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {
        {"timing", 0}, {"disk", 1}, {"hits", 2}, {"experts", 3}, {"memory", 4}};
    int i = 0;
    if (TAKE_WORD(v, words, &i, err) != K3_OK)
        return err->status;
    if (r->run.ui.n_panes == UI_MAX_PANES)
        return k3_fail(err, K3_USAGE, "more than %d panes", UI_MAX_PANES);
    r->run.ui.panes[r->run.ui.n_panes++] = words[i].name;
    return K3_OK;
}

/* "NAME KEY"; the screen knows which there are. */
static enum k3_status set_key(struct request *r, const char *v, struct k3_error *err)
{
    struct ui_config *ui = &r->run.ui;
    const char *blank = strchr(v, ' ');
    if (blank == NULL)
        return bad(err, v, "a name and a key belong here");
    if (ui->n_keys == UI_MAX_KEYS)
        return k3_fail(err, K3_USAGE, "more than %d keys", UI_MAX_KEYS);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(blank - v), v);
    struct ui_key *k = &ui->keys[ui->n_keys];
    if (settings_keep(r, name, &k->action, err) != K3_OK ||
        settings_keep(r, blank + 1, &k->key, err) != K3_OK ||
        settings_keep(r, r->place == NULL ? "" : r->place, &k->where, err) != K3_OK)
        return err->status;
    ui->n_keys++;
    return K3_OK;
}

/* ---- the table --------------------------------------------------------------------------- */

#define ANY (FOR_BOTH | FOR_DOCTOR)

const struct setting settings[] = {
    {"model", "model.path", "DIR", "checkpoint in the released layout (none: the demo model)",
     ANY | FOR_VERIFY, SHAPE_PATH, set_model},
    {"profile", NULL, "NAME", "profile: a name, or a YAML file (with a '/' or ending in .yaml)",
     ANY, SHAPE_ONE, set_profile},
    {NULL, "name", "NAME", "what the screen calls this profile", 0, SHAPE_ONE, set_name},
    {"budget", "memory.budget", "SIZE", "memory the whole process may use: 8GB, 8GiB, 500MB ...",
     ANY, SHAPE_ONE, set_budget},
    {"context", "memory.context", "N", "positions to have room for (4096)", ANY, SHAPE_ONE,
     set_context},
    {"threads", "compute.threads", "N", "compute threads (the physical cores)", ANY, SHAPE_ONE,
     set_threads},
    {"chunk", "compute.chunk", "N", "tokens of a prompt that are read together", ANY, SHAPE_ONE,
     set_chunk},
    {"isa", "compute.isa", "SET", "kernels: auto, scalar, avx2, avx512 or neon", ANY, SHAPE_ONE,
     set_isa},
    {"io", "io.backend", "KIND", "reading: auto, uring, direct or buffered", ANY, SHAPE_ONE,
     set_io},
    {"depth", "io.depth", "N", "reads in flight per disk (16)", ANY, SHAPE_ONE, set_depth},
    {"ring", "memory.ring", "SIZE", "memory for trunk blocks on their way (auto)", ANY, SHAPE_ONE,
     set_ring},
    {"experts", "memory.experts", "SIZE", "memory for resident experts (auto)", ANY, SHAPE_ONE,
     set_experts},
    {"expert-policy", NULL, "NAME", "which experts stay: quota or lru", ANY, SHAPE_ONE, set_policy},
    {"simulate-disk", NULL, "RATE", "read no faster than RATE bytes a second (300MB)", ANY,
     SHAPE_ONE, set_simulate},
    {"check-reads", NULL, NULL, "compare what is read with the checkpoint's list of blocks", ANY,
     SHAPE_ONE, set_check_reads},
    {"thinking", "generation.thinking", "EFFORT", "off, low, high or max (max)", FOR_BOTH,
     SHAPE_ONE, set_thinking},
    {"temperature", "generation.temperature", "X", "draw at this temperature; 0 is greedy",
     FOR_BOTH, SHAPE_ONE, set_temperature},
    {"top-p", "generation.top_p", "P", "draw from the smallest set of this probability", FOR_BOTH,
     SHAPE_ONE, set_top_p},
    {"top-k", "generation.top_k", "N", "draw from the N most likely (0: all)", FOR_BOTH, SHAPE_ONE,
     set_top_k},
    {"min-p", "generation.min_p", "P", "leave out what is less likely than P times the likeliest",
     FOR_BOTH, SHAPE_ONE, set_min_p},
    {"repetition-penalty", "generation.repetition_penalty", "X",
     "make tokens that are there already less likely (1: off)", FOR_BOTH, SHAPE_ONE, set_penalty},
    {"seed", "generation.seed", "N", "draw with this seed (0); the same seed, the same answer",
     FOR_BOTH, SHAPE_ONE, set_seed},
    {"max-tokens", "generation.max_tokens", "N", "longest answer (chat 1024, batch 64)", FOR_BOTH,
     SHAPE_ONE, set_max_tokens},
    {"session", NULL, "NAME", "transcript to continue or create", FOR_BOTH, SHAPE_ONE, set_session},
    {"temporary", NULL, NULL, "a chat that is written to no file and is gone when it is left",
     FOR_CHAT, SHAPE_ONE, set_temporary},

    {"states", "session.states", "N", "saved states of a session that stay on disk (3); 0: none",
     FOR_BOTH, SHAPE_ONE, set_states},
    {"state-disk", "session.state_disk", "SIZE", "disk for the states of all sessions (8GB)",
     FOR_BOTH, SHAPE_ONE, set_state_disk},
    {"state-every", "session.state_every", "MINUTES",
     "save the state within an answer that often (30); 0: at its end only", FOR_BOTH, SHAPE_ONE,
     set_state_every},
    {"ask-reread", "session.ask_reread", "SECONDS",
     "ask before reading again what takes longer (60); 0: never ask", FOR_CHAT, SHAPE_ONE,
     set_ask_reread},
    {NULL, "session.sync", "WHEN", "sync the transcript with: messages, partials or never", 0,
     SHAPE_ONE, set_sync},

    {"batch", NULL, NULL, "one run without a screen", FOR_BATCH, SHAPE_ONE, set_batch},
    {"ids", NULL, "1,2,3", "prompt as token ids; no tokenizer is loaded", FOR_BATCH, SHAPE_ONE,
     set_ids},
    {"ids-file", NULL, "FILE", "the same from a file", FOR_BATCH, SHAPE_ONE, set_ids_file},
    {"prompt", NULL, "TEXT", "plain text to continue", FOR_BATCH, SHAPE_ONE, set_prompt_text},
    {"prompt-file", NULL, "FILE", "the same from a file", FOR_BATCH, SHAPE_ONE, set_prompt_file},
    {"chat", NULL, "FILE", "messages to answer: one JSON object per line, or a JSON array",
     FOR_BATCH, SHAPE_ONE, set_chat},
    {"continue", NULL, NULL, "go on with the last answer of --session, or answer its last message",
     FOR_BATCH, SHAPE_ONE, set_continue},
    {"ignore-stop", NULL, NULL, "go on past the stop ids", FOR_BATCH, SHAPE_ONE, set_ignore_stop},
    {"teacher-force", NULL, NULL, "no generation: the most likely id after every position",
     FOR_BATCH, SHAPE_ONE, set_teacher_force},
    {"logits", NULL, "FILE", "logits, little-endian fp32, a row for each computed position",
     FOR_BATCH, SHAPE_ONE, set_logits},
    {"json", NULL, "FILE", "the result as JSON; - is stdout instead of the text", FOR_BATCH,
     SHAPE_ONE, set_json},
    {"trace", NULL, "FILE", "the experts asked for, in order", FOR_BATCH, SHAPE_ONE, set_trace},
    {"dump-routing", NULL, NULL, "adds each position's experts to the JSON", FOR_BATCH, SHAPE_ONE,
     set_dump_routing},

    {"measure", NULL, "SIZE", "measure the disk with a temporary file of this size", FOR_DOCTOR,
     SHAPE_ONE, set_measure},

    {"plain", NULL, NULL, "lines of text instead of a screen: for screen readers, simple terminals, pipes",
     FOR_CHAT, SHAPE_ONE, set_plain},
    {NULL, "ui.mode", "NAME", "full or plain (see --plain)", 0, SHAPE_ONE, set_mode},
    {NULL, "ui.theme", "NAME", "auto, dark, light or mono", 0, SHAPE_ONE, set_theme},
    {NULL, "ui.graph", "NAME", "auto, braille, block or ascii", 0, SHAPE_ONE, set_graph},
    {NULL, "ui.notify", "NAME", "auto, bell, osc, osc777 or off", 0, SHAPE_ONE, set_notify},
    {NULL, "ui.mouse", "NAME", "off, or wheel: it scrolls; the terminal selects with Shift then", 0,
     SHAPE_ONE, set_mouse},
    {NULL, "ui.history", "WHETHER", "on or off: keep what is typed for later starts", 0, SHAPE_ONE,
     set_history},
    {NULL, "ui.panes", "LIST", "panes in order: timing, disk, hits, experts, memory", 0, SHAPE_LIST,
     set_pane},
    {NULL, "keys", "NAME: KEY", "keys of the screen: for each action one, a list, or none", 0,
     SHAPE_MAP, set_key},

    {"sha256", NULL, "[LIST]",
     "also read every file and compare its SHA-256 with a list (DIR/SHA256SUMS)", FOR_VERIFY,
     SHAPE_ONE, set_sha256},
    {"write-sums", NULL, "[LIST]", "read every file and write such a list", FOR_VERIFY, SHAPE_ONE,
     set_write_sums},
    {"write-blocks", NULL, NULL, "read every shard and write the list for --check-reads", FOR_VERIFY,
     SHAPE_ONE, set_write_blocks},
    {"afresh", NULL, NULL, "read again what an earlier run has read", FOR_VERIFY, SHAPE_ONE,
     set_afresh},

    {"endpoint", NULL, "URL",
     "server of the repository (HF_ENDPOINT, else https://huggingface.co)", FOR_FETCH, SHAPE_ONE,
     set_endpoint},
    {"revision", NULL, "NAME", "branch, tag or commit of the repository (main)", FOR_FETCH,
     SHAPE_ONE, set_revision},
    {"sums", NULL, "LIST",
     "SHA-256 sums that the files must have (FOLDER/SHA256SUMS, else the server's)", FOR_FETCH,
     SHAPE_ONE, set_sums},
    {"connections", NULL, "N", "files that are fetched side by side (4)", FOR_FETCH, SHAPE_ONE,
     set_connections},
    {"retries", NULL, "N", "tries in a row without a byte before a file is given up (8)", FOR_FETCH,
     SHAPE_ONE, set_retries},
    {"retry-wait", NULL, "SECONDS", "pause before the first of them; it doubles up to a minute (1)",
     FOR_FETCH, SHAPE_ONE, set_retry_wait},
    {"timeout", NULL, "SECONDS", "silence after which a connection counts as cut (60)", FOR_FETCH,
     SHAPE_ONE, set_timeout},
    {"dry-run", NULL, NULL, "fetch the index only, and say what else there is to fetch", FOR_FETCH,
     SHAPE_ONE, set_dry_run},
};
const size_t n_settings = sizeof settings / sizeof settings[0];
