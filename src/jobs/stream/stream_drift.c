/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the frames that go out, their plots and their page. */
#include "jobs/stream/stream_drift.h"

#include <stdio.h>
#include <string.h>

#include "formats/formats.h"
#include "jobs/stream/stream_job.h"
#include "report/report.h"

static const int64_t shown[] = {0, 100, 250, 499};

/* Frames of one kind, as they come. */
typedef struct seen {
    lw_frame_series *series;
    lw_frame_numbers *frames;
    size_t n, cap;
} seen;

/* Of another run, from its metrics.json. */
typedef struct other {
    json_t *file;
    double *v[LW_SERIES_NUMBERS];
    size_t n;
} other;

struct lw_stream_drift {
    lw_str dir;
    lw_image im;  /* a frame on its way into a picture */
    seen out, in; /* of the network: what it makes, and what it is given */
    other other;
};

static const struct {
    const char *title, *meaning;
} words[LW_SERIES_NUMBERS] = {
    {"Variance", "of all values of a frame; falls when pictures fade"},
    {"Variance in time", "of a value within 10 frames; 0 when the picture stands still"},
    {"Colour drift", "how far the mean colour is from that of the first frame"},
    {"Repetition", "largest cosine with one of the 5 frames before; 1: the same again"},
    {"Detail", "mean difference of neighbours; falls when pictures blur, rises with noise"},
    {"Colour spread", "standard deviation within a channel; 0 when one colour is left"},
};

static void seen_clear(seen *s)
{
    lw_frame_series_free(&s->series);
    lw_free(&s->frames);
}

static int seen_add(seen *s, const uint8_t *rgb)
{
    LW_TRY(lw_grow(&s->frames, &s->cap, s->n + 1, sizeof *s->frames));
    lw_frame_series_add(s->series, rgb, &s->frames[s->n]);
    s->n++;
    return 0;
}

void lw_stream_drift_free(lw_stream_drift **pp)
{
    lw_stream_drift *d = *pp;
    if (!d)
        return;
    for (int k = 0; k < LW_SERIES_NUMBERS; k++)
        lw_free(&d->other.v[k]);
    lw_json_drop(&d->other.file);
    seen_clear(&d->out);
    seen_clear(&d->in);
    lw_image_clear(&d->im);
    lw_str_clear(&d->dir);
    lw_free(pp);
}

static int read_other(const char *dir, other *o)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const json_t *series, *row;
    lw_path_join(&path, dir, "metrics.json");
    if (path.failed)
        return LW_ENOMEM;
    LW_TRY(lw_json_load(lw_str_c(&path), &o->file));
    LW_TRY(lw_json_get_object(o->file, lw_str_c(&path), "series", &series));
    for (int k = 0; k < LW_SERIES_NUMBERS; k++) {
        LW_TRY(lw_json_get_array(series, lw_str_c(&path), lw_series_names[k], &row));
        if (k > 0 && json_array_size(row) != o->n)
            return lw_fail(LW_EFORMAT, "%s: its series have several lengths", lw_str_c(&path));
        o->n = json_array_size(row);
        o->v[k] = lw_calloc(o->n, sizeof(double));
        if (!o->v[k])
            return LW_ENOMEM;
        for (size_t i = 0; i < o->n; i++)
            o->v[k][i] = json_number_value(json_array_get(row, i));
    }
    return 0;
}

int lw_stream_drift_new(const char *dir, const char *beside, int32_t w, int32_t h,
                        lw_stream_drift **out)
{
    LW_CLEANUP(lw_stream_drift_free) lw_stream_drift *d = lw_calloc(1, sizeof *d);
    if (!d)
        return LW_ENOMEM;
    lw_str_add(&d->dir, dir);
    if (d->dir.failed)
        return LW_ENOMEM;
    if (beside)
        LW_TRY(read_other(beside, &d->other));
    LW_TRY(lw_mkdirs(dir));
    LW_TRY(lw_image_init(&d->im, w, h));
    LW_TRY(lw_frame_series_new(w, h, &d->out.series));
    LW_TRY(lw_frame_series_new(w, h, &d->in.series));
    *out = lw_steal(&d);
    return 0;
}

/* A file of the folder. */
static const char *file_in(const lw_stream_drift *d, const char *name, lw_str *path)
{
    path->len = 0;
    return lw_path_join(path, lw_str_c(&d->dir), name);
}

static void picture_name(char buf[32], int64_t number)
{
    snprintf(buf, 32, "frame_%06lld.png", (long long)number);
}

