/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow.h - waits for a change of an instance by another process, by polling the store: one row
 * each time, ten times a second at first, twice a second when nothing changes. */
#ifndef DET_CLIENT_FOLLOW_H
#define DET_CLIENT_FOLLOW_H

#include "inspect/stored_instance.h"

/* Maximum number of effects and timers of an instance whose attempts are shown. */
#define FOLLOW_ATTEMPTS_MAX 64

/* Identified by (sequence, index) for an effect, by visit and number for a timer. */
struct follow_attempts {
    bool is_timer;
    uint64_t sequence;
    uint16_t index;
    uint32_t attempts;
    bool is_dead;
};

struct follow {
    struct instance *instance;
    uint64_t after; /* later events are shown */
    bool is_shown;
    struct follow_attempts shown[FOLLOW_ATTEMPTS_MAX]; /* as shown last */
    size_t shown_count;
};

/* Follows until the instance is in a final state or stopped: CLI_OK, CLI_TIMEOUT when the span is
 * over first, or CLI_INTERRUPTED. Other failures are reported. */
DET_MUST_CHECK int follow_until_end(struct follow *follow, det_time timeout);

#endif
