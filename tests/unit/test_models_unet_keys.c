/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json of a UNet2DModel, key by key: each parameter of diffusers' constructor is computed as
 * diffusers does, or the folder is refused with the key's name. None is passed over.
 */
#include "unit/test_unet_util.h"

#include "models/models.h"
#include "unit/config_keys.h"

static const config_row rows[] = {
    {"sample_size", "ia", "16", KEPT},
    {"sample_size", "ia", "[8, 16]", REFUSED},
    {"sample_size", "ia", "0", REFUSED},
    {"in_channels", "i", "4", KEPT},
    {"in_channels", "i", "0", REFUSED},
    {"out_channels", "i", "6", KEPT},
    {"out_channels", "i", "-1", REFUSED},
    {"center_input_sample", "b", "true", REFUSED},
    {"time_embedding_type", "s", "\"fourier\"", REFUSED},
    {"time_embedding_type", "s", "\"learned\"", REFUSED},
    {"time_embedding_dim", "i0", "32", NO_EFFECT}, /* what null stands for */
    {"time_embedding_dim", "i0", "64", REFUSED},
    {"freq_shift", "i", "1", KEPT},
    {"freq_shift", "i", "2", REFUSED},
    {"flip_sin_to_cos", "b", "false", KEPT},
    {"down_block_types", "a", "[\"ResnetDownsampleBlock2D\", \"DownBlock2D\"]", REFUSED},
    {"down_block_types", "a", "[\"DownBlock2D\", \"DownBlock2D\"]", REFUSED}, /* other way up */
    {"mid_block_type", "s0", "\"UNetMidBlock2DSimpleCrossAttn\"", REFUSED},
    {"mid_block_type", "s0", "null", REFUSED},
    {"up_block_types", "a", "[\"SkipUpBlock2D\", \"UpBlock2D\"]", REFUSED},
    {"block_out_channels", "a", "[16, 32]", KEPT},
    {"block_out_channels", "a", "[16, \"x\"]", REFUSED},
    {"layers_per_block", "i", "2", KEPT},
    {"layers_per_block", "i", "0", REFUSED},
    {"mid_block_scale_factor", "n", "2", KEPT},
    {"mid_block_scale_factor", "n", "1.7", KEPT},
    {"mid_block_scale_factor", "n", "0", REFUSED},
    {"mid_block_scale_factor", "n", "1e-60", REFUSED},
    {"mid_block_scale_factor", "n", "1e60", REFUSED},
    {"downsample_padding", "i", "0", KEPT},
    {"downsample_padding", "i", "2", REFUSED},
    {"downsample_type", "s", "\"resnet\"", REFUSED},
    {"upsample_type", "s", "\"resnet\"", REFUSED},
    {"dropout", "n", "0.5", KEPT},
    {"dropout", "n", "1", REFUSED},
    {"act_fn", "s", "\"swish\"", NO_EFFECT},
    {"act_fn", "s", "\"mish\"", REFUSED},
    {"attention_head_dim", "i0", "4", KEPT},
    {"attention_head_dim", "i0", "3", REFUSED},
    {"attention_head_dim", "i0", "0", REFUSED},
    {"norm_num_groups", "i", "0", REFUSED},
    {"norm_num_groups", "i", "3", REFUSED},
    {"attn_norm_num_groups", "i0", "2", REFUSED},
    {"attn_norm_num_groups", "i0", "null", REFUSED},
    {"norm_eps", "n", "0.001", KEPT},
    {"norm_eps", "n", "0", REFUSED},
    {"resnet_time_scale_shift", "s", "\"default\"", KEPT},
    {"resnet_time_scale_shift", "s", "\"spatial\"", REFUSED},
    {"add_attention", "b", "false", KEPT},
    {"class_embed_type", "s0", "\"timestep\"", REFUSED},
    {"class_embed_type", "s0", "\"identity\"", REFUSED},
    {"num_class_embeds", "i0", "7", KEPT},
    {"num_class_embeds", "i0", "0", REFUSED},
    {"num_train_timesteps", "i0", "400", NO_EFFECT}, /* of learned time embeddings alone */
};

