/* SPDX-License-Identifier: Apache-2.0 */
/* How the others make their pictures: a sampler, evaluations, guidance; and what that is called. */
#include "jobs/compare/compare_parts.h"

#include <stdio.h>
#include <string.h>

bool lw_compare_same(lw_compare_setting a, lw_compare_setting b)
{
    return a.evaluations == b.evaluations && a.sampler == b.sampler &&
           a.guidance_scale == b.guidance_scale;
}

/* Guided in the steps of its usual setting. */
bool lw_compare_is_guided(const comparing *w, const compare_entry *e)
{
    for (int i = 0; i < w->n_others; i++)
        if (w->other[i].kind == e->kind)
            return e->how.guidance_scale > 0.0 &&
                   e->how.evaluations == 2 * w->other[i].usual.evaluations;
    return false;
}

bool lw_compare_is_flow(lw_compare_setting how)
{
    return how.sampler == LW_SAMPLER_EULER || how.sampler == LW_SAMPLER_HEUN;
}

const char *lw_compare_sampler_name(lw_compare_setting how)
{
    static const char *const names[LW_SAMPLER_KINDS] = {[LW_SAMPLER_ANCESTRAL] = "ancestral",
                                                        [LW_SAMPLER_DPM_SOLVER] = "DPM-Solver",
                                                        [LW_SAMPLER_EULER] = "Euler",
                                                        [LW_SAMPLER_HEUN] = "Heun"};
    return names[how.sampler] ? names[how.sampler] : "DDIM";
}

lw_compare_setting lw_compare_usual(const compare_other *o, int32_t evaluations)
{
    return (lw_compare_setting){.evaluations = evaluations, .sampler = o->usual.sampler};
}

lw_compare_setting lw_compare_guided(const compare_other *o, int32_t steps, double scale)
{
    lw_compare_setting how = lw_compare_usual(o, 2 * steps);
    how.guidance_scale = scale;
    return how;
}

/* Behind the text in buf. */
static const char *add_guidance(char buf[64], lw_compare_setting how)
{
    size_t n = strlen(buf);
    if (how.guidance_scale > 0.0)
        snprintf(buf + n, 64 - n, ", guidance scale %g", how.guidance_scale);
    return buf;
}

const char *lw_compare_how(char buf[64], lw_compare_setting how)
{
    snprintf(buf, 64, "%s", lw_compare_sampler_name(how));
    return add_guidance(buf, how);
}

/* Of samplers that are not a method's first. */
static const char *sampler_mark(lw_compare_setting how)
{
    static const char *const marks[LW_SAMPLER_KINDS] = {[LW_SAMPLER_ANCESTRAL] = ", ancestral",
                                                        [LW_SAMPLER_DPM_SOLVER] = ", DPM-Solver",
                                                        [LW_SAMPLER_HEUN] = ", Heun"};
    return marks[how.sampler] ? marks[how.sampler] : "";
}

const char *lw_compare_mark(char buf[64], lw_compare_setting how)
{
    snprintf(buf, 64, "%s", sampler_mark(how));
    return add_guidance(buf, how);
}

const char *lw_compare_name(char buf[64], lw_compare_setting how)
{
    snprintf(buf, 64, "%s, %d evaluation%s%s", lw_compare_is_flow(how) ? "flow" : "DDPM",
             how.evaluations, how.evaluations == 1 ? "" : "s", sampler_mark(how));
    return add_guidance(buf, how);
}

double lw_compare_alpha(double alpha)
{
    return alpha > 0.0 ? alpha : 1.0;
}
