/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_writes.c - writes to one instance: start, send, cancel, retry.
 *
 *     send:   http thread --submit--> a writer of the runtime, many in one commit --post--> answer
 *     others: http thread --lane----> the runtime, which waits for the disk ------post--> answer
 *
 * The answer comes after the commit, or reports that there was none. */
#include <detent/driver/loop.h>
#include <detent/tool/machine.h>

#include "api/instance_writes.h"

#include <string.h>

#include "base/memory.h"
#include "daemon/machines.h"
#include "daemon/telemetry.h"
#include "store/row.h"

/* A submitted send. */
struct sending {
    struct det_send send;
    struct det_error error;
    struct det_post post;
    struct api_call *call;
    void *event;
    struct det_span *span;
};

/* Limits of decoded events, for one request and for all together. */
#define DECODED_CALL_MAX (16u << 20)
#define DECODED_MAX      (64u << 20)

int api_take_room(struct api_call *call, size_t size, struct det_error *reterr)
{
    size_t others;

    if (call->decoded && call->decoded + size > DECODED_CALL_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT,
            "too many events of this size in one request; send fewer at a time");
    others = atomic_fetch_add(&call->api->decoded, size);
    if (others > 0 && others + size > DECODED_MAX) {
        atomic_fetch_sub(&call->api->decoded, size);
        return det_error_set(
            reterr, DET_ERR_BUSY, "too many events are being processed; retry later");
    }
    call->decoded += size;
    return 0;
}

int api_read_event(
    struct api_call *call, const struct det_machine *machine, const char *name,
    struct det_view data, void **ret, struct det_error *reterr)
{
    int kind = det_machine_find_event(machine, name);
    const struct det_record *record;
    struct det_empty none = { 0 };
    void *event;

    if (kind < 0)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s has no event '%.60s'", machine->name, name);
    event = det_arena_alloc(&call->arena, machine->event_size);
    if (!event)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    memcpy(event, &kind, sizeof kind);
    record = det_machine_payload(machine, (unsigned)kind);
    *ret = event;
    return det_record_from_json(
        record, data.data, data.size, 0,
        record == det_empty_record() ? (void *)&none : instance_payload_in(machine, event), reterr);
}

