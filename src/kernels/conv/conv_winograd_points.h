/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one-dimensional transforms of F(4,3) and F(2,3), as constants.
 *
 * F(4,3) interpolates at 0, +-a, +-b and infinity. With d the 6 inputs, g the 3 taps:
 *   input    t0 = a2 b2 d0 - (a2 + b2) d2 + d4         t5 = a2 b2 d1 - (a2 + b2) d3 + d5
 *            t1,t2 = (d4 - b2 d2) +- a (d3 - b2 d1)    t3,t4 = (d4 - a2 d2) +- b (d3 - a2 d1)
 *   filter   u0 = g0 / (a2 b2)                          u5 = g2
 *            u1,u2 = ((g0 + a2 g2) +- a g1) / (2 a2 (a2 - b2)), u3,u4 the same with a and b swapped
 *   output   y_k = m0 [k = 0] + a^k (m1 +- m2) + b^k (m3 +- m4) + m5 [k = 3]   (+ for even k)
 *
 * F(2,3) interpolates at 0, +-1 and infinity.
 *
 * a and b are short binary fractions, so that the constants of the input and output transforms are
 * exact; which ones was found by measuring (docs/performance-zen4.md, "Winograd").
 *
 * F(2,5) interpolates at the same points: inputs as above, of filters u0 = g0 / (a2 b2), u5 = g4,
 * u1,u2 = ((g0 + a2 g2 + a4 g4) +- a (g1 + a2 g3)) / (2 a2 (a2 - b2)), u3,u4 with a and b swapped, and of outputs y0, and
 * y1 = a (m1 - m2) + b (m3 - m4) + m5.
 *
 * F(4,7), of kernels of 1x7 and 7x1, interpolates at 0, four pairs +-a and infinity. With e1 .. e4 the elementary symmetric
 * polynomials of the four a2, and s1 = e1 - a2, s2 = e2 - a2 s1, s3 = e3 - a2 s2 those of the three others:
 *   input    t0 = d8 - e1 d6 + e2 d4 - e3 d2 + e4 d0    t9 the same of d9, d7 .. d1
 *            t+-a = (d8 - s1 d6 + s2 d4 - s3 d2) +- a (d7 - s1 d5 + s2 d3 - s3 d1)
 *   filter   u0 = g0 / e4                               u9 = g6
 *            u+-a = ((g0 + a2 g2 + a4 g4 + a6 g6) +- a (g1 + a2 g3 + a4 g5)) / (2 a2 (a6 - s1 a4 + s2 a2 - s3))
 *   output   y_k = m0 [k = 0] + sum over a of a^k (m+a +- m-a) + m9 [k = 3]   (+ for even k)
 *
 * Constants are exact again. Errors of sums of 192 channels are 3.4 times those of F(4,3) in one dimension, half of those that
 * 1/2, 1, 3/2, 2 have; of some 290 choices of eighths the best is better by 7 %.
 *
 * F(4,3) of whole numbers, u8 inputs and s8 taps, interpolates at 0, 1, -1, 2, -1/2 and infinity:
 *   input    t0 = 2 d0 + 3 d1 - 4 d2 - 3 d3 + 2 d4      t5 = 2 d1 + 3 d2 - 4 d3 - 3 d4 + 2 d5
 *            t1 = -2 d1 - 5 d2 - d3 + 2 d4              t2 = 2 d1 + d2 - 5 d3 + 2 d4
 *            t3 = -d1 - 2 d2 + d3 + 2 d4                t4 = 2 d1 - d2 - 2 d3 + d4
 *   filter   u0 = 15 g0, u1,u2 = -+5 (g0 +- g1 + g2), u3 = g0 + 2 g1 + 4 g2, u4 = -4 g0 + 2 g1 - g2, u5 = 15 g2
 *   output   30 y_k = m0 [k = 0] + (m1 + (-1)^k m2) + 2^k m3 + (-1)^k 2^(3-k) m4 + m5 [k = 3]
 *
 * In two dimensions, at bytes that are largest in size: |t| <= 14 x 7 x 255 = 24,990 and |u| <= 15 x 15 x 127 = 28,575 are s16, two
 * products together, 1,428,178,500, s32. Sums over channels and outputs are taken modulo 2^32, which no addition or
 * multiplication minds: what comes out is 900 y modulo 2^32, times the inverse of 225 that is 4 y, and y where it is
 * below 2^29 in size, which LW_WINOGRAD_MAX_DEPTH_U8 channels are. So results are exact: the sums that
 * computing directly gives. These points, and not the usual 0, +-1, +-2, since of each pair that is equal modulo 2, {0, 2},
 * {1, -1} and {infinity, -1/2}, differences have one factor of 2: four bits less would be left of y.
 */
#ifndef LW_KERNELS_CONV_WINOGRAD_POINTS_H
#define LW_KERNELS_CONV_WINOGRAD_POINTS_H

#ifndef LW_WINO_A
#define LW_WINO_A 0.625
#define LW_WINO_B 1.5
#endif
#define LW_WINO_A2 (LW_WINO_A * LW_WINO_A)
#define LW_WINO_B2 (LW_WINO_B * LW_WINO_B)
/* What the taps are divided by. */
#define LW_WINO_N0 (LW_WINO_A2 * LW_WINO_B2)
#define LW_WINO_NA (2.0 * LW_WINO_A2 * (LW_WINO_A2 - LW_WINO_B2))
#define LW_WINO_NB (2.0 * LW_WINO_B2 * (LW_WINO_B2 - LW_WINO_A2))

/* F(4,7). */
#define LW_WINO7_A 0.375
#define LW_WINO7_B 0.75
#define LW_WINO7_C 1.25
#define LW_WINO7_D 2.0

/* 900 y modulo 2^32 is y times four after this: 225 times it is 1 modulo 2^32. */
#define LW_WINO_U8_INVERSE 0x87654321u
enum { LW_WINO_U8_SHIFT = 2 };

#endif
