/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of a battery, and features of sets of pictures through each. */
#include "session/session_battery.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "session/session_decoding.h"

enum {
    BLOCK = 512,         /* pictures between two looks at the observer; a multiple of every batch */
    DISK_BYTES_LOG2 = 33 /* features of all runs together in the cache */
};

struct lw_battery {
    lw_device *dev;
    int32_t conv, side;
    int32_t n;
    lw_battery_net net[LW_BATTERY_MOST];
};

int32_t lw_battery_count(const lw_battery *b)
{
    return b->n;
}
const lw_battery_net *lw_battery_at(const lw_battery *b, int32_t i)
{
    LW_ASSERT(i >= 0 && i < b->n, "network %d of %d", i, b->n);
    return &b->net[i];
}
int32_t lw_battery_counted(const lw_battery *b)
{
    int32_t n = 0;
    for (int32_t i = 0; i < b->n; i++)
        n += b->net[i].left_out == NULL;
    return n;
}

int32_t lw_battery_families(const lw_battery *b)
{
    int32_t n = 0;
    for (int32_t i = 0; i < b->n; i++) {
        bool first = b->net[i].left_out == NULL;
        for (int32_t k = 0; k < i && first; k++)
            first = b->net[k].left_out ||
                    !lw_str_eq(b->net[k].lineage.link[0].family, b->net[i].lineage.link[0].family);
        n += first;
    }
    return n;
}

static void clear_net(lw_battery_net *net)
{
    lw_free(&net->spec);
    lw_free(&net->left_out);
}

void lw_battery_free(lw_battery **pp)
{
    lw_battery *b = *pp;
    if (!b)
        return;
    for (int32_t i = 0; i < b->n; i++)
        clear_net(&b->net[i]);
    lw_free(pp);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void name_net(const lw_battery *b, lw_battery_net *net)
{
    const char *base = net->lineage.link[0].name;
    int same = 1;
    snprintf(net->name, sizeof net->name, "%.40s", base);
    for (int32_t i = 0; i < b->n; i++)
        same += lw_str_starts(b->net[i].name, net->name) &&
                (b->net[i].name[strlen(net->name)] == '\0' ||
                 b->net[i].name[strlen(net->name)] == ' ');
    if (same > 1)
        snprintf(net->name, sizeof net->name, "%.32s (%d)", base, same);
}

static int check_net(const lw_battery *b, const lw_battery_net *net, const lw_network *n)
{
    if (n->features == 0)
        return lw_fail(LW_EUSAGE, "battery: %s has no pooled feature to measure distances in",
                       net->spec);
    if (b->side == 0 && !lw_network_sized(n))
        return lw_fail(LW_EUSAGE,
                       "battery: %s takes pictures as they are, and these are of several sizes",
                       net->spec);
    for (int32_t i = 0; i < b->n; i++)
        if (b->net[i].lineage.link[0].weights == net->lineage.link[0].weights)
            return lw_fail(LW_EUSAGE,
                           "battery: %s and %s have the same weights: a network counts once",
                           b->net[i].spec, net->spec);
    return 0;
}

static int add_net(lw_battery *b, const char *spec)
{
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    LW_CLEANUP(lw_str_clear) lw_str line = {0};
    if (b->n == LW_BATTERY_MOST)
        return lw_fail(LW_EUSAGE, "battery: more than %d networks", LW_BATTERY_MOST);
    LW_TRY(lw_encoder_open(spec, &n));
    LW_TRY(lw_latents_agree(n, spec, NULL));
    LW_CLEANUP(clear_net)
    lw_battery_net net = {.spec = lw_strdup(spec), .parameters = n->parameters, .dim = n->features};
    if (!net.spec)
        return LW_ENOMEM;
    LW_TRY(lw_lineage_of(spec, n, &net.lineage));
    LW_TRY(check_net(b, &net, n));
    if (n->prepared)
        lw_preparation_print(&n->preparation, &line);
    else
        lw_str_add(&line,
                   "pictures as they are, in [-1,1]"); /* in keys of caches: stays as it is */
    snprintf(net.preparation, sizeof net.preparation, "%s", lw_str_c(&line));
    name_net(b, &net);
    b->net[b->n++] = net;
    net = (lw_battery_net){0};
    return 0;
}

/* Is it a folder of networks, not one? */
static bool is_folder_of(const char *spec)
{
    lw_place_kind kind;
    bool of = lw_path_is_dir(spec) && lw_place_look(spec, &kind) < 0;
    lw_errclear();
    return of;
}

/* What is no encoder there (golden values, a README) is passed over, and said. */
static int add_folder(lw_battery *b, const char *dir)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    int32_t before = b->n;
    LW_TRY(lw_list_dir(dir, &names, &n));
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (names[i][0] == '.')
            continue;
        rc = add_net(b, lw_path_join(&path, dir, names[i]));
        if (rc == LW_EFORMAT || rc == LW_EUNSUPPORTED) {
            lw_log(LW_LOG_INFO, "battery", "passed over: %s", lw_errmsg());
            lw_errclear();
            rc = 0;
        }
    }
    lw_list_free(&names, n);
    if (rc == 0 && b->n == before)
        rc = lw_fail(LW_EUSAGE, "battery: %s holds no network", dir);
    return rc;
}

