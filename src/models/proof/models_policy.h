/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy that chooses among the successors of a proof state: embeddings of predicates and
 * arguments, a composition to one vector a state, a residual body, two heads.
 *
 *   atom   e = p + h - t  (TransE; other compositions below)
 *   state  s = scale * sum over the atoms of e
 *   body   x0 = LN(relu(W s + b)),  x_{k+1} = x_k + LN(relu(W_k x_k + b_k))
 *   head   f = W2 relu(W1 x + b1) + b2,  divided by its length with l2_norm
 *   logit of successor k in state c = <f(c), f(k)> / sqrt(embed) / temperature
 *   value  v = w2 . relu(w1 x + c1) + c2
 *
 * (DeepProofLog, AAAI 2026, arXiv 2511.08581; parameter names and order of operations are those of
 * its published code, without the prefixes of the modules around the network.)
 *
 * Rows of the tables are the numbers of lw_atom: row 0 is the pad (never read, never trained),
 * terminals True, False and End are the last three predicates, variables follow the constants.
 * Letters: R states, A atoms a state, E embedding, H hidden width.
 */
#ifndef LW_MODELS_POLICY_H
#define LW_MODELS_POLICY_H

#include "formats/formats.h"
#include "store/store.h"

/* How predicate p, head h and tail t become one vector [E]. */
typedef enum lw_policy_atom {
    LW_POLICY_ATOM_TRANSE,      /* p + h - t */
    LW_POLICY_ATOM_SUM,         /* p - (h + t), as published */
    LW_POLICY_ATOM_COMPLEX,     /* per component: Re(<p, h, conj t>), both tables 2E wide */
    LW_POLICY_ATOM_ROTATE,      /* |rotation(-p) t - h| per component, arguments 2E wide */
    LW_POLICY_ATOM_CONCAT,      /* Linear(3E -> E) of p | h | t (ours: published it does not run) */
    LW_POLICY_ATOM_ATTENTION,   /* p attends to h and t, LW_POLICY_HEADS heads */
    LW_POLICY_ATOM_TRANSFORMER, /* the same by torch's MultiheadAttention, one head */
    LW_POLICY_ATOM_RNN,         /* GRU over h, t from hidden state p */
    LW_POLICY_ATOMS
} lw_policy_atom;

/* How the atoms of a state become one vector. */
typedef enum lw_policy_state {
    LW_POLICY_STATE_MEAN,      /* sum / max_atoms: the published mean counts the padding too */
    LW_POLICY_STATE_ATOM_MEAN, /* sum / real atoms */
    LW_POLICY_STATE_SUM,
    LW_POLICY_STATE_CONCAT,      /* Linear(A E -> E) of the atoms in order (ours, as above) */
    LW_POLICY_STATE_TRANSFORMER, /* a learned query attends to all A places */
    LW_POLICY_STATE_RNN,         /* GRU over all A places */
    LW_POLICY_STATES
} lw_policy_state;

enum { LW_POLICY_HEADS = 4 }; /* of the attention composition; must divide E */

/* Which rows of the table constants have. A row of its own is learned by heart; who shares one cannot be
 * told from others, and what is learned of it holds for constants that training never saw. */
typedef enum lw_policy_constants {
    LW_POLICY_CONSTANTS_OWN,    /* each its own, as published */
    LW_POLICY_CONSTANTS_FROZEN, /* each its own, never trained */
    LW_POLICY_CONSTANTS_SHARED, /* the query's two their own, all others one */
    LW_POLICY_CONSTANTS_ROLES, /* one for the query's first, one for its second, one for all others */
    LW_POLICY_CONSTANTS_NONE, /* none: an argument is nothing (the pad row) or a variable */
    LW_POLICY_CONSTANTS
} lw_policy_constants;
#define LW_POLICY_CONSTANTS_CHOICES "own|frozen|shared|roles|none"

typedef struct lw_policy_config {
    int32_t constants, predicates, variables; /* rows behind the pad row; predicates with the three
                                                 terminals */
    int32_t embed, hidden, blocks;            /* E, H, residual blocks */
    int32_t max_atoms;                        /* A the network was made for: see MEAN and CONCAT */
    int32_t atom, state;                      /* lw_policy_atom, lw_policy_state */
    int32_t constants_as;                     /* lw_policy_constants */
    bool l2_norm;      /* heads' results are divided by their length (at least 1e-12) */
    bool sqrt_scale;   /* logits are divided by sqrt(E) */
    float temperature; /* logits are divided by it; 0: not */
    float dropout;     /* behind every LayerNorm of the body, in training */
    uint64_t names;    /* lw_kb_names of the dataset it was trained on, 0: unknown */
} lw_policy_config;

/* E 250, H 256, 8 blocks, 6 atoms, 1000 variables, TransE, mean, sqrt_scale, no dropout. predicates
 * counts the three terminals. */
lw_policy_config lw_policy_default(int32_t constants, int32_t predicates);
/* LW_EUSAGE with the field and the bound that does not hold. */
int lw_policy_check(const lw_policy_config *c);

