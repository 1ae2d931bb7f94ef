/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* overview.c - the overview: what runs, rates, and what is stuck until someone acts.
 *
 *     http thread:    rates
 *     daemon's loop:    \--> status, tasks --> slots --> workers
 *     lane:                                               \--> counts, dead letters --> answer */
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "api/counts.h"
#include "base/text.h"
#include "daemon/flows.h"
#include "daemon/lookups.h"
#include "daemon/machines.h"
#include "daemon/slots.h"
#include "daemon/task_json.h"
#include "daemon/worker_totals.h"

#define STUCK_MAX 50
#define IDS_MAX   3
/* Limit of instances with dead letters that are read, per machine. */
#define DEAD_READ_MAX 200

/* Something stuck; dead letters with the same name and reason are one group. */
struct stuck {
    struct stuck *next; /* next group of dead letters */
    const char *about, *name, *machine, *why;
    const char *ids[IDS_MAX]; /* the first instances */
    size_t id_count;
    uint64_t count;
};

/* Collected while the answer is written. */
struct overview {
    struct det_json_writer *stuck; /* elements of an array, the first STUCK_MAX */
    size_t shown;
    uint64_t total;        /* number stuck, without dead letters */
    struct stuck *letters; /* dead letters by machine, name and reason, the newest group first */
    uint64_t letter_count; /* number in `letters` */
    size_t group_count;    /* groups of `letters` */
    size_t dead_left;      /* instances of this machine that may still be read */
    bool is_capped;        /* a machine has more than DEAD_READ_MAX */
    bool is_out_of_memory;
};

static void write_stuck(struct overview *overview, const struct stuck *stuck)
{
    struct det_json_writer *json = overview->stuck;

    if (overview->shown++ >= STUCK_MAX)
        return;
    det_json_open(json, NULL, '{');
    det_json_text(json, "about", stuck->about);
    det_json_text(json, "name", stuck->name);
    det_json_text(json, "machine", stuck->machine);
    det_json_text(json, "id", stuck->id_count ? stuck->ids[0] : NULL);
    det_json_open(json, "ids", '[');
    for (size_t i = 0; i < stuck->id_count; i++)
        det_json_text(json, NULL, stuck->ids[i]);
    det_json_close(json, ']');
    det_json_number(json, "count", stuck->count);
    det_json_text(json, "why", stuck->why);
    det_json_close(json, '}');
}

