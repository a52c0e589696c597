/* SPDX-License-Identifier: Apache-2.0 */
/* Training embeddings of a knowledge graph through the shared loop. */
#include "jobs/prove/kge/prove_kge_feed.h"

#include <math.h>
#include <stdio.h>

#include "models/models.h"
#include "session/session_device.h"

typedef struct kge_run {
    const lw_kge_train_config *c;
    const lw_observer *obs;
    lw_kge_config net;
    lw_device *dev;
    lw_store *store;
    lw_plan *plan;
    lw_exec *exec;
    lw_leaves leaves;
    lw_kge_feed feed;
    lw_kge *judge;        /* over the averaged weights */
    lw_corruptor *judged; /* what they are ranked among */
    lw_queries valid;     /* those that are */
    char measure[48];     /* which these are, in words */
    json_t *model;
} kge_run;

static int feed(void *self, int64_t leaf)
{
    kge_run *r = self;
    const lw_kge_inputs in = {lw_exec_write(r->exec, "entities"),
                              lw_exec_write(r->exec, "relations"), lw_exec_write(r->exec, "side"),
                              lw_exec_write(r->exec, "allowed")};
    return lw_kge_feed_fill(&r->feed, leaf, &in);
}

/* ---- ranks of held-out queries --------------------------------------------------------------- */

static int prepare(void *self, lw_train_job *job)
{
    kge_run *r = self;
    if (!job->evaluate)
        return 0;
    const lw_corrupt_options o = {.filtered = true, .seed = (uint64_t)r->c->train.seed};
    const lw_queries *all = &r->c->known->split[LW_QUERIES_VALID];
    LW_TRY(lw_queries_choose(all, r->c->eval_queries, LW_QUERY_SPACED, 0, &r->valid));
    snprintf(r->measure, sizeof r->measure, "%d of %d valid queries", (int)r->valid.n, (int)all->n);
    job->best_measure = r->measure;
    LW_TRY(lw_corruptor_new(r->c->kb, &o, r->c->known->set, LW_QUERIES_SPLITS, &r->judged));
    return lw_kge_over(&r->net, r->store, LW_SLAB_EMA, r->dev, &r->judge);
}

#define BEST "1-MRR" /* the least is the best */

/* Every second query chooses the best weights, the others say how good these are: neighbours in the
 * file are mostly of one predicate, so both halves ask for the same ones. */
static void put_halves(const lw_rank_lists *ranks, int32_t n, json_t *row)
{
    lw_rank_sum half[2] = {0};
    for (int mode = 0; mode < LW_CORRUPT_MODES; mode++)
        for (int32_t i = 0; ranks->list[mode] && i < n; i++)
            lw_rank_sum_add(&half[i % 2], lw_rank_value(&ranks->list[mode][i], LW_RANK_REALISTIC));
    json_object_set_new(row, BEST "_choosing", lw_json_real(1.0 - lw_rank_sum_means(&half[0]).mrr));
    json_object_set_new(row, BEST "_reporting",
                        lw_json_real(1.0 - lw_rank_sum_means(&half[1]).mrr));
    json_object_set_new(row, BEST "_reporting_floor", lw_json_real(0.0));
}

static int evaluate(void *self, int64_t step, json_t *row)
{
    LW_CLEANUP(lw_rank_lists_clear) lw_rank_lists ranks = {0};
    kge_run *r = self;
    const lw_kge_rank_options o = {
        .pool = r->judged, .keep = r->c->keep_best != LW_KGE_BEST_NONE, .mode = {true, true}};
    (void)step;
    /* of the observer only the wish to stop: the bar is the trainer's */
    const lw_observer obs = {.self = r->obs ? r->obs->self : NULL,
                             .should_stop = r->obs ? r->obs->should_stop : NULL};
    LW_TRY(lw_kge_rank(r->judge, &o, r->valid.atom, r->valid.n, &obs, &ranks));
    lw_rank_metrics m = lw_rank_sum_means(&ranks.all[LW_RANK_REALISTIC]);
    json_object_set_new(row, "valid_MRR", lw_json_real(m.mrr));
    for (int i = 0; i < LW_RANK_HITS; i++) {
        char key[32];
        snprintf(key, sizeof key, "valid_Hits@%d", (int)lw_rank_hits_at[i]);
        json_object_set_new(row, key, lw_json_real(m.hits[i]));
    }
    if (o.keep)
        put_halves(&ranks, r->valid.n, row);
    return 0;
}

