/* SPDX-License-Identifier: Apache-2.0 */
/* leeway sample: pictures of a generator into a grid, an array or a folder. */
#include "session/session_generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "session/session_device.h"
#include "report/report.h"
#include "jobs/sample/sample_job.h"

typedef struct sampling {
    const lw_sample_config *c;
    lw_source *source;
    lw_device *dev;
    lw_sampler *sampler;
    int32_t *list, n_list; /* classes gone through in turn */
    int32_t *classes;      /* [n] */
    double *alphas;        /* or NULL */
    float *x;              /* [n][side][side][channels] */
    int32_t side, channels;
} sampling;

typedef enum form { FORM_FOLDER, FORM_GRID, FORM_NPY, FORM_NPZ } form;

static form form_of(const char *output)
{
    return lw_str_ends(output, ".png")                                 ? FORM_GRID
           : lw_str_ends(output, ".npz")                               ? FORM_NPZ
           : lw_str_ends(output, ".npy") || lw_path_is_special(output) ? FORM_NPY
                                                                       : FORM_FOLDER;
}

/* ---- writing ---------------------------------------------------------------------------- */

static void set(json_t *o, const char *key, json_t *value, bool said)
{
    if (said)
        json_object_set_new(o, key, value);
    else
        json_decref(value);
}

static json_t *choice(const char *choices, int32_t i)
{
    size_t n;
    const char *word = lw_str_choice(choices, i, &n);
    return json_stringn(word, n);
}

static json_t *alpha_values(const lw_sample_config *c)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < c->n_alpha_values; i++)
        json_array_append_new(list, json_real((double)c->alpha_values[i]));
    return list;
}

json_t *lw_sample_options(const lw_sample_config *c, lw_sampler_kind kind)
{
    const bool linear = c->alpha_schedule == LW_ALPHA_LINEAR,
               list = c->alpha_schedule == LW_ALPHA_LIST;
    json_t *o = json_object();
    if (!o)
        return NULL;
    set(o, "classes", json_string(c->classes), !lw_str_eq(c->classes, "all"));
    set(o, "alpha", json_real(c->alpha), c->alpha > 0.0);
    set(o, "alpha_schedule", choice(LW_ALPHA_SCHEDULES, c->alpha_schedule), linear || list);
    set(o, "alpha_start", json_real(c->alpha_start), linear);
    set(o, "alpha_end", json_real(c->alpha_end), linear);
    set(o, "alpha_values", alpha_values(c), list);
    set(o, "guidance_scale", json_real(c->guidance_scale), c->guidance_scale > 1.0);
    set(o, "timestep_spacing", choice(LW_SAMPLER_SPACINGS, c->spacing), c->spacing > 0);
    set(o, "use_clipped_model_output", json_false(),
        !c->use_clipped_model_output && kind == LW_SAMPLER_DDIM);
    set(o, "window", json_integer(c->window), c->window > 0);
    return o;
}

/* Notes of a PNG are texts. */
static void add_options(const sampling *s, json_t *notes)
{
    LW_CLEANUP(lw_json_drop)
    json_t *options = lw_sample_options(s->c, lw_sampler_get_kind(s->sampler));
    const char *key;
    json_t *value;
    json_object_foreach(options, key, value)
    {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        json_object_set_new(notes, key,
                            json_is_string(value) ? json_incref(value) : json_string(text));
        free(text);
    }
}

static json_t *notes(const sampling *s)
{
    char step[32], seed[32], evaluations[16];
    snprintf(step, sizeof step, "%lld", (long long)s->source->step);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->c->seed);
    snprintf(evaluations, sizeof evaluations, "%d", (int)lw_sampler_evaluations(s->sampler));
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s*, s:o, s:s}", "precision",
                          lw_precision_name(s->c->precision), "Software", "leeway", "method",
                          lw_method_name(s->source->method), "sampler",
                          lw_sampler_kind_name(lw_sampler_get_kind(s->sampler)), "evaluations",
                          evaluations, "seed", seed, "step", s->source->step < 0 ? NULL : step,
                          "model_hash", lw_json_hash(s->source->hash), "weights",
                          s->source->averaged ? "ema" : "model");
    add_options(s, o);
    return o;
}

static int write_grid(const sampling *s)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_CLEANUP(lw_json_drop) json_t *texts = notes(s);
    bool classes = s->source->net->classes > 0;
    int32_t columns = classes && s->n_list > 1 && s->n_list <= 16 ? s->n_list : 0;
    const lw_grid g = {.columns = columns,
                       .padding = 1,
                       .channels = s->channels,
                       .scale = s->side <= 16   ? 4
                                : s->side <= 64 ? 2
                                                : 1};
    LW_TRY(lw_grid_f32(&g, s->x, (int32_t)s->c->n, s->side, s->side, &im));
    return lw_png_save(s->c->output, &im, texts);
}

