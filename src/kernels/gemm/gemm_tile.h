/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the gemm and conv families: the two register tiles everything is made of, and packing.
 *
 * A row tile is rows x one panel of columns. Row i of run r reads `len` consecutive floats at
 * a[r * a_step + i] + offset[r]; the panel's steps for that run start at step k0[r]. All sums stay
 * in registers over all runs, so a tile can gather its rows from anywhere: matrix rows, pixels,
 * taps.
 *
 * A rank tile is a sum of outer products over pixels: rows from consecutive floats of one operand,
 * columns from consecutive floats of the other, both read in place.
 *
 * Operands of reduced precision go through the same tiles: everything is counted in 32-bit words,
 * which hold a float, two bf16 or four bytes (lw_num_per_word). A row gives one word to a step, a
 * panel one word to each column; `const float *` then means the address of such words, and only the
 * element headers (gemm_elem_*.h) look inside.
 */
#ifndef LW_KERNELS_GEMM_TILE_H
#define LW_KERNELS_GEMM_TILE_H

#include "kernels/gemm/gemm_shape.h"
#include "kernels/simd/simd_fetch.h"

/* Registers: 16 (avx2) hold 6 x 2 sums, 2 of the panel and 1 broadcast; 32 (avx512) hold 12 x 2.
 * Tile registers (amx, reduced precision) hold 32 rows. */
enum {
    LW_TILE_ROWS = VL == 16 ? 12 : 6,
    LW_TILE_MOST_ROWS = VL == 16 ? 32 : LW_TILE_ROWS, /* of any type at levels of these words */
    LW_TILE_VECS = 2,
    LW_TILE_COLS = LW_TILE_VECS * VL
};

/* Before a loop over the rows or vectors of a tile: constant bounds, unrolled into registers. */
#ifdef __clang__
#define LW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LW_UNROLL _Pragma("GCC unroll 16")
#endif
/* Before a loop that stays one, though its turns are constant: unrolled, it would keep what it goes over on the stack. */
#ifdef __clang__
#define LW_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define LW_ROLLED _Pragma("GCC unroll 1")
#endif

/* The 32-bit word at p, of any type, in every lane. */
LW_WORD vi lw_word_everywhere(const float *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return vi_set1(w);
}

/* round(x / scale) within -127..127, 0 where scale is 0: a weight as a byte. */
LW_WORD vi lw_s8_of(vf x, vf scale)
{
    vf v = v_sel(v_gt(scale, v_zero()), v_div(x, scale), v_zero());
    return v_to_i(v_min(v_max(v, v_set1(-127.0f)), v_set1(127.0f)));
}

/*
 * What later calls will read, asked for meanwhile: a line at `at`, which moves on by `step` words with every step of all
 * runs. Memory answers while sums are made only if asking is spread over all of the sums: a core has room for some
 * dozen lines underway, and those from the second cache wait in it, too.
 */
typedef struct lw_tile_fetch {
    const float *at;
    ptrdiff_t step;
} lw_tile_fetch;

/* Words that a panel is asked for before its turn, where nobody says otherwise; words of a line. */
enum { LW_FETCH_AHEAD = 2048, LW_FETCH_LINE = 16 };

/* The lines of one step. To the second cache: the first holds the rows. */
LW_WORD void lw_tile_fetch_lines(lw_tile_fetch f[2])
{
    for (int i = 0; i < 2; i++) {
        __builtin_prefetch(f[i].at, 0, 2);
        f[i].at = (const float *)((uintptr_t)f[i].at + (uintptr_t)f[i].step * sizeof(float));
    }
}

