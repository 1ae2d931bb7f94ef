/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* long_calls.c - orders and reloads. The answer may come late: when a task, a group, a flow or all
 * tasks have ended, or when a reload is done. http.limits.request_time does not apply.
 *
 *     open --the daemon has answered------------> finished
 *       \--the client disconnects: cancelled----> finished */
#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "api/request_stream.h"
#include "base/assert.h"
#include "daemon/flows.h"
#include "daemon/reload.h"
#include "daemon/tasks.h"

/* A request to the daemon, in the arena of the stream, which may outlive the call. */
struct wanted {
    struct up_order order;
    struct up_flow_order flow; /* its name is NULL: another order */
    struct up_reload_order reload;
    bool is_reload;
};

/* A call that the daemon answers late. */
struct late_call {
    struct api_call *call;
    struct request_stream *stream; /* NULL: it has ended */
    const struct wanted *wanted;   /* while there is a stream */
};

static void run_wanted(struct up *up, struct up_request *request, void *arguments)
{
    struct wanted *wanted = arguments;

    if (wanted->is_reload)
        up_order_reload(up, request, &wanted->reload);
    else if (wanted->flow.name)
        up_order_flow(up, request, &wanted->flow);
    else
        up_give_order(up, request, &wanted->order);
}

static size_t take_answer(void *user, const char *text, size_t size)
{
    struct late_call *late = user;

    det_json_raw(&late->call->json, NULL, text, size);
    return 0;
}

/* A refused detent.yaml is a regular answer, but a failure in the audit log. */
static void take_answer_end(void *user, const struct det_error *error)
{
    struct late_call *late = user;
    struct api_call *call = late->call;

    det_assert(late->stream && late->wanted);
    if (error->code < 0)
        api_fail_with(call, error->code, error);
    else if (late->wanted->is_reload && late->wanted->reload.outcome != RELOAD_DONE && call->action)
        call->action->code = det_error_name(reload_outcome_error(late->wanted->reload.outcome));
    late->stream = NULL;
    api_finish(call);
}

static void on_client_gone(void *user)
{
    struct late_call *late = user;
    struct api_call *call = late->call;

    det_assert(late->stream && call->exchange);
    request_stream_cancel(late->stream);
    call->exchange = NULL;
    if (call->action)
        call->action->outcome = AUDIT_UNKNOWN;
    api_fail(call, DET_ERR_CANCELLED, "the client has disconnected");
    api_finish(call);
}

static struct request_stream *open_request(
    struct late_call *late, struct det_arena *arena_take, struct wanted *wanted)
{
    late->wanted = wanted;
    return request_stream_open(&(struct request_stream_options){ .api = late->call->api,
                                                                 .run = run_wanted,
                                                                 .arguments = wanted,
                                                                 .arena_take = *arena_take,
                                                                 .on_part = take_answer,
                                                                 .on_end = take_answer_end,
                                                                 .user = late });
}

static void ask_daemon(struct api_call *call, const struct wanted *asked)
{
    struct late_call *late = det_arena_alloc(&call->arena, sizeof *late);
    struct wanted *wanted;
    struct det_arena arena;

    det_arena_init(&arena, call->api->allocator);
    wanted = det_arena_alloc(&arena, sizeof *wanted);
    if (wanted) {
        *wanted = *asked;
        if (asked->order.name)
            wanted->order.name = det_arena_copy(&arena, asked->order.name);
        if (asked->flow.name)
            wanted->flow.name = det_arena_copy(&arena, asked->flow.name);
    }
    if (late && wanted && !wanted->order.name == !asked->order.name &&
        !wanted->flow.name == !asked->flow.name) {
        *late = (struct late_call){ .call = call };
        late->stream = open_request(late, &arena, wanted);
    } else {
        det_arena_deinit(&arena);
    }
    if (!late || !late->stream) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    api_call_streams(call);
    http_keep(call->exchange, on_client_gone, NULL, late);
}

/* Returns an optional boolean member; false if missing. */
static bool body_flag(struct det_json_object *members, const char *key)
{
    return det_json_object_find(members, key) && det_json_object_bool(members, key);
}

static void ask_order(struct api_call *call, const struct up_order *given)
{
    struct wanted wanted = { .order = *given };
    bool may_purge = given->name && given->kind == UP_ORDER_STOP;
    struct det_json_object *members = api_body(call, may_purge ? "wait purge" : "wait");

    if (members) {
        wanted.order.waits = body_flag(members, "wait");
        wanted.order.purges = body_flag(members, "purge");
    }
    if (members && api_body_is_right(call, members))
        ask_daemon(call, &wanted);
    else
        api_finish(call);
}

/* The route permits no other words. */
static enum up_order_kind order_kind(const char *word)
{
    if (strcmp(word, "restart") == 0)
        return UP_ORDER_RESTART;
    return strcmp(word, "stop") == 0 ? UP_ORDER_STOP : UP_ORDER_DRAIN;
}

void api_order(struct api_call *call)
{
    ask_order(
        call,
        &(struct up_order){ .kind = order_kind(call->parameters[1]), .name = call->parameters[0] });
}

void api_stop_all(struct api_call *call)
{
    ask_order(call, &(struct up_order){ .kind = UP_ORDER_STOP });
}

void api_drain_all(struct api_call *call)
{
    ask_order(call, &(struct up_order){ .kind = UP_ORDER_DRAIN });
}

void api_reload(struct api_call *call)
{
    struct wanted wanted = { .is_reload = true };
    struct det_json_object *members = api_body(call, "plan");

    if (members)
        wanted.reload.is_plan = body_flag(members, "plan");
    if (members && api_body_is_right(call, members))
        ask_daemon(call, &wanted);
    else
        api_finish(call);
}

static enum up_flow_order_kind flow_order_kind(const char *word)
{
    if (strcmp(word, "run") == 0)
        return UP_FLOW_RUN;
    return strcmp(word, "drain") == 0 ? UP_FLOW_DRAIN : UP_FLOW_CANCEL;
}

void api_order_flow(struct api_call *call)
{
    struct wanted wanted = { .flow = { .name = call->parameters[0],
                                       .kind = flow_order_kind(call->parameters[1]) } };
    bool is_drain = wanted.flow.kind == UP_FLOW_DRAIN;
    struct det_json_object *members = api_body(call, is_drain ? "wait timeout_ns" : "wait");

    if (members) {
        wanted.flow.waits = body_flag(members, "wait");
        if (det_json_object_find(members, "timeout_ns"))
            wanted.flow.timeout = det_json_object_signed(members, "timeout_ns");
        if (wanted.flow.timeout < 0)
            det_json_object_fail(members, "timeout_ns");
    }
    if (members && api_body_is_right(call, members))
        ask_daemon(call, &wanted);
    else
        api_finish(call);
}
