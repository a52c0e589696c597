/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A knowledge base: facts, rules and domains of one dataset directory, indexed for proof search.
 * Read-only once open.
 */
#ifndef LW_LOGIC_KB_H
#define LW_LOGIC_KB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "logic/kb/logic_atom.h"
#include "logic/kb/logic_index.h"
#include "logic/kb/logic_problems.h"
#include "logic/kb/logic_symbols.h"

/* A Horn clause. Arguments up to n_constants are constants, n_constants + 1 + k is its
 * variable k. */
typedef struct lw_rule {
    lw_atom head;
    int32_t first, n_body; /* body: lw_kb.body[first .. first + n_body) */
    int32_t n_vars;
    int32_t line; /* in its file */
    double weight;
} lw_rule;

typedef struct lw_domains {
    lw_symbols names;
    int32_t *first;     /* [n + 2]: members of domain d are member[first[d] .. first[d + 1]) */
    int32_t *member;    /* constants, ascending in each domain */
    int32_t *of;        /* [n_constants + 1]: the domain of a constant, 0: none */
    int32_t *of_arg[2]; /* [n_predicates + 1]: declared domain of an argument, 0: not declared */
} lw_domains;

typedef struct lw_kb {
    const char *dir;
    lw_symbols constants, predicates;
    int32_t n_constants, n_predicates;
    lw_facts facts;
    lw_rule *rules;
    lw_atom *body;
    int32_t n_rules, most_body; /* atoms of the longest body */
    int32_t *rule_first;        /* [n_predicates + 2] */
    int32_t *rule_order; /* rules of head p: rule_order[rule_first[p] .. rule_first[p + 1]), in
                            file order */
    lw_domains domains;
    int64_t duplicate_facts, fact_lines;
    lw_arena *arena; /* owns all texts */
} lw_kb;

typedef struct lw_kb_options {
    const char *dir;
    const char *facts_file;   /* NULL: train.txt, or train.tsv; names without a slash are looked up
                                 in dir first */
    const char *rules_file;   /* NULL: rules.txt, which may be missing */
    const char *domains_file; /* NULL: domain2constants.txt, which may be missing */
} lw_kb_options;

/*
 * Reads all three files. Every bad line is added to `problems` (borrowed, may already hold some);
 * with any of them the result is LW_EFORMAT with the first one's file and line. A missing facts
 * file is LW_EIO; no facts at all, an argument of a rule's head that its body does not bind, a
 * rule without body: LW_EFORMAT.
 */
int lw_kb_open(const lw_kb_options *o, lw_problems *problems, lw_kb **out);

/* The same from texts in memory; rules and domains may be empty ({NULL, 0}). */
typedef struct lw_kb_texts {
    lw_span facts, rules, domains;
} lw_kb_texts;
int lw_kb_parse(const lw_kb_texts *t, lw_problems *problems, lw_kb **out);
void lw_kb_free(lw_kb **pp);
/* Bytes of facts, indexes and names. */
uint64_t lw_kb_bytes(const lw_kb *kb);
/* Hash of all names in the order of their numbers, never 0: rows of a trained table belong to
 * another dataset when theirs differs. */
uint64_t lw_kb_names(const lw_kb *kb);
/* Hash of names, facts and domains, with `rules` of rules as well. */
uint64_t lw_kb_content(const lw_kb *kb, bool rules);

static inline bool lw_kb_is_var(const lw_kb *kb, int32_t arg)
{
    return arg > kb->n_constants;
}

/* The three predicates behind the dataset's own. */
static inline int32_t lw_kb_true(const lw_kb *kb)
{
    return kb->n_predicates + 1;
}
static inline int32_t lw_kb_false(const lw_kb *kb)
{
    return kb->n_predicates + 2;
}
static inline int32_t lw_kb_endf(const lw_kb *kb)
{
    return kb->n_predicates + 3;
}

/* Parses `pred(a,b)`, whose arguments are constants; LW_EFORMAT naming an unknown predicate or
 * constant and its nearest neighbour. */
int lw_kb_atom(const lw_kb *kb, const char *text, lw_atom *out);
/* The same of a goal, whose unquoted arguments that begin with a capital or _ are variables unless a constant has
 * that name; each lone _ is a variable of its own. *open: it has one. */
int lw_kb_goal(const lw_kb *kb, const char *text, lw_atom *out, bool *open);
/* "pred(a,V1)" appended; variables by their distance from n_constants, terminals by name. */
void lw_kb_print_atom(const lw_kb *kb, lw_atom a, lw_str *out);
/* Atoms with ", " between them. */
void lw_kb_print_atoms(const lw_kb *kb, const lw_atom *a, int32_t n, lw_str *out);
/* "head(X,Y) :- b(X,Z), c(Z,Y)", Prolog with every name quoted that needs it. */
void lw_kb_print_rule(const lw_kb *kb, int32_t rule, lw_str *out);
void lw_kb_print_prolog(const lw_kb *kb, lw_atom a, lw_str *out);

#endif
