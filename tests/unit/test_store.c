/* SPDX-License-Identifier: Apache-2.0 */
/* The table, slabs, initial values, versions; the optimiser step over the slabs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "store/store.h"

#include "unit/test_store_util.h"

/* ---- declaring ------------------------------------------------------------------------------- */

static void test_table(void **state)
{
    lw_store *s = small_store(false);
    (void)state;
    assert_int_equal(lw_store_count(s), 5);
    assert_int_equal(lw_store_param_count(s), 5 * 3 * 3 * 3 + 5 + 6 * 2 + 6 + 7);
    int64_t floats = 0, end = 0;
    float *p = lw_store_slab(s, LW_SLAB_PARAM, &floats);
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        assert_int_equal(e->offset % 16, 0);
        assert_true(e->offset >= end);
        end = e->offset + e->count;
        assert_int_equal(lw_store_find(s, e->name), i);
        assert_ptr_equal(lw_store_data(s, i, LW_SLAB_PARAM), p + e->offset);
        assert_int_equal((uintptr_t)lw_store_data(s, i, LW_SLAB_V) % 64, 0);
    }
    assert_true(end <= floats);
    assert_int_equal(lw_store_find(s, "conv.weigh"), -1);
    assert_true(lw_store_bytes(s) >= (size_t)floats * 4 * LW_SLABS);
    lw_store_free(&s);
}

static void test_declare_errors(void **state)
{
    lw_store *s = small_store(false);
    const lw_params *p = lw_store_params(s);
    int32_t at = -1;
    (void)state;
    assert_ok(p->declare(p->self, "norm.weight", lw_type_of(LW_F32, 1, 7), (lw_init){0}, &at));
    assert_int_equal(at, lw_store_find(s, "norm.weight"));
    assert_fails(LW_ESHAPE, "'norm.weight' is f32[7] in the store, the network wants f32[8]",
                 p->declare(p->self, "norm.weight", lw_type_of(LW_F32, 1, 8), (lw_init){0}, &at));
    assert_fails(LW_EFORMAT, "'new' that the store does not have",
                 p->declare(p->self, "new", lw_type_of(LW_F32, 1, 8), (lw_init){0}, &at));
    lw_store_free(&s);
    lw_store *t = NULL;
    assert_ok(lw_store_new(false, &t));
    p = lw_store_params(t);
    assert_fails(LW_EUNSUPPORTED, "only non-empty f32",
                 p->declare(p->self, "x", lw_type_of(LW_I32, 1, 8), (lw_init){0}, &at));
    assert_fails(LW_EUNSUPPORTED, "only non-empty f32",
                 p->declare(p->self, "x", lw_type_of(LW_F32, 1, 0), (lw_init){0}, &at));
    assert_int_equal(lw_store_count(t), 0);
    lw_store_free(&t);
    lw_store_free(&t);
}

static void test_frozen(void **state)
{
    lw_store *s = small_store(true);
    (void)state;
    assert_true(lw_store_params(s)->frozen);
    assert_non_null(lw_store_slab(s, LW_SLAB_PARAM, NULL));
    for (int i = LW_SLAB_GRAD; i < LW_SLABS; i++) {
        assert_null(lw_store_slab(s, (lw_slab)i, NULL));
        assert_null(lw_store_data(s, 0, (lw_slab)i));
    }
    assert_null(lw_store_params(s)->address(lw_store_params(s)->self, 0, LW_SLAB_GRAD));
    lw_store_init(s, 3);
    lw_store_free(&s);
}

static void test_version(void **state)
{
    lw_store *s = small_store(false);
    const lw_params *p = lw_store_params(s);
    (void)state;
    uint64_t v = p->version(p->self, LW_SLAB_PARAM), e = p->version(p->self, LW_SLAB_EMA);
    lw_store_touch(s, LW_SLAB_PARAM);
    assert_true(p->version(p->self, LW_SLAB_PARAM) > v);
    assert_true(p->version(p->self, LW_SLAB_EMA) == e);
    lw_store_start_ema(s);
    assert_true(p->version(p->self, LW_SLAB_EMA) > e);
    lw_store_free(&s);
}

/* ---- initial values -------------------------------------------------------------------------- */

