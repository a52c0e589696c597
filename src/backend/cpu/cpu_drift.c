/* SPDX-License-Identifier: Apache-2.0 */
/* Feature statistics and the drift field. */
#include "backend/cpu/cpu_private.h"

#include <string.h>

/* ---- feature statistics ---------------------------------------------------------------------- */

typedef struct stats_arg {
    const lw_kernels *k;
    lw_stats_shape s;
    int64_t per_sample, slots[LW_STATS]; /* slots of each statistic */
} stats_arg;

static stats_arg *stats_record(cpu_lower *c, lw_type x)
{
    stats_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->s = (lw_stats_shape){x.dim[1], x.dim[2], x.dim[3], x.dim[3]};
    a->per_sample = lw_stats_tasks(&a->s);
    int64_t t2 = (a->s.h / 2) * (a->s.w / 2), t4 = (a->s.h / 4) * (a->s.w / 4);
    memcpy(a->slots, (int64_t[LW_STATS]){1, 1, t2, t2, t4, t4}, sizeof a->slots);
    return a;
}

static void stats_task(const lw_task *t)
{
    const stats_arg *a = t->arg;
    int64_t b = t->index / a->per_sample;
    float *o[LW_STATS];
    ptrdiff_t c0, c1;
    lw_stats_range(&a->s, t->index % a->per_sample, &c0, &c1);
    for (int i = 0; i < LW_STATS; i++)
        o[i] = t->out[i] ? (float *)t->out[i] + b * a->slots[i] * a->s.c : NULL;
    a->k->stats.forward(o[0], o[1], o[2], o[3], o[4], o[5],
                        (const float *)t->in[0] + b * a->s.h * a->s.w * a->s.c, &a->s, c0, c1);
}

static void stats_grad_task(const lw_task *t)
{
    const stats_arg *a = t->arg;
    int64_t b = t->index / a->per_sample, n = a->s.h * a->s.w * a->s.c;
    const float *d[LW_STATS];
    ptrdiff_t c0, c1;
    lw_stats_range(&a->s, t->index % a->per_sample, &c0, &c1);
    for (int i = 0; i < LW_STATS; i++)
        d[i] = t->in[i + 1] ? (const float *)t->in[i + 1] + b * a->slots[i] * a->s.c : NULL;
    a->k->stats.backward((float *)t->out[0] + b * n, d[0], d[1], d[2], d[3], d[4], d[5],
                         (const float *)t->in[0] + b * n, &a->s, c0, c1, 0);
}

static int lower_stats(cpu_lower *c, lw_task_fn *fn)
{
    lw_type x = cpu_in(c, 0);
    stats_arg *a = stats_record(c, x);
    if (!a)
        return LW_ENOMEM;
    lw_cpu_phase(c, fn, x.dim[0] * a->per_sample);
    return 0;
}

int lw_cpu_lower_feature_stats(cpu_lower *c)
{
    return lower_stats(c, stats_task);
}
int lw_cpu_lower_feature_stats_grad(cpu_lower *c)
{
    return lower_stats(c, stats_grad_task);
}

/* ---- drift field ----------------------------------------------------------------------------- */

typedef struct drift_arg {
    const lw_kernels *k;
    lw_drift_shape s;
    size_t stats_at, state_at; /* of the statistics and the sums in the workspace, bytes */
} drift_arg;

static void drift_task(const lw_task *t)
{
    const drift_arg *a = t->arg;
    lw_drift_shape s = a->s;
    if (t->in[5]) /* heat */
        for (int i = 0; i < s.k; i++)
            s.tau[i] *= (double)*(const float *)t->in[5];
    lw_drift_io io = {.f = t->out[3],
                      .dx = t->out[1],
                      .stats = (float *)((char *)t->work + a->stats_at),
                      .x = t->in[0],
                      .pos = t->in[1],
                      .unc = t->in[2],
                      .w_u = t->in[3]};
    if (s.door) {
        io.before = t->in[4];
        io.after = (double *)(void *)((char *)t->work + a->state_at);
    }
    lw_drift_runner(&a->k->drift, &s)(&io, &s, t->phase, t->index, t->work, t->scratch);
}

static void report_task(const lw_task *t)
{
    const drift_arg *a = t->arg;
    const float *stats = (const float *)((const char *)t->work + a->stats_at);
    if (t->out[0])
        memcpy(t->out[0], stats + 2, sizeof(float));
    if (t->out[2])
        memcpy(t->out[2], stats, sizeof(float) * (size_t)LW_DRIFT_STATS(a->s.k));
    if (a->s.door && t->out[4])
        memcpy(t->out[4], (const char *)t->work + a->state_at,
               lw_drift_state(&a->s) * sizeof(double));
}

/* Where ranks join; the reference computes all in one task of its last phase. */
static int lower_parts(cpu_lower *c, const lw_drift_shape *s)
{
    static const lw_reduce_op op[] = {LW_REDUCE_MEAN, LW_REDUCE_SUM, LW_REDUCE_MIN};
    lw_drift_part part[LW_DRIFT_PARTS];
    int n = c->k->isa == LW_ISA_REF ? 0 : lw_drift_parts(s, part);
    lw_reduction *r = lw_arena_alloc(c->arena, sizeof *r * LW_DRIFT_PARTS);
    if (!r)
        return LW_ENOMEM;
    for (int i = 0; i < n; i++)
        r[i] = (lw_reduction){.name = part[i].name,
                              .phase = part[i].phase,
                              .offset = part[i].offset,
                              .count = part[i].count,
                              .type = part[i].real64 ? LW_F64 : LW_F32,
                              .op = op[part[i].join]};
    c->out->reduction = r;
    c->out->n_reductions = n;
    return 0;
}

int lw_cpu_lower_drift_field(cpu_lower *c)
{
    const lw_attr_drift *at = c->n->attr;
    drift_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->s = (lw_drift_shape){.g = at->groups,
                            .n = at->n,
                            .np = at->np,
                            .nu = at->nu,
                            .t = at->slots,
                            .c = at->c,
                            .k = at->n_tau,
                            .rows_only = !at->normalize_over_x,
                            .own_scale = at->own_scale,
                            .variant = (lw_drift_variant)at->variant,
                            .num = at->products == LW_DRIFT_BF16                    ? LW_NUM_BF16
                                   : lw_bf16x3_pays(c->k->isa, at->c, at->n, at->n) ? LW_NUM_BF16X3
                                                                                    : LW_NUM_F32};
    for (int i = 0; i < at->n_tau; i++)
        a->s.tau[i] = at->tau[i];
    a->s.door = (lw_drift_door)at->door;
    a->s.whole = at->whole;
    lw_drift_dense(&a->s);
    a->stats_at = LW_ROUND_UP(lw_drift_work(&a->s), 64);
    c->out->work_bytes = a->stats_at + sizeof(float) * (size_t)LW_DRIFT_STATS(at->n_tau);
    a->state_at = LW_ROUND_UP(c->out->work_bytes, 64);
    if (at->door)
        c->out->work_bytes = a->state_at + lw_drift_state(&a->s) * sizeof(double);
    c->out->scratch_bytes = lw_drift_scratch(&a->s);
    for (int i = 0; i < lw_drift_phases(&a->s); i++)
        lw_cpu_phase(c, drift_task, lw_drift_tasks(&a->s, i));
    lw_cpu_phase(c, report_task, 1);
    return lower_parts(c, &a->s);
}
