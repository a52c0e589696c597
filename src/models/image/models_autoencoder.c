/* SPDX-License-Identifier: Apache-2.0 */
#include "models/image/models_autoencoder.h"

#include <math.h>

int lw_latent_scale_read(const json_t *config, const char *where, lw_latent_scale *s)
{
    lw_latent_scale read = *s;
    LW_TRY(lw_json_opt_f64(config, where, "scaling_factor", &read.factor));
    LW_TRY(lw_json_opt_f64(config, where, "shift_factor", &read.shift));
    if (!isfinite(read.factor) || !isfinite(1.0 / read.factor) || !isfinite(read.shift))
        return lw_fail(LW_EFORMAT, "%s: latents cannot be scaled by %g and shifted by %g", where,
                       read.factor, read.shift);
    *s = read;
    return 0;
}

lw_val lw_latent_of(lw_graph *g, const lw_latent_scale *s, lw_val raw)
{
    if (s->shift != 0.0)
        raw = lw_add_f32(g, raw, (float)-s->shift);
    return s->factor == 1.0 ? raw : lw_scale(g, raw, (float)s->factor);
}

lw_val lw_latent_raw(lw_graph *g, const lw_latent_scale *s, lw_val latent)
{
    if (s->factor != 1.0)
        latent = lw_scale(g, latent, (float)(1.0 / s->factor));
    return s->shift == 0.0 ? latent : lw_add_f32(g, latent, (float)s->shift);
}

int lw_latent_sides(lw_graph *g, lw_val x, int32_t multiple)
{
    if (!lw_val_ok(x))
        return LW_ESHAPE; /* g has failed */
    lw_type t = lw_val_type(g, x);
    if (t.dim[1] % multiple == 0 && t.dim[2] % multiple == 0)
        return 0;
    lw_graph_fail(g, LW_ESHAPE, "pictures of %dx%d: the sides must be multiples of %d", t.dim[1],
                  t.dim[2], (int)multiple);
    return LW_ESHAPE;
}
