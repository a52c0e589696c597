/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a model folder (fuzz_folder.h). Every kind of config.json, recognition by the
 * names of tensors, indexes of shards. What is accepted can be written and reads back as the same.
 */
#include "fuzz/fuzz_folder.h"

#include <stdlib.h>

#include "models/models.h"

/* to_json(x) read back is x again, as text. */
#define SAME(T, name, config)                                        \
    do {                                                             \
        T again;                                                     \
        json_t *a = lw_##name##_to_json(config), *b = NULL;          \
        if (!a || lw_##name##_from_json(a, "written", &again) < 0 || \
            !(b = lw_##name##_to_json(&again)) || !json_equal(a, b)) \
            abort();                                                 \
        json_decref(a);                                              \
        json_decref(b);                                              \
    } while (0)

static void try_network(const char *source)
{
    lw_network *n = NULL;
    lw_graph *g = NULL;
    if (lw_network_open(source, true, &n) < 0)
        return;
    if (n->def == &lw_network_def_leeway)
        SAME(lw_encoder_config, encoder, (const lw_encoder_config *)n->arch);
    if (n->def == &lw_network_def_unet)
        SAME(lw_unet_config, unet, (const lw_unet_config *)n->arch);
    int32_t side = lw_network_side(n, 0);
    if (lw_graph_new(&g) < 0 || lw_network_build(n, g, 1, side, side, "*") < 0)
        abort();
    lw_graph_free(&g);
    lw_network_close(&n);
}

static void try_index(const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    if (lw_model_weights_find(dir, &path) < 0 || lw_st_open(lw_str_c(&path), &f) < 0)
        return;
    for (size_t i = 0; i < lw_st_count(f); i++)
        fuzz_touch(lw_st_at(f, i)->data, lw_st_at(f, i)->bytes);
}

static void try_models(const char *dir)
{
    lw_policy_config policy;
    lw_kge_config kge;
    lw_store *s = NULL;
    if (lw_policy_load(dir, true, &policy, &s) == 0)
        SAME(lw_policy_config, policy, &policy);
    lw_store_free(&s);
    if (lw_kge_load(dir, true, &kge, &s) == 0)
        SAME(lw_kge_config, kge, &kge);
    lw_store_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    const char *dir = fuzz_folder(data, size);
    lw_policy_config policy;
    lw_store *s = NULL;
    lw_log_set(LW_LOG_ERROR); /* unused tensors are warned about */
    try_index(dir);
    try_models(dir);
    try_network(dir);
    if (lw_model_weights_find(dir, &file) == 0) {
        try_network(lw_str_c(&file));
        lw_policy_load_file(lw_str_c(&file), true, NULL, &policy, &s);
        lw_store_free(&s);
    }
    lw_errclear();
    return 0;
}
