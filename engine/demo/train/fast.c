/* fast.c - the parts of training that are no matrix product, forward and backward; fast.py
 * compiles and calls it. All tensors are contiguous fp32. With PyTorch alone these parts, and KDA's
 * recurrence most of all, take several times as long as the matrix products.
 *
 * KDA goes token by token: at this size a head's state (4 KB) stays in the first-level cache, and
 * backward repeats the forward pass of one head into a scratch of all its states. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef D
#define D 32 /* width of a KDA head */
#endif
#ifndef QK
#define QK 32 /* of an MLA head: queries and keys, values */
#define VD 32
#endif
#define EACH(i, n) for (long i = 0; i < (n); i++)

static float sigma(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* ---- KDA -------------------------------------------------------------------------------------- */

struct head { /* one token of one head, ready for the recurrence */
    float q[D], k[D], v[D], a[D], gate[D], e[D], rest[D], beta, q_inv, k_inv;
};

static float dot(const float *a, const float *b)
{
    float sum = 0;
    EACH(i, D) sum += a[i] * b[i];
    return sum;
}

static float unit(float *out, const float *x, float scale)
{
    const float inv = 1.0f / sqrtf(dot(x, x) + 1e-6f);
    EACH(i, D) out[i] = x[i] * inv * scale;
    return inv;
}

static void prepare(struct head *h, const float *q, const float *k, const float *v, const float *z,
                    float rate, float beta, float lower)
{
    h->q_inv = unit(h->q, q, 1.0f / sqrtf(D));
    h->k_inv = unit(h->k, k, 1);
    memcpy(h->v, v, sizeof h->v);
    EACH(i, D) h->gate[i] = sigma(rate * z[i]);
    EACH(i, D) h->a[i] = expf(lower * h->gate[i]);
    h->beta = sigma(beta);
}

static void step(struct head *h, const float *before, float *after)
{
    float u[D] = {0};
    EACH(i, D) EACH(j, D)
    {
        after[i * D + j] = before[i * D + j] * h->a[i];
        u[j] += after[i * D + j] * h->k[i];
    }
    EACH(j, D) h->rest[j] = h->v[j] - u[j];
    EACH(j, D) h->e[j] = h->beta * h->rest[j];
    EACH(i, D) EACH(j, D) after[i * D + j] += h->k[i] * h->e[j];
}

/* q, k, v, z, o: [batch, t, heads, D]; beta: [batch, t, heads]; rate: [heads]. */
void kda_forward(const float *q, const float *k, const float *v, const float *z, const float *beta,
                 const float *rate, float lower, float *o, long batch, long t, long heads)
{
#pragma omp parallel for
    EACH(row, batch * heads)
    {
        float state[2][D * D];
        memset(state, 0, sizeof state);
        EACH(s, t)
        {
            const long at = (row / heads * t + s) * heads + row % heads;
            struct head h;
            prepare(&h, q + at * D, k + at * D, v + at * D, z + at * D, rate[row % heads], beta[at],
                    lower);
            step(&h, state[s % 2], state[(s + 1) % 2]);
            const float *now = state[(s + 1) % 2];
            float out[D] = {0};
            EACH(i, D) EACH(j, D) out[j] += now[i * D + j] * h.q[i];
            memcpy(o + at * D, out, sizeof out);
        }
    }
}

/* Through x / sqrt(sum x^2 + eps) * scale, given the result y. */
static void unit_back(float *dx, const float *dy, const float *y, float inv, float scale)
{
    const float along = dot(dy, y) / scale;
    EACH(i, D) dx[i] = inv * (scale * dy[i] - along * y[i]);
}

/* ds: gradient of the state behind this token, becomes that of the state before it. */
static void step_back(const struct head *h, const float *before, const float *after, float *ds,
                      const float *d_out, float *dq, float *dk, float *dv, float *da, float *d_beta)
{
    float de[D] = {0}, du[D];
    EACH(i, D)
    {
        dq[i] = dot(after + i * D, d_out);
        EACH(j, D) ds[i * D + j] += h->q[i] * d_out[j];
        dk[i] = dot(ds + i * D, h->e);
        EACH(j, D) de[j] += ds[i * D + j] * h->k[i];
    }
    *d_beta = dot(de, h->rest);
    EACH(j, D) dv[j] = h->beta * de[j];
    EACH(j, D) du[j] = -dv[j];
    EACH(i, D)
    {
        const float *row = before + i * D;
        dk[i] += h->a[i] * dot(row, du);
        EACH(j, D) ds[i * D + j] += h->k[i] * du[j];
        da[i] = dot(ds + i * D, row);
        EACH(j, D) ds[i * D + j] *= h->a[i];
    }
}

void kda_backward(const float *q, const float *k, const float *v, const float *z, const float *beta,
                  const float *rate, float lower, const float *d_o, float *dq, float *dk, float *dv,
                  float *dz, float *d_beta, float *d_rate, long batch, long t, long heads)
{
#pragma omp parallel
    {
        float *states = calloc((size_t)(t + 1) * D * D, sizeof(float));
        struct head *h = malloc((size_t)t * sizeof *h);
#pragma omp for
        EACH(row, batch * heads)
        {
            const float r = rate[row % heads];
            float ds[D * D] = {0}, da[D], gq[D], gk[D], sum = 0;
            EACH(s, t)
            {
                const long at = (row / heads * t + s) * heads + row % heads;
                prepare(&h[s], q + at * D, k + at * D, v + at * D, z + at * D, r, beta[at], lower);
                step(&h[s], states + s * D * D, states + (s + 1) * D * D);
            }
            for (long s = t - 1; s >= 0; s--) {
                const long at = (row / heads * t + s) * heads + row % heads;
                float db;
                step_back(&h[s], states + s * D * D, states + (s + 1) * D * D, ds, d_o + at * D, gq,
                          gk, dv + at * D, da, &db);
                unit_back(dq + at * D, gq, h[s].q, h[s].q_inv, 1.0f / sqrtf(D));
                unit_back(dk + at * D, gk, h[s].k, h[s].k_inv, 1);
                d_beta[at] = db * h[s].beta * (1 - h[s].beta);
                EACH(i, D)
                {
                    const float g = h[s].gate[i];
                    const float dx = da[i] * h[s].a[i] * lower * g * (1 - g);
                    dz[at * D + i] = dx * r;
                    sum += dx * z[at * D + i];
                }
            }
#pragma omp atomic
            d_rate[row % heads] += sum;
        }
        free(h);
        free(states);
    }
}

/* ---- attention -------------------------------------------------------------------------------- */

/* One head's rows, gathered: keys and values once as they are, once transposed. */
enum { ROOM = 2 * QK + 2 * VD + 2 }; /* floats a row */
struct attention {
    float *k, *kt, *v, *vt, *p, *g;
};

static void take(struct attention *a, float *room, const float *k, const float *v, long stride_k,
                 long stride_v, long t)
{
    a->k = room, a->kt = a->k + t * QK, a->v = a->kt + t * QK, a->vt = a->v + t * VD;
    a->p = a->vt + t * VD, a->g = a->p + t;
    EACH(s, t) EACH(i, QK) a->k[s * QK + i] = a->kt[i * t + s] = k[s * stride_k + i];
    EACH(s, t) EACH(i, VD) a->v[s * VD + i] = a->vt[i * t + s] = v[s * stride_v + i];
}

/* out[s] = x . column s of a transposed matrix of t columns, for the first n. */
static void against(float *out, const float *x, const float *m, long width, long t, long n)
{
    EACH(s, n) out[s] = 0;
    EACH(i, width) EACH(s, n) out[s] += x[i] * m[i * t + s];
}

/* q, k: [batch, t, heads, QK], v, o: [batch, t, heads, VD], log_sum: [batch, heads, t]; causal. */
void attend_forward(const float *q, const float *k, const float *v, float *o, float *log_sum,
                    float scale, long batch, long t, long heads)
{
#pragma omp parallel
    {
        float *room = malloc((size_t)t * ROOM * sizeof(float));
#pragma omp for
        EACH(row, batch * heads)
        {
            const long first = row / heads * t * heads + row % heads;
            struct attention a;
            take(&a, room, k + first * QK, v + first * VD, heads * QK, heads * VD, t);
            EACH(s, t)
            {
                float top = -1e30f, sum = 0, out[VD] = {0};
                against(a.p, q + (first + s * heads) * QK, a.kt, QK, t, s + 1);
                EACH(i, s + 1) top = fmaxf(top, a.p[i] *= scale);
                EACH(i, s + 1) sum += a.p[i] = expf(a.p[i] - top);
                EACH(i, s + 1) EACH(j, VD) out[j] += a.p[i] * a.v[i * VD + j];
                EACH(j, VD) o[(first + s * heads) * VD + j] = out[j] / sum;
                log_sum[row * t + s] = top + logf(sum);
            }
        }
        free(room);
    }
}

/* dk, dv: zero before. */
void attend_backward(const float *q, const float *k, const float *v, const float *o,
                     const float *log_sum, const float *d_o, float *dq, float *dk, float *dv,
                     float scale, long batch, long t, long heads)
{
#pragma omp parallel
    {
        float *room = malloc((size_t)t * ROOM * sizeof(float));
#pragma omp for
        EACH(row, batch * heads)
        {
            const long first = row / heads * t * heads + row % heads;
            struct attention a;
            take(&a, room, k + first * QK, v + first * VD, heads * QK, heads * VD, t);
            EACH(s, t)
            {
                const long at = first + s * heads;
                const float *g = d_o + at * VD, *x = q + at * QK, lse = log_sum[row * t + s];
                float along = 0, out[QK] = {0};
                EACH(j, VD) along += g[j] * o[at * VD + j];
                against(a.p, x, a.kt, QK, t, s + 1);
                against(a.g, g, a.vt, VD, t, s + 1);
                EACH(i, s + 1) a.p[i] = expf(a.p[i] * scale - lse);
                EACH(i, s + 1) a.g[i] = a.p[i] * (a.g[i] - along) * scale;
                EACH(i, s + 1)
                {
                    float *kg = dk + (first + i * heads) * QK, *vg = dv + (first + i * heads) * VD;
                    EACH(j, QK) out[j] += a.g[i] * a.k[i * QK + j];
                    EACH(j, QK) kg[j] += a.g[i] * x[j];
                    EACH(j, VD) vg[j] += a.p[i] * g[j];
                }
                memcpy(dq + at * QK, out, sizeof out);
            }
        }
        free(room);
    }
}

/* ---- causal depthwise convolution and SiLU ---------------------------------------------------- */

enum { TAPS = 4 };

static void conv_one(const float *x, const float *w, float *y, long s, long p)
{
    EACH(c, p) y[c] = x[c] * w[3 * p + c];
    for (long back = 1; back < TAPS && back <= s; back++)
        EACH(c, p) y[c] += x[c - back * p] * w[(3 - back) * p + c];
}

/* x, y: [batch, t, p]; w: [TAPS, p], the last tap that of the current token. */
void conv_forward(const float *x, const float *w, float *y, long batch, long t, long p)
{
#pragma omp parallel for
    EACH(r, batch * t)
    {
        conv_one(x + r * p, w, y + r * p, r % t, p);
        EACH(c, p) y[r * p + c] *= sigma(y[r * p + c]);
    }
}

/* dx and dw: zero before. One thread per sequence; dw is [batch, TAPS, p], to be summed. */
void conv_backward(const float *x, const float *w, const float *dy, float *dx, float *dw,
                   long batch, long t, long p)
{
#pragma omp parallel for
    EACH(b, batch)
    {
        float y[p], *sum = dw + b * TAPS * p;
        EACH(s, t)
        {
            const long r = (b * t + s) * p;
            conv_one(x + r, w, y, s, p);
            EACH(c, p)
            {
                const float g = sigma(y[c]);
                y[c] = dy[r + c] * g * (1 + y[c] * (1 - g));
            }
            for (long back = 0; back < TAPS && back <= s; back++)
                EACH(c, p)
                {
                    dx[r - back * p + c] += y[c] * w[(3 - back) * p + c];
                    sum[(3 - back) * p + c] += y[c] * x[r - back * p + c];
                }
        }
    }
}

/* ---- RMS norm --------------------------------------------------------------------------------- */

void norm_forward(const float *x, const float *w, float *y, float eps, long rows, long n)
{
#pragma omp parallel for
    EACH(r, rows)
    {
        float sum = 0;
        EACH(i, n) sum += x[r * n + i] * x[r * n + i];
        const float inv = 1.0f / sqrtf(sum / (float)n + eps);
        EACH(i, n) y[r * n + i] = x[r * n + i] * inv * w[i];
    }
}

/* dw: zero before. */
void norm_backward(const float *x, const float *w, const float *dy, float *dx, float *dw, float eps,
                   long rows, long n)
{
#pragma omp parallel
    {
        float own[n];
        memset(own, 0, sizeof own);
#pragma omp for
        EACH(r, rows)
        {
            const float *a = x + r * n, *g = dy + r * n;
            float sum = 0, along = 0;
            EACH(i, n) sum += a[i] * a[i];
            EACH(i, n) along += g[i] * w[i] * a[i];
            const float inv = 1.0f / sqrtf(sum / (float)n + eps);
            const float pull = along * inv * inv * inv / (float)n;
            EACH(i, n) dx[r * n + i] = g[i] * w[i] * inv - a[i] * pull;
            EACH(i, n) own[i] += g[i] * a[i] * inv;
        }
#pragma omp critical
        EACH(i, n) dw[i] += own[i];
    }
}

/* ---- SiTU-GLU, and a value behind a sigmoid gate ---------------------------------------------- */

void glu_forward(const float *gate, const float *up, float *y, float b1, float b2, long n)
{
#pragma omp parallel for simd
    EACH(i, n) y[i] = b1 * tanhf(gate[i] / b1) * sigma(gate[i]) * b2 * tanhf(up[i] / b2);
}

void glu_backward(const float *gate, const float *up, const float *dy, float *d_gate, float *d_up,
                  float b1, float b2, long n)
{
#pragma omp parallel for simd
    EACH(i, n)
    {
        const float t = tanhf(gate[i] / b1), s = sigma(gate[i]), u = tanhf(up[i] / b2);
        d_gate[i] = dy[i] * b2 * u * ((1 - t * t) * s + b1 * t * s * (1 - s));
        d_up[i] = dy[i] * b1 * t * s * (1 - u * u);
    }
}

void gate_forward(const float *x, const float *gate, float *y, long n)
{
#pragma omp parallel for simd
    EACH(i, n) y[i] = x[i] * sigma(gate[i]);
}

void gate_backward(const float *x, const float *gate, const float *dy, float *dx, float *d_gate,
                   long n)
{
#pragma omp parallel for simd
    EACH(i, n)
    {
        const float s = sigma(gate[i]);
        dx[i] = dy[i] * s;
        d_gate[i] = dy[i] * x[i] * s * (1 - s);
    }
}

/* ---- block attention residuals ---------------------------------------------------------------- */

enum { SOURCES = 8 };

/* The scores of one row's sources, their shares, and what normalises each. */
static void shares(const float *const *v, long sources, const float *key, float eps, long at,
                   long n, float *score, float *share, float *inv)
{
    float top = -1e30f, sum = 0;
    EACH(s, sources)
    {
        float square = 0, along = 0;
        EACH(i, n) square += v[s][at + i] * v[s][at + i];
        EACH(i, n) along += v[s][at + i] * key[i];
        inv[s] = 1.0f / sqrtf(square / (float)n + eps);
        score[s] = along * inv[s];
        top = fmaxf(top, score[s]);
    }
    EACH(s, sources) sum += share[s] = expf(score[s] - top);
    EACH(s, sources) share[s] /= sum;
}

void mix_forward(const float *const *v, long sources, const float *key, float *y, float eps,
                 long rows, long n)
{
#pragma omp parallel for
    EACH(r, rows)
    {
        float score[SOURCES], share[SOURCES], inv[SOURCES];
        shares(v, sources, key, eps, r * n, n, score, share, inv);
        EACH(i, n) y[r * n + i] = v[0][r * n + i] * share[0];
        for (long s = 1; s < sources; s++)
            EACH(i, n) y[r * n + i] += v[s][r * n + i] * share[s];
    }
}

/* d_key: zero before. */
void mix_backward(const float *const *v, long sources, const float *key, const float *dy,
                  float *const *dv, float *d_key, float eps, long rows, long n)
{
#pragma omp parallel
    {
        float own[n];
        memset(own, 0, sizeof own);
#pragma omp for
        EACH(r, rows)
        {
            float score[SOURCES], share[SOURCES], inv[SOURCES], d[SOURCES], mean = 0;
            const float *g = dy + r * n;
            shares(v, sources, key, eps, r * n, n, score, share, inv);
            EACH(s, sources)
            {
                d[s] = 0;
                EACH(i, n) d[s] += g[i] * v[s][r * n + i];
                mean += d[s] * share[s];
            }
            EACH(s, sources)
            {
                const float *a = v[s] + r * n, ds = share[s] * (d[s] - mean), c = ds * inv[s];
                const float pull = ds * score[s] * inv[s] * inv[s] / (float)n;
                EACH(i, n) dv[s][r * n + i] = g[i] * share[s] + c * key[i] - pull * a[i];
                EACH(i, n) own[i] += c * a[i];
            }
        }
#pragma omp critical
        EACH(i, n) d_key[i] += own[i];
    }
}

/* ---- MXFP4 ------------------------------------------------------------------------------------ */

/* The values that are stored: groups of 32, the smallest power of two with which none exceeds 6. */
void mxfp4(const float *x, float *y, long groups)
{
#pragma omp parallel for
    EACH(g, groups)
    {
        const float *a = x + g * 32;
        float top = 0x1p-100f;
        EACH(i, 32) top = fmaxf(top, fabsf(a[i]));
        const float scale = exp2f(ceilf(log2f(top / 6.0f)));
        EACH(i, 32)
        {
            const float m = fabsf(a[i]) / scale, step = m < 2 ? 0.5f : m < 4 ? 1.0f : 2.0f;
            const float s = fminf(rintf(m / step) * step, 6.0f) * scale;
            y[g * 32 + i] = copysignf(s, a[i]);
        }
    }
}

/* ---- AdamW ------------------------------------------------------------------------------------ */

double sum_squares(const float *x, long n)
{
    double sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    EACH(i, n) sum += x[i] * x[i];
    return sum;
}

/* grad is scaled first; m, v: the moments; keep = 1 - rate * decay; c1, c2 correct that the moments
 * started at zero. */
void adamw(float *w, const float *grad, float *m, float *v, float scale, float rate, float keep,
           float b1, float b2, float c1, float c2, long n)
{
#pragma omp parallel for simd
    EACH(i, n)
    {
        const float g = grad[i] * scale;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        w[i] = w[i] * keep - rate * (m[i] * c1) / (sqrtf(v[i] * c2) + 1e-8f);
    }
}
