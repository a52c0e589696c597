/* SPDX-License-Identifier: Apache-2.0 */
/* Proximal policy optimisation as a job of the training loop. */
#include "jobs/prove/ppo/ppo_job.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "jobs/prove/ppo/prove_ppo_run.h"
#include "train/train_schedule.h"

static const double pi = 3.14159265358979323846;

/* What depends on how far iteration `step` of `goal` is: the queries drawn from, warm-up and cosine for Adam, a cosine for the entropy's weight. */
static void set_rates(lw_ppo_run *r, int64_t step, int64_t goal)
{
    const lw_ppo_config *c = r->c;
    lw_train_config t = c->train;
    lw_ppo_source_open(&r->rollout.source, c->curriculum, step, goal);
    double end = LW_MAX(c->ent_coef_end * (double)goal, 1.0), at = LW_MIN((double)step / end, 1.0);
    if (t.warmup_steps == 0)
        t.warmup_steps = (int64_t)ceil(c->lr_warmup * (double)goal);
    r->rates =
        (lw_ppo_rates){.lr = lw_schedule_lr(&t, goal, step),
                       .entropy_coef = c->ent_coef_final + (c->ent_coef_init - c->ent_coef_final) *
                                                               0.5 * (1.0 + cos(pi * at)),
                       .stop_early = true,
                       .updates = &r->updates};
}

/* 1 - Var(target - value) / Var(target); 0 when the targets do not vary. */
static double explained_variance(const lw_ppo_rollout *o)
{
    int64_t n = (int64_t)o->c->n_envs * o->c->n_steps;
    double sum[2] = {0}, square[2] = {0};
    for (int64_t i = 0; i < n; i++) {
        const double x[2] = {(double)o->choice[i].target,
                             (double)o->choice[i].target - (double)o->choice[i].value};
        for (int k = 0; k < 2; k++) {
            sum[k] += x[k];
            square[k] += x[k] * x[k];
        }
    }
    double all = square[0] - sum[0] * sum[0] / (double)n,
           left = square[1] - sum[1] * sum[1] / (double)n;
    return all > 0.0 ? 1.0 - left / all : 0.0;
}

static int keep_state(lw_ppo_run *r)
{
    return json_object_set_new(r->state, "updates", json_integer(r->updates)) ||
                   json_object_set_new(r->state, "untrained_mrr", json_real(r->untrained)) ||
                   json_object_set_new(r->state, "best_mrr", json_real(r->best))
               ? lw_fail(LW_ENOMEM, "out of memory for a checkpoint")
               : 0;
}

/* ---- weights put back ------------------------------------------------------------------------ */

static const lw_slab trained[] = {LW_SLAB_PARAM, LW_SLAB_EMA, LW_SLAB_M, LW_SLAB_V};

/* The slabs that updates change, kept until the iteration is whole. */
static int keep_slabs(lw_ppo_run *r)
{
    int64_t n;
    lw_store_slab(r->store, LW_SLAB_PARAM, &n);
    r->kept_bytes = (size_t)n * LW_COUNT(trained) * sizeof(float);
    if (!r->kept)
        r->kept = lw_memory_alloc(r->dev->memory, r->kept_bytes);
    if (!r->kept)
        return LW_ENOMEM;
    for (size_t i = 0; i < LW_COUNT(trained); i++)
        r->dev->copy(r->dev->self, r->kept + n * (int64_t)i,
                     lw_store_slab(r->store, trained[i], NULL), n);
    r->kept_updates = r->updates;
    return 0;
}

static void restore_slabs(lw_ppo_run *r)
{
    int64_t n;
    lw_store_slab(r->store, LW_SLAB_PARAM, &n);
    for (size_t i = 0; i < LW_COUNT(trained); i++) {
        r->dev->copy(r->dev->self, lw_store_slab(r->store, trained[i], NULL),
                     r->kept + n * (int64_t)i, n);
        lw_store_touch(r->store, trained[i]);
    }
    r->updates = r->kept_updates;
}

