/* SPDX-License-Identifier: Apache-2.0 */
/* Whole plans: prepared data made when and only when it must be, no allocation,
 * errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "store/store.h"
#include "models/models.h"

#include "plan/plan_util.h"

/* ---- prepare --------------------------------------------------------------------------------- */

/* Without t the time embedding depends on parameters only: it, and every projection of it, is
 * prepared. */
static void test_constant_time_is_prepared(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lab_unet_sample(&l, 2);
    lab_compile(&l, 1);
    int embedding = 0, packs = 0;
    for (int k = 0; k < l.plan->n_steps; k++) {
        const lw_node *n = l.plan->step[k].node;
        bool early = k < l.plan->n_prepare;
        if (n->op == LW_OP_PACK) {
            assert_true(early);
            packs++;
        }
        if (strstr(n->scope, "time_embedding")) {
            if (!early && n->op == LW_OP_MATMUL)
                fail_msg("%s is a step of every run", n->scope);
            embedding += early;
        }
    }
    assert_true(embedding >= 2 && packs > 10);
    lab_close(&l);
}

/* A DDIM sampler binds t: the embedding follows it, and is a step of every run; packs are not. */
static void test_bound_time_is_not_prepared(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_unet_config c = lab_unet();
    c.classes = c.latent_dim = 0;
    l.b.training = false;
    lw_network_in in = {.x = LAB_X(&l, "x", 2, 8, 8, 3), .t = LAB_X(&l, "t", 2)};
    lab_output(&l, "y", lw_unet(&l.b, &c, in));
    lab_compile(&l, 1);
    int embedding = 0;
    for (int k = 0; k < l.plan->n_steps; k++) {
        const lw_node *n = l.plan->step[k].node;
        if (n->op == LW_OP_MATMUL && strstr(n->scope, "time_emb")) {
            assert_true(k >= l.plan->n_prepare);
            embedding++;
        }
        assert_true(n->op != LW_OP_PACK || k < l.plan->n_prepare);
    }
    assert_int_equal(embedding, 2); /* its first layer, and one product for what all blocks read */
    lab_close(&l);
}

/* With latent and classes absent every time projection folds too; the run has no matrix product but
 * attention's. */
static void test_projections_fold(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_unet_config c = lab_unet();
    c.classes = c.latent_dim = 0;
    l.b.training = false;
    lab_output(&l, "y", lw_unet(&l.b, &c, (lw_network_in){.x = LAB_X(&l, "x", 2, 8, 8, 3)}));
    lab_compile(&l, 1);
    for (int k = l.plan->n_prepare; k < l.plan->n_steps; k++) {
        const lw_node *n = l.plan->step[k].node;
        if (n->op == LW_OP_MATMUL && !strstr(n->scope, "attentions"))
            fail_msg("%s is a step of every run", n->scope);
    }
    lab_close(&l);
}

/* Draws are made by every run, even where row ids are constants. */
static void test_draws_are_never_prepared(void **state)
{
    (void)state;
    plan_lab l;
    const int64_t ids[3] = {4, 5, 6};
    float first[12];
    lab_open(&l, 1, LW_ISA_REF);
    lw_val rows = lw_const(l.g, lw_type_of(LW_I64, 1, 3), ids);
    lw_val noise = lw_random(l.g, "n", LW_RANDOM_NORMAL, 0, lw_type_of(LW_F32, 2, 3, 4), rows);
    lab_output(&l, "y", lw_scale(l.g, lw_silu(l.g, noise), 2.0f));
    lab_compile(&l, 1);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 1}), 0);
    memcpy(first, lw_exec_read(l.exec, "y"), sizeof first);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 2}), 0);
    assert_memory_not_equal(first, lw_exec_read(l.exec, "y"), sizeof first);
    assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, 1}), 0);
    assert_memory_equal(first, lw_exec_read(l.exec, "y"), sizeof first);
    lab_close(&l);
}

