/* cmd_doctor.c - see cmd_doctor.h. */
#include <config.h>

#include "cmd_doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/kernels/kernels.h"
#include "../engine/model/host.h"
#include "../engine/model/model_config.h"
#include "../engine/storage/checkpoint.h"
#include "doctor_disk.h"
#include "options.h"
#include "paths.h"
#include "profile.h"
#include "report.h"
#include "runtime.h"
#include "size.h"

static void print_cpu(void)
{
    char line[512] = "", model[256] = "unknown";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(model, sizeof model, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (f != NULL)
        fclose(f);
    printf("CPU: %s, %u physical cores, %ld threads\n", model, (unsigned)k3_host_cores(),
           sysconf(_SC_NPROCESSORS_ONLN));
}

/* Of what the kernel says the CPU can do, what matters to arithmetic. */
static void print_instructions(void)
{
    static const char *const known[] = {
        "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl",
        "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "asimddp", "sve", "bf16"};
    char *line = NULL, *save = NULL;
    size_t cap = 0;
    bool done = false;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && !done && getline(&line, &cap, f) > 0) {
        done = strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0;
        char *at = strchr(line, ':');
        if (!done || at == NULL)
            continue;
        fputs("instruction sets:", stdout);
        for (char *w = strtok_r(at + 1, " \n", &save); w != NULL; w = strtok_r(NULL, " \n", &save))
            for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
                if (strcmp(w, known[i]) == 0)
                    printf(" %s", w);
        putchar('\n');
    }
    free(line);
    if (f != NULL)
        fclose(f);
}

static void print_kernels(void)
{
    static const enum k3_isa sets[] = {K3_ISA_SCALAR, K3_ISA_AVX2, K3_ISA_AVX512, K3_ISA_NEON};
    printf("kernels:");
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const struct k3_kernels *k = k3_kernels_get(sets[i]);
        if (k != NULL)
            printf(" %s", k->name);
    }
    printf(" (in use: %s)\n", k3_kernels_get(K3_ISA_AUTO)->name);
}

static void print_memory(void)
{
    char total[32], available[32];
    const uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    printf("RAM: %s, available to a program now: %s\n", size_format(total, sizeof total, ram),
           size_format(available, sizeof available, k3_host_available()));
}

/* The profile with the largest budget that nine tenths of the free memory hold. */
static const char *fitting_profile(bool *found)
{
    static const char *const names[] = {"laptop", "desktop", "workstation", "server"};
    const uint64_t room = k3_host_available() / 10 * 9;
    const char *best = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct k3_error err = {0};
        struct request r;
        request_init(&r);
        char *path = profile_find(names[i], &err);
        *found = *found || path != NULL;
        if (path != NULL && profile_load(&r, path, &err) == K3_OK &&
            r.run.engine.budget <= room)
            best = names[i];
        free(path);
        request_free(&r);
    }
    return best;
}

/* ---- the checkpoint ---------------------------------------------------------------------- */

enum found {
    FOUND_NOTHING, /* no folder was named, or it holds no config.json */
    FOUND_CONFIG,  /* and not all of the shards, or damaged ones */
    FOUND_WHOLE
};

static bool has_file(const char *dir, const char *name)
{
    struct k3_error err;
    char *path = path_format(&err, "%s/%s", dir, name);
    const bool there = path != NULL && path_is_file(path);
    free(path);
    return there;
}

/* Says what is there of the checkpoint. */
static enum found print_checkpoint(const char *dir)
{
    char size[32];
    struct k3_error err = {0};
    if (dir == NULL) {
        puts("model: none named (without --model the built-in demo model is used)");
        return FOUND_NOTHING;
    }
    if (!has_file(dir, "config.json")) {
        printf("model: %s: %s\n", dir,
               path_is_dir(dir) ? "there is no config.json" : "there is no such folder yet");
        return FOUND_NOTHING;
    }
    struct k3_checkpoint *c = k3_checkpoint_open(dir, NULL, NULL, &err);
    if (c == NULL) {
        printf("model: %s: config.json is there, the weights are not whole:\n  %s\n", dir,
               err.message);
        return FOUND_CONFIG;
    }
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n_shards; i++)
        bytes += c->shards[i].size;
    printf("model: %s: whole, %zu files, %zu tensors, %s\n", dir, c->n_shards, c->n_tensors,
           size_format(size, sizeof size, bytes));
    k3_checkpoint_close(c);
    return FOUND_WHOLE;
}

/* ---- what to expect ---------------------------------------------------------------------- */

/* "52.3 s - 74.0 s": what the disk alone takes for a token, by whether its experts are in memory. */
static char *time_text(char *buf, size_t cap, const struct k3_plan *p,
                       const struct doctor_rates *r)
{
    char a[24], b[24];
    const double experts_rate = r->experts > 0 ? r->experts : r->trunk;
    const uint64_t all = (uint64_t)p->moe_layers * p->n_experts;
    if (r->trunk <= 0) {
        snprintf(buf, cap, "-");
        return buf;
    }
    const double least = (double)p->trunk_per_token / r->trunk;
    const double most = least + (p->expert_slots < all
                                     ? (double)p->experts_per_token / experts_rate : 0);
    snprintf(buf, cap, "%s - %s", least > 0 ? report_time(a, sizeof a, least) : "0 s",
             most > 0 ? report_time(b, sizeof b, most) : "0 s");
    return buf;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 100.0;
}

