/* SPDX-License-Identifier: Apache-2.0 */
/* All trainings of a suite, what they came to, and their table. */
#include "jobs/toy/toy_parts.h"

#include <math.h>
#include <string.h>

#include "eval/eval.h"
#include "session/session_device.h"

/* What toy_results.json says of each training. */
#define MEASURES(M)                                \
    M(sliced, "sliced_wasserstein")                \
    M(chance, "sliced_wasserstein_of_real_points") \
    M(distance, "mean_distance_to_target")         \
    M(precision, "precision")                      \
    M(coverage, "coverage")                        \
    M(coverage_a, "coverage_a")                    \
    M(coverage_b, "coverage_b")                    \
    M(center_distance, "center_distance")          \
    M(mode_balance_error, "mode_balance_error")

typedef struct suite {
    const lw_toy_config *c;
    const lw_observer *obs;
    lw_device *dev;
    bool data[LW_TOY_DATAS], balance[LW_TOY_BALANCES]; /* asked for */
    json_t *json;                                      /* toy_results.json */
    lw_str path;
    int lock; /* of the output directory; -1: none yet */
} suite;

void lw_toy_result_clear(lw_toy_result *r)
{
    lw_table_clear(&r->table);
    lw_json_drop(&r->json);
    lw_str_clear(&r->page);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static int choose(const char *option, const char *const *asked, int32_t n, const char *names,
                  const char *(*name)(int), int known, bool *out)
{
    for (int k = 0; k < known; k++)
        out[k] = n == 0;
    for (int32_t i = 0; i < n; i++) {
        bool all = lw_str_eq(asked[i], "all"), found = all;
        for (int k = 0; k < known; k++)
            if (all || lw_str_eq(asked[i], name(k)))
                out[k] = found = true;
        if (!found)
            return lw_fail(LW_EUSAGE, "--%s %s: must be of all|%s", option, asked[i], names);
    }
    return 0;
}

static const char *data_name(int k)
{
    return lw_toy_data_name[k];
}

static const char *balance_name(int k)
{
    return lw_toy_balances[k].name;
}

/* ---- results --------------------------------------------------------------------------------- */

static json_t *settings_json(const lw_toy_config *c)
{
    return json_pack("{s:I, s:I, s:f, s:i, s:i, s:i, s:f, s:I, s:i}", "steps",
                     (json_int_t)c->train.steps, "batch_size", (json_int_t)c->train.batch_size,
                     "learning_rate", c->train.learning_rate, "hidden", (int)c->hidden, "depth",
                     (int)c->depth, "noise", (int)c->noise, "temperature", c->temperature, "seed",
                     (json_int_t)c->train.seed, "points", (int)c->points);
}

static json_t *run_of(const suite *s, const lw_toy_run *r)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(s->json, "runs"), i, row)
    {
        const char *data = json_string_value(json_object_get(row, "data")),
                   *ablation = json_string_value(json_object_get(row, "ablation"));
        if (data && ablation && lw_str_eq(data, lw_toy_data_name[r->data]) &&
            lw_str_eq(ablation, r->balance->name) &&
            json_integer_value(json_object_get(row, "seed")) == r->seed)
            return row;
    }
    return NULL;
}

static int add_run(suite *s, const lw_toy_run *r)
{
    const lw_toy_measure *m = &r->measure;
    json_t *row = json_pack(
        "{s:s, s:s, s:I, s:I, s:o, s:o}", "data", lw_toy_data_name[r->data], "ablation",
        r->balance->name, "seed", (json_int_t)r->seed, "steps", (json_int_t)s->c->train.steps,
        "final_loss", lw_json_real(r->trained.loss), "seconds", lw_json_real(r->trained.seconds));
#define M(field, key) json_object_set_new(row, key, lw_json_real(m->field));
    MEASURES(M)
#undef M
    if (json_array_append_new(json_object_get(s->json, "runs"), row) != 0)
        return lw_fail(LW_ENOMEM, "out of memory for toy_results.json");
    return lw_json_save(lw_str_c(&s->path), s->json);
}

/* New, or what an earlier call left. */
static int open_results(suite *s)
{
    const lw_toy_config *c = s->c;
    const json_t *old;
    LW_CLEANUP(lw_json_drop) json_t *settings = settings_json(c);
    LW_TRY(lw_mkdirs(c->train.output_dir));
    LW_TRY(lw_dir_lock(c->train.output_dir, &s->lock));
    if (!lw_path_join(&s->path, c->train.output_dir, "toy_results.json"))
        return LW_ENOMEM;
    if (!lw_path_exists(lw_str_c(&s->path))) {
        s->json = json_pack("{s:s, s:O, s:[]}", "format", "leeway-toy-1", "settings", settings,
                            "runs");
        return s->json ? 0 : lw_fail(LW_ENOMEM, "out of memory for toy_results.json");
    }
    if (!c->train.resume)
        return lw_fail(
            LW_EUSAGE,
            "%s is there already: --resume goes on with it, or choose another --output-dir",
            lw_str_c(&s->path));
    LW_TRY(lw_json_load(lw_str_c(&s->path), &s->json));
    LW_TRY(lw_json_get_object(s->json, lw_str_c(&s->path), "settings", &old));
    const json_t *runs;
    LW_TRY(lw_json_get_array(s->json, lw_str_c(&s->path), "runs", &runs));
    const char *other = lw_json_difference(old, settings);
    if (other)
        return lw_fail(LW_EUSAGE, "%s: trained with another '%s'; choose another --output-dir",
                       lw_str_c(&s->path), other);
    return 0;
}

