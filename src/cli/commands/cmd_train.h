/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows that the train commands share, and what they print at the end. */
#ifndef LW_CMD_TRAIN_H
#define LW_CMD_TRAIN_H

#include "cli/cli.h"
#include "cli/cli_observer.h"
#include "data/data.h"
#include "session/session.h"
#include "train/train.h"

/* One option, a line or two. */
/* clang-format off */

/* Of a struct T with an lw_train_config `field`. */
#define LW_RESUME_OPTIONS(T, field)                                                                \
    {LW_OPT(T, field.resume), .name = "resume", .fallback = "false", .group = "Run",               \
     .transient = true, .help = "go on from the last checkpoint of --output-dir"},                 \
    {LW_OPT(T, field.resume_from), .name = "resume-from", .path = LW_PATH_IN, .unit = "dir",       \
     .group = "Run", .transient = true, .help = "go on from this run or checkpoint"}

#define LW_CHECKPOINT_OPTIONS(T, field, what)                                                      \
    {LW_OPT(T, field.reschedule), .name = "reschedule", .fallback = "false", .group = "Run",       \
     .transient = true,                                                                            \
     .help = "going on, let the learning rate follow other --steps or another schedule; noted in " \
             "config.yaml and the checkpoints"},                                                   \
    {LW_OPT(T, field.save_every), .name = "save-every", .resume = LW_RESUME_FREE, .max = 1e12,     \
     .fallback = "0", .unit = what, .group = "Run",                                                \
     .help = "checkpoint interval; 0: at the end only"},                                           \
    {LW_OPT(T, field.keep_last_k_checkpoints), .name = "keep-last-k-checkpoints",                  \
     .resume = LW_RESUME_FREE, .max = 1e6, .fallback = "0", .group = "Run",                        \
     .help = "remove older checkpoints; 0: keep all"}

#define LW_SCHEDULE_OPTIONS(T, field, d_schedule, d_floor)                                         \
    {LW_OPT(T, field.scheduler), .name = "scheduler", .resume = LW_RESUME_SCHEDULE,                \
     .choices = "constant|cosine", .fallback = d_schedule, .group = "Optimiser",                   \
     .help = "learning rate after the warm-up"},                                                   \
    {LW_OPT(T, field.lr_floor), .name = "lr-floor", .resume = LW_RESUME_SCHEDULE, .max = 1,        \
     .fallback = d_floor, .group = "Optimiser",                                                    \
     .help = "share of the learning rate at the end of cosine"}

#define LW_ADAM_OPTIONS(T, field, of, d_beta2, d_eps, d_decay, decay)                              \
    {LW_OPT(T, field.adam_beta1), .name = "adam-beta1", .max = 0.99999, .fallback = "0.9",         \
     .group = "Optimiser", .help = of "decay of the first moment"},                                \
    {LW_OPT(T, field.adam_beta2), .name = "adam-beta2", .max = 0.999999, .fallback = d_beta2,      \
     .group = "Optimiser", .help = of "decay of the second moment"},                               \
    {LW_OPT(T, field.adam_eps), .name = "adam-eps", .max = 1, .fallback = d_eps,                   \
     .group = "Optimiser", .help = of "added to the root of the second moment"},                   \
    {LW_OPT(T, field.weight_decay), .name = "weight-decay", .max = 10, .fallback = d_decay,        \
     .group = "Optimiser", .help = decay}

#define LW_LEAF_OPTION(T, field, what)                                                             \
    {LW_OPT(T, field.leaf_size), .name = "leaf-size", .min = 0, .max = 1 << 24, .fallback = "0",   \
     .unit = what, .group = "Optimiser",                                                           \
     .help = "gradients are taken of so many at once (drift: of whole groups) and summed in a "    \
             "tree: the same bits, however a step is cut into parts; 0: a whole part at once"}

