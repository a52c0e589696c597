/* SPDX-License-Identifier: Apache-2.0 */
/* The two planted cheaters. */
#include "session/session_planted.h"

#include <stdio.h>
#include <string.h>

#include "session/session_features.h"

void lw_planted_clear(lw_planted *p)
{
    lw_free(&p->rgb);
    lw_free(&p->labels);
}

static int64_t pictures(const lw_planted_opts *o)
{
    return o->n ? LW_MIN(o->n, LW_PLANTED_PICTURES) : LW_PLANTED_PICTURES;
}

static int64_t floats(const lw_dataset *d)
{
    return (int64_t)d->h * d->w * 3;
}

/* Pictures of a kind made of training pictures, and their classes. */
static int damaged(const lw_planted_opts *o, lw_junk_kind kind, float *x, int32_t *labels)
{
    LW_CLEANUP(lw_junk_free) lw_junk *junk = NULL;
    LW_TRY(lw_junk_new(o->train, o->seed, &junk));
    for (int64_t i = 0; i < pictures(o); i++)
        labels[i] = lw_junk_make(junk, kind, i, x + i * floats(o->train));
    return 0;
}

static int keep(const lw_planted_opts *o, const float *x, bool labelled, int32_t **labels,
                lw_planted *out)
{
    out->n = pictures(o);
    out->rgb = lw_calloc((size_t)(out->n * floats(o->train)), 1);
    if (!out->rgb)
        return LW_ENOMEM;
    lw_data_to_u8(x, out->n * floats(o->train), out->rgb);
    if (labelled)
        out->labels = lw_steal(labels);
    return 0;
}

static int64_t training_pictures(const lw_planted_opts *o)
{
    return LW_MIN(o->train->n, (int64_t)LW_PLANTED_TRAINING);
}

/* What the network makes of n training pictures, drawn over all classes. */
static int training_stats(const lw_planted_opts *o, lw_score_net *net, int64_t n, lw_stats **out)
{
    enum { BLOCK = 256 };
    const lw_dataset *d = o->train;
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_free) int64_t *row = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(BLOCK * floats(d)), sizeof *x);
    LW_CLEANUP(lw_free) float *f = lw_calloc((size_t)BLOCK * (size_t)net->dim, sizeof *f);
    if (!x || !f)
        return LW_ENOMEM;
    LW_TRY(lw_data_drawn(d, &row));
    LW_TRY(lw_stats_new(net->dim, &s));
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = LW_MIN((int64_t)BLOCK, n - at);
        for (int64_t i = 0; i < m; i++)
            lw_data_get(d, row[at + i], false, x + i * floats(d));
        LW_TRY(lw_score_net_run(net, x, m, f, NULL));
        LW_TRY(lw_stats_add(net->pool, s, f, m));
    }
    *out = lw_steal(&s);
    return 0;
}

static int against_network(lw_device *dev, const lw_planted_opts *o, lw_planted *out)
{
    const int64_t n = pictures(o);
    const lw_adversarial_opts how = {.steps = o->steps, .obs = o->obs};
    LW_CLEANUP(lw_score_net_close) lw_score_net *net = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *training = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(n * floats(o->train)), sizeof *x);
    LW_CLEANUP(lw_free) int32_t *labels = lw_calloc((size_t)n, sizeof *labels);
    if (!x || !labels)
        return LW_ENOMEM;
    if (o->start) {
        memcpy(x, o->start, (size_t)(n * floats(o->train)) * sizeof *x);
        if (o->labels)
            memcpy(labels, o->labels, (size_t)n * sizeof *labels);
    } else {
        LW_TRY(damaged(o, LW_JUNK_BLUR2, x, labels));
    }
    LW_TRY(lw_score_net_open(dev, o->network, o->train->h, &net));
    LW_TRY(training_stats(o, net, training_pictures(o), &training));
    LW_TRY(lw_adversarial_pictures(dev, net->encoder, o->train->h, training, &how, x, n,
                                   &out->attack));
    snprintf(out->name, sizeof out->name, "against %s", o->name);
    snprintf(out->how, sizeof out->how,
             "%s moved by %d steps down the gradient of %s's Frechet distance to training "
             "pictures: from %.3g to %.3g, a number in [-1, 1] by %.2g",
             o->start ? "generated pictures" : "blurred training pictures",
             (int)(o->steps ? o->steps : LW_ADVERSARIAL_STEPS), o->name, out->attack.before,
             out->attack.after, out->attack.moved);
    return keep(o, x, o->start ? o->labels != NULL : o->train->labelled, &labels, out);
}

static int memory(const lw_planted_opts *o, lw_planted *out)
{
    const int64_t n = pictures(o);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(n * floats(o->train)), sizeof *x);
    LW_CLEANUP(lw_free) int32_t *labels = lw_calloc((size_t)n, sizeof *labels);
    if (!x || !labels)
        return LW_ENOMEM;
    LW_TRY(damaged(o, LW_JUNK_GRAINED, x, labels));
    snprintf(out->name, sizeof out->name, "training + noise");
    snprintf(out->how, sizeof out->how,
             "training pictures with Gaussian noise of sd %g in [-1, 1]: equal to none of them, "
             "and nothing new",
             LW_JUNK_GRAIN);
    return keep(o, x, o->train->labelled, &labels, out);
}

int lw_planted_make(lw_device *dev, const lw_planted_opts *o, lw_planted out[LW_PLANTED])
{
    lw_planted p[LW_PLANTED] = {0};
    int rc = against_network(dev, o, &p[0]);
    if (rc == 0)
        rc = memory(o, &p[1]);
    for (int i = 0; i < LW_PLANTED; i++)
        if (rc == 0)
            out[i] = p[i];
        else
            lw_planted_clear(&p[i]);
    return rc;
}

/* Statistics of a batch of training pictures, timed when everything is warm. */
static int time_training(lw_device *dev, const lw_planted_opts *o, lw_score_net *net,
                         lw_planted_cost *c)
{
    const int64_t batch = lw_score_net_batch(net), all = training_pictures(o);
    const int64_t few = LW_MIN(all, batch);
    c->batches = LW_CEIL_DIV(all, batch);
    for (int i = 0; i <= lw_device_warm_runs(dev, false); i++) {
        LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
        double start = lw_now();
        LW_TRY(training_stats(o, net, few, &s));
        c->per_batch = lw_now() - start;
    }
    return 0;
}

int lw_planted_forecast(lw_device *dev, const lw_planted_opts *o, lw_planted_cost *out)
{
    LW_CLEANUP(lw_score_net_close) lw_score_net *net = NULL;
    lw_planted_cost c = {.open = lw_now()};
    LW_TRY(lw_score_net_open(dev, o->network, o->train->h, &net));
    c.open = lw_now() - c.open;
    LW_TRY(time_training(dev, o, net, &c));
    LW_TRY(
        lw_adversarial_forecast(dev, net->encoder, o->train->h, o->steps, pictures(o), &c.attack));
    c.seconds = c.open + (double)c.batches * c.per_batch + c.attack.seconds;
    *out = c;
    return 0;
}
