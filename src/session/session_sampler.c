/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: a plan that draws the first noise, and one that is run again and again: the network, and
 * what its answer makes of the picture. */
#include "session/session_sampler.h"

#include "session/session_decoding.h"
#include "session/session_flow.h"

#include <stdio.h>
#include <string.h>

struct lw_sampler {
    lw_network net;
    lw_sampler_opts o;
    lw_diffusion d;
    lw_forward *network, *noise;
    lw_decoding *decode; /* NULL: the network is in pixels */
    float *decoded;      /* [batch] for who looks at a network in latents; made when first used */
    int64_t pixels;      /* floats per picture, of what the network makes */
    int64_t picture;     /* and of what comes out */
    double network_seconds;
    lw_sampler_look *look;
    void *look_self;
};

/* What the samplers are, and of whom. */
typedef struct sampler_def {
    const char *name;
    lw_method method;
    lw_diffusion_move (*move)(const lw_diffusion *d, int32_t n, int32_t k); /* NULL: none is made */
    /* What a move leaves for the next one, which reads it in the place of fresh noise where there are at least
     * `least` evaluations; NULL: nothing. */
    lw_diffusion_move (*leave)(const lw_diffusion_move *m);
    int32_t least;
    int32_t usual; /* evaluations; 0: all of the schedule */
} sampler_def;

static const sampler_def defs[LW_SAMPLER_KINDS] = {
    [LW_SAMPLER_AUTO] = {.name = "auto"},
    [LW_SAMPLER_ONE_STEP] = {.name = "one-step", .method = LW_METHOD_DRIFT, .usual = 1},
    [LW_SAMPLER_DDIM] = {"ddim", LW_METHOD_DDPM, lw_ddim_move, NULL, 0, 50},
    [LW_SAMPLER_ANCESTRAL] = {"ancestral", LW_METHOD_DDPM, lw_ancestral_move, NULL, 0, 0},
    [LW_SAMPLER_DPM_SOLVER] = {"dpm-solver", LW_METHOD_DDPM, lw_solver_move, lw_picture_move, 3,
                               20},
    [LW_SAMPLER_EULER] = {"euler", LW_METHOD_FLOW, lw_euler_move, NULL, 0, 20},
    [LW_SAMPLER_HEUN] = {"heun", LW_METHOD_FLOW, lw_heun_move, lw_velocity_move, 2, 20},
};

const char *lw_sampler_kind_name(lw_sampler_kind k)
{
    return defs[k].name;
}

int lw_noise_new(lw_device *dev, lw_type image, const lw_network *net, const char *who,
                 lw_forward **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    char stream[32];
    lw_network_in drawn = {0};
    LW_TRY(lw_graph_new(&g));
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, image.dim[0]));
    snprintf(stream, sizeof stream, "%s.noise", who);
    lw_graph_output_add(g, "noise", lw_random(g, stream, LW_RANDOM_NORMAL, 0, image, rows),
                        LW_NOVAL);
    if (net)
        lw_network_draw(net, g, who, rows, &drawn);
    if (lw_val_ok(drawn.latent))
        lw_graph_output_add(g, "latent", drawn.latent, LW_NOVAL);
    if (lw_val_ok(drawn.styles))
        lw_graph_output_add(g, "styles", drawn.styles, LW_NOVAL);
    return lw_forward_of(dev, &g, NULL, LW_SLAB_PARAM, who, out);
}

int lw_noise_draw(lw_forward *noise, int64_t first, lw_tick tick)
{
    int64_t *rows = lw_forward_input(noise, "rows");
    for (int64_t i = 0; i < lw_forward_port(noise, 0)->shape[0]; i++)
        rows[i] = first + i;
    return lw_forward_run(noise, &tick);
}

static lw_type noise_type(const lw_sampler *s)
{
    int32_t side = s->net.noise_size ? s->net.noise_size : s->net.image_size;
    return lw_type_of(LW_F32, 4, s->o.batch, side, side, s->net.channels);
}

/* What changes from evaluation to evaluation: k is the run with step k + 1, since step 0 draws the
 * first noise. */
typedef struct moves {
    lw_val t, numbers;
    lw_val left; /* numbers of the move to what the next move reads (sampler_def) */
    lw_prediction prediction;
    bool noisy; /* some add noise */
} moves;

