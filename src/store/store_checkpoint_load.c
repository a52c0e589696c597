/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a checkpoint back, bit for bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_private.h"

void lw_checkpoint_clear(lw_checkpoint *c)
{
    json_decref(c->config);
    json_decref(c->state); /* `extra` and `isa` are borrowed from it */
    *c = (lw_checkpoint){0};
}

/* No hash covers state.json: its step must be that of the directory's name (`last` is a link to
 * one). A checkpoint under another name is believed within bounds. */
static int check_step(const char *dir, int64_t step)
{
    char *path = realpath(dir, NULL);
    const char *name = path ? strrchr(path, '/') : NULL;
    int64_t named = step;
    if (name && !lw_store_parse_step(name + 1, &named))
        named = step;
    free(path);
    return named == step ? 0
                         : lw_fail(LW_EFORMAT,
                                   "%s/state.json: says \"step\": %lld, the directory's name step "
                                   "%lld",
                                   dir, (long long)step, (long long)named);
}

static int get_count(const json_t *state, const char *where, const char *key, int64_t most,
                     int64_t *out)
{
    LW_TRY(lw_json_get_i64(state, where, key, out));
    if (*out < 0 || *out > most)
        return lw_fail(LW_EFORMAT, "%s: '%s' is %lld, must be 0 to %lld", where, key,
                       (long long)*out, (long long)most);
    return 0;
}

static int read_state(const char *where, lw_checkpoint *c)
{
    int64_t seed = 0;
    LW_TRY(lw_json_load(where, &c->state));
    LW_TRY(get_count(c->state, where, "step", LW_MAX_STEPS, &c->step));
    LW_TRY(lw_json_get_i64(c->state, where, "seed", &seed));
    LW_TRY(get_count(c->state, where, "images", LW_MAX_IMAGES, &c->images));
    LW_TRY(lw_json_opt_f64(c->state, where, "train_seconds", &c->train_seconds));
    LW_TRY(lw_json_opt_str(c->state, where, "isa", &c->isa));
    c->seed = (uint64_t)seed;
    c->extra = json_object_get(c->state, "extra");
    if (!(c->train_seconds >= 0.0 && c->train_seconds <= LW_MAX_SECONDS))
        return lw_fail(LW_EFORMAT, "%s: 'train_seconds' is %g, must be 0 to %g", where,
                       c->train_seconds, LW_MAX_SECONDS);
    if (c->extra && !json_is_object(c->extra))
        return lw_fail(LW_EFORMAT, "%s: 'extra' must be an object", where);
    return 0;
}

int lw_checkpoint_state(const char *path, lw_checkpoint *out)
{
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint c = {0};
    LW_TRY(read_state(path, &c));
    *out = c;
    c = (lw_checkpoint){0};
    return 0;
}

static int peek(const char *dir, lw_checkpoint *c)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    bool found;
    LW_TRY(lw_path_look(dir, &found));
    if (!found)
        return lw_fail(LW_EIO, "%s: no such checkpoint directory", dir);
    if (!lw_store_dir_whole(dir))
        return lw_fail(LW_EFORMAT,
                       "%s: not a whole checkpoint (needs config.json, state.json, "
                       "optimizer.safetensors, weights)",
                       dir);
    LW_TRY(lw_json_load(lw_path_join(&path, dir, "config.json"), &c->config));
    LW_TRY(read_state(lw_path_join(&path, dir, "state.json"), c));
    return check_step(dir, c->step);
}

int lw_checkpoint_peek(const char *dir, lw_checkpoint *out)
{
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint c = {0};
    LW_TRY(peek(dir, &c));
    *out = c;
    c = (lw_checkpoint){0};
    return 0;
}

static int read_slabs(const char *dir, lw_store *s)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, ema = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *weights = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *averaged = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *optimizer = NULL;
    LW_TRY(lw_model_weights_find(dir, &path));
    LW_TRY(lw_st_open(lw_str_c(&path), &weights));
    if (lw_path_exists(lw_path_join(&ema, dir, "ema"))) {
        LW_TRY(lw_model_weights_find(lw_str_c(&ema), &path));
        LW_TRY(lw_st_open(lw_str_c(&path), &averaged));
    }
    LW_TRY(lw_st_open(lw_path_join(&path, dir, "optimizer.safetensors"), &optimizer));
    LW_TRY(lw_store_read_slab(s, LW_SLAB_PARAM, weights, "", NULL));
    LW_TRY(lw_store_read_slab(s, LW_SLAB_EMA, averaged ? averaged : weights, "", NULL));
    LW_TRY(lw_store_read_slab(s, LW_SLAB_M, optimizer, "m.", NULL));
    return lw_store_read_slab(s, LW_SLAB_V, optimizer, "v.", NULL);
}

/* The hashes of state.json against what was read: bits that flipped on the way. */
static int check_hashes(const char *dir, const lw_store *s, const json_t *state)
{
    static const struct {
        const char *key;
        lw_slab slab;
    } rows[] = {{"model", LW_SLAB_PARAM}, {"ema", LW_SLAB_EMA}, {"m", LW_SLAB_M}, {"v", LW_SLAB_V}};
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        const json_t *want = json_object_get(json_object_get(state, "hash"), rows[i].key);
        char have[32];
        snprintf(have, sizeof have, "%016llx", (unsigned long long)lw_store_hash(s, rows[i].slab));
        if (!json_is_string(want) || strcmp(json_string_value(want), have) != 0)
            return lw_fail(LW_EFORMAT,
                           "%s: damaged, the %s values are not the ones that were saved", dir,
                           rows[i].key);
    }
    return 0;
}

int lw_checkpoint_load(const char *dir, lw_store *s, lw_checkpoint *out)
{
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint c = {0};
    LW_ASSERT(s->fixed && !s->frozen, "a checkpoint is loaded into a fixed, trainable store");
    LW_TRY(peek(dir, &c));
    LW_TRY(read_slabs(dir, s));
    LW_TRY(check_hashes(dir, s, c.state));
    *out = c;
    c = (lw_checkpoint){0};
    return 0;
}
