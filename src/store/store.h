/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: named parameters in flat slabs, their initialisation, files and checkpoints. The only
 * thing that training changes. Knows no model: names and types arrive through the builder (struct
 * lw_params).
 *
 *    declare ... ──► fix ──► init | load ──► execs bind addresses ──► touch after every change
 *
 *    entry:   conv1.weight conv1.bias   norm1.weight ...   offsets in floats, 64-byte aligned
 *    PARAM   [############|####........|################|...]
 *    GRAD    [            |            |                |...]  five slabs, one layout (frozen: one)
 *    EMA M V [            |            |                |...]  floats between entries stay 0
 *
 * Read: store_table.h (the table and the slabs), store_file.h (safetensors in and out, layouts,
 * renaming), store_checkpoint.h (step directories, `last`, pruning). A store owns its slabs; execs
 * and graphs borrow it and must be freed first. Not thread-safe; slabs may be read and written by
 * the tasks of one job.
 */
#ifndef LW_STORE_H
#define LW_STORE_H

#include "store/store_table.h"
#include "store/store_file.h"
#include "store/store_checkpoint.h"

#endif
