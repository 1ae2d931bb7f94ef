/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_summary.h - describes one instance for people: labelled lines.
 *
 *     order o-1 is charging, for 12s
 *     timers     late in 9m48s (2026-11-15T11:40:00Z)
 *     effects    charge_card: next attempt in 4s, after 3; the last one failed: IO */
#ifndef DET_INSPECT_INSTANCE_SUMMARY_H
#define DET_INSPECT_INSTANCE_SUMMARY_H

#include "inspect/stored_instance.h"

/* Prints a line: the label in its column, and the text, whose further lines are aligned. The label
 * is omitted if NULL or unchanged. If the run collects facts, adds an object with `about` and
 * `text`. */
void facts_print(struct cli *cli, const char *word, const char *format, ...) DET_PRINTF(3, 4);
/* Prints the id and the state. */
void facts_head(struct cli *cli, const struct instance *instance);
/* Prints nothing without timers. */
void facts_timers(struct cli *cli, const struct instance *instance);
void facts_effects(struct cli *cli, const struct instance *instance);
/* Prints one effect, as a report of its last attempt. */
void facts_effect(
    struct cli *cli, const struct instance *instance, const struct det_store_effect *row);
void facts_timer(
    struct cli *cli, const struct instance *instance, const struct det_store_timer *row);
void facts_deferred(struct cli *cli, const struct instance *instance);
/* Writes everything as an object; `more`, if not NULL, adds members. */
typedef void facts_line_fn(struct det_json_writer *json, const struct instance *instance);
void facts_json(struct cli *cli, const struct instance *instance, facts_line_fn *more);

#endif
