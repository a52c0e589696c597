/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of real rows (data_queue.h): ten steps of refill and draws at the settings that a published trainer is timed
 * with, and cold: nothing before the first step, each row once in a group, so that rings have too few. The plainer way
 * keeps pictures in the rings, and so copies each one in and out again (32x32x4, f32).
 */
#include <math.h>
#include <string.h>

#include "bench/bench_case.h"
#include "data/data.h"

enum {
    STEPS = 10,
    GROUPS = 4,
    POSITIVES = 4,
    UNCONDITIONAL = 2,
    CLASSES = 128,
    ROWS = 16384,
    PUSH = 256,
    PRIME = 2048,
    PICTURE = 32 * 32 * 4
};

typedef struct queue_case {
    bool cold;
    lw_dataset set;
    int32_t labels[ROWS], classes[GROUPS];
    int64_t positive[GROUPS * POSITIVES], unconditional[GROUPS * UNCONDITIONAL];
    lw_queue *queue;
    int64_t step;
    float *pictures, *rings, *drawn; /* of the plainer way: [ROWS], [PUSH], [draws of a step] */
} queue_case;

static int draw_steps(void *self)
{
    queue_case *c = self;
    for (int i = 0; i < STEPS; i++)
        LW_TRY(lw_queue_draw(c->queue, c->step++, c->classes, c->positive, c->unconditional));
    return 0;
}

static void copy_rows(float *to, const float *from, const int64_t *rows, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * PICTURE, from + rows[i] % ROWS * PICTURE, PICTURE * sizeof *to);
}

/* The same, with a picture copied for each row that goes in (into both rings) and for each drawn. */
static int draw_pictures(void *self)
{
    queue_case *c = self;
    for (int i = 0; i < STEPS; i++) {
        int64_t first = c->step * PUSH % ROWS;
        LW_TRY(lw_queue_draw(c->queue, c->step++, c->classes, c->positive, c->unconditional));
        for (int ring = 0; ring < 2; ring++)
            memcpy(c->rings, c->pictures + first * PICTURE,
                   (size_t)PUSH * PICTURE * sizeof *c->rings);
        copy_rows(c->drawn, c->pictures, c->positive, GROUPS * POSITIVES);
        copy_rows(c->drawn, c->pictures, c->unconditional, GROUPS * UNCONDITIONAL);
    }
    return 0;
}

static void close_case(queue_case *c)
{
    lw_queue_free(&c->queue);
    lw_free(&c->pictures);
    lw_free(&c->rings);
    lw_free(&c->drawn);
}

static int open_case(queue_case *c)
{
    const lw_class_opts o = {
        .seed = 1, .groups = GROUPS, .positives = POSITIVES, .unconditional = UNCONDITIONAL};
    lw_queue_opts q = {
        .per_class = 64, .global = 4096, .push = PUSH, .prime = PRIME, .refill_every = 1};
    if (c->cold) { /* as many rows of each class, whatever the seed: counters are known */
        q.prime = 0;
        q.strict = q.ordered = true;
    }
    for (int i = 0; i < ROWS; i++)
        c->labels[i] = i % CLASSES;
    c->set = (lw_dataset){.n = ROWS, .classes = CLASSES, .labelled = true, .labels = c->labels};
    c->set.spec = "bench";
    c->pictures = lw_calloc((size_t)ROWS * PICTURE, sizeof *c->pictures);
    c->rings = lw_calloc((size_t)PUSH * PICTURE, sizeof *c->rings);
    c->drawn = lw_calloc((size_t)GROUPS * POSITIVES * PICTURE, sizeof *c->drawn);
    if (!c->pictures || !c->rings || !c->drawn)
        return LW_ENOMEM;
    for (int64_t i = 0; i < (int64_t)ROWS * PICTURE; i++)
        c->pictures[i] = (float)(i % 255); /* pages that are there */
    return lw_queue_new(&c->set, &o, &q, &c->queue);
}

/* The same in the keys of the published bench. */
static json_t *published(const lw_bench_run *r, const queue_case *c, const lw_bench_case *out)
{
    lw_queue_counts all = lw_queue_totals(c->queue);
    double ms = lw_summarize(out->ms, out->n).p50;
    return json_pack("{s:s, s:i, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}, s:f, s:f, s:f, "
                     "s:{s:I, s:I}, s:I, s:i}",
                     "device", r->dev->name, "steps", STEPS, "config", "groups", GROUPS,
                     "positives_per_group", POSITIVES, "unconditional_per_group", UNCONDITIONAL,
                     "num_classes", CLASSES, "queue_prime_samples", c->cold ? 0 : PRIME,
                     "queue_per_class_capacity", 64, "queue_global_capacity", 4096,
                     "queue_push_batch", PUSH, "real_dataset_size", ROWS, "mean_step_time_s",
                     1e-3 * ms / STEPS, "legacy_ms", out->base_ms, "speedup_x", out->base_ms / ms,
                     "queue_underflow_totals", "missing_labels", (json_int_t)all.missing_labels,
                     "backfilled_samples", (json_int_t)all.backfilled_samples, "queue_global_count",
                     (json_int_t)lw_queue_held(c->queue), "queue_covered_classes",
                     (int)lw_queue_covered(c->queue));
}

static int measure(lw_bench_run *r, const char *name, bool cold)
{
    if (!lw_bench_wants(r, name))
        return 0;
    queue_case *c = lw_calloc(1, sizeof *c);
    lw_bench_case *out;
    if (!c)
        return LW_ENOMEM;
    c->cold = cold;
    int rc = open_case(c);
    const lw_bench_work w = {
        .name = name, .method = "rows", .call = draw_steps, .self = c, .error = (double)NAN};
    if (rc == 0)
        rc = lw_bench_measure(r, &w, &out);
    if (rc == 0)
        rc = lw_bench_measure_base(r, out, "copies of pictures", draw_pictures, c);
    if (rc == 0)
        out->published = published(r, c, out);
    close_case(c);
    lw_free(&c);
    return rc;
}

int lw_bench_suite_queue(lw_bench_run *r)
{
    LW_TRY(measure(r, "queue_10_steps", false));
    return measure(r, "queue_10_steps_cold", true);
}
