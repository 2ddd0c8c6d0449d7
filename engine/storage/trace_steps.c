/* trace_steps.c - what a trace says about tokens, passes and steps; see trace.h. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS 65536u
#define MAX_KEYS ((uint64_t)1 << 26)

struct run { /* pairs of one layer in a row */
    size_t first, n;
    uint32_t layer; /* index */
};

/* Working state of k3_trace_steps_make(). */
struct builder {
    const struct k3_trace_pair *pairs;
    size_t n_pairs;
    struct run *runs;
    size_t n_runs;
    size_t *passes;      /* first run of each; passes[n_passes] = n_runs */
    size_t n_passes;
    uint32_t *stamp;     /* [NUMBERS] when an expert was last seen */
    uint32_t *use_at;    /* [NUMBERS] its use in the running group */
    uint32_t now;
    size_t n_uses;
    struct k3_trace_steps *out;
};

static void *array(size_t n, size_t size, struct k3_error *err)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        k3_fail_memory(err, "the steps of the expert trace", (unsigned long long)n * size);
    return p;
}

/* A stamp that no entry has. */
static uint32_t next_stamp(struct builder *b)
{
    if (b->now == UINT32_MAX) {
        memset(b->stamp, 0, NUMBERS * sizeof *b->stamp);
        b->now = 0;
    }
    return ++b->now;
}

/* ---- layers, runs, passes ---------------------------------------------------------------- */

static enum k3_status find_layers(struct builder *b, struct k3_error *err)
{
    struct k3_trace_steps *o = b->out;
    for (size_t i = 0; i < b->n_pairs; i++) {
        o->layers += b->stamp[b->pairs[i].layer] == 0;
        b->stamp[b->pairs[i].layer] = 1;
        if (b->pairs[i].expert >= o->n_experts)
            o->n_experts = b->pairs[i].expert + 1;
    }
    if ((uint64_t)o->layers * o->n_experts > MAX_KEYS)
        return k3_fail(err, K3_FAILED,
                       "the trace names %u layers and experts up to %u: more than %llu in all is "
                       "no trace of a model",
                       o->layers, o->n_experts - 1, (unsigned long long)MAX_KEYS);
    if (!(o->layer_numbers = array(o->layers, sizeof *o->layer_numbers, err)))
        return err->status;
    for (uint32_t number = 0, at = 0; number < NUMBERS; number++)
        if (b->stamp[number] != 0)
            o->layer_numbers[at++] = number;
    memset(b->stamp, 0, NUMBERS * sizeof *b->stamp);
    return K3_OK;
}