static int add_all(lw_battery *b, const char *specs)
{
    size_t n;
    for (const char *rest = specs, *word; (word = lw_str_word(&rest, ',', &n));) {
        LW_CLEANUP(lw_str_clear) lw_str spec = {0};
        lw_str_add_n(&spec, word, n);
        if (spec.len == 0)
            return lw_fail(LW_EUSAGE, "battery '%s': an empty name in the list", specs);
        LW_TRY(is_folder_of(lw_str_c(&spec)) ? add_folder(b, lw_str_c(&spec))
                                             : add_net(b, lw_str_c(&spec)));
    }
    return b->n > 0 ? 0 : lw_fail(LW_EUSAGE, "battery: no network is named");
}

int lw_battery_open(lw_device *dev, int32_t conv, const char *specs, int32_t side, lw_battery **out)
{
    LW_CLEANUP(lw_battery_free) lw_battery *b = lw_calloc(1, sizeof *b);
    if (!b)
        return LW_ENOMEM;
    b->dev = dev;
    b->conv = conv;
    b->side = side;
    LW_TRY(add_all(b, specs));
    *out = lw_steal(&b);
    return 0;
}

/* ---- kin ------------------------------------------------------------------------------------- */

int lw_battery_leave_out(lw_battery *b, const lw_lineage *used, const char *who)
{
    for (int32_t i = 0; i < b->n; i++) {
        LW_CLEANUP(lw_str_clear) lw_str why = {0};
        lw_battery_net *net = &b->net[i];
        if (net->left_out || !lw_lineage_kin(&net->lineage, used, &why))
            continue;
        lw_str_addf(&why, "; %s was trained with %s", who, used->link[0].name);
        net->left_out = lw_strdup(lw_str_c(&why));
        if (!net->left_out)
            return LW_ENOMEM;
    }
    return 0;
}

static int leave_out_spec(lw_battery *b, const char *spec, const char *who)
{
    LW_CLEANUP(lw_network_close) lw_network *n = NULL;
    lw_lineage l = {.unknown = true, .n = 1, .link = {{.origin = LW_ORIGIN_PUBLISHED}}};
    int rc = lw_encoder_open(spec, &n);
    if (rc == LW_ENOMEM)
        return rc;
    if (rc < 0) {
        lw_log(LW_LOG_WARN, "battery",
               "%s was trained with %s, which is not there (%s): only random networks are surely "
               "no kin of it",
               who, spec, lw_errmsg());
        lw_errclear();
        l.link[0].family = "";
        snprintf(l.link[0].name, sizeof l.link[0].name, "%s", spec);
    } else {
        LW_TRY(lw_lineage_of(spec, n, &l));
    }
    return lw_battery_leave_out(b, &l, who);
}

