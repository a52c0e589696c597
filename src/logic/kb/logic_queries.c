/* SPDX-License-Identifier: Apache-2.0 */
/* Reading queries and the depths that others found for them. */
#include "logic/kb/logic_queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "logic/kb/logic_load.h"

typedef struct annotated {
    lw_atom atom;
    int32_t depth;
} annotated;

static int by_atom(const void *va, const void *vb)
{
    const annotated *a = va, *b = vb;
    return memcmp(&a->atom, &b->atom, sizeof a->atom);
}

/* Numbers of the names; false and *what, the first name that is unknown. */
static bool look_up(const lw_kb *kb, const lw_atom_text *t, lw_atom *out, const lw_span **what,
                    const lw_symbols **table)
{
    *table = &kb->predicates;
    out->p = lw_symbols_find(&kb->predicates, *(*what = &t->pred));
    for (int i = 0; i < 2 && out->p != 0; i++) {
        *table = &kb->constants;
        out->arg[i] = lw_symbols_find(&kb->constants, *(*what = &t->arg[i]));
        if (out->arg[i] == 0)
            return false;
    }
    return out->p != 0;
}

static int path_of(const lw_kb *kb, const char *split, const char *tail, lw_str *path)
{
    char name[4][64];
    const char *other = lw_str_eq(split, "valid") ? "dev" : split;
    if (strlen(split) > 40 || strchr(split, '/'))
        return lw_fail(LW_EUSAGE, "%s: a split is a name such as test, valid or train", split);
    snprintf(name[0], sizeof name[0], "%s%s.txt", split, tail);
    snprintf(name[1], sizeof name[1], "%s%s.tsv", split, tail);
    snprintf(name[2], sizeof name[2], "%s%s.tsv", other, tail);
    snprintf(name[3], sizeof name[3], "%s%s.txt", other, tail);
    const char *const usual[] = {name[0], name[1], name[2], name[3], NULL};
    return lw_load_path(kb->dir, NULL, usual, path);
}

static int read_queries(const lw_kb *kb, const lw_query_options *o, const char *path,
                        lw_lines lines, lw_problems *problems, lw_queries *q)
{
    lw_span line, rest;
    lw_atom_text t;
    size_t cap = 0;
    while (lw_lines_next(&lines, &line)) {
        lw_atom a = {0};
        const lw_span *what;
        const lw_symbols *table;
        const char *why = lw_parse_triple(line, &t, &rest);
        q->lines++;
        if (!why && rest.n > 0)
            why = "there is something behind the query";
        if (why) {
            lw_problem_add(&problems->errors, path, lines.line, "%s: %.*s", why,
                           (int)LW_MIN(line.n, (size_t)80), line.s);
        } else if (!look_up(kb, &t, &a, &what, &table)) {
            q->unknown++;
            lw_problem_add(o->skip_unknown ? &problems->warnings : &problems->errors, path,
                           lines.line, "%s %.*s is in no fact, rule or domain",
                           table == &kb->predicates ? "predicate" : "constant",
                           (int)LW_MIN(what->n, (size_t)60), what->s);
        } else if (o->filter_by_rules && kb->rule_first[a.p] == kb->rule_first[a.p + 1]) {
            q->no_rule++;
        } else {
            LW_TRY(lw_grow(&q->atom, &cap, (size_t)q->n + 1, sizeof *q->atom));
            q->atom[q->n++] = a;
        }
    }
    return 0;
}

