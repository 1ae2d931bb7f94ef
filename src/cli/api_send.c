/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_send.c - what is written through the API: start, send, batches, cancel, retry.
 *
 *     send:   http thread --submit--> a writer of the runtime, many in one commit --post--> answer
 *     others: http thread --pool----> the runtime, which waits for the disk ------post--> answer
 *
 * An answer comes after the commit, or says that there was none. */
#include <string.h>

#include "base/memory.h"
#include "cli/api_parts.h"
#include "cli/up_machines.h"
#include "cli/up_observe.h"
#include "store/row.h"

#define BATCH_MAX 1000

/* One send on its way. */
struct sending {
    struct det_send send;
    struct det_error error;
    struct det_post post;
    struct api_call *call;
    struct batch *batch; /* NULL: it is the whole call */
    void *event;
    struct det_span span; /* where somebody gets spans */
    bool was_submitted;   /* of a batch */
};

/* The event struct of a name and a payload; false: `reterr` says why not. */
static int read_event(
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
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    memcpy(event, &kind, sizeof kind);
    record = det_machine_payload(machine, (unsigned)kind);
    *ret = event;
    return det_record_from_json(
        record, data.data, data.size, 0,
        record == det_empty_record() ? (void *)&none : instance_payload_in(machine, event), reterr);
}

static void write_sent(
    struct line *line, const struct det_machine *machine, const char *id, const char *event,
    const struct det_sent *sent)
{
    line_open(line, NULL, '{');
    line_text(line, "type", "sent");
    line_text(line, "machine", machine->name);
    line_text(line, "id", id);
    line_text(line, "event", event);
    line_text(line, "outcome", det_row_outcome_name(sent->outcome));
    line_text(line, "state", machine->states[sent->state].name);
    line_number(line, "sequence", sent->sequence);
    line_number(line, "visit", sent->visit);
    line_bool(line, "duplicate", sent->is_duplicate);
    line_close(line, '}');
}

static const char *event_name(const struct det_send *send)
{
    return send->machine->events[det_event_kind(send->event)].name;
}

/* A send. */

/* The trace of the caller, or one that begins here; without either there is none. */
static const struct det_trace_context *begin_span(
    struct api_call *call, struct det_span *span, const struct det_machine *machine, const char *id,
    const char *event)
{
    struct det_tracer *tracer = call->api->up->observe->tracer;

    if (!tracer)
        return call->trace;
    det_episode_receive(tracer, span, call->trace, machine->name, id, event);
    return &span->context;
}

static void end_span(
    struct api_call *call, struct det_span *span, const struct det_machine *machine, int r,
    const struct det_sent *sent, const struct det_error *error)
{
    struct det_tracer *tracer = call->api->up->observe->tracer;

    if (tracer)
        det_episode_answer(tracer, span, machine, sent, r < 0 ? error : NULL);
}

static void finish_send(void *argument)
{
    struct sending *sending = argument;
    struct det_send *send = &sending->send;
    struct api_call *call = sending->call;

    end_span(call, &sending->span, send->machine, send->result, &send->sent, &sending->error);
    if (send->result < 0)
        api_fail_with(call, send->result, &sending->error);
    else
        write_sent(&call->line, send->machine, send->instance, event_name(send), &send->sent);
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
    struct members *members = api_body(call, "event data expected");
    struct det_send *send = &sending->send;
    const char *name;
    struct det_view data;
    int r;

    if (!members || !api_served(call, call->parameters[0], &send->machine))
        return false;
    name = members_text(members, "event");
    if (!api_body_is_right(call, members) || !api_body_object(call, members, "data", &data) ||
        !api_body_number(call, members, "expected", &send->options.expected))
        return false;
    r = read_event(call, send->machine, name, data, &sending->event, &sending->error);
    if (r < 0)
        api_fail_with(call, r, &sending->error);
    send->event = sending->event;
    return r == 0;
}

