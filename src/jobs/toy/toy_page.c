/* SPDX-License-Identifier: Apache-2.0 */
/* Clouds of points as pictures, and the page of a suite. */
#include "jobs/toy/toy_parts.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 200, GAP = 6 };

/* Denser places are darker. */
static void cloud(lw_image *im, const float *x, int64_t n, bool real)
{
    for (int64_t i = 0; i < n; i++) {
        double px = ((double)x[2 * i] / LW_TOY_SIDE + 1.0) * SIDE / 2,
               py = (1.0 - (double)x[2 * i + 1] / LW_TOY_SIDE) * SIDE / 2;
        if (!(px >= 0.0 && px < SIDE && py >= 0.0 && py < SIDE))
            continue;
        uint8_t *p = im->rgb + 3 * ((size_t)py * SIDE + (size_t)px);
        for (int k = 0; k < 3; k++)
            if (k != (real ? 2 : 0)) /* blue, red */
                p[k] = (uint8_t)(p[k] > 80 ? p[k] - 40 : p[k] / 2);
    }
}

int lw_toy_picture(const float *const *points, const char *const *titles, int n_sets, int64_t n,
                   lw_image *out)
{
    lw_image panel[1 + LW_TOY_BALANCES] = {{0}};
    const lw_image *beside[1 + LW_TOY_BALANCES] = {NULL};
    int rc = 0;
    for (int i = 0; i < n_sets && rc == 0; i++) {
        beside[i] = &panel[i];
        rc = lw_image_init(&panel[i], SIDE, SIDE);
        if (rc == 0) {
            memset(panel[i].rgb, 246, (size_t)SIDE * SIDE * 3); /* paler than the gaps */
            cloud(&panel[i], points[i], n, i == 0);
        }
    }
    if (rc == 0)
        rc = lw_image_beside(beside, titles, n_sets, GAP, out);
    for (int i = 0; i < n_sets; i++)
        lw_image_clear(&panel[i]);
    return rc;
}

static void say_orders(lw_html *h, const json_t *results)
{
    json_t *order = json_object_get(results, "order"), *one, *name;
    const char *data;
    size_t i;
    json_object_foreach(order, data, one)
    {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        lw_str_addf(&s, "**%s**, best first: ", data);
        json_array_foreach(json_object_get(one, "best_first"), i, name)
        {
            lw_str_addf(&s, "%s`%s`", i ? ", " : "", json_string_value(name));
        }
        lw_str_add(&s, json_is_true(json_object_get(one, "as_published"))
                           ? ": the order published for ImageNet."
                       : json_is_true(json_object_get(one, "baseline_best"))
                           ? ": balance is best, the others are not in the order published for "
                             "ImageNet."
                           : ": not the order published for ImageNet, where balance is best.");
        lw_html_note(
            h, json_is_true(json_object_get(one, "baseline_best")) ? LW_MARK_GOOD : LW_MARK_WARN,
            lw_str_c(&s));
    }
}

int lw_toy_page(const lw_toy_config *c, const json_t *results, const lw_table *table,
                const lw_image *pictures, const char *path)
{
    LW_CLEANUP(lw_html_free) lw_html *h = NULL;
    char steps[24], batch[24], tau[24], net[64];
    snprintf(steps, sizeof steps, "%lld", (long long)c->train.steps);
    snprintf(batch, sizeof batch, "%d", (int)c->train.batch_size);
    snprintf(tau, sizeof tau, "%g", c->temperature);
    snprintf(net, sizeof net, "%d -> %d x %d -> 2", (int)c->noise, (int)c->hidden, (int)c->depth);
    const char *const facts[] = {"steps",       steps, "points a step", batch,
                                 "temperature", tau,   "perceptron",    net};
    LW_TRY(lw_html_new("Drifting in the plane",
                       "one evaluation of a perceptron makes a point; what is it worth when "
                       "attraction and repulsion are out of balance?",
                       &h));
    lw_html_facts(h, facts, LW_COUNT(facts) / 2);
    lw_html_section(h, "Points");
    for (int d = 0; d < LW_TOY_DATAS; d++) {
        const lw_figure f = {.picture = &pictures[d], .title = lw_toy_data_name[d]};
        if (pictures[d].rgb)
            lw_html_pictures(h, &f, 1);
    }
    lw_html_section(h, "Measures");
    lw_html_table(
        h, table, NULL,
        "Sliced Wasserstein distance to points held out, mean and standard deviation over "
        "seeds; chance: the same of as many real points; distance: of a generated point "
        "to the nearest held-out one; precision, coverage: by the balls of 3 nearest "
        "neighbours. The paper's FID: its table for ImageNet, another network and data.");
    say_orders(h, results);
    return lw_html_save(h, path);
}
