/* SPDX-License-Identifier: Apache-2.0 */
/* Model folders of knowledge graph embeddings: config.json and model.safetensors. */
#include "models/models.h"

#include <string.h>

static const char *const class_names[LW_KGE_KINDS] = {"TransE", "RotatE", "ComplEx", "DistMult"};

json_t *lw_kge_to_json(const lw_kge_config *c)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:b, s:f, s:f, s:o}", "model_type", "kge",
                     "model", class_names[c->kind], "entities", c->entities, "relations",
                     c->relations, "embedding_dim", c->dim, "norm", c->norm, "inverse_relations",
                     c->inverse, "gamma", (double)c->gamma, "embedding_range", (double)c->range,
                     "names", lw_json_hash(c->names));
}

static int read_kind(const json_t *j, const char *where, int32_t *out)
{
    const char *name;
    LW_TRY(lw_json_get_str(j, where, "model", &name));
    for (int32_t k = 0; k < LW_KGE_KINDS; k++)
        if (strcmp(name, class_names[k]) == 0) {
            *out = k;
            return 0;
        }
    return lw_fail(LW_EFORMAT, "%s: 'model' is %s, known are TransE, RotatE, ComplEx and DistMult",
                   where, name);
}

int lw_kge_from_json(const json_t *j, const char *where, lw_kge_config *out)
{
    lw_kge_config c = {.norm = 1};
    double gamma = 0.0, range = 0.0;
    const char *type;
    const char *other = json_string_value(json_object_get(j, "_class_name"));
    if (other && strcmp(other, "LeewayPolicy") == 0)
        return lw_fail(LW_EFORMAT,
                       "%s: this is a policy (prove train), no embeddings of a knowledge graph; it "
                       "is given by --policy",
                       where);
    if (other && !json_object_get(j, "model_type"))
        return lw_fail(LW_EFORMAT, "%s: this is a %s, no embedding of a knowledge graph", where,
                       other);
    LW_TRY(lw_json_get_str(j, where, "model_type", &type));
    if (strcmp(type, "kge") != 0)
        return lw_fail(LW_EFORMAT, "%s: this is a %s, no embedding of a knowledge graph", where,
                       type);
    LW_TRY(read_kind(j, where, &c.kind));
    LW_TRY(lw_json_get_i32_in(j, where, "entities", 1, INT32_MAX, &c.entities));
    LW_TRY(lw_json_get_i32_in(j, where, "relations", 1, INT32_MAX / 2, &c.relations));
    LW_TRY(lw_json_get_i32_in(j, where, "embedding_dim", 1, 65536, &c.dim));
    if (c.kind == LW_KGE_TRANSE)
        LW_TRY(lw_json_get_i32_in(j, where, "norm", 1, 2, &c.norm));
    LW_TRY(lw_json_opt_bool(j, where, "inverse_relations", &c.inverse));
    LW_TRY(lw_json_opt_f64(j, where, "gamma", &gamma));
    LW_TRY(lw_json_opt_f64(j, where, "embedding_range", &range));
    LW_TRY(lw_json_opt_hash(j, where, "names", &c.names));
    c.gamma = (float)gamma;
    c.range = (float)range;
    if (lw_kge_check(&c) < 0) /* the fields are well-formed, the model is not */
        return lw_fail(LW_EFORMAT, "%s: %s", where, lw_errmsg());
    *out = c;
    return 0;
}

int lw_kge_declare(const lw_kge_config *c, lw_store *s)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_kge_entities(&b, c);
    lw_kge_relations(&b, c);
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(s);
}

int lw_kge_load(const char *dir, bool frozen, lw_kge_config *config, lw_store **store)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_kge_config c;
    LW_TRY(lw_json_load(lw_path_join(&path, dir, "config.json"), &j));
    LW_TRY(lw_kge_from_json(j, lw_str_c(&path), &c));
    LW_TRY(lw_model_weights_find(dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &f));
    LW_TRY(lw_store_new(frozen, &s));
    lw_store_expect(s, f, NULL);
    LW_TRY(lw_kge_declare(&c, s));
    LW_TRY(lw_store_load_from(s, LW_SLAB_PARAM, f, NULL));
    *config = c;
    *store = lw_steal(&s);
    return 0;
}

int lw_kge_save(const char *dir, const lw_kge_config *c, const lw_store *s)
{
    LW_CLEANUP(lw_json_drop) json_t *j = lw_kge_to_json(c);
    if (!j)
        return lw_fail(LW_ENOMEM, "out of memory for config.json");
    return lw_model_folder_save(dir, s, LW_SLAB_PARAM, j, LW_WEIGHTS_HF);
}
