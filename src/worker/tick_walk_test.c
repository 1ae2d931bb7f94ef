/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tick_walk_test.c - ticks that take longer than a slice, in the real world, whose clock continues
 * while workers decide. */
/* test: threads */
#include "lib/test.h"

#include <detent/workers.h>

#include "base/buffer.h"
#include "os/os.h"

#define WORKER_LOCAL
#define WORKER_SPEC "worker/slow_test.worker"
#include <detent/worker/declare.h>
#define WORKER_LOCAL
#define WORKER_SPEC "worker/slow_test.worker"
#include <detent/worker/define.h>

#define MANY 400

static det_time running_takes, closing_takes;
static uint32_t decisions;

static det_time now(void)
{
    return det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
}

static void decide_for(det_time span)
{
    det_time end = now() + span;

    while (now() < end)
        continue;
    decisions++;
}

static struct slow_next slow_in_stopped(const struct slow_view *view)
{
    (void)view;
    return slow_goto(SLOW_RUNNING, "is to run");
}

static struct slow_next slow_in_running(const struct slow_view *view)
{
    (void)view;
    decide_for(running_takes);
    return slow_hold("runs");
}

static struct slow_next slow_in_closing(const struct slow_view *view)
{
    (void)view;
    decide_for(closing_takes);
    return slow_goto(SLOW_STOPPED, "closed");
}

static int slow_collect(
    struct det_worker_context *context, struct det_empty *deps, const struct det_empty *desired,
    struct det_empty *observed)
{
    (void)context;
    (void)deps;
    (void)desired;
    (void)observed;
    return 0;
}

struct yard {
    struct det_loop *loop;
    struct det_workers *workers;
};

static void apply(struct yard *yard, uint32_t count)
{
    struct det_buffer yaml;

    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, count ? "children:\n" : "children: []\n");
    for (uint32_t i = 0; i < count; i++)
        det_buffer_format(&yaml, "- {name: s%u, kind: slow}\n", i);
    assert_int_equal(det_workers_apply(yard->workers, det_buffer_text(&yaml), NULL), 0);
    det_buffer_deinit(&yaml);
}

static struct det_workers_summary summary_of(struct yard *yard)
{
    struct det_workers_summary summary;

    det_workers_summary(yard->workers, &summary);
    return summary;
}

static void turn(struct yard *yard)
{
    assert_true(det_loop_turn(yard->loop, DET_NEVER) >= 0);
}

/* The loop is turned by the test, so that it sees what one turn does. */
static void open_yard(struct yard *yard, struct det_worker_limits limits)
{
    static const struct det_worker_kind *const kinds[] = { &slow_kind, NULL };
    struct det_workers_options options = { .kinds = kinds, .limits = limits };

    running_takes = closing_takes = 0;
    decisions = 0;
    assert_int_equal(det_loop_open(NULL, NULL, &yard->loop), 0);
    options.loop = yard->loop;
    assert_int_equal(det_workers_open(&options, &yard->workers, NULL), 0);
    apply(yard, MANY);
    while (summary_of(yard).by_phase[DET_PHASE_RUNNING] < MANY + 1)
        turn(yard);
}

static void close_yard(struct yard *yard)
{
    det_workers_close(yard->workers);
    det_loop_close(yard->loop);
}

static void long_tick_yields_the_loop_between_slices(void **state)
{
    struct yard yard;
    uint64_t ticks;
    uint32_t before, most = 0;

    (void)state;
    open_yard(&yard, (struct det_worker_limits){ 0 });
    running_takes = 100 * DET_MICROSECOND;
    ticks = summary_of(&yard).ticks;
    decisions = 0;
    while (summary_of(&yard).ticks < ticks + 3) {
        before = decisions;
        turn(&yard);
        if (decisions - before > most)
            most = decisions - before;
    }
    assert_true(decisions >= MANY);
    assert_in_range(most, 1, MANY / 2);
    /* A summary does not show the part of a tick that is under way. */
    assert_int_equal(summary_of(&yard).by_phase[DET_PHASE_RUNNING], MANY + 1);
    running_takes = 0;
    close_yard(&yard);
}

static void workers_removed_during_a_tick_are_skipped(void **state)
{
    struct yard yard;

    (void)state;
    open_yard(&yard, (struct det_worker_limits){ 0 });
    for (uint32_t left = MANY; left > 0; left -= MANY / 4) {
        uint32_t most = left - MANY / 4;

        running_takes = 100 * DET_MICROSECOND;
        for (uint32_t before = decisions; decisions == before;)
            turn(&yard);
        apply(&yard, most);
        while (summary_of(&yard).workers > most + 1)
            turn(&yard);
        running_takes = 0;
    }
    close_yard(&yard);
}

static void stop_time_is_not_consumed_by_other_ticks(void **state)
{
    struct yard yard;
    struct det_error error = { .text = "" };
    det_time began;

    (void)state;
    open_yard(&yard, (struct det_worker_limits){ .stop_grace = 500 * DET_MILLISECOND });
    closing_takes = 4 * DET_MILLISECOND;
    began = now();
    if (det_workers_stop(yard.workers, &error) < 0)
        fail_msg("%s", error.text);
    /* Longer than the time of both levels. */
    assert_true(now() - began > DET_SECOND);
    close_yard(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_tick_yields_the_loop_between_slices),
        cmocka_unit_test(workers_removed_during_a_tick_are_skipped),
        cmocka_unit_test(stop_time_is_not_consumed_by_other_ticks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
