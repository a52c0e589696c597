/* SPDX-License-Identifier: Apache-2.0 */
/* The U-Net: parameter counts, options, inputs, config.json both ways, malformed folders. */
#include "unit/test_unet_util.h"

#include <math.h>

#include "models/models.h"
#include "plan/plan.h"
#include "cpu_device.h"

static int64_t count(const lw_unet_config *c)
{
    lw_store *s = NULL;
    lw_graph *g = NULL;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_graph_new(&g)); /* names only: no slabs for 210 million parameters */
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_network_in in = {
        .x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, c->image_size, c->image_size, 3))};
    lw_unet(&b, c, in);
    assert_ok(lw_graph_error(g));
    int64_t n = lw_store_param_count(s);
    lw_graph_free(&g);
    lw_store_free(&s);
    return n;
}

static void test_counts(void **state)
{
    lw_unet_config small = lw_unet_small(), large = lw_unet_large();
    (void)state;
    assert_int_equal(count(&small), 38307203);
    assert_int_equal(count(&large), 209976323);
}

/* The demo's generator: 1.14 M parameters plus class and latent embeddings. */
static void test_demo_network(void **state)
{
    lw_unet_config c = {.in_channels = 3,
                        .out_channels = 3,
                        .mid_attn = true,
                        .blocks = 1,
                        .heads = 4,
                        .norm_groups = 8,
                        .norm_eps = 1e-5f};
    (void)state;
    assert_ok(lw_unet_set_levels(&c, 16, 32, (const int32_t[]){1, 2, 2}, 3, NULL, 0));
    int64_t plain = count(&c);
    assert_true(plain > 1130000 && plain < 1150000);
    lw_store *s = NULL;
    c.classes = 10;
    c.latent_dim = 16;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_unet_declare(&c, s));
    assert_int_equal(lw_store_param_count(s), plain + 10 * 128 + 16 * 128 + 128);
    assert_true(lw_store_find(s, "latent_embedding.weight") >= 0);
    lw_store_free(&s);
}

static void test_levels(void **state)
{
    lw_unet_config c = lw_unet_small(), before = c;
    (void)state;
    assert_fails(
        LW_EUSAGE, "no level has resolution 15",
        lw_unet_set_levels(&c, 32, 8, (const int32_t[]){1, 2}, 2, (const int32_t[]){15}, 1));
    assert_fails(LW_EUSAGE, "30 cannot be halved 2 times",
                 lw_unet_set_levels(&c, 30, 8, (const int32_t[]){1, 2, 2}, 3, NULL, 0));
    assert_fails(LW_EUSAGE, "1 to 8 levels", lw_unet_set_levels(&c, 32, 8, NULL, 0, NULL, 0));
    assert_fails(LW_EUSAGE, "multiplier 0",
                 lw_unet_set_levels(&c, 32, 8, (const int32_t[]){0}, 1, NULL, 0));
    assert_memory_equal(&c, &before, sizeof c);
}

static void test_check(void **state)
{
    lw_unet_config c = tiny();
    (void)state;
    assert_ok(lw_unet_check(&c));
    c.norm_groups = 3;
    assert_fails(LW_EUSAGE, "8 channels cannot be split into 3 norm groups", lw_unet_check(&c));
    c = tiny();
    c.heads = 3;
    assert_fails(LW_EUSAGE, "16 channels cannot be split into heads of 3", lw_unet_check(&c));
    c = tiny();
    c.dropout = 1.0f;
    assert_fails(LW_EUSAGE, "dropout 1", lw_unet_check(&c));
    c = tiny();
    c.noise_h = 3;
    c.noise_w = 3;
    assert_fails(LW_EUSAGE, "noise shape 3x3", lw_unet_check(&c));
    c = tiny();
    c.noise_h = 4;
    c.noise_w = 2;
    assert_fails(LW_EUSAGE, "noise shape 4x2", lw_unet_check(&c));
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct rig {
    lw_device *dev;
    lw_store *s;
    lw_plan *plan;
    lw_exec *e;
} rig;

typedef struct rig_opts {
    bool with_t;
    int32_t batch, size; /* of x */
} rig_opts;

static void rig_open(rig *r, const lw_unet_config *c, lw_store *s, rig_opts o)
{
    lw_graph *g = NULL;
    *r = (rig){.s = s};
    assert_ok(cpu_device(2, lw_isa_best(), &r->dev));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_network_in in = {.x = lw_input(g, "x", lw_type_of(LW_F32, 4, o.batch, o.size, o.size, 3))};
    if (o.with_t)
        in.t = lw_input(g, "t", lw_type_of(LW_F32, 1, o.batch));
    if (c->classes)
        in.classes = lw_input(g, "classes", lw_type_of(LW_I32, 1, o.batch));
    if (c->latent_dim)
        in.latent = lw_input(g, "latent", lw_type_of(LW_F32, 2, o.batch, c->latent_dim));
    lw_graph_output_add(g, "y", lw_unet(&b, c, in), LW_NOVAL);
    assert_ok(lw_compile(g, r->dev, NULL, &r->plan));
    assert_ok(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->e));
    lw_graph_free(&g);
}

