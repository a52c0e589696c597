/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared data: execs whose plans prepare the same hold it once, and make it once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan_util.h"

enum { ROW = 8 * 8 * 3 };

/* Phases of prepare steps that a device was told to run. */
static int (*run_inner)(void *self, const lw_launch *l);
static const lw_plan *watched[2];
static int prepared;

static int run_counted(void *self, const lw_launch *l)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < watched[i]->n_prepare; k++)
            prepared += l->low == &watched[i]->step[k].low;
    return run_inner(self, l);
}

static int count_blocks(const lw_device *dev)
{
    int n = 0;
    for (const lw_derived *d = dev->derived; d; d = d->next)
        n++;
    return n;
}

/* Plan and exec of the lab's U-Net at batch 8, and another plan and exec at `batch`. */
typedef struct pair {
    plan_lab l;
    lw_plan *plan;
    lw_exec *exec;
} pair;

static void open_pair(pair *p, int32_t batch, lw_num precision, lw_slab weights)
{
    *p = (pair){0};
    lab_open(&p->l, 1, LW_ISA_REF);
    lab_unet_sample(&p->l, 8);
    lab_compile(&p->l, 1);
    lab_fill(&p->l);
    lw_graph_free(&p->l.g);
    assert_int_equal(lw_graph_new(&p->l.g), 0);
    p->l.b.g = p->l.g;
    lab_unet_sample(&p->l, batch);
    const lw_compile_opts o = {.opt = 1, .precision = precision};
    assert_int_equal(lw_compile(p->l.g, p->l.dev, &o, &p->plan), 0);
    assert_int_equal(lw_exec_new(p->plan, weights, &p->exec), 0);
    for (int i = 0; i < p->plan->n_input; i++) {
        const lw_plan_port *port = &p->plan->input[i];
        memcpy(lw_exec_write(p->exec, port->name), lw_exec_read(p->l.exec, port->name),
               lw_type_bytes(port->type));
    }
    watched[0] = p->l.plan;
    watched[1] = p->plan;
    run_inner = p->l.dev->run;
    p->l.dev->run = run_counted;
    prepared = 0;
}

static void close_pair(pair *p)
{
    lw_exec_free(&p->exec);
    lw_plan_free(&p->plan);
    lw_exec_free(&p->l.exec);
    assert_null(p->l.dev->derived);
    lab_close(&p->l);
}

static void run(lw_exec *e)
{
    assert_int_equal(lw_exec_run(e, &(lw_tick){1, 1}), 0);
}

static void double_weights(lw_store *s)
{
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        float *w = lw_store_edit(s, i, LW_SLAB_PARAM);
        for (int64_t k = 0; k < lw_store_at(s, i)->count; k++)
            w[k] *= 2.0f;
    }
    lw_store_touch(s, LW_SLAB_PARAM);
}

/* Two batches of one network: one block, made once per version by whoever comes first. */
static void test_batches_share(void **state)
{
    (void)state;
    pair p;
    float first[ROW];
    open_pair(&p, 1, LW_NUM_F32, LW_SLAB_PARAM);
    const lw_derived *d = p.l.dev->derived;
    assert_int_equal(count_blocks(p.l.dev), 1);
    assert_int_equal(d->users, 2);
    assert_true(p.plan->n_prepare > 10 && d->bytes == p.plan->derived_bytes);
    assert_int_equal(lw_plan_get_info(p.l.plan).derived_bytes, d->bytes);
    lw_exec *execs[] = {p.l.exec, p.exec};
    for (int turn = 0; turn < 2; turn++) {
        prepared = 0;
        run(execs[turn]);
        int once = prepared;
        assert_true(once >= p.plan->n_prepare);
        run(execs[!turn]);
        run(execs[turn]);
        assert_int_equal(prepared, once);
        const float *y = lw_exec_read(p.l.exec, "y");
        assert_memory_equal(lw_exec_read(p.exec, "y"), y, sizeof first);
        if (turn == 1)
            assert_memory_not_equal(first, y, sizeof first);
        memcpy(first, y, sizeof first);
        double_weights(p.l.store);
    }
    close_pair(&p);
}

