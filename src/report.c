/* report.c - see report.h. */
#include <config.h>

#include "report.h"

#include "size.h"

static void row(FILE *out, const char *what, uint64_t bytes, const char *note)
{
    char size[32];
    fprintf(out, "  %-18s %9s%s%s\n", what, size_format(size, sizeof size, bytes),
            note[0] == '\0' ? "" : "  ", note);
}

static void share_note(char *buf, size_t cap, uint64_t part, uint64_t whole, const char *what)
{
    snprintf(buf, cap, "%.0f %% of %s", whole > 0 ? 100.0 * (double)part / (double)whole : 100.0,
             what);
}

/* What a decode step reads: known for the trunk, at most for the experts. */
static void report_reads(FILE *out, const struct k3_plan *p)
{
    char trunk[32], experts[32];
    fprintf(out, "  each token reads %s of trunk and at most %s of experts\n",
            size_format(trunk, sizeof trunk, p->trunk_per_token),
            size_format(experts, sizeof experts, p->experts_per_token));
}

void report_plan(FILE *out, const struct k3_plan *p)
{
    char a[32], b[32], note[80];
    fprintf(out, "memory plan: %s of a budget of %s\n", size_format(a, sizeof a, p->total),
            size_format(b, sizeof b, p->budget));
    row(out, "program", p->program, "");
    row(out, "index", p->index, "");
    row(out, "vectors", p->vectors, "");
    row(out, "state", p->state, "");
    snprintf(note, sizeof note, "%u positions", (unsigned)p->context);
    row(out, "latents", p->latent, note);
    snprintf(note, sizeof note, "chunks of %u token%s", (unsigned)p->chunk,
             p->chunk == 1 ? "" : "s");
    row(out, "activations", p->activations, note);
    row(out, "ring", p->ring, "");
    row(out, "expert staging", p->staging, "");
    snprintf(note, sizeof note, "%u positions to go back to", (unsigned)p->checkpoint_slots);
    row(out, "checkpoints", p->checkpoints, note);
    share_note(note, sizeof note, p->trunk_bytes - p->trunk_per_token, p->trunk_bytes,
               "the trunk stays in memory");
    row(out, "resident trunk", p->residents, note);
    snprintf(note, sizeof note, "%u of %llu stay in memory", (unsigned)p->expert_slots,
             (unsigned long long)p->moe_layers * p->n_experts);
    row(out, "resident experts", p->experts, note);
    report_reads(out, p);
    fprintf(out, "  %u threads, kernels %s%s%s\n", (unsigned)p->threads,
            p->isa == NULL ? "?" : p->isa, p->io[0] == '\0' ? "" : ", reading ", p->io);
}

char *report_time(char *buf, size_t cap, double seconds)
{
    if (seconds < 0.0995)
        snprintf(buf, cap, "%.1f ms", 1e3 * seconds);
    else if (seconds < 9.95)
        snprintf(buf, cap, "%.2f s", seconds);
    else if (seconds < 99.5)
        snprintf(buf, cap, "%.1f s", seconds);
    else if (seconds < 99.5 * 60)
        snprintf(buf, cap, "%.0f min", seconds / 60);
    else
        snprintf(buf, cap, "%.1f h", seconds / 3600);
    return buf;
}

static void report_tokens(FILE *out, const struct run_figures *r)
{
    char a[32], b[32], c[32];
    fprintf(out, "read %u prompt tokens in %s", (unsigned)(r->prompt_tokens - r->reused),
            report_time(a, sizeof a, r->prefill.seconds));
    if (r->reused > 0)
        fprintf(out, " (%u more were there already)", (unsigned)r->reused);
    if (r->generated == 0) {
        fputs("; nothing was generated\n", out);
        return;
    }
    fprintf(out, "; generated %u token%s in %s (%s)\n", (unsigned)r->generated,
            r->generated == 1 ? "" : "s", report_time(a, sizeof a, r->steps.seconds),
            session_finish_name(r->finish));
    if (r->pace->n > 0)
        fprintf(out, "token time: mean %s, 95 %% within %s, last %s\n",
                report_time(a, sizeof a, r->pace->mean), report_time(b, sizeof b, r->pace->p95),
                report_time(c, sizeof c, r->pace->last));
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void report_disk(FILE *out, const struct step_stats *all, uint32_t devices)
{
    char a[32], b[32];
    const uint64_t bytes = all->bytes_trunk + all->bytes_experts;
    const double rate = all->seconds > 0 ? (double)bytes / all->seconds : 0;
    fprintf(out, "disk wait: %.1f %% of the time (trunk %.1f, experts %.1f); read %s at %s/s, "
                 "device busy %.1f %%\n",
            100 * stats_wait_fraction(all), percent(all->wait_trunk_s, all->seconds),
            percent(all->wait_experts_s, all->seconds), size_format(a, sizeof a, bytes),
            size_format(b, sizeof b, (uint64_t)rate), 100 * stats_busy_fraction(all, devices));
    if (all->requests > 0)
        fprintf(out, "experts: true resident hit rate %.1f %% (prefetched %.1f, waited for %.1f); "
                     "raw %.1f %%\n",
                100 * stats_hit_rate(all), percent((double)all->prefetched, (double)all->requests),
                percent((double)all->waited, (double)all->requests),
                100 * stats_raw_hit_rate(all));
}

void report_run(FILE *out, const struct run_figures *r)
{
    char a[32], b[32], c[32];
    struct step_stats all = r->prefill;
    stats_add(&all, &r->steps);
    report_tokens(out, r);
    report_disk(out, &all, r->devices);
    if (r->steps.tokens > 0)
        fprintf(out, "trunk: %s read for each token (plan %s)\n",
                size_format(a, sizeof a, (uint64_t)stats_trunk_per_token(&r->steps)),
                size_format(b, sizeof b, r->plan_bytes_per_token));
    if (r->io[0] != '\0')
        fprintf(out, "reading: %s, begun %s after the start\n", r->io,
                report_time(a, sizeof a, r->first_read_s));
    fprintf(out, "memory: peak %s (plan %s, budget %s)\n", size_format(a, sizeof a, r->peak_rss),
            size_format(b, sizeof b, r->planned), size_format(c, sizeof c, r->budget));
}
