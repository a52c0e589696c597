/* SPDX-License-Identifier: Apache-2.0 */
/* How a rescaling convolution is cut into tasks: pure functions of the shape. */
#include "kernels/conv/conv_rescale_shape.h"

enum {
    /* Tiles of a block, where tasks are few: of fewer, weights are read too often. */
    BLOCK_LEAST = 8,
    FEW_COLS_LEAST = 4, /* the same of weights of so few columns that there are no groups of them */
    FEW_TASKS = 32,
    WEIGHT_ROWS = 8, /* rows that take as long as the reading of a number's weights */
    PIECES = 16,     /* tasks that transform the inputs of a block, at most */
    /* Channels, of fewer F(4x4) over the upsampled picture is as fast, or computing directly. */
    FEWEST_GROWING = 16,
    FEWEST_GROWING_AVX512 = 32,
    FEWEST_SHRINKING = 64,
    ONE_TILE_WEIGHTS = 8192 /* pairs of channels; see conv_winograd_rule.c */
};

bool lw_rescale_applies(const lw_conv_shape *s, lw_conv_pass pass)
{
    if (s->stride != 2)
        return false;
    if (pass == LW_CONV_FORWARD)
        return s->KH == 3 && s->KW == 3 && s->pad_top <= 1 && s->pad_left <= 1 &&
               s->C <= LW_RESCALE_MAX_DEPTH;
    return s->upsampling && s->KH == 4 && s->KW == 4 && s->pad_top == 1 && s->pad_left == 1 &&
           s->H == 2 * s->OH && s->W == 2 * s->OW && s->O <= LW_RESCALE_MAX_DEPTH;
}

/* Are there a fifth fewer multiplications than those of F(4x4) over the upsampled picture, or of taps? Not where tiles stand out
 * of small pictures: of 5, 6, 9 x 9 pixels there are as many or more. */
static bool fewer_multiplications(const lw_conv_shape *s, bool up)
{
    const int64_t high = LW_CEIL_DIV(s->OH, LW_RESCALE_TILE),
                  wide = LW_CEIL_DIV(s->OW, LW_RESCALE_TILE),
                  points = (LW_RESCALE_LINE * high + up) * (LW_RESCALE_LINE * wide + up),
                  others = up ? (int64_t)LW_WINO_MAX_POINTS * LW_CEIL_DIV(s->OH, 2) *
                                    LW_CEIL_DIV(s->OW, 2)
                              : (int64_t)9 * s->OH * s->OW;
    return 5 * points <= 4 * others;
}

bool lw_rescale_pays(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode)
{
    if (mode == LW_CONV_MODE_DIRECT || !lw_rescale_applies(s, pass))
        return false;
    if (mode != LW_CONV_MODE_AUTO)
        return true;
    /* Of pictures that shrink products are so few that AVX-512 waits for points instead. */
    const bool up = pass == LW_CONV_DATA_GRAD, avx2 = lw_isa_is_avx2(isa),
               avx512 = isa >= LW_ISA_AVX512 && isa < LW_ISA_AMX, measured = avx2 || (avx512 && up);
    const int fewest = !up ? FEWEST_SHRINKING : avx2 ? FEWEST_GROWING : FEWEST_GROWING_AVX512;
    const bool few = s->C < fewest || s->O < fewest,
               one_tile = s->OH <= LW_RESCALE_TILE && s->OW <= LW_RESCALE_TILE;
    return measured && !few && !(one_tile && (int64_t)s->C * s->O > ONE_TILE_WEIGHTS) &&
           fewer_multiplications(s, up);
}

/* Points of each number of a line. */
static ptrdiff_t points(lw_rescale_band b, int number)
{
    return number < 4 ? b.tiles : number == 4 ? b.tiles + b.edge : 4 * b.tiles;
}

static ptrdiff_t all_points(lw_rescale_band b)
{
    return LW_RESCALE_LINE * b.tiles + b.edge;
}

