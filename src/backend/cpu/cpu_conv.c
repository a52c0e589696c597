/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution forward, data gradient and weight gradient, in the element type of what they read. */
#include "backend/cpu/cpu_pack.h"

typedef struct conv_arg {
    cpu_pack pack; /* first: tasks of cpu_pack.c read it */
    lw_conv_shape s;
    lw_act act;
    bool packed;
    lw_conv_shape bordered; /* B > 0: over a copy that tasks share */
    size_t shared_at;       /* bytes of work before what tasks share: it, or what tiles need */
    ptrdiff_t ld_residual;
    lw_num store;
    bool residual_low; /* it is bf16 */
} conv_arg;

static const struct lw_conv_kernels *kernels(const lw_task *t)
{
    return &((const conv_arg *)t->arg)->pack.k->conv;
}

static const void *weights(const lw_task *t)
{
    return ((const conv_arg *)t->arg)->packed ? t->in[1] : t->work;
}

/* ---- forward --------------------------------------------------------------------------------- */

static lw_epilogue epilogue(const lw_task *t, const float *bias, const void *residual)
{
    const conv_arg *a = t->arg;
    return (lw_epilogue){.bias = bias,
                         .residual = a->residual_low ? NULL : residual,
                         .residual_low = a->residual_low ? residual : NULL,
                         .ld_residual = a->ld_residual,
                         .act = a->act,
                         .store = a->store,
                         .store_pair = t->in[LW_STORE_QUANT]};
}

static lw_epilogue forward_epilogue(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = epilogue(t, t->in[2], t->in[3]);
    e.image_bias = t->in[5];
    e.ld_image_bias = a->s.O;
    return e;
}

static void forward_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = forward_epilogue(t);
    kernels(t)->forward(t->out[0], t->in[0], weights(t), &a->s, &e, t->index);
}

/* The picture as it is, or its copy with borders. */
static const void *picture(const lw_task *t)
{
    const conv_arg *a = t->arg;
    return a->bordered.B ? (const char *)t->work + a->shared_at : t->in[0];
}

static const lw_conv_shape *shape(const lw_task *t)
{
    const conv_arg *a = t->arg;
    return a->bordered.B ? &a->bordered : &a->s;
}

static void border_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    const float *pair = t->in[4];
    lw_conv_border((char *)t->work + a->shared_at, t->in[0], a->pack.num, &a->s, &a->bordered,
                   a->pack.num == LW_NUM_S8 ? (int)pair[1] : 0, t->index);
}

static void forward_bf16_task(const lw_task *t)
{
    lw_epilogue e = forward_epilogue(t);
    kernels(t)->forward_bf16(t->out[0], picture(t), weights(t), shape(t), &e, t->index);
}

static void forward_bf16x3_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = forward_epilogue(t);
    kernels(t)->forward_bf16x3(t->out[0], t->in[0], weights(t), &a->s, &e, t->index);
}

static void forward_u8_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = forward_epilogue(t);
    lw_quant q = lw_cpu_quant(&a->pack, t->in[4], weights(t));
    kernels(t)->forward_u8(t->out[0], picture(t), weights(t), &q, shape(t), &e, t->index);
}

/* ---- data gradient --------------------------------------------------------------------------- */

static lw_epilogue data_grad_epilogue(const lw_task *t)
{
    return epilogue(t, t->in[3], t->in[2]);
}

static void data_grad_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = data_grad_epilogue(t);
    kernels(t)->data_grad(t->out[0], t->in[0], weights(t), &a->s, &e, t->index);
}

static void data_grad_bf16_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = data_grad_epilogue(t);
    kernels(t)->data_grad_bf16(t->out[0], t->in[0], weights(t), &a->s, &e, t->index);
}

static void data_grad_bf16x3_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = data_grad_epilogue(t);
    kernels(t)->data_grad_bf16x3(t->out[0], t->in[0], weights(t), &a->s, &e, t->index);
}

static void data_grad_u8_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    lw_epilogue e = data_grad_epilogue(t);
    lw_quant q = lw_cpu_quant(&a->pack, t->in[4], weights(t));
    kernels(t)->data_grad_u8(t->out[0], t->in[0], weights(t), &q, &a->s, &e, t->index);
}

/* ---- with Winograd's tiles ------------------------------------------------------------------- */

static float *shared(const lw_task *t)
{
    const conv_arg *a = t->arg;
    return t->work ? (float *)(void *)((char *)t->work + a->shared_at) : NULL;
}

