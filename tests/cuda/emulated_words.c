/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of kernels/cuda_port.h and cuda_warpgroup.h do in C, but for those of barriers (emulated_threads.c): copies and
 * products that go on by themselves happen no earlier than they are waited for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emulated_threads.h"

/* ---- copies that go on by themselves, and products of a warp ------------------------------------ */

enum { UNDERWAY = 64 };
static struct {
    void *to;
    const void *from;
    int bytes;
    bool there;
    int group;
} copies[THREADS][UNDERWAY];
static int n_copies[THREADS], n_groups[THREADS]; /* underway; committed */
/* Copies came that tensor cores may not read from shared memory yet; threads that had some. */
static bool not_for_cores[THREADS];
static int n_not_for_cores;

static void for_cores(bool ready)
{
    n_not_for_cores += !ready - not_for_cores[emu_self];
    not_for_cores[emu_self] = !ready;
}

/* Nobody wrote there since a copy to there began. */
static void untouched(const void *to, size_t bytes)
{
    static const unsigned char no_numbers[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                 255, 255, 255, 255, 255, 255, 255, 255};
    for (size_t k = 0; k < bytes; k += sizeof no_numbers)
        if (memcmp((const char *)to + k, no_numbers,
                   bytes - k < sizeof no_numbers ? bytes - k : sizeof no_numbers) != 0)
            emulated_wrong("written where a copy was underway to");
}

/* Until it is waited for, what is to be overwritten is no number. */
void lw_emu_copy(void *to, const void *from, int bytes, bool there)
{
    int *n = &n_copies[emu_self];
    uintptr_t size = (uintptr_t)bytes;
    if (*n == UNDERWAY || (uintptr_t)to % size || (there && (uintptr_t)from % size))
        emulated_wrong("a copy that is not aligned, or too many");
    if (there && !emulated_inside(from, size))
        emulated_wrong("a copy from behind a block of memory");
    if (there && !emulated_awaited() && !emulated_still(from, size))
        emulated_wrong("a copy, before those before were waited for, of what they wrote");
    memset(to, 0xff, size);
    copies[emu_self][*n].bytes = bytes;
    copies[emu_self][*n].to = to;
    copies[emu_self][*n].from = from;
    copies[emu_self][*n].group = n_groups[emu_self];
    copies[emu_self][(*n)++].there = there;
}

void lw_emu_prefetch(const void *from, int bytes)
{
    if ((uintptr_t)from % 16 || bytes <= 0 || bytes % 16 || !emulated_inside(from, (size_t)bytes))
        emulated_wrong("asked for what is not aligned, or behind a block of memory");
}

void lw_emu_reads(const void *from, int bytes)
{
    if (!emulated_inside(from, (size_t)bytes))
        emulated_wrong("read behind a block of memory");
    if (!emulated_awaited() && !emulated_still(from, (size_t)bytes))
        emulated_wrong("read, before those before were waited for, what they wrote");
}

void lw_emu_copy_commit(void)
{
    n_groups[emu_self]++;
}

void lw_emu_copy_wait(int but)
{
    int left = 0;
    for (int i = 0; i < n_copies[emu_self]; i++) {
        char *to = copies[emu_self][i].to;
        if (copies[emu_self][i].group >= n_groups[emu_self] - but) {
            copies[emu_self][left++] = copies[emu_self][i];
            continue;
        }
        size_t bytes = (size_t)copies[emu_self][i].bytes;
        untouched(to, bytes);
        if (copies[emu_self][i].there)
            memcpy(to, copies[emu_self][i].from, bytes);
        else
            memset(to, 0, bytes);
        for_cores(false);
    }
    n_copies[emu_self] = left;
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
    return turns[emu_self]++ & 1;
}

/* The values in n words, the lower half first. */
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
    int first = emu_self / WARP * WARP, lane = emu_self % WARP, turn = next_turn();
    float(*l)[8] = lefts[turn], (*r)[4] = rights[turn];
    halves(l[emu_self], left, 4, number);
    halves(r[emu_self], right, 2, number);
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
    int first = emu_self / WARP * WARP, g = emu_self % WARP / 4, t = emu_self % 4 * 2;
    uint16_t(*rows)[8] = all[next_turn()];
    if ((uintptr_t)row % 16)
        emulated_wrong("a row of a matrix that is not aligned");
    memcpy(rows[emu_self], row, sizeof rows[0]);
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
    of[emu_self] = bits;
    lw_emu_sync_warp();
    return of[emu_self ^ lane];
}

