/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live_check.c - checks that a store keeps the promises of a runtime, as in live.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/driver/store.h>

#include "crash/live.h"
#include "store/effect_key.h"

#define FSM_SPEC "crash/parcel.fsm"
#include <detent/fsm/declare.h>

#define EVENTS_MAX  512
#define EFFECTS_MAX 64

/* An effect of an instance. */
struct key {
    uint64_t sequence, index;
};

/* One instance, as it was found. */
struct found {
    struct live *live;
    const struct live_promise *promise;
    unsigned number;
    struct det_store_loaded loaded;
    struct parcel_data data;
    uint64_t sequence; /* sequence of the last event so far; 0: none yet */
    unsigned state;    /* after it */
    bool is_first;
    uint64_t first;           /* the first one kept */
    uint32_t ids[EVENTS_MAX]; /* of sends */
    struct key asked[EVENTS_MAX], ended[EVENTS_MAX], open[EFFECTS_MAX];
    size_t id_count, asked_count, ended_count, open_count, alive_count;
    unsigned state_timers, reminders;
    bool reminded; /* in this visit */
};

static bool wrong(struct found *found, const char *what, uint64_t number)
{
    snprintf(
        found->live->text, sizeof found->live->text, "p-%u: %s (%llu)", found->number, what,
        (unsigned long long)number);
    return false;
}

/* For visitors: an error ends the walk. */
static int refuse(struct found *found, const char *what, uint64_t number)
{
    (void)wrong(found, what, number);
    return DET_ERR_CORRUPT;
}

static bool has_key(const struct key *keys, size_t count, struct key key)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i].sequence == key.sequence && keys[i].index == key.index)
            return true;
    return false;
}

static int look_timer(void *context, const struct det_store_timer *row)
{
    struct found *found = context;

    /* A due deferred event is counted as deferred. */
    if (row->timer == DET_DEFERRED_TIMER)
        return 0;
    if (row->timer != DET_STATE_TIMER) {
        found->reminders++;
        return 0;
    }
    found->state_timers++;
    return 0;
}

static int look_effect(void *context, const struct det_store_effect *row)
{
    struct found *found = context;
    struct key key = { row->sequence, row->index & ~DET_KEY_HAS_STORE };

    if (has_key(found->open, found->open_count, key))
        return refuse(found, "duplicate effect", row->sequence);
    if (found->open_count == EFFECTS_MAX)
        return refuse(found, "too many effects", row->sequence);
    found->open[found->open_count++] = key;
    found->alive_count += !row->is_dead;
    return 0;
}

static int look_deferred(void *context, const struct det_store_deferred *row)
{
    (void)context, (void)row;
    return 0;
}

/* The id of an event must be that of a started send to this instance, without a duplicate. */
static int look_id(struct found *found, const struct det_store_event *row)
{
    uint32_t number;

    if (!row->event_id)
        return 0;
    number = (uint32_t)strtoul(row->event_id + 2, NULL, 10);
    if (number >= found->promise->begun)
        return refuse(found, "an id that was not sent", number);
    if (found->live->sends[number].instance != found->number)
        return refuse(found, "an id of another instance", number);
    for (size_t i = 0; i < found->id_count; i++)
        if (found->ids[i] == number)
            return refuse(found, "duplicate id", number);
    found->ids[found->id_count++] = number;
    return 0;
}

/* "STORE/parcel/p-0/SEQUENCE/INDEX" */
static int look_cause(struct found *found, const struct det_store_event *row)
{
    struct key key = { 0 };
    const char *text = row->cause;

    if (!text)
        return 0;
    for (unsigned i = 0; i < 3 && text; i++)
        text = strchr(text, '/') ? strchr(text, '/') + 1 : NULL;
    if (text)
        key.sequence = strtoull(text, NULL, 10);
    if (text && strchr(text, '/'))
        key.index = strtoull(strchr(text, '/') + 1, NULL, 10);
    if (has_key(found->ended, found->ended_count, key))
        return refuse(found, "an effect has produced twice", key.sequence);
    found->ended[found->ended_count++] = key;
    return 0;
}

static int look_asked(struct found *found, const struct det_store_event *row)
{
    const struct det_transition *transition =
        det_machine_step(parcel_definition(), row->from, row->event);
    bool is_taken = row->outcome != DET_OUTCOME_DEFERRED && row->outcome != DET_OUTCOME_DEAD_LETTER;

    if (is_taken != (transition->outcome != DET_OUTCOME_UNHANDLED) ||
        (is_taken && (transition->to != row->to || transition->outcome != row->outcome)))
        return refuse(found, "an event contradicts the table", row->sequence);
    if (is_taken && transition->more)
        for (uint64_t i = 0; i < transition->more->effect_count; i++)
            found->asked[found->asked_count++] = (struct key){ row->sequence, i };
    return 0;
}

