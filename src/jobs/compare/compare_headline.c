/* SPDX-License-Identifier: Apache-2.0 */
/* What the comparison found: each side at its best, differences only beyond chance. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* ---- one setting against another -------------------------------------------------------- */

static lw_interval accepted_of(const lw_score *s)
{
    return lw_share_interval(s->strict.accepted_count, s->n, LW_Z_95);
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
    double by = w->out->floor_few - p->floor;
    return (lw_interval){f->value + by, f->low + by, f->high + by};
}

static lw_operating_point point_of(const comparing *w, const compare_entry *e, bool by_acceptance)
{
    int64_t n = e->score.n;
    const lw_score *drift = lw_compare_sized(w, COMPARE_DRIFT, COMPARE_DRIFT_FEW, n),
                   *real = lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW,
                                            LW_MIN(n, w->real_set.n));
    LW_ASSERT(drift && real, "no scores of %lld pictures", (long long)n);
    lw_operating_point p = {.how = e->how,
                            .score = e->score,
                            .drift = *drift,
                            .floor = real->fd.value,
                            .ratio = (double)NAN};
    if (by_acceptance)
        p.accepted = beyond_chance(accepted_of(&e->score), accepted_of(drift));
    p.frechet = -beyond_chance(e->score.fd, drift->fd);
    return p;
}

/* Drift's quality, by another, with as many pictures. */
static bool is_reached(const lw_operating_point *p, bool by_acceptance)
{
    return !is_farther(p->score.fd, p->drift.fd) &&
           (!by_acceptance || !is_accepted_less(accepted_of(&p->score), accepted_of(&p->drift)));
}

/* ---- choosing --------------------------------------------------------------------------- */

/* Fewer evaluations; of as many, those that draw no noise. */
static bool is_cheaper(const comparing *w, const lw_operating_point *a, const lw_operating_point *b)
{
    (void)w;
    return a->how.evaluations < b->how.evaluations ||
           (a->how.evaluations == b->how.evaluations && a->how.sampler != LW_SAMPLER_ANCESTRAL &&
            b->how.sampler == LW_SAMPLER_ANCESTRAL);
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

/* Drift's rows are of as many pictures, one evaluation each: of those that no other beats the first. */
void lw_compare_choose_drift(comparing *w)
{
    lw_operating_point p[COMPARE_ENTRIES];
    compare_entry *row[COMPARE_ENTRIES];
    int n = 0;
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_DRIFT || w->entry[i].kind == COMPARE_GUIDED) {
            row[n] = &w->entry[i];
            p[n++] = (lw_operating_point){.how = {.evaluations = 1}, .score = w->entry[i].score};
            w->entry[i].kind = COMPARE_GUIDED;
        }
    LW_ASSERT(n > 0, "%d scores without drift's", w->n_entries);
    compare_entry *best = row[best_of(w, p, n, w->out->judged && w->out->exam.fit) - p];
    best->kind = COMPARE_DRIFT;
    w->out->drift = best->score;
    w->out->drift_alpha = best->how.alpha;
}

/* A setting that the headline names is timed itself: another sampler makes other moves. */
static void time_too(compare_other *o, lw_compare_setting how)
{
    for (int i = 0; i < o->n_timed; i++)
        if (lw_compare_same(o->timed[i], how))
            return;
    if (how.evaluations)
        o->timed[o->n_timed++] = how;
}

static void time_all(const comparing *w, compare_other *o, const lw_headline *h)
{
    bool flow = o->kind == COMPARE_FLOW;
    const int32_t *steps = flow ? w->c->flow_steps : w->c->ddim_steps;
    int n = flow ? w->c->n_flow_steps : w->c->n_ddim_steps;
    o->n_timed = 0;
    time_too(o, o->usual);
    for (int i = 0; i < n; i++)
        time_too(o, lw_compare_usual(o, steps[i]));
    time_too(o, h->equal.how);
    time_too(o, h->best.how);
}

static void headline_of(comparing *w, compare_other *o, lw_headline *h)
{
    lw_operating_point p[COMPARE_ENTRIES];
    bool reaches[COMPARE_ENTRIES];
    int n = 0;
    h->by_acceptance = w->out->judged && w->out->exam.fit;
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == o->kind) {
            p[n] = point_of(w, &w->entry[i], h->by_acceptance);
            reaches[n] = is_reached(&p[n], h->by_acceptance);
            n++;
        }
    LW_ASSERT(n > 0, "no scores of %s", o->name);
    h->points = n;
    h->best = *best_of(w, p, n, h->by_acceptance);
    const lw_operating_point *equal = first_of(w, p, reaches, n, is_cheaper);
    if (equal)
        h->equal = *equal;
    time_all(w, o, h);
}

