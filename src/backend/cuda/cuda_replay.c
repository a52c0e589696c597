/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of an exec as one graph of the driver: captured when it runs the second time, since many run
 * once, and started as a whole from then on. What differs between runs are the inputs, which are
 * written before, and the tick, which kernels read from the device's memory.
 */
#include "backend/cuda/cuda_private.h"

#include "plan/plan.h"

struct lw_recording {
    lw_cu_graph_exec *graph; /* NULL: ran once */
};

/* Between the two calls the driver forbids all but launches (error 900): steps start nothing else. */
static int capture(cuda *d, lw_cu_graph **graph, int (*steps)(void *), void *arg)
{
    LW_TRY(lw_cuda_check(d, d->cu.StreamBeginCapture_v2(d->stream, LW_CU_CAPTURE_THREAD_LOCAL),
                         "beginning to record"));
    d->recording = true;
    int rc = steps(arg);
    d->recording = false;
    int end = lw_cuda_check(d, d->cu.StreamEndCapture(d->stream, graph), "recording");
    return rc < 0 ? rc : end;
}

static int record(cuda *d, lw_recording *r, int (*steps)(void *), void *arg)
{
    lw_cu_graph *graph = NULL;
    int rc = capture(d, &graph, steps, arg);
    if (rc == 0)
        rc = lw_cuda_check(d, d->cu.GraphInstantiateWithFlags(&r->graph, graph, 0),
                           "making a recording ready");
    if (graph)
        d->cu.GraphDestroy(graph);
    return rc;
}

int lw_cuda_replay(void *self, lw_recording **r, const struct lw_tick *tick,
                   int (*steps)(void *arg), void *arg)
{
    cuda *d = self;
    if (!*r) {
        *r = lw_calloc(1, sizeof **r);
        return *r ? steps(arg) : LW_ENOMEM;
    }
    LW_TRY(lw_cuda_follow(d, tick));
    if (!(*r)->graph)
        LW_TRY(record(d, *r, steps, arg));
    return lw_cuda_check(d, d->cu.GraphLaunch((*r)->graph, d->stream), "starting a recording");
}

void lw_cuda_forget(void *self, lw_recording **r)
{
    cuda *d = self;
    if ((*r)->graph)
        lw_cuda_check(d, d->cu.GraphExecDestroy((*r)->graph), "freeing a recording");
    lw_free(r);
}
