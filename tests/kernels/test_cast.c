/* SPDX-License-Identifier: Apache-2.0 */
/* cast: the same bits as the reference at every length, and the reference against what the formats
 * say. */
#include <math.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static struct lw_cast_kernels kernels_of(lw_isa isa)
{
    static lw_kernels k;
    lw_kernels_init(&k, isa);
    return k.cast;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Random bit patterns: every exponent, denormals, infinities, NaN. */
static float *any_floats(check *t, int64_t n, int shift)
{
    float *x = check_out(t, n, shift);
    for (int64_t i = 0; i < n; i++)
        x[i] = float_of(check_below(t, 0xffffffffu) ^ (i % 9 ? 0 : 0x7f800000u));
    return x;
}

static void bf16_bits(check *t)
{
    static const uint32_t rows[][2] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80},
        {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x00000001, 0x0000}, {0x00018000, 0x0002},
        {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0},
        {0xffc12345, 0xffc1}};
    struct lw_cast_kernels k = kernels_of(t->isa);
    for (size_t i = 0; i < LW_COUNT(rows); i++)
        for (ptrdiff_t n = 1; n <= 17; n += 16) {
            float *x = check_out(t, n, 1);
            lw_bf16 *got = check_bytes(t, (size_t)n * sizeof *got, 0);
            for (ptrdiff_t j = 0; j < n; j++)
                x[j] = float_of(rows[i][0]);
            k.f32_to_bf16(got, x, n);
            lw_bf16 want = (lw_bf16)rows[i][1];
            check_same(t, got + n - 1, &want, sizeof want, "bits %08x", rows[i][0]);
            check_next(t);
        }
}

static void lengths(check *t)
{
    struct lw_cast_kernels k = kernels_of(t->isa), ref = kernels_of(LW_ISA_REF);
    for (ptrdiff_t n = 1; n < 70; n++) {
        size_t u = (size_t)n;
        float *x = any_floats(t, n, n & 1), *back = check_out(t, n, n & 1);
        float *want_f = check_out(t, n, 0);
        lw_bf16 *b = check_bytes(t, u * sizeof *b, 0), *want_b = check_bytes(t, u * sizeof *b, 0);
        uint8_t *c = check_bytes(t, u, 0), *want_c = check_bytes(t, u, 0);
        k.f32_to_bf16(b, x, n);
        ref.f32_to_bf16(want_b, x, n);
        check_same(t, b, want_b, u * sizeof *b, "f32 to bf16, n=%td", n);
        k.bf16_to_f32(back, b, n);
        ref.bf16_to_f32(want_f, b, n);
        check_same(t, back, want_f, u * sizeof *back, "bf16 to f32, n=%td", n);
        float *y = check_in(t, n, n & 1, -3, 9);
        int32_t zero = (int32_t)check_below(t, 256);
        y[0] = (float[]){NAN, INFINITY, -INFINITY, 1e30f, 0.125f}[n % 5];
        k.f32_to_u8(c, y, n, 0.05f, zero);
        ref.f32_to_u8(want_c, y, n, 0.05f, zero);
        check_same(t, c, want_c, u, "f32 to u8, n=%td", n);
        k.f32_to_bf16(b, y, n);
        k.bf16_to_u8(c, b, n, 0.05f, zero);
        k.bf16_to_f32(back, b, n);
        ref.f32_to_u8(want_c, back, n, 0.05f, zero);
        check_same(t, c, want_c, u, "bf16 to u8, n=%td", n);
        k.u8_to_f32(back, c, n, 0.05f, zero);
        ref.u8_to_f32(want_f, c, n, 0.05f, zero);
        check_same(t, back, want_f, u * sizeof *back, "u8 to f32, n=%td", n);
        check_next(t);
    }
}

/* Halves go to even, ends saturate, NaN is 0. */
static void rounding_to_bytes(check *t)
{
    enum { N = 21 };
    struct lw_cast_kernels k = kernels_of(t->isa);
    float *x = check_out(t, N, 1);
    uint8_t got[N], want[N];
    for (int i = 0; i < N; i++) {
        x[i] = ((float)i - 10.0f) * 0.25f; /* halves of the scale 0.5 */
        want[i] = (uint8_t)LW_MAX((int)lrint((i - 10) * 0.5) + 3, 0);
    }
    k.f32_to_u8(got, x, N, 0.5f, 3);
    check_same(t, got, want, N, "halves");
    static const uint8_t ends[4] = {255, 0, 0, 255};
    float e[4] = {1e9f, -1e9f, NAN, INFINITY};
    k.f32_to_u8(got, e, 4, 0.5f, 3);
    check_same(t, got, ends, 4, "ends");
}

static void range(check *t)
{
    struct lw_cast_kernels k = kernels_of(t->isa);
    for (ptrdiff_t n = 1; n < 70; n++) {
        float *x = check_in(t, n, n & 1, -2, 3);
        float got[2] = {INFINITY, -INFINITY}, want[2] = {INFINITY, -INFINITY};
        for (ptrdiff_t i = 0; i < n; i++) {
            if (i % 7 == 3) {
                x[i] = NAN;
                continue;
            }
            want[0] = fminf(want[0], x[i]);
            want[1] = fmaxf(want[1], x[i]);
        }
        k.range(&got[0], &got[1], x, n / 2); /* in two parts */
        k.range(&got[0], &got[1], x + n / 2, n - n / 2);
        check_same(t, got, want, sizeof want, "n=%td", n);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"bf16_bits", bf16_bits},
                                       {"lengths", lengths},
                                       {"rounding_to_bytes", rounding_to_bytes},
                                       {"range", range}};
    return check_main(argc, argv, "cast", cases, LW_COUNT(cases));
}
