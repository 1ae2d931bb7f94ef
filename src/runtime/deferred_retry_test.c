/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* deferred_retry_test.c - a deferred event that its state refuses at first stays deferred, has
 * attempts, which the store counts, and is recorded as a dead letter after the last; in every
 * store.
 *
 *     LOCKED --unlock--> OPEN --put, asks a hook and a guard--> OPEN
 *        ^                |     look                          --> OPEN
 *        +----- lock -----+     close                         --> (stopped) */
#include "runtime/stores_test.h"

#define ATTEMPTS 8

enum { UNLOCK, LOCK, PUT, LOOK, CLOSE };
enum { LOCKED, OPEN };

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

static void name_all(struct det_machine_builder *b, bool is_bound)
{
    static const struct det_event_row events[] = {
        { .name = "UNLOCK" },
        { .name = "LOCK" },
        { .name = "PUT", .unhandled = DET_UNHANDLED_DEFER },
        { .name = "LOOK", .unhandled = DET_UNHANDLED_DEFER },
        { .name = "CLOSE" },
    };

    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "LOCKED", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "OPEN" });
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        det_machine_builder_event(b, &events[i]);
    det_machine_builder_hook(b, "ask", is_bound ? ask : NULL);
    det_machine_builder_guard(b, "may", may);
}

static void row(struct det_machine_builder *b, struct det_on_row on)
{
    det_machine_builder_on(b, &on);
}

static struct det_machine *make_box(bool is_bound, uint32_t version)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("box", NULL, &b), 0);
    det_machine_builder_version(b, version);
    name_all(b, is_bound);
    row(b, (struct det_on_row){ .from = DET_LIST("LOCKED"),
                                .events = DET_LIST("UNLOCK"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "OPEN" });
    row(b, (struct det_on_row){ .from = DET_LIST("OPEN"),
                                .events = DET_LIST("LOCK"),
                                .outcome = DET_OUTCOME_GOTO,
                                .to = "LOCKED" });
    row(b, (struct det_on_row){ .from = DET_LIST("OPEN"),
                                .events = DET_LIST("PUT"),
                                .outcome = DET_OUTCOME_STAY,
                                .guard = "may",
                                .hook = "ask" });
    row(b, (struct det_on_row){
               .from = DET_LIST("OPEN"), .events = DET_LIST("LOOK"), .outcome = DET_OUTCOME_STAY });
    row(b, (struct det_on_row){ .from = DET_LIST("OPEN"),
                                .events = DET_LIST("CLOSE"),
                                .outcome = DET_OUTCOME_STOP });
    return built(b);
}

static struct det_machine *box_machine(void)
{
    return make_box(true, 1);
}

/* The last record, and the number of records. */
struct last {
    unsigned event, outcome;
    uint64_t count;
};

static int take_last(void *context, const struct det_event_record *row)
{
    struct last *last = context;

    last->event = row->event;
    last->outcome = row->outcome;
    last->count++;
    return 0;
}

static struct last last_of(struct fixture *f)
{
    struct last last = { 0 };

    assert_int_equal(det_runtime_events(f->runtime, f->order, "o-1", 0, take_last, &last, NULL), 0);
    return last;
}

static int no_drift(void *context, const struct det_drift *drift)
{
    (void)context;
    fail_msg("%s", drift->text);
    return 0;
}

static void assert_sound(struct fixture *f)
{
    uint64_t steps;

    assert_int_equal(
        det_runtime_verify(f->runtime, f->order, "o-1", no_drift, NULL, &steps, NULL), 0);
    assert_int_equal(steps, get(f, "o-1").sequence);
}