/* What stands for the bytes of weights and activations; NULL of other types. */
static const lw_quant *quant(lw_quant *q, const lw_task *t)
{
    const conv_arg *a = t->arg;
    if (a->pack.num != LW_NUM_S8)
        return NULL;
    *q = lw_cpu_quant(&a->pack, t->in[4], weights(t));
    return q;
}

static void inputs_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    const struct lw_winograd_kernels *k = &a->pack.k->winograd;
    lw_winograd_inputs_fn *const fn[CPU_NUMS] = {k->inputs, k->inputs_bf16, k->inputs_u8};
    lw_quant q;
    fn[a->pack.num](shared(t), t->in[0], &a->s, a->pack.pass, a->pack.tile, quant(&q, t), t->index);
}

static void products_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    const struct lw_winograd_kernels *k = &a->pack.k->winograd;
    lw_winograd_products_fn *const fn[CPU_NUMS] = {k->products, k->products_bf16, k->products_u8};
    fn[a->pack.num](shared(t), weights(t), &a->s, a->pack.pass, a->pack.tile, t->index);
}

static lw_epilogue pass_epilogue(const lw_task *t)
{
    const conv_arg *a = t->arg;
    return a->pack.pass == LW_CONV_FORWARD ? forward_epilogue(t) : data_grad_epilogue(t);
}

static void tiles_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    const lw_epilogue e = pass_epilogue(t);
    const struct lw_winograd_kernels *k = &a->pack.k->winograd;
    lw_winograd_run_fn *const fn[CPU_NUMS] = {k->run, k->run_bf16, k->run_u8};
    lw_quant q;
    fn[a->pack.num](t->out[0], t->in[0], weights(t), shared(t), &a->s, a->pack.pass, a->pack.tile,
                    quant(&q, t), &e, t->scratch, t->index);
}

/* ---- with the tiles of conv_rescale.h -------------------------------------------------------- */

static void rescale_inputs_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    a->pack.k->rescale.inputs(shared(t), t->in[0], &a->s, a->pack.pass, t->index);
}

static void rescale_products_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    a->pack.k->rescale.products(shared(t), weights(t), &a->s, a->pack.pass, t->index);
}

static void rescale_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    const lw_epilogue e = pass_epilogue(t);
    a->pack.k->rescale.run(t->out[0], t->in[0], weights(t), shared(t), &a->s, a->pack.pass, &e,
                           t->scratch, t->index);
}

/* ---- weight gradient ------------------------------------------------------------------------- */

static void weight_grad_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    kernels(t)->weight_grad(t->out[0], t->out[1], t->in[0], t->in[1], &a->s, 0, t->work, t->index);
}

static void weight_grad_bf16_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    kernels(t)->weight_grad_bf16(t->out[0], t->out[1], t->in[0], t->in[1], &a->s, 0, t->work,
                                 t->index);
}

static void combine_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    kernels(t)->weight_grad_combine(t->out[0], t->out[1], &a->s, 0, t->work, t->index);
}

static void weight_grad_tiles_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    const struct lw_winograd_kernels *k = &a->pack.k->winograd;
    (a->pack.num == LW_NUM_BF16 ? k->weight_grad_bf16 : k->weight_grad)(
        t->out[0], t->out[1], t->in[0], t->in[1], &a->s, 0, t->work, t->scratch, t->index);
}

static void combine_tiles_task(const lw_task *t)
{
    const conv_arg *a = t->arg;
    a->pack.k->winograd.weight_grad_combine(t->out[0], t->out[1], &a->s, 0, t->work, t->index);
}

/* ---- lowering -------------------------------------------------------------------------------- */

static conv_arg *conv_record(cpu_lower *c, lw_conv_pass pass)
{
    const lw_attr_conv *at = c->n->attr;
    conv_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->s = lw_cpu_node_conv_shape(c->g, c->n, cpu_in(c, 0).dim[0]);
    const lw_node *w = lw_val_node(c->g, c->n->in[1]);
    a->packed = w->op == LW_OP_PACK;
    const cpu_way way = a->packed ? lw_cpu_packed_way(w)
                                  : lw_cpu_conv_way(c->dev, cpu_in(c, 0).dtype, &a->s, pass);
    a->pack = lw_cpu_pack_conv(c->k, way.num, &a->s, pass, way.tile);
    a->act = (lw_act)at->act;
    a->store = lw_cpu_num(cpu_out(c, 0).dtype);
    return a;
}

