/* SPDX-License-Identifier: Apache-2.0 */
/* Two benches compared, case by case, from their raw samples. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "bench/bench.h"

const char *lw_bench_verdict_name(lw_bench_verdict v)
{
    static const char *const name[] = {"noise", "better", "regression", "new", "gone"};
    return name[v];
}

lw_bench_verdict lw_bench_judge(const lw_summary *base, const lw_summary *now)
{
    double spread = 3 * fmax(base->mad, now->mad);
    double margin = fmax(0.03 * base->p50, spread), margin_min = fmax(0.03 * base->min, spread);
    double d = now->p50 - base->p50, d_min = now->min - base->min;
    if (d > margin && d_min > margin_min)
        return LW_BENCH_WORSE;
    return d < -margin && d_min < -margin_min ? LW_BENCH_BETTER : LW_BENCH_NOISE;
}

const char *lw_bench_device(const lw_bench *b)
{
    const char *name = json_string_value(json_object_get(b->machine, "device"));
    return name ? name : "cpu";
}

int lw_bench_same_machine(const lw_bench *base, const lw_bench *now)
{
    static const char *const keys[] = {"cpu", "cpus", "threads", "isa"};
    LW_CLEANUP(lw_str_clear) lw_str was = {0}, is = {0};
    for (size_t i = 0; i < LW_COUNT(keys); i++) {
        const json_t *a = json_object_get(base->machine, keys[i]),
                     *b = json_object_get(now->machine, keys[i]);
        if (a && b && json_equal(a, b))
            continue;
        lw_json_dump(a, 0, &was);
        lw_json_dump(b, 0, &is);
        return lw_fail(LW_EUSAGE,
                       "not the same machine: %s was %s and is %s; times of two machines say "
                       "nothing about a change (--force compares them all the same)",
                       keys[i], lw_str_c(&was), lw_str_c(&is));
    }
    if (!lw_str_eq(lw_bench_device(base), lw_bench_device(now)))
        return lw_fail(LW_EUSAGE,
                       "not the same device: was %s and is %s (--force compares them all the same)",
                       lw_bench_device(base), lw_bench_device(now));
    return 0;
}

static const lw_bench_case *find_case(const lw_bench *b, const lw_bench_case *c)
{
    for (int32_t i = 0; i < b->n; i++)
        if (b->cases[i].n > 0 && lw_str_eq(b->cases[i].suite, c->suite) &&
            lw_str_eq(b->cases[i].name, c->name))
            return &b->cases[i];
    return NULL;
}

static lw_bench_change change_of(const lw_bench_case *base, const lw_bench_case *now)
{
    const lw_bench_case *c = now ? now : base;
    lw_bench_change d = {.base = lw_summarize(base ? base->ms : NULL, base ? base->n : 0),
                         .now = lw_summarize(now ? now->ms : NULL, now ? now->n : 0)};
    memcpy(d.suite, c->suite, sizeof d.suite);
    memcpy(d.name, c->name, sizeof d.name);
    d.verdict = !base ? LW_BENCH_NEW : !now ? LW_BENCH_GONE : lw_bench_judge(&d.base, &d.now);
    return d;
}

int lw_bench_compare(const lw_bench *base, const lw_bench *now, bool gone, lw_bench_change **out,
                     int32_t *n)
{
    lw_bench_change *d = lw_calloc((size_t)(base->n + now->n) + 1, sizeof *d);
    int32_t k = 0;
    if (!d)
        return LW_ENOMEM;
    for (int32_t i = 0; i < now->n; i++)
        if (now->cases[i].n > 0)
            d[k++] = change_of(find_case(base, &now->cases[i]), &now->cases[i]);
    for (int32_t i = 0; gone && i < base->n; i++)
        if (base->cases[i].n > 0 && !find_case(now, &base->cases[i]))
            d[k++] = change_of(&base->cases[i], NULL);
    *out = d;
    *n = k;
    return 0;
}
