/* SPDX-License-Identifier: Apache-2.0 */
/* Noise schedules of folders: scheduler_config.json in diffusers' keys, or ours. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "session/session_flow.h"

/* Every parameter of diffusers' DDIMScheduler and DDPMScheduler (a test compares the list with
 * diffusers' own). */
static const lw_json_rule rules[] = {
    {"num_train_timesteps", LW_JSON_INT},
    {"beta_start", LW_JSON_NUMBER},
    {"beta_end", LW_JSON_NUMBER},
    {"beta_schedule", LW_JSON_STRING},
    {"trained_betas", LW_JSON_ARRAY | LW_JSON_NULL},
    {"variance_type", LW_JSON_STRING},
    {"clip_sample", LW_JSON_BOOL},
    {"set_alpha_to_one", LW_JSON_BOOL},
    {"steps_offset", LW_JSON_INT},
    {"prediction_type", LW_JSON_STRING},
    {"thresholding", LW_JSON_BOOL},
    {"dynamic_thresholding_ratio", LW_JSON_NUMBER}, /* of thresholding, like sample_max_value */
    {"clip_sample_range", LW_JSON_NUMBER},
    {"sample_max_value", LW_JSON_NUMBER},
    {"timestep_spacing", LW_JSON_STRING},
    {"rescale_betas_zero_snr", LW_JSON_BOOL},
    {NULL, 0},
};

typedef struct reading {
    const json_t *j;
    const char *where;
} reading;

/* Which of the words (NULL ends them) a key holds; absent: *out as it is. */
static int choose(const reading *r, const char *key, const char *const *words, int *out)
{
    const char *have = words[*out];
    LW_CLEANUP(lw_str_clear) lw_str known = {0};
    LW_TRY(lw_json_opt_str(r->j, r->where, key, &have));
    for (int i = 0; words[i]; i++) {
        if (lw_str_eq(words[i], have)) {
            *out = i;
            return 0;
        }
        lw_str_addf(&known, "%s%s", i ? ", " : "", words[i]);
    }
    return lw_fail(LW_EUNSUPPORTED, "%s: '%s' is %s; known here: %s", r->where, key, have,
                   lw_str_c(&known));
}

static int opt_in(const reading *r, const char *key, double lo, double hi, double *out)
{
    double v = *out;
    LW_TRY(lw_json_opt_f64(r->j, r->where, key, &v));
    if (!(v > lo && v < hi))
        return lw_fail(LW_EFORMAT, "%s: '%s' is %g, must lie between %g and %g", r->where, key, v,
                       lo, hi);
    *out = v;
    return 0;
}

/* ---- betas ------------------------------------------------------------------------------ */

static int read_trained(const reading *r, const json_t *betas, lw_diffusion *d)
{
    if (json_array_size(betas) != (size_t)d->timesteps)
        return lw_fail(LW_EFORMAT, "%s: 'trained_betas' has %zu numbers, num_train_timesteps is %d",
                       r->where, json_array_size(betas), (int)d->timesteps);
    double product = 1.0;
    for (int32_t t = 0; t < d->timesteps; t++) {
        const json_t *v = json_array_get(betas, (size_t)t);
        d->beta[t] = json_number_value(v);
        if (!json_is_number(v) || !(d->beta[t] > 0.0 && d->beta[t] < 1.0))
            return lw_fail(LW_EFORMAT, "%s: 'trained_betas'[%d] must be a number in (0, 1)",
                           r->where, (int)t);
        d->alpha_bar[t] = product *= 1.0 - d->beta[t];
    }
    return 0;
}

/* Lin et al. 2024, algorithm 1: sqrt(alpha_bar) shifted and scaled so that it ends in 0. */
static void end_in_noise(lw_diffusion *d)
{
    double first = sqrt(d->alpha_bar[0]), last = sqrt(d->alpha_bar[d->timesteps - 1]), before = 1.0;
    for (int32_t t = 0; t < d->timesteps; t++) {
        double root = (sqrt(d->alpha_bar[t]) - last) * (first / (first - last));
        d->alpha_bar[t] = root * root;
        d->beta[t] = 1.0 - d->alpha_bar[t] / before;
        before = d->alpha_bar[t];
    }
}

