/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a network was made from, and which networks are kin: a measure in the kin of an encoder that
 * a training used says how well that training did its exercise, not how good its pictures are.
 *
 * A lineage is a chain: a network, its teacher, its teacher's teacher, ... Two networks are kin when
 * some link of one and some link of the other have the same weights, or are of one family with the
 * same objective on the same data (another seed, width or depth makes no stranger).
 *
 * What is not known counts as the same: files that do not say how they were trained are kin of their
 * whole family, and a network whose teacher is not there any more is kin of all. Random weights are
 * kin of nothing but themselves.
 */
#ifndef LW_SESSION_LINEAGE_H
#define LW_SESSION_LINEAGE_H

#include "models/models.h"

typedef enum lw_origin { LW_ORIGIN_PUBLISHED, LW_ORIGIN_HERE, LW_ORIGIN_RANDOM } lw_origin;
const char *lw_origin_name(lw_origin o); /* "published", "trained here", "random weights" */

enum { LW_LINEAGE_MOST = 6 };

typedef struct lw_link {
    const char *family; /* name of the record, or of the one whose weights it shares */
    char name[48];      /* "resnet20" */
    char objective[24]; /* "classify", "mae", "distill", ...; "": not known */
    char data[128];     /* "cifar10", "imagenet", "folder:DIR"; "": not known */
    uint64_t weights;   /* lw_store_hash */
    lw_origin origin;
} lw_link;

typedef struct lw_lineage {
    int32_t n; /* link[0] is the network itself */
    lw_link link[LW_LINEAGE_MOST];
    bool unknown; /* a teacher could not be opened */
} lw_lineage;

/* Of an open encoder; spec as it was opened: runs and checkpoints in them have a config.yaml. */
int lw_lineage_of(const char *spec, const lw_network *n, lw_lineage *out);
/* "trained here (distill, cifar10) by resnet56, published (classify, cifar10)", appended. */
void lw_lineage_text(const lw_lineage *l, lw_str *out);
/* Are they kin? Then why, as words behind "X is left out: ", appended to `why` (or NULL). */
bool lw_lineage_kin(const lw_lineage *a, const lw_lineage *b, lw_str *why);

/* Specs of the encoders that the training of SOURCE used, by its config.yaml: those of the loss, and
 * the one that chose the checkpoint (--keep-best eval_fd). They are looked for where the file says,
 * then from the folders around the run. *known: there is a config.yaml. spec[] are heap strings. */
enum { LW_RUN_ENCODERS = LW_ENCODERS_MOST + 1 };
int lw_run_encoders(const char *source, char *spec[LW_RUN_ENCODERS], int32_t *n, bool *known);

/* A model folder of random weights (He et al. 2015: normal, variance 2 / fan-in), drawn by seed for
 * the network that config.json `config` describes. Its config.json says "_leeway_random": seed.
 * preparation: written as its preprocessor_config.json; NULL: none. */
int lw_random_network(const char *dir, const json_t *config, const json_t *preparation,
                      uint64_t seed);

#endif
