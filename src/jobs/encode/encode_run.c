/* SPDX-License-Identifier: Apache-2.0 */
/* A network over pictures, row by row into a file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/encode/encode_rows.h"

/* Everything an encode holds; cleared in one place. */
typedef struct encode_state {
    const lw_encode_config *c;
    const lw_observer *obs;
    lw_encode_result *out;
    lw_device *dev;
    lw_network *net;
    lw_encode_rows rows;
    lw_forward *fwd;
    const lw_port *tap[LW_ENCODE_TAPS];
    float *values[LW_ENCODE_TAPS]; /* of one batch */
    int32_t batch;
    json_t *about;
    lw_encode_file file;
    /* the batch being filled */
    int64_t first;
} encode_state;

static void clear_state(encode_state *s)
{
    lw_encode_file_close(&s->file);
    json_decref(s->about);
    for (int k = 0; k < LW_ENCODE_TAPS; k++)
        lw_free(&s->values[k]);
    lw_forward_free(&s->fwd);
    lw_encode_rows_clear(&s->rows);
    lw_network_close(&s->net);
    lw_backend_close(&s->dev);
}

/* ---- what is encoded ------------------------------------------------------------------------- */

static int open_network(encode_state *s)
{
    LW_TRY(lw_network_open(s->c->source, s->c->ema, &s->net));
    const lw_network *n = s->net;
    LW_TRY(lw_network_encodes(n));
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_contract_preparation(n, &text);
    snprintf(s->out->preparation, sizeof s->out->preparation, "%s", lw_str_c(&text));
    return 0;
}

/* The names asked for with commas between; a list given twice is one list. */
static int list_layers(const encode_state *s, lw_str *out)
{
    for (int32_t i = 0; i < s->c->n_layers; i++)
        lw_str_addf(out, "%s%s", i ? "," : "", s->c->layers[i]);
    if (s->c->n_layers == 0 && s->net->features > 0)
        lw_str_add(out, "pooled");
    return out->failed ? LW_ENOMEM : 0;
}

static int find_tap(encode_state *s, const char *name, int k)
{
    LW_TRY(lw_forward_find(s->fwd, name, &s->tap[k]));
    const lw_port *p = s->tap[k];
    if (s->c->l2_normalize && p->rank != 2)
        return lw_fail(LW_EUSAGE,
                       "--l2-normalize: %s has more than one vector for a picture; pooled, cls and "
                       "logits have one",
                       name);
    s->values[k] = lw_calloc((size_t)s->batch, p->bytes);
    return s->values[k] ? 0 : LW_ENOMEM;
}

static int open_forward(encode_state *s)
{
    LW_CLEANUP(lw_str_clear) lw_str layers = {0};
    const lw_encode_config *c = s->c;
    LW_TRY(list_layers(s, &layers));
    s->batch = (int32_t)LW_MIN(s->rows.n, (int64_t)c->batch);
    LW_TRY(lw_forward_new(s->dev, s->net,
                          &(lw_forward_opts){.batch = s->batch,
                                             .height = s->rows.data->h,
                                             .width = s->rows.data->w,
                                             .output = layers.len ? layers.s : NULL,
                                             .precision = c->precision},
                          &s->fwd));
    s->out->n_taps = LW_MAX(c->n_layers, 1);
    for (int32_t k = 0; k < c->n_layers; k++)
        LW_TRY(find_tap(s, c->layers[k], k));
    if (c->n_layers > 0)
        return 0;
    return find_tap(s, lw_forward_port(s->fwd, lw_forward_count(s->fwd) - 1)->name, 0);
}

/* ---- what is written ------------------------------------------------------------------------- */

/* What `leeway fid` compares; of several layers each array is called by its own. */
static int describe_contract(encode_state *s, lw_contract *c, lw_str *out)
{
    lw_contract_of(s->net, s->c->precision, s->rows.data->h, s->rows.data->w, c);
    snprintf(c->value[LW_CONTRACT_LAYER], sizeof c->value[0], "%s",
             s->out->n_taps == 1 ? s->tap[0]->name : "");
    LW_CLEANUP(lw_json_drop) json_t *j = lw_contract_json(c);
    lw_json_dump(j, 0, out);
    return out->failed ? LW_ENOMEM : 0;
}

