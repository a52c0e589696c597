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
    LW_TRY(lw_network_measures(net, net->name));
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

/* ---- how long -------------------------------------------------------------------------------- */

static int drawn_rows(int64_t n, int32_t dim, float **out)
{
    const lw_rng_key key = lw_rng_key_of(0, lw_hash_name("adversarial.forecast"));
    *out = lw_calloc((size_t)(n * dim), sizeof **out);
    for (int64_t i = 0; *out && i < n * dim; i++)
        (*out)[i] = (float)lw_rng_uniform(key, 0, (uint64_t)i, 0);
    return *out ? 0 : LW_ENOMEM;
}

/* Of drawn features, of full rank. */
static int drawn_reference(lw_pool *pool, int32_t dim, lw_stats **out)
{
    LW_CLEANUP(lw_stats_free) lw_stats *s = NULL;
    LW_CLEANUP(lw_free) float *rows = NULL;
    LW_TRY(drawn_rows(2 * (int64_t)dim, dim, &rows));
    LW_TRY(lw_stats_new(dim, &s));
    LW_TRY(lw_stats_add(pool, s, rows, 2 * (int64_t)dim));
    *out = lw_steal(&s);
    return 0;
}

static int time_gradient(attack *a, int64_t n, double *seconds)
{
    LW_CLEANUP(lw_free) float *rows = NULL;
    LW_CLEANUP(lw_free)
    double *gradient = lw_calloc((size_t)(n * a->net->features), sizeof *gradient);
    double value, start;
    if (!gradient)
        return LW_ENOMEM;
    LW_TRY(drawn_rows(n, a->net->features, &rows));
    start = lw_now();
    LW_TRY(lw_frechet_gradient(a->loss, rows, n, &value, gradient));
    *seconds = lw_now() - start;
    return 0;
}

/* The network forwards, backwards and Adam on the few pictures of a: when everything is warm, for half a
 * second or three times. */
static int time_pictures(attack *a, float *x, double *seconds)
{
    enum { LEAST = 3, MOST = 32 };
    static const double enough = 0.5;
    const lw_feed feed[] = {{.name = "images", .in = x}, {.name = "pooled", .out = a->features}};
    const int warm = lw_device_warm_runs(a->dev, false);
    double start = 0, spent = 0;
    int done = -warm;
    for (; done < LEAST || (spent < enough && done < MOST); done++) {
        if (done == 0)
            start = lw_now();
        LW_TRY(lw_forward_rows(a->look, "encode", a->n, feed, 2, NULL));
        LW_TRY(move(a, x, done + warm + 1, LW_ADVERSARIAL_RATE));
        spent = done < 0 ? 0 : lw_now() - start;
    }
    *seconds = spent / done;
    return 0;
}

int lw_adversarial_forecast(lw_device *dev, const lw_network *attacked, int32_t side, int32_t steps,
                            int64_t n, lw_adversarial_cost *out)
{
    const int32_t batch = batch_of(attacked, side);
    const int64_t picture = (int64_t)side * side * 3, few = LW_MIN(n, (int64_t)batch);
    LW_CLEANUP(attack_clear)
    attack a = {.dev = dev, .net = attacked, .n = few, .count = few * picture};
    LW_CLEANUP(lw_stats_free) lw_stats *drawn = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)a.count, sizeof *x);
    lw_adversarial_cost c = {.steps = steps ? steps : LW_ADVERSARIAL_STEPS,
                             .batches = LW_CEIL_DIV(n, (int64_t)batch)};
    if (!x)
        return LW_ENOMEM;
    LW_TRY(check(attacked, n));
    LW_TRY(drawn_reference(dev->pool, attacked->features, &drawn));
    c.open = lw_now();
    LW_TRY(attack_new(&a, side, drawn, x));
    c.open = lw_now() - c.open;
    LW_TRY(time_pictures(&a, x, &c.per_batch));
    LW_TRY(time_gradient(&a, n, &c.gradient));
    c.seconds = c.open + c.steps * ((double)c.batches * c.per_batch + c.gradient) + c.gradient;
    *out = c;
    return 0;
}
