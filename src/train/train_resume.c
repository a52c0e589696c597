/* SPDX-License-Identifier: Apache-2.0 */
/* Going on from a checkpoint: which one, whether it belongs to this run, and what it says. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "plan/plan.h"
#include "formats/formats.h"
#include "store/store.h"
#include "session/session.h"
#include "train/train_config.h"
#include "train/train_loop.h"
#include "train/train_run_dir.h"

/* A run directory, or one of its step directories. */
static int find_checkpoint(const lw_train_config *c, lw_str *dir)
{
    lw_str state = {0};
    const char *from = c->resume_from ? c->resume_from : c->output_dir;
    bool direct = lw_path_exists(lw_path_join(&state, from, "state.json"));
    lw_str_clear(&state);
    if (!direct)
        return lw_checkpoint_latest(from, dir);
    lw_str_clear(dir);
    lw_str_add(dir, from);
    return 0;
}

/* Is path the directory, or something in it? Then the run goes on in place and its logs are cut
 * back. */
static bool inside(const char *path, const char *directory)
{
    char *a = realpath(path, NULL), *b = realpath(directory, NULL);
    size_t n = b ? strlen(b) : 0;
    bool yes = a && b && strncmp(a, b, n) == 0 && (a[n] == '/' || a[n] == '\0');
    free(a);
    free(b);
    return yes;
}

/* A run that was stopped before its first checkpoint has no step directory, not even a
 * damaged one. */
static bool no_checkpoint_yet(const char *run)
{
    lw_str dir = {0};
    char **names = NULL;
    size_t n = 0;
    bool none = true;
    if (lw_path_is_dir(lw_path_join(&dir, run, "checkpoints")) &&
        lw_list_dir(lw_str_c(&dir), &names, &n) == 0)
        for (size_t i = 0; i < n; i++)
            none &= !lw_str_starts(names[i], "step_");
    lw_list_free(&names, n);
    lw_str_clear(&dir);
    return none;
}

/* What a checkpoint must share with the run that goes on from it and says itself. What its run's
 * config.yaml says is compared by whoever knows the options (cli/). */
static int check_kin(const lw_train_config *c, const char *job, const char *dir,
                     const lw_checkpoint *ck)
{
    const char *trained = json_string_value(json_object_get(ck->extra, "recipe"));
    if (trained && !lw_str_eq(trained, job))
        return lw_fail(LW_EUSAGE, "%s was made by `%s`, not by `%s`", dir, trained, job);
    if ((uint64_t)c->seed != ck->seed)
        return lw_fail(LW_EUSAGE, "%s was trained with --seed %llu, not %lld", dir,
                       (unsigned long long)ck->seed, (long long)c->seed);
    const char *precision = json_string_value(json_object_get(ck->extra, "precision"));
    precision = precision ? precision : lw_precision_name(LW_NUM_F32);
    if (!lw_str_eq(precision, lw_precision_name(c->precision)))
        return lw_fail(LW_EUSAGE, "%s was trained with --precision %s, not %s", dir, precision,
                       lw_precision_name(c->precision));
    return 0;
}

/* A checkpoint that does not say was made when a leaf was a micro-batch. */
static int check_leaf(const lw_leaves *now, const char *dir, const lw_checkpoint *ck)
{
    int64_t then = now->whole;
    LW_TRY(lw_json_opt_i64(ck->extra, dir, "leaf_size", &then));
    if (then == now->size)
        return 0;
    return lw_fail(LW_EUSAGE, "%s was trained with --leaf-size %lld, not %lld", dir,
                   (long long)then, (long long)now->size);
}

/* Of a dataset of names, once it is open; another ISA is worth a warning. */
static int check_names(const lw_train_config *c, const char *isa, const char *dir,
                       const lw_checkpoint *ck)
{
    uint64_t names = 0;
    LW_TRY(lw_json_opt_hash(ck->config, dir, "names", &names));
    if (c->names && names && names != c->names)
        return lw_fail(LW_EUSAGE,
                       "%s was trained on other names (hash %016" PRIx64
                       ") than those of the dataset now "
                       "(hash %016" PRIx64 ")",
                       dir, names, c->names);
    bool same = ck->isa && (c->precision == LW_NUM_F32 ? lw_isa_same_f32(ck->isa, isa)
                                                       : lw_str_eq(ck->isa, isa));
    if (ck->isa && !same)
        lw_log(LW_LOG_WARN, "train",
               "%s was trained at %s, this is %s: results may differ in the last bits", dir,
               ck->isa, isa);
    return 0;
}