static int read_depths(const lw_kb *kb, const char *path, lw_lines lines, lw_problems *problems,
                       annotated **out, size_t *n)
{
    lw_span line, rest;
    lw_atom_text t;
    size_t cap = 0;
    while (lw_lines_next(&lines, &line)) {
        annotated a = {0};
        const lw_span *what;
        const lw_symbols *table;
        const char *why = lw_parse_triple(line, &t, &rest);
        if (!why)
            why = lw_parse_depth(rest, &a.depth);
        if (why) {
            lw_problem_add(&problems->errors, path, lines.line, "%s: %.*s", why,
                           (int)LW_MIN(line.n, (size_t)80), line.s);
        } else if (look_up(kb, &t, &a.atom, &what, &table)) {
            LW_TRY(lw_grow(out, &cap, *n + 1, sizeof **out));
            (*out)[(*n)++] = a;
        }
    }
    return 0;
}

static int annotate(const lw_kb *kb, const char *path, lw_lines lines, lw_problems *problems,
                    lw_queries *q)
{
    LW_CLEANUP(lw_free) annotated *all = NULL;
    size_t n = 0;
    q->published = lw_calloc((size_t)q->n + 1, sizeof *q->published);
    if (!q->published)
        return LW_ENOMEM;
    LW_TRY(read_depths(kb, path, lines, problems, &all, &n));
    if (n > 0)
        qsort(all, n, sizeof *all, by_atom);
    for (int32_t i = 0; i < q->n; i++) {
        const annotated key = {q->atom[i], 0},
                        *hit = n ? bsearch(&key, all, n, sizeof *all, by_atom) : NULL;
        q->published[i] = hit ? hit->depth : LW_DEPTH_UNKNOWN;
        q->annotated += hit != NULL;
    }
    return 0;
}

/* ---- a limit --------------------------------------------------------------------------------- */

static int by_number(const void *va, const void *vb)
{
    const int32_t a = *(const int32_t *)va, b = *(const int32_t *)vb;
    return (a > b) - (a < b);
}

static void choose(int32_t all, int32_t n, lw_query_order order, uint64_t seed, int32_t *out)
{
    const lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("prove.queries"));
    for (int32_t i = 0; i < n; i++)
        out[i] = order == LW_QUERY_FIRST ? i
                 : order == LW_QUERY_SPACED
                     ? (int32_t)((int64_t)i * all / n)
                     : (int32_t)lw_rng_permute(key, 0, (uint64_t)all, (uint64_t)i);
    if (order == LW_QUERY_RANDOM)
        qsort(out, (size_t)n, sizeof *out, by_number);
}

/* Predicates of the queries, and those of which none is left. */
static int count_predicates(const lw_queries *all, lw_queries *out)
{
    int32_t most = 0;
    for (int32_t i = 0; i < all->n; i++)
        most = LW_MAX(most, all->atom[i].p);
    LW_CLEANUP(lw_free) uint8_t *seen = lw_calloc((size_t)most + 1, 1);
    if (!seen)
        return LW_ENOMEM;
    for (int32_t i = 0; i < all->n; i++)
        seen[all->atom[i].p] = 1;
    for (int32_t i = 0; i < out->n; i++)
        seen[out->atom[i].p] = 2;
    for (int32_t p = 0; p <= most; p++) {
        out->predicates += seen[p] > 0;
        out->predicates_cut += seen[p] == 1;
    }
    return 0;
}

static int choose_from(const lw_queries *all, lw_query_order order, uint64_t seed, lw_queries *out)
{
    LW_CLEANUP(lw_free) int32_t *at = lw_calloc((size_t)out->n + 1, sizeof *at);
    out->atom = lw_calloc((size_t)out->n + 1, sizeof *out->atom);
    out->published = lw_calloc((size_t)out->n + 1, sizeof *out->published);
    if (!at || !out->atom || !out->published)
        return LW_ENOMEM;
    choose(all->n, out->n, order, seed, at);
    for (int32_t i = 0; i < out->n; i++) {
        out->atom[i] = all->atom[at[i]];
        out->published[i] = all->published[at[i]];
        out->annotated += out->published[i] != LW_DEPTH_UNKNOWN;
    }
    return count_predicates(all, out);
}

