/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolution, reference: obvious loops, everything but the stored weights in double.
 * Transformed weights are [number][K][N], 36, 16 or, plain, 9 numbers, 36 of 5x5, 6 or 10 of lines. Of bf16 points are made in f32
 * steps and rounded as the fast kernels do it: bit for bit the same points, whose products are summed exactly here. Of u8, which
 * F(4x4) alone has, points are whole numbers, and all of it is exact. */
#include "kernels/conv/conv_winograd_points.h"
#include "kernels/conv/conv_winograd_shape.h"
#include "kernels/gemm/gemm_ref.h"

#include <math.h>

static const double a1 = LW_WINO_A, b1 = LW_WINO_B, a2 = LW_WINO_A2, b2 = LW_WINO_B2;

static double f32(double v)
{
    return (double)(float)v;
}

static void filter_line_low(double *u, ptrdiff_t step, double g0, double g1, double g2)
{
    const double s = f32(g0 + g2) / 2, d = g1 / 2;
    u[0] = g0;
    u[step] = f32(s + d);
    u[2 * step] = f32(s - d);
    u[3 * step] = g2;
}

/* Of F(4x4), in the steps of the fast kernels. */
static void filter_line_low4(double *u, ptrdiff_t step, float g0, float g1, float g2)
{
    const float sa = (float)(1 / LW_WINO_NA) * fmaf((float)a2, g2, g0),
                sb = (float)(1 / LW_WINO_NB) * fmaf((float)b2, g2, g0),
                da = (float)(a1 / LW_WINO_NA) * g1, db = (float)(b1 / LW_WINO_NB) * g1;
    u[0] = (double)((float)(1 / LW_WINO_N0) * g0);
    u[step] = (double)(sa + da);
    u[2 * step] = (double)(sa - da);
    u[3 * step] = (double)(sb + db);
    u[4 * step] = (double)(sb - db);
    u[5 * step] = (double)g2;
}

static void filter_line_u8(double *u, ptrdiff_t step, double g0, double g1, double g2)
{
    u[0] = 15 * g0;
    u[step] = -5 * (g0 + g1 + g2);
    u[2 * step] = 5 * (g0 - g1 + g2);
    u[3 * step] = g0 + 2 * g1 + 4 * g2;
    u[4 * step] = -4 * g0 + 2 * g1 - g2;
    u[5 * step] = 15 * g2;
}

static void filter_line(double *u, ptrdiff_t step, double g0, double g1, double g2, int tile,
                        lw_num num)
{
    if (num == LW_NUM_BF16 && tile == 4) {
        filter_line_low4(u, step, (float)g0, (float)g1, (float)g2);
        return;
    }
    if (num != LW_NUM_F32) {
        (num == LW_NUM_S8 ? filter_line_u8 : filter_line_low)(u, step, g0, g1, g2);
        return;
    }
    if (tile == 2) {
        u[0] = g0;
        u[step] = (g0 + g1 + g2) / 2;
        u[2 * step] = (g0 - g1 + g2) / 2;
        u[3 * step] = g2;
        return;
    }
    u[0] = g0 / LW_WINO_N0;
    u[step] = (g0 + a2 * g2 + a1 * g1) / LW_WINO_NA;
    u[2 * step] = (g0 + a2 * g2 - a1 * g1) / LW_WINO_NA;
    u[3 * step] = (g0 + b2 * g2 + b1 * g1) / LW_WINO_NB;
    u[4 * step] = (g0 + b2 * g2 - b1 * g1) / LW_WINO_NB;
    u[5 * step] = g2;
}

static void input_line_u8(double *t, const double *x, ptrdiff_t step)
{
    t[0] = 2 * x[0] + 3 * x[1] - 4 * x[2] - 3 * x[3] + 2 * x[4];
    t[step] = -2 * x[1] - 5 * x[2] - x[3] + 2 * x[4];
    t[2 * step] = 2 * x[1] + x[2] - 5 * x[3] + 2 * x[4];
    t[3 * step] = -x[1] - 2 * x[2] + x[3] + 2 * x[4];
    t[4 * step] = 2 * x[1] - x[2] - 2 * x[3] + x[4];
    t[5 * step] = 2 * x[1] + 3 * x[2] - 4 * x[3] - 3 * x[4] + 2 * x[5];
}