static double sum_of(plan_lab *l)
{
    double s = 0.0;
    const float *y = lw_exec_read(l->exec, "y");
    assert_int_equal(lw_exec_run(l->exec, NULL), 0);
    for (int64_t i = 0; i < lw_type_count(lw_exec_type(l->exec, "y")); i++)
        s += (double)y[i] * (double)(i % 7 + 1);
    return s;
}

/* Prepared data follows the store's version: not its bytes, and not the run. */
static void test_prepared_again_when_version_moves(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lab_output(&l, "y", lw_linear_op(l.g, LAB_X(&l, "x", 3, 4), LAB_P(&l, "w", 5, 4), LW_NOVAL));
    lab_compile(&l, 1);
    lab_fill(&l);
    double before = sum_of(&l);
    float *w = lw_store_edit(l.store, 0, LW_SLAB_PARAM);
    for (int i = 0; i < 20; i++)
        w[i] *= 2.0f;
    assert_true(sum_of(&l) == before); /* nobody said so: the packed copy stands */
    lw_store_touch(l.store, LW_SLAB_PARAM);
    assert_true(sum_of(&l) == 2.0 * before);
    lw_store_touch(l.store, LW_SLAB_EMA); /* another slab: not what this exec reads */
    for (int i = 0; i < 20; i++)
        w[i] *= 2.0f;
    assert_true(sum_of(&l) == 2.0 * before);
    lab_close(&l);
}

/* An exec of averaged weights over a frozen store reads PARAM: PARAM's version counts. */
static void test_version_of_the_slab_that_is_read(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_store_free(&l.store);
    assert_int_equal(lw_store_new(true, &l.store), 0);
    l.b.params = lw_store_params(l.store);
    lab_output(&l, "y", lw_linear_op(l.g, LAB_X(&l, "x", 3, 4), LAB_P(&l, "w", 5, 4), LW_NOVAL));
    lab_compile(&l, 1);
    lw_exec_free(&l.exec);
    assert_int_equal(lw_exec_new(l.plan, LW_SLAB_EMA, &l.exec), 0);
    lab_fill(&l);
    double before = sum_of(&l);
    float *w = lw_store_edit(l.store, 0, LW_SLAB_PARAM);
    for (int i = 0; i < 20; i++)
        w[i] *= 2.0f;
    lw_store_touch(l.store, LW_SLAB_PARAM);
    assert_true(sum_of(&l) == 2.0 * before);
    lab_close(&l);
}

/* Two execs of one plan: each prepares its own; weights and averages side by side. */
static void test_two_execs_of_one_plan(void **state)
{
    (void)state;
    plan_lab l;
    LW_CLEANUP(lw_exec_free) lw_exec *ema = NULL;
    lab_open(&l, 1, LW_ISA_REF);
    lab_output(&l, "y", lw_linear_op(l.g, LAB_X(&l, "x", 3, 4), LAB_P(&l, "w", 5, 4), LW_NOVAL));
    lab_compile(&l, 1);
    float *average = lw_store_edit(l.store, 0, LW_SLAB_EMA);
    for (int i = 0; i < 20; i++)
        average[i] *= 3.0f;
    lw_store_touch(l.store, LW_SLAB_EMA);
    assert_int_equal(lw_exec_new(l.plan, LW_SLAB_EMA, &ema), 0);
    lab_fill(&l);
    memcpy(lw_exec_write(ema, "x"), lw_exec_read(l.exec, "x"), 12 * sizeof(float));
    sum_of(&l);
    assert_int_equal(lw_exec_run(ema, NULL), 0);
    const float *a = lw_exec_read(l.exec, "y"), *b = lw_exec_read(ema, "y");
    for (int i = 0; i < 15; i++)
        assert_true(b[i] - 3.0f * a[i] < 1e-5f && 3.0f * a[i] - b[i] < 1e-5f);
    lw_exec_free(&ema);
    lab_close(&l);
}

