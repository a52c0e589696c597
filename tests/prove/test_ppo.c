/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proximal policy optimisation from the inside: rewards and advantages beside their definitions,
 * the loss beside its formula in doubles, its gradient beside finite differences, and a minibatch
 * in parts beside the whole.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "jobs/prove/ppo/prove_ppo_part.h"
#include "jobs/prove/ppo/prove_ppo_run.h"
#include "unit/test_proof_util.h"

static void test_rewards(void **state)
{
    (void)state;
    /* true: proved, not; corrupted: proved, not, given up; ratio 4 */
    static const double want[LW_PPO_REWARDS][5] = {
        [LW_PPO_REWARD_TRUE_PROOFS] = {1, 0, 0, 0, 0},
        [LW_PPO_REWARD_PROOFS] = {1, 0, -1, 0, 0},
        [LW_PPO_REWARD_RIGHT] = {1, 0, 0, 1, 1},
        [LW_PPO_REWARD_STRICT] = {1, -0.5, -1.5, 1, 1},
        [LW_PPO_REWARD_BALANCED] = {1, -1, -1, 0.25, 0.25},
        [LW_PPO_REWARD_GIVING_UP] = {1, -1, -1, 0.25, 0.55}};
    for (lw_ppo_reward_type t = 0; t < LW_PPO_REWARDS; t++) {
        const double got[5] = {lw_ppo_reward(t, true, LW_PROOF_PROVED, 4),
                               lw_ppo_reward(t, true, LW_PROOF_DEEP, 4),
                               lw_ppo_reward(t, false, LW_PROOF_PROVED, 4),
                               lw_ppo_reward(t, false, LW_PROOF_FAILED, 4),
                               lw_ppo_reward(t, false, LW_PROOF_STOPPED, 4)};
        for (int i = 0; i < 5; i++)
            assert_true(fabs(got[i] - want[t][i]) < 1e-12);
    }
}

/* A_t = sum over k of (gamma lambda)^k delta_{t+k}, up to the end of the proof. */
static void test_advantages(void **state)
{
    (void)state;
    enum { N = 12 };
    const double gamma = 0.9, lambda = 0.7, last = 0.35;
    lw_ppo_choice x[N] = {0};
    for (int t = 0; t < N; t++) {
        x[t].value = (float)(0.1 * ((t * 7) % 5) - 0.2);
        x[t].ends = t == 3 || t == 4 || t == 9;
        x[t].reward = x[t].ends ? (t == 4 ? -1.0 : 1.0) : 0.0;
    }
    lw_ppo_advantages(x, N, last, gamma, lambda);
    for (int t = 0; t < N; t++) {
        double sum = 0.0, weight = 1.0;
        for (int k = t; k < N; k++) {
            double next = x[k].ends ? 0.0 : k + 1 < N ? (double)x[k + 1].value : last;
            sum += weight * (x[k].reward + gamma * next - (double)x[k].value);
            weight *= gamma * lambda;
            if (x[k].ends)
                break;
        }
        assert_true(fabs(sum - (double)x[t].advantage) < 1e-6);
        assert_true(fabs(sum + (double)x[t].value - (double)x[t].target) < 1e-6);
    }
}

/* ---- a small run ----------------------------------------------------------------------------- */

static void write_text(const char *name, const char *text)
{
    ok(lw_file_write(name, text, strlen(text)));
}

