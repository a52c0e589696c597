/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preparations of published networks: pixels against transformers, timm and torchvision
 * (tests/golden/data/prepare.json, by tools/golden/prepare.py), and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "data/data.h"
#include "formats/formats.h"
#include "kernels/formula_picture.h"

static void parse_ok(const char *what, const json_t *config, lw_preparation *p)
{
    lw_str text = {0};
    lw_json_dump(config, 0, &text);
    if (lw_preparation_parse(what, lw_str_c(&text), text.len, p) < 0)
        fail_msg("%s: %s", what, lw_errmsg());
    lw_str_clear(&text);
}

static void check_numbers(const char *name, const json_t *row, const lw_preparation *p)
{
    const json_t *mean = json_object_get(row, "mean"), *std = json_object_get(row, "std");
    int64_t height = json_integer_value(json_object_get(row, "height"));
    int64_t width = json_integer_value(json_object_get(row, "width"));
    double scale = json_number_value(json_object_get(row, "scale"));
    if (p->height != height || p->width != width || fabs(p->scale - scale) > 1e-15)
        fail_msg("%s: %dx%d, scale %.17g", name, p->width, p->height, p->scale);
    for (size_t i = 0; i < 3; i++)
        if (p->mean[i] != (float)json_number_value(json_array_get(mean, i)) ||
            p->std[i] != (float)json_number_value(json_array_get(std, i)))
            fail_msg("%s: mean %g, std %g of channel %zu", name, (double)p->mean[i],
                     (double)p->std[i], i);
}

static void check_picture(const char *name, const json_t *picture, const lw_preparation *p)
{
    int h = (int)json_integer_value(json_object_get(picture, "h"));
    int w = (int)json_integer_value(json_object_get(picture, "w"));
    char got[32];
    lw_image im = {0};
    size_t n = (size_t)p->height * (size_t)p->width * 3;
    uint8_t *y = lw_calloc(n, 1);
    assert_int_equal(lw_image_init(&im, w, h), 0);
    formula_picture(im.rgb, h, w, 3);
    assert_int_equal(lw_prepare(p, &im, y), 0);
    snprintf(got, sizeof got, "%016llx", (unsigned long long)lw_hash64(y, n));
    if (strcmp(got, json_string_value(json_object_get(picture, "hash"))) != 0)
        fail_msg("%s: %dx%d pixels become others than the library's", name, w, h);
    lw_image_clear(&im);
    lw_free(&y);
}

static void published_preparations(void **state)
{
    (void)state;
    json_t *rows = NULL, *row, *picture;
    size_t i, j, pictures = 0;
    assert_int_equal(lw_json_load("tests/golden/data/prepare.json", &rows), 0);
    json_array_foreach(rows, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        lw_preparation p;
        parse_ok(name, json_object_get(row, "config"), &p);
        check_numbers(name, row, &p);
        json_array_foreach(json_object_get(row, "pictures"), j, picture)
        {
            check_picture(name, picture, &p);
            pictures++;
        }
    }
    assert_true(pictures >= 140);
    json_decref(rows);
}

#define CLIP "\"image_processor_type\": \"CLIPImageProcessor\""
#define TIMM "\"input_size\": [3, 224, 224]"

