/* SPDX-License-Identifier: Apache-2.0 */
/* Group norm: every level against the double reference, the reference's gradient against
 * differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/operands.h"

static const lw_norm_kernels *kernels_of(lw_isa isa)
{
    static lw_kernels k[LW_ISA_COUNT];
    lw_kernels_init(&k[isa], isa);
    return &k[isa].norm;
}

/* Everything one case needs: floats, and the same numbers in double. gap: extra floats between
 * pixels. */
typedef struct problem {
    lw_norm_shape s;
    int64_t nx, ny;
    float *x, *dy, *gamma, *beta, *scale, *shift;
    double *x_d, *dy_d, *gamma_d, *beta_d, *scale_d, *shift_d;
    double *y_d, *mean_d, *rstd_d, *dx_d, *dgamma_d, *dbeta_d, *dscale_d, *dshift_d;
    float *scratch;
} problem;

static double *widen(check *t, const float *p, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; p && i < n; i++)
        d[i] = (double)p[i];
    return p ? d : NULL;
}

static problem problem_new(check *t, ptrdiff_t hw, ptrdiff_t groups, ptrdiff_t per, ptrdiff_t gap,
                           lw_act act, int mod)
{
    problem p = {.s = {.hw = hw,
                       .c = groups * per,
                       .groups = groups,
                       .x_pitch = groups * per + gap,
                       .y_pitch = groups * per + 2 * gap,
                       .eps = 1e-5f,
                       .act = act,
                       .rms = (hw + per + mod) % 3 == 0}};
    ptrdiff_t c = p.s.c;
    int shift = (int)(hw & 1);
    p.nx = (hw - 1) * p.s.x_pitch + c;
    p.ny = (hw - 1) * p.s.y_pitch + c;
    p.x = check_in(t, p.nx, shift, -1, 3);
    p.dy = check_in(t, p.ny, shift, -1, 1);
    p.gamma = mod & 1 ? check_in(t, c, shift, 0.5, 1.5) : NULL;
    p.beta = mod & 1 ? check_in(t, c, shift, -1, 1) : NULL;
    p.scale = mod & 2 ? check_in(t, c, shift, -0.5, 0.5) : NULL;
    p.shift = mod & 2 ? check_in(t, c, shift, -1, 1) : NULL;
    p.x_d = widen(t, p.x, p.nx);
    p.dy_d = widen(t, p.dy, p.ny);
    p.gamma_d = widen(t, p.gamma, c);
    p.beta_d = widen(t, p.beta, c);
    p.scale_d = widen(t, p.scale, c);
    p.shift_d = widen(t, p.shift, c);
    p.y_d = check_doubles(t, p.ny);
    p.mean_d = check_doubles(t, groups);
    p.rstd_d = check_doubles(t, groups);
    p.dx_d = check_doubles(t, p.nx);
    p.dgamma_d = check_doubles(t, c);
    p.dbeta_d = check_doubles(t, c);
    p.dscale_d = check_doubles(t, c);
    p.dshift_d = check_doubles(t, c);
    p.scratch = check_bytes(t, lw_norm_scratch(&p.s) * sizeof(float), 0);
    return p;
}

static void oracle(problem *p)
{
    lw_norm_forward_f64(p->y_d, p->mean_d, p->rstd_d, p->x_d, p->gamma_d, p->beta_d, p->scale_d,
                        p->shift_d, &p->s, 0, p->s.groups, NULL);
    lw_norm_backward_f64(p->dx_d, p->dgamma_d, p->dbeta_d, p->dscale_d, p->dshift_d, p->dy_d,
                         p->x_d, p->mean_d, p->rstd_d, p->gamma_d, p->beta_d, p->scale_d,
                         p->shift_d, &p->s, 0, p->s.groups, 0, NULL);
}

/* got [HW, pitch] against want of the same layout, gaps still poisoned (none_in_gaps) */
static void check_rows(check *t, const float *got, const double *want, const lw_norm_shape *s,
                       ptrdiff_t pitch, int gaps, check_tol tol, const char *what)
{
    for (ptrdiff_t i = 0; i < s->hw; i++) {
        check_close(t, got + i * pitch, want + i * pitch, s->c, tol,
                    "%s hw=%td c=%td groups=%td act=%d row %td", what, s->hw, s->c, s->groups,
                    (int)s->act, i);
        if (gaps && i + 1 < s->hw)
            check_poisoned(t, got + i * pitch + s->c, pitch - s->c, "%s row %td", what, i);
    }
}

