/* SPDX-License-Identifier: Apache-2.0 */
/* Latents of pictures, encoded once and kept. */
#include "session/session_latents.h"

#include <stdlib.h>
#include <string.h>

struct lw_latents {
    lw_device *dev;
    lw_autoencoder coder; /* its decoder is closed again; the encoder, once all are there */
    char *spec;           /* with the path made absolute */
    uint64_t weights;     /* lw_autoencoder_hash */
    const lw_dataset *pictures;
    lw_dataset *rows; /* borrowed */
    bool flip;
    lw_forward *encode;
    lw_features_file file;
    lw_features_spec keep;
    lw_str title;
    size_t row, frozen;
    bool mirrored; /* those that are being encoded */
};

/* Of a folder that holds both halves the folder that was found (of a run the newest checkpoint), else
 * what was typed. */
static int resolve(lw_latents *l, const char *spec)
{
    LW_CLEANUP(lw_str_clear) lw_str out = {0};
    const char *at = lw_autoencoder_named(spec) ? strchr(spec, ':') + 1 : spec;
    const char *dir = l->coder.encoder->dir;
    bool whole = dir && lw_path_is_dir(dir) && lw_str_eq(dir, l->coder.decoder->dir);
    char *real = realpath(whole ? dir : at, NULL);
    if (!real)
        return lw_fail(LW_EIO, "--latents %s: no such path", spec);
    lw_str_addf(&out, "%.*s%s", (int)(at - spec), spec, real);
    free(real);
    l->spec = lw_strdup(lw_str_c(&out));
    return out.failed || !l->spec ? LW_ENOMEM : 0;
}

static int build_encoder(lw_latents *l, int32_t conv)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const lw_dataset *d = l->pictures;
    const int32_t batch = lw_autoencoder_batch((int64_t)d->h * d->w);
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_network_in in = {.x = lw_input(g, "images", lw_type_of(LW_F32, 4, batch, d->h, d->w, 3)),
                        .rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch))};
    lw_network_append(l->coder.encoder, g, in, &taps);
    lw_val sampled = lw_tap_find(&taps, "sampled");
    lw_graph_output_add(g, "latent", lw_val_ok(sampled) ? sampled : lw_tap_find(&taps, "latent"),
                        LW_NOVAL);
    LW_TRY(lw_graph_error(g));
    l->keep.key = lw_features_key(
        d, &(lw_features_made){.flip = l->flip,
                               .weights = lw_store_hash(l->coder.encoder->store, LW_SLAB_PARAM),
                               .graph = lw_graph_hash(g),
                               .conv = conv,
                               .isa = l->dev->isa});
    return lw_forward_of(l->dev, &g, NULL, LW_SLAB_PARAM, l->coder.encoder->name, &l->encode);
}

/* What is kept, and as what. */
static int describe(lw_latents *l)
{
    const lw_dataset *d = l->pictures;
    const int32_t shrink = l->coder.shrink;
    l->row = (size_t)(d->h / shrink) * (size_t)(d->w / shrink) * (size_t)l->coder.channels *
             sizeof(float);
    lw_str_addf(&l->title, "latents of %s %s pictures of %dx%d%s by %s", d->spec,
                lw_split_name(d->split), (int)d->h, (int)d->w,
                l->flip ? " and their mirror images" : "", l->spec);
    l->keep.kind = LW_KEEP_LATENTS;
    l->keep.title = lw_str_c(&l->title);
    l->keep.rows = d->n;
    l->keep.arrays = l->flip ? 2 : 1;
    l->keep.together = INT64_MAX;
    l->keep.pool = l->dev->pool;
    return l->title.failed ? LW_ENOMEM : 0;
}

static int check_pictures(const lw_latents *l, const char *spec)
{
    const lw_dataset *d = l->pictures;
    const int32_t multiple = l->coder.shrink, channels = l->coder.channels;
    if (d->channels != 3)
        return lw_fail(LW_EUSAGE, "--latents %s: encodes RGB; leave out --channels %d", spec,
                       (int)d->channels);
    if (d->h % multiple || d->w % multiple)
        return lw_fail(LW_EUSAGE,
                       "--latents %s: pictures of %dx%d: the sides must be multiples of %d "
                       "(--image-size)",
                       spec, (int)d->w, (int)d->h, (int)multiple);
    if (channels > LW_MAX_CHANNELS)
        return lw_fail(LW_EUNSUPPORTED, "--latents %s: latents of %d channels; at most %d", spec,
                       (int)channels, LW_MAX_CHANNELS);
    return 0;
}

static int open_latents(lw_latents *l, const char *spec, int32_t conv)
{
    LW_TRY(lw_autoencoder_open(spec, &l->coder));
    LW_TRY(check_pictures(l, spec));
    LW_TRY(resolve(l, spec));
    l->weights = lw_autoencoder_hash(&l->coder);
    l->frozen = lw_store_bytes(l->coder.encoder->store) + lw_store_bytes(l->coder.decoder->store);
    lw_network_close(&l->coder.decoder);
    LW_TRY(describe(l));
    return build_encoder(l, conv);
}

