/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field on GPUs: the workspace, and the launches of its passes. */
#include "backend/cuda/cuda_private.h"

enum {
    AT_ONCE = LW_CUDA_DRIFT_AT_ONCE,
    PARTS = 32,             /* of the samples, most, in sums over them, */
    PART_SAMPLES = 128,     /* of so many at least */
    MOMENTS = 256,          /* blocks of drift_moments for a temperature, most, */
    MOMENT_ELEMENTS = 1024, /* for so many elements of V each */
    OUTPUTS = 528,          /* blocks of drift_output, most: four on a multiprocessor */
    FEW = 512, /* sums of distances that each block of drift_sums adds up itself, most */
    DIRECT = 8 /* up to so many channels nothing is rounded, as on the CPU */
};
/* Bytes, if one temperature's are no more. */
static const int64_t room_for_affinities = INT64_C(1) << 30;

/* Byte offsets in the workspace. */
typedef struct drift_places {
    size_t points, turned, affinity, unit, norm, d, row_least, row, column_least, column,
        part_least, part_sum, side, v, part, rule;
} drift_places;

typedef struct drift_step {
    cuda_step step;
    lw_cuda_drift a;
    drift_places at;
} drift_step;

static int64_t tiles(int64_t n)
{
    return LW_CEIL_DIV(n, LW_CUDA_DRIFT_TILE);
}

static void launch_field(cuda *d, lw_cuda_drift *a)
{
    int64_t groups = (int64_t)a->g * a->t, most = a->k_count;
    int64_t rows = LW_CEIL_DIV(a->rows, LW_CUDA_DRIFT_ROWS);
    for (a->k_first = 0; a->k_first < a->k; a->k_first += a->k_count) {
        a->k_count = (int32_t)LW_MIN(most, a->k - a->k_first);
        lw_cuda_launch(d, LW_CUDA_drift_affinities, rows, 1, a);
        lw_cuda_launch(d, LW_CUDA_drift_gather, 2 * tiles(a->n) * tiles(a->c), groups * a->k_count,
                       a);
    }
}

static void launch_all(cuda *d, lw_cuda_drift *a)
{
    int64_t groups = (int64_t)a->g * a->t;
    int64_t rows = LW_CEIL_DIV(a->rows, LW_CUDA_DRIFT_ROWS);
    int64_t columns = groups * LW_CEIL_DIV(a->width, LW_CUDA_DRIFT_COLUMNS) * a->parts;
    lw_cuda_launch(d, LW_CUDA_drift_points, LW_CEIL_DIV(a->width, 32), groups, a);
    lw_cuda_launch(d, a->low ? LW_CUDA_drift_distances_bf16 : LW_CUDA_drift_distances,
                   tiles(a->n) * tiles(a->width), groups, a);
    if (!a->s_in_sums)
        lw_cuda_launch(d, LW_CUDA_drift_scale, a->scales, 1, a);
    lw_cuda_launch(d, LW_CUDA_drift_sums, rows + (a->rows_only ? 0 : columns), 1, a);
    if (a->parts > 1 && !a->rows_only)
        lw_cuda_launch(d, LW_CUDA_drift_merge,
                       lw_cuda_blocks(LW_CUDA_drift_merge, groups * a->width), a->k, a);
    launch_field(d, a);
    lw_cuda_launch(d, LW_CUDA_drift_moments, a->moments, a->k, a);
    lw_cuda_launch(d, LW_CUDA_drift_output, a->dx || a->f ? LW_MIN(a->rows, OUTPUTS) : 1, 1, a);
}

static void place_all(lw_cuda_drift *a, char *work, const drift_places *at)
{
    a->points = (uint16_t *)(void *)(work + at->points);
    a->turned = (uint16_t *)(void *)(work + at->turned);
    a->affinity = (uint16_t *)(void *)(work + at->affinity);
    a->unit = (float *)(void *)(work + at->unit);
    a->norm = (float *)(void *)(work + at->norm);
    a->d = (float *)(void *)(work + at->d);
    a->row_least = (float *)(void *)(work + at->row_least);
    a->row = (float *)(void *)(work + at->row);
    a->column_least = (float *)(void *)(work + at->column_least);
    a->column = (float *)(void *)(work + at->column);
    a->part_least = (float *)(void *)(work + at->part_least);
    a->part_sum = (double *)(void *)(work + at->part_sum);
    a->side = (float *)(void *)(work + at->side);
    a->v = (float *)(void *)(work + at->v);
    a->part = (double *)(void *)(work + at->part);
    a->rule = (lw_cuda_drift_rule *)(void *)(work + at->rule);
}

