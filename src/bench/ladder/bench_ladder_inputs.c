/* SPDX-License-Identifier: Apache-2.0 */
/* A network and pictures for the ladder where none are given: sizes are real, contents are not. */
#include <math.h>

#include "bench/ladder/bench_ladder_parts.h"

int lw_ladder_draw_model(const char *dir)
{
    LW_CLEANUP(lw_json_drop)
    json_t *config =
        json_pack("{s:s, s:[s], s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f}", "model_type",
                  "clip_vision_model", "architectures", "CLIPVisionModelWithProjection",
                  "hidden_size", 768, "intermediate_size", 3072, "num_hidden_layers", 12,
                  "num_attention_heads", 12, "image_size", 224, "patch_size", 32, "projection_dim",
                  512, "hidden_act", "quick_gelu", "layer_norm_eps", 1e-5);
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (!config)
        return LW_ENOMEM;
    LW_TRY(lw_network_of_config(config, "a drawn network", &n));
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_network_declare(n, s));
    lw_store_init(s, 1);
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(lw_json_save(lw_path_join(&path, dir, "config.json"), config));
    return lw_store_save_as(s, LW_SLAB_PARAM, lw_path_join(&path, dir, "model.safetensors"),
                            n->def->namings, LW_ELEM_F32, NULL, 0);
}

/* Smooth shapes under a little noise: as large a file as a photograph's, decoded as slowly. */
static void draw(lw_image *im, uint64_t which)
{
    lw_rng_key key = lw_rng_key_of(which, lw_hash_name("ladder"));
    double f[6];
    for (int i = 0; i < 6; i++)
        f[i] = 0.002 + 0.03 * lw_rng_uniform(key, 0, 0, (uint64_t)i);
    for (int32_t y = 0; y < im->height; y++)
        for (int32_t x = 0; x < im->width; x++)
            for (int k = 0; k < 3; k++) {
                int64_t at = ((int64_t)y * im->width + x) * 3 + k;
                double noise = 16 * lw_rng_uniform(key, 1, 0, (uint64_t)at);
                double v = sin(f[k] * x + k) * cos(f[3 + k] * y) + sin(f[k] * (x + y));
                im->rgb[at] = (uint8_t)(110 + 55 * v + noise);
            }
}

int lw_ladder_draw_pictures(const char *dir, int32_t n)
{
    LW_TRY(lw_mkdirs(dir));
    for (int32_t i = 0; i < n; i++) {
        LW_CLEANUP(lw_image_clear) lw_image im = {0};
        LW_CLEANUP(lw_str_clear) lw_str bytes = {0};
        LW_CLEANUP(lw_str_clear) lw_str path = {0};
        LW_TRY(lw_image_init(&im, 500, 375));
        draw(&im, (uint64_t)i);
        LW_TRY(lw_jpeg_encode(&im, 92, &bytes));
        lw_str_addf(&path, "%s/%04d.jpg", dir, (int)i);
        LW_TRY(path.failed ? LW_ENOMEM : lw_file_write(lw_str_c(&path), bytes.s, bytes.len));
    }
    return 0;
}
