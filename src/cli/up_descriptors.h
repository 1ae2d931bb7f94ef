/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_descriptors.h - how the descriptors of `detent up` are shared out. */
#ifndef DET_CLI_UP_DESCRIPTORS_H
#define DET_CLI_UP_DESCRIPTORS_H

#include "cli/up.h"

/* Warns when the tasks and slots of the file need more than there can be. */
void up_descriptors_check(struct up *up);
/* No more connections than the tasks, effects and the store of the file leave descriptors for. */
void up_descriptors_clamp(const struct config *config, struct http_limits *limits);

#endif
