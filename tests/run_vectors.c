/* run_vectors.c - runs every test vector of a folder: run-vectors [DIR].
 *
 * DIR holds model folders (tiktoken.model, tokenizer_config.json), files of JSON lines, one vector
 * per line, and perhaps the list of character classes. tok-NAME.jsonl is about the model folder
 * NAME where there is one, k3-release-ids.jsonl about the released tokenizer (DIR/k3-release or the
 * folder that K3_RELEASE_TOKENIZER names), everything else about o200k-32k or else the first model
 * folder. Without DIR: the project's own vectors, then $K3_SHARED/vectors where it exists.
 *
 * Each file is a line of TAP; the last line counts vectors. Exit status 1 when one failed. */
#include <config.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../engine/text/pretoken.h"
#include "../engine/text/slurp.h"
#include "vectors.h"

enum { PATH_SIZE = 2048 };

struct count {
    size_t passed, failed, skipped;
};
struct run {
    struct count all;
    size_t files; /* TAP lines printed */
};

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_model(const char *dir, const char *name)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s/tiktoken.model", dir, name);
    return is_file(path);
}

/* Prints the TAP line of a file or folder and adds its counts. */
static void report(struct run *run, const char *dir, const char *name, const struct count *c,
                   const char *skip)
{
    run->files++;
    run->all.passed += c->passed;
    run->all.failed += c->failed;
    run->all.skipped += c->skipped;
    const char *slash = strrchr(dir, '/');
    printf("%s %zu - %s/%s: %zu passed, %zu failed, %zu skipped%s%s\n",
           c->failed ? "not ok" : "ok", run->files, slash && slash[1] ? slash + 1 : dir, name,
           c->passed, c->failed, c->skipped,
           !c->passed && !c->failed ? " # SKIP " : c->skipped ? " # some skipped: " : "",
           c->skipped ? skip : "");
}

/* ---- one vector ---------------------------------------------------------------------------- */

typedef enum vec_result (*check_fn)(struct vec_env *, const struct k3_json *);

/* Which check a vector asks for; *needs_tok = it cannot run without a tokenizer. */
static check_fn kind_of(const struct k3_json *v, bool *needs_tok)
{
    *needs_tok = true;
    if (k3_json_get(v, "gen"))
        return vec_long;
    if (k3_json_get(v, "messages")) {
        *needs_tok = k3_json_get(v, "ids") != NULL;
        return vec_render;
    }
    if (k3_json_get(v, "pieces") && k3_json_get(v, "text"))
        return vec_tok;
    if (k3_json_get(v, "expect") && (k3_json_get(v, "pieces") || k3_json_get(v, "pieces_b64"))) {
        *needs_tok = false;
        return vec_parse;
    }
    if (k3_json_get(v, "bytes_b64") && k3_json_get(v, "as_text"))
        return vec_badutf8;
    if (k3_json_get(v, "ids") && k3_json_get(v, "bytes_b64"))
        return vec_decode;
    return k3_json_get(v, "ids") && k3_json_get(v, "text") ? vec_tok : NULL;
}

static enum vec_result run_line(struct vec_env *env, const struct k3_json *v)
{
    bool needs_tok;
    const check_fn check = kind_of(v, &needs_tok);
    if (!check || (needs_tok && !env->tok)) {
        snprintf(env->why, sizeof env->why, "%s", check ? "the tokenizer it is about is not here"
                                                        : "a kind of vector that is not known");
        return VEC_SKIP;
    }
    return check(env, v);
}

static const char *name_of(const struct k3_json *v)
{
    const struct k3_json *name = k3_json_get(v, "id");
    if (!name)
        name = k3_json_get(v, "name");
    return name && name->type == K3_JSON_STRING ? name->text : "unnamed";
}

/* ---- files --------------------------------------------------------------------------------- */

static void run_lines(struct vec_env *env, const char *name, const char *text, size_t size,
                      struct count *c, char *skip, size_t skip_size)
{
    size_t line = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t len = end ? (size_t)(end - text) - at : size - at;
        struct k3_error err;
        line++;
        struct k3_json *v = len ? k3_json_parse(text + at, len, &err) : NULL;
        const enum vec_result r = !len ? VEC_SKIP
                                  : !v ? vec_fail(env, "%s", err.message)
                                       : run_line(env, v);
        if (len && r == VEC_FAIL) {
            c->failed++;
            printf("# FAILED %s line %zu (%s): %s\n", name, line, name_of(v), env->why);
        } else if (len && r == VEC_SKIP) {
            c->skipped++;
            snprintf(skip, skip_size, "%s", env->why);
        } else if (len) {
            c->passed++;
        }
        k3_json_free(v);
        at += len + 1;
    }
}

