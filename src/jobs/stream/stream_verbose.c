/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stream/stream_verbose.h"

#include <string.h>

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
    for (const char *line = lw_str_c(&all); *line && !lw_str_starts(line, "-- memory");) {
        const size_t len = strcspn(line, "\n");
        lw_log(LW_LOG_INFO, "stream", "%.*s", (int)len, line);
        line += len + (line[len] == '\n');
    }
}
