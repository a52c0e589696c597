/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: every level against the double reference, the reference's gradient against
 * differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "kernels/check.h"

static const lw_attention_kernels *kernels_of(lw_isa isa)
{
    static lw_kernels k[LW_ISA_COUNT];
    lw_kernels_init(&k[isa], isa);
    return &k[isa].attention;
}

/* The packed buffer q | k | v, or one buffer for each. */
typedef struct problem {
    lw_attention_shape s;
    ptrdiff_t c;
    int n_buf;
    int64_t n[3], no; /* floats of each buffer, of o */
    float *x[3], *dout, *o, *lse, *scratch;
    double *x_d[3], *dx_d[3], *dout_d, *o_d, *lse_d;
} problem;

static double *widen(check *t, const float *p, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)p[i];
    return d;
}

static ptrdiff_t width(const problem *p)
{
    return p->n_buf == 1 ? 3 * p->c : p->c;
}
/* Of buffer i. */
static ptrdiff_t tokens_of(const problem *p, int i)
{
    return i ? p->s.tk : p->s.tq;
}
static ptrdiff_t pitch_of(const problem *p, int i)
{
    return i == 0 ? p->s.q_pitch : i == 1 ? p->s.k_pitch : p->s.v_pitch;
}

/* q, k or v (i = 0, 1, 2) among buffers of float or double. */
#define PART(p, buf, i) ((p)->n_buf == 1 ? (buf)[0] + (i) * (p)->c : (buf)[i])

static problem problem_new(check *t, lw_attention_shape s, ptrdiff_t gap, double range)
{
    problem p = {.s = s, .c = s.heads * s.hd, .n_buf = s.q_pitch ? 3 : 1};
    int shift = (int)(s.tq & 1);
    if (p.n_buf == 1)
        p.s.q_pitch = p.s.k_pitch = p.s.v_pitch = 3 * p.c + gap;
    p.s.o_pitch = p.c + gap;
    p.s.scale = (float)(1.0 / sqrt((double)s.hd));
    for (int i = 0; i < p.n_buf; i++) {
        p.n[i] = (tokens_of(&p, i) - 1) * pitch_of(&p, i) + width(&p);
        p.x[i] = check_in(t, p.n[i], shift, -range, range);
        p.x_d[i] = widen(t, p.x[i], p.n[i]);
        p.dx_d[i] = check_doubles(t, p.n[i]);
    }
    p.no = (s.tq - 1) * p.s.o_pitch + p.c;
    p.dout = check_in(t, p.no, shift, -1, 1);
    p.o = check_out(t, p.no, 1);
    p.lse = check_out(t, s.heads * s.tq, 0);
    size_t f = lw_attention_scratch(&p.s, 0), b = lw_attention_scratch(&p.s, 1);
    p.scratch = check_bytes(t, LW_MAX(f, b) * sizeof(float), 0);
    p.dout_d = widen(t, p.dout, p.no);
    p.o_d = check_doubles(t, p.no);
    p.lse_d = check_doubles(t, s.heads * s.tq);
    return p;
}

static void oracle_forward(problem *p)
{
    double **x = p->x_d;
    for (ptrdiff_t task = 0; task < lw_attention_tasks(&p->s); task++)
        lw_attention_forward_f64(p->o_d, p->lse_d, PART(p, x, 0), PART(p, x, 1), PART(p, x, 2),
                                 &p->s, task, NULL);
}

static void oracle_backward(problem *p)
{
    double **d = p->dx_d, **x = p->x_d;
    for (ptrdiff_t h = 0; h < p->s.heads; h++)
        lw_attention_backward_f64(PART(p, d, 0), PART(p, d, 1), PART(p, d, 2), p->dout_d, p->o_d,
                                  p->lse_d, PART(p, x, 0), PART(p, x, 1), PART(p, x, 2), &p->s, h,
                                  0, NULL);
}

static void forward(const check *t, problem *p)
{
    const lw_attention_kernels *k = kernels_of(t->isa);
    for (ptrdiff_t task = lw_attention_tasks(&p->s) - 1; task >= 0; task--)
        k->forward(p->o, p->lse, PART(p, p->x, 0), PART(p, p->x, 1), PART(p, p->x, 2), &p->s, task,
                   p->scratch);
}

