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

/* `forward` and `backward`: how often a step runs each half. Returns seconds of a step. */
static double add_parts(const lw_exec *e, double forward, double backward, lw_train_part *part,
                        int32_t *n)
{
    double all = 0;
    for (int i = lw_exec_prepare_count(e); i < lw_exec_step_count(e); i++) {
        const lw_step_time t = lw_exec_step_time(e, i);
        char name[48];
        name_of(t.scope, name);
        lw_train_part *p = find(part, n, name);
        p->flops[t.backward] += t.flops * (t.backward ? backward : forward);
        p->seconds[t.backward] += t.seconds * backward; /* a run's, both forward halves in it */
        all += t.seconds * backward;
    }
    return all;
}

static double all_parts(const lw_train_job *j, lw_train_part part[LW_TRAIN_PARTS], int32_t *n)
{
    double leaves = (double)j->leaves.n;
    *n = 0;
    double all = add_parts(j->step, leaves * (j->encoded_first ? 2 : 1), leaves, part, n);
    for (int i = 0; i < LW_TRAIN_SIDES && j->side[i]; i++)
        all += add_parts(j->side[i], (double)j->side_runs[i], (double)j->side_runs[i], part, n);
    return all;
}

int32_t lw_train_parts(const lw_train_job *j, lw_train_part part[LW_TRAIN_PARTS])
{
    int32_t n;
    all_parts(j, part, &n);
    for (int32_t i = 0; i < n; i++)
        if (*part[i].name)
            return n;
    return 0;
}

static void profile_all(const lw_train_job *j, bool on)
{
    lw_exec_profile(j->step, on);
    for (int i = 0; i < LW_TRAIN_SIDES && j->side[i]; i++)
        lw_exec_profile(j->side[i], on);
}

static int time_steps(lw_training *l, int32_t steps)
{
    const lw_train_job *j = &l->job;
    lw_train_result *r = &l->result;
    double updates = 0;
    LW_TRY(lw_loop_forward_backward(l, 0));
    profile_all(j, true);
    double start = lw_now();
    for (int32_t s = 0; s < steps; s++) {
        LW_TRY(lw_loop_forward_backward(l, s));
        updates -= lw_now();
        LW_TRY(lw_loop_update(l, s));
        updates += lw_now();
        lw_observe_progress(l->obs, "profile", s + 1, steps, NULL);
        if (lw_observe_stop(l->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    double each = (lw_now() - start) / steps;
    r->update_seconds = updates / steps;
    r->run_seconds = all_parts(j, r->part, &r->n_parts);
    r->n_parts = lw_train_parts(j, r->part);
    r->fed_seconds = LW_MAX(each - r->run_seconds - r->update_seconds, 0.0);
    profile_all(j, false);
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
    l->state.steps = LW_MAX(l->c->steps, 1);
    return time_steps(l, l->c->profile);
}