int lw_queries_choose(const lw_queries *all, int64_t n, lw_query_order order, uint64_t seed,
                      lw_queries *out)
{
    LW_CLEANUP(lw_queries_clear) lw_queries q = *all;
    q.atom = NULL;
    q.published = NULL;
    q.annotated = q.predicates = q.predicates_cut = 0;
    q.uncut = all->n;
    q.n = n > 0 && n < all->n ? (int32_t)n : all->n;
    LW_TRY(choose_from(all, order, seed, &q));
    *out = q;
    q = (lw_queries){0};
    return 0;
}

/* What was read becomes what was asked for. */
static int cut(const lw_query_options *o, lw_problems *problems, lw_queries *all, lw_queries *out)
{
    LW_TRY(lw_queries_choose(all, o->limit, (lw_query_order)o->order, o->seed, out));
    if (out->predicates_cut > 0)
        lw_problem_add(&problems->warnings, o->split, 0,
                       "of %d predicates %d have no query among the %d of %lld that are taken "
                       "(--query-order)",
                       out->predicates, out->predicates_cut, out->n, (long long)out->uncut);
    return 0;
}

/* ---- a split --------------------------------------------------------------------------------- */

int lw_queries_open(const lw_kb *kb, const lw_query_options *o, lw_problems *problems,
                    lw_queries *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, depths_path = {0};
    LW_CLEANUP(lw_queries_clear) lw_queries q = {0};
    LW_CLEANUP(lw_free) char *text = NULL, *depths = NULL;
    lw_lines lines, depth_lines = lw_lines_of((lw_span){NULL, 0});
    LW_TRY(path_of(kb, o->split, "", &path));
    if (path.len == 0) {
        if (!o->optional)
            return lw_fail(LW_EIO, "%s: no %s.txt in it", kb->dir, o->split);
        *out = (lw_queries){.absent = true};
        return 0;
    }
    LW_TRY(path_of(kb, o->split, "_depths", &depths_path));
    LW_TRY(lw_load_text(lw_str_c(&path), &text, &lines));
    if (depths_path.len > 0)
        LW_TRY(lw_load_text(lw_str_c(&depths_path), &depths, &depth_lines));
    LW_TRY(read_queries(kb, o, lw_str_c(&path), lines, problems, &q));
    LW_TRY(annotate(kb, lw_str_c(&depths_path), depth_lines, problems, &q));
    LW_TRY(lw_problems_fail(problems));
    return cut(o, problems, &q, out);
}

int lw_queries_parse(const lw_kb *kb, const lw_query_options *o, lw_span queries, lw_span depths,
                     lw_problems *problems, lw_queries *out)
{
    LW_CLEANUP(lw_queries_clear) lw_queries q = {0};
    LW_TRY(read_queries(kb, o, "queries", lw_lines_of(queries), problems, &q));
    LW_TRY(annotate(kb, "depths", lw_lines_of(depths), problems, &q));
    LW_TRY(lw_problems_fail(problems));
    return cut(o, problems, &q, out);
}

void lw_queries_clear(lw_queries *q)
{
    lw_free(&q->atom);
    lw_free(&q->published);
    *q = (lw_queries){0};
}

int lw_positives_open(const lw_kb *kb, lw_positives *out)
{
    static const char *const splits[LW_QUERIES_SPLITS] = {"train", "valid", "test"};
    *out = (lw_positives){0};
    for (int i = 0; i < LW_QUERIES_SPLITS; i++) {
        LW_CLEANUP(lw_problems_clear) lw_problems problems = {0};
        const lw_query_options q = {.split = splits[i], .skip_unknown = true, .optional = true};
        LW_TRY(lw_queries_open(kb, &q, &problems, &out->split[i]));
        out->set[i] = &out->split[i];
    }
    return 0;
}

void lw_positives_clear(lw_positives *p)
{
    for (int i = 0; i < LW_QUERIES_SPLITS; i++)
        lw_queries_clear(&p->split[i]);
}