/* ---- how long -------------------------------------------------------------------------------- */

/* The steps that the run of a checkpoint goes for. */
static int read_goal(const char *dir, const lw_checkpoint *ck, int64_t *goal)
{
    const json_t *total = json_object_get(ck->extra, "total_steps");
    *goal = json_integer_value(total);
    if (total && (!json_is_integer(total) || *goal < ck->step || *goal > LW_MAX_STEPS))
        return lw_fail(LW_EFORMAT,
                       "%s/state.json: 'total_steps' must be an integer from the %lld steps done "
                       "to %lld",
                       dir, (long long)ck->step, (long long)LW_MAX_STEPS);
    return 0;
}

/* The steps asked for against those done, and against the goal that a schedule was made for. */
static int check_goal(lw_train_config *c, const char *dir, const lw_checkpoint *ck)
{
    int64_t goal;
    LW_TRY(read_goal(dir, ck, &goal));
    c->steps = c->steps ? c->steps : goal;
    if (c->steps < ck->step && c->steps > 0)
        return lw_fail(LW_EUSAGE,
                       "--steps %lld: %s has %lld steps done already and goes for %lld; ask for "
                       "more than are done, or begin again in another --output-dir",
                       (long long)c->steps, dir, (long long)ck->step, (long long)goal);
    bool follows = c->scheduler == LW_SCHEDULE_COSINE || c->follows_goal;
    if (goal && c->steps != goal && follows && !c->reschedule)
        return lw_fail(LW_EUSAGE,
                       "--steps %lld: the learning rate of %s falls until step %lld; to go on with "
                       "one that falls until step %lld say --reschedule",
                       (long long)c->steps, dir, (long long)goal, (long long)c->steps);
    c->goal_before = goal && c->steps != goal && follows ? goal : 0;
    return 0;
}

int lw_train_nothing_left(const lw_train_config *c, int64_t step, const lw_observer *obs,
                          lw_train_result *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_observe_say(obs, "nothing left to do: %lld steps are done, --steps %lld", (long long)step,
                   (long long)c->steps);
    out->first_step = out->steps = step;
    if (lw_path_exists(lw_path_join(&path, c->output_dir, "summary.json")) &&
        lw_json_load(lw_str_c(&path), &j) == 0) {
        out->parameters = json_integer_value(json_object_get(j, "parameters"));
        out->loss = json_number_value(json_object_get(j, "final_loss"));
        out->seconds = json_number_value(json_object_get(j, "seconds"));
    }
    return 0;
}

static int check_checkpoint(lw_train_config *c, const char *job, const lw_observer *obs,
                            lw_train_result *out, bool *over)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint ck = {0};
    LW_TRY(find_checkpoint(c, &dir));
    LW_TRY(lw_checkpoint_peek(lw_str_c(&dir), &ck));
    LW_TRY(check_kin(c, job, lw_str_c(&dir), &ck));
    LW_TRY(check_goal(c, lw_str_c(&dir), &ck));
    bool in_place = inside(lw_str_c(&dir), c->output_dir);
    if (!in_place && c->resume_from)
        LW_TRY(lw_run_dir_refuse(c->output_dir));
    *over = ck.step == c->steps &&
            !(in_place && json_is_object(json_object_get(ck.extra, "pending_row")));
    return *over ? lw_train_nothing_left(c, ck.step, obs, out) : 0;
}

