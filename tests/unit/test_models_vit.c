/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of vision transformers: what is honoured, and what is refused by name. Values are
 * in tests/golden/test_golden_networks.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "data/data.h"
#include "formats/formats.h"
#include "store/store.h"
#include "models/models.h"

static const lw_network_def *const clip = &lw_network_def_clip,
                                   *const siglip = &lw_network_def_siglip,
                                   *const dinov2 = &lw_network_def_dinov2;

/* The network that a configuration in JSON describes; the caller frees arch. */
static int read_config(const lw_network_def *def, const char *text, lw_network *out)
{
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    LW_CLEANUP(lw_free) void *arch = lw_calloc(1, def->arch_bytes);
    assert_non_null(arch);
    LW_TRY(lw_json_parse("test", text, strlen(text), &j));
    LW_TRY(def->read(j, "config.json", arch));
    *out = lw_network_of(def, lw_steal(&arch), NULL);
    return 0;
}

#define TIMM(name) "{\"architecture\": \"" name "\""
/* model_args as timm 1.0.31 writes them, with the same beside them. */
#define TIMM_SAID(name, classes, pool, side)                                            \
    TIMM(name)                                                                          \
    ", \"num_classes\": " #classes ", \"global_pool\": \"" pool "\", \"model_args\": {" \
    "\"in_chans\": 3, \"num_classes\": " #classes ", \"global_pool\": \"" pool          \
    "\", \"img_size\": [" #side ", " #side "]}}"
#define OPEN "{\"model_cfg\": {\"embed_dim\": 9, \"vision_cfg\": {"

