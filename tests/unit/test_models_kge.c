/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings of knowledge graphs: scores against their formulas, slopes against differences, model
 * folders. */
#include "unit/test_store_util.h"

#include <complex.h>
#include <math.h>

#include "cpu_device.h"
#include "models/models.h"

enum { ENTITIES = 9, RELATIONS = 4, DIM = 5, ROWS = 6 };

static lw_kge_config config(int32_t kind, int32_t norm, bool inverse)
{
    lw_kge_config c = {.kind = kind,
                       .entities = ENTITIES,
                       .relations = RELATIONS,
                       .dim = DIM,
                       .norm = norm,
                       .inverse = inverse,
                       .gamma = 3.0f,
                       .range = 0.7f,
                       .names = 0x123456789abcdef0u};
    assert_ok(lw_kge_check(&c));
    return c;
}

/* ---- the formulas, once more ----------------------------------------------------------------- */

static double _Complex number(const float *row, int k)
{
    return (double)row[k] + (double)row[DIM + k] * (double _Complex)I;
}

/* Score of (h, r, t) from the tables; r is the row of the relation that is used. */
static double formula(const lw_kge_config *c, const float *h, const float *r, const float *t)
{
    double sum = 0.0;
    double _Complex product = 0.0;
    for (int k = 0; k < DIM; k++) {
        double d = (double)h[k] + (double)r[k] - (double)t[k];
        double phase = (double)r[k] * M_PI / (double)c->range;
        if (c->kind == LW_KGE_TRANSE)
            sum += c->norm == 1 ? fabs(d) : d * d;
        else if (c->kind == LW_KGE_ROTATE)
            sum += cabs(number(h, k) * cexp((double _Complex)I * phase) - number(t, k));
        else if (c->kind == LW_KGE_COMPLEX)
            product += number(h, k) * number(r, k) * conj(number(t, k));
        else
            product += (double)h[k] * (double)r[k] * (double)t[k];
    }
    if (c->kind == LW_KGE_TRANSE && c->norm == 2)
        sum = sqrt(sum);
    return lw_kge_is_distance(c) ? (double)c->gamma - sum : creal(product);
}

/* ---- the same by a plan ---------------------------------------------------------------------- */

typedef struct scorer {
    lw_device *dev;
    lw_store *store;
    lw_plan *plan;
    lw_exec *exec;
} scorer;

static lw_val pick(lw_graph *g, lw_val table, const char *name)
{
    return lw_embedding(g, table, lw_input(g, name, lw_type_of(LW_I32, 1, ROWS)));
}

/* Outputs "all" [ROWS, ENTITIES] and "each" [ROWS, 1]; with a gradient "loss", a weighted sum. */
static void scorer_open(scorer *s, const lw_kge_config *c)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    assert_ok(cpu_device(2, lw_isa_best(), &s->dev));
    assert_ok(lw_store_new(false, &s->store));
    assert_ok(lw_kge_declare(c, s->store));
    lw_store_init(s->store, 5);
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s->store)};
    lw_val table = lw_kge_entities(&b, c);
    lw_val q = lw_kge_query(g, c, pick(g, table, "known"),
                            pick(g, lw_kge_relations(&b, c), "relation"),
                            lw_input(g, "side", lw_type_of(LW_F32, 2, ROWS, 1)));
    lw_val answer = pick(g, table, "answer"), all = lw_kge_score_all(g, c, q, table);
    lw_val each = lw_kge_score_each(g, c, q, answer);
    lw_val weight = lw_input(g, "weight", lw_type_of(LW_F32, 2, ROWS, ENTITIES));
    lw_val loss = lw_add(g, lw_sum(g, lw_mul(g, all, weight), LW_OVER_ALL),
                         lw_sum(g, lw_mul(g, each, lw_kge_cubes(g, c, answer)), LW_OVER_ALL));
    lw_graph_output_add(g, "all", all, LW_NOVAL);
    lw_graph_output_add(g, "each", each, LW_NOVAL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    assert_ok(lw_grad_params(g, loss, LW_NOVAL));
    assert_ok(lw_compile(g, s->dev, NULL, &s->plan));
    assert_ok(lw_exec_new(s->plan, LW_SLAB_PARAM, &s->exec));
    for (int i = 0; i < ROWS; i++) {
        ((int32_t *)lw_exec_write(s->exec, "known"))[i] = (i * 5) % ENTITIES;
        ((int32_t *)lw_exec_write(s->exec, "relation"))[i] = i % RELATIONS +
                                                             (c->inverse && i % 2 ? RELATIONS : 0);
        ((int32_t *)lw_exec_write(s->exec, "answer"))[i] = (i * 7 + 2) % ENTITIES;
        ((float *)lw_exec_write(s->exec, "side"))[i] = i % 2 && !c->inverse ? -1.0f : 1.0f;
    }
    for (int i = 0; i < ROWS * ENTITIES; i++)
        ((float *)lw_exec_write(s->exec, "weight"))[i] = sinf(1.3f * (float)i);
}

static void scorer_close(scorer *s)
{
    lw_exec_free(&s->exec);
    lw_plan_free(&s->plan);
    lw_store_free(&s->store);
    lw_backend_close(&s->dev);
}

static const float *row_of(const scorer *s, const char *table, int32_t row)
{
    int32_t i = lw_store_find(s->store, table);
    const lw_store_entry *e = lw_store_at(s->store, i);
    return lw_store_data(s->store, i, LW_SLAB_PARAM) + (int64_t)row * e->type.dim[1];
}

