/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures against one network's Frechet distance. */
#include "session/session_adversarial.h"

#include <math.h>
#include <string.h>

#include "data/data.h"
#include "kernels/kernels.h"
#include "session/session_forward.h"

enum { BATCH = 64, BATCH_RESIZED = 8 }; /* resized pictures are mostly of 224x224 and more */

typedef struct attack {
    lw_device *dev;
    const lw_network *net;
    lw_forward *look, *back; /* images -> pooled; images, cotangent -> slope */
    lw_frechet_loss *loss;
    int64_t n, count; /* pictures; numbers of all of them */
    float *features, *cotangent;
    double *gradient;
    float *slope, *m, *v, *first;
} attack;

static void attack_clear(attack *a)
{
    lw_forward_free(&a->look);
    lw_forward_free(&a->back);
    lw_frechet_loss_free(&a->loss);
    lw_free(&a->features);
    lw_free(&a->cotangent);
    lw_free(&a->gradient);
    lw_free(&a->slope);
    lw_free(&a->m);
    lw_free(&a->v);
    lw_free(&a->first);
}

static int32_t batch_of(const lw_network *net, int32_t side)
{
    return net->fit.h && net->fit.h != side ? BATCH_RESIZED : BATCH;
}

/* The network on a batch; with `back` also the gradient of pooled times a cotangent by the
 * pictures. */
static int compile(lw_device *dev, const lw_network *net, int32_t side, bool back, lw_forward **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    lw_taps taps;
    const int32_t batch = batch_of(net, side);
    LW_TRY(lw_graph_new(&g));
    lw_val x = lw_input(g, "images", lw_type_of(LW_F32, 4, batch, side, side, 3)), dx = LW_NOVAL;
    lw_network_append(net, g, (lw_network_in){.x = x}, &taps);
    lw_val pooled = lw_tap_find(&taps, "pooled");
    if (back) {
        lw_val dy = lw_input(g, "cotangent", lw_type_of(LW_F32, 2, batch, net->features));
        lw_grad(g, &pooled, &dy, 1, &x, &dx, 1);
        lw_graph_output_add(g, "slope", dx, LW_NOVAL);
    } else {
        lw_graph_output_add(g, "pooled", pooled, LW_NOVAL);
    }
    return lw_forward_of(dev, &g, NULL, LW_SLAB_PARAM, net->name, out);
}

static int attack_new(attack *a, int32_t side, const lw_stats *reference, const float *x)
{
    const size_t rows = (size_t)(a->n * a->net->features), count = (size_t)a->count;
    LW_TRY(compile(a->dev, a->net, side, false, &a->look));
    LW_TRY(compile(a->dev, a->net, side, true, &a->back));
    LW_TRY(lw_frechet_loss_new(reference, &a->loss));
    a->features = lw_calloc(rows, sizeof *a->features);
    a->cotangent = lw_calloc(rows, sizeof *a->cotangent);
    a->gradient = lw_calloc(rows, sizeof *a->gradient);
    a->slope = lw_calloc(count, sizeof *a->slope);
    a->m = lw_calloc(count, sizeof *a->m);
    a->v = lw_calloc(count, sizeof *a->v);
    a->first = lw_calloc(count, sizeof *a->first);
    if (!a->features || !a->cotangent || !a->gradient || !a->slope || !a->m || !a->v || !a->first)
        return LW_ENOMEM;
    memcpy(a->first, x, count * sizeof *x);
    return 0;
}

/* The distance of x, and its gradient by the features. */
static int look(attack *a, const float *x, double *value)
{
    const lw_feed feed[] = {{.name = "images", .in = x}, {.name = "pooled", .out = a->features}};
    LW_TRY(lw_forward_rows(a->look, "encode", a->n, feed, 2, NULL));
    return lw_frechet_gradient(a->loss, a->features, a->n, value, a->gradient);
}

/* Step t of Adam, 1, 2, .. */
static int move(attack *a, float *x, int64_t t, double rate)
{
    static const double beta1 = .9, beta2 = .999;
    const lw_adamw o = {.lr = rate,
                        .beta1 = beta1,
                        .beta2 = beta2,
                        .eps = 1e-8,
                        .bias1 = 1 - pow(beta1, (double)t),
                        .bias2 = 1 - pow(beta2, (double)t),
                        .grad_scale = (double)a->n}; /* else every number's is near eps */
    const lw_optim_range all = {0, (ptrdiff_t)a->count, 0};
    const lw_feed feed[] = {{.name = "images", .in = x},
                            {.name = "cotangent", .in = a->cotangent},
                            {.name = "slope", .out = a->slope}};
    for (int64_t i = 0; i < a->n * a->net->features; i++)
        a->cotangent[i] = (float)a->gradient[i];
    LW_TRY(lw_forward_rows(a->back, "encode", a->n, feed, 3, NULL));
    a->dev->kernels->optim.adamw(x, a->m, a->v, NULL, a->slope, &o, &all, 1, 0,
                                 (ptrdiff_t)a->count);
    for (int64_t i = 0; i < a->count; i++)
        x[i] = fminf(fmaxf(x[i], -1.0f), 1.0f);
    return 0;
}