/* Rows over a struct T with `lw_train_config train` and `lw_picture_config pictures`. */
#define LW_TRAIN_OPTIONS(T, d_batch, d_lr, d_beta2, d_clip, d_warmup, d_schedule, d_floor,         \
                        d_ema, d_wd)                                                               \
    {LW_OPT(T, train.data), .name = "data", .path = LW_PATH_IN, .required = true, .unless = "real-batch-source", .unit = "spec", .group = "Data",     \
     .help = LW_DATA_SPEC_HELP},                                                                      \
    {LW_OPT(T, pictures.image_size), .name = "image-size", .min = 0, .max = 1024, .fallback = "0",    \
     .unit = "pixels", .group = "Data", .help = LW_DATA_SIZE_HELP},                                \
    {LW_OPT(T, pictures.channels), .name = "channels", .min = 1, .max = LW_MAX_CHANNELS,           \
     .fallback = "3", .group = "Data", .help = LW_DATA_CHANNELS_HELP},                             \
    {LW_OPT(T, pictures.on_error), .name = "on-error", .choices = LW_DATA_ON_ERROR,                \
     .fallback = "fail", .group = "Data", .help = LW_DATA_ON_ERROR_HELP},                          \
    {LW_OPT(T, pictures.limit), .name = "limit", .min = 0, .max = 1e12, .fallback = "0",              \
     .unit = "pictures", .group = "Data",                                                          \
     .help = "use only the first so many training pictures; 0: all"},                              \
    {LW_OPT(T, pictures.flip), .name = "flip", .fallback = "true", .group = "Data",                   \
     .help = "mirror pictures at random where that keeps their class"},                            \
    {LW_OPT(T, train.output_dir), .name = "output-dir", .resume = LW_RESUME_FREE, .path = LW_PATH_RUN_DIR, .aliases = "workdir", .required = true,    \
     .unit = "dir", .group = "Run", .help = "run directory: config, logs, samples, checkpoints"},  \
    {LW_OPT(T, train.steps), .name = "steps", .resume = LW_RESUME_GOAL, .min = 0, .max = 1e12, .fallback = "0",              \
     .group = "Run", .help = "optimiser steps"},                                                   \
    {LW_OPT(T, train.minutes), .name = "minutes", .instead = "steps", .resume = LW_RESUME_GOAL, .min = 0, .max = 1e6, .fallback = "0",           \
     .group = "Run",                                                                               \
     .help = "instead of --steps: as many as fit at a pace measured once, before the first; a "   \
             "machine that gets busier ends later"},                                               \
    LW_RESUME_OPTIONS(T, train),                                                                   \
    {LW_OPT(T, train.init_from), .name = "init-from", .path = LW_PATH_IN, .unit = "source", .group = "Run",           \
     .help = "begin with the weights of this run, checkpoint, model folder (diffusers' too) or "   \
             "file of the same network, and its average as a copy of them; optimiser and schedule "\
             "begin anew"},                                                                        \
    {LW_OPT(T, train.init_weights), .name = "init-weights", .choices = "model|ema",                \
     .fallback = "ema", .group = "Run",                                                            \
     .help = "of a checkpoint of --init-from: those of its last step, or averaged ones"},          \
    LW_CHECKPOINT_OPTIONS(T, train, "steps"),                                                      \
    {LW_OPT(T, train.log_every), .name = "log-every", .resume = LW_RESUME_FREE, .min = 1, .max = 1e9, .fallback = "10",      \
     .unit = "steps", .group = "Run",                                                              \
     .help = "interval of metrics.jsonl, loss_log.csv and TensorBoard rows"},                      \
    {LW_OPT(T, train.profile), .name = "profile", .min = 0, .max = 1000, .fallback = "0",          \
     .unit = "steps", .group = "Run", .transient = true,                                           \
     .help = "time so many steps part by part instead: nothing is trained or written"},            \
    {LW_OPT(T, train.sample_every), .name = "sample-every", .resume = LW_RESUME_FREE, .min = 0, .max = 1e12,                 \
     .fallback = "0", .unit = "steps", .group = "Run",                                             \
     .help = "interval of sample grids; 0: none"},                                                 \
    {LW_OPT(T, train.eval_every), .name = "eval-every", .resume = LW_RESUME_FREE, .min = 0, .max = 1e12, .fallback = "0",    \
     .unit = "steps", .group = "Run", .help = "interval of held-out measures; 0: none"},           \
    {LW_OPT(T, train.batch_size), .name = "batch-size", .min = 1, .max = 65536,                    \
     .fallback = d_batch, .unit = "pictures", .group = "Optimiser",                                \
     .help = "per step (and per accumulated part)"},                                               \
    {LW_OPT(T, train.grad_accum_steps), .name = "grad-accum-steps", .min = 1, .max = 4096,         \
     .fallback = "1", .group = "Optimiser",                                                        \
     .help = "parts of a step whose gradients are summed before the update"},                      \
    LW_LEAF_OPTION(T, train, "pictures"),                                                          \
    {LW_OPT(T, train.learning_rate), .name = "learning-rate", .resume = LW_RESUME_SCHEDULE, .aliases = "lr", .min = 0,           \
     .max = 10, .fallback = d_lr, .group = "Optimiser", .help = "peak learning rate"},             \
    {LW_OPT(T, train.optimizer), .name = "optimizer", .choices = "adamw|sgd",                      \
     .fallback = "adamw", .group = "Optimiser",                                                    \
     .help = "adamw, or sgd with Nesterov's momentum, which wants a learning rate a hundred times "\
             "as large and a --weight-decay, here of the gradient, a hundredth"},                  \
    {LW_OPT(T, train.momentum), .name = "momentum", .min = 0, .max = 0.9999,                       \
     .fallback = "0.9", .group = "Optimiser", .help = "of sgd"},                                   \
    LW_SCHEDULE_OPTIONS(T, train, d_schedule, d_floor),                                            \
    {LW_OPT(T, train.warmup_steps), .name = "warmup-steps", .resume = LW_RESUME_SCHEDULE, .min = 0, .max = 1e9,                  \
     .fallback = d_warmup, .group = "Optimiser", .help = "linear warm-up"},                        \
    LW_ADAM_OPTIONS(T, train, "adamw: ", d_beta2, "1e-8", d_wd,                                    \
                    "adamw: decoupled; sgd: part of the gradient"),                                \
    {LW_OPT(T, train.grad_clip), .name = "grad-clip", .min = 0, .max = 1e9, .fallback = d_clip,    \
     .group = "Optimiser", .help = "global norm gradients are clipped to; 0: no clipping"},        \
    {LW_OPT(T, train.ema_decay), .name = "ema-decay", .min = 0, .max = 0.9999999,                  \
     .fallback = d_ema, .group = "Optimiser",                                                      \
     .help = "average of the weights: min(this, (1+s)/(10+s)) at step s"},                         \
    {LW_OPT(T, train.recompute), .name = "recompute", .resume = LW_RESUME_FREE, .fallback = "false", .group = "Optimiser",   \
     .help = "make cheap activations again instead of storing them: less memory, the same bits"},  \
    {LW_OPT(T, train.precision), .name = "precision", .choices = LW_PRECISION_TRAIN_CHOICES,       \
     .fallback = "f32", .group = "Optimiser",                                                      \
     .help = "operands of products; sums, weights and everything else stay f32"}

