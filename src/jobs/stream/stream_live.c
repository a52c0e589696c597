/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stream/stream_live.h"

#include <stdio.h>
#include <string.h>

int lw_stream_live_open(lw_stream_live *l, const lw_stream_config *c)
{
    if (!c->serve)
        return 0;
    if (c->n_models > 0) /* the page's choice says which it is */
        snprintf(l->title, sizeof l->title, "%s", c->input);
    else
        snprintf(l->title, sizeof l->title, "%s, %s", c->input, c->network.model);
    lw_stream_settings_init(&l->settings, c);
    const lw_serve_options o = {.address = c->serve,
                                .cert = c->n_tls ? c->tls[0] : NULL,
                                .key = c->n_tls ? c->tls[1] : NULL,
                                .insecure = c->insecure,
                                .knobs = l->settings.knob,
                                .n_knobs = l->settings.n,
                                .title = l->title};
    return lw_serve_new(&o, &l->serve);
}

int lw_stream_live_start(lw_stream_live *l, const lw_stream_intake *in, bool beside, int32_t w,
                         int32_t h, const lw_observer *obs)
{
    const lw_frame_format *f = &in->source->format;
    const lw_serve_size size = {
        .in_w = f->w,
        .in_h = f->h,
        .out_w = beside ? w / 2 : w,
        .out_h = h,
        .camera_fps = lw_frame_source_of_page(in->source) ? LW_MAX(f->rate / f->per, 1) : 0};
    if (!l->serve)
        return 0;
    l->kernels = in->kernels;
    l->pixels = &in->pixels;
    l->beside = beside;
    l->w = size.out_w;
    l->h = h;
    LW_TRY(lw_serve_start(l->serve, &size));
    lw_observe_say(obs, "page: %s", lw_serve_url(l->serve));
    return 0;
}

void lw_stream_live_close(lw_stream_live *l)
{
    lw_serve_close(&l->serve);
    lw_stream_settings_close(&l->settings);
}

void lw_stream_live_obey(lw_stream_live *l, lw_stream_network *n, const lw_observer *obs)
{
    const int64_t before = l->asked.resets;
    if (!l->serve)
        return;
    lw_serve_control(l->serve, &l->asked);
    lw_stream_settings_apply(&l->settings, l->asked.value, n, obs);
    if (l->settings.noted)
        lw_serve_note(l->serve, l->settings.note);
    l->settings.noted = false;
    if (l->asked.resets != before)
        lw_stream_network_reset(n);
}

void lw_stream_live_show(lw_stream_live *l, const uint8_t *in, const uint8_t *out,
                         const lw_stream_stamps *f)
{
    lw_serve_frame *to = l->serve ? lw_serve_frame_begin(l->serve, f->watched) : NULL;
    if (!to)
        return;
    l->kernels->pixels.to_u8(to->in, in, l->pixels, 0, l->pixels->bands);
    const size_t row = (size_t)l->w * 3;
    for (int32_t y = 0; l->beside && y < l->h; y++)
        memcpy(to->out + (size_t)y * row, out + (2 * (size_t)y + 1) * row, row);
    if (!l->beside)
        memcpy(to->out, out, row * (size_t)l->h);
    to->number = f->number;
    to->captured = f->captured;
    to->taken = f->taken;
    to->computed = f->computed;
    memcpy(to->mark, f->mark, sizeof to->mark);
    lw_serve_frame_give(l->serve);
}

void lw_stream_live_note(lw_stream_live *l, const char *line)
{
    if (l->serve)
        lw_serve_note(l->serve, line);
}

void lw_stream_live_second(lw_stream_live *l, const lw_stream_report *r)
{
    if (!l->serve)
        return;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    json_t *j = lw_stream_report_json(r);
    lw_json_dump(j, 0, &text);
    json_decref(j);
    lw_serve_stats(l->serve, lw_str_c(&text));
}

int lw_stream_live_camera(lw_stream_live *l, double seconds, lw_frame_picture *out)
{
    lw_serve_picture p;
    int rc = lw_serve_camera(l->serve, seconds, &p);
    if (rc != 0)
        return rc;
    *out = (lw_frame_picture){.jpeg = p.jpeg, .n = p.n, .received = p.received};
    memcpy(out->mark, p.mark, sizeof out->mark);
    return 0;
}