static void rig_close(rig *r)
{
    lw_exec_free(&r->e);
    lw_plan_free(&r->plan);
    lw_backend_close(&r->dev);
}

static void fill(rig *r, const char *input, uint64_t seed)
{
    float *x = lw_exec_write(r->e, input);
    int64_t n = lw_type_count(lw_exec_type(r->e, input));
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(2.0 * lw_rng_uniform(lw_rng_key_of(seed, 1), 0, 0, (uint64_t)i) - 1.0);
}

static const float *run(rig *r)
{
    assert_ok(lw_exec_run(r->e, &(lw_tick){0}));
    return lw_exec_read(r->e, "y");
}

/* Everything random, so that zero-initialised layers cannot hide a difference. */
static lw_store *random_store(const lw_unet_config *c)
{
    lw_store *s = NULL;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_unet_declare(c, s));
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        lw_store_entry e = *lw_store_at(s, i);
        e.init = (lw_init){LW_INIT_UNIFORM, 0.3f};
        lw_store_init_entry(&e, 11, lw_store_edit(s, i, LW_SLAB_PARAM));
    }
    return s;
}

static void test_no_t_is_t_zero(void **state)
{
    lw_unet_config c = tiny();
    lw_store *s = random_store(&c);
    rig a, b;
    (void)state;
    rig_open(&a, &c, s, (rig_opts){false, 3, 8});
    rig_open(&b, &c, s, (rig_opts){true, 3, 8});
    fill(&a, "x", 1);
    fill(&b, "x", 1);
    const float *ya = run(&a), *yb = run(&b);
    for (int i = 0; i < 3 * 8 * 8 * 3; i++)
        assert_true(fabsf(ya[i] - yb[i]) <= 1e-5f * (1 + fabsf(yb[i])));
    /* The embedding of a constant t is prepared once: fewer steps per run, more before. */
    assert_true(lw_plan_get_info(a.plan).n_steps < lw_plan_get_info(b.plan).n_steps);
    assert_true(lw_plan_get_info(a.plan).n_prepare > lw_plan_get_info(b.plan).n_prepare);
    ((float *)lw_exec_write(b.e, "t"))[1] = 500;
    float before = yb[200], first = yb[0]; /* t moves its own sample only */
    run(&b);
    assert_true(yb[200] != before && yb[0] == first);
    rig_close(&a);
    rig_close(&b);
    lw_store_free(&s);
}

static void test_classes_and_latent(void **state)
{
    lw_unet_config c = tiny();
    rig r;
    (void)state;
    c.classes = 5;
    c.latent_dim = 3;
    lw_store *s = random_store(&c);
    rig_open(&r, &c, s, (rig_opts){false, 2, 8});
    fill(&r, "x", 1);
    memcpy((float *)lw_exec_write(r.e, "x") + 192, lw_exec_read(r.e, "x"), 192 * sizeof(float));
    int32_t *id = lw_exec_write(r.e, "classes");
    float *z = lw_exec_write(r.e, "latent");
    id[0] = id[1] = 2;
    const float *y = run(&r);
    assert_memory_equal(y, y + 192, 192 * sizeof(float));
    id[1] = 3;
    run(&r);
    assert_true(memcmp(y, y + 192, 192 * sizeof(float)) != 0);
    id[1] = 2;
    z[4] = 1.0f;
    run(&r);
    assert_true(memcmp(y, y + 192, 192 * sizeof(float)) != 0);
    rig_close(&r);
    lw_store_free(&s);
}

