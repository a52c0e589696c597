/* SPDX-License-Identifier: Apache-2.0 */
/* Distances of all pairs of rows. */
#include "backend/cpu/cpu_private.h"

typedef struct pairs_arg {
    const lw_kernels *k;
    lw_pairs_shape x, y; /* against rows of y, of x */
    cpu_range rx, ry;    /* rows of x, of y */
} pairs_arg;

static pairs_arg *pairs_record(cpu_lower *c, lw_type x, lw_type y)
{
    pairs_arg *a = lw_cpu_arg(c, sizeof *a);
    lw_distance distance = (lw_distance)((const lw_attr_pairs *)c->n->attr)->distance;
    if (!a)
        return NULL;
    a->k = c->k;
    a->x = (lw_pairs_shape){y.dim[0], x.dim[1], distance};
    a->y = (lw_pairs_shape){x.dim[0], x.dim[1], distance};
    a->rx = (cpu_range){x.dim[0], lw_pairs_rows(&a->x)};
    a->ry = (cpu_range){y.dim[0], lw_pairs_rows(&a->y)};
    return a;
}

static void pairs_task(const lw_task *t)
{
    const pairs_arg *a = t->arg;
    a->k->pairs.forward(t->out[0], t->in[0], t->in[1], &a->x, cpu_begin(a->rx, t->index),
                        cpu_end(a->rx, t->index));
}

/* Tasks of dx, then those of dy. */
static void pairs_grad_task(const lw_task *t)
{
    const pairs_arg *a = t->arg;
    int64_t i = t->index, first = cpu_range_tasks(a->rx);
    if (i < first && t->out[0])
        a->k->pairs.backward(t->out[0], t->in[0], t->in[1], t->in[2], t->in[3], &a->x, a->x.n, 1,
                             cpu_begin(a->rx, i), cpu_end(a->rx, i));
    if (i >= first && t->out[1])
        a->k->pairs.backward(t->out[1], t->in[0], t->in[1], t->in[3], t->in[2], &a->y, 1, a->x.n,
                             cpu_begin(a->ry, i - first), cpu_end(a->ry, i - first));
}

int lw_cpu_lower_pair_distance(cpu_lower *c)
{
    pairs_arg *a = pairs_record(c, cpu_in(c, 0), cpu_in(c, 1));
    if (!a)
        return LW_ENOMEM;
    lw_cpu_phase(c, pairs_task, cpu_range_tasks(a->rx));
    return 0;
}

int lw_cpu_lower_pair_distance_grad(cpu_lower *c)
{
    pairs_arg *a = pairs_record(c, cpu_in(c, 2), cpu_in(c, 3));
    if (!a)
        return LW_ENOMEM;
    lw_cpu_phase(c, pairs_grad_task, cpu_range_tasks(a->rx) + cpu_range_tasks(a->ry));
    return 0;
}
