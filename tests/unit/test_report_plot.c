/* SPDX-License-Identifier: Apache-2.0 */
/* report: axes and SVG plots. */
#include "unit/test_formats_util.h"

#include <math.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/report_plot_frame.h"
#include "unit/test_report_markup.h"
#include "base/base.h"

static int count(const char *s, const char *part)
{
    int n = 0;
    for (; (s = strstr(s, part)); s += strlen(part))
        n++;
    return n;
}

static void axes_cover_their_data_with_few_ticks(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1},        {-3, 7},      {0.001, 0.0021}, {1e6, 1e6},
                                       {0, 0},        {5, 5},       {-1e-9, 1e-9},   {0, 123456},
                                       {99.9, 100.1}, {1e12, 3e12}, {-250, -100}};
    for (size_t i = 0; i < LW_COUNT(ranges); i++) {
        lw_axis a;
        lw_axis_init(&a, ranges[i][0], ranges[i][1], false, 5);
        assert_true(a.lo < a.hi && a.lo <= ranges[i][0] && a.hi >= ranges[i][1]);
        assert_in_range(a.n_ticks, 3, 13);
        for (int k = 0; k < a.n_ticks; k++) {
            char one[32], two[32];
            double at = lw_axis_at(&a, a.ticks[k]);
            assert_true(at > -1e-9 && at < 1 + 1e-9);
            if (k > 0) /* neighbours can be told apart */
                assert_string_not_equal(lw_axis_label(&a, one, a.ticks[k - 1]),
                                        lw_axis_label(&a, two, a.ticks[k]));
        }
    }
    for (int log = 0; log < 2; log++) { /* the ends of what a double holds */
        lw_axis far;
        lw_axis_init(&far, log ? 1e-320 : -1e308, 1e308, log, 5);
        assert_true(isfinite(far.lo) && isfinite(far.hi) && far.n_ticks >= 2);
        for (int k = 0; k < far.n_ticks; k++)
            assert_true(isfinite(far.ticks[k]) && (k == 0 || far.ticks[k] > far.ticks[k - 1]));
    }
    lw_axis none;
    lw_axis_init(&none, 1, -1, false, 5);
    assert_true(none.lo == 0 && none.hi == 1);
}

static void log_axes_have_decades(void **state)
{
    (void)state;
    lw_axis a;
    lw_axis_init(&a, 0.03, 4000, true, 6);
    assert_int_equal(a.n_ticks, 5); /* 0.1 1 10 100 1000 */
    for (int i = 0; i < 5; i++)
        assert_true(fabs(a.ticks[i] / pow(10, i - 1) - 1) < 1e-12);
    assert_true(fabs(lw_axis_at(&a, sqrt(a.lo * a.hi)) - 0.5) < 1e-12);
    assert_true(!lw_axis_has(&a, 0) && !lw_axis_has(&a, -1) && lw_axis_has(&a, 5));
    lw_axis_init(&a, 3, 40, true, 6);
    assert_int_equal(a.n_ticks, 3); /* 5 10 20 */
    lw_axis_init(&a, 7, 7, true, 6);
    assert_true(a.lo < 7 && a.hi > 7 && a.n_ticks >= 1);
    lw_axis_init(&a, 1e-30, 1e30, true, 6);
    assert_in_range(a.n_ticks, 3, 9);
}

static void narrow_log_axes_have_ticks_too(void **state)
{
    (void)state;
    static const double ranges[][2] = {{90, 101}, {82, 200}, {0.92, 0.95}, {0.11, 0.13}, {5, 5}};
    for (size_t i = 0; i < LW_COUNT(ranges); i++) {
        lw_axis a;
        lw_axis_init(&a, ranges[i][0], ranges[i][1], true, 5);
        assert_true(a.lo <= ranges[i][0] && a.hi >= ranges[i][1] && a.hi / a.lo < 3);
        assert_in_range(a.n_ticks, 2, 10);
        for (int k = 0; k < a.n_ticks; k++) {
            char one[32], two[32];
            assert_true(a.ticks[k] >= a.lo && a.ticks[k] <= a.hi);
            if (k > 0)
                assert_string_not_equal(lw_axis_label(&a, one, a.ticks[k - 1]),
                                        lw_axis_label(&a, two, a.ticks[k]));
        }
    }
}

