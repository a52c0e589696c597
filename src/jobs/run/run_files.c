/* SPDX-License-Identifier: Apache-2.0 */
/* The forward of any model folder on npy files. */
#include "jobs/run/run_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/session_device.h"
#include "session/session_forward.h"

/* Everything a run holds; cleared in one place. */
typedef struct run_state {
    const lw_run_config *c;
    lw_device *dev;
    lw_network *net;
    lw_forward *fwd;
    int64_t rows;
    lw_array x, t, classes, latent, styles, condition, y;
    lw_feed feed[6];
    int n_feed;
} run_state;

static void clear_state(run_state *s)
{
    lw_forward_free(&s->fwd);
    lw_network_close(&s->net);
    lw_backend_close(&s->dev);
    lw_array_clear(&s->x);
    lw_array_clear(&s->t);
    lw_array_clear(&s->classes);
    lw_array_clear(&s->latent);
    lw_array_clear(&s->styles);
    lw_array_clear(&s->condition);
    lw_array_clear(&s->y);
}

static int load_x(run_state *s)
{
    char text[192];
    LW_TRY(lw_npy_load_f32(s->c->input, &s->x));
    if (s->x.rank != 4 || s->x.count == 0)
        return lw_fail(LW_ESHAPE, "%s is %s: must be [N,C,H,W] and not empty", s->c->input,
                       lw_shape_text(text, s->x.rank, s->x.shape));
    if (s->x.shape[1] != s->net->channels)
        return lw_fail(LW_ESHAPE, "%s is %s, but %s takes %d channels", s->c->input,
                       lw_shape_text(text, s->x.rank, s->x.shape), s->net->dir,
                       (int)s->net->channels);
    if (s->x.shape[2] > 32768 || s->x.shape[3] > 32768)
        return lw_fail(LW_ESHAPE, "%s is %s: pictures of at most 32768x32768", s->c->input,
                       lw_shape_text(text, s->x.rank, s->x.shape));
    s->rows = s->x.shape[0];
    return 0;
}

/* The last port, and the only output: what the file holds. */
static int one_output(const run_state *s, const lw_port **out)
{
    int n = lw_forward_count(s->fwd);
    if (n > 1 && lw_forward_port(s->fwd, n - 2)->output)
        return lw_fail(LW_EUSAGE,
                       "--layer %s: an .npy holds one output: name one (`leeway encode` writes "
                       "several)",
                       s->c->want);
    *out = lw_forward_port(s->fwd, n - 1);
    return 0;
}

/* [rows, row] floats of `port` from a file; one row serves all. */
static int load_rows(const run_state *s, const char *path, const lw_port *port, lw_array *a)
{
    char text[192];
    LW_CLEANUP(lw_array_clear) lw_array raw = {0};
    LW_TRY(lw_npy_load_f32(path, &raw));
    bool one = raw.count == port->row && s->rows >= 1;
    if (!one && raw.count != s->rows * port->row)
        return lw_fail(LW_ESHAPE, "%s is %s: %s must be [%lld] rows of %lld, or one row for all",
                       path, lw_shape_text(text, raw.rank, raw.shape), port->name,
                       (long long)s->rows, (long long)port->row);
    LW_TRY(lw_array_init(a, LW_ELEM_F32, 2, (int64_t[]){s->rows, port->row}));
    for (int64_t i = 0; i < a->count; i++)
        ((float *)a->data)[i] = ((const float *)raw.data)[one ? i % port->row : i];
    return 0;
}

/* Floats that must be integers become int32_t in place. */
static int make_integers(const char *path, lw_array *a)
{
    for (int64_t i = 0; i < a->count; i++) {
        float v = ((const float *)a->data)[i];
        if (!(fabsf(v) < 16777216.0f) || v != truncf(v))
            return lw_fail(LW_EFORMAT,
                           "%s: element %lld is %.9g, must be an integer of less than 2^24", path,
                           (long long)i, (double)v);
        int32_t k = (int32_t)v;
        memcpy((char *)a->data + 4 * i, &k, 4);
    }
    return 0;
}

/* A picture at a time that is no number is no number either, whatever the network. */
static int check_times(const char *path, const lw_array *a)
{
    const float *x = a->data;
    const int64_t i = lw_first_not_finite(x, a->count);
    return i == a->count ? 0
                         : lw_fail(LW_EFORMAT, "%s: element %lld is %s, must be a finite number",
                                   path, (long long)i, lw_not_finite_text((double)x[i]));
}

