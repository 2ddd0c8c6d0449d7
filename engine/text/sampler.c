/* sampler.c - see sampler.h. */
#include "sampler.h"

#include <math.h>
#include <string.h>

/* ---- PCG32 ----------------------------------------------------------------------------------- */

uint32_t k3_pcg32_next(struct k3_pcg32 *r)
{
    const uint64_t old = r->state;
    r->state = old * UINT64_C(6364136223846793005) + r->inc;
    const uint32_t x = (uint32_t)((old >> 18 ^ old) >> 27);
    const uint32_t turn = (uint32_t)(old >> 59);
    return x >> turn | x << (-turn & 31);
}

void k3_pcg32_seed(struct k3_pcg32 *r, uint64_t seed, uint64_t stream)
{
    r->state = 0;
    r->inc = stream << 1 | 1;
    k3_pcg32_next(r);
    r->state += seed;
    k3_pcg32_next(r);
}

/* [0, 1) in steps of 2^-53. */
static double uniform(uint64_t seed, uint32_t position)
{
    struct k3_pcg32 r;
    k3_pcg32_seed(&r, seed, position);
    const uint64_t high = k3_pcg32_next(&r) >> 5, low = k3_pcg32_next(&r) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

/* ---- exp ------------------------------------------------------------------------------------- */

/* exp(x) for x <= 0; libm's differs between systems. x = k ln2 + r, |r| <= ln2/2, a polynomial in r
 * (the next term is below 1e-17), and k put into the exponent. */
static double exp_down(double x)
{
    static const double inverse_factorial[] = {
        1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
        1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0,
        1.0};
    if (!(x > -700))
        return 0;
    const int k = (int)(x * 1.4426950408889634 - 0.5); /* rounds towards zero: to the nearest */
    const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double sum = 0;
    for (size_t i = 0; i < sizeof inverse_factorial / sizeof *inverse_factorial; i++)
        sum = sum * r + inverse_factorial[i];
    const uint64_t bits = (uint64_t)(1023 + k) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* In scratch: weight[n] is first the logit as it is changed, then exp(logit - largest); 0 = cannot
 * be chosen. ids[] is first a set of marks, then the candidates. */
struct draw {
    float *weight;
    uint32_t *ids;
    size_t n;
};

size_t k3_sampler_scratch(size_t n)
{
    return n * (sizeof(float) + sizeof(uint32_t));
}

static int32_t pick_greedy(const float *logits, size_t n)
{
    int32_t best = -1;
    for (size_t i = 0; i < n; i++)
        if (logits[i] > (best < 0 ? -INFINITY : logits[best]))
            best = (int32_t)i;
    return best;
}

static void penalize(const struct draw *d, const struct k3_sampling *s)
{
    if (s->repetition_penalty == 0 || s->repetition_penalty == 1 || s->n_history == 0)
        return;
    memset(d->ids, 0, d->n * sizeof *d->ids);
    for (size_t i = 0; i < s->n_history; i++) {
        const int32_t id = s->history[i];
        if (id < 0 || (size_t)id >= d->n || d->ids[id])
            continue;
        d->ids[id] = 1;
        if (d->weight[id] > 0)
            d->weight[id] /= s->repetition_penalty;
        else
            d->weight[id] *= s->repetition_penalty;
    }
}

/* Logits to weights. False when nothing can be chosen. */
static bool weigh(const struct draw *d, float temperature)
{
    float top = -INFINITY;
    for (size_t i = 0; i < d->n; i++)
        if (d->weight[i] > top)
            top = d->weight[i];
    if (top == -INFINITY)
        return false;
    for (size_t i = 0; i < d->n; i++) {
        const float v = d->weight[i];
        if (v == top)
            d->weight[i] = 1; /* also where top is infinite */
        else if (v < top)
            d->weight[i] = (float)exp_down(((double)v - (double)top) / (double)temperature);
        else
            d->weight[i] = 0; /* NaN */
    }
    return true;
}

static bool likelier(const struct draw *d, uint32_t a, uint32_t b)
{
    return d->weight[a] != d->weight[b] ? d->weight[a] > d->weight[b] : a < b;
}

/* ids[0..n) is a heap, the likeliest first, but for ids[i]. */
static void sift(const struct draw *d, size_t n, size_t i)
{
    const uint32_t id = d->ids[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && likelier(d, d->ids[child + 1], d->ids[child]))
            child++;
        if (!likelier(d, d->ids[child], id))
            break;
        d->ids[i] = d->ids[child];
        i = child;
    }
    d->ids[i] = id;
}

/* Takes the likeliest from the heap ids[0..n) and puts it at ids[n-1]. */
static uint32_t take_top(const struct draw *d, size_t n)
{
    const uint32_t top = d->ids[0];
    d->ids[0] = d->ids[n - 1];
    d->ids[n - 1] = top;
    if (n > 1)
        sift(d, n - 1, 0);
    return top;
}

/* Fills ids[] with all that can be chosen, in rising order. Returns how many. */
static size_t list(const struct draw *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->weight[i] > 0)
            d->ids[n++] = (uint32_t)i;
    return n;
}

