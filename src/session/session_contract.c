/* SPDX-License-Identifier: Apache-2.0 */
/* What features are of, and what their distance is called. */
#include "session/session_contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "session/session_quantization.h"

const char *const lw_contract_key_name[LW_CONTRACT_KEYS] = {"resize", "encoder",     "encoder_hash",
                                                            "layer",  "preparation", "dtype"};

static void set(lw_contract *c, lw_contract_key key, const char *value)
{
    snprintf(c->value[key], sizeof c->value[key], "%s", value);
}

void lw_contract_preparation(const lw_network *n, lw_str *out)
{
    if (n->prepared)
        lw_preparation_print(&n->preparation, out);
    else
        lw_str_add(out, "byte / 127.5 - 1");
}

void lw_contract_of(const lw_network *n, int32_t precision, int32_t h, int32_t w, lw_contract *out)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    bool sized = lw_network_sized(n);
    char hash[32];
    *out = (lw_contract){0};
    lw_contract_preparation(n, &text);
    if (!sized)
        lw_str_addf(&text, ", pictures of %dx%d", (int)w, (int)h);
    snprintf(hash, sizeof hash, "%016" PRIx64, lw_store_hash(n->store, LW_SLAB_PARAM));
    set(out, LW_CONTRACT_RESIZE, sized ? lw_resample_form_name[n->preparation.form] : "none");
    set(out, LW_CONTRACT_ENCODER, n->name);
    set(out, LW_CONTRACT_HASH, hash);
    set(out, LW_CONTRACT_LAYER, "pooled");
    set(out, LW_CONTRACT_PREPARATION, lw_str_c(&text));
    set(out, LW_CONTRACT_DTYPE, lw_precision_name(precision));
}

bool lw_contract_said(const lw_contract *c)
{
    for (int k = 0; k < LW_CONTRACT_KEYS; k++)
        if (*c->value[k])
            return true;
    return false;
}

json_t *lw_contract_json(const lw_contract *c)
{
    json_t *j = json_object();
    for (int k = 0; k < LW_CONTRACT_KEYS; k++)
        if (*c->value[k])
            json_object_set_new(j, lw_contract_key_name[k], json_string(c->value[k]));
    return j;
}

int lw_contract_parse(const char *what, const json_t *j, lw_contract *out)
{
    *out = (lw_contract){0};
    for (int k = 0; k < LW_CONTRACT_KEYS; k++) {
        const json_t *value = json_object_get(j, lw_contract_key_name[k]);
        if (!value)
            continue;
        if (!json_is_string(value) || json_string_length(value) >= sizeof out->value[k])
            return lw_fail(LW_EFORMAT, "%s: '%s' of its contract is no text of at most %zu bytes",
                           what, lw_contract_key_name[k], sizeof out->value[k] - 1);
        set(out, (lw_contract_key)k, json_string_value(value));
    }
    return 0;
}

lw_contract_key lw_contract_differs(const lw_contract *a, const lw_contract *b)
{
    int k = 0;
    while (k < LW_CONTRACT_KEYS &&
           (!*a->value[k] || !*b->value[k] || lw_str_eq(a->value[k], b->value[k])))
        k++;
    return (lw_contract_key)k;
}

const char *lw_contract_frechet(const lw_contract *c, char buf[96])
{
    /* pytorch-fid's: the form and the resize that lw_network_def_inception_v3 opens its weights with */
    static const char fid[] = "inception_v3_fid";
    const char *encoder = c->value[LW_CONTRACT_ENCODER], *resize = c->value[LW_CONTRACT_RESIZE];
    if (lw_str_eq(encoder, fid) && lw_str_eq(resize, lw_resample_form_name[LW_RESAMPLE_TORCH]))
        snprintf(buf, 96, "FID");
    else if (lw_str_eq(encoder, fid))
        snprintf(buf, 96, "Frechet distance, %s, resize %.32s", fid, resize);
    else
        snprintf(buf, 96, *encoder ? "Frechet distance, %.64s" : "Frechet distance%.1s", encoder);
    return buf;
}
