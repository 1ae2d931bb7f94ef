/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_loan_cases.h - requirements on a loop that is borrowed while it sleeps, in every world. See
 * common_cases.h. */
#ifndef DET_OS_LOOP_LOAN_CASES_H
#define DET_OS_LOOP_LOAN_CASES_H

#include <detent/driver/loop.h>
#include <stdatomic.h>

#include "os/loop_cases.h"
#include "os/loop_loan.h"

#define BORROWERS 3
#define LOANS     200

/* A loop on its own thread, and data that only its owner accesses. */
struct lending {
    struct det_loop *loop;
    struct gate gate;
    struct det_post post;
    struct det_timer timer;
    int count; /* not atomic: one owner at a time */
};

static inline void count_and_report(void *argument)
{
    struct lending *lending = argument;

    lending->count++;
    gate_add(&lending->gate, 1);
}

static inline void lending_open_with_nap(
    struct lending *lending, struct det_world *world, det_time nap)
{
    *lending = (struct lending){ .count = 0 };
    lending->post = (struct det_post){ .run = count_and_report, .argument = lending };
    lending->timer = (struct det_timer){ .run = count_and_report, .argument = lending };
    gate_init(&lending->gate, world);
    assert_int_equal(0, det_loop_open(world, NULL, &lending->loop));
    det_loop_lend(lending->loop, nap);
    assert_int_equal(0, det_loop_start(lending->loop, "lent"));
}

static inline void lending_open(struct lending *lending, struct det_world *world)
{
    lending_open_with_nap(lending, world, 50 * DET_MICROSECOND);
}

/* Retries until the owner sleeps. */
static inline void borrow_it(struct lending *lending, struct det_world *world)
{
    while (!det_loop_borrow(lending->loop))
        assert_int_equal(0, det_world_sleep(world, DET_MICROSECOND));
}

static inline void lending_close(struct lending *lending)
{
    det_loop_stop(lending->loop);
    det_loop_close(lending->loop);
    gate_deinit(&lending->gate);
}

static void borrowed_loop_is_owned_until_it_is_returned(void **state)
{
    struct world_fixture *fixture = *state;
    struct lending lending;

    lending_open(&lending, fixture->world);
    assert_false(det_loop_is_mine(lending.loop));
    borrow_it(&lending, fixture->world);
    assert_true(det_loop_is_mine(lending.loop));
    assert_false(det_loop_borrow(lending.loop));
    det_loop_return(lending.loop);
    assert_false(det_loop_is_mine(lending.loop));
    lending_close(&lending);
}

static void loop_that_is_not_lent_cannot_be_borrowed(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_loop *loop;

    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_false(det_loop_borrow(loop));
    det_loop_lend(loop, 0);
    assert_false(det_loop_borrow(loop)); /* no thread runs it */
    (void)det_loop_turn(loop, 0);
    assert_false(det_loop_borrow(loop));
    det_loop_close(loop);
}

static void posts_and_timers_of_a_borrower_run_on_the_owner(void **state)
{
    struct world_fixture *fixture = *state;
    struct lending lending;

    lending_open(&lending, fixture->world);
    borrow_it(&lending, fixture->world);
    det_loop_post(lending.loop, &lending.post);
    assert_int_equal(
        0, det_loop_timer_set(
               lending.loop, &lending.timer, det_loop_now(lending.loop) + DET_MILLISECOND));
    assert_int_equal(0, lending.count);
    det_loop_return(lending.loop);
    gate_wait(&lending.gate, 2);
    lending_close(&lending);
    assert_int_equal(2, lending.count);
}

static void break_by_a_borrower_ends_the_loop(void **state)
{
    struct world_fixture *fixture = *state;
    struct lending lending;

    lending_open(&lending, fixture->world);
    borrow_it(&lending, fixture->world);
    det_loop_break(lending.loop);
    det_loop_return(lending.loop);
    det_loop_close(lending.loop);
    gate_deinit(&lending.gate);
}

static bool has_run(void *argument)
{
    struct lending *lending = argument;

    return lending->count > 0;
}

/* The owner may run the call first; that passes too. */
static void helping_thread_runs_posted_calls(void **state)
{
    struct world_fixture *fixture = *state;
    struct lending lending;

    lending_open(&lending, fixture->world);
    det_loop_post(lending.loop, &lending.post);
    det_loop_help(lending.loop, DET_NEVER, has_run, &lending);
    gate_wait(&lending.gate, 1);
    lending_close(&lending);
    assert_int_equal(1, lending.count);
}

struct borrower {
    struct lending *lending;
    struct det_world *world;
    struct det_post posts[LOANS];
    int borrowed;
};

static inline void borrow_often(void *argument)
{
    struct borrower *borrower = argument;
    struct det_loop *loop = borrower->lending->loop;

    for (int i = 0; i < LOANS; i++) {
        borrower->posts[i] =
            (struct det_post){ .run = count_and_report, .argument = borrower->lending };
        if (det_loop_borrow(loop)) {
            borrower->lending->count++;
            borrower->borrowed++;
            det_loop_post(loop, &borrower->posts[i]);
            det_loop_return(loop);
        } else {
            det_loop_post(loop, &borrower->posts[i]);
        }
        det_thread_preempt(borrower->world);
    }
}

