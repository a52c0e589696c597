/* SPDX-License-Identifier: Apache-2.0 */
/* The policy network against plain loops in double; its inference form against its training form;
 * formula weights, folders, equal bits wherever a state stands. */
#include "unit/test_policy_util.h"

#include <math.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

/* ---- the reference --------------------------------------------------------------------------- */

typedef struct net {
    const lw_policy_config *c;
    const lw_store *s;
} net;

static const float *weight(const net *n, const char *name)
{
    int32_t at = lw_store_find(n->s, name);
    assert_true(at >= 0);
    return lw_store_data(n->s, at, LW_SLAB_PARAM);
}

static void linear(const net *n, const char *layer, const double *x, int in, int out, double *y)
{
    char name[96];
    snprintf(name, sizeof name, "%s.weight", layer);
    const float *w = weight(n, name);
    snprintf(name, sizeof name, "%s.bias", layer);
    const float *b = weight(n, name);
    for (int o = 0; o < out; o++) {
        y[o] = (double)b[o];
        for (int i = 0; i < in; i++)
            y[o] += (double)w[o * in + i] * x[i];
    }
}

static void relu_norm(double *x, int n)
{
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++)
        mean += (x[i] = fmax(x[i], 0.0)) / n;
    for (int i = 0; i < n; i++)
        var += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++) /* formula weights: LayerNorm is 1, 0 */
        x[i] = (x[i] - mean) / sqrt(var + 1e-5);
}

static void ref_embed(const net *n, int which, double *e)
{
    int32_t p[64], a[128], width = n->c->embed;
    int atoms = fill_state(n->c, which, p, a);
    const float *tp = weight(n, "predicate_embedding.weight"),
                *ta = weight(n, "constant_embedding.weight");
    for (int i = 0; i < width; i++) {
        e[i] = 0;
        for (int k = 0; k < atoms; k++)
            e[i] += (double)tp[p[k] * width + i] + (double)ta[a[2 * k] * width + i] -
                    (double)ta[a[2 * k + 1] * width + i];
        e[i] /= n->c->state == LW_POLICY_STATE_SUM         ? 1
                : n->c->state == LW_POLICY_STATE_ATOM_MEAN ? atoms
                                                           : n->c->max_atoms;
    }
}

/* f[E] and value of a state. */
static double ref_state(const net *n, int which, double *f)
{
    double e[256], x[256], h[256], v;
    int width = n->c->hidden;
    char layer[64];
    ref_embed(n, which, e);
    linear(n, "shared_body.input_transform.0", e, n->c->embed, width, x);
    relu_norm(x, width);
    for (int k = 0; k < n->c->blocks; k++) {
        snprintf(layer, sizeof layer, "shared_body.res_blocks.%d.0", k);
        linear(n, layer, x, width, width, h);
        relu_norm(h, width);
        for (int i = 0; i < width; i++)
            x[i] += h[i];
    }
    linear(n, "policy_head.out_transform.0", x, width, width, h);
    for (int i = 0; i < width; i++)
        h[i] = fmax(h[i], 0.0);
    linear(n, "policy_head.out_transform.2", h, width, n->c->embed, f);
    double length = 0;
    for (int i = 0; i < n->c->embed; i++)
        length += f[i] * f[i];
    for (int i = 0; i < n->c->embed && n->c->l2_norm; i++)
        f[i] /= fmax(sqrt(length), 1e-12);
    linear(n, "value_head.output_layer.0", x, width, width / 2, h);
    for (int i = 0; i < width / 2; i++)
        h[i] = fmax(h[i], 0.0);
    linear(n, "value_head.output_layer.2", h, width / 2, 1, &v);
    return v;
}

/* ---- plans */

