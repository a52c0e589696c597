/* SPDX-License-Identifier: Apache-2.0 */
/* Pure functions of the drift field's shape: phases, tasks, memory, what a variant changes, closing
 * formulas. */
#include "kernels/drift/drift_layout.h"

#include <math.h>

#include "kernels/gemm/gemm.h"

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

static ptrdiff_t clamp(double x, ptrdiff_t lo, ptrdiff_t hi)
{
    return x < (double)lo ? lo : x > (double)hi ? hi : (ptrdiff_t)x;
}

/* Groups of a task: about 4 MFLOP and no more operands than half of a usual second cache. */
static ptrdiff_t groups_of_task(const lw_drift_shape *s, const lw_drift_dims *d)
{
    lw_drift_pack pack;
    lw_drift_pack_of(&pack, s, d);
    double flops = lw_drift_flops(s) / (double)d->groups;
    ptrdiff_t by_work = clamp(4e6 / flops, 1, LW_DRIFT_BATCH),
              by_size = clamp(131072.0 / (double)pack.floats, 1, LW_DRIFT_BATCH),
              by_count = clamp((double)d->whole / 32.0, 1, LW_DRIFT_BATCH);
    ptrdiff_t least = by_work < by_size ? by_work : by_size;
    return least < by_count ? least : by_count;
}

static ptrdiff_t segments_of(ptrdiff_t targets)
{
    return (targets + LW_DRIFT_ROWS - 1) / LW_DRIFT_ROWS;
}

ptrdiff_t lw_drift_segment(const lw_drift_shape *s, const lw_drift_dims *d, ptrdiff_t j)
{
    if (j < s->n)
        return j / LW_DRIFT_ROWS;
    if (j < d->neg)
        return segments_of(s->n) + (j - s->n) / LW_DRIFT_ROWS;
    return segments_of(s->n) + segments_of(s->nu) + (j - d->neg) / LW_DRIFT_ROWS;
}

/* Tiles that the strips before one meet: a strip meets its own samples and those behind it. */
static double tiles_before(const lw_drift_dims *d, ptrdiff_t strip)
{
    return (double)strip * (double)d->m -
           (double)LW_DRIFT_LANES / 2 * (double)strip * (double)(strip - 1);
}

ptrdiff_t lw_drift_near_at(const lw_drift_dims *d, ptrdiff_t strip)
{
    return (ptrdiff_t)((double)d->near * (tiles_before(d, strip) / tiles_before(d, d->strips)));
}

/* Bytes of all operands and of a few numbers of each temperature. */
static double operands_of(const lw_drift_shape *s, const lw_drift_dims *d)
{
    return (double)d->whole * (double)(s->n + d->m) * (double)(s->c + s->k) * sizeof(float);
}

/* Whether affinities have a floor that most pairs of a large group lie at. */
static int has_floor(const lw_drift_shape *s)
{
    return s->variant == LW_DRIFT_OFFICIAL && !s->rows_only;
}

/* Near pairs of a group that are noted where distances are not all kept: as many as take twice the room
 * of the operands, and no more than LW_DRIFT_PARK. A note is a distance and a place. */
static ptrdiff_t near_room(const lw_drift_shape *s, const lw_drift_dims *d)
{
    double whole = (double)d->whole, room = 2.0 * operands_of(s, d),
           table = (double)d->strips * (double)(d->segments + 1) * sizeof(uint32_t);
    room = (room < (double)LW_DRIFT_PARK ? room : (double)LW_DRIFT_PARK) / whole + 65536.0;
    if (!has_floor(s) || table > room / 2)
        return 0;
    return (ptrdiff_t)((room - table) / (sizeof(float) + sizeof(uint16_t)));
}

/* All distances are kept when they fit LW_DRIFT_PARK, those of few channels, which cost no more than
 * to read them, when they fit LW_DRIFT_CACHED; else (SWEEP) as many as the operands take, where near
 * pairs do not serve instead. */
