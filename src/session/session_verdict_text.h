/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict for people and for programs: the same words and keys wherever one is given. */
#ifndef LW_SESSION_VERDICT_TEXT_H
#define LW_SESSION_VERDICT_TEXT_H

#include "session/session_verdict.h"

/* The object "verdict" of docs/formats.md; rows as given to lw_verdict_run. copies [rows]: of each
 * row, or n 0; NULL: none was looked for. New reference. */
json_t *lw_verdict_json(const lw_battery *b, const lw_verdict_set *rows, const lw_copying *copies,
                        const lw_verdict_result *r);
/* Some lines, appended: networks and families, a line for each row, who is left out and why. */
void lw_verdict_print(const lw_battery *b, const lw_verdict_set *rows, const lw_copying *copies,
                      const lw_verdict_result *r, lw_str *out);
/* "6 networks of 4 families", appended; "1 network of 1 family". */
void lw_verdict_count(const lw_verdict_result *r, lw_str *out);
/* Is the row suspect, by either rule? Then its one number counts for nothing. copies: of this row, or
 * NULL. */
bool lw_verdict_suspect(const lw_verdict_result *r, int32_t row, const lw_copying *copies);
/* Its place among the rows that count, by the one number, 1: nearest to real; 0: it counts for none,
 * because it is suspect or no generator's. rows, copies: as above. */
int32_t lw_verdict_place(const lw_verdict_set *rows, const lw_copying *copies,
                         const lw_verdict_result *r, int32_t row);
/* What is said of a row's honesty: "suspect: resnet20 alone sees it near real pictures", "suspect:
 * 305 of 500 lie on training pictures", "no verdict", "nothing suspicious"; appended. */
void lw_verdict_honesty(const lw_battery *b, const lw_verdict_result *r, int32_t row,
                        const lw_copying *c, lw_str *out);

#endif
