/* SPDX-License-Identifier: Apache-2.0 */
/* Laws that follow from the definition of the drift field: shifts and scales, order of rows,
 * exchange of signs, slots, and the gradient; at every level. */
#include "kernels/test_drift.h"

#include "base/base.h"
#include "kernels/kernels.h"

static lw_drift_shape small_shape(void)
{
    return (lw_drift_shape){
        .g = 2, .n = 9, .np = 11, .nu = 4, .t = 1, .c = 12, .k = 3, .tau = {0.2, 0.05, 0.02}};
}

static void run_both(check *t, drift_problem *p)
{
    drift_narrow(p);
    drift_oracle(t, p);
    drift_run(t, p, 0);
}

/* F of two problems, oracle and kernel; b's row i against a's row perm[i] of the same group. */
static void expect_same_field(check *t, const drift_problem *a, const drift_problem *b,
                              const int *perm, double sign, double tol, const char *what)
{
    ptrdiff_t n = a->s.n, c = a->s.c;
    for (ptrdiff_t i = 0; i < a->s.g * n; i++)
        for (ptrdiff_t k = 0; k < c; k++) {
            ptrdiff_t from = (i / n * n + (perm ? perm[i % n] : i % n)) * c + k;
            drift_expect(t, sign * b->f_d[i * c + k], a->f_d[from], tol / 10, what);
            drift_expect(t, sign * (double)b->f[i * c + k], a->f_d[from], tol, what);
        }
}

static void invariance(check *t)
{
    drift_problem a = drift_random(t, small_shape(), 0, 0, 0.6), b = a;
    run_both(t, &a);
    t->draws = 0;
    b = drift_random(t, small_shape(), 0, 0, 0.6);
    for (int64_t i = 0; i < b.nx; i++) /* shift by 2, scale by 3 */
        b.x_d[i] = 3 * a.x_d[i] + 2;
    for (int64_t i = 0; i < b.npos; i++)
        b.pos_d[i] = 3 * a.pos_d[i] + 2;
    for (int64_t i = 0; i < b.nunc; i++)
        b.unc_d[i] = 3 * a.unc_d[i] + 2;
    memcpy(b.w_d, a.w_d, (size_t)a.s.g * sizeof(double));
    run_both(t, &b);
    expect_same_field(t, &a, &b, NULL, 1, 1e-4, "shift and scale");
    drift_expect(t, b.stats_d[0], 3 * a.stats_d[0], 5e-6,
                 "S scales"); /* but for the floor of distances */
}

static void permutation(check *t)
{
    static const int gen[9] = {4, 2, 8, 0, 1, 7, 3, 6, 5},
                     pos[11] = {10, 3, 5, 7, 1, 0, 2, 9, 8, 4, 6};
    static const int unc[4] = {2, 0, 3, 1};
    drift_problem a = drift_random(t, small_shape(), 0, 0, 0.6), b = drift_new(t, small_shape(), 0);
    size_t row = 12 * sizeof(double);
    for (int g = 0; g < 2; g++) {
        for (int i = 0; i < 9; i++)
            memcpy(b.x_d + (g * 9 + i) * 12, a.x_d + (g * 9 + gen[i]) * 12, row);
        for (int i = 0; i < 11; i++)
            memcpy(b.pos_d + (g * 11 + i) * 12, a.pos_d + (g * 11 + pos[i]) * 12, row);
        for (int i = 0; i < 4; i++)
            memcpy(b.unc_d + (g * 4 + i) * 12, a.unc_d + (g * 4 + unc[i]) * 12, row);
        b.w_d[g] = a.w_d[g];
    }
    run_both(t, &a);
    run_both(t, &b);
    expect_same_field(t, &a, &b, gen, 1, 2e-5, "permuted samples");
}

/* One generated sample, plain form: its negatives are the unconditional ones alone. Swapping them
 * with the positives flips V; equal sets give 0. */