/* Tasks of a sample: at least three where it has as many groups, however little it is. */
static ptrdiff_t cut_into(const lw_norm_shape *s)
{
    return LW_MAX(lw_norm_tasks(s, 1), LW_MIN(s->groups, (ptrdiff_t)3));
}

static void one_forward(check *t, problem *p)
{
    const lw_norm_kernels *k = kernels_of(t->isa);
    const lw_norm_shape *s = &p->s;
    float *y = check_out(t, p->ny, 1), *mean = check_out(t, s->groups, 0),
          *rstd = check_out(t, s->groups, 1);
    check_tol tol = {.abs = 2e-6, .rel = 4e-6};
    double steep = 0; /* few, nearly equal numbers: rounding of x and mean is multiplied by rstd */
    oracle(p);
    for (ptrdiff_t g = 0; g < s->groups; g++)
        steep = fmax(steep, p->rstd_d[g]);
    check_tol tol_y = {.abs = tol.abs + 4e-7 * steep, .rel = tol.rel};
    k->forward(y, mean, rstd, p->x, p->gamma, p->beta, p->scale, p->shift, s, 0, s->groups,
               p->scratch);
    check_rows(t, y, p->y_d, s, s->y_pitch, 1, tol_y, "y");
    check_close(t, mean, p->mean_d, s->groups, tol, "mean");
    check_close(t, rstd, p->rstd_d, s->groups, (check_tol){.rel = tol.rel + 4e-7 * steep}, "rstd");
    float *again = check_out(t, p->ny, 0); /* by tasks, backwards: same bits */
    for (ptrdiff_t tasks = cut_into(s), task = tasks - 1; task >= 0; task--) {
        ptrdiff_t g0, g1;
        lw_norm_range(s, tasks, task, &g0, &g1);
        k->forward(again, mean, rstd, p->x, p->gamma, p->beta, p->scale, p->shift, s, g0, g1,
                   p->scratch);
    }
    check_same(t, again, y, (size_t)p->ny * sizeof(float), "tasks of hw=%td c=%td", s->hw, s->c);
}

static void forward(check *t)
{
    static const ptrdiff_t per[] = {1, 2, 3, 8, 17};
    for (int i = 0; i < 5; i++)
        for (ptrdiff_t groups = 1; groups <= 9; groups += 4)
            for (ptrdiff_t hw = 1; hw <= 81; hw = hw * 3 + (i & 1))
                for (int mod = 0; mod < 4; mod++) {
                    problem p = problem_new(t, hw, groups, per[i], mod == 2 ? 3 : 0,
                                            (lw_act)((mod + i) % 3), mod);
                    if (hw * per[i] == 1)
                        p.s.eps = 0.1f; /* one number has no deviation: y is beta */
                    one_forward(t, &p);
                    check_next(t);
                }
}

/* x as bf16, and rounded where it is. */
static lw_bf16 *round_x(check *t, problem *p)
{
    const int64_t n = (int64_t)(p->s.hw - 1) * p->s.x_pitch + p->s.c;
    lw_bf16 *low = check_bytes(t, (size_t)n * sizeof *low, 1);
    for (int64_t i = 0; i < n; i++) {
        low[i] = lw_bf16_of_f32(p->x[i]);
        p->x[i] = lw_bf16_to_f32(low[i]);
    }
    return low;
}

