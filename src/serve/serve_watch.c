/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that are sent frames: the newest one when they are ready for it, never a queue. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "serve/serve_private.h"

/* ---- who watches ----------------------------------------------------------------------------- */

static void ask_if_changed(lw_serve *s)
{
    bool watched = false;
    for (int i = 0; i < LW_SERVE_CLIENTS; i++)
        watched |= s->client[i] != NULL;
    if (watched == s->asked.watched)
        return;
    s->asked.watched = watched;
    lw_serve_ask(s);
}

/* What lies in the kernel's buffers is old when it arrives: they hold little. */
static void keep_short(struct lws *wsi)
{
    const int bytes = 128 << 10, unsent = 16 << 10, yes = 1, fd = lw_lws.get_socket_fd(wsi);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Streams are not read, so who left one is noticed when it is written to, or here. */
static void forget_gone(lw_serve *s)
{
    for (int i = 0; i < LW_SERVE_CLIENTS; i++) {
        lw_serve_client *c = s->client[i];
        char byte;
        ssize_t n = c ? recv(lw_lws.get_socket_fd(c->wsi), &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 1;
        if (n > 0 || (n < 0 && errno == EAGAIN))
            continue;
        lw_lws.set_timeout(c->wsi, PENDING_TIMEOUT_LAGGING, LWS_TO_KILL_ASYNC);
        s->client[i] = NULL;
    }
}

static bool is_full(const lw_serve *s)
{
    for (int i = 0; i < LW_SERVE_CLIENTS; i++)
        if (!s->client[i])
            return false;
    return true;
}

bool lw_serve_watch(lw_serve *s, lw_serve_client *c, lw_serve_kind kind)
{
    if (is_full(s))
        forget_gone(s);
    for (int i = 0; i < LW_SERVE_CLIENTS; i++) {
        if (s->client[i])
            continue;
        const bool wanted = lw_serve_wants(s, kind);
        s->client[i] = c;
        c->kind = kind;
        c->version = 0;
        c->heard = lw_now();
        keep_short(c->wsi);
        if (!wanted)
            lw_serve_encode(s); /* the last frame, for who comes while none arrive */
        ask_if_changed(s);
        return true;
    }
    return false;
}

void lw_serve_unwatch(lw_serve *s, lw_serve_client *c)
{
    for (int i = 0; i < LW_SERVE_CLIENTS; i++)
        if (s->client[i] == c)
            s->client[i] = NULL;
    c->kind = LW_SERVE_NOTHING;
    lw_str_clear(&c->body);
    lw_str_clear(&c->reply);
    ask_if_changed(s);
}

bool lw_serve_wants(const lw_serve *s, lw_serve_kind kind)
{
    for (int i = 0; i < LW_SERVE_CLIENTS; i++)
        if (s->client[i] && s->client[i]->kind == kind)
            return true;
    return false;
}

void lw_serve_wake(lw_serve *s)
{
    for (int i = 0; i < LW_SERVE_CLIENTS; i++) {
        lw_serve_client *c = s->client[i];
        if (!c)
            continue;
        if (c->kind == LW_SERVE_SOCKET && c->ahead > 0 && lw_now() - c->heard > LW_SERVE_SILENCE)
            lw_lws.set_timeout(c->wsi, PENDING_TIMEOUT_LAGGING, LWS_TO_KILL_ASYNC);
        else
            lw_lws.callback_on_writable(c->wsi);
    }
}

static void count_sent(lw_serve *s, lw_serve_client *c)
{
    s->n.sent++;
    c->version = s->version;
}

void lw_serve_count_missed(lw_serve *s)
{
    for (int i = 0; i < LW_SERVE_CLIENTS; i++)
        s->n.missed += s->client[i] && s->client[i]->version != s->version;
}

static int send_bytes(struct lws *wsi, lw_str *text, enum lws_write_protocol how)
{
    const size_t n = text->len - LW_SERVE_ROOM;
    return lw_lws.write(wsi, (unsigned char *)text->s + LW_SERVE_ROOM, n, how) < 0 ? -1 : 0;
}

int lw_serve_send_part(lw_serve *s, lw_serve_client *c)
{
    lw_str *part = &s->part[c->kind == LW_SERVE_INPUT];
    if (!s->last || c->version == s->version || part->failed || part->len <= LW_SERVE_ROOM) {
        lw_lws.set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0); /* it has taken all there is */
        return 0;
    }
    count_sent(s, c);
    lw_lws.set_timeout(c->wsi, PENDING_TIMEOUT_HTTP_CONTENT, LW_SERVE_SILENCE);
    lw_lws.callback_on_writable(c->wsi);
    return send_bytes(c->wsi, part, LWS_WRITE_HTTP);
}

/* ---- WebSockets ------------------------------------------------------------------------------ */

/* What no page of ours says: closed at once, for a farewell would be waited for. */
static int refuse(lw_serve *s)
{
    s->n.refused++;
    return -1;
}

/* One thing a turn: text before frames. */
static int send_next(lw_serve *s, lw_serve_client *c)
{
    if (c->reply.len > LW_SERVE_ROOM) {
        int rc = send_bytes(c->wsi, &c->reply, LWS_WRITE_TEXT);
        c->reply.len = 0;
        lw_lws.callback_on_writable(c->wsi);
        return rc;
    }
    for (int i = 0; i < LW_SERVE_TELLS; i++) {
        if (c->told[i] == s->told_version[i] || s->told[i].failed)
            continue;
        c->told[i] = s->told_version[i];
        lw_lws.callback_on_writable(c->wsi);
        return send_bytes(c->wsi, &s->told[i], LWS_WRITE_TEXT);
    }
    if (!s->last || c->version == s->version || c->ahead >= LW_SERVE_AHEAD || s->message.failed ||
        s->message.len <= LW_SERVE_ROOM)
        return 0;
    count_sent(s, c);
    if (c->ahead++ == 0)
        c->heard = lw_now();
    return send_bytes(c->wsi, &s->message, LWS_WRITE_BINARY);
}

/* "a": a frame arrived. "t<digits>": what is the time? "t<digits> <seconds>" is the answer. */
static int on_text(lw_serve *s, lw_serve_client *c)
{
    static const char room[LW_SERVE_ROOM];
    const char *text = lw_str_c(&c->body);
    if (strcmp(text, "a") == 0) {
        c->ahead -= c->ahead > 0;
        c->heard = lw_now();
    } else if (text[0] == 't' && c->body.len <= 32 &&
               strspn(text + 1, "0123456789.") == c->body.len - 1) {
        c->reply.len = 0;
        lw_str_add_n(&c->reply, room, sizeof room);
        lw_str_addf(&c->reply, "%s %.6f", text, lw_now());
    } else {
        return refuse(s); /* not understood */
    }
    lw_lws.callback_on_writable(c->wsi);
    return 0;
}

static int on_picture(lw_serve *s, lw_serve_client *c)
{
    if (!s->size.camera_fps)
        return refuse(s); /* no camera is asked for */
    if (c->body.len <= LW_SERVE_MARK)
        return refuse(s); /* no picture */
    s->n.pictures++;
    if (s->filling < 0) /* this turn has its picture */
        return 0;
    const lw_str old = s->picture[s->filling];
    s->picture[s->filling] = c->body;
    s->received[s->filling] = lw_now();
    c->body = old;
    s->filling = -1;
    return 0;
}

static int receive(lw_serve *s, lw_serve_client *c, const void *in, size_t n)
{
    const bool binary = lw_lws.frame_is_binary(c->wsi);
    const size_t most = binary ? LW_SERVE_CAMERA_BYTES : LW_SERVE_TEXT_BYTES;
    if (lw_lws.is_first_fragment(c->wsi))
        c->body.len = 0;
    if (n > most || c->body.len + n > most || lw_lws.remaining_packet_payload(c->wsi) > most)
        return refuse(s); /* too large */
    lw_str_add_n(&c->body, in, n);
    if (c->body.failed)
        return -1;
    if (lw_lws.remaining_packet_payload(c->wsi) > 0 || !lw_lws.is_final_fragment(c->wsi))
        return 0;
    /* frames are answered as fast as they come: no more of those than were sent */
    const bool owed = !binary && c->ahead > 0 && strcmp(lw_str_c(&c->body), "a") == 0;
    if (!owed && !lw_serve_within(&c->rate, LW_SERVE_RATE))
        return refuse(s); /* too many messages */
    int rc = binary ? on_picture(s, c) : on_text(s, c);
    c->body.len = 0;
    return rc;
}

static int established(lw_serve *s, lw_serve_client *c, struct lws *wsi)
{
    c->wsi = wsi;
    if (!lw_serve_watch(s, c, LW_SERVE_SOCKET))
        return refuse(s); /* too many clients */
    lw_lws.callback_on_writable(wsi);
    return 0;
}

/* Before the handshake is answered. */
static int filter(lw_serve *s, struct lws *wsi)
{
    char path[16] = "";
    const char *why;
    if (lw_lws.hdr_copy(wsi, path, sizeof path, WSI_TOKEN_GET_URI) > 0 &&
        strcmp(path, "/ws") == 0 && lw_serve_may(s, wsi, &why))
        return 0;
    s->n.refused++;
    return -1;
}

int lw_serve_on_socket(struct lws *wsi, enum lws_callback_reasons why, void *user, void *in,
                       size_t n)
{
    lw_serve *s = lw_serve_of(wsi);
    lw_serve_client *c = user;
    switch (why) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return filter(s, wsi);
    case LWS_CALLBACK_ESTABLISHED:
        return established(s, c, wsi);
    case LWS_CALLBACK_RECEIVE:
        return receive(s, c, in, n);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return send_next(s, c);
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_WS_SERVER_DROP_PROTOCOL:
        if (c)
            lw_serve_unwatch(s, c);
        return 0;
    default:
        return 0;
    }
}