static int number_order(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t layer_index(const struct k3_trace_steps *o, uint32_t number)
{
    const uint32_t *p = bsearch(&number, o->layer_numbers, o->layers, sizeof number, number_order);
    return (uint32_t)(p - o->layer_numbers);
}

static bool run_begins(const struct builder *b, size_t i)
{
    return i == 0 || b->pairs[i].layer != b->pairs[i - 1].layer;
}

static enum k3_status find_runs(struct builder *b, struct k3_error *err)
{
    for (size_t i = 0; i < b->n_pairs; i++)
        b->n_runs += run_begins(b, i);
    if (!(b->runs = array(b->n_runs, sizeof *b->runs, err)) ||
        !(b->passes = array(b->n_runs + 1, sizeof *b->passes, err)))
        return err->status;
    size_t at = 0;
    for (size_t i = 0; i < b->n_pairs; i++) {
        if (run_begins(b, i))
            b->runs[at++] = (struct run){i, 0, layer_index(b->out, b->pairs[i].layer)};
        b->runs[at - 1].n++;
    }
    for (size_t r = 0; r < b->n_runs; r++)
        if (r == 0 || b->runs[r].layer <= b->runs[r - 1].layer)
            b->passes[b->n_passes++] = r;
    b->passes[b->n_passes] = b->n_runs;
    b->out->passes = (uint32_t)b->n_passes;
    return K3_OK;
}

/* ---- top-k ------------------------------------------------------------------------------- */

/* The first token of k experts in which one comes twice; n_pairs when there is none. */
static size_t find_twice(struct builder *b, size_t k)
{
    for (size_t i = 0; i < b->n_pairs; i += k) {
        const uint32_t now = next_stamp(b);
        for (size_t j = i; j < i + k; j++) {
            uint32_t *s = &b->stamp[b->pairs[j].expert];
            if (*s == now)
                return i;
            *s = now;
        }
    }
    return b->n_pairs;
}

static enum k3_status check_top_k(struct builder *b, size_t k, struct k3_error *err)
{
    for (size_t r = 0; r < b->n_runs; r++)
        if (b->runs[r].n % k != 0)
            return k3_fail(err, K3_USAGE,
                           "the trace has %zu requests of layer %u in a row (from pair %zu): no "
                           "whole number of tokens with %zu experts each",
                           b->runs[r].n, b->pairs[b->runs[r].first].layer, b->runs[r].first, k);
    const size_t twice = find_twice(b, k);
    if (twice < b->n_pairs)
        return k3_fail(err, K3_USAGE,
                       "layer %u, pairs %zu to %zu: a token with %zu experts would name one of "
                       "them twice; is the number of experts per token right?",
                       b->pairs[twice].layer, twice, twice + k - 1, k);
    return K3_OK;
}

/* The largest k that divides every run and makes every token's experts distinct; 1 always does. */
static size_t find_top_k(struct builder *b)
{
    size_t g = 0;
    for (size_t r = 0; r < b->n_runs; r++)
        for (size_t n = b->runs[r].n; n != 0;) {
            const size_t rest = g % n;
            g = n;
            n = rest;
        }
    for (size_t k = g < NUMBERS ? g : NUMBERS; k > 1; k--)
        if (g % k == 0 && find_twice(b, k) == b->n_pairs)
            return k;
    return 1;
}

/* ---- the view ---------------------------------------------------------------------------- */

/* Requests of every run of a pass; 0 when they differ. */
static size_t pass_run_length(const struct builder *b, size_t pass)
{
    const size_t n = b->runs[b->passes[pass]].n;
    for (size_t r = b->passes[pass]; r < b->passes[pass + 1]; r++)
        if (b->runs[r].n != n)
            return 0;
    return n;
}

/* Does this pass go through the same layers as the one before, repeat its tokens and add some? */
static bool pass_extends(const struct builder *b, size_t pass)
{
    const size_t before = pass_run_length(b, pass - 1), n = pass_run_length(b, pass);
    const struct run *old = &b->runs[b->passes[pass - 1]], *new = &b->runs[b->passes[pass]];
    const size_t n_runs = b->passes[pass + 1] - b->passes[pass];
    if (before == 0 || n <= before || b->passes[pass] - b->passes[pass - 1] != n_runs)
        return false;
    for (size_t r = 0; r < n_runs; r++)
        if (memcmp(&b->pairs[old[r].first], &b->pairs[new[r].first], before * sizeof *b->pairs))
            return false;
    return true;
}

static enum k3_trace_view find_view(const struct builder *b)
{
    for (size_t p = 1; p < b->n_passes; p++)
        if (!pass_extends(b, p))
            return K3_TRACE_FILE;
    return b->n_passes > 1 ? K3_TRACE_LAST_PASS : K3_TRACE_FILE;
}

/* ---- steps ------------------------------------------------------------------------------- */

static void add_group(struct builder *b, uint32_t layer, size_t first_pair, size_t tokens,
                      bool decode)
{
    struct k3_trace_steps *o = b->out;
    struct k3_trace_group *g = &o->groups[o->n_groups++];
    *g = (struct k3_trace_group){layer, (uint32_t)tokens, b->n_uses, 0, decode};
    const uint32_t now = next_stamp(b);
    for (size_t i = 0; i < tokens * o->top_k; i++) {
        const uint32_t expert = b->pairs[first_pair + i].expert;
        const uint32_t token = (uint32_t)(i / o->top_k), rank = (uint32_t)(i % o->top_k);
        if (b->stamp[expert] != now) {
            b->stamp[expert] = now;
            b->use_at[expert] = (uint32_t)g->n++;
            o->uses[b->n_uses++] = (struct k3_expert_use){expert, 0, rank, token};
        }
        struct k3_expert_use *u = &o->uses[g->first + b->use_at[expert]];
        u->requests++;
        u->last = token;
        if (rank < u->best_rank)
            u->best_rank = rank;
    }
    o->requests += tokens * o->top_k;
    if (decode)
        o->decode_requests += tokens * o->top_k;
}

static enum k3_status make_room(struct builder *b, size_t groups, size_t uses, struct k3_error *err)
{
    if (!(b->out->groups = array(groups, sizeof *b->out->groups, err)) ||
        !(b->out->uses = array(uses, sizeof *b->out->uses, err)))
        return err->status;
    return K3_OK;
}

static enum k3_status file_steps(struct builder *b, struct k3_error *err)
{
    struct k3_trace_steps *o = b->out;
    const size_t k = o->top_k;
    if (o->layers == 1) {
        if (make_room(b, b->n_pairs / k, b->n_pairs, err))
            return err->status;
        for (size_t i = 0; i < b->n_pairs; i += k)
            add_group(b, 0, i, 1, true);
        o->decode_steps = o->n_groups;
        return K3_OK;
    }
    if (make_room(b, b->n_runs, b->n_pairs, err))
        return err->status;
    for (size_t p = 0; p < b->n_passes; p++) {
        o->decode_steps += b->runs[b->passes[p]].n == k;
        for (size_t r = b->passes[p]; r < b->passes[p + 1]; r++)
            add_group(b, b->runs[r].layer, b->runs[r].first, b->runs[r].n / k, b->runs[r].n == k);
    }
    return K3_OK;
}

static enum k3_status last_pass_steps(struct builder *b, size_t prompt, struct k3_error *err)
{
    struct k3_trace_steps *o = b->out;
    const size_t k = o->top_k, last = b->n_passes - 1;
    const struct run *runs = &b->runs[b->passes[last]];
    const size_t n_runs = b->passes[last + 1] - b->passes[last];
    const size_t tokens = pass_run_length(b, last) / k;
    if (tokens == 0)
        return k3_fail(err, K3_FAILED, "the last pass of the trace is not whole: its layers have "
                                       "different numbers of tokens");
    if (prompt == 0)
        prompt = b->runs[0].n / k;
    if (prompt > tokens)
        return k3_fail(err, K3_USAGE,
                       "a prompt of %zu tokens does not fit the last pass, which has %zu tokens",
                       prompt, tokens);
    if (make_room(b, n_runs * (tokens - prompt + 1), n_runs * tokens * k, err))
        return err->status;
    for (size_t r = 0; r < n_runs; r++)
        add_group(b, runs[r].layer, runs[r].first, prompt, false);
    for (size_t t = prompt; t < tokens; t++)
        for (size_t r = 0; r < n_runs; r++)
            add_group(b, runs[r].layer, runs[r].first + t * k, 1, true);
    o->prompt = (uint32_t)prompt;
    o->decode_steps = tokens - prompt;
    return K3_OK;
}

static enum k3_status build(struct builder *b, const struct k3_trace_options *opt,
                            struct k3_error *err)
{
    struct k3_trace_steps *o = b->out;
    b->stamp = array(NUMBERS, sizeof *b->stamp, err);
    b->use_at = array(NUMBERS, sizeof *b->use_at, err);
    if (!b->stamp || !b->use_at || find_layers(b, err) || find_runs(b, err))
        return err->status;
    if (opt->top_k != 0 && check_top_k(b, opt->top_k, err))
        return err->status;
    o->top_k = opt->top_k ? opt->top_k : (uint32_t)find_top_k(b);
    o->view = opt->view == K3_TRACE_AUTO ? find_view(b) : opt->view;
    if (o->view == K3_TRACE_FILE)
        return file_steps(b, err);
    return last_pass_steps(b, opt->prompt, err);
}

enum k3_status k3_trace_steps_make(const struct k3_trace *t, const struct k3_trace_options *opt,
                                   struct k3_trace_steps *s, struct k3_error *err)
{
    *s = (struct k3_trace_steps){0};
    /* Counts of runs and uses are kept in 32 bits. */
    if (t->n == 0 || t->n > INT32_MAX)
        return k3_fail(err, K3_FAILED, "an expert trace of %zu pairs cannot be replayed", t->n);
    struct builder b = {.pairs = t->pairs, .n_pairs = t->n, .out = s};
    const enum k3_status st = build(&b, opt, err);
    free(b.runs);
    free(b.passes);
    free(b.stamp);
    free(b.use_at);
    if (st)
        k3_trace_steps_free(s);
    return st;
}

void k3_trace_steps_free(struct k3_trace_steps *s)
{
    free(s->layer_numbers);
    free(s->groups);
    free(s->uses);
    *s = (struct k3_trace_steps){0};
}
