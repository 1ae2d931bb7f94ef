/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_queue_test.c - effects that block: each has a thread, up to a limit; what waits for one
 * says so, and the observer hears of it once. */
#include "lib/test.h"
#include "runtime/runtime_test.h"

#define MANY 12

/* The bank hangs for ten seconds. */
static void hang(void *context)
{
    const struct fixture *f = context;

    wait_in(det_sim_world(f->sim), 10 * DET_SECOND);
}

static struct fixture *open_hanging(uint32_t threads)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .pool_threads = threads });

    f->control.in_effect = hang;
    f->control.context = f;
    return f;
}

static void pay_many(struct fixture *f, unsigned first, unsigned count)
{
    char id[16];

    for (unsigned i = first; i < first + count; i++) {
        (void)snprintf(id, sizeof id, "o-%u", i);
        assert_int_equal(start(f, id), 0);
        assert_int_equal(send_kind(f, id, PAY), 0);
    }
    settle(f);
}

static unsigned reports(const struct fixture *f)
{
    return f->control.incident_counts[DET_INCIDENT_EFFECTS_QUEUED];
}

static void effects_that_block_all_run_by_default(void **unused)
{
    struct fixture *f = open_hanging(0);

    (void)unused;
    pay_many(f, 0, MANY);
    assert_int_equal(f->control.effects, MANY);
    assert_int_equal(counts(f).effects_running, MANY);
    assert_int_equal(counts(f).effects_queued, 0);
    advance(f, 5 * DET_SECOND);
    assert_int_equal(reports(f), 0);
    advance(f, 10 * DET_SECOND);
    assert_int_equal(counts(f).effects_running, 0);
    assert_int_equal(counts(f).effects_done, MANY);
    fixture_close(f);
}

static void effect_waiting_for_a_thread_is_listed_as_queued(void **unused)
{
    struct fixture *f = open_hanging(2);
    det_time began = det_world_now(det_sim_world(f->sim), DET_CLOCK_WALL);

    (void)unused;
    pay_many(f, 0, 3);
    assert_int_equal(counts(f).effects_running, 2);
    assert_int_equal(counts(f).effects_queued, 1);
    assert_int_equal(effects(f, "o-0")->first.state, DET_EFFECT_STATE_RUNNING);
    assert_int_equal(effects(f, "o-0")->first.began, began);
    assert_int_equal(effects(f, "o-2")->first.state, DET_EFFECT_STATE_QUEUED);
    assert_int_equal(effects(f, "o-2")->first.began, 0);
    advance(f, 10 * DET_SECOND);
    assert_int_equal(get(f, "o-0").state, PAID);
    assert_int_equal(effects(f, "o-2")->first.state, DET_EFFECT_STATE_RUNNING);
    assert_int_equal(effects(f, "o-2")->first.began, began + 10 * DET_SECOND);
    fixture_close(f);
}

static void waiting_effects_are_reported_once_until_none_waits(void **unused)
{
    struct fixture *f = open_hanging(2);

    (void)unused;
    pay_many(f, 0, 5);
    assert_int_equal(reports(f), 0);
    advance(f, DET_SECOND);
    assert_int_equal(reports(f), 1);
    assert_string_equal(
        f->control.incident_text,
        "3 effects wait for a thread: 2 of 2 are in use, 2 by order.charge_card");
    assert_string_equal(f->control.incident.name, "charge_card");
    assert_string_equal(f->control.incident.instance, "");
    assert_ptr_equal(f->control.incident.machine, f->order);
    assert_int_equal(f->control.incident.code, DET_ERR_LIMIT);
    pay_many(f, 5, 1);
    advance(f, 18 * DET_SECOND);
    assert_int_equal(counts(f).effects_queued, 2);
    assert_int_equal(reports(f), 1);
    advance(f, 11 * DET_SECOND);
    assert_int_equal(counts(f).effects_queued, 0);
    pay_many(f, 6, 4);
    advance(f, 2 * DET_SECOND);
    assert_int_equal(reports(f), 2);
    fixture_close(f);
}

/* Each takes no time: they wait, but not for long. */
static void a_burst_of_short_effects_is_not_reported(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ .pool_threads = 1 });

    (void)unused;
    pay_many(f, 0, MANY);
    advance(f, 5 * DET_SECOND);
    assert_int_equal(counts(f).effects_done, MANY);
    assert_int_equal(reports(f), 0);
    fixture_close(f);
}

static int refuse_thread(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    (void)world;
    (void)name;
    (void)run;
    (void)argument;
    (void)ret;
    return DET_ERR_NO_MEMORY;
}

/* It starts with two; while the system provides no third the effect waits, and it runs as soon as
 * there is one, without another event. */
static void a_thread_that_the_system_refuses_is_asked_for_again(void **unused)
{
    struct fixture *f = open_hanging(4);
    struct det_world *world = det_sim_world(f->sim);
    const struct det_world_ops *own = world->ops;
    struct det_world_ops poor = *own;

    (void)unused;
    poor.thread_start = refuse_thread;
    world->ops = &poor;
    pay_many(f, 0, 3);
    advance(f, DET_SECOND);
    assert_int_equal(reports(f), 1);
    assert_string_equal(
        f->control.incident_text,
        "1 effect waits for a thread: 2 of 4 are in use, 2 by order.charge_card; the system "
        "provides no more threads");
    assert_int_equal(f->control.incident.code, DET_ERR_NO_MEMORY);
    world->ops = own;
    advance(f, DET_SECOND);
    assert_int_equal(counts(f).effects_running, 3);
    fixture_close(f);
}

/* Those that wait are not begun by a runtime that closes. */
static void close_starts_no_waiting_effects(void **unused)
{
    struct fixture *f = open_hanging(1);

    (void)unused;
    pay_many(f, 0, 3);
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true });
    assert_int_equal(f->control.effects, 1);
    assert_int_equal(counts(f).effects_queued, 0);
    assert_int_equal(get(f, "o-2").state, CHARGING);
    fixture_close(f);
}

static void more_threads_than_the_limit_are_refused(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_runtime_options options = { .world = det_sim_world(f->sim),
                                           .pool_threads = DET_EFFECT_THREADS_MAX + 1 };
    struct det_runtime *none = NULL;

    (void)unused;
    assert_int_equal(det_runtime_open(f->store, &options, &none, &f->error), DET_ERR_INVALID);
    assert_string_equal(f->error.text, "pool_threads must be at most 1024");
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_that_block_all_run_by_default),
        cmocka_unit_test(effect_waiting_for_a_thread_is_listed_as_queued),
        cmocka_unit_test(waiting_effects_are_reported_once_until_none_waits),
        cmocka_unit_test(a_burst_of_short_effects_is_not_reported),
        cmocka_unit_test(a_thread_that_the_system_refuses_is_asked_for_again),
        cmocka_unit_test(close_starts_no_waiting_effects),
        cmocka_unit_test(more_threads_than_the_limit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
