/* SPDX-License-Identifier: Apache-2.0 */
/* formats: JSON and YAML trees. */
#include "unit/test_formats_util.h"

#include <math.h>

#include "base/base.h"
#include "formats/formats.h"

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    assert_ok(lw_json_parse("t.json", text, strlen(text), &v));
    return v;
}

static json_t *yaml(const char *text)
{
    json_t *v = NULL;
    assert_ok(lw_yaml_parse("t.yaml", text, strlen(text), &v));
    return v;
}

static void json_limits_hold(void **state)
{
    (void)state;
    json_t *v = NULL;
    assert_fails(LW_EFORMAT, "deeper than 64", lw_json_load(CORPUS "json/deep.json", &v));
    assert_fails(LW_EFORMAT, "duplicate", lw_json_load(CORPUS "json/dup.json", &v));
    assert_fails(LW_EFORMAT, "end of file expected", lw_json_load(CORPUS "json/tail.json", &v));
    assert_fails(LW_EFORMAT, "json/utf8.json:1:", lw_json_load(CORPUS "json/utf8.json", &v));
    assert_fails(LW_EFORMAT, "too big integer", lw_json_load(CORPUS "json/big.json", &v));
    assert_fails(LW_EFORMAT, "unclosed.json:1", lw_json_load(CORPUS "json/unclosed.json", &v));
    assert_fails(LW_EFORMAT, "overflow", lw_json_load(CORPUS "json/number.json", &v));
    assert_fails(LW_EIO, "none.json", lw_json_load("none.json", &v));
    assert_null(v);
    assert_ok(
        lw_json_load(CORPUS "json/string_brackets.json", &v)); /* brackets in text are no depth */
    assert_int_equal(json_string_length(v), 200);
    lw_json_drop(&v);
    assert_null(v);
    /* nesting counts, not brackets */
    LW_CLEANUP(lw_str_clear) lw_str side = {0}, text = {0}, deep = {0};
    lw_str_add(&side, "[[]");
    lw_str_add(&text, "[\"\\\"");
    for (int i = 0; i < 100; i++) {
        lw_str_add(&side, ",[]");
        lw_str_add(&text, "[");
    }
    lw_str_add(&side, "]");
    lw_str_add(&text, "\"]");
    for (int i = 0; i < 128; i++)
        lw_str_add(&deep, i < 64 ? "[" : "]");
    const lw_str *const good[] = {&side, &text, &deep};
    for (size_t i = 0; i < LW_COUNT(good); i++) {
        v = parse(lw_str_c(good[i]));
        lw_json_drop(&v);
    }
    lw_str_add(&deep, "]");
    deep.s[64] = '[';
    assert_fails(LW_EFORMAT, "deeper than 64", lw_json_parse("t", lw_str_c(&deep), deep.len, &v));
}

static void json_numbers_come_back_bit_for_bit(void **state)
{
    (void)state;
    const double xs[] = {0.1,  1.0 / 3,      1e-320, 1.7976931348623157e308, -0.0, 3,
                         1e22, (double)0.1f, 5e-324};
    for (size_t i = 0; i < LW_COUNT(xs); i++) {
        lw_str s = {0};
        json_t *v = json_real(xs[i]);
        lw_json_dump(v, 0, &s);
        json_t *back = parse(lw_str_c(&s));
        assert_true(json_is_real(back)); /* 3.0 must not turn into an integer */
        double y = json_real_value(back);
        assert_memory_equal(&y, &xs[i], sizeof y);
        json_decref(v);
        json_decref(back);
        lw_str_clear(&s);
    }
    char buf[32];
    assert_string_equal(lw_f64_text(buf, 0.1), "0.1");
    assert_string_equal(lw_f64_text(buf, (double)NAN), "nan");
    json_t *n = lw_json_real((double)INFINITY);
    assert_true(json_is_null(n));
    json_decref(n);
    n = lw_json_float(0.1f); /* as few digits as it needs: nine at most */
    assert_true(json_real_value(n) == 0.1);
    json_decref(n);
    n = lw_json_float(1000.00006f);
    assert_true(json_real_value(n) == 1000.00006);
    json_decref(n);
    lw_str none = {0};
    lw_json_dump(NULL, 0, &none); /* a key that is not there */
    assert_string_equal(lw_str_c(&none), "null");
    lw_str_clear(&none);
}

