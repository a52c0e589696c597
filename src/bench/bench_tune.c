/* SPDX-License-Identifier: Apache-2.0 */
/* Choices of convolutions, measured through the plans that will use them. */
#include "bench/bench_tune.h"

#include <stdio.h>
#include <string.h>

#include "bench/bench_workload.h"
#include "bench/suites/bench_op.h"
#include "session/session.h"

enum { WAYS = 3, BATCH = 4, MOST_SHAPES = 128 };
static const int tile_of[WAYS] = {0, 2, 4};

typedef struct tune {
    const lw_tune_config *c;
    const lw_observer *obs;
    lw_isa isa;
    lw_device *dev[WAYS];          /* each is told one way for the shape at hand */
    lw_conv_choice told[WAYS];     /* by this */
    int32_t shape[MOST_SHAPES][3]; /* C, O, side */
    int n_shape;
    lw_tuned_row *rows;
    int n;
} tune;

/* ---- what to measure ------------------------------------------------------------------------- */

static void add_shape(tune *t, int32_t c, int32_t o, int32_t side)
{
    for (int i = 0; i < t->n_shape; i++)
        if (t->shape[i][0] == c && t->shape[i][1] == o && t->shape[i][2] == side)
            return;
    if (t->n_shape == MOST_SHAPES)
        return;
    t->shape[t->n_shape][0] = c;
    t->shape[t->n_shape][1] = o;
    t->shape[t->n_shape++][2] = side;
}

static int add_unet(tune *t)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    lw_workload_unet u = {.config = lw_workload_unet_config(false), .batch = 1};
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_store_new(true, &store));
    lw_builder b = {.g = g, .params = lw_store_params(store)};
    LW_TRY(lw_workload_build_unet(&b, &u));
    LW_TRY(lw_graph_error(g));
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        const lw_attr_conv *a = n->op == LW_OP_CONV2D ? n->attr : NULL;
        if (a && a->kh == 3 && a->kw == 3 && a->stride == 1 && a->h == a->w)
            add_shape(t, a->c, a->o, a->h);
    }
    return 0;
}