void api_send(struct api_call *call)
{
    struct sending *sending = det_arena_alloc(&call->arena, sizeof *sending);
    int r;

    if (!sending)
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    if (!sending || !read_send(call, sending)) {
        api_finish(call);
        return;
    }
    sending->call = call;
    sending->send.instance = call->parameters[1];
    sending->send.options.event_id = call->key;
    sending->send.options.error = &sending->error;
    sending->send.options.trace = begin_span(
        call, &sending->span, sending->send.machine, call->parameters[1],
        event_name(&sending->send));
    sending->send.done = on_sent;
    sending->send.user = sending;
    r = det_runtime_submit(api_runtime(call->api), &sending->send);
    if (r < 0) {
        api_fail(call, r, "%s", det_error_text(r));
        api_finish(call);
    }
}

/* Sends that have nothing to do with each other. */

struct batch {
    struct api_call *call;
    struct sending *items;
    size_t count;
    bool is_wrong;
    atomic_size_t left; /* that have not ended, and one while they are being submitted */
    struct det_post post;
};

static void finish_batch(void *argument)
{
    struct batch *batch = argument;
    struct line *line = &batch->call->line;
    size_t failed = 0;

    line_open(line, NULL, '{');
    line_open(line, "items", '[');
    for (size_t i = 0; i < batch->count; i++) {
        struct sending *item = &batch->items[i];
        struct det_send *send = &item->send;

        if (item->was_submitted)
            end_span(
                batch->call, &item->span, send->machine, send->result, &send->sent, &item->error);
        if (send->result == 0) {
            write_sent(line, send->machine, send->instance, event_name(send), &send->sent);
            continue;
        }
        failed++;
        line_open(line, NULL, '{');
        api_error_line(line, send->result, &item->error);
        line_close(line, '}');
    }
    line_close(line, ']');
    line_number(line, "failed", failed);
    line_close(line, '}');
    api_finish(batch->call);
}

static void end_one(struct batch *batch)
{
    if (atomic_fetch_sub(&batch->left, 1) != 1)
        return;
    batch->post = (struct det_post){ .run = finish_batch, .argument = batch };
    det_loop_post(batch->call->api->loop, &batch->post);
}

static void on_batch_sent(struct det_send *send)
{
    struct sending *sending = send->user;

    end_one(sending->batch);
}

/* What one says; an error if that cannot be what is asked for. */
struct wanted {
    const char *machine, *event;
    struct det_view data;
};

static int read_item(
    struct batch *batch, struct sending *item, struct det_view text, struct wanted *ret)
{
    struct api_call *call = batch->call;
    struct det_send *send = &item->send;
    struct members members;
    const struct member *member;
    int r;

    r = api_object(
        &members, &call->arena, text, "machine id event data event_id expected", &item->error);
    if (r < 0)
        return r;
    ret->machine = members_text(&members, "machine");
    send->instance = members_text(&members, "id");
    ret->event = members_text(&members, "event");
    if (members_find(&members, "event_id"))
        send->options.event_id = members_text(&members, "event_id");
    if (members_find(&members, "expected")) {
        send->options.expected = members_number(&members, "expected");
        if (send->options.expected == 0)
            members_fail(&members, "expected");
    }
    member = members_find(&members, "data");
    ret->data = member ? member->raw : det_view_text("{}");
    if (member && member->kind != DET_JSON_OBJECT)
        members_fail(&members, "data");
    if (members.has_failed)
        return DET_ERR_NO_MEMORY;
    if (!members.wrong[0])
        return 0;
    return det_error_set(
        &item->error, DET_ERR_INVALID, "'%s' is missing, or not what it should be", members.wrong);
}

/* What there is not is the result of the one. */
static int find_item(struct batch *batch, struct sending *item, const struct wanted *wanted)
{
    struct det_send *send = &item->send;
    int r;

    send->machine = api_find_served(batch->call->api, wanted->machine);
    if (!send->machine)
        return det_error_set(
            &item->error, DET_ERR_NOT_FOUND, "no machine '%.60s' is served here", wanted->machine);
    r = read_event(
        batch->call, send->machine, wanted->event, wanted->data, &item->event, &item->error);
    send->event = item->event;
    return r;
}

