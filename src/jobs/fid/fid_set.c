/* SPDX-License-Identifier: Apache-2.0 */
/* What A and B are: data, arrays, generators, features, statistics. */
#include "jobs/fid/fid_set.h"

#include <string.h>

#include "store/store.h"

/* ---- some of them ---------------------------------------------------------------------------- */

static int draw(fid_set *s)
{
    size_t row = s->rgb ? (size_t)s->h * (size_t)s->w * 3 : (size_t)s->dim * sizeof(float);
    char *rows = s->rgb ? (char *)s->rgb : (char *)s->rows;
    int64_t kept = 0, want = s->c->num_images;
    if ((s->kind != FID_ARRAY && s->kind != FID_FEATURES) || want == 0)
        return 0;
    if (want > s->n)
        return lw_fail(LW_EUSAGE, "%c: %s: %lld pictures are to be drawn, but there are %lld",
                       s->letter, s->source, (long long)want, (long long)s->n);
    for (int64_t i = 0; i < s->n; i++)
        if (lw_data_draws(s->c->seed, s->n, want, i))
            memmove(rows + (size_t)kept++ * row, rows + (size_t)i * row, row);
    s->n = kept;
    return 0;
}

/* ---- which kind ------------------------------------------------------------------------------ */

static bool is_spec(const char *text)
{
    size_t n = strcspn(text, ":,");
    for (const lw_data_info *d = lw_data_sources(); d->name; d++)
        if (strncmp(d->name, text, n) == 0 && !d->name[n] && (text[n] || !lw_path_exists(text)))
            return true;
    return false;
}

/* FILE#NAME, where there is no file that has this name itself. */
static int split_name(const char *source, lw_str *path, const char **name)
{
    const char *hash = strrchr(source, '#');
    bool cut = hash && hash[1] && !lw_path_exists(source);
    lw_str_add_n(path, source, cut ? (size_t)(hash - source) : strlen(source));
    *name = cut ? hash + 1 : NULL;
    return path->failed ? LW_ENOMEM : 0;
}

static bool is_arrays(const char *path)
{
    return lw_str_ends(path, ".npy") || lw_str_ends(path, ".npz") ||
           lw_str_ends(path, ".safetensors");
}

/* A folder of a model, else of pictures. */
static int open_folder(fid_set *s)
{
    lw_place_kind kind;
    if (lw_place_look(s->source, &kind) == 0) {
        s->kind = FID_GENERATOR;
        return 0;
    }
    lw_errclear();
    s->kind = FID_DATA;
    lw_str_addf(&s->spec, "folder:%s", s->source);
    return s->spec.failed ? LW_ENOMEM : 0;
}

int lw_fid_set_open(const lw_fid_config *c, int which, fid_set *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *name;
    bool there;
    *out = (fid_set){
        .c = c, .source = c->set[which], .letter = (char)('A' + which), .split = c->split[which]};
    if (is_spec(out->source)) {
        lw_str_add(&out->spec, out->source);
        return out->spec.failed ? LW_ENOMEM : 0;
    }
    LW_TRY(split_name(out->source, &path, &name));
    LW_TRY(lw_path_look(lw_str_c(&path), &there));
    if (!there)
        return lw_fail(LW_EIO,
                       "%c: %s: no such file or folder, and no data spec (" LW_DATA_SPEC_HELP ")",
                       out->letter, out->source);
    if (lw_path_is_dir(out->source))
        return open_folder(out);
    if (is_arrays(lw_str_c(&path))) {
        LW_TRY(lw_fid_read(lw_str_c(&path), name, out));
        return draw(out);
    }
    return lw_fail(
        LW_EUSAGE,
        "%c: %s: a set is a folder, a data spec, a run, or a file of arrays (.npy, .npz, "
        ".safetensors)",
        out->letter, out->source);
}

void lw_fid_set_clear(fid_set *s)
{
    lw_str_clear(&s->spec);
    lw_free(&s->rgb);
    lw_free(&s->rows);
    lw_stats_free(&s->stats);
}

