/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick_test.c - the quick send does what a turn does: both ways on the same events, compared after
 * each; and what it does when its commit fails. */
#include "runtime/faulty_test.h"
#include "runtime/history_test.h"

enum { IDLE, BUSY, DONE };
enum { GO, BACK, SAME, NUDGE, FINISH, OVERDUE };

/* Nothing in it is user code. */
static struct det_machine *plain_machine(void)
{
    static const char *const events[] = { "GO", "BACK", "SAME", "NUDGE", "FINISH", "OVERDUE" };
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("plain", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "IDLE", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "BUSY" });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "DONE" });
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        det_machine_builder_event(b, &(struct det_event_row){ .name = events[i] });
    order_on(b, "IDLE", "GO", "BUSY");
    order_on(b, "BUSY", "BACK", "IDLE");
    order_on(b, "BUSY", "SAME", "BUSY");
    order_on(b, "IDLE", "NUDGE", NULL);
    order_on(b, "BUSY", "NUDGE", NULL);
    order_on(b, "BUSY", "FINISH", "DONE");
    order_on(b, "BUSY", "OVERDUE", "IDLE");
    order_on(b, "DONE", "GO", "BUSY");
    order_on(b, "DONE", "BACK", "IDLE");
    det_machine_builder_after(
        b, DET_LIST("BUSY"), &(struct det_timeout_row){ .after = DET_MINUTE, .event = "OVERDUE" });
    return built(b);
}

struct plain {
    struct fixture *f;
    struct det_machine *machine;
    struct faulty faulty;
    struct det_sent sent;
};

static struct plain *plain_open(bool is_observed)
{
    struct plain *plain = calloc(1, sizeof *plain);

    assert_non_null(plain);
    plain->f =
        fixture_open((struct det_runtime_options){ .observe = is_observed ? order_observe : NULL });
    plain->machine = plain_machine();
    return plain;
}

static void plain_close(struct plain *plain)
{
    det_runtime_close(plain->f->runtime);
    plain->f->runtime = NULL;
    det_machine_close(plain->machine);
    fixture_close(plain->f);
    free(plain);
}

static void plain_start(struct plain *plain)
{
    assert_int_equal(
        det_runtime_start(plain->f->runtime, plain->machine, "p", NULL, NULL, NULL, NULL), 0);
}

static int plain_send(struct plain *plain, unsigned kind)
{
    unsigned event[8] = { kind };

    memset(&plain->sent, 0, sizeof plain->sent);
    return det_runtime_send(
        plain->f->runtime, plain->machine, "p", event, NULL, &plain->sent, &plain->f->error);
}

static struct det_instance plain_get(struct plain *plain)
{
    return check_history(plain->f->runtime, plain->machine, "p");
}

static struct listed_timers plain_timers(struct plain *plain)
{
    struct listed_timers all = { 0 };

    assert_int_equal(
        det_runtime_timers(plain->f->runtime, plain->machine, "p", list_timer, &all, NULL), 0);
    return all;
}

static void assert_alike(struct plain *a, struct plain *b)
{
    struct det_instance first = plain_get(a), second = plain_get(b);
    struct listed_timers one = plain_timers(a), two = plain_timers(b);

    assert_memory_equal(&first, &second, sizeof first);
    assert_memory_equal(&one, &two, sizeof one);
    assert_int_equal(a->sent.outcome, b->sent.outcome);
    assert_int_equal(a->sent.state, b->sent.state);
    assert_int_equal(a->sent.sequence, b->sent.sequence);
    assert_int_equal(a->sent.visit, b->sent.visit);
}

static void quick_send_equals_the_full_turn(void **state)
{
    struct plain *quick = plain_open(false), *slow = plain_open(true);
    uint64_t seed = 11;

    (void)state;
    plain_start(quick);
    plain_start(slow);
    for (int i = 0; i < 2000; i++) {
        unsigned kind = (unsigned)(det_test_random(&seed) % 6);
        det_time span = (det_time)(det_test_random(&seed) % 90) * DET_SECOND;

        assert_int_equal(plain_send(quick, kind), plain_send(slow, kind));
        assert_alike(quick, slow);
        advance(quick->f, span);
        advance(slow->f, span);
        assert_alike(quick, slow);
    }
    assert_true(counts(quick->f).timeouts_fired > 50);
    assert_int_equal(counts(quick->f).timeouts_fired, counts(slow->f).timeouts_fired);
    assert_int_equal(counts(quick->f).transitions, counts(slow->f).transitions);
    assert_int_equal(counts(quick->f).unhandled, counts(slow->f).unhandled);
    plain_close(quick);
    plain_close(slow);
}

