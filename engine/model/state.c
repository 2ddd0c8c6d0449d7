/* state.c - the carried state as a file.
 *
 * Layout, little endian: a header of 80 bytes that ends with the XXH3 of what stands before it; then
 * sections, each followed by its own XXH3 (seed = number of the section, so that none can stand in
 * another's place): the ids [position], the logits [vocab] if there are any, and layer by layer the
 * KDA matrices with their convolution histories, or the latents of [0, position). The file ends
 * there. Everything is checked before the engine's state is touched. */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "K3STATE\n"
#define PIECE (256u * 1024)      /* read at once while checking */
#define WRITE_MOST (8u << 20)
#define POSITIONS_MOST (1u << 25)
#define WIDTH_MOST (1u << 20)

struct header {
    char magic[8];
    uint32_t format, contract;
    uint64_t model_high, model_low;
    uint32_t layers, mla_layers;
    uint32_t kda_floats;   /* of one KDA layer */
    uint32_t latent_width;
    uint32_t vocab;
    uint32_t position;
    uint32_t has_logits;   /* 0 or 1 */
    uint32_t reserved;     /* 0 */
    uint64_t bytes;        /* of the whole file */
    uint64_t check;
};
_Static_assert(sizeof(struct header) == 80, "the header has no gaps");

static uint64_t header_check(const struct header *h)
{
    return XXH3_64bits(h, offsetof(struct header, check));
}

/* Sizes were bounded before: no overflow. */
static uint64_t file_bytes(const struct header *h)
{
    const uint64_t kda = h->layers - h->mla_layers, sum = sizeof(uint64_t);
    uint64_t n = sizeof *h + 4ull * h->position + sum;
    if (h->has_logits)
        n += 4ull * h->vocab + sum;
    n += kda * (4ull * h->kda_floats + sum);
    return n + h->mla_layers * (4ull * h->latent_width * h->position + sum);
}

static struct header make_header(const struct k3_engine *e)
{
    const struct k3_config *c = &e->cfg;
    struct header h = {.magic = MAGIC,
                       .format = K3_STATE_FORMAT,
                       .contract = K3_CONTRACT_VERSION,
                       .model_high = e->fingerprint.high,
                       .model_low = e->fingerprint.low,
                       .layers = c->layers,
                       .mla_layers = k3_count_mla(c),
                       .kda_floats = (uint32_t)k3_kda_floats(c),
                       .latent_width = (uint32_t)k3_latent_width(c),
                       .vocab = c->vocab,
                       .position = e->position,
                       .has_logits = k3_has_logits(e)};
    h.bytes = file_bytes(&h);
    h.check = header_check(&h);
    return h;
}

uint64_t k3_state_file_bytes(const k3_engine *e)
{
    return make_header(e).bytes;
}

/* ---- writing ----------------------------------------------------------------------------- */

struct out {
    int fd;
    const char *path; /* for messages */
    uint64_t section;
    struct k3_error *err;
};

static enum k3_status fail_errno(const char *path, const char *what, int why, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "%s: the state cannot be %s: %s", path, what, strerror(why));
}

static enum k3_status put(struct out *o, const void *data, uint64_t n)
{
    const uint8_t *at = data;
    while (n > 0) {
        const ssize_t k = write(o->fd, at, n < WRITE_MOST ? (size_t)n : WRITE_MOST);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return fail_errno(o->path, "written", k == 0 ? ENOSPC : errno, o->err);
        at += k;
        n -= (uint64_t)k;
    }
    return K3_OK;
}

static enum k3_status put_section(struct out *o, const void *data, uint64_t n)
{
    const uint64_t sum = XXH3_64bits_withSeed(data, n, o->section++);
    if (put(o, data, n) != K3_OK)
        return o->err->status;
    return put(o, &sum, sizeof sum);
}

