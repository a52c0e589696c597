/* SPDX-License-Identifier: Apache-2.0 */
/* serve: what it answers, to whom, and that nobody who looks can stall who gives frames. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "frames/frames.h"
#include "serve/serve.h"
#include "serve/serve_rules.h"

enum { W = 160, H = 96, MOST = 1 << 20 };

static const char *const models[] = {"identity", "runs/sharp"};
static const lw_serve_knob knobs[] = {
    {"strength", "strength", 0, 1, 0.01, 0.5, LW_SERVE_LIVE, NULL},
    {"steps", "steps", 1, 8, 1, 1, LW_SERVE_RESET, NULL},
    {"model", "model", 0, 1, 1, 0, LW_SERVE_REBUILD, models}};
enum { KNOBS = LW_COUNT(knobs) };

/* ---- a server and clients -------------------------------------------------------------------- */

static lw_serve *open_at(const char *address, bool insecure)
{
    const lw_serve_options o = {.address = address,
                                .insecure = insecure,
                                .knobs = knobs,
                                .n_knobs = KNOBS,
                                .title = "caf\xe9.mp4"};
    const lw_serve_size size = {W, H, W, H, 30};
    lw_serve *s = NULL;
    assert_int_equal(lw_serve_new(&o, &s), 0);
    assert_int_equal(lw_serve_start(s, &size), 0);
    return s;
}

static int open_server(void **state)
{
    if (lw_serve_known())
        *state = open_at("127.0.0.1:0", false);
    return 0;
}

static int close_server(void **state)
{
    lw_serve_close((lw_serve **)state);
    return 0;
}

/* The server of a test, or the test is skipped. */
static lw_serve *server_of(void **state)
{
    if (!*state) {
        print_message("no libwebsockets: skipped\n");
        skip();
    }
    return *state;
}

static void give(lw_serve *s, int64_t number)
{
    lw_serve_asked asked;
    lw_serve_control(s, &asked);
    lw_serve_frame *f = lw_serve_frame_begin(s, asked.watched);
    if (!f)
        return;
    lw_frame_test_draw(f->in, W, H, number);
    lw_frame_test_draw(f->out, W, H, number + 1000);
    f->number = number;
    f->captured = f->taken = f->computed = lw_now();
    lw_serve_frame_give(s);
}

static int dial_with(const lw_serve *s, int buffer)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)lw_serve_port(s))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (buffer)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int dial(const lw_serve *s)
{
    return dial_with(s, 0);
}