/* Results of any type, from x of either, are forward's, rounded as kernels/cast rounds them; by tasks, backwards. */
static void one_narrow(check *t, problem *p, lw_num num, lw_num x_num)
{
    static lw_kernels all[LW_ISA_COUNT];
    const lw_norm_shape *s = &p->s;
    const float pair[2] = {3.0f / 255, 40.0f};
    const size_t item[LW_NUM_COUNT] = {sizeof(float), sizeof(lw_bf16), 1};
    size_t bytes = (size_t)p->ny * item[num];
    int64_t words = (int64_t)(bytes + 3) / 4;
    float *y = check_out(t, p->ny, 0), *mean = check_out(t, s->groups, 0),
          *rstd = check_out(t, s->groups, 1), *have = check_out(t, words, 1),
          *want = check_out(t, words, 0);
    lw_kernels_init(&all[t->isa], t->isa);
    const lw_kernels *k = &all[t->isa];
    lw_norm_shape narrow = *s;
    const void *x = x_num == LW_NUM_BF16 ? (const void *)round_x(t, p) : p->x;
    narrow.x_num = x_num;
    k->norm.forward(y, mean, rstd, p->x, p->gamma, p->beta, p->scale, p->shift, s, 0, s->groups,
                    p->scratch);
    if (num == LW_NUM_F32)
        memcpy(want, y, bytes);
    else if (num == LW_NUM_BF16)
        k->cast.f32_to_bf16((lw_bf16 *)(void *)want, y, p->ny);
    else
        k->cast.f32_to_u8((uint8_t *)(void *)want, y, p->ny, pair[0], (int32_t)pair[1]);
    for (ptrdiff_t tasks = cut_into(s), task = tasks - 1; task >= 0; task--) {
        ptrdiff_t g0, g1;
        lw_norm_range(s, tasks, task, &g0, &g1);
        k->norm.forward_narrow(have, mean, rstd, x, p->gamma, p->beta, p->scale, p->shift, num,
                               pair, &narrow, g0, g1, p->scratch);
    }
    if (num == LW_NUM_BF16 && s->act == LW_ACT_SILU)
        check_rounded(t, (const lw_bf16 *)(const void *)have, y, p->ny, s->act, "norm");
    else
        check_same(t, have, want, bytes, "type %d of %d hw=%td c=%td", num, x_num, s->hw, s->c);
}

static void narrow(check *t)
{
    static const ptrdiff_t per[] = {1, 2, 3, 8, 17};
    for (int i = 0; i < 5; i++)
        for (ptrdiff_t groups = 1; groups <= 9; groups += 4)
            for (ptrdiff_t hw = 1; hw <= 81; hw = hw * 3 + (i & 1)) {
                problem p = problem_new(t, hw, groups, per[i], 0, (lw_act)((groups + i) % 3),
                                        (int)groups & 3);
                if (hw * per[i] == 1)
                    p.s.eps = 0.1f;
                one_narrow(t, &p, LW_NUM_BF16, LW_NUM_F32);
                one_narrow(t, &p, LW_NUM_S8, LW_NUM_F32);
                for (lw_num num = LW_NUM_F32; num <= LW_NUM_S8; num++)
                    one_narrow(t, &p, num, LW_NUM_BF16);
                check_next(t);
            }
}

