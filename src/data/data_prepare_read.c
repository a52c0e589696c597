/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preparations from the files of transformers and timm. Every key is in one of the lists below, or
 * a switch that is off (false, null), or refused.
 */
#include "data/data_prepare.h"

#include <math.h>
#include <string.h>

enum { MAX_SIDE = 16384 };

/* ---- what both have -------------------------------------------------------------------------- */

static int check_keys(const json_t *o, const char *what, const char *const *honoured,
                      const char *const *about_other_things)
{
    static const lw_json_only off[] = {{"*", "false"}, {0}};
    const char *const *const known[] = {honoured, about_other_things, NULL};
    return lw_json_check_known(o, what, known, off);
}

static int read_side(const char *what, const char *key, const json_t *v, int32_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > MAX_SIDE)
        return lw_fail(LW_EFORMAT, "%s: '%s' must be 1 to %d pixels", what, key, MAX_SIDE);
    *out = (int32_t)json_integer_value(v);
    return 0;
}

/* Out becomes one number for each of n channels where it is one for all of RGB. */
static int repeat(const char *what, const char *key, int32_t n, float *out)
{
    if (n != 3 && (out[1] != out[0] || out[2] != out[0]))
        return lw_fail(LW_EFORMAT, "%s: '%s' is missing: nothing is usual for %d channel%s", what,
                       key, (int)n, n == 1 ? "" : "s");
    for (int32_t i = 3; i < n; i++)
        out[i] = out[0];
    return 0;
}

/* A number for each of n channels, or one for all; absent or null leaves out as it was of RGB. */
static int read_channels(const json_t *o, const char *what, const char *key, bool positive,
                         int32_t n, float *out)
{
    const json_t *v = json_object_get(o, key);
    size_t given = json_array_size(v);
    if (!v || json_is_null(v))
        return repeat(what, key, n, out);
    for (size_t i = 0; i < (size_t)n; i++) {
        const json_t *one = given == 1 ? json_array_get(v, 0) : given ? json_array_get(v, i) : v;
        float x = (float)json_number_value(one);
        if (!json_is_number(one) || (given > 1 && given != (size_t)n) || !isfinite(x) ||
            (positive && x <= 0))
            return lw_fail(LW_EFORMAT, "%s: '%s' must be %d %snumber%s", what, key, (int)n,
                           positive ? "positive " : "", n == 1 ? "" : "s");
        out[i] = x;
    }
    return 0;
}

/* Mean and std, after which p has as many channels as `said`; 0: as the longer of the lists. */
static int read_mean_std(const json_t *o, const char *what, const char *mean, const char *std,
                         int32_t said, lw_preparation *p)
{
    size_t n = LW_MAX(json_array_size(json_object_get(o, mean)),
                      json_array_size(json_object_get(o, std)));
    if (n > LW_MAX_CHANNELS)
        return lw_fail(LW_EFORMAT, "%s: '%s' has numbers for %zu channels, %d are the most", what,
                       mean, n, LW_MAX_CHANNELS);
    p->channels = said > 0 ? said : n > 0 ? (int32_t)n : 3;
    LW_TRY(read_channels(o, what, mean, false, p->channels, p->mean));
    return read_channels(o, what, std, true, p->channels, p->std);
}

/* ---- transformers ---------------------------------------------------------------------------- */

/* What a class of image processors does where its file is silent. */
typedef struct processor {
    const char *name;   /* ... + ImageProcessor, ImageProcessorFast, FeatureExtractor */
    bool square;        /* its own size: both sides, not the shortest edge */
    bool square_number; /* and a size in the file that is one number */
    int32_t size, crop; /* crop 0: none */
    int32_t resample;   /* Pillow's number; -1: versions differ, so it must be there */
    bool has_pct;       /* crop_pct below 384, squashed from there */
    lw_preparation as;  /* its numbers */
} processor;

static const processor processors[] = {
    {"CLIP", false, false, 224, 224, 3, false, {LW_NUMBERS_CLIP}},
    {"ChineseCLIP", false, false, 224, 224, 3, false, {LW_NUMBERS_CLIP}},
    {"Bit", false, false, 224, 224, 3, false, {LW_NUMBERS_CLIP}},
    {"Siglip", true, false, 224, 0, 3, false, {LW_NUMBERS_HALF}},
    {"ViT", true, true, 224, 0, 2, false, {LW_NUMBERS_HALF}},
    {"DeiT", true, true, 256, 224, 3, false, {LW_NUMBERS_HALF}},
    {"ConvNext", false, false, 384, 0, -1, true, {LW_NUMBERS_HALF}},
    {"MobileNetV1", false, false, 256, 224, 2, false, {LW_NUMBERS_HALF}},
    {"MobileNetV2", false, false, 256, 224, 2, false, {LW_NUMBERS_HALF}},
};

