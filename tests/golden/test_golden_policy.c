/* SPDX-License-Identifier: Apache-2.0 */
/* The policy over proof states against PyTorch: every composition, all gradients; and weights under
 * the published names. */
#include "golden/golden.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "backend/backend.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

typedef struct policy_case {
    const char *name;
    int32_t atom, state;
    bool l2_norm, sqrt_scale;
    float temperature;
} policy_case;

static const policy_case cases[] = {
    {"transe", LW_POLICY_ATOM_TRANSE, LW_POLICY_STATE_MEAN, false, true, 0},
    {"transe_unit", LW_POLICY_ATOM_TRANSE, LW_POLICY_STATE_SUM, true, false, 0.5f},
    {"complex", LW_POLICY_ATOM_COMPLEX, LW_POLICY_STATE_MEAN, false, true, 0},
    {"rotate", LW_POLICY_ATOM_ROTATE, LW_POLICY_STATE_SUM, false, true, 0},
    {"sum", LW_POLICY_ATOM_SUM, LW_POLICY_STATE_ATOM_MEAN, false, true, 0},
    {"concat", LW_POLICY_ATOM_CONCAT, LW_POLICY_STATE_CONCAT, false, true, 0},
    {"attention", LW_POLICY_ATOM_ATTENTION, LW_POLICY_STATE_TRANSFORMER, false, true, 0},
    {"transformer", LW_POLICY_ATOM_TRANSFORMER, LW_POLICY_STATE_RNN, true, true, 0},
    {"rnn", LW_POLICY_ATOM_RNN, LW_POLICY_STATE_MEAN, false, true, 2},
};

enum { ROWS = 5, ATOMS = 3 }; /* as in tools/golden/policy.py */

static lw_policy_config config_of(const policy_case *k)
{
    lw_policy_config c = lw_policy_default(9, 6);
    c.variables = 4;
    c.embed = 8;
    c.hidden = 12;
    c.blocks = 2;
    c.max_atoms = ATOMS;
    c.atom = k->atom;
    c.state = k->state;
    c.l2_norm = k->l2_norm;
    c.sqrt_scale = k->sqrt_scale;
    c.temperature = k->temperature;
    return c;
}

/* Every parameter by the golden formula, pad rows zero. */
static void fill(lw_store *s)
{
    golden_fill_store(s);
    for (int32_t i = 0; i < lw_store_count(s); i++)
        if (lw_str_ends(lw_store_at(s, i)->name, "_embedding.weight"))
            memset(lw_store_edit(s, i, LW_SLAB_PARAM), 0,
                   sizeof(float) * (size_t)lw_store_at(s, i)->type.dim[1]);
}

/* A plan with outputs head, value, key, query; with a trainable store the gradients too. */
typedef struct rig {
    lw_plan *plan;
    lw_exec *e;
} rig;

static void rig_open(rig *r, const lw_policy_config *c, lw_store *s, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_policy_in in = {lw_input(g, "predicates", lw_type_of(LW_I32, 2, ROWS, ATOMS)),
                       lw_input(g, "arguments", lw_type_of(LW_I32, 2, ROWS, 2 * ATOMS)),
                       lw_input(g, "scale", lw_type_of(LW_F32, 1, ROWS))};
    lw_val body = lw_policy_body(&b, c, in);
    lw_val key = lw_policy_key(&b, c, lw_policy_body_infer(&b, c, in));
    lw_val head = lw_policy_head(&b, c, body), value = lw_policy_value(&b, c, body);
    lw_graph_output_add(g, "head", head, LW_NOVAL);
    lw_graph_output_add(g, "value", value, LW_NOVAL);
    lw_graph_output_add(g, "key", key, LW_NOVAL);
    lw_graph_output_add(g, "query", lw_policy_query(&b, c, key), LW_NOVAL);
    if (!lw_store_is_frozen(s)) {
        lw_val gf = lw_input(g, "gf", lw_type_of(LW_F32, 2, ROWS, c->embed));
        lw_val gv = lw_input(g, "gv", lw_type_of(LW_F32, 2, ROWS, 1));
        lw_val loss = lw_add(g, lw_sum(g, lw_mul(g, head, gf), LW_OVER_ALL),
                             lw_sum(g, lw_mul(g, value, gv), LW_OVER_ALL));
        assert_ok(lw_grad_params(g, loss, LW_NOVAL));
    }
    assert_ok(lw_compile(g, dev, NULL, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
}

static void rig_close(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
}

static void bind_states(rig *r, const lw_policy_config *c, const lw_st_file *f)
{
    const lw_st_tensor *p, *a;
    float *scale = lw_exec_write(r->e, "scale");
    assert_ok(lw_st_get(f, "predicates", &p));
    assert_ok(lw_st_get(f, "arguments", &a));
    assert_true(p->count == ROWS * ATOMS && a->count == 2 * p->count &&
                p->bytes == 4u * ROWS * ATOMS);
    memcpy(lw_exec_write(r->e, "predicates"), p->data, p->bytes);
    memcpy(lw_exec_write(r->e, "arguments"), a->data, a->bytes);
    for (int i = 0; i < ROWS; i++) {
        int n = 0;
        while (n < ATOMS && ((const int32_t *)lw_exec_read(r->e, "predicates"))[i * ATOMS + n])
            n++;
        scale[i] = lw_policy_scale(c, n);
    }
}

static void bind_seed(rig *r, const lw_st_file *f, const char *name, const char *what)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", name, what);
    float *x = golden_get_f32(f, key, NULL);
    lw_type t = lw_exec_type(r->e, what);
    memcpy(lw_exec_write(r->e, what), x, lw_type_bytes(t));
    free(x);
}

/* |have - want| / |want| of n numbers against NAME.what of the file. */
static double error_of(const lw_st_file *f, const char *name, const char *what, const float *have,
                       int64_t n)
{
    char key[160];
    int64_t count;
    snprintf(key, sizeof key, "%s.%s", name, what);
    double *want = golden_get(f, key, &count);
    assert_int_equal(count, n);
    double err = golden_relative(have, want, n, 1e-3);
    free(want);
    return err;
}

/* Logits of all pairs from keys and queries; without unit length a term per row is free. */
static double logits_error(rig *r, const lw_policy_config *c, const lw_st_file *f, const char *name)
{
    char key[96];
    int64_t n;
    int k = lw_policy_key_width(c);
    const float *q = lw_exec_read(r->e, "query"), *a = lw_exec_read(r->e, "key");
    snprintf(key, sizeof key, "%s.logits", name);
    double *want = golden_get(f, key, &n), worst = 0;
    assert_int_equal(n, ROWS * ROWS);
    for (int i = 0; i < ROWS; i++) {
        double free_term = 0;
        for (int j = 0; j < ROWS; j++) {
            double have = 0;
            for (int e = 0; e < k; e++)
                have += (double)q[i * k + e] * (double)a[j * k + e];
            if (j == 0 && !c->l2_norm)
                free_term = want[i * ROWS] - have;
            worst = fmax(worst, fabs(want[i * ROWS + j] - have - free_term));
        }
    }
    free(want);
    return worst;
}

static double gradient_error(lw_store *s, const lw_st_file *f, const char *name)
{
    double worst = 0;
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        char what[160];
        snprintf(what, sizeof what, "grad.%s", e->name);
        double err = error_of(f, name, what, lw_store_data(s, i, LW_SLAB_GRAD), e->count);
        if (err > 2e-5)
            print_error("%s %s: relative error %.2g\n", name, e->name, err);
        worst = fmax(worst, err);
    }
    return worst;
}

