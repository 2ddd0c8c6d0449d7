/* doctor_disk.c - see doctor_disk.h. Sources: proc(5) (mountinfo), the kernel's document on
 * queue/rotational. */
#include <config.h>

#include "doctor_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "paths.h"
#include "size.h"

#define LEAST_BYTES (64u << 20) /* fewer are read over and over, out of the disk's own memory */
#define PIECE (8u << 20)

/* ---- what it is -------------------------------------------------------------------------- */

/* The folder itself or the nearest one above it that is there. */
static char *existing_folder(const char *dir, struct k3_error *err)
{
    char *at = path_format(err, "%s", dir);
    while (at != NULL && !path_is_dir(at)) {
        char *up = path_dirname(at, err);
        free(at);
        at = up;
    }
    return at;
}

/* "ext4" and "/dev/sda1" of the mount that holds this device number; false when it is not found. */
static bool find_mount(dev_t dev, char type[64], char source[128])
{
    char line[4096];
    bool found = false;
    FILE *f = fopen("/proc/self/mountinfo", "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        unsigned id, parent, major, minor;
        const char *rest = strstr(line, " - ");
        found = sscanf(line, "%u %u %u:%u", &id, &parent, &major, &minor) == 4 && rest != NULL &&
                major == major(dev) && minor == minor(dev) &&
                sscanf(rest + 3, "%63s %127s", type, source) == 2;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* " (turning)", " (solid state)" or nothing: of the disk, or of the one that a partition is on. What
 * a virtual disk says of itself means nothing. */
static const char *disk_kind(dev_t dev, const char *source)
{
    static const char *const up[] = {"", "../"};
    if (strncmp(source, "/dev/vd", 7) == 0 || strncmp(source, "/dev/xvd", 8) == 0)
        return "";
    for (size_t i = 0; i < sizeof up / sizeof up[0]; i++) {
        char path[128];
        int turns = 0;
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%squeue/rotational", major(dev),
                 minor(dev), up[i]);
        FILE *f = fopen(path, "re");
        if (f == NULL)
            continue;
        const bool known = fscanf(f, "%d", &turns) == 1;
        fclose(f);
        return !known ? "" : turns != 0 ? " (turning)" : " (solid state)";
    }
    return "";
}

void doctor_print_disk(FILE *out, const char *dir)
{
    char type[64] = "unknown file system", source[128] = "unknown device", room[32], size[32];
    struct k3_error err;
    struct stat sb;
    struct statvfs vfs;
    char *at = existing_folder(dir, &err);
    if (at != NULL && stat(at, &sb) == 0 && statvfs(at, &vfs) == 0) {
        find_mount(sb.st_dev, type, source);
        fprintf(out, "disk of %s: %s%s, %s, %s free of %s\n", at, source, disk_kind(sb.st_dev, source),
                type, size_format(room, sizeof room, (uint64_t)vfs.f_bavail * vfs.f_frsize),
                size_format(size, sizeof size, (uint64_t)vfs.f_blocks * vfs.f_frsize));
    } else {
        fprintf(out, "disk of %s: unknown (%s)\n", dir, strerror(errno));
    }
    free(at);
}

/* ---- files to measure with --------------------------------------------------------------- */

static void close_files(struct k3_checkpoint *c)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        k3_shard_close(&c->shards[i]);
        free(c->shards[i].path);
    }
    free(c->shards);
    *c = (struct k3_checkpoint){0};
}

static int by_path(const void *a, const void *b)
{
    const struct k3_shard *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static bool is_shard(const char *name)
{
    static const char end[] = ".safetensors";
    const size_t n = strlen(name), k = sizeof end - 1;
    return n > k && strcmp(name + n - k, end) == 0;
}

/* Takes the file into the list when it can be opened; what cannot be read is not our business. */
static enum k3_status add_file(struct k3_checkpoint *c, const char *dir, const char *name,
                               struct k3_error *err)
{
    struct k3_shard *list = realloc(c->shards, (c->n_shards + 1) * sizeof *list);
    if (list == NULL)
        return k3_fail_memory(err, "the list of files", (c->n_shards + 1) * sizeof *list);
    c->shards = list;
    struct k3_shard *s = &list[c->n_shards];
    *s = (struct k3_shard){.path = path_format(err, "%s/%s", dir, name), .fd = -1,
                           .fd_direct = -1};
    if (s->path == NULL)
        return err->status;
    if (k3_shard_open(s))
        c->n_shards++;
    else
        free(s->path);
    return K3_OK;
}

static enum k3_status open_shards(struct k3_checkpoint *c, const char *dir, struct k3_error *err)
{
    DIR *d = opendir(dir);
    enum k3_status st = K3_OK;
    for (const struct dirent *e; d != NULL && st == K3_OK && (e = readdir(d)) != NULL;)
        if (is_shard(e->d_name))
            st = add_file(c, dir, e->d_name, err);
    if (d != NULL)
        closedir(d);
    if (st == K3_OK && c->n_shards > 0)
        qsort(c->shards, c->n_shards, sizeof *c->shards, by_path);
    return st;
}

/* Bytes without a pattern: some file systems compress. */
static void fill(uint64_t *words, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        words[i] = *seed;
    }
}

static enum k3_status fail_write(const char *dir, struct k3_error *err)
{
    return k3_fail(err, K3_FAILED,
                   "--measure: the temporary file in %s cannot be written: %s; name a smaller size "
                   "or another folder (--model)", dir, strerror(errno));
}

