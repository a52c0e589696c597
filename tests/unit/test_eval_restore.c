/* SPDX-License-Identifier: Apache-2.0 */
/* PSNR and the filters that networks are compared with, against scipy's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/eval.h"
#include "kernels/formula_picture.h"
#include "results.h"

enum { H = 9, W = 11 };
static const lw_plane plane = {H, W, 1};

static void check(const uint8_t *have, const uint8_t *want)
{
    for (int i = 0; i < H * W; i++)
        assert_int_equal(have[i], want[i]);
}

static void test_psnr(void **state)
{
    const uint8_t a[4] = {0, 10, 20, 30}, b[4] = {2, 10, 20, 30};
    (void)state;
    assert_true(lw_psnr_u8(a, a, 4) == 99.0);
    double have = lw_psnr_u8(a, b, 4); /* 10 log10(255^2 / 1) */
    assert_true(have > 48.1308 && have < 48.1309);
}

/* y = x + 0.75 (x - gaussian_filter(x, 1, mode="nearest", truncate=3)); the local filter in double with
 * numpy, borders padded by their last pixel, windows of 3 and noise 900. */
static void test_scipy(void **state)
{
    static const uint8_t unsharp[] = {0,   21,  182, 255, 122, 0,   0,   192, 227, 148, 161,
                                      20,  239, 0,   148, 0,   233, 0,   0,   0,   45,  94,
                                      5,   106, 6,   0,   98,  0,   242, 255, 255, 99,  0,
                                      165, 153, 255, 70,  89,  222, 0,   54,  35,  50,  61,
                                      19,  144, 22,  255, 102, 92,  255, 255, 0,   150, 137,
                                      255, 196, 87,  255, 222, 154, 169, 70,  80,  171, 251,
                                      66,  252, 0,   130, 0,   255, 205, 255, 255, 0,   195,
                                      204, 250, 130, 255, 255, 110, 131, 71,  255, 56,  45,
                                      70,  17,  66,  183, 148, 101, 0,   16,  0,   134, 51},
                         wiener[] = {29,  51,  150, 205, 113, 18,  11,  143, 167, 135, 125,
                                     44,  142, 32,  119, 36,  147, 24,  45,  51,  79,  94,
                                     55,  102, 55,  18,  92,  24,  173, 201, 227, 96,  69,
                                     119, 131, 210, 92,  100, 166, 60,  94,  77,  75,  79,
                                     90,  142, 94,  199, 132, 125, 215, 227, 34,  125, 132,
                                     213, 165, 120, 233, 187, 156, 173, 116, 108, 149, 183,
                                     137, 194, 65,  141, 42,  204, 171, 202, 203, 65,  158,
                                     163, 181, 136, 227, 237, 123, 126, 96,  202, 84,  79,
                                     94,  76,  101, 167, 153, 106, 28,  43,  40,  105, 77};
    uint8_t x[H * W], y[H * W];
    (void)state;
    formula_picture(x, H, W, 1);
    ok(lw_unsharp_u8(x, plane, 1, 0.75, y));
    check(y, unsharp);
    lw_wiener_local_u8(x, plane, 3, 900, y);
    check(y, wiener);
}

/* Where clean pictures follow from damaged ones by a kernel, it is found. */
static void test_linear(void **state)
{
    enum { SIDE = 64 };
    static uint8_t x[SIDE * SIDE], y[SIDE * SIDE], z[SIDE * SIDE];
    static lw_wiener f;
    const lw_plane p = {SIDE, SIDE, 1};
    (void)state;
    fails(lw_wiener_solve(&f), LW_ENUMERIC, "too flat");
    formula_picture(x, SIDE, SIDE, 1);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            int left = x[i * SIDE + (j > 0 ? j - 1 : 0)],
                below = x[(i + 1 < SIDE ? i + 1 : i) * SIDE + j];
            y[i * SIDE + j] = (uint8_t)(20 + x[i * SIDE + j] / 2 + left / 8 + below / 4);
        }
    memset(&f, 0, sizeof f);
    lw_wiener_add(&f, x, y, p);
    ok(lw_wiener_solve(&f));
    const int centre = LW_WIENER_SIDE * LW_WIENER_SIDE / 2;
    assert_true(f.tap[centre] > 0.49 && f.tap[centre] < 0.51);
    assert_true(f.tap[centre - 1] > 0.115 && f.tap[centre - 1] < 0.135);
    assert_true(f.tap[centre + LW_WIENER_SIDE] > 0.24 && f.tap[centre + LW_WIENER_SIDE] < 0.26);
    lw_wiener_u8(&f, x, p, z);
    assert_true(lw_psnr_u8(z, y, SIDE * SIDE) > 45);
    assert_true(lw_psnr_u8(x, y, SIDE * SIDE) < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_psnr),
        cmocka_unit_test(test_scipy),
        cmocka_unit_test(test_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
