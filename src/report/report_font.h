/* SPDX-License-Identifier: Apache-2.0 */
/* A 5x7 bitmap font for ASCII. */
#ifndef LW_REPORT_FONT_H
#define LW_REPORT_FONT_H

#include <stdbool.h>

/* Is the dot at column x (0..4), row y (0..7; row 7 holds descenders) of the character set? */
bool lw_font_dot(char c, int x, int y);

#endif
