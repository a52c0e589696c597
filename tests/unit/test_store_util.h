/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of store and models: a small store, a scratch folder, assertions
 * on messages. */
#ifndef LW_TEST_STORE_UTIL_H
#define LW_TEST_STORE_UTIL_H

#include "backend/backend.h"
#include "unit/test_formats_util.h"
#include "store/store.h"

static inline void declare(lw_store *s, const char *name, lw_type type, lw_init init)
{
    const lw_params *p = lw_store_params(s);
    int32_t at;
    assert_ok(p->declare(p->self, name, type, init, &at));
}

/* A convolution, a packed projection and a norm. */
static inline lw_store *small_store(bool frozen)
{
    lw_store *s = NULL;
    assert_ok(lw_store_new(frozen, &s));
    declare(s, "conv.weight", lw_type_of(LW_F32, 4, 5, 3, 3, 3), (lw_init){LW_INIT_NORMAL, 0.5f});
    declare(s, "conv.bias", lw_type_of(LW_F32, 1, 5), (lw_init){LW_INIT_ZEROS, 0});
    declare(s, "attn.to_qkv.weight", lw_type_of(LW_F32, 2, 6, 2),
            (lw_init){LW_INIT_UNIFORM, 0.25f});
    declare(s, "attn.to_qkv.bias", lw_type_of(LW_F32, 1, 6), (lw_init){LW_INIT_UNIFORM, 0.25f});
    declare(s, "norm.weight", lw_type_of(LW_F32, 1, 7), (lw_init){LW_INIT_ONES, 0});
    assert_ok(lw_store_fix(s));
    return s;
}

#endif
