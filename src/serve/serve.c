/* SPDX-License-Identifier: Apache-2.0 */
/* The server's life: bound, started, woken by frames, closed. */
#include "serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/serve_private.h"

#define IDLE 0.25 /* seconds from frame to frame while nobody looks: a snapshot is no older */

static const struct lws_protocols protocols[] = {
    {"http", lw_serve_on_http, sizeof(lw_serve_client), 4096, 0, NULL, 0},
    {"leeway", lw_serve_on_socket, sizeof(lw_serve_client), 65536, 0, NULL, 0},
    {NULL, NULL, 0, 0, 0, NULL, 0}};

lw_lws_calls lw_lws;

bool lw_serve_known(void)
{
    return lw_module_there("lws");
}

static int open_module(void)
{
    const void *calls;
    if (lw_lws.set_log_level) /* threads of other servers read it */
        return 0;
    LW_TRY(lw_module_open("lws", LW_LWS_VERSION, &calls));
    lw_lws = *(const lw_lws_calls *)calls;
    lw_lws.set_log_level(0, NULL);
    return 0;
}

lw_serve *lw_serve_of(struct lws *wsi)
{
    return lw_lws.context_user(lw_lws.get_context(wsi));
}

bool lw_serve_within(lw_serve_rate *r, int32_t most)
{
    const double now = lw_now();
    if (now - r->since >= 1)
        *r = (lw_serve_rate){.since = now};
    return ++r->n <= most;
}

/* ---- its thread ------------------------------------------------------------------------------ */

void lw_serve_ask(lw_serve *s)
{
    s->asked_box[lw_mailbox_buffer(s->asking)] = s->asked;
    (void)lw_mailbox_put(s->asking, 0);
}

json_t *lw_serve_stats_json(const lw_serve *s)
{
    const lw_serve_counts *n = &s->n;
    json_error_t err;
    json_t *stream = json_loadb(lw_str_c(&s->stats_now), s->stats_now.len, 0, &err);
    int32_t watching = 0;
    for (int i = 0; i < LW_SERVE_CLIENTS; i++)
        watching += s->client[i] != NULL;
    return json_pack(
        "{s:o, s:s, s:{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}}", "stream",
        stream ? stream : json_null(), "note", s->noted ? lw_str_c(s->noted) : "", "serve",
        "watching", watching, "frames", (json_int_t)n->frames, "encoded", (json_int_t)n->encoded,
        "sent", (json_int_t)n->sent, "missed", (json_int_t)n->missed, "requests",
        (json_int_t)n->requests, "refused", (json_int_t)n->refused, "camera_pictures",
        (json_int_t)n->pictures, "encode_ms",
        lw_json_real(n->encoded ? n->encode_seconds / (double)n->encoded * 1e3 : 0), "frame_age_ms",
        s->last ? lw_json_real((lw_now() - s->last->computed) * 1e3) : json_null());
}

void lw_serve_tell(lw_serve *s, lw_serve_tell_what what, json_t *j)
{
    static const char room[LW_SERVE_ROOM];
    lw_str *told = &s->told[what];
    told->len = 0;
    lw_str_add_n(told, room, sizeof room);
    lw_json_dump(j, 0, told);
    json_decref(j);
    s->told_version[what]++;
    lw_serve_wake(s);
}

/* What came since the last turn. LW_MAILBOX_END: the server is closed. */
static int take_news(lw_serve *s)
{
    int buffer;
    int rc = lw_mailbox_take(s->frames, 0, &buffer);
    if (rc == LW_MAILBOX_END)
        return rc;
    if (rc == 0) {
        lw_serve_count_missed(s);
        s->last = &s->frame[buffer];
        s->version++;
        s->n.frames++;
        lw_serve_encode(s);
        lw_serve_wake(s);
    }
    bool news = false;
    if (lw_mailbox_take(s->stats, 0, &buffer) == 0) {
        s->stats_now.len = 0;
        lw_str_add(&s->stats_now, lw_str_c(&s->text[buffer]));
        news = true;
    }
    if (lw_mailbox_take(s->notes, 0, &buffer) == 0) {
        s->noted = &s->note[buffer];
        news = true;
    }
    if (news)
        lw_serve_tell(s, LW_SERVE_TELL_STATS, lw_serve_stats_json(s));
    return 0;
}

