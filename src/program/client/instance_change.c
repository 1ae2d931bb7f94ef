/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_change.c - one change to an instance, made by this process, or by the daemon that
 * serves it. */
#include "client/instance_change.h"

#include <string.h>

#include "base/text.h"
#include "client/served_store.h"
#include "store/row.h"

/* Maximum size of an option, more than any record needs. */
#define DATA_SIZE_MAX 4194304
#define NAMES_TEXT    200

/* Prints the steps of the commit, and those of deferred events that followed. */
void act_report_step(void *user, const struct det_note *note)
{
    struct act *act = user;
    struct cli *cli = act->store.cli;
    const struct det_machine *machine = note->machine;
    const char *to = machine->states[note->to].name;

    if (!act->prints_steps)
        return;
    cli_print(cli, "%s: ", note->instance);
    if (note->event != UINT16_MAX)
        cli_print(cli, "%s: ", machine->events[note->event].name);
    switch ((enum det_outcome)note->outcome) {
    case DET_OUTCOME_GOTO:
        if (note->event != UINT16_MAX)
            cli_print(cli, "%s -> ", machine->states[note->from].name);
        cli_print_in(cli, CLI_BOLD, "%s\n", to);
        break;
    case DET_OUTCOME_STAY:
        cli_print(cli, "stays %s\n", to);
        break;
    case DET_OUTCOME_STOP:
        cli_print(cli, "stopped in %s\n", to);
        break;
    case DET_OUTCOME_DEFERRED:
        cli_print(cli, "deferred until %s is left\n", to);
        break;
    case DET_OUTCOME_DEAD_LETTER:
        cli_print(cli, "not handled in %s: a dead letter\n", to);
        break;
    case DET_OUTCOME_UNHANDLED:
    case DET_OUTCOME_IGNORED:
        break;
    }
}

int act_open(struct cli *cli, const struct store_request *request, struct act *act)
{
    /* A held lock may be released in a moment or in an hour: wait for a moment. */
    static const struct det_lock_options patience = { .wait = DET_SECOND };
    struct det_runtime_options options = {
        .world = cli->world,
        .allocator = cli->allocator,
        .is_passive = true,
        .shards = 1,
        .lock = &patience,
        .observe = act_report_step,
        .observer = act,
    };
    struct store_request writing = *request;
    struct det_error error = { 0 };
    int code, r;

    *act = (struct act){ .prints_steps = !cli->is_json };
    writing.is_writing = true;
    writing.served_for = "store";
    code = served_store_open(cli, &writing, &act->store);
    if (code != CLI_OK)
        return code;
    if (act->store.is_served)
        r = served_store_connect(&act->store, &act->client, &error);
    else
        r = det_runtime_open(act->store.store, &options, &act->runtime, &error);
    return r < 0 ? cli_report_store_error(&act->store, r, &error) : CLI_OK;
}

void act_close(struct act *act)
{
    det_runtime_close(act->runtime);
    act->runtime = NULL;
    daemon_client_close(act->client);
    act->client = NULL;
    cli_store_close(&act->store);
}

int act_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr)
{
    const struct det_send_options options = { .event_id = event_id };

    if (act->client)
        return act_ask_start(act, data, event_id, ret, reterr);
    return det_runtime_start(act->runtime, act->machine, act->id, data, &options, ret, reterr);
}

int act_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    if (act->client)
        return act_ask_send(act, event, options, ret, reterr);
    return det_runtime_send(act->runtime, act->machine, act->id, event, options, ret, reterr);
}

int act_stop(struct act *act, const char *reason, struct det_sent *ret, struct det_error *reterr)
{
    if (act->client)
        return act_ask_stop(act, reason, ret, reterr);
    return det_runtime_cancel(act->runtime, act->machine, act->id, reason, NULL, ret, reterr);
}

int act_retry(struct act *act, const char *key, struct det_error *reterr)
{
    if (act->client)
        return act_ask_retry(act, key, reterr);
    return det_runtime_retry(act->runtime, act->machine, act->id, key, reterr);
}

int act_report_error(struct act *act, int code, const struct det_error *error)
{
    struct cli *cli = act->store.cli;
    const char *machine = act->machine->name;

    if (code == DET_ERR_UNBOUND)
        cli_report_error(
            cli, "%s; it is a C function, and only the program that contains it can do this",
            error->code == code ? error->text : det_error_text(code));
    else if (code == DET_ERR_LOCKED && error->code == code)
        cli_report_error(cli, "%s; 'detent why %s' shows until when", error->text, act->id);
    else if (code == DET_ERR_NOT_FOUND && !act->client)
        cli_report_error(
            cli, "there is no %s '%s'; start it: detent start %s %s", machine, act->id, machine,
            act->id);
    else if (code == DET_ERR_CORRUPT)
        return instance_report_damaged(&act->store, machine, act->id);
    else if (code == DET_ERR_EXISTS)
        cli_report_error(
            cli, "'%s' of %s already exists; 'detent get %s' shows it", act->id, machine, act->id);
    else
        return cli_report_store_error(&act->store, code, error);
    return cli_exit_of(code);
}

