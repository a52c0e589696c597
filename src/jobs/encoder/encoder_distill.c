/* SPDX-License-Identifier: Apache-2.0 */
/* A student that predicts a frozen teacher's features: set-up, loss, feeding. */
#include "jobs/encoder/encoder_distill_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 64, STANDARD_ROWS = 4096 };
static const float cosine_share = 0.9f; /* the rest: smooth L1 */

/* ---- what is predicted ----------------------------------------------------------------------- */

/* The student's last map with so many places; -1: the pooled feature. */
static int stage_with(const lw_encoder_config *net, int32_t slots, int32_t *out)
{
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    *out = -1;
    if (slots == 1)
        return 0;
    for (int32_t s = net->stages; s >= 0; s--) {
        int32_t side = net->image_size >> LW_MAX(s - 1, 0);
        if (side * side == slots) {
            *out = s;
            return 0;
        }
        lw_str_addf(&have, "%s%d", have.len ? ", " : "", (int)(side * side));
    }
    return lw_fail(LW_EUSAGE, "%d places: the student's maps have %s; choose other --stages",
                   (int)slots, lw_str_c(&have));
}

static int choose_predictions(const lw_distill *d, lw_encoder_config *net)
{
    if (d->keys.n > LW_MAX_PREDICTED)
        return lw_fail(LW_EUSAGE, "--teacher-keys: %d keys, at most %d are predicted",
                       (int)d->keys.n, LW_MAX_PREDICTED);
    net->n_predicted = d->keys.n;
    for (int32_t k = 0; k < d->keys.n; k++) {
        const lw_feature_key *key = &d->keys.key[k];
        if (stage_with(net, key->slots, &net->predicted[k].stage) < 0)
            return lw_fail(LW_EUSAGE, "--teacher-keys %s: %s", key->name, lw_errmsg());
        net->predicted[k].width = key->c;
    }
    return 0;
}

int lw_distill_open(const lw_train_encoder_config *c, lw_picture_run *p, lw_encoder_config *net,
                    lw_distill **out)
{
    LW_CLEANUP(lw_distill_free) lw_distill *d = lw_calloc(1, sizeof *d);
    if (!d)
        return LW_ENOMEM;
    d->c = c;
    d->p = p;
    d->net = net;
    d->flip = p->pictures->flip && p->data->flip;
    if (!c->teacher)
        return lw_fail(LW_EUSAGE, "--objective distill: needs --teacher SPEC");
    LW_TRY(lw_encoder_open(c->teacher, &d->teacher));
    const char *keys = c->teacher_keys ? c->teacher_keys : d->teacher->features ? "pooled" : "cls";
    const lw_dataset *seen = lw_picture_run_pictures(p);
    LW_TRY(lw_latents_agree(d->teacher, c->teacher, NULL));
    LW_TRY(lw_features_parse(keys, d->teacher, seen->h, seen->channels, &d->keys));
    LW_TRY(choose_predictions(d, net));
    d->wanted = lw_calloc((size_t)p->leaves.size, sizeof *d->wanted);
    if (!d->wanted)
        return LW_ENOMEM;
    for (int32_t k = 0; k < d->keys.n; k++) {
        d->mean[k] = lw_calloc((size_t)d->keys.key[k].c, sizeof *d->mean[k]);
        d->scale[k] = lw_calloc((size_t)d->keys.key[k].c, sizeof *d->scale[k]);
        if (!d->mean[k] || !d->scale[k])
            return LW_ENOMEM;
    }
    *out = lw_steal(&d);
    return 0;
}

void lw_distill_free(lw_distill **pp)
{
    lw_distill *d = *pp;
    if (!d)
        return;
    lw_distill_measures_clear(d);
    lw_real_features_free(&d->real);
    lw_network_close(&d->teacher);
    for (int32_t k = 0; k < LW_MAX_PREDICTED; k++) {
        lw_free(&d->mean[k]);
        lw_free(&d->scale[k]);
    }
    lw_free(&d->wanted);
    lw_free(pp);
}