/* A neighbour runs alone inside a task of the device, side by side with others, on the owner's
 * prepared data; same bits. */
typedef struct neighbours {
    lw_exec *of[6];
} neighbours;

static void run_neighbour(void *arg, int64_t task, int worker)
{
    neighbours *n = arg;
    (void)worker;
    lw_exec_run_alone(n->of[task], &(lw_tick){7, (uint32_t)task});
}

static void test_neighbours_run_side_by_side(void **state)
{
    (void)state;
    plan_lab l;
    neighbours n;
    lab_open(&l, 3, lw_isa_best());
    lab_unet_sample(&l, 4);
    lab_compile(&l, 1);
    lab_fill(&l);
    size_t bytes = (size_t)lw_type_count(lw_exec_type(l.exec, "y")) * sizeof(float);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(lw_exec_new_beside(l.exec, &n.of[i]), 0);
        for (int p = 0; p < l.plan->n_input; p++) {
            const char *name = l.plan->input[p].name;
            memcpy(lw_exec_write(n.of[i], name), lw_exec_read(l.exec, name),
                   (size_t)lw_type_bytes(lw_exec_type(l.exec, name)));
        }
        if (i > 0) /* others than the first have pictures of their own */
            ((float *)lw_exec_write(n.of[i], "x"))[0] = (float)i;
    }
    for (int again = 0; again < 2; again++) {
        lw_exec_prepare(l.exec);
        uint64_t before = lw_alloc_count();
        lw_pool_run(l.dev->pool, 6, run_neighbour, &n);
        assert_int_equal(lw_alloc_count(), before);
        assert_int_equal(lw_exec_run(l.exec, &(lw_tick){7, 0}), 0);
        assert_memory_equal(lw_exec_read(n.of[0], "y"), lw_exec_read(l.exec, "y"), bytes);
        assert_memory_not_equal(lw_exec_read(n.of[5], "y"), lw_exec_read(l.exec, "y"), bytes);
        float *w = lw_store_edit(l.store, 0, LW_SLAB_PARAM);
        w[0] += 0.5f;
        lw_store_touch(l.store, LW_SLAB_PARAM);
    }
    for (int i = 0; i < 6; i++)
        lw_exec_free(&n.of[i]);
    lab_close(&l);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* x <- x + factor of this run * (what the network makes of x). */
static void loop_graph(plan_lab *l)
{
    static const float factor[4] = {0.5f, 0.25f, 0.125f, 0.0625f};
    lw_unet_config c = lab_unet();
    c.classes = c.latent_dim = 0;
    l->b.training = false;
    lw_val x = LAB_X(l, "x", 2, 8, 8, 3), y = lw_unet(&l->b, &c, (lw_network_in){.x = x});
    lw_val by = lw_at_step(l->g, lw_const(l->g, lw_type_of(LW_F32, 1, 4), factor));
    lw_graph_output_add(l->g, "next", lw_add(l->g, x, lw_mul(l->g, y, by)), x);
}

/* A loop over a state is the loop that copies the output into the input; it copies nothing, and its
 * memory is whole: what a run makes stays until the next one has read it. */
static void test_states(void **state)
{
    enum { N = 2 * 8 * 8 * 3, RUNS = 5 };
    (void)state;
    for (int opt = 0; opt < 2; opt++) {
        plan_lab l;
        float start[N], want[N];
        lab_open(&l, 2, lw_isa_best());
        loop_graph(&l);
        lab_compile(&l, opt);
        lab_fill(&l);
        memcpy(start, lw_exec_read(l.exec, "x"), sizeof start);
        memcpy(want, start, sizeof want);
        for (uint32_t k = 0; k < RUNS; k++) {
            memcpy(lw_exec_write(l.exec, "x"), want, sizeof want);
            assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, k}), 0);
            memcpy(want, lw_exec_read(l.exec, "next"), sizeof want);
        }
        memcpy(lw_exec_write(l.exec, "x"), start, sizeof start);
        uint64_t before = lw_alloc_count();
        for (uint32_t k = 0; k < RUNS; k++) {
            if (k > 0)
                lw_exec_advance(l.exec);
            assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, k}), 0);
        }
        assert_int_equal(lw_alloc_count(), before);
        assert_memory_equal(lw_exec_read(l.exec, "next"), want, sizeof want);
        assert_memory_not_equal(start, want, sizeof want);
        lab_close(&l);
    }
}

