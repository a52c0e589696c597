/* SPDX-License-Identifier: Apache-2.0 */
/* One option's value: from text into its field with checks, and from its field to JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_options.h"
#include "formats/formats.h"

static void *field_of(lw_opt_ref ref)
{
    return (char *)ref.set->base + ref.row->offset;
}

/* 1000000, 1e9, 16777216, 0.05, 0.9999999: short, and exact. */
static void add_number(lw_str *out, double v)
{
    char buf[32];
    snprintf(buf, sizeof buf, "%g", v);
    for (int digits = 7; v != rint(v) && digits <= 17 && strtod(buf, NULL) != v; digits++)
        snprintf(buf, sizeof buf, "%.*g", digits, v);
    char *e = strchr(buf, 'e');
    if (v == rint(v) && fabs(v) < 1e15 && (fabs(v) < 1e7 || strtod(buf, NULL) != v)) {
        lw_str_addf(out, "%.0f", v);
        return;
    }
    lw_str_addf(out, "%.*s", e ? (int)(e - buf) : 32, buf);
    if (e)
        lw_str_addf(out, "e%d", (int)strtol(e + 1, NULL, 10));
}

void lw_opt_range(const lw_option *row, lw_str *out)
{
    bool open = row->max >= 1e15;
    lw_str_add(out, open ? "at least " : "");
    add_number(out, row->min);
    if (open)
        return;
    lw_str_add(out, " to ");
    add_number(out, row->max);
}

/* "must be 1 to 64", "must be at least 1", ... */
static int fail_range(const lw_option *row, const char *what, const char *text)
{
    LW_CLEANUP(lw_str_clear) lw_str range = {0};
    lw_opt_range(row, &range);
    return lw_fail(LW_EUSAGE, "%s %s: must be %s%s%s", what, text, lw_str_c(&range),
                   row->unit ? " " : "", row->unit ? row->unit : "");
}

/* Bytes of "KiB" to "TiB"; 0: that is no such unit. */
static double bytes_of(const char *unit)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    for (int i = 0; unit && i < (int)LW_COUNT(units); i++)
        if (lw_str_eq(unit, units[i]))
            return ldexp(1024, 10 * i);
    return 0;
}

/* A number; of a row that counts bytes, also a size with a unit of its own: 20GiB where 20480 MiB are meant. */
static int number_of(const lw_option *row, const char *text, double *out, bool *size)
{
    const size_t n = strlen(text);
    const double own = bytes_of(row->unit), given = own > 0 && n > 3 ? bytes_of(text + n - 3) : 0;
    char number[64];
    *size = given > 0 && n - 3 < sizeof number;
    if (!*size)
        return lw_parse_f64(text, out);
    snprintf(number, sizeof number, "%.*s", (int)(n - 3), text);
    int rc = lw_parse_f64(number, out);
    *out *= rc < 0 ? 1 : given / own;
    return rc;
}

static int fail_number(const lw_option *row, const char *what, const char *text, const char *kind)
{
    const bool size = bytes_of(row->unit) > 0;
    return lw_fail(LW_EUSAGE, "%s '%s': must be %s%s%s%s", what, text, kind, size ? " of " : "",
                   size ? row->unit : "", size ? ", or a size like 512MiB" : "");
}

static int parse_real(const lw_option *row, const char *what, const char *text, double *out)
{
    double v = 0;
    bool size;
    if (number_of(row, text, &v, &size) < 0)
        return fail_number(row, what, text, "a number");
    if ((row->min != 0.0 || row->max != 0.0) && !(v >= row->min && v <= row->max))
        return fail_range(row, what, text);
    *out = v;
    return 0;
}

/* Whole numbers, also written 1e5; of `bits` bits. Sizes are rounded up. */
static int parse_int(const lw_option *row, const char *what, const char *text, int bits,
                     int64_t *out)
{
    int64_t v;
    double real = 0;
    bool size;
    if (lw_parse_i64(text, &v) < 0) {
        if (number_of(row, text, &real, &size) < 0 || !(fabs(real) <= 0x1p53) ||
            (!size && real != floor(real)))
            return fail_number(row, what, text, "a whole number");
        v = (int64_t)ceil(real);
    }
    if ((row->min != 0.0 || row->max != 0.0) && !((double)v >= row->min && (double)v <= row->max))
        return fail_range(row, what, text);
    if (bits == 32 && (v < INT32_MIN || v > INT32_MAX))
        return lw_fail(LW_EUSAGE, "%s %s: does not fit 32 bits", what, text);
    *out = v;
    return 0;
}

static int parse_bool(const char *what, const char *text, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < LW_COUNT(words); i++) {
        if (lw_str_eq(text, words[i])) {
            *out = i % 2;
            return 0;
        }
    }
    return lw_fail(LW_EUSAGE, "%s '%s': must be true or false", what, text);
}

static int parse_choice(const lw_option *row, const char *what, const char *text, int64_t *out)
{
    *out = lw_str_index(row->choices, '|', text, strlen(text));
    return *out >= 0 ? 0
                     : lw_fail(LW_EUSAGE, "%s '%s': must be one of %s", what, text, row->choices);
}

static int keep_text(const lw_opts *o, const lw_option *row, const char *what, const char *text,
                     const char **out)
{
    int64_t index;
    if (row->choices)
        LW_TRY(parse_choice(row, what, text, &index));
    if (row->path && !*text)
        return lw_fail(LW_EUSAGE, "%s: is empty", what);
    const char *copy = lw_arena_strdup(o->arena, text);
    if (!copy)
        return LW_ENOMEM;
    *out = copy;
    return 0;
}

