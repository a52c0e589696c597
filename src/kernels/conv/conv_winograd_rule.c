/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which convolutions use Winograd's tiles. The rule looks at one image's shape and the level, never
 * at the batch or the clock, so that a sample's bits do not depend on its neighbours. Measured on
 * one Zen 4 core, weights from memory and from cache (docs/performance-zen4.md, "Winograd"):
 *
 *   channels summed over or produced    below 12: direct; the transforms cost more than they save
 *   image of one 4x4 tile               F(4x4) while its weights stay in L2, else F(2x2): 36
 *                                       numbers per filter and channel are four times a plain
 *                                       weight, and at batch 1 each is used once
 *   anything else                       F(4x4)
 *
 * bf16, where the machine multiplies it, in F(2x2), against F(4x4) of f32 and direct bf16:
 *
 *   channels @ side     gain over F(4x4) f32, over direct bf16 (weights from memory)
 *   64 @ 256 to 64      1.05 to 1.4, 1.4 to 1.5       from 128 on
 *   128 @ 32 and 16     1.1 to 1.2, 1.5 to 1.7        not: hardly faster than f32, exact beside it
 *   192 to 768          1.3 to 1.6, 1.6 to 1.8
 *   256 to 1,536 @ 8    1.3 to 2.2, 1.3 to 2.0
 *   256 to 1,024 @ 4    1.5 to 5.5, 1.0 to 1.3        not: direct
 *
 * Per pixel and pair of channels F(2x2) multiplies 4 times, 32 a cycle, F(4x4) 2.25 times, 16 a cycle: no more
 * than 1.1 is won by that. The rest is bytes, 32 a pair of channels for the filters instead of 144: so it
 * begins where those of f32 leave the second cache, or where pictures of f32, twice as large as those of bf16, leave
 * the third one: 64 @ 128 is 8 MiB read and written. There few channels, below 128, go in F(4x4), 2.25 times and 32 a cycle: .6 of
 * the time (64 @ 128 and 256, Zen 5), and taef2, a dozen such layers there and a dozen back, is no further off than with F(2x2).
 * Elsewhere it would save a fifth of a U-Net's time and double its error, beyond what others that compute in bf16 have.
 *
 * u8: F(4x4) wherever it fits (forward, C a multiple of 4, at most 1,840). Of the time of direct bytes, 8 pictures, one core,
 * weights from a cache:
 *
 *   channels @ side     Zen 3, bytes widened to 16 bits     avxvnni, avx512bf16: four products of bytes are one instruction,
 *                       (of tiles of f32)                   two of words, and a quarter of the multiplications (Zen 5)
 *   128 @ 32            .24 (.67)                           .58, .60
 *   256 @ 16, 8, 4      .23, .22, .31 (.66, .65, .44)       .53, .57, .60; .58, .60, 1.05
 *   64, 32, 16, 8 @ 16  .27, .34, .34, .31                  avx512bf16 .55, .60, .68; from 8 channels at 32 .93, from 4 1.22
 *
 * Points are eight times a filter's bytes: where weights come from memory for few tiles, of all images, bytes are direct
 * (lw_winograd_layout). Not at i8mm, where pairs of words are two instructions and were not measured.
 *
 * At amx direct bf16 multiplies 16 times as fast as f32 and reads 18 bytes a pair of channels: no tiles, for
 * weight gradients neither (docs/performance-amx.md).
 *
 * Weight gradients go over tiles of 4x4 wherever tiles of f32 are used at all, whatever the operands' type (but at
 * amx).
 *
 * f32 of 5x5 from 16, of 1x3, 3x1, 1x7 and 7x1 from 24 channels on. Of the time of direct ones, one core of Zen 5, held to AVX2
 * behind the comma:
 *
 *   channels @ side     16 @ 17      24 @ 17     32 @ 35     64 @ 17     128 @ 35     128 @ 70
 *   5x5                 .72, .58     .74, .57    .51, .47    .57, .54    .47, .45     .43, .42
 *   7 taps              .94, .74     .78, .64    .57, .51    .56, .53    .43, .41     .42, .42
 *   3 taps              1.20, .94    1.04, .87   .80, .73    .93, .82    .63, .59     .59, .58
 *
 * At amx tile registers multiply f32 three times as fast, these two to 2.8 times as rarely: direct.
 *
 * The reference level computes directly: it is the oracle for everything else.
 */
