/* fixture.c - see fixture.h. */
#include <config.h>

#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- files ------------------------------------------------------------------------------------- */

void fixture_skip_emulated(void)
{
    if (getenv("K3_EMULATED") == NULL)
        return;
    print_message("# the emulator's memory counts as the program's\n");
    skip();
}

void fixture_join(char path[FIXTURE_PATH], const char *dir, const char *name)
{
    const int n = snprintf(path, FIXTURE_PATH, "%s/%s", dir, name);
    assert_true(n > 0 && n < FIXTURE_PATH);
}

void fixture_scratch(char path[FIXTURE_PATH])
{
    const char *tmp = getenv("TMPDIR");
    fixture_join(path, tmp && tmp[0] == '/' ? tmp : "/tmp", "k3test-XXXXXX");
    if (!mkdtemp(path))
        fail_msg("mkdtemp %s: %s", path, strerror(errno));
}

static int remove_one(const char *path, const struct stat *sb, int kind, struct FTW *at)
{
    (void)sb;
    (void)kind;
    (void)at;
    return remove(path);
}

void fixture_scratch_end(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *fixture_read(const char *dir, const char *name, size_t *len)
{
    char path[FIXTURE_PATH];
    fixture_join(path, dir, name);
    FILE *f = fopen(path, "re");
    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    struct stat sb;
    assert_int_equal(fstat(fileno(f), &sb), 0);
    char *data = malloc((size_t)sb.st_size + 1);
    assert_non_null(data);
    *len = fread(data, 1, (size_t)sb.st_size, f);
    assert_int_equal(*len, sb.st_size);
    data[*len] = '\0';
    fclose(f);
    return data;
}

static void write_file(const char *dir, const char *name, const char *data, size_t len)
{
    char path[FIXTURE_PATH];
    fixture_join(path, dir, name);
    FILE *f = fopen(path, "we");
    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

json_t *fixture_json(const char *dir, const char *name)
{
    char path[FIXTURE_PATH];
    json_error_t err;
    fixture_join(path, dir, name);
    json_t *v = json_load_file(path, JSON_ALLOW_NUL, &err);
    if (!v)
        fail_msg("%s:%d: %s", path, err.line, err.text);
    return v;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* FNV-1a over names and contents, in the order of the names. */
uint64_t fixture_digest(const char *dir)
{
    char *names[64];
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            assert_true(n < 64);
            names[n++] = strdup(e->d_name);
        }
    closedir(d);
    qsort(names, n, sizeof names[0], by_name);
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        char *data = fixture_read(dir, names[i], &len);
        for (const char *p = names[i]; *p; p++)
            h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
        for (size_t k = 0; k < len; k++)
            h = (h ^ (unsigned char)data[k]) * 0x100000001b3ULL;
        free(data);
        free(names[i]);
    }
    return h;
}

/* ---- models ------------------------------------------------------------------------------------ */

struct k3_synth fixture_preset(const char *name)
{
    struct k3_synth s = {0};
    if (!k3_synth_preset(name, &s))
        fail_msg("no preset '%s'", name);
    return s;
}

void fixture_write(const struct k3_synth *s, const char *dir)
{
    struct k3_error err;
    if (k3_synth_write(s, dir, NULL, NULL, &err) != K3_OK)
        fail_msg("%s", err.message);
}

static void load_ids(struct fixture *f)
{
    const json_t *ids = json_object_get(f->expected, "full_ids");
    f->n = json_array_size(ids);
    f->n_prompt = json_array_size(json_object_get(f->expected, "prompt_ids"));
    assert_true(f->n > f->n_prompt && f->n_prompt > 0);
    f->ids = calloc(f->n, sizeof *f->ids);
    assert_non_null(f->ids);
    for (size_t i = 0; i < f->n; i++)
        f->ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    const json_t *rows = json_object_get(json_object_get(f->expected, "logits"), "rows");
    f->vocab = (uint32_t)json_array_size(json_array_get(rows, 0));
    assert_true(f->vocab > 0);
}

static void open_generated(struct fixture *f, const char *name)
{
    const char *src = getenv("K3_SRCDIR");
    char all[FIXTURE_PATH], data[FIXTURE_PATH];
    fixture_join(all, src ? src : ".", "tests/data");
    fixture_join(data, all, name);
    f->expected = fixture_json(data, "expected.json");
    fixture_scratch(f->scratch);
    fixture_join(f->dir, f->scratch, name);
    const struct k3_synth s = fixture_preset(name);
    fixture_write(&s, f->dir);
    size_t len;
    char *stored = fixture_read(data, "digest", &len);
    char have[32];
    snprintf(have, sizeof have, "%016llx\n", (unsigned long long)fixture_digest(f->dir));
    if (strcmp(stored, have) != 0)
        fail_msg("the generator's bytes for '%s' have changed: digest %.16s, stored %.16s; if that "
                 "is meant, make the expected results anew (tests/data/README.md)", name, have,
                 stored);
    free(stored);
}

bool fixture_open(struct fixture *f, const char *name)
{
    memset(f, 0, sizeof *f);
    if (strncmp(name, "case-", 5) != 0) {
        open_generated(f, name);
    } else {
        const char *shared = getenv("K3_SHARED");
        char oracle[FIXTURE_PATH];
        if (!shared || shared[0] == '\0')
            return false;
        fixture_join(oracle, shared, "oracle");
        fixture_join(f->dir, oracle, name);
        if (access(f->dir, R_OK) != 0)
            return false;
        f->expected = fixture_json(f->dir, "expected.json");
    }
    load_ids(f);
    return true;
}

void fixture_close(struct fixture *f)
{
    if (f->scratch[0])
        fixture_scratch_end(f->scratch);
    json_decref(f->expected);
    free(f->ids);
    memset(f, 0, sizeof *f);
}

/* ---- engines ----------------------------------------------------------------------------------- */

struct k3_options fixture_options(const char *dir)
{
    struct k3_options opt;
    k3_options_init(&opt);
    opt.model_dir = dir;
    opt.budget = 2000u * 1000 * 1000; /* a ceiling, not a demand; sanitizers make processes large */
    opt.context = 160;
    opt.threads = 1;
    opt.io = K3_IO_BUFFERED;
    return opt;
}

k3_engine *fixture_engine(const struct k3_options *opt)
{
    struct k3_error err;
    k3_engine *e = k3_open(opt, NULL, NULL, &err);
    if (!e)
        fail_msg("k3_open: %s", err.message);
    if (k3_start(e, NULL, NULL, &err) != K3_OK) {
        k3_close(e);
        fail_msg("k3_start: %s", err.message);
    }
    return e;
}

struct k3_error fixture_refusal(const struct k3_options *opt)
{
    struct k3_error err = {.status = K3_OK};
    k3_engine *e = k3_open(opt, NULL, NULL, &err);
    if (e)
        k3_start(e, NULL, NULL, &err);
    k3_close(e);
    return err;
}

struct collect {
    float *rows;
    size_t first, n, vocab, got;
};

static int collect_row(void *ud, uint32_t position, const float *logits)
{
    struct collect *c = ud;
    assert_true(position == c->first + c->got && c->got < c->n);
    memcpy(c->rows + c->got++ * c->vocab, logits, c->vocab * sizeof(float));
    return 0;
}

float *fixture_logits(k3_engine *e, const int32_t *ids, size_t n)
{
    struct k3_error err;
    struct collect c = {.first = k3_position(e), .n = n, .vocab = k3_get_plan(e)->vocab};
    c.rows = malloc(n * c.vocab * sizeof(float));
    assert_non_null(c.rows);
    if (k3_feed(e, ids, n, K3_WANT_ALL, collect_row, &c, &err) != K3_OK)
        fail_msg("k3_feed: %s", err.message);
    assert_int_equal(c.got, n);
    return c.rows;
}

/* ---- damages ----------------------------------------------------------------------------------- */

void fixture_replace(const char *dir, const char *name, const char *old, const char *new_text)
{
    size_t len;
    char *text = fixture_read(dir, name, &len);
    const char *at = strstr(text, old);
    if (!at)
        fail_msg("%s has no '%s'", name, old);
    const size_t before = (size_t)(at - text), skip = strlen(old), put = strlen(new_text);
    char *out = malloc(len - skip + put);
    assert_non_null(out);
    memcpy(out, text, before);
    memcpy(out + before, new_text, put);
    memcpy(out + before + put, at + skip, len - before - skip);
    write_file(dir, name, out, len - skip + put);
    free(out);
    free(text);
}

static uint64_t little_endian(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

struct fixture_tensor fixture_find(const char *dir, const char *tensor)
{
    struct fixture_tensor t = {{0}, 0, 0, 0};
    json_t *index = fixture_json(dir, "model.safetensors.index.json");
    const char *shard =
        json_string_value(json_object_get(json_object_get(index, "weight_map"), tensor));
    if (!shard) {
        fail_msg("the index has no %s", tensor);
        return t; /* not reached, which a compiler need not know */
    }
    snprintf(t.shard, sizeof t.shard, "%s", shard);
    json_decref(index);
    size_t len;
    char *data = fixture_read(dir, t.shard, &len);
    t.header = little_endian((const unsigned char *)data);
    json_t *header = json_loadb(data + 8, (size_t)t.header, 0, NULL);
    const json_t *at = json_object_get(json_object_get(header, tensor), "data_offsets");
    assert_int_equal(json_array_size(at), 2);
    t.begin = 8 + t.header + (uint64_t)json_integer_value(json_array_get(at, 0));
    t.end = 8 + t.header + (uint64_t)json_integer_value(json_array_get(at, 1));
    json_decref(header);
    free(data);
    return t;
}

void fixture_poke(const char *dir, const char *file, uint64_t at, const void *bytes, size_t n)
{
    char path[FIXTURE_PATH];
    fixture_join(path, dir, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, (off_t)at), n);
    assert_int_equal(close(fd), 0);
}

void fixture_flip(const char *dir, const char *prefix, size_t at)
{
    char name[FIXTURE_PATH] = "";
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
            snprintf(name, sizeof name, "%s", e->d_name);
    closedir(d);
    size_t len = 0;
    char *data = fixture_read(dir, name, &len);
    assert_true(at < len);
    data[at] = (char)~data[at];
    fixture_poke(dir, name, at, data + at, 1);
    free(data);
}

/* Offset in the shard of the first `text` in the tensor's header entry, the name included. */
static uint64_t entry_offset(const char *dir, const char *tensor, const char *shard,
                             const char *text)
{
    char quoted[512];
    size_t len;
    snprintf(quoted, sizeof quoted, "\"%s\"", tensor);
    char *data = fixture_read(dir, shard, &len);
    const char *entry = strstr(data + 8, quoted);
    if (!entry)
        fail_msg("%s has no entry %s", shard, quoted);
    const char *found = strstr(entry, text);
    if (!found)
        fail_msg("the entry of %s has no '%s'", tensor, text);
    const uint64_t at = (uint64_t)(found - data);
    free(data);
    return at;
}

void fixture_edit_header(const char *dir, const char *tensor, const char *old, const char *new_text)
{
    assert_int_equal(strlen(old), strlen(new_text));
    const struct fixture_tensor t = fixture_find(dir, tensor);
    const uint64_t at = entry_offset(dir, tensor, t.shard, old);
    fixture_poke(dir, t.shard, at, new_text, strlen(new_text));
}

void fixture_rename(const char *dir, const char *tensor, const char *new_name)
{
    char old[512], quoted[512];
    assert_int_equal(strlen(tensor), strlen(new_name));
    fixture_edit_header(dir, tensor, tensor, new_name);
    snprintf(old, sizeof old, "\"%s\"", tensor);
    snprintf(quoted, sizeof quoted, "\"%s\"", new_name);
    fixture_replace(dir, "model.safetensors.index.json", old, quoted);
}
