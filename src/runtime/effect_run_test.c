/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_run_test.c - effects: at least once, always with the same key, their product exactly once;
 * and what becomes of those that fail. */
#include "runtime/runtime_test.h"

static void pay(struct fixture *f, const char *id)
{
    assert_int_equal(start(f, id), 0);
    assert_int_equal(send_kind(f, id, PAY), 0);
}

static void called(struct fixture *f)
{
    pay(f, "o-1");
    settle(f);
    assert_int_equal(f->control.effects, 1);
    assert_key(f->control.key, "order/o-1/1/0");
    assert_int_equal(f->control.attempt, 1);
    assert_string_equal(f->control.move.machine, "order");
    assert_string_equal(f->control.move.instance, "o-1");
    assert_int_equal(f->control.move.sequence, 1);
    assert_int_equal(f->control.move.visit, 1);
    assert_int_equal(f->control.move.from, PENDING);
    assert_int_equal(f->control.move.to, CHARGING);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(counts(f).effects_done, 1);
    assert_int_equal(effects(f, "o-1")->count, 0);
}

static void an_effect_sees_its_transition_and_its_end_is_recorded(void **state)
{
    (void)state;
    in_fixture(called);
}

static void quiet(struct fixture *f)
{
    f->control.effect_result = DET_EFFECT_DONE;
    pay(f, "o-1");
    settle(f);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(get(f, "o-1").sequence, 1);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
}

static void an_effect_may_produce_nothing(void **state)
{
    (void)state;
    in_fixture(quiet);
}

static void backs_off(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){
        .effects = { .jitter_percent = UINT32_MAX, .attempts_max = 4 } });
    const struct listed_effects *listed;
    det_time began;

    (void)state;
    f->control.effect_failures = 9;
    pay(f, "o-1");
    began = get(f, "o-1").last_transition_at;
    settle(f);
    assert_int_equal(f->control.effects, 1);
    listed = effects(f, "o-1");
    assert_int_equal(listed->count, 1);
    assert_key(listed->key, "order/o-1/1/0");
    assert_string_equal(listed->first.name, "charge_card");
    assert_int_equal(listed->first.state, DET_EFFECT_STATE_WAITING);
    assert_int_equal(listed->first.attempts, 1);
    assert_int_equal(listed->first.last_error, DET_ERR_IO);
    assert_int_equal(listed->first.next, began + 100 * DET_MILLISECOND);
    advance(f, 100 * DET_MILLISECOND - 1);
    assert_int_equal(f->control.effects, 1);
    advance(f, 1);
    assert_int_equal(f->control.effects, 2);
    advance(f, 200 * DET_MILLISECOND);
    assert_int_equal(f->control.effects, 3);
    advance(f, 399 * DET_MILLISECOND);
    assert_int_equal(f->control.effects, 3);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EFFECT_FAILED], 3);
    advance(f, DET_MILLISECOND);
    assert_int_equal(f->control.effects, 4);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EFFECT_DEAD);
    assert_int_equal(f->control.incident.attempt, 4);
    assert_int_equal(f->control.incident.code, DET_ERR_IO);
    assert_key(f->control.incident_key, "order/o-1/1/0");
    assert_int_equal(effects(f, "o-1")->first.state, DET_EFFECT_STATE_DEAD);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(counts(f).effects_failed, 4);
    assert_int_equal(counts(f).effects_dead, 1);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(effects(f, "o-1")->first.state, DET_EFFECT_STATE_DEAD);
    fixture_close(f);
}

static void a_failing_effect_waits_twice_as_long_each_time_and_then_is_a_dead_letter(void **state)
{
    backs_off(state);
}

