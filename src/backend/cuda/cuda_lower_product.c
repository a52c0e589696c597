/* SPDX-License-Identifier: Apache-2.0 */
/* Products on GPUs: matmul, conv2d, conv2d_dx, and the weights of a convolution behind upsampling. */
#include "backend/cuda/cuda_private.h"

#include <math.h>

typedef struct product_step {
    cuda_step step;
    lw_cuda_product a;
    struct {
        lw_cuda_kernel kernel;
        int64_t blocks, across;
    } plain, tiled; /* tiled has no blocks: plain it is */
    int residual, bias, image_bias; /* inputs */
} product_step;

/* Do all operands begin at pieces of 16 bytes? Parts of others may not. */
static bool in_pieces(const lw_cuda_product *a)
{
    return ((uintptr_t)a->x | (uintptr_t)a->w | (uintptr_t)a->bias | (uintptr_t)a->image_bias |
            (uintptr_t)a->residual | (uintptr_t)a->y) %
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
    a.chunks &= (uintptr_t)a.x % 16 == 0;
    if (a.splits > 1) {
        a.part = t->work;
        a.arrived = lw_cuda_arrived(s->step.d);
    }
    if (s->tiled.blocks && in_pieces(&a))
        lw_cuda_launch(s->step.d, s->tiled.kernel, s->tiled.blocks, s->tiled.across, &a);
    else
        lw_cuda_launch(s->step.d, s->plain.kernel, s->plain.blocks, s->plain.across, &a);
}

static void set_plain(product_step *s, lw_cuda_kernel kernel)
{
    s->plain.kernel = kernel;
    s->plain.blocks = LW_CEIL_DIV(s->a.m, LW_CUDA_TILE);
    s->plain.across = LW_CEIL_DIV(s->a.n, LW_CUDA_TILE);
}

/* f32 throughout, but for input `ids`; or x in bf16, weights of either, and the result of either. Everything else is f32. */
static int check_types(const cuda_lower *c, int ids, bool *narrow)
{
    *narrow = cuda_in(c, 0).dtype == LW_BF16;
    if (!*narrow)
        return lw_cuda_f32(c, ids);
    for (int i = 1; i < c->n->n_in; i++)
        if (i != ids && cuda_has(c, i) && cuda_in(c, i).dtype != LW_F32 &&
            (i != 1 || cuda_in(c, i).dtype != LW_BF16))
            return lw_cuda_lacks(c, " of bf16 and other numbers than f32");
    for (int i = 0; i < c->n->n_out; i++)
        if (cuda_out(c, i).dtype != LW_F32 && cuda_out(c, i).dtype != LW_BF16)
            return lw_cuda_lacks(c, " of bf16 to other numbers than f32 and bf16");
    return 0;
}

