/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run.c - executes the steps of a plan on a store. */
#include "crash/run.h"

#include <stdio.h>
#include <string.h>

#include <detent/tool/builder.h>

#include "crash/value.h"

/* A commit and everything it points to. */
struct commit {
    struct det_store_commit commit;
    struct det_store_head head;
    struct crash_data data, effect_data[2];
    struct det_store_event events[3];
    struct det_store_timer_change timers[3];
    struct det_store_effect_change effects[2];
    struct det_store_deferred_change deferred[2];
    struct crash_value event_values[3], timer_values[3], effect_values[2], deferred_values[2];
    uint16_t history[CRASH_HISTORY];
    char id[32], event_id[32], causes[3][32], reason[32];
};

void crash_run_init(struct crash_run *run, const char *url, const struct det_store_options *options)
{
    memset(run, 0, sizeof *run);
    run->url = url;
    run->options = *options;
    for (unsigned i = 0; i < CRASH_VERSIONS; i++)
        run->machines[i] = crash_machine_open(i + 1);
    run->version = 1;
}

void crash_run_deinit(struct crash_run *run)
{
    crash_run_close(run);
    for (unsigned i = 0; i < CRASH_VERSIONS; i++)
        det_machine_close(run->machines[i]);
    memset(run, 0, sizeof *run);
}

static const struct det_machine *machine_of(const struct crash_run *run)
{
    return run->machines[run->version - 1];
}

/* Also migrates stored data to that version, if requested. */
static int open_store(struct crash_run *run, unsigned version, bool migrates)
{
    struct det_error error = { 0 };
    const struct det_rename *renames;
    uint64_t changed;
    size_t count;
    int r;

    run->version = version;
    renames = crash_renames(&count);
    r = det_store_open_with(run->url, &run->options, &run->store, &error);
    if (r == 0 && migrates)
        r = run->store->ops->migrate(run->store, machine_of(run), renames, count, &changed, &error);
    if (r == 0)
        r = run->store->ops->serve(run->store, machine_of(run), &error);
    if (r < 0)
        snprintf(run->text, sizeof run->text, "%s", error.text);
    return r;
}

int crash_run_open(struct crash_run *run, unsigned version)
{
    return open_store(run, version, false);
}

int crash_run_recover(
    struct crash_run *run, unsigned version, unsigned other, struct crash_model *ret)
{
    int r;

    r = crash_run_open(run, version);
    if (r == 0)
        r = crash_run_read(run, ret);
    if (r != DET_ERR_VERSION || version == other)
        return r;
    crash_run_close(run);
    r = crash_run_open(run, other);
    return r == 0 ? crash_run_read(run, ret) : r;
}

static void release(struct crash_run *run, unsigned number)
{
    if (run->instances[number])
        run->store->ops->release(run->store, run->instances[number]);
    run->instances[number] = NULL;
}

void crash_run_close(struct crash_run *run)
{
    if (!run->store)
        return;
    for (unsigned i = 0; i < CRASH_INSTANCES; i++)
        release(run, i);
    det_store_close(run->store);
    run->store = NULL;
}

/* The handle of an instance, which is requested after each opening. */
static int hold(struct crash_run *run, unsigned number)
{
    static const struct det_store_rows none = { 0 };
    struct crash_data data;
    struct det_store_loaded loaded = { .data = &data };
    char id[32];
    int r;

    if (run->instances[number])
        return 0;
    crash_text_make(id, 'i', number);
    r = run->store->ops->load(run->store, machine_of(run), id, &none, &loaded);
    if (r == 0)
        run->instances[number] = loaded.instance;
    return r;
}

static void fill_head(struct commit *commit, const struct crash_change *change)
{
    const struct crash_head *head = &change->head;

    commit->head = (struct det_store_head){ .sequence = (uint64_t)head->sequence,
                                            .visit = (uint64_t)head->visit,
                                            .transition_count = (uint64_t)head->transitions,
                                            .started_at = head->started_at,
                                            .last_transition_at = head->moved_at,
                                            .state = (uint16_t)head->state,
                                            .is_stopped = head->stopped };
    commit->commit.head = &commit->head;
    crash_data_make(&commit->data, head->data);
    if (change->has_data)
        commit->commit.data = &commit->data;
    if (change->has_reason) {
        crash_text_make(commit->reason, 'r', head->reason);
        commit->commit.reason = commit->reason;
    }
}

static void fill_events(struct commit *commit, const struct crash_change *change)
{
    for (size_t i = 0; i < change->event_count; i++) {
        const struct crash_event *row = &change->events[i];

        crash_value_make(&commit->event_values[i], row->event, row->value);
        commit->events[i] = (struct det_store_event){
            .sequence = (uint64_t)row->sequence,
            .visit = (uint64_t)row->visit,
            .from = (uint16_t)row->from,
            .to = (uint16_t)row->to,
            .event = (uint16_t)row->event,
            .outcome = (uint16_t)row->outcome,
            .choice = (uint16_t)row->choice,
            .is_timeout = row->timeout,
            .at = row->at,
            .value = row->event < 0 ? NULL : &commit->event_values[i],
        };
        if (row->event_id)
            commit->events[i].event_id = commit->event_id;
        crash_text_make(commit->causes[i], 'c', row->cause);
        if (row->cause)
            commit->events[i].cause = commit->causes[i];
    }
    commit->commit.events = commit->events;
    commit->commit.event_count = change->event_count;
}

