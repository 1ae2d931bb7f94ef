/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due_edge_cases_test.c - rare orders of due work: a timer that is due twice in one turn, effects
 * that are requested, or lost, while the runtime closes, timers without a definition, more due work
 * than one pass handles. */
#include "runtime/faulty_test.h"

/* Hearing of the first payment takes six minutes. */
static void observe_slowly(void *user, const struct det_note *note)
{
    struct order_control *control = user;

    order_observe(user, note);
    if (!control->hook_takes || note->event != PAY)
        return;
    control->hook_takes = 0;
    assert_int_equal(det_sim_advance(control->sim, 6 * DET_MINUTE), 0);
}

/* The timer of the state that is left comes due during the hook and is held. The commit arms it for
 * the next state, where it is due at once: the loop, woken by another order, meets it again. */
static void a_timer_that_is_due_twice_in_one_turn_is_held_once(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    fixture_reopen(
        f, (struct det_runtime_options){ .hook_deadline = DET_NEVER, .observe = observe_slowly });
    f->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(start(f, "o-2"), 0);
    f->control.hook_takes = 25 * DET_MINUTE;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(f->sent.state, CHARGING);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(get(f, "o-1").sequence, 2);
    assert_int_equal(get(f, "o-2").state, CANCELLED);
    assert_int_equal(counts(f).timeouts_fired, 2);
    assert_int_equal(f->control.incidents, 0);
    fixture_close(f);
}

enum { BELL_RING, BELL_RUNG };

/* A --ring--> B --rung--> C, with the same effect on both ways, and another on the first. */
static struct det_machine *bell_machine(bool is_double)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("bell", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "C" });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "RING", .payload = &payment_record });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "RUNG", .is_internal = true });
    det_machine_builder_effect(
        b, &(struct det_effect_row){
               .name = "strike", .run = order_charge, .produces = DET_LIST("RUNG") });
    det_machine_builder_effect(
        b, &(struct det_effect_row){
               .name = "echo", .run = order_charge, .produces = DET_LIST("RUNG") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("A"),
                                 .events = DET_LIST("RING"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "B",
                                 .effects = DET_LIST("strike", is_double ? "echo" : NULL) });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("B"),
                                 .events = DET_LIST("RUNG"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "C",
                                 .effects = DET_LIST("strike") });
    order_on(b, "B", "RING", NULL);
    order_on(b, "C", "RUNG", NULL);
    return built(b);
}

static void take_a_minute(void *context)
{
    struct fixture *f = context;

    wait_in(det_sim_world(f->sim), DET_MINUTE);
}

static void an_effect_that_is_asked_for_while_closing_waits_for_the_next_runtime(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    det_machine_close(f->order);
    f->order = bell_machine(false);
    f->control.product = BELL_RUNG;
    f->control.in_effect = take_a_minute;
    f->control.context = f;
    assert_int_equal(start(f, "b"), 0);
    assert_int_equal(send_kind(f, "b", BELL_RING), 0);
    settle(f);
    /* The close waits for the effect that runs; its product asks for another one. */
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    assert_int_equal(get(f, "b").sequence, 2);
    assert_int_equal(get(f, "b").effects_pending, 1);
    advance(f, DET_MINUTE);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(f->control.attempt, 1);
    assert_key(f->control.key, "bell/b/2/0");
    assert_int_equal(get(f, "b").sequence, 3);
    assert_int_equal(get(f, "b").effects_pending, 0);
    fixture_close(f);
}

/* An order whose timer failed, and is retried while the runtime is closed: between two attempts, or
 * in the middle of one. */
static void close_in_a_retry(bool is_quick, det_time span)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    faulty_wrap(&faulty, f, is_quick);
    fixture_reopen(f, (struct det_runtime_options){ .effects = { .jitter_percent = UINT32_MAX } });
    assert_int_equal(start(f, "o-1"), 0);
    f->control.entry_result = -1;
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(f->control.incidents, 1);
    f->control.entry_result = 0;
    faulty.commit_takes = is_quick ? 0 : DET_SECOND;
    advance(f, span);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    faulty.commit_takes = 0;
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    advance(f, DET_SECOND);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(get(f, "o-1").sequence, 1);
    assert_int_equal(timers(f, "o-1")->count, 0);
    fixture_close(f);
}

static void closing_while_a_timer_is_tried_again_loses_nothing(void **state)
{
    (void)state;
    close_in_a_retry(true, 50 * DET_MILLISECOND);
    close_in_a_retry(false, 50 * DET_MILLISECOND);
    close_in_a_retry(false, 500 * DET_MILLISECOND);
}