static void steps_have_whole_ticks(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, y[] = {0, 0, 0};
    const lw_plot p = {.title = "t", .from_zero = true};
    const lw_series series = {.name = "column", .x = x, .y = y, .n = 3};
    lw_str s = {0};
    lw_plot_lines(&p, &series, 1, &s);
    assert_null(strstr(lw_str_c(&s), ">1.5</text>"));
    assert_non_null(strstr(lw_str_c(&s), ">3</text>"));
    assert_null(strstr(lw_str_c(&s), ">-"));     /* shares that are all 0 do not go down to -1 */
    assert_null(strstr(lw_str_c(&s), "column")); /* one curve needs no legend beside a title */
    lw_str_clear(&s);
}

static void ticks_stand_where_they_are_wanted(void **state)
{
    (void)state;
    const double x[] = {4, 16, 64}, y[] = {1, 2, 3}, ticks[] = {1, 4, 16, 64, 1000};
    const lw_plot p = {.log_x = true, .x_ticks = ticks, .n_x_ticks = 5, .no_ends = true};
    const lw_series series = {.x = x, .y = y, .n = 3};
    lw_str s = {0};
    lw_plot_lines(&p, &series, 1, &s);
    assert_int_equal(count(lw_str_c(&s), ">4</text>"), 1);
    assert_int_equal(count(lw_str_c(&s), ">16</text>"), 1);
    assert_int_equal(count(lw_str_c(&s), ">64</text>"), 1);
    assert_null(strstr(lw_str_c(&s), ">10</text>"));
    assert_null(strstr(lw_str_c(&s), ">1k</text>"));
    lw_str_clear(&s);
}

static void labels_are_short(void **state)
{
    (void)state;
    char buf[32];
    lw_axis a;
    lw_axis_init(&a, 0, 20000, false, 5);
    assert_string_equal(lw_axis_label(&a, buf, 0), "0");
    assert_string_equal(lw_axis_label(&a, buf, 5000), "5k");
    lw_axis_init(&a, 0, 0.3, false, 5);
    assert_string_equal(lw_axis_label(&a, buf, 0.1), "0.1");
    lw_axis_init(&a, 0, 0.25, false, 5);
    assert_string_equal(lw_axis_label(&a, buf, 0.1), "0.10"); /* as its neighbours 0.05 and 0.15 */
    assert_string_equal(lw_axis_label(&a, buf, 0.05), "0.05");
    lw_axis_init(&a, 1e-6, 1e7, true, 6);
    assert_string_equal(lw_axis_label(&a, buf, 1e-5), "1e-5");
    assert_string_equal(lw_axis_label(&a, buf, 0.01), "0.01");
    assert_string_equal(lw_axis_label(&a, buf, 1), "1");
    assert_string_equal(lw_axis_label(&a, buf, 100), "100");
    assert_string_equal(lw_axis_label(&a, buf, 1e6), "1M");
}

static void lines_skip_what_cannot_be_drawn(void **state)
{
    (void)state;
    const double y[] = {1, 2, (double)NAN, 4, -5, 6}, gap[] = {0.5, 0.5};
    const lw_series series[] = {{.name = "a & b", .y = y, .n = 6, .dots = true},
                                {.name = "ref", .y = gap, .n = 2, .dashed = true}};
    const lw_plot p = {.title = "T<", .x_label = "x", .y_label = "y", .log_y = true};
    lw_str s = {0};
    lw_plot_lines(&p, series, 2, &s);
    assert_markup(lw_str_c(&s));
    assert_null(strstr(lw_str_c(&s), "nan"));
    assert_null(strstr(lw_str_c(&s), "inf"));
    assert_non_null(strstr(lw_str_c(&s), ">T&lt;</text>"));
    assert_int_equal(count(lw_str_c(&s), "<circle"),
                     4); /* NaN and -5 have no place on a log axis */
    const char *d = strstr(lw_str_c(&s), "fill=\"none\"");
    d = strstr(d, " d=\"") + 4;
    size_t n = strcspn(d, "\"");
    int moves = 0;
    for (size_t i = 0; i < n; i++)
        moves += d[i] == 'M';
    assert_int_equal(moves, 3); /* 1-2, 4, 6 */
    lw_str_clear(&s);
}

