/* bench_run.c - see bench_run.h. */
#include <config.h>

#include "bench_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../engine/k3.h"

#define MAX_ARGS 64

/* ---- the memory limit -------------------------------------------------------------------- */

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const size_t n = strlen(text);
    const bool ok = write(fd, text, n) == (ssize_t)n;
    return close(fd) == 0 && ok;
}

/* A group of our own with that much memory and no swap; false where the system does not let us. */
static bool make_group(char *folder, size_t cap, uint64_t bytes)
{
    char text[32];
    snprintf(folder, cap, "/sys/fs/cgroup/k3chat-bench-%ld", (long)getpid());
    snprintf(text, sizeof text, "%" PRIu64, bytes);
    if (mkdir(folder, 0755) != 0)
        return false;
    if (write_file(folder, "memory.max", text)) {
        write_file(folder, "memory.swap.max", "0"); /* absent when the system has no swap */
        return true;
    }
    rmdir(folder);
    return false;
}

/* ---- the child --------------------------------------------------------------------------- */

static enum k3_status make_prompt(const struct bench_case *c, char **text, struct k3_error *err)
{
    struct k3_options o;
    struct k3_plan plan;
    k3_options_init(&o);
    o.model_dir = c->model;
    k3_plan_config(&o, &plan, err); /* refused or not: the vocabulary is in it */
    if (plan.vocab == 0)
        return err->status;
    const size_t cap = (size_t)c->prompt * 12 + 1;
    char *s = *text = malloc(cap);
    if (!s)
        return k3_fail_memory(err, "a prompt", cap);
    uint64_t state = 1;
    size_t at = 0;
    for (uint32_t i = 0; i < c->prompt; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at += (size_t)snprintf(s + at, cap - at, "%s%u", i ? "," : "",
                               (unsigned)((state >> 33) % plan.vocab));
    }
    return K3_OK;
}

static void add(char **argv, size_t *n, const char *word)
{
    if (*n + 1 < MAX_ARGS)
        argv[(*n)++] = (char *)(uintptr_t)word;
    argv[*n] = NULL;
}

