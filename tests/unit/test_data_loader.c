/* SPDX-License-Identifier: Apache-2.0 */
/* Batches and class draws: pure functions of the step, every row once an epoch, resume
 * by number. */
#include "test_data_util.h"

#include <math.h>

#include "base/base.h"
#include "data/data.h"

static lw_dataset *set; /* 100 digits */

static int open_set(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    lw_data_opts o = {.cache_dir = "", .count = 100};
    return lw_data_open("synth:16", &o, &set);
}

static int close_set(void **state)
{
    lw_data_close(&set);
    return scratch_remove(state);
}

static void same_batch(const lw_batch *a, const lw_batch *b)
{
    size_t n = (size_t)a->size;
    assert_int_equal(a->step, b->step);
    assert_memory_equal(a->images, b->images, n * 768 * sizeof(float));
    assert_memory_equal(a->labels, b->labels, n * sizeof *a->labels);
    assert_memory_equal(a->rows, b->rows, n * sizeof *a->rows);
    assert_memory_equal(a->index, b->index, n * sizeof *a->index);
}

static void thread_gives_the_pure_function(void **state)
{
    (void)state;
    lw_loader_opts o = {.batch_size = 16, .seed = 5, .flip = true, .start_step = 0, .end_step = 20};
    LW_CLEANUP(lw_batch_clear) lw_batch want = {0};
    ok(lw_batch_init(&want, 16, 16, 16, 3));
    for (int64_t start = 0; start < 20; start += 7) { /* resuming at 0, 7, 14 */
        LW_CLEANUP(lw_loader_free) lw_loader *l = NULL;
        o.start_step = start;
        ok(lw_loader_new(set, &o, &l));
        const lw_batch *b = NULL;
        for (int64_t s = start; s < 20; s++) {
            ok(lw_loader_next(l, &b));
            lw_loader_fill(set, &o, s, &want);
            same_batch(b, &want);
            assert_int_equal(b->step, s);
        }
        assert_int_equal(lw_loader_next(l, &b), 1);
    }
}

static void images_are_the_rows_mirrored_or_not(void **state)
{
    (void)state;
    lw_loader_opts o = {.batch_size = 50, .seed = 11, .flip = true};
    LW_CLEANUP(lw_batch_clear) lw_batch b = {0};
    ok(lw_batch_init(&b, 50, 16, 16, 3));
    int flipped = 0, total = 0;
    for (int64_t s = 0; s < 8; s++) {
        lw_loader_fill(set, &o, s, &b);
        for (int i = 0; i < 50; i++, total++) {
            const uint8_t *px = set->pixels + b.index[i] * 768;
            const float *im = b.images + i * 768;
            assert_int_equal(b.labels[i], set->labels[b.index[i]]);
            assert_int_equal(b.rows[i], s * 50 + i);
            bool plain = true, mirrored = true;
            for (int y = 0; y < 16; y++)
                for (int x = 0; x < 16; x++)
                    for (int c = 0; c < 3; c++) {
                        float v = im[(y * 16 + x) * 3 + c];
                        plain &= v == (float)px[(y * 16 + x) * 3 + c] / 127.5f - 1.0f;
                        mirrored &= v == (float)px[(y * 16 + 15 - x) * 3 + c] / 127.5f - 1.0f;
                    }
            assert_true(plain != mirrored);
            flipped += mirrored;
        }
    }
    print_message("%d of %d mirrored\n", flipped, total);
    assert_in_range(flipped, 150, 250);
    o.flip = false;
    lw_loader_fill(set, &o, 0, &b);
    assert_true(b.images[0] == (float)set->pixels[b.index[0] * 768] / 127.5f - 1.0f);
}

/* Where a place outside 0 .. 15 is mirrored in the first or last one. */
static int mirrored(int k)
{
    return k < 0 ? -k : k > 15 ? 30 - k : k;
}

/* Is a picture of the batch row px moved by (dy, dx), mirrored behind it? */
static bool moved(const float *im, const uint8_t *px, int dy, int dx)
{
    for (int y = 0; y < 16; y++)
        for (int x = 0; x < 16; x++)
            for (int c = 0; c < 3; c++) {
                int from = (mirrored(y + dy) * 16 + mirrored(x + dx)) * 3 + c;
                float v = (float)px[from] / 127.5f - 1.0f;
                if (im[(y * 16 + x) * 3 + c] != v)
                    return false;
            }
    return true;
}

