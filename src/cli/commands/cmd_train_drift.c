/* SPDX-License-Identifier: Apache-2.0 */
/* leeway train drift */
#include "cli/commands/cmd_train.h"

#include "jobs/drift/drift_job.h"

static const lw_option options[] = {
    LW_TRAIN_OPTIONS(lw_drift_config, "128", "2e-4", "0.95", "2", "0", "constant", "0", "0.9999",
                     "0"),
    LW_LATENT_OPTIONS(lw_drift_config),
    LW_REAL_OPTIONS(lw_drift_config),
    LW_NET_OPTIONS(lw_drift_config, "128", "1,2,2,2", "2", "16", "32", "0.1", "false"),
    LW_NOISE_OPTIONS(lw_drift_config, false),
    {.name = NULL}};

static const lw_option dit_options[] = {
    {LW_OPT(lw_drift_config, net.generator), .name = "generator", .choices = LW_GENERATORS,
     .fallback = "unet", .group = "Transformer",
     .help = "unet, as the options of the network say, or a transformer: dit is a small one (width "
             "192, "
             "6 blocks), the others have the published sizes (/2 and /16: sides of a patch)"},
    {LW_OPT(lw_drift_config, net.patch_size), .name = "patch-size", .min = 0, .max = 4096,
     .fallback = "0", .unit = "pixels", .group = "Transformer", .help = "0: that of --generator"},
    {LW_OPT(lw_drift_config, net.hidden_dim), .name = "hidden-dim", .min = 0, .max = 32768,
     .fallback = "0", .unit = "channels", .group = "Transformer", .help = "0: that of --generator"},
    {LW_OPT(lw_drift_config, net.depth), .name = "depth", .min = 0, .max = 1024, .fallback = "0",
     .unit = "blocks", .group = "Transformer", .help = "0: that of --generator"},
    {LW_OPT(lw_drift_config, net.num_heads), .name = "num-heads", .min = 0, .max = 1024,
     .fallback = "0", .group = "Transformer",
     .help = "0: that of --generator, with --hidden-dim heads of 64 channels"},
    {LW_OPT(lw_drift_config, net.register_tokens), .name = "register-tokens", .min = 0, .max = 4096,
     .fallback = "16", .group = "Transformer",
     .help = "tokens in context, made of the condition, in front of the patches"},
    {LW_OPT(lw_drift_config, net.style_count), .name = "style-token-count", .min = 0, .max = 1024,
     .fallback = "32", .group = "Transformer",
     .help = "codebooks, of each of which every picture draws a style; 0: none"},
    {LW_OPT(lw_drift_config, net.style_words), .name = "style-vocab-size", .min = 1, .max = 1 << 20,
     .fallback = "64", .group = "Transformer", .help = "styles of a codebook"},
    {LW_OPT(lw_drift_config, net.rope), .name = "rope-mode", .choices = LW_DIT_ROPES,
     .fallback = "1d_flat", .group = "Transformer",
     .help = "rotary positions: of tokens in a row, or of rows and columns of patches"},
    {LW_OPT(lw_drift_config, net.qk_norm_mode), .name = "qk-norm-mode", .choices = "rmsnorm|none",
     .fallback = "rmsnorm", .group = "Transformer",
     .help = "norm of queries and keys, head by head"},
    {.name = NULL}};