static void test_init_is_keyed_by_name(void **state)
{
    lw_store *a = small_store(false), *b = NULL;
    const lw_init normal = {LW_INIT_NORMAL, 0.5f}, uniform = {LW_INIT_UNIFORM, 0.25f};
    (void)state;
    assert_ok(lw_store_new(false, &b));
    declare(b, "other", lw_type_of(LW_F32, 1, 1000), normal); /* another order, another neighbour */
    declare(b, "attn.to_qkv.weight", lw_type_of(LW_F32, 2, 6, 2), uniform);
    declare(b, "conv.weight", lw_type_of(LW_F32, 4, 5, 3, 3, 3), normal);
    assert_ok(lw_store_fix(b));
    lw_store_init(a, 7);
    lw_store_init(b, 7);
    static const char *const names[] = {"conv.weight", "attn.to_qkv.weight"};
    for (size_t i = 0; i < 2; i++) {
        int32_t ia = lw_store_find(a, names[i]), ib = lw_store_find(b, names[i]);
        assert_memory_equal(lw_store_data(a, ia, LW_SLAB_PARAM),
                            lw_store_data(b, ib, LW_SLAB_PARAM),
                            sizeof(float) * (size_t)lw_store_at(a, ia)->count);
        assert_memory_equal(lw_store_data(a, ia, LW_SLAB_EMA), lw_store_data(b, ib, LW_SLAB_PARAM),
                            sizeof(float) * (size_t)lw_store_at(a, ia)->count);
    }
    uint64_t seven = lw_store_hash(a, LW_SLAB_PARAM);
    lw_store_init(a, 8);
    assert_true(lw_store_hash(a, LW_SLAB_PARAM) != seven);
    lw_store_init(a, 7);
    assert_true(lw_store_hash(a, LW_SLAB_PARAM) == seven);
    lw_store_free(&a);
    lw_store_free(&b);
}

static void moments(const float *x, int64_t n, double *mean, double *sd, double *kurtosis)
{
    double m = 0, v = 0, q = 0;
    for (int64_t i = 0; i < n; i++)
        m += (double)x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - m;
        v += d * d / (double)n;
        q += d * d * d * d / (double)n;
    }
    *mean = m;
    *sd = sqrt(v);
    *kurtosis = q / (v * v);
}

static void test_init_distributions(void **state)
{
    enum { N = 200001 };
    lw_store *s = NULL;
    double mean, sd, kurtosis;
    float lo = 1, hi = -1;
    (void)state;
    assert_ok(lw_store_new(true, &s));
    declare(s, "n", lw_type_of(LW_F32, 1, N), (lw_init){LW_INIT_NORMAL, 2.0f});
    declare(s, "u", lw_type_of(LW_F32, 1, N), (lw_init){LW_INIT_UNIFORM, 0.5f});
    declare(s, "one", lw_type_of(LW_F32, 1, 3), (lw_init){LW_INIT_ONES, 0});
    declare(s, "zero", lw_type_of(LW_F32, 1, 3), (lw_init){LW_INIT_ZEROS, 0});
    assert_ok(lw_store_fix(s));
    lw_store_init(s, 1);
    moments(lw_store_data(s, 0, LW_SLAB_PARAM), N, &mean, &sd, &kurtosis);
    assert_true(fabs(mean) < 0.02 && fabs(sd - 2) < 0.02 && fabs(kurtosis - 3) < 0.06);
    const float *u = lw_store_data(s, 1, LW_SLAB_PARAM);
    moments(u, N, &mean, &sd, &kurtosis);
    assert_true(fabs(mean) < 0.004 && fabs(sd - 0.5 / sqrt(3)) < 0.002 &&
                fabs(kurtosis - 1.8) < 0.03);
    for (int i = 0; i < N; i++) {
        lo = LW_MIN(lo, u[i]);
        hi = LW_MAX(hi, u[i]);
    }
    assert_true(lo >= -0.5f && lo < -0.499f && hi <= 0.5f && hi > 0.499f);
    for (int i = 0; i < 3; i++) {
        assert_true(lw_store_data(s, 2, LW_SLAB_PARAM)[i] == 1.0f);
        assert_true(lw_store_data(s, 3, LW_SLAB_PARAM)[i] == 0.0f);
    }
    lw_store_free(&s);
}

static void test_first_bad(void **state)
{
    lw_store *s = small_store(false);
    (void)state;
    lw_store_init(s, 1);
    assert_null(lw_store_first_bad(s, LW_SLAB_PARAM));
    lw_store_edit(s, 3, LW_SLAB_PARAM)[5] = NAN;
    assert_string_equal(lw_store_first_bad(s, LW_SLAB_PARAM), lw_store_at(s, 3)->name);
    assert_null(lw_store_first_bad(s, LW_SLAB_GRAD));
    lw_store_free(&s);
}

/* ---- the optimiser --------------------------------------------------------------------------- */

/* Fills parameters and gradients of every entry (not the gaps) with numbers of order one. */
static void fill(lw_store *s, uint64_t seed)
{
    lw_store_init(s, seed);
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        lw_store_entry e = *lw_store_at(s, i);
        e.init = (lw_init){LW_INIT_NORMAL, 1.0f};
        e.hash ^= 99;
        lw_store_init_entry(&e, seed, lw_store_edit(s, i, LW_SLAB_GRAD));
    }
}