/* Elements between pixels, and between those of the residual (operand r). */
static void set_pitches(cpu_lower *c, conv_arg *a, ptrdiff_t x, ptrdiff_t y, int r)
{
    a->s.ldx = x;
    a->s.ldy = y;
    a->ld_residual = cpu_has(c, r) ? cpu_in_pitch(c, r) : 0;
    a->residual_low = cpu_has(c, r) && cpu_in(c, r).dtype == LW_BF16;
}

/* The convolution that tasks compute directly: over the picture, or behind a phase that copies it with borders. */
static const lw_conv_shape *direct_shape(cpu_lower *c, conv_arg *a)
{
    const cpu_pack *p = &a->pack;
    lw_conv_shape over;
    if (p->pass != LW_CONV_FORWARD || !lw_conv_bordered(c->k->isa, p->num, &a->s, &over))
        return &a->s;
    a->bordered = over;
    a->shared_at = LW_ROUND_UP(c->out->work_bytes, 64);
    c->out->work_bytes = a->shared_at + lw_conv_bordered_bytes(p->num, &over);
    lw_cpu_phase(c, border_task, lw_conv_border_tasks(p->num, &over));
    return &a->bordered;
}

/* What computing over tiles needs, and its phases. */
typedef struct tiled {
    int64_t scratch, shared; /* floats */
    int64_t inputs, products, tasks;
    lw_task_fn *inputs_fn, *products_fn, *fn;
} tiled;

static tiled tiled_of(const conv_arg *a)
{
    const cpu_pack *p = &a->pack;
    const lw_conv_shape *s = &a->s;
    if (p->tile == CPU_RESCALE)
        return (tiled){lw_rescale_scratch_floats(s, p->pass),
                       lw_rescale_shared_floats(s, p->pass),
                       lw_rescale_input_tasks(s, p->pass),
                       lw_rescale_product_tasks(s, p->pass),
                       lw_rescale_tasks(s, p->pass),
                       rescale_inputs_task,
                       rescale_products_task,
                       rescale_task};
    return (tiled){lw_winograd_scratch_words(p->num, s, p->pass, p->tile),
                   lw_winograd_shared_words(p->num, s, p->pass, p->tile),
                   lw_winograd_input_tasks(p->num, s, p->pass, p->tile),
                   lw_winograd_product_tasks(p->num, s, p->pass, p->tile),
                   lw_winograd_tasks(p->num, s, p->pass, p->tile),
                   inputs_task,
                   products_task,
                   tiles_task};
}

/* The tasks that multiply: over tiles, which need scratch, or directly. */
static void add_tasks(cpu_lower *c, conv_arg *a, lw_task_fn *const task[CPU_NUMS])
{
    const cpu_pack *p = &a->pack;
    if (!p->tile) {
        const lw_conv_shape *s = direct_shape(c, a);
        lw_cpu_phase(c, task[p->num], lw_conv_tasks(c->k->isa, p->num, s, p->pass));
        return;
    }
    const tiled t = tiled_of(a);
    c->out->scratch_bytes = sizeof(float) * (size_t)t.scratch;
    if (t.inputs > 0) {
        a->shared_at = LW_ROUND_UP(c->out->work_bytes, 64);
        c->out->work_bytes = a->shared_at + sizeof(float) * (size_t)t.shared;
        lw_cpu_phase(c, t.inputs_fn, t.inputs);
    }
    if (t.products > 0)
        lw_cpu_phase(c, t.products_fn, t.products);
    lw_cpu_phase(c, t.fn, t.tasks);
}

static int lower_product(cpu_lower *c, lw_conv_pass pass, lw_task_fn *const task[CPU_NUMS])
{
    conv_arg *a = conv_record(c, pass);
    if (!a)
        return LW_ENOMEM;
    if (pass == LW_CONV_FORWARD)
        set_pitches(c, a, cpu_in_pitch(c, 0), cpu_out_pitch(c), 3);
    else
        set_pitches(c, a, cpu_out_pitch(c), cpu_in_pitch(c, 0), 2);
    if (!a->packed)
        lw_cpu_pack_in_step(c, &a->pack);
    add_tasks(c, a, task);
    return 0;
}

