/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timer_retry_test.c - a timer whose event is not accepted has attempts, which the store counts,
 * and is a dead letter after the last one, until it is retried; in every store.
 *
 *     A --T after a second, asks a hook and a guard--> B */
#include "runtime/stores_test.h"

#define ATTEMPTS 8

enum { T, LEAVE };

static int ask(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;

    (void)data;
    (void)event;
    control->hooks++;
    return control->hook_result;
}

static bool may(const struct det_move *move, const void *data, const void *event)
{
    (void)data;
    (void)event;
    return !((struct order_control *)move->user)->guard_refuses;
}

static struct det_machine *asking_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("asking", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "T" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "LEAVE" });
    det_machine_builder_hook(b, "ask", ask);
    det_machine_builder_guard(b, "may", may);
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("A"),
                                 .events = DET_LIST("T"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "B",
                                 .guard = "may",
                                 .hook = "ask" });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("A"),
                                 .events = DET_LIST("LEAVE"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "B" });
    det_machine_builder_after(
        b, DET_LIST("A"), &(struct det_timeout_row){ .after = DET_SECOND, .event = "T" });
    return built(b);
}

static void assert_dead(struct fixture *f, uint32_t attempts, int code)
{
    assert_true(inspect(f));
    assert_true(record.is_dead);
    assert_int_equal(record.attempts, attempts);
    assert_int_equal(record.last_error, code);
    assert_int_equal(get(f, "o-1").state, 0);
}

/* The case of a poison timer: the hook fails for 20 seconds. */
static void fail_and_come_back(struct fixture *f)
{
    f->control.hook_result = DET_ERR_IO;
    advance(f, 21 * DET_SECOND);
    assert_int_equal(f->control.hooks, ATTEMPTS);
    assert_dead(f, ATTEMPTS, DET_ERR_ACTION_FAILED);
    assert_string_equal(reason, "asking o-1: ask failed with IO");
    assert_true(f->control.incident.is_dead);
    assert_int_equal(f->control.incident.attempt, ATTEMPTS);
    assert_int_equal(counts(f).timeouts_rejected, 1);
    /* Its dependency is available again, but it is not retried automatically, also not after a
     * restart. */
    f->control.hook_result = 0;
    advance(f, DET_DAY);
    restart(f, options);
    advance(f, DET_DAY);
    assert_int_equal(f->control.hooks, ATTEMPTS);
    assert_dead(f, ATTEMPTS, DET_ERR_ACTION_FAILED);
    assert_int_equal(
        det_runtime_retry(f->runtime, f->order, "o-1", "timer/none", &f->error), DET_ERR_NOT_FOUND);
    assert_int_equal(det_runtime_retry(f->runtime, f->order, "o-1", "timer/", &f->error), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, 1);
    assert_false(inspect(f));
    assert_int_equal(counts(f).timeouts_fired, 1);
}

static void a_timer_whose_hook_fails_is_a_dead_letter_and_can_be_retried(void **state)
{
    (void)state;
    in_each_store(asking_machine, fail_and_come_back);
}

static void count_on(struct fixture *f)
{
    f->control.hook_result = DET_ERR_IO;
    advance(f, DET_SECOND);
    advance(f, 350 * DET_MILLISECOND);
    assert_int_equal(f->control.hooks, 3);
    restart(f, options);
    assert_true(inspect(f));
    assert_int_equal(record.attempts, 3);
    assert_int_equal(record.last_error, DET_ERR_ACTION_FAILED);
    assert_true(record.next > record.due);
    advance(f, DET_HOUR);
    assert_int_equal(f->control.hooks, ATTEMPTS);
    assert_dead(f, ATTEMPTS, DET_ERR_ACTION_FAILED);
}

static void attempts_continue_after_a_restart(void **state)
{
    (void)state;
    in_each_store(asking_machine, count_on);
}

static void refuse(struct fixture *f)
{
    f->control.guard_refuses = true;
    advance(f, DET_HOUR);
    assert_int_equal(f->control.incidents, 1);
    assert_dead(f, 1, DET_ERR_REFUSED);
    f->control.guard_refuses = false;
    assert_int_equal(
        det_runtime_retry(f->runtime, f->order, "o-1", "asking/o-1/timer/", &f->error), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, 1);
}

static void a_timer_that_a_guard_refuses_is_a_dead_letter(void **state)
{
    (void)state;
    in_each_store(asking_machine, refuse);
}

static void leave(struct fixture *f)
{
    f->control.guard_refuses = true;
    advance(f, DET_HOUR);
    assert_dead(f, 1, DET_ERR_REFUSED);
    assert_int_equal(send_kind(f, "o-1", LEAVE), 0);
    assert_false(inspect(f));
    restart(f, options);
    assert_false(inspect(f));
    assert_int_equal(
        det_runtime_retry(f->runtime, f->order, "o-1", "timer/", &f->error), DET_ERR_NOT_FOUND);
}

static void dead_timer_is_removed_with_its_visit(void **state)
{
    (void)state;
    in_each_store(asking_machine, leave);
}

/* It has not counted, and what it was short of is there again. */
static void assert_fires_at_last(struct fixture *f)
{
    assert_false(f->control.incident.is_dead);
    if (inspect(f))
        assert_int_equal(record.attempts, 0);
    advance(f, DET_HOUR);
    assert_int_equal(get(f, "o-1").state, 1);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(counts(f).timeouts_rejected, 0);
}

static void assert_not_fired(struct fixture *f)
{
    assert_int_equal(get(f, "o-1").state, 0);
}

static void allocation_failure_is_not_a_timer_attempt(void **state)
{
    (void)state;
    each_allocation_fails(
        &(struct turn){ asking_machine, assert_not_fired, DET_SECOND, assert_fires_at_last });
}

/* For longer than all attempts would take. */
static void store_outage_is_not_a_timer_attempt(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench, asking_machine, "shared");
    det_shared_fail(bench.f->store, UINT32_MAX, true);
    advance(bench.f, DET_HOUR);
    det_shared_fail(bench.f->store, 0, true);
    assert_true(inspect(bench.f));
    assert_fires_at_last(bench.f);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_whose_hook_fails_is_a_dead_letter_and_can_be_retried),
        cmocka_unit_test(attempts_continue_after_a_restart),
        cmocka_unit_test(a_timer_that_a_guard_refuses_is_a_dead_letter),
        cmocka_unit_test(dead_timer_is_removed_with_its_visit),
        cmocka_unit_test(allocation_failure_is_not_a_timer_attempt),
        cmocka_unit_test(store_outage_is_not_a_timer_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
