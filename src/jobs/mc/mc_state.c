/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials that are done, for a call that goes on: STEM_T{T}_partial.npz, one for each T, every
 * one replaced at once. Whoever goes on takes as many trials as all of them have.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

const char *lw_mc_path(const mc_model *m, const char *experiment, bool by_model, const char *name,
                       lw_str *s)
{
    s->len = 0;
    lw_str_addf(s, "%s/%s%s%s/%s", m->c->output_dir, experiment, by_model ? "/" : "",
                by_model ? m->out->name : "", name);
    return lw_str_c(s);
}

static const char *partial_path(const mc_model *m, int32_t p, lw_str *s)
{
    char name[64];
    snprintf(name, sizeof name, "%s_T%d_partial.npz", m->stem, (int)m->c->passes[p]);
    return lw_mc_path(m, m->experiment, true, name, s);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static int add_f64(lw_npz *z, const char *name, int rank, const int64_t *shape, const void *data)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_array_init(&a, LW_ELEM_F64, rank, shape));
    memcpy(a.data, data, a.bytes);
    return lw_npz_add(z, name, &a);
}

static int add_i64(lw_npz *z, const char *name, int64_t value)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_array_init(&a, LW_ELEM_I64, 0, NULL));
    *(int64_t *)a.data = value;
    return lw_npz_add(z, name, &a);
}

/* As bytes of JSON. */
static int add_about(lw_npz *z, const json_t *about)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    lw_json_dump(about, 0, &text);
    if (text.failed)
        return LW_ENOMEM;
    LW_TRY(lw_array_init(&a, LW_ELEM_U8, 1, (const int64_t[]){(int64_t)text.len}));
    memcpy(a.data, text.s, text.len);
    return lw_npz_add(z, "about", &a);
}

static int write_one(const mc_model *m, int32_t p)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const int64_t scores[] = {m->done, m->n, LW_PASS_SCORES};
    const int64_t geometry[] = {m->done, m->n, 2, 2 + LW_PASS_EIGS};
    bool last = p + 1 == m->c->n_passes;
    LW_TRY(add_about(&z, m->about));
    LW_TRY(lw_npz_add_text(&z, "paths", (const char *const *)m->name, m->n));
    LW_TRY(add_i64(&z, "completed_trials", m->done));
    LW_TRY(add_i64(&z, "total_trials", m->c->trials));
    LW_TRY(add_i64(&z, "passes", m->c->passes[p]));
    LW_TRY(add_f64(&z, "scores", 3, scores, mc_at(m, p, 0)));
    LW_TRY(lw_mc_add_score(m, &z, "trial_pre", p, LW_PASS_TRACE_PRE, m->done));
    LW_TRY(lw_mc_add_score(m, &z, "trial_post", p, LW_PASS_TRACE_POST, m->done));
    if (last && m->geometry)
        LW_TRY(add_f64(&z, "geometry", 4, geometry, m->geometry));
    partial_path(m, p, &path);
    return path.failed ? LW_ENOMEM : lw_npz_save(lw_str_c(&path), &z);
}

int lw_mc_state_write(const mc_model *m)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_TRY(lw_mkdirs(lw_mc_path(m, m->experiment, true, "", &dir)));
    for (int32_t p = 0; p < m->c->n_passes; p++)
        LW_TRY(write_one(m, p));
    return mc_is_exp0(m) ? lw_mc_progress(m) : 0;
}

void lw_mc_state_remove(const mc_model *m)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        remove(partial_path(m, p, &path));
        lw_new_file_sweep(lw_str_c(&path));
    }
    remove(lw_mc_path(m, m->experiment, true, "", &path)); /* the folder, where it is empty now */
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int find(lw_npz *z, const char *path, const char *name, lw_elem type, int rank,
                lw_array **out)
{
    *out = lw_npz_find(z, name);
    return *out && (*out)->type == type && (*out)->rank == rank
               ? 0
               : lw_fail(LW_EFORMAT, "%s: no array '%s' of an interrupted call", path, name);
}

static int of_another_call(const char *path, const char *key, const json_t *there,
                           const json_t *here)
{
    LW_CLEANUP(lw_str_clear) lw_str then = {0}, now = {0};
    lw_json_dump(json_object_get(there, key), 0, &then);
    lw_json_dump(json_object_get(here, key), 0, &now);
    return lw_fail(
        LW_EUSAGE,
        "%s is of another call: its %s is %s, now it is %s; name another --output-dir, or "
        "remove it",
        path, key, lw_str_c(&then), lw_str_c(&now));
}

