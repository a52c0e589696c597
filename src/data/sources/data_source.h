/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: how a source of pictures is written. A source is a const record of functions; all of
 * them stand in the one array of data_spec.c. It first plans (looks at names, sizes and times only,
 * so that an up to date cache is found in milliseconds) and, when there is no such cache, builds:
 * decodes every row once, in order, into a sink.
 */
#ifndef LW_DATA_SOURCE_H
#define LW_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "data/data_check.h"
#include "data/data_prepare.h"
#include "data/data_set.h"
#include "formats/formats.h"

/* Of a row: what the configs of networks may name as their picture's side ends there, too. */
#define LW_DATA_MAX_SIDE 4096
#define LW_DATA_MAX_SQUARE 1024 /* of image_size */
#define LW_DATA_MAX_CLASSES 65536
#define LW_DATA_NONE_BEFORE ((int64_t)1 << 40) /* more rows than any dataset has */

typedef struct lw_data_source lw_data_source;
typedef struct lw_data_sink lw_data_sink;

/* One opening of a spec. Strings named `names` hold NUL-terminated class names one after
 * the other. */
typedef struct lw_data_job {
    const lw_data_source *source;
    const char *spec; /* whole text */
    const char *arg;  /* what follows the colon; NULL when there is no colon */
    lw_data_opts opts;
    /* set by plan */
    int32_t h, w;     /* of a row; 0: settle decides before the build */
    int32_t channels; /* of a row: set before the plan */
    int32_t own;      /* channels that its pictures have; 3 unless the plan says so */
    int32_t classes;
    bool labelled, flip;
    bool ranged;   /* the build keeps the rows asked for (data_range.c), not both splits */
    uint64_t seed; /* of sources that draw */
    int32_t side;  /* of what they draw */
    lw_str names;  /* [classes] */
    lw_str place;  /* what names the cache file: source, real path, size, range, preparation */
    lw_str state;  /* what a change of makes the cache stale: files, sizes, times */
    lw_str note;   /* set by settle: what was decided and why, for people; may stay empty */
    lw_str root;   /* of files: the folder that names of rows begin at; else empty */
    void *priv;    /* the source's own, freed by its clear */
    /* of the cache, for a check */
    bool thorough;  /* compare every pixel with its hash, not a sample */
    lw_str damaged; /* set by opening: what was wrong with the cache that was there; it is built
                       again */
} lw_data_job;

struct lw_data_source {
    lw_data_info info;
    int (*plan)(lw_data_job *job);
    /* Decides the size from the files, before a build or scan of a job planned with 0. */
    int (*settle)(lw_data_job *job);
    int (*build)(lw_data_job *job, lw_data_sink *sink);
    /* Looks at every file by itself and adds what is wrong to the report; NULL: opening's message
     * is it. */
    int (*scan)(lw_data_job *job, lw_data_report *report);
    void (*clear)(lw_data_job *job); /* NULL when priv is not used */
};

extern const lw_data_source lw_data_source_synth, lw_data_source_cifar, lw_data_source_mnist,
    lw_data_source_folder, lw_data_source_manifest, lw_data_source_tensor, lw_data_source_shards,
    lw_data_source_webdataset, lw_data_source_video;

/* ---- data_spec.c ---- */
/* Finds the source and plans. Clear in any case. */
int lw_data_job_init(lw_data_job *job, const char *spec, const lw_data_opts *opts);
void lw_data_job_clear(lw_data_job *job);
/* For plans: the size of a row, as the preparation or image_size says, else a square of side `own`;
 * adds one class name; one line of state for a file (path, size, mtime; LW_EIO when
 * missing); an existing path made absolute, put into place. */
void lw_data_job_size(lw_data_job *job, int32_t own);
/* The same of pictures of h x w: whole where that is asked for, else squares of the shorter side. */
void lw_data_job_pictures(lw_data_job *job, int32_t h, int32_t w);
int lw_data_job_class(lw_data_job *job, const char *name);
int lw_data_job_file(lw_data_job *job, const char *path);
int lw_data_job_place(lw_data_job *job, const char *path);
/* root made absolute. */
int lw_data_job_root(lw_data_job *job);
/* The path argument, or LW_EUSAGE naming the source's usage. */
int lw_data_job_path(const lw_data_job *job, const char **out);
/* Bytes of a row. */
size_t lw_data_job_row(const lw_data_job *job);
/* Size and note, where plan left them open. */
int lw_data_job_settle(lw_data_job *job);
int lw_data_report_add(lw_data_report *r, const char *path, const char *reason);

/* ---- data_range.c: which pictures become rows ---- */
int lw_data_range_opts(const char *spec, const lw_data_opts *o);
/* LW_EUSAGE when the rows asked for reach beyond those the split has. */
int lw_data_range_check(const lw_data_job *job, int64_t have);
/* Whether picture i of the `have` of the split is asked for. */
bool lw_data_range_has(const lw_data_job *job, int64_t have, int64_t i);
void lw_data_range_print(const lw_data_job *job, lw_str *out);
/* Where nobody says which are held out it is pictures 9, 19, ...: how many of the first n are in a
 * split, and which of all its picture i is. */
int64_t lw_data_tenths_of(int64_t n, bool heldout);
int64_t lw_data_tenths_at(bool heldout, int64_t i);