/* ---- the loss -------------------------------------------------------------------------------- */

static lw_val dot(lw_graph *g, lw_val a, lw_val b)
{
    return lw_sum(g, lw_mul(g, a, b), LW_OVER_LAST);
}

/* 1 - cosine at each place, [B,T,1]. */
static lw_val cosine_loss(lw_graph *g, lw_val p, lw_val z)
{
    lw_val pp = dot(g, p, p), zz = dot(g, z, z), pz = dot(g, p, z);
    lw_val inverse = lw_ew1(g, LW_EW_rsqrt, lw_add_f32(g, lw_mul(g, pp, zz), 1e-12f));
    lw_val cosine = lw_mul(g, pz, inverse);
    return lw_add_f32(g, lw_scale(g, cosine, -1.0f), 1.0f);
}

/* x^2 / 2 up to 1, |x| - 1/2 beyond, with m = min(|x|, 1): m (|x| - m / 2). */
static lw_val smooth_l1(lw_graph *g, lw_val p, lw_val z)
{
    lw_val a = lw_ew1(g, LW_EW_abs, lw_sub(g, p, z));
    lw_val m = lw_ew2(g, LW_EW_min, a, lw_const_f32(g, 1.0f));
    lw_val half = lw_scale(g, m, 0.5f);
    return lw_mul(g, m, lw_sub(g, a, half));
}

static lw_val input(lw_graph *g, const char *what, const lw_feature_key *k, lw_type t)
{
    char name[40];
    return lw_input(g, lw_distill_name(name, what, k), t);
}

lw_val lw_distill_loss(const lw_distill *d, lw_builder *b, const lw_taps *taps)
{
    lw_graph *g = b->g;
    lw_val total = LW_NOVAL;
    for (int32_t k = 0; k < d->keys.n; k++) {
        const lw_feature_key *key = &d->keys.key[k];
        lw_val p = lw_encoder_predict(b, d->net, taps, k);
        int32_t batch = lw_val_ok(p) ? lw_val_type(g, p).dim[0] : 1;
        lw_type row = lw_type_of(LW_F32, 1, key->c);
        lw_val z = input(g, "teacher", key, lw_type_of(LW_F32, 3, batch, key->slots, key->c));
        lw_val mean = input(g, "mean", key, row), scale = input(g, "scale", key, row);
        z = lw_mul(g, lw_sub(g, z, mean), scale);
        lw_val far = lw_mean(g, cosine_loss(g, p, z), LW_OVER_BATCH);
        lw_val off = lw_mean(g, smooth_l1(g, p, z), LW_OVER_BATCH);
        far = lw_scale(g, far, cosine_share / (float)d->keys.n);
        off = lw_scale(g, off, (1.0f - cosine_share) / (float)d->keys.n);
        lw_val loss = lw_add(g, far, off);
        total = k ? lw_add(g, total, loss) : loss;
    }
    return total;
}

/* ---- features -------------------------------------------------------------------------------- */

const char *lw_distill_name(char buf[40], const char *what, const lw_feature_key *k)
{
    snprintf(buf, 40, "%s/%s", what, k->name);
    return buf;
}

int lw_distill_features(const lw_distill *d, const lw_dataset *data, bool flip,
                        lw_real_features **out)
{
    const lw_train_encoder_config *c = d->c;
    const lw_real_features_opts o = {.cache_bytes = (int64_t)c->feature_cache_mb << 20,
                                     .disk_bytes = (int64_t)c->feature_disk_mb << 20,
                                     .precision = c->train.precision,
                                     .conv = c->train.conv,
                                     .type = LW_F32,
                                     .flip = flip};
    return lw_real_features_new(d->p->dev, data, d->teacher, &d->keys, &o, out);
}

