/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a file or folder. */
#include "jobs/inspect/inspect_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/session_forward.h"

/* Owned values, as jansson wants them; a failed allocation shows up as a missing key. */
static void put(json_t *o, const char *key, json_t *value)
{
    json_object_set_new(o, key, value);
}
static void put_int(json_t *o, const char *key, int64_t v)
{
    put(o, key, json_integer((json_int_t)v));
}

/* ---- arrays ---------------------------------------------------------------------------------- */

enum { STATS_BLOCK = 4096 };

/* Range, RMS and values that are not finite; reads everything. */
static void put_stats(json_t *o, lw_elem type, const void *data, int64_t count)
{
    double lo = HUGE_VAL, hi = -HUGE_VAL, sum = 0;
    int64_t bad = 0;
    float block[STATS_BLOCK];
    for (int64_t at = 0; at < count; at += STATS_BLOCK) {
        int64_t n = LW_MIN(count - at, (int64_t)STATS_BLOCK);
        lw_elem_to_f32(type, (const char *)data + (size_t)at * lw_elem_size(type), n, block);
        for (int64_t i = 0; i < n; i++) {
            double v = (double)block[i];
            bad += !isfinite(v);
            lo = isfinite(v) ? fmin(lo, v) : lo;
            hi = isfinite(v) ? fmax(hi, v) : hi;
            sum += isfinite(v) ? v * v : 0;
        }
    }
    put(o, "min", lw_json_real(lo));
    put(o, "max", lw_json_real(hi));
    put(o, "rms", lw_json_real(sqrt(sum / (double)LW_MAX(count - bad, 1))));
    put_int(o, "not_finite", bad);
}

/* One row of a table of arrays. */
static json_t *array_row(const char *name, lw_elem type, int rank, const int64_t *shape,
                         const void *data, int64_t count, bool stats)
{
    char text[192];
    json_t *o = json_object();
    if (name)
        put(o, "name", json_string(name));
    put(o, "type", json_string(lw_elem_name(type)));
    put(o, "shape", json_string(lw_shape_text(text, rank, shape)));
    put_int(o, "bytes", count * (int64_t)lw_elem_size(type));
    if (stats)
        put_stats(o, type, data, count);
    return o;
}

static int inspect_npy(const char *path, bool stats, json_t *o)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_npy_load(path, &a));
    put(o, "kind", json_string("npy"));
    json_t *row = array_row(NULL, a.type, a.rank, a.shape, a.data, a.count, stats);
    json_object_update(o, row);
    json_decref(row);
    return 0;
}

typedef struct npz_rows {
    json_t *rows;
    bool stats;
} npz_rows;

static int add_npz_row(void *arg, const char *name, lw_array *a)
{
    npz_rows *r = arg;
    json_array_append_new(r->rows,
                          array_row(name, a->type, a->rank, a->shape, a->data, a->count, r->stats));
    return 0;
}

/* Headers only, unless the data is measured. */
static int inspect_npz(const char *path, bool stats, json_t *o)
{
    LW_CLEANUP(lw_json_drop) json_t *rows = json_array();
    npz_rows r = {rows, stats};
    LW_TRY(lw_npz_each(path, stats, add_npz_row, &r));
    put(o, "kind", json_string("npz"));
    put(o, "arrays", json_incref(rows));
    return 0;
}

static int inspect_tensors(const char *path, const char *kind, bool stats, json_t *o)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_open(path, &f));
    json_t *rows = json_array(), *meta = json_object();
    int64_t count = 0, bytes = 0;
    for (size_t i = 0; i < lw_st_count(f); i++) {
        const lw_st_tensor *t = lw_st_at(f, i);
        json_array_append_new(
            rows, array_row(t->name, t->type, t->rank, t->shape, t->data, t->count, stats));
        count += t->count;
        bytes += (int64_t)t->bytes;
    }
    for (size_t i = 0; i < lw_st_meta_count(f); i++) {
        const char *key, *value;
        lw_st_meta_at(f, i, &key, &value);
        put(meta, key, json_string(value));
    }
    put(o, "kind", json_string(kind));
    put(o, "metadata", meta);
    put_int(o, "count", (int64_t)lw_st_count(f));
    put_int(o, "elements", count);
    put_int(o, "bytes", bytes);
    put(o, "tensors", rows);
    return 0;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int inspect_image(const char *path, const char *kind, json_t *o)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_CLEANUP(lw_json_drop) json_t *texts = NULL;
    LW_TRY(lw_image_load(path, &im));
    put(o, "kind", json_string(kind));
    put_int(o, "width", im.width);
    put_int(o, "height", im.height);
    if (strcmp(kind, "png") != 0)
        return 0;
    LW_TRY(lw_png_texts(path, &texts));
    put(o, "text", json_incref(texts));
    return 0;
}

static bool is_torch(const char *path)
{
    return lw_str_ends(path, ".pth") || lw_str_ends(path, ".pt") || lw_str_ends(path, ".bin");
}

