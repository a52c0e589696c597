/* SPDX-License-Identifier: Apache-2.0 */
/* How a Winograd convolution is cut into tasks: pure functions of the shape and the layout, which the level has a say in. */
#include "kernels/conv/conv_winograd_shape.h"

/* Blocks are of a power of two of tiles, which cuts pictures of 8, 16, 32 .. pixels into a power of two of
 * tasks: as many turns of 8, 16, 32 or 64 threads leave nobody idle in the last one. */
enum {
    BLOCK_WORDS = 147456, /* of V: 576 KiB of a core's L2, the rest is for M and the weights */
    BLOCK_LEAST = 16,     /* tiles: two turns of rows, each asks for half of the next weights */
    BLOCK_MOST = LW_WINO_MAX_BLOCK,
    PIECE = 2, /* tiles of a task that transforms */
    FEW_TASKS = 16,
    PLAIN_COLS = 16, /* of a task: a panel of AVX-512, two of AVX2 */
    PLAIN_TILES = 4, /* of all images: each point of a filter is used as often */
    BYTES_TILES = 1, /* of all images, of u8: points of s16 are eight times a filter's bytes .. */
    BYTES_TILES_AVX512BF16 = 8, /* .. which are multiplied in half the time there */
    PLAIN_WEIGHTS = 8192, /* pairs of channels: 1.1 MiB of 4x4, from behind the second cache */
    /* Words of the weights that a part of the points reads: 12 us from memory for a thread alone, of which many
     * threads take longer, since they share it. */
    PART_LEAST = 65536,
    /* A V in memory of so many words is 8 MiB, which leaves nothing of the third cache that a few cores of AVX2 have for
     * themselves; weights of 16 MiB are still read from there by one block after the other; and threads enough. */
    ALONE_INPUTS = 2097152,
    ALONE_WEIGHTS = 4194304,
    ALONE_TASKS = 32
};

static ptrdiff_t depth(const lw_conv_shape *s, lw_conv_pass pass)
{
    return pass == LW_CONV_FORWARD ? s->C : s->O;
}

static ptrdiff_t produced(const lw_conv_shape *s, lw_conv_pass pass)
{
    return pass == LW_CONV_FORWARD ? s->O : s->C;
}

static bool is_line(const lw_conv_shape *s)
{
    const int32_t taps = s->KH * s->KW;
    return (s->KH == 1 || s->KW == 1) && (taps == 3 || taps == 7);
}

static bool is_5x5(const lw_conv_shape *s)
{
    return s->KH == 5 && s->KW == 5;
}

/* What a tile is: of 3x3 as asked, of others there is but one. */
static int kind_of(const lw_conv_shape *s, int tile)
{
    return is_line(s)  ? s->KH * s->KW
           : is_5x5(s) ? LW_WINO_5X5
                       : tile & ~(LW_WINOGRAD_PLAIN | LW_WINOGRAD_ALONE | LW_WINOGRAD_NARROW);
}

/* Outputs of a tile in a direction of so many taps. */
static int tile_of(const lw_conv_shape *s, int kind, int32_t taps)
{
    return taps == 1 ? 1 : is_line(s) ? 4 : lw_wino_tile_of(kind);
}

static int points_of(const lw_conv_shape *s, int tile)
{
    const int kind = kind_of(s, tile);
    return (tile_of(s, kind, s->KH) + s->KH - 1) * (tile_of(s, kind, s->KW) + s->KW - 1);
}

/* Of points. */
static int per_word(lw_num num)
{
    return num == LW_NUM_F32 ? 1 : 2;
}

int64_t lw_wino_sums_at(const lw_wino *z)
{
    return lw_gemm_packed_floats(z->N, z->K * z->numbers) / per_word(LW_NUM_S8);
}