int lw_distill_job(lw_distill *d, lw_train_job *job)
{
    LW_TRY(lw_distill_features(d, lw_picture_run_pictures(d->p), d->flip, &d->real));
    const lw_real_features_cost c = lw_real_features_get_cost(d->real, d->p->leaves.size);
    lw_real_features_note(d->real, d->note);
    job->note = d->note;
    job->kept_bytes += c.held;
    lw_train_freezes(job, d->teacher->store);
    job->side_flops = c.kept ? 0.0 : c.flops;
    return 0;
}

/* Sums and sums of squares of key k over n rows of its features. */
static void add_rows(const lw_feature_key *key, const float *x, int64_t n, double *sum,
                     double *square)
{
    for (int64_t i = 0; i < n * key->slots; i++)
        for (int32_t c = 0; c < key->c; c++) {
            double v = (double)x[i * key->c + c];
            sum[c] += v;
            square[c] += v * v;
        }
}

/* Mean and 1 / deviation of every number of key k over the first drawn training pictures; a number
 * that never changes counts for nothing. */
static int standardise(lw_distill *d, int32_t k, const int64_t *drawn)
{
    const lw_feature_key *key = &d->keys.key[k];
    int64_t n = LW_MIN(d->p->data->n, STANDARD_ROWS), rows = n * key->slots;
    size_t c = (size_t)key->c;
    LW_CLEANUP(lw_free) double *sum = lw_calloc(2 * c, sizeof *sum);
    LW_CLEANUP(lw_free) float *x = lw_calloc(CHUNK * (size_t)key->slots * c, sizeof *x);
    void *dst[LW_MAX_FEATURE_KEYS] = {0};
    if (!sum || !x)
        return LW_ENOMEM;
    dst[k] = x;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t m = LW_MIN(n - at, CHUNK);
        LW_TRY(lw_real_features_fetch(d->real, drawn + at, m, dst));
        add_rows(key, x, m, sum, sum + c);
    }
    for (size_t i = 0; i < c; i++) {
        double mean = sum[i] / (double)rows, variance = sum[c + i] / (double)rows - mean * mean;
        d->mean[k][i] = (float)mean;
        d->scale[k][i] = variance > 1e-12 ? (float)(1.0 / sqrt(variance)) : 0.0f;
    }
    return 0;
}

int lw_distill_prepare(lw_distill *d, bool evaluates)
{
    LW_CLEANUP(lw_free) int64_t *drawn = NULL;
    lw_observe_say(d->p->obs, "features of the teacher: %s", d->note);
    LW_TRY(lw_real_features_fill(d->real, d->p->obs));
    LW_TRY(lw_data_drawn(d->p->data, &drawn));
    for (int32_t k = 0; k < d->keys.n; k++) {
        const lw_feature_key *key = &d->keys.key[k];
        size_t bytes = (size_t)key->c * sizeof(float);
        char name[40];
        LW_TRY(standardise(d, k, drawn));
        memcpy(lw_exec_write(d->p->exec, lw_distill_name(name, "mean", key)), d->mean[k], bytes);
        memcpy(lw_exec_write(d->p->exec, lw_distill_name(name, "scale", key)), d->scale[k], bytes);
    }
    return evaluates ? lw_distill_measures_open(d, drawn) : 0;
}

int lw_distill_feed(lw_distill *d, int64_t leaf)
{
    lw_picture_run *p = d->p;
    void *dst[LW_MAX_FEATURE_KEYS];
    const lw_batch *b;
    char name[40];
    LW_TRY(lw_picture_run_next(p, leaf, p->leaves.size, &b));
    LW_TRY(lw_exec_bind(p->exec, "images", b->images));
    for (int64_t i = 0; i < p->leaves.size; i++)
        d->wanted[i] = b->index[i] + (b->flip[i] ? p->data->n : 0);
    for (int32_t k = 0; k < d->keys.n; k++)
        dst[k] = lw_exec_write(p->exec, lw_distill_name(name, "teacher", &d->keys.key[k]));
    return lw_real_features_fetch(d->real, d->wanted, p->leaves.size, dst);
}
