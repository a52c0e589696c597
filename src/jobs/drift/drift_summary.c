/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run leaves behind for those who come from published trainers: their summary, field by field (null: there is
 * no such thing here), and their bundle.
 */
#include <string.h>

#include "formats/formats.h"
#include "jobs/drift/drift_run.h"

static const char *path_of(const drift_run *r, lw_str *path, const char *name)
{
    return lw_path_join(path, r->c.train.output_dir, name);
}

static json_t *hash_of(const json_t *j)
{
    char *text = j ? json_dumps(j, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_t *hash = text ? lw_json_hash(lw_hash_name(text)) : json_null();
    free(text);
    return hash;
}

/* A column under its published name; without one null. */
static void take(json_t *to, const char *name, const json_t *row, const char *column)
{
    json_t *x = json_object_get(row, column);
    json_object_set(to, name, x ? x : json_null());
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void put_temperatures(const drift_run *r, json_t *to, const json_t *row)
{
    char name[64], column[64];
    for (int32_t t = 0; t < r->c.n_temperatures; t++) {
        double tau = (double)r->c.temperatures[t];
        snprintf(name, sizeof name, "temp_%g_drift_norm", tau);
        snprintf(column, sizeof column, "raw_drift_%g", tau);
        take(to, name, row, column);
        snprintf(name, sizeof name, "temp_%g_drift_scale", tau);
        snprintf(column, sizeof column, "lambda_%g", tau);
        take(to, name, row, column);
    }
}

static json_t *step_json(const drift_run *r, const json_t *row, double seconds)
{
    static const char *const same[] = {"step",
                                       "loss",
                                       "mean_drift_norm",
                                       "alpha_mean",
                                       "alpha_min",
                                       "alpha_max",
                                       "grad_norm",
                                       "mean_unconditional_weight",
                                       "mean_unconditional_negative_fraction",
                                       "mean_drift_scale",
                                       "lr",
                                       "queue_underflow_backfilled",
                                       "queue_underflow_missing_labels",
                                       "queue_global_count",
                                       "queue_covered_classes"};
    json_int_t slots = 0;
    for (int k = 0; k < r->keys.n; k++)
        slots += r->keys.key[k].slots;
    json_t *to = json_pack("{s:i, s:i, s:i, s:i, s:I, s:n, s:n, s:f}", "groups",
                           (int)r->draws.groups, "negatives_per_group", (int)r->n,
                           "loss_term_count", (int)r->keys.n, "feature_keys", (int)r->keys.n,
                           "vector_count", slots, "raw_loss", "peak_cuda_mem_mb", "step_time_s",
                           seconds);
    for (size_t i = 0; to && i < LW_COUNT(same); i++)
        take(to, same[i], row, same[i]);
    if (!to)
        return NULL;
    take(to, "feature_loss", row, "loss");
    take(to, "mean_feature_scale", row, "S");
    take(to, "generated_images_per_sec", row, "images_per_sec");
    put_temperatures(r, to, row);
    return to;
}

/* Mean seconds of the steps since the row before. */
static json_t *logs_json(const drift_run *r, const json_t *rows)
{
    json_t *logs = json_array();
    double pictures = (double)lw_drift_pictures(r);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double rate = json_number_value(json_object_get(row, "images_per_sec"));
        json_array_append_new(logs, step_json(r, row, rate > 0 ? pictures / rate : 0.0));
    }
    return logs;
}

static json_t *alpha_json(const json_t *rows)
{
    double sum = 0, least = 0, most = 0;
    size_t n = json_array_size(rows);
    if (n == 0 || !json_object_get(json_array_get(rows, 0), "alpha_mean"))
        return json_null();
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        double low = json_number_value(json_object_get(row, "alpha_min")),
               high = json_number_value(json_object_get(row, "alpha_max"));
        sum += json_number_value(json_object_get(row, "alpha_mean"));
        least = i ? LW_MIN(least, low) : low;
        most = i ? LW_MAX(most, high) : high;
    }
    return json_pack("{s:f, s:f, s:f}", "mean", sum / (double)n, "min", least, "max", most);
}

/* ---- the run --------------------------------------------------------------------------------- */

static json_t *provider_json(const drift_run *r)
{
    const lw_dataset *d = r->g.p.data;
    return json_pack("{s:s, s:o, s:{s:I, s:i, s:i, s:i, s:i, s:b}}", "source", d->spec,
                     "manifest_fingerprint", lw_json_hash(d->content), "config", "rows",
                     (json_int_t)d->n, "height", (int)d->h, "width", (int)d->w, "channels",
                     (int)d->channels, "classes", (int)d->classes, "mirrored", (int)r->draws.flip);
}

static json_t *compile_json(const drift_run *r)
{
    lw_plan_info i = lw_plan_get_info(r->g.p.plan);
    return json_pack("{s:s, s:i, s:i, s:f, s:s, s:b}", "backend", r->g.p.dev->name, "steps",
                     i.n_steps, "prepare_steps", i.n_prepare, "flops", i.flops, "precision",
                     lw_precision_name(r->c.train.precision), "in_parts", (int)r->chunked);
}

static json_t *totals_json(const drift_run *r)
{
    if (!r->draws.queue)
        return json_null();
    lw_queue_counts all = lw_queue_totals(r->draws.queue);
    return json_pack("{s:I, s:I}", "missing_labels", (json_int_t)all.missing_labels,
                     "backfilled_samples", (json_int_t)all.backfilled_samples);
}