static int inspect_file(const char *path, bool stats, json_t *o)
{
    LW_CLEANUP(lw_free) char *head = NULL;
    size_t n = 0;
    lw_map map = {0};
    LW_TRY(lw_map_open(&map, path));
    n = LW_MIN(map.size, (size_t)12);
    head = lw_calloc(13, 1);
    if (head && n > 0)
        memcpy(head, map.data, n);
    lw_map_close(&map);
    if (!head)
        return LW_ENOMEM;
    if (n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0)
        return inspect_npy(path, stats, o);
    if (is_torch(path))
        return inspect_tensors(path, "torch", stats, o);
    if (n >= 4 && memcmp(head, "PK\3\4", 4) == 0)
        return inspect_npz(path, stats, o);
    if (lw_str_ends(path, ".safetensors") || lw_str_ends(path, ".safetensors.index.json"))
        return inspect_tensors(path, "safetensors", stats, o);
    if (lw_image_kind(head, n))
        return inspect_image(path, lw_image_kind(head, n), o);
    return lw_fail(LW_EFORMAT,
                   "%s: neither safetensors, torch (.pth, .pt, .bin), npy, npz nor a picture",
                   path);
}

/* ---- folders --------------------------------------------------------------------------------- */

static bool holds(const char *dir, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    return lw_path_exists(lw_path_join(&path, dir, name));
}

static int put_json_file(json_t *o, const char *key, const char *dir, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    json_t *tree = NULL;
    if (!holds(dir, name))
        return 0;
    lw_path_join(&path, dir, name);
    LW_TRY(lw_str_ends(name, ".yaml") ? lw_yaml_load(lw_str_c(&path), &tree)
                                      : lw_json_load(lw_str_c(&path), &tree));
    put(o, key, tree);
    return 0;
}

static int inspect_model(const char *dir, bool stats, json_t *o)
{
    LW_CLEANUP(lw_str_clear) lw_str weights = {0};
    LW_CLEANUP(lw_json_drop) json_t *file = json_object();
    put(o, "kind", json_string(holds(dir, "state.json") ? "checkpoint" : "model"));
    LW_TRY(put_json_file(o, "state", dir, "state.json"));
    LW_TRY(put_json_file(o, "config", dir, "config.json"));
    LW_TRY(lw_model_weights_find(dir, &weights));
    LW_TRY(inspect_tensors(lw_str_c(&weights), "weights", stats, file));
    put(o, "weights", json_string(lw_str_c(&weights)));
    put(o, "elements", json_incref(json_object_get(file, "elements")));
    put(o, "bytes", json_incref(json_object_get(file, "bytes")));
    put(o, "tensors", json_incref(json_object_get(file, "tensors")));
    return 0;
}

static int put_checkpoints(json_t *o, const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, path = {0}, last = {0};
    char **names = NULL;
    size_t n = 0;
    LW_TRY(lw_list_dir(lw_path_join(&dir, run, "checkpoints"), &names, &n));
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        lw_checkpoint c = {0};
        if (!lw_str_starts(names[i], "step_"))
            continue;
        json_t *row = json_object();
        lw_path_join(&path, lw_str_c(&dir), names[i]);
        int rc = lw_checkpoint_peek(lw_str_c(&path), &c);
        put(row, "name", json_string(names[i]));
        put(row, "step", rc < 0 ? json_null() : json_integer((json_int_t)c.step));
        put(row, "images", rc < 0 ? json_null() : json_integer((json_int_t)c.images));
        put(row, "whole", json_boolean(rc == 0));
        json_array_append_new(rows, row);
        lw_checkpoint_clear(&c);
    }
    lw_list_free(&names, n);
    put(o, "checkpoints", rows);
    if (lw_checkpoint_latest(run, &last) == 0)
        put(o, "last", json_string(lw_str_c(&last)));
    lw_errclear();
    return 0;
}

static int inspect_run(const char *run, json_t *o)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *rows = NULL;
    put(o, "kind", json_string("run"));
    LW_TRY(put_json_file(o, "config", run, "config.yaml"));
    LW_TRY(put_json_file(o, "env", run, "env.json"));
    LW_TRY(put_json_file(o, "summary", run, "summary.json"));
    if (holds(run, "metrics.jsonl")) {
        LW_TRY(lw_jsonl_load(lw_path_join(&path, run, "metrics.jsonl"), &rows));
        size_t n = json_array_size(rows);
        put_int(o, "logged_rows", (int64_t)n);
        if (n > 0)
            put(o, "newest_row", json_incref(json_array_get(rows, n - 1)));
    }
    return put_checkpoints(o, run);
}

static int inspect_any(const char *path, bool stats, json_t *o)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    lw_place_kind kind;
    LW_TRY(lw_place_look(path, &kind));
    put(o, "path", json_string(path));
    if (kind == LW_PLACE_FILE)
        return inspect_file(path, stats, o);
    if (kind == LW_PLACE_RUN)
        return inspect_run(path, o);
    LW_TRY(lw_model_find(path, false, &p));
    return inspect_model(lw_str_c(&p.path), stats, o);
}

int lw_job_inspect(const char *path, bool stats, json_t **out)
{
    LW_CLEANUP(lw_json_drop) json_t *o = json_object();
    if (!o)
        return lw_fail(LW_ENOMEM, "no memory for %s", path);
    LW_TRY(inspect_any(path, stats, o));
    *out = lw_steal(&o);
    return 0;
}
