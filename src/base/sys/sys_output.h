/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and directories under construction. The one place that makes temporary names: beside the
 * final one, `.tmp_NAME.RANDOM`, made by this process alone (O_EXCL: a link of that name is not
 * followed), fsynced and renamed when whole. Until then what was there stays as it was; dropped,
 * nothing is left.
 *
 *   LW_CLEANUP(lw_new_file_drop) lw_new_file f = {0};
 *   LW_TRY(lw_new_file_begin(&f, path));
 *   LW_TRY(lw_new_file_put(&f, bytes, n));
 *   return lw_new_file_finish(&f);
 */
#ifndef LW_BASE_SYS_OUTPUT_H
#define LW_BASE_SYS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define LW_TMP_PREFIX ".tmp_"

typedef struct lw_new_file {
    bool open;
    bool in_place; /* a pipe, a device or a descriptor of this process: nothing to rename */
    int fd;        /* of an open one, to write to */
    lw_str path, tmp;
} lw_new_file;

/* LW_EIO with the cause when the file cannot be made. */
int lw_new_file_begin(lw_new_file *f, const char *path);
int lw_new_file_put(lw_new_file *f, const void *bytes, size_t n);
int lw_new_file_finish(lw_new_file *f); /* closes in any case; on failure nothing is left */
void lw_new_file_drop(lw_new_file *f);  /* also after finish, also of {0} */

/* Removes what killed processes left of it: for whoever alone writes there. */
void lw_new_file_sweep(const char *path);
/* The same of every file in a directory. */
void lw_new_files_sweep(const char *dir);

/* Writes a whole file as above. */
int lw_file_write(const char *path, const void *bytes, size_t n);
/* A file without a name, open for reading and writing, on the file system of `path`. */
int lw_scratch_open(const char *path, int *fd);

/*
 * A file of known size that is written in any order, perhaps by several processes one after the
 * other: `PATH.partial` beside PATH until finish renames it. One process has it at a time. Closed
 * unfinished, it stays.
 *
 *   LW_CLEANUP(lw_part_file_close) lw_part_file f = {.fd = -1};
 */
#define LW_PART_SUFFIX ".partial"
typedef struct lw_part_file {
    int fd; /* -1: none */
    lw_str path, part;
} lw_part_file;

/* Opens PATH.partial, or with `anew` makes one of `size` bytes of zeros whose room on the disk is
 * reserved. LW_EIO: the cause; LW_EUSAGE: another process writes it. */
int lw_part_file_open(lw_part_file *f, const char *path, bool anew, uint64_t size);
int lw_part_file_put(lw_part_file *f, uint64_t at, const void *bytes, size_t n);
int lw_part_file_sync(lw_part_file *f);   /* what was put is on the disk */
int lw_part_file_finish(lw_part_file *f); /* it is PATH */
int lw_part_file_remove(lw_part_file *f);
void lw_part_file_close(lw_part_file *f);

/* A pipe, a device, a socket, /dev/stdout: written to as it stands. */
bool lw_path_is_special(const char *path);

/* Can an output be written? Asked before the work that makes it: nothing is changed. A file needs
 * its directory; missing directories are made later. LW_EIO names `what` ("--output") and the
 * cause; LW_EUSAGE: a new directory is there and holds something. */
typedef enum lw_out_kind { LW_OUT_FILE, LW_OUT_DIR, LW_OUT_EITHER, LW_OUT_NEW_DIR } lw_out_kind;
int lw_output_check(const char *what, const char *path, lw_out_kind kind);
/* Do two outputs get one name, however their folders are spelt? A link of that name is replaced, not followed. */
int lw_output_same(const char *a, const char *b, bool *same);

typedef struct lw_new_dir {
    bool open, inside, replace;
    lw_str path, tmp; /* write into tmp */
} lw_new_dir;

/*
 * A directory: its parents are made, files go into d->tmp. finish: where there is no directory of
 * that name yet, d->tmp is renamed to it. Otherwise, `replace`: they change places in one step and
 * the old one is removed; else the new files are renamed into the old directory one by one.
 */
int lw_new_dir_begin(lw_new_dir *d, const char *path, bool replace);
int lw_new_dir_finish(lw_new_dir *d);
void lw_new_dir_drop(lw_new_dir *d);

/* mkdir of one level in a directory that others may have written: what is there already must be a
 * directory, not a link to one. */
int lw_mkdir_own(const char *path);

#endif
