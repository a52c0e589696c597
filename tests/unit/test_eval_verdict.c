/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of several networks, from made-up distances: one number, who disagrees, who cheats. */
#include "test_eval_util.h"

enum { K = 5, DAMAGED = 20, WHOLE = 8, R = 30 };

/* A cell whose level is `level` in both measures. */
static lw_verdict_cell cell(double level)
{
    return (lw_verdict_cell){.frechet = 3 * exp(2 * level),
                             .sliced = 0.5 * exp(level),
                             .frechet_real = 3,
                             .sliced_real = 0.5};
}

static void levels(void **state)
{
    (void)state;
    double l;
    ok(lw_verdict_level(4, 2, 1, 1, &l)); /* twice as far in both, as distances */
    near(l, log(2), 1e-12);
    ok(lw_verdict_level(1, 1, 1, 1, &l));
    near(l, 0, 0);
    ok(lw_verdict_level(0, 1, 1, 1, &l)); /* not minus infinity */
    near(l, 0.25 * log(1e-6), 1e-12);
    fails(lw_verdict_level((double)NAN, 1, 1, 1, &l), LW_ENUMERIC, "nan");
    fails(lw_verdict_level(1, (double)INFINITY, 1, 1, &l), LW_ENUMERIC, "inf");
    fails(lw_verdict_level(-1, 1, 1, 1, &l), LW_ENUMERIC, "from 0 on");
    fails(lw_verdict_level(1, 1, 1, 0, &l), LW_ENUMERIC, "tells nothing apart");
}

/* Honest sets: networks answer with scales of their own, and differ by some per cent. */
static void honest(double *damaged, double *whole)
{
    static const double scale[K] = {1, 0.6, 1.4, 0.9, 1.1};
    for (int i = 0; i < DAMAGED; i++)
        for (int k = 0; k < K; k++)
            damaged[i * K + k] = scale[k] * (0.2 + 0.1 * i) *
                                 (1 + 0.15 * (double)gauss(5, i * K + k));
    for (int i = 0; i < WHOLE; i++)
        for (int k = 0; k < K; k++)
            whole[i * K + k] = 0.02 * (double)gauss(6, i * K + k);
}

static lw_verdict_rule learnt(void)
{
    double damaged[DAMAGED * K], whole[WHOLE * K];
    lw_verdict_rule r;
    honest(damaged, whole);
    ok(lw_verdict_learn(K, damaged, DAMAGED, whole, WHOLE, &r));
    return r;
}

static void rule_of_honest_sets(void **state)
{
    (void)state;
    double damaged[DAMAGED * K], whole[WHOLE * K];
    lw_verdict_rule r = learnt(), none;
    assert_false(r.blind);
    assert_true(r.limit >= r.worst && r.limit >= r.mean + 3.09 * r.sd - 1e-12);
    assert_true(r.limit > 0.1 && r.limit < 0.8);
    near(r.scale[2] / r.scale[1], 1.4 / 0.6, 0.3);
    honest(damaged, whole);
    fails(lw_verdict_learn(2, damaged, DAMAGED, whole, WHOLE, &none), LW_EUSAGE, "2 networks");
    fails(lw_verdict_learn(K, damaged, 9, whole, WHOLE, &none), LW_EUSAGE, "too few for a rule");
    /* networks that have nothing in common: nobody could be exposed, which is said */
    for (int i = 0; i < DAMAGED * K; i++)
        damaged[i] = i % (K + 1) == 0 ? 0.01 : 1.5;
    ok(lw_verdict_learn(K, damaged, DAMAGED, whole, WHOLE, &none));
    assert_true(none.blind);
}

