/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a generator, for callers: classes checked, [N,C,H,W], looked at while they are made. */
#include <stdio.h>

#include "api/api_private.h"
#include "session/session.h"

/* ---- opening --------------------------------------------------------------------------------- */

static int choose(const char *what, const char *word, const char *const *words, int32_t *out)
{
    LW_CLEANUP(lw_str_clear) lw_str known = {0};
    *out = 0;
    for (int32_t i = 0; word && words[i]; i++) {
        if (lw_str_eq(words[i], word)) {
            *out = i;
            return 0;
        }
        lw_str_addf(&known, "%s%s", i ? ", " : "", words[i]);
    }
    return word ? lw_fail(LW_EUSAGE, "%s '%s': must be one of %s", what, word, lw_str_c(&known))
                : 0;
}

static int read_options(const lw_sampler_options *theirs, lw_sampler_opts *own)
{
    const char *kinds[16] = {0},
               *nums[] = {lw_precision_name(LW_NUM_F32), lw_precision_name(LW_NUM_BF16),
                          lw_precision_name(LW_NUM_S8), NULL};
    lw_sampler_options o = {0};
    if (theirs)
        LW_TRY(API_READ(o, theirs));
    for (int32_t i = 0; i < LW_SAMPLER_KINDS; i++)
        kinds[i] = lw_sampler_kind_name((lw_sampler_kind)i);
    if (o.batch < 0 || o.batch > 65536 || o.steps < 0)
        return lw_fail(LW_EUSAGE,
                       "a sampler of %d pictures at a time, %d steps: at most 65536, "
                       "and none below 0",
                       o.batch, o.steps);
    *own = (lw_sampler_opts){.batch = o.batch ? o.batch : 16,
                             .steps = o.steps,
                             .seed = o.seed,
                             .weights = LW_SLAB_PARAM};
    LW_TRY(choose("sampler", o.sampler, kinds, &own->kind));
    LW_TRY(choose("precision", o.precision, nums, &own->precision));
    return 0;
}

static int open_sampler(lw_device *device, const lw_network *n, lw_sampler_opts *o,
                        lw_sampler **out)
{
    LW_CLEANUP(lw_free) lw_diffusion *diffusion = NULL;
    LW_CLEANUP(lw_quantization_free) lw_quantization *ranges = NULL;
    LW_TRY(lw_generator_check(n));
    LW_TRY(lw_network_method(n, &o->method, &diffusion));
    LW_TRY(lw_quantization_need(n, o->precision, &ranges));
    o->diffusion = diffusion;
    o->calibration = lw_quantization_ranges(ranges);
    return lw_sampler_new(device, n, o, out);
}

int lw_sampler_open(lw_device *device, const lw_model *model, const lw_sampler_options *options,
                    lw_sampler **sampler)
{
    lw_sampler_opts o = {0};
    API_FLOATS();
    API_NEED(device);
    API_NEED(model);
    API_NEED(sampler);
    LW_TRY(read_options(options, &o));
    return open_sampler(device, model->net, &o, sampler);
}

void lw_sampler_close(lw_sampler **sampler)
{
    if (sampler && *sampler && !lw_api_running(*sampler, "lw_sampler_close"))
        lw_sampler_free(sampler);
}

int lw_sampler_describe(const lw_sampler *sampler, lw_sampler_info *info)
{
    API_NEED(sampler);
    const lw_network *n = lw_sampler_net(sampler);
    lw_sampler_info i = {.sampler = lw_sampler_kind_name(lw_sampler_get_kind(sampler)),
                         .evaluations = lw_sampler_evaluations(sampler),
                         .channels = lw_picture_channels(n),
                         .height = lw_picture_side(n),
                         .width = lw_picture_side(n),
                         .classes = n->classes};
    return API_WRITE(info, i);
}

/* ---- pictures -------------------------------------------------------------------------------- */

typedef struct watching {
    lw_callbacks calls;
    lw_sampler *sampler;
    float *picture; /* [a batch][C,H,W] of the preview; NULL: nobody looks */
} watching;

