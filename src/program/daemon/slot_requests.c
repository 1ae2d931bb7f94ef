/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot_requests.c - the verb slots: what runs and waits in them. Those that are durable have their
 * queue in the store, which is asked on a thread of its own, over all processes that share it. */
#include <string.h>

#include "base/memory.h"
#include "daemon/machines.h"
#include "daemon/task_json.h"
#include "daemon/verbs.h"

/* Of those that wait, so many are counted. */
#define WAITING_MAX 1000

/* What the store has of a durable slot. */
struct count {
    size_t running, waiting;
    char first[DET_ID_MAX + 1]; /* that runs; "": none */
};

struct look {
    struct det_job job;
    struct up *up;
    struct socket_call *call; /* NULL: who asked went away */
    struct count *counts;     /* by index of the durable slots */
    int result;
};

/* On the pool. */

static int count_running(void *context, const struct det_job_row *row)
{
    struct count *count = context;

    if (count->running++ == 0)
        snprintf(count->first, sizeof count->first, "%s", row->id);
    return 0;
}

static int count_waiting(void *context, const struct det_job_row *row)
{
    struct count *count = context;

    (void)row;
    count->waiting++;
    return 0;
}

static int count_slot(struct look *look, size_t index)
{
    struct det_store *store = look->up->store;
    struct det_job_query query = { .queue = look->up->durables[index].slot->name,
                                   .limit = WAITING_MAX,
                                   .has_state = true,
                                   .state = DET_JOB_RUNNING };
    int r;

    r = store->ops->jobs->list(store, &query, count_running, &look->counts[index]);
    query.state = DET_JOB_QUEUED;
    if (r == 0)
        r = store->ops->jobs->list(store, &query, count_waiting, &look->counts[index]);
    query.state = DET_JOB_DELAYED;
    query.limit -= look->counts[index].waiting;
    if (r == 0 && query.limit)
        r = store->ops->jobs->list(store, &query, count_waiting, &look->counts[index]);
    return r;
}

static void run(void *argument)
{
    struct look *look = argument;

    for (size_t i = 0; look->result == 0 && i < look->up->durable_count; i++)
        look->result = count_slot(look, i);
}

/* On the loop. */

static const struct count *find_count(const struct look *look, const char *slot)
{
    for (size_t i = 0; look->counts && i < look->up->durable_count; i++) {
        if (strcmp(look->up->durables[i].slot->name, slot) == 0)
            return &look->counts[i];
    }
    return NULL;
}

static int send_slot(void *user, const struct det_slot_info *info)
{
    const struct look *look = user;
    const struct count *count = find_count(look, info->name);
    json_t *slot = up_json_slot(info);

    if (slot && count) {
        static const char *const unknown[] = { "depth_max", "since",    "owner",
                                               "started",   "rejected", "replaced" };
        json_t *owner = count->first[0] ? json_string(count->first) : json_null();

        (void)json_object_set_new(slot, "state", json_string(count->running ? "running" : "idle"));
        (void)json_object_set_new(slot, "owners", json_integer((json_int_t)count->running));
        (void)json_object_set_new(slot, "owner_name", owner);
        (void)json_object_set_new(slot, "depth", json_integer((json_int_t)count->waiting));
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
            (void)json_object_set_new(slot, unknown[i], json_null());
    }
    if (slot)
        (void)json_object_set_new(slot, "durable", json_boolean(count != NULL));
    return socket_call_send(look->call, slot);
}

static void send_all(struct look *look)
{
    int r = det_slots_each(look->up->tasks, send_slot, look);

    /* A client that went away needs no end, but the call does. */
    if (r < 0 && r != DET_ERR_CLOSED)
        socket_call_fail(look->call, r, "%s", det_error_text(r));
    else
        socket_call_end(look->call);
}

static void free_look(struct look *look)
{
    const struct det_allocator *allocator = look->up->output.outer->allocator;

    if (look->counts)
        DET_DELETE_ARRAY(allocator, look->counts, look->up->durable_count);
    DET_DELETE(allocator, look);
}

static void done(void *argument)
{
    struct look *look = argument;
    char why[UP_AWAY_TEXT];

    if (!look->call)
        ;
    else if (look->job.is_dropped)
        socket_call_fail(look->call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (look->result < 0 && up_store_is_away(look->up, why))
        socket_call_fail(look->call, DET_ERR_IO, "the store cannot be reached: %s", why);
    else if (look->result < 0)
        socket_call_fail(
            look->call, look->result, "the store of durable slots: %s",
            det_error_text(look->result));
    else
        send_all(look);
    free_look(look);
}

static void on_gone(void *user)
{
    struct look *look = user;

    look->call = NULL;
}

void up_slots_send(struct up *up, struct socket_call *call)
{
    const struct det_allocator *allocator;
    struct look *look;
    char why[UP_AWAY_TEXT];

    if (!up->asks) {
        send_all(&(struct look){ .up = up, .call = call });
        return;
    }
    if (up_store_is_away(up, why)) {
        socket_call_fail(call, DET_ERR_IO, "the store cannot be reached: %s", why);
        return;
    }
    allocator = up->output.outer->allocator;
    look = DET_NEW(allocator, struct look);
    if (!look) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        return;
    }
    look->up = up;
    look->call = call;
    look->counts = DET_NEW_ARRAY(allocator, up->durable_count, struct count);
    if (!look->counts) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        free_look(look);
        return;
    }
    look->job = (struct det_job){ .run = run, .done = done, .argument = look, .loop = up->loop };
    socket_call_keep(call, on_gone, look);
    det_pool_submit(up->asks, &look->job);
}
