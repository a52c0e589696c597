/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a data spec, and what one gets. */
#ifndef LW_DATA_SET_H
#define LW_DATA_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/observer.h"
#include "base/str.h"
#include "base/thread/pool.h"
#include "data/data_pixels.h"

typedef enum lw_split { LW_SPLIT_TRAIN, LW_SPLIT_HELDOUT, LW_SPLIT_ALL, LW_SPLIT_COUNT } lw_split;
const char *lw_split_name(lw_split s); /* "train", "held-out", "all" (one behind the other) */

typedef enum lw_on_error { LW_ON_ERROR_FAIL, LW_ON_ERROR_SKIP } lw_on_error;

struct lw_preparation;
struct lw_degradation;

/*
 * Specs (SOURCE[:ARGUMENT]):
 *   synth[:16|32][,seed=S]  drawn digits; default 32, seed 1 (the training pool). Training indices
 *                           0..49,999, held-out 50,000..59,999 of the same seed. A judge takes
 *                           another seed.
 *   cifar10:PATH            directory with data_batch_*.bin and test_batch.bin (or a sub-directory
 *                           cifar-10-batches-bin, or one cifar-10*.tar*), or a tar, tar.gz, tar.xz
 *                           of them
 *   mnist:PATH              directory with the four idx files, plain, .gz or .xz; gray, 28x28 gets a border of 2 to 32x32 (image size 28: no border)
 *   folder:DIR              PNG, JPEG, BMP, WebP; class = parent folder (sorted names). DIR/train with
 *                           DIR/test, val, valid, validation or heldout are the splits; without
 *                           them, in every class picture 9, 19, 29, ... by name (the last one of a
 *                           class of 2 to 9) is held out
 *   manifest:FILE[,root=DIR] the pictures that {"num_images": N, "root": DIR, "paths": [...]} lists,
 *                           in its order, all of them training rows; relative paths begin at DIR of
 *                           the spec, else at "root", else at the file's folder; class = parent folder
 *   tensor:FILE             bytes [N][H][W][C] in .npy, .npz or .safetensors (data_tensor.c)
 *   shards:FILE             several of them, listed in JSON (data_shards.c)
 *   webdataset:GLOB         pictures and classes in tar files (data_webdataset.c)
 *   video:FILE              frames of a clip in order, or of video:folder:DIR, pictures in the order
 *                           of their names; the last tenth is held out (data_video.c)
 *
 * The shorter edge of a picture becomes the image size, and the central square is kept
 * (lw_preparation_square), unless pictures are wanted whole. The size of a folder's own: that of its pictures when the shorter side of
 * all is the same, else a power of two (see data_folder_size.c; the dataset's note says which and
 * why).
 *
 * With a preparation (data_prepare.h) rows are what lw_prepare makes of each source picture as it
 * is: of cifar10 32x32, of mnist 28x28, of synth as drawn, of a folder as decoded. Only the rows
 * asked for are prepared, and kept under a name of their own.
 */
typedef struct lw_data_opts {
    int32_t image_size;                       /* side in pixels, 8..1024; 0: the source's own */
    const struct lw_preparation *preparation; /* instead of image_size: rows are height x width of
                                                 it; read while opening only. NULL: squares */
    bool
        whole; /* instead of either: pictures of a folder or clip as they are, of any one size; LW_EUSAGE when
                   they have several. For networks that resize by themselves */
    const struct lw_degradation
        *degradation; /* pictures are made worse as decoded; read while opening only. NULL: not */
    int32_t channels; /* of a row, 1..LW_MAX_CHANNELS: pictures become gray or RGB where they are
                         not (data_pixels.h); 0: those of the preparation, else 3 */
    lw_split split;   /* default: training rows */
    int64_t first, count; /* rows [first, first + count) of the split; count 0: all from first */
    int64_t num_images;   /* so many of these drawn without replacement, in the order of the data;
                               0: all */
    bool at_most;         /* num_images: all of them where there are fewer */
    uint64_t seed;        /* of that draw */
    lw_on_error
        on_error; /* a picture that cannot be read: LW_EFORMAT, or left out with a warning */
    const char *cache_dir;  /* NULL: lw_data_cache_dir; "": keep in memory, write nothing */
    lw_pool *pool;          /* decodes in parallel; NULL: this thread. Never changes a bit */
    const lw_observer *obs; /* may stop the decoding (LW_ESTOPPED); NULL: nobody */
} lw_data_opts;