/* Rows over a struct T with `lw_net_config net`: the U-Net of both generators. */
#define LW_NET_OPTIONS(T, d_base, d_mult, d_blocks, d_attn, d_groups, d_dropout, d_zero)           \
    {LW_OPT(T, net.base_channels), .name = "base-channels", .min = 1, .max = 4096,                 \
     .fallback = d_base, .group = "Network", .help = "width of the first level"},                  \
    {LW_OPT_LIST(T, net.channel_mult, net.n_channel_mult), .name = "channel-mult", .min = 1,       \
     .max = 64, .fallback = d_mult, .group = "Network",                                            \
     .help = "width of each level, times base; one level per entry"},                              \
    {LW_OPT(T, net.num_res_blocks), .name = "num-res-blocks", .min = 1, .max = 16,                 \
     .fallback = d_blocks, .group = "Network", .help = "residual blocks per level"},               \
    {LW_OPT_LIST(T, net.attn_resolutions, net.n_attn_resolutions), .name = "attn-resolutions",     \
     .min = 1, .max = 1024, .fallback = d_attn, .group = "Network",                                \
     .help = "levels with attention, by their side in pixels"},                                    \
    {LW_OPT(T, net.heads), .name = "heads", .min = 1, .max = 64, .fallback = "4",                  \
     .group = "Network", .help = "attention heads"},                                               \
    {LW_OPT(T, net.head_dim), .name = "attention-head-dim", .min = 0, .max = 4096,                 \
     .fallback = "0", .unit = "channels", .group = "Network",                                      \
     .help = "of a head, at every level, as diffusers has it; 0: as --heads says"},                \
    {LW_OPT(T, net.norm_groups), .name = "norm-groups", .min = 1, .max = 256,                      \
     .fallback = d_groups, .group = "Network", .help = "groups of GroupNorm"},                     \
    {LW_OPT(T, net.dropout), .name = "dropout", .min = 0, .max = 0.95, .fallback = d_dropout,      \
     .group = "Network", .help = "in residual blocks, while training"},                            \
    {LW_OPT(T, net.large), .name = "large", .fallback = "false", .group = "Network",               \
     .help = "the 210 M network: base 256, 3 blocks, attention at 16 and 8, 8 heads"},             \
    {LW_OPT(T, net.zero_init_output), .name = "zero-init-output", .fallback = d_zero,              \
     .group = "Network", .help = "start from an output of zero"},                                  \
    {LW_OPT(T, net.class_conditional), .name = "class-conditional", .choices = "auto|yes|no",      \
     .fallback = "auto", .group = "Network",                                                       \
     .help = "a class embedding; auto: when the data has labels"}

