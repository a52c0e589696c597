/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that need no file: bytes by the formula of docs/golden.md (picture in
 * tools/golden/formula.py). */
#ifndef LW_TESTS_FORMULA_PICTURE_H
#define LW_TESTS_FORMULA_PICTURE_H

#include <stdio.h>

#include "base/base.h"

/* x [h][w][c] */
static inline void formula_picture(uint8_t *x, int h, int w, int c)
{
    char name[64];
    snprintf(name, sizeof name, "resample.%dx%dx%d", h, w, c);
    uint64_t seed = lw_hash_name(name);
    for (int64_t i = 0; i < (int64_t)h * w * c; i++) {
        uint64_t z = seed + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        x[i] = (uint8_t)((z ^ z >> 31) >> 56);
    }
}

#endif