/* Whatever turn it is, a state and what becomes of it have memory of their own. */
static void test_state_unbound(void **state)
{
    (void)state;
    for (int turns = 0; turns < 3; turns++)
        for (int other = 0; other < 3; other++) {
            /* bound before, 1: behind the turns, 2: before the last of them */
            plan_lab l;
            float given[4] = {5, 6, 7, 8}, *x;
            lab_open(&l, 1, LW_ISA_REF);
            lw_val v = LAB_X(&l, "x", 4);
            lw_graph_output_add(l.g, "next", lw_add_f32(l.g, v, 1.0f), v);
            lab_compile(&l, 1);
            for (int i = 0; i < turns; i++) {
                if (other == 2 && i + 1 == turns)
                    assert_int_equal(lw_exec_bind(l.exec, "x", given), 0);
                lw_exec_advance(l.exec);
            }
            if (other == 1)
                assert_int_equal(lw_exec_bind(l.exec, "x", given), 0);
            assert_int_equal(lw_exec_bind(l.exec, "x", NULL), 0);
            x = lw_exec_write(l.exec, "x");
            assert_true(x != given && lw_exec_read(l.exec, "next") != (void *)given &&
                        x != lw_exec_read(l.exec, "next"));
            memcpy(x, given, sizeof given);
            assert_int_equal(lw_exec_run(l.exec, NULL), 0);
            assert_memory_equal(x, given, sizeof given);
            assert_true(((const float *)lw_exec_read(l.exec, "next"))[3] == 9.0f);
            lab_close(&l);
        }
}

/* A forward run makes its outputs, whatever the backward pass computes as well. */
static void test_forward_makes_its_own(void **state)
{
    (void)state;
    for (int opt = 0; opt < 2; opt++) {
        plan_lab l;
        lab_open(&l, 1, LW_ISA_REF);
        lw_val w = LAB_P(&l, "w", 2, 3), y = lw_mul(l.g, LAB_X(&l, "x", 2, 3), w);
        lw_val loss = lw_mean(l.g, lw_sqr(l.g, y), LW_OVER_ALL);
        lab_output(&l, "loss", loss);
        lw_grad_params(l.g, loss, LW_NOVAL);
        lab_output(&l, "z", lw_scale(l.g, y, 2.0f)); /* as the square's gradient is */
        lab_compile(&l, opt);
        lab_fill(&l);
        float z[6];
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        memcpy(z, lw_exec_read(l.exec, "z"), sizeof z);
        lab_fill(&l);
        ((float *)lw_exec_write(l.exec, "x"))[0] *= 2.0f;
        assert_int_equal(lw_exec_run_forward(l.exec, NULL), 0);
        assert_true(((const float *)lw_exec_read(l.exec, "z"))[0] == 2.0f * z[0]);
        lab_close(&l);
    }
}

