/* SPDX-License-Identifier: Apache-2.0 */
/* What the demonstration trains: a recipe, and what only the demonstration knows. */
#include "jobs/demo/demo_job.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"
#include "train/train_run_dir.h"

static const char *const names[] = {"encoder", "judge", "reader", "drift", "ddpm"};
const char *lw_demo_stage_name(lw_demo_stage_id id)
{
    return names[id];
}

lw_train_config *lw_demo_train(lw_demo_recipe *r, lw_demo_stage_id id)
{
    lw_train_config *const c[] = {&r->encoder.train, &r->judge.train, &r->reader.train,
                                  &r->drift.train, &r->ddpm.train};
    return c[id];
}

int lw_demo_say(json_t *options, const char *key, json_t *value)
{
    return json_object_set_new(options, key, value) < 0
               ? lw_fail(LW_ENOMEM, "out of memory for a stage's options")
               : 0;
}

/* Config and options of a stage. */
static int settle_stage(lw_demo_recipe *r, lw_demo_stage_id id, const lw_demo_config *c,
                        const char *data, double minutes)
{
    lw_train_config *t = lw_demo_train(r, id);
    json_t *o = r->options[id], *recipe = c->recipe->options[id];
    t->data = data;
    t->minutes = minutes;
    t->seed = c->seed + (id == LW_DEMO_JUDGE ? 7 : id == LW_DEMO_READER ? 8 : 0);
    t->threads = c->threads;
    t->conv = c->conv;
    t->dry_run = c->dry_run;
    LW_TRY(lw_demo_say(o, "command", json_incref(json_object_get(recipe, "command"))));
    LW_TRY(lw_demo_say(o, "data", json_string(t->data)));
    LW_TRY(lw_demo_say(o, "minutes", lw_json_real(round(t->minutes * 1e3) / 1e3)));
    LW_TRY(lw_demo_say(o, "seed", json_integer((json_int_t)t->seed)));
    return json_object_update_missing(o, recipe) < 0
               ? lw_fail(LW_ENOMEM, "out of memory for a stage's options")
               : 0;
}

int lw_demo_settle(lw_demo_recipe *r, const lw_demo_config *c, const char *judge_data,
                   const char *reader_data, double minutes)
{
    double all = 0;
    *r = *c->recipe;
    memset(r->options, 0, sizeof r->options);
    for (int i = 0; i < LW_DEMO_STAGES; i++) {
        all += lw_demo_train(r, (lw_demo_stage_id)i)->minutes;
        r->options[i] = json_object();
    }
    for (int i = 0; i < LW_DEMO_STAGES; i++) {
        lw_demo_stage_id id = (lw_demo_stage_id)i;
        const char *data = id == LW_DEMO_JUDGE    ? judge_data
                           : id == LW_DEMO_READER ? reader_data
                                                  : c->data;
        double share = lw_demo_train(r, id)->minutes / all;
        if (!(share > 0))
            return lw_fail(LW_EUSAGE, "%s: %s: minutes must say its share of the time",
                           c->recipe_file ? c->recipe_file : "recipe", lw_demo_stage_name(id));
        LW_TRY(settle_stage(r, id, c, data, minutes * share));
    }
    return 0;
}

void lw_demo_drop(lw_demo_recipe *r)
{
    for (int i = 0; i < LW_DEMO_STAGES; i++)
        lw_json_drop(&r->options[i]);
}

void lw_demo_command(const json_t *options, lw_str *out)
{
    const char *key;
    json_t *value;
    size_t column = out->len;
    lw_str_addf(out, "leeway %s", json_string_value(json_object_get(options, "command")));
    json_object_foreach((json_t *)(uintptr_t)options, key, value)
    {
        LW_CLEANUP(lw_str_clear) lw_str word = {0};
        if (strcmp(key, "command") == 0)
            continue;
        if (json_is_boolean(value)) {
            lw_str_addf(&word, "--%s%s", json_is_true(value) ? "" : "no-", key);
        } else {
            lw_str_addf(&word, "--%s ", key);
            lw_json_typed(value, &word);
        }
        bool wrap = out->len - column + word.len > 110;
        lw_str_add(out, wrap ? " \\\n    " : " ");
        column = wrap ? out->len - 4 : column;
        lw_str_add(out, lw_str_c(&word));
    }
    lw_str_add(out, "\n");
}

bool lw_demo_goes_on(lw_train_config *t)
{
    LW_CLEANUP(lw_str_clear) lw_str summary = {0};
    t->resume = lw_run_dir_there(t->output_dir);
    return lw_path_exists(lw_path_join(&summary, t->output_dir, "summary.json"));
}
