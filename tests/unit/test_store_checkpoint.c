/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: exact, whole or absent, found again, pruned; and damaged ones. */
#include "unit/test_store_util.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ir/ir.h"
#include "formats/formats.h"
#include "store/store.h"

/* A store whose five slabs all differ, also in their low bits. */
static lw_store *busy_store(uint64_t seed)
{
    lw_store *s = small_store(false);
    lw_store_init(s, seed);
    for (int32_t i = 0; i < lw_store_count(s); i++)
        for (int k = LW_SLAB_EMA; k < LW_SLABS; k++) {
            lw_store_entry e = *lw_store_at(s, i);
            e.init = (lw_init){LW_INIT_NORMAL, 1e-3f};
            e.hash += (uint64_t)k;
            lw_store_init_entry(&e, seed, lw_store_edit(s, i, (lw_slab)k));
        }
    return s;
}

static json_t *config(void)
{
    return json_pack("{s:s}", "_class_name", "Test");
}

static int save_as(const char *run, const lw_store *s, int64_t step, const char *weights,
                   bool averaged)
{
    LW_CLEANUP(lw_json_drop) json_t *c = config();
    LW_CLEANUP(lw_json_drop)
    json_t *extra = json_pack("{s:i, s:[f, f]}", "epoch", 3, "rates", 0.1, 1e-300);
    const lw_checkpoint k = {.step = step,
                             .seed = 0xfedcba9876543210u,
                             .images = 128 * step,
                             .train_seconds = 1.5,
                             .isa = "avx2",
                             .config = c,
                             .extra = extra,
                             .weights = weights,
                             .averaged = averaged};
    return lw_checkpoint_save(run, s, &k);
}

static int save(const char *run, const lw_store *s, int64_t step, const char *weights)
{
    return save_as(run, s, step, weights, false);
}

