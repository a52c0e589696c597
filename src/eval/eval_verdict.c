/* SPDX-License-Identifier: Apache-2.0 */
/* What several networks say of several rows, and who does not belong among honest ones. */
#include "eval/eval_verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define NO_DISTANCE 1e-6 /* of the real one: less is not told from it */

/* ---- levels ---------------------------------------------------------------------------------- */

static bool is_distance(double x)
{
    return isfinite(x) && x >= 0;
}

int lw_verdict_level(double frechet, double sliced, double frechet_real, double sliced_real,
                     double *out)
{
    if (!is_distance(frechet) || !is_distance(sliced) || !is_distance(frechet_real) ||
        !is_distance(sliced_real))
        return lw_fail(LW_ENUMERIC,
                       "verdict: distances %g and %g (real pictures %g and %g) are not all numbers "
                       "from 0 on",
                       frechet, sliced, frechet_real, sliced_real);
    if (frechet_real == 0 || sliced_real == 0)
        return lw_fail(LW_ENUMERIC,
                       "verdict: real pictures lie at distance 0 from real pictures: this network "
                       "tells nothing apart");
    *out = 0.5 * (0.5 * log(fmax(frechet / frechet_real, NO_DISTANCE)) +
                  log(fmax(sliced / sliced_real, NO_DISTANCE)));
    return 0;
}

/* Of x [n], less entry `but` (n: none). */
static double median_but(const double *x, int32_t n, int32_t but)
{
    double v[LW_VERDICT_MOST];
    int32_t m = 0;
    for (int32_t i = 0; i < n; i++)
        if (i != but)
            v[m++] = x[i];
    lw_sort(v, (size_t)m);
    return m == 0 ? 0 : m % 2 ? v[m / 2] : 0.5 * (v[m / 2 - 1] + v[m / 2]);
}

/* ---- the rule -------------------------------------------------------------------------------- */

static double shortfall(const lw_verdict_rule *r, const double *level, int32_t *lowest)
{
    static const double chance = 4;
    double z[LW_VERDICT_MOST], worst = -(double)INFINITY;
    for (int32_t k = 0; k < r->networks; k++)
        z[k] = level[k] / r->scale[k];
    for (int32_t k = 0; k < r->networks; k++) {
        double m = median_but(z, r->networks, k), u = (m - z[k]) / (fmax(m, 0) + chance * r->noise);
        if (u > worst) {
            worst = u;
            *lowest = k;
        }
    }
    return worst;
}

/* How strongly each network answers to damage, mean 1; one that hardly answers counts as a tenth. */
static void find_scales(lw_verdict_rule *r, const double *damaged, int32_t n)
{
    double sum = 0;
    for (int32_t k = 0; k < r->networks; k++) {
        r->scale[k] = 0;
        for (int32_t i = 0; i < n; i++)
            r->scale[k] += fmax(damaged[i * r->networks + k], 0) / n;
        sum += r->scale[k] / r->networks;
    }
    for (int32_t k = 0; k < r->networks; k++)
        r->scale[k] = sum > 0 ? fmax(r->scale[k] / sum, 0.1) : 1;
}

static double noise_of(const lw_verdict_rule *r, const double *whole, int32_t n)
{
    double square = 0;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < r->networks; k++) {
            double z = whole[i * r->networks + k] / r->scale[k];
            square += z * z / ((double)n * r->networks);
        }
    return fmax(sqrt(square), 1e-3);
}

