/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings: the loss and its gradient against plain loops, what a step is fed, scores, and
 * a small graph learned. */
#include "unit/test_proof_util.h"

#include <math.h>

#include "cpu_device.h"
#include "jobs/prove/kge/prove_kge_feed.h"

/* ---- a ring: next(x, y), back(y, x), across(x, z) -------------------------------------------- */

enum { RING = 12 };

/* Every `hole`-th back() is left out of the facts and is a query; 0: none. */
static lw_kb *ring(int hole, lw_queries *left_out)
{
    lw_str facts = {0}, queries = {0};
    for (int i = 0; i < RING; i++) {
        int next = (i + 1) % RING;
        lw_str_addf(&facts, "next(e%02d,e%02d).\nacross(e%02d,e%02d).\n", i, next, i,
                    (i + RING / 2) % RING);
        lw_str_addf(hole && i % hole == 0 ? &queries : &facts, "back(e%02d,e%02d).\n", next, i);
    }
    lw_kb *kb = kb_of(lw_str_c(&facts), "");
    if (left_out) {
        lw_problems problems = {0};
        const lw_query_options o = {.split = "test"};
        ok(lw_queries_parse(kb, &o, lw_span_of(lw_str_c(&queries)), lw_span_of(""), &problems,
                            left_out));
        lw_problems_clear(&problems);
    }
    lw_str_clear(&facts);
    lw_str_clear(&queries);
    return kb;
}

static lw_kge_train_config config_of(const lw_kb *kb, int32_t model, const char *dir)
{
    return (lw_kge_train_config){.train = {.output_dir = dir,
                                           .batch_size = 24,
                                           .grad_accum_steps = 1,
                                           .steps = 600,
                                           .learning_rate = 0.02,
                                           .adam_beta1 = 0.9,
                                           .adam_beta2 = 0.999,
                                           .adam_eps = 1e-8,
                                           .log_every = 200,
                                           .threads = 2,
                                           .seed = 1},
                                 .model = model,
                                 .dim = 8,
                                 .norm = 1,
                                 .gamma = 4.0,
                                 .negatives = 8,
                                 .filter_negatives = true,
                                 .temperature = 1.0,
                                 .kb = kb};
}

/* ---- what is learned ------------------------------------------------------------------------- */

/* Over heads and tails; also checks that drawn lists of all there is say the same. */
static double mrr_of(const char *run, const lw_kb *kb, const lw_atom *queries, int64_t n)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_kge_close) lw_kge *k = NULL;
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *pool = NULL;
    const lw_corrupt_options o = {.filtered = true};
    lw_rank_lists ranks, drawn;
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_corruptor_new(kb, &o, NULL, 0, &pool));
    ok(lw_kge_open(run, true, kb, dev, &k));
    lw_kge_rank_options ro = {.pool = pool, .mode = {true, true}};
    ok(lw_kge_rank(k, &ro, queries, n, NULL, &ranks));
    assert_int_equal(ranks.all[0].n, 2 * n);
    assert_int_equal(ranks.sum[LW_CORRUPT_TAIL][0].n, n);
    double mrr = lw_rank_sum_means(&ranks.all[LW_RANK_REALISTIC]).mrr;
    ro.drawn = true;
    ro.mode[LW_CORRUPT_BOTH] = true;
    ok(lw_kge_rank(k, &ro, queries, n, NULL, &drawn));
    assert_int_equal(drawn.all[0].n, 3 * n);
    assert_int_equal(drawn.candidates, 2 * ranks.candidates - n); /* one query less a list */
    for (int mode = 0; mode < 2 && !lw_kge_get_config(k)->inverse; mode++) {
        const lw_rank_sum *a = ranks.sum[mode], *b = drawn.sum[mode];
        assert_true(fabs(a->reciprocal - b->reciprocal) < 0.02 * (double)n);
    }
    return mrr;
}

static void learn(lw_kge_train_config c)
{
    lw_train_result r;
    lw_remove_tree(c.train.output_dir);
    ok(lw_train_kge(c, NULL, &r));
    assert_int_equal(r.steps, 600);
}

