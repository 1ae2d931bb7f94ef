/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* race_test.c - many threads of the real world on one runtime: whatever the schedule, every record
 * is one that a single writer could have made. */
/* test: threads */
#include "runtime/runtime_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/history_test.h"

#define THREADS   4
#define INSTANCES 50
#define SENDS     2000

struct race {
    struct det_runtime *runtime;
    struct det_machine *machine;
    atomic_uint answered, unhandled, duplicates;
    atomic_uint effects;
    atomic_uint threads; /* begun: each has its own seed */
};

/* The functions of this machine touch nothing but atomics. */
static int race_effect(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct race *race = call->move.user;
    unsigned kind = call->move.sequence % 3 ? DECLINED : CHARGED;

    (void)data;
    (void)event;
    atomic_fetch_add(&race->effects, 1);
    if (call->attempt == 1 && call->move.sequence % 5 == 0)
        return DET_ERR_IO;
    memcpy(ret, &kind, sizeof kind);
    return DET_EFFECT_PRODUCED;
}

static bool race_guard(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return true;
}

static int race_hook(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return 0;
}

static void *send_at_random(void *argument)
{
    static const unsigned kinds[] = { PAY, PING, TOUCH, NOTE, NOISE, JUNK, SHIP };
    struct race *race = argument;
    uint64_t seed = atomic_fetch_add(&race->threads, 1) + 1;
    char id[16], event_id[40];

    for (int i = 0; i < SENDS; i++) {
        struct order_event event = { .kind = kinds[det_test_random(&seed) % 7] };
        struct det_send_options options = { 0 };
        struct det_sent sent;
        int r;

        snprintf(id, sizeof id, "o-%d", (int)(det_test_random(&seed) % INSTANCES));
        if (i % 16 == 0) {
            snprintf(
                event_id, sizeof event_id, "e-%d-%u", (int)(det_test_random(&seed) % 300),
                event.kind);
            options.event_id = event_id;
        }
        r = det_runtime_send(race->runtime, race->machine, id, &event, &options, &sent, NULL);
        if (r == 0)
            atomic_fetch_add(sent.is_duplicate ? &race->duplicates : &race->answered, 1);
        else if (r == DET_ERR_UNHANDLED || r == DET_ERR_LIMIT)
            atomic_fetch_add(&race->unhandled, 1);
        else
            return "a send failed in a way it should not";
    }
    return NULL;
}

static void open_race(struct race *race, struct det_store **store)
{
    char id[16];

    race->machine = order_machine_of(race_guard, race_hook, race_effect);
    assert_int_equal(det_store_open("memory:", store, NULL), 0);
    assert_int_equal(
        det_runtime_open(
            *store,
            &(struct det_runtime_options){ .user = race,
                                           .effects = { .backoff_first = DET_MILLISECOND } },
            &race->runtime, NULL),
        0);
    for (int i = 0; i < INSTANCES; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(
            det_runtime_start(race->runtime, race->machine, id, NULL, NULL, NULL, NULL), 0);
    }
}

static void concurrent_threads_record_only_valid_transitions(void **state)
{
    struct race race = { 0 };
    struct det_store *store;
    struct det_runtime_counts all;
    pthread_t threads[THREADS];
    void *failure;
    char id[16];

    (void)state;
    open_race(&race, &store);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_at_random, &race), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
    assert_int_equal(det_runtime_settle(race.runtime, DET_MINUTE), 0);
    for (int i = 0; i < INSTANCES; i++) {
        struct det_instance instance;

        snprintf(id, sizeof id, "o-%d", i);
        instance = check_history(race.runtime, race.machine, id);
        assert_int_equal(instance.effects_pending, 0);
    }
    det_runtime_counts(race.runtime, &all);
    assert_int_equal(
        atomic_load(&race.answered) + atomic_load(&race.duplicates) + atomic_load(&race.unhandled),
        THREADS * SENDS);
    assert_int_equal(all.duplicates, atomic_load(&race.duplicates));
    assert_true(all.effects_done > 0);
    assert_int_equal(all.effects_dead, 0);
    det_runtime_close(race.runtime);
    det_store_close(store);
    det_machine_close(race.machine);
}

static void a_runtime_may_be_opened_and_closed_again_and_again(void **state)
{
    struct race race = { 0 };
    struct det_store *store;

    (void)state;
    open_race(&race, &store);
    for (int i = 0; i < 20; i++) {
        struct order_event event = { .kind = i % 2 ? PING : PAY };

        (void)!det_runtime_send(race.runtime, race.machine, "o-1", &event, NULL, NULL, NULL);
        det_runtime_close(race.runtime);
        assert_int_equal(
            det_runtime_open(
                store, &(struct det_runtime_options){ .user = &race }, &race.runtime, NULL),
            0);
    }
    assert_int_equal(det_runtime_settle(race.runtime, DET_MINUTE), 0);
    check_history(race.runtime, race.machine, "o-1");
    det_runtime_close(race.runtime);
    det_store_close(store);
    det_machine_close(race.machine);
}

struct contest {
    struct race *race;
    int won;
};

static void *start_one(void *argument)
{
    struct contest *contest = argument;
    int r;

    r = det_runtime_start(
        contest->race->runtime, contest->race->machine, "prize", NULL, NULL, NULL, NULL);
    contest->won = r == 0;
    return r == 0 || r == DET_ERR_EXISTS ? NULL : "a start ended in another way";
}

static void one_of_many_concurrent_starts_wins(void **state)
{
    struct race race = { 0 };
    struct contest contests[THREADS];
    struct det_store *store;
    pthread_t threads[THREADS];
    void *failure;
    int winners = 0;

    (void)state;
    open_race(&race, &store);
    for (int i = 0; i < THREADS; i++) {
        contests[i] = (struct contest){ .race = &race };
        assert_int_equal(pthread_create(&threads[i], NULL, start_one, &contests[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
        winners += contests[i].won;
    }
    assert_int_equal(winners, 1);
    det_runtime_close(race.runtime);
    det_store_close(store);
    det_machine_close(race.machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concurrent_threads_record_only_valid_transitions),
        cmocka_unit_test(a_runtime_may_be_opened_and_closed_again_and_again),
        cmocka_unit_test(one_of_many_concurrent_starts_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
