/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree.h - the tree of workers from inside: what the files of this folder share. All of it belongs
 * to the loop, but for what runs on a thread pool: struct det_run, struct det_incarnation.
 *
 *   workers.c   opens and closes; calls from other threads
 *   tick_walk.c      the walk over the tree, in slices
 *   tick.c      what is decided about one worker
 *   worker.c    the object of a worker, made and freed
 *   life.c      a worker from wanted to gone; life.fsm
 *   stop.c      shutdowns, restarts, deadlines
 *   derive and children: desire.c, children.c, child_request.c
 *   incarnation.c   what lives as long as one life of a worker, and what runs of it
 *   run.c       one call of user code on a thread pool
 *   collect.c   observations: when, how old, what if none comes
 *   act.c       actions: gate, backoff, what if one does not come back
 *   circuit.c   circuit breakers of subtrees, and that of panics; circuit.fsm
 *   record.c    documents
 *   look.c      what others see; history.c
 *   client.c    what others want; manual_worker.c and order.c: what of it the store keeps
 *
 * Invariants
 *   1. A worker is in the map by its id, and in the list of its parent, from its making until it is
 *      GONE. The memory of one that is GONE is freed when nobody walks.
 *   2. next() is asked only with a desired state and a fresh observation, or to stop.
 *   3. What runs of a worker (struct det_run) holds its incarnation; an incarnation is closed when
 *      nothing holds it. A run that was given up has no worker any more.
 *   4. A worker does not stop before its children are gone, or at rest if it is to come back.
 *   5. `due` is not later than anything that a worker waits for by time. */
#ifndef DET_WORKER_TREE_H
#define DET_WORKER_TREE_H

#include <detent/driver/loop.h>
#include <detent/workers.h>

#include "base/list.h"
#include "base/map.h"
#include "os/os.h"
#include "worker/application.h"
#include "worker/recorder.h"
#include "worker/worker.h"

/* What a tick counts. */
struct det_tally {
    uint32_t by_phase[5], stale, degraded, down;
};

/* A call from another thread. */
struct det_call;

/* The kinds that workers can have. */
struct det_worker_kinds {
    const struct det_worker_kind **all;
    size_t count, room;
};

/* What earlier runs have left in the store. */
struct det_earlier_runs {
    struct det_list restored; /* struct det_restored: created manually */
    struct det_map known;     /* identities: struct det_known */
    struct det_map unclaimed; /* those of them that are no workers, by their parents: unclaimed.c */
};

/* Worker threads hold what is submitted until the turn of the loop is over. */
struct det_worker_threads_hold {
    struct det_post post; /* then they begin it */
    bool is_held;
};

/* Workers that have more children to make, and the timer by which they go on. */
struct det_making {
    struct det_list workers;
    struct det_timer timer;
};

/* The ticks: when the next one is, and the walk of the one that is under way. */
struct det_ticking {
    struct det_timer timer;
    uint64_t count;
    struct det_worker *at;     /* the next one of the walk; NULL: none is under way */
    det_time began, took;      /* of that tick; its slices so far */
    uint32_t walking;          /* depth of walks and visits: nothing is freed */
    uint32_t queued_before;    /* in the queues of the worker threads, when the walk looked last */
    struct det_tally counted;  /* of the last whole tick */
    struct det_tally counting; /* of the one that is under way */
    det_time held;             /* by walks so far: see det_stop_now() */
    bool is_clock_held;        /* all stop, and a walk is under way */
    bool is_hurried;           /* the next tick is at once */
    uint32_t hurries;
    det_time last_took, longest_took;
};

/* What is there and ends before we do. */
struct det_outstanding {
    uint32_t incarnations, runs, recordings;
    uint32_t observing; /* runs of collect() that were submitted and are not back */
};

/* The compaction of the store. */
struct det_compaction {
    struct det_recorder_job job;
    bool is_running;
    det_time at, since;
};

/* Observations so far. */
struct det_observation_counts {
    uint64_t all, failed;
};

/* The end of all. */
struct det_stopping {
    bool is_wanted, is_over, is_closing;
    bool is_forcing; /* it was asked for twice: nothing is waited for any more */
    uint32_t forced;
    char forced_first[DET_WORKER_PATH_MAX + 1];
};

