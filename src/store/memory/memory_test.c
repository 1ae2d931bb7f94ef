/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory_test.c - the contract of a driver, over the memory store: a commit is applied completely
 * or not at all. */
#include <detent/tool/store.h>

#include "store/memory/memory.h"
#include "store/pad_test.h"

static void an_instance_is_found_as_it_was_committed(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct found *found = load(pad);
    struct det_store_loaded none = { .data = &pad->data };

    (void)state;
    assert_int_equal(found->loaded.head.visit, 1);
    assert_int_equal(found->loaded.head.started_at, 100);
    assert_int_equal(found->loaded.history_count, 0);
    assert_int_equal(found->timer_count + found->effect_count + found->deferred_count, 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    add_event(pad, SMALL);
    pad->data = 42;
    pad->commit.data = &pad->data;
    pad->commit.reason = "why";
    assert_int_equal(commit(pad), 0);
    found = load(pad);
    assert_int_equal(found->loaded.head.sequence, 2);
    assert_int_equal(found->loaded.head.state, 0);
    assert_int_equal(found->loaded.history_count, 2);
    assert_int_equal(found->loaded.history[0], 1);
    assert_int_equal(found->loaded.history[1], 0);
    assert_int_equal(found->data, 42);
    assert_string_equal(found->loaded.reason, "why");
    assert_int_equal(
        pad->store->ops->load(pad->store, pad->machine, "q", NULL, &none), DET_ERR_NOT_FOUND);
    pad_close(pad);
}

static void a_second_of_the_same_id_is_refused(void **state)
{
    struct pad *pad = pad_open(NULL);

    (void)state;
    begin(pad);
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    assert_int_equal(commit(pad), DET_ERR_EXISTS);
    pad_close(pad);
}

static void a_commit_from_another_sequence_is_a_conflict(void **state)
{
    struct pad *pad = pad_open(NULL);

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    begin(pad);
    add_event(pad, BARE);
    pad->commit.expected = 0;
    assert_int_equal(commit(pad), DET_ERR_CONFLICT);
    assert_int_equal(pad->commit.actual, 1);
    assert_int_equal(load(pad)->loaded.head.sequence, 1);
    pad_close(pad);
}

static void an_event_id_is_remembered_with_its_answer_and_taken_once(void **state)
{
    struct pad *pad = pad_open(&(struct det_store_options){ .event_ids_kept = 6 });
    struct det_store_answer answer;
    char id[8];

    (void)state;
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "e%d", i);
        assert_int_equal(send(pad, BARE, id), 0);
    }
    assert_int_equal(send(pad, BARE, "e9"), DET_ERR_EXISTS);
    pad->head = load(pad)->loaded.head;
    assert_int_equal(pad->head.sequence, 10);
    for (int i = 0; i < 10; i++) {
        int r;

        snprintf(id, sizeof id, "e%d", i);
        r = pad->store->ops->answer(pad->store, pad->instance, id, &answer);
        assert_int_equal(r, i < 4 ? DET_ERR_NOT_FOUND : 0);
        if (r == 0) {
            assert_int_equal(answer.sequence, i + 1);
            assert_int_equal(answer.visit, i + 2);
            assert_int_equal(answer.state, i % 2 == 0);
            assert_int_equal(answer.outcome, DET_OUTCOME_GOTO);
        }
    }
    pad_close(pad);
}

static struct det_store_timer_change timer(
    enum det_store_change_kind kind, uint16_t number, det_time due, const void *value)
{
    return (struct det_store_timer_change){
        kind, { .timer = number, .event = SMALL, .visit = 1, .due = due, .value = value }
    };
}

static int change_timer(struct pad *pad, struct det_store_timer_change change)
{
    begin(pad);
    pad->commit.timers = &change;
    pad->commit.timer_count = 1;
    return commit(pad);
}

static void timers_are_set_cleared_and_taken_only_as_they_are(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct pad_event value = { .kind = SMALL, .as.small = 5 };
    struct found *found;

    (void)state;
    assert_int_equal(
        change_timer(pad, timer(DET_STORE_TAKE, DET_STATE_TIMER, 7, NULL)), DET_ERR_NOT_FOUND);
    assert_int_equal(change_timer(pad, timer(DET_STORE_TAKE, 0, 7, NULL)), DET_ERR_NOT_FOUND);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, 0, 7, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, DET_STATE_TIMER, 7, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, 0, 9, &value)), 0);
    found = load(pad);
    assert_int_equal(found->timer_count, 2);
    assert_int_equal(found->timers[0].timer, DET_STATE_TIMER);
    assert_int_equal(found->timers[0].due, 7);
    assert_null(found->timers[0].value);
    assert_int_equal(found->timers[1].timer, 0);
    assert_int_equal(found->timer_values[1], 5);
    assert_int_equal(
        change_timer(pad, timer(DET_STORE_TAKE, DET_STATE_TIMER, 8, NULL)), DET_ERR_NOT_FOUND);
    assert_int_equal(change_timer(pad, timer(DET_STORE_TAKE, DET_STATE_TIMER, 7, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, 0, 0, NULL)), 0);
    assert_int_equal(load(pad)->timer_count, 0);
    pad_close(pad);
}

