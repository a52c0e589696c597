/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop: feed, replay, accumulate, update, log, save. */

#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_optim.h"
#include "train/train_best.h"
#include "train/train_page.h"
#include "train/train_run_dir.h"
#include "train/train_schedule.h"

typedef struct lw_training loop;
struct lw_training {
    lw_train_job own; /* `job` */
    const lw_train_job *job;
    lw_train_config *c;
    const lw_observer *obs;
    lw_run_dir dir;
    float *sum;   /* accumulated gradient, NULL without accumulation */
    double *work; /* of the optimiser */
    int64_t floats;
    lw_train_step last;
    double started, logged_at;
    int64_t logged_step, first_step, done;
    int64_t saved;      /* step of the newest checkpoint of this directory, -1: none */
    lw_train_keep keep; /* row of step `done` whose measures an interrupt cut off; schedules */
    bool better;        /* the row just measured is that of the best weights so far */
    double end;         /* by the clock, of a run that --minutes measured; 0: none */
    double pace;        /* seconds of its steps */
    bool begun, over, nothing; /* over: the last step is made; nothing: it was before */
    double paused;             /* when the last slice ended */
    lw_train_work work_done;
    lw_train_result result;
};

/* ---- one step -------------------------------------------------------------------------------- */

static int forward_backward(loop *l, int64_t step)
{
    const lw_train_job *j = l->job;
    int32_t n = l->c->grad_accum_steps;
    const lw_tick tick = {(uint64_t)l->c->seed, (uint32_t)step};
    const float *g = lw_store_slab(j->store, LW_SLAB_GRAD, NULL);
    l->last.loss = 0.0;
    for (int32_t m = 0; m < n; m++) {
        LW_TRY(j->feed(j->self, step, m));
        LW_TRY(lw_exec_run(j->step, &tick));
        l->last.loss += (double)*(const float *)lw_exec_data(j->step, "loss") / n;
        if (l->sum)
            (m ? lw_cpu_add : lw_cpu_copy)(j->dev, l->sum, g, l->floats);
    }
    return 0;
}

/* Names the first bad gradient, of all micro-batches when they were added up. */
static int not_finite(loop *l, int64_t step, const char *what)
{
    lw_store *s = l->job->store;
    if (l->sum)
        lw_cpu_copy(l->job->dev, lw_store_slab(s, LW_SLAB_GRAD, NULL), l->sum, l->floats);
    return lw_train_not_finite(l->job->name, s, step + 1, what);
}

int lw_train_not_finite(const char *name, const lw_store *store, int64_t step, const char *what)
{
    const char *bad = lw_store_first_bad(store, LW_SLAB_GRAD);
    return lw_fail(
        LW_ENUMERIC,
        "%s: step %lld: %s not finite (first bad gradient: %s); the last checkpoint is untouched. "
        "Lower --learning-rate or check the data",
        name, (long long)step, what, bad ? bad : "none");
}

static int update(loop *l, int64_t step)
{
    const lw_train_config *c = l->c;
    lw_store *s = l->job->store;
    l->last.lr = lw_schedule_lr(c, step);
    lw_cpu_adamw_args a = {
        .p = lw_store_slab(s, LW_SLAB_PARAM, NULL),
        .m = lw_store_slab(s, LW_SLAB_M, NULL),
        .v = lw_store_slab(s, LW_SLAB_V, NULL),
        .ema = lw_store_slab(s, LW_SLAB_EMA, NULL),
        .g = l->sum ? l->sum : lw_store_slab(s, LW_SLAB_GRAD, NULL),
        .n = l->floats,
        .lr = l->last.lr,
        .beta1 = c->adam_beta1,
        .beta2 = c->adam_beta2,
        .eps = c->adam_eps,
        .weight_decay = c->weight_decay,
        .t = step + 1,
        .grad_scale = 1.0 / c->grad_accum_steps,
        .max_norm = c->grad_clip,
        .ema_decay = lw_schedule_ema(c->ema_decay, step),
        .work = l->work,
    };
    int rc = lw_cpu_adamw(l->job->dev, &a, &l->last.grad_norm);
    if (rc == LW_ENUMERIC)
        return not_finite(l, step, "the gradient norm is");
    LW_TRY(rc);
    lw_store_touch(s, LW_SLAB_PARAM);
    lw_store_touch(s, LW_SLAB_EMA);
    return 0;
}

