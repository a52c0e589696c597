/* SPDX-License-Identifier: Apache-2.0 */
/* What the page may turn, as JSON both ways. */
#include <math.h>
#include <string.h>

#include "serve/serve_rules.h"

#define WHERE "settings"

static const char *const costs[] = {"live", "reset", "rebuild"};

static int read_knob(const json_t *o, const char *key, const lw_serve_knob *knobs, int32_t n,
                     lw_serve_asked *to)
{
    for (int32_t i = 0; i < n; i++) {
        double value;
        if (strcmp(knobs[i].name, key) != 0)
            continue;
        LW_TRY(lw_json_get_f64(o, WHERE, key, &value));
        if (!(value >= knobs[i].least && value <= knobs[i].most))
            return lw_fail(LW_EFORMAT, WHERE ": '%s' must be within %g to %g, is %g", key,
                           knobs[i].least, knobs[i].most, value);
        bool whole = knobs[i].choices || knobs[i].step == floor(knobs[i].step);
        if (whole && value != floor(value))
            return lw_fail(LW_EFORMAT, WHERE ": '%s' must be a whole number, is %g", key, value);
        to->value[i] = value;
        return 0;
    }
    return lw_fail(LW_EFORMAT, WHERE ": there is no '%s'", key);
}

int lw_serve_settings_read(const char *text, size_t n, const lw_serve_knob *knobs, int32_t n_knobs,
                           lw_serve_asked *asked)
{
    LW_CLEANUP(lw_json_drop) json_t *o = NULL;
    lw_serve_asked to = *asked;
    const char *key;
    json_t *value;
    LW_TRY(lw_json_parse(WHERE, text, n, &o));
    if (!json_is_object(o))
        return lw_fail(LW_EFORMAT, WHERE ": must be an object");
    json_object_foreach(o, key, value)
    {
        bool on = false;
        if (strcmp(key, "paused") == 0) {
            LW_TRY(lw_json_get_bool(o, WHERE, key, &to.paused));
        } else if (strcmp(key, "reset") == 0) {
            LW_TRY(lw_json_get_bool(o, WHERE, key, &on));
            to.resets += on;
        } else {
            LW_TRY(read_knob(o, key, knobs, n_knobs, &to));
        }
    }
    *asked = to;
    return 0;
}

static json_t *choices_json(const lw_serve_knob *k)
{
    json_t *all = json_array();
    for (int32_t i = 0; i <= (int32_t)k->most; i++) {
        char clean[256];
        lw_clean(clean, sizeof clean, k->choices[i]);
        json_array_append_new(all, json_string(clean));
    }
    return all;
}

json_t *lw_serve_settings_json(const lw_serve_options *o, const lw_serve_size *size,
                               const lw_serve_asked *asked)
{
    json_t *knobs = json_array(), *all;
    for (int32_t i = 0; i < o->n_knobs; i++) {
        const lw_serve_knob *k = &o->knobs[i];
        json_t *knob = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s}", "name", k->name, "label",
                                 k->label, "least", lw_json_real(k->least), "most",
                                 lw_json_real(k->most), "step", lw_json_real(k->step), "value",
                                 lw_json_real(asked->value[i]), "cost", costs[k->cost]);
        if (k->choices)
            json_object_set_new(knob, "choices", choices_json(k));
        json_array_append_new(knobs, knob);
    }
    all = json_pack("{s:b, s:o}", "paused", asked->paused, "knobs", knobs);
    char clean[512]; /* names of files need not be UTF-8 */
    if (o->title) {
        lw_clean(clean, sizeof clean, o->title);
        json_object_set_new(all, "title", json_string(clean));
    }
    if (size->camera_fps)
        json_object_set_new(all, "camera",
                            json_pack("{s:i, s:i, s:i}", "width", size->in_w, "height", size->in_h,
                                      "fps", size->camera_fps));
    return all;
}
