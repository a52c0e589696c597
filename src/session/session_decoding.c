/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of latents, by the autoencoder that config.json names. */
#include "session/session_decoding.h"

#include <stdio.h>
#include <string.h>

static const char key_name[] = "leeway_latents";

/* ---- of a network ---------------------------------------------------------------------------- */

const char *lw_latents_of(const json_t *config)
{
    return json_string_value(json_object_get(json_object_get(config, key_name), "autoencoder"));
}

int lw_latents_note(json_t *config, json_t *latents)
{
    return json_object_set_new(config, key_name, latents) == 0
               ? 0
               : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

int32_t lw_picture_side(const lw_network *n)
{
    enum { MOST = 256 }; /* of shrink: an autoencoder of eight levels */
    const json_t *shrink = json_object_get(json_object_get(n->config, key_name), "shrink");
    json_int_t k = shrink ? json_integer_value(shrink) : 1;
    return n->image_size * (int32_t)LW_MAX(LW_MIN(k, MOST), 1);
}

int32_t lw_picture_channels(const lw_network *n)
{
    return lw_latents_of(n->config) ? 3 : n->channels;
}

int lw_latents_agree(const lw_network *encoder, const char *spec, const json_t *shown)
{
    const json_t *said = json_object_get(encoder->config, key_name),
                 *now = json_object_get(shown, key_name);
    const char *own = lw_latents_of(encoder->config), *these = lw_latents_of(shown),
               *hash = json_string_value(json_object_get(said, "hash"));
    if (!said)
        return 0;
    if (!own || !hash)
        return lw_fail(LW_EFORMAT, "%s: '%s' names no autoencoder and no hash", spec, key_name);
    if (!these)
        return lw_fail(LW_EUSAGE,
                       "%s: an encoder of latents of %s, and what it would see here are pictures",
                       spec, own);
    if (lw_str_eq(hash, json_string_value(json_object_get(now, "hash"))))
        return 0;
    return lw_fail(LW_EUSAGE, "%s: an encoder of latents of %s, and these are those of %s%s", spec,
                   own, these,
                   lw_str_eq(own, these) ? ", which had other weights at its training" : "");
}

/* ---- of an autoencoder ------------------------------------------------------------------------- */

int32_t lw_autoencoder_batch(int64_t pixels)
{
    const int64_t together = 128 * 128;
    return (int32_t)LW_MAX(LW_MIN(together / pixels, 16), 1);
}

uint64_t lw_autoencoder_hash(const lw_autoencoder *a)
{
    const uint64_t part[2] = {lw_store_hash(a->encoder->store, LW_SLAB_PARAM),
                              lw_store_hash(a->decoder->store, LW_SLAB_PARAM)};
    return lw_hash64(part, sizeof part);
}

/* Is it the autoencoder that the network was trained with? */
static int check_coder(const lw_network *n, const char *spec, const lw_autoencoder *a)
{
    const json_t *said = json_object_get(n->config, key_name);
    const char *hash = json_string_value(json_object_get(said, "hash"));
    const char *where = n->dir ? n->dir : "this network";
    char now[24];
    snprintf(now, sizeof now, "%016llx", (unsigned long long)lw_autoencoder_hash(a));
    if (said && (a->channels != n->channels || n->image_size * a->shrink != lw_picture_side(n)))
        return lw_fail(LW_EFORMAT,
                       "%s: is in latents of %d channels, an autoencoder's that shrinks pictures "
                       "%d times; %s makes others",
                       where, (int)n->channels,
                       (int)(n->image_size ? lw_picture_side(n) / n->image_size : 0), spec);
    if (hash && !lw_str_eq(hash, now))
        return lw_fail(LW_EFORMAT,
                       "%s: the autoencoder %s has other weights than when this was trained", where,
                       spec);
    return 0;
}

/* Of config.json: is the autoencoder still where it was? */
static int check_place(const lw_network *n, const char *spec)
{
    const char *at = spec && lw_autoencoder_named(spec) ? strchr(spec, ':') + 1 : spec;
    const char *where = n->dir ? n->dir : "config.json";
    if (!spec)
        return lw_fail(LW_EFORMAT, "%s: '%s' names no autoencoder", where, key_name);
    if (!lw_path_exists(at))
        return lw_fail(
            LW_EIO,
            "%s: it is in latents of the autoencoder %s, which is not there; where it is "
            "now goes into '%s' of config.json",
            where, at, key_name);
    return 0;
}

int lw_latents_coder(const lw_network *n, const char *named, lw_autoencoder *out)
{
    const char *spec = named ? named : lw_latents_of(n->config);
    if (!named)
        LW_TRY(check_place(n, spec));
    LW_TRY(lw_autoencoder_open(spec, out));
    return check_coder(n, spec, out);
}

/* ---- pictures of latents ---------------------------------------------------------------------- */

struct lw_decoding {
    lw_autoencoder coder; /* without its encoder */
    lw_forward *decode;
};

void lw_decoding_free(lw_decoding **pp)
{
    lw_decoding *d = *pp;
    if (!d)
        return;
    lw_forward_free(&d->decode);
    lw_autoencoder_close(&d->coder);
    lw_free(pp);
}

static int build_decoder(lw_decoding *d, lw_device *dev, const lw_network *n)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const int32_t side = n->image_size;
    const int64_t picture = lw_picture_side(n);
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_val z = lw_input(
        g, "latent",
        lw_type_of(LW_F32, 4, lw_autoencoder_batch(picture * picture), side, side, n->channels));
    lw_network_append(d->coder.decoder, g, (lw_network_in){.x = z}, &taps);
    lw_graph_output_add(g, "y", lw_tap_find(&taps, "y"), LW_NOVAL);
    return lw_forward_of(dev, &g, NULL, LW_SLAB_PARAM, d->coder.decoder->name, &d->decode);
}

int lw_decoding_new(lw_device *dev, const lw_network *n, lw_decoding **out)
{
    if (!json_object_get(n->config, key_name))
        return 0;
    LW_CLEANUP(lw_decoding_free) lw_decoding *d = lw_calloc(1, sizeof *d);
    if (!d)
        return LW_ENOMEM;
    LW_TRY(lw_latents_coder(n, NULL, &d->coder));
    lw_network_close(&d->coder.encoder);
    LW_TRY(build_decoder(d, dev, n));
    *out = lw_steal(&d);
    return 0;
}

size_t lw_decoding_bytes(const lw_decoding *d)
{
    const lw_plan_info i = lw_forward_info(d->decode);
    return lw_store_bytes(d->coder.decoder->store) + i.frame_bytes + i.derived_bytes;
}

int lw_decoding_run(lw_decoding *d, const float *latents, int64_t n, float *pictures)
{
    const lw_feed feed[] = {{.name = "latent", .in = latents}, {.name = "y", .out = pictures}};
    return lw_forward_rows(d->decode, "decode", n, feed, LW_COUNT(feed), NULL);
}
