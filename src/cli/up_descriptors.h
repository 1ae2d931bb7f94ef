/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_descriptors.h - how the descriptors of `detent up` are shared out. */
#ifndef DET_CLI_UP_DESCRIPTORS_H
#define DET_CLI_UP_DESCRIPTORS_H

#include "cli/cli.h"
#include "cli/config.h"

/* Complains when the tasks of the file need more than there can be. */
void up_descriptors_check(struct cli *cli, const struct config *config);
/* No more connections than the tasks, effects and the store of the file leave descriptors for. */
void up_descriptors_clamp(const struct config *config, struct http_limits *limits);

#endif
