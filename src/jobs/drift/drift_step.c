/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of some groups of a drift step: generator, encoder, fields. */
#include <stdio.h>
#include <string.h>

#include "jobs/drift/drift_loss.h"
#include "jobs/drift/drift_run.h"

lw_dtype lw_drift_real_type(const drift_run *r)
{
    return r->c.feature_type ? LW_BF16 : LW_F32;
}

static lw_val input_real_features(const drift_run *r, lw_graph *g, const char *what,
                                  const lw_feature_key *k, int32_t rows)
{
    char name[40];
    snprintf(name, sizeof name, "%s/%s", what, k->name);
    lw_val x = lw_input(g, name, lw_type_of(lw_drift_real_type(r), 3, rows, k->slots, k->c));
    return lw_drift_real_type(r) == LW_F32 ? x : lw_cast(g, x, LW_F32, LW_NOVAL);
}

static lw_attr_drift field_of(const drift_run *r, const lw_feature_key *k, lw_drift_door door)
{
    const lw_drift_config *c = &r->c;
    lw_attr_drift a = {.groups = r->groups,
                       .n = r->n,
                       .np = r->np,
                       .nu = r->nu,
                       .slots = k->slots,
                       .c = k->c,
                       .n_tau = c->n_temperatures,
                       .normalize_over_x = c->normalize_over_x,
                       .own_scale = c->own_scale,
                       .variant = c->variant,
                       .door = (int32_t)door,
                       .whole = door ? r->draws.groups : 0,
                       .products = c->field_precision};
    for (int i = 0; i < LW_DRIFT_MAX_TAU; i++)
        a.tau[i] = (double)c->temperatures[i];
    return a;
}

static void build_features(const drift_run *r, lw_graph *g, lw_val images,
                           lw_val v[LW_MAX_FEATURE_KEYS])
{
    lw_taps taps;
    lw_val decoded = LW_NOVAL;
    if (r->decoder) {
        lw_network_append(r->decoder, g, (lw_network_in){.x = images}, &taps);
        decoded = lw_tap_find(&taps, "y");
    }
    for (int32_t i = 0; i < r->sources; i++) {
        const lw_drift_source *s = &r->source[i];
        const lw_val seen = s->decoder ? decoded : images;
        lw_network_append(s->encoder, g, (lw_network_in){.x = seen}, &taps);
        lw_features_build(g, &s->keys, seen, &taps, v + s->first);
    }
}

/* Inputs of the fields of all keys, absent where nothing says them. */
typedef struct shared_in {
    lw_val weight, heat;
} shared_in;

static shared_in input_shared(const drift_run *r, lw_graph *g)
{
    shared_in in = {LW_NOVAL, LW_NOVAL};
    if (r->nu)
        in.weight = lw_input(g, "weight", lw_type_of(LW_F32, 1, r->groups));
    if (lw_drift_anneals(r))
        in.heat = lw_input(g, "heat", lw_type_of(LW_F32, 1, 1));
    return in;
}

/* Field of a key at a door; what it says of it becomes an output. real: its positives, absent: an
 * input. */
static lw_drift_out build_field(const drift_run *r, lw_graph *g, int k, lw_val gen, lw_val real,
                                shared_in in, lw_drift_door door)
{
    const lw_feature_key *key = &r->keys.key[k];
    lw_attr_drift a = field_of(r, key, door);
    lw_val unc = LW_NOVAL, state = LW_NOVAL;
    char name[LW_DRIFT_NAME];
    if (!lw_val_ok(real))
        real = input_real_features(r, g, "pos", key, r->groups * r->np);
    if (r->nu)
        unc = input_real_features(r, g, "unc", key, r->groups * r->nu);
    if (door)
        state = lw_input(g, lw_drift_name(name, "state", key),
                         lw_type_of(LW_I64, 1, LW_DRIFT_STATE_OF(a.own_scale, a.slots)));
    lw_drift_out o = lw_drift_through(g, gen, real, unc, in.weight, state, in.heat, &a);
    bool last = door == LW_DRIFT_WHOLE || door == LW_DRIFT_FIELD;
    lw_graph_output_add(g, lw_drift_name(name, last ? "stats" : "sums", key),
                        last ? o.stats : o.state, LW_NOVAL);
    return o;
}

/* Sum over keys of the field's loss. real: the positives; without them their features are inputs. */
static lw_val build_loss(const drift_run *r, lw_graph *g, lw_val images, lw_val real)
{
    lw_val v[LW_MAX_FEATURE_KEYS], p[LW_MAX_FEATURE_KEYS] = {{0}}, total = LW_NOVAL;
    const char *up = lw_scope_part(g, "encoder");
    build_features(r, g, images, v);
    if (lw_val_ok(real))
        build_features(r, g, real, p);
    lw_scope_part(g, "field");
    shared_in in = input_shared(r, g);
    for (int k = 0; k < r->keys.n; k++) {
        const char *field = lw_scope_push(g, r->keys.key[k].name);
        lw_drift_out o = build_field(r, g, k, v[k], p[k], in, LW_DRIFT_WHOLE);
        lw_val one = lw_drift_key_term(&r->c, &r->keys, k, g, o);
        total = lw_val_ok(total) ? lw_add(g, total, one) : one;
        lw_scope_set(g, field);
    }
    lw_scope_set(g, up);
    return total;
}

