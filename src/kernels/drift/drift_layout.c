/* SPDX-License-Identifier: Apache-2.0 */
/* Pure functions of the drift field's shape: phases, tasks, memory, what a variant changes, closing
 * formulas. */
#include "kernels/drift/drift_layout.h"

#include <math.h>

static ptrdiff_t round_up(ptrdiff_t a, ptrdiff_t b)
{
    return (a + b - 1) / b * b;
}

static size_t take(size_t *at, size_t bytes)
{
    size_t here = *at;
    *at += (bytes + 63) / 64 * 64;
    return here;
}

void lw_drift_dims_of(lw_drift_dims *d, const lw_drift_shape *s)
{
    d->groups = s->g * s->t;
    d->m = s->n + s->nu + s->np;
    d->pos = round_up(s->n + s->nu, LW_DRIFT_NR);
    d->mp = d->pos + round_up(s->np, LW_DRIFT_NR);
    d->cp = round_up(s->c, 16);
    d->panels = (s->c + LW_DRIFT_NR - 1) / LW_DRIFT_NR;
    d->moments = s->k * (s->k + 1) / 2;
    ptrdiff_t entries = s->n * d->mp;
    d->tile = s->regime == LW_DRIFT_TILE ||
              (s->regime == LW_DRIFT_AUTO &&
               (entries <= 8192 || (entries <= 65536 && d->groups >= 8)));
    double all = (double)entries * (double)d->groups * 4.0;
    d->park = s->keep > 0 || (s->keep == 0 && all <= (double)LW_DRIFT_PARK);
    ptrdiff_t rows = round_up((s->n + LW_DRIFT_BLOCKS - 1) / LW_DRIFT_BLOCKS, 8);
    d->rows = d->tile ? s->n : (rows < LW_DRIFT_RB ? LW_DRIFT_RB : rows);
    d->blocks = (s->n + d->rows - 1) / d->rows;
    d->rb = d->rows < LW_DRIFT_RB ? d->rows : LW_DRIFT_RB;
    d->cb = d->mp < LW_DRIFT_CB ? d->mp : LW_DRIFT_CB;
}

static ptrdiff_t take_floats(ptrdiff_t *at, ptrdiff_t floats)
{
    ptrdiff_t here = *at;
    *at += round_up(floats, 16);
    return here;
}

void lw_drift_pack_of(lw_drift_pack *pack, const lw_drift_shape *s, const lw_drift_dims *d)
{
    ptrdiff_t at = 0;
    pack->x = take_floats(&at, s->n * (d->cp + 16));
    pack->xn = take_floats(&at, s->n);
    pack->tn = take_floats(&at, d->mp);
    pack->w = take_floats(&at, d->mp);
    pack->cols = take_floats(&at, d->mp * s->c);
    pack->rows = take_floats(&at, d->panels * d->mp * LW_DRIFT_NR);
    pack->floats = at;
}

void lw_drift_pad_of(lw_drift_pad *pad, const lw_drift_shape *s, const lw_drift_dims *d)
{
    ptrdiff_t at = 0, tile = d->tile ? 1 : 0;
    lw_drift_pack pack;
    lw_drift_pack_of(&pack, s, d);
    pad->d = take_floats(&at, d->rb * d->cb);
    pad->e = take_floats(&at, d->rb * d->cb);
    pad->a = take_floats(&at, d->rb * d->cb);
    pad->opos = take_floats(&at, s->k * d->rb * d->cp);
    pad->sums = take_floats(&at, 2 * s->k * d->rb);
    pad->mean = take_floats(&at, d->panels * LW_DRIFT_NR);
    pad->pack = take_floats(&at, tile * pack.floats);
    pad->all = take_floats(&at, d->park ? 0 : tile * s->n * d->mp);
    pad->rmin = take_floats(&at, tile * s->n);
    pad->rsum = take_floats(&at, tile * s->k * s->n);
    pad->cmin = take_floats(&at, tile * d->mp);
    pad->csum = take_floats(&at, tile * s->k * d->mp);
    pad->floats = at;
}

void lw_drift_map_of(lw_drift_map *map, const lw_drift_shape *s, const lw_drift_dims *d)
{
    size_t at = 0, groups = (size_t)d->groups, blocks = (size_t)d->blocks, n = (size_t)s->n,
           k = (size_t)s->k;
    size_t mp = (size_t)d->mp, sweep = d->tile ? 0 : 1;
    lw_drift_pack pack;
    lw_drift_pack_of(&pack, s, d);
    map->v = take(&at, k * groups * n * (size_t)d->cp * sizeof(float));
    map->park = take(&at, d->park ? groups * n * mp * sizeof(float) : 0);
    map->s_part = take(&at, groups * blocks * sizeof(double));
    map->m_part = take(&at, groups * blocks * (size_t)d->moments * sizeof(double));
    map->pack = take(&at, sweep * groups * (size_t)pack.floats * sizeof(float));
    map->rmin = take(&at, sweep * groups * n * sizeof(float));
    map->rsum = take(&at, sweep * groups * k * n * sizeof(float));
    map->cmin = take(&at, sweep * groups * (blocks + 1) * mp * sizeof(float));
    map->csum = take(&at, sweep * groups * (blocks + 1) * k * mp * sizeof(float));
    map->stats = take(&at, (size_t)LW_DRIFT_STATS(LW_DRIFT_MAX_TAU) * sizeof(double));
    map->bytes = at;
}