static int look_event(void *context, const struct det_store_event *row)
{
    struct found *found = context;
    int r;

    if (found->is_first && row->sequence > 1) {
        found->sequence = row->sequence - 1;
        found->state = row->from;
    }
    if (found->is_first)
        found->first = row->sequence;
    found->is_first = false;
    if (row->sequence != found->sequence + 1)
        return refuse(found, "a sequence is missing or doubled", row->sequence);
    if (row->from != found->state)
        return refuse(found, "an event does not begin in the state of the last one", row->sequence);
    if (found->id_count == EVENTS_MAX || found->asked_count + 2 > EVENTS_MAX)
        return refuse(found, "too many events", row->sequence);
    found->sequence = row->sequence;
    found->state = row->to;
    if (row->outcome == DET_OUTCOME_GOTO)
        found->reminded = false;
    if (row->event == PARCEL_REMIND)
        found->reminded = true;
    r = look_id(found, row);
    if (r == 0)
        r = look_cause(found, row);
    return r == 0 ? look_asked(found, row) : r;
}

static bool check_timers(struct found *found)
{
    const struct det_machine *machine = parcel_definition();
    unsigned state = found->loaded.head.state;
    bool is_timed = machine->states[state].timeout.after > 0;

    if (found->state_timers != is_timed)
        return wrong(found, "the timer of its state", found->state_timers);
    if (found->reminders != (state == PARCEL_PAID && !found->reminded))
        return wrong(found, "the reminder", found->reminders);
    return true;
}

static bool check_effects(struct found *found, bool is_settled)
{
    for (size_t i = 0; i < found->asked_count; i++) {
        struct key key = found->asked[i];
        bool is_open = has_key(found->open, found->open_count, key);
        bool is_ended = has_key(found->ended, found->ended_count, key);

        if (!is_open && !is_ended)
            return wrong(found, "an effect is lost", key.sequence);
        if (is_open && is_ended)
            return wrong(found, "an effect has ended and is still there", key.sequence);
    }
    if (is_settled && found->alive_count)
        return wrong(found, "an effect never ends", found->alive_count);
    return true;
}

/* Every acknowledged send must be at its sequence, as far as events are kept. */
static bool check_answers(struct found *found)
{
    for (uint32_t i = 0; i < found->promise->answered; i++) {
        uint32_t number = found->live->answered[i];
        const struct live_send *send = &found->live->sends[number];
        bool is_there = false;

        if (send->instance != found->number || send->sequence < found->first)
            continue;
        for (size_t j = 0; j < found->id_count; j++)
            is_there |= found->ids[j] == number;
        if (!is_there)
            return wrong(found, "an acknowledged event is lost", number);
    }
    return true;
}

static bool check_head(struct found *found, bool is_settled)
{
    uint64_t sequence = found->loaded.head.sequence;
    uint64_t reported = (uint64_t)(found->promise->reported[found->number] + 1); /* plus one */

    if (sequence + 1 < reported)
        return wrong(found, "a reported commit is lost", sequence);
    if (!is_settled && sequence > reported)
        return wrong(found, "a commit that was not begun is there", sequence);
    if (found->is_first) /* none is kept */
        return true;
    if (sequence != found->sequence || found->loaded.head.state != found->state)
        return wrong(found, "the head is not in the state of the last event", sequence);
    return true;
}

static bool look_instance(struct found *found, bool is_settled)
{
    struct det_store *store = found->live->store;
    struct det_store_rows rows = { found, look_timer, look_effect, look_deferred };
    char id[32];
    int r;

    found->loaded.data = &found->data;
    found->is_first = true;
    live_id(id, 'p', found->number);
    r = store->ops->load(store, parcel_definition(), id, &rows, &found->loaded);
    if (r == DET_ERR_NOT_FOUND)
        return found->promise->reported[found->number] < 0 || wrong(found, "it is lost", 0);
    if (r < 0)
        return wrong(found, "it cannot be read", (uint64_t)-r);
    r = store->ops->events(store, found->loaded.instance, 0, look_event, found);
    store->ops->release(store, found->loaded.instance);
    if (r < 0)
        return found->live->text[0] ? false : wrong(found, "its events cannot be read", 0);
    return check_head(found, is_settled) && check_timers(found) &&
           check_effects(found, is_settled) && check_answers(found);
}

static int look_finding(void *context, const struct det_store_finding *row)
{
    struct live *live = context;

    snprintf(
        live->text, sizeof live->text, "%s, event %llu: %s", row->id ? row->id : "the store",
        (unsigned long long)row->sequence, row->text);
    return DET_ERR_CORRUPT;
}

bool live_check(struct live *live, const struct live_promise *promise, bool is_settled)
{
    struct det_store *store = live->store;
    struct det_error error = { 0 };
    struct found *found;
    bool is_well = true;

    if (store->ops->serve(store, parcel_definition(), &error) < 0) {
        snprintf(live->text, sizeof live->text, "%s", error.text);
        return false;
    }
    for (unsigned i = 0; i < LIVE_INSTANCES && is_well; i++) {
        found = calloc(1, sizeof *found);
        if (!found)
            abort();
        found->live = live;
        found->promise = promise;
        found->number = i;
        is_well = look_instance(found, is_settled);
        free(found);
    }
    return is_well && store->ops->check(store, look_finding, NULL, live) == 0;
}