#include "kernels/conv/conv_winograd.h"

#if defined(__aarch64__)
enum { BYTES_ARE_DIRECT = 1 }; /* at i8mm */
#else
enum { BYTES_ARE_DIRECT = 0 };
#endif
enum {
    MIN_CHANNELS = 12,
    MIN_CHANNELS_LINE = 24,
    MIN_CHANNELS_5X5 = 16,
    MIN_CHANNELS_BF16 = 32,
    MIN_PAIRS_BF16 = 32768,
    LARGE_PICTURE = 1 << 21, /* numbers read and written */
    MIN_PAIRS_BF16_LARGE = 4096,
    MOST_PAIRS_BF16_4X4 = 16384,
    ONE_TILE_WEIGHTS = 8192
};

/* The picture that a pass makes has no more than 4x4 pixels. */
static bool is_one_tile(const lw_conv_shape *s, lw_conv_pass pass)
{
    return pass == LW_CONV_FORWARD ? s->OH <= 4 && s->OW <= 4 : s->H <= 4 && s->W <= 4;
}

static int tile_f32(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    const bool few = s->C < MIN_CHANNELS || s->O < MIN_CHANNELS;
    if (mode == LW_CONV_MODE_AUTO && (isa == LW_ISA_REF || few))
        return 0;
    return is_one_tile(s, pass) && (int64_t)s->C * s->O > ONE_TILE_WEIGHTS ? 2 : 4;
}

/* Of one direction of a picture: taps that meet it, and points in their place. */
typedef struct direction {
    int64_t taps, points;
} direction;
static direction direction_of(int64_t in, int64_t out, int64_t kernel, int64_t pad, int64_t tile)
{
    direction d = {0, kernel == 1 ? out : LW_CEIL_DIV(out, tile) * (tile + kernel - 1)};
    for (int64_t i = 0; i < out; i++)
        d.taps += LW_MAX(LW_MIN(i - pad + kernel, in) - LW_MAX(i - pad, 0), 0);
    return d;
}

/* 5x5 and lines: worth it where they multiply a quarter less. */
static int tile_other(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    const bool forward = pass == LW_CONV_FORWARD, line = s->KH == 1 || s->KW == 1;
    const int tile = line ? 4 : 2, least = line ? MIN_CHANNELS_LINE : MIN_CHANNELS_5X5;
    const direction y = forward ? direction_of(s->H, s->OH, s->KH, s->pad_top, tile)
                                : direction_of(s->OH, s->H, s->KH, s->KH - 1 - s->pad_top, tile),
                    x = forward ? direction_of(s->W, s->OW, s->KW, s->pad_left, tile)
                                : direction_of(s->OW, s->W, s->KW, s->KW - 1 - s->pad_left, tile);
    const bool few = s->C < least || s->O < least,
               pays = y.points * x.points * 4 < y.taps * x.taps * 3;
    return mode == LW_CONV_MODE_AUTO && (isa == LW_ISA_REF || isa >= LW_ISA_AMX || few || !pays)
               ? 0
               : tile;
}

static int tile_bf16(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    if (isa < LW_ISA_AVX512BF16 || (isa >= LW_ISA_AMX && mode == LW_CONV_MODE_AUTO) ||
        (pass == LW_CONV_FORWARD ? s->C : s->O) % 2)
        return 0;
    const bool large = (int64_t)s->H * s->W * s->C + (int64_t)s->OH * s->OW * s->O >= LARGE_PICTURE;
    const int64_t pairs = large ? MIN_PAIRS_BF16_LARGE : MIN_PAIRS_BF16;
    const bool little = s->C < MIN_CHANNELS_BF16 || s->O < MIN_CHANNELS_BF16 ||
                        (int64_t)s->C * s->O < pairs || is_one_tile(s, pass);
    if (mode == LW_CONV_MODE_AUTO && little)
        return 0;
    return large && (int64_t)s->C * s->O < MOST_PAIRS_BF16_4X4 ? 4 : 2;
}