static double y_before(const char *text)
{
    while (strncmp(text, " y=\"", 4) != 0)
        text--;
    return strtod(text + 4, NULL);
}

/* What a curve came to, and which dot is whose, without a look at the legend. */
static void ends_and_lone_points_are_named(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, y[] = {8, 4, 2.5}, near[] = {9, 5, 2.4}, one = 1, lone = 7.25;
    const lw_series s[] = {{.name = "DDPM", .x = x, .y = y, .n = 3},
                           {.name = "real", .x = x, .y = near, .n = 3},
                           {.name = "drift", .x = &one, .y = &lone, .n = 1}};
    lw_plot p = {.title = "t"};
    lw_str with = {0}, without = {0};
    lw_plot_lines(&p, s, 3, &with);
    assert_markup(lw_str_c(&with));
    const char *a = strstr(lw_str_c(&with), ">2.4"), *b = strstr(lw_str_c(&with), ">2.5");
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(strstr(lw_str_c(&with), ">drift 7.2"));
    /* values that nearly agree are not written over each other */
    assert_true(fabs(y_before(a) - y_before(b)) >= 13.9);
    p.no_ends = true;
    lw_plot_lines(&p, s, 3, &without);
    assert_null(strstr(lw_str_c(&without), ">drift 7.2"));
    lw_str_clear(&with);
    lw_str_clear(&without);
}

static double x_before(const char *text)
{
    while (strncmp(text, " x=\"", 4) != 0)
        text--;
    return strtod(text + 4, NULL);
}

/* Runs of one measure each, not all at the same time: what stands at the last is inside the picture. */
static void names_of_lone_points_fit(void **state)
{
    (void)state;
    const double x[] = {10, 12.5}, y[] = {3, 1.21};
    const lw_series s[] = {{.name = "drift", .x = &x[0], .y = &y[0], .n = 1},
                           {.name = "DDPM", .x = &x[1], .y = &y[1], .n = 1}};
    const lw_plot p = {.title = "t"};
    lw_str out = {0};
    lw_plot_lines(&p, s, 2, &out);
    const char *text = strstr(lw_str_c(&out), ">DDPM 1.2");
    assert_non_null(text);
    assert_true(x_before(text) + lw_svg_width("DDPM 1.21", 12) <= 540);
    lw_str_clear(&out);
}

static void dots_stand_where_lengths_say_nothing(void **state)
{
    (void)state;
    const lw_bar bars[] = {{.name = "one", .value = 1, .text = "a"},
                           {.name = "thousand", .value = 1000, .text = "b"}};
    const lw_plot p = {.log_x = true, .dots = true};
    lw_str s = {0};
    lw_plot_bars(&p, bars, 2, &s);
    assert_markup(lw_str_c(&s));
    assert_int_equal(count(lw_str_c(&s), "<circle"), 2);
    assert_int_equal(count(lw_str_c(&s), "<rect"), 1); /* the ground */
    assert_non_null(strstr(lw_str_c(&s), "<title>1000</title></circle>"));
    lw_str_clear(&s);
}

/* A training run with one validation, or one between gaps: no line would show it. */
static void a_lone_point_is_a_dot(void **state)
{
    (void)state;
    const double one[] = {0.7}, gaps[] = {1, 2, (double)NAN, 4, (double)NAN}, steady[] = {1, 2};
    const lw_series series[] = {{.name = "one", .y = one, .n = 1},
                                {.name = "gaps", .y = gaps, .n = 5},
                                {.name = "line", .y = steady, .n = 2}};
    const lw_series smooth = {.name = "one", .y = one, .n = 1, .smooth = 0.9};
    const lw_plot p = {.title = "t"};
    lw_str s = {0}, t = {0};
    lw_plot_lines(&p, series, 3, &s);
    assert_markup(lw_str_c(&s));
    assert_int_equal(count(lw_str_c(&s), "<circle"), 2);
    assert_non_null(strstr(lw_str_c(&s), "<title>0: 0.7</title>"));
    assert_non_null(strstr(lw_str_c(&s), "<title>3: 4</title>"));
    lw_plot_lines(&p, &smooth, 1, &t);
    assert_int_equal(count(lw_str_c(&t), "<circle"), 1);
    lw_str_clear(&s);
    lw_str_clear(&t);
}