int lw_latents_new(lw_device *dev, const char *spec, const lw_dataset *pictures, bool flip,
                   int32_t conv, lw_latents **out, lw_dataset **rows)
{
    LW_CLEANUP(lw_latents_free) lw_latents *l = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    l->dev = dev;
    l->pictures = pictures;
    l->flip = flip && pictures->flip;
    LW_TRY(open_latents(l, spec, conv));
    LW_TRY(lw_data_values(pictures, pictures->h / l->coder.shrink, pictures->w / l->coder.shrink,
                          l->coder.channels, l->keep.key, &l->rows));
    *rows = l->rows;
    *out = lw_steal(&l);
    return 0;
}

void lw_latents_free(lw_latents **pp)
{
    lw_latents *l = *pp;
    if (!l)
        return;
    lw_forward_free(&l->encode);
    lw_autoencoder_close(&l->coder);
    lw_features_close(&l->file);
    lw_str_clear(&l->title);
    lw_free(&l->spec);
    lw_free(pp);
}

typedef struct loading {
    lw_latents *l;
    int64_t first;
    float *images;
} loading;

static void load_task(void *arg, int64_t i, int worker)
{
    const loading *j = arg;
    const lw_dataset *d = j->l->pictures;
    (void)worker;
    lw_data_get(d, j->first + i, j->l->mirrored, j->images + i * lw_data_row_size(d));
}

static int load_images(void *self, int64_t first, int64_t n, void *images)
{
    lw_latents *l = self;
    loading j = {l, first, images};
    lw_pool_run(l->dev->pool, n, load_task, &j);
    return 0;
}

/* The noise of a row does not depend on which others are encoded. */
static int load_rows(void *self, int64_t first, int64_t n, void *dst)
{
    const lw_latents *l = self;
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)dst)[i] = 2 * lw_data_row_number(l->pictures, first + i) + l->mirrored;
    return 0;
}

typedef struct making {
    lw_latents *l;
    const lw_observer *obs;
} making;

static int make_all(void *self, void *const *array)
{
    const making *m = self;
    lw_latents *l = m->l;
    for (int k = 0; k < l->keep.arrays; k++) {
        const lw_feed feed[] = {{.name = "images", .fill = load_images, .self = l},
                                {.name = "rows", .fill = load_rows, .self = l},
                                {.name = "latent", .out = array[k]}};
        l->mirrored = k == 1;
        LW_TRY(lw_forward_rows(l->encode, k ? "encode, mirrored" : "encode", l->keep.rows, feed,
                               LW_COUNT(feed), m->obs));
    }
    return 0;
}

int lw_latents_fill(lw_latents *l, const lw_observer *obs)
{
    making m = {l, obs};
    const size_t row[2] = {l->row, l->row};
    lw_features_spec keep = l->keep;
    keep.row = row;
    keep.obs = obs;
    if (l->file.array[0])
        return 0;
    LW_TRY(lw_features_have(&keep, make_all, &m, &l->file));
    for (int k = 0; k < 2; k++)
        l->rows->values[k] = l->file.array[k < l->keep.arrays ? k : 0];
    lw_forward_free(&l->encode);
    lw_network_close(&l->coder.encoder);
    return 0;
}

json_t *lw_latents_json(const lw_latents *l)
{
    return json_pack("{s:s, s:o, s:i}", "autoencoder", l->spec, "hash", lw_json_hash(l->weights),
                     "shrink", (int)l->coder.shrink);
}

lw_latents_cost lw_latents_get_cost(const lw_latents *l, lw_str *note)
{
    const size_t row[2] = {l->row, l->row};
    const int64_t n = l->keep.rows * l->keep.arrays;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_features_spec keep = l->keep;
    char size[32];
    const size_t bytes = (size_t)n * l->row;
    lw_latents_cost c = {.frozen = l->frozen};
    keep.row = row;
    lw_features_path(&keep, &path);
    const char *slash = path.len ? strrchr(lw_str_c(&path), '/') : NULL;
    bool there = path.len && lw_path_exists(lw_str_c(&path));
    c.held = slash ? 0 : bytes;
    if (l->encode && !there) {
        const lw_plan_info i = lw_forward_info(l->encode);
        const int64_t batch = lw_forward_port(l->encode, 0)->shape[0];
        c.frame = i.frame_bytes + i.derived_bytes;
        const int64_t runs = LW_CEIL_DIV(l->keep.rows, batch) * l->keep.arrays;
        c.flops = i.flops * (double)runs;
    }
    lw_str_addf(note, "latents of %dx%dx%d: %s, of %lld pictures%s, %s%s%s", (int)l->rows->w,
                (int)l->rows->h, (int)l->rows->channels, lw_fmt_bytes(size, bytes),
                (long long)l->keep.rows, l->flip ? " and their mirror images" : "",
                slash ? "on disk as " : "in memory", slash ? slash + 1 : "",
                there ? ", made before" : ", to be made");
    if (c.flops > 0)
        lw_str_addf(note, " (%.4g GFLOP once)", c.flops * 1e-9);
    return c;
}
