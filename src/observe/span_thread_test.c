/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* span_thread_test.c - threads that really end spans while one takes them. */
/* test: threads */
#include "observe/metrics_test.h"
#include "observe/span.h"
#include "os/os.h"

#define THREADS 3
#define SPANS   2000
#define QUEUE   64
#define BATCH   16

struct ender {
    struct det_tracer *tracer;
    struct det_thread *thread;
    int64_t number;
};

static void end_many(void *argument)
{
    struct ender *ender = argument;

    for (int64_t i = 0; i < SPANS; i++) {
        struct det_span span;

        det_span_begin(ender->tracer, &span, NULL, DET_SPAN_INTERNAL, "x");
        det_span_number(&span, "thread", ender->number);
        det_span_number(&span, "number", i);
        det_span_end(ender->tracer, &span);
    }
}

struct taker {
    struct det_tracer *tracer;
    uint64_t taken;
    bool is_wrong;
};

/* Until nothing is left after the wake. */
static void take_all(void *argument)
{
    struct taker *taker = argument;
    int64_t last[THREADS] = { -1, -1, -1 };
    struct det_span spans[BATCH];
    size_t count;

    while ((count = det_tracer_take(taker->tracer, spans, BATCH, DET_NEVER)) > 0) {
        for (size_t i = 0; i < count; i++) {
            int64_t thread = spans[i].attributes[0].number, number = spans[i].attributes[1].number;

            taker->is_wrong = taker->is_wrong || number <= last[thread];
            last[thread] = number;
        }
        taker->taken += count;
    }
}

static void each_span_is_taken_once_in_order_or_counted_as_dropped(void **state)
{
    struct det_world *world = det_world_real();
    struct det_metrics *metrics = metrics_of(NULL);
    struct ender enders[THREADS];
    struct taker taker = { 0 };
    struct det_thread *thread;
    char line[80];

    (void)state;
    assert_int_equal(
        det_tracer_open(
            &(struct det_tracer_options){ .metrics = metrics, .queue_max = QUEUE }, &taker.tracer),
        0);
    assert_int_equal(det_thread_start(world, "take", take_all, &taker, &thread), 0);
    for (size_t i = 0; i < THREADS; i++) {
        enders[i] = (struct ender){ .tracer = taker.tracer, .number = (int64_t)i };
        assert_int_equal(
            det_thread_start(world, "end", end_many, &enders[i], &enders[i].thread), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        det_thread_join(world, enders[i].thread);
    det_tracer_wake(taker.tracer);
    det_thread_join(world, thread);
    assert_false(taker.is_wrong);
    assert_true(taker.taken >= QUEUE);
    snprintf(
        line, sizeof line, "detent_spans_dropped_total{reason=\"full\"} %llu",
        (unsigned long long)((uint64_t)THREADS * SPANS - taker.taken));
    assert_metric(metrics, line);
    det_tracer_close(taker.tracer);
    det_metrics_close(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_span_is_taken_once_in_order_or_counted_as_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
