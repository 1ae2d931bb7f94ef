/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_requests.c - what can be asked of the machines over the socket: start, send, cancel,
 * retry, and what effects do.
 *
 *     verb (loop) --> ask --pool--> the runtime, which waits for the disk --loop--> answer
 *
 * Each ask has all it needs in one allocation: the request is gone when the pool comes to it. */
#include <string.h>

#include "base/memory.h"
#include "daemon/machines.h"
#include "daemon/telemetry.h"
#include "daemon/verbs.h"
#include "inspect/stored_instance.h"
#include "store/row.h"

enum ask_kind { ASK_START, ASK_SEND, ASK_CANCEL, ASK_RETRY, ASK_EFFECTS };

struct ask {
    struct det_job job;
    struct up_machines *machines;
    struct socket_call *call; /* NULL: who asked went away */
    enum ask_kind kind;
    const struct det_machine *machine;
    struct det_arena arena; /* of the texts */
    const char *instance, *text, *data, *event_id;
    uint64_t expected;
    struct up_steps steps;
    json_t *effects; /* an array; NULL: not asked for, or no memory */
    int result;
    struct det_sent sent;
    struct det_error error;
};

/* On the pool. */

static int read_data(struct ask *ask, const struct det_record *record, unsigned flags, void *value)
{
    const char *text = ask->data ? ask->data : "{}";

    return det_record_from_json(record, text, strlen(text), flags, value, &ask->error);
}

static int run_start(struct ask *ask, const struct det_send_options *options)
{
    const struct det_allocator *allocator = ask->arena.allocator;
    const struct det_record *record = det_machine_data(ask->machine);
    void *data = det_alloc_zero(allocator, record->size);
    int r = data ? read_data(ask, record, DET_TEXT_PARTIAL, data) : DET_ERR_NO_MEMORY;

    if (r == 0)
        r = det_runtime_start(
            ask->machines->runtime, ask->machine, ask->instance, data, options, &ask->sent);
    det_free(allocator, data, record->size);
    return r;
}

static int run_send(struct ask *ask, const struct det_send_options *options)
{
    const struct det_allocator *allocator = ask->arena.allocator;
    const struct det_machine *machine = ask->machine;
    int kind = det_machine_find_event(machine, ask->text);
    const struct det_record *record;
    struct det_empty none = { 0 };
    void *event;
    int r;

    if (kind < 0)
        return det_error_set(
            &ask->error, DET_ERR_INVALID, "%s has no event '%.60s'", machine->name, ask->text);
    event = det_alloc_zero(allocator, machine->event_size);
    if (!event)
        return DET_ERR_NO_MEMORY;
    memcpy(event, &kind, sizeof kind);
    record = det_machine_payload(machine, (unsigned)kind);
    r = read_data(
        ask, record, 0,
        record == det_empty_record() ? (void *)&none : instance_payload_in(machine, event));
    if (r == 0)
        r = det_runtime_send(
            ask->machines->runtime, machine, ask->instance, event, options, &ask->sent);
    det_free(allocator, event, machine->event_size);
    return r;
}

static int add_effect(void *context, const struct det_pending_effect *row)
{
    static const char *const states[] = { [DET_EFFECT_WAITING] = "waiting",
                                          [DET_EFFECT_RUNNING] = "running",
                                          [DET_EFFECT_DEAD] = "dead",
                                          [DET_EFFECT_QUEUED] = "queued" };
    struct ask *ask = context;
    det_time ran = ask->machines->store->ops->now(ask->machines->store) - row->began;

    json_array_append_new(
        ask->effects,
        json_pack(
            "{s:s, s:s, s:I, s:o}", "key", row->key, "state", states[row->state], "attempts",
            (json_int_t)row->attempts, "running_ns", row->began ? json_integer(ran) : json_null()));
    return 0;
}

/* What a command sends begins a trace of its own; NULL: nobody wants traces. */
static const struct det_trace_context *begin_span(const struct ask *ask, struct det_span *span)
{
    static const char *const verbs[] = {
        [ASK_START] = "start", [ASK_SEND] = "send", [ASK_CANCEL] = "cancel"
    };
    struct det_tracer *tracer = ask->machines->up->observe->tracer;

    if (!tracer || ask->kind == ASK_RETRY || ask->kind == ASK_EFFECTS)
        return NULL;
    det_episode_receive(
        tracer, span, NULL,
        &(struct det_episode_what){ verbs[ask->kind], ask->machine->name, ask->instance,
                                    ask->kind == ASK_SEND ? ask->text : NULL });
    return &span->context;
}

