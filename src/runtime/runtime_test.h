/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_test.h - what the suites of the runtime share: a fixture in a simulated world, and lists
 * of what can be seen of an instance. */
#ifndef DET_RUNTIME_TEST_H
#define DET_RUNTIME_TEST_H

#include "os/os.h"
#include "runtime/order_test.h"

/* A simulated world with a store, a runtime and one order machine in it. */
struct fixture {
    struct order_control control;
    struct det_machine *order;
    struct det_sim *sim;
    struct det_store *store;
    struct det_runtime *runtime;
    struct det_error error;
    struct det_sent sent;
};

static inline void fixture_reopen(struct fixture *f, struct det_runtime_options options)
{
    options.world = det_sim_world(f->sim);
    options.user = options.observer = &f->control;
    options.incident = order_incident;
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    assert_int_equal(det_runtime_open(f->store, &options, &f->runtime, &f->error), 0);
}

static inline struct fixture *fixture_open(struct det_runtime_options options)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->control.product = CHARGED;
    f->control.effect_result = DET_EFFECT_PRODUCED;
    f->order = order_machine(true);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 7 }, &f->sim, &f->error), 0);
    f->control.sim = f->sim;
    assert_int_equal(
        det_store_open_with(
            "memory:", &(struct det_store_options){ .world = det_sim_world(f->sim) }, &f->store,
            &f->error),
        0);
    fixture_reopen(f, options);
    return f;
}

static inline void fixture_close(struct fixture *f)
{
    det_runtime_close(f->runtime);
    det_store_close(f->store);
    det_sim_close(f->sim);
    det_machine_close(f->order);
    free(f);
}

static inline int start(struct fixture *f, const char *id)
{
    return det_runtime_start(f->runtime, f->order, id, NULL, NULL, &f->sent, &f->error);
}

static inline int send_with(
    struct fixture *f, const char *id, unsigned kind, struct det_send_options options)
{
    struct order_event event = { .kind = kind };

    if (kind == PAY)
        event.as.pay = (struct payment){ .cents = 1999, .card = "4242" };
    return det_runtime_send(f->runtime, f->order, id, &event, &options, &f->sent, &f->error);
}

static inline int send_kind(struct fixture *f, const char *id, unsigned kind)
{
    return send_with(f, id, kind, (struct det_send_options){ 0 });
}

static inline struct det_instance get(struct fixture *f, const char *id)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(f->runtime, f->order, id, &instance, NULL, NULL), 0);
    return instance;
}

static inline void settle(struct fixture *f)
{
    assert_int_equal(det_sim_settle(f->sim), 0);
}

static inline void advance(struct fixture *f, det_time span)
{
    assert_int_equal(det_sim_advance(f->sim, span), 0);
}

static inline struct det_runtime_counts counts(struct fixture *f)
{
    struct det_runtime_counts all;

    det_runtime_counts(f->runtime, &all);
    return all;
}

/* Virtual time passes for the calling thread; for user code on the pool. */
static inline void wait_in(struct det_world *world, det_time span)
{
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + span;
    struct det_mutex *mutex;
    struct det_condition *never;
    int r = 0;

    assert_int_equal(det_mutex_open(world, &mutex), 0);
    assert_int_equal(det_condition_open(world, &never), 0);
    det_mutex_lock(world, mutex);
    while (r == 0)
        r = det_condition_wait(world, never, mutex, until);
    det_mutex_unlock(world, mutex);
    det_condition_close(world, never);
    det_mutex_close(world, mutex);
    assert_int_equal(r, DET_ERR_TIMEOUT);
}

/* A runtime in the real world whose memory, and whose store's, may run out. */
struct poor {
    struct det_loop *loop;
    struct det_store *store;
    struct det_runtime *runtime;
};