static ptrdiff_t strips_kept(const lw_drift_shape *s, const lw_drift_dims *d)
{
    double strip = (double)d->whole * (double)d->m * LW_DRIFT_LANES * sizeof(float),
           operands = operands_of(s, d),
           all = (double)d->whole * (double)d->m * (double)d->lp * sizeof(float);
    if (s->keep)
        return s->keep < 0 ? 0 : s->keep == 2 && !d->tile ? 1 : d->strips;
    int cheap = d->tile && s->c <= LW_DRIFT_CHEAP;
    if (all <= (double)(cheap ? LW_DRIFT_CACHED : LW_DRIFT_PARK))
        return d->strips;
    if (d->tile || near_room(s, d) > 0)
        return 0;
    double budget = operands < (double)LW_DRIFT_PARK ? operands : (double)LW_DRIFT_PARK;
    return clamp(budget / strip, 0, d->strips);
}

void lw_drift_dims_of(lw_drift_dims *d, const lw_drift_shape *s)
{
    lw_drift_pack pack;
    d->groups = s->g * s->t;
    d->whole = (s->whole ? s->whole : s->g) * s->t;
    d->neg = s->n + s->nu;
    d->m = d->neg + s->np;
    d->lp = round_up(s->n, 16);
    d->strips = (s->n + LW_DRIFT_LANES - 1) / LW_DRIFT_LANES;
    d->lanes = d->lp < LW_DRIFT_LANES ? d->lp : LW_DRIFT_LANES;
    d->cp = round_up(s->c, 16);
    d->pitch = (d->cp / 16 | 1) * 16;
    d->low = s->num == LW_NUM_BF16 && s->c > LW_DRIFT_DIRECT;
    d->moments = s->k * (s->k + 1) / 2;
    d->segments = segments_of(s->n) + segments_of(s->nu) + segments_of(s->np);
    d->jb = d->m < LW_DRIFT_TARGETS ? d->m : LW_DRIFT_TARGETS;
    ptrdiff_t entries = d->lp * d->m;
    d->tile = s->regime == LW_DRIFT_TILE ||
              (s->regime == LW_DRIFT_AUTO &&
               (entries <= 8192 || (entries <= 65536 && d->whole >= 8)));
    d->split = s->num == LW_NUM_BF16X3 && s->c > LW_DRIFT_DIRECT && !d->tile;
    d->words = d->low ? round_up(d->cp / 2, 16) : d->split ? lw_num_words(s->num, s->c) : 0;
    d->word_pitch = (d->words / 16 | 1) * 16;
    d->kept = strips_kept(s, d);
    d->ahead = !d->tile && d->kept < d->strips;
    d->near = d->ahead ? near_room(s, d) : 0;
    ptrdiff_t most = d->ahead ? LW_DRIFT_AHEAD_BLOCKS : LW_DRIFT_BLOCKS,
              rows = round_up((s->n + most - 1) / most, LW_DRIFT_LANES);
    d->rows = d->tile ? s->n : rows;
    d->blocks = (s->n + d->rows - 1) / d->rows;
    d->batch = d->tile ? groups_of_task(s, d) : 1;
    lw_drift_pack_of(&pack, s, d);
    d->packs_kept = !d->tile ||
                    (double)d->whole * (double)pack.floats * 4.0 <= (double)LW_DRIFT_PACKS;
    d->late = !d->packs_kept;
}

static ptrdiff_t take_floats(ptrdiff_t *at, ptrdiff_t floats)
{
    ptrdiff_t here = *at;
    *at += round_up(floats, 16);
    return here;
}

/* Samples transposed, as they are, rounded or split: whole panels. */
static ptrdiff_t lane_floats(const lw_drift_shape *s, const lw_drift_dims *d, ptrdiff_t lanes)
{
    return round_up(lanes, LW_DRIFT_NR) * (d->words ? d->words : s->c);
}

void lw_drift_pack_of(lw_drift_pack *pack, const lw_drift_shape *s, const lw_drift_dims *d)
{
    ptrdiff_t at = 0;
    pack->t = take_floats(&at, d->m * d->pitch);
    pack->tn = take_floats(&at, d->m);
    pack->xn = take_floats(&at, d->lp);
    pack->w = take_floats(&at, d->m);
    pack->base = take_floats(&at, 3 * d->cp);
    pack->excess = take_floats(&at, d->tile ? 0 : 3 * d->cp);
    pack->mean = take_floats(&at, d->cp);
    pack->tb = take_floats(&at, d->words ? (d->m + LW_DRIFT_ROWS) * d->word_pitch : 0);
    pack->xt = take_floats(&at, d->tile ? lane_floats(s, d, d->lp) : 0);
    pack->floats = at;
}

