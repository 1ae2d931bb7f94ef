/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* service.h - the service machine as its callers see it. */
#ifndef SERVICE_H
#define SERVICE_H

#define FSM_SPEC "service.fsm"
#include <detent/fsm/declare.h>

#endif
