/* SPDX-License-Identifier: Apache-2.0 */
#include "models/encoders/models_inverted.h"

#include <stdio.h>
#include <string.h>

#include "formats/formats.h"
#include "models/encoders/models_timm.h"
#include "models/models_private.h"

enum { MAX_WIDTH = 65536 };

/* ---- names ----------------------------------------------------------------------------------- */

int lw_inverted_in_stage(const lw_inverted *a, int n, int *stage)
{
    int i = n - 1;
    for (*stage = 0; i >= a->blocks[*stage]; ++*stage)
        i -= a->blocks[*stage];
    return i;
}

int lw_inverted_blocks(const lw_inverted *a)
{
    int n = 0;
    for (int s = 0; s < LW_INVERTED_STAGES; s++)
        n += a->blocks[s];
    return n;
}

void lw_inverted_name_timm(lw_inverted_names *p, const lw_inverted *a, lw_inverted_part what, int n)
{
    static const char *const word[] = {[LW_INVERTED_EXPAND] = "conv_pw",
                                       [LW_INVERTED_DEPTHWISE] = "conv_dw",
                                       [LW_INVERTED_PROJECT] = "conv_pwl"};
    if (what == LW_INVERTED_STEM || what == LW_INVERTED_HEAD) {
        snprintf(p->conv, sizeof p->conv, what == LW_INVERTED_STEM ? "conv_stem" : "conv_head");
        snprintf(p->norm, sizeof p->norm, what == LW_INVERTED_STEM ? "bn1" : "bn2");
        return;
    }
    int stage, i = lw_inverted_in_stage(a, n, &stage);
    bool first = n == 1; /* depthwise, then "conv_pw" */
    snprintf(p->conv, sizeof p->conv, "blocks.%d.%d.%s", stage, i,
             first && what == LW_INVERTED_PROJECT ? "conv_pw" : word[what]);
    snprintf(p->norm, sizeof p->norm, "blocks.%d.%d.bn%d", stage, i,
             (int)what - (int)(first ? LW_INVERTED_DEPTHWISE : LW_INVERTED_EXPAND) + 1);
}

static lw_inverted_names name_of(const lw_inverted *a, lw_inverted_part what, int n)
{
    lw_inverted_names p = {.norm = ""};
    a->name(&p, a, what, n);
    return p;
}

static int kernel_of(const lw_inverted *a, lw_inverted_part what, int n)
{
    int stage;
    if (what != LW_INVERTED_DEPTHWISE)
        return what == LW_INVERTED_STEM ? 3 : 1;
    lw_inverted_in_stage(a, n, &stage);
    return a->kernel[stage];
}

/* ---- building -------------------------------------------------------------------------------- */

static lw_val convolve(lw_builder *b, const lw_inverted *a, lw_inverted_part what, int n, lw_val x,
                       int32_t o, int stride)
{
    lw_inverted_names p = name_of(a, what, n);
    lw_conv_bn_opts how = {.kernel = kernel_of(a, what, n),
                           .stride = stride,
                           .same = a->same,
                           .depthwise = what == LW_INVERTED_DEPTHWISE,
                           .eps = a->eps};
    x = lw_conv_bn_as(b, p.conv, p.norm[0] ? p.norm : NULL, x, o, how);
    return what == LW_INVERTED_PROJECT ? x : lw_relu6(b->g, x);
}

static lw_val block(lw_builder *b, const lw_inverted *a, int n, lw_val x, int stride)
{
    int32_t c = lw_val_ok(x) ? lw_type_last(lw_val_type(b->g, x)) : 0;
    int32_t inner = a->inner[n - 1], o = a->width[n - 1];
    lw_val h = n == 1 ? x : convolve(b, a, LW_INVERTED_EXPAND, n, x, inner, 1);
    h = convolve(b, a, LW_INVERTED_DEPTHWISE, n, h, inner, stride);
    h = convolve(b, a, LW_INVERTED_PROJECT, n, h, o, 1);
    bool adds = stride == 1 && c == o && !(n == 1 && a->first_in_stem);
    return adds ? lw_add(b->g, h, x) : h;
}

