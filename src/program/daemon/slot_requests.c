/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* slot_requests.c - lists slots: their running and queued tasks. Queues of durable slots are in the
 * store, which is read on the pool and shared by several processes. */
#include <detent/driver/loop.h>
#include <detent/driver/store.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/slots_internal.h"
#include "daemon/task_json.h"
#include "os/pool.h"

/* Limit for counting the queued jobs of a durable slot. */
#define WAITING_MAX 1000

/* Counts of a durable slot in the store. */
struct count {
    size_t running, waiting;
    char first[DET_ID_MAX + 1]; /* a running job; "": none */
};

struct reading {
    struct det_job job;
    struct up *up;
    struct up_request *request; /* NULL: the client has disconnected */
    struct up_slots_viewer viewer;
    struct count *counts; /* by index of the durable slots; NULL: there are none */
    int result;
};

/* On the pool. */

static int count_running(void *context, const struct det_job_row *row)
{
    struct count *count = context;

    if (count->running++ == 0)
        (void)det_text_copy(count->first, sizeof count->first, row->id);
    return 0;
}

static int count_waiting(void *context, const struct det_job_row *row)
{
    struct count *count = context;

    (void)row;
    count->waiting++;
    return 0;
}

static int count_slot(struct reading *reading, const struct up_slots *slots, size_t index)
{
    struct det_store *store = slots->store;
    struct det_job_query query = { .queue = slots->durables[index].slot->name,
                                   .limit = WAITING_MAX,
                                   .has_state = true,
                                   .state = DET_JOB_RUNNING };
    int r;

    r = store->ops->jobs->list(store, &query, count_running, &reading->counts[index]);
    query.state = DET_JOB_QUEUED;
    if (r == 0)
        r = store->ops->jobs->list(store, &query, count_waiting, &reading->counts[index]);
    query.state = DET_JOB_DELAYED;
    query.limit -= reading->counts[index].waiting;
    if (r == 0 && query.limit)
        r = store->ops->jobs->list(store, &query, count_waiting, &reading->counts[index]);
    return r;
}

static void count_slots(void *argument)
{
    struct reading *reading = argument;
    const struct up_slots *slots = up_slots(reading->up);

    for (size_t i = 0; reading->result == 0 && i < slots->durable_count; i++)
        reading->result = count_slot(reading, slots, i);
}

/* On the loop. */

static const struct count *find_count(const struct reading *reading, const char *slot)
{
    const struct up_slots *slots = up_slots(reading->up);

    for (size_t i = 0; reading->counts && i < slots->durable_count; i++) {
        if (strcmp(slots->durables[i].slot->name, slot) == 0)
            return &reading->counts[i];
    }
    return NULL;
}

/* The store has only these members of a durable slot. */
static struct det_slot_info durable_info(
    const char *name, uint32_t width, const struct count *count)
{
    return (struct det_slot_info){
        .name = name,
        .state = count->running ? "running" : "idle",
        .width = width,
        .depth = (uint32_t)count->waiting,
        .owner_count = (uint32_t)count->running,
        .owner_name = count->first[0] ? count->first : NULL,
    };
}

static int write_slot(void *user, const struct det_slot_info *info)
{
    const struct reading *reading = user;
    const struct count *count = find_count(reading, info->name);
    struct det_slot_info shown = *info;
    struct det_json_writer *json = reading->request->json;

    if (count)
        shown = durable_info(info->name, info->width, count);
    det_json_open(json, NULL, '{');
    up_write_slot(json, &shown, count != NULL);
    det_json_close(json, '}');
    up_request_part(reading->request);
    if (reading->viewer.see)
        reading->viewer.see(reading->viewer.user, &shown);
    return 0;
}

static void write_all(struct reading *reading)
{
    int r = det_slots_each(up_tasks_supervisor(reading->up), write_slot, reading);

    if (r < 0)
        up_request_fail(reading->request, r, "%s", det_error_text(r));
    else
        up_request_end(reading->request);
}

static void free_reading(struct reading *reading)
{
    const struct det_allocator *allocator = up_allocator(reading->up);

    if (reading->counts)
        DET_DELETE_ARRAY(allocator, reading->counts, up_slots(reading->up)->durable_count);
    DET_DELETE(allocator, reading);
}

static void on_counted(void *argument)
{
    struct reading *reading = argument;
    char why[UP_UNREACHABLE_TEXT];

    if (!reading->request)
        ;
    else if (reading->job.is_dropped)
        up_request_fail(reading->request, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (reading->result < 0 && up_store_is_unreachable(reading->up, why))
        up_request_fail(reading->request, DET_ERR_IO, "the store cannot be reached: %s", why);
    else if (reading->result < 0)
        up_request_fail(
            reading->request, reading->result, "the store of durable slots: %s",
            det_error_text(reading->result));
    else
        write_all(reading);
    free_reading(reading);
}

static void on_gone(void *user)
{
    struct reading *reading = user;

    reading->request = NULL;
}

static struct reading *open_reading(
    struct up *up, struct up_request *request, const struct up_slots_viewer *viewer)
{
    const struct det_allocator *allocator = up_allocator(up);
    struct reading *reading = DET_NEW(allocator, struct reading);

    det_assert(up_slots(up)->durable_count > 0);
    if (!reading)
        return NULL;
    reading->up = up;
    reading->request = request;
    reading->viewer = *viewer;
    reading->counts = DET_NEW_ARRAY(allocator, up_slots(up)->durable_count, struct count);
    if (!reading->counts) {
        free_reading(reading);
        return NULL;
    }
    reading->job = (struct det_job){
        .run = count_slots, .done = on_counted, .argument = reading, .loop = up_loop(up)
    };
    return reading;
}

void up_list_slots(struct up *up, struct up_request *request, const struct up_slots_viewer *viewer)
{
    const struct up_slots *slots = up_slots(up);
    struct reading *reading;
    char why[UP_UNREACHABLE_TEXT];

    if (!slots || (slots->durable_count && !slots->pool)) {
        up_request_fail(request, DET_ERR_CLOSED, CLI_SHUTDOWN);
        return;
    }
    if (!slots->durable_count) {
        write_all(&(struct reading){ .up = up, .request = request, .viewer = *viewer });
        return;
    }
    if (up_store_is_unreachable(up, why)) {
        up_request_fail(request, DET_ERR_IO, "the store cannot be reached: %s", why);
        return;
    }
    reading = open_reading(up, request, viewer);
    if (!reading) {
        up_request_fail_memory(request);
        return;
    }
    up_request_keep(request, on_gone, reading);
    det_pool_submit(slots->pool, &reading->job);
}

/* Names. */

struct search {
    const char *name;
    bool is_found;
};

static int see_slot(void *user, const struct det_slot_info *info)
{
    struct search *search = user;

    search->is_found = search->is_found || strcmp(info->name, search->name) == 0;
    return 0;
}

int up_slot_exists(struct up *up, const char *name)
{
    struct search search = { .name = name };
    int r = det_slots_each(up_tasks_supervisor(up), see_slot, &search);

    return r < 0 ? r : search.is_found;
}