static lw_update args_of(lw_store *s)
{
    lw_update a = {.lr = 1e-2,
                   .beta1 = 0.9,
                   .beta2 = 0.99,
                   .eps = 1e-8,
                   .weight_decay = 0.1,
                   .t = 1,
                   .grad_scale = 0.5,
                   .max_norm = 2.0,
                   .ema_decay = 0.9};
    a.n = lw_store_slabs(s, a.slab);
    return a;
}

static lw_store *wide_store(void)
{
    lw_store *s = NULL;
    assert_ok(lw_store_new(false, &s));
    declare(s, "a", lw_type_of(LW_F32, 1, 70001), (lw_init){LW_INIT_NORMAL, 1.0f});
    declare(s, "b", lw_type_of(LW_F32, 2, 33, 1001), (lw_init){LW_INIT_NORMAL, 1.0f});
    assert_ok(lw_store_fix(s));
    return s;
}

/* Three updates; what every slab holds afterwards, hashed. */
static uint64_t run_updates(int threads, lw_optimizer optimizer, double *norm)
{
    lw_store *s = wide_store();
    lw_device *dev = NULL;
    uint64_t h = 0;
    assert_ok(cpu_device(threads, lw_isa_best(), &dev));
    fill(s, 4);
    for (int t = 1; t <= 3; t++) {
        lw_update a = args_of(s);
        a.t = t;
        a.optimizer = optimizer;
        a.momentum = 0.9;
        assert_ok(dev->update(dev->self, &a, norm));
    }
    for (int i = 0; i < LW_SLABS; i++)
        h = h * 31 + lw_store_hash(s, (lw_slab)i);
    lw_backend_close(&dev);
    lw_store_free(&s);
    return h;
}

static void test_update_threads(void **state)
{
    static const int threads[] = {1, 2, 3, 5};
    (void)state;
    for (int o = LW_OPTIMIZER_ADAMW; o <= LW_OPTIMIZER_SGD; o++) {
        double first = 0, norm = 0;
        uint64_t h = run_updates(1, (lw_optimizer)o, &first);
        for (size_t i = 0; i < LW_COUNT(threads); i++) {
            assert_true(run_updates(threads[i], (lw_optimizer)o, &norm) == h);
            assert_true(norm == first);
        }
    }
}

/* Without an average EMA is PARAM, to the bit. */
static void test_no_average(void **state)
{
    lw_store *s = wide_store();
    lw_device *dev = NULL;
    double norm;
    (void)state;
    assert_ok(cpu_device(2, lw_isa_best(), &dev));
    fill(s, 4);
    lw_update a = args_of(s);
    a.ema_decay = 0.0;
    a.t = 1;
    for (int updates = 0; updates < 2; updates++) {
        assert_ok(dev->update(dev->self, &a, &norm));
        lw_store_touch(s, LW_SLAB_PARAM);
        lw_store_touch(s, LW_SLAB_EMA);
        assert_true(lw_store_hash(s, LW_SLAB_EMA) == lw_store_hash(s, LW_SLAB_PARAM));
    }
    lw_backend_close(&dev);
    lw_store_free(&s);
}

static void test_adamw_values(void **state)
{
    lw_store *s = wide_store();
    lw_device *dev = NULL;
    double norm, sum = 0;
    (void)state;
    assert_ok(cpu_device(2, lw_isa_best(), &dev));
    fill(s, 4);
    lw_update a = args_of(s);
    float *before = malloc(sizeof *before * (size_t)a.n);
    memcpy(before, a.slab[LW_SLAB_PARAM], sizeof *before * (size_t)a.n);
    for (int64_t i = 0; i < a.n; i++)
        sum += (double)a.slab[LW_SLAB_GRAD][i] * (double)a.slab[LW_SLAB_GRAD][i];
    assert_ok(dev->update(dev->self, &a, &norm));
    assert_true(fabs(norm / (0.5 * sqrt(sum)) - 1) < 1e-6);
    double clip = 0.5 * 2.0 / (norm + 1e-6);
    for (int64_t i = 0; i < a.n; i++) {
        double g = clip * (double)a.slab[LW_SLAB_GRAD][i], p = (double)before[i] * (1 - 1e-3);
        p -= 1e-2 * g / (fabs(g) + 1e-8); /* the first update: m / bias1 = g, v / bias2 = g^2 */
        assert_true(fabs((double)a.slab[LW_SLAB_PARAM][i] - p) < 2e-6);
        double ema = 0.9 * (double)before[i] + 0.1 * p;
        assert_true(fabs((double)a.slab[LW_SLAB_EMA][i] - ema) < 2e-6);
    }
    /* Gaps between the entries stay zero. */
    int64_t end = lw_store_at(s, 0)->offset + lw_store_at(s, 0)->count;
    assert_true(end < lw_store_at(s, 1)->offset);
    for (int64_t i = end; i < lw_store_at(s, 1)->offset; i++)
        assert_true(a.slab[LW_SLAB_PARAM][i] == 0 && a.slab[LW_SLAB_M][i] == 0 &&
                    a.slab[LW_SLAB_V][i] == 0 && a.slab[LW_SLAB_EMA][i] == 0);
    free(before);
    lw_backend_close(&dev);
    lw_store_free(&s);
}

