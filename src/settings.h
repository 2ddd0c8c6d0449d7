/* settings.h - everything a run can be told, in one table.
 *
 * A row is an option of the command line, a key of a profile, or both, with its help text and the
 * function that takes the value. Parsing, --help, the manual page and the profile reader walk this
 * table; a new setting is one function and one row. */
#ifndef K3CHAT_SETTINGS_H
#define K3CHAT_SETTINGS_H

#include "run_config.h"

/* Where an option may stand. */
enum setting_mode {
    FOR_CHAT = 1,
    FOR_BATCH = 2,
    FOR_DOCTOR = 4,
    FOR_VERIFY = 8,
    FOR_FETCH = 16,
};
#define FOR_BOTH (FOR_CHAT | FOR_BATCH)

enum prompt_kind {
    PROMPT_NONE,
    PROMPT_IDS,       /* text holds the ids */
    PROMPT_IDS_FILE,
    PROMPT_TEXT,
    PROMPT_TEXT_FILE,
    PROMPT_CHAT,      /* text names a file of messages */
    PROMPT_CONTINUE,  /* what the session leaves open */
};

struct batch_request {
    enum prompt_kind kind;
    const char *prompt_option; /* as typed, for messages */
    const char *text;          /* its value: a path or the prompt itself */
    bool teacher_force;
    bool dump_routing;
    const char *logits_path, *json_path; /* or NULL */
};

/* k3chat fetch */
struct fetch_request {
    const char *where;    /* an address, or a repository OWNER/NAME */
    const char *dir;
    const char *endpoint, *revision; /* NULL = not given */
    const char *sums;     /* path of a list of checksums, or NULL */
    uint32_t connections; /* files side by side */
    uint32_t retries;     /* tries of a file without a byte coming */
    uint32_t timeout;     /* seconds */
    double retry_wait;    /* seconds before the first retry */
    bool dry_run;
};

/* k3chat verify, besides --model */
struct verify_request {
    bool sha256, write_sums, write_blocks, afresh;
    const char *sums;     /* the list to read; NULL = DIR/SHA256SUMS */
    const char *sums_out; /* the list to write; NULL = DIR/SHA256SUMS */
};

/* What the command line asks for. */
struct request {
    struct run_config run;
    const char *profile;        /* --profile as given, or NULL */
    bool batch;                 /* --batch was given */
    uint64_t measure;           /* doctor: bytes of the file to measure with; 0 = the shards */
    struct batch_request todo;
    const char *place;          /* FILE:LINE:COLUMN of the value that is being taken, for what is
                                 * checked later; NULL: it stood on the command line */
    struct fetch_request fetch;
    struct verify_request verify;
    const char *words[2];       /* what stands on the command line besides options */
    size_t n_words;
};

void request_init(struct request *r);
void request_free(struct request *r);

enum setting_shape {
    SHAPE_ONE,
    SHAPE_LIST, /* a list; take() is called for each element */
    SHAPE_MAP,  /* a mapping of names to values or lists; take() gets "NAME VALUE" for each */
    SHAPE_PATH, /* ~ is expanded; a relative path counts from the profile's folder */
};

struct setting {
    const char *option;  /* without the dashes; NULL = in profiles only */
    const char *key;     /* "memory.budget"; NULL = on the command line only */
    const char *arg;     /* what --help calls the value; NULL = a flag; in [] it can be left out */
    const char *help;
    unsigned modes;      /* enum setting_mode, ORed */
    enum setting_shape shape; /* of the value in a profile */
    /* Puts the value into the request. The message says what is wrong with the value alone; the
     * caller puts the option or the place in the file before it. */
    enum k3_status (*take)(struct request *r, const char *value, struct k3_error *err);
};

extern const struct setting settings[];
extern const size_t n_settings;

#endif