static int write_npy(const sampling *s)
{
    int64_t plane = (int64_t)s->side * s->side, c = s->channels;
    const int64_t shape[4] = {s->c->n, c, s->side, s->side};
    LW_CLEANUP(lw_free) float *y = lw_calloc((size_t)(s->c->n * plane * c), sizeof *y);
    if (!y)
        return LW_ENOMEM;
    lw_rows_transpose(y, s->x, s->c->n, plane, c);
    return lw_npy_save(s->c->output, LW_ELEM_F32, 4, shape, y);
}

/* What guided-diffusion's scripts write and its evaluator reads. */
static int write_npz(const sampling *s)
{
    const int64_t n = s->c->n, shape[4] = {n, s->side, s->side, s->channels};
    bool classes = s->source->net->classes > 0;
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_CLEANUP(lw_array_clear) lw_array a = {0}, labels = {0};
    LW_TRY(lw_array_init(&a, LW_ELEM_U8, 4, shape));
    for (int64_t i = 0; i < a.count; i++)
        ((uint8_t *)a.data)[i] = lw_pixel_u8(s->x[i]);
    LW_TRY(lw_npz_add(&z, "arr_0", &a));
    if (classes) {
        LW_TRY(lw_array_init(&labels, LW_ELEM_I64, 1, &n));
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)labels.data)[i] = s->classes[i];
        LW_TRY(lw_npz_add(&z, "arr_1", &labels));
    }
    return lw_npz_save(s->c->output, &z);
}

/* 000000.png, 000001.png, ... and labels.csv, which says their classes. */
static int write_folder(const sampling *s, const lw_observer *obs)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, csv = {0};
    LW_CLEANUP(lw_json_drop) json_t *texts = notes(s);
    const lw_grid g = {.columns = 1, .channels = s->channels};
    char name[32], buf[16];
    LW_TRY(lw_new_dir_begin(&d, s->c->output, false));
    lw_str_add(&csv, "file,class\n");
    for (int64_t i = 0; i < s->c->n; i++) {
        LW_CLEANUP(lw_image_clear) lw_image im = {0};
        snprintf(name, sizeof name, "%06lld.png", (long long)i);
        LW_TRY(
            lw_grid_f32(&g, s->x + i * s->side * s->side * s->channels, 1, s->side, s->side, &im));
        LW_TRY(lw_png_save(lw_path_join(&path, lw_str_c(&d.tmp), name), &im, texts));
        const char *const cells[] = {name, lw_source_class(s->source, s->classes[i], buf)};
        lw_csv_row(&csv, cells, LW_COUNT(cells));
        lw_observe_progress(obs, "write", i + 1, s->c->n, NULL);
    }
    lw_path_join(&path, lw_str_c(&d.tmp), "labels.csv");
    if (s->source->net->classes > 0)
        LW_TRY(lw_file_write(lw_str_c(&path), lw_str_c(&csv), csv.len));
    return lw_new_dir_finish(&d);
}

static int write_output(const sampling *s, const lw_observer *obs)
{
    switch (form_of(s->c->output)) {
    case FORM_GRID:
        return write_grid(s);
    case FORM_NPY:
        return write_npy(s);
    case FORM_NPZ:
        return write_npz(s);
    default:
        return write_folder(s, obs);
    }
}

/* ---- making ----------------------------------------------------------------------------- */

/* A file of pixels would hide it. */
static int check_finite(const sampling *s)
{
    int rc = lw_pictures_check(s->x, s->c->n, (int64_t)s->side * s->side * s->channels, 0);
    return rc < 0 ? lw_fail(rc, "%s: %s; nothing was written", s->c->source, lw_errmsg()) : 0;
}

/* What cannot be written is said before the work, not after it. */
static int check_output(const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str parent = {0};
    if (form_of(path) != FORM_FOLDER) {
        lw_path_parent(path, &parent);
        return lw_mkdirs(lw_str_c(&parent));
    }
    if (lw_path_exists(path) && !lw_path_is_dir(path))
        return lw_fail(LW_EUSAGE, "--output %s: is a file; give a .png, a .npy, a .npz or a folder",
                       path);
    return 0;
}

