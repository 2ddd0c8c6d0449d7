/* seen.h - what is known of the files of a checkpoint: the file .k3chat-files in its folder.
 *
 * A file that was read or fetched whole is remembered by size and time of change, with its SHA-256,
 * so that a later run need not read it again. Lines are only added, one write each: a run that is
 * killed loses at most the line under way. Forgetting everything is always safe. */
#ifndef K3CHAT_SEEN_H
#define K3CHAT_SEEN_H

#include <pthread.h>
#include <sys/stat.h>

#include "digest.h"

#define SEEN_NAME ".k3chat-files"

struct seen_file {
    char *name;
    char *etag; /* as the server gave it, or "-" */
    char hex[DIGEST_HEX];
    uint64_t size;
    int64_t mtime_ns;
};

#define SEEN_ETAG 256

struct seen_known {
    char hex[DIGEST_HEX];
    char etag[SEEN_ETAG]; /* "-" = none */
};

struct seen {
    char *path;
    char *source; /* words for k3chat fetch: where the files came from; NULL = not known */
    int fd;       /* to add lines, locked; -1 = nothing can be remembered */
    int why;      /* errno of that */
    struct seen_file *v;
    size_t n;
    pthread_mutex_t lock;
};

/* Reads what there is, to add to it or only to know it. To add: held by another process is K3_FAILED;
 * a folder that cannot be written is no failure, `why` tells. */
enum k3_status seen_open(struct seen *s, const char *dir, bool add, struct k3_error *err);
void seen_close(struct seen *s);

/* What was remembered of this file, when it has not changed since; else false. Any thread. */
bool seen_find(struct seen *s, const char *name, const struct stat *st, struct seen_known *out);
/* etag NULL = none. Any thread. */
enum k3_status seen_put(struct seen *s, const char *name, const struct stat *st, const char *hex,
                        const char *etag, struct k3_error *err);
enum k3_status seen_put_source(struct seen *s, const char *source, struct k3_error *err);

#endif