/* Two updates from M = 0 under a clipped gradient; V is not touched. */
static void test_sgd_values(void **state)
{
    lw_store *s = wide_store();
    lw_device *dev = NULL;
    double norm;
    (void)state;
    assert_ok(cpu_device(2, lw_isa_best(), &dev));
    fill(s, 4);
    const uint64_t v = lw_store_hash(s, LW_SLAB_V);
    lw_update a = args_of(s);
    a.optimizer = LW_OPTIMIZER_SGD;
    a.momentum = 0.8;
    double *p = malloc(sizeof *p * (size_t)a.n), *m = calloc((size_t)a.n, sizeof *m);
    for (int64_t i = 0; i < a.n; i++) {
        p[i] = (double)a.slab[LW_SLAB_PARAM][i];
        assert_true(a.slab[LW_SLAB_M][i] == 0);
    }
    for (a.t = 1; a.t <= 2; a.t++) {
        assert_ok(dev->update(dev->self, &a, &norm));
        double clip = 0.5 * 2.0 / (norm + 1e-6);
        for (int64_t i = 0; i < a.n; i++) {
            double g = clip * (double)a.slab[LW_SLAB_GRAD][i] + 0.1 * p[i];
            m[i] = 0.8 * m[i] + g;
            p[i] -= 1e-2 * (g + 0.8 * m[i]);
            assert_true(fabs((double)a.slab[LW_SLAB_PARAM][i] - p[i]) < 2e-6);
            assert_true(fabs((double)a.slab[LW_SLAB_M][i] - m[i]) < 2e-6);
        }
    }
    assert_true(lw_store_hash(s, LW_SLAB_V) == v);
    free(p);
    free(m);
    lw_backend_close(&dev);
    lw_store_free(&s);
}

static void test_adamw_refuses_nan(void **state)
{
    lw_store *s = wide_store();
    lw_device *dev = NULL;
    double norm = -1;
    (void)state;
    assert_ok(cpu_device(2, lw_isa_best(), &dev));
    fill(s, 4);
    uint64_t h = lw_store_hash(s, LW_SLAB_PARAM);
    lw_store_edit(s, 1, LW_SLAB_GRAD)[17] = NAN;
    lw_update a = args_of(s);
    assert_fails(LW_ENUMERIC, "not finite", dev->update(dev->self, &a, &norm));
    assert_true(norm == -1 && lw_store_hash(s, LW_SLAB_PARAM) == h);
    assert_string_equal(lw_store_first_bad(s, LW_SLAB_GRAD), "b");
    lw_backend_close(&dev);
    lw_store_free(&s);
}

static void test_sum_and_copy(void **state)
{
    lw_store *s = wide_store();
    lw_device *dev = NULL;
    (void)state;
    assert_ok(cpu_device(2, lw_isa_best(), &dev));
    fill(s, 4);
    lw_update a = args_of(s);
    float *sum = calloc((size_t)a.n, sizeof *sum);
    dev->copy(dev->self, sum, a.slab[LW_SLAB_GRAD], a.n);
    assert_memory_equal(sum, a.slab[LW_SLAB_GRAD], sizeof *sum * (size_t)a.n);
    dev->add(dev->self, sum, a.slab[LW_SLAB_GRAD], a.n);
    for (int64_t i = 0; i < a.n; i++)
        assert_true(sum[i] == 2.0f * a.slab[LW_SLAB_GRAD][i]);
    free(sum);
    lw_backend_close(&dev);
    lw_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_declare_errors),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_init_is_keyed_by_name),
        cmocka_unit_test(test_init_distributions),
        cmocka_unit_test(test_first_bad),
        cmocka_unit_test(test_no_average),
        cmocka_unit_test(test_adamw_values),
        cmocka_unit_test(test_sgd_values),
        cmocka_unit_test(test_update_threads),
        cmocka_unit_test(test_adamw_refuses_nan),
        cmocka_unit_test(test_sum_and_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
