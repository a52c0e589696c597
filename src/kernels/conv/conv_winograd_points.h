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

#endif
