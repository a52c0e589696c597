/* SPDX-License-Identifier: Apache-2.0 */
/* Feature statistics: every level against the double reference, the reference's gradient against
 * differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static const lw_stats_kernels *kernels_of(lw_isa isa)
{
    static lw_kernels k[LW_ISA_COUNT];
    lw_kernels_init(&k[isa], isa);
    return &k[isa].stats;
}

enum { OUTS = 6 }; /* mean std mean2 std2 mean4 std4 */

typedef struct problem {
    lw_stats_shape s;
    int64_t n, rows[OUTS];
    float *x, *g[OUTS];
    double *x_d, *g_d[OUTS], *out_d[OUTS], *dx_d;
} problem;

static double *widen(check *t, const float *p, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)p[i];
    return d;
}

/* Outputs whose bit of `wanted` is clear are not asked for. */
static problem problem_new(check *t, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c, ptrdiff_t gap,
                           unsigned wanted)
{
    problem p = {.s = {.h = h, .w = w, .c = c, .pitch = c + gap}, .n = (h * w - 1) * (c + gap) + c};
    p.x = check_in(t, p.n, (int)(c & 1), -1, 3);
    p.x_d = widen(t, p.x, p.n);
    p.dx_d = check_doubles(t, p.n);
    for (int i = 0; i < OUTS; i++) {
        ptrdiff_t edge = i < 2 ? 0 : i < 4 ? 2 : 4;
        p.rows[i] = edge ? h / edge * (w / edge) : 1;
        if (!(wanted >> i & 1))
            continue;
        p.g[i] = check_in(t, p.rows[i] * c, (int)(c & 1), -1, 1);
        p.g_d[i] = widen(t, p.g[i], p.rows[i] * c);
        p.out_d[i] = check_doubles(t, p.rows[i] * c);
    }
    return p;
}

static void oracle_forward(problem *p)
{
    double **o = p->out_d;
    lw_stats_forward_f64(o[0], o[1], o[2], o[3], o[4], o[5], p->x_d, &p->s, 0, p->s.c);
}

static void one(check *t, problem *p, int add)
{
    const lw_stats_kernels *k = kernels_of(t->isa);
    const lw_stats_shape *s = &p->s;
    float *o[OUTS] = {NULL}, *dx = add ? check_in(t, p->n, 1, -1, 1) : check_out(t, p->n, 1);
    check_tol tol = {.abs = 3e-6, .rel = 4e-6};
    for (int i = 0; i < OUTS; i++)
        o[i] = p->g[i] ? check_out(t, p->rows[i] * s->c, 1) : NULL;
    for (int64_t i = 0; add && i < p->n; i++)
        p->dx_d[i] = (double)dx[i];
    oracle_forward(p);
    lw_stats_backward_f64(p->dx_d, p->g_d[0], p->g_d[1], p->g_d[2], p->g_d[3], p->g_d[4], p->g_d[5],
                          p->x_d, s, 0, s->c, add);
    ptrdiff_t cut = s->c / 3; /* two ranges, the later one first */
    k->forward(o[0], o[1], o[2], o[3], o[4], o[5], p->x, s, cut, s->c);
    k->forward(o[0], o[1], o[2], o[3], o[4], o[5], p->x, s, 0, cut);
    k->backward(dx, p->g[0], p->g[1], p->g[2], p->g[3], p->g[4], p->g[5], p->x, s, cut, s->c, add);
    k->backward(dx, p->g[0], p->g[1], p->g[2], p->g[3], p->g[4], p->g[5], p->x, s, 0, cut, add);
    for (int i = 0; i < OUTS; i++)
        if (o[i])
            check_close(t, o[i], p->out_d[i], p->rows[i] * s->c, tol, "output %d h=%td w=%td c=%td",
                        i, s->h, s->w, s->c);
    for (ptrdiff_t i = 0; i < s->h * s->w; i++) {
        check_close(t, dx + i * s->pitch, p->dx_d + i * s->pitch, s->c,
                    (check_tol){.abs = 3e-5, .rel = 3e-5}, "dx h=%td w=%td c=%td add=%d pixel %td",
                    s->h, s->w, s->c, add, i);
        if (!add && i + 1 < s->h * s->w)
            check_poisoned(t, dx + i * s->pitch + s->c, s->pitch - s->c, "gap of dx");
    }
    for (int i = 0; i < OUTS; i++) { /* one range: the same bits */
        float *again = o[i] ? check_out(t, p->rows[i] * s->c, 0) : NULL;
        float *q[OUTS] = {NULL};
        if (!again)
            continue;
        q[i] = again;
        k->forward(q[0], q[1], q[2], q[3], q[4], q[5], p->x, s, 0, s->c);
        check_same(t, again, o[i], (size_t)(p->rows[i] * s->c) * sizeof(float), "output %d alone",
                   i);
    }
}

