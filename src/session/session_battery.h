/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A battery: several frozen networks that look at the same pictures, one of them in memory at a
 * time. What counts is networks, each by its pooled feature; never layers of one.
 *
 *    "a.safetensors,runs/e,DIR" ──lw_battery_open──► what each network is, and its lineage
 *    lineages of encoders that a training used ──lw_battery_leave_out──► kin do not count
 *    sets of pictures ──lw_battery_run──► of each network that counts: features f32[n][dim] by set
 */
#ifndef LW_SESSION_BATTERY_H
#define LW_SESSION_BATTERY_H

#include "session/session_features.h"
#include "session/session_lineage.h"

enum { LW_BATTERY_MOST = 32 };

typedef struct lw_battery_net {
    char *spec;
    char name[48]; /* "resnet20"; of several of one name "resnet20 (2)" */
    lw_lineage lineage;
    int64_t parameters;
    int32_t dim;           /* of the pooled feature */
    char preparation[160]; /* what its pictures go through, in one line */
    char *left_out;        /* why it does not count; NULL: it does */
} lw_battery_net;

typedef struct lw_battery lw_battery;

/*
 * specs: encoder specs with commas between, or folders of them (each file and folder in it that is a
 * network, by name). side: of the pictures, for networks that take them as they are; 0: every
 * network must prepare its own. LW_EUSAGE: none, more than LW_BATTERY_MOST, the same weights twice,
 * a network without a pooled feature. conv: lw_conv_mode of the device, which it borrows.
 */
int lw_battery_open(lw_device *dev, int32_t conv, const char *specs, int32_t side,
                    lw_battery **out);
void lw_battery_free(lw_battery **pp);
int32_t lw_battery_count(const lw_battery *b); /* those left out too */
const lw_battery_net *lw_battery_at(const lw_battery *b, int32_t i);
int32_t lw_battery_counted(const lw_battery *b);  /* networks that count */
int32_t lw_battery_families(const lw_battery *b); /* families among them */
/* Leaves out the kin of an encoder that a training of the table used; who: "drift", as messages
 * name that training. */
int lw_battery_leave_out(lw_battery *b, const lw_lineage *used, const char *who);
/* The same of every encoder that the run (or checkpoint) `source` says its training used; a bare
 * model folder says none, which is logged. */
int lw_battery_leave_out_run(lw_battery *b, const char *source, const char *who);

/* ---- features -------------------------------------------------------------------------------- */

/* Takes what network i makes of set s, f32 [n][dim], and may keep it (lw_steal). Called for all sets
 * of a network before the next network. */
typedef int lw_battery_take(void *self, int32_t i, int32_t s, float **features);
/* Networks that are left out are passed over. Features of sets with a `content` are kept in the cache
 * directory. obs may stop it (LW_ESTOPPED). Same bits for any number of threads. */
int lw_battery_run(lw_battery *b, const lw_pictures *sets, int32_t n_sets, lw_battery_take *take,
                   void *self, const lw_observer *obs);

/* seconds = sum over networks of open + batches per_batch */
typedef struct lw_battery_cost {
    double seconds;
    double open[LW_BATTERY_MOST];      /* seconds until network i is ready for its first batch */
    double per_batch[LW_BATTERY_MOST]; /* seconds, pictures prepared */
    int64_t batches[LW_BATTERY_MOST];  /* of all sets whose features are not in the cache */
} lw_battery_cost;
/* What lw_battery_run of these sets takes. Measured: each network that counts is opened and sees some
 * batches of the first set; the others give n and content alone. */
int lw_battery_forecast(lw_battery *b, const lw_pictures *sets, int32_t n_sets,
                        lw_battery_cost *out);

#endif
