/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* send_test.c - the contract of start, send and stop: every answer, every error and its fields. */
#include "runtime/runtime_test.h"

static void not_found(struct fixture *f)
{
    struct det_instance instance;

    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_NOT_FOUND);
    assert_int_equal(f->error.code, DET_ERR_NOT_FOUND);
    assert_non_null(strstr(f->error.text, "o-1"));
    assert_int_equal(
        det_runtime_stop(f->runtime, f->order, "o-1", NULL, NULL, NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_get(f->runtime, f->order, "o-1", &instance, NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(counts(f).instances, 0);
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
}

static void an_instance_that_was_not_started_is_not_found(void **state)
{
    (void)state;
    in_fixture(not_found);
}

static void twice(struct fixture *f)
{
    struct order_data data = { .cents = 5, .card = "1" }, found;
    struct det_send_options options = { .event_id = "start-1", .error = &f->error };
    struct det_instance instance;

    assert_int_equal(det_runtime_start(f->runtime, f->order, "o-1", &data, &options, &f->sent), 0);
    assert_false(f->sent.is_duplicate);
    assert_int_equal(f->sent.visit, 1);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(det_runtime_start(f->runtime, f->order, "o-1", &data, &options, &f->sent), 0);
    assert_true(f->sent.is_duplicate);
    assert_int_equal(f->sent.state, PENDING);
    assert_int_equal(f->sent.sequence, 0);
    assert_int_equal(start(f, "o-1"), DET_ERR_EXISTS);
    assert_int_equal(f->error.code, DET_ERR_EXISTS);
    options.event_id = "start-2";
    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-1", &data, &options, NULL), DET_ERR_EXISTS);
    assert_int_equal(det_runtime_get(f->runtime, f->order, "o-1", &instance, &found), 0);
    assert_int_equal(found.cents, 5);
    assert_int_equal(instance.state, CANCELLED);
}

static void a_second_start_is_refused_unless_it_is_the_first_again(void **state)
{
    (void)state;
    in_fixture(twice);
}

static void data_checked(struct fixture *f)
{
    struct order_data data = { .card = "\xff" };
    struct det_send_options options = { .error = &f->error };

    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-1", &data, &options, NULL), DET_ERR_INVALID);
    assert_int_equal(f->error.code, DET_ERR_INVALID);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_NOT_FOUND);
}

static void data_that_cannot_be_recorded_does_not_start_an_instance(void **state)
{
    (void)state;
    in_fixture(data_checked);
}

static void invalid_events(struct fixture *f)
{
    struct order_event bad = { .kind = PAY, .as.pay = { .card = "\xc3" } };
    struct det_send_options options = { .error = &f->error };

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", 99), DET_ERR_INVALID);
    assert_int_equal(send_kind(f, "o-1", CHARGED), DET_ERR_INVALID);
    assert_non_null(strstr(f->error.text, "internal"));
    assert_int_equal(
        det_runtime_send(f->runtime, f->order, "o-1", &bad, &options, NULL), DET_ERR_INVALID);
    assert_int_equal(f->error.code, DET_ERR_INVALID);
    assert_int_equal(get(f, "o-1").sequence, 0);
}

static void foreign_internal_and_malformed_events_are_invalid(void **state)
{
    (void)state;
    in_fixture(invalid_events);
}

static void ids(struct fixture *f)
{
    char longest[DET_ID_MAX + 2];

    memset(longest, 'x', sizeof longest);
    longest[DET_ID_MAX] = 0;
    assert_int_equal(start(f, longest), 0);
    longest[DET_ID_MAX] = 'x';
    longest[DET_ID_MAX + 1] = 0;
    assert_int_equal(start(f, longest), DET_ERR_INVALID);
    assert_int_equal(start(f, ""), DET_ERR_INVALID);
    assert_int_equal(start(f, "a b"), DET_ERR_INVALID);
    assert_int_equal(start(f, "a/b"), DET_ERR_INVALID);
    assert_int_equal(start(f, "Az09._:-"), 0);
    assert_int_equal(send_kind(f, "a/b", PING), DET_ERR_INVALID);
    assert_int_equal(
        send_with(f, "Az09._:-", PING, (struct det_send_options){ .event_id = "a/b" }),
        DET_ERR_INVALID);
    assert_int_equal(
        send_with(f, "Az09._:-", PING, (struct det_send_options){ .event_id = "" }),
        DET_ERR_INVALID);
}

static void ids_have_few_characters_and_a_length(void **state)
{
    (void)state;
    in_fixture(ids);
}

static void refused(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.guard_says_no = true;
    f->control.trace[0] = 0;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_REFUSED);
    assert_string_equal(f->error.action, "can_pay");
    assert_string_equal(f->error.state, "PENDING");
    assert_string_equal(f->error.event, "PAY");
    assert_string_equal(f->control.trace, "");
    assert_int_equal(f->control.event.as.pay.cents, 1999);
    assert_int_equal(get(f, "o-1").sequence, 0);
    assert_int_equal(counts(f).refused, 1);
}

