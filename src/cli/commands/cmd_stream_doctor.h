/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LW_CMD_STREAM_DOCTOR_H
#define LW_CMD_STREAM_DOCTOR_H

#include "cli/cli.h"

/* leeway stream --doctor: what this machine can do for live pictures. */
int lw_cli_stream_doctor(const lw_cli *cli, const lw_observer *obs);

#endif
