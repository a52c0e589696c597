/* SPDX-License-Identifier: Apache-2.0 */
/* Features and probabilities of pictures, batch by batch. */
#include "session/session_features.h"

#include <math.h>
#include <string.h>

enum { BATCH = 64 };

static int compile(lw_score_net *s, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_encoder_build(s->encoder, g,
                     lw_input(g, "images", lw_type_of(LW_F32, 4, BATCH, s->side, s->side, 3)),
                     &taps);
    lw_graph_output_add(g, "pooled", lw_tap_find(&taps, "pooled"), LW_NOVAL);
    if (s->outputs)
        lw_graph_output_add(g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    LW_TRY(lw_compile(g, dev, NULL, &s->plan));
    return lw_exec_new(s->plan, LW_SLAB_PARAM, &s->exec);
}

/* config.json of a judge says how many of its outputs are real classes. */
static int read_judged(lw_score_net *s)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *config = NULL;
    int64_t judged = 0;
    if (s->encoder->kind != LW_ENCODER_OWN)
        return 0;
    LW_TRY(lw_json_load(lw_path_join(&path, s->encoder->source, "config.json"), &config));
    LW_TRY(lw_json_opt_i64(config, lw_str_c(&path), "leeway_judged_classes", &judged));
    if (judged < 0 || judged > s->outputs)
        return lw_fail(LW_EFORMAT, "%s: %lld judged classes of %d outputs", lw_str_c(&path),
                       (long long)judged, s->outputs);
    s->judged = (int32_t)judged;
    return 0;
}

int lw_score_net_open(lw_device *dev, const char *spec, int32_t side, lw_score_net **out)
{
    LW_CLEANUP(lw_score_net_close) lw_score_net *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    LW_TRY(lw_encoder_open(spec, &s->encoder));
    if (s->encoder->kind == LW_ENCODER_NONE)
        return lw_fail(LW_EUSAGE, "encoder none has no features to measure distances in");
    s->side = side;
    s->dim = s->encoder->feature_dim;
    s->outputs = s->encoder->classes;
    LW_TRY(read_judged(s));
    LW_TRY(compile(s, dev));
    *out = lw_steal(&s);
    return 0;
}

void lw_score_net_close(lw_score_net **pp)
{
    lw_score_net *s = *pp;
    if (!s)
        return;
    lw_exec_free(&s->exec);
    lw_plan_free(&s->plan);
    lw_encoder_close(&s->encoder);
    lw_free(pp);
}

static void softmax(const float *logits, int32_t n, float *p)
{
    double top = (double)logits[0], sum = 0.0;
    for (int32_t k = 1; k < n; k++)
        top = fmax(top, (double)logits[k]);
    for (int32_t k = 0; k < n; k++)
        sum += exp((double)logits[k] - top);
    for (int32_t k = 0; k < n; k++)
        p[k] = (float)(exp((double)logits[k] - top) / sum);
}

int lw_score_net_run(lw_score_net *s, const float *x, int64_t n, float *features, float *probs)
{
    int64_t floats = (int64_t)s->side * s->side * 3;
    float *in = lw_exec_data(s->exec, "images");
    const float *pooled = lw_exec_data(s->exec, "pooled"),
                *logits = lw_exec_data(s->exec, "logits");
    LW_ASSERT(!probs || s->outputs > 0, "%s has no head", s->encoder->name);
    for (int64_t at = 0; at < n; at += BATCH) {
        int64_t m = LW_MIN(n - at, BATCH);
        memcpy(in, x + at * floats, (size_t)(m * floats) * sizeof *in);
        LW_TRY(lw_exec_run(s->exec, NULL));
        if (features)
            memcpy(features + at * s->dim, pooled, (size_t)(m * s->dim) * sizeof *features);
        for (int64_t i = 0; probs && i < m; i++)
            softmax(logits + i * s->outputs, s->outputs, probs + (at + i) * s->outputs);
    }
    return 0;
}
