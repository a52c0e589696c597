/* SPDX-License-Identifier: Apache-2.0 */
/* formats: pictures against pixels that Pillow decoded (corpus/npz/pixels.npz). */
#include "formats/image/formats_image_codec.h"
#include "unit/test_formats_util.h"
#include "base/base.h"
#include "formats/formats.h"

static void pixels_are_pillows(void **state)
{
    (void)state;
    static const char *const files[] = {
        "png/rgb.png",          "png/rgb_text.png", "png/gray.png",  "png/rgba.png",
        "png/la.png",           "png/palette.png",  "png/bit1.png",  "png/palette_trns.png",
        "png/interlaced.png",   "png/rgb16.png",    "jpeg/c420.jpg", "jpeg/c444.jpg",
        "jpeg/progressive.jpg", "jpeg/gray.jpg",    "jpeg/cmyk.jpg",
    };
    lw_npz z = {0};
    assert_ok(lw_npz_load(CORPUS "npz/pixels.npz", &z));
    for (size_t i = 0; i < LW_COUNT(files); i++) {
        char path[80], key[80];
        snprintf(path, sizeof path, CORPUS "%s", files[i]);
        snprintf(key, sizeof key, "%s", strchr(files[i], '/') + 1);
        *strchr(key, '.') = '_';
        const lw_array *want = lw_npz_find(&z, key);
        lw_image im = {0};
        assert_ok(lw_image_load(path, &im));
        assert_non_null(want);
        assert_true(im.height == want->shape[0] && im.width == want->shape[1]);
        if (memcmp(im.rgb, want->data, want->bytes) != 0) {
            print_error("%s: pixels differ\n", path);
            fail();
        }
        lw_image_clear(&im);
    }
    lw_npz_clear(&z);
}

/* Those of tools/golden/pictures.py: BMP, WebP, and rarer kinds of PNG and JPEG. */
static void hashes_are_pillows(void **state)
{
    (void)state;
    json_t *rows = NULL, *row;
    size_t i, seen = 0;
    assert_ok(lw_json_load("tests/golden/data/pictures.json", &rows));
    json_array_foreach(rows, i, row)
    {
        char path[80], got[32];
        lw_image im = {0};
        int32_t w = 0, h = 0;
        snprintf(path, sizeof path, CORPUS "%s", json_string_value(json_object_get(row, "file")));
        if (!lw_webp_known() && lw_str_ends(path, ".webp")) {
            assert_fails(LW_EUNSUPPORTED, "libwebp-dev", lw_image_load(path, &im));
            print_message("%s: skipped, built without libwebp\n", path);
            continue;
        }
        assert_ok(lw_image_load(path, &im));
        assert_ok(lw_image_size(path, &w, &h));
        assert_int_equal(w, json_integer_value(json_object_get(row, "w")));
        assert_int_equal(h, json_integer_value(json_object_get(row, "h")));
        assert_true(im.width == w && im.height == h);
        snprintf(got, sizeof got, "%016llx",
                 (unsigned long long)lw_hash64(im.rgb, (size_t)w * (size_t)h * 3));
        if (strcmp(got, json_string_value(json_object_get(row, "hash"))) != 0)
            fail_msg("%s: pixels differ from Pillow's", path);
        memset(im.rgb, 77, (size_t)w * (size_t)h * 3);
        assert_ok(lw_image_read(path, w, h, im.rgb));
        assert_true(lw_hash64(im.rgb, (size_t)w * (size_t)h * 3) == strtoull(got, NULL, 16));
        assert_fails(LW_EFORMAT, "those before it have", lw_image_read(path, w + 1, h, im.rgb));
        lw_image_clear(&im);
        seen++;
    }
    assert_true(seen >= 12);
    json_decref(rows);
}

