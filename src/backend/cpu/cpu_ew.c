/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs and reductions. */
#include "backend/cpu/cpu_private.h"

#include <string.h>

/* ---- elementwise ----------------------------------------------------------------------------- */

typedef struct ew_arg {
    const lw_kernels *k;
    lw_ew_program p;
    lw_ew_shape s;
    cpu_range r;
} ew_arg;

static void ew_task(const lw_task *t)
{
    const ew_arg *a = t->arg;
    float *const out[1] = {t->out[0]};
    const float *in[LW_MAX_IN];
    for (int i = 0; i < a->p.n_in; i++)
        in[i] = t->in[i];
    a->k->ew.run(out, in, &a->p, &a->s, cpu_begin(a->r, t->index), cpu_end(a->r, t->index));
}

/* Results of bf16: tiles of f32 in this worker's scratch, rounded while they are in the first
 * cache. */
enum { NARROW_TILE = 4096 };
static void ew_bf16_task(const lw_task *t)
{
    const ew_arg *a = t->arg;
    const float *in[LW_MAX_IN];
    for (int i = 0; i < a->p.n_in; i++)
        in[i] = t->in[i];
    for (int64_t at = cpu_begin(a->r, t->index), end = cpu_end(a->r, t->index); at < end;
         at += NARROW_TILE) {
        int64_t n = LW_MIN(end - at, NARROW_TILE);
        /* the kernel counts elements from the start of the whole array */
        float *out = (float *)((uintptr_t)t->scratch - (uintptr_t)at * sizeof(float));
        a->k->ew.run(&out, in, &a->p, &a->s, at, at + n);
        a->k->cast.f32_to_bf16((lw_bf16 *)t->out[0] + at, t->scratch, n);
    }
}

int lw_cpu_lower_ew(cpu_lower *c)
{
    const lw_attr_ew *at = c->n->attr;
    ew_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    int64_t b, s, ch;
    lw_ew_view(at->type, &b, &s, &ch);
    a->k = c->k;
    a->s = (lw_ew_shape){b, s, ch};
    a->r = (cpu_range){b * s * ch, 32768};
    a->p.n_in = c->n->n_in;
    a->p.n_instr = at->n_step;
    a->p.n_out = 1;
    a->p.out[0] = (uint8_t)(c->n->n_in + at->n_step - 1);
    memcpy(a->p.mode, at->mode, (size_t)c->n->n_in);
    for (int i = 0; i < at->n_step; i++) {
        const lw_ew_step *e = &at->step[i];
        a->p.instr[i] = (lw_ew_instr){e->op, e->a, e->b, e->c, e->imm};
    }
    LW_TRY(lw_ew_prepare(&a->p));
    bool narrow = at->type.dtype == LW_BF16;
    c->out->scratch_bytes = narrow ? sizeof(float) * NARROW_TILE : 0;
    lw_cpu_phase(c, narrow ? ew_bf16_task : ew_task, cpu_range_tasks(a->r));
    return 0;
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct reduce_arg {
    const lw_kernels *k;
    cpu_range r;
    ptrdiff_t n, rows, c, s;
    double scale;
} reduce_arg;

static void all_task(const lw_task *t)
{
    const reduce_arg *a = t->arg;
    a->k->reduce.chunk_sum(t->work, t->in[0], a->n, cpu_begin(a->r, t->index),
                           cpu_end(a->r, t->index));
}

static void all_combine_task(const lw_task *t)
{
    const reduce_arg *a = t->arg;
    a->k->reduce.combine(t->out[0], t->work, a->r.n, a->scale);
}

static void rows_task(const lw_task *t)
{
    const reduce_arg *a = t->arg;
    a->k->reduce.row_sum(t->out[0], t->in[0], a->c, a->c, a->scale, cpu_begin(a->r, t->index),
                         cpu_end(a->r, t->index));
}

static void columns_task(const lw_task *t)
{
    const reduce_arg *a = t->arg;
    a->k->reduce.col_partial(t->work, t->in[0], a->c, a->rows, a->c, cpu_begin(a->r, t->index),
                             cpu_end(a->r, t->index));
}

static void columns_combine_task(const lw_task *t)
{
    const reduce_arg *a = t->arg;
    a->k->reduce.col_combine(t->out[0], t->work, a->r.n, a->c, a->scale, 0, 0, a->c);
}

static void middle_task(const lw_task *t)
{
    const reduce_arg *a = t->arg;
    a->k->reduce.mid_sum(t->out[0], t->in[0], a->c, a->s, a->c, a->scale, cpu_begin(a->r, t->index),
                         cpu_end(a->r, t->index));
}

static int lower_all(cpu_lower *c, reduce_arg *a)
{
    a->r = (cpu_range){lw_reduce_chunks(a->n), 16};
    c->out->work_bytes = sizeof(double) * (size_t)LW_MAX(a->r.n, 1);
    lw_cpu_phase(c, all_task, cpu_range_tasks(a->r));
    lw_cpu_phase(c, all_combine_task, 1);
    return 0;
}

static int lower_columns(cpu_lower *c, reduce_arg *a)
{
    a->r = (cpu_range){lw_reduce_row_chunks(a->rows), LW_MAX(32768 / (a->c * LW_REDUCE_ROWS), 1)};
    c->out->work_bytes = sizeof(float) * (size_t)(LW_MAX(a->r.n, 1) * a->c);
    lw_cpu_phase(c, columns_task, cpu_range_tasks(a->r));
    lw_cpu_phase(c, columns_combine_task, 1);
    return 0;
}

int lw_cpu_lower_reduce(cpu_lower *c)
{
    const lw_attr_reduce *at = c->n->attr;
    lw_type x = cpu_in(c, 0);
    reduce_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->n = lw_type_count(x);
    a->c = lw_type_last(x);
    a->rows = a->n / a->c;
    a->scale = at->mean ? (double)lw_type_count(cpu_out(c, 0)) / (double)a->n : 1.0;
    if (at->over == LW_OVER_ALL)
        return lower_all(c, a);
    if (at->over == LW_OVER_ROWS)
        return lower_columns(c, a);
    if (at->over == LW_OVER_MIDDLE) {
        a->s = a->rows / x.dim[0];
        a->r = cpu_split(x.dim[0], a->s * a->c);
        lw_cpu_phase(c, middle_task, cpu_range_tasks(a->r));
        return 0;
    }
    if (at->over == LW_OVER_BATCH)
        a->c = a->n / x.dim[0];
    a->r = cpu_split(a->n / a->c, a->c);
    lw_cpu_phase(c, rows_task, cpu_range_tasks(a->r));
    return 0;
}
