/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, counting and removing step directories; finding the model behind a SOURCE. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store_private.h"

const char *lw_store_step_name(char buf[32], int64_t step)
{
    snprintf(buf, 32, "step_%07lld", (long long)step);
    return buf;
}

bool lw_store_parse_step(const char *name, int64_t *step)
{
    const char *digits = name + 5;
    char again[32];
    if (!lw_str_starts(name, "step_") || strspn(digits, "0123456789") != strlen(digits) ||
        strlen(digits) > 18)
        return false;
    *step = strtoll(digits, NULL, 10);
    return strcmp(lw_store_step_name(again, *step), name) == 0; /* neither shorter nor longer */
}

static bool has_file(const char *dir, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    return lw_path_exists(lw_path_join(&path, dir, name));
}

int lw_model_weights_find(const char *dir, lw_str *path)
{
    static const char *const names[] = {LW_WEIGHTS_DIFFUSERS,
                                        LW_WEIGHTS_HF,
                                        LW_WEIGHTS_DIFFUSERS ".index.json",
                                        LW_WEIGHTS_HF ".index.json",
                                        "open_clip_model.safetensors",
                                        "diffusion_pytorch_model.bin",
                                        "pytorch_model.bin",
                                        "pytorch_model.bin.index.json",
                                        "open_clip_pytorch_model.bin"};
    if (!lw_path_is_dir(dir)) {
        path->len = 0;
        lw_str_add(path, dir);
        return path->failed ? LW_ENOMEM : 0;
    }
    for (size_t i = 0; i < LW_COUNT(names); i++)
        if (has_file(dir, names[i]))
            return lw_path_join(path, dir, names[i]), path->failed ? LW_ENOMEM : 0;
    return lw_fail(LW_EFORMAT, "%s: no weights (%s or %s)", dir, LW_WEIGHTS_DIFFUSERS,
                   LW_WEIGHTS_HF);
}

bool lw_store_dir_whole(const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (!has_file(dir, "config.json") || !has_file(dir, "state.json") ||
        !has_file(dir, "optimizer.safetensors"))
        return false;
    if (lw_model_weights_find(dir, &path) < 0) {
        lw_errclear();
        return false;
    }
    return true;
}

/* ---- the steps of a run ---------------------------------------------------------------------- */

typedef struct step_list {
    int64_t *step; /* ascending */
    size_t n, cap;
} step_list;

