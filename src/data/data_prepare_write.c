/* SPDX-License-Identifier: Apache-2.0 */
/* Preparations in the words of transformers, timm and open_clip. What was written is read again, and
 * must say the same: what a library has no words for is found so, and refused. */
#include "data/data_prepare.h"

#include <math.h>

const char *const lw_library_name[] = {"transformers", "timm", "open_clip"};

static json_t *channels(const lw_preparation *p, const float *v)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < p->channels; i++)
        json_array_append_new(a, lw_json_float(v[i]));
    return a;
}

static json_t *sides(int32_t h, int32_t w)
{
    return json_pack("{s:i, s:i}", "height", (int)h, "width", (int)w);
}

static json_t *for_transformers(const lw_preparation *p)
{
    static const int of_pillow[LW_FILTERS] = {[LW_FILTER_BOX] = 4,
                                              [LW_FILTER_BILINEAR] = 2,
                                              [LW_FILTER_HAMMING] = 5,
                                              [LW_FILTER_BICUBIC] = 3,
                                              [LW_FILTER_LANCZOS] = 1};
    bool whole = p->fit == LW_FIT_SQUASH && p->resize_h == p->height && p->resize_w == p->width;
    json_t *size = p->fit == LW_FIT_SHORTEST ? json_pack("{s:i}", "shortest_edge", (int)p->resize_h)
                                             : sides(p->resize_h, p->resize_w);
    json_t *o = json_pack("{s:s, s:b, s:b, s:o, s:i, s:b}", "image_processor_type",
                          whole ? "SiglipImageProcessor" : "CLIPImageProcessor", "do_convert_rgb",
                          p->channels == 3, "do_resize", 1, "size", size, "resample",
                          of_pillow[p->filter], "do_center_crop", !whole);
    if (!whole)
        json_object_set_new(o, "crop_size", sides(p->height, p->width));
    json_object_set_new(o, "do_rescale", json_true());
    json_object_set_new(o, "rescale_factor", lw_json_real(p->scale));
    json_object_set_new(o, "do_normalize", json_true());
    json_object_set_new(o, "image_mean", channels(p, p->mean));
    json_object_set_new(o, "image_std", channels(p, p->std));
    return o;
}

/* Of which the resized side is the whole part of `side` over it. */
static double crop_pct(int32_t side, int32_t resized)
{
    double pct = (double)side / (double)resized;
    return floor(side / pct) == resized ? pct : (double)side / ((double)resized + 0.5);
}

static json_t *for_timm(const lw_preparation *p)
{
    static const char *const modes[] = {"center", "squash", "border"}; /* in the order of lw_fit */
    return json_pack("{s:[i, i, i], s:s, s:o, s:s, s:o, s:o}", "input_size", (int)p->channels,
                     (int)p->height, (int)p->width, "interpolation", lw_filter_name[p->filter],
                     "crop_pct", lw_json_real(crop_pct(p->height, p->resize_h)), "crop_mode",
                     modes[p->fit], "mean", channels(p, p->mean), "std", channels(p, p->std));
}

static json_t *for_open_clip(const lw_preparation *p)
{
    static const char *const modes[] = {"shortest", "squash", "longest"};
    return json_pack("{s:i, s:s, s:o, s:o, s:s, s:s}", "size", (int)p->height, "mode", "RGB",
                     "mean", channels(p, p->mean), "std", channels(p, p->std), "interpolation",
                     lw_filter_name[p->filter], "resize_mode", modes[p->fit]);
}

/* Does the object say what p says, but for the rounding of a crop's offset? */
static bool says(const json_t *o, lw_library to, const lw_preparation *p)
{
    static const char *const key[] = {
        [LW_LIBRARY_TIMM] = "pretrained_cfg", [LW_LIBRARY_OPEN_CLIP] = "preprocess_cfg"};
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, have = {0}, want = {0};
    LW_CLEANUP(lw_json_drop)
    json_t *root = to == LW_LIBRARY_HF ? json_deep_copy(o) : json_pack("{s:O}", key[to], o);
    lw_preparation back = {0};
    lw_json_dump(root, 0, &text);
    if (lw_preparation_parse("preparation", lw_str_c(&text), text.len, &back) < 0)
        return false;
    back.half_to_even = p->half_to_even;
    lw_preparation_print(&back, &have);
    lw_preparation_print(p, &want);
    return lw_str_eq(lw_str_c(&have), lw_str_c(&want));
}

int lw_preparation_json(const lw_preparation *p, lw_library to, json_t **out)
{
    static json_t *(*const write[])(const lw_preparation *) = {for_transformers, for_timm,
                                                               for_open_clip};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_json_drop) json_t *o = p->height > 0 ? write[to](p) : NULL;
    if (p->height > 0 && !o)
        return LW_ENOMEM;
    if (o && says(o, to, p)) {
        *out = lw_steal(&o);
        return 0;
    }
    lw_preparation_print(p, &text);
    return lw_fail(LW_EUNSUPPORTED, "%s has no words for how pictures are prepared: %s",
                   lw_library_name[to], lw_str_c(&text));
}
