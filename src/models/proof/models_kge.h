/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeddings of knowledge graphs. A triple (h, r, t) is scored in two moves that all models share:
 * the known entity and the relation make a query row, the query is compared with a candidate's row.
 *
 *   TransE (Bordes et al. 2013)     q = h + r, t - r        gamma - |q - e|, L1 or L2
 *   RotatE (Sun et al. 2019)        q = h r, t conj(r)      gamma - sum of moduli of q - e
 *   ComplEx (Trouillon et al. 2016) q = h r, t conj(r)      Re <q, conj e>
 *   DistMult (Yang et al. 2015)     q = h r, t r            <q, e>
 *
 * The first q asks for the tail (side +1), the second for the head (side -1); in RotatE |r| = 1.
 * Complex rows hold the real parts, then the imaginary parts.
 *
 * Parameters, named as in RotatE's code: entity_embedding [entities, width] and relation_embedding
 * [relations, relation width] (twice the relations with `inverse`: relation n + r is r read from
 * tail to head, and every query asks for a tail). RotatE's relations are phases, stored as there:
 * phase = value * pi / range. Row k is entity or relation number k + 1 of the knowledge base.
 */
#ifndef LW_MODELS_KGE_H
#define LW_MODELS_KGE_H

#include "formats/formats.h"
#include "store/store.h"

typedef enum lw_kge_kind {
    LW_KGE_TRANSE,
    LW_KGE_ROTATE,
    LW_KGE_COMPLEX,
    LW_KGE_DISTMULT,
    LW_KGE_KINDS
} lw_kge_kind;
#define LW_KGE_CHOICES "transe|rotate|complex|distmult"

typedef struct lw_kge_config {
    int32_t kind; /* lw_kge_kind */
    int32_t entities, relations;
    int32_t dim;    /* numbers of a row, complex ones for RotatE and ComplEx */
    int32_t norm;   /* TransE: 1 or 2 */
    bool inverse;   /* a relation of its own for each direction */
    float gamma;    /* TransE, RotatE: the score of distance 0 */
    float range;    /* half width of the initial values; 0: (gamma + 2) / dim, and 1e-2 for the
                       products */
    uint64_t names; /* lw_kb_names of the dataset, 0: unknown */
} lw_kge_config;

/* LW_EUSAGE with the field that is out of its range; sets range when it is 0. */
int lw_kge_check(lw_kge_config *c);
/* Scored by a distance (else by a product)? */
bool lw_kge_is_distance(const lw_kge_config *c);

/* The tables as values. */
lw_val lw_kge_entities(lw_builder *b, const lw_kge_config *c);
lw_val lw_kge_relations(lw_builder *b, const lw_kge_config *c);

/* entity [B, width], relation [B, relation width], side f32[B,1] of +1 (tail asked for) and -1 ->
 * [B, width]. */
lw_val lw_kge_query(lw_graph *g, const lw_kge_config *c, lw_val entity, lw_val relation,
                    lw_val side);
/* query [B, width] against all rows [N, width] -> scores [B, N]. */
lw_val lw_kge_score_all(lw_graph *g, const lw_kge_config *c, lw_val query, lw_val rows);
/* query i against row i -> [B, 1]. */
lw_val lw_kge_score_each(lw_graph *g, const lw_kge_config *c, lw_val query, lw_val rows);
/* N3 (Lacroix et al. 2018): sum of |x|^3 over the numbers of each row (moduli of complex ones) ->
 * [B, 1]. */
lw_val lw_kge_cubes(lw_graph *g, const lw_kge_config *c, lw_val rows);

/* config.json; new reference. */
json_t *lw_kge_to_json(const lw_kge_config *c);
/* LW_EFORMAT; `where` names the file in messages. */
int lw_kge_from_json(const json_t *j, const char *where, lw_kge_config *out);
/* Declares the tables in a fresh store and fixes it. */
int lw_kge_declare(const lw_kge_config *c, lw_store *s);
/* Reads a model folder: config, and a store (frozen or trainable) with the weights in PARAM. */
int lw_kge_load(const char *dir, bool frozen, lw_kge_config *config, lw_store **store);
/* Writes one. */
int lw_kge_save(const char *dir, const lw_kge_config *c, const lw_store *s);

#endif
