/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of weights: in the prepare segment (op pack), or in the step that reads them. */
#include "backend/cpu/cpu_pack.h"

#include <math.h>

lw_num lw_cpu_num(lw_dtype t)
{
    return t == LW_BF16 ? LW_NUM_BF16 : t == LW_U8 ? LW_NUM_S8 : LW_NUM_F32;
}

lw_num lw_cpu_product_num(const lw_kernels *k, lw_type x, ptrdiff_t N)
{
    const ptrdiff_t K = lw_type_last(x),
                    rows = x.rank > 2 ? lw_type_count(x) / (LW_MAX(x.dim[0], 1) * K) : 1;
    const lw_num num = lw_cpu_num(x.dtype);
    return num == LW_NUM_F32 && lw_bf16x3_pays(k->isa, K, N, rows) ? LW_NUM_BF16X3 : num;
}

lw_conv_shape lw_cpu_node_conv_shape(const lw_graph *g, const lw_node *n, int32_t batch)
{
    lw_conv_shape s = lw_cpu_conv_shape(n->attr, batch);
    const lw_node *w = lw_val_node(g, n->in[1]);
    w = w->op == LW_OP_PACK ? lw_val_node(g, w->in[0]) : w;
    s.upsampling = n->op == LW_OP_CONV2D_DX && w->op == LW_OP_UPCONV_WEIGHT;
    return s;
}

cpu_way lw_cpu_conv_way(const lw_device *d, lw_dtype t, const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_num num = lw_cpu_num(t);
    const lw_isa isa = d->kernels->isa;
    if (num == LW_NUM_F32 && lw_cpu_rescales(d, s, pass))
        return (cpu_way){num, CPU_RESCALE};
    const int tile = lw_winograd_layout(num, s, pass, isa, lw_cpu_conv_tile(d, num, s, pass));
    const bool split = num == LW_NUM_F32 && !tile && lw_conv_bf16x3_pays(isa, s, pass);
    return (cpu_way){split ? LW_NUM_BF16X3 : num, tile};
}

cpu_pack lw_cpu_pack_product(const lw_kernels *k, lw_num num, ptrdiff_t N, ptrdiff_t K,
                             bool rows_are_n)
{
    cpu_pack p = {.k = k, .num = num, .N = N, .K = K};
    p.stride_n = rows_are_n ? K : 1;
    p.stride_k = rows_are_n ? 1 : N;
    p.scale_at = LW_ROUND_UP(lw_gemm_packed_bytes(num, N, K), 64);
    return p;
}

cpu_pack lw_cpu_pack_conv(const lw_kernels *k, lw_num num, const lw_conv_shape *s,
                          lw_conv_pass pass, int tile)
{
    cpu_pack p = {.k = k, .num = num, .conv = true, .shape = *s, .pass = pass, .tile = tile};
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW;
    bool fwd = pass == LW_CONV_FORWARD;
    p.N = fwd ? s->O : s->C;
    p.K = taps * (fwd ? s->C : s->O);
    p.stride_n = fwd ? p.K : 1;
    p.stride_k = fwd ? 1 : s->C;
    size_t bytes = tile == CPU_RESCALE ? sizeof(float) * (size_t)lw_rescale_packed_floats(s, pass)
                   : tile ? sizeof(float) * (size_t)lw_winograd_packed_words(num, s, pass, tile)
                          : lw_conv_packed_bytes(num, s, pass);
    p.scale_at = LW_ROUND_UP(bytes, 64);
    return p;
}

size_t lw_cpu_pack_bytes(const cpu_pack *p)
{
    return p->scale_at + (p->num == LW_NUM_S8 ? sizeof(float) * (size_t)p->N : 0);
}

/* ---- what tasks do --------------------------------------------------------------------------- */

enum { SCALE_ROWS = 16 }; /* outputs whose scales one task finds */

/* Symmetric, per output channel: 127 stands for the largest weight. */
static void find_scales(const cpu_pack *p, void *dst, const float *w, int64_t task)
{
    float *scale = (float *)((char *)dst + p->scale_at);
    ptrdiff_t end = LW_MIN((task + 1) * SCALE_ROWS, p->N);
    for (ptrdiff_t n = task * SCALE_ROWS; n < end; n++) {
        float most = 0.0f;
        for (ptrdiff_t k = 0; k < p->K; k++)
            most = fmaxf(most, fabsf(w[n * p->stride_n + k * p->stride_k]));
        scale[n] = most / 127.0f;
    }
}