/* What a token reads and what stays in memory, by budget: the steps from the least one up, and the
 * budgets of the profiles among them. */
static void print_budgets(struct k3_options opt, uint64_t floor, const struct doctor_rates *rates)
{
    static const uint32_t gb[] = {2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1000};
    char a[32], b[32], c[32], d[64];
    puts("  budget    trunk per token   stays  experts at most   stay     time per token");
    for (size_t i = 0; i < sizeof gb / sizeof gb[0]; i++) {
        struct k3_plan p = {0};
        struct k3_error err = {0};
        opt.budget = (uint64_t)gb[i] * 1000 * 1000 * 1000;
        if (opt.budget < floor || k3_plan_config(&opt, &p, &err) != K3_OK)
            continue;
        const uint64_t experts = (uint64_t)p.moe_layers * p.n_experts;
        printf("  %6s  %17s  %5.1f%%  %15s %5.1f%%  %17s\n",
               size_format(a, sizeof a, opt.budget), size_format(b, sizeof b, p.trunk_per_token),
               percent(p.trunk_bytes - p.trunk_per_token, p.trunk_bytes),
               size_format(c, sizeof c, p.experts_per_token), percent(p.expert_slots, experts),
               time_text(d, sizeof d, &p, rates));
        if (p.trunk_per_token == 0 && p.expert_slots == experts)
            break; /* everything is resident: more changes nothing */
    }
    puts("  (time: the disk alone, from all chosen experts in memory to none of them)");
}

/* What is known before anything is measured, which takes memory too. */
struct plans {
    struct k3_options opt;
    struct k3_plan plan;
    uint64_t usual_floor; /* with the usual context, to be compared; 0 = it is that of the plan */
    enum k3_status status;
    struct k3_error err;
};

/* As in a chat, whose tokenizer is not loaded here. */
static enum k3_status plan_for(struct k3_options *opt, struct k3_plan *plan, struct k3_error *err)
{
    runtime_count_program(opt, RUNTIME_CHAT_BYTES);
    opt->program_per_id += RUNTIME_TOKENIZER_PER_ID;
    return k3_plan_config(opt, plan, err);
}

static void make_plans(struct plans *p, const struct k3_options *opt, bool has_config)
{
    struct k3_options usual = *opt;
    struct k3_plan plan = {0};
    struct k3_error unused;
    p->opt = *opt;
    if (!has_config)
        p->opt.model_dir = usual.model_dir = NULL; /* the released one */
    p->status = plan_for(&p->opt, &p->plan, &p->err);
    usual.context = K3_CONTEXT_DEFAULT;
    if (p->plan.context != usual.context && plan_for(&usual, &plan, &unused) == K3_OK)
        p->usual_floor = plan.floor;
}

static void print_floor(uint32_t context, uint64_t bytes)
{
    char a[32];
    printf("least budget for this model with %u positions: %s\n", (unsigned)context,
           size_format(a, sizeof a, bytes));
}

static void print_plan(const struct plans *p, const struct doctor_rates *rates)
{
    char t[64];
    if (p->usual_floor > 0)
        print_floor(K3_CONTEXT_DEFAULT, p->usual_floor);
    if (p->plan.floor > 0)
        print_floor(p->plan.context, p->plan.floor);
    if (p->status == K3_OK) {
        report_plan(stdout, &p->plan);
        if (rates->trunk > 0)
            printf("  each token takes the disk %s\n", time_text(t, sizeof t, &p->plan, rates));
    }
    if (p->plan.floor > 0)
        print_budgets(p->opt, p->plan.floor, rates);
}

static enum k3_status measure(const struct request *r, const struct plans *p, const char *dir,
                              struct doctor_rates *rates, struct k3_error *err)
{
    const struct k3_options *o = &r->run.engine;
    /* As the tape is cut: sixteen blocks to a ring. */
    uint64_t block = p->plan.ring / 16;
    block = block < 2u << 20 ? 2u << 20 : block > 8u << 20 ? 8u << 20 : block;
    const struct doctor_reads reads = {
        .block = block,
        .expert = p->plan.expert_bytes,
        .depth = o->io_depth != 0 ? o->io_depth : K3_IO_DEPTH_DEFAULT,
        .io = o->io};
    return doctor_measure(stdout, dir != NULL ? dir : ".", r->measure, &reads, rates, err);
}

/* ---- the whole --------------------------------------------------------------------------- */

/* The word as a shell takes it. */
static void print_word(const char *word)
{
    const bool plain = word[strcspn(word, " \t\n'\"\\$&;()*?<>|`#!~[]{}")] == '\0';
    if (!plain)
        putchar('\'');
    for (const char *p = word; *p != '\0'; p++)
        if (*p == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*p);
    if (!plain)
        putchar('\'');
}