static void run(void *argument)
{
    struct ask *ask = argument;
    struct det_runtime *runtime = ask->machines->runtime;
    struct det_send_options options = { .event_id = ask->event_id,
                                        .expected = ask->expected,
                                        .error = &ask->error };
    struct det_span span;

    options.trace = begin_span(ask, &span);
    ask->steps.instance = ask->instance;
    up_steps_begin(&ask->steps);
    switch (ask->kind) {
    case ASK_START:
        ask->result = run_start(ask, &options);
        break;
    case ASK_SEND:
        ask->result = run_send(ask, &options);
        break;
    case ASK_CANCEL:
        ask->result =
            det_runtime_stop(runtime, ask->machine, ask->instance, ask->text, &options, &ask->sent);
        break;
    case ASK_RETRY:
        ask->result =
            det_runtime_retry(runtime, ask->machine, ask->instance, ask->text, &ask->error);
        break;
    case ASK_EFFECTS:
        ask->effects = json_array();
        ask->result = det_runtime_effects(runtime, ask->machine, ask->instance, add_effect, ask);
        break;
    }
    up_steps_end();
    if (options.trace)
        det_episode_answer(
            ask->machines->up->observe->tracer, &span, ask->machine, &ask->sent,
            ask->result < 0 ? &ask->error : NULL);
}

/* On the loop. */

static void free_ask(struct ask *ask)
{
    const struct det_allocator *allocator = ask->arena.allocator;

    json_decref(ask->effects);
    det_arena_deinit(&ask->arena);
    DET_DELETE(allocator, ask);
}

static json_t *steps_of(const struct ask *ask)
{
    const struct det_machine *machine = ask->machine;
    json_t *all = json_array();

    for (size_t i = 0; i < ask->steps.count; i++) {
        const struct up_step *step = &ask->steps.items[i];

        json_array_append_new(
            all, json_pack(
                     "{s:s?, s:s, s:s, s:s}", "event",
                     step->event == UINT16_MAX ? NULL : machine->events[step->event].name, "from",
                     machine->states[step->from].name, "to", machine->states[step->to].name,
                     "outcome", det_row_outcome_name(step->outcome)));
    }
    return all;
}

static json_t *effects_of(struct ask *ask)
{
    struct det_runtime_counts counts;

    det_runtime_counts(ask->machines->runtime, &counts);
    return json_pack(
        "{s:s, s:I, s:I, s:O}", "kind", "effects", "threads_used",
        (json_int_t)counts.effects_running, "threads_max",
        (json_int_t)ask->machines->up->effects_max, "effects", ask->effects);
}

static void answer(struct ask *ask)
{
    const struct det_sent *sent = &ask->sent;

    if (ask->job.is_dropped)
        socket_call_fail(ask->call, DET_ERR_CLOSED, CLI_SHUTDOWN);
    else if (ask->result < 0)
        socket_call_fail(
            ask->call, ask->result, "%s",
            ask->error.code == ask->result && ask->error.text[0] ? ask->error.text
                                                                 : det_error_text(ask->result));
    else if (ask->kind == ASK_EFFECTS)
        socket_call_answer(ask->call, effects_of(ask));
    else if (ask->kind == ASK_RETRY)
        socket_call_answer(ask->call, json_pack("{s:s}", "kind", "retried"));
    else
        socket_call_answer(
            ask->call, json_pack(
                           "{s:s, s:s, s:s, s:I, s:I, s:b, s:o}", "kind", "sent", "outcome",
                           det_row_outcome_name(sent->outcome), "state",
                           ask->machine->states[sent->state].name, "sequence",
                           (json_int_t)sent->sequence, "visit", (json_int_t)sent->visit,
                           "duplicate", sent->is_duplicate, "steps", steps_of(ask)));
}

static void done(void *argument)
{
    struct ask *ask = argument;

    if (ask->call)
        answer(ask);
    free_ask(ask);
}

static void on_gone(void *user)
{
    struct ask *ask = user;

    ask->call = NULL;
}

/* A copy; NULL stays NULL. */
static bool copy_text(
    struct ask *ask, const struct socket_request *request, const char *name, const char **ret)
{
    const char *text = up_argument_text(request, name);

    *ret = text ? det_arena_copy(&ask->arena, text) : NULL;
    return !text || *ret;
}

/* What a verb needs and may have. */
struct shape {
    enum ask_kind kind;
    const char *text; /* the argument that is its text */
    bool needs_text;
};

static bool check_needs(
    const struct shape *shape, const struct socket_request *request, struct socket_call *call)
{
    const char *needed[] = { "machine", "instance", shape->needs_text ? shape->text : "machine" };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (up_argument(request, needed[i]))
            continue;
        socket_call_fail(call, DET_ERR_INVALID, "'%s' needs '%s'", request->verb, needed[i]);
        return false;
    }
    return true;
}

/* The one that is served; NULL after it was said why not. */
static struct det_machine *find_machine(
    struct up *up, const struct socket_request *request, struct socket_call *call)
{
    const char *name = up_argument_text(request, "machine");
    struct det_machine *machine;

