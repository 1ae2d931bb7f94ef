/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cache_test.c - instances that are evicted and loaded again: which leave, which stay, and that the
 * results are the same. */
#include "runtime/faulty_test.h"

static const char *name_of(unsigned i)
{
    static char name[16];

    snprintf(name, sizeof name, "o-%u", i);
    return name;
}

/* One shard, so that the bound is exact. */
static struct fixture *small_open(
    struct faulty *faulty, uint32_t instances_max, struct det_effect_policy effects)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    faulty_wrap(faulty, f, false);
    fixture_reopen(
        f, (struct det_runtime_options){
               .shards = 1, .instances_max = instances_max, .effects = effects });
    return f;
}

static void start_many(struct fixture *f, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        assert_int_equal(start(f, name_of(i)), 0);
}

static void resident_instances_stay_within_the_limit(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(&faulty, 10, (struct det_effect_policy){ 0 });

    (void)unused;
    for (unsigned i = 0; i < 200; i++) {
        start_many(f, i, 1);
        assert_true(counts(f).instances <= 10);
    }
    assert_int_equal(counts(f).evictions, 190);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(get(f, name_of(i)).state, PENDING);
        assert_true(counts(f).instances <= 10);
    }
    /* Each start has searched the store for an existing instance. */
    assert_int_equal(faulty.loads, 200 + counts(f).loads);
    assert_true(counts(f).loads >= 190);
    fixture_close(f);
}

static void recently_used_instance_stays_in_memory(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(&faulty, 10, (struct det_effect_policy){ 0 });
    unsigned before;

    (void)unused;
    start_many(f, 0, 10);
    before = faulty.loads;
    for (unsigned i = 10; i < 100; i++) {
        assert_int_equal(send_kind(f, "o-3", PING), 0);
        start_many(f, i, 1);
    }
    /* A start searches for an existing instance: one load each. */
    assert_int_equal(faulty.loads - before, 90);
    assert_int_equal(get(f, "o-3").sequence, 90);
    assert_int_equal(faulty.loads - before, 90);
    fixture_close(f);
}

static void on_a_store_that_does_not_block_no_instance_is_evicted(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)unused;
    fixture_reopen(f, (struct det_runtime_options){ .shards = 1, .instances_max = 1 });
    start_many(f, 0, 50);
    assert_int_equal(counts(f).instances, 50);
    assert_int_equal(counts(f).evictions, 0);
    fixture_close(f);
}

static void timers_of_evicted_instances_fire_on_time(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(&faulty, 2, (struct det_effect_policy){ 0 });

    (void)unused;
    for (unsigned i = 0; i < 20; i++) {
        start_many(f, i, 1);
        advance(f, DET_MINUTE);
    }
    advance(f, 10 * DET_MINUTE - DET_MILLISECOND);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(counts(f).timeouts_fired, i);
        advance(f, DET_MILLISECOND);
        assert_int_equal(counts(f).timeouts_fired, i + 1);
        assert_int_equal(get(f, name_of(i)).state, CANCELLED);
        advance(f, DET_MINUTE - DET_MILLISECOND);
    }
    fixture_close(f);
}

static void timer_due_during_eviction_fires(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(&faulty, 1, (struct det_effect_policy){ 0 });

    (void)unused;
    start_many(f, 0, 1);
    advance(f, 30 * DET_MINUTE - DET_MILLISECOND);
    faulty.release_takes = DET_SECOND;
    start_many(f, 1, 2);
    assert_true(counts(f).evictions >= 1);
    faulty.release_takes = 0;
    advance(f, DET_MINUTE);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(get(f, "o-0").state, CANCELLED);
    fixture_close(f);
}

static void effects_that_wait_continue_at_their_time(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(
        &faulty, 2,
        (struct det_effect_policy){ .backoff_first = 10 * DET_SECOND,
                                    .jitter_percent = UINT32_MAX });

    (void)unused;
    f->control.effect_failures = 1;
    start_many(f, 0, 1);
    assert_int_equal(send_kind(f, "o-0", PAY), 0);
    settle(f);
    start_many(f, 1, 10);
    advance(f, 9 * DET_SECOND);
    assert_int_equal(f->control.effects, 1);
    advance(f, DET_SECOND);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(get(f, "o-0").state, PAID);
    assert_int_equal(counts(f).effects_done, 1);
    fixture_close(f);
}

/* The effect of o-0 waits while others come. */
static void others_come(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    start_many(f, 1, 10);
    assert_true(counts(f).evictions >= 8);
}

static void instance_with_a_running_effect_is_not_evicted(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(&faulty, 2, (struct det_effect_policy){ 0 });
    unsigned before;

    (void)unused;
    start_many(f, 0, 1);
    f->control.in_effect = others_come;
    f->control.context = f;
    assert_int_equal(send_kind(f, "o-0", PAY), 0);
    settle(f);
    before = faulty.loads;
    assert_int_equal(get(f, "o-0").state, PAID);
    assert_int_equal(faulty.loads, before);
    fixture_close(f);
}