/* Upsampling inside the network is upsampling outside. */
static void test_structured_noise(void **state)
{
    lw_unet_config c = tiny();
    rig a, b;
    (void)state;
    c.noise_h = c.noise_w = 2;
    lw_store *s = random_store(&c);
    rig_open(&a, &c, s, (rig_opts){false, 2, 2});
    rig_open(&b, &c, s, (rig_opts){false, 2, 8});
    fill(&a, "x", 1);
    const float *small = lw_exec_read(a.e, "x");
    float *wide = lw_exec_write(b.e, "x");
    for (int n = 0; n < 2; n++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 8; x++)
                memcpy(wide + ((n * 8 + y) * 8 + x) * 3, small + ((n * 2 + y / 4) * 2 + x / 4) * 3,
                       3 * sizeof(float));
    assert_memory_equal(run(&a), run(&b), 2 * 192 * sizeof(float));
    rig_close(&a);
    rig_close(&b);
    lw_store_free(&s);
}

static void test_zero_initialised(void **state)
{
    lw_unet_config c = tiny();
    lw_store *s = NULL;
    rig r;
    (void)state;
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_unet_declare(&c, s));
    lw_store_init(s, 3);
    rig_open(&r, &c, s, (rig_opts){true, 1, 8});
    fill(&r, "x", 1);
    for (int i = 0; i < 192; i++)
        assert_true(run(&r)[i] == 0.0f);
    rig_close(&r);
    lw_store_free(&s);
    c.default_out_init = true;
    assert_ok(lw_store_new(false, &s));
    assert_ok(lw_unet_declare(&c, s));
    lw_store_init(s, 3);
    const float *w = lw_store_data(s, lw_store_find(s, "conv_out.weight"), LW_SLAB_PARAM);
    assert_true(w[0] != 0.0f && fabsf(w[0]) <= 1.0f / sqrtf(72.0f));
    w = lw_store_data(s, lw_store_find(s, "mid_block.resnets.0.conv2.weight"), LW_SLAB_PARAM);
    assert_true(w[0] == 0.0f);
    lw_store_free(&s);
}

/* Dropout draws by row id and step, only in training, with expectation 1. */
static void test_dropout_needs_rows(void **state)
{
    lw_unet_config c = tiny();
    lw_store *s = NULL;
    lw_graph *g = NULL;
    (void)state;
    c.dropout = 0.5f;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s), .training = true};
    lw_unet(&b, &c, (lw_network_in){.x = lw_input(g, "x", lw_type_of(LW_F32, 4, 2, 8, 8, 3))});
    assert_fails(LW_ESHAPE, "dropout needs row ids", lw_graph_error(g));
    lw_graph_free(&g);
    lw_store_free(&s);
}

static void expect_graph_error(const lw_unet_config *c, int32_t size, int32_t channels, int code,
                               const char *part)
{
    lw_store *s = NULL;
    lw_graph *g = NULL;
    assert_ok(lw_store_new(true, &s));
    assert_ok(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(s)};
    lw_unet(&b, c,
            (lw_network_in){.x = lw_input(g, "x", lw_type_of(LW_F32, 4, 2, size, size, channels))});
    assert_fails(code, part, lw_graph_error(g));
    lw_graph_free(&g);
    lw_store_free(&s);
}

static void test_wrong_inputs(void **state)
{
    lw_unet_config c = tiny();
    (void)state;
    expect_graph_error(&c, 9, 3, LW_ESHAPE, "made for 8x8 images, not 9x9");
    expect_graph_error(&c, 8, 4, LW_ESHAPE, "wants images [B,8,8,3]");
    c.classes = 4;
    expect_graph_error(&c, 8, 3, LW_EUSAGE, "class ids are needed");
    c = tiny();
    c.latent_dim = 4;
    expect_graph_error(&c, 8, 3, LW_EUSAGE, "latent vector of 4 numbers");
}

