/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for machines without a GPU: memory is the host's, streams do everything at once,
 * and kernels are those of src/backend/cuda/kernels compiled as C (emulated_threads.c, emulated_words.c), block by block.
 * Kernels of a recording may start early on a GPU: what they read before they wait must be what it was
 * when the recording was started.
 *
 * LW_EMULATED_FAIL=k lets the k-th call fail (0: none), LW_EMULATED_GPU=none|old|stub plays machines
 * that cannot be used, 8.0 one without wgmma, LW_EMULATED_BYTES is the memory that a device has,
 * LW_EMULATED_MULTIPROCESSORS what computes in it (132), LW_EMULATED_TRACE=1 names kernels as they are started. At exit of the program
 * LW_EMULATED_REPORT=FILE receives one line: calls made, kernels started, blocks of memory not freed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/emulated.h"

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

/* One call after the other, whatever thread it is of. */
static pthread_mutex_t lock;
static void unlock(int *rc)
{
    if (*rc == 0)
        pthread_mutex_unlock(&lock);
}
__attribute__((constructor)) static void make_lock(void)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &a);
    pthread_mutexattr_destroy(&a);
}
#define LOCKED() __attribute__((cleanup(unlock), unused)) int rc_of_lock = pthread_mutex_lock(&lock)

/* ---- the driver ------------------------------------------------------------------------------ */

enum {
    INVALID = 1,
    BLOCKS = 1 << 16,
    NO_CONTEXT = 201,
    LEFT_BARRIER = 719,
    IN_CAPTURE = 900,
    CAPTURE_LOST = 901
};
static _Atomic long calls, launches;
static struct {
    void *p;
    size_t bytes;
} blocks[BLOCKS];
static int last_block; /* none behind it was ever used */
static int contexts, streams, modules, graphs, events, n_locked;
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
    unsigned gx, gy, cluster;
    char args[4096];
    struct node *next;
} node;
struct lw_cu_graph {
    node *first, *last;
};
struct lw_cu_graph_exec {
    lw_cu_graph graph;
};
static _Thread_local lw_cu_graph
    *captured; /* what the thread's stream records; NULL: it does not */
static _Thread_local bool capture_lost;
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
    int left = n_locked;
    const char *path = setting("LW_EMULATED_REPORT");
    for (int i = 0; i < BLOCKS; i++)
        left += blocks[i].p != NULL;
    emulated_free_stacks();
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
/* LW_EMULATED_GPUS: as many are seen; the first computes. */
static int gpus(void)
{
    const char *n = setting("LW_EMULATED_GPUS");
    return *n ? (int)strtol(n, NULL, 10) : 1;
}
CALL(DeviceGetCount, int *n)
{
    FAIL_AT_WILL(999);
    *n = gpus();
    return 0;
}
CALL(DeviceGet, int *d, int i)
{
    FAIL_AT_WILL(101);
    *d = i;
    return i < gpus() ? 0 : 101;
}
CALL(DeviceGetName, char *s, int n, int d)
{
    FAIL_AT_WILL(999);
    snprintf(s, (size_t)n, "emulated GPU");
    return d < gpus() ? 0 : 101;
}
/* LW_EMULATED_SHARED: bytes of shared memory that a block may have. */
static int shared_most(void)
{
    const char *bytes = setting("LW_EMULATED_SHARED");
    return *bytes ? (int)strtol(bytes, NULL, 10) : EMULATED_SHARED;
}
CALL(DeviceGetAttribute, int *v, int a, int d)
{
    FAIL_AT_WILL(999);
    const char *gpu = setting("LW_EMULATED_GPU");
    const char *processors = setting("LW_EMULATED_MULTIPROCESSORS");
    if (a == LW_CU_SHARED_MOST)
        *v = shared_most();
    else if (a == LW_CU_MULTIPROCESSORS)
        *v = *processors ? (int)strtol(processors, NULL, 10) : 132;
    else
        *v = a != LW_CU_CC_MAJOR       ? 0
             : strcmp(gpu, "old") == 0 ? 7
             : strcmp(gpu, "8.0") == 0 ? 8
                                       : 9;
    return d < gpus() ? 0 : 101;
}
CALL(DeviceTotalMem_v2, size_t *n, int d)
{
    FAIL_AT_WILL(999);
    *n = memory_bytes();
    return d < gpus() ? 0 : 101;
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
    if (!f || which != LW_CU_SHARED_AT_LAUNCH || v < 0 || v > shared_most())
        return INVALID;
    f->allowed = (unsigned)v;
    return 0;
}
CALL(MemGetInfo_v2, size_t *room, size_t *all)
{
    LOCKED();
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
    LOCKED();
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
    LOCKED();
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

/* The block that [p, p + n) lies in; -1: none. */
static int block_of(lw_cu_ptr p, size_t n)
{
    static int recent;
    for (int i = -1; i <= last_block; i++) {
        int k = i < 0 ? recent : i;
        lw_cu_ptr q = (lw_cu_ptr)(uintptr_t)blocks[k].p;
        if (q && p >= q && p + n <= q + blocks[k].bytes)
            return recent = k;
    }
    return -1;
}

static bool inside(lw_cu_ptr p, size_t n)
{
    return block_of(p, n) >= 0;
}

bool emulated_inside(const void *p, size_t n)
{
    return inside((lw_cu_ptr)(uintptr_t)p, n);
}

/* What was in memory when the recording that runs was started. */
static bool starting; /* a recording runs */
static char *before[BLOCKS];

static void remember(void)
{
    starting = true;
    for (int i = 0; i <= last_block; i++)
        if (blocks[i].p && (before[i] = malloc(blocks[i].bytes)))
            memcpy(before[i], blocks[i].p, blocks[i].bytes);
}

static void forget(void)
{
    starting = false;
    for (int i = 0; i <= last_block; i++) {
        free(before[i]);
        before[i] = NULL;
    }
}

bool emulated_still(const void *p, size_t n)
{
    int k = starting ? block_of((lw_cu_ptr)(uintptr_t)p, n) : -1;
    return k < 0 || !before[k] ||
           memcmp(p, before[k] + ((const char *)p - (const char *)blocks[k].p), n) == 0;
}
CALL(MemsetD8Async, lw_cu_ptr p, unsigned char v, size_t n, lw_cu_stream *s)
{
    LOCKED();
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!s || !inside(p, n))
        return INVALID;
    memset((void *)(uintptr_t)p, v, n);
    return 0;
}
CALL(MemsetD32Async, lw_cu_ptr p, unsigned v, size_t n, lw_cu_stream *s)
{
    LOCKED();
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!s || p % sizeof v || !inside(p, n * sizeof v))
        return INVALID;
    for (size_t i = 0; i < n; i++)
        memcpy((char *)(uintptr_t)p + i * sizeof v, &v, sizeof v);
    return 0;
}

