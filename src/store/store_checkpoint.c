/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a checkpoint: everything under a temporary name, fsync, rename, then `last`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store_private.h"

int lw_model_folder_save(const char *dir, const lw_store *s, lw_slab slab, const json_t *config,
                         const char *weights)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(lw_json_save(lw_path_join(&path, dir, "config.json"), config));
    lw_path_join(&path, dir, weights ? weights : LW_WEIGHTS_DIFFUSERS);
    return lw_store_save(s, slab, lw_str_c(&path), NULL, 0);
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
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)lw_store_hash(s, slab));
    return json_string(text);
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

static int write_all(const char *dir, const lw_store *s, const lw_checkpoint *c)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_model_folder_save(dir, s, LW_SLAB_PARAM, c->config, c->weights));
    LW_TRY(lw_model_folder_save(lw_path_join(&path, dir, "ema"), s, LW_SLAB_EMA, c->config,
                                c->weights));
    LW_TRY(lw_fsync_path(lw_str_c(&path)));
    LW_TRY(save_optimizer(lw_path_join(&path, dir, "optimizer.safetensors"), s));
    LW_TRY(save_state(lw_path_join(&path, dir, "state.json"), s, c));
    return lw_fsync_path(dir);
}

static int rename_failed(const char *path)
{
    return lw_fail(LW_EIO, "%s: cannot rename into place: %s", path, strerror(errno));
}

/* tmp becomes final. An older directory of that name changes places with it (one atomic step), so
 * that there is a whole checkpoint under the name at any moment; the old one is removed afterwards.
 */
static int move_into_place(const char *tmp, const char *final)
{
    if (!lw_path_exists(final))
        return rename(tmp, final) == 0 ? 0 : rename_failed(final);
    if (renameat2(AT_FDCWD, tmp, AT_FDCWD, final, RENAME_EXCHANGE) == 0)
        return lw_remove_tree(tmp);
    /* A file system without exchange: the old one goes first. */
    LW_TRY(lw_remove_tree(final));
    return rename(tmp, final) == 0 ? 0 : rename_failed(final);
}

static int point_last(const char *checkpoints, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str tmp = {0}, last = {0};
    lw_path_join(&tmp, checkpoints, STORE_TMP_PREFIX "last");
    lw_path_join(&last, checkpoints, "last");
    unlink(lw_str_c(&tmp));
    if (symlink(name, lw_str_c(&tmp)) != 0)
        return lw_fail(LW_EIO, "%s: cannot make a symbolic link: %s", lw_str_c(&tmp),
                       strerror(errno));
    if (rename(lw_str_c(&tmp), lw_str_c(&last)) != 0)
        return rename_failed(lw_str_c(&last));
    return lw_fsync_path(checkpoints);
}

static int remove_leftovers(const char *checkpoints)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    LW_TRY(lw_list_dir(checkpoints, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++)
        if (lw_str_starts(names[i], STORE_TMP_PREFIX))
            rc = lw_remove_tree(lw_path_join(&path, checkpoints, names[i]));
    lw_list_free(&names, n);
    return rc;
}

int lw_checkpoint_save(const char *run, const lw_store *s, const lw_checkpoint *c)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, tmp = {0}, final = {0}, tmp_name = {0};
    char name[32];
    if (!s->fixed || s->frozen)
        return lw_fail(LW_EUSAGE, "%s: only a trained store has checkpoints", run);
    lw_path_join(&dir, run, "checkpoints");
    LW_TRY(lw_mkdirs(lw_str_c(&dir)));
    LW_TRY(remove_leftovers(lw_str_c(&dir)));
    lw_store_step_name(name, c->step);
    lw_str_addf(&tmp_name, STORE_TMP_PREFIX "%s", name);
    lw_path_join(&tmp, lw_str_c(&dir), lw_str_c(&tmp_name));
    lw_path_join(&final, lw_str_c(&dir), name);
    if (tmp.failed || final.failed)
        return LW_ENOMEM;
    int rc = write_all(lw_str_c(&tmp), s, c);
    if (rc == 0)
        rc = move_into_place(lw_str_c(&tmp), lw_str_c(&final));
    if (rc < 0) {
        lw_str why = {0}; /* removing must not lose the message of what failed */
        lw_str_add(&why, lw_errmsg());
        lw_remove_tree(lw_str_c(&tmp));
        lw_fail(rc, "%s", lw_str_c(&why));
        lw_str_clear(&why);
        return rc;
    }
    LW_TRY(lw_fsync_path(lw_str_c(&dir)));
    return point_last(lw_str_c(&dir), name);
}
