/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring ranges, choosing scales, writing the model folder that int8 takes. */
#include "jobs/quantize/quantize_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/session_device.h"
#include "jobs/quantize/quantize_inputs.h"

typedef struct quantizing {
    const lw_quantize_config *c;
    const lw_observer *obs;
    lw_device *dev;
    lw_network *net;
    lw_quantize_inputs in;
    lw_graph *graph; /* keeps the names of its outputs */
    lw_plan *plan;
    lw_exec *exec;
    const char *output; /* the network's first, in f32 */
    const char **name;  /* [n] outputs that are edges */
    lw_ranges *range;   /* [n] */
    lw_edge_seen *seen; /* [n] */
    int32_t n;
    lw_quantize_result *out;
} quantizing;

static const char *const rules[] = {"mse", "percentile", "minmax"};

/* ---- opening --------------------------------------------------------------------------------- */

/* SOURCE-int8 beside the source, unless said otherwise; never the source itself. */
static int choose_output(quantizing *q)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const lw_quantize_config *c = q->c;
    size_t n = strlen(c->source);
    while (n > 1 && c->source[n - 1] == '/')
        n--;
    if (c->output_dir)
        lw_str_add(&path, c->output_dir);
    else
        lw_str_addf(&path, "%.*s-int8", (int)n, c->source);
    if (path.len >= sizeof q->out->output_dir)
        return lw_fail(LW_EUSAGE, "--output-dir is longer than %zu characters",
                       sizeof q->out->output_dir - 1);
    snprintf(q->out->output_dir, sizeof q->out->output_dir, "%s", lw_str_c(&path));
    LW_CLEANUP(lw_str_clear) lw_str old = {0}, ours = {0};
    bool model = lw_path_exists(lw_path_join(&old, q->out->output_dir, "config.json"));
    bool quantised = lw_path_exists(lw_path_join(&ours, q->out->output_dir, "quantization.json"));
    if (model && !quantised)
        return lw_fail(LW_EUSAGE, "%s holds another model: choose another --output-dir",
                       q->out->output_dir);
    return lw_output_check("--output-dir", q->out->output_dir, LW_OUT_DIR);
}

/* All edges are outputs and stay in memory together. */
static int check_memory(const quantizing *q)
{
    char need[32], have[32];
    lw_plan_info i = lw_plan_get_info(q->plan);
    size_t bytes = i.frame_bytes + i.derived_bytes + lw_store_bytes(q->net->store);
    if (bytes <= lw_memory_total())
        return 0;
    return lw_fail(LW_ENOMEM,
                   "out of memory: calibration with batches of %d needs %s, there are %s: choose a "
                   "smaller --batch-size",
                   (int)q->c->batch, lw_fmt_bytes(need, bytes),
                   lw_fmt_bytes(have, (size_t)lw_memory_total()));
}