static void put(int fd, const void *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

/* What comes within so many ms, until n bytes are there or the other side closes. */
static size_t get(int fd, char *buf, size_t n, int ms)
{
    const double until = lw_now() + ms * 1e-3;
    size_t have = 0;
    while (have < n && lw_now() < until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) != 1)
            continue;
        ssize_t got = recv(fd, buf + have, n - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    buf[have] = '\0';
    return have;
}

static char answer[MOST + 1];

/* Sends a request of these headers and body; the answer with its head is in `answer`. */
static const char *ask(const lw_serve *s, const char *line, const char *headers, const char *body)
{
    char text[8192];
    int fd = dial(s);
    int n = snprintf(text, sizeof text, "%s HTTP/1.1\r\n%s%sConnection: close\r\n", line,
                     strstr(headers, "Host:") ? "" : "Host: localhost\r\n", headers);
    if (body)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n%s", body ? body : "");
    put(fd, text, (size_t)n);
    size_t have = 0, whole = MOST, got;
    answer[0] = '\0';
    do { /* byte by byte to the head's end, then the body */
        got = get(fd, answer + have, whole == MOST ? 1 : whole - have, 2000);
        have += got;
        const char *length = strstr(answer, "content-length:");
        if (whole == MOST && have > 4 && memcmp(answer + have - 4, "\r\n\r\n", 4) == 0)
            whole = length ? have + strtoul(length + 15, NULL, 10) : have;
    } while (got > 0 && have < whole);
    close(fd);
    return answer;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %.300s", part, text);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void rules(void **state)
{
    (void)state;
    lw_serve_place p;
    char value[8];
    assert_int_equal(lw_serve_place_read("127.0.0.1:8081", &p), 0);
    assert_true(p.loopback && p.port == 8081);
    assert_int_equal(lw_serve_place_read("9000", &p), 0);
    assert_true(p.loopback && p.port == 9000 && strcmp(p.ip, "127.0.0.1") == 0);
    assert_int_equal(lw_serve_place_read("localhost", &p), 0);
    assert_true(p.loopback && p.port == 8080);
    assert_true(lw_serve_host_right(&p, "localhost:8080") && lw_serve_host_right(&p, "127.0.0.1"));
    assert_false(lw_serve_host_right(&p, "evil.example:8080"));
    assert_false(lw_serve_host_right(&p, "localhost.evil.example"));
    assert_false(lw_serve_host_right(&p, ""));
    assert_true(lw_serve_origin_right(false, "localhost:1", "http://localhost:1"));
    assert_true(lw_serve_origin_right(false, "localhost:1", ""));
    assert_false(lw_serve_origin_right(false, "localhost:1", "http://localhost:2"));
    assert_false(lw_serve_origin_right(true, "localhost:1", "http://localhost:1"));
    assert_false(lw_serve_origin_right(false, "localhost:1", "null"));
    assert_int_equal(lw_serve_place_read("0.0.0.0:1", &p), 0);
    assert_false(p.loopback);
    assert_int_equal(lw_serve_place_read("127.0.0.1:65536", &p), LW_EUSAGE);
    assert_int_equal(lw_serve_place_read("a:b:1", &p), LW_EUSAGE);
    assert_true(lw_serve_token_right("abc", "abc"));
    assert_false(lw_serve_token_right("abc", "abd") || lw_serve_token_right("abc", "ab") ||
                 lw_serve_token_right("abc", "abcd") || lw_serve_token_right("abc", ""));
    assert_true(lw_serve_cookie("x=1; tok=abc;y", "tok", value, sizeof value));
    assert_string_equal(value, "abc");
    assert_false(lw_serve_cookie("xtok=abc", "tok", value, sizeof value));
    assert_false(lw_serve_cookie("tok=abcdefgh", "tok", value, sizeof value));
}

static int settings(const char *text, lw_serve_asked *asked)
{
    return lw_serve_settings_read(text, strlen(text), knobs, KNOBS, asked);
}

static void settings_are_all_or_nothing(void **state)
{
    (void)state;
    lw_serve_asked a = {.value = {0.5, 1}};
    assert_int_equal(settings("{\"paused\": true, \"reset\": true, \"steps\": 4}", &a), 0);
    assert_true(a.paused && a.resets == 1 && a.value[1] > 3.5);
    assert_int_equal(settings("{\"paused\": false, \"strength\": 1.5}", &a), LW_EFORMAT);
    assert_has(lw_errmsg(), "'strength' must be within 0 to 1, is 1.5");
    assert_true(a.paused);
    assert_int_equal(settings("{\"strenght\": 0.5}", &a), LW_EFORMAT);
    assert_has(lw_errmsg(), "there is no 'strenght'");
    assert_int_equal(settings("[]", &a), LW_EFORMAT);
    assert_int_equal(settings("{\"steps\": \"4\"}", &a), LW_EFORMAT);
    assert_int_equal(settings("{\"steps\": 2.5}", &a), LW_EFORMAT);
    assert_has(lw_errmsg(), "'steps' must be a whole number, is 2.5");
}

/* ---- requests -------------------------------------------------------------------------------- */

static void answers(void **state)
{
    lw_serve *s = server_of(state);
    lw_serve_asked asked;
    assert_has(ask(s, "GET /snapshot", "", NULL), "HTTP/1.1 503");
    assert_has(ask(s, "GET /", "", NULL), "<title>Leeway live</title>");
    assert_has(answer, "content-security-policy: default-src 'none'");
    assert_has(ask(s, "GET /page.js", "", NULL), "text/javascript");
    assert_has(ask(s, "GET /stats", "", NULL), "\"stream\":null");
    lw_serve_stats(s, "{\"frames_in\": 7}");
    lw_sleep(0.05);
    assert_has(ask(s, "GET /stats", "", NULL), "\"frames_in\":7");
    assert_has(ask(s, "GET /settings", "", NULL), "\"name\":\"strength\"");
    assert_has(ask(s, "GET /settings", "", NULL), "\"title\":\"caf\\\\xe9.mp4\"");
    assert_has(ask(s, "GET /settings", "", NULL), "\"choices\":[\"identity\",\"runs/sharp\"]");
    lw_serve_note(s, "it stays \xff as it was");
    for (int i = 0; i < 100 && !strstr(ask(s, "GET /stats", "", NULL), "it stays "); i++)
        lw_sleep(0.01);
    assert_has(ask(s, "GET /stats", "", NULL), " as it was");
    assert_has(ask(s, "GET /etc/passwd", "", NULL), "HTTP/1.1 404");
    assert_has(ask(s, "DELETE /settings", "", NULL), "HTTP/1.1 405");
    assert_has(answer, "allow: GET, HEAD, POST");
    assert_has(ask(s, "DELETE /", "", NULL), "allow: GET, HEAD\r\n");
    assert_has(ask(s, "CONNECT localhost:80", "", NULL), "HTTP/1.1 405");
    assert_has(ask(s, "POST /settings", "", "{\"strength\": 0.25, \"paused\": true}"), "200 OK");
    lw_serve_control(s, &asked);
    assert_true(asked.paused && asked.value[0] < 0.26);
    assert_has(ask(s, "POST /settings", "", "{\"strength\": 2}"), "HTTP/1.1 400");
    assert_has(answer, "'strength' must be within 0 to 1, is 2");
    assert_has(ask(s, "POST /settings",
                   "Content-Length: 100000\r\nContent-Type: application/json\r\n", NULL),
               "HTTP/1.1 413");
    give(s, 5);
    lw_sleep(0.1);
    assert_has(ask(s, "GET /snapshot", "", NULL), "image/png");
    const char *png = strstr(answer, "\r\n\r\n") + 4;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    assert_int_equal(lw_image_parse("snapshot", png, MOST - (size_t)(png - answer), &im), 0);
    assert_int_equal(lw_frame_test_read(im.rgb, im.width, im.height), 1005);
    /* behind an argument that is longer than those that are asked for */
    assert_has(ask(s, "GET /snapshot?token=00000000000000000000000000000000&side=input&format=jpeg",
                   "", NULL),
               "image/jpeg");
}

/* What GET answers, but nothing behind the head; the connection goes on where that says how long a body is. */
static void heads_have_no_bodies(void **state)
{
    static const char *const paths[] = {"/", "/nothing", "/stats", "/settings", "/stream.mjpg"};
    lw_serve *s = server_of(state);
    int fd = dial(s);
    for (size_t i = 0; i < LW_COUNT(paths); i++) {
        char text[128];
        size_t have = 0;
        put(fd, text,
            (size_t)snprintf(text, sizeof text, "HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                             paths[i]));
        do
            have += get(fd, answer + have, 1, 2000);
        while (have > 0 && have < MOST && !strstr(answer, "\r\n\r\n"));
        assert_has(answer, i == 1 ? "HTTP/1.1 404" : "HTTP/1.1 200");
        assert_int_equal(strstr(answer, "content-length: ") != NULL, i != 4);
        assert_int_equal(get(fd, answer, 1, 100), 0);
    }
    close(fd);
}

static void other_sites_are_refused(void **state)
{
    lw_serve *s = server_of(state);
    lw_serve_asked asked;
    assert_has(ask(s, "GET /", "Host: evil.example\r\n", NULL), "HTTP/1.1 403");
    assert_has(ask(s, "POST /settings", "Origin: http://evil.example\r\n", "{\"paused\": true}"),
               "HTTP/1.1 403");
    assert_has(ask(s, "POST /settings", "Origin: http://localhost:1\r\n", "{\"paused\": true}"),
               "HTTP/1.1 403");
    static const char socket[] =
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: leeway\r\n\r\n";
    int fd = dial(s);
    put(fd, socket, sizeof socket - 1);
    get(fd, answer, 12, 2000);
    assert_null(strstr(answer, "101"));
    close(fd);
    lw_serve_control(s, &asked);
    assert_false(asked.paused);
}

static void others_need_a_token(void **state)
{
    server_of(state);
    const lw_serve_options o = {.address = "0.0.0.0:0"};
    lw_serve *s = NULL;
    char line[128], cookie[128], cookies[1024];
    assert_int_equal(lw_serve_new(&o, &s), LW_EUSAGE);
    assert_has(lw_errmsg(), "others reach this address: add --tls CERT,KEY, or --insecure");
    s = open_at("0.0.0.0:0", true);
    const char *token = strstr(lw_serve_url(s), "token=");
    assert_non_null(token);
    assert_has(ask(s, "GET /stats", "", NULL), "HTTP/1.1 403");
    assert_has(ask(s, "GET /stats?token=00000000000000000000000000000000", "", NULL),
               "HTTP/1.1 403");
    snprintf(line, sizeof line, "GET /stats?%s", token);
    assert_has(ask(s, line, "", NULL), "200 OK");
    assert_has(answer, "HttpOnly; SameSite=Strict");
    snprintf(cookie, sizeof cookie, "leeway_token_%d=%s;", (int)lw_serve_port(s), token + 6);
    assert_has(answer, cookie);
    /* among many, the one that another server of this machine set too */
    snprintf(cookies, sizeof cookies, "Cookie: a=%0700d; leeway_token_1=0; %s b=c\r\n", 0, cookie);
    assert_has(ask(s, "GET /stats", cookies, NULL), "200 OK");
    lw_serve_close(&s);
}

static void a_port_in_use_is_one_line(void **state)
{
    lw_serve *s = server_of(state), *second = NULL;
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", (int)lw_serve_port(s));
    assert_int_equal(lw_serve_new(&(lw_serve_options){.address = address}, &second), LW_EIO);
    assert_has(lw_errmsg(), "Address already in use: name another port");
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int watch_with(lw_serve *s, const char *path, int buffer)
{
    char text[128], head[600];
    int fd = dial_with(s, buffer);
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    put(fd, text, (size_t)n);
    get(fd, head, 15, 2000);
    assert_has(head, "HTTP/1.1 200");
    return fd;
}

static int watch(lw_serve *s, const char *path)
{
    return watch_with(s, path, 0);
}

static void streams_carry_the_frames(void **state)
{
    lw_serve *s = server_of(state);
    for (int side = 0; side < 2; side++) {
        int fd = watch(s, side ? "/input.mjpg" : "/stream.mjpg");
        for (int i = 0; i < 10; i++) {
            give(s, i);
            lw_sleep(0.01);
        }
        size_t n = get(fd, answer, MOST, 300);
        close(fd);
        const char *at = memmem(answer, n, "\xff\xd8", 2);
        assert_non_null(at);
        LW_CLEANUP(lw_image_clear) lw_image im = {0};
        assert_int_equal(lw_image_parse("part", at, n - (size_t)(at - answer), &im), 0);
        int64_t number = lw_frame_test_read(im.rgb, im.width, im.height);
        assert_true(side ? number >= 0 && number < 10 : number >= 1000 && number < 1010);
    }
}

/* Clients that take nothing, beside one that does: giving costs a copy, and memory stands still. */
static void stalled_clients_stall_nobody(void **state)
{
    lw_serve *s = server_of(state);
    int stalled[10], live = watch(s, "/stream.mjpg");
    for (int i = 0; i < 10; i++)
        stalled[i] = watch_with(s, "/stream.mjpg", 4096);
    double longest = 0;
    size_t taken = 0;
    for (int i = 0; i < 150; i++) {
        const double began = lw_now();
        give(s, i);
        longest = LW_MAX(longest, lw_now() - began);
        taken += get(live, answer, MOST, 2);
    }
    print_message("longest give %.3f ms, %zu bytes to the live one\n", longest * 1e3, taken);
    assert_true(longest < 0.25); /* a stall is seconds */
    assert_true(taken > 100000);
    ask(s, "GET /stats", "", NULL);
    const char *missed = strstr(answer, "\"missed\":");
    assert_true(missed && atol(missed + 9) > 100); /* they did stall */
    for (int i = 0; i < 10; i++)
        close(stalled[i]);
    close(live);
}

static void clients_have_a_limit(void **state)
{
    lw_serve *s = server_of(state);
    int fd[32];
    for (int i = 0; i < 32; i++)
        fd[i] = watch(s, "/stream.mjpg");
    assert_has(ask(s, "GET /stream.mjpg", "", NULL), "HTTP/1.1 503");
    close(fd[0]);
    lw_sleep(0.1);
    fd[0] = watch(s, "/stream.mjpg");
    for (int i = 0; i < 32; i++)
        close(fd[i]);
}

/* ---- WebSockets ------------------------------------------------------------------------------ */

static int upgrade(lw_serve *s)
{
    static const char text[] =
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: leeway\r\n\r\n";
    int fd = dial(s);
    put(fd, text, sizeof text - 1);
    for (size_t n = 0; n < 4 || memcmp(answer + n - 4, "\r\n\r\n", 4) != 0; n++)
        assert_int_equal(get(fd, answer + n, 1, 2000), 1);
    assert_has(answer, "101");
    assert_has(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    return fd;
}

/* One masked message; the mask is zeros. */
static void say(int fd, int opcode, const void *bytes, size_t n)
{
    uint8_t head[14] = {(uint8_t)(0x80 | opcode), 0x80 | 126, (uint8_t)(n >> 8), (uint8_t)n};
    put(fd, head, 8);
    put(fd, bytes, n);
}

/* The next message's payload into `answer`; its opcode. */
static int hear(int fd, size_t *n)
{
    char head[10] = {0};
    if (get(fd, head, 2, 2000) < 2)
        return -1;
    size_t size = head[1] & 127, more = size == 126 ? 2 : size == 127 ? 8 : 0;
    uint8_t bytes[9] = {0};
    get(fd, (char *)bytes, more, 2000);
    if (more)
        size = 0;
    for (size_t i = 0; i < more; i++)
        size = size << 8 | bytes[i];
    *n = get(fd, answer, size, 2000);
    return head[0] & 15;
}

static void sockets_go_both_ways(void **state)
{
    lw_serve *s = server_of(state);
    int fd = upgrade(s);
    size_t n = 0;
    say(fd, 1, "t12.5", 5);
    assert_int_equal(hear(fd, &n), 1);
    assert_has(answer, "t12.5 ");
    lw_sleep(0.02);
    give(s, 3);
    assert_int_equal(hear(fd, &n), 2);
    assert_true(n > 72 && memcmp(answer, "LWF1", 4) == 0);
    int64_t number;
    uint32_t size[2];
    memcpy(&number, answer + 16, 8);
    memcpy(size, answer + 4, 8);
    assert_int_equal(number, 3);
    assert_int_equal(72 + size[0] + size[1], n);
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    assert_int_equal(lw_image_parse("output", answer + 72 + size[0], size[1], &im), 0);
    assert_int_equal(lw_frame_test_read(im.rgb, im.width, im.height), 1003);

    /* at most two frames on the way until they are said to be there */
    for (int i = 4; i < 10; i++) {
        give(s, i);
        lw_sleep(0.01);
    }
    assert_int_equal(hear(fd, &n), 2);
    assert_int_equal(get(fd, answer, 1, 100), 0);
    say(fd, 1, "a", 1);
    assert_int_equal(hear(fd, &n), 2);
    memcpy(&number, answer + 16, 8);
    assert_int_equal(number, 9); /* the newest, not the next */

    lw_serve_picture p;
    say(fd, 2, "0123456789abcdefJPEG", 20);
    assert_int_equal(lw_serve_camera(s, 2, &p), 0);
    assert_int_equal(p.n, 4);
    assert_memory_equal(p.jpeg, "JPEG", 4);
    assert_memory_equal(p.mark, "0123456789abcdef", 16);
    close(fd);
}

static int camera(void *self, double seconds, lw_frame_picture *out)
{
    lw_serve_picture p;
    int rc = lw_serve_camera(self, seconds, &p);
    if (rc != 0)
        return rc;
    *out = (lw_frame_picture){.jpeg = p.jpeg, .n = p.n, .received = p.received};
    memcpy(out->mark, p.mark, sizeof out->mark);
    return 0;
}

/* A camera's message: mark, JPEG of a test frame. */
static void send_picture(int fd, int32_t w, int32_t h, int64_t number)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    assert_int_equal(lw_image_init(&im, w, h), 0);
    lw_frame_test_draw(im.rgb, w, h, number);
    lw_str_add(&text, "0123456789abcdef");
    assert_int_equal(lw_jpeg_encode(&im, 90, &text), 0);
    say(fd, 2, text.s, text.len);
    lw_sleep(0.05);
}

/* The newest picture is the next frame; what is no picture of the size is passed over. */
static void cameras_are_sources(void **state)
{
    lw_serve *s = server_of(state);
    const lw_frame_options o = {.camera = camera, .self = s}, none = {0};
    lw_frame_source *in = NULL;
    static uint8_t bytes[W * H * 3];
    double captured;
    assert_int_equal(lw_frame_source_open("browser", &none, &in), LW_EUSAGE);
    assert_has(lw_errmsg(), "add --serve");
    assert_int_equal(lw_frame_source_open("browser:160x96@30", &o, &in), 0);
    assert_true(lw_frame_source_of_page(in) && lw_frame_source_paces(in));
    int fd = upgrade(s);
    say(fd, 2, "0123456789abcdefno JPEG", 23);
    lw_sleep(0.05);
    send_picture(fd, W, H, 7);
    assert_int_equal(lw_frame_source_next(in, bytes, &captured), 0);
    assert_int_equal(lw_frame_test_read(bytes, W, H), 7);
    assert_memory_equal(in->mark, "0123456789abcdef", LW_FRAME_MARK);
    assert_true(captured > 0 && captured < lw_now());
    send_picture(fd, W, H, 8);
    send_picture(fd, W, H, 9);
    assert_int_equal(lw_frame_source_next(in, bytes, &captured), 0);
    assert_int_equal(lw_frame_test_read(bytes, W, H), 9);
    lw_frame_source_close(&in);
    close(fd);
}

/* Whether the other side closes within 2 s of these bytes. */
static bool closes(int fd, const void *bytes, size_t n)
{
    send(fd, bytes, n, MSG_NOSIGNAL);
    const double until = lw_now() + 2;
    ssize_t got = 1;
    while (got > 0 && lw_now() < until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        got = poll(&p, 1, 50) == 1 ? recv(fd, answer, MOST, 0) : 1;
    }
    close(fd);
    return got <= 0;
}

static void hostile_clients_are_dropped(void **state)
{
    lw_serve *s = server_of(state);
    static char junk[200000];
    memset(junk, 'a', sizeof junk);
    memcpy(junk, "GET / HTTP/1.1\r\nHost: ", 22);
    assert_true(closes(dial(s), junk, sizeof junk)); /* a header without end */
    assert_true(closes(dial(s), "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)); /* TLS */
    static const uint8_t huge[14] = {0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    assert_true(closes(upgrade(s), memcpy(junk, huge, sizeof huge), sizeof junk));
    static const uint8_t gib[14] = {0x82, 0xff, 0, 0, 0, 0, 0x40};
    assert_true(closes(upgrade(s), memcpy(junk, gib, sizeof gib), sizeof junk));
    assert_true(closes(upgrade(s), "\x81\x83\0\0\0\0abc", 9)); /* a text that says nothing */
    static const char http2[] =
        "GET /page.js HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert_true(closes(dial(s), http2, sizeof http2 - 1));
    int slow[40]; /* headers that never end: the others are answered */
    for (int i = 0; i < 40; i++) {
        slow[i] = dial(s);
        put(slow[i], "GET / HT", 8);
    }
    assert_has(ask(s, "GET /stats", "", NULL), "200 OK");
    for (int i = 0; i < 40; i++)
        close(slow[i]);
    give(s, 1);
    assert_has(ask(s, "GET /settings", "", NULL), "200 OK");
}

/* A page that paints more frames a second than any client may send messages. */
static void quick_viewers_stay(void **state)
{
    lw_serve *s = server_of(state);
    int fd = upgrade(s);
    size_t n = 0;
    lw_sleep(0.02);
    for (int i = 0; i < 600; i++) {
        give(s, i);
        assert_int_equal(hear(fd, &n), 2);
        say(fd, 1, "a", 1);
    }
    for (int i = 0; i < 300; i++) /* but answers to nothing are counted */
        send(fd, "\x81\x81\0\0\0\0a", 7, MSG_NOSIGNAL);
    assert_int_equal(hear(fd, &n), -1);
    close(fd);
}

/* Statistics that come while settings are turned do not take their place. */
static void sockets_hear_of_settings(void **state)
{
    lw_serve *s = server_of(state);
    static const char turn[] =
        "POST /settings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 11\r\nConnection: close\r\n\r\n{\"steps\":3}";
    int fd = upgrade(s), poster = dial(s);
    size_t n = 0;
    bool heard = false;
    struct pollfd p = {.fd = poster, .events = POLLIN};
    put(poster, turn, sizeof turn - 1);
    lw_serve_stats(s, "{}");
    while (poll(&p, 1, 0) == 0)
        lw_serve_stats(s, "{}");
    for (int i = 0; i < 5; i++) {
        lw_serve_stats(s, "{}");
        lw_sleep(0.02);
    }
    say(fd, 1, "t1", 2); /* the end of what is heard */
    while (hear(fd, &n) == 1 && answer[0] != 't')
        heard = heard || strstr(answer, "\"settings\"");
    assert_true(heard);
    close(poster);
    close(fd);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules),
                                       cmocka_unit_test(settings_are_all_or_nothing),
                                       WITH_SERVER(answers),
                                       WITH_SERVER(heads_have_no_bodies),
                                       WITH_SERVER(other_sites_are_refused),
                                       WITH_SERVER(others_need_a_token),
                                       WITH_SERVER(a_port_in_use_is_one_line),
                                       WITH_SERVER(streams_carry_the_frames),
                                       WITH_SERVER(stalled_clients_stall_nobody),
                                       WITH_SERVER(clients_have_a_limit),
                                       WITH_SERVER(sockets_go_both_ways),
                                       WITH_SERVER(quick_viewers_stay),
                                       WITH_SERVER(sockets_hear_of_settings),
                                       WITH_SERVER(cameras_are_sources),
                                       WITH_SERVER(hostile_clients_are_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
