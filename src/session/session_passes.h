/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many passes of pictures through a network with noise in it (models_noise.h).
 *
 *   pictures ─► prefix ─► kept ─┬─ row 0: picture 0, pass 0 ─► suffix ─► output
 *                               ├─ row 1: picture 0, pass 1 ─►   ..
 *                               └─ row 2: picture 1, pass 0 ─►
 *
 * The graph is cut where the noise begins: what is in front of the first live site is the same in
 * every pass, so it is computed once per picture and kept; passes and pictures are rows of one batch
 * of the rest, and weights are read once for all of them. What is kept is f32, in bf16 and int8 too. A row's output depends on
 * its picture, its row id and the tick, on nothing else: neither on the batch nor on its neighbours.
 */
#ifndef LW_SESSION_PASSES_H
#define LW_SESSION_PASSES_H

#include "models/models.h"
#include "session/session_forward.h"

typedef struct lw_passes_opts {
    int32_t height, width; /* of the pictures that come in */
    const char *output;    /* a tap; NULL: the first */
    int32_t precision;     /* lw_num; of LW_NUM_S8 the ranges are those of the network's folder */
    int32_t pictures;      /* in a batch of the prefix */
    int32_t rows;          /* in a batch of the suffix */
    int64_t keep;          /* pictures whose kept values there is room for */
    uint64_t memory; /* kept values that take more lie in a file without a name; 0: in memory */
    bool whole;   /* not cut: every row is computed from the picture on (how much does it save?) */
    bool unfused; /* one step for each op, as it is written */
} lw_passes_opts;

typedef struct lw_passes_info {
    int32_t dim;           /* numbers of an output row */
    uint64_t kept;         /* bytes per picture */
    double prefix, suffix; /* operations per picture, per row */
    uint64_t bytes;        /* frames and derived data of both halves */
    double compile;        /* seconds, all in all */
    double feed, forward;  /* seconds: copying rows in; beginning and ending passes */
    bool on_disk;
} lw_passes_info;

typedef struct lw_passes lw_passes;
/* n: with its noise's hook. Borrows device and network. LW_EUSAGE: the output does not depend on any
 * live site; LW_ENOMEM, LW_EIO: no room for what is kept. */
int lw_passes_new(lw_device *dev, const lw_network *n, const lw_passes_opts *o, lw_passes **out);
void lw_passes_free(lw_passes **pp);
lw_passes_info lw_passes_get_info(const lw_passes *p);
/* Another number of rows at once: compiles the suffix again, and nothing else. What is kept stays. */
int lw_passes_set_rows(lw_passes *p, int32_t rows);

/* Writes pictures first .. first + n - 1 as the network takes them, [n,h,w,C]. */
typedef int lw_passes_fill(void *self, int64_t first, int64_t n, float *dst);
/* Computes and keeps what is in front of the noise of pictures first .. first + n - 1, in places
 * 0 .. n - 1; LW_EUSAGE: more than `keep`. */
int lw_passes_prefix(lw_passes *p, int64_t first, int64_t n, lw_passes_fill *fill, void *self,
                     const lw_observer *obs);

/* One row: the kept picture of a place, and the id that its draws are keyed by. */
typedef struct lw_pass_row {
    int64_t place, id;
} lw_pass_row;
/* At most `rows` rows at once -> out [n][dim]. */
int lw_passes_run(lw_passes *p, const lw_pass_row *row, int32_t n, const lw_tick *tick, float *out);
/*
 * The same in two halves, for what the host has to do while a device computes:
 *
 *   begin(rows) ─► anything else, feed(the next rows) ─► end ─► begin(the next rows) ..
 *
 * feed copies in what the next begin, of the same rows, will not have to. On a CPU begin computes, and feed does nothing.
 */
int lw_passes_begin(lw_passes *p, const lw_pass_row *row, int32_t n, const lw_tick *tick);
void lw_passes_feed(lw_passes *p, const lw_pass_row *row, int32_t n);
int lw_passes_end(lw_passes *p, int32_t n, float *out);

#endif
