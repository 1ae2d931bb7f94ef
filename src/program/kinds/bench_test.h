/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bench_test.h - for suites of kinds: one manually driven worker of any kind, in a simulated
 * world or in the real one. It observes, decides and acts one after the other, as the supervisor
 * does, which is left out. */
#ifndef DET_KINDS_BENCH_TEST_H
#define DET_KINDS_BENCH_TEST_H

#include <detent/sim.h>

#include "kinds/kinds_test.h"
#include "os/os.h"

struct bench {
    struct det_worker_context context; /* first: calls get it back */
    const struct det_worker_kind *kind;
    struct det_sim *sim; /* NULL: the real world */
    struct view view;
    void *deps, *observed;
    const void *desired;
    struct det_next last;
    uint32_t actions[DET_WORKER_ACTIONS_MAX]; /* how often each was done */
    char failure[DET_WORKER_REASON_MAX + 1];
    char refusal[512];
    char reason[DET_WORKER_REASON_MAX + 1]; /* of the last answer */
    bool is_cancelled, stop_wanted;
};

static inline struct bench *bench_of(struct det_worker_context *context)
{
    return (struct bench *)(void *)context;
}

static inline bool bench_is_cancelled(struct det_worker_context *context)
{
    return bench_of(context)->is_cancelled;
}

DET_PRINTF(2, 3)
static inline void bench_fail(struct det_worker_context *context, const char *format, ...)
{
    struct bench *bench = bench_of(context);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(bench->failure, sizeof bench->failure, format, list);
    va_end(list);
}

static inline void bench_count(struct det_worker_context *context, const char *name, uint64_t more)
{
    (void)context;
    (void)name;
    (void)more;
}

static inline void bench_gauge(struct det_worker_context *context, const char *name, double value)
{
    (void)context;
    (void)name;
    (void)value;
}

static inline void bench_lock(struct det_worker_context *context)
{
    (void)context;
}

static inline void *bench_inherited(struct det_worker_context *context, const char *name)
{
    (void)context;
    (void)name;
    return NULL;
}

static inline det_time bench_now(const struct bench *bench)
{
    return det_world_now(bench->context.world, DET_CLOCK_MONOTONIC);
}

/* `desired` is borrowed and may be changed between two steps. In the real world without a `sim`. */
static inline void bench_open(
    struct bench *bench, const struct det_worker_kind *kind, struct det_sim *sim,
    const void *desired)
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

    *bench = (struct bench){ .kind = kind, .sim = sim, .desired = desired };
    bench->deps = calloc(1, kind->deps_size + 1);
    bench->observed = calloc(1, kind->observed.get()->size);
    view_init(&bench->view, kind, desired, bench->observed);
    bench->context = (struct det_worker_context){
        .calls = &calls,
        .identity = &bench->view.identity,
        .world = sim ? det_sim_world(sim) : det_world_real(),
        .deadline = DET_NEVER,
    };
    bench->view.all.state = 0;
    bench->view.all.since = bench_now(bench);
    if (kind->open)
        assert_int_equal(kind->open(&bench->context, bench->deps), 0);
}

static inline void bench_close(struct bench *bench)
{
    if (bench->kind->close)
        bench->kind->close(bench->deps);
    free(bench->deps);
    free(bench->observed);
}

static inline void bench_collect(struct bench *bench)
{
    const struct det_record *record = bench->kind->observed.get();
    struct det_error error = { 0 };

    memset(bench->observed, 0, record->size);
    assert_int_equal(
        bench->kind->collect(&bench->context, bench->deps, bench->desired, bench->observed), 0);
    if (det_record_validate(record, bench->observed, &error) < 0)
        fail_msg("%s", error.text);
}

static inline void bench_enter(struct bench *bench, uint16_t state)
{
    bench->view.all.state = state;
    bench->view.all.since = bench_now(bench);
}

static inline void bench_act(struct bench *bench, uint16_t action)
{
    const struct det_worker_action *what = &bench->kind->actions[action];
    struct det_action_end *end = &bench->view.last_action;
    det_time began = bench_now(bench);

    bench->failure[0] = '\0';
    bench->actions[action]++;
    end->code = what->run(&bench->context, bench->deps, bench->desired);
    end->action = what->name;
    end->at = bench_now(bench);
    end->took = end->at - began;
    memcpy(end->text, bench->failure, sizeof end->text);
    if (end->code < 0 && end->code != DET_ERR_CANCELLED)
        assert_true(*bench->failure);
}

