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

/* It waits for the disk, and for other changes of the same instance. */
#define PATIENCE (60 * DET_SECOND)

static int differs(struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_IO,
        "the change was committed, but the answer does not match this definition: the running "
        "'detent up' uses another one; run 'detent get'");
}

/* Prints a step as the runtime would report it. */
static int report_step(struct act *act, const struct det_json_value *step, struct det_error *reterr)
{
    const struct det_machine *machine = act->machine;
    const char *event = show_text(step, "event");
    int from = det_machine_find_state(machine, show_text(step, "from"));
    int to = det_machine_find_state(machine, show_text(step, "to"));
    int kind = *event ? det_machine_find_event(machine, event) : UINT16_MAX;
    int outcome = det_outcome_find(show_text(step, "outcome"));
    struct det_note note = { .machine = machine, .instance = act->id };

    if (from < 0 || to < 0 || kind < 0 || outcome < 0)
        return differs(reterr);
    note.from = (uint16_t)from;
    note.to = (uint16_t)to;
    note.event = (uint16_t)kind;
    note.outcome = (uint16_t)outcome;
    act_report_step(act, &note);
    return 0;
}

static int take_sent(
    struct act *act, const struct det_json_value *answer, struct det_sent *ret,
    struct det_error *reterr)
{
    int state = det_machine_find_state(act->machine, show_text(answer, "state"));
    int outcome = det_outcome_find(show_text(answer, "outcome"));
    int r = 0;

    if (state < 0 || outcome < 0)
        return differs(reterr);
    *ret = (struct det_sent){
        .outcome = (enum det_outcome)outcome,
        .state = (unsigned)state,
        .sequence = det_json_get_number(answer, "sequence"),
        .visit = det_json_get_number(answer, "visit"),
        .is_duplicate = det_json_get_bool(answer, "duplicate"),
    };
    DET_JSON_EACH (step, det_json_get(answer, "steps"))
        r = r == 0 ? report_step(act, step, reterr) : r;
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

/* `rest` is a path below the instance, "/events"; "": starts it. `ret` NULL: no answer needed. */
static int ask(
    struct act *act, const char *rest, struct det_json_writer *body_take, const char *key,
    struct det_sent *ret, struct det_error *reterr)
{
    det_time deadline = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + PATIENCE;
    const struct det_json_value *answer = NULL;
    struct det_buffer path;
    int r;

    det_buffer_init(&path, act->store.cli->allocator);
    append_path(act, rest, &path);
    r = daemon_client_ask(act->client, "POST", daemon_path_text(&path), body_take, key, reterr);
    if (r == 0)
        r = daemon_client_next(act->client, deadline, &answer, reterr);
    if (r >= 0 && ret)
        r = take_sent(act, answer, ret, reterr);
    det_buffer_deinit(&path);
    return r < 0 ? r : 0;
}

int act_ask_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr)
{
    struct det_json_writer body = daemon_body(act->client);

    det_json_text(&body, "id", act->id);
    det_json_record(&body, "data", det_machine_data(act->machine), data, DET_TEXT_REVEAL);
    return ask(act, "", &body, event_id, ret, reterr);
}

int act_ask_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    const struct det_machine *machine = act->machine;
    struct det_json_writer body = daemon_body(act->client);
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
    struct det_json_writer body = daemon_body(act->client);

    if (reason)
        det_json_text(&body, "reason", reason);
    return ask(act, "/cancel", &body, NULL, ret, reterr);
}

int act_ask_retry(struct act *act, const char *key, struct det_error *reterr)
{
    struct det_json_writer body = daemon_body(act->client);

    det_json_text(&body, "key", key);
    return ask(act, "/retry", &body, NULL, NULL, reterr);
}