static void fill_timers(struct commit *commit, const struct crash_change *change)
{
    for (size_t i = 0; i < change->timer_count; i++) {
        const struct crash_timer_change *from = &change->timers[i];

        crash_value_make(&commit->timer_values[i], from->row.event, from->row.value);
        commit->timers[i] = (struct det_store_timer_change){
            .kind = (enum det_store_change_kind)from->kind,
            .timer = { .timer = from->timer ? (uint16_t)(from->timer - 1) : DET_STATE_TIMER,
                       .event = (uint16_t)from->row.event,
                       .visit = (uint64_t)from->row.visit,
                       .due = from->row.due,
                       .value = from->row.value ? &commit->timer_values[i] : NULL },
        };
    }
    commit->commit.timers = commit->timers;
    commit->commit.timer_count = change->timer_count;
}

static void fill_effects(struct commit *commit, const struct crash_change *change)
{
    for (size_t i = 0; i < change->effect_count; i++) {
        const struct crash_effect *row = &change->effects[i].row;

        crash_value_make(&commit->effect_values[i], row->event, row->value);
        crash_data_make(&commit->effect_data[i], row->data);
        commit->effects[i] = (struct det_store_effect_change){
            .kind = (enum det_store_change_kind)change->effects[i].kind,
            .effect = { .sequence = (uint64_t)row->sequence,
                        .index = (uint16_t)row->index,
                        .effect = (uint16_t)row->effect,
                        .from = (uint16_t)row->from,
                        .to = (uint16_t)row->to,
                        .visit = (uint64_t)row->visit,
                        .asked = (uint64_t)row->asked,
                        .at = row->at,
                        .attempts = (uint32_t)row->attempts,
                        .last_error = (int)row->last_error,
                        .next = row->next,
                        .is_dead = row->dead,
                        .data = &commit->effect_data[i],
                        .event = &commit->effect_values[i] },
        };
    }
    commit->commit.effects = commit->effects;
    commit->commit.effect_count = change->effect_count;
}

static void fill_deferred(struct commit *commit, const struct crash_change *change)
{
    for (size_t i = 0; i < change->deferred_count; i++) {
        const struct crash_deferred *row = &change->deferred[i].row;

        crash_value_make(&commit->deferred_values[i], row->event, row->value);
        commit->deferred[i] = (struct det_store_deferred_change){
            .kind = (enum det_store_change_kind)change->deferred[i].kind,
            .deferred = { (uint64_t)row->sequence, &commit->deferred_values[i] },
        };
    }
    commit->commit.deferred = commit->deferred;
    commit->commit.deferred_count = change->deferred_count;
}

static void fill_rest(struct commit *commit, const struct crash_change *change)
{
    struct det_store_commit *to = &commit->commit;

    to->id = commit->id;
    to->is_new = change->is_new;
    to->expected = (uint64_t)change->expected;
    to->fence = (uint64_t)change->fence;
    to->is_snapshot = change->is_snapshot;
    for (size_t i = 0; i < CRASH_HISTORY && change->history[i] >= 0; i++)
        commit->history[to->history_count++] = (uint16_t)change->history[i];
    to->history = commit->history;
    if (change->event_id)
        to->event_id = commit->event_id;
    to->answer = (struct det_store_answer){ .outcome = (uint16_t)change->answer.outcome,
                                            .state = (uint16_t)change->answer.state,
                                            .sequence = (uint64_t)change->answer.sequence,
                                            .visit = (uint64_t)change->answer.visit };
}

/* An opening that the plan does not have, after a crash, has freed all locks. */
static bool is_locked(struct crash_run *run, const char *id)
{
    const struct det_store_lease_change inspect = { .verb = DET_LEASE_READ,
                                                    .name = id,
                                                    .owner = "" };
    struct det_store_lease lease = { 0 };

    return run->store->ops->lock(run->store, machine_of(run), &inspect, &lease) == 0 &&
           lease.owner[0];
}

static int fill(struct crash_run *run, struct commit *commit, const struct crash_change *change)
{
    int r = 0;

    memset(commit, 0, sizeof *commit);
    crash_text_make(commit->id, 'i', change->instance);
    crash_text_make(commit->event_id, 'e', change->event_id);
    if (!change->is_new)
        r = hold(run, change->instance);
    commit->commit.machine = machine_of(run);
    commit->commit.instance = run->instances[change->instance];
    fill_head(commit, change);
    fill_events(commit, change);
    fill_timers(commit, change);
    fill_effects(commit, change);
    fill_deferred(commit, change);
    fill_rest(commit, change);
    if (change->fence && change->result != DET_ERR_LOCK_LOST && !is_locked(run, commit->id))
        commit->commit.fence = 0;
    return r;
}