/* ---- data_sink.c: rows into a file or memory, laid out as data_cache.c reads them ---- */
/* fd -1: memory; path: of fd, for messages and the room on its disk. */
int lw_data_sink_new(const lw_data_job *job, int fd, const char *path, lw_data_sink **out);
void lw_data_sink_free(lw_data_sink **pp);
/* What the source has of each split; before the first picture. Says so when the rows asked for have
 * no room: the cache then cannot be written, or LW_ENOMEM. */
int lw_data_sink_expect(lw_data_sink *s, int64_t n_train, int64_t n_heldout);
/* Whether the next picture of the source is one of the rows to keep, and its number in its split;
 * asked once of each, in order. */
bool lw_data_sink_wants(lw_data_sink *s, int64_t *number);
typedef struct lw_data_block {
    int64_t n;
    uint8_t *pixels; /* [n][h][w][channels] */
    int32_t *labels;
    int64_t *numbers;
    const char **names; /* of files; NULL */
} lw_data_block;
int lw_data_sink_put(lw_data_sink *s, const lw_data_block *b);
/* A picture that was wanted is left out; the first reason is kept. */
void lw_data_sink_skip(lw_data_sink *s, const char *reason);
/* Rows from here on are held out (call once). */
void lw_data_sink_heldout(lw_data_sink *s);
/* Labels, names, header. */
int lw_data_sink_finish(lw_data_sink *s, uint64_t fingerprint);
bool lw_data_sink_write_failed(
    const lw_data_sink *s); /* the cache could not be written, not the source read */
uint8_t *lw_data_sink_take(lw_data_sink *s, size_t *size); /* the finished memory image, lw_free */

/* ---- data_fill.c: pictures of a source become rows, by the threads of the pool ---- */
typedef struct lw_data_pictures {
    int64_t n;
    const void *from;
    /* Picture i and its label, for many threads at once; *im is empty before. */
    int (*get)(const void *from, int64_t i, lw_raster *im, int32_t *label);
    /* Of files: where it is; the name of its row. NULL: rows are known by their number. */
    const char *(*path)(const void *from, int64_t i);
    const char *(*name)(const void *from, int64_t i);
} lw_data_pictures;
/* Appends those that the sink wants; the first that cannot be read ends it or is left out, as
 * opts.on_error says. */
int lw_data_fill(const lw_data_job *job, lw_data_sink *sink, const lw_data_pictures *p);
/* Reads every picture and keeps none; what is wrong becomes problems. */
int lw_data_scan(const lw_data_job *job, const lw_data_pictures *p, lw_data_report *report);

/* ---- data_cache.c: the file ---- */
typedef struct lw_data_header {
    char magic[8]; /* LW_DATA_MAGIC */
    uint32_t version, header_bytes;
    uint64_t fingerprint, content;
    int64_t n_train, n_heldout;
    int64_t split_rows; /* rows of the whole split when the file has a part of one; else 0 */
    int64_t skipped;    /* pictures that could not be read and are left out */
    int32_t height, width, channels, classes;
    uint32_t labelled, flip;
    uint64_t pixels_at, labels_at;
    uint64_t hashes_at;  /* one per block of rows: lw_data_fold over the hashes of its rows */
    uint64_t numbers_at; /* i64 per row: which picture of its split it is */
    uint64_t names_at, names_bytes; /* of files: u64 per row and one more, where its name begins in
                                       the bytes behind; each ends with a NUL. Else 0 bytes */
    uint64_t texts_at, texts_bytes; /* class names, title, note; each ends with a NUL */
    uint64_t total_bytes;
    uint64_t tail_hash;   /* all behind the pixels */
    uint64_t header_hash; /* all fields above */
} lw_data_header;
#define LW_DATA_MAGIC "LWDATA\n\0"
#define LW_DATA_VERSION 5u
#define LW_DATA_PIXELS_AT 4096u

/* Bytes of a row. */
size_t lw_data_header_row(const lw_data_header *h);
/* Rows of a block: as many whole rows of so many bytes as 64 KiB hold, at least one. */
int64_t lw_data_block_rows(size_t row);
/* h = 0 for the first row of a block; then the result for the row before. */
uint64_t lw_data_fold(uint64_t h, uint64_t row_hash);
/* What `content` becomes with one row more; 0 before the first. */
uint64_t lw_data_content(uint64_t content, uint64_t row_hash, int32_t label);

uint64_t lw_data_fingerprint(const lw_data_job *job);
/* Cache file of a job in dir (heap). */
int lw_data_cache_path(const lw_data_job *job, const char *dir, char **out);
/* Header of a whole image when every field, size, label, hash and text in it holds together.
 * LW_EFORMAT: damaged; LW_EUNSUPPORTED: written by another version. */
int lw_data_image_check(const char *what, const void *image, size_t size, lw_data_header *out);
/* Pixels of a checked image against their hashes. Every block and `content` when thorough; else 2
 * MiB of blocks spread evenly, others at each call. LW_EFORMAT names the rows. */
int lw_data_image_pixels(const char *what, const void *image, const lw_data_header *h,
                         bool thorough);
/* "cifar10:/real/path", "synth:16 train rows 0+100", and the preparation: what stands in the cache,
 * for people. */
void lw_data_job_title(const lw_data_job *job, lw_str *out);
/* ---- data_open.c ---- */
int lw_data_job_open(lw_data_job *job, lw_dataset **out);

#endif
