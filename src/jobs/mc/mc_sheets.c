/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most and least certain pictures, by trace_pre at the most passes: kept small beside the scores,
 * so that the page needs neither the data nor the network.
 *
 *   exp0_pictures.npz   row [2][k] places in `paths`, pixels [2][k][h][w][3]; 0: least certain
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/mc/mc_page.h"
#include "jobs/mc/mc_parts.h"

enum { SHOWN = 20, COLUMNS = 5, SIDE = 96, LARGEST = 1024 };

/* ---- keeping them ------------------------------------------------------------------------------ */

typedef struct scored {
    double score;
    int64_t at;
} scored;

/* Upwards; of equal scores the first in the data. */
static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* One picture as the network sees it, but not larger than `side`. */
static int keep_pixels(const lw_dataset *d, int64_t i, int32_t h, int32_t w, uint8_t *to)
{
    const uint8_t *from = d->pixels + i * lw_data_row_size(d);
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    const lw_preparation small = lw_preparation_square(SIDE);
    LW_TRY(lw_image_init(&im, d->w, d->h));
    for (int64_t k = 0; k < (int64_t)d->h * d->w; k++)
        for (int c = 0; c < 3; c++)
            im.rgb[3 * k + c] = from[k * d->channels + lw_shown_channel(d->channels, c)];
    if (h == d->h && w == d->w) {
        memcpy(to, im.rgb, (size_t)h * (size_t)w * 3);
        return 0;
    }
    return lw_prepare(&small, &im, to);
}

static int sort_pictures(const mc_model *m, scored *all)
{
    for (int64_t i = 0; i < m->n; i++) {
        all[i] = (scored){0, i};
        for (int32_t k = 0; k < m->c->trials; k++)
            all[i].score += mc_at(m, m->c->n_passes - 1, k)[i][LW_PASS_TRACE_PRE];
    }
    qsort(all, (size_t)m->n, sizeof *all, by_score);
    return 0;
}

int lw_mc_sheets_write(const mc_model *m)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_CLEANUP(lw_array_clear) lw_array row = {0};
    LW_CLEANUP(lw_array_clear) lw_array pixels = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_free) scored *all = lw_calloc((size_t)m->n, sizeof *all);
    const lw_dataset *d = m->data;
    bool whole = d->h <= SIDE && d->w <= SIDE;
    const int64_t k = LW_MIN((m->n + 1) / 2, (int64_t)SHOWN);
    const int64_t shape[] = {2, k, whole ? d->h : SIDE, whole ? d->w : SIDE, 3};
    if (!all)
        return LW_ENOMEM;
    LW_TRY(lw_array_init(&row, LW_ELEM_I64, 2, shape));
    LW_TRY(lw_array_init(&pixels, LW_ELEM_U8, 5, shape));
    LW_TRY(sort_pictures(m, all));
    for (int64_t i = 0; i < 2 * k; i++) {
        int64_t at = all[i < k ? m->n - 1 - i : i - k].at;
        ((int64_t *)row.data)[i] = at;
        LW_TRY(keep_pixels(d, at, (int32_t)shape[2], (int32_t)shape[3],
                           (uint8_t *)pixels.data + i * shape[2] * shape[3] * 3));
    }
    LW_TRY(lw_npz_add(&z, "row", &row));
    LW_TRY(lw_npz_add(&z, "pixels", &pixels));
    lw_mc_path(m, "exp0_nested_mc", true, "exp0_pictures.npz", &path);
    return path.failed ? LW_ENOMEM : lw_npz_save(lw_str_c(&path), &z);
}

/* ---- showing them ------------------------------------------------------------------------------ */

