/* SPDX-License-Identifier: Apache-2.0 */
/* report: grids, tables, pages. */
#include "unit/test_formats_util.h"

#include <math.h>

#include "report/report.h"
#include "report/report_font.h"
#include "unit/test_report_markup.h"
#include "base/base.h"

static const uint8_t *dot(const lw_image *im, int x, int y)
{
    return im->rgb + (y * im->width + x) * 3;
}

static void pixels_map_to_bytes(void **state)
{
    (void)state;
    assert_int_equal(lw_pixel_u8(-1), 0);
    assert_int_equal(lw_pixel_u8(0), 128);
    assert_int_equal(lw_pixel_u8(1), 255);
    assert_int_equal(lw_pixel_u8(-7), 0);
    assert_int_equal(lw_pixel_u8(1e30f), 255);
    assert_int_equal(lw_pixel_u8(NAN), 0);
    for (int v = 0; v < 256; v++) /* the way back from a decoded picture is exact */
        assert_int_equal(lw_pixel_u8((float)v / 127.5f - 1), v);
}

static void a_grid_puts_every_pixel_in_its_place(void **state)
{
    (void)state;
    enum { N = 5, H = 3, W = 2 };
    uint8_t u[N * H * W * 3];
    float f[N * H * W * 3];
    for (size_t i = 0; i < sizeof u; i++) {
        u[i] = (uint8_t)(40 + 2 * i);
        f[i] = (float)u[i] / 127.5f - 1;
    }
    const lw_grid g = {.columns = 3, .padding = 1, .scale = 2, .background = {1, 2, 3}};
    lw_image im = {0}, from_f = {0};
    assert_ok(lw_grid_u8(&g, u, N, H, W, &im));
    assert_ok(lw_grid_f32(&g, f, N, H, W, &from_f));
    assert_true(im.width == 2 + 3 * (W + 1) * 2 && im.height == 2 + 2 * (H + 1) * 2);
    assert_memory_equal(im.rgb, from_f.rgb, (size_t)im.width * im.height * 3);
    for (int y = 0; y < im.height; y++)
        for (int x = 0; x < im.width; x++) {
            int cx = (x - 2) / 6, cy = (y - 2) / 8, px = (x - 2) % 6 / 2, py = (y - 2) % 8 / 2;
            int k = cy * 3 + cx;
            static const uint8_t background[3] = {1, 2, 3};
            bool inside = x >= 2 && y >= 2 && px < W && py < H && k < N;
            assert_memory_equal(dot(&im, x, y),
                                inside ? u + ((k * H + py) * W + px) * 3 : background, 3);
        }
    lw_image_clear(&im);
    lw_image_clear(&from_f);
}

static void a_grid_shows_nan_and_refuses_nonsense(void **state)
{
    (void)state;
    float f[4 * 3] = {0, NAN, 0};
    lw_image im = {0};
    const lw_grid plain = {0}, negative = {.padding = -1}, huge = {.scale = 40000};
    assert_ok(lw_grid_f32(&plain, f, 4, 1, 1, &im));
    assert_true(im.width == 2 && im.height == 2); /* the squarest */
    assert_memory_equal(dot(&im, 0, 0), "\xff\x00\xff", 3);
    assert_memory_equal(dot(&im, 1, 1), "\x80\x80\x80", 3);
    lw_image_clear(&im);
    assert_fails(LW_ESHAPE, "a grid of 0 pictures", lw_grid_f32(&plain, f, 0, 1, 1, &im));
    assert_fails(LW_ESHAPE, "a grid", lw_grid_f32(&negative, f, 4, 1, 1, &im));
    assert_fails(LW_ESHAPE, "too large", lw_grid_f32(&huge, f, 4, 1, 1, &im));
}

/* Gaps that show the page's own ground, light or dark; samples stay as they are. */
static void gaps_can_be_transparent(void **state)
{
    (void)state;
    const uint8_t x[] = {10, 20, 30, 1, 254, 2}; /* the second is the very colour of the gaps */
    const lw_grid g = {.columns = 2, .padding = 1, .see_through = true};
    lw_image im = {0};
    lw_str png = {0};
    assert_ok(lw_grid_u8(&g, x, 2, 1, 1, &im));
    assert_true(im.see_through && memcmp(im.rgb, im.clear, 3) == 0);
    const uint8_t *row = im.rgb + (size_t)im.width * 3;
    assert_memory_equal(row + 3, x, 3);
    assert_memory_not_equal(row + 9, im.clear, 3);
    assert_in_range(row[10], 253, 255);
    assert_ok(lw_png_encode(&im, NULL, &png));
    bool found = false;
    for (size_t i = 0; i + 10 <= png.len; i++)
        found = found || memcmp(png.s + i, "tRNS\0\1\0\xfe\0\2", 10) == 0;
    assert_true(found);
    lw_str_clear(&png);
    lw_image_clear(&im);
}

