/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pending.h - the timers of a store, the first due first, for the command and for the HTTP API. */
#ifndef DET_CLI_PENDING_H
#define DET_CLI_PENDING_H

#include "cli/instance.h"

#define PENDING_MAX 100000

struct pending_timer {
    const char *id, *machine, *timer, *event;
    det_time due;
    uint64_t visit;
};

struct pending_timers {
    struct cli_store *store;
    struct det_arena arena;
    struct det_buffer found; /* struct pending_timer */
    struct det_buffer ids;   /* const char *, of one machine */
    size_t limit;
};

void pending_timers_init(
    struct pending_timers *timers, struct cli_store *store, const struct det_allocator *allocator,
    size_t limit);
void pending_timers_deinit(struct pending_timers *timers);
/* Adds those of an instance, or the first ones of a machine; the context is the timers. Complains,
 * and returns an exit code. */
void pending_timers_of(struct pending_timers *timers, const struct instance *instance);
DET_MUST_CHECK int pending_timers_of_machine(void *context, struct det_machine *machine);
/* All that were found, in order; there may be more than the limit. */
const struct pending_timer *pending_timers_sort(struct pending_timers *timers);
size_t pending_timers_count(const struct pending_timers *timers);
void pending_timer_line(struct line *line, const struct pending_timer *timer);

#endif