static void test_refused(void **state)
{
    const struct {
        const lw_network_def *def;
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        {clip, "{\"hidden_size\": 10, \"num_attention_heads\": 3}", LW_EFORMAT, "3 heads"},
        {clip, "{\"rotary\": true}", LW_EUNSUPPORTED, "'rotary' is true"},
        {clip, "{\"pruned_heads\": {\"0\": [1]}}", LW_EUNSUPPORTED, "'pruned_heads'"},
        {clip, "{\"hidden_act\": \"mish\"}", LW_EUNSUPPORTED, "mish"},
        {clip, "{\"hidden_size\": \"wide\"}", LW_EFORMAT, "'hidden_size'"},
        {clip, "{\"num_hidden_layers\": 100}", LW_EFORMAT, "'num_hidden_layers'"},
        {clip, "{\"num_attention_heads\": 0}", LW_EFORMAT, "'num_attention_heads'"},
        {clip, "{\"layer_norm_eps\": 0}", LW_EFORMAT, "'layer_norm_eps'"},
        {clip, "{\"image_size\": [32, 48]}", LW_EUNSUPPORTED, "'image_size' must be a square"},
        {clip, "{\"image_size\": 32, \"patch_size\": 33}", LW_EFORMAT, "larger than pictures"},
        {clip, "{\"image_size\": 16384, \"patch_size\": 1}", LW_EFORMAT, "more than a tensor"},
        {clip, "{\"vision_config\": {\"window\": 7}}", LW_EUNSUPPORTED,
         "config.json: vision_config: 'window'"},
        {clip, "{\"vision_config\": {}, \"fusion\": 7}", LW_EUNSUPPORTED, "config.json: 'fusion'"},
        {clip, OPEN "\"ls_init_value\": 0.1}}}", LW_EUNSUPPORTED, "'ls_init_value' is 0.1"},
        {clip, OPEN "\"layers\": [3, 4, 6, 3]}}}", LW_EFORMAT, "'layers'"},
        {clip, OPEN "\"pool_type\": \"avg\"}}}", LW_EUNSUPPORTED, "'pool_type' is \"avg\""},
        {clip, TIMM("vit_giant_patch14_clip_224") "}", LW_EUNSUPPORTED, "vit_giant_patch14_clip"},
        {siglip, "{\"projection_dim\": 5}", LW_EUNSUPPORTED, "'projection_dim'"},
        {siglip, TIMM("vit_base_patch16_siglip_gap_224") "}", LW_EUNSUPPORTED, "siglip_gap"},
        {siglip, TIMM("vit_base_patch16_siglip_224") ", \"global_pool\": \"avg\"}", LW_EUNSUPPORTED,
         "'global_pool' is \"avg\""},
        {siglip, TIMM("vit_base_patch16_siglip_224") ", \"num_classes\": 10}", LW_EUNSUPPORTED,
         "'num_classes' is 10"},
        {siglip, TIMM("vit_base_patch16_siglip_224") ", \"model_args\": {\"qk_norm\": true}}",
         LW_EUNSUPPORTED, "'qk_norm'"},
        {siglip,
         TIMM("vit_base_patch16_siglip_224") ", \"global_pool\": \"map\", "
                                             "\"model_args\": {\"global_pool\": \"avg\"}}",
         LW_EUNSUPPORTED, "'global_pool' is \"avg\" in 'model_args' and \"map\" beside it"},
        {siglip, TIMM_SAID("vit_base_patch16_siglip_224", 10, "map", 224), LW_EUNSUPPORTED,
         "'num_classes' is 10: its head"},
        {siglip, TIMM("vit_siglip_") "}", LW_EUNSUPPORTED, "vit_siglip_"},
        {siglip,
         OPEN "\"timm_model_name\": \"vit_base_patch16_siglip_224\", \"timm_pool\": \"avg\"}}}",
         LW_EUNSUPPORTED, "'timm_pool'"},
        {siglip,
         OPEN "\"timm_model_name\": \"vit_base_patch16_siglip_224\", \"image_size\": 256}}}",
         LW_EUNSUPPORTED, "'image_size' is 256"},
        {dinov2, "{\"mlp_ratio\": 0}", LW_EFORMAT, "'mlp_ratio'"},
        {dinov2, "{\"model_type\": \"dinov2\", \"position_bias\": 1}", LW_EUNSUPPORTED,
         "'position_bias'"},
        {dinov2, "{\"image_size\": 7, \"patch_size\": 14}", LW_EFORMAT, "larger than pictures"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        lw_network n = {0};
        int rc = read_config(cases[i].def, cases[i].text, &n);
        if (rc != cases[i].code || !strstr(lw_errmsg(), cases[i].message))
            fail_msg("%s: code %d, '%s'", cases[i].text, rc, rc < 0 ? lw_errmsg() : "");
    }
}

/* What a configuration says of pictures; sizes of weights are proved by loading them. */
static void test_sizes(void **state)
{
    const struct {
        const lw_network_def *def;
        const char *text;
        int32_t image_size;
    } cases[] = {
        {clip, "{\"model_type\": \"clip_vision_model\"}", 224},
        {clip, "{\"image_size\": [64, 64], \"_commit_hash\": \"x\", \"is_decoder\": false}", 64},
        /* an old folder says it twice: transformers reads the second */
        {clip,
         "{\"vision_config\": {\"image_size\": 224}, \"vision_config_dict\": {\"image_size\": "
         "336}}",
         336},
        {clip, "{\"vision_config\": {\"image_size\": 336}, \"vision_config_dict\": null}", 336},
        {clip, OPEN "\"image_size\": 240, \"patch_size\": 16, \"act_kwargs\": null}}}", 240},
        {siglip, "{\"vision_config\": {\"model_type\": \"siglip_vision_model\"}}", 224},
        {siglip, TIMM("vit_so400m_patch14_siglip_384") "}", 384},
        {siglip, TIMM("vit_so400m_patch14_siglip_384") ", \"model_args\": {\"img_size\": 392}}",
         392},
        {siglip, TIMM_SAID("vit_base_patch16_siglip_256", 0, "map", 256), 256},
        {clip, TIMM_SAID("vit_base_patch32_clip_224", 9, "token", 240), 240},
        {dinov2, TIMM_SAID("vit_small_patch14_reg4_dinov2", 0, "token", 518), 0},
        {siglip, OPEN "\"timm_model_name\": \"vit_base_patch16_siglip_256\"}}}", 256},
        {dinov2, "{\"image_size\": 518}", 0}, /* any */
        {dinov2, TIMM("vit_giant_patch14_reg4_dinov2") "}", 0},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        lw_network n = {0};
        if (read_config(cases[i].def, cases[i].text, &n) < 0)
            fail_msg("%s: %s", cases[i].text, lw_errmsg());
        assert_int_equal(n.image_size, cases[i].image_size);
        assert_int_equal(n.preparation.height, n.image_size ? n.image_size : 224);
        lw_free(&n.arch);
    }
}

/* timm's registrations in timm's words: what they mean is their name, and the side of pictures. */
static void test_registered(void **state)
{
    static const struct {
        const lw_network_def *const *def;
        const char *name;
        int side;
    } cases[] = {{&dinov2, "vit_small_patch14_dinov2", 518},
                 {&siglip, "vit_base_patch16_siglip_384", 384},
                 {&siglip, "vit_so400m_patch14_siglip_378", 378}};
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        char text[96];
        lw_network n = {0};
        lw_network_form f = {0};
        snprintf(text, sizeof text, "{\"architecture\": \"%s\"}", cases[i].name);
        assert_int_equal(read_config(*cases[i].def, text, &n), 0);
        if (lw_network_form_of(&n, LW_LIBRARY_TIMM, &f) < 0)
            fail_msg("%s: %s", text, lw_errmsg());
        const json_t *args = json_object_get(f.config, "model_args");
        assert_string_equal(json_string_value(json_object_get(f.config, "architecture")),
                            cases[i].name);
        assert_int_equal(json_integer_value(json_object_get(args, "img_size")), cases[i].side);
        assert_null(json_object_get(args, "embed_dim"));
        assert_null(json_object_get(args, "act_layer"));
        lw_network_form_clear(&f);
        lw_free(&n.arch);
    }
}

