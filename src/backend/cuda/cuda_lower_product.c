/* SPDX-License-Identifier: Apache-2.0 */
/* Products on GPUs: matmul, conv2d, conv2d_dx, and the weights of a convolution behind
 * upsampling. */
#include "backend/cuda/cuda_private.h"

#include <math.h>

/* May this convolution have halo tiles (kernels/cuda_halo.h)? Its weights are packed for them. */
static bool has_halo(const cuda *d, const lw_attr_conv *a)
{
    return d->hopper && a->kh == 3 && a->kw == 3 && a->stride == 1 && a->pad_t == 1 &&
           a->pad_l == 1 && a->pad_b == 1 && a->pad_r == 1 && a->c % 64 == 0 && a->o % 4 == 0 &&
           a->w <= LW_CUDA_HALO_WIDTH && a->h < 0x2000;
}

typedef struct product_step {
    cuda_step step;
    lw_cuda_product a;
    struct {
        lw_cuda_kernel kernel;
        int64_t blocks, across;
    } plain, tiled;                 /* plain is launched where tiled has no blocks */
    bool cluster;                   /* the blocks of a tile are a thread-block cluster */
    int residual, bias, image_bias; /* inputs */
} product_step;

/* What the values p of a pack node mean: fields of the product; its kinds are product_kind's. */
enum { PACK_MATMUL, PACK_CONV, PACK_CONV_DX };
enum { PACK_N, PACK_K, PACK_TRANS, PACK_O, PACK_TAPS, PACK_NARROW, PACK_IMAGE, PACK_COLUMNS };

/* Do all operands begin at multiples of 16 bytes? Slices of others may not. */
static bool in_pieces(const lw_cuda_product *a)
{
    return ((uintptr_t)a->x | (uintptr_t)a->w | (uintptr_t)a->bias | (uintptr_t)a->image_bias |
            (uintptr_t)a->residual | (uintptr_t)a->project_x | (uintptr_t)a->y) %
               16 ==
           0;
}

static void product_task(const lw_task *t)
{
    const product_step *s = t->arg;
    lw_cuda_product a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    a.w = t->in[1];
    a.bias = t->in[s->bias];
    a.residual = t->in[s->residual];
    a.image_bias = s->image_bias ? t->in[s->image_bias] : NULL;
    if (a.drop_rows) {
        a.tick = lw_cuda_tick_at(s->step.d);
        a.ids = t->in[5];
    }
    if (a.project_c) {
        a.project_x = t->in[LW_CONV_PROJECT_X];
        a.project_w = t->in[LW_CONV_PROJECT_W];
    }
    a.chunks &= (uintptr_t)a.x % 16 == 0;
    if (a.split_blocks && !s->cluster) {
        a.partial = t->work;
        a.arrived = lw_cuda_arrived(s->step.d);
    }
    LW_ASSERT(!a.project_c || in_pieces(&a),
              "a projection has operands that do not begin at multiples of 16 bytes");
    if (s->cluster && in_pieces(&a))
        lw_cuda_launch_clusters(s->step.d, s->tiled.kernel, s->tiled.blocks, a.splits, &a);
    else if (s->tiled.blocks && in_pieces(&a))
        lw_cuda_launch(s->step.d, s->tiled.kernel, s->tiled.blocks, s->tiled.across, &a);
    else
        lw_cuda_launch(s->step.d, s->plain.kernel, s->plain.blocks, s->plain.across, &a);
}

enum { MOST_ACROSS = 65535 }; /* blocks in a grid's second direction */

static void set_plain(product_step *s, lw_cuda_kernel kernel)
{
    s->plain.kernel = kernel;
    s->plain.blocks = LW_CEIL_DIV(s->a.m, LW_CUDA_TILE);
    s->plain.across = LW_CEIL_DIV(s->a.n, LW_CUDA_TILE);
}

/* All operands but input `ids` are f32; or x is bf16, and weights and residual are of either type.
 * Everything else is f32, and the result is of either type. */
