/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptor_budget.h - how the descriptors of `detent up` are shared out. */
#ifndef DET_DAEMON_DESCRIPTOR_BUDGET_H
#define DET_DAEMON_DESCRIPTOR_BUDGET_H

#include "daemon/daemon.h"

/* Warns when the tasks and slots of the file need more than there can be. */
void up_descriptors_check(struct up *up);
/* No more connections than the tasks, effects and the store of the file leave descriptors for. */
void up_descriptors_clamp(const struct config *config, struct http_limits *limits);

#endif
