/* decode.c - see decode.h. */
#include <config.h>

#include "decode.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "stats.h"

static void add_stop(struct timeline *t, int32_t id)
{
    for (size_t i = 0; i < t->n_stops; i++)
        if (t->stops[i] == id)
            return;
    if (id >= 0 && t->n_stops < STOP_IDS_MAX)
        t->stops[t->n_stops++] = id;
}

enum k3_status timeline_open(struct timeline *t, k3_engine *engine, const k3_tokenizer *tok,
                             const struct k3_sampling *sampling, struct k3_error *err)
{
    memset(t, 0, sizeof *t);
    const struct k3_plan *plan = k3_get_plan(engine);
    t->engine = engine;
    t->sampling = *sampling;
    t->vocab = plan->vocab;
    t->context = plan->context;
    t->n_stops = k3_stop_ids(engine, t->stops, STOP_IDS_MAX);
    if (t->n_stops > STOP_IDS_MAX)
        t->n_stops = STOP_IDS_MAX;
    if (tok != NULL) {
        add_stop(t, k3_token_special(tok, "[EOS]"));
        add_stop(t, k3_token_special(tok, "<|end_of_msg|>"));
    }
    const size_t bytes = k3_sampler_scratch(t->vocab);
    t->scratch = malloc(bytes == 0 ? 1 : bytes);
    return t->scratch == NULL ? k3_fail_memory(err, "the sampler", bytes) : K3_OK;
}

void timeline_close(struct timeline *t)
{
    k3_ids_free(&t->fed);
    free(t->scratch);
    memset(t, 0, sizeof *t);
}

bool timeline_is_stop(const struct timeline *t, int32_t id)
{
    for (size_t i = 0; i < t->n_stops; i++)
        if (t->stops[i] == id)
            return true;
    return false;
}

/* ---- reading ----------------------------------------------------------------------------- */

static enum k3_status check_ids(const struct timeline *t, const int32_t *ids, size_t n,
                                struct k3_error *err)
{
    if (n == 0)
        return k3_fail(err, K3_USAGE, "the prompt is empty: there is nothing to continue");
    if (n > t->context)
        return k3_fail(err, K3_USAGE,
                       "the prompt has %zu tokens and the context has room for %u; ask for more "
                       "with --context",
                       n, (unsigned)t->context);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= t->vocab)
            return k3_fail(err, K3_USAGE,
                           "token id %d (number %zu of the prompt) is out of range: the model has "
                           "the ids 0 to %u",
                           (int)ids[i], i + 1, (unsigned)(t->vocab - 1));
    return K3_OK;
}

/* Where reading can begin. */
enum point_kind { POINT_START, POINT_LIVE, POINT_KEPT, POINT_FILE };
struct point {
    enum point_kind kind;
    uint32_t position;
};

static bool is_beginning(const struct timeline *t, size_t done, const int32_t *ids, size_t n)
{
    return done <= n && (done == 0 || memcmp(t->fed.v, ids, done * sizeof *ids) == 0);
}

/* The state can only go forward: it is of use when all of it is a beginning of the ids, those of a
 * suspended chunk included. */
static bool live_is_usable(const struct timeline *t, const int32_t *ids, size_t n)
{
    const int32_t *pending = NULL;
    const size_t n_pending = k3_pending(t->engine, &pending), done = t->fed.n;
    return is_beginning(t, done, ids, n) && n_pending <= n - done &&
           (n_pending == 0 || memcmp(pending, ids + done, n_pending * sizeof *ids) == 0) &&
           (done < n || t->has_logits);
}

/* The longest of all; where two are as long, the one that costs less. */
static struct point find_point(const struct timeline *t, const int32_t *ids, size_t n)
{
    struct point best = {POINT_START, 0};
    struct k3_kept_position kept[16];
    if (live_is_usable(t, ids, n))
        best = (struct point){POINT_LIVE, (uint32_t)t->fed.n};
    const size_t n_kept = k3_kept(t->engine, kept, sizeof kept / sizeof kept[0]);
    for (size_t i = 0; i < n_kept; i++) {
        const uint32_t at = kept[i].position;
        if (at > best.position && at <= t->fed.n && is_beginning(t, at, ids, n) &&
            (at < n || kept[i].has_logits))
            best = (struct point){POINT_KEPT, at};
    }
    const uint32_t saved =
        t->states == NULL ? 0 : states_find(t->states, t->engine, ids, n, best.position);
    return saved > 0 ? (struct point){POINT_FILE, saved} : best;
}

