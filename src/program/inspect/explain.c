/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* explain.c - explains why an instance is in its state and what will move it. */
#include "inspect/explain.h"

#include <string.h>

#include "base/assert.h"
#include "inspect/print_tasks.h"
#include "store/row.h"

#define EVENTS_TEXT 2000

static bool is_taken(const struct instance *instance, unsigned event)
{
    const struct det_machine *machine = instance->machine;

    det_assert(event < machine->event_count);
    return !instance->loaded.head.is_stopped &&
           det_machine_step(machine, instance->loaded.head.state, event)->outcome !=
               DET_OUTCOME_UNHANDLED;
}

/* Rejected in this state, but kept for a state that accepts it. */
static bool is_deferrable(const struct instance *instance, unsigned event)
{
    return !instance->loaded.head.is_stopped && !instance_is_final(instance) &&
           !is_taken(instance, event) &&
           instance->machine->events[event].unhandled == DET_UNHANDLED_DEFER;
}

typedef bool is_wanted_fn(const struct instance *instance, unsigned event);

/* Lists the events from outside, or the internal ones. */
static const char *list_events(
    const struct instance *instance, is_wanted_fn *is_wanted, bool is_internal, char *target)
{
    const struct det_machine *machine = instance->machine;
    size_t used = 0;

    *target = '\0';
    for (unsigned i = 0; i < machine->event_count && used < EVENTS_TEXT; i++) {
        if (is_wanted(instance, i) && machine->events[i].is_internal == is_internal)
            used += (size_t)snprintf(
                target + used, EVENTS_TEXT - used, "%s%s", used ? ", " : "",
                machine->events[i].name);
    }
    return target;
}

static void print_takes(struct cli *cli, const struct instance *instance)
{
    char text[EVENTS_TEXT];

    if (*list_events(instance, is_taken, false, text))
        facts_print(cli, "takes", "%s", text);
    if (*list_events(instance, is_deferrable, false, text))
        facts_print(cli, "defers", "%s: may be sent, and waits for a state that accepts it", text);
    if (*list_events(instance, is_taken, true, text))
        facts_print(cli, "awaits", "%s, from an effect or a timer", text);
}

/* The last stored event. */
struct arrival {
    struct cli *cli;
    const struct instance *instance;
};

static int report_arrival(void *context, const struct det_store_event *row)
{
    struct arrival *arrival = context;
    const struct det_machine *machine = arrival->instance->machine;
    bool is_move = row->outcome == DET_OUTCOME_GOTO;
    const char *event =
        row->event == UINT16_MAX ? "a manual stop" : machine->events[row->event].name;
    const char *sender = instance_sender(row);
    char when[INSTANCE_WHEN_TEXT];

    facts_print(
        arrival->cli, "last", "%s: %s%s%s%s%s, %s", event,
        is_move ? machine->states[row->from].name : det_outcome_name(row->outcome),
        is_move ? " -> " : "", is_move ? machine->states[row->to].name : "", *sender ? ", by " : "",
        sender, instance_when(row->at, arrival->instance->now, when));
    return 0;
}

static int print_arrival(struct cli *cli, const struct instance *instance)
{
    const struct cli_store *store = instance->store;
    uint64_t sequence = instance->loaded.head.sequence;
    struct arrival arrival = { .cli = cli, .instance = instance };

    if (sequence == 0)
        return 0;
    return store->ops->events(
        store->store, instance->loaded.instance, sequence - 1, report_arrival, &arrival);
}

int explain_lock_of(
    struct cli_store *store, const struct det_machine *machine, const char *id,
    struct det_store_lease *ret)
{
    const struct det_store_lease_change change = { .verb = DET_LEASE_READ,
                                                   .name = id,
                                                   .owner = "" };
    int r = store->ops->lock(store->store, machine, &change, ret);

    return r == DET_ERR_LOCKED ? 0 : r;
}

int explain_lock(const struct instance *instance, struct det_store_lease *ret)
{
    return explain_lock_of(instance->store, instance->machine, instance->id, ret);
}

