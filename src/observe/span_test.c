/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* span_test.c - spans and their queue, in virtual time. */
#include <detent/sim.h>

#include "observe/metrics_test.h"
#include "observe/span.h"
#include "os/os.h"

struct fixture {
    struct det_sim *sim;
    struct det_world *world;
    struct det_metrics *metrics;
    struct det_tracer *tracer;
};

static void open_fixture(struct fixture *fixture, uint32_t queue_max, uint32_t kept)
{
    assert_int_equal(det_sim_open(NULL, &fixture->sim, NULL), 0);
    fixture->world = det_sim_world(fixture->sim);
    fixture->metrics = metrics_of(&(struct det_metrics_options){ .world = fixture->world });
    assert_int_equal(
        det_tracer_open(
            &(struct det_tracer_options){ .world = fixture->world,
                                          .metrics = fixture->metrics,
                                          .queue_max = queue_max,
                                          .kept_per_million = kept },
            &fixture->tracer),
        0);
}

static void close_fixture(struct fixture *fixture)
{
    det_tracer_close(fixture->tracer);
    det_metrics_close(fixture->metrics);
    det_sim_close(fixture->sim);
}

static void spans_have_their_parent_and_duration(void **state)
{
    struct det_span first, second, taken[4];
    struct fixture fixture;
    det_time wall;

    (void)state;
    open_fixture(&fixture, 0, 0);
    wall = det_world_now(fixture.world, DET_CLOCK_WALL);
    det_span_begin(fixture.tracer, &first, NULL, DET_SPAN_SERVER, "send");
    assert_true(det_span_is_kept(&first));
    det_span_begin(fixture.tracer, &second, &first.context, DET_SPAN_INTERNAL, "commit");
    det_span_text(&second, "detent.machine", "order");
    det_span_number(&second, "detent.sequence", -7);
    assert_int_equal(det_sim_advance(fixture.sim, 3 * DET_SECOND), 0);
    det_sim_jump_wall(fixture.sim, -DET_HOUR);
    det_span_fail(&second, "disk full");
    det_span_end(fixture.tracer, &second);
    det_span_end(fixture.tracer, &first);
    assert_int_equal(det_tracer_take(fixture.tracer, taken, 4, 0), 2);
    assert_string_equal(taken[0].name, "commit");
    assert_memory_equal(taken[0].context.trace_id, taken[1].context.trace_id, 16);
    assert_memory_equal(taken[0].parent, taken[1].context.span_id, 8);
    assert_memory_not_equal(taken[0].context.span_id, taken[1].context.span_id, 8);
    assert_memory_equal(taken[1].parent, (unsigned char[8]){ 0 }, 8);
    assert_int_equal(taken[0].start, wall);
    assert_int_equal(taken[0].end, wall + 3 * DET_SECOND);
    assert_true(taken[0].is_failed);
    assert_string_equal(taken[0].status, "disk full");
    assert_int_equal(taken[0].attribute_count, 2);
    assert_string_equal(taken[0].text + taken[0].attributes[0].offset, "order");
    assert_int_equal(taken[0].attributes[1].number, -7);
    close_fixture(&fixture);
}

static void span_may_end_with_a_start_time_in_the_past(void **state)
{
    struct det_span span, taken;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 0, 0);
    det_span_begin(fixture.tracer, &span, NULL, DET_SPAN_CONSUMER, "effect charge");
    det_span_end_at(fixture.tracer, &span, 100 * DET_SECOND, 3 * DET_SECOND);
    assert_int_equal(det_tracer_take(fixture.tracer, &taken, 1, 0), 1);
    assert_int_equal(taken.start, 97 * DET_SECOND);
    assert_int_equal(taken.end, 100 * DET_SECOND);
    det_span_end_at(fixture.tracer, &span, DET_SECOND, -1);
    assert_int_equal(det_tracer_take(fixture.tracer, &taken, 1, 0), 1);
    assert_int_equal(taken.start, taken.end);
    close_fixture(&fixture);
}

