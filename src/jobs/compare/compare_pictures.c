/* SPDX-License-Identifier: Apache-2.0 */
/* The page's pictures: grids side by side, controls, refusals, nearest training pictures, grids
 * while training. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"
#include "train/train_curves.h"

enum { REFUSED_COLUMNS = 8, REFUSED_ROWS = 7, NEAR_COLUMNS = 12, NEAR_ROWS = 4, GRID_ROWS = 20 };

/* Pixels of the page's grids for one of a picture: the page shrinks what is wider than a column. */
static int32_t grid_scale(const comparing *w)
{
    return w->side <= 16 ? 4 : w->side <= 32 ? 2 : 1;
}

/* ---- side by side ----------------------------------------------------------------------- */

enum { BESIDE = 5 + LW_COMPARE_MAX_ALPHAS }; /* real, drift, guided, DDPM as the page shows it */

typedef struct beside {
    lw_image grid[BESIDE];
    char title[BESIDE][96];
    lw_figure figure[BESIDE];
    size_t n;
    char name[GRID_ROWS][16];
    const char *names[GRID_ROWS];
    int rows;
} beside;

static int add_grid(const comparing *w, const compare_set *s, const char *caption, beside *b)
{
    LW_TRY(lw_compare_grid(w, s, 8, grid_scale(w), true, &b->grid[b->n]));
    b->figure[b->n] = (lw_figure){.picture = &b->grid[b->n],
                                  .title = b->title[b->n],
                                  .caption = caption,
                                  .rows = s->classes ? b->names : NULL,
                                  .n_rows = b->rows};
    b->n++;
    return 0;
}

static int fill_beside(const comparing *w, const char *ddpm, beside *b)
{
    const lw_compare_shown shown = lw_compare_show(w);
    b->rows = LW_MIN(w->classes, GRID_ROWS);
    for (int r = 0; r < b->rows; r++)
        b->names[r] = lw_source_class(w->drift, r, b->name[r]);
    snprintf(b->title[0], sizeof b->title[0], "Real, held out");
    LW_TRY(add_grid(w, &w->real_set, "never seen in training", b));
    snprintf(b->title[1], sizeof b->title[1], "Drift, 1 evaluation each");
    LW_TRY(add_grid(w, &w->drift_set, "the first of the seed, none picked", b));
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_GUIDED) {
            snprintf(b->title[b->n], sizeof b->title[0], "Drift, alpha %g", w->entry[i].how.alpha);
            LW_TRY(add_grid(w, &w->entry[i].first, "the same noise, guided", b));
        }
    for (int i = 0; i < shown.n; i++) {
        const compare_entry *e = shown.entry[i];
        snprintf(b->title[b->n], sizeof b->title[0], "%.60s, %d evaluation%s", shown.as[i],
                 e->how.evaluations, e->how.evaluations == 1 ? "" : "s");
        LW_TRY(add_grid(
            w, &e->first,
            e->how.sampler == LW_SAMPLER_ANCESTRAL ? "the same U-Net, ancestral sampling" : ddpm,
            b));
    }
    return 0;
}

int lw_compare_pictures_part(const comparing *w, lw_html *page)
{
    beside b = {.n = 0};
    char ddpm[96];
    snprintf(ddpm, sizeof ddpm, "the same U-Net, sampled by %s, %s",
             lw_compare_sampler_name(lw_compare_usual(w, 1)),
             w->ddpm->averaged ? "averaged weights (EMA)" : "last weights");
    int rc = fill_beside(w, ddpm, &b);
    if (rc == 0) {
        lw_html_section(page, "Pictures");
        if (w->drift_set.classes)
            lw_html_text(page, "Every row is one class. The generators were asked for it; nothing "
                               "was sorted or left out.");
        lw_html_pictures(page, b.figure, b.n);
    }
    for (size_t i = 0; i < BESIDE; i++)
        lw_image_clear(&b.grid[i]);
    return rc;
}

/* ---- controls and refusals -------------------------------------------------------------- */

static const char *const control_names[LW_CONTROLS] = {"noise", "average", "halves",  "blurred",
                                                       "means", "noised",  "repeated"};

static int draw_controls(const comparing *w, lw_image *out)
{
    enum { EACH = 8 };
    static const lw_junk_kind kinds[LW_CONTROLS] = {
        LW_JUNK_NOISE, LW_JUNK_AVERAGE, LW_JUNK_SPLICE,  LW_JUNK_BLUR2,
        LW_JUNK_MEAN,  LW_JUNK_NOISED,  LW_JUNK_REPEATED};
    int64_t floats = (int64_t)w->side * w->side * 3;
    LW_CLEANUP(lw_junk_free) lw_junk *junk = NULL;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(LW_CONTROLS * EACH * floats), sizeof *x);
    if (!x)
        return LW_ENOMEM;
    LW_TRY(lw_junk_new(lw_scorer_heldout(w->scorer), 2024, &junk));
    for (int k = 0; k < LW_CONTROLS; k++)
        for (int i = 0; i < EACH; i++)
            lw_junk_make(junk, kinds[k], i, x + (k * EACH + i) * floats);
    const lw_grid g = {.columns = EACH, .padding = 1, .scale = grid_scale(w), .see_through = true};
    return lw_grid_f32(&g, x, LW_CONTROLS * EACH, w->side, w->side, out);
}

