/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of autoencoders: what is refused, by name, and which half is opened. */
#include "unit/test_store_util.h"

#include "models/models.h"

static const char kl[] = "{\"_class_name\": \"AutoencoderKL\", \"block_out_channels\": [8, 8], "
                         "\"down_block_types\": [\"DownEncoderBlock2D\", \"DownEncoderBlock2D\"], "
                         "\"up_block_types\": [\"UpDecoderBlock2D\", \"UpDecoderBlock2D\"], "
                         "\"norm_num_groups\": 4, \"latent_channels\": 3}";
static const char tiny[] =
    "{\"_class_name\": \"AutoencoderTiny\", \"latent_channels\": 4, "
    "\"encoder_block_out_channels\": [8, 8], \"num_encoder_blocks\": [1, 1], "
    "\"decoder_block_out_channels\": [8, 8], \"num_decoder_blocks\": [1, 1]}";

/* A config.json with some fields set anew. */
static void put_config(const char *dir, const char *text, const char *changes)
{
    char path[160];
    json_t *j = json_loads(text, 0, NULL), *more = json_loads(changes, 0, NULL);
    assert_true(j && more);
    assert_int_equal(json_object_update(j, more), 0);
    snprintf(path, sizeof path, "%s/config.json", dir);
    assert_ok(lw_mkdirs(dir));
    assert_ok(lw_json_save(path, j));
    json_decref(j);
    json_decref(more);
}

/* Parameters of a record and a configuration, in a file of the folder. */
static void save_half(const lw_network_def *def, const char *dir, const char *text)
{
    char arch[4096] = {0}, path[160];
    json_t *j = json_loads(text, 0, NULL);
    lw_store *s = NULL;
    assert_true(def->arch_bytes <= sizeof arch);
    assert_ok(def->read(j, "config.json", arch));
    assert_ok(lw_store_new(true, &s));
    lw_network n = lw_network_of(def, arch, s);
    assert_ok(lw_network_declare(&n, s));
    lw_store_init(s, 5);
    snprintf(path, sizeof path, "%s/" LW_WEIGHTS_DIFFUSERS, dir);
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, path, NULL, 0));
    lw_store_free(&s);
    json_decref(j);
}

static void test_config(void **state)
{
    static const struct {
        const char *base, *changes, *says;
        int code;
    } bad[] = {
        {kl, "{\"act_fn\": \"gelu\"}", "'act_fn' is \"gelu\"", LW_EUNSUPPORTED},
        {kl, "{\"down_block_types\": [\"DownEncoderBlock2D\", \"AttnDownEncoderBlock2D\"]}",
         "'down_block_types' holds others", LW_EUNSUPPORTED},
        {kl, "{\"up_block_types\": [\"UpDecoderBlock2D\"]}", "'up_block_types' has 1", LW_EFORMAT},
        {kl, "{\"latents_mean\": [0.5]}", "'latents_mean' is [0.5]", LW_EUNSUPPORTED},
        {kl, "{\"norm_num_groups\": 3}", "8 channels cannot be split into 3", LW_EFORMAT},
        {kl, "{\"scaling_factor\": 0}", "cannot be scaled by 0", LW_EFORMAT},
        {kl, "{\"latent_channels\": 0}", "latent_channels", LW_EFORMAT},
        {kl, "{\"later\": 1}", "'later' is 1, which is not honoured", LW_EUNSUPPORTED},
        {tiny, "{\"act_fn\": \"silu\"}", "'act_fn' is \"silu\"", LW_EUNSUPPORTED},
        {tiny, "{\"upsample_fn\": \"bilinear\"}", "'upsample_fn' is", LW_EUNSUPPORTED},
        {tiny, "{\"upsampling_scaling_factor\": 3}", "factor' is 3", LW_EUNSUPPORTED},
        {tiny, "{\"encoder_block_out_channels\": [8, 16]}", "must be the same", LW_EUNSUPPORTED},
        {tiny, "{\"num_encoder_blocks\": [1]}", "2 entries for 1 levels", LW_EFORMAT},
    };
    lw_network *e = NULL;
    (void)state;
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        put_config(in_scratch("bad"), bad[i].base, bad[i].changes);
        assert_fails(bad[i].code, bad[i].says, lw_network_open(in_scratch("bad"), true, &e));
    }
}

/* Building for one picture of h x w. */
static int build(const lw_network *n, int32_t h, int32_t w, const char *want)
{
    lw_graph *g = NULL;
    assert_ok(lw_graph_new(&g));
    int rc = lw_network_build(n, g, 1, h, w, want);
    lw_graph_free(&g);
    return rc;
}

static void test_halves(void **state)
{
    const char *dir = in_scratch("kl");
    char half[160];
    lw_network *e = NULL;
    (void)state;
    snprintf(half, sizeof half, "decoder:%s", dir);
    put_config(dir, kl, "{}");
    save_half(&lw_network_def_autoencoder_kl, dir, kl);
    assert_ok(lw_encoder_open(dir, &e));
    assert_true(e->channels == 3 && !e->prepared && e->outputs == 0);
    assert_ok(build(e, 6, 10, "latent"));
    assert_ok(build(e, 6, 10, "logvar"));
    assert_fails(LW_ESHAPE, "6x9: the sides must be multiples of 2", build(e, 6, 9, "latent"));
    assert_fails(LW_EUSAGE, "there are latent, mean, logvar, s0, s1", build(e, 6, 8, "pooled"));
    lw_network_close(&e);
    assert_fails(LW_EFORMAT, "missing", lw_network_open(half, true, &e)); /* no decoder in it */
    save_half(&lw_network_def_autoencoder_kl_decoder, dir, kl);
    assert_ok(lw_network_open(half, true, &e));
    assert_true(e->channels == 3 && e->outputs == 3 && !e->generator);
    assert_ok(build(e, 5, 3, NULL));
    lw_network_close(&e);
    assert_fails(LW_EFORMAT, "no encoder of pictures", lw_encoder_open(half, &e));
    assert_fails(LW_EUSAGE, "decoder needs its weights", lw_encoder_open("decoder:", &e));
    put_config(dir, "{\"model_type\": \"resnet\"}", "{}");
    assert_fails(LW_EUNSUPPORTED, "says resnet; those with a decoder are AutoencoderKL",
                 lw_network_open(half, true, &e));
}

/* A folder of diffusers: its autoencoder lies in vae/. */
static void test_pipeline(void **state)
{
    lw_network *e = NULL;
    char half[160];
    (void)state;
    put_config(in_scratch("sd/vae"), kl, "{}");
    save_half(&lw_network_def_autoencoder_kl_decoder, in_scratch("sd/vae"), kl);
    put_file(in_scratch("sd/model_index.json"), "{}", 2);
    snprintf(half, sizeof half, "decoder:%s", in_scratch("sd"));
    assert_ok(lw_network_open(half, true, &e));
    assert_ptr_equal(e->def, &lw_network_def_autoencoder_kl_decoder);
    lw_network_close(&e);
}

/* The tensors of a file must be those that config.json says. */
static void test_tiny_is_as_said(void **state)
{
    lw_network *e = NULL;
    lw_store *s = small_store(true);
    (void)state;
    put_config(in_scratch("tiny"), tiny, "{}");
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, in_scratch("tiny/model.safetensors"), NULL, 0));
    assert_fails(LW_EFORMAT, "not the encoder of a TAESD",
                 lw_network_open(in_scratch("tiny"), true, &e));
    lw_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_tiny_is_as_said),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
