/* SPDX-License-Identifier: Apache-2.0 */
/* Rescaling convolution, reference: obvious loops, everything but the packed filters in double. These are [number][K][N]. */
#include "kernels/conv/conv_rescale_points.h"
#include "kernels/conv/conv_rescale_shape.h"
#include "kernels/gemm/gemm_ref.h"

enum {
    LINE = LW_RESCALE_LINE,
    LINE_NUMBERS = LW_RESCALE_NUMBERS_LINE,
    NUMBERS = LW_RESCALE_NUMBERS,
    POINTS = LW_RESCALE_POINTS
};
static const double a1 = LW_RESCALE_A, b1 = LW_RESCALE_B, a2 = LW_RESCALE_A2, b2 = LW_RESCALE_B2;

/* The numbers of a line of two taps of neighbours, and of a third that stands alone. */
static void filter_line(double *u, ptrdiff_t step, double a, double b, double alone)
{
    u[0] = (a + a1 * b) / LW_RESCALE_NA;
    u[step] = -(a - a1 * b) / LW_RESCALE_NA;
    u[2 * step] = (a + b1 * b) / LW_RESCALE_NB;
    u[3 * step] = -(a - b1 * b) / LW_RESCALE_NB;
    u[4 * step] = b;
    u[5 * step] = alone;
}

/* g: a line of a filter, `from` apart. Of 4 taps the sums that lw_upconv_weight makes of 3. */
static void filter_of(double *u, ptrdiff_t step, const double *g, ptrdiff_t from, bool up)
{
    if (up)
        filter_line(u, step, g[3 * from], g[from], g[from] - g[0]);
    else
        filter_line(u, step, g[0], g[2 * from], g[from]);
}

static void input_line(double *t, ptrdiff_t t_step, const double *x, ptrdiff_t x_step, bool up,
                       bool edge)
{
    t[0] = x[0];
    if (edge)
        return;
    const ptrdiff_t step = up ? x_step : 2 * x_step;
    const double *d = x;
#define D(j) d[(j)*step]
    t[0] = D(3) - b2 * D(1) + a1 * (D(2) - b2 * D(0));
    t[t_step] = D(3) - b2 * D(1) - a1 * (D(2) - b2 * D(0));
    t[2 * t_step] = D(3) - a2 * D(1) + b1 * (D(2) - a2 * D(0));
    t[3 * t_step] = D(3) - a2 * D(1) - b1 * (D(2) - a2 * D(0));
    t[4 * t_step] = D(4) - (a2 + b2) * D(2) + a2 * b2 * D(0);
    for (int j = 0; j < 4; j++)
        t[(5 + j) * t_step] = up ? D(j) - D(j + 1) : x[(2 * j + 1) * x_step];
#undef D
}

static void output_line(double *y, ptrdiff_t y_step, const double *m, ptrdiff_t step, bool up,
                        bool edge)
{
    y[0] = m[0];
    if (edge)
        return;
    const double s = m[0] + m[step], d = m[0] - m[step], s2 = m[2 * step] + m[3 * step],
                 d2 = m[2 * step] - m[3 * step];
    const double two[4] = {s + s2, a1 * d + b1 * d2, a2 * s + b2 * s2,
                           a1 * a2 * d + b1 * b2 * d2 + m[4 * step]};
    for (int j = 0; j < 4; j++) {
        y[(up ? 2 * j : j) * y_step] = two[j] + m[(5 + j) * step];
        if (up)
            y[(2 * j + 1) * y_step] = two[j];
    }
}

void lw_rescale_pack_ref(float *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass,
                         int64_t task)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    const ptrdiff_t cols = lw_gemm_pack_cols(z.N, z.K * NUMBERS), side = z.up ? 4 : 3;
    for (ptrdiff_t n = task * cols; n < LW_MIN((task + 1) * cols, z.N); n++)
        for (ptrdiff_t k = 0; k < z.K; k++) {
            double tap[16], half[LINE_NUMBERS * 4], u[NUMBERS];
            for (ptrdiff_t i = 0; i < side * side; i++)
                tap[i] = (double)(z.up ? w[(k * 16 + i) * z.N + n] : w[(n * 9 + i) * z.K + k]);
            for (ptrdiff_t x = 0; x < side; x++)
                filter_of(half + x, side, tap + x, side, z.up);
            for (ptrdiff_t y = 0; y < LINE_NUMBERS; y++)
                filter_of(u + y * LINE_NUMBERS, 1, half + y * side, 1, z.up);
            for (ptrdiff_t p = 0; p < NUMBERS; p++)
                packed[(p * z.K + k) * z.N + n] = (float)u[p];
        }
}