    if (!up->machines) {
        socket_call_fail(call, DET_ERR_UNSUPPORTED, "this detent up serves no machines");
        return NULL;
    }
    if (!up->machines->pool || up->state >= UP_STOPPING) {
        socket_call_fail(call, DET_ERR_CLOSED, CLI_SHUTDOWN);
        return NULL;
    }
    machine = up_machines_find(up->machines, name);
    if (!machine)
        socket_call_fail(
            call, DET_ERR_NOT_FOUND,
            "the detent up that has this store does not serve %s; add it to " CONFIG_FILE_NAME
            ", or stop it",
            name);
    return machine;
}

static void submit(
    struct up *up, const struct socket_request *request, struct socket_call *call,
    const struct shape *shape)
{
    const struct det_allocator *allocator = up->output.outer->allocator;
    struct det_machine *machine;
    struct ask *ask;

    if (!check_needs(shape, request, call))
        return;
    machine = find_machine(up, request, call);
    if (!machine)
        return;
    ask = DET_NEW(allocator, struct ask);
    if (!ask) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        return;
    }
    det_arena_init(&ask->arena, allocator);
    ask->machines = up->machines;
    ask->call = call;
    ask->kind = shape->kind;
    ask->machine = machine;
    ask->expected = up_argument_count(request, "expected", UINT64_MAX - 1);
    /* 0 says that there was no event yet; what is left out, nothing. */
    if (ask->expected == 0)
        ask->expected = DET_EXPECT_NO_EVENT;
    else if (ask->expected == UINT64_MAX - 1)
        ask->expected = 0;
    ask->job = (struct det_job){ .run = run, .done = done, .argument = ask, .loop = up->loop };
    if (!copy_text(ask, request, "instance", &ask->instance) ||
        !copy_text(ask, request, "data", &ask->data) ||
        !copy_text(ask, request, "event_id", &ask->event_id) ||
        (shape->text && !copy_text(ask, request, shape->text, &ask->text))) {
        socket_call_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
        free_ask(ask);
        return;
    }
    socket_call_keep(call, on_gone, ask);
    det_pool_submit(up->machines->pool, &ask->job);
}

/* The verbs. */

void up_run_begin(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "machine", UP_TEXT },
                                                { "instance", UP_TEXT },
                                                { "data", UP_TEXT },
                                                { "event_id", UP_TEXT },
                                                { NULL, UP_TEXT } };

    if (up_arguments_check(request, call, table))
        submit(context, request, call, &(struct shape){ .kind = ASK_START });
}

void up_run_send(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "machine", UP_TEXT },  { "instance", UP_TEXT },
                                                { "event", UP_TEXT },    { "data", UP_TEXT },
                                                { "event_id", UP_TEXT }, { "expected", UP_COUNT },
                                                { NULL, UP_TEXT } };

    if (up_arguments_check(request, call, table))
        submit(
            context, request, call,
            &(struct shape){ .kind = ASK_SEND, .text = "event", .needs_text = true });
}

void up_run_cancel(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "machine", UP_TEXT }, { "instance", UP_TEXT }, { "reason", UP_TEXT }, { NULL, UP_TEXT }
    };

    if (up_arguments_check(request, call, table))
        submit(context, request, call, &(struct shape){ .kind = ASK_CANCEL, .text = "reason" });
}

void up_run_retry(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = {
        { "machine", UP_TEXT }, { "instance", UP_TEXT }, { "key", UP_TEXT }, { NULL, UP_TEXT }
    };

    if (up_arguments_check(request, call, table))
        submit(
            context, request, call,
            &(struct shape){ .kind = ASK_RETRY, .text = "key", .needs_text = true });
}

void up_run_effects(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument table[] = { { "machine", UP_TEXT },
                                                { "instance", UP_TEXT },
                                                { NULL, UP_TEXT } };

    if (up_arguments_check(request, call, table))
        submit(context, request, call, &(struct shape){ .kind = ASK_EFFECTS });
}

void up_run_machines(void *context, const struct socket_request *request, struct socket_call *call)
{
    static const struct up_argument none[] = { { NULL, UP_TEXT } };
    struct up *up = context;
    struct up_machines *machines = up->machines;
    json_t *names = json_array();

    if (!up_arguments_check(request, call, none)) {
        json_decref(names);
        return;
    }
    for (size_t i = 0; machines && i < machines->count; i++) {
        if (machines->specs && machines->specs[i])
            json_array_append_new(names, json_string(machines->list[i].name));
    }
    socket_call_answer(
        call, json_pack(
                  "{s:s, s:s?, s:s?, s:s?, s:o}", "kind", "machines", "store",
                  machines && machines->store ? det_store_identity(machines->store) : NULL, "url",
                  machines ? machines->url : NULL, "jobs",
                  up->store ? det_store_identity(up->store) : NULL, "machines", names));
}