static int check_types(const cuda_lower *c, int ids, int residual, bool *narrow)
{
    *narrow = cuda_in(c, 0).dtype == LW_BF16;
    for (int i = 0; i < c->n->n_in; i++) {
        if (i == ids || !cuda_has(c, i) || cuda_in(c, i).dtype == LW_F32)
            continue;
        if (!*narrow)
            return lw_cuda_lacks(c, " of other numbers than f32");
        if ((i > 1 && i != residual && i != LW_CONV_PROJECT_X) || cuda_in(c, i).dtype != LW_BF16)
            return lw_cuda_lacks(c, " of bf16 and other numbers than f32");
    }
    for (int i = 0; i < c->n->n_out; i++)
        if (cuda_out(c, i).dtype != LW_F32 && cuda_out(c, i).dtype != LW_BF16)
            return lw_cuda_lacks(c, " to other numbers than f32 and bf16");
    return 0;
}

/* Elements from one packed column to the next: they are copied eight or four at a time. */
static int32_t pitch_of(int32_t k)
{
    return LW_ROUND_UP(k, 8);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Kernels of cuda_tiles.h: how they split K (not at all, one split after the other, or each split
 * in a block of its own, which is one of a cluster or leaves its sums in memory), how many blocks a
 * multiprocessor has at once, and its cycles for a step of a tile, as measured on one H200. */
typedef struct tile {
    lw_cuda_kernel kernel;
    enum { OF_F32, OF_BF16, HALF, HALO } kind;
    enum {
        NO_SPLIT = 0,
        SPLIT_IN_TURN = 1,
        SPLIT_IN_MEMORY = 2,
        SPLIT_IN_CLUSTER = 4
    } split_k; /* or several */
    int32_t rows, columns, sharing;
    double step;
} tile;
static const tile tiles[] = {
    {LW_CUDA_wgmma_256x128, OF_BF16, NO_SPLIT, 256, 128, 1, 1700.0},
    {LW_CUDA_wgmma_128x128, OF_BF16, NO_SPLIT, 128, 128, 2, 1200.0},
    {LW_CUDA_wgmma_128x128_splits, OF_BF16, SPLIT_IN_TURN, 128, 128, 1, 1250.0},
    {LW_CUDA_wgmma_64x64, OF_BF16, SPLIT_IN_TURN, 64, 64, 2, 600.0},
    {LW_CUDA_wgmma_64x64_cluster, OF_BF16, SPLIT_IN_CLUSTER, 64, 64, 2, 600.0},
    {LW_CUDA_wgmma_256x128_half, HALF, NO_SPLIT, 256, 128, 1, 2000.0},
    {LW_CUDA_halo_256x128, HALO, NO_SPLIT, 256, 128, 1, 1180.0},
    {LW_CUDA_halo_128x128, HALO, SPLIT_IN_TURN, 128, 128, 1, 720.0},
    {LW_CUDA_halo_128x128_two, HALO, NO_SPLIT, 128, 128, 2, 720.0},
    {LW_CUDA_halo_64x64, HALO, SPLIT_IN_TURN, 64, 64, 2, 350.0},
    {LW_CUDA_halo_64x64_cluster, HALO, SPLIT_IN_CLUSTER, 64, 64, 2, 350.0},
    {LW_CUDA_ffma_128x128, OF_F32, SPLIT_IN_MEMORY, 128, 128, 1, 7000.0},
    {LW_CUDA_ffma_64x64, OF_F32, SPLIT_IN_TURN | SPLIT_IN_MEMORY, 64, 64, 2, 1800.0},
};
enum {
    AS_IF = 132,      /* multiprocessors, for what bits depend on: they are the same on all GPUs */
    MOST_SPLITS = 16, /* in f32 */
    SPLIT_STEPS = 6,  /* a split's, at least; twice as many in f32, whose steps are half as long */
    MANY_PIXELS = 1024,
    BLOCK_CYCLES = 2500
};

static int64_t steps_of(const lw_cuda_product *a, bool narrow)
{
    int64_t depth = (int64_t)(a->kh / a->phases) * (a->kw / a->phases) * a->c;
    return LW_CEIL_DIV(depth, narrow ? 64 : 32);
}

static int64_t tiles_of(const lw_cuda_product *a, const tile *t)
{
    return (int64_t)a->phases * a->phases * LW_CEIL_DIV(a->phase_rows, t->rows) *
           LW_CEIL_DIV(a->n, t->columns);
}

/* Rows of a matrix are pictures of one pixel, whose window is that pixel, and so is their
 * result. */
static bool is_matrix(const lw_cuda_product *a)
{
    return a->h * a->width == 1 && a->oh * a->ow == 1 && a->kh * a->kw == 1 && !a->pad_t &&
           !a->pad_l;
}

/* Chunks of a projection, and its groups, which are splits where K is split. */
static int32_t project_chunks(const lw_cuda_product *a)
{
    return a->project_c / 64;
}
static int32_t project_groups(const lw_cuda_product *a)
{
    return LW_CEIL_DIV(project_chunks(a), LW_CUDA_PROJECT);
}

/* Splits of a product's own K ("depth"): as many as keep a GPU busy with one picture of few pixels.
 * They depend on one picture alone, so that bits are the same in any batch; rows of a matrix belong
 * to no picture, and their K is not split. */
static int32_t splits_of(const lw_cuda_product *a, bool narrow, bool halo)
{
    int64_t pixels = (int64_t)a->oh * a->ow / ((int64_t)a->phases * a->phases);
    int64_t positions = halo ? (int64_t)(a->h + 1) * (a->width + 1) : pixels;
    int64_t one = (int64_t)a->phases * a->phases * LW_CEIL_DIV(positions, 64) *
                  LW_CEIL_DIV(a->n, 64);
    int64_t most = steps_of(a, narrow) / (halo ? 9 : narrow ? SPLIT_STEPS : 2 * SPLIT_STEPS);
    if (is_matrix(a) || pixels >= MANY_PIXELS)
        return 1;
    most = LW_MIN(most, narrow ? LW_CUDA_CLUSTER - project_groups(a) : MOST_SPLITS);
    return (int32_t)LW_MAX(LW_MIN(most, 2 * AS_IF / one), (int64_t)1);
}

/* About how many cycles a product takes: waves of blocks. Where splits have blocks of their own,
 * the last block of a tile reads the sums of all splits, or each block of a cluster reads some of
 * them. */
static double cycles_of(const cuda *d, const lw_cuda_product *a, const tile *t, bool split_blocks)
{
    int64_t blocks = tiles_of(a, t) * (split_blocks ? a->splits : 1);
    int64_t steps = steps_of(a, t->kind != OF_F32);
    steps = split_blocks ? LW_CEIL_DIV(steps, a->own_splits) : steps + project_chunks(a);
    int64_t each = LW_CEIL_DIV(blocks, LW_MAX(d->multiprocessors, 1));
    int64_t waves = LW_CEIL_DIV(each, t->sharing);
    double block = BLOCK_CYCLES + t->rows * t->columns / 5.0; /* to begin, and to write */
    double cycles = (double)waves * block + (double)(each * steps) * t->step;
    if (!split_blocks)
        return cycles;
    return t->split_k == SPLIT_IN_CLUSTER
               ? cycles + 1000.0
               : cycles + 1500.0 + a->splits * t->rows * t->columns / 10.0;
}

/* Can these tiles compute the product's splits, in blocks of their own or not? */
static bool has_splits(const lw_cuda_product *a, const tile *t, bool split_blocks)
{
    if (a->splits == 1)
        return !split_blocks && t->split_k != SPLIT_IN_CLUSTER;
    return t->split_k & (split_blocks ? SPLIT_IN_MEMORY | SPLIT_IN_CLUSTER : SPLIT_IN_TURN);
}

/* A matrix of bf16 whose rows are a number of half pieces, such as patches of 14 x 14 pixels. */
static bool is_half(const lw_cuda_product *a, int32_t piece)
{
    return piece == 8 && is_matrix(a) && a->c % piece;
}

/* Are rows a number of whole pieces of 16 bytes, and not too many? x: the picture that is read. */
static bool fits_tiles(const lw_cuda_product *a, lw_type x, int32_t piece)
{
    const int32_t unit = is_half(a, piece) ? piece / 2 : piece;
    return a->w_pitch && a->w_pitch % piece == 0 && !a->trans_x && a->c % unit == 0 &&
           a->ldx % unit == 0 && a->n % 4 == 0 && a->ldy % 4 == 0 && a->ld_residual % 4 == 0 &&
           a->h < 0x2000 && a->width < 0x2000 && a->kh % a->phases == 0 && a->kw % a->phases == 0 &&
           a->oh % a->phases == 0 && a->ow % a->phases == 0 && a->m < INT32_MAX / 2 &&
           lw_type_count(x) / lw_type_last(x) * a->ldx / unit < INT32_MAX / 2;
}

/* The divider by d, for values up to 2^31. */
static lw_cuda_divider divider_of(int32_t d)
{
    uint32_t log = 0;
    while ((INT64_C(1) << log) < d)
        log++;
    uint64_t power = UINT64_C(1) << (31 + log);
    return (lw_cuda_divider){.by = d,
                             .mul = d > 1 ? (uint32_t)((power + (uint64_t)d - 1) / (uint64_t)d) : 0,
                             .all = d > 1 ? 0 : UINT32_MAX,
                             .shift = d > 1 ? log - 1 : 0};
}

/* The tiles that take the fewest cycles, if any fit, of those that the GPU has room for. */
static void set_tiles(const cuda_lower *c, product_step *s, bool narrow)
{
    lw_cuda_product *a = &s->a;
    double best = (double)INFINITY;
    if (!fits_tiles(a, cuda_in(c, 0), narrow ? 8 : 4) || (narrow && !c->d->hopper) ||
        (a->image &&
         a->m / ((int64_t)a->h * a->width) * (a->h + 1) * (a->width + 1) > INT32_MAX / 2))
        return;
    if (s->image_bias && a->m / ((int64_t)a->oh * a->ow) * a->n > INT32_MAX)
        return; /* tiles count the elements of a bias of each picture with 32 bits */
    const bool halo = a->image;
    const int kind = halo ? HALO : !narrow ? OF_F32 : is_half(a, 8) ? HALF : OF_BF16;
    a->flat = a->kh * a->kw == 1 && a->stride == 1 && !a->pad_t && !a->pad_l && !a->backward;
    a->phase_rows = (int32_t)(a->m / ((int64_t)a->phases * a->phases));
    a->wide = divider_of(a->ow / a->phases + halo);
    a->high = divider_of(a->oh / a->phases + halo);
    a->pixels = divider_of(a->oh * a->ow);
    if (halo)
        a->phase_rows = a->phase_rows / a->pixels.by * a->high.by * a->wide.by - a->wide.by - 1;
    a->own_splits = splits_of(a, narrow, halo);
    a->splits = a->own_splits > 1 ? a->own_splits + project_groups(a) : 1;
    for (size_t i = 0; i < 2 * LW_COUNT(tiles); i++) {
        const tile *t = &tiles[i / 2];
        bool split_blocks = i % 2, cluster = split_blocks && t->split_k == SPLIT_IN_CLUSTER;
        int64_t all = tiles_of(a, t), blocks = all * (split_blocks ? a->splits : 1);
        double cycles = cycles_of(c->d, a, t, split_blocks);
        if ((int)t->kind != kind || !c->d->kernel[t->kernel] || cycles >= best ||
            blocks > INT32_MAX || !has_splits(a, t, split_blocks) ||
            (split_blocks && !cluster && all > LW_CUDA_TILES))
            continue;
        best = cycles;
        a->split_blocks = split_blocks;
        s->cluster = cluster;
        s->tiled.kernel = t->kernel;
        s->tiled.blocks = blocks;
        s->tiled.across = 1;
        c->out->work_bytes = split_blocks && !cluster
                                 ? (size_t)(blocks * t->rows * t->columns) * sizeof(float)
                                 : 0;
    }
}

/* Kernels for products that would leave tiles mostly empty: this depends on a picture's shape, not
 * on how many pictures there are. And smaller tiles for a matrix that has few tiles, or would fill
 * few rows of them: their sums have the same order. */
static void set_other(const cuda_lower *c, product_step *s)
{
    lw_cuda_product *a = &s->a;
    const int64_t all = LW_CEIL_DIV(a->m, LW_CUDA_TILE) * LW_CEIL_DIV(a->n, LW_CUDA_TILE);
    bool matrix = is_matrix(a);
    if (!a->w_pitch || a->trans_x || a->backward || a->m > INT32_MAX / 2 ||
        lw_type_count(cuda_in(c, 0)) / lw_type_last(cuda_in(c, 0)) > INT32_MAX / 2)
        return;
    if (matrix && LW_MAX(a->m * a->ldx, (int64_t)a->n * a->k) <= INT32_MAX && a->k % 4 == 0 &&
        a->w_pitch == a->k && a->ldx % 4 == 0 && (all < 64 || a->m <= LW_CUDA_FEW_ROWS) &&
        LW_CEIL_DIV(a->n, LW_CUDA_FEW_COLUMNS) <= MOST_ACROSS) {
        s->tiled.kernel = LW_CUDA_matmul_few;
        s->tiled.blocks = LW_CEIL_DIV(a->m, LW_CUDA_FEW_ROWS);
        s->tiled.across = LW_CEIL_DIV(a->n, LW_CUDA_FEW_COLUMNS);
    } else if (!matrix && a->n <= LW_CUDA_FEW && a->c % 4 == 0 && a->ldx % 4 == 0 &&
               a->w_pitch % 4 == 0) {
        s->tiled.kernel = LW_CUDA_few_columns;
        s->tiled.blocks = LW_CEIL_DIV(a->m, 16);
        s->tiled.across = 1;
    } else if (!matrix && a->k <= LW_CUDA_SHORT && a->n % 4 == 0 && a->ldy % 4 == 0 &&
               a->ld_residual % 4 == 0) {
        s->tiled.kernel = LW_CUDA_short_depth;
        s->tiled.blocks = LW_CEIL_DIV(a->m, 32);
        s->tiled.across = LW_CEIL_DIV(a->n, 128);
    } else {
        return;
    }
    a->splits = a->own_splits = 1;
    a->split_blocks = 0;
    c->out->work_bytes = 0;
}

/* f32, or bf16 on tensor cores. pitch: from column to column of unpacked weights in f32; 0: their
 * elements of K do not lie side by side. */
static int choose_kernel(const cuda_lower *c, product_step *s, bool narrow, lw_cuda_kernel wide_one,
                         lw_cuda_kernel narrow_one, int32_t pitch)
{
    lw_cuda_product *a = &s->a;
    const lw_node *weights = lw_val_node(c->g, c->n->in[1]);
    bool packed = weights->op == LW_OP_PACK;
    a->image = packed && ((const lw_attr_pack *)weights->attr)->p[PACK_IMAGE];
    set_plain(s, narrow ? narrow_one : wide_one);
    a->w_narrow = cuda_in(c, 1).dtype == LW_BF16;
    a->fixed = cuda_fixed(c, 1);
    a->w_pitch = packed ? pitch_of(a->k) : narrow ? 0 : pitch;
    a->store = cuda_out(c, 0).dtype == LW_BF16;
    a->residual_narrow = cuda_has(c, s->residual) && cuda_in(c, s->residual).dtype == LW_BF16;
    a->chunks = narrow && !a->trans_x && a->c % 8 == 0 && a->ldx % 8 == 0;
    set_tiles(c, s, narrow);
    if (!narrow)
        set_other(c, s);
    /* also where tiles were chosen: the plain kernel replaces them where memory is not aligned */
    return s->plain.across <= MOST_ACROSS ? 0 : lw_cuda_lacks(c, " of so many columns");
}

/* After s->residual is known. */
static void set_pitches(const cuda_lower *c, product_step *s)
{
    s->a.ldx = cuda_in_pitch(c, 0);
    s->a.ldy = cuda_out_pitch(c);
    s->a.ld_residual = cuda_in_pitch(c, s->residual);
}

int lw_cuda_lower_matmul(cuda_lower *c)
{
    const lw_attr_matmul *at = c->n->attr;
    bool narrow;
    LW_TRY(check_types(c, 5, 3, &narrow));
    product_step *s = lw_cuda_arg(c, sizeof *s, product_task);
    if (!s)
        return LW_ENOMEM;
    s->bias = 2;
    s->residual = 3;
    lw_type x = cuda_in(c, 0);
    lw_cuda_product *a = &s->a;
    a->n = lw_type_last(cuda_out(c, 0));
    a->k = at->trans_a ? (int32_t)(lw_type_count(x) / lw_type_last(x)) : lw_type_last(x);
    a->m = lw_type_count(x) / a->k;
    a->trans_x = at->trans_a;
    a->trans_w = at->trans_b;
    set_pitches(c, s);
    a->act = at->act;
    a->c = a->k; /* each row is a picture of one pixel */
    a->h = a->width = a->oh = a->ow = a->kh = a->kw = a->stride = a->phases = 1;
    if (cuda_has(c, 5)) {
        a->drop_rows = (int32_t)(a->m / lw_type_count(cuda_in(c, 5)));
        a->drop_scale = 1.0f / (1.0f - at->drop);
        a->drop_limit = (uint32_t)ceil((double)at->drop * 0x1p24) << 8;
        a->drop_stream = at->drop_stream;
    }
    return choose_kernel(c, s, narrow, LW_CUDA_matmul, LW_CUDA_mma_matmul, a->trans_w ? a->k : 0);
}

/* bias, residual: inputs */
static product_step *conv_step(cuda_lower *c, int bias, int residual)
{
    const lw_attr_conv *at = c->n->attr;
    product_step *s = lw_cuda_arg(c, sizeof *s, product_task);
    if (!s)
        return NULL;
    lw_type x = cuda_in(c, 0), y = cuda_out(c, 0);
    s->a = (lw_cuda_product){.m = lw_type_count(y) / y.dim[3],
                             .n = y.dim[3],
                             .k = at->kh * at->kw * x.dim[3],
                             .act = at->act,
                             .h = x.dim[1],
                             .width = x.dim[2],
                             .c = x.dim[3],
                             .oh = y.dim[1],
                             .ow = y.dim[2],
                             .kh = at->kh,
                             .kw = at->kw,
                             .stride = at->stride,
                             .pad_t = at->pad_t,
                             .pad_l = at->pad_l,
                             .phases = 1};
    s->bias = bias;
    s->residual = residual;
    set_pitches(c, s);
    return s;
}

int lw_cuda_lower_conv2d(cuda_lower *c)
{
    bool narrow;
    LW_TRY(check_types(c, -1, 3, &narrow));
    product_step *s = conv_step(c, 2, 3);
    if (!s)
        return LW_ENOMEM;
    s->image_bias = 5;
    if (cuda_has(c, LW_CONV_PROJECT_X)) {
        s->a.project_c = lw_type_last(cuda_in(c, LW_CONV_PROJECT_X));
        s->a.ld_project = cuda_in_pitch(c, LW_CONV_PROJECT_X);
    }
    LW_TRY(choose_kernel(c, s, narrow, LW_CUDA_conv2d, LW_CUDA_mma_conv2d, s->a.k));
    return s->a.project_c && !s->tiled.blocks ? lw_cuda_lacks(c, " of so many pixels") : 0;
}

/* Halo tiles have room in shared memory for a few chunks of one tap. More would take longer than a
 * product of its own, whose K is split. */
bool lw_cuda_projects(void *self, const lw_graph *g, const lw_node *n, const lw_node *shortcut)
{
    const lw_attr_conv *a = n->attr, *p = shortcut->attr;
    return has_halo(self, a) && p->c % 64 == 0 && p->c <= 64 * LW_CUDA_PROJECT_ALL &&
           lw_val_type(g, n->in[0]).dtype == LW_BF16 &&
           lw_val_type(g, shortcut->in[0]).dtype == LW_BF16;
}

int lw_cuda_lower_depthwise(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, -1));
    product_step *s = conv_step(c, 2, 3);
    if (!s)
        return LW_ENOMEM;
    s->plain.kernel = LW_CUDA_depthwise;
    s->plain.blocks = lw_cuda_blocks(LW_CUDA_depthwise, s->a.m * s->a.n);
    s->plain.across = 1;
    return 0;
}