/* A residual network's stages: fewer pixels, more channels. */
static void add_usual(tune *t)
{
    static const int32_t at[][2] = {{16, 32}, {16, 64},  {24, 32},  {32, 16}, {32, 32},  {32, 64},
                                    {64, 8},  {64, 16},  {64, 32},  {64, 56}, {128, 8},  {128, 28},
                                    {192, 8}, {192, 16}, {256, 14}, {384, 8}, {384, 16}, {512, 4},
                                    {512, 7}, {512, 8},  {512, 16}, {768, 4}, {768, 8}};
    for (size_t i = 0; i < LW_COUNT(at); i++)
        add_shape(t, at[i][0], at[i][0], at[i][1]);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Which ways there are, for a shape that tiles apply to at all. Of bf16 no tiles of 4x4 but where the rule has them: their errors
 * are twice those of 2x2. */
static bool possible(const lw_conv_choice *c, int tile)
{
    lw_conv_shape s = lw_conv_choice_shape(c);
    if (lw_conv_shape_init(&s) < 0 || !lw_winograd_applies(&s, c->pass))
        return false;
    if (c->num == LW_NUM_F32 || tile == 0)
        return true;
    return (tile == 2 || tile == c->tile) && (c->pass == LW_CONV_FORWARD ? c->C : c->O) % 2 == 0;
}

typedef struct times {
    lw_workload work[WAYS];
    double *ms[WAYS];
} times;

static void close_times(times *m)
{
    for (int w = 0; w < WAYS; w++) {
        lw_workload_close(&m->work[w]);
        lw_free(&m->ms[w]);
    }
}

static int open_times(tune *t, const lw_conv_choice *c, times *m)
{
    lw_bench_op op = {.p = {c->C, c->O, c->H, 3, 1, BATCH}};
    lw_workload_spec spec = {.build = c->pass == LW_CONV_FORWARD ? lw_bench_build_conv
                                                                 : lw_bench_build_conv_dx,
                             .what = &op,
                             .opts = {.precision = c->num}};
    for (int w = 0; w < WAYS; w++) {
        if (!possible(c, tile_of[w]))
            continue;
        t->told[w] = *c;
        t->told[w].tile = tile_of[w];
        m->ms[w] = lw_calloc((size_t)t->c->samples, sizeof *m->ms[w]);
        if (!m->ms[w])
            return LW_ENOMEM;
        LW_TRY(lw_workload_open(t->dev[w], &spec, &m->work[w]));
        LW_TRY(lw_workload_run(&m->work[w]));
    }
    return 0;
}

static int take_turns(tune *t, times *m)
{
    for (int i = 0; i < t->c->samples; i++) {
        if (lw_observe_stop(t->obs))
            return lw_fail(LW_ESTOPPED, "interrupted: nothing is written");
        for (int k = 0; k < WAYS; k++) {
            int w = i % 2 ? WAYS - 1 - k : k;
            if (!m->ms[w])
                continue;
            double began = lw_now();
            LW_TRY(lw_workload_run(&m->work[w]));
            m->ms[w][i] = 1e3 * (lw_now() - began);
        }
    }
    return 0;
}

/* The rule's, unless another is clearly faster. */
static void choose(const tune *t, const times *m, lw_tuned_row *row)
{
    static const double clearly = 0.95;
    int shipped = 0;
    for (int w = 0; w < WAYS; w++)
        shipped = tile_of[w] == row->shipped ? w : shipped;
    lw_summary of = lw_summarize(m->ms[shipped], t->c->samples), best = of;
    int chosen = shipped;
    for (int w = 0; w < WAYS; w++) {
        if (!m->ms[w] || w == shipped)
            continue;
        lw_summary s = lw_summarize(m->ms[w], t->c->samples);
        if (s.min < clearly * of.min && s.p50 < clearly * of.p50 && s.p50 < best.p50) {
            best = s;
            chosen = w;
        }
    }
    row->choice.tile = tile_of[chosen];
    row->ms = best.p50;
    row->shipped_ms = of.p50;
}

void lw_tune_name(const lw_conv_choice *c, char name[LW_TUNE_NAME])
{
    snprintf(name, LW_TUNE_NAME, "%s.%s.%d_%d@%d", lw_precision_name(c->num),
             c->pass == LW_CONV_FORWARD ? "forward" : "data_grad", (int)c->C, (int)c->O, (int)c->H);
}

static int measure(tune *t, lw_tuned_row *row)
{
    times m = {0};
    int rc = open_times(t, &row->choice, &m);
    if (rc == 0)
        rc = take_turns(t, &m);
    if (rc == 0)
        choose(t, &m, row);
    close_times(&m);
    return rc;
}

static int tune_one(tune *t, lw_conv_choice c)
{
    char name[LW_TUNE_NAME];
    lw_tune_name(&c, name);
    if (!possible(&c, 0) || (t->c->filter && !strstr(name, t->c->filter)))
        return 0;
    c.tile = lw_conv_choice_rule(&c, t->isa);
    lw_tuned_row *row = &t->rows[t->n];
    *row = (lw_tuned_row){.choice = c, .shipped = c.tile};
    if (!t->c->list) {
        lw_observe_progress(t->obs, "tune", t->n, (int64_t)t->n_shape * 4, name);
        LW_TRY(measure(t, row));
    }
    t->n++;
    return 0;
}

static int tune_all(tune *t)
{
    for (int i = 0; i < t->n_shape * 4; i++) {
        const int32_t *p = t->shape[i / 4];
        lw_conv_choice c = {.num = i % 4 < 2 ? LW_NUM_F32 : LW_NUM_BF16,
                            .pass = i % 2 ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD,
                            .C = p[0],
                            .O = p[1],
                            .H = p[2],
                            .W = p[2]};
        if (c.num == LW_NUM_F32 || t->isa >= LW_ISA_AVX512BF16)
            LW_TRY(tune_one(t, c));
    }
    return t->n > 0 ? 0
                    : lw_fail(LW_EUSAGE, "--filter %s: no convolution has such a name",
                              t->c->filter ? t->c->filter : "");
}

static int open_devices(tune *t)
{
    for (int w = 0; w < WAYS; w++) {
        const lw_backend_options o = {.threads = t->c->threads,
                                      .bind = lw_backend_binds(),
                                      .isa = t->isa,
                                      .tuned = {&t->told[w], 1}};
        LW_TRY(lw_backend_open("cpu", &o, &t->dev[w]));
        lw_pool_watch(t->dev[w]->pool, t->obs);
    }
    return 0;
}

int lw_job_tune(const lw_tune_config *config, const lw_observer *obs, lw_tuned_row **rows, int *n)
{
    LW_CLEANUP(lw_free) tune *t = lw_calloc(1, sizeof *t);
    if (!t)
        return LW_ENOMEM;
    t->c = config;
    t->obs = obs;
    LW_TRY(lw_isa_chosen(&t->isa));
    if (t->isa == LW_ISA_REF)
        return lw_fail(LW_EUSAGE, "--tune: LW_ISA=ref computes one way only");
    t->rows = lw_calloc((size_t)MOST_SHAPES * 4, sizeof *t->rows);
    int rc = t->rows ? add_unet(t) : LW_ENOMEM;
    add_usual(t);
    if (rc == 0 && !config->list)
        rc = open_devices(t);
    if (rc == 0)
        rc = tune_all(t);
    for (int w = 0; w < WAYS; w++)
        lw_backend_close(&t->dev[w]);
    if (rc == 0) {
        *rows = lw_steal(&t->rows);
        *n = t->n;
    }
    lw_free(&t->rows);
    return rc;
}