static int make_step(loop *l, int64_t step)
{
    if (l->job->advance)
        return l->job->advance(l->job->self, step, &l->last);
    LW_TRY(forward_backward(l, step));
    if (!isfinite(l->last.loss))
        return not_finite(l, step, "the loss is");
    return update(l, step);
}

static int one_step(loop *l, int64_t step)
{
    double wall = lw_now(), cpu = lw_cpu_seconds();
    int rc = make_step(l, step);
    l->work_done.wall += lw_now() - wall;
    l->work_done.cpu += lw_cpu_seconds() - cpu;
    return rc;
}

/* ---- logs ------------------------------------------------------------------------------------ */

/* The distances of a row of held-out measures. */
static void say_distances(const loop *l, int64_t step, const json_t *row)
{
    static const char *const names[] = {"fd", "eval_fd"};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    char floor[32];
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        snprintf(floor, sizeof floor, "%s_floor", names[i]);
        if (json_object_get(row, names[i]))
            lw_str_addf(&text, "%s %.4g (real pictures %.4g)  ", names[i],
                        json_number_value(json_object_get(row, names[i])),
                        json_number_value(json_object_get(row, floor)));
    }
    if (text.len)
        lw_observe_say(l->obs, "step %lld: held-out %.*s%s", (long long)step, (int)text.len - 2,
                       lw_str_c(&text), l->better ? ", the best so far" : "");
}

/* A row with its measures: is it that of the best weights so far? */
static int take_measures(loop *l, int64_t step, const json_t *row)
{
    LW_TRY(lw_best_take(&l->keep.best, l->job->best, l->job->best_measure, step, row, &l->better));
    say_distances(l, step, row);
    return 0;
}

static int log_row(loop *l, int64_t step, bool evaluate)
{
    const lw_train_job *j = l->job;
    double now = lw_now();
    double images = (double)(step - l->logged_step) * (double)(j->images * l->c->grad_accum_steps);
    double rate = now > l->logged_at ? images / (now - l->logged_at) : 0.0;
    json_t *row = json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)step, "loss",
                            l->last.loss, "lr", l->last.lr, "grad_norm", l->last.grad_norm,
                            "time_s", l->dir.time_before + now - l->started, "images_per_sec",
                            rate);
    if (!row)
        return lw_fail(LW_ENOMEM, "out of memory for a log row");
    int rc = j->report ? j->report(j->self, row) : 0;
    if (rc == 0 && evaluate && j->evaluate)
        rc = j->evaluate(j->self, step, row);
    if (rc == 0)
        rc = lw_run_dir_log(&l->dir, step, row);
    if (rc == 0 && evaluate)
        rc = take_measures(l, step, row);
    if (rc == LW_ESTOPPED) /* kept in the checkpoint: the measures are taken when the run goes on */
        l->keep.pending = json_incref(row);
    json_decref(row);
    l->logged_at = lw_now();
    l->logged_step = step;
    return rc;
}

static int write_grid(loop *l, int64_t step)
{
    char name[64];
    lw_str path = {0};
    snprintf(name, sizeof name, "samples/step_%07lld.png", (long long)step);
    int rc = lw_mkdir_own(lw_run_dir_file(&l->dir, &path, "samples"));
    if (rc == 0)
        rc = l->job->grid(l->job->self, step, lw_run_dir_file(&l->dir, &path, name));
    lw_str_clear(&path);
    return rc;
}

/* NULL: not known. */
static json_t *work_json(const loop *l)
{
    if (l->work_done.wall < 0) /* of a checkpoint that did not say */
        return NULL;
    return json_pack("{s:f, s:f, s:b}", "wall_s", l->work_done.wall, "cpu_s", l->work_done.cpu,
                     "in_turns", l->c->in_turns);
}

