/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contention_test.c - many processes on one instance of PostgreSQL: each is an opening of the store
 * with its own runtime. A send without a condition never returns a conflict. */
/* test: threads */
#include <detent/lock.h>

#include "lib/postgres.h"
#include "os/os.h"
#include "runtime/order_test.h"

#include <stdatomic.h>

#define NODES 16
#define SENDS 25

struct sender {
    struct crowd *crowd;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_thread *thread;
    struct order_control control;
    struct det_error error;
    int result;
};

struct crowd {
    struct det_world *world;
    struct det_machine *order;
    struct sender senders[NODES];
    atomic_uint ready;
};

static bool allows(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return true;
}

static int does_nothing(const struct det_move *move, const void *data, const void *event)
{
    (void)move;
    (void)data;
    (void)event;
    return 0;
}

static struct crowd *crowd_open(unsigned nodes)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    char *url = det_test_postgres_url(det_test_server, NULL);
    struct det_error error = { 0 };

    assert_non_null(crowd);
    crowd->world = det_world_real();
    crowd->order = order_machine_of(allows, does_nothing, order_charge);
    for (unsigned i = 0; i < nodes; i++) {
        struct sender *sender = &crowd->senders[i];

        sender->crowd = crowd;
        if (det_store_open_with(
                url, &(struct det_store_options){ .connections = 3 }, &sender->store, &error) < 0 ||
            det_runtime_open(
                sender->store,
                &(struct det_runtime_options){ .user = &sender->control,
                                               .send_deadline = 5 * DET_MINUTE },
                &sender->runtime, &error) < 0)
            fail_msg("%s", error.text);
    }
    assert_int_equal(
        det_runtime_start(crowd->senders[0].runtime, crowd->order, "o", NULL, NULL, NULL, NULL), 0);
    free(url);
    return crowd;
}

static void crowd_close(struct crowd *crowd)
{
    for (unsigned i = 0; i < NODES; i++) {
        det_runtime_close(crowd->senders[i].runtime);
        det_store_close(crowd->senders[i].store);
    }
    det_machine_close(crowd->order);
    free(crowd);
}

static void send_many(void *argument)
{
    struct sender *sender = argument;
    struct crowd *crowd = sender->crowd;
    struct order_event event = { .kind = PING };

    atomic_fetch_add(&crowd->ready, 1);
    for (unsigned i = 0; i < SENDS && sender->result == 0; i++)
        sender->result = det_runtime_send(
            sender->runtime, crowd->order, "o", &event, NULL, NULL, &sender->error);
}

static void sixteen_senders_on_one_instance_meet_no_conflict(void **state)
{
    struct crowd *crowd = crowd_open(NODES);
    struct det_instance at;
    struct order_data data;

    (void)state;
    for (unsigned i = 0; i < NODES; i++)
        assert_int_equal(
            det_thread_start(
                crowd->world, "sender", send_many, &crowd->senders[i], &crowd->senders[i].thread),
            0);
    for (unsigned i = 0; i < NODES; i++)
        det_thread_join(crowd->world, crowd->senders[i].thread);
    for (unsigned i = 0; i < NODES; i++) {
        if (crowd->senders[i].result < 0)
            fail_msg("sender %u: %s", i, crowd->senders[i].error.text);
    }
    assert_int_equal(
        det_runtime_get(crowd->senders[0].runtime, crowd->order, "o", &at, &data, NULL), 0);
    assert_int_equal(at.sequence, NODES * SENDS);
    assert_int_equal(data.updates, NODES * SENDS);
    crowd_close(crowd);
}

struct submitted {
    struct crowd *crowd;
    struct det_send send;
    struct det_error error;
    atomic_uint *ended;
};

static void note_end(struct det_send *send)
{
    atomic_fetch_add(((struct submitted *)send->user)->ended, 1);
}

static void submissions_to_one_instance_meet_no_conflict(void **state)
{
    struct crowd *crowd = crowd_open(4);
    struct submitted *all = calloc((size_t)4 * SENDS, sizeof *all);
    struct order_event event = { .kind = PING };
    atomic_uint ended = 0;

    (void)state;
    assert_non_null(all);
    for (unsigned i = 0; i < 4 * SENDS; i++) {
        all[i].ended = &ended;
        all[i].send = (struct det_send){ .machine = crowd->order,
                                         .instance = "o",
                                         .event = &event,
                                         .error = &all[i].error,
                                         .done = note_end,
                                         .user = &all[i] };
        assert_int_equal(det_runtime_submit(crowd->senders[i % 4].runtime, &all[i].send), 0);
    }
    while (atomic_load(&ended) < 4 * SENDS)
        assert_int_equal(det_world_sleep(crowd->world, DET_MILLISECOND), 0);
    for (unsigned i = 0; i < 4 * SENDS; i++) {
        if (all[i].send.result < 0)
            fail_msg("%u: %s", i, all[i].error.text);
    }
    crowd_close(crowd);
    free(all);
}

