/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: packed forward kernel, or the weight-gradient kernel when A is transposed; in
 * the element type of what they read. */
#include "backend/cpu/cpu_pack.h"

typedef struct matmul_arg {
    cpu_pack pack;     /* first: tasks of cpu_pack.c read it */
    ptrdiff_t M, N, K; /* C [M][N] */
    ptrdiff_t lda, ldc, ld_residual;
    lw_act act;
    lw_num store;
    bool packed, residual_low; /* the residual is bf16 */
    lw_drop drop;              /* what does not change from run to run; per 0: none */
    uint64_t stream;
} matmul_arg;

static const struct lw_gemm_kernels *kernels(const lw_task *t)
{
    return &((const matmul_arg *)t->arg)->pack.k->gemm;
}

static const void *weights(const lw_task *t)
{
    return ((const matmul_arg *)t->arg)->packed ? t->in[1] : t->work;
}

/* room: of what the epilogue points to. */
static lw_epilogue epilogue(const lw_task *t, lw_drop *room)
{
    const matmul_arg *a = t->arg;
    lw_epilogue e = {.bias = t->in[2],
                     .residual = a->residual_low ? NULL : t->in[3],
                     .residual_low = a->residual_low ? t->in[3] : NULL,
                     .ld_residual = a->ld_residual,
                     .act = a->act,
                     .store = a->store,
                     .store_pair = t->in[LW_STORE_QUANT]};
    if (a->drop.per) {
        *room = a->drop;
        room->key = lw_rng_key_of(t->tick->seed, a->stream);
        room->step = t->tick->step;
        room->ids = t->in[5];
        e.drop = room;
    }
    return e;
}

static void forward_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    lw_drop room;
    lw_epilogue e = epilogue(t, &room);
    kernels(t)->forward(t->out[0], a->ldc, t->in[0], a->lda, weights(t), a->M, a->N, a->K, &e,
                        t->index);
}

static void forward_bf16_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    lw_drop room;
    lw_epilogue e = epilogue(t, &room);
    kernels(t)->forward_bf16(t->out[0], a->ldc, t->in[0], a->lda, weights(t), a->M, a->N, a->K, &e,
                             t->index);
}

static void forward_bf16x3_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    lw_drop room;
    lw_epilogue e = epilogue(t, &room);
    kernels(t)->forward_bf16x3(t->out[0], a->ldc, t->in[0], a->lda, weights(t), a->M, a->N, a->K,
                               &e, t->index);
}

static void forward_u8_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    lw_drop room;
    lw_epilogue e = epilogue(t, &room);
    lw_quant q = lw_cpu_quant(&a->pack, t->in[4], weights(t));
    kernels(t)->forward_u8(t->out[0], a->ldc, t->in[0], a->lda, weights(t), &q, a->M, a->N, a->K,
                           &e, t->index);
}

/* C[M][N] = A' B with A [K][M], B [K][N]: the kernel calls M "N", N "K", K "M". */
static void grad_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    kernels(t)->weight_grad(t->out[0], NULL, t->in[0], a->M, t->in[1], a->N, a->K, a->M, a->N, 0,
                            t->work, t->index);
}

static void grad_bf16_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    kernels(t)->weight_grad_bf16(t->out[0], NULL, t->in[0], a->M, t->in[1], a->N, a->K, a->M, a->N,
                                 0, t->work, t->index);
}

static void combine_task(const lw_task *t)
{
    const matmul_arg *a = t->arg;
    kernels(t)->weight_grad_combine(t->out[0], NULL, a->K, a->M, a->N, 0, t->work, t->index);
}

static int lower_transposed(cpu_lower *c, matmul_arg *a, lw_num num)
{
    a->pack.k = c->k;
    a->M = lw_type_last(cpu_in(c, 0));
    a->K = lw_type_count(cpu_in(c, 0)) / a->M;
    if (cpu_has(c, 2) || cpu_has(c, 3))
        return lw_fail(LW_EUNSUPPORTED, "bias behind a transposed product");
    c->out->work_bytes = sizeof(float) *
                         (size_t)lw_gemm_weight_grad_partial_floats(a->K, a->M, a->N);
    lw_cpu_phase(c, num == LW_NUM_BF16 ? grad_bf16_task : grad_task,
                 lw_gemm_weight_grad_tasks(a->K, a->M, a->N));
    if (lw_gemm_weight_grad_combine_tasks(a->K, a->M, a->N))
        lw_cpu_phase(c, combine_task, lw_gemm_weight_grad_combine_tasks(a->K, a->M, a->N));
    return 0;
}

int lw_cpu_lower_matmul(cpu_lower *c)
{
    static lw_task_fn *const forward[CPU_NUMS] = {forward_task, forward_bf16_task, forward_u8_task,
                                                  forward_bf16x3_task};
    const lw_attr_matmul *at = c->n->attr;
    lw_num num = lw_cpu_num(cpu_in(c, 0).dtype);
    matmul_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->act = (lw_act)at->act;
    a->store = lw_cpu_num(cpu_out(c, 0).dtype);
    a->packed = at->packed_n != 0;
    a->N = lw_type_last(cpu_out(c, 0));
    if (at->trans_a && at->trans_b)
        return lw_fail(LW_EUNSUPPORTED, "product of two transposed matrices");
    if (at->trans_a)
        return lower_transposed(c, a, num);
    a->K = lw_type_last(cpu_in(c, 0));
    a->M = lw_type_count(cpu_in(c, 0)) / a->K;
    a->lda = cpu_in_pitch(c, 0);
    a->ldc = cpu_out_pitch(c);
    /* A residual of another shape with the same elements is dense. */
    a->ld_residual = cpu_has(c, 3) && lw_type_last(cpu_in(c, 3)) == a->N ? cpu_in_pitch(c, 3)
                                                                         : a->N;
    a->residual_low = cpu_has(c, 3) && cpu_in(c, 3).dtype == LW_BF16;
    if (cpu_has(c, 5)) {
        a->drop =
            (lw_drop){.p = at->drop, .per = a->M / lw_type_count(cpu_in(c, 5)), .width = a->N};
        a->stream = at->drop_stream;
    }
    num = a->packed ? lw_cpu_packed_way(lw_val_node(c->g, c->n->in[1])).num
                    : lw_cpu_product_num(c->k, cpu_in(c, 0), a->N);
    a->pack = lw_cpu_pack_product(c->k, num, a->N, a->K, at->trans_b);
    if (!a->packed)
        lw_cpu_pack_in_step(c, &a->pack);
    lw_cpu_phase(c, forward[num], lw_gemm_tasks(c->k->isa, num, a->M, a->N, a->K));
    return 0;
}