/* A tree of parents; grandparents are queries, friends lead nowhere. */
static int enter(void **state)
{
    static char dir[] = "/tmp/leeway_ppo_XXXXXX";
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    if (!mkdtemp(dir) || chdir(dir) < 0 || lw_mkdirs("kb") < 0)
        return -1;
    for (int i = 0; i < 15; i++)
        for (int k = 1; k < 3; k++) {
            lw_str_addf(&facts, "parent(p%d,p%d).\nfriend(p%d,p%d).\n", i, 2 * i + k, i,
                        (i * 5 + 3 * k) % 31);
            if (i > 0)
                lw_str_addf(&facts, "grand(p%d,p%d).\n", (i - 1) / 2, 2 * i + k);
        }
    write_text("kb/train.txt", lw_str_c(&facts));
    write_text("kb/rules.txt", "a:1:friend(x,z), friend(z,y) -> grand(x,y)\n"
                               "b:1:parent(x,z), parent(z,y) -> grand(x,y)\n"
                               "c:1:friend(x,z), parent(z,y) -> grand(x,y)\n");
    write_text("kb/valid.txt", "grand(p0,p3).\ngrand(p1,p8).\ngrand(p2,p13).\n");
    *state = dir;
    return 0;
}

static int leave(void **state)
{
    return chdir("/") == 0 && lw_remove_tree(*state) == 0 ? 0 : -1;
}

static int32_t constants_as; /* of the runs that are opened */

static void open_small(lw_ppo_config *c, lw_ppo_run *r, int32_t batch, int32_t part_states)
{
    lw_ppo_defaults(c);
    c->part_states = part_states;
    c->train.data = "kb";
    c->train.threads = 1;
    c->train.seed = 3;
    c->train.batch_size = batch;
    c->n_envs = 8;
    c->n_steps = 24;
    c->env.padding_states = 24;
    c->net.embed = 12;
    c->net.hidden = 16;
    c->net.blocks = 2;
    c->net.l2_norm = true;
    c->net.constants_as = constants_as;
    c->net.sqrt_scale = false;
    c->net.temperature = 0.5f;
    *r = (lw_ppo_run){.c = c, .best = -1.0};
    ok(lw_ppo_run_open(r));
    ok(lw_ppo_rollout_run(&r->rollout, 0));
}

static void open_run(lw_ppo_config *c, lw_ppo_run *r)
{
    open_small(c, r, 64, 0);
}

/* One graph over the first choices of a roll-out. */
typedef struct rig {
    lw_ppo_config c;
    lw_ppo_run r;
    lw_ppo_part part;
    lw_plan *plan;
    lw_exec *exec;
} rig;

enum { CHOICES = 40 };
static const lw_ppo_sizes sizes = {400, 800, CHOICES, 24};

static void rig_open(rig *g)
{
    LW_CLEANUP(lw_graph_free) lw_graph *graph = NULL;
    const lw_compile_opts o = {.opt = 1};
    memset(g, 0, sizeof *g);
    open_run(&g->c, &g->r);
    ok(lw_graph_new(&graph));
    ok(lw_ppo_graph(&g->c, g->r.store, sizes, true, graph));
    ok(lw_compile(graph, g->r.dev, &o, &g->plan));
    ok(lw_exec_new(g->plan, LW_SLAB_PARAM, &g->exec));
    ok(lw_ppo_part_open(sizes, g->c.net.max_atoms, &g->part));
    ok(lw_ppo_part_bind(&g->part, g->exec));
    g->part.entropy_coef[0] = 0.3f;
}

static void rig_close(rig *g)
{
    lw_exec_free(&g->exec);
    lw_plan_free(&g->plan);
    lw_ppo_part_clear(&g->part);
    lw_ppo_run_close(&g->r);
}

/* Puts choices [from, to) in, moved a little from where they were made, so that ratios and value
 * changes are on both sides of their bounds. */
static void rig_fill(rig *g, int from, int to)
{
    ok(lw_ppo_part_begin(&g->part, g->r.rollout.n_states));
    for (int i = from; i < to; i++) {
        lw_ppo_choice x = g->r.rollout.choice[i];
        x.log_prob += (float)(0.35 * sin(i * 1.7));
        x.value += (float)(0.4 * sin(i * 2.3));
        assert_true(lw_ppo_part_fits(&g->part, x.n));
        lw_ppo_part_add(&g->part, &g->r.rollout, &x, (float)cos(i * 3.1), 1.0f / CHOICES);
    }
    lw_ppo_part_pad(&g->part, sizes, g->c.net.max_atoms);
}