/* What cannot be read ends it all, before anything is sent. */
static int add_item(void *context, struct det_view element)
{
    struct batch *batch = context;
    struct wanted wanted;
    struct sending *item;
    int r;

    if (batch->count == BATCH_MAX)
        return DET_ERR_LIMIT;
    item = &batch->items[batch->count++];
    r = read_item(batch, item, element, &wanted);
    if (r < 0) {
        api_fail(
            batch->call, r, "send %zu: %s", batch->count,
            item->error.text[0] ? item->error.text : det_error_text(r));
        batch->is_wrong = true;
        return r;
    }
    item->call = batch->call;
    item->batch = batch;
    item->send.result = find_item(batch, item, &wanted);
    item->send.options.error = &item->error;
    item->send.done = on_batch_sent;
    item->send.user = item;
    return 0;
}

static bool read_batch(struct batch *batch)
{
    struct api_call *call = batch->call;
    struct members *members = api_body(call, "sends");
    int r;

    if (!members)
        return false;
    batch->items = det_arena_array(&call->arena, BATCH_MAX, sizeof *batch->items);
    if (!batch->items) {
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        return false;
    }
    r = members_each(members, "sends", add_item, batch);
    if (batch->is_wrong)
        return false;
    if (r == DET_ERR_LIMIT || (r == 0 && batch->count == 0 && !members->wrong[0])) {
        api_fail(call, DET_ERR_INVALID, "a batch has 1 to %d sends", BATCH_MAX);
        return false;
    }
    return api_body_is_right(call, members);
}

void api_batch(struct api_call *call)
{
    struct batch *batch = det_arena_alloc(&call->arena, sizeof *batch);
    int r;

    if (!batch)
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    else
        batch->call = call;
    if (!batch || !read_batch(batch)) {
        api_finish(call);
        return;
    }
    atomic_store(&batch->left, batch->count + 1);
    for (size_t i = 0; i < batch->count; i++) {
        struct det_send *send = &batch->items[i].send;

        if (send->result == 0) {
            batch->items[i].was_submitted = true;
            send->options.trace = begin_span(
                call, &batch->items[i].span, send->machine, send->instance, event_name(send));
            /* Once it is submitted, its result is written by another thread. */
            r = det_runtime_submit(api_runtime(call->api), send);
            if (r == 0)
                continue;
            send->result = r;
        }
        end_one(batch);
    }
    end_one(batch);
}

/* On the pool. */

static void answer_sent(
    struct api_call *call, const struct det_machine *machine, const char *id, const char *event,
    int r, const struct det_sent *sent, const struct det_error *error)
{
    if (r < 0)
        api_fail_with(call, r, error);
    else
        write_sent(&call->line, machine, id, event, sent);
}

static int start(
    struct api_call *call, const struct det_machine *machine, const char *id, struct det_view data,
    struct det_sent *ret, struct det_error *reterr)
{
    const struct det_send_options options = { .event_id = call->key, .error = reterr };
    const struct det_record *record = det_machine_data(machine);
    void *value = det_arena_alloc(&call->arena, record->size);
    int r;

    if (!value)
        return DET_ERR_NO_MEMORY;
    r = det_record_from_json(record, data.data, data.size, DET_TEXT_PARTIAL, value, reterr);
    if (r < 0)
        return r;
    return det_runtime_start(api_runtime(call->api), machine, id, value, &options, ret);
}