/* Whichever is freed first, plan and all: the other goes on, also with new weights. */
static void test_freed_in_any_order(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        pair p;
        float before[ROW], after[ROW];
        open_pair(&p, 1, LW_NUM_F32, LW_SLAB_PARAM);
        lw_exec **gone = order ? &p.exec : &p.l.exec, **stays = order ? &p.l.exec : &p.exec;
        lw_plan **plan = order ? &p.plan : &p.l.plan;
        run(*gone);
        memcpy(before, lw_exec_read(*gone, "y"), sizeof before);
        lw_exec_free(gone);
        lw_plan_free(plan);
        watched[0] = watched[1] = order ? p.l.plan : p.plan;
        assert_int_equal(p.l.dev->derived->users, 1);
        prepared = 0;
        run(*stays);
        assert_int_equal(prepared, 0);
        assert_memory_equal(lw_exec_read(*stays, "y"), before, sizeof before);
        double_weights(p.l.store);
        run(*stays);
        assert_true(prepared > 0);
        memcpy(after, lw_exec_read(*stays, "y"), sizeof after);
        assert_memory_not_equal(after, before, sizeof after);
        close_pair(&p);
    }
}

/* Weights and averages, other precisions, other stores: blocks of their own. */
static void test_apart(void **state)
{
    (void)state;
    pair p;
    plan_lab other;
    open_pair(&p, 1, LW_NUM_F32, LW_SLAB_EMA);
    assert_int_equal(count_blocks(p.l.dev), 2);
    run(p.l.exec);
    run(p.exec);
    int all = prepared;
    lw_store_touch(p.l.store, LW_SLAB_EMA); /* of the averages only */
    run(p.l.exec);
    assert_int_equal(prepared, all);
    run(p.exec);
    assert_true(prepared > all);
    close_pair(&p);

    open_pair(&p, 8, LW_NUM_BF16, LW_SLAB_PARAM);
    assert_int_equal(count_blocks(p.l.dev), 2);
    close_pair(&p);

    open_pair(&p, 8, LW_NUM_F32, LW_SLAB_PARAM);
    assert_int_equal(count_blocks(p.l.dev), 1);
    lab_open(&other, 1, LW_ISA_REF);
    lw_device *own = other.dev;
    other.dev = p.l.dev; /* the same network in another store */
    lab_unet_sample(&other, 8);
    lab_compile(&other, 1);
    assert_int_equal(count_blocks(p.l.dev), 2);
    other.dev = own;
    lab_close(&other);
    close_pair(&p);
}

/* So are plans of the same shapes that make something else of the same weights. */
static void test_other_arithmetic_apart(void **state)
{
    static const float by[4] = {2, 3, 2, 3};
    (void)state;
    plan_lab l;
    lw_plan *plan[4] = {NULL};
    lw_exec *exec[4] = {NULL};
    lab_open(&l, 1, LW_ISA_REF);
    for (int i = 0; i < 4; i++) {
        const float row[4] = {by[i], 1, 1, 1};
        lw_val w = LAB_P(&l, "w", 5, 4), x = LAB_X(&l, "x", 3, 4);
        lw_val c = lw_const(l.g, lw_type_of(LW_F32, 1, 4), row);
        w = i < 2 ? lw_scale(l.g, w, by[i]) : lw_mul(l.g, w, c);
        lab_output(&l, "y", lw_linear_op(l.g, x, w, LW_NOVAL));
        assert_int_equal(lw_store_fix(l.store), 0);
        assert_int_equal(lw_compile(l.g, l.dev, NULL, &plan[i]), 0);
        assert_int_equal(lw_exec_new(plan[i], LW_SLAB_PARAM, &exec[i]), 0);
        assert_true(plan[i]->n_prepare > 0);
        assert_int_equal(count_blocks(l.dev), i + 1);
        lw_graph_free(&l.g);
        assert_int_equal(lw_graph_new(&l.g), 0);
        l.b.g = l.g;
    }
    for (int i = 0; i < 4; i++) {
        lw_exec_free(&exec[i]);
        lw_plan_free(&plan[i]);
    }
    lab_close(&l);
}

static bool always(void *self)
{
    (void)self;
    return true;
}

/* A block that was cut off is not taken for whole by the others. */
static void test_stopped_while_preparing(void **state)
{
    (void)state;
    pair p;
    const lw_observer stop = {.should_stop = always};
    open_pair(&p, 1, LW_NUM_F32, LW_SLAB_PARAM);
    lw_pool_watch(p.l.dev->pool, &stop);
    assert_int_equal(lw_exec_run(p.l.exec, NULL), LW_ESTOPPED);
    lw_pool_watch(p.l.dev->pool, NULL);
    prepared = 0;
    run(p.exec);
    assert_true(prepared >= p.plan->n_prepare);
    int once = prepared;
    run(p.l.exec);
    assert_int_equal(prepared, once);
    assert_memory_equal(lw_exec_read(p.exec, "y"), lw_exec_read(p.l.exec, "y"),
                        ROW * sizeof(float));
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_share),
        cmocka_unit_test(test_freed_in_any_order),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_other_arithmetic_apart),
        cmocka_unit_test(test_stopped_while_preparing),
    };
    return cmocka_run_group_tests_name("plan_derived", tests, NULL, NULL);
}