static void long_series_stay_small_and_keep_their_extremes(void **state)
{
    (void)state;
    enum { N = 200000 };
    double *y = calloc(N, sizeof *y);
    assert_non_null(y);
    y[123456] = 100; /* one spike must survive thinning */
    const lw_series series = {.name = "s", .y = y, .n = N};
    lw_series smooth = series;
    smooth.smooth = 0.9;
    const lw_plot p = {0};
    lw_str s = {0}, t = {0};
    lw_plot_lines(&p, &series, 1, &s);
    assert_markup(lw_str_c(&s));
    assert_true(s.len < 40000);
    lw_plot_lines(&p, &smooth, 1, &t);
    assert_markup(lw_str_c(&t));
    assert_int_equal(count(lw_str_c(&t), "stroke-opacity"), 1);
    assert_int_equal(count(lw_str_c(&t), "fill=\"none\""), 2);
    /* the spike reaches the top of the drawing area: the smallest y among curve points */
    const char *d = strstr(strstr(lw_str_c(&s), "fill=\"none\""), " d=\"") + 4;
    double top = 1e9, bottom = -1e9;
    for (char *end; *d != '"'; d = end) {
        strtod(d + 1, &end);
        double v = strtod(end + 1, &end);
        top = fmin(top, v);
        bottom = fmax(bottom, v);
    }
    assert_true(bottom - top > 200);
    lw_str_clear(&s);
    lw_str_clear(&t);
    free(y);
}

static void bars_are_as_long_as_their_values(void **state)
{
    (void)state;
    const lw_bar bars[] = {{.group = "g", .name = "one", .value = 10},
                           {.group = "g", .name = "two", .value = 20, .low = 18, .high = 22},
                           {.group = "h", .name = "nan", .value = (double)NAN},
                           {.name = "neg", .value = -5, .text = "minus five"}};
    const lw_plot p = {.title = "bars", .x_label = "ms"};
    lw_str s = {0};
    lw_plot_bars(&p, bars, 4, &s);
    assert_markup(lw_str_c(&s));
    double width[3];
    const char *at = lw_str_c(&s);
    for (int i = 0; i < 3; i++) {
        at = strstr(at, "<rect x=");
        assert_non_null(at);
        width[i] = strtod(strstr(at, "width=\"") + 7, NULL);
        at++;
    }
    assert_true(fabs(width[1] / width[0] - 2) < 0.01 && fabs(width[2] / width[0] - 0.5) < 0.01);
    assert_int_equal(count(lw_str_c(&s), ">g</text>"), 1); /* a group is named once */
    assert_int_equal(count(lw_str_c(&s), ">h</text>"), 1);
    assert_non_null(strstr(lw_str_c(&s), ">minus five</text>"));
    assert_non_null(strstr(lw_str_c(&s), ">n/a</text>"));
    lw_str_clear(&s);
}

/* The longest name is whole while there is room for it, however its width is rounded. */
static void names_that_fit_are_whole(void **state)
{
    (void)state;
    for (int n = 1; n <= 24; n++) {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        char name[32] = {0};
        memset(name, 'x', (size_t)n);
        const lw_bar bar = {.name = name, .value = 1};
        lw_plot_bars(&(lw_plot){.title = "bars", .width = 540}, &bar, 1, &s);
        assert_non_null(strstr(lw_str_c(&s), name));
        assert_null(strstr(lw_str_c(&s), "\xe2\x80\xa6"));
    }
}

