/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling preserves meaning: random graphs run without any pass on reference kernels and one
 * thread, and optimised at every ISA level on 1, 2 and 5 threads. Equal within tolerance to the
 * former; equal bit for bit among thread counts. Every optimised memory map is proved.
 * `test_plan_random FIRST COUNT` runs other seeds; LW_PLAN_SEEDS=N changes how many a plain run
 * takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu_device.h"
#include "plan/plan_prover.h"
#include "plan/random_graph.h"
#include "store/store.h"

static const int thread_counts[] = {1, 2, 5};
enum { N_THREADS = 3 };
static lw_device *device[LW_ISA_COUNT][N_THREADS];
static uint64_t first_seed = 1;
static int n_seeds = 250;

typedef struct result {
    int n; /* outputs */
    char name[200][8];
    float *data[200];
    int64_t count[200];
} result;

static void result_clear(result *r)
{
    for (int i = 0; i < r->n; i++)
        lw_free(&r->data[i]);
    r->n = 0;
}

/* ---- running one plan ------------------------------------------------------------------------ */

typedef struct totals {
    int graphs, nodes, steps, in_place, placed, shared, prepared, recomputed, failed;
    int ops[LW_OP_COUNT];
    double worst_opt, worst_isa;
    size_t plain_bytes, planned_bytes;
} totals;
static totals total;

static int went_wrong(uint64_t seed, const char *what, const char *why)
{
    print_error("graph %llu: %s: %s\n", (unsigned long long)seed, what, why);
    total.failed++;
    return -1;
}

static void bind_inputs(lw_exec *e, const lw_graph *g, uint64_t seed)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++) {
        const lw_node *n = lw_graph_node(g, i);
        if (n->op != LW_OP_INPUT)
            continue;
        const lw_attr_input *a = n->attr;
        random_graph_fill(seed, a->name, a->type, lw_exec_write(e, a->name));
    }
}

/* Runs twice (what the first run left in the frame must not matter) and copies every output. */
static void run_exec(lw_exec *e, const lw_graph *g, uint64_t seed, result *out)
{
    out->n = 0;
    bind_inputs(e, g, seed);
    lw_exec_run(e, &(lw_tick){seed, 8});
    lw_exec_run(e, &(lw_tick){seed, 9});
    for (int i = 0; i < lw_graph_output_count(g); i++) {
        const char *name = lw_graph_output_at(g, i)->name;
        int64_t n = lw_type_count(lw_exec_type(e, name));
        snprintf(out->name[i], sizeof out->name[i], "%s", name);
        out->count[i] = n;
        out->data[i] = lw_calloc((size_t)n, sizeof(float));
        memcpy(out->data[i], lw_exec_read(e, name), (size_t)n * sizeof(float));
        out->n++;
    }
}

