/* SPDX-License-Identifier: Apache-2.0 */
/* What the comparison found: each side at its best, differences only beyond chance. */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* ---- one setting against another -------------------------------------------------------- */

static lw_interval accepted_of(const lw_score *s)
{
    return lw_share_interval(s->strict.accepted_count, s->n, 1.959964);
}

/* 1: a is larger beyond chance, -1: smaller, 0: neither. */
static int beyond_chance(lw_interval a, lw_interval b)
{
    lw_interval d = lw_interval_difference(a, b);
    return d.low > 0 ? 1 : d.high < 0 ? -1 : 0;
}

/* Where few pictures leave much to chance, nothing is worse beyond it. Then what another seed of
 * the training might do must do: five points of acceptance, a fifth of the distance. */
static const double accepted_slack = 0.05, frechet_slack = 1.2;

static bool is_accepted_less(lw_interval a, lw_interval b)
{
    return beyond_chance(a, b) < 0 || a.value < b.value - accepted_slack;
}

static bool is_farther(lw_interval a, lw_interval b)
{
    return beyond_chance(a, b) > 0 || a.value > b.value * frechet_slack;
}

/* Moved by what the number of pictures does to real ones, as if there were as many as in the first
 * setting: sets of different sizes are then nearly comparable. */
static lw_interval moved(const comparing *w, const lw_operating_point *p)
{
    const lw_interval *f = &p->score.fd;
    double by = w->out->floor_ddpm - p->floor;
    return (lw_interval){f->value + by, f->low + by, f->high + by};
}

static lw_operating_point point_of(const comparing *w, const compare_entry *e)
{
    int64_t n = e->score.n;
    const lw_score *drift = lw_compare_sized(w, COMPARE_DRIFT, COMPARE_DRIFT_FEW, n),
                   *real = lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW,
                                            LW_MIN(n, w->real_set.n));
    LW_ASSERT(drift && real, "no scores of %lld pictures", (long long)n);
    lw_operating_point p = {.evaluations = e->evaluations,
                            .ancestral = e->ancestral,
                            .score = e->score,
                            .drift = *drift,
                            .floor = real->fd.value,
                            .ratio = (double)NAN};
    if (w->out->headline.by_acceptance)
        p.accepted = beyond_chance(accepted_of(&e->score), accepted_of(drift));
    p.frechet = -beyond_chance(e->score.fd, drift->fd);
    return p;
}

/* Drift's quality, by DDPM, with as many pictures. */
static bool is_reached(const lw_operating_point *p, bool by_acceptance)
{
    return !is_farther(p->score.fd, p->drift.fd) &&
           (!by_acceptance || !is_accepted_less(accepted_of(&p->score), accepted_of(&p->drift)));
}

/* ---- choosing --------------------------------------------------------------------------- */

/* Fewer evaluations; of as many, DDIM's, whose evaluations draw no noise. */
static bool is_cheaper(const comparing *w, const lw_operating_point *a, const lw_operating_point *b)
{
    (void)w;
    return a->evaluations < b->evaluations ||
           (a->evaluations == b->evaluations && !a->ancestral && b->ancestral);
}

static bool is_accepted_more(const comparing *w, const lw_operating_point *a,
                             const lw_operating_point *b)
{
    (void)w;
    return a->score.strict.accepted > b->score.strict.accepted;
}

static bool is_nearer(const comparing *w, const lw_operating_point *a, const lw_operating_point *b)
{
    return moved(w, a).value < moved(w, b).value;
}

typedef bool order_fn(const comparing *w, const lw_operating_point *a, const lw_operating_point *b);

static const lw_operating_point *first_of(const comparing *w, const lw_operating_point *p,
                                          const bool *in, int n, order_fn *before)
{
    const lw_operating_point *best = NULL;
    for (int i = 0; i < n; i++)
        if (in[i] && (!best || before(w, &p[i], best)))
            best = &p[i];
    return best;
}

/* Among those not accepted less than the most accepted one, and of them not farther than the
 * nearest, the cheapest. */
static const lw_operating_point *best_of(const comparing *w, const lw_operating_point *p, int n,
                                         bool by_acceptance)
{
    bool in[COMPARE_ENTRIES];
    const lw_operating_point *top;
    for (int i = 0; i < n; i++)
        in[i] = true;
    if (by_acceptance) {
        top = first_of(w, p, in, n, is_accepted_more);
        for (int i = 0; i < n; i++)
            in[i] = !is_accepted_less(accepted_of(&p[i].score), accepted_of(&top->score));
    }
    top = first_of(w, p, in, n, is_nearer);
    for (int i = 0; i < n; i++)
        in[i] = in[i] && !is_farther(moved(w, &p[i]), moved(w, top));
    return first_of(w, p, in, n, is_cheaper);
}