bool lw_winograd_applies(const lw_conv_shape *s, lw_conv_pass pass)
{
    const int32_t y = LW_MAX(s->pad_top, s->pad_bottom), x = LW_MAX(s->pad_left, s->pad_right);
    const bool inside = LW_MIN(s->pad_top, s->pad_bottom) >= 0 &&
                        LW_MIN(s->pad_left, s->pad_right) >= 0;
    return (lw_winograd_is_3x3(s) || is_5x5(s) || is_line(s)) && s->stride == 1 && inside &&
           y < s->KH && x < s->KW && depth(s, pass) <= LW_WINOGRAD_MAX_DEPTH;
}

ptrdiff_t lw_wino_parts(int64_t tasks, int64_t words)
{
    ptrdiff_t parts = 1;
    while (tasks * parts < LW_WINO_TASKS && words / (2 * parts) >= PART_LEAST)
        parts *= 2;
    return parts;
}

/* Blocks of at most so many tiles, groups of at most so many columns. */
static void cut(lw_wino *w, ptrdiff_t tiles, ptrdiff_t cols)
{
    w->blocks = LW_MAX(LW_CEIL_DIV(w->tiles, tiles), 1);
    w->block = (ptrdiff_t)LW_CEIL_DIV(w->tiles, w->blocks);
    w->cols = cols;
    w->col_groups = LW_CEIL_DIV(w->N, cols);
}

/* The tallest blocks of at most `most` tiles that give tasks enough, of `groups` groups of columns. */
static ptrdiff_t tallest(const lw_wino *w, ptrdiff_t most, ptrdiff_t groups)
{
    ptrdiff_t tiles = BLOCK_MOST;
    while (tiles > BLOCK_LEAST &&
           (tiles > most || LW_CEIL_DIV(w->tiles, tiles) * groups < LW_WINO_TASKS))
        tiles /= 2;
    return tiles;
}

/*
 * Blocks of tiles alone where these are tasks enough. Else groups of columns too, as narrow as a panel: each would
 * transform the inputs again, so these are shared, and need not stay in a cache, since a task reads them once.
 */
static void cut_up(lw_wino *w, bool alone, bool narrow)
{
    w->parts = 1;
    const ptrdiff_t whole = LW_ROUND_UP(w->N, LW_GEMM_COLS);
    if (alone) {
        cut(w, BLOCK_LEAST, whole);
        return;
    }
    cut(w, tallest(w, BLOCK_WORDS / (w->points * w->ldv), 1), whole);
    w->shared = w->blocks < LW_WINO_TASKS && whole > LW_GEMM_COLS;
    const ptrdiff_t cols = w->plain ? PLAIN_COLS : LW_GEMM_COLS;
    if (w->shared)
        cut(w, tallest(w, BLOCK_MOST, whole / cols), cols);
    if (w->shared && narrow && w->blocks * w->col_groups < LW_WINO_TASKS)
        cut(w, BLOCK_LEAST, LW_GEMM_COLS / 2);
    /* Parts of plain filters would each read all of them. */
    const int64_t tasks = w->blocks * w->col_groups;
    if (w->shared && !w->plain && tasks < FEW_TASKS)
        w->parts = lw_wino_parts(tasks, w->numbers * w->steps * w->cols);
}

lw_wino lw_wino_of(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    bool forward = pass == LW_CONV_FORWARD;
    const bool plain = tile & LW_WINOGRAD_PLAIN, alone = tile & LW_WINOGRAD_ALONE,
               narrow = tile & LW_WINOGRAD_NARROW;
    const int kind = kind_of(s, tile);
    lw_wino w = {.plain = plain,
                 .kind = kind,
                 .taps = s->KH * s->KW,
                 .tile_y = tile_of(s, kind, s->KH),
                 .tile_x = tile_of(s, kind, s->KW),
                 .points = points_of(s, tile),
                 .in_H = forward ? s->H : s->OH,
                 .in_W = forward ? s->W : s->OW,
                 .H = forward ? s->OH : s->H,
                 .W = forward ? s->OW : s->W,
                 .pad_y = forward ? s->pad_top : s->KH - 1 - s->pad_top,
                 .pad_x = forward ? s->pad_left : s->KW - 1 - s->pad_left};
    w.side_y = w.tile_y + s->KH - 1;
    w.side_x = w.tile_x + s->KW - 1;
    w.K = depth(s, pass);
    w.N = produced(s, pass);
    w.ld_in = forward ? s->ldx : s->ldy;
    w.ld_out = forward ? s->ldy : s->ldx;
    w.tiles_y = LW_CEIL_DIV(w.H, w.tile_y);
    w.tiles_x = LW_CEIL_DIV(w.W, w.tile_x);
    w.tiles = (int64_t)s->B * w.tiles_y * w.tiles_x;
    w.steps = w.K / per_word(num);
    w.numbers = w.plain ? 9 : w.points;
    w.ldv = LW_ROUND_UP(w.steps, 16);
    cut_up(&w, alone, narrow);
    w.by_groups = w.parts > 1 || w.N > w.tiles;
    w.pieces = LW_CEIL_DIV(w.block, PIECE);
    w.v_step = w.block * w.ldv + 16;
    w.m_step = w.block * LW_GEMM_COLS + 16;
    return w;
}