struct det_workers {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_loop *loop, *own_loop;
    struct det_store *store, *own_store;
    struct det_recorder *recorder;
    struct det_worker_threads *actors, *collectors;
    struct det_worker_limits limits;
    struct det_worker_kinds kinds;
    struct det_provided *provided;
    size_t provided_count;
    void (*on_event)(void *user, const struct det_worker_event *event);
    void *user;
    struct det_map map;
    struct det_earlier_runs earlier;
    bool is_applied; /* the root knows what it shall have */
    struct det_scope_values scope;
    uint64_t scope_generation;
    uint64_t generations; /* of scopes and rounds, given out so far */
    struct det_worker *root;
    struct det_worker *gone; /* by `next`: to be freed; no document of theirs is on its way */
    struct det_worker_threads_hold hold;
    struct det_making making;
    uint32_t count;
    uint32_t circuits_open;
    struct det_ticking tick;
    struct det_outstanding outstanding;
    struct det_compaction compaction;
    det_time busy_until; /* DET_WORKER_EVENT_COLLECTORS_BUSY was told not long ago */
    bool is_paused;
    struct det_observation_counts observations;
    det_time now, wall_ahead; /* of this turn; wall - monotonic */
    uint64_t chance;          /* of what need not be random */
    struct det_reason scratch;
    struct det_stopping stopping;
    struct det_mutex *mutex; /* of calls, and of the first three of `stopping` for other threads */
    struct det_condition *changed;
};

/* Identities that the store had when we began. */
struct det_known {
    const char *key;      /* kind, a newline, id */
    struct det_list node; /* of those that no worker has claimed */
    uint64_t startups;
    bool is_ordered_off;
    char text[];
};

/* Blocks of several parts begin each where any type may stand. */
static inline size_t det_aligned(size_t size)
{
    return (size + 15) / 16 * 16;
}

static inline const struct det_record *det_record_or_empty(struct det_record_ref ref)
{
    const struct det_record *record = det_record_of(ref);

    return record ? record : det_empty_record();
}

static inline size_t det_record_size(struct det_record_ref ref)
{
    return det_record_or_empty(ref)->size;
}

/* workers.c */
/* Runs `run` on the loop and waits for it; DET_ERR_CLOSED when there is no loop any more. */
DET_MUST_CHECK int det_workers_call(
    struct det_workers *workers, void (*run)(void *argument), void *argument);
void det_workers_now(struct det_workers *workers);
/* A tick that begins at once, and goes on by itself; whole for one that is paused. */
void det_workers_look(struct det_workers *workers);
/* Something has moved on: while all stops, the next tick is at once. */
void det_workers_hurry(struct det_workers *workers);
/* Before something is submitted to a thread pool: it begins when this turn of the loop is over. */
void det_workers_hold_threads(struct det_workers *workers);
/* Up to `span`; the same in every run of a seed. */
det_time det_workers_chance(struct det_workers *workers, det_time span);
const struct det_worker_kind *det_workers_kind(const struct det_workers *workers, const char *name);
/* `worker` may be NULL. */
void det_tell(struct det_worker *worker, struct det_worker_event event);

/* worker.c */
DET_MUST_CHECK int det_worker_make(
    struct det_workers *workers, struct det_worker *parent, const char *name,
    const struct det_worker_kind *kind, enum det_child_request_origin origin,
    struct det_worker **ret);
/* Whether it would not be too deep, and its path not too long. */
bool det_worker_fits(
    const struct det_worker *parent, const char *name, const struct det_worker_kind *kind);
struct det_worker_faults *det_worker_faults(struct det_worker *worker);
/* Out of the list of its parent. */
void det_worker_unlink(struct det_worker *worker);
/* Nothing of it runs, and it has no children. */
void det_worker_free(struct det_worker *worker);

