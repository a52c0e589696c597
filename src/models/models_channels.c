/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many channels the pictures of a network have: as many as the convolution that sees them first
 * takes. Where a configuration says it too, it must say the same.
 */
#include "models/models_private.h"

/* The weight of that convolution; NULL: the file has none of the names that the record knows. */
static const lw_st_tensor *find_stem(const lw_network_def *def, const lw_st_file *f)
{
    const lw_st_tensor *t = NULL;
    size_t n;
    for (const char *rest = def->stem, *word; !t && (word = lw_str_word(&rest, ' ', &n));) {
        LW_CLEANUP(lw_str_clear) lw_str name = {0};
        lw_str_add_n(&name, word, n);
        t = def->namings ? lw_naming_find(def->namings, f, lw_str_c(&name))
                         : lw_st_find_model(f, lw_str_c(&name));
    }
    return t && t->rank == 4 ? t : NULL;
}

/* transformers' num_channels, timm's in_chans; *out stays where there is none. */
static int said(const json_t *config, const char *where, const char **key, int32_t *out)
{
    const json_t *args = json_object_get(config, "model_args");
    const json_t *tower = json_object_get(config, "vision_config_dict");
    if (!json_is_object(tower))
        tower = json_object_get(config, "vision_config");
    const struct {
        const json_t *in;
        const char *key;
    } places[] = {{config, "num_channels"}, {tower, "num_channels"}, {args, "in_chans"}};
    for (size_t i = 0; i < LW_COUNT(places); i++) {
        const json_t *v = json_object_get(places[i].in, places[i].key);
        if (!v || json_is_null(v))
            continue;
        *key = places[i].key;
        LW_TRY(lw_json_get_i32_in(places[i].in, where, *key, 1, LW_MAX_CHANNELS, out));
    }
    return 0;
}

int lw_network_channels(lw_network *n, const char *where, const lw_st_file *f)
{
    const lw_st_tensor *stem = f ? find_stem(n->def, f) : NULL;
    const char *key = "";
    int32_t wanted = 0;
    if (!n->def->stem) /* describe says it */
        return n->prepared ? lw_preparation_for(&n->preparation, where, n->channels) : 0;
    LW_TRY(said(n->config, where, &key, &wanted));
    if (stem && (stem->shape[1] < 1 || stem->shape[1] > LW_MAX_CHANNELS))
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: '%s' takes pictures of %lld channels, 1 to %d are known", where,
                       stem->name, (long long)stem->shape[1], LW_MAX_CHANNELS);
    if (stem && wanted && stem->shape[1] != wanted)
        return lw_fail(LW_EFORMAT, "%s: '%s' is %d, but '%s' takes pictures of %lld channels",
                       where, key, (int)wanted, stem->name, (long long)stem->shape[1]);
    n->channels = stem ? (int32_t)stem->shape[1] : wanted ? wanted : 3;
    return n->prepared ? lw_preparation_for(&n->preparation, where, n->channels) : 0;
}

lw_val lw_network_gray(const lw_network *n, lw_graph *g, lw_val x)
{
    if (!lw_val_ok(x) || !n->def->build)
        return x;
    lw_type t = lw_val_type(g, x);
    int32_t have = lw_type_last(t);
    if (have == n->channels)
        return x;
    if (have == 1 && n->channels == 3) {
        t.dim[t.rank - 1] = 3;
        return lw_broadcast(g, x, t);
    }
    if (have == 3 && n->channels == 1) {
        static const float luma[] = {19595 / 65536.0f, 38470 / 65536.0f, 7471 / 65536.0f};
        return lw_sum(g, lw_mul(g, x, lw_const(g, lw_type_of(LW_F32, 1, 3), luma)), LW_OVER_LAST);
    }
    return lw_graph_fail(g, LW_ESHAPE, "pictures of %d channels, and %s takes %d", (int)have,
                         n->name, (int)n->channels);
}