static lw_val numbers_at_step(lw_graph *g, const lw_reverse *by, int32_t rows)
{
    return lw_at_step(g, lw_const(g, lw_type_of(LW_I64, 2, rows, 8), by));
}

static int add_moves(const lw_sampler *s, lw_graph *g, moves *m)
{
    int32_t rows = s->o.steps + 1;
    LW_CLEANUP(lw_free) float *t = lw_calloc((size_t)rows, sizeof *t);
    LW_CLEANUP(lw_free) lw_reverse *by = lw_calloc((size_t)rows, sizeof *by);
    LW_CLEANUP(lw_free) lw_reverse *left = lw_calloc((size_t)rows, sizeof *by);
    const sampler_def *def = &defs[s->o.kind];
    if (!t || !by || !left)
        return LW_ENOMEM;
    for (int32_t k = 0; k < s->o.steps; k++) {
        lw_diffusion_move move = def->move(&s->d, s->o.steps, k);
        t[k + 1] = (float)move.t;
        by[k + 1] = move.by;
        if (def->leave)
            left[k + 1] = def->leave(&move).by;
        else
            m->noisy |= move.by.c2 != 0.0;
    }
    m->prediction = s->d.prediction;
    m->t = lw_broadcast(g, lw_at_step(g, lw_const(g, lw_type_of(LW_F32, 1, rows), t)),
                        lw_type_of(LW_F32, 1, s->o.batch));
    m->numbers = numbers_at_step(g, by, rows);
    if (def->leave && s->o.steps >= def->least)
        m->left = numbers_at_step(g, left, rows);
    return 0;
}

/* What the network's answer makes of x. What a move leaves is a state, "before" of the next run. */
static lw_val add_step(const lw_sampler *s, lw_graph *g, const moves *m, lw_val x, lw_val answer)
{
    lw_val added = LW_NOVAL;
    if (m->noisy)
        added = lw_random(g, "sample.noise", LW_RANDOM_NORMAL, 0, noise_type(s),
                          lw_input(g, "rows", lw_type_of(LW_I64, 1, s->o.batch)));
    if (lw_val_ok(m->left)) {
        added = lw_input(g, "before", noise_type(s));
        lw_graph_output_add(
            g, "left",
            lw_reverse_step_op(g, x, answer, m->left, LW_NOVAL, m->prediction, s->o.keep_eps),
            added);
    }
    return lw_reverse_step_op(g, x, answer, m->numbers, added, m->prediction, s->o.keep_eps);
}

static lw_val add_answer(const lw_sampler *s, lw_graph *g, lw_network_in in)
{
    lw_taps taps;
    lw_network_append(&s->net, g, in, &taps);
    return lw_tap_find(&taps, "y");
}

static bool is_guided(const lw_sampler *s)
{
    return s->o.guidance_scale != 0.0 && s->o.guidance_scale != 1.0;
}

/* From the answer without a class past `answer`, the one with it. Both are of the same weights in one graph, where
 * what comes before the class has a part is computed once. */
static lw_val add_guidance(const lw_sampler *s, lw_graph *g, lw_network_in in, lw_val answer)
{
    int32_t *none = lw_arena_alloc(lw_graph_arena(g), sizeof *none * (size_t)s->o.batch);
    if (!none)
        return lw_graph_fail(g, LW_ENOMEM, "%s", lw_errmsg());
    for (int32_t i = 0; i < s->o.batch; i++)
        none[i] = s->net.classes;
    in.classes = lw_const(g, lw_type_of(LW_I32, 1, s->o.batch), none);
    lw_val without = add_answer(s, g, in);
    return lw_add(g, without, lw_scale(g, lw_sub(g, answer, without), (float)s->o.guidance_scale));
}

/* Inputs "x", "class", "latent", "styles", "rows" of samples; output "y". Of many steps x is a state, and y
 * what a step made of it. */