/* One iteration; when it is cut off, weights and moments are what they were before it. */
static int iterate(lw_ppo_run *r, int64_t step)
{
    LW_TRY(keep_slabs(r));
    int rc = lw_ppo_rollout_run(&r->rollout, step);
    if (rc == 0)
        rc = lw_ppo_update_run(r->update, &r->rollout, step, &r->rates, &r->report);
    if (rc == LW_ESTOPPED)
        restore_slabs(r);
    return rc;
}

static int advance(void *self, int64_t step, int64_t goal, lw_train_step *out)
{
    lw_ppo_run *r = self;
    set_rates(r, step, goal);
    if (step == 0 && r->c->train.eval_every > 0 && r->valid.n > 0 && r->untrained < 0.0)
        LW_TRY(lw_ppo_evaluate_untrained(r));
    LW_TRY(iterate(r, step));
    r->explained = explained_variance(&r->rollout);
    *out = (lw_train_step){r->report.loss, r->report.grad_norm, r->rates.lr};
    return keep_state(r);
}

/* ---- --minutes ------------------------------------------------------------------------------- */

/*
 * Whole iterations with all their epochs from the first weights, which are put back: the first one
 * warms up, two more are timed as long as that takes little of the budget. The validation before
 * training is part of the run, and says how long one takes.
 */
static int measure(void *self, double budget, lw_train_pace *out)
{
    enum { MOST = 3 };
    lw_ppo_run *r = self;
    double began = lw_now(), at = began;
    if (r->c->train.eval_every > 0 && r->valid.n > 0) {
        LW_TRY(lw_ppo_evaluate_untrained(r));
        out->evaluate = lw_now() - began;
    }
    for (int i = 0; i < MOST && (i == 0 || lw_now() - began + out->step < 0.06 * budget); i++) {
        set_rates(r, 0, 0);
        r->rates.lr = r->c->train.learning_rate * 0.1;
        r->rates.stop_early = false;
        at = lw_now();
        LW_TRY(iterate(r, i));
        out->step = lw_now() - at;
        restore_slabs(r);
    }
    return 0;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static double share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : 0.0;
}

static int report(void *self, json_t *row)
{
    const lw_ppo_run *r = self;
    const lw_ppo_report *u = &r->report;
    const lw_ppo_counts *c = &r->rollout.counts;
    int64_t proofs = c->episodes[0] + c->episodes[1];
    json_t *more = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:i, s:i, s:I, s:I, "
        "s:i}",
        "policy_loss", u->policy_loss, "value_loss", u->value_loss, "entropy", u->entropy,
        "approx_kl", u->divergence, "clip_fraction", u->clipped, "explained_variance", r->explained,
        "entropy_coef", r->rates.entropy_coef, "reward", proofs ? c->reward / (double)proofs : 0.0,
        "proved_positive", share(c->proved[1], c->episodes[1]), "proved_negative",
        share(c->proved[0], c->episodes[0]), "proof_length", share(c->length, proofs), "proofs",
        (json_int_t)proofs, "states", (json_int_t)r->rollout.n_states, "epochs", (int)u->epochs,
        "updates", (int)u->updates, "parts", (json_int_t)u->parts, "choices",
        (json_int_t)((int64_t)r->c->n_envs * r->c->n_steps), "queries",
        (int)r->rollout.source.open);
    int rc = more ? json_object_update(row, more) : -1;
    json_decref(more);
    return rc == 0 ? 0 : lw_fail(LW_ENOMEM, "out of memory for a log row");
}

static const lw_train_curve curves[] = {
    {"valid_mrr", "mean reciprocal rank, validation", true, true, "valid_mrr_untrained"},
    {"proved_positive", "share of true queries proved, roll-outs", true, false, NULL},
    {"proved_negative", "share of corrupted queries proved, roll-outs", true, false, NULL},
    {"reward", "mean reward of a proof", false, false, NULL},
    {"proof_length", "mean choices of a proof", true, false, NULL},
    {"entropy", "mean entropy of a choice, nats", true, false, NULL},
    {"approx_kl", "divergence from the roll-outs' policy, last epoch, nats", true, false, NULL},
    {"clip_fraction", "share of ratios that are clipped", true, false, NULL},
    {"explained_variance", "share of the returns' variance that values explain", false, false,
     NULL},
    {"value_loss", "value loss", true, false, NULL},
    {.column = NULL}};
