/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser step: chunks of fixed size in parallel, partial sums combined in index order. */
#include "backend/cpu/cpu_private.h"

#include <math.h>
#include <string.h>

enum { TASK_CHUNKS = 8 }; /* of LW_REDUCE_CHUNK floats: 128 KiB of each slab */

static const int64_t task_floats = (int64_t)TASK_CHUNKS * LW_REDUCE_CHUNK;

typedef struct optim_job {
    const cpu *c;
    const lw_update *u;
    lw_adamw adamw;
    lw_sgd sgd;
} optim_job;

static void norm_task(void *arg, int64_t task, int worker)
{
    const optim_job *j = arg;
    int64_t last = lw_reduce_chunks(j->u->n);
    (void)worker;
    j->c->k.reduce.chunk_sumsq(j->c->norm_part, j->u->slab[LW_SLAB_GRAD], j->u->n,
                               task * TASK_CHUNKS, LW_MIN((task + 1) * TASK_CHUNKS, last));
}

static void update_task(void *arg, int64_t task, int worker)
{
    const optim_job *j = arg;
    const lw_update *u = j->u;
    const lw_optim_range whole = {.begin = 0, .end = u->n, .decay = 1};
    int64_t from = task * task_floats, to = LW_MIN(from + task_floats, u->n);
    float *param = u->slab[LW_SLAB_PARAM], *m = u->slab[LW_SLAB_M], *ema = u->slab[LW_SLAB_EMA];
    const float *grad = u->slab[LW_SLAB_GRAD];
    bool copies = ema && u->ema_decay == 0.0; /* ema + 1 (param - ema) would be off by a rounding */
    (void)worker;
    float *average = copies ? NULL : ema;
    if (u->optimizer == LW_OPTIMIZER_SGD)
        j->c->k.optim.sgd(param, m, average, grad, &j->sgd, from, to);
    else
        j->c->k.optim.adamw(param, m, u->slab[LW_SLAB_V], average, grad, &j->adamw, &whole, 1, from,
                            to);
    if (copies)
        memcpy(ema + from, param + from, sizeof(float) * (size_t)(to - from));
}

static int64_t tasks_of(int64_t n)
{
    return LW_CEIL_DIV(n, task_floats);
}

int lw_cpu_update(void *self, const lw_update *u, double *grad_norm)
{
    cpu *c = self;
    optim_job j = {.c = c, .u = u};
    int64_t parts = lw_reduce_chunks(u->n);
    double coef, norm;
    if (parts > c->norm_parts) {
        lw_free(&c->norm_part);
        c->norm_parts = 0;
        c->norm_part = lw_calloc((size_t)parts, sizeof *c->norm_part);
        if (!c->norm_part)
            return LW_ENOMEM;
        c->norm_parts = parts;
    }
    lw_pool_run(c->dev.pool, tasks_of(u->n), norm_task, &j);
    c->k.optim.clip(&coef, &norm, c->norm_part, parts, u->grad_scale, u->max_norm);
    if (!isfinite(norm))
        return lw_fail(LW_ENUMERIC, "the gradient norm of update %lld is not finite",
                       (long long)u->t);
    j.sgd = (lw_sgd){.lr = u->lr,
                     .momentum = u->momentum,
                     .weight_decay = u->weight_decay,
                     .grad_scale = coef,
                     .ema_decay = u->ema_decay};
    j.adamw = (lw_adamw){.lr = u->lr,
                         .beta1 = u->beta1,
                         .beta2 = u->beta2,
                         .eps = u->eps,
                         .weight_decay = u->weight_decay,
                         .bias1 = 1.0 - pow(u->beta1, (double)u->t),
                         .bias2 = 1.0 - pow(u->beta2, (double)u->t),
                         .grad_scale = coef,
                         .ema_decay = u->ema_decay};
    lw_pool_run(c->dev.pool, tasks_of(u->n), update_task, &j);
    *grad_norm = norm;
    return 0;
}

/* ---- accumulation ---------------------------------------------------------------------------- */

typedef struct move_job {
    const lw_kernels *k;
    float *dst;
    const float *src;
    int64_t n;
    bool add;
} move_job;

/* One row of the copy kernels per task; the last one is shorter. */
static void move_task(void *arg, int64_t task, int worker)
{
    const move_job *j = arg;
    int64_t from = task * task_floats, n = LW_MIN(task_floats, j->n - from);
    (void)worker;
    (j->add ? j->k->pooling.add_rows : j->k->pooling.copy_rows)(j->dst + from, n, j->src + from, n,
                                                                n, 0, 1);
}

static void move(cpu *c, float *dst, const float *src, int64_t n, bool add)
{
    move_job j = {&c->k, dst, src, n, add};
    lw_pool_run(c->dev.pool, tasks_of(n), move_task, &j);
}

void lw_cpu_add(void *self, float *dst, const float *src, int64_t n)
{
    move(self, dst, src, n, true);
}

void lw_cpu_copy(void *self, float *dst, const float *src, int64_t n)
{
    move(self, dst, src, n, false);
}
