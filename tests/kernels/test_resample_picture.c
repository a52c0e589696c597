/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures at another size: the u8 forms against hashes of what Pillow makes of formula pictures
 * (resample_pillow.def, by tools/resample_check.py), fast passes against the reference, windows
 * against whole results. LW_RESAMPLE_ROWS=FILE: rows of that file are compared too. The float forms
 * meet PyTorch in tests/golden.
 */
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

static struct lw_resample_kernels table(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k.resample;
}

/* ---- against Pillow -------------------------------------------------------------------------- */

typedef struct pillow_row {
    lw_resample_form form;
    lw_filter filter;
    int h, w, c, to_h, to_w;
    uint64_t hash; /* of the bytes of the result */
} pillow_row;

static const pillow_row rows[] = {
#define P(form, filter, h, w, c, to_h, to_w, hash) \
    {LW_RESAMPLE_##form, LW_FILTER_##filter, h, w, c, to_h, to_w, hash},
#include "kernels/resample_pillow.def"
#undef P
};

static void check_row(check *t, const pillow_row *p)
{
    struct lw_resample_kernels k = table(t);
    size_t n = (size_t)(p->to_h * p->to_w * p->c);
    uint8_t *x = check_bytes(t, (size_t)(p->h * p->w * p->c), 0), *y = check_bytes(t, n, 0);
    lw_resample r = {0};
    formula_picture(x, p->h, p->w, p->c);
    assert_int_equal(lw_resample_init(&r, &(lw_resample_spec){.form = p->form,
                                                              .filter = p->filter,
                                                              .h = p->h,
                                                              .w = p->w,
                                                              .c = p->c,
                                                              .to_h = p->to_h,
                                                              .to_w = p->to_w}),
                     0);
    lw_resample_u8(&k, &r, y, x, check_bytes(t, lw_resample_scratch(&r), 0));
    lw_resample_clear(&r);
    uint64_t got = lw_hash64(y, n);
    check_same(t, &got, &p->hash, sizeof got, "%s %s, %dx%d of %d to %dx%d",
               lw_resample_form_name[p->form], lw_filter_name[p->filter], p->w, p->h, p->c, p->to_w,
               p->to_h);
    check_next(t);
}

static int word_of(const char *const *names, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (lw_str_eq(names[i], word))
            return i;
    fail_msg("unknown word '%s'", word);
    return 0;
}

static void check_file(check *t, const char *path)
{
    char form[16], filter[16];
    pillow_row p;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fscanf(f, "%15s %15s %d %d %d %d %d %lx", form, filter, &p.h, &p.w, &p.c, &p.to_h,
                  &p.to_w, &p.hash) == 8) {
        p.form = (lw_resample_form)word_of(lw_resample_form_name, LW_RESAMPLE_FORMS, form);
        p.filter = (lw_filter)word_of(lw_filter_name, LW_FILTERS, filter);
        check_row(t, &p);
    }
    assert_true(feof(f));
    fclose(f);
}

static void pillow(check *t)
{
    for (size_t i = 0; i < LW_COUNT(rows); i++)
        check_row(t, &rows[i]);
    if (getenv("LW_RESAMPLE_ROWS"))
        check_file(t, getenv("LW_RESAMPLE_ROWS"));
}

/* ---- fast against reference ------------------------------------------------------------------ */

static lw_resample_spec random_spec(check *t, lw_resample_form form)
{
    static const uint32_t sides[] = {5, 20, 70};
    uint32_t most = sides[check_below(t, 3)];
    lw_resample_spec s = {.form = form,
                          .filter = (lw_filter)check_below(t, LW_FILTERS),
                          .h = 1 + check_below(t, most),
                          .w = 1 + check_below(t, most),
                          .c = 1 + check_below(t, 6),
                          .to_h = 1 + check_below(t, most),
                          .to_w = 1 + check_below(t, most)};
    if (form == LW_RESAMPLE_TORCH)
        s.filter = s.filter & 1 ? LW_FILTER_BILINEAR : LW_FILTER_BICUBIC;
    if (form == LW_RESAMPLE_TF_INCEPTION)
        s.filter = LW_FILTER_BILINEAR;
    uint32_t same = check_below(t, 8);
    s.to_h = same == 0 || same == 2 ? s.h : s.to_h;
    s.to_w = same <= 1 ? s.w : s.to_w;
    return s;
}

