/* SPDX-License-Identifier: Apache-2.0 */
/* Rectified flow: its times, moves and diffusers' name for it. */
#include "session/session_flow.h"

#include <math.h>

#include "base/base.h"

/* ---- times ------------------------------------------------------------------------------ */

double lw_flow_noise(const lw_diffusion *d, double u)
{
    return d->shift * u / (1.0 + (d->shift - 1.0) * u);
}

/* z with P(normal < z) = p, by halving: a table of some thousands is made once. */
static double normal_quantile(double p)
{
    double low = -10.0, high = 10.0;
    for (int i = 0; i < 60; i++) {
        double z = 0.5 * (low + high);
        *(0.5 * erfc(-z / sqrt(2.0)) < p ? &low : &high) = z;
    }
    return 0.5 * (low + high);
}

double lw_flow_time(const lw_diffusion *d, int32_t k, double mean, double std)
{
    double u = (k + 1.0) / d->timesteps;
    if (std > 0.0)
        u = 1.0 / (1.0 + exp(-mean - std * normal_quantile((k + 0.5) / d->timesteps)));
    return lw_flow_noise(d, u);
}

int lw_flow_check_steps(const lw_diffusion *d, int32_t n, const char *what)
{
    if (n < 1 || n > d->timesteps)
        return lw_fail(LW_EUSAGE, "%s %d: this rectified flow is sampled in 1 to %d", what, (int)n,
                       (int)d->timesteps);
    if (d->spacing == LW_SPACING_LEADING)
        return lw_fail(LW_EUSAGE, "timestep spacing leading: a rectified flow begins where there "
                                  "is noise alone: take trailing or linspace");
    return 0;
}

/* The share of noise before step j of n; 0 behind the last. */
static double noise_at(const lw_diffusion *d, int32_t n, int32_t j)
{
    if (j >= n)
        return 0.0;
    if (d->spacing == LW_SPACING_LINSPACE && n > 1) { /* diffusers shifts its lower end twice */
        double last = lw_flow_noise(d, 1.0 / d->timesteps);
        return lw_flow_noise(d, 1.0 + (last - 1.0) * j / (n - 1));
    }
    return lw_flow_noise(d, 1.0 - (double)j / n);
}

/* ---- moves ------------------------------------------------------------------------------ */

static lw_diffusion_move move_at(const lw_diffusion *d, double noise, bool last)
{
    return (lw_diffusion_move){.t = noise * d->timesteps,
                               .prediction = LW_PREDICT_FLOW,
                               .by = {.a = 1.0 - noise,
                                      .s = noise,
                                      .clip = (double)INFINITY,
                                      .limit = last ? d->limit : (double)INFINITY}};
}

/* Along the line through picture and noise that the answer implies. */
static lw_diffusion_move euler(const lw_diffusion *d, int32_t n, int32_t j, bool last)
{
    lw_diffusion_move m = move_at(d, noise_at(d, n, j), last);
    double to = noise_at(d, n, j + 1);
    m.by.c0 = 1.0 - to;
    m.by.c1 = to;
    return m;
}

lw_diffusion_move lw_euler_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    return euler(d, n, k, k + 1 == n);
}

/* x + h (v + v') / 2 from where Euler's step led, x + h v: that and h / 2 (v' - v), v' = noise - picture. */
lw_diffusion_move lw_heun_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    const int32_t steps = (n + 1) / 2, j = k / 2;
    const bool last = k + 1 == n;
    if (k % 2 == 0)
        return euler(d, steps, j, last);
    double to = noise_at(d, steps, j + 1), half = 0.5 * (to - noise_at(d, steps, j));
    lw_diffusion_move m = move_at(d, to, last);
    m.by.c0 = m.by.c2 = -half;
    m.by.c1 = half;
    m.by.c3 = 1.0;
    return m;
}

lw_diffusion_move lw_velocity_move(const lw_diffusion_move *m)
{
    lw_diffusion_move to = *m;
    to.by.c0 = -1.0;
    to.by.c1 = 1.0;
    to.by.c2 = to.by.c3 = 0.0;
    to.by.limit = (double)INFINITY;
    return to;
}

