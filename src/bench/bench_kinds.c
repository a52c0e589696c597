/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a run goes, by kind of op. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_case.h"

enum { PROFILE_RUNS = 3 };

static lw_bench_part *find_part(lw_bench_case *c, const char *what)
{
    for (int32_t i = 0; i < c->n_part; i++)
        if (strcmp(c->part[i].what, what) == 0)
            return &c->part[i];
    lw_bench_part *grown = realloc(c->part, (size_t)(c->n_part + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    c->part = grown;
    lw_bench_part *p = &c->part[c->n_part++];
    *p = (lw_bench_part){0};
    snprintf(p->what, sizeof p->what, "%s", what);
    return p;
}

static int longest_first(const void *a, const void *b)
{
    double x = ((const lw_bench_part *)a)->ms, y = ((const lw_bench_part *)b)->ms;
    return (x < y) - (x > y);
}

int lw_bench_profile(lw_bench_case *c, const lw_bench_work *w)
{
    double extra = 0;
    lw_exec_profile(w->exec, true);
    for (int i = 0; i < PROFILE_RUNS; i++) {
        LW_TRY(w->call(w->self));
        extra += w->extra_seconds ? *w->extra_seconds : 0;
    }
    for (int i = 0; i < lw_exec_step_count(w->exec); i++) {
        lw_step_time t = lw_exec_step_time(w->exec, i);
        lw_bench_part *p = find_part(c, t.op);
        if (!p)
            return lw_fail(LW_ENOMEM, "no memory for the profile");
        p->steps++;
        p->ms += 1e3 * t.seconds;
        p->flops += t.flops;
        p->bytes += t.bytes;
    }
    lw_exec_profile(w->exec, false);
    if (w->extra) {
        lw_bench_part *p = find_part(c, w->extra);
        if (!p)
            return lw_fail(LW_ENOMEM, "no memory for the profile");
        p->steps = 1;
        p->ms = 1e3 * extra / PROFILE_RUNS;
        p->bytes = w->extra_bytes;
    }
    qsort(c->part, (size_t)c->n_part, sizeof *c->part, longest_first);
    return 0;
}
