/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory asked for before its turn, line by line: what lies too far apart, or in no order, for a core to guess. It answers
 * while something else is computed. Reading from the second cache takes some 15 cycles, from the third 70, from memory 300;
 * a core has room for a dozen lines underway, and further requests wait, as loads do behind them.
 */
#ifndef LW_KERNELS_SIMD_FETCH_H
#define LW_KERNELS_SIMD_FETCH_H

#include "kernels/simd/simd.h"

typedef enum lw_fetch_to {
    LW_FETCH_L1,
    LW_FETCH_L2,      /* where the first cache holds what is used meanwhile */
    LW_FETCH_L2_WRITE /* to be written */
} lw_fetch_to;

/* The lines of `bytes` bytes from p + ahead bytes on, which may be nobody's memory: a request for that is none. Always
 * inline: gcc 12 takes a function that only asks for one without effect and drops its calls. */
LW_WORD void lw_fetch(const void *p, ptrdiff_t ahead, ptrdiff_t bytes, const lw_fetch_to to)
{
    enum { LINE = 64 };
    const uintptr_t at = (uintptr_t)p + (uintptr_t)ahead;
    for (ptrdiff_t i = 0; i < bytes; i += LINE) {
        const void *line = (const void *)(at + (uintptr_t)i);
        if (to == LW_FETCH_L1)
            __builtin_prefetch(line, 0, 3);
        else if (to == LW_FETCH_L2)
            __builtin_prefetch(line, 0, 2);
        else
            __builtin_prefetch(line, 1, 2);
    }
}

/* The same of n floats. */
LW_WORD void lw_fetch_floats(const float *p, ptrdiff_t ahead, ptrdiff_t n, const lw_fetch_to to)
{
    const ptrdiff_t size = (ptrdiff_t)sizeof *p;
    lw_fetch(p, ahead * size, n * size, to);
}

#endif