static const char *run_dir(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

static void expect_latest(const char *run, const char *step)
{
    lw_str dir = {0};
    assert_ok(lw_checkpoint_latest(run, &dir));
    assert_true(lw_str_ends(lw_str_c(&dir), step));
    lw_str_clear(&dir);
}

static void check_round_trip(const char *weights)
{
    const char *run = run_dir(weights ? "hf" : "a");
    lw_store *s = busy_store(1), *t = small_store(false);
    lw_checkpoint k = {0};
    lw_str dir = {0};
    assert_ok(save(run, s, 20, weights));
    assert_ok(lw_checkpoint_latest(run, &dir));
    assert_ok(lw_checkpoint_load(lw_str_c(&dir), t, &k));
    assert_true(k.step == 20 && k.seed == 0xfedcba9876543210u && k.images == 2560 &&
                k.train_seconds == 1.5);
    assert_string_equal(k.isa, "avx2");
    assert_int_equal(json_integer_value(json_object_get(k.extra, "epoch")), 3);
    assert_true(json_real_value(json_array_get(json_object_get(k.extra, "rates"), 1)) == 1e-300);
    assert_string_equal(json_string_value(json_object_get(k.config, "_class_name")), "Test");
    static const lw_slab slabs[] = {LW_SLAB_PARAM, LW_SLAB_EMA, LW_SLAB_M, LW_SLAB_V};
    for (size_t i = 0; i < LW_COUNT(slabs); i++) {
        int64_t n;
        const float *a = lw_store_slab(s, slabs[i], &n), *b = lw_store_slab(t, slabs[i], NULL);
        assert_memory_equal(a, b, sizeof(float) * (size_t)n);
    }
    lw_checkpoint_clear(&k);
    lw_checkpoint_clear(&k);
    lw_str_clear(&dir);
    lw_store_free(&s);
    lw_store_free(&t);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(NULL);
    check_round_trip(LW_WEIGHTS_HF);
}

static void test_layout(void **state)
{
    static const char *const files[] = {"config.json",           LW_WEIGHTS_DIFFUSERS,
                                        "ema/config.json",       ("ema/" LW_WEIGHTS_DIFFUSERS),
                                        "optimizer.safetensors", "state.json"};
    lw_store *s = busy_store(1);
    char path[256], target[64] = "";
    (void)state;
    assert_ok(save(run_dir("layout"), s, 10000, NULL));
    for (size_t i = 0; i < LW_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/checkpoints/step_0010000/%s", run_dir("layout"), files[i]);
        assert_true(lw_path_exists(path));
    }
    snprintf(path, sizeof path, "%s/checkpoints/last", run_dir("layout"));
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_string_equal(target, "step_0010000");
    lw_store_free(&s);
}

static void test_latest_and_leftovers(void **state)
{
    const char *run = run_dir("b");
    lw_store *s = busy_store(1);
    lw_str dir = {0};
    char path[256], best[256], **names = NULL;
    size_t n = 0;
    (void)state;
    assert_fails(LW_EIO, "no such run directory", lw_checkpoint_latest(run, &dir));
    assert_ok(save(run, s, 100, NULL));
    assert_ok(save(run, s, 99, NULL)); /* saved later: `last` says so */
    expect_latest(run, "step_0000099");
    snprintf(path, sizeof path, "%s/checkpoints/last", run);
    assert_int_equal(unlink(path), 0);
    expect_latest(run, "step_0000100");
    /* What an interrupted save leaves: removed by the next one, never taken for a checkpoint. */
    snprintf(best, sizeof best, "%s/best/.tmp_best.0123456789abcdef", run);
    assert_ok(lw_mkdirs(best));
    snprintf(path, sizeof path, "%s/checkpoints/.tmp_step_0000300/ema", run);
    assert_ok(lw_mkdirs(path));
    snprintf(path, sizeof path, "%s/checkpoints/step_0000200", run); /* a half one from elsewhere */
    assert_ok(lw_mkdirs(path));
    expect_latest(run, "step_0000100");
    assert_ok(save(run, s, 101, NULL));
    assert_false(lw_path_exists(best));
    expect_latest(run, "step_0000101");
    snprintf(path, sizeof path, "%s/checkpoints", run);
    assert_ok(lw_list_dir(path, &names, &n));
    for (size_t i = 0; i < n; i++)
        assert_false(lw_str_starts(names[i], ".tmp"));
    lw_list_free(&names, n);
    lw_store_free(&s);
}

static void test_same_step_again(void **state)
{
    const char *run = run_dir("c");
    lw_store *s = busy_store(1), *t = busy_store(2), *u = small_store(false);
    lw_checkpoint k = {0};
    lw_str dir = {0};
    (void)state;
    assert_ok(save(run, s, 5, NULL));
    assert_ok(save(run, t, 5, NULL));
    assert_ok(lw_checkpoint_latest(run, &dir));
    assert_ok(lw_checkpoint_load(lw_str_c(&dir), u, &k));
    assert_true(lw_store_hash(u, LW_SLAB_V) == lw_store_hash(t, LW_SLAB_V));
    lw_checkpoint_clear(&k);
    lw_str_clear(&dir);
    lw_store_free(&s);
    lw_store_free(&t);
    lw_store_free(&u);
}

static int count_steps(const char *run)
{
    char path[256], **names = NULL;
    size_t n = 0;
    int steps = 0;
    snprintf(path, sizeof path, "%s/checkpoints", run);
    assert_ok(lw_list_dir(path, &names, &n));
    for (size_t i = 0; i < n; i++)
        steps += lw_str_starts(names[i], "step_");
    lw_list_free(&names, n);
    return steps;
}

static void test_prune(void **state)
{
    const char *run = run_dir("d");
    lw_store *s = busy_store(1);
    (void)state;
    for (int64_t step = 10; step <= 50; step += 10)
        assert_ok(save(run, s, step, NULL));
    assert_ok(lw_checkpoint_prune(run, 0));
    assert_int_equal(count_steps(run), 5);
    assert_ok(lw_checkpoint_prune(run, 3));
    assert_int_equal(count_steps(run), 3);
    expect_latest(run, "step_0000050");
    assert_ok(save(run, s, 7, NULL)); /* `last` is the lowest step now */
    assert_ok(lw_checkpoint_prune(run, 1));
    assert_int_equal(count_steps(run), 2); /* the newest number and the one `last` names */
    expect_latest(run, "step_0000007");
    lw_store_free(&s);
}

/* What is no step of ours stays, what `best` names too; half of a removal is gone on with. */
static void test_prune_among_others(void **state)
{
    static const char *const others[] = {"step_1", "step_00000031", "step_0000031x"};
    const char *run = run_dir("p");
    lw_store *s = busy_store(1);
    char path[256], old[256];
    (void)state;
    for (int64_t step = 31; step <= 33; step++)
        assert_ok(save(run, s, step, NULL));
    snprintf(path, sizeof path, "%s/checkpoints/best", run);
    assert_int_equal(symlink("step_0000032", path), 0);
    for (size_t i = 0; i < LW_COUNT(others); i++) {
        snprintf(path, sizeof path, "%s/checkpoints/%s", run, others[i]);
        assert_ok(lw_mkdirs(path));
    }
    snprintf(path, sizeof path, "%s/checkpoints/.tmp_old_step_0000031/ema", run);
    assert_ok(lw_mkdirs(path));
    snprintf(old, sizeof old, "%s/checkpoints/.tmp_old_step_0000031", run);
    assert_ok(lw_checkpoint_prune(run, 1));
    assert_int_equal(count_steps(run), 2 + LW_COUNT(others));
    assert_false(lw_path_exists(old));
    snprintf(path, sizeof path, "%s/checkpoints/step_0000032/state.json", run);
    assert_true(lw_path_exists(path));
    expect_latest(run, "step_0000033");
    snprintf(path, sizeof path, "%s/checkpoints/step_0000033/state.json", run);
    assert_int_equal(unlink(path), 0); /* no longer whole */
    expect_latest(run, "step_0000032");
    lw_store_free(&s);
}

/* Without an average ema/ would be the weights again: it is written where one is asked for, or is there. */
static void test_no_average(void **state)
{
    const char *run = run_dir("j");
    lw_store *s = busy_store(1);
    char path[256], ema[272];
    (void)state;
    lw_store_start_ema(s);
    snprintf(path, sizeof path, "%s/checkpoints/step_0000001", run);
    snprintf(ema, sizeof ema, "%s/ema", path);
    for (int averaged = 0; averaged < 2; averaged++) {
        lw_store *t = busy_store(2);
        lw_checkpoint k = {0};
        assert_ok(save_as(run, s, 1, LW_WEIGHTS_HF, averaged));
        assert_int_equal(lw_path_exists(ema), averaged);
        assert_ok(lw_checkpoint_load(path, t, &k));
        for (int i = 0; i < LW_SLABS; i++)
            assert_true(i == LW_SLAB_GRAD ||
                        lw_store_hash(s, (lw_slab)i) == lw_store_hash(t, (lw_slab)i));
        lw_checkpoint_clear(&k);
        lw_store_free(&t);
    }
    lw_store_free(&s);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void expect_load(const char *run, int code, const char *part)
{
    lw_store *t = small_store(false);
    lw_checkpoint k = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/checkpoints/step_0000001", run);
    assert_fails(code, part, lw_checkpoint_load(path, t, &k));
    assert_null(k.config);
    lw_store_free(&t);
}

static void test_damaged(void **state)
{
    const char *run = run_dir("e");
    lw_store *s = busy_store(1);
    char path[256], *bytes = NULL;
    size_t n = 0;
    (void)state;
    assert_ok(save(run, s, 1, NULL));
    snprintf(path, sizeof path, "%s/checkpoints/step_0000001/optimizer.safetensors", run);
    assert_ok(lw_file_read(path, 0, &bytes, &n));
    put_file(path, bytes, n - 4);
    expect_load(run, LW_EFORMAT, "optimizer.safetensors");
    bytes[n - 100] ^= 1; /* one bit of a moment */
    put_file(path, bytes, n);
    expect_load(run, LW_EFORMAT, "damaged, the v values are not the ones that were saved");
    assert_int_equal(unlink(path), 0);
    expect_load(run, LW_EFORMAT, "not a whole checkpoint");
    lw_free(&bytes);
    assert_ok(save(run, s, 1, NULL));
    snprintf(path, sizeof path, "%s/checkpoints/step_0000001/ema", run);
    assert_ok(lw_remove_tree(path));
    expect_load(run, LW_EFORMAT, "damaged, the ema values are not the ones that were saved");
    assert_ok(save(run, s, 1, NULL));
    snprintf(path, sizeof path, "%s/checkpoints/step_0000001/state.json", run);
    put_file(path, "{\"step\": 1", 10);
    expect_load(run, LW_EFORMAT, "state.json");
    static const struct {
        const char *text, *says;
    } no_training[] = {
        {"{\"step\": -1, \"seed\": 0, \"images\": 0}", "'step' is -1, must be 0 to"},
        {"{\"step\": 4611686018427387904, \"seed\": 0, \"images\": 0}", "'step' is 46116860"},
        {"{\"step\": 1, \"seed\": 0, \"images\": 9223372036854775807}", "'images' is 92233720"},
        {"{\"step\": 1, \"seed\": 0, \"images\": 2, \"train_seconds\": -1}", "'train_seconds' is"},
        {"{\"step\": 1, \"seed\": 0, \"images\": 2, \"train_seconds\": 1e308}", "must be 0 to"},
        {"{\"step\": 1, \"seed\": 0, \"images\": 2, \"extra\": [1]}", "'extra' must be an object"}};
    for (size_t i = 0; i < LW_COUNT(no_training); i++) {
        put_file(path, no_training[i].text, strlen(no_training[i].text));
        expect_load(run, LW_EFORMAT, no_training[i].says);
    }
    put_file(path, "{\"step\": 1, \"seed\": 0}", 22);
    expect_load(run, LW_EFORMAT, "images");
    lw_store_free(&s);
}

static void test_other_model(void **state)
{
    const char *run = run_dir("f");
    lw_store *s = busy_store(1), *t = NULL;
    lw_checkpoint k = {0};
    char path[256];
    (void)state;
    assert_ok(save(run, s, 1, NULL));
    snprintf(path, sizeof path, "%s/checkpoints/step_0000001", run);
    assert_ok(lw_store_new(false, &t));
    declare(t, "norm.weight", lw_type_of(LW_F32, 1, 9), (lw_init){0});
    assert_ok(lw_store_fix(t));
    assert_fails(LW_EFORMAT, "(file [7], model [9])", lw_checkpoint_load(path, t, &k));
    assert_fails(LW_EIO, "no such checkpoint", lw_checkpoint_load(run_dir("nowhere"), s, &k));
    lw_store_free(&s);
    lw_store_free(&t);
}

static void test_cannot_write(void **state)
{
    lw_store *s = busy_store(1), *frozen = small_store(true);
    (void)state;
    put_file(in_scratch("file"), "x", 1);
    assert_fails(LW_EIO, "file", save(in_scratch("file"), s, 1, NULL));
    assert_fails(LW_EUSAGE, "only a trained store", save(run_dir("g"), frozen, 1, NULL));
    const char *run =
        run_dir("h"); /* an obstacle where a file must go: nothing of the older save is lost */
    char path[256];
    assert_ok(save(run, s, 1, NULL));
    assert_fails(LW_EIO, "", save(run, s, 2, "no/such/place.safetensors"));
    expect_latest(run, "step_0000001");
    snprintf(path, sizeof path, "%s/checkpoints/.tmp_step_0000002", run);
    assert_false(lw_path_exists(path));
    lw_store_free(&s);
    lw_store_free(&frozen);
}

/* ---- SOURCE ---------------------------------------------------------------------------------- */

static void expect_model(const char *source, bool ema, lw_place_kind kind, const char *end)
{
    lw_model_place p = {0};
    bool alone = kind == LW_PLACE_FILE || kind == LW_PLACE_WEIGHTS;
    assert_ok(lw_model_find(source, ema, &p));
    assert_int_equal(p.kind, kind);
    if (!lw_str_ends(lw_str_c(&p.path), end))
        fail_msg("%s -> %s, wanted ...%s", source, lw_str_c(&p.path), end);
    if (alone)
        assert_null(p.config);
    else
        assert_string_equal(json_string_value(json_object_get(p.config, "_class_name")), "Test");
    lw_model_place_clear(&p);
    lw_model_place_clear(&p);
}

static void test_source(void **state)
{
    const char *run = run_dir("i");
    lw_store *s = busy_store(1);
    lw_str dir = {0};
    char path[256];
    LW_CLEANUP(lw_json_drop) json_t *c = config();
    (void)state;
    assert_ok(save(run, s, 1, NULL));
    expect_model(run, true, LW_PLACE_RUN, "step_0000001/ema");
    expect_model(run, false, LW_PLACE_RUN, "step_0000001");
    snprintf(path, sizeof path, "%s/checkpoints/last", run);
    expect_model(path, true, LW_PLACE_MODEL, "last/ema");
    snprintf(path, sizeof path, "%s/model", run);
    assert_ok(lw_model_folder_save(path, s, LW_SLAB_PARAM, c, LW_WEIGHTS_HF));
    expect_model(path, true, LW_PLACE_MODEL, "/model");
    assert_ok(lw_model_weights_find(path, &dir));
    assert_true(lw_str_ends(lw_str_c(&dir), "model/" LW_WEIGHTS_HF));
    expect_model(lw_str_c(&dir), true, LW_PLACE_FILE, "model/" LW_WEIGHTS_HF);
    char other[256];
    snprintf(path, sizeof path, "%s/model/config.json", run);
    snprintf(other, sizeof other, "%s/model/open_clip_config.json", run);
    assert_int_equal(rename(path, other), 0);
    snprintf(path, sizeof path, "%s/model", run);
    expect_model(path, true, LW_PLACE_MODEL, "/model");
    assert_int_equal(unlink(other), 0);
    expect_model(path, true, LW_PLACE_WEIGHTS, "/model");
    snprintf(other, sizeof other, "%s/model/pytorch_model.bin", run);
    assert_int_equal(rename(lw_str_c(&dir), other), 0);
    expect_model(path, true, LW_PLACE_WEIGHTS, "/model");
    assert_ok(lw_model_weights_find(path, &dir));
    assert_true(lw_str_ends(lw_str_c(&dir), "model/pytorch_model.bin"));
    snprintf(path, sizeof path, "%s/pipe/unet", run);
    assert_ok(lw_model_folder_save(path, s, LW_SLAB_PARAM, c, NULL));
    snprintf(path, sizeof path, "%s/pipe/model_index.json", run);
    put_file(path, "{}", 2);
    snprintf(path, sizeof path, "%s/pipe", run);
    expect_model(path, true, LW_PLACE_PIPELINE, "/pipe/unet");
    lw_str_clear(&dir);
    lw_store_free(&s);
}

static void test_no_source(void **state)
{
    lw_model_place p = {0};
    lw_str path = {0};
    (void)state;
    assert_fails(LW_EIO, "no such run", lw_model_find(run_dir("none"), true, &p));
    assert_fails(LW_EFORMAT, "neither a run directory", lw_model_find(scratch, true, &p));
    assert_fails(LW_EFORMAT, "no weights", lw_model_weights_find(scratch, &path));
    put_file(in_scratch("config.json"), "[", 1);
    assert_fails(LW_EFORMAT, "config.json", lw_model_find(scratch, true, &p));
    assert_int_equal(p.path.len, 0); /* untouched */
    lw_str_clear(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_latest_and_leftovers),
        cmocka_unit_test(test_same_step_again),
        cmocka_unit_test(test_no_average),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_prune_among_others),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_cannot_write),
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_no_source),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