int lw_verdict_learn(int32_t networks, const double *damaged, int32_t n_damaged,
                     const double *whole, int32_t n_whole, lw_verdict_rule *out)
{
    enum { LEAST_DAMAGED = 10, LEAST_WHOLE = 5 };
    static const double one_in_thousand = 3.09;
    lw_verdict_rule r = {
        .networks = networks, .sets = n_damaged + n_whole, .worst = -(double)INFINITY};
    double sum = 0, square = 0;
    int32_t lowest = 0;
    if (networks < LW_VERDICT_LEAST || networks > LW_VERDICT_MOST)
        return lw_fail(LW_EUSAGE, "verdict: %d networks: at least %d can outvote one",
                       (int)networks, LW_VERDICT_LEAST);
    if (n_damaged < LEAST_DAMAGED || n_whole < LEAST_WHOLE)
        return lw_fail(LW_EUSAGE, "verdict: %d damaged and %d whole sets are too few for a rule",
                       (int)n_damaged, (int)n_whole);
    find_scales(&r, damaged, n_damaged);
    r.noise = noise_of(&r, whole, n_whole);
    for (int32_t i = 0; i < r.sets; i++) {
        const double *level = i < n_damaged ? damaged + i * networks
                                            : whole + (i - n_damaged) * networks;
        double u = shortfall(&r, level, &lowest);
        sum += u;
        square += u * u;
        r.worst = fmax(r.worst, u);
    }
    r.mean = sum / r.sets;
    r.sd = sqrt(fmax(square / r.sets - r.mean * r.mean, 0) * r.sets / (r.sets - 1));
    r.limit = fmax(r.worst, r.mean + one_in_thousand * r.sd);
    r.blind = !(r.limit < LW_VERDICT_BLIND);
    *out = r;
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int fill_levels(int32_t networks, const lw_verdict_cell *c, double *out)
{
    for (int32_t k = 0; k < networks; k++)
        LW_TRY(lw_verdict_level(c[k].frechet, c[k].sliced, c[k].frechet_real, c[k].sliced_real,
                                &out[k]));
    return 0;
}

static int fill_number(int32_t networks, const lw_verdict_cell *c, int32_t replicates, double level,
                       lw_verdict_row *out)
{
    static const double above = 100; /* intervals of replicates end at 0, levels do not */
    double value = lw_mean_of(out->level, (size_t)networks), l;
    bool drawn = replicates > 0;
    for (int32_t k = 0; k < networks; k++)
        drawn = drawn && c[k].frechet_draws && c[k].sliced_draws;
    out->number = (lw_interval){value, value, value};
    if (!drawn)
        return 0;
    LW_CLEANUP(lw_free) double *means = lw_calloc((size_t)replicates, sizeof *means);
    if (!means)
        return LW_ENOMEM;
    for (int32_t r = 0; r < replicates; r++) {
        means[r] = above;
        for (int32_t k = 0; k < networks; k++) {
            LW_TRY(lw_verdict_level(c[k].frechet_draws[r], c[k].sliced_draws[r], c[k].frechet_real,
                                    c[k].sliced_real, &l));
            means[r] += l / networks;
        }
    }
    LW_TRY(lw_interval_of_replicates(value + above, means, replicates, level, &out->number));
    out->number = (lw_interval){value, out->number.low - above, out->number.high - above};
    return 0;
}

/* 1 + counted rows that are nearer to real than row r, ties by half. */
static double rank_of(const lw_verdict_row *rows, int32_t n, const bool *counted, int32_t r,
                      int32_t k)
{
    double rank = 1;
    for (int32_t i = 0; i < n; i++) {
        if (i == r || (counted && !counted[i]))
            continue;
        double d = rows[i].level[k] - rows[r].level[k];
        rank += d < 0 ? 1 : d > 0 ? 0 : 0.5;
    }
    return rank;
}

static void find_apart(int32_t networks, lw_verdict_row *rows, int32_t n, const bool *counted,
                       int32_t r)
{
    double rank[LW_VERDICT_MOST], most = 0;
    lw_verdict_row *out = &rows[r];
    out->apart = -1;
    for (int32_t k = 0; k < networks; k++)
        rank[k] = rank_of(rows, n, counted, r, k);
    for (int32_t k = 0; k < networks && networks > 1; k++) {
        double rest = median_but(rank, networks, k), off = fabs(rank[k] - rest);
        if (off <= most)
            continue;
        most = off;
        out->apart = k;
        out->rank = rank[k];
        out->rank_rest = rest;
    }
}

int lw_verdict_rows(int32_t networks, int32_t rows, const lw_verdict_cell *cells,
                    const bool *counted, int32_t replicates, double level,
                    const lw_verdict_rule *rule, lw_verdict_row *out)
{
    if (networks < 1 || networks > LW_VERDICT_MOST)
        return lw_fail(LW_EUSAGE, "verdict: %d networks, must be 1 to %d", (int)networks,
                       LW_VERDICT_MOST);
    LW_ASSERT(!rule || rule->networks == networks, "a rule of %d networks for %d", rule->networks,
              networks);
    for (int32_t r = 0; r < rows; r++) {
        const lw_verdict_cell *c = cells + (int64_t)r * networks;
        out[r] = (lw_verdict_row){.lowest = -1};
        LW_TRY(fill_levels(networks, c, out[r].level));
        LW_TRY(fill_number(networks, c, replicates, level, &out[r]));
    }
    for (int32_t r = 0; r < rows; r++) {
        find_apart(networks, out, rows, counted, r);
        if (!rule || rule->sets == 0)
            continue;
        out[r].judged = true;
        out[r].shortfall = shortfall(rule, out[r].level, &out[r].lowest);
        out[r].suspect = !rule->blind && out[r].shortfall > rule->limit;
    }
    return 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* 1 where both distances are 0: what is in the training set and in the reference says nothing. */
static double ratio_of(const lw_nearness *d)
{
    return d->reference > 0 ? d->training / d->reference : 1;
}

/* What unseen pictures say: the ratio of one in ten, and the distance that nine in ten keep. */
static int copy_limits(const lw_nearness *unseen, int64_t m, double *ratio, double *far)
{
    enum { ONE_IN = 10 };
    LW_CLEANUP(lw_free) double *x = lw_calloc((size_t)m, sizeof *x);
    if (!x)
        return LW_ENOMEM;
    for (int64_t i = 0; i < m; i++)
        x[i] = ratio_of(unseen + i);
    lw_sort(x, (size_t)m);
    *ratio = x[m / ONE_IN];
    for (int64_t i = 0; i < m; i++)
        x[i] = unseen[i].training;
    lw_sort(x, (size_t)m);
    *far = x[m - 1 - m / ONE_IN];
    return 0;
}

typedef struct copy_vote {
    int64_t which;
    bool copy;
} copy_vote;

static int compare_votes(const void *a, const void *b)
{
    const copy_vote *x = a, *y = b;
    return (x->which > y->which) - (x->which < y->which);
}

static void count_votes(copy_vote *v, int64_t n, lw_copying *c)
{
    qsort(v, (size_t)n, sizeof *v, compare_votes);
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t copies = 0;
        for (end = i; end < n && v[end].which == v[i].which; end++)
            copies += v[end].copy;
        c->near += copies;
        c->voters++;
        c->ayes += 2 * copies > end - i;
    }
}

int lw_copying_of(const lw_nearness *made, int64_t n, const lw_nearness *unseen, int64_t m,
                  lw_copying *out)
{
    enum { LEAST = 20 };
    static const double sure = 3.29, limit = 0.30;
    double far;
    lw_copying c = {.n = n};
    if (m < LEAST)
        return lw_fail(LW_EUSAGE, "copies: %lld unseen real pictures are too few, %d are needed",
                       (long long)m, LEAST);
    LW_CLEANUP(lw_free) copy_vote *v = lw_calloc((size_t)LW_MAX(n, 1), sizeof *v);
    if (!v)
        return LW_ENOMEM;
    LW_TRY(copy_limits(unseen, m, &c.ratio, &far));
    for (int64_t i = 0; i < n; i++)
        v[i] = (copy_vote){made[i].which, made[i].training <= far && ratio_of(made + i) < c.ratio};
    count_votes(v, n, &c);
    c.share = lw_share_interval(c.ayes, c.voters, sure);
    c.suspect = c.share.low > limit;
    *out = c;
    return 0;
}