/* Rotations and complex products know the facts and infer what is missing. Translations cannot come
 * back to where they began, and DistMult cannot tell next from back: they know some. */
static void test_learns(void **state)
{
    static const double least[LW_KGE_KINDS][2] = {[LW_KGE_TRANSE] = {0.6, 0.2},
                                                  [LW_KGE_ROTATE] = {0.95, 0.9},
                                                  [LW_KGE_COMPLEX] = {0.95, 0.9},
                                                  [LW_KGE_DISTMULT] = {0.5, 0.2}};
    lw_queries missing = {0};
    lw_kb *kb = ring(4, &missing);
    (void)state;
    assert_int_equal(missing.n, RING / 4);
    for (int32_t model = 0; model < LW_KGE_KINDS; model++) {
        lw_kge_train_config c = config_of(kb, model, "kge_ring");
        bool product = model == LW_KGE_COMPLEX || model == LW_KGE_DISTMULT;
        c.negatives = product ? 0 : 8;
        c.regularization = c.regularization_relations = product ? 0.05 : 0.0;
        learn(c);
        double facts = mrr_of("kge_ring", kb, kb->facts.atom, kb->facts.n);
        double rest = mrr_of("kge_ring", kb, missing.atom, missing.n);
        print_message("model %d: MRR of facts %.3f, of the others %.3f\n", (int)model, facts, rest);
        assert_true(facts > least[model][0]);
        assert_true(rest > least[model][1]);
    }
    lw_remove_tree("kge_ring");
    lw_queries_clear(&missing);
    lw_kb_free(&kb);
}

static void test_inverse_relations(void **state)
{
    lw_kb *kb = ring(0, NULL), *other = kb_of("next(e00,e01).\nback(e01,e02).\n", "");
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_kge_close) lw_kge *k = NULL;
    lw_kge_train_config c = config_of(kb, LW_KGE_COMPLEX, "kge_ring");
    (void)state;
    c.inverse = true; /* heads are asked for with relations of their own */
    c.negatives = 0;
    learn(c);
    double mrr = mrr_of("kge_ring", kb, kb->facts.atom, kb->facts.n);
    print_message("ComplEx with inverse relations: MRR of facts %.3f\n", mrr);
    assert_true(mrr > 0.95);
    ok(cpu_device(1, lw_isa_best(), &dev));
    fails(lw_kge_open("kge_ring", true, other, dev, &k), LW_EFORMAT, "12 entities");
    lw_remove_tree("kge_ring");
    lw_kb_free(&kb);
    lw_kb_free(&other);
}

/* ---- cut off --------------------------------------------------------------------------------- */

static bool count_down(void *self)
{
    return --*(int *)self < 0;
}

static int train_some(lw_kge_train_config c, const char *dir, int *questions, lw_train_result *r)
{
    const lw_observer obs = {.self = questions, .should_stop = count_down};
    c.train.output_dir = dir;
    return lw_train_kge(c, &obs, r);
}

/* A step against all entities of a large graph takes long: it is cut off within, the steps before it
 * are saved, and what goes on has the bits of one run. */
static void test_cut_off(void **state)
{
    (void)state;
    enum { MOST = 1 << 20 };
    lw_kb *kb = ring(4, NULL);
    lw_kge_train_config c = config_of(kb, LW_KGE_TRANSE, "");
    lw_train_result whole, parts;
    int left = MOST;
    c.negatives = 0;
    c.train.threads = 1;
    c.train.steps = 3;
    ok(train_some(c, "kge_whole", &left, &whole));
    int all = MOST - left, a_step = all / 3;
    assert_true(a_step > 20); /* tasks, not steps or parts of them */
    for (int i = 1; i < 4; i++) {
        left = a_step + i * a_step / 2; /* within the second step or the third */
        c.train.resume = false;
        lw_remove_tree("kge_parts");
        assert_int_equal(train_some(c, "kge_parts", &left, &parts), LW_ESTOPPED);
        assert_in_range(parts.steps, 1, 2);
        left = MOST;
        c.train.resume = true;
        ok(train_some(c, "kge_parts", &left, &parts));
        assert_in_range(MOST - left, a_step, 2 * a_step + a_step / 2); /* not from the start */
        same_file("kge_whole/checkpoints/last/model.safetensors",
                  "kge_parts/checkpoints/last/model.safetensors");
    }
    lw_remove_tree("kge_whole");
    lw_remove_tree("kge_parts");
    lw_kb_free(&kb);
}

