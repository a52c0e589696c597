/* SPDX-License-Identifier: Apache-2.0 */
/* Leeway's encoder and its masking, the encoder registry, feature keys. */
#include "unit/test_store_util.h"

#include <math.h>

#include "models/models.h"
#include "plan/plan.h"
#include "cpu_device.h"

/* ---- the encoder ----------------------------------------------------------------------------- */

static void test_encoder_config(void **state)
{
    lw_encoder_config c = lw_encoder_default(16), back = {0};
    (void)state;
    c.classes = 11;
    c.judged = 10;
    c.decoder = true;
    json_t *j = lw_encoder_to_json(&c);
    assert_ok(lw_encoder_from_json(j, "config.json", &back));
    json_t *again = lw_encoder_to_json(&back); /* not memcmp: structs have holes */
    assert_true(json_equal(j, again));
    assert_true(back.classes == 11 && back.judged == 10);
    json_decref(again);
    json_object_set_new(j, "leeway_judged_classes", json_integer(12)); /* of 11 outputs */
    assert_fails(LW_EFORMAT, "leeway_judged_classes",
                 lw_encoder_from_json(j, "config.json", &back));
    json_object_set_new(j, "leeway_judged_classes", json_integer(10));
    json_object_set_new(j, "width", json_integer(0));
    assert_fails(LW_EFORMAT, "width", lw_encoder_from_json(j, "config.json", &back));
    json_object_set_new(j, "leeway_heads", json_integer(2));
    assert_fails(LW_EUNSUPPORTED, "'leeway_heads' is 2, which is not honoured here",
                 lw_encoder_from_json(j, "config.json", &back));
    json_object_del(j, "leeway_heads");
    json_object_set_new(j, "width", json_integer(16));
    json_object_set_new(j, "image_size", json_integer(18));
    assert_fails(LW_EFORMAT, "18 cannot be halved 2 times",
                 lw_encoder_from_json(j, "config.json", &back));
    json_object_set_new(j, "_class_name", json_string("UNet2DModel"));
    assert_fails(LW_EFORMAT, "this is a UNet2DModel",
                 lw_encoder_from_json(j, "config.json", &back));
    json_decref(j);
    c.stages = 0;
    assert_fails(LW_EUSAGE, "stages is 0, must be 1 to 8", lw_encoder_check(&c));
}

static void test_encoder_names(void **state)
{
    static const char *const names[] = {"conv1.weight",
                                        "norm1.bias",
                                        "layer2.1.conv2.weight",
                                        "layer2.0.downsample.0.weight",
                                        "layer3.0.downsample.1.weight",
                                        "fc.weight",
                                        "decoder.0.bias",
                                        "head.weight"};
    lw_encoder_config c = lw_encoder_default(16);
    lw_store *s = NULL;
    (void)state;
    c.blocks = 2;
    c.classes = 7;
    c.decoder = true;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_encoder_declare(&c, s));
    for (size_t i = 0; i < LW_COUNT(names); i++)
        assert_true(lw_store_find(s, names[i]) >= 0);
    assert_int_equal(lw_store_find(s, "layer1.0.downsample.0.weight"), -1);
    lw_store_free(&s);
}

/* A graph that runs: what a test adds, compiled on the best ISA. */
typedef struct rig {
    lw_device *dev;
    lw_graph *g;
    lw_plan *plan;
    lw_exec *e;
} rig;

static void rig_open(rig *r)
{
    *r = (rig){0};
    assert_ok(cpu_device(2, lw_isa_best(), &r->dev));
    assert_ok(lw_graph_new(&r->g));
}

