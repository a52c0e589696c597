/* SPDX-License-Identifier: Apache-2.0 */
/* leeway prove train: a policy over proof states, by proximal policy optimisation. */
#include "cli/prove/cmd_prove.h"
#include "cli/commands/cmd_train.h"
#include "jobs/prove/ppo/ppo_job.h"

/* One option, a line or two. */
/* clang-format off */
#define OPT(field) LW_OPT(lw_ppo_config, field)

static const lw_option data_options[] = {
    {OPT(train.data), .name = "dataset", .path = LW_PATH_IN, .positional = true, .required = true,
     .help = "directory with train.txt, valid.txt, test.txt, rules.txt and so on"},
    {OPT(rules_file), .name = "rules", .path = LW_PATH_IN, .unit = "file", .group = "Data",
     .help = "rules; a name without slash is looked up in the dataset first (rules.txt)"},
    {OPT(facts_file), .name = "facts-file", .path = LW_PATH_IN, .unit = "file", .group = "Data",
     .help = "facts (train.txt)"},
    {OPT(domains_file), .name = "domains-file", .path = LW_PATH_IN, .unit = "file", .group = "Data",
     .help = "domains of constants (domain2constants.txt)"},
    {OPT(skip_unknown), .name = "skip-unknown", .fallback = "false", .group = "Data",
     .help = "leave out, and count, queries with names that no fact, rule or domain has"},
    {LW_OPT_LIST(lw_ppo_config, train_depth, n_train_depth), .name = "train-depth", .min = -1,
     .max = 1000, .unit = "depths", .group = "Data",
     .help = "only training queries of these depths in train_depths.txt; without it all whose "
             "predicate heads a rule"},
    {OPT(train_neg_ratio), .name = "train-neg-ratio", .fallback = "1", .max = 1000, .group = "Data",
     .help = "corrupted queries for each true one"},
    {OPT(hard_negatives), .name = "hard-negatives", .max = 1, .fallback = "0", .group = "Data",
     .help = "share of the corrupted queries that follow from facts and rules, as far as there are any: "
             "what a policy must tell from true ones by more than finding a proof"},
    {OPT(curriculum), .name = "curriculum", .resume = LW_RESUME_SCHEDULE, .max = 1, .fallback = "0", .group = "Data",
     .help = "share of the run in which training queries are opened, those with the shortest proofs "
             "first; 0: all from the start"},
    {OPT(least_model_memory), .name = "least-model-memory", .min = 1, .max = 1 << 20, .fallback = "128",
     .unit = "MiB", .group = "Data", .help = "for what follows from facts and rules, which these two need"},
    {LW_OPT_LIST(lw_ppo_config, corruption_modes, n_corruption_modes), .name = "corruption-modes",
     .aliases = "corruption-scheme", .fallback = "head,tail", .unit = "modes", .group = "Data",
     .help = "head, tail, both: arguments corrupted in training, in turns, and lists that "
             "validation ranks"},
    {OPT(domains), .name = "domains", .choices = "auto|yes|no", .fallback = "auto", .group = "Data",
     .help = "corrupt within the argument's domain; auto: when the dataset has domains"},
    {.name = NULL}};

static const lw_option run_options[] = {
    {OPT(train.output_dir), .name = "output-dir", .resume = LW_RESUME_FREE, .path = LW_PATH_RUN_DIR, .aliases = "workdir", .required = true,
     .unit = "dir", .group = "Run", .help = "run directory: config, logs, checkpoints, best/"},
    {OPT(train.steps), .name = "steps", .resume = LW_RESUME_GOAL, .max = 1e12, .fallback = "0", .unit = "iterations",
     .group = "Run", .help = "of n-envs times n-steps choices each"},
    {OPT(timesteps), .name = "timesteps-train", .instead = "steps", .resume = LW_RESUME_GOAL, .aliases = "timesteps|total-timesteps", .max = 1e15,
     .fallback = "0", .unit = "choices", .group = "Run",
     .help = "instead of --steps: choices in all, rounded up to whole iterations"},
    {OPT(train.minutes), .name = "minutes", .instead = "steps", .resume = LW_RESUME_GOAL, .max = 1e6, .fallback = "0", .group = "Run",
     .help = "instead of --steps: as many as fit at the pace of the first iterations; later ones are "
             "often shorter, so this is an upper bound (kept within 5 %)"},
    LW_RESUME_OPTIONS(lw_ppo_config, train),
    LW_CHECKPOINT_OPTIONS(lw_ppo_config, train, "iterations"),
    {OPT(train.log_every), .name = "log-every", .resume = LW_RESUME_FREE, .min = 1, .max = 1e9, .fallback = "1",
     .unit = "iterations", .group = "Run", .help = "interval of metrics.jsonl and TensorBoard rows"},
    {OPT(train.eval_every), .name = "eval-every", .resume = LW_RESUME_FREE, .aliases = "eval-freq", .max = 1e12,
     .fallback = "4", .unit = "iterations", .group = "Run",
     .help = "interval of validation; the best weights are kept in best/; 0: none"},
    {OPT(n_eval_queries), .name = "n-eval-queries", .resume = LW_RESUME_FREE, .max = 1e9, .fallback = "200",
     .unit = "queries", .group = "Run", .help = "of valid.txt, evenly spaced; 0: all"},
    {OPT(eval_neg_samples), .name = "eval-neg-samples", .resume = LW_RESUME_FREE, .aliases = "n-corruptions", .max = 1e9,
     .fallback = "100", .unit = "corruptions", .group = "Run",
     .help = "of each validation query in each mode; 0: all"},
    {.name = NULL}};

