/* SPDX-License-Identifier: Apache-2.0 */
/* Inception-v3 and ConvNeXt: which configurations are read, what else is refused by name, whose
 * files are whose. Their numbers are compared in tests/golden. */
#include "unit/test_store_util.h"

#include "models/models.h"

/* A folder with a config.json and weights that are of no network. */
static void open_with(const char *config, int code, const char *says)
{
    lw_network *n = NULL;
    put_file(in_scratch("net/config.json"), config, strlen(config));
    assert_fails(code, says, lw_network_open(in_scratch("net"), true, &n));
    assert_null(n);
}

/* model_args as timm 1.0.31 writes them, with the same beside them. */
#define TIMM_SAID(name)                                                                \
    "{\"architecture\": \"" name "\", \"num_classes\": 9, \"num_features\": 8, "       \
    "\"global_pool\": \"avg\", \"model_args\": {\"in_chans\": 3, \"num_classes\": 9, " \
    "\"global_pool\": \"avg\"}}"

static void test_configs(void **state)
{
    static const struct {
        const char *config, *says;
        int code;
    } bad[] = {
        {"{\"architecture\": \"inception_v3\", \"model_args\": {\"aux_logits\": true}}",
         "'aux_logits' is true", LW_EUNSUPPORTED},
        /* read as far as the weights */
        {TIMM_SAID("inception_v3"), "not an Inception-v3 of", LW_EFORMAT},
        {TIMM_SAID("convnext_tiny"), "not a ConvNeXt of", LW_EFORMAT},
        {TIMM_SAID("resnet18"), "not a ResNet of", LW_EFORMAT},
        {TIMM_SAID("mobilenetv2_100"), "not a MobileNetV2 of", LW_EFORMAT},
        {TIMM_SAID("tf_efficientnet_lite0"), "not an EfficientNet-Lite of", LW_EFORMAT},
        {"{\"architecture\": \"inception_v3\", \"num_classes\": 9, "
         "\"model_args\": {\"num_classes\": 8}}",
         "'num_classes' is 8 in 'model_args' and 9 beside it", LW_EUNSUPPORTED},
        {"{\"architecture\": \"mobilenetv2_100\", \"global_pool\": \"avg\", "
         "\"model_args\": {\"global_pool\": \"fast\"}}",
         "'global_pool' is \"fast\" in 'model_args' and \"avg\" beside it", LW_EUNSUPPORTED},
        {"{\"architecture\": \"convnext_tiny\", \"model_args\": {\"global_pool\": \"max\"}}",
         "'global_pool' is \"max\" in 'model_args' and not said beside it", LW_EUNSUPPORTED},
        {"{\"architecture\": \"convnext_tiny\", \"model_args\": [1]}", "must be an object",
         LW_EFORMAT},
        {"{\"architecture\": \"inception_v3\", \"drop\": 1}", "'drop' is 1", LW_EUNSUPPORTED},
        {"{\"architecture\": \"odd_inception_v3\"}", "'architecture' is odd_inception_v3",
         LW_EUNSUPPORTED},
        {"{\"architecture\": \"inception_v4\"}", "says inception_v4; known are", LW_EUNSUPPORTED},
        {"{\"architecture\": \"inception_v3\"}", "not an Inception-v3 of", LW_EFORMAT},
        {"{\"architecture\": \"convnext_tiny_hnf\"}", "'architecture' is convnext_tiny_hnf",
         LW_EUNSUPPORTED},
        {"{\"architecture\": \"convnext_atto_ols\"}", "of its kind are convnext_atto, ",
         LW_EUNSUPPORTED},
        {"{\"model_type\": \"convnextv2\", \"hidden_act\": \"relu\"}", "'hidden_act' is relu",
         LW_EUNSUPPORTED},
        {"{\"model_type\": \"convnextv2\", \"dilation\": 2}", "'dilation' is 2", LW_EUNSUPPORTED},
        {"{\"model_type\": \"convnextv2\", \"layer_norm_eps\": -1}", "'layer_norm_eps' is -1",
         LW_EFORMAT},
        {"{\"model_type\": \"convnext\"}", "not a ConvNeXt of", LW_EFORMAT},
    };
    lw_store *s = small_store(true);
    (void)state;
    assert_ok(lw_mkdirs(in_scratch("net")));
    assert_ok(lw_store_save(s, LW_SLAB_PARAM, in_scratch("net/model.safetensors"), NULL, 0));
    for (size_t i = 0; i < LW_COUNT(bad); i++)
        open_with(bad[i].config, bad[i].code, bad[i].says);
    lw_store_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
