/* SPDX-License-Identifier: Apache-2.0 */
/* What a step will take: a part of each phase is run and timed. */
#include <string.h>

#include "jobs/drift/drift_run.h"

/* Work that is only estimated, not run: longer than a user waits for a prediction. */
#define LW_DRIFT_PATIENCE 60.0

/* Seconds of a run that finds other weights than the run before, and of one that finds the same. */
typedef struct run_time {
    double first, again;
} run_time;

/* Noise for features, for arithmetic on zeros could be another. */
static void fill(drift_run *r, lw_exec *e, const char *what)
{
    const lw_rng_key key = lw_rng_key_of(1, lw_hash_name("drift.predict"));
    char name[LW_DRIFT_NAME];
    for (int k = 0; k < r->keys.n; k++) {
        lw_type t = lw_exec_type(e, lw_drift_name(name, what, &r->keys.key[k]));
        if (t.dtype != LW_F32)
            continue;
        float *x = lw_exec_write(e, name); /* NULL: an output */
        if (!x)
            continue;
        int64_t n = lw_type_count(t);
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)lw_rng_uniform(key, (uint32_t)k, (uint64_t)i, 0);
    }
}

static int once(drift_run *r, lw_exec *e, bool forward, double *seconds)
{
    const lw_tick tick = {(uint64_t)r->c.train.seed, 0};
    double start = lw_now();
    LW_TRY((forward ? lw_exec_run_forward : lw_exec_run)(e, &tick));
    *seconds = lw_now() - start;
    return 0;
}

static int time_exec(drift_run *r, lw_exec *e, bool forward, run_time *out)
{
    double cold;
    fill(r, e, "gen");
    fill(r, e, "pos");
    fill(r, e, "unc");
    lw_drift_feed_heat(r, e);
    LW_TRY(once(r, e, forward, &cold));
    lw_store_touch(r->g.p.store, LW_SLAB_PARAM);
    LW_TRY(once(r, e, forward, &out->first));
    return once(r, e, forward, &out->again);
}

/* An update that changes nothing, and what summing `leaves` gradients adds: an update moves 36 bytes a weight, a sum
 * 12, a copy 8. */
static int time_update(drift_run *r, double *out)
{
    lw_device *dev = r->g.p.dev;
    double leaves = (double)r->g.p.leaves.n, norm;
    lw_update u = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .t = 1, .grad_scale = 1.0, .ema_decay = 1.0};
    u.n = lw_store_slabs(r->g.p.store, u.slab);
    double start = lw_now();
    LW_TRY(dev->update(dev->self, &u, &norm));
    start = lw_now();
    LW_TRY(dev->update(dev->self, &u, &norm));
    *out = (lw_now() - start) * (1.0 + (leaves - 1.0) / 3.0 + (leaves > 1.0 ? leaves / 9.0 : 0.0));
    return 0;
}

/* ---- phases ---------------------------------------------------------------------------------- */

enum { CHOSEN, LEAST };

static lw_train_phase *phase(lw_train_result *out, const char *name)
{
    for (int32_t i = 0; i < out->n_phases; i++)
        if (lw_str_eq(out->phase[i].name, name))
            return &out->phase[i];
    LW_ASSERT(out->n_phases < LW_TRAIN_PHASES, "no room for phase %s", name);
    lw_train_phase *p = &out->phase[out->n_phases++];
    *p = (lw_train_phase){.name = name};
    return p;
}

static void add_plan(lw_train_phase *p, int which, const lw_plan *plan, double times)
{
    lw_plan_info i = lw_plan_get_info(plan);
    p->bytes[which] += i.frame_bytes + i.derived_bytes;
    p->flops[which] += i.flops * times;
}

static void put_phases(drift_run *r, lw_train_result *out, int which)
{
    lw_plan_info leaf = lw_plan_get_info(r->g.p.plan);
    const int64_t parts = r->draws.groups / r->cut.groups;
    const double groups = (double)parts;
    phase(out, "encode")->flops[which] = leaf.forward_flops * (double)r->g.p.leaves.n;
    lw_train_phase *field = phase(out, "field");
    for (int d = 0; d < LW_DRIFT_DOORS && r->field[d].plan; d++)
        add_plan(field, which, r->field[d].plan, groups);
    field->bytes[which] += (r->cut.mapped ? 0 : lw_drift_kept_bytes(r)) - lw_drift_bound_bytes(r);
    add_plan(phase(out, "gradients"), which, r->g.p.plan, (double)r->g.p.leaves.n);
}

