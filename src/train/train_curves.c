/* SPDX-License-Identifier: Apache-2.0 */
/* Curves and pictures that a run directory holds: from metrics.jsonl and samples/. */
#include "train/train_curves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"
#include "session/session.h"

enum { CURVES_MAX = 8 };

/* Columns of a run's metrics.jsonl. */
typedef struct columns {
    json_t *rows;
    size_t n;
    double *v[CURVES_MAX], *step;
    char name[CURVES_MAX][32];
    int n_v;
} columns;

static int columns_load(const char *run, columns *c)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    *c = (columns){0};
    lw_path_join(&path, run, "metrics.jsonl");
    if (!lw_path_exists(lw_str_c(&path)))
        return 0;
    LW_TRY(lw_jsonl_load(lw_str_c(&path), &c->rows));
    c->n = json_array_size(c->rows);
    c->step = lw_calloc(c->n + 1, sizeof *c->step);
    for (size_t i = 0; c->step && i < c->n; i++)
        c->step[i] = json_number_value(json_object_get(json_array_get(c->rows, i), "step"));
    return c->step ? 0 : LW_ENOMEM;
}

static void columns_clear(columns *c)
{
    for (int k = 0; k < c->n_v; k++)
        lw_free(&c->v[k]);
    lw_free(&c->step);
    lw_json_drop(&c->rows);
}

/* Adds column `key` (gaps where a row lacks it); false when no row has it. */
static bool columns_add(columns *c, const char *key, const char *name)
{
    bool any = false;
    double *v = c->n_v < CURVES_MAX ? lw_calloc(c->n + 1, sizeof *v) : NULL;
    for (size_t i = 0; v && i < c->n; i++) {
        const json_t *x = json_object_get(json_array_get(c->rows, i), key);
        v[i] = json_is_number(x) ? json_number_value(x) : (double)NAN;
        any = any || json_is_number(x);
    }
    if (!any) {
        lw_free(&v);
        return false;
    }
    c->v[c->n_v] = v;
    snprintf(c->name[c->n_v], sizeof c->name[0], "%s", name);
    c->n_v++;
    return true;
}

/* Draws columns from `first` on; dots where values are sparse. */
static void draw(const columns *c, int first, const lw_plot *p, double smooth, bool dots,
                 lw_str *svg)
{
    lw_series s[CURVES_MAX];
    double x[CURVES_MAX][512];
    double y[CURVES_MAX][512];
    int n = 0;
    for (int k = first; k < c->n_v; k++, n++) {
        s[n] = (lw_series){.name = c->name[k],
                           .x = c->step,
                           .y = c->v[k],
                           .n = c->n,
                           .smooth = smooth,
                           .dots = dots};
        size_t m = 0;
        for (size_t i = 0; dots && i < c->n && m < 512;
             i++) /* sparse columns: only the rows that have them */
            if (isfinite(c->v[k][i])) {
                x[n][m] = c->step[i];
                y[n][m++] = c->v[k][i];
            }
        if (dots) {
            s[n].x = x[n];
            s[n].y = y[n];
            s[n].n = m;
        }
    }
    lw_plot_lines(p, s, (size_t)n, svg);
}

/* ---- the plots -------------------------------------------------------------------------- */

int lw_curves_loss(const char *run, const char *title, lw_str *svg)
{
    columns c;
    const lw_plot p = {.title = title, .x_label = "step", .y_label = "loss", .log_y = true};
    int rc = columns_load(run, &c);
    if (rc == 0 && columns_add(&c, "loss", "loss"))
        draw(&c, 0, &p, c.n > 80 ? 0.8 : 0.0, false, svg);
    columns_clear(&c);
    return rc;
}

static int one_column(const char *run, const char *key, const char *beside, const lw_plot *p,
                      bool dots, lw_str *svg)
{
    columns c;
    int rc = columns_load(run, &c);
    if (rc == 0 && columns_add(&c, key, key)) {
        if (beside)
            columns_add(&c, beside, beside);
        draw(&c, 0, p, 0.0, dots, svg);
    }
    columns_clear(&c);
    return rc;
}

