/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of kernels/cuda_port.h do in C: threads of a block, or of all blocks of a cluster, that meet at barriers are
 * fibers, in an order drawn anew each time, so that what one thread leaves to another without a barrier between them comes out wrong. Warps that wait
 * for their own lanes alone go on one before the other. Copies and products that go on by themselves happen no earlier than
 * they are waited for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "cuda/emulated.h"

int lw_emu_tid, lw_emu_threads;
int64_t lw_emu_bx, lw_emu_by, lw_emu_blocks;

/* ---- fibers ---------------------------------------------------------------------------------- */

enum { THREADS = EMULATED_THREADS, WARP = 32, STACK = 1 << 16 };
typedef enum thread_state {
    UNBORN,
    READY,
    AT_WARP,
    AT_BLOCK,
    AT_CLUSTER,
    AT_COPY,
    DONE,
    STATES
} thread_state;
/* Where to go on: frame, stack and place, all that the compiler's own setjmp keeps. The C library's, which keeps every register,
 * took as long as what the threads did. */
typedef void *place[5];
#ifdef __clang__
#define LEAPS __attribute__((noinline))
#else
#define LEAPS \
    __attribute__((noipa)) /* callers may not count on registers that it does not seem to touch */
#endif

/* A stack on which threads run, one after the other as long as none of them waits. */
typedef struct fiber {
    ucontext_t first;
    place at;
    char *stack;
    bool made;
} fiber;
static fiber fibers[THREADS];
static int idle[THREADS], n_idle; /* fibers on which nobody waits */
static struct {
    thread_state state;
    int fiber;
} threads[THREADS];
static int in_state[STATES],
    warp_waits[THREADS / WARP],   /* threads; those of each warp that are AT_WARP */
    block_waits[LW_CUDA_CLUSTER]; /* of each block AT_BLOCK */
static int self;                  /* the thread that runs, among those of the cluster */
static int64_t first_block;       /* of the cluster */
static int came[THREADS],
    all_came; /* how often each thread came to the cluster's barrier; all of them together */
static int n_copies[THREADS], n_groups[THREADS]; /* each thread's, underway; groups it ended */
static int order[THREADS], born, n_threads, on;  /* on: the fiber that runs */
static place scheduler;
static emulated_launch launch;
static uint32_t random_state = 1;
static int patience; /* rounds in which nobody but those who wait for copies go on */

LEAPS __attribute__((noreturn)) static void go_to(place p)
{
    __builtin_longjmp(p, 1);
}

LEAPS static void back(void)
{
    if (__builtin_setjmp(fibers[on].at) == 0)
        go_to(scheduler);
}

/* Of the cluster. */
static int block_of(int thread)
{
    return n_threads == lw_emu_threads ? 0 : thread / lw_emu_threads;
}

static void enter(int thread, thread_state s)
{
    thread_state was = threads[thread].state;
    threads[thread].state = s;
    in_state[was]--;
    in_state[s]++;
    warp_waits[thread / WARP] += (s == AT_WARP) - (was == AT_WARP);
    block_waits[block_of(thread)] += (s == AT_BLOCK) - (was == AT_BLOCK);
}

static unsigned char *shared_of(int block)
{
    _Alignas(1024) static unsigned char shared[LW_CUDA_CLUSTER][EMULATED_SHARED];
    return shared[block];
}

/* What kernels see is that thread's from here on. */
static void become(int thread)
{
    int block = block_of(thread);
    self = thread;
    lw_emu_tid = thread - block * lw_emu_threads;
    lw_emu_bx = first_block + block;
    lw_emu_shared = shared_of(block);
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
    awaited[self] = true;
}

static void live(void)
{
    for (;;) {
        while (born < n_threads) {
            become(order[born++]);
            threads[self].fiber = on;
            enter(self, READY);
            launch.body(launch.args);
            enter(self, DONE);
            if (!awaited[self])
                wrong("a kernel that does not wait for those before");
        }
        idle[n_idle++] = on;
        back();
    }
}

static void wait_at(thread_state barrier)
{
    int me = self;
    enter(me, barrier);
    back();
    become(me);
}

void lw_emu_sync(void)
{
    wait_at(AT_BLOCK);
}

void lw_emu_sync_warp(void)
{
    wait_at(AT_WARP);
}

void lw_emu_cluster_arrive(void)
{
    if (came[self]++ * n_threads > all_came)
        wrong("a thread that comes to the cluster's barrier again, before it waited there");
    all_came++;
}

void lw_emu_cluster_wait(void)
{
    while (all_came < came[self] * n_threads)
        wait_at(AT_CLUSTER);
}