static void drift_task(const lw_task *t)
{
    const drift_step *s = t->arg;
    lw_cuda_drift a = s->a;
    a.x = t->in[0];
    a.pos = t->in[1];
    a.unc = t->in[2];
    a.w_u = t->in[3];
    a.loss = t->out[0];
    a.dx = t->out[1];
    a.report = t->out[2];
    a.f = t->out[3];
    place_all(&a, t->work, &s->at);
    launch_all(s->step.d, &a);
}

static size_t take(size_t *end, int64_t n, size_t size)
{
    size_t mine = *end;
    *end += LW_ROUND_UP((size_t)n * size, 256);
    return mine;
}

/* Bytes, all in all, for each pair of a sample and a target: 4 + 4 for each temperature at hand. */
static void lay_out(drift_places *at, lw_cuda_drift *a, size_t *end)
{
    int64_t groups = (int64_t)a->g * a->t, k = a->k, targets = groups * a->width;
    int64_t pairs = a->rows * a->width, partial = a->parts > 1 ? a->parts * targets : 0;
    a->points_plane = targets * a->depth;
    a->turned_plane = targets * a->c;
    a->affinity_plane = a->k_count * pairs;
    at->points = take(end, 2 * a->points_plane, sizeof(uint16_t));
    at->turned = take(end, 2 * a->turned_plane, sizeof(uint16_t));
    at->affinity = take(end, 2 * a->affinity_plane, sizeof(uint16_t));
    at->unit = take(end, targets, sizeof(float));
    at->norm = take(end, targets, sizeof(float));
    at->d = take(end, pairs, sizeof(float));
    at->row_least = take(end, a->rows, sizeof(float));
    at->row = take(end, k * a->rows, sizeof(float));
    at->column_least = take(end, targets, sizeof(float));
    at->column = take(end, k * targets, sizeof(float));
    at->part_least = take(end, partial, sizeof(float));
    at->part_sum = take(end, k * partial, sizeof(double));
    at->side = take(end, 2 * a->k_count * a->rows, sizeof(float));
    at->v = take(end, 2 * k * a->rows * a->c, sizeof(float));
    at->part = take(end, LW_MAX(groups * tiles(a->n) * tiles(a->width), k * k * a->moments),
                    sizeof(double));
    at->rule = take(end, a->scales, sizeof(lw_cuda_drift_rule));
}

static lw_cuda_drift shape_of(const lw_attr_drift *at)
{
    lw_cuda_drift a = {.rows = (int64_t)at->groups * at->slots * at->n,
                       .g = at->groups,
                       .n = at->n,
                       .np = at->np,
                       .nu = at->nu,
                       .t = at->slots,
                       .c = at->c,
                       .k = at->n_tau,
                       .scales = at->own_scale ? at->slots : 1,
                       .rows_only = !at->normalize_over_x,
                       .variant = at->variant};
    a.pos_at = LW_ROUND_UP(a.n + a.nu, LW_CUDA_DRIFT_DEPTH);
    a.width = a.pos_at + LW_ROUND_UP(a.np, LW_CUDA_DRIFT_DEPTH);
    a.depth = LW_ROUND_UP(a.c, LW_CUDA_DRIFT_DEPTH);
    a.low = at->products == LW_DRIFT_BF16 && a.c > DIRECT;
    a.s_in_sums = a.scales == 1 && (int64_t)a.g * a.t * tiles(a.n) * tiles(a.width) <= FEW;
    a.parts = LW_MIN(LW_CEIL_DIV(a.n, PART_SAMPLES), PARTS);
    a.moments = (int32_t)LW_MIN(LW_CEIL_DIV(a.rows * a.c, MOMENT_ELEMENTS), MOMENTS);
    int64_t each = a.rows * a.width * 4;
    a.k_count = (int32_t)LW_MAX(LW_MIN(room_for_affinities / each, LW_MIN(a.k, AT_ONCE)), 1);
    for (int i = 0; i < at->n_tau; i++)
        a.tau[i] = at->tau[i];
    return a;
}

int lw_cuda_lower_drift_field(cuda_lower *c)
{
    const lw_attr_drift *at = c->n->attr;
    LW_TRY(lw_cuda_f32(c, -1));
    if ((int64_t)at->groups * at->slots * at->n_tau > 65535)
        return lw_cuda_lacks(c, " of more than 65,535 groups and temperatures");
    if (at->door)
        return lw_cuda_lacks(c, " of some of the groups");
    if (c->n->n_in > 5)
        return lw_cuda_lacks(c, " with temperatures that change");
    drift_step *s = lw_cuda_arg(c, sizeof *s, drift_task);
    if (!s)
        return LW_ENOMEM;
    s->a = shape_of(at);
    lay_out(&s->at, &s->a, &c->out->work_bytes);
    return 0;
}
