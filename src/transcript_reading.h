/* transcript_reading.h - inside the reader of transcripts: what transcript_read.c (records) and
 * transcript_parse.c (lines, branches) share. */
#ifndef K3CHAT_TRANSCRIPT_READING_H
#define K3CHAT_TRANSCRIPT_READING_H

#include "transcript.h"

/* A message with its own flags while the file is being read. */
struct entry {
    struct message m;
    bool withdrawn;
    bool followed; /* by another message */
};

struct reading {
    const char *path;
    size_t line;
    struct entry *v; /* in rising order of id */
    size_t n, cap;
    int64_t tip; /* id of the last message of the conversation, 0 = none */
    struct k3_error *err;
};

struct entry *reading_find(struct reading *rd, int64_t id); /* NULL = there is none */
/* Puts file and line before the message that is there. */
enum k3_status reading_fail_line(struct reading *rd);
enum k3_status reading_take_header(struct reading *rd, const json_t *rec);
enum k3_status reading_take_record(struct reading *rd, const json_t *rec);

#endif
