/* SPDX-License-Identifier: Apache-2.0 */
/* The Gaussian blur against hashes of what Pillow makes of formula pictures (blur_pillow.def, by
 * tools/resample_check.py). LW_BLUR_ROWS=FILE: rows of that file are compared too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/formula_picture.h"
#include "kernels/kernels.h"

typedef struct pillow_row {
    float radius;
    int h, w, c;
    uint64_t hash; /* of the bytes of the result */
} pillow_row;

static const pillow_row rows[] = {
#define B(radius, h, w, c, hash) {radius, h, w, c, hash},
#include "kernels/blur_pillow.def"
#undef B
};

static void check_row(check *t, const pillow_row *p)
{
    size_t n = (size_t)(p->h * p->w * p->c);
    uint8_t *x = check_bytes(t, n, 0);
    formula_picture(x, p->h, p->w, p->c);
    lw_blur_u8(x, check_bytes(t, n, 0), p->h, p->w, p->c, p->radius);
    uint64_t got = lw_hash64(x, n);
    check_same(t, &got, &p->hash, sizeof got, "radius %g of %dx%d of %d", (double)p->radius, p->w,
               p->h, p->c);
    check_next(t);
}

static void check_file(check *t, const char *path)
{
    pillow_row p;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fscanf(f, "%f %d %d %d %lx", &p.radius, &p.h, &p.w, &p.c, &p.hash) == 5)
        check_row(t, &p);
    assert_true(feof(f));
    fclose(f);
}

static void pillow(check *t)
{
    for (size_t i = 0; i < LW_COUNT(rows); i++)
        check_row(t, &rows[i]);
    if (getenv("LW_BLUR_ROWS"))
        check_file(t, getenv("LW_BLUR_ROWS"));
}

/* A picture of one colour keeps it, whatever the radius. */
static void plain(check *t)
{
    static const float radii[] = {0.3f, 1, 2.5f, 5, 15, 60};
    for (size_t r = 0; r < LW_COUNT(radii); r++) {
        uint8_t *x = check_bytes(t, 20 * 9 * 3, 0), *want = check_bytes(t, 20 * 9 * 3, 0);
        memset(x, 255, 20 * 9 * 3);
        memset(want, 255, 20 * 9 * 3);
        lw_blur_u8(x, check_bytes(t, 20 * 9 * 3, 0), 20, 9, 3, radii[r]);
        check_same(t, x, want, 20 * 9 * 3, "radius %g", (double)radii[r]);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"pillow", pillow}, {"plain", plain}};
    return check_main(argc, argv, "blur", cases, LW_COUNT(cases));
}
