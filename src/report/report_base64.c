/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into text that a page can hold: base64 (RFC 4648) and HTML escapes. */
#include <stdint.h>

#include "report/report_html.h"

void lw_base64(lw_str *out, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (have > 2 ? (uint32_t)p[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], have > 1 ? digits[v >> 6 & 63] : '=',
                        have > 2 ? digits[v & 63] : '='};
        lw_str_add_n(out, four, 4);
    }
}

/* Line breaks and tabs stay: texts have them, and a page may show them as they stand. */
void lw_html_escape(lw_str *out, const char *text)
{
    LW_CLEANUP(lw_str_clear) lw_str clean = {0};
    lw_str_add_clean(&clean, text, "\n\t");
    out->failed |= clean.failed;
    for (const char *c = lw_str_c(&clean); *c; c++) {
        switch (*c) {
        case '<':
            lw_str_add(out, "&lt;");
            break;
        case '>':
            lw_str_add(out, "&gt;");
            break;
        case '&':
            lw_str_add(out, "&amp;");
            break;
        case '"':
            lw_str_add(out, "&quot;");
            break;
        default:
            lw_str_add_n(out, c, 1);
        }
    }
}
