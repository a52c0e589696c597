/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for machines without a GPU: memory is the host's, streams do everything at once,
 * and kernels are those of src/backend/cuda/kernels compiled as C, thread by thread. Threads of a
 * block that meet at barriers are fibers, in an order drawn anew for every block: what one thread
 * leaves to another without a barrier between them comes out wrong. Warps that wait for their own
 * lanes alone go on one before the other.
 *
 * LW_EMULATED_FAIL=k lets the k-th call fail (0: none), LW_EMULATED_GPU=none|old|stub plays machines
 * that cannot be used, 8.0 one without products of four warps, LW_EMULATED_BYTES is the memory that a device has. At exit of the program
 * LW_EMULATED_REPORT=FILE receives one line: calls made, kernels started, blocks of memory not freed.
 */
#undef _FORTIFY_SOURCE /* whose longjmp knows one stack */
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/kernels/cuda_port.h"

int lw_emu_tid, lw_emu_threads;
int64_t lw_emu_bx, lw_emu_by, lw_emu_blocks;

/* ---- fibers ---------------------------------------------------------------------------------- */

enum { THREADS = 256, WARP = 32, STACK = 1 << 16 };
typedef enum thread_state { UNBORN, READY, AT_WARP, AT_BLOCK, DONE } thread_state;

/* A stack on which threads run, one after the other as long as none of them waits. */
typedef struct fiber {
    ucontext_t first;
    jmp_buf at;
    char *stack;
    bool made;
} fiber;
static fiber fibers[THREADS];
static int idle[THREADS], n_idle; /* fibers on which nobody waits */
static struct {
    thread_state state;
    int fiber;
} threads[THREADS];
static int n_copies[THREADS], n_groups[THREADS]; /* each thread's, underway; groups it ended */
static int order[THREADS], born, n_threads, on;  /* on: the fiber that runs */
static jmp_buf scheduler;
static void (*body)(const void *);
static const void *body_args;
static size_t shared_bytes; /* of this launch */
static uint32_t random_state = 1;

__attribute__((noinline)) static void back(void)
{
    if (_setjmp(fibers[on].at) == 0)
        _longjmp(scheduler, 1);
}

static void live(void)
{
    for (;;) {
        while (born < n_threads) {
            lw_emu_tid = order[born++];
            threads[lw_emu_tid].fiber = on;
            threads[lw_emu_tid].state = READY;
            body(body_args);
            threads[lw_emu_tid].state = DONE;
        }
        idle[n_idle++] = on;
        back();
    }
}

static void wait_at(thread_state barrier)
{
    int me = lw_emu_tid;
    threads[me].state = barrier;
    back();
    lw_emu_tid = me;
}

void lw_emu_sync(void)
{
    wait_at(AT_BLOCK);
}

void lw_emu_sync_warp(void)
{
    wait_at(AT_WARP);
}

/* Runs a fiber until somebody on it waits or nobody is left to be born. */
__attribute__((noinline)) static void run_fiber(int i)
{
    on = i;
    if (_setjmp(scheduler) != 0)
        return;
    if (fibers[on].made)
        _longjmp(fibers[on].at, 1);
    fibers[on].made = true;
    setcontext(&fibers[on].first);
}