int lw_battery_leave_out_run(lw_battery *b, const char *source, const char *who)
{
    char *spec[LW_RUN_ENCODERS] = {0};
    int32_t n = 0;
    bool known = false;
    int rc = lw_run_encoders(source, spec, &n, &known);
    if (rc == 0 && !known)
        lw_log(LW_LOG_WARN, "battery",
               "%s (%s) has no config.yaml: whether a network here is kin of its encoder is not "
               "known",
               who, source);
    for (int32_t i = 0; i < n; i++) {
        if (rc == 0)
            rc = leave_out_spec(b, spec[i], who);
        lw_free(&spec[i]);
    }
    return rc;
}

/* ---- features -------------------------------------------------------------------------------- */

typedef struct job {
    lw_battery *b;
    const lw_observer *obs;
    const lw_battery_net *net;
    lw_score_net *open;
    const lw_pictures *set;
    int64_t done, total;
} job;

static int encode(job *j, float *out)
{
    const lw_pictures *p = j->set;
    for (int64_t at = 0; at < p->n; at += BLOCK) {
        int64_t m = LW_MIN(p->n - at, BLOCK);
        if (lw_observe_stop(j->obs))
            return lw_fail(LW_ESTOPPED, "stopped within the battery");
        LW_TRY(lw_score_net_pictures(j->open, p, at, m, out + at * j->net->dim, NULL));
        lw_observe_progress(j->obs, "battery", j->done + at + m, j->total, j->net->name);
    }
    return 0;
}

static int make(void *self, void *const *array)
{
    return encode(self, array[0]);
}

/* Of all that the bits of a set's features follow from. */
static uint64_t key_of(const job *j)
{
    const lw_score_net *s = j->open;
    const uint64_t part[] = {j->set->content,
                             (uint64_t)j->set->n,
                             (uint64_t)j->set->side,
                             j->net->lineage.link[0].weights,
                             lw_hash_name(s->encoder->def->name),
                             lw_hash_name(j->net->preparation),
                             (uint64_t)s->side,
                             s->graph,
                             (uint64_t)j->b->conv,
                             lw_hash_name(j->b->dev->isa),
                             lw_hash_name(lw_build_version()),
                             lw_hash_name(lw_build_commit())};
    return lw_hash64(part, sizeof part);
}

static lw_features_spec kept_as(const job *j, const char *title, const size_t *row)
{
    return (lw_features_spec){.key = key_of(j),
                              .title = title,
                              .rows = j->set->n,
                              .row = row,
                              .arrays = 1,
                              .together = (int64_t)1 << DISK_BYTES_LOG2,
                              .pool = j->b->dev->pool,
                              .obs = j->obs};
}

static bool is_kept(const job *j)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const size_t row = (size_t)j->net->dim * sizeof(float);
    const lw_features_spec spec = kept_as(j, "", &row);
    lw_features_path(&spec, &path);
    return j->set->content && path.len > 0 && lw_path_exists(lw_str_c(&path));
}

/* From the cache, or into it where there is room. 1: it cannot be there. */
static int encode_kept(job *j, float *out)
{
    LW_CLEANUP(lw_str_clear) lw_str title = {0};
    LW_CLEANUP(lw_features_close) lw_features_file f = {0};
    const size_t row = (size_t)j->net->dim * sizeof(float);
    lw_str_addf(&title, "battery: pooled features of %s by %s", j->set->name, j->net->spec);
    const lw_features_spec spec = kept_as(j, lw_str_c(&title), &row);
    int rc = lw_features_keep(&spec, make, j, &f);
    if (rc == 0)
        memcpy(out, f.array[0], (size_t)j->set->n * row);
    else if (rc == 1)
        lw_errclear();
    return rc;
}