static void tell(const json_t *row, lw_str *out)
{
    const json_t *told = json_object_get(row, BEST "_reporting");
    const json_t *mrr = json_object_get(row, "valid_MRR");
    if (mrr)
        lw_str_addf(out, "MRR %.4f", json_number_value(mrr));
    if (told)
        lw_str_addf(out, ", of the half that does not choose %.4f", 1.0 - json_number_value(told));
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* What depends on the model or on the facts. */
static int resolve(lw_kge_train_config *c)
{
    const lw_kge_config net = {.kind = c->model};
    lw_train_config *t = &c->train;
    if (c->kb->facts.n < 1)
        return lw_fail(LW_EUSAGE, "%s has no facts to learn", c->kb->dir);
    if (c->loss == LW_KGE_AUTO)
        c->loss = lw_kge_is_distance(&net) ? LW_KGE_NSSA : LW_KGE_CE;
    if (c->regularization_relations < 0.0)
        c->regularization_relations = c->regularization;
    else if (c->regularization_relations > 0.0 && lw_kge_is_distance(&net))
        return lw_fail(LW_EUSAGE,
                       "--regularization-relations: relations of rotate and transe are no "
                       "factors, so N3 does not weigh them");
    if (c->epochs > 0.0) {
        double examples = 2.0 * (double)c->kb->facts.n;
        double per_step = (double)t->batch_size * (double)t->grad_accum_steps;
        t->steps = LW_MAX((int64_t)ceil(c->epochs * examples / per_step), 1);
    }
    return 0;
}

static int init(kge_run *r)
{
    const lw_kge_train_config *c = r->c;
    r->net = (lw_kge_config){.kind = c->model,
                             .entities = c->kb->n_constants,
                             .relations = c->kb->n_predicates,
                             .dim = c->dim,
                             .norm = c->norm,
                             .inverse = c->inverse,
                             .range = (float)c->range,
                             .names = lw_kb_names(c->kb)};
    if (lw_kge_is_distance(&r->net))
        r->net.gamma = (float)c->gamma;
    LW_TRY(lw_kge_check(&r->net));
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &r->leaves));
    LW_TRY(lw_session_device(c->train.threads, &r->dev));
    lw_pool_watch(r->dev->pool,
                  r->obs); /* a step may take minutes; cut off, it has changed nothing */
    LW_TRY(lw_store_new(false, &r->store));
    LW_TRY(lw_kge_declare(&r->net, r->store));
    lw_store_init(r->store, (uint64_t)c->train.seed);
    r->feed = (lw_kge_feed){.kb = c->kb,
                            .batch = (int32_t)r->leaves.size,
                            .negatives = c->negatives,
                            .filter = c->filter_negatives,
                            .inverse = c->inverse,
                            .seed = (uint64_t)c->train.seed};
    LW_TRY(lw_kge_feed_init(&r->feed));
    r->model = lw_kge_to_json(&r->net);
    return r->model ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    kge_run *r = self;
    LW_TRY(init(r));
    const lw_kge_step s = {
        .batch = (int32_t)r->leaves.size,
        .negatives = r->c->negatives,
        .loss = r->c->loss,
        .temperature = (float)r->c->temperature,
        .regularization = {(float)r->c->regularization, (float)r->c->regularization_relations}};
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(r->store), .training = true};
    LW_TRY(lw_kge_build_step(&b, &r->net, &s));
    LW_TRY(lw_train_compile(&r->c->train, r->dev, g, &r->plan, &r->exec));
    job->dev = r->dev;
    job->store = r->store;
    job->step = r->exec;
    job->plan = r->plan;
    job->leaves = r->leaves;
    job->names = r->net.names;
    lw_train_depends(job, lw_kb_content(r->c->kb, false));
    job->model = r->model;
    return 0;
}

static void close_run(void *self)
{
    kge_run *r = self;
    lw_kge_close(&r->judge);
    lw_corruptor_free(&r->judged);
    lw_queries_clear(&r->valid);
    lw_kge_feed_clear(&r->feed);
    lw_exec_free(&r->exec);
    lw_plan_free(&r->plan);
    lw_store_free(&r->store);
    lw_backend_close(&r->dev);
    json_decref(r->model);
}

int lw_train_kge(lw_kge_train_config c, const lw_observer *obs, lw_train_result *out)
{
    static const lw_train_curve curves[] = {
        {.column = "loss", .title = "loss"},
        {.column = "valid_MRR",
         .title = "mean reciprocal rank of valid queries among all entities",
         .from_zero = true,
         .sparse = true},
        {.column = NULL}};
    kge_run r = {.c = &c, .obs = obs};
    bool ranks = c.known && c.known->split[LW_QUERIES_VALID].n > 0;
    const lw_train_job job = {.name = "prove kge",
                              .self = &r,
                              .set_up = set_up,
                              .prepare = prepare,
                              .close = close_run,
                              .feed = feed,
                              .evaluate = ranks ? evaluate : NULL,
                              .tell = tell,
                              .best = c.keep_best == LW_KGE_BEST_MRR ? BEST : NULL,
                              .also_long = ", --epochs N",
                              .unit = "queries",
                              .weights = LW_WEIGHTS_HF,
                              .curves = curves};
    LW_TRY(resolve(&c));
    if (job.best && (c.train.eval_every <= 0 || !c.known || c.known->split[LW_QUERIES_VALID].n < 2))
        return lw_fail(LW_EUSAGE,
                       "--keep-best mrr: needs --eval-every and two or more valid queries");
    return lw_train_run(&job, &c.train, obs, out);
}