static const lw_option drift_options[] = {
    {LW_OPT(lw_drift_config, encoder), .name = "encoder", .path = LW_PATH_IN, .fallback = "none",
     .unit = "spec", .group = "Drift",
     .help = "frozen features: none (pixels), a run of `train encoder`, or a folder or file of any "
             "encoder (docs/encoders.md); A,B: keys of several are one loss, and held-out measures "
             "are of the first"},
    {LW_OPT(lw_drift_config, encoder_size), .name = "encoder-size", .min = 0, .max = 4096,
     .fallback = "0", .unit = "pixels", .group = "Drift",
     .help = "side to which pictures are resized for it; 0: that of its preparation, or none"},
    {LW_OPT(lw_drift_config, encoder_resize), .name = "encoder-resize",
     .choices = LW_ENCODER_RESIZES, .fallback = "bilinear", .group = "Drift",
     .help = "how, in the graph, generated and real pictures alike"},
    {LW_OPT(lw_drift_config, feature_space), .name = "feature-space", .choices = LW_FEATURE_SPACES,
     .fallback = "latent", .group = "Drift",
     .help = "with --latents, features are those of latents, or of the pictures decoded of them: "
             "gradients go through the decoder; both: the last of --encoder A,B sees pictures, the "
             "others latents"},
    {LW_OPT(lw_drift_config, feature_keys), .name = "feature-keys", .unit = "list",
     .group = "Drift",
     .help = "keys or sets (col, maps, all, pixels); default col, pixels without an encoder. Of "
             "--encoder A,B 2.s2.loc is a key of B, s2.loc one of both"},
    {LW_OPT_LIST(lw_drift_config, temperatures, n_temperatures), .name = "feature-temperatures",
     .aliases = "temps|temperatures", .min = 1e-6, .max = 1e6, .fallback = "0.02,0.05,0.2",
     .group = "Drift", .help = "of the kernel exp(-distance / tau), in units of the mean distance"},
    {LW_OPT(lw_drift_config, temperature_anneal), .name = "temperature-anneal",
     .resume = LW_RESUME_SCHEDULE, .min = 0.001, .max = 1000, .fallback = "1", .group = "Drift",
     .help = "at the first step temperatures are so many times as high, and come down to their own "
             "by equal ratios; 1: they are what they are"},
    {LW_OPT(lw_drift_config, temperature_anneal_end), .name = "temperature-anneal-end",
     .resume = LW_RESUME_SCHEDULE, .min = 0, .max = 1, .fallback = "0.5", .unit = "share",
     .group = "Drift", .help = "of all steps, after which they are there"},
    {LW_OPT(lw_drift_config, finish_frechet), .name = "finish-frechet",
     .resume = LW_RESUME_SCHEDULE, .min = 0, .max = 1, .fallback = "0", .unit = "share",
     .group = "Drift",
     .help = "of all steps, the last ones, that follow no field but the Frechet distance of each "
             "group to all real pictures of its class, in the keys that are one vector; wants "
             "large --negatives-per-group; 0: none"},
    {LW_OPT(lw_drift_config, normalize_over_x), .name = "normalize-over-x", .fallback = "true",
     .group = "Drift",
     .help = "take softmax over the generated samples too, but over targets only"},
    {LW_OPT(lw_drift_config, own_scale), .name = "disable-shared-location-normalization",
     .fallback = "false", .group = "Drift",
     .help = "each slot (location) of a key has its own mean distance, over the classes"},
    {LW_OPT(lw_drift_config, variant), .name = "drift-variant",
     .choices = "official|plain|tau-times-dim", .fallback = "official", .group = "Drift",
     .help = "official, or a published deviation for parity studies"},
    {LW_OPT(lw_drift_config, field_precision), .name = "field-precision", .choices = "f32|bf16",
     .fallback = "f32", .group = "Drift",
     .help = "bf16: distances from products of vectors rounded to bf16, the rest f32. The field is "
             "then off by 2e-3 to 8e-3 at the usual temperatures (f32: 1e-5), and the more the "
             "smaller they are and the fewer the channels: 1e-2 at 0.02 alone, 1e-1 at 0.001"},
    {LW_OPT(lw_drift_config, groups), .name = "groups", .min = 0, .max = 65536, .fallback = "0",
     .group = "Drift",
     .help = "classes per step (and per accumulated part); 0: up to 8, one without labels"},
    {LW_OPT(lw_drift_config, negatives_per_group), .name = "negatives-per-group", .min = 0,
     .max = 65536, .fallback = "0", .group = "Drift",
     .help = "pictures generated per group; 0: 16, 128 without labels"},
    {LW_OPT(lw_drift_config, positives_per_group), .name = "positives-per-group", .min = 0,
     .max = 65536, .fallback = "0", .group = "Drift",
     .help = "real pictures per group; 0: 64, 128 without labels"},
    {LW_OPT(lw_drift_config, unconditional_per_group), .name = "unconditional-per-group", .min = 0,
     .max = 65536, .fallback = "0", .group = "Drift",
     .help = "real pictures of any class that push away"},
    {LW_OPT(lw_drift_config, uncond_weight), .name = "uncond-weight", .min = 0, .max = 1e6,
     .fallback = "1", .group = "Drift", .help = "weight of each of those"},
    {LW_OPT(lw_drift_config, class_rule), .name = "class-rule", .choices = "distinct|frequency",
     .fallback = "distinct", .group = "Drift",
     .help = "classes of a step: each once before any again, or as frequent as in the data"},
    {LW_OPT(lw_drift_config, class_chunk), .name = "class-chunk", .min = 0, .max = 65536,
     .fallback = "0", .unit = "groups", .group = "Drift",
     .help =
         "make a step in parts: the field of so many groups at a time, the networks leaf by leaf "
         "(one forward pass more); the bits are the same for any number; 0: in one part where it "
         "fits, else as many as fit"},
    {LW_OPT(lw_drift_config, memory_limit), .name = "memory-limit", .min = 0, .max = 1e6,
     .fallback = "0", .unit = "GiB", .group = "Drift",
     .help =
         "make a step in parts, the largest that fit; 0: only where it would take more than this "
         "process may use"},
    {LW_OPT(lw_drift_config, alpha.fixed), .name = "alpha-fixed", .min = 0, .max = 1000,
     .fallback = "0", .group = "Guidance",
     .help =
         "strength of guidance of every group: unconditional pictures weigh (alpha - 1)(N - 1) / "
         "U each, 1 is none; 0: as --uncond-weight says"},
    {LW_OPT(lw_drift_config, alpha.dist), .name = "alpha-dist", .choices = LW_ALPHA_DISTS,
     .fallback = "none", .group = "Guidance",
     .help = "drawn for each group, and the generator is told it (`sample --alpha`): evenly, p ~ "
             "alpha^-power, the point or the latter, or 1 half of the time and else power 3"},
    {LW_OPT(lw_drift_config, alpha.min), .name = "alpha-min", .min = 1, .max = 1000,
     .fallback = "1", .group = "Guidance", .help = "the least that is drawn"},
    {LW_OPT(lw_drift_config, alpha.max), .name = "alpha-max", .min = 1, .max = 1000,
     .fallback = "4", .group = "Guidance", .help = "the greatest"},
    {LW_OPT(lw_drift_config, alpha.power), .name = "alpha-power", .min = -20, .max = 20,
     .fallback = "3", .group = "Guidance", .help = "of the power law"},
    {LW_OPT(lw_drift_config, alpha.point), .name = "alpha-point", .min = 1, .max = 1000,
     .fallback = "1", .group = "Guidance", .help = "of mixture_point_powerlaw"},
    {LW_OPT(lw_drift_config, alpha.point_prob), .name = "alpha-point-prob", .min = 0, .max = 1,
     .fallback = "0.5", .group = "Guidance", .help = "and how often it is drawn"},
    LW_CLIP_OPTIONS(lw_drift_config),
    {LW_OPT(lw_drift_config, pixel_weight), .name = "pixel-weight", .min = 0, .max = 1e9,
     .fallback = "100", .group = "Frames",
     .help = "with --condition: of the mean squared difference to the clean frame, beside the "
             "fields, whose loss is about 1 for each key and temperature"},
    LW_FEATURE_OPTIONS(lw_drift_config, "Drift"),
    {LW_OPT(lw_drift_config, feature_type), .name = "feature-type", .choices = "f32|bf16",
     .fallback = "f32", .group = "Drift",
     .help = "of real pictures' features: bf16 rounds them, and twice as many fit"},
    LW_HELDOUT_OPTIONS(lw_drift_config, "the encoder of the loss"),
    {.name = NULL}};

