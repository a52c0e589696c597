/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof: knowledge bases and proof search. Knows symbols, facts, rules and states of goals; no
 * tensors, no networks.
 *
 *   proof_symbols   names <-> numbers, sorted by bytes
 *   proof_kb        the loaded dataset: facts and their index, rules by head, domains, queries
 *   proof_corrupt   streams of triples like a true one but for one argument
 *   proof_unify     successors of a state: the first goal against facts and rules
 *   proof_env       one proof walked step by step, with every limit of the published environment
 *   proof_search    shortest proofs, breadth first, in bounded memory
 *   proof_depths    many shortest proofs on all threads
 *   proof_trace     a proof as a tree, as text and as Prolog
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

#include "logic/logic_corrupt.h"
#include "logic/logic_depths.h"
#include "logic/logic_env.h"
#include "logic/logic_kb.h"
#include "logic/logic_queries.h"
#include "logic/logic_search.h"
#include "logic/logic_survey.h"
#include "logic/logic_symbols.h"
#include "logic/logic_trace.h"
#include "logic/logic_unify.h"

#endif
