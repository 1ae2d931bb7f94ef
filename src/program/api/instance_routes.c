/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_routes.c - one instance: state, history, why it is there, lock, effects. */
#include <detent/tool/machine.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/memory.h"
#include "daemon/machines.h"
#include "inspect/activity.h"
#include "inspect/explain.h"
#include "machine/history_replay.h"

/* Begins the object of an instance. False: the call has failed. */
static bool begin_instance(struct api_call *call, struct instance *instance)
{
    const struct det_machine *served = api_find_served(call->api, call->parameters[0]);

    if (!api_reader_take(call) || !api_reader_instance(call, instance))
        return false;
    if (served)
        activity_learn(instance, api_runtime(call->api), served, up_effects_max(call->api->up));
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "type", "instance");
    instance_line(&call->json, instance);
    return true;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(
        ((const struct det_glance_timer *)left)->name,
        ((const struct det_glance_timer *)right)->name);
}

/* Lists the timers in the order of the store. False: some have attempts, whose details are only in
 * the store. */
static bool list_timers(
    const struct det_machine *machine, const struct det_glance *glance,
    struct instance_timer *timers)
{
    struct det_glance_timer sorted[DET_GLANCE_TIMERS];

    memcpy(sorted, glance->timers, glance->timer_count * sizeof *sorted);
    if (glance->timer_count)
        qsort(sorted, glance->timer_count, sizeof *sorted, by_name);
    for (size_t i = 0; i < glance->timer_count; i++) {
        const struct det_glance_timer *timer = &sorted[i];
        int named = *timer->name ? det_machine_find_timer(machine, timer->name) : DET_STATE_TIMER;

        if (timer->is_dead || timer->next != timer->due)
            return false;
        timers[i].row = (struct det_store_timer){ .timer = (uint16_t)named,
                                                  .event = timer->event,
                                                  .visit = timer->visit,
                                                  .due = timer->due,
                                                  .next = timer->next };
        timers[i].next = i + 1 < glance->timer_count ? &timers[i + 1] : NULL;
    }
    return true;
}

/* Writes an instance from memory in the form of one from the store. False: it has more pending than
 * timers. */
static bool write_glance(
    struct api_call *call, const struct det_machine *machine, const struct det_glance *glance,
    const void *data)
{
    const struct det_instance *seen = &glance->instance;
    struct instance_timer timers[DET_GLANCE_TIMERS] = { 0 };
    struct instance instance = {
        .machine = machine,
        .id = call->parameters[1],
        .timers = glance->timer_count ? timers : NULL,
        .loaded = { .head = { .sequence = seen->sequence,
                              .visit = seen->visit,
                              .transition_count = seen->transition_count,
                              .started_at = seen->started_at,
                              .last_transition_at = seen->last_transition_at,
                              .state = (uint16_t)seen->state,
                              .is_stopped = seen->is_stopped },
                    .history_count = seen->history_count },
    };

    if (glance->timer_count > DET_GLANCE_TIMERS || seen->deferred_count || seen->effects_pending ||
        glance->effects_dead || !list_timers(machine, glance, timers))
        return false;
    memcpy(&instance.loaded.data, &data, sizeof data);
    memcpy(instance.loaded.reason, seen->reason, sizeof seen->reason);
    for (size_t i = 0; i < seen->history_count; i++)
        instance.loaded.history[i] = (uint16_t)seen->history[i];
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "type", "instance");
    instance_line(&call->json, &instance);
    det_json_close(&call->json, '}');
    return true;
}

static bool answer_from_memory(struct api_call *call, const struct det_machine *machine, void *data)
{
    struct det_glance seen;

    return det_runtime_glance(
               api_runtime(call->api), machine, call->parameters[1], &seen, data, NULL) == 0 &&
           write_glance(call, machine, &seen, data);
}

/* Loads the instance, so that the next request finds it in memory. */
static void read_instance(struct api_call *call)
{
    const struct det_machine *machine = api_find_served(call->api, call->parameters[0]);
    struct det_instance found;
    struct instance instance;
    void *data = machine ? det_arena_alloc(&call->arena, det_machine_data(machine)->size) : NULL;

    if (data &&
        det_runtime_get(api_runtime(call->api), machine, call->parameters[1], &found, NULL, NULL) ==
            0 &&
        answer_from_memory(call, machine, data))
        return;
    if (!begin_instance(call, &instance))
        return;
    det_json_close(&call->json, '}');
    instance_close(&instance);
}

/* Answers from memory if possible; otherwise reads the instance in a lane. */
void api_get_instance(struct api_call *call)
{
    const struct det_machine *machine = api_find_served(call->api, call->parameters[0]);
    void *data = machine ? det_arena_alloc(&call->arena, det_machine_data(machine)->size) : NULL;

    if (data && answer_from_memory(call, machine, data))
        api_finish(call);
    else
        api_defer(call, read_instance);
}

void api_get_why(struct api_call *call)
{
    struct cli *cli;
    struct instance instance;
    int code;

    if (!begin_instance(call, &instance))
        return;
    explain_line(&call->json, &instance);
    det_json_open(&call->json, "sentences", '[');
    cli = &call->reader->cli;
    cli->facts = &call->json;
    code = explain_print(cli, &instance);
    cli->facts = NULL;
    det_json_close(&call->json, ']');
    det_json_close(&call->json, '}');
    instance_close(&instance);
    if (code != CLI_OK)
        api_fail_reader(call, code);
}