static void write_steps(
    struct det_json_writer *json, const struct det_machine *machine, const struct up_steps *steps)
{
    det_json_open(json, "steps", '[');
    for (size_t i = 0; i < steps->count; i++) {
        const struct up_step *step = &steps->items[i];

        det_json_open(json, NULL, '{');
        det_json_text(
            json, "event", step->event == UINT16_MAX ? NULL : machine->events[step->event].name);
        det_json_text(json, "from", machine->states[step->from].name);
        det_json_text(json, "to", machine->states[step->to].name);
        det_json_text(json, "outcome", det_outcome_name(step->outcome));
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

/* Writes the members of an answer and leaves the object open. */
static void begin_sent(
    struct det_json_writer *json, const struct det_machine *machine, const char *id,
    const char *event, const struct det_sent *sent)
{
    instance_item_begin(json, "sent", machine->name, id);
    det_json_text(json, "event", event);
    det_json_text(json, "outcome", det_outcome_name(sent->outcome));
    det_json_text(json, "state", machine->states[sent->state].name);
    det_json_number(json, "sequence", sent->sequence);
    det_json_number(json, "visit", sent->visit);
    det_json_bool(json, "duplicate", sent->is_duplicate);
}

void api_write_sent(
    struct det_json_writer *json, const struct det_machine *machine, const char *id,
    const char *event, const struct det_sent *sent)
{
    begin_sent(json, machine, id, event, sent);
    det_json_close(json, '}');
}

const char *api_event_name(const struct det_send *send)
{
    return send->machine->events[det_event_kind(send->event)].name;
}

/* Sends without a span if there is no memory for one. */
const struct det_trace_context *api_begin_span(
    struct api_call *call, struct det_span **ret, const struct det_episode_what *what)
{
    struct det_tracer *tracer = up_observe(call->api->up)->tracer;

    *ret = tracer ? det_arena_alloc(&call->arena, sizeof **ret) : NULL;
    if (!*ret)
        return call->trace;
    det_episode_receive(tracer, *ret, call->trace, what);
    return &(*ret)->context;
}

void api_end_span(
    struct api_call *call, struct det_span *span, const struct det_machine *machine, int r,
    const struct det_sent *sent, const struct det_error *error)
{
    if (span)
        det_episode_answer(
            up_observe(call->api->up)->tracer, span, machine, sent, r < 0 ? error : NULL);
}

/* A send. */

static void finish_send(void *argument)
{
    struct sending *sending = argument;
    struct det_send *send = &sending->send;
    struct api_call *call = sending->call;

    api_end_span(call, sending->span, send->machine, send->result, &send->sent, &sending->error);
    if (send->result < 0)
        api_fail_with(call, send->result, &sending->error);
    else
        api_write_sent(
            &call->json, send->machine, send->instance, api_event_name(send), &send->sent);
    api_finish(call);
}

/* On a writer of the runtime. */
static void on_sent(struct det_send *send)
{
    struct sending *sending = send->user;

    sending->post = (struct det_post){ .run = finish_send, .argument = sending };
    det_loop_post(sending->call->api->loop, &sending->post);
}

static bool read_send(struct api_call *call, struct sending *sending)
{
    struct det_json_object *members = api_body(call, "event payload data expected");
    struct det_send *send = &sending->send;
    const char *name;
    struct det_view data;
    int r;

    if (!members || !api_served(call, call->parameters[0], &send->machine))
        return false;
    name = det_json_object_text(members, "event");
    if (!api_body_is_right(call, members) ||
        !api_body_expected(call, members, &send->options.expected))
        return false;
    r = api_payload(members, &data, &sending->error);
    if (r == 0)
        r = api_take_room(call, send->machine->event_size, &sending->error);
    if (r == 0)
        r = api_read_event(call, send->machine, name, data, &sending->event, &sending->error);
    if (r < 0)
        api_fail_with(call, r, &sending->error);
    send->event = sending->event;
    return r == 0;
}

/* In a lane. */

/* A blocking write, with its span. */
struct write {
    struct api_call *call;
    const struct det_machine *machine;
    const char *id, *event; /* event NULL: none */
    struct det_span *span;
    struct det_send_options options;
    struct det_error error;
    struct det_sent sent;
    struct up_steps *steps; /* NULL: not requested */
};

/* False: the call has failed. */
static bool want_steps(struct write *write)
{
    struct api_call *call = write->call;
    bool wants = false;

    if (!api_query_bool(call, "steps", &wants))
        return false;
    write->steps = wants ? det_arena_alloc(&call->arena, sizeof *write->steps) : NULL;
    if (wants && !write->steps)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    else if (wants)
        *write->steps = (struct up_steps){ .instance = write->id };
    return !wants || write->steps;
}

static void begin_write(struct write *write, const char *verb)
{
    struct api_call *call = write->call;

    write->options.event_id = call->key;
    write->options.trace = api_begin_span(
        call, &write->span,
        &(struct det_episode_what){ verb, write->machine->name, write->id, write->event });
    if (write->steps)
        up_steps_begin(write->steps);
}

static void end_write(struct write *write, int r)
{
    struct api_call *call = write->call;

    if (write->steps)
        up_steps_end();
    api_end_span(call, write->span, write->machine, r, &write->sent, &write->error);
    if (r < 0) {
        api_fail_with(call, r, &write->error);
        return;
    }
    begin_sent(&call->json, write->machine, write->id, write->event, &write->sent);
    if (write->steps)
        write_steps(&call->json, write->machine, write->steps);
    det_json_close(&call->json, '}');
}

/* A send with `steps` blocks. */
static void send_and_wait(struct api_call *call)
{
    const struct sending *sending = call->own;
    const struct det_send *send = &sending->send;
    struct write write = { .call = call,
                           .machine = send->machine,
                           .id = call->parameters[1],
                           .event = api_event_name(send),
                           .options = { .expected = send->options.expected } };

    if (!want_steps(&write))
        return;
    begin_write(&write, "send");
    end_write(
        &write, det_runtime_send(
                    api_runtime(call->api), write.machine, write.id, sending->event, &write.options,
                    &write.sent, &write.error));
}

void api_send(struct api_call *call)
{
    struct sending *sending = det_arena_alloc(&call->arena, sizeof *sending);
    int r;

    if (!sending)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    if (!sending || !read_send(call, sending)) {
        api_finish(call);
        return;
    }
    if (api_query(call, "steps")) {
        call->own = sending;
        api_defer(call, send_and_wait);
        return;
    }
    sending->call = call;
    sending->send.instance = call->parameters[1];
    sending->send.options.event_id = call->key;
    sending->send.error = &sending->error;
    sending->send.options.trace = api_begin_span(
        call, &sending->span,
        &(struct det_episode_what){ "send", sending->send.machine->name, call->parameters[1],
                                    api_event_name(&sending->send) });
    sending->send.done = on_sent;
    sending->send.user = sending;
    r = det_runtime_submit(api_runtime(call->api), &sending->send);
    if (r < 0) {
        api_fail(call, r, "%s", det_error_text(r));
        api_finish(call);
    }
}

static int read_start(struct write *write, struct det_view data, void **ret)
{
    const struct det_record *record = det_machine_data(write->machine);
    int r = api_take_room(write->call, record->size, &write->error);

    if (r < 0)
        return r;
    *ret = det_arena_alloc(&write->call->arena, record->size);
    if (!*ret)
        return det_error_set(&write->error, DET_ERR_NO_MEMORY, "out of memory");
    return det_record_from_json(
        record, data.data, data.size, DET_TEXT_PARTIAL, *ret, &write->error);
}

void api_start(struct api_call *call)
{
    struct det_json_object *members = api_body(call, "id data");
    struct write write = { .call = call };
    struct det_view data;
    void *value;
    int r;

    if (!members || !api_served(call, call->parameters[0], &write.machine))
        return;
    write.id = det_json_object_text(members, "id");
    if (!api_body_is_right(call, members) || !api_body_object(call, members, "data", &data) ||
        !want_steps(&write))
        return;
    r = read_start(&write, data, &value);
    if (r < 0) {
        api_fail_with(call, r, &write.error);
        return;
    }
    begin_write(&write, "start");
    r = det_runtime_start(
        api_runtime(call->api), write.machine, write.id, value, &write.options, &write.sent,
        &write.error);
    call->status = write.sent.is_duplicate ? 200 : 201;
    end_write(&write, r);
}

struct events {
    struct api_call *call;
    const struct det_machine *machine;
    const void *items[DET_BATCH_MAX];
    size_t count;
    struct det_error error;
};

static int add_event(struct events *events, const struct det_json_value *element)
{
    struct api_call *call = events->call;
    struct det_json_object members;
    struct det_view data;
    const char *name;
    void *event;
    int r;

    if (events->count == DET_BATCH_MAX)
        return det_error_set(
            &events->error, DET_ERR_LIMIT, "a batch has at most %d events", DET_BATCH_MAX);
    r = api_object(&members, &call->arena, element, "event payload data", &events->error);
    if (r < 0)
        return r;
    name = det_json_object_text(&members, "event");
    if (members.wrong[0])
        return det_error_set(
            &events->error, DET_ERR_INVALID, "'%s' is missing or invalid", members.wrong);
    r = api_payload(&members, &data, &events->error);
    if (r == 0)
        r = api_take_room(call, events->machine->event_size, &events->error);
    if (r == 0)
        r = api_read_event(call, events->machine, name, data, &event, &events->error);
    if (r == 0)
        events->items[events->count++] = event;
    return r;
}

void api_send_all(struct api_call *call)
{
    struct det_json_object *members = api_body(call, "events expected");
    struct events events = { .call = call };
    struct write write = { .call = call, .id = call->parameters[1] };
    int r = 0;

    if (!members || !api_served(call, call->parameters[0], &events.machine) ||
        !api_body_expected(call, members, &write.options.expected))
        return;
    DET_JSON_EACH (element, det_json_object_array(members, "events")) {
        r = add_event(&events, element);
        if (r < 0)
            break;
    }
    if (r == 0 && !api_body_is_right(call, members))
        return;
    if (r == 0 && events.count == 0)
        r = det_error_set(&events.error, DET_ERR_INVALID, "a batch has at least one event");
    if (r < 0) {
        api_fail_with(call, r, &events.error);
        return;
    }
    write.machine = events.machine;
    write.event = events.machine->events[det_event_kind(events.items[events.count - 1])].name;
    begin_write(&write, "send");
    r = det_runtime_send_all(
        api_runtime(call->api), write.machine, write.id, events.items, events.count, &write.options,
        &write.sent, &write.error);
    end_write(&write, r);
}

void api_cancel(struct api_call *call)
{
    struct det_json_object *members = api_body(call, "reason");
    struct write write = { .call = call, .id = call->parameters[1] };
    const char *reason;
    int r;

    if (!members || !api_served(call, call->parameters[0], &write.machine))
        return;
    if (!api_body_text(call, members, "reason", DET_REASON_MAX, &reason) || !want_steps(&write))
        return;
    begin_write(&write, "cancel");
    r = det_runtime_cancel(
        api_runtime(call->api), write.machine, write.id, reason ? reason : api_actor(call),
        &write.options, &write.sent, &write.error);
    end_write(&write, r);
}

void api_retry(struct api_call *call)
{
    struct det_json_object *members = api_body(call, "key");
    const struct det_machine *machine;
    struct det_error error = { 0 };
    const char *key;
    int r;

    if (!members || !api_served(call, call->parameters[0], &machine))
        return;
    key = det_json_object_text(members, "key");
    if (!api_body_is_right(call, members))
        return;
    r = det_runtime_retry(api_runtime(call->api), machine, call->parameters[1], key, &error);
    if (r < 0) {
        api_fail_with(call, r, &error);
        return;
    }
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "kind", "retried");
    det_json_close(&call->json, '}');
}
