/* SPDX-License-Identifier: Apache-2.0 */
/* frames: the test pattern reads back, every sink is a source again, headers that lie and files that
 * are cut off say where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "formats/formats.h"
#include "frames/frames.h"

static char dir[64];
static lw_kernels kernels;
static const lw_frame_options plain = {0};

static const char *at(const char *name)
{
    static char path[4][160];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s%s/%s", lw_str_starts(name, "folder:") ? "folder:" : "",
             dir, lw_str_starts(name, "folder:") ? name + 7 : name);
    return path[k];
}

static void pattern_reads_back(void **state)
{
    (void)state;
    static const int16_t sizes[][2] = {{64, 32},  {65, 33},  {320, 240},
                                       {131, 97}, {64, 384}, {64, 600}};
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        const int32_t w = sizes[i][0], h = sizes[i][1];
        uint8_t *rgb = calloc((size_t)w * (size_t)h, 3);
        assert_non_null(rgb);
        assert_int_equal(lw_frame_test_read(rgb, w, h), -1); /* black is no number */
        for (int64_t n = 0; n < 1 << 24; n = n * 3 + 1) {
            lw_frame_test_draw(rgb, w, h, n);
            assert_int_equal(lw_frame_test_read(rgb, w, h), n);
        }
        free(rgb);
    }
}

/* Draws frames 0..n-1 into a sink. */
static void write_frames(const char *spec, int32_t w, int32_t h, int n, lw_pixels_form form,
                         char text[64])
{
    const lw_frame_format like = {.form = form,
                                  .matrix = LW_MATRIX_709,
                                  .full_range = true,
                                  .w = w,
                                  .h = h,
                                  .rate = 30000,
                                  .per = 1001};
    lw_frame_sink *s = NULL;
    uint8_t *rgb = calloc((size_t)w * (size_t)h, 3);
    assert_non_null(rgb);
    assert_int_equal(lw_frame_sink_open(spec, &like, &kernels, &s), 0);
    for (int i = 0; i < n; i++) {
        lw_frame_test_draw(rgb, w, h, i);
        assert_int_equal(lw_frame_sink_put(s, rgb), 0);
    }
    assert_int_equal(lw_frame_sink_finish(s, text), 0);
    lw_frame_sink_close(&s);
    free(rgb);
}

/* All frames of a source: numbers 0, 1, ..; how many; *rc what ended them. */
static int read_frames(const char *spec, lw_frame_format *format, int *rc)
{
    lw_frame_source *s = NULL;
    double captured;
    int n = 0;
    *rc = lw_frame_source_open(spec, &plain, &s);
    if (*rc != 0)
        return -1;
    *format = s->format;
    uint8_t *bytes = calloc(lw_pixels_bytes(&s->pixels), 1);
    uint8_t *rgb = calloc((size_t)s->format.w * (size_t)s->format.h, 3);
    assert_true(bytes && rgb);
    for (; (*rc = lw_frame_source_next(s, bytes, &captured)) == 0; n++) {
        kernels.pixels.to_u8(rgb, bytes, &s->pixels, 0, s->pixels.bands);
        assert_int_equal(lw_frame_test_read(rgb, s->format.w, s->format.h), n);
    }
    if (*rc == 1) {
        assert_int_equal(lw_frame_source_rewind(s), 0);
        assert_int_equal(lw_frame_source_next(s, bytes, &captured), n > 0 ? 0 : 1);
    }
    free(bytes);
    free(rgb);
    lw_frame_source_close(&s);
    return n;
}

static void sinks_are_sources(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        lw_pixels_form form, back;
    } rows[] = {
        {"a.y4m", LW_PIXELS_420, LW_PIXELS_420},    {"b.y4m", LW_PIXELS_422, LW_PIXELS_422},
        {"c.y4m", LW_PIXELS_444, LW_PIXELS_444},    {"d.y4m", LW_PIXELS_GRAY, LW_PIXELS_GRAY},
        {"e.y4m", LW_PIXELS_YUYV, LW_PIXELS_420},   {"f.mjpeg", LW_PIXELS_RGB, LW_PIXELS_RGB},
        {"folder:g", LW_PIXELS_RGB, LW_PIXELS_RGB}, {"h.mp4", LW_PIXELS_RGB, LW_PIXELS_420}};
    char text[64];
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        if (lw_str_ends(rows[i].name, ".mp4") && !lw_module_there("libav"))
            continue;
        lw_frame_format f = {0};
        int rc;
        write_frames(at(rows[i].name), 97, 65, 7, rows[i].form, text);
        assert_int_equal(read_frames(at(rows[i].name), &f, &rc), 7);
        assert_int_equal(rc, 1);
        assert_int_equal(f.form, rows[i].back);
        assert_true(f.w == 97 && f.h == 65);
        if (lw_str_ends(rows[i].name, ".y4m"))
            assert_true(f.full_range);
        if (lw_str_ends(rows[i].name, ".y4m") || lw_str_ends(rows[i].name, ".mp4"))
            assert_true(f.rate == 30000 && f.per == 1001);
    }
}

