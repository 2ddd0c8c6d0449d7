/* io_cursor.c - how one request is read: direct or buffered, retries, the end of the file. No
 * system call here, so that both backends follow the same rules. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io_internal.h"

#define READ_MAX (1u << 30)  /* one read; Linux stops a page short of 2 GiB */
#define EAGAIN_MAX 256u      /* in a row: about five seconds of waiting */
#define DELAY_FIRST 100e-6
#define DELAY_MAX 20e-3

static uint64_t down(uint64_t x)
{
    return x - x % K3_IO_ALIGN;
}

/* Sets what to read next from u->pos. */
static void aim(const struct k3_io *io, struct k3_io_cursor *u)
{
    const struct k3_io_req *r = u->req;
    const struct k3_shard *s = &io->c->shards[r->shard];
    uint64_t begin = down(r->offset);
    uint64_t end = u->direct ? begin + k3_io_window(r->offset, r->bytes) : r->offset + r->bytes;
    u->fd = u->direct ? s->fd_direct : s->fd;
    u->want = end - u->pos < READ_MAX ? end - u->pos : READ_MAX;
    u->to = r->buf + (u->pos - begin);
}

static enum k3_io_step end(struct k3_io_cursor *u, int error)
{
    u->req->error = error;
    u->req->error_offset = error ? u->pos : 0;
    return K3_IO_DONE;
}

/* The reader's own thread looks, while the others go on reading. */
static int contents(const struct k3_io *io, struct k3_io_cursor *u)
{
    const struct k3_io_req *r = u->req;
    if (!io->opt.blocks || k3_blocks_check(io->opt.blocks, r->shard, r->offset, r->bytes,
                                           k3_io_data(r), &u->pos))
        return 0;
    return EBADMSG;
}

enum k3_io_step k3_io_cursor_begin(struct k3_io *io, struct k3_io_cursor *u, struct k3_io_req *r)
{
    *u = (struct k3_io_cursor){.req = r, .pos = r->offset};
    if (r->bytes == 0)
        return end(u, 0);
    u->direct = atomic_load(&io->direct[r->shard]);
    if (u->direct)
        u->pos = down(r->offset);
    aim(io, u);
    return K3_IO_MORE;
}

/* The file system took O_DIRECT on opening and refuses the read: this shard is buffered now. */
static void refuse_direct(struct k3_io *io, uint32_t shard, int error)
{
    atomic_store(&io->direct[shard], false);
    if (atomic_flag_test_and_set(&io->renamed))
        return;
    snprintf(io->names[1], sizeof io->names[1],
             "%s x%u, buffered where a read refused O_DIRECT (%.24s)",
             io->uring ? "uring" : "direct", io->opt.depth, strerror(error));
    atomic_store(&io->name, io->names[1]);
}

static enum k3_io_step failed(struct k3_io *io, struct k3_io_cursor *u, int error)
{
    if (error == EINTR)
        return K3_IO_MORE;
    if (error == EAGAIN && ++u->tries <= EAGAIN_MAX) {
        u->delay = u->tries > 8 ? DELAY_MAX : DELAY_FIRST * (1u << (u->tries - 1));
        if (u->delay > DELAY_MAX)
            u->delay = DELAY_MAX;
        return K3_IO_LATER;
    }
    if (error == EINVAL && u->direct) {
        refuse_direct(io, u->req->shard, error);
        u->direct = false;
        aim(io, u);
        return K3_IO_MORE;
    }
    return end(u, error);
}

enum k3_io_step k3_io_cursor_step(struct k3_io *io, struct k3_io_cursor *u, int64_t result)
{
    if (result < 0)
        return failed(io, u, (int)-result);
    if (result == 0)
        return end(u, ENODATA);
    u->tries = 0;
    u->pos += (uint64_t)result;
    if (u->pos >= u->req->offset + u->req->bytes)
        return end(u, contents(io, u));
    /* A direct read that stopped inside a block cannot go on from there: the page cache can, and
     * says for certain whether the file ends. */
    if (u->direct && u->pos % K3_IO_ALIGN != 0)
        u->direct = false;
    aim(io, u);
    return K3_IO_MORE;
}
