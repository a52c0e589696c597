# SPDX-License-Identifier: Apache-2.0
set(SOURCES serve_rules.c serve_settings.c)
if(LW_SERVE AND LWS_INCLUDE AND LWS_LIBRARY)
  list(APPEND SOURCES serve.c serve_encode.c serve_http.c serve_watch.c)
else()
  list(APPEND SOURCES serve_none.c)
endif()
set(lws_SOURCES lws/lws_calls.c)
