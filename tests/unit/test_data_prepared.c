/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset opened with a preparation: what lw_prepare makes of each source picture, for every
 * source, any number of threads and processes; kept in a cache of its own. */
#include "test_data_util.h"

#include "data/data.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"
#include "kernels/formula_picture.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* Higher than wide; wider than high with a border; as a published network has it. */
static const lw_preparation tall = {.fit = LW_FIT_SHORTEST,
                                    .filter = LW_FILTER_BICUBIC,
                                    .resize_h = 40,
                                    .resize_w = 40,
                                    .height = 40,
                                    .width = 24,
                                    .channels = 3,
                                    .scale = 1 / 255.0,
                                    .std = {1, 1, 1}};
static const lw_preparation wide = {.fit = LW_FIT_INSIDE,
                                    .filter = LW_FILTER_LANCZOS,
                                    .resize_h = 20,
                                    .resize_w = 50,
                                    .height = 21,
                                    .width = 50,
                                    .channels = 3,
                                    .fill = {9, 90, 200},
                                    .scale = 1,
                                    .std = {1, 1, 1}};

static lw_dataset *open_rows(const char *spec, const lw_data_opts *o)
{
    lw_dataset *d = NULL;
    ok(lw_data_open(spec, o, &d));
    return d;
}

/* Row i of d is p of im. */
static void expect_row(const lw_dataset *d, int64_t i, const lw_preparation *p, const lw_image *im)
{
    size_t row = (size_t)p->height * (size_t)p->width * 3;
    uint8_t *want = lw_calloc(row, 1);
    assert_int_equal(d->h, p->height);
    assert_int_equal(d->w, p->width);
    ok(lw_prepare(p, im, want));
    if (memcmp(want, d->pixels + (size_t)i * row, row) != 0)
        fail_msg("%s: row %lld is another picture", d->spec, (long long)i);
    lw_free(&want);
}

/* Every row of the split, whose picture is got by the source's plain opening at its own size. */
static void expect_prepared(const char *spec, int32_t own, const lw_preparation *p)
{
    for (int split = 0; split < LW_SPLIT_COUNT; split++) {
        const lw_data_opts plain = {
            .cache_dir = "", .image_size = own, .split = (lw_split)split, .count = 6};
        const lw_data_opts o = {
            .cache_dir = "", .preparation = p, .split = (lw_split)split, .count = 6};
        lw_dataset *a = open_rows(spec, &plain), *d = open_rows(spec, &o);
        assert_int_equal(d->n, 6);
        assert_int_equal(d->split_rows, a->split_rows);
        assert_memory_equal(d->labels, a->labels, 6 * sizeof *d->labels);
        for (int64_t i = 0; i < 6; i++) {
            lw_image im = {own, own, (uint8_t *)a->pixels + i * own * own * 3, false, {0}};
            expect_row(d, i, p, &im);
        }
        lw_data_close(&a);
        lw_data_close(&d);
    }
}

static void drawn_pictures(void **state)
{
    (void)state;
    expect_prepared("synth:16", 16, &tall);
    expect_prepared("synth", 32, &wide);
}

static void put_records(const char *name, int n)
{
    uint8_t *b = calloc((size_t)n, 3073);
    for (int r = 0; r < n; r++) {
        b[r * 3073] = (uint8_t)(r % 10);
        formula_picture(b + r * 3073 + 1, 96, 32, 1);
        b[r * 3073 + 1 + r] ^= 0x80;
    }
    ok(lw_file_write(in_scratch(name), b, (size_t)n * 3073));
    free(b);
}

static void cifar_pictures(void **state)
{
    (void)state;
    ok(lw_mkdirs(in_scratch("cifar")));
    put_records("cifar/data_batch_1.bin", 9);
    put_records("cifar/data_batch_2.bin", 4);
    put_records("cifar/test_batch.bin", 7);
    expect_prepared(spec_of("cifar10", in_scratch("cifar")), 32, &tall);
    expect_prepared(spec_of("cifar10", in_scratch("cifar")), 32, &wide);
}

static void put_digits(const char *images, const char *labels, uint8_t n)
{
    static uint8_t b[16 + 20 * 784], l[8 + 20];
    const uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 28, 0, 0, 0, 28};
    const uint8_t label_head[8] = {0, 0, 8, 1, 0, 0, 0, n};
    memcpy(b, head, sizeof head);
    memcpy(l, label_head, sizeof label_head);
    formula_picture(b + 16, 28 * n, 28, 1);
    for (int i = 0; i < n; i++)
        l[8 + i] = (uint8_t)(i % 10);
    ok(lw_file_write(in_scratch(images), b, 16 + (size_t)n * 784));
    ok(lw_file_write(in_scratch(labels), l, 8 + (size_t)n));
}

/* The border that makes 32x32 of 28x28 is no part of the picture. */
static void mnist_pictures(void **state)
{
    (void)state;
    ok(lw_mkdirs(in_scratch("mnist")));
    put_digits("mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte", 14);
    put_digits("mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte", 7);
    expect_prepared(spec_of("mnist", in_scratch("mnist")), 28, &tall);
    expect_prepared(spec_of("mnist", in_scratch("mnist")), 28, &wide);
}