/* ---- one step by plain loops: DistMult ------------------------------------------------------- */

enum { BATCH = 5, DIM = 3, CANDIDATES = 7, ENTITIES = 6, RELATIONS = 2 };

typedef struct plain {
    const lw_kge_step *s;
    const int32_t *entities, *relations;
    const float *allowed;
    double e[ENTITIES][DIM], r[RELATIONS][DIM];
    double w[BATCH][CANDIDATES]; /* kept constant while parameters move */
} plain;

static int32_t candidate(const plain *p, int c)
{
    return p->s->negatives ? p->entities[2 * BATCH + c] : c;
}

static double product(const plain *p, int i, int32_t answer)
{
    double sum = 0.0;
    for (int k = 0; k < DIM; k++)
        sum += p->e[p->entities[i]][k] * p->r[p->relations[i]][k] * p->e[answer][k];
    return sum;
}

static double softplus(double x)
{
    return log1p(exp(x));
}

static void set_weights(plain *p, int n)
{
    double heat = p->s->loss == LW_KGE_NSSA ? (double)p->s->temperature : 0.0;
    for (int i = 0; i < BATCH; i++) {
        double sum = 0.0;
        for (int c = 0; c < n; c++) {
            p->w[i][c] = p->allowed[i * n + c] > 0.0f ? exp(heat * product(p, i, candidate(p, c)))
                                                      : 0.0;
            sum += p->w[i][c];
        }
        for (int c = 0; c < n; c++)
            p->w[i][c] = sum > 0.0 ? p->w[i][c] / sum : 0.0;
    }
}

static double loss_of(const plain *p, int n)
{
    double loss = 0.0, cubes = 0.0;
    for (int i = 0; i < BATCH; i++) {
        double yes = product(p, i, p->entities[BATCH + i]), no = 0.0, all = exp(yes);
        for (int c = 0; c < n; c++) {
            double s = product(p, i, candidate(p, c));
            no += p->w[i][c] * softplus(s);
            all += p->allowed[i * n + c] > 0.0f ? exp(s) : 0.0;
        }
        loss += p->s->loss == LW_KGE_CE ? log(all) - yes : (softplus(-yes) + no) / 2.0;
        for (int k = 0; k < DIM; k++)
            cubes += (double)p->s->regularization[0] *
                         (pow(fabs(p->e[p->entities[i]][k]), 3) +
                          pow(fabs(p->e[p->entities[BATCH + i]][k]), 3)) +
                     (double)p->s->regularization[1] * pow(fabs(p->r[p->relations[i]][k]), 3);
    }
    return (loss + cubes) / BATCH;
}

static void read_tables(plain *p, const lw_store *s)
{
    const float *e = lw_store_data(s, lw_store_find(s, "entity_embedding"), LW_SLAB_PARAM),
                *r = lw_store_data(s, lw_store_find(s, "relation_embedding"), LW_SLAB_PARAM);
    for (int i = 0; i < ENTITIES * DIM; i++)
        p->e[i / DIM][i % DIM] = (double)e[i];
    for (int i = 0; i < RELATIONS * DIM; i++)
        p->r[i / DIM][i % DIM] = (double)r[i];
}

static void compare_slopes(plain *p, const lw_store *s, const char *name, double *number, int n,
                           int columns)
{
    const float *got = lw_store_data(s, lw_store_find(s, name), LW_SLAB_GRAD);
    for (int i = 0; i < n; i++) {
        double was = number[i], h = 1e-5, loss[2];
        for (int side = 0; side < 2; side++) {
            number[i] = was + (side ? -h : h);
            loss[side] = loss_of(p, columns);
        }
        number[i] = was;
        double want = (loss[0] - loss[1]) / (2.0 * h);
        if (fabs(want - (double)got[i]) > 1e-5 + 1e-4 * fabs(want))
            fail_msg("loss %d: %s[%d]: difference %g, gradient %g", (int)p->s->loss, name, i, want,
                     (double)got[i]);
    }
}

