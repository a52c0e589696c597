/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of `train drift`, as published grouped trainers are timed. table8: the three ways of its ablation to spend one
 * batch on groups, negatives and positives, small; parity: the plan of a step beside its graph as it was built (opt 0),
 * first step and further ones, and how far statistics of the steps are apart.
 */
#include <math.h>

#include "bench/bench_case.h"
#include "jobs/drift/drift_job.h"
#include "train/train.h"

enum { STEPS = 4 };
static const char *const statistics[] = {"loss", "grad_norm", "S", "raw_drift_0.2",
                                         "raw_drift_0.02"};

typedef struct step_case {
    lw_drift_config c;
    lw_str dir, run;
    lw_training *t;
    lw_train_result result;
    double opened; /* seconds until the first step was made */
    int64_t done;
} step_case;

static void fill(const lw_bench_run *r, step_case *s, int32_t groups, int32_t each)
{
    s->c = (lw_drift_config){.train = {.data = "synth:16",
                                       .batch_size = 1,
                                       .grad_accum_steps = 1,
                                       .steps = 1000000,
                                       .learning_rate = 1e-4,
                                       .adam_beta1 = 0.9,
                                       .adam_beta2 = 0.95,
                                       .adam_eps = 1e-8,
                                       .grad_clip = 2.0,
                                       .ema_decay = 0.999,
                                       .log_every = 1,
                                       .threads = r->config->threads,
                                       .conv = r->config->conv},
                             .pictures = {.limit = 1024},
                             .net = {.generator = LW_GENERATOR_DIT,
                                     .hidden_dim = 64,
                                     .depth = 2,
                                     .num_heads = 2,
                                     .register_tokens = 4,
                                     .style_count = 4,
                                     .style_words = 16},
                             .feature_keys = "pix,pix.p4,pix.mean",
                             .temperatures = {0.02f, 0.05f, 0.2f},
                             .n_temperatures = 3,
                             .normalize_over_x = true,
                             .groups = groups,
                             .negatives_per_group = each,
                             .positives_per_group = each,
                             .unconditional_per_group = 2,
                             .uncond_weight = 1.0,
                             .feature_cache_mb = 64};
}

static int open_case(step_case *s)
{
    LW_TRY(lw_bench_temp_dir(&s->dir));
    lw_path_join(&s->run, lw_str_c(&s->dir), "run");
    s->c.train.output_dir = lw_str_c(&s->run);
    double start = lw_now();
    LW_TRY(lw_train_drift_open(&s->c, NULL, &s->t));
    LW_TRY(lw_training_advance(s->t, 1));
    s->opened = lw_now() - start;
    s->done = 1;
    return 0;
}

static void close_case(step_case *s)
{
    lw_training_close(&s->t, LW_ESTOPPED, NULL); /* nothing is concluded */
    if (s->dir.len)
        lw_remove_tree(lw_str_c(&s->dir));
    lw_str_clear(&s->dir);
    lw_str_clear(&s->run);
    lw_errclear();
}

static int make_step(void *self)
{
    step_case *s = self;
    return lw_training_advance(s->t, ++s->done);
}

/* ---- table8 ---------------------------------------------------------------------------------- */

static int time_table8(lw_bench_run *r, const char *name, int32_t groups, int32_t each)
{
    lw_bench_case *out;
    step_case s = {0};
    if (!lw_bench_wants(r, name))
        return 0;
    fill(r, &s, groups, each);
    const lw_bench_work w = {.name = name,
                             .method = "f32",
                             .batch = groups * each,
                             .call = make_step,
                             .self = &s,
                             .error = (double)NAN};
    int rc = open_case(&s);
    if (rc == 0)
        rc = lw_bench_measure(r, &w, &out);
    if (rc == 0)
        rc = lw_training_close(&s.t, 0, &s.result);
    if (rc == 0) {
        out->memory = s.result.bytes_slabs + s.result.bytes_frame + s.result.bytes_derived +
                      s.result.bytes_kept + s.result.bytes_frozen;
        double ms = lw_summarize(out->ms, out->n).mean;
        out->published =
            json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:n, s:f}", "device",
                      r->dev->name, "steps", (int)out->n, "groups", (int)groups,
                      "negatives_per_group", (int)each, "positives_per_group", (int)each,
                      "unconditional_per_group", 2, "first_step_s", s.opened, "mean_step_time_s",
                      1e-3 * ms, "mean_generated_images_per_sec", 1e3 * groups * each / ms,
                      "max_peak_cuda_mem_mb", "max_peak_rss_mb", (double)lw_peak_rss() / 1048576.0);
    }
    close_case(&s);
    return rc;
}

