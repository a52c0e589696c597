/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring ranges, choosing scales, writing the model folder that int8 takes. */
#include "jobs/quantize/quantize_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session_device.h"
#include "jobs/quantize/quantize_inputs.h"

typedef struct quantizing {
    const lw_quantize_config *c;
    const lw_observer *obs;
    lw_device *dev;
    lw_network *net;
    lw_quantize_inputs in;
    lw_forward *f;       /* in f32, with edges as outputs */
    const lw_port *port; /* its first output, and behind it [n] edges */
    lw_ranges *range;    /* [n] */
    lw_edge_seen *seen;  /* [n] */
    int32_t n;
    lw_quantize_result *out;
} quantizing;

static const char *const rules[] = {"mse", "percentile", "minmax"};

/* ---- opening --------------------------------------------------------------------------------- */

/* SOURCE-int8. A source that ends in . or .. is meant by its name: ".-int8" would be hidden in it. */
static int default_output(const char *source, lw_str *path)
{
    LW_CLEANUP(lw_str_clear) lw_str whole = {0};
    size_t n = strlen(source), last;
    while (n > 1 && source[n - 1] == '/')
        n--;
    for (last = n; last > 0 && source[last - 1] != '/';)
        last--;
    if ((n - last == 1 || n - last == 2) && strspn(source + last, ".") == n - last) {
        char *real = realpath(source, NULL);
        lw_str_add(&whole, real ? real : source);
        free(real); /* the C library's */
        source = lw_str_c(&whole);
        n = whole.len;
    }
    lw_str_addf(path, "%.*s-int8", (int)n, source);
    return path->failed ? LW_ENOMEM : 0;
}

/* SOURCE-int8 beside the source, unless said otherwise; never the source itself. */
static int choose_output(quantizing *q)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const lw_quantize_config *c = q->c;
    if (c->output_dir)
        lw_str_add(&path, c->output_dir);
    else
        LW_TRY(default_output(c->source, &path));
    if (path.len >= sizeof q->out->output_dir)
        return lw_fail(LW_EUSAGE, "--output-dir is longer than %zu characters",
                       sizeof q->out->output_dir - 1);
    snprintf(q->out->output_dir, sizeof q->out->output_dir, "%s", lw_str_c(&path));
    return lw_output_check("--output-dir", q->out->output_dir, LW_OUT_NEW_DIR);
}

/* All edges are outputs and stay in memory together. */
static int build(quantizing *q)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_network_build(q->net, g, q->c->batch, q->in.h, q->in.w, NULL));
    LW_TRY(lw_calibration_outputs(g));
    q->n = lw_graph_output_count(g) - 1;
    if (q->n == 0)
        return lw_fail(LW_EUNSUPPORTED, "%s has no product that int8 can compute", q->net->dir);
    LW_TRY(lw_forward_of(q->dev, &g, NULL, LW_SLAB_PARAM, q->net->dir, &q->f));
    q->port = lw_forward_port(q->f, lw_forward_count(q->f) - q->n - 1);
    q->in.f = q->f;
    q->range = lw_calloc((size_t)q->n, sizeof *q->range);
    q->seen = lw_calloc((size_t)q->n, sizeof *q->seen);
    return q->range && q->seen ? 0 : LW_ENOMEM;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void edge_task(void *arg, int64_t i, int worker)
{
    quantizing *q = arg;
    (void)worker;
    const lw_port *p = &q->port[1 + i];
    lw_ranges_add(&q->range[i], lw_forward_output(q->f, p->name), p->shape[0] * p->row);
}

