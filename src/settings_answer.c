/* settings_answer.c - values about answers and the sessions they are kept in. */
#include <config.h>

#include "settings_internal.h"
#include "transcript.h"

enum k3_status set_thinking(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"off", K3_THINK_OFF},
                                        {"low", K3_THINK_LOW},
                                        {"high", K3_THINK_HIGH},
                                        {"max", K3_THINK_MAX}};
    int t = 0;
    if (TAKE_WORD(v, words, &t, err) != K3_OK)
        return err->status;
    r->run.thinking = (enum k3_thinking)t;
    return K3_OK;
}

enum k3_status set_temperature(struct request *r, const char *v, struct k3_error *err)
{
    double t = 0;
    if (settings_real(v, &t, err) != K3_OK)
        return err->status;
    if (t < 0 || t > 100)
        return settings_bad(err, v, "out of range: 0 (greedy) to 100 are possible");
    r->run.sampling.temperature = (float)t;
    r->run.sampling.greedy = t == 0;
    return K3_OK;
}

enum k3_status set_top_p(struct request *r, const char *v, struct k3_error *err)
{
    double p = 0;
    if (settings_real(v, &p, err) != K3_OK)
        return err->status;
    if (p <= 0 || p > 1)
        return settings_bad(err, v, "out of range: more than 0, at most 1");
    r->run.sampling.greedy = r->run.sampling.temperature == 0;
    r->run.sampling.top_p = (float)p;
    return K3_OK;
}

enum k3_status set_seed(struct request *r, const char *v, struct k3_error *err)
{
    r->run.sampling.greedy = r->run.sampling.temperature == 0;
    return settings_u64(v, 0, INT64_MAX, &r->run.sampling.seed, err);
}

static void turn_sampling_on(struct request *r)
{
    r->run.sampling.greedy = r->run.sampling.temperature == 0;
}

enum k3_status set_top_k(struct request *r, const char *v, struct k3_error *err)
{
    turn_sampling_on(r);
    return settings_u32(v, 0, SETTINGS_CONTEXT_MAX, &r->run.sampling.top_k, err);
}

enum k3_status set_min_p(struct request *r, const char *v, struct k3_error *err)
{
    double p = 0;
    if (settings_real(v, &p, err) != K3_OK)
        return err->status;
    if (p < 0 || p > 1)
        return settings_bad(err, v, "out of range: 0 (off) to 1");
    turn_sampling_on(r);
    r->run.sampling.min_p = (float)p;
    return K3_OK;
}

enum k3_status set_penalty(struct request *r, const char *v, struct k3_error *err)
{
    double p = 0;
    if (settings_real(v, &p, err) != K3_OK)
        return err->status;
    if (p < 0.01 || p > 100)
        return settings_bad(err, v, "out of range: 0.01 to 100; 1 is off");
    turn_sampling_on(r);
    r->run.sampling.repetition_penalty = (float)p;
    return K3_OK;
}

enum k3_status set_max_tokens(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 1, SETTINGS_CONTEXT_MAX, &r->run.max_tokens, err);
}

static enum k3_status one_of_two(struct k3_error *err)
{
    return k3_fail(err, K3_USAGE, "a temporary chat has no file that --session could name; give "
                                  "--session or --temporary");
}

enum k3_status set_temporary(struct request *r, const char *v, struct k3_error *err)
{
    (void)v;
    r->run.temporary = true;
    return r->run.session_name == NULL ? K3_OK : one_of_two(err);
}

enum k3_status set_session(struct request *r, const char *v, struct k3_error *err)
{
    if (r->run.temporary)
        return one_of_two(err);
    if (transcript_check_name(v, err) != K3_OK)
        return err->status;
    return settings_keep(r, v, &r->run.session_name, err);
}

enum k3_status set_states(struct request *r, const char *v, struct k3_error *err)
{
    return settings_u32(v, 0, 1000, &r->run.states_keep, err);
}

enum k3_status set_state_disk(struct request *r, const char *v, struct k3_error *err)
{
    return settings_size(v, 0, &r->run.states_disk, err);
}

enum k3_status set_state_every(struct request *r, const char *v, struct k3_error *err)
{
    double minutes = 0;
    if (settings_real(v, &minutes, err) != K3_OK)
        return err->status;
    if (minutes < 0 || minutes > 100000)
        return settings_bad(err, v, "out of range: minutes, 0 (off) to 100000");
    r->run.save_every = 60 * minutes;
    return K3_OK;
}

enum k3_status set_ask_reread(struct request *r, const char *v, struct k3_error *err)
{
    double seconds = 0;
    if (settings_real(v, &seconds, err) != K3_OK)
        return err->status;
    if (seconds < 0 || seconds > 10000000)
        return settings_bad(err, v, "out of range: seconds, 0 (never ask) to 10000000");
    r->run.ask_reread = seconds;
    return K3_OK;
}

enum k3_status set_sync(struct request *r, const char *v, struct k3_error *err)
{
    static const struct word words[] = {{"messages", RUN_SYNC_MESSAGES},
                                        {"partials", RUN_SYNC_PARTIALS},
                                        {"never", RUN_SYNC_NEVER}};
    int sync = 0;
    if (TAKE_WORD(v, words, &sync, err) != K3_OK)
        return err->status;
    r->run.sync = (enum run_sync)sync;
    return K3_OK;
}