/* However long names are, bars begin left of where they end, and values stand beside them. */
static void long_names_leave_bars_their_room(void **state)
{
    (void)state;
    static const char name[] = "/award/award_nominee/award_nominations./award/award_nomination/"
                               "and_more_of_a_name_that_is_wider_than_the_whole_\xc3\xbc/end";
    const lw_bar bars[] = {{.name = name, .value = 10}, {.name = "short", .value = 20}};
    const lw_plot p = {.title = "bars", .width = 400};
    lw_str s = {0};
    lw_plot_bars(&p, bars, 2, &s);
    assert_markup(lw_str_c(&s));
    const char *at = lw_str_c(&s);
    double width[2];
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "<rect x=\"") + 9;
        width[i] = strtod(strstr(at, "width=\"") + 7, NULL);
        assert_true(strtod(at, NULL) > 150 && strtod(at, NULL) + width[i] < 400);
    }
    assert_true(width[0] > 30 && fabs(width[1] / width[0] - 2) < 0.01);
    assert_null(strstr(lw_str_c(&s), name));
    assert_non_null(strstr(lw_str_c(&s), ">/award/"));
    assert_non_null(strstr(lw_str_c(&s), "\xc3\xbc/end</text>")); /* names differ at their ends */
    assert_non_null(strstr(lw_str_c(&s), ">short</text>"));
    lw_str_clear(&s);
}

/* All coordinates of paths: x of M, L and H. */
static void x_of_paths(const char *svg, double *least, double *most)
{
    *least = 1e9;
    *most = -1e9;
    for (const char *d = svg; (d = strstr(d, " d=\""));)
        for (d += 4; *d != '"'; d++)
            if (strchr("MLH", *d)) {
                double x = strtod(d + 1, NULL);
                *least = fmin(*least, x);
                *most = fmax(*most, x);
            }
}

/* Ranges far below the values, down to what a logarithm does not have, above the axis, without end. */
static void ranges_stay_in_the_plot(void **state)
{
    (void)state;
    const lw_bar far[] = {{.name = "a", .value = 2, .low = 0.3, .high = 9},
                          {.name = "b", .value = 3, .low = 1e-9, .high = 4},             /* cut */
                          {.name = "c", .value = 1, .low = 0, .high = 2},                /* cut */
                          {.name = "d", .value = 5, .low = 4, .high = (double)INFINITY}, /* cut */
                          {.name = "e", .value = 1, .low = -7, .high = 2}};
    const lw_bar near[] = {{.name = "a", .value = 2, .low = 0.3, .high = 9},
                           {.name = "b", .value = 5, .low = 1, .high = 7, .muted = true}};
    for (int k = 0; k < 3; k++) {
        const lw_plot p = {.width = 600, .log_x = k != 1, .dots = k == 2};
        lw_str s = {0};
        double least, most;
        lw_plot_bars(&p, far, LW_COUNT(far), &s);
        assert_markup(lw_str_c(&s));
        x_of_paths(lw_str_c(&s), &least, &most);
        assert_true(least >= 14 && most <= 586);
        /* ends are ticks but for those cut: three of low ends by the logarithm, one high end */
        assert_int_equal(count(lw_str_c(&s), "v8"), p.log_x ? 6 : 9);
        lw_str_clear(&s);
        lw_plot_bars(&p, near, LW_COUNT(near), &s);
        x_of_paths(lw_str_c(&s), &least, &most);
        assert_true(least >= 14 && most <= 586);
        assert_int_equal(count(lw_str_c(&s), "v8"), 4);
        /* of the muted one: name, value, text, range */
        assert_true(count(lw_str_c(&s), "var(--muted") >= 4);
        lw_str_clear(&s);
    }
}

/* The curve's points, of which the k-th coordinate is wanted: "M12.0 200.0L.." */
static double coordinate(const char *svg, int k)
{
    const char *d = strstr(strstr(svg, "fill=\"none\""), " d=\"") + 4;
    for (; k > 0; k--) {
        d += strcspn(d + 1, "ML ") + 1;
        assert_true(*d != '\0');
    }
    return atof(d + 1);
}