static void rig_start(rig *r)
{
    assert_ok(lw_compile(r->g, r->dev, NULL, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
}

static void rig_close(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
    lw_graph_free(&r->g);
    lw_backend_close(&r->dev);
}

static void test_mask(void **state)
{
    enum { B = 64, S = 16 };
    rig r;
    int hidden = 0;
    (void)state;
    rig_open(&r);
    lw_builder b = {.g = r.g, .rows = lw_input(r.g, "rows", lw_type_of(LW_I64, 1, B))};
    lw_val mask = lw_mae_mask(&b, B, S, 2, lw_const_f32(r.g, 0.25f)),
           x = lw_input(r.g, "x", lw_type_of(LW_F32, 4, B, S, S, 3));
    lw_val kept = lw_mae_hide(r.g, x, mask);
    lw_graph_output_add(r.g, "mask", mask, LW_NOVAL);
    lw_graph_output_add(r.g, "kept", kept, LW_NOVAL);
    lw_graph_output_add(r.g, "loss", lw_mae_loss(r.g, kept, x, mask), LW_NOVAL);
    rig_start(&r);
    int64_t *rows = lw_exec_write(r.e, "rows");
    float *in = lw_exec_write(r.e, "x");
    for (int i = 0; i < B; i++)
        rows[i] = 1000 + i;
    for (int i = 0; i < B * S * S * 3; i++)
        in[i] = 2.0f;
    assert_ok(lw_exec_run(r.e, &(lw_tick){.seed = 5, .step = 9}));
    const float *m = lw_exec_read(r.e, "mask"), *k = lw_exec_read(r.e, "kept"),
                *loss = lw_exec_read(r.e, "loss");
    for (int n = 0; n < B; n++)
        for (int y = 0; y < S; y++)
            for (int x0 = 0; x0 < S; x0++) {
                float v = m[(n * S + y) * S + x0];
                assert_true(v == 0.0f || v == 1.0f);
                assert_true(v == m[(n * S + y / 2 * 2) * S + x0 / 2 * 2]); /* 2x2 cells */
                assert_true(k[((n * S + y) * S + x0) * 3] == (v > 0 ? 0.0f : 2.0f));
                hidden += v > 0;
            }
    assert_true(fabs(hidden / (double)(B * S * S) - 0.25) < 0.03);
    /* (0 - 2)^2 over three channels, divided by the number of hidden pixels. */
    for (int n = 0; n < B; n++)
        assert_true(fabsf(loss[n] - 12.0f) < 1e-4f);
    rig_close(&r);
}

/* ---- the registry ---------------------------------------------------------------------------- */

/* For pictures of 16x16. */
static void save_encoder(const char *dir, int32_t width, int32_t stages, int32_t classes)
{
    lw_encoder_config c = lw_encoder_default(16);
    lw_store *s = NULL;
    c.width = width;
    c.stages = stages;
    c.classes = classes;
    c.decoder = true;
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_encoder_declare(&c, s));
    lw_store_init(s, 2);
    json_t *j = lw_encoder_to_json(&c);
    assert_ok(lw_model_folder_save(dir, s, LW_SLAB_PARAM, j, LW_WEIGHTS_HF));
    json_decref(j);
    lw_store_free(&s);
}

static void test_registry_own(void **state)
{
    lw_network *e = NULL, *again = NULL;
    (void)state;
    save_encoder(in_scratch("own"), 8, 3, 11);
    assert_ok(lw_encoder_open(in_scratch("own"), &e));
    assert_ptr_equal(e->def, &lw_network_def_leeway);
    assert_true(e->features == 32 && e->classes == 11 && e->image_size == 16);
    assert_true(lw_store_is_frozen(e->store));
    assert_ok(lw_encoder_open(in_scratch("own"), &again));
    assert_true(lw_store_hash(again->store, LW_SLAB_PARAM) ==
                lw_store_hash(e->store, LW_SLAB_PARAM));
    lw_network_close(&again);
    lw_network_close(&e);
    lw_network_close(&e);
    assert_ok(lw_encoder_open("none", &e));
    assert_true(e->def == &lw_network_def_none && !e->store && e->features == 0);
    lw_network_close(&e);
}

/* The parameters of a network without files. */
static void declare_network(const lw_network_def *def, void *arch, lw_store *s)
{
    const lw_network n = {.def = def, .arch = arch, .store = s, .channels = 3};
    lw_graph *g = NULL;
    lw_taps taps;
    assert_ok(lw_graph_new(&g));
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, 32, 32, 3));
    lw_network_append(&n, g, (lw_network_in){.x = x}, &taps);
    assert_ok(lw_graph_error(g));
    assert_ok(lw_store_fix(s));
    lw_graph_free(&g);
}