static void print_lock(struct cli *cli, const struct instance *instance)
{
    struct det_store_lease lease = { .token = 0 };
    char when[INSTANCE_WHEN_TEXT];

    if (explain_lock(instance, &lease) == 0 && lease.owner[0])
        facts_print(
            cli, "lock", "held by %s, lapses %s unless renewed", lease.owner,
            instance_when(lease.expires_at, instance->now, when));
}

/* Returns true if a program has something to do that is due. */
static bool has_work(const struct instance *instance)
{
    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        if (!t->row.is_dead && t->row.next <= instance->now)
            return true;
    }
    return instance_effect_count(instance, false) > 0;
}

/* Returns the machine if detent.yaml lists it without serving it. */
static const struct config_machine *find_unserved(const struct instance *instance)
{
    const struct config *config = &instance->store->project.config;

    for (size_t i = 0; config->lists_machines && i < config->machine_count; i++) {
        const struct config_machine *machine = &config->machines[i];

        if (!machine->is_served && strcmp(machine->name, instance->machine->name) == 0)
            return machine;
    }
    return NULL;
}

/* Prints why due work is not done. */
static void print_unserved(struct cli *cli, const struct instance *instance)
{
    const struct config_machine *machine = find_unserved(instance);
    bool is_alone = cli_store_is_unserved(instance->store);
    char text[CONFIG_UNSERVED_TEXT];

    if (is_alone)
        facts_print(cli, "so", "no process serves this store: start 'detent up', or your program");
    if (machine && (is_alone || instance->store->is_served))
        facts_print(cli, "so", "%s", config_unserved_text(machine, text));
}

/* Prints what waiting alone would not reveal. */
static void print_verdict(struct cli *cli, const struct instance *instance)
{
    bool is_over = instance->loaded.head.is_stopped || instance_is_final(instance);
    bool is_moving =
        instance_timer_count(instance, false) || instance_effect_count(instance, false);

    if (has_work(instance))
        print_unserved(cli, instance);
    if (is_over || is_moving)
        return;
    if (instance_effect_count(instance, true))
        facts_print(
            cli, "so",
            "nothing is pending: an effect is a dead letter; retry it, or send an "
            "event");
    else if (instance_timer_count(instance, true))
        facts_print(
            cli, "so", "nothing is pending: a timer is a dead letter; retry it, or send an event");
    else
        facts_print(cli, "so", "nothing is pending: it waits for an event to be sent");
}

int explain_print(struct cli *cli, const struct instance *instance)
{
    int r;

    facts_head(cli, instance);
    r = print_arrival(cli, instance);
    if (r < 0)
        return cli_report_store_error(instance->store, r, NULL);
    print_takes(cli, instance);
    facts_timers(cli, instance);
    facts_effects(cli, instance);
    facts_deferred(cli, instance);
    print_lock(cli, instance);
    print_verdict(cli, instance);
    return CLI_OK;
}

void explain_lock_line(struct det_json_writer *json, const struct det_store_lease *lease)
{
    bool is_held = lease->owner[0];

    det_json_text(json, "owner", is_held ? lease->owner : NULL);
    det_json_number(json, "fence", lease->token);
    if (is_held)
        det_json_time(json, "until", lease->expires_at);
    else
        det_json_text(json, "until", NULL);
}

static void add_events(
    struct det_json_writer *json, const char *key, const struct instance *instance,
    is_wanted_fn *is_wanted)
{
    const struct det_machine *machine = instance->machine;

    det_json_open(json, key, '[');
    for (unsigned i = 0; i < machine->event_count; i++) {
        if (!is_wanted(instance, i))
            continue;
        det_json_open(json, NULL, '{');
        det_json_text(json, "event", machine->events[i].name);
        det_json_bool(json, "internal", machine->events[i].is_internal);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

void explain_line(struct det_json_writer *json, const struct instance *instance)
{
    struct det_store_lease lease = { .token = 0 };

    add_events(json, "takes", instance, is_taken);
    add_events(json, "defers", instance, is_deferrable);
    if (explain_lock(instance, &lease) < 0 || !lease.owner[0]) {
        det_json_text(json, "lock", NULL);
        return;
    }
    det_json_open(json, "lock", '{');
    explain_lock_line(json, &lease);
    det_json_close(json, '}');
}