static const lw_option loss_options[] = {
    {LW_OPT(lw_drift_config, loss.use_feature_loss), .name = "use-feature-loss",
     .fallback = "false", .group = "Loss",
     .help = "as any --encoder does; by itself it asks for one"},
    {LW_OPT(lw_drift_config, loss.filter.stages), .name = "feature-selected-stages", .unit = "list",
     .group = "Loss",
     .help = "of the maps only these, by name (layer3_blk6, s2) or by number of their stage (0: "
             "the stem)"},
    {LW_OPT(lw_drift_config, loss.filter.no_locations), .opposite = true, .name = "per-location",
     .fallback = "true", .group = "Loss", .help = "take maps by location"},
    {LW_OPT(lw_drift_config, loss.filter.no_global), .opposite = true, .name = "global-stats",
     .fallback = "true", .group = "Loss", .help = "take mean and deviation of whole maps"},
    {LW_OPT(lw_drift_config, loss.filter.no_patch2), .opposite = true, .name = "patch2-stats",
     .fallback = "true", .group = "Loss", .help = "take those of their 2x2 patches"},
    {LW_OPT(lw_drift_config, loss.filter.no_patch4), .opposite = true,
     .name = "include-patch4-stats", .aliases = "patch4-stats", .fallback = "true", .group = "Loss",
     .help = "take those of their 4x4 patches"},
    {LW_OPT(lw_drift_config, loss.filter.no_x2_mean), .opposite = true,
     .name = "include-input-x2-mean", .aliases = "input-x2-mean", .fallback = "true",
     .group = "Loss", .help = "take norm_x, where the keys have it"},
    {LW_OPT(lw_drift_config, loss.include_raw), .name = "feature-include-raw-drift-loss",
     .fallback = "false", .group = "Loss", .help = "all pixels as one more key"},
    {LW_OPT(lw_drift_config, loss.raw_weight), .name = "feature-raw-drift-loss-weight", .min = 0,
     .max = 1e6, .fallback = "1", .group = "Loss", .help = "which counts so many times"},
    {LW_OPT(lw_drift_config, loss.aggregation), .name = "feature-temperature-aggregation",
     .choices = "sum_drifts_then_mse|per_temperature_mse", .fallback = "sum_drifts_then_mse",
     .group = "Loss",
     .help = "loss of a key: mean square of the temperatures' sum, or the sum of their mean "
             "squares; the gradient is the same"},
    {LW_OPT(lw_drift_config, loss.term_reduction), .name = "feature-loss-term-reduction",
     .choices = "sum|mean", .fallback = "sum", .group = "Loss", .help = "of the keys' losses"},
    {.name = NULL}};