static double rig_loss(rig *g)
{
    const lw_tick tick = {1, 0};
    lw_store_touch(g->r.store, LW_SLAB_PARAM);
    ok(lw_exec_run(g->exec, &tick));
    return (double)*(const float *)lw_exec_read(g->exec, "loss");
}

/* The formula from probabilities and values that the network gives; what roll-outs computed with
 * other plans agrees. */
static void test_loss(void **state)
{
    (void)state;
    rig g;
    double want = 0.0;
    int clipped = 0, forced = 0;
    rig_open(&g);
    rig_fill(&g, 0, CHOICES);
    double loss = rig_loss(&g);
    const float *nlp = lw_exec_read(g.exec, "nlp"), *v = lw_exec_read(g.exec, "new_value"),
                *h = lw_exec_read(g.exec, "entropy");
    for (int i = 0; i < CHOICES; i++) {
        const lw_ppo_choice *x = &g.r.rollout.choice[i];
        const lw_ppo_part *p = &g.part;
        assert_true(fabs((double)nlp[i] + (double)x->log_prob) < 1e-4);
        assert_true(fabs((double)v[i] - (double)x->value) < 1e-4);
        assert_true((double)h[i] > -1e-6 && (double)h[i] < log((double)x->n) + 1e-5);
        forced += x->n == 1;
        double ratio = exp(-(double)nlp[i] - (double)p->old_log_prob[i]),
               a = (double)p->advantage[i], bound = fmin(fmax(ratio, 0.8), 1.2),
               move = (double)v[i] - (double)p->old_value[i];
        clipped += ratio != bound;
        double e = (double)p->target[i] - (double)p->old_value[i] - fmin(fmax(move, -0.2), 0.2);
        want += (-fmin(a * ratio, a * bound) - 0.3 * (double)h[i] + 0.5 * e * e) / CHOICES;
    }
    print_message("loss %.7f, formula %.7f; %d clipped, %d without a choice\n", loss, want, clipped,
                  forced);
    assert_true(fabs(loss - want) < 1e-5 * (1.0 + fabs(want)));
    assert_in_range(clipped, 5, CHOICES - 5);
    assert_in_range(forced, 1, CHOICES - 1);
    assert_true(g.part.pairs < g.part.choices * 24 && g.part.states > 10);
    rig_close(&g);
}

/* Slope of the loss along a direction, by a central difference. */
static double slope_along(rig *g, const lw_store_entry *e, int32_t k, const float *direction,
                          float step)
{
    float *p = lw_store_edit(g->r.store, k, LW_SLAB_PARAM);
    LW_CLEANUP(lw_free) float *keep = lw_calloc((size_t)e->count, sizeof *keep);
    double loss[2];
    memcpy(keep, p, (size_t)e->count * sizeof *keep);
    for (int s = 0; s < 2; s++) {
        for (int64_t i = 0; i < e->count; i++)
            p[i] = keep[i] + (s ? -step : step) * direction[i];
        loss[s] = rig_loss(g);
    }
    memcpy(p, keep, (size_t)e->count * sizeof *p);
    return (loss[0] - loss[1]) / (2.0 * (double)step);
}