static void images_are_the_rows_moved(void **state)
{
    (void)state;
    enum { LIMIT = 2, SIDE = 2 * LIMIT + 1 };
    const lw_loader_opts o = {.batch_size = 50, .seed = 11, .shift = LIMIT};
    LW_CLEANUP(lw_batch_clear) lw_batch b = {0};
    int count[SIDE * SIDE] = {0};
    ok(lw_batch_init(&b, 50, 16, 16, 3));
    for (int64_t s = 0; s < 10; s++) {
        lw_loader_fill(set, &o, s, &b);
        for (int i = 0; i < 50; i++) {
            const uint8_t *px = set->pixels + b.index[i] * 768;
            int found = 0;
            for (int k = 0; k < SIDE * SIDE; k++)
                if (moved(b.images + i * 768, px, k / SIDE - LIMIT, k % SIDE - LIMIT)) {
                    count[k]++;
                    found++;
                }
            assert_int_equal(found, 1);
        }
    }
    for (int k = 0; k < SIDE * SIDE; k++) /* 20 of 500 each, give or take 4 */
        assert_in_range(count[k], 4, 40);
}

static void an_epoch_has_every_row_once(void **state)
{
    (void)state;
    lw_loader_opts o = {.batch_size = 33, .seed = 2};
    int seen[2][100] = {{0}};
    int same_place = 0;
    int64_t order[2][99];
    for (int64_t g = 0; g < 198; g++) {
        int64_t epoch, row;
        lw_loader_place(set, &o, g, &epoch, &row);
        assert_int_equal(epoch, g / 99); /* one row of 100 is dropped */
        seen[epoch][row]++;
        order[epoch][g % 99] = row;
    }
    for (int e = 0; e < 2; e++)
        for (int r = 0; r < 100; r++)
            assert_in_range(seen[e][r], 0, 1);
    for (int i = 0; i < 99; i++)
        same_place += order[0][i] == order[1][i];
    assert_in_range(same_place, 0, 10);
    o.batch_size = 250; /* fewer rows than a batch: nothing is dropped, batches cross epochs */
    int count[100] = {0};
    for (int64_t g = 0; g < 500; g++) {
        int64_t epoch, row;
        lw_loader_place(set, &o, g, &epoch, &row);
        count[row]++;
    }
    for (int r = 0; r < 100; r++)
        assert_int_equal(count[r], 5);
}

static void seeds_differ_and_repeat(void **state)
{
    (void)state;
    lw_loader_opts o = {.batch_size = 64, .seed = 1};
    LW_CLEANUP(lw_batch_clear) lw_batch a = {0};
    LW_CLEANUP(lw_batch_clear) lw_batch b = {0};
    ok(lw_batch_init(&a, 64, 16, 16, 3));
    ok(lw_batch_init(&b, 64, 16, 16, 3));
    lw_loader_fill(set, &o, 3, &a);
    lw_loader_fill(set, &o, 3, &b);
    same_batch(&a, &b);
    o.seed = 2;
    lw_loader_fill(set, &o, 3, &b);
    assert_memory_not_equal(a.index, b.index, 64 * sizeof *a.index);
    lw_loader *l = NULL;
    o.batch_size = 0;
    fails(lw_loader_new(set, &o, &l), LW_EUSAGE, "batch size 0");
}

static void a_loader_can_be_dropped_at_any_time(void **state)
{
    (void)state;
    lw_loader_opts o = {.batch_size = 8, .seed = 1};
    for (int n = 0; n < 5; n++) {
        LW_CLEANUP(lw_loader_free) lw_loader *l = NULL;
        const lw_batch *b;
        ok(lw_loader_new(set, &o, &l));
        for (int i = 0; i < n; i++)
            ok(lw_loader_next(l, &b));
    }
}

/* ---- class draws ---- */