/* PUT and LOOK are deferred, then their state is entered; the hook fails. */
static void fail_first(struct fixture *f)
{
    f->control.hook_result = DET_ERR_IO;
    assert_int_equal(send_kind(f, "o-1", PUT), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_DEFERRED);
    assert_int_equal(send_kind(f, "o-1", LOOK), 0);
    assert_false(inspect(f));
    assert_int_equal(send_kind(f, "o-1", UNLOCK), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(f->control.hooks, 1);
}

static void assert_waiting(struct fixture *f, uint32_t attempts)
{
    assert_true(inspect(f));
    assert_string_equal(record.name, DET_DEFERRED_TIMER_NAME);
    assert_int_equal(record.event, PUT);
    assert_int_equal(record.attempts, attempts);
    assert_int_equal(record.last_error, DET_ERR_ACTION_FAILED);
    assert_string_equal(reason, "box o-1: ask failed with IO");
    assert_false(record.is_dead);
    assert_int_equal(get(f, "o-1").deferred_count, 2);
}

static void pass_later(struct fixture *f)
{
    fail_first(f);
    assert_waiting(f, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EVENT_FAILED);
    assert_int_equal(f->control.incident.attempt, 1);
    assert_string_equal(f->control.incident.name, "PUT");
    assert_string_equal(
        f->control.incident_text, "deferred event PUT of box o-1 failed in attempt 1 and is "
                                  "retried: box o-1: ask failed with IO");
    advance(f, 120 * DET_MILLISECOND);
    assert_int_equal(f->control.hooks, 2);
    assert_waiting(f, 2);
    f->control.hook_result = 0;
    advance(f, DET_SECOND);
    assert_int_equal(f->control.hooks, 3);
    assert_false(inspect(f));
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    /* In their order: PUT, then LOOK. */
    assert_int_equal(last_of(f).count, 5);
    assert_int_equal(last_of(f).event, LOOK);
    assert_int_equal(last_of(f).outcome, DET_OUTCOME_STAY);
    assert_int_equal(f->control.incidents, 2);
    assert_int_equal(counts(f).timeouts_fired, 0);
    assert_sound(f);
}

static void a_deferred_event_whose_hook_fails_is_tried_again(void **state)
{
    (void)state;
    in_each_store(box_machine, pass_later);
}

static void give_up(struct fixture *f)
{
    fail_first(f);
    advance(f, DET_MINUTE);
    assert_int_equal(f->control.hooks, ATTEMPTS);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_FAILED], ATTEMPTS - 1);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 1);
    assert_int_equal(f->control.incident.code, DET_ERR_ACTION_FAILED);
    assert_int_equal(f->control.incident.attempt, ATTEMPTS);
    assert_false(inspect(f));
    /* Deferred twice, unlocked, then PUT as a dead letter, and LOOK is accepted. */
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(last_of(f).count, 5);
    assert_int_equal(last_of(f).event, LOOK);
    assert_sound(f);
    restart(f, options);
    advance(f, DET_DAY);
    assert_int_equal(f->control.hooks, ATTEMPTS);
    assert_sound(f);
}

static void after_the_last_attempt_it_is_recorded_as_a_dead_letter(void **state)
{
    (void)state;
    in_each_store(box_machine, give_up);
}

static void count_on(struct fixture *f)
{
    fail_first(f);
    advance(f, 350 * DET_MILLISECOND);
    assert_int_equal(f->control.hooks, 3);
    restart(f, options);
    assert_waiting(f, 3);
    advance(f, DET_HOUR);
    assert_int_equal(f->control.hooks, ATTEMPTS);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
}

static void attempts_continue_after_a_restart(void **state)
{
    (void)state;
    in_each_store(box_machine, count_on);
}

static void leave_and_return(struct fixture *f)
{
    fail_first(f);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.hooks, 4);
    assert_int_equal(send_kind(f, "o-1", LOCK), 0);
    assert_false(inspect(f));
    advance(f, DET_DAY);
    assert_int_equal(f->control.hooks, 4);
    assert_int_equal(get(f, "o-1").deferred_count, 2);
    f->control.hook_result = 0;
    assert_int_equal(send_kind(f, "o-1", UNLOCK), 0);
    assert_int_equal(f->control.hooks, 5);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_false(inspect(f));
}

static void deferred_event_is_not_tried_in_other_states(void **state)
{
    (void)state;
    in_each_store(box_machine, leave_and_return);
}

/* Nothing that is sent meanwhile makes the next attempt come sooner. */
static void send_meanwhile(struct fixture *f)
{
    fail_first(f);
    assert_int_equal(send_kind(f, "o-1", LOOK), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STAY);
    assert_int_equal(f->control.hooks, 1);
    assert_waiting(f, 1);
    assert_int_equal(send_kind(f, "o-1", CLOSE), 0);
    assert_false(inspect(f));
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 2);
    assert_int_equal(f->control.incident.code, DET_ERR_STOPPED);
    advance(f, DET_HOUR);
    assert_int_equal(f->control.hooks, 1);
}

