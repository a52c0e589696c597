/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run of a policy needs: data, network, plans. */
#include "jobs/prove/ppo/prove_ppo_run.h"

#include "base/base.h"
#include "session/session_device.h"

void lw_ppo_defaults(lw_ppo_config *c)
{
    *c = (lw_ppo_config){.env = lw_env_defaults(),
                         .net = lw_policy_default(0, 3),
                         .constant_scale = 1.0,
                         .n_envs = 128,
                         .n_steps = 128,
                         .n_epochs = 5,
                         .gamma = 0.99,
                         .gae_lambda = 0.95,
                         .clip_range = 0.2,
                         .clip_range_vf = 0.2,
                         .ent_coef_init = 0.15,
                         .ent_coef_final = 0.02,
                         .ent_coef_end = 0.8,
                         .vf_coef = 0.5,
                         .target_kl = 0.07,
                         .lr_warmup = 0.1,
                         .reward_type = LW_PPO_REWARD_BALANCED,
                         .train_neg_ratio = 1,
                         .least_model_memory = 128,
                         .corruption_modes = {"head", "tail"},
                         .n_corruption_modes = 2,
                         .n_eval_queries = 200,
                         .eval_neg_samples = 100};
    c->train.batch_size = 512;
    c->train.grad_accum_steps = 1;
    c->train.learning_rate = 1e-4;
    c->train.scheduler = LW_SCHEDULE_COSINE;
    c->train.lr_floor = 0.01;
    c->train.adam_beta1 = 0.9;
    c->train.adam_beta2 = 0.999;
    c->train.adam_eps = 1e-5;
    c->train.grad_clip = 0.5;
    c->train.log_every = 1;
}

static int find_modes(lw_ppo_run *r)
{
    for (int32_t i = 0; i < r->c->n_corruption_modes; i++) {
        const char *word = r->c->corruption_modes[i];
        int m = 0;
        while (m < LW_CORRUPT_MODES && !lw_str_eq(word, lw_corrupt_mode_name((lw_corrupt_mode)m)))
            m++;
        if (m == LW_CORRUPT_MODES)
            return lw_fail(LW_EUSAGE, "--corruption-modes: '%s' is not head, tail or both", word);
        r->mode[m] = true;
    }
    return r->c->n_corruption_modes > 0
               ? 0
               : lw_fail(LW_EUSAGE, "--corruption-modes: at least one of head, tail, both");
}

static int check(const lw_ppo_config *c)
{
    if (c->n_envs < 1 || c->n_steps < 1 || c->n_epochs < 1 || c->train.batch_size < 1)
        return lw_fail(LW_EUSAGE,
                       "--n-envs, --n-steps, --n-epochs and --batch-size must be at least 1");
    if ((int64_t)c->n_envs * c->n_steps > 1 << 24)
        return lw_fail(LW_EUSAGE, "--n-envs %d times --n-steps %d: more than 2^24 choices at once",
                       c->n_envs, c->n_steps);
    if ((int64_t)c->n_envs * c->n_steps * (c->env.padding_states + 1) > INT32_MAX ||
        (int64_t)c->train.batch_size * c->env.padding_states > 1 << 28)
        return lw_fail(LW_EUSAGE,
                       "--padding-states %d: too many successors for --n-envs %d, --n-steps %d and "
                       "--batch-size %d; lower one of them",
                       c->env.padding_states, c->n_envs, c->n_steps, c->train.batch_size);
    if (c->env.max_total_vars > c->net.variables)
        return lw_fail(LW_EUSAGE, "--max-total-vars %d: the network has %d variables",
                       c->env.max_total_vars, c->net.variables);
    if (c->net.constants_as == LW_POLICY_CONSTANTS_FROZEN && c->train.weight_decay > 0.0)
        return lw_fail(LW_EUSAGE, "--constants frozen: --weight-decay would change them; leave it");
    if (c->reward_type < 0 || c->reward_type >= LW_PPO_REWARDS)
        return lw_fail(LW_EUSAGE, "--reward-type %d: 0 to %d", c->reward_type, LW_PPO_REWARDS - 1);
    return 0;
}

/* ---- queries --------------------------------------------------------------------------------- */

static bool depth_wanted(const lw_ppo_config *c, int32_t depth)
{
    bool yes = c->n_train_depth == 0;
    for (int32_t i = 0; i < c->n_train_depth; i++)
        yes |= c->train_depth[i] == depth;
    return yes;
}

static int keep_depths(const lw_ppo_config *c, lw_queries *q)
{
    int32_t kept = 0;
    if (c->n_train_depth && q->annotated == 0)
        return lw_fail(LW_EUSAGE, "--train-depth: %s has no train_depths.txt", c->train.data);
    for (int32_t i = 0; i < q->n; i++)
        if (depth_wanted(c, q->published[i])) {
            q->atom[kept] = q->atom[i];
            q->published[kept++] = q->published[i];
        }
    if (q->n == 0)
        return lw_fail(LW_EFORMAT,
                       "%s: no fact of train.txt can be a training query: the "
                       "predicate of none heads a rule",
                       c->train.data);
    if (kept == 0)
        return lw_fail(LW_EUSAGE,
                       "%s: no fact of train.txt can be a training query: of %d whose predicate "
                       "heads a rule --train-depth leaves none",
                       c->train.data, q->n);
    q->n = kept;
    return 0;
}