static uint32_t draw(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void shuffle(int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(draw() % (uint32_t)(i + 1)), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

static bool make_fiber(fiber *f)
{
    f->made = false;
    if (!f->stack)
        f->stack = malloc(STACK);
    if (!f->stack || getcontext(&f->first) != 0)
        return false;
    f->first.uc_stack.ss_sp = f->stack;
    f->first.uc_stack.ss_size = STACK;
    makecontext(&f->first, live, 0);
    return true;
}

static bool make_fibers(void)
{
    for (n_idle = 0; n_idle < THREADS; n_idle++) {
        idle[n_idle] = n_idle;
        if (!make_fiber(&fibers[n_idle]))
            return false;
    }
    return true;
}

static int count(thread_state s, int begin, int end)
{
    int n = 0;
    for (int i = begin; i < end; i++)
        n += threads[i].state == s;
    return n;
}

static int release(thread_state from, int begin, int end)
{
    for (int i = begin; i < end; i++)
        if (threads[i].state == from)
            threads[i].state = READY;
    return end - begin;
}

/* Lets a block, or some of the warps that wait for their own lanes, go on. 0: nobody can. */
static int let_go(int n)
{
    int warps = 0, released = 0;
    if (count(AT_BLOCK, 0, n) == n)
        return release(AT_BLOCK, 0, n);
    for (int w = 0; w < n; w += WARP)
        warps += count(AT_WARP, w, w + WARP) == WARP;
    while (warps && !released)
        for (int w = 0; w < n; w += WARP)
            if (count(AT_WARP, w, w + WARP) == WARP && draw() & 1)
                released += release(AT_WARP, w, w + WARP);
    return released;
}

static void start_block(void);

/* Every thread up to its next barrier, until all are done. False: some left while others waited. */
static bool run_block(int n)
{
    if (n_idle < THREADS && !make_fibers()) /* at first, and when a block was given up */
        return false;
    shuffle(n);
    for (int i = 0; i < n; i++)
        threads[i].state = UNBORN;
    start_block();
    born = 0;
    n_threads = n;
    while (born < n)
        run_fiber(idle[--n_idle]);
    while (count(DONE, 0, n) < n) {
        if (!let_go(n))
            return false; /* a barrier that not all threads reach */
        for (int i = 0; i < n; i++)
            if (threads[order[i]].state == READY) {
                lw_emu_tid = order[i];
                run_fiber(threads[order[i]].fiber);
            }
    }
    return true;
}

/* ---- copies that go on by themselves, and products of a warp ------------------------------------ */

enum { UNDERWAY = 64 };
static struct {
    void *to;
    const void *from;
    int bytes;
    bool there;
    int group;
} copies[THREADS][UNDERWAY];
static int n_groups[THREADS]; /* committed */
static bool
    not_for_cores[THREADS]; /* copies came that tensor cores may not read from shared memory yet */

static bool inside(lw_cu_ptr p, size_t n);

static void wrong(const char *what)
{
    fprintf(stderr, "emulated driver: %s\n", what);
    abort();
}

/* Until it is waited for, what is to be overwritten is no number. */
void lw_emu_copy(void *to, const void *from, int bytes, bool there)
{
    int *n = &n_copies[lw_emu_tid];
    uintptr_t size = (uintptr_t)bytes;
    if (*n == UNDERWAY || (uintptr_t)to % size || (there && (uintptr_t)from % size))
        wrong("a copy that is not aligned, or too many");
    if (there && !inside((lw_cu_ptr)(uintptr_t)from, size))
        wrong("a copy from behind a block of memory");
    memset(to, 0xff, size);
    copies[lw_emu_tid][*n].bytes = bytes;
    copies[lw_emu_tid][*n].to = to;
    copies[lw_emu_tid][*n].from = from;
    copies[lw_emu_tid][*n].group = n_groups[lw_emu_tid];
    copies[lw_emu_tid][(*n)++].there = there;
}

void lw_emu_copy_commit(void)
{
    n_groups[lw_emu_tid]++;
}

void lw_emu_copy_wait(int but)
{
    int left = 0;
    for (int i = 0; i < n_copies[lw_emu_tid]; i++) {
        char *to = copies[lw_emu_tid][i].to;
        if (copies[lw_emu_tid][i].group >= n_groups[lw_emu_tid] - but) {
            copies[lw_emu_tid][left++] = copies[lw_emu_tid][i];
            continue;
        }
        int bytes = copies[lw_emu_tid][i].bytes;
        for (int k = 0; k < bytes; k++)
            if (to[k] != (char)0xff)
                wrong("written where a copy was underway to");
        if (copies[lw_emu_tid][i].there)
            memcpy(to, copies[lw_emu_tid][i].from, (size_t)bytes);
        else
            memset(to, 0, (size_t)bytes);
        not_for_cores[lw_emu_tid] = true;
    }
    n_copies[lw_emu_tid] = left;
}

float lw_emu_bf16_to_float(uint16_t bits)
{
    return lw_bf16_to_float(bits);
}

float lw_emu_f16_to_float(uint16_t bits)
{
    uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest < 0x400u) { /* below 2^-14 */
        float size = (float)rest * 0x1p-24f;
        return sign ? -size : size;
    }
    return lw_bits_to_float(
        sign | (rest < 0x7c00u ? (rest << 13) + 0x38000000u : rest << 13 | 0x7f800000u));
}

/* To the nearest, even of two. */
uint16_t lw_emu_f16_bits(float x)
{
    uint32_t u = lw_float_to_bits(x), sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (u >= 0x47800000u)
        return (uint16_t)(sign | 0x7c00u);
    if (u < 0x38800000u)
        return (uint16_t)(sign | (uint32_t)rintf(fabsf(x) * 0x1p24f));
    return (uint16_t)(sign | (u + 0xfffu + (u >> 13 & 1u) - 0x38000000u) >> 13);
}

static double half_of(uint32_t two, int k, float (*number)(uint16_t bits))
{
    return (double)number((uint16_t)(k % 2 ? two >> 16 : two));
}

/* Tensor cores cut sums off where the FPU rounds them (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor
 * cores, 2021). */
static float cut(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits -= fabs((double)f) > fabs(x) && !isinf(x);
    memcpy(&f, &bits, sizeof f);
    return f;
}

void lw_emu_mma(float sum[4], const uint32_t left[4], const uint32_t right[2],
                float (*number)(uint16_t bits))
{
    static uint32_t l[THREADS][4], r[THREADS][2];
    int first = lw_emu_tid / WARP * WARP, lane = lw_emu_tid % WARP;
    memcpy(l[lw_emu_tid], left, sizeof l[0]);
    memcpy(r[lw_emu_tid], right, sizeof r[0]);
    lw_emu_sync_warp();
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double all = (double)sum[i];
        for (int k = 0; k < 16; k++)
            all += half_of(l[first + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k, number) *
                   half_of(r[first + column * 4 + k % 8 / 2][k / 8], k, number);
        sum[i] = cut(all);
    }
    lw_emu_sync_warp();
}

void lw_emu_ldmatrix(uint32_t out[4], const void *row, bool transposed)
{
    static uint16_t rows[THREADS][8]; /* as each lane finds its own */
    int first = lw_emu_tid / WARP * WARP, g = lw_emu_tid % WARP / 4, t = lw_emu_tid % 4 * 2;
    if ((uintptr_t)row % 16)
        wrong("a row of a matrix that is not aligned");
    memcpy(rows[lw_emu_tid], row, sizeof rows[0]);
    lw_emu_sync_warp();
    for (int i = 0; i < 4; i++) {
        uint16_t(*r)[8] = rows + first + i * 8;
        uint32_t low = transposed ? r[t][g] : r[g][t];
        uint32_t high = transposed ? r[t + 1][g] : r[g][t + 1];
        out[i] = low | high << 16;
    }
    lw_emu_sync_warp();
}

uint32_t lw_emu_shuffle_xor(uint32_t bits, int lane)
{
    static uint32_t of[THREADS];
    of[lw_emu_tid] = bits;
    lw_emu_sync_warp();
    bits = of[lw_emu_tid ^ lane];
    lw_emu_sync_warp();
    return bits;
}

/* ---- products of four warps, which go on by themselves ------------------------------------------ */

#define SHARED_BYTES 232448
_Alignas(1024) unsigned char lw_emu_shared[SHARED_BYTES];
enum { PRODUCTS = 64 };
/* Of products underway: what they are added to is no number to anyone until all of those were waited for. */
static struct group_sums {
    float *of, kept[64];
    int underway;
} sums[THREADS][2];
static struct group_product {
    struct group_sums *sum;
    const unsigned char *left, *right;
    int columns, group;
} products[THREADS][PRODUCTS];
static int n_products[THREADS], n_product_groups[THREADS];

void lw_emu_fence_for_cores(void)
{
    not_for_cores[lw_emu_tid] = false;
}

void lw_emu_group_product(float *sum, const void *left, const void *right, int columns)
{
    int *n = &n_products[lw_emu_tid];
    if (*n == PRODUCTS)
        wrong("too many products underway");
    for (int i = 0; i < n_threads; i++)
        if (not_for_cores[i])
            wrong("a product of what was copied, without a fence");
    struct group_sums *g = sums[lw_emu_tid];
    g += (g[1].underway && g[1].of == sum) || (g[0].underway && g[0].of != sum);
    if (g->underway++ == 0) {
        g->of = sum;
        memcpy(g->kept, sum, (size_t)columns / 2 * sizeof *sum);
        memset(sum, 0xff, (size_t)columns / 2 * sizeof *sum);
    }
    products[lw_emu_tid][(*n)++] = (struct group_product){g, left, right, columns,
                                                          n_product_groups[lw_emu_tid]};
}

void lw_emu_group_commit(void)
{
    n_product_groups[lw_emu_tid]++;
}

/* A number of rows of 128 bytes, whose pieces of 16 lie at their place xor the row's number modulo 8. */
static float swizzled(const unsigned char *from, int row, int k)
{
    size_t at = (size_t)(from - lw_emu_shared) + (size_t)row * 128 + (size_t)k * 2;
    uint16_t bits;
    at ^= (at >> 7 & 7) << 4;
    memcpy(&bits, lw_emu_shared + at, sizeof bits);
    return lw_bf16_to_float(bits);
}

static void multiply_late(float *sum, const unsigned char *left, const unsigned char *right,
                          int columns)
{
    int row = lw_emu_tid % 128 / WARP * 16 + lw_emu_tid % WARP / 4, from = lw_emu_tid % 4 * 2;
    float l[2][16], r[16];
    for (int k = 0; k < 16; k++) {
        l[0][k] = swizzled(left, row, k);
        l[1][k] = swizzled(left, row + 8, k);
    }
    for (int i = 0; i < columns / 4; i++) {
        int column = i / 2 * 8 + from + i % 2;
        for (int k = 0; k < 16; k++)
            r[k] = swizzled(right, column, k);
        for (int half = 0; half < 2; half++) {
            float *to = &sum[i / 2 * 4 + half * 2 + i % 2];
            double all = (double)*to;
            for (int k = 0; k < 16; k++)
                all += (double)l[half][k] * (double)r[k];
            *to = cut(all);
        }
    }
}

void lw_emu_group_wait(int but)
{
    int left = 0;
    for (int i = 0; i < n_products[lw_emu_tid]; i++) {
        struct group_product p = products[lw_emu_tid][i];
        bool later = p.group >= n_product_groups[lw_emu_tid] - but;
        if (later)
            products[lw_emu_tid][left++] = p;
        else
            multiply_late(p.sum->kept, p.left, p.right, p.columns);
        if (!later && --p.sum->underway == 0)
            memcpy(p.sum->of, p.sum->kept, (size_t)p.columns / 2 * sizeof(float));
    }
    n_products[lw_emu_tid] = left;
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define K(family, name, args, threads)     \
    void lw_kernel_##name(const args a);   \
    static void call_##name(const void *p) \
    {                                      \
        args a;                            \
        memcpy(&a, p, sizeof a);           \
        lw_kernel_##name(a);               \
    }
#include "backend/cuda/cuda_kernels.def"
#undef K

struct lw_cu_function {
    const char *name;
    void (*call)(const void *);
    size_t bytes;
    unsigned threads, shared, allowed;
};
static lw_cu_function kernels[] = {
#define K(family, name, args, threads) \
    {"lw_kernel_" #name, call_##name, sizeof(args), threads, 0, 0},
#define KS(family, name, args, threads, shared) \
    {"lw_kernel_" #name, call_##name, sizeof(args), threads, shared, 49152},
#include "backend/cuda/cuda_kernels.def"
#undef K
};

/* What the block before left is no number. */
static void start_block(void)
{
    memset(n_copies, 0, sizeof n_copies);
    memset(not_for_cores, 0, sizeof not_for_cores);
    memset(n_products, 0, sizeof n_products);
    memset(sums, 0, sizeof sums);
    memset(lw_emu_shared, 0xff, shared_bytes);
}

/* ---- the driver ------------------------------------------------------------------------------ */

enum {
    INVALID = 1,
    BLOCKS = 1 << 16,
    NO_CONTEXT = 201,
    LEFT_BARRIER = 719,
    IN_CAPTURE = 900,
    CAPTURE_LOST = 901
};
static long calls, launches;
static struct {
    void *p;
    size_t bytes;
} blocks[BLOCKS];
static int last_block; /* none behind it was ever used */
static int contexts, streams, modules, graphs, events;
static size_t used;
static int context_number; /* counts those that went */
static _Thread_local int entered_number = -1;

/* Is the context that the calling thread entered still there? */
static bool entered(void)
{
    return contexts > 0 && entered_number == context_number;
}

/* A launch with its arguments; a graph is a row of them. */
typedef struct node {
    lw_cu_function *f;
    unsigned gx, gy;
    char args[4096];
    struct node *next;
} node;
struct lw_cu_graph {
    node *first, *last;
};
struct lw_cu_graph_exec {
    lw_cu_graph graph;
};
static lw_cu_graph *captured; /* what the stream records; NULL: it does not */
static bool capture_lost;
static long replayed;

/* What the driver forbids while a stream records: it ends the capture, too. */
static bool forbidden(void)
{
    capture_lost |= captured != NULL;
    return captured != NULL;
}
#define IN_CONTEXT() \
    if (!entered())  \
    return NO_CONTEXT
#define NOT_IN_CAPTURE() \
    if (forbidden())     \
    return IN_CAPTURE

static const char *setting(const char *name)
{
    const char *v = getenv(name);
    return v ? v : "";
}

static bool fails(void)
{
    return ++calls == strtol(setting("LW_EMULATED_FAIL"), NULL, 10);
}
#define CALL(name, ...)        \
    int cu##name(__VA_ARGS__); \
    int cu##name(__VA_ARGS__)
#define FAIL_AT_WILL(code) \
    if (fails())           \
    return code

__attribute__((destructor)) static void report(void)
{
    int left = 0;
    const char *path = setting("LW_EMULATED_REPORT");
    for (int i = 0; i < BLOCKS; i++)
        left += blocks[i].p != NULL;
    for (int i = 0; i < THREADS; i++)
        free(fibers[i].stack);
    FILE *f = *path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f,
            "%ld calls, %ld kernels, %ld replays, %d blocks, %d contexts, %d streams, %d modules, "
            "%d graphs, %d events left\n",
            calls, launches, replayed, left, contexts, streams, modules, graphs, events);
    fclose(f);
}

static size_t memory_bytes(void)
{
    const char *all = setting("LW_EMULATED_BYTES");
    return *all ? (size_t)strtoull(all, NULL, 10) : (size_t)1 << 32;
}

CALL(Init, unsigned flags)
{
    FAIL_AT_WILL(999);
    if (strcmp(setting("LW_EMULATED_GPU"), "stub") == 0)
        return LW_CU_STUB;
    return strcmp(setting("LW_EMULATED_GPU"), "none") == 0 ? LW_CU_NO_DEVICE : (int)flags;
}
CALL(DriverGetVersion, int *v)
{
    FAIL_AT_WILL(999);
    *v = 13000;
    return 0;
}
CALL(DeviceGetCount, int *n)
{
    FAIL_AT_WILL(999);
    *n = 1;
    return 0;
}
CALL(DeviceGet, int *d, int i)
{
    FAIL_AT_WILL(101);
    *d = i;
    return i == 0 ? 0 : 101;
}
CALL(DeviceGetName, char *s, int n, int d)
{
    FAIL_AT_WILL(999);
    snprintf(s, (size_t)n, "emulated GPU");
    return d;
}
CALL(DeviceGetAttribute, int *v, int a, int d)
{
    FAIL_AT_WILL(999);
    const char *gpu = setting("LW_EMULATED_GPU");
    *v = a != LW_CU_CC_MAJOR ? 0 : strcmp(gpu, "old") == 0 ? 7 : strcmp(gpu, "8.0") == 0 ? 8 : 9;
    return d;
}
CALL(DeviceTotalMem_v2, size_t *n, int d)
{
    FAIL_AT_WILL(999);
    *n = memory_bytes();
    return d;
}
CALL(DevicePrimaryCtxRetain, lw_cu_context **c, int d)
{
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    *c = (void *)&contexts;
    contexts++;
    return d;
}
CALL(DevicePrimaryCtxRelease_v2, int d)
{
    context_number += --contexts == 0;
    return d;
}
CALL(CtxSetCurrent, lw_cu_context *c)
{
    if (c && entered()) /* there is one: nothing to do that could fail */
        return 0;
    FAIL_AT_WILL(NO_CONTEXT);
    entered_number = c ? context_number : -1;
    return c ? 0 : NO_CONTEXT;
}
CALL(ModuleLoadData, lw_cu_module **m, const void *image)
{
    FAIL_AT_WILL(209);
    IN_CONTEXT();
    *m = (void *)&modules;
    modules++;
    return image ? 0 : 200;
}
CALL(ModuleUnload, lw_cu_module *m)
{
    IN_CONTEXT();
    modules--;
    return m ? 0 : INVALID;
}
CALL(ModuleGetFunction, lw_cu_function **f, lw_cu_module *m, const char *name)
{
    FAIL_AT_WILL(500);
    IN_CONTEXT();
    for (size_t i = 0; m && i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *f = &kernels[i];
            return 0;
        }
    return 500;
}
CALL(FuncSetAttribute, lw_cu_function *f, int which, int v)
{
    FAIL_AT_WILL(INVALID);
    IN_CONTEXT();
    if (!f || which != LW_CU_SHARED_AT_LAUNCH || v < 0 || v > SHARED_BYTES)
        return INVALID;
    f->allowed = (unsigned)v;
    return 0;
}
CALL(MemGetInfo_v2, size_t *room, size_t *all)
{
    FAIL_AT_WILL(999);
    IN_CONTEXT();
    *all = memory_bytes();
    *room = *all > used ? *all - used : 0;
    return 0;
}
/* With a canary behind it, and nothing that was written before: both are no numbers, as f32 and as bf16. */
enum { CANARY = 64 };
static char canary(int k)
{
    return (char)(k % 2 ? 0xff : 0xc1);
}
CALL(MemAlloc_v2, lw_cu_ptr *p, size_t n)
{
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (n > memory_bytes() - used)
        return LW_CU_OUT_OF_MEMORY;
    for (int i = 0; i < BLOCKS; i++)
        if (!blocks[i].p) {
            char *q = aligned_alloc(256, (n + CANARY + 255) / 256 * 256);
            if (!q)
                return LW_CU_OUT_OF_MEMORY;
            memset(q, 0xff, n);
            for (int k = 0; k < CANARY; k++)
                q[n + (size_t)k] = canary(k);
            blocks[i].p = q;
            blocks[i].bytes = n;
            last_block = i > last_block ? i : last_block;
            used += n;
            *p = (lw_cu_ptr)(uintptr_t)q;
            return 0;
        }
    return LW_CU_OUT_OF_MEMORY;
}
CALL(MemFree_v2, lw_cu_ptr p)
{
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    for (int i = 0; i < BLOCKS; i++) {
        char *q = blocks[i].p;
        if (!q || (lw_cu_ptr)(uintptr_t)q != p)
            continue;
        for (int k = 0; k < CANARY; k++)
            if (q[blocks[i].bytes + (size_t)k] != canary(k)) {
                fprintf(stderr, "emulated driver: written behind a block of %zu bytes\n",
                        blocks[i].bytes);
                abort();
            }
        used -= blocks[i].bytes;
        blocks[i].p = NULL;
        free(q);
        return 0;
    }
    return INVALID;
}

/* Does [p, p + n) lie in a block? */
static bool inside(lw_cu_ptr p, size_t n)
{
    static int recent;
    for (int i = -1; i <= last_block; i++) {
        int k = i < 0 ? recent : i;
        lw_cu_ptr q = (lw_cu_ptr)(uintptr_t)blocks[k].p;
        if (q && p >= q && p + n <= q + blocks[k].bytes) {
            recent = k;
            return true;
        }
    }
    return false;
}
CALL(MemsetD8Async, lw_cu_ptr p, unsigned char v, size_t n, lw_cu_stream *s)
{
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!s || !inside(p, n))
        return INVALID;
    memset((void *)(uintptr_t)p, v, n);
    return 0;
}
CALL(MemcpyHtoDAsync_v2, lw_cu_ptr p, const void *h, size_t n, lw_cu_stream *s)
{
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!s || !inside(p, n))
        return INVALID;
    memcpy((void *)(uintptr_t)p, h, n);
    return 0;
}
CALL(MemcpyDtoHAsync_v2, void *h, lw_cu_ptr p, size_t n, lw_cu_stream *s)
{
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!s || !inside(p, n))
        return INVALID;
    memcpy(h, (const void *)(uintptr_t)p, n);
    return 0;
}
CALL(StreamCreate, lw_cu_stream **s, unsigned flags)
{
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    IN_CONTEXT();
    *s = (void *)&streams;
    streams++;
    return flags == LW_CU_STREAM_NON_BLOCKING ? 0 : INVALID;
}
CALL(StreamSynchronize, lw_cu_stream *s)
{
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    return s ? 0 : INVALID;
}
CALL(StreamDestroy_v2, lw_cu_stream *s)
{
    IN_CONTEXT();
    streams--;
    return s ? 0 : INVALID;
}

