/* SPDX-License-Identifier: Apache-2.0 */
/* leeway train ddpm, leeway train flow: one trainer, two ways from noise to pictures. */
#include "cli/commands/cmd_train.h"

#include "jobs/ddpm/ddpm_job.h"

/* What both have before their own. */
#define COMMON_OPTIONS                                                                            \
    LW_TRAIN_OPTIONS(lw_ddpm_config, "128", "2e-4", "0.999", "1", "0", "constant", "0", "0.9999", \
                     "0"),                                                                        \
        LW_LATENT_OPTIONS(lw_ddpm_config), LW_REAL_OPTIONS(lw_ddpm_config),                       \
        LW_NET_OPTIONS(lw_ddpm_config, "128", "1,2,2,2", "2", "16", "32", "0.1", "true"),         \
        LW_NOISE_OPTIONS(lw_ddpm_config, true),                                                   \
    {                                                                                             \
        LW_OPT(lw_ddpm_config, class_dropout_prob),                                               \
            .name = "class-dropout-prob", .min = 0, .max = 0.99, .fallback = "0",                 \
            .group = "Network",                                                                   \
            .help = "share of pictures, drawn in each step, whose class is left out, so that "    \
                    "`sample --guidance-scale` can guide; 0.1 is usual"                           \
    }

static const lw_option ddpm_options[] = {
    COMMON_OPTIONS,
    {LW_OPT(lw_ddpm_config, timesteps), .name = "timesteps", .min = 1, .max = 4000,
     .fallback = "1000", .group = "Diffusion", .help = "steps of the noise schedule"},
    {LW_OPT(lw_ddpm_config, beta_schedule), .name = "beta-schedule", .choices = "linear|cosine",
     .fallback = "linear", .group = "Diffusion",
     .help = "beta linear from 1e-4 to 0.02, or so that the signal falls as a squared cosine (in "
             "diffusers squaredcos_cap_v2)"},
    {LW_OPT(lw_ddpm_config, eval_steps), .name = "ddim-steps", .resume = LW_RESUME_FREE, .min = 0,
     .max = 1000, .fallback = "0", .group = "Diffusion",
     .help = "network evaluations per picture in sample grids and held-out measures; 0: 50, with "
             "--condition 1"},
    {LW_OPT(lw_ddpm_config, prediction), .name = "prediction", .aliases = "prediction-type",
     .choices = "auto|epsilon|sample|v_prediction", .fallback = "auto", .group = "Diffusion",
     .help = "what the network answers: the noise, the picture, or sqrt(ab) noise - sqrt(1 - ab) "
             "picture; auto: sample with --condition, else epsilon"},
    {LW_OPT(lw_ddpm_config, snr_gamma), .name = "snr-gamma", .min = 0, .max = 1e6, .fallback = "0",
     .group = "Diffusion",
     .help = "min-SNR weights: errors at times with more signal than this ratio to the noise count "
             "less (5 is usual); 0: all alike"},
    LW_CLIP_OPTIONS(lw_ddpm_config),
    LW_HELDOUT_OPTIONS(lw_ddpm_config, "the colours"),
    {.name = NULL}};

static const lw_option flow_options[] = {
    COMMON_OPTIONS,
    {LW_OPT(lw_ddpm_config, timesteps), .name = "timesteps", .min = 1, .max = 4000,
     .fallback = "1000", .group = "Flow",
     .help = "the network is told so many times the share of noise; training draws one of so many"},
    {LW_OPT(lw_ddpm_config, flow_times), .name = "time-distribution",
     .choices = "uniform|logit_normal", .fallback = "uniform", .group = "Flow",
     .help = "of the times that are trained: all alike, or those in the middle more often"},
    {LW_OPT(lw_ddpm_config, flow_mean), .name = "logit-mean", .min = -10, .max = 10,
     .fallback = "0", .group = "Flow",
     .help = "of logit_normal: sigmoid(mean + std z) is the share of noise"},
    {LW_OPT(lw_ddpm_config, flow_std), .name = "logit-std", .min = 0.01, .max = 10, .fallback = "1",
     .group = "Flow", .help = "likewise"},
    {LW_OPT(lw_ddpm_config, flow_shift), .name = "shift", .min = 0.01, .max = 100, .fallback = "1",
     .group = "Flow",
     .help = "above 1: more of the times, in training and sampling, have much noise, as large "
             "pictures want"},
    {LW_OPT(lw_ddpm_config, eval_steps), .name = "eval-steps", .resume = LW_RESUME_FREE, .min = 0,
     .max = 1000, .fallback = "0", .group = "Flow",
     .help = "network evaluations per picture in sample grids and held-out measures (Euler's "
             "method); 0: 20"},
    LW_HELDOUT_OPTIONS(lw_ddpm_config, "the colours"),
    {.name = NULL}};

static int call(void *config, const lw_observer *obs, lw_train_result *out)
{
    return lw_train_ddpm(config, obs, out);
}

static int run_as(const lw_cli *cli, const void *config, bool flow)
{
    lw_ddpm_config c = *(const lw_ddpm_config *)config;
    LW_CLEANUP(lw_str_clear) lw_str spec = {0};
    LW_TRY(lw_real_spec(&c.pictures.real, c.train.data, &spec));
    c.train.data = lw_str_c(&spec);
    c.flow = flow;
    return lw_cmd_train_run(cli, &c.train, &c, call);
}

static int run_ddpm(const lw_cli *cli, const void *config)
{
    return run_as(cli, config, false);
}

static int run_flow(const lw_cli *cli, const void *config)
{
    return run_as(cli, config, true);
}

const lw_command lw_cmd_train_ddpm = {
    .name = "train ddpm",
    .dry_run = true,
    .summary = "train a denoising diffusion model",
    .usage = "--data SPEC --output-dir DIR --steps N [options]",
    .notes = "The loss is the mean squared error of what is predicted, weighted by --snr-gamma, "
             "and falls as "
             "training goes on. Losses of different predictions or weights do not compare.",
    .examples =
        "leeway train ddpm --data synth:16 --base-channels 32 --channel-mult 1,2,2 --steps 500 "
        "--output-dir runs/ddpm\n"
        "leeway train ddpm --data cifar10:cifar-10-batches-bin --minutes 25 --output-dir runs/ddpm",
    .options = {ddpm_options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_ddpm_config),
    .run = run_ddpm,
};

const lw_command lw_cmd_train_flow = {
    .name = "train flow",
    .dry_run = true,
    .summary = "train a rectified flow: straight ways from noise to pictures, few evaluations",
    .usage = "--data SPEC --output-dir DIR --steps N [options]",
    .notes = "The loss is the mean squared error of noise - picture, which no network can bring to "
             "0: it "
             "falls to what noise leaves unknown. `train ddpm` is the same network and step with "
             "another schedule.",
    .examples =
        "leeway train flow --data synth:16 --base-channels 32 --channel-mult 1,2,2 --steps 500 "
        "--output-dir runs/flow\n"
        "leeway train flow --data cifar10:cifar-10-batches-bin --minutes 25 --output-dir runs/flow",
    .options = {flow_options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_ddpm_config),
    .run = run_flow,
};