void api_get_lock(struct api_call *call)
{
    struct det_store_lease lease = { .token = 0 };
    struct instance instance;
    int r;

    if (!api_reader_take(call) || !api_reader_instance(call, &instance))
        return;
    r = explain_lock(&instance, &lease);
    instance_close(&instance);
    det_json_open(&call->json, NULL, '{');
    explain_lock_line(&call->json, &lease);
    det_json_close(&call->json, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* History. */

struct history {
    struct api_call *call;
    const struct instance *instance;
    uint64_t after, last;
    bool has_after;
    size_t count, limit;
    void *data; /* data after the last event; NULL: not requested, or unknown */
    bool is_cut;
};

/* Applies the event to the data. The data is unknown from the first event on that needs a function
 * in C. */
static void derive_data(struct history *history, const struct det_store_event *row)
{
    const struct det_machine *machine = history->instance->machine;
    const struct det_transition *way;
    struct det_error error;

    if (!history->data || row->event == UINT16_MAX || row->outcome > DET_OUTCOME_STOP)
        return;
    way = det_replay_transition(machine, row->from, row->event, row->choice);
    if (!way || det_machine_apply(machine, way, history->data, row->value, &error) < 0)
        history->data = NULL;
}

static int take_event(void *context, const struct det_store_event *row)
{
    struct history *history = context;
    const struct det_machine *machine = history->instance->machine;
    struct det_json_writer *json = &history->call->json;

    derive_data(history, row);
    if (row->sequence <= history->after)
        return 0;
    if (history->count == history->limit || api_page_is_full(history->call)) {
        history->is_cut = true;
        return 1;
    }
    history->count++;
    history->last = row->sequence;
    instance_item_begin(json, "event", machine->name, history->instance->id);
    instance_event_line(json, machine, row);
    if (history->data)
        det_json_record(json, "data", det_machine_data(machine), history->data, 0);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

/* Writes the start, if the store still has it. */
static int take_start(struct history *history, bool wants_data)
{
    const struct instance *instance = history->instance;
    const struct det_machine *machine = instance->machine;
    struct det_store_start start = { .data = det_arena_alloc(
                                         &history->call->arena, det_machine_data(machine)->size) };
    struct det_json_writer *json = &history->call->json;
    int r;

    if (!start.data)
        return DET_ERR_NO_MEMORY;
    r = instance->store->ops->start(instance->store->store, instance->loaded.instance, &start);
    if (r < 0)
        return r == DET_ERR_NOT_FOUND ? 0 : r;
    history->data = wants_data ? start.data : NULL;
    if (history->has_after)
        return 0;
    history->count++;
    instance_item_begin(json, "start", machine->name, instance->id);
    instance_start_line(json, machine, &start);
    det_json_close(json, '}');
    return 0;
}

/* With data, reads all events: the data after each is derived from those before. */
static int take_events(struct history *history, bool wants_data)
{
    const struct instance *instance = history->instance;
    int r = 0;

    if (wants_data || !history->has_after)
        r = take_start(history, wants_data);
    if (r < 0)
        return r;
    return instance->store->ops->events(
        instance->store->store, instance->loaded.instance, history->data ? 0 : history->after,
        take_event, history);
}

void api_get_history(struct api_call *call)
{
    struct history history = { .call = call };
    struct instance instance;
    bool wants_data = false;
    int r;

    if (!api_query_limit(call, &history.limit) || !api_query_bool(call, "data", &wants_data) ||
        !api_query_number(call, "after", 0, INT64_MAX, &history.after) || !api_reader_take(call) ||
        !api_reader_instance(call, &instance))
        return;
    history.instance = &instance;
    history.has_after = api_query(call, "after") != NULL;
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    r = take_events(&history, wants_data);
    det_json_close(&call->json, ']');
    if (history.is_cut)
        det_json_number(&call->json, "next", history.last);
    else
        det_json_text(&call->json, "next", NULL);
    det_json_close(&call->json, '}');
    instance_close(&instance);
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* Effects as the runtime knows them, with those that run and since when. */

struct running {
    struct det_json_writer *json;
    det_time now;
};

static int write_effect(void *context, const struct det_pending_effect *row)
{
    static const char *const states[] = { [DET_EFFECT_STATE_WAITING] = "waiting",
                                          [DET_EFFECT_STATE_RUNNING] = "running",
                                          [DET_EFFECT_STATE_DEAD] = "dead",
                                          [DET_EFFECT_STATE_QUEUED] = "queued" };
    const struct running *running = context;
    struct det_json_writer *json = running->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "key", row->key);
    det_json_text(json, "state", states[row->state]);
    det_json_number(json, "attempts", row->attempts);
    if (row->began)
        det_json_signed(json, "running_ns", running->now - row->began);
    else
        det_json_text(json, "running_ns", NULL);
    det_json_close(json, '}');
    return det_buffer_status(&json->text);
}

void api_get_running_effects(struct api_call *call)
{
    const struct up *up = call->api->up;
    struct running running = { .json = &call->json };
    struct det_json_writer *json = &call->json;
    const struct det_machine *machine;
    struct det_runtime_counts counts;
    int r;

    if (!api_served(call, call->parameters[0], &machine))
        return;
    running.now = up_machines(up)->store->ops->now(up_machines(up)->store);
    det_runtime_counts(api_runtime(call->api), &counts);
    det_json_open(json, NULL, '{');
    det_json_text(json, "kind", "effects");
    det_json_number(json, "threads_used", counts.effects_running);
    det_json_number(json, "threads_max", up_effects_max(up));
    det_json_open(json, "effects", '[');
    r = det_runtime_effects(
        api_runtime(call->api), machine, call->parameters[1], write_effect, &running, NULL);
    det_json_close(json, ']');
    det_json_close(json, '}');
    if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}
