/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks from the folder of one library to that of another, and back to the bit: the small networks
 * of tests/golden/data. tools/convert_check.py opens such folders with the libraries themselves.
 */
#include "golden/golden.h"

#include "base/base.h"
#include "formats/formats.h"
#include "jobs/convert/convert_job.h"
#include "store/store.h"

static char scratch[64];

static lw_st_file *open_weights(const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_st_file *f = NULL;
    assert_ok(lw_model_weights_find(dir, &path));
    assert_ok(lw_st_open(lw_str_c(&path), &f));
    return f;
}

static int library_of(const char *word, size_t n)
{
    static const char *const words[] = {"hf", "timm", "open_clip"};
    int k = 0;
    while (strlen(words[k]) != n || strncmp(words[k], word, n) != 0)
        k++;
    return k;
}

static int convert(const char *from, int to, int type, const char *dir, lw_convert_result *r)
{
    const lw_convert_config c = {.source = from, .output_dir = dir, .to = to, .type = type};
    return lw_job_convert(&c, r);
}

/* Is one of them WRAPPER.other? */
static bool is_wrapped(const char *a, const char *b)
{
    const char *longer = strlen(a) > strlen(b) ? a : b, *other = longer == a ? b : a;
    size_t n = strlen(longer) - strlen(other);
    return n > 0 && longer[n - 1] == '.' && strcmp(longer + n, other) == 0;
}

/* Every tensor of `last` stands in `first` with the same bits; how many. A prefix that wraps a network
 * in one of several tasks may be missing in either. */
static size_t compare(const char *first, const char *last, const char *but)
{
    lw_st_file *a = open_weights(first), *b = open_weights(last);
    size_t n = 0;
    for (size_t i = 0; i < lw_st_count(b); i++) {
        const lw_st_tensor *t = lw_st_at(b, i), *was = lw_st_find(a, t->name);
        if (lw_str_ends(t->name, "num_batches_tracked") || (but && strstr(but, t->name)))
            continue;
        for (size_t k = 0; !was && k < lw_st_count(a); k++)
            if (is_wrapped(lw_st_at(a, k)->name, t->name))
                was = lw_st_at(a, k);
        if (!was)
            fail_msg("%s: '%s' was not there", last, t->name);
        assert_int_equal(was->type, t->type);
        assert_int_equal(was->bytes, t->bytes);
        assert_int_equal(was->rank, t->rank);
        if (memcmp(was->data, t->data, t->bytes) != 0)
            fail_msg("%s: '%s' is another", last, t->name);
        n++;
    }
    lw_st_close(&a);
    lw_st_close(&b);
    return n;
}

typedef struct trip {
    const char *file;  /* of tests/golden/data */
    const char *steps; /* libraries; the last is the file's */
    size_t tensors;    /* that come back */
    size_t left_out;   /* in the first step */
    const char *but;   /* those that cannot come back; NULL: none */
} trip;

static const trip trips[] = {
    {"network_clip", "timm open_clip hf", 40, 21, NULL},
    {"network_clip", "open_clip timm hf", 40, 21, NULL},
    {"network_clip_vision", "timm hf", 39, 0, NULL},
    {"network_clip_open", "hf timm open_clip", 32, 17, NULL},
    {"network_clip_open_gelu", "timm hf open_clip", 32, 17, NULL},
    {"network_siglip", "timm hf", 48, 24, NULL},
    {"network_siglip_vision", "timm hf", 48, 0, NULL},
    {"network_siglip_timm", "hf timm", 42, 0, NULL},
    {"network_dinov2", "timm hf", 42, 3, NULL},
    {"network_dinov2", "hf", 44, 1, NULL},
    {"network_dinov2_oblong", "timm hf", 42, 1, NULL},
    {"network_dinov2_gated", "timm hf", 36, 1, NULL},
    {"network_dinov2_registers", "timm hf", 41, 1,
     "embeddings.cls_token embeddings.position_embeddings"},
    {"network_dinov2_timm", "hf timm", 34, 0, NULL},
    {"network_dinov2_timm_registers", "hf timm", 35, 0, NULL},
    {"network_resnet_timm", "hf timm", 102, 0, NULL},
    {"network_mobilenet_timm", "hf timm", 262, 0, NULL},
    {"network_efficientnet_lite_timm", "timm", 247, 0, NULL},
    {"network_mobilenet_hf", "timm hf", 262, 0, NULL},
    {"network_mobilenet_hf_body", "timm hf", 260, 0, NULL},
};

static void test_trip(void **state)
{
    const trip *t = *state;
    char first[128], from[128], to[128];
    lw_st_file *f = golden_open(t->file);
    int number = (int)(t - trips);
    snprintf(first, sizeof first, "%s/%d_first", scratch, number);
    golden_write_model(f, first);
    lw_st_close(&f);
    snprintf(from, sizeof from, "%s", first);
    int step = 0;
    for (const char *at = t->steps; *at; at += strcspn(at, " "), at += *at == ' ', step++) {
        lw_convert_result r;
        snprintf(to, sizeof to, "%s/%d_%d", scratch, number, step);
        assert_ok(convert(from, library_of(at, strcspn(at, " ")), LW_CONVERT_KEEP, to, &r));
        if (step == 0)
            assert_int_equal(json_array_size(r.left_out), t->left_out);
        lw_convert_result_clear(&r);
        snprintf(from, sizeof from, "%s", to);
    }
    assert_int_equal(compare(first, from, t->but), t->tensors);
}

