/* SPDX-License-Identifier: Apache-2.0 */
/* Noise schedule and reverse moves. */
#include "session/session_diffusion.h"

#include <math.h>

#include "base/base.h"
#include "session/session_flow.h"

static double cosine_signal(double t)
{
    double c = cos((t + 0.008) / 1.008 * acos(-1.0) / 2.0);
    return c * c;
}

/* Of the time t of n. */
static double beta_of(lw_beta_schedule beta, int32_t t, int32_t n, double lo, double hi)
{
    double x = n > 1 ? (double)t / (n - 1) : 0.0, root = sqrt(lo) + (sqrt(hi) - sqrt(lo)) * x;
    switch (beta) {
    case LW_BETA_LINEAR:
        break;
    case LW_BETA_SCALED_LINEAR:
        return root * root;
    case LW_BETA_SQUAREDCOS:
        return fmin(1.0 - cosine_signal((t + 1.0) / n) / cosine_signal((double)t / n), 0.999);
    case LW_BETA_SIGMOID:
        return lo + (hi - lo) / (1.0 + exp(6.0 - 12.0 * x));
    }
    return lo + (hi - lo) * x;
}

void lw_diffusion_betas(lw_diffusion *d, lw_beta_schedule beta, double lo, double hi)
{
    double product = 1.0;
    for (int32_t t = 0; t < d->timesteps; t++) {
        d->beta[t] = beta_of(beta, t, d->timesteps, lo, hi);
        d->alpha_bar[t] = product *= 1.0 - d->beta[t];
    }
}

int lw_diffusion_init(lw_diffusion *d, int32_t timesteps)
{
    if (timesteps < 1 || timesteps > LW_DDPM_MAX_STEPS)
        return lw_fail(LW_EUSAGE, "%d diffusion timesteps: 1 to %d are possible", timesteps,
                       LW_DDPM_MAX_STEPS);
    d->timesteps = timesteps;
    lw_diffusion_betas(d, LW_BETA_LINEAR, LW_BETA_FIRST, LW_BETA_LAST);
    d->prediction = LW_PREDICT_EPSILON;
    d->shift = 1.0;
    d->spacing = LW_SPACING_LEADING;
    d->spaced = false;
    d->steps_offset = 0;
    d->ddim_clip = d->limit = 1.0;
    d->ancestral_clip = (double)INFINITY;
    d->ddim_end = 1.0;
    d->small_variance = false;
    return 0;
}

int lw_diffusion_choose(lw_diffusion *d, const lw_noise_schedule *s)
{
    LW_TRY(lw_diffusion_init(d, s->timesteps));
    lw_diffusion_betas(d, s->beta, LW_BETA_FIRST, LW_BETA_LAST);
    d->prediction = s->prediction;
    d->shift = s->shift > 0.0 ? s->shift : 1.0;
    if (lw_diffusion_flows(d)) {
        d->spacing = LW_SPACING_TRAILING;
        d->ddim_clip = (double)INFINITY;
    }
    return 0;
}

double lw_diffusion_weight(const lw_diffusion *d, int32_t t, double gamma)
{
    const double signal = d->alpha_bar[t], snr = signal / (1.0 - signal);
    if (gamma <= 0.0)
        return 1.0;
    switch (d->prediction) {
    case LW_PREDICT_EPSILON:
        return fmin(1.0, gamma / snr);
    case LW_PREDICT_SAMPLE:
        return fmin(snr, gamma);
    case LW_PREDICT_VELOCITY:
        return fmin(snr, gamma) / (snr + 1.0);
    case LW_PREDICT_FLOW:
        break;
    }
    return 1.0;
}

/* ---- times ------------------------------------------------------------------------------ */