static int find_processor(const json_t *o, const char *what, const processor **out)
{
    static const char *const suffixes[] = {"ImageProcessor", "ImageProcessorFast",
                                           "ImageProcessorPil", "FeatureExtractor"};
    const char *type = NULL;
    LW_TRY(lw_json_opt_str(o, what, "feature_extractor_type", &type));
    LW_TRY(lw_json_opt_str(o, what, "image_processor_type", &type));
    for (size_t i = 0; type && i < LW_COUNT(processors); i++) {
        size_t n = strlen(processors[i].name);
        for (size_t j = 0; j < LW_COUNT(suffixes); j++)
            if (lw_str_starts(type, processors[i].name) && lw_str_eq(type + n, suffixes[j])) {
                *out = &processors[i];
                return 0;
            }
    }
    return lw_fail(LW_EUNSUPPORTED, "%s: image_processor_type '%s' is not known", what,
                   type ? type : "");
}

/* {"shortest_edge": n} or {"height": h, "width": w}; *square tells which. */
static int read_edges(const json_t *v, const char *what, const char *key, bool *square,
                      int32_t side[2])
{
    static const char *const known[] = {"shortest_edge", "height", "width", NULL};
    const json_t *edge = json_object_get(v, "shortest_edge"), *h = json_object_get(v, "height");
    bool has_edge = edge && !json_is_null(edge), has_sides = h && !json_is_null(h);
    LW_TRY(check_keys(v, what, known, known));
    if (has_edge && has_sides)
        return lw_fail(LW_EUNSUPPORTED, "%s: '%s' has a shortest edge and a height", what, key);
    *square = !has_edge;
    if (has_edge) {
        LW_TRY(read_side(what, "shortest_edge", edge, &side[0]));
        side[1] = side[0];
        return 0;
    }
    LW_TRY(read_side(what, "height", h, &side[0]));
    return read_side(what, "width", json_object_get(v, "width"), &side[1]);
}

static int read_size(const json_t *o, const char *what, const processor *kind, lw_preparation *p)
{
    const json_t *v = json_object_get(o, "size");
    bool given = v && !json_is_null(v), square = given ? kind->square_number : kind->square;
    int32_t side[2] = {kind->size, kind->size};
    if (json_is_object(v)) {
        LW_TRY(read_edges(v, what, "size", &square, side));
    } else {
        LW_TRY(lw_json_opt_bool(o, what, "default_to_square", &square));
        if (given)
            LW_TRY(read_side(what, "size", v, &side[0]));
        side[1] = side[0];
    }
    p->fit = square ? LW_FIT_SQUASH : LW_FIT_SHORTEST;
    p->resize_h = p->height = side[0];
    p->resize_w = p->width = side[1];
    return 0;
}

static int read_crop(const json_t *o, const char *what, const processor *kind, lw_preparation *p)
{
    const json_t *v = json_object_get(o, "crop_size");
    bool crop = kind->crop > 0, square = true;
    int32_t side[2] = {kind->crop, kind->crop};
    LW_TRY(lw_json_opt_bool(o, what, "do_center_crop", &crop));
    if (!crop) {
        if (p->fit == LW_FIT_SHORTEST)
            return lw_fail(
                LW_EUNSUPPORTED,
                "%s: without a centre crop ('do_center_crop', 'crop_size') pictures keep "
                "different shapes",
                what);
        return 0;
    }
    if (json_is_object(v)) {
        LW_TRY(read_edges(v, what, "crop_size", &square, side));
        if (!square)
            return lw_fail(LW_EUNSUPPORTED, "%s: 'crop_size' has no height and width", what);
    } else {
        if (v && !json_is_null(v))
            LW_TRY(read_side(what, "crop_size", v, &side[0]));
        else if (!kind->crop)
            return lw_fail(LW_EFORMAT, "%s: 'crop_size' is missing", what);
        side[1] = v && !json_is_null(v) ? side[0] : side[1];
    }
    p->height = side[0];
    p->width = side[1];
    return 0;
}

