/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_print.h - prints the recorded events of an instance, at once or as they arrive. */
#ifndef DET_INSPECT_EVENT_PRINT_H
#define DET_INSPECT_EVENT_PRINT_H

#include "inspect/stored_instance.h"

/* Names of its event, and of the target state or the outcome. */
const char *event_print_name(const struct det_machine *machine, const struct det_store_event *row);
const char *event_print_target(
    const struct det_machine *machine, const struct det_store_event *row);
/* Prints one event as an object with the machine and the id, or as a line. */
void event_print_object(
    struct cli *cli, const struct instance *instance, const struct det_store_event *row);
void event_print_line(
    struct cli *cli, const struct instance *instance, const struct det_store_event *row);

#endif
