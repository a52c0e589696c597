/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that configurations of the transformers library share. */
#include "models/encoders/models_transformers.h"

#include <math.h>

/* What every configuration may hold: training, text generation, how results are handed over. None
 * changes what a picture's network computes. */
static const char *const without_effect[] = {"architectures",
                                             "bad_words_ids",
                                             "begin_suppress_tokens",
                                             "bos_token_id",
                                             "chunk_size_feed_forward",
                                             "decoder_start_token_id",
                                             "diversity_penalty",
                                             "do_sample",
                                             "dtype",
                                             "early_stopping",
                                             "encoder_no_repeat_ngram_size",
                                             "eos_token_id",
                                             "exponential_decay_length_penalty",
                                             "finetuning_task",
                                             "forced_bos_token_id",
                                             "forced_eos_token_id",
                                             "id2label",
                                             "initializer_factor",
                                             "initializer_range",
                                             "label2id",
                                             "length_penalty",
                                             "max_length",
                                             "min_length",
                                             "model_type",
                                             "no_repeat_ngram_size",
                                             "num_beam_groups",
                                             "num_beams",
                                             "num_labels",
                                             "num_return_sequences",
                                             "output_attentions",
                                             "output_hidden_states",
                                             "output_scores",
                                             "pad_token_id",
                                             "prefix",
                                             "problem_type",
                                             "remove_invalid_values",
                                             "repetition_penalty",
                                             "return_dict",
                                             "return_dict_in_generate",
                                             "sep_token_id",
                                             "suppress_tokens",
                                             "task_specific_params",
                                             "temperature",
                                             "tf_legacy_loss",
                                             "tie_encoder_decoder",
                                             "tie_word_embeddings",
                                             "tokenizer_class",
                                             "top_k",
                                             "top_p",
                                             "torch_dtype",
                                             "torchscript",
                                             "transformers_version",
                                             "typical_p",
                                             "use_bfloat16",
                                             NULL};

/* What every configuration may hold and would change the network: only this is built. */
static const lw_json_only only_off[] = {{"add_cross_attention", "false"},
                                        {"cross_attention_hidden_size", "null"},
                                        {"is_decoder", "false"},
                                        {"is_encoder_decoder", "false"},
                                        {"pruned_heads", "{}"},
                                        {"quantization_config", "null"},
                                        {0}};

int lw_transformers_check(const json_t *config, const char *where, const char *const *own)
{
    const char *const *const known[] = {own, without_effect, NULL};
    return lw_json_check_known(config, where, known, only_off);
}

bool lw_transformers_class(const json_t *config, const char *name)
{
    const json_t *list = json_object_get(config, "architectures");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *have = json_string_value(json_array_get(list, i));
        if (have && lw_str_eq(have, name))
            return true;
    }
    return false;
}

static bool given(const json_t *config, const char *key)
{
    const json_t *v = json_object_get(config, key);
    return v && !json_is_null(v);
}

int lw_transformers_count(const json_t *config, const char *where, const char *key, int32_t hi,
                          int32_t *out)
{
    return given(config, key) ? lw_json_get_i32_in(config, where, key, 1, hi, out) : 0;
}

static int read_side(const json_t *config, const char *where, const char *key, int32_t *out)
{
    enum { MOST = 16384 };
    int32_t side[2];
    int n;
    if (!json_is_array(json_object_get(config, key)))
        return lw_transformers_count(config, where, key, MOST, out);
    LW_TRY(lw_json_get_i32s(config, where, key, 2, side, &n));
    if (n != 2 || side[0] != side[1] || side[0] < 1 || side[0] > MOST)
        return lw_fail(LW_EUNSUPPORTED, "%s: '%s' must be a square of 1 to %d here", where, key,
                       MOST);
    *out = side[0];
    return 0;
}

