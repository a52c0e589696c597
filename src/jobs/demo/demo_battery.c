/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks that judge the demonstration beside its judge: two classifiers of other widths, depths
 * and seeds, trained for some seconds, and four of random weights and other architectures. None of
 * them, nor kin of them, is used in a training here.
 */
#include <math.h>

#include "base/base.h"
#include "formats/formats.h"
#include "jobs/demo/demo_job.h"
#include "session/session.h"

enum { TRAINED = 2, RANDOM = 4 };

/* Small networks see pictures of at least 32 x 32: those with a stem of stride 4 need them. */
static json_t *square(const char *processor, int side)
{
    return json_pack("{s:s, s:{s:i, s:i}, s:b, s:i}", "image_processor_type", processor, "size",
                     "height", side, "width", side, "do_resize", 1, "resample", 2);
}

static json_t *resnet(const char *layer, const char *sizes, const char *depths)
{
    json_t *j = json_pack("{s:s, s:i, s:s, s:s}", "model_type", "resnet", "embedding_size", 16,
                          "layer_type", layer, "hidden_act", "relu");
    if (j) {
        json_object_set_new(j, "hidden_sizes", json_loads(sizes, 0, NULL));
        json_object_set_new(j, "depths", json_loads(depths, 0, NULL));
    }
    return j;
}

static json_t *transformer(const char *type, int width, int depth, int side, int patch)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "model_type", type, "hidden_size",
                     width, "num_hidden_layers", depth, "num_attention_heads", 4,
                     "intermediate_size", 2 * width, "image_size", side, "patch_size", patch);
}

/* Network i of random weights: its folder's name, config.json and preprocessor_config.json. */
static const char *random_one(int i, int side, json_t **config, json_t **preparation)
{
    static const char *const names[RANDOM] = {"random_resnet", "random_bottleneck", "random_dinov2",
                                              "random_siglip"};
    int large = LW_MAX(side, 32);
    if (i < 2) {
        *config = i == 0 ? resnet("basic", "[16, 32, 64]", "[1, 1, 1]")
                         : resnet("bottleneck", "[64, 128]", "[2, 2]");
        *preparation = square("ViTImageProcessor", large);
    } else {
        *config = i == 2 ? transformer("dinov2", 48, 3, side, 4)
                         : transformer("siglip_vision_model", 64, 2, side, 4);
        *preparation = square("ViTImageProcessor", side);
    }
    if (i == 2 && *config)
        json_object_del(*config, "intermediate_size");
    return names[i];
}

static int draw_random(const lw_demo_config *c, const char *dir, int side)
{
    for (int i = 0; i < RANDOM; i++) {
        LW_CLEANUP(lw_json_drop) json_t *config = NULL;
        LW_CLEANUP(lw_json_drop) json_t *preparation = NULL;
        LW_CLEANUP(lw_str_clear) lw_str path = {0}, weights = {0};
        lw_path_join(&path, dir, random_one(i, side, &config, &preparation));
        if (!config || !preparation || path.failed)
            return lw_fail(LW_ENOMEM, "out of memory for a network's configuration");
        if (!lw_path_exists(lw_path_join(&weights, lw_str_c(&path), LW_WEIGHTS_HF)))
            LW_TRY(lw_random_network(lw_str_c(&path), config, preparation,
                                     (uint64_t)(c->seed + 40 + i)));
    }
    return 0;
}

/* Like the reader, but of another width, depth and seed. */
static int trained_one(const lw_demo_recipe *r, int i, double minutes, const char *dir,
                       lw_train_encoder_config *e, json_t **options)
{
    json_t *o = *options = json_copy(r->options[LW_DEMO_READER]);
    *e = r->reader;
    e->width = i == 0 ? 12 : 20;
    e->blocks = i == 0 ? 2 : 1;
    e->stages = r->reader.stages - i;
    e->train.seed = r->reader.train.seed + 1 + i;
    e->train.minutes = minutes;
    e->train.output_dir = dir;
    e->train.options = o;
    e->train.part_of = "../../report.html";
    LW_TRY(lw_demo_say(o, "width", json_integer(e->width)));
    LW_TRY(lw_demo_say(o, "blocks", json_integer(e->blocks)));
    LW_TRY(lw_demo_say(o, "stages", json_integer(e->stages)));
    LW_TRY(lw_demo_say(o, "seed", json_integer((json_int_t)e->train.seed)));
    LW_TRY(lw_demo_say(o, "minutes", lw_json_real(round(minutes * 1e3) / 1e3)));
    return lw_demo_say(o, "output-dir", json_string(dir));
}

int lw_demo_battery(const lw_demo_config *c, const lw_demo_recipe *r, const char *dir, int side,
                    double minutes, const lw_observer *obs, lw_str *commands)
{
    static const char *const names[TRAINED] = {"classifier_12", "classifier_20"};
    for (int i = 0; i < TRAINED; i++) {
        LW_CLEANUP(lw_str_clear) lw_str path = {0}, command = {0};
        LW_CLEANUP(lw_json_drop) json_t *options = NULL;
        lw_train_encoder_config e;
        lw_train_result result;
        LW_TRY(trained_one(r, i, minutes, lw_path_join(&path, dir, names[i]), &e, &options));
        lw_demo_command(options, &command);
        lw_str_add(commands, lw_str_c(&command));
        if (lw_demo_goes_on(&e.train))
            continue;
        e.train.resume = e.train.resume && !c->dry_run;
        e.train.command_line = lw_str_c(&command);
        LW_TRY(lw_train_encoder(&e, obs, &result));
        if (c->dry_run)
            lw_observe_say(obs, "battery, %s: %.2f minutes", names[i], minutes);
    }
    return c->dry_run ? 0 : draw_random(c, dir, side);
}