/* ---- weights alone --------------------------------------------------------------------------- */

static size_t add_tensor(lw_str *header, size_t at, const char *name, const char *shape,
                         size_t count)
{
    const char *comma = header->len > 1 ? ", " : "";
    lw_str_addf(header,
                "%s\"%s\": {\"dtype\": \"F32\", \"shape\": %s, \"data_offsets\": [%zu, %zu]}",
                comma, name, shape, at, at + 4 * count);
    return at + 4 * count;
}

/* Does DINOv2's record take tensors of these sizes for its own? */
static bool is_dinov2(size_t width, size_t patch, size_t places, size_t hidden)
{
    LW_CLEANUP(lw_str_clear) lw_str header = {0};
    LW_CLEANUP(lw_free) void *arch = lw_calloc(1, dinov2->arch_bytes);
    lw_st_file *f = NULL;
    char shape[64];
    size_t at = 0;
    lw_str_add(&header, "{");
    snprintf(shape, sizeof shape, "[%zu, 3, %zu, %zu]", width, patch, patch);
    at = add_tensor(&header, at, "patch_embed.proj.weight", shape, width * 3 * patch * patch);
    snprintf(shape, sizeof shape, "[1, %zu, %zu]", places, width);
    at = add_tensor(&header, at, "pos_embed", shape, places * width);
    snprintf(shape, sizeof shape, "[%zu]", width);
    at = add_tensor(&header, at, "blocks.0.norm1.weight", shape, width);
    at = add_tensor(&header, at, "blocks.0.ls1.gamma", shape, width);
    snprintf(shape, sizeof shape, "[%zu, %zu]", hidden, width);
    at = add_tensor(&header, at, "blocks.0.mlp.fc1.weight", shape, hidden * width);
    lw_str_add(&header, "}");
    uint64_t n = header.len;
    char *bytes = calloc(8 + header.len + at, 1);
    assert_non_null(bytes);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, lw_str_c(&header), header.len);
    if (lw_st_parse("test", bytes, 8 + header.len + at, &f) < 0)
        fail_msg("%s", lw_errmsg());
    bool is = dinov2->recognise(f, arch);
    lw_st_close(&f);
    free(bytes);
    return is;
}

static void test_shapes(void **state)
{
    (void)state;
    assert_true(is_dinov2(64, 14, 5, 8));
    assert_true(is_dinov2(64, 14, 4, 8)); /* no position of the class token: timm with registers */
    assert_false(is_dinov2(0, 14, 5, 8));
    assert_false(is_dinov2(64, 0, 5, 8));
    assert_false(is_dinov2(64, 14, 0, 8));
    assert_false(is_dinov2(64, 14, 7, 8)); /* neither 7 nor 6 is a square */
    assert_false(is_dinov2(64, 14, 5, 0));
    assert_false(is_dinov2(65, 14, 5, 8));
    assert_false(is_dinov2((1 << 16) + 64, 1, 5, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_registered),
                                       cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
