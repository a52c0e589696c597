/* SPDX-License-Identifier: Apache-2.0 */
/* formats: event files, CSV and JSON lines, archives. */
#include "unit/test_formats_util.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "formats/formats.h"

static void crc_has_its_check_value(void **state)
{
    (void)state;
    const unsigned char zeros[32] = {0};
    assert_int_equal(lw_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(lw_crc32c(zeros, 32), 0x8a9136aau); /* RFC 3720, B.4 */
    assert_int_equal(lw_crc32c("", 0), 0);
}

static uint32_t unmask(uint32_t m)
{
    uint32_t r = m - 0xa282ead8u;
    return r >> 17 | r << 15;
}

/* Walks the frames, checks both CRCs; *last is the data of the last frame. */
static int count_frames(const char *bytes, size_t n, const char **last, size_t *last_len)
{
    int frames = 0;
    for (size_t at = 0; at < n; frames++) {
        uint64_t len;
        uint32_t crc;
        assert_true(n - at >= 16);
        memcpy(&len, bytes + at, 8);
        memcpy(&crc, bytes + at + 8, 4);
        assert_int_equal(unmask(crc), lw_crc32c(&len, 8));
        assert_true(len <= n - at - 16);
        *last = bytes + at + 12;
        *last_len = (size_t)len;
        memcpy(&crc, *last + len, 4);
        assert_int_equal(unmask(crc), lw_crc32c(*last, (size_t)len));
        at += 16 + (size_t)len;
    }
    return frames;
}

static void event_files_are_framed_and_encoded(void **state)
{
    (void)state;
    lw_events *e = NULL, *second = NULL;
    assert_ok(lw_events_open(in_scratch("tb"), 0, &e));
    assert_ok(lw_events_open(in_scratch("tb"), 500, &second)); /* a name of its own */
    assert_non_null(strstr(lw_events_path(e), "/tb/events.out.tfevents."));
    assert_string_not_equal(lw_events_path(e), lw_events_path(second));
    assert_ok(lw_events_image(e, "samples", 3, "png", 3, 32, 16));
    assert_ok(lw_events_text(e, "config", 0, "# hi"));
    assert_ok(lw_events_scalar(e, "loss", 300, 0.5));
    char *bytes;
    const char *data = NULL;
    size_t n, len = 0;
    assert_ok(lw_file_read(lw_events_path(e), 0, &bytes, &n));
    assert_int_equal(count_frames(bytes, n, &data, &len), 4);
    /* double wall_time; step 300; summary { value { tag: "loss" simple_value: 0.5 } } */
    const char want[] = "\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f";
    assert_int_equal(data[0], 0x09);
    assert_int_equal(len, 9 + sizeof want - 1);
    assert_memory_equal(data + 9, want, sizeof want - 1);
    lw_free(&bytes);
    assert_ok(lw_file_read(lw_events_path(second), 0, &bytes, &n));
    assert_int_equal(count_frames(bytes, n, &data, &len), 2);
    const char start[] =
        "\x10\xf4\x03\x3a\x02\x08\x01"; /* step 500, session_log { status: START } */
    assert_memory_equal(data + 9, start, sizeof start - 1);
    lw_free(&bytes);
    json_t *options = json_pack("{s:f, s:b}", "lr", 0.5, "flip", 1);
    assert_ok(lw_events_hparams(second, options));
    json_decref(options);
    assert_ok(lw_file_read(lw_events_path(second), 0, &bytes, &n));
    assert_int_equal(count_frames(bytes, n, &data, &len), 3);
    /* summary { value { tag; metadata { plugin_data { "hparams", session_start_info { hparams } } } } } */
    const char hparams[] =
        "\x2a\x4e\x0a\x4c\x0a\x1c_hparams_/session_start_info\x4a\x2c\x0a\x2a\x0a\x07hparams"
        "\x12\x1f\x1a\x1d\x0a\x0f\x0a\x02lr\x12\x09\x11\0\0\0\0\0\0\xe0\x3f\x0a\x0a\x0a\x04"
        "flip\x12\x02\x20\x01";
    assert_int_equal(len, 9 + sizeof hparams - 1);
    assert_memory_equal(data + 9, hparams, sizeof hparams - 1);
    lw_free(&bytes);
    lw_events_close(&e);
    lw_events_close(&second);
    assert_int_equal(lw_events_open("/proc/nope", 0, &e), LW_EIO);
    assert_null(e);
}

static void json_lines_append_load_and_cut(void **state)
{
    (void)state;
    const char *path = in_scratch("m.jsonl");
    for (int i = 0; i < 5; i++) {
        json_t *o = json_pack("{s:i, s:f}", "step", 10 * i, "loss", 1.0 / (1 + i));
        assert_ok(lw_jsonl_append(path, o));
        json_decref(o);
    }
    assert_ok(
        lw_file_append(path, "{\"step\": 50, \"lo", 16)); /* a crash in the middle of a line */
    json_t *all = NULL;
    assert_ok(lw_jsonl_load(path, &all));
    assert_int_equal(json_array_size(all), 5);
    lw_json_drop(&all);
    assert_ok(lw_jsonl_cut_step(path, 20));
    assert_ok(lw_jsonl_load(path, &all));
    assert_int_equal(json_array_size(all), 3);
    double third = json_real_value(json_object_get(json_array_get(all, 2), "loss"));
    assert_true(third == 1.0 / 3);
    lw_json_drop(&all);
    assert_ok(lw_jsonl_cut_step(path, -1));
    uint64_t size;
    assert_ok(lw_file_size(path, &size));
    assert_int_equal(size, 0);
    assert_ok(lw_jsonl_cut_step(in_scratch("absent.jsonl"), 3));
    put_file(path, "{}\n\n{}\n", 7);
    assert_ok(lw_jsonl_load(path, &all));
    assert_int_equal(json_array_size(all), 2);
    lw_json_drop(&all);
    put_file(path, "{}\n{]\n{}\n", 9);
    assert_fails(LW_EFORMAT, "line 2", lw_jsonl_load(path, &all));
    assert_null(all);
}

static void lines_are_cut_to_whole_ones(void **state)
{
    (void)state;
    const char *path = in_scratch("l.txt");
    char *text;
    size_t n;
    put_file(path, "one\ntwo\nthr", 11);
    assert_ok(lw_lines_cut(path, NULL, NULL));
    assert_ok(lw_file_read(path, 0, &text, &n));
    assert_string_equal(text, "one\ntwo\n");
    lw_free(&text);
    put_file(path, "one\nt", 5);
    assert_ok(lw_lines_cut(path, NULL, NULL));
    assert_ok(lw_file_read(path, 0, &text, &n));
    assert_string_equal(text, "one\n");
    lw_free(&text);
}

static void long_logs_are_cut_line_by_line(void **state)
{
    (void)state;
    enum { LINES = 60000, KEPT = 47001 };
    const char *path = in_scratch("long.csv");
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    size_t want = 0;
    lw_str_add(&s, "step,loss,time_s,images_per_sec\n");
    for (int i = 0; i < LINES; i++) {
        lw_str_addf(&s, "%d,0.123456789,%d.5,1234.56789\n", i, i);
        if (i == KEPT)
            want = s.len;
    }
    put_file(path, s.s, s.len);
    assert_true(want > LW_LINE_BYTES && s.len - want > 1000);
    assert_ok(lw_csv_cut_step(path, KEPT));
    uint64_t size;
    assert_ok(lw_file_size(path, &size));
    assert_int_equal(size, want);

    /* a line without an end is not read to it, and nothing is lost */
    s.len = 0;
    lw_str_add(&s, "{\"step\": 1}\n");
    while (s.len <= 2 * (size_t)LW_LINE_BYTES)
        lw_str_add(&s, "0123456789abcdef0123456789abcdef");
    put_file(path, s.s, s.len);
    assert_fails(LW_EFORMAT, "line 2 is longer than", lw_jsonl_cut_step(path, 5));
    assert_ok(lw_file_size(path, &size));
    assert_int_equal(size, s.len);
}

static void csv_appends_loads_and_cuts(void **state)
{
    (void)state;
    const char *path = in_scratch("loss.csv");
    const char *header[] = {"step", "loss", "note"};
    for (int i = 1; i <= 4; i++) {
        char step[16], loss[32];
        snprintf(step, sizeof step, "%d", i * 100);
        const char *row[] = {step, lw_f64_text(loss, 0.5 / i), i == 2 ? "a \"b\", c" : "plain"};
        assert_ok(lw_csv_append(path, header, row, 3));
    }
    char *text;
    size_t n;
    assert_ok(lw_file_read(path, 0, &text, &n));
    assert_non_null(
        strstr(text, "step,loss,note\n100,0.5,plain\n200,0.25,\"a \"\"b\"\", c\"\n300,"));
    assert_null(strstr(text + 1, "step,"));
    lw_free(&text);
    assert_ok(lw_file_append(path, "500,", 4));
    json_t *rows = NULL;
    assert_ok(lw_csv_load(path, &rows));
    assert_int_equal(json_array_size(rows), 5);
    assert_string_equal(json_string_value(json_array_get(json_array_get(rows, 2), 2)),
                        "a \"b\", c");
    lw_json_drop(&rows);
    assert_ok(lw_csv_cut_step(path, 200));
    assert_ok(lw_csv_load(path, &rows));
    assert_int_equal(json_array_size(rows), 3);
    lw_json_drop(&rows);
}

static const char *cell(const json_t *rows, size_t row, size_t i)
{
    return json_string_value(json_array_get(json_array_get(rows, row), i));
}

static void csv_cells_are_what_they_were(void **state)
{
    (void)state;
    const char *path = in_scratch("cells.csv"), *last[] = {"7", "two\r\nlines\r"};
    json_t *rows = NULL;
    put_file(path, "\"\",a\r,b\r\n", 9);
    assert_ok(lw_csv_append(path, NULL, last, 2)); /* quoted, so that its \r stays */
    assert_ok(lw_csv_load(path, &rows));
    assert_int_equal(json_array_size(rows), 2);
    assert_string_equal(cell(rows, 0, 0), "");
    assert_string_equal(cell(rows, 0, 1), "a\r");
    assert_string_equal(cell(rows, 0, 2), "b");
    assert_string_equal(cell(rows, 1, 1), last[1]);
    lw_json_drop(&rows);
    /* a step that is no number was never written whole */
    put_file(path, "step\n1,x\n2junk,x\n3,x\n", 21);
    assert_ok(lw_csv_cut_step(path, 5));
    assert_ok(lw_csv_load(path, &rows));
    assert_int_equal(json_array_size(rows), 2);
    lw_json_drop(&rows);
}

static int put_archive(const char *path, int (*format)(struct archive *),
                       int (*filter)(struct archive *))
{
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    format(a);
    filter(a);
    archive_write_open_filename(a, path);
    static const char *const names[] = {"top/", "top/a.bin", "top/sub/b.bin"};
    for (int i = 0; i < 3; i++) {
        archive_entry_clear(e);
        archive_entry_set_pathname(e, names[i]);
        archive_entry_set_filetype(e, i ? AE_IFREG : AE_IFDIR);
        archive_entry_set_perm(e, 0755);
        archive_entry_set_size(e, i ? 5 : 0);
        archive_write_header(a, e);
        if (i)
            archive_write_data(a, i == 1 ? "hello" : "world", 5);
    }
    archive_entry_free(e);
    archive_write_close(a);
    return archive_write_free(a);
}

static void archives_give_their_members(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int (*format)(struct archive *);
        int (*filter)(struct archive *);
    } kinds[] = {
        {"a.tar", archive_write_set_format_ustar, archive_write_add_filter_none},
        {"a.tar.gz", archive_write_set_format_pax, archive_write_add_filter_gzip},
        {"a.tar.xz", archive_write_set_format_ustar, archive_write_add_filter_xz},
        {"a.zip", archive_write_set_format_zip, archive_write_add_filter_none},
    };
    for (size_t k = 0; k < LW_COUNT(kinds); k++) {
        char path[160];
        snprintf(path, sizeof path, "%s", in_scratch(kinds[k].name));
        assert_int_equal(put_archive(path, kinds[k].format, kinds[k].filter), ARCHIVE_OK);
        lw_archive *a = NULL;
        lw_archive_member m;
        char buf[3];
        size_t got;
        assert_ok(lw_archive_open(path, &a));
        assert_int_equal(lw_archive_next(a, &m), 0);
        assert_string_equal(m.name, "top/a.bin"); /* the directory is passed over */
        assert_true(!m.raw);
        assert_ok(lw_archive_read(a, buf, 3, &got));
        assert_true(got == 3 && memcmp(buf, "hel", 3) == 0);
        assert_int_equal(lw_archive_next(a, &m), 0);
        assert_string_equal(m.name, "top/sub/b.bin");
        assert_int_equal(lw_archive_next(a, &m), 1);
        lw_archive_close(&a);
        char *text = NULL;
        size_t n;
        assert_ok(lw_archive_extract(path, "b.bin", 100, &text, &n));
        assert_string_equal(text, "world");
        lw_free(&text);
        assert_fails(LW_EFORMAT, "more than 4 bytes",
                     lw_archive_extract(path, "b.bin", 4, &text, &n));
        assert_fails(LW_EFORMAT, "no member '.bin'",
                     lw_archive_extract(path, ".bin", 100, &text, &n));
        assert_fails(LW_EFORMAT, "is an archive", lw_archive_load(path, 0, &text, &n));
        assert_null(text);
    }
}

