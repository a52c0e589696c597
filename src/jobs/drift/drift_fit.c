/* SPDX-License-Identifier: Apache-2.0 */
/* How a step is cut so that it fits the memory there is. */
#include <string.h>

#include "jobs/drift/drift_run.h"

/* A leaf of a step in parts, where --leaf-size does not say: its group, or as large a part of it as this. It must not
 * follow from the memory there is, for the bits follow from it. */
enum { LEAF = 32 };

void lw_drift_phases_clear(drift_run *r)
{
    for (int d = 0; d < LW_DRIFT_DOORS; d++) {
        lw_exec_free(&r->field[d].exec);
        lw_plan_free(&r->field[d].plan);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

size_t lw_drift_bound_bytes(const drift_run *r)
{
    size_t picture = (size_t)lw_features_floats(&r->keys),
           real = lw_drift_keeps_real(r)
                      ? (size_t)(r->np + r->nu) * picture * lw_dtype_size(lw_drift_real_type(r))
                      : 0,
           group = (size_t)r->n * picture * sizeof(float) + real, all = 0;
    for (int d = 0; d < LW_DRIFT_DOORS; d++)
        all += r->field[d].plan ? (size_t)r->cut.groups * group : 0;
    return all + (size_t)r->g.p.leaves.size * picture * sizeof(float);
}

static size_t phase_bytes(const drift_run *r)
{
    size_t all = 0;
    for (int d = 0; d < LW_DRIFT_DOORS; d++)
        all += r->field[d].plan ? lw_plan_get_info(r->field[d].plan).frame_bytes : 0;
    return all - lw_drift_bound_bytes(r) + (r->cut.mapped ? 0 : lw_drift_kept_bytes(r));
}

static size_t store_bytes(const drift_run *r)
{
    size_t slabs = lw_store_bytes(r->g.p.store);
    return slabs + slabs / LW_SLABS * (size_t)lw_leaf_sum_slabs(r->g.p.leaves.n);
}

size_t lw_drift_bytes(const drift_run *r, const lw_train_job *job)
{
    lw_plan_info leaf = lw_plan_get_info(r->g.p.plan);
    return store_bytes(r) + leaf.frame_bytes + leaf.derived_bytes + job->kept_bytes +
           job->frozen_bytes + (r->chunked ? phase_bytes(r) : 0);
}

/* ---- compiling ------------------------------------------------------------------------------- */

typedef int build_fn(const drift_run *r, lw_graph *g, int32_t n);

static int compile_by(drift_run *r, build_fn *build, int32_t n, lw_plan **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build(r, g, n));
    return lw_train_compile(&r->c.train, r->g.p.dev, g, out, NULL);
}

static int build_whole(const drift_run *r, lw_graph *g, int32_t groups)
{
    drift_run part = *r; /* only read */
    part.groups = groups;
    return lw_drift_build(&part, g);
}

static int build_door(const drift_run *r, lw_graph *g, int32_t door)
{
    drift_run part = *r;
    part.groups = r->cut.groups;
    return lw_drift_build_field(&part, g, (lw_drift_door)door);
}

int lw_drift_compile(drift_run *r, const lw_drift_cut *cut)
{
    static const lw_drift_door door[] = {LW_DRIFT_SCALE, LW_DRIFT_MOMENTS, LW_DRIFT_FIELD};
    lw_drift_phases_clear(r);
    r->cut = *cut;
    if (cut->groups == r->draws.groups)
        return compile_by(r, build_door, LW_DRIFT_WHOLE, &r->field[0].plan);
    for (int d = 0; d < LW_DRIFT_DOORS; d++)
        LW_TRY(compile_by(r, build_door, (int32_t)door[d], &r->field[d].plan));
    return 0;
}

static int open_execs(drift_run *r)
{
    for (int d = 0; d < LW_DRIFT_DOORS && r->field[d].plan; d++)
        LW_TRY(lw_exec_new(r->field[d].plan, LW_SLAB_PARAM, &r->field[d].exec));
    return 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* The next smaller number of groups; false: there is none. */
static bool cut_smaller(const drift_run *r, lw_drift_cut *c)
{
    if (c->groups == 1)
        return false;
    do
        c->groups--;
    while (r->draws.groups % c->groups);
    return true;
}

static double limit_of(const drift_run *r)
{
    return r->c.memory_limit > 0.0 ? r->c.memory_limit * 1073741824.0 : (double)lw_memory_total();
}

static int refuse(const drift_run *r, const char *what, size_t need)
{
    char have[32], want[32];
    return lw_fail(
        LW_EUSAGE,
        "a step needs %s%s, and %s are allowed%s. Lower, the least harmful first, --groups, "
        "--negatives-per-group, --positives-per-group, the number of --feature-keys, that of "
        "--feature-temperatures%s",
        lw_fmt_bytes(want, need), what, lw_fmt_bytes(have, (uint64_t)limit_of(r)),
        r->c.memory_limit > 0 ? " by --memory-limit" : "", r->chunked ? ", or the networks" : "");
}

/* The largest parts that fit; features go to a file only where nothing fits with them in memory. */
static int choose(drift_run *r, const lw_train_job *job)
{
    size_t need = 0;
    for (int mapped = 0; mapped < 2; mapped++) {
        lw_drift_cut cut = {.groups = r->draws.groups};
        if (mapped)
            LW_TRY(lw_drift_kept_room(r));
        do {
            cut.mapped = mapped;
            LW_TRY(lw_drift_compile(r, &cut));
            need = lw_drift_bytes(r, job);
            if ((double)need <= limit_of(r))
                return 0;
        } while (cut_smaller(r, &cut));
    }
    return refuse(r, " with the smallest parts", need);
}

static int cut_leaves(drift_run *r)
{
    lw_train_config c = r->c.train;
    if (c.leaf_size == 0) {
        c.leaf_size = LW_MIN(r->n, LEAF);
        while (r->n % c.leaf_size)
            c.leaf_size--;
    }
    return lw_train_leaves(&c, r->g.p.leaves.whole, 1, "--groups times --negatives-per-group",
                           &r->g.p.leaves);
}

static int fit_parts(drift_run *r, lw_train_job *job)
{
    int32_t chunk = r->c.class_chunk, all = r->draws.groups;
    r->chunked = true;
    if (chunk > 0 && all % chunk)
        return lw_fail(LW_EUSAGE, "--class-chunk %d: does not divide the %d groups of a step",
                       (int)chunk, (int)all);
    LW_TRY(cut_leaves(r));
    lw_plan_free(&r->g.p.plan);
    LW_TRY(compile_by(r, lw_drift_build_leaf, (int32_t)r->g.p.leaves.size, &r->g.p.plan));
    if (chunk > 0) {
        const lw_drift_cut cut = {.groups = chunk};
        LW_TRY(lw_drift_compile(r, &cut));
    }
    if (chunk > 0 && (double)lw_drift_bytes(r, job) > limit_of(r))
        return refuse(r, "", lw_drift_bytes(r, job));
    return chunk > 0 ? 0 : choose(r, job);
}

static void say_parts(const drift_run *r, const lw_train_job *job, size_t whole)
{
    char text[32], limit[32];
    if (whole)
        lw_observe_say(r->g.p.obs,
                       "a whole step needs %s, more than the %s there are: it is made in parts, "
                       "and gradients are "
                       "summed over leaves of %lld pictures",
                       lw_fmt_bytes(text, whole), lw_fmt_bytes(limit, (uint64_t)limit_of(r)),
                       (long long)r->g.p.leaves.size);
    lw_observe_say(r->g.p.obs,
                   "a step in parts: %lld pictures in leaves of %lld, the field of %d of %d groups "
                   "at a time; %s in "
                   "all, of it features %s",
                   (long long)lw_drift_pictures(r), (long long)r->g.p.leaves.size,
                   (int)r->cut.groups, (int)r->draws.groups,
                   lw_fmt_bytes(text, lw_drift_bytes(r, job)),
                   r->cut.mapped ? "in a file" : lw_fmt_bytes(limit, lw_drift_kept_bytes(r)));
}

/* What of the job follows from the cut. */
static int take_parts(drift_run *r, lw_train_job *job, size_t whole)
{
    double flops = lw_plan_get_info(r->g.p.plan).forward_flops * (double)r->g.p.leaves.n;
    const int64_t parts = r->draws.groups / r->cut.groups;
    for (int d = 0; d < LW_DRIFT_DOORS && r->field[d].plan; d++)
        flops += lw_plan_get_info(r->field[d].plan).flops * (double)parts;
    say_parts(r, job, whole);
    job->encoded_first = true;
    job->side_flops = (job->side_flops + flops) / (double)r->g.p.leaves.n;
    job->kept_bytes += phase_bytes(r);
    LW_TRY(open_execs(r));
    for (int d = 0; d < LW_DRIFT_DOORS && r->field[d].plan; d++) {
        job->side[d] = r->field[d].exec;
        job->side_runs[d] = r->draws.groups / r->cut.groups;
    }
    return 0;
}

/* The whole step, compiled, in *need bytes; does it fit? */
static int fit_whole(drift_run *r, const lw_train_job *job, size_t *need)
{
    LW_TRY(compile_by(r, build_whole, (int32_t)(r->g.p.leaves.size / r->n), &r->g.p.plan));
    *need = lw_drift_bytes(r, job);
    if (lw_drift_of_clips(r) || (double)*need <= limit_of(r))
        return 1;
    if (r->g.p.leaves.n == 1)
        return 0;
    return refuse(r, ", leaf by leaf (--class-chunk 1 takes S and lambda over all leaves, in less)",
                  *need);
}

int lw_drift_fit(drift_run *r, lw_train_job *job)
{
    size_t whole = 0;
    int fits = lw_drift_parts_asked(r) ? 0 : fit_whole(r, job, &whole);
    if (fits < 0)
        return fits;
    if (fits == 1) {
        job->side_flops /= (double)r->g.p.leaves.n;
        return lw_picture_run_job(&r->g.p, NULL, job);
    }
    LW_TRY(fit_parts(r, job));
    LW_TRY(lw_picture_run_job(&r->g.p, NULL, job));
    return take_parts(r, job, whole);
}