static int change_effect(
    struct pad *pad, enum det_store_change_kind kind, uint64_t sequence, bool is_dead)
{
    struct pad_event value = { .kind = SMALL, .as.small = sequence };
    uint64_t data = sequence * 2;
    struct det_store_effect_change change = { kind,
                                              { .sequence = sequence,
                                                .attempts = 3,
                                                .next = 11,
                                                .last_error = -4,
                                                .is_dead = is_dead,
                                                .data = &data,
                                                .event = &value } };

    begin(pad);
    pad->commit.effects = &change;
    pad->commit.effect_count = 1;
    return commit(pad);
}

static void effects_are_kept_until_they_are_taken(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct found *found;

    (void)state;
    assert_int_equal(change_effect(pad, DET_STORE_TAKE, 1, false), DET_ERR_NOT_FOUND);
    assert_int_equal(change_effect(pad, DET_STORE_UPDATE, 1, false), DET_ERR_NOT_FOUND);
    assert_int_equal(change_effect(pad, DET_STORE_SET, 1, false), 0);
    assert_int_equal(change_effect(pad, DET_STORE_SET, 2, false), 0);
    assert_int_equal(change_effect(pad, DET_STORE_UPDATE, 2, true), 0);
    found = load(pad);
    assert_int_equal(found->effect_count, 2);
    assert_int_equal(found->effects[0].sequence, 1);
    assert_int_equal(found->effect_data[0], 2);
    assert_int_equal(found->effect_events[1], 2);
    assert_true(found->effects[1].is_dead);
    assert_int_equal(found->effects[1].attempts, 3);
    assert_int_equal(found->effects[1].next, 11);
    assert_int_equal(found->effects[1].last_error, -4);
    assert_int_equal(change_effect(pad, DET_STORE_TAKE, 1, false), 0);
    assert_int_equal(change_effect(pad, DET_STORE_TAKE, 1, false), DET_ERR_NOT_FOUND);
    assert_int_equal(load(pad)->effect_count, 1);
    pad_close(pad);
}

static int change_deferred(struct pad *pad, enum det_store_change_kind kind, uint64_t sequence)
{
    struct pad_event value = { .kind = SMALL, .as.small = sequence };
    struct det_store_deferred_change change = { kind, { sequence, &value } };

    begin(pad);
    pad->commit.deferred = &change;
    pad->commit.deferred_count = 1;
    return commit(pad);
}

static void deferred_events_are_kept_in_order_until_they_are_taken(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct found *found;

    (void)state;
    assert_int_equal(change_deferred(pad, DET_STORE_TAKE, 1), DET_ERR_NOT_FOUND);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(change_deferred(pad, DET_STORE_SET, i), 0);
    assert_int_equal(change_deferred(pad, DET_STORE_TAKE, 2), 0);
    assert_int_equal(change_deferred(pad, DET_STORE_TAKE, 2), DET_ERR_NOT_FOUND);
    found = load(pad);
    assert_int_equal(found->deferred_count, 2);
    assert_int_equal(found->deferred[0], 1);
    assert_int_equal(found->deferred[1], 3);
    assert_int_equal(found->deferred_values[1], 3);
    pad_close(pad);
}

static int count_due(void *context, const struct det_store_due *row)
{
    assert_string_equal(row->id, "p");
    ++*(unsigned *)context;
    return 0;
}

static unsigned due_at(struct pad *pad, det_time before)
{
    unsigned count = 0;
    det_time next;

    assert_int_equal(
        pad->store->ops->due(
            pad->store, pad->machine,
            &(struct det_store_due_query){ .before = before, .limit = SIZE_MAX }, count_due, &count,
            &next),
        0);
    assert_true(next > before || next == DET_NEVER);
    return count;
}

static void only_live_timers_and_effects_are_due(void **state)
{
    struct pad *pad = pad_open(NULL);

    (void)state;
    assert_int_equal(due_at(pad, DET_NEVER), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, DET_STATE_TIMER, 7, NULL)), 0);
    assert_int_equal(due_at(pad, 6), 0);
    assert_int_equal(due_at(pad, 7), 1);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, DET_STATE_TIMER, 0, NULL)), 0);
    assert_int_equal(change_timer(pad, timer(DET_STORE_SET, 0, 7, NULL)), 0);
    assert_int_equal(due_at(pad, 7), 1);
    assert_int_equal(change_timer(pad, timer(DET_STORE_CLEAR, 0, 0, NULL)), 0);
    assert_int_equal(change_effect(pad, DET_STORE_SET, 1, false), 0);
    assert_int_equal(due_at(pad, DET_NEVER), 1);
    assert_int_equal(change_effect(pad, DET_STORE_UPDATE, 1, true), 0);
    assert_int_equal(due_at(pad, DET_NEVER), 0);
    pad_close(pad);
}