void lw_drift_pad_of(lw_drift_pad *pad, const lw_drift_shape *s, const lw_drift_dims *d)
{
    ptrdiff_t at = 0, tile = d->tile ? 1 : 0, lanes = d->lanes;
    lw_drift_pack pack;
    lw_drift_pack_of(&pack, s, d);
    pad->d = take_floats(&at, d->jb * lanes);
    pad->e = take_floats(&at, d->jb * lanes);
    pad->a = take_floats(&at, d->jb * lanes);
    pad->out = take_floats(&at, (s->k > 1 ? s->k : 2) * lanes * d->cp);
    pad->sums = take_floats(&at, 2 * s->k * lanes);
    pad->bits = take_floats(&at, 2 * d->jb);
    pad->reach = take_floats(&at, 2 * round_up(d->jb, 64));
    pad->lanes = take_floats(&at, tile ? 0 : lane_floats(s, d, lanes));
    pad->pack = take_floats(&at, (d->packs_kept ? 0 : d->batch) * pack.floats);
    pad->all = take_floats(&at, d->kept ? 0 : tile * d->m * d->lp);
    pad->range = take_floats(&at, 16);
    pad->u = take_floats(&at, tile * s->k * d->m);
    pad->v = take_floats(&at, tile * s->k * d->lp);
    pad->rsum = take_floats(&at, tile * s->k * d->lp);
    pad->csum = take_floats(&at, tile * s->k * d->m);
    pad->floats = at;
}

void lw_drift_map_of(lw_drift_map *map, const lw_drift_shape *s, const lw_drift_dims *d)
{
    size_t at = 0, groups = (size_t)d->groups, blocks = (size_t)d->blocks, k = (size_t)s->k,
           real = sizeof(float);
    size_t m = (size_t)d->m, lp = (size_t)d->lp, sweep = d->tile ? 0 : 1;
    size_t lanes = (size_t)(d->kept == d->strips ? d->lp : d->kept * LW_DRIFT_LANES);
    lw_drift_pack pack;
    lw_drift_pack_of(&pack, s, d);
    size_t ahead = (size_t)d->ahead, parts = sweep * groups * (ahead ? 3 * blocks : blocks) * k * m,
           vectors = groups * k * (size_t)(s->n * d->cp);
    map->v = map->parts = take(&at, (vectors > parts ? vectors : parts) * real);
    map->kept = take(&at, groups * m * lanes * real);
    map->s_part = take(&at, groups * blocks * sizeof(double));
    map->m_part = take(&at, groups * blocks * (size_t)d->moments * sizeof(double));
    map->rmin = take(&at, groups * lp * real);
    map->cmin = take(&at, groups * (blocks + sweep) * m * real);
    map->pack = take(&at, (size_t)d->packs_kept * groups * (size_t)pack.floats * real);
    map->centre = take(&at, (size_t)d->late * groups * 4 * (size_t)d->cp * real);
    map->norms = take(&at, (size_t)(d->late && !d->kept) * groups * m * real);
    map->range = take(&at, sweep * groups * 16 * real);
    map->u = take(&at, sweep * groups * k * m * real);
    map->v_i = take(&at, sweep * groups * k * lp * real);
    map->rsum = take(&at, sweep * groups * k * lp * real);
    map->rmom = take(&at, ahead * groups * k * 3 * lp * real);
    map->csum = take(&at, sweep * groups * k * m * real);
    map->probes = take(&at, ahead * groups * LW_DRIFT_PROBES * 2 * sizeof(double));
    map->guess = take(&at, ahead * sizeof(double));
    size_t near = d->near > 0, notes = (size_t)d->near;
    map->near_mean = take(&at, near * groups * 2 * (size_t)(d->cp + 16) * real);
    map->near_sums = take(&at, near * groups * LW_DRIFT_PROBES * LW_DRIFT_NEAR_KINDS * k *
                                   LW_DRIFT_LANES * real);
    map->near_rule = take(&at, near * groups * LW_DRIFT_NEAR_RULE * real);
    map->near_root = take(&at, near * groups * (m + lp) * real);
    map->near_d = take(&at, groups * notes * real);
    map->near_at = take(&at, groups * notes * sizeof(uint16_t));
    map->near_from =
        take(&at, near * groups * (size_t)(d->strips * (d->segments + 1)) * sizeof(uint32_t));
    map->near_bad = take(&at, near * groups * (size_t)(d->segments + d->strips));
    map->v_unit = take(&at, sizeof(double));
    map->scale = take(&at, s->own_scale ? (size_t)s->t * sizeof(double) : 0);
    map->stats = take(&at, (size_t)LW_DRIFT_STATS(LW_DRIFT_MAX_TAU) * sizeof(double));
    map->bytes = at;
}