static void refuses_bad_webp(void **state)
{
    (void)state;
    lw_image im = {0};
    if (!lw_webp_known())
        skip();
    assert_fails(LW_EFORMAT, "bad WebP", lw_image_load(CORPUS "webp/truncated.webp", &im));
    assert_fails(LW_EFORMAT, "16383x16383 pixels", lw_image_load(CORPUS "webp/huge.webp", &im));
    assert_fails(LW_EUNSUPPORTED, "animated", lw_image_load(CORPUS "webp/animated.webp", &im));
    assert_fails(LW_EFORMAT, "bad WebP", lw_image_parse("w", "RIFF\0\0\0\0WEBPVP8 ", 16, &im));
}

static void refuses_bad_bmp(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
        int code;
    } bad[] = {
        {"truncated", "truncated: 11x13 pixels of 24 bits", LW_EFORMAT},
        {"huge", "truncated: 30000x30000 pixels", LW_EFORMAT},
        {"short_palette", "colour 15 of a palette of 15", LW_EFORMAT},
        {"rle", "compression 1 is not read", LW_EUNSUPPORTED},
    };
    lw_image im = {0};
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        char path[80];
        snprintf(path, sizeof path, CORPUS "bmp/%s.bmp", bad[i].name);
        assert_fails(bad[i].code, bad[i].part, lw_image_load(path, &im));
    }
    assert_fails(LW_EFORMAT, "truncated: 2 bytes", lw_image_parse("b", "BM", 2, &im));
}

static void put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

/* One header, one word of it changed at a time. */
static void headers_of_bmp_are_believed_in_nothing(void **state)
{
    (void)state;
    enum { BITS = 28, KIND = 30, MOST = 256 };
    static const struct {
        uint8_t bits, kind;
        uint32_t at, value; /* written over */
        uint8_t n;          /* bytes that are there */
        int code;
        const char *part;
    } rows[] = {
        {24, 0, 2, 7, 200, 0, NULL}, /* the file's length lies, as it often does */
        {24, 0, 14, 128, 200, LW_EUNSUPPORTED, "a header of 128 bytes"},
        {24, 0, 14, 39, 200, LW_EUNSUPPORTED, "a header of 39 bytes"},
        {24, 0, 10, 10, 200, LW_EFORMAT, "from byte 10 on"},
        {24, 0, 18, 32769, 200, LW_EFORMAT, "bad BMP: 32769x1 pixels"},
        {8, 3, 2, 0, 200, LW_EUNSUPPORTED, "8 bits a pixel, compression 3"},
        {4, 0, 46, 16, 200, 0, NULL},
        {4, 0, 46, 17, 200, LW_EFORMAT, "a palette of 17 colours"},
        {4, 0, 14, 124, 60, LW_EFORMAT, "a palette of 16 colours"},
        {32, 3, 2, 0, 200, 0, NULL},
        {32, 3, 2, 0, 58, LW_EFORMAT, "no masks"},
        {32, 3, 14, 48, 200, LW_EFORMAT, "no masks"},
        {32, 3, 58, 0, 200, LW_EUNSUPPORTED, "a mask of 00000000"},
        {32, 3, 58, 0x3fc00, 200, LW_EUNSUPPORTED, "a mask of 0003fc00"},
    };
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        uint8_t b[MOST] = {'B', 'M'};
        lw_image im = {0};
        put_u32(b + 10, 54);
        put_u32(b + 14, 40);
        put_u32(b + 18, 1);
        put_u32(b + 22, 1);
        b[26] = 1;
        b[BITS] = rows[i].bits;
        b[KIND] = rows[i].kind;
        for (uint32_t c = 0; c < 3 && rows[i].kind; c++)
            put_u32(b + 54 + 4 * c, 0xff0000u >> 8 * c);
        put_u32(b + rows[i].at, rows[i].value);
        if (rows[i].part)
            assert_fails(rows[i].code, rows[i].part, lw_image_parse("b", b, rows[i].n, &im));
        else
            assert_ok(lw_image_parse("b", b, rows[i].n, &im));
        lw_image_clear(&im);
    }
}