static void input_line_low4(double *t, const double *x, ptrdiff_t step)
{
    const float a = (float)a1, b = (float)b1, sum = (float)(a2 + b2), n0 = (float)LW_WINO_N0;
    const float d0 = (float)x[0], d1 = (float)x[1], d2 = (float)x[2], d3 = (float)x[3],
                d4 = (float)x[4], d5 = (float)x[5];
    const float ua = fmaf(-(float)b2, d2, d4), va = fmaf(-(float)b2, d1, d3),
                ub = fmaf(-(float)a2, d2, d4), vb = fmaf(-(float)a2, d1, d3);
    t[0] = (double)fmaf(n0, d0, fmaf(-sum, d2, d4));
    t[step] = (double)fmaf(a, va, ua);
    t[2 * step] = (double)fmaf(-a, va, ua);
    t[3 * step] = (double)fmaf(b, vb, ub);
    t[4 * step] = (double)fmaf(-b, vb, ub);
    t[5 * step] = (double)fmaf(n0, d1, fmaf(-sum, d3, d5));
}

static void input_line(double *t, const double *d, ptrdiff_t step, int tile, lw_num num)
{
    double x[LW_WINO_MAX_SIDE];
    for (int i = 0; i < tile + 2; i++)
        x[i] = d[i * step];
    if (num == LW_NUM_S8) {
        input_line_u8(t, x, step);
        return;
    }
    if (num == LW_NUM_BF16 && tile == 4) {
        input_line_low4(t, x, step);
        return;
    }
    if (tile == 2) {
        t[0] = x[0] - x[2];
        t[step] = x[1] + x[2];
        t[2 * step] = x[2] - x[1];
        t[3 * step] = x[3] - x[1];
        return;
    }
    t[0] = a2 * b2 * x[0] - (a2 + b2) * x[2] + x[4];
    t[step] = x[4] - b2 * x[2] + a1 * (x[3] - b2 * x[1]);
    t[2 * step] = x[4] - b2 * x[2] - a1 * (x[3] - b2 * x[1]);
    t[3 * step] = x[4] - a2 * x[2] + b1 * (x[3] - a2 * x[1]);
    t[4 * step] = x[4] - a2 * x[2] - b1 * (x[3] - a2 * x[1]);
    t[5 * step] = a2 * b2 * x[1] - (a2 + b2) * x[3] + x[5];
}

static void output_line_u8(double *y, const double *m, ptrdiff_t step)
{
    const double *m3 = m + 3 * step, *m4 = m + 4 * step;
    const double s = m[step] + m[2 * step], d = m[step] - m[2 * step], last = m[5 * step];
    y[0] = (m[0] + s + *m3 + 8 * *m4) / 30;
    y[step] = (d + 2 * *m3 - 4 * *m4) / 30;
    y[2 * step] = (s + 4 * *m3 + 2 * *m4) / 30;
    y[3 * step] = (d + 8 * *m3 - *m4 + last) / 30;
}

static void output_line(double *y, const double *m, ptrdiff_t step, int tile, lw_num num)
{
    if (num == LW_NUM_S8) {
        output_line_u8(y, m, step);
        return;
    }
    double s = m[step] + m[2 * step], d = m[step] - m[2 * step];
    if (tile == 2) {
        double last = m[3 * step];
        y[0] = m[0] + s;
        y[step] = d + last;
        return;
    }
    double s2 = m[3 * step] + m[4 * step], d2 = m[3 * step] - m[4 * step], last = m[5 * step];
    y[0] = m[0] + s + s2;
    y[step] = a1 * d + b1 * d2;
    y[2 * step] = a2 * s + b2 * s2;
    y[3 * step] = a1 * a2 * d + b1 * b2 * d2 + last;
}

