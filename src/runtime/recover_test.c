/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recover_test.c - what is due for instances that are not in memory, on a store that blocks. */
#include "runtime/faulty_test.h"

static const char *name_of(unsigned i)
{
    static char name[16];

    snprintf(name, sizeof name, "o-%u", i);
    return name;
}

/* A new process on the same store, which has `count` unpaid orders. */
static struct fixture *cold_open(
    struct faulty *faulty, unsigned count, struct det_runtime_options options)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    faulty_wrap(faulty, f, false);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(start(f, name_of(i)), 0);
    fixture_reopen(f, options);
    faulty->calls = faulty->loads = faulty->listings = 0;
    faulty->most = 0;
    return f;
}

static void serve(struct fixture *f)
{
    assert_int_equal(det_runtime_serve(f->runtime, f->order, NULL), 0);
}

static void assert_all_expired(struct fixture *f, unsigned count)
{
    assert_int_equal(counts(f).timeouts_fired, count);
    for (unsigned i = 0; i < count; i++) {
        struct det_instance at = get(f, name_of(i));

        assert_int_equal(at.state, CANCELLED);
        assert_int_equal(at.sequence, 1);
    }
}

static void serving_loads_nothing_before_it_is_due(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 50, (struct det_runtime_options){ 0 });

    (void)unused;
    serve(f);
    settle(f);
    advance(f, 30 * DET_MINUTE - DET_MILLISECOND);
    assert_int_equal(counts(f).instances, 0);
    assert_int_equal(faulty.loads, 0);
    assert_int_equal(faulty.listings, 1);
    advance(f, DET_MILLISECOND);
    assert_int_equal(faulty.loads, 50);
    assert_int_equal(counts(f).loads, 50);
    assert_int_equal(faulty.calls, 1);
    assert_all_expired(f, 50);
    fixture_close(f);
}

static void thousand_due_timers_fire_once_in_little_memory(void **unused)
{
    struct faulty faulty;
    struct fixture *f =
        cold_open(&faulty, 1000, (struct det_runtime_options){ .shards = 4, .instances_max = 40 });

    (void)unused;
    advance(f, DET_HOUR);
    serve(f);
    settle(f);
    assert_true(counts(f).instances <= 60);
    assert_true(faulty.most >= 10);
    assert_true(faulty.loads <= 1500);
    assert_all_expired(f, 1000);
    assert_true(counts(f).instances <= 44);
    assert_true(counts(f).evictions >= 900);
    fixture_close(f);
}

static void an_effect_that_waits_in_the_store_continues_at_its_time(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(
        &faulty, 1,
        (struct det_runtime_options){
            .effects = { .backoff_first = 10 * DET_SECOND, .jitter_percent = UINT32_MAX } });

    (void)unused;
    f->control.effect_failures = 1;
    assert_int_equal(send_kind(f, "o-0", PAY), 0);
    settle(f);
    assert_int_equal(f->control.effects, 1);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    serve(f);
    advance(f, 9 * DET_SECOND);
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(counts(f).instances, 0);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(f->control.attempt, 2);
    assert_int_equal(get(f, "o-0").state, PAID);
    fixture_close(f);
}

static void a_store_that_fails_is_asked_again(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 3, (struct det_runtime_options){ 0 });

    (void)unused;
    advance(f, DET_HOUR);
    faulty.listings_failing = 2;
    faulty.loads_skipped = 1;
    faulty.loads_failing = 1;
    serve(f);
    advance(f, DET_SECOND / 2);
    assert_int_equal(counts(f).timeouts_fired, 0);
    advance(f, 2 * DET_SECOND);
    assert_int_equal(counts(f).timeouts_fired, 2);
    advance(f, DET_SECOND);
    assert_all_expired(f, 3);
    fixture_close(f);
}

static void a_damaged_instance_is_reported_once_and_blocks_no_other(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 5, (struct det_runtime_options){ 0 });

    (void)unused;
    faulty.damaged = "o-2";
    serve(f);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(counts(f).timeouts_fired, 4);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_NOT_LOADED], 1);
    assert_int_equal(f->control.incident.code, DET_ERR_CORRUPT);
    assert_string_equal(
        f->control.incident_text,
        "order o-2 has due work, but cannot be loaded: the checksum does not match the bytes");
    /* Another one is due: the store lists the damaged one again. */
    assert_int_equal(start(f, "late"), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    serve(f);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_NOT_LOADED], 2);
    fixture_close(f);
}

/* More instances than a listing has rows are in memory, and what they have due is tried again and
 * again: the rows after them in the store are found nevertheless. */