static int build(quantizing *q)
{
    int32_t side = lw_quantize_side(&q->in);
    LW_TRY(lw_graph_new(&q->graph));
    LW_TRY(lw_network_build(q->net, q->graph, q->c->batch, side, side, NULL));
    q->output = lw_graph_output_at(q->graph, 0)->name;
    LW_TRY(lw_calibration_outputs(q->graph));
    q->n = lw_graph_output_count(q->graph) - 1;
    if (q->n == 0)
        return lw_fail(LW_EUNSUPPORTED, "%s has no product that int8 can compute", q->net->dir);
    LW_TRY(lw_compile(q->graph, q->dev, NULL, &q->plan));
    LW_TRY(check_memory(q));
    LW_TRY(lw_exec_new(q->plan, LW_SLAB_PARAM, &q->exec));
    q->in.exec = q->exec;
    q->name = lw_calloc((size_t)q->n, sizeof *q->name);
    q->range = lw_calloc((size_t)q->n, sizeof *q->range);
    q->seen = lw_calloc((size_t)q->n, sizeof *q->seen);
    if (!q->name || !q->range || !q->seen)
        return LW_ENOMEM;
    for (int32_t i = 0; i < q->n; i++)
        q->name[i] = lw_graph_output_at(q->graph, i + 1)->name;
    return 0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void edge_task(void *arg, int64_t i, int worker)
{
    quantizing *q = arg;
    (void)worker;
    lw_ranges_add(&q->range[i], lw_exec_data(q->exec, q->name[i]),
                  lw_type_count(lw_exec_type(q->exec, q->name[i])));
}

static int measure(quantizing *q)
{
    int64_t batches = LW_CEIL_DIV(q->c->n, q->c->batch), total = batches * q->in.times;
    for (int64_t b = 0; b < batches; b++)
        for (int32_t k = 0; k < q->in.times; k++) {
            LW_TRY(lw_quantize_inputs_fill(&q->in, b * q->c->batch, k));
            LW_TRY(lw_exec_run(q->exec, NULL));
            lw_pool_run(q->dev->pool, q->n, edge_task, q);
            lw_quantize_inputs_next(&q->in, k);
            lw_observe_progress(q->obs, "calibrate", b * q->in.times + k + 1, total, NULL);
            if (lw_observe_stop(q->obs))
                return lw_fail(LW_ESTOPPED, "calibration stopped; nothing is written");
        }
    q->out->evaluations = total * q->c->batch;
    return 0;
}

static int choose(quantizing *q)
{
    double sum = 0.0;
    for (int32_t i = 0; i < q->n; i++) {
        lw_edge_seen *e = &q->seen[i];
        e->name = q->name[i] + strlen(LW_EDGE_OUTPUT);
        if (q->range[i].not_finite > 0)
            return lw_fail(LW_ENUMERIC,
                           "%s: what %s multiplies has %lld values that are not finite: this model "
                           "cannot be quantised",
                           q->net->dir, e->name, (long long)q->range[i].not_finite);
        lw_ranges_choose(&q->range[i], (lw_range_rule)q->c->rule, 1.0 - q->c->percentile / 100.0,
                         e);
        sum += e->error;
        if (i == 0 || e->error > q->out->worst_error) {
            q->out->worst_error = e->error;
            snprintf(q->out->worst, sizeof q->out->worst, "%s", e->name);
        }
    }
    q->out->mean_error = sum / q->n;
    q->out->edges = q->n;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int copy_file(const char *from, const char *dir, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str to = {0};
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t n;
    LW_TRY(lw_file_read(from, 0, &bytes, &n));
    return lw_file_write(lw_path_join(&to, dir, name), bytes, n);
}

static bool is_model_file(const char *name)
{
    return lw_str_eq(name, "config.json") || lw_str_ends(name, ".safetensors.index.json") ||
           (lw_str_ends(name, ".safetensors") && !lw_str_eq(name, "optimizer.safetensors"));
}

static int copy_model(const quantizing *q, const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    if (!lw_path_is_dir(q->net->dir))
        return copy_file(q->net->dir, dir, "model.safetensors");
    LW_TRY(lw_list_dir(q->net->dir, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++)
        if (is_model_file(names[i]))
            rc = copy_file(lw_path_join(&path, q->net->dir, names[i]), dir, names[i]);
    lw_list_free(&names, n);
    return rc;
}

static int write_folder(const quantizing *q, const char *dir)
{
    char hash[32];
    snprintf(hash, sizeof hash, "%016llx",
             (unsigned long long)lw_store_hash(q->net->store, LW_SLAB_PARAM));
    LW_CLEANUP(lw_json_drop)
    json_t *about = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:s, s:f, s:I}", "source", q->c->source, "model_hash", hash,
        "data", q->c->calibration ? q->c->calibration : "noise", "inputs", q->in.what,
        "evaluations", (json_int_t)q->out->evaluations, "range", rules[q->c->rule], "percentile",
        q->c->percentile, "seed", (json_int_t)q->c->seed);
    if (!about)
        return lw_fail(LW_ENOMEM, "out of memory for quantization.json");
    LW_TRY(copy_model(q, dir));
    return lw_quantization_save(dir, q->seen, q->n, about);
}

/* ---- judging --------------------------------------------------------------------------------- */

static void copy_input(lw_exec *to, lw_exec *from, const char *name)
{
    const void *p = lw_exec_data(from, name);
    if (p)
        memcpy(lw_exec_data(to, name), p, lw_type_bytes(lw_exec_type(from, name)));
}

/* Runs the int8 plan on the inputs that the f32 plan saw last. */
static int judge(const quantizing *q, const char *dir)
{
    static const char *const inputs[] = {"x", "t", "class", "latent"};
    LW_CLEANUP(lw_quantization_free) lw_quantization *table = NULL;
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *e = NULL;
    int32_t side = lw_quantize_side(&q->in);
    LW_TRY(lw_quantization_find(dir, &table));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_network_build(q->net, g, q->c->batch, side, side, NULL));
    const lw_compile_opts o = {
        .opt = 1, .precision = LW_NUM_S8, .calibration = lw_quantization_ranges(table)};
    LW_TRY(lw_compile(g, q->dev, &o, &plan));
    LW_TRY(lw_exec_new(plan, LW_SLAB_PARAM, &e));
    for (size_t i = 0; i < LW_COUNT(inputs); i++)
        copy_input(e, q->exec, inputs[i]);
    LW_TRY(lw_exec_run(e, NULL));
    const float *a = lw_exec_data(q->exec, q->output), *b = lw_exec_data(e, q->output);
    double d = 0.0, s = 0.0;
    for (int64_t i = 0; i < lw_type_count(lw_exec_type(e, q->output)); i++) {
        d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        s += (double)a[i] * (double)a[i];
    }
    q->out->output_error = s > 0.0 ? sqrt(d / s) : 0.0;
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int run(quantizing *q)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    double start = lw_now();
    LW_TRY(lw_session_device_with(q->c->threads, q->c->conv, &q->dev));
    lw_pool_watch(q->dev->pool, q->obs);
    LW_TRY(lw_network_open(q->c->source, q->c->ema, &q->net));
    LW_TRY(lw_quantize_inputs_open(&q->in, q->c, q->dev, q->net));
    LW_TRY(choose_output(q));
    LW_TRY(build(q));
    LW_TRY(measure(q));
    LW_TRY(choose(q));
    LW_TRY(lw_new_dir_begin(&d, q->out->output_dir, false));
    LW_TRY(write_folder(q, lw_str_c(&d.tmp)));
    LW_TRY(judge(q, lw_str_c(&d.tmp)));
    LW_TRY(lw_new_dir_finish(&d));
    q->out->inputs = q->in.what;
    q->out->seconds = lw_now() - start;
    return 0;
}

int lw_job_quantize(const lw_quantize_config *c, const lw_observer *obs, lw_quantize_result *out)
{
    memset(out, 0, sizeof *out);
    quantizing q = {.c = c, .obs = obs, .in.obs = obs, .out = out};
    int rc = run(&q);
    lw_exec_free(&q.exec);
    lw_plan_free(&q.plan);
    lw_graph_free(&q.graph);
    lw_quantize_inputs_clear(&q.in);
    lw_network_close(&q.net);
    lw_backend_close(&q.dev);
    lw_free(&q.name);
    lw_free(&q.range);
    lw_free(&q.seen);
    return rc;
}
