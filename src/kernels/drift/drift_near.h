/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: near pairs, noted by the first pass so that no other looks at all distances again.
 *
 * Only pairs whose affinity is above the floor are needed once the normalisers are known, and few
 * are (see drift_field.h). With h any number, R and C sums of e^{-b (d - h)}, these are pairs with
 *
 *   d_ij < max_k (h - log(floor) / b - log(R_i) / 2 b - log(C_j) / 2 b)        b of temperature k
 *
 * The first pass does not know R and C yet, but what they are about. By Jensen, as e^{-b d} is
 * convex in d and d concave in d^2,
 *
 *   log C = log n - b (r - h) + D,   r^2 = mean of d^2 over the n terms,   D >= 0
 *
 * where r is known without looking at pairs, and D, about b^2 / 2 times the variance of d, hardly
 * differs from one vector to the next: so the least of a few stands for all. The limit becomes
 *
 *   d_ij < (r_i + r_j) / 2 + one number for all pairs of generated samples, another for the others
 *
 * A limit that is too high costs notes, one that is too low would lose pairs: when R and C are
 * known, drift_near_check finds the tiles where D was less than taken for granted, and these are
 * looked at again, as are tiles whose notes found no room, and all where sums at the guess do not
 * serve.
 *
 *   4,096 x 8,192 normal vectors, temperatures 0.02, 0.05, 0.2:   above the floor, and noted
 *       128 channels     D 3.6 +- 0.2 at 0.02                     1.7 %, 4.2 %
 *       768 channels     D 0.62 +- 0.02                           1.0 %, 1.7 %
 *
 * A pair of generated samples is met and noted once, in the strip of the first. As R >= C (R has
 * the terms of C, those of generated ones, and more), limits of C serve it both ways.
 */
#ifndef LW_KERNELS_DRIFT_NEAR_H
#define LW_KERNELS_DRIFT_NEAR_H

#include "kernels/drift/drift_sums.h"

#define DRIFT_NEAR_NONE UINT32_MAX /* in drift_near.from: a tile without notes is there */

/* Sums that are looked at: of columns of generated targets, of rows, of columns of others. */
enum { DRIFT_OWN, DRIFT_ROW, DRIFT_OTHER };

/* What decides on pairs. */
typedef struct drift_near_rule {
    float own, other; /* of pairs with a generated target, and with another */
    float most[LW_DRIFT_NEAR_KINDS]
              [LW_DRIFT_MAX_TAU]; /* what -(log C) / 2 b - (r - h) / 2 may be */
} drift_near_rule;
_Static_assert(sizeof(drift_near_rule) <= LW_DRIFT_NEAR_RULE * sizeof(float),
               "lw_drift_map.near_rule");

/* Temperatures at a guess of S, which also serves as h. */
typedef struct drift_near_guess {
    drift_taus t;
    float h;
} drift_near_guess;

static drift_near_guess drift_near_guess_of(const drift_job *q, double guess)
{
    drift_job at = *q;
    lw_drift_rule_of(&at.rule, q->s, guess);
    return (drift_near_guess){drift_taus_of(&at), (float)guess};
}

/* Mean squared distance of a group's pairs by weight, known without looking at pairs; their weight. */
static double drift_mean_square(const drift_job *q, double *weight)
{
    ptrdiff_t n = q->s->n, cp = q->d.cp;
    double xx = 0, tt = 0, xt = 0;
    *weight = 0;
    for (ptrdiff_t j = 0; j < q->d.m; j++) {
        xx += j < n ? (double)q->tn[j] : 0;
        tt += (double)q->w[j] * (double)q->tn[j];
        *weight += (double)q->w[j];
    }
    for (ptrdiff_t c = 0; c < cp; c++)
        xt += (double)q->base[2 * cp + c] * (double)(q->base[c] + q->base[cp + c]);
    return xx / (double)n + tt / *weight - 2 * xt / ((double)n * *weight);
}

/* Means of a packed group's generated samples and of all its targets into mean [2][cp]; behind
 * each channel row the mean squared distance to it. */