int lw_cuda_lower_conv2d_dx(cuda_lower *c)
{
    bool narrow;
    LW_TRY(check_types(c, -1, 2, &narrow));
    product_step *s = conv_step(c, 3, 2);
    if (!s)
        return LW_ENOMEM;
    s->a.backward = 1;
    s->a.phases = s->a.stride;
    return choose_kernel(c, s, narrow, LW_CUDA_conv2d_dx, LW_CUDA_mma_conv2d_dx, 0);
}

/* ---- weights, packed once for all runs -------------------------------------------------------- */

/* Those of products of bf16, and of f32 where elements of K do not lie side by side. */
bool lw_cuda_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                        void *attr)
{
    const bool projects = i == LW_CONV_PROJECT_W && n->op == LW_OP_CONV2D;
    if ((i != 1 && !projects) || lw_val_type(g, n->in[i]).dtype != LW_F32)
        return false;
    bool narrow = lw_val_type(g, n->in[0]).dtype == LW_BF16;
    lw_attr_pack p = {0};
    if (n->op == LW_OP_MATMUL && narrow) {
        lw_attr_matmul *at = attr;
        lw_type w = lw_val_type(g, n->in[1]);
        int32_t columns = lw_type_last(w), rows = (int32_t)(lw_type_count(w) / columns);
        if (at->trans_a)
            return false;
        at->packed_n = at->trans_b ? rows : columns;
        at->packed_k = at->trans_b ? columns : rows;
        p = (lw_attr_pack){PACK_MATMUL, {at->packed_n, at->packed_k, at->trans_b}, 0};
    } else if (n->op == LW_OP_CONV2D && narrow) {
        const lw_attr_conv *at = attr;
        const int32_t taps = projects ? 1 : at->kh * at->kw;
        const int32_t channels = projects ? lw_type_last(lw_val_type(g, n->in[LW_CONV_PROJECT_X]))
                                          : at->c;
        p = (lw_attr_pack){PACK_CONV, {at->o, taps * channels}, 0};
        p.p[PACK_COLUMNS] = at->o;
        if (has_halo(self, at)) {
            p.p[PACK_IMAGE] = 1;
            p.p[PACK_N] = LW_ROUND_UP(at->o, 64);
            p.p[PACK_O] = channels;
            p.p[PACK_TAPS] = taps;
        }
    } else if (n->op == LW_OP_CONV2D_DX && (narrow || lw_val_type(g, n->in[0]).dtype == LW_F32)) {
        const lw_attr_conv *at = attr;
        int32_t taps = at->kh * at->kw;
        p = (lw_attr_pack){PACK_CONV_DX, {at->c, taps * at->o, 0, at->o, taps}, 0};
    } else {
        return false;
    }
    p.p[PACK_NARROW] = narrow;
    p.floats = (int64_t)p.p[PACK_N] * pitch_of(p.p[PACK_K]) / (narrow ? 2 : 1);
    *pack = p;
    return true;
}

