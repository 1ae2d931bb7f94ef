/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* changes.c - timers, effects, deferred events and the event id of a commit: checked first, then
 * encoded, then applied. */
#include "base/assert.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* The column of ANSWER_FIND that says whether the row matches its checksum. */
#define ANSWER_COMPLETE 6

/* Returns 1 if a statement finds its row, 0 if not, or an error. `column` says that the row matches
 * its checksum. */
static int finds_row(struct sqlite_call *call, int column)
{
    int r;

    r = det_sqlite_step(call);
    if (r > 0 && det_sqlite_get_number(call, column) != 1)
        r = DET_ERR_CORRUPT;
    det_sqlite_end(call);
    return r;
}

static void call_effect(
    const struct sqlite_write *write, enum sqlite_statement statement,
    const struct det_store_effect *row, struct sqlite_call *call)
{
    det_sqlite_call(&write->store->writer, statement, call);
    det_sqlite_number(call, write->instance->key);
    det_sqlite_number(call, (int64_t)row->sequence);
    det_sqlite_number(call, row->index);
}

static void call_timer(
    const struct sqlite_write *write, enum sqlite_statement statement,
    const struct det_store_timer *row, struct sqlite_call *call)
{
    det_sqlite_call(&write->store->writer, statement, call);
    det_sqlite_number(call, write->instance->key);
    det_sqlite_text(call, det_row_timer_name(write->commit->machine, row->timer));
}

static void call_deferred(
    const struct sqlite_write *write, enum sqlite_statement statement,
    const struct det_store_deferred *row, struct sqlite_call *call)
{
    det_sqlite_call(&write->store->writer, statement, call);
    det_sqlite_number(call, write->instance->key);
    det_sqlite_number(call, (int64_t)row->sequence);
}

/* Checks. */

static int check_answer(const struct sqlite_write *write)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&write->store->writer, STATEMENT_ANSWER_FIND, &call);
    det_sqlite_number(&call, write->instance->key);
    det_sqlite_text(&call, write->commit->event_id);
    r = finds_row(&call, ANSWER_COMPLETE);
    return r > 0 ? DET_ERR_EXISTS : r;
}

/* The existing row of a timer. */
struct timer_found {
    bool is_there, is_complete;
    uint64_t visit;
    det_time due, next, dead_at;
};

