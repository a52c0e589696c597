/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a drift loss ends at the deepest key that is used: what an encoder computes behind it
 * is neither run, nor prepared, nor differentiated. */
#include "unit/test_store_util.h"

#include <string.h>

#include "models/models.h"
#include "plan/plan.h"
#include "cpu_device.h"

enum { SIDE = 20, GROUPS = 2, N = 3, NP = 4 };

/* As many 3x3 convolutions as *arch says, a map each, on 20x10 or 10x5 places; a class vector, rows
 * and a head behind the last. */
static void build_chain(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_graph *g = b->g;
    lw_val map[LW_MAX_MAPS], x = in.x;
    int32_t n = *(const int32_t *)arch, batch = lw_val_type(g, x).dim[0];
    x = lw_reshape(g, x, lw_type_of(LW_F32, 4, batch, SIDE, SIDE / 2, 6));
    for (int32_t i = 0; i < n; i++) {
        const char *up = lw_scope_pushf(g, "block%d", i);
        x = lw_silu(g, lw_conv2d(b, "conv", x, 8,
                                 (lw_conv_opts){.kernel = 3, .pad = 1, .stride = i == 1 ? 2 : 1}));
        lw_scope_set(g, up);
        map[i] = x;
    }
    lw_val cls = lw_mean(g, x, LW_OVER_MIDDLE);
    lw_tap_add(out, "logits", lw_linear(b, "head", cls, 10, true));
    lw_tap_add(out, "cls", cls);
    lw_tap_add(out, "tokens", lw_reshape(g, x, lw_type_of(LW_F32, 3, batch, 50, 8)));
    lw_tap_add_maps(out, map, n);
}

static const lw_network_def chain = {
    .name = "chain", .kind = "encoder", .arch_bytes = sizeof(int32_t), .build = build_chain};

typedef struct subject {
    lw_device *dev;
    lw_store *store;
    lw_network net;
    int32_t arch;
} subject;

static void open_subject(subject *s, const lw_network_def *def, int32_t arch)
{
    *s = (subject){.arch = arch};
    assert_ok(cpu_device(1, lw_isa_best(), &s->dev));
    assert_ok(lw_store_new(true, &s->store));
    s->net = lw_network_of(def, &s->arch, s->store);
    lw_graph *g = NULL;
    lw_taps taps;
    assert_ok(lw_graph_new(&g));
    lw_network_append(
        &s->net, g, (lw_network_in){.x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, SIDE, SIDE, 3))},
        &taps);
    assert_ok(lw_graph_error(g));
    assert_ok(lw_store_fix(s->store));
    lw_store_init(s->store, 7);
    lw_graph_free(&g);
}

static void close_subject(subject *s)
{
    lw_store_free(&s->store);
    lw_backend_close(&s->dev);
}

/* Outputs: the loss and its gradient with respect to the pictures. */
static lw_plan *loss_plan(const subject *s, const char *keys)
{
    lw_graph *g = NULL;
    lw_plan *plan = NULL;
    lw_feature_set set;
    lw_taps taps;
    lw_val v[LW_MAX_FEATURE_KEYS], total = LW_NOVAL, dx = LW_NOVAL;
    assert_ok(lw_features_parse(keys, &s->net, SIDE, 3, &set));
    assert_ok(lw_graph_new(&g));
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, GROUPS * N, SIDE, SIDE, 3));
    lw_network_append(&s->net, g, (lw_network_in){.x = x}, &taps);
    lw_features_build(g, &set, x, &taps, v);
    for (int32_t k = 0; k < set.n; k++) {
        const lw_attr_drift a = {.groups = GROUPS,
                                 .n = N,
                                 .np = NP,
                                 .slots = set.key[k].slots,
                                 .c = set.key[k].c,
                                 .n_tau = 1,
                                 .tau = {0.2},
                                 .normalize_over_x = 1};
        lw_val pos = lw_input(g, set.key[k].name,
                              lw_type_of(LW_F32, 3, GROUPS * NP, set.key[k].slots, set.key[k].c));
        lw_drift_out o = lw_drift_field(g, v[k], pos, LW_NOVAL, LW_NOVAL, &a);
        total = k ? lw_add(g, total, o.loss) : o.loss;
    }
    lw_val one = lw_const_f32(g, 1.0f);
    lw_grad(g, &total, &one, 1, &x, &dx, 1);
    lw_graph_output_add(g, "loss", total, LW_NOVAL);
    lw_graph_output_add(g, "dx", dx, LW_NOVAL);
    assert_ok(lw_compile(g, s->dev, NULL, &plan));
    lw_graph_free(&g);
    return plan;
}

