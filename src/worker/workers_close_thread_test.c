/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_close_thread_test.c - a supervisor with its own loop is closed while an action that it
 * has abandoned still runs, on real threads. */
/* test: threads */
#include "lib/test.h"

#include <detent/workers.h>

#include "os/os.h"

#define ROUNDS 20

/* Shared by the action of a round and the test. */
struct round {
    struct det_mutex *mutex;
    struct det_condition *changed;
    bool has_begun, may_end;
};

/* Does not look whether it is cancelled. */
static int hang(struct det_worker_context *context, void *deps, const void *desired)
{
    struct round *round = det_worker_inherited(context, "round");

    (void)deps;
    (void)desired;
    det_mutex_lock(context->world, round->mutex);
    round->has_begun = true;
    det_condition_broadcast(context->world, round->changed);
    while (!round->may_end)
        (void)det_condition_wait(context->world, round->changed, round->mutex, DET_NEVER);
    det_mutex_unlock(context->world, round->mutex);
    return 0;
}

static struct det_next next(const struct det_worker_view *view)
{
    if (view->state == 0)
        return (struct det_next){ DET_NEXT_GOTO, 1, "is to run" };
    return (struct det_next){ DET_NEXT_DO, 0, "again and again" };
}

static const struct det_worker_state states[] = {
    { "stopped", DET_PHASE_STOPPED, 0, next },
    { "up", DET_PHASE_RUNNING, 0, next },
};
static const struct det_worker_action actions[] = { { "hang", 0, hang } };
static const struct det_worker_kind hanging = {
    .name = "hanging",
    .states = states,
    .state_count = 2,
    .actions = actions,
    .action_count = 1,
};
static const struct det_worker_kind *const hanging_kinds[] = { &hanging, NULL };

static void wait_for_begin(struct det_world *world, struct round *round)
{
    det_mutex_lock(world, round->mutex);
    while (!round->has_begun)
        (void)det_condition_wait(world, round->changed, round->mutex, DET_NEVER);
    det_mutex_unlock(world, round->mutex);
}

static void let_it_end(struct det_world *world, struct round *round)
{
    det_mutex_lock(world, round->mutex);
    round->may_end = true;
    det_condition_broadcast(world, round->changed);
    det_mutex_unlock(world, round->mutex);
}

static void close_one(struct det_world *world, struct round *round)
{
    struct det_provided provided[] = { { "round", round }, { NULL, NULL } };
    struct det_workers_options options = {
        .world = world,
        .kinds = hanging_kinds,
        .provided = provided,
        .limits = { .tick = DET_MILLISECOND,
                    .observe_every = 5 * DET_MILLISECOND,
                    .stop_grace = DET_MILLISECOND,
                    .restart_grace = DET_MILLISECOND,
                    .compact_every = DET_MILLISECOND },
    };
    struct det_workers_summary summary;
    struct det_workers *workers;
    int r;

    assert_int_equal(det_workers_open(&options, &workers, NULL), 0);
    assert_int_equal(det_workers_apply(workers, "children: [{name: a, kind: hanging}]", NULL), 0);
    wait_for_begin(world, round);
    /* The action has not ended: it is abandoned at the end of the grace. */
    r = det_workers_stop(workers, NULL);
    assert_true(r == 0 || r == DET_ERR_TIMEOUT);
    det_workers_summary(workers, &summary);
    assert_int_equal(summary.hung, 1);
    let_it_end(world, round);
    det_workers_close(workers);
}

static void abandoned_action_may_return_during_close(void **state)
{
    struct det_world *world = det_world_real();

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct round round = { 0 };

        assert_int_equal(det_mutex_open(world, &round.mutex), 0);
        assert_int_equal(det_condition_open(world, &round.changed), 0);
        close_one(world, &round);
        det_condition_close(world, round.changed);
        det_mutex_close(world, round.mutex);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(abandoned_action_may_return_during_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
