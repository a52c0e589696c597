/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their answers. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/serve_page.h"
#include "serve/serve_private.h"

#define JSON "application/json"
#define POLICY                                                                              \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; " \
    "connect-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; "     \
    "frame-ancestors 'none'"

/* ---- who asks -------------------------------------------------------------------------------- */

/* "" where there is none; one that is longer than any of ours is cut to "?". */
static const char *header(struct lws *wsi, enum lws_token_indexes which, char *buf, size_t size)
{
    const int n = lw_lws.hdr_total_length(wsi, which);
    buf[0] = '\0';
    if (n > 0 && lw_lws.hdr_copy(wsi, buf, (int)size, which) < 0)
        snprintf(buf, size, "?");
    return buf;
}

/* The value of `name` among the arguments behind "?". */
static const char *argument(struct lws *wsi, const char *name, char *buf, size_t size)
{
    const size_t n = strlen(name);
    char one[512]; /* one that is longer than its room would end the list */
    buf[0] = '\0';
    for (int i = 0; lw_lws.hdr_copy_fragment(wsi, one, sizeof one, WSI_TOKEN_HTTP_URI_ARGS, i) >= 0;
         i++)
        if (strncmp(one, name, n) == 0 && one[n] == '=') {
            snprintf(buf, size, "%s", one + n + 1);
            break;
        }
    return buf;
}

/* Browsers keep cookies by name of the machine, whatever the port: servers side by side have their own. */
static const char *cookie_name(const lw_serve *s, char buf[32])
{
    snprintf(buf, 32, "leeway_token_%d", s->port);
    return buf;
}

bool lw_serve_may(const lw_serve *s, struct lws *wsi, const char **why)
{
    char host[128], origin[160], text[4096], said[64], name[32];
    header(wsi, WSI_TOKEN_HOST, host, sizeof host);
    header(wsi, WSI_TOKEN_ORIGIN, origin, sizeof origin);
    *why = "this server does not answer to that name";
    if (!lw_serve_host_right(&s->place, host))
        return false;
    *why = "pages of other sites may not ask";
    if (!lw_serve_origin_right(s->o.cert != NULL, host, origin))
        return false;
    *why = "the address printed at start has a token";
    if (s->token[0] == '\0' ||
        lw_serve_token_right(s->token, argument(wsi, "token", said, sizeof said)))
        return true;
    header(wsi, WSI_TOKEN_HTTP_COOKIE, text, sizeof text);
    return lw_serve_cookie(text, cookie_name(s, name), said, sizeof said) &&
           lw_serve_token_right(s->token, said);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool add(struct lws *wsi, const char *name, const char *value, unsigned char **at,
                unsigned char *end)
{
    return lw_lws.add_http_header_by_name(wsi, (const unsigned char *)name,
                                          (const unsigned char *)value, (int)strlen(value), at,
                                          end) == 0;
}

/* n: LWS_ILLEGAL_HTTP_CONTENT_LEN without end. */
static int send_head(lw_serve *s, const lw_serve_client *c, unsigned code, const char *type,
                     lws_filepos_t n)
{
    struct lws *wsi = c->wsi;
    unsigned char buf[LWS_PRE + 1536], *begin = buf + LWS_PRE, *at = begin;
    unsigned char *end = buf + sizeof buf - 1;
    char cookie[128], name[32];
    bool ok = lw_lws.add_http_common_headers(wsi, code, type, n, &at, end) == 0;
    ok = ok && add(wsi, "cache-control:", "no-store", &at, end);
    ok = ok && add(wsi, "content-security-policy:", POLICY, &at, end);
    ok = ok && add(wsi, "cross-origin-resource-policy:", "same-origin", &at, end);
    ok = ok && add(wsi, "x-content-type-options:", "nosniff", &at, end);
    ok = ok && add(wsi, "referrer-policy:", "no-referrer", &at, end);
    if (ok && code == HTTP_STATUS_METHOD_NOT_ALLOWED)
        ok = add(wsi, "allow:", c->posts ? "GET, HEAD, POST" : "GET, HEAD", &at, end);
    if (ok && s->token[0] && code == HTTP_STATUS_OK) {
        snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/%s",
                 cookie_name(s, name), s->token, s->o.cert ? "; Secure" : "");
        ok = add(wsi, "set-cookie:", cookie, &at, end);
    }
    return ok && lw_lws.finalize_write_http_header(wsi, begin, &at, end) == 0 ? 0 : -1;
}

static int answer(lw_serve *s, lw_serve_client *c, unsigned code, const char *type,
                  const void *bytes, size_t n)
{
    static const char room[LW_SERVE_ROOM];
    c->kind = LW_SERVE_REPLY;
    c->reply.len = 0;
    lw_str_add_n(&c->reply, room, sizeof room);
    lw_str_add_n(&c->reply, bytes, n);
    s->n.refused += code >= 400;
    if (c->reply.failed || send_head(s, c, code, type, n) < 0)
        return -1;
    lw_lws.callback_on_writable(c->wsi);
    return 0;
}