static _Noreturn void run_child(char **argv, const char *group, const char *log)
{
    if (group) {
        char pid[32];
        snprintf(pid, sizeof pid, "%ld", (long)getpid());
        if (!write_file(group, "cgroup.procs", pid))
            _exit(126);
    }
    const int null = open("/dev/null", O_RDWR);
    const int err = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (null < 0 || err < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(err, 2) < 0)
        _exit(126);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* The last line of the child's stderr says best what went wrong. */
static void last_line(const char *path, char *out, size_t cap)
{
    char line[1024];
    snprintf(out, cap, "no message");
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (line[0] != '\n')
            snprintf(out, cap, "%.*s", (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
}

static enum k3_status spawn(char **argv, const char *group, const char *log, struct k3_error *err)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0)
        return k3_fail(err, K3_FAILED, "cannot start another process: %s", strerror(errno));
    if (pid == 0)
        run_child(argv, group, log);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return K3_OK;
    char line[900];
    last_line(log, line, sizeof line);
    if (WIFSIGNALED(status))
        return k3_fail(err, K3_FAILED, "the run was killed by signal %d%s", WTERMSIG(status),
                       group ? " (memory above the limit?)" : "");
    return k3_fail(err, K3_FAILED, "the run ended with status %d: %s", WEXITSTATUS(status), line);
}

/* ---- the result -------------------------------------------------------------------------- */

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static enum k3_status read_ids(const json_t *root, struct bench_result *r, struct k3_error *err)
{
    const json_t *ids = json_object_get(root, "generated_ids");
    r->n_ids = json_array_size(ids);
    r->ids = calloc(r->n_ids + 1, sizeof *r->ids);
    if (!r->ids)
        return k3_fail_memory(err, "generated ids", r->n_ids * sizeof *r->ids);
    for (size_t i = 0; i < r->n_ids; i++)
        r->ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    return K3_OK;
}

/* Means over the decode steps that ran the model: the first token comes out of the prompt. */
static void read_steps(const json_t *root, struct bench_result *r)
{
    const json_t *steps = json_object_get(root, "steps");
    double seconds = 0, trunk = 0, experts = 0, wait = 0, requests = 0, resident = 0;
    size_t n = 0;
    for (size_t i = 1; i < json_array_size(steps); i++, n++) {
        const json_t *s = json_array_get(steps, i);
        seconds += number(s, "seconds");
        trunk += number(s, "bytes_trunk");
        experts += number(s, "bytes_experts");
        wait += number(s, "wait_trunk_s") + number(s, "wait_experts_s");
        requests += number(s, "requests");
        resident += number(s, "resident");
    }
    if (n == 0)
        return;
    r->token_s = seconds / (double)n;
    r->trunk_per_token = trunk / (double)n;
    r->experts_per_token = experts / (double)n;
    r->bytes_per_token = r->trunk_per_token + r->experts_per_token;
    r->wait_fraction = seconds > 0 ? wait / seconds : 0;
    r->hit_rate = requests > 0 ? resident / requests : 0;
}

static void read_rest(const json_t *root, struct bench_result *r)
{
    const json_t *prefill = json_object_get(root, "prefill"), *run = json_object_get(root, "run");
    const json_t *memory = json_object_get(root, "memory");
    const double tokens = number(prefill, "tokens");
    r->first_token_s = number(prefill, "seconds");
    if (tokens > 0) {
        r->prompt_s = r->first_token_s / tokens;
        r->prompt_bytes_per_token =
            (number(prefill, "bytes_trunk") + number(prefill, "bytes_experts")) / tokens;
    }
    r->busy_fraction = number(json_object_get(root, "totals"), "device_busy_fraction");
    r->budget = (uint64_t)number(memory, "budget");
    r->planned = (uint64_t)number(json_object_get(memory, "plan"), "total");
    r->peak_rss = (uint64_t)number(memory, "peak_rss");
    r->threads = (uint32_t)number(run, "threads");
    r->chunk = (uint32_t)number(run, "chunk");
    const char *isa = json_string_value(json_object_get(run, "isa"));
    const char *io = json_string_value(json_object_get(run, "io"));
    snprintf(r->isa, sizeof r->isa, "%s", isa ? isa : "");
    snprintf(r->io, sizeof r->io, "%s", io ? io : "");
}

static enum k3_status read_result(const char *path, struct bench_result *r, struct k3_error *err)
{
    json_error_t je;
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &je);
    if (!root)
        return k3_fail(err, K3_FAILED, "the run's result is not readable: %s", je.text);
    const enum k3_status st = read_ids(root, r, err);
    read_steps(root, r);
    read_rest(root, r);
    json_decref(root);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------- */

static enum k3_status run_in(const struct bench_case *c, const char *folder, const char *prompt,
                             struct bench_result *out, struct k3_error *err)
{
    char *argv[MAX_ARGS], budget[32], threads[16], tokens[16], json[300], log[300], group[128];
    size_t n = 0;
    snprintf(budget, sizeof budget, "%" PRIu64, c->budget);
    snprintf(threads, sizeof threads, "%" PRIu32, c->threads);
    snprintf(tokens, sizeof tokens, "%" PRIu32, c->tokens);
    snprintf(json, sizeof json, "%s/result.json", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    const char *const fixed[] = {"k3chat", "--batch", "--model", c->model, "--ids", prompt,
                                 "--max-tokens", tokens, "--ignore-stop", "--json", json};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        add(argv, &n, fixed[i]);
    if (c->budget) {
        add(argv, &n, "--budget");
        add(argv, &n, budget);
    }
    if (c->threads) {
        add(argv, &n, "--threads");
        add(argv, &n, threads);
    }
    for (size_t i = 0; i < c->n_extra; i++)
        add(argv, &n, c->extra[i]);
    out->limited = c->limit_memory && c->budget && make_group(group, sizeof group, c->budget);
    enum k3_status st = spawn(argv, out->limited ? group : NULL, log, err);
    if (st == K3_OK)
        st = read_result(json, out, err);
    if (out->limited)
        rmdir(group);
    unlink(json);
    unlink(log);
    return st;
}

enum k3_status bench_run(const struct bench_case *c, struct bench_result *out,
                         struct k3_error *err)
{
    memset(out, 0, sizeof *out);
    char *prompt = NULL;
    if (make_prompt(c, &prompt, err) != K3_OK)
        return err->status;
    const char *tmp = getenv("TMPDIR");
    char folder[256];
    snprintf(folder, sizeof folder, "%s/k3chat-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        free(prompt);
        return k3_fail(err, K3_FAILED, "%s: cannot make a scratch folder: %s", folder,
                       strerror(errno));
    }
    const enum k3_status st = run_in(c, folder, prompt, out, err);
    rmdir(folder);
    free(prompt);
    if (st != K3_OK)
        bench_result_free(out);
    return st;
}

void bench_result_free(struct bench_result *r)
{
    free(r->ids);
    r->ids = NULL;
    r->n_ids = 0;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_summary bench_summarise(const double *x, size_t n)
{
    struct bench_summary s = {0};
    if (n == 0)
        return s;
    double sorted[256], squares = 0;
    n = n < 256 ? n : 256;
    memcpy(sorted, x, n * sizeof *x);
    qsort(sorted, n, sizeof *sorted, compare);
    for (size_t i = 0; i < n; i++)
        s.mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - s.mean) * (x[i] - s.mean);
    s.sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    s.spread = sorted[n - 1] - sorted[0];
    s.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return s;
}
