/* SPDX-License-Identifier: Apache-2.0 */
/* A page that pauses a stream and lets it go on changes no bit of it, also where the network sees its own
 * former answers; a reset does. */
#include "unit/test_formats_util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jobs/stream/stream_job.h"
#include "serve/serve.h"
#include "unet_fixture.h"

#define PAUSE 0.4
enum { FRAMES = 30, RATE = 60 };

/* What a page does to a stream, from another thread. */
typedef struct page {
    int port; /* 0: not said yet */
    bool resets;
    pthread_t thread;
    int done; /* requests answered with 200 */
} page;

static void post(page *p, const char *body)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->port)};
    char text[512];
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        return;
    const int n = snprintf(text, sizeof text,
                           "POST /settings HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
                           "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                           p->port, strlen(body), body);
    if (write(fd, text, (size_t)n) == n && read(fd, text, sizeof text) > 12)
        p->done += memcmp(text + 9, "200", 3) == 0;
    close(fd);
}

static void *visit(void *arg)
{
    page *p = arg;
    lw_sleep(0.15); /* some frames went through */
    post(p, "{\"paused\": true}");
    if (p->resets)
        post(p, "{\"reset\": true}");
    lw_sleep(PAUSE);
    post(p, "{\"paused\": false}");
    return NULL;
}

static void on_say(void *self, const char *line)
{
    page *p = self;
    const char *url = strstr(line, "http://127.0.0.1:");
    if (!url || p->port)
        return;
    p->port = atoi(url + strlen("http://127.0.0.1:"));
    assert_int_equal(pthread_create(&p->thread, NULL, visit, p), 0);
}

/* The sum of all frames. */
static void run(const char *model, page *p, char sum[64], double *seconds)
{
    const lw_stream_config c = {.input = "test:64x32@60",
                                .network = {.model = model, .w = 24, .h = 16},
                                .threads = 2,
                                .output = {"md5"},
                                .n_outputs = 1,
                                .pace = LW_PACE_REALTIME,
                                .every_frame = true,
                                .serve = p ? "127.0.0.1:0" : NULL,
                                .num_frames = FRAMES};
    const lw_observer obs = {.self = p, .say = p ? on_say : NULL};
    lw_stream_report r;
    assert_ok(lw_job_stream(&c, &obs, &r));
    assert_int_equal(r.written, FRAMES);
    snprintf(sum, 64, "%s", r.sums[0]);
    *seconds = r.seconds;
    if (p) {
        assert_true(p->port > 0);
        assert_int_equal(pthread_join(p->thread, NULL), 0);
        assert_int_equal(p->done, p->resets ? 3 : 2);
    }
}

static void test_pause(void **state)
{
    char model[160], plain[64], paused[64], reset[64];
    double seconds;
    page a = {0}, b = {.resets = true};
    (void)state;
    if (!lw_serve_known()) {
        print_message("skipped: this build has no server\n");
        return;
    }
    snprintf(model, sizeof model, "%s", in_scratch("framed"));
    assert_ok(unet_make(model, 3, 1, "ddpm"));
    run(model, NULL, plain, &seconds);
    run(model, &a, paused, &seconds);
    assert_true(seconds >= PAUSE + 0.15);
    assert_string_equal(paused, plain);
    run(model, &b, reset, &seconds);
    assert_true(strcmp(reset, plain) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pause)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