static double mass_of(const struct draw *d, const uint32_t *ids, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)d->weight[ids[i]];
    return sum;
}

/* ids[0..n) in rising order become the ones that top-k, top-p and min-p leave, likeliest first, at
 * the end of ids[0..n) in reverse. Returns how many, at least one. */
static size_t cut(const struct draw *d, const struct k3_sampling *s, size_t n)
{
    const bool top_k = s->top_k > 0 && s->top_k < n;
    double mass = top_k ? 0 : mass_of(d, d->ids, n);
    for (size_t i = n / 2; i-- > 0;)
        sift(d, n, i);
    size_t kept = top_k ? s->top_k : n, taken = 0;
    if (top_k) { /* the mass of the k likeliest is known once they are taken */
        while (taken < kept)
            mass += (double)d->weight[take_top(d, n - taken++)];
    }
    const double want = s->top_p < 1 ? (double)s->top_p * mass : INFINITY;
    double sum = 0;
    for (size_t i = 0; i < kept; i++) {
        const uint32_t id = i < taken ? d->ids[n - 1 - i] : take_top(d, n - i);
        if (i > 0 && d->weight[id] < s->min_p) /* the largest weight is 1 */
            return i;
        sum += (double)d->weight[id];
        if (sum >= want)
            return i + 1;
    }
    return kept;
}

int32_t k3_sample(const struct k3_sampling *s, const float *logits, size_t n, uint32_t position,
                  void *scratch)
{
    if (s->greedy || n == 0 || !(s->temperature > 0))
        return pick_greedy(logits, n);
    struct draw d = {scratch, NULL, n};
    d.ids = (uint32_t *)(void *)(d.weight + n);
    memcpy(d.weight, logits, n * sizeof *logits);
    penalize(&d, s);
    if (!weigh(&d, s->temperature))
        return -1;
    size_t left = list(&d);
    const bool sorted = s->top_p < 1 || s->min_p > 0 || (s->top_k > 0 && s->top_k < left);
    const uint32_t *ids = d.ids;
    if (sorted) {
        const size_t kept = cut(&d, s, left);
        for (size_t i = 0; i < kept / 2; i++) { /* the kept ones stand in reverse at the end */
            const uint32_t id = d.ids[left - 1 - i];
            d.ids[left - 1 - i] = d.ids[left - kept + i];
            d.ids[left - kept + i] = id;
        }
        ids = d.ids + (left - kept);
        left = kept;
    }
    const double target = uniform(s->seed, position) * mass_of(&d, ids, left);
    double sum = 0;
    for (size_t i = 0; i < left; i++) {
        sum += (double)d.weight[ids[i]];
        if (sum > target)
            return (int32_t)ids[i];
    }
    return (int32_t)ids[left - 1]; /* rounding only */
}
