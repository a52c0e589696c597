/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LW_TESTS_OP_CASES_H
#define LW_TESTS_OP_CASES_H

#include "ops/op_check.h"

/* Case number i of all families; NULL behind the last. */
const op_case *op_case_at(size_t i);

#endif
