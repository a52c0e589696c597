/* SPDX-License-Identifier: Apache-2.0 */
/* Timing by the GPU's own clock: a mark is a CUDA event, made when it is first set and reused
 * after. */
#include "backend/cuda/cuda_private.h"

static int event_of(cuda *d, int32_t k, lw_cu_event **out)
{
    LW_TRY(lw_grow(&d->mark, &d->n_marks, (size_t)k + 1, sizeof *d->mark));
    if (!d->mark[k])
        LW_TRY(lw_cuda_check(d, d->cu.EventCreate(&d->mark[k], 0), "making an event"));
    *out = d->mark[k];
    return 0;
}

int lw_cuda_mark(void *self, int32_t k)
{
    cuda *d = self;
    lw_cu_event *event;
    LW_TRY(lw_cuda_enter(d));
    LW_TRY(event_of(d, k, &event));
    return lw_cuda_check(d, d->cu.EventRecord(event, d->stream), "setting an event");
}

int lw_cuda_elapsed(void *self, int32_t from, int32_t to, double *seconds)
{
    cuda *d = self;
    float ms = 0.0f;
    lw_cu_event *begin, *end;
    LW_TRY(lw_cuda_enter(d));
    LW_TRY(event_of(d, from, &begin));
    LW_TRY(event_of(d, to, &end));
    LW_TRY(lw_cuda_check(d, d->cu.EventSynchronize(end), "waiting for an event"));
    LW_TRY(lw_cuda_check(d, d->cu.EventElapsedTime(&ms, begin, end), "reading its clock"));
    *seconds = 1e-3 * (double)ms;
    return 0;
}

void lw_cuda_free_marks(cuda *d)
{
    for (size_t k = 0; k < d->n_marks; k++)
        if (d->mark[k])
            d->cu.EventDestroy_v2(d->mark[k]);
    lw_free(&d->mark);
}
