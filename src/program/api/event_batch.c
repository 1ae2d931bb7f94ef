/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_batch.c - independent sends in one request.
 *
 *     read all --> decode all --> submit all ... the last one to finish posts the answer
 *     http thread  the same, or   http thread
 *                  in a lane
 *
 * Each send is submitted separately, and the writers of the runtime group them into commits. A
 * malformed or oversized batch is refused as a whole before anything is decoded; an unknown machine
 * fails only its own send.
 *
 * The Idempotency-Key of the request gives each send without an event id the id "KEY:NUMBER". The
 * store keeps it, so the same batch gets the first answers again. */
#include <detent/driver/loop.h>
#include <string.h>

#include "api/instance_writes.h"
#include "base/assert.h"
#include "store/store.h"

#define BATCH_MAX 1000
/* Decoding more than this on the http thread would block it for milliseconds. */
#define DECODED_AT_ONCE (256u << 10)
#define KEY_MAX         (DET_ID_MAX - 5) /* leaves room for ":1000" */

/* The members of one send. */
struct wanted {
    const char *machine, *event;
    struct det_view data;
};

struct item {
    struct item *next;
    struct wanted wanted;
    struct det_send send;
    struct det_error error;
    struct batch *batch;
    struct det_span *span;
};

struct batch {
    struct api_call *call;
    struct item *first, **last;
    size_t count;
    bool is_wrong;
    atomic_size_t left; /* unfinished sends, plus one during submission */
    struct det_post post;
};

/* Answering. */

static void write_result(struct batch *batch, struct item *item)
{
    struct det_json_writer *json = &batch->call->json;
    const struct det_send *send = &item->send;

    api_end_span(batch->call, item->span, send->machine, send->result, &send->sent, &item->error);
    if (send->result == 0) {
        api_write_sent(json, send->machine, send->instance, api_event_name(send), &send->sent);
        return;
    }
    det_json_open(json, NULL, '{');
    api_error_line(api_error_reader(batch->call), json, send->result, &item->error);
    det_json_close(json, '}');
}

static void finish_batch(void *argument)
{
    struct batch *batch = argument;
    struct det_json_writer *json = &batch->call->json;
    size_t failed = 0;

    det_assert(atomic_load(&batch->left) == 0);
    det_json_open(json, NULL, '{');
    det_json_open(json, "items", '[');
    for (struct item *item = batch->first; item; item = item->next) {
        write_result(batch, item);
        failed += item->send.result != 0;
    }
    det_json_close(json, ']');
    det_json_number(json, "failed", failed);
    det_json_close(json, '}');
    api_finish(batch->call);
}

/* While others are left, the last of them may free the batch at once. */
static void finish_one(struct batch *batch)
{
    size_t left = atomic_fetch_sub(&batch->left, 1);

    det_assert(left > 0);
    if (left > 1)
        return;
    batch->post = (struct det_post){ .run = finish_batch, .argument = batch };
    det_loop_post(batch->call->api->loop, &batch->post);
}

/* On a writer of the runtime. */
static void on_sent(struct det_send *send)
{
    struct item *item = send->user;

    finish_one(item->batch);
}

/* Reading. */

/* Parses one send. An error refuses the batch. */
static int read_item(struct batch *batch, struct item *item, const struct det_json_value *value)
{
    struct api_call *call = batch->call;
    struct wanted *ret = &item->wanted;
    struct det_send *send = &item->send;
    struct det_json_object members;
    int r;

    r = api_object(
        &members, &call->arena, value, "machine id event payload data event_id expected",
        &item->error);
    if (r < 0)
        return r;
    ret->machine = det_json_object_text(&members, "machine");
    send->instance = det_json_object_text(&members, "id");
    ret->event = det_json_object_text(&members, "event");
    if (det_json_object_find(&members, "event_id"))
        send->options.event_id = det_json_object_text(&members, "event_id");
    api_read_expected(&members, &send->options.expected);
    if (!members.wrong[0])
        return api_payload(&members, &ret->data, &item->error);
    return det_error_set(
        &item->error, DET_ERR_INVALID, "'%s' is missing or invalid", members.wrong);
}

/* Finds the machine and reserves memory for the event. */
static int find_item(struct batch *batch, struct item *item)
{
    struct det_send *send = &item->send;

    send->machine = api_find_served(batch->call->api, item->wanted.machine);
    if (send->machine)
        return api_take_room(batch->call, send->machine->event_size, &item->error);
    send->result = det_error_set(
        &item->error, DET_ERR_NOT_FOUND, "this detent does not serve the machine '%.60s'",
        item->wanted.machine);
    return 0;
}