static void step_list_clear(step_list *l)
{
    lw_free(&l->step);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int list_steps(const char *dir, step_list *out)
{
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    if (!lw_path_is_dir(dir))
        return 0;
    LW_TRY(lw_list_dir(dir, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++) {
        int64_t step;
        if (!lw_store_parse_step(names[i], &step))
            continue;
        rc = lw_grow(&out->step, &out->cap, out->n + 1, sizeof *out->step);
        if (rc == 0)
            out->step[out->n++] = step;
    }
    lw_list_free(&names, n);
    if (out->n)
        qsort(out->step, out->n, sizeof *out->step, ascending);
    return rc;
}

/* The step that a link points at, or -1. */
static int64_t linked_step(const char *checkpoints, const char *link)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char target[64];
    int64_t step;
    ssize_t n = readlink(lw_path_join(&path, checkpoints, link), target, sizeof target - 1);
    if (n < 0)
        return -1;
    target[n] = '\0';
    return lw_store_parse_step(target, &step) ? step : -1;
}

static bool step_whole(const char *checkpoints, int64_t step, lw_str *dir)
{
    char name[32];
    return step >= 0 &&
           lw_store_dir_whole(lw_path_join(dir, checkpoints, lw_store_step_name(name, step)));
}

int lw_checkpoint_latest(const char *run, lw_str *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str checkpoints = {0}, found = {0};
    LW_CLEANUP(step_list_clear) step_list l = {0};
    bool found_run;
    lw_path_join(&checkpoints, run, "checkpoints");
    LW_TRY(lw_path_look(run, &found_run));
    if (!found_run)
        return lw_fail(LW_EIO, "%s: no such run directory", run);
    bool ok = step_whole(lw_str_c(&checkpoints), linked_step(lw_str_c(&checkpoints), "last"),
                         &found);
    if (!ok)
        LW_TRY(list_steps(lw_str_c(&checkpoints), &l));
    while (!ok && l.n > 0)
        ok = step_whole(lw_str_c(&checkpoints), l.step[--l.n], &found);
    if (!ok)
        return lw_fail(LW_EFORMAT, "%s: no whole checkpoint under checkpoints/", run);
    dir->len = 0;
    lw_str_add(dir, lw_str_c(&found));
    return dir->failed ? LW_ENOMEM : 0;
}

/* Renamed first, so that an interrupted removal leaves no half step directory under its
 * own name. */
static int remove_step(const char *checkpoints, int64_t step)
{
    LW_CLEANUP(lw_str_clear) lw_str from = {0}, to = {0}, doomed = {0};
    char name[32];
    lw_path_join(&from, checkpoints, lw_store_step_name(name, step));
    lw_str_addf(&doomed, LW_TMP_PREFIX "old_%s", name);
    lw_path_join(&to, checkpoints, lw_str_c(&doomed));
    LW_TRY(lw_remove_tree(lw_str_c(&to)));
    if (rename(lw_str_c(&from), lw_str_c(&to)) != 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot remove: %s", lw_str_c(&from),
                       strerror(errno));
    return lw_remove_tree(lw_str_c(&to));
}

int lw_checkpoint_prune(const char *run, int keep)
{
    LW_CLEANUP(lw_str_clear) lw_str checkpoints = {0};
    LW_CLEANUP(step_list_clear) step_list l = {0};
    lw_path_join(&checkpoints, run, "checkpoints");
    if (keep < 1)
        return 0;
    LW_TRY(list_steps(lw_str_c(&checkpoints), &l));
    int64_t last = linked_step(lw_str_c(&checkpoints), "last"),
            best = linked_step(lw_str_c(&checkpoints), "best");
    for (size_t i = 0; i + (size_t)keep < l.n; i++)
        if (l.step[i] != last && l.step[i] != best)
            LW_TRY(remove_step(lw_str_c(&checkpoints), l.step[i]));
    return 0;
}

/* ---- SOURCE -> model ------------------------------------------------------------------------- */

/* The name of a model folder's configuration; NULL: it has none. */
static const char *config_of(const char *dir)
{
    static const char *const names[] = {"config.json", "open_clip_config.json"};
    for (size_t i = 0; i < LW_COUNT(names); i++)
        if (has_file(dir, names[i]))
            return names[i];
    return NULL;
}

int lw_place_look(const char *path, lw_place_kind *out)
{
    LW_CLEANUP(lw_str_clear) lw_str weights = {0};
    bool there;
    LW_TRY(lw_path_look(path, &there));
    if (!there)
        return lw_fail(LW_EIO, "%s: no such run, checkpoint, model folder or file", path);
    if (!lw_path_is_dir(path))
        *out = LW_PLACE_FILE;
    else if (has_file(path, "checkpoints"))
        *out = LW_PLACE_RUN;
    else if (config_of(path))
        *out = LW_PLACE_MODEL;
    else if (has_file(path, "model_index.json"))
        *out = LW_PLACE_PIPELINE;
    else if (lw_model_weights_find(path, &weights) == 0)
        *out = LW_PLACE_WEIGHTS;
    else
        return lw_fail(LW_EFORMAT,
                       "%s: neither a run directory (no checkpoints/) nor a model folder (no "
                       "config.json, no weights called %s or %s)",
                       path, LW_WEIGHTS_DIFFUSERS, LW_WEIGHTS_HF);
    return 0;
}

int lw_model_find(const char *source, bool ema, lw_model_place *out)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    LW_TRY(lw_place_look(source, &p.kind));
    lw_str_add(&p.path, source);
    if (p.kind == LW_PLACE_RUN)
        LW_TRY(lw_checkpoint_latest(source, &p.path));
    if (p.kind == LW_PLACE_PIPELINE)
        lw_str_add(&p.path, "/unet");
    if (p.kind != LW_PLACE_FILE && p.kind != LW_PLACE_WEIGHTS) {
        if (ema && has_file(lw_str_c(&p.path), "ema/config.json"))
            lw_str_add(&p.path, "/ema");
        const char *name = config_of(lw_str_c(&p.path));
        lw_path_join(&p.config_path, lw_str_c(&p.path), name ? name : "config.json");
        LW_TRY(lw_json_load(lw_str_c(&p.config_path), &p.config));
    }
    if (p.path.failed || p.config_path.failed)
        return LW_ENOMEM;
    *out = p;
    p = (lw_model_place){0};
    return 0;
}

void lw_model_place_clear(lw_model_place *p)
{
    lw_str_clear(&p->path);
    lw_str_clear(&p->config_path);
    lw_json_drop(&p->config);
    *p = (lw_model_place){0};
}
