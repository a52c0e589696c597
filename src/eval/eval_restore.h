/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How near a picture is to another, and what filters without a network make of a damaged one. Pictures
 * are bytes [h][w][c]; beyond the border the last pixel goes on.
 *
 *   PSNR        10 log10(255^2 / mean squared difference), in dB; of equal pictures 99
 *   unsharp     y = x + amount (x - G x), G a Gaussian of standard deviation sd, cut at 3 sd
 *   local       Wiener's filter with local statistics (Lim 1990; scipy.signal.wiener): with mean m and
 *               variance v of a window around a pixel, y = m + max(v - noise, 0) / v (x - m)
 *   linear      Wiener's filter by its normal equations: the kernel of side x side numbers and a
 *               constant that come nearest to clean pictures in the mean square, from pairs
 */
#ifndef LW_EVAL_RESTORE_H
#define LW_EVAL_RESTORE_H

#include <stdint.h>

#include "base/base.h"

double lw_psnr_u8(const uint8_t *a, const uint8_t *b, int64_t n);

typedef struct lw_plane {
    int32_t h, w, c;
} lw_plane;

int lw_unsharp_u8(const uint8_t *x, lw_plane p, double sd, double amount, uint8_t *y);
/* noise: its variance, in squared levels. */
void lw_wiener_local_u8(const uint8_t *x, lw_plane p, int32_t window, double noise, uint8_t *y);

enum { LW_WIENER_SIDE = 7, LW_WIENER_TAPS = LW_WIENER_SIDE * LW_WIENER_SIDE + 1 };
typedef struct lw_wiener {
    double a[LW_WIENER_TAPS * LW_WIENER_TAPS], b[LW_WIENER_TAPS];
    double tap[LW_WIENER_TAPS]; /* the last is the constant; set by lw_wiener_solve */
} lw_wiener;

/* Adds every third pixel of a pair. */
void lw_wiener_add(lw_wiener *f, const uint8_t *damaged, const uint8_t *clean, lw_plane p);
/* LW_ENUMERIC: no pair was added, or only flat ones. */
int lw_wiener_solve(lw_wiener *f);
void lw_wiener_u8(const lw_wiener *f, const uint8_t *x, lw_plane p, uint8_t *y);

#endif
