/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys, and what is made of their losses. */
#include "jobs/drift/drift_loss.h"

/* All pixels as one vector: the drift loss without an encoder. */
static bool is_raw(const lw_feature_key *k)
{
    return k->part == LW_PART_PIXELS;
}

static int add_raw(const char *list, const lw_network *encoder, int32_t size, int32_t channels,
                   lw_feature_set *out)
{
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    for (int32_t k = 0; k < out->n; k++)
        if (is_raw(&out->key[k]))
            return 0;
    lw_str_addf(&all, "%s,pix", list);
    return lw_features_parse(lw_str_c(&all), encoder, size, channels, out);
}

int lw_drift_keys(const lw_drift_config *c, const lw_network *encoder, int32_t size,
                  int32_t channels, lw_feature_set *out)
{
    const lw_drift_loss_config *l = &c->loss;
    const char *own = encoder->def->keys ? encoder->def->keys : "col",
               *list = c->feature_keys ? c->feature_keys
                       : encoder->dir  ? own
                                       : "pixels";
    if (l->use_feature_loss && !encoder->dir)
        return lw_fail(LW_EUSAGE, "--use-feature-loss: whose features? Name one by --encoder");
    LW_TRY(lw_features_parse(list, encoder, size, channels, out));
    if (l->include_raw)
        LW_TRY(add_raw(list, encoder, size, channels, out));
    return lw_features_filter(out, &l->filter);
}

float lw_drift_share(const lw_drift_config *c, const lw_feature_set *keys, int k)
{
    const lw_drift_loss_config *l = &c->loss;
    double share = l->include_raw && is_raw(&keys->key[k]) ? l->raw_weight : 1.0;
    return (float)(l->term_reduction == LW_TERMS_MEAN ? share / keys->n : share);
}

lw_val lw_drift_shared(const lw_drift_config *c, const lw_feature_set *keys, int k, lw_graph *g,
                       lw_val v)
{
    float share = lw_drift_share(c, keys, k);
    return share == 1.0f ? v : lw_scale(g, v, share);
}

/* Of V / lambda of each temperature by itself, sum of m / lambda^2; F's is their sum's square. */
float lw_drift_key_loss(const lw_drift_config *c, const lw_feature_set *keys, int k,
                        const float *stats)
{
    int32_t n = c->n_temperatures;
    double sum = 0.0;
    if (c->loss.aggregation == LW_SUM_THEN_MSE)
        return lw_drift_share(c, keys, k) * stats[2];
    for (int32_t t = 0; t < n; t++)
        sum += (double)stats[3 + n + t] / ((double)stats[3 + t] * (double)stats[3 + t]);
    return lw_drift_share(c, keys, k) * (float)sum;
}

lw_val lw_drift_key_term(const lw_drift_config *c, const lw_feature_set *keys, int k, lw_graph *g,
                         lw_drift_out o)
{
    int32_t n = c->n_temperatures;
    lw_val loss = o.loss;
    if (c->loss.aggregation == LW_MSE_EACH && lw_val_ok(loss)) {
        /* The gradient is the same: goals are constants. Statistics have none. */
        lw_val lambda = lw_slice(g, o.stats, 0, 3, 3 + n),
               m = lw_slice(g, o.stats, 0, 3 + n, 3 + 2 * n);
        lw_val each = lw_sum(g, lw_div(g, m, lw_sqr(g, lambda)), LW_OVER_ALL);
        loss = lw_add(g, loss, lw_sub(g, each, lw_slice(g, o.stats, 0, 2, 3)));
    }
    return lw_drift_shared(c, keys, k, g, loss);
}
