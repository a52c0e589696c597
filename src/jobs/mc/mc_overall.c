/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of the models of a round, side by side in one file for each experiment. */
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

static int write_exp0(const lw_mc_config *c, const lw_mc_model_result *r)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *results = json_object();
    json_t *models = json_array(), *passes = json_array();
    for (int32_t p = 0; p < c->n_passes; p++)
        json_array_append_new(passes, json_integer(c->passes[p]));
    for (int32_t i = 0; i < c->n_models; i++) {
        const lw_mc_model_result *m = &r[i];
        json_t *one = json_object();
        json_array_append_new(models, json_string(m->name));
        json_object_set_new(results, m->name, one);
        for (int32_t p = 0; p < c->n_passes; p++) {
            char key[24];
            snprintf(key, sizeof key, "T=%d", (int)c->passes[p]);
            json_object_set_new(one, key,
                                json_pack("{s:o, s:o}", "pre_norm",
                                          lw_mc_reliability_json(&m->pre[p]), "post_norm",
                                          lw_mc_reliability_json(&m->post[p])));
        }
    }
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:s, s:o, s:o, s:f, s:i, s:I, s:O}", "experiment", "exp0_nested_mc",
                          "models", models, "passes", passes, "dropout", c->dropout, "trials",
                          (int)c->trials, "num_images", (json_int_t)r[0].pictures, "results",
                          results);
    lw_str_addf(&path, "%s/exp0_nested_mc/exp0_overall_summary.json", c->output_dir);
    return path.failed || !j ? LW_ENOMEM : lw_json_save(lw_str_c(&path), j);
}

/* {MODEL: its summary}, as OUTPUT/DIR/STEM_MODEL_summary.json has it. */
static int gather(const lw_mc_config *c, const lw_mc_model_result *r, const char *dir,
                  const char *stem, json_t *results, json_t *models)
{
    for (int32_t i = 0; i < c->n_models; i++) {
        LW_CLEANUP(lw_str_clear) lw_str path = {0};
        json_t *one = NULL;
        lw_str_addf(&path, "%s/%s/%s_%s_summary.json", c->output_dir, dir, stem, r[i].name);
        LW_TRY(path.failed ? LW_ENOMEM : lw_json_load(lw_str_c(&path), &one));
        json_object_set_new(results, r[i].name, one);
        json_array_append_new(models, json_string(r[i].name));
    }
    return 0;
}

static double mean_of(const json_t *results, const char *model, const char *key)
{
    return json_number_value(json_object_get(json_object_get(results, model), key));
}

/* file: of all models. Of two models of exp4 also the difference of their means. */
static int write_subset(const lw_mc_config *c, const lw_mc_model_result *r, const char *dir,
                        const char *stem, const char *file)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    json_t *results = json_object(), *models = json_array();
    LW_CLEANUP(lw_json_drop)
    json_t *j = json_pack("{s:s, s:o, s:I, s:i, s:i, s:f, s:o}", "experiment", dir, "models",
                          models, "num_images", (json_int_t)r[0].pictures, "trials", (int)c->trials,
                          "passes", (int)c->passes[c->n_passes - 1], "dropout", c->dropout,
                          "results", results);
    if (!j)
        return LW_ENOMEM;
    LW_TRY(gather(c, r, dir, stem, results, models));
    if (c->n_models == 2 && lw_str_eq(stem, "exp4_subset")) {
        const char *a = r[0].name, *b = r[1].name;
        double trace = mean_of(results, b, "trace_mean") - mean_of(results, a, "trace_mean");
        double angle = mean_of(results, b, "angular_mean") - mean_of(results, a, "angular_mean");
        json_object_set_new(j, "comparison",
                            json_pack("{s:[s,s], s:o, s:o}", "models", a, b, "trace_mean_delta",
                                      lw_json_real(trace), "angular_mean_delta",
                                      lw_json_real(angle)));
    }
    lw_str_addf(&path, "%s/%s/%s", c->output_dir, dir, file);
    return path.failed ? LW_ENOMEM : lw_json_save(lw_str_c(&path), j);
}

int lw_mc_write_overall(const lw_mc_config *c, const lw_mc_model_result *r, unsigned experiments,
                        bool exp0)
{
    if (exp0)
        LW_TRY(write_exp0(c, r));
    if (experiments & MC_EXP4)
        LW_TRY(write_subset(c, r, "exp4_subset_recipe", "exp4_subset", "exp4_subset_summary.json"));
    return experiments & MC_EXP5 ? write_subset(c, r, "exp5_subset_ambiguity", "exp5_subset",
                                                "exp5_subset_overall_summary.json")
                                 : 0;
}
