/* SPDX-License-Identifier: Apache-2.0 */
/* Where Winograd's tiles apply, when they are chosen, in which layout, and how many tasks there are; what they compute:
 * test_winograd.c. */
#include "kernels/check.h"
#include "kernels/winograd_methods.h"

/* Which layout: by all images, and with ALONE by the level too. */
static void choice_of_layout(check *t)
{
    const lw_conv_shape few = shape(1, 8, 8, 128, 128), some = shape(1, 32, 32, 128, 128),
                        many = shape(8, 32, 32, 128, 128), wide = shape(8, 32, 32, 512, 512),
                        thin = shape(8, 32, 32, 3, 128), one = shape(1, 4, 4, 128, 128),
                        small = shape(1, 4, 4, 64, 64), eight = shape(2, 8, 8, 128, 128),
                        nine = shape(9, 4, 4, 128, 128);
    const int got[] = {
        lw_winograd_layout(LW_NUM_F32, &few, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_F32, &some, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_F32, &many, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_F32, &wide, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_F32, &thin, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_F32, &thin, LW_CONV_DATA_GRAD, t->isa, 4),
        lw_winograd_layout(LW_NUM_BF16, &many, LW_CONV_FORWARD, t->isa, 2),
        lw_winograd_layout(LW_NUM_F32, &many, LW_CONV_FORWARD, t->isa, 0),
        lw_winograd_layout(LW_NUM_S8, &one, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_S8, &small, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_S8, &few, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_S8, &eight, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_S8, &nine, LW_CONV_FORWARD, t->isa, 4),
        lw_winograd_layout(LW_NUM_S8, &wide, LW_CONV_FORWARD, t->isa, 4),
    };
    const bool avx2 = lw_isa_is_avx2(t->isa);
    const int alone = avx2 ? 4 | LW_WINOGRAD_ALONE : 4, else_ = avx2 ? 4 | LW_WINOGRAD_NARROW : 4,
              bytes = t->isa >= LW_ISA_AVX512BF16 ? 0 : else_;
    const int want[] = {4 | LW_WINOGRAD_PLAIN,
                        else_,
                        alone,
                        else_,
                        else_,
                        alone,
                        2,
                        0,
                        0,
                        else_,
                        bytes,
                        bytes,
                        else_,
                        else_};
    check_same(t, got, want, sizeof want, "layouts");
}