static void labels_and_titles_are_drawn(void **state)
{
    (void)state;
    uint8_t u[4 * 16 * 16 * 3] = {0};
    const char *rows[] = {"one", "two"}, *columns[] = {"A", "B"};
    const lw_grid bare = {.columns = 2, .background = {255, 255, 255}};
    lw_grid g = bare;
    g.row_labels = rows;
    g.column_labels = columns;
    lw_image im = {0}, without = {0}, both = {0};
    assert_ok(lw_grid_u8(&bare, u, 4, 16, 16, &without));
    assert_ok(lw_grid_u8(&g, u, 4, 16, 16, &im));
    int left = im.width - without.width, top = im.height - without.height, ink = 0;
    assert_true(left >= lw_text_width("one", 1) && top >= LW_TEXT_HEIGHT);
    for (int y = 0; y < im.height; y++)
        for (int x = 0; x < left; x++)
            ink += *dot(&im, x, y) < 128;
    int want = 0;
    for (const char *c = "onetwo"; *c; c++)
        for (int k = 0; k < 40; k++)
            want += lw_font_dot(*c, k % 5, k / 5);
    assert_int_equal(ink, want); /* every dot of both labels, none cut off */
    const lw_image *two[] = {&without, &im};
    const char *titles[] = {"left", "right"};
    assert_ok(lw_image_beside(two, titles, 2, 5, &both));
    assert_int_equal(both.width, without.width + im.width + 15);
    int y0 = both.height - 5 - im.height; /* black sample corners on white ground */
    assert_memory_equal(dot(&both, 5, y0), "\0\0\0", 3);
    assert_memory_equal(dot(&both, 4, y0), "\xff\xff\xff", 3);
    assert_memory_equal(dot(&both, both.width - 6, both.height - 6), "\0\0\0", 3);
    assert_memory_equal(dot(&both, both.width - 5, both.height - 6), "\xff\xff\xff", 3);
    lw_image_clear(&im);
    lw_image_clear(&without);
    lw_image_clear(&both);
}

static void every_character_has_its_own_shape(void **state)
{
    (void)state;
    for (int a = 33; a < 127; a++)
        for (int b = a + 1; b < 127; b++) {
            int differ = 0;
            for (int k = 0; k < 40; k++)
                differ += lw_font_dot((char)a, k % 5, k / 5) != lw_font_dot((char)b, k % 5, k / 5);
            if (!differ) {
                print_error("'%c' looks like '%c'\n", a, b);
                fail();
            }
        }
    assert_int_equal(lw_text_width("\xc3\xa9", 2), 10); /* one character, drawn as '?' */
    lw_image im = {0};
    assert_ok(lw_image_init(&im, 8, 8));
    lw_image_text(&im, -3, 5, 3, (const uint8_t[]){255, 255, 255}, "clipped at every edge");
    lw_image_clear(&im);
}

static void fill_table(lw_table *t)
{
    lw_table_column(t, "name", LW_LEFT);
    lw_table_column(t, "value", LW_RIGHT);
    lw_table_column(t, "ok", LW_CENTER);
    lw_table_cell(t, "a<b> & \"c\", d");
    lw_table_number(t, 0.5, 3);
    lw_table_mark(t, LW_MARK_GOOD);
    lw_table_cell(t, "yes");
    lw_table_cell(t, "\xc3\xa9");
    lw_table_number(t, (double)NAN, 3);
}

static void a_long_cell_is_whole(void **state)
{
    char text[2000];
    lw_table t = {0};
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lw_table_column(&t, "name", LW_LEFT);
    lw_table_cell(&t, "%s, %d", text, 7);
    assert_int_equal(strlen(t.cells[1].text), sizeof text - 1 + 3);
    assert_string_equal(t.cells[1].text + sizeof text - 1, ", 7");
    lw_table_clear(&t);
}

