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

static void try_encoder(const char *spec)
{
    lw_encoder *e = NULL;
    lw_graph *g = NULL;
    lw_taps taps;
    if (lw_encoder_open(spec, &e) < 0)
        return;
    if (lw_graph_new(&g) < 0)
        abort();
    int32_t side = 32;
    if (e->kind == LW_ENCODER_OWN) {
        SAME(lw_encoder_config, encoder, &e->own);
        side = e->own.image_size;
    }
    lw_encoder_build(e, g, lw_input(g, "x", lw_type_of(LW_F32, 4, 1, side, side, 3)), &taps);
    if (lw_graph_error(g) < 0)
        abort();
    lw_graph_free(&g);
    lw_encoder_close(&e);
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
    lw_unet_config unet;
    lw_policy_config policy;
    lw_kge_config kge;
    lw_store *s = NULL;
    if (lw_unet_load(dir, true, &unet, &s) == 0)
        SAME(lw_unet_config, unet, &unet);
    lw_store_free(&s);
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
    try_encoder(dir);
    if (lw_model_weights_find(dir, &file) == 0) {
        try_encoder(lw_str_c(&file));
        lw_policy_load_file(lw_str_c(&file), true, NULL, &policy, &s);
        lw_store_free(&s);
    }
    lw_errclear();
    return 0;
}