/* So do weights of upsampling convolutions that vary, which the backward pass alone made first. */
static void test_forward_makes_its_own_weights(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_val z = LAB_X(&l, "z", 1, 4, 4, 8), w = lw_scale(l.g, LAB_X(&l, "w", 8, 3, 3, 8), 0.5f), dz;
    lw_val y = lw_conv2d_op(l.g, lw_upsample(l.g, z, 2), w, LW_NOVAL, 1, 1);
    lw_val dy = LAB_X(&l, "dy", 1, 8, 8, 8), later = LAB_X(&l, "later", 1, 4, 4, 8);
    lw_grad(l.g, &y, &dy, 1, &z, &dz, 1);
    lab_output(&l, "dz", dz);
    lab_output(&l, "y", lw_conv2d_op(l.g, lw_upsample(l.g, later, 2), w, LW_NOVAL, 1, 1));
    lab_compile(&l, 1);
    lab_fill(&l);
    float forward[8 * 8 * 8];
    assert_int_equal(lw_exec_run_forward(l.exec, NULL), 0);
    memcpy(forward, lw_exec_read(l.exec, "y"), sizeof forward);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_memory_equal(lw_exec_read(l.exec, "y"), forward, sizeof forward);
    lab_close(&l);
}

/* Of no pictures every gradient is 0, and is written. */
static void test_no_rows(void **state)
{
    (void)state;
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        plan_lab l;
        lab_open(&l, 1, isa);
        lw_val x = LAB_X(&l, "x", 0, 8, 8, 32);
        x = lw_conv2d_op(l.g, x, LAB_P(&l, "w3", 32, 3, 3, 32), LAB_P(&l, "b3", 32), 1, 1);
        x = lw_group_norm_op(l.g, x, LAB_P(&l, "gamma", 32), LAB_P(&l, "beta", 32), LW_NOVAL,
                             LW_NOVAL, 8, 1e-5f, LW_ACT_SILU);
        x = lw_conv2d_op(l.g, x, LAB_P(&l, "w1", 48, 1, 1, 32), LW_NOVAL, 1, 0);
        x = lw_conv2d_op(l.g, x, LAB_P(&l, "w2", 32, 3, 3, 48), LW_NOVAL, 2, 1);
        x = lw_mean(l.g, x, LW_OVER_MIDDLE);
        x = lw_linear_op(l.g, x, LAB_P(&l, "w", 8, 32), LAB_P(&l, "b", 8));
        lw_val loss = lw_mean(l.g, lw_sqr(l.g, x), LW_OVER_ALL);
        lab_output(&l, "loss", loss);
        lw_grad_params(l.g, loss, LW_NOVAL);
        lab_compile(&l, 1);
        for (int32_t i = 0; i < lw_store_count(l.store); i++) {
            float *grad = lw_store_edit(l.store, i, LW_SLAB_GRAD);
            for (int64_t k = 0; k < lw_store_at(l.store, i)->count; k++)
                grad[k] = NAN;
        }
        assert_int_equal(lw_exec_run(l.exec, NULL), 0);
        for (int32_t i = 0; i < lw_store_count(l.store); i++) {
            const lw_store_entry *e = lw_store_at(l.store, i);
            const float *grad = lw_store_data(l.store, i, LW_SLAB_GRAD);
            for (int64_t k = 0; k < e->count; k++)
                if (grad[k] != 0.0f)
                    fail_msg("%s at %s: %g", e->name, lw_isa_name(isa), (double)grad[k]);
        }
        lab_close(&l);
    }
}

/* A state has the type of its input. */
static void test_state_types(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_val x = LAB_X(&l, "x", 2, 3), y = LAB_X(&l, "y", 3, 2);
    lw_graph_output_add(l.g, "next", lw_relu(l.g, y), x);
    assert_int_equal(lw_graph_error(l.g), LW_ESHAPE);
    assert_non_null(strstr(lw_errmsg(), "goes into an input or parameter of its type"));
    lab_close(&l);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static void test_replay_does_not_allocate(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 3, lw_isa_best());
    lab_unet_train(&l, 4);
    lab_compile(&l, 1);
    lab_fill(&l);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, i}), 0);
    uint64_t before = lw_alloc_count();
    for (uint32_t i = 2; i < 5; i++) {
        lw_store_touch(l.store, LW_SLAB_PARAM); /* with preparing again */
        assert_int_equal(lw_exec_run(l.exec, &(lw_tick){1, i}), 0);
    }
    assert_int_equal(lw_alloc_count(), before);
    lab_close(&l);
}