/* Numbers of a packed column, which are copied eight or four at a time. */
static int32_t pitch_of(int32_t k)
{
    return LW_ROUND_UP(k, 8);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Kernels of cuda_tiles.h: how many blocks a multiprocessor has at once, and its clocks for a step of a tile. */
typedef struct tile {
    lw_cuda_kernel kernel;
    int32_t narrow, rows, columns, sharing;
    double step;
} tile;
static const tile tiles[] = {
    {LW_CUDA_wgmma_256x128, 1, 256, 128, 1, 1700.0},
    {LW_CUDA_wgmma_128x128, 1, 128, 128, 2, 1200.0},
    {LW_CUDA_wgmma_128x128_deep, 1, 128, 128, 1, 1000.0},
    {LW_CUDA_wgmma_64x64, 1, 64, 64, 2, 600.0},
    {LW_CUDA_ffma_128x128, 0, 128, 128, 1, 7000.0},
    {LW_CUDA_ffma_64x64, 0, 64, 64, 3, 1800.0},
};
enum { MULTIPROCESSORS = 132, MOST_SPLITS = 16, BLOCK_CLOCKS = 2500 };

static int64_t tiles_of(const lw_cuda_product *a, const tile *t)
{
    return (int64_t)a->phases * a->phases * LW_CEIL_DIV(a->phase_rows, t->rows) *
           LW_CEIL_DIV(a->n, t->columns);
}

/* Clocks that a product takes, about: waves of blocks, each with its part of the depth; and the last block of a tile reads
 * the sums of all. A pure function of shapes: GPUs of a kind have the same bits. */
static double clocks_of(const lw_cuda_product *a, const tile *t, int32_t splits)
{
    int64_t depth = (int64_t)(a->kh / a->phases) * (a->kw / a->phases) * a->c;
    int64_t steps = LW_CEIL_DIV(depth, t->narrow ? 64 : 32);
    int64_t each = LW_CEIL_DIV(tiles_of(a, t) * splits, MULTIPROCESSORS);
    double block = BLOCK_CLOCKS + t->rows * t->columns / 5.0; /* to begin, and to write */
    double clocks = (double)LW_CEIL_DIV(each, t->sharing) * block +
                    (double)each * (double)LW_CEIL_DIV(steps, splits) * t->step;
    if (splits > 1)
        clocks += 1500.0 + splits * t->rows * t->columns / 10.0;
    return clocks;
}

/* Are rows of whole pieces of 16 bytes, and not too many? x: the picture that is read. */
static bool fits_tiles(const lw_cuda_product *a, lw_type x, int32_t piece)
{
    return a->w_pitch && a->w_pitch % piece == 0 && !a->trans_x && a->c % piece == 0 &&
           a->ldx % piece == 0 && a->n % 4 == 0 && a->ldy % 4 == 0 && a->h < 0x2000 &&
           a->width < 0x2000 && a->kh % a->phases == 0 && a->kw % a->phases == 0 &&
           a->oh % a->phases == 0 && a->ow % a->phases == 0 && a->m < INT32_MAX / 2 &&
           lw_type_count(x) / piece < INT32_MAX / 2;
}

/* The tiles that take the fewest clocks, if any do. */
static void set_tiles(const cuda_lower *c, product_step *s, bool narrow)
{
    lw_cuda_product *a = &s->a;
    double best = INFINITY;
    if (!fits_tiles(a, cuda_in(c, 0), narrow ? 8 : 4) || (narrow && !c->d->hopper))
        return;
    a->phase_rows = (int32_t)(a->m / ((int64_t)a->phases * a->phases));
    for (size_t i = 0; i < LW_COUNT(tiles); i++)
        for (int32_t splits = 1; splits <= MOST_SPLITS; splits++) {
            const tile *t = &tiles[i];
            int64_t all = tiles_of(a, t), blocks = all * splits;
            double clocks = clocks_of(a, t, splits);
            if (t->narrow != (int32_t)narrow || clocks >= best || blocks > INT32_MAX ||
                (splits > 1 && all > LW_CUDA_TILES))
                continue;
            best = clocks;
            a->splits = splits;
            s->tiled.kernel = t->kernel;
            s->tiled.blocks = blocks;
            s->tiled.across = 1;
            c->out->work_bytes =
                splits > 1 ? (size_t)(blocks * t->rows * t->columns) * sizeof(float) : 0;
        }
}

/* So few tiles of rows in f32 that a GPU is not busy with them: smaller ones, or a warp for a dot product. */
static void set_few(const cuda_lower *c, product_step *s)
{
    const lw_cuda_product *a = &s->a;
    const int64_t all = LW_CEIL_DIV(a->m, LW_CUDA_TILE) * LW_CEIL_DIV(a->n, LW_CUDA_TILE);
    if (!a->trans_w || a->trans_x || a->k % 4 ||
        (a->m > 8 && (all >= 64 || LW_MAX(a->m, (int64_t)a->n) * a->k > INT32_MAX)))
        return;
    s->tiled.kernel = a->m > 8 ? LW_CUDA_matmul_few : LW_CUDA_matmul_dot;
    s->tiled.blocks = a->m > 8 ? LW_CEIL_DIV(a->m, LW_CUDA_FEW_ROWS)
                               : LW_CEIL_DIV(a->n, LW_CUDA_DOT_COLUMNS);
    s->tiled.across = a->m > 8 ? LW_CEIL_DIV(a->n, LW_CUDA_FEW_COLUMNS)
                               : LW_CEIL_DIV(a->m, LW_CUDA_DOT_ROWS);
    s->a.splits = 1;
    c->out->work_bytes = 0;
}

/* Few columns, or a short depth, which tiles would be mostly empty of. */
static void set_narrow_shapes(const cuda_lower *c, product_step *s)
{
    const lw_cuda_product *a = &s->a;
    if (!a->w_pitch || a->trans_x || a->backward || a->m > INT32_MAX / 2 ||
        lw_type_count(cuda_in(c, 0)) > INT32_MAX / 2)
        return;
    if (a->n <= LW_CUDA_FEW && a->m >= 64 && a->c % 4 == 0 && a->ldx % 4 == 0 && a->w_pitch % 4 == 0) {
        s->tiled.kernel = LW_CUDA_few_columns;
        s->tiled.blocks = LW_CEIL_DIV(a->m, 16);
        s->tiled.across = 1;
    } else if (a->k <= LW_CUDA_SHORT && a->m >= 64 && a->n % 4 == 0 && a->ldy % 4 == 0) {
        s->tiled.kernel = LW_CUDA_short_depth;
        s->tiled.blocks = LW_CEIL_DIV(a->m, 32);
        s->tiled.across = LW_CEIL_DIV(a->n, 128);
    } else {
        return;
    }
    s->a.splits = 1;
    c->out->work_bytes = 0;
}

/* f32, or bf16 on tensor cores; pitch: of weights in f32 as they are, 0: their depth does not lie side by side. */
static void choose_kernel(const cuda_lower *c, product_step *s, bool narrow, lw_cuda_kernel wide_one,
                          lw_cuda_kernel narrow_one, int32_t pitch)
{
    lw_cuda_product *a = &s->a;
    bool packed = lw_val_node(c->g, c->n->in[1])->op == LW_OP_PACK;
    set_plain(s, narrow ? narrow_one : wide_one);
    a->w_narrow = cuda_in(c, 1).dtype == LW_BF16;
    a->w_pitch = packed ? pitch_of(a->k) : narrow ? 0 : pitch;
    a->store = cuda_out(c, 0).dtype == LW_BF16;
    a->chunks = narrow && !a->trans_x && a->c % 8 == 0 && a->ldx % 8 == 0;
    set_tiles(c, s, narrow);
    if (!narrow)
        set_narrow_shapes(c, s);
}

int lw_cuda_lower_matmul(cuda_lower *c)
{
    const lw_attr_matmul *at = c->n->attr;
    bool narrow;
    LW_TRY(check_types(c, 5, &narrow));
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
    a->ldx = a->k;
    a->ldy = a->ld_residual = a->n;
    a->act = at->act;
    a->c = a->k; /* a picture of a pixel each row */
    a->h = a->width = a->oh = a->ow = a->kh = a->kw = a->stride = a->phases = 1;
    if (cuda_has(c, 5)) {
        a->drop_rows = (int32_t)(a->m / lw_type_count(cuda_in(c, 5)));
        a->drop_scale = 1.0f / (1.0f - at->drop);
        a->drop_limit = (uint32_t)ceil((double)at->drop * 0x1p24) << 8;
        a->drop_stream = at->drop_stream;
    }
    choose_kernel(c, s, narrow, LW_CUDA_matmul, LW_CUDA_mma_matmul, a->trans_w ? a->k : 0);
    if (!narrow)
        set_few(c, s);
    return 0;
}

static product_step *conv_step(cuda_lower *c)
{
    const lw_attr_conv *at = c->n->attr;
    product_step *s = lw_cuda_arg(c, sizeof *s, product_task);
    if (!s)
        return NULL;
    lw_type x = cuda_in(c, 0), y = cuda_out(c, 0);
    s->a = (lw_cuda_product){.m = lw_type_count(y) / y.dim[3],
                             .n = y.dim[3],
                             .k = at->kh * at->kw * x.dim[3],
                             .ldx = x.dim[3],
                             .ldy = y.dim[3],
                             .ld_residual = y.dim[3],
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
    return s;
}

int lw_cuda_lower_conv2d(cuda_lower *c)
{
    bool narrow;
    LW_TRY(check_types(c, -1, &narrow));
    product_step *s = conv_step(c);
    if (!s)
        return LW_ENOMEM;
    s->bias = 2;
    s->residual = 3;
    s->image_bias = 5;
    choose_kernel(c, s, narrow, LW_CUDA_conv2d, LW_CUDA_mma_conv2d, s->a.k);
    return 0;
}

int lw_cuda_lower_depthwise(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, -1));
    product_step *s = conv_step(c);
    if (!s)
        return LW_ENOMEM;
    s->plain.kernel = LW_CUDA_depthwise;
    s->plain.blocks = lw_cuda_blocks(LW_CUDA_depthwise, s->a.m * s->a.n);
    s->plain.across = 1;
    s->bias = 2;
    s->residual = 3;
    return 0;
}

