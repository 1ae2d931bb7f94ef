/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* deferred_failure_test.c - deferred events that a failure has left over: they come before anything
 * else, and what they change is what the next thing is judged by.
 *
 *     A --go--> B --note--> C        NOTE is deferred in A; B has a timeout, back to A */
#include "runtime/faulty_test.h"

enum { A, B, C };
enum { RELAY_GO, RELAY_NOTE, RELAY_LATE, RELAY_ASK };

static int do_nothing(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_EFFECT_DONE;
}

static struct det_machine *relay_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("relay", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "B" });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "C" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "GO" });
    det_machine_builder_event(
        b, &(struct det_event_row){ .name = "NOTE", .unhandled = DET_UNHANDLED_DEFER });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "LATE", .is_internal = true });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "ASK" });
    det_machine_builder_update(b, "count", order_count);
    det_machine_builder_effect(b, &(struct det_effect_row){ .name = "ring", .run = do_nothing });
    det_machine_builder_effect(b, &(struct det_effect_row){ .name = "knock", .run = do_nothing });
    order_on(b, "A", "GO", "B");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("B"),
                                 .events = DET_LIST("NOTE"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "C",
                                 .update = "count",
                                 .effects = DET_LIST("ring", "knock") });
    order_on(b, "B", "LATE", "A");
    order_on(b, "B", "ASK", NULL);
    order_on(b, "C", "ASK", NULL);
    det_machine_builder_after(
        b, DET_LIST("B"), &(struct det_timeout_row){ .after = 10 * DET_MINUTE, .event = "LATE" });
    return built(b);
}

static void in_relay(void (*test)(struct fixture *f, struct faulty *faulty))
{
    for (int is_quick = 0; is_quick < 2; is_quick++) {
        struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
        struct faulty faulty;

        det_machine_close(f->order);
        f->order = relay_machine();
        faulty_wrap(&faulty, f, is_quick);
        test(f, &faulty);
        fixture_close(f);
    }
}

static void stands_at(struct fixture *f, unsigned state, uint64_t sequence, size_t deferred)
{
    struct det_instance relay = get(f, "r");

    assert_int_equal(relay.state, state);
    assert_int_equal(relay.sequence, sequence);
    assert_int_equal(relay.deferred_count, deferred);
}

/* In B, with the note left over: the commit that would have taken it failed with `code`. */
static void leave_the_note(struct fixture *f, struct faulty *faulty, int code)
{
    assert_int_equal(start(f, "r"), 0);
    assert_int_equal(send_kind(f, "r", RELAY_NOTE), 0);
    faulty_set(faulty, FAULT_BEFORE, code, 1);
    assert_int_equal(send_kind(f, "r", RELAY_GO), 0);
    assert_int_equal(f->sent.state, B);
    assert_int_equal(faulty->times, 0);
    stands_at(f, B, 2, 1);
}

static void timer_is_void(struct fixture *f, struct faulty *faulty)
{
    unsigned loads;

    leave_the_note(f, faulty, DET_ERR_NO_MEMORY);
    loads = faulty->loads;
    settle(f);
    stands_at(f, C, 3, 0);
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(timers(f, "r")->count, 0);
    assert_int_equal(counts(f).timeouts_fired, 0);
    assert_int_equal(counts(f).timeouts_rejected, 0);
    assert_int_equal(f->control.incidents, 0);
    /* The store was not even asked. */
    assert_int_equal(faulty->loads, loads);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
}

static void leftover_deferred_event_is_delivered_without_a_send(void **state)
{
    (void)state;
    in_relay(timer_is_void);
}

/* The note fails again, for a reason that leaves it unknown. */
static void fails_again(struct fixture *f, struct faulty *faulty)
{
    leave_the_note(f, faulty, DET_ERR_IO);
    faulty_set(faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "r", RELAY_ASK), 0);
    assert_int_equal(f->sent.state, B);
    assert_int_equal(f->sent.sequence, 3);
    /* It was decided on the instance as it was loaded again; then the note was taken. */
    stands_at(f, C, 4, 0);
}

static void repeated_failure_of_a_deferred_event_lets_the_send_pass(void **state)
{
    (void)state;
    in_relay(fails_again);
}

static void stays_unknown(struct fixture *f, struct faulty *faulty)
{
    leave_the_note(f, faulty, DET_ERR_IO);
    faulty_set(faulty, FAULT_AFTER, DET_ERR_IO, 0);
    faulty->loads_failing = 1;
    assert_int_equal(send_kind(f, "r", RELAY_ASK), DET_ERR_IO);
    assert_string_equal(f->error.text, "the instance cannot be loaded");
    assert_int_equal(faulty->loads_failing, 0);
    advance(f, 2 * DET_SECOND);
    /* The note had been taken, and nothing was asked. */
    stands_at(f, C, 3, 0);
    assert_int_equal(send_kind(f, "r", RELAY_ASK), 0);
    assert_int_equal(f->sent.sequence, 4);
}

static void unknown_delivery_result_refuses_the_next_send(void **state)
{
    (void)state;
    in_relay(stays_unknown);
}

static int open_with(struct fixture *f, struct det_test_memory *memory)
{
    const struct det_runtime_options options = { .world = det_sim_world(f->sim),
                                                 .allocator = &memory->allocator };

    det_runtime_close(f->runtime);
    f->runtime = NULL;
    return det_runtime_open(f->store, &options, &f->runtime, NULL);
}

/* The first writer is the one that leaves A: its event is taken, whatever becomes of the note. */
static int go_without_memory(struct det_test_memory *memory, void *argument)
{
    struct fixture *f = argument;
    uint64_t fail_at = memory->fail_at;
    static unsigned count;
    char id[16];
    int r;

    snprintf(id, sizeof id, "r-%u", count++);
    memory->fail_at = 0;
    assert_int_equal(open_with(f, memory), 0);
    assert_int_equal(start(f, id), 0);
    assert_int_equal(send_kind(f, id, RELAY_NOTE), 0);
    assert_int_equal(open_with(f, memory), 0);
    assert_int_equal(get(f, id).deferred_count, 1);
    memory->fail_at = fail_at;
    memory->calls = 0;
    r = send_kind(f, id, RELAY_GO);
    memory->fail_at = 0;
    if (r == 0) {
        assert_true(memory->failed || !get(f, id).deferred_count);
        assert_int_equal(get(f, id).sequence, get(f, id).deferred_count ? 2 : 3);
        assert_int_equal(send_kind(f, id, RELAY_ASK), 0);
        assert_int_equal(f->sent.state, C);
        assert_int_equal(f->sent.sequence, 4);
    }
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    return r;
}

static void delivery_delayed_by_an_allocation_failure_comes_first(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)state;
    det_machine_close(f->order);
    f->order = relay_machine();
    det_test_each_failure(go_without_memory, f);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leftover_deferred_event_is_delivered_without_a_send),
        cmocka_unit_test(repeated_failure_of_a_deferred_event_lets_the_send_pass),
        cmocka_unit_test(unknown_delivery_result_refuses_the_next_send),
        cmocka_unit_test(delivery_delayed_by_an_allocation_failure_comes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
