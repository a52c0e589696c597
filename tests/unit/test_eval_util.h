/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the eval tests: random rows, expected failures. */
#ifndef TEST_EVAL_UTIL_H
#define TEST_EVAL_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/base.h"
#include "eval/eval.h"
#include "results.h"

#define near(got, want, tolerance)                                                  \
    do {                                                                            \
        double near_g_ = (got), near_w_ = (want);                                   \
        if (!(fabs(near_g_ - near_w_) <= (tolerance)))                              \
            fail_msg("%s = %.15g, not %.15g (off by %.3g)", #got, near_g_, near_w_, \
                     near_g_ - near_w_);                                            \
    } while (0)

/* About normal: sum of four uniforms, sd 1. Pure in (seed, i). */
__attribute__((unused)) static float gauss(uint64_t seed, int64_t i)
{
    lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("test.gauss"));
    double sum = 0;
    for (uint64_t e = 0; e < 4; e++)
        sum += lw_rng_uniform(key, 0, (uint64_t)i, e);
    return (float)((sum - 2) * sqrt(3));
}

__attribute__((unused)) static float *gauss_rows(uint64_t seed, int64_t n, int32_t dim)
{
    float *x = malloc((size_t)n * (size_t)dim * sizeof *x);
    for (int64_t i = 0; i < n * dim; i++)
        x[i] = gauss(seed, i);
    return x;
}

#endif
