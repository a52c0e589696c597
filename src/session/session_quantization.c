/* SPDX-License-Identifier: Apache-2.0 */
/* Names of element types; quantization.json. */
#include "session/session_quantization.h"

#include <float.h>

#include "formats/formats.h"

struct lw_quantization {
    json_t *tree; /* owns the names */
    lw_edge_range *edge;
    lw_calibration ranges;
};

static const char file_name[] = "quantization.json";
enum { VERSION = 1 };

const char *lw_precision_name(int32_t num)
{
    static const char *const names[LW_NUM_COUNT] = {"f32", "bf16", "int8"};
    LW_ASSERT(num >= 0 && num < LW_NUM_COUNT, "precision %d", (int)num);
    return names[num];
}

/* Or says nothing of weights, as files made by hand may. */
static bool measured_with(const lw_quantization *q, const lw_store *s)
{
    const json_t *hash = json_object_get(json_object_get(q->tree, "calibration"), "model_hash");
    if (!hash)
        return true;
    LW_CLEANUP(lw_json_drop) json_t *have = lw_json_hash(lw_store_hash(s, LW_SLAB_PARAM));
    return json_equal(hash, have);
}

int lw_precision_check(int32_t num, const lw_quantization *q, const lw_network *n, const char *name)
{
    if (num != LW_NUM_S8)
        return 0;
    if (!q)
        return lw_fail(LW_EUSAGE,
                       "%s has no %s: int8 needs measured ranges. Make a model folder with them: "
                       "leeway quantize %s",
                       name, file_name, name);
    return measured_with(q, n->store)
               ? 0
               : lw_fail(LW_EFORMAT,
                         "%s: %s holds ranges of other weights. Measure those of these: leeway "
                         "quantize %s",
                         name, file_name, name);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Scales that f32 holds, and so their inverses and 255 times them. */
static bool is_scale(double v)
{
    return v >= (double)FLT_MIN && v <= (double)FLT_MAX / 255.0;
}

static int read_edge(const char *path, const char *name, const json_t *e, lw_edge_range *out)
{
    LW_CLEANUP(lw_str_clear) lw_str at = {0};
    double scale = 0.0;
    int64_t zero = -1;
    lw_str_addf(&at, "%s: %s", path, name);
    LW_TRY(lw_json_opt_f64(e, lw_str_c(&at), "scale", &scale));
    LW_TRY(lw_json_opt_i64(e, lw_str_c(&at), "zero", &zero));
    if (!is_scale(scale) || zero < 0 || zero > 255)
        return lw_fail(LW_EFORMAT, "%s: 'scale' must be positive and finite and 'zero' 0 to 255",
                       lw_str_c(&at));
    *out = (lw_edge_range){.name = name, .scale = (float)scale, .zero = (int32_t)zero};
    return 0;
}

static int read_edges(const char *path, lw_quantization *q)
{
    json_t *edges = json_object_get(q->tree, "edges"), *e;
    const char *name;
    if (json_integer_value(json_object_get(q->tree, "version")) != VERSION)
        return lw_fail(LW_EFORMAT, "%s: 'version' must be %d", path, VERSION);
    if (!json_is_object(edges) || json_object_size(edges) == 0)
        return lw_fail(LW_EFORMAT, "%s: 'edges' must be an object and not empty", path);
    q->edge = lw_calloc(json_object_size(edges), sizeof *q->edge);
    if (!q->edge)
        return LW_ENOMEM;
    json_object_foreach(edges, name, e) LW_TRY(read_edge(path, name, e, &q->edge[q->ranges.n++]));
    q->ranges.edge = q->edge;
    return 0;
}

int lw_quantization_find(const char *dir, lw_quantization **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_path_join(&path, dir, file_name);
    if (!lw_path_exists(lw_str_c(&path)))
        return 0;
    LW_CLEANUP(lw_quantization_free) lw_quantization *q = lw_calloc(1, sizeof *q);
    if (!q)
        return LW_ENOMEM;
    LW_TRY(lw_json_load(lw_str_c(&path), &q->tree));
    LW_TRY(read_edges(lw_str_c(&path), q));
    *out = lw_steal(&q);
    return 0;
}

int lw_quantization_need(const lw_network *n, int32_t precision, lw_quantization **out)
{
    LW_TRY(lw_quantization_find(n->dir, out));
    return lw_precision_check(precision, *out, n, n->dir);
}

void lw_quantization_free(lw_quantization **pp)
{
    lw_quantization *q = *pp;
    if (!q)
        return;
    json_decref(q->tree);
    lw_free(&q->edge);
    lw_free(pp);
}

uint64_t lw_quantization_hash(const lw_quantization *q)
{
    uint64_t h = 0;
    for (int32_t i = 0; i < q->ranges.n; i++) {
        const lw_edge_range *e = &q->edge[i];
        uint64_t word[4] = {h, lw_hash_name(e->name), 0, (uint64_t)e->zero};
        memcpy(&word[2], &e->scale, sizeof e->scale);
        h = lw_hash64(word, sizeof word);
    }
    return h;
}

const lw_calibration *lw_quantization_ranges(const lw_quantization *q)
{
    return q ? &q->ranges : NULL;
}

bool lw_weights_averaged(const char *dir, const lw_quantization *q)
{
    const json_t *about = q ? json_object_get(q->tree, "calibration") : NULL;
    const char *weights = json_string_value(json_object_get(about, "weights"));
    return lw_str_ends(dir, "/ema") || (weights && lw_str_eq(weights, "ema"));
}

/* ---- writing --------------------------------------------------------------------------------- */

int lw_quantization_save(const char *dir, const lw_edge_seen *edge, int32_t n, json_t *about)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *tree = json_object();
    json_t *edges = json_object();
    json_object_set_new(tree, "version", json_integer(VERSION));
    json_object_set(tree, "calibration", about);
    json_object_set_new(tree, "edges", edges);
    for (int32_t i = 0; i < n; i++) {
        const lw_edge_seen *e = &edge[i];
        json_object_set_new(edges, e->name,
                            json_pack("{s:f, s:i, s:f, s:f, s:f}", "scale", (double)e->scale,
                                      "zero", (int)e->zero, "min", (double)e->lo, "max",
                                      (double)e->hi, "relative_error", e->error));
    }
    if ((int32_t)json_object_size(edges) != n)
        return lw_fail(LW_ENOMEM, "out of memory for %s", file_name);
    return lw_json_save(lw_path_join(&path, dir, file_name), tree);
}
