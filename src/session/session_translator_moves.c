/* SPDX-License-Identifier: Apache-2.0 */
/*
 * img2img in one graph (Meng et al. 2022): the frame with the noise of time t0, then every evaluation
 * and move of the sampler.
 *
 *   z ─► a z + s noise ─► net, move 0 ─► net, move 1 ─► .. ─► y
 *
 * Times, and the numbers that depend on them, are inputs, so that another strength compiles nothing.
 * Strength s leaves the first s T times of the schedule; the evaluations are spaced evenly over them
 * from the highest ("trailing"), which is what diffusers' pipelines do where s is steps over
 * num_inference_steps and the scheduler's spacing is trailing.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/session_sampler.h"
#include "session/session_translator_private.h"

typedef struct words {
    char time[24], move[24], picture[24];
} words;

static words words_of(int32_t k)
{
    words w;
    snprintf(w.time, sizeof w.time, "time.%d", (int)k);
    snprintf(w.move, sizeof w.move, "move.%d", (int)k);
    snprintf(w.picture, sizeof w.picture, "picture.%d", (int)k);
    return w;
}

static bool solves(const lw_translator *t)
{
    return t->o.sampler == LW_SAMPLER_DPM_SOLVER;
}

/* ---- the numbers --------------------------------------------------------------------------------- */

static void put(lw_translator *t, const char *input, const void *data, size_t bytes)
{
    void *to = lw_forward_input(t->plan, input);
    if (to)
        memcpy(to, data, bytes);
}

/* As many times as there are evaluations, or a multiple: then the last move ends without noise. */
static int32_t times_left(const lw_translator *t)
{
    const int32_t n = t->o.steps, all = t->schedule->timesteps, most = all / n;
    const double share = fmin(fmax(t->o.strength, 0.0), 1.0) * all / n;
    return n * (int32_t)fmin(fmax(rint(share), 1.0), most);
}

void lw_translator_set_moves(lw_translator *t)
{
    if (!t->schedule)
        return;
    *t->part = *t->schedule;
    t->part->timesteps = times_left(t);
    t->part->spacing = LW_SPACING_TRAILING;
    t->part->spaced = true;
    for (int32_t k = 0; k < t->o.steps; k++) {
        const words w = words_of(k);
        lw_diffusion_move m = (solves(t) ? lw_solver_move : lw_ddim_move)(t->part, t->o.steps, k);
        if (t->coder.encoder) /* the bounds are those of pictures */
            m.by.clip = m.by.limit = (double)INFINITY;
        const float time = (float)m.t, signal = (float)m.by.a, noise = (float)m.by.s;
        const lw_diffusion_move picture = lw_picture_move(&m);
        if (k == 0) {
            put(t, "signal", &signal, sizeof signal);
            put(t, "noise", &noise, sizeof noise);
        }
        put(t, w.time, &time, sizeof time);
        put(t, w.move, &m.by, sizeof m.by);
        put(t, w.picture, &picture.by, sizeof picture.by);
    }
}

/* ---- the graph ----------------------------------------------------------------------------------- */

/* The frame, then former answers, the newest first. They are one state: zeros at first. */
static lw_val condition(const lw_translator *t, lw_graph *g, lw_val z, lw_val *history)
{
    const lw_network *n = t->net;
    lw_type type = lw_val_type(g, z);
    const bool frame = n->condition > t->previous * n->channels;
    *history = LW_NOVAL;
    if (n->condition == 0)
        return LW_NOVAL;
    type.dim[3] = t->previous * n->channels;
    if (t->previous > 0)
        *history = lw_input(g, "history", type);
    return !frame ? *history : t->previous > 0 ? lw_concat(g, z, *history, 3) : z;
}

static void keep_history(const lw_translator *t, lw_graph *g, lw_val y, lw_val history)
{
    const int32_t c = t->net->channels;
    if (t->previous == 0)
        return;
    if (t->previous > 1)
        y = lw_concat(g, y, lw_slice(g, history, 3, 0, c * (t->previous - 1)), 3);
    lw_graph_output_add(g, "answers", y, history);
}

static lw_val evaluate(const lw_translator *t, lw_graph *g, lw_network_in in)
{
    lw_taps taps;
    const char *up = lw_scope_part(g, "network");
    lw_network_append(t->net, g, in, &taps);
    lw_scope_set(g, up);
    return lw_tap_find(&taps, "y");
}

