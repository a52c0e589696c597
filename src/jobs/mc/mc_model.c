/* SPDX-License-Identifier: Apache-2.0 */
/* One model: opening it with its pictures, and its trials. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_parts.h"

enum { PREFIX_BATCH = 8, ID_SHIFT = 20 };

/* ---- opening ----------------------------------------------------------------------------------- */

/* "NAME=SOURCE"; without a name the last part of the path, without its ending. What exists as it stands is a path. */
static const char *split_name(const char *spec, lw_str *name)
{
    const char *equals = strchr(spec, '='), *slash = strchr(spec, '/');
    if (equals && (!slash || equals < slash) && !lw_path_exists(spec)) {
        lw_str_add_n(name, spec, (size_t)(equals - spec));
        return equals + 1;
    }
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *colon = strrchr(spec, ':');
    lw_str_add(&path, colon ? colon + 1 : spec);
    while (path.len > 1 && path.s[path.len - 1] == '/')
        path.s[--path.len] = '\0';
    const char *last = strrchr(lw_str_c(&path), '/');
    last = last ? last + 1 : lw_str_c(&path);
    const char *dot = strrchr(last, '.');
    const bool file = dot && dot > last &&
                      (lw_str_eq(dot, ".safetensors") || lw_str_eq(dot, ".pth"));
    lw_str_add_n(name, last, file ? (size_t)(dot - last) : strlen(last));
    return spec;
}

static int choose_name(mc_model *m, const char *spec, const char **source)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    *source = split_name(spec, &name);
    if (name.len >= sizeof m->out->name)
        return lw_fail(LW_EUSAGE,
                       "--models: %s is a name of %zu bytes, at most %zu; NAME=SOURCE gives names",
                       lw_str_c(&name), name.len, sizeof m->out->name - 1);
    snprintf(m->out->name, sizeof m->out->name, "%s", lw_str_c(&name));
    return name.failed ? LW_ENOMEM : 0;
}

static int open_network(mc_model *m, const char *source)
{
    LW_TRY(lw_network_open(source, true, &m->net));
    const lw_network *n = m->net;
    LW_TRY(lw_network_encodes(n));
    LW_TRY(lw_sites_find(n, m->c->sites, &m->sites));
    if (m->c->perturb == LW_NOISE_DEPTH && !lw_str_starts(m->sites.list, "depth"))
        return lw_fail(LW_EUSAGE,
                       "--perturb depth leaves out blocks: --sites depth, or a block of it");
    m->noise = (lw_noise){(lw_noise_kind)m->c->perturb, (float)m->c->dropout, &m->sites};
    m->hook = lw_noise_hook(&m->noise);
    m->net->hook = &m->hook;
    return 0;
}

/* A folder may be named without a word before it. */
static int make_spec(const char *data, lw_str *out)
{
    if (!strchr(data, ':') && lw_path_exists(data))
        lw_str_addf(out, "%s:%s", lw_str_ends(data, ".json") ? "manifest" : "folder", data);
    else
        lw_str_add(out, data);
    return out->failed ? LW_ENOMEM : 0;
}

lw_data_opts lw_mc_data_opts(const mc_model *m)
{
    lw_data_opts o = lw_network_data(m->net, m->c->image_size);
    o.seed = m->c->seed;
    o.on_error = (lw_on_error)m->c->on_error;
    o.pool = m->dev->pool;
    o.obs = m->obs;
    return o;
}

int lw_mc_data_open(const char *spec, const lw_data_opts *o, lw_dataset **out)
{
    LW_CLEANUP(lw_str_clear) lw_str whole = {0};
    LW_TRY(make_spec(spec, &whole));
    return lw_data_open(lw_str_c(&whole), o, out);
}

int lw_mc_pictures(const mc_model *m, const lw_degradation *worse, lw_dataset **out)
{
    lw_data_opts o = lw_mc_data_opts(m);
    o.split = (lw_split)m->c->split;
    o.num_images = m->c->num_images;
    o.at_most = m->c->at_most;
    o.degradation = worse;
    return lw_data_open(lw_str_c(&m->spec), &o, out);
}