static void recovery_finds_rows_after_many_resident_instances(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 600, (struct det_runtime_options){ 0 });

    (void)unused;
    advance(f, DET_MINUTE);
    assert_int_equal(start(f, "behind"), 0);
    fixture_reopen(f, (struct det_runtime_options){ .effects.attempts_max = 1000 });
    f->control.exit_result = DET_ERR_BUSY;
    serve(f);
    advance(f, 29 * DET_MINUTE);
    assert_int_equal(counts(f).timeouts_fired, 0);
    assert_int_equal(counts(f).instances, 600);
    advance(f, DET_MINUTE);
    assert_int_equal(counts(f).instances, 601);
    f->control.exit_result = 0;
    advance(f, DET_HOUR);
    assert_int_equal(counts(f).timeouts_fired, 601);
    fixture_close(f);
}

static void get_in_vain(void *argument)
{
    struct fixture *f = argument;
    struct det_instance instance;

    assert_int_equal(
        det_runtime_get(f->runtime, f->order, "o-0", &instance, NULL, NULL), DET_ERR_IO);
}

/* When it is due another thread is loading it, which takes time and fails. */
static void an_instance_that_is_loading_is_searched_again(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 1, (struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct det_thread *thread;

    (void)unused;
    serve(f);
    advance(f, 30 * DET_MINUTE - DET_SECOND);
    faulty.load_takes = 3 * DET_SECOND;
    faulty.loads_failing = 1;
    assert_int_equal(det_thread_start(world, "reader", get_in_vain, f, &thread), 0);
    advance(f, 2 * DET_SECOND);
    assert_int_equal(faulty.loads, 1);
    assert_int_equal(counts(f).timeouts_fired, 0);
    advance(f, 2 * DET_SECOND);
    det_thread_join(world, thread);
    assert_all_expired(f, 1);
    fixture_close(f);
}

static void settle_waits_for_due_rows_of_the_store(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 700, (struct det_runtime_options){ 0 });

    (void)unused;
    advance(f, DET_HOUR);
    serve(f);
    assert_int_equal(det_runtime_settle(f->runtime, DET_MINUTE), 0);
    assert_all_expired(f, 700);
    fixture_close(f);
}

static void a_runtime_may_be_closed_while_it_recovers(void **unused)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 700, (struct det_runtime_options){ 0 });

    (void)unused;
    advance(f, DET_HOUR);
    serve(f);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    serve(f);
    settle(f);
    for (unsigned i = 0; i < 700; i++)
        assert_int_equal(get(f, name_of(i)).sequence, 1);
    fixture_close(f);
}

/* Out of memory at every allocation in turn: due work is done once memory is available again. */
static int recover_poorly(struct det_test_memory *memory, void *argument)
{
    struct faulty faulty;
    struct fixture *f = cold_open(&faulty, 3, (struct det_runtime_options){ 0 });
    int r;

    (void)argument;
    advance(f, DET_HOUR);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    r = det_runtime_open(
        f->store,
        &(struct det_runtime_options){ .world = det_sim_world(f->sim),
                                       .allocator = &memory->allocator,
                                       .user = &f->control,
                                       .shards = 1,
                                       .instances_max = 1,
                                       .pool_threads = 1 },
        &f->runtime, NULL);
    if (r == 0)
        r = det_runtime_serve(f->runtime, f->order, NULL);
    if (r == 0) {
        advance(f, 3 * DET_SECOND);
        memory->fail_at = 0;
        advance(f, DET_MINUTE);
        assert_all_expired(f, 3);
    }
    fixture_close(f);
    return r;
}

static void recovery_retries_after_allocation_failures(void **unused)
{
    (void)unused;
    det_test_each_failure(recover_poorly, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serving_loads_nothing_before_it_is_due),
        cmocka_unit_test(thousand_due_timers_fire_once_in_little_memory),
        cmocka_unit_test(an_effect_that_waits_in_the_store_continues_at_its_time),
        cmocka_unit_test(a_store_that_fails_is_asked_again),
        cmocka_unit_test(a_damaged_instance_is_reported_once_and_blocks_no_other),
        cmocka_unit_test(recovery_finds_rows_after_many_resident_instances),
        cmocka_unit_test(an_instance_that_is_loading_is_searched_again),
        cmocka_unit_test(settle_waits_for_due_rows_of_the_store),
        cmocka_unit_test(a_runtime_may_be_closed_while_it_recovers),
        cmocka_unit_test(recovery_retries_after_allocation_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
