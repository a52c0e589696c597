/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row-keyed random draws: the bits of kernels/random on the CPU. This file is compiled with
 * -fmad=false, so that a * b + c is not fused; where the CPU's polynomials have a fused step it is
 * written out as fmaf.
 */
#include "backend/cuda/kernels/cuda_philox.h"

/* simd_math.h's logarithm, for 2^-31 <= x <= 1. */
LW_ON_DEVICE float random_log(float x)
{
    int32_t bits = (int32_t)(lw_float_to_bits(x) - 0x3f3504f3u);
    float e = (float)(bits >> 23);
    float f = lw_bits_to_float(((uint32_t)bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 0.06971346319f;
    p = fmaf(p, f, -0.1148308133f);
    p = fmaf(p, f, 0.1168702488f);
    p = fmaf(p, f, -0.1242535982f);
    p = fmaf(p, f, 0.1424887698f);
    p = fmaf(p, f, -0.1666780977f);
    p = fmaf(p, f, 0.2000072074f);
    p = fmaf(p, f, -0.2499999693f);
    p = fmaf(p, f, 0.3333333116f);
    float f2 = f * f;
    p = (f2 * f) * p;
    p = fmaf(e, 1.42860677e-6f, p);
    p = fmaf(-0.5f, f2, p);
    return fmaf(e, 0.693145752f, f + p);
}

/* Box and Muller on words u and v; which: 0 the cosine's, 1 the sine's. */
LW_ON_DEVICE float random_normal(uint32_t u, uint32_t v, int which)
{
    float x = (float)((u >> 1) | 1u) * 0x1p-31f;
    float radius = sqrtf(-2.0f * random_log(x));
    uint32_t quarter = (v + 0x20000000u) >> 30;
    float r = (float)(int32_t)(v - (quarter << 30)) * 1.46291807927e-9f, s = r * r;
    float p = -0.0001958537321f;
    p = fmaf(p, s, 0.008332736559f);
    p = fmaf(p, s, -0.166666646f);
    float sine = fmaf(p * s, r, r);
    float q = 2.454541908e-5f;
    q = fmaf(q, s, -0.00138882913f);
    q = fmaf(q, s, 0.0416666646f);
    q = fmaf(q, s, -0.5f);
    float cosine = fmaf(q, s, 1.0f);
    uint32_t turn = which ? quarter : quarter + 1u; /* bit 1: the other sign */
    float y = ((quarter & 1u) != 0) == (which != 0) ? cosine : sine;
    return radius * lw_bits_to_float(lw_float_to_bits(y) ^ ((turn & 2u) << 30));
}

/* A thread makes the four elements of a block of the counter. */
LW_KERNEL(random, lw_cuda_random, 128)
{
    int64_t blocks = (a.n + 3) / 4;
    uint32_t key[2], step = a.tick->step;
    lw_philox_key(key, a.tick->seed, a.stream);
    LW_EACH(i, a.rows * blocks)
    {
        int64_t row = i / blocks, e0 = i % blocks * 4;
        uint32_t w[4];
        lw_philox_block(w, key, step, (uint64_t)a.ids[row], (uint32_t)(e0 / 4));
        for (int k = 0; k < 4 && e0 + k < a.n; k++) {
            int64_t at = row * a.n + e0 + k;
            if (a.kind == 0)
                ((float *)a.y)[at] = random_normal(w[k & 2], w[(k & 2) + 1], k & 1);
            else if (a.kind == 1)
                ((float *)a.y)[at] = (float)(w[k] >> 8) * 0x1p-24f;
            else if (a.kind == 2)
                ((int32_t *)a.y)[at] = (int32_t)(((uint64_t)w[k] * a.below) >> 32);
            else
                ((float *)a.y)[at] = w[k] >= a.limit ? a.x[at] * a.scale : 0.0f;
        }
    }
}

/* kernels/reverse/reverse.h, in double, rounded once. */
LW_KERNEL(reverse, lw_cuda_reverse, 256)
{
    double ca = a.numbers[0], cs = a.numbers[1], clip = a.numbers[6], limit = a.numbers[7];
    LW_ROLLED
    LW_EACH(i, a.n)
    {
        double v = (double)a.x[i], y = (double)a.said[i], x0, e;
        if (a.prediction == 0) {
            x0 = (v - cs * y) / ca;
            e = y;
        } else if (a.prediction == 1) {
            x0 = y;
            e = (v - ca * y) / cs;
        } else if (a.prediction == 2) {
            x0 = ca * v - cs * y;
            e = ca * y + cs * v;
        } else {
            x0 = v - cs * y;
            e = v + ca * y;
        }
        if (fabs(x0) > clip) {
            x0 = copysign(clip, x0);
            e = a.keep_eps ? e : (v - ca * x0) / cs;
        }
        v = a.numbers[2] * x0 + a.numbers[3] * e + a.numbers[5] * v;
        if (a.noise && a.numbers[4] != 0.0)
            v += a.numbers[4] * (double)a.noise[i];
        a.y[i] = (float)(v < -limit ? -limit : v > limit ? limit : v); /* NaN stays */
    }
}
