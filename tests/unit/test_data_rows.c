/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures are rows: drawn ones, all of both splits, those a manifest lists, those that can be
 * read; and what their names are. */
#include "test_data_util.h"

#include "data/data.h"
#include "formats/formats.h"

/* 12 pictures of 8x8 and one grey level each: a/00 .. a/06, b/07 .. b/11. */
static void put_folder(const char *name)
{
    char path[600];
    for (int i = 0; i < 12; i++) {
        LW_CLEANUP(lw_image_clear) lw_image im = {0};
        snprintf(path, sizeof path, "%s/%c", in_scratch(name), i < 7 ? 'a' : 'b');
        ok(lw_mkdirs(path));
        ok(lw_image_init(&im, 8, 8));
        memset(im.rgb, 10 * i, (size_t)8 * 8 * 3);
        snprintf(path, sizeof path, "%s/%c/%02d.png", in_scratch(name), i < 7 ? 'a' : 'b', i);
        ok(lw_png_save(path, &im, NULL));
    }
}

static lw_dataset *open_rows(const char *spec, const lw_data_opts *o)
{
    lw_dataset *d = NULL;
    ok(lw_data_open(spec, o, &d));
    return d;
}

/* What row i shows, by its level. */
static int picture(const lw_dataset *d, int64_t i)
{
    return d->pixels[i * d->h * d->w * 3] / 10;
}

static void expect_name(const lw_dataset *d, int64_t i, const char *want)
{
    lw_str name = {0};
    lw_data_row_name(d, i, &name);
    assert_string_equal(lw_str_c(&name), want);
    lw_str_clear(&name);
}

/* By path and by number, in both splits and from a cache. */
static void rows_have_names(void **state)
{
    (void)state;
    put_folder("f");
    for (int round = 0; round < 2; round++) {
        lw_data_opts o = {.cache_dir = in_scratch("names")};
        lw_dataset *d = open_rows(spec_of("folder", in_scratch("f")), &o);
        assert_int_equal(d->n, 10); /* the last of each class is held out */
        expect_name(d, 0, "a/00.png");
        expect_name(d, 9, "b/10.png");
        assert_true(lw_str_ends(d->root, "/f") && d->root[0] == '/');
        lw_data_close(&d);
        o.split = LW_SPLIT_HELDOUT;
        d = open_rows(spec_of("folder", in_scratch("f")), &o);
        expect_name(d, 1, "b/11.png");
        assert_int_equal(lw_data_row_number(d, 1), 1);
        lw_data_close(&d);
        o.split = LW_SPLIT_ALL;
        d = open_rows(spec_of("folder", in_scratch("f")), &o);
        assert_int_equal(d->n, 12);
        assert_int_equal(d->split_rows, 12);
        expect_name(d, 9, "b/10.png");
        expect_name(d, 10, "a/06.png");
        lw_data_close(&d);
    }
    lw_data_opts o = {.cache_dir = "", .first = 3, .count = 5};
    lw_dataset *d = open_rows("synth:16", &o);
    expect_name(d, 2, "synth train 5");
    assert_string_equal(d->root, "");
    lw_data_close(&d);
    o = (lw_data_opts){.cache_dir = "", .first = 49999, .count = 3, .split = LW_SPLIT_ALL};
    d = open_rows("synth:16", &o);
    expect_name(d, 0, "synth train 49999");
    expect_name(d, 2, "synth held-out 1");
    lw_data_close(&d);
}

/* As many as asked for, each once, in order, others for another seed; the pixels they have in the
 * whole, prepared or not. */
static void some_are_drawn(void **state)
{
    (void)state;
    enum { N = 7 };
    const lw_preparation p = lw_preparation_square(8);
    int differ = 0, first[N] = {0};
    for (uint64_t seed = 0; seed < 6; seed++) {
        lw_data_opts o = {.cache_dir = in_scratch("drawn"),
                          .num_images = N,
                          .seed = seed,
                          .split = LW_SPLIT_ALL,
                          .preparation = seed % 2 ? &p : NULL};
        for (int again = 0; again < 2; again++) {
            lw_dataset *d = open_rows(spec_of("folder", in_scratch("f")), &o);
            assert_int_equal(d->n, N);
            assert_int_equal(d->split_rows, 12);
            int64_t place = -1;
            for (int i = 0; i < N; i++) {
                LW_CLEANUP(lw_str_clear) lw_str name = {0};
                lw_data_row_name(d, i, &name);
                assert_int_equal(atoi(lw_str_c(&name) + 2), picture(d, i));
                int64_t number = lw_data_row_number(d, i) +
                                 (picture(d, i) == 6 || picture(d, i) == 11 ? 10 : 0);
                assert_true(number > place);
                place = number;
                differ += seed > 0 && first[i] != picture(d, i);
                first[i] = seed > 0 ? first[i] : picture(d, i);
            }
            lw_data_close(&d);
        }
    }
    assert_true(differ > 0);
    lw_dataset *none = NULL;
    const lw_data_opts many = {.cache_dir = "", .num_images = 11};
    fails(lw_data_open(spec_of("folder", in_scratch("f")), &many, &none), LW_EUSAGE,
          "11 pictures are to be drawn, but there are 10");
}