struct lw_tile_room;
typedef struct lw_tile {
    const float *const *a; /* [rows] */
    ptrdiff_t a_step;      /* 0: all runs start from the same addresses; rows: a is [runs][rows] */
    const ptrdiff_t *offset;   /* [runs] floats added to the addresses */
    const ptrdiff_t *k0;       /* [runs] first step of each run in the panel */
    ptrdiff_t rows, runs, len; /* rows: at most lw_tiles.rows */
    int again; /* 1: the rows of the call before, which differed in the panel and what belongs to it only */
    struct lw_tile_room *room; /* of lw_tiles_begin */
    const float *b;            /* panel [steps][width] */
    ptrdiff_t cols;  /* columns stored, <= LW_TILE_COLS; width is VL when cols <= VL, else 2 VL */
    float *const *c; /* [rows] outputs */
    /* Columns from the addresses of c, and of what is added and `low`, to the panel's first. */
    ptrdiff_t c_at, at;
    int load; /* 1: sums start from c, 0: from zero */
    const float
        *sums;  /* or NULL: they start from here, [rows][LW_TILE_COLS], what c holds included */
    int finish; /* 1: the epilogue below is applied, 0: plain sums are stored */
    int whole;  /* u8 only, 1: sums go from block to block as integers, in the bits of c, so
                          that no cut into blocks rounds; 0: as floats that c accumulates */
    const float *bias;             /* [cols] or NULL */
    const float *const *add[2];    /* [rows] each, or NULL: image bias rows and residual rows */
    const lw_bf16 *const *add_low; /* [rows] or NULL: residual rows of bf16, not of f32 tiles */
    /* [rows] or NULL: finished sums are rounded to here, to bf16, or with `pair`, {scale, zero point}, to bytes. c holds those
     * of a curve before, and with eight lanes what becomes bytes. */
    void *const *low;
    const float *pair;
    int ask_ends;         /* 1: results and residuals are asked for meanwhile (lw_tile_ask_ends) */
    const uint32_t *keep; /* [rows][LW_TILE_COLS] or NULL: ones, or 0 where a sum becomes 0, behind
                             the bias; the others are multiplied by keep_scale */
    float keep_scale;
    lw_act act;
    ptrdiff_t narrow; /* 0, or: b is [cols][narrow steps] (see lw_tile_is_narrow), f32 only */
    const struct lw_tile_quant *quant; /* u8 only */
    /* Both, or none: then the panel is asked for shortly before its turn, as by unpacked rows always. */
    lw_tile_fetch fetch[2];
} lw_tile;
typedef void lw_tile_fn(const lw_tile *t);

LW_WORD float *lw_tile_c(const lw_tile *t, ptrdiff_t i)
{
    return t->c[i] + t->c_at;
}

/* Rows [from, to) of a panel's columns, numbers of `size` bytes, in a tile or, with below, in the tile below it, where rows are
 * evenly apart. Whole panels, whose lines are counted when this is compiled; where lines begin elsewhere, the next panel asks
 * for the rest. */
#define LW_TILE_ASK(t, row, columns, size, from, to, below, where)                    \
    do {                                                                              \
        const ptrdiff_t apart = (below) && (t)->rows > 1                              \
                                    ? (const char *)(row)[1] - (const char *)(row)[0] \
                                    : 0;                                              \
        for (ptrdiff_t ask = (from); ask < (to); ask++)                               \
            lw_fetch((row)[ask], t->rows *apart + (columns) * (ptrdiff_t)(size),      \
                     LW_TILE_COLS * (ptrdiff_t)(size), where);                        \
    } while (0)

/* The lines of rows [from, to) that are touched only when sums are finished, results and residuals, which `narrow` tiles may have
 * in bf16. To the second cache: fetches to the first would wait in line with the panel's. below: of the tile below instead. A tile
 * of few steps is finished before memory answers; the one below has the same columns a whole turn of panels later. */
LW_WORD void lw_tile_ask_ends(const lw_tile *t, ptrdiff_t from, ptrdiff_t to, const int narrow,
                              const bool below)
{
    if (narrow && t->low && t->pair)
        LW_TILE_ASK(t, t->low, t->at, 1, from, to, below, LW_FETCH_L2_WRITE);
    else if (narrow && t->low)
        LW_TILE_ASK(t, t->low, t->at, sizeof(lw_bf16), from, to, below, LW_FETCH_L2_WRITE);
    else
        LW_TILE_ASK(t, t->c, t->c_at, sizeof(float), from, to, below, LW_FETCH_L2_WRITE);
    if (t->add[1])
        LW_TILE_ASK(t, t->add[1], t->at, sizeof(float), from, to, below, LW_FETCH_L2);
    if (narrow && t->add_low)
        LW_TILE_ASK(t, t->add_low, t->at, sizeof(lw_bf16), from, to, below, LW_FETCH_L2);
}
lw_tile_fn LWV_BASE(lw_tile_run);
/* Steps of two bf16, f32 sums; steps of four u8 and s8, s32 sums from quant->start. */
lw_tile_fn LWV(lw_tile_run_bf16);
lw_tile_fn LWV(lw_tile_run_u8);

