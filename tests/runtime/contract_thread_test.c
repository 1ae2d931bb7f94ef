/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* contract_thread_test.c - the runtime under real threads: one writer, once per id, and a close
 * that waits. Threads keep what they saw; only the first one judges it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "runtime/contract_test.h"

#define THREADS 4
#define SENDS   100

struct shop {
    struct det_store *store;
    struct det_runtime *runtime;
    struct lab *lab; /* for the machine's functions, whose log is not used here */
};

struct worker {
    struct shop *shop;
    pthread_t thread;
    char instance[16];
    bool has_ids;
    int results[SENDS];
    struct det_sent sent[SENDS];
};

static void shop_open(struct shop *shop)
{
    struct det_runtime_options options = { 0 };
    struct det_store_options kept = { .event_ids_kept = 2 * SENDS };

    shop->lab = calloc(1, sizeof *shop->lab);
    assert_non_null(shop->lab);
    options.user = shop->lab;
    assert_int_equal(det_store_open_with("memory:", &kept, &shop->store, NULL), 0);
    assert_int_equal(det_runtime_open(shop->store, &options, &shop->runtime, NULL), 0);
}

static void shop_close(struct shop *shop)
{
    det_runtime_close(shop->runtime);
    det_store_close(shop->store);
    free(shop->lab);
}

static void shop_start(struct shop *shop, const char *instance)
{
    assert_int_equal(
        det_runtime_start(shop->runtime, &probe_machine, instance, NULL, NULL, NULL, NULL), 0);
}

/* Sends DISARM, whose rows name no function: nothing of the laboratory is shared. */
static void *work_off(void *argument)
{
    struct worker *worker = argument;
    char id[16];

    for (unsigned i = 0; i < SENDS; i++) {
        struct det_send_options options = { .event_id = worker->has_ids ? id : NULL };

        snprintf(id, sizeof id, "id-%u", i);
        worker->results[i] = probe_send_with(
            worker->shop->runtime, worker->instance, probe_disarm(), &options, &worker->sent[i],
            NULL);
    }
    return NULL;
}

static void run_all(struct worker *workers)
{
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work_off, &workers[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        for (size_t n = 0; n < SENDS; n++)
            assert_int_equal(workers[i].results[n], 0);
}

static uint64_t sequence_of(struct shop *shop, const char *instance)
{
    struct det_instance at;

    assert_int_equal(det_runtime_get(shop->runtime, &probe_machine, instance, &at, NULL, NULL), 0);
    return at.sequence;
}

static void distinct_instances_do_not_interfere(void **unused)
{
    static struct worker workers[THREADS];
    struct shop shop;

    (void)unused;
    memset(workers, 0, sizeof workers);
    shop_open(&shop);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].shop = &shop;
        snprintf(workers[i].instance, sizeof workers[i].instance, "w-%zu", i);
        shop_start(&shop, workers[i].instance);
    }
    run_all(workers);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(sequence_of(&shop, workers[i].instance), SENDS);
        for (size_t n = 0; n < SENDS; n++)
            assert_int_equal(workers[i].sent[n].sequence, n + 1);
    }
    shop_close(&shop);
}

static void every_sequence_of_one_instance_is_given_once(void **unused)
{
    static struct worker workers[THREADS];
    bool seen[THREADS * SENDS + 1] = { false };
    struct shop shop;

    (void)unused;
    memset(workers, 0, sizeof workers);
    shop_open(&shop);
    shop_start(&shop, "one");
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].shop = &shop;
        snprintf(workers[i].instance, sizeof workers[i].instance, "one");
    }
    run_all(workers);
    assert_int_equal(sequence_of(&shop, "one"), THREADS * SENDS);
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t n = 0; n < SENDS; n++) {
            uint64_t sequence = workers[i].sent[n].sequence;

            assert_in_range(sequence, 1, THREADS * SENDS);
            assert_false(seen[sequence]);
            seen[sequence] = true;
            assert_true(n == 0 || sequence > workers[i].sent[n - 1].sequence);
        }
    }
    shop_close(&shop);
}

static void an_id_that_many_send_is_applied_once_with_one_answer(void **unused)
{
    static struct worker workers[THREADS];
    struct shop shop;

    (void)unused;
    memset(workers, 0, sizeof workers);
    shop_open(&shop);
    shop_start(&shop, "one");
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].shop = &shop;
        workers[i].has_ids = true;
        snprintf(workers[i].instance, sizeof workers[i].instance, "one");
    }
    run_all(workers);
    assert_int_equal(sequence_of(&shop, "one"), SENDS);
    for (size_t n = 0; n < SENDS; n++) {
        unsigned firsts = 0;

        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(workers[i].sent[n].sequence, workers[0].sent[n].sequence);
            firsts += !workers[i].sent[n].is_duplicate;
        }
        assert_int_equal(firsts, 1);
    }
    shop_close(&shop);
}