int lw_drift_phases(const lw_drift_shape *s)
{
    lw_drift_dims d;
    lw_drift_dims_of(&d, s);
    return d.tile ? TILE_PHASES : SWEEP_PHASES;
}

int64_t lw_drift_tasks(const lw_drift_shape *s, int phase)
{
    lw_drift_dims d;
    lw_drift_dims_of(&d, s);
    if (d.tile)
        return phase == TILE_SCALE || phase == TILE_LAMBDA ? 1 : d.groups;
    if (phase == SWEEP_SCALE || phase == SWEEP_LAMBDA)
        return 1;
    return phase == SWEEP_PACK || phase == SWEEP_MINIMA || phase == SWEEP_MERGE
               ? d.groups
               : d.groups * d.blocks;
}

size_t lw_drift_work(const lw_drift_shape *s)
{
    lw_drift_dims d;
    lw_drift_map map;
    lw_drift_dims_of(&d, s);
    lw_drift_map_of(&map, s, &d);
    size_t ref = lw_drift_work_f64(s);
    return map.bytes > ref ? map.bytes : ref;
}

size_t lw_drift_scratch(const lw_drift_shape *s)
{
    lw_drift_dims d;
    lw_drift_dims_of(&d, s);
    lw_drift_pad pad;
    lw_drift_pad_of(&pad, s, &d);
    return (size_t)pad.floats * sizeof(float);
}

double lw_drift_flops(const lw_drift_shape *s)
{
    return 2.0 * (double)s->g * (double)s->t * (double)s->n * (double)(s->n + s->nu + s->np) *
           (double)s->c * (s->k + 1);
}

void lw_drift_dense(lw_drift_shape *s)
{
    s->x_slot = s->pos_slot = s->unc_slot = s->f_slot = s->c;
    s->x_row = s->pos_row = s->unc_row = s->f_row = s->t * s->c;
    s->gain = 1.0;
    s->add_dx = 0;
}

void lw_drift_rule_of(lw_drift_rule *r, const lw_drift_shape *s, double scale)
{
    double root = sqrt((double)s->c), unit = fmax(scale, 1e-3), sigma = fmax(scale / root, 1e-3);
    *r = (lw_drift_rule){.unit = unit,
                         .mask = 100.0 * unit,
                         .tau_factor = 1.0,
                         .floor = 1e-3,
                         .inside = 0,
                         .sigma = sigma,
                         .v_unit = sigma,
                         .lambda = 1};
    if (s->variant == LW_DRIFT_PLAIN)
        *r = (lw_drift_rule){
            .unit = 1.0, .mask = 1e6, .tau_factor = 1.0, .sigma = 1.0, .v_unit = 1.0};
    if (s->variant == LW_DRIFT_TAU_TIMES_DIM)
        *r = (lw_drift_rule){.unit = unit,
                             .mask = 1e6 * unit,
                             .tau_factor = root,
                             .inside = 1e-30,
                             .sigma = sigma,
                             .v_unit = 1.0,
                             .lambda = 1};
    if (s->rows_only)
        r->floor = r->inside = 0;
}

void lw_drift_finish(double *stats, const lw_drift_shape *s, double scale, const double *moments)
{
    lw_drift_rule r;
    lw_drift_rule_of(&r, s, scale);
    double count = (double)s->g * (double)s->t * (double)s->n * (double)s->c, loss = 0;
    double *lambda = stats + 3, *mean = stats + 3 + s->k;
    const double *at = moments;
    for (int a = 0; a < s->k; a++) {
        mean[a] = at[0] / count;
        lambda[a] = r.lambda ? sqrt(fmax(mean[a], 1e-8)) : 1.0;
        at += s->k - a;
    }
    at = moments;
    for (int a = 0; a < s->k; a++)
        for (int b = a; b < s->k; b++)
            loss += (a == b ? 1.0 : 2.0) * *at++ / (count * lambda[a] * lambda[b]);
    stats[0] = scale;
    stats[1] = r.sigma;
    stats[2] = loss;
}

double lw_drift_weight(const lw_drift_shape *s, double sum_w_u)
{
    return (double)s->n * (double)s->t *
           ((double)s->g * (double)(s->n + s->np) + (double)s->nu * sum_w_u);
}