/* Lengths on both sides of what fits a block with its padding. */
static void md5_of_frames(void **state)
{
    (void)state;
    /* as md5sum says of so many zeros: 192, 3, 0, 57 and 333 bytes */
    static const struct {
        int32_t w, frames;
        const char *sum;
    } rows[] = {{64, 1, "b7dd5e0194ee0ac08a4b802cb73d867f"},
                {1, 1, "693e9af84d3dfcc71e640e005bdc5e2e"},
                {1, 0, "d41d8cd98f00b204e9800998ecf8427e"},
                {19, 1, "ab9d8ef2ffa9145d6c325cefa41d5d4e"},
                {37, 3, "8e9d6c6d61e72b094ff58e3d75a99a83"}};
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        const lw_frame_format like = lw_frame_format_rgb(rows[i].w, 1, 1);
        lw_frame_sink *s = NULL;
        static const uint8_t zeros[192];
        char text[64];
        assert_int_equal(lw_frame_sink_open("md5", &like, &kernels, &s), 0);
        for (int k = 0; k < rows[i].frames; k++)
            assert_int_equal(lw_frame_sink_put(s, zeros), 0);
        assert_int_equal(lw_frame_sink_finish(s, text), 0);
        assert_string_equal(text, rows[i].sum);
        lw_frame_sink_close(&s);
    }
}

static void put_file(const char *name, const char *text)
{
    assert_int_equal(lw_file_write(at(name), text, strlen(text)), 0);
}

static void headers_that_lie(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        const char *says;
    } rows[] = {
        {"", LW_EFORMAT, "empty"},
        {"RIFF....AVI \n", LW_EFORMAT, "no YUV4MPEG2 header"},
        {"YUV4MPEG2 W0 H4 F25:1\n", LW_EFORMAT, "0x4"},
        {"YUV4MPEG2 W-4 H4 F25:1\n", LW_EFORMAT, "-4x4"},
        {"YUV4MPEG2 W99999 H4 F25:1\n", LW_EFORMAT, "99999x4"},
        {"YUV4MPEG2 W16384 H16384 F25:1\n", LW_EFORMAT, "16384x16384"},
        {"YUV4MPEG2 W99999999999999999999 H4\n", LW_EFORMAT, "bad word"},
        {"YUV4MPEG2 W4x H4 F25:1\n", LW_EFORMAT, "bad word 'W4x'"},
        {"YUV4MPEG2 W4 H4 F25:\n", LW_EFORMAT, "bad word 'F25:'"},
        {"YUV4MPEG2 W4 H4 F25:-1\n", LW_EFORMAT, "25/-1"},
        {"YUV4MPEG2 W4 H4 F000000000000000000000025:1\n", LW_EFORMAT, "bad word 'F0000"},
        {"YUV4MPEG2 H4 F25:1\n", LW_EFORMAT, "0x4"},
        {"YUV4MPEG2 W4 H4 C420p10\n", LW_EUNSUPPORTED, "C420p10"},
        {"YUV4MPEG2 W4 H4 F25:1", LW_EFORMAT, "cut off in its header"},
    };
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        lw_frame_format f;
        int rc;
        put_file("x.y4m", rows[i].text);
        read_frames(at("x.y4m"), &f, &rc);
        assert_int_equal(rc, rows[i].rc);
        if (!strstr(lw_errmsg(), rows[i].says) || !strstr(lw_errmsg(), "x.y4m"))
            fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].text, lw_errmsg(), rows[i].says);
    }
}