static void waiting_deferred_event_lets_others_pass_and_ends_at_a_stop(void **state)
{
    (void)state;
    in_each_store(box_machine, send_meanwhile);
}

static void refuse_one(struct fixture *f)
{
    f->control.guard_refuses = true;
    assert_int_equal(send_kind(f, "o-1", PUT), 0);
    assert_int_equal(send_kind(f, "o-1", UNLOCK), 0);
    assert_int_equal(f->control.incidents, 1);
    assert_int_equal(f->control.incident.kind, DET_INCIDENT_EVENT_DEAD);
    assert_int_equal(f->control.incident.code, DET_ERR_REFUSED);
    assert_false(inspect(f));
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(last_of(f).event, PUT);
    assert_int_equal(last_of(f).outcome, DET_OUTCOME_DEAD_LETTER);
    assert_sound(f);
}

static void deferred_event_refused_by_a_guard_becomes_a_dead_letter(void **state)
{
    (void)state;
    in_each_store(box_machine, refuse_one);
}

/* A tool without functions makes it due; a runtime with functions delivers it, also after a
 * kill. */
static void deliver_what_is_due(struct fixture *f)
{
    struct det_runtime_options passive = options;

    passive.is_passive = true;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(f->order);
    f->order = make_box(false, 1);
    fixture_reopen(f, passive);
    assert_int_equal(send_kind(f, "o-1", PUT), 0);
    assert_int_equal(send_kind(f, "o-1", UNLOCK), 0);
    assert_int_equal(f->control.incidents, 0);
    assert_int_equal(get(f, "o-1").deferred_count, 1);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(f->order);
    f->order = make_box(true, 1);
    restart(f, options);
    settle(f);
    assert_int_equal(f->control.hooks, 1);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
}

static void leftover_delivery_is_due_when_the_machine_is_served(void **state)
{
    /* The simulated shared store knows one definition by its address. */
    static const char *const kinds[] = { "memory", "sqlite" };
    struct bench bench;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bench_open(&bench, box_machine, kinds[i]);
        deliver_what_is_due(bench.f);
        bench_close(&bench);
    }
}

/* The names that a store has in use are looked for in the new definition. */
static void another_definition_is_served_while_a_delivery_waits(void **state)
{
    struct bench bench;
    struct fixture *f;

    (void)state;
    bench_open(&bench, box_machine, "sqlite");
    f = bench.f;
    fail_first(f);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(f->order);
    f->order = make_box(true, 2);
    fixture_reopen(f, options);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    f->control.hook_result = 0;
    advance(f, DET_MINUTE);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    bench_close(&bench);
}

/* Nothing was counted but what the hook said, and it says yes now. */
static void assert_taken_at_last(struct fixture *f)
{
    f->control.hook_result = 0;
    advance(f, DET_HOUR);
    assert_int_equal(get(f, "o-1").deferred_count, 0);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_EVENT_DEAD], 0);
    assert_int_equal(last_of(f).count, 5);
}

static void allocation_failure_is_not_an_attempt(void **state)
{
    (void)state;
    each_allocation_fails(
        &(struct turn){ box_machine, fail_first, 120 * DET_MILLISECOND, assert_taken_at_last });
}

static void store_outage_is_not_an_attempt(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench, box_machine, "shared");
    fail_first(bench.f);
    det_shared_fail(bench.f->store, UINT32_MAX, true);
    advance(bench.f, DET_HOUR);
    det_shared_fail(bench.f->store, 0, true);
    assert_taken_at_last(bench.f);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deferred_event_whose_hook_fails_is_tried_again),
        cmocka_unit_test(after_the_last_attempt_it_is_recorded_as_a_dead_letter),
        cmocka_unit_test(attempts_continue_after_a_restart),
        cmocka_unit_test(deferred_event_is_not_tried_in_other_states),
        cmocka_unit_test(waiting_deferred_event_lets_others_pass_and_ends_at_a_stop),
        cmocka_unit_test(deferred_event_refused_by_a_guard_becomes_a_dead_letter),
        cmocka_unit_test(leftover_delivery_is_due_when_the_machine_is_served),
        cmocka_unit_test(another_definition_is_served_while_a_delivery_waits),
        cmocka_unit_test(allocation_failure_is_not_an_attempt),
        cmocka_unit_test(store_outage_is_not_an_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
