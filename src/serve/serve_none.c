/* SPDX-License-Identifier: Apache-2.0 */
/* A build without libwebsockets: there is never a server. */
#include "serve/serve.h"

bool lw_serve_known(void)
{
    return false;
}

int lw_serve_new(const lw_serve_options *o, lw_serve **out)
{
    (void)out;
    return lw_fail(LW_EUNSUPPORTED, "--serve %s: this build has no server (libwebsockets)",
                   o->address);
}

const char *lw_serve_url(const lw_serve *s)
{
    (void)s;
    return "";
}

int32_t lw_serve_port(const lw_serve *s)
{
    (void)s;
    return 0;
}

int lw_serve_start(lw_serve *s, const lw_serve_size *size)
{
    (void)s;
    (void)size;
    return LW_EUNSUPPORTED;
}

void lw_serve_close(lw_serve **pp)
{
    (void)pp;
}

void lw_serve_control(lw_serve *s, lw_serve_asked *out)
{
    (void)s;
    *out = (lw_serve_asked){0};
}

lw_serve_frame *lw_serve_frame_begin(lw_serve *s, bool watched)
{
    (void)watched;
    (void)s;
    return NULL;
}

void lw_serve_frame_give(lw_serve *s)
{
    (void)s;
}

void lw_serve_note(lw_serve *s, const char *line)
{
    (void)s;
    (void)line;
}

void lw_serve_stats(lw_serve *s, const char *json)
{
    (void)s;
    (void)json;
}

int lw_serve_camera(lw_serve *s, double seconds, lw_serve_picture *out)
{
    (void)s;
    (void)seconds;
    (void)out;
    return LW_MAILBOX_END;
}
