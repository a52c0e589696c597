/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of kernels/cuda_port.h do in C: threads of a block that meet at barriers are fibers, in an order drawn anew
 * for every block, so that what one thread leaves to another without a barrier between them comes out wrong. Warps that wait
 * for their own lanes alone go on one before the other. Copies and products that go on by themselves happen no earlier than
 * they are waited for.
 */
#undef _FORTIFY_SOURCE /* whose longjmp knows one stack */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "cuda/emulated.h"

int lw_emu_tid, lw_emu_threads;
int64_t lw_emu_bx, lw_emu_by, lw_emu_blocks;

/* ---- fibers ---------------------------------------------------------------------------------- */

enum { THREADS = 512, WARP = 32, STACK = 1 << 16 };
typedef enum thread_state { UNBORN, READY, AT_WARP, AT_BLOCK, AT_COPY, DONE } thread_state;

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
static emulated_launch launch;
static uint32_t random_state = 1;
static int patience; /* rounds in which nobody but those who wait for copies go on */

__attribute__((noinline)) static void back(void)
{
    if (_setjmp(fibers[on].at) == 0)
        _longjmp(scheduler, 1);
}

static void wrong(const char *what)
{
    fprintf(stderr, "emulated driver: %s\n", what);
    abort();
}

/* Has it waited for the kernels before? */
static bool awaited[THREADS];

void lw_emu_await_before(void)
{
    awaited[lw_emu_tid] = true;
}

