/* file_server.h - a small web server inside a test: files of a folder, and every fault that a real one
 * has. It listens on the loopback and has a thread for each connection. Its own failures end the
 * test. */
#ifndef K3_TEST_FILE_SERVER_H
#define K3_TEST_FILE_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FS_FILES 32
#define FS_ANY UINT64_MAX

/* What a server does with one file; set before it is asked. Zero = as it should. */
struct fs_file {
    char name[256];
    uint8_t *data;            /* may be changed or replaced: fs_reset() brings it back */
    uint64_t size;
    uint8_t *own, *kept;      /* the server's: what data is, and what was in it */
    uint64_t kept_size;
    const char *etag;         /* with its quotes; NULL = none */
    const char *etag_after;   /* this one after the first answer; NULL = the same */
    const char *sha256;       /* told as a model repository does; NULL = not told */
    const char *commit;       /* instead of the server's */
    const char *redirect;     /* to this address and the path behind it, instead of an answer */
    unsigned redirect_status; /* 0 = 302 */
    unsigned status, status_times; /* so often, this status instead of the file; FS_ALWAYS */
    unsigned retry_after;     /* with such a status; 0 = none */
    bool ignore_range;        /* 200 and all of it, whatever was asked for */
    bool no_length;           /* the end of the connection is the end of the file */
    uint64_t claim;           /* tells this size; 0 = the true one */
    uint64_t claim_get;       /* tells this one only in answers to real requests, not to first looks */
    uint64_t extra;           /* bytes sent behind the end, with no_length */
    uint64_t shift;           /* an answer to a range begins so many bytes late */
    uint64_t cut_after;       /* closes after so many bytes of an answer, */
    unsigned cut_times;       /* so often */
    uint64_t stall_after;     /* sends nothing more after so many bytes of an answer, */
    unsigned stall_times;     /* so often, until fs_release() or the other end goes */
    uint64_t flip_at;         /* with flip_times: this byte is sent wrong, */
    unsigned flip_times;      /* in so many answers */
    /* what happened */
    unsigned looks;           /* requests for the first byte */
    unsigned gets;            /* all others that were answered with bytes */
    unsigned ranged;          /* of these, from a later byte on */
    uint64_t sent;            /* bytes of the file, looks not counted */
    uint64_t last_from;
    unsigned with_token;      /* requests with the token */
    unsigned with_password;   /* requests with basic authorization */
    unsigned requests;
    char if_range[256];       /* of the last request */
};
#define FS_ALWAYS 1000000u

struct file_server {
    struct fs_file files[FS_FILES];
    unsigned n_files;
    int listener;
    unsigned port;
    const char *prefix;       /* before the names, "/repo/resolve/main/" */
    const char *also;         /* another one, or NULL */
    const char *token;        /* counted in with_token; requests without are refused if `locked` */
    bool locked;
    const char *commit;       /* X-Repo-Commit; NULL = none */
    atomic_bool stop, release;
    atomic_uint connections;
    atomic_uint also_requests;
    atomic_uint other_requests; /* for what is no file of it */
    void *lock, *thread;
};

/* Reads the files of the folder (no subfolders) and begins to serve. */
void fs_start(struct file_server *s, const char *dir, const char *prefix);
void fs_stop(struct file_server *s);
/* Faults and counts as at the start. */
void fs_reset(struct file_server *s);
/* The file of that name; fails the test when there is none. */
struct fs_file *fs_file(struct file_server *s, const char *name);
/* Waits until a file has been sent so far in all, or stalls. */
void fs_wait_sent(struct file_server *s, struct fs_file *f, uint64_t bytes);
void fs_release(struct file_server *s); /* of what stalls now */
/* Sums over all files. */
uint64_t fs_sent(const struct file_server *s);
unsigned fs_gets(const struct file_server *s);

#endif