int lw_curves_column(const char *run, const char *key, const lw_plot *p, lw_str *svg)
{
    return one_column(run, key, NULL, p, false, svg);
}

int lw_curves_points(const char *run, const char *key, const char *beside, const lw_plot *p,
                     lw_str *svg)
{
    return one_column(run, key, beside, p, true, svg);
}

/* What a run's config.yaml names as the (first) encoder of a column, in short: "resnet56" of
 * resnet_cifar10:nets/resnet56.safetensors; "" when it does not say. */
static int encoder_of(const char *run, const char *key, char out[64])
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *config = NULL;
    const char *spec = NULL;
    char *list[LW_ENCODERS_MOST];
    int32_t n;
    *out = '\0';
    if (!lw_path_exists(lw_path_join(&path, run, "config.yaml")))
        return 0;
    LW_TRY(lw_yaml_load(lw_str_c(&path), &config));
    spec = json_string_value(json_object_get(config, key));
    LW_TRY(lw_encoder_specs(spec && *spec ? spec : "none", list, &n));
    const char *first = list[0];
    for (const char *c = first; *c; c++)
        if ((*c == '/' || *c == ':') && c[1])
            first = c + 1;
    snprintf(out, 64, "%.60s", lw_str_eq(first, "none") ? "colours" : first);
    for (int32_t i = 0; i < n; i++)
        lw_free(&list[i]);
    char *end = strstr(out, ".safetensors");
    if (end)
        *end = '\0';
    return 0;
}

int lw_curves_heldout(const char *run, const char *metric, lw_str *svg)
{
    static const char *const parts[][2] = {
        {"", "fresh noises"}, {"_fixed", "fixed noises"}, {"_floor", "real pictures"}};
    bool outside = strcmp(metric, "eval_fd") == 0;
    char encoder[64], title[128];
    LW_TRY(encoder_of(run, outside ? "eval-encoder" : "encoder", encoder));
    snprintf(title, sizeof title, "Frechet distance%s%s, while training", *encoder ? ", " : "",
             encoder);
    const lw_plot p = {.title = title,
                       .x_label = "step",
                       .y_label = outside ? "in features that the loss does not see"
                                          : "in features of the loss, or colours",
                       .log_y = true};
    columns c;
    char key[48];
    int rc = columns_load(run, &c);
    for (size_t i = 0; rc == 0 && i < LW_COUNT(parts); i++) {
        snprintf(key, sizeof key, "%.30s%s", metric, parts[i][0]);
        columns_add(&c, key, parts[i][1]);
    }
    if (c.n_v)
        draw(&c, 0, &p, 0.0, true, svg);
    columns_clear(&c);
    return rc;
}

int lw_curves_drift(const char *run, lw_str *raw, lw_str *fd)
{
    columns c;
    int rc = columns_load(run, &c);
    const json_t *last = rc == 0 && c.n ? json_array_get(c.rows, c.n - 1) : NULL;
    const char *key;
    json_t *value;
    const lw_plot p = {.title = "drift: length of the raw drift",
                       .x_label = "step",
                       .y_label = "in units of the mean distance",
                       .log_y = true};
    if (last)
        json_object_foreach((json_t *)(uintptr_t)last, key, value)
        {
            char name[32];
            if (!lw_str_starts(key, "raw_drift_") || c.n_v >= 4)
                continue;
            snprintf(name, sizeof name, "tau %.16s", key + strlen("raw_drift_"));
            columns_add(&c, key, name);
        }
    if (c.n_v)
        draw(&c, 0, &p, 0.8, false, raw);
    columns_clear(&c);
    return rc == 0 ? lw_curves_heldout(run, "fd", fd) : rc;
}

/* The rows of a run that have both columns: seconds and distance; and the last floor. */
static int timed_points(const char *run, double **x, double **y, size_t *n, double *floor)
{
    columns c;
    int rc = columns_load(run, &c);
    *n = 0;
    if (rc == 0 && columns_add(&c, "time_s", "time_s") && columns_add(&c, "eval_fd", "eval_fd")) {
        for (size_t i = 0; i < c.n; i++)
            if (isfinite(c.v[0][i]) && isfinite(c.v[1][i])) {
                c.v[0][*n] = c.v[0][i];
                c.v[1][(*n)++] = c.v[1][i];
                *floor =
                    json_number_value(json_object_get(json_array_get(c.rows, i), "eval_fd_floor"));
            }
        *x = lw_steal(&c.v[0]);
        *y = lw_steal(&c.v[1]);
    }
    columns_clear(&c);
    return rc;
}

