/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove kge: training embeddings of a dataset's facts. */
#include "cli/prove/cmd_prove.h"
#include "cli/commands/cmd_train.h"
#include "jobs/prove/kge/kge_job.h"

typedef struct kge_cli {
    lw_prove_cli data;
    lw_kge_train_config c;
} kge_cli;

static const lw_option model_options[] = {
    {LW_OPT(kge_cli, c.model), .name = "model", .choices = LW_KGE_CHOICES, .fallback = "rotate",
     .group = "Model", .help = "how triples are scored"},
    {LW_OPT(kge_cli, c.dim), .name = "embedding-dim", .aliases = "hidden-dim", .min = 1,
     .max = 65536, .fallback = "200", .group = "Model",
     .help = "numbers of an entity; complex ones with rotate and complex"},
    {LW_OPT(kge_cli, c.gamma), .name = "gamma", .aliases = "margin", .min = 0, .max = 1000,
     .fallback = "12", .group = "Model", .help = "rotate, transe: score of distance 0"},
    {LW_OPT(kge_cli, c.norm), .name = "norm", .aliases = "scoring-fct-norm", .min = 1, .max = 2,
     .fallback = "1", .group = "Model", .help = "transe: L1 or L2"},
    {LW_OPT(kge_cli, c.range), .name = "embedding-range", .min = 0, .max = 1000, .fallback = "0",
     .group = "Model",
     .help = "half width of the initial values; 0: (gamma + 2) / dim, products 0.01"},
    {LW_OPT(kge_cli, c.inverse), .name = "inverse-relations", .aliases = "create-inverse-triples",
     .fallback = "false", .group = "Model",
     .help = "a relation of its own for questions after heads"},
    {LW_OPT(kge_cli, c.loss), .name = "loss", .choices = LW_KGE_LOSS_CHOICES, .fallback = "auto",
     .group = "Loss",
     .help = "self-adversarial negative sampling, the same with equal weights, or cross-entropy; "
             "auto: nssa for rotate and transe, else crossentropy"},
    {LW_OPT(kge_cli, c.negatives), .name = "negatives", .aliases = "num-negs", .min = 0,
     .max = 1 << 20, .fallback = "256", .unit = "entities", .group = "Loss",
     .help = "false answers, shared by a batch; 0: all entities"},
    {LW_OPT(kge_cli, c.filter_negatives), .name = "filter-negatives", .fallback = "true",
     .group = "Loss", .help = "leave known answers out of the false ones"},
    {LW_OPT(kge_cli, c.temperature), .name = "adversarial-temperature", .min = 0, .max = 1000,
     .fallback = "1", .group = "Loss", .help = "nssa: how much likely false answers weigh more"},
    {LW_OPT(kge_cli, c.regularization), .name = "regularization", .min = 0, .max = 1000,
     .fallback = "0", .group = "Loss", .help = "weight of N3, the cubes of a batch's rows"},
    {LW_OPT(kge_cli, c.regularization_relations), .name = "regularization-relations", .min = -1,
     .max = 1000, .fallback = "-1", .group = "Loss",
     .help = "that of the relations' rows, with products; -1: the same"},
    {.name = NULL}};

static const lw_option run_options[] = {
    {LW_OPT(kge_cli, c.train.output_dir), .name = "output-dir", .resume = LW_RESUME_FREE,
     .path = LW_PATH_RUN_DIR, .aliases = "workdir", .required = true, .unit = "dir", .group = "Run",
     .help = "run directory: config, logs, checkpoints"},
    {LW_OPT(kge_cli, c.epochs), .name = "epochs", .instead = "steps", .resume = LW_RESUME_GOAL,
     .min = 0, .max = 1e9, .fallback = "0", .group = "Run",
     .help = "instead of --steps; an epoch asks every fact for head and tail"},
    {LW_OPT(kge_cli, c.train.steps), .name = "steps", .resume = LW_RESUME_GOAL, .min = 0,
     .max = 1e12, .fallback = "0", .group = "Run", .help = "optimiser steps"},
    {LW_OPT(kge_cli, c.train.minutes), .name = "minutes", .instead = "steps",
     .resume = LW_RESUME_GOAL, .min = 0, .max = 1e6, .fallback = "0", .group = "Run",
     .help = "instead of --steps: as many as fit at a pace measured once, before the first; a "
             "machine that gets busier ends later"},
    LW_RESUME_OPTIONS(kge_cli, c.train),
    LW_CHECKPOINT_OPTIONS(kge_cli, c.train, "steps"),
    {LW_OPT(kge_cli, c.train.log_every), .name = "log-every", .resume = LW_RESUME_FREE, .min = 1,
     .max = 1e9, .fallback = "100", .unit = "steps", .group = "Run",
     .help = "interval of rows of the logs"},
    {LW_OPT(kge_cli, c.train.eval_every), .name = "eval-every", .resume = LW_RESUME_FREE, .min = 0,
     .max = 1e12, .fallback = "0", .unit = "steps", .group = "Run",
     .help = "interval of filtered ranks of valid queries among all entities; 0: none"},
    {LW_OPT(kge_cli, c.eval_queries), .name = "eval-queries", .resume = LW_RESUME_FREE, .min = 0,
     .max = 1e9, .fallback = "500", .unit = "queries", .group = "Run",
     .help = "of an evaluation, evenly spaced over the file; 0: all"},
    {LW_OPT(kge_cli, c.keep_best), .name = "keep-best", .resume = LW_RESUME_FREE,
     .choices = LW_KGE_BEST_CHOICES, .fallback = "none", .group = "Run",
     .help = "keep the checkpoint with the highest MRR as checkpoints/best, chosen by every second "
             "query of the evaluations and reported of the others"},
    {.name = NULL}};