/* The configuration with one key changed, read and written again. */
static int read_with(const char *key, const char *value, json_t **again)
{
    lw_unet_config c = tiny(), out;
    json_t *j = lw_unet_to_json(&c), *v = json_loads(value, JSON_DECODE_ANY, NULL);
    assert_non_null(v);
    json_object_set_new(j, key, v);
    int rc = lw_unet_from_json(j, "config.json", &out);
    *again = rc == 0 ? lw_unet_to_json(&out) : NULL;
    json_decref(j);
    return rc;
}

static int read_changed(const char *key, const char *value)
{
    json_t *again;
    int rc = read_with(key, value, &again);
    json_decref(again);
    return rc;
}

/* Of numbers the value, whole or not. */
static bool equal(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
                                                  : json_equal(a, b);
}

static void expect_kept(const config_row *r)
{
    json_t *again, *want = json_loads(r->other, JSON_DECODE_ANY, NULL);
    lw_unet_config c = tiny();
    json_t *ours = lw_unet_to_json(&c);
    if (read_with(r->key, r->other, &again) != 0)
        fail_msg("'%s': %s: %s", r->key, r->other, lw_errmsg());
    bool same = equal(json_object_get(again, r->key), want),
         unchanged = equal(json_object_get(again, r->key), json_object_get(ours, r->key));
    if (r->fate == KEPT ? !same || unchanged : !json_equal(again, ours))
        fail_msg("'%s': %s is read as something else", r->key, r->other);
    json_decref(again);
    json_decref(want);
    json_decref(ours);
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        if (rows[i].fate == REFUSED)
            expect_refused(read_changed, rows[i].key, rows[i].other);
        else
            expect_kept(&rows[i]);
    }
}

static void test_types(void **state)
{
    (void)state;
    check_types(read_changed, rows, LW_COUNT(rows));
}

static void test_all_of_diffusers(void **state)
{
    (void)state;
    check_listed(rows, LW_COUNT(rows), "UNet2DModel");
}

/* Not diffusers': metadata and unknown keys are passed over as diffusers does (the latter with a
 * warning), those of a later version of ours are not. */
static void test_other_keys(void **state)
{
    (void)state;
    assert_ok(read_changed("_diffusers_version", "\"0.42.1\""));
    assert_ok(read_changed("optimization_step", "7")); /* as averaged folders have it */
    assert_fails(LW_EUNSUPPORTED, "'leeway_flux'", read_changed("leeway_flux", "1"));
    assert_fails(LW_EFORMAT, "'leeway_timesteps' must be an integer, is a string",
                 read_changed("leeway_timesteps", "\"many\""));
}

/* The null class is the last row of the table, and none of the classes. */
static void test_null_class(void **state)
{
    (void)state;
    lw_unet_config c = tiny(), read;
    c.classes = 6;
    c.null_class = true;
    json_t *j = lw_unet_to_json(&c);
    assert_int_equal(json_integer_value(json_object_get(j, "num_class_embeds")), 7);
    assert_ok(lw_unet_from_json(j, "config.json", &read));
    assert_int_equal(read.classes, 6);
    assert_true(read.null_class);
    json_object_set_new(j, "leeway_null_class", json_integer(5));
    assert_fails(LW_EFORMAT, "'leeway_null_class' is 5, must be the last of 'num_class_embeds', 6",
                 lw_unet_from_json(j, "config.json", &read));
    json_object_set_new(j, "num_class_embeds", json_null());
    assert_fails(LW_EFORMAT, "'leeway_null_class'", lw_unet_from_json(j, "config.json", &read));
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),           cmocka_unit_test(test_types),
        cmocka_unit_test(test_all_of_diffusers), cmocka_unit_test(test_other_keys),
        cmocka_unit_test(test_null_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