/* The folder of the tokenizer that a file is about; false when there is none. */
static bool model_for(const char *dir, const char *name, char *path, size_t size)
{
    static const char release[] = "k3-release";
    char stem[256] = "";
    const char *env = getenv("K3_RELEASE_TOKENIZER");
    if (strncmp(name, "tok-", 4) == 0)
        snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - strlen("tok-.jsonl")), name + 4);
    if (strncmp(name, release, strlen(release)) == 0) {
        snprintf(path, size, "%s/%s", dir, release);
        if (!is_model(dir, release) && env)
            snprintf(path, size, "%s", env);
        return is_folder(path);
    }
    if (*stem && is_model(dir, stem)) {
        snprintf(path, size, "%s/%s", dir, stem);
        return true;
    }
    snprintf(path, size, "%s/o200k-32k", dir);
    if (is_folder(path))
        return true;
    struct dirent **list;
    const int n = scandir(dir, &list, NULL, alphasort);
    bool found = false;
    for (int i = 0; i < n; i++) {
        if (!found && is_model(dir, list[i]->d_name) && strcmp(list[i]->d_name, release) != 0) {
            snprintf(path, size, "%s/%s", dir, list[i]->d_name);
            found = true;
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    return found;
}

static void run_file(struct run *run, const char *dir, const char *name)
{
    struct vec_env env = {0};
    struct count c = {0};
    struct k3_error err;
    char path[PATH_SIZE], skip[600] = "the file is empty";
    size_t size = 0;
    k3_tokenizer *tok = NULL;
    if (model_for(dir, name, path, sizeof path)) {
        tok = k3_tokenizer_open(path, &err);
        if (!tok) {
            c.failed++;
            printf("# FAILED %s: %s\n", name, err.message);
        }
    }
    env.tok = tok;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *text = k3_slurp(path, &size, &err);
    if (text) {
        run_lines(&env, name, text, size, &c, skip, sizeof skip);
    } else {
        c.failed++;
        printf("# FAILED %s\n", err.message);
    }
    free(text);
    k3_tokenizer_close(tok);
    report(run, dir, name, &c, skip);
}

static void run_model(struct run *run, const char *dir, const char *name)
{
    struct count c = {0};
    struct k3_error err;
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!is_model(dir, name)) {
        c.skipped = 1;
        report(run, dir, name, &c, "not a model folder");
        return;
    }
    k3_tokenizer *t = k3_tokenizer_open(path, &err);
    c.passed = t != NULL;
    c.failed = t == NULL;
    if (!t)
        printf("# FAILED %s\n", err.message);
    k3_tokenizer_close(t);
    report(run, dir, name, &c, "");
}

/* ---- character classes --------------------------------------------------------------------- */

/* The bits that a class gives, and those it takes away wherever Han is also set. */
static unsigned bits_of(const char *class)
{
    static const struct {
        const char *name;
        unsigned bits;
    } table[] = {{"Han", K3_CH_HAN}, {"L", K3_CH_L}, {"N", K3_CH_N}, {"S", K3_CH_S},
                 {"Lu", K3_CH_UP}, {"Lt", K3_CH_UP}, {"Ll", K3_CH_LO},
                 {"Lm", K3_CH_UP | K3_CH_LO}, {"Lo", K3_CH_UP | K3_CH_LO},
                 {"M", K3_CH_UP | K3_CH_LO}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(class, table[i].name) == 0)
            return table[i].bits;
    return 0;
}

static bool add_ranges(const char *path, unsigned char *want)
{
    char line[256], class[16];
    unsigned first, last;
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    while (fgets(line, sizeof line, f))
        if (line[0] != '#' && sscanf(line, "%x %x %15s", &first, &last, class) == 3)
            for (unsigned cp = first; cp <= last && cp <= 0x10FFFF; cp++)
                want[cp] |= (unsigned char)bits_of(class);
    return fclose(f) == 0;
}

static void run_classes(struct run *run, const char *dir, const char *name)
{
    struct count c = {0};
    char path[PATH_SIZE];
    unsigned char *want = calloc(0x110000, 1);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    bool same = want && add_ranges(path, want);
    for (uint32_t cp = 0; same && cp <= 0x10FFFF; cp++) {
        if (want[cp] & K3_CH_HAN)
            want[cp] &= (unsigned char)~(K3_CH_UP | K3_CH_LO);
        same = k3_char_class(cp) == want[cp];
        if (!same)
            printf("# FAILED %s: U+%04X has the bits %u, expected %u\n", name, (unsigned)cp,
                   k3_char_class(cp), want[cp]);
    }
    c.passed = same;
    c.failed = !same;
    free(want);
    report(run, dir, name, &c, "");
}

/* ---- folders ------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static void run_entry(struct run *run, const char *dir, const char *name)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (name[0] == '.' || strncmp(name, "README", 6) == 0)
        return;
    if (is_folder(path)) {
        run_model(run, dir, name);
    } else if (ends_with(name, ".jsonl")) {
        run_file(run, dir, name);
    } else if (ends_with(name, "-classes.txt")) {
        run_classes(run, dir, name);
    } else {
        const struct count c = {0, 0, 1};
        report(run, dir, name, &c, "a kind of file that is not known");
    }
}

static bool run_dir(struct run *run, const char *dir)
{
    struct dirent **list;
    const int n = scandir(dir, &list, NULL, alphasort);
    if (n < 0) {
        perror(dir);
        return false;
    }
    for (int i = 0; i < n; i++) {
        run_entry(run, dir, list[i]->d_name);
        fflush(stdout);
        free(list[i]);
    }
    free(list);
    return true;
}

static bool run_default(struct run *run)
{
    const char *src = getenv("K3_SRCDIR"), *shared = getenv("K3_SHARED");
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/tests/data/vectors", src ? src : ".");
    bool ok = run_dir(run, path);
    snprintf(path, sizeof path, "%s/vectors", shared ? shared : "");
    if (shared && is_folder(path))
        return run_dir(run, path) && ok;
    run->files++;
    printf("ok %zu - further vectors # SKIP K3_SHARED names no folder with vectors\n", run->files);
    return ok;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: run-vectors [DIR]\n");
        return 2;
    }
    const bool ok = argc == 2 ? run_dir(&run, argv[1]) : run_default(&run);
    printf("1..%zu\n%zu passed, %zu failed, %zu skipped\n", run.files, run.all.passed,
           run.all.failed, run.all.skipped);
    return ok && run.all.failed == 0 ? 0 : 1;
}
