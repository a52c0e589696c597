/* SPDX-License-Identifier: Apache-2.0 */
/* leeway train autoencoder */
#include "cli/commands/cmd_train.h"

#include "jobs/autoencoder/autoencoder_job.h"

static const lw_option options[] = {
    LW_TRAIN_OPTIONS(lw_autoencoder_config, "8", "1e-3", "0.99", "1", "50", "cosine", "0", "0.998",
                     "0"),
    {LW_OPT(lw_autoencoder_config, crop), .name = "crop", .min = 0, .max = 1024, .fallback = "0",
     .unit = "pixels", .group = "Data",
     .help = "train on random crops of this side, measure whole pictures; 0: no crops"},
    {LW_OPT(lw_autoencoder_config, net.width), .name = "width", .min = 1, .max = 1024,
     .fallback = "16", .group = "Autoencoder", .help = "channels of every level"},
    {LW_OPT(lw_autoencoder_config, net.latent), .name = "latent-channels", .min = 1, .max = 1024,
     .fallback = "32", .group = "Autoencoder", .help = "numbers of a place of the latent"},
    {LW_OPT_LIST(lw_autoencoder_config, net.blocks, net.levels), .name = "blocks", .min = 0,
     .max = 63, .fallback = "1,3,3,3", .group = "Autoencoder",
     .help = "blocks of each level of the encoder, which has half the sides of the one before; the "
             "decoder has them the other way round"},
    {LW_OPT(lw_autoencoder_config, loss), .name = "loss", .choices = "mse|l1", .fallback = "mse",
     .group = "Loss", .help = "squared differences, which PSNR counts, or absolute ones"},
    {LW_OPT(lw_autoencoder_config, gradient_weight), .name = "gradient-weight", .min = 0,
     .max = 1e6, .fallback = "0", .group = "Loss",
     .help = "of the absolute error in differences of neighbours: sharper edges"},
    {LW_OPT(lw_autoencoder_config, latent_weight), .name = "latent-weight", .min = 0, .max = 1e6,
     .fallback = "1e-3", .group = "Loss",
     .help = "of (mean square of latents - 1)^2: they need no scaling for other networks"},
    {.name = NULL}};

static int call(void *config, const lw_observer *obs, lw_train_result *out)
{
    return lw_train_autoencoder(config, obs, out);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_autoencoder_config c = *(const lw_autoencoder_config *)config;
    return lw_cmd_train_run(cli, &c.train, &c, call);
}

const lw_command lw_cmd_train_autoencoder = {
    .name = "train autoencoder",
    .dry_run = true,
    .summary = "train a small autoencoder, in whose latents other networks work",
    .usage = "--data SPEC --output-dir DIR --steps N [options]",
    .notes = "The run directory is itself an autoencoder: give it to `stream --model` or "
             "`--latents`; diffusers' AutoencoderTiny opens its checkpoints.",
    .examples = "leeway train autoencoder --data video:clip.mp4 --image-size 256 --crop 128 "
                "--minutes 20 --eval-every 500 --sample-every 500 --output-dir runs/latents",
    .options = {options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_autoencoder_config),
    .run = run,
};
