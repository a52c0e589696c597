# SPDX-License-Identifier: Apache-2.0
lw_test(test_base unit/test_base.c base)
lw_test(test_base_rng unit/test_base_rng.c base)
lw_test(test_base_sys unit/test_base_sys.c base)
lw_test(test_base_threads unit/test_base_threads.c base)
