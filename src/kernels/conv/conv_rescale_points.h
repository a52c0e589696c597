/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transforms of a line of conv_rescale.h, as constants.
 *
 * F(4,2), y_j = A d_j + B d_j+1, interpolates at +-a, +-b and infinity:
 *   input    t0,t1 = (d3 - b2 d1) +- a (d2 - b2 d0)     t2,t3 the same with a and b swapped
 *            t4 = d4 - (a2 + b2) d2 + a2 b2 d0
 *   filter   u0,u1 = +-(A +- a B) / (2 a (a2 - b2))     u2,u3 the same with a and b swapped     u4 = B
 *   output   y_j = a^j (m0 +- m1) + b^j (m2 +- m3) + m4 [j = 3]   (+ for even j)
 *
 *            of a picture      that shrinks, d its even numbers     that grows, d = x
 *   filter   A, B, u5          w0, w2, w1                           w0, w1 + w2, w1
 *   input    t5 .. t8          its odd numbers                      d_j - d_j+1
 *   output                     y_j + m_5+j                          of odd number y_j + m_5+j, even y_j
 *
 * a and b are short binary fractions, so that the constants are exact; of 25 pairs these have the least errors of 256 channels,
 * .66 and .47 of those of F(4,3) (conv_winograd_points.h).
 */
#ifndef LW_KERNELS_CONV_RESCALE_POINTS_H
#define LW_KERNELS_CONV_RESCALE_POINTS_H

#define LW_RESCALE_A 0.375
#define LW_RESCALE_B 1.25
#define LW_RESCALE_A2 (LW_RESCALE_A * LW_RESCALE_A)
#define LW_RESCALE_B2 (LW_RESCALE_B * LW_RESCALE_B)
#define LW_RESCALE_NA (2.0 * LW_RESCALE_A * (LW_RESCALE_A2 - LW_RESCALE_B2))
#define LW_RESCALE_NB (2.0 * LW_RESCALE_B * (LW_RESCALE_B2 - LW_RESCALE_A2))

#endif
