# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  recipe_device.c recipe_field.c)
