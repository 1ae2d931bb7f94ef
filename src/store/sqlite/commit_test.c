/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit_test.c - committed rows are complete after the file was closed; refused commits change
 * nothing. */
#include "store/sqlite/sqlite_test.h"

static struct det_store_timer_change timer(
    enum det_store_change_kind kind, uint16_t number, det_time due, const void *value)
{
    return (struct det_store_timer_change){
        kind, { .timer = number, .event = SMALL, .visit = 1, .due = due, .value = value }
    };
}

static struct det_store_effect_change effect(
    enum det_store_change_kind kind, uint64_t sequence, uint16_t index)
{
    return (struct det_store_effect_change){
        kind, { .sequence = sequence, .index = index, .from = 0, .to = 1, .visit = 1, .asked = 2 }
    };
}

static void an_instance_is_found_again_in_the_file(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    pad->value.as.small = 6;
    add_event(pad, SMALL);
    pad->data = 42;
    pad->commit.data = &pad->data;
    pad->commit.reason = "why";
    pad->head.is_stopped = true;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 2);
    assert_int_equal(found.loaded.head.visit, 3);
    assert_int_equal(found.loaded.head.state, 0);
    assert_int_equal(found.loaded.head.transition_count, 2);
    assert_int_equal(found.loaded.head.started_at, 100);
    assert_int_equal(found.loaded.head.last_transition_at, 102);
    assert_true(found.loaded.head.is_stopped);
    assert_int_equal(found.loaded.history_count, 2);
    assert_int_equal(found.loaded.history[0], 1);
    assert_int_equal(found.loaded.history[1], 0);
    assert_string_equal(found.loaded.reason, "why");
    assert_int_equal(found.data, 42);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void events_round_trip_with_all_their_fields(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct found found;
    struct rows rows = { 0 };
    char id[32], cause[32];

    (void)state;
    for (int i = 1; i <= 40; i++) {
        snprintf(id, sizeof id, "id-%d", i);
        snprintf(cause, sizeof cause, "pad/p/%d/0", i);
        begin(pad);
        memset(&pad->value, 0, sizeof pad->value);
        add_event(pad, (unsigned)i % 3);
        if (pad->value.kind == SMALL)
            pad->value.as.small = (uint64_t)i * 3;
        if (pad->value.kind == TEXT)
            snprintf(pad->value.as.note.text, 100, "text %d", i);
        pad->event.event_id = i % 4 == 0 ? id : NULL;
        pad->event.cause = i % 5 == 0 ? cause : NULL;
        pad->event.is_timeout = i % 7 == 0;
        pad->event.choice = (uint16_t)(i % 2);
        assert_int_equal(commit(pad), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(walk(pad, 0, &rows), 0);
        assert_int_equal(rows.count, 40);
        assert_int_equal(rows.first, 1);
        assert_int_equal(rows.ids, 10);
        assert_int_equal(rows.causes, 8);
        assert_int_equal(walk(pad, 38, &rows), 0);
        assert_int_equal(rows.count, 2);
        assert_int_equal(walk(pad, 40, &rows), 0);
        assert_int_equal(rows.count, 0);
        rows.stop_at = 7;
        assert_int_equal(walk(pad, 0, &rows), 99);
        rows.stop_at = 0;
        assert_int_equal(shelf_reopen(shelf, &found), 0);
    }
    assert_int_equal(found.loaded.history_count, 40);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void more_events_than_a_chunk_are_shown_in_order(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct det_store_event events[DET_BATCH_MAX];
    struct rows rows = { 0 };
    struct found found;

    (void)state;
    memset(&pad->value, 0, sizeof pad->value);
    for (int i = 0; i < 40; i++) {
        begin(pad);
        for (int k = 0; k < DET_BATCH_MAX; k++) {
            add_event(pad, BARE);
            events[k] = pad->event;
        }
        pad->commit.events = events;
        pad->commit.event_count = DET_BATCH_MAX;
        assert_int_equal(commit(pad), 0);
    }
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.count, 40 * DET_BATCH_MAX);
    assert_int_equal(walk(pad, 5000, &rows), 0);
    assert_int_equal(rows.count, 40 * DET_BATCH_MAX - 5000);
    assert_int_equal(rows.first, 5001);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.history_count, DET_HISTORY_MAX);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void manual_stop_is_stored_as_an_event_without_a_name(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct found found;

    (void)state;
    begin(pad);
    add_event(pad, BARE);
    pad->event.event = UINT16_MAX;
    pad->event.value = NULL;
    pad->event.outcome = DET_OUTCOME_STOP;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(shelf_ask(shelf, "SELECT event IS NULL FROM events"), 1);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void a_second_of_the_same_id_is_refused(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;

    (void)state;
    begin(pad);
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    assert_int_equal(commit(pad), DET_ERR_EXISTS);
    assert_null(pad->commit.instance);
    shelf_free(shelf);
}

static void a_commit_from_another_sequence_is_a_conflict(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    add_event(pad, BARE);
    pad->commit.expected = 0;
    assert_int_equal(commit(pad), DET_ERR_CONFLICT);
    assert_int_equal(pad->commit.actual, 1);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

/* Two handles of one instance: a stale handle is refreshed before it is used. */
static void stale_instance_handle_catches_up(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct det_store_instance *other;
    struct found found;

    (void)state;
    other = pad->instance;
    pad->instance = NULL;
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    pad->store->ops->release(pad->store, pad->instance);
    pad->instance = other;
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void an_event_id_is_remembered_with_its_answer_and_taken_once(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct det_store_answer answer;
    struct found found;

    (void)state;
    assert_int_equal(send(pad, BARE, "e1"), 0);
    assert_int_equal(send(pad, BARE, "e1"), DET_ERR_EXISTS);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 1);
    assert_int_equal(pad->store->ops->answer(pad->store, pad->instance, "e1", &answer), 0);
    assert_int_equal(answer.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(answer.state, 1);
    assert_int_equal(answer.sequence, 1);
    assert_int_equal(answer.visit, 2);
    assert_int_equal(
        pad->store->ops->answer(pad->store, pad->instance, "e2", &answer), DET_ERR_NOT_FOUND);
    shelf_free(shelf);
}

static void timers_are_set_replaced_cleared_and_taken_when_due(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct pad_event value = { .kind = SMALL, .as.small = 77 };
    det_time later = pad->store->ops->now(pad->store) + DET_HOUR;
    struct det_store_timer_change changes[2] = { timer(DET_STORE_SET, DET_STATE_TIMER, 5, NULL),
                                                 timer(DET_STORE_SET, 0, later, &value) };
    struct found found;

    (void)state;
    begin(pad);
    pad->commit.timers = changes;
    pad->commit.timer_count = 2;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(found.timer_count, 2);
    assert_int_equal(found.timers[0].timer, DET_STATE_TIMER);
    assert_int_equal(found.timers[0].due, 5);
    assert_null(found.timers[0].value);
    assert_int_equal(found.timers[1].due, later);
    assert_int_equal(found.timers[1].event, SMALL);
    assert_int_equal(found.timer_values[1], 77);
    begin(pad);
    pad->commit.timers = changes;
    pad->commit.timer_count = 1;
    changes[0] = timer(DET_STORE_TAKE, DET_STATE_TIMER, 6, NULL);
    assert_int_equal(commit(pad), DET_ERR_NOT_FOUND);
    changes[0] = timer(DET_STORE_TAKE, 0, later, NULL);
    assert_int_equal(commit(pad), DET_ERR_EARLY);
    changes[0] = timer(DET_STORE_TAKE, DET_STATE_TIMER, 5, NULL);
    assert_int_equal(commit(pad), 0);
    assert_int_equal(commit(pad), DET_ERR_NOT_FOUND);
    changes[0] = timer(DET_STORE_SET, 0, 9, NULL);
    assert_int_equal(commit(pad), 0);
    changes[0] = timer(DET_STORE_CLEAR, DET_STATE_TIMER, 0, NULL);
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.timer_count, 1);
    assert_int_equal(found.timers[0].due, 9);
    changes[0] = timer(DET_STORE_CLEAR, 0, 0, NULL);
    begin(pad);
    pad->commit.timers = changes;
    pad->commit.timer_count = 1;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.timer_count, 0);
    shelf_free(shelf);
}

static void effects_are_stored_die_and_are_revived(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct pad_event value = { .kind = SMALL, .as.small = 5 };
    uint64_t data = 9;
    struct det_store_effect_change change = effect(DET_STORE_SET, 1, 0);
    struct found found;

    (void)state;
    change.effect.data = &data;
    change.effect.event = &value;
    change.effect.next = 50;
    begin(pad);
    add_event(pad, BARE);
    pad->commit.effects = &change;
    pad->commit.effect_count = 1;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(found.effect_count, 1);
    assert_int_equal(found.effect_data[0], 9);
    assert_int_equal(found.effect_events[0], 5);
    assert_int_equal(found.effects[0].to, 1);
    assert_int_equal(found.effects[0].asked, 2);
    assert_int_equal(found.effects[0].next, 50);
    for (int i = 0; i < 6; i++) {
        bool is_dead = i % 4 >= 2;

        change = effect(DET_STORE_UPDATE, 1, 0);
        change.effect.attempts = (uint32_t)i;
        change.effect.last_error = DET_ERR_TIMEOUT;
        change.effect.next = 60 + i;
        change.effect.is_dead = is_dead;
        begin(pad);
        pad->commit.effects = &change;
        pad->commit.effect_count = 1;
        assert_int_equal(commit(pad), 0);
        assert_int_equal(shelf_load(shelf, &found), 0);
        assert_int_equal(found.effect_count, 1);
        assert_int_equal(found.effects[0].is_dead, is_dead);
        assert_int_equal(found.effects[0].attempts, i);
        assert_int_equal(found.effects[0].last_error, DET_ERR_TIMEOUT);
        assert_int_equal(found.effects[0].next, 60 + i);
        assert_int_equal(found.effect_events[0], 5);
    }
    change = effect(DET_STORE_TAKE, 1, 1);
    begin(pad);
    pad->commit.effects = &change;
    pad->commit.effect_count = 1;
    assert_int_equal(commit(pad), DET_ERR_NOT_FOUND);
    change = effect(DET_STORE_TAKE, 1, 0);
    assert_int_equal(commit(pad), 0);
    assert_int_equal(commit(pad), DET_ERR_NOT_FOUND);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.effect_count, 0);
    shelf_free(shelf);
}

static void no_more_dead_effects_are_kept_than_the_limit(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct pad_event value = { .kind = BARE };
    uint64_t data = 0;

    (void)state;
    for (uint16_t i = 0; i < DET_DEAD_MAX + 3; i++) {
        struct det_store_effect_change changes[2] = { effect(DET_STORE_SET, 1, i),
                                                      effect(DET_STORE_UPDATE, 1, i) };

        changes[0].effect.data = &data;
        changes[0].effect.event = &value;
        changes[1].effect.is_dead = true;
        begin(pad);
        pad->commit.effects = &changes[0];
        pad->commit.effect_count = 1;
        assert_int_equal(commit(pad), 0);
        pad->commit.effects = &changes[1];
        assert_int_equal(commit(pad), 0);
    }
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM dead_letters"), DET_DEAD_MAX);
    assert_int_equal(shelf_ask(shelf, "SELECT min(number) FROM dead_letters"), 3);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM outbox"), 0);
    shelf_free(shelf);
}

static void deferred_events_wait_in_order_and_are_taken_once(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct pad_event values[2] = { { .kind = SMALL, .as.small = 1 },
                                   { .kind = SMALL, .as.small = 2 } };
    struct det_store_deferred_change changes[2] = { { DET_STORE_SET, { 7, &values[0] } },
                                                    { DET_STORE_SET, { 3, &values[1] } } };
    struct found found;

    (void)state;
    begin(pad);
    pad->commit.deferred = changes;
    pad->commit.deferred_count = 2;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(found.deferred_count, 2);
    assert_int_equal(found.deferred[0], 3);
    assert_int_equal(found.deferred_values[0], 2);
    assert_int_equal(found.deferred_values[1], 1);
    changes[0].kind = DET_STORE_TAKE;
    begin(pad);
    pad->commit.deferred = changes;
    pad->commit.deferred_count = 1;
    assert_int_equal(commit(pad), 0);
    assert_int_equal(commit(pad), DET_ERR_NOT_FOUND);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.deferred_count, 1);
    shelf_free(shelf);
}

