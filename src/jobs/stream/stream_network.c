/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what a stream computes with. */
#include "jobs/stream/stream_network.h"

int lw_stream_network_open(lw_stream_network *n, const lw_stream_config *c, const lw_pixels *in)
{
    LW_TRY(lw_session_device_with(c->threads, c->conv, &n->dev));
    LW_TRY(lw_translator_new(n->dev, &c->network, in, &n->translator));
    lw_translator_size(n->translator, &n->w, &n->h);
    return 0;
}

void lw_stream_network_close(lw_stream_network *n)
{
    lw_translator_free(&n->translator);
    lw_backend_close(&n->dev);
}