static void antisymmetry(check *t)
{
    lw_drift_shape s = {.g = 3,
                        .n = 1,
                        .np = 8,
                        .nu = 8,
                        .t = 1,
                        .c = 12,
                        .k = 2,
                        .tau = {0.8, 0.4},
                        .variant = LW_DRIFT_PLAIN};
    drift_problem a = drift_random(t, s, 0, 0, 0.6), b = drift_new(t, s, 0), c = drift_new(t, s, 0);
    for (int g = 0; g < 3; g++)
        a.w_d[g] = b.w_d[g] = c.w_d[g] = 1;
    memcpy(b.x_d, a.x_d, (size_t)a.nx * sizeof(double));
    memcpy(c.x_d, a.x_d, (size_t)a.nx * sizeof(double));
    memcpy(b.pos_d, a.unc_d, (size_t)a.npos * sizeof(double));
    memcpy(b.unc_d, a.pos_d, (size_t)a.npos * sizeof(double));
    memcpy(c.pos_d, a.pos_d, (size_t)a.npos * sizeof(double));
    memcpy(c.unc_d, a.pos_d, (size_t)a.npos * sizeof(double));
    run_both(t, &a);
    run_both(t, &b);
    run_both(t, &c);
    expect_same_field(t, &a, &b, NULL, -1, 2e-6, "swapped sides");
    double norm = 0;
    for (int64_t i = 0; i < a.nf; i++)
        norm += fabs(a.f_d[i]);
    if (norm < 0.1)
        fail_msg("the field is too small to test: %g", norm);
    for (int64_t i = 0; i < c.nf; i++) {
        drift_expect(t, c.f_d[i], 0, 1e-12, "equal sides");
        drift_expect(t, (double)c.f[i], 0, 1e-6, "equal sides");
    }
}

/* Slots are groups: [G,N,T,C] is [G T,N,1,C]. */
static void slots(check *t)
{
    lw_drift_shape s = {
        .g = 2, .n = 5, .np = 6, .nu = 3, .t = 4, .c = 10, .k = 3, .tau = {0.2, 0.05, 0.02}};
    drift_problem a = drift_random(t, s, 0, 0, 0.6);
    s.g = 8;
    s.t = 1;
    drift_problem b = drift_new(t, s, 0);
    for (int b_group = 0; b_group < 8; b_group++) {
        int g = b_group / 4, u = b_group % 4;
        for (int c = 0; c < 10; c++) {
            for (int i = 0; i < 5; i++)
                b.x_d[(b_group * 5 + i) * 10 + c] = a.x_d[((g * 5 + i) * 4 + u) * 10 + c];
            for (int i = 0; i < 6; i++)
                b.pos_d[(b_group * 6 + i) * 10 + c] = a.pos_d[((g * 6 + i) * 4 + u) * 10 + c];
            for (int i = 0; i < 3; i++)
                b.unc_d[(b_group * 3 + i) * 10 + c] = a.unc_d[((g * 3 + i) * 4 + u) * 10 + c];
        }
        b.w_d[b_group] = a.w_d[g];
    }
    run_both(t, &a);
    run_both(t, &b);
    for (int i = 0; i < 9; i++)
        drift_expect(t, b.stats_d[i], a.stats_d[i], 1e-12, "stats of slots");
    for (int64_t i = 0; i < b.nf; i++) {
        int64_t c = i % 10, n = i / 10 % 5, g = i / 50;
        int64_t from = ((g / 4 * 5 + n) * 4 + g % 4) * 10 + c;
        drift_expect(t, b.f_d[i], a.f_d[from], 1e-10, "F of slots");
        drift_expect(t, (double)b.f[i], (double)a.f[from], 1e-12, "F of slots");
        drift_expect(t, b.dx_d[i], a.dx_d[from], 1e-10, "dX of slots");
    }
}

/* The slope of mean (x / sigma - goal)^2 with goal and sigma frozen is dX; gain and add_dx do what
 * they say. */
static void gradient(check *t)
{
    drift_problem p = drift_random(t, small_shape(), 0, 0, 0.6);
    run_both(t, &p);
    double sigma = p.stats_d[1], count = (double)(p.s.g * p.s.n * p.s.c), h = 1e-4;
    for (int64_t i = 0; i < p.nx; i++) { /* only term i moves: goal = x / sigma + F */
        double up = (h / sigma - p.f_d[i]) * (h / sigma - p.f_d[i]);
        double down = (-h / sigma - p.f_d[i]) * (-h / sigma - p.f_d[i]);
        drift_expect(t, p.dx_d[i], (up - down) / (2 * h * count), 1e-9, "dX");
    }
    double loss = 0;
    for (int64_t i = 0; i < p.nf; i++)
        loss += p.f_d[i] * p.f_d[i] / count;
    drift_expect(t, p.stats_d[2], loss, 1e-10, "loss is mean F^2");
    p.s.gain = 2.5;
    p.s.add_dx = 1;
    float *dx = check_copy(t, p.dx, p.nf, 0);
    drift_run(t, &p, 0);
    for (int64_t i = 0; i < p.nf; i++)
        drift_expect(t, (double)p.dx[i], 3.5 * (double)dx[i], 1e-6, "gain 2.5 added");
    drift_problem q = p; /* without F */
    q.f = NULL;
    q.s.add_dx = 0;
    q.dx = check_out(t, q.nf, 1);
    drift_run(t, &q, 0);
    for (int64_t i = 0; i < p.nf; i++)
        drift_expect(t, (double)q.dx[i], 2.5 * (double)dx[i], 1e-6, "dX alone");
}