/* life.c */
void det_life_visit(struct det_worker *worker);
/* Neither gone nor at rest. */
bool det_life_is_active(const struct det_worker *worker);
bool det_life_is_live(const struct det_worker *worker);
/* It lives, or will: children that it has meanwhile wait for it. */
bool det_life_may_have_children(const struct det_worker *worker);
/* It has not begun to close. */
bool det_life_may_stay(const struct det_worker *worker);
bool det_life_is_gone(const struct det_worker *worker);
const char *det_life_name(const struct det_worker *worker);
void det_life_opened(struct det_worker *worker, int code, const char *text);
void det_life_recorded(struct det_worker *worker, int code, const struct det_error *error);
void det_life_leave(struct det_worker *worker);
void det_life_closed(struct det_worker *worker);
void det_life_wake(struct det_worker *worker);
void det_workers_bury(struct det_workers *workers);
/* A document of it is back from the store: frees one that is gone, if it was the last. */
void det_worker_settle(struct det_worker *worker);
void det_worker_due(struct det_worker *worker, det_time at);
/* Another state, and what follows from it; enter() also tells and counts. */
void det_worker_set_state(struct det_worker *worker, uint16_t state);
void det_worker_enter(struct det_worker *worker, uint16_t state, const char *reason);
void det_worker_set_reason(struct det_worker *worker, const char *reason);
void det_worker_poke_parent(struct det_worker *worker);

/* tick_walk.c */
void det_tick_begin(struct det_workers *workers);
/* The next part of the walk. When it is not over (`tick.at`), it goes on after this span. */
DET_MUST_CHECK det_time det_tick_slice(struct det_workers *workers);
/* It goes, and is still in the tree: the walk is not to come to it. */
void det_tick_leave(struct det_worker *worker);
/* The one after it, parents before children; NULL: it was the last below `top`. */
struct det_worker *det_worker_after(const struct det_worker *worker, const struct det_worker *top);

/* tick.c */
void det_worker_visit(struct det_worker *worker);
/* The next portion of children, and a visit to those that are new. */
void det_worker_go_on_making(struct det_worker *worker);
/* Something new is wanted of it: it acts at once, not with the next tick. */
void det_worker_hasten(struct det_worker *worker);
void det_worker_view(struct det_worker *worker, bool stop, struct det_worker_view *ret);
/* Why it is to stop; NULL: it is not. */
const char *det_worker_stop_reason(const struct det_worker *worker);

/* desire.c */
void det_desire_visit(struct det_worker *worker);
void det_desire_recorded(struct det_worker *worker, int code, const struct det_error *error);
/* Of one that is down: whether what is above it has changed so that it is to be derived anew. */
bool det_desire_is_another(struct det_worker *worker);
/* Scopes from the root down to the worker, as they are now. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_desire_refresh(struct det_worker *worker);
const struct det_scope_values *det_desire_scope(const struct det_worker *worker);

/* child_request_list.c */
/* Before `place`, a request of the worker or the head of its list. */
void det_child_requests_insert(
    struct det_worker *worker, struct det_list *place, struct det_child_request *request);
void det_child_requests_remove(struct det_worker *worker, struct det_child_request *request);
struct det_child_request *det_child_requests_find(
    const struct det_worker *worker, const char *name, enum det_child_request_origin origin);
/* Of whatever origin. */
bool det_child_requests_have(const struct det_worker *worker, const char *name);
void det_child_requests_drop_index(struct det_worker *worker);

/* child_request.c, children.c */
void det_child_request_free(struct det_workers *workers, struct det_child_request *request);
void det_child_requests_free(struct det_workers *workers, struct det_list *list);
/* Replaces the requests of one origin by those of the list, which is empty afterwards. */
void det_child_requests_take(
    struct det_worker *worker, enum det_child_request_origin origin, struct det_list *requests);
/* Of what they say, and their order. */
uint64_t det_child_requests_hash(const struct det_list *list);
DET_MUST_CHECK int det_child_request_new(
    struct det_workers *workers, const struct det_child_spec *spec,
    enum det_child_request_origin origin, struct det_child_request **ret, struct det_error *reterr);
/* Whether the states in which it is to run are some of its parent's. */
DET_MUST_CHECK bool det_child_request_can_run(
    const struct det_child_request *request, const struct det_worker_kind *parent,
    struct det_error *reterr);
/* By hand: the states in which it is to run, by name, as a kind of tomorrow may count them anew. */
DET_MUST_CHECK int det_child_request_name_states(
    struct det_workers *workers, struct det_child_request *request,
    const struct det_worker_kind *parent);