/* Where tiles apply, and that the choice looks at neither batch nor pitch. */
static void choice(check *t)
{
    lw_conv_shape s = shape(1, 16, 16, 128, 128), stride = s, wide = s, pad = s, odd = s, deep = s,
                  thin = s;
    stride.stride = 2;
    wide.KW = 5;
    pad.pad_right = 0;
    odd.C = 127;
    deep.C = LW_WINOGRAD_MAX_DEPTH_U8 + 4;
    thin.C = 8;
    const int got[] = {
        lw_winograd_applies(&s, LW_CONV_FORWARD),
        lw_winograd_applies(&stride, LW_CONV_FORWARD),
        lw_winograd_applies(&wide, LW_CONV_FORWARD),
        lw_winograd_applies(&pad, LW_CONV_FORWARD),
        lw_winograd_tile(LW_NUM_F32, &s, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_DIRECT),
        lw_winograd_tile(LW_NUM_F32, &s, LW_CONV_DATA_GRAD, t->isa, LW_CONV_MODE_WINOGRAD) > 0,
        lw_winograd_tile(LW_NUM_F32, &stride, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_BF16, &odd, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_BF16, &odd, LW_CONV_DATA_GRAD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_S8, &s, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_S8, &s, LW_CONV_DATA_GRAD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_S8, &odd, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_S8, &deep, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_WINOGRAD),
        lw_winograd_tile(LW_NUM_S8, &s, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_AUTO) > 0,
        lw_winograd_tile(LW_NUM_S8, &thin, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_AUTO) > 0,
        lw_winograd_weight_grad(LW_NUM_F32, &s, t->isa, LW_CONV_MODE_AUTO),
        lw_winograd_weight_grad(LW_NUM_F32, &s, t->isa, LW_CONV_MODE_DIRECT),
        lw_winograd_weight_grad(LW_NUM_F32, &stride, t->isa, LW_CONV_MODE_WINOGRAD),
    };
    const int low = t->isa >= LW_ISA_AVX512BF16 ? 2 : 0;
#if defined(__aarch64__)
    const bool bytes = t->isa == LW_ISA_AVX2; /* neon; i8mm is direct */
#else
    const bool bytes = t->isa > LW_ISA_REF && t->isa < LW_ISA_AMX;
#endif
    const bool thinner = bytes && !lw_isa_multiplies_bytes(t->isa);
    const int want[] = {
        1, 0, 0, 1, 0, 1, 0, 0, low, 4, 0, 0, 0, bytes, thinner, t->isa > LW_ISA_REF, 0, 0};
    check_same(t, got, want, sizeof want, "where Winograd applies");
    for (int side = 1; side <= 70; side += side % 2 ? 1 : side - 1)
        for (int c = 1; c <= 512; c *= 2)
            for (int o = 1; o <= 512; o *= 2) {
                lw_conv_shape one = shape(1, side, side, c, o), many = shape(37, side, side, c, o);
                many.ldx = c + 3;
                const lw_num num = side % 2 ? LW_NUM_BF16 : LW_NUM_F32;
                int a = lw_winograd_tile(num, &one, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_AUTO);
                int b = lw_winograd_tile(num, &many, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_AUTO);
                check_same(t, &a, &b, sizeof a, "choice for %d -> %d at %d", c, o, side);
            }
}

/* Tasks for 64 threads, of each method in turn and of bytes: inputs that are shared, points that are divided, outputs. */
static void tasks(check *t)
{
    enum { WAYS = 7 };
    static const struct {
        int z[5];
        int64_t of[WAYS][3];
    } table[] = {
        {{1, 8, 8, 256, 256},
         {{2, 32, 8}, {8, 16, 8}, {2, 0, 16}, {0, 0, 1}, {2, 0, 16}, {8, 0, 8}, {2, 16, 8}}},
        {{1, 16, 16, 256, 260},
         {{8, 36, 9}, {32, 0, 36}, {8, 0, 17}, {0, 0, 1}, {8, 0, 17}, {32, 0, 36}, {8, 18, 9}}},
        {{1, 32, 32, 128, 128},
         {{32, 0, 16},
          {128, 0, 64},
          {32, 0, 32},
          {0, 0, 4},
          {32, 0, 32},
          {128, 0, 64},
          {32, 0, 16}}},
        {{8, 32, 32, 128, 128},
         {{256, 0, 64},
          {0, 0, 64},
          {256, 0, 128},
          {0, 0, 32},
          {256, 0, 64},
          {0, 0, 64},
          {256, 0, 64}}},
        {{1, 5, 7, 802, 38},
         {{2, 16, 2}, {6, 8, 2}, {2, 0, 3}, {0, 0, 1}, {2, 12, 3}, {6, 4, 2}, {2, 8, 2}}},
        {{3, 64, 60, 32, 40},
         {{360, 0, 90},
          {0, 0, 90},
          {368, 0, 69},
          {0, 0, 45},
          {360, 0, 90},
          {0, 0, 90},
          {360, 0, 90}}},
        {{1, 8, 8, 64, 24},
         {{0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}}}};
    const method ways[WAYS] = {F4, F2, PLAIN, ALONE, NARROW, LOW, TILES(LW_NUM_S8, 4)};
    for (size_t i = 0; i < LW_COUNT(table) * WAYS; i++) {
        const int *z = table[i / WAYS].z;
        const method m = ways[i % WAYS];
        const lw_conv_shape s = shape(z[0], z[1], z[2], z[3], z[4]);
        const int64_t got[] = {lw_winograd_input_tasks(m.num, &s, LW_CONV_FORWARD, m.tile),
                               lw_winograd_product_tasks(m.num, &s, LW_CONV_FORWARD, m.tile),
                               lw_winograd_tasks(m.num, &s, LW_CONV_FORWARD, m.tile)};
        check_same(t, got, table[i / WAYS].of[i % WAYS], sizeof got,
                   "tasks of shape %zu, type %d, tile %d", i / WAYS, m.num, m.tile);
    }
}

