/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draft.c - instances in the state that a test expects, and the commits that it prepares. */
#include "conform/conform.h"

struct subject *subject_new(struct box *box, const char *id)
{
    struct subject *subject = calloc(1, sizeof *subject);

    assert_non_null(subject);
    subject->box = box;
    subject->store = box->store;
    snprintf(subject->id, sizeof subject->id, "%s", id);
    subject->next = box->subjects;
    box->subjects = subject;
    return subject;
}

void draft_init(struct draft *draft, struct subject *subject)
{
    memset(draft, 0, sizeof *draft);
    draft->subject = subject;
    draft->head = subject->head;
    draft->history_count = subject->history_count;
    memcpy(draft->history, subject->history, sizeof draft->history);
    draft->commit = (struct det_store_commit){
        .machine = subject->box->machine,
        .id = subject->id,
        .instance = subject->instance,
        .expected = subject->head.sequence,
        .head = &draft->head,
        .events = draft->events,
        .timers = draft->timers,
        .effects = draft->effects,
        .deferred = draft->deferred,
    };
}

void draft_start(struct draft *draft, struct subject *subject)
{
    det_time now = box_now(subject->box);

    draft_init(draft, subject);
    draft->commit.is_new = true;
    draft->head = (struct det_store_head){
        .visit = 1, .started_at = now, .last_transition_at = now, .state = PARCEL_CREATED
    };
    draft_data(draft, 1);
}

struct subject *subject_start(struct box *box, const char *id)
{
    struct subject *subject = subject_new(box, id);
    struct draft draft;

    draft_start(&draft, subject);
    assert_int_equal(draft_commit(&draft), 0);
    return subject;
}

static void remember_state(struct draft *draft, uint16_t state)
{
    size_t kept =
        draft->history_count < DET_HISTORY_MAX ? draft->history_count : DET_HISTORY_MAX - 1;

    memmove(draft->history + 1, draft->history, kept * sizeof draft->history[0]);
    draft->history[0] = state;
    draft->history_count = kept + 1;
}

struct det_store_event *draft_event(
    struct draft *draft, unsigned kind, enum det_outcome outcome, unsigned to)
{
    size_t place = draft->commit.event_count++;
    struct det_store_head *head = &draft->head;
    det_time now = box_now(draft->subject->box);
    uint16_t from = head->state;

    assert_true(place < ROWS_MAX);
    head->sequence++;
    head->state = (uint16_t)to;
    head->is_stopped = outcome == DET_OUTCOME_STOP;
    if (outcome == DET_OUTCOME_GOTO) {
        head->visit = head->sequence + 1;
        head->transition_count++;
        head->last_transition_at = now;
        remember_state(draft, from);
    }
    draft->values[place] = parcel_value(kind, head->sequence);
    draft->events[place] = (struct det_store_event){
        .sequence = head->sequence,
        .visit = head->visit,
        .from = from,
        .to = head->state,
        .event = (uint16_t)kind,
        .outcome = (uint16_t)outcome,
        .at = now,
        .value = &draft->values[place],
    };
    return &draft->events[place];
}

void draft_stop(struct draft *draft, const char *reason)
{
    struct det_store_event *event =
        draft_event(draft, PARCEL_HOLD, DET_OUTCOME_STOP, draft->head.state);

    event->event = UINT16_MAX;
    event->value = NULL;
    draft->commit.reason = reason;
}

void draft_data(struct draft *draft, uint64_t number)
{
    draft->data = parcel_data_value(number);
    draft->commit.data = &draft->data;
}

void draft_event_id(struct draft *draft, const char *event_id)
{
    size_t count = draft->commit.event_count;

    draft->commit.event_id = event_id;
    if (count)
        draft->events[count - 1].event_id = event_id;
    draft->commit.answer = (struct det_store_answer){
        .outcome = count ? draft->events[count - 1].outcome : DET_OUTCOME_GOTO,
        .state = draft->head.state,
        .sequence = draft->head.sequence,
        .visit = draft->head.visit,
    };
}

struct det_store_timer *draft_timer(
    struct draft *draft, enum det_store_change_kind kind, uint16_t timer, det_time due)
{
    size_t place = draft->commit.timer_count++;
    struct parcel_event *value = &draft->timer_values[place];