/* ---- config.json ----------------------------------------------------------------------------- */

static void expect_same(const lw_unet_config *c)
{
    lw_unet_config back = {0};
    lw_str a = {0}, b = {0};
    json_t *j = lw_unet_to_json(c), *again;
    assert_ok(lw_unet_from_json(j, "config.json", &back));
    again = lw_unet_to_json(&back);
    lw_json_dump(j, 2, &a);
    lw_json_dump(again, 2, &b);
    assert_string_equal(lw_str_c(&a), lw_str_c(&b));
    assert_true(back.norm_eps == c->norm_eps && back.dropout == c->dropout &&
                back.classes == c->classes && back.latent_dim == c->latent_dim &&
                back.noise_h == c->noise_h && back.blocks == c->blocks &&
                back.shift_only == c->shift_only && back.pad_end == c->pad_end &&
                back.sin_first == c->sin_first);
    assert_memory_equal(back.channels, c->channels, sizeof c->channels);
    assert_memory_equal(back.attn, c->attn, sizeof c->attn);
    lw_str_clear(&a);
    lw_str_clear(&b);
    json_decref(j);
    json_decref(again);
}

static void test_json_round_trip(void **state)
{
    lw_unet_config c = lw_unet_small();
    (void)state;
    expect_same(&c);
    c = lw_unet_large();
    expect_same(&c);
    c = tiny();
    c.classes = 10;
    c.latent_dim = 16;
    c.noise_h = c.noise_w = 2;
    c.shift_only = c.sin_first = c.pad_end = true;
    c.freq_shift = 1;
    c.norm_eps = 1e-6f;
    expect_same(&c);
    c.mid_attn = false;
    c.heads = 0;
    c.head_dim = 8;
    expect_same(&c);
}

/* A fixed number of heads at levels of different width cannot be said in diffusers' key. */
static void test_json_heads(void **state)
{
    lw_unet_config c = tiny(), back;
    json_t *j = lw_unet_to_json(&c);
    (void)state;
    assert_null(json_object_get(j, "leeway_attention_heads"));
    assert_int_equal(json_integer_value(json_object_get(j, "attention_head_dim")), 8);
    json_decref(j);
    c.attn[0] = true; /* 8 channels here, 16 there */
    j = lw_unet_to_json(&c);
    assert_int_equal(json_integer_value(json_object_get(j, "leeway_attention_heads")), 2);
    assert_ok(lw_unet_from_json(j, "x", &back));
    assert_true(back.heads == 2 && back.head_dim == 0);
    json_decref(j);
}

