/* SPDX-License-Identifier: Apache-2.0 */
/* The field of the plane against loops in double and against the drift op; points against their definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "cpu_device.h"
#include "jobs/toy/toy_parts.h"
#include "results.h"

enum { N = 37 };
#define TAU 0.3

typedef struct fields {
    lw_device *dev;
    lw_plan *plan;
    lw_exec *exec;
} fields;

static void fields_open(fields *f, const lw_toy_balance *balance)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const lw_attr_drift drift = {.groups = 1,
                                 .n = N,
                                 .np = N,
                                 .slots = 1,
                                 .c = 2,
                                 .n_tau = 1,
                                 .tau = {TAU},
                                 .normalize_over_x = 1,
                                 .variant = LW_DRIFT_PLAIN};
    *f = (fields){0};
    ok(cpu_device(2, lw_isa_best(), &f->dev));
    ok(lw_graph_new(&g));
    lw_type points = lw_type_of(LW_F32, 2, N, 2), slots = lw_type_of(LW_F32, 3, N, 1, 2);
    lw_val x = lw_input(g, "x", points), y = lw_input(g, "y", points);
    lw_graph_output_add(g, "v", lw_toy_field(g, x, y, (float)TAU, balance), LW_NOVAL);
    lw_drift_out d = lw_drift_field(g, lw_reshape(g, x, slots), lw_reshape(g, y, slots), LW_NOVAL,
                                    LW_NOVAL, &drift);
    lw_graph_output_add(g, "dx", d.dx, LW_NOVAL);
    ok(lw_compile(g, f->dev, NULL, &f->plan));
    ok(lw_exec_new(f->plan, LW_SLAB_PARAM, &f->exec));
    float *px = lw_exec_write(f->exec, "x"), *py = lw_exec_write(f->exec, "y");
    for (int i = 0; i < 2 * N; i++) {
        px[i] = sinf(1.7f * (float)i);
        py[i] = 1.5f * cosf(2.3f * (float)i) + 0.4f;
    }
    ok(lw_exec_run(f->exec, NULL));
}

static void fields_close(fields *f)
{
    lw_exec_free(&f->exec);
    lw_plan_free(&f->plan);
    lw_backend_close(&f->dev);
}

static double affinity(const float *a, const float *b, bool self)
{
    double d = hypot((double)a[0] - (double)b[0], (double)a[1] - (double)b[1]);
    return self ? 0.0 : exp(-d / TAU);
}

/* Algorithm 2 by loops; targets: y, then x. */
static void by_loops(const float *x, const float *y, const lw_toy_balance *w, double *v)
{
    static double a[N][2 * N], row[N], column[2 * N];
    memset(row, 0, sizeof row);
    memset(column, 0, sizeof column);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 2 * N; j++) {
            const float *t = j < N ? y + (ptrdiff_t)2 * j : x + (ptrdiff_t)2 * (j - N);
            a[i][j] = affinity(x + (ptrdiff_t)2 * i, t, j - N == i);
            row[i] += a[i][j];
            column[j] += a[i][j];
        }
    for (int i = 0; i < N; i++) {
        double sum[2] = {0}, pull[2][2] = {{0}};
        for (int j = 0; j < 2 * N; j++) {
            const float *t = j < N ? y + (ptrdiff_t)2 * j : x + (ptrdiff_t)2 * (j - N);
            double A = a[i][j] / sqrt(row[i] * column[j]);
            sum[j >= N] += A;
            for (int c = 0; c < 2; c++)
                pull[j >= N][c] += A * ((double)t[c] - (double)x[2 * i + c]);
        }
        for (int c = 0; c < 2; c++)
            v[2 * i + c] = (double)w->attraction * sum[1] * pull[0][c] -
                           (double)w->repulsion * sum[0] * pull[1][c];
    }
}

static void fields_of_all_balances(void **state)
{
    double want[2 * N];
    (void)state;
    for (int b = 0; b < LW_TOY_BALANCES; b++) {
        fields f;
        fields_open(&f, &lw_toy_balances[b]);
        const float *v = lw_exec_read(f.exec, "v"), *dx = lw_exec_read(f.exec, "dx");
        by_loops(lw_exec_read(f.exec, "x"), lw_exec_read(f.exec, "y"), &lw_toy_balances[b], want);
        for (int i = 0; i < 2 * N; i++) {
            assert_float_equal(v[i], want[i], 2e-6);
            if (b == 0) /* dX = -2 V / (2 N) */
                assert_float_equal(v[i], -dx[i] * (float)N, 2e-6);
        }
        fields_close(&f);
    }
}

static void points_lie_where_they_should(void **state)
{
    enum { POINTS = 4000 };
    static float p[POINTS][2], q[POINTS][2];
    lw_device *dev = NULL;
    (void)state;
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_toy_held_out(dev, LW_TOY_CHECKERBOARD, 0, 5, POINTS, p[0]));
    int square[16] = {0};
    for (int i = 0; i < POINTS; i++) {
        int x = (int)floorf(p[i][0]) + 2, y = (int)floorf(p[i][1]) + 2;
        assert_in_range(x, 0, 3);
        assert_in_range(y, 0, 3);
        assert_int_equal((x + y) % 2, 0);
        square[4 * y + x]++;
    }
    for (int i = 0; i < 16; i++)
        assert_true(!square[i] || (square[i] > 400 && square[i] < 600));
    ok(lw_toy_held_out(dev, LW_TOY_SWISS_ROLL, 0, 5, POINTS, p[0]));
    for (int i = 0; i < POINTS; i++) { /* on the spiral r = a / 4 */
        double r = hypot((double)p[i][0], (double)p[i][1]),
               a = atan2((double)p[i][1], (double)p[i][0]);
        double turns = (4.0 * r - a) / (2.0 * M_PI);
        assert_true(fabs(turns - round(turns)) < 0.3);
        assert_true(r > 0.9 && r < 3.8);
    }
    ok(lw_toy_held_out(dev, LW_TOY_TWO_BLOBS, 0, 5, POINTS, p[0]));
    ok(lw_toy_held_out(dev, LW_TOY_TWO_BLOBS, 1, 5, POINTS, q[0]));
    lw_toy_measure m;
    ok(lw_toy_measure_points(dev->pool, LW_TOY_TWO_BLOBS, p[0], q[0], q[0], POINTS, &m));
    assert_true(m.coverage_a > 0.45 && m.coverage_b > 0.45 && m.coverage_a + m.coverage_b > 0.98);
    assert_true(m.center_distance < 0.03 && m.mode_balance_error < 0.05);
    assert_true(m.precision > 0.85 && m.coverage > 0.85 && m.chance == 0.0);
    assert_memory_not_equal(p, q, sizeof p); /* other rows, other points */
    lw_backend_close(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_all_balances),
        cmocka_unit_test(points_lie_where_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
