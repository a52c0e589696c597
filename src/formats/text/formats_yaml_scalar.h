/* SPDX-License-Identifier: Apache-2.0 */
/* What a plain (unquoted) YAML scalar means: YAML 1.2 core schema, section 10.3.2. */
#ifndef LW_FORMATS_YAML_SCALAR_H
#define LW_FORMATS_YAML_SCALAR_H

#include <stddef.h>

#include "formats/text/formats_json.h"

/* New reference, or NULL with *why set ("infinity has no JSON form", ...) or NULL for out of
 * memory. */
json_t *lw_yaml_scalar(const char *s, size_t n, const char **why);

#endif