static void assert_same_cost(lw_plan *a, lw_plan *b)
{
    lw_plan_info x = lw_plan_get_info(a), y = lw_plan_get_info(b);
    assert_int_equal(x.n_steps, y.n_steps);
    assert_int_equal(x.n_prepare, y.n_prepare);
    assert_true(x.flops == y.flops && x.bytes == y.bytes);
    assert_true(x.frame_bytes == y.frame_bytes && x.derived_bytes == y.derived_bytes);
    lw_plan_free(&a);
    lw_plan_free(&b);
}

/* Ten blocks with keys of the third cost what three blocks cost, and less than with deeper keys. */
static void test_cut_is_the_short_network(void **state)
{
    static const char *const keys[] = {"s2.loc,s2.mean,pix", "s0.std4", "s1.loc,s2.mean2"};
    subject deep, cut;
    (void)state;
    open_subject(&deep, &chain, 10);
    open_subject(&cut, &chain, 3);
    for (size_t i = 0; i < LW_COUNT(keys); i++)
        assert_same_cost(loss_plan(&deep, keys[i]), loss_plan(&cut, keys[i]));
    lw_plan *shallow = loss_plan(&deep, "s2.mean"), *more = loss_plan(&deep, "s2.mean,s3.mean"),
            *all = loss_plan(&deep, "s2.mean,cls"), *rows = loss_plan(&deep, "tokens");
    lw_plan_info a = lw_plan_get_info(shallow), b = lw_plan_get_info(more),
                 c = lw_plan_get_info(all), d = lw_plan_get_info(rows);
    /* a convolution of 50 places: forward, and backward with respect to its input, without
     * the taps that lie outside */
    double conv = 2.0 * 2.0 * GROUPS * N * 50 * 9 * 8 * 8, block = b.flops - a.flops;
    assert_true(block > 0.75 * conv && block < 1.1 * conv);
    assert_true(c.flops - a.flops > 6.8 * block && c.flops - a.flops < 7.2 * block);
    assert_true(d.flops - a.flops > 6.8 * block);
    lw_plan_free(&shallow);
    lw_plan_free(&more);
    lw_plan_free(&all);
    lw_plan_free(&rows);
    close_subject(&deep);
    close_subject(&cut);
}

/* Steps, prepared ones included, that were built in a scope beginning so. */
static int steps_in(const lw_exec *e, const char *scope)
{
    int n = 0;
    for (int i = 0; i < lw_exec_step_count(e); i++)
        n += strncmp(lw_exec_step_time(e, i).scope, scope, strlen(scope)) == 0;
    return n;
}

/* A network that files hold. */
static void test_cut_of_a_resnet(void **state)
{
    subject s;
    lw_exec *e = NULL;
    (void)state;
    open_subject(&s, &lw_network_def_resnet_cifar10, 2);
    lw_plan *p = loss_plan(&s, "s1.mean,s1.loc");
    assert_ok(lw_exec_new(p, LW_SLAB_PARAM, &e));
    assert_true(steps_in(e, "layer1") > 0);
    assert_int_equal(steps_in(e, "layer2") + steps_in(e, "layer3") + steps_in(e, "linear"), 0);
    lw_exec_free(&e);
    lw_plan_free(&p);
    p = loss_plan(&s, "s1.mean,pooled");
    assert_ok(lw_exec_new(p, LW_SLAB_PARAM, &e));
    assert_true(steps_in(e, "layer2") > 0 && steps_in(e, "layer3") > 0);
    assert_int_equal(steps_in(e, "linear"), 0);
    lw_exec_free(&e);
    lw_plan_free(&p);
    close_subject(&s);
}

/* As many maps as a network may offer, with every key of each. */
static void test_all_keys_of_the_deepest(void **state)
{
    subject s;
    lw_feature_set set;
    (void)state;
    open_subject(&s, &chain, LW_MAX_MAPS);
    assert_ok(lw_features_parse("all", &s.net, SIDE, 3, &set));
    assert_int_equal(set.n, 6 + 2 + 7 * LW_MAX_MAPS);
    assert_ok(lw_features_parse("s99.mean4,s99.loc,s10.std2", &s.net, SIDE, 3, &set));
    assert_true(set.key[0].slots == 2 && set.key[1].slots == 50 && set.key[2].slots == 10);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_is_the_short_network),
        cmocka_unit_test(test_cut_of_a_resnet),
        cmocka_unit_test(test_all_keys_of_the_deepest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
