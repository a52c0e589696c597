/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a series of frames: those of numpy (tools/golden/frame_series.py), and what they say of
 * frames that fade, stand still, blur. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "eval/eval.h"

enum { W = 7, H = 5, N = 14 };

static void draw(uint8_t *rgb, int t)
{
    for (int i = 0; i < W * H * 3; i++)
        rgb[i] = (uint8_t)((i * 37 + t * 13 + i * t % 11 * 5) * (20 - t) / 20 % 256);
}

/* As printed by tools/golden/frame_series.py. */
static const lw_frame_numbers numpy[N] = {
    {{0.342998702226, 0, 0, 0, 0.549847494553, 0.585647624858}},
    {{0.3297323726, 0.132758316398, 0.0863213521932, 0.215805263364, 0.661089324619,
      0.573525895298}},
    {{0.335276672412, 0.210210855003, 0.0820161944536, 0.041845377849, 0.84768129474,
      0.578123136137}},
    {{0.335368300174, 0.240895919152, 0.107326069532, 0.0721125924131, 0.940961718021,
      0.57726263739}},
    {{0.331214809584, 0.257618835247, 0.10657953742, 0.15747371381, 0.925561780268,
      0.573817917975}},
    {{0.31806866398, 0.270017351894, 0.191114304336, 0.121241679653, 0.818568316215,
      0.558502193755}},
    {{0.325793907628, 0.275365361831, 0.094321507908, 0.141210469257, 0.62558356676,
      0.570363960806}},
    {{0.352324792575, 0.287827017081, 0.0904425881354, -0.0172671989808, 0.526691565515,
      0.593257473431}},
    {{0.334926330968, 0.293507393823, 0.0882887570901, 0.0943225825568, 0.663299097417,
      0.576655395382}},
    {{0.32698962147, 0.294103627543, 0.0750596589687, 0.168416340641, 0.783022097728,
      0.570019088121}},
    {{0.319448436804, 0.297384083045, 0.0775793658871, 0.0579279459739, 0.839047619048,
      0.564970232719}},
    {{0.330093092052, 0.30192149686, 0.0788368868572, 0.0495611369816, 0.771814503579,
      0.574284983248}},
    {{0.338190080389, 0.307049112979, 0.0986233737185, 0.0151212099976, 0.621328976035,
      0.578976155932}},
    {{0.321267154705, 0.31003203603, 0.111622059584, 0.0850251856822, 0.379461562403,
      0.562931859785}},
};

static void numbers_are_numpys(void **state)
{
    (void)state;
    lw_frame_series *s = NULL;
    lw_frame_numbers got[N];
    uint8_t rgb[W * H * 3];
    assert_int_equal(lw_frame_series_new(W, H, &s), 0);
    const uint64_t before = lw_alloc_count();
    for (int t = 0; t < N; t++) {
        draw(rgb, t);
        lw_frame_series_add(s, rgb, &got[t]);
        for (int k = 0; k < LW_SERIES_NUMBERS; k++)
            if (!(fabs(got[t].v[k] - numpy[t].v[k]) <= 1e-10))
                fail_msg("frame %d: %s: %.12g, numpy has %.12g", t, lw_series_names[k], got[t].v[k],
                         numpy[t].v[k]);
    }
    assert_true(lw_alloc_count() == before);
    const lw_series_verdict v = lw_series_judge(got, N, got, N);
    assert_true(fabs(v.change - 1) < 1e-12 && v.stable);
    assert_true(fabs(v.ratio - 0.980268728131) < 1e-10 &&
                fabs(v.deviation - 0.574220007965) < 1e-10);
    lw_frame_series_free(&s);
}

static lw_frame_numbers all[100], input[100];

/* Frames whose contrast is multiplied by `keep` each time. */
static lw_series_verdict fading(double keep, lw_frame_numbers *last)
{
    lw_frame_series *s = NULL;
    uint8_t rgb[W * H * 3];
    double contrast = 1;
    assert_int_equal(lw_frame_series_new(W, H, &s), 0);
    for (int t = 0; t < 100; t++, contrast *= keep) {
        for (int i = 0; i < W * H * 3; i++)
            rgb[i] = (uint8_t)lrint(127.5 + ((i * 37) % 256 - 127.5) * contrast);
        lw_frame_series_add(s, rgb, &all[t]);
    }
    lw_frame_series_free(&s);
    *last = all[99];
    return lw_series_judge(all, 100, input, 100);
}

static void decay_is_seen(void **state)
{
    (void)state;
    lw_frame_numbers last;
    lw_series_verdict v = fading(1, &last);
    memcpy(input, all, sizeof input);
    v = fading(1, &last);
    assert_true(v.stable && fabs(v.ratio - 1) < 1e-12);
    assert_true(last.v[LW_SERIES_TEMPORAL] < 1e-12 && last.v[LW_SERIES_REPETITION] > 1 - 1e-12);
    v = fading(0.95, &last);
    assert_true(!v.stable && v.ratio < 0.01 && v.deviation < 0.1);
    assert_true(last.v[LW_SERIES_DETAIL] < 0.02 && last.v[LW_SERIES_SPREAD] < 0.02);
    v = fading(0.996, &last); /* less than it was, and enough left */
    assert_true(!v.stable && v.ratio < 0.7 && v.deviation > 0.1);
    const lw_frame_numbers one = {{0.25}};
    v = lw_series_judge(&one, 1, &one, 1);
    assert_true(v.stable && fabs(v.deviation - 0.5) < 1e-12);
}

/* What the input does as well is no decay, and what it does not is one, up or down. */
static void input_is_allowed_for(void **state)
{
    (void)state;
    lw_frame_numbers last;
    (void)fading(0.98, &last);
    memcpy(input, all, sizeof input);
    lw_series_verdict v = fading(0.98, &last); /* 0.1 is not reached, as in the input */
    assert_true(v.stable && v.ratio < 0.05 && v.deviation < 0.1 && fabs(v.change - 1) < 1e-12);
    v = fading(1, &last); /* it gets louder than the input */
    assert_true(!v.stable && fabs(v.ratio - 1) < 1e-12 && v.change > 20);
    (void)fading(1.0, &last);
    memcpy(input, all, sizeof input);
    for (int i = 0; i < 100; i++) { /* a car enters both */
        all[i].v[LW_SERIES_VARIANCE] = 0.02 + 0.2 * (i >= 90);
        input[i].v[LW_SERIES_VARIANCE] = 0.03 + 0.3 * (i >= 90);
    }
    v = lw_series_judge(all, 100, input, 100);
    assert_true(v.stable && v.ratio > 8 && fabs(v.change - 1) < 1e-9);
    v = lw_series_judge(all, 100, input, 1); /* the network saw nothing but the first frame */
    assert_true(!v.stable && v.change > 8);
    memset(all, 0, sizeof all); /* black, beside black: nothing is lost */
    v = lw_series_judge(all, 100, all, 100);
    assert_true(v.stable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_numpys),
        cmocka_unit_test(decay_is_seen),
        cmocka_unit_test(input_is_allowed_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