/* Rows over the same: noise that only a one-step generator takes. Config files of the others have them, too: `elsewhere`. */
#define LW_NOISE_OPTIONS(T, elsewhere)                                                             \
    {LW_OPT(T, net.latent_dim), .name = "latent-dim", .min = 0, .max = 4096, .fallback = "0",      \
     .hidden = (elsewhere), .group = "Network",                                                    \
     .help = "random numbers added to the embedding through a linear layer"},                      \
    {LW_OPT(T, net.noise_shape), .name = "noise-shape", .fallback = "full", .unit = "full|NxN",    \
     .hidden = (elsewhere), .group = "Network",                                                    \
     .help = "resolution of the input noise; smaller is upsampled by repetition"}

/* Rows over a struct T with `lw_picture_config pictures`: frames that the network depends on. */
#define LW_CLIP_OPTIONS(T)                                                                         \
    {LW_OPT(T, pictures.clip.condition), .name = "condition", .unit = "list", .group = "Frames",   \
     .help = "restore clips: frame (the current one, made worse), previous[:K] (K frames before "  \
             "it); --data is video:FILE or folder:DIR, --image-size the side of crops"},           \
    {LW_OPT(T, pictures.clip.degrade), .name = "degrade", .unit = "list", .group = "Frames",       \
     .help = LW_DEGRADE_HELP},                                                                     \
    {LW_OPT(T, pictures.clip.history_noise), .name = "history-noise", .min = 0, .max = 255,        \
     .fallback = "10", .unit = "levels", .group = "Frames",                                        \
     .help = "previous frames get noise of up to so much: answers of a network are never perfect"}, \
    {LW_OPT(T, pictures.clip.history_blur), .name = "history-blur", .min = 0, .max = 100,          \
     .fallback = "1", .unit = "pixels", .group = "Frames", .help = "and are blurred by up to so much"}, \
    {LW_OPT(T, pictures.clip.history_drop), .name = "history-drop", .min = 0, .max = 1,            \
     .fallback = "0.1", .group = "Frames",                                                         \
     .help = "share of samples without any, as when a stream begins"}

/* Rows over a struct T with `lw_picture_config pictures`, of trainers that learn latents as well. */
#define LW_LATENT_OPTIONS(T)                                                                       \
    {LW_OPT(T, pictures.latents), .name = "latents", .path = LW_PATH_IN, .unit = "autoencoder",    \
     .group = "Data",                                                                              \
     .help = "learn the latents of an autoencoder: taef2:DIR, sd-vae:DIR, a folder, a run of "     \
             "`train autoencoder`. Pictures and their mirror images are encoded once and kept"}