static void remote_context_decides_whether_a_span_is_sampled(void **state)
{
    struct det_trace_context outside = { .trace_id = { 1 }, .span_id = { 2 } };
    struct det_span span, taken;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 0, 0);
    det_span_begin(fixture.tracer, &span, &outside, DET_SPAN_SERVER, "send");
    det_span_text(&span, "a", "b");
    det_span_end(fixture.tracer, &span);
    assert_int_equal(det_tracer_take(fixture.tracer, &taken, 1, 0), 0);
    /* All the same there is something to pass on. */
    assert_memory_equal(span.context.trace_id, outside.trace_id, 16);
    assert_memory_not_equal(span.context.span_id, outside.span_id, 8);
    close_fixture(&fixture);
    open_fixture(&fixture, 0, UINT32_MAX);
    outside.flags = DET_TRACE_SAMPLED;
    det_span_begin(fixture.tracer, &span, &outside, DET_SPAN_SERVER, "send");
    det_span_end(fixture.tracer, &span);
    assert_int_equal(det_tracer_take(fixture.tracer, &taken, 1, 0), 1);
    det_span_begin(fixture.tracer, &span, NULL, DET_SPAN_SERVER, "send");
    det_span_end(fixture.tracer, &span);
    assert_int_equal(det_tracer_take(fixture.tracer, &taken, 1, 0), 0);
    close_fixture(&fixture);
}

static void local_root_spans_are_sampled_at_the_rate(void **state)
{
    struct fixture fixture;
    unsigned kept = 0;

    (void)state;
    open_fixture(&fixture, 0, 250000);
    for (int i = 0; i < 10000; i++) {
        struct det_span span;

        det_span_begin(fixture.tracer, &span, NULL, DET_SPAN_SERVER, "send");
        kept += det_span_is_kept(&span);
    }
    /* Eight standard deviations around a quarter; the seed is always the same. */
    assert_in_range(kept, 2150, 2850);
    close_fixture(&fixture);
}

static void span_attributes_over_the_limit_are_dropped_and_counted(void **state)
{
    char longest[DET_SPAN_TEXT_MAX], *name = calloc(1, 1000);
    struct det_span span;
    struct fixture fixture;

    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    memset(name, 'n', 999);
    open_fixture(&fixture, 0, 0);
    det_span_begin(fixture.tracer, &span, NULL, DET_SPAN_SERVER, name);
    assert_int_equal(strlen(span.name), DET_SPAN_NAME_MAX);
    det_span_fail(&span, name);
    assert_int_equal(strlen(span.status), DET_SPAN_STATUS_MAX);
    det_span_fail(&span, NULL);
    assert_string_equal(span.status, "");
    det_span_text(&span, "a", longest);
    det_span_text(&span, "b", "");
    assert_int_equal(span.left_out, 1);
    for (int i = 1; i < DET_SPAN_ATTRIBUTES_MAX; i++)
        det_span_number(&span, "n", i);
    assert_int_equal(span.left_out, 1);
    det_span_number(&span, "n", 0);
    assert_int_equal(span.left_out, 2);
    assert_int_equal(span.attribute_count, DET_SPAN_ATTRIBUTES_MAX);
    close_fixture(&fixture);
    free(name);
}

static void end_one(struct fixture *fixture, const char *name)
{
    struct det_span span;

    det_span_begin(fixture->tracer, &span, NULL, DET_SPAN_INTERNAL, name);
    det_span_end(fixture->tracer, &span);
}

