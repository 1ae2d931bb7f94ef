/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* passive_test.c - a passive runtime: no background work. */
#include "runtime/runtime_test.h"

static void charging(struct fixture *f)
{
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true });
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(get(f, "o-1").state, CHARGING);
}

static void leaves_work(struct fixture *f)
{
    charging(f);
    advance(f, DET_HOUR);
    assert_int_equal(det_runtime_settle(f->runtime, 0), 0);
    assert_int_equal(f->control.effects, 0);
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(get(f, "o-1").effects_pending, 1);
    assert_int_equal(counts(f).timeouts_fired, 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(f->control.effects, 0);
}

static void timers_and_effects_wait_in_the_store_of_a_passive_runtime(void **state)
{
    (void)state;
    in_fixture(leaves_work);
}

static void hands_over(struct fixture *f)
{
    charging(f);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    settle(f);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
}

static void active_runtime_completes_the_work_of_a_passive_one(void **state)
{
    (void)state;
    in_fixture(hands_over);
}

static void loads_nothing(struct fixture *f)
{
    charging(f);
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    assert_int_equal(counts(f).instances, 0);
    /* The due timer and the effect come into memory with it, and stay as they are. */
    advance(f, DET_HOUR);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(f->control.effects, 0);
}

static void a_passive_runtime_loads_only_what_it_is_asked_for(void **state)
{
    (void)state;
    in_fixture(loads_nothing);
}

static void asks_by_name(struct fixture *f)
{
    struct det_machine *named = order_machine(false);
    struct order_event pay = { .kind = PAY, .as.pay = { .cents = 5, .card = "1" } };

    /* The functions of the transition are bound, the effect stays a name. */
    assert_int_equal(det_machine_bind_guard(named, "can_pay", order_can_pay), 0);
    assert_int_equal(det_machine_bind_hook(named, "check", order_check), 0);
    assert_int_equal(det_machine_bind_hook(named, "leave", order_leave), 0);
    assert_int_equal(det_machine_bind_hook(named, "enter", order_enter), 0);
    assert_int_equal(det_machine_bind_update(named, "count", order_count), 0);
    assert_int_equal(det_machine_bind_fill(named, "since", order_since), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_start(f->runtime, named, "o-1", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(
        det_runtime_send(f->runtime, named, "o-1", &pay, NULL, NULL, NULL), DET_ERR_UNBOUND);
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true });
    assert_int_equal(det_runtime_send(f->runtime, named, "o-1", &pay, NULL, NULL, NULL), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(named);
}

static void passive_runtime_accepts_unbound_effects(void **state)
{
    (void)state;
    in_fixture(asks_by_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_and_effects_wait_in_the_store_of_a_passive_runtime),
        cmocka_unit_test(active_runtime_completes_the_work_of_a_passive_one),
        cmocka_unit_test(a_passive_runtime_loads_only_what_it_is_asked_for),
        cmocka_unit_test(passive_runtime_accepts_unbound_effects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