/* ---- table ----------------------------------------------------------------------------------- */

/* Mean and standard deviation (divisor n - 1, NAN of one) of a key over the seeds. */
static int64_t collect(const json_t *json, const char *data, const char *ablation, const char *key,
                       double *mean, double *sd)
{
    double sum = 0.0, squares = 0.0;
    int64_t n = 0;
    size_t i;
    const json_t *row;
    for (int pass = 0; pass < 2; pass++) {
        *mean = n ? sum / (double)n : (double)NAN;
        n = 0;
        json_array_foreach(json_object_get(json, "runs"), i, row)
        {
            const char *d = json_string_value(json_object_get(row, "data")),
                       *a = json_string_value(json_object_get(row, "ablation"));
            if (!d || !a || !lw_str_eq(d, data) || !lw_str_eq(a, ablation))
                continue;
            double v = json_number_value(json_object_get(row, key));
            sum += pass ? 0.0 : v;
            squares += pass ? (v - *mean) * (v - *mean) : 0.0;
            n++;
        }
    }
    *sd = n > 1 ? sqrt(squares / (double)(n - 1)) : (double)NAN;
    return n;
}

static void spread_cell(lw_table *t, double mean, double sd)
{
    if (isfinite(sd))
        lw_table_cell(t, "%.4f +- %.4f", mean, sd);
    else
        lw_table_cell(t, "%.4f", mean);
}

static int fill_table(const suite *s, lw_table *t)
{
    static const char *const columns[] = {
        "data",      "ablation", "seeds", "sliced Wasserstein", "chance", "distance",
        "precision", "coverage", "loss",  "paper's FID",        NULL};
    double mean, sd;
    lw_table_columns(t, columns, 2);
    for (int d = 0; d < LW_TOY_DATAS; d++)
        for (int b = 0; b < LW_TOY_BALANCES; b++) {
            const char *data = lw_toy_data_name[d], *name = lw_toy_balances[b].name;
            int64_t n = collect(s->json, data, name, "sliced_wasserstein", &mean, &sd);
            if (!n)
                continue;
            lw_table_cell(t, "%s", data);
            lw_table_cell(t, "%s", name);
            lw_table_cell(t, "%lld", (long long)n);
            spread_cell(t, mean, sd);
            collect(s->json, data, name, "sliced_wasserstein_of_real_points", &mean, &sd);
            lw_table_cell(t, "%.4f", mean);
            collect(s->json, data, name, "mean_distance_to_target", &mean, &sd);
            lw_table_cell(t, "%.4f", mean);
            collect(s->json, data, name, "precision", &mean, &sd);
            lw_table_percent(t, mean, 1);
            collect(s->json, data, name, "coverage", &mean, &sd);
            lw_table_percent(t, mean, 1);
            collect(s->json, data, name, "final_loss", &mean, &sd);
            lw_table_number(t, mean, 3);
            lw_table_cell(t, "%s", lw_toy_balances[b].published);
        }
    return lw_table_ok(t);
}

/* {data: order of the ablations by their mean, best first, and whether it is the paper's}. */
static int add_orders(suite *s)
{
    json_t *all = json_object();
    double mean[LW_TOY_BALANCES], sd;
    for (int d = 0; d < LW_TOY_DATAS; d++) {
        int order[LW_TOY_BALANCES], n = 0;
        for (int b = 0; b < LW_TOY_BALANCES; b++) {
            if (!collect(s->json, lw_toy_data_name[d], lw_toy_balances[b].name,
                         "sliced_wasserstein", &mean[b], &sd))
                continue;
            int at = n++;
            for (; at > 0 && mean[order[at - 1]] > mean[b]; at--)
                order[at] = order[at - 1];
            order[at] = b;
        }
        json_t *names = json_array();
        bool holds = true;
        for (int i = 0; i < n; i++) {
            holds = holds && (i == 0 || order[i] > order[i - 1]);
            json_array_append_new(names, json_string(lw_toy_balances[order[i]].name));
        }
        if (n > 1)
            json_object_set_new(all, lw_toy_data_name[d],
                                json_pack("{s:O, s:b, s:b}", "best_first", names, "as_published",
                                          (int)holds, "baseline_best", order[0] == 0));
        json_decref(names);
    }
    if (!all || json_object_set_new(s->json, "order", all) != 0)
        return lw_fail(LW_ENOMEM, "out of memory for toy_results.json");
    return lw_json_save(lw_str_c(&s->path), s->json);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int run_one(suite *s, lw_toy_run *r)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    lw_str_addf(&dir, "%s/%s/%s/seed_%lld", s->c->train.output_dir, lw_toy_data_name[r->data],
                r->balance->name, (long long)r->seed);
    if (dir.failed)
        return LW_ENOMEM;
    r->dir = lw_str_c(&dir);
    if (run_of(s, r))
        return 0;
    LW_TRY(lw_toy_train(r, s->obs));
    return add_run(s, r);
}

