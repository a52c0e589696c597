/* SPDX-License-Identifier: Apache-2.0 */
/* Times of replayed steps, gathered per op. LW_LOG=profile=debug logs them when an exec
 * is freed. */
#include "plan/plan_profile.h"
#include "plan/plan_pass.h"

#include <string.h>

typedef struct op_total {
    const char *op;
    double seconds, flops, bytes;
    int steps;
} op_total;

static int add_step(op_total *t, int n, const lw_step_time *s)
{
    int i = 0;
    while (i < n && strcmp(t[i].op, s->op) != 0)
        i++;
    if (i == n)
        t[n++] = (op_total){.op = s->op};
    t[i].seconds += s->seconds;
    t[i].flops += s->flops;
    t[i].bytes += s->bytes;
    t[i].steps++;
    return n;
}

static void sort_by_time(op_total *t, int n)
{
    for (int i = 1; i < n; i++) {
        op_total x = t[i];
        int k = i;
        for (; k > 0 && t[k - 1].seconds < x.seconds; k--)
            t[k] = t[k - 1];
        t[k] = x;
    }
}

void lw_exec_profile_print(lw_str *s, const lw_exec *e)
{
    op_total t[LW_OP_COUNT];
    double total = 0.0;
    int n = 0;
    for (int i = 0; i < lw_exec_step_count(e); i++) {
        lw_step_time st = lw_exec_step_time(e, i);
        n = add_step(t, n, &st);
        total += st.seconds;
    }
    sort_by_time(t, n);
    lw_str_addf(s, "%-18s %6s %10s %6s %9s %8s\n", "op", "steps", "ms", "%", "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        double sec = t[i].seconds > 0 ? t[i].seconds : 1e-12;
        lw_str_addf(s, "%-18s %6d %10.3f %6.1f %9.1f %8.1f\n", t[i].op, t[i].steps,
                    t[i].seconds * 1e3, 100.0 * t[i].seconds / (total > 0 ? total : 1.0),
                    t[i].flops / sec * 1e-9, t[i].bytes / sec * 1e-9);
    }
    lw_str_addf(s, "%-18s %6d %10.3f\n", "all", lw_exec_step_count(e), total * 1e3);
}

/* The slowest steps by name, for a closer look. */
static void print_slowest(lw_str *s, const lw_exec *e, int top)
{
    double bound = 1e300;
    for (int k = 0; k < top; k++) {
        int best = -1;
        lw_step_time b = {0};
        for (int i = 0; i < lw_exec_step_count(e); i++) {
            lw_step_time st = lw_exec_step_time(e, i);
            if (st.seconds < bound && (best < 0 || st.seconds > b.seconds)) {
                best = i;
                b = st;
            }
        }
        if (best < 0)
            return;
        bound = b.seconds;
        lw_str_addf(s, "%9.3f ms %8.1f GFLOP/s %7.1f GB/s  %-16s %s\n", b.seconds * 1e3,
                    b.flops / LW_MAX(b.seconds, 1e-12) * 1e-9,
                    b.bytes / LW_MAX(b.seconds, 1e-12) * 1e-9, b.op, b.scope);
    }
}

void lw_exec_profile_log(const lw_exec *e)
{
    lw_str s = {0};
    lw_exec_profile_print(&s, e);
    print_slowest(&s, e, 25);
    size_t n;
    for (const char *rest = s.s, *line; (line = lw_str_word(&rest, '\n', &n));)
        lw_log(LW_LOG_DEBUG, "profile", "%.*s", (int)n, line);
    lw_str_clear(&s);
}

size_t lw_plan_live_bytes(const lw_plan *p, int i)
{
    size_t bytes = 0;
    for (uint32_t k = 1; k <= p->n_slots; k++) {
        const lw_slot *s = &p->slot[k];
        if (s->place == LW_PLACE_FRAME && s->first <= i && i <= s->last)
            bytes += s->bytes;
    }
    return bytes;
}
