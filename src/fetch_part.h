/* fetch_part.h - a file on its way: NAME.part, and NAME.part.tag that says of which version it is. */
#ifndef K3CHAT_FETCH_PART_H
#define K3CHAT_FETCH_PART_H

#include "fetch.h"

struct part {
    char *path, *part, *tag; /* DIR/NAME, DIR/NAME.part, DIR/NAME.part.tag */
    int fd;
    uint64_t at;             /* bytes that are in it, and in the digest */
    uint64_t synced;         /* of these, on the disk */
    struct digest sum;
};

/* Bytes of a part that belongs to this version of the file; 0 = none, or another version's. `path` is
 * that of the file itself. */
uint64_t part_kept(const char *path, const struct job *j);

/* Removes what an earlier run may have left beside a file that is whole. */
void part_forget(const char *path);

/* Opens the part, begins it anew when it is another version's, and reads what is in it. */
enum k3_status part_open(struct part *p, const char *path, const struct job *j,
                         const struct digest_watch *watch, struct k3_error *err);
void part_close(struct part *p);

/* Appends. Errors name the file and what to do; the part stays good. */
enum k3_status part_add(struct part *p, const void *bytes, size_t n, struct k3_error *err);
/* Empties it. */
enum k3_status part_restart(struct part *p, struct k3_error *err);
/* Are the bytes at `from` those that are in the part? */
bool part_same(const struct part *p, uint64_t from, const void *bytes, size_t n);
/* The digest of the whole; part_restart() comes before anything is added again. */
enum k3_status part_digest(struct part *p, char hex[DIGEST_HEX], struct k3_error *err);
/* Onto the disk and to its name; *st is then the file's. */
enum k3_status part_finish(struct part *p, struct stat *st, struct k3_error *err);

#endif
