/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: what a client of the page's server may say, by the first byte: an address, a Host and an
 * Origin, a cookie, or settings. (What a WebSocket brings is a JPEG: fuzz_png, or text of one letter.) */
#include "fuzz/fuzz.h"

#include "serve/serve_rules.h"

static void read_settings(const char *text, size_t n)
{
    static const lw_serve_knob knobs[] = {
        {"strength", "strength", 0, 1, 0.01, 0.5, LW_SERVE_LIVE, NULL},
        {"steps", "steps", 1, 8, 1, 1, LW_SERVE_RESET, NULL}};
    const lw_serve_options o = {.knobs = knobs, .n_knobs = 2};
    lw_serve_asked asked = {.value = {0.5, 1}};
    const lw_serve_asked before = asked;
    if (lw_serve_settings_read(text, n, knobs, 2, &asked) < 0 &&
        (asked.paused != before.paused || asked.resets != before.resets ||
         memcmp(asked.value, before.value, sizeof asked.value) != 0))
        abort(); /* all or nothing */
    if (!(asked.value[0] >= 0 && asked.value[0] <= 1 && asked.value[1] >= 1 && asked.value[1] <= 8))
        abort();
    json_t *j = lw_serve_settings_json(&o, &(lw_serve_size){0}, &asked);
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const lw_serve_place here = {.host = "localhost", .ip = "127.0.0.1", .loopback = true};
    char value[33];
    if (size == 0)
        return 0;
    char *text = malloc(size);
    if (!text)
        abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    lw_serve_place place;
    switch (data[0]) {
    case 'a':
        if (strspn(text, "0123456789.:*") == strlen(text)) /* no names: they would be looked up */
            (void)lw_serve_place_read(text, &place);
        break;
    case 'h':
        (void)lw_serve_host_right(&here, text);
        if (lw_serve_origin_right(false, text, "http://evil.example") &&
            strcasecmp(text, "evil.example") != 0)
            abort();
        (void)lw_serve_origin_right(true, "localhost", text);
        break;
    case 'c':
        if (lw_serve_cookie(text, "leeway_token", value, sizeof value) &&
            lw_serve_token_right("0123456789abcdef", value) && !strstr(text, "0123456789abcdef"))
            abort();
        break;
    default:
        read_settings(text, size - 1);
    }
    free(text);
    return 0;
}
