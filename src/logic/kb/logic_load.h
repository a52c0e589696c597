/* SPDX-License-Identifier: Apache-2.0 */
/* A knowledge base while it is read: names numbered as they come, nothing sorted yet. */
#ifndef LW_LOGIC_LOAD_H
#define LW_LOGIC_LOAD_H

#include "logic/kb/logic_kb.h"
#include "logic/kb/logic_parse.h"

typedef struct lw_load_member {
    int32_t domain, constant;
} lw_load_member;

typedef struct lw_load_declared {
    lw_span pred; /* in the arena: the predicate may be unknown */
    int32_t domain[2];
} lw_load_declared;

typedef struct lw_load {
    lw_kb *kb;
    lw_problems *problems;
    lw_atom *fact;
    size_t n_facts, cap_facts;
    size_t cap_rules, n_body, cap_body;
    lw_load_member *member;
    size_t n_members, cap_members;
    lw_load_declared *declared;
    size_t n_declared, cap_declared;
} lw_load;

/* The rest of the file of a dataset: `given`, looked up in `dir` unless it holds a slash or is not
 * there, or the first of the NULL-terminated `usual` names that exists in dir. *path is "" when
 * none of the usual names exists; LW_EIO when a given one does not. */
int lw_load_path(const char *dir, const char *given, const char *const *usual, lw_str *path);
/* A file's bytes, at most 2 GiB; caller lw_free()s *text. */
int lw_load_text(const char *path, char **text, lw_lines *lines);

/* `path` names the lines in messages. */
int lw_load_facts(lw_load *l, const char *path, lw_lines lines);
/* Variables of rules are -1 - k until lw_load_rules_renumber. */
int lw_load_rules(lw_load *l, const char *path, lw_lines lines);
int lw_load_rules_renumber(lw_load *l, const int32_t *constant, const int32_t *predicate);
int lw_load_domains(lw_load *l, const char *path, lw_lines lines);
int lw_load_domains_renumber(lw_load *l, const char *path, const int32_t *constant);

#endif
