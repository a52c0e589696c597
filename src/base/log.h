/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines, on stderr as "level area: text" or in a function of the caller's. Level per area from
 * LW_LOG=info,profile=debug.
 */
#ifndef LW_BASE_LOG_H
#define LW_BASE_LOG_H

#include <stdbool.h>

typedef enum lw_log_level { LW_LOG_ERROR, LW_LOG_WARN, LW_LOG_INFO, LW_LOG_DEBUG } lw_log_level;

/* All there are; logging under another name is a bug. */
#define LW_LOG_AREAS                                                                               \
    "battery compare config data drift encode field formats mc precision profile prove run store " \
    "stream "                                                                                      \
    "train"

/* Parses "LEVEL[,area=LEVEL...]"; NULL reads LW_LOG. Default: warn. LW_EUSAGE: an unknown level or
 * area, naming those there are. */
int lw_log_config(const char *spec);
/* lw_log_config(NULL) when the process asks first, until it succeeds. */
int lw_log_config_once(void);
void lw_log_set(lw_log_level level); /* default level of all areas (--quiet, --verbose) */
/* Where lines go, one at a time: area and text, without a line end, live until it returns. NULL, as at
 * first: stderr, where those go too that the sink itself causes. The sink before is not called any more
 * when this returns. */
typedef void lw_log_sink(void *self, int level, const char *area, const char *text);
void lw_log_to(lw_log_sink *sink, void *self);
bool lw_log_on(lw_log_level level, const char *area);
void lw_log(lw_log_level level, const char *area, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
