/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a checkpoint: everything under a temporary name, fsync, rename, then `last`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store_private.h"

static int write_model(const char *dir, const lw_store *s, lw_slab slab, const json_t *config,
                       const char *weights)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_json_save(lw_path_join(&path, dir, "config.json"), config));
    lw_path_join(&path, dir, weights ? weights : LW_WEIGHTS_DIFFUSERS);
    return lw_store_save(s, slab, lw_str_c(&path), NULL, 0);
}

int lw_model_folder_save(const char *dir, const lw_store *s, lw_slab slab, const json_t *config,
                         const char *weights)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_TRY(lw_new_dir_begin(&d, dir, false));
    LW_TRY(write_model(lw_str_c(&d.tmp), s, slab, config, weights));
    return lw_new_dir_finish(&d);
}

static int save_optimizer(const char *path, const lw_store *s)
{
    LW_CLEANUP(lw_st_writer_free) lw_st_writer *w = NULL;
    LW_TRY(lw_st_writer_new(path, &w));
    LW_TRY(lw_st_writer_meta(w, "m", "first moment of AdamW per parameter"));
    LW_TRY(lw_st_writer_meta(w, "v", "second moment of AdamW per parameter"));
    LW_TRY(lw_store_write_header(s, "m.", w));
    LW_TRY(lw_store_write_header(s, "v.", w));
    LW_TRY(lw_store_write_data(s, LW_SLAB_M, w));
    LW_TRY(lw_store_write_data(s, LW_SLAB_V, w));
    return lw_st_writer_finish(w);
}

static json_t *hash_text(const lw_store *s, lw_slab slab)
{
    return lw_json_hash(lw_store_hash(s, slab));
}

static int save_state(const char *path, const lw_store *s, const lw_checkpoint *c)
{
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:o, s:s?, s:s, s:s, s:{s:o, s:o, s:o, s:o}}", "step", (json_int_t)c->step,
        "seed", (json_int_t)c->seed, "images", (json_int_t)c->images, "train_seconds",
        lw_json_real(c->train_seconds), "isa", c->isa, "version", lw_build_version(), "commit",
        lw_build_commit(), "hash", "model", hash_text(s, LW_SLAB_PARAM), "ema",
        hash_text(s, LW_SLAB_EMA), "m", hash_text(s, LW_SLAB_M), "v", hash_text(s, LW_SLAB_V));
    if (!j || (c->extra && json_object_set(j, "extra", c->extra) != 0))
        return lw_fail(LW_ENOMEM, "%s: no memory for the state", path);
    return lw_json_save(path, j);
}

static int write_files(const char *dir, const json_t *files)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *name;
    json_t *content;
    json_object_foreach((json_t *)(uintptr_t)files, name, content)
        LW_TRY(lw_json_save(lw_path_join(&path, dir, name), content));
    return 0;
}

static int write_ema(const char *dir, const lw_store *s, const lw_checkpoint *c)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_mkdir_own(lw_path_join(&path, dir, "ema")));
    LW_TRY(write_model(lw_str_c(&path), s, LW_SLAB_EMA, c->config, c->weights));
    LW_TRY(write_files(lw_str_c(&path), c->files));
    return lw_fsync_path(lw_str_c(&path));
}

static bool ema_is_model(const lw_store *s)
{
    return memcmp(lw_store_host(s, LW_SLAB_EMA), lw_store_host(s, LW_SLAB_PARAM),
                  sizeof(float) * (size_t)s->floats) == 0;
}

static int write_all(const char *dir, const lw_store *s, const lw_checkpoint *c)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(write_model(dir, s, LW_SLAB_PARAM, c->config, c->weights));
    LW_TRY(write_files(dir, c->files));
    if (c->averaged || !ema_is_model(s))
        LW_TRY(write_ema(dir, s, c));
    LW_TRY(save_optimizer(lw_path_join(&path, dir, "optimizer.safetensors"), s));
    return save_state(lw_path_join(&path, dir, "state.json"), s, c);
}

/* checkpoints/LINK -> name */
static int point_link(const char *checkpoints, const char *link, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str tmp = {0}, last = {0};
    lw_path_join(&tmp, checkpoints, LW_TMP_PREFIX "link");
    lw_path_join(&last, checkpoints, link);
    unlink(lw_str_c(&tmp));
    if (symlink(name, lw_str_c(&tmp)) != 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot make a symbolic link: %s", lw_str_c(&tmp),
                       strerror(errno));
    if (rename(lw_str_c(&tmp), lw_str_c(&last)) != 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot rename into place: %s", lw_str_c(&last),
                       strerror(errno));
    return lw_fsync_path(checkpoints);
}

static int remove_leftovers(const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    if (!lw_path_exists(dir))
        return 0;
    LW_TRY(lw_list_dir(dir, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++)
        if (lw_str_starts(names[i], LW_TMP_PREFIX))
            rc = lw_remove_tree(lw_path_join(&path, dir, names[i]));
    lw_list_free(&names, n);
    return rc;
}

int lw_checkpoint_save(const char *run, const lw_store *s, const lw_checkpoint *c)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, best = {0}, final = {0};
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    char name[32];
    if (!s->fixed || s->frozen)
        return lw_fail(LW_EUSAGE, "%s: only a trained store has checkpoints", run);
    lw_path_join(&dir, run, "checkpoints");
    LW_TRY(lw_mkdirs(run));
    LW_TRY(lw_mkdir_own(lw_str_c(&dir)));
    LW_TRY(remove_leftovers(lw_str_c(&dir)));
    LW_TRY(remove_leftovers(lw_path_join(&best, run, "best"))); /* a policy has one */
    lw_path_join(&final, lw_str_c(&dir), lw_store_step_name(name, c->step));
    if (final.failed)
        return LW_ENOMEM;
    LW_TRY(lw_new_dir_begin(&d, lw_str_c(&final), true));
    LW_TRY(write_all(lw_str_c(&d.tmp), s, c));
    LW_TRY(lw_new_dir_finish(&d));
    return point_link(lw_str_c(&dir), "last", name);
}

static int point_at_whole(const char *run, const char *link, int64_t step)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, path = {0};
    char name[32];
    lw_path_join(&dir, run, "checkpoints");
    lw_path_join(&path, lw_str_c(&dir), lw_store_step_name(name, step));
    if (!lw_store_dir_whole(lw_str_c(&path)))
        return lw_fail(LW_EFORMAT, "%s: not a whole checkpoint", lw_str_c(&path));
    return point_link(lw_str_c(&dir), link, name);
}

int lw_checkpoint_best(const char *run, int64_t step)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (step >= 0)
        return point_at_whole(run, "best", step);
    unlink(lw_path_join(&path, run, "checkpoints/best"));
    return 0;
}

int lw_checkpoint_last(const char *run, int64_t step)
{
    return point_at_whole(run, "last", step);
}
