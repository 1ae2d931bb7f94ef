/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* communicator_bench_test.h - a manually driven communicator: the relay is real HTTP, the
 * clocks are virtual, so that an outage of hours takes no time. The supervisor is left out. */
#ifndef DET_KINDS_COMMUNICATOR_BENCH_TEST_H
#define DET_KINDS_COMMUNICATOR_BENCH_TEST_H

#include "lib/test.h"

#include <detent/sim.h>

#include "kinds/communicator.h"
#include "kinds/kinds.h"
#include "kinds/relay_mock_test.h"

#define SECRET "user-secret"

struct metric {
    char name[48];
    uint64_t total;
    double value;
};

struct bench {
    struct det_worker_context context; /* first: calls get it back */
    struct det_sim *sim;
    struct relay_mock *mock;
    struct channel *channel;
    struct communicator_deps deps;
    struct communicator_desired desired;
    struct communicator_observed observed;
    struct det_reason reason;
    enum communicator_state state;
    struct det_next last;
    int result; /* of the last action */
    char failure[256];
    struct metric metrics[40];
    uint64_t actions[3]; /* by enum communicator_action */
    bool is_cancelled;
};

static struct bench *bench_of(struct det_worker_context *context)
{
    return (struct bench *)(void *)context;
}

static bool bench_is_cancelled(struct det_worker_context *context)
{
    return bench_of(context)->is_cancelled;
}

DET_PRINTF(2, 3)
static void bench_fail(struct det_worker_context *context, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(bench_of(context)->failure, sizeof bench_of(context)->failure, format, list);
    va_end(list);
}

static struct metric *metric_of(struct bench *bench, const char *name)
{
    struct metric *metric = bench->metrics;

    while (*metric->name && strcmp(metric->name, name) != 0)
        metric++;
    assert_true(metric < bench->metrics + 39);
    snprintf(metric->name, sizeof metric->name, "%s", name);
    return metric;
}

static void bench_count(struct det_worker_context *context, const char *name, uint64_t more)
{
    metric_of(bench_of(context), name)->total += more;
}

static void bench_gauge(struct det_worker_context *context, const char *name, double value)
{
    metric_of(bench_of(context), name)->value = value;
}

static void bench_lock(struct det_worker_context *context)
{
    (void)context;
}

static void *bench_inherited(struct det_worker_context *context, const char *name)
{
    return strcmp(name, "channel") != 0 ? NULL : bench_of(context)->channel;
}

DET_PRINTF(2, 3)
static const char *bench_reason(struct det_reason *reason, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(reason->text, sizeof reason->text, format, list);
    va_end(list);
    return reason->text;
}

/* Restarts the worker alone. */
static void bench_begin(struct bench *bench)
{
    bench->deps = (struct communicator_deps){ 0 };
    bench->state = COMMUNICATOR_STOPPED;
    assert_int_equal(communicator_kind.open(&bench->context, &bench->deps), 0);
}

static void bench_end(struct bench *bench)
{
    communicator_kind.close(&bench->deps);
}

static void bench_open(struct bench *bench)
{
    static const struct det_worker_calls calls = {
        .is_cancelled = bench_is_cancelled,
        .explain = bench_fail,
        .count = bench_count,
        .gauge = bench_gauge,
        .lock = bench_lock,
        .unlock = bench_lock,
        .inherited = bench_inherited,
    };
    static const struct det_worker_identity identity = { "root/relay", "relay", "communicator",
                                                         "root(application)/relay(communicator)" };

    *bench = (struct bench){
        .context = { .calls = &calls, .identity = &identity, .deadline = DET_NEVER },
        .reason.format = bench_reason
    };
    assert_int_equal(det_sim_open(NULL, &bench->sim, NULL), 0);
    bench->context.world = det_sim_world(bench->sim);
    assert_int_equal(relay_mock_open(SECRET, &bench->mock), 0);
    assert_int_equal(
        channel_open(&(struct channel_options){ .inbound_max = 4 }, &bench->channel), 0);
    bench->desired = (struct communicator_desired){ .auth_token = SECRET,
                                                    .instance_uuid = "u-0",
                                                    .timeout_ms = 10000 };
    snprintf(
        bench->desired.relay_url, sizeof bench->desired.relay_url, "%s",
        relay_mock_url(bench->mock));
    bench_begin(bench);
}

static void bench_close(struct bench *bench)
{
    bench_end(bench);
    channel_close(bench->channel);
    relay_mock_close(bench->mock);
    det_sim_close(bench->sim);
}

static det_time bench_wall(struct bench *bench)
{
    return det_world_now(bench->context.world, DET_CLOCK_WALL);
}

/* Observes, decides, does it. */
static void bench_step(struct bench *bench)
{
    struct det_worker_view view = { .kind = &communicator_kind,
                                    .desired = &bench->desired,
                                    .observed = &bench->observed,
                                    .state = (uint16_t)bench->state,
                                    .wall = bench_wall(bench),
                                    .scratch = &bench->reason };

    assert_int_equal(
        communicator_kind.collect(&bench->context, &bench->deps, &bench->desired, &bench->observed),
        0);
    assert_int_equal(
        det_record_validate(communicator_observed_record(), &bench->observed, NULL), 0);
    bench->last = communicator_kind.states[bench->state].next(&view);
    if (bench->last.kind == DET_NEXT_GOTO) {
        bench->state = (enum communicator_state)bench->last.what;
    } else if (bench->last.kind == DET_NEXT_DO) {
        bench->actions[bench->last.what]++;
        bench->result = communicator_kind.actions[bench->last.what].run(
            &bench->context, &bench->deps, &bench->desired);
    }
}

/* A second of the worker's life: it decides until it has called the relay, or waits. */
static void bench_second(struct bench *bench)
{
    do
        bench_step(bench);
    while (bench->last.kind == DET_NEXT_GOTO ||
           (bench->last.kind == DET_NEXT_DO && bench->last.what == COMMUNICATOR_RESET_TRANSPORT));
    assert_int_equal(det_sim_advance(bench->sim, DET_SECOND), 0);
}

static void bench_seconds(struct bench *bench, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bench_second(bench);
}

/* Returns the current observation. */
static const struct communicator_observed *bench_check(struct bench *bench)
{
    assert_int_equal(
        communicator_kind.collect(&bench->context, &bench->deps, &bench->desired, &bench->observed),
        0);
    return &bench->observed;
}

static void bench_send(struct bench *bench, const char *content)
{
    assert_int_equal(
        channel_send(bench->channel, &(struct det_message){ .content = content }, 0), 0);
}

/* All that the relay has got, as "a b c". */
static const char *bench_pushed(struct bench *bench)
{
    static char text[512];
    uint64_t count = relay_mock_count(bench->mock, RELAY_MOCK_PUSHED);

    text[0] = 0;
    for (uint64_t i = 0; i < count; i++)
        snprintf(
            text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
            relay_mock_pushed(bench->mock, i)->text.content);
    return text;
}

static void bench_fault(
    struct bench *bench, enum relay_mock_call call, struct relay_mock_fault fault, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(relay_mock_fail(bench->mock, call, &fault), 0);
}

#endif
