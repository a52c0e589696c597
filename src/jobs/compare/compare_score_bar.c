/* SPDX-License-Identifier: Apache-2.0 */
/* Controls that must fail, the judge's examination, and the bar. */
#include <stdio.h>

#include "base/base.h"
#include "jobs/compare/compare_score.h"

static const struct {
    lw_junk_kind kind;
    const char *name;
} controls[LW_CONTROLS] = {
    {LW_JUNK_NOISE, "uniform noise"},
    {LW_JUNK_AVERAGE, "average of two pictures"},
    {LW_JUNK_SPLICE, "half of one, half of another"},
    {LW_JUNK_BLUR2, "real, blurred 2x"},
    {LW_JUNK_MEAN, "class means"},
    {LW_JUNK_NOISED, "real + noise of sd 0.3"},
    {LW_JUNK_REPEATED, "ten pictures repeated"},
};
enum { BLURRED = 3, MEANS = 4 };

int lw_scorer_controls(lw_scorer *s, int64_t n, const lw_observer *obs, lw_score out[LW_CONTROLS])
{
    int64_t floats = (int64_t)lw_scorer_side(s) * lw_scorer_side(s) * 3;
    LW_CLEANUP(lw_junk_free) lw_junk *junk = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(n * floats), sizeof *x);
    LW_CLEANUP(lw_free) int32_t *c = lw_calloc((size_t)n, sizeof *c);
    if (!x || !c)
        return LW_ENOMEM;
    LW_TRY(lw_junk_new(lw_scorer_heldout(s), 2024, &junk));
    for (int k = 0; k < LW_CONTROLS; k++) {
        for (int64_t i = 0; i < n; i++)
            c[i] = lw_junk_make(junk, controls[k].kind, i, x + i * floats);
        LW_TRY(
            lw_scorer_score(s, controls[k].name, x, lw_scorer_classes(s) ? c : NULL, n, &out[k]));
        lw_observe_progress(obs, "score controls", k + 1, LW_CONTROLS, controls[k].name);
        if (lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "stopped while scoring controls");
    }
    return 0;
}

lw_judge_exam lw_judge_examine(const lw_score *real, const lw_score out[LW_CONTROLS])
{
    lw_judge_exam e = {.accuracy = real->plain.agreement,
                       .real_accepted = real->strict.accepted,
                       .means_accepted = out[MEANS].strict.accepted_any,
                       .blurred_accepted = out[BLURRED].strict.accepted_any};
    e.accurate = real->judged && e.accuracy >= 0.99;
    e.fit = e.accurate && e.real_accepted >= 0.90 && e.means_accepted <= 0.10 &&
            e.blurred_accepted <= 0.10;
    return e;
}

/* ---- the bar ---------------------------------------------------------------------------- */

static const struct {
    const char *name, *asked;
    double limit;
    bool at_most, judge,
        fit; /* needs an accurate judge; needs one that passed its whole examination */
} bar[LW_BAR_COUNT] = {
    [LW_BAR_LEGIBLE] = {"readable: some class gets 0.9 or more", ">= 90 %", 0.90, false, true,
                        false},
    [LW_BAR_AGREEMENT] = {"right class: the one asked for is likeliest", ">= 95 %", 0.95, false,
                          true, false},
    [LW_BAR_CLASSES] = {"smallest and largest share of a class", "half to twice its share", 0.0,
                        false, true, false},
    [LW_BAR_DIVERSITY] = {"diversity within a class, against real", ">= 0.80", 0.80, false, false,
                          false},
    [LW_BAR_COLOUR] = {"colour distance", "<= 0.15", 0.15, true, false, false},
    [LW_BAR_ACCEPTED] = {"accepted: the judge gives it 0.9 or more", ">= 40 %", 0.40, false, true,
                         true},
};

static double criterion_value(const lw_score *s, lw_criterion c)
{
    switch (c) {
    case LW_BAR_LEGIBLE:
        return s->plain.accepted_any;
    case LW_BAR_AGREEMENT:
        return s->plain.agreement;
    case LW_BAR_DIVERSITY:
        return s->diversity;
    case LW_BAR_COLOUR:
        return s->colour;
    case LW_BAR_ACCEPTED:
        return s->strict.accepted;
    default:
        return 0.0;
    }
}

static bool classes_pass(const lw_score *s, int32_t classes)
{
    return s->plain.class_min * classes >= 0.5 && s->plain.class_max * classes <= 2.0;
}

int lw_score_check(const lw_score *s, int32_t classes, const lw_judge_exam *exam,
                   lw_bar_line out[LW_BAR_COUNT])
{
    int failed = 0;
    for (int i = 0; i < LW_BAR_COUNT; i++) {
        double v = criterion_value(s, (lw_criterion)i);
        lw_bar_line *l = &out[i];
        *l = (lw_bar_line){.name = bar[i].name,
                           .asked = bar[i].asked,
                           .applies = (!bar[i].judge || exam->accurate) &&
                                      (!bar[i].fit || exam->fit),
                           .pass = bar[i].at_most ? v <= bar[i].limit : v >= bar[i].limit};
        if (i == LW_BAR_CLASSES) {
            l->pass = classes_pass(s, classes);
            snprintf(l->value, sizeof l->value, "%.1f %% .. %.1f %%", 100 * s->plain.class_min,
                     100 * s->plain.class_max);
        } else if (i == LW_BAR_DIVERSITY || i == LW_BAR_COLOUR) {
            snprintf(l->value, sizeof l->value, "%.3f", v);
        } else {
            snprintf(l->value, sizeof l->value, "%.1f %%", 100 * v);
        }
        failed += l->applies && !l->pass;
    }
    return failed;
}
