/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation, attention, softmax and cross-entropy on GPUs. */
#include "backend/cuda/cuda_private.h"

#include <math.h>

typedef struct norm_step {
    cuda_step step;
    lw_cuda_norm a;
    int64_t batch;
    bool also;
    int32_t wide; /* elements that come at once */
    lw_cuda_kernel kernel;
} norm_step;

static bool aligned(const lw_cuda_norm *a, int32_t wide)
{
    const uintptr_t x = (uintptr_t)a->x, y = (uintptr_t)a->y,
                    f32 = (uintptr_t)a->gamma | (uintptr_t)a->beta | (uintptr_t)a->scale |
                          (uintptr_t)a->shift | (a->store ? 0 : y) | (a->narrow ? 0 : x),
                    bf16 = (uintptr_t)a->also | (a->store ? y : 0) | (a->narrow ? x : 0);
    return f32 % ((uintptr_t)wide * sizeof(float)) == 0 &&
           (a->x_pitch | a->scale_pitch | a->shift_pitch) % wide == 0 &&
           bf16 % ((uintptr_t)wide * sizeof(uint16_t)) == 0;
}

static void norm_task(const lw_task *t)
{
    const norm_step *s = t->arg;
    lw_cuda_norm a = s->a;
    a.y = t->out[0];
    a.mean = t->out[1];
    a.rstd = t->out[2];
    a.also = s->also ? t->out[3] : NULL;
    a.x = t->in[0];
    a.gamma = t->in[1];
    a.beta = t->in[2];
    a.scale = t->in[3];
    a.shift = t->in[4];
    lw_cuda_kernel kernel = aligned(&a, s->wide) ? s->kernel : LW_CUDA_group_norm;
    if (kernel == LW_CUDA_layer_norm) {
        lw_cuda_launch(s->step.d, kernel, LW_CEIL_DIV(a.rows, 8), 1, &a);
        return;
    }
    int64_t across = kernel == LW_CUDA_group_norm ? a.groups : a.groups / a.span;
    /* the grid's second side ends at 65,535 */
    for (int64_t b = 0; b < s->batch; b += 32768) {
        lw_cuda_norm part = a;
        int64_t rows = LW_MIN(s->batch - b, (int64_t)32768), ch = a.c;
        part.x = (const char *)a.x + b * a.hw * a.x_pitch * (a.narrow ? 2 : 4);
        part.y = a.y ? (char *)a.y + b * a.hw * ch * (a.store ? 2 : 4) : NULL;
        part.also = a.also ? (uint16_t *)a.also + b * a.hw * ch : NULL;
        part.mean = a.mean ? a.mean + b * a.groups : NULL;
        part.rstd = a.rstd ? a.rstd + b * a.groups : NULL;
        part.scale = a.scale ? a.scale + b * a.scale_pitch : NULL;
        part.shift = a.shift ? a.shift + b * a.shift_pitch : NULL;
        lw_cuda_launch(s->step.d, kernel, across, rows, &part);
    }
}

/* Which kernel, and how many groups a block has: 64 bytes of a row where threads can keep their elements, and no fewer
 * vectors than threads. Never a matter of the batch: sums have the same bits in any. */
static void choose(norm_step *s)
{
    lw_cuda_norm *a = &s->a;
    const int32_t width = a->c / a->groups,
                  threads = a->narrow ? LW_CUDA_NORM_BF16 : LW_CUDA_NORM_F32;
    const int32_t row = 64 / (a->narrow ? (int32_t)sizeof(uint16_t) : (int32_t)sizeof(float));
    s->wide = width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
    if (s->wide == 4)
        s->kernel = a->narrow ? LW_CUDA_group_norm_4_bf16 : LW_CUDA_group_norm_4;
    else if (s->wide == 2)
        s->kernel = a->narrow ? LW_CUDA_group_norm_2_bf16 : LW_CUDA_group_norm_2;
    else
        s->kernel = a->narrow ? LW_CUDA_group_norm_1_bf16 : LW_CUDA_group_norm_1;
    a->span = 1;
    a->rows = s->batch * a->groups;
    if (a->hw == 1 && s->wide == 4)
        s->kernel = LW_CUDA_layer_norm;
    else if (width / s->wide > threads || a->hw > INT32_MAX / LW_MAX(a->x_pitch, 4))
        s->kernel = LW_CUDA_group_norm;
    for (int32_t span = 2; span <= LW_CUDA_SPAN && a->groups % span == 0; span *= 2) {
        int64_t vectors = a->hw * (width * span / s->wide);
        bool small = vectors <= threads, sector = width * span <= row;
        if (width * span / s->wide > threads ||
            !(small || (sector && vectors * s->wide <= threads * LW_CUDA_NORM_KEPT)))
            return;
        a->span = span;
    }
}

/* Few pictures' groups are spread over more blocks, where a block is through with their rows at once: most multiprocessors
 * would have nothing to do. That is the same sums in the same order (kernels/cuda_norm.cu). */
