/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The finishing phase: the last steps follow no field, but the Frechet distance between the features of a group's
 * pictures and those of all real pictures of its class.
 *
 *   loss  = sum over keys, mean over groups, of FD(features of the group, class) / trace of the class's covariance
 *
 * Keys of one slot count (vectors and means; a map has as many distributions as places), for each encoder of --encoder.
 * Real ones are met once, as mean and covariance; generated ones are those of the step, so the distance is biased upwards
 * the more, the fewer pictures a group has for the numbers of a key. Nothing is kept between steps: a run that goes on has
 * the same bits. The phase works on the features that lie between the phases of a step in parts (drift_chunks.c), and its
 * gradient takes their place as the field's does.
 */
#include <string.h>

#include "jobs/drift/drift_loss.h"
#include "jobs/drift/drift_run.h"

enum { DIM_MOST = 512, ROWS = 256 }; /* numbers of a key; real rows fetched at a time */

struct lw_drift_finish {
    int32_t classes;
    lw_frechet_loss **loss; /* [key][class]; NULL: a key of many slots */
    double *trace;          /* [key][class] */
    double *gradient;       /* of a group */
    float *wide;            /* real rows of a key, as f32 */
};

static bool counts(const drift_run *r, int k)
{
    return r->keys.key[k].slots == 1 && r->keys.key[k].c <= DIM_MOST;
}

static int32_t classes_of(const drift_run *r)
{
    return LW_MAX(r->g.network.classes, 1);
}

int lw_drift_finish_check(const drift_run *r)
{
    int n = 0;
    for (int k = 0; k < r->keys.n; k++)
        n += counts(r, k);
    if (r->c.finish_frechet <= 0.0)
        return 0;
    if (r->c.use_queue || lw_alpha_used(&r->c.alpha))
        return lw_fail(LW_EUSAGE,
                       "--finish-frechet goes to all real pictures of a class: leave out "
                       "--use-queue and --alpha-...");
    return n ? 0
             : lw_fail(LW_EUSAGE,
                       "--finish-frechet: none of the feature keys is one vector of at most %d "
                       "numbers: name means by --feature-keys, as all, pix.mean or s2.mean",
                       (int)DIM_MOST);
}

size_t lw_drift_finish_bytes(const drift_run *r)
{
    size_t numbers = 0;
    for (int k = 0; r->c.finish_frechet > 0.0 && k < r->keys.n; k++)
        if (counts(r, k))
            numbers += (size_t)r->keys.key[k].c * (size_t)(2 * r->keys.key[k].c + 1);
    return numbers * (size_t)classes_of(r) * sizeof(double);
}

void lw_drift_finish_close(drift_run *r)
{
    lw_drift_finish *f = r->finish;
    for (int32_t i = 0; f && f->loss && i < r->keys.n * f->classes; i++)
        lw_frechet_loss_free(&f->loss[i]);
    if (f) {
        lw_free(&f->loss);
        lw_free(&f->trace);
        lw_free(&f->gradient);
        lw_free(&f->wide);
    }
    lw_free(&r->finish);
}

int lw_drift_finish_new(drift_run *r)
{
    int32_t widest = 1;
    for (int k = 0; k < r->keys.n; k++)
        if (counts(r, k))
            widest = LW_MAX(widest, r->keys.key[k].c);
    r->finish = lw_calloc(1, sizeof *r->finish);
    if (!r->finish)
        return LW_ENOMEM;
    lw_drift_finish *f = r->finish;
    f->classes = classes_of(r);
    size_t all = (size_t)r->keys.n * (size_t)f->classes;
    f->loss = lw_calloc(all, sizeof(lw_frechet_loss *));
    f->trace = lw_calloc(all, sizeof *f->trace);
    f->gradient = lw_calloc((size_t)r->n * (size_t)widest, sizeof *f->gradient);
    f->wide = lw_calloc((size_t)ROWS * (size_t)widest, sizeof *f->wide);
    return f->loss && f->trace && f->gradient && f->wide ? 0 : LW_ENOMEM;
}

/* Adds real rows to the statistics of the keys that count; x: room for ROWS of each. */
static int add_rows(drift_run *r, const int64_t *rows, int64_t n, void *const *x,
                    lw_stats *const *stats)
{
    LW_TRY(lw_drift_sources_fetch(r, rows, n, x));
    for (int k = 0; k < r->keys.n; k++) {
        const bool low = lw_drift_real_type(r) == LW_BF16;
        if (!x[k])
            continue;
        for (int64_t i = 0; low && i < n * r->keys.key[k].c; i++)
            r->finish->wide[i] = lw_bf16_to_f32(((const lw_bf16 *)x[k])[i]);
        LW_TRY(lw_stats_add(r->g.p.dev->pool, stats[k], low ? r->finish->wide : x[k], n));
    }
    return 0;
}

