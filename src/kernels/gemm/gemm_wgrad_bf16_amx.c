/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weight gradients of bf16 on tile registers: for each tap the product of dy, filters by pixels, with x,
 * pixels by channels, summed over pixels.
 *
 * A block is some output lines of some images (pieces of lines, where these are long; a matrix is one
 * long line). Its places are pairs of pixels in the order image, line, pair, with `extra` lines behind
 * those of each image. Packed dy has rows of filters and words of pairs, zeros where a place has no
 * pixel. Packed x has a row of words of channels for each place, once for every tap of a filter row: the
 * word of a place holds what its two pixels read. Filter row `stride * a + r` reads at a place what row r
 * reads a lines further on, so x is packed for rows r < stride only, and those behind an image's lines
 * are what the extra lines are for. x must be finite: some is multiplied by 0.
 *
 * Tasks are those of other levels; here they are filters times channels, and some have nothing to do.
 */
#include "kernels/gemm/gemm_wgrad.h"
#include "kernels/simd/simd_amx.h"

enum {
    TILE = AMX_ROWS * AMX_WORDS,
    COLS = LW_TILE_COLS,
    FEWEST_FILTERS = 128,
    MOST_FILTERS = 256, /* of a task */
    DY_WORDS = 131072,  /* of a block: 512 KiB, */
    X_WORDS = 65536,    /* and of one block of channels */
    PLACES = 512        /* of a block, at most */
};

typedef struct wgrad_task {
    const lw_wgrad *g;
    const lw_bf16 *dy, *x;
    ptrdiff_t o0, o1, c0, c1; /* filters and channels of the task */
    float *dw;
    bool load;
    ptrdiff_t pairs, extra; /* of a line; lines behind an image */
    /* the block */
    ptrdiff_t image, images, y, lines, x0, pixels; /* pixels: of its lines */
    ptrdiff_t places, chunks;
    int32_t first[PLACES + AMX_WORDS]; /* pixel of dy, or -1 */
    float *of_dy, *of_x;
} wgrad_task;

/* ---- packing --------------------------------------------------------------------------------- */

static ptrdiff_t lines_of_image(const wgrad_task *t)
{
    return t->lines + t->extra;
}

static void find_places(wgrad_task *t)
{
    const lw_wgrad *g = t->g;
    ptrdiff_t n = 0;
    for (ptrdiff_t b = 0; b < t->images; b++)
        for (ptrdiff_t l = 0; l < lines_of_image(t); l++)
            for (ptrdiff_t q = 0; q < t->pairs; q++, n++) {
                const ptrdiff_t line = (t->image + b) * g->OH + t->y + l;
                const bool there = l < t->lines && 2 * q < t->pixels;
                t->first[n] = there ? (int32_t)(line * g->OW + t->x0 + 2 * q) : -1;
            }
    t->places = n;
    t->chunks = LW_CEIL_DIV(n, AMX_WORDS);
    for (; n < t->chunks * AMX_WORDS; n++)
        t->first[n] = -1;
}

LW_WORD vi load_some(const lw_bf16 *p, ptrdiff_t n)
{
    return n >= VL ? vi_load_u16(p) : vi_load_u16_n(p, n);
}

/* Whether a place that begins with this pixel has a second one. */
static bool has_second(const wgrad_task *t, ptrdiff_t place)
{
    return 2 * (place % t->pairs) + 1 < t->pixels;
}

/* [filters / 16][chunk][16 filters][16 pairs] */
static void pack_dy(const wgrad_task *t)
{
    const ptrdiff_t ld = t->g->ldy;
    float *to = t->of_dy;
    for (ptrdiff_t o = t->o0; o < t->o1; o += AMX_ROWS)
        for (ptrdiff_t c = 0; c < t->chunks; c++, to += TILE) {
            const ptrdiff_t n = LW_MIN(t->o1 - o, AMX_ROWS);
            vf r[AMX_WORDS];
            for (int i = 0; i < AMX_WORDS; i++) {
                const ptrdiff_t place = c * AMX_WORDS + i, pixel = t->first[place];
                r[i] = v_zero();
                if (pixel < 0)
                    continue;
                const lw_bf16 *p = t->dy + pixel * ld + o;
                const vi low = load_some(p, n);
                const vi high = has_second(t, place) ? load_some(p + ld, n) : vi_set1(0);
                r[i] = v_as_f(vi_or(low, vi_shl(high, 16)));
            }
            v_transpose(r);
            LW_UNROLL for (int i = 0; i < AMX_ROWS; i++) v_store(to + i * AMX_WORDS, r[i]);
        }
}

