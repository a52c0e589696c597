/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions: the reference. */
#include "kernels/attention/attention.h"

void lw_attention_rope_ref(float *y, const float *x, const float *table, float sign,
                           const lw_rope_shape *s, ptrdiff_t r0, ptrdiff_t r1)
{
    const ptrdiff_t half = s->d / 2;
    for (ptrdiff_t r = r0; r < r1; r++)
        for (ptrdiff_t p = 0; p < s->c / s->d; p++)
            for (ptrdiff_t i = 0; i < half; i++) {
                const float *t = table + (r % s->tokens * s->pieces + p % s->pieces) * s->d;
                const ptrdiff_t at = r * s->c + p * s->d + i;
                double cosine = (double)t[i], sine = (double)t[half + i] * (double)sign;
                double a = (double)x[at], b = (double)x[at + half];
                y[at] = (float)(a * cosine - b * sine);
                y[at + half] = (float)(b * cosine + a * sine);
            }
}
