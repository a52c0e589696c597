/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison says first: each side at its best, and nothing that chance would explain. */
#include "unit/test_formats_util.h"

#include <math.h>

#include "jobs/compare/compare_parts.h"

static comparing w;
static lw_compare_result out;

static void begin(bool fit)
{
    static const lw_compare_config config = {.ddim_steps = {50}, .n_ddim_steps = 1};
    w = (comparing){.c = &config, .out = &out, .n_others = 1};
    w.other[0] = (compare_other){.kind = COMPARE_DDPM,
                                 .name = "DDPM",
                                 .title = "DDPM",
                                 .key = "ddpm",
                                 .usual = {.evaluations = 50}};
    out = (lw_compare_result){.judged = true, .exam = {.fit = fit}, .floor_few = 0.05};
    out.other[0].speedup[0] = (double)NAN;
    w.real_set.n = 500;
}

/* n pictures of which so many are accepted, at a distance known to a tenth. */
static void add(compare_kind kind, int evaluations, bool ancestral, int64_t n, int64_t accepted,
                double fd)
{
    compare_entry *e = &w.entry[w.n_entries++];
    *e = (compare_entry){.kind = kind,
                         .how = {.evaluations = evaluations,
                                 .sampler = ancestral ? LW_SAMPLER_ANCESTRAL : LW_SAMPLER_AUTO}};
    e->score = (lw_score){.n = n, .judged = true, .fd = {fd, 0.9 * fd, 1.1 * fd}};
    e->score.strict.accepted_count = accepted;
    e->score.strict.accepted = (double)accepted / (double)n;
}

static void add_drift_and_real(void)
{
    add(COMPARE_REAL, 0, false, 500, 490, 0.05);
    add(COMPARE_DRIFT, 1, false, 500, 360, 0.13);
}

static void decide(void)
{
    lw_compare_headline(&w);
    lw_compare_headline_say(&w);
}

static bool says(const char *text)
{
    return strstr(out.other[0].headline.text, text) != NULL;
}

static void a_better_ddpm_is_said_first(void **state)
{
    (void)state;
    begin(true);
    add_drift_and_real();
    add(COMPARE_DDPM, 50, false, 500, 450, 0.090);
    add(COMPARE_DDPM, 5, false, 500, 250, 0.300);
    add(COMPARE_DDPM, 10, true, 500, 380, 0.128);
    add(COMPARE_DDPM, 10, false, 500, 380, 0.128);
    add(COMPARE_DDPM, 20, false, 500, 400, 0.125);
    add(COMPARE_DDPM, 100, false, 500, 455, 0.088); /* not beyond chance: 50 does it */
    decide();
    const lw_headline *h = &out.other[0].headline;
    assert_int_equal(h->points, 6);
    assert_int_equal(h->equal.how.evaluations, 10);
    assert_int_equal(h->equal.how.sampler,
                     LW_SAMPLER_AUTO); /* of two at the same price the plainer */
    assert_int_equal(h->best.how.evaluations, 50);
    assert_int_equal(h->best.accepted, 1);
    assert_int_equal(h->best.frechet, 1);
    assert_true(isnan(h->best.ratio));
    assert_true(
        says("DDPM is better than drift: accepted 90 % (87 to 92) against drift's 72 % (68 to "
             "76), Frechet distance 0.09 (0.08 to 0.10) against 0.13 (0.12 to 0.14), with "
             "500 pictures each"));
    const char *best = strstr(h->text, "better than drift"),
               *equal = strstr(h->text, "DDPM needs 10 evaluations (DDIM)");
    assert_true(best && equal && best < equal);
    assert_false(says("times")); /* nothing was timed */
    /* what it names is timed besides what was asked for */
    assert_int_equal(w.other[0].n_timed, 2);
    assert_int_equal(w.other[0].timed[1].evaluations, 10);
    assert_int_equal(w.other[0].timed[1].sampler, LW_SAMPLER_AUTO);
}

/* Guided pictures are a setting of their own, beside one of as many evaluations. */
static void guidance_is_a_setting(void **state)
{
    (void)state;
    begin(true);
    add_drift_and_real();
    add(COMPARE_DDPM, 50, false, 500, 300, 0.30);
    add(COMPARE_DDPM, 100, false, 500, 310, 0.29);
    add(COMPARE_DDPM, 100, false, 500, 450, 0.09);
    w.entry[w.n_entries - 1].how.guidance_scale = 2.0;
    decide();
    const lw_headline *h = &out.other[0].headline;
    assert_true(h->best.how.guidance_scale == 2.0 && h->equal.how.guidance_scale == 2.0);
    assert_true(says("At its best (100 evaluations, DDIM, guidance scale 2), DDPM is better"));
    assert_true(says("DDPM needs 100 evaluations (DDIM, guidance scale 2)"));
    assert_int_equal(w.other[0].n_timed, 2);
    assert_ptr_equal(lw_compare_find_setting(&w, COMPARE_DDPM, h->best.how),
                     &w.entry[w.n_entries - 1]);
}

/* The number of the row that is drift's best: the only one of its kind, and what is said of drift. */
static int best_drift(void)
{
    int best = -1;
    lw_compare_choose_drift(&w);
    for (int i = 0; i < w.n_entries; i++)
        if (w.entry[i].kind == COMPARE_DRIFT) {
            assert_int_equal(best, -1);
            best = i;
        }
    assert_true(best >= 0 && out.drift_alpha == w.entry[best].how.alpha &&
                out.drift.fd.value == w.entry[best].score.fd.value);
    return best;
}