/* Observes, decides, does it. */
static inline void bench_step(struct bench *bench)
{
    const struct det_worker_state *state = &bench->kind->states[bench->view.all.state];

    bench_collect(bench);
    bench->view.all.now = bench->view.all.observed_at = bench_now(bench);
    bench->view.all.wall = det_world_now(bench->context.world, DET_CLOCK_WALL);
    bench->view.all.stop_wanted = bench->stop_wanted;
    if (bench->stop_wanted && state->phase != DET_PHASE_STOPPED &&
        state->phase != DET_PHASE_STOPPING) {
        bench_enter(bench, state->on_stop);
        return;
    }
    if (bench->stop_wanted && state->phase == DET_PHASE_STOPPED) {
        bench->last = (struct det_next){ DET_NEXT_HOLD, 0, "rests" };
        return;
    }
    bench->last = view_ask(&bench->view, bench->view.all.state);
    (void)snprintf(bench->reason, sizeof bench->reason, "%s", bench->last.reason);
    bench->last.reason = bench->reason;
    if (bench->last.kind == DET_NEXT_GOTO)
        bench_enter(bench, bench->last.what);
    else if (bench->last.kind == DET_NEXT_DO)
        bench_act(bench, bench->last.what);
}

/* Until it holds, or an action has failed. */
static inline void bench_settle(struct bench *bench)
{
    for (int i = 0; i < 100; i++) {
        bench_step(bench);
        if (bench->last.kind == DET_NEXT_HOLD ||
            (bench->last.kind == DET_NEXT_DO && bench->view.last_action.code < 0))
            return;
    }
    fail_msg("it does not settle: %s", bench->reason);
}

/* So much of virtual time, a step every 100 ms. */
static inline void bench_run(struct bench *bench, det_time span)
{
    det_time end = bench_now(bench) + span;

    while (bench_now(bench) < end) {
        bench_settle(bench);
        assert_int_equal(det_sim_advance(bench->sim, 100 * DET_MILLISECOND), 0);
    }
    bench_settle(bench);
}

static inline const char *bench_state(const struct bench *bench)
{
    return bench->kind->states[bench->view.all.state].name;
}

static inline void assert_state(const struct bench *bench, const char *name)
{
    if (strcmp(bench_state(bench), name) != 0)
        fail_msg("it is %s (%s), not %s", bench_state(bench), bench->reason, name);
}

static inline void assert_reason(const struct bench *bench, const char *part)
{
    if (!strstr(bench->reason, part))
        fail_msg("the reason is \"%s\", without \"%s\"", bench->reason, part);
}

/* Stops it and continues until it rests; events that it waits for must come by themselves. */
static inline void bench_stop(struct bench *bench)
{
    bench->stop_wanted = true;
    for (int i = 0; i < 1000; i++) {
        bench_step(bench);
        if (bench->kind->states[bench->view.all.state].phase == DET_PHASE_STOPPED)
            return;
        if (bench->sim)
            assert_int_equal(det_sim_advance(bench->sim, 100 * DET_MILLISECOND), 0);
    }
    fail_msg("it does not stop: %s", bench->reason);
}

/* A text into an array of a record. */
#define PUT(field, text) (void)snprintf(field, sizeof(field), "%s", text)

/* derive() */

struct bench_derive {
    struct det_derive derive;
    char text[512];
};
DET_PRINTF(2, 3)
static inline int bench_refuse(struct det_derive *derive, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(
        ((struct bench_derive *)(void *)derive)->text, sizeof((struct bench_derive *)0)->text,
        format, list);
    va_end(list);
    return DET_ERR_INVALID;
}

/* Settles the config in its own place, as far as the kind takes it: what is left out is filled in.
 * Returns "", or the refusal. */
static inline const char *bench_derive(
    const struct det_worker_kind *kind, void *config, struct bench_derive *derive)
{
    size_t size = kind->desired.get()->size;
    void *copy = malloc(size);
    int r;

    *derive = (struct bench_derive){ .derive = { .refuse = bench_refuse } };
    memcpy(copy, config, size);
    r = kind->derive(&derive->derive, copy, config);
    if (r < 0)
        memcpy(config, copy, size);
    free(copy);
    assert_true((r < 0) == (*derive->text != '\0'));
    if (r == 0)
        assert_int_equal(det_record_validate(kind->desired.get(), config, NULL), 0);
    return derive->text;
}

static inline void assert_derived(const struct det_worker_kind *kind, void *config)
{
    struct bench_derive derive;
    const char *text = bench_derive(kind, config, &derive);

    if (*text)
        fail_msg("refused: %s", text);
}

static inline void assert_refused(
    const struct det_worker_kind *kind, void *config, const char *part)
{
    struct bench_derive derive;
    const char *text = bench_derive(kind, config, &derive);

    if (!strstr(text, part))
        fail_msg("refused with \"%s\", without \"%s\"", text, part);
}

#endif