static void shapes(check *t)
{
    static const ptrdiff_t size[][2] = {{1, 1}, {2, 2}, {3, 5}, {4, 4},
                                        {5, 7}, {6, 8}, {8, 4}, {13, 9}};
    static const ptrdiff_t channels[] = {1, 3, 8, 16, 17, 33};
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 6; j++) {
            unsigned wanted = (i + j) % 3 == 0 ? 0x3f : (i + j) % 3 == 1 ? 0x2a : 0x15 << (j & 1);
            problem p = problem_new(t, size[i][0], size[i][1], channels[j], j & 1 ? 2 : 0, wanted);
            one(t, &p, (i ^ j) & 1);
            check_next(t);
        }
}

static void differences(check *t)
{
    problem p = problem_new(t, 5, 6, 2, 0, 0x3f);
    oracle_forward(&p);
    lw_stats_backward_f64(p.dx_d, p.g_d[0], p.g_d[1], p.g_d[2], p.g_d[3], p.g_d[4], p.g_d[5], p.x_d,
                          &p.s, 0, 2, 0);
    for (int64_t i = 0; i < p.n; i++) {
        double h = 1e-5, was = p.x_d[i], sum[2] = {0, 0};
        for (int side = 0; side < 2; side++) {
            p.x_d[i] = was + (side ? -h : h);
            oracle_forward(&p);
            for (int o = 0; o < OUTS; o++)
                for (int64_t e = 0; e < p.rows[o] * 2; e++)
                    sum[side] += p.g_d[o][e] * p.out_d[o][e];
        }
        p.x_d[i] = was;
        t->compared++;
        double slope = (sum[0] - sum[1]) / (2 * h);
        if (fabs(slope - p.dx_d[i]) > 1e-7)
            fail_msg("element %lld: difference %.12g, gradient %.12g", (long long)i, slope,
                     p.dx_d[i]);
    }
}

/* Ranges of whole cache lines but the last, one behind the other; of 32768 elements at least, 16 at most. */
static void tasks(check *t)
{
    static const struct {
        ptrdiff_t h, w, c, want;
    } of[] = {{4, 4, 64, 1},     {32, 32, 63, 1},  {32, 32, 64, 2},     {64, 64, 16, 1},
              {64, 64, 17, 2},   {64, 64, 128, 8}, {64, 64, 130, 9},    {64, 64, 256, 16},
              {64, 64, 272, 16}, {31, 33, 100, 3}, {256, 256, 1000, 16}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const lw_stats_shape s = {.h = of[i].h, .w = of[i].w, .c = of[i].c};
        const ptrdiff_t n = lw_stats_tasks(&s), none = 0;
        check_same(t, &n, &of[i].want, sizeof n, "tasks of shape %zu", i);
        ptrdiff_t end = 0;
        for (ptrdiff_t k = 0; k < n; k++) {
            ptrdiff_t c0, c1;
            lw_stats_range(&s, k, &c0, &c1);
            const ptrdiff_t ragged = c0 % 16;
            check_same(t, &c0, &end, sizeof c0, "begin of task %td of shape %zu", k, i);
            check_same(t, &ragged, &none, sizeof ragged, "task %td of shape %zu", k, i);
            check_same(t, &(bool){c1 > c0}, &(bool){true}, sizeof(bool), "an empty task");
            end = c1;
        }
        check_same(t, &end, &of[i].c, sizeof end, "end of shape %zu", i);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"shapes", shapes}, {"differences", differences}, {"tasks", tasks}};
    return check_main(argc, argv, "stats", cases, LW_COUNT(cases));
}
