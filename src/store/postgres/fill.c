/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fill.c - puts the rows of a staged commit into the columns of its batch.
 *
 * A statement changes a row once, while the changes of a commit are sequential: of several changes
 * to one timer the last one is written, with the condition of the first. */
#include <string.h>

#include "base/assert.h"
#include "store/log.h"
#include "store/postgres/commit_batch.h"

#define NUMBER(column, value) \
    det_postgres_put_number(batch, POSTGRES_COLUMN_##column, (int64_t)(value))
#define FLAG(column, value)  det_postgres_put_flag(batch, POSTGRES_COLUMN_##column, value)
#define TEXT(column, value)  det_postgres_put_text(batch, POSTGRES_COLUMN_##column, value)
#define BYTES(column, value) det_postgres_put_bytes(batch, POSTGRES_COLUMN_##column, value)

static struct det_chain_bytes hash_bytes(const struct det_chain_hash *hash)
{
    return (struct det_chain_bytes){ hash->bytes, sizeof hash->bytes };
}

static const char *state_name(const struct det_machine *machine, uint16_t state)
{
    det_assert(state < machine->state_count);
    return machine->states[state].name;
}

static void fill_check(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    bool is_checked = commit->event_count || commit->is_snapshot;

    NUMBER(c_key, staged->instance->key);
    NUMBER(c_expected, commit->is_new ? -2 : is_checked ? (int64_t)commit->expected : -1);
    NUMBER(c_fence, commit->fence);
}

static void fill_head(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    const struct det_store_head *head = commit->head;
    struct det_chain_bytes data = { NULL, 0 }; /* unchanged */

    if (staged->has_data)
        data = det_postgres_staged_data(batch, staged);
    NUMBER(h_n, staged->n);
    NUMBER(h_key, staged->instance->key);
    NUMBER(h_version, commit->machine->version);
    TEXT(h_state, state_name(commit->machine, head->state));
    NUMBER(h_sequence, head->sequence);
    NUMBER(h_visit, head->visit);
    NUMBER(h_transitions, head->transition_count);
    NUMBER(h_moved_at, head->last_transition_at);
    FLAG(h_stopped, head->is_stopped);
    TEXT(h_reason, commit->reason);
    BYTES(h_data, data);
    BYTES(h_hash, hash_bytes(&staged->hash));
    NUMBER(h_checksum, staged->checksum);
}

static void fill_new(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    const struct det_store_head *head = commit->head;

    NUMBER(w_n, staged->n);
    NUMBER(w_key, staged->instance->key);
    TEXT(w_machine, commit->machine->name);
    TEXT(w_id, staged->instance->id);
    NUMBER(w_version, commit->machine->version);
    TEXT(w_state, state_name(commit->machine, head->state));
    NUMBER(w_sequence, head->sequence);
    NUMBER(w_visit, head->visit);
    NUMBER(w_transitions, head->transition_count);
    NUMBER(w_started_at, head->started_at);
    NUMBER(w_moved_at, head->last_transition_at);
    FLAG(w_stopped, head->is_stopped);
    TEXT(w_reason, commit->reason);
    BYTES(w_data, det_postgres_staged_data(batch, staged));
    BYTES(w_hash, hash_bytes(&staged->hash));
    NUMBER(w_checksum, staged->checksum);
    FLAG(w_begins, staged->begins);
}

static void fill_events(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_machine *machine = staged->commit->machine;

    for (size_t i = 0; i < staged->commit->event_count; i++) {
        const struct det_store_event *event = &staged->commit->events[i];
        const struct postgres_staged_event *done = &batch->events[staged->first_event + i];
        struct det_chain_bytes payload = { NULL, 0 };

        if (done->has_payload)
            payload =
                (struct det_chain_bytes){ batch->scratch.data + done->payload, done->payload_size };
        NUMBER(e_n, staged->n);
        NUMBER(e_key, staged->instance->key);
        NUMBER(e_sequence, event->sequence);
        NUMBER(e_version, machine->version);
        NUMBER(e_visit, event->visit);
        TEXT(e_from, state_name(machine, event->from));
        TEXT(e_to, state_name(machine, event->to));
        TEXT(e_event, det_row_event_name(machine, event->event));
        TEXT(e_outcome, det_outcome_name(event->outcome));
        NUMBER(e_choice, event->choice);
        FLAG(e_timeout, event->is_timeout);
        NUMBER(e_at, event->at);
        TEXT(e_event_id, event->event_id);
        TEXT(e_cause, event->cause);
        BYTES(e_payload, payload);
        BYTES(e_hash, hash_bytes(&done->hash));
        BYTES(e_trace, det_trace_context_bytes(event->trace));
    }
}

/* Encodes the payload of an event struct, in memory that the next call overwrites. */
static int encode_value(
    struct postgres_batch *batch, const struct det_machine *machine, const void *event,
    struct det_chain_bytes *ret)
{
    det_buffer_clear(&batch->text);
    return det_row_payload_encode(machine, event, &batch->text, ret);
}

static int fill_timer_set(
    struct postgres_batch *batch, const struct postgres_staged *staged,
    const struct det_store_timer *timer)
{
    const struct det_machine *machine = staged->commit->machine;
    struct det_chain_bytes payload;
    int r;

    r = encode_value(batch, machine, timer->value, &payload);
    if (r < 0)
        return r;
    NUMBER(t_n, staged->n);
    TEXT(t_machine, machine->name);
    NUMBER(t_key, staged->instance->key);
    TEXT(t_name, det_row_timer_name(machine, timer->timer));
    NUMBER(t_visit, timer->visit);
    NUMBER(t_due, timer->due);
    TEXT(t_event, det_row_event_name(machine, timer->event));
    BYTES(t_payload, payload);
    NUMBER(t_attempts, timer->attempts);
    NUMBER(t_last_error, timer->last_error);
    NUMBER(t_next_at, timer->next ? timer->next : timer->due);
    TEXT(t_reason, timer->reason);
    FLAG(t_dead, timer->is_dead);
    return 0;
}

static void fill_timer_update(
    struct postgres_batch *batch, const struct postgres_staged *staged,
    const struct det_store_timer *timer)
{
    NUMBER(u_n, staged->n);
    NUMBER(u_key, staged->instance->key);
    TEXT(u_name, det_row_timer_name(staged->commit->machine, timer->timer));
    NUMBER(u_visit, timer->visit);
    NUMBER(u_due, timer->due);
    NUMBER(u_attempts, timer->attempts);
    NUMBER(u_last_error, timer->last_error);
    NUMBER(u_next_at, timer->next ? timer->next : timer->due);
    TEXT(u_reason, timer->reason);
    FLAG(u_dead, timer->is_dead);
}

static bool is_same_timer(const struct det_store_commit *commit, size_t a, size_t b)
{
    return commit->timers[a].timer.timer == commit->timers[b].timer.timer;
}

static int fill_timers(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    int r = 0;

    for (size_t i = 0; r == 0 && i < commit->timer_count; i++) {
        const struct det_store_timer *timer = &commit->timers[i].timer;
        const char *name = det_row_timer_name(commit->machine, timer->timer);
        bool is_first = true, is_last = true;

        for (size_t j = 0; j < commit->timer_count; j++) {
            is_first = is_first && (j >= i || !is_same_timer(commit, i, j));
            is_last = is_last && (j <= i || !is_same_timer(commit, i, j));
        }
        if (commit->timers[i].kind == DET_STORE_TAKE && is_first) {
            NUMBER(k_n, staged->n);
            NUMBER(k_key, staged->instance->key);
            TEXT(k_name, name);
            NUMBER(k_visit, timer->visit);
            NUMBER(k_due, timer->due);
        }
        if (!is_last)
            continue;
        if (commit->timers[i].kind == DET_STORE_SET) {
            r = fill_timer_set(batch, staged, timer);
            continue;
        }
        if (commit->timers[i].kind == DET_STORE_UPDATE) {
            fill_timer_update(batch, staged, timer);
            continue;
        }
        NUMBER(g_n, staged->n);
        NUMBER(g_key, staged->instance->key);
        TEXT(g_name, name);
    }
    return r;
}

static int fill_effect_set(
    struct postgres_batch *batch, const struct postgres_staged *staged,
    const struct det_store_effect *effect)
{
    const struct det_machine *machine = staged->commit->machine;
    struct det_chain_bytes bytes;
    int r;

    det_buffer_clear(&batch->text);
    r = det_row_data_encode(machine, effect->data, &batch->text, &bytes);
    if (r < 0)
        return r;
    BYTES(o_data, bytes);
    r = encode_value(batch, machine, effect->event, &bytes);
    if (r < 0)
        return r;
    BYTES(o_payload, bytes);
    TEXT(
        o_event, effect->event
                     ? det_row_event_name(machine, (uint16_t)det_event_kind(effect->event))
                     : NULL);
    NUMBER(o_n, staged->n);
    TEXT(o_machine, machine->name);
    NUMBER(o_key, staged->instance->key);
    NUMBER(o_sequence, effect->sequence);
    NUMBER(o_number, effect->index);
    TEXT(o_effect, (machine->effects + effect->effect)->name);
    TEXT(o_from, state_name(machine, effect->from));
    TEXT(o_to, state_name(machine, effect->to));
    NUMBER(o_visit, effect->visit);
    NUMBER(o_asked, effect->asked);
    NUMBER(o_at, effect->at);
    NUMBER(o_attempts, effect->attempts);
    NUMBER(o_last_error, effect->last_error);
    NUMBER(o_next_at, effect->next);
    TEXT(o_reason, effect->reason);
    BYTES(o_trace, det_trace_context_bytes(effect->trace));
    TEXT(o_origin, effect->origin[0] ? effect->origin : NULL);
    FLAG(o_dead, effect->is_dead);
    return 0;
}

static int fill_effects(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    int r = 0;

    for (size_t i = 0; r == 0 && i < commit->effect_count; i++) {
        const struct det_store_effect *effect = &commit->effects[i].effect;
        bool is_taken = commit->effects[i].kind == DET_STORE_TAKE;

        if (commit->effects[i].kind == DET_STORE_SET) {
            batch->parts |= POSTGRES_ASK;
            if (effect->is_dead || det_row_may_be_dead(commit, effect))
                batch->parts |= POSTGRES_BURY;
            r = fill_effect_set(batch, staged, effect);
            continue;
        }
        batch->parts |= POSTGRES_TOUCH;
        NUMBER(x_n, staged->n);
        NUMBER(x_key, staged->instance->key);
        NUMBER(x_sequence, effect->sequence);
        NUMBER(x_number, effect->index);
        NUMBER(x_becomes, is_taken ? 0 : effect->is_dead ? 2 : 1);
        NUMBER(x_attempts, effect->attempts);
        NUMBER(x_last_error, effect->last_error);
        NUMBER(x_next_at, effect->next);
        TEXT(x_reason, is_taken ? NULL : effect->reason);
    }
    return r;
}

static int fill_deferred(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    int r = 0;

    for (size_t i = 0; r == 0 && i < commit->deferred_count; i++) {
        const struct det_store_deferred *deferred = &commit->deferred[i].deferred;
        struct det_chain_bytes payload;

        if (commit->deferred[i].kind == DET_STORE_TAKE) {
            NUMBER(r_n, staged->n);
            NUMBER(r_key, staged->instance->key);
            NUMBER(r_sequence, deferred->sequence);
            continue;
        }
        r = encode_value(batch, commit->machine, deferred->event, &payload);
        if (r < 0)
            return r;
        NUMBER(d_n, staged->n);
        NUMBER(d_key, staged->instance->key);
        NUMBER(d_sequence, deferred->sequence);
        TEXT(
            d_event,
            det_row_event_name(commit->machine, (uint16_t)det_event_kind(deferred->event)));
        BYTES(d_payload, payload);
    }
    return r;
}

static void fill_answer(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;

    NUMBER(a_n, staged->n);
    NUMBER(a_key, staged->instance->key);
    TEXT(a_event_id, commit->event_id);
    TEXT(a_outcome, det_outcome_name(commit->answer.outcome));
    TEXT(a_state, state_name(commit->machine, commit->answer.state));
    NUMBER(a_sequence, commit->answer.sequence);
    NUMBER(a_visit, commit->answer.visit);
    TEXT(a_event, det_row_answer_event(commit));
    NUMBER(a_request, commit->answer.request);
}

static int fill_snapshot(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    const struct det_store_head *head = commit->head;
    det_time taken_at = det_postgres_now(&batch->store->store);
    struct det_chain_head chain =
        det_row_chain_head(commit->machine, staged->instance->id, commit->head);
    int r;

    det_buffer_clear(&batch->text);
    det_buffer_append_text(&batch->text, "");
    r = det_row_history_write(
        commit->machine, commit->history, commit->history_count, &batch->text);
    if (r < 0)
        return r;
    chain.reason = commit->reason ? commit->reason : staged->instance->reason;
    chain.data = det_postgres_staged_data(batch, staged);
    chain.hash = staged->hash;
    NUMBER(s_n, staged->n);
    NUMBER(s_key, staged->instance->key);
    NUMBER(s_sequence, head->sequence);
    NUMBER(s_version, commit->machine->version);
    TEXT(s_state, chain.state);
    NUMBER(s_visit, head->visit);
    NUMBER(s_transitions, head->transition_count);
    NUMBER(s_started_at, head->started_at);
    NUMBER(s_moved_at, head->last_transition_at);
    FLAG(s_stopped, head->is_stopped);
    TEXT(s_reason, chain.reason);
    BYTES(s_data, chain.data);
    BYTES(s_hash, hash_bytes(&staged->hash));
    TEXT(s_history, det_buffer_text(&batch->text));
    NUMBER(s_taken_at, taken_at);
    NUMBER(
        s_checksum, det_chain_snapshot_checksum(&chain, det_buffer_text(&batch->text), taken_at));
    return 0;
}

bool det_postgres_is_plain(const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    const struct det_store_head *head = commit->head;

    return !commit->is_new && commit->event_count == 1 && !commit->timer_count &&
           !commit->effect_count && !commit->deferred_count && !commit->event_id &&
           !commit->is_snapshot && commit->events->sequence == head->sequence &&
           commit->events->visit == head->visit && commit->events->to == head->state;
}

int det_postgres_fill(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    const struct det_store_commit *commit = staged->commit;
    int r = 0;

    fill_check(batch, staged);
    if (commit->is_new) {
        batch->parts |= POSTGRES_NEW;
        fill_new(batch, staged);
    } else if (commit->event_count) {
        fill_head(batch, staged);
    }
    if (commit->event_count) {
        batch->parts |= POSTGRES_EVENTS;
        fill_events(batch, staged);
    }
    if (commit->timer_count) {
        batch->parts |= POSTGRES_TIMERS;
        r = fill_timers(batch, staged);
    }
    if (r == 0 && commit->effect_count)
        r = fill_effects(batch, staged);
    if (r == 0 && (commit->deferred_count || commit->is_snapshot)) {
        batch->parts |= POSTGRES_RARE;
        r = fill_deferred(batch, staged);
    }
    if (r == 0 && commit->is_snapshot)
        r = fill_snapshot(batch, staged);
    if (r == 0 && commit->event_id) {
        batch->parts |= POSTGRES_ANSWERS;
        fill_answer(batch, staged);
    }
    return r;
}