int lw_cpu_lower_conv2d(cpu_lower *c)
{
    if (cpu_has(c, LW_CONV_PROJECT_X)) /* lw_device.project is not here */
        return lw_fail(LW_EUNSUPPORTED, "conv2d with a projection is not computed on the CPU");
    return lower_product(c, LW_CONV_FORWARD,
                         (lw_task_fn *const[CPU_NUMS]){forward_task, forward_bf16_task,
                                                       forward_u8_task, forward_bf16x3_task});
}
int lw_cpu_lower_conv2d_dx(cpu_lower *c)
{
    return lower_product(c, LW_CONV_DATA_GRAD,
                         (lw_task_fn *const[CPU_NUMS]){data_grad_task, data_grad_bf16_task,
                                                       data_grad_u8_task, data_grad_bf16x3_task});
}

static void add_tiles_dw(cpu_lower *c, const lw_conv_shape *s)
{
    c->out->work_bytes = sizeof(float) * (size_t)lw_winograd_weight_grad_partial_floats(s);
    c->out->scratch_bytes = sizeof(float) * (size_t)lw_winograd_weight_grad_scratch_words(s);
    lw_cpu_phase(c, weight_grad_tiles_task, lw_winograd_weight_grad_tasks(s));
    if (lw_winograd_weight_grad_combine_tasks(s))
        lw_cpu_phase(c, combine_tiles_task, lw_winograd_weight_grad_combine_tasks(s));
}

int lw_cpu_lower_conv2d_dw(cpu_lower *c)
{
    conv_arg *a = conv_record(c, LW_CONV_FORWARD);
    if (!a)
        return LW_ENOMEM;
    a->pack.num = lw_cpu_num(cpu_in(c, 0).dtype);
    set_pitches(c, a, cpu_in_pitch(c, 1), cpu_in_pitch(c, 0), 2); /* reads no residual */
    if (lw_cpu_conv_weight_tiles(c->dev, a->pack.num, &a->s)) {
        add_tiles_dw(c, &a->s);
        return 0;
    }
    c->out->work_bytes = sizeof(float) * (size_t)lw_conv_weight_grad_partial_floats(&a->s);
    lw_cpu_phase(c, a->pack.num == LW_NUM_BF16 ? weight_grad_bf16_task : weight_grad_task,
                 lw_conv_weight_grad_tasks(&a->s));
    if (lw_conv_weight_grad_combine_tasks(&a->s))
        lw_cpu_phase(c, combine_task, lw_conv_weight_grad_combine_tasks(&a->s));
    return 0;
}

/* Where the machine multiplies bf16, its own tiles beat those of f32, which gain three times over direct
 * f32 where direct bf16 gains twice (docs/performance-zen4.md): bf16 without tiles keeps narrow layers, whose
 * transforms cost more, and pictures of one tile. On tile registers direct bf16 beats all others, but for
 * fewer channels than fill half of one: their words of two are no faster than f32 where there are such.
 * Elsewhere bf16 is widened to f32 first and gains nothing, least of all a first layer, whose few channels would be read as more
 * (plan_precision.c asks for it), and attention, which widens its keys and values
 * for every few rows, takes twice as long. Bytes beat all tiles of f32 where the machine multiplies them, or
 * where they have tiles themselves, and lose to those of 4x4 and of conv_rescale.h elsewhere. */
bool lw_cpu_wide(void *self, const lw_graph *g, const lw_node *n, lw_num num)
{
    enum { NARROW = 32, HALF_A_TILE = 16, FEW = 8 };
    const lw_device *d = self; /* self begins with the lw_device */
    const bool dx = n->op == LW_OP_CONV2D_DX, low = d->kernels->isa >= LW_ISA_AVX512BF16;
    if (n->op == LW_OP_ATTENTION || n->op == LW_OP_ATTENTION_GRAD)
        return !low;
    if (!dx && n->op != LW_OP_CONV2D)
        return false;
    lw_conv_shape s = lw_cpu_node_conv_shape(g, n, 1);
    const lw_conv_pass pass = dx ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD;
    int tile = lw_cpu_conv_tile(d, LW_NUM_F32, &s, pass);
    if (num == LW_NUM_S8)
        return !lw_isa_multiplies_bytes(d->kernels->isa) && !lw_cpu_conv_tile(d, num, &s, pass) &&
               (tile == 4 || lw_cpu_rescales(d, &s, pass));
    if (!low)
        return tile != 0 || lw_cpu_rescales(d, &s, pass) || s.C < FEW;
    if (d->kernels->isa >= LW_ISA_AMX)
        return (dx ? s.O : s.C) < HALF_A_TILE;
    if (lw_cpu_conv_tile(d, num, &s, pass))
        return false;
    return tile == 4 && s.C >= NARROW && s.O >= NARROW && (s.H > 4 || s.W > 4);
}
