/* SPDX-License-Identifier: Apache-2.0 */
/* The finishing phase's gradient against differences of its loss: two keys that count and one that does not, groups of
 * two classes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/drift/drift_run.h"

enum { GROUPS = 3, N = 7, CLASSES = 2, KEYS = 3, REAL = 20, MOST = 5 * 4 };

static const int32_t width[KEYS] = {3, 5, 5}, slots[KEYS] = {1, 1, 4};

static float draw(uint32_t stream, int64_t i)
{
    const lw_rng_key key = lw_rng_key_of(7, lw_hash_name("test.finish"));
    return (float)lw_rng_uniform(key, stream, (uint64_t)i, 0);
}

static void set_up(drift_run *r, int32_t *classes, float x[KEYS][GROUPS * N * MOST])
{
    r->n = N;
    r->keys.n = KEYS;
    r->draws.groups = GROUPS;
    r->draws.group_class = classes;
    r->g.network.classes = CLASSES;
    r->g.p.leaves.size = GROUPS * N;
    r->g.p.leaves.n = 1;
    r->c.loss.term_reduction = LW_TERMS_MEAN;
    for (int k = 0; k < KEYS; k++) {
        r->keys.key[k].slots = slots[k];
        r->keys.key[k].c = width[k];
        r->kept.gen[k] = x[k];
    }
    assert_int_equal(lw_drift_finish_new(r), 0);
    for (int32_t c = 0; c < CLASSES; c++) {
        lw_stats *stats[LW_MAX_FEATURE_KEYS] = {NULL};
        float rows[REAL * MOST];
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < REAL * width[k]; i++)
                rows[i] = draw((uint32_t)(10 + c * KEYS + k), i) * (float)(1 + c);
            assert_int_equal(lw_stats_new(width[k], &stats[k]), 0);
            assert_int_equal(lw_stats_add(NULL, stats[k], rows, REAL), 0);
        }
        assert_int_equal(lw_drift_finish_class(r, c, stats), 0);
        for (int k = 0; k < 2; k++)
            lw_stats_free(&stats[k]);
    }
}

/* Features anew, one of them moved; the loss, and in x its gradient. */
static double loss_at(drift_run *r, int key, int number, float by)
{
    for (int k = 0; k < KEYS; k++)
        for (int i = 0; i < GROUPS * N * slots[k] * width[k]; i++)
            r->kept.gen[k][i] = draw((uint32_t)k, i) * 1.5f;
    r->kept.gen[key][number] += by;
    assert_int_equal(lw_drift_finish_take(r), 0);
    return (double)r->loss;
}

static void test_gradient(void **state)
{
    static drift_run r;
    static float x[KEYS][GROUPS * N * MOST], slope[KEYS][GROUPS * N * MOST];
    int32_t classes[GROUPS] = {1, 0, 1};
    const float h = 1e-2f;
    (void)state;
    set_up(&r, classes, x);
    loss_at(&r, 0, 0, 0.0f);
    memcpy(slope, x, sizeof x);
    for (int i = 0; i < GROUPS * N * 4 * 5; i++)
        assert_true(slope[2][i] == 0.0f);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < GROUPS * N * width[k]; i++) {
            const double up = loss_at(&r, k, i, h), down = loss_at(&r, k, i, -h),
                         want = (up - down) / (2.0 * (double)h);
            if (!(fabs(want - (double)slope[k][i]) < 2e-4 + 1e-2 * fabs(want)))
                fail_msg("key %d, number %d: %g, by differences %g", k, i, (double)slope[k][i],
                         want);
        }
    lw_drift_finish_close(&r);
    assert_null(r.finish);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