void api_start(struct api_call *call)
{
    struct members *members = api_body(call, "id data");
    const struct det_machine *machine;
    struct det_error error = { 0 };
    struct det_sent sent = { 0 };
    struct det_view data;
    const char *id;
    int r;

    if (!members || !api_served(call, call->parameters[0], &machine))
        return;
    id = members_text(members, "id");
    if (!api_body_is_right(call, members) || !api_body_object(call, members, "data", &data))
        return;
    r = start(call, machine, id, data, &sent, &error);
    call->status = sent.is_duplicate ? 200 : 201;
    answer_sent(call, machine, id, NULL, r, &sent, &error);
}

struct events {
    struct api_call *call;
    const struct det_machine *machine;
    const void *items[DET_BATCH_MAX];
    size_t count;
    struct det_error error;
};

static int add_event(void *context, struct det_view element)
{
    struct events *events = context;
    struct api_call *call = events->call;
    const struct member *member;
    struct det_view data = det_view_text("{}");
    struct members members;
    const char *name;
    void *event;
    int r;

    if (events->count == DET_BATCH_MAX)
        return det_error_set(
            &events->error, DET_ERR_LIMIT, "a batch has at most %d events", DET_BATCH_MAX);
    r = api_object(&members, &call->arena, element, "event data", &events->error);
    if (r < 0)
        return r;
    name = members_text(&members, "event");
    member = members_find(&members, "data");
    if (member)
        data = member->raw;
    if (members.wrong[0])
        return det_error_set(
            &events->error, DET_ERR_INVALID, "'%s' is missing, or not what it should be",
            members.wrong);
    r = read_event(call, events->machine, name, data, &event, &events->error);
    if (r == 0)
        events->items[events->count++] = event;
    return r;
}

static const char *last_name(const struct events *events)
{
    const void *last = events->count ? events->items[events->count - 1] : NULL;

    return last ? events->machine->events[det_event_kind(last)].name : NULL;
}

void api_send_all(struct api_call *call)
{
    struct members *members = api_body(call, "events expected");
    struct events events = { .call = call };
    struct det_send_options options = { .event_id = call->key, .error = &events.error };
    struct det_sent sent = { 0 };
    int r;

    if (!members || !api_served(call, call->parameters[0], &events.machine) ||
        !api_body_number(call, members, "expected", &options.expected))
        return;
    r = members_each(members, "events", add_event, &events);
    if (r == 0 && !api_body_is_right(call, members))
        return;
    if (r == 0 && events.count == 0)
        r = det_error_set(&events.error, DET_ERR_INVALID, "a batch has at least one event");
    if (r == 0)
        r = det_runtime_send_all(
            api_runtime(call->api), events.machine, call->parameters[1], events.items, events.count,
            &options, &sent);
    answer_sent(
        call, events.machine, call->parameters[1], last_name(&events), r, &sent, &events.error);
}

void api_cancel(struct api_call *call)
{
    struct members *members = api_body(call, "reason");
    const struct det_machine *machine;
    struct det_error error = { 0 };
    const struct det_send_options options = { .event_id = call->key, .error = &error };
    struct det_sent sent = { 0 };
    const char *reason;
    int r;

    if (!members || !api_served(call, call->parameters[0], &machine))
        return;
    if (!api_body_text(call, members, "reason", DET_REASON_MAX, &reason))
        return;
    r = det_runtime_stop(
        api_runtime(call->api), machine, call->parameters[1], reason, &options, &sent);
    answer_sent(call, machine, call->parameters[1], NULL, r, &sent, &error);
}

void api_retry(struct api_call *call)
{
    struct members *members = api_body(call, "key");
    const struct det_machine *machine;
    struct det_error error = { 0 };
    const char *key;
    int r;

    if (!members || !api_served(call, call->parameters[0], &machine))
        return;
    key = members_text(members, "key");
    if (!api_body_is_right(call, members))
        return;
    r = det_runtime_retry(api_runtime(call->api), machine, call->parameters[1], key, &error);
    if (r < 0) {
        api_fail_with(call, r, &error);
        return;
    }
    line_open(&call->line, NULL, '{');
    line_text(&call->line, "kind", "retried");
    line_close(&call->line, '}');
}