/* All that decides a bit of the file, and whence it came. */
static int describe(encode_state *s)
{
    LW_CLEANUP(lw_str_clear) lw_str layers = {0}, contract = {0};
    const lw_encode_config *c = s->c;
    lw_contract made;
    char number[3][32];
    for (int k = 0; k < s->out->n_taps; k++)
        lw_str_addf(&layers, "%s%s", k ? "," : "", s->tap[k]->name);
    snprintf(number[0], sizeof number[0], "%" PRId64, s->rows.n);
    snprintf(number[1], sizeof number[1], "%" PRIu64, c->seed);
    snprintf(number[2], sizeof number[2], "%dx%d", (int)s->rows.data->h, (int)s->rows.data->w);
    LW_TRY(describe_contract(s, &made, &contract));
    s->about = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}",
        "leeway", lw_build_version(), "model", c->source, "model_hash",
        made.value[LW_CONTRACT_HASH], "network", s->net->name, "data", lw_str_c(&s->rows.spec),
        "data_hash", lw_json_hash(s->rows.data->content), "rows_hash", lw_json_hash(s->rows.hash),
        "split", lw_split_name((lw_split)c->split), "rows", number[0], "seed", number[1],
        "pictures", number[2], "preparation", s->out->preparation, "layer", lw_str_c(&layers),
        "precision", lw_precision_name(c->precision), "conv", lw_conv_mode_name(c->conv),
        "l2_normalize", c->l2_normalize ? "true" : "false", "contract", lw_str_c(&contract));
    return s->about ? 0
                    : lw_fail(LW_EFORMAT,
                              "%s or %s is not UTF-8: no file can say where its rows "
                              "are from",
                              c->source, lw_str_c(&s->rows.spec));
}

static int lay_out(encode_state *s)
{
    lw_encode_file *f = &s->file;
    *f = (lw_encode_file){.path = s->c->output,
                          .about = s->about,
                          .isa = s->dev->isa,
                          .device_change = s->c->device_change,
                          .f32 = s->c->precision == LW_NUM_F32,
                          .rows = s->rows.n,
                          .part.fd = -1};
    lw_session_device_kind(s->dev, f->device);
    LW_TRY(lw_encode_kind_of(f->path, &f->kind));
    if (lw_path_is_special(f->path))
        return lw_fail(LW_EUSAGE, "--output %s: rows are put into a file, not a pipe or device",
                       f->path);
    if (f->kind == LW_ENCODE_NPY && s->out->n_taps > 1)
        return lw_fail(LW_EUSAGE, "%s: an .npy holds one layer; .npz and .safetensors hold several",
                       f->path);
    for (int k = 0; k < s->out->n_taps; k++) {
        lw_encode_array *a = &f->array[f->n++];
        *a = (lw_encode_array){.name = s->tap[k]->name, .type = LW_ELEM_F32};
        a->rank = s->tap[k]->rank;
        memcpy(a->shape, s->tap[k]->shape, sizeof s->tap[k]->shape);
        a->shape[0] = s->rows.n;
    }
    if (f->kind != LW_ENCODE_NPY)
        f->array[f->n++] = (lw_encode_array){
            .name = "labels", .type = LW_ELEM_I32, .rank = 1, .shape = {s->rows.n}};
    return lw_encode_file_layout(f);
}

static void report(encode_state *s)
{
    lw_plan_info i = lw_forward_info(s->fwd);
    lw_encode_result *r = s->out;
    snprintf(r->network, sizeof r->network, "%s", s->net->name);
    snprintf(r->data, sizeof r->data, "%s", lw_str_c(&s->rows.spec));
    r->parameters = s->net->parameters;
    r->rows = s->rows.n;
    r->height = s->rows.data->h;
    r->width = s->rows.data->w;
    r->skipped = s->rows.data->skipped;
    r->memory_bytes = lw_store_bytes(s->net->store) + i.frame_bytes + i.derived_bytes;
    for (int k = 0; k < r->n_taps; k++) {
        const lw_encode_array *a = &s->file.array[k];
        snprintf(r->tap[k].name, sizeof r->tap[k].name, "%s", a->name);
        r->tap[k].rank = a->rank;
        memcpy(r->tap[k].shape, a->shape, sizeof r->tap[k].shape);
        r->memory_bytes += (uint64_t)s->batch * a->row;
    }
    r->picture_bytes = (uint64_t)r->rows * (uint64_t)lw_data_row_size(s->rows.data);
    r->file_bytes = s->file.bytes;
    r->disk_bytes = lw_encode_file_disk(&s->file);
}

static int prepare(encode_state *s)
{
    LW_TRY(lw_session_device_with(s->c->threads, s->c->conv, &s->dev));
    lw_pool_watch(s->dev->pool, s->obs);
    LW_TRY(open_network(s));
    double t = lw_now();
    LW_TRY(lw_encode_rows_open(s->c, s->net, s->dev->pool, s->obs, &s->rows));
    s->out->decode = lw_now() - t;
    LW_TRY(open_forward(s));
    LW_TRY(describe(s));
    LW_TRY(lay_out(s));
    report(s);
    return lw_encode_file_room(&s->file);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* As torch.nn.functional.normalize: of length 1, or zeros as they were. */
static void normalise(float *x, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n) {
        double sum = 0.0;
        for (int64_t i = 0; i < n; i++)
            sum += (double)x[i] * (double)x[i];
        double scale = 1.0 / fmax(sqrt(sum), 1e-12);
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)((double)x[i] * scale);
    }
}

