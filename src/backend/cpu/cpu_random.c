/* SPDX-License-Identifier: Apache-2.0 */
/* Row-keyed draws, dropout and embeddings. */
#include "backend/cpu/cpu_private.h"

typedef struct random_arg {
    const lw_kernels *k;
    cpu_range r; /* blocks of draws, rows, table columns */
    ptrdiff_t n; /* elements per row */
    uint64_t stream;
    int32_t kind, below;
    float p;
    ptrdiff_t v; /* rows of the table */
    ptrdiff_t b; /* ids */
} random_arg;

static void random_task(const lw_task *t)
{
    const random_arg *a = t->arg;
    lw_rng_key key = lw_rng_key_of(t->tick->seed, a->stream);
    int64_t b = cpu_begin(a->r, t->index), e = cpu_end(a->r, t->index);
    if (a->kind == LW_RANDOM_BELOW)
        a->k->random.below(t->out[0], a->n, t->in[0], key, t->tick->step, (uint32_t)a->below, a->n,
                           b, e);
    else
        (a->kind == LW_RANDOM_NORMAL ? a->k->random.normal : a->k->random.uniform)(
            t->out[0], a->n, t->in[0], key, t->tick->step, a->n, b, e);
}

static void dropout_task(const lw_task *t)
{
    const random_arg *a = t->arg;
    a->k->random.dropout(t->out[0], t->in[0], a->p, t->in[1],
                         lw_rng_key_of(t->tick->seed, a->stream), t->tick->step, a->n,
                         cpu_begin(a->r, t->index), cpu_end(a->r, t->index));
}

static random_arg *random_record(cpu_lower *c, lw_type t)
{
    random_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->n = lw_type_count(t) / t.dim[0];
    a->r = cpu_split(t.dim[0], a->n * 4);
    return a;
}

static void draw_phase(cpu_lower *c, random_arg *a, lw_task_fn *task, int64_t rows)
{
    const ptrdiff_t block = LW_MIN(a->n, (ptrdiff_t)LW_RANDOM_BLOCK);
    a->r = cpu_split(rows * lw_random_blocks(a->n), block * 4);
    lw_cpu_phase(c, task, cpu_range_tasks(a->r));
}

int lw_cpu_lower_random(cpu_lower *c)
{
    const lw_attr_random *at = c->n->attr;
    random_arg *a = random_record(c, at->type);
    if (!a)
        return LW_ENOMEM;
    a->kind = at->kind;
    a->below = at->below;
    a->stream = at->stream;
    draw_phase(c, a, random_task, at->type.dim[0]);
    return 0;
}

int lw_cpu_lower_dropout(cpu_lower *c)
{
    const lw_attr_dropout *at = c->n->attr;
    random_arg *a = random_record(c, cpu_in(c, 0));
    if (!a)
        return LW_ENOMEM;
    a->p = at->p;
    a->stream = at->stream;
    draw_phase(c, a, dropout_task, cpu_in(c, 0).dim[0]);
    return 0;
}

/* ---- embedding ------------------------------------------------------------------------------- */

static void gather_task(const lw_task *t)
{
    const random_arg *a = t->arg;
    a->k->pooling.gather(t->out[0], t->in[0], t->in[1], a->v, a->n, cpu_begin(a->r, t->index),
                         cpu_end(a->r, t->index));
}

static void scatter_task(const lw_task *t)
{
    const random_arg *a = t->arg;
    a->k->pooling.scatter(t->out[0], t->in[0], t->in[1], a->b, a->v, a->n, 0,
                          cpu_begin(a->r, t->index), cpu_end(a->r, t->index));
}

int lw_cpu_lower_embedding(cpu_lower *c)
{
    lw_type y = cpu_out(c, 0);
    random_arg *a = random_record(c, y);
    if (!a)
        return LW_ENOMEM;
    a->v = cpu_in(c, 0).dim[0];
    lw_cpu_phase(c, gather_task, cpu_range_tasks(a->r));
    return 0;
}

int lw_cpu_lower_embedding_grad(cpu_lower *c)
{
    lw_type dy = cpu_in(c, 0), table = cpu_out(c, 0);
    random_arg *a = random_record(c, dy);
    if (!a)
        return LW_ENOMEM;
    a->b = dy.dim[0];
    a->v = table.dim[0];
    a->r = (cpu_range){a->n, 64};
    lw_cpu_phase(c, scatter_task, cpu_range_tasks(a->r));
    return 0;
}