static int run_set(job *j, int32_t i, int32_t s, lw_battery_take *take, void *self)
{
    LW_CLEANUP(lw_free)
    float *f = lw_calloc((size_t)(j->set->n * j->net->dim), sizeof *f);
    if (!f)
        return LW_ENOMEM;
    int rc = j->set->content ? encode_kept(j, f) : 1;
    if (rc == 1)
        rc = encode(j, f);
    LW_TRY(rc);
    j->done += j->set->n;
    lw_observe_progress(j->obs, "battery", j->done, j->total, j->net->name);
    return take(self, i, s, &f);
}

int lw_battery_run(lw_battery *b, const lw_pictures *sets, int32_t n_sets, lw_battery_take *take,
                   void *self, const lw_observer *obs)
{
    job j = {.b = b, .obs = obs};
    for (int32_t s = 0; s < n_sets; s++)
        j.total += sets[s].n * lw_battery_counted(b);
    for (int32_t i = 0; i < b->n; i++) {
        LW_CLEANUP(lw_score_net_close) lw_score_net *open = NULL;
        j.net = &b->net[i];
        if (j.net->left_out)
            continue;
        LW_TRY(lw_score_net_open(b->dev, j.net->spec, b->side, &open));
        j.open = open;
        for (int32_t s = 0; s < n_sets; s++) {
            j.set = &sets[s];
            LW_TRY(run_set(&j, i, s, take, self));
        }
    }
    return 0;
}

/* ---- how long -------------------------------------------------------------------------------- */

/* Seconds of a batch when everything is warm, and what those until then take more than that. */
static int time_net(const lw_device *dev, lw_score_net *s, const lw_pictures *p, double *more,
                    double *each)
{
    enum { LEAST = 3, MOST = 64 };
    static const double enough = 0.5;
    const int64_t n = LW_MIN((int64_t)lw_score_net_batch(s), p->n), sets = p->n / n;
    LW_CLEANUP(lw_free) float *f = lw_calloc((size_t)n * (size_t)s->dim, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    const int warm = lw_device_warm_runs(dev, false);
    double start = lw_now(), spent = 0;
    for (int i = 0; i < warm; i++)
        LW_TRY(lw_score_net_pictures(s, p, 0, n, f, NULL));
    *more = lw_now() - start;
    start = lw_now();
    int64_t done = 0;
    for (; done < LEAST || (spent < enough && done < MOST); done++) {
        LW_TRY(lw_score_net_pictures(s, p, done % sets * n, n, f, NULL));
        spent = lw_now() - start;
    }
    *each = spent / (double)done;
    *more = fmax(*more - warm * *each, 0);
    return 0;
}

static int forecast_net(lw_battery *b, int32_t i, const lw_pictures *sets, int32_t n_sets,
                        lw_battery_cost *cost)
{
    LW_CLEANUP(lw_score_net_close) lw_score_net *open = NULL;
    job j = {.b = b, .net = &b->net[i]};
    double more, start = lw_now();
    LW_TRY(lw_score_net_open(b->dev, b->net[i].spec, b->side, &open));
    cost->open[i] = lw_now() - start;
    j.open = open;
    for (int32_t s = 0; s < n_sets; s++) {
        j.set = &sets[s];
        if (!is_kept(&j))
            cost->batches[i] += LW_CEIL_DIV(sets[s].n, (int64_t)lw_score_net_batch(open));
    }
    if (cost->batches[i] == 0)
        return 0;
    LW_TRY(time_net(b->dev, open, &sets[0], &more, &cost->per_batch[i]));
    cost->open[i] += more;
    return 0;
}

int lw_battery_forecast(lw_battery *b, const lw_pictures *sets, int32_t n_sets,
                        lw_battery_cost *out)
{
    lw_battery_cost cost = {0};
    for (int32_t i = 0; i < b->n; i++) {
        if (b->net[i].left_out)
            continue;
        LW_TRY(forecast_net(b, i, sets, n_sets, &cost));
        cost.seconds += cost.open[i] + (double)cost.batches[i] * cost.per_batch[i];
    }
    *out = cost;
    return 0;
}