static void pack_conv(const cpu_pack *p, void *dst, const float *w, int64_t task)
{
    const struct lw_conv_kernels *k = &p->k->conv;
    const struct lw_winograd_kernels *tiles = &p->k->winograd;
    lw_winograd_pack_fn *const tile[CPU_NUMS] = {tiles->pack, tiles->pack_bf16, tiles->pack_u8};
    const float *scale = (const float *)((const char *)dst + p->scale_at);
    const lw_quant q = {.b_scale = scale};
    if (p->tile == CPU_RESCALE)
        p->k->rescale.pack(dst, w, &p->shape, p->pass, task);
    else if (p->tile)
        tile[p->num](dst, w, &p->shape, p->pass, p->tile, &q, task);
    else if (p->num == LW_NUM_S8)
        k->pack_s8(dst, w, &p->shape, p->pass, scale, task);
    else if (p->num == LW_NUM_BF16)
        k->pack_bf16(dst, w, &p->shape, p->pass, task);
    else if (p->num == LW_NUM_BF16X3)
        k->pack_bf16x3(dst, w, &p->shape, p->pass, task);
    else
        k->pack(dst, w, &p->shape, p->pass, task);
}

static void pack_product(const cpu_pack *p, void *dst, const float *w, int64_t task)
{
    const struct lw_gemm_kernels *k = &p->k->gemm;
    if (p->num == LW_NUM_S8)
        k->pack_s8(dst, w, p->N, p->K, p->stride_n, p->stride_k,
                   (const float *)((const char *)dst + p->scale_at), task);
    else if (p->num == LW_NUM_BF16)
        k->pack_bf16(dst, w, p->N, p->K, p->stride_n, p->stride_k, task);
    else if (p->num == LW_NUM_BF16X3)
        k->pack_bf16x3(dst, w, p->N, p->K, p->stride_n, p->stride_k, task);
    else
        k->pack(dst, w, p->N, p->K, p->stride_n, p->stride_k, task);
}

static void pack(const cpu_pack *p, void *dst, const float *w, int64_t task)
{
    (p->conv ? pack_conv : pack_product)(p, dst, w, task);
}

static void scales_to_work(const lw_task *t)
{
    find_scales(t->arg, t->work, t->in[1], t->index);
}
static void pack_to_work(const lw_task *t)
{
    pack(t->arg, t->work, t->in[1], t->index);
}
static void scales_to_out(const lw_task *t)
{
    find_scales(t->arg, t->out[0], t->in[0], t->index);
}
static void pack_to_out(const lw_task *t)
{
    pack(t->arg, t->out[0], t->in[0], t->index);
}

static int64_t fill_tasks(const cpu_pack *p)
{
    if (!p->conv)
        return lw_gemm_pack_tasks(p->N, p->K);
    if (p->tile == CPU_RESCALE)
        return lw_rescale_pack_tasks(&p->shape, p->pass);
    return p->tile ? lw_winograd_pack_tasks(p->num, &p->shape, p->pass, p->tile)
                   : lw_conv_pack_tasks(&p->shape, p->pass);
}

static void add_phases(cpu_lower *c, const cpu_pack *p, lw_task_fn *scales, lw_task_fn *fill)
{
    if (p->num == LW_NUM_S8)
        lw_cpu_phase(c, scales, LW_CEIL_DIV(p->N, SCALE_ROWS));
    lw_cpu_phase(c, fill, fill_tasks(p));
}

void lw_cpu_pack_in_step(cpu_lower *c, const cpu_pack *p)
{
    c->out->work_bytes = lw_cpu_pack_bytes(p);
    add_phases(c, p, scales_to_work, pack_to_work);
}

/* ---- the op ---------------------------------------------------------------------------------- */

/* lw_attr_pack.p of a product: N, K, rows are N; of a convolution: o, kh, kw, c, stride, h, w (no
 * layout depends on the pads); the last is always the lw_num, for a convolution plus PACK_TILE times
 * the tile of cpu_pack. */
