/* SPDX-License-Identifier: Apache-2.0 */
/* Where the keys of a step come from: one source for each encoder of --encoder A,B. */
#include <string.h>

#include "jobs/drift/drift_loss.h"
#include "jobs/drift/drift_run.h"

/* The words of --feature-keys for source i: "2.s1.mean" is the second's, a word without a number all's. */
static int keys_for(const char *list, int32_t i, lw_str *out)
{
    size_t n;
    for (const char *at; (at = lw_str_word(&list, ',', &n));) {
        const bool numbered = n > 2 && at[1] == '.' && at[0] >= '1' && at[0] <= '9';
        if (numbered && at[0] - '1' == i)
            lw_str_addf(out, "%s%.*s", out->len ? "," : "", (int)n - 2, at + 2);
        else if (!numbered)
            lw_str_addf(out, "%s%.*s", out->len ? "," : "", (int)n, at);
    }
    return out->failed ? LW_ENOMEM : 0;
}

static bool has_number(const char *list, int32_t most)
{
    for (const char *at = list, *comma; at; at = comma ? comma + 1 : NULL) {
        if (*at && at[1] == '.' && *at > '0' + most && *at <= '9')
            return true;
        comma = strchr(at, ',');
    }
    return false;
}

/* Of one source all words are meant as they are. */
static int parse_keys(drift_run *r, lw_drift_source *s, int32_t side, int32_t channels)
{
    LW_CLEANUP(lw_str_clear) lw_str own = {0};
    lw_drift_config c = r->c;
    const int32_t i = (int32_t)(s - r->source);
    if (r->sources > 1 && c.feature_keys) {
        LW_TRY(keys_for(c.feature_keys, i, &own));
        if (own.len == 0)
            return lw_fail(LW_EUSAGE, "--feature-keys %s: none is for %s", c.feature_keys, s->spec);
        c.feature_keys = lw_str_c(&own);
    }
    return lw_drift_keys(&c, s->encoder, side, channels, &s->keys);
}

/* The half of the autoencoder that gradients go through. */
static int open_decoder(drift_run *r)
{
    const lw_drift_config *c = &r->c;
    LW_CLEANUP(lw_autoencoder_close) lw_autoencoder coder = {0};
    if (c->feature_space == LW_SPACE_LATENT)
        return 0;
    if (!c->pictures.latents)
        return lw_fail(LW_EUSAGE, "--feature-space: only with --latents is there another");
    LW_TRY(lw_autoencoder_open(c->pictures.latents, &coder));
    r->decoder = lw_steal(&coder.decoder);
    return 0;
}

/* Statistics of the picture itself are the same for every encoder: a key counts once. */
static bool is_known(const drift_run *r, const lw_drift_source *s, const lw_feature_key *k)
{
    for (const lw_drift_source *other = r->source; other < s; other++)
        for (int32_t i = 0; k->tap < 0 && i < other->keys.n && other->decoder == s->decoder; i++)
            if (other->keys.key[i].tap < 0 && lw_str_eq(other->keys.key[i].name, k->name))
                return true;
    return false;
}

static void drop_known(const drift_run *r, lw_drift_source *s)
{
    int32_t n = 0;
    for (int32_t k = 0; k < s->keys.n; k++)
        if (!is_known(r, s, &s->keys.key[k]))
            s->keys.key[n++] = s->keys.key[k];
    s->keys.n = n;
}

/* Appends the keys of a source to those of the step. */
static int add_keys(drift_run *r, lw_drift_source *s, bool several)
{
    s->first = r->keys.n;
    if (s->keys.n == 0)
        return lw_fail(LW_EUSAGE, "--encoder: %s adds no feature key to those before it", s->spec);
    if (r->keys.n + s->keys.n > LW_MAX_FEATURE_KEYS)
        return lw_fail(LW_EUSAGE,
                       "--encoder: more than %d feature keys together; name fewer by "
                       "--feature-keys",
                       (int)LW_MAX_FEATURE_KEYS);
    for (int32_t k = 0; k < s->keys.n; k++) {
        lw_feature_key *to = &r->keys.key[r->keys.n++];
        *to = s->keys.key[k];
        if (several)
            snprintf(to->name, sizeof to->name, "%c.%.23s", (char)('1' + (s - r->source)),
                     s->keys.key[k].name);
    }
    return 0;
}

static int open_source(drift_run *r, lw_drift_source *s, bool several)
{
    const lw_drift_config *c = &r->c;
    const lw_network *made = &r->g.network;
    char fit[64];
    const int32_t side = s->decoder ? lw_picture_side(made) : made->image_size,
                  channels = s->decoder ? lw_picture_channels(made) : made->channels;
    LW_TRY(lw_encoder_open(s->spec, &s->encoder));
    LW_TRY(lw_latents_agree(s->encoder, s->spec, s->decoder ? NULL : made->config));
    LW_TRY(lw_encoder_fit(s->encoder, c->encoder_size, c->encoder_resize));
    if (*lw_encoder_fit_text(s->encoder, side, side, fit))
        lw_observe_say(r->g.p.obs, "for the encoder%s%s pictures are %s", several ? " " : "",
                       several ? s->spec : "", fit);
    LW_TRY(parse_keys(r, s, side, channels));
    drop_known(r, s);
    return add_keys(r, s, several);
}

/* Is source i one of decoded pictures? */
static bool sees_pictures(const drift_run *r, int32_t i)
{
    return r->c.feature_space == LW_SPACE_PIXEL ||
           (r->c.feature_space == LW_SPACE_BOTH && i + 1 == r->sources);
}