/* ---- a generator's pictures ------------------------------------------------------------------ */

/* The first `made` of s->n, of a generator of gray or RGB. */
static int sample(fid_set *s, lw_sampler *sampler, int32_t channels, int64_t made,
                  const lw_observer *obs)
{
    enum { BLOCK = 256 };
    const int64_t pixels = (int64_t)s->h * s->w, row = pixels * channels;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(LW_MIN(made, BLOCK) * row), sizeof *x);
    LW_CLEANUP(lw_free) uint8_t *bytes = lw_calloc((size_t)BLOCK, (size_t)row);
    s->rgb = lw_calloc((size_t)s->n, (size_t)pixels * 3);
    if (!x || !s->rgb || !bytes)
        return LW_ENOMEM;
    for (int64_t at = 0; at < made; at += BLOCK) {
        int64_t n = LW_MIN(made - at, BLOCK);
        LW_TRY(lw_sampler_run(sampler, at, n, NULL, NULL, x));
        int rc = lw_pictures_check(x, n, row, at);
        if (rc < 0)
            return lw_fail_in(rc, "%c: %s: ", s->letter, s->source);
        lw_data_to_u8(x, n * row, bytes);
        lw_channels_convert(bytes, n * pixels, channels, 3, s->rgb + at * pixels * 3);
        lw_observe_progress(obs, "sample", at + n, made, NULL);
        if (at + n < made && lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "stopped after %lld of %lld samples", (long long)(at + n),
                           (long long)made);
    }
    return 0;
}

static int open_sampler(fid_set *s, lw_device *dev, const lw_source *source, lw_sampler **out)
{
    const lw_fid_config *c = s->c;
    if (c->num_images == 0)
        return lw_fail(LW_EUSAGE,
                       "%c: %s is a generator: --num-images N says how many pictures it makes",
                       s->letter, s->source);
    LW_TRY(lw_channels_check(s->source, lw_picture_channels(source->net), 3));
    s->gray = lw_picture_channels(source->net) == 1;
    s->n = c->num_images;
    s->classes = source->net->classes;
    s->alpha = c->alpha;
    s->guidance_scale = c->guidance_scale > 1.0 ? c->guidance_scale : 0.0;
    s->h = s->w = lw_picture_side(source->net);
    return lw_sampler_new(dev, source->net,
                          &(lw_sampler_opts){.method = source->method,
                                             .kind = c->sampler,
                                             .steps = c->steps,
                                             .alpha = c->alpha,
                                             .guidance_scale = c->guidance_scale,
                                             .diffusion = source->diffusion,
                                             .batch = (int32_t)LW_MIN((int64_t)c->batch, s->n),
                                             .seed = c->seed,
                                             .weights = LW_SLAB_PARAM},
                          out);
}

int lw_fid_set_make(fid_set *s, lw_device *dev, const lw_observer *obs, double *seconds)
{
    LW_CLEANUP(lw_source_close) lw_source *source = NULL;
    LW_CLEANUP(lw_sampler_free) lw_sampler *sampler = NULL;
    if (s->kind != FID_GENERATOR)
        return 0;
    LW_TRY(lw_source_open(s->source, s->c->ema, &source));
    LW_TRY(open_sampler(s, dev, source, &sampler));
    if (!s->c->dry_run)
        return sample(s, sampler, lw_picture_channels(source->net), s->n, obs);
    const int64_t few = LW_MIN((int64_t)s->c->batch, s->n), batches = LW_CEIL_DIV(s->n, few);
    double start = lw_now();
    LW_TRY(sample(s, sampler, lw_picture_channels(source->net), few, obs));
    *seconds += lw_now() - start; /* the first prepares the weights */
    if (batches == 1)
        return 0;
    lw_free(&s->rgb);
    start = lw_now();
    LW_TRY(sample(s, sampler, lw_picture_channels(source->net), few, obs));
    *seconds += (lw_now() - start) * (double)(batches - 1);
    return 0;
}
