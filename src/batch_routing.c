/* batch_routing.c - the experts that each position chose, for --dump-routing. */
#include <config.h>

#include "batch.h"

#include <stdlib.h>
#include <string.h>

static void on_routing(void *ud, uint32_t layer, uint32_t position, const int32_t *experts,
                       uint32_t top_k)
{
    struct batch *b = ud;
    struct routing *r = &b->routing;
    if (layer >= r->n_layers || position >= r->positions || top_k != r->top_k)
        return;
    const size_t bytes = (size_t)r->positions * top_k * sizeof **r->layers;
    if (r->layers[layer] == NULL && (r->layers[layer] = calloc(1, bytes)) == NULL) {
        k3_fail_memory(&b->error, "the routing", bytes);
        return;
    }
    memcpy(r->layers[layer] + (size_t)position * top_k, experts, top_k * sizeof *experts);
    if (position + 1 > r->filled)
        r->filled = position + 1;
}

enum k3_status batch_routing_open(struct batch *b, uint32_t positions, struct k3_error *err)
{
    const struct k3_plan *plan = k3_get_plan(b->rt.engine);
    struct routing *r = &b->routing;
    r->positions = positions < plan->context ? positions : plan->context;
    r->top_k = plan->top_k;
    r->n_layers = plan->layers;
    r->layers = calloc((size_t)plan->layers + 1, sizeof *r->layers);
    if (r->layers == NULL)
        return k3_fail_memory(err, "the routing", plan->layers);
    k3_set_routing(b->rt.engine, on_routing, b);
    return K3_OK;
}

void batch_routing_free(struct routing *r)
{
    for (uint32_t i = 0; r->layers != NULL && i < r->n_layers; i++)
        free(r->layers[i]);
    free(r->layers);
}