static void groups_are_distinct_and_rows_are_theirs(void **state)
{
    (void)state;
    lw_class_opts o = {.seed = 9, .groups = 8, .positives = 6, .unconditional = 5};
    LW_CLEANUP(lw_class_sampler_free) lw_class_sampler *s = NULL;
    ok(lw_class_sampler_new(set, &o, &s));
    int32_t classes[8], again[8], histogram[10] = {0};
    int64_t pos[8 * 6], pos_again[8 * 6], any[8 * 5];
    for (int64_t step = 0; step < 500; step++) {
        lw_class_sampler_draw(s, step, classes, pos, any);
        for (int g = 0; g < 8; g++) {
            histogram[classes[g]]++;
            for (int h = 0; h < g; h++)
                assert_int_not_equal(classes[g], classes[h]);
            for (int p = 0; p < 6; p++) {
                assert_int_equal(set->labels[pos[g * 6 + p]], classes[g]);
                for (int q = 0; q < p; q++)
                    assert_int_not_equal(pos[g * 6 + p], pos[g * 6 + q]);
            }
            for (int u = 0; u < 5; u++)
                assert_in_range(any[g * 5 + u], 0, 99);
        }
    }
    for (int c = 0; c < 10; c++)
        assert_in_range(histogram[c], 340, 460); /* expected 400 */
    lw_class_sampler_draw(s, 123, classes, pos, NULL);
    lw_class_sampler_draw(s, 124, again, pos_again, NULL);
    assert_memory_not_equal(pos, pos_again, sizeof pos);
    lw_class_sampler_draw(s, 123, again, pos_again, NULL);
    assert_memory_equal(classes, again, sizeof classes);
    assert_memory_equal(pos, pos_again, sizeof pos);
    int64_t n;
    const int64_t *rows = lw_class_sampler_rows(s, 3, &n);
    assert_int_equal(n, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(rows[i], 10 * i + 3);
}

static void more_than_there_is_repeats_evenly(void **state)
{
    (void)state;
    lw_class_opts o = {.seed = 9, .groups = 23, .positives = 25};
    LW_CLEANUP(lw_class_sampler_free) lw_class_sampler *s = NULL;
    ok(lw_class_sampler_new(set, &o, &s));
    int32_t classes[23], histogram[10] = {0};
    static int64_t pos[23 * 25];
    lw_class_sampler_draw(s, 7, classes, pos, NULL);
    for (int g = 0; g < 23; g++)
        histogram[classes[g]]++;
    for (int c = 0; c < 10; c++)
        assert_in_range(histogram[c], 2, 3);
    int count[100] = {0};
    for (int p = 0; p < 25; p++)
        count[pos[p]]++;
    for (int r = 0; r < 10; r++)
        assert_in_range(count[10 * r + classes[0]], 2, 3);
}

static void frequency_rule_follows_the_labels(void **state)
{
    (void)state;
    /* A lopsided view: rows 0..99 with labels 0 except every tenth, which is 5. */
    int32_t labels[100];
    lw_dataset lopsided = *set;
    for (int i = 0; i < 100; i++)
        labels[i] = i % 10 ? 0 : 5;
    lopsided.labels = labels;
    lw_class_opts o = {.seed = 4, .groups = 10, .positives = 2, .rule = LW_CLASS_FREQUENCY};
    LW_CLEANUP(lw_class_sampler_free) lw_class_sampler *s = NULL;
    ok(lw_class_sampler_new(&lopsided, &o, &s));
    int five = 0;
    for (int64_t step = 0; step < 400; step++) {
        int32_t classes[10];
        lw_class_sampler_draw(s, step, classes, NULL, NULL);
        for (int g = 0; g < 10; g++) {
            assert_true(classes[g] == 0 || classes[g] == 5);
            five += classes[g] == 5;
        }
    }
    assert_in_range(five, 320, 480);
    lw_class_sampler_free(&s);
    o.rule = LW_CLASS_DISTINCT; /* classes without rows are never drawn */
    o.groups = 2;
    ok(lw_class_sampler_new(&lopsided, &o, &s));
    int32_t two[2];
    lw_class_sampler_draw(s, 0, two, NULL, NULL);
    assert_int_equal(two[0] + two[1], 5);
    lw_class_sampler_free(&s);
    o.ignore_labels = true;
    o.groups = 1;
    o.positives = 100;
    ok(lw_class_sampler_new(&lopsided, &o, &s));
    int64_t pos[100];
    int count[100] = {0};
    lw_class_sampler_draw(s, 0, two, pos, NULL);
    assert_int_equal(two[0], 0);
    for (int i = 0; i < 100; i++)
        count[pos[i]]++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(count[i], 1);
    o.positives = 0;
    lw_class_sampler *none = NULL;
    fails(lw_class_sampler_new(set, &o, &none), LW_EUSAGE, "0 positives");
}

static void bytes_go_there_and_back(void **state)
{
    (void)state;
    uint8_t all[256], back[256];
    float f[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    lw_data_from_u8(all, 256, f);
    assert_true(f[0] == -1.0f && f[255] == 1.0f);
    lw_data_to_u8(f, 256, back);
    assert_memory_equal(all, back, 256);
    const float odd[4] = {-7, 7, NAN, 0};
    lw_data_to_u8(odd, 4, back);
    assert_int_equal(back[0], 0);
    assert_int_equal(back[1], 255);
    assert_int_equal(back[2], 0);
    assert_int_equal(back[3], 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_gives_the_pure_function),
        cmocka_unit_test(images_are_the_rows_mirrored_or_not),
        cmocka_unit_test(images_are_the_rows_moved),
        cmocka_unit_test(an_epoch_has_every_row_once),
        cmocka_unit_test(seeds_differ_and_repeat),
        cmocka_unit_test(a_loader_can_be_dropped_at_any_time),
        cmocka_unit_test(groups_are_distinct_and_rows_are_theirs),
        cmocka_unit_test(more_than_there_is_repeats_evenly),
        cmocka_unit_test(frequency_rule_follows_the_labels),
        cmocka_unit_test(bytes_go_there_and_back),
    };
    return cmocka_run_group_tests_name("data loader", tests, open_set, close_set);
}