/* Declares a ResNet, fills it and writes it under `path`. */
static void save_resnet(const char *path, int32_t n)
{
    lw_store *s = NULL;
    assert_ok(lw_store_new(false, &s));
    declare_network(&lw_network_def_resnet_cifar10, &n, s);
    lw_store_init(s, 3);
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, path, NULL, 0));
    lw_store_free(&s);
}

/* What a file beside the weights says of pictures goes before the record's word. */
static void test_registry_preparation(void **state)
{
    static const char clip[] = "{\"image_processor_type\": \"CLIPImageProcessor\"}",
                      odd[] =
                          "{\"image_processor_type\": \"CLIPImageProcessor\", \"do_flip\": true}",
                      timm[] = "{\"pretrained_cfg\": {\"input_size\": [3, 96, 64]}}";
    lw_network *e = NULL;
    (void)state;
    assert_ok(lw_mkdirs(in_scratch("prepared")));
    save_resnet(in_scratch("prepared/model.safetensors"), 3);
    assert_ok(lw_network_open(in_scratch("prepared"), true, &e));
    assert_true(e->prepared && e->preparation.height == 0);
    assert_float_equal(e->preparation.mean[0], 0.485f, 0);
    lw_network_close(&e);
    put_file(in_scratch("prepared/preprocessor_config.json"), clip, sizeof clip - 1);
    assert_ok(lw_network_open(in_scratch("prepared"), true, &e));
    assert_int_equal(e->preparation.height, 224);
    assert_float_equal(e->preparation.mean[0], 0.48145466f, 0);
    lw_network_close(&e);
    put_file(in_scratch("prepared/preprocessor_config.json"), odd, sizeof odd - 1);
    assert_fails(LW_EUNSUPPORTED, "'do_flip' is true, which is not honoured",
                 lw_network_open(in_scratch("prepared"), true, &e));
    assert_int_equal(remove(in_scratch("prepared/preprocessor_config.json")), 0);
    put_file(in_scratch("prepared/config.json"), timm, sizeof timm - 1);
    assert_ok(lw_network_open(in_scratch("prepared"), true, &e));
    assert_true(e->preparation.height == 96 && e->preparation.width == 64);
    lw_network_close(&e);
}

static void test_registry_cifar(void **state)
{
    lw_network *e = NULL;
    char spec[256];
    (void)state;
    save_resnet(in_scratch("r.safetensors"), 5);
    snprintf(spec, sizeof spec, "resnet_cifar10:%s", in_scratch("r.safetensors"));
    assert_ok(lw_encoder_open(spec, &e));
    assert_string_equal(e->name, "resnet32");
    assert_true(e->features == 64 && e->classes == 10);
    lw_network_close(&e);
    assert_ok(lw_encoder_open(in_scratch("r.safetensors"), &e)); /* recognised by its tensors */
    assert_string_equal(e->name, "resnet32");
    assert_true(e->parameters > 0 &&
                e->parameters < lw_store_param_count(e->store)); /* no BN sums */
    lw_network_close(&e);
    snprintf(spec, sizeof spec, "resnet18:%s", in_scratch("r.safetensors"));
    assert_fails(LW_EFORMAT, "not torchvision's ResNet-18", lw_encoder_open(spec, &e));
    /* a folder whose config.json names a class without a record: its tensors are asked */
    assert_ok(lw_mkdirs(in_scratch("resnet")));
    save_resnet(in_scratch("resnet/model.safetensors"), 3);
    put_file(in_scratch("resnet/config.json"), "{\"_class_name\": \"ResNet\"}", 25);
    assert_ok(lw_network_open(in_scratch("resnet"), true, &e));
    assert_string_equal(e->name, "resnet20");
    lw_network_close(&e);
    save_encoder(in_scratch("own3"), 8, 2, 0);
    snprintf(spec, sizeof spec, "resnet18:%s", in_scratch("own3"));
    assert_fails(LW_EFORMAT, "this is a LeewayEncoder, not torchvision's",
                 lw_encoder_open(spec, &e));
}

