/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a tile program and giving its intermediate results as few temporary tiles
 * as possible. */
#include <string.h>

#include "base/error.h"
#include "kernels/ew/ew.h"

static const int8_t arity[LW_TILE_OPS] = {
#define EW(name, n, ref, body, slope) [LW_TILE_##name] = (n),
#include "ir/ewops.def"
#undef EW
};

int lw_ew_arity(int op)
{
    return op > 0 && op < LW_TILE_OPS ? arity[op] : -1;
}

static int check(const lw_ew_program *p)
{
    if (p->n_in < 0 || p->n_in > LW_EW_MAX_OPERANDS || p->n_instr < 0 ||
        p->n_instr > LW_EW_MAX_STEPS || p->n_out < 1 || p->n_out > LW_EW_MAX_OUTPUTS)
        return lw_fail(
            LW_ESHAPE,
            "elementwise program: %d operands, %d instructions, %d outputs; at most %d, %d, %d",
            p->n_in, p->n_instr, p->n_out, LW_EW_MAX_OPERANDS, LW_EW_MAX_STEPS, LW_EW_MAX_OUTPUTS);
    for (int i = 0; i < p->n_in; i++)
        if (p->mode[i] >= LW_TILE_MODES)
            return lw_fail(LW_ESHAPE, "elementwise program: operand %d has unknown mode %d", i,
                           p->mode[i]);
    for (int i = 0; i < p->n_instr; i++) {
        const lw_ew_instr *e = &p->instr[i];
        int n = lw_ew_arity(e->op), known = p->n_in + i;
        if (n < 0)
            return lw_fail(LW_ESHAPE, "elementwise program: instruction %d has unknown code %d", i,
                           e->op);
        const uint8_t r[3] = {e->a, e->b, e->c};
        for (int k = 0; k < n; k++)
            if (r[k] >= known)
                return lw_fail(LW_ESHAPE,
                               "elementwise program: instruction %d reads register %d of %d", i,
                               r[k], known);
    }
    for (int i = 0; i < p->n_out; i++)
        if (p->out[i] >= p->n_in + p->n_instr)
            return lw_fail(LW_ESHAPE, "elementwise program: output %d is register %d of %d", i,
                           p->out[i], p->n_in + p->n_instr);
    return LW_OK;
}

int lw_ew_prepare(lw_ew_program *p)
{
    LW_TRY(check(p));
    memset(p->last, 0, sizeof p->last);
    for (int i = 0; i < p->n_instr; i++) {
        const uint8_t r[3] = {p->instr[i].a, p->instr[i].b, p->instr[i].c};
        for (int k = 0; k < arity[p->instr[i].op]; k++)
            p->last[r[k]] = (uint8_t)i;
    }
    for (int i = 0; i < p->n_out; i++)
        p->last[p->out[i]] = LW_EW_MAX_STEPS; /* alive to the end of the tile */
    uint8_t free_at[LW_EW_MAX_STEPS]; /* slot s may be written by instruction free_at[s] or later */
    int n = 0;
    for (int i = 0; i < p->n_instr; i++) {
        p->slot[i] = 255;
        if (p->instr[i].op == LW_TILE_konst)
            continue; /* a konst is read in place */
        int s = 0;
        while (s < n && free_at[s] > i)
            s++;
        if (s == n)
            n++;
        p->slot[i] = (uint8_t)s;
        /* An instruction may overwrite its own operand: it reads element i before writing it. */
        uint8_t last = p->last[p->n_in + i];
        free_at[s] = last > i ? last : (uint8_t)(i + 1);
    }
    p->n_slot = n;
    return LW_OK;
}