/* Twenty pictures of two classes, PNG and JPEG, every size another. */
static void put_folder(void)
{
    char path[600];
    ok(lw_mkdirs(in_scratch("folder/a")));
    ok(lw_mkdirs(in_scratch("folder/b")));
    for (int i = 0; i < 20; i++) {
        lw_image im = {0};
        ok(lw_image_init(&im, 9 + 7 * (i % 5), 60 - 3 * i));
        formula_picture(im.rgb, im.height, im.width, 3);
        snprintf(path, sizeof path, "%s/%c/%02d.%s", in_scratch("folder"), i < 12 ? 'a' : 'b', i,
                 i % 3 ? "png" : "jpg");
        LW_CLEANUP(lw_str_clear) lw_str bytes = {0};
        ok(i % 3 ? lw_png_encode(&im, NULL, &bytes) : lw_jpeg_encode(&im, 95, &bytes));
        ok(lw_file_write(path, bytes.s, bytes.len));
        lw_image_clear(&im);
    }
}

static void check_folder(const lw_preparation *p, lw_pool *pool, const char *cache)
{
    char path[600];
    const lw_data_opts o = {.cache_dir = cache, .preparation = p, .pool = pool};
    lw_dataset *d = open_rows(spec_of("folder", in_scratch("folder")), &o);
    assert_int_equal(d->n, 18); /* the tenth of class a and the last of b are held out */
    for (int64_t i = 0, file = 0; i < d->n; i++, file++) {
        lw_image im = {0};
        file += file == 9;
        snprintf(path, sizeof path, "%s/%c/%02d.%s", in_scratch("folder"), file < 12 ? 'a' : 'b',
                 (int)file, file % 3 ? "png" : "jpg");
        ok(lw_image_load(path, &im));
        expect_row(d, i, p, &im);
        assert_int_equal(d->labels[i], file >= 12);
        lw_image_clear(&im);
    }
    lw_data_close(&d);
}

static void folders_for_any_number_of_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5};
    put_folder();
    check_folder(&tall, NULL, "");
    for (size_t i = 0; i < LW_COUNT(threads); i++) {
        lw_pool *pool = NULL;
        ok(lw_pool_new(threads[i], &pool));
        check_folder(&tall, pool, "");
        check_folder(&wide, pool, "");
        lw_pool_free(&pool);
    }
}

/* Another preparation, another file; the same pixels, the same file, whatever mean and std are. */
static void each_preparation_has_its_cache(void **state)
{
    (void)state;
    const char *spec = spec_of("folder", in_scratch("folder"));
    lw_preparation p = tall;
    lw_data_opts o = {.cache_dir = in_scratch("cache"), .preparation = &p};
    lw_dataset *a = open_rows(spec, &o);
    assert_true(a->cached);
    assert_non_null(strstr(a->cache_path, "/folder-24x40-"));
    p.mean[0] = 3;
    p.scale = 1;
    lw_dataset *b = open_rows(spec, &o);
    assert_string_equal(a->cache_path, b->cache_path);
    assert_ptr_not_equal(a->pixels, b->pixels);
    p.filter = LW_FILTER_BOX;
    lw_dataset *c = open_rows(spec, &o);
    assert_string_not_equal(a->cache_path, c->cache_path);
    assert_true(a->content != c->content && a->fingerprint != c->fingerprint);
    lw_data_close(&a);
    lw_data_close(&b);
    lw_data_close(&c);
    check_folder(&tall, NULL, in_scratch("cache"));
    check_folder(&tall, NULL, in_scratch("cache"));
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    ok(lw_data_cache_list(in_scratch("cache"), &l));
    assert_int_equal(l.n, 2);
    assert_int_equal(l.at[0].state, LW_CACHED_WHOLE);
    assert_int_equal(l.at[0].height, 40);
    assert_int_equal(l.at[0].width, 24);
    assert_non_null(strstr(l.at[0].title, "/folder train rows, prepared: shortest edge 40x40, b"));
}

/* A part of a split is prepared and kept by itself. */
static void only_the_rows_asked_for(void **state)
{
    (void)state;
    const char *spec = spec_of("folder", in_scratch("folder"));
    lw_data_opts o = {.cache_dir = in_scratch("parts"), .preparation = &wide};
    lw_dataset *all = open_rows(spec, &o);
    size_t row = (size_t)wide.height * (size_t)wide.width * 3;
    o.first = 11;
    o.count = 4;
    for (int again = 0; again < 2; again++) {
        lw_dataset *d = open_rows(spec, &o);
        assert_int_equal(d->n, 4);
        assert_int_equal(d->first, 11);
        assert_int_equal(d->split_rows, 18);
        assert_memory_equal(d->pixels, all->pixels + 11 * row, 4 * row);
        assert_memory_equal(d->labels, all->labels + 11, 4 * sizeof *d->labels);
        struct stat st;
        assert_int_equal(stat(d->cache_path, &st), 0);
        assert_true(st.st_size < 4096 + 5 * (off_t)row);
        lw_data_close(&d);
    }
    lw_data_close(&all);
    lw_dataset *none = NULL;
    o.count = 8;
    fails(lw_data_open(spec, &o, &none), LW_EUSAGE, "the train split has 18");
    o = (lw_data_opts){.preparation = &wide, .image_size = 16};
    fails(lw_data_open(spec, &o, &none), LW_EUSAGE, "image size 16 beside a preparation");
    lw_preparation large = wide;
    large.width = LW_DATA_MAX_SIDE + 1;
    o = (lw_data_opts){.preparation = &large};
    fails(lw_data_open(spec, &o, &none), LW_EUNSUPPORTED, "4097x21 pixels: sides are 1 to 4096");
}

