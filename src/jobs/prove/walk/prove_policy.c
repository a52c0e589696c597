/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a policy: uniform, by formula, from a folder. */
#include "jobs/prove/walk/prove_policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int lw_prove_check_names(uint64_t names, const char *model, const lw_kb *kb)
{
    if (names == 0) {
        lw_log(LW_LOG_WARN, "prove",
               "%s does not say what names its rows belong to: only their number was compared",
               model);
        return 0;
    }
    if (names == lw_kb_names(kb))
        return 0;
    return lw_fail(LW_EFORMAT,
                   "%s was trained on other names (hash %016" PRIx64
                   ") than the constants and predicates of %s (hash %016" PRIx64
                   "): its rows would belong to others",
                   model, names, kb->dir, lw_kb_names(kb));
}

/* seed_text NULL: 0. */
static int open_formula(const char *seed_text, const lw_kb *kb, const lw_env_options *env,
                        lw_prove_policy *p)
{
    int64_t seed = 0;
    if (seed_text && (lw_parse_i64(seed_text, &seed) < 0 || seed < 0))
        return lw_fail(LW_EUSAGE, "--policy formula:%s: SEED is a whole number from 0 to %" PRId64,
                       seed_text, INT64_MAX);
    p->config = lw_policy_default(kb->n_constants, lw_kb_endf(kb));
    p->config.variables = LW_MAX(p->config.variables, env->max_total_vars);
    p->config.max_atoms = env->padding_atoms;
    LW_TRY(lw_store_new(true, &p->store));
    LW_TRY(lw_policy_declare(&p->config, p->store));
    return lw_policy_formula(&p->config, (uint64_t)seed, p->store);
}

/* Weights without a configuration: the dataset says which rows are variables. */
static int open_bare(const char *path, const lw_kb *kb, const lw_env_options *env,
                     lw_prove_policy *p)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    lw_policy_config hint = lw_policy_default(kb->n_constants, lw_kb_endf(kb));
    hint.max_atoms = env->padding_atoms;
    LW_TRY(lw_model_weights_find(path, &file));
    return lw_policy_load_file(lw_str_c(&file), true, &hint, &p->config, &p->store);
}

static int open_weights(const char *spec, bool ema, const lw_kb *kb, const lw_env_options *env,
                        lw_prove_policy *p)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place place = {0};
    LW_TRY(lw_model_find(spec, ema, &place));
    p->name = lw_strdup(lw_str_c(&place.path));
    if (!p->name)
        return LW_ENOMEM;
    LW_TRY(place.config ? lw_policy_load(p->name, true, &p->config, &p->store)
                        : open_bare(p->name, kb, env, p));
    if (p->config.constants != kb->n_constants || p->config.predicates != lw_kb_endf(kb))
        return lw_fail(LW_EFORMAT,
                       "%s: a policy of %d constants and %d predicates, the dataset has %d and %d "
                       "(with True, False and Endf)",
                       p->name, p->config.constants, p->config.predicates, kb->n_constants,
                       lw_kb_endf(kb));
    /* weights alone never say it */
    return place.config ? lw_prove_check_names(p->config.names, p->name, kb) : 0;
}

int lw_prove_policy_open(const char *spec, bool ema, const lw_kb *kb, const lw_env_options *env,
                         lw_prove_policy *out)
{
    int rc = 0;
    *out = (lw_prove_policy){0};
    if (lw_str_eq(spec, "formula") || lw_str_starts(spec, "formula:"))
        rc = open_formula(spec[strlen("formula")] ? spec + strlen("formula:") : NULL, kb, env, out);
    else if (!lw_str_eq(spec, "uniform"))
        rc = open_weights(spec, ema, kb, env, out);
    if (rc == 0 && !out->name)
        out->name = lw_strdup(spec);
    if (rc == 0 && !out->name)
        rc = LW_ENOMEM;
    if (rc == 0 && out->store)
        out->source = (lw_policy_source){&out->config, out->store};
    if (rc < 0)
        lw_prove_policy_close(out);
    return rc;
}

void lw_prove_policy_close(lw_prove_policy *p)
{
    lw_store_free(&p->store);
    lw_free(&p->name);
    *p = (lw_prove_policy){0};
}
