/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* turn.h - one writer's turn on an instance: decide in a draft, commit, publish.
 *
 *     take the resident -> claim it, if user code may run -> decide: the draft is the instance as
 *     it would be -> commit the draft to the store -> publish it to the resident -> tell -> release
 *
 * Invariants
 *   1. Until the commit everything is in the draft: giving up is throwing it away.
 *   2. What can fail (memory, room in the heap) is done before the commit; a publish cannot fail.
 *   3. A turn without user code on a store that does not block holds the shard's lock from its
 *      beginning to its end and claims nothing.
 *   4. A turn has three steps: begin (up to a commit that is ready), the commit, end. Between begin
 *      and the commit other turns of the same thread may begin, so that all of them are one call of
 *      the store (batch.h). */
#ifndef DET_RUNTIME_TURN_H
#define DET_RUNTIME_TURN_H

#include "runtime/runtime.h"

/* What becomes of a timer. */
struct det_draft_timer {
    bool is_touched, is_set, is_foreign;
    bool is_moved; /* it was set, and is to be there just so */
    uint16_t event;
    uint64_t visit;
    det_time due;
    void *value;
    /* After a load, and after a deferred event that was not taken. */
    bool is_dead;
    uint32_t attempts;
    int last_error;
    det_time next;
    char *reason;
};

/* An instance as it would be; used again and again. */
struct det_draft {
    struct det_draft *next;
    struct det_store_head head;
    bool is_data_changed;
    bool is_kept_dropped; /* it stops: deferred events will not be taken any more */
    bool has_timers;      /* some timer is touched */
    char *data;
    size_t data_capacity;
    struct det_store_event *events;
    size_t event_count, event_capacity;
    struct det_draft_timer *timers; /* by slot: det_timer_slots() */
    size_t timer_capacity;
    struct det_list effect_runs;
    size_t effect_run_count;
    struct det_list kept; /* to be deferred; after a publish: dropped ones */
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

/* What the caller asked for. */
struct det_turn_request {
    const char *event_id;
    const struct det_trace_context *trace; /* of the sender, or of the effect that ends */
    uint64_t expected, visit;              /* conditions; 0: none */
    uint64_t fence;                        /* of the lock it is sent under; 0: none */
    const void *const *events;             /* SEND */
    size_t event_count;
    const void *start_data;  /* START: NULL: all zero */
    bool is_start;           /* it was to be one, also when it finds that there is an instance */
    uint64_t hash;           /* of all that, for its event id; 0: not made yet */
    const char *stop_reason; /* STOP */
};

/* The timer that fires, in a turn of the loop. */
struct det_turn_firing {
    struct det_armed *armed; /* NULL: none fires */
    uint64_t visit;
    det_time deadline;
    enum det_store_change_kind change; /* TAKE; or UPDATE: it was not taken, as `row` says */
    struct det_store_timer row;
    char *reason;                      /* ours, until it is published */
    struct det_trace_context trace;    /* of its event, where there is one */
    struct det_trace_context armed_by; /* a trace id of zero: not known */
};

/* The deferred event that this commit is about. */
struct det_turn_retry {
    struct det_kept *kept; /* the one that the commit takes; NULL: none */
    bool is_put_off;       /* or does not take: it stays, for a later attempt */
    int undelivered;       /* why the last delivery ended without a commit; 0: it did not */
};

/* What the counts of the runtime grow by when the turn ends. */
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
    det_time hooks_began; /* monotonic; once there is an action */
    bool is_claimed;
    bool is_locked;         /* the lock was kept after the publish, for the end of the turn */
    bool is_in_doubt;       /* a commit has an unknown outcome, or somebody else was first */
    bool may_have_happened; /* the commit that made it so */
    bool is_batched; /* it does not wait for a writer, and keeps its claim until the commit */
    bool is_fresh;   /* the instance was loaded since the turn began */
    bool is_reading; /* it looks: in a shared store, at what is there now */
    size_t promised; /* places in the heap, for what the commit that is ready sets */
    /* A turn of the loop. */
    bool is_internal;
    bool is_last_attempt; /* of a product: a hook that fails now is a rejection */
    int rejected;         /* why the event was not taken, which has been committed */
    bool is_found_done;   /* its commit had an unknown outcome, and it had happened */
    struct det_turn_firing firing;
    struct det_effect_run *effect_run;            /* the one that ends or changes */
    enum det_store_change_kind effect_run_change; /* TAKE or UPDATE */
    /* Left for the end. */
    struct det_turn_retry retry;
    struct det_effect_run *to_run;
    struct det_effect_run **to_run_last;
    det_time earliest; /* of what was put into the heap; DET_NEVER: nothing */
    struct det_turn_counts counts;
    /* For who listens. */
    det_time since;       /* wall: when the state was entered that the commit found */
    det_time commit_took; /* where there is a meter */
};

