/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures at another size, on one thread: making the weights and both passes. Products of whole
 * numbers bound them, of which no peak is measured. */
#include <math.h>
#include <string.h>

#include "bench/suites/bench_op.h"
#include "kernels/kernels.h"

typedef struct resize {
    const char *name;
    lw_resample_spec spec;
} resize;

#define RESIZE(kind, name_of_filter, from_h, from_w, onto_h, onto_w)                   \
    {                                                                                  \
        .form = LW_RESAMPLE_##kind, .filter = LW_FILTER_##name_of_filter, .h = from_h, \
        .w = from_w, .c = 3, .to_h = onto_h, .to_w = onto_w                            \
    }

/* A photograph to the shortest edge of 224, a CIFAR picture to an encoder's size, a large one. */
static const resize resizes[] = {
    {"resample_pillow_bicubic_375x500_224x299", RESIZE(PILLOW, BICUBIC, 375, 500, 224, 299)},
    {"resample_pillow_bilinear_375x500_224x299", RESIZE(PILLOW, BILINEAR, 375, 500, 224, 299)},
    {"resample_pillow_lanczos_375x500_224x299", RESIZE(PILLOW, LANCZOS, 375, 500, 224, 299)},
    {"resample_pillow_bicubic_32x32_224x224", RESIZE(PILLOW, BICUBIC, 32, 32, 224, 224)},
    {"resample_pillow_bicubic_1080x1920_224x398", RESIZE(PILLOW, BICUBIC, 1080, 1920, 224, 398)},
    {"resample_float-aa_bicubic_375x500_224x299", RESIZE(FLOAT_AA, BICUBIC, 375, 500, 224, 299)},
    {"resample_torch_bicubic_32x32_224x224", RESIZE(TORCH, BICUBIC, 32, 32, 224, 224)},
};

typedef struct resize_case {
    const lw_resample_spec *spec;
    lw_kernels kernels;
    void *x, *y, *want; /* of u8 or float */
} resize_case;

static size_t element(const resize_case *c)
{
    return lw_resample_is_u8(c->spec->form) ? sizeof(uint8_t) : sizeof(float);
}

static int run_into(const resize_case *c, const struct lw_resample_kernels *k, void *y)
{
    LW_CLEANUP(lw_resample_clear) lw_resample r = {0};
    LW_TRY(lw_resample_init(&r, c->spec));
    LW_CLEANUP(lw_free) void *scratch = lw_calloc(lw_resample_scratch(&r) + 1, 1);
    if (!scratch)
        return LW_ENOMEM;
    if (lw_resample_is_u8(c->spec->form))
        lw_resample_u8(k, &r, y, c->x, scratch);
    else
        lw_resample_f32(k, &r, y, c->x, scratch);
    return 0;
}

static int resize_call(void *self)
{
    resize_case *c = self;
    return run_into(c, &c->kernels.resample, c->y);
}

static double value(const resize_case *c, const void *p, size_t i)
{
    return element(c) == 1 ? ((const uint8_t *)p)[i] : (double)((const float *)p)[i];
}

/* Largest difference to the reference kernels over their largest value. */
static int error_of(resize_case *c, size_t n, double *out)
{
    lw_kernels ref;
    double worst = 0.0, most = 0.0;
    lw_kernels_init(&ref, LW_ISA_REF);
    LW_TRY(run_into(c, &ref.resample, c->want));
    LW_TRY(resize_call(c));
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(value(c, c->y, i) - value(c, c->want, i)));
        most = fmax(most, fabs(value(c, c->want, i)));
    }
    *out = worst / most;
    return 0;
}

static int measure(lw_bench_run *r, const resize *z, resize_case *c)
{
    size_t in = (size_t)(z->spec.h * z->spec.w * z->spec.c);
    size_t out = (size_t)(z->spec.to_h * z->spec.to_w * z->spec.c), size = element(c);
    double error = (double)__builtin_nan("");
    c->x = lw_calloc(in, size);
    c->y = lw_calloc(out, size);
    c->want = lw_calloc(out, size);
    if (!c->x || !c->y || !c->want)
        return LW_ENOMEM;
    for (size_t i = 0; i < in; i++) {
        uint8_t byte = (uint8_t)(i * 2654435761u >> 13);
        if (size == 1)
            ((uint8_t *)c->x)[i] = byte;
        else
            ((float *)c->x)[i] = byte;
    }
    if (r->config->reference)
        LW_TRY(error_of(c, out, &error));
    return lw_bench_measure(r,
                            &(lw_bench_work){.name = z->name,
                                             .method = size == 1 ? "u8" : "f32",
                                             .call = resize_call,
                                             .self = c,
                                             .memory = (in + 2 * out) * size,
                                             .error = error,
                                             .against = r->config->reference ? "ref" : NULL},
                            NULL);
}

int lw_bench_resample(lw_bench_run *r)
{
    int rc = 0;
    for (size_t i = 0; i < LW_COUNT(resizes) && rc == 0; i++) {
        if (!lw_bench_wants(r, resizes[i].name))
            continue;
        resize_case c = {.spec = &resizes[i].spec};
        lw_kernels_init(&c.kernels, r->isa);
        rc = measure(r, &resizes[i], &c);
        lw_free(&c.x);
        lw_free(&c.y);
        lw_free(&c.want);
    }
    return rc;
}
