/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph compiled for one batch size, its tensors by name, and any number of rows through it: the
 * only place above `plan` where rows are copied in and out, batch by batch.
 *
 * A network (lw_forward_new) shows PyTorch's layouts: pictures and maps are [N,C,H,W] outside,
 * although the plan inside is channels last. Any other graph (lw_forward_of) shows its own.
 */
#ifndef LW_SESSION_FORWARD_H
#define LW_SESSION_FORWARD_H

#include "plan/plan.h"
#include "models/models.h"
#include "session/session_quantization.h"
#include "base/observer.h"

typedef struct lw_forward_opts {
    int32_t batch;         /* rows of a run */
    int32_t height, width; /* of the pictures; 0: what the network was made for */
    const char *output;    /* those wanted, "y", "logits,s2"...; NULL: the first; "*": all */
    int32_t precision;     /* lw_num; S8 needs a quantised model folder */
    const char *ranges;    /* the folder that was quantised; NULL: the network's own */
} lw_forward_opts;

/* One input or output. Rows are samples: shape[0] is the batch. */
typedef struct lw_port {
    const char *name;
    bool output, integer; /* integer: int32_t elements, else float */
    int rank;
    int64_t shape[LW_MAX_RANK]; /* [N,C,H,W], [N,K] or [N] of a network */
    int64_t row;                /* elements of one sample */
    size_t bytes;               /* of one sample */
    int32_t below;              /* integer: values are 0 .. below - 1; 0: any */
} lw_port;

typedef struct lw_forward lw_forward;
/* Borrows device and network. Inputs start as zeros. */
int lw_forward_new(lw_device *dev, const lw_network *n, const lw_forward_opts *o, lw_forward **out);
/* Of a graph whose inputs and outputs have the batch first; takes it. Borrows device, the stores of
 * the graph and `name`, which messages say; `weights` as for lw_exec_new, o as for lw_compile. */
int lw_forward_of(lw_device *dev, lw_graph **g, const lw_compile_opts *o, lw_slab weights,
                  const char *name, lw_forward **out);
void lw_forward_free(lw_forward **pp);
int lw_forward_count(const lw_forward *f);
const lw_port *lw_forward_port(const lw_forward *f, int i); /* inputs first */
/* LW_EUSAGE names the ports there are. */
int lw_forward_find(const lw_forward *f, const char *name, const lw_port **out);
lw_plan_info lw_forward_info(const lw_forward *f);
void lw_forward_print(lw_str *s, const lw_forward *f); /* lw_plan_print */

/* ---- rows ------------------------------------------------------------------------------------ */

/* All rows of a port. Inputs that are not named stay as they were set. */
typedef struct lw_feed {
    const char *name;
    const void *in; /* inputs: [rows] + row shape */
    void *out;      /* outputs: the same; NULL: not wanted */
    /* Inputs that are made, not copied: rows first .. first + n - 1 straight into the plan. */
    int (*fill)(void *self, int64_t first, int64_t n, void *dst);
    void *self;
} lw_feed;
/* Any number of rows, batch by batch: a row's result does not depend on the others. what: as for
 * lw_observe_progress. LW_ESTOPPED when asked; LW_EFORMAT: a class outside its range. */
int lw_forward_rows(lw_forward *f, const char *what, int64_t rows, const lw_feed *feed, int n_feed,
                    const lw_observer *obs);

/* ---- one batch ------------------------------------------------------------------------------- */

/* rows of [r][c] as rows of [c][r]: pictures from [H,W,C] to [C,H,W] are [pixels][channels], and back. */
void lw_rows_transpose(float *dst, const float *src, int64_t rows, int64_t r, int64_t c);
/* LW_EFORMAT: a class outside its range, among any number of rows of an input. */
int lw_forward_check(const lw_forward *f, const lw_port *p, int64_t rows, const void *data);
/* Copies the first rows of a port, at most a batch. LW_EFORMAT as above; LW_EDEVICE as below. */
int lw_forward_set(lw_forward *f, const lw_port *p, int64_t rows, const void *data);
int lw_forward_get(const lw_forward *f, const lw_port *p, int64_t rows, void *data);
/* An input of floats becomes the caller's memory, a whole batch in the plan's own layout, read by every
 * run until it is set, or bound to NULL (and then to be set). LW_EUNSUPPORTED: classes, which are looked at as they are set. */
int lw_forward_bind(lw_forward *f, const lw_port *p, const void *data);
/* The batch where the plan has it, in its own layout, until the next run: ask again for every one.
 * NULL: no such name. */
void *lw_forward_input(lw_forward *f, const char *name);
const void *lw_forward_output(const lw_forward *f, const char *name);
/* LW_EDEVICE: the device has failed, and what was read since is no result. Asked before anything is made of it. */
int lw_forward_failed(const lw_forward *f);
/* An output (or input) of one becomes an input of another, where both have it. */
void lw_forward_pass(const lw_forward *from, const char *name, lw_forward *to, const char *input);
int lw_forward_run(lw_forward *f, const lw_tick *tick);
void lw_forward_advance(lw_forward *f); /* lw_exec_advance */

#endif
