/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan.h - the steps for a store, and the expected content after each. The same seed gives the same
 * plan, so a check of a store after a crash needs only the numbers of the begun and acknowledged
 * steps.
 *
 * A plan has everything that one commit may imply: events of every outcome, timers set, moved,
 * cleared and fired, effects requested, retried, dead and ended, deferred events, event ids, data,
 * snapshots, fences; several commits in one call; commits that must be refused without any change;
 * and between them pruning, locks, leases, closing and opening, a newer definition, and
 * compaction. */
#ifndef DET_CRASH_PLAN_H
#define DET_CRASH_PLAN_H

#include "crash/model.h"

enum crash_step_kind {
    CRASH_STEP_COMMIT,
    CRASH_STEP_PRUNE,
    CRASH_STEP_LOCK,
    CRASH_STEP_RENEW,
    CRASH_STEP_UNLOCK,
    CRASH_STEP_LEASE,
    CRASH_STEP_LEASE_END,
    CRASH_STEP_REOPEN,  /* perhaps with a newer definition */
    CRASH_STEP_MIGRATE, /* the same, with other names */
    CRASH_STEP_COMPACT,
};

/* Kinds are those of enum det_store_change_kind. */
struct crash_timer_change {
    int kind, timer;
    struct crash_timer row;
};
struct crash_effect_change {
    int kind;
    struct crash_effect row;
};
struct crash_deferred_change {
    int kind;
    struct crash_deferred row;
};

/* One commit. */
struct crash_change {
    unsigned instance;
    bool is_new, has_data, has_reason, is_snapshot;
    int64_t expected;
    struct crash_head head;         /* afterwards */
    int64_t history[CRASH_HISTORY]; /* afterwards */
    struct crash_event events[3];
    struct crash_timer_change timers[3];
    struct crash_effect_change effects[2];
    struct crash_deferred_change deferred[2];
    size_t event_count, timer_count, effect_count, deferred_count;
    int64_t event_id; /* 0: none */
    struct crash_answer answer;
    int64_t fence;
    int result; /* 0, or the expected error */
};

struct crash_step {
    enum crash_step_kind kind;
    struct crash_change changes[3]; /* of different instances */
    size_t change_count;
    unsigned subject; /* instance or lease */
    int64_t sequence; /* PRUNE */
    bool with_answers;
    unsigned version; /* of the definition, from here on */
};

struct crash_plan {
    size_t step_count;
    struct crash_step *steps;   /* step i is steps[i - 1] */
    struct crash_model *models; /* after step i: models[i]; models[0] is empty */
};

struct crash_plan_options {
    uint64_t seed;
    size_t steps;
    unsigned reopen_every; /* steps; 0: never. The second time with a newer definition, the third
                              time with other names */
    bool compacts;         /* once */
};

struct crash_plan *crash_plan_open(const struct crash_plan_options *options);
void crash_plan_close(struct crash_plan *plan);

#endif
