/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML configuration files as json_t trees. Plain scalars follow the YAML 1.2 core schema (1e-4 is
 * a number, `no` is a string, 0o17 and 0x1f are integers, .inf/.nan are refused because JSON has no
 * word for them); quoted scalars stay strings. One document; anchors, aliases, tags and merge keys
 * are refused, duplicate keys and more than LW_JSON_MAX_DEPTH levels too. JSON is accepted, being
 * YAML.
 */
#ifndef LW_FORMATS_YAML_H
#define LW_FORMATS_YAML_H

#include <stddef.h>

#include "base/str.h"
#include "formats/text/formats_json.h"

#define LW_YAML_MAX_BYTES ((size_t)16 << 20)

/* An empty document is an empty object. Errors are LW_EFORMAT "what:LINE:COLUMN: reason". */
int lw_yaml_parse(const char *what, const char *text, size_t len, json_t **out);
int lw_yaml_load(const char *path, json_t **out);

/* Appends the object as block maps, arrays of scalars as flow lists, strings quoted where a reader
 * would take them for something else. Reads back to an equal tree. LW_EUNSUPPORTED for a root that
 * is no object. */
int lw_yaml_dump(const json_t *map, lw_str *out);

#endif
