/* policy.c - see policy.h. */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KEYS ((uint64_t)1 << 26)
#define NONE UINT32_MAX

struct candidate {
    uint32_t expert, last, freq;
};

struct k3_keeper {
    enum k3_policy policy;
    uint32_t layers, n_experts, slots;
    bool *has;           /* [layers x n_experts] */
    uint32_t *used;      /* [layers] experts kept */
    /* quota */
    uint32_t *ids;       /* [slots] experts kept, each layer's part in its quota's place */
    uint32_t *last;      /* [layers x n_experts] 1 + position of the last use; 0 = never used */
    uint32_t *freq;      /* [layers x n_experts] decayed, as of that position */
    uint32_t *clock;     /* [layers] positions so far */
    struct candidate *cand; /* [2 n_experts] of the step planned, best first */
    uint32_t n_stay;
    /* LRU: a list of keys (layer x n_experts + expert) */
    uint32_t *newer, *older;
    uint32_t newest, oldest, count;
    /* of the step planned */
    uint32_t *use_of;    /* [n_experts] 1 + index into uses; 0 between calls */
    bool *stays;         /* [n_experts] */
    struct k3_kept *dropped; /* [2 n_experts] */
    size_t n_dropped;
};

static uint32_t clamp_slots(uint32_t layers, uint32_t n_experts, uint32_t slots)
{
    const uint64_t keys = (uint64_t)layers * n_experts;
    return slots > keys ? (uint32_t)keys : slots;
}

uint64_t k3_keeper_bytes(enum k3_policy policy, uint32_t layers, uint32_t n_experts,
                         uint32_t slots)
{
    const uint64_t keys = (uint64_t)layers * n_experts;
    const uint64_t scratch = sizeof(uint32_t) + sizeof(bool) + 2 * sizeof(struct k3_kept);
    uint64_t bytes = sizeof(struct k3_keeper) + keys * sizeof(bool) + layers * sizeof(uint32_t);
    bytes += n_experts * scratch + keys * 2 * sizeof(uint32_t);
    if (policy == K3_POLICY_QUOTA) {
        bytes += clamp_slots(layers, n_experts, slots) * sizeof(uint32_t);
        bytes += layers * sizeof(uint32_t) + n_experts * 2 * sizeof(struct candidate);
    }
    return bytes;
}

static bool allocate(struct k3_keeper *k, size_t keys)
{
    k->has = calloc(keys, sizeof *k->has);
    k->used = calloc(k->layers, sizeof *k->used);
    k->use_of = calloc(k->n_experts, sizeof *k->use_of);
    k->stays = calloc(k->n_experts, sizeof *k->stays);
    k->dropped = calloc(k->n_experts, 2 * sizeof *k->dropped);
    if (!k->has || !k->used || !k->use_of || !k->stays || !k->dropped)
        return false;
    if (k->policy == K3_POLICY_LRU) {
        k->newer = calloc(keys, sizeof *k->newer);
        k->older = calloc(keys, sizeof *k->older);
        return k->newer && k->older;
    }
    k->ids = calloc((size_t)k->slots + 1, sizeof *k->ids);
    k->last = calloc(keys, sizeof *k->last);
    k->freq = calloc(keys, sizeof *k->freq);
    k->clock = calloc(k->layers, sizeof *k->clock);
    k->cand = calloc(k->n_experts, 2 * sizeof *k->cand);
    return k->ids && k->last && k->freq && k->clock && k->cand;
}

struct k3_keeper *k3_keeper_open(enum k3_policy policy, uint32_t layers, uint32_t n_experts,
                                 uint32_t slots, struct k3_error *err)
{
    const uint64_t keys = (uint64_t)layers * n_experts;
    if (keys == 0 || keys > MAX_KEYS) {
        k3_fail(err, K3_FAILED, "expert policy: %u layers of %u experts: must be 1 to %llu in all",
                layers, n_experts, (unsigned long long)MAX_KEYS);
        return NULL;
    }
    struct k3_keeper *k = calloc(1, sizeof *k);
    if (!k)
        goto fail;
    k->policy = policy;
    k->layers = layers;
    k->n_experts = n_experts;
    k->slots = clamp_slots(layers, n_experts, slots);
    k->newest = k->oldest = NONE;
    if (allocate(k, (size_t)keys))
        return k;
fail:
    k3_keeper_close(k);
    k3_fail_memory(err, "the expert policy", k3_keeper_bytes(policy, layers, n_experts, slots));
    return NULL;
}