static int answer_json(lw_serve *s, lw_serve_client *c, unsigned code, json_t *j)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_json_dump(j, 0, &text);
    lw_str_add(&text, "\n");
    json_decref(j);
    return answer(s, c, code, JSON, lw_str_c(&text), text.len);
}

static int refuse(lw_serve *s, lw_serve_client *c, unsigned code, const char *why)
{
    return answer_json(s, c, code, json_pack("{s:s}", "error", why));
}

/* ---- what may be asked for ------------------------------------------------------------------- */

static int get_snapshot(lw_serve *s, lw_serve_client *c)
{
    LW_CLEANUP(lw_str_clear) lw_str bytes = {0};
    char side[16], form[16];
    const bool input = strcmp(argument(c->wsi, "side", side, sizeof side), "input") == 0;
    const bool jpeg = strcmp(argument(c->wsi, "format", form, sizeof form), "jpeg") == 0;
    if (!lw_serve_within(&s->costly, LW_SERVE_COSTLY))
        return refuse(s, c, 429, "too many at once");
    if (lw_serve_snapshot(s, input, jpeg, &bytes) < 0)
        return refuse(s, c, HTTP_STATUS_SERVICE_UNAVAILABLE, lw_errmsg());
    return answer(s, c, HTTP_STATUS_OK, jpeg ? "image/jpeg" : "image/png", lw_str_c(&bytes),
                  bytes.len);
}

static int get_stream(lw_serve *s, lw_serve_client *c, lw_serve_kind kind)
{
    c->kind = LW_SERVE_REPLY; /* of a HEAD */
    if (!c->bare && !lw_serve_watch(s, c, kind))
        return refuse(s, c, HTTP_STATUS_SERVICE_UNAVAILABLE, "too many clients");
    if (send_head(s, c, HTTP_STATUS_OK, "multipart/x-mixed-replace; boundary=frame",
                  LWS_ILLEGAL_HTTP_CONTENT_LEN) < 0)
        return -1;
    lw_lws.set_timeout(c->wsi, PENDING_TIMEOUT_HTTP_CONTENT, LW_SERVE_SILENCE);
    lw_lws.callback_on_writable(c->wsi);
    return 0;
}

static const char *type_of(const char *file)
{
    return lw_str_ends(file, ".css")  ? "text/css; charset=utf-8"
           : lw_str_ends(file, ".js") ? "text/javascript; charset=utf-8"
                                      : "text/html; charset=utf-8";
}

static int get(lw_serve *s, lw_serve_client *c, const char *path)
{
    const char *file = strcmp(path, "/") == 0 ? "page.html" : path + 1;
    for (size_t i = 0; *path && i < LW_COUNT(lw_serve_page); i++)
        if (strcmp(file, lw_serve_page[i].name) == 0)
            return answer(s, c, HTTP_STATUS_OK, type_of(file), lw_serve_page[i].bytes,
                          lw_serve_page[i].n);
    if (strcmp(path, "/stats") == 0)
        return answer_json(s, c, HTTP_STATUS_OK, lw_serve_stats_json(s));
    if (strcmp(path, "/settings") == 0)
        return answer_json(s, c, HTTP_STATUS_OK,
                           lw_serve_settings_json(&s->o, &s->size, &s->asked));
    if (strcmp(path, "/snapshot") == 0)
        return get_snapshot(s, c);
    if (strcmp(path, "/stream.mjpg") == 0)
        return get_stream(s, c, LW_SERVE_OUTPUT);
    if (strcmp(path, "/input.mjpg") == 0)
        return get_stream(s, c, LW_SERVE_INPUT);
    return refuse(s, c, HTTP_STATUS_NOT_FOUND, "there is nothing of this name");
}

static int post_settings(lw_serve *s, lw_serve_client *c)
{
    lw_serve_asked asked = s->asked;
    if (!lw_serve_within(&s->costly, LW_SERVE_COSTLY * 5))
        return refuse(s, c, 429, "too many at once");
    if (lw_serve_settings_read(lw_str_c(&c->body), c->body.len, s->o.knobs, s->o.n_knobs, &asked) <
        0)
        return refuse(s, c, HTTP_STATUS_BAD_REQUEST, lw_errmsg());
    s->asked = asked;
    lw_serve_ask(s);
    lw_serve_tell(
        s, LW_SERVE_TELL_SETTINGS,
        json_pack("{s:o}", "settings", lw_serve_settings_json(&s->o, &s->size, &s->asked)));
    return answer_json(s, c, HTTP_STATUS_OK, lw_serve_settings_json(&s->o, &s->size, &s->asked));
}