/* The data as the draft has it. */
static inline const void *det_turn_data(const struct det_turn *turn)
{
    return turn->draft->is_data_changed ? turn->draft->data : turn->resident->data;
}

/* The timer whose firing is this very commit. That of deferred events fires no event: the turn
 * delivers them, and each delivery is a commit of its own. */
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

/* What is retried was sent by somebody else, whose trace is not kept. */
static inline const struct det_trace_context *det_turn_trace(const struct det_turn *turn)
{
    return turn->retry.kept ? NULL : turn->request.trace;
}

/* Room for `wanted` elements. */
DET_MUST_CHECK int det_draft_room(
    struct det_runtime *runtime, void *array, size_t *capacity, size_t wanted, size_t size);

/* draft.c: take and give with the lock held. */
struct det_draft *det_draft_take(struct det_runtime *runtime, struct det_shard *shard);
void det_draft_give(struct det_shard *shard, struct det_draft *draft);
void det_draft_close_all(struct det_runtime *runtime, struct det_shard *shard);
/* The draft is the resident as it is. */
DET_MUST_CHECK int det_draft_begin(struct det_turn *turn, size_t events);
/* Throws away what was decided. */
void det_draft_discard(struct det_turn *turn);

/* decide.c: fills the draft. May call user code. */
bool det_decide_is_plain(const struct det_turn *turn, const void *event);
/* Whether a transition from `state`, which is one, asks a function of the user's. */
bool det_decide_runs_code(
    const struct det_machine *machine, unsigned state, const struct det_transition *transition);
DET_MUST_CHECK int det_decide_event(struct det_turn *turn, const void *event);
/* Records that the event is given up. The draft has room for it. */
void det_decide_dead_letter(struct det_turn *turn, const void *event);
DET_MUST_CHECK int det_decide_start(struct det_turn *turn);
DET_MUST_CHECK int det_decide_stop(struct det_turn *turn);
/* The next event of the draft, as user code sees it. */
struct det_move det_decide_move(const struct det_turn *turn, uint16_t to);
/* The data after the transition, as far as it changes it. */
DET_MUST_CHECK int det_decide_data(
    struct det_turn *turn, const struct det_transition *transition, const void *event);
/* Whether the event is one of this machine and its payload can be recorded. */
DET_MUST_CHECK int det_decide_check(
    const struct det_served *served, const void *event, struct det_error *reterr);

/* hooks.c */
/* 1 when the guard says yes, 0 when it says no, or an error. */
DET_MUST_CHECK int det_hooks_ask(
    struct det_turn *turn, const struct det_guard_def *guard, const struct det_move *move,
    const void *event);
/* No guard said yes; this is the first of them. Returns the error. */
DET_MUST_CHECK int det_hooks_refuse(
    struct det_turn *turn, const struct det_guard_def *guard, bool has_else, const void *event);
/* Exit, transition, entry, in this order; any may refuse. */
DET_MUST_CHECK int det_hooks_act(
    struct det_turn *turn, const struct det_transition *transition, const struct det_move *move,
    const void *event);
/* The same after the guard, for a transition that has no alternatives. */
DET_MUST_CHECK int det_hooks_run(
    struct det_turn *turn, const struct det_transition *transition, const struct det_move *move,
    const void *event);
DET_MUST_CHECK int det_hooks_entry(struct det_turn *turn, const struct det_move *move);

/* commit.c */
/* The draft as a commit, with room for all that publishing it needs; `ret` is what the sender will
 * get to know. 0: there is nothing to commit. 1: it is ready. After an error the draft is empty. */
DET_MUST_CHECK int det_turn_collect(
    struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret);
/* The one commit in a call of its own; returns its result. */
DET_MUST_CHECK int det_turn_store(struct det_turn *turn, struct det_store_commit *commit);
/* It has the result `r`: publishes and tells, or throws the draft away. Returns `r`. */
DET_MUST_CHECK int det_turn_stored(
    struct det_turn *turn, const struct det_store_commit *commit, int r);

/* publish.c */
/* The resident is as the draft says. With a claim the lock is kept (is_locked) when nothing is left
 * to do but to end the turn; otherwise user code is told next. */
void det_turn_publish(struct det_turn *turn, const struct det_store_commit *commit);
void det_turn_tell(struct det_turn *turn);
/* The instance was loaded again and stands further than it was thought to: tells of the start, if
 * that is news, and of the events after `after` up to where it stands, as far as the store keeps
 * them. Returns how many transitions there were. With a claim, without the lock. */
DET_MUST_CHECK uint32_t det_turn_tell_found(struct det_turn *turn, bool is_new, uint64_t after);

/* acquire.c */
void det_turn_init(
    struct det_turn *turn, struct det_runtime *runtime, struct det_served *served, uint64_t hash);
/* Finds the resident, free and fresh; waits for its writer and loads it as need be. `slot` is where
 * it is, or NULL: not known. The lock is held before and after, also after an error. */
