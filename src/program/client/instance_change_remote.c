/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_change_remote.c - one change to an instance, made by the `detent up` that serves its
 * store. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/instance_change.h"
#include "inspect/print_tasks.h"
#include "store/row.h"

/* It waits for the disk, and for others who change the same instance. */
#define PATIENCE (60 * DET_SECOND)

struct socket_client *act_find_up(struct cli *cli, const char *what, char *target)
{
    struct socket_client *client = NULL;
    struct det_error error = { 0 };
    char project[DET_PATH_MAX];
    json_t *answer = NULL;
    bool serves;

    /* Whoever does not find one, or one that is not for us, goes to the store itself. */
    if (socket_find(".", project, &error) < 0 ||
        socket_client_open(project, cli->allocator, &client, &error) < 0)
        return NULL;
    serves = socket_client_call(client, "machines", NULL, PATIENCE, &answer, &error) == 0 &&
             det_text_copy(target, 33, show_text(answer, what)) && target[0];
    json_decref(answer);
    if (serves)
        return client;
    socket_client_close(client);
    return NULL;
}

/* The record as the text that a request has. NULL: no memory. */
static json_t *record_text(struct act *act, const struct det_record *record, const void *value)
{
    struct det_json_writer json;
    json_t *text = NULL;

    det_json_writer_init(&json, act->store.cli->allocator);
    det_json_record(&json, NULL, record, value, DET_TEXT_REVEAL);
    if (det_buffer_status(&json.text) == 0)
        text = json_stringn(json.text.data, json.text.size);
    det_json_writer_deinit(&json);
    return text;
}

static json_t *arguments_of(const struct act *act)
{
    return json_pack("{s:s, s:s}", "machine", act->machine->name, "instance", act->id);
}

/* NULL: there is none. Takes `arguments` as it is: a lack of memory shows when it is sent. */
static void add_text(json_t *arguments, const char *name, const char *text)
{
    if (text)
        (void)json_object_set_new(arguments, name, json_string(text));
}

static int differs(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_MALFORMED,
        "the 'detent up' that runs has another definition; it was done, 'detent get' shows it");
}

/* As the runtime would have told it. */
static int tell_step(struct act *act, const json_t *step, struct det_error *reterr)
{
    const struct det_machine *machine = act->machine;
    const char *event = show_text(step, "event");
    int from = det_machine_find_state(machine, show_text(step, "from"));
    int to = det_machine_find_state(machine, show_text(step, "to"));
    int kind = *event ? det_machine_find_event(machine, event) : UINT16_MAX;
    int outcome = det_row_outcome_find(show_text(step, "outcome"));
    struct det_note note = { .machine = machine, .instance = act->id };

    if (from < 0 || to < 0 || kind < 0 || outcome < 0)
        return differs(reterr);
    note.from = (uint16_t)from;
    note.to = (uint16_t)to;
    note.event = (uint16_t)kind;
    note.outcome = (uint16_t)outcome;
    act_tell_step(act, &note);
    return 0;
}

static int take_sent(
    struct act *act, const json_t *answer, struct det_sent *ret, struct det_error *reterr)
{
    int state = det_machine_find_state(act->machine, show_text(answer, "state"));
    int outcome = det_row_outcome_find(show_text(answer, "outcome"));
    const json_t *steps = json_object_get(answer, "steps");
    int r = 0;

    if (state < 0 || outcome < 0)
        return differs(reterr);
    *ret = (struct det_sent){
        .outcome = (enum det_outcome)outcome,
        .state = (unsigned)state,
        .sequence = (uint64_t)json_integer_value(json_object_get(answer, "sequence")),
        .visit = (uint64_t)json_integer_value(json_object_get(answer, "visit")),
        .is_duplicate = json_is_true(json_object_get(answer, "duplicate")),
    };
    for (size_t i = 0; r == 0 && i < json_array_size(steps); i++)
        r = tell_step(act, json_array_get(steps, i), reterr);
    return r;
}

/* `ret` NULL: the answer says nothing. */
static int ask(
    struct act *act, const char *verb, json_t *arguments_take, struct det_sent *ret,
    struct det_error *reterr)
{
    json_t *answer = NULL;
    int r;

    if (!arguments_take)
        return DET_ERR_NO_MEMORY;
    r = socket_client_call(act->client, verb, arguments_take, PATIENCE, &answer, reterr);
    if (r == 0 && ret)
        r = take_sent(act, answer, ret, reterr);
    json_decref(answer);
    return r;
}

int act_ask_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr)
{
    json_t *arguments = arguments_of(act);

    (void)json_object_set_new(
        arguments, "data", record_text(act, det_machine_data(act->machine), data));
    add_text(arguments, "event_id", event_id);
    return ask(act, "start", arguments, ret, reterr);
}

int act_ask_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    const struct det_machine *machine = act->machine;
    unsigned kind = det_event_kind(event);
    json_t *arguments = arguments_of(act);

    add_text(arguments, "event", machine->events[kind].name);
    (void)json_object_set_new(
        arguments, "data",
        record_text(act, det_machine_payload(machine, kind), instance_payload_of(machine, event)));
    add_text(arguments, "event_id", options->event_id);
    if (options->expected)
        (void)json_object_set_new(
            arguments, "expected",
            json_integer(
                options->expected == DET_EXPECT_NO_EVENT ? 0 : (json_int_t)options->expected));
    return ask(act, "send", arguments, ret, reterr);
}

int act_ask_stop(
    struct act *act, const char *reason, struct det_sent *ret, struct det_error *reterr)
{
    json_t *arguments = arguments_of(act);

    add_text(arguments, "reason", reason);
    return ask(act, "cancel", arguments, ret, reterr);
}

int act_ask_retry(struct act *act, const char *key, struct det_error *reterr)
{
    json_t *arguments = arguments_of(act);

    add_text(arguments, "key", key);
    return ask(act, "retry", arguments, NULL, reterr);
}