static void expect_keys(const char *list, const lw_network *e, int32_t size, const char *names)
{
    lw_feature_set s = {0};
    lw_str got = {0};
    assert_ok(lw_features_parse(list, e, size, 3, &s));
    for (int32_t i = 0; i < s.n; i++)
        lw_str_addf(&got, "%s%s:%dx%d", i ? " " : "", s.key[i].name, s.key[i].slots, s.key[i].c);
    assert_string_equal(lw_str_c(&got), names);
    lw_str_clear(&got);
}

/* A ResNet-18 file has a 7x7 stem and layers beyond the cut. */
static void test_registry_resnet18(void **state)
{
    lw_store *s = NULL, *file = NULL;
    lw_network *e = NULL;
    char spec[256];
    (void)state;
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_store_new(false, &file));
    declare_network(&lw_network_def_resnet18, NULL, s);
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *x = lw_store_at(s, i);
        lw_type t = x->type;
        if (strcmp(x->name, "conv1.weight") == 0)
            t.dim[1] = t.dim[2] = 7;
        declare(file, x->name, t, x->init);
    }
    declare(file, "layer3.0.conv1.weight", lw_type_of(LW_F32, 4, 8, 3, 3, 8), (lw_init){0});
    declare(file, "fc.bias", lw_type_of(LW_F32, 1, 1000), (lw_init){0});
    assert_ok(lw_store_fix(file));
    lw_store_init(file, 9);
    assert_ok(lw_store_save(file, LW_SLAB_PARAM, in_scratch("r18.safetensors"), NULL, 0));
    snprintf(spec, sizeof spec, "resnet18:%s", in_scratch("r18.safetensors"));
    assert_ok(lw_encoder_open(spec, &e));
    assert_int_equal(e->features, 128);
    expect_keys("s1.mean,s2.loc,pooled", e, 32, "s1.mean:1x64 s2.loc:256x128 pooled:1x128");
    const float *wide = lw_store_data(file, lw_store_find(file, "conv1.weight"), LW_SLAB_PARAM);
    const float *cut = lw_store_data(e->store, lw_store_find(e->store, "conv1.weight"),
                                     LW_SLAB_PARAM);
    for (int o = 0; o < 64; o++)
        for (int y = 0; y < 3; y++)
            assert_memory_equal(cut + (o * 3 + y) * 9, wide + ((o * 7 + y + 2) * 7 + 2) * 3,
                                9 * sizeof(float));
    lw_network_close(&e);
    assert_ok(lw_network_open(spec, true, &e)); /* the words are those of any SOURCE */
    assert_ptr_equal(e->def, &lw_network_def_resnet18);
    lw_network_close(&e);
    snprintf(spec, sizeof spec, "resnet:%s", in_scratch("r18.safetensors")); /* no layer4 in it */
    assert_fails(LW_EFORMAT, "not a ResNet of torchvision", lw_network_open(spec, true, &e));
    snprintf(spec, sizeof spec, "decoder:%s", in_scratch("r18.safetensors"));
    assert_fails(LW_EFORMAT, "no network known here", lw_network_open(spec, true, &e));
    lw_store_free(&s);
    lw_store_free(&file);
}

/* timm has networks with the tensors of a ResNet and other operations between them. */
static void test_resnet_timm(void **state)
{
    static const char aa[] = "{\"architecture\": \"resnetaa50\"}",
                      args[] = "{\"architecture\": \"resnet50\", \"model_args\": {\"x\": 1}}";
    lw_network *e = NULL;
    (void)state;
    assert_ok(lw_mkdirs(in_scratch("timm")));
    put_file(in_scratch("timm/config.json"), aa, sizeof aa - 1);
    assert_fails(LW_EUNSUPPORTED, "'architecture' is resnetaa50",
                 lw_network_open(in_scratch("timm"), true, &e));
    put_file(in_scratch("timm/config.json"), args, sizeof args - 1);
    assert_fails(LW_EUNSUPPORTED, "'x' is 1", lw_network_open(in_scratch("timm"), true, &e));
}

