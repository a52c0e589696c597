/* SPDX-License-Identifier: Apache-2.0 */
/* The page as a whole. */
#include "jobs/mc/mc_page.h"

/* Of exp0's trials. */
static int fill_scores(mc_page *p, lw_str *answer)
{
    lw_mc_page_facts(p);
    lw_mc_page_answer(p, answer);
    lw_mc_page_reliability(p);
    LW_TRY(lw_mc_page_pictures(p));
    lw_mc_page_validity(p);
    return lw_mc_page_scores(p);
}

static int fill(mc_page *p, lw_str *answer)
{
    if (p->n)
        LW_TRY(fill_scores(p, answer));
    lw_mc_page_geometry(p);
    lw_mc_page_angle(p);
    lw_mc_page_errors(p);
    LW_TRY(lw_mc_page_one_pass(p));
    lw_mc_page_ambiguity(p);
    lw_mc_page_costs(p);
    if (p->n)
        lw_mc_page_meaning(p);
    lw_mc_page_again(p);
    return 0;
}

int lw_job_mc_page(const char *output_dir, lw_str *path, lw_str *answer)
{
    LW_CLEANUP(lw_mc_page_clear) mc_page p = {0};
    LW_TRY(lw_mc_page_read(output_dir, &p));
    LW_TRY(lw_html_new("Uncertainty of frozen encoders",
                       "Noisy passes score every picture by how much its features vary. Are the "
                       "scores the same again, and are they of anything?",
                       &p.html));
    LW_TRY(fill(&p, answer));
    lw_path_join(path, output_dir, "report.html");
    return path->failed ? LW_ENOMEM : lw_html_save(p.html, lw_str_c(path));
}
