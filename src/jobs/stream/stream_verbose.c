/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stream/stream_verbose.h"

#include <math.h>

static bool wanted(void)
{
    return lw_log_on(LW_LOG_INFO, "stream");
}

void lw_stream_log_frames(const lw_frame_source *in, lw_frame_sink *const *out, int32_t n)
{
    char text[96];
    if (!wanted())
        return;
    lw_log(LW_LOG_INFO, "stream", "input %s: %s", lw_str_c(&in->name),
           lw_frame_format_text(text, &in->format));
    for (int32_t i = 0; i < n; i++)
        lw_log(LW_LOG_INFO, "stream", "output %s: %s", lw_str_c(&out[i]->name),
               lw_frame_format_text(text, &out[i]->format));
}

/* Where the memory lies is no part of it: a line for every value. */
void lw_stream_log_network(const char *model, const lw_stream_network *n)
{
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    if (!wanted())
        return;
    lw_log(LW_LOG_INFO, "stream", "model %s: kernels for %s, %d threads", model, n->now.dev->isa,
           lw_pool_size(n->now.dev->pool));
    lw_translator_print(&all, n->now.translator);
    size_t len;
    for (const char *rest = all.s, *line; (line = lw_str_word(&rest, '\n', &len));) {
        if (lw_str_starts(line, "-- memory"))
            break;
        lw_log(LW_LOG_INFO, "stream", "%.*s", (int)len, line);
    }
}

static void log_difference(const lw_stream_config *c, const lw_stream_network *n,
                           const uint8_t *rgb, const uint8_t *whole)
{
    const int32_t from = c->network.beside ? n->w / 2 : 0; /* the left half is the frame */
    double sum = 0;
    int most = 0;
    for (int32_t y = 0; y < n->h; y++)
        for (int32_t i = 3 * from; i < 3 * n->w; i++) {
            const size_t at = (size_t)y * 3 * (size_t)n->w + (size_t)i;
            const int d = rgb[at] > whole[at] ? rgb[at] - whole[at] : whole[at] - rgb[at];
            most = LW_MAX(most, d);
            sum += (double)d * d;
        }
    lw_log(LW_LOG_INFO, "stream",
           "attention in windows of %d: the first picture is %.3g levels (rms), at most %d, from "
           "that of attention over all places",
           (int)c->network.window, sqrt(sum / (3.0 * (n->w - from) * n->h)), most);
}

int lw_stream_log_window(const lw_stream_config *c, const lw_stream_network *n,
                         const uint8_t *frame, const uint8_t *rgb)
{
    LW_CLEANUP(lw_stream_engine_close) lw_stream_engine e = {0};
    lw_translator_opts whole = c->network;
    if (!wanted() || c->network.window <= 0 || lw_translator_delay(n->now.translator) > 0)
        return 0;
    LW_CLEANUP(lw_free) uint8_t *picture = lw_calloc((size_t)n->w * (size_t)n->h, 3);
    whole.window = 0;
    LW_TRY(picture ? 0 : LW_ENOMEM);
    LW_TRY(lw_stream_engine_open(&e, c, &whole, &n->in));
    LW_TRY(lw_translator_run(e.translator, frame, picture));
    log_difference(c, n, rgb, picture);
    return 0;
}