enum { PACK_NUM = 8, PACK_TILE = 8 };

static cpu_pack pack_of_attr(const lw_kernels *k, const lw_attr_pack *a)
{
    const int32_t *p = a->p;
    lw_num num = (lw_num)(p[PACK_NUM] % PACK_TILE);
    if (a->kind == CPU_PACK_MATMUL)
        return lw_cpu_pack_product(k, num, p[0], p[1], p[2]);
    const lw_attr_conv at = {.o = p[0],
                             .kh = p[1],
                             .kw = p[2],
                             .c = p[3],
                             .stride = p[4],
                             .h = p[5],
                             .w = p[6],
                             .pad_b = p[1],
                             .pad_r = p[2]};
    lw_conv_shape s = lw_cpu_conv_shape(&at, 1);
    return lw_cpu_pack_conv(k, num, &s,
                            a->kind == CPU_PACK_CONV ? LW_CONV_FORWARD : LW_CONV_DATA_GRAD,
                            p[PACK_NUM] / PACK_TILE);
}

static bool want_product(const lw_graph *g, const lw_node *n, lw_attr_pack *pack,
                         lw_attr_matmul *at)
{
    lw_type b = lw_val_type(g, n->in[1]);
    int32_t cols = lw_type_last(b), rows = (int32_t)(lw_type_count(b) / cols);
    if (at->trans_a)
        return false;
    at->packed_n = at->trans_b ? rows : cols;
    at->packed_k = at->trans_b ? cols : rows;
    *pack = (lw_attr_pack){CPU_PACK_MATMUL, {at->packed_n, at->packed_k, at->trans_b}, 0};
    return true;
}

bool lw_cpu_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                       void *attr)
{
    const lw_device *d = self; /* self begins with the lw_device */
    if (i != 1)
        return false;
    if (n->op == LW_OP_DEPTHWISE || n->op == LW_OP_DEPTHWISE_DX)
        return lw_cpu_wants_pack_depthwise(n->attr, pack);
    const lw_type x = lw_val_type(g, n->in[0]);
    cpu_way way = {0};
    if (n->op == LW_OP_MATMUL) {
        if (!want_product(g, n, pack, attr))
            return false;
        way.num = lw_cpu_product_num(d->kernels, x, pack->p[0]);
    } else if (n->op == LW_OP_CONV2D || n->op == LW_OP_CONV2D_DX) {
        const lw_attr_conv *at = n->attr;
        *pack = (lw_attr_pack){n->op == LW_OP_CONV2D ? CPU_PACK_CONV : CPU_PACK_CONV_DX,
                               {at->o, at->kh, at->kw, at->c, at->stride, at->h, at->w},
                               0};
        const lw_conv_pass pass = n->op == LW_OP_CONV2D ? LW_CONV_FORWARD : LW_CONV_DATA_GRAD;
        const lw_conv_shape s = lw_cpu_node_conv_shape(g, n, x.dim[0]);
        way = lw_cpu_conv_way(d, x.dtype, &s, pass);
    } else {
        return false;
    }
    pack->p[PACK_NUM] = (int32_t)way.num + PACK_TILE * way.tile;
    cpu_pack p = pack_of_attr(NULL, pack);
    pack->floats = (int64_t)LW_CEIL_DIV(lw_cpu_pack_bytes(&p), sizeof(float));
    return true;
}

cpu_way lw_cpu_packed_way(const lw_node *pack)
{
    const int32_t way = ((const lw_attr_pack *)pack->attr)->p[PACK_NUM];
    return (cpu_way){(lw_num)(way % PACK_TILE), way / PACK_TILE};
}

int lw_cpu_lower_pack(cpu_lower *c)
{
    if (((const lw_attr_pack *)c->n->attr)->kind == CPU_PACK_DEPTHWISE)
        return lw_cpu_lower_pack_depthwise(c);
    cpu_pack *p = lw_cpu_arg(c, sizeof *p);
    if (!p)
        return LW_ENOMEM;
    *p = pack_of_attr(c->k, c->n->attr);
    add_phases(c, p, scales_to_out, pack_to_out);
    return 0;
}