static struct plain *plain_open_faulty(void)
{
    struct plain *plain = plain_open(false);

    faulty_wrap(&plain->faulty, plain->f, true);
    plain_start(plain);
    return plain;
}

static void a_quick_commit_that_failed_changes_nothing(void **state)
{
    struct plain *plain = plain_open_faulty();
    struct det_instance before, after;

    (void)state;
    assert_int_equal(plain_send(plain, GO), 0);
    before = plain_get(plain);
    faulty_set(&plain->faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(plain_send(plain, BACK), DET_ERR_IO);
    assert_int_equal(plain->f->error.code, DET_ERR_IO);
    after = plain_get(plain);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(plain_timers(plain).count, 1);
    faulty_set(&plain->faulty, FAULT_BEFORE, DET_ERR_NO_MEMORY, 0);
    assert_int_equal(plain_send(plain, BACK), DET_ERR_NO_MEMORY);
    after = plain_get(plain);
    assert_memory_equal(&before, &after, sizeof before);
    advance(plain->f, DET_MINUTE);
    assert_int_equal(plain_get(plain).state, IDLE);
    plain_close(plain);
}

static void a_quick_commit_of_unknown_outcome_is_resolved_and_its_timer_fires(void **state)
{
    struct plain *plain = plain_open_faulty();

    (void)state;
    faulty_set(&plain->faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(plain_send(plain, GO), DET_ERR_IO);
    /* Without a request: the runtime finds the timer by itself. */
    advance(plain->f, DET_MINUTE);
    assert_int_equal(counts(plain->f).timeouts_fired, 1);
    assert_int_equal(plain_get(plain).state, IDLE);
    assert_int_equal(plain_get(plain).sequence, 2);
    plain_close(plain);
}

static void a_quick_conflict_is_decided_again(void **state)
{
    struct plain *plain = plain_open_faulty();

    (void)state;
    faulty_set(&plain->faulty, FAULT_BEFORE, DET_ERR_CONFLICT, 0);
    assert_int_equal(plain_send(plain, GO), 0);
    assert_int_equal(plain->sent.sequence, 1);
    assert_int_equal(plain_get(plain).state, BUSY);
    plain_close(plain);
}

static int without_memory(struct det_test_memory *memory, void *argument)
{
    struct det_machine *machine = argument;
    struct poor poor;
    unsigned event[8] = { GO };
    int r;

    r = poor_open(&poor, memory, NULL);
    if (r == 0)
        r = det_runtime_start(poor.runtime, machine, "p", NULL, NULL, NULL, NULL);
    for (int i = 0; r == 0 && i < 10; i++) {
        struct det_instance before, after;

        assert_int_equal(det_runtime_get(poor.runtime, machine, "p", &before, NULL, NULL), 0);
        event[0] = i % 2 ? BACK : GO;
        r = det_runtime_send(poor.runtime, machine, "p", event, NULL, NULL, NULL);
        assert_int_equal(det_runtime_get(poor.runtime, machine, "p", &after, NULL, NULL), 0);
        assert_int_equal(after.sequence, before.sequence + (r == 0));
        assert_int_equal(after.state, r == 0 ? !before.state : before.state);
    }
    poor_close(&poor);
    return r;
}

static void quick_send_survives_every_failed_allocation(void **state)
{
    struct det_machine *machine = plain_machine();

    (void)state;
    det_test_each_failure(without_memory, machine);
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_send_equals_the_full_turn),
        cmocka_unit_test(a_quick_commit_that_failed_changes_nothing),
        cmocka_unit_test(a_quick_commit_of_unknown_outcome_is_resolved_and_its_timer_fires),
        cmocka_unit_test(a_quick_conflict_is_decided_again),
        cmocka_unit_test(quick_send_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