static int set_element(const lw_opts *o, lw_opt_ref ref, const char *what, const char *text,
                       void *field, int i)
{
    const lw_option *row = ref.row;
    int64_t whole = 0;
    double real = 0.0;
    switch (row->type) {
    case LW_OPT_I32S:
        LW_TRY(parse_int(row, what, text, 32, &whole));
        ((int32_t *)field)[i] = (int32_t)whole;
        return 0;
    case LW_OPT_F32S:
        LW_TRY(parse_real(row, what, text, &real));
        ((float *)field)[i] = (float)real;
        return 0;
    case LW_OPT_F64S:
        return parse_real(row, what, text, &((double *)field)[i]);
    default:
        return keep_text(o, row, what, text, &((const char **)field)[i]);
    }
}

/* Are elements i and j of a list one value, however each is spelt? */
static bool is_same(lw_opt_type type, const void *field, int i, int j)
{
    switch (type) {
    case LW_OPT_I32S:
        return ((const int32_t *)field)[i] == ((const int32_t *)field)[j];
    case LW_OPT_F32S:
        return ((const float *)field)[i] == ((const float *)field)[j];
    case LW_OPT_F64S:
        return ((const double *)field)[i] == ((const double *)field)[j];
    default:
        return lw_str_eq(((const char *const *)field)[i], ((const char *const *)field)[j]);
    }
}

/* Comma-separated; the empty text is the empty list. A failed list leaves the count as it was. */
static int set_list(const lw_opts *o, lw_opt_ref ref, const char *what, const char *text)
{
    LW_CLEANUP(lw_free) char *copy = lw_strdup(text);
    if (!copy)
        return LW_ENOMEM;
    if (ref.row->path && !*text)
        return lw_fail(LW_EUSAGE, "%s: is empty", what);
    int n = 0;
    for (char *p = copy, *next; p && *copy; p = next) {
        next = strchr(p, ',');
        if (next)
            *next++ = '\0';
        if (n == ref.row->capacity)
            return lw_fail(LW_EUSAGE, "%s %s: more than %d values", what, text, ref.row->capacity);
        LW_TRY(set_element(o, ref, what, p, field_of(ref), n));
        for (int i = 0; ref.row->distinct && i < n; i++)
            if (is_same(ref.row->type, field_of(ref), i, n))
                return lw_fail(LW_EUSAGE, "%s %s is there twice", what, p);
        n++;
    }
    *(int32_t *)(void *)((char *)ref.set->base + ref.row->count) = n;
    return 0;
}

static int set_scalar(const lw_opts *o, lw_opt_ref ref, const char *what, const char *text)
{
    const lw_option *row = ref.row;
    void *field = field_of(ref);
    int64_t whole = 0;
    double real = 0.0;
    switch (row->type) {
    case LW_OPT_BOOL:
        LW_TRY(parse_bool(what, text, field));
        *(bool *)field ^= row->opposite;
        return 0;
    case LW_OPT_I32:
        if (row->choices)
            LW_TRY(parse_choice(row, what, text, &whole));
        else
            LW_TRY(parse_int(row, what, text, 32, &whole));
        *(int32_t *)field = (int32_t)whole;
        return 0;
    case LW_OPT_I64:
        return parse_int(row, what, text, 64, field);
    case LW_OPT_F32:
        LW_TRY(parse_real(row, what, text, &real));
        *(float *)field = (float)real;
        return 0;
    case LW_OPT_F64:
        return parse_real(row, what, text, field);
    case LW_OPT_TEXT:
        return keep_text(o, row, what, text, field);
    default:
        return set_list(o, ref, what, text);
    }
}

int lw_opt_set_text(const lw_opts *o, lw_opt_ref ref, const char *what, const char *text)
{
    LW_TRY(set_scalar(o, ref, what, text));
    ref.set->given[ref.row - ref.set->rows] = true;
    return 0;
}

static json_t *json_of_choice(const lw_option *row, int32_t value)
{
    size_t n;
    const char *word = lw_str_choice(row->choices, value, &n);
    return json_stringn(word, n);
}

static json_t *json_of_element(lw_opt_type type, const void *field, int i)
{
    switch (type) {
    case LW_OPT_I32S:
        return json_integer(((const int32_t *)field)[i]);
    case LW_OPT_F32S:
        return lw_json_float(((const float *)field)[i]);
    case LW_OPT_F64S:
        return lw_json_real(((const double *)field)[i]);
    default:
        return json_string(((const char *const *)field)[i]);
    }
}

json_t *lw_opt_get_json(lw_opt_ref ref)
{
    const void *field = field_of(ref);
    switch (ref.row->type) {
    case LW_OPT_BOOL:
        return json_boolean(*(const bool *)field != ref.row->opposite);
    case LW_OPT_I32:
        if (ref.row->choices)
            return json_of_choice(ref.row, *(const int32_t *)field);
        return json_integer(*(const int32_t *)field);
    case LW_OPT_I64:
        return json_integer(*(const int64_t *)field);
    case LW_OPT_F32:
        return lw_json_float(*(const float *)field);
    case LW_OPT_F64:
        return lw_json_real(*(const double *)field);
    case LW_OPT_TEXT:
        return *(const char *const *)field ? json_string(*(const char *const *)field) : NULL;
    default:
        break;
    }
    json_t *list = json_array();
    int32_t n = *(const int32_t *)(const void *)((const char *)ref.set->base + ref.row->count);
    for (int32_t i = 0; i < n; i++)
        json_array_append_new(list, json_of_element(ref.row->type, field, i));
    return list;
}
