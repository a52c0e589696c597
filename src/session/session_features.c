/* SPDX-License-Identifier: Apache-2.0 */
/* Features and probabilities of pictures, batch by batch. */
#include "session/session_features.h"

#include <math.h>

enum { BATCH = 64 };

static int compile(lw_score_net *s, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "images", lw_type_of(LW_F32, 4, BATCH, s->side, s->side, 3));
    lw_network_append(s->encoder, g, (lw_network_in){.x = x}, &taps);
    lw_graph_output_add(g, "pooled", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    if (s->outputs)
        lw_graph_output_add(g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    return lw_forward_of(dev, &g, NULL, LW_SLAB_PARAM, s->encoder->name, &s->forward);
}

int lw_score_net_open(lw_device *dev, const char *spec, int32_t side, lw_score_net **out)
{
    LW_CLEANUP(lw_score_net_close) lw_score_net *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    LW_TRY(lw_encoder_open(spec, &s->encoder));
    if (s->encoder->features == 0)
        return lw_fail(LW_EUSAGE, "encoder %s has no features to measure distances in", spec);
    s->side = side;
    s->dim = s->encoder->features;
    s->outputs = s->encoder->classes;
    s->judged = s->encoder->judged;
    LW_TRY(compile(s, dev));
    *out = lw_steal(&s);
    return 0;
}

void lw_score_net_close(lw_score_net **pp)
{
    lw_score_net *s = *pp;
    if (!s)
        return;
    lw_forward_free(&s->forward);
    lw_network_close(&s->encoder);
    lw_free(pp);
}

/* Logits become probabilities. */
static void softmax(float *p, int32_t n)
{
    double top = (double)p[0], sum = 0.0;
    for (int32_t k = 1; k < n; k++)
        top = fmax(top, (double)p[k]);
    for (int32_t k = 0; k < n; k++)
        sum += exp((double)p[k] - top);
    for (int32_t k = 0; k < n; k++)
        p[k] = (float)(exp((double)p[k] - top) / sum);
}

int lw_score_net_run(lw_score_net *s, const float *x, int64_t n, float *features, float *probs)
{
    const lw_feed feed[] = {{.name = "images", .in = x},
                            {.name = "pooled", .out = features},
                            {.name = "logits", .out = probs}};
    LW_ASSERT(!probs || s->outputs > 0, "%s has no head", s->encoder->name);
    LW_TRY(lw_forward_rows(s->forward, "encode", n, feed, probs ? 3 : 2, NULL));
    for (int64_t i = 0; probs && i < n; i++)
        softmax(probs + i * s->outputs, s->outputs);
    return 0;
}