/* ---- F(4,3) and F(4,7) of lines and F(2,5) of squares, as the matrices that interpolation at their points gives ----- */

/* t_i = sum of input[i][j] d_j, u_i = sum of filter[i][j] g_j, y_k = sum of output[k][i] m_i. */
typedef struct line_ref {
    int taps, outputs, side;
    double input[LW_WINO_MAX_LINE][LW_WINO_MAX_LINE], filter[LW_WINO_MAX_LINE][7],
        output[4][LW_WINO_MAX_LINE];
} line_ref;

/* What 3x3 has no part in. */
static bool by_matrices(const lw_wino *z)
{
    return z->taps != 9;
}

static line_ref line_of(const lw_wino *z)
{
    static const double of_3[] = {0, LW_WINO_A, -LW_WINO_A, LW_WINO_B, -LW_WINO_B};
    static const double of_7[] = {0,          LW_WINO7_A,  -LW_WINO7_A, LW_WINO7_B, -LW_WINO7_B,
                                  LW_WINO7_C, -LW_WINO7_C, LW_WINO7_D,  -LW_WINO7_D};
    const bool square = z->kind == LW_WINO_5X5;
    const double *x = z->kind == LW_WINO_LINE7 ? of_7 : of_3;
    line_ref r = {.taps = square ? 5 : z->taps, .outputs = square ? 2 : 4};
    r.side = r.taps + r.outputs - 1;
    if (!by_matrices(z))
        return (line_ref){0};
    const int points = r.side - 1; /* the last one is infinity */
    for (int i = 0; i <= points; i++) {
        /* the polynomial that is 0 at all other points, and what it is at this one */
        double *p = r.input[i], at = 1;
        int degree = 0;
        p[0] = 1;
        for (int k = 0; k < points; k++) {
            if (k == i)
                continue;
            for (int j = ++degree; j >= 0; j--)
                p[j] = (j > 0 ? p[j - 1] : 0) - (j < degree ? x[k] * p[j] : 0);
            at *= i < points ? x[i] - x[k] : 1;
        }
        for (int j = 0; j < r.taps; j++)
            r.filter[i][j] = i < points ? pow(x[i], j) / at : j == r.taps - 1;
        for (int k = 0; k < r.outputs; k++)
            r.output[k][i] = i < points ? pow(x[i], k) : k == r.outputs - 1;
    }
    return r;
}

/* to [n_to] or, of a square, [n_to][n_to] <- the matrix, of rows of `pitch` numbers, times `from` in each direction. */
static void by_matrix(double *to, int n_to, const double *matrix, ptrdiff_t pitch,
                      const double *from, int n_from, bool square)
{
    double half[LW_WINO_MAX_POINTS];
    const int lines = square ? n_from : 1;
    for (int i = 0; i < n_to; i++)
        for (int x = 0; x < lines; x++) {
            double *sum = square ? half + i * lines + x : to + i;
            *sum = 0;
            for (int k = 0; k < n_from; k++)
                *sum += matrix[i * pitch + k] * from[k * lines + x];
        }
    for (int i = 0; square && i < n_to * n_to; i++) {
        to[i] = 0;
        for (int k = 0; k < n_from; k++)
            to[i] += matrix[i % n_to * pitch + k] * half[i / n_to * lines + k];
    }
}

/* Number i of packed weights. */
static void put_weight(float *packed, ptrdiff_t i, double v, lw_num num)
{
    if (num == LW_NUM_S8)
        ((int16_t *)(void *)packed)[i] = (int16_t)v;
    else if (num == LW_NUM_BF16)
        ((lw_bf16 *)(void *)packed)[i] = lw_bf16_of_f32((float)v);
    else
        packed[i] = (float)v;
}
static double get_weight(const float *packed, ptrdiff_t i, lw_num num)
{
    if (num == LW_NUM_S8)
        return (double)((const int16_t *)(const void *)packed)[i];
    return (double)(num == LW_NUM_BF16 ? lw_bf16_to_f32(((const lw_bf16 *)(const void *)packed)[i])
                                       : packed[i]);
}