int lw_curves_wall(const char *const *run, const char *const *name, int n, lw_str *svg)
{
    double *x[LW_CURVES_RUNS] = {0}, *y[LW_CURVES_RUNS] = {0}, floor = 0, ends[2] = {0, 0};
    lw_series s[LW_CURVES_RUNS + 1];
    size_t points = 0;
    int rc = 0, drawn = 0;
    const lw_plot p = {.title = "Held-out distance against training time",
                       .x_label = "seconds",
                       .y_label = "Frechet distance in the features of --eval-encoder",
                       .log_y = true};
    LW_ASSERT(n <= LW_CURVES_RUNS, "%d runs in one plot", n);
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = timed_points(run[i], &x[i], &y[i], &points, &floor);
        if (rc < 0 || !points)
            break;
        ends[1] = fmax(ends[1], x[i][points - 1]);
        s[drawn++] = (lw_series){
            .name = name[i], .x = x[i], .y = y[i], .n = points, .dots = true, .color = 1 + i};
    }
    const double level[] = {floor, floor};
    s[drawn] = (lw_series){
        .name = "real pictures", .x = ends, .y = level, .n = 2, .dashed = true, .color = 7};
    if (rc == 0 && drawn == n)
        lw_plot_lines(&p, s, (size_t)n + (floor > 0), svg);
    for (int i = 0; i < n; i++) {
        lw_free(&x[i]);
        lw_free(&y[i]);
    }
    return rc;
}

/* ---- pictures --------------------------------------------------------------------------- */

/* The first of the lines of the grid in `path`, drawn at line `row` of `rows` of the film. */
static int film_row(const char *path, int32_t lines, int row, int rows, lw_image *film)
{
    LW_CLEANUP(lw_image_clear) lw_image grid = {0};
    LW_TRY(lw_image_load(path, &grid));
    int32_t height = grid.height / lines, width = grid.width;
    if (!film->rgb)
        LW_TRY(lw_image_init(film, width, height * rows));
    if (width != film->width || height * rows != film->height)
        return lw_fail(LW_EFORMAT, "%s: its size is not that of the grids before it", path);
    memcpy(film->rgb + (size_t)row * (size_t)height * (size_t)width * 3, grid.rgb,
           (size_t)height * (size_t)width * 3);
    return 0;
}

int lw_curves_film(const char *run, int32_t lines, lw_film *film)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    *film = (lw_film){0};
    lw_path_join(&dir, run, "samples");
    if (!lw_path_is_dir(lw_str_c(&dir)))
        return 0;
    int rc = lw_list_dir(lw_str_c(&dir), &names, &n);
    size_t rows = LW_MIN(n, (size_t)LW_FILM_ROWS);
    for (size_t k = 0; rc == 0 && rows > 1 && k < rows; k++) {
        const char *file = names[k * (n - 1) / (rows - 1)];
        long long step = 0;
        if (sscanf(file, "step_%lld.png", &step) != 1)
            continue;
        snprintf(film->step[k], sizeof film->step[k], "%lld", step);
        film->rows = (int)rows;
        rc = film_row(lw_path_join(&path, lw_str_c(&dir), file), lines, (int)k, (int)rows,
                      &film->picture);
    }
    lw_list_free(&names, n);
    return rc;
}

void lw_film_clear(lw_film *film)
{
    lw_image_clear(&film->picture);
    *film = (lw_film){0};
}

lw_figure lw_film_figure(lw_film *film, const char *title, const char *caption)
{
    for (int i = 0; i < film->rows; i++)
        film->names[i] = film->step[i];
    return (lw_figure){.picture = &film->picture,
                       .title = title,
                       .caption = caption,
                       .rows = film->names,
                       .n_rows = film->rows};
}