/* Also after an error it is to be closed. */
static inline int poor_open(struct poor *poor, struct det_test_memory *memory, void *user)
{
    const struct det_allocator *allocator = &memory->allocator;
    int r;

    *poor = (struct poor){ 0 };
    assert_int_equal(det_loop_open(NULL, NULL, &poor->loop), 0);
    r = det_store_open_with(
        "memory:", &(struct det_store_options){ .allocator = allocator }, &poor->store, NULL);
    if (r < 0)
        return r;
    return det_runtime_open(
        poor->store,
        &(struct det_runtime_options){ .allocator = allocator, .loop = poor->loop, .user = user },
        &poor->runtime, NULL);
}

static inline void poor_close(struct poor *poor)
{
    det_runtime_close(poor->runtime);
    det_store_close(poor->store);
    det_loop_close(poor->loop);
}

/* Runs a test in its own fixture, with default options. */
static inline void in_fixture(void (*test)(struct fixture *f))
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    test(f);
    fixture_close(f);
}

/* The events of an instance, as they were recorded. */
struct recorded {
    size_t count;
    struct {
        uint64_t sequence, visit;
        unsigned from, to, event, outcome;
        bool is_timeout;
        char event_id[DET_ID_MAX + 1], cause[300];
        det_time at;
        struct order_event value;
    } rows[80];
};

static inline int record_row(void *context, const struct det_event_record *row)
{
    struct recorded *all = context;
    size_t i = all->count++;

    assert_true(i < sizeof all->rows / sizeof all->rows[0]);
    memset(&all->rows[i], 0, sizeof all->rows[i]);
    all->rows[i].sequence = row->sequence;
    all->rows[i].visit = row->visit;
    all->rows[i].from = row->from;
    all->rows[i].to = row->to;
    all->rows[i].event = row->event;
    all->rows[i].outcome = row->outcome;
    all->rows[i].is_timeout = row->is_timeout;
    all->rows[i].at = row->at;
    if (row->event_id)
        snprintf(all->rows[i].event_id, sizeof all->rows[i].event_id, "%s", row->event_id);
    if (row->cause)
        snprintf(all->rows[i].cause, sizeof all->rows[i].cause, "%s", row->cause);
    if (row->event_value)
        memcpy(&all->rows[i].value, row->event_value, sizeof all->rows[i].value);
    return 0;
}

static inline const struct recorded *events_after(struct fixture *f, const char *id, uint64_t after)
{
    static struct recorded all;

    all.count = 0;
    assert_int_equal(
        det_runtime_events(f->runtime, f->order, id, after, record_row, &all, NULL), 0);
    return &all;
}

struct listed_timers {
    size_t count;
    struct {
        char name[32];
        unsigned event;
        uint64_t visit;
        det_time due;
    } rows[4];
};

static inline int list_timer(void *context, const struct det_timer_record *row)
{
    struct listed_timers *all = context;
    size_t i = all->count++;

    assert_true(i < 4);
    snprintf(all->rows[i].name, sizeof all->rows[i].name, "%s", row->name);
    all->rows[i].event = row->event;
    all->rows[i].visit = row->visit;
    all->rows[i].due = row->due;
    return 0;
}

static inline const struct listed_timers *timers(struct fixture *f, const char *id)
{
    static struct listed_timers all;

    all.count = 0;
    assert_int_equal(det_runtime_timers(f->runtime, f->order, id, list_timer, &all, NULL), 0);
    return &all;
}

struct listed_effects {
    size_t count;
    struct det_pending_effect first;
    char key[300], reason[DET_REASON_MAX + 1];
};

static inline int list_effect(void *context, const struct det_pending_effect *row)
{
    struct listed_effects *all = context;

    if (all->count++ == 0) {
        all->first = *row;
        snprintf(all->key, sizeof all->key, "%s", row->key);
        snprintf(all->reason, sizeof all->reason, "%s", row->reason ? row->reason : "");
    }
    return 0;
}

static inline const struct listed_effects *effects(struct fixture *f, const char *id)
{
    static struct listed_effects all;

    memset(&all, 0, sizeof all);
    assert_int_equal(det_runtime_effects(f->runtime, f->order, id, list_effect, &all, NULL), 0);
    return &all;
}

#endif