/* Those of a manifest, or all. */
static int make_own_spec(mc_model *m)
{
    LW_CLEANUP(lw_str_clear) lw_str data = {0};
    if (!m->c->manifest)
        return make_spec(m->c->data, &m->spec);
    LW_TRY(make_spec(m->c->data, &data));
    return lw_data_listed(m->c->manifest, lw_str_c(&data), &m->spec);
}

static int open_pictures(mc_model *m)
{
    LW_TRY(make_own_spec(m));
    double t = lw_now();
    LW_TRY(lw_mc_pictures(m, NULL, &m->data));
    m->out->decode = lw_now() - t;
    m->n = m->data->n;
    m->name = lw_calloc((size_t)m->n, sizeof *m->name);
    if (!m->name)
        return LW_ENOMEM;
    for (int64_t i = 0; i < m->n; i++) {
        LW_CLEANUP(lw_str_clear) lw_str name = {0};
        lw_data_row_name(m->data, i, &name);
        m->name[i] = lw_strdup(lw_str_c(&name));
        if (!m->name[i])
            return LW_ENOMEM;
    }
    return 0;
}

static int open_passes(mc_model *m, int32_t rows)
{
    const lw_mc_config *c = m->c;
    const lw_passes_opts o = {
        .height = m->data->h,
        .width = m->data->w,
        .output = c->layer               ? c->layer
                  : m->net->features > 0 ? "pooled"
                                         : NULL,
        .precision = c->precision,
        .pictures = (int32_t)LW_MIN(m->n, (int64_t)PREFIX_BATCH),
        .rows = rows,
        .keep = m->n,
        .memory = c->memory ? c->memory : (uint64_t)lw_memory_total() / 2,
    };
    LW_TRY(lw_passes_new(m->dev, m->net, &o, &m->passes));
    m->dim = lw_passes_get_info(m->passes).dim;
    snprintf(m->out->layer, sizeof m->out->layer, "%s", o.output ? o.output : "");
    return 0;
}

int lw_mc_time_rows(mc_model *m, int32_t rows, double *seconds)
{
    LW_CLEANUP(lw_free) lw_pass_row *row = lw_calloc((size_t)rows, sizeof *row);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)rows * (size_t)m->dim, sizeof *x);
    if (!row || !x)
        return LW_ENOMEM;
    for (int32_t i = 0; i < rows; i++)
        row[i].id = i;
    for (int i = 0; i <= lw_device_warm_runs(m->dev, false); i++) {
        double t = lw_now();
        LW_TRY(lw_passes_run(m->passes, row, rows, &(lw_tick){0}, x));
        *seconds = lw_now() - t;
    }
    return 0;
}

/* The batch with the most rows a second; a larger one must be worth 3 %. Trying it may take a quarter of a second, or a
 * thirtieth of the passes. */
static int choose_batch(mc_model *m, int32_t *rows)
{
    static const int32_t tried[] = {8, 16, 32, 64};
    const int64_t all = m->n * m->most;
    const int runs = lw_device_warm_runs(m->dev, false) + 1;
    double best = 0, seconds, spent = 0;
    if (all <= tried[0]) /* all at once, and no row for nothing */
        return lw_passes_set_rows(m->passes, *rows = (int32_t)all);
    for (size_t i = 0; i < LW_COUNT(tried) && tried[i] <= all; i++) {
        if (best > 0 &&
            spent + runs * tried[i] / best > LW_MAX(0.25, (double)(all * m->c->trials) / best / 30))
            break;
        int rc = lw_passes_set_rows(m->passes, tried[i]);
        /* on a GPU those that fit will do */
        if (rc == LW_ENOMEM && best > 0 && m->dev->memory->fits) {
            lw_errclear();
            break;
        }
        LW_TRY(rc);
        LW_TRY(lw_mc_time_rows(m, tried[i], &seconds));
        double rate = tried[i] / seconds;
        spent += runs * seconds;
        if (rate > 1.03 * best) {
            best = rate;
            *rows = tried[i];
        } else if (rate < 0.9 * best) {
            break;
        }
    }
    return lw_passes_set_rows(m->passes, *rows);
}