/* What a training left, or NULL: a directory that someone has tidied. */
static float *read_points(const suite *s, lw_toy_points data, int balance)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    lw_str_addf(&path, "%s/%s/%s/seed_%lld/points.npy", s->c->train.output_dir,
                lw_toy_data_name[data], lw_toy_balances[balance].name, (long long)s->c->train.seed);
    if (path.failed || lw_npy_load_f32(lw_str_c(&path), &a) < 0 || a.rank != 2 ||
        a.shape[0] != s->c->points || a.shape[1] != 2)
        return NULL;
    return lw_steal(&a.data);
}

/* Those of the first seed, beside real ones. */
static int draw(suite *s, lw_toy_points data, lw_image *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *title[1 + LW_TOY_BALANCES] = {"real"};
    float *set[1 + LW_TOY_BALANCES] = {NULL};
    int n = 1, rc = LW_ENOMEM;
    set[0] = lw_calloc((size_t)s->c->points * 2, sizeof **set);
    if (set[0])
        rc = lw_toy_held_out(s->dev, data, 0, s->c->train.seed, s->c->points, set[0]);
    for (int b = 0; rc == 0 && b < LW_TOY_BALANCES; b++) {
        title[n] = lw_toy_balances[b].name;
        set[n] = read_points(s, data, b);
        n += set[n] != NULL;
    }
    if (rc == 0)
        rc = lw_toy_picture((const float *const *)set, title, n, s->c->points, out);
    for (int i = 0; i < n; i++)
        lw_free(&set[i]);
    LW_TRY(rc);
    lw_str_addf(&path, "%s/points_%s.png", s->c->train.output_dir, lw_toy_data_name[data]);
    return lw_png_save(lw_str_c(&path), out, NULL);
}

static int run_all(suite *s, lw_image picture[LW_TOY_DATAS])
{
    for (int d = 0; d < LW_TOY_DATAS; d++) {
        if (!s->data[d])
            continue;
        for (int b = 0; b < LW_TOY_BALANCES; b++)
            for (int32_t k = 0; s->balance[b] && k < s->c->seeds; k++) {
                lw_toy_run r = {.c = s->c,
                                .dev = s->dev,
                                .data = (lw_toy_points)d,
                                .balance = &lw_toy_balances[b],
                                .seed = s->c->train.seed + k};
                LW_TRY(run_one(s, &r));
            }
        LW_TRY(draw(s, (lw_toy_points)d, &picture[d]));
    }
    return 0;
}

static int finish(suite *s, const lw_image *picture, lw_toy_result *out)
{
    LW_TRY(add_orders(s));
    LW_TRY(fill_table(s, &out->table));
    if (!lw_path_join(&out->page, s->c->train.output_dir, "report.html"))
        return LW_ENOMEM;
    LW_TRY(lw_toy_page(s->c, s->json, &out->table, picture, lw_str_c(&out->page)));
    out->json = json_incref(s->json);
    return 0;
}

static int predict(suite *s, lw_toy_result *out)
{
    lw_toy_run r = {.c = s->c,
                    .dev = s->dev,
                    .balance = &lw_toy_balances[0],
                    .seed = s->c->train.seed,
                    .dir = s->c->train.output_dir};
    LW_TRY(lw_toy_train(&r, s->obs));
    out->predicted = r.trained;
    return 0;
}

static int64_t count(const bool *asked, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += asked[i];
    return sum;
}

static int run(suite *s, lw_toy_result *out)
{
    const lw_toy_config *c = s->c;
    lw_image picture[LW_TOY_DATAS] = {{0}};
    LW_TRY(
        choose("distribution", c->data, c->n_data, LW_TOY_DATA, data_name, LW_TOY_DATAS, s->data));
    LW_TRY(choose("ablation", c->ablation, c->n_ablation, LW_TOY_ABLATIONS, balance_name,
                  LW_TOY_BALANCES, s->balance));
    out->runs = c->seeds * count(s->data, LW_TOY_DATAS) * count(s->balance, LW_TOY_BALANCES);
    LW_TRY(lw_session_device(c->train.threads, &s->dev));
    if (c->train.dry_run)
        return predict(s, out);
    LW_TRY(open_results(s));
    int rc = run_all(s, picture);
    if (rc == 0)
        rc = finish(s, picture, out);
    for (int d = 0; d < LW_TOY_DATAS; d++)
        lw_image_clear(&picture[d]);
    return rc;
}

int lw_train_toy(const lw_toy_config *c, const lw_observer *obs, lw_toy_result *out)
{
    suite s = {.c = c, .obs = obs, .lock = -1};
    *out = (lw_toy_result){0};
    int rc = run(&s, out);
    lw_backend_close(&s.dev);
    lw_json_drop(&s.json);
    lw_str_clear(&s.path);
    lw_lock_drop(&s.lock);
    if (rc < 0)
        lw_toy_result_clear(out);
    return rc;
}
