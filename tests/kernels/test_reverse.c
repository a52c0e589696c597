/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse steps of a known picture and a known noise, as each prediction would say them. */
#include <math.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

enum { N = 300 };

static double clamped(double v, double most)
{
    return fmin(fmax(v, -most), most);
}

/* What a network says that knows picture and noise. */
static double said(lw_prediction prediction, const lw_reverse *r, double picture, double noise)
{
    const double of[] = {[LW_PREDICT_EPSILON] = noise,
                         [LW_PREDICT_SAMPLE] = picture,
                         [LW_PREDICT_VELOCITY] = r->a * noise - r->s * picture,
                         [LW_PREDICT_FLOW] = noise - picture};
    return of[prediction];
}

static void one_step(check *t, lw_prediction prediction, lw_reverse r, bool keep_eps)
{
    const float *picture = check_in(t, N, 0, -1, 1), *noise = check_in(t, N, 0, -2, 2),
                *added = check_in(t, N, 1, -2, 2);
    float *x = check_out(t, N, 1), *y = check_out(t, N, 0), *out = check_out(t, N, 1);
    double *want = check_doubles(t, N);
    for (int i = 0; i < N; i++) {
        const double seen = r.a * (double)picture[i] + r.s * (double)noise[i],
                     believed = clamped((double)picture[i], r.clip),
                     eps = keep_eps ? (double)noise[i] : (seen - r.a * believed) / r.s;
        x[i] = (float)seen;
        y[i] = (float)said(prediction, &r, (double)picture[i], (double)noise[i]);
        want[i] = clamped(r.c0 * believed + r.c1 * eps + r.c2 * (double)added[i] + r.c3 * seen,
                          r.limit);
    }
    lw_reverse_step(out, x, y, added, &r, prediction, keep_eps, N);
    check_close(t, out, want, N, (check_tol){.abs = 2e-6}, "prediction %d, keep %d, clip %g",
                prediction, keep_eps, r.clip);
    lw_reverse_step(x, x, y, added, &r, prediction, keep_eps, N);
    check_same(t, x, out, N * sizeof *x, "in place, prediction %d", prediction);
    check_next(t);
}

/* Pictures believed and clamped, sums within the limit and beyond it. */
static void predictions(check *t)
{
    for (lw_prediction p = LW_PREDICT_EPSILON; p <= LW_PREDICT_FLOW; p++)
        for (int i = 0; i < 8; i++) {
            const bool flow = p == LW_PREDICT_FLOW;
            one_step(t, p,
                     (lw_reverse){.a = flow ? 0.3 : 0.6,
                                  .s = flow ? 0.7 : 0.8,
                                  .c0 = 0.7,
                                  .c1 = -0.5,
                                  .c2 = 0.3,
                                  .c3 = 0.2,
                                  .clip = i & 1 ? 0.4 : 1e9,
                                  .limit = i & 2 ? 0.9 : 1e9},
                     i & 4);
        }
}

/* Noise of factor 0 is not read, what is no number stays so behind a limit. */
static void no_noise(check *t)
{
    const lw_reverse r = {.a = 0.6, .s = 0.8, .c0 = 0.5, .c3 = 0.25, .clip = 8, .limit = 1};
    const float x[] = {0.5f, 4.0f, -4.0f, NAN}, y[] = {1.0f, 2.0f, -2.0f, 1.0f},
                noise[] = {NAN, NAN, NAN, NAN}, want[] = {0.625f, 1.0f, -1.0f};
    float out[4];
    for (int i = 0; i < 2; i++) {
        lw_reverse_step(out, x, y, i ? noise : NULL, &r, LW_PREDICT_SAMPLE, false, 4);
        check_same(t, out, want, sizeof want, "numbers, noise %d", i);
        check_same(t, &(bool){isnan(out[3])}, &(bool){true}, sizeof(bool), "no number");
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"predictions", predictions}, {"no_noise", no_noise}};
    return check_main(argc, argv, "reverse", cases, LW_COUNT(cases));
}
