/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines with a level per area. Areas are configured once at start; level and sink, by any thread. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

enum { MAX_AREAS = 16, MAX_AREA_NAME = 24, MAX_LINE = 8192 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static _Atomic int default_level = LW_LOG_WARN;
static struct {
    char name[MAX_AREA_NAME];
    lw_log_level level;
} areas[MAX_AREAS];
static int n_areas;

/* Held while a line is written or handed to the sink, so that lines of two threads do not mix. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool in_sink; /* this thread holds it, and is the sink */
static lw_log_sink *sink;
static void *sink_self;

static int parse_level(const char *word, size_t n, lw_log_level *out)
{
    for (int i = 0; i <= LW_LOG_DEBUG; i++) {
        if (strlen(level_names[i]) == n && memcmp(level_names[i], word, n) == 0) {
            *out = (lw_log_level)i;
            return 0;
        }
    }
    return lw_fail(LW_EUSAGE, "log level '%.*s' is unknown: use error, warn, info or debug", (int)n,
                   word);
}

static bool known_area(const char *name, size_t n)
{
    return lw_str_index(LW_LOG_AREAS, ' ', name, n) >= 0;
}

static int set_area(const char *name, size_t n, lw_log_level level)
{
    if (!known_area(name, n))
        return lw_fail(LW_EUSAGE, "log area '%.*s' is unknown: there are " LW_LOG_AREAS, (int)n,
                       name);
    for (int i = 0; i < n_areas; i++) {
        if (strlen(areas[i].name) == n && memcmp(areas[i].name, name, n) == 0) {
            areas[i].level = level;
            return 0;
        }
    }
    memcpy(areas[n_areas].name, name, n);
    areas[n_areas].name[n] = '\0';
    areas[n_areas].level = level;
    n_areas++;
    return 0;
}

static int config(const char *spec)
{
    size_t n;
    for (const char *word; (word = lw_str_word(&spec, ',', &n));) {
        const char *eq = memchr(word, '=', n);
        lw_log_level level;
        if (eq) {
            size_t name = (size_t)(eq - word);
            LW_TRY(parse_level(eq + 1, n - name - 1, &level));
            LW_TRY(set_area(word, name, level));
        } else if (n > 0) {
            LW_TRY(parse_level(word, n, &level));
            default_level = level;
        }
    }
    return 0;
}

int lw_log_config(const char *spec)
{
    const char *said = spec ? NULL : getenv("LW_LOG");
    if (!spec && !said)
        return 0;
    int rc = config(spec ? spec : said);
    return rc && said ? lw_fail_in(rc, "LW_LOG: ") : rc;
}

int lw_log_config_once(void)
{
    static bool done;
    bool own = !in_sink;
    int rc = 0;
    if (own)
        pthread_mutex_lock(&lock);
    if (!done)
        rc = lw_log_config(NULL);
    done = rc == 0;
    if (own)
        pthread_mutex_unlock(&lock);
    return rc;
}

void lw_log_set(lw_log_level level)
{
    default_level = (int)level;
}

void lw_log_to(lw_log_sink *to, void *self)
{
    bool own = !in_sink;
    if (own)
        pthread_mutex_lock(&lock);
    sink = to;
    sink_self = self;
    if (own)
        pthread_mutex_unlock(&lock);
}

bool lw_log_on(lw_log_level level, const char *area)
{
    LW_ASSERT(known_area(area, strlen(area)), "log area '%s' is not in LW_LOG_AREAS", area);
    for (int i = 0; i < n_areas; i++)
        if (strcmp(areas[i].name, area) == 0)
            return level <= areas[i].level;
    return (int)level <= default_level;
}

void lw_log(lw_log_level level, const char *area, const char *fmt, ...)
{
    if (!lw_log_on(level, area))
        return;
    char raw[MAX_LINE], line[MAX_LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    lw_clean(line, sizeof line, raw);
    bool own = !in_sink;
    if (own)
        pthread_mutex_lock(&lock);
    if (own && sink) {
        in_sink = true;
        sink(sink_self, (int)level, area, line);
        in_sink = false;
    } else {
        fprintf(stderr, "%s %s: %s\n", level_names[level], area, line);
    }
    if (own)
        pthread_mutex_unlock(&lock);
}
