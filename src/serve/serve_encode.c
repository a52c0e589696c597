/* SPDX-License-Identifier: Apache-2.0 */
/* A frame as JPEG, once for all who watch. */
#include <stdio.h>
#include <string.h>

#include "serve/serve_private.h"

#define MAGIC "LWF1"

static void begin(lw_str *to)
{
    static const char room[LW_SERVE_ROOM];
    to->len = 0;
    lw_str_add_n(to, room, sizeof room);
}

static lw_image side_of(const lw_serve *s, bool input)
{
    if (input)
        return (lw_image){.width = s->size.in_w, .height = s->size.in_h, .rgb = s->last->in};
    return (lw_image){.width = s->size.out_w, .height = s->size.out_h, .rgb = s->last->out};
}

/* Appends, and says how many bytes. */
static uint32_t add_jpeg(lw_serve *s, bool input, lw_str *to)
{
    const lw_image im = side_of(s, input);
    const size_t before = to->len;
    if (lw_jpeg_encode(&im, LW_SERVE_QUALITY, to) < 0)
        to->len = before;
    return (uint32_t)(to->len - before);
}

/*
 * A WebSocket's frame, numbers as the machine has them (little endian):
 *   0 "LWF1"  4 bytes of the input's JPEG  8 bytes of the output's  12 zero
 *   16 number (int64)  24 captured  32 taken  40 computed  48 encoded (double seconds)
 *   56 mark (16 bytes)  72 JPEG of the input, JPEG of the output
 */
static void make_message(lw_serve *s)
{
    lw_str *to = &s->message;
    const lw_serve_frame *f = s->last;
    char head[72] = MAGIC;
    begin(to);
    lw_str_add_n(to, head, sizeof head);
    const uint32_t n[2] = {add_jpeg(s, true, to), add_jpeg(s, false, to)};
    const double stamp[4] = {f->captured, f->taken, f->computed, lw_now()};
    if (to->failed)
        return;
    memcpy(head + 4, n, sizeof n);
    memcpy(head + 16, &f->number, sizeof f->number);
    memcpy(head + 24, stamp, sizeof stamp);
    memcpy(head + 56, f->mark, sizeof f->mark);
    memcpy(to->s + LW_SERVE_ROOM, head, sizeof head);
}

/* Of a multipart stream; the JPEG is that of the message where there is one. */
static void make_part(lw_serve *s, bool input, bool from_message)
{
    lw_str *to = &s->part[input], jpeg = {0};
    uint32_t n[2];
    begin(to);
    if (from_message) {
        const char *at = s->message.s + LW_SERVE_ROOM;
        memcpy(n, at + 4, sizeof n);
        lw_str_addf(to, "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %u\r\n\r\n",
                    input ? n[0] : n[1]);
        lw_str_add_n(to, at + 72 + (input ? 0 : n[0]), input ? n[0] : n[1]);
    } else {
        add_jpeg(s, input, &jpeg);
        lw_str_addf(to, "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %zu\r\n\r\n",
                    jpeg.len);
        lw_str_add_n(to, lw_str_c(&jpeg), jpeg.len);
        lw_str_clear(&jpeg);
    }
    lw_str_add(to, "\r\n");
}

void lw_serve_encode(lw_serve *s)
{
    const bool message = lw_serve_wants(s, LW_SERVE_SOCKET);
    const double began = lw_now();
    bool any = message;
    if (!s->last)
        return;
    if (message)
        make_message(s);
    for (int input = 0; input < 2; input++)
        if (lw_serve_wants(s, input ? LW_SERVE_INPUT : LW_SERVE_OUTPUT)) {
            make_part(s, input, message && !s->message.failed);
            any = true;
        }
    s->n.encoded += any;
    s->n.encode_seconds += any ? lw_now() - began : 0;
}

int lw_serve_snapshot(lw_serve *s, bool input, bool jpeg, lw_str *out)
{
    if (!s->last)
        return lw_fail(LW_EUNSUPPORTED, "there is no frame yet");
    const lw_image im = side_of(s, input);
    return jpeg ? lw_jpeg_encode(&im, 95, out) : lw_png_encode(&im, NULL, out);
}
