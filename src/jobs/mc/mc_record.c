/* SPDX-License-Identifier: Apache-2.0 */
/* exp0_run.json: what a call cost and how it was called, which differs from call to call and so is
 * beside the scores and not in their summaries. */
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

json_t *lw_mc_costs_json(const lw_mc_model_result *m)
{
    return json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:i, s:i, s:s, s:s, s:i, s:I, s:[i,i], s:I, s:i, s:f, s:f, s:I, "
        "s:b, s:I, "
        "s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:I, s:I}",
        "name", m->name, "experiments", m->experiments, "trials", (int)m->trials, "network",
        m->network, "sites", lw_str_c(&m->sites), "n_sites", (int)m->n_sites, "live_sites",
        (int)m->live, "stored_dropout", m->stored_dropout, "layer", m->layer, "dim", (int)m->dim,
        "num_images", (json_int_t)m->pictures, "picture", (int)m->height, (int)m->width,
        "parameters", (json_int_t)m->parameters, "batch_size", (int)m->batch, "once_flops",
        m->cut.prefix, "pass_flops", m->cut.suffix, "kept_bytes",
        (json_int_t)m->cut.kept * m->pictures, "kept_on_disk", m->cut.on_disk, "weight_bytes",
        (json_int_t)m->weights, "pixel_bytes", (json_int_t)m->pixels, "pixel_bytes_f32",
        (json_int_t)m->pixels_f32, "decode_seconds", m->decode, "compile_seconds", m->compile,
        "prefix_seconds", m->prefix, "pass_seconds", m->passes, "score_seconds", m->scores,
        "trials_before", (int)m->trials_before, "frame_bytes", (json_int_t)m->cut.bytes,
        "memory_bytes", (json_int_t)m->need);
}

/* Rates of dropout that a configuration says, of the vision tower too: "attention_dropout 0". */
static void add_rates(const json_t *config, lw_str *out)
{
    static const char *const inner[] = {"vision_config", "model_cfg", "vision_cfg", "model_args"};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)config, key, v)
    {
        if (json_is_number(v) && (strstr(key, "dropout") || strstr(key, "drop_rate"))) {
            lw_str_addf(out, "%s", out->len ? ", " : "");
            lw_str_add_clean(out, key, "");
            lw_str_addf(out, " %g", json_number_value(v));
        }
    }
    for (size_t i = 0; i < LW_COUNT(inner); i++)
        if (json_is_object(json_object_get(config, inner[i])))
            add_rates(json_object_get(config, inner[i]), out);
}

void lw_mc_stored_dropout(const lw_network *n, char *out, size_t size)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    add_rates(n->config, &s);
    snprintf(out, size, "%s", s.len ? lw_str_c(&s) : "no dropout");
}

int lw_mc_record_write(const mc_model *m)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, command = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = lw_mc_costs_json(m->out);
    lw_str_add_clean(&command, m->c->command ? m->c->command : "", "");
    LW_CLEANUP(lw_json_drop)
    json_t *more = json_pack("{s:f, s:s, s:s, s:s, s:s, s:i}", "seconds", m->out->seconds,
                             "command", lw_str_c(&command), "version", lw_build_version(), "commit",
                             lw_build_commit(), "machine", lw_machine_name(), "threads",
                             lw_pool_size(m->dev->pool));
    lw_mc_path(m, "exp0_nested_mc", true, "exp0_run.json", &path);
    if (!j || !more || json_object_update(j, more) < 0 || path.failed || command.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for what it cost", m->out->name);
    return lw_json_save(lw_str_c(&path), j);
}