size_t timeline_reusable(const struct timeline *t, const int32_t *ids, size_t n)
{
    return find_point(t, ids, n).position;
}

void timeline_keep(struct timeline *t)
{
    const int32_t *pending = NULL;
    if (t->fed.n == 0 || k3_pending(t->engine, &pending) > 0)
        return;
    k3_keep(t->engine);
    timeline_save_now(t);
}

bool timeline_save_due(const struct timeline *t)
{
    return t->states != NULL && t->save_every > 0 && clock_now() - t->saved_at >= t->save_every;
}

void timeline_save_now(struct timeline *t)
{
    const int32_t *pending = NULL;
    if (t->states != NULL && t->fed.n > 0 && k3_pending(t->engine, &pending) == 0)
        states_save(t->states, t->engine, t->fed.v, t->fed.n);
    t->saved_at = clock_now();
}

/* Brings `fed` up to what the engine has taken, whole chunks also when it was cancelled. */
static enum k3_status note_fed(struct timeline *t, const int32_t *ids, struct k3_error *err)
{
    const uint32_t position = k3_position(t->engine);
    while (t->fed.n < position)
        if (k3_ids_push(&t->fed, ids[t->fed.n], err) != K3_OK)
            return err->status;
    return K3_OK;
}

void timeline_reset(struct timeline *t)
{
    k3_reset(t->engine);
    t->fed.n = 0;
    t->has_logits = false;
}

/* Runs ids[fed.n .. n). After a failure other than a cancel the timeline is empty. */
static enum k3_status feed(struct timeline *t, const int32_t *ids, size_t n, k3_logits_fn fn,
                           void *ud, struct k3_error *err)
{
    const size_t from = t->fed.n;
    t->has_logits = false;
    const enum k3_status status = k3_feed(t->engine, ids + from, n - from,
                                          fn == NULL ? K3_WANT_LAST : K3_WANT_ALL, fn, ud, err);
    if (status != K3_OK && status != K3_CANCELLED) {
        timeline_reset(t);
        return status;
    }
    struct k3_error memory = {0};
    if (note_fed(t, ids, &memory) != K3_OK) {
        timeline_reset(t);
        *err = memory;
        return err->status;
    }
    t->has_logits = status == K3_OK;
    return status;
}

/* Tokens between two looks at the clock. Each slice ends with a pass of lm_head, hence not fewer. */
#define SLICE 64u

/* A prompt of many chunks is saved on the way: hours may be in it. */
static enum k3_status feed_prompt(struct timeline *t, const int32_t *ids, size_t n,
                                  struct k3_error *err)
{
    const uint32_t chunk = k3_get_plan(t->engine)->chunk;
    const size_t slice = chunk >= SLICE ? chunk : (SLICE + chunk - 1) / chunk * chunk;
    t->saved_at = clock_now();
    for (;;) {
        const bool last = t->save_every <= 0 || t->states == NULL || n - t->fed.n <= slice;
        const enum k3_status status = feed(t, ids, last ? n : t->fed.n + slice, NULL, NULL, err);
        if (status != K3_OK || last)
            return status;
        if (timeline_save_due(t))
            timeline_save_now(t);
    }
}

/* `fed` becomes ids[0..n), which the engine is at. */
static enum k3_status set_fed(struct timeline *t, const int32_t *ids, size_t n,
                              struct k3_error *err)
{
    t->fed.n = 0;
    for (size_t i = 0; i < n; i++)
        if (k3_ids_push(&t->fed, ids[i], err) != K3_OK) {
            timeline_reset(t);
            return err->status;
        }
    t->has_logits = k3_has_logits(t->engine);
    return K3_OK;
}

static enum k3_status load_point(struct timeline *t, const int32_t *ids, uint32_t position,
                                 bool *done, struct k3_error *err)
{
    *done = states_load(t->states, t->engine, ids, position);
    if (*done)
        return set_fed(t, ids, position, err);
    if (k3_position(t->engine) < t->fed.n) /* it broke while it was being read in */
        timeline_reset(t);
    return K3_OK;
}

