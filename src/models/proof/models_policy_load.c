/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a policy: a model folder, or a bare weights file under our or the published names. */
#include "models/proof/models_policy_parts.h"

#include <stdio.h>
#include <string.h>

#define EMBEDDER "features_extractor.embedder."

static const lw_name_rule published[] = {
    {.file = EMBEDDER "constant_embedder.embedder.*", .store = "constant_embedding.*"},
    {.file = EMBEDDER "predicate_embedder.embedder.*", .store = "predicate_embedding.*"},
    {.file = EMBEDDER "atom_embedder.**", .store = "atom_embedder.**"},
    {.file = EMBEDDER "state_embedder.**", .store = "state_embedder.**"},
    {.file = "mlp_extractor.shared_network.**", .store = "**"},
    {0},
};
/* The tables are there up to three times (pi_.., vf_..); two heads are never used. */
static const char *const never_used[] = {"pi_**", "vf_**", "action_net.**", "value_net.**", NULL};
static const lw_naming namings[] = {
    {.name = "leeway", .ignored = never_used},
    {.name = "stable-baselines3", .rules = published, .ignored = never_used},
    {0}};

/* A tensor under our name or the published one; NULL: absent. */
static const lw_st_tensor *find(const lw_st_file *f, const char *name)
{
    return lw_naming_find(namings, f, name);
}

/* Rows and columns of a weight. */
static int shape_of(const lw_st_file *f, const char *name, int32_t *rows, int32_t *columns)
{
    const lw_st_tensor *t = find(f, name);
    if (!t)
        return lw_fail(LW_EFORMAT, "%s: no tensor '%s': this is not a policy", lw_st_path(f), name);
    if (t->rank != 2 || t->shape[0] > INT32_MAX || t->shape[1] > INT32_MAX)
        return lw_fail(LW_EFORMAT, "%s: '%s' is no matrix", lw_st_path(f), name);
    *rows = (int32_t)t->shape[0];
    *columns = (int32_t)t->shape[1];
    return 0;
}

static int32_t atom_kind(const lw_st_file *f, int32_t hint)
{
    if (find(f, "atom_embedder.transform.weight"))
        return LW_POLICY_ATOM_CONCAT;
    if (find(f, "atom_embedder.q_proj.weight"))
        return LW_POLICY_ATOM_ATTENTION;
    if (find(f, "atom_embedder.attention.in_proj_weight"))
        return LW_POLICY_ATOM_TRANSFORMER;
    if (find(f, "atom_embedder.gru.weight_ih_l0"))
        return LW_POLICY_ATOM_RNN;
    return hint == LW_POLICY_ATOM_SUM ? LW_POLICY_ATOM_SUM : LW_POLICY_ATOM_TRANSE;
}

static int32_t state_kind(const lw_st_file *f, int32_t hint)
{
    if (find(f, "state_embedder.transform.weight"))
        return LW_POLICY_STATE_CONCAT;
    if (find(f, "state_embedder.query"))
        return LW_POLICY_STATE_TRANSFORMER;
    if (find(f, "state_embedder.gru.weight_ih_l0"))
        return LW_POLICY_STATE_RNN;
    return hint <= LW_POLICY_STATE_SUM ? hint : LW_POLICY_STATE_MEAN;
}

/* The rows behind the pad row: constants, then variables. */
static int split_table(const lw_st_file *f, int32_t rows, lw_policy_config *c)
{
    bool known = c->constants > 0;
    int32_t given = known ? c->constants : c->variables;
    if (rows - 1 < given)
        return lw_fail(LW_EFORMAT,
                       "%s: the table of constants has %d rows, too few for %d %s; a config.json "
                       "beside the weights would say how many there are",
                       lw_st_path(f), rows, given, known ? "constants" : "variables");
    c->constants = known ? given : rows - 1 - given;
    c->variables = rows - 1 - c->constants;
    return 0;
}

static int derive(const lw_st_file *f, lw_policy_config *c)
{
    int32_t rows, wide, places, unused;
    char block[64];
    LW_TRY(shape_of(f, "policy_head.out_transform.2.weight", &c->embed, &c->hidden));
    for (c->blocks = 0;; c->blocks++) {
        snprintf(block, sizeof block, "shared_body.res_blocks.%d.0.weight", c->blocks);
        if (!find(f, block))
            break;
    }
    c->atom = atom_kind(f, c->atom);
    c->state = state_kind(f, c->state);
    LW_TRY(shape_of(f, "predicate_embedding.weight", &rows, &wide));
    c->predicates = rows - 1;
    LW_TRY(shape_of(f, "constant_embedding.weight", &rows, &unused));
    if (unused == 2 * c->embed)
        c->atom = wide == 2 * c->embed ? LW_POLICY_ATOM_COMPLEX : LW_POLICY_ATOM_ROTATE;
    LW_TRY(split_table(f, rows, c));
    if (c->state == LW_POLICY_STATE_CONCAT) {
        LW_TRY(shape_of(f, "state_embedder.transform.weight", &rows, &places));
        c->max_atoms = places / c->embed;
    }
    if (lw_policy_check(c) < 0)
        return lw_fail(LW_EFORMAT, "%s: %s", lw_st_path(f), lw_errmsg());
    return 0;
}

/* A store of a configuration, filled from a file. */
static int fill(const lw_policy_config *c, bool frozen, const lw_st_file *f, lw_store **store)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_TRY(lw_store_new(frozen, &s));
    lw_store_expect(s, f, namings);
    LW_TRY(lw_policy_declare(c, s));
    LW_TRY(lw_store_load_from(s, LW_SLAB_PARAM, f, namings));
    lw_policy_clear_pads(s);
    *store = lw_steal(&s);
    return 0;
}

int lw_policy_load_file(const char *path, bool frozen, const lw_policy_config *hint,
                        lw_policy_config *config, lw_store **store)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    lw_policy_config c = hint ? *hint : lw_policy_default(0, 1);
    LW_TRY(lw_st_open(path, &f));
    LW_TRY(derive(f, &c));
    LW_TRY(fill(&c, frozen, f, store));
    *config = c;
    return 0;
}

int lw_policy_load(const char *dir, bool frozen, lw_policy_config *config, lw_store **store)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    lw_policy_config c;
    LW_TRY(lw_json_load(lw_path_join(&path, dir, "config.json"), &j));
    LW_TRY(lw_policy_from_json(j, lw_str_c(&path), &c));
    LW_TRY(lw_model_weights_find(dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &f));
    LW_TRY(fill(&c, frozen, f, store));
    *config = c;
    return 0;
}
