/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: every level against the double reference, the reference's gradient against
 * differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
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

typedef struct problem {
    lw_attention_shape s;
    ptrdiff_t c;
    int64_t n, no; /* floats of qkv, of o */
    float *qkv, *dout, *o, *lse, *scratch;
    double *qkv_d, *dout_d, *o_d, *lse_d, *dqkv_d;
} problem;

static double *widen(check *t, const float *p, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)p[i];
    return d;
}

static problem problem_new(check *t, ptrdiff_t tokens, ptrdiff_t heads, ptrdiff_t hd, ptrdiff_t gap,
                           double range)
{
    problem p = {.c = heads * hd};
    p.s = (lw_attention_shape){.t = tokens,
                               .heads = heads,
                               .hd = hd,
                               .qkv_pitch = 3 * p.c + gap,
                               .o_pitch = p.c + gap,
                               .scale = (float)(1.0 / sqrt((double)hd))};
    p.n = (tokens - 1) * p.s.qkv_pitch + 3 * p.c;
    p.no = (tokens - 1) * p.s.o_pitch + p.c;
    p.qkv = check_in(t, p.n, (int)(tokens & 1), -range, range);
    p.dout = check_in(t, p.no, (int)(tokens & 1), -1, 1);
    p.o = check_out(t, p.no, 1);
    p.lse = check_out(t, heads * tokens, 0);
    size_t f = lw_attention_scratch(&p.s, 0), b = lw_attention_scratch(&p.s, 1);
    p.scratch = check_bytes(t, LW_MAX(f, b) * sizeof(float), 0);
    p.qkv_d = widen(t, p.qkv, p.n);
    p.dout_d = widen(t, p.dout, p.no);
    p.o_d = check_doubles(t, p.no);
    p.lse_d = check_doubles(t, heads * tokens);
    p.dqkv_d = check_doubles(t, p.n);
    return p;
}

static void oracle_forward(problem *p)
{
    for (ptrdiff_t task = 0; task < lw_attention_tasks(&p->s); task++)
        lw_attention_forward_f64(p->o_d, p->lse_d, p->qkv_d, p->qkv_d + p->c, p->qkv_d + 2 * p->c,
                                 &p->s, task, NULL);
}

static void oracle_backward(problem *p)
{
    double *d = p->dqkv_d, *x = p->qkv_d;
    for (ptrdiff_t h = 0; h < p->s.heads; h++)
        lw_attention_backward_f64(d, d + p->c, d + 2 * p->c, p->dout_d, p->o_d, p->lse_d, x,
                                  x + p->c, x + 2 * p->c, &p->s, h, 0, NULL);
}

static void one(check *t, problem *p, int add)
{
    const lw_attention_kernels *k = kernels_of(t->isa);
    const lw_attention_shape *s = &p->s;
    check_tol tol = {.abs = 3e-6, .rel = 1e-5};
    float *d = add ? check_in(t, p->n, 1, -1, 1) : check_out(t, p->n, 1);
    oracle_forward(p);
    for (ptrdiff_t task = lw_attention_tasks(s) - 1; task >= 0; task--)
        k->forward(p->o, p->lse, p->qkv, p->qkv + p->c, p->qkv + 2 * p->c, s, task, p->scratch);
    oracle_backward(p);
    for (int64_t i = 0; add && i < p->n; i++)
        p->dqkv_d[i] += (double)d[i];
    for (ptrdiff_t h = s->heads - 1; h >= 0; h--)
        k->backward(d, d + p->c, d + 2 * p->c, p->dout, p->o, p->lse, p->qkv, p->qkv + p->c,
                    p->qkv + 2 * p->c, s, h, add, p->scratch);
    check_close(t, p->lse, p->lse_d, s->heads * s->t, tol, "lse t=%td hd=%td", s->t, s->hd);
    check_tol grad = {.abs = 1e-5, .rel = 2e-5};
    for (ptrdiff_t i = 0; i < s->t; i++) {
        check_close(t, p->o + i * s->o_pitch, p->o_d + i * s->o_pitch, p->c, tol,
                    "o t=%td heads=%td hd=%td row %td", s->t, s->heads, s->hd, i);
        check_close(t, d + i * s->qkv_pitch, p->dqkv_d + i * s->qkv_pitch, 3 * p->c, grad,
                    "dqkv t=%td heads=%td hd=%td add=%d row %td", s->t, s->heads, s->hd, add, i);
        if (i + 1 < s->t && !add)
            check_poisoned(t, d + i * s->qkv_pitch + 3 * p->c, s->qkv_pitch - 3 * p->c,
                           "gap of dqkv");
        if (i + 1 < s->t)
            check_poisoned(t, p->o + i * s->o_pitch + p->c, s->o_pitch - p->c, "gap of o");
    }
}

static void shapes(check *t)
{
    static const ptrdiff_t hd[] = {1, 5, 8, 16, 17, 32, 40, 64};
    static const ptrdiff_t tokens[] = {1, 2, 15, 16, 33, 65, 97};
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 7; j++) {
            problem p = problem_new(t, tokens[j], 1 + (i + j) % 3, hd[i], (i + j) % 2 ? 3 : 0, 1.5);
            one(t, &p, (i + j) % 4 == 0);
            check_next(t);
        }
}

/* More than one key tile and row block; scores spread over tens of units so that the running
 * maximum moves. */
static void long_rows(check *t)
{
    static const ptrdiff_t tokens[] = {256, 257, 300, 520};
    for (int j = 0; j < 4; j++) {
        problem p = problem_new(t, tokens[j], 1, j == 1 ? 64 : 12, 0, j == 2 ? 6.0 : 1.0);
        const lw_attention_kernels *k = kernels_of(t->isa);
        oracle_forward(&p);
        for (ptrdiff_t task = lw_attention_tasks(&p.s) - 1; task >= 0; task--)
            k->forward(p.o, p.lse, p.qkv, p.qkv + p.c, p.qkv + 2 * p.c, &p.s, task, p.scratch);
        check_tol tol = {.abs = j == 2 ? 5e-5 : 1e-5,
                         .rel = 1e-5}; /* scores of 100 carry errors of 1e-5 */
        check_close(t, p.o, p.o_d, p.no, tol, "o t=%td", tokens[j]);
        check_close(t, p.lse, p.lse_d, p.s.heads * p.s.t, tol, "lse t=%td", tokens[j]);
        check_next(t);
    }
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
    problem p = problem_new(t, 5, 2, 3, 0, 1.5);
    oracle_forward(&p);
    oracle_backward(&p);
    for (int64_t i = 0; i < p.n; i++) {
        double h = 1e-5, was = p.qkv_d[i];
        p.qkv_d[i] = was + h;
        double up = objective(&p);
        p.qkv_d[i] = was - h;
        double slope = (up - objective(&p)) / (2 * h);
        p.qkv_d[i] = was;
        t->compared++;
        if (fabs(slope - p.dqkv_d[i]) > 1e-8 * (1 + fabs(slope)))
            fail_msg("element %lld: difference %.12g, gradient %.12g", (long long)i, slope,
                     p.dqkv_d[i]);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"shapes", shapes}, {"long_rows", long_rows}, {"differences", differences}};
    return check_main(argc, argv, "attention", cases, LW_COUNT(cases));
}
