# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  api_base.c api_sampler.c api_session.c api_field.c)
