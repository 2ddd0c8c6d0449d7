/* trace_replay.c - the hits of a policy on a trace; see trace.h. */
#include "trace.h"

#include <stdlib.h>

const char *k3_replay_name(enum k3_replay r)
{
    static const char *const names[K3_REPLAYS] = {"lru", "quota", "belady"};
    return names[r];
}

static void count(struct k3_replay_counts *c, const struct k3_trace_group *g,
                  const struct k3_expert_use *u, bool hit)
{
    c->requests += u->requests;
    c->hits += hit ? u->requests : 0;
    c->uses++;
    c->reads += !hit;
    if (g->decode) {
        c->decode_requests += u->requests;
        c->decode_hits += hit ? u->requests : 0;
    }
}

/* ---- the engine's policies --------------------------------------------------------------- */

static enum k3_status replay_keeper(const struct k3_trace_steps *s, enum k3_policy policy,
                                    uint32_t slots, struct k3_replay_counts *out,
                                    struct k3_error *err)
{
    struct k3_keeper *k = k3_keeper_open(policy, s->layers, s->n_experts, slots, err);
    if (!k)
        return err->status;
    for (size_t i = 0; i < s->n_groups; i++) {
        const struct k3_trace_group *g = &s->groups[i];
        const struct k3_expert_use *uses = &s->uses[g->first];
        for (size_t j = 0; j < g->n; j++)
            count(out, g, &uses[j], k3_keeper_has(k, g->layer, uses[j].expert));
        struct k3_keep_plan plan;
        k3_keeper_plan(k, g->layer, uses, g->n, &plan);
        k3_keeper_commit(k, g->layer, uses, g->n);
    }
    k3_keeper_close(k);
    return K3_OK;
}

/* ---- Belady ------------------------------------------------------------------------------ */

#define NEVER UINT32_MAX

struct entry { /* an expert in memory, and the group that asks for it next */
    uint32_t next, key;
};

/* What is in memory, as a heap with the latest next use on top. An expert that is asked for again
 * gets a new entry; the old one, whose group has passed, lies below all that are still wanted and
 * is never popped. */
struct clairvoyant {
    uint32_t *next_use; /* [uses] the next group with the same expert and layer */
    uint32_t *wanted;   /* [keys] the group that asks for it next; NEVER = not in memory */
    struct entry *heap;
    size_t n_heap;
    uint64_t held;
};

static void heap_swap(struct entry *h, size_t a, size_t b)
{
    const struct entry e = h[a];
    h[a] = h[b];
    h[b] = e;
}

static void heap_push(struct clairvoyant *c, struct entry e)
{
    size_t at = c->n_heap++;
    c->heap[at] = e;
    for (; at > 0 && c->heap[(at - 1) / 2].next < c->heap[at].next; at = (at - 1) / 2)
        heap_swap(c->heap, at, (at - 1) / 2);
}

static struct entry heap_pop(struct clairvoyant *c)
{
    const struct entry top = c->heap[0];
    c->heap[0] = c->heap[--c->n_heap];
    for (size_t at = 0;;) {
        size_t child = 2 * at + 1;
        if (child >= c->n_heap)
            return top;
        if (child + 1 < c->n_heap && c->heap[child + 1].next > c->heap[child].next)
            child++;
        if (c->heap[child].next <= c->heap[at].next)
            return top;
        heap_swap(c->heap, at, child);
        at = child;
    }
}

static void look_ahead(const struct k3_trace_steps *s, struct clairvoyant *c)
{
    for (size_t key = 0; key < (size_t)s->layers * s->n_experts; key++)
        c->wanted[key] = NEVER;
    for (size_t i = s->n_groups; i-- > 0;) {
        const struct k3_trace_group *g = &s->groups[i];
        for (size_t j = g->first; j < g->first + g->n; j++) {
            uint32_t *w = &c->wanted[(size_t)g->layer * s->n_experts + s->uses[j].expert];
            c->next_use[j] = *w;
            *w = (uint32_t)i;
        }
    }
    for (size_t key = 0; key < (size_t)s->layers * s->n_experts; key++)
        c->wanted[key] = NEVER;
}

static void belady_group(const struct k3_trace_steps *s, size_t i, struct clairvoyant *c,
                         uint64_t slots, struct k3_replay_counts *out)
{
    const struct k3_trace_group *g = &s->groups[i];
    for (size_t j = g->first; j < g->first + g->n; j++) {
        const uint32_t key = g->layer * s->n_experts + s->uses[j].expert;
        const bool hit = c->wanted[key] != NEVER;
        count(out, g, &s->uses[j], hit);
        c->held -= hit;
        c->wanted[key] = c->next_use[j];
        if (c->next_use[j] == NEVER)
            continue;
        heap_push(c, (struct entry){c->next_use[j], key});
        c->held++;
    }
    for (; c->held > slots; c->held--)
        c->wanted[heap_pop(c).key] = NEVER;
}

static enum k3_status replay_belady(const struct k3_trace_steps *s, uint32_t slots,
                                    struct k3_replay_counts *out, struct k3_error *err)
{
    const size_t keys = (size_t)s->layers * s->n_experts;
    const size_t n_uses = s->groups[s->n_groups - 1].first + s->groups[s->n_groups - 1].n;
    enum k3_status st = K3_OK;
    struct clairvoyant c = {
        .next_use = calloc(n_uses, sizeof *c.next_use),
        .wanted = calloc(keys, sizeof *c.wanted),
        .heap = calloc(n_uses, sizeof *c.heap),
    };
    if (!c.next_use || !c.wanted || !c.heap) {
        st = k3_fail_memory(err, "the replay of the expert trace",
                            n_uses * (sizeof *c.next_use + sizeof *c.heap) +
                                keys * sizeof *c.wanted);
        goto done;
    }
    look_ahead(s, &c);
    for (size_t i = 0; i < s->n_groups; i++)
        belady_group(s, i, &c, slots, out);
done:
    free(c.next_use);
    free(c.wanted);
    free(c.heap);
    return st;
}

enum k3_status k3_trace_replay(const struct k3_trace_steps *s, enum k3_replay r, uint32_t slots,
                               struct k3_replay_counts *out, struct k3_error *err)
{
    *out = (struct k3_replay_counts){0};
    if (r == K3_REPLAY_BELADY)
        return replay_belady(s, slots, out, err);
    return replay_keeper(s, r == K3_REPLAY_LRU ? K3_POLICY_LRU : K3_POLICY_QUOTA, slots, out, err);
}