/* Streams do everything at once: an event is over when it is recorded. */
struct lw_cu_event {
    struct timespec at;
    bool recorded;
};
CALL(EventCreate, lw_cu_event **e, unsigned flags)
{
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    IN_CONTEXT();
    *e = calloc(1, sizeof **e);
    events += *e != NULL;
    return *e ? (int)flags : LW_CU_OUT_OF_MEMORY;
}
CALL(EventRecord, lw_cu_event *e, lw_cu_stream *s)
{
    FAIL_AT_WILL(700);
    NOT_IN_CAPTURE();
    if (!e || !s || !entered())
        return INVALID;
    e->recorded = true;
    return clock_gettime(CLOCK_MONOTONIC, &e->at);
}
CALL(EventSynchronize, lw_cu_event *e)
{
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    return e && e->recorded ? 0 : INVALID;
}
CALL(EventElapsedTime, float *ms, lw_cu_event *a, lw_cu_event *b)
{
    FAIL_AT_WILL(700);
    if (!a || !b || !a->recorded || !b->recorded)
        return INVALID;
    *ms = (float)(b->at.tv_sec - a->at.tv_sec) * 1e3f +
          (float)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6f;
    return 0;
}
CALL(EventDestroy_v2, lw_cu_event *e)
{
    IN_CONTEXT();
    events--;
    free(e);
    return 0;
}