static void live(void)
{
    for (;;) {
        while (born < n_threads) {
            lw_emu_tid = order[born++];
            threads[lw_emu_tid].fiber = on;
            threads[lw_emu_tid].state = READY;
            launch.body(launch.args);
            threads[lw_emu_tid].state = DONE;
            if (!awaited[lw_emu_tid])
                wrong("a kernel that does not wait for those before");
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

/* Lets a block, or some of the warps that wait for their own lanes, go on; and those that wait for copies which nobody had
 * begun. 0: nobody can. */
static int let_go(int n)
{
    int warps = 0, let = 0, at_copy = count(AT_COPY, 0, n), at_block = count(AT_BLOCK, 0, n);
    if (at_block == n)
        return release(AT_BLOCK, 0, n);
    if (at_copy && at_copy + at_block + count(DONE, 0, n) == n && patience-- == 0)
        return 0;
    for (int w = 0; w < n; w += WARP)
        warps += count(AT_WARP, w, w + WARP) == WARP;
    while (warps && !let)
        for (int w = 0; w < n; w += WARP)
            if (count(AT_WARP, w, w + WARP) == WARP && draw() & 1)
                let += release(AT_WARP, w, w + WARP);
    if (at_copy)
        let += release(AT_COPY, 0, n);
    return let;
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

/* Until it is waited for, what is to be overwritten is no number. */
void lw_emu_copy(void *to, const void *from, int bytes, bool there)
{
    int *n = &n_copies[lw_emu_tid];
    uintptr_t size = (uintptr_t)bytes;
    if (*n == UNDERWAY || (uintptr_t)to % size || (there && (uintptr_t)from % size))
        wrong("a copy that is not aligned, or too many");
    if (there && !emulated_inside(from, size))
        wrong("a copy from behind a block of memory");
    if (there && !awaited[lw_emu_tid] && !emulated_still(from, size))
        wrong("a copy, before those before were waited for, of what they wrote");
    memset(to, 0xff, size);
    copies[lw_emu_tid][*n].bytes = bytes;
    copies[lw_emu_tid][*n].to = to;
    copies[lw_emu_tid][*n].from = from;
    copies[lw_emu_tid][*n].group = n_groups[lw_emu_tid];
    copies[lw_emu_tid][(*n)++].there = there;
}

void lw_emu_prefetch(const void *from, int bytes)
{
    if ((uintptr_t)from % 16 || bytes <= 0 || bytes % 16 || !emulated_inside(from, (size_t)bytes))
        wrong("asked for what is not aligned, or behind a block of memory");
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

_Alignas(1024) unsigned char lw_emu_shared[EMULATED_SHARED];
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

/* ---- copies that barriers count ------------------------------------------------------------------ */

enum { BULK = 32 };
static struct bulk {
    unsigned char *to;
    const void *from;
    uint32_t bytes;
    uint64_t *barrier;
} bulk[BULK];
static int n_bulk;
/* What a barrier holds: turns that are over; bytes that are to come in this one, of which so many are on their way. */
typedef struct barrier {
    uint16_t turns;
    uint8_t made, told;
    uint32_t left;
} barrier;
_Static_assert(sizeof(barrier) == sizeof(uint64_t), "a barrier");

static barrier *barrier_of(uint64_t *b)
{
    barrier *at = (barrier *)(void *)b;
    if ((uintptr_t)b % sizeof *b || (unsigned char *)b < lw_emu_shared ||
        (unsigned char *)(b + 1) > lw_emu_shared + launch.shared || at->made != 0x5a)
        wrong("a barrier that was not made");
    return at;
}

void lw_emu_barrier_make(uint64_t *b)
{
    *(barrier *)(void *)b = (barrier){.made = 0x5a};
}

void lw_emu_barrier_expect(uint64_t *b, uint32_t bytes)
{
    barrier *at = barrier_of(b);
    if (at->told)
        wrong("a barrier that is told of more before its turn is over");
    at->told = 1;
    at->left = bytes;
}

void lw_emu_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *b)
{
    if (n_bulk == BULK || ((uintptr_t)to | (uintptr_t)from | bytes) % 16)
        wrong("a copy that is not aligned, or too many");
    if ((unsigned char *)to < lw_emu_shared ||
        (unsigned char *)to + bytes > lw_emu_shared + launch.shared ||
        !emulated_inside(from, bytes))
        wrong("a copy from or to behind a block of memory");
    if (!awaited[lw_emu_tid] && !emulated_still(from, bytes))
        wrong("a copy, before those before were waited for, of what they wrote");
    barrier_of(b);
    memset(to, 0xff, bytes);
    bulk[n_bulk++] = (struct bulk){to, from, bytes, b};
}

static void land(const struct bulk *c)
{
    for (uint32_t k = 0; k < c->bytes; k++)
        if (c->to[k] != 0xff)
            wrong("written where a copy was underway to");
    memcpy(c->to, c->from, c->bytes);
    barrier_of(c->barrier)->left -= c->bytes;
}

void lw_emu_barrier_wait(uint64_t *b, uint32_t odd)
{
    barrier *at = barrier_of(b);
    int left = 0;
    if (at->turns % 2 != odd) /* that turn is over */
        return;
    while (!at->told && at->turns % 2 == odd)
        wait_at(AT_COPY);
    if (at->turns % 2 != odd)
        return;
    for (int i = 0; i < n_bulk; i++)
        if (bulk[i].barrier == b)
            land(&bulk[i]);
        else
            bulk[left++] = bulk[i];
    n_bulk = left;
    if (at->left)
        wrong("a barrier that waits for other bytes than come");
    at->told = 0;
    at->turns++;
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

/* ---- blocks ------------------------------------------------------------------------------------- */

/* What the block before left is no number. */
static void start_block(void)
{
    memset(n_copies, 0, sizeof n_copies);
    memset(not_for_cores, 0, sizeof not_for_cores);
    memset(n_products, 0, sizeof n_products);
    n_bulk = 0;
    memset(sums, 0, sizeof sums);
    memset(awaited, 0, sizeof awaited);
    memset(lw_emu_shared, 0xff, launch.shared);
}

/* Every thread up to its next barrier, until all are done. False: some left while others waited. */
static bool run_block(int n)
{
    if (n_idle < THREADS && !make_fibers()) /* at first, and when a block was given up */
        return false;
    shuffle(n);
    for (int i = 0; i < n; i++)
        threads[i].state = UNBORN;
    start_block();
    patience = 1000;
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

bool emulated_run_block(const emulated_launch *l)
{
    launch = *l;
    lw_emu_threads = l->threads;
    return run_block(l->threads);
}

void emulated_free_stacks(void)
{
    for (int i = 0; i < THREADS; i++)
        free(fibers[i].stack);
}