static int make_passes(mc_model *m)
{
    int32_t rows = m->c->batch > 0 ? m->c->batch : 8;
    LW_TRY(open_passes(m, rows));
    if (m->c->batch == 0)
        LW_TRY(choose_batch(m, &rows));
    m->out->batch = rows;
    m->out->cut = lw_passes_get_info(m->passes);
    m->out->compile = m->out->cut.compile;
    return 0;
}

/* All that decides a bit of a score, but the number of trials. */
static int describe(mc_model *m)
{
    static const char *const kinds[] = {"dropout", "gaussian", "multiplicative", "depth"};
    const lw_mc_config *c = m->c;
    char device[LW_DEVICE_KINDS];
    lw_session_device_kind(m->dev, device);
    m->about = json_pack(
        "{s:s, s:o, s:s, s:s, s:f, s:s, s:s, s:o, s:o, s:I, s:I, s:s, s:s, s:s, s:s}", "network",
        m->net->name, "model_hash", lw_json_hash(lw_store_hash(m->net->store, LW_SLAB_PARAM)),
        "sites", m->sites.list, "perturb", kinds[c->perturb], "dropout", c->dropout, "layer",
        m->out->layer, "data", lw_str_c(&m->spec), "data_hash", lw_json_hash(m->data->content),
        "rows_hash", lw_json_hash(lw_data_rows_hash(m->data)), "num_images", (json_int_t)m->n,
        "seed", (json_int_t)c->seed, "precision", lw_precision_name(c->precision), "conv",
        lw_conv_mode_name(c->conv), "device", device, "isa", m->dev->isa);
    if (!m->about)
        return lw_fail(LW_EFORMAT, "%s is not UTF-8: no file can say where its pictures are from",
                       lw_str_c(&m->spec));
    if (c->precision == LW_NUM_S8) {
        LW_CLEANUP(lw_quantization_free) lw_quantization *quant = NULL;
        LW_TRY(lw_quantization_need(m->net, c->precision, &quant));
        json_object_set_new(m->about, "ranges_hash", lw_json_hash(lw_quantization_hash(quant)));
    }
    json_t *passes = json_array();
    for (int32_t i = 0; i < c->n_passes; i++)
        json_array_append_new(passes, json_integer(c->passes[i]));
    return json_object_set_new(m->about, "passes", passes) < 0 ? LW_ENOMEM : 0;
}

static void report(mc_model *m)
{
    lw_mc_model_result *r = m->out;
    uint64_t numbers = (uint64_t)m->n * (uint64_t)lw_data_row_size(m->data);
    snprintf(r->network, sizeof r->network, "%s", m->net->name);
    lw_str_add(&r->sites, m->sites.list);
    lw_mc_stored_dropout(m->net, r->stored_dropout, sizeof r->stored_dropout);
    r->parameters = m->net->parameters;
    r->n_sites = m->sites.n;
    r->live = m->sites.live;
    r->dim = m->dim;
    r->height = m->data->h;
    r->width = m->data->w;
    r->pictures = m->n;
    r->trials = m->c->trials;
    r->n_t = m->c->n_passes;
    memcpy(r->t, m->c->passes, sizeof r->t);
    r->weights = lw_store_bytes(m->net->store);
    r->pixels = numbers;
    r->pixels_f32 = 4 * numbers;
}

static int make_arrays(mc_model *m)
{
    size_t n = (size_t)m->n, t = (size_t)m->c->n_passes, k = (size_t)m->c->trials;
    m->scores = lw_calloc(t * k * n, sizeof *m->scores);
    m->mean = lw_calloc(t * n * (size_t)m->dim, sizeof *m->mean);
    m->var = lw_calloc(t * n * (size_t)m->dim, sizeof *m->var);
    if (m->experiments & MC_EXP0B)
        m->geometry = lw_calloc(k * n, sizeof *m->geometry);
    return m->scores && m->mean && m->var && (m->geometry || !(m->experiments & MC_EXP0B))
               ? 0
               : LW_ENOMEM;
}

