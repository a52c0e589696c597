/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tensor`: pictures in an array of bytes [N][H][W][C], .npy, .npz or .safetensors. [N][H][W] and
 * [N][1][H][W] are gray.
 *
 *   .npy                        pictures
 *   .npz and .safetensors:
 *         arr_0 [, arr_1]       ADM's: pictures [, labels]
 *         images [, labels]     the same by name
 *         x_train, y_train, x_test, y_test   as Keras has MNIST and CIFAR: their own split
 *
 * Without a split of their own every tenth picture (9, 19, 29, ...) is held out, as in a folder.
 */
#include <stdio.h>
#include <string.h>

#include "data/sources/data_source.h"
#include "data/sources/data_tensor.h"

void lw_tensor_clear(tensor_file *f)
{
    lw_array_clear(&f->train.pixels);
    lw_array_clear(&f->train.labels);
    lw_array_clear(&f->held.pixels);
    lw_array_clear(&f->held.labels);
    *f = (tensor_file){0};
}

/* ---- what is there --------------------------------------------------------------------------- */

static const char *const names[][4] = {
    {"x_train", "y_train", "x_test", "y_test"}, {"images", "labels"}, {"arr_0", "arr_1"}};

/* Where an array of this name belongs; NULL: nowhere. */
static lw_array *slot_of(tensor_file *f, size_t set, const char *name)
{
    lw_array *const slots[4] = {&f->train.pixels, &f->train.labels, &f->held.pixels,
                                &f->held.labels};
    for (size_t k = 0; k < 4 && names[set][k]; k++)
        if (lw_str_eq(names[set][k], name))
            return slots[k];
    return NULL;
}

typedef struct seen {
    tensor_file *f;
    size_t set;
    bool there[LW_COUNT(names)];
} seen;

static int look(void *arg, const char *name, lw_array *array)
{
    seen *s = arg;
    (void)array;
    for (size_t k = 0; k < LW_COUNT(names); k++)
        s->there[k] = s->there[k] || lw_str_eq(names[k][0], name);
    return 0;
}

static int take(void *arg, const char *name, lw_array *array)
{
    seen *s = arg;
    lw_array *to = slot_of(s->f, s->set, name);
    if (!to)
        return 0;
    *to = *array;
    *array = (lw_array){0};
    return 0;
}

static int load_npz(const char *path, tensor_file *f)
{
    seen s = {.f = f};
    LW_TRY(lw_npz_each(path, false, look, &s));
    while (s.set < LW_COUNT(names) && !s.there[s.set])
        s.set++;
    if (s.set == LW_COUNT(names))
        return lw_fail(LW_EFORMAT, "%s: no array arr_0, images or x_train", path);
    size_t n = 0;
    while (n < 4 && names[s.set][n])
        n++;
    return lw_npz_pick(path, names[s.set], n, true, take, &s);
}

static int load_safetensors(const char *path, tensor_file *f)
{
    LW_CLEANUP(lw_st_close) lw_st_file *st = NULL;
    size_t set = 0;
    LW_TRY(lw_st_open(path, &st));
    while (set < LW_COUNT(names) && !lw_st_find(st, names[set][0]))
        set++;
    if (set == LW_COUNT(names))
        return lw_fail(LW_EFORMAT, "%s: no tensor arr_0, images or x_train", path);
    for (size_t k = 0; k < 4 && names[set][k]; k++) {
        const lw_st_tensor *t = lw_st_find(st, names[set][k]);
        lw_array *to = slot_of(f, set, names[set][k]);
        if (!t)
            continue;
        LW_TRY(lw_array_init(to, t->type, t->rank, t->shape));
        if (t->bytes > 0)
            memcpy(to->data, t->data, t->bytes);
    }
    return 0;
}

/* ---- is it pictures -------------------------------------------------------------------------- */

static int check_pixels(const char *path, const lw_array *a, int32_t *h, int32_t *w, int32_t *c)
{
    char text[192];
    /* [N,1,H,W]: nobody's pictures are one line of pixels */
    bool plane = a->rank == 4 && a->shape[1] == 1 && a->shape[2] > 1;
    int64_t channels = a->rank == 4 && !plane ? a->shape[3] : 1;
    const int64_t *side = a->shape + 1 + plane;
    if (a->type != LW_ELEM_U8 || a->rank < 3 || a->rank > 4 || a->count == 0)
        return lw_fail(LW_EFORMAT, "%s: an array %s of %s, pictures are U8 [N,H,W,C] or [N,H,W]",
                       path, lw_shape_text(text, a->rank, a->shape), lw_elem_name(a->type));
    if (channels > LW_MAX_CHANNELS)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: an array %s: pictures of %lld channels, which come last; up to %d are "
                       "read",
                       path, lw_shape_text(text, a->rank, a->shape), (long long)channels,
                       LW_MAX_CHANNELS);
    if (side[0] > LW_DATA_MAX_SIDE || side[1] > LW_DATA_MAX_SIDE)
        return lw_fail(LW_EFORMAT, "%s: pictures of %lldx%lld, sides are 1 to %d", path,
                       (long long)side[1], (long long)side[0], LW_DATA_MAX_SIDE);
    *h = (int32_t)side[0];
    *w = (int32_t)side[1];
    *c = (int32_t)channels;
    return 0;
}

static int64_t label_at(const lw_array *a, int64_t i)
{
    switch (a->type) {
    case LW_ELEM_I64:
        return ((const int64_t *)a->data)[i];
    case LW_ELEM_I32:
        return ((const int32_t *)a->data)[i];
    case LW_ELEM_I16:
        return ((const int16_t *)a->data)[i];
    case LW_ELEM_U8:
        return ((const uint8_t *)a->data)[i];
    default:
        return -1;
    }
}

/* As many as pictures; [N,1] is taken too. */
static int check_labels(const char *path, tensor_file *f, const tensor_part *p)
{
    const lw_array *a = &p->labels;
    if (!a->data)
        return 0;
    if (a->count != p->pixels.shape[0])
        return lw_fail(LW_EFORMAT, "%s: %lld labels of %lld pictures", path, (long long)a->count,
                       (long long)p->pixels.shape[0]);
    for (int64_t i = 0; i < a->count; i++) {
        int64_t l = label_at(a, i);
        if (l < 0 || l >= LW_DATA_MAX_CLASSES)
            return lw_fail(LW_EFORMAT, "%s: label %lld is %lld, not a whole number of 0 to %d",
                           path, (long long)i, (long long)l, LW_DATA_MAX_CLASSES - 1);
        f->classes = LW_MAX(f->classes, (int32_t)l + 1);
    }
    return 0;
}

static int check(const char *path, tensor_file *f)
{
    int32_t h = 0, w = 0, c = 0;
    bool held = f->held.pixels.data != NULL;
    LW_TRY(check_pixels(path, &f->train.pixels, &f->h, &f->w, &f->c));
    if (held)
        LW_TRY(check_pixels(path, &f->held.pixels, &h, &w, &c));
    if (held && (h != f->h || w != f->w || c != f->c))
        return lw_fail(LW_EFORMAT, "%s: held-out pictures of %dx%d of %d, others of %dx%d of %d",
                       path, (int)w, (int)h, (int)c, (int)f->w, (int)f->h, (int)f->c);
    if (held && (f->train.labels.data != NULL) != (f->held.labels.data != NULL))
        return lw_fail(LW_EFORMAT, "%s: only one of its two splits has labels", path);
    LW_TRY(check_labels(path, f, &f->train));
    return check_labels(path, f, &f->held);
}

/* ---- for shards, too ------------------------------------------------------------------------- */

int lw_tensor_load(const char *path, const char *labels, tensor_file *out)
{
    LW_TRY(lw_str_ends(path, ".npz")           ? load_npz(path, out)
           : lw_str_ends(path, ".safetensors") ? load_safetensors(path, out)
                                               : lw_npy_load(path, &out->train.pixels));
    if (labels && out->train.labels.data)
        return lw_fail(LW_EFORMAT, "%s: has labels of its own, beside those of %s", path, labels);
    if (labels)
        LW_TRY(lw_npy_load(labels, &out->train.labels));
    LW_TRY(check(path, out));
    out->n = out->train.pixels.shape[0];
    return 0;
}

int32_t lw_tensor_label(const tensor_part *part, int64_t i)
{
    return (int32_t)label_at(&part->labels, i);
}

int lw_tensor_get(const tensor_file *f, const tensor_part *part, int64_t i, lw_raster *im,
                  int32_t *label)
{
    const int64_t bytes = (int64_t)f->h * f->w * f->c;
    *label = part->labels.data ? lw_tensor_label(part, i) : 0;
    LW_TRY(lw_raster_init(im, f->h, f->w, f->c));
    memcpy(im->at, (const uint8_t *)part->pixels.data + i * bytes, (size_t)bytes);
    return 0;
}

/* ---- the record ------------------------------------------------------------------------------ */

static void tensor_clear(lw_data_job *job)
{
    if (job->priv)
        lw_tensor_clear(job->priv);
    lw_free(&job->priv);
}

/* Headers do not say how many classes there are: the file is read when it is planned, too. */
static int tensor_plan(lw_data_job *job)
{
    const char *path;
    char name[16];
    tensor_file *f = job->priv = lw_calloc(1, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    LW_TRY(lw_data_job_path(job, &path));
    LW_TRY(lw_data_job_place(job, path));
    LW_TRY(lw_data_job_file(job, path));
    int rc = lw_tensor_load(path, NULL, f);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    lw_data_job_pictures(job, f->h, f->w);
    job->own = f->c;
    job->labelled = f->classes > 0;
    job->flip = false; /* nobody says what they show */
    for (int32_t c = 0; c < LW_MAX(f->classes, 1); c++) {
        snprintf(name, sizeof name, "%d", (int)c);
        LW_TRY(lw_data_job_class(job, name));
    }
    return 0;
}

/* Of a part all pictures; or every tenth; or those between. */
typedef struct pick {
    const tensor_file *f;
    const tensor_part *part;
    bool tenths, held;
} pick;

static int get(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const pick *p = from;
    return lw_tensor_get(p->f, p->part, p->tenths ? lw_data_tenths_at(p->held, i) : i, im, label);
}

static int tensor_build(lw_data_job *job, lw_data_sink *sink)
{
    const tensor_file *f = job->priv;
    bool tenths = !f->held.pixels.data;
    int64_t n_held = tenths ? lw_data_tenths_of(f->n, true) : f->held.pixels.shape[0];
    int64_t n_train = tenths ? lw_data_tenths_of(f->n, false) : f->n;
    const pick train = {f, &f->train, tenths, false},
               held = {f, tenths ? &f->train : &f->held, tenths, true};
    LW_TRY(lw_data_sink_expect(sink, n_train, n_held));
    LW_TRY(lw_data_fill(job, sink, &(lw_data_pictures){.n = n_train, .from = &train, .get = get}));
    lw_data_sink_heldout(sink);
    return n_held == 0 ? 0
                       : lw_data_fill(job, sink,
                                      &(lw_data_pictures){.n = n_held, .from = &held, .get = get});
}

const lw_data_source lw_data_source_tensor = {
    .info = {"tensor", "tensor:FILE",
             "bytes [N,H,W,C] in .npy, .npz or .safetensors (arr_0, images, x_train), [N,H,W] or "
             "[N,1,H,W]; labels "
             "arr_1, labels, y_train; every tenth held out, or x_test"},
    .plan = tensor_plan,
    .build = tensor_build,
    .clear = tensor_clear,
};