static int write_raw_gz(const char *path, const char *text)
{
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    archive_write_set_format_raw(a);
    archive_write_add_filter_gzip(a);
    archive_write_open_filename(a, path);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_write_header(a, e);
    archive_write_data(a, text, strlen(text));
    archive_entry_free(e);
    archive_write_close(a);
    return archive_write_free(a);
}

/* Else its reader would wait for a writer. */
static void a_pipe_is_no_archive(void **state)
{
    (void)state;
    lw_archive *a = NULL;
    assert_int_equal(mkfifo(in_scratch("pipe.tar"), 0600), 0);
    alarm(20);
    assert_fails(LW_EIO, "pipe.tar: not a regular file",
                 lw_archive_open(in_scratch("pipe.tar"), &a));
    alarm(0);
    assert_null(a);
}

static void compressed_files_read_like_plain_ones(void **state)
{
    (void)state;
    const char *text = "0123456789012345678901234567890123456789 some text that is compressed";
    char *got = NULL;
    size_t n;
    assert_int_equal(write_raw_gz(in_scratch("t.gz"), text), ARCHIVE_OK);
    put_file(in_scratch("t"), text, strlen(text));
    assert_ok(lw_archive_load(in_scratch("t.gz"), 0, &got, &n));
    assert_string_equal(got, text);
    lw_free(&got);
    assert_ok(lw_archive_load(in_scratch("t"), strlen(text), &got, &n));
    assert_int_equal(n, strlen(text));
    lw_free(&got);
    assert_fails(LW_EFORMAT, "more than 8", lw_archive_load(in_scratch("t.gz"), 8, &got, &n));
    put_file(in_scratch("empty"), "", 0);
    assert_ok(lw_archive_load(in_scratch("empty"), 0, &got, &n));
    assert_int_equal(n, 0);
    lw_free(&got);
    char *gz;
    assert_ok(lw_file_read(in_scratch("t.gz"), 0, &gz, &n));
    put_file(in_scratch("cut.gz"), gz, n - 12);
    lw_free(&gz);
    assert_fails(LW_EFORMAT, "cut.gz: truncated",
                 lw_archive_load(in_scratch("cut.gz"), 0, &got, &n));
    assert_fails(LW_EIO, "none.gz", lw_archive_load(in_scratch("none.gz"), 0, &got, &n));
    assert_fails(LW_EIO, "directory", lw_archive_load(scratch, 0, &got, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_has_its_check_value),
        cmocka_unit_test(event_files_are_framed_and_encoded),
        cmocka_unit_test(json_lines_append_load_and_cut),
        cmocka_unit_test(lines_are_cut_to_whole_ones),
        cmocka_unit_test(long_logs_are_cut_line_by_line),
        cmocka_unit_test(csv_appends_loads_and_cuts),
        cmocka_unit_test(csv_cells_are_what_they_were),
        cmocka_unit_test(archives_give_their_members),
        cmocka_unit_test(a_pipe_is_no_archive),
        cmocka_unit_test(compressed_files_read_like_plain_ones),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
