/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* descriptor_budget.h - divides the descriptors of `detent up`. */
#ifndef DET_DAEMON_DESCRIPTOR_BUDGET_H
#define DET_DAEMON_DESCRIPTOR_BUDGET_H

#include "daemon/daemon.h"

/* Warns if the tasks, slots, workers and effects of the file need more than the hard limit. */
void up_descriptors_check(struct up *up);
/* Limits connections to the descriptors that the file leaves. */
void up_descriptors_clamp(const struct config *config, struct http_limits *limits);

#endif