/* Sizes alone, from as many bytes as a header has. */
static void headers_of_png_are_whole(void **state)
{
    (void)state;
    LW_CLEANUP(lw_free) char *bytes = NULL;
    int32_t w = 0, h = 0;
    size_t n;
    assert_ok(lw_file_read(CORPUS "png/rgb.png", 0, &bytes, &n));
    for (size_t cut = 0; cut < 24; cut++)
        assert_fails(LW_EFORMAT, "no header", lw_png_size("p", bytes, cut, &w, &h));
    assert_ok(lw_png_size("p", bytes, 24, &w, &h));
    memcpy(bytes + 16, "\0\0\x80\1\0\0\0\1", 8);
    assert_fails(LW_EFORMAT, "32769x1 pixels", lw_png_size("p", bytes, n, &w, &h));
}

/* What stands behind the last chunk is no chunk. */
static void bytes_behind_a_png_are_passed_over(void **state)
{
    (void)state;
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    size_t n;
    assert_ok(lw_file_read(CORPUS "png/rgb.png", 0, &bytes, &n));
    lw_str_add_n(&s, bytes, n);
    lw_str_add(&s, "written by nobody");
    assert_ok(lw_image_parse("p", s.s, s.len, &im));
}

static void refuses_bad_pictures(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } bad[] = {
        {"png/truncated.png", "bad PNG"},   {"png/bad_crc.png", "bad PNG"},
        {"png/huge.png", "bad PNG"},        {"png/wide.png", "32768x32768"},
        {"png/no_data.png", "bad PNG"},     {"png/zero.png", "bad PNG"},
        {"jpeg/truncated.jpg", "bad JPEG"}, {"jpeg/huge.jpg", "65500x65500 pixels"},
        {"jpeg/long.jpg", "bad JPEG"},      {"npy/u1.npy", "neither PNG, JPEG, BMP nor WebP"},
    };
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        char path[80];
        lw_image im = {0};
        snprintf(path, sizeof path, CORPUS "%s", bad[i].name);
        assert_fails(LW_EFORMAT, bad[i].part, lw_image_load(path, &im));
        assert_non_null(strstr(lw_errmsg(), path));
        assert_null(im.rgb);
    }
    lw_image im = {0};
    assert_fails(LW_EIO, "none.png", lw_image_load("none.png", &im));
    assert_fails(LW_EFORMAT, "neither", lw_image_parse("empty", NULL, 0, &im));
    assert_fails(LW_EFORMAT, "bad JPEG", lw_image_parse("j", "\xff\xd8\xff", 3, &im));
    assert_fails(LW_ESHAPE, "0x5", lw_image_init(&im, 0, 5));
}

static void every_cut_of_a_picture_is_refused(void **state)
{
    (void)state;
    static const char *const files[] = {CORPUS "png/palette.png", CORPUS "png/interlaced.png",
                                        CORPUS "bmp/palette16.bmp", CORPUS "bmp/rgba.bmp"};
    for (size_t k = 0; k < LW_COUNT(files); k++) {
        char *bytes;
        size_t n;
        assert_ok(lw_file_read(files[k], 0, &bytes, &n));
        for (size_t i = 0; i < n; i++) {
            lw_image im = {0};
            char *cut = malloc(i ? i : 1);
            memcpy(cut, bytes, i);
            assert_int_equal(lw_image_parse("cut", cut, i, &im), LW_EFORMAT);
            free(cut);
        }
        lw_free(&bytes);
    }
}