/* Rows of any length in f32 and bf16, together and one by one. */
static void one_layer(check *t, ptrdiff_t c, int mod, lw_num num)
{
    enum { ROWS = 5 };
    const lw_norm_kernels *k = kernels_of(t->isa), *ref = kernels_of(LW_ISA_REF);
    const size_t size = num == LW_NUM_F32 ? sizeof(float) : sizeof(lw_bf16);
    lw_norm_shape s = {.hw = 1,
                       .c = c,
                       .groups = 1,
                       .x_pitch = c + 3,
                       .y_pitch = c + mod,
                       .eps = 1e-5f,
                       .act = (lw_act)(mod % 3),
                       .rms = c % 3 == 0};
    int64_t ny = (ROWS - 1) * s.y_pitch + c;
    float *x = check_in(t, ROWS * s.x_pitch, 1, -1, 3), *mean = check_out(t, 2 * ROWS, 1),
          *rstd = mean + ROWS, *want_mean = check_out(t, 2 * ROWS, 0),
          *want_rstd = want_mean + ROWS;
    float *gamma = mod & 1 ? check_in(t, c, 1, 0.5, 1.5) : NULL,
          *beta = mod & 1 ? check_in(t, c, 0, -1, 1) : NULL,
          *scale = mod & 2 ? check_in(t, ROWS * c, 1, -0.5, 0.5) : NULL,
          *shift = mod & 2 ? check_in(t, ROWS * c, 0, -1, 1) : NULL;
    char *got = check_bytes(t, (size_t)ny * size, 1), *alone = check_bytes(t, (size_t)ny * size, 0),
         *want = check_bytes(t, (size_t)ny * size, 0);
    lw_bf16 *also = num == LW_NUM_F32 ? check_bytes(t, ROWS * (size_t)c * sizeof *also, 0) : NULL;
    ref->rows(want, NULL, want_mean, want_rstd, x, gamma, beta, scale, shift, num, &s, ROWS);
    k->rows(got, also, mean, rstd, x, gamma, beta, scale, shift, num, &s, ROWS);
    /* few, nearly equal numbers: rounding of x and mean is multiplied by rstd */
    double steep = c < 4 ? 4e-7 * 320 : 4e-6, coarse = num == LW_NUM_F32 ? 0 : 8e-3;
    const check_tol tol = {.abs = 2e-6 + steep, .rel = 4e-6 + coarse};
    check_close_f(t, mean, want_mean, ROWS, (check_tol){.abs = 1e-6}, "mean c=%td", c);
    check_close_f(t, rstd, want_rstd, ROWS, (check_tol){.rel = 1e-5 + steep}, "rstd c=%td", c);
    for (ptrdiff_t r = 0; r < ROWS; r++)
        for (ptrdiff_t i = r * s.y_pitch; i < r * s.y_pitch + c; i++) {
            float a[2];
            for (int w = 0; w < 2; w++)
                a[w] = num == LW_NUM_F32 ? ((float *)(w ? want : got))[i]
                                         : lw_bf16_to_f32(((lw_bf16 *)(w ? want : got))[i]);
            check_close_f(t, &a[0], &a[1], 1, tol, "c=%td mod=%d num=%d", c, mod, (int)num);
        }
    for (ptrdiff_t i = 0; also && i < ROWS * c; i++) {
        lw_bf16 rounded = lw_bf16_of_f32(((float *)(void *)got)[i / c * s.y_pitch + i % c]);
        check_same(t, &also[i], &rounded, sizeof rounded, "bf16 beside f32, c=%td", c);
    }
    for (ptrdiff_t r = ROWS - 1; r >= 0; r--) {
        k->rows(alone + (size_t)(r * s.y_pitch) * size, NULL, mean + r, rstd + r, x + r * s.x_pitch,
                gamma, beta, scale ? scale + r * c : NULL, shift ? shift + r * c : NULL, num, &s,
                1);
        check_same(t, alone + (size_t)(r * s.y_pitch) * size, got + (size_t)(r * s.y_pitch) * size,
                   (size_t)c * size, "row %td alone, c=%td", r, c);
    }
    check_next(t);
}

static void layer(check *t)
{
    for (ptrdiff_t c = 1; c < 700; c += 1 + c / 3)
        for (int mod = 0; mod < 4; mod++)
            for (int narrow_y = 0; narrow_y < 2; narrow_y++)
                one_layer(t, c, mod, narrow_y ? LW_NUM_BF16 : LW_NUM_F32);
}

static void shared_backward(check *t, problem *p, int add)
{
    const lw_norm_kernels *k = kernels_of(t->isa);
    const lw_norm_shape *s = &p->s;
    float *mean = check_out(t, s->groups, 0), *rstd = check_out(t, s->groups, 0),
          *y = check_out(t, p->ny, 0);
    float *out[4], *dx = add ? check_in(t, p->nx, 1, -1, 1) : check_out(t, p->nx, 1);
    const double *want[4] = {p->dgamma_d, p->dbeta_d, p->dscale_d, p->dshift_d};
    static const char *const names[] = {"dgamma", "dbeta", "dscale", "dshift"};
    check_tol tol = {.abs = 3e-6 * (1 + sqrt((double)s->hw)), .rel = 1e-5};
    for (int i = 0; i < 4; i++)
        out[i] = check_out(t, s->c, i & 1);
    oracle(p);
    for (int64_t i = 0; add && i < p->nx; i++)
        p->dx_d[i] += (double)dx[i];
    k->forward(y, mean, rstd, p->x, p->gamma, p->beta, p->scale, p->shift, s, 0, s->groups,
               p->scratch);
    for (ptrdiff_t tasks = cut_into(s), task = tasks - 1; task >= 0; task--) {
        ptrdiff_t g0, g1;
        lw_norm_range(s, tasks, task, &g0, &g1);
        k->backward(dx, out[0], out[1], out[2], out[3], p->dy, p->x, mean, rstd, p->gamma, p->beta,
                    p->scale, p->shift, s, g0, g1, add, p->scratch);
    }
    check_rows(t, dx, p->dx_d, s, s->x_pitch, !add, tol, add ? "dx added" : "dx");
    for (int i = 0; i < 4; i++)
        check_close(t, out[i], want[i], s->c, tol, "%s hw=%td c=%td", names[i], s->hw, s->c);
    if (!add) { /* without dx the sums are the same bits */
        float *only = check_out(t, s->c, 0);
        k->backward(NULL, NULL, only, NULL, NULL, p->dy, p->x, mean, rstd, p->gamma, p->beta,
                    p->scale, p->shift, s, 0, s->groups, 0, p->scratch);
        check_same(t, only, out[1], (size_t)s->c * sizeof(float), "dbeta alone");
    }
}