void k3_keeper_close(struct k3_keeper *k)
{
    if (!k)
        return;
    free(k->has);
    free(k->used);
    free(k->use_of);
    free(k->stays);
    free(k->dropped);
    free(k->newer);
    free(k->older);
    free(k->ids);
    free(k->last);
    free(k->freq);
    free(k->clock);
    free(k->cand);
    free(k);
}

static size_t key_of(const struct k3_keeper *k, uint32_t layer, uint32_t expert)
{
    return (size_t)layer * k->n_experts + expert;
}

/* Where a layer's part of ids begins: layer x slots / layers spreads the remainder evenly. */
static uint32_t quota_start(const struct k3_keeper *k, uint32_t layer)
{
    return (uint32_t)((uint64_t)layer * k->slots / k->layers);
}

uint32_t k3_keeper_quota(const struct k3_keeper *k, uint32_t layer)
{
    if (k->policy == K3_POLICY_LRU)
        return k->slots;
    return quota_start(k, layer + 1) - quota_start(k, layer);
}

uint32_t k3_keeper_used(const struct k3_keeper *k, uint32_t layer)
{
    return k->used[layer];
}

bool k3_keeper_has(const struct k3_keeper *k, uint32_t layer, uint32_t expert)
{
    return k->has[key_of(k, layer, expert)];
}

static void set_has(struct k3_keeper *k, uint32_t layer, uint32_t expert, bool has)
{
    bool *h = &k->has[key_of(k, layer, expert)];
    if (*h == has)
        return;
    *h = has;
    k->used[layer] += has ? 1u : (uint32_t)-1;
}

static void drop(struct k3_keeper *k, uint32_t layer, uint32_t expert)
{
    k->dropped[k->n_dropped++] = (struct k3_kept){.layer = layer, .expert = expert};
}

/* ---- quota ------------------------------------------------------------------------------- */

