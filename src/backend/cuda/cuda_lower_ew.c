/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs and reductions on GPUs. */
#include "backend/cuda/cuda_private.h"

#include <string.h>

_Static_assert((int)LW_CUDA_EW_STEPS == (int)LW_EW_MAX_INSTR, "instructions");
_Static_assert((int)LW_CUDA_EW_IN == (int)LW_MAX_IN, "operands");

typedef struct ew_step {
    cuda_step step;
    lw_cuda_ew a;
    bool single; /* more places than four elements at a time have */
} ew_step;

static bool aligned(const lw_cuda_ew *a)
{
    uintptr_t all = (uintptr_t)a->y * (a->store ? 2 : 1);
    for (int i = 0; i < a->n_in; i++)
        if (a->mode[i] == LW_EW_FULL || a->mode[i] == LW_EW_CHANNEL || a->mode[i] == LW_EW_BC)
            all |= (uintptr_t)a->in[i];
    return all % 16 == 0;
}

static void ew_task(const lw_task *t)
{
    const ew_step *s = t->arg;
    lw_cuda_ew a = s->a;
    a.y = t->out[0];
    for (int i = 0; i < a.n_in; i++)
        a.in[i] = t->in[i];
    if (s->single || !aligned(&a))
        lw_cuda_launch(s->step.d, LW_CUDA_ew_single, lw_cuda_blocks(LW_CUDA_ew_single, a.n), 1, &a);
    else
        lw_cuda_launch(s->step.d, LW_CUDA_ew, lw_cuda_blocks(LW_CUDA_ew, LW_CEIL_DIV(a.n, 4)), 1,
                       &a);
}

/* Gives results places, as few as there are alive at once: operands have the first ones. Returns how many. */
static int place(lw_cuda_ew *a, const lw_attr_ew *at)
{
    enum { NUMBERS = LW_CUDA_EW_IN + LW_CUDA_EW_STEPS };
    int place_of[NUMBERS], last[NUMBERS], of_place[NUMBERS], places = a->n_in;
    for (int r = 0; r < NUMBERS; r++)
        last[r] = -1;
    for (int i = 0; i < a->n_step; i++) {
        const uint8_t operand[3] = {at->step[i].a, at->step[i].b, at->step[i].c};
        for (int k = 0; k < lw_ewop_arity((lw_ewop)at->step[i].op); k++)
            last[operand[k]] = i;
    }
    for (int r = 0; r < a->n_in; r++)
        of_place[r] = place_of[r] = r;
    for (int i = 0; i < a->n_step; i++) {
        const uint8_t operand[3] = {at->step[i].a, at->step[i].b, at->step[i].c};
        int made = a->n_in + i, p = 0, to[3];
        for (int k = 0; k < 3; k++)
            to[k] = k >= lw_ewop_arity((lw_ewop)at->step[i].op) || (i && operand[k] == made - 1)
                        ? LW_CUDA_EW_LAST
                        : place_of[operand[k]];
        a->step[i] = (lw_cuda_ew_step){.op = at->step[i].op,
                                       .a = (uint8_t)to[0],
                                       .b = (uint8_t)to[1],
                                       .c = (uint8_t)to[2],
                                       .imm = at->step[i].imm};
        a->to[i] = LW_CUDA_EW_LAST;
        if (last[made] <= i + 1)
            continue;
        while (p < places && last[of_place[p]] > i)
            p++;
        places = LW_MAX(places, p + 1);
        of_place[p] = made;
        place_of[made] = p;
        a->to[i] = (uint8_t)p;
    }
    return places;
}

int lw_cuda_lower_ew(cuda_lower *c)
{
    const lw_attr_ew *at = c->n->attr;
    const bool store = cuda_out(c, 0).dtype == LW_BF16;
    int64_t b;
    for (int i = 0; store && i < c->n->n_in; i++)
        if (cuda_in(c, i).dtype != LW_F32)
            return lw_cuda_lacks(c, " of other numbers than f32 to bf16");
    if (!store)
        LW_TRY(lw_cuda_f32(c, -1));
    ew_step *s = lw_cuda_arg(c, sizeof *s, ew_task);
    if (!s)
        return LW_ENOMEM;
    lw_ew_view(at->type, &b, &s->a.s, &s->a.c);
    s->a.n = b * s->a.s * s->a.c;
    s->a.n_in = c->n->n_in;
    s->a.n_step = at->n_step;
    s->a.store = store;
    s->a.plain = 1;
    memcpy(s->a.mode, at->mode, (size_t)c->n->n_in);
    for (int i = 0; i < c->n->n_in; i++)
        s->a.plain &= at->mode[i] == LW_EW_FULL || at->mode[i] == LW_EW_SCALAR;
    s->single = place(&s->a, at) > LW_CUDA_EW_PLACES;
    return 0;
}

typedef struct reduce_step {
    cuda_step step;
    lw_cuda_reduce a;
} reduce_step;

static void reduce_task(const lw_task *t)
{
    const reduce_step *s = t->arg;
    lw_cuda_reduce a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    if (a.c == 1)
        lw_cuda_launch(s->step.d, LW_CUDA_reduce_rows, a.a, 1, &a);
    else
        lw_cuda_launch(s->step.d, LW_CUDA_reduce_columns,
                       lw_cuda_blocks(LW_CUDA_reduce_columns, a.a * a.c), 1, &a);
}

int lw_cuda_lower_reduce(cuda_lower *c)
{
    const lw_attr_reduce *at = c->n->attr;
    lw_type x = cuda_in(c, 0);
    LW_TRY(lw_cuda_f32(c, -1));
    reduce_step *s = lw_cuda_arg(c, sizeof *s, reduce_task);
    if (!s)
        return LW_ENOMEM;
    int64_t n = lw_type_count(x), last = lw_type_last(x);
    bool columns = at->over == LW_OVER_ROWS || at->over == LW_OVER_MIDDLE;
    s->a.c = columns ? last : 1;
    s->a.a = at->over == LW_OVER_LAST                                  ? n / last
             : at->over == LW_OVER_MIDDLE || at->over == LW_OVER_BATCH ? x.dim[0]
                                                                       : 1;
    s->a.r = n / s->a.a / s->a.c;
    s->a.scale = at->mean ? 1.0 / (double)s->a.r : 1.0;
    return 0;
}