static enum k3_status put_all(struct out *o, const struct k3_engine *e, const int32_t *ids)
{
    const struct header h = make_header(e);
    enum k3_status st = put(o, &h, sizeof h);
    if (st == K3_OK)
        st = put_section(o, ids, 4ull * h.position);
    if (st == K3_OK && h.has_logits)
        st = put_section(o, k3_logits(e), 4ull * h.vocab);
    for (uint32_t l = 0; st == K3_OK && l < h.layers; l++)
        st = e->cfg.is_mla[l]
                 ? put_section(o, e->layers[l].latents, 4ull * h.latent_width * h.position)
                 : put_section(o, e->layers[l].kda, 4ull * h.kda_floats);
    return st;
}

/* The rename is durable only when the folder is. A file system that cannot do that is no error. */
static void sync_folder(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static enum k3_status write_file(const struct k3_engine *e, const char *temporary,
                                 const int32_t *ids, struct k3_error *err)
{
    struct out o = {.path = temporary, .err = err};
    unlink(temporary); /* of a program that was killed */
    o.fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (o.fd < 0)
        return fail_errno(temporary, "created", errno, err);
    enum k3_status st = put_all(&o, e, ids);
    if (st == K3_OK && fsync(o.fd) != 0)
        st = fail_errno(temporary, "written", errno, err);
    posix_fadvise(o.fd, 0, 0, POSIX_FADV_DONTNEED); /* leave the page cache to the weights */
    if (close(o.fd) != 0 && st == K3_OK)
        st = fail_errno(temporary, "written", errno, err);
    return st;
}

enum k3_status k3_state_save(k3_engine *e, const char *path, const int32_t *ids, size_t n,
                             struct k3_error *err)
{
    char temporary[4096];
    const int len = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (len < 0 || (size_t)len >= sizeof temporary)
        return k3_fail(err, K3_USAGE, "%s: the path is too long", path);
    if (n != e->position || n == 0)
        return k3_fail(err, K3_USAGE, "a state of %zu tokens was asked for, but %u are processed",
                       n, e->position);
    if (!k3_at_rest(e))
        return k3_fail(err, K3_USAGE, "the state cannot be saved while tokens are suspended");
    enum k3_status st = write_file(e, temporary, ids, err);
    if (st == K3_OK && rename(temporary, path) != 0)
        st = fail_errno(path, "put in place", errno, err);
    if (st == K3_OK)
        sync_folder(path);
    else
        unlink(temporary);
    return st;
}

/* ---- reading ----------------------------------------------------------------------------- */

static enum k3_status get(int fd, const char *path, void *data, uint64_t n, struct k3_error *err)
{
    uint8_t *at = data;
    while (n > 0) {
        const ssize_t k = read(fd, at, n < WRITE_MOST ? (size_t)n : WRITE_MOST);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return fail_errno(path, "read", errno, err);
        if (k == 0)
            return k3_fail(err, K3_FAILED, "%s: the state is cut short", path);
        at += k;
        n -= (uint64_t)k;
    }
    return K3_OK;
}

static enum k3_status damaged(const char *path, const char *where, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED, "%s: the state is damaged (%s)", path, where);
}

/* After this every size that follows from the header is the file's own. */
static enum k3_status check_header(const struct header *h, const char *path, uint64_t size,
                                   struct k3_error *err)
{
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return k3_fail(err, K3_FAILED, "%s: this is no state file", path);
    if (h->format != K3_STATE_FORMAT)
        return k3_fail(err, K3_FAILED, "%s: state format %u; this program reads format %u", path,
                       h->format, K3_STATE_FORMAT);
    if (h->check != header_check(h))
        return damaged(path, "its header", err);
    if (h->layers == 0 || h->layers > K3_MAX_LAYERS || h->mla_layers > h->layers ||
        h->latent_width > WIDTH_MOST || h->position == 0 || h->position > POSITIONS_MOST ||
        h->has_logits > 1 || h->reserved != 0 || h->bytes != file_bytes(h))
        return damaged(path, "its header makes no sense", err);
    if (size < h->bytes)
        return k3_fail(err, K3_FAILED, "%s: the state is cut short: %llu bytes of %llu", path,
                       (unsigned long long)size, (unsigned long long)h->bytes);
    return size > h->bytes ? damaged(path, "bytes behind its end", err) : K3_OK;
}