/* u[points] <- the filter of these taps. */
static void transform_filter(double *u, const double *tap, const lw_wino *z, const line_ref *r,
                             lw_num num)
{
    double half[LW_WINO_MAX_SIDE * 3];
    if (by_matrices(z)) {
        by_matrix(u, r->side, r->filter[0], LW_COUNT(r->filter[0]), tap, r->taps,
                  z->kind == LW_WINO_5X5);
        return;
    }
    for (int x = 0; x < 3; x++)
        filter_line(half + x, 3, tap[x], tap[3 + x], tap[6 + x], z->kind, num);
    for (ptrdiff_t y = 0; y < z->side_y; y++)
        filter_line(u + y * z->side_x, 1, half[y * 3], half[y * 3 + 1], half[y * 3 + 2], z->kind,
                    num);
}

/* u[points] <- the packed filter of channels k and n. */
static void get_points(double *u, const float *packed, const lw_wino *z, ptrdiff_t k, ptrdiff_t n,
                       lw_num num)
{
    double number[LW_WINO_MAX_POINTS];
    for (ptrdiff_t p = 0; p < z->numbers; p++)
        (z->plain ? number : u)[p] = get_weight(packed, (p * z->K + k) * z->N + n, num);
    if (z->plain)
        transform_filter(u, number, z, NULL, num);
}

static void pack(float *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass, int tile,
                 const lw_quant *q, int64_t task, lw_num num)
{
    lw_wino z = lw_wino_of(num, s, pass, tile);
    const line_ref line = line_of(&z);
    ptrdiff_t cols = lw_gemm_pack_cols(z.N, z.K * z.points);
    ptrdiff_t n1 = LW_MIN((task + 1) * cols, z.N);
    for (ptrdiff_t n = task * cols; n < n1; n++)
        for (ptrdiff_t k = 0; k < z.K; k++) {
            double tap[25], u[LW_WINO_MAX_POINTS];
            bool forward = pass == LW_CONV_FORWARD;
            const float *g = w + (forward ? n * z.taps * s->C + k : k * z.taps * s->C + n);
            for (int i = 0; i < z.taps; i++) {
                const float v = g[(forward ? i : z.taps - 1 - i) * s->C];
                tap[i] = num == LW_NUM_S8 ? lw_s8_of_f32(v, q->b_scale[n]) : (double)v;
            }
            transform_filter(u, tap, &z, &line, num);
            for (ptrdiff_t p = 0; p < z.numbers; p++)
                put_weight(packed, (p * z.K + k) * z.N + n, z.plain ? tap[p] : u[p], num);
        }
}

void lw_winograd_pack_ref(float *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass,
                          int tile, const lw_quant *q, int64_t task)
{
    pack(packed, w, s, pass, tile, q, task, LW_NUM_F32);
}
void lw_winograd_pack_bf16_ref(float *packed, const float *w, const lw_conv_shape *s,
                               lw_conv_pass pass, int tile, const lw_quant *q, int64_t task)
{
    pack(packed, w, s, pass, tile, q, task, LW_NUM_BF16);
}
void lw_winograd_pack_u8_ref(float *packed, const float *w, const lw_conv_shape *s,
                             lw_conv_pass pass, int tile, const lw_quant *q, int64_t task)
{
    pack(packed, w, s, pass, tile, q, task, LW_NUM_S8);
}

static double get_input(const void *in, ptrdiff_t i, lw_num num)
{
    if (num == LW_NUM_S8)
        return (double)((const uint8_t *)in)[i];
    return (double)(num == LW_NUM_BF16 ? lw_bf16_to_f32(((const lw_bf16 *)in)[i])
                                       : ((const float *)in)[i]);
}

static void round_f32(double *v, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        v[i] = f32(v[i]);
}