struct witness {
    pthread_t hook, observer, effect;
    struct shop *shop;
    int result;
};

static int witness_hook(struct lab *lab, const char *name, const struct det_move *move)
{
    (void)name;
    (void)move;
    ((struct witness *)lab->context)->hook = pthread_self();
    return 0;
}

static int witness_effect(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)call;
    (void)ret;
    ((struct witness *)lab->context)->effect = pthread_self();
    return DET_EFFECT_DONE;
}

static void witness_note(void *context, const struct det_note *note)
{
    if (note->event == PROBE_TOUCH || note->event == PROBE_GO)
        ((struct witness *)context)->observer = pthread_self();
}

static void *send_touch(void *argument)
{
    struct witness *witness = argument;

    witness->result = probe_send(witness->shop->runtime, "one", probe_touch(), NULL);
    return NULL;
}

static void hooks_and_observer_run_on_the_senders_thread_and_effects_do_not(void **unused)
{
    struct shop shop;
    struct witness witness = { .shop = &shop };
    pthread_t thread;

    (void)unused;
    shop_open(&shop);
    det_runtime_close(shop.runtime);
    assert_int_equal(
        det_runtime_open(
            shop.store,
            &(struct det_runtime_options){
                .user = shop.lab, .observer = &witness, .observe = witness_note },
            &shop.runtime, NULL),
        0);
    shop.lab->hook = witness_hook;
    shop.lab->job = witness_effect;
    shop.lab->context = &witness;
    shop_start(&shop, "one");
    assert_int_equal(probe_send(shop.runtime, "one", lab_go(), NULL), 0);
    assert_true(pthread_equal(witness.hook, pthread_self()));
    assert_true(pthread_equal(witness.observer, pthread_self()));
    assert_int_equal(pthread_create(&thread, NULL, send_touch, &witness), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(witness.result, 0);
    assert_true(pthread_equal(witness.hook, thread));
    assert_true(pthread_equal(witness.observer, thread));
    assert_int_equal(probe_send(shop.runtime, "one", lab_work(1), NULL), 0);
    assert_int_equal(det_runtime_settle(shop.runtime, DET_MINUTE), 0);
    det_runtime_close(shop.runtime);
    shop.runtime = NULL;
    assert_int_equal(shop.lab->call_count, 1);
    assert_false(pthread_equal(witness.effect, pthread_self()));
    shop_close(&shop);
}

struct gate {
    atomic_bool started, closing, ended;
};

static int hold(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    struct gate *gate = lab->context;

    (void)call;
    (void)ret;
    atomic_store(&gate->started, true);
    while (!atomic_load(&gate->closing))
        sched_yield();
    for (unsigned i = 0; i < 2000; i++)
        sched_yield();
    atomic_store(&gate->ended, true);
    return DET_EFFECT_DONE;
}

static void a_close_waits_for_an_effect_on_a_real_thread(void **unused)
{
    struct shop shop;
    struct gate gate = { false, false, false };

    (void)unused;
    shop_open(&shop);
    shop.lab->job = hold;
    shop.lab->context = &gate;
    shop_start(&shop, "one");
    assert_int_equal(probe_send(shop.runtime, "one", lab_go(), NULL), 0);
    assert_int_equal(probe_send(shop.runtime, "one", lab_work(1), NULL), 0);
    while (!atomic_load(&gate.started))
        sched_yield();
    assert_false(atomic_load(&gate.ended));
    atomic_store(&gate.closing, true);
    det_runtime_close(shop.runtime);
    assert_true(atomic_load(&gate.ended));
    assert_int_equal(shop.lab->call_count, 1);
    shop.runtime = NULL;
    shop_close(&shop);
}

static void settle_waits_for_real_effects(void **unused)
{
    struct shop shop;
    struct gate gate = { false, true, false };

    (void)unused;
    shop_open(&shop);
    shop.lab->job = hold;
    shop.lab->context = &gate;
    shop_start(&shop, "one");
    assert_int_equal(probe_send(shop.runtime, "one", lab_go(), NULL), 0);
    assert_int_equal(probe_send(shop.runtime, "one", lab_work(1), NULL), 0);
    assert_int_equal(det_runtime_settle(shop.runtime, DET_MINUTE), 0);
    assert_true(atomic_load(&gate.ended));
    shop_close(&shop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_instances_do_not_interfere),
        cmocka_unit_test(every_sequence_of_one_instance_is_given_once),
        cmocka_unit_test(an_id_that_many_send_is_applied_once_with_one_answer),
        cmocka_unit_test(hooks_and_observer_run_on_the_senders_thread_and_effects_do_not),
        cmocka_unit_test(a_close_waits_for_an_effect_on_a_real_thread),
        cmocka_unit_test(settle_waits_for_real_effects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