static void a_guard_refuses_before_any_hook_runs(void **state)
{
    (void)state;
    in_fixture(refused);
}

static void hooks_refuse(struct fixture *f)
{
    struct det_instance before, after;
    struct listed_timers armed;

    assert_int_equal(start(f, "o-1"), 0);
    before = get(f, "o-1");
    armed = *timers(f, "o-1");
    f->control.exit_result = -5;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    assert_string_equal(f->error.action, "leave");
    f->control.exit_result = 0;
    f->control.entry_result = 9;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    assert_string_equal(f->error.action, "enter");
    assert_int_equal(f->error.cause, 9);
    settle(f);
    after = get(f, "o-1");
    assert_memory_equal(&before, &after, sizeof before);
    assert_memory_equal(&armed, timers(f, "o-1"), sizeof armed);
    assert_int_equal(effects(f, "o-1")->count, 0);
    assert_int_equal(f->control.effects, 0);
}

static void every_hook_may_refuse_and_leaves_nothing_behind(void **state)
{
    (void)state;
    in_fixture(hooks_refuse);
}

static void slow_hook(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.hook_takes = 5 * DET_SECOND + 1;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_TIMEOUT);
    assert_string_equal(f->error.action, "enter");
    assert_string_equal(f->error.state, "PENDING");
    assert_int_equal(f->error.waited, 5 * DET_SECOND + 1);
    assert_int_equal(get(f, "o-1").sequence, 0);
    f->control.hook_takes = 5 * DET_SECOND;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    fixture_reopen(f, (struct det_runtime_options){ .hook_deadline = DET_NEVER });
    assert_int_equal(start(f, "o-2"), 0);
    f->control.hook_takes = DET_MINUTE;
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
}

static void hooks_that_take_too_long_are_refused(void **state)
{
    (void)state;
    in_fixture(slow_hook);
}

static void conditions(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(
        send_with(f, "o-1", PING, (struct det_send_options){ .expected = 7 }), DET_ERR_CONFLICT);
    assert_int_equal(f->error.expected, 7);
    assert_int_equal(f->error.actual, 1);
    assert_int_equal(
        send_with(f, "o-1", PING, (struct det_send_options){ .visit = 9 }), DET_ERR_CONFLICT);
    assert_int_equal(f->error.expected, 9);
    assert_int_equal(f->error.actual, 1);
    assert_int_equal(
        send_with(f, "o-1", PING, (struct det_send_options){ .expected = 1, .visit = 1 }), 0);
    assert_int_equal(f->sent.sequence, 2);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->sent.visit, 4);
    assert_int_equal(
        send_with(f, "o-1", PING, (struct det_send_options){ .visit = 1 }), DET_ERR_CONFLICT);
}