/* Both sides of every edge of the rule, {C, O, H, W}, at every level from ref to amx. */
static void edges_of_the_rule(check *t)
{
#if defined(__aarch64__)
    enum { VNNI = 0 }; /* i8mm: bytes are direct */
#else
    enum { VNNI = 4 };
#endif
    static const struct {
        lw_num num;
        int z[4], tile[LW_ISA_COUNT];
    } of[] = {{LW_NUM_F32, {11, 64, 8, 8}, {0}},
              {LW_NUM_F32, {64, 11, 8, 8}, {0}},
              {LW_NUM_F32, {12, 12, 8, 8}, {0, 4, 4, 4, 4, 4}},
              {LW_NUM_F32, {128, 64, 4, 4}, {0, 4, 4, 4, 4, 4}},
              {LW_NUM_F32, {128, 65, 4, 4}, {0, 2, 2, 2, 2, 2}},
              {LW_NUM_F32, {128, 65, 4, 5}, {0, 4, 4, 4, 4, 4}},
              {LW_NUM_F32, {128, 65, 5, 4}, {0, 4, 4, 4, 4, 4}},
              {LW_NUM_BF16, {32, 1024, 5, 4}, {[LW_ISA_AVX512BF16] = 2}},
              {LW_NUM_BF16, {1024, 32, 4, 5}, {[LW_ISA_AVX512BF16] = 2}},
              {LW_NUM_BF16, {30, 2048, 5, 5}, {0}},
              {LW_NUM_BF16, {64, 64, 128, 128}, {[LW_ISA_AVX512BF16] = 4}},
              {LW_NUM_BF16, {128, 127, 128, 128}, {[LW_ISA_AVX512BF16] = 4}},
              {LW_NUM_BF16, {128, 128, 128, 128}, {[LW_ISA_AVX512BF16] = 2}},
              {LW_NUM_BF16, {64, 64, 127, 128}, {0}},
              {LW_NUM_BF16, {64, 63, 256, 256}, {0}},
              {LW_NUM_BF16, {32, 128, 256, 256}, {[LW_ISA_AVX512BF16] = 4}},
              {LW_NUM_BF16, {30, 1024, 256, 256}, {0}},
              {LW_NUM_BF16, {2048, 31, 5, 5}, {0}},
              {LW_NUM_BF16, {32, 1023, 5, 5}, {0}},
              {LW_NUM_BF16, {64, 512, 4, 4}, {0}},
              {LW_NUM_BF16, {65, 512, 5, 5}, {0}},
              {LW_NUM_S8, {12, 16, 8, 8}, {0, 4, VNNI, 4, 4}},
              {LW_NUM_S8, {8, 16, 8, 8}, {0, 4, 0, 4}},
              {LW_NUM_S8, {1840, 16, 8, 8}, {0, 4, VNNI, 4, 4}},
              {LW_NUM_S8, {1844, 16, 8, 8}, {0}}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const int *z = of[i].z;
        const lw_conv_choice asked = {.num = of[i].num, .C = z[0], .O = z[1], .H = z[2], .W = z[3]};
        for (int isa = 0; isa < LW_ISA_COUNT; isa++) {
            const int tile = lw_conv_choice_rule(&asked, (lw_isa)isa);
            check_same(t, &tile, &of[i].tile[isa], sizeof tile, "type %d, %d -> %d at %d x %d, %s",
                       asked.num, z[0], z[1], z[2], z[3], lw_isa_name((lw_isa)isa));
        }
    }
}

