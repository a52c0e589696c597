/* SPDX-License-Identifier: Apache-2.0 */
/* A file inside the program: tools/embed.cmake writes lists of them as C at build time. */
#ifndef LW_BASE_EMBEDDED_H
#define LW_BASE_EMBEDDED_H

#include <stddef.h>

typedef struct lw_embedded {
    const char *name; /* of the file, without its folder */
    const unsigned char *bytes;
    size_t n;
} lw_embedded;

#endif