static void a_send_may_depend_on_the_sequence_and_the_visit(void **state)
{
    (void)state;
    in_fixture(conditions);
}

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
    assert_int_equal(det_runtime_stop(f->runtime, f->order, "o-1", NULL, NULL, NULL), 0);
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
    assert_int_equal(f->sent.outcome, DET_IGNORED);
    assert_int_equal(f->sent.sequence, 0);
    assert_int_equal(f->sent.state, PENDING);
    assert_int_equal(counts(f).unhandled, 1);
    assert_int_equal(events_after(f, "o-1", 0)->count, 0);
}

static void an_event_to_be_ignored_leaves_nothing_but_a_count(void **state)
{
    (void)state;
    in_fixture(ignored);
}

static void dead(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", JUNK), 0);
    assert_int_equal(f->sent.outcome, DET_DEAD_LETTER);
    assert_int_equal(f->sent.sequence, 1);
    assert_int_equal(f->sent.visit, 1);
    assert_int_equal(f->control.trouble_counts[DET_TROUBLE_EVENT_DEAD], 1);
    assert_string_equal(f->control.trouble.name, "JUNK");
    assert_string_equal(f->control.trouble.instance, "o-1");
    assert_int_equal(f->control.trouble.code, DET_ERR_UNHANDLED);
    all = events_after(f, "o-1", 0);
    assert_int_equal(all->count, 1);
    assert_int_equal(all->rows[0].outcome, DET_DEAD_LETTER);
    assert_int_equal(all->rows[0].from, PENDING);
    assert_int_equal(all->rows[0].to, PENDING);
}

static void a_dead_letter_is_recorded_and_told(void **state)
{
    (void)state;
    in_fixture(dead);
}

static void deferred(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", NOTE), 0);
    assert_int_equal(f->sent.outcome, DET_DEFERRED);
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
    assert_int_equal(all->rows[0].outcome, DET_STAY);
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
    assert_int_equal(det_runtime_stop(f->runtime, f->order, "o-1", NULL, NULL, NULL), 0);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(f->control.trouble_counts[DET_TROUBLE_EVENT_DEAD], DET_DEFERRED_MAX);
    assert_int_equal(f->control.trouble.code, DET_ERR_STOPPED);
}

static void deferred_events_are_bounded_and_a_stop_makes_them_dead_letters(void **state)
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
    struct det_send_options options = { .event_id = "b-1", .error = &f->error };
    struct order_data data;
    struct det_instance before, after;

    assert_int_equal(start(f, "o-1"), 0);
    before = get(f, "o-1");
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", bad, 3, &options, &f->sent),
        DET_ERR_UNHANDLED);
    after = get(f, "o-1");
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, 3, &options, &f->sent), 0);
    assert_int_equal(f->sent.sequence, 3);
    assert_int_equal(f->sent.visit, 4);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, 3, &options, &f->sent), 0);
    assert_true(f->sent.is_duplicate);
    assert_int_equal(det_runtime_get(f->runtime, f->order, "o-1", &after, &data), 0);
    assert_int_equal(after.transition_count, 2);
    assert_int_equal(after.history_count, 2);
    assert_int_equal(data.updates, 1);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(timers(f, "o-1")->rows[0].visit, 4);
    assert_string_equal(events_after(f, "o-1", 0)->rows[2].event_id, "b-1");
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, 0, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_send_all(f->runtime, f->order, "o-1", good, DET_BATCH_MAX + 1, NULL, NULL),
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
    assert_int_equal(det_runtime_send_all(f->runtime, f->order, "o-1", both, 2, NULL, &f->sent), 0);
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
    struct det_send_options options = { .error = &f->error };
    struct order_event pay = { .kind = PAY };

    (void)state;
    assert_int_equal(
        det_runtime_start(f->runtime, bare, "o-1", NULL, &options, NULL), DET_ERR_UNBOUND);
    assert_int_equal(f->error.code, DET_ERR_UNBOUND);
    assert_non_null(strstr(f->error.text, "enter"));
    assert_int_equal(det_machine_bind_hook(bare, "enter", order_enter), 0);
    assert_int_equal(det_runtime_start(f->runtime, bare, "o-1", NULL, &options, NULL), 0);
    assert_int_equal(
        det_runtime_send(f->runtime, bare, "o-1", &pay, &options, NULL), DET_ERR_UNBOUND);
    assert_non_null(strstr(f->error.text, "can_pay"));
    assert_int_equal(det_machine_bind_guard(bare, "can_pay", order_can_pay), 0);
    assert_int_equal(det_machine_bind_hook(bare, "check", order_check), 0);
    assert_int_equal(det_machine_bind_hook(bare, "leave", order_leave), 0);
    assert_int_equal(
        det_runtime_send(f->runtime, bare, "o-1", &pay, &options, NULL), DET_ERR_UNBOUND);
    assert_non_null(strstr(f->error.text, "charge_card"));
    pay.kind = PING;
    assert_int_equal(
        det_runtime_send(f->runtime, bare, "o-1", &pay, &options, NULL), DET_ERR_UNBOUND);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(bare);
    fixture_close(f);
}

