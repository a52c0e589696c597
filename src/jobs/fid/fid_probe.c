/* SPDX-License-Identifier: Apache-2.0 */
/* Do networks name the class that was asked for? A linear probe on each, fitted on real pictures. */
#include <stdio.h>
#include <string.h>

#include "jobs/fid/fid_view.h"
#include "store/store.h"

/* Sets of pictures with their classes: what is fitted, what examines it, A. */
enum { FITTED, REAL, MADE, SETS };

typedef struct probe_state {
    const lw_fid_config *c;
    lw_device *dev;
    lw_fid_result *out;
    lw_dataset *data[SETS]; /* MADE: where A is data */
    lw_battery *battery;
    lw_pictures set[SETS];
    const int32_t *labels[SETS];
    int32_t *asked; /* of a generator's pictures */
    int32_t classes, side;
    float *features[SETS];
    lw_probe *probe;      /* of the network whose sets come in */
    uint8_t *named[SETS]; /* judges that name picture i's class */
} probe_state;

static void clear(probe_state *s)
{
    for (int i = 0; i < SETS; i++) {
        lw_data_close(&s->data[i]);
        lw_free(&s->features[i]);
        lw_free(&s->named[i]);
    }
    lw_battery_free(&s->battery);
    lw_probe_free(&s->probe);
    lw_free(&s->asked);
}

/* ---- the three sets -------------------------------------------------------------------------- */

static int open_data(probe_state *s, int which, const char *spec, lw_split split, int64_t n,
                     const lw_observer *obs)
{
    const lw_data_opts o = {.image_size = s->side,
                            .split = split,
                            .num_images = n,
                            .seed = s->c->seed,
                            .on_error = (lw_on_error)s->c->on_error,
                            .pool = s->dev->pool,
                            .obs = obs};
    LW_TRY(lw_data_open(spec, &o, &s->data[which]));
    const lw_dataset *d = s->data[which];
    if (!d->labelled)
        return lw_fail(LW_EUSAGE, "--probe: %s has no classes", spec);
    if (d->h != d->w || d->channels != 3)
        return lw_fail(LW_EUSAGE, "--probe: %s: squares of RGB are judged", spec);
    s->side = d->h;
    s->labels[which] = d->labels;
    s->set[which] = (lw_pictures){
        .name = spec,
        .n = d->n,
        .side = d->h,
        .rgb = d->pixels,
        .content = lw_hash64(d->pixels, (size_t)d->n * (size_t)d->h * (size_t)d->w * 3)};
    return 0;
}

/* As many of B's split as there are at most. */
static int open_real(probe_state *s, int which, const fid_set *b, lw_split split, int64_t most,
                     const lw_observer *obs)
{
    const char *spec = lw_str_c(&b->spec);
    LW_TRY(open_data(s, which, spec, split, 0, obs));
    if (s->data[which]->n <= most)
        return 0;
    lw_data_close(&s->data[which]);
    return open_data(s, which, spec, split, most, obs);
}

static int open_made(probe_state *s, const fid_set *a, const lw_observer *obs)
{
    if (a->kind == FID_DATA)
        return open_data(s, MADE, lw_str_c(&a->spec), (lw_split)a->split, s->c->num_images, obs);
    if (!a->rgb || !a->classes)
        return lw_fail(LW_EUSAGE,
                       "--probe: nobody knows what classes the pictures of A (%s) were meant to "
                       "be: name a generator that is asked for them, or labelled data",
                       a->source);
    s->asked = lw_calloc((size_t)a->n, sizeof *s->asked);
    if (!s->asked)
        return LW_ENOMEM;
    for (int64_t i = 0; i < a->n; i++)
        s->asked[i] = (int32_t)(i % a->classes);
    s->side = a->h;
    s->labels[MADE] = s->asked;
    s->set[MADE] = (lw_pictures){.name = a->source, .n = a->n, .side = a->h, .rgb = a->rgb};
    return 0;
}

static int open_sets(probe_state *s, const fid_set set[2], const lw_observer *obs)
{
    const fid_set *a = &set[0];
    if (set[1].kind != FID_DATA)
        return lw_fail(LW_EUSAGE, "--probe: B must be labelled data");
    s->side = s->c->image_size;
    LW_TRY(open_made(s, a, obs));
    LW_TRY(open_real(s, FITTED, &set[1], LW_SPLIT_TRAIN, s->c->probe_images, obs));
    LW_TRY(open_real(s, REAL, &set[1], LW_SPLIT_HELDOUT, s->set[MADE].n, obs));
    s->classes = s->data[FITTED]->classes;
    if (a->kind == FID_DATA) {
        s->out->side[0].count = s->set[MADE].n;
        snprintf(s->out->side[0].what, sizeof s->out->side[0].what, "%lld pictures (%s)",
                 (long long)s->set[MADE].n, lw_split_name((lw_split)a->split));
    }
    snprintf(s->out->side[1].what, sizeof s->out->side[1].what, "%lld pictures (train), %lld (%s)",
             (long long)s->set[FITTED].n, (long long)s->set[REAL].n,
             lw_split_name(LW_SPLIT_HELDOUT));
    int32_t asked = a->kind == FID_DATA ? s->data[MADE]->classes : a->classes;
    return asked == s->classes
               ? 0
               : lw_fail(LW_EFORMAT, "--probe: A (%s) has %d classes, B (%s) has %d", a->source,
                         (int)asked, set[1].source, (int)s->classes);
}

