/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_step.c - the pure step, and what a caller does with it. */
#include "gate.h"
#include "load.h"

static int work(void *argument, unsigned operations)
{
    const struct det_machine *machine = argument;
    unsigned state = machine->initial;
    uint64_t sum = 0;

    for (unsigned i = 0; i < operations; i++) {
        unsigned event = i * 7 % load_event_count;
        const struct det_transition *transition = det_machine_step(machine, state, event);

        if (transition->outcome == DET_OUTCOME_GOTO)
            state = transition->to;
        sum += state;
    }
    gate_use(sum);
    return 0;
}

int gate_step(unsigned operations)
{
    struct det_machine machine = load_machine;

    return gate_measured(work, &machine, operations);
}