static int tile_u8(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    if (pass != LW_CONV_FORWARD || s->C % 4 || s->C > LW_WINOGRAD_MAX_DEPTH_U8)
        return 0;
    if (mode == LW_CONV_MODE_WINOGRAD)
        return 4;
    if (isa == LW_ISA_REF || isa >= LW_ISA_AMX)
        return 0;
    const bool few = s->C < MIN_CHANNELS;
    return lw_isa_multiplies_bytes(isa) && (few || BYTES_ARE_DIRECT) ? 0 : 4;
}

int lw_winograd_tile(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa,
                     lw_conv_mode mode)
{
    if (mode == LW_CONV_MODE_DIRECT || !lw_winograd_applies(s, pass))
        return 0;
    if (!lw_winograd_is_3x3(s))
        return num == LW_NUM_F32 ? tile_other(s, pass, isa, mode) : 0;
    return num == LW_NUM_BF16 ? tile_bf16(s, pass, isa, mode)
           : num == LW_NUM_S8 ? tile_u8(s, pass, isa, mode)
                              : tile_f32(s, pass, isa, mode);
}

bool lw_winograd_weight_grad(lw_num num, const lw_conv_shape *s, lw_isa isa, lw_conv_mode mode)
{
    if (num == LW_NUM_BF16 && isa >= LW_ISA_AMX && mode == LW_CONV_MODE_AUTO)
        return false;
    if (mode == LW_CONV_MODE_DIRECT || isa == LW_ISA_REF ||
        !lw_winograd_applies(s, LW_CONV_FORWARD) || !lw_winograd_is_3x3(s))
        return false;
    return mode != LW_CONV_MODE_AUTO || tile_f32(s, LW_CONV_FORWARD, isa, mode) > 0;
}

lw_conv_shape lw_conv_choice_shape(const lw_conv_choice *c)
{
    return (lw_conv_shape){.B = 1,
                           .H = c->H,
                           .W = c->W,
                           .C = c->C,
                           .O = c->O,
                           .KH = 3,
                           .KW = 3,
                           .stride = 1,
                           .pad_top = 1,
                           .pad_left = 1,
                           .pad_bottom = 1,
                           .pad_right = 1,
                           .OH = c->H,
                           .OW = c->W};
}

int lw_conv_choice_rule(const lw_conv_choice *c, lw_isa isa)
{
    const lw_conv_shape s = lw_conv_choice_shape(c);
    return lw_winograd_tile(c->num, &s, c->pass, isa, LW_CONV_MODE_AUTO);
}

bool lw_conv_choice_same(const lw_conv_choice *a, const lw_conv_choice *b)
{
    return a->num == b->num && a->pass == b->pass && a->C == b->C && a->O == b->O && a->H == b->H &&
           a->W == b->W;
}

int lw_winograd_tile_of(const lw_conv_choices *chosen, lw_num num, const lw_conv_shape *s,
                        lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    const lw_conv_choice asked = {
        .num = num, .pass = pass, .C = s->C, .O = s->O, .H = s->H, .W = s->W};
    const bool as_chosen = s->OH == s->H && s->OW == s->W && lw_winograd_is_3x3(s);
    if (mode == LW_CONV_MODE_AUTO && as_chosen && lw_winograd_applies(s, pass))
        for (int i = 0; i < chosen->n; i++)
            if (lw_conv_choice_same(&chosen->row[i], &asked))
                return chosen->row[i].tile;
    return lw_winograd_tile(num, s, pass, isa, mode);
}