/* transformers' config.json: what is not honoured is refused by name. */
static void test_resnet_config(void **state)
{
    static const struct {
        const char *more, *says;
        int code;
    } bad[] = {
        {"\"depths\": [1], \"hidden_act\": \"gelu\"", "'hidden_act' is gelu", LW_EUNSUPPORTED},
        {"\"depths\": [1], \"layer_type\": \"odd\"", "'layer_type' is odd", LW_EUNSUPPORTED},
        {"\"depths\": [1], \"num_channels\": 65", "'num_channels' is 65", LW_EFORMAT},
        {"\"depths\": [1], \"dilation\": 2", "'dilation' is 2, which is not honoured",
         LW_EUNSUPPORTED},
        {"\"depths\": [1, 1]", "'depths' has 2", LW_EFORMAT},
        {"\"depths\": [1], \"downsample_in_bottleneck\": 3", "downsample_in_bottleneck",
         LW_EFORMAT}};
    lw_network *e = NULL;
    lw_store *s = small_store(true);
    (void)state;
    assert_ok(lw_mkdirs(in_scratch("hf")));
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, in_scratch("hf/model.safetensors"), NULL, 0));
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"model_type\": \"resnet\", \"embedding_size\": 8, \"hidden_sizes\": [8], "
                 "%s}",
                 bad[i].more);
        put_file(in_scratch("hf/config.json"), text, strlen(text));
        assert_fails(bad[i].code, bad[i].says, lw_network_open(in_scratch("hf"), true, &e));
    }
    lw_store_free(&s);
}

/* What each library's file says a network is. */
static void test_class(void **state)
{
    static const struct {
        const char *json, *want;
    } rows[] = {
        {"{\"_class_name\": \"AutoencoderKL\"}", "AutoencoderKL"},
        {"{\"model_type\": \"clip\", \"architectures\": [\"CLIPModel\"]}", "clip"},
        {"{\"architecture\": \"resnet18\", \"model_type\": \"timm_wrapper\"}", "resnet18"},
        {"{\"architectures\": [\"Dinov2Model\"]}", "Dinov2Model"},
        {"{\"model_cfg\": {\"vision_cfg\": {\"timm_model_name\": \"vit_x\"}}}", "vit_x"},
        {"{\"model_cfg\": {\"vision_cfg\": {\"layers\": 12}}}", "open_clip"},
        {"{\"model_type\": 3}", NULL},
        {"[]", NULL},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        json_t *j = NULL;
        assert_ok(lw_json_parse("test", rows[i].json, strlen(rows[i].json), &j));
        const char *have = lw_network_class(j);
        if (have ? !lw_str_eq(have, rows[i].want) : rows[i].want != NULL)
            fail_msg("%s: %s", rows[i].json, have ? have : "nothing");
        json_decref(j);
    }
    assert_null(lw_network_class(NULL));
}

static void test_registry_errors(void **state)
{
    lw_network *e = NULL;
    (void)state;
    assert_fails(LW_EUSAGE, "did you mean 'resnet18'", lw_encoder_open("resnet19", &e));
    assert_fails(LW_EUSAGE, "resnet18:FILE.safetensors", lw_encoder_open("resnet18", &e));
    assert_fails(LW_EUSAGE, "resnet_cifar10:FILE.safetensors",
                 lw_encoder_open("resnet_cifar10:", &e));
    assert_fails(LW_EIO, "gone.safetensors", lw_encoder_open("resnet18:gone.safetensors", &e));
    assert_fails(LW_EFORMAT, "no weights", lw_encoder_open(scratch, &e));
    put_file(in_scratch("junk.safetensors"), "not a tensor", 12);
    assert_fails(LW_EFORMAT, "junk.safetensors",
                 lw_encoder_open(in_scratch("junk.safetensors"), &e));
    lw_store *s = small_store(true);
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, in_scratch("other.safetensors"), NULL, 0));
    assert_fails(LW_EFORMAT, "no network known here",
                 lw_encoder_open(in_scratch("other.safetensors"), &e));
    json_t *j = json_pack("{s:s}", "model_type", "swinv2");
    assert_ok(lw_model_folder_save(in_scratch("vit"), s, LW_SLAB_PARAM, j, LW_WEIGHTS_HF));
    assert_fails(LW_EUNSUPPORTED, "says swinv2; known are", lw_encoder_open(in_scratch("vit"), &e));
    json_decref(j);
    lw_store_free(&s);
    assert_null(e);
}

