/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reverse: one step of the reverse process of a diffusion model or a rectified flow, x at one time
 * to x at an earlier one, from what the network says of it (Ho et al. 2020, Song et al. 2021, Liu et
 * al. 2022).
 *
 *   prediction   y is                   x0              eps
 *   EPSILON      the noise              (x - s y) / a   y
 *   SAMPLE       the picture            y               (x - a y) / s
 *   VELOCITY     a noise - s picture    a x - s y       a y + s x     where a^2 + s^2 = 1
 *   FLOW         noise - picture        x - s y         x + a y       where a + s = 1
 *
 *   x0  = clamp(x0, -clip, clip)
 *   eps = (x - a x0) / s             where x0 was clamped, unless keep_eps
 *   out = clamp(c0 x0 + c1 eps + c2 noise + c3 x, -limit, limit); what is no number stays so
 *
 * "noise" is whatever the move adds: in DPM-Solver the picture x0 of the move before, in Heun's method
 * the velocity.
 *
 * Without keep_eps, eps is the noise that x holds beside the picture that is believed; with it, the
 * noise of the picture that was not believed, which moves x towards grey wherever x0 was clamped.
 *
 * In double, rounded once. One version for all instruction sets: same bits on each.
 *
 * Cost: some 10 operations and a division an element; nothing beside the network.
 */
#ifndef LW_KERNELS_REVERSE_H
#define LW_KERNELS_REVERSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/kinds.h"

/* n numbers; noise may be NULL when c2 is 0. out may be x. */
void lw_reverse_step(float *out, const float *x, const float *y, const float *noise,
                     const lw_reverse *r, lw_prediction prediction, bool keep_eps, ptrdiff_t n);

#endif
