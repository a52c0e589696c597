/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: packed forward kernel, or the weight-gradient kernel when A is transposed. */
#include "backend/cpu/cpu_private.h"

typedef struct matmul_arg {
    const lw_kernels *k;
    ptrdiff_t M, N, K
    , stride_n, stride_k;
    ptrdiff_t lda, ldc, ld_residual;
    lw_act act;
    bool packed;
} matmul_arg;

static void pack_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    a->k->gemm.pack(t->work, t->in[1], a->N, a->K, a->stride_n, a->stride_k, t->index);
}

static void forward_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    lw_epilogue e = {
        .bias = t->in[2], .residual = t->in[3], .ld_residual = a->ld_residual, .act = a->act};
    a->k->gemm.forward(t->out[0], a->ldc, t->in[0], a->lda, a->packed ? t->in[1] : t->work, a->M,
                       a->N, a->K, &e, t->index);
}

/* C[M][N] = A' B with A [K][M], B [K][N]: the kernel calls M "N", N "K", K "M". */
static void grad_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    a->k->gemm.weight_grad(t->out[0], NULL, t->in[0], a->M, t->in[1], a->N, a->K, a->M, a->N, 0,
                           t->work, t->index);
}

static void combine_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    a->k->gemm.weight_grad_combine(t->out[0], NULL, a->K, a->M, a->N, 0, t->work, t->index);
}

static int lower_transposed(cpu_lower *c, matmul_arg *a)
{
    a->M = lw_type_last(cpu_in(c, 0));
    a->K
    = lw_type_count(cpu_in(c, 0)) / a->M;
    if (cpu_has(c, 2) || cpu_has(c, 3))
        return lw_fail(LW_EUNSUPPORTED, "bias behind a transposed product");
    c->out->work_bytes = sizeof(float) *
                         (size_t)lw_gemm_weight_grad_partial_floats(a->K, a->M, a->N);
    lw_cpu_phase(c, grad_task, lw_gemm_weight_grad_tasks(a->K, a->M, a->N));
    if (lw_gemm_weight_grad_combine_tasks(a->K, a->M, a->N))
        lw_cpu_phase(c, combine_task, lw_gemm_weight_grad_combine_tasks(a->K, a->M, a->N));
    return 0;
}

int lw_cpu_lower_matmul(cpu_lower *c)
{
    const lw_attr_matmul *at = c->n->attr;
    matmul_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->act = (lw_act)at->act;
    a->packed = at->packed_n != 0;
    a->N = lw_type_last(cpu_out(c, 0));
    if (at->trans_a && at->trans_b)
        return lw_fail(LW_EUNSUPPORTED, "product of two transposed matrices");
    if (at->trans_a)
        return lower_transposed(c, a);
    a->K
    = lw_type_last(cpu_in(c, 0));
    a->M = lw_type_count(cpu_in(c, 0)) / a->K;
    a->lda = cpu_in_pitch(c, 0);
    a->ldc = cpu_out_pitch(c);
    /* A residual of another shape with the same elements is dense. */
    a->ld_residual = cpu_has(c, 3) && lw_type_last(cpu_in(c, 3)) == a->N ? cpu_in_pitch(c, 3)
                                                                         : a->N;
    a->stride_n = at->trans_b ? a->K : 1;
    a->stride_k = at->trans_b ? 1 : a->N;
    if (!a->packed) {
        c->out->work_bytes = sizeof(float) * (size_t)lw_gemm_packed_floats(a->N, a->K);
        lw_cpu_phase(c, pack_task, lw_gemm_pack_tasks(a->N, a->K));
    }
    lw_cpu_phase(c, forward_task, lw_gemm_tasks(a->M, a->N, a->K));
    return 0;
}

/* ---- packed weights
 * ------------------------------------------------------------------------------- */

bool lw_cpu_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                       void *attr)
{
    (void)self;
    if (i != 1)
        return false;
    if (n->op == LW_OP_MATMUL) {
        lw_attr_matmul *at = attr;
        lw_type b = lw_val_type(g, n->in[1]);
        int32_t cols = lw_type_last(b), rows = (int32_t)(lw_type_count(b) / cols);
        if (at->trans_a)
            return false;
        at->packed_n = at->trans_b ? rows : cols;
        at->packed_k = at->trans_b ? cols : rows;
        *pack = (lw_attr_pack){CPU_PACK_MATMUL, {at->packed_n, at->packed_k, at->trans_b}, 0};
        pack->floats = lw_gemm_packed_floats(at->packed_n, at->packed_k);
        return true;
    }
    if (n->op != LW_OP_CONV2D && n->op != LW_OP_CONV2D_DX)
        return false;
    const lw_attr_conv *at = n->attr;
    lw_conv_shape s = lw_cpu_conv_shape(at, 1);
    lw_conv_pass pass = n->op == LW_OP_CONV2D ? LW_CONV_FORWARD : LW_CONV_DATA_GRAD;
    *pack = (lw_attr_pack){
        n->op == LW_OP_CONV2D ? CPU_PACK_CONV : CPU_PACK_CONV_DX,
        {at->o, at->kh, at->kw, at->c, at->stride, at->h, at->w, at->pad_t * 64 + at->pad_l},
        lw_conv_packed_floats(&s, pass)};
    return true;
}

typedef struct pack_arg {
    const lw_kernels *k;
    lw_attr_pack p;
    lw_conv_shape conv;
} pack_arg;

static void pack_matmul(const lw_task *t)
{
    const pack_arg *a = t->arg;
    ptrdiff_t N = a->p.p[0], K
    = a->p.p[1];
    bool nk = a->p.p[2];
    a->k->gemm.pack(t->out[0], t->in[0], N, K, nk ? K : 1, nk ? 1 : N, t->index);
}

static void pack_conv(const lw_task *t)
{
    const pack_arg *a = t->arg;
    a->k->conv.pack(t->out[0], t->in[0], &a->conv,
                    a->p.kind == CPU_PACK_CONV ? LW_CONV_FORWARD : LW_CONV_DATA_GRAD, t->index);
}

int lw_cpu_lower_pack(cpu_lower *c)
{
    pack_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    a->p = *(const lw_attr_pack *)c->n->attr;
    if (a->p.kind == CPU_PACK_MATMUL) {
        lw_cpu_phase(c, pack_matmul, lw_gemm_pack_tasks(a->p.p[0], a->p.p[1]));
        return 0;
    }
    const int32_t *p = a->p.p;
    int32_t pt = p[7] / 64, pl = p[7] % 64;
    lw_attr_conv at = {.o = p[0],
                       .kh = p[1],
                       .kw = p[2],
                       .c = p[3],
                       .stride = p[4],
                       .h = p[5],
                       .w = p[6],
                       .pad_t = pt,
                       .pad_l = pl,
                       .pad_b = p[1],
                       .pad_r = p[2]};
    a->conv = lw_cpu_conv_shape(&at, 1);
    lw_cpu_phase(c, pack_conv,
                 lw_conv_pack_tasks(&a->conv, a->p.kind == CPU_PACK_CONV ? LW_CONV_FORWARD
                                                                         : LW_CONV_DATA_GRAD));
    return 0;
}