static lw_rescale_band band(const lw_rescale *z, ptrdiff_t tiles, ptrdiff_t i, ptrdiff_t bands)
{
    const ptrdiff_t first = tiles * i / bands;
    return (lw_rescale_band){first, tiles * (i + 1) / bands - first, z->up && first == 0};
}

/* Blocks of at most so many tiles. */
static void cut(lw_rescale *z, ptrdiff_t most)
{
    z->bands_x = LW_CEIL_DIV(z->tiles_x, most);
    const ptrdiff_t wide = LW_CEIL_DIV(z->tiles_x, z->bands_x);
    z->bands_y = LW_CEIL_DIV(z->tiles_y, most / wide);
    z->images = LW_MIN(LW_MAX(most / (z->tiles_y * z->tiles_x), 1), LW_MAX(z->B, 1));
    z->groups = LW_CEIL_DIV(z->B, z->images);
    z->blocks = (int64_t)z->groups * z->bands_y * z->bands_x;
    const ptrdiff_t high = LW_CEIL_DIV(z->tiles_y, z->bands_y);
    z->rows = z->images * all_points((lw_rescale_band){0, high, z->up}) *
              all_points((lw_rescale_band){0, wide, z->up});
}

lw_rescale lw_rescale_of(const lw_conv_shape *s, lw_conv_pass pass)
{
    const bool up = pass == LW_CONV_DATA_GRAD;
    lw_rescale z = {.up = up,
                    .H = s->OH,
                    .W = s->OW,
                    .in_H = up ? s->OH : s->H,
                    .in_W = up ? s->OW : s->W,
                    .out_H = up ? s->H : s->OH,
                    .out_W = up ? s->W : s->OW,
                    .pad_y = up ? 0 : s->pad_top,
                    .pad_x = up ? 0 : s->pad_left,
                    .K = up ? s->O : s->C,
                    .N = up ? s->C : s->O,
                    .ld_in = up ? s->ldy : s->ldx,
                    .ld_out = up ? s->ldx : s->ldy,
                    .B = s->B};
    z.tiles_y = LW_CEIL_DIV(z.H, LW_RESCALE_TILE);
    z.tiles_x = LW_CEIL_DIV(z.W, LW_RESCALE_TILE);
    z.ldv = LW_ROUND_UP(z.K, 16);
    cut(&z, LW_RESCALE_BLOCK);
    z.parts = 1;
    z.shared = z.blocks < LW_WINO_TASKS && z.N > LW_GEMM_COLS;
    z.cols = z.shared ? LW_GEMM_COLS : LW_ROUND_UP(z.N, LW_GEMM_COLS);
    z.col_groups = LW_CEIL_DIV(z.N, z.cols);
    for (ptrdiff_t most = LW_RESCALE_BLOCK / 2, least = z.shared ? BLOCK_LEAST : FEW_COLS_LEAST;
         most >= least && z.blocks * z.col_groups < LW_WINO_TASKS; most /= 2)
        cut(&z, most);
    if (z.shared && z.blocks * z.col_groups < FEW_TASKS)
        z.parts = lw_wino_parts(z.blocks * z.col_groups, LW_RESCALE_NUMBERS * z.K * z.cols);
    z.by_groups = z.parts > 1 || LW_RESCALE_NUMBERS * z.N > z.blocks * z.rows;
    z.pieces = LW_MIN(PIECES, z.images * (LW_CEIL_DIV(z.tiles_y, z.bands_y) + up) *
                                  (LW_CEIL_DIV(z.tiles_x, z.bands_x) + up));
    return z;
}

lw_rescale_block lw_rescale_block_of(const lw_rescale *z, int64_t block)
{
    const ptrdiff_t of_image = z->bands_y * z->bands_x, i = block % of_image,
                    group = block / of_image;
    lw_rescale_block b = {.image = z->B * group / z->groups,
                          .y = band(z, z->tiles_y, i / z->bands_x, z->bands_y),
                          .x = band(z, z->tiles_x, i % z->bands_x, z->bands_x)};
    b.images = z->B * (group + 1) / z->groups - b.image;
    for (int n = 0; n < LW_RESCALE_NUMBERS; n++)
        b.row[n + 1] = b.row[n] + b.images * points(b.y, n / LW_RESCALE_NUMBERS_LINE) *
                                      points(b.x, n % LW_RESCALE_NUMBERS_LINE);
    return b;
}

