/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an evaluation: summary.json, per_query.csv, report.html. */
#include <stdio.h>

#include "jobs/prove/rank/prove_eval_tables.h"

static void add_query(const lw_prove_context *c, const lw_prove_list *l, lw_str *s)
{
    lw_atom a = c->queries->atom[l->query];
    int32_t published = c->queries->published ? c->queries->published[l->query] : LW_DEPTH_UNKNOWN;
    char n[9][32], rank[32], score[32];
    const int64_t count[] = {l->query + 1, l->depth,  published, l->rank.higher, l->rank.ties,
                             l->negatives, l->proved, l->known,  l->missing};
    for (size_t i = 0; i < LW_COUNT(count); i++)
        snprintf(n[i], sizeof n[i], "%lld", (long long)count[i]);
    const char *const cells[] = {lw_corrupt_mode_name((lw_corrupt_mode)l->mode),
                                 n[0],
                                 c->kb->predicates.name[a.p],
                                 c->kb->constants.name[a.arg[0]],
                                 c->kb->constants.name[a.arg[1]],
                                 lw_f64_text(rank, lw_prove_rank(l, c->o->rank_rule)),
                                 lw_f64_text(score, l->score),
                                 l->end == LW_PROOF_PROVED ? "1" : "0",
                                 lw_prove_end_name(l->end),
                                 n[1],
                                 published == LW_DEPTH_UNKNOWN ? "" : n[2],
                                 n[3],
                                 n[4],
                                 n[5],
                                 c->o->ranks_only ? "" : n[6],
                                 n[7],
                                 n[8],
                                 lw_rank_rule_name((lw_rank_rule)c->o->rank_rule)};
    lw_csv_row(s, cells, LW_COUNT(cells));
}

static int save_queries(const lw_prove_context *c, const lw_prove_eval *e, const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_str_add(&s, "mode,query,predicate,head,tail,rank,score,proved,end,depth,published_depth,"
                   "higher,ties,corruptions,corruptions_proved,known,missing,rank_rule\n");
    for (int32_t i = 0; i < e->n_lists; i++)
        if (e->list[i].whole)
            add_query(c, &e->list[i], &s);
    return s.failed ? LW_ENOMEM : lw_file_write(path, lw_str_c(&s), s.len);
}

int lw_prove_eval_save(const lw_prove_context *c, const lw_prove_eval *e, const char *dir)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *summary = lw_prove_eval_json(c, e);
    LW_TRY(lw_new_dir_begin(&d, dir, false));
    dir = lw_str_c(&d.tmp);
    LW_TRY(lw_json_save(lw_path_join(&path, dir, "summary.json"), summary));
    LW_TRY(save_queries(c, e, lw_path_join(&path, dir, "per_query.csv")));
    LW_TRY(lw_prove_page(c, e, lw_path_join(&path, dir, "report.html")));
    return lw_new_dir_finish(&d);
}
