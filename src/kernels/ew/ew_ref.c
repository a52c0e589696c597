/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs, the oracle: one element at a time, in double, rounded once per output. */
#include <math.h>

#include "kernels/ew/ew.h"

/* Behind 1e4 slopes are what they are there, 0 or 1: a stays where its powers are numbers. */
static double ew_near(double a)
{
    return a > 1e4 ? 1e4 : a < -1e4 ? -1e4 : a; /* a NaN stays */
}

static double apply(int op, double a, double b, double c, double imm)
{
    switch (op) {
#define EW(name, arity, ref, body, slope) \
    case LW_TILE_##name:                  \
        return ref;
#include "ir/ewops.def"
#undef EW
    default:
        return (double)NAN;
    }
}

static ptrdiff_t operand_index(int mode, const lw_ew_shape *d, ptrdiff_t e)
{
    ptrdiff_t row = e / d->c, ch = e % d->c, b = row / d->s;
    switch (mode) {
    case LW_TILE_SCALAR:
        return 0;
    case LW_TILE_CHANNEL:
        return ch;
    case LW_TILE_BATCH:
        return b;
    case LW_TILE_BC:
        return b * d->c + ch;
    case LW_TILE_ROW:
        return row;
    default:
        return e;
    }
}

void lw_ew_run_ref(float *const *out, const float *const *in, const lw_ew_program *p,
                   const lw_ew_shape *shape, ptrdiff_t begin, ptrdiff_t end)
{
    double r[LW_EW_MAX_OPERANDS + LW_EW_MAX_STEPS] = {0};
    for (ptrdiff_t e = begin; e < end; e++) {
        for (int i = 0; i < p->n_in; i++)
            r[i] = (double)in[i][operand_index(p->mode[i], shape, e)];
        for (int i = 0; i < p->n_instr; i++) {
            const lw_ew_instr *x = &p->instr[i];
            int n = lw_ew_arity(x->op);
            r[p->n_in + i] = apply(x->op, n > 0 ? r[x->a] : 0.0, n > 1 ? r[x->b] : 0.0,
                                   n > 2 ? r[x->c] : 0.0, (double)x->imm);
        }
        for (int k = 0; k < p->n_out; k++)
            out[k][e] = (float)r[p->out[k]];
    }
}

void lw_ew_from_u8_ref(float *y, const uint8_t *x, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++)
        y[i] = (float)x[i];
}

void lw_ew_from_i32_ref(float *y, const int32_t *x, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t i = begin; i < end; i++)
        y[i] = (float)x[i];
}
