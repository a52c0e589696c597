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
#include "train/train_loop_parts.h"

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

/* ---- what steps depend on -------------------------------------------------------------------- */

void lw_train_depends(lw_train_job *job, uint64_t hash)
{
    const uint64_t both[2] = {job->sources, hash};
    job->sources = lw_hash64(both, sizeof both);
}

void lw_train_freezes(lw_train_job *job, const lw_store *frozen)
{
    if (!frozen)
        return;
    job->frozen_bytes += lw_store_bytes(frozen);
    lw_train_depends(job, lw_store_hash(frozen, LW_SLAB_PARAM));
}

/* A checkpoint that does not say was made before they did. */
static int check_sources(const lw_train_job *job, const char *dir, const lw_checkpoint *ck)
{
    uint64_t then = 0;
    LW_TRY(lw_json_opt_hash(ck->extra, dir, "sources", &then));
    if (!then || !job->sources || then == job->sources)
        return 0;
    return lw_fail(
        LW_EUSAGE,
        "%s was trained on other data than there is now (or with another frozen encoder: "
        "hash %016" PRIx64 ", now %016" PRIx64
        "): put back what there was, or begin a new run with --init-from %s",
        dir, then, job->sources, dir);
}

/* Of a dataset of names, once it is open; another ISA is worth a warning. */
static int check_names(const lw_train_config *c, const lw_train_job *job, const char *dir,
                       const lw_checkpoint *ck)
{
    const char *isa = job->dev->isa;
    uint64_t names = 0;
    LW_TRY(lw_json_opt_hash(ck->config, dir, "names", &names));
    if (job->names && names && names != job->names)
        return lw_fail(LW_EUSAGE,
                       "%s was trained on other names (hash %016" PRIx64
                       ") than those of the dataset now "
                       "(hash %016" PRIx64 ")",
                       dir, names, job->names);
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
static int check_goal(const lw_train_config *c, const lw_train_job *job, const char *dir,
                      const lw_checkpoint *ck, lw_train_state *out)
{
    int64_t goal;
    LW_TRY(read_goal(dir, ck, &goal));
    out->first = ck->step;
    out->steps = c->steps ? c->steps : goal;
    if (out->steps < ck->step && out->steps > 0)
        return lw_fail(LW_EUSAGE,
                       "--steps %lld: %s has %lld steps done already and goes for %lld; ask for "
                       "more than are done, or begin again in another --output-dir",
                       (long long)out->steps, dir, (long long)ck->step, (long long)goal);
    bool follows = c->scheduler == LW_SCHEDULE_COSINE || job->follows_goal;
    if (goal && out->steps != goal && follows && !c->reschedule)
        return lw_fail(LW_EUSAGE,
                       "--steps %lld: the learning rate of %s falls until step %lld; to go on with "
                       "one that falls until step %lld say --reschedule",
                       (long long)out->steps, dir, (long long)goal, (long long)out->steps);
    out->goal_before = goal && out->steps != goal && follows ? goal : 0;
    return 0;
}

bool lw_train_is_concluded(const char *run, int64_t steps)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    bool is = lw_path_exists(lw_path_join(&path, run, "summary.json")) &&
              lw_json_load(lw_str_c(&path), &j) == 0 &&
              json_integer_value(json_object_get(j, "steps")) == steps;
    lw_errclear();
    return is;
}

/* Nothing is left to make, write or measure of the run of a checkpoint at its last step. */
static bool is_over(const lw_train_config *c, const lw_checkpoint *ck, bool in_place)
{
    bool pending = json_is_object(json_object_get(ck->extra, "pending_row")) ||
                   json_is_true(json_object_get(ck->extra, "pending_grid"));
    return !in_place || (!pending && lw_train_is_concluded(c->output_dir, ck->step));
}

int lw_train_nothing_left(const lw_train_config *c, int64_t goal, const lw_observer *obs,
                          lw_train_result *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    lw_observe_say(obs, "nothing left to do: %lld steps are done, --steps %lld", (long long)goal,
                   (long long)goal);
    out->first_step = out->steps = goal;
    if (lw_path_exists(lw_path_join(&path, c->output_dir, "summary.json")) &&
        lw_json_load(lw_str_c(&path), &j) == 0) {
        out->parameters = json_integer_value(json_object_get(j, "parameters"));
        out->loss = json_number_value(json_object_get(j, "final_loss"));
        out->seconds = json_number_value(json_object_get(j, "seconds"));
    }
    return 0;
}