/* config.json with one key set to `value` (JSON text), or removed. */
static int read_changed(const char *key, const char *value)
{
    lw_unet_config c = tiny(), out;
    json_t *j = lw_unet_to_json(&c);
    if (value)
        json_object_set_new(j, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(j, key);
    int rc = lw_unet_from_json(j, "config.json", &out);
    json_decref(j);
    return rc;
}

static void test_json_malformed(void **state)
{
    (void)state;
    assert_fails(LW_EFORMAT, "this is a VQModel", read_changed("_class_name", "\"VQModel\""));
    assert_fails(LW_EFORMAT, "_class_name", read_changed("_class_name", NULL));
    assert_fails(LW_EFORMAT, "sample_size", read_changed("sample_size", NULL));
    assert_fails(LW_EFORMAT, "sample_size", read_changed("sample_size", "\"big\""));
    assert_fails(LW_EFORMAT, "sample_size", read_changed("sample_size", "1e9"));
    assert_fails(LW_EFORMAT, "block_out_channels", read_changed("block_out_channels", "[]"));
    assert_fails(LW_EFORMAT, "block_out_channels",
                 read_changed("block_out_channels", "[1,2,3,4,5,6,7,8,9]"));
    assert_fails(LW_EFORMAT, "'down_block_types' has 2 entries, 'block_out_channels' has 1",
                 read_changed("block_out_channels", "[8]"));
    assert_fails(LW_EUNSUPPORTED, "holds CrossAttnDownBlock2D",
                 read_changed("down_block_types", "[\"CrossAttnDownBlock2D\", \"DownBlock2D\"]"));
    assert_fails(LW_EUNSUPPORTED, "something that is no text",
                 read_changed("down_block_types", "[1, 2]"));
    assert_fails(LW_EUNSUPPORTED, "way up",
                 read_changed("up_block_types", "[\"UpBlock2D\", \"UpBlock2D\"]"));
    assert_fails(LW_EUNSUPPORTED, "'act_fn' is gelu", read_changed("act_fn", "\"gelu\""));
    assert_fails(LW_EUNSUPPORTED, "time_embedding_type",
                 read_changed("time_embedding_type", "\"fourier\""));
    assert_fails(LW_EUNSUPPORTED, "attn_norm_num_groups",
                 read_changed("attn_norm_num_groups", "null"));
    assert_fails(LW_EUNSUPPORTED, "must equal", read_changed("attn_norm_num_groups", "2"));
    assert_fails(LW_EUNSUPPORTED, "center_input_sample",
                 read_changed("center_input_sample", "true"));
    assert_fails(LW_EUNSUPPORTED, "class_embed_type",
                 read_changed("class_embed_type", "\"timestep\""));
    assert_fails(LW_EFORMAT, "norm groups", read_changed("block_out_channels", "[6, 16]"));
    assert_fails(LW_EFORMAT, "halved", read_changed("sample_size", "9"));
    assert_fails(LW_EFORMAT, "leeway_noise_shape", read_changed("leeway_noise_shape", "[2]"));
    assert_fails(LW_EFORMAT, "noise shape", read_changed("leeway_noise_shape", "[3, 3]"));
    assert_fails(LW_EFORMAT, "leeway_latent_dim", read_changed("leeway_latent_dim", "-1"));
    assert_int_equal(read_changed("dropout", NULL), 0);
}

/* ---- model folders --------------------------------------------------------------------------- */

static void test_folder(void **state)
{
    lw_unet_config c = tiny();
    lw_store *s = random_store(&c);
    lw_network *n = NULL;
    char path[128];
    json_t *j = lw_unet_to_json(&c);
    (void)state;
    assert_ok(lw_model_folder_save(in_scratch("unet"), s, LW_SLAB_PARAM, j, NULL));
    assert_ok(lw_network_open(in_scratch("unet"), true, &n));
    assert_true(n->def == &lw_network_def_unet && n->generator && n->image_size == c.image_size);
    assert_true(lw_store_hash(n->store, LW_SLAB_PARAM) == lw_store_hash(s, LW_SLAB_PARAM));
    lw_network_close(&n);
    assert_fails(LW_EFORMAT, "UNet2DModel is no encoder", lw_encoder_open(in_scratch("unet"), &n));
    json_object_set_new(j, "layers_per_block", json_integer(2)); /* another model's config */
    snprintf(path, sizeof path, "%s/config.json", in_scratch("unet"));
    assert_ok(lw_json_save(path, j));
    assert_fails(LW_EFORMAT, "(file [24], model [32])",
                 lw_network_open(in_scratch("unet"), true, &n));
    json_object_set_new(j, "layers_per_block", json_integer(1));
    json_object_set_new(j, "out_channels", json_integer(4));
    assert_ok(lw_json_save(path, j));
    assert_fails(LW_EFORMAT, "'conv_out.weight' (file [3,8,3,3], model [4,8,3,3])",
                 lw_network_open(in_scratch("unet"), true, &n));
    put_file(path, "{", 1);
    assert_fails(LW_EFORMAT, "config.json", lw_network_open(in_scratch("unet"), true, &n));
    assert_fails(LW_EIO, "nothing", lw_network_open(in_scratch("nothing"), true, &n));
    assert_null(n);
    json_decref(j);
    lw_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_demo_network),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_no_t_is_t_zero),
        cmocka_unit_test(test_classes_and_latent),
        cmocka_unit_test(test_structured_noise),
        cmocka_unit_test(test_zero_initialised),
        cmocka_unit_test(test_dropout_needs_rows),
        cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_heads),
        cmocka_unit_test(test_json_malformed),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
