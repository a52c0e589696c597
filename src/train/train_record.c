/* SPDX-License-Identifier: Apache-2.0 */
/* What a training leaves behind: rows of metrics, sample grids, checkpoints, the summary. */
#include "train/train_loop_parts.h"

#include <stdio.h>

#include "session/session.h"

/* A row with its measures: is it that of the best weights so far? */
int lw_loop_measures(lw_training *l, int64_t step, const json_t *row)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_TRY(lw_best_take(&l->state.best, l->job.best, l->job.best_measure, step, row, &l->better));
    if (l->job.tell)
        l->job.tell(row, &text);
    if (text.len)
        lw_observe_say(l->obs, "step %lld: held-out %s%s", (long long)step, lw_str_c(&text),
                       l->better ? ", the best so far" : "");
    return 0;
}

const char *lw_train_rate_name(const char *unit)
{
    static const struct {
        const char *unit, *rate;
    } known[] = {{"pictures", "images_per_sec"},
                 {"choices", "choices_per_sec"},
                 {"queries", "queries_per_sec"},
                 {"points", "points_per_sec"}};
    for (size_t i = 0; i < LW_COUNT(known); i++)
        if (lw_str_eq(known[i].unit, unit))
            return known[i].rate;
    return "samples_per_sec";
}

int lw_loop_log(lw_training *l, int64_t step, bool evaluate)
{
    const lw_train_job *j = &l->job;
    const char *name = lw_train_rate_name(j->unit);
    double now = lw_now();
    double samples = (double)(step - l->logged_step) * (double)(j->leaves.size * j->leaves.n);
    double rate = now > l->logged_at ? samples / (now - l->logged_at) : 0.0;
    json_t *row = json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)step, "loss",
                            l->last.loss, "lr", l->last.lr, "grad_norm", l->last.grad_norm,
                            "time_s", l->state.seconds + now - l->started, name, rate);
    if (!row)
        return lw_fail(LW_ENOMEM, "out of memory for a log row");
    int rc = j->report ? j->report(j->self, row) : 0;
    if (rc == 0 && evaluate && j->settle)
        rc = j->settle(j->self);
    if (rc == 0 && evaluate && j->evaluate)
        rc = j->evaluate(j->self, step, row);
    if (rc == 0)
        rc = lw_run_dir_log(&l->dir, step, name, row);
    if (rc == 0 && evaluate)
        rc = lw_loop_measures(l, step, row);
    if (rc == LW_ESTOPPED) /* kept in the checkpoint: the measures are taken when the run goes on */
        l->state.pending = json_incref(row);
    json_decref(row);
    l->logged_at = lw_now();
    l->logged_step = step;
    return rc;
}

int lw_loop_grid(lw_training *l, int64_t step)
{
    char name[64];
    lw_str path = {0};
    snprintf(name, sizeof name, "samples/step_%07lld.png", (long long)step);
    int rc = lw_mkdir_own(lw_run_dir_file(&l->dir, &path, "samples"));
    if (rc == 0)
        rc = l->job.grid(l->job.self, step, lw_run_dir_file(&l->dir, &path, name));
    lw_str_clear(&path);
    l->state.pending_grid = rc == LW_ESTOPPED; /* kept in the checkpoint, as a row is */
    return rc == 0 ? lw_run_dir_picture(&l->dir, step, name) : rc;
}

int lw_loop_last_loss(const lw_training *l, double *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *rows = NULL;
    LW_TRY(lw_jsonl_load(lw_run_dir_file(&l->dir, &path, "metrics.jsonl"), &rows));
    const json_t *row = json_array_get(rows, json_array_size(rows) - 1);
    *out = json_number_value(json_object_get(row, "loss"));
    return 0;
}

/* NULL: not known. */
static json_t *work_json(const lw_training *l)
{
    if (l->state.work.wall < 0) /* of a checkpoint that did not say */
        return NULL;
    return json_pack("{s:f, s:f, s:b}", "wall_s", l->state.work.wall, "cpu_s", l->state.work.cpu,
                     "in_turns", l->in_turns);
}

int lw_loop_save(lw_training *l, int64_t step)
{
    const lw_train_config *c = l->c;
    const char *bad = lw_store_first_bad(l->job.store, LW_SLAB_PARAM);
    if (bad) /* a finite loss can still have made such an update: better no checkpoint than that one
              */
        return lw_fail(LW_ENUMERIC,
                       "%s: step %lld: '%s' is not finite after the update; the last checkpoint is "
                       "untouched. Lower --learning-rate",
                       l->job.name, (long long)step, bad);
    if (l->job.settle)
        LW_TRY(l->job.settle(l->job.self));
    json_t *extra = json_pack(
        "{s:s, s:I, s:o*, s:o*, s:s, s:o*, s:O*, s:O*, s:o*, s:O*, s:O*, s:O*}", "recipe",
        l->job.name, "total_steps", (json_int_t)l->state.steps, "leaf_size",
        l->job.feed ? json_integer(l->job.leaves.size) : NULL, "sources",
        l->job.sources ? lw_json_hash(l->job.sources) : NULL, "precision",
        lw_precision_name(c->precision), "work", work_json(l), "recipe_state", l->job.extra,
        "pending_row", l->state.pending, "pending_grid", l->state.pending_grid ? json_true() : NULL,
        "rescheduled", l->state.rescheduled, "best", l->state.best, "init", l->state.init);
    if (!extra)
        return lw_fail(LW_ENOMEM, "out of memory for a checkpoint");
    lw_checkpoint s = {.step = step,
                       .seed = (uint64_t)c->seed,
                       .images = step * l->job.leaves.size * l->job.leaves.n,
                       .train_seconds = l->state.seconds + lw_now() - l->started,
                       .isa = l->job.dev->isa,
                       .config = l->job.model,
                       .extra = extra,
                       .weights = l->job.weights,
                       .averaged = c->ema_decay > 0.0,
                       .files = l->job.files};
    int rc = lw_checkpoint_save(l->dir.path, l->job.store, &s);
    json_decref(extra);
    LW_TRY(rc);
    if (l->better)
        LW_TRY(lw_checkpoint_best(l->dir.path, step));
    l->better = false;
    if (c->keep_last_k_checkpoints > 0)
        LW_TRY(lw_checkpoint_prune(l->dir.path, c->keep_last_k_checkpoints));
    l->saved = step;
    lw_observe_say(l->obs, "checkpoint step_%07lld written", (long long)step);
    return 0;
}

int lw_loop_summary(const lw_training *l, const lw_train_result *r)
{
    lw_str path = {0};
    json_t *j = json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:o*, s:O*, s:{s:f, s:f, s:f}}", "recipe", l->job.name,
        "parameters", (json_int_t)r->parameters, "steps", (json_int_t)r->steps, "final_loss",
        r->loss, "seconds", r->seconds, "work", work_json(l), "best", l->state.best, "perf",
        lw_train_rate_name(l->job.unit), r->samples_per_second, "mean_step_time_s",
        r->seconds / (double)LW_MAX(r->steps, 1), "peak_rss_mb", (double)lw_peak_rss() / 1048576.0);
    int rc = j ? 0 : lw_fail(LW_ENOMEM, "out of memory for summary.json");
    if (rc == 0 && l->job.conclude)
        rc = l->job.conclude(l->job.self, r);
    if (rc == 0) /* the last thing that is written: with it a run is over */
        rc = lw_json_save(lw_run_dir_file(&l->dir, &path, "summary.json"), j);
    lw_str_clear(&path);
    json_decref(j);
    return rc;
}