/* Of each group the one picture, as often as it has negatives: [G,..] -> [G n,..]. */
static lw_val for_each(const drift_run *r, lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    lw_val one = lw_reshape(g, x, lw_type_of(LW_F32, 2, t.dim[0], t.dim[1] * t.dim[2] * t.dim[3]));
    lw_val all = one;
    for (int32_t i = 1; i < r->n; i++)
        all = lw_concat(g, all, one, 1);
    t.dim[0] *= r->n;
    return lw_reshape(g, all, t);
}

/* Beside the field, which finds where the clean frames are, the way there by least squares. */
static lw_val add_pixels(const drift_run *r, lw_graph *g, lw_val loss, lw_val images, lw_val real)
{
    if (r->c.pixel_weight <= 0)
        return loss;
    lw_val error = lw_mean(g, lw_sqr(g, lw_sub(g, images, for_each(r, g, real))), LW_OVER_ALL);
    lw_graph_output_add(g, "stats/pixel_error", error, LW_NOVAL);
    return lw_add(g, loss, lw_scale(g, error, (float)r->c.pixel_weight));
}

/* Generated pictures; *real: with a condition the clean frames. */
static lw_val build_pictures(const drift_run *r, lw_graph *g, int32_t batch, lw_val *real)
{
    lw_network u = r->g.network;
    int32_t side = u.noise_size ? u.noise_size : u.image_size;
    lw_taps taps;
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_scope_part(g, "generator");
    lw_network_in in = {.x = lw_random(g, "drift.noise", LW_RANDOM_NORMAL, 0,
                                       lw_type_of(LW_F32, 4, batch, side, side, u.channels), rows),
                        .rows = rows};
    lw_network_draw(&u, g, "drift", rows, &in);
    if (u.alpha > 0.0f)
        in.alpha = lw_input(g, "alpha", lw_type_of(LW_F32, 1, batch));
    if (u.classes)
        in.classes = lw_input(g, "labels", lw_type_of(LW_I32, 1, batch));
    *real = LW_NOVAL;
    if (lw_drift_of_clips(r)) {
        lw_type t = lw_type_of(LW_F32, 4, r->groups, u.image_size, u.image_size, u.channels);
        *real = lw_input(g, "images", t);
        t.dim[3] = u.condition;
        in.condition = for_each(r, g, lw_input(g, "condition", t));
    }
    u.training = true;
    lw_network_append(&u, g, in, &taps);
    return lw_tap_find(&taps, "y");
}

int lw_drift_build(const drift_run *r, lw_graph *g)
{
    lw_val real, images = build_pictures(r, g, r->groups * r->n, &real),
                 loss = build_loss(r, g, images, real);
    lw_scope_set(g, "");
    if (lw_val_ok(real))
        loss = add_pixels(r, g, loss, images, real);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

int lw_drift_build_field(const drift_run *r, lw_graph *g, lw_drift_door door)
{
    char name[LW_DRIFT_NAME];
    lw_scope_part(g, "field");
    shared_in in = input_shared(r, g);
    for (int k = 0; k < r->keys.n; k++) {
        const lw_feature_key *key = &r->keys.key[k];
        const char *field = lw_scope_push(g, key->name);
        lw_val gen = lw_input(g, lw_drift_name(name, "gen", key),
                              lw_type_of(LW_F32, 3, r->groups * r->n, key->slots, key->c));
        lw_drift_out o = build_field(r, g, k, gen, LW_NOVAL, in, door);
        if (door == LW_DRIFT_WHOLE || door == LW_DRIFT_FIELD)
            lw_graph_output_add(g, lw_drift_name(name, "grad", key),
                                lw_drift_shared(&r->c, &r->keys, k, g, o.dx), LW_NOVAL);
        lw_scope_set(g, field);
    }
    lw_scope_set(g, "");
    return lw_graph_error(g);
}

int lw_drift_build_leaf(const drift_run *r, lw_graph *g, int32_t pictures)
{
    lw_val real, v[LW_MAX_FEATURE_KEYS], y[LW_MAX_FEATURE_KEYS], dy[LW_MAX_FEATURE_KEYS],
        images = build_pictures(r, g, pictures, &real);
    char name[LW_DRIFT_NAME];
    lw_scope_part(g, "encoder");
    build_features(r, g, images, v);
    lw_scope_set(g, "");
    for (int k = 0; k < r->keys.n; k++)
        lw_graph_output_add(g, lw_drift_name(name, "gen", &r->keys.key[k]), v[k], LW_NOVAL);
    lw_graph_output_add(g, "loss", lw_input(g, "loss", lw_type_of(LW_F32, 1, 1)), LW_NOVAL);
    /* Of the loss of all groups each leaf has its share of the gradient; the loop takes a mean. The order is that in
     * which a graph that ends in the fields meets them. */
    bool was = lw_graph_backward(g, true);
    for (int i = 0; i < r->keys.n; i++) {
        int k = r->keys.n - 1 - i;
        lw_type t = lw_val_type(g, v[k]);
        y[i] = v[k];
        dy[i] = lw_mul(g, lw_input(g, lw_drift_name(name, "grad", &r->keys.key[k]), t),
                       lw_broadcast(g, lw_const_f32(g, (float)r->g.p.leaves.n), t));
    }
    lw_graph_backward(g, was);
    return lw_grad_params_of(g, y, dy, r->keys.n);
}
