/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the CPU, the table of lowerings, and parallel for. */
#include "backend/cpu/cpu_private.h"

#include <string.h>

static cpu_lower_fn *const lowerings[LW_OP_COUNT] = {
#define OP(NAME, name, doc) [LW_OP_##NAME] = lw_cpu_lower_##name,
#include "ir/ops.def"
#undef OP
};

/* ---- values without rows ----------------------------------------------------------------------- */

typedef struct empty_arg {
    size_t bytes[LW_MAX_OUT]; /* of results */
    int n;
} empty_arg;

static void empty_task(const lw_task *t)
{
    const empty_arg *a = t->arg;
    for (int i = 0; i < a->n; i++)
        if (t->out[i])
            memset(t->out[i], 0, a->bytes[i]);
}

/* Nothing is made, or sums over nothing, which are 0: no lowering has to divide by no rows. */
static bool is_empty(const cpu_lower *c)
{
    bool nothing = true;
    for (int i = 0; i < c->n->n_out; i++)
        nothing &= lw_type_count(cpu_out(c, i)) == 0;
    return nothing ||
           (c->n->op != LW_OP_CONCAT && cpu_has(c, 0) && lw_type_count(cpu_in(c, 0)) == 0);
}

static int lower_empty(cpu_lower *c)
{
    empty_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->n = c->n->n_out;
    for (int i = 0; i < a->n; i++)
        a->bytes[i] = lw_type_bytes(cpu_out(c, i));
    lw_cpu_phase(c, empty_task, 1);
    return 0;
}

/* Kernels of f32 products write f32. */
static bool is_f32_to_bf16(const cpu_lower *c)
{
    lw_product of;
    return lw_node_product(c->g, c->n, &of) && cpu_in(c, 0).dtype == LW_F32 &&
           cpu_out(c, 0).dtype == LW_BF16;
}

static int lower(void *self, lw_arena *a, const lw_graph *g, const lw_node *n, uint32_t fixed,
                 lw_lowered *out)
{
    cpu *d = self;
    (void)fixed;
    cpu_lower c = {.k = &d->k, .dev = &d->dev, .arena = a, .g = g, .n = n, .out = out};
    *out = (lw_lowered){0};
    if (is_f32_to_bf16(&c))
        return lw_fail(LW_EUNSUPPORTED, "'%s' of f32 to bf16", lw_op_get(n->op)->name);
    return is_empty(&c) ? lower_empty(&c) : lowerings[n->op](&c);
}

static void run_task(void *arg, int64_t index, int worker)
{
    const lw_launch *l = arg;
    lw_task t = l->task;
    t.index = index;
    t.scratch = (char *)t.scratch + (size_t)worker * l->scratch_stride;
    l->low->phase[t.phase].fn(&t);
}

int lw_cpu_run(void *self, const lw_launch *l)
{
    lw_launch job = *l;
    lw_pool *pool = l->alone ? NULL : ((cpu *)self)->dev.pool;
    int64_t tasks = l->low->phase[l->task.phase].n_tasks;
    if (l->may_stop)
        return lw_pool_run_asking(pool, tasks, run_task, &job);
    lw_pool_run(pool, tasks, run_task, &job);
    return 0;
}

static void close_cpu(lw_device *dev)
{
    cpu *c = dev->self;
    lw_pool_free(&c->dev.pool);
    lw_free(&c->norm_part);
    lw_free(&c);
}

int lw_cpu_open(const lw_backend_options *o, lw_device **out)
{
    cpu *c = lw_calloc(1, sizeof *c);
    if (!c)
        return LW_ENOMEM;
    lw_pool *pool = NULL;
    int threads = o->threads > 0 ? o->threads : o->bind ? lw_whole_core_count() : lw_core_count();
    int rc = o->bind ? lw_pool_new_bound(threads, &pool) : lw_pool_new(threads, &pool);
    if (rc < 0) {
        lw_free(&c);
        return rc;
    }
    lw_kernels_init(&c->k, o->isa);
    c->conv = o->conv;
    c->tuned = o->tuned;
    c->dev = (lw_device){.name = "cpu",
                         .isa = lw_isa_name(o->isa),
                         .pool = pool,
                         .kernels = &c->k,
                         .memory = &lw_host_memory,
                         .self = c,
                         .lower = lower,
                         .pack = lw_cpu_wants_pack,
                         .pitched = lw_cpu_pitched,
                         .pitch = lw_cpu_pitch,
                         .upconv = lw_cpu_upconv_pays,
                         .bf16_values = true,
                         .narrow_maxima = true,
                         .wide = lw_cpu_wide,
                         .chain = lw_cpu_chain_pays,
                         .near_one = 1 << 20,
                         .near_all = 32 << 20,
                         .run = lw_cpu_run,
                         .update = lw_cpu_update,
                         .add = lw_cpu_add,
                         .copy = lw_cpu_copy,
                         .close = close_cpu};
    *out = &c->dev;
    return 0;
}

lw_conv_shape lw_cpu_conv_shape(const lw_attr_conv *a, int32_t batch)
{
    lw_conv_shape s = {
        .B = batch,
        .H = a->h,
        .W = a->w,
        .C = a->c,
        .O = a->o,
        .KH = a->kh,
        .KW = a->kw,
        .stride = a->stride,
        .pad_top = a->pad_t,
        .pad_left = a->pad_l,
        .pad_bottom = a->pad_b,
        .pad_right = a->pad_r,
    };
    int rc = lw_conv_shape_init(&s);
    LW_ASSERT(rc == 0, "%s", lw_errmsg());
    return s;
}

int lw_cpu_conv_tile(const lw_device *d, lw_num num, const lw_conv_shape *s, lw_conv_pass pass)
{
    const cpu *c = d->self;
    return lw_winograd_tile_of(&c->tuned, num, s, pass, c->k.isa, c->conv);
}

bool lw_cpu_rescales(const lw_device *d, const lw_conv_shape *s, lw_conv_pass pass)
{
    const cpu *c = d->self;
    return lw_rescale_pays(s, pass, c->k.isa, c->conv);
}

bool lw_cpu_conv_weight_tiles(const lw_device *d, lw_num num, const lw_conv_shape *s)
{
    const cpu *c = d->self;
    return lw_winograd_weight_grad(num, s, c->k.isa, c->conv);
}

void *lw_cpu_arg(cpu_lower *c, size_t bytes)
{
    void *p = lw_arena_alloc(c->arena, bytes);
    c->out->arg = p;
    return p;
}

void lw_cpu_phase(cpu_lower *c, lw_task_fn *fn, int64_t n_tasks)
{
    LW_ASSERT(c->out->n_phases < LW_MAX_PHASES, "%d phases", c->out->n_phases);
    c->out->phase[c->out->n_phases].fn = fn;
    c->out->phase[c->out->n_phases++].n_tasks = n_tasks;
}

/* Leaves and aliases are never run. */
static int nothing_to_run(cpu_lower *c)
{
    return lw_fail(LW_EUNSUPPORTED, "'%s' is not a step", lw_op_get(c->n->op)->name);
}
int lw_cpu_lower_input(cpu_lower *c)
{
    return nothing_to_run(c);
}
int lw_cpu_lower_param(cpu_lower *c)
{
    return nothing_to_run(c);
}
int lw_cpu_lower_constant(cpu_lower *c)
{
    return nothing_to_run(c);
}
int lw_cpu_lower_reshape(cpu_lower *c)
{
    return nothing_to_run(c);
}