/* ConvNext: below 384 the shortest edge is size / crop_pct, of which the middle is kept; from there
 * on the picture is squashed. */
static int read_pct(const json_t *o, const char *what, lw_preparation *p)
{
    double pct = 224.0 / 256.0;
    LW_TRY(lw_json_opt_f64(o, what, "crop_pct", &pct));
    if (!(pct > 0 && pct <= 1))
        return lw_fail(LW_EFORMAT, "%s: 'crop_pct' must be above 0 and at most 1", what);
    if (p->fit != LW_FIT_SHORTEST)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'size' has no shortest edge", what);
    if (p->height >= 384) {
        p->fit = LW_FIT_SQUASH;
        return 0;
    }
    double edge = (double)p->height / pct;
    if (!(edge <= MAX_SIDE))
        return lw_fail(LW_EFORMAT, "%s: 'crop_pct' %g makes a picture too large", what, pct);
    p->resize_h = p->resize_w = (int32_t)edge;
    return 0;
}

static int read_resample(const json_t *o, const char *what, const processor *kind, lw_filter *out)
{
    static const lw_filter of_pillow[] = {LW_FILTER_BOX /* 0: nearest, refused */,
                                          LW_FILTER_LANCZOS,
                                          LW_FILTER_BILINEAR,
                                          LW_FILTER_BICUBIC,
                                          LW_FILTER_BOX,
                                          LW_FILTER_HAMMING};
    int64_t code = kind->resample;
    LW_TRY(lw_json_opt_i64(o, what, "resample", &code));
    if (code < 1 || code >= (int64_t)LW_COUNT(of_pillow))
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: 'resample' is %s; honoured are Pillow's 1 (lanczos), 2 (bilinear), 3 "
                       "(bicubic), 4 (box) and 5 (hamming)",
                       what,
                       code < 0 ? "missing or negative" : "not one of its antialiased filters");
    *out = of_pillow[code];
    return 0;
}

static int read_numbers(const json_t *o, const char *what, lw_preparation *p)
{
    bool rescale = true, normalize = true;
    p->scale = 1.0 / 255.0;
    LW_TRY(lw_json_opt_bool(o, what, "do_rescale", &rescale));
    LW_TRY(lw_json_opt_bool(o, what, "do_normalize", &normalize));
    LW_TRY(lw_json_opt_f64(o, what, "rescale_factor", &p->scale));
    LW_TRY(read_mean_std(o, what, "image_mean", "image_std", 0, p));
    if (!(p->scale > 0 && isfinite(p->scale)))
        return lw_fail(LW_EFORMAT, "%s: 'rescale_factor' must be positive", what);
    p->scale = rescale ? p->scale : 1.0;
    for (int32_t i = 0; i < p->channels && !normalize; i++) {
        p->mean[i] = 0;
        p->std[i] = 1;
    }
    return 0;
}

static int read_transformers(const json_t *o, const char *what, lw_preparation *out)
{
    static const char *const honoured[] = {"do_resize",
                                           "size",
                                           "default_to_square",
                                           "resample",
                                           "do_center_crop",
                                           "crop_size",
                                           "do_rescale",
                                           "rescale_factor",
                                           "do_normalize",
                                           "image_mean",
                                           "image_std",
                                           "image_processor_type",
                                           "crop_pct",
                                           "feature_extractor_type",
                                           NULL};
    static const char *const about_other_things[] = {
        "processor_class", "do_convert_rgb", "data_format",      "input_data_format",
        "return_tensors",  "device",         "image_seq_length", NULL};
    const processor *kind = &processors[0];
    LW_TRY(find_processor(o, what, &kind));
    LW_TRY(check_keys(o, what, honoured, about_other_things));
    bool resize = true;
    LW_TRY(lw_json_opt_bool(o, what, "do_resize", &resize));
    if (!resize)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'do_resize' false is not honoured", what);
    lw_preparation p = {.form = LW_RESAMPLE_PILLOW};
    memcpy(p.mean, kind->as.mean, sizeof p.mean);
    memcpy(p.std, kind->as.std, sizeof p.std);
    LW_TRY(read_size(o, what, kind, &p));
    if (kind->has_pct)
        LW_TRY(read_pct(o, what, &p));
    else if (json_is_number(json_object_get(o, "crop_pct")))
        return lw_fail(LW_EUNSUPPORTED, "%s: 'crop_pct' is not honoured with '%sImageProcessor'",
                       what, kind->name);
    else
        LW_TRY(read_crop(o, what, kind, &p));
    LW_TRY(read_resample(o, what, kind, &p.filter));
    LW_TRY(read_numbers(o, what, &p));
    *out = p;
    return 0;
}