static int open_data(lw_ppo_run *r)
{
    const lw_ppo_config *c = r->c;
    const lw_kb_options k = {c->train.data, c->facts_file, c->rules_file, c->domains_file};
    const lw_query_options q = {.split = "train",
                                .filter_by_rules = true,
                                .skip_unknown = c->skip_unknown},
                           v = {
                               .split = "valid", .skip_unknown = c->skip_unknown, .optional = true};
    LW_TRY(lw_kb_open(&k, &r->problems, &r->kb));
    LW_TRY(lw_queries_open(r->kb, &q, &r->problems, &r->train));
    LW_TRY(keep_depths(c, &r->train));
    LW_TRY(lw_queries_open(r->kb, &v, &r->problems, &r->valid));
    LW_TRY(lw_positives_open(r->kb, &r->known));
    const lw_corrupt_options o = {
        .n = 1, .filtered = true, .domains = c->domains, .seed = (uint64_t)c->train.seed};
    return lw_corruptor_new(r->kb, &o, r->known.set, LW_QUERIES_SPLITS, &r->corruptor);
}

/* What follows from facts and rules, where options ask for it. */
static int open_least_model(lw_ppo_run *r)
{
    const lw_ppo_config *c = r->c;
    const lw_least_options o = {.depths = c->curriculum > 0.0,
                                .memory = (size_t)c->least_model_memory << 20,
                                .obs = r->obs};
    if (c->curriculum <= 0.0 && c->hard_negatives <= 0.0)
        return 0;
    LW_TRY(lw_least_model_new(r->kb, &o, &r->least));
    if (!r->least)
        return lw_fail(LW_EUSAGE,
                       "%s: what follows from facts and rules, which --curriculum and "
                       "--hard-negatives need, does not fit in --least-model-memory %lld MiB",
                       c->train.data, (long long)c->least_model_memory);
    return c->curriculum > 0.0 ? lw_ppo_source_sort(r->least, &r->train, &r->shortest) : 0;
}

/* ---- network --------------------------------------------------------------------------------- */

/* Multiplies rows [from, to) of a parameter, in weights and average. */
static void scale_rows(lw_store *s, const char *name, int64_t from, int64_t to, float by)
{
    const lw_slab slabs[] = {LW_SLAB_PARAM, LW_SLAB_EMA};
    int32_t k = lw_store_find(s, name);
    for (size_t i = 0; k >= 0 && i < LW_COUNT(slabs); i++) {
        const lw_store_entry *e = lw_store_at(s, k);
        float *w = lw_store_edit(s, k, slabs[i]);
        int64_t width = e->count / e->type.dim[0];
        for (int64_t j = from * width; w && j < to * width; j++)
            w[j] *= by;
        lw_store_touch(s, slabs[i]);
    }
}

/*
 * Values start at 0. As declared they start with a spread of several rewards, because the body's
 * rows are long: the first iterations would unlearn that, and clipping by the common norm would
 * leave the policy nearly still meanwhile.
 */
static void start_weights(const lw_ppo_config *c, lw_store *s)
{
    scale_rows(s, "value_head.output_layer.2.weight", 0, 1, 0.0f);
    scale_rows(s, "constant_embedding.weight", 1, 1 + (int64_t)lw_policy_constant_rows(&c->net),
               (float)c->constant_scale);
}

static int open_network(lw_ppo_run *r)
{
    lw_ppo_config *c = r->c;
    c->net.constants = r->kb->n_constants;
    c->net.predicates = r->kb->n_predicates + 3;
    c->net.max_atoms = c->env.padding_atoms;
    c->net.names = lw_kb_names(r->kb);
    LW_TRY(lw_policy_check(&c->net));
    LW_TRY(lw_store_new(false, &r->store));
    LW_TRY(lw_policy_declare(&c->net, r->store));
    lw_policy_init(&c->net, (uint64_t)c->train.seed, r->store);
    start_weights(c, r->store);
    r->model = lw_policy_to_json(&c->net);
    r->state = json_object();
    return r->model && r->state ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

int lw_ppo_run_open(lw_ppo_run *r)
{
    lw_ppo_config *c = r->c;
    LW_TRY(check(c));
    LW_TRY(find_modes(r));
    c->env.numbering = c->parity ? LW_NUMBER_PARITY : LW_NUMBER_CANONICAL;
    LW_TRY(open_data(r));
    LW_TRY(open_least_model(r));
    LW_TRY(lw_session_device_with(c->train.threads, c->train.conv, &r->dev));
    LW_TRY(open_network(r));
    LW_TRY(lw_ppo_update_open(c, r->store, r->dev, &r->update));
    lw_ppo_source s = {.kb = r->kb,
                       .query = r->train.atom,
                       .n = r->train.n,
                       .open = r->train.n,
                       .shortest = r->shortest,
                       .corruptor = r->corruptor,
                       .neg_ratio = c->train_neg_ratio,
                       .hard = c->hard_negatives,
                       .least = r->least};
    for (int i = 0; i < LW_CORRUPT_MODES; i++) {
        s.heads |= r->mode[i] && i != LW_CORRUPT_TAIL;
        s.tails |= r->mode[i] && i != LW_CORRUPT_HEAD;
    }
    LW_TRY(lw_ppo_rollout_open(c, &s, r->dev, r->store, &r->rollout));
    r->rollout.obs = r->obs;
    return 0;
}

void lw_ppo_run_close(lw_ppo_run *r)
{
    if (r->rollout.c)
        lw_ppo_rollout_close(&r->rollout);
    lw_ppo_update_free(&r->update);
    if (r->kept)
        lw_memory_free(r->dev->memory, &r->kept, r->kept_bytes);
    lw_store_free(&r->store);
    lw_corruptor_free(&r->corruptor);
    lw_least_model_free(&r->least);
    lw_queries_clear(&r->train);
    lw_queries_clear(&r->valid);
    lw_positives_clear(&r->known);
    lw_kb_free(&r->kb);
    lw_problems_clear(&r->problems);
    lw_backend_close(&r->dev);
    json_decref(r->model);
    json_decref(r->state);
}
