/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/lws/lws_calls.h"

extern const lw_lws_calls lw_module_lws;
__attribute__((visibility("default")))
const lw_lws_calls lw_module_lws = {.version = LW_LWS_VERSION,
#define X(name) .name = lws_##name,
                                    LW_LWS_CALLS(X)
#undef X
};
