/* run_config.c - see run_config.h. */
#include <config.h>

#include "run_config.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    struct kept *next;
    char text[];
};

void run_config_init(struct run_config *cfg)
{
    memset(cfg, 0, sizeof *cfg);
    k3_options_init(&cfg->engine);
    cfg->thinking = K3_THINK_MAX;
    cfg->sampling.greedy = true;
    cfg->sampling.temperature = 1.0f;
    cfg->sampling.top_p = 1.0f;
    cfg->profile_name = "no profile";
    cfg->states_keep = 3;
    cfg->states_disk = 8000000000;
    cfg->save_every = 30 * 60;
    cfg->ask_reread = 60;
}

void run_config_free(struct run_config *cfg)
{
    struct kept *k = cfg->owned;
    while (k != NULL) {
        struct kept *next = k->next;
        free(k);
        k = next;
    }
    cfg->owned = NULL;
}

const char *run_config_keep(struct run_config *cfg, const char *text, struct k3_error *err)
{
    const size_t n = strlen(text) + 1;
    struct kept *k = malloc(sizeof *k + n);
    if (k == NULL) {
        k3_fail_memory(err, "a setting", n);
        return NULL;
    }
    memcpy(k->text, text, n);
    k->next = cfg->owned;
    cfg->owned = k;
    return k->text;
}