/* Every picture is drawn as often as any other. */
static void draws_are_fair(void **state)
{
    (void)state;
    enum { SEEDS = 300, OF = 20, N = 5 };
    int drawn[OF] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        lw_data_opts o = {.cache_dir = "", .count = OF, .num_images = N, .seed = seed};
        lw_dataset *d = open_rows("synth:16", &o);
        for (int64_t i = 0; i < N; i++)
            drawn[lw_data_row_number(d, i)]++;
        lw_data_close(&d);
    }
    for (int i = 0; i < OF; i++) /* 75 with a standard deviation of 7.5 */
        if (drawn[i] < 45 || drawn[i] > 105)
            fail_msg("picture %d was drawn %d times of %d", i, drawn[i], SEEDS);
}

/* Names of rows as a list; root: where they begin, too. */
static void put_manifest(const lw_dataset *d, bool root, const char *file)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_add(&text, "{");
    if (root)
        lw_str_addf(&text, "\"num_images\": %lld, \"root\": \"%s\", ", (long long)d->n, d->root);
    lw_str_add(&text, "\"paths\": [");
    for (int64_t i = 0; i < d->n; i++) {
        lw_str_add(&text, i ? ", \"" : "\"");
        lw_data_row_name(d, i, &text);
        lw_str_add(&text, "\"");
    }
    lw_str_add(&text, "]}");
    ok(lw_file_write(in_scratch(file), text.s, text.len));
}

/* Names of rows, as a list, open the same rows: with their root in the list, in the spec, and from a
 * list beside its pictures. */
static void manifests_go_round(void **state)
{
    (void)state;
    char spec[800];
    lw_data_opts o = {.cache_dir = "", .num_images = 6, .seed = 3, .split = LW_SPLIT_ALL};
    lw_dataset *d = open_rows(spec_of("folder", in_scratch("f")), &o);
    ok(lw_mkdirs(in_scratch("elsewhere")));
    const lw_data_opts plain = {.cache_dir = in_scratch("manifests")};
    for (int round = 0; round < 3; round++) {
        const char *file = round < 2 ? "elsewhere/m.json" : "f/m.json";
        put_manifest(d, round == 0, file);
        snprintf(spec, sizeof spec, "manifest:%s%s%s", in_scratch(file), round == 1 ? ",root=" : "",
                 round == 1 ? in_scratch("f") : "");
        lw_dataset *m = open_rows(spec, &plain);
        assert_int_equal(m->n, 6);
        assert_string_equal(m->root, d->root);
        assert_int_equal(m->classes, 2);
        assert_string_equal(m->class_names[1], "b");
        assert_memory_equal(m->pixels, d->pixels, 6 * 8 * 8 * 3);
        assert_memory_equal(m->labels, d->labels, 6 * sizeof *m->labels);
        for (int64_t i = 0; i < 6; i++) {
            LW_CLEANUP(lw_str_clear) lw_str name = {0};
            lw_data_row_name(d, i, &name);
            expect_name(m, i, lw_str_c(&name));
        }
        lw_data_close(&m);
    }
    lw_data_close(&d);
}

static void order_and_absolute_paths_are_kept(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_addf(&text, "{\"num_images\": 3, \"paths\": [\"b/08.png\", \"%s\", \"b/08.png\"]}",
                in_scratch("f/a/02.png"));
    ok(lw_file_write(in_scratch("f/order.json"), text.s, text.len));
    const lw_data_opts o = {.cache_dir = ""};
    lw_dataset *d = open_rows(spec_of("manifest", in_scratch("f/order.json")), &o);
    assert_int_equal(picture(d, 0), 8);
    assert_int_equal(picture(d, 1), 2);
    assert_int_equal(picture(d, 2), 8);
    assert_int_equal(d->labels[0], 1);
    assert_int_equal(d->labels[1], 0);
    expect_name(d, 1, in_scratch("f/a/02.png"));
    lw_data_close(&d);
}