/* ---- products of a warpgroup (wgmma), which are asynchronous ------------------------------------- */

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
    int *n = &n_products[emu_self];
    if (*n == PRODUCTS)
        emulated_wrong("too many products underway");
    if (n_not_for_cores)
        emulated_wrong("a product of what was copied, without a fence");
    struct group_sums *g = sums[emu_self];
    g += (g[1].underway && g[1].of == sum) || (g[0].underway && g[0].of != sum);
    if (g->underway++ == 0) {
        g->of = sum;
        memcpy(g->kept, sum, (size_t)columns / 2 * sizeof *sum);
        memset(sum, 0xff, (size_t)columns / 2 * sizeof *sum);
    }
    products[emu_self][(*n)++] = (struct group_product){g, left, right, columns,
                                                        n_product_groups[emu_self]};
}

void lw_emu_group_commit(void)
{
    n_product_groups[emu_self]++;
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
        (unsigned char *)(b + 1) > lw_emu_shared + emulated_now.shared || at->made != 0x5a)
        emulated_wrong("a barrier that was not made");
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
        emulated_wrong("a barrier that is told of more before its turn is over");
    at->told = 1;
    at->left = bytes;
}

void lw_emu_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *b)
{
    if (n_bulk == BULK || ((uintptr_t)to | (uintptr_t)from | bytes) % 16)
        emulated_wrong("a copy that is not aligned, or too many");
    if ((unsigned char *)to < lw_emu_shared ||
        (unsigned char *)to + bytes > lw_emu_shared + emulated_now.shared ||
        !emulated_inside(from, bytes))
        emulated_wrong("a copy from or to behind a block of memory");
    if (!emulated_awaited() && !emulated_still(from, bytes))
        emulated_wrong("a copy, before those before were waited for, of what they wrote");
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
        emulated_wait_for_copies();
    if (at->turns % 2 != odd)
        return;
    for (int i = 0; i < n_bulk; i++)
        if (bulk[i].barrier == b)
            land(&bulk[i]);
        else
            bulk[left++] = bulk[i];
    n_bulk = left;
    if (at->left)
        emulated_wrong("a barrier that waits for other bytes than come");
    at->told = 0;
    at->turns++;
}

enum { GROUP_DEPTH = 16, GROUP_COLUMNS = 128 };

/* Half of the 16 elements of a row of 128 bytes, whose pieces of 16 lie at their place xor the row's number modulo 8. */
static const unsigned char *swizzled(const unsigned char *from, int row, int half)
{
    size_t at = (size_t)(from - lw_emu_shared) + (size_t)row * 128 + (size_t)half * 16;
    return lw_emu_shared + (at ^ (at >> 7 & 7) << 4);
}

/* A right side as values, [lane % 4][k] of that lane's columns, 8 i + 2 (lane % 4) and the one behind. 128 threads multiply
 * by the same, one after the other: it is read anew where bytes have changed since. */
typedef struct right_side {
    uint16_t bits[GROUP_COLUMNS][2][GROUP_DEPTH / 2];
    double of[4][GROUP_DEPTH][GROUP_COLUMNS / 4];
} right_side;

static const right_side *right_side_of(const unsigned char *right, int columns)
{
    static right_side recent[LW_CUDA_CLUSTER][16];
    right_side *r = &recent[emulated_block_of(emu_self)]
                           [(uintptr_t)right / 32 % 4 + (uintptr_t)right / 16384 % 4 * 4];
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
    int row = lw_emu_tid % 128 / WARP * 16 + emu_self % WARP / 4;
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
                    memcpy(&by, &r->of[emu_self % 4][k][first + 4 * i], sizeof by);
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
    for (int i = 0; i < n_products[emu_self]; i++) {
        struct group_product p = products[emu_self][i];
        bool later = p.group >= n_product_groups[emu_self] - but;
        if (later)
            products[emu_self][left++] = p;
        else
            multiply_late(p.sum->kept, p.left, p.right, p.columns);
        if (!later && --p.sum->underway == 0)
            memcpy(p.sum->of, p.sum->kept, (size_t)p.columns / 2 * sizeof(float));
    }
    n_products[emu_self] = left;
}

/* ---- what a block begins with ------------------------------------------------------------------- */

void emulated_begin_words(int n)
{
    for (int i = 0; i < n; i++)
        sums[i][0].underway = sums[i][1].underway = 0;
    memset(n_copies, 0, sizeof n_copies);
    memset(not_for_cores, 0, sizeof not_for_cores);
    n_not_for_cores = 0;
    memset(n_products, 0, sizeof n_products);
    n_bulk = 0;
    memset(turns, 0, sizeof turns);
}
