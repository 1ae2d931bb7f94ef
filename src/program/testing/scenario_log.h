/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_log.h - what happens in a scenario, as lines of a log or as JSON lines.
 *
 *     10:00:05.100 INFO  state_transition worker=scenario-simple(application)/... from=stopped */
#ifndef DET_TESTING_SCENARIO_LOG_H
#define DET_TESTING_SCENARIO_LOG_H

#include "kinds/scenario.h"
#include "terminal/terminal.h"

struct scenario_log {
    struct cli *cli;
    enum det_scenario_level least; /* that is shown */
    bool is_followed;              /* each line is written at once */
    uint64_t events, failures;     /* all of them, whatever is shown; those of the level error */
    det_time began;                /* monotonic; of the first event */
};

void scenario_log_init(
    struct scenario_log *log, struct cli *cli, enum det_scenario_level least, bool is_followed);
void scenario_log_event(struct scenario_log *log, const struct det_worker_event *event);
void scenario_log_note(struct scenario_log *log, const struct det_scenario_note *note);
/* Reports a request to end; `is_second`: at once. */
void scenario_log_signal(struct scenario_log *log, bool is_second);
/* Prints the result to the error stream, or as the last object before those of a dump. */
void scenario_log_end(struct scenario_log *log, struct det_scenario_run *run);

#endif