static void bad_manifests_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *says;
    } cases[] = {
        {"{\"paths\": 3}", LW_EFORMAT, "'paths'"},
        {"{}", LW_EFORMAT, "'paths'"},
        {"[\"a\"]", LW_EFORMAT, "bad.json"},
        {"{\"paths\": []}", LW_EFORMAT, "lists no picture"},
        {"{\"paths\": [\"a/00.png\", 3]}", LW_EFORMAT, "entry 1 is no path"},
        {"{\"paths\": [\"\"]}", LW_EFORMAT, "entry 0 is no path"},
        {"{\"num_images\": 2, \"paths\": [\"a/00.png\"]}", LW_EFORMAT, "'num_images' is 2, but"},
        {"{\"root\": 3, \"paths\": [\"a/00.png\"]}", LW_EFORMAT, "'root'"},
        {"{\"root\": \"/no/such\", \"paths\": [\"a/00.png\"]}", LW_EIO, "/no/such/a/00.png"},
        {"{\"paths\": [\"a/none.png\"]}", LW_EIO, "a/none.png"},
        {"{\"paths\": [\"a\"]}", LW_EIO, "not a regular file"},
        {"{\"paths\": [\"bad.json\"]}", LW_EFORMAT, "bad.json"},
    };
    const lw_data_opts o = {.cache_dir = ""};
    lw_dataset *d = NULL;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        ok(lw_file_write(in_scratch("f/bad.json"), cases[i].text, strlen(cases[i].text)));
        fails(lw_data_open(spec_of("manifest", in_scratch("f/bad.json")), &o, &d), cases[i].code,
              cases[i].says);
    }
    fails(lw_data_open(spec_of("manifest", in_scratch("none.json")), &o, &d), LW_EIO, "none.json");
}

/* One that cannot be read ends it, or is left out: then the others are there, with their names. */
static void broken_pictures_fail_or_are_left_out(void **state)
{
    (void)state;
    put_folder("broken");
    ok(lw_file_write(in_scratch("broken/a/03.png"), "\x89PNG nonsense", 13));
    ok(lw_file_write(in_scratch("broken/b/08.png"), "", 0));
    lw_dataset *none = NULL;
    lw_data_opts o = {.cache_dir = in_scratch("skip"), .split = LW_SPLIT_ALL};
    const char *spec = spec_of("folder", in_scratch("broken"));
    fails(lw_data_open(spec, &o, &none), LW_EFORMAT, "a/03.png");
    o.on_error = LW_ON_ERROR_SKIP;
    const lw_preparation p = lw_preparation_square(8);
    for (int round = 0; round < 4; round++) { /* built and mapped, of both kinds */
        o.preparation = round < 2 ? NULL : &p;
        lw_dataset *d = open_rows(spec, &o);
        assert_int_equal(d->n, 10);
        assert_int_equal(d->skipped, 2);
        if (!strstr(d->note, "2 pictures cannot be read and are left out; the first: ") ||
            !strstr(d->note, "a/03.png"))
            fail_msg("'%s'", d->note);
        for (int64_t i = 0; i < 10; i++) {
            LW_CLEANUP(lw_str_clear) lw_str name = {0};
            lw_data_row_name(d, i, &name);
            assert_int_equal(atoi(lw_str_c(&name) + 2), picture(d, i));
            assert_true(picture(d, i) != 3 && picture(d, i) != 8);
            assert_int_equal(d->labels[i], picture(d, i) >= 7);
        }
        lw_data_close(&d);
    }
    o = (lw_data_opts){.cache_dir = in_scratch("skip"), .split = LW_SPLIT_ALL};
    fails(lw_data_open(spec, &o, &none), LW_EFORMAT, "a/03.png"); /* the other cache is not its */
    ok(lw_mkdirs(in_scratch("hopeless")));
    ok(lw_file_write(in_scratch("hopeless/1.png"), "x", 1));
    o.on_error = LW_ON_ERROR_SKIP;
    fails(lw_data_open(spec_of("folder", in_scratch("hopeless")), &o, &none), LW_EFORMAT,
          "none of 1 pictures can be read");
}

/* Said before anything is decoded; nothing of it stays in the cache. */
static void rows_without_room_are_refused(void **state)
{
    (void)state;
    lw_preparation p = lw_preparation_square(8);
    p.height = p.width = 4096; /* 50 MB a picture */
    p.resize_h = p.resize_w = 4096;
    uint64_t left = 0;
    ok(lw_disk_free(scratch, &left));
    if (left >> 40 >= 2 || lw_memory_total() >> 40 >= 2)
        skip(); /* there is room */
    const lw_data_opts o = {.cache_dir = in_scratch("room"), .preparation = &p};
    lw_dataset *d = NULL;
    fails(lw_data_open("synth:16", &o, &d), LW_ENOMEM,
          "50000 pictures of 4096x4096 take 2.3 TiB, and this process may use");
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    ok(lw_data_cache_list(in_scratch("room"), &l));
    assert_int_equal(l.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_names),
        cmocka_unit_test(some_are_drawn),
        cmocka_unit_test(draws_are_fair),
        cmocka_unit_test(manifests_go_round),
        cmocka_unit_test(order_and_absolute_paths_are_kept),
        cmocka_unit_test(bad_manifests_are_named),
        cmocka_unit_test(broken_pictures_fail_or_are_left_out),
        cmocka_unit_test(rows_without_room_are_refused),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
