/* SPDX-License-Identifier: Apache-2.0 */
/* Going on from a checkpoint: which one, whether it belongs to this run, and what it says. */
#include "recipes/recipes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* A run that was stopped before its first checkpoint has no step directory, not even a damaged one.
 */
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

/* What a checkpoint must share with the run that goes on from it: method and seed; ISA and element
 * type are worth a warning. */
static int check_kin(const lw_train_config *c, const char *recipe, const char *isa, const char *dir,
                     const lw_checkpoint *ck)
{
    const char *trained = json_string_value(json_object_get(ck->extra, "recipe"));
    if (trained && !lw_str_eq(trained, recipe))
        return lw_fail(LW_EUSAGE, "%s was made by `%s`, not by `%s`", dir, trained, recipe);
    if ((uint64_t)c->seed != ck->seed)
        return lw_fail(LW_EUSAGE, "%s was trained with --seed %llu, not %lld", dir,
                       (unsigned long long)ck->seed, (long long)c->seed);
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
    const char *precision = json_string_value(json_object_get(ck->extra, "precision"));
    precision = precision ? precision : lw_precision_name(LW_NUM_F32);
    if (!lw_str_eq(precision, lw_precision_name(c->precision)))
        lw_log(LW_LOG_WARN, "train",
               "%s was trained with --precision %s, this is %s: results are not those of one run",
               dir, precision, lw_precision_name(c->precision));
    return 0;
}

/* The step a checkpoint's training was going for; unchanged when it does not say. */
static int read_goal(const lw_checkpoint *ck, const char *dir, int64_t *steps)
{
    int64_t total = 0;
    if (!json_object_get(ck->extra, "total_steps"))
        return 0;
    LW_TRY(lw_json_get_i64(ck->extra, dir, "total_steps", &total));
    if (total < 0 || total > LW_MAX_STEPS)
        return lw_fail(LW_EFORMAT, "%s: state.json: 'total_steps' is %lld, must be 0 to %lld", dir,
                       (long long)total, (long long)LW_MAX_STEPS);
    *steps = total;
    return 0;
}

int lw_train_resume(lw_train_config *c, const char *recipe, lw_device *dev, lw_store *store,
                    int64_t *step)
{
    return lw_train_resume_with(c, recipe, dev, store, step, NULL);
}

int lw_train_resume_with(lw_train_config *c, const char *recipe, lw_device *dev, lw_store *store,
                         int64_t *step, json_t **extra)
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
    LW_TRY(lw_checkpoint_load(lw_str_c(&dir), store, &ck));
    LW_TRY(check_kin(c, recipe, lw_isa_name(lw_cpu_kernels(dev)->isa), lw_str_c(&dir), &ck));
    if (c->steps == 0)
        LW_TRY(read_goal(&ck, lw_str_c(&dir), &c->steps));
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

int lw_train_pending(const lw_train_config *c, int64_t step, json_t **row)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint ck = {0};
    if (!c->resume || step == 0)
        return 0;
    LW_TRY(find_checkpoint(c, &dir));
    LW_TRY(lw_checkpoint_peek(lw_str_c(&dir), &ck));
    json_t *pending = json_object_get(ck.extra, "pending_row");
    if (ck.step == step && json_is_object(pending))
        *row = json_incref(pending);
    return 0;
}