/* The first and the last of three are refused, in different ways; the middle one is committed. */
static void in_one_call_each_commit_has_its_own_result(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct det_store_commit commits[3];
    struct det_store_commit *pointers[3] = { &commits[0], &commits[1], &commits[2] };
    struct pad_event broken = { .kind = TEXT };

    (void)state;
    memset(broken.as.note.text, 'x', sizeof broken.as.note.text);
    for (int i = 0; i < 3; i++) {
        commits[i] = (struct det_store_commit){ .machine = pad->machine,
                                                .id = i == 0   ? "p"
                                                      : i == 1 ? "q"
                                                               : "r",
                                                .is_new = true,
                                                .head = &pad->head,
                                                .data = &pad->data };
    }
    commits[2].timers =
        &(struct det_store_timer_change){ DET_STORE_SET,
                                          { .timer = 0, .event = TEXT, .value = &broken } };
    commits[2].timer_count = 1;
    assert_int_equal(pad->store->ops->commit(pad->store, pointers, 3), 0);
    assert_int_equal(commits[0].result, DET_ERR_EXISTS);
    assert_int_equal(commits[1].result, 0);
    assert_int_equal(commits[2].result, DET_ERR_INVALID);
    assert_null(commits[2].instance);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM instances"), 2);
    pad->store->ops->release(pad->store, commits[1].instance);
    assert_int_equal(pad->store->ops->commit(pad->store, pointers, 0), 0);
    shelf_free(shelf);
}

