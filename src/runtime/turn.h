/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* turn.h - one writer's turn on an instance: decide in a draft, commit, publish.
 *
 *     take the resident -> claim it, if user code may run -> decide: the draft is the instance
 *     after the event -> commit the draft to the store -> publish it to the resident
 *     -> notify the observer -> release
 *
 * Invariants
 *   1. Until the commit all changes are in the draft: discarding it undoes everything.
 *   2. Operations that can fail (memory, heap capacity) come before the commit; publishing
 *      cannot fail.
 *   3. A turn without user code on a store that does not block holds the shard's lock from its
 *      beginning to its end and claims nothing.
 *   4. A turn has three steps: begin (up to a commit that is ready), the commit, end. Between begin
 *      and the commit other turns of the same thread may begin; all of them then share one call of
 *      the store (turn_batch.h). */
#ifndef DET_RUNTIME_TURN_H
#define DET_RUNTIME_TURN_H

#include "runtime/runtime.h"

/* The change of a timer. */
struct det_draft_timer {
    bool is_touched, is_set, is_foreign;
    bool is_moved; /* set, and stored as given */
    uint16_t event;
    uint64_t visit;
    det_time due;
    void *value;
    /* After a load, and after a rejected deferred event. */
    bool is_dead;
    uint32_t attempts;
    int last_error;
    det_time next;
    char *reason;
};

/* An instance as after the commit; reused by later turns. */
struct det_draft {
    struct det_draft *next;
    struct det_store_head head;
    bool is_data_changed;
    bool is_kept_dropped; /* the instance stops: deferred events are dropped */
    bool has_timers;      /* some timer changes */
    char *data;
    size_t data_capacity;
    struct det_store_event *events;
    size_t event_count, event_capacity;
    struct det_draft_timer *timers; /* by slot: det_timer_slots() */
    size_t timer_capacity;
    struct det_list effect_runs;
    size_t effect_run_count;
    struct det_list kept; /* newly deferred events; after a publish: dropped ones */
    size_t kept_count;
    const char *reason;
    bool is_snapshot; /* the head becomes the snapshot, with this history */
    uint16_t history[DET_HISTORY_MAX];
    unsigned outcome; /* of the last event */
    struct det_store_timer_change *timer_changes;
    size_t timer_change_capacity;
    struct det_store_effect_change *effect_changes;
    size_t effect_change_capacity;
    struct det_store_deferred_change *kept_changes;
    size_t kept_change_capacity;
};

enum det_turn_kind {
    DET_TURN_SEND,
    DET_TURN_START,
    DET_TURN_STOP,
};

/* The request of the caller. */
struct det_turn_request {
    const char *event_id;
    const struct det_trace_context *trace; /* of the sender, or of the effect that ends */
    uint64_t expected, visit;              /* conditions; 0: none */
    uint64_t fence;                        /* fence of the caller's lock; 0: none */
    const void *const *events;             /* SEND */
    size_t event_count;
    const void *start_data;  /* START: NULL: all zero */
    bool is_start;           /* a start, also if the instance turns out to exist */
    uint64_t hash;           /* hash of the request, for its event id; 0: not computed yet */
    const char *stop_reason; /* STOP */
};

/* The firing timer, in a turn of the loop. */
struct det_turn_firing {
    struct det_armed *armed; /* NULL: none */
    uint64_t visit;
    det_time deadline;
    enum det_store_change_kind change; /* TAKE; or UPDATE: rejected, as `row` says */
    struct det_store_timer row;
    char *reason;                      /* owned until it is published */
    struct det_trace_context trace;    /* of its event; a trace id of zero: none */
    struct det_trace_context armed_by; /* a trace id of zero: unknown */
};

/* The deferred event of this commit. */
struct det_turn_retry {
    struct det_kept *kept; /* the event that the commit delivers; NULL: none */
    bool is_put_off;       /* or does not deliver: it stays, for a later attempt */
    int undelivered;       /* why the last delivery ended without a commit; 0: it did not */
};