static void check_step(lw_kge_step s)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *exec = NULL;
    const lw_kge_config c = {.kind = LW_KGE_DISTMULT,
                             .entities = ENTITIES,
                             .relations = RELATIONS,
                             .dim = DIM,
                             .range = 1.0f};
    int n = s.negatives ? s.negatives : ENTITIES;
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_store_new(false, &store));
    ok(lw_kge_declare(&c, store));
    lw_store_init(store, 3);
    ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(store), .training = true};
    ok(lw_kge_build_step(&b, &c, &s));
    ok(lw_compile(g, dev, NULL, &plan));
    ok(lw_exec_new(plan, LW_SLAB_PARAM, &exec));
    int32_t *entities = lw_exec_write(exec, "entities"),
            *relations = lw_exec_write(exec, "relations");
    float *allowed = lw_exec_write(exec, "allowed"), *side = lw_exec_write(exec, "side");
    for (int i = 0; i < 2 * BATCH + s.negatives; i++)
        entities[i] = (i * 5 + i / 3) % ENTITIES;
    for (int i = 0; i < BATCH; i++) {
        relations[i] = i % RELATIONS;
        side[i] = i % 2 ? 1.0f : -1.0f;
    }
    for (int i = 0; i < BATCH * n; i++)
        allowed[i] = i / n != 2 && i % 3 ? 1.0f : 0.0f; /* row 2 has no false answer */
    ok(lw_exec_run(exec, NULL));
    plain p = {.s = &s, .entities = entities, .relations = relations, .allowed = allowed};
    read_tables(&p, store);
    set_weights(&p, n);
    double got = (double)*(const float *)lw_exec_read(exec, "loss"), want = loss_of(&p, n);
    if (fabs(got - want) > 1e-5)
        fail_msg("loss %d: %g instead of %g", (int)s.loss, got, want);
    compare_slopes(&p, store, "entity_embedding", &p.e[0][0], ENTITIES * DIM, n);
    compare_slopes(&p, store, "relation_embedding", &p.r[0][0], RELATIONS * DIM, n);
}

static void test_step(void **state)
{
    static const float weight[4][2] = {{0.0f, 0.0f}, {0.3f, 0.3f}, {0.2f, 0.7f}, {0.0f, 0.4f}};
    (void)state;
    for (int32_t loss = LW_KGE_NSSA; loss <= LW_KGE_CE; loss++)
        for (int i = 0; i < 8; i++)
            check_step((lw_kge_step){.batch = BATCH,
                                     .negatives = i % 2 ? 0 : CANDIDATES,
                                     .loss = loss,
                                     .temperature = 2.0f,
                                     .regularization = {weight[i / 2][0], weight[i / 2][1]}});
}

/* ---- what a step is fed ---------------------------------------------------------------------- */

enum { FED = 7, DRAWN = 9 };

typedef struct fed {
    int32_t entities[2 * FED + DRAWN], relations[FED];
    float side[FED], allowed[FED * RING];
} fed;

static void fill(lw_kge_feed *f, int64_t part, fed *to)
{
    const lw_kge_inputs in = {to->entities, to->relations, to->side, to->allowed};
    ok(lw_kge_feed_fill(f, part, &in));
}

static lw_atom asked(const fed *x, int i, int32_t answer)
{
    int32_t known = x->entities[i] + 1;
    bool tail = x->side[i] > 0.0f;
    return (lw_atom){x->relations[i] + 1, {tail ? known : answer, tail ? answer : known}};
}

