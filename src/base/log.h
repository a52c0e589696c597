/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on stderr: "level area: text". Level per area from LW_LOG=info,profile=debug. */
#ifndef LW_BASE_LOG_H
#define LW_BASE_LOG_H

#include <stdbool.h>

typedef enum lw_log_level { LW_LOG_ERROR, LW_LOG_WARN, LW_LOG_INFO, LW_LOG_DEBUG } lw_log_level;

/* All there are; logging under another name is a bug. */
#define LW_LOG_AREAS                                                                           \
    "battery compare config data drift field formats mc precision profile prove store stream " \
    "train"

/* Parses "LEVEL[,area=LEVEL...]"; NULL reads LW_LOG. Default: warn. LW_EUSAGE: an unknown level or
 * area, naming those there are. */
int lw_log_config(const char *spec);
void lw_log_set(lw_log_level level); /* default level of all areas (--quiet, --verbose) */
bool lw_log_on(lw_log_level level, const char *area);
void lw_log(lw_log_level level, const char *area, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