#define WAITERS 100

struct waiter {
    struct crowd *crowd;
    struct det_thread *thread;
    struct det_lock_options options;
    struct det_error error;
    int result;
};

static void take_lock(void *argument)
{
    struct waiter *waiter = argument;
    struct sender *sender = &waiter->crowd->senders[0];
    struct det_lock *lock;

    waiter->result = det_lock_open(
        sender->runtime, waiter->crowd->order, "o", &waiter->options, &lock, &waiter->error);
    if (waiter->result == 0)
        det_lock_close(lock);
}

static void run_waiters(struct waiter *waiters, struct crowd *crowd, det_time wait)
{
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){ .crowd = crowd,
                                      .options = { .wait = wait, .retry = 10 * DET_MINUTE } };
        assert_int_equal(
            det_thread_start(crowd->world, "waiter", take_lock, &waiters[i], &waiters[i].thread),
            0);
    }
    for (unsigned i = 0; i < WAITERS; i++)
        det_thread_join(crowd->world, waiters[i].thread);
}

/* Between two attempts of the same waiter there would be ten minutes: so all are woken. */
static void a_released_lock_wakes_the_next_of_a_hundred(void **state)
{
    struct crowd *crowd = crowd_open(1);
    struct waiter *waiters = calloc(WAITERS, sizeof *waiters);

    (void)state;
    assert_non_null(waiters);
    run_waiters(waiters, crowd, 5 * DET_MINUTE);
    for (unsigned i = 0; i < WAITERS; i++) {
        if (waiters[i].result < 0)
            fail_msg("%u: %s", i, waiters[i].error.text);
    }
    crowd_close(crowd);
    free(waiters);
}

static void a_refused_lock_names_its_holder(void **state)
{
    struct crowd *crowd = crowd_open(1);
    struct waiter *waiters = calloc(WAITERS, sizeof *waiters);

    (void)state;
    assert_non_null(waiters);
    run_waiters(waiters, crowd, -1);
    for (unsigned i = 0; i < WAITERS; i++) {
        if (waiters[i].result == DET_ERR_LOCKED)
            assert_true(waiters[i].error.holder[0] && waiters[i].error.until);
        else
            assert_true(waiters[i].result == 0 || waiters[i].result == DET_ERR_BUSY);
    }
    crowd_close(crowd);
    free(waiters);
}

/* Another holder has the lock all the time. */
static void a_send_to_a_locked_instance_names_the_holder(void **state)
{
    struct crowd *crowd = crowd_open(2);
    struct waiter *waiters = calloc(WAITERS, sizeof *waiters);
    struct order_event event = { .kind = PING };
    struct submitted submitted = { .crowd = crowd };
    atomic_uint ended = 0;
    struct det_lock *lock;

    (void)state;
    assert_non_null(waiters);
    assert_int_equal(
        det_lock_open(crowd->senders[1].runtime, crowd->order, "o", NULL, &lock, NULL), 0);
    run_waiters(waiters, crowd, -1);
    for (unsigned i = 0; i < WAITERS; i++) {
        assert_int_equal(waiters[i].result, DET_ERR_LOCKED);
        assert_true(waiters[i].error.holder[0] && waiters[i].error.until);
    }
    submitted.ended = &ended;
    submitted.send = (struct det_send){ .machine = crowd->order,
                                        .instance = "o",
                                        .event = &event,
                                        .error = &submitted.error,
                                        .done = note_end,
                                        .user = &submitted };
    assert_int_equal(det_runtime_submit(crowd->senders[0].runtime, &submitted.send), 0);
    while (!atomic_load(&ended))
        assert_int_equal(det_world_sleep(crowd->world, DET_MILLISECOND), 0);
    assert_int_equal(submitted.send.result, DET_ERR_LOCKED);
    assert_string_equal(submitted.error.holder, waiters[0].error.holder);
    det_lock_close(lock);
    crowd_close(crowd);
    free(waiters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_senders_on_one_instance_meet_no_conflict),
        cmocka_unit_test(submissions_to_one_instance_meet_no_conflict),
        cmocka_unit_test(a_released_lock_wakes_the_next_of_a_hundred),
        cmocka_unit_test(a_refused_lock_names_its_holder),
        cmocka_unit_test(a_send_to_a_locked_instance_names_the_holder),
    };

    return cmocka_run_group_tests(tests, det_test_server_open, det_test_server_close);
}
