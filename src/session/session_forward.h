/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network compiled for one batch size, its tensors by name, in PyTorch's layouts at the boundary:
 * pictures and maps are [N,C,H,W] here, although the plan inside is channels last.
 */
#ifndef LW_SESSION_FORWARD_H
#define LW_SESSION_FORWARD_H

#include "plan/plan.h"
#include "session/session_network.h"
#include "base/observer.h"

typedef struct lw_forward_opts {
    int32_t batch;         /* rows of a run */
    int32_t height, width; /* of the pictures; 0: what the network was made for */
    const char *output;    /* the one wanted, "y", "logits", "s2"...; NULL: the first; "*": all */
    int32_t precision;     /* lw_num; S8 needs a quantised model folder */
} lw_forward_opts;

/* One input or output. Rows are samples: shape[0] is the batch. */
typedef struct lw_port {
    const char *name;
    bool output, integer; /* integer: int32_t elements, else float */
    int rank;
    int64_t shape[4]; /* [N,C,H,W], [N,K] or [N] */
    int64_t row;      /* elements of one sample */
    int32_t below;    /* integer: values are 0 .. below - 1 */
} lw_port;

typedef struct lw_forward lw_forward;
/* Borrows device and network. Inputs start as zeros. */
int lw_forward_new(lw_device *dev, const lw_network *n, const lw_forward_opts *o, lw_forward **out);
void lw_forward_free(lw_forward **pp);
int lw_forward_count(const lw_forward *f);
const lw_port *lw_forward_port(const lw_forward *f, int i); /* inputs first */
/* LW_EUSAGE names the ports there are. */
int lw_forward_find(const lw_forward *f, const char *name, const lw_port **out);
size_t lw_forward_bytes(const lw_forward *f); /* of its frame and prepared data */

/* Copies rows into input p from `first` on. LW_EFORMAT: a class outside its range. */
int lw_forward_set(lw_forward *f, const lw_port *p, int64_t first, int64_t rows, const void *data);
int lw_forward_run(lw_forward *f);
int lw_forward_get(const lw_forward *f, const lw_port *p, int64_t first, int64_t rows, void *data);

/* Data of all rows of a port; inputs that are not named stay as they were set. */
typedef struct lw_feed {
    const lw_port *port;
    const void *in; /* inputs: [rows] + row shape */
    void *out;      /* outputs: the same */
} lw_feed;
/* Any number of rows, batch by batch: a row's result does not depend on the others. LW_ESTOPPED
 * when asked. */
int lw_forward_rows(lw_forward *f, int64_t rows, const lw_feed *feed, int n_feed,
                    const lw_observer *obs);

#endif
