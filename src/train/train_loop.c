/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a training: opened, advanced in one go or in slices, stopped, closed. */
#include "train/train_loop_parts.h"

#include <math.h>
#include <string.h>

#include "train/train_page.h"

static bool every(int64_t step, int64_t n)
{
    return n > 0 && step % n == 0;
}

static bool grid_is_due(const lw_training *l, int64_t done, bool last)
{
    return l->job.grid && (every(done, l->c->sample_every) || (last && l->c->sample_every));
}

static int after_step(lw_training *l, int64_t done, bool last)
{
    const lw_train_config *c = l->c;
    bool evaluate = l->job.evaluate && (every(done, c->eval_every) || (last && c->eval_every));
    char note[96];
    snprintf(note, sizeof note, "loss %.4g  lr %.3g  |g| %.3g", l->last.loss, l->last.lr,
             l->last.grad_norm);
    lw_observe_progress(l->obs, l->job.name, done, l->state.steps, note);
    if (last || evaluate || every(done, c->log_every))
        LW_TRY(lw_loop_log(l, done, evaluate));
    if (grid_is_due(l, done, last))
        LW_TRY(lw_loop_grid(l, done));
    return last || every(done, c->save_every) || l->better ? lw_loop_save(l, done) : 0;
}

/* The observer asked for it: what is done is saved. */
static int stop(lw_training *l)
{
    if (l->done == 0)
        return lw_fail(LW_ESTOPPED, "stopped within the first step: there is nothing to save; "
                                    "--resume begins again");
    if (l->saved != l->done)
        LW_TRY(lw_loop_save(l, l->done));
    return lw_fail(LW_ESTOPPED, "stopped after step %lld of %lld; go on with --resume",
                   (long long)l->done, (long long)l->state.steps);
}

/* Would one more step end later than --minutes allows? */
static bool time_is_up(const lw_training *l)
{
    return l->end > 0.0 && lw_now() + l->pace > l->end;
}

static int run_steps(lw_training *l, int64_t until)
{
    for (int64_t step = l->done; !l->over && step < LW_MIN(until, l->state.steps); step++) {
        int rc = lw_loop_step(l, step);
        bool last = step + 1 == l->state.steps || (rc == 0 && time_is_up(l));
        if (rc == 0) {
            l->done = step + 1;
            rc = after_step(l, step + 1, last);
        }
        if (rc == LW_ESTOPPED || (rc == 0 && !last && lw_observe_stop(l->obs)))
            return stop(l);
        LW_TRY(rc);
        l->over = last;
        if (last && l->done < l->state.steps)
            lw_observe_say(l->obs,
                           "%g minutes are over: ended after step %lld of %lld, --resume goes on",
                           l->c->minutes, (long long)l->done, (long long)l->state.steps);
    }
    return 0;
}

/* ---- before and after ------------------------------------------------------------------------ */

int lw_train_compile(const lw_train_config *c, lw_device *dev, const lw_graph *g, lw_plan **plan,
                     lw_exec **exec)
{
    const lw_compile_opts o = {
        .opt = !c->unoptimised, .recompute = c->recompute, .precision = (lw_num)c->precision};
    LW_TRY(lw_compile(g, dev, &o, plan));
    return exec ? lw_exec_new(*plan, LW_SLAB_PARAM, exec) : 0;
}

/* A finished run resumed. */
static int nothing_left(lw_training *l)
{
    l->over = l->nothing = true;
    return lw_train_nothing_left(l->c, l->state.steps, l->obs, &l->result);
}

/* The measures of the last step before an interrupt. */
static int finish_row(lw_training *l)
{
    const lw_train_job *j = &l->job;
    l->last.loss = json_number_value(json_object_get(l->state.pending, "loss"));
    if (j->evaluate)
        LW_TRY(j->evaluate(j->self, l->state.first, l->state.pending));
    LW_TRY(
        lw_run_dir_log(&l->dir, l->state.first, lw_train_rate_name(l->job.unit), l->state.pending));
    LW_TRY(lw_loop_measures(l, l->state.first, l->state.pending));
    lw_json_drop(&l->state.pending);
    l->state.pending_grid = grid_is_due(l, l->state.first, l->state.first == l->state.steps);
    return 0;
}

