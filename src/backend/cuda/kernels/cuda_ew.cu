/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs, and reductions. A program's registers lie in shared memory, a column for
 * each thread; every operation is ewops.def's formula in double, rounded once. */
#include "backend/cuda/kernels/cuda_port.h"

enum {
    EW_NONE,
#define EW(name, arity, ref, body, slope) EW_##name,
#include "ir/ewops.def"
#undef EW
};

LW_ON_DEVICE float ew_value(int op, double a, double b, double c, double imm)
{
    (void)b;
    (void)c;
    (void)imm;
    switch (op) {
#define EW(name, arity, ref, body, slope) \
    case EW_##name:                       \
        return (float)(ref);
#include "ir/ewops.def"
#undef EW
    default:
        return 0.0f;
    }
}

/* Where element e = (b, s, c) of the result finds an operand (lw_ew_mode). */
LW_ON_DEVICE int64_t ew_index(const lw_cuda_ew *a, int mode, int64_t e)
{
    int64_t c = e % a->c, b = e / a->c / a->s;
    switch (mode) {
    case 0:
        return e;
    case 1:
        return 0;
    case 2:
        return c;
    case 3:
        return b;
    case 4:
        return b * a->c + c;
    default:
        return e / a->c;
    }
}

LW_KERNEL(ew, lw_cuda_ew, LW_CUDA_EW_THREADS)
{
    LW_SHARED float room[LW_CUDA_EW_IN + LW_CUDA_EW_STEPS][LW_CUDA_EW_THREADS];
    LW_EACH(e, a.n)
    {
        for (int i = 0; i < a.n_in; i++)
            room[i][LW_TID] = a.in[i][ew_index(&a, a.mode[i], e)];
        for (int i = 0; i < a.n_step; i++) {
            lw_cuda_ew_step s = a.step[i];
            room[a.n_in + i][LW_TID] =
                ew_value(s.op, (double)room[s.a][LW_TID], (double)room[s.b][LW_TID],
                         (double)room[s.c][LW_TID], (double)s.imm);
        }
        float y = room[a.n_in + a.n_step - 1][LW_TID];
        if (a.store)
            ((uint16_t *)a.y)[e] = lw_bf16_bits(y);
        else
            ((float *)a.y)[e] = y;
    }
}

/* A block for each sum of neighbours. */
LW_KERNEL(reduce_rows, lw_cuda_reduce, 256)
{
    LW_SHARED double room[256];
    double sum = 0.0;
    const float *x = a.x + LW_BX * a.r;
    for (int64_t i = LW_TID; i < a.r; i += 256)
        sum += (double)x[i];
    sum = lw_block_sum(room, sum);
    if (LW_TID == 0)
        a.y[LW_BX] = (float)(sum * a.scale);
}

/* A thread for each column. */
LW_KERNEL(reduce_columns, lw_cuda_reduce, 64)
{
    LW_EACH(e, a.a * a.c)
    {
        const float *x = a.x + e / a.c * a.r * a.c + e % a.c;
        double sum = 0.0;
        for (int64_t i = 0; i < a.r; i++)
            sum += (double)x[i * a.c];
        a.y[e] = (float)(sum * a.scale);
    }
}