int lw_stream_drift_add(lw_stream_drift *d, const uint8_t *rgb, const uint8_t *in)
{
    for (size_t i = 0; i < LW_COUNT(shown); i++)
        if (shown[i] == (int64_t)d->out.n) {
            LW_CLEANUP(lw_str_clear) lw_str path = {0};
            char name[32];
            picture_name(name, shown[i]);
            memcpy(d->im.rgb, rgb, (size_t)d->im.width * (size_t)d->im.height * 3);
            file_in(d, name, &path);
            LW_TRY(path.failed ? LW_ENOMEM : lw_png_save(lw_str_c(&path), &d->im, NULL));
        }
    if (in)
        LW_TRY(seen_add(&d->in, in));
    return seen_add(&d->out, rgb);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int save_csv(const lw_stream_drift *d)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, path = {0};
    lw_table_column(&t, "frame", LW_RIGHT);
    for (int k = 0; k < LW_SERIES_NUMBERS; k++)
        lw_table_column(&t, lw_series_names[k], LW_RIGHT);
    for (size_t i = 0; i < d->out.n; i++) {
        lw_table_cell(&t, "%zu", i);
        for (int k = 0; k < LW_SERIES_NUMBERS; k++)
            lw_table_plain(&t, d->out.frames[i].v[k], 9);
    }
    LW_TRY(lw_table_ok(&t));
    lw_table_csv(&t, &text);
    file_in(d, "metrics.csv", &path);
    return text.failed || path.failed ? LW_ENOMEM
                                      : lw_file_write(lw_str_c(&path), lw_str_c(&text), text.len);
}

static json_t *series_json(const seen *s)
{
    json_t *series = json_object();
    for (int k = 0; k < LW_SERIES_NUMBERS; k++) {
        json_t *row = json_array();
        for (size_t i = 0; i < s->n; i++)
            json_array_append_new(row, lw_json_real(s->frames[i].v[k]));
        json_object_set_new(series, lw_series_names[k], row);
    }
    return series;
}

static int save_json(const lw_stream_drift *d, const char *what, const lw_series_verdict *v)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *all = lw_series_verdict_json(v);
    json_object_set_new(all, "what", json_string(what));
    json_object_set_new(all, "frames", json_integer((json_int_t)d->out.n));
    json_object_set_new(all, "series", series_json(&d->out));
    json_object_set_new(all, "input_series", series_json(&d->in));
    file_in(d, "metrics.json", &path);
    return path.failed ? LW_ENOMEM : lw_json_save(lw_str_c(&path), all);
}

/* The plot of one number, also as a file. room: a number for each frame of both series. */
static int plot(const lw_stream_drift *d, int k, double *room, lw_str *svg)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, name = {0};
    for (size_t i = 0; i < d->out.n; i++)
        room[i] = d->out.frames[i].v[k];
    for (size_t i = 0; i < d->in.n; i++)
        room[d->out.n + i] = d->in.frames[i].v[k];
    const lw_series s[] = {{.name = "output", .y = room, .n = d->out.n},
                           {.name = "input", .y = room + d->out.n, .n = d->in.n, .dashed = true},
                           {.name = "beside", .y = d->other.v[k], .n = d->other.n, .dashed = true}};
    lw_plot_lines(&(lw_plot){.title = words[k].title, .x_label = "frame", .from_zero = true}, s,
                  d->other.n ? 3 : 2, svg);
    lw_str_addf(&name, "%s.svg", lw_series_names[k]);
    file_in(d, lw_str_c(&name), &path);
    return svg->failed || name.failed || path.failed
               ? LW_ENOMEM
               : lw_file_write(lw_str_c(&path), lw_str_c(svg), svg->len);
}

/* A limit, and behind it the other run's number where that is known. */
static const char *limit_text(const lw_stream_drift *d, const char *key, const char *limit,
                              char buf[128])
{
    const json_t *there = d->other.file ? json_object_get(d->other.file, key) : NULL;
    if (there)
        snprintf(buf, 128, "%s; beside: %.3g", limit, json_number_value(there));
    else
        snprintf(buf, 128, "%s", limit);
    return buf;
}