static void check_scores(const lw_kge_config *c, scorer *s)
{
    const int32_t *known = lw_exec_read(s->exec, "known"),
                  *relation = lw_exec_read(s->exec, "relation"),
                  *answer = lw_exec_read(s->exec, "answer");
    const float *side = lw_exec_read(s->exec, "side");
    assert_ok(lw_exec_run(s->exec, NULL));
    const float *all = lw_exec_read(s->exec, "all"), *each = lw_exec_read(s->exec, "each");
    for (int i = 0; i < ROWS; i++) {
        const float *a = row_of(s, "entity_embedding", known[i]),
                    *r = row_of(s, "relation_embedding", relation[i]);
        for (int32_t e = 0; e < ENTITIES; e++) {
            const float *x = row_of(s, "entity_embedding", e);
            double want = side[i] > 0.0f ? formula(c, a, r, x) : formula(c, x, r, a);
            assert_true(fabs((double)all[i * ENTITIES + e] - want) < 1e-5);
            if (e == answer[i])
                assert_true(fabs((double)each[i] - want) < 1e-5);
        }
    }
}

/* Central differences of the loss along every tenth number of both tables. */
static void check_slopes(scorer *s)
{
    double biggest = 0.0;
    for (int32_t e = 0; e < lw_store_count(s->store); e++) {
        float *p = lw_store_edit(s->store, e, LW_SLAB_PARAM);
        for (int64_t i = e; i < lw_store_at(s->store, e)->count; i += 10) {
            float was = p[i], h = 2e-3f, loss[2];
            assert_ok(lw_exec_run(s->exec, NULL));
            double slope = (double)lw_store_data(s->store, e, LW_SLAB_GRAD)[i];
            for (int side = 0; side < 2; side++) {
                p[i] = was + (side ? -h : h);
                lw_store_touch(s->store, LW_SLAB_PARAM);
                assert_ok(lw_exec_run(s->exec, NULL));
                loss[side] = *(const float *)lw_exec_read(s->exec, "loss");
            }
            p[i] = was;
            lw_store_touch(s->store, LW_SLAB_PARAM);
            double want = ((double)loss[0] - (double)loss[1]) / (2.0 * (double)h);
            biggest = fmax(biggest, fabs(want));
            if (fabs(want - slope) > 0.01 + 0.02 * fabs(want))
                fail_msg("table %d number %lld: difference %g, gradient %g", (int)e, (long long)i,
                         want, slope);
        }
    }
    assert_true(biggest > 0.2); /* there was something to compare */
}

static void test_scores(void **state)
{
    (void)state;
    for (int32_t kind = 0; kind < LW_KGE_KINDS; kind++)
        for (int32_t norm = 1; norm <= (kind == LW_KGE_TRANSE ? 2 : 1); norm++)
            for (int inverse = 0; inverse < 2; inverse++) {
                scorer s = {0};
                lw_kge_config c = config(kind, norm, inverse);
                scorer_open(&s, &c);
                check_scores(&c, &s);
                check_slopes(&s);
                scorer_close(&s);
            }
}

/* ---- files ----------------------------------------------------------------------------------- */

static void test_folder(void **state)
{
    (void)state;
    for (int32_t kind = 0; kind < LW_KGE_KINDS; kind++) {
        lw_kge_config c = config(kind, 2, kind == LW_KGE_COMPLEX), back;
        lw_store *s = NULL, *again = NULL;
        assert_ok(lw_store_new(true, &s));
        assert_ok(lw_kge_declare(&c, s));
        lw_store_init(s, 3);
        assert_ok(lw_kge_save("kge_folder", &c, s));
        assert_ok(lw_kge_load("kge_folder", true, &back, &again));
        assert_int_equal(back.kind, c.kind);
        assert_int_equal(back.entities, c.entities);
        assert_int_equal(back.relations, c.relations);
        assert_int_equal(back.dim, c.dim);
        assert_true(back.inverse == c.inverse && back.gamma == c.gamma && back.range == c.range);
        assert_true(back.names == c.names);
        assert_true(lw_store_hash(again, LW_SLAB_PARAM) == lw_store_hash(s, LW_SLAB_PARAM));
        lw_store_free(&s);
        lw_store_free(&again);
    }
    lw_remove_tree("kge_folder");
}

static void expect_config(const char *text, const char *message)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_kge_config c;
    assert_ok(lw_json_parse("text", text, strlen(text), &j));
    assert_int_equal(lw_kge_from_json(j, "x.json", &c), LW_EFORMAT);
    if (!strstr(lw_errmsg(), message))
        fail_msg("'%s' does not say '%s'", lw_errmsg(), message);
}

static void test_bad_configs(void **state)
{
    (void)state;
    expect_config("{\"model_type\": \"policy\"}", "policy");
    expect_config("{\"model_type\": \"kge\", \"model\": \"TuckER\"}", "TuckER");
    expect_config("{\"model_type\": \"kge\", \"model\": \"ComplEx\", \"entities\": 0}", "entities");
    expect_config("{\"model_type\": \"kge\", \"model\": \"TransE\", \"entities\": 3, "
                  "\"relations\": 1, \"embedding_dim\": 4, \"norm\": 3}",
                  "norm");
    expect_config("{\"model_type\": \"kge\", \"model\": \"RotatE\", \"entities\": 3, "
                  "\"relations\": 1, \"embedding_dim\": 4, \"gamma\": -1}",
                  "gamma");
    lw_kge_config c = {.kind = LW_KGE_ROTATE, .entities = 1 << 20, .relations = 1, .dim = 4096};
    assert_int_equal(lw_kge_check(&c), LW_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scores), cmocka_unit_test(test_folder),
                                       cmocka_unit_test(test_bad_configs)};
    return cmocka_run_group_tests_name("models_kge", tests, NULL, NULL);
}
