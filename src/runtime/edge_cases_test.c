/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* edge_cases_test.c - rare paths: a wait that is too long, a close during calls, names that are not
 * bound, unfinished work. */
#include "runtime/faulty_test.h"

/* A sender on its own thread. */
struct sender {
    struct fixture *f;
    struct det_thread *thread;
    unsigned kind;
    int r;
    struct det_error error;
    struct det_sent sent;
};

static void send_it(void *argument)
{
    struct sender *sender = argument;
    struct order_event event = { .kind = sender->kind };

    sender->r = det_runtime_send(
        sender->f->runtime, sender->f->order, "o-1", &event, NULL, &sender->sent, &sender->error);
}

static void sender_start(struct sender *sender, struct fixture *f, unsigned kind)
{
    *sender = (struct sender){ .f = f, .kind = kind, .r = 1 };
    assert_int_equal(
        det_thread_start(det_sim_world(f->sim), "sender", send_it, sender, &sender->thread), 0);
}

static void sender_join(struct sender *sender)
{
    det_thread_join(det_sim_world(sender->f->sim), sender->thread);
}

static void take_twenty_seconds(void *context)
{
    struct fixture *f = context;

    wait_in(det_sim_world(f->sim), 20 * DET_SECOND);
}

static struct fixture *open_slow(void)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .hook_deadline = DET_NEVER });

    f->control.in_guard = take_twenty_seconds;
    f->control.context = f;
    f->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(start(f, "o-1"), 0);
    return f;
}

static void a_sender_waits_for_the_writer_but_not_for_ever(void **state)
{
    struct fixture *f = open_slow();
    struct sender first, second;

    (void)state;
    sender_start(&first, f, PAY);
    settle(f);
    sender_start(&second, f, PING);
    advance(f, 10 * DET_SECOND - 1);
    assert_int_equal(second.r, 1);
    advance(f, 1);
    assert_int_equal(second.r, DET_ERR_TIMEOUT);
    assert_int_equal(second.error.code, DET_ERR_TIMEOUT);
    assert_int_equal(second.error.waited, 10 * DET_SECOND);
    sender_join(&second);
    /* One that comes later is served when the writer has gone. */
    advance(f, DET_SECOND);
    sender_start(&second, f, CANCEL);
    advance(f, 9 * DET_SECOND);
    sender_join(&first);
    sender_join(&second);
    assert_int_equal(first.r, 0);
    assert_int_equal(first.sent.sequence, 1);
    assert_int_equal(second.r, 0);
    assert_int_equal(second.sent.sequence, 2);
    fixture_close(f);
}

static void close_finishes_the_running_send_and_refuses_waiting_ones(void **state)
{
    struct fixture *f = open_slow();
    struct sender first, second;

    (void)state;
    sender_start(&first, f, PAY);
    settle(f);
    sender_start(&second, f, PING);
    settle(f);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    sender_join(&first);
    sender_join(&second);
    assert_int_equal(first.r, 0);
    assert_int_equal(second.r, DET_ERR_CLOSED);
    assert_int_equal(second.error.code, DET_ERR_CLOSED);
    f->control.in_guard = NULL;
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(get(f, "o-1").sequence, 1);
    fixture_close(f);
}

/* The effect of the first order takes long; that of the second never starts. */
static void take_long_once(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    wait_in(det_sim_world(f->sim), DET_MINUTE);
}

static void effect_not_started_at_close_stays_in_the_store(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .pool_threads = 1 });

    (void)state;
    f->control.in_effect = take_long_once;
    f->control.context = f;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(f->control.effects, 1);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    settle(f);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(f->control.attempt, 1);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-2").state, PAID);
    fixture_close(f);
}

static void an_effect_whose_function_is_gone_fails_until_it_is_dead(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *bound = f->order;

    (void)state;
    f->control.effect_failures = 1;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    f->order = order_machine(false);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
    advance(f, 5 * DET_MINUTE);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EFFECT_DEAD], 1);
    assert_int_equal(f->control.incident.code, DET_ERR_UNBOUND);
    assert_int_equal(effects(f, "o-1")->first.attempts, 8);
    det_machine_close(bound);
    fixture_close(f);
}

