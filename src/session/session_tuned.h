/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How convolutions are computed, measured on one machine: a file that `leeway bench --tune` writes and
 * `--tuned` reads. JSON: "tuned_version" 1, "cpu", "isa", "threads", "version", "commit", and
 * "convolutions", rows of "type" (f32, bf16), "pass" (forward, data_grad), "in", "out", "height",
 * "width", "tile" (the side of Winograd's tiles, 0: direct), "ms" of it, "shipped" and "shipped_ms" of
 * what the rule says.
 */
#ifndef LW_SESSION_TUNED_H
#define LW_SESSION_TUNED_H

#include "backend/backend.h"
#include "formats/formats.h"

typedef struct lw_tuned_row {
    lw_conv_choice choice;
    int shipped; /* the rule's tile */
    double ms, shipped_ms;
} lw_tuned_row;

enum { LW_TUNED_MOST = 4096 };

/* Rows are the caller's lw_free(). LW_EFORMAT names file and field: an unknown field, a choice that this
 * program could not compute, a shape that comes twice. */
int lw_tuned_load(const char *path, lw_tuned_row **rows, int *n, char *cpu, size_t cpu_size,
                  char *isa, size_t isa_size);
/* The file's; new reference, or NULL. */
json_t *lw_tuned_json(const lw_tuned_row *rows, int n, int threads, lw_isa isa);
/* Loads it for every device that lw_session_device opens from now on, and logs that and how many of them this program's rule
 * would do otherwise. LW_EDEVICE: it was
 * measured on another CPU or level of instructions. */
int lw_session_tune(const char *path);
/* "" or the path that was given. */
const char *lw_session_tuned(void);

#endif
