/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipes: whole programs without a command line. A recipe takes one frozen config struct and an
 * observer, builds graphs from models, feeds execs from datasets, writes a run directory, and
 * returns a code.
 *
 * Read: recipe_config.h (what a run is), recipe_trainer.h (the one training loop: schedule,
 * accumulation, optimiser, logs, checkpoints, resume), then recipe_ddpm.c, recipe_drift.c,
 * recipe_encoder.c, which only say how a step's graph is built and fed; recipe_sampler.h (pictures
 * from a trained generator).
 */
#ifndef LW_RECIPES_H
#define LW_RECIPES_H

#include "recipes/recipe_compare.h"
#include "recipes/recipe_config.h"
#include "recipes/recipe_ddpm.h"
#include "recipes/recipe_demo.h"
#include "recipes/recipe_device.h"
#include "recipes/recipe_field.h"
#include "recipes/recipe_forward.h"
#include "recipes/recipe_inspect.h"
#include "recipes/recipe_judge.h"
#include "recipes/recipe_machine.h"
#include "recipes/recipe_net.h"
#include "recipes/recipe_network.h"
#include "recipes/recipe_observer.h"
#include "recipes/recipe_precision.h"
#include "recipes/recipe_quantize.h"
#include "recipes/recipe_ranges.h"
#include "recipes/recipe_run.h"
#include "recipes/recipe_run_dir.h"
#include "recipes/recipe_sampler.h"
#include "recipes/recipe_sampler_turns.h"
#include "recipes/recipe_schedule.h"
#include "recipes/recipe_score.h"
#include "recipes/recipe_source.h"
#include "recipes/recipe_trainer.h"
#include "recipes/recipe_turns.h"

#endif
