/* trace.c - writing and reading the file; see trace.h. */
#include <config.h>

#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_BYTES 8
#define NUMBER_MAX 65535u

/* ---- writing ----------------------------------------------------------------------------- */

struct k3_trace_writer {
    FILE *f;
    char *path;
};

struct k3_trace_writer *k3_trace_create(const char *path, struct k3_error *err)
{
    struct k3_trace_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->path = strdup(path))) {
        k3_fail_memory(err, "the expert trace", sizeof *w + strlen(path) + 1);
        free(w);
        return NULL;
    }
    w->f = fopen(path, "wbe");
    if (!w->f) {
        k3_fail(err, K3_FAILED, "%s: cannot write the expert trace: %s", path, strerror(errno));
        free(w->path);
        free(w);
        return NULL;
    }
    return w;
}

static enum k3_status write_failed(const struct k3_trace_writer *w, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "%s: writing the expert trace failed: %s", w->path,
                   strerror(errno));
}

static void put_le32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

enum k3_status k3_trace_put(struct k3_trace_writer *w, uint32_t layer, const int32_t *experts,
                            size_t tokens, size_t top_k, struct k3_error *err)
{
    for (size_t i = 0; i < tokens * top_k; i++) {
        uint8_t pair[PAIR_BYTES];
        put_le32(pair, layer);
        put_le32(pair + 4, (uint32_t)experts[i]);
        if (fwrite(pair, sizeof pair, 1, w->f) != 1)
            return write_failed(w, err);
    }
    return K3_OK;
}

enum k3_status k3_trace_flush(struct k3_trace_writer *w, struct k3_error *err)
{
    return fflush(w->f) == 0 ? K3_OK : write_failed(w, err);
}

enum k3_status k3_trace_close(struct k3_trace_writer *w, struct k3_error *err)
{
    if (!w)
        return K3_OK;
    enum k3_status st = K3_OK;
    if (fclose(w->f) != 0)
        st = write_failed(w, err);
    free(w->path);
    free(w);
    return st;
}

/* ---- reading ----------------------------------------------------------------------------- */

static uint32_t get_le32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static enum k3_status check_pair(const char *path, size_t at, const struct k3_trace_pair *p,
                                 struct k3_error *err)
{
    if (p->layer <= NUMBER_MAX && p->expert <= NUMBER_MAX)
        return K3_OK;
    const bool layer = p->layer > NUMBER_MAX;
    return k3_fail(err, K3_FAILED,
                   "%s: pair %zu (byte %zu): %s %ld is outside 0 to %u; is this an expert trace "
                   "(little-endian int32 pairs)?",
                   path, at, at * PAIR_BYTES, layer ? "layer" : "expert",
                   (long)(int32_t)(layer ? p->layer : p->expert), NUMBER_MAX);
}

/* Makes room for `more` pairs. */
static enum k3_status grow(struct k3_trace *t, size_t *room, size_t more, struct k3_error *err)
{
    if (*room - t->n >= more)
        return K3_OK;
    const size_t want = *room * 2 + more;
    if (want > SIZE_MAX / sizeof *t->pairs)
        return k3_fail_memory(err, "the expert trace", UINT64_MAX);
    struct k3_trace_pair *p = realloc(t->pairs, want * sizeof *p);
    if (!p)
        return k3_fail_memory(err, "the expert trace", want * sizeof *p);
    t->pairs = p;
    *room = want;
    return K3_OK;
}

static enum k3_status read_pairs(FILE *f, const char *path, struct k3_trace *t,
                                 struct k3_error *err)
{
    uint8_t buf[1024 * PAIR_BYTES];
    size_t room = 0, got;
    do {
        got = fread(buf, 1, sizeof buf, f);
        if (ferror(f))
            return k3_fail(err, K3_FAILED, "%s: reading failed: %s", path, strerror(errno));
        if (got % PAIR_BYTES != 0)
            return k3_fail(err, K3_FAILED,
                           "%s: %zu bytes are no whole number of 8-byte pairs (layer, expert); the "
                           "file is cut off or no expert trace",
                           path, t->n * PAIR_BYTES + got);
        if (grow(t, &room, got / PAIR_BYTES, err))
            return err->status;
        for (size_t i = 0; i < got; i += PAIR_BYTES) {
            struct k3_trace_pair *p = &t->pairs[t->n];
            *p = (struct k3_trace_pair){get_le32(buf + i), get_le32(buf + i + 4)};
            if (check_pair(path, t->n, p, err))
                return err->status;
            t->n++;
        }
    } while (got == sizeof buf);
    return K3_OK;
}

enum k3_status k3_trace_read(const char *path, struct k3_trace *t, struct k3_error *err)
{
    *t = (struct k3_trace){0};
    FILE *f = fopen(path, "rbe");
    if (!f)
        return k3_fail(err, K3_FAILED, "%s: cannot open the expert trace: %s", path,
                       strerror(errno));
    enum k3_status st = read_pairs(f, path, t, err);
    fclose(f);
    if (st == K3_OK && t->n == 0)
        st = k3_fail(err, K3_FAILED, "%s: the expert trace is empty", path);
    if (st)
        k3_trace_free(t);
    return st;
}

void k3_trace_free(struct k3_trace *t)
{
    free(t->pairs);
    *t = (struct k3_trace){0};
}