static uint32_t add_sat(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* An eighth lost per token, rounded so that it reaches 0. Integers: the same on every machine. */
static uint32_t decayed(uint32_t freq, uint32_t tokens)
{
    for (; tokens > 0 && freq > 0; tokens--)
        freq -= freq / 8 + (freq % 8 != 0);
    return freq;
}

static uint32_t use_weight(const struct k3_expert_use *u)
{
    const uint32_t w = u->best_rank < 1020 ? 1024 / (4 + u->best_rank) : 1;
    return u->requests > UINT32_MAX / w ? UINT32_MAX : u->requests * w;
}

/* What last and freq become with this use. */
static struct candidate with_use(const struct k3_keeper *k, uint32_t layer,
                                 const struct k3_expert_use *u)
{
    const size_t key = key_of(k, layer, u->expert);
    struct candidate c = {.expert = u->expert, .last = k->clock[layer] + u->last + 1};
    if (k->last[key] != 0)
        c.freq = decayed(k->freq[key], c.last - k->last[key]);
    c.freq = add_sat(c.freq, use_weight(u));
    return c;
}

/* Frequencies are only compared at equal `last`, where their decay up to now is the same. */
static int better_first(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    if (a->last != b->last)
        return a->last > b->last ? -1 : 1;
    if (a->freq != b->freq)
        return a->freq > b->freq ? -1 : 1;
    return a->expert < b->expert ? -1 : a->expert > b->expert;
}

static void quota_plan(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                       size_t n)
{
    const uint32_t quota = k3_keeper_quota(k, layer);
    const uint32_t *const ids = k->ids + quota_start(k, layer);
    size_t n_cand = 0;
    for (size_t i = 0; i < n; i++)
        k->cand[n_cand++] = with_use(k, layer, &uses[i]);
    for (uint32_t i = 0; i < k->used[layer]; i++) {
        const size_t key = key_of(k, layer, ids[i]);
        if (k->use_of[ids[i]] == 0)
            k->cand[n_cand++] = (struct candidate){ids[i], k->last[key], k->freq[key]};
    }
    qsort(k->cand, n_cand, sizeof *k->cand, better_first);
    k->n_stay = n_cand < quota ? (uint32_t)n_cand : quota;
    for (size_t i = 0; i < n_cand; i++) {
        const uint32_t expert = k->cand[i].expert;
        if (k->use_of[expert] != 0)
            k->stays[k->use_of[expert] - 1] = i < k->n_stay;
        if (i >= k->n_stay && k3_keeper_has(k, layer, expert))
            drop(k, layer, expert);
    }
}

static void quota_commit(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                         size_t n)
{
    uint32_t tokens = 0;
    for (size_t i = 0; i < n; i++) {
        const struct candidate c = with_use(k, layer, &uses[i]);
        const size_t key = key_of(k, layer, c.expert);
        k->last[key] = c.last;
        k->freq[key] = c.freq;
        if (uses[i].last >= tokens)
            tokens = uses[i].last + 1;
    }
    k->clock[layer] += tokens;
    uint32_t *const ids = k->ids + quota_start(k, layer);
    for (uint32_t i = 0; i < k->n_stay; i++) {
        ids[i] = k->cand[i].expert;
        set_has(k, layer, ids[i], true);
    }
}

static void quota_forget(struct k3_keeper *k, uint32_t layer, uint32_t expert)
{
    uint32_t *const ids = k->ids + quota_start(k, layer);
    for (uint32_t i = 0; i < k->used[layer]; i++) {
        if (ids[i] == expert) {
            ids[i] = ids[k->used[layer] - 1];
            return;
        }
    }
}

/* ---- LRU --------------------------------------------------------------------------------- */

static void lru_unlink(struct k3_keeper *k, uint32_t key)
{
    const uint32_t newer = k->newer[key], older = k->older[key];
    if (newer == NONE)
        k->newest = older;
    else
        k->older[newer] = older;
    if (older == NONE)
        k->oldest = newer;
    else
        k->newer[older] = newer;
    k->count--;
}

static void lru_push(struct k3_keeper *k, uint32_t key)
{
    k->newer[key] = NONE;
    k->older[key] = k->newest;
    if (k->newest == NONE)
        k->oldest = key;
    else
        k->newer[k->newest] = key;
    k->newest = key;
    k->count++;
}

/* Once all uses have been touched they are the newest n of the list; the oldest of what exceeds
 * the capacity go. */
static void lru_plan(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                     size_t n)
{
    size_t others = k->count;
    for (size_t i = 0; i < n; i++) {
        const bool has = k3_keeper_has(k, layer, uses[i].expert);
        k->stays[i] = n - 1 - i < k->slots;
        others -= has;
        if (has && !k->stays[i])
            drop(k, layer, uses[i].expert);
    }
    const size_t room = n < k->slots ? k->slots - n : 0;
    for (uint32_t key = k->oldest; key != NONE && others > room; key = k->newer[key]) {
        const uint32_t at = key / k->n_experts, expert = key % k->n_experts;
        if (at == layer && k->use_of[expert] != 0)
            continue;
        drop(k, at, expert);
        others--;
    }
}

static void lru_commit(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!k->stays[i])
            continue;
        const uint32_t key = (uint32_t)key_of(k, layer, uses[i].expert);
        if (k->has[key])
            lru_unlink(k, key);
        lru_push(k, key);
        set_has(k, layer, uses[i].expert, true);
    }
}

/* ---- both -------------------------------------------------------------------------------- */

void k3_keeper_plan(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                    size_t n, struct k3_keep_plan *plan)
{
    k->n_dropped = 0;
    for (size_t i = 0; i < n; i++)
        k->use_of[uses[i].expert] = (uint32_t)i + 1;
    if (k->policy == K3_POLICY_LRU)
        lru_plan(k, layer, uses, n);
    else
        quota_plan(k, layer, uses, n);
    for (size_t i = 0; i < n; i++)
        k->use_of[uses[i].expert] = 0;
    *plan = (struct k3_keep_plan){k->stays, k->dropped, k->n_dropped};
}

void k3_keeper_commit(struct k3_keeper *k, uint32_t layer, const struct k3_expert_use *uses,
                      size_t n)
{
    for (size_t i = 0; i < k->n_dropped; i++)
        k3_keeper_forget(k, k->dropped[i].layer, k->dropped[i].expert);
    if (k->policy == K3_POLICY_LRU)
        lru_commit(k, layer, uses, n);
    else
        quota_commit(k, layer, uses, n);
}

void k3_keeper_forget(struct k3_keeper *k, uint32_t layer, uint32_t expert)
{
    if (!k3_keeper_has(k, layer, expert))
        return;
    if (k->policy == K3_POLICY_LRU)
        lru_unlink(k, (uint32_t)key_of(k, layer, expert));
    else
        quota_forget(k, layer, expert);
    set_has(k, layer, expert, false);
}