/* The whole result of a spec, by the kernels k. Bytes are the integers of x. */
static void *result(check *t, const struct lw_resample_kernels *k, const lw_resample_spec *s,
                    const float *x, size_t *bytes)
{
    lw_resample r = {0};
    ptrdiff_t n = s->h * s->w * s->c;
    assert_int_equal(lw_resample_init(&r, s), 0);
    void *scratch = check_bytes(t, lw_resample_scratch(&r), 0);
    *bytes = (size_t)(r.down.n * r.across.n * s->c) * (lw_resample_is_u8(s->form) ? 1 : 4);
    void *y = check_bytes(t, *bytes, 0);
    if (lw_resample_is_u8(s->form)) {
        uint8_t *from = check_bytes(t, (size_t)n, 0);
        for (ptrdiff_t i = 0; i < n; i++)
            from[i] = (uint8_t)x[i];
        lw_resample_u8(k, &r, y, from, scratch);
    } else {
        lw_resample_f32(k, &r, y, x, scratch);
    }
    lw_resample_clear(&r);
    return y;
}

static void levels(check *t)
{
    lw_kernels ref;
    struct lw_resample_kernels k = table(t);
    lw_kernels_init(&ref, LW_ISA_REF);
    for (int round = 0; round < 400; round++) {
        size_t bytes;
        lw_resample_spec s = random_spec(t, (lw_resample_form)(round % LW_RESAMPLE_FORMS));
        float *x = check_in(t, s.h * s.w * s.c, 1, 0, 256);
        void *want = result(t, &ref.resample, &s, x, &bytes), *got = result(t, &k, &s, x, &bytes);
        if (lw_resample_is_u8(s.form))
            check_same(t, got, want, bytes, "%s %s %tdx%td of %td to %tdx%td",
                       lw_resample_form_name[s.form], lw_filter_name[s.filter], s.w, s.h, s.c,
                       s.to_w, s.to_h);
        else
            check_close_f(t, got, want, (int64_t)(bytes / 4), (check_tol){.abs = 2e-4},
                          "%s %s %tdx%td of %td to %tdx%td", lw_resample_form_name[s.form],
                          lw_filter_name[s.filter], s.w, s.h, s.c, s.to_w, s.to_h);
        check_next(t);
    }
}

/* A window has the pixels of the whole, and lines may be made one by one. */
static void windows(check *t)
{
    struct lw_resample_kernels k = table(t);
    for (int round = 0; round < 200; round++) {
        size_t all, part;
        lw_resample_spec s = random_spec(t, (lw_resample_form)(round % LW_RESAMPLE_FORMS));
        float *x = check_in(t, s.h * s.w * s.c, 1, 0, 256);
        const char *whole = result(t, &k, &s, x, &all);
        s.y = check_below(t, (uint32_t)s.to_h);
        s.x = check_below(t, (uint32_t)s.to_w);
        s.out_h = 1 + check_below(t, (uint32_t)(s.to_h - s.y));
        s.out_w = 1 + check_below(t, (uint32_t)(s.to_w - s.x));
        const char *window = result(t, &k, &s, x, &part);
        size_t pixel = all / (size_t)(s.to_h * s.to_w), line = pixel * (size_t)s.out_w;
        for (ptrdiff_t i = 0; i < s.out_h; i++)
            check_same(t, window + (size_t)i * line,
                       whole + (size_t)((s.y + i) * s.to_w + s.x) * pixel, line,
                       "line %td of %tdx%td at %td,%td of %tdx%td", i, s.out_w, s.out_h, s.x, s.y,
                       s.to_w, s.to_h);
        check_next(t);
    }
}