static void borrowers_and_owner_alternate_without_loss(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_thread *threads[BORROWERS];
    struct borrower *borrowers = calloc(BORROWERS, sizeof *borrowers);
    struct lending lending;
    int borrowed = 0;

    assert_non_null(borrowers);
    lending_open(&lending, fixture->world);
    for (int i = 0; i < BORROWERS; i++) {
        borrowers[i].lending = &lending;
        borrowers[i].world = fixture->world;
        threads[i] = start(fixture->world, borrow_often, &borrowers[i]);
    }
    gate_wait(&lending.gate, BORROWERS * LOANS);
    for (int i = 0; i < BORROWERS; i++) {
        det_thread_join(fixture->world, threads[i]);
        borrowed += borrowers[i].borrowed;
    }
    lending_close(&lending);
    assert_int_equal(BORROWERS * LOANS + borrowed, lending.count);
    free(borrowers);
}

/* Wakes of pollers, counted below the loop. */
static struct {
    const struct det_world_ops *below;
    struct det_world_ops ops;
    atomic_int count;
} wakes;

static inline void count_wake(struct det_world *world, struct det_poller *poller)
{
    atomic_fetch_add(&wakes.count, 1);
    wakes.below->poller_wake(world, poller);
}

static inline void wakes_begin(struct det_world *world)
{
    wakes.below = world->ops;
    wakes.ops = *world->ops;
    wakes.ops.poller_wake = count_wake;
    atomic_store(&wakes.count, 0);
    world->ops = &wakes.ops;
}

static inline int wakes_end(struct det_world *world)
{
    world->ops = wakes.below;
    return atomic_load(&wakes.count);
}

/* Simulation only: on a real machine the nap may end between two loans. */
static void consecutive_loans_wake_the_owner_once(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_post posts[LOANS];
    struct lending lending;
    int count;

    if (!fixture->sim)
        skip();
    lending_open(&lending, fixture->world);
    wakes_begin(fixture->world);
    for (int i = 0; i < LOANS; i++) {
        posts[i] = (struct det_post){ .run = count_and_report, .argument = &lending };
        borrow_it(&lending, fixture->world);
        det_loop_post(lending.loop, &posts[i]);
        det_loop_return(lending.loop);
    }
    count = wakes_end(fixture->world);
    gate_wait(&lending.gate, LOANS);
    lending_close(&lending);
    assert_in_range(count, 0, 1);
}

static inline void post_it(void *argument)
{
    struct lending *lending = argument;

    det_loop_post(lending->loop, &lending->post);
}

static void posts_during_a_loan_wake_the_owner_at_once(void **state)
{
    struct world_fixture *fixture = *state;
    struct lending lending;
    det_time start_time;

    if (!fixture->sim)
        skip();
    lending_open(&lending, fixture->world);
    for (int i = 0; i < 2; i++) { /* the second loan is during a nap */
        borrow_it(&lending, fixture->world);
        if (i == 1)
            det_thread_join(fixture->world, start(fixture->world, post_it, &lending));
        start_time = monotonic(fixture->world);
        det_loop_timer_cancel(lending.loop, &lending.timer);
        if (i == 0)
            assert_int_equal(0, det_loop_timer_set(lending.loop, &lending.timer, start_time));
        det_loop_return(lending.loop);
        gate_wait(&lending.gate, i + 1);
    }
    assert_in_range(monotonic(fixture->world) - start_time, 0, 10 * DET_MICROSECOND);
    lending_close(&lending);
}

#define SPINS_MAX 1000

static inline void spin_on(void *argument)
{
    struct lending *lending = argument;

    if (lending->count++ < SPINS_MAX) {
        (void)!det_world_sleep(lending->gate.world, DET_MILLISECOND);
        det_loop_post(lending->loop, &lending->post);
    }
}

static bool is_never_enough(void *argument)
{
    (void)argument;
    return false;
}

/* Work that posts itself again, run by a helper while the owner naps. */
static void help_returns_at_its_deadline(void **state)
{
    struct world_fixture *fixture = *state;
    struct lending lending;
    det_time deadline;

    if (!fixture->sim)
        skip();
    lending_open_with_nap(&lending, fixture->world, DET_HOUR);
    borrow_it(&lending, fixture->world);
    assert_int_equal(
        0, det_loop_timer_set(lending.loop, &lending.timer, det_loop_now(lending.loop)));
    det_loop_return(lending.loop);
    gate_wait(&lending.gate, 1);
    lending.post.run = spin_on;
    borrow_it(&lending, fixture->world);
    det_loop_post(lending.loop, &lending.post);
    det_loop_return(lending.loop);
    deadline = monotonic(fixture->world) + 10 * DET_MILLISECOND;
    det_loop_help(lending.loop, deadline, is_never_enough, NULL);
    assert_in_range(monotonic(fixture->world), deadline, deadline + DET_MILLISECOND);
    lending.count = SPINS_MAX;
    lending_close(&lending);
}

#define LOAN_CASES                                                                              \
    WORLD_CASE(borrowed_loop_is_owned_until_it_is_returned),                                    \
        WORLD_CASE(loop_that_is_not_lent_cannot_be_borrowed),                                   \
        WORLD_CASE(posts_and_timers_of_a_borrower_run_on_the_owner),                            \
        WORLD_CASE(break_by_a_borrower_ends_the_loop),                                          \
        WORLD_CASE(helping_thread_runs_posted_calls), WORLD_CASE(help_returns_at_its_deadline), \
        WORLD_CASE(borrowers_and_owner_alternate_without_loss),                                 \
        WORLD_CASE(consecutive_loans_wake_the_owner_once),                                      \
        WORLD_CASE(posts_during_a_loan_wake_the_owner_at_once)

#endif