static void effect_result_waits_until_the_instance_loads(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    faulty_wrap(&faulty, f, false);
    f->control.in_effect = take_long_once;
    f->control.context = f;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    faulty_set(&faulty, FAULT_AFTER, DET_ERR_IO, 0);
    faulty.loads_failing = 90;
    assert_int_equal(send_kind(f, "o-1", JUNK), DET_ERR_IO);
    advance(f, DET_MINUTE + DET_SECOND);
    assert_int_equal(f->control.effects, 1);
    assert_true(faulty.loads_failing > 0);
    advance(f, DET_MINUTE);
    assert_int_equal(faulty.loads_failing, 0);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-1").sequence, 3);
    fixture_close(f);
}

static void an_effect_that_another_process_has_ended_is_released(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct faulty faulty;

    (void)state;
    faulty_wrap(&faulty, f, false);
    assert_int_equal(start(f, "o-1"), 0);
    faulty_set(&faulty, FAULT_AFTER, DET_ERR_NOT_FOUND, 1);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").effects_pending, 0);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
    fixture_close(f);
}

static bool never(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return false;
}

/* LATER is deferred in A, and refused by a guard in B; the transition to B has its own timeout. */
static struct det_machine *picky_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("picky", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "GO" });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "LATER", .unhandled = DET_UNHANDLED_DEFER });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "BACK" });
    det_machine_builder_guard(b, "never", never);
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("A"),
                                 .events = DET_LIST("GO"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "B",
                                 .within = { DET_MINUTE, "BACK", NULL } });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("B"),
                                 .events = DET_LIST("LATER"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .guard = "never" });
    order_on(b, "B", "BACK", "A");
    return built(b);
}

static void a_deferred_event_that_is_refused_later_is_a_dead_letter(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *picky = picky_machine();
    unsigned go[8] = { 0 }, later[8] = { 1 };
    struct det_instance instance;

    (void)state;
    assert_int_equal(det_runtime_start(f->runtime, picky, "p", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_send(f->runtime, picky, "p", later, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_send(f->runtime, picky, "p", go, NULL, &f->sent, NULL), 0);
    assert_int_equal(f->sent.sequence, 2);
    assert_int_equal(det_runtime_get(f->runtime, picky, "p", &instance, NULL, NULL), 0);
    assert_int_equal(instance.deferred_count, 0);
    assert_int_equal(instance.sequence, 3);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EVENT_DEAD);
    assert_int_equal(f->control.incident.code, DET_ERR_REFUSED);
    assert_string_equal(f->control.incident.name, "LATER");
    /* And the timeout of the way is that of the visit. */
    advance(f, DET_MINUTE);
    assert_int_equal(det_runtime_get(f->runtime, picky, "p", &instance, NULL, NULL), 0);
    assert_int_equal(instance.state, 0);
    assert_int_equal(counts(f).timeouts_fired, 1);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(picky);
    fixture_close(f);
}

static void a_loop_that_is_not_turned_settles_only_in_time(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_loop *loop, *foreign;
    struct det_runtime *second;

    (void)state;
    assert_int_equal(det_loop_open(det_sim_world(f->sim), NULL, &loop), 0);
    assert_int_equal(det_loop_open(NULL, NULL, &foreign), 0);
    fixture_reopen(f, (struct det_runtime_options){ .loop = loop });
    f->control.effect_failures = 3;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(det_runtime_settle(f->runtime, 50 * DET_MILLISECOND), DET_ERR_TIMEOUT);
    assert_int_equal(det_runtime_settle(f->runtime, DET_MINUTE), 0);
    assert_int_equal(get(f, "o-1").state, PAID);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(
        det_runtime_open(
            f->store,
            &(struct det_runtime_options){ .world = det_sim_world(f->sim), .loop = foreign },
            &second, &f->error),
        DET_ERR_INVALID);
    det_loop_close(loop);
    det_loop_close(foreign);
    fixture_close(f);
}

static void a_loop_that_is_not_turned_leaves_due_work(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_loop *loop;

    (void)state;
    assert_int_equal(det_loop_open(det_sim_world(f->sim), NULL, &loop), 0);
    fixture_reopen(f, (struct det_runtime_options){ .loop = loop });
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_runtime_settle(f->runtime, 0), 0);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(det_runtime_settle(f->runtime, 0), DET_ERR_TIMEOUT);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_loop_close(loop);
    fixture_close(f);
}

/* Where the effect waits until the test lets it go. */
struct bed {
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *condition;
    bool is_over;
};

static void sleep_until_woken(void *context)
{
    struct bed *bed = context;

    det_mutex_lock(bed->world, bed->mutex);
    while (!bed->is_over)
        (void)det_condition_wait(bed->world, bed->condition, bed->mutex, DET_NEVER);
    det_mutex_unlock(bed->world, bed->mutex);
}