/* A frame is what it was said to be, and a plan's text does not depend on where it was compiled,
 * but for the level's choice of convolutions. */
static void same_everywhere(lw_conv_mode conv, lw_isa isa0, lw_isa isa1)
{
    LW_CLEANUP(lw_str_clear) lw_str first = {0};
    for (lw_isa isa = isa0; isa <= isa1; isa = lw_isa_next(isa))
        for (int threads = 1; threads < 6; threads += 2) {
            plan_lab l;
            LW_CLEANUP(lw_str_clear) lw_str text = {0};
            lab_open_conv(&l, threads, isa, conv);
            lab_unet_train(&l, 2);
            lab_compile(&l, 1);
            lw_plan_print(&text, l.plan);
            lw_plan_info info = lw_plan_get_info(l.plan);
            assert_int_equal(info.frame_bytes,
                             l.plan->frame_bytes + l.plan->scratch_bytes * (size_t)threads);
            if (!first.len)
                lw_str_add(&first, lw_str_c(&text));
            assert_string_equal(lw_str_c(&first), lw_str_c(&text));
            lab_close(&l);
        }
}

static void test_plan_is_the_same_everywhere(void **state)
{
    (void)state;
    /* Tile registers want weights of f32 in another layout. */
    const lw_isa vectors = LW_MIN(lw_isa_best(), LW_ISA_AVX512BF16);
    same_everywhere(LW_CONV_MODE_DIRECT, LW_ISA_REF, vectors);
    same_everywhere(LW_CONV_MODE_WINOGRAD, LW_ISA_REF, vectors);
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa))
        same_everywhere(LW_CONV_MODE_AUTO, isa, isa);
}