static const char loss_note[] =
    "a step is an iteration: roll-outs, then updates. The loss says little; watch valid_mrr beside "
    "valid_mrr_untrained, and the share of true queries proved";

/* ---- the job --------------------------------------------------------------------------------- */

static int restore(void *self, const json_t *state)
{
    lw_ppo_run *r = self;
    const json_t *updates = json_object_get(state, "updates"),
                 *best = json_object_get(state, "best_mrr"),
                 *untrained = json_object_get(state, "untrained_mrr");
    if (!json_is_integer(updates) || !json_is_number(best) || !json_is_number(untrained))
        return lw_fail(LW_EFORMAT, "the checkpoint's state.json lacks \"updates\", \"best_mrr\" "
                                   "or \"untrained_mrr\"");
    r->untrained = json_number_value(untrained);
    r->updates = json_integer_value(updates);
    r->best = json_number_value(best);
    return keep_state(r);
}

/* --dry-run: how much an iteration computes depends on the proofs, so the first roll-out
 * is made. */
static int predict(void *self, lw_train_result *out)
{
    lw_ppo_run *r = self;
    double flops;
    LW_TRY(lw_ppo_rollout_run(&r->rollout, 0));
    LW_TRY(lw_ppo_update_flops(r->update, &r->rollout, &flops));
    flops += lw_state_rows_row_flops(r->rollout.rows) * r->rollout.n_states;
    if (out->flops_per_step > 0.0)
        out->predicted_step_seconds *= flops / out->flops_per_step;
    out->flops_per_step = flops;
    out->bytes_frame = lw_ppo_update_bytes(r->update) + lw_state_rows_bytes(r->rollout.rows);
    return 0;
}

static int set_up(void *self, lw_train_job *job)
{
    lw_ppo_run *r = self;
    int64_t choices = (int64_t)r->c->n_envs * r->c->n_steps;
    LW_TRY(lw_ppo_run_open(r));
    job->dev = r->dev;
    job->store = r->store;
    job->plan = lw_ppo_update_plan(r->update);
    job->leaves = (lw_leaves){choices, choices, 1};
    job->names = r->c->net.names;
    lw_train_depends(job, lw_kb_content(r->kb, true));
    job->model = r->model;
    job->extra = r->state;
    job->evaluate = r->valid.n > 0 ? lw_ppo_evaluate : NULL;
    return keep_state(r);
}

static void close_run(void *self)
{
    lw_ppo_run_close(self);
}

int lw_train_ppo(lw_ppo_config c, const lw_observer *obs, lw_train_result *out)
{
    int64_t choices = (int64_t)c.n_envs * c.n_steps;
    lw_ppo_run r = {.c = &c, .obs = obs, .best = -1.0, .untrained = -1.0};
    /* warm-up and the entropy's weight are shares of the run too */
    const lw_train_job job = {.name = "prove train",
                              .self = &r,
                              .set_up = set_up,
                              .close = close_run,
                              .follows_goal = c.lr_warmup > 0.0 || c.curriculum > 0.0 ||
                                              c.ent_coef_init != c.ent_coef_final,
                              .also_long = ", --timesteps-train N",
                              .unit = "choices",
                              .weights = LW_WEIGHTS_HF,
                              .curves = curves,
                              .loss_note = loss_note,
                              .predict = predict,
                              .restore = restore,
                              .advance = advance,
                              .measure = measure,
                              .report = report};
    if (c.timesteps > 0 && c.train.steps == 0)
        c.train.steps = (c.timesteps + choices - 1) / choices;
    return lw_train_run(&job, &c.train, obs, out);
}
