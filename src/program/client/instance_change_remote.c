/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_change_remote.c - one change to an instance, made by the `detent up` that serves its
 * store. */
#include <detent/tool/machine.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/instance_change.h"
#include "inspect/print_tasks.h"
#include "store/row.h"

/* It waits for the disk, and for others who change the same instance. */
#define PATIENCE (60 * DET_SECOND)

struct daemon_client *act_find_up(struct cli *cli, const char *what, char *target)
{
    struct daemon_client *client = NULL;
    struct det_error error = { 0 };
    char project[DET_PATH_MAX];
    json_t *answer = NULL;
    bool serves;

    /* Whoever does not find one, or one that is not for us, goes to the store itself. */
    if (socket_find(".", project, &error) < 0 ||
        daemon_client_open(project, cli->allocator, &client, &error) < 0)
        return NULL;
    serves =
        daemon_client_call(client, "GET", "/v1/served", NULL, PATIENCE, &answer, &error) == 0 &&
        det_text_copy(target, 33, show_text(answer, what)) && target[0];
    json_decref(answer);
    if (serves)
        return client;
    daemon_client_close(client);
    return NULL;
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

/* Appends the path of the instance, then `rest`. */
static void append_path(const struct act *act, const char *rest, struct det_buffer *path)
{
    det_buffer_append_text(path, "/v1/machines/");
    daemon_path_add(path, act->machine->name);
    det_buffer_append_text(path, "/instances");
    if (*rest) {
        det_buffer_append_char(path, '/');
        daemon_path_add(path, act->id);
        det_buffer_append_text(path, rest);
    }
    if (strcmp(rest, "/retry") != 0)
        det_buffer_append_text(path, "?steps=true");
}

/* `rest` is a path below the instance, "/events"; "": starts it. `ret` NULL: without an answer. */
static int ask(
    struct act *act, const char *rest, struct det_json_writer *body, const char *key,
    struct det_sent *ret, struct det_error *reterr)
{
    det_time deadline = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + PATIENCE;
    struct det_buffer path;
    json_t *answer = NULL;
    int r;

    det_buffer_init(&path, act->store.cli->allocator);
    append_path(act, rest, &path);
    det_json_close(body, '}');
    r = det_buffer_status(&body->text);
    if (r < 0)
        r = det_error_set(reterr, r, "%s", det_error_text(r));
    if (r == 0)
        r = daemon_client_ask_text(
            act->client, "POST", daemon_path_text(&path), det_buffer_text(&body->text), key,
            reterr);
    if (r == 0)
        r = daemon_client_next(act->client, deadline, &answer, reterr);
    if (r >= 0 && ret)
        r = take_sent(act, answer, ret, reterr);
    json_decref(answer);
    det_buffer_deinit(&path);
    det_json_writer_deinit(body);
    return r < 0 ? r : 0;
}

static struct det_json_writer begin_body(const struct act *act)
{
    struct det_json_writer body;

    det_json_writer_init(&body, act->store.cli->allocator);
    det_json_open(&body, NULL, '{');
    return body;
}

int act_ask_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr)
{
    struct det_json_writer body = begin_body(act);

    det_json_text(&body, "id", act->id);
    det_json_record(&body, "data", det_machine_data(act->machine), data, DET_TEXT_REVEAL);
    return ask(act, "", &body, event_id, ret, reterr);
}

int act_ask_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    const struct det_machine *machine = act->machine;
    struct det_json_writer body = begin_body(act);
    unsigned kind = det_event_kind(event);

    det_json_text(&body, "event", machine->events[kind].name);
    det_json_record(
        &body, "payload", det_machine_payload(machine, kind), instance_payload_of(machine, event),
        DET_TEXT_REVEAL);
    if (options->expected)
        det_json_number(
            &body, "expected", options->expected == DET_EXPECT_NO_EVENT ? 0 : options->expected);
    return ask(act, "/events", &body, options->event_id, ret, reterr);
}

int act_ask_stop(
    struct act *act, const char *reason, struct det_sent *ret, struct det_error *reterr)
{
    struct det_json_writer body = begin_body(act);

    if (reason)
        det_json_text(&body, "reason", reason);
    return ask(act, "/cancel", &body, NULL, ret, reterr);
}

int act_ask_retry(struct act *act, const char *key, struct det_error *reterr)
{
    struct det_json_writer body = begin_body(act);

    det_json_text(&body, "key", key);
    return ask(act, "/retry", &body, NULL, NULL, reterr);
}