/* ---- what a library has no words for --------------------------------------------------------- */

static void test_refused(void **state)
{
    static const struct {
        const char *file;
        lw_library to;
        const char *part;
    } cases[] = {
        {"network_clip_timm", LW_LIBRARY_HF, "a projection with a bias that is not zero"},
        {"network_clip_vision", LW_LIBRARY_OPEN_CLIP, "a network without a projection"},
        {"network_siglip", LW_LIBRARY_OPEN_CLIP, "sizes that timm does not register"},
        {"network_dinov2", LW_LIBRARY_OPEN_CLIP, "DINOv2, which has no text tower"},
        {"network_resnet_bottleneck", LW_LIBRARY_TIMM, "this number of stages"},
        {"network_resnet_timm", LW_LIBRARY_OPEN_CLIP, "a ResNet"},
        {"network_mobilenet_torchvision", LW_LIBRARY_HF, "a MobileNetV2 of these widths"},
        /* whose first blocks are not the same there */
        {"network_mobilenet_hf_narrow", LW_LIBRARY_TIMM, "a MobileNetV2 of these widths"},
        {"network_efficientnet_lite_both", LW_LIBRARY_HF, "an EfficientNet-Lite"},
        {"network_taesd_encoder", LW_LIBRARY_HF,
         "is not converted; families that are: resnet, mobilenet_v2, efficientnet_lite, clip, "
         "siglip, dinov2"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        char dir[128], to[128];
        lw_convert_result r;
        lw_st_file *f = golden_open(cases[i].file);
        snprintf(dir, sizeof dir, "%s/r%zu", scratch, i);
        snprintf(to, sizeof to, "%s/to", scratch);
        golden_write_model(f, dir);
        lw_st_close(&f);
        int rc = convert(dir, (int)cases[i].to, LW_CONVERT_KEEP, to, &r);
        if (rc != LW_EUNSUPPORTED || !strstr(lw_errmsg(), cases[i].part))
            fail_msg("%s: code %d, '%s'", cases[i].file, rc, lw_errmsg());
        assert_false(lw_path_exists(to));
    }
}

/* ---- types ----------------------------------------------------------------------------------- */

static lw_elem type_of(const char *dir, const char *name)
{
    lw_st_file *f = open_weights(dir);
    lw_elem e = lw_st_find(f, name)->type;
    lw_st_close(&f);
    return e;
}

/* bf16 of the source stays bf16 with the same bits; a value too large for f16 is refused. */
static void test_types(void **state)
{
    char first[128], a[128], b[128], path[160];
    lw_convert_result r;
    lw_st_file *f = golden_open("network_clip_vision");
    const char *name = "vision_model.pre_layrnorm.weight";
    (void)state;
    snprintf(first, sizeof first, "%s/types", scratch);
    golden_write_model(f, first);
    lw_st_close(&f);
    snprintf(a, sizeof a, "%s/bf16", scratch);
    assert_ok(convert(first, LW_LIBRARY_HF, LW_CONVERT_BF16, a, &r));
    assert_int_equal(r.type, LW_ELEM_BF16);
    lw_convert_result_clear(&r);
    snprintf(b, sizeof b, "%s/kept", scratch);
    assert_ok(convert(a, LW_LIBRARY_HF, LW_CONVERT_KEEP, b, &r));
    lw_convert_result_clear(&r);
    assert_int_equal(type_of(b, name), LW_ELEM_BF16);
    assert_true(compare(a, b, NULL) > 30);
    assert_int_equal(convert(a, LW_LIBRARY_HF, LW_CONVERT_F32, b, &r), LW_EUSAGE);
    /* one weight of 1e6 */
    lw_network *n = NULL;
    assert_ok(lw_network_open(first, false, &n));
    lw_store_edit(n->store, 0, LW_SLAB_PARAM)[0] = 1e6f;
    lw_store_touch(n->store, LW_SLAB_PARAM);
    snprintf(path, sizeof path, "%s/%s", first, LW_WEIGHTS_HF);
    assert_ok(
        lw_store_save_as(n->store, LW_SLAB_PARAM, path, n->def->namings, LW_ELEM_F32, NULL, 0));
    lw_network_close(&n);
    snprintf(b, sizeof b, "%s/half", scratch);
    int rc = convert(first, LW_LIBRARY_HF, LW_CONVERT_F16, b, &r);
    assert_int_equal(rc, LW_EUNSUPPORTED);
    assert_non_null(strstr(lw_errmsg(), "do not fit into F16"));
    assert_false(lw_path_exists(b));
}

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/lw_convert_XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    return lw_remove_tree(scratch);
}

int main(void)
{
    struct CMUnitTest tests[LW_COUNT(trips) + 2] = {cmocka_unit_test(test_refused),
                                                    cmocka_unit_test(test_types)};
    for (size_t i = 0; i < LW_COUNT(trips); i++)
        tests[2 + i] = (struct CMUnitTest){
            .name = trips[i].file, .test_func = test_trip, .initial_state = (void *)&trips[i]};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