static int check_finite(const encode_state *s, int k, int64_t n)
{
    const lw_port *p = s->tap[k];
    const int64_t i = lw_first_not_finite(s->values[k], n * p->row);
    return i == n * p->row ? 0
                           : lw_fail(LW_ENUMERIC, "%s of picture %lld: element %lld is %s", p->name,
                                     (long long)(s->first + i / p->row), (long long)(i % p->row),
                                     lw_not_finite_text((double)s->values[k][i]));
}

/* Rows of the batch from `first` on, into the network's input. */
static void fill_batch(encode_state *s, int64_t first)
{
    int64_t n = LW_MIN((int64_t)s->batch, s->file.rows - first);
    double t = lw_now();
    if (n > 0)
        lw_data_get_rows(s->rows.data, s->dev->pool, first, n, lw_forward_input(s->fwd, "x"));
    s->out->prepare += lw_now() - t;
}

/* Where a device has memory of its own, its rows lie in the input, and those of the next batch are made while it computes. */
static int encode_batch(encode_state *s, int64_t n)
{
    const bool apart = lw_device_is_apart(s->dev);
    double t[4];
    if (!apart)
        fill_batch(s, s->first);
    t[0] = lw_now();
    LW_TRY(lw_forward_run(s->fwd, NULL));
    t[1] = lw_now();
    if (apart)
        fill_batch(s, s->first + n);
    t[2] = lw_now();
    for (int k = 0; k < s->out->n_taps; k++)
        LW_TRY(lw_forward_get(s->fwd, s->tap[k], n, s->values[k]));
    t[3] = lw_now();
    for (int k = 0; k < s->out->n_taps; k++) {
        LW_TRY(check_finite(s, k, n));
        if (s->c->l2_normalize)
            normalise(s->values[k], n, s->tap[k]->row);
        LW_TRY(lw_encode_file_put(&s->file, k, s->first, n, s->values[k]));
    }
    s->out->forward += t[1] - t[0] + t[3] - t[2];
    s->out->write += lw_now() - t[3];
    return 0;
}

static int stop(encode_state *s)
{
    LW_TRY(lw_encode_file_note(&s->file, s->file.done, true));
    return lw_fail(LW_ESTOPPED,
                   "interrupted after %lld of %lld pictures, which %s" LW_PART_SUFFIX
                   " keeps: go on with --resume",
                   (long long)s->file.done, (long long)s->file.rows, s->c->output);
}

static int encode_rows(encode_state *s)
{
    lw_encode_file *f = &s->file;
    if (f->kind != LW_ENCODE_NPY && f->done == 0)
        LW_TRY(lw_encode_file_put(f, f->n - 1, 0, f->rows, s->rows.data->labels));
    if (lw_device_is_apart(s->dev))
        fill_batch(s, f->done);
    for (s->first = f->done; s->first < f->rows; s->first = f->done) {
        int64_t n = LW_MIN((int64_t)s->batch, f->rows - s->first);
        int rc = encode_batch(s, n);
        if (rc == LW_ESTOPPED)
            return stop(s);
        LW_TRY(rc);
        double t = lw_now();
        LW_TRY(lw_encode_file_note(f, s->first + n, false));
        s->out->write += lw_now() - t;
        lw_observe_progress(s->obs, "encode", f->done, f->rows, NULL);
        if (f->done < f->rows && lw_observe_stop(s->obs))
            return stop(s);
    }
    return 0;
}

/* One batch of what lies in the input, timed when everything is warm. */
static int predict(encode_state *s)
{
    int64_t batches = LW_CEIL_DIV(s->rows.n, (int64_t)s->batch);
    for (int i = 0; i <= lw_device_warm_runs(s->dev, false); i++) {
        double t = lw_now();
        LW_TRY(lw_forward_run(s->fwd, NULL));
        LW_TRY(lw_forward_get(s->fwd, s->tap[0], s->batch, s->values[0])); /* waits for it */
        s->out->seconds = (lw_now() - t) * (double)batches;
    }
    return 0;
}

static int run(encode_state *s)
{
    double t = lw_now();
    LW_TRY(prepare(s));
    if (s->c->dry_run)
        return predict(s);
    if (s->c->resume && lw_encode_state_whole(&s->file)) {
        s->out->done_before = s->rows.n;
        return 0;
    }
    LW_TRY(lw_encode_file_open(&s->file, s->c->resume));
    s->out->done_before = s->file.done;
    LW_TRY(encode_rows(s));
    double written = lw_now();
    LW_TRY(lw_encode_rows_save(&s->rows, &s->file));
    LW_TRY(lw_encode_file_finish(&s->file));
    s->out->write += lw_now() - written;
    s->out->seconds = lw_now() - t;
    return 0;
}

int lw_job_encode(const lw_encode_config *c, const lw_observer *obs, lw_encode_result *out)
{
    encode_state s = {.c = c, .obs = obs, .out = out, .file.part.fd = -1};
    *out = (lw_encode_result){0};
    int rc = run(&s);
    snprintf(out->device, sizeof out->device, "%s", s.file.device);
    clear_state(&s);
    return rc;
}
