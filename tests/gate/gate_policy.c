/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_policy.c - what every failure of a task costs: the delay, and the note of a restart. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include "gate.h"

static int delay(void *argument, unsigned operations)
{
    const struct det_backoff *backoff = argument;
    uint64_t chance = 1, sum = 0;

    for (unsigned i = 0; i < operations; i++) {
        chance = chance * UINT64_C(6364136223846793005) + 1;
        sum += (uint64_t)det_backoff_delay(backoff, i % 16, 0, chance);
    }
    gate_use(sum);
    return 0;
}

int gate_backoff(unsigned operations)
{
    struct det_policy policy;
    int r = det_policy_resolve(&(struct det_policy){ 0 }, NULL, &policy, NULL);

    return r < 0 ? r : gate_measured(delay, &policy.backoff, operations);
}

static int note(void *argument, unsigned operations)
{
    struct det_intensity_window *window = argument;
    uint64_t allowed = 0;

    for (unsigned i = 0; i < operations; i++)
        allowed += det_intensity_note(window, i);
    gate_use(allowed);
    return 0;
}

int gate_intensity(unsigned operations)
{
    const struct det_intensity intensity = { .count = 1000, .window = 1500 };
    struct det_intensity_window *window;
    int r = det_intensity_open(&intensity, NULL, &window, NULL);

    if (r < 0)
        return r;
    r = gate_measured(note, window, operations);
    det_intensity_close(window);
    return r;
}
