/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* outcome.c - the names of outcomes, as in tables, exports and JSON. */
#include "machine/outcome.h"

#include <detent/machine.h>
#include <string.h>

#include "base/assert.h"

static const char *const names[] = {
    [DET_OUTCOME_UNHANDLED] = "unhandled",
    [DET_OUTCOME_GOTO] = "goto",
    [DET_OUTCOME_STAY] = "stay",
    [DET_OUTCOME_STOP] = "stop",
    [DET_OUTCOME_IGNORED] = "ignored",
    [DET_OUTCOME_DEFERRED] = "deferred",
    [DET_OUTCOME_DEAD_LETTER] = "dead_letter",
};
#define NAME_COUNT (sizeof names / sizeof *names)

const char *det_outcome_name(unsigned outcome)
{
    det_assert(outcome < NAME_COUNT);
    return names[outcome];
}

int det_outcome_find(const char *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    return -1;
}
