/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as a device: opening it, its memory, running phases. */
#include "backend/cuda/cuda_private.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"

/* What nvcc made of kernels/cuda_<family>.cu; a word of zeros where there was none. */
#define F(family) extern const unsigned char lw_cuda_blob_##family[];
#include "backend/cuda/cuda_families.def"
#undef F

static const unsigned char *const blobs[] = {
#define F(family) lw_cuda_blob_##family,
#include "backend/cuda/cuda_families.def"
#undef F
};

static const struct {
    const char *name;
    int family;
    unsigned threads, shared;
} kernels[LW_CUDA_KERNELS] = {
#define K(family, name, args, threads) {"lw_kernel_" #name, LW_CUDA_FAMILY_##family, threads, 0},
#define KS(family, name, args, threads, bytes) \
    {"lw_kernel_" #name, LW_CUDA_FAMILY_##family, threads, bytes},
#include "backend/cuda/cuda_kernels.def"
#undef K
};

bool lw_cuda_built(void)
{
    return blobs[0][0] != 0;
}

int lw_cuda_check(cuda *d, int rc, const char *what)
{
    char text[200];
    if (rc == 0)
        return 0;
    if (!d->dev.failed) {
        snprintf(d->why, sizeof d->why, "%s: %s", what,
                 lw_cuda_error(&d->cu, rc, text, sizeof text));
        lw_backend_fail(d->why);
        d->dev.why = d->why;
    }
    d->dev.failed = true;
    return lw_fail(LW_EDEVICE, "%s: %s", d->dev.name, d->why);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *address(lw_cu_ptr p)
{
    return (void *)(uintptr_t)p;
}
static lw_cu_ptr device_ptr(const void *p)
{
    return (lw_cu_ptr)(uintptr_t)p;
}

static int fits(void *self, size_t bytes)
{
    cuda *d = self;
    char needed[32], free[32], whole[32];
    size_t room = 0, all = 0;
    LW_TRY(lw_cuda_enter(d));
    LW_TRY(lw_cuda_check(d, d->cu.MemGetInfo_v2(&room, &all), "asking for free memory"));
    if (bytes <= room)
        return 0;
    return lw_fail(LW_ENOMEM, "%s: no room for %s, %s of %s are free", d->dev.name,
                   lw_fmt_bytes(needed, bytes), lw_fmt_bytes(free, room), lw_fmt_bytes(whole, all));
}

static void *alloc_block(void *self, size_t bytes)
{
    cuda *d = self;
    lw_cu_ptr p = 0;
    if (fits(d, bytes) < 0)
        return NULL;
    int rc = d->cu.MemAlloc_v2(&p, LW_MAX(bytes, (size_t)1));
    if (rc == LW_CU_OUT_OF_MEMORY) { /* in pieces, or another program was faster */
        char needed[32];
        lw_fail(LW_ENOMEM, "%s: no room for %s in one piece", d->dev.name,
                lw_fmt_bytes(needed, bytes));
        return NULL;
    }
    if (lw_cuda_check(d, rc, "allocating") < 0)
        return NULL;
    if (lw_cuda_check(d, d->cu.MemsetD8Async(p, 0, bytes, d->stream), "clearing memory") < 0) {
        d->cu.MemFree_v2(p);
        return NULL;
    }
    return address(p);
}

static void free_block(void *self, void *p, size_t bytes)
{
    cuda *d = self;
    (void)bytes;
    if (!p)
        return;
    d->cu.CtxSetCurrent(d->context); /* what failed is freed, too */
    lw_cuda_check(d, d->cu.MemFree_v2(device_ptr(p)), "freeing memory");
}

/* Pages that stay where they are: the GPU fetches them by itself. What cannot be had so is any memory. */
static void *alloc_on_host(void *self, size_t bytes)
{
    cuda *d = self;
    void *p = NULL;
    return lw_cuda_enter(d) == 0 && d->cu.MemHostAlloc(&p, bytes, 0) == 0 ? memset(p, 0, bytes)
                                                                          : NULL;
}

static void free_on_host(void *self, void *p, size_t bytes)
{
    cuda *d = self;
    (void)bytes;
    d->cu.CtxSetCurrent(d->context); /* what failed is freed, too */
    lw_cuda_check(d, d->cu.MemFreeHost(p), "freeing memory");
}

static int begin_copy(cuda *d, void *p, const void *data, size_t bytes)
{
    LW_TRY(lw_cuda_enter(d));
    return lw_cuda_check(d, d->cu.MemcpyHtoDAsync_v2(device_ptr(p), data, bytes, d->stream),
                         "copying to it");
}

static void write_block(void *self, void *p, const void *data, size_t bytes)
{
    cuda *d = self;
    if (bytes && begin_copy(d, p, data, bytes) == 0)
        lw_cuda_check(d, d->cu.StreamSynchronize(d->stream), "copying to it");
}

/* What is begun behind it goes on while the host waits for the copy. */
static void send(void *self, void *p, const void *data, size_t bytes)
{
    cuda *d = self;
    if (bytes && begin_copy(d, p, data, bytes) == 0)
        lw_cuda_check(d, d->cu.EventRecord(d->sent, d->stream), "copying to it");
}

static void settle(void *self)
{
    cuda *d = self;
    if (lw_cuda_enter(d) == 0)
        lw_cuda_check(d, d->cu.EventSynchronize(d->sent), "copying to it");
}

/* What cannot be read is no number. */
static void read_block(void *self, void *data, const void *p, size_t bytes)
{
    cuda *d = self;
    if (bytes && lw_cuda_enter(d) == 0 &&
        lw_cuda_check(d, d->cu.MemcpyDtoHAsync_v2(data, device_ptr(p), bytes, d->stream),
                      "copying from it") == 0)
        lw_cuda_check(d, d->cu.StreamSynchronize(d->stream), "copying from it");
    if (d->dev.failed)
        memset(data, 0xff, bytes);
}

/* ---- running --------------------------------------------------------------------------------- */

int64_t lw_cuda_blocks(lw_cuda_kernel k, int64_t n)
{
    int64_t threads = kernels[k].threads;
    return LW_MIN(LW_CEIL_DIV(LW_MAX(n, 1), threads), (int64_t)1 << 20);
}

/* In recordings alone, where nothing is waited for but what the recording writes. Not tiles of products of f32: blocks that come
 * while others still have most multiprocessors pile up on the few that are free, and theirs are the longest. */
static bool starts_early(const cuda *d, lw_cuda_kernel k)
{
    return d->hopper && d->recording && k != LW_CUDA_ffma_128x128 && k != LW_CUDA_ffma_64x64;
}

/* cluster: neighbouring blocks that are one; 0: none are */
static void launch(cuda *d, lw_cuda_kernel k, int64_t blocks, int64_t across, int32_t cluster,
                   const void *args)
{
    void *copy[1] = {(void *)(uintptr_t)args};
    lw_cu_attribute attributes[2];
    unsigned n = 0;
    if (starts_early(d, k))
        attributes[n++] = (lw_cu_attribute){.which = LW_CU_EARLY_START, .value.number = 1};
    if (cluster)
        attributes[n++] = (lw_cu_attribute){.which = LW_CU_CLUSTER,
                                            .value.cluster = {(unsigned)cluster, 1, 1}};
    lw_cu_launch l = {.grid = {(unsigned)blocks, (unsigned)across, 1},
                      .block = {kernels[k].threads, 1, 1},
                      .shared = kernels[k].shared,
                      .stream = d->stream,
                      .attributes = attributes,
                      .n_attributes = n};
    if (d->dev.failed || blocks < 1 || across < 1)
        return;
    lw_cuda_check(d, d->cu.LaunchKernelEx(&l, d->kernel[k], copy, NULL), kernels[k].name);
}

void lw_cuda_launch(cuda *d, lw_cuda_kernel k, int64_t blocks, int64_t across, const void *args)
{
    launch(d, k, blocks, across, 0, args);
}

void lw_cuda_launch_clusters(cuda *d, lw_cuda_kernel k, int64_t blocks, int32_t of,
                             const void *args)
{
    launch(d, k, blocks, 1, of, args);
}

const lw_cuda_tick *lw_cuda_tick_at(const cuda *d)
{
    return address(d->tick_at);
}

uint32_t *lw_cuda_arrived(const cuda *d)
{
    return address(d->arrived);
}

/* The driver's contexts are a thread's own, and a thread goes from device to device. */
int lw_cuda_enter(cuda *d)
{
    if (d->dev.failed)
        return lw_fail(LW_EDEVICE, "%s: %s", d->dev.name, d->why);
    return lw_cuda_check(d, d->cu.CtxSetCurrent(d->context), "entering it");
}

/* By its value: a copy from memory of the host would wait for what was begun before, and a sampler's next step with it. */
static int set_word(cuda *d, lw_cu_ptr at, uint32_t value)
{
    return lw_cuda_check(d, d->cu.MemsetD32Async(at, value, 1, d->stream), "setting the tick");
}

int lw_cuda_follow(cuda *d, const lw_tick *tick)
{
    if (d->recording) /* by this thread, from its first launch on */
        return 0;
    LW_TRY(lw_cuda_enter(d));
    if (tick->seed == d->tick.seed && tick->step == d->tick.step)
        return 0;
    const lw_cuda_tick was = d->tick;
    d->tick = (lw_cuda_tick){.seed = tick->seed, .step = tick->step};
    for (int i = 0; i < 2 && tick->seed != was.seed; i++)
        LW_TRY(set_word(d, d->tick_at + (unsigned)i * 4, (uint32_t)(tick->seed >> 32 * i)));
    return set_word(d, d->tick_at + offsetof(lw_cuda_tick, step), tick->step);
}

int lw_cuda_go_on(const cuda *d)
{
    return lw_pool_should_stop(d->dev.pool) ? lw_fail(LW_ESTOPPED, "interrupted") : 0;
}

static int run(void *self, const lw_launch *l)
{
    cuda *d = self;
    if (l->may_stop && !d->recording)
        LW_TRY(lw_cuda_go_on(d));
    LW_TRY(lw_cuda_follow(d, l->task.tick));
    lw_backend_begin();
    if (l->low->phase[l->task.phase].n_tasks)
        l->low->phase[l->task.phase].fn(&l->task);
    return d->dev.failed ? lw_fail(LW_EDEVICE, "%s: %s", d->dev.name, d->why) : 0;
}

/* ---- lowering -------------------------------------------------------------------------------- */

static cuda_lower_fn *const lowerings[LW_OP_COUNT] = {
    [LW_OP_MATMUL] = lw_cuda_lower_matmul,
    [LW_OP_CONV2D] = lw_cuda_lower_conv2d,
    [LW_OP_CONV2D_DX] = lw_cuda_lower_conv2d_dx,
    [LW_OP_DEPTHWISE] = lw_cuda_lower_depthwise,
    [LW_OP_UPCONV_WEIGHT] = lw_cuda_lower_upconv_weight,
    [LW_OP_GROUP_NORM] = lw_cuda_lower_group_norm,
    [LW_OP_ATTENTION] = lw_cuda_lower_attention,
    [LW_OP_ROPE] = lw_cuda_lower_rope,
    [LW_OP_SOFTMAX] = lw_cuda_lower_softmax,
    [LW_OP_CROSS_ENTROPY] = lw_cuda_lower_cross_entropy,
    [LW_OP_EW] = lw_cuda_lower_ew,
    [LW_OP_REDUCE] = lw_cuda_lower_reduce,
    [LW_OP_CONCAT] = lw_cuda_lower_concat,
    [LW_OP_SLICE] = lw_cuda_lower_slice,
    [LW_OP_PAD] = lw_cuda_lower_pad,
    [LW_OP_SUBSAMPLE] = lw_cuda_lower_subsample,
    [LW_OP_UPSAMPLE] = lw_cuda_lower_upsample,
    [LW_OP_PATCHES] = lw_cuda_lower_patches,
    [LW_OP_POOL] = lw_cuda_lower_pool,
    [LW_OP_EMBEDDING] = lw_cuda_lower_embedding,
    [LW_OP_EMBEDDING_BAG] = lw_cuda_lower_embedding_bag,
    [LW_OP_PAIR_DISTANCE] = lw_cuda_lower_pair_distance,
    [LW_OP_FEATURE_STATS] = lw_cuda_lower_feature_stats,
    [LW_OP_RESIZE] = lw_cuda_lower_resize,
    [LW_OP_FRAME_TO_RGB] = lw_cuda_lower_frame_to_rgb,
    [LW_OP_RGB_TO_FRAME] = lw_cuda_lower_rgb_to_frame,
    [LW_OP_CAST] = lw_cuda_lower_cast,
    [LW_OP_PACK] = lw_cuda_lower_pack,
    [LW_OP_RANDOM] = lw_cuda_lower_random,
    [LW_OP_DROPOUT] = lw_cuda_lower_dropout,
    [LW_OP_AT_STEP] = lw_cuda_lower_at_step,
    [LW_OP_REVERSE_STEP] = lw_cuda_lower_reverse_step,
    [LW_OP_DRIFT_FIELD] = lw_cuda_lower_drift_field,
};

int lw_cuda_lacks(const cuda_lower *c, const char *what)
{
    lw_backend_refuse();
    return lw_fail(LW_EDEVICE, "'%s'%s is not computed on GPUs yet; use --device cpu",
                   lw_op_get(c->n->op)->name, what);
}

int lw_cuda_f32(const cuda_lower *c, int ids)
{
    for (int i = 0; i < c->n->n_in; i++)
        if (i != ids && cuda_has(c, i) && cuda_in(c, i).dtype != LW_F32)
            return lw_cuda_lacks(c, " of other numbers than f32");
    for (int i = 0; i < c->n->n_out; i++)
        if (cuda_out(c, i).dtype != LW_F32)
            return lw_cuda_lacks(c, " to other numbers than f32");
    return 0;
}

void *lw_cuda_arg(cuda_lower *c, size_t bytes, lw_task_fn *fn)
{
    cuda_step *s = lw_arena_alloc(c->arena, bytes);
    if (!s)
        return NULL;
    s->d = c->d;
    c->out->arg = s;
    c->out->n_phases = 1;
    c->out->phase[0].fn = fn;
    c->out->phase[0].n_tasks = 1;
    return s;
}

static int lower(void *self, lw_arena *a, const lw_graph *g, const lw_node *n, uint32_t fixed,
                 lw_lowered *out)
{
    cuda_lower c = {.d = self, .arena = a, .g = g, .n = n, .fixed = fixed, .out = out};
    *out = (lw_lowered){0};
    return lowerings[n->op] ? lowerings[n->op](&c) : lw_cuda_lacks(&c, "");
}

/* ---- training, which is not there yet -------------------------------------------------------- */

static int update(void *self, const lw_update *u, double *grad_norm)
{
    (void)u;
    (void)grad_norm;
    return lw_fail(LW_EDEVICE, "%s: weights are not trained on GPUs", ((cuda *)self)->dev.name);
}

/* Sums of gradients: no plan with gradients is lowered, so nobody has any. */
static void add(void *self, float *dst, const float *src, int64_t n)
{
    (void)dst;
    (void)src;
    (void)n;
    lw_cuda_check(self, 1, "adding gradients");
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_cuda(lw_device *dev)
{
    cuda *d = dev->self;
    if (d->context)
        d->cu.CtxSetCurrent(d->context);
    if (d->tick_at)
        d->cu.MemFree_v2(d->tick_at);
    if (d->arrived)
        d->cu.MemFree_v2(d->arrived);
    lw_cuda_free_marks(d);
    if (d->sent)
        d->cu.EventDestroy_v2(d->sent);
    for (int i = 0; i < LW_CUDA_AHEAD; i++)
        if (d->begun[i])
            d->cu.EventDestroy_v2(d->begun[i]);
    if (d->stream)
        d->cu.StreamDestroy_v2(d->stream);
    for (int i = 0; i < LW_CUDA_FAMILIES; i++)
        if (d->module[i])
            d->cu.ModuleUnload(d->module[i]);
    if (d->retained)
        d->cu.DevicePrimaryCtxRelease_v2(d->number);
    lw_cuda_driver_close(&d->cu);
    if (d->host)
        d->host->close(d->host);
    lw_free(&d);
}

/* What fails while it is opened has spoilt nothing: --device auto takes the CPU then, unlike behind lw_cuda_check. */
static int opening(const cuda *d, int rc, const char *what)
{
    char text[200];
    return rc == 0 ? 0
                   : lw_fail(rc == LW_CU_OUT_OF_MEMORY ? LW_ENOMEM : LW_EDEVICE, "%s: %s: %s",
                             d->dev.name, what, lw_cuda_error(&d->cu, rc, text, sizeof text));
}

/* Does this GPU have the instructions of the family? */
static bool has_family(const cuda *d, int family)
{
    return family != LW_CUDA_FAMILY_wgmma || d->hopper;
}

/* Where a block may have less shared memory than it needs, there is none (f32 tiles of 128 by 128, and 100 KiB). */
static int find_kernel(cuda *d, int k, int shared)
{
    const char *name = kernels[k].name;
    if (kernels[k].shared > (unsigned)shared)
        return 0;
    LW_TRY(opening(d, d->cu.ModuleGetFunction(&d->kernel[k], d->module[kernels[k].family], name),
                   name));
    if (!kernels[k].shared)
        return 0;
    return opening(
        d, d->cu.FuncSetAttribute(d->kernel[k], LW_CU_SHARED_AT_LAUNCH, (int)kernels[k].shared),
        name);
}

/* The kernels, on the device that is current. */
static int load_kernels(cuda *d)
{
    char why[256];
    int major = 0, minor = 0, shared = 0, device = 0;
    LW_TRY(opening(d, d->cu.DeviceGet(&device, d->number), "finding it"));
    LW_TRY(opening(d, d->cu.DeviceGetAttribute(&major, LW_CU_CC_MAJOR, device), "asking it"));
    LW_TRY(opening(d, d->cu.DeviceGetAttribute(&minor, LW_CU_CC_MINOR, device), "asking it"));
    LW_TRY(opening(d, d->cu.DeviceGetAttribute(&d->multiprocessors, LW_CU_MULTIPROCESSORS, device),
                   "asking it"));
    LW_TRY(opening(d, d->cu.DeviceGetAttribute(&shared, LW_CU_SHARED_MOST, device), "asking it"));
    d->hopper = major == 9 && minor == 0;
    for (int i = 0; i < LW_CUDA_FAMILIES; i++) {
        if (!has_family(d, i))
            continue;
        int rc = d->cu.ModuleLoadData(&d->module[i], blobs[i]);
        if (rc != 0 && !lw_cuda_built())
            return lw_fail(LW_EDEVICE,
                           "%s: this program was built without nvcc and has no kernels "
                           "for GPUs",
                           d->name);
        if (rc != 0)
            return lw_fail(LW_EDEVICE, "%s: the driver does not take the kernels (too old?): %s",
                           d->name, lw_cuda_error(&d->cu, rc, why, sizeof why));
    }
    for (int i = 0; i < LW_CUDA_KERNELS; i++)
        if (has_family(d, kernels[i].family))
            LW_TRY(find_kernel(d, i, shared));
    return 0;
}

/* The GPU's name and whether it is new enough. */
static int look_at(const lw_cuda_driver *cu, int number, char *line, size_t size)
{
    char name[128] = "?", why[128];
    int device = 0, major = 0, minor = 0, version = 0, rc;
    size_t bytes = 0;
    if ((rc = cu->DeviceGet(&device, number)) ||
        (rc = cu->DeviceGetName(name, sizeof name, device)) ||
        (rc = cu->DeviceGetAttribute(&major, LW_CU_CC_MAJOR, device)) ||
        (rc = cu->DeviceGetAttribute(&minor, LW_CU_CC_MINOR, device)) ||
        (rc = cu->DeviceTotalMem_v2(&bytes, device)) || (rc = cu->DriverGetVersion(&version)))
        return lw_fail(LW_EDEVICE, "cuda:%d does not answer: %s", number,
                       lw_cuda_error(cu, rc, why, sizeof why));
    snprintf(line, size, "cuda:%d  %s, compute capability %d.%d, %.0f GB, driver for CUDA %d.%d",
             number, name, major, minor, (double)bytes * 1e-9, version / 1000, version % 1000 / 10);
    return major >= 8 ? 0
                      : lw_fail(LW_EDEVICE,
                                "cuda:%d (%s) is too old: compute capability %d.%d, "
                                "needed is 8.0",
                                number, name, major, minor);
}

static int no_such(int number, int n)
{
    return lw_fail(LW_EDEVICE, "there is no cuda:%d: the driver sees %d GPU%s", number, n,
                   n == 1 ? "" : "s");
}

int lw_cuda_describe(int i, char *line, size_t size)
{
    lw_cuda_driver cu;
    int n = 0;
    LW_TRY(lw_cuda_driver_open(&cu, &n));
    int rc = i < n ? look_at(&cu, i, line, size) : no_such(i, n);
    lw_cuda_driver_close(&cu);
    return rc;
}

int lw_cuda_count(void)
{
    lw_cuda_driver cu;
    int n = 0;
    if (lw_cuda_driver_open(&cu, &n) < 0)
        return 0;
    lw_cuda_driver_close(&cu);
    return n;
}

static int open_device(cuda *d)
{
    char line[256];
    int n = 0, device = 0;
    LW_TRY(lw_cuda_driver_open(&d->cu, &n));
    if (d->number >= n)
        return no_such(d->number, n);
    LW_TRY(look_at(&d->cu, d->number, line, sizeof line));
    LW_TRY(opening(d, d->cu.DeviceGet(&device, d->number), "opening it"));
    LW_TRY(opening(d, d->cu.DevicePrimaryCtxRetain(&d->context, device), "opening it"));
    d->retained = true;
    d->number = device;
    LW_TRY(opening(d, d->cu.CtxSetCurrent(d->context), "opening it"));
    LW_TRY(load_kernels(d));
    LW_TRY(
        opening(d, d->cu.StreamCreate(&d->stream, LW_CU_STREAM_NON_BLOCKING), "making a stream"));
    LW_TRY(opening(d, d->cu.EventCreate(&d->sent, LW_CU_EVENT_DISABLE_TIMING), "making an event"));
    for (int i = 0; i < LW_CUDA_AHEAD; i++)
        LW_TRY(opening(d, d->cu.EventCreate(&d->begun[i], LW_CU_EVENT_DISABLE_TIMING),
                       "making an event"));
    LW_TRY(opening(d, d->cu.MemAlloc_v2(&d->tick_at, sizeof d->tick), "allocating"));
    LW_TRY(opening(d, d->cu.MemsetD8Async(d->tick_at, 0, sizeof d->tick, d->stream),
                   "clearing memory"));
    const size_t arrived = LW_CUDA_TILES * sizeof(uint32_t);
    LW_TRY(opening(d, d->cu.MemAlloc_v2(&d->arrived, arrived), "allocating"));
    return opening(d, d->cu.MemsetD8Async(d->arrived, 0, arrived, d->stream), "clearing memory");
}

/* As it is written here: no sign, no blank, no other text of a number. False: it is no name of a GPU. */
static bool number_of(const char *name, int *number)
{
    char as_written[16];
    const long n = name[4] ? strtol(name + 5, NULL, 10) : 0;
    snprintf(as_written, sizeof as_written, name[4] ? "cuda:%ld" : "cuda", n);
    *number = (int)n;
    return n >= 0 && n <= 1023 && lw_str_eq(name, as_written);
}

static int no_name(const char *name)
{
    return lw_fail(LW_EUSAGE, "--device %s: must be cpu, auto, cuda[:N] or mps", name);
}

int lw_cuda_there(const char *name)
{
    char line[256];
    int number = 0;
    return number_of(name, &number) ? lw_cuda_describe(number, line, sizeof line) : no_name(name);
}

int lw_cuda_check_name(const char *name)
{
    int number;
    return number_of(name, &number)
               ? 0
               : lw_fail(LW_EUSAGE, "LW_DEVICE=%s: must be cpu or cuda[:N]", name);
}

int lw_cuda_open(const char *name, const lw_backend_options *o, lw_device **out)
{
    int number = 0;
    if (!number_of(name, &number))
        return no_name(name);
    cuda *d = lw_calloc(1, sizeof *d);
    if (!d)
        return LW_ENOMEM;
    d->number = number;
    snprintf(d->name, sizeof d->name, "cuda:%d", number);
    d->dev = (lw_device){.name = d->name, .self = d};
    d->memory = (lw_memory){.self = d,
                            .alloc = alloc_block,
                            .free = free_block,
                            .fits = fits,
                            .read = read_block,
                            .write = write_block,
                            .host_alloc = alloc_on_host,
                            .host_free = free_on_host,
                            .send = send,
                            .settle = settle};
    int rc = open_device(d);
    if (rc == 0)
        rc = lw_cpu_open(o, &d->host);
    if (rc < 0) {
        close_cuda(&d->dev);
        return rc;
    }
    d->dev = (lw_device){.name = d->name,
                         .isa = "cuda",
                         .pool = d->host->pool,
                         .kernels = d->host->kernels,
                         .memory = &d->memory,
                         .self = d,
                         .lower = lower,
                         .pack = lw_cuda_wants_pack,
                         .project = d->hopper ? lw_cuda_projects : NULL,
                         .pitched = lw_cuda_pitched,
                         .bf16_values = true,
                         .f32_to_bf16 = true,
                         .run = run,
                         .replay = lw_cuda_replay,
                         .forget = lw_cuda_forget,
                         .mark = lw_cuda_mark,
                         .elapsed = lw_cuda_elapsed,
                         .update = update,
                         .add = add,
                         .copy = add,
                         .close = close_cuda};
    *out = &d->dev;
    return 0;
}