/* It is examined later, perhaps in another process. */
static void reason_of_a_failed_attempt_is_kept_in_its_dead_letter(void **state)
{
    struct det_runtime_options options = { .effects = { .attempts_max = 2 } };
    struct fixture *f = fixture_open(options);

    (void)state;
    f->control.effect_failures = 2;
    f->control.message = "no such\naccount \xff\xc3\xa9\x7f";
    pay(f, "o-1");
    settle(f);
    assert_string_equal(effects(f, "o-1")->reason, "no such?account ?\xc3\xa9?");
    f->control.message = "closed";
    advance(f, DET_SECOND);
    assert_int_equal(effects(f, "o-1")->first.state, DET_EFFECT_STATE_DEAD);
    assert_string_equal(effects(f, "o-1")->reason, "closed");
    assert_non_null(strstr(f->control.incident_text, "a dead letter: closed"));
    fixture_reopen(f, options);
    assert_string_equal(effects(f, "o-1")->reason, "closed");
    /* Tried again, it has nothing to say yet; and what succeeds does not complain. */
    f->control.effect_failures = 0;
    assert_int_equal(det_runtime_retry(f->runtime, f->order, "o-1", "order/o-1/1/0", &f->error), 0);
    assert_string_equal(effects(f, "o-1")->reason, "");
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    fixture_close(f);
}

static void jitters(struct fixture *f)
{
    bool is_different = false;
    char id[16];

    f->control.effect_failures = 1;
    for (int i = 0; i < 20; i++) {
        det_time wait;

        snprintf(id, sizeof id, "o-%d", i);
        pay(f, id);
        settle(f);
        wait = effects(f, id)->first.next - get(f, id).last_transition_at;
        assert_in_range(wait, 100 * DET_MILLISECOND, 120 * DET_MILLISECOND);
        is_different = is_different || wait != 100 * DET_MILLISECOND;
    }
    assert_true(is_different);
}

static void effect_backoff_has_jitter(void **state)
{
    (void)state;
    in_fixture(jitters);
}

static void deadlines(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .effects = { .deadline = DET_SECOND } });

    (void)state;
    f->control.effect_failures = 99;
    pay(f, "o-1");
    advance(f, DET_MINUTE);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EFFECT_DEAD);
    assert_in_range(f->control.effects, 3, 5);
    /* One whose time is over when it is found again is not run at all. */
    f->control.effects = 0;
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    pay(f, "o-2");
    settle(f);
    fixture_reopen(f, (struct det_runtime_options){ .effects = { .deadline = DET_SECOND } });
    f->control.effects = 0;
    advance(f, DET_MINUTE);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    settle(f);
    assert_int_equal(f->control.effects, 0);
    assert_int_equal(effects(f, "o-2")->first.state, DET_EFFECT_STATE_DEAD);
    assert_int_equal(effects(f, "o-2")->first.last_error, DET_ERR_TIMEOUT);
    fixture_close(f);
}

static void effect_past_its_deadline_is_not_retried(void **state)
{
    deadlines(state);
}

static void foreign(struct fixture *f)
{
    static const unsigned bad[] = { SHIP, 99, PAY };
    char id[8];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "o-%u", i);
        f->control.product = bad[i];
        pay(f, id);
        settle(f);
        assert_int_equal(f->control.incidents, i + 1);
        assert_int_equal(f->control.incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
        assert_int_equal(f->control.incident.code, DET_ERR_INVALID);
        assert_int_equal(get(f, id).state, CHARGING);
        assert_int_equal(effects(f, id)->first.state, DET_EFFECT_STATE_DEAD);
    }
    f->control.effect_result = 7;
    pay(f, "o-7");
    settle(f);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EFFECT_FAILED);
    assert_int_equal(f->control.incident.code, DET_ERR_INVALID);
}

static void an_effect_produces_only_what_it_declares(void **state)
{
    (void)state;
    in_fixture(foreign);
}

static void leave_first(void *context)
{
    struct fixture *f = context;

    /* An effect may send to its own instance; here it takes away the state its product needs. */
    f->control.in_effect = NULL;
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
}