static void drift_near_means(const drift_job *q, float *mean)
{
    ptrdiff_t n = q->s->n, cp = q->d.cp;
    float *own = mean, *all = mean + cp + 16;
    const float *positive = q->base + cp, *generated = positive + cp;
    double norms = 0, own_norms = 0, square = 0, own_square = 0;
    for (ptrdiff_t c = 0; c < cp; c++) {
        own[c] = generated[c];
        all[c] = generated[c] + positive[c];
    }
    for (ptrdiff_t j = n; j < q->d.neg; j++)
        for (ptrdiff_t c = 0; c < cp; c++)
            all[c] += q->t[j * q->d.pitch + c];
    for (ptrdiff_t j = 0; j < q->d.m; j++) {
        norms += (double)q->tn[j] / (double)q->d.m;
        own_norms += j < n ? (double)q->tn[j] / (double)n : 0;
    }
    for (ptrdiff_t c = 0; c < cp; c++) {
        own[c] /= (float)n;
        all[c] /= (float)q->d.m;
        own_square += (double)own[c] * (double)own[c];
        square += (double)all[c] * (double)all[c];
    }
    own[cp] = (float)fmax(own_norms - own_square, 0);
    all[cp] = (float)fmax(norms - square, 0);
}

/* r of target j: over the vectors of a mean, or all of them but itself where share is their number
 * over that of the others. */
static float drift_near_root(const drift_job *q, const float *mean, ptrdiff_t j, double share)
{
    const float *t = q->t + j * q->d.pitch;
    vf sum = v_zero();
    for (ptrdiff_t c = 0; c < q->d.cp; c += VL) {
        vf e = v_sub(v_load(t + c), v_load(mean + c));
        sum = v_fma(e, e, sum);
    }
    return (float)sqrt(share * ((double)v_hsum(sum) + (double)mean[q->d.cp]));
}

/* Numbers of terms. */
static double drift_near_terms(const drift_job *q, int kind)
{
    return (double)(kind == DRIFT_ROW ? q->d.m - 1 : kind == DRIFT_OWN ? q->s->n - 1 : q->s->n);
}

/* r / 2 of the targets j0 .. j1 - 1. */
static void drift_near_roots(const drift_job *q, const float *mean, ptrdiff_t j0, ptrdiff_t j1)
{
    ptrdiff_t n = q->s->n;
    for (ptrdiff_t j = j0; j < j1; j++) {
        double own = drift_near_terms(q, j < n ? DRIFT_OWN : DRIFT_OTHER),
               all = drift_near_terms(q, DRIFT_ROW);
        q->near.column[j] = own > 0 ? 0.5f * drift_near_root(q, mean, j, (double)n / own) : 0;
        if (j < n)
            q->near.row[j] = 0.5f *
                             drift_near_root(q, mean + q->d.cp + 16, j, (double)q->d.m / all);
    }
}

/* Adds e^{-b (d - h)} of n targets from j0 to the probes' sums [K][LANES], from the squared
 * distances in buf_d; itself: whether these are the generated samples, of which a probe is one. */
static void drift_near_sums(const drift_job *q, float *sums, const drift_near_guess *g,
                            const drift_probes *p, ptrdiff_t j0, ptrdiff_t n, int itself)
{
    const drift_taus *t = &g->t;
    ptrdiff_t lanes = p->st.lanes;
    for (ptrdiff_t j = 0; itself && j < n; j++)
        if ((j0 + j) % p->step == 0 && (j0 + j) / p->step < p->st.live)
            q->buf_d[j * lanes + (j0 + j) / p->step] = drift_far * drift_far;
    for (int base = 0; base < t->k; base++) {
        vf b = v_set1(t->b[base]), h = v_set1(g->h), far = v_set1(g->h - DRIFT_LEAST / t->b[base]);
        if (t->base[base] != base)
            continue;
        for (ptrdiff_t i = 0; i < n * lanes; i += VL) {
            vf d = v_min(v_sqrt(v_max(v_load(q->buf_d + i), v_set1(1e-8f))), far);
            v_store(q->buf_e + i, v_exp_normal(v_mul(v_sub(h, d), b)));
        }
        for (int k = 0; k < t->k; k++) {
            vf least = v_set1(t->least[k]);
            for (ptrdiff_t i = 0; t->base[k] == base && i < lanes; i += VL) {
                float *to = sums + k * LW_DRIFT_LANES + i;
                vf sum = v_load(to);
                for (ptrdiff_t j = 0; j < n; j++)
                    sum = v_add(sum,
                                drift_power(v_load(q->buf_e + j * lanes + i), least, t->power[k]));
                v_store(to, sum);
            }
        }
    }
}

