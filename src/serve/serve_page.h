/* SPDX-License-Identifier: Apache-2.0 */
/* The files of page/, in the program: tools/embed.cmake writes them as arrays at build time. */
#ifndef LW_SERVE_PAGE_H
#define LW_SERVE_PAGE_H

#include <stddef.h>

enum { LW_SERVE_PAGE_FILES = 3 };
typedef struct lw_serve_page_file {
    const char *path, *type;
    const unsigned char *bytes;
    size_t n;
} lw_serve_page_file;
extern const lw_serve_page_file lw_serve_page[LW_SERVE_PAGE_FILES];

#endif
