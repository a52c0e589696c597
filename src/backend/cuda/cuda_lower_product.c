/* SPDX-License-Identifier: Apache-2.0 */
/* Products on GPUs: matmul, conv2d, conv2d_dx, and the weights of a convolution behind upsampling. */
#include "backend/cuda/cuda_private.h"

#include <math.h>

typedef struct product_step {
    cuda_step step;
    lw_cuda_product a;
    lw_cuda_kernel kernel;
    int residual, bias, image_bias; /* inputs */
} product_step;

/* What does a product in f32: tiles of 64 x 64, or where they are too few to keep a GPU busy, smaller ones, with the same
 * bits. */
static lw_cuda_kernel few_of(const lw_cuda_product *a)
{
    const int64_t tiles = LW_CEIL_DIV(a->m, LW_CUDA_TILE) * LW_CEIL_DIV(a->n, LW_CUDA_TILE);
    return a->trans_w && !a->trans_x && a->k % 4 == 0 && tiles < 64 &&
                   LW_MAX(a->m, (int64_t)a->n) * a->k <= INT32_MAX
               ? LW_CUDA_matmul_few
               : LW_CUDA_matmul;
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
    const bool few = s->kernel == LW_CUDA_matmul_few;
    if (few && ((uintptr_t)a.x | (uintptr_t)a.w) % 16 == 0)
        lw_cuda_launch(s->step.d, s->kernel, LW_CEIL_DIV(a.m, LW_CUDA_FEW_ROWS),
                       LW_CEIL_DIV(a.n, LW_CUDA_FEW_COLUMNS), &a);
    else if (s->kernel == LW_CUDA_depthwise)
        lw_cuda_launch(s->step.d, s->kernel, lw_cuda_blocks(s->kernel, a.m * a.n), 1, &a);
    else
        lw_cuda_launch(s->step.d, few ? LW_CUDA_matmul : s->kernel, LW_CEIL_DIV(a.m, LW_CUDA_TILE),
                       LW_CEIL_DIV(a.n, LW_CUDA_TILE), &a);
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

/* Halves of a packed column, which are copied eight at a time. */
static int32_t pitch_of(int32_t k)
{
    return LW_ROUND_UP(k, 8);
}

/* Tensor cores: row: the neighbours in x that k runs through. */
static void make_narrow(const cuda_lower *c, product_step *s, lw_cuda_kernel kernel, int32_t row)
{
    s->kernel = kernel;
    s->a.w_narrow = cuda_in(c, 1).dtype == LW_BF16;
    if (lw_val_node(c->g, c->n->in[1])->op == LW_OP_PACK)
        s->a.w_pitch = pitch_of(s->a.k);
    s->a.store = cuda_out(c, 0).dtype == LW_BF16;
    s->a.chunks = !s->a.trans_x && row % 8 == 0 && s->a.ldx % 8 == 0;
}

int lw_cuda_lower_matmul(cuda_lower *c)
{
    const lw_attr_matmul *at = c->n->attr;
    bool narrow;
    LW_TRY(check_types(c, 5, &narrow));
    product_step *s = lw_cuda_arg(c, sizeof *s, product_task);
    if (!s)
        return LW_ENOMEM;
    s->kernel = LW_CUDA_matmul;
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
    if (cuda_has(c, 5)) {
        a->drop_rows = (int32_t)(a->m / lw_type_count(cuda_in(c, 5)));
        a->drop_scale = 1.0f / (1.0f - at->drop);
        a->drop_limit = (uint32_t)ceil((double)at->drop * 0x1p24) << 8;
        a->drop_stream = at->drop_stream;
    }
    if (narrow)
        make_narrow(c, s, LW_CUDA_mma_matmul, a->k);
    else
        s->kernel = few_of(a);
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
                             .pad_l = at->pad_l};
    return s;
}

int lw_cuda_lower_conv2d(cuda_lower *c)
{
    bool narrow;
    LW_TRY(check_types(c, -1, &narrow));
    product_step *s = conv_step(c);
    if (!s)
        return LW_ENOMEM;
    s->kernel = LW_CUDA_conv2d;
    s->bias = 2;
    s->residual = 3;
    s->image_bias = 5;
    if (narrow)
        make_narrow(c, s, LW_CUDA_mma_conv2d, s->a.c);
    return 0;
}

int lw_cuda_lower_depthwise(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, -1));
    product_step *s = conv_step(c);
    if (!s)
        return LW_ENOMEM;
    s->kernel = LW_CUDA_depthwise;
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
    s->kernel = LW_CUDA_conv2d_dx;
    s->bias = 3;
    s->residual = 2;
    if (narrow)
        make_narrow(c, s, LW_CUDA_mma_conv2d_dx, s->a.c);
    return 0;
}

/* ---- weights of products of bf16, packed once for all runs ----------------------------------- */

/* What a pack node's numbers mean; kinds are product_kind's, p the fields of the product. */
enum { PACK_MATMUL, PACK_CONV, PACK_CONV_DX };
enum { PACK_N, PACK_K, PACK_TRANS, PACK_O, PACK_TAPS };

bool lw_cuda_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                        void *attr)
{
    (void)self;
    if (i != 1 || lw_val_type(g, n->in[0]).dtype != LW_BF16 ||
        lw_val_type(g, n->in[1]).dtype != LW_F32)
        return false;
    lw_attr_pack p = {0};
    if (n->op == LW_OP_MATMUL) {
        lw_attr_matmul *at = attr;
        lw_type w = lw_val_type(g, n->in[1]);
        int32_t columns = lw_type_last(w), rows = (int32_t)(lw_type_count(w) / columns);
        if (at->trans_a)
            return false;
        at->packed_n = at->trans_b ? rows : columns;
        at->packed_k = at->trans_b ? columns : rows;
        p = (lw_attr_pack){PACK_MATMUL, {at->packed_n, at->packed_k, at->trans_b}, 0};
    } else if (n->op == LW_OP_CONV2D) {
        const lw_attr_conv *at = attr;
        p = (lw_attr_pack){PACK_CONV, {at->o, at->kh * at->kw * at->c}, 0};
    } else if (n->op == LW_OP_CONV2D_DX) {
        const lw_attr_conv *at = attr;
        int32_t taps = at->kh * at->kw;
        p = (lw_attr_pack){PACK_CONV_DX, {at->c, taps * at->o, 0, at->o, taps}, 0};
    } else {
        return false;
    }
    p.floats = (int64_t)p.p[PACK_N] * pitch_of(p.p[PACK_K]) / 2;
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