/* What is read may be of anyone: NULL unless it is as above. */
static const lw_array *find_pixels(mc_shown *m, const int64_t **row)
{
    const lw_array *a = lw_npz_find(&m->pictures, "pixels"), *r = lw_npz_find(&m->pictures, "row");
    if (!a || !r || a->type != LW_ELEM_U8 || a->rank != 5 || r->type != LW_ELEM_I64 ||
        r->rank != 2 || a->shape[0] != 2 || r->shape[0] != 2 || a->shape[1] != r->shape[1] ||
        a->shape[1] < 1 || a->shape[1] > SHOWN || a->shape[4] != 3 || a->shape[2] < 1 ||
        a->shape[3] < 1 || a->shape[2] > LARGEST || a->shape[3] > LARGEST)
        return NULL;
    *row = r->data;
    for (int64_t i = 0; i < r->count; i++)
        if ((*row)[i] < 0 || (*row)[i] >= m->n)
            return NULL;
    return a;
}

static int draw(const lw_array *a, int which, lw_image *out)
{
    const int32_t h = (int32_t)a->shape[2], w = (int32_t)a->shape[3];
    const lw_grid g = {.columns = COLUMNS,
                       .padding = LW_MAX(h, w) > SIDE / 2 ? 2 : 1,
                       .scale = LW_MAX(SIDE / LW_MAX(h, w), 1),
                       .see_through = true};
    return lw_grid_u8(&g, (const uint8_t *)a->data + which * a->shape[1] * h * w * 3,
                      (int32_t)a->shape[1], h, w, out);
}

static void add_names(mc_page *p, const mc_shown *m, const int64_t *row, int64_t k)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    char title[160], name[256];
    static const char *const names[] = {
        "", "least certain", "trace_pre", "most certain", "trace_pre", NULL};
    const double *score = m->mean[LW_PASS_TRACE_PRE];
    lw_table_column(&t, "place", LW_LEFT);
    for (int i = 1; names[i]; i++)
        lw_table_column(&t, names[i], i % 2 ? LW_LEFT : LW_RIGHT);
    for (int64_t i = 0; i < k; i++) {
        lw_table_cell(&t, "%lld", (long long)i + 1);
        for (int which = 0; which < 2; which++) {
            int64_t at = row[which * k + i];
            lw_clean(name, sizeof name, m->name[at]);
            lw_table_cell(&t, "%s", name);
            lw_table_number(&t, score ? score[at] : (double)NAN, 4);
        }
    }
    snprintf(title, sizeof title, "%s: names and scores of these pictures", m->label);
    lw_html_fold_begin(p->html, title);
    lw_html_table(p->html, &t, NULL, NULL);
    lw_html_fold_end(p->html);
}

static int add_sheets(mc_page *p, mc_shown *m, bool *begun)
{
    const int64_t *row;
    const lw_array *a = find_pixels(m, &row);
    LW_CLEANUP(lw_image_clear) lw_image least = {0};
    LW_CLEANUP(lw_image_clear) lw_image most = {0};
    char title[2][128];
    if (!a)
        return 0;
    LW_TRY(draw(a, 0, &least));
    LW_TRY(draw(a, 1, &most));
    if (!*begun) {
        lw_html_section(p->html, "Least and most certain pictures");
        lw_html_text(p->html, "By trace_pre at the most passes, mean over trials; row by row from "
                              "the extreme on, as the network sees them. None was picked by hand.");
        *begun = true;
    }
    snprintf(title[0], sizeof title[0], "%s: least certain", m->label);
    snprintf(title[1], sizeof title[1], "%s: most certain", m->label);
    const lw_figure f[] = {
        {.picture = &least, .title = title[0], .caption = "the highest scores, highest first"},
        {.picture = &most, .title = title[1], .caption = "the lowest scores, lowest first"}};
    lw_html_pictures(p->html, f, LW_COUNT(f));
    add_names(p, m, row, a->shape[1]);
    return 0;
}

int lw_mc_page_pictures(mc_page *p)
{
    bool begun = false;
    for (size_t i = 0; i < p->n; i++)
        LW_TRY(add_sheets(p, &p->model[i], &begun));
    return 0;
}
