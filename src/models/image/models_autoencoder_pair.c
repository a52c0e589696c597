/* SPDX-License-Identifier: Apache-2.0 */
/* Finding both halves of an autoencoder. */
#include <stdio.h>
#include <string.h>

#include "models/models.h"

static const char *const words[] = {"taesd:", "taef1:", "taef2:", "sd-vae:"};

/* Behind the word, and the word without its colon in buf ("": none). */
static const char *without_word(const char *spec, char buf[8])
{
    buf[0] = '\0';
    for (size_t i = 0; i < LW_COUNT(words); i++)
        if (lw_str_starts(spec, words[i])) {
            snprintf(buf, 8, "%.*s", (int)strlen(words[i]) - 1, words[i]);
            return spec + strlen(words[i]);
        }
    return spec;
}

bool lw_autoencoder_named(const char *spec)
{
    char word[8];
    return without_word(spec, word) != spec;
}

static void set(lw_str *s, const char *text, size_t n)
{
    lw_str_clear(s);
    lw_str_add_n(s, text, n);
}

/* The other of two files: the last `from` of the file's name becomes `to`. */
static bool swap_half(const char *path, const char *from, const char *to, lw_str *out)
{
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, from);
    if (!at)
        return false;
    set(out, path, (size_t)(at - path));
    lw_str_add(out, to);
    lw_str_add(out, at + strlen(from));
    return lw_path_exists(lw_str_c(out));
}

/* A folder that holds an encoder and a decoder, each in its file. */
static bool find_files(const char *dir, const char *word, lw_str *encoder, lw_str *decoder)
{
    static const char *const ends[] = {"encoder.safetensors", "encoder.pth"};
    for (size_t i = 0; i < 2 * LW_COUNT(ends); i++) {
        char name[64];
        const bool worded = i < LW_COUNT(ends) && word[0];
        snprintf(name, sizeof name, "%s%s%s", worded ? word : "", worded ? "_" : "",
                 ends[i % LW_COUNT(ends)]);
        if (lw_path_exists(lw_path_join(encoder, dir, name)))
            return swap_half(lw_str_c(encoder), "encoder", "decoder", decoder);
    }
    return false;
}

static void find_halves(const char *source, const char *word, lw_str *encoder, lw_str *decoder)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    if (lw_path_is_dir(source)) {
        if (find_files(source, word, encoder, decoder))
            return;
        if (lw_path_is_dir(lw_path_join(&dir, source, "vae")))
            source = lw_str_c(&dir);
    } else if (swap_half(source, "encoder", "decoder", decoder)) {
        set(encoder, source, strlen(source));
        return;
    } else if (swap_half(source, "decoder", "encoder", encoder)) {
        set(decoder, source, strlen(source));
        return;
    }
    set(encoder, source, strlen(source));
    set(decoder, source, strlen(source));
}

static int open_half(const char *path, bool decoder, lw_network **out)
{
    LW_CLEANUP(lw_str_clear) lw_str spec = {0};
    lw_str_addf(&spec, "%s%s", decoder ? "decoder:" : "", path);
    return spec.failed ? LW_ENOMEM : lw_network_open(lw_str_c(&spec), true, out);
}

/* Of an encoder that makes latents, and only of one. */
static int channels_of_latent(const lw_network *n, int32_t *out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const int32_t side = LW_MAX(n->multiple, 1);
    lw_taps taps;
    LW_TRY(lw_graph_new(&g));
    lw_network_append(
        n, g,
        (lw_network_in){.x = lw_input(g, "x", lw_type_of(LW_F32, 4, 1, side, side, n->channels))},
        &taps);
    lw_val latent = lw_tap_find(&taps, "latent");
    *out = lw_val_ok(latent) ? lw_type_last(lw_val_type(g, latent)) : 0;
    return 0;
}

static int check(const lw_autoencoder *a, const char *spec, int32_t latent)
{
    if (latent != a->decoder->channels)
        return lw_fail(LW_EFORMAT,
                       "%s: its encoder makes latents of %d channels, its decoder takes %d", spec,
                       (int)latent, (int)a->decoder->channels);
    if (a->encoder->channels != 3 || a->decoder->outputs != 3)
        return lw_fail(LW_EUNSUPPORTED, "%s: an autoencoder of pictures of %d channels, not of RGB",
                       spec, (int)a->encoder->channels);
    return 0;
}

int lw_autoencoder_open(const char *spec, lw_autoencoder *out)
{
    LW_CLEANUP(lw_str_clear) lw_str encoder = {0}, decoder = {0};
    LW_CLEANUP(lw_autoencoder_close) lw_autoencoder a = {0};
    char word[8];
    int32_t latent = 0;
    const char *source = without_word(spec, word);
    find_halves(source, word, &encoder, &decoder);
    if (encoder.failed || decoder.failed)
        return LW_ENOMEM;
    LW_TRY(open_half(lw_str_c(&encoder), false, &a.encoder));
    if (!a.encoder->generator)
        LW_TRY(channels_of_latent(a.encoder, &latent));
    if (latent == 0)
        return lw_fail(LW_EFORMAT, "%s: %s is no autoencoder: it makes no latents", source,
                       a.encoder->name);
    LW_TRY(open_half(lw_str_c(&decoder), true, &a.decoder));
    LW_TRY(check(&a, source, latent));
    a.shrink = a.encoder->multiple;
    a.channels = latent;
    *out = a;
    a = (lw_autoencoder){0};
    return 0;
}

void lw_autoencoder_close(lw_autoencoder *a)
{
    lw_network_close(&a->encoder);
    lw_network_close(&a->decoder);
}
