/* sumlist.c - see sumlist.h. */
#include <config.h>

#include "sumlist.h"

#include <stdlib.h>
#include <string.h>

#include "outfile.h"
#include "paths.h"

#define HEX (DIGEST_HEX - 1)
#define SHOWN 60 /* of a line that is not understood */

const struct sum *sumlist_find(const struct sumlist *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].name, name) == 0)
            return &l->v[i];
    return NULL;
}

static enum k3_status add(struct sumlist *l, const char *name, size_t name_len, const char *hex,
                          size_t line, struct k3_error *err)
{
    struct sum *v = realloc(l->v, (l->n + 1) * sizeof *v);
    if (v == NULL)
        return k3_fail_memory(err, "a list of checksums", (l->n + 1) * sizeof *v);
    l->v = v;
    v[l->n] = (struct sum){.name = strndup(name, name_len), .line = line};
    if (v[l->n].name == NULL)
        return k3_fail_memory(err, "a list of checksums", name_len);
    memcpy(v[l->n++].hex, hex, DIGEST_HEX);
    return K3_OK;
}

enum k3_status sumlist_put(struct sumlist *l, const char *name, const char *hex,
                           struct k3_error *err)
{
    struct sum *s = (struct sum *)sumlist_find(l, name);
    if (s == NULL)
        return add(l, name, strlen(name), hex, 0, err);
    memcpy(s->hex, hex, DIGEST_HEX);
    return K3_OK;
}

/* ---- reading ----------------------------------------------------------------------------- */

struct span {
    const char *p;
    size_t n;
};

/* "DIGEST  NAME", "DIGEST *NAME" */
static bool parse_plain(struct span line, char hex[DIGEST_HEX], struct span *name)
{
    if (line.n < HEX + 3 || line.p[HEX] != ' ' || (line.p[HEX + 1] != ' ' && line.p[HEX + 1] != '*'))
        return false;
    *name = (struct span){line.p + HEX + 2, line.n - HEX - 2};
    return digest_parse(line.p, HEX, hex);
}

/* "SHA256 (NAME) = DIGEST" */
static bool parse_tagged(struct span line, char hex[DIGEST_HEX], struct span *name)
{
    static const char head[] = "SHA256 (", middle[] = ") = ";
    const size_t fixed = sizeof head - 1 + sizeof middle - 1 + HEX;
    if (line.n <= fixed || strncmp(line.p, head, sizeof head - 1) != 0)
        return false;
    *name = (struct span){line.p + sizeof head - 1, line.n - fixed};
    const char *after = name->p + name->n;
    return strncmp(after, middle, sizeof middle - 1) == 0 &&
           digest_parse(after + sizeof middle - 1, HEX, hex);
}

/* What a line that is not understood shows: no control characters go to the terminal. */
static void show(char *out, struct span line)
{
    size_t n = 0;
    for (; n < line.n && n < SHOWN; n++)
        out[n] = (unsigned char)line.p[n] < 0x20 || line.p[n] == 0x7f ? '?' : line.p[n];
    out[n] = '\0';
}

static enum k3_status take_line(struct sumlist *l, struct span line, size_t number,
                                struct k3_error *err)
{
    char hex[DIGEST_HEX], shown[SHOWN + 1];
    struct span name;
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n == 0 || line.p[0] == '#')
        return K3_OK;
    if (!parse_plain(line, hex, &name) && !parse_tagged(line, hex, &name)) {
        show(shown, line);
        return k3_fail(err, K3_USAGE,
                       "%s:%zu: '%s' is no line of sha256sum (64 digits, two spaces, a name)",
                       l->path, number, shown);
    }
    if (name.n > 2 && strncmp(name.p, "./", 2) == 0)
        name = (struct span){name.p + 2, name.n - 2};
    for (size_t i = 0; i < l->n; i++) {
        if (strlen(l->v[i].name) != name.n || strncmp(l->v[i].name, name.p, name.n) != 0)
            continue;
        if (strcmp(l->v[i].hex, hex) == 0)
            return K3_OK;
        return k3_fail(err, K3_USAGE, "%s:%zu: %s stands on line %zu already, with another sum",
                       l->path, number, l->v[i].name, l->v[i].line);
    }
    return add(l, name.p, name.n, hex, number, err);
}

enum k3_status sumlist_parse(struct sumlist *l, const char *path, const char *text, size_t len,
                             struct k3_error *err)
{
    const char *const end = text + len;
    free(l->path);
    l->path = path_format(err, "%s", path);
    if (l->path == NULL)
        return err->status;
    size_t number = 1;
    for (const char *p = text; p < end; number++) {
        const char *const nl = memchr(p, '\n', (size_t)(end - p));
        const char *const stop = nl == NULL ? end : nl;
        if (take_line(l, (struct span){p, (size_t)(stop - p)}, number, err) != K3_OK)
            return err->status;
        p = stop + 1;
    }
    if (l->n == 0)
        return k3_fail(err, K3_USAGE, "%s: there is no checksum in this list", path);
    return K3_OK;
}

enum k3_status sumlist_read(struct sumlist *l, const char *path, struct k3_error *err)
{
    size_t len = 0;
    char *text = path_read_file(path, SUMLIST_MAX, &len, err);
    if (text == NULL)
        return err->status;
    const enum k3_status st = sumlist_parse(l, path, text, len, err);
    free(text);
    return st;
}

/* ---- writing ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sum *)a)->name, ((const struct sum *)b)->name);
}

enum k3_status sumlist_write(struct sumlist *l, const char *path, struct k3_error *err)
{
    struct outfile o = {0};
    if (outfile_open(&o, path, err) != K3_OK)
        return err->status;
    if (l->n > 1)
        qsort(l->v, l->n, sizeof *l->v, by_name);
    for (size_t i = 0; i < l->n; i++)
        fprintf(o.f, "%s  %s\n", l->v[i].hex, l->v[i].name);
    return outfile_commit(&o, err);
}

void sumlist_free(struct sumlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].name);
    free(l->v);
    free(l->path);
    *l = (struct sumlist){0};
}