/* And back, among those of its parent. What that has not is told and left out; one that is left
 * with none rests. */
void det_child_request_find_states(struct det_worker *parent, struct det_child_request *request);
DET_MUST_CHECK int det_child_requests_of_spec(
    struct det_workers *workers, struct det_spec *spec, struct det_list *ret,
    struct det_error *reterr);
void det_children_ask(struct det_worker *worker);
/* Makes, changes and removes children as the requests say: a portion of them, if they are many; the
 * rest follows by itself. */
void det_children_reconcile(struct det_worker *worker);
/* One request alone, that was added or has changed, without a look at the others. */
void det_children_fulfil(struct det_worker *worker, struct det_child_request *request);
/* One child whose request was taken away. */
void det_children_release(struct det_worker *child);
/* The child of this name; NULL: there is none. */
struct det_worker *det_worker_child(const struct det_worker *worker, const char *name);
/* The timer of workers->more. */
void det_children_make_more(void *argument);
void det_children_count(struct det_worker *worker);
/* Updates the counts of all ancestors. */
void det_worker_set_ailment(struct det_worker *worker, enum det_ailment ailment, bool has);

/* incarnation.c, run.c */
DET_MUST_CHECK int det_incarnation_new(struct det_worker *worker, struct det_incarnation **ret);
void det_incarnation_hold(struct det_incarnation *incarnation);
void det_incarnation_drop(struct det_incarnation *incarnation);
DET_MUST_CHECK int det_run_new(
    struct det_worker *worker, enum det_run_kind kind, uint16_t action, struct det_run **ret);
/* A run of close(), which nobody waits for but the incarnation. */
DET_MUST_CHECK int det_run_new_close(struct det_incarnation *incarnation, struct det_run **ret);
void det_run_free(struct det_run *run);
/* Submits it. */
void det_run_start(struct det_run *run, det_time timeout);
/* Whether it was given up: then it has no worker any more. Looks at how long it has run, cancels,
 * tells, and sets `due`. */
bool det_run_watch(struct det_run *run);
/* At once, if that can be. */
bool det_run_give_up(struct det_run *run);
void det_run_cancel(struct det_run *run);

/* collect.c */
void det_collect_visit(struct det_worker *worker);
void det_collect_done(struct det_worker *worker, struct det_run *run);
void det_collect_lost(struct det_worker *worker);
void det_collect_soon(struct det_worker *worker);
/* At once, and next() is asked with what it brings without waiting for a tick. */
void det_collect_anew(struct det_worker *worker);
/* Whether next() may be asked, as far as the age of the observation goes. */
bool det_collect_is_fresh(struct det_worker *worker);

/* act.c */
void det_act_start(struct det_worker *worker, uint16_t action);
void det_act_visit(struct det_worker *worker);
void det_act_done(struct det_worker *worker, struct det_run *run);
void det_act_lost(struct det_worker *worker, uint16_t action, det_time took);
void det_act_cancel(struct det_worker *worker);
void det_act_forget(struct det_worker *worker);

/* stop.c */
/* The clock of stops: monotonic, but for the time that our own walks take (tick_walk.c). */
det_time det_stop_now(const struct det_workers *workers);
void det_stop_shutdown(struct det_worker *top, det_time grace, const char *reason);
/* It is wanted again: it does not stop, as long as it is not being closed. */
void det_stop_revoke(struct det_worker *worker);
/* When it has stopped it stays down. */
void det_stop_rest(struct det_worker *worker, const char *reason);
void det_stop_restart(struct det_worker *worker, const char *reason);
/* Somebody wants it: it has not failed. */
void det_stop_restart_by_order(struct det_worker *worker, const char *reason);
void det_stop_visit(struct det_worker *worker);
void det_stop_force(struct det_worker *worker);
/* Its close() does not come back: told, but for one that was taken down already. */
void det_stop_left_behind(struct det_worker *worker);
void det_stop_all(struct det_workers *workers);
void det_stop_gone(struct det_workers *workers);