/* ---- feature keys ---------------------------------------------------------------------------- */

/* Width 16. */
static lw_network *open_own(int32_t stages)
{
    lw_network *e = NULL;
    save_encoder(in_scratch("keys"), 16, stages, 10);
    assert_ok(lw_encoder_open(in_scratch("keys"), &e));
    return e;
}

static void test_key_sets(void **state)
{
    lw_network *e = open_own(3), none = {.def = &lw_network_def_none, .name = "none"};
    lw_feature_set s;
    (void)state;
    expect_keys(
        "col", e, 16,
        "pix:1x768 pix.p4:16x48 pix.mean:1x3 pix.std:1x3 pix.m4:16x3 s1.mean:1x16 s1.std:1x16 "
        "s2.loc:64x32 s2.mean:1x32 s2.std:1x32 s3.loc:16x64 s3.mean:1x64 s3.std:1x64");
    assert_ok(lw_features_parse("all", e, 16, 3, &s)); /* every word there is, with room for all */
    assert_int_equal(s.n, 7 + 4 * 7);
    expect_keys("all", &none, 16,
                "pix:1x768 pix.p4:16x48 pix.mean:1x3 pix.std:1x3 pix.m4:16x3 norm_x:1x3");
    assert_ok(lw_features_parse("maps", e, 16, 3, &s));
    assert_int_equal(s.n, 2 + 3 * 7);
    assert_true(lw_features_floats(&s) == 768 + 3 + (256 + 2 + 128 + 32) * 16 +
                                              (64 + 2 + 32 + 8) * 32 + (16 + 2 + 8 + 2) * 64);
    expect_keys("pixels", &none, 16, "pix:1x768");
    expect_keys("col", &none, 16, "pix:1x768 pix.p4:16x48 pix.mean:1x3 pix.std:1x3 pix.m4:16x3");
    expect_keys("pooled,s0.mean4,norm_x,pix,pix", e, 16,
                "pooled:1x64 s0.mean4:16x16 norm_x:1x3 pix:1x768");
    lw_network_close(&e);
    e = open_own(4); /* the last map is 2x2: no 4x4 patches in it */
    assert_ok(lw_features_parse("maps", e, 16, 3, &s));
    assert_int_equal(s.n, 2 + 3 * 7 + 5);
    assert_fails(LW_ESHAPE, "multiples of 8", lw_features_parse("maps", e, 12, 3, &s));
    lw_network_close(&e);
}

static void test_key_errors(void **state)
{
    lw_network *e = open_own(3), none = {.def = &lw_network_def_none, .name = "none"};
    lw_feature_set s = {.n = -1};
    (void)state;
    assert_fails(LW_EUSAGE, "unknown feature key 's2.maen' (did you mean 's2.mean'?)",
                 lw_features_parse("pix,s2.maen", e, 16, 3, &s));
    assert_fails(LW_EUSAGE, "did you mean 'pix.p4'", lw_features_parse("pix.p5", e, 16, 3, &s));
    assert_fails(LW_EUSAGE, "did you mean 'col'", lw_features_parse("cols", e, 16, 3, &s));
    assert_fails(LW_EUSAGE,
                 "encoder 'leeway' has the maps and vectors: logits, pooled, s0, s1, s2, s3",
                 lw_features_parse("s4.mean", e, 16, 3, &s));
    assert_fails(LW_EUSAGE, "encoder 'none' has the maps and vectors: none",
                 lw_features_parse("s1.mean", &none, 16, 3, &s));
    assert_fails(LW_EUSAGE, "key 'pooled'", lw_features_parse("pooled", &none, 16, 3, &s));
    assert_fails(LW_EUSAGE, "key 'logits'", lw_features_parse("logits", e, 16, 3, &s));
    assert_fails(LW_EUSAGE, "no room", lw_features_parse("pix.p4", &none, 18, 3, &s));
    assert_fails(LW_EUSAGE, "no feature keys", lw_features_parse("", e, 16, 3, &s));
    assert_fails(LW_EUSAGE, "comma", lw_features_parse("pix,", e, 16, 3, &s));
    assert_fails(LW_EUSAGE, "empty", lw_features_parse(",pix", e, 16, 3, &s));
    assert_int_equal(s.n, -1);
    lw_network_close(&e);
}

