/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's weights: initial values, values by formula, saving. */
#include "models/proof/models_policy_parts.h"

#include <math.h>
#include <string.h>

static bool is_table(const lw_store_entry *e)
{
    return strcmp(e->name, "constant_embedding.weight") == 0 ||
           strcmp(e->name, "predicate_embedding.weight") == 0;
}

/* The pad row of each table is zero for ever. */
void lw_policy_clear_pads(lw_store *s)
{
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        if (is_table(e))
            memset(lw_store_edit(s, i, LW_SLAB_PARAM), 0, sizeof(float) * (size_t)e->type.dim[1]);
    }
    lw_store_touch(s, LW_SLAB_PARAM);
    lw_store_start_ema(s);
}

void lw_policy_init(const lw_policy_config *c, uint64_t seed, lw_store *s)
{
    (void)c;
    lw_store_init(s, seed);
    lw_policy_clear_pads(s);
}

static uint64_t fnv1a64(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return h;
}

static uint64_t splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Columns of the weight that lies beside this weight or bias; 0: a LayerNorm. */
static int32_t fan_in(const lw_store *s, const lw_store_entry *e)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    if (e->type.rank == 2)
        return e->type.dim[1];
    if (!lw_str_ends(e->name, ".bias"))
        return 0;
    lw_str_add_n(&name, e->name, strlen(e->name) - strlen("bias"));
    lw_str_add(&name, "weight");
    int32_t at = lw_store_find(s, lw_str_c(&name));
    lw_type w = at < 0 ? (lw_type){0} : lw_store_at(s, at)->type;
    return w.rank == 2 ? w.dim[1] : 0;
}

static void fill(const lw_store *s, const lw_store_entry *e, uint64_t seed, float *v)
{
    uint64_t base = fnv1a64(e->name) + seed * 0x9E3779B97F4A7C15u;
    int32_t k = fan_in(s, e);
    double a = is_table(e) || k == 0 ? 1.0 : 1.0 / sqrt((double)k);
    for (int64_t i = 0; i < e->count; i++) {
        double u = (double)(splitmix64(base + (uint64_t)i) >> 11) * 0x1p-53;
        v[i] = k > 0 ? (float)((2.0 * u - 1.0) * a) : lw_str_ends(e->name, ".weight");
    }
}

int lw_policy_formula(const lw_policy_config *c, uint64_t seed, lw_store *s)
{
    LW_TRY(lw_policy_check(c));
    if (!lw_store_is_fixed(s))
        return lw_fail(LW_EUSAGE, "formula weights need a declared store");
    for (int32_t i = 0; i < lw_store_count(s); i++)
        fill(s, lw_store_at(s, i), seed, lw_store_edit(s, i, LW_SLAB_PARAM));
    lw_policy_clear_pads(s);
    return 0;
}

int lw_policy_save(const char *dir, const lw_policy_config *c, const lw_store *s, lw_slab slab)
{
    LW_CLEANUP(lw_json_drop) json_t *j = lw_policy_to_json(c);
    LW_TRY(lw_policy_check(c));
    if (!j)
        return lw_fail(LW_ENOMEM, "out of memory for %s/config.json", dir);
    return lw_model_folder_save(dir, s, slab, j, LW_WEIGHTS_HF);
}