static void backward(const check *t, problem *p, float *const *d, int add)
{
    const lw_attention_kernels *k = kernels_of(t->isa);
    for (ptrdiff_t h = p->s.heads - 1; h >= 0; h--)
        k->backward(PART(p, d, 0), PART(p, d, 1), PART(p, d, 2), p->dout, p->o, p->lse,
                    PART(p, p->x, 0), PART(p, p->x, 1), PART(p, p->x, 2), &p->s, h, add,
                    p->scratch);
}

/* Rows of `width` at `pitch` against the oracle, and what lies between them untouched. */
static void check_rows(check *t, const float *got, const double *want, ptrdiff_t rows,
                       ptrdiff_t row_width, ptrdiff_t pitch, bool gap, check_tol tol,
                       const char *what)
{
    for (ptrdiff_t i = 0; i < rows; i++, got += pitch, want += pitch) {
        check_close(t, got, want, row_width, tol, "%s row %td of %td", what, i, rows);
        if (i + 1 < rows && gap)
            check_poisoned(t, got + row_width, pitch - row_width, "gap of %s", what);
    }
}

static void one(check *t, problem *p, int add)
{
    const lw_attention_shape *s = &p->s;
    const check_tol tol = {.abs = 3e-6, .rel = 1e-5}, grad = {.abs = 1e-5, .rel = 2e-5};
    float *d[3] = {NULL};
    char what[96];
    snprintf(what, sizeof what, "tq=%td tk=%td heads=%td hd=%td add=%d", s->tq, s->tk, s->heads,
             s->hd, add);
    oracle_forward(p);
    oracle_backward(p);
    for (int b = 0; b < p->n_buf; b++) {
        d[b] = add ? check_in(t, p->n[b], 1, -1, 1) : check_out(t, p->n[b], 1);
        for (int64_t i = 0; add && i < p->n[b]; i++)
            p->dx_d[b][i] += (double)d[b][i];
    }
    forward(t, p);
    backward(t, p, d, add);
    check_close(t, p->lse, p->lse_d, s->heads * s->tq, tol, "lse %s", what);
    check_rows(t, p->o, p->o_d, s->tq, p->c, s->o_pitch, true, tol, what);
    for (int b = 0; b < p->n_buf; b++)
        check_rows(t, d[b], p->dx_d[b], tokens_of(p, b), width(p), pitch_of(p, b), !add, grad,
                   what);
}

static void shapes(check *t)
{
    static const ptrdiff_t hd[] = {1, 5, 8, 16, 17, 32, 40, 64, 72};
    static const ptrdiff_t tokens[] = {1, 2, 15, 16, 33, 65, 97};
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 7; j++) {
            lw_attention_shape s = {
                .tq = tokens[j], .tk = tokens[j], .heads = 1 + (i + j) % 3, .hd = hd[i]};
            problem p = problem_new(t, s, (i + j) % 2 ? 3 : 0, 1.5);
            one(t, &p, (i + j) % 4 == 0);
            check_next(t);
        }
}

/* Queries of one sequence, keys and values of another, in buffers and with pitches of their own;
 * k and v side by side too. */
static void cross(check *t)
{
    static const ptrdiff_t hd[] = {5, 32, 64, 72};
    static const ptrdiff_t tokens[][2] = {{1, 1}, {1, 65}, {17, 1}, {33, 7}, {64, 130}, {70, 31}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 6; j++) {
            ptrdiff_t heads = 1 + (i + j) % 3, c = heads * hd[i];
            problem p = problem_new(t,
                                    (lw_attention_shape){.tq = tokens[j][0],
                                                         .tk = tokens[j][1],
                                                         .heads = heads,
                                                         .hd = hd[i],
                                                         .q_pitch = c + j,
                                                         .k_pitch = 2 * c,
                                                         .v_pitch = c + i},
                                    1, 1.5);
            one(t, &p, (i + j) % 2);
            check_next(t);
        }
}