typedef struct lw_policy_in {
    lw_val predicates; /* i32[R,A], 0 = pad */
    lw_val arguments;  /* i32[R,2A]: h0 t0 h1 t1 .., 0 = pad */
    lw_val scale;      /* f32[R]: lw_policy_scale of the number of real atoms */
} lw_policy_in;
/* Rows of the table of constants behind the pad row and before the variables. */
int32_t lw_policy_constant_rows(const lw_policy_config *c);
/* Must the network know the query to see a state? (shared, roles) */
bool lw_policy_sees_query(const lw_policy_config *c);
/* The row of an argument (0: pad; constants; variables) in a proof of a query with these arguments. */
int32_t lw_policy_argument(const lw_policy_config *c, int32_t arg, const int32_t query[2]);
/* What `scale` holds for a state of n real atoms (1 for compositions that do not scale). */
float lw_policy_scale(const lw_policy_config *c, int32_t n);

/* ---- for training: every parameter gets its gradient ----------------------------------------- */

/* f32[R,1,H]. Dropout is live when b->training and c->dropout > 0 (needs b->rows i64[R]). */
lw_val lw_policy_body(lw_builder *b, const lw_policy_config *c, lw_policy_in in);
/* f32[R,E] from a body; divided by its length when l2_norm. Multiply with lw_policy_logit_scale. */
lw_val lw_policy_head(lw_builder *b, const lw_policy_config *c, lw_val body);
/* f32[R,1] from a body. */
lw_val lw_policy_value(lw_builder *b, const lw_policy_config *c, lw_val body);
/* logit = this times <head(current), head(successor)>. */
float lw_policy_logit_scale(const lw_policy_config *c);

/* ---- for inference: what depends on parameters only is computed when a plan is prepared ------ */

/*
 * As lw_policy_body up to rounding. With TransE or sum over mean or sum the first Linear is applied
 * to the tables once (a Linear of a sum of rows is the sum of the products of the rows), so that a
 * row costs the residual products only. Also for training stores; never dropout.
 */
lw_val lw_policy_body_infer(lw_builder *b, const lw_policy_config *c, lw_policy_in in);
/*
 * What is kept of a state, f32[R,K] from a body; K = H without l2_norm (relu(W1 x + b1): the head's last
 * product is folded into the query), E with it.
 */
lw_val lw_policy_key(lw_builder *b, const lw_policy_config *c, lw_val body);
/*
 * f32[R,K] from the keys of current states: logit_k = <query(key(current)), key(k)> + a term that
 * is equal for all k, scale and temperature included. Because
 * <W2 a + b, W2 c + b> = <W2'W2 a + W2'b, c> + const(a).
 */
lw_val lw_policy_query(lw_builder *b, const lw_policy_config *c, lw_val key);
int32_t lw_policy_key_width(const lw_policy_config *c);

/* ---- stores and files ------------------------------------------------------------------------ */

/* Declares every parameter in a fresh store (builds and drops a graph) and fixes it. */
int lw_policy_declare(const lw_policy_config *c, lw_store *s);
/* Initial values for training (declared rules, pad rows zero, EMA a copy). */
void lw_policy_init(const lw_policy_config *c, uint64_t seed, lw_store *s);
/*
 * Weights by formula, for measuring without files: element i of parameter `name` is (2u - 1) a,
 *   u = (splitmix64(fnv1a64(name) + seed * 0x9E3779B97F4A7C15 + i) >> 11) * 2^-53
 *
 * in doubles, rounded once; splitmix64(x) mixes x + 0x9E3779B97F4A7C15; a = 1/sqrt(fan in) for
 * weights and biases of linear layers, 1 for tables, whose pad rows are zero; LayerNorms are 1, 0.
 * The store must be declared and fixed. EMA becomes a copy.
 */
int lw_policy_formula(const lw_policy_config *c, uint64_t seed, lw_store *s);

/* config.json, "_class_name": "LeewayPolicy". New reference. */
json_t *lw_policy_to_json(const lw_policy_config *c);
/* LW_EFORMAT: missing or wrong fields. `where` names the file in messages. */
int lw_policy_from_json(const json_t *j, const char *where, lw_policy_config *out);
/*
 * Reads a model folder (config.json and weights), or a bare .safetensors file as
 * lw_policy_load_file with the default hint; into a store (frozen or trainable) with the weights in
 * PARAM.
 */
int lw_policy_load(const char *dir, bool frozen, lw_policy_config *config, lw_store **store);
/*
 * Reads a weights file without a configuration, under our names or those of the published modules
 * (mlp_extractor.shared_network.*, features_extractor.embedder.*; unused heads are passed over).
 * Sizes and compositions with parameters come from the tensors. What they cannot say comes from
 * `hint`: constants (the rows behind them are variables), or with constants 0 the variables;
 * max_atoms, whether a sum of rows is TransE or SUM and of which kind the mean is, l2_norm,
 * sqrt_scale, temperature. NULL: lw_policy_default.
 */
int lw_policy_load_file(const char *path, bool frozen, const lw_policy_config *hint,
                        lw_policy_config *config, lw_store **store);
/* Writes a model folder of one slab (PARAM or EMA): config.json and model.safetensors. */
int lw_policy_save(const char *dir, const lw_policy_config *c, const lw_store *s, lw_slab slab);

#endif