ptrdiff_t lw_rescale_number(const lw_rescale *z, const lw_rescale_block *b, ptrdiff_t part)
{
    const ptrdiff_t each = WEIGHT_ROWS,
                    all = b->row[LW_RESCALE_NUMBERS] + each * LW_RESCALE_NUMBERS;
    ptrdiff_t n = 0;
    while ((b->row[n] + each * n) * z->parts < all * part)
        n++;
    return n;
}

/* A point of a line of a cell: its number, and which of the points of that number it is. */
typedef struct at_line {
    int number;
    ptrdiff_t point, points;
} at_line;

/* Those of a tile, or of the edge; returns how many. */
static int on_line(at_line *at, lw_rescale_band b, bool edge, ptrdiff_t tile)
{
    const int n = edge ? 1 : LW_RESCALE_LINE;
    for (int i = 0; i < n; i++) {
        const int number = lw_rescale_number_of(i, edge);
        const ptrdiff_t point = edge ? 0 : i < 4 ? tile : i == 4 ? b.edge + tile : 4 * tile + i - 5;
        at[i] = (at_line){number, point, points(b, number)};
    }
    return n;
}

void lw_rescale_cell_of(lw_rescale_cell *c, const lw_rescale_block *b, ptrdiff_t cell)
{
    const ptrdiff_t wide = b->x.edge + b->x.tiles, high = b->y.edge + b->y.tiles,
                    x = cell % wide - b->x.edge, y = cell / wide % high - b->y.edge,
                    image = cell / wide / high;
    c->image = b->image + image;
    c->edge_y = y < 0;
    c->edge_x = x < 0;
    c->y = c->edge_y ? 0 : (b->y.first + y) * LW_RESCALE_TILE;
    c->x = c->edge_x ? 0 : (b->x.first + x) * LW_RESCALE_TILE;
    at_line down[LW_RESCALE_LINE], across[LW_RESCALE_LINE];
    const int rows = on_line(down, b->y, c->edge_y, y), cols = on_line(across, b->x, c->edge_x, x);
    int32_t *row = c->row;
    for (int i = 0; i < rows; i++) {
        const ptrdiff_t *first = b->row + down[i].number * LW_RESCALE_NUMBERS_LINE,
                        line = image * down[i].points + down[i].point;
        for (int k = 0; k < cols; k++)
            *row++ = (int32_t)(first[across[k].number] + line * across[k].points + across[k].point);
    }
}

int64_t lw_rescale_packed_floats(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    return lw_gemm_packed_floats(z.N, z.K * LW_RESCALE_NUMBERS);
}

int64_t lw_rescale_pack_tasks(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    return lw_gemm_pack_tasks(z.N, z.K * LW_RESCALE_NUMBERS);
}

int64_t lw_rescale_shared_floats(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    const int64_t tasks = z.parts > 1 ? z.blocks * z.col_groups : 0;
    return z.shared ? lw_rescale_products_at(&z, tasks) : 0;
}

int64_t lw_rescale_input_tasks(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    return z.shared ? z.blocks * z.pieces : 0;
}

int64_t lw_rescale_product_tasks(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    return z.parts > 1 ? z.blocks * z.col_groups * z.parts : 0;
}

int64_t lw_rescale_tasks(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    return z.blocks * z.col_groups;
}

int64_t lw_rescale_scratch_floats(const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_rescale z = lw_rescale_of(s, pass);
    /* The reference keeps one cell in double precision. */
    return LW_MAX(z.rows * ((z.shared ? 0 : z.ldv) + LW_GEMM_COLS), 2 * LW_RESCALE_POINTS * z.K);
}
