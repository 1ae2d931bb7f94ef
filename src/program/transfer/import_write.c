/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_write.c - writes a group of instances, round by round: in each, the next commit of each
 * instance, all in one call. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "transfer/import_internal.h"

/* The commits of one round. */
struct round {
    struct det_store_commit commits[IMPORT_GROUP_MAX];
    struct det_store_commit *all[IMPORT_GROUP_MAX];
    struct incoming *whose[IMPORT_GROUP_MAX];
    size_t count;
};

/* The last commit of an instance restores everything. */
static void complete_commit(struct incoming *incoming, struct det_store_commit *commit)
{
    incoming->at = incoming->head;
    commit->reason = incoming->reason;
    commit->data = incoming->data;
    commit->timers = incoming->timers;
    commit->timer_count = incoming->timer_count;
    commit->effects = incoming->effects;
    commit->effect_count = incoming->effect_count;
    commit->deferred = incoming->deferred;
    commit->deferred_count = incoming->deferred_count;
}

/* The instance as it was before the events that are kept. Where older ones are gone, that is a
 * snapshot, since its history cannot be found out from the events. */
static void prepare_new(struct incoming *incoming, struct det_store_commit *commit)
{
    /* The newest of the history comes from the events. */
    size_t newer = incoming->moves < incoming->history_count ? (size_t)incoming->moves
                                                             : incoming->history_count;

    det_assert(incoming->moves <= incoming->head.transition_count);
    det_assert(incoming->first <= incoming->head.sequence && incoming->written == 0);
    *commit = (struct det_store_commit){ .is_new = true, .data = incoming->data };
    incoming->at = (struct det_store_head){
        .sequence = incoming->first ? incoming->first - 1 : incoming->head.sequence,
        .visit = 1,
        .transition_count = incoming->head.transition_count - incoming->moves,
        .started_at = incoming->head.started_at,
        .last_transition_at = incoming->head.started_at,
        .state = incoming->machine->initial,
    };
    if (!incoming->first)
        complete_commit(incoming, commit);
    commit->is_start_unknown = !incoming->start.data;
    if (incoming->start.data && incoming->first == 1) {
        incoming->at.state = incoming->start.state;
        commit->data = incoming->start.data;
    }
    commit->is_snapshot = incoming->at.sequence > 0;
    commit->history = incoming->history + newer;
    commit->history_count = commit->is_snapshot ? incoming->history_count - newer : 0;
}

/* Number of events that are not written. */
static size_t count_waiting(const struct incoming *incoming)
{
    size_t count = incoming->events.size / sizeof(struct det_store_event);

    det_assert(count == incoming->answers.size / sizeof(struct det_store_answer));
    det_assert(incoming->written <= count);
    return count - incoming->written;
}

/* The head after these events. */
static void advance_head(
    struct incoming *incoming, const struct det_store_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        incoming->at.sequence = events[i].sequence;
        incoming->at.visit = events[i].visit;
        incoming->at.state = events[i].to;
        if (events[i].outcome != DET_OUTCOME_GOTO)
            continue;
        incoming->at.transition_count++;
        incoming->at.last_transition_at = events[i].at;
    }
}

/* The answer of a commit is that of its last event, and there is one for each event id. */
static size_t batch_size(const struct det_store_event *events, size_t count)
{
    size_t size = 0;

    while (size < count && size < DET_BATCH_MAX) {
        if (events[size++].event_id)
            break;
    }
    return size;
}

static void prepare_events(struct incoming *incoming, struct det_store_commit *commit)
{
    const struct det_store_event *all =
        (const struct det_store_event *)(const void *)incoming->events.data;
    const struct det_store_answer *answers =
        (const struct det_store_answer *)(const void *)incoming->answers.data;
    const struct det_store_event *events = all + incoming->written, *last;
    size_t count = batch_size(events, count_waiting(incoming));

    det_assert(count > 0 && count <= DET_BATCH_MAX);
    det_assert(events[0].sequence == incoming->at.sequence + 1);
    last = &events[count - 1];
    *commit = (struct det_store_commit){ .events = events,
                                         .event_count = count,
                                         .expected = incoming->at.sequence };
    advance_head(incoming, events, count);
    if (last->sequence == incoming->head.sequence)
        complete_commit(incoming, commit);
    if (!last->event_id)
        return;
    commit->event_id = last->event_id;
    commit->answer = answers[incoming->written + count - 1];
}

/* The next commit of an instance; false: it has none. */
static bool prepare_commit(struct incoming *incoming, struct det_store_commit *commit)
{
    if (!incoming->is_there)
        prepare_new(incoming, commit);
    else if (count_waiting(incoming))
        prepare_events(incoming, commit);
    else
        return false;
    commit->machine = incoming->machine;
    commit->id = incoming->id;
    commit->instance = incoming->handle;
    commit->head = &incoming->at;
    return true;
}

static void gather_round(struct import *import, struct round *round)
{
    round->count = 0;
    for (size_t i = 0; i < import->group_count; i++) {
        struct det_store_commit *commit = &round->commits[round->count];

        if (import->group[i]->is_passed || !prepare_commit(import->group[i], commit))
            continue;
        round->all[round->count] = commit;
        round->whose[round->count++] = import->group[i];
    }
    det_assert(round->count <= import->group_count);
}

/* Counts the written instances; returns the first failure of the round. */
static int settle_round(struct import *import, const struct round *round)
{
    int r = 0;

    for (size_t i = 0; i < round->count; i++) {
        const struct det_store_commit *commit = &round->commits[i];

        if (commit->result < 0) {
            r = r < 0 ? r : commit->result;
            continue;
        }
        round->whose[i]->handle = commit->instance;
        round->whose[i]->is_there = true;
        round->whose[i]->written += commit->event_count;
        import->events += commit->event_count;
    }
    return r;
}

/* Closes complete instances; the one that still receives events stays, without its written
 * events. */
static void forget_written(struct import *import)
{
    struct incoming *current = import->current;

    for (size_t i = 0; i < import->group_count; i++) {
        const struct incoming *incoming = import->group[i];

        if (incoming == current)
            continue;
        det_assert(incoming->is_passed || count_waiting(incoming) == 0);
        import->instances += !incoming->is_passed;
        import->passed += incoming->is_passed;
        incoming_close(import, import->group[i]);
    }
    import->group_count = import->waiting = 0;
    if (!current)
        return;
    import->group[import->group_count++] = current;
    det_buffer_clear(&current->events);
    det_buffer_clear(&current->answers);
    current->written = 0;
    det_arena_deinit(&current->events_arena);
    det_arena_init(&current->events_arena, import->store->cli->allocator);
}

int import_flush(struct import *import)
{
    const struct cli_store *store = import->store;
    struct round *round = DET_NEW(store->cli->allocator, struct round);
    int r = 0;

    if (!round)
        return DET_ERR_NO_MEMORY;
    do {
        gather_round(import, round);
        if (round->count)
            r = store->ops->commit(store->store, round->all, round->count);
        if (r == 0)
            r = settle_round(import, round);
    } while (r == 0 && round->count);
    DET_DELETE(store->cli->allocator, round);
    if (r == 0)
        forget_written(import);
    return r;
}
