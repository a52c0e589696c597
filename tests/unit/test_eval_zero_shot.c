/* SPDX-License-Identifier: Apache-2.0 */
/* Margin, entropy and prompt sensitivity against numpy on small made-up numbers. */
#include "unit/test_eval_util.h"

enum { N = 6, C = 4, D = 5, T = 3 };

static void make(double *text, float *features)
{
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++)
            for (int d = 0; d < D; d++)
                text[(t * C + c) * D + d] =
                    (t * 13 + c * 29 + d * 7 + t * d * 3 + c * d * 5) % 23 / 23.0 - 0.45;
    for (int n = 0; n < N; n++)
        for (int d = 0; d < D; d++)
            features[n * D + d] = (float)((n * 31 + d * 17 + n * d * 3) % 19 / 19.0 - 0.4);
}

/* numpy: logits of unit vectors, softmax, var(ddof=1) over templates. */
static void test_numpy(void **state)
{
    static const double margins[N] = {0.804859461478145, 3.60545106565285,  1.23285079499924,
                                      3.54583902379297,  0.803434477025005, 0.857315123688466};
    static const double entropies[N] = {1.01385078255295,  0.180820721552699, 0.69842390148356,
                                        0.181529224503851, 0.938954350428021, 0.792284173635458};
    static const double sensitivities[N] = {0.0514547456908069, 0.0356507931986817,
                                            0.0166156833592218, 0.0520777685423475,
                                            0.0112188006281922, 0.00113868130440159};
    static const int32_t bests[N] = {1, 3, 0, 3, 3, 3};
    double text[T * C * D], margin[N], entropy[N], sensitivity[N];
    float features[N * D];
    int32_t best[N];
    lw_zero_shot z = {
        .dim = D, .classes = C, .templates = T, .text = text, .scale = 1.7, .bias = -0.5};
    (void)state;
    make(text, features);
    ok(lw_zero_shot_of(&z, features, N, margin, entropy, sensitivity, best));
    for (int i = 0; i < N; i++) {
        near(margin[i], margins[i], 1e-12);
        near(entropy[i], entropies[i], 1e-12);
        near(sensitivity[i], sensitivities[i], 1e-13);
        assert_int_equal(best[i], bests[i]);
    }
    z.templates = 1; /* the first alone: the same answers, nothing varies */
    ok(lw_zero_shot_of(&z, features, N, margin, entropy, sensitivity, best));
    for (int i = 0; i < N; i++) {
        near(margin[i], margins[i], 1e-12);
        near(sensitivity[i], 0, 0);
    }
}

static void test_refused(void **state)
{
    double text[T * C * D], margin[N], entropy[N], sensitivity[N];
    float features[N * D];
    int32_t best[N];
    lw_zero_shot z = {.dim = D, .classes = 1, .templates = T, .text = text};
    (void)state;
    make(text, features);
    fails(lw_zero_shot_of(&z, features, N, margin, entropy, sensitivity, best), LW_EUSAGE,
          "1 classes");
    z.classes = C;
    for (int d = 0; d < D; d++)
        features[2 * D + d] = 0;
    fails(lw_zero_shot_of(&z, features, N, margin, entropy, sensitivity, best), LW_ENUMERIC,
          "picture 2: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numpy),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
