/* SPDX-License-Identifier: Apache-2.0 */
/* Networks with random weights: by name; the small one; what they share. */
#include "models/models.h"
#include "models/image/models_rehearsal_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts ----------------------------------------------------------------------------------- */

lw_val lw_rehearsal_with_time(lw_graph *g, lw_val x, lw_val t, float length)
{
    if (!lw_val_ok(x) || !lw_val_ok(t))
        return LW_NOVAL;
    lw_type plane = lw_val_type(g, x);
    plane.dim[3] = 1;
    t = lw_reshape(g, lw_scale(g, t, 1.0f / length), lw_type_of(LW_F32, 2, plane.dim[0], 1));
    return lw_concat(g, x, lw_broadcast(g, t, plane), 3);
}

lw_val lw_rehearsal_up(lw_builder *b, const char *name, lw_val x, int32_t o)
{
    if (!lw_val_ok(x))
        return x;
    int32_t c = lw_type_last(lw_val_type(b->g, x));
    const lw_init init = {LW_INIT_UNIFORM, 1.0f / sqrtf(16.0f * (float)o)}; /* as PyTorch counts */
    const char *up = lw_scope_push(b->g, name);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 4, c, 4, 4, o), init),
           bias = lw_param(b, "bias", lw_type_of(LW_F32, 1, o), init);
    x = lw_conv_transpose2d_op(b->g, x, w, bias, 2, 1, 0);
    lw_scope_set(b->g, up);
    return x;
}

lw_val lw_rehearsal_conv3(lw_builder *b, const char *name, lw_val x, int32_t o, int stride)
{
    return lw_conv2d(b, name, x, o, (lw_conv_opts){.kernel = 3, .pad = 1, .stride = stride});
}

lw_val lw_rehearsal_tokens(lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    return lw_reshape(g, x, lw_type_of(LW_F32, 3, t.dim[0], t.dim[1] * t.dim[2], t.dim[3]));
}

void lw_rehearsal_describe(lw_network *n, int32_t condition)
{
    n->generator = true;
    n->image_size = ((const lw_rehearsal *)n->arch)->side;
    n->condition = condition;
}

/* ---- simple-optimized-unet ------------------------------------------------------------------- */

/* Heads of 64 channels over all places, no norm and no residual. */
static lw_val everywhere(lw_builder *b, lw_val x)
{
    lw_type t = lw_val_type(b->g, x);
    if (!lw_val_ok(x))
        return x;
    const char *up = lw_scope_push(b->g, "attention");
    lw_val h = lw_linear(b, "in_proj", lw_rehearsal_tokens(b->g, x), 3 * t.dim[3], true);
    h = lw_attention_places(
        b->g, &h, 1,
        &(lw_attr_attention){.heads = t.dim[3] / 64, .window = b->window, .width = t.dim[2]});
    h = lw_linear(b, "out_proj", h, t.dim[3], true);
    lw_scope_set(b->g, up);
    return lw_reshape(b->g, h, t);
}

static void build_simple(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_graph *g = b->g;
    int32_t w = ((const lw_rehearsal *)arch)->base;
    lw_val first = lw_rehearsal_with_time(g, in.x, in.t, 100.0f), second, x;
    first = lw_silu(g, lw_rehearsal_conv3(b, "conv_in", first, w, 1));
    second = lw_silu(g, lw_rehearsal_conv3(b, "enc1", first, 2 * w, 2));
    x = lw_silu(g, lw_rehearsal_conv3(b, "enc2", second, 4 * w, 2));
    x = everywhere(b, lw_silu(g, lw_rehearsal_conv3(b, "bottleneck_conv", x, 8 * w, 1)));
    x = lw_add(g, lw_silu(g, lw_rehearsal_up(b, "dec2", x, 2 * w)), second);
    x = lw_add(g, lw_silu(g, lw_rehearsal_up(b, "dec1", x, w)), first);
    lw_tap_add(out, "y", lw_ew1(g, LW_EW_tanh, lw_rehearsal_conv3(b, "conv_out", x, 3, 1)));
}

static void describe_simple(lw_network *n)
{
    lw_rehearsal_describe(n, 0);
}

const lw_network_def lw_rehearsal_simple = {
    .name = "simple-optimized-unet",
    .kind = "rehearsal",
    .arch_bytes = sizeof(lw_rehearsal),
    .describe = describe_simple,
    .build = build_simple,
};

/* ---- by name --------------------------------------------------------------------------------- */

/* Widths and sides are multiples of these. */
static const struct {
    const lw_network_def *def;
    int32_t width, side;
} rehearsals[] = {
    {&lw_rehearsal_stress, 16, 16}, {&lw_rehearsal_lsd, 4, 8}, {&lw_rehearsal_simple, 8, 4}};

enum { MAX_WIDTH = 512, MAX_SIDE = 1024, SIDE = 64 };

static const lw_network_def *def_of(const char *spec, size_t *at)
{
    size_t n = strcspn(spec, ":");
    for (size_t i = 0; i < LW_COUNT(rehearsals); i++)
        if (strncmp(rehearsals[i].def->name, spec, n) == 0 && !rehearsals[i].def->name[n]) {
            *at = i;
            return rehearsals[i].def;
        }
    return NULL;
}

bool lw_rehearsal_is(const char *spec)
{
    size_t at;
    return def_of(spec, &at) != NULL;
}

static int read_spec(const char *spec, int32_t side, size_t *at, lw_rehearsal *out)
{
    const lw_network_def *def = def_of(spec, at);
    if (!def)
        return lw_fail(LW_EUSAGE,
                       "'%s': no network of benches; there are gpu-stress:B, gpu-intensive-lsd:B "
                       "and simple-optimized-unet:B, where B is the width of the first level",
                       spec);
    const char *digits = spec + strlen(def->name) + (spec[strlen(def->name)] == ':');
    char *end = NULL;
    long width = strtol(digits, &end, 10);
    int32_t by = rehearsals[*at].width, sides = rehearsals[*at].side;
    if (end == digits || *end || width < by || width > MAX_WIDTH || width % by)
        return lw_fail(LW_EUSAGE, "'%s': its width must be a multiple of %d from %d to %d", spec,
                       (int)by, (int)by, MAX_WIDTH);
    *out = (lw_rehearsal){(int32_t)width, side ? side : SIDE};
    if (out->side < sides || out->side > MAX_SIDE || out->side % sides)
        return lw_fail(LW_EUSAGE, "%s: pictures of %dx%d; it takes multiples of %d up to %d", spec,
                       (int)out->side, (int)out->side, (int)sides, MAX_SIDE);
    return 0;
}

int lw_rehearsal_check(const char *spec, int32_t side)
{
    lw_rehearsal arch;
    size_t at;
    return read_spec(spec, side, &at, &arch);
}

int lw_rehearsal_open(const char *spec, int32_t side, lw_network **out)
{
    lw_rehearsal arch;
    size_t at;
    LW_TRY(read_spec(spec, side, &at, &arch));
    return lw_network_blank(rehearsals[at].def, &arch, out);
}