/* circuit.c */
/* A child has failed for good, or had to begin anew. */
void det_circuit_failure(struct det_worker *child, const char *reason);
/* It is not counted any more. */
void det_circuit_forget(struct det_worker *worker);
void det_circuit_visit(struct det_worker *worker);
bool det_circuit_is_open(const struct det_worker *worker);
void det_panic_note(
    struct det_worker *worker, enum det_worker_event_kind kind, const char *text,
    const char *action);
bool det_panic_is_open(struct det_worker *worker);

/* record.c */
void det_record_identity(struct det_worker *worker);
void det_record_desired(struct det_worker *worker);
void det_record_observed(struct det_worker *worker);
void det_record_drop(struct det_worker *worker);
uint64_t det_record_startups(struct det_workers *workers, const struct det_worker *worker);
void det_record_free_known(struct det_workers *workers);
DET_MUST_CHECK int det_record_remember(
    struct det_workers *workers, const char *kind, const char *id, uint64_t startups);

/* Whether an order to rest counts for it, from an earlier run or an earlier life. */
bool det_record_is_off(const struct det_worker *worker);
/* Room for it is there once the worker is on record. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_record_set_off(
    struct det_workers *workers, const char *kind, const char *id, bool is_off);

/* Drops the documents of one that is no worker, and forgets it. */
void det_record_drop_known(struct det_workers *workers, struct det_known *known);
struct det_known *det_record_known(struct det_workers *workers, const char *kind, const char *id);

/* unclaimed.c */
DET_MUST_CHECK int det_unclaimed_add(struct det_workers *workers, struct det_known *known);
/* Whether there are some below it. */
bool det_unclaimed_below(const struct det_worker *worker);
/* The worker has all the children that it is to have, or goes for good: drops the others. */
void det_unclaimed_drop(struct det_worker *parent);
void det_unclaimed_free(struct det_workers *workers);

/* order.c: orders to rest, which the store keeps. */
#define DET_ORDERED_OFF "ordered_off" /* the member of a document */
/* On the calling thread: when it returns 0 it is durable. */
DET_MUST_CHECK int det_order_save(
    struct det_workers *workers, const char *kind, const char *id, bool is_off);
/* To the worker that was just made. */
void det_order_restore(struct det_worker *worker);

/* manual_worker.c: manually created workers, which the store keeps. */
DET_MUST_CHECK int det_manual_load(struct det_workers *workers, struct det_error *reterr);
/* What is known of earlier runs, to the worker that was just made. */
void det_manual_restore(struct det_worker *worker);
void det_manual_forget_all(struct det_workers *workers);
/* On the calling thread: when it returns 0 it is durable. */
DET_MUST_CHECK int det_manual_save(
    struct det_workers *workers, const char *parent, const struct det_child_spec *spec,
    const char *states, bool is_ordered_off, struct det_error *reterr);
/* Its spec, and those of all that were put below it. */
DET_MUST_CHECK int det_manual_drop(
    struct det_workers *workers, const char *id, bool with_below, struct det_error *reterr);
/* Whether somebody put one of its name, beside those who want it. */
bool det_manual_has(const struct det_worker *worker);
/* Whether somebody put this one, and its parent is not there yet. */
bool det_manual_waits(const struct det_workers *workers, const char *id);
/* A request for a parent that is to come. */
void det_manual_wait(
    struct det_workers *workers, const char *parent, struct det_child_request *request_take);
/* Somebody else wants it now: the one who did has back what it wanted. */
void det_manual_disown(struct det_worker *worker, enum det_child_request_origin origin);
/* It is about to go: what was put below it waits until it is back, unless it was deleted. */
void det_manual_keep(struct det_worker *worker);

/* look.c, history.c */
void det_history_state(struct det_worker *worker, uint16_t from, uint16_t to, const char *reason);
void det_history_action(
    struct det_worker *worker, const char *action, int code, det_time took, const char *text);
void det_history_free(struct det_worker *worker);
void det_history_write(const struct det_worker *worker, struct det_buffer *buffer);
/* The oldest first, from the one after `after`; how many of those are not remembered any more. */
void det_history_write_after(
    const struct det_worker *worker, uint64_t after, struct det_buffer *buffer, uint64_t *ret_lost);
void det_metrics_take(struct det_worker *worker, struct det_run *run);

#endif