/* Every parameter along its own gradient: the slope is the gradient's squared length. */
static void gradient_of(int32_t constants)
{
    rig g;
    constants_as = constants;
    double worst = 0.0;
    int32_t checked = 0;
    rig_open(&g);
    rig_fill(&g, 0, CHOICES);
    for (int32_t k = 0; k < lw_store_count(g.r.store); k++) {
        const lw_store_entry *e = lw_store_at(g.r.store, k);
        LW_CLEANUP(lw_free) float *grad = lw_calloc((size_t)e->count, sizeof *grad);
        double square = 0.0;
        rig_loss(&g);
        memcpy(grad, lw_store_data(g.r.store, k, LW_SLAB_GRAD), (size_t)e->count * sizeof *grad);
        for (int64_t i = 0; i < e->count; i++)
            square += (double)grad[i] * (double)grad[i];
        assert_true(isfinite(square));
        if (square < 1e-5) /* less than differences in f32 can show */
            continue;
        double slope = slope_along(&g, e, k, grad, (float)(3e-4 / sqrt(square)));
        worst = fmax(worst, fabs(slope - square) / square);
        if (fabs(slope - square) > 0.03 * square)
            fail_msg("%s: difference %g, gradient %g", e->name, slope, square);
        checked++;
    }
    print_message("%d of %d parameters, worst relative difference %.2g\n", checked,
                  lw_store_count(g.r.store), worst);
    assert_true(checked > lw_store_count(g.r.store) / 2);
    rig_close(&g);
    constants_as = LW_POLICY_CONSTANTS_OWN;
}

static void test_gradient(void **state)
{
    (void)state;
    gradient_of(LW_POLICY_CONSTANTS_OWN);
    gradient_of(LW_POLICY_CONSTANTS_SHARED);
    gradient_of(LW_POLICY_CONSTANTS_ROLES);
    gradient_of(LW_POLICY_CONSTANTS_NONE);
}

/* ---- rows of constants ----------------------------------------------------------------------- */

/* Of constants 1 to 9 with the query's 4 and 7, then variables 10, 11. */
static void test_rows_of_constants(void **state)
{
    (void)state;
    static const struct {
        int32_t rows, row[6];
    } want[LW_POLICY_CONSTANTS] = {[LW_POLICY_CONSTANTS_OWN] = {9, {0, 4, 7, 9, 10, 11}},
                                   [LW_POLICY_CONSTANTS_FROZEN] = {9, {0, 4, 7, 9, 10, 11}},
                                   [LW_POLICY_CONSTANTS_SHARED] = {10, {0, 4, 7, 10, 11, 12}},
                                   [LW_POLICY_CONSTANTS_ROLES] = {3, {0, 1, 2, 3, 4, 5}},
                                   [LW_POLICY_CONSTANTS_NONE] = {0, {0, 0, 0, 0, 1, 2}}};
    static const int32_t arg[6] = {0, 4, 7, 9, 10, 11}, query[2] = {4, 7};
    for (int32_t k = 0; k < LW_POLICY_CONSTANTS; k++) {
        lw_policy_config c = lw_policy_default(9, 5);
        c.constants_as = k;
        assert_int_equal(lw_policy_constant_rows(&c), want[k].rows);
        for (int i = 0; i < 6; i++)
            assert_int_equal(lw_policy_argument(&c, arg[i], query), want[k].row[i]);
        LW_CLEANUP(lw_json_drop) json_t *j = lw_policy_to_json(&c);
        lw_policy_config back;
        ok(lw_policy_from_json(j, "here", &back));
        assert_int_equal(back.constants_as, k);
    }
}

/* The values of all players' queries, which differ in their constants alone: equal bits unless
 * constants have rows of their own. */
static void test_what_is_seen_of_constants(void **state)
{
    (void)state;
    for (int32_t k = 0; k < LW_POLICY_CONSTANTS; k++) {
        lw_ppo_config c;
        lw_ppo_run r;
        int different = 0, states = 0;
        constants_as = k;
        open_small(&c, &r, 64, 0);
        /* values start at 0 */
        int32_t w = lw_store_find(r.store, "value_head.output_layer.2.weight");
        float *head = lw_store_edit(r.store, w, LW_SLAB_PARAM);
        for (int64_t i = 0; i < lw_store_at(r.store, w)->count; i++)
            head[i] = (float)sin((double)(i + 1));
        lw_store_touch(r.store, LW_SLAB_PARAM);
        ok(lw_ppo_rollout_run(&r.rollout, 0));
        for (int e = 1; e < c.n_envs; e++) {
            const lw_ppo_choice *x = &r.rollout.choice[(ptrdiff_t)e * c.n_steps],
                                *first = r.rollout.choice;
            states += x->state != first->state;
            different += x->value < first->value || x->value > first->value;
        }
        bool alike = k == LW_POLICY_CONSTANTS_ROLES || k == LW_POLICY_CONSTANTS_NONE;
        print_message("%d: %d other queries, %d other values\n", k, states, different);
        assert_true(states > 3);
        assert_true(alike ? different == 0 : different > 3);
        lw_ppo_run_close(&r);
    }
    constants_as = LW_POLICY_CONSTANTS_OWN;
}