static int run_plan(const lw_graph *g, lw_device *d, int opt, bool recompute, uint64_t seed,
                    result *out)
{
    LW_CLEANUP(lw_plan_free) lw_plan *p = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *e = NULL;
    plan_proof proof;
    LW_TRY(lw_compile(g, d, &(lw_compile_opts){.opt = opt, .recompute = recompute}, &p));
    if (!plan_prove(p, &proof))
        return lw_fail(LW_EFORMAT, "memory map: %s", proof.why);
    if (opt == 0)
        total.plain_bytes += p->frame_bytes;
    if (recompute && d == device[0][1])
        total.recomputed += p->n_steps;
    if (opt && !recompute && d == device[0][0]) {
        total.planned_bytes += p->frame_bytes;
        total.in_place += proof.in_place;
        total.placed += proof.placed;
        total.shared += proof.shared;
        total.prepared += p->n_prepare;
        total.steps += p->n_steps;
    }
    LW_TRY(lw_exec_new(p, LW_SLAB_PARAM, &e));
    run_exec(e, g, seed, out);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Largest difference relative to the tensor's size; NaN counts as infinite. */
static double distance(const result *a, const result *b, int *at)
{
    double worst = 0.0;
    for (int i = 0; i < a->n; i++) {
        double size = 0.0, diff = 0.0;
        for (int64_t k = 0; k < a->count[i]; k++) {
            double x = (double)a->data[i][k], y = (double)b->data[i][k];
            size = fmax(size, fabs(x));
            diff = isfinite(x) && isfinite(y) ? fmax(diff, fabs(x - y)) : (double)INFINITY;
        }
        if (diff / (0.02 + size) > worst) {
            worst = diff / (0.02 + size);
            *at = i;
        }
    }
    return worst;
}

static int same_bits(const result *a, const result *b)
{
    for (int i = 0; i < a->n; i++)
        if (memcmp(a->data[i], b->data[i], (size_t)a->count[i] * sizeof(float)) != 0)
            return i;
    return -1;
}

static void check_near(uint64_t seed, const char *what, const result *want, const result *got,
                       double tol, double *worst)
{
    int at = 0;
    char why[96];
    double d = distance(want, got, &at);
    *worst = fmax(*worst, isfinite(d) ? d : 1e30);
    if (d <= tol)
        return;
    snprintf(why, sizeof why, "output %s differs by %.3g (tolerance %.3g)", want->name[at], d, tol);
    went_wrong(seed, what, why);
}

static void check_seed(uint64_t seed)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    LW_CLEANUP(result_clear) result oracle = {0};
    random_graph *r = lw_calloc(1, sizeof *r);
    assert_int_equal(lw_graph_new(&g), 0);
    assert_int_equal(lw_store_new(false, &store), 0);
    random_graph_build(r, g, store, seed);
    total.graphs++;
    total.nodes += (int)lw_graph_node_count(g);
    for (int i = 0; i < LW_OP_COUNT; i++)
        total.ops[i] += r->ops[i];
    lw_free(&r);
    if (lw_graph_error(g) < 0) {
        went_wrong(seed, "build", lw_errmsg());
        return;
    }
    assert_int_equal(lw_store_fix(store), 0);
    lw_store_init(store, seed);
    if (run_plan(g, device[LW_ISA_REF][0], 0, false, seed, &oracle) < 0) {
        went_wrong(seed, "oracle", lw_errmsg());
        return;
    }
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        LW_CLEANUP(result_clear) result one = {0};
        for (int t = 0; t < N_THREADS; t++) {
            LW_CLEANUP(result_clear) result now = {0};
            char what[48];
            snprintf(what, sizeof what, "%s, %d threads", lw_isa_name(isa), thread_counts[t]);
            if (run_plan(g, device[isa][t], 1, t == 1, seed, &now) < 0) { /* t 1: made again */
                went_wrong(seed, what, lw_errmsg());
                return;
            }
            if (t == 0) {
                check_near(seed, what, &oracle, &now, isa ? 2e-3 : 2e-4,
                           isa ? &total.worst_isa : &total.worst_opt);
                one = now;
                now = (result){0};
            } else if (same_bits(&one, &now) >= 0) {
                went_wrong(seed, what,
                           t == 1 ? "other bits than one thread without recomputing"
                                  : "other bits than one thread");
            }
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    for (int i = 0; i < n_seeds; i++)
        check_seed(first_seed + (uint64_t)i);
    print_message("%d graphs, %d nodes, %d steps (%d prepared, %d in place, %d shared blocks); "
                  "frames %.1f MB "
                  "planned of %.1f MB; worst error %.2g without and %.2g with vector kernels\n",
                  total.graphs, total.nodes, total.steps, total.prepared, total.in_place,
                  total.shared, (double)total.planned_bytes * 1e-6,
                  (double)total.plain_bytes * 1e-6, total.worst_opt, total.worst_isa);
    assert_int_equal(total.failed, 0);
    if (n_seeds < 200)
        return;
    /* The net is only as good as its mesh: every op a graph can hold was there, and passes had
     * work. */
    /* Frames are bytes: rounding to them is a step that small differences cross (test_translator holds
     * their plans against separate parts). */
    for (int i = 0; i < LW_OP_COUNT; i++) {
        const char *name = lw_op_get((lw_op)i)->name;
        bool backward = lw_str_ends(name, "_grad") || lw_str_ends(name, "_dx") ||
                        lw_str_ends(name, "_dw");
        if (!backward && i != LW_OP_PACK && i != LW_OP_CAST && i != LW_OP_UPCONV_WEIGHT &&
            i != LW_OP_CONV_CHAIN && i != LW_OP_FRAME_TO_RGB && i != LW_OP_RGB_TO_FRAME &&
            total.ops[i] == 0)
            fail_msg("no graph held a '%s'", name);
    }
    assert_true(total.in_place > n_seeds && total.shared > n_seeds && total.prepared > n_seeds);
    assert_true(total.planned_bytes < total.plain_bytes);
    assert_true(total.placed > 0);
    assert_true(total.recomputed > total.steps + n_seeds);
}

static int open_devices(void **state)
{
    (void)state;
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int t = 0; t < N_THREADS; t++)
            if (cpu_device(thread_counts[t], isa, &device[isa][t]) < 0)
                return -1;
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        for (int t = 0; t < N_THREADS; t++)
            lw_backend_close(&device[isa][t]);
    return 0;
}

int main(int argc, char **argv)
{
    const char *n = getenv("LW_PLAN_SEEDS");
    if (n)
        n_seeds = (int)strtol(n, NULL, 10);
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 1)
        n_seeds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests_name("plan_random", tests, open_devices, close_devices);
}
