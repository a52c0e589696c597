/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser step: chunks of fixed size in parallel, partial sums combined in index order. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { TASK_CHUNKS = 8 }; /* of LW_REDUCE_CHUNK floats: 128 KiB of each slab */

static const int64_t task_floats = (int64_t)TASK_CHUNKS * LW_REDUCE_CHUNK;

int64_t lw_cpu_adamw_work(int64_t n)
{
    return lw_reduce_chunks(n);
}

typedef struct optim_job {
    const lw_kernels *k;
    const lw_cpu_adamw_args *a;
    lw_adamw o;
    const lw_optim_range *range;
    int32_t n_range;
} optim_job;

static void norm_task(void *arg, int64_t task, int worker)
{
    const optim_job *j = arg;
    int64_t last = lw_reduce_chunks(j->a->n);
    (void)worker;
    j->k->reduce.chunk_sumsq(j->a->work, j->a->g, j->a->n, task * TASK_CHUNKS,
                             LW_MIN((task + 1) * TASK_CHUNKS, last));
}

static void update_task(void *arg, int64_t task, int worker)
{
    const optim_job *j = arg;
    const lw_cpu_adamw_args *a = j->a;
    (void)worker;
    j->k->optim.adamw(a->p, a->m, a->v, a->ema, a->g, &j->o, j->range, j->n_range,
                      task * task_floats, LW_MIN((task + 1) * task_floats, a->n));
}

static int64_t tasks_of(int64_t n)
{
    return LW_CEIL_DIV(n, task_floats);
}

int lw_cpu_adamw(lw_device *dev, const lw_cpu_adamw_args *a, double *grad_norm)
{
    const lw_optim_range whole = {.begin = 0, .end = a->n, .decay = 1};
    optim_job j = {.k = dev->kernels,
                   .a = a,
                   .range = a->range ? a->range : &whole,
                   .n_range = a->range ? a->n_range : 1};
    double coef, norm;
    lw_pool_run(dev->pool, tasks_of(a->n), norm_task, &j);
    j.k->optim.clip(&coef, &norm, a->work, lw_reduce_chunks(a->n), a->grad_scale, a->max_norm);
    if (!isfinite(norm))
        return lw_fail(LW_ENUMERIC, "the gradient norm of update %lld is not finite",
                       (long long)a->t);
    j.o = (lw_adamw){.lr = a->lr,
                     .beta1 = a->beta1,
                     .beta2 = a->beta2,
                     .eps = a->eps,
                     .weight_decay = a->weight_decay,
                     .bias1 = 1.0 - pow(a->beta1, (double)a->t),
                     .bias2 = 1.0 - pow(a->beta2, (double)a->t),
                     .grad_scale = coef,
                     .ema_decay = a->ema_decay};
    lw_pool_run(dev->pool, tasks_of(a->n), update_task, &j);
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

static void move(lw_device *dev, float *dst, const float *src, int64_t n, bool add)
{
    move_job j = {dev->kernels, dst, src, n, add};
    lw_pool_run(dev->pool, tasks_of(n), move_task, &j);
}

void lw_cpu_add(lw_device *dev, float *dst, const float *src, int64_t n)
{
    move(dev, dst, src, n, true);
}

void lw_cpu_copy(lw_device *dev, float *dst, const float *src, int64_t n)
{
    move(dev, dst, src, n, false);
}
