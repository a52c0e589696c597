/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up shared by the plan tests. */
#include "plan/plan_util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "store/store.h"
#include "models/models.h"

void lab_open(plan_lab *l, int threads, lw_isa isa)
{
    lab_open_conv(l, threads, isa, LW_CONV_MODE_AUTO);
}

void lab_open_conv(plan_lab *l, int threads, lw_isa isa, lw_conv_mode conv)
{
    lw_backend_options o = {.threads = threads, .isa = isa, .conv = conv};
    memset(l, 0, sizeof *l);
    assert_int_equal(lw_backend_open(lw_backend_chosen(), &o, &l->dev), 0);
    assert_int_equal(lw_graph_new(&l->g), 0);
    assert_int_equal(lw_store_new(false, &l->store), 0);
    l->b = (lw_builder){.g = l->g, .params = lw_store_params(l->store), .training = true};
}

void lab_close(plan_lab *l)
{
    lw_exec_free(&l->exec);
    lw_plan_free(&l->plan);
    lw_graph_free(&l->g);
    lw_store_free(&l->store);
    lw_backend_close(&l->dev);
}

void lab_compile(plan_lab *l, int opt)
{
    lab_compile_as(l, &(lw_compile_opts){.opt = opt});
}

void lab_compile_as(plan_lab *l, const lw_compile_opts *o)
{
    assert_int_equal(lw_store_fix(l->store), 0);
    lw_store_init(l->store, 3);
    if (lw_compile(l->g, l->dev, o, &l->plan) < 0)
        fail_msg("%s", lw_errmsg());
    assert_int_equal(lw_exec_new(l->plan, LW_SLAB_PARAM, &l->exec), 0);
}

lw_graph *lab_passes(plan_lab *l, const char *last)
{
    static const struct {
        const char *name;
        lw_rewrite_pass *run;
    } passes[] = {{"simplify", lw_pass_simplify},  {"upconv", lw_pass_upconv},
                  {"fuse", lw_pass_fuse},          {"join", lw_pass_join},
                  {"pack", lw_pass_pack},          {"chain", lw_pass_chain},
                  {"slices", lw_pass_slices},      {"outputs", lw_pass_outputs},
                  {"recompute", lw_pass_recompute}};
    const lw_compile_opts o = {.opt = 1};
    lw_graph *g = NULL;
    if (lw_rewrite_from(l->g, l->dev, lw_rewrite_copy, NULL, &g) < 0)
        fail_msg("%s", lw_errmsg());
    for (size_t i = 0; i < LW_COUNT(passes); i++) {
        assert_int_equal(passes[i].run(&g, l->dev, &o), 0);
        assert_int_equal(lw_plan_verify(g), 0);
        if (strcmp(passes[i].name, last) == 0)
            break;
    }
    /* A rewriting pass leaves absorbed producers behind; the next one drops them. */
    assert_int_equal(lw_rewrite_graph(&g, l->dev, lw_rewrite_copy, NULL), 0);
    return g;
}

int lab_count(const lw_graph *g, lw_op op)
{
    int n = 0;
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++)
        n += lw_graph_node(g, i)->op == op;
    return n;
}

const lw_node *lab_node(const lw_graph *g, lw_op op, int k)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++)
        if (lw_graph_node(g, i)->op == op && k-- == 0)
            return lw_graph_node(g, i);
    fail_msg("no such '%s'", lw_op_get(op)->name);
    return NULL;
}

void lab_fill(plan_lab *l)
{
    for (uint32_t i = 0; i < lw_graph_node_count(l->g); i++) {
        const lw_node *n = lw_graph_node(l->g, i);
        const lw_attr_input *a = n->attr;
        if (n->op != LW_OP_INPUT)
            continue;
        void *p = lw_exec_write(l->exec, a->name);
        lw_rng_key key = lw_rng_key_of(21, lw_hash_name(a->name));
        for (int64_t e = 0; e < lw_type_count(a->type); e++) {
            if (a->type.dtype == LW_F32)
                ((float *)p)[e] = (float)(lw_rng_uniform(key, 0, 0, (uint64_t)e) * 2.0 - 1.0);
            else if (a->type.dtype == LW_I32)
                ((int32_t *)p)[e] = (int32_t)lw_rng_below(key, 0, 0, (uint64_t)e, 4);
            else
                ((int64_t *)p)[e] = e;
        }
    }
}

