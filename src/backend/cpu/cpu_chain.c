/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions one behind the other, strip by strip of output rows: the kernels of single ones on
 * strips. A task makes some rows of one picture. What a stage hands on lies in scratch, in a window of rows
 * that moves down; rows that the next strip needs again are moved to its front, so that only a
 * task's first strip computes rows that another task has too.
 */
#include <string.h>

#include "backend/cpu/cpu_pack.h"

enum { TASKS_WANTED = 16, LEAST_ROWS = 14 /* of a task, as long as it repeats others' rows */ };

typedef struct stage {
    lw_conv_shape s; /* of one picture, dense */
    lw_act act;
    bool depthwise;
    ptrdiff_t scratch; /* floats before its window */
} stage;

typedef struct chain_arg {
    const lw_kernels *k;
    int n;
    int32_t strip, parts; /* output rows; tasks of a picture */
    stage stage[LW_CHAIN_MAX];
} chain_arg;

/* Rows [from, to). */
typedef struct rows {
    int32_t from, to;
} rows;

/* What a stage reads to make rows r. */
static rows rows_read(const lw_conv_shape *s, rows r)
{
    int32_t from = r.from * s->stride - s->pad_top;
    int32_t to = (r.to - 1) * s->stride - s->pad_top + s->KH;
    return (rows){LW_MAX(from, 0), LW_MIN(to, s->H)};
}

/* Rows `out` of a stage from its rows `in`, as a picture of their own. */
static lw_conv_shape strip_shape(const lw_conv_shape *s, rows out, rows in)
{
    lw_conv_shape z = *s;
    z.B = 1;
    z.H = in.to - in.from;
    z.OH = out.to - out.from;
    z.pad_top = LW_MAX(s->pad_top - out.from * s->stride, 0);
    z.pad_bottom = LW_MAX((out.to - 1) * s->stride - s->pad_top + s->KH - s->H, 0);
    return z;
}

static void run_stage(const chain_arg *a, int i, float *y, const float *x, const void *w,
                      const lw_conv_shape *s, const lw_epilogue *e)
{
    int64_t tasks = a->stage[i].depthwise
                        ? lw_depthwise_tasks(s, LW_CONV_FORWARD)
                        : lw_conv_tasks(a->k->isa, LW_NUM_F32, s, LW_CONV_FORWARD);
    for (int64_t t = 0; t < tasks; t++)
        if (a->stage[i].depthwise)
            a->k->depthwise.run(y, x, w, s, LW_CONV_FORWARD, e, t);
        else
            a->k->conv.forward(y, x, w, s, e, t);
}

/* Moves the window of stage i's results down to row `from`: what it has from there on is kept. */
static void move_window(const stage *z, float *window, rows *has, int32_t from)
{
    ptrdiff_t row = (ptrdiff_t)z->s.OW * z->s.O;
    if (from > has->from && from < has->to)
        memmove(window, window + (from - has->from) * row,
                sizeof(float) * (size_t)((has->to - from) * row));
    *has = (rows){from, LW_MAX(has->to, from)};
}

/* What each stage has to make for the output rows `want`; from there up, without what is there. */
static void plan_strip(const chain_arg *a, float *scratch, rows *has, rows want, rows *make)
{
    make[a->n - 1] = want;
    for (int i = a->n - 2; i >= 0; i--) {
        rows need = rows_read(&a->stage[i + 1].s, make[i + 1]);
        move_window(&a->stage[i], scratch + a->stage[i].scratch, &has[i], need.from);
        make[i] = (rows){has[i].to, LW_MAX(need.to, has[i].to)};
    }
}

/* Stage i of a strip of picture b. */
static void make_rows(const chain_arg *a, const lw_task *t, int i, int32_t b, const rows *has,
                      rows make)
{
    const stage *z = &a->stage[i];
    const lw_conv_shape *s = &z->s;
    rows in = rows_read(s, make);
    lw_conv_shape shape = strip_shape(s, make, in);
    lw_epilogue e = {.bias = t->in[3 + 2 * i], .act = z->act};
    ptrdiff_t x_row = (ptrdiff_t)s->W * s->C, y_row = (ptrdiff_t)s->OW * s->O;
    const float *x = i == 0 ? (const float *)t->in[0] + ((ptrdiff_t)b * s->H + in.from) * x_row
                            : (const float *)t->scratch + z[-1].scratch +
                                  (in.from - has[i - 1].from) * x_row;
    float *y = (float *)t->scratch + z->scratch + (make.from - has[i].from) * y_row;
    if (i == a->n - 1) {
        ptrdiff_t at = ((ptrdiff_t)b * s->OH + make.from) * y_row;
        y = (float *)t->out[0] + at;
        e.residual = t->in[1] ? (const float *)t->in[1] + at : NULL;
        e.ld_residual = s->O;
    }
    run_stage(a, i, y, x, t->in[2 + 2 * i], &shape, &e);
}