/* To bytes and back, as a file would. */
static int round_bytes(float *x, int64_t n)
{
    LW_CLEANUP(lw_free) uint8_t *bytes = lw_calloc((size_t)n, 1);
    if (!bytes)
        return LW_ENOMEM;
    lw_data_to_u8(x, n, bytes);
    lw_data_from_u8(bytes, n, x);
    return 0;
}

static int check(const lw_network *net, int64_t n)
{
    if (net->features == 0)
        return lw_fail(LW_EUSAGE, "encoder %s has no features to measure distances in", net->name);
    if (n < 2)
        return lw_fail(LW_EUSAGE, "%lld pictures have no covariance: at least 2", (long long)n);
    return 0;
}

int lw_adversarial_pictures(lw_device *dev, const lw_network *attacked, int32_t side,
                            const lw_stats *reference, const lw_adversarial_opts *o, float *x,
                            int64_t n, lw_adversarial_result *out)
{
    LW_CLEANUP(attack_clear)
    attack a = {.dev = dev, .net = attacked, .n = n, .count = n * side * side * 3};
    const int32_t steps = o->steps ? o->steps : LW_ADVERSARIAL_STEPS;
    const double rate = o->rate > 0 ? o->rate : LW_ADVERSARIAL_RATE;
    lw_adversarial_result r = {0};
    LW_TRY(check(attacked, n));
    LW_TRY(attack_new(&a, side, reference, x));
    LW_TRY(look(&a, x, &r.before));
    for (int32_t t = 1; t <= steps; t++) {
        if (t > 1)
            LW_TRY(look(&a, x, &r.after));
        LW_TRY(move(&a, x, t, rate * (1 - (double)(t - 1) / steps)));
        lw_observe_progress(o->obs, "adversarial pictures", t, steps, NULL);
        if (lw_observe_stop(o->obs))
            return lw_fail(LW_ESTOPPED, "stopped after %d of %d steps on pictures", (int)t,
                           (int)steps);
    }
    LW_TRY(round_bytes(x, a.count));
    LW_TRY(look(&a, x, &r.after));
    for (int64_t i = 0; i < a.count; i++)
        r.moved += ((double)x[i] - (double)a.first[i]) * ((double)x[i] - (double)a.first[i]);
    r.moved = sqrt(r.moved / (double)a.count);
    *out = r;
    return 0;
}

/* Seconds of the gradient of n rows, to a reference of independent features. */
static int time_gradient(attack *a, int64_t n, double *seconds)
{
    const lw_rng_key key = lw_rng_key_of(0, lw_hash_name("adversarial.forecast"));
    const size_t count = (size_t)(n * a->net->features);
    LW_CLEANUP(lw_free) float *rows = lw_calloc(count, sizeof *rows);
    LW_CLEANUP(lw_free) double *gradient = lw_calloc(count, sizeof *gradient);
    double value;
    if (!rows || !gradient)
        return LW_ENOMEM;
    for (size_t i = 0; i < count; i++)
        rows[i] = (float)lw_rng_uniform(key, 0, (uint64_t)i, 0);
    *seconds = lw_now();
    LW_TRY(lw_frechet_gradient(a->loss, rows, n, &value, gradient));
    *seconds = lw_now() - *seconds;
    return 0;
}

static int unit_reference(int32_t dim, lw_stats **out)
{
    const size_t d = (size_t)dim;
    LW_CLEANUP(lw_free) double *mean = lw_calloc(d, sizeof *mean);
    LW_CLEANUP(lw_free) double *cov = lw_calloc(d * d, sizeof *cov);
    if (!mean || !cov)
        return LW_ENOMEM;
    for (size_t i = 0; i < d; i++)
        cov[i * d + i] = 1;
    return lw_stats_from(dim, 2, mean, cov, out);
}

int lw_adversarial_forecast(lw_device *dev, const lw_network *attacked, int32_t side, int32_t steps,
                            int64_t n, double *seconds)
{
    const int64_t picture = (int64_t)side * side * 3, few = LW_MIN(n, 2 * batch_of(attacked, side));
    LW_CLEANUP(attack_clear)
    attack a = {.dev = dev, .net = attacked, .n = few, .count = few * picture};
    LW_CLEANUP(lw_stats_free) lw_stats *unit = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)a.count, sizeof *x);
    double gradient, step = 0, value;
    if (!x)
        return LW_ENOMEM;
    LW_TRY(check(attacked, n));
    LW_TRY(unit_reference(attacked->features, &unit));
    LW_TRY(attack_new(&a, side, unit, x));
    for (int i = 1; i <= 2; i++) { /* the first run prepares weights */
        step = lw_now();
        LW_TRY(look(&a, x, &value));
        LW_TRY(move(&a, x, i, LW_ADVERSARIAL_RATE));
        step = lw_now() - step;
    }
    LW_TRY(time_gradient(&a, n, &gradient));
    *seconds = (steps ? steps : LW_ADVERSARIAL_STEPS) * (step * (double)n / (double)few + gradient);
    return 0;
}
