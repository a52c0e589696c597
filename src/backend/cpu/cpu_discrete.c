/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU as a device with memory of its own, to test on any machine that nothing above plan
 * follows a device's address. Its addresses are those of host blocks with one bit turned that no
 * address of a process has: the host faults on them, and this file turns the bit back. Results have
 * the CPU's bits.
 */
#include "backend/cpu/cpu_private.h"

#include <string.h>

static const uintptr_t mark = (uintptr_t)1 << 55;

static void *seal(void *p)
{
    return p ? (void *)((uintptr_t)p | mark) : NULL;
}

static void *unseal(const void *p)
{
    LW_ASSERT(!p || (uintptr_t)p & mark, "an address of the host where one of the device belongs");
    return (void *)((uintptr_t)p & ~mark);
}

static void *alloc(void *self, size_t bytes)
{
    (void)self;
    return seal(lw_bulk_alloc(bytes));
}

static void free_block(void *self, void *p, size_t bytes)
{
    void *own = unseal(p);
    (void)self;
    lw_bulk_free(&own, bytes);
}

static void read_block(void *self, void *data, const void *p, size_t bytes)
{
    (void)self;
    memcpy(data, unseal(p), bytes);
}

static void write_block(void *self, void *p, const void *data, size_t bytes)
{
    (void)self;
    memcpy(unseal(p), data, bytes);
}

static const lw_memory memory = {
    .alloc = alloc, .free = free_block, .read = read_block, .write = write_block};

static int run(void *self, const lw_launch *l)
{
    lw_launch own = *l;
    void *in[LW_MAX_IN], *out[LW_MAX_OUT];
    for (int i = 0; i < LW_MAX_IN; i++)
        in[i] = unseal(l->task.in[i]);
    for (int i = 0; i < LW_MAX_OUT; i++)
        out[i] = unseal(l->task.out[i]);
    own.task.in = in;
    own.task.out = out;
    own.task.work = unseal(l->task.work);
    own.task.scratch = unseal(l->task.scratch);
    return lw_cpu_run(self, &own);
}

static int update(void *self, const lw_update *u, double *grad_norm)
{
    lw_update own = *u;
    for (int i = 0; i < LW_SLABS; i++)
        own.slab[i] = unseal(u->slab[i]);
    return lw_cpu_update(self, &own, grad_norm);
}

static void add(void *self, float *dst, const float *src, int64_t n)
{
    lw_cpu_add(self, unseal(dst), unseal(src), n);
}

static void copy(void *self, float *dst, const float *src, int64_t n)
{
    lw_cpu_copy(self, unseal(dst), unseal(src), n);
}

int lw_cpu_open_discrete(const lw_backend_options *o, lw_device **out)
{
    lw_device *d = NULL;
    LW_TRY(lw_cpu_open(o, &d));
    d->name = "cpu-discrete";
    d->memory = &memory;
    d->run = run;
    d->update = update;
    d->add = add;
    d->copy = copy;
    *out = d;
    return 0;
}