/* Loader and sheet take height and width from the dataset. */
static void batches_and_sheets_of_any_shape(void **state)
{
    (void)state;
    const lw_data_opts o = {.cache_dir = "", .preparation = &wide};
    lw_dataset *d = open_rows(spec_of("folder", in_scratch("folder")), &o);
    const lw_loader_opts lo = {.batch_size = 5, .seed = 3, .flip = true};
    size_t row = (size_t)(d->h * d->w * 3);
    float *want = lw_calloc(row, sizeof *want);
    lw_batch b = {0};
    ok(lw_batch_init(&b, 5, d->h, d->w, 3));
    lw_loader_fill(d, &lo, 0, &b);
    int flipped = 0;
    for (int i = 0; i < 5; i++) {
        lw_data_get(d, b.index[i], false, want);
        if (memcmp(b.images + (size_t)i * row, want, row * sizeof *want) == 0)
            continue;
        lw_data_get(d, b.index[i], true, want);
        assert_memory_equal(b.images + (size_t)i * row, want, row * sizeof *want);
        assert_true(b.images[(size_t)i * row + 2] == want[2]);
        flipped++;
    }
    assert_true(flipped > 0 && flipped < 5);
    int32_t w = 0, h = 0;
    uint8_t *sheet = NULL;
    ok(lw_data_sheet(d, 2, 3, 1, 2, &w, &h, &sheet));
    assert_int_equal(w, 3 * 52 + 2);
    assert_int_equal(h, 2 * 23 + 2);
    assert_memory_equal(sheet + 3 * (size_t)(2 * w + 2), d->pixels, 3 * 50);
    lw_free(&sheet);
    lw_free(&want);
    lw_batch_clear(&b);
    lw_data_close(&d);
}

static void processes_prepare_once(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    const char *spec = spec_of("folder", in_scratch("folder"));
    const lw_data_opts o = {.cache_dir = in_scratch("many"), .preparation = &tall};
    pid_t child[PROCESSES];
    ino_t first = 0;
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            lw_dataset *d = NULL;
            struct stat st;
            if (lw_data_open(spec, &o, &d) != 0 || stat(d->cache_path, &st) != 0)
                _exit(1);
            LW_CLEANUP(lw_str_clear) lw_str line = {0};
            lw_str_addf(&line, "%llu\n", (unsigned long long)st.st_ino);
            lw_file_append(in_scratch("inodes"), line.s, line.len);
            _exit(0);
        }
        assert_true(child[i] > 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n = 0;
    ok(lw_file_read(in_scratch("inodes"), 0, &text, &n));
    char *p = text;
    for (int i = 0; i < PROCESSES; i++) {
        ino_t inode = (ino_t)strtoull(p, &p, 10);
        first = i == 0 ? inode : first;
        assert_true(inode == first && inode != 0);
    }
}

/* A cache that an older version wrote is built again, and is not called damaged. */
static void other_versions_are_built_again(void **state)
{
    (void)state;
    const char *spec = spec_of("folder", in_scratch("folder"));
    const lw_data_opts o = {.cache_dir = in_scratch("old"), .preparation = &tall};
    lw_dataset *d = open_rows(spec, &o);
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t n = 0;
    ok(lw_file_read(d->cache_path, 0, &bytes, &n));
    const uint32_t before = LW_DATA_VERSION - 1;
    memcpy(bytes + offsetof(lw_data_header, version), &before, sizeof before);
    memset(bytes + LW_DATA_PIXELS_AT, 7, 100);
    ok(lw_file_write(d->cache_path, bytes, n));
    lw_data_report r;
    ok(lw_data_check(spec, &o, &r));
    assert_int_equal(r.n_problems, 0);
    assert_true(r.set->content == d->content);
    lw_data_report_clear(&r);
    lw_data_close(&d);
    check_folder(&tall, NULL, in_scratch("old"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_pictures),
        cmocka_unit_test(cifar_pictures),
        cmocka_unit_test(mnist_pictures),
        cmocka_unit_test(folders_for_any_number_of_threads),
        cmocka_unit_test(each_preparation_has_its_cache),
        cmocka_unit_test(only_the_rows_asked_for),
        cmocka_unit_test(batches_and_sheets_of_any_shape),
        cmocka_unit_test(processes_prepare_once),
        cmocka_unit_test(other_versions_are_built_again),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
