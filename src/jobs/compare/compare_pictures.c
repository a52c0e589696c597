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

enum {
    BESIDE = 2 + COMPARE_SHOWN + (1 + LW_COMPARE_OTHERS) * LW_COMPARE_MAX_STRENGTHS
}; /* real, drift, its guided, others as shown, their guided */

typedef struct beside {
    lw_image grid[BESIDE];
    char title[BESIDE][96], caption[COMPARE_SHOWN][96];
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

/* How the pictures of a setting were made. */
static void caption_of(const compare_other *o, lw_compare_setting how, char buf[96])
{
    char text[64];
    const char *net = o->kind == COMPARE_FLOW ? "the flow's network" : "the same U-Net";
    if (how.sampler == LW_SAMPLER_ANCESTRAL)
        snprintf(buf, 96, "%s, ancestral sampling", net);
    else
        snprintf(buf, 96, "%s, sampled by %s, %s", net, lw_compare_how(text, how),
                 o->source->averaged ? "averaged weights (EMA)" : "last weights");
}

static int fill_beside(const comparing *w, beside *b)
{
    const lw_compare_shown shown = lw_compare_show(w);
    b->rows = LW_MIN(w->classes, GRID_ROWS);
    for (int r = 0; r < b->rows; r++)
        b->names[r] = lw_source_class(w->drift, r, b->name[r]);
    snprintf(b->title[0], sizeof b->title[0], "Real, held out");
    LW_TRY(add_grid(w, &w->real_set, "never seen in training", b));
    snprintf(b->title[1], sizeof b->title[1], "Drift, 1 evaluation each");
    if (w->c->n_alpha)
        snprintf(b->title[1], sizeof b->title[1], "Drift at its best, alpha %g",
                 lw_compare_alpha(w->out->drift_alpha));
    LW_TRY(add_grid(w, &w->drift_set, "the first of the seed, none picked", b));
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_GUIDED) {
            snprintf(b->title[b->n], sizeof b->title[0], "Drift, alpha %g",
                     lw_compare_alpha(w->entry[i].how.alpha));
            LW_TRY(add_grid(w, &w->entry[i].first,
                            w->entry[i].how.alpha > 1.0 ? "the same noise, guided"
                                                        : "the same noise, unguided",
                            b));
        }
    for (int i = 0; i < shown.n; i++) {
        const compare_entry *e = shown.entry[i];
        snprintf(b->title[b->n], sizeof b->title[0], "%.60s, %d evaluation%s", shown.as[i],
                 e->how.evaluations, e->how.evaluations == 1 ? "" : "s");
        caption_of(&w->other[shown.other[i]], e->how, b->caption[i]);
        LW_TRY(add_grid(w, &e->first, b->caption[i], b));
    }
    for (int i = 0; i < w->n_entries; i++) {
        const compare_entry *e = &w->entry[i];
        if (!lw_compare_is_guided(w, e) || lw_compare_is_shown(&shown, e))
            continue;
        snprintf(b->title[b->n], sizeof b->title[0], "%s", e->score.name);
        LW_TRY(add_grid(w, &e->first, "the same noise, guided", b));
    }
    return 0;
}

int lw_compare_pictures_part(const comparing *w, lw_html *page)
{
    beside b = {.n = 0};
    int rc = fill_beside(w, &b);
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

/* Drift's pictures and those of each other, with what they are called. */
enum { MADE = 1 + LW_COMPARE_OTHERS };
typedef struct made {
    const compare_set *set[MADE];
    const char *name[MADE];
    lw_image picture[MADE];
    char title[MADE][64], caption[MADE][64];
    int n;
} made;

static made all_made(const comparing *w)
{
    made m = {.set = {&w->drift_set}, .name = {"Drift"}, .n = 1};
    for (int i = 0; i < w->n_others; i++) {
        m.set[m.n] = &w->other[i].set;
        m.name[m.n++] = w->other[i].title;
    }
    return m;
}

static void made_clear(made *m)
{
    for (int i = 0; i < MADE; i++)
        lw_image_clear(&m->picture[i]);
}

/* Nothing learnt by heart? To be looked at as well as measured. */
static int add_nearest(const comparing *w, lw_html *page)
{
    LW_CLEANUP(made_clear) made m = all_made(w);
    lw_figure f[MADE];
    for (int i = 0; i < m.n; i++) {
        LW_TRY(draw_nearest(w, m.set[i], &m.picture[i]));
        snprintf(m.title[i], sizeof m.title[i], "%s: nearest training pictures", m.name[i]);
        f[i] = (lw_figure){
            .picture = &m.picture[i],
            .title = m.title[i],
            .caption = "left of each pair the sample, right the training picture nearest to it"};
    }
    lw_html_pictures(page, f, (size_t)m.n);
    return 0;
}

/* What the judge refuses of set i, unless that is nothing. */
static int add_refused(const comparing *w, made *m, int i, lw_figure *f, size_t *n)
{
    int64_t refused;
    LW_TRY(draw_refused(w, m->set[i], &m->picture[i], &refused));
    snprintf(m->title[i], sizeof m->title[i], "%s: refused by the judge", m->name[i]);
    snprintf(m->caption[i], sizeof m->caption[i], "the first of %lld of %lld", (long long)refused,
             (long long)m->set[i]->n);
    if (refused)
        f[(*n)++] =
            (lw_figure){.picture = &m->picture[i], .title = m->title[i], .caption = m->caption[i]};
    return 0;
}

int lw_compare_evidence_part(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_image_clear) lw_image controls = {0};
    LW_CLEANUP(made_clear) made m = all_made(w);
    bool asked = lw_scorer_has_judge(w->scorer);
    size_t k = 0;
    lw_figure f[1 + MADE];
    LW_TRY(draw_controls(w, &controls));
    f[k++] = (lw_figure){&controls, "The controls",
                         "made from real pictures, scored like the generators', meant to fail",
                         control_names, LW_CONTROLS};
    for (int i = 0; i < m.n; i++)
        asked = asked && m.set[i]->classes;
    for (int i = 0; asked && i < m.n; i++)
        LW_TRY(add_refused(w, &m, i, f, &k));
    lw_html_pictures(page, f, k);
    return add_nearest(w, page);
}

/* ---- while training --------------------------------------------------------------------- */

int lw_compare_films(const comparing *w, lw_html *page)
{
    lw_film film[MADE] = {0};
    char title[MADE][64];
    lw_figure f[MADE];
    size_t k = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && i <= w->n_others; i++) {
        rc = lw_curves_film(i ? w->other[i - 1].run : w->c->drift, LW_FILM_LINES, &film[i]);
        snprintf(title[i], sizeof title[i], "%s while it learns",
                 i ? w->other[i - 1].title : "Drift");
        if (rc == 0 && film[i].rows)
            f[k++] = lw_film_figure(&film[i], title[i], LW_FILM_CAPTION);
    }
    if (rc == 0 && k)
        lw_html_pictures(page, f, k);
    for (int i = 0; i < MADE; i++)
        lw_film_clear(&film[i]);
    return rc;
}
