/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of triples by a trained embedding. */
#include "jobs/prove/kge/prove_kge_parts.h"

#include <math.h>
#include <string.h>

#include "models/models.h"
#include "jobs/prove/walk/prove_policy.h"

enum { ROWS = 256 }; /* triples of one run: those that an evaluation asks for together */

/* ---- plans ----------------------------------------------------------------------------------- */

static lw_val input_i32(lw_graph *g, const char *name, int32_t n)
{
    return lw_input(g, name, lw_type_of(LW_I32, 1, n));
}

static lw_val side_of(lw_graph *g, float side)
{
    return lw_broadcast(g, lw_const_f32(g, side), lw_type_of(LW_F32, 2, ROWS, 1));
}

/* Triples one by one; with inverse relations the mean of both directions. */
static lw_val build_each(const lw_kge *k, lw_builder *b)
{
    lw_graph *g = b->g;
    lw_val table = lw_kge_entities(b, &k->config), relations = lw_kge_relations(b, &k->config);
    lw_val head = lw_embedding(g, table, input_i32(g, "heads", ROWS));
    lw_val tail = lw_embedding(g, table, input_i32(g, "tails", ROWS));
    lw_val relation = lw_embedding(g, relations, input_i32(g, "relations", ROWS));
    lw_val q = lw_kge_query(g, &k->config, head, relation, side_of(g, 1.0f));
    lw_val score = lw_kge_score_each(g, &k->config, q, tail);
    if (!k->config.inverse)
        return score;
    relation = lw_embedding(g, relations, input_i32(g, "inverse", ROWS));
    q = lw_kge_query(g, &k->config, tail, relation, side_of(g, 1.0f));
    return lw_scale(g, lw_add(g, score, lw_kge_score_each(g, &k->config, q, head)), 0.5f);
}

static int compile(const lw_kge *k, lw_graph **g, lw_val score, lw_forward **out)
{
    lw_graph_output_add(*g, "scores", score, LW_NOVAL);
    return lw_forward_of(k->dev, g, NULL, k->slab, "an embedding's scores", out);
}

static int open_each(lw_kge *k)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    if (k->each)
        return 0;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(k->store)};
    return compile(k, &g, build_each(k, &b), &k->each);
}

int lw_kge_open_all(lw_kge *k)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    if (k->all)
        return 0;
    k->block = lw_kge_block(&k->config);
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(k->store)};
    lw_val table = lw_kge_entities(&b, &k->config);
    lw_val known = lw_embedding(g, table, input_i32(g, "known", k->block));
    lw_val relation = lw_embedding(g, lw_kge_relations(&b, &k->config),
                                   input_i32(g, "relations", k->block));
    lw_val side = lw_input(g, "side", lw_type_of(LW_F32, 2, k->block, 1));
    lw_val q = lw_kge_query(g, &k->config, known, relation, side);
    return compile(k, &g, lw_kge_score_all(g, &k->config, q, table), &k->all);
}

/* ---- opening --------------------------------------------------------------------------------- */

int lw_kge_over(const lw_kge_config *c, lw_store *store, lw_slab slab, lw_device *dev, lw_kge **out)
{
    lw_kge *k = lw_calloc(1, sizeof *k);
    if (!k)
        return LW_ENOMEM;
    *k = (lw_kge){.config = *c, .store = store, .slab = slab, .dev = dev};
    *out = k;
    return 0;
}

static int check_names(const lw_kge_config *c, const char *dir, const lw_kb *kb)
{
    if (c->entities != kb->n_constants || c->relations != kb->n_predicates)
        return lw_fail(LW_EFORMAT,
                       "%s has %d entities and %d relations, the dataset %d and %d: it was trained "
                       "on other facts or rules",
                       dir, (int)c->entities, (int)c->relations, (int)kb->n_constants,
                       (int)kb->n_predicates);
    return lw_prove_check_names(c->names, dir, kb);
}

int lw_kge_open(const char *source, bool ema, const lw_kb *kb, lw_device *dev, lw_kge **out)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place place = {0};
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    lw_kge_config c;
    LW_TRY(lw_model_find(source, ema, &place));
    if (!place.config)
        return lw_fail(LW_EFORMAT, "%s: weights alone; embeddings need their config.json", source);
    LW_TRY(lw_kge_load(lw_str_c(&place.path), true, &c, &store));
    LW_TRY(check_names(&c, lw_str_c(&place.path), kb));
    LW_TRY(lw_kge_over(&c, store, LW_SLAB_PARAM, dev, out));
    (*out)->owned = lw_steal(&store);
    return 0;
}

void lw_kge_close(lw_kge **pp)
{
    lw_kge *k = *pp;
    if (!k)
        return;
    lw_forward_free(&k->each);
    lw_forward_free(&k->all);
    lw_store_free(&k->owned);
    lw_free(pp);
}

const lw_kge_config *lw_kge_get_config(const lw_kge *k)
{
    return &k->config;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static int score_rows(lw_kge *k, const lw_atom *a, int64_t n, float *out)
{
    int32_t *head = lw_forward_input(k->each, "heads"), *tail = lw_forward_input(k->each, "tails"),
            *relation = lw_forward_input(k->each, "relations"),
            *inverse = lw_forward_input(k->each, "inverse"); /* or NULL */
    for (int64_t i = 0; i < ROWS; i++) { /* rows behind the last one score it again */
        lw_atom t = a[LW_MIN(i, n - 1)];
        head[i] = t.arg[0] - 1;
        tail[i] = t.arg[1] - 1;
        relation[i] = t.p - 1;
        if (inverse)
            inverse[i] = t.p - 1 + k->config.relations;
    }
    LW_TRY(lw_forward_run(k->each, NULL));
    memcpy(out, lw_forward_output(k->each, "scores"), (size_t)n * sizeof *out);
    return lw_forward_failed(k->each);
}

int lw_kge_score(lw_kge *k, const lw_atom *atoms, int64_t n, float *out)
{
    LW_TRY(open_each(k));
    for (int64_t at = 0; at < n; at += ROWS)
        LW_TRY(score_rows(k, atoms + at, LW_MIN(n - at, ROWS), out + at));
    return 0;
}

double lw_kge_log(double score)
{
    return LW_MIN(score, 0.0) - log1p(exp(-fabs(score)));
}

static int log_scores(void *self, const lw_atom *atoms, int32_t n, float *out)
{
    LW_TRY(lw_kge_score(self, atoms, n, out));
    for (int32_t i = 0; i < n; i++)
        out[i] = (float)lw_kge_log((double)out[i]);
    return 0;
}

int lw_kge_plausibility(lw_kge *k, lw_prove_kge *out)
{
    LW_TRY(open_each(k));
    out->name = "kge";
    out->self = k;
    out->log_score = log_scores;
    return 0;
}