/* Wins one network, and loses the verdict. */
static void a_cheater(void **state)
{
    (void)state;
    const lw_verdict_rule rule = learnt();
    static const double level[3][K] = {{1.0, 0.6, 1.4, 0.9, 1.1},   /* honest */
                                       {1.6, 0.9, 2.1, 1.4, 1.8},   /* honest, worse */
                                       {1.9, 1.2, -0.1, 1.8, 2.2}}; /* made for network 2 */
    lw_verdict_cell cells[3 * K];
    lw_verdict_row row[3];
    const bool counted[3] = {true, true, false};
    for (int i = 0; i < 3 * K; i++)
        cells[i] = cell(level[i / K][i % K]);
    ok(lw_verdict_rows(K, 3, cells, counted, 0, 0.95, &rule, row));
    assert_true(row[2].level[2] < row[0].level[2]);
    assert_true(row[2].number.value > row[0].number.value);
    assert_true(row[2].suspect);
    assert_int_equal(row[2].lowest, 2);
    assert_int_equal(row[2].apart, 2);
    near(row[2].rank, 1, 0);
    near(row[2].rank_rest, 3, 0);
    assert_false(row[0].suspect || row[1].suspect);
    assert_int_equal(row[0].apart, -1); /* what is not counted moves nobody */
    near(row[0].number.value, 1.0, 1e-12);
    near(row[0].number.low, row[0].number.value, 0);

    /* without a rule nobody is judged */
    ok(lw_verdict_rows(2, 1, cells, NULL, 0, 0.95, NULL, row));
    assert_false(row[0].judged || row[0].suspect);
    assert_int_equal(row[0].apart, -1);
}

/* Real pictures, and rows as good as they, are never below the others by much. */
static void near_real(void **state)
{
    (void)state;
    const lw_verdict_rule rule = learnt();
    int suspects = 0;
    for (int t = 0; t < 200; t++) {
        lw_verdict_cell cells[K];
        lw_verdict_row row;
        for (int k = 0; k < K; k++)
            cells[k] = cell(0.02 * (double)gauss(7, t * K + k));
        ok(lw_verdict_rows(K, 1, cells, NULL, 0, 0.95, &rule, &row));
        suspects += row.suspect;
    }
    assert_true(suspects <= 10);
}

static void ties_and_ranks(void **state)
{
    (void)state;
    static const double level[4][3] = {{1, 1, 1}, {1, 1, 1}, {2, 2, 0.5}, {3, 3, 3}};
    lw_verdict_cell cells[12];
    lw_verdict_row row[4];
    for (int i = 0; i < 12; i++)
        cells[i] = cell(level[i / 3][i % 3]);
    ok(lw_verdict_rows(3, 4, cells, NULL, 0, 0.95, NULL, row));
    assert_int_equal(row[0].apart, 2); /* 1.5 under the first two, 2.5 there */
    near(row[0].rank, 2.5, 0);
    near(row[0].rank_rest, 1.5, 0);
    near(row[1].rank, 2.5, 0);
    assert_int_equal(row[2].apart, 2);
    near(row[2].rank, 1, 0);
    near(row[2].rank_rest, 3, 0);
    assert_int_equal(row[3].apart, -1);
}

static void intervals(void **state)
{
    (void)state;
    double f[2][R], s[2][R];
    lw_verdict_cell cells[2];
    lw_verdict_row row;
    for (int k = 0; k < 2; k++) {
        cells[k] = cell(0);
        for (int r = 0; r < R; r++) { /* the same draws in both networks */
            double off = 0.1 * ((double)r / (R - 1) - 0.5) + 0.05;
            f[k][r] = 3 * exp(2 * off);
            s[k][r] = 0.5 * exp(off);
        }
        cells[k].frechet_draws = f[k];
        cells[k].sliced_draws = s[k];
    }
    ok(lw_verdict_rows(2, 1, cells, NULL, R, 0.95, NULL, &row));
    near(row.number.value, 0, 1e-12);
    near(row.number.low, -0.0475, 1e-9); /* moved so that the middle is the value */
    near(row.number.high, 0.0475, 1e-9);
    s[1][3] = (double)NAN;
    fails(lw_verdict_rows(2, 1, cells, NULL, R, 0.95, NULL, &row), LW_ENUMERIC, "nan");
    fails(lw_verdict_rows(0, 1, cells, NULL, R, 0.95, NULL, &row), LW_EUSAGE, "0 networks");
}

/* ---- copies ---------------------------------------------------------------------------------- */

enum { SEEN = 200 };

/* New pictures: about as far from what was learnt as from what was not. */
static void make_fresh(uint32_t seed, lw_nearness *out)
{
    for (int i = 0; i < SEEN; i++) {
        double d = 1 + 0.1 * (double)gauss(seed, i);
        out[i] = (lw_nearness){d * (1 - 0.1 * fabs((double)gauss(seed + 1, i))), d, i};
    }
}

