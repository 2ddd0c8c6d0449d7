/* settings_batch.c - values of a run without a screen. */
#include <config.h>

#include "settings_internal.h"

enum k3_status set_batch(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->batch = true;
    return K3_OK;
}

static enum k3_status set_prompt(struct request *r, const char *v, enum prompt_kind kind,
                                 const char *option, struct k3_error *err)
{
    if (r->todo.kind != PROMPT_NONE)
        return k3_fail(err, K3_USAGE, "%s was given already; one prompt is possible",
                       r->todo.prompt_option);
    r->todo.kind = kind;
    r->todo.prompt_option = option;
    r->todo.text = run_config_keep(&r->run, v, err);
    return r->todo.text == NULL ? err->status : K3_OK;
}

enum k3_status set_ids(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_IDS, "--ids", err);
}

enum k3_status set_ids_file(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_IDS_FILE, "--ids-file", err);
}

enum k3_status set_prompt_text(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_TEXT, "--prompt", err);
}

enum k3_status set_prompt_file(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_TEXT_FILE, "--prompt-file", err);
}

enum k3_status set_chat(struct request *r, const char *v, struct k3_error *err)
{
    return set_prompt(r, v, PROMPT_CHAT, "--chat", err);
}

enum k3_status set_continue(struct request *r, const char *v, struct k3_error *err)
{
    r->run.continue_answer = true;
    return set_prompt(r, v, PROMPT_CONTINUE, "--continue", err);
}

enum k3_status set_ignore_stop(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->run.ignore_stop = true;
    return K3_OK;
}

enum k3_status set_teacher_force(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->todo.teacher_force = true;
    return K3_OK;
}

enum k3_status set_logits(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->todo.logits_path, err);
}

enum k3_status set_json(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->todo.json_path, err);
}

enum k3_status set_trace(struct request *r, const char *v, struct k3_error *err)
{
    return settings_keep(r, v, &r->run.engine.trace_path, err);
}

enum k3_status set_dump_routing(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    (void)err;
    r->todo.dump_routing = true;
    return K3_OK;
}