/* Until a camera's picture lies in `buffer`: that is what this thread gives. */
static int serve(void *arg, int buffer)
{
    lw_serve *s = arg;
    s->filling = buffer;
    while (s->filling >= 0) {
        int rc = lw_lws.service(s->context, 0) < 0 ? LW_MAILBOX_END : take_news(s);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- made and closed ------------------------------------------------------------------------- */

/* The reason why a port cannot be had, which the library keeps to itself. */
static int try_to_bind(const lw_serve *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->place.port)};
    const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, s->place.ip, &a.sin_addr);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (bound)
        return 0;
    return lw_fail(lw_errno_code(why), "--serve %s:%d: %s%s", s->place.host, s->place.port,
                   strerror(why), why == EADDRINUSE ? ": name another port" : "");
}

static int check_file(const char *path)
{
    return access(path, R_OK) == 0 ? 0 : lw_fail(LW_EIO, "--tls: %s: %s", path, strerror(errno));
}

static int make_token(lw_serve *s)
{
    uint8_t bytes[16];
    if (s->place.loopback)
        return 0;
    if (!s->o.cert && !s->o.insecure)
        return lw_fail(LW_EUSAGE,
                       "--serve %s: others reach this address: add --tls CERT,KEY, or --insecure",
                       s->o.address);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return lw_fail(LW_EIO, "--serve: no random numbers for a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* libwebsockets ignores SIGPIPE and takes SIGABRT: both belong to the program. */
static struct lws_context *make_context(const struct lws_context_creation_info *info)
{
    struct sigaction broken, aborted;
    sigaction(SIGPIPE, NULL, &broken);
    sigaction(SIGABRT, NULL, &aborted);
    struct lws_context *c = lw_lws.create_context(info);
    sigaction(SIGPIPE, &broken, NULL);
    sigaction(SIGABRT, &aborted, NULL);
    return c;
}

static int listen_there(lw_serve *s)
{
    struct lws_context_creation_info info = {
        .port = s->place.port,
        .iface = strcmp(s->place.ip, "0.0.0.0") == 0 ? NULL : s->place.ip,
        .protocols = protocols,
        .user = s,
        .server_string = "leeway",
        .vhost_name = "leeway",
        .fd_limit_per_thread = LW_SERVE_FDS,
        .max_http_header_data2 = 4096,
        .timeout_secs = 10,
        .keepalive_timeout = 10,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DISABLE_IPV6 |
                   LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND};
    if (s->o.cert) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = s->o.cert;
        info.ssl_private_key_filepath = s->o.key;
        info.alpn = "http/1.1";
    }
    s->context = make_context(&info);
    struct lws_vhost *host = s->context ? lw_lws.create_vhost(s->context, &info) : NULL;
    if (!host)
        return lw_fail(LW_EIO, "--serve %s: cannot listen%s", s->o.address,
                       s->o.cert ? ": is --tls a certificate and its key (PEM)?" : "");
    s->port = lw_lws.get_vhost_listen_port(host);
    lw_str_addf(&s->url, "%s://%s:%d/%s%s", s->o.cert ? "https" : "http", s->place.host, s->port,
                s->token[0] ? "?token=" : "", s->token);
    return s->url.failed ? LW_ENOMEM : 0;
}

int lw_serve_new(const lw_serve_options *o, lw_serve **out)
{
    LW_CLEANUP(lw_serve_close) lw_serve *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    s->o = *o;
    LW_ASSERT(o->n_knobs <= LW_SERVE_KNOBS, "%d settings", o->n_knobs);
    LW_TRY(lw_serve_place_read(o->address, &s->place));
    LW_TRY(make_token(s));
    if (o->cert) {
        LW_TRY(check_file(o->cert));
        LW_TRY(check_file(o->key));
    }
    LW_TRY(open_module());
    LW_TRY(try_to_bind(s));
    for (int32_t i = 0; i < o->n_knobs; i++)
        s->asked.value[i] = o->knobs[i].value;
    s->heard = s->asked;
    LW_TRY(lw_mailbox_new(false, &s->frames));
    LW_TRY(lw_mailbox_new(false, &s->stats));
    LW_TRY(lw_mailbox_new(false, &s->notes));
    LW_TRY(lw_mailbox_new(false, &s->asking));
    LW_TRY(lw_mailbox_new(false, &s->camera));
    LW_TRY(listen_there(s));
    *out = lw_steal(&s);
    return 0;
}

int lw_serve_start(lw_serve *s, const lw_serve_size *size)
{
    const size_t in = (size_t)size->in_w * (size_t)size->in_h * 3;
    const size_t out = (size_t)size->out_w * (size_t)size->out_h * 3;
    s->size = *size;
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++) {
        s->frame[i].in = lw_calloc(in, 1);
        s->frame[i].out = lw_calloc(out, 1);
        if (!s->frame[i].in || !s->frame[i].out)
            return LW_ENOMEM;
    }
    return lw_mailbox_start_giver(s->camera, serve, s);
}

