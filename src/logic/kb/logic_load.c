/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a dataset: paths, facts, then everything renumbered by name and indexed. */
#include "logic/kb/logic_load.h"

#include <string.h>

int lw_load_path(const char *dir, const char *given, const char *const *usual, lw_str *path)
{
    bool found = false;
    if (given) {
        if (!strchr(given, '/'))
            LW_TRY(lw_path_look(lw_path_join(path, dir, given), &found));
        if (found)
            return 0;
        lw_str_clear(path);
        lw_str_add(path, given);
        LW_TRY(lw_path_look(given, &found));
        if (!found)
            return lw_fail(LW_EIO, "%s: no such file, neither as it stands nor in %s", given, dir);
        return 0;
    }
    for (; *usual; usual++) {
        LW_TRY(lw_path_look(lw_path_join(path, dir, *usual), &found));
        if (found)
            return 0;
    }
    lw_str_clear(path);
    return 0;
}

int lw_load_text(const char *path, char **text, lw_lines *lines)
{
    size_t n;
    LW_TRY(lw_file_read(path, (size_t)1 << 31, text, &n));
    *lines = lw_lines_of((lw_span){*text, n});
    return 0;
}

int lw_load_facts(lw_load *l, const char *path, lw_lines lines)
{
    lw_span line, rest;
    lw_atom_text t;
    while (lw_lines_next(&lines, &line)) {
        const char *why = lw_parse_triple(line, &t, &rest);
        if (!why && rest.n > 0)
            why = "there is something behind the fact";
        if (why) {
            lw_problem_add(&l->problems->errors, path, lines.line, "%s: %.*s", why,
                           (int)LW_MIN(line.n, (size_t)80), line.s);
            continue;
        }
        lw_atom a;
        LW_TRY(lw_symbols_add(&l->kb->predicates, t.pred, &a.p));
        LW_TRY(lw_symbols_add(&l->kb->constants, t.arg[0], &a.arg[0]));
        LW_TRY(lw_symbols_add(&l->kb->constants, t.arg[1], &a.arg[1]));
        LW_TRY(lw_grow(&l->fact, &l->cap_facts, l->n_facts + 1, sizeof *l->fact));
        l->fact[l->n_facts++] = a;
    }
    l->kb->fact_lines = (int64_t)l->n_facts;
    if (l->n_facts == 0 && l->problems->errors.n == 0)
        return lw_fail(LW_EFORMAT, "%s: there is no fact in it", path);
    return 0;
}

/* Names get their final numbers, facts their order. */
static int settle(lw_load *l, const char *domains)
{
    lw_kb *kb = l->kb;
    kb->n_constants = kb->constants.n;
    kb->n_predicates = kb->predicates.n;
    LW_CLEANUP(lw_free) int32_t *constant = lw_calloc((size_t)kb->n_constants + 1, sizeof(int32_t));
    LW_CLEANUP(lw_free)
    int32_t *predicate = lw_calloc((size_t)kb->n_predicates + 1, sizeof(int32_t));
    if (!constant || !predicate)
        return LW_ENOMEM;
    LW_TRY(lw_symbols_sort(&kb->constants, constant));
    LW_TRY(lw_symbols_sort(&kb->predicates, predicate));
    for (size_t i = 0; i < l->n_facts; i++) {
        lw_atom *a = &l->fact[i];
        *a = (lw_atom){predicate[a->p], {constant[a->arg[0]], constant[a->arg[1]]}};
    }
    LW_TRY(lw_load_rules_renumber(l, constant, predicate));
    LW_TRY(lw_load_domains_renumber(l, domains, constant));
    lw_atom *fact = lw_steal(&l->fact);
    kb->facts.atom = fact; /* freed with the knowledge base whatever happens */
    LW_TRY(lw_facts_index(&kb->facts, fact, (int32_t)l->n_facts, kb->n_predicates));
    kb->duplicate_facts = kb->fact_lines - kb->facts.n;
    return 0;
}

/* One of the three files. */
typedef int load_fn(lw_load *l, const char *path, lw_lines lines);

static int load_file(lw_load *l, load_fn *load, const char *path)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    lw_lines lines;
    LW_TRY(lw_load_text(path, &text, &lines));
    return load(l, path, lines);
}

static int open_files(lw_load *l, const lw_kb_options *o, lw_str *domains)
{
    static const char *const usual[3][3] = {
        {"train.txt", "train.tsv"}, {"rules.txt"}, {"domain2constants.txt"}};
    LW_CLEANUP(lw_str_clear) lw_str facts = {0}, rules = {0};
    bool found = false;
    LW_TRY(lw_path_look(o->dir, &found));
    if (!found || !lw_path_is_dir(o->dir))
        return lw_fail(LW_EIO, "%s: %s; a dataset is one with train.txt in it", o->dir,
                       found ? "not a directory" : "no such directory");
    LW_TRY(lw_load_path(o->dir, o->facts_file, usual[0], &facts));
    LW_TRY(lw_load_path(o->dir, o->rules_file, usual[1], &rules));
    LW_TRY(lw_load_path(o->dir, o->domains_file, usual[2], domains));
    if (facts.len == 0)
        return lw_fail(LW_EIO, "%s: no train.txt in it; --facts-file names another", o->dir);
    LW_TRY(load_file(l, lw_load_facts, lw_str_c(&facts)));
    if (rules.len > 0)
        LW_TRY(load_file(l, lw_load_rules, lw_str_c(&rules)));
    else
        lw_problem_add(&l->problems->warnings, o->dir, 0,
                       "no rules.txt in it: only facts prove anything");
    if (domains->len > 0)
        LW_TRY(load_file(l, lw_load_domains, lw_str_c(domains)));
    return 0;
}

static int open_texts(lw_load *l, const lw_kb_texts *t)
{
    LW_TRY(lw_load_facts(l, "facts", lw_lines_of(t->facts)));
    LW_TRY(lw_load_rules(l, "rules", lw_lines_of(t->rules)));
    return lw_load_domains(l, "domains", lw_lines_of(t->domains));
}

/* From files, or from texts. */
static int open_kb(const lw_kb_options *o, const lw_kb_texts *t, lw_problems *problems, lw_kb **out)
{
    LW_CLEANUP(lw_kb_free) lw_kb *kb = lw_calloc(1, sizeof *kb);
    LW_CLEANUP(lw_str_clear) lw_str domains = {0};
    if (!kb)
        return LW_ENOMEM;
    LW_TRY(lw_arena_new(&kb->arena));
    kb->constants.arena = kb->predicates.arena = kb->domains.names.arena = kb->arena;
    kb->dir = lw_arena_strdup(kb->arena, o ? o->dir : "text");
    if (!kb->dir)
        return LW_ENOMEM;
    lw_load l = {.kb = kb, .problems = problems};
    int rc = o ? open_files(&l, o, &domains) : open_texts(&l, t);
    if (rc == 0)
        rc = lw_problems_fail(problems);
    if (rc == 0)
        rc = settle(&l, o ? lw_str_c(&domains) : "domains");
    lw_free(&l.fact);
    lw_free(&l.member);
    lw_free(&l.declared);
    if (rc == 0)
        *out = lw_steal(&kb);
    return rc;
}

int lw_kb_open(const lw_kb_options *o, lw_problems *problems, lw_kb **out)
{
    return open_kb(o, NULL, problems, out);
}

int lw_kb_parse(const lw_kb_texts *t, lw_problems *problems, lw_kb **out)
{
    return open_kb(NULL, t, problems, out);
}
