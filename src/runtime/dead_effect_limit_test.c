/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dead_effect_limit_test.c - dead effects beyond the limit are dropped, oldest first, but not
 * during a walk over them. */
/* test: threads */
#include "runtime/runtime_test.h"

#include <pthread.h>
#include <stdatomic.h>

/* A walk that begins while the last end of an effect is reported, and waits at its first row. */
struct mourner {
    struct fixture *f;
    struct det_thread *thread;
    struct det_mutex *mutex;
    struct det_condition *changed;
    bool is_walking;
    unsigned deaths, seen;
    int result;
    char first[300];
};

static int stay_at_first(void *context, const struct det_pending_effect *row)
{
    struct mourner *mourner = context;
    struct det_world *world = det_sim_world(mourner->f->sim);

    if (mourner->seen++)
        return 0;
    det_mutex_lock(world, mourner->mutex);
    mourner->is_walking = true;
    det_condition_broadcast(world, mourner->changed);
    det_mutex_unlock(world, mourner->mutex);
    wait_in(world, 100 * DET_MILLISECOND);
    snprintf(mourner->first, sizeof mourner->first, "%s", row->key);
    return 0;
}

static void walk(void *argument)
{
    struct mourner *mourner = argument;

    mourner->result = det_runtime_effects(
        mourner->f->runtime, mourner->f->order, "o-1", stay_at_first, mourner, NULL);
}

static void walk_at_the_last(void *user, const struct det_incident *incident)
{
    struct mourner *mourner = user;
    struct det_world *world = det_sim_world(mourner->f->sim);
    int r = 0;

    if (incident->kind != DET_INCIDENT_EFFECT_DEAD || ++mourner->deaths != DET_DEAD_MAX + 1)
        return;
    assert_int_equal(det_thread_start(world, "walk", walk, mourner, &mourner->thread), 0);
    det_mutex_lock(world, mourner->mutex);
    while (r == 0 && !mourner->is_walking)
        r = det_condition_wait(world, mourner->changed, mourner->mutex, DET_NEVER);
    det_mutex_unlock(world, mourner->mutex);
    assert_int_equal(r, 0);
}

static void dead_effect_walk_keeps_each_effect_valid(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct mourner mourner = { .f = f };
    struct det_runtime_options options = {
        .world = world, .user = &f->control, .observer = &mourner, .incident = walk_at_the_last
    };

    (void)state;
    assert_int_equal(det_mutex_open(world, &mourner.mutex), 0);
    assert_int_equal(det_condition_open(world, &mourner.changed), 0);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(det_runtime_open(f->store, &options, &f->runtime, &f->error), 0);
    f->control.effect_failures = 99;
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i <= DET_DEAD_MAX; i++) {
        assert_int_equal(send_kind(f, "o-1", PAY), 0);
        advance(f, 10 * DET_MINUTE);
    }
    det_thread_join(world, mourner.thread);
    assert_int_equal(mourner.result, 0);
    assert_int_equal(mourner.seen, DET_DEAD_MAX);
    assert_key(mourner.first, "order/o-1/3/0");
    det_condition_close(world, mourner.changed);
    det_mutex_close(world, mourner.mutex);
    fixture_close(f);
}

/* In the real world: effects die on the loop while other threads read them. */
struct crowd {
    struct det_runtime *runtime;
    struct det_machine *machine;
    atomic_bool is_over;
    atomic_size_t too_many;
};

static int fail_always(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    (void)call;
    (void)data;
    (void)event;
    (void)ret;
    return DET_ERR_IO;
}

static struct det_machine *crowd_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("crowd", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "A", .flags = DET_STATE_INITIAL });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "WORK" });
    det_machine_builder_effect(b, &(struct det_effect_row){ .name = "work", .run = fail_always });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("A"),
                                 .events = DET_LIST("WORK"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .effects = DET_LIST("work") });
    return built(b);
}

static int inspect_row(void *context, const struct det_pending_effect *row)
{
    size_t *dead = context;

    *dead += row->state == DET_EFFECT_STATE_DEAD && strncmp(row->key, "crowd/o-1/", 10) == 0;
    return 0;
}

static void *look_again_and_again(void *argument)
{
    struct crowd *crowd = argument;

    while (!atomic_load(&crowd->is_over)) {
        size_t dead = 0;
        int r =
            det_runtime_effects(crowd->runtime, crowd->machine, "o-1", inspect_row, &dead, NULL);

        if (r < 0)
            return "a walk failed";
        atomic_fetch_add(&crowd->too_many, dead > DET_DEAD_MAX);
    }
    return NULL;
}

static void open_crowd(struct crowd *crowd, struct det_store **store)
{
    crowd->machine = crowd_machine();
    assert_int_equal(det_store_open("memory:", store, NULL), 0);
    assert_int_equal(
        det_runtime_open(
            *store, &(struct det_runtime_options){ .effects = { .attempts_max = 1 } },
            &crowd->runtime, NULL),
        0);
    assert_int_equal(
        det_runtime_start(crowd->runtime, crowd->machine, "o-1", NULL, NULL, NULL, NULL), 0);
}

static void threads_may_read_effects_while_they_die(void **state)
{
    struct crowd crowd = { .runtime = NULL };
    struct det_runtime_counts all;
    struct det_store *store;
    pthread_t threads[2];
    struct order_event event = { .kind = 0 };
    void *failure;

    (void)state;
    open_crowd(&crowd, &store);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_again_and_again, &crowd), 0);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(
            det_runtime_send(crowd.runtime, crowd.machine, "o-1", &event, NULL, NULL, NULL), 0);
        if (i % 50 == 0)
            assert_int_equal(det_runtime_settle(crowd.runtime, DET_MINUTE), 0);
    }
    assert_int_equal(det_runtime_settle(crowd.runtime, DET_MINUTE), 0);
    atomic_store(&crowd.is_over, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
    assert_int_equal(atomic_load(&crowd.too_many), 0);
    det_runtime_counts(crowd.runtime, &all);
    assert_int_equal(all.effects_dead, 500);
    det_runtime_close(crowd.runtime);
    det_store_close(store);
    det_machine_close(crowd.machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_effect_walk_keeps_each_effect_valid),
        cmocka_unit_test(threads_may_read_effects_while_they_die),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