/* [n][H][W][C] -> [n,C,H,W] */
static void to_planes(const lw_network *net, const float *x, int64_t n, float *y)
{
    int64_t side = lw_picture_side(net);
    lw_rows_transpose(y, x, n, side * side, lw_picture_channels(net));
}

static int look(void *self, int64_t first, int64_t n, int32_t done, const float *y)
{
    const watching *w = self;
    if (w->picture) {
        to_planes(lw_sampler_net(w->sampler), y, n, w->picture);
        lw_api_outside();
        w->calls.preview(w->calls.self, first, n, done, lw_sampler_evaluations(w->sampler),
                         w->picture);
        lw_api_inside();
    }
    return done < lw_sampler_evaluations(w->sampler) && lw_api_cancelled(&w->calls);
}

/* batch: pictures are numbered up to the end of the last one. */
static int check_request(const lw_network *n, int32_t batch, int64_t first, int64_t count,
                         const int32_t *classes)
{
    int64_t row = (int64_t)lw_picture_side(n) * lw_picture_side(n) * lw_picture_channels(n);
    if (first < 0 || count < 0 || first > INT64_MAX - batch - count || count > INT64_MAX / 8 / row)
        return lw_fail(LW_EUSAGE, "%lld pictures from number %lld on: out of range",
                       (long long)count, (long long)first);
    if (classes && n->classes == 0)
        return lw_fail(LW_EUSAGE, "classes: this model is unconditional, it has none");
    for (int64_t i = 0; classes && i < count; i++)
        if (classes[i] < 0 || classes[i] >= n->classes)
            return lw_fail(LW_EFORMAT, "class %d is not in 0 .. %d", (int)classes[i],
                           (int)n->classes - 1);
    return 0;
}

static int run(lw_sampler *s, watching *w, int64_t first, int64_t count, const int32_t *classes,
               float *pixels)
{
    const lw_network *n = lw_sampler_net(s);
    size_t batch = (size_t)lw_sampler_batch(s), row = (size_t)lw_picture_side(n) *
                                                      (size_t)lw_picture_side(n) *
                                                      (size_t)lw_picture_channels(n);
    LW_CLEANUP(lw_free) float *made = lw_calloc(batch * row, sizeof *made);
    LW_CLEANUP(lw_free)
    float *seen = w->calls.preview ? lw_calloc(batch * row, sizeof *seen) : NULL;
    if (!made || (w->calls.preview && !seen))
        return LW_ENOMEM;
    w->picture = seen;
    for (int64_t at = 0; at < count; at += (int64_t)batch) {
        int64_t m = LW_MIN(count - at, (int64_t)batch);
        LW_TRY(lw_sampler_run(s, first + at, m, classes ? classes + at : NULL, NULL, made));
        LW_TRY(lw_pictures_check(made, m, (int64_t)row, first + at));
        to_planes(n, made, m, pixels + (size_t)at * row);
        lw_api_progress(&w->calls, at + m, count);
        if (at + m < count && lw_api_cancelled(&w->calls))
            return lw_fail(LW_ESTOPPED, "sampling stopped after %lld of %lld pictures",
                           (long long)(at + m), (long long)count);
    }
    return 0;
}

int lw_sampler_pictures(lw_sampler *sampler, int64_t first, int64_t count, const int32_t *classes,
                        const lw_callbacks *callbacks, float *pixels)
{
    watching w = {.sampler = sampler};
    lw_api_use use;
    API_NEED(sampler);
    API_NEED(pixels);
    if (callbacks)
        LW_TRY(API_READ(w.calls, callbacks));
    LW_TRY(
        check_request(lw_sampler_net(sampler), lw_sampler_batch(sampler), first, count, classes));
    LW_TRY(lw_api_enter(&use, sampler, "lw_sampler_pictures"));
    lw_sampler_watch(sampler, look, &w);
    int rc = run(sampler, &w, first, count, classes, pixels);
    lw_sampler_watch(sampler, NULL, NULL);
    lw_api_leave(&use);
    return rc;
}