static lw_type f32(int rank, const int32_t *dim)
{
    lw_type t = {.dtype = LW_F32, .rank = rank};
    memcpy(t.dim, dim, sizeof *dim * (size_t)rank);
    return t;
}

lw_val lab_input(plan_lab *l, const char *name, int rank, const int32_t *dim)
{
    return lw_input(l->g, name, f32(rank, dim));
}

lw_val lab_param(plan_lab *l, const char *name, int rank, const int32_t *dim)
{
    return lw_param(&l->b, name, f32(rank, dim), (lw_init){LW_INIT_UNIFORM, 0.5f});
}

void lab_output(plan_lab *l, const char *name, lw_val v)
{
    lw_graph_output_add(l->g, name, v, LW_NOVAL);
}

lw_unet_config lab_unet(void)
{
    lw_unet_config c = lw_unet_small();
    const int32_t mult[] = {1, 2}, at[] = {4};
    assert_int_equal(lw_unet_set_levels(&c, 8, 8, mult, 2, at, 1), 0);
    c.blocks = 1;
    c.heads = 2;
    c.norm_groups = 4;
    c.classes = 4;
    c.latent_dim = 4;
    c.default_out_init = c.default_res_init = true;
    assert_int_equal(lw_unet_check(&c), 0);
    return c;
}

static lw_network_in unet_inputs(plan_lab *l, const lw_unet_config *c, int32_t batch)
{
    return (lw_network_in){.x = LAB_X(l, "x", batch, c->image_size, c->image_size, 3),
                           .classes = lw_input(l->g, "classes", lw_type_of(LW_I32, 1, batch)),
                           .latent = LAB_X(l, "latent", batch, c->latent_dim)};
}

void lab_unet_sample(plan_lab *l, int32_t batch)
{
    lw_unet_config c = lab_unet();
    l->b.training = false;
    lab_output(l, "y", lw_unet(&l->b, &c, unet_inputs(l, &c, batch)));
}

void lab_unet_train(plan_lab *l, int32_t batch)
{
    lw_unet_config c = lab_unet();
    lw_network_in in = unet_inputs(l, &c, batch);
    in.t = LAB_X(l, "t", batch);
    l->b.rows = lw_input(l->g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_val loss = lw_mean(l->g, lw_sqr(l->g, lw_sub(l->g, lw_unet(&l->b, &c, in), in.x)),
                          LW_OVER_ALL);
    lab_output(l, "loss", loss);
    assert_int_equal(lw_grad_params(l->g, loss, LW_NOVAL), 0);
}

int lab_setup(void **state)
{
    plan_lab *l = lw_calloc(1, sizeof *l);
    lab_open(l, 1, LW_ISA_REF);
    *state = l;
    return 0;
}

int lab_teardown(void **state)
{
    plan_lab *l = *state;
    lab_close(l);
    lw_free(&l);
    return 0;
}

double lab_distance(const float *a, const float *b, int64_t n)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        s += (double)a[i] * (double)a[i];
    }
    return sqrt(d / s);
}

void lab_same_numbers(plan_lab *l)
{
    float before[4096];
    int64_t n = 0;
    for (int opt = 0; opt < 2; opt++) {
        lab_compile(l, opt);
        lab_fill(l);
        assert_int_equal(lw_exec_run(l->exec, NULL), 0);
        n = lw_type_count(lw_exec_type(l->exec, "y"));
        const float *y = lw_exec_read(l->exec, "y");
        assert_in_range(n, 1, LW_COUNT(before));
        for (int64_t i = 0; i < n; i++) {
            if (!opt)
                before[i] = y[i];
            else if (!(fabs((double)y[i] - (double)before[i]) <=
                       1e-5 * (1.0 + fabs((double)before[i]))))
                fail_msg("element %lld: %.9g without passes, %.9g with", (long long)i,
                         (double)before[i], (double)y[i]);
        }
        lw_exec_free(&l->exec);
        lw_plan_free(&l->plan);
    }
}