int lw_mc_open(mc_model *m, const char *spec)
{
    const char *source;
    LW_TRY(choose_name(m, spec, &source));
    m->most = m->c->passes[m->c->n_passes - 1];
    LW_TRY(open_network(m, source));
    LW_TRY(open_pictures(m));
    LW_TRY(make_passes(m));
    LW_TRY(describe(m));
    if (m->c->one_pass)
        LW_TRY(lw_mc_one_pass_open(m));
    report(m);
    LW_TRY(lw_mc_check_memory(m));
    return make_arrays(m);
}

void lw_mc_close(mc_model *m)
{
    lw_passes_free(&m->passes);
    lw_mc_one_pass_close(&m->one_pass);
    for (int64_t i = 0; m->name && i < m->n; i++)
        lw_free(&m->name[i]);
    lw_free(&m->name);
    lw_data_close(&m->data);
    lw_sites_clear(&m->sites);
    lw_network_close(&m->net);
    lw_free(&m->scores);
    lw_free(&m->geometry);
    lw_free(&m->mean);
    lw_free(&m->var);
    lw_free(&m->right);
    lw_free(&m->reference);
    lw_str_clear(&m->spec);
    lw_json_drop(&m->about);
}

/* ---- passes ------------------------------------------------------------------------------------ */

int lw_mc_fill(void *model, int64_t first, int64_t n, float *dst)
{
    const mc_model *m = model;
    lw_data_get_rows(m->data, m->dev->pool, first, n, dst);
    return 0;
}

/* Rows of a trial: picture i in passes 0 .. most - 1, then picture i + 1. Features wait in a ring
 * until their picture is whole. */
typedef struct trial {
    mc_model *m;
    int32_t k;
    int64_t ring;     /* pictures */
    float *features;  /* [ring][most][dim] */
    lw_pass_row *row; /* [batch] */
    float *out;       /* [batch][dim] */
    int64_t first;    /* picture of the first task that scores */
} trial;

static void trial_clear(trial *t)
{
    lw_free(&t->features);
    lw_free(&t->row);
    lw_free(&t->out);
}

static int score_picture(void *arg, int64_t task, int worker)
{
    const trial *t = arg;
    mc_model *m = t->m;
    int64_t i = t->first + task;
    (void)worker;
    const float *x = t->features + (i % t->ring) * m->most * m->dim;
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        int64_t at = ((int64_t)p * m->n + i) * m->dim;
        bool last = p + 1 == m->c->n_passes;
        lw_pass_geometry *g = last && m->geometry ? m->geometry[t->k * m->n + i] : NULL;
        int rc = lw_pass_scores(x, m->c->passes[p], m->dim, mc_at(m, p, t->k)[i], m->mean + at,
                                m->var + at, g);
        if (rc < 0)
            return lw_fail_in(rc, "%s, trial %d: ", m->name[i], (int)t->k + 1);
    }
    return 0;
}

/* Pictures first .. end - 1 are whole. */
static int score_pictures(trial *t, int64_t first, int64_t end)
{
    double begin = lw_now();
    t->first = first;
    int rc = lw_pool_try(t->m->dev->pool, end - first, score_picture, t);
    t->m->out->scores += lw_now() - begin;
    return rc;
}

static void name_rows(trial *t, int64_t from, int64_t n)
{
    const mc_model *m = t->m;
    for (int64_t r = 0; r < n; r++) {
        int64_t picture = (from + r) / m->most, pass = (from + r) % m->most;
        t->row[r] = (lw_pass_row){picture,
                                  lw_data_row_number(m->data, picture) * (1 << ID_SHIFT) + pass};
    }
}

/* A device computes until end_rows. */
static int begin_rows(trial *t, int64_t from, int64_t n)
{
    mc_model *m = t->m;
    const lw_tick tick = {.seed = m->c->seed, .step = (uint32_t)t->k};
    double begin = lw_now();
    name_rows(t, from, n);
    LW_TRY(lw_passes_begin(m->passes, t->row, (int32_t)n, &tick));
    m->out->passes += lw_now() - begin;
    return 0;
}