static json_t *perf_json(const drift_run *r, const lw_train_result *out)
{
    double each = out->samples_per_second > 0
                      ? (double)lw_drift_pictures(r) / out->samples_per_second
                      : 0.0;
    return json_pack("{s:f, s:f, s:f, s:n, s:f}", "mean_step_time_s", each,
                     "mean_generated_images_per_sec", out->samples_per_second,
                     "generated_images_per_sec", out->samples_per_second, "max_peak_cuda_mem_mb",
                     "max_peak_rss_mb", (double)lw_peak_rss() / 1048576.0);
}

/* Class counts of the data, and whether the first rows can be read. */
static json_t *sanity_json(const drift_run *r)
{
    const lw_dataset *d = r->g.p.data;
    json_int_t least = d->n, most = 0;
    LW_CLEANUP(lw_free) int64_t *count = lw_calloc((size_t)d->classes + 1, sizeof *count);
    for (int64_t i = 0; count && d->labels && d->classes && i < d->n; i++)
        count[d->labels[i]]++;
    for (int32_t c = 0; count && d->labels && c < d->classes; c++) {
        least = LW_MIN(least, (json_int_t)count[c]);
        most = LW_MAX(most, (json_int_t)count[c]);
    }
    return json_pack("{s:I, s:I, s:I}", "rows", (json_int_t)d->n, "least_of_a_class",
                     d->classes ? least : 0, "most_of_a_class", most);
}

static json_t *summary_json(const drift_run *r, const lw_train_result *out, const json_t *rows,
                            const json_t *env)
{
    const lw_train_config *c = &r->c.train;
    return json_pack(
        "{s:s, s:I, s:o, s:o, s:s?, s:I, s:o, s:O?, s:O?, s:o, s:o, s:o, s:o, s:O?, s:o, s:s, s:o, "
        "s:o, "
        "s:f, s:f, s:n}",
        "device", r->g.p.dev->name, "seed", (json_int_t)c->seed, "config_hash",
        c->command_line ? lw_json_hash(lw_hash_name(c->command_line)) : json_null(),
        "resolved_config_hash", hash_of(c->options), "resume_from",
        c->resume_from    ? c->resume_from
        : out->first_step ? c->output_dir
                          : NULL,
        "resume_step", (json_int_t)out->first_step, "env_fingerprint", hash_of(env), "model_config",
        r->g.p.model, "train_config", c->options, "compile", compile_json(r), "logs",
        logs_json(r, rows), "alpha_stats", alpha_json(rows), "real_batch_provider",
        provider_json(r), "queue_warmup_report", r->draws.warmup, "queue_underflow_totals",
        totals_json(r), "queue_report_level", r->c.queue_report ? "full" : "basic",
        "real_provider_sanity_report", sanity_json(r), "perf", perf_json(r, out),
        "generated_images_per_sec", out->samples_per_second, "max_peak_rss_mb",
        (double)lw_peak_rss() / 1048576.0, "loss_scale");
}

/* ---- the bundle ------------------------------------------------------------------------------ */

static int write_run_md(const drift_run *r, const lw_train_result *out, const char *summary)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, path = {0};
    const lw_train_config *c = &r->c.train;
    lw_str_addf(&text, "# Run\n\n- command: `%.*s`\n- data: `%s`\n- seed: %lld\n- steps: %lld\n",
                c->command_line ? (int)strcspn(c->command_line, "\n") : 0,
                c->command_line ? c->command_line : "", c->data, (long long)c->seed,
                (long long)out->steps);
    lw_str_addf(
        &text,
        "- program: %s, commit %s\n- machine: %s\n\nNumbers: `%s`, `metrics.jsonl`. Settings: "
        "`config.yaml`. Page: `report.html`.\n\nTo go on: the command with `--resume` and more "
        "`--steps`.\n",
        lw_build_version(), lw_build_commit(), lw_machine_name(), summary);
    return text.failed ? LW_ENOMEM
                       : lw_file_write(path_of(r, &path, "RUN.md"), lw_str_c(&text), text.len);
}

static int write_json(const drift_run *r, const char *name, json_t *j)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    int rc = j ? lw_json_save(path_of(r, &path, name), j)
               : lw_fail(LW_ENOMEM, "out of memory for %s", name);
    json_decref(j);
    return rc;
}

static int write_bundle(const drift_run *r, json_t *env)
{
    LW_TRY(write_json(r, "env_snapshot.json", json_incref(env)));
    LW_TRY(
        write_json(r, "env_fingerprint.json", json_pack("{s:o}", "env_fingerprint", hash_of(env))));
    return write_json(r, "codebase_fingerprint.json",
                      json_pack("{s:s, s:s, s:s}", "version", lw_build_version(), "commit",
                                lw_build_commit(), "compiler", lw_build_compiler()));
}

/* What of the environment bits and times follow from. */
static json_t *env_json(const drift_run *r)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "version", lw_build_version(), "commit",
                     lw_build_commit(), "compiler", lw_build_compiler(), "cpu", lw_machine_name(),
                     "isa", r->g.p.dev->isa, "threads", lw_pool_size(r->g.p.dev->pool));
}

int lw_drift_conclude(void *self, const lw_train_result *out)
{
    drift_run *r = self;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *rows = NULL, *env = env_json(r);
    const char *name = r->g.p.latents ? "latent_summary.json" : "pixel_summary.json";
    if (!env)
        return lw_fail(LW_ENOMEM, "out of memory for %s", name);
    if (lw_drift_of_clips(r))
        return 0;
    LW_TRY(lw_jsonl_load(path_of(r, &path, "metrics.jsonl"), &rows));
    LW_TRY(write_json(r, name, summary_json(r, out, rows, env)));
    LW_TRY(write_bundle(r, env));
    return write_run_md(r, out, name);
}
