/* SPDX-License-Identifier: Apache-2.0 */
/* Beginning from the weights of another model (--init-from) instead of random ones. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "formats/formats.h"
#include "store/store.h"
#include "train/train_loop_parts.h"

int lw_train_init_find(const lw_train_config *c, lw_model_place *out)
{
    return lw_model_find(c->init_from, c->init_weights == LW_START_EMA, out);
}

/* Keys that may differ: of size and chance, not of what a layer computes. */
static bool may_differ(const char *key)
{
    static const char *const free_keys[] = {"sample_size", "image_size", "input_size", "dropout"};
    for (size_t i = 0; i < LW_COUNT(free_keys); i++)
        if (lw_str_eq(key, free_keys[i]))
            return true;
    return *key == '_' || lw_str_starts(key, "leeway_");
}

static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return (float)json_number_value(a) == (float)json_number_value(b);
    return json_typeof(a) != json_typeof(b) || json_equal(a, b); /* null: as usual */
}

static int refuse(const lw_train_config *c, const char *key, const json_t *there,
                  const json_t *here)
{
    char *a = json_dumps(there, JSON_ENCODE_ANY | JSON_COMPACT);
    char *b = json_dumps(here, JSON_ENCODE_ANY | JSON_COMPACT);
    int rc = lw_fail(LW_EUSAGE,
                     "--init-from %s: its config.json says %s: %s, the network to train has %s: "
                     "the weights would mean something else",
                     c->init_from, key, a ? a : "?", b ? b : "?");
    free(a);
    free(b);
    return rc;
}

/* Tensors of the same shapes can still mean another function: groups of norms, heads. */
static int check_function(const lw_train_config *c, const json_t *there, const json_t *here)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)here, key, value)
    {
        const json_t *other = json_object_get(there, key);
        if (other && !may_differ(key) && !same_value(other, value))
            return refuse(c, key, other, value);
    }
    return 0;
}

int lw_train_init(const lw_train_config *c, const lw_train_job *job, const lw_observer *obs,
                  json_t **origin)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    LW_CLEANUP(lw_str_clear) lw_str weights = {0};
    char hash[20];
    if (!c->init_from)
        return 0;
    LW_TRY(lw_train_init_find(c, &p));
    LW_TRY(lw_model_weights_find(lw_str_c(&p.path), &weights));
    LW_TRY(lw_store_load(job->store, LW_SLAB_PARAM, lw_str_c(&weights), job->namings));
    LW_TRY(check_function(c, p.config, job->model));
    snprintf(hash, sizeof hash, "%016" PRIx64, lw_store_hash(job->store, LW_SLAB_PARAM));
    lw_observe_say(obs, "starts from %s (weights %s)", lw_str_c(&weights), hash);
    *origin = json_pack("{s:s, s:s}", "weights", lw_str_c(&weights), "hash", hash);
    return *origin ? 0 : lw_fail(LW_ENOMEM, "out of memory for the weights to start from");
}