static const lw_option optimiser_options[] = {
    {LW_OPT(kge_cli, c.train.batch_size), .name = "batch-size", .min = 1, .max = 65536,
     .fallback = "512", .unit = "queries", .group = "Optimiser", .help = "per step"},
    {LW_OPT(kge_cli, c.train.grad_accum_steps), .name = "grad-accum-steps", .min = 1, .max = 4096,
     .fallback = "1", .group = "Optimiser",
     .help = "parts of a step whose gradients are summed before the update"},
    LW_LEAF_OPTION(kge_cli, c.train, "queries"),
    {LW_OPT(kge_cli, c.train.learning_rate), .name = "learning-rate", .resume = LW_RESUME_SCHEDULE,
     .aliases = "lr", .min = 0, .max = 10, .fallback = "1e-3", .group = "Optimiser",
     .help = "Adam's peak learning rate"},
    LW_SCHEDULE_OPTIONS(kge_cli, c.train, "cosine", "0.01"),
    {LW_OPT(kge_cli, c.train.warmup_steps), .name = "warmup-steps", .resume = LW_RESUME_SCHEDULE,
     .min = 0, .max = 1e9, .fallback = "0", .group = "Optimiser", .help = "linear warm-up"},
    LW_ADAM_OPTIONS(kge_cli, c.train, "", "0.999", "1e-8", "0", "decoupled decay"),
    {LW_OPT(kge_cli, c.train.grad_clip), .name = "grad-clip", .min = 0, .max = 1e9, .fallback = "0",
     .group = "Optimiser", .help = "global norm gradients are clipped to; 0: no clipping"},
    {LW_OPT(kge_cli, c.train.ema_decay), .name = "ema-decay", .min = 0, .max = 0.9999999,
     .fallback = "0", .group = "Optimiser",
     .help = "average of the weights: min(this, (1+s)/(10+s)) at step s"},
    {.name = NULL}};

static int call(void *config, const lw_observer *obs, lw_train_result *out)
{
    return lw_train_kge(*(const lw_kge_train_config *)config, obs, out);
}

static int open_and_run(const lw_cli *cli, const kge_cli *from, lw_problems *problems)
{
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_positives_clear) lw_positives known = {0};
    kge_cli k = *from;
    LW_TRY(lw_prove_open(&k.data, problems, &kb));
    if (k.c.train.eval_every > 0)
        LW_TRY(lw_positives_open(kb, &known));
    lw_prove_warn(problems);
    k.c.kb = kb;
    k.c.known = &known;
    return lw_cmd_train_run(cli, &k.c.train, &k.c, call);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_problems problems = {0};
    int rc = open_and_run(cli, config, &problems);
    lw_problems_clear(&problems);
    return rc;
}

const lw_command lw_cmd_prove_kge = {
    .name = "prove kge",
    .dry_run = true,
    .summary = "train an embedding of the facts: TransE, RotatE, ComplEx or DistMult",
    .usage = "DATASET --output-dir DIR --epochs N [options]",
    .notes = "The run directory is what `prove rank` ranks with and what `prove eval --kge` fuses "
             "with proofs.",
    .examples =
        "leeway prove kge data/family --model rotate --epochs 100 --output-dir runs/rotate\n"
        "leeway prove kge data/family --model complex --negatives 0 --inverse-relations "
        "--regularization 0.01 --minutes 3 --output-dir runs/complex",
    .options = {lw_prove_data_options, model_options, run_options, optimiser_options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(kge_cli),
    .run = run,
};