/* A gradient that nobody wants is not written, and the others stay what they are. */
static void parts(check *t)
{
    lw_attention_shape s = {.tq = 9, .tk = 21, .heads = 2, .hd = 8};
    s.q_pitch = s.k_pitch = s.v_pitch = 16;
    problem p = problem_new(t, s, 0, 1.0);
    float *all[3], *some[3];
    for (int i = 0; i < 3; i++)
        all[i] = check_out(t, p.n[i], 0);
    forward(t, &p);
    backward(t, &p, all, 0);
    for (int absent = 0; absent < 3; absent++) {
        for (int i = 0; i < 3; i++)
            some[i] = i == absent ? NULL : check_out(t, p.n[i], 0);
        backward(t, &p, some, 0);
        for (int i = 0; i < 3; i++)
            if (some[i])
                check_same(t, some[i], all[i], (size_t)p.n[i] * sizeof(float), "without %d",
                           absent);
    }
}

/* Few samples are cut into more tasks, and every bit is the same. */
static void check_few_samples(check *t, problem *p)
{
    float *o = p->o, *lse = p->lse;
    const ptrdiff_t tasks = lw_attention_tasks(&p->s);
    p->o = check_out(t, p->no, 0);
    p->lse = check_out(t, p->s.heads * p->s.tq, 0);
    p->s.samples = 1;
    assert_true(lw_attention_tasks(&p->s) > tasks);
    forward(t, p);
    check_same(t, p->o, o, (size_t)p->no * sizeof *o, "o of few samples, t=%td", p->s.tq);
    check_same(t, p->lse, lse, (size_t)(p->s.heads * p->s.tq) * sizeof *lse,
               "lse of few samples, t=%td", p->s.tq);
}

/* More than one key tile and row block; scores spread over tens of units so that the running
 * maximum moves. */
static void long_rows(check *t)
{
    static const ptrdiff_t tokens[] = {256, 257, 300, 520};
    for (int j = 0; j < 4; j++) {
        lw_attention_shape s = {
            .tq = tokens[j], .tk = tokens[j], .heads = 1, .hd = j == 1 ? 64 : 12};
        problem p = problem_new(t, s, 0, j == 2 ? 6.0 : 1.0);
        oracle_forward(&p);
        forward(t, &p);
        check_tol tol = {.abs = j == 2 ? 5e-5 : 1e-5,
                         .rel = 1e-5}; /* scores of 100 carry errors of 1e-5 */
        check_close(t, p.o, p.o_d, p.no, tol, "o t=%td", tokens[j]);
        check_close(t, p.lse, p.lse_d, p.s.heads * p.s.tq, tol, "lse t=%td", tokens[j]);
        check_few_samples(t, &p);
        check_next(t);
    }
}

/* n floats rounded to bf16, in a buffer of their own; the floats become what they were rounded to. */
static lw_bf16 *round_in_place(check *t, float *x, int64_t n)
{
    lw_bf16 *low = check_bytes(t, (size_t)n * sizeof *low, 0);
    for (int64_t i = 0; i < n; i++) {
        low[i] = lw_bf16_of_f32(x[i]);
        x[i] = lw_bf16_to_f32(low[i]);
    }
    return low;
}

/* The bf16 kernel of a level, into floats or into bf16 that are widened to floats. */
static void forward_bf16(check *t, lw_isa isa, problem *p, lw_bf16 *const *x, lw_num store,
                         float *o, float *lse)
{
    const lw_attention_kernels *k = kernels_of(isa);
    lw_bf16 *low = check_bytes(t, (size_t)p->no * sizeof *low, 1);
    p->s.store = store;
    for (ptrdiff_t task = lw_attention_tasks(&p->s) - 1; task >= 0; task--)
        k->forward_bf16(store == LW_NUM_BF16 ? (void *)low : o, lse, PART(p, x, 0), PART(p, x, 1),
                        PART(p, x, 2), &p->s, task, p->scratch);
    for (ptrdiff_t r = 0; r < p->s.tq && store == LW_NUM_BF16; r++)
        for (ptrdiff_t i = r * p->s.o_pitch; i < r * p->s.o_pitch + p->c; i++)
            o[i] = lw_bf16_to_f32(low[i]);
}