static lw_val go(const lw_translator *t, lw_graph *g, lw_network_in in)
{
    const lw_type one = lw_type_of(LW_F32, 1, 1), numbers = lw_type_of(LW_I64, 1, 8);
    const int32_t n = t->o.steps;
    lw_val before = LW_NOVAL;
    for (int32_t k = 0; k < n; k++) {
        const words w = words_of(k);
        in.t = lw_input(g, w.time, one);
        lw_val y = evaluate(t, g, in), x = in.x;
        in.x = lw_reverse_step_op(g, x, y, lw_input(g, w.move, numbers),
                                  k > 0 && k + 1 < n ? before : LW_NOVAL, t->schedule->prediction,
                                  false);
        if (solves(t) && k + 2 < n)
            before = lw_reverse_step_op(g, x, y, lw_input(g, w.picture, numbers), LW_NOVAL,
                                        t->schedule->prediction, false);
    }
    return in.x;
}

/*
 * Stream batch (Kodaira et al. 2023): row k is the frame of k runs ago, which has k moves behind it; one
 * evaluation moves all rows on by one. Rows do not see each other: a frame's bits are those of `go`.
 *
 *   rows    frame + noise   moving[0]   ..  moving[n-2]          a state: zeros at first
 *             │ move 0        │ move 1        │ move n-1
 *   next    moving[0]       moving[1]   ..  the picture
 */
static lw_val go_together(const lw_translator *t, lw_graph *g, lw_network_in in)
{
    const int32_t n = t->o.steps;
    const lw_type one = lw_type_of(LW_F32, 1, 1), numbers = lw_type_of(LW_I64, 1, 8);
    lw_type type = lw_val_type(g, in.x), shown = lw_val_type(g, in.condition);
    type.dim[0] = shown.dim[0] = n - 1;
    const lw_val moving = lw_input(g, "moving", type);
    in.x = lw_concat(g, in.x, moving, 0);
    if (t->net->condition > 0) { /* each row its own frame */
        const lw_val before = lw_input(g, "shown", shown);
        in.condition = lw_concat(g, in.condition, before, 0);
        lw_graph_output_add(g, "seen", lw_slice(g, in.condition, 0, 0, n - 1), before);
    }
    in.t = lw_input(g, words_of(0).time, one);
    for (int32_t k = 1; k < n; k++)
        in.t = lw_concat(g, in.t, lw_input(g, words_of(k).time, one), 0);
    const lw_val y = evaluate(t, g, in);
    lw_val next = LW_NOVAL, last = LW_NOVAL;
    for (int32_t k = 0; k < n; k++) {
        last = lw_reverse_step_op(g, lw_slice(g, in.x, 0, k, k + 1), lw_slice(g, y, 0, k, k + 1),
                                  lw_input(g, words_of(k).move, numbers), LW_NOVAL,
                                  t->schedule->prediction, false);
        if (k < n - 1)
            next = k == 0 ? last : lw_concat(g, next, last, 0);
    }
    lw_graph_output_add(g, "moved", next, moving);
    return last;
}

static lw_val bounded(const lw_translator *t, lw_graph *g, lw_val y)
{
    if (t->coder.encoder)
        return y;
    y = lw_ew2(g, LW_EW_max, y, lw_const_f32(g, -1.0f));
    return lw_ew2(g, LW_EW_min, y, lw_const_f32(g, 1.0f));
}

lw_val lw_translator_generate(lw_translator *t, lw_graph *g, lw_val z)
{
    const lw_network *n = t->net;
    if (!lw_val_ok(z))
        return z;
    lw_type type = lw_val_type(g, z);
    if (n->noise_size > 0)
        type.dim[1] = type.dim[2] = n->noise_size;
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, 1)), history;
    lw_val noise = lw_random(g, "sample.noise", LW_RANDOM_NORMAL, 0, type, rows);
    lw_network_in in = {.x = noise, .condition = condition(t, g, z, &history)};
    if (n->classes > 0)
        in.classes = lw_input(g, "class", lw_type_of(LW_I32, 1, lw_translator_delay(t) + 1));
    lw_network_draw(n, g, "sample", rows, &in);
    lw_val y;
    if (t->schedule) {
        const lw_type one = lw_type_of(LW_F32, 1, 1);
        in.x = lw_add(g, lw_mul(g, z, lw_input(g, "signal", one)),
                      lw_mul(g, noise, lw_input(g, "noise", one)));
        y = lw_translator_delay(t) > 0 ? go_together(t, g, in) : go(t, g, in);
    } else {
        y = bounded(t, g, evaluate(t, g, in));
    }
    keep_history(t, g, y, history);
    return y;
}