/* Of several names of one, the first is written. */
static const struct {
    const char *name;
    lw_ewop op;
} known[] = {{"gelu", LW_EW_gelu},
             {"gelu_python", LW_EW_gelu},
             {"gelu_pytorch_tanh", LW_EW_gelu_tanh},
             {"gelu_new", LW_EW_gelu_tanh},
             {"quick_gelu", LW_EW_quick_gelu},
             {"relu", LW_EW_relu},
             {"silu", LW_EW_silu},
             {"swish", LW_EW_silu}};

static int read_act(const json_t *config, const char *where, lw_ewop *out)
{
    const char *name = NULL;
    LW_TRY(lw_json_opt_str(config, where, "hidden_act", &name));
    if (!name)
        return 0;
    for (size_t i = 0; i < LW_COUNT(known); i++) {
        if (lw_str_eq(known[i].name, name)) {
            *out = known[i].op;
            return 0;
        }
    }
    return lw_fail(LW_EUNSUPPORTED,
                   "%s: 'hidden_act' is %s, known are gelu, gelu_pytorch_tanh, quick_gelu, relu "
                   "and silu",
                   where, name);
}

static int read_eps(const json_t *config, const char *where, float *out)
{
    double eps = (double)*out;
    LW_TRY(lw_json_opt_f64(config, where, "layer_norm_eps", &eps));
    *out = (float)eps;
    return *out > 0 && isfinite(*out)
               ? 0
               : lw_fail(LW_EFORMAT, "%s: 'layer_norm_eps' is %g", where, eps);
}

int lw_transformers_act_is(const json_t *config, const char *where, const char *act)
{
    const char *name = act;
    LW_TRY(lw_json_opt_str(config, where, "hidden_act", &name));
    return lw_str_eq(name, act)
               ? 0
               : lw_fail(LW_EUNSUPPORTED, "%s: 'hidden_act' is %s, only %s is built here", where,
                         name, act);
}

int lw_transformers_vit(const json_t *config, const char *where, lw_vit *out)
{
    enum { WIDEST = 1 << 16 };
    LW_TRY(lw_transformers_count(config, where, "hidden_size", WIDEST, &out->width));
    LW_TRY(lw_transformers_count(config, where, "intermediate_size", WIDEST, &out->hidden));
    LW_TRY(
        lw_transformers_count(config, where, "num_hidden_layers", LW_VIT_MAX_DEPTH, &out->depth));
    LW_TRY(lw_transformers_count(config, where, "num_attention_heads", 1024, &out->heads));
    LW_TRY(read_side(config, where, "image_size", &out->image_size));
    LW_TRY(read_side(config, where, "patch_size", &out->patch));
    LW_TRY(read_act(config, where, &out->act));
    LW_TRY(read_eps(config, where, &out->eps));
    return lw_vit_check(out, where);
}

void lw_transformers_put_vit(const lw_vit *v, json_t *config)
{
    const struct {
        const char *key;
        int32_t value;
    } counts[] = {{"hidden_size", v->width},         {"num_hidden_layers", v->depth},
                  {"num_attention_heads", v->heads}, {"image_size", v->image_size},
                  {"patch_size", v->patch},          {"num_channels", 3}};
    size_t act = 0;
    for (size_t i = 0; i < LW_COUNT(counts); i++)
        json_object_set_new(config, counts[i].key, json_integer(counts[i].value));
    while (known[act].op != v->act)
        act++;
    json_object_set_new(config, "hidden_act", json_string(known[act].name));
    json_object_set_new(config, "layer_norm_eps", lw_json_float(v->eps));
}

/* Where a folder says it twice, vision_config_dict counts: transformers reads it so. */
int lw_transformers_vision(const json_t **config, const char **where, const char *const *own,
                           lw_str *in)
{
    const char *const keys[] = {"vision_config_dict", "vision_config"};
    for (size_t i = 0; i < LW_COUNT(keys); i++) {
        const json_t *v = json_object_get(*config, keys[i]);
        if (!json_is_object(v))
            continue;
        LW_TRY(lw_transformers_check(*config, *where, own));
        lw_str_addf(in, "%s: %s", *where, keys[i]);
        *config = v;
        *where = lw_str_c(in);
        return in->failed ? LW_ENOMEM : 0;
    }
    return 0;
}