/* A commit in doubt has the instance loaded again while both run. */
static void effects_under_way_continue_when_the_instance_is_loaded_again(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    det_machine_close(f->order);
    f->order = bell_machine(true);
    faulty_wrap(&faulty, f, false);
    f->control.effect_result = DET_EFFECT_DONE;
    f->control.in_effect = take_a_minute;
    f->control.context = f;
    assert_int_equal(start(f, "b"), 0);
    assert_int_equal(send_kind(f, "b", BELL_RING), 0);
    settle(f);
    assert_int_equal(f->control.effects, 2);
    faulty_set(&faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "b", BELL_RING), DET_ERR_IO);
    assert_int_equal(get(f, "b").effects_pending, 2);
    advance(f, DET_MINUTE);
    assert_int_equal(get(f, "b").effects_pending, 0);
    assert_int_equal(counts(f).effects_done, 2);
    advance(f, DET_HOUR);
    assert_int_equal(f->control.effects, 2);
    fixture_close(f);
}

/* More than the loop does at a time. */
static void all_timers_due_at_once_fire(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .shards = 1 });
    char id[8];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(start(f, id), 0);
    }
    advance(f, 30 * DET_MINUTE - 1);
    assert_int_equal(counts(f).timeouts_fired, 0);
    advance(f, 1);
    assert_int_equal(counts(f).timeouts_fired, 100);
    fixture_close(f);
}

/* As another process would do it: the first effect of an order has ended. */
static void end_elsewhere(struct fixture *f, struct det_store *store, const char *id)
{
    static const struct det_store_rows none = { 0 };
    const struct det_store_effect_change change = { DET_STORE_TAKE, { .sequence = 1 } };
    struct order_data data;
    struct det_store_loaded loaded = { .data = &data };
    struct det_store_commit commit = {
        .machine = f->order, .id = id, .head = &loaded.head, .effects = &change, .effect_count = 1
    };
    struct det_store_commit *const one = &commit;

    assert_int_equal(store->ops->load(store, f->order, id, &none, &loaded), 0);
    commit.instance = loaded.instance;
    assert_int_equal(store->ops->commit(store, &one, 1), 0);
    assert_int_equal(commit.result, 0);
}

static void effect_ended_elsewhere_is_released_at_close(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    faulty_wrap(&faulty, f, false);
    fixture_reopen(f, (struct det_runtime_options){ .pool_threads = 1 });
    f->control.in_effect = take_a_minute;
    f->control.context = f;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    end_elsewhere(f, faulty.inner, "o-2");
    /* It is loaded again, and so found out. */
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-2", JUNK), DET_ERR_IO);
    assert_int_equal(get(f, "o-2").effects_pending, 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    settle(f);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-2").state, CHARGING);
    fixture_close(f);
}

/* Two definitions that differ in the timeout of A alone. */
static struct det_machine *egg_machine(bool has_timeout)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("egg", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "BOIL" });
    order_on(b, "A", "BOIL", "B");
    if (has_timeout)
        det_machine_builder_after(
            b, DET_LIST("A"),
            &(struct det_timeout_row){ .after = 5 * DET_MINUTE, .event = "BOIL" });
    return built(b);
}

static void a_timer_that_is_no_longer_defined_does_not_fire(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    det_machine_close(f->order);
    f->order = egg_machine(true);
    assert_int_equal(start(f, "e"), 0);
    assert_int_equal(timers(f, "e")->count, 1);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(f->order);
    f->order = egg_machine(false);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    assert_int_equal(timers(f, "e")->count, 0);
    advance(f, DET_HOUR);
    assert_int_equal(get(f, "e").sequence, 0);
    assert_int_equal(send_kind(f, "e", 0), 0);
    assert_int_equal(get(f, "e").state, 1);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_that_is_due_twice_in_one_turn_is_held_once),
        cmocka_unit_test(an_effect_that_is_asked_for_while_closing_waits_for_the_next_runtime),
        cmocka_unit_test(closing_while_a_timer_is_tried_again_loses_nothing),
        cmocka_unit_test(effects_under_way_continue_when_the_instance_is_loaded_again),
        cmocka_unit_test(all_timers_due_at_once_fire),
        cmocka_unit_test(effect_ended_elsewhere_is_released_at_close),
        cmocka_unit_test(a_timer_that_is_no_longer_defined_does_not_fire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