const char *lw_drift_sources_measured(const drift_run *r)
{
    for (int32_t i = 0; i < r->sources; i++)
        if (r->source[i].decoder || !r->c.pictures.latents)
            return r->source[i].spec;
    return NULL;
}

int lw_drift_sources_open(drift_run *r)
{
    char *spec[LW_ENCODERS_MOST] = {0};
    LW_TRY(open_decoder(r));
    LW_TRY(lw_encoder_specs(r->c.encoder ? r->c.encoder : "none", spec, &r->sources));
    for (int32_t i = 0; i < r->sources; i++) {
        r->source[i].spec = spec[i];
        r->source[i].decoder = sees_pictures(r, i) ? r->decoder : NULL;
    }
    if (r->c.feature_space == LW_SPACE_BOTH && r->sources < 2)
        return lw_fail(LW_EUSAGE, "--feature-space both: takes two encoders or more, --encoder "
                                  "A,B: the last sees pictures, the others latents (none: as "
                                  "they are)");
    if (r->c.feature_keys && r->sources > 1 && has_number(r->c.feature_keys, r->sources))
        return lw_fail(LW_EUSAGE, "--feature-keys %s: there are %d encoders", r->c.feature_keys,
                       (int)r->sources);
    for (int32_t i = 0; i < r->sources; i++)
        LW_TRY(open_source(r, &r->source[i], r->sources > 1));
    return 0;
}

void lw_drift_sources_close(drift_run *r)
{
    for (int32_t i = 0; i < r->sources; i++) {
        lw_real_features_free(&r->source[i].real);
        lw_network_close(&r->source[i].encoder);
        lw_free(&r->source[i].spec);
    }
    lw_network_close(&r->decoder);
    lw_str_clear(&r->features_note);
}

/* ---- features of real pictures --------------------------------------------------------------- */

lw_drift_real_cost lw_drift_real_get_cost(const drift_run *r)
{
    const int64_t groups = r->draws.groups;
    lw_drift_real_cost all = {.kept = true};
    for (int32_t i = 0; i < r->sources; i++) {
        const lw_real_features *real = r->source[i].real;
        const lw_real_features_cost p = lw_real_features_get_cost(real, groups * r->np),
                                    u = lw_real_features_get_cost(real, groups * r->nu);
        all.kept &= p.kept;
        all.held += p.held;
        all.flops += p.kept ? 0.0 : p.flops + u.flops;
    }
    return all;
}

/* Kept features are memory, others are time: both are part of the prediction. */
static int note_real(drift_run *r, lw_train_job *job)
{
    const lw_drift_real_cost c = lw_drift_real_get_cost(r);
    char note[LW_REAL_FEATURES_NOTE];
    for (int32_t i = 0; i < r->sources; i++) {
        lw_real_features_note(r->source[i].real, note);
        lw_str_addf(&r->features_note, "%s%s%s%s", i ? "; " : "",
                    r->sources > 1 ? r->source[i].spec : "", r->sources > 1 ? ": " : "", note);
    }
    if (!c.kept && lw_drift_real_type(r) == LW_F32)
        lw_str_add(&r->features_note, ", half of it with --feature-type bf16");
    if (r->features_note.failed)
        return LW_ENOMEM;
    job->note = lw_str_c(&r->features_note);
    job->kept_bytes += c.held;
    job->side_flops = c.flops;
    return 0;
}

static const lw_store *weights_of(const lw_network *n)
{
    return n ? n->store : NULL;
}

int lw_drift_sources_real(drift_run *r, lw_train_job *job)
{
    const lw_drift_config *c = &r->c;
    lw_real_features_opts o = {.cache_bytes = (int64_t)c->feature_cache_mb << 20,
                               .disk_bytes = (int64_t)c->feature_disk_mb << 20,
                               .conv = c->train.conv,
                               .precision = c->train.precision,
                               .type = lw_drift_real_type(r),
                               .flip = r->draws.flip};
    lw_train_freezes(job, weights_of(r->decoder));
    for (int32_t i = 0; i < r->sources; i++)
        lw_train_freezes(job, weights_of(r->source[i].encoder));
    if (lw_drift_of_clips(r)) /* are part of the step */
        return 0;
    for (int32_t i = 0; i < r->sources; i++) {
        lw_drift_source *s = &r->source[i];
        o.decoder = s->decoder;
        LW_TRY(lw_real_features_new(r->g.p.dev, r->g.p.data, s->encoder, &s->keys, &o, &s->real));
        const lw_real_features_cost cost = lw_real_features_get_cost(s->real, 0);
        o.cache_bytes -= cost.kept ? (int64_t)cost.bytes : 0;
    }
    return note_real(r, job);
}

int lw_drift_sources_fill(drift_run *r)
{
    if (lw_drift_of_clips(r))
        return 0;
    lw_observe_say(r->g.p.obs, "real features: %s", lw_str_c(&r->features_note));
    for (int32_t i = 0; i < r->sources; i++)
        LW_TRY(lw_real_features_fill(r->source[i].real, r->g.p.obs));
    return 0;
}

int lw_drift_sources_fetch(drift_run *r, const int64_t *rows, int64_t n, void *const *dst)
{
    for (int32_t i = 0; i < r->sources; i++)
        LW_TRY(lw_real_features_fetch(r->source[i].real, rows, n, dst + r->source[i].first));
    return 0;
}
