/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a table by the run's step, and the reverse step of a diffusion process. */
#include "backend/cpu/cpu_private.h"

#include <string.h>

typedef struct at_step_arg {
    int64_t rows;
    size_t bytes; /* of a row */
} at_step_arg;

static void at_step_task(const lw_task *t)
{
    const at_step_arg *a = t->arg;
    int64_t row = LW_MIN((int64_t)t->tick->step, a->rows - 1);
    memcpy(t->out[0], (const char *)t->in[0] + (size_t)row * a->bytes, a->bytes);
}

int lw_cpu_lower_at_step(cpu_lower *c)
{
    at_step_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    *a = (at_step_arg){cpu_in(c, 0).dim[0], lw_type_bytes(cpu_out(c, 0))};
    lw_cpu_phase(c, at_step_task, 1);
    return 0;
}

typedef struct reverse_arg {
    cpu_range r;
    lw_attr_reverse how;
} reverse_arg;

/* inputs: x, y, numbers, noise? */
static void reverse_task(const lw_task *t)
{
    const reverse_arg *a = t->arg;
    int64_t i = cpu_begin(a->r, t->index), n = cpu_end(a->r, t->index) - i;
    const float *x = t->in[0], *y = t->in[1], *noise = t->in[3];
    lw_reverse numbers;
    memcpy(&numbers, t->in[2], sizeof numbers);
    lw_reverse_step((float *)t->out[0] + i, x + i, y + i, noise ? noise + i : NULL, &numbers,
                    (lw_prediction)a->how.prediction, a->how.keep_eps, n);
}

int lw_cpu_lower_reverse_step(cpu_lower *c)
{
    reverse_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->r = cpu_split(lw_type_count(cpu_out(c, 0)), 16);
    a->how = *(const lw_attr_reverse *)c->n->attr;
    lw_cpu_phase(c, reverse_task, cpu_range_tasks(a->r));
    return 0;
}