/*
 * bf16 against the reference of the same operands. The scores are equal but for their sums' order;
 * what differs is where probabilities are rounded, relative to the maximum so far or of all: half a
 * unit of bf16 each, 2^-9, of the average of |v|, which is at most `range`. Results of bf16 are rounded
 * once more.
 */
static void low_case(check *t, lw_attention_shape s, lw_num store, double range)
{
    problem p = problem_new(t, s, 1, range);
    float *o = check_out(t, p.no, 0), *lse = check_out(t, s.heads * s.tq, 0);
    lw_bf16 *x[3];
    for (int i = 0; i < 3; i++)
        x[i] = round_in_place(t, p.x[i], p.n[i]);
    forward_bf16(t, t->isa, &p, x, store, p.o, store ? NULL : p.lse);
    p.s.samples = 1;
    forward_bf16(t, t->isa, &p, x, store, o, NULL);
    check_same(t, o, p.o, (size_t)p.no * sizeof *o, "few samples of %td tokens", s.tq);
    forward_bf16(t, LW_ISA_REF, &p, x, LW_NUM_F32, o, lse);
    const check_tol tol = {.abs = 2 * range / 512, .rel = store ? 1.0 / 256 : 0.0};
    for (ptrdiff_t r = 0; r < s.tq; r++)
        check_close_f(t, p.o + r * p.s.o_pitch, o + r * p.s.o_pitch, p.c, tol,
                      "row %td of %td, %td keys, hd %td", r, s.tq, s.tk, s.hd);
    if (!store)
        check_close_f(t, p.lse, lse, s.heads * s.tq, (check_tol){.abs = 9e-6 * range * range},
                      "lse hd %td", s.hd);
    check_next(t);
}

/* Heads of few channels, whose queries lie side by side; more keys than a block has, and scores
 * whose maximum moves by tens. */
static void low_narrow(check *t)
{
    static const ptrdiff_t hd[] = {1, 2, 4, 5, 6, 7, 8, 12, 13, 15, 16};
    static const ptrdiff_t tokens[][2] = {{50, 50}, {33, 7}, {270, 3}, {20, 199}, {1, 70}};
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 5; j++) {
            lw_attention_shape s = {.tq = tokens[j][0], .tk = tokens[j][1], .heads = 1 + j % 2};
            s.hd = hd[i];
            s.q_pitch = s.heads * s.hd + i;
            s.k_pitch = s.v_pitch = s.heads * s.hd + j;
            low_case(t, s, LW_NUM_F32, j == 3 ? 6 : 1.5);
            low_case(t, s, LW_NUM_BF16, j == 3 ? 6 : 1.5);
        }
}

static void low(check *t)
{
    static const ptrdiff_t hd[] = {64, 72, 80, 96, 128, 5, 17};
    static const ptrdiff_t tokens[][2] = {{50, 50}, {1, 300}, {33, 7}, {270, 3}};
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 4; j++) {
            lw_attention_shape s = {.tq = tokens[j][0], .tk = tokens[j][1], .heads = 1 + j % 2};
            s.hd = hd[i];
            s.q_pitch = s.heads * s.hd + i;
            s.k_pitch = s.v_pitch = s.heads * s.hd + j;
            low_case(t, s, LW_NUM_F32, 1.5);
            low_case(t, s, LW_NUM_BF16, 1.5);
        }
}

/* What rounding to bf16 does to the result, against f64 of unrounded operands: the bound that docs
 * give. */
static void low_error(check *t)
{
    static const ptrdiff_t tokens[] = {50, 257}, hd[] = {64, 72};
    for (int i = 0; i < 2; i++) {
        problem p = problem_new(
            t, (lw_attention_shape){.tq = tokens[i], .tk = tokens[i], .heads = 2, .hd = hd[i]}, 0,
            1.5);
        oracle_forward(&p);
        double err = 0, norm = 0;
        lw_bf16 *x = round_in_place(t, p.x[0], p.n[0]);
        forward_bf16(t, t->isa, &p, &x, LW_NUM_F32, p.o, NULL);
        for (int64_t j = 0; j < p.no; j++) {
            err += ((double)p.o[j] - p.o_d[j]) * ((double)p.o[j] - p.o_d[j]);
            norm += p.o_d[j] * p.o_d[j];
        }
        t->compared++;
        if (!(sqrt(err / norm) < 5e-3))
            fail_msg("bf16 is off by %g", sqrt(err / norm));
        check_next(t);
    }
}