static enum k3_status write_bytes(int fd, const char *dir, uint64_t bytes, struct k3_error *err)
{
    uint64_t *piece = malloc(PIECE), seed = UINT64_C(0x9E3779B97F4A7C15);
    enum k3_status st = piece ? K3_OK : k3_fail_memory(err, "the temporary file", PIECE);
    for (uint64_t done = 0; st == K3_OK && done < bytes;) {
        fill(piece, PIECE / sizeof *piece, &seed);
        const size_t n = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;
        const ssize_t put = write(fd, piece, n);
        if (put > 0)
            done += (uint64_t)put;
        else if (put == 0 || errno != EINTR)
            st = fail_write(dir, err);
    }
    if (st == K3_OK && fsync(fd) != 0)
        st = fail_write(dir, err);
    free(piece);
    return st;
}

/* The name is taken away before anything is written: whatever happens, nothing stays behind. */
static enum k3_status open_temporary(struct k3_checkpoint *c, const char *dir, uint64_t bytes,
                                     struct k3_error *err)
{
    char *path = path_format(err, "%s/k3chat-measure-XXXXXX", dir);
    if (path == NULL)
        return err->status;
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        free(path);
        return fail_write(dir, err);
    }
    const char *name = strrchr(path, '/') + 1;
    enum k3_status st = add_file(c, dir, name, err);
    unlink(path);
    if (st == K3_OK)
        st = write_bytes(fd, dir, bytes, err);
    if (st == K3_OK && c->n_shards == 0)
        st = fail_write(dir, err);
    if (st == K3_OK)
        c->shards[0].size = bytes;
    close(fd);
    free(path);
    return st;
}

/* ---- measuring --------------------------------------------------------------------------- */

/* More than half of the bytes take no room: nothing is read for them. */
static bool mostly_holes(const struct k3_checkpoint *c)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct stat sb;
        if (fstat(c->shards[i].fd, &sb) == 0)
            taken += (uint64_t)sb.st_blocks * 512;
    }
    return taken < disk_bytes(c) / 2;
}

/* The depth whose buffers there is room for. */
static uint32_t fitting_depth(const struct doctor_reads *r, uint64_t bytes)
{
    uint32_t depth = r->depth < DISK_DEPTH_MAX ? r->depth : DISK_DEPTH_MAX;
    while (depth > 1 && disk_buffers(bytes, depth) > DISK_IN_FLIGHT_MAX)
        depth--;
    return depth;
}

static enum k3_status measure_one(FILE *out, struct disk_meter *m, const struct doctor_reads *r,
                                  const struct disk_reads *what, double *rate,
                                  struct k3_error *err)
{
    char a[32], b[32];
    const uint32_t depth = fitting_depth(r, what->bytes);
    if (disk_places(m->files, what->bytes) == 0 ||
        disk_buffers(what->bytes, depth) > DISK_IN_FLIGHT_MAX)
        return K3_OK;
    if (disk_measure(m, what, depth, DOCTOR_SECONDS, rate, err) != K3_OK)
        return err->status;
    fprintf(out, "  %s of %s, %u in flight: %s/s (%s)\n", what->scattered ? "experts" : "trunk blocks",
            size_format(a, sizeof a, what->bytes), (unsigned)depth,
            size_format(b, sizeof b, (uint64_t)*rate), m->name);
    return K3_OK;
}

static enum k3_status measure(FILE *out, const struct k3_checkpoint *c,
                              const struct doctor_reads *r, struct doctor_rates *rates,
                              struct k3_error *err)
{
    const struct disk_reads trunk = {r->block, false}, experts = {r->expert, true};
    struct disk_meter m = {.files = c, .kind = r->io};
    m.buffers = k3_io_alloc(DISK_IN_FLIGHT_MAX); /* touched as far as they are used */
    if (m.buffers == NULL)
        return k3_fail_memory(err, "the buffers", DISK_IN_FLIGHT_MAX);
    enum k3_status st = measure_one(out, &m, r, &trunk, &rates->trunk, err);
    if (st == K3_OK && r->expert > 0)
        st = measure_one(out, &m, r, &experts, &rates->experts, err);
    k3_io_free(m.buffers, DISK_IN_FLIGHT_MAX);
    return st;
}

enum k3_status doctor_measure(FILE *out, const char *dir, uint64_t bytes,
                              const struct doctor_reads *reads, struct doctor_rates *rates,
                              struct k3_error *err)
{
    char size[32];
    struct k3_checkpoint files = {0};
    *rates = (struct doctor_rates){0};
    char *at = existing_folder(dir, err);
    if (at == NULL)
        return err->status;
    enum k3_status st = bytes > 0 ? open_temporary(&files, at, bytes, err)
                                  : open_shards(&files, at, err);
    if (st == K3_OK && disk_bytes(&files) < LEAST_BYTES) {
        fprintf(out, "  its reading was not measured: %s (--measure 1GB writes a file for it)\n",
                files.n_shards == 0 ? "there are no shards" : "there is too little to read");
    } else if (st == K3_OK) {
        fprintf(out, "  measured with %s %s, for %g s each:\n",
                bytes > 0 ? "a temporary file of" : "the shards there,",
                size_format(size, sizeof size, disk_bytes(&files)), DOCTOR_SECONDS);
        st = measure(out, &files, reads, rates, err);
        if (st == K3_OK && mostly_holes(&files))
            fputs("  most of the files is holes, which no disk is read for: these are no rates of "
                  "the disk\n", out);
    }
    close_files(&files);
    free(at);
    return st;
}
