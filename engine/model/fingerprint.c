/* fingerprint.c - a number that tells one checkpoint from another without reading it all. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#define PIECE 65536u
#define SAMPLE 4096u /* bytes of weights looked at in three places of a shard */

/* The hash so far, and room for what is being read. */
struct sum {
    XXH3_state_t *state;
    uint8_t *buf; /* [PIECE] */
};

static void add(struct sum *s, const void *data, size_t n)
{
    XXH3_128bits_update(s->state, data, n);
}

static enum k3_status add_config(struct sum *s, const char *dir, struct k3_error *err)
{
    char path[4096];
    const int len = snprintf(path, sizeof path, "%s/config.json", dir);
    if (len < 0 || (size_t)len >= sizeof path)
        return k3_fail(err, K3_USAGE, "%s: the path is too long", dir);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, s->buf, PIECE)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0)
            add(s, s->buf, (size_t)n);
    }
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return n == 0 ? K3_OK : k3_fail(err, K3_FAILED, "%s: %s", path, strerror(why));
}

static enum k3_status add_range(struct sum *s, const struct k3_checkpoint *c, uint32_t shard,
                                uint64_t from, uint64_t n, struct k3_error *err)
{
    while (n > 0) {
        const size_t k = n < PIECE ? (size_t)n : PIECE;
        if (k3_checkpoint_read(c, shard, from, s->buf, k, err) != K3_OK)
            return err->status;
        add(s, s->buf, k);
        from += k;
        n -= k;
    }
    return K3_OK;
}

/* Name, size, header; and a few of the weights, because another training of the same model differs
 * in nothing else. */
static enum k3_status add_shard(struct sum *s, const struct k3_checkpoint *c, uint32_t i,
                                struct k3_error *err)
{
    const struct k3_shard *sh = &c->shards[i];
    uint64_t header = 0;
    if (k3_checkpoint_read(c, i, 0, &header, sizeof header, err) != K3_OK)
        return err->status;
    const uint64_t data = 8 + header; /* inside the file: opening has checked it */
    add(s, sh->name, strlen(sh->name) + 1);
    add(s, &sh->size, sizeof sh->size);
    if (add_range(s, c, i, 0, data, err) != K3_OK)
        return err->status;
    for (uint64_t k = 0; k < 3; k++) {
        const uint64_t left = sh->size - data;
        const uint64_t n = left < SAMPLE ? left : SAMPLE;
        if (add_range(s, c, i, data + (left - n) / 2 * k, n, err) != K3_OK)
            return err->status;
    }
    return K3_OK;
}

enum k3_status k3_fingerprint_make(struct k3_engine *e, struct k3_error *err)
{
    struct sum s = {.state = XXH3_createState(), .buf = malloc(PIECE)};
    enum k3_status st = K3_OK;
    if (!s.state || !s.buf)
        st = k3_fail_memory(err, "the model's fingerprint", PIECE);
    else
        XXH3_128bits_reset(s.state);
    if (st == K3_OK)
        st = add_config(&s, e->model_dir, err);
    for (uint32_t i = 0; st == K3_OK && i < e->ckpt->n_shards; i++)
        st = add_shard(&s, e->ckpt, i, err);
    if (st == K3_OK) {
        const XXH128_hash_t h = XXH3_128bits_digest(s.state);
        e->fingerprint = (struct k3_fingerprint){h.high64, h.low64};
    }
    XXH3_freeState(s.state);
    free(s.buf);
    return st;
}

struct k3_fingerprint k3_get_fingerprint(const k3_engine *e)
{
    return e->fingerprint;
}

void k3_fingerprint_text(struct k3_fingerprint f, char text[K3_FINGERPRINT_TEXT])
{
    snprintf(text, K3_FINGERPRINT_TEXT, "%016llx%016llx", (unsigned long long)f.high,
             (unsigned long long)f.low);
}
