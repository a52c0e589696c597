/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_model KIND DIR: writes a small model folder with random weights, for tests. Kinds: unet
 * (16x16, 3 classes), plain (no classes), four (plain, of 4 channels), frames (plain, conditioned on
 * a frame and a previous answer), encoder, clip (a vision transformer for 16x16, of 2x2 patches),
 * dinov2 (another, of 4x4 patches), dinov2_b14 (the published B/14 for 224x224, to be timed: 346 MB), autoencoder (both
 * halves of an AutoencoderKL).
 */
#include <stdio.h>
#include <string.h>

#include "autoencoder_fixture.h"
#include "models/models.h"
#include "store/store.h"

/* Random numbers everywhere: what starts at zero would hide mistakes. */
static void fill(lw_store *s)
{
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        lw_rng_key key = lw_rng_key_of(1, e->hash);
        float *p = lw_store_edit(s, i, LW_SLAB_PARAM);
        double centre = e->init.kind == LW_INIT_ONES ? 1.0 : 0.0;
        for (int64_t k = 0; k < e->count; k++)
            p[k] = (float)(centre + 0.2 * (lw_rng_uniform(key, 0, 0, (uint64_t)k) - 0.5));
    }
}

/* previous: of a network with a condition, the current frame first; -1: none. */
static int make_unet(const char *dir, int32_t classes, int32_t channels, int32_t previous)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_unet_config c = lw_unet_small();
    LW_TRY(lw_unet_set_levels(&c, 16, 16, (const int32_t[]){1, 2}, 2, (const int32_t[]){8}, 1));
    c.norm_groups = 8;
    c.heads = 2;
    c.blocks = 1;
    c.classes = classes;
    c.in_channels = c.out_channels = channels;
    c.frame = previous >= 0;
    c.previous = LW_MAX(previous, 0);
    c.in_channels = channels * (2 + previous);
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_unet_declare(&c, s));
    fill(s);
    LW_CLEANUP(lw_json_drop) json_t *config = lw_unet_to_json(&c);
    return lw_model_folder_save(dir, s, LW_SLAB_PARAM, config, NULL);
}

static int make_encoder(const char *dir)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_encoder_config c = lw_encoder_default(16);
    c.width = 8;
    c.classes = 5;
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_encoder_declare(&c, s));
    fill(s);
    LW_CLEANUP(lw_json_drop) json_t *config = lw_encoder_to_json(&c);
    return lw_model_folder_save(dir, s, LW_SLAB_PARAM, config, LW_WEIGHTS_HF);
}

/* A folder of transformers; takes config. */
static int make_transformer(const char *dir, const lw_network_def *def, json_t *taken)
{
    LW_CLEANUP(lw_json_drop) json_t *config = taken;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_free) void *arch = lw_calloc(1, def->arch_bytes);
    if (!arch || !config)
        return LW_ENOMEM;
    LW_TRY(def->read(config, dir, arch));
    LW_TRY(lw_store_new(true, &s));
    lw_network n = lw_network_of(def, arch, s);
    LW_TRY(lw_network_declare(&n, s));
    fill(s);
    LW_TRY(lw_model_folder_save(dir, s, LW_SLAB_PARAM, config, LW_WEIGHTS_HF));
    return lw_store_save_as(s, LW_SLAB_PARAM, lw_path_join(&path, dir, LW_WEIGHTS_HF), def->namings,
                            LW_ELEM_F32, NULL, 0);
}

static int make_clip(const char *dir)
{
    return make_transformer(dir, &lw_network_def_clip,
                            json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "model_type",
                                      "clip_vision_model", "hidden_size", 16, "intermediate_size",
                                      32, "num_hidden_layers", 2, "num_attention_heads", 2,
                                      "image_size", 16, "patch_size", 8, "projection_dim", 12,
                                      "hidden_act", "quick_gelu"));
}

static int make_dinov2(const char *dir, int width, int layers, int heads, int side, int patch)
{
    return make_transformer(dir, &lw_network_def_dinov2,
                            json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "model_type", "dinov2",
                                      "hidden_size", width, "num_hidden_layers", layers,
                                      "num_attention_heads", heads, "image_size", side,
                                      "patch_size", patch));
}

int main(int argc, char **argv)
{
    int rc = LW_EUSAGE;
    if (argc == 3 && strcmp(argv[1], "unet") == 0)
        rc = make_unet(argv[2], 3, 3, -1);
    else if (argc == 3 && strcmp(argv[1], "plain") == 0)
        rc = make_unet(argv[2], 0, 3, -1);
    else if (argc == 3 && strcmp(argv[1], "four") == 0)
        rc = make_unet(argv[2], 0, 4, -1);
    else if (argc == 3 && strcmp(argv[1], "frames") == 0)
        rc = make_unet(argv[2], 0, 3, 1);
    else if (argc == 3 && strcmp(argv[1], "encoder") == 0)
        rc = make_encoder(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "clip") == 0)
        rc = make_clip(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "dinov2") == 0)
        rc = make_dinov2(argv[2], 32, 2, 2, 32, 8);
    else if (argc == 3 && strcmp(argv[1], "dinov2_b14") == 0)
        rc = make_dinov2(argv[2], 768, 12, 12, 224, 14);
    else if (argc == 3 && strcmp(argv[1], "autoencoder") == 0)
        rc = autoencoder_make(argv[2]);
    if (rc < 0)
        fprintf(stderr, "make_model: %s\n",
                *lw_errmsg()
                    ? lw_errmsg()
                    : "unet|plain|four|frames|encoder|clip|dinov2|dinov2_b14|autoencoder DIR");
    return rc < 0;
}
