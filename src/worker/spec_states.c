/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_states.c - the states of a parent that a child runs in, from names to bits. */
#include <string.h>

#include <detent/worker.h>

#include "worker/spec.h"

static int find_state(const struct det_worker_kind *kind, const char *name)
{
    for (uint16_t i = 0; i < kind->state_count; i++)
        if (strcmp(kind->states[i].name, name) == 0)
            return i;
    return -1;
}

int det_spec_run_in(
    const struct det_spec_child *child, const struct det_worker_kind *parent, uint64_t *ret,
    struct det_error *reterr)
{
    const char *names[DET_WORKER_STATES_MAX];
    uint64_t states = 0;

    for (uint16_t i = 0; i < parent->state_count; i++)
        names[i] = parent->states[i].name;
    for (uint32_t i = 0; i < child->run_in_count; i++) {
        int state = find_state(parent, child->run_in[i]);

        if (state < 0)
            return det_spec_no_state(
                reterr, child, child->run_in[i], parent->name, names, parent->state_count);
        states |= DET_IN(state);
    }
    *ret = states;
    return 0;
}
