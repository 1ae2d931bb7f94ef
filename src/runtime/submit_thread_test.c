/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit_thread_test.c - threads of the real world that submit and send to the same instances, on
 * a store that blocks, with room for few of them in memory: nothing is lost, nothing is done twice,
 * each thread's order is kept. */
/* test: threads */
#include "runtime/faulty_test.h"

#include <pthread.h>

#define THREADS   3
#define INSTANCES 20
#define SENDS     600

struct crowd {
    struct faulty faulty;
    struct det_runtime *runtime;
    struct det_machine *machine;
    atomic_uint done, threads;
};

struct submitted {
    struct det_send send;
    struct order_event event;
    char instance[16];
    int result; /* of the call */
};

/* The functions of this machine touch nothing. */
static int agree(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return 0;
}

static struct det_machine *crowd_machine(void)
{
    struct det_machine *machine = order_machine(false);

    assert_int_equal(det_machine_bind_hook(machine, "leave", agree), 0);
    assert_int_equal(det_machine_bind_hook(machine, "enter", agree), 0);
    assert_int_equal(det_machine_bind_update(machine, "count", order_count), 0);
    return machine;
}

static void crowd_open(struct crowd *crowd)
{
    *crowd = (struct crowd){ .machine = crowd_machine() };
    crowd->faulty.store = (struct det_store){ .ops = &faulty_slow_ops, .world = det_world_real() };
    assert_int_equal(det_store_open("memory:", &crowd->faulty.inner, NULL), 0);
    assert_int_equal(
        det_runtime_open(
            &crowd->faulty.store,
            &(struct det_runtime_options){ .writers = 2, .shards = 2, .instances_max = 8 },
            &crowd->runtime, NULL),
        0);
}

static void crowd_close(struct crowd *crowd)
{
    det_runtime_close(crowd->runtime);
    det_store_close(&crowd->faulty.store);
    det_machine_close(crowd->machine);
}

static void done(struct det_send *send)
{
    atomic_fetch_add(&((struct crowd *)send->user)->done, 1);
}

/* PING stays, TOUCH moves; every third one is sent, the others are submitted. */
static void *submit_and_send(void *argument)
{
    struct crowd *crowd = argument;
    uint64_t seed = atomic_fetch_add(&crowd->threads, 1) + 1;
    struct submitted *all = calloc(SENDS, sizeof *all);

    assert_non_null(all);
    for (unsigned i = 0; i < SENDS; i++) {
        struct submitted *one = &all[i];

        one->event.kind = det_test_random(&seed) % 2 ? PING : TOUCH;
        snprintf(
            one->instance, sizeof one->instance, "o-%u",
            (unsigned)(det_test_random(&seed) % INSTANCES));
        one->send = (struct det_send){ .machine = crowd->machine,
                                       .instance = one->instance,
                                       .event = &one->event,
                                       .done = done,
                                       .user = crowd };
        /* Once it is submitted it is the runtime's. */
        if (i % 3)
            one->result = det_runtime_submit(crowd->runtime, &one->send);
        else
            one->result = det_runtime_send(
                crowd->runtime, crowd->machine, one->instance, &one->event, NULL, NULL, NULL);
    }
    return all;
}

/* Submissions of one thread to one instance have growing sequences. */
static void assert_ordered(const struct submitted *all)
{
    for (unsigned id = 0; id < INSTANCES; id++) {
        uint64_t last = 0;
        char name[16];

        snprintf(name, sizeof name, "o-%u", id);
        for (unsigned i = 0; i < SENDS; i++) {
            assert_int_equal(all[i].result, 0);
            assert_int_equal(all[i].send.result, 0);
            if (i % 3 == 0 || strcmp(all[i].instance, name) != 0)
                continue;
            assert_true(all[i].send.sent.sequence > last);
            last = all[i].send.sent.sequence;
        }
    }
}

static uint64_t sum_of_sequences(struct crowd *crowd)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < INSTANCES; i++) {
        struct det_instance at;
        char name[16];

        snprintf(name, sizeof name, "o-%u", i);
        assert_int_equal(det_runtime_get(crowd->runtime, crowd->machine, name, &at, NULL, NULL), 0);
        sum += at.sequence;
    }
    return sum;
}

static void threads_submit_and_send_to_the_same_instances(void **unused)
{
    struct submitted *all[THREADS];
    struct det_runtime_counts counts;
    pthread_t threads[THREADS];
    struct crowd crowd;
    char name[16];

    (void)unused;
    crowd_open(&crowd);
    for (unsigned i = 0; i < INSTANCES; i++) {
        snprintf(name, sizeof name, "o-%u", i);
        assert_int_equal(
            det_runtime_start(crowd.runtime, crowd.machine, name, NULL, NULL, NULL, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_and_send, &crowd), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], (void **)&all[i]), 0);
    det_runtime_counts(crowd.runtime, &counts);
    /* The queue has room for 8. */
    assert_true(counts.evictions >= INSTANCES - 8);
    /* The close waits for what is still to be done. */
    det_runtime_close(crowd.runtime);
    assert_int_equal(atomic_load(&crowd.done), THREADS * SENDS / 3 * 2);
    assert_int_equal(det_runtime_open(&crowd.faulty.store, NULL, &crowd.runtime, NULL), 0);
    assert_int_equal(sum_of_sequences(&crowd), THREADS * SENDS);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_ordered(all[i]);
        free(all[i]);
    }
    crowd_close(&crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_submit_and_send_to_the_same_instances),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
