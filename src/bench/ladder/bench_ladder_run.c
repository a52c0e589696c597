/* SPDX-License-Identifier: Apache-2.0 */
/* One rung: the loop over passes as it says, every part of it timed. */
#include <string.h>

#include "bench/ladder/bench_ladder_parts.h"

enum { PREFIX_BATCH = 8 };

typedef struct runner {
    ladder_model *m;
    const ladder_rung *r;
    lw_ladder_rung *out;
    lw_passes *passes;
    int32_t n, t, rows, dim; /* pictures, passes, rows at once, numbers of one */
    int64_t first;           /* picture of the first task */
    double (*spent)[3];      /* [n]: load, decode, resize of each picture */
    float *features;         /* [n][t][dim] */
    double *trace;           /* [n] */
    lw_pass_row *row;        /* [rows] */
    float *y;                /* [rows][dim] */
} runner;

static void runner_clear(runner *r)
{
    lw_passes_free(&r->passes);
    lw_free(&r->spent);
    lw_free(&r->features);
    lw_free(&r->trace);
    lw_free(&r->row);
    lw_free(&r->y);
}

static size_t picture_bytes(const ladder_model *m)
{
    return (size_t)m->data->h * (size_t)m->data->w * 3;
}

/* ---- pictures ---------------------------------------------------------------------------------- */

static int decode_task(void *arg, int64_t task, int worker)
{
    const runner *r = arg;
    ladder_model *m = r->m;
    int64_t i = r->first + task;
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    size_t len;
    (void)worker;
    lw_data_row_name(m->data, i, &name);
    double at[4] = {lw_now()};
    LW_TRY(lw_file_read(lw_path_join(&path, m->data->root, lw_str_c(&name)), (size_t)1 << 30,
                        &bytes, &len));
    at[1] = lw_now();
    LW_TRY(lw_image_parse(lw_str_c(&path), bytes, len, &im));
    at[2] = lw_now();
    LW_TRY(lw_prepare(&m->preparation, &im, m->pixels + (size_t)i * picture_bytes(m)));
    at[3] = lw_now();
    for (int k = 0; k < 3; k++)
        r->spent[i][k] = at[k + 1] - at[k];
    return 0;
}

/* Pictures first .. end - 1; what the call took is shared out by what the tasks did. */
static int decode(runner *r, int64_t first, int64_t end)
{
    double begin = lw_now(), sum[3] = {0}, all = 0;
    r->first = first;
    LW_TRY(lw_pool_try(r->m->dev->pool, end - first, decode_task, r));
    double wall = lw_now() - begin;
    for (int64_t i = first; i < end; i++)
        for (int k = 0; k < 3; k++) {
            sum[k] += r->spent[i][k];
            all += r->spent[i][k];
        }
    for (int k = 0; k < 3; k++)
        r->out->part[LW_LADDER_LOAD + k] += wall * sum[k] / all;
    r->out->decodes += end - first;
    return 0;
}

typedef struct stack {
    const runner *r;
    int64_t first;
    float *dst;
} stack;

static void stack_task(void *arg, int64_t i, int worker)
{
    const stack *s = arg;
    int64_t n = (int64_t)picture_bytes(s->r->m);
    (void)worker;
    lw_data_from_u8(s->r->m->pixels + (s->first + i) * n, n, s->dst + i * n);
}

static int fill(void *self, int64_t first, int64_t n, float *dst)
{
    runner *r = self;
    stack s = {r, first, dst};
    double begin = lw_now();
    lw_pool_run(r->m->dev->pool, n, stack_task, &s);
    r->out->part[LW_LADDER_STACK] += lw_now() - begin;
    return 0;
}

/* Once for all passes: pictures, and what is in front of the first site. */
static int prepare(runner *r)
{
    double stacked = r->out->part[LW_LADDER_STACK];
    if (!r->r->again)
        LW_TRY(decode(r, 0, r->n));
    double begin = lw_now();
    LW_TRY(lw_passes_prefix(r->passes, 0, r->n, fill, r, NULL));
    stacked = r->out->part[LW_LADDER_STACK] - stacked;
    r->out->part[LW_LADDER_ONCE] += lw_now() - begin - stacked;
    return 0;
}

/* ---- passes ------------------------------------------------------------------------------------ */

/* The pictures of a batch anew, in the places where those before lie. */
static int renew(runner *r, int64_t first, int64_t end)
{
    double stacked = r->out->part[LW_LADDER_STACK];
    LW_TRY(decode(r, first, end));
    double begin = lw_now();
    LW_TRY(lw_passes_prefix(r->passes, first, end - first, fill, r, NULL));
    stacked = r->out->part[LW_LADDER_STACK] - stacked;
    r->out->part[LW_LADDER_COPY] += lw_now() - begin - stacked;
    return 0;
}

/* Rows at .. at + n - 1 of all, in the order of the rung: passes of a picture, or pictures of a pass. */
static int run_batch(runner *r, int64_t at, int32_t n)
{
    const lw_tick tick = {.seed = r->m->c->seed};
    for (int32_t i = 0; i < n; i++) {
        int64_t k = at + i, picture = r->r->folded ? k / r->t : k % r->n;
        int64_t pass = r->r->folded ? k % r->t : k / r->n;
        int64_t place = r->r->again ? picture % r->rows : picture;
        r->row[i] = (lw_pass_row){place, (picture << 20) + pass};
    }
    LW_TRY(lw_passes_run(r->passes, r->row, n, &tick, r->y));
    for (int32_t i = 0; i < n; i++) {
        int64_t id = r->row[i].id, picture = id >> 20, pass = id & ((1 << 20) - 1);
        memcpy(r->features + (picture * r->t + pass) * r->dim, r->y + (int64_t)i * r->dim,
               sizeof *r->y * (size_t)r->dim);
    }
    return 0;
}

