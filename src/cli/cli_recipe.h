/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes: YAML files of docs/recipes/ whose sections are the options of trainings. Some are inside
 * the program. */
#ifndef LW_CLI_RECIPE_H
#define LW_CLI_RECIPE_H

#include "base/base.h"

enum { LW_RECIPES = 3 };
extern const lw_embedded lw_recipes[LW_RECIPES]; /* of the demonstration */

#endif