/* Blocks run one after the other; threads of the program wait for each other. */
static int run_grid(lw_cu_function *f, const void *args, unsigned gx, unsigned gy)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int rc = 0;
    pthread_mutex_lock(&lock);
    launches++;
    body = f->call;
    body_args = args;
    lw_emu_threads = (int)f->threads;
    shared_bytes = f->shared;
    lw_emu_blocks = gx;
    for (lw_emu_by = 0; rc == 0 && lw_emu_by < gy; lw_emu_by++)
        for (lw_emu_bx = 0; rc == 0 && lw_emu_bx < gx; lw_emu_bx++)
            rc = run_block((int)f->threads) ? 0 : LEFT_BARRIER;
    if (rc)
        fprintf(stderr, "emulated driver: a barrier that not all threads of %s reach\n", f->name);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int keep_launch(lw_cu_function *f, const void *args, unsigned gx, unsigned gy)
{
    node *n = calloc(1, sizeof *n);
    if (!n || f->bytes > sizeof n->args)
        abort();
    n->f = f;
    n->gx = gx;
    n->gy = gy;
    memcpy(n->args, args, f->bytes);
    if (captured->last)
        captured->last->next = n;
    else
        captured->first = n;
    captured->last = n;
    return 0;
}
CALL(LaunchKernelEx, const lw_cu_launch *l, lw_cu_function *f, void **args, void **extra)
{
    FAIL_AT_WILL(719);
    if (!f || !l || !l->stream || extra || l->grid[2] != 1 || l->block[1] != 1 ||
        l->block[2] != 1 || l->shared != f->shared || l->shared > f->allowed ||
        l->block[0] != f->threads || !l->grid[0] || l->grid[0] > 0x7fffffffu || !l->grid[1] ||
        l->grid[1] > 65535u || (l->n_attributes && l->attributes[0].which != LW_CU_EARLY_START) ||
        l->n_attributes > 1)
        return INVALID;
    if (!entered())
        return NO_CONTEXT;
    return captured ? keep_launch(f, args[0], l->grid[0], l->grid[1])
                    : run_grid(f, args[0], l->grid[0], l->grid[1]);
}
CALL(StreamBeginCapture_v2, lw_cu_stream *s, int mode)
{
    FAIL_AT_WILL(999);
    IN_CONTEXT();
    if (!s || captured || mode != LW_CU_CAPTURE_THREAD_LOCAL)
        return INVALID;
    captured = calloc(1, sizeof *captured);
    capture_lost = false;
    return captured ? 0 : LW_CU_OUT_OF_MEMORY;
}

