/* SPDX-License-Identifier: Apache-2.0 */
/* The server's thread: what it knows of frames and clients. Nothing here is seen by another thread but
 * through the mailboxes. */
#ifndef LW_SERVE_PRIVATE_H
#define LW_SERVE_PRIVATE_H

#include "serve/lws/lws_calls.h"
#include "serve/serve_rules.h"

extern lw_lws_calls lw_lws; /* the module's, from lw_serve_new on */

enum {
    LW_SERVE_CLIENTS = 32,           /* that watch: one more is told 503 */
    LW_SERVE_FDS = 128,              /* connections, ours included: more wait to be accepted */
    LW_SERVE_POST_BYTES = 4096,      /* of settings */
    LW_SERVE_POST_SECONDS = 10,      /* for all of them: a byte now and then holds no connection */
    LW_SERVE_TEXT_BYTES = 256,       /* of a WebSocket's text */
    LW_SERVE_CAMERA_BYTES = 4 << 20, /* of a camera's JPEG */
    LW_SERVE_RATE = 240,             /* messages a second of one client */
    LW_SERVE_COSTLY = 10,            /* snapshots and changed settings a second, of all */
    LW_SERVE_AHEAD = 2,              /* frames sent and not yet said to be there */
    LW_SERVE_SILENCE = 20,           /* seconds until a client that takes nothing is closed */
    LW_SERVE_QUALITY = 85
};

typedef enum lw_serve_kind {
    LW_SERVE_NOTHING,
    LW_SERVE_REPLY,  /* one answer */
    LW_SERVE_OUTPUT, /* multipart, the frames computed */
    LW_SERVE_INPUT,  /* those before the network */
    LW_SERVE_SOCKET  /* both, by WebSocket */
} lw_serve_kind;

/* What sockets are told; of each the newest wins. */
typedef enum lw_serve_tell_what {
    LW_SERVE_TELL_STATS,
    LW_SERVE_TELL_SETTINGS,
    LW_SERVE_TELLS
} lw_serve_tell_what;

/* How many of something in the second that began at `since`. */
typedef struct lw_serve_rate {
    double since;
    int32_t n;
} lw_serve_rate;

/* One connection; libwebsockets makes it of zeros and frees it. */
typedef struct lw_serve_client {
    lw_serve_kind kind;
    struct lws *wsi;
    bool bare, posts; /* HEAD: the answer has no body; what is asked for takes POST */
    int64_t version;  /* of the frame sent last */
    int32_t ahead;    /* frames sent and not acknowledged */
    double heard;
    int64_t told[LW_SERVE_TELLS]; /* versions of the JSON sent last */
    lw_str body, reply;           /* reply: behind LW_SERVE_ROOM bytes */
    lw_serve_rate rate;
} lw_serve_client;

#define LW_SERVE_ROOM LWS_PRE

typedef struct lw_serve_counts {
    int64_t frames, encoded, sent, missed, requests, refused, pictures;
    double encode_seconds;
} lw_serve_counts;

struct lw_serve {
    lw_serve_options o;
    lw_serve_place place;
    char token[33]; /* "": none is asked for */
    lw_str url;
    struct lws_context *context;
    int32_t port;
    lw_serve_size size;
    lw_mailbox *frames, *stats, *notes, *asking, *camera; /* camera's thread is the server's */
    lw_serve_frame frame[LW_MAILBOX_BUFFERS];
    lw_str text[LW_MAILBOX_BUFFERS]; /* of stats */
    lw_str note[LW_MAILBOX_BUFFERS];
    lw_serve_asked asked_box[LW_MAILBOX_BUFFERS];
    lw_str picture[LW_MAILBOX_BUFFERS]; /* of the camera: mark, JPEG */
    double received[LW_MAILBOX_BUFFERS];
    /* of the thread that gives frames */
    lw_serve_asked heard;
    double given;
    /* the server's thread's own */
    lw_serve_asked asked;
    const lw_serve_frame *last; /* NULL: none yet */
    const lw_str *noted;        /* NULL: nothing yet */
    int64_t version;            /* of `last`: 1, 2, .. */
    lw_str part[2], message;    /* encoded for this version: multipart and WebSocket */
    lw_str stats_now;
    lw_str told[LW_SERVE_TELLS]; /* what sockets are sent, behind LW_SERVE_ROOM bytes */
    int64_t told_version[LW_SERVE_TELLS];
    lw_serve_client *client[LW_SERVE_CLIENTS]; /* those that watch */
    int32_t filling;                           /* of picture; -1: it is full */
    lw_serve_rate costly;
    lw_serve_counts n;
};

/* serve_encode.c: the newest frame, once for all who watch. */
void lw_serve_encode(lw_serve *s);
int lw_serve_snapshot(lw_serve *s, bool input, bool jpeg, lw_str *out);
/* serve_watch.c: clients that are sent frames. */
bool lw_serve_watch(lw_serve *s, lw_serve_client *c, lw_serve_kind kind); /* false: too many */
void lw_serve_unwatch(lw_serve *s, lw_serve_client *c);
bool lw_serve_wants(const lw_serve *s, lw_serve_kind kind);
/* A newer frame is there: who was not sent the last one never will be. */
void lw_serve_count_missed(lw_serve *s);
void lw_serve_wake(lw_serve *s); /* those who can be sent something are asked to take it */
int lw_serve_send_part(lw_serve *s, lw_serve_client *c);
int lw_serve_on_socket(struct lws *wsi, enum lws_callback_reasons why, void *user, void *in,
                       size_t n);
/* serve_http.c: requests. */
int lw_serve_on_http(struct lws *wsi, enum lws_callback_reasons why, void *user, void *in,
                     size_t n);
/* Whether who asks may (serve_rules.h); else *why says a line. */
bool lw_serve_may(const lw_serve *s, struct lws *wsi, const char **why);
/* serve.c */
lw_serve *lw_serve_of(struct lws *wsi);
bool lw_serve_within(lw_serve_rate *r, int32_t most); /* one more in this second */
void lw_serve_ask(lw_serve *s);                       /* `asked` to who gives frames */
json_t *lw_serve_stats_json(const lw_serve *s);
void lw_serve_tell(lw_serve *s, lw_serve_tell_what what, json_t *j); /* to all sockets; steals j */

#endif
