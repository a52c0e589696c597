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

static void test_configs(void **state)
{
    static const struct {
        const char *config, *says;
        int code;
    } bad[] = {
        {"{\"architecture\": \"inception_v3\", \"model_args\": {\"aux_logits\": true}}",
         "'aux_logits' is true", LW_EUNSUPPORTED},
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
