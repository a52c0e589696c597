/* SPDX-License-Identifier: Apache-2.0 */
/* Text to numbers and numbers to text for people. The process never leaves the C locale. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/summary.h"

int lw_parse_i64(const char *text, int64_t *out)
{
    size_t digits = strspn(text + (*text == '-' || *text == '+'), "0123456789");
    if (digits == 0 || text[digits + (*text == '-' || *text == '+')] != '\0')
        return lw_fail(LW_EUSAGE, "'%s' is not a whole number", text);
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return lw_fail(LW_EUSAGE, "'%s' does not fit 64 bits", text);
    *out = value;
    return 0;
}

/* Sign, then decimal digits with point and exponent, or "inf": no blanks, no hexadecimal,
 * no nan. */
static bool looks_decimal(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    if (strcmp(p, "inf") == 0)
        return true;
    return (*p == '.' || (*p >= '0' && *p <= '9')) && p[strspn(p, "0123456789.eE+-")] == '\0';
}

int lw_parse_f64(const char *text, double *out)
{
    char *end = NULL;
    errno = 0;
    double value = looks_decimal(text) ? strtod(text, &end) : 0.0;
    if (!end || end == text || *end != '\0')
        return lw_fail(LW_EUSAGE, "'%s' is not a number", text);
    if (errno == ERANGE && fabs(value) > 1.0)
        return lw_fail(LW_EUSAGE, "'%s' is too large", text);
    *out = value;
    return 0;
}

const char *lw_fmt_bytes(char buf[32], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < LW_COUNT(units)) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buf, 32, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return buf;
}

const char *lw_fmt_time(char buf[32], double seconds)
{
    if (!(seconds >= 0.0) || seconds > 1e9) {
        snprintf(buf, 32, "?");
    } else if (seconds < 999.5e-6) {
        snprintf(buf, 32, "%.3g us", seconds * 1e6);
    } else if (seconds < 0.9995) {
        snprintf(buf, 32, "%.3g ms", seconds * 1e3);
    } else if (seconds < 59.95) {
        snprintf(buf, 32, "%.3gs", seconds);
    } else {
        long long s = llround(seconds);
        if (s < 3600)
            snprintf(buf, 32, "%lldm %02llds", s / 60, s % 60);
        else
            snprintf(buf, 32, "%lldh %02lldm", s / 3600, s / 60 % 60);
    }
    return buf;
}

const char *lw_f64_text(char buf[32], double x)
{
    if (!isfinite(x)) {
        snprintf(buf, 32, "%s", lw_not_finite_text(x));
        return buf;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, x);
        if (strtod(buf, NULL) == x)
            break;
    }
    return buf;
}