static void backward(check *t)
{
    static const ptrdiff_t per[] = {2, 3, 8, 17};
    for (int i = 0; i < 4; i++)
        for (ptrdiff_t groups = 1; groups <= 9; groups += 4)
            for (ptrdiff_t hw = 2; hw <= 81; hw = hw * 3 + (i & 1))
                for (int mod = 0; mod < 8; mod++) {
                    problem p = problem_new(t, hw, groups, per[i], mod == 2 ? 3 : 0,
                                            (lw_act)((mod + i) % 3), mod & 3);
                    shared_backward(t, &p, mod >> 2);
                    check_next(t);
                }
}

/* ---- LayerNorm over rows --------------------------------------------------------------------- */

enum { ROWS = 7 };

/* Row r of the problem: x and dy of one pixel, the other operands shared but for the shift. */
static void rows_oracle(problem *p, double *dx, double *dgamma, double *dbeta)
{
    ptrdiff_t c = p->s.c;
    lw_norm_shape one = p->s;
    one.hw = 1;
    for (int r = 0; r < ROWS; r++) {
        const double *x = p->x_d + r * p->s.x_pitch, *dy = p->dy_d + r * c;
        const double *shift = p->shift_d ? p->shift_d + r * c : NULL;
        lw_norm_forward_f64(p->y_d, p->mean_d + r, p->rstd_d + r, x, p->gamma_d, p->beta_d, NULL,
                            shift, &one, 0, 1, NULL);
        lw_norm_backward_f64(dx + r * p->s.x_pitch, p->dgamma_d, p->dbeta_d, NULL, NULL, dy, x,
                             p->mean_d + r, p->rstd_d + r, p->gamma_d, p->beta_d, NULL, shift, &one,
                             0, 1, 0, NULL);
        for (ptrdiff_t i = 0; i < c; i++) {
            dgamma[i] += p->dgamma_d[i];
            dbeta[i] += p->dbeta_d[i];
        }
    }
}

static void rows_backward(check *t, problem *p, const double *want_dx, const double *want_dgamma,
                          const double *want_dbeta)
{
    ptrdiff_t c = p->s.c;
    const lw_norm_kernels *k = kernels_of(t->isa);
    float mean[ROWS], rstd[ROWS], *dx = check_out(t, p->nx, 1), *again = check_out(t, p->nx, 0);
    float *dgamma = check_out(t, c, 0), *dbeta = check_out(t, c, 1);
    double steep = 0;
    for (int r = 0; r < ROWS; r++) {
        mean[r] = (float)p->mean_d[r], rstd[r] = (float)p->rstd_d[r];
        steep = fmax(steep, p->rstd_d[r]);
    }
    check_tol tol = {.abs = 2e-5 * (1 + steep), .rel = 1e-5};
    k->rows_backward(dx, dgamma, dbeta, p->dy, p->x, mean, rstd, p->gamma, &p->s, ROWS);
    k->rows_backward(again + 4 * c, NULL, NULL, p->dy + 4 * c, p->x + 4 * c, mean + 4, rstd + 4,
                     p->gamma, &p->s, ROWS - 4);
    k->rows_backward(again, NULL, NULL, p->dy, p->x, mean, rstd, p->gamma, &p->s, 4);
    for (int r = 0; r < ROWS; r++) {
        ptrdiff_t at = r * c;
        check_close(t, dx + at, want_dx + at, c, tol, "dx of rows of %td", c);
        check_same(t, again + at, dx + at, (size_t)c * sizeof *dx, "dx in ranges");
    }
    check_close(t, dgamma, want_dgamma, c, tol, "dgamma of rows of %td", c);
    check_close(t, dbeta, want_dbeta, c, tol, "dbeta of rows of %td", c);
}