static const struct {
    const char *text;
    int code;
    const char *message;
} refused[] = {
    {"{}", LW_EFORMAT, "says nothing about pictures"},
    {"[1]", LW_EFORMAT, "says nothing about pictures"},
    {"{\"image_processor_type\": 3}", LW_EFORMAT, "image_processor_type"},
    {"{\"image_processor_type\": \"Siglip2ImageProcessor\"}", LW_EUNSUPPORTED,
     "'Siglip2ImageProcessor' is not known"},
    {"{\"image_processor_type\": \"SiglipImageProcessor\", \"size\": 48}", LW_EUNSUPPORTED,
     "different shapes"},
    {"{" CLIP ", \"do_pad\": true}", LW_EUNSUPPORTED,
     "'do_pad' is true, which is not honoured here"},
    {"{" CLIP ", \"do_flip_channel_order\": true}", LW_EUNSUPPORTED, "'do_flip_channel_order'"},
    {"{" CLIP ", \"do_resize\": false}", LW_EUNSUPPORTED, "'do_resize'"},
    {"{" CLIP ", \"do_center_crop\": false}", LW_EUNSUPPORTED, "different shapes"},
    {"{" CLIP ", \"do_rescale\": 1}", LW_EFORMAT, "'do_rescale'"},
    {"{" CLIP ", \"resample\": 0}", LW_EUNSUPPORTED, "'resample'"},
    {"{" CLIP ", \"resample\": 6}", LW_EUNSUPPORTED, "'resample'"},
    {"{" CLIP ", \"crop_pct\": 0.9}", LW_EUNSUPPORTED, "'crop_pct'"},
    {"{" CLIP ", \"size\": {\"longest_edge\": 5}}", LW_EUNSUPPORTED, "'longest_edge'"},
    {"{" CLIP ", \"size\": {\"shortest_edge\": 5, \"height\": 5, \"width\": 5}}", LW_EUNSUPPORTED,
     "'size'"},
    {"{" CLIP ", \"size\": {\"height\": 5}}", LW_EFORMAT, "'width'"},
    {"{" CLIP ", \"size\": 0}", LW_EFORMAT, "'size' must be 1 to"},
    {"{" CLIP ", \"size\": \"big\"}", LW_EFORMAT, "'size' must be 1 to"},
    {"{" CLIP ", \"crop_size\": {\"shortest_edge\": 5}}", LW_EUNSUPPORTED, "'crop_size'"},
    {"{" CLIP ", \"image_mean\": [1, 2]}", LW_EFORMAT,
     "'image_std' is missing: nothing is usual for 2 channels"},
    {"{" CLIP ", \"image_mean\": [1, 2], \"image_std\": [1, 1, 1]}", LW_EFORMAT,
     "'image_mean' must be 3 numbers"},
    {"{" CLIP ", \"image_std\": [1, 0, 1]}", LW_EFORMAT, "'image_std' must be 3 positive numbers"},
    {"{" CLIP ", \"rescale_factor\": 0}", LW_EFORMAT, "'rescale_factor'"},
    {"{\"image_processor_type\": \"ConvNextImageProcessor\"}", LW_EUNSUPPORTED, "'resample'"},
    {"{\"image_processor_type\": \"ConvNextImageProcessor\", \"crop_pct\": 1e-9, \"size\": 64}",
     LW_EFORMAT, "'crop_pct'"},
    {"{" TIMM ", \"mixup\": 0.5}", LW_EUNSUPPORTED, "'mixup' is 0.5, which is not honoured here"},
    {"{" TIMM ", \"interpolation\": \"random\"}", LW_EUNSUPPORTED, "interpolation 'random'"},
    {"{" TIMM ", \"crop_mode\": \"corner\"}", LW_EUNSUPPORTED, "crop_mode 'corner'"},
    {"{" TIMM ", \"crop_pct\": 0}", LW_EFORMAT, "'crop_pct'"},
    {"{" TIMM ", \"std\": \"one\"}", LW_EFORMAT, "'std'"},
    {"{\"preprocess_cfg\": {\"size\": 9, \"resize_mode\": \"longest\"}}", LW_EUNSUPPORTED,
     "resize_mode 'longest'"},
    {"{\"preprocess_cfg\": {\"size\": [9, 8]}}", LW_EFORMAT, "'size' must be 1 to"},
    {"{\"preprocess_cfg\": {\"size\": 9, \"mode\": \"L\"}}", LW_EUNSUPPORTED, "'mode' is"},
    {"{\"preprocess_cfg\": {}}", LW_EFORMAT, "'size' must be 1 to"},
    {"{\"input_size\": [0, 224, 224]}", LW_EUNSUPPORTED, "'input_size' has not 1 to 64"},
    {"{\"input_size\": [65, 224, 224]}", LW_EUNSUPPORTED, "'input_size' has not 1 to 64"},
    {"{\"input_size\": [1, 224, 224]}", LW_EFORMAT,
     "'mean' is missing: nothing is usual for 1 channel"},
    {"{\"input_size\": [1, 9, 9], \"mean\": [1, 2, 3]}", LW_EFORMAT, "'mean' must be 1 number"},
    {"{\"input_size\": [3, 224]}", LW_EFORMAT, "'input_size'"},
    {"{\"input_size\": [3, 224, 1e9]}", LW_EFORMAT, "'input_size'"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < LW_COUNT(refused); i++) {
        lw_preparation p = {.height = 7};
        int rc = lw_preparation_parse("file", refused[i].text, strlen(refused[i].text), &p);
        if (rc != refused[i].code || !strstr(lw_errmsg(), refused[i].message) || p.height != 7)
            fail_msg("%s: code %d, '%s'", refused[i].text, rc, lw_errmsg());
    }
}

