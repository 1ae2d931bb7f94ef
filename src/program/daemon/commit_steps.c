/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit_steps.c - collects the steps that a call commits on its own thread. */
#include <string.h>

#include "base/assert.h"
#include "daemon/machines.h"

/* Steps of the call that runs on this thread; NULL: not collected. */
static _Thread_local struct up_steps *current;

void up_steps_begin(struct up_steps *steps)
{
    det_assert(!current);
    current = steps;
}

void up_steps_end(void)
{
    current = NULL;
}

void up_steps_observe(const struct det_note *note)
{
    if (current && current->count < UP_STEPS_MAX && strcmp(note->instance, current->instance) == 0)
        current->items[current->count++] =
            (struct up_step){ note->event, note->from, note->to, note->outcome };
}
