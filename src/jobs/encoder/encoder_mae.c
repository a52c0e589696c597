/* SPDX-License-Identifier: Apache-2.0 */
/* Masked reconstruction: hide cells, reconstruct them, and at the end predict the label too. */
#include "jobs/encoder/encoder_mae.h"

#include <math.h>
#include <string.h>

static bool scheduled(const lw_train_encoder_config *c)
{
    return c->mask_schedule != LW_MASK_FIXED;
}

int lw_encoder_mae_check(const lw_train_encoder_config *c)
{
    if (c->objective != LW_OBJECTIVE_MAE) {
        if (c->arch == LW_ENCODER_RESNET34_UNET)
            return lw_fail(LW_EUSAGE, "--arch resnet34-unet: only --objective mae trains it");
        if (scheduled(c) || c->cls_ft_steps > 0)
            return lw_fail(LW_EUSAGE, "%s: only --objective mae has it",
                           scheduled(c) ? "--mask-schedule" : "--cls-ft-steps");
        return 0;
    }
    if (c->arch != LW_ENCODER_RESNET34_UNET && (c->cls_ft_steps > 0 || c->patchify > 1))
        return lw_fail(LW_EUSAGE, "%s: only --arch resnet34-unet has it",
                       c->cls_ft_steps > 0 ? "--cls-ft-steps" : "--input-patchify-size");
    if (scheduled(c) && c->mask_warmup_steps < 1)
        return lw_fail(LW_EUSAGE,
                       "--mask-schedule: say over how many steps by --mask-warmup-steps");
    if (c->cls_ft_steps > 0 && c->train.steps < c->cls_ft_steps)
        return lw_fail(
            LW_EUSAGE,
            "--cls-ft-steps %lld: are the last of --steps, of which there must be as many",
            (long long)c->cls_ft_steps);
    return 0;
}

int lw_encoder_mae_declare(lw_encoder_mae *m, lw_picture_run *p)
{
    const lw_train_encoder_config *c = m->c;
    bool labels = lw_encoder_mae_labels(c);
    if (labels && !p->data->labelled)
        return lw_fail(LW_EUSAGE, "--cls-ft-steps: %s has no labels", p->data->spec);
    m->unet = (lw_mae_config){.image_size = p->data->h,
                              .channels = p->data->channels,
                              .width = c->width,
                              .patchify = c->patchify,
                              .classes = labels ? p->data->classes : 0,
                              .decoder = true};
    LW_TRY(lw_mae_declare(&m->unet, p->store));
    p->model = lw_mae_to_json(&m->unet);
    return p->model ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

/* (1 - lambda) rec + lambda CE, of the same hidden pictures. */
static lw_val add_labels(const lw_encoder_mae *m, lw_graph *g, lw_val rec, const lw_taps *taps)
{
    if (!lw_encoder_mae_labels(m->c))
        return rec;
    int32_t batch = lw_val_ok(rec) ? lw_val_type(g, rec).dim[0] : 1;
    lw_val lambda = lw_input(g, "label_share", lw_type_of(LW_F32, 1, 1));
    lw_val ce = lw_cross_entropy(g, lw_tap_find(taps, "logits"),
                                 lw_input(g, "labels", lw_type_of(LW_I32, 1, batch)));
    return lw_add(g, rec, lw_mul(g, lw_sub(g, ce, rec), lambda));
}

lw_val lw_encoder_mae_loss(const lw_encoder_mae *m, lw_builder *b, lw_val x)
{
    const lw_train_encoder_config *c = m->c;
    lw_graph *g = b->g;
    lw_taps taps = {0};
    bool unet = c->arch == LW_ENCODER_RESNET34_UNET;
    lw_val p = scheduled(c) ? lw_input(g, "mask_ratio", lw_type_of(LW_F32, 1, 1))
                            : lw_const_f32(g, (float)c->mask_ratio);
    if (unet)
        x = lw_mae_places(g, &m->unet, x);
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(g, x);
    lw_val mask = lw_mae_mask(b, t.dim[0], t.dim[1], c->mask_patch, p);
    lw_val hidden = lw_mae_hide(g, x, mask), rec;
    if (unet) {
        lw_mae_net(b, &m->unet, hidden, &taps);
        rec = lw_mae_decode(b, &m->unet, &taps);
    } else {
        lw_encoder_net(b, m->net, hidden, &taps);
        rec = lw_encoder_decode(b, m->net, &taps);
    }
    return add_labels(m, g, lw_mae_loss(g, rec, x, mask), &taps);
}

double lw_encoder_mae_ratio(const lw_train_encoder_config *c, int64_t step)
{
    double part = scheduled(c) ? LW_MIN((double)step / (double)c->mask_warmup_steps, 1.0) : 1.0;
    if (c->mask_schedule == LW_MASK_COSINE)
        part = 0.5 - 0.5 * cos(3.14159265358979323846 * part);
    return part * c->mask_ratio;
}

double lw_encoder_mae_lambda(const lw_train_encoder_config *c, int64_t step)
{
    int64_t first = c->train.steps - c->cls_ft_steps;
    return step < first ? 0.0 : 0.1 * LW_MIN((double)(step - first) / 1000.0, 1.0);
}

void lw_encoder_mae_feed(const lw_encoder_mae *m, lw_exec *e, int64_t step)
{
    if (scheduled(m->c))
        *(float *)lw_exec_write(e, "mask_ratio") = (float)lw_encoder_mae_ratio(m->c, step);
    if (lw_encoder_mae_labels(m->c))
        *(float *)lw_exec_write(e, "label_share") = (float)lw_encoder_mae_lambda(m->c, step);
}

int lw_encoder_export(const char *run, const char *dir)
{
    LW_CLEANUP(lw_network_close) lw_network *from = NULL, *to = NULL;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_json_drop) json_t *config = NULL;
    LW_TRY(lw_network_open(run, true, &from));
    config = json_deep_copy(from->config);
    if (!config || json_object_set_new(config, "decoder", json_false()) < 0)
        return lw_fail(LW_ENOMEM, "out of memory for config.json");
    LW_TRY(lw_network_of_config(config, dir, &to));
    LW_TRY(lw_store_new(true, &s));
    LW_TRY(lw_network_declare(to, s));
    for (int32_t i = 0; i < lw_store_count(s); i++) {
        const lw_store_entry *e = lw_store_at(s, i);
        int32_t at = lw_store_find(from->store, e->name);
        LW_ASSERT(at >= 0 && lw_store_at(from->store, at)->count == e->count, "%s", e->name);
        memcpy(lw_store_edit(s, i, LW_SLAB_PARAM), lw_store_data(from->store, at, LW_SLAB_PARAM),
               (size_t)e->count * sizeof(float));
    }
    return lw_model_folder_save(dir, s, LW_SLAB_PARAM, config, LW_WEIGHTS_HF);
}