static void json_text_is_pretty_and_stable(void **state)
{
    (void)state;
    json_t *v = parse(
        "{\"z\":[1,2.5,\"a\"],\"a\":{\"b\":[{\"c\":null}],\"e\":{}},\"q\":\"\\u0001\\\"\\\\\\n\"}");
    lw_str s = {0}, flat = {0};
    lw_json_dump(v, 2, &s);
    assert_string_equal(lw_str_c(&s),
                        "{\n  \"z\": [1, 2.5, \"a\"],\n  \"a\": {\n    \"b\": [\n      {\n"
                        "        \"c\": null\n      }\n    ],\n    \"e\": {}\n  },\n"
                        "  \"q\": \"\\u0001\\\"\\\\\\n\"\n}");
    lw_json_dump(v, 0, &flat);
    json_t *back = parse(lw_str_c(&flat));
    assert_true(json_equal(v, back));
    assert_ok(lw_json_save(in_scratch("v.json"), v));
    json_t *loaded = NULL;
    assert_ok(lw_json_load(in_scratch("v.json"), &loaded));
    assert_true(json_equal(v, loaded));
    lw_str_clear(&s);
    lw_str_clear(&flat);
    json_decref(v);
    json_decref(back);
    json_decref(loaded);
}

static void json_fields_name_file_and_key(void **state)
{
    (void)state;
    json_t *o = parse("{\"i\":7,\"r\":1.5,\"b\":true,\"s\":\"x\",\"n\":null,\"l\":[1,2],\"m\":[1,"
                      "\"2\"],\"o\":{}}");
    int64_t i = -1;
    double r = -1;
    bool b = false;
    const char *s = NULL;
    const json_t *t = NULL;
    int32_t k = -1, ks[2];
    int n = -1;
    assert_ok(lw_json_get_i64(o, "c.json", "i", &i));
    assert_int_equal(i, 7);
    assert_ok(lw_json_get_f64(o, "c.json", "i", &r));
    assert_true(r == 7.0);
    assert_ok(lw_json_get_f64(o, "c.json", "r", &r));
    assert_true(r == 1.5);
    assert_ok(lw_json_get_bool(o, "c.json", "b", &b));
    assert_true(b);
    assert_ok(lw_json_get_str(o, "c.json", "s", &s));
    assert_string_equal(s, "x");
    assert_ok(lw_json_get_object(o, "c.json", "o", &t));
    assert_ok(lw_json_get_i32s(o, "c.json", "l", 2, ks, &n));
    assert_true(n == 2 && ks[0] == 1 && ks[1] == 2);
    assert_ok(lw_json_get_i32_in(o, "c.json", "i", 1, 7, &k));
    assert_int_equal(k, 7);
    assert_ok(lw_json_opt_i64(o, "c.json", "absent", &i));
    assert_ok(lw_json_opt_i64(o, "c.json", "n", &i));
    assert_int_equal(i, 7);
    assert_fails(LW_EFORMAT, "c.json: 'absent' is missing",
                 lw_json_get_i64(o, "c.json", "absent", &i));
    assert_fails(LW_EFORMAT, "c.json: 's' must be an integer, is a string",
                 lw_json_get_i64(o, "c.json", "s", &i));
    assert_fails(LW_EFORMAT, "'r' must be an integer", lw_json_opt_i64(o, "c.json", "r", &i));
    assert_fails(LW_EFORMAT, "'b' must be a number, is true",
                 lw_json_get_f64(o, "c.json", "b", &r));
    assert_fails(LW_EFORMAT, "'i' is 7, must be 8 to 9",
                 lw_json_get_i32_in(o, "c.json", "i", 8, 9, &k));
    assert_fails(LW_EFORMAT, "has 2 numbers, at most 1",
                 lw_json_get_i32s(o, "c.json", "l", 1, ks, &n));
    assert_fails(LW_EFORMAT, "'m'[1] must be an integer",
                 lw_json_get_i32s(o, "c.json", "m", 2, ks, &n));
    assert_ok(lw_json_get_i32_in(o, "c.json", "i", 7, 9, &k));
    json_object_set_new(o, "l", json_pack("[I]", (json_int_t)INT32_MIN - 1));
    assert_fails(LW_EFORMAT, "'l'[0] is out of range",
                 lw_json_get_i32s(o, "c.json", "l", 2, ks, &n));
    assert_fails(LW_EFORMAT, "must be an object",
                 lw_json_get_i64(t = json_object_get(o, "l"), "c", "i", &i));
    assert_int_equal(i, 7); /* untouched by failures */
    json_decref(o);
}