static void add_guided(double alpha, int64_t accepted, double fd)
{
    add(COMPARE_GUIDED, 1, false, 500, accepted, fd);
    w.entry[w.n_entries - 1].how.alpha = alpha;
}

/* Drift is compared at its best strength of guidance; of equals the unguided one. */
static void drift_is_at_its_best(void **state)
{
    (void)state;
    begin(true);
    out.floor_few = 0; /* not known yet */
    add_drift_and_real();
    add_guided(1.5, 370, 0.13);
    assert_int_equal(best_drift(), 1);
    add_guided(2, 440, 0.14);
    add_guided(3, 450, 0.20); /* as often accepted, but farther */
    assert_int_equal(best_drift(), 3);
    assert_true(out.drift_alpha == 2);
    out.exam.fit = false; /* distances alone */
    assert_int_equal(best_drift(), 1);
    add_guided(4, 10, 0.08);
    assert_int_equal(best_drift(), 5);
    add(COMPARE_DDPM, 50, false, 500, 450, 0.07);
    static const lw_compare_config guided = {.ddim_steps = {50}, .n_ddim_steps = 1, .n_alpha = 4};
    w.c = &guided;
    decide();
    assert_true(says("against 0.08 ")); /* of that row */
    assert_true(says("Drift is at its best with alpha 4, and so compared."));
}

static void a_ddpm_that_never_reaches_is_told_so(void **state)
{
    (void)state;
    begin(true);
    add_drift_and_real();
    add(COMPARE_DDPM, 50, false, 500, 100, 0.40);
    add(COMPARE_DDPM, 20, false, 500, 90, 0.50);
    decide();
    assert_int_equal(out.other[0].headline.equal.how.evaluations, 0);
    assert_true(says("does not reach drift's quality in any of the 2 settings"));
    assert_true(says("DDPM is not as good as drift"));
}

static void measures_may_disagree(void **state)
{
    (void)state;
    begin(true);
    add_drift_and_real();
    add(COMPARE_DDPM, 50, false, 500, 450, 0.40);
    decide();
    assert_int_equal(out.other[0].headline.equal.how.evaluations, 0);
    assert_true(says("ahead of drift in acceptance and behind in Frechet distance"));
}

/* A few pictures leave everything possible: that is no reason to call them as good. */
static void few_pictures_reach_nothing_by_chance(void **state)
{
    (void)state;
    begin(true);
    add_drift_and_real();
    add(COMPARE_DRIFT_FEW, 1, false, 50, 36, 0.30);
    add(COMPARE_REAL_FEW, 0, false, 50, 49, 0.22);
    add(COMPARE_DDPM, 50, false, 500, 200, 0.40);
    add(COMPARE_DDPM, 100, false, 50, 30, 0.30); /* 60 % of 50 is not beyond chance below 72 % */
    decide();
    assert_int_equal(out.other[0].headline.best.how.evaluations, 100);
    assert_int_equal(out.other[0].headline.best.accepted, 0);
    assert_int_equal(out.other[0].headline.equal.how.evaluations, 0);
    add(COMPARE_DDPM, 200, false, 50, 35, 0.30);
    decide();
    assert_int_equal(out.other[0].headline.equal.how.evaluations, 200);
}

/* The time of DDIM is not that of ancestral sampling with as many evaluations. */
static void an_ancestral_point_is_timed_itself(void **state)
{
    (void)state;
    begin(true);
    add_drift_and_real();
    add(COMPARE_DDPM, 50, false, 500, 200, 0.40);
    add(COMPARE_DDPM, 50, true, 500, 450, 0.09);
    decide();
    assert_int_equal(out.other[0].headline.best.how.sampler, LW_SAMPLER_ANCESTRAL);
    assert_int_equal(w.other[0].n_timed, 2);
    assert_true(w.other[0].timed[1].sampler == LW_SAMPLER_ANCESTRAL &&
                w.other[0].timed[1].evaluations == 50);
    w.latency[0] =
        (lw_latency){.method = "ddpm", .how = {.evaluations = 50}, .batch = 1, .times_drift = 47};
    w.latency[1] = (lw_latency){.method = "ddpm",
                                .how = {.evaluations = 50, .sampler = LW_SAMPLER_ANCESTRAL},
                                .batch = 1,
                                .times_drift = 58};
    w.n_latencies = 2;
    lw_compare_headline_say(&w);
    assert_true(out.other[0].headline.best.ratio == 58);
    assert_true(says("drift is 58 times faster at equal quality"));
    w.latency[1].times_drift = 0.625;
    lw_compare_headline_say(&w);
    assert_true(says("drift is 1.6 times slower at equal quality"));
    w.latency[1].times_drift = 0.97;
    lw_compare_headline_say(&w);
    assert_true(says("drift is as fast at equal quality"));
}

static void an_unfit_judge_has_no_say(void **state)
{
    (void)state;
    begin(false);
    add_drift_and_real();
    add(COMPARE_DDPM, 50, false, 500, 0, 0.13);
    decide();
    assert_int_equal(out.other[0].headline.equal.how.evaluations, 50);
    assert_true(says("as good as drift: Frechet distance 0.13 (0.12 to 0.14) against 0.13"));
    assert_false(says("accepted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_better_ddpm_is_said_first),
        cmocka_unit_test(guidance_is_a_setting),
        cmocka_unit_test(drift_is_at_its_best),
        cmocka_unit_test(a_ddpm_that_never_reaches_is_told_so),
        cmocka_unit_test(measures_may_disagree),
        cmocka_unit_test(few_pictures_reach_nothing_by_chance),
        cmocka_unit_test(an_ancestral_point_is_timed_itself),
        cmocka_unit_test(an_unfit_judge_has_no_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
