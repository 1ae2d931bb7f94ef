/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy_test.c - events that a state does not take, events that come twice, events that come
 * together. */
#include "runtime/runtime_test.h"

static void idempotent(struct fixture *f)
{
    struct det_send_options options = { .event_id = "e-1" };
    struct det_sent first;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_with(f, "o-1", TOUCH, options), 0);
    first = f->sent;
    assert_false(first.is_duplicate);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(send_with(f, "o-1", TOUCH, options), 0);
    assert_true(f->sent.is_duplicate);
    assert_int_equal(f->sent.outcome, first.outcome);
    assert_int_equal(f->sent.state, first.state);
    assert_int_equal(f->sent.sequence, first.sequence);
    assert_int_equal(f->sent.visit, first.visit);
    assert_int_equal(counts(f).duplicates, 1);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", NULL, NULL, NULL, NULL), 0);
    options.expected = 99;
    assert_int_equal(send_with(f, "o-1", TOUCH, options), 0);
    assert_true(f->sent.is_duplicate);
    assert_string_equal(events_after(f, "o-1", 0)->rows[0].event_id, "e-1");
    assert_string_equal(events_after(f, "o-1", 0)->rows[1].event_id, "");
}

static void an_event_id_gives_the_first_answer_again(void **state)
{
    (void)state;
    in_fixture(idempotent);
}

static void many_ids(struct fixture *f)
{
    char id[16];

    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < 65; i++) {
        snprintf(id, sizeof id, "e-%d", i);
        assert_int_equal(send_with(f, "o-1", PING, (struct det_send_options){ .event_id = id }), 0);
        assert_false(f->sent.is_duplicate);
    }
    assert_int_equal(send_with(f, "o-1", PING, (struct det_send_options){ .event_id = "e-1" }), 0);
    assert_true(f->sent.is_duplicate);
    assert_int_equal(f->sent.sequence, 2);
    assert_int_equal(send_with(f, "o-1", PING, (struct det_send_options){ .event_id = "e-0" }), 0);
    assert_false(f->sent.is_duplicate);
}

static void as_many_event_ids_are_remembered_as_the_store_keeps(void **state)
{
    (void)state;
    in_fixture(many_ids);
}

static void failed_ids(struct fixture *f)
{
    struct det_send_options options = { .event_id = "e-1" };

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_with(f, "o-1", SHIP, options), DET_ERR_UNHANDLED);
    assert_int_equal(send_with(f, "o-1", TOUCH, options), 0);
    assert_false(f->sent.is_duplicate);
}

static void a_failed_send_does_not_use_up_its_event_id(void **state)
{
    (void)state;
    in_fixture(failed_ids);
}

static void ignored(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", NOISE), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_IGNORED);
    assert_int_equal(f->sent.sequence, 0);
    assert_int_equal(f->sent.state, PENDING);
    assert_int_equal(counts(f).unhandled, 1);
    assert_int_equal(events_after(f, "o-1", 0)->count, 0);
}

static void ignored_event_only_increments_a_count(void **state)
{
    (void)state;
    in_fixture(ignored);
}

static void dead(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", JUNK), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_DEAD_LETTER);
    assert_int_equal(f->sent.sequence, 1);
    assert_int_equal(f->sent.visit, 1);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 1);
    assert_string_equal(f->control.incident.name, "JUNK");
    assert_string_equal(f->control.incident.instance, "o-1");
    assert_int_equal(f->control.incident.code, DET_ERR_UNHANDLED);
    all = events_after(f, "o-1", 0);
    assert_int_equal(all->count, 1);
    assert_int_equal(all->rows[0].outcome, DET_OUTCOME_DEAD_LETTER);
    assert_int_equal(all->rows[0].from, PENDING);
    assert_int_equal(all->rows[0].to, PENDING);
}

static void a_dead_letter_is_recorded_and_reported(void **state)
{
    (void)state;
    in_fixture(dead);
}

static void deferred(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_DEFERRED);
    assert_int_equal(f->sent.sequence, 1);
    assert_int_equal(get(f, "o-1").deferred_count, 1);
    assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(get(f, "o-1").deferred_count, 2);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    all = events_after(f, "o-1", 4);
    assert_int_equal(all->count, 2);
    assert_int_equal(all->rows[0].event, NOTE);
    assert_int_equal(all->rows[0].outcome, DET_OUTCOME_STAY);
    assert_int_equal(all->rows[1].event, NOTE);
    assert_string_equal(all->rows[1].cause, "");
}

static void deferred_events_are_taken_in_order_when_the_state_takes_them(void **state)
{
    (void)state;
    in_fixture(deferred);
}

static void too_many_deferred(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < DET_DEFERRED_MAX; i++)
        assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    assert_int_equal(send_kind(f, "o-1", NOTE), DET_ERR_LIMIT);
    assert_int_equal(f->error.code, DET_ERR_LIMIT);
    assert_int_equal(get(f, "o-1").deferred_count, DET_DEFERRED_MAX);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], DET_DEFERRED_MAX);
    assert_int_equal(f->control.incident.code, DET_ERR_STOPPED);
}

static void deferred_events_are_limited_and_dead_after_a_stop(void **state)
{
    (void)state;
    in_fixture(too_many_deferred);
}

