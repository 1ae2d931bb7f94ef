/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_summary.h - what is known about one instance, for people: a word, and what there is to
 * say of it.
 *
 *     order o-1 is charging, for 12s
 *     timers     late in 9m48s (2026-11-15T11:40:00Z)
 *     effects    charge_card: next attempt in 4s, after 3; the last one failed: IO */
#ifndef DET_INSPECT_INSTANCE_SUMMARY_H
#define DET_INSPECT_INSTANCE_SUMMARY_H

#include "inspect/stored_instance.h"

/* A line: the word in its column, and the text, whose further lines stand below it. NULL or the
 * same word as before: none. Where the run collects facts, an object with `about` and `text`. */
void facts_print(struct cli *cli, const char *word, const char *format, ...) DET_PRINTF(3, 4);
/* Which one it is, and where it stands. */
void facts_head(struct cli *cli, const struct instance *instance);
/* Nothing where there is nothing. */
void facts_timers(struct cli *cli, const struct instance *instance);
void facts_effects(struct cli *cli, const struct instance *instance);
/* One of them, as the news of its last attempt. */
void facts_effect(
    struct cli *cli, const struct instance *instance, const struct det_store_effect *row);
void facts_timer(
    struct cli *cli, const struct instance *instance, const struct det_store_timer *row);
void facts_deferred(struct cli *cli, const struct instance *instance);
/* All of it as an object; `more`, if not NULL, adds members. */
typedef void facts_line_fn(struct det_json_writer *json, const struct instance *instance);
void facts_json(struct cli *cli, const struct instance *instance, facts_line_fn *more);

#endif