static void rejected(struct fixture *f)
{
    f->control.in_effect = leave_first;
    f->control.context = f;
    pay(f, "o-1");
    settle(f);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
    assert_int_equal(f->control.incident.code, DET_ERR_UNHANDLED);
    assert_string_equal(f->control.incident.name, "charge_card");
    assert_int_equal(effects(f, "o-1")->first.state, DET_EFFECT_STATE_DEAD);
    assert_int_equal(effects(f, "o-1")->first.last_error, DET_ERR_UNHANDLED);
    assert_true(effects(f, "o-1")->reason[0]);
    assert_non_null(strstr(f->control.incident_text, effects(f, "o-1")->reason));
    assert_int_equal(counts(f).products_rejected, 1);
    assert_int_equal(get(f, "o-1").sequence, 2);
}

static void a_product_that_is_not_taken_is_a_dead_letter_and_reported(void **state)
{
    (void)state;
    in_fixture(rejected);
}

static void stop_first(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", "no", NULL, NULL, NULL), 0);
}

static void after_stop(struct fixture *f)
{
    f->control.in_effect = stop_first;
    f->control.context = f;
    pay(f, "o-1");
    settle(f);
    assert_true(get(f, "o-1").is_stopped);
    assert_int_equal(f->control.incident.code, DET_ERR_STOPPED);
    assert_int_equal(get(f, "o-1").sequence, 2);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
}

static void a_product_for_a_stopped_instance_is_a_dead_letter(void **state)
{
    (void)state;
    in_fixture(after_stop);
}

/* Long enough for the visit that asked to end, and for another one of the same state to begin. */
static void take_long(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    wait_in(det_sim_world(f->sim), 15 * DET_MINUTE);
}

static void same_visit(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .effects = { .same_visit_only = true } });

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    f->control.product = DECLINED;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(f->control.incidents, 0);
    fixture_close(f);
}

static void product_is_accepted_in_the_requesting_visit(void **state)
{
    same_visit(state);
}

static void stale_visit(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .effects = { .same_visit_only = true } });

    (void)state;
    f->control.in_effect = take_long;
    f->control.context = f;
    pay(f, "o-1");
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, PENDING);
    f->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    f->control.effect_result = DET_EFFECT_PRODUCED;
    advance(f, 5 * DET_MINUTE);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    assert_int_equal(f->control.incident.code, DET_ERR_CONFLICT);
    assert_key(f->control.incident_key, "order/o-1/1/0");
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    fixture_close(f);
}

static void same_visit_only_rejects_products_of_earlier_visits(void **state)
{
    stale_visit(state);
}

static void continues(struct fixture *f)
{
    f->control.effect_failures = 1;
    pay(f, "o-1");
    settle(f);
    assert_int_equal(f->control.effects, 1);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(f->control.attempt, 2);
    assert_key(f->control.key, "order/o-1/1/0");
    assert_int_equal(f->control.data.cents, 1999);
    assert_int_equal(f->control.event.as.pay.cents, 1999);
    assert_int_equal(get(f, "o-1").state, PAID);
}

static void another_runtime_continues_with_the_same_key_and_the_next_attempt(void **state)
{
    (void)state;
    in_fixture(continues);
}

static void outlast_close(void *context)
{
    struct fixture *f = context;
    struct order_event ping = { .kind = PING };

    /* While the runtime closes new calls are refused, but running effects are waited for. */
    f->control.in_effect = NULL;
    wait_in(det_sim_world(f->sim), DET_SECOND);
    assert_int_equal(
        det_runtime_send(f->runtime, f->order, "o-1", &ping, NULL, NULL, NULL), DET_ERR_CLOSED);
    f->control.hooks = 77;
}

static void closing(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    f->control.in_effect = outlast_close;
    f->control.context = f;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    f->control.effect_failures = 1;
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    settle(f);
    f->control.effect_failures = 0;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(f->control.hooks, 77);
    assert_int_equal(f->control.effects, 2);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    /* The effect that ended is recorded; the one that waited continues. */
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-2").state, CHARGING);
    advance(f, DET_SECOND);
    assert_int_equal(get(f, "o-2").state, PAID);
    assert_int_equal(f->control.effects, 3);
}

