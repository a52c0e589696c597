/* SPDX-License-Identifier: Apache-2.0 */
/* The MD5 sum (RFC 1321) of all frames as RGB bytes: what `ffmpeg -pix_fmt rgb24 -f md5` prints. For
 * comparing, not for safety. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frames/frames_sink.h"

typedef struct md5 {
    uint32_t state[4], sine[64];
    uint8_t block[64];
    uint64_t bytes;
} md5;

static void md5_begin(md5 *m)
{
    static const uint32_t first[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    memcpy(m->state, first, sizeof first);
    m->bytes = 0;
    for (int i = 0; i < 64; i++)
        m->sine[i] = (uint32_t)floor(4294967296.0 * fabs(sin(i + 1)));
}

static uint32_t word_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void md5_block(md5 *m, const uint8_t *p)
{
    static const uint8_t turn[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static const uint8_t step[4] = {1, 5, 3, 7}, start[4] = {0, 1, 5, 0};
    uint32_t a = m->state[0], b = m->state[1], c = m->state[2], d = m->state[3];
    for (int i = 0; i < 64; i++) {
        const int round = i / 16, k = (step[round] * i + start[round]) % 16;
        const uint32_t f = round == 0   ? (b & c) | (~b & d)
                           : round == 1 ? (d & b) | (~d & c)
                           : round == 2 ? b ^ c ^ d
                                        : c ^ (b | ~d);
        const uint32_t sum = a + f + m->sine[i] + word_at(p + (ptrdiff_t)4 * k);
        const int r = turn[round][i % 4];
        a = d;
        d = c;
        c = b;
        b += sum << r | sum >> (32 - r);
    }
    m->state[0] += a;
    m->state[1] += b;
    m->state[2] += c;
    m->state[3] += d;
}

static void md5_add(md5 *m, const uint8_t *p, size_t n)
{
    while (n > 0) {
        const size_t at = m->bytes % 64, k = LW_MIN(64 - at, n);
        if (k == 64) {
            md5_block(m, p);
        } else {
            memcpy(m->block + at, p, k);
            if (at + k == 64)
                md5_block(m, m->block);
        }
        m->bytes += k;
        p += k;
        n -= k;
    }
}

static void md5_end(md5 *m, char text[64])
{
    static const uint8_t pad[64] = {0x80};
    const uint64_t bits = m->bytes * 8;
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)(bits >> 8 * i);
    md5_add(m, pad, 1 + (119 - m->bytes % 64) % 64);
    md5_add(m, size, 8);
    for (int i = 0; i < 16; i++)
        snprintf(text + (ptrdiff_t)2 * i, 3, "%02x", m->state[i / 4] >> 8 * (i % 4) & 255);
}

static int md5_open(lw_frame_sink *s, const char *spec)
{
    (void)spec;
    s->format.form = LW_PIXELS_RGB;
    md5 *m = s->self = lw_calloc(1, sizeof *m);
    if (!m)
        return LW_ENOMEM;
    md5_begin(m);
    return 0;
}

static int md5_put(lw_frame_sink *s, const uint8_t *rgb)
{
    md5_add(s->self, rgb, (size_t)s->format.w * (size_t)s->format.h * 3);
    return 0;
}

static int md5_finish(lw_frame_sink *s, char text[64])
{
    md5_end(s->self, text);
    return 0;
}

static void md5_close(lw_frame_sink *s)
{
    lw_free(&s->self);
}

const lw_frame_sink_def lw_frames_to_md5 = {"md5",   "md5",      false,    md5_open,
                                            md5_put, md5_finish, md5_close};
