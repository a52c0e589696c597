/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a training: feed, replay, sum, update. */
#include "train/train_loop_parts.h"

#include <math.h>

#include "train/train_schedule.h"

int lw_loop_forward_backward(lw_training *l, int64_t step)
{
    const lw_train_job *j = &l->job;
    const lw_tick tick = {(uint64_t)l->c->seed, (uint32_t)step};
    lw_leaf_sum_begin(&l->sum);
    if (j->place)
        j->place(j->self, step, l->state.steps);
    for (int64_t i = 0; i < j->leaves.n; i++) {
        LW_TRY(j->feed(j->self, step * j->leaves.n + i));
        LW_TRY(lw_exec_run(j->step, &tick));
        const lw_leaf_node leaf = {.index = i,
                                   .loss = (double)*(const float *)lw_exec_read(j->step, "loss"),
                                   .grad = lw_store_slab(j->store, LW_SLAB_GRAD, NULL)};
        LW_TRY(lw_leaf_sum_add(&l->sum, leaf));
    }
    l->last.loss = l->sum.total.loss / (double)j->leaves.n;
    return 0;
}

/* Names the first bad gradient of all leaves. */
static int not_finite(lw_training *l, int64_t step, const char *what)
{
    lw_store *s = l->job.store;
    float *g = lw_store_slab(s, LW_SLAB_GRAD, NULL);
    if (l->sum.total.grad != g)
        l->job.dev->copy(l->job.dev->self, g, l->sum.total.grad, l->sum.floats);
    return lw_train_not_finite(l->job.name, s, step + 1, what);
}

int lw_train_not_finite(const char *name, const lw_store *store, int64_t step, const char *what)
{
    const char *bad = lw_store_first_bad(store, LW_SLAB_GRAD);
    return lw_fail(
        LW_ENUMERIC,
        "%s: step %lld: %s not finite (first bad gradient: %s); the last checkpoint is untouched. "
        "Lower --learning-rate or check the data",
        name, (long long)step, what, bad ? bad : "none");
}

int lw_loop_update(lw_training *l, int64_t step)
{
    const lw_train_config *c = l->c;
    lw_store *s = l->job.store;
    lw_device *dev = l->job.dev;
    l->last.lr = lw_schedule_lr(c, l->state.steps, step);
    lw_update u = {
        .optimizer = c->optimizer,
        .lr = l->last.lr,
        .momentum = c->momentum,
        .beta1 = c->adam_beta1,
        .beta2 = c->adam_beta2,
        .eps = c->adam_eps,
        .weight_decay = c->weight_decay,
        .t = step + 1,
        .grad_scale = 1.0 / (double)l->job.leaves.n,
        .max_norm = c->grad_clip,
        .ema_decay = lw_schedule_ema(c->ema_decay, step),
    };
    u.n = lw_store_slabs(s, u.slab);
    u.slab[LW_SLAB_GRAD] = l->sum.total.grad;
    int rc = dev->update(dev->self, &u, &l->last.grad_norm);
    if (rc == LW_ENUMERIC)
        return not_finite(l, step, "the gradient norm is");
    LW_TRY(rc);
    lw_store_touch(s, LW_SLAB_PARAM);
    lw_store_touch(s, LW_SLAB_EMA);
    return 0;
}

static int make_step(lw_training *l, int64_t step)
{
    if (l->job.advance)
        return l->job.advance(l->job.self, step, l->state.steps, &l->last);
    LW_TRY(lw_loop_forward_backward(l, step));
    if (!isfinite(l->last.loss))
        return not_finite(l, step, "the loss is");
    return lw_loop_update(l, step);
}

int lw_loop_step(lw_training *l, int64_t step)
{
    double wall = lw_now(), cpu = lw_process_seconds();
    int rc = make_step(l, step);
    l->state.work.wall += lw_now() - wall;
    l->state.work.cpu += lw_process_seconds() - cpu;
    return rc;
}