static void json_passes_nothing_over(void **state)
{
    static const char *const honoured[] = {"width", NULL}, *const about[] = {"license", NULL};
    const char *const *const known[] = {honoured, about, NULL};
    static const lw_json_only only[] = {
        {"act", "\"relu\""}, {"act", "\"gelu\""}, {"pruned", "{}"}, {"decoder", "false"}, {0}};
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"{\"width\": 3, \"license\": [], \"_who\": 1, \"act\": \"gelu\", \"pruned\": {}}", NULL},
        {"{\"decoder\": null}", NULL},
        {"{\"act\": \"tanh\"}", "c.json: 'act' is \"tanh\", which is not honoured here"},
        {"{\"pruned\": {\"1\": [2]}}", "'pruned' is {\"1\":[2]}, which"},
        {"{\"widths\": null}", "'widths' is null, which"},
        {"{\"decoder\": true}", "'decoder' is true, which"},
    };
    (void)state;
    for (size_t i = 0; i < LW_COUNT(rows); i++) {
        json_t *j = NULL;
        assert_ok(lw_json_parse("c.json", rows[i].json, strlen(rows[i].json), &j));
        if (rows[i].error)
            assert_fails(LW_EUNSUPPORTED, rows[i].error,
                         lw_json_check_known(j, "c.json", known, only));
        else
            assert_ok(lw_json_check_known(j, "c.json", known, only));
        json_decref(j);
    }
}

static void json_fields_have_their_types(void **state)
{
    static const lw_json_rule rules[] = {{"beta", LW_JSON_NUMBER},
                                         {"steps", LW_JSON_INT | LW_JSON_NULL},
                                         {"own_name", LW_JSON_STRING},
                                         {0}};
    (void)state;
    json_t *good = parse("{\"beta\":1,\"steps\":null,\"own_name\":\"x\",\"_who\":1,\"other\":2}");
    json_t *wrong = parse("{\"steps\":1.5}"), *later = parse("{\"own_size\":1}");
    assert_ok(lw_json_check_fields(good, "c.json", rules, "own_"));
    assert_fails(LW_EFORMAT, "'steps' must be an integer or null, is a real number",
                 lw_json_check_fields(wrong, "c.json", rules, "own_"));
    assert_fails(LW_EUNSUPPORTED, "'own_size' is not known",
                 lw_json_check_fields(later, "c.json", rules, "own_"));
    json_decref(good);
    json_decref(wrong);
    json_decref(later);
}