static int build_net(lw_sampler *s, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    int32_t n = s->o.batch;
    moves m = {0};
    LW_TRY(lw_graph_new(&g));
    lw_network_in in = {.x = lw_input(g, "x", noise_type(s))};
    if (s->o.kind != LW_SAMPLER_ONE_STEP)
        LW_TRY(add_moves(s, g, &m));
    in.t = m.t;
    if (s->net.alpha > 0.0f)
        in.alpha = lw_input(g, "alpha", lw_type_of(LW_F32, 1, n));
    if (s->net.classes)
        in.classes = lw_input(g, "class", lw_type_of(LW_I32, 1, n));
    if (s->net.latent)
        in.latent = lw_input(g, "latent", lw_type_of(LW_F32, 2, n, s->net.latent));
    if (s->net.styles)
        in.styles = lw_input(g, "styles", lw_type_of(LW_I32, 2, n, s->net.styles));
    if (s->net.condition)
        in.condition = lw_input(
            g, "condition",
            lw_type_of(LW_F32, 4, n, s->net.image_size, s->net.image_size, s->net.condition));
    lw_val y = add_answer(s, g, in);
    if (is_guided(s))
        y = add_guidance(s, g, in, y);
    if (lw_val_ok(m.t))
        y = add_step(s, g, &m, in.x, y);
    lw_graph_output_add(g, "y", y, lw_val_ok(m.t) ? in.x : LW_NOVAL);
    const lw_compile_opts o = {
        .opt = 1, .precision = (lw_num)s->o.precision, .calibration = s->o.calibration};
    return lw_forward_of(dev, &g, &o, s->o.weights, "sampler", &s->network);
}

static int check_condition(const lw_sampler *s)
{
    if (s->net.condition == 0 || s->o.conditioned)
        return 0;
    return lw_fail(
        LW_EUSAGE,
        "%s makes pictures from frames ('leeway_condition' of its config.json), and there "
        "are none here: `leeway stream --model` gives it some",
        s->net.dir);
}

int lw_sampler_alpha_check(const lw_network *net, double alpha)
{
    double most = (double)net->alpha;
    if (alpha == 0.0 || (alpha >= 1.0 && alpha <= most))
        return 0;
    if (net->null_class)
        return lw_fail(LW_EUSAGE, "--alpha %g: %s is guided while it samples: say --guidance-scale",
                       alpha, net->dir ? net->dir : "this network");
    return most > 0.0
               ? lw_fail(LW_EUSAGE, "--alpha %g: %s knows strengths of guidance from 1 to %g",
                         alpha, net->dir ? net->dir : "this network", most)
               : lw_fail(
                     LW_EUSAGE,
                     "--alpha %g: %s is told no strength of guidance; `train drift --alpha-dist` "
                     "trains one that is",
                     alpha, net->dir ? net->dir : "this network");
}

int lw_sampler_guidance_check(const lw_network *net, lw_method method, double scale)
{
    const char *name = net->dir ? net->dir : "this network";
    if (scale == 0.0 || scale == 1.0)
        return 0;
    if (method == LW_METHOD_DRIFT)
        return lw_fail(
            LW_EUSAGE,
            "--guidance-scale %g: %s makes its picture in one step, guided by what it is "
            "told: say --alpha",
            scale, name);
    if (!net->null_class)
        return lw_fail(LW_EUSAGE,
                       "--guidance-scale %g: %s has no null class to guide away from; `train "
                       "ddpm|flow --class-dropout-prob 0.1` trains one that has",
                       scale, name);
    return 0;
}

static int choose_kind(lw_sampler *s)
{
    lw_sampler_opts *o = &s->o;
    if (o->kind == LW_SAMPLER_AUTO)
        o->kind = o->method == LW_METHOD_DRIFT  ? LW_SAMPLER_ONE_STEP
                  : o->method == LW_METHOD_FLOW ? LW_SAMPLER_EULER
                                                : LW_SAMPLER_DDIM;
    if (o->method == LW_METHOD_DRIFT && (o->kind != LW_SAMPLER_ONE_STEP || o->steps > 1))
        return lw_fail(
            LW_EUSAGE,
            "a drifting generator makes its picture in one step: leave out steps and sampler");
    if (o->method == LW_METHOD_DDPM && defs[o->kind].method != LW_METHOD_DDPM)
        return lw_fail(
            LW_EUSAGE,
            "a DDPM needs the sampler ddim, ancestral or dpm-solver (one step: ddim with steps 1), "
            "not %s",
            defs[o->kind].name);
    if (o->method == LW_METHOD_FLOW && defs[o->kind].method != LW_METHOD_FLOW)
        return lw_fail(LW_EUSAGE, "a rectified flow needs the sampler euler or heun, not %s",
                       defs[o->kind].name);
    if (s->net.noise_size && o->kind != LW_SAMPLER_ONE_STEP)
        return lw_fail(LW_EUSAGE, "structured noise belongs to one-step generators");
    return 0;
}

