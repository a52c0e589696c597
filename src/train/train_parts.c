/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a step goes, by part of its graph. */
#include "train/train_loop_parts.h"

#include <stdio.h>
#include <string.h>

/* "encoder" of "encoder:layer1.0", but "field s2.loc" of "field:s2.loc": what keys do is told by key. */
static void name_of(const char *scope, char buf[48])
{
    const char *colon = strchr(scope, ':');
    int n = colon ? (int)(colon - scope) : 0;
    bool by_key = lw_str_starts(scope, "field:") || lw_str_starts(scope, "features:");
    if (by_key && colon[1])
        snprintf(buf, 48, "%.*s %s", n, scope, colon + 1);
    else
        snprintf(buf, 48, "%.*s", n, scope);
}

static lw_train_part *find(lw_train_part *part, int32_t *n, const char *name)
{
    for (int32_t i = 0; i < *n; i++)
        if (lw_str_eq(part[i].name, name))
            return &part[i];
    if (*n == LW_TRAIN_PARTS)
        return &part[LW_TRAIN_PARTS - 1];
    lw_train_part *p = &part[(*n)++];
    *p = (lw_train_part){0};
    snprintf(p->name, sizeof p->name, "%s", *n == LW_TRAIN_PARTS ? "all others" : name);
    return p;
}

int32_t lw_train_parts(const lw_exec *e, lw_train_part part[LW_TRAIN_PARTS])
{
    int32_t n = 0;
    bool any = false;
    for (int i = lw_exec_prepare_count(e); i < lw_exec_step_count(e); i++) {
        const lw_step_time t = lw_exec_step_time(e, i);
        char name[48];
        name_of(t.scope, name);
        any = any || *name;
        lw_train_part *p = find(part, &n, name);
        p->flops[t.backward] += t.flops;
        p->seconds[t.backward] += t.seconds;
    }
    return any ? n : 0;
}

static int time_steps(lw_training *l, int32_t steps)
{
    const lw_train_job *j = &l->job;
    lw_train_result *r = &l->result;
    LW_TRY(lw_loop_forward_backward(l, 0));
    lw_exec_profile(j->step, true);
    double start = lw_now(), inside = 0.0;
    for (int32_t s = 0; s < steps; s++) {
        LW_TRY(lw_loop_forward_backward(l, s));
        lw_observe_progress(l->obs, "profile", s + 1, steps, NULL);
        if (lw_observe_stop(l->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    double each = (lw_now() - start) / (double)(steps * j->leaves.n);
    r->n_parts = lw_train_parts(j->step, r->part);
    for (int i = lw_exec_prepare_count(j->step); i < lw_exec_step_count(j->step); i++)
        inside += lw_exec_step_time(j->step, i).seconds;
    r->run_seconds = inside;
    r->fed_seconds = LW_MAX(each - inside, 0.0);
    lw_exec_profile(j->step, false);
    return 0;
}

int lw_loop_profile(lw_training *l)
{
    lw_train_job *j = &l->job;
    if (j->advance)
        return lw_fail(LW_EUSAGE, "--profile: %s has no steps of one kind", j->name);
    if (j->prepare)
        LW_TRY(j->prepare(j->self, j));
    l->sum = (lw_leaf_sum){.dev = j->dev, .leaves = j->leaves.n};
    lw_store_slab(j->store, LW_SLAB_PARAM, &l->sum.floats);
    return time_steps(l, l->c->profile);
}
