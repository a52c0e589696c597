/* SPDX-License-Identifier: Apache-2.0 */
/* YAML text -> json_t, from libyaml's events. */
#include "formats/text/formats_yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/base.h"
#include "formats/text/formats_yaml_scalar.h"

typedef struct reader {
    const char *what;
    yaml_parser_t parser;
    yaml_event_t event;
} reader;

static int read_node(reader *r, int depth, json_t **out);

static int fail_at(const char *what, yaml_mark_t at, const char *why)
{
    return lw_fail(LW_EFORMAT, "%s:%zu:%zu: %s", what, at.line + 1, at.column + 1, why);
}

static int fail_here(reader *r, const char *why)
{
    return fail_at(r->what, r->event.start_mark, why);
}

/* Next event into r->event (the one before is released). */
static int next(reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    const yaml_parser_t *p = &r->parser;
    memset(&r->event, 0, sizeof r->event);
    if (p->error == YAML_MEMORY_ERROR)
        return lw_fail(LW_ENOMEM, "%s: no memory to parse it", r->what);
    if (p->error == YAML_READER_ERROR)
        return lw_fail(LW_EFORMAT, "%s: byte %zu: %s", r->what, p->problem_offset,
                       p->problem ? p->problem : "not text");
    return fail_at(r->what, p->problem_mark, p->problem ? p->problem : "bad YAML");
}

static int read_scalar(reader *r, json_t **out)
{
    const char *s = (const char *)r->event.data.scalar.value, *why = NULL;
    size_t n = r->event.data.scalar.length;
    if (r->event.data.scalar.anchor || r->event.data.scalar.tag)
        return fail_here(r, "anchors and tags are not supported");
    json_t *v;
    if (r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        v = lw_yaml_scalar(s, n, &why);
    } else {
        v = strlen(s) == n ? json_stringn(s, n) : NULL;
        why = strlen(s) == n ? "text that is not UTF-8" : "a NUL byte inside a value";
    }
    if (!v)
        return why ? fail_here(r, why) : lw_fail(LW_ENOMEM, "%s: no memory to parse it", r->what);
    *out = v;
    return 0;
}

static int read_pair(reader *r, int depth, json_t *map)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, "a key must be a single word or a quoted string");
    const char *s = (const char *)r->event.data.scalar.value;
    if (r->event.data.scalar.anchor || r->event.data.scalar.tag)
        return fail_here(r, "anchors and tags are not supported");
    if (strlen(s) != r->event.data.scalar.length)
        return fail_here(r, "a NUL byte inside a key");
    if (r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(s, "<<") == 0)
        return fail_here(r, "merge keys are not supported");
    if (json_object_get(map, s))
        return lw_fail(LW_EFORMAT, "%s:%zu: the key '%s' stands here a second time", r->what,
                       r->event.start_mark.line + 1, s);
    LW_CLEANUP(lw_free) char *key = lw_strdup(s);
    if (!key)
        return LW_ENOMEM;
    json_t *value;
    LW_TRY(next(r));
    LW_TRY(read_node(r, depth, &value));
    if (json_object_set_new(map, key, value) < 0)
        return fail_here(r, "a key that is not UTF-8");
    return next(r);
}

static int read_mapping(reader *r, int depth, json_t **out)
{
    if (r->event.data.mapping_start.anchor || r->event.data.mapping_start.tag)
        return fail_here(r, "anchors and tags are not supported");
    LW_CLEANUP(lw_json_drop) json_t *map = json_object();
    if (!map)
        return lw_fail(LW_ENOMEM, "%s: no memory to parse it", r->what);
    LW_TRY(next(r));
    while (r->event.type != YAML_MAPPING_END_EVENT)
        LW_TRY(read_pair(r, depth, map));
    *out = lw_steal(&map);
    return 0;
}

static int read_sequence(reader *r, int depth, json_t **out)
{
    if (r->event.data.sequence_start.anchor || r->event.data.sequence_start.tag)
        return fail_here(r, "anchors and tags are not supported");
    LW_CLEANUP(lw_json_drop) json_t *list = json_array();
    if (!list)
        return lw_fail(LW_ENOMEM, "%s: no memory to parse it", r->what);
    LW_TRY(next(r));
    while (r->event.type != YAML_SEQUENCE_END_EVENT) {
        json_t *v;
        LW_TRY(read_node(r, depth, &v));
        if (json_array_append_new(list, v) < 0)
            return lw_fail(LW_ENOMEM, "%s: no memory to parse it", r->what);
        LW_TRY(next(r));
    }
    *out = lw_steal(&list);
    return 0;
}

/* The node that r->event starts; afterwards r->event is its last event. */
static int read_node(reader *r, int depth, json_t **out)
{
    if (depth >= LW_JSON_MAX_DEPTH)
        return fail_here(r, "nested too deeply");
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r, out);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(r, depth + 1, out);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(r, depth + 1, out);
    case YAML_ALIAS_EVENT:
        return fail_here(r, "aliases are not supported");
    default:
        return fail_here(r, "a value is missing");
    }
}

static int read_stream(reader *r, json_t **out)
{
    LW_CLEANUP(lw_json_drop) json_t *root = NULL;
    LW_TRY(next(r)); /* stream start */
    LW_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT) {
        root = json_object();
        if (!root)
            return lw_fail(LW_ENOMEM, "%s: no memory to parse it", r->what);
    } else {
        LW_TRY(next(r)); /* after document start */
        LW_TRY(read_node(r, 0, &root));
        LW_TRY(next(r)); /* document end */
        LW_TRY(next(r));
        if (r->event.type != YAML_STREAM_END_EVENT)
            return fail_here(r, "a second document starts here; only one is read");
    }
    *out = lw_steal(&root);
    return 0;
}

int lw_yaml_parse(const char *what, const char *text, size_t len, json_t **out)
{
    if (len > LW_YAML_MAX_BYTES)
        return lw_fail(LW_EFORMAT, "%s: %zu bytes of YAML, at most %zu", what, len,
                       LW_YAML_MAX_BYTES);
    reader r = {.what = what};
    if (!yaml_parser_initialize(&r.parser))
        return lw_fail(LW_ENOMEM, "%s: no memory to parse it", what);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    int rc = read_stream(&r, out);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return rc;
}

int lw_yaml_load(const char *path, json_t **out)
{
    char *text;
    size_t len;
    LW_TRY(lw_file_read(path, LW_YAML_MAX_BYTES, &text, &len));
    int rc = lw_yaml_parse(path, text, len, out);
    lw_free(&text);
    return rc;
}