static const lw_option ppo_options[] = {
    {OPT(n_envs), .name = "n-envs", .aliases = "batch-size-env", .min = 1, .max = 1 << 20,
     .fallback = "128", .unit = "proofs", .group = "PPO", .help = "walked together"},
    {OPT(n_steps), .name = "n-steps", .min = 1, .max = 1 << 20, .fallback = "128",
     .unit = "choices", .group = "PPO", .help = "of each before an update"},
    {OPT(n_epochs), .name = "n-epochs", .min = 1, .max = 1000, .fallback = "5", .group = "PPO",
     .help = "passes over an iteration's choices"},
    {OPT(train.batch_size), .name = "batch-size", .min = 1, .max = 1 << 20, .fallback = "512",
     .unit = "choices", .group = "PPO", .help = "of one update, as far as an iteration has them"},
    {OPT(gamma), .name = "gamma", .max = 1, .fallback = "0.99", .group = "PPO",
     .help = "discount of a step"},
    {OPT(gae_lambda), .name = "gae-lambda", .max = 1, .fallback = "0.95", .group = "PPO",
     .help = "generalised advantage estimation: 0 one step, 1 whole proofs"},
    {OPT(clip_range), .name = "clip-range", .min = 0.001, .max = 10, .fallback = "0.2",
     .group = "PPO", .help = "how far a probability's ratio is rewarded for moving"},
    {OPT(clip_range_vf), .name = "clip-range-vf", .max = 1e6, .fallback = "0.2", .group = "PPO",
     .help = "how far a value may move; 0: any"},
    {OPT(ent_coef_init), .name = "ent-coef-init", .resume = LW_RESUME_SCHEDULE, .aliases = "ent-coef-init-value", .max = 100,
     .fallback = "0.15", .group = "PPO", .help = "weight of the entropy at the start"},
    {OPT(ent_coef_final), .name = "ent-coef-final", .resume = LW_RESUME_SCHEDULE, .aliases = "ent-coef-final-value", .max = 100,
     .fallback = "0.02", .group = "PPO", .help = "and when its cosine ends"},
    {OPT(ent_coef_end), .name = "ent-coef-end", .resume = LW_RESUME_SCHEDULE, .max = 1, .fallback = "0.8", .group = "PPO",
     .help = "share of the run at which it ends"},
    {OPT(vf_coef), .name = "vf-coef", .max = 1000, .fallback = "0.5", .group = "PPO",
     .help = "weight of the value's squared error"},
    {OPT(train.grad_clip), .name = "max-grad-norm", .aliases = "grad-clip", .max = 1e9,
     .fallback = "0.5", .group = "PPO", .help = "global norm gradients are clipped to; 0: none"},
    {OPT(target_kl), .name = "target-kl", .max = 1000, .fallback = "0.07", .group = "PPO",
     .help = "a minibatch whose divergence is 1.5 times this ends the iteration; 0: none does"},
    {OPT(normalize_advantage), .name = "normalize-advantage", .fallback = "false", .group = "PPO",
     .help = "advantages of each minibatch with mean 0 and deviation 1"},
    {OPT(reward_type), .name = "reward-type", .max = 5, .fallback = "4", .group = "PPO",
     .help = "for true proved, not, corrupted proved, not: 0: 1 0 0 0; 1: 1 0 -1 0; 2: 1 0 0 1; "
             "3: 1 -.5 -1.5 1; 4: 1 -1 -1 1/ratio; 5: as 4, .3 more for giving up on a corrupted "
             "one"},
    {OPT(train.learning_rate), .name = "learning-rate", .resume = LW_RESUME_SCHEDULE, .aliases = "lr", .max = 10,
     .fallback = "1e-4", .group = "Optimiser", .help = "Adam's peak learning rate"},
    LW_SCHEDULE_OPTIONS(lw_ppo_config, train, "cosine", "0.01"),
    {OPT(lr_warmup), .name = "lr-warmup", .resume = LW_RESUME_SCHEDULE, .max = 1, .fallback = "0.1", .group = "Optimiser",
     .help = "share of the run with linear warm-up"},
    LW_ADAM_OPTIONS(lw_ppo_config, train, "", "0.999", "1e-5", "0", "decoupled decay"),
    {OPT(train.precision), .name = "precision", .choices = LW_PRECISION_TRAIN_CHOICES,
     .fallback = "f32", .group = "Optimiser",
     .help = "operands of products; sums, weights and everything else stay f32"},
    {.name = NULL}};