static void deferred_survive(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(get(f, "o-1").deferred_count, 1);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(get(f, "o-1").sequence, 4);
}

static void deferred_events_are_in_the_store(void **state)
{
    (void)state;
    in_fixture(deferred_survive);
}

static void batches(struct fixture *f)
{
    struct order_event touch = { .kind = TOUCH }, ping = { .kind = PING }, ship = { .kind = SHIP };
    const void *good[] = { &touch, &ping, &touch };
    const void *bad[] = { &touch, &ping, &ship };
    struct det_send_options options = { .event_id = "b-1" };
    struct order_data data;
    struct det_instance before, after;

    assert_int_equal(start(f, "o-1"), 0);
    before = get(f, "o-1");
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", bad, 3, &options, &f->sent, &f->error),
        DET_ERR_UNHANDLED);
    after = get(f, "o-1");
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, 3, &options, &f->sent, &f->error),
        0);
    assert_int_equal(f->sent.sequence, 3);
    assert_int_equal(f->sent.visit, 4);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, 3, &options, &f->sent, &f->error),
        0);
    assert_true(f->sent.is_duplicate);
    assert_int_equal(det_runtime_get(f->runtime, f->order, "o-1", &after, &data, NULL), 0);
    assert_int_equal(after.transition_count, 2);
    assert_int_equal(after.history_count, 2);
    assert_int_equal(data.updates, 1);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(timers(f, "o-1")->rows[0].visit, 4);
    assert_string_equal(events_after(f, "o-1", 0)->rows[2].event_id, "b-1");
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, 0, NULL, NULL, NULL),
        DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_send_all(
            f->runtime, f->order, "o-1", good, DET_BATCH_MAX + 1, NULL, NULL, NULL),
        DET_ERR_INVALID);
}

static void batch_of_moves(struct fixture *f)
{
    struct order_event ship = { .kind = SHIP }, cancel = { .kind = CANCEL };
    const void *both[] = { &ship, &cancel };
    struct det_instance order;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", both, 2, NULL, &f->sent, NULL), 0);
    order = get(f, "o-1");
    assert_int_equal(order.state, CANCELLED);
    assert_int_equal(order.history_count, 4);
    assert_int_equal(order.history[0], SHIPPED);
    assert_int_equal(order.history[1], PAID);
    assert_int_equal(order.history[2], CHARGING);
    assert_int_equal(timers(f, "o-1")->count, 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_memory_equal(order.history, get(f, "o-1").history, sizeof order.history);
}

static void the_moves_of_a_batch_are_in_the_history_one_by_one(void **state)
{
    (void)state;
    in_fixture(batch_of_moves);
}

static void a_batch_is_all_or_nothing(void **state)
{
    (void)state;
    in_fixture(batches);
}

static void unbound(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *bare = order_machine(false);
    struct order_event pay = { .kind = PAY };

    (void)state;
    assert_int_equal(
        det_runtime_start(f->runtime, bare, "o-1", NULL, NULL, NULL, &f->error), DET_ERR_UNBOUND);
    assert_int_equal(f->error.code, DET_ERR_UNBOUND);
    assert_non_null(strstr(f->error.text, "enter"));
    assert_int_equal(det_machine_bind_hook(bare, "enter", order_enter), 0);
    assert_int_equal(det_runtime_start(f->runtime, bare, "o-1", NULL, NULL, NULL, &f->error), 0);
    assert_int_equal(
        det_runtime_send(f->runtime, bare, "o-1", &pay, NULL, NULL, &f->error), DET_ERR_UNBOUND);
    assert_non_null(strstr(f->error.text, "can_pay"));
    assert_int_equal(det_machine_bind_guard(bare, "can_pay", order_can_pay), 0);
    assert_int_equal(det_machine_bind_hook(bare, "check", order_check), 0);
    assert_int_equal(det_machine_bind_hook(bare, "leave", order_leave), 0);
    assert_int_equal(
        det_runtime_send(f->runtime, bare, "o-1", &pay, NULL, NULL, &f->error), DET_ERR_UNBOUND);
    assert_non_null(strstr(f->error.text, "charge_card"));
    pay.kind = PING;
    assert_int_equal(
        det_runtime_send(f->runtime, bare, "o-1", &pay, NULL, NULL, &f->error), DET_ERR_UNBOUND);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(bare);
    fixture_close(f);
}

static void unbound_function_refuses_the_send(void **state)
{
    unbound(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_id_gives_the_first_answer_again),
        cmocka_unit_test(as_many_event_ids_are_remembered_as_the_store_keeps),
        cmocka_unit_test(a_failed_send_does_not_use_up_its_event_id),
        cmocka_unit_test(ignored_event_only_increments_a_count),
        cmocka_unit_test(a_dead_letter_is_recorded_and_reported),
        cmocka_unit_test(deferred_events_are_taken_in_order_when_the_state_takes_them),
        cmocka_unit_test(deferred_events_are_limited_and_dead_after_a_stop),
        cmocka_unit_test(deferred_events_are_in_the_store),
        cmocka_unit_test(the_moves_of_a_batch_are_in_the_history_one_by_one),
        cmocka_unit_test(a_batch_is_all_or_nothing),
        cmocka_unit_test(unbound_function_refuses_the_send),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