/* A block that is through has no shared memory any more. */
const void *lw_emu_in_cluster(const void *own, int block)
{
    for (int i = 0; i < lw_emu_threads; i++)
        if (threads[block * lw_emu_threads + i].state == DONE)
            wrong("read from a block of the cluster that may be gone");
    return shared_of(block) + ((const unsigned char *)own - lw_emu_shared);
}

/* Runs a fiber until somebody on it waits or nobody is left to be born. */
LEAPS static void run_fiber(int i)
{
    on = i;
    if (__builtin_setjmp(scheduler) != 0)
        return;
    if (fibers[on].made)
        go_to(fibers[on].at);
    fibers[on].made = true;
    setcontext(&fibers[on].first);
    wrong(
        "a fiber that cannot be entered"); /* and no last call, for which this frame would be given up */
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

static int release(thread_state from, int begin, int end)
{
    for (int i = begin; i < end; i++)
        if (threads[i].state == from)
            enter(i, READY);
    return end - begin;
}

/* Lets blocks, the cluster, or some of the warps that wait for their own lanes, go on; and those that wait for copies which
 * nobody had begun. 0: nobody can. */
static int let_go(int n)
{
    int warps = 0, let = 0, at_copy = in_state[AT_COPY];
    for (int b = 0; b < n / lw_emu_threads; b++)
        if (block_waits[b] == lw_emu_threads)
            let += release(AT_BLOCK, b * lw_emu_threads, (b + 1) * lw_emu_threads);
    for (int i = 0; i < n && in_state[AT_CLUSTER]; i++)
        if (threads[i].state == AT_CLUSTER && all_came >= came[i] * n)
            let += release(AT_CLUSTER, i, i + 1);
    if (let)
        return let;
    if (at_copy && at_copy + in_state[AT_BLOCK] + in_state[AT_CLUSTER] + in_state[DONE] == n &&
        patience-- == 0)
        return 0;
    for (int w = 0; w < n; w += WARP)
        warps += warp_waits[w / WARP] == WARP;
    while (warps && !let)
        for (int w = 0; w < n; w += WARP)
            if (warp_waits[w / WARP] == WARP && draw() & 1)
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
/* Copies came that tensor cores may not read from shared memory yet; threads that had some. */
static bool not_for_cores[THREADS];
static int n_not_for_cores;

static void for_cores(bool ready)
{
    n_not_for_cores += !ready - not_for_cores[self];
    not_for_cores[self] = !ready;
}

/* Nobody wrote there since a copy to there began. */
static void untouched(const void *to, size_t bytes)
{
    static const unsigned char no_numbers[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                 255, 255, 255, 255, 255, 255, 255, 255};
    for (size_t k = 0; k < bytes; k += sizeof no_numbers)
        if (memcmp((const char *)to + k, no_numbers,
                   bytes - k < sizeof no_numbers ? bytes - k : sizeof no_numbers) != 0)
            wrong("written where a copy was underway to");
}

/* Until it is waited for, what is to be overwritten is no number. */
void lw_emu_copy(void *to, const void *from, int bytes, bool there)
{
    int *n = &n_copies[self];
    uintptr_t size = (uintptr_t)bytes;
    if (*n == UNDERWAY || (uintptr_t)to % size || (there && (uintptr_t)from % size))
        wrong("a copy that is not aligned, or too many");
    if (there && !emulated_inside(from, size))
        wrong("a copy from behind a block of memory");
    if (there && !awaited[self] && !emulated_still(from, size))
        wrong("a copy, before those before were waited for, of what they wrote");
    memset(to, 0xff, size);
    copies[self][*n].bytes = bytes;
    copies[self][*n].to = to;
    copies[self][*n].from = from;
    copies[self][*n].group = n_groups[self];
    copies[self][(*n)++].there = there;
}

void lw_emu_prefetch(const void *from, int bytes)
{
    if ((uintptr_t)from % 16 || bytes <= 0 || bytes % 16 || !emulated_inside(from, (size_t)bytes))
        wrong("asked for what is not aligned, or behind a block of memory");
}

void lw_emu_copy_commit(void)
{
    n_groups[self]++;
}

void lw_emu_copy_wait(int but)
{
    int left = 0;
    for (int i = 0; i < n_copies[self]; i++) {
        char *to = copies[self][i].to;
        if (copies[self][i].group >= n_groups[self] - but) {
            copies[self][left++] = copies[self][i];
            continue;
        }
        size_t bytes = (size_t)copies[self][i].bytes;
        untouched(to, bytes);
        if (copies[self][i].there)
            memcpy(to, copies[self][i].from, bytes);
        else
            memset(to, 0, bytes);
        for_cores(false);
    }
    n_copies[self] = left;
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

/* Of two places where lanes leave something for each other, the one in turn: whoever comes to it again has met all lanes at the
 * other, who therefore are through with this one. */
static int turns[THREADS];

static int next_turn(void)
{
    return turns[self]++ & 1;
}

/* The numbers in n words, the lower half first. */
static void halves(float *to, const uint32_t *words, int n, float (*number)(uint16_t bits))
{
    for (int i = 0; i < n; i++) {
        to[2 * i] = number((uint16_t)words[i]);
        to[2 * i + 1] = number((uint16_t)(words[i] >> 16));
    }
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
    static float lefts[2][THREADS][8], rights[2][THREADS][4];
    int first = self / WARP * WARP, lane = self % WARP, turn = next_turn();
    float(*l)[8] = lefts[turn], (*r)[4] = rights[turn];
    halves(l[self], left, 4, number);
    halves(r[self], right, 2, number);
    lw_emu_sync_warp();
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double all = (double)sum[i];
        for (int k = 0; k < 16; k++)
            all += (double)l[first + row % 8 * 4 + k % 8 / 2][row / 8 * 2 + k / 8 * 4 + k % 2] *
                   (double)r[first + column * 4 + k % 8 / 2][k / 8 * 2 + k % 2];
        sum[i] = cut(all);
    }
}

void lw_emu_ldmatrix(uint32_t out[4], const void *row, bool transposed)
{
    static uint16_t all[2][THREADS][8]; /* as each lane finds its own */
    int first = self / WARP * WARP, g = self % WARP / 4, t = self % 4 * 2;
    uint16_t(*rows)[8] = all[next_turn()];
    if ((uintptr_t)row % 16)
        wrong("a row of a matrix that is not aligned");
    memcpy(rows[self], row, sizeof rows[0]);
    lw_emu_sync_warp();
    for (int i = 0; i < 4; i++) {
        uint16_t(*r)[8] = rows + first + i * 8;
        uint32_t low = transposed ? r[t][g] : r[g][t];
        uint32_t high = transposed ? r[t + 1][g] : r[g][t + 1];
        out[i] = low | high << 16;
    }
}

uint32_t lw_emu_shuffle_xor(uint32_t bits, int lane)
{
    static uint32_t all[2][THREADS];
    uint32_t *of = all[next_turn()];
    of[self] = bits;
    lw_emu_sync_warp();
    return of[self ^ lane];
}

/* ---- products of four warps, which go on by themselves ------------------------------------------ */

unsigned char *lw_emu_shared;
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
    for_cores(true);
}

void lw_emu_group_product(float *sum, const void *left, const void *right, int columns)
{
    int *n = &n_products[self];
    if (*n == PRODUCTS)
        wrong("too many products underway");
    if (n_not_for_cores)
        wrong("a product of what was copied, without a fence");
    struct group_sums *g = sums[self];
    g += (g[1].underway && g[1].of == sum) || (g[0].underway && g[0].of != sum);
    if (g->underway++ == 0) {
        g->of = sum;
        memcpy(g->kept, sum, (size_t)columns / 2 * sizeof *sum);
        memset(sum, 0xff, (size_t)columns / 2 * sizeof *sum);
    }
    products[self][(*n)++] = (struct group_product){g, left, right, columns,
                                                    n_product_groups[self]};
}

void lw_emu_group_commit(void)
{
    n_product_groups[self]++;
}

/* ---- copies that barriers count ------------------------------------------------------------------ */

enum { BULK = 32 * LW_CUDA_CLUSTER };
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
    if (!awaited[self] && !emulated_still(from, bytes))
        wrong("a copy, before those before were waited for, of what they wrote");
    barrier_of(b);
    memset(to, 0xff, bytes);
    bulk[n_bulk++] = (struct bulk){to, from, bytes, b};
}

