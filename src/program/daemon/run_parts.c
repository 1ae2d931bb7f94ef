/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_parts.c - accessors of struct up for files that do not include run.h. */
#include "daemon/flows_internal.h"
#include "daemon/machines.h"
#include "daemon/project_internal.h"
#include "daemon/run.h"
#include "daemon/task_output_internal.h"
#include "daemon/tasks_internal.h"
#include "daemon/telemetry.h"
#include "daemon/workers_internal.h"

#define UP_PART(function, type, value) \
    type function(const struct up *up) \
    {                                  \
        return value;                  \
    }
#define UP_SET(function, type, member)        \
    void function(struct up *up, type member) \
    {                                         \
        up->member = member;                  \
    }
#include "daemon/run_parts.def"
#undef UP_PART
#undef UP_SET

struct up_api_place *up_api_place(struct up *up)
{
    return &up->front;
}

bool up_has_output_room(struct up *up)
{
    return up_output_has_room(&up->output);
}

struct det_list *up_open_requests(struct up *up)
{
    return &up->requests;
}

void up_set_shared_store(struct up *up, struct det_store *store)
{
    up->shared = store;
}

void up_set_workers(struct up *up, struct up_workers *workers)
{
    up->workers = workers;
}

void up_set_flows(struct up *up, struct up_flows *flows)
{
    up->flows = flows;
}

struct up_flows *up_flows(const struct up *up)
{
    return up->flows;
}

struct up_workers *up_workers(const struct up *up)
{
    return up->workers;
}