static void rows(check *t)
{
    static const ptrdiff_t widths[] = {2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 250, 256, 300};
    for (size_t k = 0; k < 2 * LW_COUNT(widths); k++) {
        size_t i = k / 2;
        bool rms = k % 2;
        ptrdiff_t c = widths[i];
        problem p = problem_new(t, ROWS, 1, c, 0, LW_ACT_NONE, i % 4 != 3);
        p.s.rms = rms;
        p.shift = i % 2 ? check_in(t, ROWS * c, 1, -1, 1) : NULL;
        p.shift_d = widen(t, p.shift, ROWS * c);
        p.mean_d = check_doubles(t, ROWS);
        p.rstd_d = check_doubles(t, ROWS);
        double *dx = check_doubles(t, p.nx), *dgamma = check_doubles(t, c);
        double *dbeta = check_doubles(t, c);
        rows_oracle(&p, dx, dgamma, dbeta);
        rows_backward(t, &p, dx, dgamma, dbeta);
        check_next(t);
    }
}

/* A large mean must not eat the variance. */
static void offset(check *t)
{
    problem p = problem_new(t, 1024, 4, 8, 0, LW_ACT_NONE, 1);
    float *y = check_out(t, p.ny, 0), *mean = check_out(t, 4, 0), *rstd = check_out(t, 4, 0);
    for (int64_t i = 0; i < p.nx; i++)
        p.x_d[i] = (double)(p.x[i] += 1000.0f);
    oracle(&p);
    kernels_of(t->isa)->forward(y, mean, rstd, p.x, p.gamma, p.beta, NULL, NULL, &p.s, 0, 4,
                                p.scratch);
    check_close(t, y, p.y_d, p.ny, (check_tol){.abs = 2e-4},
                "offset 1000"); /* mean is rounded to float: 6e-5 */
    check_close(t, rstd, p.rstd_d, 4, (check_tol){.rel = 1e-5}, "offset 1000");
}

static void in_place(check *t)
{
    problem p = problem_new(t, 27, 3, 7, 0, LW_ACT_SILU, 3);
    const lw_norm_kernels *k = kernels_of(t->isa);
    float *y = check_copy(t, p.x, p.nx, 1), *dx = check_copy(t, p.dy, p.ny, 1);
    float *mean = check_out(t, 3, 0), *rstd = check_out(t, 3, 0);
    oracle(&p);
    k->forward(y, mean, rstd, y, p.gamma, p.beta, p.scale, p.shift, &p.s, 0, 3, p.scratch);
    check_close(t, y, p.y_d, p.ny, (check_tol){.abs = 2e-6, .rel = 4e-6}, "y over x");
    k->backward(dx, NULL, NULL, NULL, NULL, dx, p.x, mean, rstd, p.gamma, p.beta, p.scale, p.shift,
                &p.s, 0, 3, 0, p.scratch);
    check_close(t, dx, p.dx_d, p.nx, (check_tol){.abs = 2e-5, .rel = 1e-5}, "dx over dy");
}

/* sum of dy * y in double, as a function of whatever was changed */
static double objective(problem *p)
{
    double sum = 0;
    lw_norm_forward_f64(p->y_d, p->mean_d, p->rstd_d, p->x_d, p->gamma_d, p->beta_d, p->scale_d,
                        p->shift_d, &p->s, 0, p->s.groups, NULL);
    for (int64_t i = 0; i < p->ny; i++)
        sum += p->dy_d[i] * p->y_d[i];
    return sum;
}

static void differences(check *t)
{
    for (int act = 0; act < 3; act++) {
        problem p = problem_new(t, 6, 2, 3, 0, (lw_act)act, 3);
        struct {
            double *at, *grad;
            int64_t n;
        } part[] = {{p.x_d, p.dx_d, p.nx},
                    {p.gamma_d, p.dgamma_d, p.s.c},
                    {p.beta_d, p.dbeta_d, p.s.c},
                    {p.scale_d, p.dscale_d, p.s.c},
                    {p.shift_d, p.dshift_d, p.s.c}};
        oracle(&p);
        for (size_t k = 0; k < LW_COUNT(part); k++)
            for (int64_t i = 0; i < part[k].n; i++) {
                double h = 1e-5, was = part[k].at[i];
                part[k].at[i] = was + h;
                double up = objective(&p);
                part[k].at[i] = was - h;
                double slope = (up - objective(&p)) / (2 * h);
                part[k].at[i] = was;
                t->compared++;
                if (fabs(slope - part[k].grad[i]) > 1e-7 * (1 + fabs(slope)))
                    fail_msg("act %d part %zu element %lld: difference %.12g, gradient %.12g", act,
                             k, (long long)i, slope, part[k].grad[i]);
            }
        check_next(t);
    }
}

