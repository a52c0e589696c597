/* SPDX-License-Identifier: Apache-2.0 */
/* The files of page/, in the program. */
#ifndef LW_SERVE_PAGE_H
#define LW_SERVE_PAGE_H

#include "base/base.h"

enum { LW_SERVE_PAGE_FILES = 3 };
extern const lw_embedded lw_serve_page[LW_SERVE_PAGE_FILES]; /* page.html, page.css, page.js */

#endif
