/* result_json.c - the JSON result of a batch run. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "../engine/model/host.h"
#include "batch.h"
#include "jsonout.h"

static void put_text(struct jsonout *j, const char *key, const struct buffer *text)
{
    jsonout_string(j, key, text->v, text->n);
}

static void put_steps(struct jsonout *j, const struct batch *b)
{
    jsonout_open(j, "steps", '[');
    for (size_t i = 0; i < b->generated.n; i++) {
        const struct step_stats *s = &b->steps[i];
        jsonout_open(j, NULL, '{');
        jsonout_int(j, "token", b->generated.v[i]);
        jsonout_real(j, "seconds", s->seconds);
        jsonout_real(j, "wait_trunk_s", s->wait_trunk_s);
        jsonout_real(j, "wait_experts_s", s->wait_experts_s);
        jsonout_u64(j, "bytes_trunk", s->bytes_trunk);
        jsonout_u64(j, "bytes_experts", s->bytes_experts);
        jsonout_u64(j, "requests", s->requests);
        jsonout_u64(j, "resident", s->resident);
        jsonout_u64(j, "prefetched", s->prefetched);
        jsonout_u64(j, "waited", s->waited);
        jsonout_close(j, '}');
    }
    jsonout_close(j, ']');
}

static void put_prefill(struct jsonout *j, const struct batch *b)
{
    const struct step_stats *p = &b->prefill;
    jsonout_open(j, "prefill", '{');
    jsonout_int(j, "tokens", (int64_t)(b->prompt.n - b->reused));
    jsonout_real(j, "seconds", p->seconds);
    jsonout_u64(j, "bytes_trunk", p->bytes_trunk);
    jsonout_u64(j, "bytes_experts", p->bytes_experts);
    jsonout_int(j, "reused_tokens", b->reused);
    jsonout_close(j, '}');
}

/* Of the whole run: the prompt and all steps. */
static void put_totals(struct jsonout *j, const struct batch *b)
{
    struct k3_metrics m;
    struct step_stats all = b->prefill;
    stats_add(&all, &b->steps_sum);
    k3_get_metrics(b->rt.engine, &m);
    jsonout_open(j, "totals", '{');
    jsonout_real(j, "seconds", all.seconds);
    jsonout_real(j, "disk_wait_fraction", stats_wait_fraction(&all));
    jsonout_real(j, "true_resident_hit_rate", stats_hit_rate(&all));
    jsonout_real(j, "raw_hit_rate", stats_raw_hit_rate(&all));
    jsonout_u64(j, "bytes_read", all.bytes_trunk + all.bytes_experts);
    if (m.bytes_checked > 0)
        jsonout_u64(j, "bytes_checked", m.bytes_checked);
    jsonout_real(j, "device_busy_fraction", stats_busy_fraction(&all, m.devices));
    jsonout_real(j, "trunk_bytes_per_token", stats_trunk_per_token(&b->steps_sum));
    jsonout_u64(j, "plan_bytes_per_token", k3_get_plan(b->rt.engine)->bytes_per_token);
    jsonout_close(j, '}');
}

static void put_plan(struct jsonout *j, const struct k3_plan *p)
{
    const struct {
        const char *key;
        uint64_t value;
    } parts[] = {
        {"budget", p->budget},
        {"floor", p->floor},
        {"program", p->program},
        {"index", p->index},
        {"vectors", p->vectors},
        {"state", p->state},
        {"latent", p->latent},
        {"activations", p->activations},
        {"ring", p->ring},
        {"staging", p->staging},
        {"residents", p->residents},
        {"experts", p->experts},
        {"checkpoints", p->checkpoints},
        {"total", p->total},
        {"trunk_bytes", p->trunk_bytes},
        {"trunk_per_token", p->trunk_per_token},
        {"expert_bytes", p->expert_bytes},
        {"experts_per_token", p->experts_per_token},
        {"expert_slots", p->expert_slots},
        {"context", p->context},
    };
    jsonout_open(j, "plan", '{');
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        jsonout_u64(j, parts[i].key, parts[i].value);
    jsonout_close(j, '}');
}

static void put_run(struct jsonout *j, const struct batch *b, const struct k3_plan *p)
{
    struct k3_metrics m;
    k3_get_metrics(b->rt.engine, &m);
    const char *io = k3_io_in_use(b->rt.engine);
    jsonout_open(j, "run", '{');
    jsonout_string(j, "isa", p->isa, p->isa == NULL ? 0 : strlen(p->isa));
    jsonout_int(j, "threads", p->threads);
    jsonout_string(j, "io", io, strlen(io));
    jsonout_int(j, "chunk", p->chunk);
    jsonout_real(j, "first_read_s", m.first_read_s);
    jsonout_string(j, "model", b->rt.name, strlen(b->rt.name));
    jsonout_string(j, "version", PACKAGE_VERSION, strlen(PACKAGE_VERSION));
    jsonout_close(j, '}');
}

/* [layer][position][top_k], null for a layer without experts. */
static void put_routing(struct jsonout *j, const struct routing *r)
{
    jsonout_open(j, "routing", '[');
    for (uint32_t layer = 0; layer < r->n_layers; layer++) {
        jsonout_line(j);
        if (r->layers[layer] == NULL) {
            jsonout_null(j, NULL);
            continue;
        }
        jsonout_open(j, NULL, '[');
        for (uint32_t t = 0; t < r->filled; t++)
            jsonout_ids(j, NULL, r->layers[layer] + (size_t)t * r->top_k, r->top_k);
        jsonout_close(j, ']');
    }
    jsonout_close(j, ']');
}

static void put_memory(struct jsonout *j, const struct k3_plan *p)
{
    jsonout_open(j, "memory", '{');
    jsonout_u64(j, "budget", p->budget);
    put_plan(j, p);
    jsonout_u64(j, "peak_rss", k3_host_peak_rss());
    jsonout_close(j, '}');
}

enum k3_status result_json_write(const struct batch *b, FILE *f, struct k3_error *err)
{
    struct jsonout j = {.f = f};
    const struct k3_plan *plan = k3_get_plan(b->rt.engine);
    const char *finish = session_finish_name(b->finish);
    jsonout_open(&j, NULL, '{');
    jsonout_ids(&j, "prompt_ids", b->prompt.v, b->prompt.n);
    jsonout_ids(&j, "generated_ids", b->generated.v, b->generated.n);
    put_text(&j, "text", &b->text);
    put_text(&j, "reasoning", &b->reasoning);
    put_text(&j, "content", &b->content);
    jsonout_string(&j, "finish", finish, strlen(finish));
    jsonout_ids(&j, "teacher_forced_argmax", b->argmax.v, b->argmax.n);
    put_steps(&j, b);
    put_prefill(&j, b);
    put_totals(&j, b);
    put_memory(&j, plan);
    put_run(&j, b, plan);
    if (b->routing.layers != NULL)
        put_routing(&j, &b->routing);
    jsonout_close(&j, '}');
    jsonout_line(&j);
    if (j.failed)
        return k3_fail_memory(err, "the JSON result", b->text.n);
    if (fflush(f) != 0 || ferror(f) != 0)
        return k3_fail(err, K3_FAILED, "the JSON result cannot be written: %s", strerror(errno));
    return K3_OK;
}