static void a_full_queue_drops_the_newest_and_counts_them(void **state)
{
    struct det_span taken[8];
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 3, 0);
    for (int round = 0; round < 3; round++) {
        end_one(&fixture, "1");
        end_one(&fixture, "2");
        assert_int_equal(det_tracer_take(fixture.tracer, taken, 1, 0), 1);
        end_one(&fixture, "3");
        end_one(&fixture, "4");
        end_one(&fixture, "5");
        assert_int_equal(det_tracer_take(fixture.tracer, taken, 8, DET_NEVER), 3);
        assert_string_equal(taken[0].name, "2");
        assert_string_equal(taken[2].name, "4");
    }
    assert_metric(fixture.metrics, "detent_spans_dropped_total{reason=\"full\"} 3");
    close_fixture(&fixture);
}

static void end_three(void *argument)
{
    struct fixture *fixture = argument;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(det_world_sleep(fixture->world, DET_SECOND), 0);
        end_one(fixture, "x");
    }
    assert_int_equal(det_world_sleep(fixture->world, DET_SECOND), 0);
    det_tracer_wake(fixture->tracer);
}

static void take_waits_for_enough_spans_or_the_deadline(void **state)
{
    struct det_thread *thread;
    struct det_span taken[8];
    struct fixture fixture;
    det_time begin;

    (void)state;
    open_fixture(&fixture, 0, 0);
    begin = det_world_now(fixture.world, DET_CLOCK_MONOTONIC);
    assert_int_equal(det_thread_start(fixture.world, "end", end_three, &fixture, &thread), 0);
    assert_int_equal(det_tracer_take(fixture.tracer, taken, 2, DET_NEVER), 2);
    assert_int_equal(det_world_now(fixture.world, DET_CLOCK_MONOTONIC), begin + 2 * DET_SECOND);
    assert_int_equal(det_tracer_take(fixture.tracer, taken, 2, begin + 3500 * DET_MILLISECOND), 1);
    assert_int_equal(
        det_world_now(fixture.world, DET_CLOCK_MONOTONIC), begin + 3500 * DET_MILLISECOND);
    assert_int_equal(det_tracer_take(fixture.tracer, taken, 2, DET_NEVER), 0);
    assert_int_equal(det_world_now(fixture.world, DET_CLOCK_MONOTONIC), begin + 4 * DET_SECOND);
    assert_int_equal(det_tracer_take(fixture.tracer, taken, 2, DET_NEVER), 0);
    det_thread_join(fixture.world, thread);
    close_fixture(&fixture);
}

static void spans_without_a_tracer_do_nothing(void **state)
{
    struct det_span span;

    (void)state;
    memset(&span, 0xA5, sizeof span);
    det_span_begin(NULL, &span, NULL, DET_SPAN_SERVER, "send");
    det_span_text(&span, "a", "b");
    det_span_number(&span, "a", 1);
    det_span_fail(&span, "x");
    det_span_end(NULL, &span);
    det_span_end_at(NULL, &span, 1, 1);
    assert_false(det_span_is_kept(&span));
    assert_int_equal(span.attribute_count, 0);
    assert_memory_equal(span.context.trace_id, (unsigned char[16]){ 0 }, 16);
}

static int open_with_failures(struct det_test_memory *memory, void *argument)
{
    struct det_tracer *tracer = NULL;
    int r = det_tracer_open(
        &(struct det_tracer_options){ .allocator = &memory->allocator, .queue_max = 2 }, &tracer);

    (void)argument;
    det_tracer_close(tracer);
    return r;
}

static void open_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(open_with_failures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_have_their_parent_and_duration),
        cmocka_unit_test(span_may_end_with_a_start_time_in_the_past),
        cmocka_unit_test(remote_context_decides_whether_a_span_is_sampled),
        cmocka_unit_test(local_root_spans_are_sampled_at_the_rate),
        cmocka_unit_test(span_attributes_over_the_limit_are_dropped_and_counted),
        cmocka_unit_test(a_full_queue_drops_the_newest_and_counts_them),
        cmocka_unit_test(take_waits_for_enough_spans_or_the_deadline),
        cmocka_unit_test(spans_without_a_tracer_do_nothing),
        cmocka_unit_test(open_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