/* Whatever is missing at the end, what is whole before it is given, and the message names the frame. */
static void files_cut_off(void **state)
{
    (void)state;
    static const char *const names[] = {"cut.y4m", "cut.mjpeg"};
    char text[64];
    for (int k = 0; k < 2; k++) {
        char *all = NULL;
        size_t n, frame;
        write_frames(at(names[k]), 64, 32, 3, LW_PIXELS_420, text);
        assert_int_equal(lw_file_read(at(names[k]), 0, &all, &n), 0);
        frame = n / 3;
        for (size_t cut = 1; cut < frame - 100; cut += 97) {
            lw_frame_format f;
            int rc;
            assert_int_equal(lw_file_write(at(names[k]), all, n - cut), 0);
            assert_int_equal(read_frames(at(names[k]), &f, &rc), 2);
            assert_int_equal(rc, LW_EFORMAT);
            assert_non_null(strstr(lw_errmsg(), "frame 2: cut off"));
        }
        lw_free(&all);
    }
}

/* An mp4 plays up to where it is cut: what is whole before it is given. */
static void videos_cut_off(void **state)
{
    (void)state;
    char text[64], *all = NULL;
    size_t n;
    int before = 99, given = 0;
    if (!lw_module_there("libav")) {
        print_message("skipped: no leeway-libav.so\n");
        skip();
    }
    const void *calls = NULL;
    assert_int_equal(lw_module_open("libav", 999, &calls), LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "leeway-libav.so is of another version of leeway"));
    assert_null(calls);
    write_frames(at("cut.mp4"), 64, 32, 40, LW_PIXELS_420, text); /* more than a second */
    assert_int_equal(lw_file_read(at("cut.mp4"), 0, &all, &n), 0);
    for (size_t cut = 0; cut < n; cut += 1 + n / 23) {
        lw_frame_format f = {0};
        int rc;
        assert_int_equal(lw_file_write(at("cut.mp4"), all, n - cut), 0);
        int whole = read_frames(at("cut.mp4"), &f, &rc);
        assert_true(whole <= before && (cut > 0 || whole == 40));
        assert_true(rc == LW_EFORMAT || (rc == 1 && whole > 0));
        if (rc == LW_EFORMAT)
            assert_non_null(strstr(lw_errmsg(), "cut.mp4: frame "));
        before = whole;
        given += whole > 0 && whole < 40 && rc == LW_EFORMAT;
    }
    assert_true(given > 5);
    lw_free(&all);
}

/* A real file, bit for bit as `ffmpeg -i FILE -f rawvideo` decodes it. */
static void videos_are_ffmpegs(void **state)
{
    (void)state;
    const char *data = getenv("LW_TEST_DATA");
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/video/bigbuckbunny.mp4", data ? data : "");
    if (!data || !lw_path_exists(path) || !lw_module_there("libav")) {
        print_message("skipped: no bigbuckbunny.mp4 in LW_TEST_DATA, or no leeway-libav.so\n");
        skip();
    }
    lw_frame_source *s = NULL;
    lw_frame_sink *sum = NULL;
    double captured;
    int n = 0;
    assert_int_equal(lw_frame_source_open(path, &plain, &s), 0);
    assert_true(s->format.w == 1280 && s->format.h == 720 && s->format.form == LW_PIXELS_420);
    assert_true(s->format.rate == 25 && s->format.per == 1 && !s->format.full_range);
    /* its bytes as if they were pixels */
    const lw_frame_format bytes_as = lw_frame_format_rgb(1280, 360, 1);
    assert_int_equal(lw_pixels_bytes(&s->pixels), 1280 * 360 * 3);
    assert_int_equal(lw_frame_sink_open("md5", &bytes_as, &kernels, &sum), 0);
    uint8_t *bytes = calloc(lw_pixels_bytes(&s->pixels), 1);
    for (; lw_frame_source_next(s, bytes, &captured) == 0; n++)
        assert_int_equal(lw_frame_sink_put(sum, bytes), 0);
    assert_int_equal(n, 132);
    assert_int_equal(lw_frame_sink_finish(sum, text), 0);
    assert_string_equal(text, "057c217d990a09ddf9e6834ef7776052");
    free(bytes);
    lw_frame_sink_close(&sum);
    lw_frame_source_close(&s);
}

