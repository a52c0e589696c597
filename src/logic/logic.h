/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logic: knowledge bases and proof search. Knows symbols, facts, rules and states of goals; no
 * tensors, no networks.
 *
 *   kb/       what is given
 *     logic_symbols   names <-> numbers, sorted by bytes
 *     logic_kb        the loaded dataset: facts and their index, rules by head, domains
 *     logic_queries   queries of its splits
 *     logic_corrupt   streams of triples like a true one but for one argument
 *   search/   what follows
 *     logic_unify     successors of a state: the first goal against facts and rules
 *     logic_env       one proof walked step by step, with every limit of the published environment
 *     logic_search    shortest proofs, breadth first, in bounded memory
 *     logic_least_model   all that follows, bottom up, and how long its shortest proofs are
 *     logic_answers   all answers of an open query
 *     logic_depths    many shortest proofs on all threads
 *     logic_rule_answers   what rules, applied once, give a goal, and their scores
 *     logic_survey    which parts of a knowledge base meet the limits of an env
 *     logic_trace     a proof as a tree, as text and as Prolog
 *
 * A knowledge base never changes once it is open and may be read by any number of threads. An env
 * or a search belongs to one worker; they share nothing, so no locks are needed.
 *
 * Numbers. Constants are 1..n_constants and predicates 1..n_predicates, both in the order of their
 * names' bytes; the predicates True, False and Endf come behind. 0 is padding. Arguments above
 * n_constants are variables.
 */
#ifndef LW_LOGIC_H
#define LW_LOGIC_H

#include "logic/kb/logic_corrupt.h"
#include "logic/search/logic_answers.h"
#include "logic/search/logic_depths.h"
#include "logic/search/logic_env.h"
#include "logic/kb/logic_kb.h"
#include "logic/kb/logic_queries.h"
#include "logic/search/logic_least_model.h"
#include "logic/search/logic_rule_answers.h"
#include "logic/search/logic_search.h"
#include "logic/search/logic_survey.h"
#include "logic/kb/logic_symbols.h"
#include "logic/search/logic_trace.h"
#include "logic/search/logic_unify.h"

#endif