/* Strengths of guidance of the pictures; NULL in *out: one for all. */
static int choose_alphas(const lw_sample_config *c, double **out, int64_t *n)
{
    bool list = c->alpha_schedule == LW_ALPHA_LIST;
    if (list != (c->n_alpha_values > 0))
        return lw_fail(LW_EUSAGE, "--alpha-values and --alpha-schedule list: give both or none");
    if (c->alpha_schedule != LW_ALPHA_CONSTANT && c->alpha > 0.0)
        return lw_fail(LW_EUSAGE, "--alpha is of --alpha-schedule constant");
    if (c->alpha_schedule == LW_ALPHA_CONSTANT)
        return 0;
    *n = list ? c->n_alpha_values : c->n;
    *out = lw_calloc((size_t)*n, sizeof **out);
    if (!*out)
        return LW_ENOMEM;
    for (int64_t i = 0; i < *n; i++)
        (*out)[i] = list ? (double)c->alpha_values[i]
                         : c->alpha_start + (c->alpha_end - c->alpha_start) * (double)i /
                                                (double)LW_MAX(*n - 1, 1);
    return 0;
}

static int open_all(sampling *s, const lw_observer *obs)
{
    const lw_sample_config *c = s->c;
    const lw_sampler_opts o = {.kind = c->kind,
                               .steps = c->steps,
                               .spacing = c->spacing,
                               .alpha = c->alpha,
                               .guidance_scale = c->guidance_scale,
                               .keep_eps = !c->use_clipped_model_output,
                               .seed = c->seed,
                               .weights = LW_SLAB_PARAM,
                               .precision = c->precision,
                               .batch = (int32_t)LW_MIN((int64_t)c->batch, c->n)};
    LW_TRY(lw_source_open(c->source, c->ema, &s->source));
    LW_TRY(lw_precision_check(c->precision, s->source->quant, s->source->net, c->source));
    LW_TRY(lw_source_classes(s->source, c->classes, &s->list, &s->n_list));
    LW_TRY(check_output(c->output));
    LW_TRY(lw_session_device_with(c->threads, c->conv, &s->dev));
    lw_pool_watch(s->dev->pool, obs);
    lw_sampler_opts opts = o;
    LW_TRY(choose_alphas(c, &s->alphas, &opts.n_alphas));
    opts.alphas = s->alphas;
    opts.method = s->source->method;
    opts.diffusion = s->source->diffusion;
    opts.calibration = lw_quantization_ranges(s->source->quant);
    s->source->net->window = c->window;
    s->side = lw_picture_side(s->source->net);
    s->channels = lw_picture_channels(s->source->net);
    s->classes = lw_calloc((size_t)c->n, sizeof *s->classes);
    s->x = lw_calloc((size_t)(c->n * s->side * s->side * s->channels), sizeof *s->x);
    if (!s->classes || !s->x)
        return LW_ENOMEM;
    for (int64_t i = 0; i < c->n; i++)
        s->classes[i] = s->list[i % s->n_list];
    return lw_sampler_new(s->dev, s->source->net, &opts, &s->sampler);
}

static int run(sampling *s, const lw_observer *obs, lw_sample_result *out)
{
    LW_TRY(open_all(s, obs));
    double start = lw_now();
    LW_TRY(lw_sampler_run(s->sampler, 0, s->c->n, s->source->net->classes ? s->classes : NULL, obs,
                          s->x));
    double seconds = lw_now() - start;
    LW_TRY(check_finite(s));
    LW_TRY(write_output(s, obs));
    *out = (lw_sample_result){.n = s->c->n,
                              .step = s->source->step,
                              .seconds = seconds,
                              .image_size = s->side,
                              .parameters = lw_store_param_count(s->source->net->store),
                              .evaluations = lw_sampler_evaluations(s->sampler),
                              .method = lw_method_name(s->source->method),
                              .sampler = lw_sampler_kind_name(lw_sampler_get_kind(s->sampler)),
                              .kind = lw_sampler_get_kind(s->sampler),
                              .precision = lw_precision_name(s->c->precision),
                              .images_per_second = (double)s->c->n / LW_MAX(seconds, 1e-9),
                              .hash = s->source->hash,
                              .bytes = lw_sampler_bytes(s->sampler) +
                                       lw_store_bytes(s->source->net->store),
                              .averaged = s->source->averaged};
    return 0;
}

int lw_job_sample(const lw_sample_config *c, const lw_observer *obs, lw_sample_result *out)
{
    sampling s = {.c = c};
    int rc = run(&s, obs, out);
    lw_sampler_free(&s.sampler);
    lw_free(&s.x);
    lw_free(&s.classes);
    lw_free(&s.alphas);
    lw_free(&s.list);
    lw_source_close(&s.source);
    lw_backend_close(&s.dev);
    return rc;
}