/* The gradients of bf16 of a level, and of the reference from the same o and log-sums. P and dS are rounded at
 * edges that the order of sums moves: half a unit, 2^-9, of some of them; and P by 3e-6. */
static void low_backward_case(check *t, lw_attention_shape s, double range, int add)
{
    problem p = problem_new(t, s, 1, range);
    float *got[3], *want[3];
    lw_bf16 *x[3], *o = check_bytes(t, (size_t)p.no * sizeof *o, 1),
                   *g = round_in_place(t, p.dout, p.no);
    p.s.store = LW_NUM_BF16;
    for (int i = 0; i < p.n_buf; i++)
        x[i] = round_in_place(t, p.x[i], p.n[i]);
    for (ptrdiff_t task = 0; task < lw_attention_tasks(&p.s); task++)
        kernels_of(LW_ISA_REF)
            ->forward_bf16(o, p.lse, PART(&p, x, 0), PART(&p, x, 1), PART(&p, x, 2), &p.s, task,
                           NULL);
    for (int i = 0; i < p.n_buf; i++) {
        got[i] = add ? check_in(t, p.n[i], 1, -1, 1) : check_out(t, p.n[i], 1);
        want[i] = check_out(t, p.n[i], 0);
        memcpy(want[i], got[i], (size_t)p.n[i] * sizeof **want);
    }
    for (ptrdiff_t h = s.heads - 1; h >= 0; h--)
        for (int ref = 0; ref < 2; ref++) {
            float *const *d = ref ? want : got;
            kernels_of(ref ? LW_ISA_REF : t->isa)
                ->backward_bf16(PART(&p, d, 0), PART(&p, d, 1), PART(&p, d, 2), g, o, p.lse,
                                PART(&p, x, 0), PART(&p, x, 1), PART(&p, x, 2), &p.s, h, add,
                                p.scratch);
        }
    for (int i = 0; i < p.n_buf; i++)
        for (ptrdiff_t r = 0; r < tokens_of(&p, i); r++) {
            const ptrdiff_t at = r * pitch_of(&p, i), w = width(&p);
            check_close_f(t, got[i] + at, want[i] + at, w,
                          (check_tol){.abs = 4e-3 * range, .rel = 1e-3},
                          "operand %d, row %td of %td, hd %td", i, r, tokens_of(&p, i), s.hd);
            if (!add && r + 1 < tokens_of(&p, i))
                check_poisoned(t, got[i] + at + w, pitch_of(&p, i) - w, "gap of operand %d", i);
        }
    check_next(t);
}

static void low_backward(check *t)
{
    static const ptrdiff_t hd[] = {64, 72, 5, 17, 32, 1, 130};
    static const ptrdiff_t tokens[][2] = {{65, 65}, {1, 97}, {33, 7}, {70, 131}, {16, 16}, {1, 1}};
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 6; j++) {
            lw_attention_shape s = {.tq = tokens[j][0], .tk = tokens[j][1], .heads = 1 + j % 2};
            s.hd = hd[i];
            s.q_pitch = s.heads * s.hd + i;
            s.k_pitch = s.v_pitch = s.heads * s.hd + j;
            low_backward_case(t, s, j == 3 ? 3 : 1.5, (i + j) % 3 == 0);
        }
}

