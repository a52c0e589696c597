/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives and compressed files, read front to back, nothing ever written to disk: tar or zip,
 * plain or through gzip, xz, bzip2, zstd. A file that is no archive appears as one member with the
 * file's own name
 * ("raw"), so `x.gz`, `x.xz` and `x` read alike.
 */
#ifndef LW_FORMATS_ARCHIVE_H
#define LW_FORMATS_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lw_archive lw_archive;
typedef struct lw_archive_member {
    const char *name; /* path inside the archive; valid until the next call */
    int64_t size;     /* bytes, or -1 when the archive does not say (raw) */
    bool link;        /* a symbolic or hard link: its bytes are elsewhere, reading gives none */
    int64_t at;       /* where lw_archive_open_at finds it again; -1: not in a plain tar file */
    bool raw;         /* not a member of an archive: the file itself, decompressed */
} lw_archive_member;

int lw_archive_open(const char *path, lw_archive **out);
/* A plain tar file from a member on that was met before. */
int lw_archive_open_at(const char *path, int64_t at, lw_archive **out);
void lw_archive_close(lw_archive **pp);
/* Next regular file or link (directories and devices are passed over). 0 ok, 1 at the end. */
int lw_archive_next(lw_archive *a, lw_archive_member *out);
/* Up to n bytes of the current member; *got 0 at its end. */
int lw_archive_read(lw_archive *a, void *buf, size_t n, size_t *got);
/* The rest of the current member, NUL added (not counted); more than max bytes is LW_EFORMAT.
 * lw_free it. */
int lw_archive_read_all(lw_archive *a, size_t max, char **out, size_t *len);

/* Whole file, decompressed if it is: x, x.gz, x.xz... An archive is LW_EFORMAT. max 0: no limit. */
int lw_archive_load(const char *path, size_t max, char **out, size_t *len);
/* First member whose path is `name` or ends in "/name". LW_EFORMAT when there is none. */
int lw_archive_extract(const char *path, const char *name, size_t max, char **out, size_t *len);

/* Calls visit for every regular member; it may read the member through a. Stops at the first
 * non-zero result: negative is passed on, positive ends the walk with 0. */
typedef int lw_archive_visit(void *arg, lw_archive *a, const lw_archive_member *m);
int lw_archive_each(const char *path, lw_archive_visit *visit, void *arg);

#endif
