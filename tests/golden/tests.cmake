# SPDX-License-Identifier: Apache-2.0
lw_test(test_golden_field golden/test_golden_field.c recipes formats base)
