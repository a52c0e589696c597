/* SPDX-License-Identifier: Apache-2.0 */
/* The module `lws`: libwebsockets (base/sys/sys_module.h). Nothing else links it. */
#ifndef LW_SERVE_LWS_CALLS_H
#define LW_SERVE_LWS_CALLS_H

#include <libwebsockets.h>
#include <stdint.h>

enum { LW_LWS_VERSION = 1 };

#define LW_LWS_CALLS(X)           \
    X(set_log_level)              \
    X(create_context)             \
    X(context_destroy)            \
    X(context_user)               \
    X(create_vhost)               \
    X(get_vhost_listen_port)      \
    X(service)                    \
    X(cancel_service)             \
    X(get_context)                \
    X(get_socket_fd)              \
    X(set_timeout)                \
    X(callback_on_writable)       \
    X(write)                      \
    X(hdr_total_length)           \
    X(hdr_copy)                   \
    X(hdr_copy_fragment)          \
    X(add_http_common_headers)    \
    X(add_http_header_by_name)    \
    X(finalize_write_http_header) \
    X(http_transaction_completed) \
    X(is_first_fragment)          \
    X(is_final_fragment)          \
    X(frame_is_binary)            \
    X(remaining_packet_payload)

/* lw_lws.write(..) is lws_write(..). */
typedef struct lw_lws_calls {
    int32_t version;
#define X(name) __typeof__(&lws_##name) name;
    LW_LWS_CALLS(X)
#undef X
} lw_lws_calls;

#endif
