/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 first, f32 where it decides: which walk is of which kind, and how far bf16 is trusted. */
#include <math.h>

#include "jobs/prove/rank/prove_eval_parts.h"

enum { MEASURED_QUERIES = 64, FEWEST_LOGITS = 64 };

lw_walk_how lw_prove_how(const lw_prove_run *w, const lw_prove_list *l, bool query)
{
    const int32_t every = LW_MAX(w->e->n_queries / MEASURED_QUERIES, 1);
    if (!w->two_stage)
        return LW_WALK_FIRST;
    if (query)
        return l->query % every == 0 ? LW_WALK_BOTH : LW_WALK_EXACT;
    return isfinite(w->e->two_stage.margin.logit) ? LW_WALK_FIRST : LW_WALK_EXACT;
}

/* Too few logits measure nothing: then there is no trust, and all is walked in f32. */
void lw_prove_set_margin(lw_prove_run *w)
{
    lw_prove_two_stage *t = &w->e->two_stage;
    if (!w->two_stage || w->margin_known)
        return;
    w->margin_known = true;
    t->on = true;
    t->measured = lw_walks_see(w->walks);
    const bool enough = t->measured.logits >= FEWEST_LOGITS;
    t->margin.logit = enough ? LW_PROVE_TRUST * t->measured.most.logit : (double)INFINITY;
    t->margin.score = enough ? LW_PROVE_TRUST * t->measured.most.score : (double)INFINITY;
    lw_walks_trust(w->walks, t->margin);
}

/* What the second walk shows of the first. Walks that were left early may have been left at different steps. */
static void compare(lw_prove_run *w, const lw_walk_result *r)
{
    const double off = fabs(r->log_prob - r->walk.before) / r->walk.within;
    if (r->end != LW_PROOF_ABANDONED)
        w->e->two_stage.most.score = LW_MAX(w->e->two_stage.most.score,
                                            off * w->e->two_stage.margin.score);
}

bool lw_prove_again(lw_prove_run *w, const lw_prove_list *l, const lw_prove_scored *s)
{
    const double rounding = 1e-12 * (w->o->penalty + fabs(s->score));
    if (s->r.walk.within > 0)
        compare(w, &s->r);
    /* an embedding's score knows of a walk whether it proved, and bf16 does not change that */
    if (s->r.slack <= 0 || w->o->kge.log_score || fabs(s->score - l->score) > s->r.slack + rounding)
        return false;
    lw_walk *a = &w->again[w->n_again++];
    *a = s->r.walk;
    a->how = LW_WALK_EXACT;
    a->before = s->r.log_prob;
    a->within = s->r.end == LW_PROOF_ABANDONED ? 0 : s->r.slack;
    w->e->two_stage.again++;
    return true;
}

bool lw_prove_margin_fails(lw_prove_run *w)
{
    lw_prove_two_stage *t = &w->e->two_stage;
    if (!t->on)
        return false;
    const lw_walks_seen seen = lw_walks_see(w->walks);
    t->most.logit = LW_MAX(t->most.logit, seen.most.logit);
    t->most.score = LW_MAX(t->most.score, seen.most.score);
    return t->most.logit > t->margin.logit / 2 || t->most.score > t->margin.score / 2;
}