static void check_feed(const lw_kb *kb, int32_t negatives)
{
    lw_kge_feed f = {.kb = kb, .batch = FED, .negatives = negatives, .filter = true, .seed = 4},
                again = f;
    fed x = {0}, y = {0};
    int32_t columns = negatives ? negatives : RING;
    int seen[2 * 3 * RING] = {0};
    ok(lw_kge_feed_init(&f));
    ok(lw_kge_feed_init(&again));
    int64_t parts = LW_CEIL_DIV(f.examples, FED);
    assert_int_equal(f.examples, 2 * 3 * RING);
    for (int64_t part = 0; part < parts; part++) {
        fill(&f, part, &x);
        for (int i = 0; i < FED; i++) {
            lw_atom a = asked(&x, i, x.entities[FED + i] + 1);
            int32_t fact = lw_facts_find(&kb->facts, a);
            assert_true(fact >= 0);
            if (part * FED + i < f.examples)
                seen[2 * fact + (x.side[i] < 0.0f)]++;
            for (int32_t c = 0; c < columns; c++) {
                int32_t e = negatives ? x.entities[2 * FED + c] : c;
                bool is_false = lw_facts_find(&kb->facts, asked(&x, i, e + 1)) < 0;
                assert_true(x.allowed[i * columns + c] == (is_false ? 1.0f : 0.0f));
            }
        }
    }
    for (int i = 0; i < 2 * 3 * RING; i++)
        assert_int_equal(seen[i], 1); /* an epoch asks everything once */
    fill(&again, parts - 1, &y);      /* and the past does not matter */
    assert_memory_equal(&x, &y, sizeof x);
    lw_kge_feed_clear(&f);
    lw_kge_feed_clear(&again);
}

static void test_feed(void **state)
{
    lw_kb *kb = ring(0, NULL);
    (void)state;
    check_feed(kb, DRAWN);
    check_feed(kb, 0);
    lw_kb_free(&kb);
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void test_logs(void **state)
{
    (void)state;
    assert_true(fabs(lw_kge_log(0.0) - log(0.5)) < 1e-15);
    assert_true(fabs(lw_kge_log(-800.0) + 800.0) < 1e-9); /* where exp underflows */
    assert_true(lw_kge_log(50.0) < lw_kge_log(60.0) && lw_kge_log(60.0) < 0.0);
}

/* Single scores are those of the table, and do not depend on how many are asked for. */
static void test_scores(void **state)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    LW_CLEANUP(lw_kge_close) lw_kge *k = NULL;
    lw_kb *kb = ring(0, NULL);
    lw_kge_config c = {
        .kind = LW_KGE_TRANSE, .entities = RING, .relations = 3, .dim = 5, .norm = 2};
    float all[3 * RING], one;
    (void)state;
    ok(lw_kge_check(&c));
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_store_new(true, &store));
    ok(lw_kge_declare(&c, store));
    lw_store_init(store, 8);
    ok(lw_kge_over(&c, store, LW_SLAB_PARAM, dev, &k));
    ok(lw_kge_score(k, kb->facts.atom, kb->facts.n, all));
    const float *e = lw_store_data(store, lw_store_find(store, "entity_embedding"), LW_SLAB_PARAM),
                *r = lw_store_data(store, lw_store_find(store, "relation_embedding"),
                                   LW_SLAB_PARAM);
    for (int32_t i = 0; i < kb->facts.n; i++) {
        const lw_atom a = kb->facts.atom[i];
        double sum = 0.0;
        for (int d = 0; d < 5; d++) {
            double diff = (double)e[(a.arg[0] - 1) * 5 + d] + (double)r[(a.p - 1) * 5 + d] -
                          (double)e[(a.arg[1] - 1) * 5 + d];
            sum += diff * diff;
        }
        assert_true(fabs((double)all[i] + sqrt(sum)) < 1e-5);
        ok(lw_kge_score(k, &a, 1, &one));
        assert_true(one == all[i]);
    }
    lw_prove_kge hook = {.weight = 2.0};
    float logs[2];
    ok(lw_kge_plausibility(k, &hook));
    ok(hook.log_score(hook.self, kb->facts.atom, 2, logs));
    for (int i = 0; i < 2; i++)
        assert_true(fabs((double)logs[i] - lw_kge_log((double)all[i])) < 1e-6);
    lw_kb_free(&kb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),    cmocka_unit_test(test_feed),
        cmocka_unit_test(test_logs),    cmocka_unit_test(test_scores),
        cmocka_unit_test(test_learns),  cmocka_unit_test(test_inverse_relations),
        cmocka_unit_test(test_cut_off),
    };
    return cmocka_run_group_tests_name("kge", tests, NULL, NULL);
}
