/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S and lambda of all groups of a step in bounded memory.
 *
 * A leaf, a fixed number of whole groups, is what gradients are taken of and summed in the tree of train_leaves.h. Two
 * passes without gradients come before the leaves of a step, a chunk of groups at a time: generator and encoder, and
 * the sums behind S of every key; the same again, and the sums behind lambda. Then each leaf has its part of the field of
 * all groups. Sums go by group number and a picture's features do not depend on what else is in its batch, so the chunk
 * changes memory and time, and no bit.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/drift/drift_run.h"

static const char *const pass_names[] = {"S", "lambda"};

static int open_pass(drift_run *r, int p, int32_t chunk)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    drift_run part = *r; /* only read */
    part.groups = chunk;
    part.door = p == 0 ? LW_DRIFT_SCALE : LW_DRIFT_MOMENTS;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_drift_build(&part, g));
    return lw_train_compile(&r->c.train, r->g.p.dev, g, &r->pass_plan[p], &r->pass[p]);
}

void lw_drift_chunks_close(drift_run *r)
{
    for (int p = 0; p < 2; p++) {
        lw_exec_free(&r->pass[p]);
        lw_plan_free(&r->pass_plan[p]);
    }
}

/* Bytes of both passes; those for packed weights are the larger one's, as both prepare alike. */
static size_t pass_bytes(const drift_run *r)
{
    lw_plan_info a = lw_plan_get_info(r->pass_plan[0]), b = lw_plan_get_info(r->pass_plan[1]);
    return a.frame_bytes + b.frame_bytes + LW_MAX(a.derived_bytes, b.derived_bytes);
}

static int open_chunk(drift_run *r, int32_t chunk)
{
    lw_drift_chunks_close(r);
    LW_TRY(open_pass(r, 0, chunk));
    LW_TRY(open_pass(r, 1, chunk));
    r->chunk = chunk;
    return 0;
}

static size_t bytes_without(const drift_run *r, const lw_train_job *job)
{
    lw_plan_info leaf = lw_plan_get_info(r->g.p.plan);
    size_t slabs = lw_store_bytes(job->store);
    return slabs + slabs / LW_SLABS * (size_t)lw_leaf_sum_slabs(r->g.p.leaves.n) +
           leaf.frame_bytes + leaf.derived_bytes + job->kept_bytes + job->frozen_bytes;
}

/* The largest chunk within the limit. */
static int choose_chunk(drift_run *r, const lw_train_job *job)
{
    double limit = r->c.memory_limit * 1073741824.0, need = 0;
    char have[32];
    for (int32_t chunk = r->draws.groups; chunk >= 1; chunk--) {
        if (r->draws.groups % chunk)
            continue;
        LW_TRY(open_chunk(r, chunk));
        need = (double)(bytes_without(r, job) + pass_bytes(r));
        if (need <= limit)
            return 0;
    }
    return lw_fail(LW_EUSAGE,
                   "--memory-limit %g: a step takes %s with one group at a time. Lower, the least "
                   "harmful first, --negatives-per-group, --positives-per-group, the number of "
                   "--feature-keys, or the networks",
                   r->c.memory_limit, lw_fmt_bytes(have, (uint64_t)need));
}

/* Memory, arithmetic and time of each phase of a step. */
static void say_phases(const drift_run *r)
{
    double rate = r->c.train.dry_run ? 0.6 * lw_session_flops(r->g.p.dev) : 0.0;
    int64_t leaves = r->g.p.leaves.n;
    for (int p = 0; p < 3; p++) {
        lw_plan_info i = lw_plan_get_info(p < 2 ? r->pass_plan[p] : r->g.p.plan);
        int64_t times = p < 2 ? r->draws.groups / r->chunk : leaves;
        double flops = i.flops * (double)times;
        char bytes[32], time[48] = "";
        if (rate > 0)
            snprintf(time, sizeof time, ", about %.3g s", flops / rate);
        lw_observe_say(r->g.p.obs, "%s of %d groups, %d at a time: %s, %.4g GFLOP%s",
                       p < 2 ? pass_names[p] : "gradients", (int)r->draws.groups,
                       p < 2 ? (int)r->chunk : (int)r->groups, lw_fmt_bytes(bytes, i.frame_bytes),
                       flops * 1e-9, time);
    }
}

int lw_drift_chunks_open(drift_run *r, lw_train_job *job)
{
    int32_t chunk = r->c.class_chunk, all = r->draws.groups;
    if (chunk > 0 && all % chunk)
        return lw_fail(LW_EUSAGE, "--class-chunk %d: does not divide the %d groups of a step",
                       (int)chunk, (int)all);
    LW_TRY(chunk > 0 ? open_chunk(r, chunk) : choose_chunk(r, job));
    double flops = 0;
    for (int p = 0; p < 2; p++)
        flops += lw_plan_get_info(r->pass_plan[p]).flops / r->chunk;
    job->side_flops = 3.0 * job->side_flops + flops * r->groups;
    job->kept_bytes += pass_bytes(r);
    say_phases(r);
    return 0;
}

void lw_drift_chunks_give(const drift_run *r, lw_exec *e)
{
    char name[40];
    for (int k = 0; k < r->keys.n; k++) {
        snprintf(name, sizeof name, "state/%s", r->keys.key[k].name);
        memcpy(lw_exec_write(e, name), r->state[k], sizeof r->state[k]);
    }
}

static void take(drift_run *r, lw_exec *e)
{
    char name[40];
    for (int k = 0; k < r->keys.n; k++) {
        snprintf(name, sizeof name, "sums/%s", r->keys.key[k].name);
        memcpy(r->state[k], lw_exec_read(e, name), sizeof r->state[k]);
    }
}

int lw_drift_chunks_meet(drift_run *r, int64_t step)
{
    const lw_tick tick = {(uint64_t)r->c.train.seed, (uint32_t)step};
    memset(r->state, 0, sizeof r->state);
    for (int p = 0; p < 2; p++)
        for (int32_t first = 0; first < r->draws.groups; first += r->chunk) {
            LW_TRY(lw_drift_feed(r, r->pass[p], step, first, r->chunk));
            lw_drift_chunks_give(r, r->pass[p]);
            LW_TRY(lw_exec_run(r->pass[p], &tick));
            take(r, r->pass[p]);
        }
    return 0;
}
