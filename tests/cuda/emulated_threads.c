/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a block, or of all blocks of a cluster, are fibers, which run one after the other up to the next barrier, in an order
 * drawn anew each time: what one thread leaves to another without a barrier between them comes out wrong. Warps that wait
 * for their own lanes alone go on one before the other.
 */
#include "cuda/emulated_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

int lw_emu_tid, lw_emu_threads;
int64_t lw_emu_bx, lw_emu_by, lw_emu_blocks;
unsigned char *lw_emu_shared;

/* ---- fibers ---------------------------------------------------------------------------------- */

enum { STACK = 1 << 16, SPOILT = 0xff };
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
/* Callers may count neither on registers nor on numbers of this file that such a function does not seem to touch. */
#ifdef __clang__
#define LEAPS __attribute__((noinline, optnone))
#else
#define LEAPS __attribute__((noipa))
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
int emu_self;                     /* the thread that runs, among those of the cluster */
static int64_t first_block;       /* of the cluster */
static int came[THREADS],
    all_came; /* how often each thread came to the cluster's barrier; all of them together */
static int order[THREADS], born, n_threads, on; /* on: the fiber that runs */
static place scheduler;
emulated_launch emulated_now;
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

int emulated_block_of(int thread)
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
    block_waits[emulated_block_of(thread)] += (s == AT_BLOCK) - (was == AT_BLOCK);
}

static unsigned char *shared_of(int block)
{
    _Alignas(1024) static unsigned char shared[LW_CUDA_CLUSTER][EMULATED_SHARED];
    return shared[block];
}

/* What kernels see is that thread's from here on. */
static void become(int thread)
{
    int block = emulated_block_of(thread);
    emu_self = thread;
    lw_emu_tid = thread - block * lw_emu_threads;
    lw_emu_bx = first_block + block;
    lw_emu_shared = shared_of(block);
}

void emulated_wrong(const char *what)
{
    fprintf(stderr, "emulated driver: %s\n", what);
    abort();
}

/* Has it waited for the kernels before? */
static bool awaited[THREADS];

void lw_emu_await_before(void)
{
    awaited[emu_self] = true;
}

bool emulated_awaited(void)
{
    return awaited[emu_self];
}

static void live(void)
{
    for (;;) {
        while (born < n_threads) {
            become(order[born++]);
            threads[emu_self].fiber = on;
            enter(emu_self, READY);
            emulated_now.body(emulated_now.args);
            enter(emu_self, DONE);
            if (!awaited[emu_self])
                emulated_wrong("a kernel that does not wait for those before");
        }
        idle[n_idle++] = on;
        back();
    }
}

static void wait_at(thread_state barrier)
{
    int me = emu_self;
    enter(me, barrier);
    back();
    become(me);
}

void lw_emu_sync(void)
{
    wait_at(AT_BLOCK);
}

void emulated_wait_for_copies(void)
{
    wait_at(AT_COPY);
}

void lw_emu_sync_warp(void)
{
    wait_at(AT_WARP);
}

void lw_emu_cluster_arrive(void)
{
    if (came[emu_self]++ * n_threads > all_came)
        emulated_wrong(
            "a thread that comes to the cluster's barrier again, before it waited there");
    all_came++;
}

void lw_emu_cluster_wait(void)
{
    while (all_came < came[emu_self] * n_threads)
        wait_at(AT_CLUSTER);
}

/* A block that is through has no shared memory any more. */
const void *lw_emu_in_cluster(const void *own, int block)
{
    for (int i = 0; i < lw_emu_threads; i++)
        if (threads[block * lw_emu_threads + i].state == DONE)
            emulated_wrong("read from a block of the cluster that may be gone");
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
    emulated_wrong(
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
/* ---- blocks ------------------------------------------------------------------------------------- */

/* Memory that kernels share without asking for it at a launch lies in one section; of it the part that the kernel which ran last
 * wrote in its first block. */
extern unsigned char __start_lw_shared[], __stop_lw_shared[];
static struct {
    void (*body)(const void *args);
    unsigned char *from, *to;
} statics = {NULL, __start_lw_shared, __stop_lw_shared};

static void spoil_statics(void)
{
    if (statics.body != emulated_now.body) {
        statics.from = __start_lw_shared;
        statics.to = __stop_lw_shared;
    }
    memset(statics.from, SPOILT, (size_t)(statics.to - statics.from));
}

static void note_statics(void)
{
    if (statics.body == emulated_now.body)
        return;
    statics.body = emulated_now.body;
    while (statics.from < statics.to && *statics.from == SPOILT)
        statics.from++;
    while (statics.from < statics.to && statics.to[-1] == SPOILT)
        statics.to--;
}

/* What the block before left is no number. */
static void start_block(int n)
{
    spoil_statics();
    memset(in_state, 0, sizeof in_state);
    memset(warp_waits, 0, sizeof warp_waits);
    memset(block_waits, 0, sizeof block_waits);
    memset(came, 0, sizeof came);
    all_came = 0;
    in_state[UNBORN] = n;
    for (int i = 0; i < n; i++)
        threads[i].state = UNBORN;
    memset(awaited, 0, sizeof awaited);
    emulated_begin_words(n);
    for (int b = 0; b < n / lw_emu_threads; b++)
        memset(shared_of(b), SPOILT, emulated_now.shared);
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
    emulated_now = *l;
    lw_emu_threads = l->threads;
    first_block = lw_emu_bx;
    bool through = run_block(l->threads * l->cluster);
    note_statics();
    return through;
}

void emulated_free_stacks(void)
{
    for (int i = 0; i < THREADS; i++)
        free(fibers[i].stack);
}
