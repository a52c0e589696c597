/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of an exec as one CUDA graph (here: a recording). It is captured when the exec runs the
 * second time, since many run only once, and is launched as a whole from then on. What differs
 * between runs is the inputs, which are written before the launch, and the tick, which kernels read
 * from device memory.
 *
 * Running allocates nothing: a recording is the driver's executable graph itself or, after the
 * first run, the placeholder ran_once.
 *
 * The host launches runs ahead of the GPU, but only LW_CUDA_AHEAD of them: whoever interrupts a
 * sampler does not wait for all its steps.
 */
#include "backend/cuda/cuda_private.h"

#include "plan/plan.h"

struct lw_recording {
    char nothing;
};
static lw_recording ran_once;

static lw_cu_graph_exec *graph_of(lw_recording *r)
{
    return r == &ran_once ? NULL : (lw_cu_graph_exec *)(void *)r;
}

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

static int record(cuda *d, lw_recording **r, int (*steps)(void *), void *arg)
{
    lw_cu_graph *graph = NULL;
    lw_cu_graph_exec *ready = NULL;
    int rc = capture(d, &graph, steps, arg);
    if (rc == 0)
        rc = lw_cuda_check(d, d->cu.GraphInstantiateWithFlags(&ready, graph, 0),
                           "making a recording ready");
    if (graph)
        d->cu.GraphDestroy(graph);
    if (rc == 0)
        *r = (lw_recording *)(void *)ready;
    return rc;
}

/* Waits until no more than LW_CUDA_AHEAD runs are begun that are not done. */
static int keep_near(cuda *d)
{
    lw_cu_event *mine = d->begun[d->n_begun % LW_CUDA_AHEAD];
    if (d->n_begun++ >= LW_CUDA_AHEAD)
        LW_TRY(lw_cuda_check(d, d->cu.EventSynchronize(mine), "waiting for a recording"));
    return lw_cuda_check(d, d->cu.EventRecord(mine, d->stream), "starting a recording");
}

int lw_cuda_replay(void *self, lw_recording **r, const struct lw_tick *tick,
                   int (*steps)(void *arg), void *arg)
{
    cuda *d = self;
    if (!*r) {
        *r = &ran_once;
        return steps(arg);
    }
    LW_TRY(lw_cuda_go_on(d));
    LW_TRY(lw_cuda_follow(d, tick));
    if (!graph_of(*r))
        LW_TRY(record(d, r, steps, arg));
    LW_TRY(lw_cuda_check(d, d->cu.GraphLaunch(graph_of(*r), d->stream), "starting a recording"));
    return keep_near(d);
}

void lw_cuda_forget(void *self, lw_recording **r)
{
    cuda *d = self;
    if (graph_of(*r))
        lw_cuda_check(d, d->cu.GraphExecDestroy(graph_of(*r)), "freeing a recording");
    *r = NULL;
}