/* A foreign trigger stands for any unforeseen failure: one commit fails half way, and the others of
 * its batch succeed. */
static void commit_that_fails_midway_is_rolled_back_alone(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct det_store_commit commits[3];
    struct det_store_commit *pointers[3] = { &commits[0], &commits[1], &commits[2] };
    struct det_store_event event;
    struct pad_event value = { .kind = BARE };

    (void)state;
    shelf_close(shelf);
    shelf_exec(
        shelf, "CREATE TRIGGER bad BEFORE INSERT ON events WHEN new.visit = 666 BEGIN"
               " SELECT raise(ABORT, 'no'); END");
    assert_int_equal(shelf_open(shelf), 0);
    event = (struct det_store_event){ .sequence = 1,
                                      .visit = 666,
                                      .from = 0,
                                      .to = 1,
                                      .event = BARE,
                                      .outcome = DET_OUTCOME_GOTO,
                                      .value = &value };
    for (int i = 0; i < 3; i++)
        commits[i] = (struct det_store_commit){ .machine = pad->machine,
                                                .id = i == 0   ? "a"
                                                      : i == 1 ? "b"
                                                               : "c",
                                                .is_new = true,
                                                .head = &pad->head,
                                                .data = &pad->data };
    commits[1].events = &event;
    commits[1].event_count = 1;
    assert_int_equal(pad->store->ops->commit(pad->store, pointers, 3), 0);
    assert_int_equal(commits[0].result, 0);
    assert_int_equal(commits[1].result, DET_ERR_CORRUPT);
    assert_int_equal(commits[2].result, 0);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM instances"), 3);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM events"), 0);
    pad->store->ops->release(pad->store, commits[0].instance);
    pad->store->ops->release(pad->store, commits[2].instance);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instance_is_found_again_in_the_file),
        cmocka_unit_test(events_round_trip_with_all_their_fields),
        cmocka_unit_test(more_events_than_a_chunk_are_shown_in_order),
        cmocka_unit_test(manual_stop_is_stored_as_an_event_without_a_name),
        cmocka_unit_test(a_second_of_the_same_id_is_refused),
        cmocka_unit_test(a_commit_from_another_sequence_is_a_conflict),
        cmocka_unit_test(stale_instance_handle_catches_up),
        cmocka_unit_test(an_event_id_is_remembered_with_its_answer_and_taken_once),
        cmocka_unit_test(timers_are_set_replaced_cleared_and_taken_when_due),
        cmocka_unit_test(effects_are_stored_die_and_are_revived),
        cmocka_unit_test(no_more_dead_effects_are_kept_than_the_limit),
        cmocka_unit_test(deferred_events_wait_in_order_and_are_taken_once),
        cmocka_unit_test(in_one_call_each_commit_has_its_own_result),
        cmocka_unit_test(commit_that_fails_midway_is_rolled_back_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