static double all_flops(const lw_train_result *out, int which)
{
    double all = 0;
    for (int32_t i = 0; i < out->n_phases; i++)
        all += out->phase[i].flops[which];
    return all;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int time_chunked(drift_run *r, lw_train_result *out)
{
    run_time t;
    const int64_t parts = r->draws.groups / r->cut.groups;
    const double leaves = (double)r->g.p.leaves.n, groups = (double)parts;
    LW_TRY(time_exec(r, r->g.p.exec, true, &t));
    phase(out, "encode")->seconds[CHOSEN] = t.first + (leaves - 1.0) * t.again;
    phase(out, "gradients")->seconds[CHOSEN] -= t.first - t.again; /* weights are packed once */
    for (int d = 0; d < LW_DRIFT_DOORS && r->field[d].plan; d++) {
        LW_TRY(time_exec(r, r->field[d].exec, false, &t));
        phase(out, "field")->seconds[CHOSEN] += t.again * groups;
    }
    return 0;
}

/* By what the FLOP of each phase took, or by what those of a plain product take. */
static void time_by_flops(lw_train_result *out, int which, double rate)
{
    for (int32_t i = 0; i < out->n_phases; i++) {
        lw_train_phase *p = &out->phase[i];
        double own = p->seconds[CHOSEN] > 0 ? p->flops[CHOSEN] / p->seconds[CHOSEN] : rate;
        if (p->seconds[which] <= 0.0 && own > 0.0)
            p->seconds[which] = p->flops[which] / own;
    }
}

static int time_phases(drift_run *r, lw_train_result *out)
{
    run_time t;
    LW_TRY(time_exec(r, r->g.p.exec, false, &t));
    phase(out, r->chunked ? "gradients" : "step")->seconds[CHOSEN] =
        t.first + (double)(r->g.p.leaves.n - 1) * t.again;
    if (r->chunked)
        LW_TRY(time_chunked(r, out));
    double update;
    LW_TRY(time_update(r, &update));
    phase(out, "update")->seconds[CHOSEN] = phase(out, "update")->seconds[LEAST] = update;
    return 0;
}

/* FLOP of one run of each plan, which timing runs three times. */
static double work_of_timing(const drift_run *r)
{
    double all = lw_plan_get_info(r->g.p.plan).flops;
    for (int d = 0; r->chunked && d < LW_DRIFT_DOORS && r->field[d].plan; d++)
        all += lw_plan_get_info(r->field[d].plan).flops;
    return 3.0 * (all + (r->chunked ? lw_plan_get_info(r->g.p.plan).forward_flops : 0.0));
}

/* ---- what the step's size is made of --------------------------------------------------------- */

/* Distances of a step: G N (Np + N + U) for each key, slot and temperature. */
static void put_factors(const drift_run *r, lw_train_result *out)
{
    double g = r->draws.groups, n = r->n, np = r->np, nu = r->nu, k = r->c.n_temperatures,
           slots = 0, floats = 0, all = all_flops(out, CHOSEN), field = 0;
    for (int i = 0; i < r->keys.n; i++) {
        slots += r->keys.key[i].slots;
        floats += (double)r->keys.key[i].slots * r->keys.key[i].c;
    }
    field = 2.0 * g * n * (n + np + nu) * floats * (k + 1.0); /* of one call for all groups */
    double real = phase(out, "real features")->flops[CHOSEN], own = all - real - field;
    const lw_train_factor f[] = {
        {"groups", g, 0.5},
        {"negatives per group", n,
         (own / 2 + field * (1.0 - 0.5 * (0.5 * n + np + nu) / (n + np + nu))) / all},
        {"positives per group", np,
         (field * 0.5 * np / (n + np + nu) + real * 0.5 * np / (np + nu)) / all},
        {"unconditional per group", nu,
         (field * 0.5 * nu / (n + np + nu) + real * 0.5 * nu / LW_MAX(np + nu, 1.0)) / all},
        {"slots of all keys", slots, field * 0.5 / all},
        {"temperatures", k, field * 0.5 * k / (k + 1.0) / all},
    };
    out->distances = g * n * (np + n + nu) * slots * k;
    out->n_factors = (int32_t)LW_COUNT(f);
    memcpy(out->factor, f, sizeof f);
}

int lw_drift_predict(void *self, lw_train_result *out)
{
    drift_run *r = self;
    if (lw_drift_of_clips(r))
        return 0;
    double rate = 0.6 * lw_session_flops(r->g.p.dev), real = 0;
    if (r->chunked)
        put_phases(r, out, CHOSEN);
    else
        add_plan(phase(out, "step"), CHOSEN, r->g.p.plan, (double)r->g.p.leaves.n);
    real = lw_drift_real_get_cost(r).flops;
    phase(out, "real features")->flops[CHOSEN] = phase(out, "real features")->flops[LEAST] = real;
    if (rate <= 0.0 || work_of_timing(r) / rate < LW_DRIFT_PATIENCE)
        LW_TRY(time_phases(r, out));
    time_by_flops(out, CHOSEN, rate);
    put_factors(r, out);
    out->predicted_step_seconds = 0.0;
    for (int32_t i = 0; i < out->n_phases; i++)
        out->predicted_step_seconds += out->phase[i].seconds[CHOSEN];
    if (!r->chunked)
        return 0;
    const lw_drift_cut least = {.groups = 1, .mapped = r->cut.mapped};
    LW_TRY(lw_drift_compile(r, &least));
    put_phases(r, out, LEAST);
    time_by_flops(out, LEAST, rate);
    return 0;
}
