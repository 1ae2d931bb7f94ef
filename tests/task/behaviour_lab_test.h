/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_lab_test.h - a laboratory for tasks, what it holds: a world, a supervisor in it, and an
 * audit that keeps every event and every end. behaviour_test.h opens it, and has work for it. */
#ifndef DET_TASK_BEHAVIOUR_LAB_TEST_H
#define DET_TASK_BEHAVIOUR_LAB_TEST_H

#include "lib/test.h"

#include <detent/sim.h>
#include <detent/slot.h>
#include <detent/task.h>

#include <stdatomic.h>

#include "os/os.h"

#define LAB_ENDS_MAX 1024

struct lab {
    struct det_sim *sim; /* NULL: the real world */
    struct det_world *world;
    struct det_loop *loop; /* NULL: the supervisor has a thread of its own */
    struct det_test_memory memory;
    struct det_tasks *tasks;
    struct det_subscription *audit;
    struct det_mutex *mutex; /* over all below, and what scripts are told */
    struct det_condition *changed;
    struct det_task_event *events;
    size_t event_count, event_capacity;
    struct det_task_end ends[LAB_ENDS_MAX];
    size_t end_count;
    atomic_uint empties, active, active_peak;
};

static inline det_time lab_now(struct lab *lab)
{
    return det_world_now(lab->world, DET_CLOCK_MONOTONIC);
}

/* The audit. */

static inline int lab_on_event(void *user, const struct det_task_event *event)
{
    struct lab *lab = user;

    det_mutex_lock(lab->world, lab->mutex);
    if (lab->event_count == lab->event_capacity) {
        size_t capacity = lab->event_capacity ? lab->event_capacity * 2 : 64;
        struct det_task_event *more = realloc(lab->events, capacity * sizeof *more);

        if (more == NULL)
            abort();
        lab->events = more;
        lab->event_capacity = capacity;
    }
    lab->events[lab->event_count++] = *event;
    det_condition_broadcast(lab->world, lab->changed);
    det_mutex_unlock(lab->world, lab->mutex);
    return 0;
}

static inline void lab_on_end(void *user, const struct det_task_end *end)
{
    struct lab *lab = user;

    det_mutex_lock(lab->world, lab->mutex);
    if (lab->end_count < LAB_ENDS_MAX)
        lab->ends[lab->end_count++] = *end;
    det_condition_broadcast(lab->world, lab->changed);
    det_mutex_unlock(lab->world, lab->mutex);
}

static inline void lab_on_empty(void *user)
{
    struct lab *lab = user;

    atomic_fetch_add(&lab->empties, 1);
}

static inline bool lab_matches(
    const struct det_task_event *event, enum det_task_event_kind kind, const char *name)
{
    return event->kind == kind && (name == NULL || strcmp(event->name, name) == 0);
}

static inline size_t lab_count_locked(
    struct lab *lab, enum det_task_event_kind kind, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < lab->event_count; i++)
        count += lab_matches(&lab->events[i], kind, name);
    return count;
}

/* How many events of a kind there were so far about a name (NULL: any). */
static inline size_t lab_count(struct lab *lab, enum det_task_event_kind kind, const char *name)
{
    size_t count;

    det_mutex_lock(lab->world, lab->mutex);
    count = lab_count_locked(lab, kind, name);
    det_mutex_unlock(lab->world, lab->mutex);
    return count;
}

/* The nth (from 0) of them, by value; the test fails when there is none. */
static inline struct det_task_event lab_event(
    struct lab *lab, enum det_task_event_kind kind, const char *name, size_t nth)
{
    struct det_task_event found = { 0 };

    det_mutex_lock(lab->world, lab->mutex);
    for (size_t i = 0; i < lab->event_count && found.sequence == 0; i++)
        if (lab_matches(&lab->events[i], kind, name) && nth-- == 0)
            found = lab->events[i];
    det_mutex_unlock(lab->world, lab->mutex);
    if (found.sequence == 0)
        fail_msg("no %s of %s", det_task_event_label(kind), name ? name : "anybody");
    return found;
}

/* Waits until there were `count` of them; DET_ERR_DEADLOCK ends a simulation that cannot go on. */
static inline void lab_await(
    struct lab *lab, enum det_task_event_kind kind, const char *name, size_t count)
{
    int r = 0;

    det_mutex_lock(lab->world, lab->mutex);
    while (lab_count_locked(lab, kind, name) < count && r == 0)
        r = det_condition_wait(lab->world, lab->changed, lab->mutex, DET_NEVER);
    det_mutex_unlock(lab->world, lab->mutex);
    if (r < 0)
        fail_msg(
            "%s of %s: %s", det_task_event_label(kind), name ? name : "anybody", det_error_name(r));
}

/* Waits until on_end() was called so often. */
static inline void lab_await_ends(struct lab *lab, size_t count)
{
    int r = 0;

    det_mutex_lock(lab->world, lab->mutex);
    while (lab->end_count < count && r == 0)
        r = det_condition_wait(lab->world, lab->changed, lab->mutex, DET_NEVER);
    det_mutex_unlock(lab->world, lab->mutex);
    assert_int_equal(r, 0);
}

#endif