static void add_one(struct overview *overview, const char *about, const char *name, const char *why)
{
    overview->total++;
    write_stuck(overview, &(struct stuck){ .about = about, .name = name, .why = why, .count = 1 });
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

/* True if the task is to be listed: it is stuck or has failed lately. */
static bool check_task(
    const struct up *up, struct overview *overview, const struct det_task_info *task)
{
    static const char *const bad[] = { "failed", "backoff", "stuck", "rejected", NULL };
    const char *reason = task->reason && *task->reason ? task->reason : task->state;

    if (is_one_of(task->state, bad)) {
        add_one(overview, "task", task->name, reason);
        return true;
    }
    if (up_waits_for_failure(up, task)) {
        add_one(overview, "task", task->name, task->waits_for ? task->waits_for : task->state);
        return true;
    }
    return task->failures > 0;
}

static int take_group(void *user, const struct det_task_group_info *group)
{
    if (strcmp(group->state, "failed") == 0)
        add_one(
            user, "group", group->name,
            group->reason && *group->reason ? group->reason : "the group has failed");
    return 0;
}

static int take_task(void *user, const struct det_task_info *task)
{
    struct api_call *call = user;

    if (!check_task(call->api->up, call->own, task))
        return 0;
    det_json_open(&call->json, NULL, '{');
    up_write_task(&call->json, task);
    det_json_close(&call->json, '}');
    return 0;
}

/* On the daemon's loop. */
static void write_tasks(struct up *up, struct api_call *call)
{
    int r;

    det_json_open(&call->json, "tasks", '[');
    r = det_tasks_each_group(up_tasks_supervisor(up), take_group, call->own);
    if (r == 0)
        r = up_each_task(up, take_task, call);
    det_json_close(&call->json, ']');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

static void write_status_and_tasks(struct up *up, struct api_call *call)
{
    up_write_status(up, &call->json, "status");
    write_tasks(up, call);
}

static void check_slot(void *user, const struct det_slot_info *slot)
{
    if (slot->depth_max > 0 && slot->depth >= slot->depth_max)
        add_one(user, "slot", slot->name, "its queue is full: further jobs are rejected");
}

static void list_slots(struct up *up, struct up_request *request, void *arguments)
{
    up_list_slots(up, request, &(struct up_slots_viewer){ .see = check_slot, .user = arguments });
}

static void add_flow(void *user, const char *name, const char *reason)
{
    add_one(user, "flow", name, reason);
}

static void write_workers(struct up *up, struct api_call *call)
{
    struct overview *overview = call->own;
    struct up_worker_totals totals;

    if (up_total_workers(up, &call->arena, &totals) < 0) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < totals.unwell_shown; i++)
        write_stuck(
            overview, &(struct stuck){ .about = "worker",
                                       .name = totals.unwell[i].id,
                                       .why = totals.unwell[i].why,
                                       .count = 1 });
    overview->total += totals.unwell_count;
    up_write_worker_totals(&call->json, "workers", &totals);
    up_each_failed_flow(up, add_flow, overview);
    if (up_write_flows(up, &call->json, "flows") < 0)
        overview->is_out_of_memory = true;
}

/* Finds or creates the group of a dead letter. NULL: no memory. Machines are read one after the
 * other, so the groups of this one are at the front. */
static struct stuck *find_group(
    struct api_call *call, const char *machine, const char *name, const char *why)
{
    struct overview *overview = call->own;
    struct stuck *group;

    for (group = overview->letters; group && strcmp(group->machine, machine) == 0;
         group = group->next) {
        if (strcmp(group->name, name) == 0 && strcmp(group->why, why) == 0)
            return group;
    }
    group = det_arena_alloc(&call->arena, sizeof *group);
    if (!group)
        return NULL;
    *group = (struct stuck){
        .next = overview->letters,
        .about = "effect",
        .name = det_arena_copy(&call->arena, name),
        .machine = det_arena_copy(&call->arena, machine),
        .why = det_arena_copy(&call->arena, why),
    };
    if (!group->name || !group->machine || !group->why)
        return NULL;
    overview->letters = group;
    overview->group_count++;
    return group;
}

/* Adds an effect or timer that has exhausted its attempts. */
static void add_letter(
    struct api_call *call, const struct instance *instance, const char *name, uint32_t attempts,
    const char *reason)
{
    struct overview *overview = call->own;
    char why[INSTANCE_WHY_TEXT + 96];
    struct stuck *group;

    snprintf(
        why, sizeof why, "failed after %u attempt%s: %s", attempts, det_plural(attempts), reason);
    group = find_group(call, instance->machine->name, name, why);
    if (group && group->id_count < IDS_MAX &&
        (group->id_count == 0 || strcmp(group->ids[group->id_count - 1], instance->id) != 0)) {
        group->ids[group->id_count] = det_arena_copy(&call->arena, instance->id);
        group->id_count += group->ids[group->id_count] != NULL;
    }
    if (group)
        group->count++;
    else
        overview->is_out_of_memory = true;
    overview->letter_count++;
}

/* In a lane. */
static int take_dead(void *context, struct det_machine *machine, const char *id)
{
    struct api_call *call = context;
    struct overview *overview = call->own;
    uint64_t before = overview->letter_count;
    char text[INSTANCE_WHY_TEXT];
    struct instance instance;

    if (overview->dead_left == 0) {
        overview->is_capped = true;
        return CLI_INTERRUPTED;
    }
    if (instance_load(&call->reader->store, machine, id, &instance) < 0)
        return CLI_OK;
    for (const struct instance_effect *e = instance.effects; e; e = e->next) {
        if (e->row.is_dead)
            add_letter(
                call, &instance, machine->effects[e->row.effect].name, e->row.attempts,
                instance_why(e->row.last_error, e->row.reason, text));
    }
    for (const struct instance_timer *t = instance.timers; t; t = t->next) {
        const char *name = instance_timer_name(machine, t->row.timer);

        if (t->row.is_dead)
            add_letter(
                call, &instance, *name ? name : machine->events[t->row.event].name, t->row.attempts,
                instance_why(t->row.last_error, t->row.reason, text));
    }
    overview->dead_left -= overview->letter_count > before;
    instance_close(&instance);
    return CLI_OK;
}

static int take_dead_of(void *context, struct det_machine *machine)
{
    static const struct det_store_query query = { .has_dead = true };
    struct api_call *call = context;
    struct overview *overview = call->own;
    int code;

    overview->dead_left = DEAD_READ_MAX;
    code = cli_store_instances(&call->reader->store, machine, &query, take_dead, call);
    return code == CLI_INTERRUPTED ? CLI_OK : code;
}

static int compare_groups(const void *a, const void *b)
{
    const struct stuck *left = *(struct stuck *const *)a, *right = *(struct stuck *const *)b;

    return (left->count < right->count) - (left->count > right->count);
}

/* The largest group first. False: no memory. */
static bool write_letters(struct api_call *call)
{
    struct overview *overview = call->own;
    struct stuck **groups;
    size_t count = 0;

    if (overview->group_count == 0)
        return !overview->is_out_of_memory;
    groups = det_arena_alloc(&call->arena, overview->group_count * sizeof(struct stuck *));
    if (!groups)
        return false;
    for (struct stuck *group = overview->letters; group; group = group->next)
        groups[count++] = group;
    qsort(groups, count, sizeof *groups, compare_groups);
    for (size_t i = 0; i < count; i++)
        write_stuck(overview, groups[i]);
    return !overview->is_out_of_memory;
}

static void finish_overview(struct api_call *call)
{
    struct overview *overview = call->own;
    struct det_json_writer *json = &call->json;
    uint64_t counted;
    int code;

    det_json_open(json, "machines", '[');
    if (call->api->source.address) {
        if (!api_reader_take(call) || !api_counts_write(call, NULL))
            return;
        code = cli_store_each(&call->reader->store, take_dead_of, call);
        if (code != CLI_OK)
            add_one(overview, "store", "store", "the store cannot be read");
        if (!write_letters(call)) {
            api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
            return;
        }
        /* The count may be half a second older than the dead letters that were read. */
        counted = api_counts_dead(call->api);
        overview->total += counted > overview->letter_count ? counted : overview->letter_count;
    }
    det_json_close(json, ']');
    det_json_open(json, "stuck", '[');
    if (overview->shown)
        det_json_raw(
            json, NULL, det_buffer_text(&overview->stuck->text), overview->stuck->text.size);
    det_json_close(json, ']');
    det_json_number(json, "stuck_total", overview->total);
    det_json_bool(json, "stuck_capped", overview->is_capped);
    det_json_close(json, '}');
}

/* On the http thread. */

static void defer_rest(struct api_call *call)
{
    api_defer(call, finish_overview);
}

static void end_slots(struct api_call *call)
{
    det_json_close(&call->json, ']');
    api_on_daemon(call, write_workers, defer_rest);
}

static void ask_slots(struct api_call *call)
{
    det_json_open(&call->json, "slots", '[');
    api_request(call, list_slots, call->own, end_slots);
}

void api_get_overview(struct api_call *call)
{
    struct overview *overview = det_arena_alloc(&call->arena, sizeof *overview);

    if (!overview) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    overview->stuck = &call->scratch;
    call->own = overview;
    det_json_open(&call->json, NULL, '{');
    api_write_rates(call);
    api_on_daemon(call, write_status_and_tasks, ask_slots);
}