void lw_compare_headline(comparing *w)
{
    for (int i = 0; i < w->n_others; i++)
        headline_of(w, &w->other[i], &w->out->other[i].headline);
}

/* ---- words ------------------------------------------------------------------------------ */

static double ratio_of(const comparing *w, const compare_other *o, lw_compare_setting how)
{
    const lw_latency *l = lw_compare_latency_of(w, o->key, how, 1);
    return l ? l->times_drift : (double)NAN;
}

/* "drift is 3.2 times faster", "1.4 times slower", "as fast". */
static void add_pace(lw_str *s, const char *before, double times, const char *after)
{
    const double by = times < 1 ? 1 / times : times;
    if (!isfinite(by))
        return;
    lw_str_add(s, before);
    if (by < 1.05)
        lw_str_add(s, "as fast");
    else
        lw_str_addf(s, "%.*f times %s", by < 10 ? 1 : 0, by, times < 1 ? "slower" : "faster");
    lw_str_add(s, after);
}

static const char *plural(const lw_operating_point *p)
{
    return p->how.evaluations == 1 ? "" : "s";
}

/* "80 % (76 to 83)" */
static void add_accepted(lw_str *s, const lw_score *of)
{
    const lw_interval i = accepted_of(of);
    lw_str_addf(s, "%.0f %% (%.0f to %.0f)", 100 * i.value, 100 * i.low, 100 * i.high);
}

static void add_distance(lw_str *s, const lw_score *of)
{
    lw_str_addf(s, "%.2f (%.2f to %.2f)", of->fd.value, of->fd.low, of->fd.high);
}

/* "accepted 87 % (84 to 90) against drift's 72 % (68 to 76), Frechet distance ... against ..." */
static void add_values(lw_str *s, const lw_operating_point *p, bool by_acceptance)
{
    if (by_acceptance) {
        lw_str_add(s, "accepted ");
        add_accepted(s, &p->score);
        lw_str_add(s, " against drift's ");
        add_accepted(s, &p->drift);
        lw_str_add(s, ", ");
    }
    lw_str_add(s, "Frechet distance ");
    add_distance(s, &p->score);
    lw_str_add(s, " against ");
    add_distance(s, &p->drift);
    lw_str_addf(s, ", with %lld pictures each (95 %% intervals in brackets)",
                (long long)p->score.n);
}

static void add_best(lw_str *s, const compare_other *o, const lw_headline *h)
{
    const lw_operating_point *b = &h->best;
    int most = LW_MAX(b->accepted, b->frechet), least = LW_MIN(b->accepted, b->frechet);
    char how[64];
    lw_str_addf(s, "At its best (%d evaluation%s, %s), %s is ", b->how.evaluations, plural(b),
                lw_compare_how(how, b->how), o->name);
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

static void add_equal(lw_str *s, const compare_other *o, const lw_headline *h, bool guided)
{
    const lw_operating_point *e = &h->equal;
    char how[64];
    if (!e->how.evaluations) {
        lw_str_addf(s,
                    "%s does not reach drift's quality in any of the %d settings scored "
                    "(evaluations%s sampler%s). ",
                    o->title, h->points, guided ? "," : " and", guided ? " and guidance" : "");
        return;
    }
    lw_str_addf(s, "%s needs %d evaluation%s (%s) to reach drift's quality of one", o->title,
                e->how.evaluations, plural(e), lw_compare_how(how, e->how));
    add_pace(s, "; drift is ", e->ratio, " at equal quality");
    lw_str_add(s, ". ");
}

static void say(const comparing *w, const compare_other *o, const lw_compare_other *found,
                lw_headline *h)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    h->equal.ratio = ratio_of(w, o, h->equal.how);
    h->best.ratio = ratio_of(w, o, h->best.how);
    bool ahead = LW_MAX(h->best.accepted, h->best.frechet) > 0;
    if (ahead) /* first what speaks against drift */
        add_best(&s, o, h);
    add_equal(&s, o, h, w->c->n_guidance_scale > 0);
    if (!ahead)
        add_best(&s, o, h);
    if (w->c->n_alpha)
        lw_str_addf(&s, "Drift is at its best with alpha %g, and so compared. ",
                    lw_compare_alpha(w->out->drift_alpha));
    char usual[64];
    snprintf(usual, sizeof usual, "Beside %s's %d evaluation%s drift is ", o->name,
             o->usual.evaluations, o->usual.evaluations == 1 ? "" : "s");
    add_pace(&s, usual, found->speedup[0], ".");
    snprintf(h->text, sizeof h->text, "%s", lw_str_c(&s));
}

void lw_compare_headline_say(comparing *w)
{
    for (int i = 0; i < w->n_others; i++) {
        lw_compare_other *found = &w->out->other[i];
        say(w, &w->other[i], found, &found->headline);
    }
}