/* What rounding to bf16 does to the gradients, against f64 of unrounded operands. */
static void low_backward_error(check *t)
{
    problem p = problem_new(t, (lw_attention_shape){.tq = 257, .tk = 257, .heads = 2, .hd = 64}, 0,
                            1.5);
    oracle_forward(&p);
    oracle_backward(&p);
    double err[3] = {0}, norm[3] = {0};
    lw_bf16 *x[3] = {round_in_place(t, p.x[0], p.n[0])}, *g = round_in_place(t, p.dout, p.no),
            *o = check_bytes(t, (size_t)p.no * sizeof *o, 1);
    float *d[3] = {check_out(t, p.n[0], 0)};
    forward_bf16(t, t->isa, &p, x, LW_NUM_F32, p.o, p.lse);
    for (int64_t i = 0; i < p.no; i++)
        o[i] = lw_bf16_of_f32(p.o[i]);
    for (ptrdiff_t h = 0; h < p.s.heads; h++)
        kernels_of(t->isa)->backward_bf16(PART(&p, d, 0), PART(&p, d, 1), PART(&p, d, 2), g, o,
                                          p.lse, PART(&p, x, 0), PART(&p, x, 1), PART(&p, x, 2),
                                          &p.s, h, 0, p.scratch);
    for (int64_t i = 0; i < p.n[0]; i++) {
        const double e = (double)d[0][i] - p.dx_d[0][i];
        err[i % (3 * p.c) / p.c] += e * e;
        norm[i % (3 * p.c) / p.c] += p.dx_d[0][i] * p.dx_d[0][i];
    }
    t->compared++;
    for (int i = 0; i < 3; i++)
        if (!(sqrt(err[i] / norm[i]) < 8e-3))
            fail_msg("gradient %d of bf16 is off by %g", i, sqrt(err[i] / norm[i]));
    check_next(t);
}

static double objective(problem *p)
{
    double sum = 0;
    oracle_forward(p);
    for (int64_t i = 0; i < p->no; i++)
        sum += p->dout_d[i] * p->o_d[i];
    return sum;
}

static void differences(check *t)
{
    problem p = problem_new(
        t,
        (lw_attention_shape){
            .tq = 4, .tk = 5, .heads = 2, .hd = 3, .q_pitch = 6, .k_pitch = 6, .v_pitch = 6},
        0, 1.5);
    oracle_forward(&p);
    oracle_backward(&p);
    for (int b = 0; b < p.n_buf; b++)
        for (int64_t i = 0; i < p.n[b]; i++) {
            double h = 1e-5, was = p.x_d[b][i];
            p.x_d[b][i] = was + h;
            double up = objective(&p);
            p.x_d[b][i] = was - h;
            double slope = (up - objective(&p)) / (2 * h);
            p.x_d[b][i] = was;
            t->compared++;
            if (fabs(slope - p.dx_d[b][i]) > 1e-8 * (1 + fabs(slope)))
                fail_msg("element %lld of operand %d: difference %.12g, gradient %.12g",
                         (long long)i, b, slope, p.dx_d[b][i]);
        }
}

/* Rotary positions, in ranges and in place; turned back they are x again. */
/* What is not a number in a key is none in any result of its head, and in no other's. */
/* Queries and keys so alike and so large that the log of how many there are is lost beside a score: shares are equal. */
static void equal_and_huge(check *t)
{
    const check_tol tol = {.abs = 3e-6, .rel = 1e-5};
    for (ptrdiff_t tokens = 1; tokens < 200; tokens = 5 * tokens + 2) {
        problem p = problem_new(
            t, (lw_attention_shape){.tq = tokens, .tk = tokens, .heads = 2, .hd = 16}, 1, 1);
        double *mean = check_doubles(t, p.c);
        for (ptrdiff_t i = 0; i < tokens; i++)
            for (ptrdiff_t c = 0; c < p.c; c++) {
                PART(&p, p.x, 0)
                [i * p.s.q_pitch + c] = PART(&p, p.x, 1)[i * p.s.k_pitch + c] = 1e10f;
                mean[c] += (double)PART(&p, p.x, 2)[i * p.s.v_pitch + c] / (double)tokens;
            }
        forward(t, &p);
        for (ptrdiff_t i = 0; i < tokens; i++)
            check_close(t, p.o + i * p.s.o_pitch, mean, p.c, tol, "%td tokens, query %td", tokens,
                        i);
        check_next(t);
    }
}