static void lines(check *t)
{
    struct lw_resample_kernels k = table(t);
    lw_resample_axis a = {0};
    enum { H = 37, W = 50, C = 3, TO = 21 };
    lw_resample_axis_spec s = {LW_RESAMPLE_PILLOW, LW_FILTER_LANCZOS, .from = W, .to = TO};
    assert_int_equal(lw_resample_axis_init(&a, &s), 0);
    lw_resample_pass p = {&a, C, W * C, TO * C + 5};
    uint8_t *x = check_bytes(t, H * W * C, 0), *all = check_bytes(t, H * (TO * C + 5), 0);
    uint8_t *one = check_bytes(t, H * (TO * C + 5), 0);
    void *scratch = check_bytes(t, lw_resample_across_scratch(&a, C, 1), 0);
    formula_picture(x, H, W, C);
    memset(all, 7, H * (TO * C + 5));
    memset(one, 7, H * (TO * C + 5));
    k.across_u8(all, x, &p, 0, H, scratch);
    for (ptrdiff_t r = H - 1; r >= 0; r--)
        k.across_u8(one, x, &p, r, r + 1, scratch);
    check_same(t, one, all, H * (TO * C + 5), "lines one by one, gaps between them untouched");
    lw_resample_axis_clear(&a);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Fixed weights keep sums of 255 within 32 bits and add up to 1 but for their rounding. */
static void check_axis(check *t, lw_filter filter, int from, int to)
{
    lw_resample_axis a = {0};
    lw_resample_axis_spec s = {LW_RESAMPLE_PILLOW, filter, .from = from, .to = to};
    assert_int_equal(lw_resample_axis_init(&a, &s), 0);
    for (ptrdiff_t o = 0; o < a.n && !a.copy; o++) {
        int64_t sum = 0, magnitude = 0;
        for (ptrdiff_t j = 0; j < a.count[o]; j++) {
            int64_t w = a.fixed[o * a.taps + j];
            sum += w;
            magnitude += w < 0 ? -w : w;
        }
        t->compared++;
        assert_true(a.count[o] >= 1 && a.count[o] <= a.taps);
        assert_true(a.start[o] >= 0 && a.start[o] + a.count[o] <= a.span);
        assert_true(labs(sum - (1 << LW_RESAMPLE_BITS)) <= a.count[o]);
        assert_true(magnitude * 255 + (1 << (LW_RESAMPLE_BITS - 1)) <= INT32_MAX);
    }
    assert_true(a.first >= 0 && a.first + a.span <= from);
    lw_resample_axis_clear(&a);
}

static void weights(check *t)
{
    for (int filter = 0; filter < LW_FILTERS; filter++) {
        for (int from = 1; from <= 24; from++)
            for (int to = 1; to <= 24; to++)
                check_axis(t, (lw_filter)filter, from, to);
        for (int round = 0; round < 40; round++) {
            int from = 1 + (int)check_below(t, 3000), to = 1 + (int)check_below(t, 600);
            check_axis(t, (lw_filter)filter, from, to);
        }
    }
}

static void refusals(check *t)
{
    static const lw_resample_spec wrong[] = {
        {.h = 0, .w = 4, .c = 3, .to_h = 2, .to_w = 2},
        {.h = 4, .w = 4, .c = 0, .to_h = 2, .to_w = 2},
        {.h = 4, .w = 4, .c = 3, .to_h = 2, .to_w = 0},
        {.h = 4, .w = 4, .c = 3, .to_h = 2, .to_w = 2, .x = 1, .out_h = 2, .out_w = 2},
        {.h = 4, .w = 4, .c = 3, .to_h = 2, .to_w = 2, .y = -1, .out_h = 2, .out_w = 2},
    };
    lw_resample r = {0};
    for (size_t i = 0; i < LW_COUNT(wrong); i++)
        assert_int_equal(lw_resample_init(&r, &wrong[i]), LW_EUSAGE);
    lw_resample_spec s = {.form = LW_RESAMPLE_TORCH,
                          .filter = LW_FILTER_LANCZOS,
                          .h = 4,
                          .w = 4,
                          .c = 3,
                          .to_h = 2,
                          .to_w = 2};
    assert_int_equal(lw_resample_init(&r, &s), LW_EUNSUPPORTED);
    assert_string_equal(lw_errmsg(),
                        "resize 'torch' has no filter 'lanczos': use bilinear or bicubic");
    s.form = LW_RESAMPLE_TF_INCEPTION;
    assert_int_equal(lw_resample_init(&r, &s), LW_EUNSUPPORTED);
    t->compared++;
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"pillow", pillow},   {"levels", levels},
                                       {"windows", windows}, {"lines", lines},
                                       {"weights", weights}, {"refusals", refusals}};
    return check_main(argc, argv, "resample_picture", cases, LW_COUNT(cases));
}