/* Names that published grouped trainers have for the same things. */
#define LW_REAL_OPTIONS(T)                                                                         \
    {LW_OPT(T, pictures.real.source), .name = "real-batch-source", .choices = LW_REAL_SOURCES,     \
     .fallback = "none", .group = "Real pictures",                                                 \
     .help = "instead of --data: synth:32, folder:, webdataset:, tensor: or shards: of the path "  \
             "that goes with it"},                                                                 \
    {LW_OPT(T, pictures.real.imagefolder), .name = "real-imagefolder-root", .path = LW_PATH_IN,    \
     .unit = "dir", .group = "Real pictures", .help = "of imagefolder"},                           \
    {LW_OPT(T, pictures.real.webdataset), .name = "real-webdataset-urls", .path = LW_PATH_IN,      \
     .unit = "glob", .group = "Real pictures", .help = "of webdataset: files on this machine"},    \
    {LW_OPT(T, pictures.real.tensor), .name = "real-tensor-file-path", .path = LW_PATH_IN,         \
     .unit = "file", .group = "Real pictures", .help = "of tensor_file"},                          \
    {LW_OPT(T, pictures.real.shards), .name = "real-tensor-shards-manifest-path",                  \
     .path = LW_PATH_IN, .unit = "file", .group = "Real pictures", .help = "of tensor_shards"},    \
    {LW_OPT(T, pictures.real.workers), .name = "real-num-workers", .resume = LW_RESUME_FREE,       \
     .min = 0, .max = 256, .fallback = "0", .unit = "threads", .group = "Real pictures",           \
     .help = "that decode pictures, once, into the cache; 0: all threads"},                        \
    {LW_OPT(T, pictures.real.ordered), .name = "disable-real-shuffle", .fallback = "false",        \
     .group = "Real pictures",                                                                     \
     .help = "rows in the order of the data (of drift: those that go into the queue)"},            \
    {LW_OPT(T, pictures.real.pin), .name = "real-pin-memory", .resume = LW_RESUME_FREE,            \
     .fallback = "false", .group = "Real pictures", .help = "no effect on CPUs"},                  \
    {LW_OPT(T, pictures.real.persistent), .name = "real-persistent-workers",                       \
     .resume = LW_RESUME_FREE, .fallback = "false", .group = "Real pictures",                      \
     .help = "they are, as long as a run; needs workers, as where the name comes from"},           \
    {LW_OPT(T, pictures.real.prefetch), .name = "real-prefetch-factor", .resume = LW_RESUME_FREE,  \
     .min = 0, .max = 64, .fallback = "0", .unit = "batches", .group = "Real pictures",            \
     .help = "read ahead for each worker; 0: 2 in all"}

/* Rows over a struct T with `lw_heldout_config heldout`: what --eval-every measures. */
#define LW_HELDOUT_OPTIONS(T, features)                                                            \
    {LW_OPT(T, heldout.samples), .name = "eval-samples", .resume = LW_RESUME_FREE, .min = 16,      \
     .max = 1e6, .fallback = "2000", .unit = "pictures", .group = "Held-out measures",             \
     .help = "of fd, the Frechet distance to held-out pictures in features of " features           \
             ", and of its floor; at most the training pictures"},                                 \
    {LW_OPT(T, heldout.eval_encoder), .name = "eval-encoder", .path = LW_PATH_IN,                  \
     .resume = LW_RESUME_FREE, .unit = "spec", .group = "Held-out measures",                       \
     .help = "a network that the loss does not see: its distances are eval_fd"},                   \
    {LW_OPT(T, heldout.keep_best), .name = "keep-best", .resume = LW_RESUME_FREE,                  \
     .choices = "none|fd|eval_fd", .fallback = "none", .group = "Held-out measures",               \
     .help = "keep the checkpoint with the least of these as checkpoints/best, chosen on one half " \
             "of the held-out pictures and reported on the other"}

/* Rows over a struct T with feature_cache_mb and feature_disk_mb: an encoder's features of real
 * pictures. */
#define LW_FEATURE_OPTIONS(T, in)                                                                  \
    {LW_OPT(T, feature_cache_mb), .name = "feature-cache", .resume = LW_RESUME_FREE,               \
     .min = 0, .max = 1e6, .fallback = "2048", .unit = "MiB", .group = in,                         \
     .help = "keep features of real pictures, and of their mirror images, when they fit"},         \
    {LW_OPT(T, feature_disk_mb), .name = "feature-disk", .resume = LW_RESUME_FREE,                 \
     .min = 0, .max = 1e7, .fallback = "8192", .unit = "MiB", .group = in,                         \
     .help = "what is kept lies in the cache directory, for later runs; so much of all runs "      \
             "together, those longest unused go; 0: in memory"}

/* clang-format on */

/* Runs `train(config copy, observer, result)` with what the command line adds, prints
 * the outcome. */
typedef int lw_train_call(void *config, const lw_observer *obs, lw_train_result *out);
int lw_cmd_train_run(const lw_cli *cli, lw_train_config *t, void *config, lw_train_call *call);
/* LW_EUSAGE when the run that *t goes on from was made with other options than may change;
 * `changes` gets those that --reschedule lets change. */
int lw_cmd_train_check(const lw_cli *cli, const lw_train_config *t, lw_str *changes);
/* LW_EUSAGE, with `why`, when an option of the group (all but `but`) is not as it is without being named. */
int lw_cmd_train_unused(const lw_cli *cli, const char *group, const char *but, const char *why);

#endif
