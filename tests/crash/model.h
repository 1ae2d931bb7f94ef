/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* model.h - the expected content of a store, recorded by the test itself.
 *
 * All columns are numbers, so that two models are equal when their bytes are: names, ids, texts and
 * payloads are made from a number, and read back into it (value.c). A text that differs from the
 * one of its number is CRASH_WRONG, which no model has. */
#ifndef DET_CRASH_MODEL_H
#define DET_CRASH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRASH_INSTANCES  5
#define CRASH_LEASES     2
#define CRASH_STATES     3
#define CRASH_KEPT       40 /* kept events of one instance */
#define CRASH_TIMERS     3  /* the state's own, and two with names */
#define CRASH_EFFECTS    6
#define CRASH_DEFERRED   3
#define CRASH_IDS        12 /* event ids of one instance, from 1 */
#define CRASH_HISTORY    8
#define CRASH_WRONG      INT64_MIN
#define CRASH_TIME_START INT64_C(1600000000000000000) /* before every clock */

/* Each list is a struct of numbers, and the names of its columns for reports. */
#define CRASH_HEAD_COLUMNS(F) \
    F(exists)                 \
    F(state)                  \
    F(sequence) F(visit) F(transitions) F(started_at) F(moved_at) F(stopped) F(reason) F(data)
#define CRASH_EVENT_COLUMNS(F) \
    F(sequence)                \
    F(visit)                   \
    F(from) F(to) F(event) F(outcome) F(choice) F(timeout) F(at) F(event_id) F(cause) F(value)
#define CRASH_TIMER_COLUMNS(F) F(armed) F(event) F(visit) F(due) F(value)
#define CRASH_EFFECT_COLUMNS(F) \
    F(sequence)                 \
    F(index)                    \
    F(effect)                   \
    F(from)                     \
    F(to)                       \
    F(visit) F(asked) F(at) F(attempts) F(last_error) F(next) F(dead) F(data) F(event) F(value)
#define CRASH_DEFERRED_COLUMNS(F) F(sequence) F(event) F(value)
#define CRASH_ANSWER_COLUMNS(F)   F(known) F(outcome) F(state) F(sequence) F(visit)
#define CRASH_SNAPSHOT_COLUMNS(F) \
    F(taken) F(state) F(sequence) F(visit) F(transitions) F(stopped) F(data) F(history_count)
/* Only the token: an opening of the store releases the lock. */
#define CRASH_LOCK_COLUMNS(F) F(token)

#define CRASH_COLUMN(name)    int64_t name;
struct crash_head {
    CRASH_HEAD_COLUMNS(CRASH_COLUMN)
};
struct crash_event {
    CRASH_EVENT_COLUMNS(CRASH_COLUMN)
};
struct crash_timer {
    CRASH_TIMER_COLUMNS(CRASH_COLUMN)
};
struct crash_effect {
    CRASH_EFFECT_COLUMNS(CRASH_COLUMN)
};
struct crash_deferred {
    CRASH_DEFERRED_COLUMNS(CRASH_COLUMN)
};
struct crash_answer {
    CRASH_ANSWER_COLUMNS(CRASH_COLUMN)
};
struct crash_snapshot {
    CRASH_SNAPSHOT_COLUMNS(CRASH_COLUMN)
};
struct crash_lock {
    CRASH_LOCK_COLUMNS(CRASH_COLUMN)
};

struct crash_instance {
    struct crash_head head;
    int64_t history[CRASH_HISTORY]; /* newest first; -1 after the last one */
    int64_t event_count, effect_count, deferred_count;
    struct crash_event events[CRASH_KEPT];
    struct crash_timer timers[CRASH_TIMERS];
    struct crash_effect effects[CRASH_EFFECTS]; /* oldest first */
    struct crash_deferred deferred[CRASH_DEFERRED];
    struct crash_answer answers[CRASH_IDS];
    struct crash_snapshot snapshot;
    struct crash_lock lock;
};

struct crash_model {
    struct crash_instance instances[CRASH_INSTANCES];
    struct crash_lock leases[CRASH_LEASES];
};

/* Kinds of faults of a store after a crash. */
struct crash_faults {
    uint64_t lost;    /* an acknowledged event, or an instance, is missing */
    uint64_t doubled; /* more content than requested */
    uint64_t timers;  /* one is missing, or a removed one is there */
    uint64_t effects;
    uint64_t halves;    /* part of a commit: any other difference */
    uint64_t unopened;  /* the store could not be opened */
    uint64_t unchecked; /* its own check found something */
};
#define CRASH_FAULTS_SUM(f) \
    ((f).lost + (f).doubled + (f).timers + (f).effects + (f).halves + (f).unopened + (f).unchecked)

/* Compares the content with the acknowledged and the begun model, instance by instance: each must
 * equal one or the other. Writes the first difference to `text`. True: no fault. */
bool crash_model_check(
    const struct crash_model *found, const struct crash_model *answered,
    const struct crash_model *begun, struct crash_faults *faults, char *text, size_t size);

#endif
