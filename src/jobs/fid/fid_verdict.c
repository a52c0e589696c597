/* SPDX-License-Identifier: Apache-2.0 */
/* A against real pictures in a battery of networks: no distance alone. */
#include <stdio.h>

#include "jobs/fid/fid_view.h"
#include "store/store.h"

enum { REPLICATES = 60, DIRECTIONS = 256 };

typedef struct verdict_state {
    const lw_fid_config *c;
    lw_dataset *data[2]; /* of A when it is data; of B */
    lw_battery *battery;
    lw_verdict_real real;
    lw_verdict_set row;
    lw_verdict_result *result;
} verdict_state;

static void clear(verdict_state *v)
{
    for (int i = 0; i < 2; i++)
        lw_data_close(&v->data[i]);
    lw_battery_free(&v->battery);
    lw_verdict_real_clear(&v->real);
    lw_free(&v->result);
}

static int open_data(verdict_state *v, const fid_set *s, int32_t side, lw_device *dev,
                     const lw_observer *obs, lw_dataset **out)
{
    const lw_data_opts o = {.image_size = side,
                            .split = (lw_split)s->split,
                            .num_images = s->letter == 'A' ? v->c->num_images : 0,
                            .seed = v->c->seed,
                            .on_error = (lw_on_error)v->c->on_error,
                            .pool = dev->pool,
                            .obs = obs};
    return lw_data_open(lw_str_c(&s->spec), &o, out);
}

/* A's pictures: squares, for networks of the battery that take them as they are. */
static int open_row(verdict_state *v, const fid_set *a, lw_device *dev, const lw_observer *obs,
                    int32_t *side)
{
    v->row = (lw_verdict_set){.name = "A", .part = LW_VERDICT_MADE, .n = a->n, .rgb = a->rgb};
    int32_t h = a->h, w = a->w;
    if (a->kind == FID_DATA) {
        LW_TRY(open_data(v, a, v->c->image_size, dev, obs, &v->data[0]));
        const lw_dataset *d = v->data[0];
        v->row.rgb = d->pixels;
        v->row.n = d->n;
        v->row.labels = d->labelled ? d->labels : NULL;
        v->row.classes = d->classes;
        h = d->h;
        w = d->w;
    }
    *side = h;
    if (!v->row.rgb)
        return lw_fail(LW_EUSAGE, "--battery: A (%s) has no pictures that networks could look at",
                       a->source);
    return h == w ? 0
                  : lw_fail(LW_EUSAGE, "--battery: pictures of %dx%d; squares are judged", (int)w,
                            (int)h);
}

/* A run says which encoders its training used: their kin do not count. */
static int leave_out(verdict_state *v, const char *source)
{
    lw_place_kind kind;
    if (lw_place_look(source, &kind) == 0)
        return lw_battery_leave_out_run(v->battery, source, "A");
    lw_errclear();
    return 0;
}

static int judge(verdict_state *v, const fid_set set[2], lw_device *dev, const lw_observer *obs,
                 lw_fid_result *out)
{
    const lw_verdict_opts o = {
        .replicates = REPLICATES, .directions = DIRECTIONS, .seed = v->c->seed};
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    int32_t side;
    if (set[1].kind != FID_DATA)
        return lw_fail(LW_EUSAGE,
                       "--battery: B must be data, real pictures that no training of A saw");
    LW_TRY(open_row(v, &set[0], dev, obs, &side));
    LW_TRY(open_data(v, &set[1], side, dev, obs, &v->data[1]));
    LW_TRY(lw_battery_open(dev, v->c->conv, v->c->battery, side, &v->battery));
    LW_TRY(leave_out(v, set[0].source));
    LW_TRY(lw_verdict_split(v->data[1], v->row.n, &v->real));
    for (int i = 0; i < 2; i++)
        if (v->data[i]) {
            out->side[i].count = v->data[i]->n;
            snprintf(out->side[i].what, sizeof out->side[i].what, "%lld pictures (%s)",
                     (long long)v->data[i]->n, lw_split_name((lw_split)set[i].split));
        }
    if (v->c->dry_run) {
        double seconds = 0;
        LW_TRY(lw_verdict_forecast(dev, v->battery, &v->real, &v->row, 1, &o, &seconds));
        out->verdict_seconds = seconds;
        return 0;
    }
    LW_TRY(lw_verdict_run(dev, v->battery, &v->real, &v->row, 1, &o, obs, &v->result));
    lw_verdict_print(v->battery, &v->row, NULL, v->result, &text);
    snprintf(out->verdict, sizeof out->verdict, "%s", lw_str_c(&text));
    out->verdict_json = lw_verdict_json(v->battery, &v->row, NULL, v->result);
    out->verdict_seconds = v->result->seconds;
    return out->verdict_json ? 0 : LW_ENOMEM;
}

int lw_fid_verdict(const lw_fid_config *c, const fid_set set[2], lw_device *dev,
                   const lw_observer *obs, lw_fid_result *out)
{
    verdict_state v = {.c = c};
    int rc = judge(&v, set, dev, obs, out);
    clear(&v);
    return rc;
}
