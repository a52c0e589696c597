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

static int after_step(lw_training *l, int64_t done, bool last)
{
    const lw_train_config *c = l->c;
    bool evaluate = l->job->evaluate && (every(done, c->eval_every) || (last && c->eval_every));
    char note[96];
    snprintf(note, sizeof note, "loss %.4g  lr %.3g  |g| %.3g", l->last.loss, l->last.lr,
             l->last.grad_norm);
    lw_observe_progress(l->obs, l->job->name, done, c->steps, note);
    if (last || evaluate || every(done, c->log_every))
        LW_TRY(lw_loop_log(l, done, evaluate));
    if (l->job->grid && (every(done, c->sample_every) || (last && c->sample_every)))
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
                   (long long)l->done, (long long)l->c->steps);
}

/* Would one more step end later than --minutes allows? */
static bool time_is_up(const lw_training *l)
{
    return l->end > 0.0 && lw_now() + l->pace > l->end;
}

static int run_steps(lw_training *l, int64_t until)
{
    for (int64_t step = l->done; !l->over && step < LW_MIN(until, l->c->steps); step++) {
        int rc = lw_loop_step(l, step);
        bool last = step + 1 == l->c->steps || (rc == 0 && time_is_up(l));
        if (rc == 0) {
            l->done = step + 1;
            rc = after_step(l, step + 1, last);
        }
        if (rc == LW_ESTOPPED || (rc == 0 && !last && lw_observe_stop(l->obs)))
            return stop(l);
        LW_TRY(rc);
        l->over = last;
        if (last && l->done < l->c->steps)
            lw_observe_say(l->obs,
                           "%g minutes are over: ended after step %lld of %lld, --resume goes on",
                           l->c->minutes, (long long)l->done, (long long)l->c->steps);
    }
    return 0;
}

/* ---- before and after ------------------------------------------------------------------------ */

int lw_train_compile(const lw_train_config *c, lw_device *dev, const lw_graph *g, lw_plan **plan,
                     lw_exec **exec)
{
    const lw_compile_opts o = {
        .opt = 1, .recompute = c->recompute, .precision = (lw_num)c->precision};
    LW_TRY(lw_compile(g, dev, &o, plan));
    return lw_exec_new(*plan, LW_SLAB_PARAM, exec);
}

/* A finished run resumed. */
static int nothing_left(lw_training *l)
{
    l->over = l->nothing = true;
    return lw_train_nothing_left(l->c, l->first_step, l->obs, &l->result);
}

/* The measures of the last step before an interrupt. */
static int finish_row(lw_training *l)
{
    const lw_train_job *j = l->job;
    if (!l->keep.pending)
        return 0;
    l->last.loss = json_number_value(json_object_get(l->keep.pending, "loss"));
    if (j->evaluate)
        LW_TRY(j->evaluate(j->self, l->first_step, l->keep.pending));
    LW_TRY(lw_run_dir_log(&l->dir, l->first_step, l->keep.pending));
    LW_TRY(lw_loop_measures(l, l->first_step, l->keep.pending));
    lw_json_drop(&l->keep.pending);
    return l->better ? lw_loop_save(l, l->first_step) : 0;
}

/* How long it will take is fixed; what an interrupt cut off is made good. */
static int begin(lw_training *l)
{
    l->begun = true;
    LW_TRY(lw_loop_resolve_minutes(l));
    LW_TRY(lw_loop_note_schedule(l));
    LW_TRY(lw_loop_complete_config(l));
    l->done = l->first_step;
    if (l->first_step >= l->c->steps && !l->keep.pending)
        return nothing_left(l);
    if (l->job->loss_note)
        lw_observe_say(l->obs, "%s", l->job->loss_note);
    l->started = l->logged_at = lw_now();
    l->logged_step = l->first_step;
    int rc = finish_row(l);
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
    return l->begun ? l->done : l->first_step;
}

int64_t lw_training_goal(const lw_training *l)
{
    return l->c->steps;
}

void lw_training_set_goal(lw_training *l, int64_t steps)
{
    l->c->steps = steps;
}

int lw_training_save(lw_training *l)
{
    if (l->done == 0 || l->saved == l->done)
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
    out->first_step = l->first_step;
    out->steps = l->done;
    out->loss = l->last.loss;
    out->seconds = l->dir.time_before + took;
    out->work = l->work_done;
    out->images_per_second =
        (double)((l->done - l->first_step) * l->job->leaves.size * l->job->leaves.n) /
        LW_MAX(took, 1e-9);
    out->best_metric = l->keep.best ? l->job->best : NULL;
    out->best_step = json_integer_value(json_object_get(l->keep.best, "step"));
    out->best_reporting = json_number_value(json_object_get(l->keep.best, "reporting"));
    if (rc == 0)
        rc = lw_loop_summary(l, out);
    if (rc == 0 || rc == LW_ESTOPPED)
        LW_TRY(lw_run_page_write(l->dir.path, l->job, l->c->part_of, out));
    return rc;
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
    lw_train_keep_clear(&l->keep);
    lw_leaf_sum_clear(&l->sum);
    if (l->own.close)
        l->own.close(l->own.self);
    lw_free(pp);
    return rc;
}

/* What the loop holds; l->own.close stays the caller's until all of it is there. */
static int open_loop(lw_training *l)
{
    const lw_train_config *c = l->c;
    LW_TRY(lw_train_kept(c, l->first_step, &l->keep));
    LW_TRY(lw_run_dir_open(c, l->job->name, lw_pool_size(l->job->dev->pool), l->job->dev->isa,
                           l->first_step - (l->keep.pending != NULL), &l->dir));
    l->dir.time_before = c->time_before;
    l->work_done = c->work_before;
    return c->resume && l->job->best
               ? lw_best_restore(l->dir.path, l->job->best_measure, &l->keep.best)
               : 0;
}

int lw_training_open(const lw_train_job *job, lw_train_config *c, int64_t first_step,
                     const lw_observer *obs, lw_training **out)
{
    lw_train_result predicted;
    if (!c->dry_run && c->steps < 1 && c->minutes <= 0.0) /* before there is a directory */
        return lw_fail(LW_EUSAGE, "%s: say how long: --steps N or --minutes M", job->name);
    LW_TRY(lw_train_predict(job, c, &predicted));
    lw_training *l = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    *l = (lw_training){
        .own = *job, .c = c, .obs = obs, .first_step = first_step, .result = predicted};
    l->dir.lock = -1;
    l->job = &l->own;
    l->saved = c->resume && !c->resume_from && first_step > 0 ? first_step : -1;
    lw_store_slab(job->store, LW_SLAB_PARAM, &l->floats);
    l->sum = (lw_leaf_sum){.dev = job->dev, .floats = l->floats, .leaves = job->leaves.n};
    int rc = c->dry_run ? 0 : open_loop(l);
    if (rc < 0) {
        l->own.close = NULL;
        return lw_training_close(&l, rc, NULL);
    }
    *out = l;
    return 0;
}

int lw_training_run(lw_training **t, lw_train_result *out)
{
    int rc = (*t)->c->dry_run ? 0 : lw_training_advance(*t, INT64_MAX);
    return lw_training_close(t, rc, out);
}

int lw_train_run(const lw_train_job *job, lw_train_config *c, int64_t first_step,
                 const lw_observer *obs, lw_train_result *out)
{
    lw_training *t = NULL;
    LW_TRY(lw_training_open(job, c, first_step, obs, &t));
    return lw_training_run(&t, out);
}