static void transform_inputs(double *t, const double *d, const lw_wino *z, const line_ref *r,
                             lw_num num)
{
    if (by_matrices(z)) {
        by_matrix(t, r->side, r->input[0], LW_COUNT(r->input[0]), d, r->side,
                  z->kind == LW_WINO_5X5);
        return;
    }
    for (ptrdiff_t x = 0; x < z->side_x; x++)
        input_line(t + x, d + x, z->side_x, z->kind, num);
    if (num == LW_NUM_BF16)
        round_f32(t, z->points);
    for (ptrdiff_t y = 0; y < z->side_y; y++)
        input_line(t + y * z->side_x, t + y * z->side_x, 1, z->kind, num);
}

static void transform_outputs(double *y, const double *m, const lw_wino *z, const line_ref *r,
                              lw_num num)
{
    double half[LW_WINO_MAX_POINTS];
    if (by_matrices(z)) {
        by_matrix(y, r->outputs, r->output[0], LW_COUNT(r->output[0]), m, r->side,
                  z->kind == LW_WINO_5X5);
        return;
    }
    for (ptrdiff_t i = 0; i < z->side_x; i++)
        output_line(half + i, m + i, z->side_x, z->kind, num);
    for (ptrdiff_t i = 0; i < z->tile_y; i++)
        output_line(y + i * z->tile_x, half + i * z->side_x, 1, z->kind, num);
}

/* v [points][K] of the tile of this image whose first output is (y0, x0). */
static void input_tile(double *v, const void *in, ptrdiff_t image, const lw_wino *z,
                       const line_ref *r, const lw_quant *q, ptrdiff_t y0, ptrdiff_t x0, lw_num num)
{
    const bool low = num == LW_NUM_BF16;
    const double zero = q ? (double)q->a_zero
                          : 0.0; /* which tiles of the fast kernels take away at the end */
    for (ptrdiff_t k = 0; k < z->K; k++) {
        double d[LW_WINO_MAX_POINTS], t[LW_WINO_MAX_POINTS];
        for (ptrdiff_t i = 0; i < z->points; i++) {
            ptrdiff_t y = y0 - z->pad_y + i / z->side_x, x = x0 - z->pad_x + i % z->side_x;
            bool inside = y >= 0 && y < z->in_H && x >= 0 && x < z->in_W;
            ptrdiff_t pixel = (image * z->in_H + y) * z->in_W + x;
            d[i] = inside ? get_input(in, pixel * z->ld_in + k, num) - zero : 0.0;
        }
        transform_inputs(t, d, z, r, num);
        for (ptrdiff_t p = 0; p < z->points; p++)
            v[p * z->K + k] = low ? (double)lw_bf16_to_f32(lw_bf16_of_f32((float)t[p])) : t[p];
    }
}

static void output_tile(void *out, const double *m, const lw_wino *z, const line_ref *r,
                        const lw_quant *q, const lw_epilogue *e, ptrdiff_t image, ptrdiff_t y0,
                        ptrdiff_t x0, ptrdiff_t n, lw_num num)
{
    const double scale = q ? (double)q->a_scale * (double)q->b_scale[n] : 1.0;
    double y[LW_WINO_MAX_POINTS];
    transform_outputs(y, m, z, r, num);
    for (ptrdiff_t i = 0; i < z->tile_y * z->tile_x; i++) {
        ptrdiff_t oy = y0 + i / z->tile_x, ox = x0 + i % z->tile_x;
        if (oy >= z->H || ox >= z->W)
            continue;
        ptrdiff_t row = (image * z->H + oy) * z->W + ox;
        lw_store_ref(out, row * z->ld_out + n, y[i] * scale, e, image, row, n);
    }
}

/* Nothing: `run` transforms and multiplies tile by tile, in double. */
#define NOTHING_BEFORE(inputs, products)                                                         \
    void inputs(float *shared, const void *in, const lw_conv_shape *s, lw_conv_pass pass,        \
                int tile, const lw_quant *q, int64_t task)                                       \
    {                                                                                            \
        (void)shared, (void)in, (void)s, (void)pass, (void)tile, (void)q, (void)task;            \
    }                                                                                            \
    void products(float *shared, const float *packed, const lw_conv_shape *s, lw_conv_pass pass, \
                  int tile, int64_t task)                                                        \
    {                                                                                            \
        (void)shared, (void)packed, (void)s, (void)pass, (void)tile, (void)task;                 \
    }