/* next: how many rows are behind these, which are copied in meanwhile. */
static int end_rows(trial *t, int64_t from, int64_t n, int64_t next)
{
    mc_model *m = t->m;
    double begin = lw_now();
    if (next > 0) {
        name_rows(t, from + n, next);
        lw_passes_feed(m->passes, t->row, (int32_t)next);
    }
    LW_TRY(lw_passes_end(m->passes, (int32_t)n, t->out));
    m->out->passes += lw_now() - begin;
    for (int64_t r = 0; r < n; r++)
        memcpy(t->features + (from + r) % (t->ring * m->most) * m->dim, t->out + r * m->dim,
               sizeof *t->out * (size_t)m->dim);
    return 0;
}

static int run_trial(mc_model *m, trial *t, int32_t k)
{
    char what[96];
    int64_t rows = m->n * m->most, whole = 0;
    bool plain = lw_str_eq(m->stem, "exp0_trials");
    snprintf(what, sizeof what, "%s%s%s T=%d K=%d/%d", m->out->name, plain ? "" : " ",
             plain ? "" : m->stem, (int)m->most, (int)k + 1, (int)m->c->trials);
    t->k = k;
    for (int64_t at = 0; at < rows; at += m->out->batch) {
        const int64_t batch = m->out->batch, n = LW_MIN(batch, rows - at);
        LW_TRY(begin_rows(t, at, n));
        LW_TRY(score_pictures(t, whole,
                              at / m->most)); /* of the batch before, while a device computes */
        whole = at / m->most;
        LW_TRY(end_rows(t, at, n, LW_MIN(batch, rows - at - n)));
        lw_observe_progress(m->obs, what, at + n, rows, NULL);
        if (at + n < rows && lw_observe_stop(m->obs))
            return LW_ESTOPPED;
    }
    LW_TRY(score_pictures(t, whole, m->n));
    for (int32_t p = 0; p < m->c->n_passes; p++) {
        int64_t skip = (int64_t)p * m->n * m->dim;
        LW_TRY(lw_pass_scores_across(m->mean + skip, m->var + skip, m->n, m->dim, mc_at(m, p, k)));
    }
    return 0;
}

static int trial_init(mc_model *m, trial *t)
{
    size_t batch = (size_t)m->out->batch, dim = (size_t)m->dim;
    t->m = m;
    t->ring = m->out->batch / m->most + 2;
    t->features = lw_calloc((size_t)(t->ring * m->most) * dim, sizeof *t->features);
    t->row = lw_calloc(batch, sizeof *t->row);
    t->out = lw_calloc(batch * dim, sizeof *t->out);
    return t->features && t->row && t->out ? 0 : LW_ENOMEM;
}

/* Whoever saw it first: this loop, or threads at work. */
static int stopped(const mc_model *m)
{
    const char *name = m->out->name;
    if (m->done == 0)
        return lw_fail(
            LW_ESTOPPED,
            "interrupted before the first of %d trials of %s was whole: nothing is kept of it",
            (int)m->c->trials, name);
    return lw_fail(LW_ESTOPPED,
                   "interrupted after %d of %d trials of %s, which are kept: go on with --resume",
                   (int)m->done, (int)m->c->trials, name);
}

int lw_mc_trials(mc_model *m)
{
    LW_CLEANUP(trial_clear) trial t = {0};
    int rc = 0;
    if (m->done == m->c->trials) /* whoever was killed behind the last one has not said so */
        return mc_is_exp0(m) ? lw_mc_progress(m) : 0;
    LW_TRY(trial_init(m, &t));
    double begin = lw_now();
    LW_TRY(lw_passes_prefix(m->passes, 0, m->n, lw_mc_fill, m, m->obs));
    m->out->prefix = lw_now() - begin;
    for (int32_t k = m->done; k < m->c->trials && rc == 0; k++) {
        rc = run_trial(m, &t, k);
        m->done += rc == 0;
        if (m->done > 0 && (rc < 0 || m->done % m->c->save_every == 0))
            LW_TRY(lw_mc_state_write(m));
    }
    return rc == LW_ESTOPPED ? stopped(m) : rc;
}