static int read_betas(const reading *r, lw_diffusion *d)
{
    static const char *const schedules[] = LW_BETA_NAMES;
    const json_t *trained = json_object_get(r->j, "trained_betas");
    double lo = LW_BETA_FIRST, hi = LW_BETA_LAST;
    int schedule = 0;
    bool rescale = false;
    LW_TRY(opt_in(r, "beta_start", 0.0, 1.0, &lo));
    LW_TRY(opt_in(r, "beta_end", 0.0, 1.0, &hi));
    LW_TRY(choose(r, "beta_schedule", schedules, &schedule));
    LW_TRY(lw_json_opt_bool(r->j, r->where, "rescale_betas_zero_snr", &rescale));
    lw_diffusion_betas(d, (lw_beta_schedule)schedule, lo, hi);
    if (json_is_array(trained))
        LW_TRY(read_trained(r, trained, d));
    if (!rescale)
        return 0;
    if (d->prediction == LW_PREDICT_EPSILON || d->timesteps < 2)
        return lw_fail(
            LW_EUNSUPPORTED,
            "%s: 'rescale_betas_zero_snr' is true: at the last time nothing follows from "
            "noise, so 'prediction_type' must not be epsilon",
            r->where);
    end_in_noise(d);
    return 0;
}

/* ---- everything else -------------------------------------------------------------------- */

static int read_clipping(const reading *r, lw_diffusion *d)
{
    bool clip = true, threshold = false;
    double range = 1.0;
    LW_TRY(lw_json_opt_bool(r->j, r->where, "clip_sample", &clip));
    LW_TRY(lw_json_opt_bool(r->j, r->where, "thresholding", &threshold));
    LW_TRY(opt_in(r, "clip_sample_range", 0.0, 1e9, &range));
    if (threshold)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'thresholding' is true, only false is built here",
                       r->where);
    d->ddim_clip = d->ancestral_clip = clip ? range : (double)INFINITY;
    return 0;
}

/* fixed_small_log is fixed_small by another way. fixed_large_log is refused: what diffusers makes
 * of it is the root of a negative number. */
static int read_variance(const reading *r, lw_diffusion *d)
{
    static const char *const words[] = {"fixed_small", "fixed_small_log", "fixed_large", NULL};
    int variance = 0;
    LW_TRY(choose(r, "variance_type", words, &variance));
    d->small_variance = variance < 2;
    return 0;
}

static int read_words(const reading *r, lw_diffusion *d)
{
    static const char *const classes[] = {"DDPMScheduler", "DDIMScheduler",
                                          "FlowMatchEulerDiscreteScheduler",
                                          "FlowMatchHeunDiscreteScheduler", NULL},
                             *const predictions[] = LW_PREDICTION_NAMES,
                             *const spacings[] = {"leading", "trailing", "linspace", NULL};
    int word = 0;
    LW_TRY(choose(r, "_class_name", classes, &word));
    word = 0;
    LW_TRY(choose(r, "prediction_type", predictions, &word));
    d->prediction = (lw_prediction)word;
    word = 0;
    LW_TRY(choose(r, "timestep_spacing", spacings, &word));
    d->spacing = (lw_spacing)word;
    d->spaced = json_object_get(r->j, "timestep_spacing") != NULL;
    return read_variance(r, d);
}

int lw_diffusion_from_json(const json_t *scheduler, const char *where, lw_diffusion *out)
{
    const reading r = {scheduler, where};
    const char *class_name;
    bool to_one = true;
    int32_t n = 1000, offset = 0;
    LW_TRY(lw_json_get_str(scheduler, where, "_class_name", &class_name));
    if (lw_flow_is_scheduler(class_name))
        return lw_flow_from_json(scheduler, where, out);
    LW_TRY(lw_json_check_fields(scheduler, where, rules, "leeway_"));
    if (json_object_get(scheduler, "num_train_timesteps"))
        LW_TRY(
            lw_json_get_i32_in(scheduler, where, "num_train_timesteps", 1, LW_DDPM_MAX_STEPS, &n));
    LW_TRY(lw_diffusion_init(out, n));
    LW_TRY(read_words(&r, out));
    LW_TRY(read_betas(&r, out));
    LW_TRY(read_clipping(&r, out));
    LW_TRY(lw_json_opt_bool(scheduler, where, "set_alpha_to_one", &to_one));
    if (json_object_get(scheduler, "steps_offset"))
        LW_TRY(lw_json_get_i32_in(scheduler, where, "steps_offset", 0, n - 1, &offset));
    out->steps_offset = offset;
    out->ddim_end = to_one ? 1.0 : out->alpha_bar[0];
    return 0;
}

/* Without timestep_spacing: each scheduler has the times that are its own default, leading in DDPM and DDIM,
 * linspace in DPM-Solver. */
json_t *lw_diffusion_to_json(const lw_noise_schedule *s)
{
    static const char *const betas[] = LW_BETA_NAMES, *const predictions[] = LW_PREDICTION_NAMES;
    if (s->prediction == LW_PREDICT_FLOW)
        return lw_flow_to_json(s);
    return json_pack("{s:s, s:i, s:f, s:f, s:s, s:n, s:s, s:s, s:b, s:f, s:b, s:i}", "_class_name",
                     "DDPMScheduler", "num_train_timesteps", (int)s->timesteps, "beta_start",
                     LW_BETA_FIRST, "beta_end", LW_BETA_LAST, "beta_schedule", betas[s->beta],
                     "trained_betas", "prediction_type", predictions[s->prediction],
                     "variance_type", "fixed_large", "clip_sample", 1, "clip_sample_range", 1.0,
                     "thresholding", 0, "steps_offset", 0);
}