static void a_name_without_a_function_refuses_and_nothing_happened(void **state)
{
    unbound(state);
}

static void keeps(struct fixture *f)
{
    struct det_instance instance;
    struct order_data data;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(det_runtime_get(f->runtime, f->order, "o-1", &instance, &data), 0);
    assert_int_equal(data.cents, 1999);
    assert_string_equal(data.card, "4242");
    settle(f);
    assert_int_equal(f->control.data.cents, 1999);
    assert_int_equal(f->control.event.as.pay.cents, 1999);
}

static void data_is_computed_from_the_event_and_seen_by_the_effect(void **state)
{
    (void)state;
    in_fixture(keeps);
}

static int stop_at_two(void *context, const struct det_event_record *row)
{
    (void)context;
    return row->sequence == 2 ? 42 : 0;
}

static void walks(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < 70; i++)
        assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(events_after(f, "o-1", 0)->count, 64);
    assert_int_equal(events_after(f, "o-1", 0)->rows[0].sequence, 7);
    assert_int_equal(events_after(f, "o-1", 68)->count, 2);
    assert_int_equal(events_after(f, "o-1", 70)->count, 0);
    assert_int_equal(get(f, "o-1").history_count, 16);
    assert_int_equal(get(f, "o-1").transition_count, 70);
    assert_int_equal(start(f, "o-2"), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_kind(f, "o-2", PING), 0);
    assert_int_equal(det_runtime_events(f->runtime, f->order, "o-2", 0, stop_at_two, NULL), 42);
    assert_int_equal(
        det_runtime_events(f->runtime, f->order, "none", 0, stop_at_two, NULL), DET_ERR_NOT_FOUND);
}

static void events_are_walked_oldest_first_and_the_walk_can_be_ended(void **state)
{
    (void)state;
    in_fixture(walks);
}

static int count_instances(void *context, const char *instance, unsigned in_state)
{
    (void)instance;
    ((unsigned *)context)[in_state]++;
    return 0;
}

static void lists(struct fixture *f)
{
    unsigned all[5] = { 0 }, some[5] = { 0 };

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(start(f, "o-3"), 0);
    assert_int_equal(send_kind(f, "o-3", CANCEL), 0);
    assert_int_equal(det_runtime_instances(f->runtime, f->order, -1, count_instances, all), 0);
    assert_int_equal(all[PENDING], 2);
    assert_int_equal(all[CANCELLED], 1);
    assert_int_equal(
        det_runtime_instances(f->runtime, f->order, CANCELLED, count_instances, some), 0);
    assert_int_equal(some[PENDING], 0);
    assert_int_equal(some[CANCELLED], 1);
}

static void instances_are_listed_by_state(void **state)
{
    (void)state;
    in_fixture(lists);
}

