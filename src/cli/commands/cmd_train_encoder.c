/* SPDX-License-Identifier: Apache-2.0 */
/* leeway train encoder */
#include "cli/commands/cmd_train.h"

#include "jobs/encoder/encoder_job.h"

static const lw_option options[] = {
    LW_TRAIN_OPTIONS(lw_train_encoder_config, "128", "3e-3", "0.99", "2", "50", "cosine", "0",
                     "0.995", "0.01"),
    LW_LATENT_OPTIONS(lw_train_encoder_config),
    {LW_OPT(lw_train_encoder_config, objective), .name = "objective",
     .choices = "mae|classify|judge|distill|contrastive", .fallback = "mae", .group = "Encoder",
     .help = "reconstruct hidden cells, predict the label, tell the label from junk pictures, "
             "predict the features of another encoder, or find the other view of a picture among "
             "those of others (without labels)"},
    {LW_OPT(lw_train_encoder_config, teacher), .name = "teacher", .path = LW_PATH_IN,
     .unit = "spec", .group = "Distillation",
     .help = "distill: the frozen encoder, as `train drift --encoder` takes it"},
    {LW_OPT(lw_train_encoder_config, teacher_keys), .name = "teacher-keys", .unit = "list",
     .group = "Distillation",
     .help = "its feature keys that are predicted; default pooled, else cls"},
    LW_FEATURE_OPTIONS(lw_train_encoder_config, "Distillation"),
    {LW_OPT(lw_train_encoder_config, contrast_temperature), .name = "contrast-temperature",
     .min = 0.01, .max = 100, .fallback = "0.5", .group = "Contrast",
     .help = "contrastive: what cosines between views are divided by"},
    {LW_OPT(lw_train_encoder_config, projection), .name = "projection-dim", .min = 2, .max = 65536,
     .fallback = "128", .group = "Contrast",
     .help = "contrastive: numbers that views are compared by, of two layers behind the pooled "
             "feature"},
    {LW_OPT(lw_train_encoder_config, least_area), .name = "view-min-area", .min = 0.01, .max = 1,
     .fallback = "0.2", .group = "Contrast",
     .help = "contrastive: least share of a picture that a view shows"},
    {LW_OPT(lw_train_encoder_config, view_colours), .name = "view-colors", .min = 0, .max = 1,
     .fallback = "0.5", .group = "Contrast",
     .help = "contrastive: how much colours of views differ; 0: not at all"},
    {LW_OPT(lw_train_encoder_config, width), .name = "width", .min = 4, .max = 1024,
     .fallback = "16", .group = "Encoder",
     .help = "channels of the first stage; doubles every stage"},
    {LW_OPT(lw_train_encoder_config, stages), .name = "stages", .min = 1, .max = 6, .fallback = "3",
     .group = "Encoder", .help = "each halves the resolution but the first"},
    {LW_OPT(lw_train_encoder_config, blocks), .name = "blocks", .min = 1, .max = 16,
     .fallback = "1", .group = "Encoder", .help = "residual blocks per stage"},
    {LW_OPT(lw_train_encoder_config, norm_groups), .name = "norm-groups", .min = 1, .max = 256,
     .fallback = "8", .group = "Encoder", .help = "groups of GroupNorm"},
    {LW_OPT(lw_train_encoder_config, norm_type), .name = "norm-type", .choices = "group|batch",
     .fallback = "group", .group = "Encoder",
     .help =
         "classify, distill, contrastive: what features are normalised with, those of the "
         "picture's group of "
         "channels, or of "
         "training pictures for each channel, folded into the convolutions when training is over"},
    {LW_OPT(lw_train_encoder_config, pictures.crop_padding), .name = "crop-padding", .min = 0,
     .max = 64, .fallback = "0", .unit = "pixels", .group = "Data",
     .help = "classify, mae: move pictures by up to so much at random, mirrored at their edges"},
    {LW_OPT(lw_train_encoder_config, mask_ratio), .name = "mask-ratio", .min = 0.01, .max = 0.99,
     .fallback = "0.5", .group = "Encoder", .help = "share of cells that mae hides"},
    {LW_OPT(lw_train_encoder_config, mask_patch), .name = "mask-patch-size", .min = 1, .max = 256,
     .fallback = "2", .unit = "places", .group = "Encoder", .help = "mae: side of a hidden cell"},
    {LW_OPT(lw_train_encoder_config, mask_schedule), .name = "mask-schedule",
     .choices = "fixed|linear_warmup|cosine", .fallback = "fixed", .group = "Encoder",
     .help = "mae: the share of hidden cells as it is, or growing from 0 to it"},
    {LW_OPT(lw_train_encoder_config, mask_warmup_steps), .name = "mask-warmup-steps", .min = 0,
     .max = 1e9, .fallback = "0", .unit = "steps", .group = "Encoder", .help = "within so many"},
    {LW_OPT(lw_train_encoder_config, arch), .name = "arch", .choices = "small|resnet34-unet",
     .fallback = "small", .group = "Encoder",
     .help = "mae: as --stages and --blocks say, or the published one of drifting generators, "
             "--width its base width; its features are the 86 keys of `train drift`"},
    {LW_OPT(lw_train_encoder_config, patchify), .name = "input-patchify-size",
     .aliases = "mae-input-patchify-size", .min = 1, .max = 64, .fallback = "1", .unit = "pixels",
     .group = "Encoder",
     .help = "resnet34-unet: squares of so many pixels are one place of its input, 8 for pictures "
             "of 256"},
    {LW_OPT(lw_train_encoder_config, cls_ft_steps), .name = "cls-ft-steps", .min = 0, .max = 1e12,
     .fallback = "0", .unit = "steps", .group = "Encoder",
     .help = "resnet34-unet: the last ones predict the label too, a share lambda of the loss that "
             "grows to 0.1 within 1,000 steps"},
    {LW_OPT(lw_train_encoder_config, export_dir), .name = "export-encoder-path",
     .path = LW_PATH_RUN_DIR, .resume = LW_RESUME_FREE, .unit = "dir", .group = "Run",
     .help = "write the averaged encoder without its decoder there when training is over"},
    {LW_OPT(lw_train_encoder_config, input_noise), .name = "input-noise", .min = 0, .max = 10,
     .fallback = "0", .group = "Encoder",
     .help = "classify: Gaussian noise of a standard deviation up to this"},
    {.name = NULL}};

static int call(void *config, const lw_observer *obs, lw_train_result *out)
{
    return lw_train_encoder(config, obs, out);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_train_encoder_config c = *(const lw_train_encoder_config *)config;
    return lw_cmd_train_run(cli, &c.train, &c, call);
}

const lw_command lw_cmd_train_encoder = {
    .name = "train encoder",
    .dry_run = true,
    .summary = "train the small feature encoder of a drift loss",
    .usage = "--data SPEC --output-dir DIR --steps N [options]",
    .notes = "The run directory is itself an encoder: give it to `train drift --encoder`.",
    .examples = "leeway train encoder --data synth:16 --objective mae --steps 1000 --output-dir "
                "runs/encoder",
    .options = {options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_train_encoder_config),
    .run = run,
};