/* What an interrupt cut off of step `first`, and a checkpoint that no longer says so. */
static int finish_step(lw_training *l)
{
    if (!l->state.pending && !l->state.pending_grid)
        return 0;
    if (l->state.pending)
        LW_TRY(finish_row(l));
    if (l->state.pending_grid)
        LW_TRY(lw_loop_grid(l, l->state.first));
    return lw_loop_save(l, l->state.first);
}

/* All steps are done, and the process that made the last one ended before it had written all. */
static int finish_run(lw_training *l)
{
    lw_observe_say(l->obs, "%lld steps are done: what was not written behind the last one is now",
                   (long long)l->state.first);
    l->over = true;
    LW_TRY(lw_loop_last_loss(l, &l->last.loss));
    LW_TRY(lw_checkpoint_last(l->dir.path, l->state.first));
    return l->c->keep_last_k_checkpoints > 0
               ? lw_checkpoint_prune(l->dir.path, l->c->keep_last_k_checkpoints)
               : 0;
}

/* How long it will take is fixed; what an interrupt cut off is made good. */
static int begin(lw_training *l)
{
    l->begun = true;
    LW_TRY(lw_loop_resolve_minutes(l));
    LW_TRY(lw_loop_note_schedule(l));
    LW_TRY(lw_loop_write_config(l));
    const bool cut_off = l->state.pending || l->state.pending_grid,
               all_done = l->state.first >= l->state.steps;
    if (all_done && !cut_off && !l->state.left_undone)
        return nothing_left(l);
    l->started = l->logged_at = lw_now();
    l->logged_step = l->state.first;
    if (all_done && !cut_off)
        return finish_run(l);
    if (l->job.loss_note)
        lw_observe_say(l->obs, "%s", l->job.loss_note);
    int rc = finish_step(l);
    return rc == LW_ESTOPPED ? stop(l) : rc;
}

/* What was done between two slices is not this training's time. */
static void skip_pause(lw_training *l)
{
    double gap = lw_now() - l->paused;
    l->started += gap;
    l->logged_at += gap;
    if (l->end > 0.0)
        l->end += gap;
}

int lw_training_advance(lw_training *l, int64_t until)
{
    int rc = 0;
    if (!l->begun)
        rc = begin(l);
    else
        skip_pause(l);
    if (rc == 0)
        rc = run_steps(l, until);
    l->paused = lw_now();
    return rc;
}

int lw_training_replay(lw_training *l, int64_t step, lw_train_work *out)
{
    double wall = lw_now(), cpu = lw_process_seconds();
    LW_TRY(lw_loop_forward_backward(l, step));
    *out = (lw_train_work){lw_now() - wall, lw_process_seconds() - cpu};
    return 0;
}

int64_t lw_training_done(const lw_training *l)
{
    return l->done;
}

int64_t lw_training_goal(const lw_training *l)
{
    return l->state.steps;
}

void lw_training_set_goal(lw_training *l, int64_t steps)
{
    l->state.steps = steps;
}

int lw_training_save(lw_training *l)
{
    if (!l->begun || l->done == 0 || l->saved == l->done)
        return 0;
    skip_pause(l);
    int rc = lw_loop_save(l, l->done);
    l->paused = lw_now();
    return rc;
}

