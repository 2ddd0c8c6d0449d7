/* jsonout.c - see jsonout.h. */
#include <config.h>

#include "jsonout.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

/* The comma and the key that stand before a value. */
static void begin(struct jsonout *j, const char *key)
{
    if (j->filled[j->depth])
        putc(',', j->f);
    j->filled[j->depth] = true;
    if (key != NULL)
        fprintf(j->f, "\"%s\": ", key); /* keys are the program's own words */
}

void jsonout_open(struct jsonout *j, const char *key, char bracket)
{
    begin(j, key);
    putc(bracket, j->f);
    if (j->depth + 1 < JSONOUT_DEPTH)
        j->depth++;
    j->filled[j->depth] = false;
}

void jsonout_close(struct jsonout *j, char bracket)
{
    putc(bracket, j->f);
    if (j->depth > 0)
        j->depth--;
}

void jsonout_int(struct jsonout *j, const char *key, int64_t v)
{
    begin(j, key);
    fprintf(j->f, "%" PRId64, v);
}

void jsonout_u64(struct jsonout *j, const char *key, uint64_t v)
{
    begin(j, key);
    fprintf(j->f, "%" PRIu64, v);
}

void jsonout_real(struct jsonout *j, const char *key, double v)
{
    begin(j, key);
    if (isfinite(v))
        fprintf(j->f, "%.9g", v);
    else
        fputs("null", j->f);
}

void jsonout_null(struct jsonout *j, const char *key)
{
    begin(j, key);
    fputs("null", j->f);
}

void jsonout_string(struct jsonout *j, const char *key, const char *text, size_t n)
{
    begin(j, key);
    json_t *s = json_stringn(n == 0 ? "" : text, n);
    if (s == NULL || json_dumpf(s, j->f, JSON_ENCODE_ANY) != 0)
        j->failed = true;
    json_decref(s);
}

void jsonout_ids(struct jsonout *j, const char *key, const int32_t *ids, size_t n)
{
    jsonout_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        jsonout_int(j, NULL, ids[i]);
    jsonout_close(j, ']');
}

void jsonout_line(struct jsonout *j)
{
    putc('\n', j->f);
}
