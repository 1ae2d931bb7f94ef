/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_dynamic.c - children that come, change and go while the others run: the scenario that is
 * a function. */
#include <string.h>

#include "kinds/scenario.h"
#include "os/os.h"

#define WORKER_SPEC "kinds/noop.worker"
#include <detent/worker/declare.h>

#define ID   "scenario-dynamic/guest"
#define SPAN (10 * DET_SECOND)

static int put_config(struct det_scenario_run *run, const char *config, struct det_error *reterr)
{
    struct det_child_spec spec = { .name = "guest", .kind = "noop", .config = config };
    int r;

    r = det_workers_upsert(run->workers, NULL, &spec, reterr);
    if (r == 0)
        det_scenario_print(run, "child_put", "id=%s config=\"%s\"", ID, config);
    return r;
}

/* Waits until it observes its desired state. */
static int await_value(struct det_scenario_run *run, const char *value)
{
    det_time deadline = det_world_now(run->world, DET_CLOCK_MONOTONIC) + SPAN;
    struct det_worker_status status;
    struct noop_observed observed;

    for (;;) {
        det_time now = det_world_now(run->world, DET_CLOCK_MONOTONIC);
        int r;

        if (noop_get(run->workers, ID, &status, &observed) == 0 &&
            strcmp(observed.value, value) == 0)
            break;
        if (now >= deadline)
            return DET_ERR_TIMEOUT;
        r = det_scenario_wait(run, now + 100 * DET_MILLISECOND);
        if (r < 0)
            return r;
    }
    det_scenario_print(run, "child_observed", "id=%s value=%s state=%s", ID, value, status.state);
    return 0;
}

static int come_change_and_go(struct det_scenario_run *run, struct det_error *reterr)
{
    int r;

    r = put_config(run, "value: first", reterr);
    if (r == 0)
        r = det_scenario_wait_state(run, ID, "running", SPAN);
    if (r == 0)
        r = await_value(run, "first");
    if (r == 0)
        r = put_config(run, "value: second", reterr);
    if (r == 0)
        r = await_value(run, "second");
    if (r == 0)
        r = det_workers_delete(run->workers, ID, reterr);
    if (r == 0)
        r = det_scenario_wait_state(run, ID, NULL, SPAN);
    if (r == 0)
        det_scenario_print(run, "child_gone", "id=%s", ID);
    return r;
}

static int run_dynamic(struct det_scenario_run *run, struct det_error *reterr)
{
    int r;

    do {
        r = come_change_and_go(run, reterr);
        if (r == 0)
            r = det_scenario_wait(
                run, det_world_now(run->world, DET_CLOCK_MONOTONIC) + 2 * DET_SECOND);
    } while (r == 0);
    if (r == DET_ERR_TIMEOUT)
        return det_error_set(
            reterr, r,
            "%s has not reached its desired state within 10 s; --log-level debug shows why", ID);
    return r;
}

extern const struct det_scenario det_scenario_dynamic;
const struct det_scenario det_scenario_dynamic = {
    .name = "dynamic",
    .summary = "a child that is created, changed and removed, again and again",
    .run = run_dynamic,
    .duration = 20 * DET_SECOND,
};
