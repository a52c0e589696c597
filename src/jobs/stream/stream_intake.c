/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stream/stream_intake.h"

#include <string.h>

int lw_stream_intake_open(lw_stream_intake *i, const lw_stream_config *c, const lw_frame_options *o,
                          const lw_kernels *kernels)
{
    *i = (lw_stream_intake){.kernels = kernels, .seed = c->network.seed};
    if (c->degrade)
        LW_TRY(lw_degradation_parse(c->degrade, &i->worse));
    LW_TRY(lw_frame_source_open(c->input, o, &i->source));
    const lw_pixels *p = &i->source->pixels;
    i->pixels = *p;
    if (i->worse.n == 0)
        return 0;
    lw_pixels_init(&i->pixels, LW_PIXELS_RGB, LW_MATRIX_601, true, p->w, p->h);
    i->own = lw_calloc(lw_pixels_bytes(p), 1);
    return i->own ? 0 : LW_ENOMEM;
}

void lw_stream_intake_close(lw_stream_intake *i)
{
    lw_frame_source_close(&i->source);
    lw_free(&i->own);
}

static int make_worse(const lw_stream_intake *i, int64_t number, uint8_t *rgb, uint8_t *undamaged)
{
    const lw_pixels *p = &i->source->pixels;
    LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
    LW_TRY(lw_raster_init(&im, (int32_t)p->h, (int32_t)p->w, 3));
    i->kernels->pixels.to_u8(im.at, i->own, p, 0, p->bands);
    if (undamaged)
        memcpy(undamaged, im.at, lw_pixels_bytes(&i->pixels));
    LW_TRY(lw_degrade(&i->worse, i->seed, number, &im));
    memcpy(rgb, im.at, lw_pixels_bytes(&i->pixels));
    return 0;
}

int lw_stream_intake_next(lw_stream_intake *i, int64_t number, uint8_t *bytes, uint8_t *undamaged,
                          double *captured)
{
    const bool worse = i->worse.n > 0;
    const int rc = lw_frame_source_next(i->source, worse ? i->own : bytes, captured);
    return rc == 0 && worse ? make_worse(i, number, bytes, undamaged) : rc;
}
