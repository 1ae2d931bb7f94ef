/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nodes_test.h - a fixture for what several runtimes do on one store: nodes in one simulated world,
 * which can be stopped, resumed and killed. */
#ifndef DET_RUNTIME_NODES_TEST_H
#define DET_RUNTIME_NODES_TEST_H

#include <detent/lock.h>

#include "lib/shared_store.h"
#include "runtime/runtime_test.h"

#define NODES_MAX 10

struct nodes {
    struct order_control control;
    struct det_machine *order;
    struct det_sim *sim;
    struct det_shared *shared;
    struct det_store *store[NODES_MAX];
    struct det_runtime *runtime[NODES_MAX];
    struct det_runtime_options options;
    struct det_error error;
    struct det_sent sent;
};

/* On its store, which is open. */
static inline void node_open_on(struct nodes *n, unsigned i)
{
    struct det_runtime_options options = n->options;

    options.world = det_sim_world(n->sim);
    options.user = options.observer = &n->control;
    options.incident = order_incident;
    assert_int_equal(det_runtime_open(n->store[i], &options, &n->runtime[i], &n->error), 0);
    assert_int_equal(det_runtime_serve(n->runtime[i], n->order, &n->error), 0);
}

static inline void node_open(struct nodes *n, unsigned i)
{
    n->store[i] = det_shared_node(n->shared);
    node_open_on(n, i);
}

static inline void node_close(struct nodes *n, unsigned i)
{
    det_runtime_close(n->runtime[i]);
    if (n->store[i])
        det_store_close(n->store[i]);
    n->runtime[i] = NULL;
    n->store[i] = NULL;
}

/* As seen by others: it dies in the middle of any operation. */
static inline void node_kill(struct nodes *n, unsigned i)
{
    det_shared_kill(n->store[i]);
    node_close(n, i);
}

static inline struct nodes *nodes_open(unsigned count, struct det_runtime_options options)
{
    struct nodes *n = calloc(1, sizeof *n);

    assert_non_null(n);
    n->options = options;
    n->control.product = CHARGED;
    n->control.effect_result = DET_EFFECT_PRODUCED;
    n->order = order_machine(true);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 7 }, &n->sim, &n->error), 0);
    n->control.sim = n->sim;
    n->shared = det_shared_open(n->sim, NULL);
    for (unsigned i = 0; i < count; i++)
        node_open(n, i);
    return n;
}

static inline void nodes_close(struct nodes *n)
{
    for (unsigned i = 0; i < NODES_MAX; i++)
        node_close(n, i);
    det_shared_close(n->shared);
    det_sim_close(n->sim);
    det_machine_close(n->order);
    free(n);
}

static inline int node_start(struct nodes *n, unsigned i, const char *id)
{
    return det_runtime_start(n->runtime[i], n->order, id, NULL, NULL, &n->sent, &n->error);
}

static inline int node_send(struct nodes *n, unsigned i, const char *id, unsigned kind)
{
    struct order_event event = { .kind = kind };

    return det_runtime_send(n->runtime[i], n->order, id, &event, NULL, &n->sent, &n->error);
}

static inline struct det_lock *node_lock(
    struct nodes *n, unsigned i, const char *id, const struct det_lock_options *options)
{
    struct det_lock *lock;

    assert_int_equal(det_lock_open(n->runtime[i], n->order, id, options, &lock, &n->error), 0);
    return lock;
}

static inline int lock_kind(struct nodes *n, struct det_lock *lock, unsigned kind)
{
    struct order_event event = { .kind = kind };

    return det_lock_send(lock, &event, NULL, &n->sent, &n->error);
}

static inline int try_lock(struct nodes *n, unsigned i, const char *id, det_time wait)
{
    struct det_lock_options options = { .wait = wait };
    struct det_lock *lock;
    int r;

    r = det_lock_open(n->runtime[i], n->order, id, &options, &lock, &n->error);
    if (r == 0)
        det_lock_close(lock);
    return r;
}

static inline void pass(struct nodes *n, det_time span)
{
    assert_int_equal(det_sim_advance(n->sim, span), 0);
}

static inline struct det_runtime_counts node_counts(struct nodes *n, unsigned i)
{
    struct det_runtime_counts counts;

    det_runtime_counts(n->runtime[i], &counts);
    return counts;
}

static inline det_time now_of(struct nodes *n)
{
    return det_world_now(det_sim_world(n->sim), DET_CLOCK_MONOTONIC);
}

#endif