static const lw_option queue_options[] = {
    {LW_OPT(lw_drift_config, use_queue), .name = "use-queue", .fallback = "false", .group = "Queue",
     .help =
         "real pictures come from rings of the newest ones, for each class and for all, not from "
         "all of the data"},
    {LW_OPT(lw_drift_config, queue.per_class), .name = "queue-per-class-capacity", .min = 1,
     .max = 1e6, .fallback = "128", .unit = "pictures", .group = "Queue",
     .help = "of a class' ring"},
    {LW_OPT(lw_drift_config, queue.global), .name = "queue-global-capacity", .min = 1, .max = 1e9,
     .fallback = "1000", .unit = "pictures", .group = "Queue",
     .help = "of the ring that unconditional ones come from"},
    {LW_OPT(lw_drift_config, queue.push), .name = "queue-push-batch", .min = 0, .max = 1e6,
     .fallback = "64", .unit = "pictures", .group = "Queue",
     .help = "that a refill brings, from a shuffled pass over the data"},
    {LW_OPT(lw_drift_config, queue.prime), .name = "queue-prime-samples", .min = 0, .max = 1e8,
     .fallback = "500", .unit = "pictures", .group = "Queue", .help = "before the first step"},
    {LW_OPT(lw_drift_config, queue.warmup), .name = "queue-warmup-mode",
     .choices = "random|class_balanced", .fallback = "random", .group = "Queue",
     .help = "those: the next ones of the pass, or as many of each class"},
    {LW_OPT(lw_drift_config, queue.min_per_class), .name = "queue-warmup-min-per-class", .min = 1,
     .max = 1e6, .fallback = "1", .unit = "pictures", .group = "Queue",
     .help = "of each class, with class_balanced"},
    {LW_OPT(lw_drift_config, queue.strict), .name = "queue-strict-without-replacement",
     .fallback = "false", .group = "Queue",
     .help = "no entry of a ring twice in a group: rings are filled until they hold enough"},
    {LW_OPT(lw_drift_config, queue.refill), .name = "queue-refill-policy",
     .choices = "per_step|every_n_steps", .fallback = "per_step", .group = "Queue",
     .help = "when the queue is refilled"},
    {LW_OPT(lw_drift_config, queue.refill_every), .name = "queue-refill-every", .min = 1,
     .max = 1e9, .fallback = "1", .unit = "steps", .group = "Queue", .help = "with every_n_steps"},
    {LW_OPT(lw_drift_config, queue_report), .name = "queue-report-level", .choices = "basic|full",
     .resume = LW_RESUME_FREE, .fallback = "basic", .group = "Queue",
     .help = "of the summary: full adds what the warm-up left in the ring of every class"},
    {.name = NULL}};

static int call(void *config, const lw_observer *obs, lw_train_result *out)
{
    return lw_train_drift(config, obs, out);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_drift_config c = *(const lw_drift_config *)config;
    LW_CLEANUP(lw_str_clear) lw_str spec = {0};
    LW_TRY(lw_real_spec(&c.pictures.real, c.train.data, &spec));
    c.train.data = lw_str_c(&spec);
    bool unet = c.net.generator == LW_GENERATOR_UNET;
    LW_TRY(lw_cmd_train_unused(cli, unet ? "Transformer" : "Network",
                               unet ? "generator" : "class-conditional",
                               unet ? "only transformers have it; choose one by --generator"
                                    : "only the U-Net has it; leave it out, or --generator unet"));
    return lw_cmd_train_run(cli, &c.train, &c, call);
}

const lw_command lw_cmd_train_drift = {
    .name = "train drift",
    .dry_run = true,
    .summary = "train a one-step drifting generator",
    .usage = "--data SPEC --encoder RUN --output-dir DIR --steps N [options]",
    .notes = "The drift loss is flat by construction (every temperature's field is scaled to unit "
             "size): it says "
             "nothing about progress. Watch raw_drift_*, S, grad_norm and the Frechet distance of "
             "--eval-every.\n"
             "A step generates groups x negatives-per-group pictures; --batch-size is not used.",
    .examples =
        "leeway train drift --data synth:16 --encoder runs/encoder --base-channels 16 "
        "--channel-mult 1,2,4 "
        "--noise-shape 2x2 --latent-dim 16 --norm-groups 8 --steps 700 --output-dir runs/drift",
    .options = {options, dit_options, drift_options, loss_options, queue_options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_drift_config),
    .run = run,
};
