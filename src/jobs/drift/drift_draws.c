/* SPDX-License-Identifier: Apache-2.0 */
/* Classes, real rows and strengths of guidance of a step. */
#include "jobs/drift/drift_draws.h"

#include <stdlib.h>

#include "formats/formats.h"

static int by_size(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Rings as the warm-up left them: a queue begins again from there. */
static int look_at_queue(lw_drift_draws *d)
{
    int32_t rings = lw_queue_rings(d->queue), n = 0;
    double sum = 0;
    LW_CLEANUP(lw_free) int32_t *held = lw_calloc((size_t)rings + 1, sizeof *held);
    json_t *counts = d->c->queue_report ? json_array() : NULL;
    for (int32_t c = 0; held && c < rings; c++) {
        int32_t rows = lw_queue_held_of(d->queue, c);
        sum += rows;
        if (rows)
            held[n++] = rows;
        if (counts)
            json_array_append_new(counts, json_integer(rows));
    }
    if (!held)
        return LW_ENOMEM;
    qsort(held, (size_t)n, sizeof *held, by_size);
    d->warmup = json_pack(
        "{s:s, s:I, s:I, s:i, s:i, s:i, s:f, s:o*, s:[i,i,i,i,i]}", "warmup_mode",
        d->c->queue.warmup == LW_QUEUE_BALANCED ? "class_balanced" : "random", "samples_pushed",
        (json_int_t)lw_queue_pushed(d->queue), "global_count", (json_int_t)lw_queue_held(d->queue),
        "covered_classes", (int)n, "min_class_count_nonzero", n ? (int)held[0] : 0,
        "max_class_count", n ? (int)held[n - 1] : 0, "mean_class_count", sum / rings, "counts",
        counts, "count_quantiles_nonzero", n ? (int)held[0] : 0, n ? (int)held[n / 4] : 0,
        n ? (int)held[n / 2] : 0, n ? (int)held[(3 * n) / 4] : 0, n ? (int)held[n - 1] : 0);
    return d->warmup ? 0 : lw_fail(LW_ENOMEM, "out of memory for the queue's report");
}

int lw_drift_draws_open(lw_drift_draws *d, const lw_drift_config *c, const lw_dataset *data,
                        bool labels)
{
    const lw_class_opts o = {.seed = (uint64_t)c->train.seed,
                             .groups = d->groups,
                             .positives = d->np,
                             .unconditional = d->nu,
                             .rule = (lw_class_rule)c->class_rule,
                             .ignore_labels = !labels};
    size_t groups = (size_t)d->groups;
    d->c = c;
    d->data = data;
    d->step = -1;
    LW_TRY(lw_alpha_check(&c->alpha, d->nu));
    if (c->pictures.real.ordered && !c->use_queue)
        return lw_fail(LW_EUSAGE, "--disable-real-shuffle: rows of a class are drawn at random; "
                                  "the queue (--use-queue) can be filled in order");
    d->group_class = lw_calloc(groups, sizeof *d->group_class);
    d->positive = lw_calloc(groups * (size_t)d->np, sizeof *d->positive);
    d->unconditional = lw_calloc(groups * (size_t)d->nu + 1u, sizeof *d->unconditional);
    d->alpha = lw_calloc(groups, sizeof *d->alpha);
    if (!d->group_class || !d->positive || !d->unconditional || !d->alpha)
        return LW_ENOMEM;
    if (!c->use_queue)
        return lw_class_sampler_new(data, &o, &d->classes);
    lw_queue_opts queue = c->queue;
    queue.flip = d->flip;
    queue.ordered = c->pictures.real.ordered;
    LW_TRY(lw_queue_new(data, &o, &queue, &d->queue));
    return look_at_queue(d);
}

void lw_drift_draws_clear(lw_drift_draws *d)
{
    lw_class_sampler_free(&d->classes);
    lw_queue_free(&d->queue);
    lw_free(&d->group_class);
    lw_free(&d->positive);
    lw_free(&d->unconditional);
    lw_free(&d->alpha);
    lw_json_drop(&d->warmup);
}

/* Mirrors rows by one word of (seed, "drift.flip", step, number). */
static void mirror(const lw_drift_draws *d, int64_t *rows, int64_t n)
{
    const lw_rng_key flips = lw_rng_key_of((uint64_t)d->c->train.seed, lw_hash_name("drift.flip"));
    for (int64_t i = 0; d->flip && i < n; i++)
        if (lw_rng_word(flips, (uint32_t)d->step, (uint64_t)i, 0) & 1u)
            rows[i] += d->data->n;
}

int lw_drift_draws_of(lw_drift_draws *d, int64_t step)
{
    if (d->step == step)
        return 0;
    d->step = step;
    for (int32_t g = 0; g < d->groups; g++)
        d->alpha[g] = lw_alpha_draw(&d->c->alpha, (uint64_t)d->c->train.seed, step, g);
    if (d->queue)
        return lw_queue_draw(d->queue, step, d->group_class, d->positive, d->unconditional);
    lw_class_sampler_draw(d->classes, step, d->group_class, d->positive, d->unconditional);
    mirror(d, d->positive, (int64_t)d->groups * d->np);
    mirror(d, d->unconditional, (int64_t)d->groups * d->nu);
    return 0;
}

double lw_drift_draws_weight(const lw_drift_draws *d, int32_t g, int32_t n)
{
    return lw_alpha_used(&d->c->alpha) ? lw_alpha_weight(d->alpha[g], n, d->nu)
                                       : d->c->uncond_weight;
}

static void put(json_t *row, const char *name, int64_t n)
{
    json_object_set_new(row, name, json_integer((json_int_t)n));
}

void lw_drift_draws_report(const lw_drift_draws *d, json_t *row)
{
    double sum = 0, least = d->alpha ? d->alpha[0] : 0, most = least;
    for (int32_t g = 0; d->alpha && g < d->groups; g++) {
        sum += d->alpha[g];
        least = LW_MIN(least, d->alpha[g]);
        most = LW_MAX(most, d->alpha[g]);
    }
    if (lw_alpha_used(&d->c->alpha)) {
        json_object_set_new(row, "alpha_mean", lw_json_real(sum / d->groups));
        json_object_set_new(row, "alpha_min", lw_json_real(least));
        json_object_set_new(row, "alpha_max", lw_json_real(most));
    }
    if (!d->queue)
        return;
    lw_queue_counts now = lw_queue_step_counts(d->queue), all = lw_queue_totals(d->queue);
    put(row, "queue_underflow_missing_labels", now.missing_labels);
    put(row, "queue_underflow_backfilled", now.backfilled_samples);
    put(row, "missing_labels", all.missing_labels);
    put(row, "backfilled_samples", all.backfilled_samples);
    put(row, "queue_global_count", lw_queue_held(d->queue));
    put(row, "queue_covered_classes", lw_queue_covered(d->queue));
}