/* Increments of the runtime's counts at the end of the turn. */
struct det_turn_counts {
    uint32_t unhandled, refused, duplicates, transitions, conflicts;
};

struct det_turn {
    enum det_turn_kind kind;
    struct det_runtime *runtime;
    struct det_served *served;
    struct det_shard *shard;
    uint64_t hash; /* of the id */
    struct det_resident *resident;
    struct det_draft *draft;
    struct det_turn_request request;
    struct det_error *error;
    det_time now;         /* by the store's clock */
    const char *action;   /* the last guard or hook that ran; NULL: none */
    det_time hooks_began; /* monotonic; set with the first action */
    bool is_claimed;
    bool is_locked;         /* the lock was kept after the publish, for the end of the turn */
    bool is_in_doubt;       /* a commit has an unknown outcome, or another writer was first */
    bool may_have_happened; /* this commit has an unknown outcome */
    bool is_batched;        /* does not wait for a writer, and keeps its claim until the commit */
    bool is_fresh;          /* the instance was loaded since the turn began */
    bool is_reading;        /* reads: in a shared store, the current state */
    size_t promised;        /* places in the heap for the ready commit */
    /* A turn of the loop. */
    bool is_internal;
    bool is_last_attempt; /* of a product: a failing hook is a rejection now */
    int rejected;         /* why the event was rejected, after the commit of the rejection */
    bool is_found_done;   /* its commit had an unknown outcome and did happen */
    struct det_turn_firing firing;
    struct det_effect_run *effect_run;            /* the effect that ends or changes */
    enum det_store_change_kind effect_run_change; /* TAKE or UPDATE */
    /* Left for the end of the turn. */
    struct det_turn_retry retry;
    struct det_effect_run *to_run;
    struct det_effect_run **to_run_last;
    det_time earliest; /* earliest time put into the heap; DET_NEVER: none */
    struct det_turn_counts counts;
    /* For observers. */
    det_time since;       /* wall time at which the state before the commit was entered */
    det_time commit_took; /* only with a meter */
};

/* The data of the draft. */
static inline const void *det_turn_data(const struct det_turn *turn)
{
    return turn->draft->is_data_changed ? turn->draft->data : turn->resident->data;
}

/* The timer fired by this commit. The timer of deferred events fires no event: the turn delivers
 * the deferred events, each in its own commit. */
static inline struct det_armed *det_turn_fired(const struct det_turn *turn)
{
    if (turn->retry.kept || !turn->firing.armed || turn->firing.armed->timer == DET_DEFERRED_TIMER)
        return NULL;
    return turn->firing.armed;
}

static inline struct det_effect_run *det_turn_ended(const struct det_turn *turn)
{
    return turn->retry.kept ? NULL : turn->effect_run;
}

/* A retried event was sent by another caller, whose trace is not kept. */
static inline const struct det_trace_context *det_turn_trace(const struct det_turn *turn)
{
    return turn->retry.kept ? NULL : turn->request.trace;
}

/* Grows an array to `wanted` elements. */
DET_MUST_CHECK int det_draft_room(
    struct det_runtime *runtime, void *array, size_t *capacity, size_t wanted, size_t size);

/* draft.c: take and give with the lock held. */
struct det_draft *det_draft_take(struct det_runtime *runtime, struct det_shard *shard);
void det_draft_release(struct det_shard *shard, struct det_draft *draft);
void det_draft_close_all(struct det_runtime *runtime, struct det_shard *shard);
/* Makes the draft equal to the resident. */
DET_MUST_CHECK int det_draft_begin(struct det_turn *turn, size_t events);
/* Discards the decision. */
void det_draft_discard(struct det_turn *turn);

/* decide.c: fills the draft. May call user code. */
bool det_decide_is_plain(const struct det_turn *turn, const void *event);
/* True if a transition from `state` calls a user function. */
bool det_decide_runs_code(
    const struct det_machine *machine, unsigned state, const struct det_transition *transition);