static void tables_have_three_forms(void **state)
{
    (void)state;
    lw_table t = {0};
    lw_str text = {0}, csv = {0}, html = {0};
    fill_table(&t);
    assert_int_equal(lw_table_rows(&t), 2);
    assert_ok(lw_table_ok(&t));
    lw_table_text(&t, &text);
    assert_string_equal(lw_str_c(&text), "name           value  ok\n"
                                         "-------------  -----  ---\n"
                                         "a<b> & \"c\", d  0.500  yes\n"
                                         "\xc3\xa9                  -\n");
    lw_table_csv(&t, &csv);
    assert_string_equal(lw_str_c(&csv),
                        "name,value,ok\n\"a<b> & \"\"c\"\", d\",0.500,yes\n\xc3\xa9,-,\n");
    lw_table_html(&t, "what it is", &html);
    assert_markup(lw_str_c(&html));
    assert_non_null(strstr(lw_str_c(&html), "<caption>what it is</caption>"));
    assert_non_null(strstr(lw_str_c(&html), "<th scope=\"col\" class=\"r\">value</th>"));
    assert_non_null(strstr(lw_str_c(&html),
                           "<th scope=\"row\" class=\"l\">a&lt;b&gt; &amp; &quot;c&quot;, d</th>"));
    /* passes without its colour, too */
    assert_non_null(
        strstr(lw_str_c(&html),
               "<td class=\"r good\"><span class=\"sign\">\xe2\x9c\x93</span>0.500</td>"));
    lw_str_clear(&text);
    lw_str_clear(&csv);
    lw_str_clear(&html);
    lw_table_clear(&t);
}

static void numbers_keep_their_digits(void **state)
{
    (void)state;
    static const struct {
        double v;
        int digits;
        const char *text;
    } cases[] = {
        {12.8149, 4, "12.81"},   {1234.5, 3, "1234"},
        {0.00123, 3, "0.00123"}, {0, 3, "0.00"},
        {-5.5, 2, "-5.5"},       {2.5e7, 3, "2.50e+07"},
        {1e-9, 2, "1.0e-09"},    {(double)INFINITY, 3, "inf"},
    };
    lw_table t = {0};
    lw_table_column(&t, "x", LW_RIGHT);
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        lw_table_number(&t, cases[i].v, cases[i].digits);
        assert_string_equal(t.cells[t.n - 1].text, cases[i].text);
    }
    lw_table_clear(&t);
}

static void base64_has_its_known_answers(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}}; /* RFC 4648, 10 */
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        lw_str s = {0};
        lw_base64(&s, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(lw_str_c(&s), cases[i][1]);
        lw_str_clear(&s);
    }
}

static lw_html *make_page(const lw_image *im)
{
    lw_html *h = NULL;
    lw_table t = {0};
    fill_table(&t);
    const char *facts[] = {"seed", "<7>"}, *items[] = {"one", "**two"}, *svg[] = {"<svg></svg>"};
    const lw_card cards[] = {{"Speed", "41x", "a `b` **c**", LW_MARK_GOOD},
                             {"x", "y", NULL, LW_MARK_BAD}};
    static const char *const rows[] = {"cat", "<dog>"};
    const lw_figure figures[] = {
        {.picture = im, .title = "title", .caption = "caption", .rows = rows, .n_rows = 2},
        {.picture = im}};
    const char *const links[] = {"a run", "drift/report.html"};
    assert_ok(lw_html_new("A & B", "runs/**a**`<b>`", &h));
    lw_html_facts(h, facts, 1);
    lw_html_cards(h, cards, 2);
    lw_html_section(h, "First");
    lw_html_text(h, "x < y, `<code>`, **bold**, 2 * 3 * 4, lone ` mark");
    lw_html_note(h, LW_MARK_WARN, "note");
    lw_html_section(h, "Second");
    lw_html_list(h, items, 2);
    lw_html_pictures(h, figures, 2);
    lw_html_plots(h, svg, NULL, 1);
    lw_html_fold_begin(h, "more");
    lw_html_table(h, &t, "caption", "a note");
    lw_html_fold_end(h);
    lw_html_fold(h, "fold", "a\n<b>");
    lw_html_links(h, links, 1);
    lw_table_clear(&t);
    return h;
}

/* A name is not trusted: neither markup, nor what a terminal is spared (lw_str_add_clean). */
static void escapes_leave_nothing_to_act_on(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_html_escape(&s, "<a&\"b\">\n\tZ\xc3\xbcrich\x1b\xe2\x80\xae"
                       "c\xe2\x81\xa6");
    assert_string_equal(lw_str_c(&s),
                        "&lt;a&amp;&quot;b&quot;&gt;\n\tZ\xc3\xbcrich\\x1b\\xe2\\x80\\xae"
                        "c\\xe2\\x81\\xa6");
}

