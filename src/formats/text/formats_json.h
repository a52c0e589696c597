/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON. Trees are jansson's json_t; this header adds limits on input, numbers that read back to the
 * same bits on output, atomic saving, and typed access to fields with errors that name file and
 * key.
 */
#ifndef LW_FORMATS_JSON_H
#define LW_FORMATS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define LW_JSON_MAX_DEPTH 64
#define LW_JSON_MAX_BYTES ((size_t)256 << 20)

/* One value and nothing after it; duplicate keys, deeper than LW_JSON_MAX_DEPTH, bad UTF-8:
 * LW_EFORMAT with line and column. */
int lw_json_parse(const char *what, const char *text, size_t len, json_t **out);
int lw_json_load(const char *path, json_t **out);
void lw_json_drop(json_t **pp); /* decref and null: LW_CLEANUP(lw_json_drop) */

/* Has jansson tell failed allocations (lw_alloc_failed): a tree that lacks something for want of
 * memory is then not written. For programs, once, before any JSON: jansson's allocator belongs to
 * the whole process. */
void lw_json_watch_memory(void);
/* Whether something of a tree or its text was lost on this thread. */
bool lw_json_lost(void);
void lw_json_lose(void);
/* lw_json_parse without its limits and message; NULL with ENOMEM in errno: no memory. */
json_t *lw_json_decode(const char *text, size_t len, json_error_t *err);

/* A number, or JSON null for NaN and infinities (JSON has no word for them). */
json_t *lw_json_real(double x);
/* A path or a name that somebody gave: as lw_str_add_clean writes it, since JSON is UTF-8 and a tree
 * that is packed with anything else is NULL. NULL of NULL. */
json_t *lw_json_name(const char *text);
/* A hash, as 16 hexadecimal digits: numbers of JSON end at 2^53. */
json_t *lw_json_hash(uint64_t hash);
/* The first key whose value is not the same in both objects, or is in one of them only; NULL: none. */
const char *lw_json_difference(const json_t *a, const json_t *b);
/* The same of the shortest number that is x when it is rounded to a float: 1e-05, not
 * 9.999999747378752e-06. */
json_t *lw_json_float(float x);

/* Appends to *out. indent 0: one line; else pretty, with arrays of scalars kept on one line. Reals
 * are the shortest text that reads back to the same double; keys keep insertion order; NULL is
 * null. */
void lw_json_dump(const json_t *v, int indent, lw_str *out);
/* Appends a scalar, or a list of them, as the value of an option: bare, with commas between, '' for an
 * empty list. */
void lw_json_typed(const json_t *v, lw_str *out);
int lw_json_save(const char *path, const json_t *v); /* pretty (2), newline at the end, atomic */

/*
 * Typed fields of an object. `where` (a path or a section) and `key` go into the message of
 * LW_EFORMAT
 * ("config.json: 'layers_per_block' must be an integer, is a string"). _get: must exist. _opt:
 * absent or null leaves *out as it was and returns 0. Strings are borrowed from the tree.
 */
int lw_json_get_i64(const json_t *o, const char *where, const char *key, int64_t *out);
int lw_json_get_f64(const json_t *o, const char *where, const char *key,
                    double *out); /* integers too */
int lw_json_get_bool(const json_t *o, const char *where, const char *key, bool *out);
int lw_json_get_str(const json_t *o, const char *where, const char *key, const char **out);
int lw_json_get_object(const json_t *o, const char *where, const char *key, const json_t **out);
int lw_json_get_array(const json_t *o, const char *where, const char *key, const json_t **out);
int lw_json_opt_i64(const json_t *o, const char *where, const char *key, int64_t *out);
int lw_json_opt_f64(const json_t *o, const char *where, const char *key, double *out);
int lw_json_opt_bool(const json_t *o, const char *where, const char *key, bool *out);
int lw_json_opt_str(const json_t *o, const char *where, const char *key, const char **out);
/* A hash as text of 1 to 16 hexadecimal digits. */
int lw_json_opt_hash(const json_t *o, const char *where, const char *key, uint64_t *out);
/* An integer within [lo, hi], as an int32_t. */
int lw_json_get_i32_in(const json_t *o, const char *where, const char *key, int32_t lo, int32_t hi,
                       int32_t *out);
/* An array of at most max integers; *n is how many. */
int lw_json_get_i32s(const json_t *o, const char *where, const char *key, int max, int32_t *out,
                     int *n);

/* Types a field may have, to be added up. */
enum {
    LW_JSON_INT = 1,
    LW_JSON_NUMBER = 2, /* integers too */
    LW_JSON_BOOL = 4,
    LW_JSON_STRING = 8,
    LW_JSON_ARRAY = 16,
    LW_JSON_NULL = 32,
    LW_JSON_OBJECT = 64
};
typedef struct lw_json_rule {
    const char *key; /* NULL ends a list of rules */
    unsigned types;
} lw_json_rule;
/*
 * For configurations of other programs, where a field passed over is a number computed wrongly:
 * every field of o that rules name has one of its types. Fields that no rule names are refused when
 * they start with `own` (a later version of this program wrote them), passed over when they start
 * with '_' (who wrote the file), and else passed over with a warning. LW_EFORMAT names the field.
 */
int lw_json_check_fields(const json_t *o, const char *where, const lw_json_rule *rules,
                         const char *own);

typedef struct lw_json_only {
    const char *key;   /* "*": every one that is not known; NULL ends a list */
    const char *value; /* as one line of JSON; null is taken too. Several rows: any of them */
} lw_json_only;
/*
 * The same without passing anything over but keys that start with '_': every key of o is in one of
 * the lists `known` (read by the caller, or without meaning for it; each NULL-ended, and so is their
 * list), or has the one value of `only` (may be NULL). LW_EUNSUPPORTED names file, key and value of
 * what is not honoured.
 */
int lw_json_check_known(const json_t *o, const char *where, const char *const *const *known,
                        const lw_json_only *only);

#endif