static int save(loop *l, int64_t step)
{
    const lw_train_config *c = l->c;
    const char *bad = lw_store_first_bad(l->job->store, LW_SLAB_PARAM);
    if (bad) /* a finite loss can still have made such an update: better no checkpoint than that one
              */
        return lw_fail(LW_ENUMERIC,
                       "%s: step %lld: '%s' is not finite after the update; the last checkpoint is "
                       "untouched. Lower --learning-rate",
                       l->job->name, (long long)step, bad);
    json_t *extra = json_pack("{s:s, s:I, s:s, s:o*, s:O*, s:O*, s:O*, s:O*}", "recipe",
                              l->job->name, "total_steps", (json_int_t)c->steps, "precision",
                              lw_precision_name(c->precision), "work", work_json(l), "recipe_state",
                              l->job->extra, "pending_row", l->keep.pending, "rescheduled",
                              l->keep.rescheduled, "best", l->keep.best);
    if (!extra)
        return lw_fail(LW_ENOMEM, "out of memory for a checkpoint");
    lw_checkpoint s = {.step = step,
                       .seed = (uint64_t)c->seed,
                       .images = step * l->job->images * c->grad_accum_steps,
                       .train_seconds = l->dir.time_before + lw_now() - l->started,
                       .isa = lw_isa_name(lw_cpu_kernels(l->job->dev)->isa),
                       .config = l->job->model,
                       .extra = extra,
                       .weights = l->job->weights};
    int rc = lw_checkpoint_save(l->dir.path, l->job->store, &s);
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

static bool every(int64_t step, int64_t n)
{
    return n > 0 && step % n == 0;
}

static int after_step(loop *l, int64_t done, bool last)
{
    const lw_train_config *c = l->c;
    bool evaluate = l->job->evaluate && (every(done, c->eval_every) || (last && c->eval_every));
    char note[96];
    snprintf(note, sizeof note, "loss %.4g  lr %.3g  |g| %.3g", l->last.loss, l->last.lr,
             l->last.grad_norm);
    lw_observe_progress(l->obs, l->job->name, done, c->steps, note);
    if (last || evaluate || every(done, c->log_every))
        LW_TRY(log_row(l, done, evaluate));
    if (l->job->grid && (every(done, c->sample_every) || (last && c->sample_every)))
        LW_TRY(write_grid(l, done));
    return last || every(done, c->save_every) || l->better ? save(l, done) : 0;
}

/* The observer asked for it: what is done is saved. */
static int stop(loop *l)
{
    if (l->done == 0)
        return lw_fail(LW_ESTOPPED, "stopped within the first step: there is nothing to save; "
                                    "--resume begins again");
    if (l->saved != l->done)
        LW_TRY(save(l, l->done));
    return lw_fail(LW_ESTOPPED, "stopped after step %lld of %lld; go on with --resume",
                   (long long)l->done, (long long)l->c->steps);
}

/* Would one more step end later than --minutes allows? */
static bool time_is_up(const loop *l)
{
    return l->end > 0.0 && lw_now() + l->pace > l->end;
}

static int run_steps(loop *l, int64_t until)
{
    for (int64_t step = l->done; !l->over && step < LW_MIN(until, l->c->steps); step++) {
        int rc = one_step(l, step);
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

int lw_train_predict(const lw_train_job *job, const lw_train_config *c, lw_train_result *out)
{
    lw_plan_info info = lw_plan_get_info(job->plan);
    memset(out, 0, sizeof *out);
    out->unit = job->unit ? job->unit : "pictures";
    out->parameters = lw_store_param_count(job->store);
    out->steps = c->steps;
    out->flops_per_step = (info.flops + job->side_flops) * c->grad_accum_steps;
    out->bytes_kept = job->kept_bytes;
    snprintf(out->note, sizeof out->note, "%s", job->note ? job->note : "");
    out->bytes_frame = info.frame_bytes;
    out->bytes_derived = info.derived_bytes;
    out->bytes_slabs = lw_store_bytes(job->store);
    if (c->grad_accum_steps > 1)
        out->bytes_slabs += out->bytes_slabs / LW_SLABS;
    /* A step runs at about 0.6 of the rate of a plain large product. */
    double rate = lw_session_flops(job->dev);
    out->predicted_step_seconds = rate > 0 ? out->flops_per_step / (rate * 0.6) : 0.0;
    return 0;
}

/* Median of five replays of step 0: nothing is updated, so training starts from the same bits. */
static int measure_replays(loop *l, double *out)
{
    double seconds[5];
    for (int i = -1; i < 5; i++) {
        double t = lw_now();
        LW_TRY(forward_backward(l, 0));
        if (i >= 0)
            seconds[i] = lw_now() - t;
    }
    for (int i = 0; i < 5; i++)
        for (int k = i + 1; k < 5; k++)
            if (seconds[k] < seconds[i]) {
                double swap = seconds[i];
                seconds[i] = seconds[k];
                seconds[k] = swap;
            }
    *out = seconds[2];
    return 0;
}

static int resolve_minutes(loop *l)
{
    lw_train_pace pace = {0};
    double began = lw_now(), left = l->c->minutes * 60.0;
    if (l->c->minutes <= 0.0 || l->c->steps > 0)
        return 0;
    LW_TRY(l->job->measure ? l->job->measure(l->job->self, left, &pace)
                           : measure_replays(l, &pace.step));
    double each = pace.step + (l->c->eval_every > 0 ? pace.evaluate / (double)l->c->eval_every : 0);
    if (l->job->measure) { /* what was measured is no replay: it took its share of the time */
        l->pace = pace.step;
        l->end = began + 1.05 * left - pace.evaluate;
        left -= lw_now() - began + pace.evaluate;
    }
    l->c->steps = LW_MAX((int64_t)(left / (each * 1.05)), 1);
    l->result.minutes_steps = l->c->steps;
    lw_observe_say(l->obs, "%g minutes at %.3g s a step: %lld step%s%s", l->c->minutes, each,
                   (long long)l->c->steps, l->c->steps == 1 ? "" : "s",
                   l->job->measure ? "" : ", however long they take on a busier machine");
    return 0;
}

/* Notes a schedule that changes here: from now on it is part of what made the run. */
static int note_schedule(loop *l)
{
    const lw_train_config *c = l->c;
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    if (!c->goal_before && !c->rescheduled)
        return 0;
    if (c->goal_before)
        lw_str_addf(&what, "--steps %lld (was %lld)%s", (long long)c->steps,
                    (long long)c->goal_before, c->rescheduled ? "; " : "");
    lw_str_add(&what, c->rescheduled ? c->rescheduled : "");
    LW_CLEANUP(lw_json_drop)
    json_t *rows = l->keep.rescheduled ? json_copy(l->keep.rescheduled) : json_array();
    json_t *row = json_pack("{s:I, s:I, s:s}", "step", (json_int_t)l->first_step, "steps",
                            (json_int_t)c->steps, "changed", lw_str_c(&what));
    if (what.failed || !rows || json_array_append_new(rows, row) < 0)
        return lw_fail(LW_ENOMEM, "out of memory for the schedule");
    lw_json_drop(&l->keep.rescheduled);
    l->keep.rescheduled = lw_steal(&rows);
    lw_observe_say(l->obs, "rescheduled at step %lld: %s", (long long)l->first_step,
                   lw_str_c(&what));
    return 0;
}

/* config.yaml: the steps that --minutes came to are part of what makes the run again, and so are
 * changes of its schedule. */
static int complete_config(const loop *l)
{
    const json_t *changes = l->keep.rescheduled;
    if (!l->c->config_yaml || (l->c->minutes <= 0.0 && !changes))
        return 0;
    lw_str out = {0}, path = {0};
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *row = json_array_get(changes, i);
        const char *what = json_string_value(json_object_get(row, "changed"));
        if (what && !strchr(what, '\n')) /* a comment stays one */
            lw_str_addf(&out, "# rescheduled at step %lld: %s\n",
                        (long long)json_integer_value(json_object_get(row, "step")), what);
    }
    for (const char *p = l->c->config_yaml; *p;) {
        size_t n = strcspn(p, "\n");
        bool asked = l->c->minutes > 0.0 &&
                     (lw_str_starts(p, "steps:") || lw_str_starts(p, "minutes:"));
        lw_str_addf(&out, "%s%.*s\n", asked ? "# asked: " : "", (int)n, p);
        p += n + (p[n] == '\n');
    }
    if (l->c->minutes > 0.0)
        lw_str_addf(&out, "steps: %lld\n", (long long)l->c->steps);
    int rc = lw_file_write(lw_run_dir_file(&l->dir, &path, "config.yaml"), lw_str_c(&out), out.len);
    lw_str_clear(&out);
    lw_str_clear(&path);
    return rc;
}

static int write_summary(const loop *l, const lw_train_result *r)
{
    lw_str path = {0};
    json_t *j = json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:o*, s:O*, s:{s:f, s:f, s:f}}", "recipe", l->job->name,
        "parameters", (json_int_t)r->parameters, "steps", (json_int_t)r->steps, "final_loss",
        r->loss, "seconds", r->seconds, "work", work_json(l), "best", l->keep.best, "perf",
        "images_per_sec", r->images_per_second, "mean_step_time_s",
        r->seconds / (double)LW_MAX(r->steps, 1), "peak_rss_mb", (double)lw_peak_rss() / 1048576.0);
    int rc = j ? lw_json_save(lw_run_dir_file(&l->dir, &path, "summary.json"), j)
               : lw_fail(LW_ENOMEM, "out of memory for summary.json");
    lw_str_clear(&path);
    json_decref(j);
    return rc;
}