/* ---- timm ------------------------------------------------------------------------------------ */

static int read_word(const json_t *o, const char *what, const char *key, const char *const *words,
                     int n, int *out)
{
    const char *word = NULL;
    LW_TRY(lw_json_opt_str(o, what, key, &word));
    for (int i = 0; word && i < n; i++)
        if (lw_str_eq(words[i], word)) {
            *out = i;
            return 0;
        }
    return word ? lw_fail(LW_EUNSUPPORTED, "%s: %s '%s' is not honoured", what, key, word) : 0;
}

static int read_input_size(const json_t *o, const char *what, lw_preparation *p)
{
    const json_t *v = json_object_get(o, "input_size");
    int64_t channels = json_integer_value(json_array_get(v, 0));
    p->height = p->width = 224;
    p->channels = 0;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_array(v) || json_array_size(v) != 3)
        return lw_fail(LW_EFORMAT, "%s: 'input_size' must be [channels, height, width]", what);
    if (channels < 1 || channels > LW_MAX_CHANNELS)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'input_size' has not 1 to %d channels", what,
                       LW_MAX_CHANNELS);
    p->channels = (int32_t)channels;
    LW_TRY(read_side(what, "input_size", json_array_get(v, 1), &p->height));
    return read_side(what, "input_size", json_array_get(v, 2), &p->width);
}

static int read_crop_pct(const json_t *o, const char *what, lw_preparation *p)
{
    static const char *const modes[] = {"center", "squash", "border"};
    double pct = 0.875;
    int mode = 0;
    LW_TRY(lw_json_opt_f64(o, what, "crop_pct", &pct));
    LW_TRY(read_word(o, what, "crop_mode", modes, LW_COUNT(modes), &mode));
    if (!(pct > 0 && pct <= 1))
        return lw_fail(LW_EFORMAT, "%s: 'crop_pct' must be above 0 and at most 1", what);
    double h = floor(p->height / pct), w = floor(p->width / pct);
    if (!(h <= MAX_SIDE && w <= MAX_SIDE))
        return lw_fail(LW_EFORMAT, "%s: 'crop_pct' %g makes a picture too large", what, pct);
    p->fit = (lw_fit)mode; /* in the order of modes */
    p->resize_h = (int32_t)h;
    p->resize_w = (int32_t)w;
    return 0;
}

static int read_timm(const json_t *o, const char *what, lw_preparation *out)
{
    static const char *const honoured[] = {"input_size", "interpolation", "crop_pct", "crop_mode",
                                           "mean",       "std",           NULL};
    /* Weights, heads, papers; and what is done to other sizes than the file's own. */
    static const char *const about_other_things[] = {"url",
                                                     "file",
                                                     "hash_sha256",
                                                     "hf_hub_id",
                                                     "hf_hub_filename",
                                                     "source",
                                                     "state_dict",
                                                     "architecture",
                                                     "tag",
                                                     "custom_load",
                                                     "num_classes",
                                                     "label_offset",
                                                     "label_names",
                                                     "pool_size",
                                                     "label_descriptions",
                                                     "test_pool_size",
                                                     "first_conv",
                                                     "classifier",
                                                     "license",
                                                     "description",
                                                     "origin_url",
                                                     "paper_name",
                                                     "paper_ids",
                                                     "notes",
                                                     "fixed_input_size",
                                                     "test_crop_pct",
                                                     "test_input_size",
                                                     "min_input_size",
                                                     "num_features",
                                                     "global_pool",
                                                     NULL};
    lw_preparation p = {.form = LW_RESAMPLE_PILLOW, .half_to_even = true, LW_NUMBERS_IMAGENET};
    int filter = LW_FILTER_BICUBIC;
    LW_TRY(check_keys(o, what, honoured, about_other_things));
    LW_TRY(read_word(o, what, "interpolation", lw_filter_name, LW_FILTERS, &filter));
    p.filter = (lw_filter)filter;
    LW_TRY(read_input_size(o, what, &p));
    LW_TRY(read_crop_pct(o, what, &p));
    LW_TRY(read_mean_std(o, what, "mean", "std", p.channels, &p));
    for (int32_t i = 0; i < p.channels && p.fit == LW_FIT_INSIDE; i++)
        p.fill[i] = (uint8_t)LW_MIN(LW_MAX(rint(255.0 * (double)p.mean[i]), 0.0), 255.0);
    *out = p;
    return 0;
}