static int measure(quantizing *q)
{
    int64_t batches = LW_CEIL_DIV(q->c->n, q->c->batch), total = batches * q->in.times;
    for (int64_t b = 0; b < batches; b++)
        for (int32_t k = 0; k < q->in.times; k++) {
            LW_TRY(lw_quantize_inputs_fill(&q->in, b * q->c->batch, k));
            LW_TRY(lw_forward_run(q->f, NULL));
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
        e->name = q->port[1 + i].name + strlen(LW_EDGE_OUTPUT);
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

/* Of other forms (torch.save's, an index in its place), as one file of safetensors. */
static int convert_weights(const char *from, const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str to = {0};
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_open(from, &f));
    const size_t n = lw_st_count(f);
    LW_CLEANUP(lw_free) lw_st_tensor *t = lw_calloc(n + 1, sizeof *t);
    if (!t)
        return LW_ENOMEM;
    for (size_t i = 0; i < n; i++)
        t[i] = *lw_st_at(f, i);
    const char *name = strrchr(from, '/');
    const bool diffusers = lw_str_starts(name ? name + 1 : from, "diffusion_pytorch_model");
    lw_path_join(&to, dir, diffusers ? LW_WEIGHTS_DIFFUSERS : LW_WEIGHTS_HF);
    return lw_st_save(lw_str_c(&to), t, n, NULL, 0);
}

static bool is_model_file(const char *name)
{
    return lw_str_eq(name, "config.json") || lw_str_eq(name, "open_clip_config.json") ||
           lw_str_eq(name, "preprocessor_config.json") ||
           lw_str_eq(name, "scheduler_config.json") ||
           lw_str_ends(name, ".safetensors.index.json") ||
           (lw_str_ends(name, ".safetensors") && !lw_str_eq(name, "optimizer.safetensors"));
}

static int copy_model(const quantizing *q, const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, weights = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    LW_TRY(lw_model_weights_find(q->net->dir, &weights));
    const bool as_it_is = lw_str_ends(lw_str_c(&weights), ".safetensors");
    if (!lw_path_is_dir(q->net->dir))
        return as_it_is ? copy_file(q->net->dir, dir, LW_WEIGHTS_HF)
                        : convert_weights(q->net->dir, dir);
    if (!as_it_is && !lw_str_ends(lw_str_c(&weights), ".safetensors.index.json"))
        LW_TRY(convert_weights(lw_str_c(&weights), dir));
    LW_TRY(lw_list_dir(q->net->dir, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++)
        if (is_model_file(names[i]))
            rc = copy_file(lw_path_join(&path, q->net->dir, names[i]), dir, names[i]);
    lw_list_free(&names, n);
    return rc;
}

static int write_folder(const quantizing *q, const char *dir)
{
    LW_CLEANUP(lw_quantization_free) lw_quantization *before = NULL;
    LW_TRY(lw_quantization_find(q->net->dir, &before));
    LW_CLEANUP(lw_json_drop)
    json_t *about = json_pack(
        "{s:o, s:s, s:o, s:o, s:s, s:I, s:s, s:f, s:I}", "source", lw_json_name(q->c->source),
        "weights", lw_weights_averaged(q->net->dir, before) ? "ema" : "model", "model_hash",
        lw_json_hash(lw_store_hash(q->net->store, LW_SLAB_PARAM)), "data",
        lw_json_name(q->c->calibration ? q->c->calibration : "noise"), "inputs", q->in.what,
        "evaluations", (json_int_t)q->out->evaluations, "range", rules[q->c->rule], "percentile",
        q->c->percentile, "seed", (json_int_t)q->c->seed);
    if (!about)
        return lw_fail(LW_ENOMEM, "out of memory for quantization.json");
    LW_TRY(copy_model(q, dir));
    return lw_quantization_save(dir, q->seen, q->n, about);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Runs the int8 plan on the inputs that the f32 plan saw last. */
static int judge(const quantizing *q, const char *dir)
{
    LW_CLEANUP(lw_forward_free) lw_forward *f = NULL;
    const lw_forward_opts o = {.batch = q->c->batch,
                               .height = q->in.h,
                               .width = q->in.w,
                               .precision = LW_NUM_S8,
                               .ranges = dir};
    LW_TRY(lw_forward_new(q->dev, q->net, &o, &f));
    for (int i = 0; i < lw_forward_count(f); i++)
        if (!lw_forward_port(f, i)->output)
            lw_forward_pass(q->f, lw_forward_port(f, i)->name, f, lw_forward_port(f, i)->name);
    LW_TRY(lw_forward_run(f, NULL));
    const float *a = lw_forward_output(q->f, q->port->name),
                *b = lw_forward_output(f, q->port->name);
    double d = 0.0, s = 0.0;
    for (int64_t i = 0; i < q->port->shape[0] * q->port->row; i++) {
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
    LW_TRY(choose_output(q));
    LW_TRY(lw_quantize_inputs_open(&q->in, q->c, q->dev, q->net));
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
    lw_forward_free(&q.f);
    lw_quantize_inputs_clear(&q.in);
    lw_network_close(&q.net);
    lw_backend_close(&q.dev);
    lw_free(&q.range);
    lw_free(&q.seen);
    return rc;
}