/* Slot u of a, alone. */
static drift_problem one_slot(check *t, const drift_problem *a, ptrdiff_t u)
{
    lw_drift_shape s = a->s;
    ptrdiff_t c = s.c, slots = s.t;
    s.t = 1;
    drift_problem b = drift_new(t, s, 0);
    for (int64_t i = 0; i < b.nx; i++)
        b.x_d[i] = a->x_d[(i / c * slots + u) * c + i % c];
    for (int64_t i = 0; i < b.npos; i++)
        b.pos_d[i] = a->pos_d[(i / c * slots + u) * c + i % c];
    for (int64_t i = 0; i < b.nunc; i++)
        b.unc_d[i] = a->unc_d[(i / c * slots + u) * c + i % c];
    memcpy(b.w_d, a->w_d, (size_t)s.g * sizeof *b.w_d);
    run_both(t, &b);
    return b;
}

/* Slots with scales of their own: V is that of each slot alone, m and with it lambda the mean over
 * slots, S too; dX is the slope by the slot's own sigma. Of the oracle and of the kernel. */
static void own_scales(check *t)
{
    lw_drift_shape s = {
        .g = 2, .n = 5, .np = 6, .nu = 3, .t = 4, .c = 10, .k = 1, .tau = {0.1}, .own_scale = 1};
    drift_problem a = drift_random(t, s, 0, 0, 0.6), shared;
    double scale = 0, moment = 0, count = (double)(s.g * s.n * s.t * s.c);
    drift_stretch(&a);
    run_both(t, &a);
    for (ptrdiff_t u = 0; u < s.t; u++) {
        drift_problem b = one_slot(t, &a, u);
        scale += b.stats_d[0] / (double)s.t;
        moment += b.stats_d[4] / (double)s.t;
        for (int64_t i = 0; i < b.nf; i++) {
            int64_t at = (i / s.c * s.t + u) * s.c + i % s.c;
            double v = b.f_d[i] * b.stats_d[3];
            drift_expect(t, a.f_d[at] * a.stats_d[3], v, 1e-10, "V of a slot");
            drift_expect(t, (double)a.f[at] * (double)a.stats[3], v, 2e-5, "V of a slot");
            double slope = -2 * a.f_d[at] / (count * b.stats_d[1]);
            drift_expect(t, a.dx_d[at], slope, 1e-12, "dX of a slot");
            drift_expect(t, (double)a.dx[at] * count, slope * count, 2e-4, "dX of a slot");
        }
    }
    drift_expect(t, a.stats_d[0], scale, 1e-12, "S");
    drift_expect(t, a.stats_d[4], moment, 1e-12, "m");
    drift_expect(t, (double)a.stats[0], scale, 1e-5, "S");
    shared = a; /* negative control */
    shared.s.own_scale = 0;
    shared.f_d = check_doubles(t, a.nf);
    drift_oracle(t, &shared);
    if (fabs(shared.f_d[0] - a.f_d[0]) < 1e-3)
        fail_msg("scales of slots leave no trace");
}

/* Memory of large groups grows with N + M, not with N x M. */
static void memory(check *t)
{
    static const lw_num nums[] = {LW_NUM_F32, LW_NUM_BF16, LW_NUM_BF16X3};
    for (ptrdiff_t c = 128; c <= 768; c += 640)
        for (size_t i = 0; i < LW_COUNT(nums); i++) {
            double last = 0, most = nums[i] == LW_NUM_BF16X3 ? 6.0 : 5.0;
            for (ptrdiff_t n = 4096; n <= 65536; n *= 2) {
                lw_drift_shape s = {
                    .g = 1, .n = n, .np = n, .t = 1, .c = c, .k = 3, .num = nums[i]};
                lw_drift_dense(&s);
                double bytes = (double)(lw_drift_work(&s) + lw_drift_scratch(&s)),
                       operands = 4.0 * (double)(3 * n) * (double)(c + s.k);
                t->compared++;
                if (bytes > most * operands || (last > 0 && bytes > 2.05 * last))
                    fail_msg("%td x %td, %td channels: %.0f bytes, (N + M)(C + K) numbers are %.0f",
                             n, 2 * n, c, bytes, operands);
                last = bytes;
            }
        }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"invariance", invariance}, {"permutation", permutation}, {"antisymmetry", antisymmetry},
        {"slots", slots},           {"gradient", gradient},       {"own_scales", own_scales},
        {"memory", memory},
    };
    return check_main(argc, argv, "drift_laws", cases, LW_COUNT(cases));
}