static void test_ports(void **state)
{
    (void)state;
    plan_lab l;
    float mine[12] = {1.0f, 2.0f};
    lab_open(&l, 1, LW_ISA_REF);
    lab_output(&l, "y", lw_scale(l.g, LAB_X(&l, "x", 3, 4), 2.0f));
    lab_compile(&l, 1);
    assert_null(lw_exec_read(l.exec, "z"));
    assert_int_equal(lw_exec_type(l.exec, "z").dtype, LW_DT_NONE);
    assert_int_equal(lw_exec_bind(l.exec, "z", mine), LW_EUSAGE);
    assert_non_null(strstr(lw_errmsg(), "'z'"));
    assert_true(lw_type_eq(lw_exec_type(l.exec, "x"), lw_type_of(LW_F32, 2, 3, 4)));
    assert_int_equal(lw_exec_bind(l.exec, "x", mine), 0);
    assert_ptr_equal(lw_exec_read(l.exec, "x"), mine);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    assert_true(((const float *)lw_exec_read(l.exec, "y"))[1] == 4.0f);
    assert_true(mine[1] == 2.0f); /* an input is never written */
    lab_close(&l);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_first_error_with_its_scope(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    lw_val x = LAB_X(&l, "x", 2, 5);
    const char *up = lw_scope_push(l.g, "down_blocks.1");
    const char *in = lw_scope_push(l.g, "resnets.0");
    lw_val y = lw_linear_op(l.g, x, LAB_P(&l, "w", 3, 4), LW_NOVAL); /* 5 against 4 */
    lw_scope_set(l.g, in);
    lw_scope_set(l.g, up);
    assert_false(lw_val_ok(y));
    assert_false(lw_val_ok(lw_softmax(l.g, lw_silu(l.g, y)))); /* going on is harmless */
    lw_concat(l.g, x, y, 9);
    lab_output(&l, "y", y);
    lw_errclear();
    assert_int_equal(lw_compile(l.g, l.dev, NULL, &l.plan), LW_ESHAPE);
    assert_non_null(strstr(lw_errmsg(), "down_blocks.1.resnets.0"));
    assert_non_null(strstr(lw_errmsg(), "f32[2,5]"));
    assert_non_null(strstr(lw_errmsg(), "f32[3,4]"));
    assert_null(l.plan);
    lab_close(&l);
}

/* Whoever writes "x" would fill the first one and leave the other as it is. */
static void test_two_inputs_of_one_name(void **state)
{
    (void)state;
    for (int32_t rows = 1; rows <= 2; rows++)
        for (int opt = 0; opt <= 1; opt++) {
            plan_lab l;
            lw_plan *p = NULL;
            lab_open(&l, 1, LW_ISA_REF);
            lw_val a = LAB_X(&l, "x", 2, 4);
            lab_output(&l, "y", lw_add(l.g, a, LAB_X(&l, "x", rows, 4)));
            assert_int_equal(lw_compile(l.g, l.dev, &(lw_compile_opts){.opt = opt}, &p), LW_EUSAGE);
            assert_non_null(strstr(lw_errmsg(), "two inputs named 'x'"));
            assert_null(p);
            lab_close(&l);
        }
}

/* Whoever reads "y" would be given the first one, and never see the other. */
static void test_two_outputs_of_one_name(void **state)
{
    (void)state;
    for (int opt = 0; opt <= 1; opt++) {
        plan_lab l;
        lw_plan *p = NULL;
        lab_open(&l, 1, LW_ISA_REF);
        lw_val a = LAB_X(&l, "x", 2, 4);
        lab_output(&l, "y", lw_silu(l.g, a));
        lab_output(&l, "z", a);
        lab_output(&l, "y", lw_relu(l.g, a));
        assert_int_equal(lw_compile(l.g, l.dev, &(lw_compile_opts){.opt = opt}, &p), LW_EUSAGE);
        assert_non_null(strstr(lw_errmsg(), "two outputs named 'y'"));
        assert_null(p);
        lab_close(&l);
    }
}

static void test_no_gradient_names_the_op(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    const char *up = lw_scope_push(l.g, "head");
    lw_val w = LAB_P(&l, "w", 3, 4);
    lw_val y = lw_ew3(l.g, LW_EW_fma, w, w, w);
    lw_scope_set(l.g, up);
    assert_int_equal(lw_grad_params(l.g, lw_sum(l.g, y, LW_OVER_ALL), LW_NOVAL), LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "fma"));
    assert_non_null(strstr(lw_errmsg(), "head"));
    lab_close(&l);
}

static void test_missing_output_value(void **state)
{
    (void)state;
    plan_lab l;
    lab_open(&l, 1, LW_ISA_REF);
    LAB_X(&l, "x", 2);
    lab_output(&l, "y", LW_NOVAL);
    assert_int_equal(lw_compile(l.g, l.dev, NULL, &l.plan), LW_ESHAPE);
    assert_non_null(strstr(lw_errmsg(), "'y'"));
    lab_close(&l);
}

/* A frozen store has no gradient slab; its parameters are passed through, not differentiated. */
static void test_frozen_parameters_get_no_gradient(void **state)
{
    (void)state;
    plan_lab l;
    LW_CLEANUP(lw_store_free) lw_store *frozen = NULL;
    lab_open(&l, 1, LW_ISA_REF);
    assert_int_equal(lw_store_new(true, &frozen), 0);
    lw_builder f = {.g = l.g, .params = lw_store_params(frozen)};
    lw_val x = LAB_P(&l, "x", 2, 4);
    lw_val w = lw_param(&f, "w", lw_type_of(LW_F32, 2, 3, 4), (lw_init){LW_INIT_ONES, 0});
    lw_val loss = lw_sum(l.g, lw_linear_op(l.g, x, w, LW_NOVAL), LW_OVER_ALL);
    assert_int_equal(lw_grad_params(l.g, loss, LW_NOVAL), 0);
    assert_int_equal(lw_graph_output_count(l.g), 1);
    assert_int_equal(lw_store_fix(frozen), 0);
    lw_store_init(frozen, 0);
    lab_compile(&l, 1);
    assert_int_equal(lw_exec_run(l.exec, NULL), 0);
    const float *dx = lw_store_data(l.store, 0, LW_SLAB_GRAD);
    for (int i = 0; i < 8; i++)
        assert_true(dx[i] == 3.0f);
    lw_exec_free(&l.exec);
    lab_close(&l);
}

