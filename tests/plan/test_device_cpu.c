/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between plan and a device, on the CPU: ports, memory of its own, stores, reductions of ranks. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#include "plan/plan_util.h"

static void test_opened_by_name(void **state)
{
    (void)state;
    lw_device *dev = NULL;
    const lw_backend_options o = {.threads = 3, .isa = LW_ISA_REF};
    assert_int_equal(lw_backend_open("abacus", &o, &dev), LW_EDEVICE);
    assert_non_null(strstr(lw_errmsg(), "'abacus'"));
    assert_null(dev);
    assert_int_equal(lw_backend_open("cpu", &o, &dev), 0);
    assert_string_equal(dev->name, "cpu");
    assert_string_equal(dev->isa, "ref");
    assert_int_equal(dev->kernels->isa, LW_ISA_REF);
    assert_int_equal(lw_pool_size(dev->pool), 3);
    lw_backend_close(&dev);
    assert_null(dev);
    lw_backend_close(&dev);
}

/* y = 2 x + (1, 2, 3), where x is bound, and z = x^2. */
static void open_ports(plan_lab *l, const char *device)
{
    static const float add[3] = {1, 2, 3};
    const lw_backend_options o = {.threads = 2, .isa = lw_isa_best()};
    memset(l, 0, sizeof *l);
    assert_int_equal(lw_backend_open(device, &o, &l->dev), 0);
    assert_int_equal(lw_graph_new(&l->g), 0);
    assert_int_equal(lw_store_new(false, &l->store), 0);
    lw_val x = LAB_X(l, "x", 2, 3);
    lw_val more = lw_const(l->g, lw_type_of(LW_F32, 1, 3), add);
    lab_output(l, "y", lw_add(l->g, lw_scale(l->g, x, 2.0f), more));
    lab_output(l, "z", lw_sqr(l->g, x));
    lab_compile(l, 1);
}

static void fill_x(lw_exec *e, float from)
{
    float *x = lw_exec_write(e, "x");
    for (int i = 0; i < 6; i++)
        x[i] = from + (float)i;
}

static void check_ports(lw_exec *e, float from)
{
    const float *y = lw_exec_read(e, "y"), *z = lw_exec_read(e, "z"), *x = lw_exec_read(e, "x");
    for (int i = 0; i < 6; i++) {
        float v = from + (float)i;
        assert_true(x[i] == v && y[i] == 2 * v + (float)(i % 3 + 1) && z[i] == v * v);
    }
}

static void test_ports_of_the_cpu_are_no_copies(void **state)
{
    (void)state;
    plan_lab l;
    open_ports(&l, "cpu");
    fill_x(l.exec, 4);
    const void *y = lw_exec_read(l.exec, "y");
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    check_ports(l.exec, 4);
    assert_ptr_equal(lw_exec_write(l.exec, "x"), lw_exec_read(l.exec, "x"));
    assert_ptr_equal(lw_exec_read(l.exec, "y"), y);
    assert_null(lw_exec_write(l.exec, "y"));
    lab_close(&l);
}

/* Where device and host do not share memory, what was not asked for again is not there: whoever
 * keeps an address over a run fails on a CPU too. */
static void test_discrete_memory_tells_who_did_not_ask(void **state)
{
    (void)state;
    plan_lab l;
    float mine[6] = {7, 8, 9, 10, 11, 12};
    open_ports(&l, "cpu-discrete");
    fill_x(l.exec, 4);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    check_ports(l.exec, 4);
    const float *y = lw_exec_read(l.exec, "y");
    float *x = lw_exec_write(l.exec, "x");
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(y[0] != y[0] && y[5] != y[5]); /* not fetched again */
    check_ports(l.exec, 4);
    x[0] = 100; /* not asked for again */
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(((const float *)lw_exec_read(l.exec, "y"))[0] == 9);
    assert_int_equal(lw_exec_bind(l.exec, "x", mine), 0);
    for (int k = 0; k < 2; k++) { /* bound memory is taken as it is, each time */
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        check_ports(l.exec, mine[0]);
        for (int i = 0; i < 6; i++)
            mine[i] += 10;
    }
    lab_close(&l);
}