/* ---- open_clip ------------------------------------------------------------------------------- */

/* preprocess_cfg of an open_clip_config.json; its size is the vision tower's where it has none. */
static int read_open_clip(const json_t *root, const char *what, lw_preparation *out)
{
    static const char *const honoured[] = {"size",          "mean",        "std",
                                           "interpolation", "resize_mode", NULL};
    static const char *const about_other_things[] = {"fill_color", NULL}; /* of mode longest */
    static const char *const modes[] = {"shortest", "squash"};            /* as in lw_fit */
    static const lw_json_only only[] = {{"mode", "\"RGB\""}, {0}};
    const char *const *const known[] = {honoured, about_other_things, NULL};
    const json_t *o = json_object_get(root, "preprocess_cfg"), *size = json_object_get(o, "size");
    const json_t *model = json_object_get(root, "model_cfg");
    lw_preparation p = {.form = LW_RESAMPLE_PILLOW, .half_to_even = true, LW_NUMBERS_CLIP};
    int filter = LW_FILTER_BICUBIC, mode = LW_FIT_SHORTEST;
    LW_TRY(lw_json_check_known(o, what, known, only));
    if (!size || json_is_null(size))
        size = json_object_get(json_object_get(model, "vision_cfg"), "image_size");
    if (json_array_size(size) == 2 && json_equal(json_array_get(size, 0), json_array_get(size, 1)))
        size = json_array_get(size, 0);
    LW_TRY(read_side(what, "size", size, &p.height));
    p.width = p.resize_h = p.resize_w = p.height;
    LW_TRY(read_word(o, what, "interpolation", lw_filter_name, LW_FILTERS, &filter));
    LW_TRY(read_word(o, what, "resize_mode", modes, LW_COUNT(modes), &mode));
    p.filter = (lw_filter)filter;
    p.fit = (lw_fit)mode;
    LW_TRY(read_mean_std(o, what, "mean", "std", 3, &p));
    *out = p;
    return 0;
}

/* ---- either ---------------------------------------------------------------------------------- */

static int read_tree(const json_t *root, const char *what, lw_preparation *out)
{
    const json_t *timm = json_object_get(root, "pretrained_cfg");
    const json_t *inner = json_object_get(root, "image_processor");
    const json_t *own = json_is_object(inner) ? inner : root;
    if (json_is_object(timm))
        return read_timm(timm, what, out);
    if (json_is_object(json_object_get(root, "preprocess_cfg")))
        return read_open_clip(root, what, out);
    if (json_object_get(own, "image_processor_type") ||
        json_object_get(own, "feature_extractor_type"))
        return read_transformers(own, what, out);
    if (json_object_get(root, "input_size"))
        return read_timm(root, what, out);
    return lw_fail(LW_EFORMAT,
                   "%s: says nothing about pictures: no 'image_processor_type' (transformers), "
                   "'pretrained_cfg' (timm) or 'preprocess_cfg' (open_clip)",
                   what);
}

int lw_preparation_parse(const char *what, const char *text, size_t n, lw_preparation *out)
{
    LW_CLEANUP(lw_json_drop) json_t *root = NULL;
    LW_TRY(lw_json_parse(what, text, n, &root));
    return read_tree(root, what, out);
}

int lw_preparation_load(const char *path, lw_preparation *out)
{
    LW_CLEANUP(lw_str_clear) lw_str in_folder = {0};
    LW_CLEANUP(lw_json_drop) json_t *root = NULL;
    if (lw_path_is_dir(path)) {
        static const char *const files[] = {"preprocessor_config.json", "config.json",
                                            "open_clip_config.json"};
        const char *folder = path;
        size_t i = 0;
        do
            path = lw_path_join(&in_folder, folder, files[i]);
        while (!lw_path_exists(path) && ++i < LW_COUNT(files));
        if (i == LW_COUNT(files))
            path = lw_path_join(&in_folder, folder, files[1]);
    }
    LW_TRY(lw_json_load(path, &root));
    return read_tree(root, path, out);
}