/* ---- a request ------------------------------------------------------------------------------- */

/* A request with a body: its answer comes when that is there. */
static int begin_post(lw_serve *s, lw_serve_client *c)
{
    char length[24], type[64];
    int64_t n = -1;
    header(c->wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, length, sizeof length);
    header(c->wsi, WSI_TOKEN_HTTP_CONTENT_TYPE, type, sizeof type);
    if (!c->posts)
        return refuse(s, c, HTTP_STATUS_NOT_FOUND, "there is nothing of this name");
    if (strncmp(type, JSON, strlen(JSON)) != 0)
        return refuse(s, c, HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE, "settings are " JSON);
    if (lw_parse_i64(length, &n) < 0 || n < 0)
        return refuse(s, c, HTTP_STATUS_LENGTH_REQUIRED, "say Content-Length");
    if (n > LW_SERVE_POST_BYTES)
        return refuse(s, c, HTTP_STATUS_REQ_ENTITY_TOO_LARGE, "settings are smaller");
    c->body.len = 0;
    c->heard = lw_now();
    if (n > 0)
        return 0;
    return refuse(s, c, HTTP_STATUS_BAD_REQUEST, "settings are an object");
}

static int on_request(lw_serve *s, lw_serve_client *c, struct lws *wsi, const char *path)
{
    const bool post = lw_lws.hdr_total_length(wsi, WSI_TOKEN_POST_URI) > 0;
    const bool gets = lw_lws.hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0;
    const char *why;
    c->wsi = wsi;
    c->bare = lw_lws.hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
    c->posts = strcmp(path, "/settings") == 0;
    c->kind = LW_SERVE_NOTHING;
    s->n.requests++;
    if (!lw_serve_may(s, wsi, &why))
        return refuse(s, c, HTTP_STATUS_FORBIDDEN, why);
    if (!post && !gets && !c->bare)
        return refuse(s, c, HTTP_STATUS_METHOD_NOT_ALLOWED, "GET, or POST /settings");
    return post ? begin_post(s, c) : get(s, c, path);
}

static int on_body(lw_serve_client *c, const void *in, size_t n)
{
    if (c->kind == LW_SERVE_REPLY) /* refused already */
        return 0;
    if (c->body.len + n > LW_SERVE_POST_BYTES || lw_now() - c->heard > LW_SERVE_POST_SECONDS)
        return -1;
    lw_str_add_n(&c->body, in, n);
    return c->body.failed ? -1 : 0;
}

static int on_writable(lw_serve *s, lw_serve_client *c)
{
    if (c->kind == LW_SERVE_OUTPUT || c->kind == LW_SERVE_INPUT)
        return lw_serve_send_part(s, c);
    if (c->kind != LW_SERVE_REPLY)
        return 0;
    c->kind = LW_SERVE_NOTHING;
    if (!c->bare && lw_lws.write(c->wsi, (unsigned char *)c->reply.s + LW_SERVE_ROOM,
                                 c->reply.len - LW_SERVE_ROOM, LWS_WRITE_HTTP_FINAL) < 0)
        return -1;
    return lw_lws.http_transaction_completed(c->wsi) ? -1 : 0;
}

/* libwebsockets answers no CONNECT, and would keep what is no HTTP any more. */
static int refuse_connect(struct lws *wsi)
{
    static const char text[] = "HTTP/1.1 405 Method Not Allowed\r\nallow: GET, HEAD\r\n"
                               "content-length: 0\r\nconnection: close\r\n\r\n";
    unsigned char buf[LWS_PRE + sizeof text];
    memcpy(buf + LWS_PRE, text, sizeof text);
    lw_lws.write(wsi, buf + LWS_PRE, sizeof text - 1, LWS_WRITE_RAW);
    return -1;
}

int lw_serve_on_http(struct lws *wsi, enum lws_callback_reasons why, void *user, void *in, size_t n)
{
    lw_serve_client *c = user;
    switch (why) {
    case LWS_CALLBACK_HTTP:
        return on_request(lw_serve_of(wsi), c, wsi, in);
    case LWS_CALLBACK_HTTP_BODY:
        return on_body(c, in, n);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return c->kind == LW_SERVE_REPLY ? 0 : post_settings(lw_serve_of(wsi), c);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return on_writable(lw_serve_of(wsi), c);
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: /* HTTP/2 of clear text: answers are not made for it */
        return strcasecmp(in, "websocket") == 0 ? 0 : -1;
    case LWS_CALLBACK_RAW_ADOPT:
        return refuse_connect(wsi);
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: /* a WebSocket of another protocol */
        return -1;
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        if (c)
            lw_serve_unwatch(lw_serve_of(wsi), c);
        return 0;
    default:
        return 0;
    }
}
