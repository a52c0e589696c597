/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to this folder: a file of arrays that have a row for every picture. Rows are put as they
 * are made, into places known before; arrays never stand in memory.
 *
 *   OUTPUT.partial        the bytes of OUTPUT (an .npz: its arrays, packed at the end)
 *   OUTPUT.partial.json   what the rows are, and how many of them are there
 *   OUTPUT.json           what the rows are, picture by picture, of a whole OUTPUT
 */
#ifndef LW_ENCODE_FILE_H
#define LW_ENCODE_FILE_H

#include "base/base.h"
#include "formats/formats.h"
#include "jobs/encode/encode_job.h"

enum { LW_ENCODE_ARRAYS = LW_ENCODE_TAPS + 1 }; /* and the labels */

typedef enum lw_encode_kind { LW_ENCODE_SAFETENSORS, LW_ENCODE_NPZ, LW_ENCODE_NPY } lw_encode_kind;
/* LW_EUSAGE: another ending. */
int lw_encode_kind_of(const char *path, lw_encode_kind *out);

typedef struct lw_encode_array {
    const char *name;
    lw_elem type;
    int rank;
    int64_t shape[LW_ARRAY_MAX_RANK]; /* [rows, ...] */
    size_t row;                       /* bytes */
    uint64_t at;                      /* of row 0 in the file; set by the layout */
} lw_encode_array;

typedef struct lw_encode_file {
    const char *path;
    lw_encode_kind kind;
    const json_t *about; /* what the rows are: an object of strings */
    const char *isa;     /* of the device: at another one the last bits may differ */
    /* kind of the device: "cpu", "cuda"; behind a change of devices both */
    char device[LW_DEVICE_KINDS];
    bool device_change; /* rows begun on another kind of device are gone on with */
    bool f32;           /* all arithmetic is: levels may then agree */
    int64_t rows, done;
    lw_encode_array array[LW_ENCODE_ARRAYS];
    int n;
    lw_str head;    /* stands before the first array */
    uint64_t bytes; /* of the partial file */
    lw_str state;   /* path of OUTPUT.partial.json */
    double saved;   /* when it was written */
    lw_part_file part;
} lw_encode_file;

/* Places of arrays, from path, kind, about, rows and arrays. Borrows names and about. */
int lw_encode_file_layout(lw_encode_file *f);
/* The most that is on the disk at once. */
uint64_t lw_encode_file_disk(const lw_encode_file *f);
/* LW_EIO, naming the sizes, when the disk has not that room. */
int lw_encode_file_room(const lw_encode_file *f);
/* Begins, or goes on where another process ended: f->done rows are there. */
int lw_encode_file_open(lw_encode_file *f, bool resume);
/* Rows first .. first + n - 1 of array i. */
int lw_encode_file_put(lw_encode_file *f, int i, int64_t first, int64_t n, const void *rows);
/* `done` rows of all arrays are there; noted on the disk every so many seconds, or `now`. */
int lw_encode_file_note(lw_encode_file *f, int64_t done, bool now);
int lw_encode_file_finish(lw_encode_file *f);
void lw_encode_file_close(lw_encode_file *f); /* what is unfinished stays */

/* ---- encode_state.c ---- */
/* Rows that OUTPUT.partial has: 0 when there is none. With `resume` LW_EUSAGE when they are of
 * another call, naming what differs, or of another device; without when there are any. */
int lw_encode_state_read(lw_encode_file *f, bool resume, int64_t *done);
int lw_encode_state_write(const lw_encode_file *f);
/* Whether there is a whole OUTPUT of this very call, as its OUTPUT.json says; f->device is then whatever computed it. */
bool lw_encode_state_whole(lw_encode_file *f);

#endif
