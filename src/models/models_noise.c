/* SPDX-License-Identifier: Apache-2.0 */
/* What noise does at a site. */
#include "models/models_noise.h"

#include <string.h>

static lw_val draws(lw_builder *b, lw_val y)
{
    lw_type t = lw_val_type(b->g, y);
    return lw_random(b->g, lw_scope_name(b->g, "noise"), LW_RANDOM_NORMAL, 0, t, b->rows);
}

/* [B] as [B,1, ..] of the rank of y. */
static lw_val per_row(lw_graph *g, lw_val v, lw_val y)
{
    lw_type t = lw_val_type(g, y);
    for (int i = 1; i < t.rank; i++)
        t.dim[i] = 1;
    return lw_reshape(g, v, t);
}

/* Standard deviation over all numbers of a row of y. */
static lw_val deviation(lw_graph *g, lw_val y)
{
    lw_val apart = lw_sub(g, y, per_row(g, lw_mean(g, y, LW_OVER_BATCH), y));
    lw_val square = lw_mean(g, lw_mul(g, apart, apart), LW_OVER_BATCH);
    return per_row(g, lw_ew1(g, LW_EW_sqrt, square), y);
}

/* 1 or 0 per row of y: 0 with probability p. */
static lw_val stays(lw_builder *b, lw_val y, float p)
{
    lw_graph *g = b->g;
    const float one = 1.0f, keep = 1.0f - p;
    lw_type rows = lw_type_of(LW_F32, 1, lw_val_type(g, y).dim[0]);
    lw_val ones = lw_broadcast(g, lw_const(g, lw_type_of(LW_F32, 1, 1), &one), rows);
    lw_val mask = lw_dropout(g, ones, b->rows, p);
    return per_row(g, lw_mul(g, mask, lw_const(g, lw_type_of(LW_F32, 1, 1), &keep)), y);
}

static lw_val disturb(const lw_noise *n, lw_builder *b, lw_val before, lw_val y)
{
    lw_graph *g = b->g;
    const float p = n->p;
    if (n->kind == LW_NOISE_DROPOUT)
        return lw_dropout(g, y, b->rows, p);
    if (n->kind == LW_NOISE_DEPTH)
        return lw_add(g, before, lw_mul(g, lw_sub(g, y, before), stays(b, y, p)));
    lw_val share = lw_const(g, lw_type_of(LW_F32, 1, 1), &p);
    if (n->kind == LW_NOISE_MULTIPLICATIVE)
        return lw_add(g, y, lw_mul(g, y, lw_mul(g, draws(b, y), share)));
    return lw_add(g, y, lw_mul(g, draws(b, y), lw_mul(g, deviation(g, y), share)));
}

/* Part i of n of the last dimension of y, disturbed under a name of its own. */
static lw_val part(const lw_noise *n, lw_builder *b, lw_val y, int32_t i, int32_t of, bool live)
{
    int32_t width = lw_type_last(lw_val_type(b->g, y)) / of;
    lw_val v = lw_slice(b->g, y, -1, i * width, (i + 1) * width);
    const char *up = lw_scope_pushf(b->g, "part%d", (int)i);
    v = live ? disturb(n, b, LW_NOVAL, v) : v;
    lw_scope_set(b->g, up);
    return v;
}

static lw_val output(void *self, lw_builder *b, const char *layer, lw_val before, lw_val y)
{
    const lw_noise *n = self;
    bool live[8] = {false}, whole = false;
    int32_t of = 1, parts = 0;
    for (int32_t i = 0; i < n->sites->n; i++) {
        const lw_site *s = &n->sites->of[i];
        if (!s->live || strcmp(s->layer, layer) != 0)
            continue;
        of = LW_MAX(of, s->of);
        whole = whole || s->of == 1;
        live[s->part & 7] = true;
        parts++;
    }
    if (parts == 0 || n->p == 0.0f)
        return y;
    if (whole || parts == of) /* one draw for all parts: they are independent all the same */
        return disturb(n, b, before, y);
    lw_val all = part(n, b, y, 0, of, live[0]);
    for (int32_t i = 1; i < of; i++)
        all = lw_concat(b->g, all, part(n, b, y, i, of, live[i]), -1);
    return all;
}

lw_layer_hook lw_noise_hook(const lw_noise *noise)
{
    return (lw_layer_hook){(void *)noise, output};
}