static enum k3_status go_to_best(struct timeline *t, const int32_t *ids, size_t n,
                                 struct k3_error *err)
{
    for (;;) {
        const struct point p = find_point(t, ids, n);
        bool done = true;
        if (p.kind == POINT_START)
            timeline_reset(t);
        else if (p.kind == POINT_KEPT) {
            if (k3_go_back(t->engine, p.position, err) != K3_OK)
                return err->status;
            t->fed.n = p.position;
            t->has_logits = k3_has_logits(t->engine);
        } else if (p.kind == POINT_FILE && load_point(t, ids, p.position, &done, err) != K3_OK)
            return err->status;
        if (done)
            return K3_OK;
    }
}

enum k3_status timeline_read(struct timeline *t, const int32_t *ids, size_t n, k3_logits_fn fn,
                             void *ud, struct step_stats *stats, uint32_t *reused,
                             struct k3_error *err)
{
    memset(stats, 0, sizeof *stats);
    *reused = 0;
    if (check_ids(t, ids, n, err) != K3_OK)
        return err->status;
    struct k3_metrics before, after;
    const double start = clock_now();
    k3_get_metrics(t->engine, &before);
    enum k3_status status = go_to_best(t, ids, n, err);
    *reused = (uint32_t)t->fed.n;
    if (status == K3_OK && t->fed.n < n)
        status = fn == NULL ? feed_prompt(t, ids, n, err) : feed(t, ids, n, fn, ud, err);
    k3_get_metrics(t->engine, &after);
    *stats = stats_between(&before, &after, clock_now() - start);
    return status;
}

/* ---- generating -------------------------------------------------------------------------- */

/* Feeds the token drawn last; `fed` grows with it. */
static enum k3_status feed_token(struct timeline *t, int32_t id, struct k3_error *err)
{
    if (k3_ids_push(&t->fed, id, err) != K3_OK)
        return err->status;
    t->fed.n--; /* the place is there: fed.v holds the id where feed() looks for it */
    return feed(t, t->fed.v, t->fed.n + 1, NULL, NULL, err);
}

static bool cancelled(const struct generation *g)
{
    return g->cancel != NULL && atomic_load(g->cancel);
}

/* Is there a reason to end before the next step? */
static bool ends(const struct timeline *t, struct generation *g, bool stop)
{
    if (stop)
        g->finish = FINISH_STOP;
    else if (g->tokens >= g->max_tokens)
        g->finish = FINISH_LENGTH;
    else if (t->fed.n >= t->context) {
        g->finish = FINISH_LENGTH;
        g->context_full = true;
    } else
        return false;
    return true;
}

int32_t timeline_draw(struct timeline *t)
{
    struct k3_sampling s = t->sampling;
    s.history = t->fed.v;
    s.n_history = t->fed.n;
    return k3_sample(&s, k3_logits(t->engine), t->vocab, (uint32_t)t->fed.n, t->scratch);
}

enum k3_status timeline_generate(struct timeline *t, struct generation *g, struct k3_error *err)
{
    struct k3_metrics before, after;
    double start = clock_now();
    g->tokens = 0;
    g->context_full = false;
    k3_get_metrics(t->engine, &before);
    for (;;) {
        g->finish = FINISH_CANCELLED;
        if (cancelled(g))
            return K3_OK;
        const float *logits = k3_logits(t->engine);
        const int32_t id = timeline_draw(t);
        if (id < 0) {
            g->finish = FINISH_ERROR;
            return k3_fail(err, K3_UNSOUND,
                           "no token can be chosen after position %zu: the logits are not finite",
                           t->fed.n);
        }
        const double now = clock_now();
        k3_get_metrics(t->engine, &after);
        const struct step_stats stats = stats_between(&before, &after, now - start);
        const bool stop = !g->ignore_stop && timeline_is_stop(t, id);
        g->tokens++;
        g->token(g->ud, id, stop, &stats, logits);
        if (ends(t, g, stop))
            return K3_OK;
        start = clock_now();
        before = after;
        if (g->step != NULL)
            g->step(g->ud);
        const enum k3_status status = feed_token(t, id, err);
        if (status == K3_CANCELLED)
            return K3_OK;
        if (status != K3_OK) {
            g->finish = FINISH_ERROR;
            return status;
        }
    }
}