typedef struct pack_step {
    cuda_step step;
    lw_cuda_product a;
} pack_step;

static void pack_task(const lw_task *t)
{
    const pack_step *s = t->arg;
    lw_cuda_product a = s->a;
    a.y = t->out[0];
    a.w = t->in[0];
    lw_cuda_launch(s->step.d, LW_CUDA_mma_pack,
                   lw_cuda_blocks(LW_CUDA_mma_pack, (int64_t)a.n * a.w_pitch), 1, &a);
}

int lw_cuda_lower_pack(cuda_lower *c)
{
    const lw_attr_pack *at = c->n->attr;
    pack_step *s = lw_cuda_arg(c, sizeof *s, pack_task);
    if (!s)
        return LW_ENOMEM;
    s->a = (lw_cuda_product){.n = at->p[PACK_N],
                             .columns = at->p[PACK_COLUMNS] ? at->p[PACK_COLUMNS] : at->p[PACK_N],
                             .image = at->p[PACK_IMAGE],
                             .k = at->p[PACK_K],
                             .w_pitch = pitch_of(at->p[PACK_K]),
                             .kind = at->kind,
                             .store = at->p[PACK_NARROW],
                             .trans_w = at->p[PACK_TRANS],
                             .c = LW_MAX(at->p[PACK_O], 1),
                             .kh = at->p[PACK_TAPS],
                             .kw = 1};
    return 0;
}

typedef struct upconv_step {
    cuda_step step;
    lw_cuda_upconv a;
} upconv_step;

static void upconv_task(const lw_task *t)
{
    const upconv_step *s = t->arg;
    lw_cuda_upconv a = s->a;
    a.y = t->out[0];
    a.w = t->in[0];
    lw_cuda_launch(s->step.d, LW_CUDA_upconv_weight,
                   lw_cuda_blocks(LW_CUDA_upconv_weight, 16 * a.o * a.c), 1, &a);
}

int lw_cuda_lower_upconv_weight(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, -1));
    upconv_step *s = lw_cuda_arg(c, sizeof *s, upconv_task);
    if (!s)
        return LW_ENOMEM;
    s->a.o = cuda_in(c, 0).dim[0];
    s->a.c = cuda_in(c, 0).dim[3];
    return 0;
}