int lw_bench_suite_table8(lw_bench_run *r)
{
    LW_TRY(time_table8(r, "table8_groups4_each16", 4, 16));
    LW_TRY(time_table8(r, "table8_groups8_each8", 8, 8));
    return time_table8(r, "table8_groups16_each4", 16, 4);
}

/* ---- parity ---------------------------------------------------------------------------------- */

static int rows_of(const step_case *s, json_t **out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    return lw_jsonl_load(lw_path_join(&path, lw_str_c(&s->run), "metrics.jsonl"), out);
}

/* Of both over the steps that both made: the largest difference, and for each statistic. */
static int compare_rows(const step_case *a, const step_case *b, double *worst, json_t *by_name)
{
    LW_CLEANUP(lw_json_drop) json_t *x = NULL, *y = NULL;
    LW_TRY(rows_of(a, &x));
    LW_TRY(rows_of(b, &y));
    *worst = 0;
    for (size_t k = 0; k < LW_COUNT(statistics); k++) {
        double most = 0;
        for (size_t i = 0; i < LW_MIN(json_array_size(x), json_array_size(y)); i++)
            most =
                fmax(most,
                     fabs(json_number_value(json_object_get(json_array_get(x, i), statistics[k])) -
                          json_number_value(json_object_get(json_array_get(y, i), statistics[k]))));
        json_object_set_new(by_name, statistics[k], lw_json_real(most));
        *worst = fmax(*worst, most);
    }
    return 0;
}

static int few_steps(step_case *s, double *ms)
{
    double start = lw_now();
    for (int i = 1; i < STEPS; i++)
        LW_TRY(make_step(s));
    *ms = 1e3 * (lw_now() - start) / (STEPS - 1);
    return 0;
}

static int measure_parity(lw_bench_run *r, const char *name, step_case *plan, step_case *eager)
{
    lw_bench_case *out;
    double plan_ms, eager_ms, worst;
    LW_CLEANUP(lw_json_drop) json_t *by_name = json_object();
    const lw_bench_work w = {.name = name,
                             .method = "f32",
                             .batch = 16,
                             .call = make_step,
                             .self = plan,
                             .error = (double)NAN};
    eager->c.train.unoptimised = true;
    LW_TRY(open_case(eager));
    LW_TRY(few_steps(eager, &eager_ms));
    LW_TRY(open_case(plan));
    LW_TRY(few_steps(plan, &plan_ms));
    LW_TRY(compare_rows(plan, eager, &worst, by_name));
    LW_TRY(lw_bench_measure(r, &w, &out));
    out->base_ms = eager_ms;
    out->difference = worst;
    snprintf(out->base, sizeof out->base, "opt 0");
    out->published = json_pack(
        "{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:O}", "device", r->dev->name, "steps", STEPS,
        "eager_first_step_ms", 1e3 * eager->opened, "eager_ms", eager_ms, "compiled_first_call_ms",
        1e3 * plan->opened, "compiled_steady_ms", plan_ms, "speedup", eager_ms / plan_ms,
        "max_abs_diff", worst, "max_abs_diff_by_statistic", by_name);
    return 0;
}

int lw_bench_suite_parity(lw_bench_run *r)
{
    static const char name[] = "parity_drift_step";
    step_case plan = {0}, eager = {0};
    if (!lw_bench_wants(r, name))
        return 0;
    fill(r, &plan, 2, 8);
    fill(r, &eager, 2, 8);
    int rc = measure_parity(r, name, &plan, &eager);
    close_case(&plan);
    close_case(&eager);
    return rc;
}