static void observed(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .observe = order_observe });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(f->control.notes, 1);
    assert_int_equal(f->control.note.event, UINT16_MAX);
    assert_int_equal(f->control.note.outcome, DET_GOTO);
    assert_int_equal(f->control.note.visit, 1);
    assert_null(f->control.note.event_value);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->control.notes, 2);
    assert_int_equal(f->control.note.sequence, 1);
    assert_ptr_equal(f->control.note.machine, f->order);
    assert_string_equal(f->control.note.instance, "o-1");
    assert_int_equal(send_kind(f, "o-1", SHIP), DET_ERR_UNHANDLED);
    assert_int_equal(f->control.notes, 2);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(f->control.notes, 4);
    assert_string_equal(f->control.cause, "order/o-1/2/0");
    assert_int_equal(det_runtime_stop(f->runtime, f->order, "o-1", "x", NULL, NULL), 0);
    assert_int_equal(f->control.note.event, UINT16_MAX);
    assert_int_equal(f->control.note.outcome, DET_STOP);
    fixture_close(f);
}

static void the_observer_hears_of_every_commit_and_of_nothing_else(void **state)
{
    observed(state);
}

struct inner {
    struct fixture *f;
    int to_self, to_other, self_get;
    struct det_sent sent;
};

static void send_inside(void *context)
{
    struct inner *inner = context;
    struct order_event ping = { .kind = PING };
    struct det_instance instance;

    inner->to_self =
        det_runtime_send(inner->f->runtime, inner->f->order, "o-1", &ping, NULL, &inner->sent);
    inner->to_other =
        det_runtime_send(inner->f->runtime, inner->f->order, "o-2", &ping, NULL, &inner->sent);
    inner->self_get = det_runtime_get(inner->f->runtime, inner->f->order, "o-1", &instance, NULL);
}

static void busy(struct fixture *f)
{
    struct inner inner = { .f = f };

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    f->control.effect_result = DET_DONE;
    f->control.in_guard = send_inside;
    f->control.context = &inner;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(inner.to_self, DET_ERR_BUSY);
    assert_int_equal(inner.to_other, 0);
    assert_int_equal(inner.self_get, 0);
    f->control.in_guard = NULL;
}

static void user_code_cannot_send_to_its_own_instance_but_may_look_at_it(void **state)
{
    (void)state;
    in_fixture(busy);
}

static void options(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct det_runtime *second;
    struct det_runtime_options bad[] = {
        { .world = NULL },
        { .world = world, .shards = 3 },
        { .world = world, .shards = 2048 },
        { .world = world, .history_kept = DET_HISTORY_MAX + 1 },
        { .world = world, .pool_threads = 100000 },
        { .world = world, .hook_deadline = -1 },
        { .world = world, .effects.jitter_percent = 5000 },
    };

    (void)state;
    assert_int_equal(
        det_runtime_open(
            f->store, &(struct det_runtime_options){ .world = world }, &second, &f->error),
        DET_ERR_BUSY);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f->error.code = 0;
        assert_int_equal(det_runtime_open(f->store, &bad[i], &second, &f->error), DET_ERR_INVALID);
        assert_int_equal(f->error.code, DET_ERR_INVALID);
    }
    fixture_close(f);
}

static void wrong_options_and_a_second_runtime_are_refused(void **state)
{
    options(state);
}

static void same_name(struct fixture *f)
{
    struct det_machine *other = order_machine(true);

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_runtime_serve(f->runtime, other, &f->error), DET_ERR_INVALID);
    assert_int_equal(f->error.code, DET_ERR_INVALID);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    det_machine_close(other);
}

static void a_runtime_serves_one_definition_of_a_name(void **state)
{
    (void)state;
    in_fixture(same_name);
}

