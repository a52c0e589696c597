/* SPDX-License-Identifier: Apache-2.0 */
/* Were the generators trained for as long, and what was kept of them? */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* By how many percent the larger is more than the smaller. */
static double percent_apart(double a, double b)
{
    return a > 0 && b > 0 ? 100 * (LW_MAX(a, b) / LW_MIN(a, b) - 1) : (double)NAN;
}

static lw_compare_kept kept_of(const lw_source *s)
{
    const char *metric = json_string_value(json_object_get(s->best, "metric"));
    const json_t *floor = json_object_get(s->best, "floor");
    lw_compare_kept k = {.step = json_integer_value(json_object_get(s->best, "step")),
                         .value = json_number_value(json_object_get(s->best, "reporting")),
                         .floor = json_is_number(floor) ? json_number_value(floor) : (double)NAN};
    snprintf(k.metric, sizeof k.metric, "%s", metric ? metric : "");
    k.compared = metric && k.step == s->step;
    return k;
}

static lw_compare_work work_of(const lw_source *a, const compare_other *o)
{
    const lw_source *b = o->source;
    lw_compare_work w = {.name = o->name,
                         .drift = a->work,
                         .other = b->work,
                         .kept_drift = kept_of(a),
                         .kept_other = kept_of(b),
                         .in_turns = a->in_turns && b->in_turns,
                         .wall_percent = percent_apart(a->work.wall, b->work.wall),
                         .cpu_percent = percent_apart(a->work.cpu, b->work.cpu)};
    w.known = !isnan(w.wall_percent) && !isnan(w.cpu_percent);
    w.equal = w.known && w.wall_percent <= LW_EQUAL_WORK_PERCENT &&
              w.cpu_percent <= LW_EQUAL_WORK_PERCENT;
    return w;
}

void lw_compare_work_of(comparing *w)
{
    for (int i = 0; i < w->n_others; i++)
        w->out->work[i] = work_of(w->drift, &w->other[i]);
}

static void kept_text(const lw_compare_kept *k, const char *name, lw_str *out)
{
    char value[64];
    if (k->metric[0])
        lw_str_addf(
            out, " The checkpoint of %s that was kept as the best is of step %lld%s: %s %s.", name,
            (long long)k->step, k->compared ? ", the one compared" : ", not the one compared",
            k->metric, lw_compare_kept_value(value, k));
}

const char *lw_compare_kept_value(char buf[64], const lw_compare_kept *k)
{
    int n = snprintf(buf, 64, "%.3g", k->value);
    if (isfinite(k->floor))
        snprintf(buf + n, 64 - (size_t)n, " (real: %.3g)", k->floor);
    return buf;
}

static void times_text(const lw_compare_work *w, lw_str *out)
{
    char t[4][32];
    if (!w->known) {
        lw_str_add(out, "How long the two were trained is not known: whether quality is compared "
                        "at equal work cannot be said.");
        return;
    }
    lw_str_addf(out,
                "Training steps took drift %s and %s %s by the clock (%.1f %% apart), %s and %s "
                "of processor time (%.1f %%); %s.",
                lw_fmt_time(t[0], w->drift.wall), w->name, lw_fmt_time(t[1], w->other.wall),
                w->wall_percent, lw_fmt_time(t[2], w->drift.cpu), lw_fmt_time(t[3], w->other.cpu),
                w->cpu_percent,
                w->in_turns ? "the two took turns on the machine"
                            : "the two were trained one apart from the other");
    if (!w->equal)
        lw_str_addf(out, " That is more than %g %%: quality is not compared at equal work.",
                    (double)LW_EQUAL_WORK_PERCENT);
}

void lw_compare_work_text(const lw_compare_work *w, int n, lw_str *out)
{
    bool kept = w[0].kept_drift.metric[0];
    for (int i = 0; i < n; i++) {
        lw_str_add(out, i ? " " : "");
        times_text(&w[i], out);
    }
    kept_text(&w[0].kept_drift, "drift", out);
    for (int i = 0; i < n; i++) {
        kept_text(&w[i].kept_other, w[i].name, out);
        kept |= w[i].kept_other.metric[0] != 0;
    }
    if (kept)
        lw_str_add(out, " Held-out distances are told on the half of the held-out pictures that "
                        "the checkpoint was not chosen by.");
}