/* What is not a number is none in any result of its group or row, whatever follows, and in no other's. */
static void not_a_number(check *t)
{
    for (int i = 0; i < 12; i++) {
        problem p = problem_new(t, 3 + 13 * (i / 3 % 2), 3, 5 + i, 0, (lw_act)(i % 3), 0);
        const lw_norm_shape *s = &p.s;
        float *y = check_out(t, p.ny, 0), *out = check_out(t, 2 * s->hw, 0);
        p.s.rms = i % 2;
        p.x[s->x_pitch + 1] = NAN; /* of the first group */
        kernels_of(t->isa)->forward(y, out, out + s->groups, p.x, NULL, NULL, NULL, NULL, s, 0,
                                    s->groups, p.scratch);
        for (ptrdiff_t k = 0; k < s->hw * s->c; k++)
            if (t->compared++, !isnan(y[k / s->c * s->y_pitch + k % s->c]) != (k % s->c >= 5 + i))
                fail_msg("rms %d act %d: %td of %td channels is %g", s->rms, (int)s->act, k % s->c,
                         s->c, (double)y[k]);
        lw_norm_shape row = {.hw = 1,
                             .c = s->c,
                             .groups = 1,
                             .x_pitch = s->x_pitch,
                             .y_pitch = s->c,
                             .eps = 1e-5f,
                             .act = s->act,
                             .rms = i % 2};
        kernels_of(t->isa)->rows(y, NULL, out, out + s->hw, p.x, NULL, NULL, NULL, NULL, LW_NUM_F32,
                                 &row, s->hw);
        for (ptrdiff_t k = 0; k < s->hw * s->c; k++)
            if (t->compared++, !isnan(y[k]) != (k / s->c != 1))
                fail_msg("rms %d act %d: row %td, %td of %td is %g", row.rms, (int)row.act,
                         k / s->c, k % s->c, s->c, (double)y[k]);
        check_next(t);
    }
}

/* Tasks of a sample: by how much there is of it and of all samples, of whole cache lines where groups allow it. */
static void tasks(check *t)
{
    static const struct {
        ptrdiff_t hw, c, groups, samples, want;
    } of[] = {{1, 64, 32, 1, 1},      {64, 64, 32, 1, 1},      {256, 128, 32, 1, 4},
              {1024, 128, 32, 16, 4}, {1024, 320, 32, 1, 10},  {1024, 320, 32, 64, 1},
              {4096, 64, 32, 1, 2},   {4096, 96, 32, 1, 2},    {256, 384, 12, 1, 12},
              {256, 384, 12, 8, 6},   {16384, 256, 1, 1, 1},   {1024, 48, 48, 1, 1},
              {256, 1280, 32, 3, 8},  {255, 2048, 64, 70, 1},  {1024, 320, 32, 0, 10},
              {256, 640, 64, 1, 8},   {256, 512, 32, 1, 16},   {1024, 512, 32, 4, 16},
              {1024, 512, 32, 9, 8},  {512, 480, 15, 1, 15},   {256, 144, 9, 1, 3},
              {128, 96, 3, 1, 1},     {1024, 2048, 64, 1, 16}, {1024, 80, 5, 1, 1}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const lw_norm_shape s = {.hw = of[i].hw, .c = of[i].c, .groups = of[i].groups};
        const ptrdiff_t got = lw_norm_tasks(&s, of[i].samples);
        check_same(t, &got, &of[i].want, sizeof got, "tasks of shape %zu", i);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"forward", forward}, {"narrow", narrow},           {"backward", backward},
        {"rows", rows},       {"offset", offset},           {"in_place", in_place},
        {"layer", layer},     {"differences", differences}, {"not_a_number", not_a_number},
        {"tasks", tasks}};
    return check_main(argc, argv, "norm", cases, LW_COUNT(cases));
}