/* Each size and pad that tiles need, and the depth that sums of points bear. */
static void where_tiles_apply(check *t)
{
    const lw_conv_shape good = shape(1, 16, 16, LW_WINOGRAD_MAX_DEPTH, 8);
    lw_conv_shape s = good;
    int32_t *const needed[] = {&s.KH, &s.KW, &s.stride};
    int32_t *const pads[] = {&s.pad_top, &s.pad_left, &s.pad_bottom, &s.pad_right};
    const bool yes = true, no = false;
    bool got = lw_winograd_applies(&s, LW_CONV_FORWARD);
    check_same(t, &got, &yes, sizeof got, "the greatest depth");
    s.C++;
    got = lw_winograd_applies(&s, LW_CONV_FORWARD);
    check_same(t, &got, &no, sizeof got, "more");
    got = lw_winograd_applies(&s, LW_CONV_DATA_GRAD);
    check_same(t, &got, &yes, sizeof got, "more, which nobody sums over");
    for (size_t i = 0; i < 2 * LW_COUNT(needed); i++) {
        s = good;
        *needed[i / 2] += i % 2 ? 1 : -1;
        got = lw_winograd_applies(&s, LW_CONV_FORWARD);
        check_same(t, &got, &no, sizeof got, "size %zu is %d", i / 2, *needed[i / 2]);
    }
    for (size_t i = 0; i < LW_COUNT(pads); i++)
        for (int pad = -1; pad <= 3; pad++) {
            const bool want = pad >= 0 && pad <= 2;
            s = good;
            *pads[i] = pad;
            got = lw_winograd_applies(&s, LW_CONV_FORWARD);
            check_same(t, &got, &want, sizeof got, "pad %zu is %d", i, pad);
        }
}

static lw_conv_shape line(int kh, int kw, int H, int W, int C, int O)
{
    return of_method(shape(2, H, W, C, O), (method){.kh = kh, .kw = kw});
}

/* 5x5 and kernels of one line: of which type, and from how many channels on. */
static void other_kernels(check *t)
{
    for (int kh = 1; kh <= 9; kh++)
        for (int kw = 1; kw <= 9; kw++) {
            lw_conv_shape s = line(kh, kw, 20, 20, 32, 32);
            const bool is_line = (kh == 1 || kw == 1) && (kh * kw == 3 || kh * kw == 7),
                       want = is_line || (kh == kw && (kh == 3 || kh == 5)),
                       got = lw_winograd_applies(&s, LW_CONV_FORWARD);
            check_same(t, &got, &want, sizeof want, "%d x %d", kh, kw);
            s.pad_left = kw; /* a window of nothing but zeros */
            check_same(t, &(bool){lw_winograd_applies(&s, LW_CONV_FORWARD)}, &(bool){false},
                       sizeof(bool), "%d x %d and a pad of %d", kh, kw, kw);
        }
    const lw_conv_shape row = line(1, 7, 9, 17, 24, 24), few = line(1, 7, 9, 17, 23, 24),
                        few_out = line(7, 1, 17, 9, 24, 23), square = line(5, 5, 9, 17, 16, 16),
                        few_square = line(5, 5, 9, 17, 15, 16);
    const bool fast = t->isa > LW_ISA_REF && t->isa < LW_ISA_AMX;
    const lw_conv_mode automatic = LW_CONV_MODE_AUTO, asked = LW_CONV_MODE_WINOGRAD;
    const lw_conv_choice same = {.C = 24, .O = 24, .H = 9, .W = 17, .tile = 2};
    const int got[] = {
        lw_winograd_tile(LW_NUM_F32, &row, LW_CONV_FORWARD, t->isa, automatic),
        lw_winograd_tile(LW_NUM_F32, &few, LW_CONV_FORWARD, t->isa, automatic),
        lw_winograd_tile(LW_NUM_F32, &few_out, LW_CONV_FORWARD, t->isa, automatic),
        lw_winograd_tile(LW_NUM_F32, &few, LW_CONV_DATA_GRAD, t->isa, asked),
        lw_winograd_tile(LW_NUM_F32, &row, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_DIRECT),
        lw_winograd_tile(LW_NUM_BF16, &row, LW_CONV_FORWARD, t->isa, asked),
        lw_winograd_tile(LW_NUM_S8, &row, LW_CONV_FORWARD, t->isa, asked),
        lw_winograd_weight_grad(LW_NUM_F32, &row, t->isa, asked),
        lw_winograd_tile_of(&(lw_conv_choices){&same, 1}, LW_NUM_F32, &row, LW_CONV_FORWARD, t->isa,
                            automatic),
        lw_winograd_tile(LW_NUM_F32, &square, LW_CONV_FORWARD, t->isa, automatic),
        lw_winograd_tile(LW_NUM_F32, &few_square, LW_CONV_DATA_GRAD, t->isa, automatic),
        lw_winograd_tile(LW_NUM_BF16, &square, LW_CONV_FORWARD, t->isa, asked),
        lw_winograd_weight_grad(LW_NUM_F32, &square, t->isa, asked)};
    const int want[] = {fast ? 4 : 0, 0, 0, 4, 0, 0, 0, 0, fast ? 4 : 0, fast ? 2 : 0, 0, 0, 0};
    check_same(t, got, want, sizeof want, "tiles of other kernels");
}