/* Zeros that patches put around a picture are those of a pad before them; of f32, and of bf16, whose runs are no whole words. */
static void test_patches_of_padded_pictures(void **state)
{
    (void)state;
    static const int pad[][4] = {{0, 0, 1, 0}, {1, 3, 0, 2}, {3, 0, 2, 1}, {5, 4, 4, 7}};
    for (size_t i = 0; i < LW_COUNT(pad); i++)
        for (int k = 1; k <= 2; k++) {
            plan_lab l;
            const int *p = pad[i];
            lab_open(&l, 2, LW_ISA_REF);
            lw_val x = LAB_X(&l, "x", 2, 5 + (p[0] + p[2] + 1) % 2, 6 + (p[1] + p[3]) % 2, 3);
            lw_val low = lw_cast(l.g, x, LW_BF16, LW_NOVAL);
            lw_val padded = lw_pad(l.g, x, (const int[3]){p[0], p[1], 0},
                                   (const int[3]){p[2], p[3], 0});
            lab_output(&l, "want", lw_patches(l.g, padded, k));
            lab_output(&l, "f32", lw_patches_padded(l.g, x, k, p));
            lab_output(&l, "bf16",
                       lw_cast(l.g, lw_patches_padded(l.g, low, k, p), LW_F32, LW_NOVAL));
            assert_int_equal(lw_store_fix(l.store), 0);
            lab_compile(&l, 1);
            lab_fill(&l);
            assert_int_equal(lw_exec_run(l.exec, NULL), 0);
            const float *want = lw_exec_read(l.exec, "want"), *f32 = lw_exec_read(l.exec, "f32"),
                        *bf16 = lw_exec_read(l.exec, "bf16");
            const int64_t n = lw_type_count(lw_val_type(l.g, lw_graph_output_at(l.g, 0)->val));
            for (int64_t j = 0; j < n; j++) {
                assert_true(f32[j] == want[j]);
                assert_true(bf16[j] == lw_bf16_to_f32(lw_bf16_of_f32(want[j])));
            }
            lab_close(&l);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_time_is_prepared),
        cmocka_unit_test(test_bound_time_is_not_prepared),
        cmocka_unit_test(test_projections_fold),
        cmocka_unit_test(test_draws_are_never_prepared),
        cmocka_unit_test(test_prepared_again_when_version_moves),
        cmocka_unit_test(test_version_of_the_slab_that_is_read),
        cmocka_unit_test(test_two_execs_of_one_plan),
        cmocka_unit_test(test_neighbours_run_side_by_side),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_state_types),
        cmocka_unit_test(test_state_unbound),
        cmocka_unit_test(test_forward_makes_its_own),
        cmocka_unit_test(test_forward_makes_its_own_weights),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_replay_does_not_allocate),
        cmocka_unit_test(test_plan_is_the_same_everywhere),
        cmocka_unit_test(test_patches_of_padded_pictures),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_first_error_with_its_scope),
        cmocka_unit_test(test_two_inputs_of_one_name),
        cmocka_unit_test(test_two_outputs_of_one_name),
        cmocka_unit_test(test_no_gradient_names_the_op),
        cmocka_unit_test(test_missing_output_value),
        cmocka_unit_test(test_frozen_parameters_get_no_gradient),
    };
    return cmocka_run_group_tests_name("plan_run", tests, NULL, NULL);
}