/* The words of two pixels, n channels of 32; NULL: zeros. */
LW_WORD void pack_pair(float *to, const lw_bf16 *first, const lw_bf16 *second, ptrdiff_t n)
{
    static const lw_bf16 nothing[COLS];
    static const uint16_t low[COLS] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                       37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                       11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __mmask32 some = n >= COLS ? 0xffffffffu : (__mmask32)((1u << n) - 1u);
    const vi a = _mm512_maskz_loadu_epi16(some, first ? first : nothing);
    const vi b = _mm512_maskz_loadu_epi16(some, second ? second : nothing);
    const vi order = _mm512_loadu_si512(low),
             higher = _mm512_add_epi16(order, _mm512_set1_epi16(16));
    vi_store(to, _mm512_permutex2var_epi16(a, order, b));
    vi_store(to + VL, _mm512_permutex2var_epi16(a, higher, b));
}

static ptrdiff_t plane_words(const wgrad_task *t)
{
    return (t->chunks * AMX_WORDS + t->extra * t->pairs) * COLS;
}

/* [tap of the filter row][place][32 channels], c.. of those, filter row r. */
static void pack_x(const wgrad_task *t, ptrdiff_t r, ptrdiff_t c)
{
    const lw_wgrad *g = t->g;
    const ptrdiff_t n = LW_MIN(t->c1 - c, COLS), s = g->stride;
    for (ptrdiff_t kx = 0; kx < g->KW; kx++) {
        float *to = t->of_x + kx * plane_words(t), *end = to + plane_words(t);
        for (ptrdiff_t i = 0; i < t->images * lines_of_image(t); i++) {
            const ptrdiff_t l = i % lines_of_image(t), image = t->image + i / lines_of_image(t);
            const ptrdiff_t iy = (t->y + l) * s + r - g->pad_top;
            const bool inside = iy >= 0 && iy < g->H;
            const lw_bf16 *line = t->x + (image * g->H + iy) * g->W * g->ldx + c;
            ptrdiff_t ix = t->x0 * s + kx - g->pad_left;
            for (ptrdiff_t q = 0; q < t->pairs; q++, ix += 2 * s, to += COLS)
                pack_pair(to, inside && ix >= 0 && ix < g->W ? line + ix * g->ldx : NULL,
                          inside && ix + s >= 0 && ix + s < g->W ? line + (ix + s) * g->ldx : NULL,
                          n);
        }
        for (; to < end; to += VL)
            v_store(to, v_zero());
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Sums of up to 32 filters and channels: where they are, or by way of `room`. */
typedef struct sums_at {
    float *c;
    ptrdiff_t ld, rows, cols;
    bool direct;
} sums_at;

static void fetch_sums(float *room, const sums_at *s)
{
    for (ptrdiff_t i = 0; i < s->rows; i++)
        for (ptrdiff_t j = 0; j < COLS; j += VL)
            v_store(room + i * COLS + j,
                    v_load_n(s->c + i * s->ld + j, LW_MAX(LW_MIN(s->cols - j, VL), 0)));
}

static void put_sums(const float *room, const sums_at *s)
{
    for (ptrdiff_t i = 0; i < s->rows; i++)
        for (ptrdiff_t j = 0; j < s->cols; j += VL)
            v_store_n(s->c + i * s->ld + j, v_load(room + i * COLS + j), LW_MIN(s->cols - j, VL));
}

/* One tap: halves of 16 filters, vecs of 16 channels. */
LW_WORD void multiply(const wgrad_task *t, const float *a, const float *b, const sums_at *s,
                      const int halves, const int vecs)
{
    _Alignas(64) float room[2 * AMX_ROWS * COLS];
    float *c = s->direct ? s->c : room;
    const ptrdiff_t word = (ptrdiff_t)sizeof(float), ld = s->direct ? s->ld : COLS, ldc = ld * word,
                    ldb = COLS * word, half = t->chunks * TILE;
    if (t->load) {
        if (!s->direct)
            fetch_sums(room, s);
        amx_sums_load(c, ldc, halves, vecs);
    } else {
        amx_sums_zero();
    }
    for (ptrdiff_t k = 0; k < t->chunks; k++, a += TILE, b += AMX_WORDS * COLS) {
        amx_sums_add(a, AMX_BYTES, a + half, AMX_BYTES, b, ldb, halves, vecs, AMX_BF16);
        amx_stay_awake(k, AMX_AWAKE);
    }
    amx_sums_store(c, ldc, halves, vecs);
    if (!s->direct)
        put_sums(room, s);
}

/* Tap (ky, kx), channels c.. : all filters of the task. */
static void tap(const wgrad_task *t, ptrdiff_t ky, ptrdiff_t kx, ptrdiff_t c)
{
    const lw_wgrad *g = t->g;
    const ptrdiff_t filter = g->KH * g->KW * g->C;
    const float *b = t->of_x + kx * plane_words(t) + ky / g->stride * t->pairs * COLS;
    for (ptrdiff_t o = t->o0; o < t->o1; o += 2 * AMX_ROWS) {
        const float *a = t->of_dy + (o - t->o0) / AMX_ROWS * t->chunks * TILE;
        sums_at s = {.c = t->dw + o * filter + (ky * g->KW + kx) * g->C + c,
                     .ld = filter,
                     .rows = LW_MIN(t->o1 - o, 2 * AMX_ROWS),
                     .cols = LW_MIN(t->c1 - c, COLS)};
        const bool tall = s.rows > AMX_ROWS, wide = s.cols > VL;
        s.direct = s.rows % AMX_ROWS == 0 && s.cols % VL == 0;
        if (tall && wide)
            multiply(t, a, b, &s, 2, 2);
        else if (tall)
            multiply(t, a, b, &s, 2, 1);
        else if (wide)
            multiply(t, a, b, &s, 1, 2);
        else
            multiply(t, a, b, &s, 1, 1);
    }
}

static void block(wgrad_task *t)
{
    const lw_wgrad *g = t->g;
    find_places(t);
    pack_dy(t);
    for (ptrdiff_t c = t->c0; c < t->c1; c += COLS)
        for (ptrdiff_t r = 0; r < LW_MIN(g->stride, g->KH); r++) {
            pack_x(t, r, c);
            for (ptrdiff_t ky = r; ky < g->KH; ky += g->stride)
                for (ptrdiff_t kx = 0; kx < g->KW; kx++)
                    tap(t, ky, kx, c);
        }
    t->load = true;
}

/* db[o] (+)= sum of dy over all pixels. */
static void sum_filters(const wgrad_task *t, float *db, ptrdiff_t pixels)
{
    for (ptrdiff_t o = t->o0; o < t->o1; o += VL) {
        const ptrdiff_t n = LW_MIN(t->o1 - o, VL), ld = t->g->ldy;
        vf sum = t->load ? v_load_n(db + o, n) : v_zero();
        for (ptrdiff_t p = 0; p < pixels; p++)
            sum = v_add(sum, v_of_bf16(load_some(t->dy + p * ld + o, n)));
        v_store_n(db + o, sum, n);
    }
}

/* ---- the task -------------------------------------------------------------------------------- */

/* Blocks of all images, cut by the shape alone. */
static void all_blocks(wgrad_task *t, ptrdiff_t filters)
{
    const lw_wgrad *g = t->g;
    ptrdiff_t most = LW_MIN(DY_WORDS / LW_ROUND_UP(filters, AMX_ROWS),
                            X_WORDS / (g->KW * COLS) - AMX_WORDS);
    most = LW_MIN(most, PLACES) / AMX_WORDS * AMX_WORDS;
    t->extra = (g->KH - 1) / g->stride;
    const ptrdiff_t piece = LW_MIN(LW_CEIL_DIV(g->OW, 2), most / (1 + 2 * t->extra));
    const ptrdiff_t room = most / piece - t->extra; /* lines of images and extra ones */
    const ptrdiff_t lines = LW_MIN(g->OH, room - t->extra);
    const bool whole = lines == g->OH && 2 * piece >= g->OW;
    const ptrdiff_t images = whole ? LW_MAX(room / (g->OH + t->extra), 1) : 1;
    t->pairs = piece;
    for (t->image = 0; t->image < g->images; t->image += images)
        for (t->y = 0; t->y < g->OH; t->y += lines)
            for (t->x0 = 0; t->x0 < g->OW; t->x0 += 2 * piece) {
                t->images = LW_MIN(images, g->images - t->image);
                t->lines = LW_MIN(lines, g->OH - t->y);
                t->pixels = LW_MIN(2 * piece, g->OW - t->x0);
                block(t);
            }
}

/* A matrix, or an image of which no tap reads a neighbour, is a line. */
static lw_wgrad as_line(lw_wgrad g)
{
    if (g.KH * g.KW == 1 && g.stride == 1 && g.pad_top == 0 && g.pad_left == 0 && g.H == g.OH &&
        g.W == g.OW) {
        g.OW = g.W = g.images * g.OH * g.OW;
        g.images = g.OH = g.H = 1;
    }
    return g;
}

/* Channels in blocks give most tasks; filters as many as are wanted then. */
static ptrdiff_t parts_of_filters(const lw_wgrad *g, ptrdiff_t tasks)
{
    const ptrdiff_t wanted = LW_MIN(tasks / LW_CEIL_DIV(g->C, COLS), g->O / FEWEST_FILTERS);
    return LW_MIN(LW_MAX(wanted, LW_CEIL_DIV(g->O, MOST_FILTERS)), tasks);
}

void lw_wgrad_task_bf16_amx(const lw_wgrad *given, const lw_bf16 *dy, const lw_bf16 *x,
                            int64_t task)
{
    _Alignas(64) float of_dy[DY_WORDS], of_x[X_WORDS];
    const ptrdiff_t plane = given->OH * given->OW;
    const lw_wgrad_split s = lw_wgrad_split_of(given->images, plane, given->O, given->KH,
                                               given->KW * given->C);
    const ptrdiff_t group = task / s.out_tasks, out = task % s.out_tasks;
    const ptrdiff_t o_parts = parts_of_filters(given, s.out_tasks),
                    filters = LW_ROUND_UP(LW_CEIL_DIV(given->O, o_parts), 2 * AMX_ROWS),
                    c_blocks = LW_CEIL_DIV(given->C, COLS),
                    c_parts = LW_MIN(c_blocks, s.out_tasks / o_parts),
                    channels = LW_CEIL_DIV(c_blocks, c_parts) * COLS;
    const ptrdiff_t first = out / c_parts * filters, end = LW_MIN(first + filters, given->O),
                    b0 = group * s.images, images = LW_MIN(s.images, given->images - b0);
    float *const partial = given->partials + group * s.floats;
    lw_wgrad g = *given;
    wgrad_task t = {.g = &g,
                    .dy = dy + b0 * plane * g.ldy,
                    .x = x + b0 * g.H * g.W * g.ldx,
                    .dw = s.groups > 1 ? partial : g.dw,
                    .c0 = out % c_parts * channels,
                    .of_dy = of_dy,
                    .of_x = of_x};
    float *db = s.groups > 1 ? partial + g.O * g.KH * g.KW * g.C : g.db;
    t.c1 = LW_MIN(t.c0 + channels, g.C);
    if (first >= end || t.c0 >= t.c1 || images <= 0)
        return;
    g.images = images;
    g = as_line(g);
    amx_begin();
    for (t.o0 = first; t.o0 < end; t.o0 = t.o1) {
        t.o1 = LW_MIN(t.o0 + MOST_FILTERS, end);
        t.load = s.groups == 1 && g.accumulate;
        if (g.db && t.c0 == 0)
            sum_filters(&t, db, images * plane);
        all_blocks(&t, LW_MIN(filters, MOST_FILTERS));
    }
    amx_end();
}