/* They must save a quarter of the multiplications that taps within the picture take. */
static void size_of_pictures(check *t)
{
    const bool fast = t->isa > LW_ISA_REF && t->isa < LW_ISA_AMX;
    const lw_conv_mode automatic = LW_CONV_MODE_AUTO;
    static const bool of_5[] = {0, 0, 0, 1, 0, 1, 1, 1, 1}; /* squares */
    static const bool of_7[] = {0, 0, 0, 1, 0, 1, 1, 1, 1}, of_3[] = {0, 0, 0, 1, 0, 0, 1, 1, 1};
    for (int n = 1; n <= 9; n++)
        for (int pass = 0; pass < 2; pass++) {
            const lw_conv_shape s7 = line(7, 1, n, 30, 64, 64), s3 = line(1, 3, 30, n, 64, 64),
                                s5 = line(5, 5, n, n, 64, 64);
            const bool tiles[] = {
                lw_winograd_tile(LW_NUM_F32, &s7, (lw_conv_pass)pass, t->isa, automatic) > 0,
                lw_winograd_tile(LW_NUM_F32, &s3, (lw_conv_pass)pass, t->isa, automatic) > 0,
                lw_winograd_tile(LW_NUM_F32, &s5, (lw_conv_pass)pass, t->isa, automatic) > 0};
            const bool some[] = {fast && of_7[n - 1], fast && of_3[n - 1], fast && of_5[n - 1]};
            check_same(t, tiles, some, sizeof some, "lines of %d", n);
        }
}

static void words_of_lines(check *t)
{
    const lw_conv_shape wide = line(1, 7, 17, 17, 192, 160);
    const int64_t words[] = {lw_winograd_packed_words(LW_NUM_F32, &wide, LW_CONV_FORWARD, 4),
                             lw_winograd_packed_words(LW_NUM_F32, &wide, LW_CONV_DATA_GRAD, 4),
                             lw_winograd_input_tasks(LW_NUM_F32, &wide, LW_CONV_FORWARD, 4),
                             lw_winograd_tasks(LW_NUM_F32, &wide, LW_CONV_FORWARD, 4)},
                  expected[] = {10 * 192 * 160, 10 * 160 * 192, 88, 55};
    check_same(t, words, expected, sizeof expected, "words and tasks of lines");
    const int layout = lw_winograd_layout(LW_NUM_F32,
                                          &(lw_conv_shape){.B = 1,
                                                           .H = 1,
                                                           .W = 4,
                                                           .C = 192,
                                                           .O = 192,
                                                           .KH = 1,
                                                           .KW = 7,
                                                           .OH = 1,
                                                           .OW = 4,
                                                           .stride = 1,
                                                           .pad_left = 3,
                                                           .pad_right = 3},
                                          LW_CONV_FORWARD, t->isa, 4);
    check_same(t, &(int){layout & LW_WINOGRAD_PLAIN}, &(int){0}, sizeof(int),
               "filters as they are");
}

