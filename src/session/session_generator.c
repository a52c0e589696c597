/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a trained generator. */
#include "session/session_generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "session/session_flow.h"

/* ---- opening ---------------------------------------------------------------------------- */

/* state.json lies beside the weights, or one folder up from the averaged ones. */
static int read_state(lw_source *s)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_checkpoint_clear) lw_checkpoint c = {0};
    lw_path_join(&path, s->net->dir, "state.json");
    if (!lw_path_exists(lw_str_c(&path)))
        lw_path_join(&path, s->net->dir, "../state.json");
    s->step = -1;
    if (!lw_path_exists(lw_str_c(&path)))
        return 0;
    LW_TRY(lw_checkpoint_state(lw_str_c(&path), &c));
    const json_t *work = json_object_get(c.extra, "work");
    s->work = (lw_train_work){json_number_value(json_object_get(work, "wall_s")),
                              json_number_value(json_object_get(work, "cpu_s"))};
    s->in_turns = json_is_true(json_object_get(work, "in_turns"));
    s->best = json_incref(json_object_get(c.extra, "best"));
    s->step = c.step;
    s->train_seconds = c.train_seconds;
    return 0;
}

int lw_network_method(const lw_network *n, lw_method *method, lw_diffusion **diffusion)
{
    *method = lw_net_method(n->config);
    if (*method == LW_METHOD_DRIFT)
        return 0;
    LW_CLEANUP(lw_free) lw_diffusion *d = lw_calloc(1, sizeof *d);
    if (!d)
        return LW_ENOMEM;
    LW_TRY(lw_diffusion_find(n->dir, n->config, d));
    const bool said = json_object_get(n->config, "leeway_method") != NULL;
    if (said && lw_diffusion_flows(d) != (*method == LW_METHOD_FLOW))
        return lw_fail(
            LW_EFORMAT,
            "%s: 'leeway_method' of its config.json is %s, but its scheduler_config.json "
            "is %s",
            n->dir, lw_method_name(*method),
            lw_diffusion_flows(d) ? "of a rectified flow" : "of a DDPM");
    *method = lw_diffusion_flows(d) ? LW_METHOD_FLOW : LW_METHOD_DDPM;
    *diffusion = lw_steal(&d);
    return 0;
}

int lw_generator_check(const lw_network *n)
{
    if (!n->generator || n->outputs == 0)
        return lw_fail(LW_EFORMAT, "%s: this is no generator but %s, which makes no pictures",
                       n->dir, n->name);
    if (n->channels != n->outputs || n->channels > LW_MAX_CHANNELS)
        return lw_fail(LW_EUNSUPPORTED,
                       "%s: 'in_channels' is %d and 'out_channels' %d: pictures are made by models "
                       "of as many, at most %d",
                       n->dir, (int)n->channels, (int)n->outputs, LW_MAX_CHANNELS);
    return 0;
}

static int open_into(lw_source *s, const char *source, bool ema)
{
    s->name = lw_strdup(source);
    if (!s->name)
        return LW_ENOMEM;
    LW_TRY(lw_network_open(source, ema, &s->net));
    const lw_network *n = s->net;
    LW_TRY(lw_generator_check(n));
    LW_TRY(lw_network_method(n, &s->method, &s->diffusion));
    s->hash = lw_store_hash(n->store, LW_SLAB_PARAM);
    LW_TRY(lw_quantization_find(n->dir, &s->quant));
    s->averaged = lw_weights_averaged(n->dir, s->quant);
    return read_state(s);
}

int lw_source_open(const char *source, bool ema, lw_source **out)
{
    LW_CLEANUP(lw_source_close) lw_source *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    LW_TRY(open_into(s, source, ema));
    *out = lw_steal(&s);
    return 0;
}

void lw_source_close(lw_source **pp)
{
    lw_source *s = *pp;
    if (!s)
        return;
    lw_network_close(&s->net);
    lw_quantization_free(&s->quant);
    lw_json_drop(&s->best);
    lw_free(&s->diffusion);
    lw_free(&s->name);
    lw_free(pp);
}

/* ---- classes ---------------------------------------------------------------------------- */

const char *lw_source_class(const lw_source *s, int32_t c, char buf[16])
{
    const json_t *names = json_object_get(s->net->config, "leeway_class_names");
    const char *name = json_string_value(json_array_get(names, (size_t)c));
    if (name)
        return name;
    snprintf(buf, 16, "%d", (int)c);
    return buf;
}

static int find_class(const lw_source *s, const char *word, int32_t *out)
{
    char buf[16], near_buf[16];
    const char *near = "";
    int64_t number;
    for (int32_t c = 0; c < s->net->classes; c++) {
        const char *name = lw_source_class(s, c, buf);
        if (lw_str_eq(word, name)) {
            *out = c;
            return 0;
        }
        if (c == 0 || lw_str_distance(word, name) < lw_str_distance(word, near)) {
            snprintf(near_buf, sizeof near_buf, "%s", name);
            near = near_buf;
        }
    }
    if (lw_parse_i64(word, &number) == 0 && number >= 0 && number < s->net->classes) {
        *out = (int32_t)number;
        return 0;
    }
    return lw_fail(LW_EUSAGE,
                   "--classes: %s has no class '%s' (did you mean '%s'? numbers are 0 .. %d)",
                   s->name, word, near, (int)s->net->classes - 1);
}

int lw_source_classes(const lw_source *s, const char *list, int32_t **out, int32_t *n)
{
    bool all = !list || lw_str_eq(list, "all");
    size_t cap = 1;
    if (s->net->classes == 0 && !all)
        return lw_fail(LW_EUSAGE, "--classes: %s is unconditional, it has no classes", s->name);
    for (const char *p = all ? "" : list; *p; p++)
        cap += *p == ',';
    cap = all ? (size_t)LW_MAX(s->net->classes, 1) : cap;
    LW_CLEANUP(lw_free) int32_t *v = lw_calloc(cap, sizeof *v);
    LW_CLEANUP(lw_free) char *text = lw_strdup(all ? "" : list);
    if (!v || !text)
        return LW_ENOMEM;
    for (int32_t i = 0; all && i < s->net->classes; i++)
        v[i] = i;
    *n = all ? (int32_t)cap : 0;
    for (char *word = text, *next; !all && word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        LW_TRY(find_class(s, word, &v[*n]));
        (*n)++;
    }
    *out = lw_steal(&v);
    return 0;
}