static void other_shape(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *other;
    struct det_machine_builder *b;

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_machine_builder_open("order", NULL, &b), 0);
    order_names(b, true);
    order_rows(b);
    det_machine_builder_data(b, &order_data_record);
    det_machine_builder_version(b, 2);
    other = built(b);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, other, &f->error), DET_ERR_VERSION);
    assert_int_equal(f->error.code, DET_ERR_VERSION);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(other);
    fixture_close(f);
}

static void stored_instances_of_another_version_are_refused(void **state)
{
    other_shape(state);
}

static void stops(struct fixture *f)
{
    char reason[DET_REASON_MAX + 2];

    memset(reason, 'r', sizeof reason);
    reason[DET_REASON_MAX + 1] = 0;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(
        det_runtime_stop(f->runtime, f->order, "o-1", reason, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_stop(f->runtime, f->order, "o-1", "\xff", NULL, NULL), DET_ERR_INVALID);
    reason[DET_REASON_MAX] = 0;
    assert_int_equal(det_runtime_stop(f->runtime, f->order, "o-1", reason, NULL, NULL), 0);
    assert_string_equal(get(f, "o-1").reason, reason);
    assert_int_equal(timers(f, "o-1")->count, 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_true(get(f, "o-1").is_stopped);
    assert_string_equal(get(f, "o-1").reason, reason);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_STOPPED);
    advance(f, DET_HOUR);
    assert_int_equal(get(f, "o-1").sequence, 1);
}

static void a_stop_is_durable_with_its_reason_and_ends_the_timers(void **state)
{
    (void)state;
    in_fixture(stops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instance_that_was_not_started_is_not_found),
        cmocka_unit_test(a_second_start_is_refused_unless_it_is_the_first_again),
        cmocka_unit_test(data_that_cannot_be_recorded_does_not_start_an_instance),
        cmocka_unit_test(foreign_internal_and_malformed_events_are_invalid),
        cmocka_unit_test(ids_have_few_characters_and_a_length),
        cmocka_unit_test(a_guard_refuses_before_any_hook_runs),
        cmocka_unit_test(every_hook_may_refuse_and_leaves_nothing_behind),
        cmocka_unit_test(hooks_that_take_too_long_are_refused),
        cmocka_unit_test(a_send_may_depend_on_the_sequence_and_the_visit),
        cmocka_unit_test(an_event_id_gives_the_first_answer_again),
        cmocka_unit_test(as_many_event_ids_are_remembered_as_the_store_keeps),
        cmocka_unit_test(a_failed_send_does_not_use_up_its_event_id),
        cmocka_unit_test(an_event_to_be_ignored_leaves_nothing_but_a_count),
        cmocka_unit_test(a_dead_letter_is_recorded_and_told),
        cmocka_unit_test(deferred_events_are_taken_in_order_when_the_state_takes_them),
        cmocka_unit_test(deferred_events_are_bounded_and_a_stop_makes_them_dead_letters),
        cmocka_unit_test(deferred_events_are_in_the_store),
        cmocka_unit_test(a_batch_is_all_or_nothing),
        cmocka_unit_test(the_moves_of_a_batch_are_in_the_history_one_by_one),
        cmocka_unit_test(a_name_without_a_function_refuses_and_nothing_happened),
        cmocka_unit_test(data_is_computed_from_the_event_and_seen_by_the_effect),
        cmocka_unit_test(events_are_walked_oldest_first_and_the_walk_can_be_ended),
        cmocka_unit_test(instances_are_listed_by_state),
        cmocka_unit_test(the_observer_hears_of_every_commit_and_of_nothing_else),
        cmocka_unit_test(user_code_cannot_send_to_its_own_instance_but_may_look_at_it),
        cmocka_unit_test(wrong_options_and_a_second_runtime_are_refused),
        cmocka_unit_test(a_runtime_serves_one_definition_of_a_name),
        cmocka_unit_test(stored_instances_of_another_version_are_refused),
        cmocka_unit_test(a_stop_is_durable_with_its_reason_and_ends_the_timers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