/* D of temperature k as taken for granted: as far below the least of the probes', whose sums were
 * taken at b of `from`, as that is below their mean. D goes with b^2. */
static float drift_near_granted(const drift_job *q, const drift_near_guess *from, float b, int kind,
                                int k, const float *sums, const float *root, ptrdiff_t live,
                                ptrdiff_t step)
{
    float least = 3e38f, mean = 0, by = from->t.b[k],
          terms = logf((float)fmax(drift_near_terms(q, kind), 1));
    for (ptrdiff_t i = 0; i < live; i++) {
        float d = logf(fmaxf(sums[i], 1e-37f)) - terms + by * (2 * root[i * step] - from->h);
        least = d < least ? d : least;
        mean += d / (float)live;
    }
    least -= mean - least;
    return fmaxf(least, 0) * (b / by) * (b / by);
}

/* The group's rule at a guess of S, from sums of its probes by part of the targets:
 * [PROBES][KINDS][K][LANES], taken at the group's own root mean square. */
static void drift_near_decide(const drift_job *q, double guess, const float *parts)
{
    ptrdiff_t n = q->s->n, others = q->d.m - n, k_count = q->s->k,
              all = LW_DRIFT_NEAR_KINDS * k_count * LW_DRIFT_LANES;
    float sums[LW_DRIFT_NEAR_KINDS * LW_DRIFT_MAX_TAU * LW_DRIFT_LANES] = {0},
                                                        low[LW_DRIFT_NEAR_KINDS][LW_DRIFT_MAX_TAU];
    double weight, square = drift_mean_square(q, &weight);
    drift_near_guess from = drift_near_guess_of(q, sqrt(square)),
                     at = drift_near_guess_of(q, guess);
    drift_near_rule *rule = q->near.rule;
    const float *root[LW_DRIFT_NEAR_KINDS] = {q->near.column, q->near.row, q->near.column + n},
                floor_log = logf(0.99f * (float)q->rule.floor);
    for (ptrdiff_t part = 0; part < LW_DRIFT_PROBES; part++)
        for (ptrdiff_t i = 0; i < all; i++)
            sums[i] += parts[part * all + i];
    for (int kind = 0; kind < LW_DRIFT_NEAR_KINDS; kind++) {
        ptrdiff_t count = kind == DRIFT_OTHER ? others : n, live = drift_probe_count(q, count);
        float terms = logf((float)fmax(drift_near_terms(q, kind), 1));
        for (int k = 0; k < k_count; k++) {
            float b = at.t.b[k],
                  granted = drift_near_granted(q, &from, b, kind, k,
                                               sums + (kind * k_count + k) * LW_DRIFT_LANES,
                                               root[kind], live, count / live);
            low[kind][k] = -0.5f * (terms + granted) / b;
        }
    }
    rule->own = rule->other = -3e38f;
    for (int k = 0; k < k_count; k++) {
        float above = -floor_log / at.t.b[k];
        rule->own = fmaxf(rule->own, above + 2 * low[DRIFT_OWN][k]);
        rule->other = fmaxf(rule->other, above + low[DRIFT_ROW][k] + low[DRIFT_OTHER][k]);
    }
    for (int k = 0; k < k_count; k++) { /* what the limits leave each temperature */
        float above = -floor_log / at.t.b[k],
              rest = rule->other - above - low[DRIFT_ROW][k] - low[DRIFT_OTHER][k];
        rule->most[DRIFT_OWN][k] = 0.5f * (rule->own - above);
        rule->most[DRIFT_ROW][k] = low[DRIFT_ROW][k] + 0.5f * rest;
        rule->most[DRIFT_OTHER][k] = low[DRIFT_OTHER][k] + 0.5f * rest;
    }
}

/* Whether a sum of n is less than was granted. sums: 1 / sqrt C relative to the least distance
 * `low`, times w where there is one; half: r / 2. */