/* A kind of row tiles, and how products are cut for it. */
typedef struct lw_tiles {
    lw_tile_fn *run;
    ptrdiff_t rows;  /* of a tile, at most */
    ptrdiff_t chunk; /* steps whose sums belong together: blocks of k and taps begin a chunk */
    ptrdiff_t depth; /* steps of a block of k, about */
    bool even; /* tiles cost by their rows: rows are shared out evenly. Else tiles are filled */
    bool told; /* lw_tile.fetch is looked at, but in narrow products */
} lw_tiles;
extern const lw_tiles LWV_BASE(lw_tiles), LWV(lw_tiles_bf16), LWV(lw_tiles_u8);

/* First row of tile i of n. */
static inline ptrdiff_t lw_tiles_row(const lw_tiles *k, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t n)
{
    return k->even ? rows * i / n : LW_MIN(i * k->rows, rows);
}
/* First step of block i of n. */
static inline ptrdiff_t lw_tiles_step(const lw_tiles *k, ptrdiff_t steps, ptrdiff_t i, ptrdiff_t n)
{
    return i < n ? LW_ROUND_UP(steps * i / n, k->chunk) : steps;
}

/* Do the tasks of a product of so many rows and columns (of all taps) go group by group, because weights are more than rows, or
 * because tiles outrun the reading of them? */
static inline bool lw_tiles_by_groups(const lw_tiles *k, int64_t rows, int64_t cols)
{
    return !k->even || cols > rows;
}

/* Words that later tiles read, of which the sums of this one ask for a line with every step. */
typedef struct lw_tile_next {
    const float *at, *end;
} lw_tile_next;

/*
 * Where tasks go group by group: the groups of columns on both sides of [n0, n1), since half of the threads go through the tasks
 * backwards. Weights come from memory while the products of others are made; the first rows of a group alone would wait
 * for them. Not of weights so few that the second cache keeps them anyway.
 *
 *        | group before | this group | group behind |
 *     rows               [ row, to )                   of M rows ask for their share of both
 */
static inline void lw_tile_next_groups(lw_tile_next next[2], const float *packed, ptrdiff_t steps,
                                       ptrdiff_t N, ptrdiff_t n0, ptrdiff_t n1, ptrdiff_t row,
                                       ptrdiff_t to, ptrdiff_t M)
{
    if (LW_ROUND_UP(N, VL) * steps <= LW_GEMM_GROUP_FLOATS)
        return;
    const ptrdiff_t beside[2][2] = {{LW_MAX(n0 - (n1 - n0), 0), n0},
                                    {n1, LW_MIN(n1 + (n1 - n0), LW_ROUND_UP(N, VL))}};
    for (int i = 0; i < 2; i++) {
        const float *group = packed + beside[i][0] * steps;
        const ptrdiff_t words = LW_MAX(beside[i][1] - beside[i][0], 0) * steps;
        next[i] = (lw_tile_next){group + words * row / M, group + words * to / M};
    }
}

/* The tiles of a type for products of so many words (of a tap), and what is to be done before the
 * first and behind the last tile of a kernel call. */
#if defined(LW_AMX)
#include "kernels/gemm/gemm_tile_amx.h"
#else
#define LW_TILES_OF(type, words) ((void)(words), &LWV(lw_tiles_##type))
/* Rows of bytes, each unpacked to 16 bits: words of two even ones and of two odd ones, in turns (gemm_elem_u8.h). At most so many
 * words of a row are, others would leave too little of the first cache. */
enum { LW_UNPACKED_WORDS = VL == 8 ? 256 : 0 };
typedef struct lw_tile_room {
    _Alignas(64) float unpacked[LW_TILE_ROWS * 2 * LW_UNPACKED_WORDS + 1];
} lw_tile_room;
static inline lw_tile_room *lw_tiles_begin(lw_tile_room *room)
{
    return room;
}
static inline void lw_tiles_end(void) {}
#endif

/* What a panel's columns of whole sums need to become numbers: scale * (start + sum). */
typedef struct lw_tile_quant {
    int32_t start[LW_TILE_COLS]; /* - zero point * column sums of the taps that are summed */
    float scale[LW_TILE_COLS];
} lw_tile_quant;
/* For columns n.. of N (width of them, padded ones get scale 0): `taps` taps from `tap` on, whose
 * column sums lie `step` apart, are added to the start. */
void LWV_BASE(lw_quant_scales)(lw_tile_quant *t, const lw_quant *q, ptrdiff_t N, ptrdiff_t n);
void LWV_BASE(lw_quant_taps)(lw_tile_quant *t, const lw_quant *q, const int32_t *sums, ptrdiff_t N,
                             ptrdiff_t n, ptrdiff_t tap, ptrdiff_t taps);
/* Row tiles of narrow products; called by lw_tile_run. */
void LWV_BASE(lw_dot_run)(const lw_tile *t);