static void copies(void **state)
{
    (void)state;
    lw_nearness fresh[SEEN], other[SEEN], made[SEEN];
    lw_copying c;
    make_fresh(1, fresh);
    make_fresh(5, other);
    ok(lw_copying_of(other, SEEN, fresh, SEEN, &c));
    assert_false(c.suspect);
    for (int i = 0; i < SEEN; i++) /* blurred: nearer to all alike */
        made[i] = (lw_nearness){0.5 * fresh[i].training, 0.5 * fresh[i].reference, i};
    ok(lw_copying_of(made, SEEN, fresh, SEEN, &c));
    assert_false(c.suspect);
    assert_int_equal(c.near, SEEN / 10);
    for (int i = 0; i < SEEN; i += 2) { /* every second one copied, with noise on it */
        made[i].training = 0.3;
        made[i].reference = sqrt(0.09 + fresh[i].reference * fresh[i].reference);
    }
    ok(lw_copying_of(made, SEEN, fresh, SEEN, &c));
    assert_true(c.suspect && c.near >= SEEN / 2 && c.ayes == c.near);
    fails(lw_copying_of(made, SEEN, fresh, 19, &c), LW_EUSAGE, "too few");
}

/* What looks like copying and is none. */
static void copies_that_are_none(void **state)
{
    (void)state;
    lw_nearness fresh[SEEN], made[SEEN];
    lw_copying c;
    make_fresh(1, fresh);
    for (int i = 0; i < SEEN; i++) /* learnt and held out: nobody can tell */
        made[i] = (lw_nearness){0, 0, i};
    ok(lw_copying_of(made, SEEN, fresh, SEEN, &c));
    assert_int_equal(c.near, 0);
    for (int i = 0; i < SEEN; i++) /* grey, nearly equal: all lie nearest to one grey picture */
        made[i] = (lw_nearness){0.1 + 1e-3 * (double)gauss(9, i), 0.2, i % 2};
    ok(lw_copying_of(made, SEEN, fresh, SEEN, &c));
    assert_true(c.near == SEEN && c.voters == 2 && c.ayes == 2 && !c.suspect);
    for (int i = 0; i < SEEN; i++) /* ten pictures by heart are ten coincidences */
        made[i].which = i % 10;
    ok(lw_copying_of(made, SEEN, fresh, SEEN, &c));
    assert_true(c.voters == 10 && c.suspect);
    for (int i = 0; i < SEEN; i++) /* noise: far from everything */
        made[i] = (lw_nearness){4, 5, i};
    ok(lw_copying_of(made, SEEN, fresh, SEEN, &c));
    assert_int_equal(c.near, 0);
}

/* ---- replicates to first order ---------------------------------------------------------------- */

static void linear_replicates(void **state)
{
    (void)state;
    enum { N = 600, M = 900, D = 12, REPLICATES = 60 };
    float *a = gauss_rows(1, N, D), *b = gauss_rows(2, M, D);
    double exact[REPLICATES], linear[REPLICATES], value[2], sd[2] = {0}, mean[2] = {0};
    const lw_resampling how = {.replicates = REPLICATES, .seed = 3};
    LW_CLEANUP(lw_stats_free) lw_stats *reference = NULL;
    LW_CLEANUP(lw_frechet_loss_free) lw_frechet_loss *loss = NULL;
    for (int i = 0; i < N * D; i++)
        a[i] = 1.3f * a[i] + 0.4f;
    ok(lw_stats_new(D, &reference));
    ok(lw_stats_add(NULL, reference, b, M));
    ok(lw_frechet_loss_new(reference, &loss));
    ok(lw_frechet_replicates(NULL, a, N, reference, &how, &value[0], exact));
    ok(lw_frechet_linear(a, N, reference, loss, &how, &value[1], linear));
    near(value[1], value[0], 1e-9 * value[0]);
    for (int r = 0; r < REPLICATES; r++) {
        mean[0] += exact[r] / REPLICATES;
        mean[1] += linear[r] / REPLICATES;
    }
    for (int r = 0; r < REPLICATES; r++) {
        near(linear[r] - mean[1], exact[r] - mean[0], 0.02 * value[0]);
        sd[0] += (exact[r] - mean[0]) * (exact[r] - mean[0]);
        sd[1] += (linear[r] - mean[1]) * (linear[r] - mean[1]);
    }
    near(sqrt(sd[1] / sd[0]), 1, 0.1);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(rule_of_honest_sets),
        cmocka_unit_test(a_cheater),
        cmocka_unit_test(near_real),
        cmocka_unit_test(ties_and_ranks),
        cmocka_unit_test(intervals),
        cmocka_unit_test(copies),
        cmocka_unit_test(copies_that_are_none),
        cmocka_unit_test(linear_replicates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