static int set_event_id(struct batch *batch, struct item *item)
{
    struct api_call *call = batch->call;

    if (!call->key || item->send.options.event_id)
        return 0;
    item->send.options.event_id = det_arena_format(&call->arena, "%s:%zu", call->key, batch->count);
    if (!item->send.options.event_id)
        return det_error_set(&item->error, DET_ERR_NO_MEMORY, "out of memory");
    return 0;
}

static int fill_item(struct batch *batch, struct item *item, const struct det_json_value *element)
{
    int r;

    r = read_item(batch, item, element);
    if (r == 0)
        r = set_event_id(batch, item);
    if (r < 0)
        return r;
    item->batch = batch;
    item->send.error = &item->error;
    item->send.done = on_sent;
    item->send.user = item;
    return find_item(batch, item);
}

static int add_item(struct batch *batch, const struct det_json_value *element)
{
    struct item *item;
    int r;

    if (batch->count++ == BATCH_MAX)
        return DET_ERR_LIMIT;
    item = det_arena_alloc(&batch->call->arena, sizeof *item);
    if (!item)
        return DET_ERR_NO_MEMORY;
    *batch->last = item;
    batch->last = &item->next;
    r = fill_item(batch, item, element);
    if (r == 0)
        return 0;
    batch->is_wrong = true;
    api_fail(
        batch->call, r, "send %zu: %s", batch->count,
        item->error.text[0] ? item->error.text : det_error_text(r));
    return r;
}

static bool read_batch(struct batch *batch)
{
    struct api_call *call = batch->call;
    struct det_json_object *members = api_body(call, "sends");
    int r = 0;

    if (!members)
        return false;
    if (call->key && (!det_store_id_is_valid(call->key) || strlen(call->key) > KEY_MAX)) {
        api_fail(
            call, DET_ERR_INVALID,
            "the Idempotency-Key of a batch must have 1 to %d characters of A-Z a-z 0-9 . _ : -",
            KEY_MAX);
        return false;
    }
    DET_JSON_EACH (element, det_json_object_array(members, "sends")) {
        r = add_item(batch, element);
        if (r < 0)
            break;
    }
    if (batch->is_wrong)
        return false;
    if (r == DET_ERR_NO_MEMORY) {
        api_fail(call, r, "out of memory");
        return false;
    }
    if (r == DET_ERR_LIMIT || (r == 0 && batch->count == 0 && !members->wrong[0])) {
        api_fail(call, DET_ERR_INVALID, "a batch has 1 to %d sends", BATCH_MAX);
        return false;
    }
    return api_body_is_right(call, members);
}

/* Decodes all events, on the http thread or in a lane. */
static void decode_all(struct api_call *call)
{
    struct batch *batch = call->own;

    for (struct item *item = batch->first; item; item = item->next) {
        struct det_send *send = &item->send;
        void *event = NULL;

        if (send->result == 0)
            send->result = api_read_event(
                call, send->machine, item->wanted.event, item->wanted.data, &event, &item->error);
        send->event = event;
    }
}

/* Sending. */

/* After this, another thread writes the result. */
static void submit_item(struct batch *batch, struct item *item)
{
    struct det_send *send = &item->send;
    int r;

    if (send->result < 0) {
        finish_one(batch);
        return;
    }
    send->options.trace = api_begin_span(
        batch->call, &item->span,
        &(struct det_episode_what){ "send", send->machine->name, send->instance,
                                    api_event_name(send) });
    r = det_runtime_submit(api_runtime(batch->call->api), send);
    if (r < 0) {
        send->result = r;
        finish_one(batch);
    }
}

static void submit_all(struct api_call *call)
{
    struct batch *batch = call->own;
    struct item *next;

    atomic_store(&batch->left, batch->count + 1);
    for (struct item *item = batch->first; item; item = next) {
        next = item->next;
        submit_item(batch, item);
    }
    finish_one(batch);
}

void api_batch(struct api_call *call)
{
    struct batch *batch = det_arena_alloc(&call->arena, sizeof *batch);

    if (!batch) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    batch->call = call;
    batch->last = &batch->first;
    call->own = batch;
    if (!read_batch(batch)) {
        api_finish(call);
    } else if (call->decoded > DECODED_AT_ONCE) {
        call->then = submit_all;
        api_defer(call, decode_all);
    } else {
        decode_all(call);
        submit_all(call);
    }
}
