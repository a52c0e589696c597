/* SPDX-License-Identifier: Apache-2.0 */
/* How long a training takes: predicted before anything runs, measured for --minutes, and noted where it changes. */
#include "train/train_loop_parts.h"

#include <stdio.h>
#include <string.h>

#include "session/session.h"

void lw_train_predict(const lw_train_job *job, const lw_train_config *c, lw_train_result *out)
{
    lw_plan_info info = lw_plan_get_info(job->plan);
    memset(out, 0, sizeof *out);
    out->unit = job->unit ? job->unit : "samples";
    out->parameters = lw_store_param_count(job->store);
    out->steps = c->steps;
    out->flops_per_step = (info.flops + job->side_flops) * (double)job->leaves.n;
    out->bytes_kept = job->kept_bytes;
    snprintf(out->note, sizeof out->note, "%s", job->note ? job->note : "");
    out->bytes_frozen = job->frozen_bytes;
    out->n_parts = job->step ? lw_train_parts(job, out->part) : 0;
    out->bytes_frame = info.frame_bytes;
    out->bytes_derived = info.derived_bytes;
    out->bytes_slabs = lw_store_bytes(job->store);
    out->bytes_slabs += out->bytes_slabs / LW_SLABS * (size_t)lw_leaf_sum_slabs(job->leaves.n);
    /* A step runs at about 0.6 of the rate of a plain large product. */
    double rate = lw_session_flops(job->dev);
    out->predicted_step_seconds = rate > 0 ? out->flops_per_step / (rate * 0.6) : 0.0;
}

/* Median of five replays of step 0: nothing is updated, so training starts from the same bits. */
static int measure_replays(lw_training *l, double *out)
{
    double seconds[5];
    for (int i = -1; i < 5; i++) {
        double t = lw_now();
        LW_TRY(lw_loop_forward_backward(l, 0));
        if (i >= 0)
            seconds[i] = lw_now() - t;
    }
    *out = lw_summarize(seconds, 5).p50;
    return 0;
}

int lw_loop_resolve_minutes(lw_training *l)
{
    lw_train_pace pace = {0};
    double began = lw_now(), left = l->c->minutes * 60.0;
    if (l->c->minutes <= 0.0 || l->state.steps > 0)
        return 0;
    LW_TRY(l->job.measure ? l->job.measure(l->job.self, left, &pace)
                          : measure_replays(l, &pace.step));
    double each = pace.step + (l->c->eval_every > 0 ? pace.evaluate / (double)l->c->eval_every : 0);
    if (l->job.measure) { /* what was measured is no replay: it took its share of the time */
        l->pace = pace.step;
        l->end = began + 1.05 * left - pace.evaluate;
        left -= lw_now() - began + pace.evaluate;
    }
    l->state.steps = LW_MAX((int64_t)(left / (each * 1.05)), 1);
    l->result.minutes_steps = l->state.steps;
    lw_observe_say(l->obs, "%g minutes at %.3g s a step: %lld step%s%s", l->c->minutes, each,
                   (long long)l->state.steps, l->state.steps == 1 ? "" : "s",
                   l->job.measure ? "" : ", however long they take on a busier machine");
    return 0;
}

/* Notes a schedule that changes here: from now on it is part of what made the run. */
int lw_loop_note_schedule(lw_training *l)
{
    const char *changed = l->c->rescheduled;
    lw_train_state *s = &l->state;
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    if (!s->goal_before && !changed)
        return 0;
    if (s->goal_before)
        lw_str_addf(&what, "--steps %lld (was %lld)%s", (long long)s->steps,
                    (long long)s->goal_before, changed ? "; " : "");
    lw_str_add(&what, changed ? changed : "");
    LW_CLEANUP(lw_json_drop)
    json_t *rows = s->rescheduled ? json_copy(s->rescheduled) : json_array();
    json_t *row = json_pack("{s:I, s:I, s:s}", "step", (json_int_t)s->first, "steps",
                            (json_int_t)s->steps, "changed", lw_str_c(&what));
    if (what.failed || !rows || json_array_append_new(rows, row) < 0)
        return lw_fail(LW_ENOMEM, "out of memory for the schedule");
    lw_json_drop(&s->rescheduled);
    s->rescheduled = lw_steal(&rows);
    lw_observe_say(l->obs, "rescheduled at step %lld: %s", (long long)s->first, lw_str_c(&what));
    return 0;
}

/* The steps that --minutes came to are part of what makes the run again, and so are changes of its
 * schedule. */
int lw_loop_write_config(lw_training *l)
{
    LW_CLEANUP(lw_str_clear) lw_str out = {0}, path = {0};
    LW_CLEANUP(lw_json_drop) json_t *options = NULL;
    const json_t *changes = l->state.rescheduled;
    if (!l->c->options)
        return 0;
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *row = json_array_get(changes, i);
        const char *what = json_string_value(json_object_get(row, "changed"));
        if (what && !strchr(what, '\n')) /* a comment stays one */
            lw_str_addf(&out, "# rescheduled at step %lld: %s\n",
                        (long long)json_integer_value(json_object_get(row, "step")), what);
    }
    options = json_copy((json_t *)(uintptr_t)l->c->options);
    if (l->c->minutes > 0.0) {
        lw_str_addf(&out, "# asked: minutes: %g\n", l->c->minutes);
        json_object_del(options, "minutes");
        json_object_set_new(options, "steps", json_integer(l->state.steps));
    }
    if (!options)
        return lw_fail(LW_ENOMEM, "out of memory for config.yaml");
    LW_TRY(lw_yaml_dump(options, &out));
    LW_TRY(lw_file_write(lw_run_dir_file(&l->dir, &path, "config.yaml"), lw_str_c(&out), out.len));
    return lw_run_dir_describe(&l->dir, options, lw_str_c(&out));
}