static void png_comes_back_with_its_texts(void **state)
{
    (void)state;
    lw_image im = {0}, back = {0};
    assert_ok(lw_image_init(&im, 13, 9));
    for (int i = 0; i < 13 * 9 * 3; i++)
        im.rgb[i] = (uint8_t)(i * 37);
    json_t *texts = json_pack("{s:s, s:s, s:s}", "seed", "42", "config", "{\"a\": 1}", "Greek",
                              "\xce\xb1");
    assert_ok(lw_png_save(in_scratch("a.png"), &im, texts));
    assert_ok(lw_image_load(in_scratch("a.png"), &back));
    assert_true(back.width == 13 && back.height == 9);
    assert_memory_equal(back.rgb, im.rgb, 13 * 9 * 3);
    json_t *read = NULL;
    assert_ok(lw_png_texts(in_scratch("a.png"), &read));
    assert_true(json_equal(texts, read));
    json_decref(read);
    lw_str one = {0}, two = {0};
    assert_ok(lw_png_encode(&im, NULL, &one));
    assert_ok(lw_png_encode(&im, NULL, &two));
    assert_true(one.len == two.len && memcmp(one.s, two.s, one.len) == 0);
    json_object_set_new(texts, "number", json_integer(3));
    assert_fails(LW_EUSAGE, "'number'", lw_png_save(in_scratch("b.png"), &im, texts));
    assert_false(lw_path_exists(in_scratch("b.png")));
    assert_fails(LW_EIO, "/nonexistent", lw_png_save("/nonexistent/b.png", &im, NULL));
    lw_str_clear(&one);
    lw_str_clear(&two);
    json_decref(texts);
    lw_image_clear(&im);
    lw_image_clear(&back);
}

static void reads_texts_of_others(void **state)
{
    (void)state;
    json_t *v = NULL;
    assert_ok(lw_png_texts(CORPUS "png/rgb_text.png", &v));
    assert_string_equal(json_string_value(json_object_get(v, "seed")), "7");
    assert_string_equal(json_string_value(json_object_get(v, "name")),
                        "caf\xc3\xa9"); /* was Latin-1 */
    assert_string_equal(json_string_value(json_object_get(v, "greek")), "\xce\xb1\xce\xb2\xce\xb3");
    assert_int_equal(json_string_length(json_object_get(v, "zipped")), 50);
    lw_json_drop(&v);
    assert_ok(lw_png_texts(CORPUS "png/rgb.png", &v));
    assert_int_equal(json_object_size(v), 0);
    lw_json_drop(&v);
}