enum { LW_NARROW_COLS = 4 };
/*
 * Products of so few columns that a panel would be mostly padding (the last layer of an image
 * network): vectors run along k instead, and the lanes are summed at the end. `depth` is the
 * shortest run. The bits of such a sum depend on how k is cut into runs and blocks: that must
 * follow from the shape.
 */
static inline bool lw_tile_is_narrow(ptrdiff_t N, ptrdiff_t depth)
{
    return N <= LW_NARROW_COLS && depth >= 8;
}
/* packed[n * steps + k] <- element (n, k) of b, for part of the steps. */
static inline void lw_narrow_pack(float *packed, ptrdiff_t steps, const float *b, ptrdiff_t N,
                                  ptrdiff_t K, ptrdiff_t stride_n, ptrdiff_t stride_k)
{
    for (ptrdiff_t n = 0; n < N; n++)
        for (ptrdiff_t k = 0; k < K; k++)
            packed[n * steps + k] = b[n * stride_n + k * stride_k];
}

/* Width of the packed panel that starts at column n of N. */
static inline ptrdiff_t lw_panel_width(ptrdiff_t N, ptrdiff_t n)
{
    return N - n > VL ? LW_TILE_COLS : VL;
}

/* Tells a tile to ask for what is left of both; where that is one of them, for the panel ahead, too. What is told is left no
 * more. */
LW_WORD void lw_tile_tell(lw_tile *t, lw_tile_next next[2])
{
    const ptrdiff_t most = LW_FETCH_LINE * t->runs * t->len;
    const bool any = next[0].at < next[0].end || next[1].at < next[1].end;
    for (int i = 0; i < 2; i++) {
        t->fetch[i] = any ? (lw_tile_fetch){t->b + LW_FETCH_AHEAD, lw_panel_width(t->cols, 0)}
                          : (lw_tile_fetch){0};
        if (next[i].at < next[i].end) {
            t->fetch[i] = (lw_tile_fetch){next[i].at, LW_FETCH_LINE};
            next[i].at += LW_MIN(most, next[i].end - next[i].at);
        }
    }
}

/* Panel [K][width] <- element (n, k) at b[n * stride_n + k * stride_k], n < cols; other columns are
 * 0. The bf16 one makes words of two steps. */
typedef void lw_panel_pack_fn(float *panel, const float *b, ptrdiff_t cols, ptrdiff_t K,
                              ptrdiff_t stride_n, ptrdiff_t stride_k);
lw_panel_pack_fn LWV_BASE(lw_panel_pack);
lw_panel_pack_fn LWV_BASE(lw_panel_pack_bf16);
lw_panel_pack_fn lw_panel_pack_bf16x3_avx512; /* of words as LW_NUM_BF16X3 has them */

/* The panels of one pack task of a whole operand (not narrow), taps of depth K / taps. */
void LWV_BASE(lw_panels_pack)(lw_panel_pack_fn *pack, lw_num num, ptrdiff_t taps, float *packed,
                              const float *b, ptrdiff_t N, ptrdiff_t K, ptrdiff_t stride_n,
                              ptrdiff_t stride_k, int64_t task);
/* The same for s8, with column sums: element (n, k) of tap t at b[n * stride_n + t / taps_x *
 * stride_row + t % taps_x * stride_tap + k * stride_k]. */
typedef struct lw_s8_source {
    const float *b, *scale;
    ptrdiff_t N, taps, taps_x, depth, stride_n, stride_row, stride_tap, stride_k;
} lw_s8_source;
void LWV_BASE(lw_panels_pack_s8)(void *packed, const lw_s8_source *s, int64_t task);

/* c[i * ldc + j] (+)= sum over runs r and p < len of a[a0[r] + p * sa + i] * v[v0[r] + p * sv
 * + j]. */
typedef struct lw_rank {
    const float *a, *v;
    const ptrdiff_t *a0, *v0; /* [runs] */
    ptrdiff_t runs, len, sa, sv;
    ptrdiff_t rows, cols; /* rows <= LW_TILE_ROWS, cols <= LW_TILE_COLS */
    float *c;
    ptrdiff_t ldc;
    int load; /* 1: sums start from c, 0: from zero */
} lw_rank;
typedef void lw_rank_fn(const lw_rank *t);
lw_rank_fn LWV_BASE(lw_rank_run);
/* Steps of two bf16; v holds whole vectors. */
lw_rank_fn LWV(lw_rank_run_bf16);

#endif
