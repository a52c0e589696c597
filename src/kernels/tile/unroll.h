/* SPDX-License-Identifier: Apache-2.0 */
/* LW_UNROLL_UP_TO(n) before a loop of at most n constant turns unrolls it fully, so that arrays of
 * vectors indexed by it become registers. */
#ifndef LW_KERNELS_TILE_UNROLL_H
#define LW_KERNELS_TILE_UNROLL_H

#if defined(__clang__)
#define LW_UNROLL_UP_TO(n) _Pragma("clang loop unroll(full)")
#else
#define LW_UNROLL_PRAGMA(text) _Pragma(#text)
#define LW_UNROLL_UP_TO(n) LW_UNROLL_PRAGMA(GCC unroll n)
#endif

#endif