/* Opens and checks the header. -1 on failure. */
static int open_state(const char *path, struct header *h, struct k3_error *err)
{
    struct stat sb;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        fail_errno(path, "opened", errno, err);
        return -1;
    }
    enum k3_status st = K3_OK;
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode))
        st = k3_fail(err, K3_FAILED, "%s: not a file", path);
    else if ((uint64_t)sb.st_size < sizeof *h)
        st = k3_fail(err, K3_FAILED, "%s: the state is cut short: %lld bytes", path,
                     (long long)sb.st_size);
    if (st == K3_OK)
        st = get(fd, path, h, sizeof *h, err);
    if (st == K3_OK)
        st = check_header(h, path, (uint64_t)sb.st_size, err);
    if (st == K3_OK)
        return fd;
    close(fd);
    return -1;
}

/* A section into memory, and its check. */
static enum k3_status get_section(int fd, const char *path, void *data, uint64_t n,
                                  uint64_t section, struct k3_error *err)
{
    uint64_t sum = 0;
    if (get(fd, path, data, n, err) != K3_OK || get(fd, path, &sum, sizeof sum, err) != K3_OK)
        return err->status;
    return sum == XXH3_64bits_withSeed(data, n, section) ? K3_OK : damaged(path, "a checksum", err);
}

static enum k3_status get_ids(int fd, const char *path, const struct header *h, int32_t **ids,
                              struct k3_error *err)
{
    *ids = malloc(4ull * h->position); /* no more than the file has bytes */
    if (!*ids)
        return k3_fail_memory(err, "the ids of a state", 4ull * h->position);
    enum k3_status st = get_section(fd, path, *ids, 4ull * h->position, 0, err);
    for (uint32_t i = 0; st == K3_OK && i < h->position; i++)
        if ((*ids)[i] < 0 || (uint32_t)(*ids)[i] >= h->vocab)
            st = damaged(path, "an id out of range", err);
    if (st == K3_OK)
        return K3_OK;
    free(*ids);
    *ids = NULL;
    return st;
}

enum k3_status k3_state_read_info(const char *path, struct k3_state_info *info,
                                  struct k3_error *err)
{
    struct header h;
    memset(info, 0, sizeof *info);
    const int fd = open_state(path, &h, err);
    if (fd < 0)
        return err->status;
    *info = (struct k3_state_info){.contract = h.contract,
                                   .model = {h.model_high, h.model_low},
                                   .position = h.position,
                                   .has_logits = h.has_logits,
                                   .bytes = h.bytes};
    const enum k3_status st = get_ids(fd, path, &h, &info->ids, err);
    close(fd);
    return st;
}

void k3_state_info_free(struct k3_state_info *info)
{
    free(info->ids);
    info->ids = NULL;
}

enum k3_status k3_state_fits(const k3_engine *e, const char *path,
                             const struct k3_state_info *info, struct k3_error *err)
{
    if (info->contract != K3_CONTRACT_VERSION)
        return k3_fail(err, K3_FAILED,
                       "%s: the state was made under version %u of the numeric contract, this "
                       "program computes by version %u", path, info->contract,
                       K3_CONTRACT_VERSION);
    if (info->model.high != e->fingerprint.high || info->model.low != e->fingerprint.low)
        return k3_fail(err, K3_FAILED, "%s: the state belongs to another model", path);
    if (info->position > e->plan.context)
        return k3_fail(err, K3_FAILED,
                       "%s: the state has %u positions and the context room for %u", path,
                       info->position, e->plan.context);
    return K3_OK;
}

/* Reads a section in pieces and checks it. */
static enum k3_status check_section(int fd, const char *path, uint8_t *buf, uint64_t n,
                                    uint64_t section, XXH3_state_t *hash, struct k3_error *err)
{
    uint64_t sum = 0;
    XXH3_64bits_reset_withSeed(hash, section);
    while (n > 0) {
        const size_t k = n < PIECE ? (size_t)n : PIECE;
        if (get(fd, path, buf, k, err) != K3_OK)
            return err->status;
        XXH3_64bits_update(hash, buf, k);
        n -= k;
    }
    if (get(fd, path, &sum, sizeof sum, err) != K3_OK)
        return err->status;
    return sum == XXH3_64bits_digest(hash) ? K3_OK : damaged(path, "a checksum", err);
}

