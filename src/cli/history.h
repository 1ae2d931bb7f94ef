/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history.h - the recorded events of an instance, for those who show them: at once or as they come.
 */
#ifndef DET_CLI_HISTORY_H
#define DET_CLI_HISTORY_H

#include "cli/instance.h"

/* One event as an object with the machine and the id, or as a line for people. */
void history_print_object(
    struct cli *cli, const struct instance *instance, const struct det_store_event *row);
void history_print_line(
    struct cli *cli, const struct instance *instance, const struct det_store_event *row);

#endif