static int check_checkpoint(const lw_train_config *c, const lw_train_job *job,
                            lw_train_state *state, bool *over)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint ck = {0};
    LW_TRY(find_checkpoint(c, &dir));
    LW_TRY(lw_checkpoint_peek(lw_str_c(&dir), &ck));
    LW_TRY(check_kin(c, job->name, lw_str_c(&dir), &ck));
    LW_TRY(check_goal(c, job, lw_str_c(&dir), &ck, state));
    bool in_place = inside(lw_str_c(&dir), c->output_dir);
    if (!in_place && c->resume_from)
        LW_TRY(lw_run_dir_refuse(c->output_dir));
    *over = ck.step == state->steps && is_over(c, &ck, in_place);
    return 0;
}

int lw_train_check(const lw_train_config *c, const lw_train_job *job, const lw_observer *obs,
                   lw_train_result *out, bool *over)
{
    lw_train_state state = {.steps = c->steps};
    *over = false;
    memset(out, 0, sizeof *out);
    out->unit = job->unit;
    bool resumes = c->resume || c->resume_from;
    LW_CLEANUP(lw_model_place_clear) lw_model_place start = {0};
    if (c->reschedule && !resumes)
        return lw_fail(LW_EUSAGE, "--reschedule: only with --resume or --resume-from");
    if (resumes && (c->resume_from || !no_checkpoint_yet(c->output_dir)))
        LW_TRY(check_checkpoint(c, job, &state, over));
    else if (!resumes)
        LW_TRY(lw_run_dir_refuse(c->output_dir));
    if (*over)
        return lw_train_nothing_left(c, state.steps, obs, out);
    if (state.first == 0 && c->init_from)
        LW_TRY(lw_train_init_find(c, &start));
    if (state.steps < 1 && c->minutes <= 0.0)
        return lw_fail(LW_EUSAGE, "%s: say how long: --steps N%s or --minutes M", job->name,
                       job->also_long ? job->also_long : "");
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

int lw_train_begins_with(const lw_train_config *c, lw_model_place *out)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    if (c->resume_from || (c->resume && !no_checkpoint_yet(c->output_dir))) {
        LW_TRY(find_checkpoint(c, &dir));
        return lw_model_find(lw_str_c(&dir), false, out);
    }
    return c->init_from ? lw_train_init_find(c, out) : 0;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* A new reference, NULL when there is none of that type. */
static json_t *kept(const lw_checkpoint *ck, const char *key, json_type type)
{
    json_t *x = json_object_get(ck->extra, key);
    return x && json_typeof(x) == type ? json_incref(x) : NULL;
}

static void read_state(const char *output_dir, const char *dir, const lw_checkpoint *ck,
                       lw_train_state *s)
{
    const json_t *work = json_object_get(ck->extra, "work");
    s->in_place = inside(dir, output_dir);
    s->seconds = ck->train_seconds;
    s->work = (lw_train_work){json_number_value(json_object_get(work, "wall_s")),
                              json_number_value(json_object_get(work, "cpu_s"))};
    if (!work && ck->step > 0) /* stays unknown, whatever is added */
        s->work.wall = -1e30;
    s->pending = s->in_place ? kept(ck, "pending_row", JSON_OBJECT) : NULL;
    s->pending_grid = s->in_place && json_is_true(json_object_get(ck->extra, "pending_grid"));
    s->left_undone = s->in_place && !lw_train_is_concluded(output_dir, ck->step);
    s->best = s->in_place ? kept(ck, "best", JSON_OBJECT) : NULL;
    s->init = kept(ck, "init", JSON_OBJECT);
    s->rescheduled = kept(ck, "rescheduled", JSON_ARRAY);
    s->recipe = json_incref(json_object_get(ck->extra, "recipe_state"));
}

int lw_train_resume(const lw_train_config *c, const lw_train_job *job, lw_train_state *out)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint ck = {0};
    *out = (lw_train_state){.steps = c->steps, .in_place = c->resume};
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
    LW_TRY(check_names(c, job, lw_str_c(&dir), &ck));
    LW_TRY(check_sources(job, lw_str_c(&dir), &ck));
    LW_TRY(check_goal(c, job, lw_str_c(&dir), &ck, out));
    read_state(c->output_dir, lw_str_c(&dir), &ck, out);
    return 0;
}

void lw_train_state_clear(lw_train_state *s)
{
    lw_json_drop(&s->pending);
    lw_json_drop(&s->best);
    lw_json_drop(&s->init);
    lw_json_drop(&s->rescheduled);
    lw_json_drop(&s->recipe);
}
