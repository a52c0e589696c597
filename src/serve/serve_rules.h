/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may speak to the server. Functions of texts alone: they are fuzzed.
 *
 * On this machine's own address nobody needs a token, but a browser there also runs pages of other
 * sites. They are kept out by two headers that scripts cannot change. Host has to name this machine:
 * a name that was made to resolve to it (DNS rebinding) does not. Origin, if there is one, has to be
 * this server's own page; browsers send it with every POST and WebSocket, and only these change
 * anything. An address that others reach asks for a token as well.
 */
#ifndef LW_SERVE_RULES_H
#define LW_SERVE_RULES_H

#include "serve/serve.h"

typedef struct lw_serve_place {
    char host[64]; /* as typed: "127.0.0.1", "localhost", "0.0.0.0" */
    char ip[16];   /* what is bound */
    int32_t port;
    bool loopback; /* nobody else reaches it */
} lw_serve_place;

/* LW_EUSAGE. */
int lw_serve_place_read(const char *text, lw_serve_place *out);
/* Whether a Host header names the place: a name of this machine where it is loopback, else any. */
bool lw_serve_host_right(const lw_serve_place *p, const char *host);
/* Whether an Origin header ("" for none) is that of a page from this host. */
bool lw_serve_origin_right(bool tls, const char *host, const char *origin);
/* In a time that does not depend on where they differ. */
bool lw_serve_token_right(const char *token, const char *said);
/* The value of cookie `name` into buf; false: there is none, or it is too long. */
bool lw_serve_cookie(const char *header, const char *name, char *buf, size_t size);

/* What a page may ask for: {"paused": true, "reset": true, "<knob>": 0.5, ..}. All or nothing.
 * LW_EFORMAT names the key. */
int lw_serve_settings_read(const char *text, size_t n, const lw_serve_knob *knobs, int32_t n_knobs,
                           lw_serve_asked *asked);
json_t *lw_serve_settings_json(const lw_serve_options *o, const lw_serve_size *size,
                               const lw_serve_asked *asked);

#endif
