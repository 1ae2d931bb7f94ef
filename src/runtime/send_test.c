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
        det_runtime_cancel(f->runtime, f->order, "o-1", NULL, NULL, NULL, NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_get(f->runtime, f->order, "o-1", &instance, NULL, NULL), DET_ERR_NOT_FOUND);
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
    struct det_send_options options = { .event_id = "start-1" };
    struct det_instance instance;

    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-1", &data, &options, &f->sent, &f->error), 0);
    assert_false(f->sent.is_duplicate);
    assert_int_equal(f->sent.visit, 1);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-1", &data, &options, &f->sent, &f->error), 0);
    assert_true(f->sent.is_duplicate);
    assert_int_equal(f->sent.state, PENDING);
    assert_int_equal(f->sent.sequence, 0);
    assert_int_equal(start(f, "o-1"), DET_ERR_EXISTS);
    assert_int_equal(f->error.code, DET_ERR_EXISTS);
    options.event_id = "start-2";
    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-1", &data, &options, NULL, &f->error),
        DET_ERR_EXISTS);
    assert_int_equal(det_runtime_get(f->runtime, f->order, "o-1", &instance, &found, NULL), 0);
    assert_int_equal(found.cents, 5);
    assert_int_equal(instance.state, CANCELLED);
}

static void second_start_is_refused_unless_repeated(void **state)
{
    (void)state;
    in_fixture(twice);
}

static void data_checked(struct fixture *f)
{
    struct order_data data = { .card = "\xff" };

    assert_int_equal(
        det_runtime_start(f->runtime, f->order, "o-1", &data, NULL, NULL, &f->error),
        DET_ERR_INVALID);
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

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", 99), DET_ERR_INVALID);
    assert_int_equal(send_kind(f, "o-1", CHARGED), DET_ERR_INVALID);
    assert_non_null(strstr(f->error.text, "internal"));
    assert_int_equal(
        det_runtime_send(f->runtime, f->order, "o-1", &bad, NULL, NULL, &f->error),
        DET_ERR_INVALID);
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
    f->control.guard_refuses = true;
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

static void every_hook_may_refuse_without_a_trace(void **state)
{
    (void)state;
    in_fixture(hooks_refuse);
}

static void slow_hook(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.hook_takes = 5 * DET_SECOND + 1;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_TIMEOUT);
    assert_string_equal(f->error.action, "check");
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

static void jump_ahead(void *context)
{
    struct fixture *f = context;

    det_sim_jump_wall(f->sim, DET_HOUR);
}

static void jump_back(void *context)
{
    struct fixture *f = context;

    det_sim_jump_wall(f->sim, -DET_HOUR);
}

static void clock_is_set(struct fixture *f)
{
    f->control.context = f;
    f->control.in_guard = jump_ahead;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    f->control.in_guard = jump_back;
    f->control.hook_takes = 5 * DET_SECOND + 1;
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-2", PAY), DET_ERR_TIMEOUT);
    assert_int_equal(f->error.waited, 5 * DET_SECOND + 1);
}

static void clock_change_does_not_expire_the_hook_deadline(void **state)
{
    (void)state;
    in_fixture(clock_is_set);
}

static void run_out_of_time(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.trace[0] = 0;
    f->control.hook_takes = 6 * DET_SECOND;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_TIMEOUT);
    assert_string_equal(f->error.action, "check");
    /* The entry hook of the next state is not called. */
    assert_string_equal(f->control.trace, "exit hook");
}

static void past_the_deadline_of_hooks_no_further_one_runs(void **state)
{
    (void)state;
    in_fixture(run_out_of_time);
}

static void conditions(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(
        send_with(f, "o-2", PING, (struct det_send_options){ .expected = DET_EXPECT_NO_EVENT }), 0);
    assert_int_equal(
        send_with(f, "o-2", PING, (struct det_send_options){ .expected = DET_EXPECT_NO_EVENT }),
        DET_ERR_CONFLICT);
    assert_int_equal(f->error.expected, 0);
    assert_int_equal(f->error.actual, 1);
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

static void stops(struct fixture *f)
{
    char reason[DET_REASON_MAX + 2];

    memset(reason, 'r', sizeof reason);
    reason[DET_REASON_MAX + 1] = 0;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", reason, NULL, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", "\xff", NULL, NULL, NULL), DET_ERR_INVALID);
    reason[DET_REASON_MAX] = 0;
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", reason, NULL, NULL, NULL), 0);
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
        cmocka_unit_test(second_start_is_refused_unless_repeated),
        cmocka_unit_test(data_that_cannot_be_recorded_does_not_start_an_instance),
        cmocka_unit_test(foreign_internal_and_malformed_events_are_invalid),
        cmocka_unit_test(ids_have_few_characters_and_a_length),
        cmocka_unit_test(a_guard_refuses_before_any_hook_runs),
        cmocka_unit_test(every_hook_may_refuse_without_a_trace),
        cmocka_unit_test(hooks_that_take_too_long_are_refused),
        cmocka_unit_test(clock_change_does_not_expire_the_hook_deadline),
        cmocka_unit_test(past_the_deadline_of_hooks_no_further_one_runs),
        cmocka_unit_test(a_send_may_depend_on_the_sequence_and_the_visit),
        cmocka_unit_test(a_stop_is_durable_with_its_reason_and_ends_the_timers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