static int read_text(struct act *act, const char *text, struct cli_text *file)
{
    struct det_error error = { 0 };
    int r;

    r = cli_text_load(act->store.cli, text + 1, DATA_SIZE_MAX, file, &error);
    return r < 0 ? cli_report_store_error(&act->store, r, &error) : CLI_OK;
}

/* Reports a missing value, with its form. */
static void report_missing(struct act *act, const char *what, const struct det_record *record)
{
    char fields[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < record->field_count && used < sizeof fields; i++)
        used += (size_t)snprintf(
            fields + used, sizeof fields - used, "%s\"%s\": ...", i ? ", " : "",
            record->fields[i].name);
    cli_report_error(act->store.cli, "%s needs %s '{%s}'", what, act->option, fields);
}

int act_read_json(
    struct act *act, const char *what, const char *text, const struct det_record *record,
    unsigned flags, void *value)
{
    struct det_error error = { 0 };
    struct cli_text file = { 0 };
    bool is_given = text != NULL;
    int code = CLI_OK, r;

    text = text ? text : "{}";
    if (text[0] == '@')
        code = read_text(act, text, &file);
    if (code != CLI_OK)
        return code;
    r = det_record_from_json(
        record, file.data ? file.data : text, file.data ? file.size : strlen(text), flags, value,
        &error);
    if (r == DET_ERR_UNKNOWN_FIELD && record == det_empty_record())
        cli_report_error(act->store.cli, "%s: %s has none; omit the option", act->option, what);
    else if (r < 0 && !is_given)
        report_missing(act, what, record);
    else if (r < 0)
        cli_report_error(act->store.cli, "%s: %s", act->option, error.text);
    if (file.data)
        cli_text_free(act->store.cli, &file);
    return r < 0 ? CLI_USAGE : CLI_OK;
}

static void print_object(struct act *act, const char *event, const struct det_sent *sent)
{
    struct det_json_writer json;

    det_json_writer_init(&json, act->store.cli->allocator);
    instance_item_begin(&json, "sent", act->machine->name, act->id);
    det_json_text(&json, "event", event);
    det_json_text(&json, "outcome", det_outcome_name(sent->outcome));
    det_json_text(&json, "state", act->machine->states[sent->state].name);
    det_json_number(&json, "sequence", sent->sequence);
    det_json_number(&json, "visit", sent->visit);
    det_json_bool(&json, "duplicate", sent->is_duplicate);
    cli_json_end(act->store.cli, &json);
}

void act_report(struct act *act, const char *event, const struct det_sent *sent)
{
    const char *state = act->machine->states[sent->state].name;
    struct cli *cli = act->store.cli;

    if (cli->is_json)
        print_object(act, event, sent);
    else if (sent->is_duplicate)
        cli_print(
            cli, "%s: already done, as event %llu%s%s%s: %s\n", act->id,
            (unsigned long long)sent->sequence, event ? " (" : "", event ? event : "",
            event ? ")" : "", state);
    else if (sent->outcome == DET_OUTCOME_IGNORED)
        cli_print(cli, "%s: %s: ignored in %s\n", act->id, event, state);
}

/* Names of pending effects and timers, each once. */
struct pending {
    char effects[NAMES_TEXT], timers[NAMES_TEXT];
    const struct det_machine *machine;
};

/* True if the list, "charge, ship", has the whole name. */
static bool has_name(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = names; *at;) {
        size_t size = strcspn(at, ",");

        if (size == length && memcmp(at, name, size) == 0)
            return true;
        at += size;
        at += strspn(at, ", ");
    }
    return false;
}

static void add_name(char *names, const char *name)
{
    size_t used = strlen(names);

    if (!has_name(names, name))
        snprintf(names + used, NAMES_TEXT - used, "%s%s", used ? ", " : "", name);
}

static int add_effect(void *context, const struct det_pending_effect *row)
{
    struct pending *pending = context;

    if (row->state != DET_EFFECT_STATE_DEAD)
        add_name(pending->effects, row->name);
    return 0;
}

static int add_timer(void *context, const struct det_timer_record *row)
{
    struct pending *pending = context;

    add_name(pending->timers, pending->machine->events[row->event].name);
    return 0;
}

/* `what` is "Effect" or "The timer of"; `plural` the same for several names. */
static void report_waiting(struct cli *cli, const char *what, const char *plural, const char *names)
{
    bool is_one = !strchr(names, ',');

    if (names[0])
        cli_print_error(
            cli, "%s %s wait%s for a program that serves this store\n", is_one ? what : plural,
            names, is_one ? "s" : "");
}

void act_report_pending(struct act *act)
{
    struct pending pending = { .machine = act->machine };
    struct cli *cli = act->store.cli;

    if (act->client)
        return;
    if (det_runtime_effects(act->runtime, act->machine, act->id, add_effect, &pending, NULL) != 0 ||
        det_runtime_timers(act->runtime, act->machine, act->id, add_timer, &pending, NULL) != 0)
        return;
    report_waiting(cli, "Effect", "Effects", pending.effects);
    report_waiting(cli, "The timer of", "The timers of", pending.timers);
}