/* A finished run resumed. */
static int nothing_left(loop *l)
{
    l->over = l->nothing = true;
    return lw_train_nothing_left(l->c, l->first_step, l->obs, &l->result);
}

/* The measures of the last step before an interrupt. */
static int finish_row(loop *l)
{
    const lw_train_job *j = l->job;
    if (!l->keep.pending)
        return 0;
    l->last.loss = json_number_value(json_object_get(l->keep.pending, "loss"));
    if (j->evaluate)
        LW_TRY(j->evaluate(j->self, l->first_step, l->keep.pending));
    LW_TRY(lw_run_dir_log(&l->dir, l->first_step, l->keep.pending));
    LW_TRY(take_measures(l, l->first_step, l->keep.pending));
    lw_json_drop(&l->keep.pending);
    return l->better ? save(l, l->first_step) : 0;
}

/* How long it will take is fixed; what an interrupt cut off is made good. */
static int begin(loop *l)
{
    l->begun = true;
    LW_TRY(resolve_minutes(l));
    LW_TRY(note_schedule(l));
    LW_TRY(complete_config(l));
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
static void skip_pause(loop *l)
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
    double wall = lw_now(), cpu = lw_cpu_seconds();
    LW_TRY(forward_backward(l, step));
    *out = (lw_train_work){lw_now() - wall, lw_cpu_seconds() - cpu};
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
    int rc = save(l, l->done);
    l->paused = lw_now();
    return rc;
}