/* Nothing: `run` transforms and multiplies cell by cell, in double. */
void lw_rescale_inputs_ref(float *shared, const float *in, const lw_conv_shape *s,
                           lw_conv_pass pass, int64_t task)
{
    (void)shared, (void)in, (void)s, (void)pass, (void)task;
}
void lw_rescale_products_ref(float *shared, const float *packed, const lw_conv_shape *s,
                             lw_conv_pass pass, int64_t task)
{
    (void)shared, (void)packed, (void)s, (void)pass, (void)task;
}

/* v [points][K] of a cell. */
static void input_cell(double *v, const float *in, const lw_rescale *z, const lw_rescale_cell *c)
{
    const ptrdiff_t side = z->up ? LW_RESCALE_TILE + 1 : LINE, scale = z->up ? 1 : 2;
    const ptrdiff_t y0 = c->y * scale - z->pad_y, x0 = c->x * scale - z->pad_x,
                    across = c->edge_x ? 1 : LINE, down = c->edge_y ? 1 : LINE;
    for (ptrdiff_t k = 0; k < z->K; k++) {
        double d[POINTS], half[POINTS], t[POINTS];
        for (ptrdiff_t i = 0; i < side * side; i++) {
            const ptrdiff_t y = y0 + i / side, x = x0 + i % side;
            const bool inside = y >= 0 && y < z->in_H && x >= 0 && x < z->in_W;
            d[i] = inside ? (double)in[((c->image * z->in_H + y) * z->in_W + x) * z->ld_in + k]
                          : 0.0;
        }
        for (ptrdiff_t x = 0; x < side; x++)
            input_line(half + x, side, d + x, side, z->up, c->edge_y);
        for (ptrdiff_t y = 0; y < down; y++)
            input_line(t + y * across, 1, half + y * side, 1, z->up, c->edge_x);
        for (ptrdiff_t p = 0; p < down * across; p++)
            v[p * z->K + k] = t[p];
    }
}

static void output_cell(float *out, const double *m, const lw_rescale *z, const lw_rescale_cell *c,
                        const lw_epilogue *e, ptrdiff_t n)
{
    enum { MOST = 2 * LW_RESCALE_TILE };
    const ptrdiff_t across = c->edge_x ? 1 : LINE, side = z->up ? MOST : LW_RESCALE_TILE;
    double half[MOST * LINE], y[MOST * MOST];
    for (ptrdiff_t x = 0; x < across; x++)
        output_line(half + x, across, m + x, across, z->up, c->edge_y);
    const ptrdiff_t high = c->edge_y ? 1 : side, wide = c->edge_x ? 1 : side;
    for (ptrdiff_t i = 0; i < high; i++)
        output_line(y + i * wide, 1, half + i * across, 1, z->up, c->edge_x);
    const ptrdiff_t y0 = lw_rescale_first_out(z, c->y, c->edge_y),
                    x0 = lw_rescale_first_out(z, c->x, c->edge_x);
    for (ptrdiff_t i = 0; i < high * wide; i++) {
        const ptrdiff_t oy = y0 + i / wide, ox = x0 + i % wide;
        if (oy >= z->out_H || ox >= z->out_W)
            continue;
        const ptrdiff_t row = (c->image * z->out_H + oy) * z->out_W + ox;
        lw_store_ref(out, row * z->ld_out + n, y[i], e, c->image, row, n);
    }
}

void lw_rescale_run_ref(float *out, const float *in, const float *packed, const float *shared,
                        const lw_conv_shape *s, lw_conv_pass pass, const lw_epilogue *e,
                        float *scratch, int64_t task)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    const lw_wino_task at = lw_wino_task_of(task, z.blocks, z.col_groups, z.by_groups);
    const lw_rescale_block b = lw_rescale_block_of(&z, at.block);
    const ptrdiff_t n0 = at.group * z.cols, n1 = LW_MIN(n0 + z.cols, z.N);
    double *v = (double *)(void *)scratch;
    (void)shared;
    for (ptrdiff_t i = 0; i < lw_rescale_cells(&b); i++) {
        lw_rescale_cell c;
        lw_rescale_cell_of(&c, &b, i);
        input_cell(v, in, &z, &c);
        const ptrdiff_t across = c.edge_x ? 1 : LINE, points = across * (c.edge_y ? 1 : LINE);
        for (ptrdiff_t n = n0; n < n1; n++) {
            double m[POINTS] = {0};
            for (ptrdiff_t p = 0; p < points; p++) {
                const ptrdiff_t number = lw_rescale_number_of(p / across, c.edge_y) * LINE_NUMBERS +
                                         lw_rescale_number_of(p % across, c.edge_x);
                for (ptrdiff_t k = 0; k < z.K; k++)
                    m[p] += v[p * z.K + k] * (double)packed[(number * z.K + k) * z.N + n];
            }
            output_cell(out, m, &z, &c, e, n);
        }
    }
}
