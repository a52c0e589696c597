/* SPDX-License-Identifier: Apache-2.0 */
/* Signed sums of table rows: a task makes some rows. Gradient: a task owns some columns of the
 * table and goes through all ids in order, so that no sum depends on the number of threads. */
#include "backend/cpu/cpu_private.h"

typedef struct bag_arg {
    const lw_kernels *k;
    lw_bag_shape s;
    cpu_range r; /* rows of y, or columns of the table */
    ptrdiff_t rows;
} bag_arg;

static void bag_task(const lw_task *t)
{
    const bag_arg *a = t->arg;
    a->k->pooling.bag(t->out[0], t->in[2], t->in[0], t->in[1], &a->s, cpu_begin(a->r, t->index),
                      cpu_end(a->r, t->index));
}

static void bag_grad_task(const lw_task *t)
{
    const bag_arg *a = t->arg;
    a->k->pooling.bag_grad(t->out[0], t->in[0], t->in[1], a->rows, &a->s, cpu_begin(a->r, t->index),
                           cpu_end(a->r, t->index));
}

static bag_arg *bag_record(cpu_lower *c, lw_type table, ptrdiff_t rows)
{
    const lw_attr_bag *at = c->n->attr;
    bag_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->rows = rows;
    a->s = (lw_bag_shape){
        .v = table.dim[0], .c = table.dim[1], .k = at->k, .period = at->period, .minus = at->minus};
    return a;
}

int lw_cpu_lower_embedding_bag(cpu_lower *c)
{
    bag_arg *a = bag_record(c, cpu_in(c, 0), cpu_out(c, 0).dim[0]);
    if (!a)
        return LW_ENOMEM;
    a->r = cpu_split(a->rows, a->s.k * a->s.c);
    lw_cpu_phase(c, bag_task, cpu_range_tasks(a->r));
    return 0;
}

int lw_cpu_lower_embedding_bag_grad(cpu_lower *c)
{
    enum { COLUMNS = 32 };
    bag_arg *a = bag_record(c, cpu_out(c, 0), cpu_in(c, 0).dim[0]);
    if (!a)
        return LW_ENOMEM;
    a->r = (cpu_range){a->s.c, COLUMNS};
    lw_cpu_phase(c, bag_grad_task, cpu_range_tasks(a->r));
    return 0;
}
