/* SPDX-License-Identifier: Apache-2.0 */
/* Feature keys as graph values. */
#include "models/models_private.h"

enum { PATCH = 4 };

/* [B,H,W,C] -> [B, (H/4)(W/4), 16 C]: bands of four rows; row i of every patch is a slice of the
 * band. */
static lw_val patches(lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    int32_t b = t.dim[0], h = t.dim[1] / PATCH, w = t.dim[2] / PATCH, c = t.dim[3];
    lw_val bands = lw_reshape(g, x, lw_type_of(LW_F32, 3, b * h, PATCH, w * PATCH * c)),
           out = LW_NOVAL;
    for (int i = 0; i < PATCH; i++) {
        lw_val row = lw_reshape(g, lw_slice(g, bands, 1, i, i + 1),
                                lw_type_of(LW_F32, 3, b * h, w, PATCH * c));
        out = i ? lw_concat(g, out, row, 2) : row;
    }
    return lw_reshape(g, out, lw_type_of(LW_F32, 3, b, h * w, PATCH * PATCH * c));
}

lw_val lw_root_mean_square(lw_graph *g, lw_val x)
{
    lw_val m = lw_mean(g, lw_sqr(g, x), LW_OVER_MIDDLE);
    return lw_ew1(g, LW_EW_sqrt, lw_add_f32(g, m, 1e-6f));
}

/* The statistics of the picture (index 0) and of tap k (index k + 1), made when first asked for. */
typedef struct statistics {
    lw_val out[1 + LW_MAX_TAPS][LW_STATS];
} statistics;

static lw_val statistic(lw_graph *g, statistics *s, int index, lw_val x, int which)
{
    if (!lw_val_ok(s->out[index][0]))
        lw_feature_stats(g, x, s->out[index]);
    return s->out[index][which];
}

static lw_val build_key(lw_graph *g, const lw_feature_key *k, lw_val images, const lw_taps *taps,
                        statistics *s)
{
    lw_val x = k->tap >= 0 ? taps->tap[k->tap].val : images;
    switch ((lw_key_kind)k->kind) {
    case LW_KEY_WHOLE:
        break;
    case LW_KEY_P4:
        return patches(g, x);
    case LW_KEY_NORM_X:
        return lw_root_mean_square(g, x);
    case LW_KEY_STAT:
        return statistic(g, s, k->tap + 1, x, k->stat);
    }
    return x;
}

void lw_features_build(lw_graph *g, const lw_feature_set *set, lw_val images, const lw_taps *taps,
                       lw_val *out)
{
    statistics s = {0};
    for (int32_t i = 0; i < set->n; i++) {
        const lw_feature_key *k = &set->key[i];
        out[i] = LW_NOVAL;
        if (lw_graph_error(g) < 0 || !lw_val_ok(images))
            continue;
        const char *up = lw_scope_part(g, "features");
        lw_scope_push(g, k->name);
        lw_val v = build_key(g, k, images, taps, &s);
        int32_t b = lw_val_type(g, images).dim[0];
        out[i] = lw_reshape(g, v, lw_type_of(LW_F32, 3, b, k->slots, k->c));
        lw_scope_set(g, up);
    }
}

int64_t lw_features_floats(const lw_feature_set *s)
{
    int64_t n = 0;
    for (int32_t i = 0; i < s->n; i++)
        n += (int64_t)s->key[i].slots * s->key[i].c;
    return n;
}
