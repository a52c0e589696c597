/* SPDX-License-Identifier: Apache-2.0 */
/* leeway convert: a network's files as the folder that another library opens. */
#ifndef LW_CONVERT_JOB_H
#define LW_CONVERT_JOB_H

#include "models/models.h"

typedef enum lw_convert_type {
    LW_CONVERT_KEEP, /* the narrowest that holds all of the source's */
    LW_CONVERT_F32,
    LW_CONVERT_BF16,
    LW_CONVERT_F16
} lw_convert_type;

/* Of `to`, behind those of lw_library. */
#define LW_CONVERT_FORMS LW_LIBRARIES "|onnx"
enum { LW_CONVERT_ONNX = LW_LIBRARY_OPEN_CLIP + 1 };

typedef struct lw_convert_config {
    const char *source;     /* what lw_network_open takes */
    const char *output_dir; /* must not hold anything yet */
    int32_t to;             /* lw_library or LW_CONVERT_ONNX */
    int32_t type;           /* lw_convert_type */
    bool dry_run;           /* all but the files */
    int32_t batch;          /* onnx: rows, which its shapes hold */
    int32_t image_size;     /* onnx: 0: the network's own */
    const char
        *layer; /* onnx: what comes out, as lw_network_build has it; NULL: the network's answer */
} lw_convert_config;

typedef struct lw_convert_result {
    char network[32];
    int64_t parameters;
    lw_elem type;     /* of the tensors written */
    uint64_t bytes;   /* of their values */
    json_t *config;   /* what was written as config.json or open_clip_config.json */
    json_t *files;    /* names in output_dir */
    json_t *left_out; /* names of the source's tensors that were not written */
    json_t *notes;    /* sentences: in what the library's network is not the source's */
} lw_convert_result;

/*
 * The folder appears whole or not at all. LW_EUSAGE: output_dir holds something; LW_EUNSUPPORTED: the
 * library has no names, or no words, for this network; errors of lw_network_open.
 */
int lw_job_convert(const lw_convert_config *c, lw_convert_result *out);
void lw_convert_result_clear(lw_convert_result *r);

#endif