static uint32_t png_crc(const char *bytes, size_t n)
{
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        c ^= (uint8_t)bytes[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

/* A chunk that says it has more than the file has is refused before room is made for it. */
static void chunks_end_in_the_file(void **state)
{
    (void)state;
    enum { HEAD = 33 };
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    json_t *v = NULL;
    size_t n;
    assert_ok(lw_file_read(CORPUS "png/rgb_text.png", 0, &bytes, &n));
    memcpy(bytes + HEAD, "\x7e\xff\xff\xf3", 4);
    assert_fails(LW_EFORMAT, "a chunk of 2130706419 bytes", lw_png_parse_texts("x", bytes, n, &v));
    assert_fails(LW_EFORMAT, "a chunk of 2130706419 bytes", lw_image_parse("x", bytes, n, &im));
}

/* tEXt is Latin-1; one byte in three becomes two, across the blocks it is converted in. */
static void long_texts_are_latin1(void **state)
{
    (void)state;
    enum { HEAD = 33, N = 5000, DATA = N + 2 };
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_str_clear) lw_str s = {0}, want = {0};
    json_t *v = NULL;
    size_t n;
    char chunk[12 + DATA] = {0, 0, DATA >> 8, (char)(DATA & 255), 't', 'E', 'X', 't', 'k', 0};
    for (int i = 0; i < N; i++) {
        const bool one = i < 3 ||
                         i % 3; /* three first, so that a block's last byte is left for two */
        chunk[10 + i] = one ? (char)('a' + i % 23) : '\xe9';
        lw_str_add_n(&want, one ? chunk + 10 + i : "\xc3\xa9", one ? 1 : 2);
    }
    uint32_t crc = png_crc(chunk + 4, DATA + 4);
    for (int k = 0; k < 4; k++)
        chunk[8 + DATA + k] = (char)(crc >> (24 - 8 * k));
    assert_ok(lw_file_read(CORPUS "png/rgb.png", 0, &bytes, &n));
    lw_str_add_n(&s, bytes, HEAD);
    lw_str_add_n(&s, chunk, sizeof chunk);
    lw_str_add_n(&s, bytes + HEAD, n - HEAD);
    assert_ok(lw_png_parse_texts("long", s.s, s.len, &v));
    assert_string_equal(json_string_value(json_object_get(v, "k")), lw_str_c(&want));
    lw_json_drop(&v);
}

/* A hundred kilobytes must not ask for a hundred megabytes. */
static void texts_of_a_png_are_limited(void **state)
{
    (void)state;
    enum { HEAD = 33, TIMES = 100 }; /* signature and IHDR */
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    json_t *v = NULL;
    size_t n, rest;
    assert_ok(lw_file_read(CORPUS "png/bombs.png", 0, &bytes, &n)); /* a million letters in each */
    char *chunk = bytes + HEAD, *data = memmem(bytes, n, "IDAT", 4);
    size_t length = (size_t)(uint8_t)chunk[2] << 8 | (uint8_t)chunk[3];
    rest = n - (size_t)(data - 4 - bytes);
    lw_str_add_n(&s, bytes, HEAD);
    for (int i = 0; i < TIMES; i++) {
        chunk[8] = (char)('a' + i / 10); /* a key of its own */
        chunk[9] = (char)('0' + i % 10);
        uint32_t crc = png_crc(chunk + 4, length + 4);
        for (int k = 0; k < 4; k++)
            chunk[8 + length + (size_t)k] = (char)(crc >> (24 - 8 * k));
        lw_str_add_n(&s, chunk, length + 12);
    }
    lw_str_add_n(&s, data - 4, rest);
    assert_false(s.failed);
    assert_ok(lw_png_parse_texts("bombs", s.s, s.len, &v));
    assert_int_equal(json_object_size(v), LW_PNG_TEXTS);
    assert_int_equal(json_string_length(json_object_get(v, "a0")), 1000000);
    lw_json_drop(&v);
}

static void jpeg_comes_back_close(void **state)
{
    (void)state;
    lw_image im = {0}, back = {0};
    lw_str bytes = {0};
    assert_ok(lw_image_load(CORPUS "jpeg/c444.jpg", &im));
    assert_ok(lw_jpeg_encode(&im, 95, &bytes));
    assert_ok(lw_image_parse("j", bytes.s, bytes.len, &back));
    int worst = 0;
    for (int i = 0; i < im.width * im.height * 3; i++)
        worst = LW_MAX(worst, abs(im.rgb[i] - back.rgb[i]));
    assert_in_range(worst, 0, 16);
    assert_fails(LW_EUSAGE, "quality 0", lw_jpeg_encode(&im, 0, &bytes));
    lw_str_clear(&bytes);
    lw_image_clear(&im);
    lw_image_clear(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_pillows),
        cmocka_unit_test(hashes_are_pillows),
        cmocka_unit_test(refuses_bad_webp),
        cmocka_unit_test(refuses_bad_bmp),
        cmocka_unit_test(headers_of_bmp_are_believed_in_nothing),
        cmocka_unit_test(headers_of_png_are_whole),
        cmocka_unit_test(bytes_behind_a_png_are_passed_over),
        cmocka_unit_test(refuses_bad_pictures),
        cmocka_unit_test(every_cut_of_a_picture_is_refused),
        cmocka_unit_test(png_comes_back_with_its_texts),
        cmocka_unit_test(reads_texts_of_others),
        cmocka_unit_test(long_texts_are_latin1),
        cmocka_unit_test(chunks_end_in_the_file),
        cmocka_unit_test(texts_of_a_png_are_limited),
        cmocka_unit_test(jpeg_comes_back_close),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