void lw_inverted_build(lw_builder *b, const lw_inverted *a, lw_val x, lw_taps *out)
{
    lw_val map[1 + LW_INVERTED_STAGES];
    const char *top = a->prefix ? lw_scope_push(b->g, a->prefix) : NULL;
    x = map[0] = convolve(b, a, LW_INVERTED_STEM, 0, x, a->stem, 2);
    for (int s = 0, n = 1; s < LW_INVERTED_STAGES; s++) {
        for (int i = 0; i < a->blocks[s]; i++, n++) {
            char name[24];
            snprintf(name, sizeof name, "block.%d", n);
            x = lw_layer_done(b, name, x, block(b, a, n, x, i == 0 ? a->stride[s] : 1));
        }
        map[1 + s] = x;
    }
    x = convolve(b, a, LW_INVERTED_HEAD, 0, x, a->head, 1);
    if (top)
        lw_scope_set(b->g, top);
    lw_val pooled = lw_mean(b->g, x, LW_OVER_MIDDLE);
    if (a->classes > 0)
        lw_tap_add(out, "logits",
                   lw_linear(b, a->classifier, lw_layer_done(b, "head", LW_NOVAL, pooled),
                             a->classes, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, 1 + LW_INVERTED_STAGES);
}

/* ---- which files ----------------------------------------------------------------------------- */

/* The weight of a part, as itself or as bytes with scales; NULL: it is not there, or no convolution
 * with this kernel. */
static const lw_st_tensor *find(const lw_st_file *f, const lw_inverted *a, lw_inverted_part what,
                                int n)
{
    lw_inverted_names p = name_of(a, what, n);
    char name[128];
    int64_t side = kernel_of(a, what, n);
    snprintf(name, sizeof name, "%s%s%s.weight%s", a->prefix ? a->prefix : "", a->prefix ? "." : "",
             p.conv, a->quantized ? "_q" : "");
    const lw_st_tensor *t = lw_st_find_model(f, name);
    if (!t && a->quantized) {
        name[strlen(name) - 2] = '\0';
        t = lw_st_find_model(f, name);
    }
    return t && t->rank == 4 && t->shape[0] >= 1 && t->shape[0] <= MAX_WIDTH &&
                   t->shape[2] == side && t->shape[3] == side
               ? t
               : NULL;
}

static int32_t read_classes(const lw_st_file *f, const lw_inverted *a)
{
    char name[48];
    snprintf(name, sizeof name, "%s.bias", a->classifier);
    const lw_st_tensor *t = lw_st_find_model(f, name);
    return t && t->rank == 1 && t->shape[0] <= MAX_WIDTH * 16 ? (int32_t)t->shape[0] : 0;
}

bool lw_inverted_read(const lw_st_file *f, lw_inverted *a)
{
    const lw_st_tensor *stem = find(f, a, LW_INVERTED_STEM, 0),
                       *head = find(f, a, LW_INVERTED_HEAD, 0);
    if (!stem || !head)
        return false;
    a->stem = (int32_t)stem->shape[0];
    a->head = (int32_t)head->shape[0];
    for (int n = 1; n <= lw_inverted_blocks(a); n++) {
        const lw_st_tensor *inner = find(f, a, LW_INVERTED_DEPTHWISE, n),
                           *out = find(f, a, LW_INVERTED_PROJECT, n);
        if (!inner || !out || inner->shape[1] != 1)
            return false;
        a->inner[n - 1] = (int32_t)inner->shape[0];
        a->width[n - 1] = (int32_t)out->shape[0];
    }
    a->classes = read_classes(f, a);
    return true;
}

int32_t lw_inverted_times(int32_t channels, double by)
{
    double want = channels * by;
    int32_t n = LW_MAX((int32_t)(want + 4) / 8 * 8, 8);
    return n < 0.9 * want ? n + 8 : n;
}

bool lw_inverted_has_widths(const lw_inverted *a, const int32_t width[LW_INVERTED_STAGES],
                            double by)
{
    int32_t c = a->stem;
    for (int s = 0, n = 1; s < LW_INVERTED_STAGES; s++)
        for (int i = 0; i < a->blocks[s]; i++, n++) {
            if (a->inner[n - 1] != (n == 1 ? c : 6 * c) ||
                a->width[n - 1] != lw_inverted_times(width[s], by))
                return false;
            c = a->width[n - 1];
        }
    return true;
}

/* ---- timm's config.json ---------------------------------------------------------------------- */

int lw_inverted_read_timm(const json_t *config, const char *where, lw_inverted *a)
{
    static const char *const timm[] = {"architecture",   "num_classes", "num_features",
                                       "pretrained_cfg", "model_args",  NULL};
    static const char *const more[] = {"bn_eps", NULL};
    static const char *const *const known[] = {timm, NULL};
    static const lw_json_only only[] = {{"global_pool", "\"avg\""}, {0}};
    static const lw_json_only pads[] = {{"pad_type", "\"\""}, {"pad_type", "\"same\""}, {0}};
    const json_t *o = json_object_get(config, "model_args");
    const char *pad = a->same ? "same" : "";
    double eps = (double)a->eps;
    LW_TRY(lw_json_check_known(config, where, known, only));
    LW_TRY(lw_timm_check_args(config, where, more, pads));
    if (json_is_object(o)) {
        LW_TRY(lw_json_opt_f64(o, where, "bn_eps", &eps));
        LW_TRY(lw_json_opt_str(o, where, "pad_type", &pad));
    }
    a->name = lw_inverted_name_timm;
    a->classifier = "classifier";
    a->same = lw_str_eq(pad, "same");
    a->eps = (float)eps;
    return 0;
}

void lw_inverted_write_timm(const lw_inverted *a, const char *architecture,
                            const lw_inverted *usual, json_t *config)
{
    json_t *args = json_object();
    if (a->eps != usual->eps)
        json_object_set_new(args, "bn_eps", lw_json_float(a->eps));
    if (a->same != usual->same)
        json_object_set_new(args, "pad_type", json_string(a->same ? "same" : ""));
    json_object_set_new(config, "architecture", json_string(architecture));
    json_object_set_new(config, "num_classes", json_integer(a->classes));
    json_object_set_new(config, "num_features", json_integer(a->head));
    json_object_set_new(config, "global_pool", json_string("avg"));
    json_object_set_new(config, "model_args", args);
}