static void chain_task(const lw_task *t)
{
    const chain_arg *a = t->arg;
    int32_t b = (int32_t)(t->index / a->parts), part = (int32_t)(t->index % a->parts);
    int32_t high = a->stage[a->n - 1].s.OH;
    int32_t from = high * part / a->parts, end = high * (part + 1) / a->parts;
    int32_t strips = LW_CEIL_DIV(end - from, a->strip);
    rows has[LW_CHAIN_MAX] = {{0}}, make[LW_CHAIN_MAX];
    for (int32_t k = 0; k < strips; k++) {
        rows want = {from + (end - from) * k / strips, from + (end - from) * (k + 1) / strips};
        plan_strip(a, t->scratch, has, want, make);
        for (int i = 0; i < a->n; i++) {
            if (i + 1 < a->n)
                has[i].to = make[i].to;
            if (make[i].from < make[i].to)
                make_rows(a, t, i, b, has, make[i]);
        }
    }
}

/* ---- lowering -------------------------------------------------------------------------------- */

/* Windows for strips of so many output rows; all their floats. */
static ptrdiff_t set_windows(chain_arg *a, int32_t strip)
{
    ptrdiff_t floats = 0;
    int32_t high = strip;
    for (int i = a->n - 2; i >= 0; i--) {
        const lw_conv_shape *next = &a->stage[i + 1].s;
        stage *z = &a->stage[i];
        high = LW_MIN((high - 1) * next->stride + next->KH, z->s.OH);
        z->scratch = floats;
        floats += LW_ROUND_UP((ptrdiff_t)high * z->s.OW * z->s.O, 16);
    }
    return floats;
}

static void set_stages(chain_arg *a, const lw_attr_conv_chain *at)
{
    a->n = at->n;
    for (int i = 0; i < at->n; i++)
        a->stage[i] = (stage){.s = lw_cpu_conv_shape(&at->stage[i], 1),
                              .act = (lw_act)at->stage[i].act,
                              .depthwise = at->depthwise[i] != 0};
}

/* Half of a worker's cache holds the windows; weights and what streams past have the rest. */
static int64_t set_strips(chain_arg *a, int32_t batch, int64_t near_one)
{
    int32_t high = a->stage[a->n - 1].s.OH;
    a->parts = LW_MAX(LW_MIN(LW_CEIL_DIV(TASKS_WANTED, LW_MAX(batch, 1)), high / LEAST_ROWS), 1);
    a->strip = LW_CEIL_DIV(high, a->parts);
    while (a->strip > 1 && set_windows(a, a->strip) * (int64_t)sizeof(float) > near_one / 2)
        a->strip--;
    return set_windows(a, a->strip);
}

int lw_cpu_lower_conv_chain(cpu_lower *c)
{
    chain_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    int32_t batch = cpu_in(c, 0).dim[0];
    *a = (chain_arg){.k = c->k};
    set_stages(a, c->n->attr);
    c->out->scratch_bytes = sizeof(float) * (size_t)set_strips(a, batch, c->dev->near_one);
    lw_cpu_phase(c, chain_task, (int64_t)batch * a->parts);
    return 0;
}

/* Where the values between would leave the workers' caches, and all stages are computed directly. A
 * picture more or less changes who computes, not what. */
bool lw_cpu_chain_pays(void *self, const lw_attr_conv_chain *at, int32_t pictures)
{
    const lw_device *d = self; /* self begins with the lw_device */
    int64_t between = 0;
    for (int i = 0; i < at->n; i++) {
        lw_conv_shape s = lw_cpu_conv_shape(&at->stage[i], 1);
        if (s.pad_top >= s.KH || s.pad_bottom >= s.KH) /* rows that read nothing */
            return false;
        const cpu_way way = lw_cpu_conv_way(d, LW_F32, &s, LW_CONV_FORWARD);
        if (!at->depthwise[i] && (way.tile != 0 || way.num != LW_NUM_F32))
            return false;
        if (i + 1 < at->n)
            between = LW_MAX(between, (int64_t)sizeof(float) * s.OH * s.OW * s.O);
    }
    return d->near_one > 0 && between * pictures > 4 * d->near_one;
}