int lw_diffusion_note(const lw_noise_schedule *s, bool alone, json_t *config)
{
    static const char *const betas[] = LW_BETA_NAMES, *const predictions[] = LW_PREDICTION_NAMES;
    int rc = json_object_set_new(config, "leeway_timesteps", json_integer(s->timesteps));
    const bool flow = s->prediction == LW_PREDICT_FLOW;
    if (alone && flow && s->shift > 0.0 && s->shift != 1.0)
        rc |= json_object_set_new(config, "leeway_shift", json_real(s->shift));
    if (alone && !flow && s->beta != LW_BETA_LINEAR)
        rc |= json_object_set_new(config, "leeway_beta_schedule", json_string(betas[s->beta]));
    if (alone && !flow && s->prediction != LW_PREDICT_EPSILON)
        rc |= json_object_set_new(config, "leeway_prediction",
                                  json_string(predictions[s->prediction]));
    return rc ? lw_fail(LW_ENOMEM, "out of memory for config.json") : 0;
}

/* ---- folders ---------------------------------------------------------------------------- */

/* The scheduler that goes with a model folder, or "" in *path. */
static const char *find_scheduler(const char *dir, lw_str *path)
{
    lw_path_join(path, dir, "scheduler_config.json");
    if (lw_path_exists(lw_str_c(path)))
        return lw_str_c(path);
    lw_path_join(path, dir, "../model_index.json");
    if (lw_path_exists(lw_str_c(path))) {
        lw_path_join(path, dir, "../scheduler/scheduler_config.json");
        if (lw_path_exists(lw_str_c(path)))
            return lw_str_c(path);
    }
    path->len = 0;
    return NULL;
}

/* As lw_diffusion_note wrote it. */
static int read_ours(const json_t *config, const char *where, int32_t timesteps, lw_diffusion *out)
{
    static const char *const betas[] = LW_BETA_NAMES, *const predictions[] = LW_PREDICTION_NAMES;
    const reading r = {config, where};
    int beta = 0, prediction = 0;
    double shift = 1.0;
    if (lw_str_eq(json_string_value(json_object_get(config, "leeway_method")), "flow")) {
        LW_TRY(opt_in(&r, "leeway_shift", 0.0, LW_FLOW_MAX_SHIFT, &shift));
        return lw_diffusion_choose(out, &(lw_noise_schedule){.timesteps = timesteps,
                                                             .prediction = LW_PREDICT_FLOW,
                                                             .shift = shift});
    }
    LW_TRY(choose(&r, "leeway_beta_schedule", betas, &beta));
    LW_TRY(choose(&r, "leeway_prediction", predictions, &prediction));
    LW_TRY(lw_diffusion_choose(out, &(lw_noise_schedule){.timesteps = timesteps,
                                                         .beta = (lw_beta_schedule)beta,
                                                         .prediction = (lw_prediction)prediction}));
    if (json_object_get(config, "leeway_condition"))
        lw_diffusion_condition(out);
    return 0;
}

static int find(const char *dir, const json_t *config, lw_diffusion *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, own = {0};
    LW_CLEANUP(lw_json_drop) json_t *scheduler = NULL;
    const char *file = find_scheduler(dir, &path);
    int32_t n = 1000;
    lw_path_join(&own, dir, "config.json");
    if (json_object_get(config, "leeway_timesteps"))
        LW_TRY(lw_json_get_i32_in(config, lw_str_c(&own), "leeway_timesteps", 1, LW_DDPM_MAX_STEPS,
                                  &n));
    if (!file)
        return read_ours(config, lw_str_c(&own), n, out);
    LW_TRY(lw_json_load(file, &scheduler));
    LW_TRY(lw_diffusion_from_json(scheduler, file, out));
    if (json_object_get(config, "leeway_timesteps") && n != out->timesteps)
        return lw_fail(LW_EFORMAT,
                       "%s: 'num_train_timesteps' is %d, but 'leeway_timesteps' of %s %d", file,
                       (int)out->timesteps, lw_str_c(&own), (int)n);
    return 0;
}

int lw_diffusion_find(const char *dir, const json_t *config, lw_diffusion *out)
{
    LW_TRY(find(dir, config, out));
    if (json_object_get(config, "leeway_latents"))
        lw_diffusion_unbound(out);
    return 0;
}