static int drift_near_exceeds(const float *sums, const float *w, const float *low,
                              const float *half, ptrdiff_t n, float b, float most)
{
    int exceeds = 0;
    for (ptrdiff_t i = 0; i < n; i += VL) {
        ptrdiff_t live = n - i < VL ? n - i : VL;
        vf x = v_load_n(sums + i, live), one = v_set1(1.0f), by = w ? v_load_n(w + i, live) : one;
        vf log = v_log(v_max(v_div(x, v_max(by, v_set1(1e-30f))), v_set1(1e-37f)));
        vf limit = v_fma(log, v_set1(1 / b), v_mul(v_set1(0.5f), v_load_n(low + i, live)));
        uint32_t fits = vm_bits(v_le(v_sub(limit, v_load_n(half + i, live)), v_set1(most)));
        exceeds |= (~fits & (uint32_t)(((uint64_t)1 << live) - 1)) != 0;
    }
    return exceeds;
}

/* Once normalisers are known: which tiles of targets, and which strips, notes do not serve. */
static void drift_near_check(const drift_job *q, const drift_taus *t)
{
    ptrdiff_t m = q->d.m, n = q->s->n, end;
    const drift_near_rule *rule = q->near.rule;
    uint8_t *column = q->near.bad, *row = column + q->d.segments;
    memset(column, 0, (size_t)(q->d.segments + q->d.strips));
    for (int k = 0; k < t->k; k++) {
        for (ptrdiff_t j = 0; j < m; j = end) {
            end = j < n ? n : j < q->d.neg ? q->d.neg : m;
            end = end - j < LW_DRIFT_ROWS ? end : j + LW_DRIFT_ROWS;
            column[lw_drift_segment(q->s, &q->d, j)] |= (uint8_t)drift_near_exceeds(
                q->csum + k * m + j, q->w + j, q->cmin + j, q->near.column + j, end - j, t->b[k],
                rule->most[j < n ? DRIFT_OWN : DRIFT_OTHER][k]);
        }
        for (ptrdiff_t i = 0; i < n; i += LW_DRIFT_LANES)
            row[i / LW_DRIFT_LANES] |= (uint8_t)drift_near_exceeds(
                q->rsum + k * q->d.lp + i, NULL, q->rmin + i, q->near.row + i,
                n - i < LW_DRIFT_LANES ? n - i : LW_DRIFT_LANES, t->b[k], rule->most[DRIFT_ROW][k]);
    }
}

/* Notes of a strip as they are taken. */
typedef struct drift_notes {
    ptrdiff_t at, end; /* the next, and the end of their room */
    uint32_t *from;    /* of the strip's tiles */
} drift_notes;

static void drift_notes_open(const drift_job *q, drift_notes *o, drift_strip st)
{
    ptrdiff_t strip = st.i0 / LW_DRIFT_LANES;
    o->at = lw_drift_near_at(&q->d, strip);
    o->end = lw_drift_near_at(&q->d, strip + 1);
    o->from = q->near.from + strip * (q->d.segments + 1);
    o->from[lw_drift_segment(q->s, &q->d, st.i0)] = (uint32_t)o->at;
}

/* Notes of a tile of n targets from j0, its distances d. */
static void drift_notes_tile(const drift_job *q, drift_notes *o, const float *d, drift_strip st,
                             ptrdiff_t j0, ptrdiff_t n)
{
    int own = j0 < q->s->n;
    const float *row = (own ? q->near.column : q->near.row) + st.i0, *column = q->near.column + j0;
    float rest = own ? q->near.rule->own : q->near.rule->other;
    const uint64_t live = drift_live(st);
    uint32_t *from = o->from + lw_drift_segment(q->s, &q->d, j0);
    if (o->at + n * st.lanes > o->end) { /* and none behind */
        o->end = o->at;
        from[1] = DRIFT_NEAR_NONE;
        return;
    }
    float *to = q->near.d + o->at;
    uint16_t *at = q->near.at + o->at;
    for (ptrdiff_t j = 0; j < n; j++, d += st.lanes) {
        const vf limit = v_set1(column[j] + rest);
        uint64_t near = 0;
        for (ptrdiff_t i = 0; i < st.lanes; i += VL)
            near |= (uint64_t)vm_bits(v_lt(v_load(d + i), v_add(v_load(row + i), limit))) << i;
        for (near &= live; near; near &= near - 1) {
            const int i = __builtin_ctzll(near);
            *to++ = d[i];
            *at++ = (uint16_t)(j * LW_DRIFT_LANES + i);
        }
    }
    o->at = to - q->near.d;
    from[1] = (uint32_t)o->at;
}

#endif