/* The first pictures whose class the judge does not see; their number of all in *refused. */
static int draw_refused(const comparing *w, const compare_set *s, lw_image *out, int64_t *refused)
{
    enum { MOST = REFUSED_COLUMNS * REFUSED_ROWS };
    int64_t floats = (int64_t)w->side * w->side * 3;
    LW_CLEANUP(lw_free) float *own = lw_calloc((size_t)s->n, sizeof *own);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(MOST * floats), sizeof *x);
    if (!own || !x)
        return LW_ENOMEM;
    LW_TRY(lw_scorer_own(w->scorer, s->x, s->classes, s->n, own));
    *refused = 0;
    for (int64_t i = 0; i < s->n; i++)
        if ((double)own[i] < LW_JUDGE_SURE && (*refused)++ < MOST)
            memcpy(x + (*refused - 1) * floats, s->x + i * floats, (size_t)floats * sizeof *x);
    const lw_grid g = {
        .columns = REFUSED_COLUMNS, .padding = 1, .scale = grid_scale(w), .see_through = true};
    return *refused ? lw_grid_f32(&g, x, (int32_t)LW_MIN(*refused, MOST), w->side, w->side, out)
                    : 0;
}

/* The first pictures of a set, each left of the training picture nearest to it. */
static int draw_nearest(const comparing *w, const compare_set *s, lw_image *out)
{
    enum { PAIRS = NEAR_COLUMNS / 2 * NEAR_ROWS };
    int64_t floats = (int64_t)w->side * w->side * 3, n = LW_MIN(s->n, PAIRS);
    double distance[PAIRS];
    LW_CLEANUP(lw_free) float *near = lw_calloc((size_t)(PAIRS * floats), sizeof *near);
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)(2 * PAIRS * floats), sizeof *x);
    if (!near || !x)
        return LW_ENOMEM;
    LW_TRY(lw_scorer_nearest(w->scorer, s->x, n, near, distance));
    for (int64_t i = 0; i < n; i++) {
        memcpy(x + 2 * i * floats, s->x + i * floats, (size_t)floats * sizeof *x);
        memcpy(x + (2 * i + 1) * floats, near + i * floats, (size_t)floats * sizeof *x);
    }
    const lw_grid g = {
        .columns = NEAR_COLUMNS, .padding = 1, .scale = grid_scale(w), .see_through = true};
    return lw_grid_f32(&g, x, 2 * PAIRS, w->side, w->side, out);
}

/* Nothing learnt by heart? To be looked at as well as measured. */
static int add_nearest(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_image_clear) lw_image drift = {0};
    LW_CLEANUP(lw_image_clear) lw_image ddpm = {0};
    static const char caption[] =
        "left of each pair the sample, right the training picture nearest to it";
    LW_TRY(draw_nearest(w, &w->drift_set, &drift));
    LW_TRY(draw_nearest(w, &w->ddpm_set, &ddpm));
    const lw_figure f[] = {
        {.picture = &drift, .title = "Drift: nearest training pictures", .caption = caption},
        {.picture = &ddpm, .title = "DDPM: nearest training pictures", .caption = caption}};
    lw_html_pictures(page, f, LW_COUNT(f));
    return 0;
}

/* What the judge refuses of a set, unless that is nothing. */
static int add_refused(const comparing *w, const compare_set *s, const char *title, lw_image *im,
                       char text[64], lw_figure *f, size_t *n)
{
    int64_t refused;
    LW_TRY(draw_refused(w, s, im, &refused));
    snprintf(text, 64, "the first of %lld of %lld", (long long)refused, (long long)s->n);
    if (refused)
        f[(*n)++] = (lw_figure){.picture = im, .title = title, .caption = text};
    return 0;
}

int lw_compare_evidence_part(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_image_clear) lw_image controls = {0};
    LW_CLEANUP(lw_image_clear) lw_image drift = {0};
    LW_CLEANUP(lw_image_clear) lw_image ddpm = {0};
    char text[2][64];
    size_t k = 0;
    lw_figure f[3];
    LW_TRY(draw_controls(w, &controls));
    f[k++] = (lw_figure){&controls, "The controls",
                         "made from real pictures, scored like the generators', meant to fail",
                         control_names, LW_CONTROLS};
    if (lw_scorer_has_judge(w->scorer) && w->drift_set.classes && w->ddpm_set.classes) {
        LW_TRY(
            add_refused(w, &w->drift_set, "Drift: refused by the judge", &drift, text[0], f, &k));
        LW_TRY(add_refused(w, &w->ddpm_set, "DDPM: refused by the judge", &ddpm, text[1], f, &k));
    }
    lw_html_pictures(page, f, k);
    return add_nearest(w, page);
}

/* ---- while training --------------------------------------------------------------------- */

int lw_compare_films(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_film_clear) lw_film drift = {0};
    LW_CLEANUP(lw_film_clear) lw_film ddpm = {0};
    lw_figure f[2];
    size_t k = 0;
    LW_TRY(lw_curves_film(w->c->drift, &drift));
    LW_TRY(lw_curves_film(w->c->ddpm, &ddpm));
    if (drift.rows)
        f[k++] = lw_film_figure(&drift, "Drift while it learns", LW_FILM_CAPTION);
    if (ddpm.rows)
        f[k++] = lw_film_figure(&ddpm, "DDPM while it learns", LW_FILM_CAPTION);
    if (k)
        lw_html_pictures(page, f, k);
    return 0;
}