static void spread(norm_step *s)
{
    lw_cuda_norm *a = &s->a;
    const int32_t threads = a->narrow ? LW_CUDA_NORM_BF16 : LW_CUDA_NORM_F32;
    const int32_t across = a->c / a->groups * a->span / s->wide;
    if ((s->kernel != LW_CUDA_group_norm_4 && s->kernel != LW_CUDA_group_norm_4_bf16) ||
        a->span % LW_CUDA_NORM_PARTS || a->hw > threads / across * (LW_CUDA_NORM_KEPT / s->wide) ||
        2 * s->batch * (a->groups / a->span) > s->step.d->multiprocessors)
        return;
    s->kernel = a->narrow ? LW_CUDA_group_norm_4_bf16_spread : LW_CUDA_group_norm_4_spread;
    a->span /= LW_CUDA_NORM_PARTS;
}

int lw_cuda_lower_group_norm(cuda_lower *c)
{
    const lw_attr_norm *at = c->n->attr;
    lw_type x = cuda_in(c, 0);
    if (at->store && at->store != LW_F32 && at->store != LW_BF16)
        return lw_cuda_lacks(c, " to other numbers than f32 and bf16");
    norm_step *s = lw_cuda_arg(c, sizeof *s, norm_task);
    if (!s)
        return LW_ENOMEM;
    s->batch = x.dim[0];
    s->also = at->also != 0;
    s->a = (lw_cuda_norm){.c = lw_type_last(x),
                          .hw = lw_type_count(x) / ((int64_t)x.dim[0] * lw_type_last(x)),
                          .groups = at->groups,
                          .act = at->act,
                          .rms = at->rms,
                          .eps = at->eps,
                          .store = at->store == LW_BF16,
                          .narrow = x.dtype == LW_BF16};
    s->a.fixed = cuda_fixed(c, 1) && cuda_fixed(c, 2);
    s->a.x_pitch = cuda_in_pitch(c, 0);
    s->a.scale_pitch = cuda_in_pitch(c, 3);
    s->a.shift_pitch = cuda_in_pitch(c, 4);
    choose(s);
    spread(s);
    return 0;
}

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct attention_step {
    cuda_step step;
    lw_cuda_attention a;
    int64_t rooms;           /* a sample or a window's, each */
    int32_t most;            /* queries of the largest */
    int n;                   /* operands: the last holds all that follows its own, side by side */
    int32_t channels, bytes; /* of an element */
    bool flash;              /* but for addresses, tiles can have it: of bf16 on tensor cores */
} attention_step;

/* Kernels on tensor cores take queries in blocks: each one's, and what a query costs in it. */
static const struct {
    lw_cuda_kernel kernel;
    int32_t channels, queries, cost;
} flash[] = {{LW_CUDA_flash_64x16, 16, 64, 1},   {LW_CUDA_flash_64x32, 32, 64, 1},
             {LW_CUDA_flash_64x64, 64, 64, 5},   {LW_CUDA_flash_96x64, 64, 96, 4},
             {LW_CUDA_flash_128x64, 64, 128, 4}, {LW_CUDA_flash_64x128, 128, 64, 1}};
/* blocks of 64 queries: two for each multiprocessor of the largest GPUs */
enum { FLASH_FEW = 264 };

/* The one that does the least for nothing; where there is little to do, that with the smallest blocks. */
static int flash_of(const attention_step *s)
{
    int best = -1;
    int64_t least = INT64_MAX;
    bool few = s->rooms * s->a.heads * LW_CEIL_DIV(s->most, 64) < FLASH_FEW;
    for (int i = 0; i < (int)LW_COUNT(flash); i++) {
        int64_t cost = (int64_t)LW_ROUND_UP(s->most, flash[i].queries) * flash[i].cost;
        if (s->a.hd > flash[i].channels || (best >= 0 && (few || cost >= least)) ||
            (best >= 0 && flash[best].channels < flash[i].channels))
            continue;
        best = i;
        least = cost;
    }
    return best;
}

/* What a thread brings at once: four channels of narrow heads, else eight. */
static int32_t flash_piece(int32_t hd)
{
    return hd <= 32 ? 4 : 8;
}
static bool flash_aligned(int32_t hd, const void *p)
{
    return (uintptr_t)p % (uintptr_t)(2 * flash_piece(hd)) == 0;
}
static bool full_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

static void attention_task(const lw_task *t)
{
    const attention_step *s = t->arg;
    lw_cuda_attention a = s->a;
    const void *part[3];
    for (int i = 0; i < 3; i++) {
        int at = LW_MIN(i, s->n - 1);
        part[i] = (const char *)t->in[at] + (int64_t)(i - at) * s->channels * s->bytes;
    }
    a.q = part[0];
    a.k = part[1];
    a.v = part[2];
    a.o = t->out[0];
    a.lse = t->out[1];
    int64_t heads = s->rooms * a.heads;
    if (s->flash && s->bytes == 4 && full_aligned(a.q) && full_aligned(a.k) && full_aligned(a.v) &&
        full_aligned(a.o)) {
        a.tiles = LW_CEIL_DIV(s->most, 64);
        lw_cuda_launch(s->step.d,
                       a.hd <= 32   ? LW_CUDA_flash_f32_32
                       : a.hd <= 64 ? LW_CUDA_flash_f32_64
                                    : LW_CUDA_flash_f32_128,
                       heads * a.tiles, 1, &a);
        return;
    }
    if (s->flash && s->bytes == 2 && flash_aligned(a.hd, a.q) && flash_aligned(a.hd, a.k) &&
        flash_aligned(a.hd, a.v) && flash_aligned(a.hd, a.o)) {
        int i = flash_of(s);
        a.tiles = LW_CEIL_DIV(s->most, flash[i].queries);
        lw_cuda_launch(s->step.d, flash[i].kernel, heads * a.tiles, 1, &a);
        return;
    }
    lw_cuda_launch(s->step.d, s->bytes == 2 ? LW_CUDA_attention_bf16 : LW_CUDA_attention, heads,
                   LW_CEIL_DIV(s->most, LW_CUDA_QUERIES), &a);
}