int lw_cuda_lower_conv2d_dx(cuda_lower *c)
{
    bool narrow;
    LW_TRY(check_types(c, -1, &narrow));
    product_step *s = conv_step(c);
    if (!s)
        return LW_ENOMEM;
    s->bias = 3;
    s->residual = 2;
    s->a.backward = 1;
    s->a.phases = s->a.stride;
    choose_kernel(c, s, narrow, LW_CUDA_conv2d_dx, LW_CUDA_mma_conv2d_dx, 0);
    return 0;
}

/* ---- weights, packed once for all runs -------------------------------------------------------- */

/* What a pack node's numbers mean; kinds are product_kind's, p the fields of the product. */
enum { PACK_MATMUL, PACK_CONV, PACK_CONV_DX };
enum { PACK_N, PACK_K, PACK_TRANS, PACK_O, PACK_TAPS, PACK_NARROW };

/* Those of products of bf16, and of f32 where their depth does not lie side by side. */
bool lw_cuda_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                        void *attr)
{
    (void)self;
    if (i != 1 || lw_val_type(g, n->in[1]).dtype != LW_F32)
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
        p = (lw_attr_pack){PACK_CONV, {at->o, at->kh * at->kw * at->c}, 0};
    } else if (n->op == LW_OP_CONV2D_DX &&
               (narrow || lw_val_type(g, n->in[0]).dtype == LW_F32)) {
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