static int feed_input(run_state *s, const char *name, const char *path, const char *option,
                      lw_array *a)
{
    const lw_port *port = NULL;
    if (lw_forward_find(s->fwd, name, &port) < 0 || port->output) {
        if (!path)
            return 0;
        return lw_fail(LW_EUSAGE, "%s: %s has no input '%s'", option, s->net->dir, name);
    }
    if (!path && lw_str_eq(name, "t"))
        return 0; /* stays 0 */
    if (!path)
        return lw_fail(LW_EUSAGE, "%s needs %s: it has an input '%s'", s->net->dir, option, name);
    LW_TRY(load_rows(s, path, port, a));
    if (port->integer)
        LW_TRY(make_integers(path, a));
    if (lw_str_eq(name, "t"))
        LW_TRY(check_times(path, a));
    s->feed[s->n_feed++] = (lw_feed){.name = name, .in = a->data};
    return 0;
}

static int prepare(run_state *s, const lw_observer *obs)
{
    const lw_port *y = NULL;
    LW_TRY(lw_session_device_with(s->c->threads, s->c->conv, &s->dev));
    lw_pool_watch(s->dev->pool, obs);
    LW_TRY(lw_network_open(s->c->source, s->c->ema, &s->net));
    s->net->window = s->c->window;
    LW_TRY(load_x(s));
    LW_TRY(
        lw_forward_new(s->dev, s->net,
                       &(lw_forward_opts){.batch = (int32_t)LW_MIN(s->rows, (int64_t)s->c->batch),
                                          .height = (int32_t)s->x.shape[2],
                                          .width = (int32_t)s->x.shape[3],
                                          .output = s->c->want,
                                          .precision = s->c->precision},
                       &s->fwd));
    LW_TRY(one_output(s, &y));
    s->feed[s->n_feed++] = (lw_feed){.name = "x", .in = s->x.data};
    LW_TRY(feed_input(s, "t", s->c->t, "--t", &s->t));
    LW_TRY(feed_input(s, "class", s->c->classes, "--class", &s->classes));
    LW_TRY(feed_input(s, "latent", s->c->latent, "--latent", &s->latent));
    LW_TRY(feed_input(s, "styles", s->c->styles, "--styles", &s->styles));
    LW_TRY(feed_input(s, "condition", s->c->condition, "--condition", &s->condition));
    int64_t shape[LW_MAX_RANK];
    memcpy(shape, y->shape, sizeof shape);
    shape[0] = s->rows;
    LW_TRY(lw_array_init(&s->y, LW_ELEM_F32, y->rank, shape));
    s->feed[s->n_feed++] = (lw_feed){.name = y->name, .out = s->y.data};
    return 0;
}

/* They are written: whoever compares with another program wants to see them. */
static void tell_of_no_numbers(const run_state *s, const char *name)
{
    const float *y = s->y.data;
    const int64_t i = lw_first_not_finite(y, s->y.count);
    if (i < s->y.count)
        lw_log(LW_LOG_WARN, "run", "element %lld of '%s' is %s, the first that is no finite number",
               (long long)i, name, lw_not_finite_text((double)y[i]));
}

static int run(run_state *s, const lw_observer *obs, lw_run_result *out)
{
    LW_TRY(prepare(s, obs));
    lw_plan_info i = lw_forward_info(s->fwd);
    double t = lw_now();
    LW_TRY(lw_forward_rows(s->fwd, "run", s->rows, s->feed, s->n_feed, obs));
    *out =
        (lw_run_result){.parameters = s->net->parameters,
                        .rank = s->y.rank,
                        .seconds = lw_now() - t,
                        .memory = lw_store_bytes(s->net->store) + i.frame_bytes + i.derived_bytes};
    snprintf(out->name, sizeof out->name, "%s", s->net->name);
    snprintf(out->want, sizeof out->want, "%s", s->feed[s->n_feed - 1].name);
    memcpy(out->shape, s->y.shape, sizeof out->shape);
    tell_of_no_numbers(s, out->want);
    return lw_npy_save(s->c->output, LW_ELEM_F32, s->y.rank, s->y.shape, s->y.data);
}

int lw_job_run(const lw_run_config *c, const lw_observer *obs, lw_run_result *out)
{
    run_state s = {.c = c};
    int rc = run(&s, obs, out);
    clear_state(&s);
    return rc;
}