/* A commit that must be refused and was not is as wrong as the reverse. */
static int validate(struct crash_run *run, const struct crash_change *change, int result)
{
    if (result == change->result)
        return 0;
    snprintf(
        run->text, sizeof run->text, "a commit on instance %u gave %d instead of %d",
        change->instance, result, change->result);
    return result < 0 ? result : DET_ERR_INVALID;
}

/* A deliberate bug: commits first the events, and then what they imply. */
static int run_split(struct crash_run *run, const struct crash_step *step)
{
    struct commit commit;
    struct det_store_commit *first = &commit.commit, second;
    int r;

    r = fill(run, &commit, &step->changes[0]);
    if (r < 0)
        return r;
    second = *first;
    first->timer_count = first->effect_count = 0;
    r = run->store->ops->commit(run->store, &first, 1);
    if (r == 0)
        r = first->result;
    second.event_count = second.deferred_count = 0;
    second.event_id = NULL;
    second.is_snapshot = false;
    first = &second;
    if (r == 0)
        r = run->store->ops->commit(run->store, &first, 1);
    return r == 0 ? second.result : r;
}

static int run_commit(struct crash_run *run, const struct crash_step *step)
{
    struct commit commits[3];
    struct det_store_commit *pointers[3];
    int r = 0;

    if (run->is_split && step->change_count == 1 && step->changes[0].result == 0 &&
        !step->changes[0].is_new)
        return run_split(run, step);
    for (size_t i = 0; i < step->change_count && r == 0; i++) {
        r = fill(run, &commits[i], &step->changes[i]);
        pointers[i] = &commits[i].commit;
    }
    if (r == 0)
        r = run->store->ops->commit(run->store, pointers, step->change_count);
    for (size_t i = 0; i < step->change_count && r == 0; i++) {
        r = validate(run, &step->changes[i], pointers[i]->result);
        if (r == 0 && step->changes[i].is_new)
            run->instances[step->changes[i].instance] = pointers[i]->instance;
    }
    return r;
}

static int run_prune(struct crash_run *run, const struct crash_step *step)
{
    uint64_t gone;
    int r;

    r = hold(run, step->subject);
    if (r < 0)
        return r;
    return run->store->ops->prune(
        run->store, run->instances[step->subject], (uint64_t)step->sequence,
        step->with_answers ? DET_NEVER : 0, &gone);
}

static int run_lock(struct crash_run *run, const struct crash_step *step)
{
    bool is_lease = step->kind == CRASH_STEP_LEASE || step->kind == CRASH_STEP_LEASE_END;
    struct det_store_lease_change change = { .owner = "holder", .span = 240 * DET_HOUR };
    struct det_store_lease lease;
    char name[32];
    int r;

    crash_text_make(name, is_lease ? 'l' : 'i', step->subject);
    change.name = name;
    change.verb = DET_LEASE_READ;
    r = is_lease ? run->store->ops->lease(run->store, &change, &lease)
                 : run->store->ops->lock(run->store, machine_of(run), &change, &lease);
    if (r < 0)
        return r;
    /* An opening that the plan does not have, after a crash, has freed it. */
    if (!lease.owner[0] && step->kind != CRASH_STEP_LOCK && step->kind != CRASH_STEP_LEASE)
        return 0;
    change.token = lease.token;
    change.verb = step->kind == CRASH_STEP_LOCK || step->kind == CRASH_STEP_LEASE
                      ? DET_LEASE_ACQUIRE
                  : step->kind == CRASH_STEP_RENEW ? DET_LEASE_RENEW
                                                   : DET_LEASE_RELEASE;
    return is_lease ? run->store->ops->lease(run->store, &change, &lease)
                    : run->store->ops->lock(run->store, machine_of(run), &change, &lease);
}

int crash_run_step(struct crash_run *run, const struct crash_step *step)
{
    switch (step->kind) {
    case CRASH_STEP_COMMIT:
        return run_commit(run, step);
    case CRASH_STEP_PRUNE:
        return run_prune(run, step);
    case CRASH_STEP_LOCK:
    case CRASH_STEP_RENEW:
    case CRASH_STEP_UNLOCK:
    case CRASH_STEP_LEASE:
    case CRASH_STEP_LEASE_END:
        return run_lock(run, step);
    case CRASH_STEP_REOPEN:
    case CRASH_STEP_MIGRATE:
        crash_run_close(run);
        return open_store(run, step->version, step->kind == CRASH_STEP_MIGRATE);
    case CRASH_STEP_COMPACT:
        return run->store->ops->compact ? run->store->ops->compact(run->store, NULL) : 0;
    }
    return DET_ERR_INVALID;
}