static int32_t time_of(const lw_diffusion *d, int32_t n, int32_t k)
{
    int32_t T = d->timesteps;
    if (d->spacing == LW_SPACING_TRAILING) {
        /* numpy's arange(T, 0, -T/n): its step is what its second number leaves; halves fall by it */
        const double step = (T - (double)T / n) - T;
        return (int32_t)rint(T + k * step) - 1;
    }
    if (d->spacing == LW_SPACING_LINSPACE)
        return n > 1 ? (int32_t)rint((n - 1 - k) * ((double)(T - 1) / (n - 1))) : 0;
    return (n - 1 - k) * (T / n) + d->steps_offset;
}

int lw_diffusion_check_steps(const lw_diffusion *d, int32_t n, const char *what)
{
    if (lw_diffusion_flows(d))
        return lw_flow_check_steps(d, n, what);
    if (n < 1 || n > d->timesteps)
        return lw_fail(LW_EUSAGE, "%s %d: this model's noise schedule has 1 to %d", what, (int)n,
                       (int)d->timesteps);
    if (time_of(d, n, 0) >= d->timesteps)
        return lw_fail(LW_EUSAGE,
                       "%s %d: with the schedule's steps_offset of %d the first time would be "
                       "%d, beyond the last, %d",
                       what, (int)n, (int)d->steps_offset, (int)time_of(d, n, 0),
                       (int)d->timesteps - 1);
    return 0;
}

static lw_spacing solver_spacing(const lw_diffusion *d)
{
    return d->spaced ? d->spacing : LW_SPACING_LINSPACE;
}

/* diffusers' DPMSolverMultistepScheduler has its end, no noise, where the others have the lowest of
 * their times. */
static int32_t solver_time_of(const lw_diffusion *d, int32_t n, int32_t k)
{
    int32_t T = d->timesteps;
    if (solver_spacing(d) == LW_SPACING_TRAILING)
        return time_of(d, n, k);
    if (solver_spacing(d) == LW_SPACING_LINSPACE)
        return (int32_t)rint((n - k) * ((double)(T - 1) / n));
    return (n - k) * (T / (n + 1)) + d->steps_offset;
}

int lw_solver_check_steps(const lw_diffusion *d, int32_t n, const char *what)
{
    if (n < 1 || n > d->timesteps)
        return lw_diffusion_check_steps(d, n, what);
    if (solver_time_of(d, n, 0) >= d->timesteps)
        return lw_fail(LW_EUSAGE,
                       "%s %d: with the schedule's steps_offset of %d the first time of "
                       "dpm-solver would be %d, beyond the last, %d",
                       what, (int)n, (int)d->steps_offset, (int)solver_time_of(d, n, 0),
                       (int)d->timesteps - 1);
    for (int32_t k = 1; k < n; k++)
        if (solver_time_of(d, n, k) >= solver_time_of(d, n, k - 1))
            return lw_fail(LW_EUSAGE,
                           "%s %d: with timestep spacing %s two evaluations of dpm-solver "
                           "would be at time %d; take fewer",
                           what, (int)n,
                           solver_spacing(d) == LW_SPACING_LEADING ? "leading" : "linspace",
                           (int)solver_time_of(d, n, k));
    return 0;
}

/* The signal left (alpha_bar) where a move leads; `end` behind the last time. */
static double signal_at(const lw_diffusion *d, int32_t t, double end)
{
    return t >= 0 ? d->alpha_bar[t] : end;
}

/* ---- moves ------------------------------------------------------------------------------ */

/* The last of n moves makes a picture: its values are bounded. */
static lw_diffusion_move move_at(const lw_diffusion *d, int32_t n, int32_t k, int32_t t,
                                 double clip)
{
    double here = d->alpha_bar[t];
    return (lw_diffusion_move){.t = t,
                               .prediction = d->prediction,
                               .by = {.a = sqrt(here),
                                      .s = sqrt(1.0 - here),
                                      .clip = clip,
                                      .limit = k + 1 == n ? d->limit : (double)INFINITY}};
}