/* With 16 registers, caches are those of Haswell to Zen 3: 256 or 512 KiB of their own, a third one of 2 to 4 MiB a core. */
static bool pays_alone(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile,
                       int64_t tiles)
{
    const int64_t words = depth(s, pass) / per_word(num) * points_of(s, tile);
    return tiles * words >= ALONE_INPUTS && words * produced(s, pass) <= ALONE_WEIGHTS &&
           tiles >= (int64_t)ALONE_TASKS * BLOCK_LEAST;
}

int lw_winograd_layout(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, int tile)
{
    if (num == LW_NUM_BF16 || !tile)
        return tile;
    const int64_t tiles = lw_wino_of(num, s, pass, tile).tiles;
    const int few = num == LW_NUM_F32          ? PLAIN_TILES
                    : isa >= LW_ISA_AVX512BF16 ? BYTES_TILES_AVX512BF16
                                               : BYTES_TILES;
    if (tiles <= few && lw_winograd_is_3x3(s) && (int64_t)s->C * s->O > PLAIN_WEIGHTS)
        return num == LW_NUM_F32 ? tile | LW_WINOGRAD_PLAIN : 0;
    if (!lw_isa_is_avx2(isa))
        return tile;
    return tile | (pays_alone(num, s, pass, tile, tiles) ? LW_WINOGRAD_ALONE : LW_WINOGRAD_NARROW);
}

int64_t lw_winograd_packed_words(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    const lw_wino w = lw_wino_of(num, s, pass, tile);
    if (num == LW_NUM_S8)
        return lw_wino_sums_at(&w) + LW_ROUND_UP(w.N, LW_GEMM_COLS);
    return lw_gemm_packed_floats(w.N, w.K * w.numbers) / per_word(num);
}

int64_t lw_winograd_pack_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    const lw_wino w = lw_wino_of(num, s, pass, tile);
    return lw_gemm_pack_tasks(w.N, w.K * w.points); /* the work is the transform's */
}

int64_t lw_winograd_shared_words(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    lw_wino w = lw_wino_of(num, s, pass, tile);
    const int64_t tasks = w.parts > 1 ? w.blocks * w.col_groups : 0;
    return w.shared ? lw_wino_products_at(&w, tasks) : 0;
}

int64_t lw_winograd_input_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    lw_wino w = lw_wino_of(num, s, pass, tile);
    return w.shared ? w.blocks * w.pieces : 0;
}

int64_t lw_winograd_product_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    lw_wino w = lw_wino_of(num, s, pass, tile);
    return w.parts > 1 ? w.blocks * w.col_groups * w.parts : 0;
}

int64_t lw_winograd_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    lw_wino w = lw_wino_of(num, s, pass, tile);
    return w.blocks * w.col_groups;
}

int64_t lw_winograd_scratch_words(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile)
{
    lw_wino w = lw_wino_of(num, s, pass, tile);
    /* The reference keeps one tile in double precision. */
    ptrdiff_t own = w.shared ? w.m_step : w.v_step + w.m_step;
    return LW_MAX(w.points * own, 2 * w.points * LW_ROUND_UP(w.K, 16));
}
