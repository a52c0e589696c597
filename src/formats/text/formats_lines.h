/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs made of lines: CSV and JSON lines. A line is appended with one write, so a reader or a crash
 * sees whole lines but perhaps the last; resuming cuts the file back to the lines of the resumed
 * step.
 */
#ifndef LW_FORMATS_LINES_H
#define LW_FORMATS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "formats/text/formats_json.h"

/* Appends one compact line. */
int lw_jsonl_append(const char *path, const json_t *object);
/* All lines as an array; an unfinished last line is left out. LW_EFORMAT names the line. */
int lw_jsonl_load(const char *path, json_t **out);

/* One CSV row (RFC 4180 quoting where needed, "\n" at the end) onto s. */
void lw_csv_row(lw_str *s, const char *const *cells, size_t n);
/* Appends a row; writes `header` (NULL: none) first when the file is missing or empty. */
int lw_csv_append(const char *path, const char *const *header, const char *const *cells, size_t n);
/* A table: array (rows) of arrays (cells) of strings; an unfinished last row is left out. */
int lw_csv_load(const char *path, json_t **out);

/* Cuts the file back to its longest prefix of whole lines for which keep says true (NULL: all whole
 * lines). A missing file is fine. line has no newline and is NUL-terminated. The file may have any
 * length; LW_EFORMAT, and nothing is cut: a line of LW_LINE_BYTES or more. */
#define LW_LINE_BYTES (1 << 20)
typedef bool lw_line_keep(void *arg, const char *line, size_t len, size_t number);
int lw_lines_cut(const char *path, lw_line_keep *keep, void *arg);
/* For resuming: keeps JSON lines whose "step" is absent or <= step, CSV rows (after the header)
 * whose first column is <= step. */
int lw_jsonl_cut_step(const char *path, int64_t step);
int lw_csv_cut_step(const char *path, int64_t step);

#endif