/* Frozen: rows of constants keep their bits through updates, those of predicates do not. */
static void test_frozen(void **state)
{
    (void)state;
    for (int32_t k = LW_POLICY_CONSTANTS_OWN; k <= LW_POLICY_CONSTANTS_FROZEN; k++) {
        lw_ppo_config c;
        lw_ppo_run r;
        lw_ppo_report report;
        int64_t updates = 0;
        const lw_ppo_rates rates = {.lr = 1e-2, .updates = &updates};
        constants_as = k;
        open_small(&c, &r, 64, k ? 0 : 32); /* in one part, in several */
        int32_t t = lw_store_find(r.store, "constant_embedding.weight");
        const lw_store_entry *e = lw_store_at(r.store, t);
        int64_t width = e->count / e->type.dim[0], rows = 1 + r.kb->n_constants, moved = 0;
        LW_CLEANUP(lw_free) float *before = lw_calloc((size_t)e->count, sizeof *before);
        memcpy(before, lw_store_data(r.store, t, LW_SLAB_PARAM), (size_t)e->count * sizeof *before);
        ok(lw_ppo_update_run(r.update, &r.rollout, 0, &rates, &report));
        const float *after = lw_store_data(r.store, t, LW_SLAB_PARAM);
        for (int64_t i = 0; i < rows * width; i++)
            moved += before[i] < after[i] || before[i] > after[i];
        assert_true(updates > 0 && (k == LW_POLICY_CONSTANTS_FROZEN ? moved == 0 : moved > 100));
        /* (variables stand in two goals and cancel in this network's sums) */
        int32_t p = lw_store_find(r.store, "predicate_embedding.weight");
        assert_true(lw_store_data(r.store, p, LW_SLAB_M)[width] != 0.0f);
        lw_ppo_run_close(&r);
    }
    constants_as = LW_POLICY_CONSTANTS_OWN;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Shortest proofs first, opened as the run goes on; corruptions that follow from the rules. */
static void test_curriculum_and_hard_negatives(void **state)
{
    (void)state;
    LW_CLEANUP(lw_least_asker_free) lw_least_asker *asker = NULL;
    lw_ppo_config c;
    lw_ppo_run r;
    int hard[2] = {0}, last = 0;
    open_small(&c, &r, 64, 0);
    const lw_least_options o = {.depths = true, .memory = 1 << 24};
    ok(lw_least_model_new(r.kb, &o, &r.least));
    ok(lw_ppo_source_sort(r.least, &r.train, &r.shortest));
    ok(lw_least_asker_new(r.least, &asker));
    for (int32_t i = 0; i < r.train.n; i++) {
        int32_t depth;
        ok(lw_least_ask(asker, r.train.atom[i], &depth));
        depth = depth < 0 ? INT32_MAX : depth;
        assert_true(depth >= last);
        last = depth;
    }
    lw_ppo_source *s = &r.rollout.source;
    s->shortest = 3;
    lw_ppo_source_open(s, 0.5, 0, 10);
    assert_int_equal(s->open, 3);
    lw_ppo_source_open(s, 0.5, 4, 10);
    assert_int_equal(s->open, (s->n * 4 + 4) / 5);
    lw_ppo_source_open(s, 0.5, 5, 10);
    assert_int_equal(s->open, s->n);
    lw_ppo_source_open(s, 0.0, 0, 10);
    assert_int_equal(s->open, s->n);
    s->least = r.least;
    for (int k = 0; k < 2; k++) {
        s->hard = k;
        for (uint64_t row = 0; row < 400; row++) {
            bool positive;
            lw_atom a = lw_ppo_source_draw(s, 1, 0, row, 1, &positive);
            hard[k] += !positive && lw_least_model_has(r.least, a);
        }
    }
    print_message("of 400 corruptions %d follow from the rules by chance, %d when asked for\n",
                  hard[0], hard[1]);
    assert_true(hard[0] < 200 && hard[1] > 2 * hard[0] && hard[1] > 200);
    lw_ppo_run_close(&r);
}

/* The gradients of two parts add up to that of the whole. */
static void test_parts(void **state)
{
    (void)state;
    rig g;
    int64_t n;
    rig_open(&g);
    float *grad = lw_store_slab(g.r.store, LW_SLAB_GRAD, &n);
    double *sum = lw_calloc((size_t)n, sizeof *sum), most = 0.0, off = 0.0;
    for (int half = 0; half < 2; half++) {
        rig_fill(&g, half ? 13 : 0, half ? CHOICES : 13);
        rig_loss(&g);
        for (int64_t i = 0; i < n; i++)
            sum[i] += (double)grad[i];
    }
    rig_fill(&g, 0, CHOICES);
    rig_loss(&g);
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(sum[i]));
        off = fmax(off, fabs(sum[i] - (double)grad[i]));
    }
    print_message("largest gradient %g, largest difference %g\n", most, off);
    assert_true(most > 0.01 && off < 1e-5 * most);
    lw_free(&sum);
    rig_close(&g);
}