/* Off switches and words about other things are no reason to refuse. */
static void what_changes_nothing(void **state)
{
    (void)state;
    static const char text[] =
        "{\"image_processor\": {" CLIP
        ", \"do_pad\": null, \"do_reduce_labels\": false, \"processor_class\": \"CLIPProcessor\", "
        "\"_valid_processor_keys\": [\"images\"], \"size\": {\"shortest_edge\": 224, \"height\": "
        "null}}}";
    lw_preparation p;
    lw_str line = {0};
    assert_int_equal(lw_preparation_parse("file", text, strlen(text), &p), 0);
    lw_preparation_print(&p, &line);
    assert_string_equal(
        lw_str_c(&line),
        "shortest edge 224x224, bicubic (pillow), centre 224x224, fill 0 0 0, (x "
        "0.0039215686274509803 - mean) / std, mean 0.48145467 0.457827508 0.408210725, std "
        "0.268629551 0.26130259 0.275777102");
    lw_str_clear(&line);
}

/* In the words of each library and back: the same, or refused. */
static void the_way_back(void **state)
{
    lw_preparation half = {.fit = LW_FIT_SQUASH,
                           .filter = LW_FILTER_BILINEAR,
                           .resize_h = 384,
                           .resize_w = 384,
                           .height = 384,
                           .width = 384,
                           LW_NUMBERS_HALF};
    lw_preparation odd = lw_preparation_imagenet, clip = half, inside = half, wide = half;
    lw_preparation bytes = half, none = half, tall = half;
    (void)state;
    odd.resize_h = odd.resize_w = 248; /* 224 / 0.9, of which timm takes the whole part */
    clip.fit = LW_FIT_SHORTEST;
    inside.fit = LW_FIT_INSIDE;
    memset(inside.fill, 128, sizeof inside.fill);
    wide.form = LW_RESAMPLE_TORCH;
    bytes.scale = 1.0;
    none.height = none.width = 0;
    tall.resize_h = tall.height = 256;
    const struct {
        const lw_preparation *p;
        bool said[3]; /* by transformers, timm, open_clip */
    } rows[] = {
        {&lw_preparation_imagenet, {true, true, false}}, /* it never crops what it resized */
        {&odd, {true, true, false}},
        {&half, {true, true, true}},
        {&clip, {true, true, true}},
        {&inside, {false, true, false}},
        {&wide, {false, false, false}},
        {&bytes, {true, false, false}},
        {&tall, {true, true, false}},
        {&none, {false, false, false}}};
    for (size_t i = 0; i < LW_COUNT(rows); i++)
        for (int to = 0; to < 3; to++) {
            LW_CLEANUP(lw_json_drop) json_t *o = NULL;
            int rc = lw_preparation_json(rows[i].p, (lw_library)to, &o);
            if (rc != (rows[i].said[to] ? 0 : LW_EUNSUPPORTED))
                fail_msg("row %zu, %s: code %d", i, lw_library_name[to], rc);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_preparations),
        cmocka_unit_test(refusals),
        cmocka_unit_test(what_changes_nothing),
        cmocka_unit_test(the_way_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
