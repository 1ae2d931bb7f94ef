/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage_machine.h - the machines of the supervisors of stages, to draw them. */
#ifndef DET_FLOW_STAGE_MACHINE_H
#define DET_FLOW_STAGE_MACHINE_H

#include <detent/flow.h>
#include <detent/machine.h>

/* The machine of stages of a kind; det_stage_status.state is one of its states. */
const struct det_machine *det_stage_machine(enum det_stage_kind kind);

#endif
