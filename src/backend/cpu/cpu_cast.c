/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between element types, row by row: what is read may lie in wider rows. */
#include "backend/cpu/cpu_private.h"

typedef struct cast_arg {
    const lw_kernels *k;
    cpu_range r; /* of rows */
    ptrdiff_t row, pitch;
} cast_arg;

/* Elements of n rows when they lie one behind the other, else of one. */
static ptrdiff_t run_of(const cast_arg *a, int64_t n)
{
    return a->pitch == a->row ? n * a->row : a->row;
}

/* call: of a cast kernel with y, x, n, and of bytes q, {scale, zero point}. */
#define CAST_TASK(name, to, from, call)                                        \
    static void name(const lw_task *t)                                         \
    {                                                                          \
        const cast_arg *a = t->arg;                                            \
        const float *q = t->in[1];                                             \
        int64_t at = cpu_begin(a->r, t->index), end = cpu_end(a->r, t->index); \
        (void)q;                                                               \
        for (ptrdiff_t n = run_of(a, end - at); at < end; at += n / a->row) {  \
            to *y = (to *)t->out[0] + at * a->row;                             \
            const from *x = (const from *)t->in[0] + at * a->pitch;            \
            a->k->cast.call;                                                   \
        }                                                                      \
    }
CAST_TASK(to_bf16_task, lw_bf16, float, f32_to_bf16(y, x, n))
CAST_TASK(from_bf16_task, float, lw_bf16, bf16_to_f32(y, x, n))
CAST_TASK(to_u8_task, uint8_t, float, f32_to_u8(y, x, n, q[0], (int32_t)q[1]))
CAST_TASK(bf16_to_u8_task, uint8_t, lw_bf16, bf16_to_u8(y, x, n, q[0], (int32_t)q[1]))

int lw_cpu_lower_cast(cpu_lower *c)
{
    cast_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    lw_type t = cpu_out(c, 0);
    a->k = c->k;
    a->row = lw_type_last(t);
    a->pitch = cpu_in_pitch(c, 0);
    a->r = cpu_split(lw_type_count(t) / a->row, a->row);
    lw_cpu_phase(c,
                 t.dtype == LW_U8 ? (cpu_in(c, 0).dtype == LW_BF16 ? bf16_to_u8_task : to_u8_task)
                 : t.dtype == LW_BF16 ? to_bf16_task
                                      : from_bf16_task,
                 cpu_range_tasks(a->r));
    return 0;
}