DET_MUST_CHECK int det_turn_take(
    struct det_turn *turn, const char *id, const struct det_index_slot *slot);
/* The same for readers, who do not mind a writer. */
DET_MUST_CHECK int det_turn_peek(struct det_turn *turn, const char *id);
/* Lock held before and after, but not meanwhile: loads the resident, which is claimed. */
DET_MUST_CHECK int det_turn_load(struct det_turn *turn);
/* Why an instance cannot be loaded, as the end of a sentence. */
const char *det_turn_load_text(int r);
/* With the lock held: the claim ends. */
void det_turn_release(struct det_turn *turn);

/* deferred.c */
/* Delivers the deferred events that the state takes, oldest first, each in a commit of its own. A
 * failure leaves the rest for later; it is not the sender's. With a claim. */
void det_turn_retry_deferred(struct det_turn *turn);
/* Before the changes of a draft are collected: the timer of deferred events is armed exactly if one
 * is left that the state takes. */
void det_deferred_plan(struct det_turn *turn);

/* due.c: after a turn that fired a timer. */
void det_due_tell_rejected(const struct det_turn *turn, uint32_t attempt, int code);
/* An attempt failed, which is recorded, and there is another one. */
bool det_due_is_tried_again(const struct det_turn *turn);
/* It is over: taken, or not. Lock held. */
void det_due_count(const struct det_turn *turn, struct det_runtime_counts *counts);
/* It was not taken, for a reason that may pass: again later, if it still is what was armed. When
 * the store's clock says that it is too early, or somebody has a lock, that was no attempt. Lock
 * held. */
void det_due_fire_later(struct det_turn *turn, int r);
/* It is out of that turn's hands: what is armed by now is to be in the heap. A load meanwhile may
 * have put it in: when its time comes, the loop sees whether it is later. Lock held. */
void det_due_let_go(struct det_shard *shard, struct det_armed *armed);

/* overdue.c */
/* In a passive runtime, before something is sent: fires the timers of the instance that are due by
 * now, under the fence if it is not 0. What is not taken is over, as with the loop; one that fails
 * by itself does not keep the others from firing. 0, or why nothing can be sent now: the instance
 * cannot be taken, somebody has its lock, the store fails. */
DET_MUST_CHECK int det_overdue_fire(
    struct det_runtime *runtime, struct det_served *served, const char *id, uint64_t fence,
    struct det_error *reterr);

/* send.c */
/* Whether a caller may send this. */
DET_MUST_CHECK int det_send_check(
    const struct det_served *served, const struct det_send_options *options,
    const void *const *events, size_t count, struct det_error *reterr);

/* Somebody has its lock, or writes to it all the time: no failure of what was to be sent. */
static inline bool det_turn_met_others(int r)
{
    return r == DET_ERR_LOCKED || r == DET_ERR_CONTENTION;
}

/* What a function of the user's ended in, or a limit: tried again, it may go well. */
static inline bool det_turn_may_pass_later(int r)
{
    return r == DET_ERR_ACTION_FAILED || r == DET_ERR_TIMEOUT || r == DET_ERR_LIMIT;
}

/* request.c */
/* Makes the hash of what is asked for. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_turn_request(struct det_turn *turn);
/* Whether the first use of the event id was the same request. DET_ERR_CONFLICT; DET_ERR_NO_MEMORY.
 */
DET_MUST_CHECK int det_turn_compare(struct det_turn *turn, const struct det_store_answer *first);

/* contention.c: a turn that met other writers, until it commits or gives up. */
struct det_contention {
    struct det_turn *turn;
    unsigned attempts;             /* to decide again */
    det_time until;                /* monotonic */
    struct det_store_place *place; /* in the store's queue; NULL: none */
};
/* Before the instance is loaded and decided on again, with the claim. Waits for its turn where the
 * store is shared. False: it gives up. */
DET_MUST_CHECK bool det_contention_next(struct det_contention *contention);
/* Every contention ends here. Returns `r`, or CONTENTION where that is what it was. */
DET_MUST_CHECK int det_contention_end(struct det_contention *contention, int r);

/* turn.c */
/* Carries out the turn on the resident that was taken. The lock is held before and not after. */
DET_MUST_CHECK int det_turn_run(
    struct det_turn *turn, const void *const *events, size_t count, struct det_sent *ret);
/* The same in steps. The lock is held before det_turn_begin(), and not after, unless the turn has
 * no claim. 1: the commit is ready, and its result is to be given to det_turn_end(); otherwise that
 * gets what this has returned. */
DET_MUST_CHECK int det_turn_begin(
    struct det_turn *turn, struct det_store_commit *commit, struct det_sent *ret);
/* Every turn that has begun ends here. `commit` is NULL when none was ready. Returns what
 * det_turn_run() does; the lock is not held after. */
DET_MUST_CHECK int det_turn_end(
    struct det_turn *turn, const struct det_store_commit *commit, int r, struct det_sent *ret);

#endif