static int choose_steps(lw_sampler *s)
{
    lw_sampler_opts *o = &s->o;
    if (o->kind == LW_SAMPLER_ONE_STEP) {
        o->steps = 1;
        return o->spacing ? lw_fail(LW_EUSAGE, "--timestep-spacing: one step has no times") : 0;
    }
    if (o->diffusion)
        s->d = *o->diffusion;
    else
        LW_TRY(lw_diffusion_choose(
            &s->d,
            &(lw_noise_schedule){.timesteps = o->timesteps ? o->timesteps : 1000,
                                 .prediction = o->method == LW_METHOD_FLOW ? LW_PREDICT_FLOW
                                                                           : LW_PREDICT_EPSILON}));
    const int32_t usual = defs[o->kind].usual;
    bool solver = o->kind == LW_SAMPLER_DPM_SOLVER;
    if (o->spacing) {
        s->d.spacing = (lw_spacing)(o->spacing - 1);
        s->d.spaced = true;
    }
    if (o->steps == 0)
        o->steps = usual ? LW_MAX(LW_MIN(usual, s->d.timesteps - solver), 1) : s->d.timesteps;
    return (solver ? lw_solver_check_steps : lw_diffusion_check_steps)(&s->d, o->steps, "steps");
}

int lw_sampler_new(lw_device *dev, const lw_network *net, const lw_sampler_opts *o,
                   lw_sampler **out)
{
    LW_CLEANUP(lw_sampler_free) lw_sampler *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->net = *net;
    s->o = *o;
    LW_TRY(check_condition(s));
    LW_TRY(lw_sampler_alpha_check(&s->net, s->o.alpha));
    for (int64_t i = 0; i < s->o.n_alphas; i++)
        LW_TRY(lw_sampler_alpha_check(&s->net, s->o.alphas[i]));
    LW_TRY(lw_sampler_guidance_check(&s->net, s->o.method, s->o.guidance_scale));
    LW_TRY(choose_kind(s));
    LW_TRY(choose_steps(s));
    s->pixels = (int64_t)net->image_size * net->image_size * net->channels;
    s->picture = (int64_t)lw_picture_side(net) * lw_picture_side(net) * lw_picture_channels(net);
    LW_TRY(lw_decoding_new(dev, net, &s->decode));
    LW_TRY(lw_noise_new(dev, noise_type(s), net, "sample", &s->noise));
    LW_TRY(build_net(s, dev));
    *out = lw_steal(&s);
    return 0;
}

void lw_sampler_free(lw_sampler **pp)
{
    lw_sampler *s = *pp;
    if (!s)
        return;
    lw_forward_free(&s->network);
    lw_forward_free(&s->noise);
    lw_decoding_free(&s->decode);
    lw_free(&s->decoded);
    lw_free(pp);
}

lw_sampler_kind lw_sampler_get_kind(const lw_sampler *s)
{
    return (lw_sampler_kind)s->o.kind;
}

static int32_t evaluations_a_step(const lw_sampler *s)
{
    return is_guided(s) ? 2 : 1;
}

int32_t lw_sampler_evaluations(const lw_sampler *s)
{
    return s->o.steps * evaluations_a_step(s);
}

size_t lw_sampler_bytes(const lw_sampler *s)
{
    lw_plan_info a = lw_forward_info(s->network), b = lw_forward_info(s->noise);
    return a.frame_bytes + a.derived_bytes + b.frame_bytes + b.derived_bytes +
           (s->decode ? lw_decoding_bytes(s->decode) : 0);
}

lw_plan_info lw_sampler_network(const lw_sampler *s)
{
    return lw_forward_info(s->network);
}

double lw_sampler_network_seconds(const lw_sampler *s)
{
    return s->network_seconds;
}

float *lw_sampler_condition(lw_sampler *s)
{
    return lw_forward_input(s->network, "condition");
}

void lw_sampler_watch(lw_sampler *s, lw_sampler_look *look, void *self)
{
    s->look = look;
    s->look_self = self;
}

const lw_network *lw_sampler_net(const lw_sampler *s)
{
    return &s->net;
}

int32_t lw_sampler_batch(const lw_sampler *s)
{
    return s->o.batch;
}

/* ---- one batch -------------------------------------------------------------------------- */

static void set_classes(lw_sampler *s, int64_t first, int64_t n, const int32_t *classes)
{
    int32_t *dst = lw_forward_input(s->network, "class");
    for (int32_t i = 0; s->net.classes && i < s->o.batch; i++)
        dst[i] = classes && i < n ? classes[i] : (int32_t)((first + i) % s->net.classes);
}

