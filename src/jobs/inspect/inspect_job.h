/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a file or folder that Leeway reads or writes, as one JSON object; graphs and plans as
 * text. */
#ifndef LW_INSPECT_JOB_H
#define LW_INSPECT_JOB_H

#include "formats/formats.h"

/*
 * path: a run, checkpoint or model folder; a .safetensors (or index of shards), .npy, .npz, PNG or
 * JPEG file. The object has "kind" ("run", "checkpoint", "model", "safetensors", "npy", "npz",
 * "png", "jpeg"), "path" and what there is to say; arrays of objects are tables (all rows with the
 * same keys). stats: also the range, RMS and number of values that are not finite of every array,
 * which reads all of them. New reference. LW_EFORMAT: nothing known.
 */
int lw_job_inspect(const char *path, bool stats, json_t **out);

typedef struct lw_inspect_graph {
    const char *source;        /* as for lw_network_open */
    const char *pass;          /* the graph after this pass; NULL: as built; "all": after each */
    bool graph, plan;          /* what to append */
    int32_t batch, image_size; /* image_size 0: the network's own, or 32 */
    int opt;                   /* 0: no rewriting */
    int32_t precision;         /* lw_num of products; int8: a folder that was quantised */
    bool train;     /* of a U-Net: with dropout, the mean of squared outputs as loss, gradients */
    bool recompute; /* implies train */
    int threads;
    int32_t conv; /* lw_conv_mode */
} lw_inspect_graph;
/* Appends the text to *out. LW_EUSAGE: an unknown pass, naming those there are; one that does not
 * run, naming what it needs. */
int lw_job_inspect_graph(const lw_inspect_graph *c, lw_str *out);

#endif