/* However long; one that cannot be read is not passed over, and leaves no message behind. */
static void files_are_folded_into_a_page(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    static char text[LONG + 5];
    lw_html *h = NULL;
    lw_str page = {0};
    memset(text, 'x', LONG);
    memcpy(text + LONG, "end\n", 5);
    assert_ok(lw_file_write(in_scratch("config.yaml"), text, LONG + 4));
    assert_ok(lw_mkdirs(in_scratch("command.txt")));
    assert_ok(lw_html_new("a run", "here", &h));
    lw_errclear();
    lw_html_fold_file(h, "the config", scratch, "config.yaml");
    lw_html_fold_file(h, "the commands", scratch, "command.txt");
    lw_html_fold_file(h, "nothing", scratch, "missing");
    assert_string_equal(lw_errmsg(), "");
    assert_ok(lw_html_render(h, &page));
    assert_non_null(strstr(lw_str_c(&page), "xend"));
    assert_non_null(strstr(lw_str_c(&page), "command.txt: "));
    assert_null(strstr(lw_str_c(&page), "nothing"));
    lw_html_free(&h);
    lw_str_clear(&page);
}

static void a_page_is_whole_escaped_and_alone(void **state)
{
    (void)state;
    lw_image im = {0};
    assert_ok(lw_image_init(&im, 3, 2));
    lw_html *h = make_page(&im), *again = make_page(&im);
    lw_str page = {0}, twice = {0};
    assert_ok(lw_html_render(h, &page));
    assert_ok(lw_html_render(again, &twice));
    assert_string_equal(lw_str_c(&page), lw_str_c(&twice));
    const char *s = lw_str_c(&page);
    assert_markup(s);
    assert_non_null(strstr(s, "<title>A &amp; B</title>"));
    assert_non_null(strstr(s, "<p class=\"sub\">runs/**a**`&lt;b&gt;`</p>"));
    assert_non_null(strstr(s, "<pre tabindex=\"0\">a\n&lt;b&gt;</pre>"));
    assert_non_null(strstr(
        s, "x &lt; y, <code>&lt;code&gt;</code>, <strong>bold</strong>, 2 * 3 * 4, lone ` "));
    assert_non_null(strstr(s, "<li>**two</li>"));
    assert_non_null(strstr(s, "<dd>&lt;7&gt;</dd>"));
    assert_non_null(strstr(s, "data:image/png;base64,iVBORw0KGgo"));
    assert_non_null(strstr(s, "<a href=\"#s2\">Second</a>"));
    assert_non_null(strstr(s, "<a href=\"drift/report.html\">a run</a>"));
    assert_non_null(strstr(s, "<span title=\"cat\">cat</span>"
                              "<span title=\"&lt;dog&gt;\">&lt;dog&gt;</span></div><img "));
    assert_non_null(strstr(s, "<caption>caption</caption>"));
    const char *paper = strstr(s, "@media print"); /* what is folded away is open on paper */
    assert_non_null(paper);
    assert_non_null(strstr(paper, "details::details-content{"));
    assert_non_null(strstr(paper, ".scroll{overflow:visible"));
    assert_null(strstr(s, "<script")); /* nothing runs, nothing is fetched */
    assert_null(strstr(s, "http"));
    assert_null(strstr(s, "@import"));
    assert_ok(lw_html_save(h, in_scratch("r.html")));
    char *file;
    size_t n;
    assert_ok(lw_file_read(in_scratch("r.html"), 0, &file, &n));
    assert_true(n == page.len && memcmp(file, s, n) == 0);
    lw_free(&file);
    assert_fails(LW_EIO, "/nonexistent", lw_html_save(h, "/nonexistent/r.html"));
    lw_html_free(&h);
    lw_html_free(&again);
    lw_str_clear(&page);
    lw_str_clear(&twice);
    lw_image_clear(&im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_map_to_bytes),
        cmocka_unit_test(a_grid_puts_every_pixel_in_its_place),
        cmocka_unit_test(a_grid_shows_nan_and_refuses_nonsense),
        cmocka_unit_test(gaps_can_be_transparent),
        cmocka_unit_test(labels_and_titles_are_drawn),
        cmocka_unit_test(every_character_has_its_own_shape),
        cmocka_unit_test(a_long_cell_is_whole),
        cmocka_unit_test(tables_have_three_forms),
        cmocka_unit_test(numbers_keep_their_digits),
        cmocka_unit_test(base64_has_its_known_answers),
        cmocka_unit_test(escapes_leave_nothing_to_act_on),
        cmocka_unit_test(files_are_folded_into_a_page),
        cmocka_unit_test(a_page_is_whole_escaped_and_alone),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