/* No kernel of the CPU's does what only devices with `f32_to_bf16` are asked for. */
static void test_products_of_f32_to_bf16_are_refused(void **state)
{
    const lw_attr_matmul a = {.trans_b = 1, .store = LW_BF16};
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_val y = lw_graph_op(l.g, LW_OP_MATMUL,
                           (lw_val[]){LAB_X(&l, "x", 4, 6), LAB_P(&l, "w", 8, 6)}, 2, &a, sizeof a);
    lab_output(&l, "y", lw_cast(l.g, y, LW_F32, LW_NOVAL));
    assert_int_equal(lw_store_fix(l.store), 0);
    assert_int_equal(lw_compile(l.g, l.dev, &(lw_compile_opts){.opt = 1}, &l.plan),
                     LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "'matmul' of f32 to bf16"));
    lab_close(&l);
}

typedef struct questions {
    int asked, last; /* says stop at the last one, and never again */
} questions;

static bool at_last(void *self)
{
    questions *q = self;
    return ++q->asked == q->last;
}

/* One watch, on the pool, ends plans within any of their steps. */
static void test_watched_runs_stop(void **state)
{
    plan_lab *l = *state;
    questions q = {0};
    const lw_observer obs = {.self = &q, .should_stop = at_last};
    lab_unet_sample(l, 1);
    lab_compile(l, 1);
    lab_fill(l);
    lw_pool_watch(l->dev->pool, &obs);
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    assert_true(q.asked > lw_exec_step_count(l->exec)); /* before the tasks of a step */
    const questions all = q;
    for (int last = 1; last <= all.asked; last += 7) {
        q = (questions){.last = last};
        lw_store_touch(l->store,
                       LW_SLAB_PARAM); /* what is prepared is cut off too, and made again */
        assert_int_equal(lw_exec_run(l->exec, NULL), LW_ESTOPPED);
        assert_int_equal(q.asked, last);
    }
    q = (questions){0};
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    lw_pool_watch(l->dev->pool, NULL);
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    assert_in_range(q.asked, 1, all.asked);
}

/* A store follows the exec that binds it; what the host edits is there from its touch on. */
static void test_store_on_a_device(void **state)
{
    (void)state;
    plan_lab l;
    lw_device *cpu = NULL;
    lw_plan *plan = NULL;
    lw_exec *exec = NULL;
    const lw_backend_options o = {.threads = 1, .isa = LW_ISA_REF};
    memset(&l, 0, sizeof l);
    assert_int_equal(lw_backend_open("cpu-discrete", &o, &l.dev), 0);
    assert_int_equal(lw_graph_new(&l.g), 0);
    assert_int_equal(lw_store_new(false, &l.store), 0);
    l.b = (lw_builder){.g = l.g, .params = lw_store_params(l.store)};
    lab_output(&l, "y", lw_sqr(l.g, LAB_P(&l, "w", 3)));
    assert_int_equal(lw_store_fix(l.store), 0);
    lw_store_init(l.store, 3);
    assert_ptr_equal(lw_store_slab(l.store, LW_SLAB_PARAM, NULL),
                     lw_store_data(l.store, 0, LW_SLAB_PARAM));
    lab_compile(&l, 1);
    assert_ptr_not_equal(lw_store_slab(l.store, LW_SLAB_PARAM, NULL),
                         lw_store_data(l.store, 0, LW_SLAB_PARAM));
    for (float v = 2; v < 4; v++) {
        lw_store_edit(l.store, 0, LW_SLAB_PARAM)[1] = v;
        lw_store_touch(l.store, LW_SLAB_PARAM);
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        assert_true(((const float *)lw_exec_read(l.exec, "y"))[1] == v * v);
        assert_true(lw_store_data(l.store, 0, LW_SLAB_PARAM)[1] == v);
    }
    assert_int_equal(lw_backend_open("cpu", &o, &cpu), 0);
    assert_int_equal(lw_compile(l.g, cpu, &(lw_compile_opts){.opt = 1}, &plan), 0);
    assert_int_equal(lw_exec_new(plan, LW_SLAB_PARAM, &exec), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "on another device"));
    lw_plan_free(&plan);
    lab_close(&l);
    lw_backend_close(&cpu);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { SLOTS = 2, CHANNELS = 24, TAUS = 2, PLACES = LW_DRIFT_STATS(TAUS) };

