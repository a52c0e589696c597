/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S and lambda of all groups of a step in bounded memory.
 *
 * Three phases: (1) all pictures are made and encoded, leaf by leaf, by the forward half of the leaf's plan, and their
 * features are kept; (2) the field of every key, some groups at a time: the sums behind S, those behind lambda, then
 * dloss/dfeature, which takes the features' place (all groups at once need one pass); (3) each leaf, a fixed number of
 * pictures, is made and encoded again, and its share of dloss/dfeature goes back to the weights. Gradients are summed in
 * the tree of train_leaves.h. Sums behind the field go by group number, so how many groups are met at a time changes
 * memory and time, and no bit; and a step of one leaf has the bits of one that is not cut.
 */
#include <string.h>

#include "jobs/drift/drift_loss.h"
#include "jobs/drift/drift_run.h"

static int encode(drift_run *r, int64_t step)
{
    const lw_tick tick = {(uint64_t)r->c.train.seed, (uint32_t)step};
    lw_exec *e = r->g.p.exec;
    char name[LW_DRIFT_NAME];
    int64_t size = r->g.p.leaves.size;
    for (int64_t first = 0; first < lw_drift_pictures(r); first += size) {
        lw_drift_feed_pictures(r, e, step, first, size);
        LW_TRY(lw_exec_run_forward(e, &tick));
        for (int k = 0; k < r->keys.n; k++)
            memcpy(r->kept.gen[k] + lw_drift_kept_at(r, k, first),
                   lw_exec_read(e, lw_drift_name(name, "gen", &r->keys.key[k])),
                   lw_drift_kept_at(r, k, size) * sizeof(float));
    }
    return 0;
}

/* Real pictures whose features no cache has. */
static int encode_real(drift_run *r)
{
    const lw_drift_draws *d = &r->draws;
    if (!lw_drift_keeps_real(r))
        return 0;
    LW_TRY(lw_drift_sources_fetch(r, d->positive, (int64_t)d->groups * r->np, r->kept.pos));
    return r->nu ? lw_drift_sources_fetch(r, d->unconditional, (int64_t)d->groups * r->nu,
                                          r->kept.unc)
                 : 0;
}

static int give(drift_run *r, lw_exec *e, bool doors, int32_t first)
{
    char name[LW_DRIFT_NAME];
    for (int k = 0; k < r->keys.n; k++) {
        const lw_feature_key *key = &r->keys.key[k];
        LW_TRY(lw_exec_bind(e, lw_drift_name(name, "gen", key),
                            r->kept.gen[k] + lw_drift_kept_at(r, k, (int64_t)first * r->n)));
        if (doors)
            memcpy(lw_exec_write(e, lw_drift_name(name, "state", key)), r->kept.state[k],
                   lw_drift_state_bytes(r, k));
    }
    return lw_drift_feed_real(r, e, first, r->cut.groups);
}

static void take(drift_run *r, const lw_exec *exec, bool last, int32_t first)
{
    lw_exec *e = (lw_exec *)(uintptr_t)exec;
    char name[LW_DRIFT_NAME];
    for (int k = 0; k < r->keys.n; k++) {
        const lw_feature_key *key = &r->keys.key[k];
        if (!last) {
            memcpy(r->kept.state[k], lw_exec_read(e, lw_drift_name(name, "sums", key)),
                   lw_drift_state_bytes(r, k));
            continue;
        }
        memcpy(r->stats[k], lw_exec_read(e, lw_drift_name(name, "stats", key)),
               sizeof(float) * (size_t)LW_DRIFT_STATS(r->c.n_temperatures));
        memcpy(r->kept.gen[k] + lw_drift_kept_at(r, k, (int64_t)first * r->n),
               lw_exec_read(e, lw_drift_name(name, "grad", key)),
               lw_drift_kept_at(r, k, (int64_t)r->cut.groups * r->n) * sizeof(float));
    }
}

static int take_field(drift_run *r, int64_t step)
{
    const lw_tick tick = {(uint64_t)r->c.train.seed, (uint32_t)step};
    int doors = r->cut.groups < r->draws.groups ? LW_DRIFT_DOORS : 1;
    for (int k = 0; k < r->keys.n; k++)
        memset(r->kept.state[k], 0, lw_drift_state_bytes(r, k));
    for (int d = 0; d < doors; d++)
        for (int32_t first = 0; first < r->draws.groups; first += r->cut.groups) {
            LW_TRY(give(r, r->field[d].exec, doors > 1, first));
            LW_TRY(lw_exec_run(r->field[d].exec, &tick));
            take(r, r->field[d].exec, d + 1 == doors, first);
        }
    r->loss = lw_drift_key_loss(&r->c, &r->keys, 0, r->stats[0]);
    for (int k = 1; k < r->keys.n; k++)
        r->loss += lw_drift_key_loss(&r->c, &r->keys, k, r->stats[k]);
    return 0;
}

int lw_drift_chunks_meet(drift_run *r, int64_t step)
{
    if (r->kept.bytes == 0)
        LW_TRY(lw_drift_kept_open(r));
    LW_TRY(lw_drift_draws_of(&r->draws, step));
    LW_TRY(encode(r, step));
    if (r->finishing)
        return lw_drift_finish_take(r);
    LW_TRY(encode_real(r));
    return take_field(r, step);
}

int lw_drift_chunks_leaf(drift_run *r, int64_t step, int64_t leaf)
{
    lw_exec *e = r->g.p.exec;
    char name[LW_DRIFT_NAME];
    int64_t size = r->g.p.leaves.size;
    if (leaf == 0)
        LW_TRY(lw_drift_chunks_meet(r, step));
    lw_drift_feed_pictures(r, e, step, leaf * size, size);
    memcpy(lw_exec_write(e, "loss"), &r->loss, sizeof r->loss);
    for (int k = 0; k < r->keys.n; k++)
        LW_TRY(lw_exec_bind(e, lw_drift_name(name, "grad", &r->keys.key[k]),
                            r->kept.gen[k] + lw_drift_kept_at(r, k, leaf * size)));
    return 0;
}