static int find_timer(
    const struct sqlite_write *write, const struct det_store_timer *row, struct timer_found *ret)
{
    struct sqlite_call call;
    int r;

    call_timer(write, STATEMENT_TIMER_FIND, row, &call);
    r = det_sqlite_step(&call);
    *ret = (struct timer_found){ .is_there = r > 0 };
    if (r > 0) {
        ret->visit = (uint64_t)det_sqlite_get_number(&call, 0);
        ret->due = det_sqlite_get_number(&call, 1);
        ret->next = det_sqlite_get_number(&call, 2);
        ret->dead_at = det_sqlite_get_number(&call, 3);
        ret->is_complete = det_sqlite_get_number(&call, 4) == 1;
    }
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

/* Checks a timer that is taken or updated. */
static int validate_timer(
    const struct sqlite_write *write, const struct det_store_timer_change *change,
    const struct timer_found *found)
{
    if (found->is_there && !found->is_complete)
        return DET_ERR_CORRUPT;
    if (!found->is_there || found->visit != change->timer.visit || found->due != change->timer.due)
        return DET_ERR_NOT_FOUND;
    if (change->kind == DET_STORE_UPDATE)
        return 0;
    if (found->dead_at)
        return DET_ERR_NOT_FOUND;
    return found->next > write->now ? DET_ERR_EARLY : 0;
}

/* The latest earlier change of the same timer; NULL: none. */
static const struct det_store_timer_change *earlier_timer(
    const struct det_store_commit *commit, size_t index)
{
    for (size_t i = index; i-- > 0;) {
        if (commit->timers[i].timer.timer == commit->timers[index].timer.timer)
            return &commit->timers[i];
    }
    return NULL;
}

static int check_timer(const struct sqlite_write *write, size_t index, int64_t *owned)
{
    const struct det_store_timer_change *change = &write->commit->timers[index];
    const struct det_store_timer_change *earlier = earlier_timer(write->commit, index);
    struct timer_found found = { 0 };
    bool is_validated = change->kind == DET_STORE_TAKE || change->kind == DET_STORE_UPDATE;
    int r = 0;

    if (!write->commit->is_new && (!earlier || is_validated))
        r = find_timer(write, &change->timer, &found);
    if (r == 0 && is_validated)
        r = validate_timer(write, change, &found);
    if (earlier && earlier->kind != DET_STORE_UPDATE)
        found.is_there = earlier->kind == DET_STORE_SET;
    if (change->kind == DET_STORE_SET)
        *owned += !found.is_there;
    else if (change->kind != DET_STORE_UPDATE)
        *owned -= found.is_there;
    return r;
}

/* 1: the effect exists, dead or alive. */
static int find_effect(const struct sqlite_write *write, const struct det_store_effect *row)
{
    struct sqlite_call call;
    int r;

    call_effect(write, STATEMENT_OUTBOX_FIND, row, &call);
    r = finds_row(&call, 0);
    if (r == 0) {
        call_effect(write, STATEMENT_DEAD_FIND, row, &call);
        r = finds_row(&call, 0);
    }
    return r;
}

static bool was_set(const struct det_store_commit *commit, size_t index)
{
    const struct det_store_effect *row = &commit->effects[index].effect;

    for (size_t i = 0; i < index; i++) {
        if (commit->effects[i].kind == DET_STORE_SET &&
            commit->effects[i].effect.sequence == row->sequence &&
            commit->effects[i].effect.index == row->index)
            return true;
    }
    return false;
}

static int check_effect(const struct sqlite_write *write, size_t index, int64_t *owned)
{
    const struct det_store_effect_change *change = &write->commit->effects[index];
    int r = 0;

    if (change->kind == DET_STORE_SET) {
        if (det_row_may_be_dead(write->commit, &change->effect))
            r = find_effect(write, &change->effect);
        /* A damaged row is replaced. */
        if (r == DET_ERR_CORRUPT)
            r = 1;
        *owned += r == 0 && !was_set(write->commit, index);
        return r < 0 ? r : 0;
    }
    r = find_effect(write, &change->effect);
    if (r == 0)
        return DET_ERR_NOT_FOUND;
    *owned -= change->kind != DET_STORE_UPDATE;
    return r < 0 ? r : 0;
}

static int check_deferred(
    const struct sqlite_write *write, const struct det_store_deferred_change *change,
    int64_t *owned)
{
    bool is_set = change->kind == DET_STORE_SET;
    struct sqlite_call call;
    int r = 0;

    if (!write->commit->is_new) {
        call_deferred(write, STATEMENT_DEFERRED_FIND, &change->deferred, &call);
        r = finds_row(&call, 0);
    }
    if (is_set && r == DET_ERR_CORRUPT)
        r = 1;
    if (r < 0)
        return r;
    if (!is_set && r == 0)
        return DET_ERR_NOT_FOUND;
    *owned += is_set ? r == 0 : -1;
    return 0;
}

int det_sqlite_changes_check(const struct sqlite_write *write, int64_t *ret_owned)
{
    const struct det_store_commit *commit = write->commit;
    int r = 0;

    *ret_owned = commit->event_id ? SQLITE_OWNED_ANSWER : 0;
    if (commit->event_id && !commit->is_new)
        r = check_answer(write);
    for (size_t i = 0; r == 0 && i < commit->timer_count; i++)
        r = check_timer(write, i, ret_owned);
    for (size_t i = 0; r == 0 && i < commit->effect_count; i++)
        r = check_effect(write, i, ret_owned);
    for (size_t i = 0; r == 0 && i < commit->deferred_count; i++)
        r = check_deferred(write, &commit->deferred[i], ret_owned);
    return r;
}

int det_sqlite_own(struct sqlite_store *store, int64_t key, int64_t owned)
{
    struct sqlite_call call;

    sqlite_assert_writing(store);
    if (owned == 0)
        return 0;
    det_sqlite_call(&store->writer, STATEMENT_INSTANCE_OWNED, &call);
    det_sqlite_number(&call, key);
    det_sqlite_number(&call, owned);
    return det_sqlite_run(&call);
}

/* Encoding. */

static int encode_effect(const struct sqlite_write *write, const struct det_store_effect *row)
{
    struct sqlite_scratch *scratch = &write->store->scratch;
    const struct det_machine *machine = write->commit->machine;
    int r;

    r = det_sqlite_encode_data(scratch, machine, row->data);
    return r < 0 ? r : det_sqlite_encode_payload(scratch, machine, row->event);
}

int det_sqlite_changes_encode(const struct sqlite_write *write)
{
    struct sqlite_scratch *scratch = &write->store->scratch;
    const struct det_store_commit *commit = write->commit;
    int r = 0;

    for (size_t i = 0; r == 0 && i < commit->timer_count; i++) {
        if (commit->timers[i].kind == DET_STORE_SET)
            r = det_sqlite_encode_payload(scratch, commit->machine, commit->timers[i].timer.value);
    }
    for (size_t i = 0; r == 0 && i < commit->effect_count; i++) {
        if (commit->effects[i].kind == DET_STORE_SET)
            r = encode_effect(write, &commit->effects[i].effect);
    }
    for (size_t i = 0; r == 0 && i < commit->deferred_count; i++) {
        if (commit->deferred[i].kind == DET_STORE_SET)
            r = det_sqlite_encode_payload(
                scratch, commit->machine, commit->deferred[i].deferred.event);
    }
    return r;
}

/* Applying. */

static int apply_timer(
    const struct sqlite_write *write, const struct det_store_timer_change *change)
{
    const struct det_machine *machine = write->commit->machine;
    const struct det_store_timer *row = &change->timer;
    struct sqlite_call call;

    if (change->kind == DET_STORE_CLEAR || change->kind == DET_STORE_TAKE) {
        call_timer(write, STATEMENT_TIMER_CLEAR, row, &call);
        return det_sqlite_run(&call);
    }
    if (change->kind == DET_STORE_SET) {
        call_timer(write, STATEMENT_TIMER_SET, row, &call);
        det_sqlite_text(&call, machine->name);
        det_sqlite_number(&call, (int64_t)row->visit);
        det_sqlite_number(&call, row->due);
        det_sqlite_text(&call, det_row_event_name(machine, row->event));
        det_sqlite_bytes(&call, det_sqlite_next_value(&write->store->scratch));
    } else {
        call_timer(write, STATEMENT_TIMER_UPDATE, row, &call);
    }
    det_sqlite_number(&call, row->attempts);
    det_sqlite_number(&call, row->last_error);
    det_sqlite_number(&call, row->next ? row->next : row->due);
    det_sqlite_text(&call, row->reason);
    det_sqlite_number(&call, row->is_dead ? write->now : 0);
    return det_sqlite_run(&call);
}

static int run_on_effect(
    const struct sqlite_write *write, enum sqlite_statement statement,
    const struct det_store_effect *row)
{
    struct sqlite_call call;

    call_effect(write, statement, row, &call);
    return det_sqlite_run(&call);
}

/* A statement that stores attempts, and takes one more parameter if needed. */
static void call_attempts(
    const struct sqlite_write *write, enum sqlite_statement statement,
    const struct det_store_effect *row, struct sqlite_call *call)
{
    call_effect(write, statement, row, call);
    det_sqlite_number(call, row->attempts);
    det_sqlite_number(call, row->last_error);
    det_sqlite_number(call, row->next);
    det_sqlite_text(call, row->reason);
}

/* Checks the number of rows changed by the last statement. */
static int check_changed(const struct sqlite_write *write)
{
    return sqlite3_changes(write->store->writer.database);
}

static int bury_effects(const struct sqlite_write *write, const struct det_store_effect *row)
{
    struct sqlite_call call;
    int r;

    det_assert(row->is_dead);
    call_attempts(write, STATEMENT_DEAD_SET, row, &call);
    det_sqlite_number(&call, write->now);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    if (check_changed(write) == 0) {
        call_attempts(write, STATEMENT_DEAD_UPDATE, row, &call);
        return det_sqlite_run(&call);
    }
    r = run_on_effect(write, STATEMENT_OUTBOX_TAKE, row);
    if (r < 0)
        return r;
    /* Limits the number of dead effects: the oldest are deleted. */
    det_sqlite_call(&write->store->writer, STATEMENT_DEAD_BURY, &call);
    det_sqlite_number(&call, write->instance->key);
    det_sqlite_number(&call, DET_DEAD_MAX);
    r = det_sqlite_run(&call);
    return r < 0 ? r : det_sqlite_own(write->store, write->instance->key, -check_changed(write));
}

static int insert_effect(const struct sqlite_write *write, const struct det_store_effect *row)
{
    const struct det_machine *machine = write->commit->machine;
    struct sqlite_scratch *scratch = &write->store->scratch;
    struct sqlite_call call;

    call_effect(write, STATEMENT_OUTBOX_SET, row, &call);
    det_sqlite_text(&call, det_row_effect_name(machine, row->effect));
    det_sqlite_text(&call, machine->states[row->from].name);
    det_sqlite_text(&call, machine->states[row->to].name);
    det_sqlite_number(&call, (int64_t)row->visit);
    det_sqlite_number(&call, (int64_t)row->asked);
    det_sqlite_number(&call, row->at);
    det_sqlite_number(&call, row->attempts);
    det_sqlite_number(&call, row->last_error);
    det_sqlite_number(&call, row->next);
    det_sqlite_bytes(&call, det_sqlite_next_value(scratch));
    det_sqlite_text(&call, row->event ? machine->events[det_event_kind(row->event)].name : NULL);
    det_sqlite_bytes(&call, det_sqlite_next_value(scratch));
    det_sqlite_text(&call, row->reason);
    det_sqlite_bytes(&call, det_trace_context_bytes(row->trace));
    det_sqlite_text(&call, row->origin[0] ? row->origin : NULL);
    det_sqlite_text(&call, machine->name);
    return det_sqlite_run(&call);
}

/* An effect that is set dead is buried at once. */
static int set_effect(const struct sqlite_write *write, const struct det_store_effect *row)
{
    int r;

    r = insert_effect(write, row);
    if (r < 0)
        return r;
    if (row->is_dead)
        return bury_effects(write, row);
    return det_row_may_be_dead(write->commit, row) ? run_on_effect(write, STATEMENT_DEAD_TAKE, row)
                                                   : 0;
}

static int update_effect(const struct sqlite_write *write, const struct det_store_effect *row)
{
    struct sqlite_call call;
    int r;

    if (row->is_dead)
        return bury_effects(write, row);
    call_attempts(write, STATEMENT_OUTBOX_UPDATE, row, &call);
    r = det_sqlite_run(&call);
    if (r < 0 || check_changed(write))
        return r;
    call_attempts(write, STATEMENT_OUTBOX_REVIVE, row, &call);
    det_sqlite_text(&call, write->commit->machine->name);
    r = det_sqlite_run(&call);
    return r < 0 ? r : run_on_effect(write, STATEMENT_DEAD_TAKE, row);
}

static int apply_effect(
    const struct sqlite_write *write, const struct det_store_effect_change *change)
{
    int r;

    switch (change->kind) {
    case DET_STORE_SET:
        return set_effect(write, &change->effect);
    case DET_STORE_UPDATE:
        return update_effect(write, &change->effect);
    case DET_STORE_CLEAR:
    case DET_STORE_TAKE:
        break;
    }
    r = run_on_effect(write, STATEMENT_OUTBOX_TAKE, &change->effect);
    if (r < 0 || check_changed(write))
        return r;
    return run_on_effect(write, STATEMENT_DEAD_TAKE, &change->effect);
}

static int apply_deferred(
    const struct sqlite_write *write, const struct det_store_deferred_change *change)
{
    const struct det_machine *machine = write->commit->machine;
    struct sqlite_call call;

    if (change->kind != DET_STORE_SET) {
        call_deferred(write, STATEMENT_DEFERRED_TAKE, &change->deferred, &call);
        return det_sqlite_run(&call);
    }
    call_deferred(write, STATEMENT_DEFERRED_SET, &change->deferred, &call);
    det_sqlite_text(&call, machine->events[det_event_kind(change->deferred.event)].name);
    det_sqlite_bytes(&call, det_sqlite_next_value(&write->store->scratch));
    return det_sqlite_run(&call);
}

static int apply_answer(const struct sqlite_write *write)
{
    const struct det_store_commit *commit = write->commit;
    struct sqlite_call call;

    det_sqlite_call(&write->store->writer, STATEMENT_ANSWER_SET, &call);
    det_sqlite_number(&call, write->instance->key);
    det_sqlite_text(&call, commit->event_id);
    det_sqlite_text(&call, det_outcome_name(commit->answer.outcome));
    det_sqlite_text(&call, commit->machine->states[commit->answer.state].name);
    det_sqlite_number(&call, (int64_t)commit->answer.sequence);
    det_sqlite_number(&call, (int64_t)commit->answer.visit);
    det_sqlite_number(&call, write->now);
    det_sqlite_text(&call, det_row_answer_event(commit));
    det_sqlite_number(&call, (int64_t)commit->answer.request);
    return det_sqlite_run(&call);
}

int det_sqlite_changes_apply(const struct sqlite_write *write)
{
    const struct det_store_commit *commit = write->commit;
    int r = 0;

    sqlite_assert_writing(write->store);
    for (size_t i = 0; r == 0 && i < commit->timer_count; i++)
        r = apply_timer(write, &commit->timers[i]);
    for (size_t i = 0; r == 0 && i < commit->effect_count; i++)
        r = apply_effect(write, &commit->effects[i]);
    for (size_t i = 0; r == 0 && i < commit->deferred_count; i++)
        r = apply_deferred(write, &commit->deferred[i]);
    if (r == 0 && commit->event_id)
        r = apply_answer(write);
    return r;
}