static void run_case(const policy_case *k, const lw_st_file *f, lw_device *dev, lw_isa isa)
{
    lw_policy_config c = config_of(k);
    lw_store *s = NULL;
    rig r;
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_policy_declare(&c, s));
    fill(s);
    rig_open(&r, &c, s, dev);
    bind_states(&r, &c, f);
    bind_seed(&r, f, k->name, "gf");
    bind_seed(&r, f, k->name, "gv");
    assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
    double head = error_of(f, k->name, "head", lw_exec_read(r.e, "head"), ROWS * c.embed);
    double value = error_of(f, k->name, "value", lw_exec_read(r.e, "value"), ROWS);
    double logits = logits_error(&r, &c, f, k->name), grad = gradient_error(s, f, k->name);
    print_message("%-8s %-12s head %.1e, value %.1e, logits %.1e, gradients %.1e\n",
                  lw_isa_name(isa), k->name, head, value, logits, grad);
    golden_check(k->name, fmax(head, value), 5e-6);
    golden_check(k->name, logits, 5e-6);
    golden_check(k->name, grad, 2e-5);
    rig_close(&r);
    lw_store_free(&s);
}

static void test_compositions(void **state)
{
    lw_st_file *f = golden_open("policy");
    int n;
    const lw_isa *isas = golden_isas(&n);
    (void)state;
    for (int i = 0; i < n; i++) {
        lw_device *dev = golden_device(isas[i], 2);
        for (size_t k = 0; k < LW_COUNT(cases); k++)
            run_case(&cases[k], f, dev, isas[i]);
        lw_backend_close(&dev);
    }
    lw_st_close(&f);
}

/* A bare file of a whole actor-critic module: what shapes cannot say comes from a hint. */
static void test_published(void **state)
{
    lw_st_file *f = golden_open("policy");
    lw_device *dev = golden_device(lw_isa_best(), 2);
    lw_policy_config hint = config_of(&cases[0]), c;
    lw_store *s = NULL;
    rig r;
    (void)state;
    hint.embed = hint.hidden = hint.blocks = 1; /* come from the file */
    hint.constants = 0;
    hint.predicates = 1;
    assert_ok(lw_policy_load_file(GOLDEN "policy_published.safetensors", true, &hint, &c, &s));
    assert_true(c.constants == 9 && c.predicates == 6 && c.variables == 4);
    assert_true(c.embed == 8 && c.hidden == 12 && c.blocks == 2 && c.max_atoms == ATOMS);
    rig_open(&r, &c, s, dev);
    bind_states(&r, &c, f);
    assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
    golden_check("published head",
                 error_of(f, "transe", "head", lw_exec_read(r.e, "head"), ROWS * c.embed), 5e-6);
    golden_check("published value",
                 error_of(f, "transe", "value", lw_exec_read(r.e, "value"), ROWS), 5e-6);
    rig_close(&r);
    lw_store_free(&s);
    hint.constants = 10; /* then the variables are the rest */
    assert_ok(lw_policy_load_file(GOLDEN "policy_published.safetensors", true, &hint, &c, &s));
    assert_true(c.constants == 10 && c.variables == 3);
    lw_store_free(&s);
    hint.constants = 0;
    hint.variables = 14; /* more than the table has rows */
    assert_true(lw_policy_load_file(GOLDEN "policy_published.safetensors", true, &hint, &c, &s) ==
                LW_EFORMAT);
    assert_non_null(strstr(lw_errmsg(), "variables"));
    lw_backend_close(&dev);
    lw_st_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compositions),
                                       cmocka_unit_test(test_published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