int lw_cuda_lower_attention(cuda_lower *c)
{
    const lw_attr_attention *at = c->n->attr;
    lw_type o = cuda_out(c, 0);
    bool narrow = at->num == LW_NUM_BF16;
    if (!narrow)
        LW_TRY(lw_cuda_f32(c, -1));
    if (o.dim[2] / at->heads > LW_CUDA_HEAD)
        return lw_cuda_lacks(c, " with heads of more than 512 channels");
    if (o.dim[1] > 65535 * LW_CUDA_QUERIES)
        return lw_cuda_lacks(c, " of more than 1,048,560 tokens");
    attention_step *s = lw_cuda_arg(c, sizeof *s, attention_task);
    if (!s)
        return LW_ENOMEM;
    lw_cuda_attention *a = &s->a;
    int32_t *pitch[3] = {&a->q_pitch, &a->k_pitch, &a->v_pitch};
    int64_t *sample[3] = {&a->q_sample, &a->k_sample, &a->v_sample};
    s->rooms = o.dim[0];
    s->most = o.dim[1];
    s->n = c->n->n_in;
    s->channels = o.dim[2];
    s->bytes = narrow ? 2 : 4;
    a->store = o.dtype == LW_BF16;
    for (int i = 0; i < 3; i++) {
        lw_type part = cuda_in(c, LW_MIN(i, s->n - 1));
        *pitch[i] = part.dim[2];
        *sample[i] = (int64_t)part.dim[1] * part.dim[2];
    }
    a->tq = o.dim[1];
    a->tk = cuda_in(c, s->n - 1).dim[1];
    a->heads = at->heads;
    a->hd = o.dim[2] / at->heads;
    a->scale = (float)(1.0 / sqrt((double)a->hd));
    a->scale_2 = (float)(1.4426950408889634 / sqrt((double)a->hd));
    int32_t piece = narrow ? flash_piece(a->hd) : 4;
    s->flash = a->hd <= 128 && a->hd % piece == 0 && a->q_pitch % piece == 0 &&
               a->k_pitch % piece == 0 && a->v_pitch % piece == 0;
    if (at->window) {
        a->window = at->window;
        a->width = at->width;
        a->height = o.dim[1] / at->width;
        s->most = LW_MIN(a->window, a->width) * LW_MIN(a->window, a->height);
        s->rooms *= (int64_t)LW_CEIL_DIV(a->width, a->window) * LW_CEIL_DIV(a->height, a->window);
    }
    return 0;
}

/* ---- softmax --------------------------------------------------------------------------------- */

typedef struct softmax_step {
    cuda_step step;
    lw_cuda_softmax a;
    int64_t rows;
} softmax_step;

static void softmax_task(const lw_task *t)
{
    const softmax_step *s = t->arg;
    lw_cuda_softmax a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    lw_cuda_launch(s->step.d, LW_CUDA_softmax, s->rows, 1, &a);
}

int lw_cuda_lower_softmax(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, -1));
    softmax_step *s = lw_cuda_arg(c, sizeof *s, softmax_task);
    if (!s)
        return LW_ENOMEM;
    s->a.n = lw_type_last(cuda_in(c, 0));
    s->rows = lw_type_count(cuda_in(c, 0)) / s->a.n;
    return 0;
}

/* ---- cross-entropy --------------------------------------------------------------------------- */

typedef struct cross_entropy_step {
    cuda_step step;
    lw_cuda_cross_entropy a;
    int64_t rows;
} cross_entropy_step;

static void cross_entropy_task(const lw_task *t)
{
    const cross_entropy_step *s = t->arg;
    lw_cuda_cross_entropy a = s->a;
    a.loss = t->out[0];
    a.lse = t->out[1];
    a.x = t->in[0];
    a.label = t->in[1];
    lw_cuda_launch(s->step.d, LW_CUDA_cross_entropy, s->rows, 1, &a);
}

int lw_cuda_lower_cross_entropy(cuda_lower *c)
{
    LW_TRY(lw_cuda_f32(c, 1));
    cross_entropy_step *s = lw_cuda_arg(c, sizeof *s, cross_entropy_task);
    if (!s)
        return LW_ENOMEM;
    s->a.n = lw_type_last(cuda_in(c, 0));
    s->rows = lw_type_count(cuda_in(c, 0)) / s->a.n;
    return 0;
}
