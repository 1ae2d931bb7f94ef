/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_memory_test.c - the n-th allocation fails: a call says so and has done nothing, and what
 * the runtime does by itself, timers and effects, is late but not lost. */
#include "runtime/contract_test.h"

static int produce(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    (void)call;
    *ret = probe_worked((struct load){ .amount = 1 });
    return DET_EFFECT_PRODUCED;
}

/* The sequence, or UINT64_MAX when even reading it has no memory. */
static uint64_t sequence_of(struct lab *lab)
{
    struct det_instance at;
    int r = det_runtime_get(lab->runtime, &probe_machine, "a", &at, NULL, NULL);

    assert_true(r == 0 || r == DET_ERR_NO_MEMORY || r == DET_ERR_NOT_FOUND);
    return r == 0 ? at.sequence : UINT64_MAX;
}

/* Tries again once: what failed for one allocation succeeds then. */
static int send_or_nothing(struct lab *lab, struct probe_event event)
{
    for (unsigned i = 0;; i++) {
        uint64_t before = sequence_of(lab), after;
        int r = probe_send(lab->runtime, "a", event, NULL);

        if (r == 0)
            return 0;
        assert_int_equal(r, DET_ERR_NO_MEMORY);
        after = sequence_of(lab);
        assert_true(before == after || before == UINT64_MAX || after == UINT64_MAX);
        if (i == 1)
            return r;
    }
}

static int start_or_nothing(struct lab *lab)
{
    for (unsigned i = 0;; i++) {
        int r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, NULL, NULL, NULL);

        if (r == 0)
            return 0;
        assert_int_equal(r, DET_ERR_NO_MEMORY);
        if (i == 1)
            return r;
    }
}

static int batch_or_nothing(struct lab *lab)
{
    struct probe_event events[] = { probe_touch(), probe_again(), probe_arm() };
    const void *pointers[] = { &events[0], &events[1], &events[2] };
    int r = 0;

    for (unsigned i = 0; i < 2; i++) {
        r = det_runtime_send_all(lab->runtime, &probe_machine, "a", pointers, 3, NULL, NULL, NULL);
        if (r == 0)
            break;
        assert_int_equal(r, DET_ERR_NO_MEMORY);
    }
    return r;
}

static int run_all(struct lab *lab)
{
    int r;

    r = start_or_nothing(lab);
    if (r == 0)
        r = send_or_nothing(lab, lab_later(5));
    if (r == 0)
        r = send_or_nothing(lab, lab_go());
    if (r == 0)
        r = batch_or_nothing(lab);
    if (r == 0)
        r = send_or_nothing(lab, lab_work(1));
    return r;
}

/* 1 LATER deferred, 2 GO, 3 LATER, 4-6 the batch, 7 WORK, 8 WORKED, 9 REMIND, 10 EXPIRE. */
static void assert_complete(struct lab *lab)
{
    struct det_instance at = lab_get(lab, "a");

    assert_int_equal(at.sequence, 10);
    assert_int_equal(at.state, PROBE_IDLE);
    assert_int_equal(at.effects_pending, 0);
    assert_int_equal(at.deferred_count, 0);
    assert_string_equal(lab_data(lab, "a").trail, "f");
    assert_int_equal(lab_counts(lab).timeouts_fired, 2);
    assert_int_equal(lab_counts(lab).effects_done, 1);
}

static int live_a_life(struct det_test_memory *memory, void *argument)
{
    struct det_store_options kept = { .allocator = &memory->allocator };
    struct lab *lab = calloc(1, sizeof *lab);
    int r;

    (void)argument;
    assert_non_null(lab);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 7 }, &lab->sim, NULL), 0);
    lab->world = kept.world = det_sim_world(lab->sim);
    lab->options = (struct det_runtime_options){ .world = lab->world,
                                                 .allocator = &memory->allocator,
                                                 .user = lab };
    lab->job = produce;
    r = det_store_open_with("memory:", &kept, &lab->store, NULL);
    if (r == 0)
        r = det_runtime_open(lab->store, &lab->options, &lab->runtime, NULL);
    if (r == 0) {
        r = run_all(lab);
        lab_advance(lab, 10 * DET_MINUTE);
        if (r == 0 && !(memory->failed && memory->fail_sticky))
            assert_complete(lab);
    }
    lab_close(lab);
    return r;
}

static void failed_allocation_refuses_calls_and_delays_the_rest(void **unused)
{
    (void)unused;
    det_test_each_failure(live_a_life, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_allocation_refuses_calls_and_delays_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
