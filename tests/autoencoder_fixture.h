/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with both halves of a small AutoencoderKL of random weights: pictures become latents of half
 * their sides and 4 channels. */
#ifndef LW_TESTS_AUTOENCODER_FIXTURE_H
#define LW_TESTS_AUTOENCODER_FIXTURE_H

#include "models/models.h"

static inline int autoencoder_half(const lw_network_def *def, const json_t *config,
                                   const char *path)
{
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_free) void *arch = lw_calloc(1, def->arch_bytes);
    if (!arch)
        return LW_ENOMEM;
    LW_TRY(def->read(config, "config.json", arch));
    LW_TRY(lw_store_new(true, &s));
    lw_network n = lw_network_of(def, arch, s);
    LW_TRY(lw_network_declare(&n, s));
    lw_store_init(s, 5);
    return lw_store_save(s, LW_SLAB_PARAM, path, NULL, 0);
}

/* The tensors of two files in one. */
static inline int autoencoder_join(const char *one, const char *other, const char *path)
{
    LW_CLEANUP(lw_st_close) lw_st_file *a = NULL, *b = NULL;
    lw_st_tensor all[256];
    size_t n = 0;
    LW_TRY(lw_st_open(one, &a));
    LW_TRY(lw_st_open(other, &b));
    for (size_t i = 0; i < lw_st_count(a) && n < LW_COUNT(all); i++)
        all[n++] = *lw_st_at(a, i);
    for (size_t i = 0; i < lw_st_count(b) && n < LW_COUNT(all); i++)
        all[n++] = *lw_st_at(b, i);
    return lw_st_save(path, all, n, NULL, 0);
}

static inline int autoencoder_make(const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str one = {0}, other = {0}, whole = {0}, config = {0};
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:s, s:[i, i], s:[s, s], s:[s, s], s:i, s:i}", "_class_name",
                          "AutoencoderKL", "block_out_channels", 8, 16, "down_block_types",
                          "DownEncoderBlock2D", "DownEncoderBlock2D", "up_block_types",
                          "UpDecoderBlock2D", "UpDecoderBlock2D", "norm_num_groups", 4,
                          "latent_channels", 4);
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(lw_json_save(lw_path_join(&config, dir, "config.json"), j));
    lw_path_join(&one, dir, "one");
    lw_path_join(&other, dir, "other");
    LW_TRY(autoencoder_half(&lw_network_def_autoencoder_kl, j, lw_str_c(&one)));
    LW_TRY(autoencoder_half(&lw_network_def_autoencoder_kl_decoder, j, lw_str_c(&other)));
    LW_TRY(autoencoder_join(lw_str_c(&one), lw_str_c(&other),
                            lw_path_join(&whole, dir, LW_WEIGHTS_DIFFUSERS)));
    LW_TRY(lw_remove_tree(lw_str_c(&one)));
    return lw_remove_tree(lw_str_c(&other));
}

#endif