/* The drift field of `groups` groups of n samples and n positives. */
static void open_field(plan_lab *l, int groups, int n)
{
    lw_attr_drift a = {.groups = groups,
                       .n = n,
                       .np = n,
                       .slots = SLOTS,
                       .c = CHANNELS,
                       .n_tau = TAUS,
                       .tau = {0.05, 0.2},
                       .normalize_over_x = true};
    lab_open(l, 2, lw_isa_best());
    lw_drift_out o = lw_drift_field(l->g, LAB_X(l, "x", groups * n, SLOTS, CHANNELS),
                                    LAB_X(l, "p", groups * n, SLOTS, CHANNELS), LW_NOVAL, LW_NOVAL,
                                    &a);
    lab_output(l, "dx", o.dx);
    lab_output(l, "stats", o.stats);
    lab_compile(l, 1);
    lab_fill(l);
}

typedef struct gathering {
    lw_device *dev;
    int64_t groups, blocks; /* parts: one a task */
    char names[64];
    double by; /* S as if it were so much larger */
} gathering;

/* List of `n` parts of `row` numbers: the first becomes what all together are, the others nothing. */
static void gather_list(void *data, const lw_reduction *r, int64_t at, int64_t n, int64_t row)
{
    double *d = data;
    float *s = data;
    for (int64_t to = at; to < at + row; to++)
        for (int64_t from = to + row; from < at + n * row; from += row) {
            if (r->type == LW_F64) {
                d[to] += d[from];
                d[from] = 0;
            } else if (r->op == LW_REDUCE_SUM) {
                s[to] += s[from];
                s[from] = 0;
            } else {
                s[to] = fminf(s[to], s[from]);
                s[from] = 3e38f;
            }
        }
}

/* As ranks would put the parts together; minima of a group's targets are followed by their own. */
static void gather(void *self, const lw_reduction *r, void *data)
{
    gathering *f = self;
    const lw_memory *m = f->dev->memory;
    size_t bytes = (size_t)r->count * (r->type == LW_F64 ? 8 : 4);
    char *copy = malloc(bytes);
    m->write ? m->read(m->self, copy, data, bytes) : (void)memcpy(copy, data, bytes);
    snprintf(f->names + strlen(f->names), sizeof f->names - strlen(f->names), "%s ", r->name);
    if (r->op == LW_REDUCE_MEAN)
        gather_list(copy, r, 0, f->groups * f->blocks, r->count / (f->groups * f->blocks));
    for (int64_t g = 0; g < f->groups && r->op != LW_REDUCE_MEAN; g++)
        gather_list(copy, r, g * r->count / f->groups, f->blocks,
                    r->count / f->groups / (f->blocks + (r->op == LW_REDUCE_MIN)));
    if (strcmp(r->name, "scale") == 0)
        *(double *)(void *)copy *= f->by;
    m->write ? m->write(m->self, data, copy, bytes) : (void)memcpy(data, copy, bytes);
    free(copy);
}

static void check_gather(int groups, int n, int blocks, const char *names)
{
    plan_lab l;
    float stats[PLACES];
    open_field(&l, groups, n);
    gathering f = {.dev = l.dev, .groups = groups * SLOTS, .blocks = blocks, .by = 1};
    const lw_ranks ranks = {.self = &f, .reduce = gather};
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    size_t bytes = lw_type_bytes(lw_exec_type(l.exec, "dx"));
    float *dx = malloc(bytes);
    memcpy(dx, lw_exec_read(l.exec, "dx"), bytes);
    memcpy(stats, lw_exec_read(l.exec, "stats"), sizeof stats);
    lw_exec_ranks(l.exec, &ranks);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_string_equal(f.names, names);
    assert_memory_equal(lw_exec_read(l.exec, "stats"), stats, sizeof stats);
    assert_memory_equal(lw_exec_read(l.exec, "dx"), dx, bytes);
    f.by = 2;
    f.names[0] = 0;
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(((const float *)lw_exec_read(l.exec, "stats"))[0] == 2 * stats[0]);
    lw_exec_ranks(l.exec, NULL);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_memory_equal(lw_exec_read(l.exec, "stats"), stats, sizeof stats);
    free(dx);
    lab_close(&l);
}