/* Keys that are built have the shapes that parsing promised. */
static void assert_shapes(const lw_network *e, const lw_feature_set *set, int32_t size)
{
    lw_taps taps;
    lw_val key[LW_MAX_FEATURE_KEYS];
    lw_graph *g = NULL;
    assert_ok(lw_graph_new(&g));
    lw_val x = lw_input(g, "x", lw_type_of(LW_F32, 4, 5, size, size, 3));
    lw_network_append(e, g, (lw_network_in){.x = x}, &taps);
    lw_features_build(g, set, x, &taps, key);
    assert_ok(lw_graph_error(g));
    for (int32_t i = 0; i < set->n; i++)
        assert_true(lw_type_eq(lw_val_type(g, key[i]),
                               lw_type_of(LW_F32, 3, 5, set->key[i].slots, set->key[i].c)));
    lw_graph_free(&g);
}

/* An encoder unlike ResNets, of 12x12 pictures: grids that are no squares and do not halve, a class
 * token, rows, a map whose number has two digits. */
static void build_odd(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_graph *g = b->g;
    int32_t n = lw_val_type(g, in.x).dim[0];
    lw_val map[13];
    (void)arch;
    for (int i = 0; i < 13; i++)
        map[i] = lw_reshape(g, in.x,
                            i % 2 ? lw_type_of(LW_F32, 4, n, 18, 2, 12)
                                  : lw_type_of(LW_F32, 4, n, 9, 16, 3));
    lw_tap_add(out, "logits", lw_reshape(g, in.x, lw_type_of(LW_F32, 2, n, 432)));
    lw_tap_add(out, "cls", lw_mean(g, in.x, LW_OVER_MIDDLE));
    lw_tap_add(out, "tokens", lw_reshape(g, in.x, lw_type_of(LW_F32, 3, n, 48, 9)));
    lw_tap_add_maps(out, map, 13);
}

static void test_key_odd_shapes(void **state)
{
    static const lw_network_def odd = {.name = "odd", .kind = "encoder", .build = build_odd};
    const lw_network e = {.def = &odd, .name = "odd", .channels = 3};
    lw_feature_set s;
    (void)state;
    expect_keys("cls,tokens,s12.loc,s12.mean2,s11.loc,s11.std2,s0.mean4", &e, 12,
                "cls:1x3 tokens:48x9 s12.loc:144x3 s12.mean2:32x3 s11.loc:36x12 s11.std2:9x12 "
                "s0.mean4:8x3");
    assert_fails(LW_EUSAGE, "'s11.mean4': a map of 18x2 has no room",
                 lw_features_parse("s11.mean4", &e, 12, 3, &s));
    assert_fails(LW_EUSAGE, "s12.mean'?)", lw_features_parse("s12.maen", &e, 12, 3, &s));
    assert_ok(lw_features_parse("all", &e, 12, 3, &s)); /* no 4x4 patches in 18x2 */
    assert_int_equal(s.n, 6 + 2 + 13 * 7 - 6 * 2);
    assert_shapes(&e, &s, 12);
}

/* Values of the picture's keys against loops, and the gradient of patches through finite
 * differences of a sum. */