int lw_drift_phases(const lw_drift_shape *s)
{
    lw_drift_dims d;
    lw_drift_dims_of(&d, s);
    if (s->door == LW_DRIFT_SCALE)
        return (d.tile ? TILE_SCALE : SWEEP_SCALE) + 1;
    if (s->door == LW_DRIFT_MOMENTS)
        return (d.tile ? TILE_LAMBDA : SWEEP_LAMBDA) + 1;
    return d.tile ? TILE_PHASES : SWEEP_PHASES;
}

int64_t lw_drift_tasks(const lw_drift_shape *s, int phase)
{
    lw_drift_dims d;
    lw_drift_dims_of(&d, s);
    if (d.tile)
        return phase == TILE_SCALE || phase == TILE_LAMBDA ? 1 : (d.groups + d.batch - 1) / d.batch;
    if (phase == SWEEP_SCALE || phase == SWEEP_GUESS || phase == SWEEP_LAMBDA)
        return 1;
    if (phase == SWEEP_PROBE)
        return d.ahead || d.split ? d.groups * LW_DRIFT_PROBES : 1;
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
    size_t ref = lw_drift_work_ref(s);
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

int lw_drift_parts(const lw_drift_shape *s, lw_drift_part part[LW_DRIFT_PARTS])
{
    lw_drift_dims d;
    lw_drift_map map;
    lw_drift_dims_of(&d, s);
    lw_drift_map_of(&map, s, &d);
    if (s->door) /* what ranks would join are the sums behind the doors */
        return 0;
    int64_t tasks = d.groups * d.blocks, rows = d.groups * (d.blocks + 1) * d.m;
    int n = 0;
    part[n++] = (lw_drift_part){"scale",      d.tile ? TILE_DIST : SWEEP_DIST, map.s_part, tasks, 1,
                                LW_DRIFT_MEAN};
    if (!d.tile)
        part[n++] = (lw_drift_part){"minima", SWEEP_DIST, map.cmin, rows, 0, LW_DRIFT_MIN};
    if (!d.tile && !d.ahead) /* sums taken ahead hold for a guess of one's own */
        part[n++] = (lw_drift_part){"columns",          SWEEP_SUM, map.parts,
                                    tasks * d.m * s->k, 0,         LW_DRIFT_SUM};
    part[n++] = (lw_drift_part){"moments",  d.tile ? TILE_FIELD : SWEEP_FIELD,
                                map.m_part, tasks * d.moments,
                                1,          LW_DRIFT_MEAN};
    return n;
}

double lw_drift_flops(const lw_drift_shape *s)
{
    return 2.0 * (double)s->g * (double)s->t * (double)s->n * (double)(s->n + s->nu + s->np) *
           (double)s->c * (s->door == LW_DRIFT_SCALE ? 1 : s->k + 1);
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
    double count = lw_drift_rows(s) * (double)s->c, loss = 0;
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

static ptrdiff_t whole_of(const lw_drift_shape *s)
{
    return s->whole ? s->whole : s->g;
}

double lw_drift_rows(const lw_drift_shape *s)
{
    return (double)whole_of(s) * (double)s->t * (double)s->n;
}

/* Sum of the weights of all pairs of so many slots. */
static double weight_of(const lw_drift_shape *s, const double *state, ptrdiff_t slots)
{
    return (double)s->n * (double)slots *
           ((double)whole_of(s) * (double)(s->n + s->np) + (double)s->nu * state[LW_DRIFT_AT_W]);
}

double lw_drift_scale_of(const lw_drift_shape *s, const double *state)
{
    return state[LW_DRIFT_AT_D] / weight_of(s, state, s->t);
}

double lw_drift_slot_scale_of(const lw_drift_shape *s, const double *state, double sum)
{
    return sum / weight_of(s, state, 1);
}