DET_MUST_CHECK int det_decide_event(struct det_turn *turn, const void *event);
/* Records the event as a dead letter. The draft has room for it. */
void det_decide_dead_letter(struct det_turn *turn, const void *event);
DET_MUST_CHECK int det_decide_start(struct det_turn *turn);
DET_MUST_CHECK int det_decide_stop(struct det_turn *turn);
/* The next event of the draft, as seen by user code. */
struct det_move det_decide_move(const struct det_turn *turn, uint16_t to);
/* Computes the data after the transition, if it changes them. */
DET_MUST_CHECK int det_decide_data(
    struct det_turn *turn, const struct det_transition *transition, const void *event);
/* Checks that the event belongs to this machine and its payload can be recorded. */
DET_MUST_CHECK int det_decide_check(
    const struct det_served *served, const void *event, struct det_error *reterr);

/* hooks.c */
/* 1: the guard permits, 0: it refuses, or an error. */
DET_MUST_CHECK int det_hooks_check_guard(
    struct det_turn *turn, const struct det_guard_def *guard, const struct det_move *move,
    const void *event);
/* Every guard refused; this is the first of them. Returns the error. */
DET_MUST_CHECK int det_hooks_refuse(
    struct det_turn *turn, const struct det_guard_def *guard, bool has_else, const void *event);
/* Exit, transition, entry, in this order; any may refuse. */
DET_MUST_CHECK int det_hooks_act(
    struct det_turn *turn, const struct det_transition *transition, const struct det_move *move,
    const void *event);
/* Guard and hooks of a transition without alternatives. */
DET_MUST_CHECK int det_hooks_run(
    struct det_turn *turn, const struct det_transition *transition, const struct det_move *move,
    const void *event);
DET_MUST_CHECK int det_hooks_entry(struct det_turn *turn, const struct det_move *move);

/* commit.c */
/* Turns the draft into a commit, and reserves room for publishing it; `ret` is the sender's result.
 * 0: nothing to commit. 1: ready. After an error the draft is empty. */
DET_MUST_CHECK int det_turn_collect(
    struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret);
/* Makes the commit in a separate store call; returns its result. */
DET_MUST_CHECK int det_turn_store(struct det_turn *turn, struct det_store_commit *commit);
/* Handles the result `r` of the commit: publishes and reports, or discards the draft. Returns
 * `r`. */
DET_MUST_CHECK int det_turn_stored(
    struct det_turn *turn, const struct det_store_commit *commit, int r);

/* publish.c */
/* Copies the draft to the resident. With a claim the lock is kept (is_locked) if only the end of
 * the turn is left; otherwise user code is called next. */
void det_turn_publish(struct det_turn *turn, const struct det_store_commit *commit);
void det_turn_announce(struct det_turn *turn);
/* The instance was loaded again and is ahead of the last known state: reports the start, if it is
 * new, and the events after `after`, as far as the store keeps them. Returns the number of
 * transitions. With a claim, without the lock. */
DET_MUST_CHECK uint32_t det_turn_announce_found(struct det_turn *turn, bool is_new, uint64_t after);

/* acquire.c */
void det_turn_init(
    struct det_turn *turn, struct det_runtime *runtime, struct det_served *served, uint64_t hash);
/* Finds the resident, free and fresh; waits for its writer and loads it if necessary. `slot` is its
 * slot, or NULL: unknown. The lock is held before and after, also after an error. */
DET_MUST_CHECK int det_turn_take(
    struct det_turn *turn, const char *id, const struct det_index_slot *slot);
/* For readers: does not wait for a writer. */
DET_MUST_CHECK int det_turn_peek(struct det_turn *turn, const char *id);
/* The lock is held before and after, but not meanwhile: loads the resident, which is claimed. */
DET_MUST_CHECK int det_turn_load(struct det_turn *turn);
/* Why an instance cannot be loaded, as the end of a sentence. */
const char *det_turn_load_text(int r);
/* With the lock held: ends the claim. */
void det_turn_release(struct det_turn *turn);

/* deferred.c */
/* Delivers the deferred events that the state accepts, oldest first, each in its own commit. A
 * failure leaves the rest for later; it does not concern the sender. With a claim. */