lw_diffusion_move lw_ddim_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    lw_diffusion_move m = move_at(d, n, k, time_of(d, n, k), d->ddim_clip);
    /* Not the next time: where the times are not even, diffusers' DDIM does not lead there. */
    double next = signal_at(d, (int32_t)m.t - d->timesteps / n, d->ddim_end);
    m.by.c0 = sqrt(next);
    m.by.c1 = sqrt(fmax(1.0 - next, 0.0));
    return m;
}

lw_diffusion_move lw_ancestral_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    lw_diffusion_move m = move_at(d, n, k, time_of(d, n, k), d->ancestral_clip);
    int32_t to = k + 1 < n ? time_of(d, n, k + 1) : -1;
    const int32_t t = (int32_t)m.t;
    double here = d->alpha_bar[t], next = signal_at(d, to, 1.0);
    /* The table's own beta where the ratio would be that, but for its rounding. */
    double beta = to == t - 1 ? d->beta[t] : 1.0 - here / next, root = sqrt(1.0 - beta);
    double variance = d->small_variance ? fmax((1.0 - next) / (1.0 - here) * beta, 1e-20) : beta;
    m.by.c2 = t > 0 ? sqrt(variance) : 0.0;
    if (m.prediction == LW_PREDICT_EPSILON && isinf(m.by.clip)) {
        m.by.c1 = -beta / (sqrt(1.0 - here) * root);
        m.by.c3 = 1.0 / root;
    } else { /* the same mean, of x0 and x */
        m.by.c0 = sqrt(next) * beta / (1.0 - here);
        m.by.c3 = root * (1.0 - next) / (1.0 - here);
    }
    return m;
}

/* sqrt(alpha_bar) and sqrt(1 - alpha_bar) before move k of n; {1, 0} behind the last. diffusers'
 * least alpha_bar, where a schedule ends in noise alone, stands in for 0, whose lambda no line goes
 * through. */
typedef struct level {
    double a, s, lambda; /* log(a / s) */
} level;

static level level_at(const lw_diffusion *d, int32_t n, int32_t k)
{
    if (k >= n)
        return (level){1.0, 0.0, (double)INFINITY};
    double here = d->alpha_bar[solver_time_of(d, n, k)];
    if (here <= 0.0)
        here = 0x1p-24;
    level l = {sqrt(here), sqrt(1.0 - here), 0.0};
    l.lambda = log(l.a / l.s);
    return l;
}

/* Lu et al. 2022, algorithm 2: with h = lambda_next - lambda, h1 = lambda - lambda_before and
 * K = a_next - s_next a / s = a_next (1 - exp(-h)),
 *
 *   x_next = s_next / s x + K (x0 + h / (2 h1) (x0 - x0_before))
 *
 * The first move has nothing before it, and the last has no finite h: both are of first order. */
lw_diffusion_move lw_solver_move(const lw_diffusion *d, int32_t n, int32_t k)
{
    lw_diffusion_move m = move_at(d, n, k, solver_time_of(d, n, k), d->ddim_clip);
    const level here = level_at(d, n, k), next = level_at(d, n, k + 1);
    double gain = next.a - next.s * here.a / here.s, slope = 0.0;
    if (k > 0 && k + 1 < n)
        slope = 0.5 * (next.lambda - here.lambda) / (here.lambda - level_at(d, n, k - 1).lambda);
    m.by.a = here.a;
    m.by.s = here.s;
    m.by.c0 = gain * (1.0 + slope);
    m.by.c2 = -gain * slope;
    m.by.c3 = next.s / here.s;
    return m;
}

lw_diffusion_move lw_picture_move(const lw_diffusion_move *m)
{
    lw_diffusion_move to = *m;
    to.by.c0 = 1.0;
    to.by.c1 = to.by.c2 = to.by.c3 = 0.0;
    to.by.limit = (double)INFINITY;
    return to;
}

void lw_diffusion_apply(const lw_diffusion_move *m, float *x, const float *y, const float *noise,
                        int64_t n)
{
    lw_reverse_step(x, x, y, noise, &m->by, m->prediction, m->keep_eps, n);
}