static int run_passes(runner *r)
{
    int64_t all = (int64_t)r->n * r->t, end;
    for (int64_t at = 0; at < all; at = end) {
        end = LW_MIN(at + r->rows, all);
        if (!r->r->folded) /* a batch is of one pass */
            end = LW_MIN(end, (at / r->n + 1) * r->n);
        if (r->r->again)
            LW_TRY(renew(r, at % r->n, at % r->n + end - at));
        LW_TRY(run_batch(r, at, (int32_t)(end - at)));
        if (lw_observe_stop(r->m->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    return 0;
}

static int score_task(void *arg, int64_t i, int worker)
{
    const runner *r = arg;
    LW_CLEANUP(lw_free) double *room = lw_calloc(2 * (size_t)r->dim, sizeof *room);
    double score[LW_PASS_SCORES];
    (void)worker;
    if (!room)
        return LW_ENOMEM;
    LW_TRY(lw_pass_scores(r->features + i * r->t * r->dim, r->t, r->dim, score, room, room + r->dim,
                          NULL));
    r->trace[i] = score[LW_PASS_TRACE_PRE];
    return 0;
}

static int score(runner *r)
{
    double begin = lw_now();
    LW_TRY(lw_pool_try(r->m->dev->pool, r->n, score_task, r));
    r->out->part[LW_LADDER_ACCUMULATE] += lw_now() - begin;
    for (int32_t i = 0; i < r->n; i++)
        r->out->mean += r->trace[i] / r->n;
    return 0;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static int open_runner(runner *r)
{
    const ladder_model *m = r->m;
    const lw_passes_opts o = {
        .height = m->data->h,
        .width = m->data->w,
        .output = m->net->features > 0 ? "pooled" : NULL,
        .precision = r->r->bf16 ? LW_NUM_BF16 : LW_NUM_F32,
        .pictures = LW_MIN(r->n, (int32_t)PREFIX_BATCH),
        .rows = r->rows,
        .keep = r->n,
        .whole = r->r->whole,
        .unfused = r->r->unfused,
    };
    LW_TRY(lw_passes_new(m->dev, m->net, &o, &r->passes));
    r->dim = lw_passes_get_info(r->passes).dim;
    r->out->compile = lw_passes_get_info(r->passes).compile;
    r->spent = lw_calloc((size_t)r->n, sizeof *r->spent);
    r->features = lw_calloc((size_t)r->n * (size_t)r->t * (size_t)r->dim, sizeof *r->features);
    r->trace = lw_calloc((size_t)r->n, sizeof *r->trace);
    r->row = lw_calloc((size_t)r->rows, sizeof *r->row);
    r->y = lw_calloc((size_t)r->rows * (size_t)r->dim, sizeof *r->y);
    return r->spent && r->features && r->trace && r->row && r->y ? 0 : LW_ENOMEM;
}

/* Weights are packed, pages are there: as in the middle of a long job. What the first run takes longer
 * than the second belongs to compiling. */
static int warm_up(runner *r)
{
    double at[3] = {lw_now()};
    for (int32_t i = 0; i < r->rows; i++)
        r->row[i] = (lw_pass_row){0, i};
    for (int k = 1; k < 3; k++) {
        LW_TRY(lw_passes_run(r->passes, r->row, r->rows, &(lw_tick){0}, r->y));
        at[k] = lw_now();
    }
    r->out->compile += LW_MAX(2 * at[1] - at[0] - at[2], 0.0);
    return 0;
}

static void sum_up(runner *r)
{
    static const bool once[LW_LADDER_PARTS] = {true, true, true, true, true, false, false, false};
    lw_ladder_rung *o = r->out;
    o->passes = (int64_t)r->n * r->t;
    for (int k = 0; k < LW_LADDER_PARTS; k++) {
        o->seconds += o->part[k];
        if (once[k] && !r->r->again)
            o->once += o->part[k] / r->n;
        else
            o->every += o->part[k] / (double)o->passes;
    }
}

int lw_ladder_run(ladder_model *m, const ladder_rung *rung, int32_t passes, lw_ladder_rung *out)
{
    LW_CLEANUP(runner_clear)
    runner r = {.m = m, .r = rung, .out = out, .n = m->c->pictures, .t = passes};
    int64_t most = rung->folded ? (int64_t)r.n * passes : r.n;
    r.rows = (int32_t)LW_MIN((int64_t)rung->rows, most);
    out->rows = r.rows;
    LW_TRY(open_runner(&r));
    LW_TRY(warm_up(&r));
    lw_passes_info before = lw_passes_get_info(r.passes);
    if (!rung->again)
        LW_TRY(prepare(&r));
    LW_TRY(run_passes(&r));
    lw_passes_info after = lw_passes_get_info(r.passes);
    out->part[LW_LADDER_COPY] += after.feed - before.feed;
    out->part[LW_LADDER_FORWARD] += after.forward - before.forward;
    LW_TRY(score(&r));
    sum_up(&r);
    return 0;
}
