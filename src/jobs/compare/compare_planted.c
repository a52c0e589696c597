/* SPDX-License-Identifier: Apache-2.0 */
/* The planted cheaters of a verdict: two rows that it must expose, and what became of them. */
#include "jobs/compare/compare_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "session/session.h"

/* ---- making ---------------------------------------------------------------------------------- */

/* The network asked for, or of those that count that of the fewest parameters: its gradient is the
 * cheapest. */
static int choose(const comparing *w, const lw_battery *b, int32_t *out)
{
    const char *asked = w->c->planted_network;
    int32_t best = -1;
    for (int32_t i = 0; i < lw_battery_count(b); i++) {
        const lw_battery_net *net = lw_battery_at(b, i);
        if (net->left_out || (asked && !lw_str_eq(asked, net->name)))
            continue;
        if (best < 0 || net->parameters < lw_battery_at(b, best)->parameters)
            best = i;
    }
    if (best < 0)
        return lw_fail(LW_EUSAGE,
                       "--planted-network %s: no network of that name counts in the "
                       "battery",
                       asked ? asked : "");
    *out = best;
    return 0;
}

static lw_planted_opts planted_opts(const comparing *w)
{
    const lw_battery_net *net = lw_battery_at(w->verdict->battery, w->verdict->attacked);
    return (lw_planted_opts){.network = net->spec,
                             .name = net->name,
                             .train = lw_scorer_training(w->scorer),
                             .start = w->drift_set.x,
                             .labels = w->drift_set.classes,
                             .n = w->c->n_fid,
                             .steps = w->c->planted_steps,
                             .seed = (uint64_t)w->c->seed};
}

static void on_progress(void *self, const char *what, int64_t done, int64_t total, const char *note)
{
    char text[96];
    (void)what;
    (void)note;
    snprintf(text, sizeof text, "planting a cheater, step %lld of %lld", (long long)done,
             (long long)total);
    lw_compare_progress(self, 0, text);
}

static bool on_stop(void *self)
{
    return lw_observe_stop(((const comparing *)self)->obs);
}

/* Is there a verdict on cheaters to plant any for? */
static bool wanted(const comparing *w)
{
    return w->verdict && w->c->planted_steps > 0 &&
           lw_battery_counted(w->verdict->battery) >= LW_VERDICT_LEAST;
}

static int add_row(comparing *w, const lw_planted *p)
{
    const int64_t n = p->n * w->side * w->side * 3;
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)n, sizeof *x);
    if (!x)
        return LW_ENOMEM;
    lw_data_from_u8(p->rgb, n, x);
    return lw_compare_verdict_add(w, p->name, LW_VERDICT_PLANTED, x, p->labels, p->n);
}

int lw_compare_planted_open(comparing *w)
{
    return wanted(w) || (w->verdict && w->c->planted_network)
               ? choose(w, w->verdict->battery, &w->verdict->attacked)
               : 0;
}

int lw_compare_planted(comparing *w)
{
    compare_verdict *v = w->verdict;
    const lw_observer obs = {.self = w, .progress = on_progress, .should_stop = on_stop};
    if (!wanted(w))
        return 0;
    lw_planted_opts o = planted_opts(w);
    const double start = lw_now();
    o.obs = &obs;
    LW_TRY(lw_planted_make(w->dev, &o, v->planted));
    v->spent += lw_now() - start;
    v->planted_row = v->rows;
    v->n_planted = LW_PLANTED;
    for (int i = 0; i < LW_PLANTED; i++)
        LW_TRY(add_row(w, &v->planted[i]));
    return 0;
}

int lw_compare_planted_forecast(comparing *w, double *seconds)
{
    *seconds = 0;
    if (!wanted(w))
        return 0;
    const lw_planted_opts o = planted_opts(w);
    lw_planted_cost cost;
    LW_TRY(lw_planted_forecast(w->dev, &o, &cost));
    *seconds = cost.seconds;
    return 0;
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Its Frechet distance in the attacked network over that of real pictures. */
static double over_real(const compare_verdict *v, int i)
{
    for (int32_t k = 0; k < v->result->networks; k++)
        if (v->result->network[k] == v->attacked) {
            const lw_verdict_value *x = &v->result->value[v->planted_row + i][k];
            return x->frechet / x->frechet_real;
        }
    return (double)NAN;
}

static bool exposed(const compare_verdict *v, int i)
{
    const int32_t row = v->planted_row + i;
    return lw_verdict_suspect(v->result, row, &v->copies[row]);
}

json_t *lw_compare_planted_json(const comparing *w)
{
    const compare_verdict *v = w->verdict;
    json_t *rows = json_array();
    for (int i = 0; v && v->result && i < v->n_planted; i++) {
        const lw_planted *p = &v->planted[i];
        json_t *j = json_pack("{s:s, s:s, s:I, s:b}", "name", p->name, "how", p->how, "n",
                              (json_int_t)p->n, "exposed", exposed(v, i));
        if (i == 0) {
            json_object_set_new(j, "network",
                                json_string(lw_battery_at(v->battery, v->attacked)->name));
            json_object_set_new(j, "frechet_before", lw_json_real(p->attack.before));
            json_object_set_new(j, "frechet_after", lw_json_real(p->attack.after));
            json_object_set_new(j, "frechet_over_real", lw_json_real(over_real(v, i)));
        }
        json_array_append_new(rows, j);
    }
    return rows;
}

/* Pictures of a planted set for the page. */
static int draw(const comparing *w, const lw_planted *p, lw_image *out)
{
    const int64_t n = LW_MIN(p->n, 64), floats = n * w->side * w->side * 3;
    const int32_t scale = w->side <= 16 ? 4 : w->side <= 32 ? 2 : 1;
    const lw_grid g = {.columns = 8, .padding = 1, .scale = scale, .see_through = true};
    LW_CLEANUP(lw_free) float *x = lw_calloc((size_t)floats, sizeof *x);
    if (!x)
        return LW_ENOMEM;
    lw_data_from_u8(p->rgb, floats, x);
    return lw_grid_f32(&g, x, (int32_t)n, w->side, w->side, out);
}

int lw_compare_planted_page(const comparing *w, lw_html *page)
{
    const compare_verdict *v = w->verdict;
    LW_CLEANUP(lw_image_clear) lw_image against = {0};
    LW_CLEANUP(lw_image_clear) lw_image memory = {0};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (!v || !v->result || v->n_planted == 0)
        return 0;
    const double ratio = over_real(v, 0);
    lw_str_addf(&text,
                "Two sets were **planted** to try the verdict. The first: %s. In that network's "
                "Frechet distance they are now %.2f times as far as real pictures%s. The second: "
                "%s.",
                v->planted[0].how, ratio, ratio < 1 ? ", so that it alone would choose them" : "",
                v->planted[1].how);
    lw_html_text(page, lw_str_c(&text));
    LW_TRY(draw(w, &v->planted[0], &against));
    LW_TRY(draw(w, &v->planted[1], &memory));
    const lw_figure f[] = {{.picture = &against,
                            .title = v->planted[0].name,
                            .caption = exposed(v, 0) ? "exposed" : "not exposed"},
                           {.picture = &memory,
                            .title = v->planted[1].name,
                            .caption = exposed(v, 1) ? "exposed" : "not exposed"}};
    lw_html_pictures(page, f, LW_COUNT(f));
    return 0;
}

void lw_compare_planted_clear(compare_verdict *v)
{
    for (int i = 0; i < LW_PLANTED; i++)
        lw_planted_clear(&v->planted[i]);
}
