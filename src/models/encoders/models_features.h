/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feature keys: what the drift field compares. Every key is a value f32[B,T,C] (T slots of C
 * numbers):
 *
 *   pix                  all pixels                            T 1, C H W 3
 *   pix.p4               4x4 patches, flattened                T HW/16, C 48
 *   pix.mean, pix.std    over all pixels, per channel          T 1, C 3
 *   pix.m4               means of 4x4 patches                  T HW/16, C 3
 *   norm_x               sqrt(mean x^2 + 1e-6) per channel     T 1, C 3
 *   sK.loc               map K, per location                   T HW, C
 *   sK.mean, sK.std      map K over all locations              T 1, C
 *   sK.mean2, sK.std2    over 2x2 patches                      T HW/4, C
 *   sK.mean4, sK.std4    over 4x4 patches                      T HW/16, C
 *   pooled               the encoder's pooled feature; so for
 *                        any vector or rows it offers          T 1 or rows, C F
 *
 * Maps with names of their own (those of the published masked autoencoder: conv1, layer1_blk2, layer1,
 * ...) have the published keys:
 *
 *   NAME                 the map, per location                 as sK.loc
 *   NAME_mean, NAME_std, NAME_mean_2, NAME_std_2,
 *   NAME_mean_4, NAME_std_4                                    as sK.mean ..
 *   global               all pixels                            as pix
 *   norm_x               of the network's input, which may be
 *                        patches of pixels                     T 1, C of it
 *
 * std = sqrt(population variance + 1e-6). Named sets: `pixels` = pix; `all` = every key there
 * is room for, those of s0 and pooled too; `maps` = pix, norm_x and the seven keys of every stage
 * s1, s2, ... that has room for them; `col` = pix, pix.p4, pix.mean, pix.std, pix.m4, s1.mean,
 * s1.std and sK.loc, sK.mean, sK.std of the later stages (13 keys for three stages). s0 is the
 * stem. Of the published autoencoder `maps` are the 86 published keys: global, norm_x and seven of
 * each of twelve maps.
 */
#ifndef LW_MODELS_FEATURES_H
#define LW_MODELS_FEATURES_H

#include "models/models_network.h"

/* Every key of the picture, of all maps and of all vectors there may be. */
enum { LW_MAX_FEATURE_KEYS = 7 + 7 * LW_MAX_MAPS + (LW_MAX_TAPS - LW_MAX_MAPS) };

/* What a key is of, for lw_features_filter. */
typedef enum lw_key_part {
    LW_PART_OTHER,     /* the picture's statistics and patches, vectors, rows */
    LW_PART_PIXELS,    /* the picture itself */
    LW_PART_X2_MEAN,   /* norm_x */
    LW_PART_LOCATIONS, /* of a map, as all that follow: per location */
    LW_PART_GLOBAL,    /* mean and std of all of it */
    LW_PART_PATCH2,
    LW_PART_PATCH4
} lw_key_part;

typedef struct lw_feature_key {
    char name[28];      /* of an encoder at most 23 letters */
    char map[12];       /* the map it is of; "": none */
    uint8_t part;       /* lw_key_part */
    uint8_t kind, stat; /* private */
    int16_t tap;        /* number of the encoder's tap; -1: the picture */
    int32_t slots;      /* T */
    int32_t c;          /* C */
} lw_feature_key;

typedef struct lw_feature_set {
    int32_t n;
    lw_feature_key key[LW_MAX_FEATURE_KEYS];
} lw_feature_set;

/* Parses a comma-separated list of keys and set names for an encoder on square images, in the order
 * given, each key once. Shapes are those of a graph built for the purpose. LW_EUSAGE: an unknown key
 * (the nearest named, and what the encoder has), a map with no room for the patch. The sets skip
 * what has no room; an empty result is an error. */
int lw_features_parse(const char *list, const lw_network *e, int32_t image_size, int32_t channels,
                      lw_feature_set *out);
/* Which keys are dropped: all of a part whose field is true. stages: only those maps stay, by name or by the number of
 * their stage, comma separated (keys of no map stay); NULL: all. Zeroed it drops nothing. */
typedef struct lw_feature_filter {
    bool no_locations, no_global, no_patch2, no_patch4, no_x2_mean;
    const char *stages;
} lw_feature_filter;
/* LW_EUSAGE: a stage of which there is no key (naming the maps), or no key is left. */
int lw_features_filter(lw_feature_set *s, const lw_feature_filter *f);
/* Floats per image over all keys. */
int64_t lw_features_floats(const lw_feature_set *s);
/* out[i]: f32[B, key[i].slots, key[i].c] for every key, from images and the taps built on them. */
void lw_features_build(lw_graph *g, const lw_feature_set *s, lw_val images, const lw_taps *taps,
                       lw_val *out);

#endif