static void free_nodes(lw_cu_graph *g)
{
    for (node *n = g->first, *next; n; n = next) {
        next = n->next;
        free(n);
    }
}
/* Whatever it answers, nothing is recorded any more. */
CALL(StreamEndCapture, lw_cu_stream *s, lw_cu_graph **g)
{
    bool lost = capture_lost, told = fails();
    lw_cu_graph *made = captured;
    captured = NULL;
    *g = NULL;
    if (!s || !made)
        return INVALID;
    if (lost || told) {
        free_nodes(made);
        free(made);
        return CAPTURE_LOST;
    }
    *g = made;
    graphs++;
    return 0;
}
CALL(GraphInstantiateWithFlags, lw_cu_graph_exec **e, lw_cu_graph *g, unsigned long long flags)
{
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!g || !g->first || flags)
        return INVALID;
    *e = calloc(1, sizeof **e);
    if (!*e)
        return LW_CU_OUT_OF_MEMORY;
    (*e)->graph = *g; /* the nodes go over */
    g->first = g->last = NULL;
    graphs++;
    return 0;
}
CALL(GraphLaunch, lw_cu_graph_exec *e, lw_cu_stream *s)
{
    FAIL_AT_WILL(719);
    NOT_IN_CAPTURE();
    int rc = e && s && entered() ? 0 : INVALID;
    replayed++;
    for (node *n = e ? e->graph.first : NULL; n && rc == 0; n = n->next)
        rc = run_grid(n->f, n->args, n->gx, n->gy);
    return rc;
}
CALL(GraphExecDestroy, lw_cu_graph_exec *e)
{
    graphs--;
    free_nodes(&e->graph);
    free(e);
    return 0;
}
CALL(GraphDestroy, lw_cu_graph *g)
{
    graphs--;
    free_nodes(g);
    free(g);
    return 0;
}
CALL(GetErrorName, int e, const char **s)
{
    *s = e == LW_CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_EMULATED";
    return 0;
}
CALL(GetErrorString, int e, const char **s)
{
    *s = e ? "the emulated driver was told to fail" : "no error";
    return 0;
}