/* Where k3chat fetch got the files from, as it has noted it (docs/formats.md), or NULL. malloc'ed. */
static char *known_source(const char *dir)
{
    struct k3_error err;
    char *path = path_format(&err, "%s/.k3chat-files", dir), *line = NULL, *source = NULL;
    size_t cap = 0;
    FILE *f = path == NULL ? NULL : fopen(path, "re");
    while (f != NULL && getline(&line, &cap, f) > 0) {
        if (strncmp(line, "source ", 7) != 0 || strchr(line, '\n') == NULL)
            continue;
        free(source);
        source = path_format(&err, "%.*s", (int)strcspn(line + 7, "\n"), line + 7);
    }
    if (f != NULL)
        fclose(f);
    free(line);
    free(path);
    return source;
}

static void print_next(const struct request *r, enum found found)
{
    const char *dir = r->run.engine.model_dir;
    if (dir == NULL) {
        puts("next: k3chat (the demo model; --model DIR opens a real one)");
        return;
    }
    if (found != FOUND_WHOLE) {
        char *source = known_source(dir);
        printf("next: k3chat fetch %s ", source != NULL ? source : "SOURCE");
        print_word(dir);
        puts(source != NULL ? "" : " (SOURCE: a repository OWNER/NAME, or the address of the files)");
        free(source);
        return;
    }
    fputs("next: k3chat ", stdout);
    if (r->profile != NULL) {
        fputs("--profile ", stdout);
        print_word(r->profile);
        putchar(' ');
    }
    fputs("--model ", stdout);
    print_word(dir);
    putchar('\n');
}

static enum k3_status examine(const struct request *r, bool fits, bool installed,
                              struct k3_error *err)
{
    const char *dir = r->run.engine.model_dir;
    struct doctor_rates rates = {0};
    print_cpu();
    print_instructions();
    print_kernels();
    print_memory();
    doctor_print_disk(stdout, dir != NULL ? dir : ".");
    const enum found found = print_checkpoint(dir);
    if (fits)
        printf("profile that fits: %s\n", r->profile);
    else if (r->profile == NULL)
        printf("profile that fits: %s\n",
               installed ? "none (use --budget SIZE)" : "unknown, no profiles are installed");
    struct plans p = {.status = K3_OK};
    make_plans(&p, &r->run.engine, found != FOUND_NOTHING);
    enum k3_status status = measure(r, &p, dir, &rates, err);
    if (status != K3_OK)
        return status;
    if (found == FOUND_NOTHING)
        puts("what the released model would take:");
    print_plan(&p, &rates);
    if (p.status != K3_OK) {
        *err = p.err;
        if (found != FOUND_NOTHING)
            return p.status;
        printf("  %s\n", p.err.message); /* of a model that is not there: nothing has failed */
    }
    print_next(r, found);
    return K3_OK;
}

/* The command line as it would be with the profile that fits, when it names none. NULL: as it is. */
static char **with_profile(int argc, char **argv, const char *profile)
{
    char **v = calloc((size_t)argc + 3, sizeof *v);
    if (v == NULL)
        return NULL;
    v[0] = argv[0];
    v[1] = (char *)"--profile"; /* getopt takes them so, and changes none */
    v[2] = (char *)profile;
    for (int i = 1; i < argc; i++)
        v[i + 2] = argv[i];
    return v;
}

/* Without --profile and without a default of the user's own, the one that fits is looked into. */
static enum options_result parse(int argc, char **argv, struct request *r, bool *fits,
                                 bool *installed, struct k3_error *err)
{
    enum options_result what = options_parse(argc, argv, FOR_DOCTOR, r, err);
    if (what != OPTIONS_RUN || r->profile != NULL)
        return what;
    struct k3_error unused;
    char *own = profile_find("default", &unused);
    const char *best = fitting_profile(installed);
    char **v = own == NULL && best != NULL ? with_profile(argc, argv, best) : NULL;
    free(own);
    if (v == NULL)
        return what;
    request_free(r);
    what = options_parse(argc + 2, v, FOR_DOCTOR, r, err);
    *fits = what == OPTIONS_RUN;
    free(v);
    return what;
}

int cmd_doctor(int argc, char **argv)
{
    struct request r;
    struct k3_error err = {0};
    bool fits = false, installed = false;
    const enum options_result what = parse(argc, argv, &r, &fits, &installed, &err);
    enum k3_status status = K3_OK;
    if (what == OPTIONS_HELP) {
        puts("Usage: k3chat doctor [options]\n\nSays what this machine can do, what is there of the "
             "checkpoint, how memory would be\nused and what a token would take; without --model, "
             "for the released model.\nReads from the shards for two seconds, if there are any.\n");
        options_print(stdout, FOR_DOCTOR, 0);
    } else if (what == OPTIONS_VERSION) {
        version_print(stdout);
    } else if (what == OPTIONS_ERROR) {
        status = err.status;
    } else {
        status = examine(&r, fits, installed, &err);
    }
    request_free(&r);
    return status == K3_OK ? 0 : report_error(&err);
}
