/* SPDX-License-Identifier: Apache-2.0 */
/* Were both generators trained for as long? */
#include <math.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* By how many percent the larger is more than the smaller. */
static double percent_apart(double a, double b)
{
    return a > 0 && b > 0 ? 100 * (LW_MAX(a, b) / LW_MIN(a, b) - 1) : (double)NAN;
}

void lw_compare_work_of(comparing *w)
{
    const lw_source *a = w->drift, *b = w->ddpm;
    lw_compare_work *out = &w->out->work;
    *out = (lw_compare_work){.drift = a->work,
                             .ddpm = b->work,
                             .in_turns = a->in_turns && b->in_turns,
                             .wall_percent = percent_apart(a->work.wall, b->work.wall),
                             .cpu_percent = percent_apart(a->work.cpu, b->work.cpu)};
    out->known = !isnan(out->wall_percent) && !isnan(out->cpu_percent);
    out->equal = out->known && out->wall_percent <= LW_EQUAL_WORK_PERCENT &&
                 out->cpu_percent <= LW_EQUAL_WORK_PERCENT;
}

void lw_compare_work_text(const lw_compare_work *w, lw_str *out)
{
    char t[4][32];
    if (!w->known) {
        lw_str_add(out, "How long the two were trained is not known: whether quality is compared "
                        "at equal work cannot be said.");
        return;
    }
    lw_str_addf(out,
                "Training steps took drift %s and DDPM %s by the clock (%.1f %% apart), %s and %s "
                "of processor time (%.1f %%); %s.",
                lw_fmt_time(t[0], w->drift.wall), lw_fmt_time(t[1], w->ddpm.wall), w->wall_percent,
                lw_fmt_time(t[2], w->drift.cpu), lw_fmt_time(t[3], w->ddpm.cpu), w->cpu_percent,
                w->in_turns ? "the two took turns on the machine"
                            : "the two were trained one apart from the other");
    if (!w->equal)
        lw_str_addf(out, " That is more than %g %%: quality is not compared at equal work.",
                    (double)LW_EQUAL_WORK_PERCENT);
}
