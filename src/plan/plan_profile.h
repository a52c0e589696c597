/* SPDX-License-Identifier: Apache-2.0 */
/* Private to plan: logging what an exec's steps took. */
#ifndef LW_PLAN_PROFILE_H
#define LW_PLAN_PROFILE_H

#include "plan/plan.h"

void lw_exec_profile_log(const lw_exec *e);

#endif