static void close_waits_for_running_effects_and_keeps_the_rest(void **state)
{
    (void)state;
    in_fixture(closing);
}

static void hook_fails(struct fixture *f)
{
    /* The product's transition has no hook, but DECLINED enters PENDING. */
    f->control.product = DECLINED;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    f->control.entry_result = -3;
    settle(f);
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_PRODUCT_REJECTED);
    assert_int_equal(f->control.incident.code, DET_ERR_ACTION_FAILED);
    assert_int_equal(get(f, "o-1").effects_pending, 1);
    f->control.entry_result = 0;
    advance(f, DET_SECOND);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
}

static void a_hook_that_fails_has_the_product_delivered_again(void **state)
{
    (void)state;
    in_fixture(hook_fails);
}

static void many(struct fixture *f)
{
    f->control.effect_failures = 99;
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < DET_DEAD_MAX + 3; i++) {
        assert_int_equal(send_kind(f, "o-1", PAY), 0);
        advance(f, 10 * DET_MINUTE);
        assert_int_equal(get(f, "o-1").state, PENDING);
    }
    assert_int_equal(counts(f).effects_dead, DET_DEAD_MAX + 3);
    assert_int_equal(effects(f, "o-1")->count, DET_DEAD_MAX);
    assert_key(effects(f, "o-1")->key, "order/o-1/7/0");
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(effects(f, "o-1")->count, DET_DEAD_MAX);
    assert_key(effects(f, "o-1")->key, "order/o-1/7/0");
}

static void number_of_dead_letters_is_limited(void **state)
{
    (void)state;
    in_fixture(many);
}

static void too_many(struct fixture *f)
{
    struct order_event pay_event = { .kind = PAY };

    f->control.effect_failures = 1000000;
    f->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < DET_EFFECTS_PENDING; i++) {
        int r = det_runtime_send(f->runtime, f->order, "o-1", &pay_event, NULL, NULL, NULL);

        assert_int_equal(r, 0);
        /* Back to PENDING by its timeout, while every effect still waits. */
        advance(f, 10 * DET_MINUTE);
    }
    assert_int_equal(get(f, "o-1").effects_pending, DET_EFFECTS_PENDING);
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_LIMIT);
    assert_int_equal(get(f, "o-1").state, PENDING);
}

static void effects_that_have_not_ended_are_bounded(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){
        .effects = { .backoff_first = 3650 * DET_DAY, .backoff_max = 3650 * DET_DAY } });

    (void)state;
    too_many(f);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_effect_sees_its_transition_and_its_end_is_recorded),
        cmocka_unit_test(an_effect_may_produce_nothing),
        cmocka_unit_test(a_failing_effect_waits_twice_as_long_each_time_and_then_is_a_dead_letter),
        cmocka_unit_test(reason_of_a_failed_attempt_is_kept_in_its_dead_letter),
        cmocka_unit_test(effect_backoff_has_jitter),
        cmocka_unit_test(effect_past_its_deadline_is_not_retried),
        cmocka_unit_test(an_effect_produces_only_what_it_declares),
        cmocka_unit_test(a_product_that_is_not_taken_is_a_dead_letter_and_reported),
        cmocka_unit_test(a_product_for_a_stopped_instance_is_a_dead_letter),
        cmocka_unit_test(product_is_accepted_in_the_requesting_visit),
        cmocka_unit_test(same_visit_only_rejects_products_of_earlier_visits),
        cmocka_unit_test(another_runtime_continues_with_the_same_key_and_the_next_attempt),
        cmocka_unit_test(close_waits_for_running_effects_and_keeps_the_rest),
        cmocka_unit_test(a_hook_that_fails_has_the_product_delivered_again),
        cmocka_unit_test(number_of_dead_letters_is_limited),
        cmocka_unit_test(effects_that_have_not_ended_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