NOTHING_BEFORE(lw_winograd_inputs_ref, lw_winograd_products_ref)
NOTHING_BEFORE(lw_winograd_inputs_bf16_ref, lw_winograd_products_bf16_ref)
NOTHING_BEFORE(lw_winograd_inputs_u8_ref, lw_winograd_products_u8_ref)

enum { COLUMNS = 16 }; /* whose weights lie side by side */

/* `count` channels of a tile whose points are v. */
static void columns(void *out, const double *v, const float *packed, const lw_wino *z,
                    const line_ref *r, const lw_quant *q, const lw_epilogue *e, ptrdiff_t image,
                    ptrdiff_t y0, ptrdiff_t x0, ptrdiff_t n0, ptrdiff_t count, lw_num num)
{
    double m[COLUMNS][LW_WINO_MAX_POINTS] = {{0}}, u[LW_WINO_MAX_POINTS], by[LW_WINO_MAX_POINTS];
    for (ptrdiff_t k = 0; k < z->K; k++) {
        for (ptrdiff_t p = 0; p < z->points; p++)
            by[p] = v[p * z->K + k];
        for (ptrdiff_t n = 0; n < count; n++) {
            get_points(u, packed, z, k, n0 + n, num);
            for (ptrdiff_t p = 0; p < z->points; p++)
                m[n][p] += by[p] * u[p];
        }
    }
    for (ptrdiff_t n = 0; n < count; n++)
        output_tile(out, m[n], z, r, q, e, image, y0, x0, n0 + n, num);
}

static void run(void *out, const void *in, const float *packed, const lw_conv_shape *s,
                lw_conv_pass pass, int tile, const lw_quant *q, const lw_epilogue *e,
                float *scratch, int64_t task, lw_num num)
{
    lw_wino z = lw_wino_of(num, s, pass, tile);
    const line_ref line = line_of(&z);
    double *v = (double *)(void *)scratch;
    const lw_wino_task at = lw_wino_task_of(task, z.blocks, z.col_groups, z.by_groups);
    ptrdiff_t n1 = LW_MIN((at.group + 1) * z.cols, z.N), per_image = z.tiles_y * z.tiles_x;
    for (int64_t t = lw_wino_first(&z, at.block); t < lw_wino_first(&z, at.block + 1); t++) {
        ptrdiff_t image = t / per_image, y0 = t % per_image / z.tiles_x * z.tile_y,
                  x0 = t % z.tiles_x * z.tile_x;
        input_tile(v, in, image, &z, &line, q, y0, x0, num);
        for (ptrdiff_t n = at.group * z.cols; n < n1; n += COLUMNS)
            columns(out, v, packed, &z, &line, q, e, image, y0, x0, n, LW_MIN(n1 - n, COLUMNS),
                    num);
    }
}

void lw_winograd_run_ref(void *out, const void *in, const float *packed, const float *shared,
                         const lw_conv_shape *s, lw_conv_pass pass, int tile, const lw_quant *q,
                         const lw_epilogue *e, float *scratch, int64_t task)
{
    (void)shared;
    run(out, in, packed, s, pass, tile, q, e, scratch, task, LW_NUM_F32);
}
void lw_winograd_run_bf16_ref(void *out, const void *in, const float *packed, const float *shared,
                              const lw_conv_shape *s, lw_conv_pass pass, int tile,
                              const lw_quant *q, const lw_epilogue *e, float *scratch, int64_t task)
{
    (void)shared;
    run(out, in, packed, s, pass, tile, q, e, scratch, task, LW_NUM_BF16);
}
void lw_winograd_run_u8_ref(void *out, const void *in, const float *packed, const float *shared,
                            const lw_conv_shape *s, lw_conv_pass pass, int tile, const lw_quant *q,
                            const lw_epilogue *e, float *scratch, int64_t task)
{
    (void)shared;
    run(out, in, packed, s, pass, tile, q, e, scratch, task, LW_NUM_S8);
}
