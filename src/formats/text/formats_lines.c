/* SPDX-License-Identifier: Apache-2.0 */
/* Logs made of lines: append, cut back, read. */
#include "formats/text/formats_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

int lw_jsonl_append(const char *path, const json_t *object)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_json_dump(object, 0, &s);
    lw_str_add(&s, "\n");
    if (s.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for a line", path);
    return lw_file_append(path, s.s, s.len);
}

int lw_jsonl_load(const char *path, json_t **out)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    LW_CLEANUP(lw_json_drop) json_t *all = json_array();
    LW_CLEANUP(lw_str_clear) lw_str where = {0};
    size_t len;
    LW_TRY(lw_file_read(path, LW_JSON_MAX_BYTES, &text, &len));
    size_t number = 0;
    for (char *line = text, *end; (end = memchr(line, '\n', len - (size_t)(line - text)));
         line = end + 1) {
        number++;
        if (end == line)
            continue;
        json_t *v;
        where.len = 0;
        lw_str_addf(&where, "%s: line %zu", path, number);
        LW_TRY(lw_json_parse(lw_str_c(&where), line, (size_t)(end - line), &v));
        if (json_array_append_new(all, v) < 0)
            return lw_fail(LW_ENOMEM, "%s: no memory for its lines", path);
    }
    *out = lw_steal(&all);
    return 0;
}

void lw_csv_row(lw_str *s, const char *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lw_str_add(s, i ? "," : "");
        if (!strpbrk(cells[i], ",\"\n\r")) {
            lw_str_add(s, cells[i]);
            continue;
        }
        lw_str_add(s, "\"");
        for (const char *c = cells[i]; *c; c++)
            lw_str_add_n(s, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
        lw_str_add(s, "\"");
    }
    lw_str_add(s, "\n");
}

int lw_csv_append(const char *path, const char *const *header, const char *const *cells, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    uint64_t size = 0;
    if (lw_path_exists(path))
        LW_TRY(lw_file_size(path, &size));
    if (header && size == 0)
        lw_csv_row(&s, header, n);
    lw_csv_row(&s, cells, n);
    if (s.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for a line", path);
    return lw_file_append(path, s.s, s.len);
}

/* One row from *at on; *row stays NULL when the file ends inside it. */
static int read_row(const char *path, char **at, const char *end, json_t **row)
{
    LW_CLEANUP(lw_json_drop) json_t *cells = json_array();
    LW_CLEANUP(lw_str_clear) lw_str cell = {0};
    bool quoted = false;
    char *p = *at;
    for (; p < end; p++) {
        if (*p == '"') {
            if (quoted && p + 1 < end && p[1] == '"')
                lw_str_add_n(&cell, p++, 1);
            else
                quoted = !quoted;
        } else if (!quoted && *p == '\r' && p + 1 < end && p[1] == '\n') {
            continue; /* the line's end: in quotes it would be the cell's */
        } else if (quoted || (*p != ',' && *p != '\n')) {
            lw_str_add_n(&cell, p, 1);
        } else {
            bool last = *p == '\n';
            json_t *v = json_stringn(lw_str_c(&cell), cell.len);
            if (!v || cell.failed || json_array_append_new(cells, v) < 0)
                return lw_fail(LW_EFORMAT, "%s: a cell that is not UTF-8", path);
            cell.len = 0;
            if (last) {
                *at = p + 1;
                *row = lw_steal(&cells);
                return 0;
            }
        }
    }
    *at = p;
    return 0;
}

int lw_csv_load(const char *path, json_t **out)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    LW_CLEANUP(lw_json_drop) json_t *rows = json_array();
    size_t len;
    LW_TRY(lw_file_read(path, LW_JSON_MAX_BYTES, &text, &len));
    for (char *at = text; at < text + len;) {
        json_t *row = NULL;
        LW_TRY(read_row(path, &at, text + len, &row));
        if (row && json_array_append_new(rows, row) < 0)
            return lw_fail(LW_ENOMEM, "%s: no memory for its rows", path);
    }
    *out = lw_steal(&rows);
    return 0;
}

/* A file read line by line: what is held at a time is one line, whatever the file's length. */
typedef struct line_reader {
    FILE *file;
    char *text; /* [LW_LINE_BYTES], of which [at, end) is read and not looked at */
    size_t at, end;
    size_t kept, lines; /* bytes and lines that stay */
} line_reader;

static void close_reader(line_reader *r)
{
    if (r->file)
        fclose(r->file);
    lw_free(&r->text);
}

/* More of the file behind what is held; false: there is none. */
static bool read_more(line_reader *r)
{
    memmove(r->text, r->text + r->at, r->end - r->at);
    r->end -= r->at;
    r->at = 0;
    size_t n = fread(r->text + r->end, 1, LW_LINE_BYTES - r->end, r->file);
    r->end += n;
    return n > 0;
}

/* Looks at the whole lines that are held; false at the first that does not stay. */
static bool keep_lines(line_reader *r, lw_line_keep *keep, void *arg)
{
    for (char *end; (end = memchr(r->text + r->at, '\n', r->end - r->at));) {
        char *line = r->text + r->at;
        size_t len = (size_t)(end - line);
        *end = '\0';
        if (keep && !keep(arg, line, len, r->lines))
            return false;
        r->lines++;
        r->at += len + 1;
        r->kept += len + 1;
    }
    return true;
}

int lw_lines_cut(const char *path, lw_line_keep *keep, void *arg)
{
    uint64_t size;
    if (!lw_path_exists(path))
        return 0;
    LW_TRY(lw_file_size(path, &size));
    LW_CLEANUP(close_reader)
    line_reader r = {.file = fopen(path, "re"), .text = lw_calloc(LW_LINE_BYTES, 1)};
    if (!r.text)
        return LW_ENOMEM;
    if (!r.file)
        return lw_fail(LW_EIO, "%s: cannot open: %s", path, strerror(errno));
    while (keep_lines(&r, keep, arg)) {
        if (r.end - r.at == LW_LINE_BYTES)
            return lw_fail(LW_EFORMAT, "%s: line %zu is longer than %d bytes: not a log of a run",
                           path, r.lines + 1, LW_LINE_BYTES);
        if (!read_more(&r))
            break;
    }
    if (ferror(r.file))
        return lw_fail(LW_EIO, "%s: cannot read: %s", path, strerror(errno));
    return r.kept < size ? lw_file_cut(path, r.kept) : 0;
}

static bool keep_json(void *arg, const char *line, size_t len, size_t number)
{
    (void)number;
    json_t *v = json_loadb(line, len, 0, NULL);
    const json_t *step = json_object_get(v, "step");
    bool keep = v && (!json_is_integer(step) || json_integer_value(step) <= *(const int64_t *)arg);
    json_decref(v);
    return keep;
}

int lw_jsonl_cut_step(const char *path, int64_t step)
{
    return lw_lines_cut(path, keep_json, &step);
}

static bool keep_csv(void *arg, const char *line, size_t len, size_t number)
{
    (void)len;
    char *end;
    long long step = strtoll(line, &end, 10);
    return number == 0 || (end != line && (*end == ',' || !*end) && step <= *(const int64_t *)arg);
}

int lw_csv_cut_step(const char *path, int64_t step)
{
    return lw_lines_cut(path, keep_csv, &step);
}