void det_turn_retry_deferred(struct det_turn *turn);
/* Before the changes of a draft are collected: the timer of deferred events is armed exactly if one
 * remains that the state accepts. */
void det_deferred_plan(struct det_turn *turn);

/* due.c: after a turn that fired a timer. */
void det_due_report_rejected(const struct det_turn *turn, uint32_t attempt, int code);
/* True if a failed attempt was recorded and another one follows. */
bool det_due_will_retry(const struct det_turn *turn);
/* Counts a finished timer: accepted or rejected. Lock held. */
void det_due_count(const struct det_turn *turn, struct det_runtime_counts *counts);
/* Retries a timer that failed for a reason that may pass, if it is still armed as before. If the
 * store's clock says that it is too early, or another holder has a lock, the attempt does not
 * count. Lock held. */
void det_due_fire_later(struct det_turn *turn, int r);
/* The turn releases the timer: if it is armed now, it must be in the heap. A load may have put it
 * there already; the loop checks its time. Lock held. */
void det_due_let_go(struct det_shard *shard, struct det_armed *armed);

/* overdue.c */
/* In a passive runtime, before a send: fires the timers of the instance that are due, under the
 * fence if it is not 0. A rejected timer is removed, as in the loop; one that fails by itself does
 * not block the others. 0, or the error that prevents the send: the instance cannot be taken, its
 * lock is held, the store fails. */
DET_MUST_CHECK int det_overdue_fire(
    struct det_runtime *runtime, struct det_served *served, const char *id, uint64_t fence,
    struct det_error *reterr);

/* send.c */
/* Checks the request of a caller. */
DET_MUST_CHECK int det_send_check(
    const struct det_served *served, const struct det_send_options *options,
    const void *const *events, size_t count, struct det_error *reterr);

/* True if another holder has its lock, or other writers were always first: no failure of the event
 * itself. */
static inline bool det_turn_met_others(int r)
{
    return r == DET_ERR_LOCKED || r == DET_ERR_CONTENTION;
}

/* True for a failure of a user function, or a limit: a retry may succeed. */
static inline bool det_turn_may_pass_later(int r)
{
    return r == DET_ERR_ACTION_FAILED || r == DET_ERR_TIMEOUT || r == DET_ERR_LIMIT;
}

/* request_hash.c */
/* Computes the hash of the request. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_turn_request(struct det_turn *turn);
/* Compares the request with the first use of the event id. DET_ERR_CONFLICT; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_turn_compare(struct det_turn *turn, const struct det_store_answer *first);

/* contention.c: a turn that met other writers, until it commits or gives up. */
struct det_contention {
    struct det_turn *turn;
    unsigned attempts;             /* number of decisions */
    det_time until;                /* monotonic */
    struct det_store_place *place; /* in the store's queue; NULL: none */
};
/* Called with the claim before the instance is loaded and decided on again. Waits for its place if
 * the store is shared. False: gives up. */
DET_MUST_CHECK bool det_contention_next(struct det_contention *contention);
/* Ends every contention. Returns `r`, or CONTENTION if that was the reason. */
DET_MUST_CHECK int det_contention_end(struct det_contention *contention, int r);

/* turn.c */
/* Executes the turn on the taken resident. The lock is held before and not after. */
DET_MUST_CHECK int det_turn_run(
    struct det_turn *turn, const void *const *events, size_t count, struct det_sent *ret);
/* det_turn_run() in steps. The lock is held before det_turn_begin(), and not after, unless the turn
 * has no claim. 1: the commit is ready, and its result goes to det_turn_end(); otherwise the
 * returned value does. */
DET_MUST_CHECK int det_turn_begin(
    struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret);
/* Ends every turn that has begun. `commit` is NULL if none was ready. Returns the value of
 * det_turn_run(); the lock is not held afterwards. */
DET_MUST_CHECK int det_turn_end(
    struct det_turn *turn, const struct det_store_commit *commit, int r, struct det_sent *ret);

#endif