/* A query's corruptions are drawn apart from the query: it has others each time. */
static void test_corruptions_vary(void **state)
{
    (void)state;
    lw_ppo_config c;
    lw_ppo_run r;
    bool seen[64][64] = {0}, positive;
    int most = 0;
    open_small(&c, &r, 64, 0);
    for (uint64_t row = 0; row < 600; row++) { /* heads: a tail names its query here */
        lw_atom a = lw_ppo_source_draw(&r.rollout.source, 1, 0, row, 1, &positive);
        assert_false(positive);
        seen[a.arg[1]][a.arg[0]] = true;
    }
    for (int t = 0; t < 64; t++) {
        int heads = 0;
        for (int h = 0; h < 64; h++)
            heads += seen[t][h];
        most = LW_MAX(most, heads);
    }
    print_message("up to %d corrupted heads of a query\n", most);
    assert_true(most > 10);
    lw_ppo_run_close(&r);
}

/* Queries take turns: as many corrupted as true ones, heads as tails; none is a known fact. */
static void test_source(void **state)
{
    (void)state;
    lw_ppo_config c;
    lw_ppo_run r;
    open_run(&c, &r);
    const lw_ppo_counts *n = &r.rollout.counts;
    print_message("%lld true, %lld corrupted; proved %lld and %lld\n", (long long)n->episodes[1],
                  (long long)n->episodes[0], (long long)n->proved[1], (long long)n->proved[0]);
    assert_true(n->episodes[0] > 10 && llabs(n->episodes[0] - n->episodes[1]) <= c.n_envs);
    assert_true(n->proved[1] > 0);
    assert_true(r.rollout.n_states < r.rollout.n_moves);
    lw_ppo_run_close(&r);
}

/* Advantages that are no numbers in one part of a minibatch: the gradient of that part is named,
 * though others come behind it. */
static void test_bad_part_is_named(void **state)
{
    (void)state;
    enum { N = 8 * 24 };
    lw_ppo_config c;
    lw_ppo_run r;
    lw_ppo_report report;
    int64_t updates = 0;
    const lw_ppo_rates rates = {.lr = 1e-3, .updates = &updates};
    open_small(&c, &r, N, 32);
    c.n_epochs = 1;
    ok(lw_ppo_update_run(r.update, &r.rollout, 0, &rates, &report));
    assert_true(report.parts > report.updates); /* else nothing is shown here */
    lw_rng_key order = lw_rng_key_of((uint64_t)c.train.seed, lw_hash_name("ppo.order"));
    r.rollout.choice[lw_rng_permute(order, (uint32_t)c.n_epochs, N, 0)].advantage = (float)NAN;
    fails(lw_ppo_update_run(r.update, &r.rollout, 1, &rates, &report), LW_ENUMERIC,
          "step 2: the loss is not finite (first bad gradient: ");
    assert_null(strstr(lw_errmsg(), "gradient: none"));
    lw_ppo_run_close(&r);
}