static void timer_retry_count_survives_eviction(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(
        &faulty, 2,
        (struct det_effect_policy){
            .attempts_max = 3, .backoff_first = DET_SECOND, .jitter_percent = UINT32_MAX });

    (void)unused;
    start_many(f, 0, 1);
    f->control.exit_result = DET_ERR_BUSY;
    advance(f, 30 * DET_MINUTE);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], i);
        assert_int_equal(f->control.incident.attempt, i);
        start_many(f, 10 * i, 5);
        advance(f, (1 << (i - 1)) * DET_SECOND);
    }
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], 3);
    assert_int_equal(counts(f).timeouts_rejected, 1);
    fixture_close(f);
}

static void a_named_timer_that_is_tried_again_remembers_how_often(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(
        &faulty, 2,
        (struct det_effect_policy){ .backoff_first = DET_SECOND, .jitter_percent = UINT32_MAX });

    (void)unused;
    start_many(f, 0, 1);
    assert_int_equal(send_kind(f, "o-0", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "o-0", SHIP), 0);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_NO_SPACE, 0);
    advance(f, DET_HOUR);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], i);
        assert_int_equal(f->control.incident.attempt, i);
        start_many(f, 10 * i, 5);
        faulty_set(&faulty, i < 3 ? FAULT_BEFORE : FAULT_NONE, DET_ERR_NO_SPACE, 0);
        advance(f, (1 << (i - 1)) * DET_SECOND);
    }
    assert_int_equal(counts(f).timeouts_fired, 1);
    fixture_close(f);
}

static void deferred_events_and_dead_letters_survive_eviction(void **unused)
{
    struct faulty faulty;
    struct fixture *f = small_open(&faulty, 1, (struct det_effect_policy){ .attempts_max = 1 });

    (void)unused;
    f->control.effect_failures = 1;
    start_many(f, 0, 1);
    assert_int_equal(send_kind(f, "o-0", NOTE), 0);
    assert_int_equal(send_kind(f, "o-0", PAY), 0);
    settle(f);
    start_many(f, 1, 5);
    assert_int_equal(get(f, "o-0").deferred_count, 1);
    assert_int_equal(effects(f, "o-0")->count, 1);
    assert_int_equal(effects(f, "o-0")->first.state, DET_EFFECT_STATE_DEAD);
    fixture_close(f);
}

/* The same events at the same times, in much memory and in little: in the end all is the same. */
static void play(struct fixture *f, uint64_t seed)
{
    static const unsigned kinds[] = { PAY, PING, TOUCH, NOTE, SHIP, CANCEL };

    for (unsigned i = 0; i < 600; i++) {
        const char *name = name_of((unsigned)(det_test_random(&seed) % 30));
        unsigned what = (unsigned)(det_test_random(&seed) % 16);

        if (what < 12)
            (void)send_kind(f, name, kinds[what / 2]);
        else if (what < 14)
            (void)start(f, name);
        else
            advance(f, (det_time)(det_test_random(&seed) % 400) * DET_SECOND);
        settle(f);
    }
    advance(f, DET_HOUR);
}

struct sight {
    int result;
    struct det_instance at;
    struct order_data data;
    size_t effects, events;
    struct listed_timers timers;
};

static void see(struct fixture *f, const char *name, struct sight *sight)
{
    memset(sight, 0, sizeof *sight);
    sight->result = det_runtime_get(f->runtime, f->order, name, &sight->at, &sight->data, NULL);
    if (sight->result < 0)
        return;
    sight->effects = effects(f, name)->count;
    sight->events = events_after(f, name, 0)->count;
    sight->timers = *timers(f, name);
}

static void eviction_does_not_change_the_results(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct det_effect_policy policy = { .jitter_percent = UINT32_MAX };
        struct faulty much_store, little_store;
        struct fixture *much = small_open(&much_store, 1000, policy);
        struct fixture *little = small_open(&little_store, 3, policy);

        much->control.effect_failures = little->control.effect_failures = (int)(seed % 2);
        play(much, seed);
        play(little, seed);
        for (unsigned i = 0; i < 30; i++) {
            struct sight first, second;

            see(much, name_of(i), &first);
            see(little, name_of(i), &second);
            assert_memory_equal(&first, &second, sizeof first);
        }
        assert_int_equal(counts(much).timeouts_fired, counts(little).timeouts_fired);
        assert_int_equal(counts(much).effects_done, counts(little).effects_done);
        assert_int_equal(counts(much).transitions, counts(little).transitions);
        assert_true(counts(little).evictions > 100);
        assert_true(counts(little).instances <= 4);
        fixture_close(much);
        fixture_close(little);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resident_instances_stay_within_the_limit),
        cmocka_unit_test(recently_used_instance_stays_in_memory),
        cmocka_unit_test(on_a_store_that_does_not_block_no_instance_is_evicted),
        cmocka_unit_test(timers_of_evicted_instances_fire_on_time),
        cmocka_unit_test(timer_due_during_eviction_fires),
        cmocka_unit_test(effects_that_wait_continue_at_their_time),
        cmocka_unit_test(instance_with_a_running_effect_is_not_evicted),
        cmocka_unit_test(timer_retry_count_survives_eviction),
        cmocka_unit_test(a_named_timer_that_is_tried_again_remembers_how_often),
        cmocka_unit_test(deferred_events_and_dead_letters_survive_eviction),
        cmocka_unit_test(eviction_does_not_change_the_results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