/* Everything behind the ids, without keeping any of it; then back to where it began. */
static enum k3_status check_rest(const struct k3_engine *e, int fd, const char *path,
                                 const struct header *h, struct k3_error *err)
{
    const off_t begin = lseek(fd, 0, SEEK_CUR);
    uint8_t *buf = malloc(PIECE);
    XXH3_state_t *hash = XXH3_createState();
    uint64_t section = 1;
    enum k3_status st = K3_OK;
    if (!buf || !hash)
        st = k3_fail_memory(err, "reading a state", PIECE);
    if (st == K3_OK && h->has_logits)
        st = check_section(fd, path, buf, 4ull * h->vocab, section++, hash, err);
    for (uint32_t l = 0; st == K3_OK && l < h->layers; l++)
        st = check_section(fd, path, buf,
                           e->cfg.is_mla[l] ? 4ull * h->latent_width * h->position
                                            : 4ull * h->kda_floats,
                           section++, hash, err);
    XXH3_freeState(hash);
    free(buf);
    if (st == K3_OK && lseek(fd, begin, SEEK_SET) != begin)
        st = fail_errno(path, "read", errno, err);
    return st;
}

/* Into the engine. After a failure its state is good for nothing but k3_reset(). */
static enum k3_status take_rest(struct k3_engine *e, int fd, const char *path,
                                const struct header *h, struct k3_error *err)
{
    uint64_t section = 1;
    enum k3_status st = K3_OK;
    if (h->has_logits)
        st = get_section(fd, path, e->ws.logits, 4ull * h->vocab, section++, err);
    for (uint32_t l = 0; st == K3_OK && l < h->layers; l++)
        st = e->cfg.is_mla[l] ? get_section(fd, path, e->layers[l].latents,
                                            4ull * h->latent_width * h->position, section++, err)
                              : get_section(fd, path, e->layers[l].kda, 4ull * h->kda_floats,
                                            section++, err);
    return st;
}

/* The engine's own header for this position differs in nothing. */
static enum k3_status check_geometry(const struct k3_engine *e, const struct header *h,
                                     const char *path, struct k3_error *err)
{
    const struct header own = make_header(e);
    if (h->layers == own.layers && h->mla_layers == own.mla_layers &&
        h->kda_floats == own.kda_floats && h->latent_width == own.latent_width &&
        h->vocab == own.vocab)
        return K3_OK;
    return k3_fail(err, K3_FAILED, "%s: the state has another shape than the model", path);
}

/* All that can be refused before the engine's state is touched. */
static enum k3_status check_all(const struct k3_engine *e, int fd, const char *path,
                                const struct header *h, const int32_t *ids, size_t n,
                                struct k3_error *err)
{
    struct k3_state_info info = {.contract = h->contract,
                                 .model = {h->model_high, h->model_low},
                                 .position = h->position};
    if (k3_state_fits(e, path, &info, err) != K3_OK || check_geometry(e, h, path, err) != K3_OK ||
        get_ids(fd, path, h, &info.ids, err) != K3_OK)
        return err->status;
    const bool same = n == h->position && memcmp(info.ids, ids, n * sizeof *ids) == 0;
    k3_state_info_free(&info);
    if (!same)
        return k3_fail(err, K3_FAILED, "%s: the state covers other tokens", path);
    return check_rest(e, fd, path, h, err);
}

enum k3_status k3_state_load(k3_engine *e, const char *path, const int32_t *ids, size_t n,
                             struct k3_error *err)
{
    struct header h;
    const int fd = open_state(path, &h, err);
    if (fd < 0)
        return err->status;
    enum k3_status st = check_all(e, fd, path, &h, ids, n, err);
    if (st == K3_OK) {
        k3_reset(e);
        st = take_rest(e, fd, path, &h, err);
        if (st == K3_OK) {
            e->logits_row = 0;
            e->position = h.position;
            e->logits_at = h.has_logits ? h.position : 0;
        } else {
            k3_reset(e); /* it changed or broke between the two readings */
        }
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return st;
}
