/* runtime.c - see runtime.h. */
#include <config.h>

#include "runtime.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engine/demo/demo.h"
#include "../engine/model/host.h"
#include "paths.h"

/* What comes on top of the memory in use once the tokenizer is loaded: arenas of the allocator,
 * libraries paged in later. */
#define HEADROOM (6u << 20)
/* A position of a conversation: its text, ids, message and what encoding a prompt takes for a while
 * (measured with a text of a million tokens: 27 bytes). */
#define PER_POSITION 48u

static void say(const struct runtime_listener *l, const char *text)
{
    if (l->notice != NULL)
        l->notice(l->ud, text);
}

/* "/data/kimi-k3/" -> "kimi-k3" */
static void set_name(struct runtime *rt)
{
    size_t n = strlen(rt->dir);
    while (n > 1 && rt->dir[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && rt->dir[from - 1] != '/')
        from--;
    snprintf(rt->name, sizeof rt->name, "%.*s", (int)(n - from), rt->dir + from);
}

/* Said before anything in it is opened: a file that is missing would be named, and not the folder. */
static enum k3_status check_folder(const char *dir, struct k3_error *err)
{
    if (!path_is_dir(dir))
        return k3_fail(err, K3_FAILED, "%s: there is no such folder; --model names the folder of a "
                       "checkpoint", dir);
    char *index = path_format(err, "%s/model.safetensors.index.json", dir);
    char *single = path_format(err, "%s/model.safetensors", dir);
    const bool there = (index != NULL && access(index, F_OK) == 0) ||
                       (single != NULL && access(single, F_OK) == 0);
    free(index);
    free(single);
    if (there)
        return K3_OK;
    return k3_fail(err, K3_FAILED,
                   "%s: no checkpoint: neither model.safetensors.index.json nor model.safetensors is "
                   "there; name the folder that holds it", dir);
}

static enum k3_status find_model(struct runtime *rt, const struct run_config *cfg,
                                 const struct runtime_listener *l, struct k3_error *err)
{
    const char *dir = cfg->engine.model_dir;
    if (dir == NULL) {
        rt->demo = true;
        snprintf(rt->name, sizeof rt->name, "demo");
        say(l, "no model was named: this is the built-in demo model, which is tiny and knows only "
               "k3chat (--model DIR opens a real one)");
        return k3_demo_prepare(rt->dir, sizeof rt->dir, err);
    }
    if (strlen(dir) >= sizeof rt->dir)
        return k3_fail(err, K3_USAGE, "--model: the path is longer than %zu bytes",
                       sizeof rt->dir - 1);
    if (check_folder(dir, err) != K3_OK)
        return err->status;
    strcpy(rt->dir, dir);
    set_name(rt);
    return K3_OK;
}

/* A tokenizer that is not the model's would give plausible wrong tokens. */
static enum k3_status check_vocab(const struct runtime *rt, struct k3_error *err)
{
    const size_t have = k3_tokenizer_vocab(rt->tok);
    const uint32_t want = k3_get_plan(rt->engine)->vocab;
    if (have == want)
        return K3_OK;
    return k3_fail(err, K3_FAILED,
                   "%s: tiktoken.model makes a vocabulary of %zu ids, config.json (vocab_size) "
                   "says %u; they do not belong together",
                   rt->dir, have, (unsigned)want);
}

/* Libraries and tokenizer are there already and measured, the rest is estimated from above. */
void runtime_count_program(struct k3_options *opt, uint64_t extra_bytes)
{
    const uint64_t context = opt->context != 0 ? opt->context : K3_CONTEXT_DEFAULT;
    opt->program_bytes = k3_host_rss() + HEADROOM + context * PER_POSITION + extra_bytes;
    opt->program_per_id = k3_sampler_scratch(1);
}

static enum k3_status open_engine(struct runtime *rt, const struct run_config *cfg,
                                  const struct runtime_needs *needs,
                                  const struct runtime_listener *l, struct k3_error *err)
{
    struct k3_options opt = cfg->engine;
    opt.model_dir = rt->dir;
    opt.full_logits = needs->all_logits;
    runtime_count_program(&opt, needs->extra_bytes);
    rt->engine = k3_open(&opt, l->progress, l->ud, err);
    if (rt->engine == NULL)
        return err->status;
    if (rt->tok != NULL && check_vocab(rt, err) != K3_OK)
        return err->status;
    if (l->plan != NULL)
        l->plan(l->ud, k3_get_plan(rt->engine));
    return k3_start(rt->engine, l->progress, l->ud, err);
}

enum k3_status runtime_load(struct runtime *rt, const struct run_config *cfg,
                            const struct runtime_needs *needs,
                            const struct runtime_listener *listen, struct k3_error *err)
{
    memset(rt, 0, sizeof *rt);
    if (find_model(rt, cfg, listen, err) != K3_OK)
        return err->status;
    if (needs->tokenizer) {
        rt->tok = k3_tokenizer_open(rt->dir, err);
        if (rt->tok == NULL)
            return err->status;
    }
    if (open_engine(rt, cfg, needs, listen, err) != K3_OK)
        return err->status;
    return timeline_open(&rt->line, rt->engine, rt->tok, &cfg->sampling, err);
}

enum k3_status runtime_use_states(struct runtime *rt, const struct run_config *cfg,
                                  const char *transcript, states_notice_fn notice, void *ud,
                                  struct k3_error *err)
{
    const struct states_limits limits = {.keep = cfg->states_keep, .disk = cfg->states_disk};
    rt->line.states = NULL;
    states_close(rt->states);
    rt->states = NULL;
    if (transcript == NULL)
        return K3_OK;
    rt->states = states_open(transcript, &limits, notice, ud, err);
    if (rt->states == NULL)
        return err->status;
    rt->line.states = rt->states;
    rt->line.save_every = cfg->save_every;
    return K3_OK;
}

void runtime_close(struct runtime *rt)
{
    timeline_close(&rt->line);
    states_close(rt->states);
    rt->states = NULL;
    k3_close(rt->engine);
    k3_tokenizer_close(rt->tok);
    rt->engine = NULL;
    rt->tok = NULL;
}