int lw_train_check(lw_train_config *c, const char *job, const lw_observer *obs,
                   lw_train_result *out, bool *over)
{
    *over = false;
    memset(out, 0, sizeof *out);
    out->unit = "pictures";
    bool resumes = c->resume || c->resume_from;
    if (c->reschedule && !resumes)
        return lw_fail(LW_EUSAGE, "--reschedule: only with --resume or --resume-from");
    if (resumes && (c->resume_from || !no_checkpoint_yet(c->output_dir)))
        LW_TRY(check_checkpoint(c, job, obs, out, over));
    else if (!resumes)
        LW_TRY(lw_run_dir_refuse(c->output_dir));
    if (c->steps < 1 && c->minutes <= 0.0)
        return lw_fail(LW_EUSAGE, "%s: say how long: --steps N or --minutes M", job);
    return 0;
}

int lw_train_origin(const lw_train_config *c, lw_str *run)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    run->len = 0;
    if ((!c->resume && !c->resume_from) || (!c->resume_from && no_checkpoint_yet(c->output_dir)))
        return 0;
    LW_TRY(find_checkpoint(c, &dir));
    const char *from = c->resume_from ? c->resume_from : c->output_dir;
    if (!lw_str_eq(from, lw_str_c(&dir))) {
        lw_str_add(run, from);
        return run->failed ? LW_ENOMEM : 0;
    }
    char *path = realpath(from, NULL), *end = path ? strrchr(path, '/') : NULL;
    if (end) { /* RUN/checkpoints/step_N */
        *end = '\0';
        end = strrchr(path, '/');
    }
    if (end && lw_str_eq(end + 1, "checkpoints"))
        lw_str_addf(run, "%.*s", (int)(end - path), path);
    free(path);
    return run->failed ? LW_ENOMEM : 0;
}

/* ---- loading --------------------------------------------------------------------------------- */

int lw_train_resume(lw_train_config *c, const lw_train_job *job, int64_t *step)
{
    return lw_train_resume_with(c, job, step, NULL);
}

int lw_train_resume_with(lw_train_config *c, const lw_train_job *job, int64_t *step, json_t **extra)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint ck = {0};
    if (!c->resume && !c->resume_from)
        return 0;
    if (!c->resume_from && no_checkpoint_yet(c->output_dir)) {
        lw_log(LW_LOG_WARN, "train", "%s has no checkpoint yet: starting at step 0", c->output_dir);
        return 0;
    }
    LW_TRY(find_checkpoint(c, &dir));
    LW_TRY(lw_checkpoint_load(lw_str_c(&dir), job->store, &ck));
    LW_TRY(check_kin(c, job->name, lw_str_c(&dir), &ck));
    LW_TRY(check_leaf(&job->leaves, lw_str_c(&dir), &ck));
    LW_TRY(check_names(c, job->dev->isa, lw_str_c(&dir), &ck));
    LW_TRY(check_goal(c, lw_str_c(&dir), &ck));
    c->time_before = ck.train_seconds;
    const json_t *work = json_object_get(ck.extra, "work");
    c->work_before = (lw_train_work){json_number_value(json_object_get(work, "wall_s")),
                                     json_number_value(json_object_get(work, "cpu_s"))};
    if (!work && ck.step > 0) /* stays unknown, whatever is added */
        c->work_before.wall = -1e30;
    c->resume = inside(lw_str_c(&dir), c->output_dir);
    *step = ck.step;
    if (extra)
        *extra = json_incref(json_object_get(ck.extra, "recipe_state"));
    return 0;
}

int lw_train_kept(const lw_train_config *c, int64_t step, lw_train_keep *out)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint ck = {0};
    if ((!c->resume && !c->resume_from) || step == 0)
        return 0;
    LW_TRY(find_checkpoint(c, &dir));
    LW_TRY(lw_checkpoint_peek(lw_str_c(&dir), &ck));
    json_t *pending = json_object_get(ck.extra, "pending_row"),
           *changes = json_object_get(ck.extra, "rescheduled"),
           *best = json_object_get(ck.extra, "best");
    if (c->resume && ck.step == step && json_is_object(pending))
        out->pending = json_incref(pending);
    if (c->resume && json_is_object(best))
        out->best = json_incref(best);
    if (json_is_array(changes))
        out->rescheduled = json_incref(changes);
    return 0;
}

void lw_train_keep_clear(lw_train_keep *k)
{
    lw_json_drop(&k->pending);
    lw_json_drop(&k->rescheduled);
    lw_json_drop(&k->best);
}