const char *lw_serve_url(const lw_serve *s)
{
    return lw_str_c(&s->url);
}

int32_t lw_serve_port(const lw_serve *s)
{
    return s->port;
}

void lw_serve_close(lw_serve **pp)
{
    lw_serve *s = *pp;
    if (!s)
        return;
    if (s->frames)
        (void)lw_mailbox_end(s->frames);
    if (s->context)
        lw_lws.cancel_service(s->context);
    lw_mailbox_free(&s->camera); /* waits for the thread */
    if (s->context)
        lw_lws.context_destroy(s->context);
    lw_mailbox_free(&s->frames);
    lw_mailbox_free(&s->stats);
    lw_mailbox_free(&s->notes);
    lw_mailbox_free(&s->asking);
    for (int i = 0; i < LW_MAILBOX_BUFFERS; i++) {
        lw_free(&s->frame[i].in);
        lw_free(&s->frame[i].out);
        lw_str_clear(&s->text[i]);
        lw_str_clear(&s->note[i]);
        lw_str_clear(&s->picture[i]);
    }
    for (int i = 0; i < 2; i++)
        lw_str_clear(&s->part[i]);
    lw_str_clear(&s->message);
    lw_str_clear(&s->stats_now);
    for (int i = 0; i < LW_SERVE_TELLS; i++)
        lw_str_clear(&s->told[i]);
    lw_str_clear(&s->url);
    lw_free(pp);
}

/* ---- other threads --------------------------------------------------------------------------- */

void lw_serve_control(lw_serve *s, lw_serve_asked *out)
{
    int buffer;
    if (lw_mailbox_take(s->asking, 0, &buffer) == 0)
        s->heard = s->asked_box[buffer];
    *out = s->heard;
}

lw_serve_frame *lw_serve_frame_begin(lw_serve *s, bool watched)
{
    const double now = lw_now();
    if (!watched && now - s->given < IDLE)
        return NULL;
    s->given = now;
    lw_serve_frame *f = &s->frame[lw_mailbox_buffer(s->frames)];
    memset(f->mark, 0, sizeof f->mark);
    return f;
}

void lw_serve_frame_give(lw_serve *s)
{
    (void)lw_mailbox_put(s->frames, 0);
    lw_lws.cancel_service(s->context);
}

static void tell_line(lw_serve *s, lw_mailbox *box, lw_str *of, const char *line)
{
    lw_str *text = &of[lw_mailbox_buffer(box)];
    text->len = 0;
    lw_str_add(text, line);
    (void)lw_mailbox_put(box, 0);
    lw_lws.cancel_service(s->context);
}

void lw_serve_note(lw_serve *s, const char *line)
{
    char clean[512];
    lw_clean(clean, sizeof clean, line);
    tell_line(s, s->notes, s->note, clean);
}

void lw_serve_stats(lw_serve *s, const char *json)
{
    tell_line(s, s->stats, s->text, json);
}

int lw_serve_camera(lw_serve *s, double seconds, lw_serve_picture *out)
{
    int buffer;
    int rc = lw_mailbox_take(s->camera, seconds, &buffer);
    if (rc != 0)
        return rc;
    const lw_str *p = &s->picture[buffer];
    *out = (lw_serve_picture){
        .jpeg = p->s + LW_SERVE_MARK, .n = p->len - LW_SERVE_MARK, .received = s->received[buffer]};
    memcpy(out->mark, p->s, LW_SERVE_MARK);
    return 0;
}