static void set_alpha(lw_sampler *s, int64_t first)
{
    float *dst = s->net.alpha > 0.0f ? lw_forward_input(s->network, "alpha") : NULL;
    for (int32_t i = 0; dst && i < s->o.batch; i++) {
        double alpha = s->o.alphas ? s->o.alphas[(first + i) % s->o.n_alphas] : s->o.alpha;
        dst[i] = alpha > 0.0 ? (float)alpha : 1.0f;
    }
}

/* What `steps` steps made, as pictures, to who looks. */
static int show(lw_sampler *s, int64_t first, int64_t n, int32_t steps)
{
    if (!s->look) /* nothing is read: a device's next step is begun meanwhile */
        return 0;
    const float *y = lw_forward_output(s->network, "y");
    const int32_t done = steps * evaluations_a_step(s);
    LW_TRY(lw_forward_failed(s->network));
    if (s->decode && !s->decoded) {
        s->decoded = lw_calloc((size_t)(s->o.batch * s->picture), sizeof *s->decoded);
        if (!s->decoded)
            return LW_ENOMEM;
    }
    if (s->decode)
        LW_TRY(lw_decoding_run(s->decode, y, n, s->decoded));
    if (s->look(s->look_self, first, n, done, s->decode ? s->decoded : y) == 0)
        return 0;
    return lw_fail(LW_ESTOPPED, "sampling stopped after %d of %d evaluations", (int)done,
                   (int)lw_sampler_evaluations(s));
}

/* Between two steps; what is finished is not thrown away. */
static int ask(const lw_sampler *s, const lw_observer *obs, int32_t steps)
{
    if (steps == s->o.steps || !lw_observe_stop(obs))
        return 0;
    return lw_fail(LW_ESTOPPED, "sampling stopped after %d of %d steps", (int)steps,
                   (int)s->o.steps);
}

static int run_batch(lw_sampler *s, int64_t first, int64_t n, const int32_t *classes,
                     const lw_observer *obs, float *out)
{
    LW_TRY(lw_noise_draw(s->noise, first, (lw_tick){s->o.seed, 0}));
    set_classes(s, first, n, classes);
    set_alpha(s, first);
    lw_forward_pass(s->noise, "latent", s->network, "latent");
    lw_forward_pass(s->noise, "styles", s->network, "styles");
    lw_forward_pass(s->noise, "noise", s->network, "x");
    lw_forward_pass(s->noise, "rows", s->network, "rows");
    double t = lw_now();
    for (int32_t k = 0; k < s->o.steps; k++) {
        if (k > 0)
            lw_forward_advance(s->network);
        LW_TRY(lw_forward_run(s->network, &(lw_tick){s->o.seed, (uint32_t)k + 1}));
        LW_TRY(show(s, first, n, k + 1));
        LW_TRY(ask(s, obs, k + 1));
    }
    const float *y = lw_forward_output(s->network, "y"); /* a device is through */
    s->network_seconds += lw_now() - t;
    if (s->decode)
        LW_TRY(lw_decoding_run(s->decode, y, n, out));
    else
        memcpy(out, y, (size_t)(n * s->pixels) * sizeof *out);
    return lw_forward_failed(s->network);
}

int lw_sampler_run(lw_sampler *s, int64_t first, int64_t n, const int32_t *classes,
                   const lw_observer *obs, float *out)
{
    for (int64_t at = 0; at < n; at += s->o.batch) {
        int64_t m = LW_MIN(n - at, s->o.batch);
        LW_TRY(
            run_batch(s, first + at, m, classes ? classes + at : NULL, obs, out + at * s->picture));
        lw_observe_progress(obs, "sample", at + m, n, NULL);
        if (lw_observe_stop(obs) && at + m < n)
            return lw_fail(LW_ESTOPPED, "sampling stopped after %lld of %lld", (long long)(at + m),
                           (long long)n);
    }
    return 0;
}

int lw_pictures_check(const float *x, int64_t n, int64_t row, int64_t first)
{
    const int64_t i = lw_first_not_finite(x, n * row);
    return i == n * row ? 0
                        : lw_fail(LW_ENUMERIC, "picture %lld has a number that is %s",
                                  (long long)(first + i / row), lw_not_finite_text((double)x[i]));
}