/* Of weight gradients: f32 and bf16, by the rule and asked for, of few channels too. */
static void tiles_of_weight_gradients(check *t)
{
    for (int isa = 0; isa < LW_ISA_COUNT; isa++)
        for (int few = 0; few < 2; few++)
            for (lw_num num = LW_NUM_F32; num <= LW_NUM_BF16; num++)
                for (int asked = 0; asked < 2; asked++) {
                    const lw_conv_shape s = shape(1, 16, 16, few ? 8 : 64, 64);
                    const bool direct = num == LW_NUM_BF16 && isa == LW_ISA_AMX,
                               want = isa > LW_ISA_REF && (asked || (!few && !direct)),
                               got = lw_winograd_weight_grad(num, &s, (lw_isa)isa,
                                                             asked ? LW_CONV_MODE_WINOGRAD
                                                                   : LW_CONV_MODE_AUTO);
                    check_same(t, &got, &want, sizeof got, "%s, type %d, few %d, asked %d",
                               lw_isa_name((lw_isa)isa), num, few, asked);
                }
}

static void tile_is(check *t, const lw_conv_choices *chosen, lw_num num, lw_conv_shape s,
                    lw_conv_pass pass, lw_conv_mode mode, int want, const char *what)
{
    const int got = lw_winograd_tile_of(chosen, num, &s, pass, LW_ISA_AVX512BF16, mode);
    check_same(t, &got, &want, sizeof got, "%s", what);
}

/* A choice is that of its type, pass and sizes alone, of any batch, and only where the rule would decide. */
static void choices(check *t)
{
    static const lw_conv_choice of[] = {
        {.num = LW_NUM_F32, .C = 64, .O = 96, .H = 15, .W = 24, .tile = 0},
        {.num = LW_NUM_F32, .C = 64, .O = 96, .H = 16, .W = 24, .tile = 2}};
    const lw_conv_choices both = {.row = of, .n = 2}, none = {.row = of, .n = 0};
    const lw_conv_shape good = shape(9, 16, 24, 64, 96);
    lw_conv_shape s = good;
    int32_t *const sizes[] = {&s.C, &s.O, &s.H, &s.W};
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 2, "the second");
    tile_is(t, &both, LW_NUM_BF16, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 0, "of another type");
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_DATA_GRAD, LW_CONV_MODE_AUTO, 4, "the other pass");
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_DIRECT, 0, "direct");
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        s = good;
        *sizes[i] += 4;
        s = shape(9, s.H, s.W, s.C, s.O);
        tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 4, "of another size");
    }
    s = shape(9, 15, 24, 64, 96);
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 0, "the first");
    tile_is(t, &none, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 4, "of none");
    s = good;
    s.stride = 2;
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 0, "where none apply");
    s = with_pads(good, 0, 1, 1, 1);
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 4, "of a lower picture");
    s = with_pads(good, 1, 1, 1, 0);
    tile_is(t, &both, LW_NUM_F32, s, LW_CONV_FORWARD, LW_CONV_MODE_AUTO, 4, "of a narrower one");
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"choice", choice},
        {"tasks", tasks},
        {"edges_of_the_rule", edges_of_the_rule},
        {"where_tiles_apply", where_tiles_apply},
        {"other_kernels", other_kernels},
        {"size_of_pictures", size_of_pictures},
        {"words_of_lines", words_of_lines},
        {"tiles_of_weight_gradients", tiles_of_weight_gradients},
        {"choices", choices},
        {"choice_of_layout", choice_of_layout},
    };
    return check_main(argc, argv, "winograd_rule", cases, LW_COUNT(cases));
}