static void test_key_values(void **state)
{
    enum { B = 2, S = 8, C = 3 };
    lw_network none = {.def = &lw_network_def_none, .name = "none"};
    lw_feature_set set;
    lw_taps taps = {0};
    lw_val key[LW_MAX_FEATURE_KEYS], dx = LW_NOVAL;
    rig r;
    (void)state;
    rig_open(&r);
    assert_ok(lw_features_parse("pix,pix.p4,pix.mean,pix.std,pix.m4,norm_x", &none, S, 3, &set));
    lw_val x = lw_input(r.g, "x", lw_type_of(LW_F32, 4, B, S, S, C));
    lw_features_build(r.g, &set, x, &taps, key);
    for (int32_t i = 0; i < set.n; i++)
        lw_graph_output_add(r.g, set.key[i].name, key[i], LW_NOVAL);
    lw_val half = lw_scale(r.g, lw_sqr(r.g, key[1]), 0.5f), one = lw_const_f32(r.g, 1.0f);
    lw_val sum = lw_sum(r.g, half, LW_OVER_ALL);
    lw_grad(r.g, &sum, &one, 1, &x, &dx, 1); /* d (|p4|^2 / 2) / dx = x */
    lw_graph_output_add(r.g, "dx", dx, LW_NOVAL);
    rig_start(&r);
    float *in = lw_exec_write(r.e, "x");
    for (int i = 0; i < B * S * S * C; i++)
        in[i] = sinf((float)i * 0.7f);
    assert_ok(lw_exec_run(r.e, &(lw_tick){0}));
    const float *p4 = lw_exec_read(r.e, "pix.p4"), *m4 = lw_exec_read(r.e, "pix.m4");
    const float *mean = lw_exec_read(r.e, "pix.mean"), *std = lw_exec_read(r.e, "pix.std");
    const float *norm = lw_exec_read(r.e, "norm_x");
    assert_memory_equal(lw_exec_read(r.e, "pix"), in, sizeof(float) * B * S * S * C);
    assert_memory_equal(lw_exec_read(r.e, "dx"), in, sizeof(float) * B * S * S * C);
    for (int b = 0; b < B; b++)
        for (int c = 0; c < C; c++) {
            double s = 0, q = 0;
            for (int i = 0; i < S * S; i++) {
                double v = (double)in[(b * S * S + i) * C + c];
                s += v / (S * S);
                q += v * v / (S * S);
            }
            assert_true(fabs((double)mean[b * C + c] - s) < 1e-6);
            assert_true(fabs((double)std[b * C + c] - sqrt(q - s * s + 1e-6)) < 1e-5);
            assert_true(fabs((double)norm[b * C + c] - sqrt(q + 1e-6)) < 1e-5);
            for (int t = 0; t < 4; t++) {
                double patch = 0;
                for (int k = 0; k < 16; k++) {
                    int y = t / 2 * 4 + k / 4, x0 = t % 2 * 4 + k % 4;
                    float v = in[((b * S + y) * S + x0) * C + c];
                    assert_true(p4[((b * 4 + t) * 16 + k) * C + c] == v);
                    patch += (double)v / 16;
                }
                assert_true(fabs((double)m4[(b * 4 + t) * C + c] - patch) < 1e-6);
            }
        }
    rig_close(&r);
}

static void test_key_shapes(void **state)
{
    lw_network *e = NULL;
    lw_feature_set set;
    (void)state;
    save_encoder(in_scratch("own2"), 8, 3, 0);
    assert_ok(lw_encoder_open(in_scratch("own2"), &e));
    assert_ok(lw_features_parse("all,col,pooled,s0.loc", e, 16, 3, &set));
    assert_shapes(e, &set, 16);
    lw_network_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encoder_config),
        cmocka_unit_test(test_encoder_names),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_registry_own),
        cmocka_unit_test(test_registry_cifar),
        cmocka_unit_test(test_registry_preparation),
        cmocka_unit_test(test_registry_resnet18),
        cmocka_unit_test(test_resnet_timm),
        cmocka_unit_test(test_resnet_config),
        cmocka_unit_test(test_registry_errors),
        cmocka_unit_test(test_class),
        cmocka_unit_test(test_key_sets),
        cmocka_unit_test(test_key_errors),
        cmocka_unit_test(test_key_values),
        cmocka_unit_test(test_key_shapes),
        cmocka_unit_test(test_key_odd_shapes),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