static void check_spoiled(check *t, const problem *p, const float *o, const char *what)
{
    for (ptrdiff_t r = 0; r < p->s.tq; r++)
        for (ptrdiff_t c = 0; c < p->c; c++) {
            t->compared++;
            if (!isnan(o[r * p->s.o_pitch + c]) != (c >= p->s.hd))
                fail_msg("%s of %td tokens, head of %td: query %td, channel %td is %g", what,
                         p->s.tq, p->s.hd, r, c, (double)o[r * p->s.o_pitch + c]);
        }
}

static void not_a_number(check *t)
{
    static const ptrdiff_t hd[] = {5, 8, 16, 24, 32, 64, 80};
    for (int i = 0; i < (int)LW_COUNT(hd); i++)
        for (ptrdiff_t tokens = 3; tokens < 200; tokens *= 7) {
            problem p = problem_new(
                t, (lw_attention_shape){.tq = tokens, .tk = tokens, .heads = 2, .hd = hd[i]}, 1, 1);
            p.x[0][p.c + (tokens - 2) * p.s.k_pitch] = NAN;
            forward(t, &p);
            check_spoiled(t, &p, p.o, "f32");
            lw_bf16 *low[3] = {round_in_place(t, p.x[0], p.n[0])};
            forward_bf16(t, t->isa, &p, low, LW_NUM_F32, p.o, NULL);
            check_spoiled(t, &p, p.o, "bf16");
            check_next(t);
        }
}

static void rope(check *t)
{
    static lw_kernels k[LW_ISA_COUNT];
    lw_kernels_init(&k[t->isa], t->isa);
    for (ptrdiff_t half = 1; half < 40; half += 1 + half / 4)
        for (ptrdiff_t pieces = 1; pieces <= 3; pieces++) {
            enum { TOKENS = 5, ROWS = 13 };
            lw_rope_shape s = {.c = 4 * half * pieces, .d = 2 * half, .tokens = TOKENS, pieces};
            int64_t n = ROWS * s.c;
            float *x = check_in(t, n, 1, -1, 1), *y = check_out(t, n, 1),
                  *again = check_out(t, n, 0);
            float *table = check_in(t, TOKENS * pieces * s.d, 0, -1, 1);
            double *want = check_doubles(t, n);
            for (int64_t i = 0; i < n; i++) {
                int64_t r = i / s.c, at = i % s.d, angle = at % half;
                const float *row = table + (r % TOKENS * pieces + i % s.c / s.d % pieces) * s.d;
                double other = (double)(at < half ? -x[i + half] : x[i - half]);
                want[i] = (double)x[i] * (double)row[angle] + other * (double)row[half + angle];
            }
            k[t->isa].attention.rope(y, x, table, 1, &s, 0, ROWS);
            check_close(t, y, want, n, (check_tol){.abs = 3e-7}, "rope of %td", s.d);
            memcpy(again, x, (size_t)n * sizeof *x);
            k[t->isa].attention.rope(again, again, table, 1, &s, 4, ROWS);
            k[t->isa].attention.rope(again, again, table, 1, &s, 0, 4);
            check_same(t, again, y, (size_t)n * sizeof *y, "rope of %td in place", s.d);
            for (ptrdiff_t i = 0; i < TOKENS * pieces * half; i++) {
                float *cosine = table + i / half * s.d + i % half, angle = 7 * cosine[half];
                cosine[0] = cosf(angle);
                cosine[half] = sinf(angle);
            }
            k[t->isa].attention.rope(y, x, table, 1, &s, 0, ROWS);
            k[t->isa].attention.rope(y, y, table, -1, &s, 0, ROWS);
            check_close_f(t, y, x, n, (check_tol){.abs = 4e-7}, "rope of %td and back", s.d);
            check_next(t);
        }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"shapes", shapes},
                                       {"cross", cross},
                                       {"parts", parts},
                                       {"long_rows", long_rows},
                                       {"low", low},
                                       {"low_narrow", low_narrow},
                                       {"low_error", low_error},
                                       {"low_backward", low_backward},
                                       {"low_backward_error", low_backward_error},
                                       {"differences", differences},
                                       {"equal_and_huge", equal_and_huge},
                                       {"not_a_number", not_a_number},
                                       {"rope", rope}};
    return check_main(argc, argv, "attention", cases, LW_COUNT(cases));
}