/* Numbers, summary and page of a training that did something. */
static int conclude(lw_training *l, int rc)
{
    lw_train_result *out = &l->result;
    double took = l->paused - l->started;
    if (!l->begun || l->nothing)
        return rc;
    out->first_step = l->state.first;
    out->steps = l->done;
    out->loss = l->last.loss;
    out->seconds = l->state.seconds + took;
    out->work = l->state.work;
    out->samples_per_second =
        (double)((l->done - l->state.first) * l->job.leaves.size * l->job.leaves.n) /
        LW_MAX(took, 1e-9);
    out->best_metric = l->state.best ? l->job.best : NULL;
    out->best_step = json_integer_value(json_object_get(l->state.best, "step"));
    out->best_reporting = json_number_value(json_object_get(l->state.best, "reporting"));
    if (rc == 0 || rc == LW_ESTOPPED)
        LW_TRY(lw_run_page_write(l->dir.path, &l->job, l->c->part_of, out));
    return rc == 0 ? lw_loop_summary(l, out) : rc;
}

int lw_training_close(lw_training **pp, int rc, lw_train_result *out)
{
    lw_training *l = *pp;
    if (!l)
        return rc;
    rc = conclude(l, rc);
    if (out)
        *out = l->result;
    lw_run_dir_close(&l->dir);
    lw_train_state_clear(&l->state);
    lw_leaf_sum_clear(&l->sum);
    if (l->job.close)
        l->job.close(l->job.self);
    lw_free(pp);
    return rc;
}

static int open_loop(lw_training *l)
{
    const lw_train_config *c = l->c;
    lw_train_job *j = &l->job;
    if (j->set_up)
        LW_TRY(j->set_up(j->self, j));
    lw_train_predict(j, c, &l->result);
    if (c->profile > 0)
        return lw_loop_profile(l);
    if (c->dry_run)
        return j->predict ? j->predict(j->self, &l->result) : 0;
    LW_TRY(lw_train_resume(c, j, &l->state));
    if (l->state.first == 0)
        LW_TRY(lw_train_init(c, j, l->obs, &l->state.init));
    if (j->restore && l->state.first > 0)
        LW_TRY(j->restore(j->self, l->state.recipe));
    if (j->prepare)
        LW_TRY(j->prepare(j->self, j));
    l->done = l->state.first;
    l->saved = l->state.in_place && !c->resume_from && l->done > 0 ? l->done : -1;
    l->sum = (lw_leaf_sum){.dev = j->dev, .leaves = j->leaves.n};
    lw_store_slab(j->store, LW_SLAB_PARAM, &l->sum.floats);
    int64_t logged = l->state.in_place ? l->done - (l->state.pending != NULL) : -1;
    LW_TRY(lw_run_dir_open(c, j->name, lw_pool_size(j->dev->pool), j->dev->isa, logged, &l->dir));
    return l->state.in_place && j->best
               ? lw_best_restore(l->dir.path, j->best_measure, &l->state.best)
               : 0;
}

int lw_training_open(const lw_train_job *job, const lw_train_config *c, const lw_observer *obs,
                     lw_training **out)
{
    lw_training *l = lw_calloc(1, sizeof *l);
    if (!l) {
        if (job->close)
            job->close(job->self);
        return LW_ENOMEM;
    }
    *l = (lw_training){.job = *job, .c = c, .obs = obs, .dir.lock = -1, .saved = -1};
    int rc = open_loop(l);
    if (rc < 0)
        return lw_training_close(&l, rc, NULL);
    *out = l;
    return 0;
}

int lw_training_run(lw_training **t, lw_train_result *out)
{
    int rc = (*t)->c->dry_run || (*t)->c->profile > 0 ? 0 : lw_training_advance(*t, INT64_MAX);
    return lw_training_close(t, rc, out);
}

int lw_train_run(const lw_train_job *job, const lw_train_config *c, const lw_observer *obs,
                 lw_train_result *out)
{
    lw_training *t = NULL;
    bool over = false;
    int rc = c->dry_run || c->profile > 0 ? 0 : lw_train_check(c, job, obs, out, &over);
    if (rc < 0 || over) {
        if (job->close)
            job->close(job->self);
        return rc;
    }
    LW_TRY(lw_training_open(job, c, obs, &t));
    return lw_training_run(&t, out);
}