static const lw_option net_options[] = {
    {OPT(net.embed), .name = "atom-embedding-size", .min = 1, .max = 8192, .fallback = "250",
     .group = "Network", .help = "floats of a constant's, predicate's, state's embedding"},
    {OPT(net.hidden), .name = "hidden-dim", .min = 1, .max = 8192, .fallback = "256",
     .group = "Network", .help = "width of the body"},
    {OPT(net.blocks), .name = "num-layers", .max = 256, .fallback = "8", .group = "Network",
     .help = "residual blocks"},
    {OPT(net.dropout), .name = "dropout-prob", .max = 0.95, .fallback = "0", .group = "Network",
     .help = "behind every LayerNorm; an iteration keeps its masks"},
    {OPT(net.l2_norm), .name = "use-l2-norm", .fallback = "true", .group = "Network",
     .help = "bring states' heads to length 1 (when they are, logits are cosines)"},
    {OPT(net.sqrt_scale), .name = "sqrt-scale", .fallback = "false", .group = "Network",
     .help = "logits are divided by the root of the embedding size"},
    {OPT(net.temperature), .name = "temperature", .max = 1e6, .fallback = "0.1",
     .group = "Network", .help = "logits are divided by it; 0: not"},
    {OPT(net.atom), .name = "atom-embedder",
     .choices = "transe|sum|complex|rotate|concat|attention|transformer|rnn",
     .fallback = "transe", .group = "Network", .help = "how predicate and arguments become one"},
    {OPT(net.state), .name = "state-embedder",
     .choices = "mean|atom_mean|sum|concat|transformer|rnn",
     .fallback = "mean", .group = "Network", .help = "how the goals of a state become one"},
    {OPT(net.constants_as), .name = "constants", .choices = LW_POLICY_CONSTANTS_CHOICES, .fallback = "own",
     .group = "Network",
     .help = "rows of the table: each constant its own; the same, never trained; the query's two "
             "their own and all others one; one for the query's first, one for its second, one for all "
             "others; no constants at all"},
    {OPT(constant_scale), .name = "constant-scale", .max = 100, .fallback = "1",
     .group = "Network",
     .help = "of the first embeddings of constants; below 1 predicates count for more, and what is "
             "learned carries over to other constants sooner"},
    {OPT(net.variables), .name = "variables", .min = 1, .max = 1 << 20, .fallback = "1000",
     .group = "Network", .help = "rows of the table for variables"},
    {.name = NULL}};

static const lw_option env_options[] = {LW_PROVE_ENV_OPTIONS(lw_ppo_config), {.name = NULL}};
/* clang-format on */

static int call(void *config, const lw_observer *obs, lw_train_result *out)
{
    return lw_train_ppo(*(const lw_ppo_config *)config, obs, out);
}

static int run(const lw_cli *cli, const void *config)
{
    lw_ppo_config c = *(const lw_ppo_config *)config;
    c.train.grad_accum_steps = 1;
    return lw_cmd_train_run(cli, &c.train, &c, call);
}

const lw_command lw_cmd_prove_train = {
    .name = "prove train",
    .dry_run = true,
    .summary = "train a policy over proof states (proximal policy optimisation)",
    .usage = "DATASET --output-dir DIR --timesteps-train N [options]",
    .notes = "A step of the logs is an iteration: n-envs proofs walked for n-steps choices, then "
             "updates. Queries are the facts of train.txt whose predicate heads a rule, and "
             "corruptions of them; a fact never proves itself. The run directory, and best/ in "
             "it, are policies for `leeway prove eval --policy`.",
    .examples = "leeway prove train data/countries_s3 --corruption-modes tail --timesteps-train "
                "500000 --output-dir runs/countries\n"
                "leeway prove train data/family --minutes 60 --save-every 10 --output-dir "
                "runs/family",
    .options = {data_options, run_options, ppo_options, net_options, env_options},
    .cpu_only = LW_CLI_TRAINS,
    .config_size = sizeof(lw_ppo_config),
    .run = run,
};