/* ---- one network after another --------------------------------------------------------------- */

static lw_interval judge(probe_state *s, int which, int32_t *answers)
{
    int64_t n = s->set[which].n, right = 0;
    lw_probe_answer(s->probe, s->features[which], n, answers);
    for (int64_t i = 0; i < n; i++) {
        bool named = answers[i] == s->labels[which][i];
        s->named[which][i] = (uint8_t)(s->named[which][i] + named);
        right += named;
    }
    return lw_share_interval(right, n, LW_Z_95);
}

static int conclude(probe_state *s, const lw_battery_net *net)
{
    int64_t most = LW_MAX(s->set[REAL].n, s->set[MADE].n);
    LW_CLEANUP(lw_free) int32_t *answers = lw_calloc((size_t)most, sizeof *answers);
    lw_fid_probe *p = &s->out->probe[s->out->n_probes];
    if (!answers)
        return LW_ENOMEM;
    lw_probe_free(&s->probe);
    LW_TRY(lw_probe_fit(s->dev->pool, s->features[FITTED], s->set[FITTED].n, net->dim,
                        s->labels[FITTED], s->classes, &s->probe));
    snprintf(p->name, sizeof p->name, "%s", net->name);
    p->ridge = s->probe->ridge;
    p->real = judge(s, REAL, answers);
    p->made = judge(s, MADE, answers);
    s->out->n_probes++;
    return 0;
}

static int take(void *self, int32_t i, int32_t which, float **features)
{
    probe_state *s = self;
    lw_free(&s->features[which]);
    s->features[which] = lw_steal(features);
    return which == SETS - 1 ? conclude(s, lw_battery_at(s->battery, i)) : 0;
}

/* More than half of the judges name the class. */
static lw_interval majority(const probe_state *s, int which)
{
    int64_t n = s->set[which].n, k = 0;
    for (int64_t i = 0; i < n; i++)
        k += s->named[which][i] >= s->out->probes_needed;
    return lw_share_interval(k, n, LW_Z_95);
}

static void tell_left_out(const lw_battery *b, lw_fid_result *out)
{
    for (int32_t i = 0; i < lw_battery_count(b); i++) {
        const lw_battery_net *net = lw_battery_at(b, i);
        if (!net->left_out)
            continue;
        lw_fid_left_out *l = &out->left_out[out->n_left_out++];
        snprintf(l->name, sizeof l->name, "%s", net->name);
        snprintf(l->why, sizeof l->why, "%s", net->left_out);
    }
}

static int run(probe_state *s, const fid_set set[2], const lw_observer *obs)
{
    lw_fid_result *out = s->out;
    lw_place_kind kind;
    LW_TRY(open_sets(s, set, obs));
    LW_TRY(lw_battery_open(s->dev, s->c->conv, s->c->probe, s->side, &s->battery));
    if (lw_place_look(set[0].source, &kind) == 0)
        LW_TRY(lw_battery_leave_out_run(s->battery, set[0].source, "A"));
    else
        lw_errclear();
    if (lw_battery_counted(s->battery) == 0)
        return lw_fail(LW_EUSAGE, "--probe: every network is kin of an encoder that A was trained "
                                  "with: its word counts for nothing");
    tell_left_out(s->battery, out);
    if (s->c->dry_run) {
        lw_battery_cost cost;
        LW_TRY(lw_battery_forecast(s->battery, s->set, SETS, &cost));
        out->verdict_seconds += cost.seconds;
        return 0;
    }
    for (int i = REAL; i < SETS; i++) {
        s->named[i] = lw_calloc((size_t)s->set[i].n, 1);
        if (!s->named[i])
            return LW_ENOMEM;
    }
    out->probes_needed = lw_battery_counted(s->battery) / 2 + 1;
    out->probe_fitted = s->set[FITTED].n;
    out->probe_images[0] = s->set[MADE].n;
    out->probe_images[1] = s->set[REAL].n;
    LW_TRY(lw_battery_run(s->battery, s->set, SETS, take, s, obs));
    out->named = majority(s, MADE);
    out->named_real = majority(s, REAL);
    return 0;
}

int lw_fid_probes(const lw_fid_config *c, const fid_set set[2], lw_device *dev,
                  const lw_observer *obs, lw_fid_result *out)
{
    probe_state s = {.c = c, .dev = dev, .out = out};
    int rc = run(&s, set, obs);
    clear(&s);
    return rc;
}