static void histograms_count_all_samples(void **state)
{
    (void)state;
    double v[64], middle[64];
    for (int i = 0; i < 64; i++) {
        v[i] = i < 32 ? 0.5 : i - 16.0; /* half of them in the first bin, then one in every other */
        middle[i] = i % 2 ? 1 : 100;
    }
    const lw_samples samples = {"a", v, 64, 0}, two = {"b", middle, 64, 0};
    const lw_plot p = {.title = "h"}, log = {.title = "h", .log_x = true};
    lw_str s = {0}, l = {0};
    lw_plot_histogram(&p, &samples, 1, &s);
    assert_markup(lw_str_c(&s));
    assert_non_null(strstr(lw_str_c(&s), "% of samples"));
    assert_non_null(strstr(lw_str_c(&s), ">50</text>")); /* the first bin's share is on the axis */
    double bottom = coordinate(lw_str_c(&s), 1), top = coordinate(lw_str_c(&s), 3);
    assert_true(bottom > top + 100);                             /* up at the left edge */
    assert_true(coordinate(lw_str_c(&s), 5) == top);             /* along the first bin */
    assert_true(coordinate(lw_str_c(&s), 7) > top + 100);        /* and down to the next */
    assert_true(coordinate(lw_str_c(&s), 2 * 65 + 1) == bottom); /* the last ends at 0 */
    lw_plot_histogram(&log, &two, 1, &l);
    assert_markup(lw_str_c(&l));
    assert_true(coordinate(lw_str_c(&l), 3) == coordinate(lw_str_c(&l), 2 * 64 + 1)); /* halves */
    lw_str_clear(&s);
    lw_str_clear(&l);
    const double far[] = {1e308, -1e308, (double)NAN, 3}, none[] = {(double)NAN};
    const lw_samples odd[] = {{"far", far, 4, 0}, {"none", none, 1, 0}, {"empty", far, 0, 0}};
    lw_plot_histogram(&p, odd, 3, &s);
    lw_plot_histogram(&log, odd + 1, 2, &l);
    assert_markup(lw_str_c(&s));
    assert_null(strstr(lw_str_c(&s), "nan"));
    assert_non_null(strstr(lw_str_c(&l), "no data"));
    lw_str_clear(&s);
    lw_str_clear(&l);
}

static void empty_plots_say_so(void **state)
{
    (void)state;
    const lw_plot p = {.log_x = true, .log_y = true};
    const double zero[2] = {0, 0};
    const lw_series nothing = {.name = "n", .y = zero, .n = 2};
    lw_str s[3] = {{0}};
    lw_plot_lines(&p, NULL, 0, &s[0]);
    lw_plot_lines(&p, &nothing, 1, &s[1]);
    lw_plot_bars(&p, NULL, 0, &s[2]);
    for (int i = 0; i < 3; i++) {
        assert_markup(lw_str_c(&s[i]));
        assert_non_null(strstr(lw_str_c(&s[i]), "no data"));
        lw_str_clear(&s[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_cover_their_data_with_few_ticks),
        cmocka_unit_test(log_axes_have_decades),
        cmocka_unit_test(narrow_log_axes_have_ticks_too),
        cmocka_unit_test(steps_have_whole_ticks),
        cmocka_unit_test(ticks_stand_where_they_are_wanted),
        cmocka_unit_test(labels_are_short),
        cmocka_unit_test(lines_skip_what_cannot_be_drawn),
        cmocka_unit_test(ends_and_lone_points_are_named),
        cmocka_unit_test(names_of_lone_points_fit),
        cmocka_unit_test(dots_stand_where_lengths_say_nothing),
        cmocka_unit_test(a_lone_point_is_a_dot),
        cmocka_unit_test(long_series_stay_small_and_keep_their_extremes),
        cmocka_unit_test(bars_are_as_long_as_their_values),
        cmocka_unit_test(names_that_fit_are_whole),
        cmocka_unit_test(long_names_leave_bars_their_room),
        cmocka_unit_test(ranges_stay_in_the_plot),
        cmocka_unit_test(histograms_count_all_samples),
        cmocka_unit_test(empty_plots_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