/* Memory of the host whose pages stay, and copies from it: what they read must be the same until somebody waits for them. */
enum { PAGES = 256, COPIES = 64 };
static struct {
    char *p;
    size_t bytes;
} locked[PAGES];
static struct {
    const char *from;
    char *was;
    size_t bytes;
    long number;
} copies[COPIES]; /* in their order */
static int n_copies;
static long copied; /* in all */

static int locked_at(const void *p)
{
    for (int i = 0; i < PAGES; i++)
        if (locked[i].p && (const char *)p >= locked[i].p &&
            (const char *)p < locked[i].p + locked[i].bytes)
            return i;
    return -1;
}

/* Those up to a number have been waited for. */
static bool copies_end(long number)
{
    bool same = true;
    int n = 0;
    for (; n < n_copies && copies[n].number <= number; n++) {
        same &= memcmp(copies[n].from, copies[n].was, copies[n].bytes) == 0;
        free(copies[n].was);
    }
    n_copies -= n;
    memmove(copies, copies + n, (size_t)n_copies * sizeof *copies);
    if (!same)
        fprintf(stderr, "emulated driver: the host wrote what was still being copied\n");
    return same;
}

CALL(MemHostAlloc, void **p, size_t n, unsigned flags)
{
    LOCKED();
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    for (int i = 0; i < PAGES; i++)
        if (!locked[i].p) {
            *p = locked[i].p = aligned_alloc(4096, (n + 4096) / 4096 * 4096);
            locked[i].bytes = n;
            n_locked += *p != NULL;
            return *p ? (int)flags : LW_CU_OUT_OF_MEMORY;
        }
    return LW_CU_OUT_OF_MEMORY;
}
CALL(MemFreeHost, void *p)
{
    LOCKED();
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    int i = locked_at(p);
    if (i < 0 || locked[i].p != p || !copies_end(copied))
        return INVALID;
    free(p);
    locked[i].p = NULL;
    n_locked--;
    return 0;
}
CALL(MemcpyHtoDAsync_v2, lw_cu_ptr p, const void *h, size_t n, lw_cu_stream *s)
{
    LOCKED();
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    if (!s || !inside(p, n))
        return INVALID;
    memcpy((void *)(uintptr_t)p, h, n);
    if (locked_at(h) < 0)
        return 0;
    if (n_copies == COPIES && !copies_end(copied))
        return INVALID;
    copies[n_copies].from = h;
    copies[n_copies].number = ++copied;
    copies[n_copies].bytes = n;
    copies[n_copies].was = malloc(n);
    memcpy(copies[n_copies++].was, h, n);
    return 0;
}
CALL(MemcpyDtoHAsync_v2, void *h, lw_cu_ptr p, size_t n, lw_cu_stream *s)
{
    LOCKED();
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
    LOCKED();
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    return s && copies_end(copied) ? 0 : INVALID;
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
    bool recorded, timed;
    long copied; /* before it */
};
CALL(EventCreate, lw_cu_event **e, unsigned flags)
{
    FAIL_AT_WILL(LW_CU_OUT_OF_MEMORY);
    IN_CONTEXT();
    if (flags && flags != LW_CU_EVENT_DISABLE_TIMING)
        return INVALID;
    *e = calloc(1, sizeof **e);
    if (!*e)
        return LW_CU_OUT_OF_MEMORY;
    (*e)->timed = !flags;
    events++;
    return 0;
}
CALL(EventRecord, lw_cu_event *e, lw_cu_stream *s)
{
    FAIL_AT_WILL(700);
    NOT_IN_CAPTURE();
    if (!e || !s || !entered())
        return INVALID;
    e->recorded = true;
    e->copied = copied;
    return clock_gettime(CLOCK_MONOTONIC, &e->at);
}
CALL(EventSynchronize, lw_cu_event *e)
{
    LOCKED();
    FAIL_AT_WILL(700);
    IN_CONTEXT();
    NOT_IN_CAPTURE();
    return e && e->recorded && copies_end(e->copied) ? 0 : INVALID;
}
CALL(EventElapsedTime, float *ms, lw_cu_event *a, lw_cu_event *b)
{
    FAIL_AT_WILL(700);
    if (!a || !b || !a->recorded || !b->recorded || !a->timed || !b->timed)
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
static int run_grid(lw_cu_function *f, const void *args, unsigned gx, unsigned gy, unsigned cluster)
{
    int rc = 0;
    pthread_mutex_lock(&lock);
    launches++;
    if (*setting("LW_EMULATED_TRACE"))
        fprintf(stderr, "%s %u %u\n", f->name, gx, gy);
    const emulated_launch l = {f->call, args, (int)f->threads, f->shared, (int)cluster};
    lw_emu_blocks = gx;
    for (lw_emu_by = 0; rc == 0 && lw_emu_by < gy; lw_emu_by++)
        for (unsigned x = 0; rc == 0 && x < gx; x += cluster) {
            lw_emu_bx = x;
            rc = emulated_run_block(&l) ? 0 : LEFT_BARRIER;
        }
    if (rc)
        fprintf(stderr, "emulated driver: a barrier that not all threads of %s reach\n", f->name);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int keep_launch(lw_cu_function *f, const void *args, unsigned gx, unsigned gy,
                       unsigned cluster)
{
    node *n = calloc(1, sizeof *n);
    if (!n || f->bytes > sizeof n->args)
        abort();
    n->f = f;
    n->gx = gx;
    n->gy = gy;
    n->cluster = cluster;
    memcpy(n->args, args, f->bytes);
    if (captured->last)
        captured->last->next = n;
    else
        captured->first = n;
    captured->last = n;
    return 0;
}
/* Neighbouring blocks that are a cluster, one where nothing is said; 0: attributes that no GPU would take. */
static unsigned cluster_of(const lw_cu_launch *l)
{
    unsigned n = 1;
    for (unsigned i = 0; i < l->n_attributes; i++) {
        const lw_cu_attribute *a = &l->attributes[i];
        if (a->which == LW_CU_CLUSTER && a->value.cluster[1] == 1 && a->value.cluster[2] == 1)
            n = a->value.cluster[0];
        else if (a->which != LW_CU_EARLY_START)
            return 0;
    }
    return n;
}
CALL(LaunchKernelEx, const lw_cu_launch *l, lw_cu_function *f, void **args, void **extra)
{
    FAIL_AT_WILL(719);
    unsigned cluster = l ? cluster_of(l) : 0;
    if (!f || !l || !l->stream || extra || l->grid[2] != 1 || l->block[1] != 1 ||
        l->block[2] != 1 || l->shared != f->shared || l->shared > f->allowed ||
        l->block[0] != f->threads || !l->grid[0] || l->grid[0] > 0x7fffffffu || !l->grid[1] ||
        l->grid[1] > 65535u || !cluster || cluster > LW_CUDA_CLUSTER || l->grid[0] % cluster ||
        cluster * f->threads > EMULATED_THREADS)
        return INVALID;
    if (!entered())
        return NO_CONTEXT;
    return captured ? keep_launch(f, args[0], l->grid[0], l->grid[1], cluster)
                    : run_grid(f, args[0], l->grid[0], l->grid[1], cluster);
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
    LOCKED();
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
    LOCKED();
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
    LOCKED();
    FAIL_AT_WILL(719);
    NOT_IN_CAPTURE();
    int rc = e && s && entered() ? 0 : INVALID;
    replayed++;
    remember();
    for (node *n = e ? e->graph.first : NULL; n && rc == 0; n = n->next)
        rc = run_grid(n->f, n->args, n->gx, n->gy, n->cluster);
    forget();
    return rc;
}
CALL(GraphExecDestroy, lw_cu_graph_exec *e)
{
    LOCKED();
    graphs--;
    free_nodes(&e->graph);
    free(e);
    return 0;
}
CALL(GraphDestroy, lw_cu_graph *g)
{
    LOCKED();
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