static int add_class(drift_run *r, int32_t c, void *const *x, lw_stats *const *stats)
{
    int64_t n = 0, some[ROWS];
    const int64_t *rows = lw_class_sampler_rows(r->draws.classes, c, &n);
    if (n < 2)
        return lw_fail(LW_EUSAGE, "--finish-frechet: class %d has %lld pictures, needs 2", (int)c,
                       (long long)n);
    for (int mirrored = 0; mirrored <= (int)r->draws.flip; mirrored++)
        for (int64_t first = 0; first < n; first += ROWS) {
            const int64_t now = LW_MIN(n - first, (int64_t)ROWS);
            for (int64_t i = 0; i < now; i++)
                some[i] = rows[first + i] + (mirrored ? r->draws.data->n : 0);
            LW_TRY(add_rows(r, some, now, x, stats));
        }
    return 0;
}

int lw_drift_finish_class(drift_run *r, int32_t c, lw_stats *const *stats)
{
    lw_drift_finish *f = r->finish;
    for (int k = 0; k < r->keys.n; k++) {
        const size_t at = (size_t)k * (size_t)f->classes + (size_t)c;
        if (!stats[k])
            continue;
        LW_TRY(lw_frechet_loss_new(stats[k], &f->loss[at]));
        LW_TRY(lw_stats_trace(stats[k], &f->trace[at]));
        if (!(f->trace[at] > 0.0))
            return lw_fail(LW_EUSAGE,
                           "--finish-frechet: %s is the same in all pictures of class %d",
                           r->keys.key[k].name, (int)c);
    }
    return 0;
}

static int meet(drift_run *r, int32_t c, void *const *x)
{
    lw_stats *stats[LW_MAX_FEATURE_KEYS] = {NULL};
    int rc = 0;
    for (int k = 0; k < r->keys.n && rc == 0; k++)
        if (x[k])
            rc = lw_stats_new(r->keys.key[k].c, &stats[k]);
    if (rc == 0)
        rc = add_class(r, c, x, stats);
    if (rc == 0)
        rc = lw_drift_finish_class(r, c, stats);
    for (int k = 0; k < r->keys.n; k++)
        lw_stats_free(&stats[k]);
    return rc;
}

int lw_drift_finish_open(drift_run *r)
{
    void *x[LW_MAX_FEATURE_KEYS] = {NULL};
    int rc = 0;
    if (r->c.finish_frechet <= 0.0)
        return 0;
    for (int k = 0; k < r->keys.n && rc == 0; k++)
        if (counts(r, k)) {
            x[k] = lw_calloc((size_t)ROWS * (size_t)r->keys.key[k].c, sizeof(float));
            rc = x[k] ? 0 : LW_ENOMEM;
        }
    if (rc == 0)
        rc = lw_drift_finish_new(r);
    for (int32_t c = 0; c < classes_of(r) && rc == 0; c++)
        rc = lw_observe_stop(r->g.p.obs) ? lw_fail(LW_ESTOPPED, "interrupted") : meet(r, c, x);
    for (int k = 0; k < r->keys.n; k++)
        lw_free(&x[k]);
    return rc;
}

/* Of key k the distances of all groups, whose gradients take the features' place. */
static int take_key(drift_run *r, int k, double *loss)
{
    lw_drift_finish *f = r->finish;
    const int32_t groups = r->draws.groups;
    const size_t count = lw_drift_kept_at(r, k, r->n);
    for (int32_t g = 0; g < groups; g++) {
        const int32_t c = r->g.network.classes ? r->draws.group_class[g] : 0;
        const size_t at = (size_t)k * (size_t)f->classes + (size_t)c;
        const double by = (double)lw_drift_share(&r->c, &r->keys, k) / (f->trace[at] * groups);
        float *x = r->kept.gen[k] + (size_t)g * count;
        double value = 0;
        LW_TRY(lw_frechet_gradient(f->loss[at], x, r->n, &value, f->gradient));
        *loss += value * by;
        for (size_t i = 0; i < count; i++)
            x[i] = (float)(f->gradient[i] * by);
    }
    return 0;
}

int lw_drift_finish_take(drift_run *r)
{
    double loss = 0;
    for (int k = 0; k < r->keys.n; k++) {
        if (counts(r, k))
            LW_TRY(take_key(r, k, &loss));
        else
            memset(r->kept.gen[k], 0, lw_drift_kept_at(r, k, lw_drift_pictures(r)) * sizeof(float));
    }
    r->loss = (float)loss;
    return 0;
}
