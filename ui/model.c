/* model.c - the figures that are drawn (see model.h). */
#include <config.h>

#include "model.h"

#include <stdlib.h>

void model_init(struct ui_model *m)
{
    *m = (struct ui_model){.live_rate = -1};
}

void model_free(struct ui_model *m)
{
    free(m->layers);
    m->layers = NULL;
    m->n_layers = 0;
}

bool phase_is_busy(enum session_phase p)
{
    return p == PHASE_READING || p == PHASE_THINKING || p == PHASE_ANSWERING ||
           p == PHASE_CANCELLING;
}

uint64_t model_memory(const struct ui_model *m)
{
    return m->st.rss_anon > 0 ? m->st.rss_anon : m->st.rss;
}

double model_layer_hits(const struct ui_model *m, size_t layer)
{
    if (layer >= m->n_layers || !m->layers[layer].known || !(m->layers[layer].requests > 0))
        return -1;
    return m->layers[layer].resident / m->layers[layer].requests;
}