static void a_loop_that_can_no_longer_turn_ends_the_settling(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct bed bed = { .world = det_sim_world(f->sim) };
    struct det_loop *loop;

    (void)state;
    assert_int_equal(det_mutex_open(bed.world, &bed.mutex), 0);
    assert_int_equal(det_condition_open(bed.world, &bed.condition), 0);
    assert_int_equal(det_loop_open(bed.world, NULL, &loop), 0);
    fixture_reopen(f, (struct det_runtime_options){ .loop = loop });
    f->control.in_effect = sleep_until_woken;
    f->control.context = &bed;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    /* The timers fire; then nothing will ever happen again. */
    assert_int_equal(det_runtime_settle(f->runtime, DET_NEVER), DET_ERR_DEADLOCK);
    assert_int_equal(counts(f).timeouts_fired, 2);
    det_mutex_lock(bed.world, bed.mutex);
    bed.is_over = true;
    det_condition_broadcast(bed.world, bed.condition);
    det_mutex_unlock(bed.world, bed.mutex);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
    assert_int_equal(counts(f).products_rejected, 1);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_loop_close(loop);
    det_condition_close(bed.world, bed.condition);
    det_mutex_close(bed.world, bed.mutex);
    fixture_close(f);
}

static void many_machines_are_distinguished(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *machines[150];
    unsigned event[8] = { 0 };
    char name[16];

    (void)state;
    for (int i = 0; i < 150; i++) {
        struct det_machine_builder *b;

        snprintf(name, sizeof name, "machine%d", i);
        assert_int_equal(det_machine_builder_open(name, NULL, &b), 0);
        det_machine_builder_state(
            b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
        det_machine_builder_event(b, &(struct det_event_row){ .name = "E" });
        order_on(b, "A", "E", "A");
        machines[i] = built(b);
        assert_int_equal(
            det_runtime_start(f->runtime, machines[i], "same", NULL, NULL, NULL, NULL), 0);
    }
    for (int i = 0; i < 150; i++) {
        struct det_instance instance;

        for (int n = 0; n < i % 4; n++)
            assert_int_equal(
                det_runtime_send(f->runtime, machines[i], "same", event, NULL, NULL, NULL), 0);
        assert_int_equal(
            det_runtime_get(f->runtime, machines[i], "same", &instance, NULL, NULL), 0);
        assert_int_equal(instance.sequence, i % 4);
    }
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    for (int i = 0; i < 150; i++)
        det_machine_close(machines[i]);
    fixture_close(f);
}

static int end_at_once(void *context, const struct det_listed_instance *row)
{
    (void)context;
    (void)row;
    return 7;
}

static void reads_with_a_wrong_machine_report_why(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_machine *other = order_machine(true);
    struct det_instance instance;
    unsigned none[5] = { 0 };

    (void)state;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(
        det_runtime_get(f->runtime, other, "o-1", &instance, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_events(f->runtime, other, "o-1", 0, record_row, none, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_timers(f->runtime, other, "none", list_timer, none, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_effects(f->runtime, other, "none", list_effect, none, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_runtime_timers(f->runtime, f->order, "none", list_timer, none, NULL),
        DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_effects(f->runtime, f->order, "none", list_effect, none, NULL),
        DET_ERR_NOT_FOUND);
    assert_int_equal(
        det_runtime_instances(f->runtime, other, -1, end_at_once, NULL, NULL), DET_ERR_INVALID);
    assert_int_equal(det_runtime_instances(f->runtime, f->order, -1, end_at_once, NULL, NULL), 7);
    det_machine_close(other);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sender_waits_for_the_writer_but_not_for_ever),
        cmocka_unit_test(close_finishes_the_running_send_and_refuses_waiting_ones),
        cmocka_unit_test(effect_not_started_at_close_stays_in_the_store),
        cmocka_unit_test(an_effect_whose_function_is_gone_fails_until_it_is_dead),
        cmocka_unit_test(effect_result_waits_until_the_instance_loads),
        cmocka_unit_test(an_effect_that_another_process_has_ended_is_released),
        cmocka_unit_test(a_deferred_event_that_is_refused_later_is_a_dead_letter),
        cmocka_unit_test(a_loop_that_is_not_turned_settles_only_in_time),
        cmocka_unit_test(a_loop_that_is_not_turned_leaves_due_work),
        cmocka_unit_test(a_loop_that_can_no_longer_turn_ends_the_settling),
        cmocka_unit_test(many_machines_are_distinguished),
        cmocka_unit_test(reads_with_a_wrong_machine_report_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