lw_diffusion_move lw_plain_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    return (lw_diffusion_flows(d) ? lw_euler_move : lw_ddim_move)(d, n, k);
}

/* ---- as diffusers writes it ------------------------------------------------------------- */

/* Every parameter of both classes (a test compares the list with diffusers' own). */
static const lw_json_rule rules[] = {
    {"num_train_timesteps", LW_JSON_INT},
    {"shift", LW_JSON_NUMBER},
    {"use_dynamic_shifting", LW_JSON_BOOL},
    {"base_shift", LW_JSON_NUMBER | LW_JSON_NULL}, /* of dynamic shifting, as the next three */
    {"max_shift", LW_JSON_NUMBER | LW_JSON_NULL},
    {"base_image_seq_len", LW_JSON_INT | LW_JSON_NULL},
    {"max_image_seq_len", LW_JSON_INT | LW_JSON_NULL},
    {"time_shift_type", LW_JSON_STRING},
    {"invert_sigmas", LW_JSON_BOOL},
    {"shift_terminal", LW_JSON_NUMBER | LW_JSON_NULL},
    {"use_karras_sigmas", LW_JSON_BOOL | LW_JSON_NULL},
    {"use_exponential_sigmas", LW_JSON_BOOL | LW_JSON_NULL},
    {"use_beta_sigmas", LW_JSON_BOOL | LW_JSON_NULL},
    {"stochastic_sampling", LW_JSON_BOOL},
    {NULL, 0},
};

bool lw_flow_is_scheduler(const char *class_name)
{
    return lw_str_eq(class_name, "FlowMatchEulerDiscreteScheduler") ||
           lw_str_eq(class_name, "FlowMatchHeunDiscreteScheduler");
}

/* Other ways to place the times, and noise on the way. */
static int refuse_others(const json_t *scheduler, const char *where)
{
    static const char *const keys[] = {"use_dynamic_shifting", "invert_sigmas",
                                       "use_karras_sigmas",    "use_exponential_sigmas",
                                       "use_beta_sigmas",      "stochastic_sampling"};
    const json_t *terminal = json_object_get(scheduler, "shift_terminal");
    for (size_t i = 0; i < LW_COUNT(keys); i++)
        if (json_is_true(json_object_get(scheduler, keys[i])))
            return lw_fail(LW_EUNSUPPORTED, "%s: '%s' is true, only false is built here", where,
                           keys[i]);
    if (json_is_number(terminal) && json_number_value(terminal) != 0.0)
        return lw_fail(LW_EUNSUPPORTED, "%s: 'shift_terminal' is %g, only null is built here",
                       where, json_number_value(terminal));
    return 0;
}

int lw_flow_from_json(const json_t *scheduler, const char *where, lw_diffusion *out)
{
    lw_noise_schedule s = {.timesteps = 1000, .prediction = LW_PREDICT_FLOW, .shift = 1.0};
    LW_TRY(lw_json_check_fields(scheduler, where, rules, "leeway_"));
    LW_TRY(refuse_others(scheduler, where));
    if (json_object_get(scheduler, "num_train_timesteps"))
        LW_TRY(lw_json_get_i32_in(scheduler, where, "num_train_timesteps", 1, LW_DDPM_MAX_STEPS,
                                  &s.timesteps));
    LW_TRY(lw_json_opt_f64(scheduler, where, "shift", &s.shift));
    if (!(s.shift > 0.0 && s.shift <= LW_FLOW_MAX_SHIFT))
        return lw_fail(LW_EFORMAT, "%s: 'shift' is %g, must lie above 0, at most %g", where,
                       s.shift, LW_FLOW_MAX_SHIFT);
    return lw_diffusion_choose(out, &s);
}

json_t *lw_flow_to_json(const lw_noise_schedule *s)
{
    return json_pack("{s:s, s:i, s:f}", "_class_name", "FlowMatchEulerDiscreteScheduler",
                     "num_train_timesteps", (int)s->timesteps, "shift",
                     s->shift > 0.0 ? s->shift : 1.0);
}
