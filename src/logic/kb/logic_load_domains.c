/* SPDX-License-Identifier: Apache-2.0 */
/* Domains: which constants are of one kind, and which kind an argument takes. */
#include <stdlib.h>
#include <string.h>

#include "logic/kb/logic_load.h"
#include "logic/kb/logic_parse_parts.h"

/* `pred:headdom:taildom` as one word: the two colons, or false. */
static bool is_declaration(lw_span word, lw_span rest, size_t colon[2])
{
    int n = 0;
    for (size_t i = 0; i < word.n; i++)
        if (word.s[i] == ':') {
            if (n < 2)
                colon[n] = i;
            n++;
        }
    return n == 2 && lw_parse_word(&rest).n == 0;
}

static int declare(lw_load *l, lw_span word, const size_t colon[2])
{
    LW_TRY(lw_grow(&l->declared, &l->cap_declared, l->n_declared + 1, sizeof *l->declared));
    lw_load_declared *d = &l->declared[l->n_declared];
    char *pred = lw_arena_alloc(l->kb->arena, colon[0] + 1);
    if (!pred)
        return LW_ENOMEM;
    memcpy(pred, word.s, colon[0]);
    d->pred = (lw_span){pred, colon[0]};
    LW_TRY(lw_symbols_add(&l->kb->domains.names,
                          (lw_span){word.s + colon[0] + 1, colon[1] - colon[0] - 1},
                          &d->domain[0]));
    LW_TRY(lw_symbols_add(&l->kb->domains.names,
                          (lw_span){word.s + colon[1] + 1, word.n - colon[1] - 1}, &d->domain[1]));
    l->n_declared++;
    return 0;
}

/* The words behind a domain's name. */
static int members(lw_load *l, const char *path, int64_t line, int32_t domain, lw_span rest)
{
    for (;;) {
        lw_span word = lw_parse_word(&rest);
        if (word.n == 0)
            return 0;
        int32_t before = l->kb->constants.n;
        LW_TRY(lw_grow(&l->member, &l->cap_members, l->n_members + 1, sizeof *l->member));
        lw_load_member *m = &l->member[l->n_members];
        m->domain = domain;
        LW_TRY(lw_symbols_add(&l->kb->constants, word, &m->constant));
        if (m->constant > before)
            lw_problem_add(&l->problems->warnings, path, line,
                           "constant %.*s is in no fact and no rule",
                           (int)LW_MIN(word.n, (size_t)60), word.s);
        l->n_members++;
    }
}

int lw_load_domains(lw_load *l, const char *path, lw_lines lines)
{
    lw_span line;
    while (lw_lines_next(&lines, &line)) {
        size_t colon[2];
        int32_t domain;
        lw_span rest = line, word = lw_parse_word(&rest);
        const char *why = lw_parse_clean(line);
        if (why) {
            lw_problem_add(&l->problems->errors, path, lines.line, "%s", why);
        } else if (is_declaration(word, rest, colon)) {
            LW_TRY(declare(l, word, colon));
        } else if (lw_parse_trim(rest.s, rest.s + rest.n).n == 0) {
            lw_problem_add(&l->problems->errors, path, lines.line,
                           "a domain without constants: %.*s", (int)LW_MIN(word.n, (size_t)80),
                           word.s);
        } else {
            LW_TRY(lw_symbols_add(&l->kb->domains.names, word, &domain));
            LW_TRY(members(l, path, lines.line, domain, rest));
        }
    }
    return 0;
}

/* Counting sort of the members by domain; a constant keeps its first domain. */
static int place_members(lw_load *l, const char *path, const int32_t *constant)
{
    lw_domains *d = &l->kb->domains;
    int32_t second = 0;
    for (size_t i = 0; i < l->n_members; i++) {
        l->member[i].constant = constant[l->member[i].constant];
        d->first[l->member[i].domain + 1]++;
    }
    for (int32_t k = 0; k <= d->names.n; k++)
        d->first[k + 1] += d->first[k];
    LW_CLEANUP(lw_free) int32_t *at = lw_calloc((size_t)d->names.n + 2, sizeof *at);
    if (!at)
        return LW_ENOMEM;
    memcpy(at, d->first, ((size_t)d->names.n + 2) * sizeof *at);
    for (size_t i = 0; i < l->n_members; i++) {
        const lw_load_member *m = &l->member[i];
        d->member[at[m->domain]++] = m->constant;
        if (d->of[m->constant] == 0)
            d->of[m->constant] = m->domain;
        else
            second++;
    }
    if (second)
        lw_problem_add(&l->problems->warnings, path, 0,
                       "%d constant%s in more than one domain: the first one counts", second,
                       second == 1 ? " is" : "s are");
    return 0;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Members of each domain in order, each once. */
static void sort_members(lw_domains *d)
{
    int32_t to = 0;
    for (int32_t k = 1; k <= d->names.n; k++) {
        int32_t from = d->first[k], end = d->first[k + 1];
        qsort(d->member + from, (size_t)(end - from), sizeof *d->member, ascending);
        d->first[k] = to;
        for (int32_t i = from; i < end; i++)
            if (i == from || d->member[i] != d->member[i - 1])
                d->member[to++] = d->member[i];
    }
    d->first[d->names.n + 1] = to;
}

int lw_load_domains_renumber(lw_load *l, const char *path, const int32_t *constant)
{
    lw_kb *kb = l->kb;
    lw_domains *d = &kb->domains;
    d->first = lw_calloc((size_t)d->names.n + 2, sizeof *d->first);
    d->member = lw_calloc(l->n_members + 1, sizeof *d->member);
    d->of = lw_calloc((size_t)kb->n_constants + 1, sizeof *d->of);
    d->of_arg[0] = lw_calloc((size_t)kb->n_predicates + 1, sizeof *d->of_arg[0]);
    d->of_arg[1] = lw_calloc((size_t)kb->n_predicates + 1, sizeof *d->of_arg[1]);
    if (!d->first || !d->member || !d->of || !d->of_arg[0] || !d->of_arg[1])
        return LW_ENOMEM;
    LW_TRY(place_members(l, path, constant));
    sort_members(d);
    for (size_t i = 0; i < l->n_declared; i++) {
        int32_t p = lw_symbols_find(&kb->predicates, l->declared[i].pred);
        if (p == 0)
            lw_problem_add(&l->problems->warnings, path, 0,
                           "predicate %s of a declaration is in no fact and no rule",
                           l->declared[i].pred.s);
        d->of_arg[0][p] = l->declared[i].domain[0];
        d->of_arg[1][p] = l->declared[i].domain[1];
    }
    return 0;
}
