/* fetch.h - a checkpoint from a server into a folder: what cmd_fetch.c asks for, and what the parts
 * fetch.c (the order of things), fetch_source.c (addresses), fetch_sums.c (checksums),
 * fetch_probe.c (what the server has, what is here) and fetch_file.c (one file) share.
 *
 * A file grows under NAME.part and gets its name when it is whole and its size and checksum are
 * right; NAME.part.tag says which version of the file the part is of. Whatever ends the program, the
 * next run goes on from the parts. */
#ifndef K3CHAT_FETCH_H
#define K3CHAT_FETCH_H

#include "ckfiles.h"
#include "crew.h"
#include "http.h"
#include "seen.h"
#include "settings.h"
#include "sumlist.h"

enum job_state {
    JOB_UNKNOWN, /* the server has not been asked yet */
    JOB_ABSENT,  /* the server has no such file, and it is not needed */
    JOB_HERE,    /* whole, nothing to do */
    JOB_CHECK,   /* here, but its contents must be read to know whether it is right */
    JOB_GET,     /* missing or wrong */
    JOB_FAILED,
};

struct job {
    char *name;
    bool needed;
    enum job_state state;
    uint64_t size;           /* as the server says */
    uint64_t kept;           /* bytes of it in a part that goes on */
    char sha256[DIGEST_HEX]; /* what it must be; "" = nobody says */
    char etag[HTTP_ETAG];    /* "" = none */
    long status;             /* the last HTTP status */
};

struct fetch {
    const struct fetch_request *ask;
    const char *dir;
    struct crew crew;
    struct seen seen;
    struct sumlist sums;     /* what the files must be, from whatever source */
    struct http_site site;
    struct http *http;       /* one for each thread */
    unsigned threads;
    struct job *jobs;
    size_t n;
    atomic_uint_fast64_t received; /* bytes from the server in this run */
    atomic_uint fetched;     /* files */
    pthread_mutex_t lock;
    struct k3_error error;   /* the first failure that ends the run or is the verdict's */
    unsigned failed;         /* files */
    char commit[DIGEST_HEX]; /* the repository's state that all files are taken from; "" = no matter */
};

/* Runs the whole; everything was said when it returns, but for the error itself. libcurl has been
 * initialised. */
enum k3_status fetch_run(const struct fetch_request *ask, struct k3_error *err);

/* ---- fetch_probe.c ----------------------------------------------------------------------- */

/* Asks the server about the file: size, etag, checksum. JOB_GET, JOB_ABSENT or JOB_FAILED. For a
 * thread of the crew. */
void fetch_probe(struct fetch *f, unsigned thread, struct job *j);
/* What is here of the file: JOB_HERE, JOB_CHECK or JOB_GET with `kept`. */
void fetch_look(struct fetch *f, struct job *j);
/* Reads the file that is here: JOB_HERE or JOB_GET. For a thread of the crew. */
void fetch_check(struct fetch *f, struct job *j);

/* ---- fetch_file.c ------------------------------------------------------------------------ */

/* Fetches a file of known size: JOB_HERE or JOB_FAILED. For a thread of the crew. */
void fetch_file(struct fetch *f, unsigned thread, struct job *j);

/* ---- fetch_sums.c ------------------------------------------------------------------------ */

/* Fills f->sums from --sums, else the folder's own list, else the server's, when there is one. */
enum k3_status fetch_find_sums(struct fetch *f, struct k3_error *err);
/* What the files had to be stays beside them, for k3chat verify --sha256. */
enum k3_status fetch_keep_sums(struct fetch *f, struct k3_error *err);

/* ---- for the parts ----------------------------------------------------------------------- */

/* The job has failed: says so and keeps the first one's message. */
void fetch_fail(struct fetch *f, struct job *j, const struct k3_error *why);

/* How often it was tried since something came. */
struct patience {
    unsigned tries;
};
/* After a failure that may go away: says so and waits, longer each time. False when it is enough or
 * the run is being stopped. */
bool fetch_wait(struct fetch *f, struct patience *p, uint32_t retry_after,
                const struct k3_error *why);

#endif
