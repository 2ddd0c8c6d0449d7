/* cmd_doctor.c - see cmd_doctor.h. */
#include <config.h>

#include "cmd_doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/kernels/kernels.h"
#include "../engine/model/host.h"
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

/* The profile with the largest budget that nine tenths of the free memory hold, and that budget. */
static const char *fitting_profile(uint64_t *budget, bool *found)
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
            r.run.engine.budget <= room) {
            best = names[i];
            *budget = r.run.engine.budget;
        }
        free(path);
        request_free(&r);
    }
    return best;
}

/* What a token reads and what stays in memory, by budget: the steps from the least one up, and the
 * budgets of the profiles among them. */
static void print_budgets(struct k3_options opt, uint64_t floor)
{
    static const uint32_t gb[] = {2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1000};
    char a[32], b[32], c[32];
    puts("  budget    trunk per token  experts per token  trunk that stays  experts that stay");
    for (size_t i = 0; i < sizeof gb / sizeof gb[0]; i++) {
        struct k3_plan p = {0};
        struct k3_error err = {0};
        opt.budget = (uint64_t)gb[i] * 1000 * 1000 * 1000;
        if (opt.budget < floor || k3_plan_config(&opt, &p, &err) != K3_OK)
            continue;
        const uint64_t experts = (uint64_t)p.moe_layers * p.n_experts;
        printf("  %6s  %17s  %17s  %14.1f %%  %15.1f %%\n", size_format(a, sizeof a, opt.budget),
               size_format(b, sizeof b, p.trunk_per_token),
               size_format(c, sizeof c, p.experts_per_token),
               p.trunk_bytes > 0
                   ? 100.0 * (double)(p.trunk_bytes - p.trunk_per_token) / (double)p.trunk_bytes
                   : 100.0,
               experts > 0 ? 100.0 * p.expert_slots / (double)experts : 100.0);
        if (p.trunk_per_token == 0 && p.expert_slots == experts)
            break; /* everything is resident: more changes nothing */
    }
    puts("  (experts per token: at most, when none of the chosen ones is in memory)");
}

static enum k3_status print_plan(const struct k3_options *opt, struct k3_error *err)
{
    char a[32];
    struct k3_plan plan = {0};
    const enum k3_status status = k3_plan_config(opt, &plan, err);
    if (plan.floor > 0)
        printf("least budget for this model with %u positions: %s\n", (unsigned)plan.context,
               size_format(a, sizeof a, plan.floor));
    if (status == K3_OK)
        report_plan(stdout, &plan);
    if (plan.floor > 0)
        print_budgets(*opt, plan.floor);
    return status;
}

static enum k3_status examine(const struct request *r, struct k3_error *err)
{
    const char *dir = r->run.engine.model_dir;
    print_cpu();
    print_kernels();
    print_memory();
    struct k3_options opt = r->run.engine;
    uint64_t fits = 0;
    bool found = false;
    const char *profile = r->profile != NULL ? r->profile : fitting_profile(&fits, &found);
    if (r->profile == NULL)
        printf("profile that fits: %s\n", profile != NULL ? profile
                                          : found         ? "none (use --budget SIZE)"
                                                          : "unknown, no profiles are installed");
    if (opt.budget == 0)
        opt.budget = fits;
    enum k3_status status = K3_OK;
    if (dir != NULL) {
        printf("model: %s\n", dir);
        /* As in a chat, whose tokenizer is not loaded here. */
        runtime_count_program(&opt, RUNTIME_CHAT_BYTES);
        opt.program_per_id += RUNTIME_TOKENIZER_PER_ID;
        status = print_plan(&opt, err);
    }
    if (status == K3_OK)
        printf("next: k3chat%s%s%s%s\n", profile != NULL ? " --profile " : "",
               profile != NULL ? profile : "", dir != NULL ? " --model " : "",
               dir != NULL ? dir : "");
    return status;
}

int cmd_doctor(int argc, char **argv)
{
    struct request r;
    struct k3_error err = {0};
    const enum options_result what = options_parse(argc, argv, FOR_DOCTOR, &r, &err);
    enum k3_status status = K3_OK;
    if (what == OPTIONS_HELP) {
        puts("Usage: k3chat doctor [options]\n\nSays what this machine can do and, with --model, "
             "how memory would be used;\nthe model's config.json is enough.\n");
        options_print(stdout, FOR_DOCTOR, 0);
    } else if (what == OPTIONS_VERSION) {
        version_print(stdout);
    } else if (what == OPTIONS_ERROR) {
        status = err.status;
    } else {
        status = examine(&r, &err);
    }
    request_free(&r);
    return status == K3_OK ? 0 : report_error(&err);
}
