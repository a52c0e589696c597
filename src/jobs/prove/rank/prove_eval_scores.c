/* SPDX-License-Identifier: Apache-2.0 */
/* --save-scores: every candidate with its score, in order, whatever the order of the walks. */
#include <stdio.h>

#include "jobs/prove/rank/prove_eval_parts.h"

typedef struct row {
    int32_t mode, query;
    int64_t candidate;
    lw_atom atom;
    lw_prove_saved what;
} row;

static void add_row(const lw_kb *kb, const row *r, lw_str *s)
{
    char query[16], candidate[24], score[32], depth[16];
    snprintf(query, sizeof query, "%d", r->query + 1);
    snprintf(candidate, sizeof candidate, "%lld", (long long)r->candidate);
    snprintf(depth, sizeof depth, "%d", r->what.depth);
    const char *const cells[] = {lw_corrupt_mode_name((lw_corrupt_mode)r->mode),
                                 query,
                                 candidate,
                                 kb->predicates.name[r->atom.p],
                                 kb->constants.name[r->atom.arg[0]],
                                 kb->constants.name[r->atom.arg[1]],
                                 lw_f64_text(score, r->what.score),
                                 lw_prove_end_name((lw_proof_end)r->what.end),
                                 depth};
    lw_csv_row(s, cells, LW_COUNT(cells));
}

/* Appends what has gathered. */
static int write_out(lw_new_file *f, lw_str *s, size_t above)
{
    if (s->failed)
        return LW_ENOMEM;
    if (s->len <= above)
        return 0;
    size_t n = s->len;
    s->len = 0;
    return lw_new_file_put(f, s->s, n);
}

/* The corruptions are drawn again: a stream is a pure function. */
static int save_list(const lw_prove_run *w, const lw_prove_list *l, lw_new_file *f, lw_str *s)
{
    enum { GATHERED = 1 << 16 };
    const lw_prove_saved *saved = w->saved.data;
    lw_corruptions cursor;
    row r = {l->mode, l->query, 0, w->q->atom[l->query], {l->score, l->depth, (int32_t)l->end}};
    add_row(w->kb, &r, s);
    lw_corruptions_begin(w->corruptor, r.atom, (lw_corrupt_mode)l->mode, &cursor);
    while (lw_corruptions_next(w->corruptor, &cursor, &r.atom)) {
        r.what = saved[l->first + r.candidate++];
        add_row(w->kb, &r, s);
        LW_TRY(write_out(f, s, GATHERED));
    }
    return write_out(f, s, GATHERED);
}

static int save_lists(const lw_prove_run *w, lw_new_file *f)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_str_add(&s, "mode,query,candidate,predicate,head,tail,score,end,depth\n");
    for (int32_t i = 0; i < w->e->n_lists; i++)
        if (w->e->list[i].whole)
            LW_TRY(save_list(w, &w->e->list[i], f, &s));
    return write_out(f, &s, 0);
}

int lw_prove_save_scores(const lw_prove_run *w, const char *path)
{
    LW_CLEANUP(lw_new_file_drop) lw_new_file f = {0};
    LW_TRY(lw_new_file_begin(&f, path));
    LW_TRY(save_lists(w, &f));
    return lw_new_file_finish(&f);
}
