/* SPDX-License-Identifier: Apache-2.0 */
/* The camera of a page: JPEGs as they come, of the size that was asked for; others are passed over. */
#include <string.h>

#include "formats/formats.h"
#include "frames/frames_source.h"

#define WAIT 0.05 /* seconds between two questions whether to stop */

static int browser_open(lw_frame_source *s, const char *spec, const lw_frame_options *o)
{
    int64_t w = 320, h = 240, fps = 30;
    if (lw_frame_size_read(strchr(spec, ':') ? strchr(spec, ':') + 1 : "", &w, &h, &fps) < 0 ||
        lw_frame_format_check(spec, w, h, fps, 1) < 0)
        return lw_fail(LW_EUSAGE, "--input %s: not browser:WxH@FPS", spec);
    if (!o->camera)
        return lw_fail(LW_EUSAGE, "--input %s: it is a page's camera: add --serve", spec);
    s->self = (void *)o;
    s->live = true;
    s->format = lw_frame_format_rgb((int32_t)w, (int32_t)h, (int32_t)fps);
    return 0;
}

/* 1: it is no picture of this size. */
static int decode(const lw_frame_source *s, const lw_frame_picture *p, uint8_t *bytes)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    int32_t w, h;
    if (lw_image_parse_size("camera", p->jpeg, p->n, &w, &h) < 0 || w != s->format.w ||
        h != s->format.h || lw_image_parse("camera", p->jpeg, p->n, &im) < 0)
        return 1;
    memcpy(bytes, im.rgb, (size_t)w * (size_t)h * 3);
    return 0;
}

static int browser_next(lw_frame_source *s, uint8_t *bytes, double *captured)
{
    const lw_frame_options *o = s->self;
    lw_frame_picture p;
    for (;;) {
        int rc = o->camera(o->self, WAIT, &p);
        if (o->stopped && o->stopped(o->self))
            return lw_fail(LW_ESTOPPED, "interrupted");
        if (rc == LW_MAILBOX_NOT_YET)
            continue;
        if (rc != 0)
            return rc;
        if (decode(s, &p, bytes) != 0) {
            s->skipped++;
            continue;
        }
        *captured = p.received;
        memcpy(s->mark, p.mark, sizeof s->mark);
        return 0;
    }
}

static int browser_rewind(lw_frame_source *s)
{
    return lw_fail(LW_EUSAGE, "%s: a camera does not begin again", lw_str_c(&s->name));
}

static void browser_close(lw_frame_source *s)
{
    (void)s;
}

const lw_frame_source_def lw_frames_from_browser = {
    "browser", "browser[:WxH@FPS]", browser_open, browser_next, browser_rewind, browser_close};