    assert_true(place < ROWS_MAX);
    *value = parcel_value(PARCEL_LATE, (uint64_t)due % 1000 * 100 + timer % 100);
    draft->timers[place] = (struct det_store_timer_change){
        kind,
        { .timer = timer,
          .event = PARCEL_LATE,
          .visit = kind == DET_STORE_SET ? draft->head.visit : draft->subject->head.visit,
          .due = due,
          .value = kind == DET_STORE_SET ? value : NULL },
    };
    return &draft->timers[place].timer;
}

struct det_store_effect *draft_effect(
    struct draft *draft, enum det_store_change_kind kind, uint64_t sequence, uint16_t index)
{
    size_t place = draft->commit.effect_count++;
    struct det_store_effect *row = &draft->effects[place].effect;

    assert_true(place < ROWS_MAX);
    draft->effects[place].kind = kind;
    *row = (struct det_store_effect){ .sequence = sequence, .index = index };
    if (kind != DET_STORE_SET)
        return row;
    draft->effect_values[place] = parcel_value(PARCEL_COUNT, sequence * 10 + index);
    draft->effect_data[place] = parcel_data_value(sequence * 10 + index);
    row->effect = index % 2 ? PARCEL_TELL_OWNER : PARCEL_PRINT_LABEL;
    row->from = draft->subject->head.state;
    row->to = draft->head.state;
    row->visit = draft->subject->head.visit ? draft->subject->head.visit : 1;
    row->asked = draft->head.visit;
    row->at = row->next = box_now(draft->subject->box);
    row->data = &draft->effect_data[place];
    row->event = &draft->effect_values[place];
    return row;
}

void draft_deferred(struct draft *draft, enum det_store_change_kind kind, uint64_t sequence)
{
    size_t place = draft->commit.deferred_count++;

    assert_true(place < ROWS_MAX);
    draft->deferred_values[place] = parcel_value(PARCEL_COUNT, sequence);
    draft->deferred[place] = (struct det_store_deferred_change){
        kind, { sequence, kind == DET_STORE_SET ? &draft->deferred_values[place] : NULL }
    };
}

void draft_snapshot(struct draft *draft)
{
    draft->commit.is_snapshot = true;
    draft->commit.history = draft->history;
    draft->commit.history_count = draft->history_count;
}

static void draft_done(struct draft *draft)
{
    struct subject *subject = draft->subject;

    if (draft->commit.result != 0)
        return;
    subject->instance = draft->commit.instance;
    subject->head = draft->head;
    subject->history_count = draft->history_count;
    memcpy(subject->history, draft->history, sizeof subject->history);
    if (draft->commit.data)
        subject->data = draft->data;
    if (draft->commit.reason)
        snprintf(subject->reason, sizeof subject->reason, "%s", draft->commit.reason);
}

int draft_commit(struct draft *draft)
{
    struct det_store *store = draft->subject->store;
    struct det_store_commit *const one = &draft->commit;
    int r;

    r = store->ops->commit(store, &one, 1);
    if (r < 0)
        draft->commit.result = r;
    draft_done(draft);
    return draft->commit.result;
}

void draft_commit_all(struct draft **drafts, size_t count)
{
    struct det_store_commit *commits[64];
    struct det_store *store = drafts[0]->subject->store;

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++)
        commits[i] = &drafts[i]->commit;
    assert_int_equal(store->ops->commit(store, commits, count), 0);
    for (size_t i = 0; i < count; i++)
        draft_done(drafts[i]);
}

void subject_move(struct subject *subject, unsigned kind, unsigned to)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, kind, to == subject->head.state ? DET_OUTCOME_STAY : DET_OUTCOME_GOTO, to);
    assert_int_equal(draft_commit(&draft), 0);
}

void subject_set_timer(struct subject *subject, uint16_t timer, det_time due)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_timer(&draft, DET_STORE_SET, timer, due);
    assert_int_equal(draft_commit(&draft), 0);
}

void subject_set_effect(struct subject *subject, uint16_t index, det_time next)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, subject->head.state);
    draft_effect(&draft, DET_STORE_SET, draft.head.sequence, index)->next = next;
    assert_int_equal(draft_commit(&draft), 0);
}

void subject_defer(struct subject *subject)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_DEFERRED, subject->head.state);
    draft_deferred(&draft, DET_STORE_SET, draft.head.sequence);
    assert_int_equal(draft_commit(&draft), 0);
}