static void land(const struct bulk *c)
{
    untouched(c->to, c->bytes);
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

enum { GROUP_DEPTH = 16, GROUP_COLUMNS = 128 };

/* Half of the 16 numbers of a row of 128 bytes, whose pieces of 16 lie at their place xor the row's number modulo 8. */
static const unsigned char *swizzled(const unsigned char *from, int row, int half)
{
    size_t at = (size_t)(from - lw_emu_shared) + (size_t)row * 128 + (size_t)half * 16;
    return lw_emu_shared + (at ^ (at >> 7 & 7) << 4);
}

/* A right side as numbers, [lane % 4][k] of that lane's columns, 8 i + 2 (lane % 4) and the one behind. 128 threads multiply
 * by the same, one after the other: it is read anew where bytes have changed since. */
typedef struct right_side {
    uint16_t bits[GROUP_COLUMNS][2][GROUP_DEPTH / 2];
    double of[4][GROUP_DEPTH][GROUP_COLUMNS / 4];
} right_side;

static const right_side *right_side_of(const unsigned char *right, int columns)
{
    static right_side recent[LW_CUDA_CLUSTER][16];
    right_side *r =
        &recent[block_of(self)][(uintptr_t)right / 32 % 4 + (uintptr_t)right / 16384 % 4 * 4];
    for (int j = 0; j < columns; j++)
        for (int half = 0; half < 2; half++) {
            const unsigned char *now = swizzled(right, j, half);
            if (memcmp(r->bits[j][half], now, 16) == 0)
                continue;
            memcpy(r->bits[j][half], now, 16);
            for (int k = 0; k < 8; k++)
                r->of[j % 8 / 2][half * 8 + k][j / 8 * 2 + j % 2] =
                    (double)lw_bf16_to_float(r->bits[j][half][k]);
        }
    return r;
}

static void multiply_late(float *sum, const unsigned char *left, const unsigned char *right,
                          int columns)
{
    enum { FOURS = 4 };
    typedef double four __attribute__((vector_size(32)));
    const right_side *r = right_side_of(right, columns);
    int row = lw_emu_tid % 128 / WARP * 16 + self % WARP / 4;
    for (int half = 0; half < 2; half++) {
        uint16_t l[GROUP_DEPTH];
        memcpy(l, swizzled(left, row + 8 * half, 0), 16);
        memcpy(l + 8, swizzled(left, row + 8 * half, 1), 16);
        for (int first = 0; first < columns / 4; first += 4 * FOURS) {
            float *to = sum + first * 2 + half * 2;
            four all[FOURS];
            for (int i = 0; i < FOURS; i++)
                all[i] = (four){(double)to[8 * i], (double)to[8 * i + 1], (double)to[8 * i + 4],
                                (double)to[8 * i + 5]};
            for (int k = 0; k < GROUP_DEPTH; k++)
                for (int i = 0; i < FOURS; i++) {
                    four by;
                    memcpy(&by, &r->of[self % 4][k][first + 4 * i], sizeof by);
                    all[i] += (double)lw_bf16_to_float(l[k]) * by;
                }
            for (int i = 0; i < 4 * FOURS; i++)
                to[i / 2 * 4 + i % 2] = cut(all[i / 4][i % 4]);
        }
    }
}

void lw_emu_group_wait(int but)
{
    int left = 0;
    for (int i = 0; i < n_products[self]; i++) {
        struct group_product p = products[self][i];
        bool later = p.group >= n_product_groups[self] - but;
        if (later)
            products[self][left++] = p;
        else
            multiply_late(p.sum->kept, p.left, p.right, p.columns);
        if (!later && --p.sum->underway == 0)
            memcpy(p.sum->of, p.sum->kept, (size_t)p.columns / 2 * sizeof(float));
    }
    n_products[self] = left;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

/* What the block before left is no number. */
static void start_block(int n)
{
    memset(in_state, 0, sizeof in_state);
    memset(warp_waits, 0, sizeof warp_waits);
    memset(block_waits, 0, sizeof block_waits);
    memset(came, 0, sizeof came);
    all_came = 0;
    in_state[UNBORN] = n;
    for (int i = 0; i < n; i++) {
        threads[i].state = UNBORN;
        sums[i][0].underway = sums[i][1].underway = 0;
    }
    memset(n_copies, 0, sizeof n_copies);
    memset(not_for_cores, 0, sizeof not_for_cores);
    n_not_for_cores = 0;
    memset(n_products, 0, sizeof n_products);
    n_bulk = 0;
    memset(awaited, 0, sizeof awaited);
    memset(turns, 0, sizeof turns);
    for (int b = 0; b < n / lw_emu_threads; b++)
        memset(shared_of(b), 0xff, launch.shared);
}

/* Every thread up to its next barrier, until all are done. False: some left while others waited. */
static bool run_block(int n)
{
    if (n_idle < THREADS && !make_fibers()) /* at first, and when a block was given up */
        return false;
    n_threads = n;
    shuffle(n);
    start_block(n);
    patience = 1000;
    born = 0;
    while (born < n)
        run_fiber(idle[--n_idle]);
    while (in_state[DONE] < n) {
        if (!let_go(n))
            return false; /* a barrier that not all threads reach */
        for (int i = 0; i < n; i++)
            if (threads[order[i]].state == READY) {
                become(order[i]);
                run_fiber(threads[order[i]].fiber);
            }
    }
    return true;
}

bool emulated_run_block(const emulated_launch *l)
{
    launch = *l;
    lw_emu_threads = l->threads;
    first_block = lw_emu_bx;
    return run_block(l->threads * l->cluster);
}

void emulated_free_stacks(void)
{
    for (int i = 0; i < THREADS; i++)
        free(fibers[i].stack);
}
