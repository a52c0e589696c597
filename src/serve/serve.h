/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve: a page that shows frames while they are made, and gives back what its reader turns.
 *
 *   lw_serve_new(&o, &s);                    the address is bound: port in use is known at once
 *   lw_serve_start(s, &size);                a thread of its own answers from here on
 *   lw_serve_control(s, &control);           what the page asks for, as of now
 *   if ((f = lw_serve_frame_begin(s, watched)))       NULL: nobody looks
 *       { ... fill f ...; lw_serve_frame_give(s); }
 *   lw_serve_close(&s);
 *
 * Who gives frames never waits for who looks at them: between the two lies a slot of one frame
 * (base/thread/mailbox.h), each client is sent the newest frame when it is ready for one, and what it
 * missed is counted. A frame is encoded once, for however many clients, by the server's thread, and
 * only while somebody looks.
 *
 * Everything from the network is hostile: sizes have limits, and other sites' pages cannot drive a
 * server on this machine (serve_rules.h).
 */
#ifndef LW_SERVE_H
#define LW_SERVE_H

#include "base/base.h"
#include "formats/formats.h"

enum { LW_SERVE_KNOBS = 16, LW_SERVE_MARK = 16 };

/* What a setting's change costs. */
typedef enum lw_serve_cost { LW_SERVE_LIVE, LW_SERVE_RESET, LW_SERVE_REBUILD } lw_serve_cost;

/* A number that the page may turn. */
typedef struct lw_serve_knob {
    const char *name, *label;
    double least, most, step, value;
    lw_serve_cost cost;
    const char *const *choices; /* what 0, 1, .. stand for; NULL: it is a number */
} lw_serve_knob;

typedef struct lw_serve_options {
    const char *address;        /* "HOST:PORT", "HOST", ":PORT" or PORT; port 0: any that is free */
    const char *cert, *key;     /* files; NULL: http */
    bool insecure;              /* http on an address that others reach, all the same */
    const lw_serve_knob *knobs; /* LW_SERVE_KNOBS at most; outlive the server, as texts do */
    int32_t n_knobs;
    const char *title; /* "test, identity" */
} lw_serve_options;

/* What the page asks for. */
typedef struct lw_serve_asked {
    bool paused, watched; /* watched: somebody looks */
    int64_t resets;       /* how often reset was pressed */
    double value[LW_SERVE_KNOBS];
} lw_serve_asked;

typedef struct lw_serve_size {
    int32_t in_w, in_h, out_w, out_h;
    int32_t
        camera_fps; /* pictures of in_w x in_h that a page's camera is to send a second; 0: none */
} lw_serve_size;

typedef struct lw_serve_frame {
    uint8_t *in, *out; /* RGB, of the sizes said at start; the server's */
    int64_t number;
    double captured, taken, computed; /* lw_now() */
    uint8_t mark[LW_SERVE_MARK];      /* as lw_serve_camera gave it, else zeros */
} lw_serve_frame;

typedef struct lw_serve lw_serve;

bool lw_serve_known(void); /* this build has a server, and its library is there */
/* From one thread. LW_EUSAGE: no address, or one that others reach without --tls or --insecure. LW_EIO: in use, no
 * certificate. LW_EUNSUPPORTED: this build has none. */
int lw_serve_new(const lw_serve_options *o, lw_serve **out);
/* "http://127.0.0.1:8080/", with the token that an address others reach asks for. */
const char *lw_serve_url(const lw_serve *s);
int32_t lw_serve_port(const lw_serve *s);
int lw_serve_start(lw_serve *s, const lw_serve_size *size);
void lw_serve_close(lw_serve **pp);

/* Of one thread. */
void lw_serve_control(lw_serve *s, lw_serve_asked *out);
/* The next two of one thread, perhaps another one. The frame to fill. NULL: nobody looks (watched, as
 * lw_serve_control said), and the last one is younger than a quarter second. */
lw_serve_frame *lw_serve_frame_begin(lw_serve *s, bool watched);
void lw_serve_frame_give(lw_serve *s);

/* A line for who looks, in place of the last one: what is being built, what was refused. "": none. Of the
 * thread of lw_serve_control. */
void lw_serve_note(lw_serve *s, const char *line);

/* One line of JSON for /stats; of one thread. */
void lw_serve_stats(lw_serve *s, const char *json);

/* The newest picture of a page's camera, valid until the next call; of one thread. */
typedef struct lw_serve_picture {
    const void *jpeg;
    size_t n;
    double received; /* lw_now() */
    uint8_t mark[LW_SERVE_MARK];
} lw_serve_picture;
/* LW_MAILBOX_NOT_YET, LW_MAILBOX_END (closed), LW_E*. */
int lw_serve_camera(lw_serve *s, double seconds, lw_serve_picture *out);

#endif
