/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow.h - waits for an instance that somebody else moves, by looking at the store again and
 * again: one row each time, ten times a second at first, twice a second when nothing happens. */
#ifndef DET_CLIENT_FOLLOW_H
#define DET_CLIENT_FOLLOW_H

#include "inspect/stored_instance.h"

/* As many effects and timers of one instance are followed by their attempts. */
#define FOLLOW_ATTEMPTS_MAX 64

/* Of an effect, (sequence, index) names it; of a timer, the visit and its number. */
struct follow_attempts {
    bool is_timer;
    uint64_t sequence;
    uint16_t index;
    uint32_t attempts;
    bool is_dead;
};

struct follow {
    struct instance *instance;
    uint64_t after; /* events behind this one are shown */
    bool is_shown;
    struct follow_attempts shown[FOLLOW_ATTEMPTS_MAX]; /* as they were shown last */
    size_t shown_count;
};

/* Until it is in a final state or has stopped: CLI_OK; CLI_TIMEOUT when the span is over first,
 * CLI_INTERRUPTED. Other failures are complained about. */
DET_MUST_CHECK int follow_until_end(struct follow *follow, det_time timeout);

#endif