/* ---- stopped anywhere ------------------------------------------------------------------------ */

static bool stop_soon(void *self)
{
    return --*(int *)self < 0;
}

static int train_some(const char *dir, bool resume, int questions)
{
    lw_ppo_config c;
    lw_train_result out;
    const lw_observer obs = {.self = &questions, .should_stop = stop_soon};
    lw_ppo_defaults(&c);
    c.train.data = "kb";
    c.train.threads = 1;
    c.train.output_dir = dir;
    c.train.steps = 6;
    c.train.batch_size = 64;
    c.train.log_every = c.train.save_every = 1;
    c.train.eval_every = 1;
    c.train.grad_accum_steps = 1;
    c.train.resume = resume;
    c.n_envs = 8;
    c.n_steps = 24;
    c.n_epochs = 2;
    c.env.padding_states = 24;
    c.net.embed = c.net.hidden = 8;
    c.net.blocks = 1;
    c.n_eval_queries = 0;
    c.eval_neg_samples = 5;
    return lw_train_ppo(c, &obs, &out);
}

/* Rows of the logs without what the clock says. */
static json_t *rows_of(const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_free) char *text = NULL;
    json_t *rows = json_array();
    size_t n;
    ok(lw_file_read(lw_path_join(&path, run, "metrics.jsonl"), 0, &text, &n));
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        json_t *row = json_loads(line, 0, NULL);
        json_object_del(row, "time_s");
        assert_int_equal(json_object_del(row, "choices_per_sec"), 0);
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Within roll-outs, minibatches and validations; what goes on has the bits of one run, in weights,
 * moments, logs and the best weights. */
static void test_stopped_anywhere(void **state)
{
    (void)state;
    int stops = 0, k = 20, validations = 0;
    ok(train_some("whole", false, 1 << 30));
    while (train_some("parts", stops > 0, k) == LW_ESTOPPED) {
        LW_CLEANUP(lw_json_drop) json_t *j = NULL;
        const char *const kept = "parts/checkpoints/last/state.json";
        if (lw_path_exists(kept)) {
            ok(lw_json_load(kept, &j));
            validations += json_object_get(json_object_get(j, "extra"), "pending_row") != NULL;
        }
        stops++;
        k = 30 + stops * 5 % 21;
        assert_in_range(stops, 1, 200);
    }
    print_message("stopped %d times, %d of them within a validation\n", stops, validations);
    assert_true(stops > 5 && validations > 0);
    same_file("whole/best/model.safetensors", "parts/best/model.safetensors");
    same_file("whole/checkpoints/last/model.safetensors",
              "parts/checkpoints/last/model.safetensors");
    same_file("whole/checkpoints/last/optimizer.safetensors",
              "parts/checkpoints/last/optimizer.safetensors");
    LW_CLEANUP(lw_json_drop) json_t *a = rows_of("whole");
    LW_CLEANUP(lw_json_drop) json_t *b = rows_of("parts");
    assert_int_equal(json_array_size(a), 6);
    assert_true(json_equal(a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewards),
        cmocka_unit_test(test_advantages),
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_corruptions_vary),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_rows_of_constants),
        cmocka_unit_test(test_what_is_seen_of_constants),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_curriculum_and_hard_negatives),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bad_part_is_named),
        cmocka_unit_test(test_stopped_anywhere),
    };
    return cmocka_run_group_tests_name("ppo", tests, enter, leave);
}