/* What the field says are its parts are all that passes between its tasks. */
static void test_reductions_hold_all_parts(void **state)
{
    (void)state;
    if (lw_isa_best() == LW_ISA_REF)
        skip();
    check_gather(3, 8, 1, "scale moments ");
    check_gather(1, 300, 5, "scale minima columns moments ");
}

/* Two ranks of two groups each, in threads that meet at every reduction. */
typedef struct rank {
    plan_lab l;
    struct rank *other;
    pthread_barrier_t *meet;
    double sent[64];
    int rc;
} rank;

static void mean_of_both(void *self, const lw_reduction *r, void *data)
{
    rank *me = self;
    double *part = data;
    memcpy(me->sent, part, (size_t)r->count * sizeof *part);
    pthread_barrier_wait(me->meet);
    for (int64_t i = 0; i < r->count; i++)
        part[i] = 0.5 * (me->sent[i] + me->other->sent[i]);
    pthread_barrier_wait(me->meet);
}

static void *run_rank(void *arg)
{
    rank *me = arg;
    const lw_ranks ranks = {.self = me, .reduce = mean_of_both};
    lw_exec_ranks(me->l.exec, &ranks);
    me->rc = lw_exec_run(me->l.exec, NULL);
    return NULL;
}

/* Groups spread over ranks have the field of all of them; its mean is over a rank's own rows. */
static void test_two_ranks_have_one_field(void **state)
{
    enum { N = 8, HALF = 2 * N * SLOTS * CHANNELS };
    (void)state;
    if (lw_isa_best() == LW_ISA_REF || strcmp(lw_backend_chosen(), "cpu") != 0)
        skip();
    plan_lab whole;
    rank rank_of[2];
    pthread_barrier_t meet;
    pthread_t thread[2];
    open_field(&whole, 4, N);
    assert_int_equal(lw_exec_run(whole.exec, NULL), 0);
    assert_int_equal(pthread_barrier_init(&meet, NULL, 2), 0);
    for (int i = 0; i < 2; i++) {
        rank_of[i].other = &rank_of[!i];
        rank_of[i].meet = &meet;
        open_field(&rank_of[i].l, 2, N);
        for (const char *const *name = (const char *const[]){"x", "p", NULL}; *name; name++)
            memcpy(lw_exec_write(rank_of[i].l.exec, *name),
                   (const float *)lw_exec_read(whole.exec, *name) + (ptrdiff_t)i * HALF,
                   HALF * sizeof(float));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_rank, &rank_of[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&meet);
    const float *stats = lw_exec_read(whole.exec, "stats"), *dx = lw_exec_read(whole.exec, "dx");
    for (int i = 0; i < 2; i++) {
        const float *s = lw_exec_read(rank_of[i].l.exec, "stats"),
                    *d = lw_exec_read(rank_of[i].l.exec, "dx");
        assert_int_equal(rank_of[i].rc, 0);
        for (int k = 0; k < PLACES; k++)
            assert_true(fabsf(s[k] - stats[k]) <= 1e-6f * fabsf(stats[k]));
        for (int k = 0; k < HALF; k++)
            assert_true(fabsf(d[k] - 2 * dx[i * HALF + k]) <= 1e-6f * fabsf(d[k]) + 1e-9f);
        lab_close(&rank_of[i].l);
    }
    lab_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_by_name),
        cmocka_unit_test(test_ports_of_the_cpu_are_no_copies),
        cmocka_unit_test(test_discrete_memory_tells_who_did_not_ask),
        cmocka_unit_test(test_products_of_f32_to_bf16_are_refused),
        cmocka_unit_test(test_store_on_a_device),
        cmocka_unit_test(test_reductions_hold_all_parts),
        cmocka_unit_test(test_two_ranks_have_one_field),
        LAB_CASE(test_watched_runs_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