static void json_differences_are_named(void **state)
{
    (void)state;
    json_t *a = parse("{\"x\":1,\"y\":2}"), *b = parse("{\"x\":1,\"y\":3}"),
           *c = parse("{\"x\":1}");
    assert_null(lw_json_difference(a, a));
    assert_string_equal(lw_json_difference(a, b), "y");
    assert_string_equal(lw_json_difference(a, c), "y");
    assert_string_equal(lw_json_difference(c, a), "y");
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

static void json_hashes_are_hexadecimal(void **state)
{
    (void)state;
    json_t *o = parse("{\"a\":\"fedcba9876543210\",\"b\":\"-1\",\"c\":\"\",\"d\":7,"
                      "\"e\":\"00fedcba9876543210\",\"f\":\"12 \"}");
    uint64_t h = 5;
    assert_ok(lw_json_opt_hash(o, "c.json", "none", &h));
    assert_true(h == 5);
    assert_ok(lw_json_opt_hash(o, "c.json", "a", &h));
    assert_true(h == 0xfedcba9876543210u);
    for (const char *key = "bcef"; *key; key++)
        assert_fails(LW_EFORMAT, "hexadecimal digits",
                     lw_json_opt_hash(o, "c.json", (const char[]){*key, 0}, &h));
    assert_fails(LW_EFORMAT, "must be a string", lw_json_opt_hash(o, "c.json", "d", &h));
    json_t *small = lw_json_hash(0xabc);
    assert_string_equal(json_string_value(small), "0000000000000abc");
    json_decref(small);
    assert_true(h == 0xfedcba9876543210u);
    json_decref(o);
}

static void yaml_scalars_follow_the_core_schema(void **state)
{
    (void)state;
    json_t *v = NULL;
    assert_ok(lw_yaml_load(CORPUS "yaml/flat.yaml", &v));
    json_t *want = parse(
        "{\"learning-rate\":1e-4,\"steps\":\"20_000\",\"name\":\"007\",\"octal\":15,"
        "\"hex\":31,\"no\":\"no\",\"empty\":null,\"ratio\":0.5,"
        "\"list\":[1,2.5,true,null,\"x y\"],"
        "\"nested\":{\"a\":1,\"b\":[\"x\",{\"c\":3}]},\"text\":\"two\\nlines\\n\"}");
    assert_true(json_equal(v, want));
    json_decref(want);
    json_decref(v);
    v = yaml("{a: -7, b: +1.5E+3, c: 1., d: 1e5, e: '1', f: .5., g: 0x, h: 1-2, i: TRUE, j: -, k: "
             "., l: yes, m: 1e, n: 2e+}");
    want = parse(
        "{\"a\":-7,\"b\":1500.0,\"c\":1.0,\"d\":100000.0,\"e\":\"1\",\"f\":\".5.\",\"g\":\"0x\","
        "\"h\":\"1-2\",\"i\":true,\"j\":\"-\",\"k\":\".\",\"l\":\"yes\",\"m\":\"1e\",\"n\":\"2e+"
        "\"}");
    assert_true(json_equal(v, want));
    json_decref(want);
    json_decref(v);
}

static void yaml_refuses_what_is_not_configuration(void **state)
{
    (void)state;
    json_t *v = NULL;
    assert_fails(LW_EFORMAT, "alias.yaml:1:4: anchors", lw_yaml_load(CORPUS "yaml/alias.yaml", &v));
    assert_fails(LW_EFORMAT, "dup.yaml:2: the key 'a'", lw_yaml_load(CORPUS "yaml/dup.yaml", &v));
    assert_fails(LW_EFORMAT, "tags are not", lw_yaml_load(CORPUS "yaml/tag.yaml", &v));
    assert_fails(LW_EFORMAT, "merge keys", lw_yaml_load(CORPUS "yaml/merge.yaml", &v));
    assert_fails(LW_EFORMAT, "second document", lw_yaml_load(CORPUS "yaml/two.yaml", &v));
    assert_fails(LW_EFORMAT, "too deeply", lw_yaml_load(CORPUS "yaml/deep.yaml", &v));
    assert_fails(LW_EFORMAT, "tab.yaml:2:1", lw_yaml_load(CORPUS "yaml/tab.yaml", &v));
    assert_fails(LW_EFORMAT, "infinity", lw_yaml_load(CORPUS "yaml/inf.yaml", &v));
    assert_fails(LW_EFORMAT, "bytes.yaml", lw_yaml_load(CORPUS "yaml/bytes.yaml", &v));
    assert_fails(LW_EFORMAT, "a key must be", lw_yaml_load(CORPUS "yaml/keys.yaml", &v));
    assert_fails(LW_EFORMAT, "64 bits", lw_yaml_parse("t", "a: 99999999999999999999", 23, &v));
    assert_fails(LW_EFORMAT, "too large for a double", lw_yaml_parse("t", "a: 1e999", 8, &v));
    assert_fails(LW_EFORMAT, "aliases", lw_yaml_parse("t", "a: *x", 5, &v));
    assert_fails(LW_EFORMAT, "NUL", lw_yaml_parse("t", "a: \"\\0\"", 7, &v));
    assert_null(v);
    assert_ok(lw_yaml_load(CORPUS "yaml/empty.yaml", &v));
    assert_true(json_is_object(v) && json_object_size(v) == 0);
    lw_json_drop(&v);
    assert_ok(lw_yaml_load(CORPUS "yaml/list.yaml", &v));
    assert_true(json_is_array(v));
    lw_json_drop(&v);
    assert_ok(lw_yaml_load(CORPUS "yaml/json.yaml", &v));
    assert_string_equal(json_string_value(json_object_get(v, "c")), "\xc3\xa9");
    lw_json_drop(&v);
}

static void yaml_reads_back_what_it_wrote(void **state)
{
    (void)state;
    const char *text =
        "{\"lr\":1e-05,\"steps\":20000,\"one\":1.0,\"data\":\"cifar10:/a "
        "b/c\",\"synth\":\"synth:16\","
        "\"s1\":\"1e-4\",\"s2\":\"true\",\"s3\":\"\",\"s4\":\"- x\",\"s5\":\"a: b\",\"s6\":\"# "
        "c\",\"s7\":\"no\","
        "\"s8\":\"12:30\",\"s9\":\"~\",\"s10\":\"x\\ny\\t\\u0001\\u0085\\u2028\\ufeff\",\"s11\":"
        "\"\\u03b1\\ud83d\\ude00\","
        "\"s12\":\" lead\",\"s13\":\"trail \",\"s14\":\"'q' \\\"d\\\" "
        "\\\\\",\"s15\":\"end:\",\"odd key: \":1,"
        "\"\":2,\"null\":null,\"flag\":false,\"list\":[1,0.5,\"a,b\",\"x]\",[],[2]],\"objs\":[{"
        "\"k\":1,\"v:\":[{}]}],"
        "\"empty\":{},\"none\":[],\"deep\":{\"er\":{\"est\":[true],\"x\":\"y\"},\"z\":-1}}";
    json_t *v = parse(text), *back = NULL;
    lw_str s = {0};
    assert_ok(lw_yaml_dump(v, &s));
    assert_non_null(strstr(lw_str_c(&s), "lr: 1.0e-05\nsteps: 20000\none: 1.0\n"));
    assert_non_null(strstr(lw_str_c(&s), "synth: synth:16\ns1: \"1e-4\"\n"));
    assert_ok(lw_yaml_parse("dump", lw_str_c(&s), s.len, &back));
    if (!json_equal(v, back)) {
        print_error("%s\n", lw_str_c(&s));
        fail();
    }
    lw_str_clear(&s);
    json_decref(v);
    json_decref(back);
    json_t *list = json_array();
    assert_fails(LW_EUNSUPPORTED, "object", lw_yaml_dump(list, &s));
    char key[1100] = "";
    memset(key, 'k', sizeof key - 1);
    json_t *long_key = json_pack("{s:[{s:i}]}", "a", key, 1);
    assert_fails(LW_EUNSUPPORTED, "key of 1099 bytes", lw_yaml_dump(long_key, &s));
    lw_str_clear(&s);
    json_decref(long_key);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_limits_hold),
        cmocka_unit_test(json_numbers_come_back_bit_for_bit),
        cmocka_unit_test(json_text_is_pretty_and_stable),
        cmocka_unit_test(json_fields_name_file_and_key),
        cmocka_unit_test(json_passes_nothing_over),
        cmocka_unit_test(json_fields_have_their_types),
        cmocka_unit_test(json_differences_are_named),
        cmocka_unit_test(json_hashes_are_hexadecimal),
        cmocka_unit_test(yaml_scalars_follow_the_core_schema),
        cmocka_unit_test(yaml_refuses_what_is_not_configuration),
        cmocka_unit_test(yaml_reads_back_what_it_wrote),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