/* What another kind of device began is gone on with where that may be; what one alone began at another level is not. Degradations share
 * about: what it says of devices only grows. */
static int follow_device(mc_model *m, const json_t *there, const char *path)
{
    char kinds[LW_DEVICE_KINDS];
    const char *isa = json_string_value(json_object_get(there, "isa")),
               *device = json_string_value(json_object_get(there, "device"));
    lw_session_device_kind(m->dev, kinds);
    LW_TRY(lw_session_device_follow(path, device ? device : lw_session_device_of(isa),
                                    m->c->device_change, kinds));
    if (strchr(kinds, ','))
        return json_object_set_new(m->about, "device", json_string(kinds)) < 0 ? LW_ENOMEM : 0;
    return isa && lw_str_eq(isa, m->dev->isa) ? 0 : of_another_call(path, "isa", there, m->about);
}

/* LW_EUSAGE names the first thing in which the two calls differ; follow_device looks at what computed. *there: what
 * the file says. */
static int check_about(mc_model *m, lw_npz *z, const char *path, json_t **there)
{
    LW_CLEANUP(lw_json_drop) json_t *then = NULL, *now = NULL;
    static const char *const apart[] = {"device", "isa"};
    lw_array *text;
    LW_TRY(find(z, path, "about", LW_ELEM_U8, 1, &text));
    LW_TRY(lw_json_parse(path, text->data, (size_t)text->count, there));
    then = json_copy(*there);
    now = json_copy(m->about);
    if (!then || !now)
        return LW_ENOMEM;
    for (size_t i = 0; i < LW_COUNT(apart); i++) {
        json_object_del(then, apart[i]);
        json_object_del(now, apart[i]);
    }
    const char *key = lw_json_difference(now, then);
    return key ? of_another_call(path, key, *there, m->about) : 0;
}

/* Trials of one T; *n: how many; *there: who made them. */
static int read_one(mc_model *m, int32_t p, int32_t *n, json_t **there)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_array *scores, *geometry = NULL;
    *n = 0;
    if (!lw_path_exists(partial_path(m, p, &path)))
        return 0;
    if (!m->c->resume)
        return lw_fail(LW_EUSAGE, "%s: an interrupted call left trials: --resume goes on with them",
                       lw_str_c(&path));
    LW_TRY(lw_npz_load(lw_str_c(&path), &z));
    LW_TRY(check_about(m, &z, lw_str_c(&path), there));
    LW_TRY(find(&z, lw_str_c(&path), "scores", LW_ELEM_F64, 3, &scores));
    bool whole = scores->shape[1] == m->n && scores->shape[2] == LW_PASS_SCORES;
    if (p + 1 == m->c->n_passes && m->geometry) {
        if (!lw_npz_find(&z, "geometry"))
            return 0; /* it was not asked for: trials are run again */
        LW_TRY(find(&z, lw_str_c(&path), "geometry", LW_ELEM_F64, 4, &geometry));
        whole = whole && geometry->shape[0] == scores->shape[0] && geometry->shape[1] == m->n &&
                geometry->shape[2] == 2 && geometry->shape[3] == 2 + LW_PASS_EIGS;
    }
    if (!whole)
        return lw_fail(LW_EFORMAT, "%s: arrays of other shapes than it says", lw_str_c(&path));
    *n = (int32_t)LW_MIN(scores->shape[0], (int64_t)m->c->trials);
    memcpy(mc_at(m, p, 0), scores->data, sizeof(mc_scores) * (size_t)*n * (size_t)m->n);
    if (geometry)
        memcpy(m->geometry, geometry->data, sizeof *m->geometry * (size_t)*n * (size_t)m->n);
    return 0;
}

static int read_all(mc_model *m, json_t **there)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    int32_t n;
    m->done = m->c->trials;
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        LW_TRY(read_one(m, p, &n, &there[p]));
        m->done = LW_MIN(m->done, n);
    }
    /* where nothing is taken over, nobody cares who made it */
    for (int32_t p = 0; p < m->c->n_passes && m->done > 0; p++)
        LW_TRY(follow_device(m, there[p], partial_path(m, p, &path)));
    m->out->trials_before = m->done;
    return 0;
}

int lw_mc_state_read(mc_model *m)
{
    json_t *there[LW_MC_PASSES] = {NULL};
    _Static_assert(sizeof(lw_pass_geometry) == (2 + LW_PASS_EIGS) * sizeof(double),
                   "geometry is an array of numbers");
    int rc = read_all(m, there);
    for (int32_t p = 0; p < m->c->n_passes; p++)
        lw_json_drop(&there[p]);
    return rc;
}