/* Numbers, summary and page of a training that did something. */
static int conclude(loop *l, int rc)
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
        (double)((l->done - l->first_step) * l->job->images * l->c->grad_accum_steps) /
        LW_MAX(took, 1e-9);
    out->best_metric = l->keep.best ? l->job->best : NULL;
    out->best_step = json_integer_value(json_object_get(l->keep.best, "step"));
    out->best_reporting = json_number_value(json_object_get(l->keep.best, "reporting"));
    if (rc == 0)
        rc = write_summary(l, out);
    if (rc == 0 || rc == LW_ESTOPPED)
        LW_TRY(lw_run_page_write(l->dir.path, l->job, l->c->part_of, out));
    return rc;
}

int lw_training_close(lw_training **pp, int rc, lw_train_result *out)
{
    loop *l = *pp;
    if (!l)
        return rc;
    rc = conclude(l, rc);
    if (out)
        *out = l->result;
    lw_run_dir_close(&l->dir);
    lw_train_keep_clear(&l->keep);
    lw_bulk_free(&l->sum, (size_t)l->floats * sizeof *l->sum);
    lw_free(&l->work);
    if (l->own.close)
        l->own.close(l->own.self);
    lw_free(pp);
    return rc;
}

/* What the loop holds; l->own.close stays the caller's until all of it is there. */
static int open_loop(loop *l)
{
    const lw_train_config *c = l->c;
    l->work = lw_calloc((size_t)lw_cpu_adamw_work(l->floats), sizeof *l->work);
    if (!l->work)
        return LW_ENOMEM;
    if (c->grad_accum_steps > 1) {
        l->sum = lw_bulk_alloc((size_t)l->floats * sizeof *l->sum);
        if (!l->sum)
            return LW_ENOMEM;
    }
    LW_TRY(lw_train_kept(c, l->first_step, &l->keep));
    LW_TRY(lw_run_dir_open(c, l->job->name, l->job->dev->workers(l->job->dev->self),
                           lw_isa_name(lw_cpu_kernels(l->job->dev)->isa),
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
    loop *l = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    *l = (loop){.own = *job, .c = c, .obs = obs, .first_step = first_step, .result = predicted};
    l->dir.lock = -1;
    l->job = &l->own;
    l->saved = c->resume && !c->resume_from && first_step > 0 ? first_step : -1;
    lw_store_slab(job->store, LW_SLAB_PARAM, &l->floats);
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