/* JPEGs with holes: a file names the first and ends, a pipe passes over them and counts. */
static void damaged_jpegs(void **state)
{
    (void)state;
    char text[64], *one[5] = {NULL};
    size_t n[5];
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    for (int i = 0; i < 5; i++) {
        char name[32];
        lw_frame_sink *s = NULL;
        static uint8_t rgb[64 * 32 * 3];
        const lw_frame_format like = lw_frame_format_rgb(64, 32, 25);
        snprintf(name, sizeof name, "one%d.mjpeg", i);
        assert_int_equal(lw_frame_sink_open(at(name), &like, &kernels, &s), 0);
        lw_frame_test_draw(rgb, 64, 32, i);
        assert_int_equal(lw_frame_sink_put(s, rgb), 0);
        assert_int_equal(lw_frame_sink_finish(s, text), 0);
        lw_frame_sink_close(&s);
        assert_int_equal(lw_file_read(at(name), 0, &one[i], &n[i]), 0);
    }
    lw_str_add_n(&all, one[0], n[0]);
    memcpy(one[1] + n[1] * 2 / 3, "\xff\xd9", 2); /* an end where none is */
    lw_str_add_n(&all, one[1], n[1]);
    lw_str_add_n(&all, one[2], n[2] - 300); /* a piece lost */
    lw_str_add_n(&all, one[3], n[3]);
    lw_str_add_n(&all, one[4], n[4]);
    assert_int_equal(lw_file_write(at("bad.mjpeg"), all.s, all.len), 0);
    lw_frame_format f;
    int rc;
    assert_int_equal(read_frames(at("bad.mjpeg"), &f, &rc), 1);
    assert_int_equal(rc, LW_EFORMAT);
    assert_non_null(strstr(lw_errmsg(), "bad.mjpeg: frame 1: bad JPEG"));

    assert_int_equal(mkfifo(at("pipe.mjpeg"), 0600), 0);
    int fd = open(at("pipe.mjpeg"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && all.len < 60000);
    assert_int_equal(write(fd, all.s, all.len), all.len);
    lw_frame_source *s = NULL;
    static uint8_t rgb[64 * 32 * 3];
    double captured;
    int64_t seen = -1;
    assert_int_equal(lw_frame_source_open(at("pipe.mjpeg"), &plain, &s), 0);
    assert_true(lw_frame_source_paces(s));
    close(fd); /* who wrote is gone */
    while ((rc = lw_frame_source_next(s, rgb, &captured)) == 0) {
        const int64_t now = lw_frame_test_read(rgb, 64, 32);
        assert_true(now > seen && now != 1 && now != 2);
        seen = now;
    }
    assert_int_equal(rc, 1);
    assert_int_equal(seen, 4);
    assert_true(s->skipped >= 2);
    lw_frame_source_close(&s);
    for (int i = 0; i < 5; i++)
        lw_free(&one[i]);
}

/* Few bytes that promise many pixels are refused by their header. */
static void jpegs_that_promise_much(void **state)
{
    (void)state;
    char text[64], *all = NULL;
    size_t n;
    lw_frame_format f;
    int rc;
    write_frames(at("much.mjpeg"), 64, 32, 2, LW_PIXELS_RGB, text);
    assert_int_equal(lw_file_read(at("much.mjpeg"), 0, &all, &n), 0);
    for (int from = 0; from < 2; from++) { /* in the first picture, in the last */
        char *size = NULL;
        for (size_t i = from ? n / 2 : 0; i + 9 < n && !size; i++)
            if (memcmp(all + i, "\xff\xc0\x00\x11\x08\x00\x20\x00\x40", 9) == 0)
                size = all + i + 5;
        assert_non_null(size);
        memcpy(size, "\x1f\x40\x1f\x40", 4); /* 8000x8000 */
        assert_int_equal(lw_file_write(at("much.mjpeg"), all, n), 0);
        read_frames(at("much.mjpeg"), &f, &rc);
        assert_int_equal(rc, LW_EFORMAT);
        assert_non_null(strstr(lw_errmsg(), "bytes that promise 8000x8000 pixels"));
        memcpy(size, "\x00\x20\x00\x40", 4);
    }
    lw_free(&all);
}

/* From the third frame on nothing is allocated. */
static void frames_allocate_nothing(void **state)
{
    (void)state;
    static const char *const from[] = {"test:64x32", "al.y4m", "al.mjpeg", "al.raw", "folder:al"};
    static const char *const to[] = {"null", "md5", "to.y4m", "to.mjpeg"};
    char text[64];
    write_frames(at("al.y4m"), 64, 32, 40, LW_PIXELS_420, text);
    write_frames(at("al.mjpeg"), 64, 32, 40, LW_PIXELS_RGB, text);
    write_frames(at("folder:al"), 64, 32, 40, LW_PIXELS_RGB, text);
    char *all = NULL;
    size_t n;
    assert_int_equal(lw_file_read(at("al.y4m"), 0, &all, &n), 0);
    assert_int_equal(lw_file_write(at("al.raw"), all, n), 0);
    lw_free(&all);
    for (size_t i = 0; i < LW_COUNT(from) * LW_COUNT(to); i++) {
        const char *in = from[i / LW_COUNT(to)], *out = to[i % LW_COUNT(to)];
        const lw_frame_options o = {.raw = lw_str_ends(in, ".raw") ? "64x32:gray" : NULL};
        static uint8_t bytes[64 * 32 * 3], rgb[64 * 32 * 3];
        lw_frame_source *s = NULL;
        lw_frame_sink *k = NULL;
        double captured;
        uint64_t before = 0;
        assert_int_equal(lw_frame_source_open(i < LW_COUNT(to) ? in : at(in), &o, &s), 0);
        assert_int_equal(
            lw_frame_sink_open(strchr(out, '.') ? at(out) : out, &s->format, &kernels, &k), 0);
        for (int frame = 0; frame < 35; frame++) {
            if (frame == 2)
                before = lw_alloc_count();
            assert_int_equal(lw_frame_source_next(s, bytes, &captured), 0);
            kernels.pixels.to_u8(rgb, bytes, &s->pixels, 0, s->pixels.bands);
            assert_int_equal(lw_frame_sink_put(k, rgb), 0);
        }
        if (lw_alloc_count() != before)
            fail_msg("%s to %s: %d allocations in 33 frames", in, out,
                     (int)(lw_alloc_count() - before));
        lw_frame_sink_close(&k);
        lw_frame_source_close(&s);
    }
}

/* A picture within a picture, as cameras put into EXIF, is no frame. */
static void thumbnails_are_no_frames(void **state)
{
    (void)state;
    char text[64], *one = NULL;
    size_t n;
    write_frames(at("one.mjpeg"), 64, 32, 1, LW_PIXELS_RGB, text);
    assert_int_equal(lw_file_read(at("one.mjpeg"), 0, &one, &n), 0);
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    for (int i = 0; i < 1; i++) {
        const size_t size = n + 2;
        const char segment[4] = {(char)0xff, (char)0xe1, (char)(size >> 8), (char)size};
        lw_str_add_n(&all, one, 2);
        lw_str_add_n(&all, segment, 4);
        lw_str_add_n(&all, one, n);
        lw_str_add_n(&all, one + 2, n - 2);
    }
    assert_int_equal(lw_file_write(at("exif.mjpeg"), all.s, all.len), 0);
    lw_frame_format f;
    int rc;
    assert_int_equal(read_frames(at("exif.mjpeg"), &f, &rc), 1);
    assert_int_equal(rc, 1);
    lw_free(&one);
}

static void folders_of_other_things(void **state)
{
    (void)state;
    char text[64];
    lw_frame_format f;
    int rc;
    write_frames(at("folder:h"), 64, 32, 2, LW_PIXELS_RGB, text);
    put_file("h/notes.txt", "no picture");
    assert_int_equal(read_frames(at("folder:h"), &f, &rc), 2);
    put_file("h/frame_000001.png", "no picture either");
    assert_int_equal(read_frames(at("folder:h"), &f, &rc), 1);
    assert_int_equal(rc, LW_EFORMAT);
    assert_int_equal(lw_mkdirs(at("empty")), 0);
    read_frames(at("folder:empty"), &f, &rc);
    assert_int_equal(rc, LW_EFORMAT);
}

static int set_up(void **state)
{
    (void)state;
    lw_isa isa;
    strcpy(dir, "/tmp/test_frames.XXXXXX");
    if (!mkdtemp(dir) || lw_isa_chosen(&isa) < 0)
        return -1;
    lw_kernels_init(&kernels, isa);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return lw_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pattern_reads_back),      cmocka_unit_test(sinks_are_sources),
        cmocka_unit_test(md5_of_frames),           cmocka_unit_test(headers_that_lie),
        cmocka_unit_test(files_cut_off),           cmocka_unit_test(thumbnails_are_no_frames),
        cmocka_unit_test(folders_of_other_things), cmocka_unit_test(videos_cut_off),
        cmocka_unit_test(videos_are_ffmpegs),      cmocka_unit_test(damaged_jpegs),
        cmocka_unit_test(jpegs_that_promise_much), cmocka_unit_test(frames_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