static void add_verdict(const lw_stream_drift *d, const lw_series_verdict *v, lw_html *h)
{
    char change[32], ratios[80], deviation[32], least[80], beside[2][128];
    snprintf(change, sizeof change, "%.3g", v->change);
    snprintf(ratios, sizeof ratios, "%.3g over %.3g; more than 0.7, less than 1 / 0.7", v->ratio,
             v->input_ratio);
    snprintf(deviation, sizeof deviation, "%.3g", v->deviation);
    snprintf(least, sizeof least, "more than %.3g (the input's: %.3g)", v->least,
             v->input_deviation);
    const bool changed = !(v->change > LW_SERIES_RATIO && v->change < 1 / LW_SERIES_RATIO);
    const lw_card cards[] = {
        {"Verdict", v->stable ? "stable" : "decays", "the numbers beside pass",
         v->stable ? LW_MARK_GOOD : LW_MARK_BAD},
        {"Variance, last tenth over first: output's over input's", change,
         limit_text(d, "change", ratios, beside[0]), changed ? LW_MARK_BAD : LW_MARK_GOOD},
        {"Standard deviation at the end", deviation, limit_text(d, "std", least, beside[1]),
         v->deviation > v->least ? LW_MARK_GOOD : LW_MARK_BAD}};
    lw_html_cards(h, cards, LW_COUNT(cards));
}

/* The frames that were kept, read back. */
static int add_pictures(const lw_stream_drift *d, lw_html *h)
{
    lw_image im[LW_COUNT(shown)] = {{0}};
    lw_figure figures[LW_COUNT(shown)] = {{0}};
    char title[LW_COUNT(shown)][48];
    size_t n = 0;
    int rc = 0;
    for (; n < LW_COUNT(shown) && shown[n] < (int64_t)d->out.n && rc == 0; n++) {
        LW_CLEANUP(lw_str_clear) lw_str path = {0};
        char name[32];
        picture_name(name, shown[n]);
        snprintf(title[n], sizeof title[n], "Frame %lld", (long long)shown[n]);
        file_in(d, name, &path);
        rc = path.failed ? LW_ENOMEM : lw_image_load(lw_str_c(&path), &im[n]);
        figures[n] = (lw_figure){.picture = &im[n], .title = title[n]};
    }
    if (rc == 0) {
        lw_html_section(h, "Frames");
        lw_html_pictures(h, figures, n);
    }
    for (size_t i = 0; i < n; i++)
        lw_image_clear(&im[i]);
    return rc;
}

static int save_page(const lw_stream_drift *d, const char *what, const lw_series_verdict *v,
                     const char *const *svgs)
{
    LW_CLEANUP(lw_html_free) lw_html *h = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *meanings[LW_SERIES_NUMBERS];
    for (int k = 0; k < LW_SERIES_NUMBERS; k++)
        meanings[k] = words[k].meaning;
    LW_TRY(lw_html_new("Do the frames decay?", what, &h));
    add_verdict(d, v, h);
    lw_html_section(h, "Numbers of each frame");
    lw_html_text(
        h,
        "Values count from -1 to 1; those of the output are in `metrics.csv`, those of the input "
        "too in `metrics.json`. The input is what the network is given: its frames, cut and "
        "resized, before `--degrade` made them worse; with `--feed-back` those alone that are not "
        "its "
        "own pictures.");
    lw_html_plots(h, svgs, meanings, LW_SERIES_NUMBERS);
    LW_TRY(add_pictures(d, h));
    file_in(d, "report.html", &path);
    return path.failed ? LW_ENOMEM : lw_html_save(h, lw_str_c(&path));
}

static int save_all(const lw_stream_drift *d, const char *what, const lw_series_verdict *v,
                    double *room, lw_str *svg)
{
    const char *svgs[LW_SERIES_NUMBERS];
    LW_TRY(save_csv(d));
    LW_TRY(save_json(d, what, v));
    for (int k = 0; k < LW_SERIES_NUMBERS; k++) {
        LW_TRY(plot(d, k, room, &svg[k]));
        svgs[k] = lw_str_c(&svg[k]);
    }
    return save_page(d, what, v, svgs);
}

int lw_stream_drift_finish(lw_stream_drift *d, const char *what, lw_series_verdict *out)
{
    lw_str svg[LW_SERIES_NUMBERS] = {{0}};
    *out = (lw_series_verdict){0};
    if (d->out.n == 0)
        return 0;
    LW_CLEANUP(lw_free) double *room = lw_calloc(d->out.n + d->in.n, sizeof *room);
    if (!room)
        return LW_ENOMEM;
    *out = lw_series_judge(d->out.frames, (int64_t)d->out.n, d->in.frames, (int64_t)d->in.n);
    int rc = save_all(d, what, out, room, svg);
    for (int k = 0; k < LW_SERIES_NUMBERS; k++)
        lw_str_clear(&svg[k]);
    return rc;
}