static void definition_of_another_shape_is_refused(void **state)
{
    struct pad *pad = pad_open(NULL);
    struct det_machine *other = pad_machine(2), *same = pad_machine(1);
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(pad->store->ops->serve(pad->store, other, &error), DET_ERR_VERSION);
    assert_int_equal(error.code, DET_ERR_VERSION);
    assert_int_equal(pad->store->ops->serve(pad->store, same, &error), 0);
    assert_int_equal(load(pad)->loaded.head.visit, 1);
    det_machine_close(other);
    pad_close(pad);
    det_machine_close(same);
}

/* One commit with all parts. */
static int fill(struct pad *pad)
{
    struct pad_event value = { .kind = SMALL, .as.small = 5 };
    uint64_t data = 9;
    struct det_store_timer_change timers[] = { timer(DET_STORE_SET, DET_STATE_TIMER, 7, &value),
                                               timer(DET_STORE_SET, 0, 9, &value) };
    struct det_store_effect_change effect = { DET_STORE_SET,
                                              { .sequence = 1, .data = &data, .event = &value } };
    const struct det_store_deferred_change deferred[] = { { DET_STORE_SET, { 1, &value } },
                                                          { DET_STORE_SET, { 2, &value } } };

    begin(pad);
    add_event(pad, TEXT);
    pad->event.event_id = pad->commit.event_id = "id-1";
    pad->commit.data = &data;
    pad->commit.reason = "why";
    pad->commit.timers = timers;
    pad->commit.timer_count = 2;
    pad->commit.effects = &effect;
    pad->commit.effect_count = 1;
    pad->commit.deferred = deferred;
    pad->commit.deferred_count = 2;
    return commit(pad);
}

static int all_or_nothing(struct det_test_memory *memory, void *argument)
{
    struct pad pad;
    struct found *found;
    struct rows rows = { 0 };
    uint64_t fail_at;
    int r;

    r = pad_open_in(&pad, &(struct det_store_options){ .allocator = &memory->allocator }, argument);
    if (r == 0) {
        r = fill(&pad);
        fail_at = memory->fail_at;
        memory->fail_at = 0;
        found = load(&pad);
        assert_int_equal(walk(&pad, 1, &rows), 0);
        memory->fail_at = fail_at;
        assert_int_equal(found->loaded.head.sequence, r == 0);
        assert_int_equal(found->timer_count, r == 0 ? 2 : 0);
        assert_int_equal(found->effect_count, r == 0);
        assert_int_equal(found->deferred_count, r == 0 ? 2 : 0);
        assert_int_equal(found->data, r == 0 ? 9 : 0);
        assert_string_equal(found->loaded.reason, r == 0 ? "why" : "");
    }
    det_store_close(pad.store);
    return r;
}

static void a_commit_without_memory_leaves_nothing(void **state)
{
    struct det_machine *machine = pad_machine(1);

    (void)state;
    det_test_each_failure(all_or_nothing, machine);
    det_machine_close(machine);
}

/* With the seed a client could choose ids that collide in a map. */
static void store_identity_does_not_reveal_its_seed(void **state)
{
    struct det_store *store;
    char seed[20];

    (void)state;
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    snprintf(
        seed, sizeof seed, "%016llx", (unsigned long long)((struct memory_store *)store)->seed);
    assert_int_equal(strlen(det_store_identity(store)), 32);
    assert_null(strstr(det_store_identity(store), seed));
    det_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_identity_does_not_reveal_its_seed),
        cmocka_unit_test(an_instance_is_found_as_it_was_committed),
        cmocka_unit_test(a_second_of_the_same_id_is_refused),
        cmocka_unit_test(a_commit_from_another_sequence_is_a_conflict),
        cmocka_unit_test(an_event_id_is_remembered_with_its_answer_and_taken_once),
        cmocka_unit_test(timers_are_set_cleared_and_taken_only_as_they_are),
        cmocka_unit_test(effects_are_kept_until_they_are_taken),
        cmocka_unit_test(deferred_events_are_kept_in_order_until_they_are_taken),
        cmocka_unit_test(only_live_timers_and_effects_are_due),
        cmocka_unit_test(definition_of_another_shape_is_refused),
        cmocka_unit_test(a_commit_without_memory_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