typedef struct lw_dataset {
    int64_t n;
    int32_t h, w, channels;
    int32_t classes; /* >= 1; 1 when the data has no labels */
    bool labelled;   /* labels say something (class-conditional training makes sense) */
    bool flip;       /* mirrored pictures are still of their class */
    bool cached;     /* rows lie in a mapped cache file, not in memory of this process */
    const char *const *class_names; /* [classes] */
    const int32_t *labels;          /* [n], 0..classes-1 */
    const uint8_t *pixels;          /* [n][h][w][channels]; NULL where rows are numbers */
    const float *values[2];         /* of rows of numbers (lw_data_values): [n][h][w][channels], and
                                       those of the mirrored pictures; else NULL */
    const char *spec;               /* as opened */
    const char *root;               /* of files: the folder that names of rows begin at; else "" */
    const char *note;               /* what was decided for the data and why; "" when nothing */
    const char *cache_path;         /* "" when in memory */
    lw_split split;
    int64_t first;        /* row of the split that row 0 is */
    int64_t split_rows;   /* rows the split has */
    lw_on_error on_error; /* as opened */
    int64_t skipped;      /* pictures left out (of both splits) */
    uint64_t fingerprint; /* of the source: spec, paths, sizes, times, image size,
                             preparation */
    uint64_t content; /* of all decoded rows and labels (both splits; of synth and of prepared rows
                         those asked for): equal data, equal number */
    bool borrowed;    /* rows are those of another dataset */
    struct lw_data_rows *rows; /* private: owns what the pointers above point at */
} lw_dataset;

/* For help texts. */
#define LW_DATA_SPEC_HELP                                                               \
    "synth[:16|32], cifar10:PATH, mnist:PATH, folder:DIR, manifest:FILE, tensor:FILE, " \
    "shards:MANIFEST, webdataset:GLOB or video:FILE"
#define LW_DATA_DRAW_HELP \
    "so many, drawn with --seed without replacement, in the order of the data; 0: all"
#define LW_DATA_ON_ERROR "fail|skip"
#define LW_DATA_ON_ERROR_HELP "a picture that cannot be read ends it, or is named and left out"
#define LW_DATA_SIZE_HELP                                                                  \
    "side of the pictures; 0: as they are (a folder of several sizes: a power of two, at " \
    "most 64, and a warning that says which)"

#define LW_DATA_CHANNELS_HELP \
    "of the pictures: 1 is gray, 3 RGB (each made of the other where need be), others as they are"

/* Opens one split. opts NULL: defaults. LW_EUSAGE: the spec; LW_EIO: a file is missing; LW_EFORMAT:
 * a file is damaged (its name, the place and the reason are in the message). */
int lw_data_open(const char *spec, const lw_data_opts *opts, lw_dataset **out);
void lw_data_close(lw_dataset **pp);
/* The spec of what --manifest FILE lists below `data`, a folder:DIR (NULL: below what the file says). LW_EUSAGE: that is
 * none. */
int lw_data_listed(const char *file, const char *data, struct lw_str *out);
/* The rows of d as numbers that something made of them (latents), h x w x channels each: labels, names
 * and order are those of d, which outlives it; `key` says what made them. The caller fills in
 * `values` before anything is read. */
int lw_data_values(const lw_dataset *d, int32_t h, int32_t w, int32_t channels, uint64_t key,
                   lw_dataset **out);

/* Which picture of its split row i is; and its name: of files the path below the folder of the spec,
 * else "cifar10 train 17". */
int64_t lw_data_row_number(const lw_dataset *d, int64_t i);
/* Of the numbers of all rows in their order: which pictures of the data these are. */
uint64_t lw_data_rows_hash(const lw_dataset *d);
void lw_data_row_name(const lw_dataset *d, int64_t i, lw_str *out);

/* num_images: whether row i of n is one of `want` drawn without replacement (0: all are). Those whose
 * place in a shuffled order is among the first: no list of them is needed. */
bool lw_data_draws(uint64_t seed, int64_t n, int64_t want, int64_t i);

/* Numbers of a row, and as many bytes. */
static inline int64_t lw_data_row_size(const lw_dataset *d)
{
    return (int64_t)d->h * d->w * d->channels;
}

/* Row i as floats in [-1, 1] (x / 127.5 - 1), [h][w][channels], mirrored left-right when flip. */
void lw_data_get(const lw_dataset *d, int64_t i, bool flip, float *dst);
/* Rows first .. first + n - 1, as they are, by all threads: dst [n][h][w][channels]. */
void lw_data_get_rows(const lw_dataset *d, lw_pool *pool, int64_t first, int64_t n, float *dst);

/* $LW_CACHE, else $XDG_CACHE_HOME/leeway, else ~/.cache/leeway, into buf (returned); "" when there
 * is no home either. */
const char *lw_data_cache_dir(char *buf, size_t size);

/* What `data list` shows; ends with a row whose name is NULL. */
typedef struct lw_data_info {
    const char *name, *usage, *summary;
} lw_data_info;
const lw_data_info *lw_data_sources(void);

/* One picture of the set drawn by `synth` as exact numbers in [-1, 1], [size][size][3]; the label
 * is index mod 10. The caches hold this rounded to 8 bits. */
void lw_synth_draw(uint64_t seed, uint64_t index, int32_t size, float *dst);

#endif