/* Latency is to be measured at these evaluations too, where there is room. */
static void time_too(comparing *w, int32_t evaluations)
{
    lw_compare_config *c = &w->own;
    for (int i = 0; i < c->n_ddim_steps; i++)
        if (c->ddim_steps[i] == evaluations)
            return;
    if (evaluations && c->n_ddim_steps < LW_COMPARE_MAX_STEPS)
        c->ddim_steps[c->n_ddim_steps++] = evaluations;
}

void lw_compare_headline(comparing *w)
{
    lw_headline *h = &w->out->headline;
    lw_operating_point p[COMPARE_ENTRIES];
    bool reaches[COMPARE_ENTRIES];
    int n = 0;
    h->by_acceptance = w->out->judged && w->out->exam.fit;
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_DDPM) {
            p[n] = point_of(w, &w->entry[i]);
            reaches[n] = is_reached(&p[n], h->by_acceptance);
            n++;
        }
    h->points = n;
    h->best = *best_of(w, p, n, h->by_acceptance);
    const lw_operating_point *equal = first_of(w, p, reaches, n, is_cheaper);
    if (equal)
        h->equal = *equal;
    time_too(w, h->equal.evaluations);
    time_too(w, h->best.evaluations);
}

/* ---- words ------------------------------------------------------------------------------ */

static double ratio_of(const comparing *w, int32_t evaluations)
{
    const lw_latency *l = lw_compare_latency_of(w, "ddpm", evaluations, 1);
    return l ? l->times_drift : (double)NAN;
}

static void add_ratio(lw_str *s, const char *before, double ratio, const char *after)
{
    if (isfinite(ratio))
        lw_str_addf(s, "%s%.*f times%s", before, ratio < 10 ? 1 : 0, ratio, after);
}

const char *lw_compare_sampler_name(bool ancestral)
{
    return ancestral ? "ancestral" : "DDIM";
}

static const char *plural(const lw_operating_point *p)
{
    return p->evaluations == 1 ? "" : "s";
}

/* "accepted 87 % against 72 %, Frechet distance 0.09 against 0.13" */
static void add_values(lw_str *s, const lw_operating_point *p, bool by_acceptance)
{
    if (by_acceptance)
        lw_str_addf(s, "accepted %.0f %% against drift's %.0f %%, ", 100 * p->score.strict.accepted,
                    100 * p->drift.strict.accepted);
    lw_str_addf(s, "Frechet distance %.2f against %.2f with %lld pictures each", p->score.fd.value,
                p->drift.fd.value, (long long)p->score.n);
}

static void add_best(lw_str *s, const lw_headline *h)
{
    const lw_operating_point *b = &h->best;
    int most = LW_MAX(b->accepted, b->frechet), least = LW_MIN(b->accepted, b->frechet);
    lw_str_addf(s, "At its best (%d evaluation%s, %s), DDPM is ", b->evaluations, plural(b),
                lw_compare_sampler_name(b->ancestral));
    if (most > 0 && least >= 0)
        lw_str_add(s, "better than drift: ");
    else if (most > 0)
        lw_str_addf(s, "ahead of drift in %s and behind in %s: ",
                    b->accepted > 0 ? "acceptance" : "Frechet distance",
                    b->accepted > 0 ? "Frechet distance" : "acceptance");
    else
        lw_str_add(s, least < 0 ? "not as good as drift: " : "as good as drift: ");
    add_values(s, b, h->by_acceptance);
    lw_str_add(s, ". ");
}

static void add_equal(lw_str *s, const lw_headline *h)
{
    const lw_operating_point *e = &h->equal;
    if (!e->evaluations) {
        lw_str_addf(s,
                    "DDPM does not reach drift's quality in any of the %d settings scored "
                    "(evaluations and sampler). ",
                    h->points);
        return;
    }
    lw_str_addf(s, "DDPM needs %d evaluation%s (%s) to reach drift's quality of one",
                e->evaluations, plural(e), lw_compare_sampler_name(e->ancestral));
    add_ratio(s, "; drift is ", e->ratio, " faster at equal quality");
    lw_str_add(s, ". ");
}

void lw_compare_headline_say(comparing *w)
{
    lw_headline *h = &w->out->headline;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    h->equal.ratio = ratio_of(w, h->equal.evaluations);
    h->best.ratio = ratio_of(w, h->best.evaluations);
    bool ahead = LW_MAX(h->best.accepted, h->best.frechet) > 0;
    if (ahead) /* first what speaks against drift */
        add_best(&s, h);
    add_equal(&s, h);
    if (!ahead)
        add_best(&s, h);
    char usual[64];
    snprintf(usual, sizeof usual, "Beside DDPM's %d evaluations drift is ", w->c->ddim_steps[0]);
    add_ratio(&s, usual, w->out->speedup[0], " faster.");
    snprintf(h->text, sizeof h->text, "%s", lw_str_c(&s));
}