/* A plan over `rows` states with outputs head, value (training form), key, query. */
static void rig_open(rig *r, const lw_policy_config *c, const lw_store *s, int rows,
                     lw_num precision)
{
    lw_graph *g = NULL;
    *r = (rig){.rows = rows};
    assert_ok(cpu_device(2, lw_isa_best(), &r->dev));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_policy_in in = inputs(g, c, rows);
    lw_val body = lw_policy_body(&b, c, in);
    lw_val key = lw_policy_key(&b, c, lw_policy_body_infer(&b, c, in));
    lw_graph_output_add(g, "head", lw_policy_head(&b, c, body), LW_NOVAL);
    lw_graph_output_add(g, "value", lw_policy_value(&b, c, body), LW_NOVAL);
    lw_graph_output_add(g, "key", key, LW_NOVAL);
    lw_graph_output_add(g, "query", lw_policy_query(&b, c, key), LW_NOVAL);
    lw_compile_opts o = {.opt = 1, .precision = precision};
    assert_ok(lw_compile(g, r->dev, &o, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
    lw_graph_free(&g);
}

static double dot(const float *a, const float *b, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

/* Largest difference of logits from the reference, up to a term per current state; spread: the
 * largest difference between two successors' logits. */
static double logit_error(rig *r, const net *n, int states, double *spread)
{
    const lw_policy_config *c = n->c;
    double f[16][256], worst = 0, scale = (double)lw_policy_logit_scale(c);
    int k = lw_policy_key_width(c);
    assert_true(states <= 16);
    for (int i = 0; i < states; i++)
        ref_state(n, i, f[i]);
    for (int i = 0; i < states; i++) {
        double shift = 0, first = 0;
        for (int j = 0; j < states; j++) {
            double want = 0, have = dot(row(r, "query", i), row(r, "key", j), k);
            for (int e = 0; e < c->embed; e++)
                want += f[i][e] * f[j][e] * scale;
            if (j == 0) {
                shift = want - have;
                first = want;
            }
            *spread = fmax(*spread, fabs(want - first));
            if (c->l2_norm)
                assert_true(fabs(shift) < 1e-2);
            worst = fmax(worst, fabs(want - have - shift));
        }
    }
    return worst;
}

static void check_against_reference(lw_policy_config c, const char *what)
{
    enum { STATES = 12 };
    lw_store *s = formula_store(&c, 3);
    net n = {&c, s};
    rig r;
    double worst = 0, f[256];
    rig_open(&r, &c, s, STATES, LW_NUM_F32);
    rig_run(&r, &c, 0, STATES);
    for (int i = 0; i < STATES; i++) {
        double v = ref_state(&n, i, f);
        worst = fmax(worst, fabs(v - (double)row(&r, "value", i)[0]));
        for (int e = 0; e < c.embed; e++)
            worst = fmax(worst, fabs(f[e] - (double)row(&r, "head", i)[e]));
    }
    double spread = 0, logits = logit_error(&r, &n, STATES, &spread);
    print_message("%s: head and value %.2g, logits from keys %.2g\n", what, worst, logits);
    assert_true(worst < 2e-5 && logits < 2e-5);
    rig_close(&r);
    lw_store_free(&s);
}

static void test_reference(void **state)
{
    lw_policy_config c = small();
    (void)state;
    check_against_reference(c, "mean over slots");
    c.state = LW_POLICY_STATE_SUM;
    c.sqrt_scale = false;
    c.temperature = 0;
    check_against_reference(c, "sum");
    c.state = LW_POLICY_STATE_ATOM_MEAN;
    c.l2_norm = true;
    check_against_reference(c, "mean over atoms, unit length");
}

/* ---- equal bits ------------------------------------------------------------------------------ */

/* The same state has the same key in every row of plans of every size. */
static void check_bits(lw_num precision)
{
    static const int sizes[] = {1, 7, 33, 128};
    enum { STATES = 11 };
    lw_policy_config c = small();
    lw_store *s = formula_store(&c, 1);
    float key[STATES][64], query[STATES][64];
    size_t bytes = sizeof(float) * (size_t)c.hidden;
    for (size_t k = 0; k < LW_COUNT(sizes); k++) {
        rig r;
        rig_open(&r, &c, s, sizes[k], precision);
        for (int first = 0; first < STATES; first += k == 0 ? 1 : 5) {
            rig_run(&r, &c, first, STATES);
            for (int i = 0; i < r.rows; i++) {
                int which = (first + i) % STATES;
                if (k == 0) {
                    memcpy(key[which], row(&r, "key", i), bytes);
                    memcpy(query[which], row(&r, "query", i), bytes);
                }
                assert_memory_equal(key[which], row(&r, "key", i), bytes);
                assert_memory_equal(query[which], row(&r, "query", i), bytes);
            }
        }
        rig_close(&r);
    }
    lw_store_free(&s);
}

static void test_bits(void **state)
{
    (void)state;
    check_bits(LW_NUM_F32);
    check_bits(LW_NUM_BF16);
}

/* Networks of the published width, where rounding has nine layers to grow in. */
static void test_bf16(void **state)
{
    enum { STATES = 16 };
    lw_policy_config c = small();
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        c.embed = wide ? 250 : c.embed;
        c.hidden = wide ? 256 : c.hidden;
        c.blocks = wide ? 8 : c.blocks;
        lw_store *s = formula_store(&c, 5);
        net n = {&c, s};
        double error[2], spread = 0;
        for (int k = 0; k < 2; k++) {
            rig r;
            rig_open(&r, &c, s, STATES, k ? LW_NUM_BF16 : LW_NUM_F32);
            rig_run(&r, &c, 0, STATES);
            error[k] = logit_error(&r, &n, STATES, &spread);
            rig_close(&r);
        }
        print_message(
            "hidden %d: logits, up to %.2g apart, are off by at most %.2g in f32, %.2g in bf16\n",
            c.hidden, spread, error[0], error[1]);
        assert_true(error[0] < 2e-5 && error[1] < 0.05);
        lw_store_free(&s);
    }
}

/* ---- weights and files ----------------------------------------------------------------------- */

/* Values from an independent program of the formula. */
static void test_formula(void **state)
{
    lw_policy_config c = small();
    lw_store *s = formula_store(&c, 7);
    net n = {&c, s};
    (void)state;
    const float *w = weight(&n, "shared_body.res_blocks.0.0.weight");
    const float *table = weight(&n, "constant_embedding.weight");
    assert_true(w[0] == -0.0308236051f && w[1] == 0.158948138f && w[575] == 0.0530200303f);
    assert_true(weight(&n, "value_head.output_layer.2.bias")[0] == 0.268756062f);
    assert_true(table[10] == 0.402027458f && table[0] == 0.0f && table[9] == 0.0f); /* pad row */
    assert_true(weight(&n, "shared_body.input_transform.2.weight")[3] == 1.0f);
    assert_true(weight(&n, "shared_body.input_transform.2.bias")[3] == 0.0f);
    lw_store_free(&s);
}

static void test_folder(void **state)
{
    lw_policy_config c = small(), back;
    lw_store *s, *again = NULL;
    (void)state;
    c.l2_norm = true;
    c.dropout = 0.125f;
    c.names = 0xfedcba9876543210u;
    s = formula_store(&c, 9);
    assert_ok(lw_policy_save(in_scratch("policy"), &c, s, LW_SLAB_PARAM));
    assert_ok(lw_policy_load(in_scratch("policy"), true, &back, &again));
    assert_true(lw_store_hash(s, LW_SLAB_PARAM) == lw_store_hash(again, LW_SLAB_PARAM));
    json_t *a = lw_policy_to_json(&c), *b = lw_policy_to_json(&back);
    assert_true(json_equal(a, b) && back.names == c.names);
    json_object_set_new(a, "atom_embedder", json_string("wishful"));
    assert_fails(LW_EFORMAT, "wishful", lw_policy_from_json(a, "config.json", &back));
    json_object_set_new(b, "hidden_size", json_integer(0));
    assert_fails(LW_EFORMAT, "hidden_size", lw_policy_from_json(b, "config.json", &back));
    json_decref(a);
    json_decref(b);
    lw_store_free(&again);
    lw_store_free(&s);
}

/* A config.json that claims terabytes beside small weights is bad input, not too little memory. */
static void test_claims(void **state)
{
    lw_policy_config c = small(), back;
    lw_store *s = formula_store(&c, 9), *none = NULL;
    (void)state;
    assert_ok(lw_policy_save(in_scratch("claims"), &c, s, LW_SLAB_PARAM));
    json_t *j = lw_policy_to_json(&c);
    json_object_set_new(j, "constants", json_integer(1 << 28));
    json_object_set_new(j, "embedding_size", json_integer(8192));
    assert_ok(lw_json_save(in_scratch("claims/config.json"), j));
    assert_fails(LW_EFORMAT, "size mismatch",
                 lw_policy_load(in_scratch("claims"), true, &back, &none));
    assert_null(none);
    json_object_set_new(j, "names", json_string("-12 hello"));
    assert_fails(LW_EFORMAT, "'names' must be 16 hexadecimal digits",
                 lw_policy_from_json(j, "config.json", &back));
    json_decref(j);
    lw_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_bf16),

        cmocka_unit_test(test_formula),   cmocka_unit_test(test_folder),
        cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
