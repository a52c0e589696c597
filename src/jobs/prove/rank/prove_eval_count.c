/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of candidates, and what becomes of their results: compared, counted, forgotten. */
#include <float.h>
#include <math.h>

#include "jobs/prove/rank/prove_eval_parts.h"

static void observe(lw_prove_run *w)
{
    lw_observe_progress(w->obs, "candidates", w->e->candidates, w->expected, NULL);
    w->stop = w->stop || lw_observe_stop(w->obs);
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Lists are kept by mode and given by query, so that an interrupted run has whole queries. */
static lw_prove_list *list_given(const lw_prove_run *w, int64_t i)
{
    return &w->e->list[i % w->e->n_modes * w->e->n_queries + i / w->e->n_modes];
}

static int64_t id_of(const lw_prove_list *l, int64_t candidate)
{
    return ((int64_t)l->query * LW_CORRUPT_MODES + l->mode) << 32 | candidate;
}

static lw_prove_list *list_of(const lw_prove_run *w, int64_t id)
{
    int64_t key = id >> 32, mode = key % LW_CORRUPT_MODES, slot = 0;
    while (w->e->modes[slot] != mode)
        slot++;
    return &w->e->list[slot * w->e->n_queries + key / LW_CORRUPT_MODES];
}

int64_t lw_prove_most(const lw_prove_run *w, const lw_prove_list *l)
{
    int64_t n = w->o->corrupt.n, most = 0;
    for (int side = 0; side < 2; side++) {
        int64_t pool = lw_corruptor_pool(w->corruptor, w->q->atom[l->query], side);
        int64_t wanted = n == 0 ? pool : l->mode == LW_CORRUPT_BOTH ? (n + 1 - side) / 2 : n;
        if (l->mode == LW_CORRUPT_BOTH || l->mode == side)
            most += LW_MIN(wanted, LW_MAX(pool, 0));
    }
    return most;
}

/* A walk's log-probability only falls, and its score is no higher; of what has no proof it is lower by the
 * penalty. Scores are rounded: below means by more than that. */
static double give_up_below(const lw_prove_run *w, const lw_prove_list *l, bool provable)
{
    const double penalty = provable ? 0 : w->o->penalty, rounding = 1e-12 * penalty;
    bool decides = w->o->ranks_only && !w->o->kge.log_score;
    return decides ? LW_MIN(l->score + penalty - rounding, -DBL_TRUE_MIN - rounding) : 0;
}

/* A corruption without a proof, whose query is above it before its first step. */
static bool sure_below(const lw_prove_run *w, const lw_prove_list *l, bool provable)
{
    return w->o->ranks_only && !w->o->kge.log_score && !provable && -w->o->penalty < l->score;
}

/* Whether this corruption may have a proof, and where a prover that finds every proof ranks it. */
static bool count_ceiling(lw_prove_run *w, lw_prove_list *l, lw_atom corruption)
{
    bool provable = true;
    if (!w->asker || w->error < 0)
        return true;
    w->error = lw_prove_provable(w, corruption, &provable);
    l->ceiling.higher += provable && !l->provable;
    l->ceiling.ties += provable == l->provable;
    l->ceiling.lower += !provable && l->provable;
    return provable;
}

/* A corruption whose score lies between these, on one side of its query's or on it. */
static void count_unwalked(lw_prove_run *w, lw_prove_list *l, double least, double most)
{
    l->rank.higher += least > l->score;
    l->rank.lower += most < l->score;
    l->rank.ties += least == l->score && most == l->score;
    w->e->candidates++;
    w->e->unwalked++;
}

/* The next corruption of the lists in order, false: there are no more. */
static bool draw(lw_prove_run *w, lw_walk *out)
{
    enum { SEEN = 4096 }; /* between two looks at the observer */
    for (; w->at < w->e->n_lists; w->at++) {
        lw_prove_list *l = list_given(w, w->at);
        if (!w->begun) {
            lw_corruptions_begin(w->corruptor, w->q->atom[l->query], (lw_corrupt_mode)l->mode,
                                 &w->cursor);
            w->begun = true;
            w->ordinal = 0;
            l->first = w->first;
        }
        while (!w->stop && lw_corruptions_next(w->corruptor, &w->cursor, &out->query)) {
            const bool provable = count_ceiling(w, l, out->query);
            out->id = id_of(l, ++w->ordinal);
            out->give_up = give_up_below(w, l, provable);
            out->how = lw_prove_how(w, l, false);
            w->first++;
            if (!sure_below(w, l, provable))
                return true;
            count_unwalked(w, l, -(double)INFINITY, -w->o->penalty);
            if (w->e->unwalked % SEEN == 0)
                observe(w);
        }
        if (w->stop)
            return false;
        l->negatives = w->cursor.given;
        l->known = w->cursor.known;
        l->missing = w->cursor.missing;
        w->begun = false;
    }
    return false;
}

/* Whether a corruption of this plausibility is sure to stand above, below or beside its query; then it is
 * counted. */
static bool decided(lw_prove_run *w, const lw_walk *walk, double log_score)
{
    const lw_prove_kge *kge = &w->o->kge;
    lw_prove_list *l = list_of(w, walk->id);
    double least = kge->weight * log_score - kge->penalty,
           most = kge->weight * log_score + kge->bonus;
    bool provable = true;
    if (w->asker && w->error == 0)
        w->error = lw_prove_provable(w, walk->query, &provable);
    if (!provable) /* the score that a walk would end with */
        most = least;
    if (!(least > l->score || most < l->score || least == most)) /* nor when it is not a number */
        return false;
    count_unwalked(w, l, least, most);
    return true;
}

/* Draws until some are to be walked. */
static int draw_more(lw_prove_run *w)
{
    const lw_prove_kge *kge = &w->o->kge;
    float log_score[LW_PROVE_PENDING];
    lw_atom atom[LW_PROVE_PENDING];
    w->n_drawn = w->at_drawn = 0;
    while (w->n_drawn == 0 && !w->stop) {
        int32_t n = 0;
        while (n < LW_PROVE_PENDING && draw(w, &w->drawn[n]))
            n++;
        for (int32_t i = 0; i < n; i++)
            atom[i] = w->drawn[i].query;
        if (n == 0)
            break;
        LW_TRY(kge->log_score(kge->self, atom, n, log_score));
        for (int32_t i = 0; i < n; i++)
            if (!decided(w, &w->drawn[i], (double)log_score[i]))
                w->drawn[w->n_drawn++] = w->drawn[i];
        observe(w);
    }
    return 0;
}

static bool next_corruption(lw_prove_run *w, lw_walk *out)
{
    if (!w->o->ranks_only || !w->o->kge.log_score)
        return draw(w, out);
    if (w->at_drawn == w->n_drawn)
        w->error = draw_more(w);
    if (w->error < 0 || w->at_drawn == w->n_drawn)
        return false;
    *out = w->drawn[w->at_drawn++];
    return true;
}

static bool next(void *self, lw_walk *out)
{
    lw_prove_run *w = self;
    if (w->stop)
        return false;
    if (!w->queries_given) {
        if (w->at < w->e->n_lists) {
            const lw_prove_list *l = list_given(w, w->at++);
            *out = (lw_walk){
                .id = id_of(l, 0), .query = w->q->atom[l->query], .how = lw_prove_how(w, l, true)};
            return true;
        }
        w->queries_given = true;
        w->at = 0;
    }
    if (w->n_again > 0) {
        *out = w->again[--w->n_again];
        return true;
    }
    /* Room for the results of all that may be under way; else the queries' walks come first. */
    int64_t under_way = (int64_t)w->e->used.fixed_batch_size + LW_PROVE_PENDING + 1;
    if (w->queries_left > 0 && (w->o->ranks_only || w->n_waiting + under_way > w->most_waiting)) {
        w->paused = true;
        return false;
    }
    return next_corruption(w, out);
}

/* ---- results --------------------------------------------------------------------------------- */

static void count_end(lw_prove_ends *ends, const lw_walk_result *r)
{
    ends->n++;
    ends->end[r->end]++;
    ends->at[r->depth]++;
    ends->proved[r->depth] += r->end == LW_PROOF_PROVED;
}

static int bad_score(const lw_prove_run *w, const lw_walk_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_kb_print_atom(w->kb, r->walk.query, &text);
    return lw_fail(LW_ENUMERIC, "the score of %s is not a number: the policy's weights are bad",
                   lw_str_c(&text));
}

static int count_corruption(lw_prove_run *w, const lw_prove_scored *s)
{
    int64_t candidate = s->r.walk.id & 0xffffffff;
    lw_prove_list *l = list_of(w, s->r.walk.id);
    LW_TRY(lw_rank_add(&l->rank, l->score, s->score));
    if (!w->o->ranks_only)
        LW_TRY(lw_auc_pr_add(w->auc[l->mode], s->score));
    l->proved += s->r.end == LW_PROOF_PROVED;
    count_end(&w->e->negatives, &s->r);
    if (w->saved.data)
        ((lw_prove_saved *)w->saved.data)[l->first + candidate - 1] =
            (lw_prove_saved){s->score, s->r.depth, (int32_t)s->r.end};
    return 0;
}

/* All queries have their scores: thresholds for the areas, and what waited is counted. */
static int queries_are_known(lw_prove_run *w)
{
    const int64_t n = w->e->n_queries;
    LW_CLEANUP(lw_free) double *score = lw_calloc((size_t)n, sizeof *score);
    if (!score)
        return LW_ENOMEM;
    for (int32_t m = 0; m < w->e->n_modes; m++) {
        for (int64_t i = 0; i < n; i++)
            score[i] = w->e->list[m * n + i].score;
        LW_TRY(lw_auc_pr_new(score, n, &w->auc[w->e->modes[m]]));
    }
    for (int64_t i = 0; i < w->n_waiting; i++)
        LW_TRY(count_corruption(w, &w->waiting[i]));
    w->n_waiting = 0;
    return 0;
}

static int take(lw_prove_run *w, const lw_prove_scored *s)
{
    if (isnan(s->score))
        return bad_score(w, &s->r);
    if (w->queries_left == 0 && lw_prove_again(w, list_of(w, s->r.walk.id), s))
        return 0;
    w->e->candidates++;
    if ((s->r.walk.id & 0xffffffff) == 0) {
        lw_prove_list *l = list_of(w, s->r.walk.id);
        l->score = s->score;
        l->end = s->r.end;
        l->depth = s->r.depth;
        count_end(&w->e->positives, &s->r);
        return --w->queries_left > 0 ? 0 : queries_are_known(w);
    }
    if (w->queries_left == 0)
        return count_corruption(w, s);
    w->waiting[w->n_waiting++] = *s;
    return 0;
}

static int flush(lw_prove_run *w)
{
    const lw_prove_kge *kge = &w->o->kge;
    float log_score[LW_PROVE_PENDING];
    lw_atom atom[LW_PROVE_PENDING];
    int32_t n = w->n_pending;
    w->n_pending = 0;
    for (int32_t i = 0; i < n; i++)
        atom[i] = w->pending[i].walk.query;
    if (kge->log_score && n > 0)
        LW_TRY(kge->log_score(kge->self, atom, n, log_score));
    for (int32_t i = 0; i < n; i++) {
        lw_prove_scored s = {w->pending[i], 0};
        bool proved = s.r.end == LW_PROOF_PROVED;
        if (kge->log_score)
            s.score = kge->weight * (double)log_score[i] + (proved ? kge->bonus : -kge->penalty);
        else
            s.score = s.r.log_prob - (proved ? 0 : w->o->penalty);
        LW_TRY(take(w, &s));
    }
    observe(w);
    return 0;
}

static int done(void *self, const lw_walk_result *r)
{
    lw_prove_run *w = self;
    w->pending[w->n_pending++] = *r;
    return w->n_pending < LW_PROVE_PENDING ? 0 : flush(w);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void conclude(lw_prove_run *w)
{
    lw_prove_eval *e = w->e;
    e->interrupted = w->stop;
    for (int32_t i = 0; i < e->n_lists; i++) {
        lw_prove_list *l = &e->list[i];
        int64_t counted = l->rank.higher + l->rank.ties + l->rank.lower;
        l->whole = w->queries_left == 0 && l->negatives == counted;
        e->whole += l->whole;
    }
    e->interrupted = e->interrupted && e->whole < e->n_lists;
    for (int32_t m = 0; m < e->n_modes; m++)
        e->auc_pr[m] = e->interrupted || e->ranks_only || w->queries_left > 0
                           ? (double)NAN
                           : lw_auc_pr_value(w->auc[e->modes[m]]);
    e->walks = *lw_walks_counted(w->walks);
}

int lw_prove_run_all(lw_prove_run *w)
{
    lw_observe_progress(w->obs, "candidates", 0, w->expected, NULL);
    do {
        w->paused = false;
        int rc = lw_walks_run(w->walks, next, done, w);
        LW_TRY(w->error);
        if (rc == LW_ESTOPPED) { /* what has ended counts */
            w->stop = true;
            lw_errclear();
            rc = 0;
        }
        LW_TRY(rc);
        LW_TRY(flush(w));
        if (w->queries_left == 0)
            lw_prove_set_margin(w);
    } while ((w->paused || w->n_again > 0) && !w->stop);
    conclude(w);
    if (!w->e->interrupted) /* fewer than expected when some were known */
        lw_observe_progress(w->obs, "candidates", w->e->candidates, w->e->candidates, NULL);
    return 0;
}
