/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_tree.h - the tree of workers, shared by the files of this folder. All of it belongs to
 * the loop, except for objects of the thread pools: struct det_run, struct det_incarnation.
 *
 *   workers.c           opens and closes; worker_call.c: calls from other threads
 *   tick_walk.c         the walk over the tree, in slices; tick.c: decides about one worker
 *   worker.c            the object of a worker, created and freed
 *   life.c              the life of a worker; life.fsm
 *   stop.c              shutdowns, restarts, deadlines
 *   desire.c            the desired state: derived, recorded, used
 *   children.c          creates and removes children; child_request.c: requests for them
 *   incarnation.c       the resources of one life of a worker
 *   run.c               one call of user code on the threads of worker_threads.c
 *   collect.c           observations: timing, age, restarts
 *   act.c               actions: gate, backoff, abandoned runs
 *   circuit.c           circuit breakers of subtrees, and that of panics; circuit.fsm
 *   recorder.c          the thread that writes documents; worker_documents.c: their content
 *   unclaimed.c         documents of workers that are no longer requested
 *   worker_list.c       shows workers; history.c: recent changes and metrics
 *   user_request.c      requests of users; manual_worker.c, order.c: those that the store keeps
 *
 * Invariants
 *   1. A worker is in the map by its id, and in the list of its parent, from its creation until it
 *      is GONE. The memory of a GONE worker is freed when no walk is under way.
 *   2. next() is called only with a desired state and a fresh observation, or to stop.
 *   3. Each run of a worker (struct det_run) holds its incarnation; an incarnation without holders
 *      is closed. An abandoned run has no worker.
 *   4. A worker does not stop before its children are gone, or at rest if it is to restart.
 *   5. `due` is not later than any time that a worker waits for. */
#ifndef DET_WORKER_WORKER_TREE_H
#define DET_WORKER_WORKER_TREE_H

#include <detent/driver/loop.h>
#include <detent/workers.h>

#include "base/list.h"
#include "base/map.h"
#include "os/os.h"
#include "worker/application.h"
#include "worker/recorder.h"
#include "worker/worker.h"

/* Counts of a tick. */
struct det_tally {
    uint32_t by_phase[5], stale, degraded, down;
};

/* A call from another thread. */
struct det_call;

/* The available kinds of workers. */
struct det_worker_kinds {
    const struct det_worker_kind **all;
    size_t count, room;
};

/* Contents of the store from earlier runs. */
struct det_earlier_runs {
    struct det_list restored; /* struct det_restored: created manually */
    struct det_map known;     /* identities: struct det_known */
    struct det_map unclaimed; /* those of them without a worker, by their parents: unclaimed.c */
};

/* Worker threads hold submitted jobs until the turn of the loop is over. */
struct det_worker_threads_hold {
    struct det_post post; /* starts the jobs */
    bool is_held;
};

/* Workers with more children to create, and the timer for continuing. */
struct det_making {
    struct det_list workers;
    struct det_timer timer;
};

/* The ticks: the time of the next one, and the current walk. */
struct det_ticking {
    struct det_timer timer;
    uint64_t count;
    struct det_worker *at;     /* the next worker of the walk; NULL: no walk */
    det_time began, took;      /* of the current tick; its slices so far */
    uint32_t walking;          /* depth of walks and visits, during which no worker is freed */
    uint32_t queued_before;    /* in the queues of the worker threads, at the walk's last check */
    struct det_tally counted;  /* of the last whole tick */
    struct det_tally counting; /* of the current tick */
    det_time held;             /* by walks so far: see det_stop_now() */
    bool is_clock_held;        /* everything stops, and a walk is under way */
    bool is_hurried;           /* the next tick is at once */
    uint32_t hurries;
    det_time last_took, longest_took;
};

/* Work that must end before the supervisor is closed. */
struct det_outstanding {
    uint32_t incarnations, runs, recordings;
    uint32_t observing; /* runs of collect() that have not returned */
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

/* The stop of the whole tree. */
struct det_stopping {
    bool is_wanted, is_over, is_closing;
    bool is_forcing; /* a second request: no waiting */
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
    bool is_applied; /* the root has its requests */
    struct det_scope_values scope;
    uint64_t scope_generation;
    uint64_t generations; /* generations of scopes and rounds, assigned so far */
    struct det_worker *root;
    struct det_worker *gone; /* by `next`: to be freed; none has a document under way */
    struct det_worker_threads_hold hold;
    struct det_making making;
    uint32_t count;
    uint32_t circuits_open;
    struct det_ticking tick;
    struct det_outstanding outstanding;
    struct det_compaction compaction;
    det_time busy_until; /* DET_WORKER_EVENT_COLLECTORS_BUSY is not repeated before this time */
    bool is_paused;
    struct det_observation_counts observations;
    det_time now, wall_ahead; /* of this turn; wall - monotonic */
    uint64_t chance;          /* state of simple random numbers */
    struct det_reason scratch;
    struct det_stopping stopping;
    struct det_mutex *mutex; /* protects calls, and the first three fields of `stopping` for other
                              * threads */
    struct det_condition *changed;
};

/* An identity that the store had at the start. */
struct det_known {
    const char *key;      /* kind, a newline, id */
    struct det_list node; /* in the list of unclaimed ones */
    uint64_t startups;
    bool is_ordered_off;
    char text[];
};

/* Parts of a block begin at an address for any type. */
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
/* Runs `run` on the loop and waits for it; DET_ERR_CLOSED: the loop has ended. */
DET_MUST_CHECK int det_workers_call(
    struct det_workers *workers, void (*run)(void *argument), void *argument);
void det_workers_now(struct det_workers *workers);
/* Begins a tick at once, which continues by itself; completes it if ticks are paused. */
void det_workers_tick_now(struct det_workers *workers);
/* Progress was made: while everything stops, the next tick is at once. */
void det_workers_hurry(struct det_workers *workers);
/* Called before submitting to a thread pool: the jobs begin when this turn of the loop is over. */
void det_workers_hold_threads(struct det_workers *workers);
/* A random span up to `span`; the same in every run of a seed. */
det_time det_workers_chance(struct det_workers *workers, det_time span);
const struct det_worker_kind *det_workers_kind(const struct det_workers *workers, const char *name);
/* `worker` may be NULL. */
void det_worker_publish(struct det_worker *worker, struct det_worker_event event);

/* worker.c */
DET_MUST_CHECK int det_worker_make(
    struct det_workers *workers, struct det_worker *parent, const char *name,
    const struct det_worker_kind *kind, enum det_child_request_origin origin,
    struct det_worker **ret);
/* True if it is not too deep, and its path not too long. */
bool det_worker_fits(
    const struct det_worker *parent, const char *name, const struct det_worker_kind *kind);
struct det_worker_faults *det_worker_faults(struct det_worker *worker);
/* Removes it from the list of its parent. */
void det_worker_unlink(struct det_worker *worker);
/* Frees a worker without runs and children. */
void det_worker_free(struct det_worker *worker);

/* life.c */
void det_life_visit(struct det_worker *worker);
/* True if it is neither waiting, nor down, nor gone. */
bool det_life_is_active(const struct det_worker *worker);
bool det_life_is_live(const struct det_worker *worker);
/* True if it is live or will be: its children wait for it. */
bool det_life_may_have_children(const struct det_worker *worker);
/* True if it has not begun to close. */
bool det_life_may_stay(const struct det_worker *worker);
bool det_life_is_gone(const struct det_worker *worker);
const char *det_life_name(const struct det_worker *worker);
void det_life_opened(struct det_worker *worker, int code, const char *text);
void det_life_recorded(struct det_worker *worker, int code, const struct det_error *error);
void det_life_leave(struct det_worker *worker);
void det_life_closed(struct det_worker *worker);
void det_life_wake(struct det_worker *worker);
void det_workers_free_gone(struct det_workers *workers);
/* A document has returned from the store: frees a gone worker after the last one. */
void det_worker_settle(struct det_worker *worker);
void det_worker_due(struct det_worker *worker, det_time at);
/* Changes the state with its consequences, without a report. */
void det_worker_set_state(struct det_worker *worker, uint16_t state);
void det_worker_set_reason(struct det_worker *worker, const char *reason);
void det_worker_notify_parent(struct det_worker *worker);

/* tick_walk.c */
void det_tick_begin(struct det_workers *workers);
/* The next slice of the walk. If the walk is not over (`tick.at`), it continues after this span. */
DET_MUST_CHECK det_time det_tick_slice(struct det_workers *workers);
/* Removes it from the walk; it is still in the tree. */
void det_tick_remove(struct det_worker *worker);
/* The next worker, parents before children; NULL: it was the last below `top`. */
struct det_worker *det_worker_after(const struct det_worker *worker, const struct det_worker *top);

/* tick.c */
void det_worker_visit(struct det_worker *worker);
/* Creates the next portion of children, and visits the new ones. */
void det_worker_continue_children(struct det_worker *worker);
/* A new request: the worker acts at once, not with the next tick. */
void det_worker_hasten(struct det_worker *worker);
void det_worker_view(struct det_worker *worker, bool stop, struct det_worker_view *ret);
/* The reason why it must stop; NULL: none. */
const char *det_worker_stop_reason(const struct det_worker *worker);

/* desire.c */
void det_desire_visit(struct det_worker *worker);
void det_desire_recorded(struct det_worker *worker, int code, const struct det_error *error);
/* For a worker that is down: true if its scope has changed so that it must be derived again. */
bool det_desire_has_changed(struct det_worker *worker);
/* Updates the scopes from the root down to the worker. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_desire_refresh(struct det_worker *worker);
const struct det_scope_values *det_desire_scope(const struct det_worker *worker);

/* child_request_list.c */
/* Before `place`, a request of the worker or the head of its list. */
void det_child_requests_insert(
    struct det_worker *worker, struct det_list *place, struct det_child_request *request);
void det_child_requests_remove(struct det_worker *worker, struct det_child_request *request);
struct det_child_request *det_child_requests_find(
    const struct det_worker *worker, const char *name, enum det_child_request_origin origin);
/* Of any origin. */
bool det_child_requests_have(const struct det_worker *worker, const char *name);
void det_child_requests_drop_index(struct det_worker *worker);

/* child_request.c, children.c */
void det_child_request_free(struct det_workers *workers, struct det_child_request *request);
void det_child_requests_free(struct det_workers *workers, struct det_list *list);
/* Replaces the requests of one origin by those of the list, which is empty afterwards. */
void det_child_requests_take(
    struct det_worker *worker, enum det_child_request_origin origin, struct det_list *requests);
/* Covers their contents and their order. */
uint64_t det_child_requests_hash(const struct det_list *list);
DET_MUST_CHECK int det_child_request_new(
    struct det_workers *workers, const struct det_child_spec *spec,
    enum det_child_request_origin origin, struct det_child_request **ret, struct det_error *reterr);
/* True if some states of its run_in are states of its parent. */
DET_MUST_CHECK bool det_child_request_can_run(
    const struct det_child_request *request, const struct det_worker_kind *parent,
    struct det_error *reterr);
/* For manual requests: stores run_in by name, as a later version of the kind may number its states
 * differently. */
DET_MUST_CHECK int det_child_request_name_states(
    struct det_workers *workers, struct det_child_request *request,
    const struct det_worker_kind *parent);
/* The reverse, among the parent's states. Unknown names are reported and ignored; a request without
 * known states rests. */
void det_child_request_find_states(struct det_worker *parent, struct det_child_request *request);
DET_MUST_CHECK int det_child_requests_of_spec(
    struct det_workers *workers, struct det_spec *spec, struct det_list *ret,
    struct det_error *reterr);
void det_children_ask(struct det_worker *worker);
/* Creates, changes and removes children according to the requests: one portion of them, if they are
 * many; the rest follows automatically. */
void det_children_reconcile(struct det_worker *worker);
/* Handles one new or changed request alone. */
void det_children_fulfil(struct det_worker *worker, struct det_child_request *request);
/* Handles a child whose request was removed. */
void det_children_release(struct det_worker *child);
/* The child of this name; NULL: none. */
struct det_worker *det_worker_child(const struct det_worker *worker, const char *name);
/* Runs at the timer of workers->making. */
void det_children_continue(void *argument);
void det_children_count(struct det_worker *worker);
/* Updates the counts of all ancestors. */
void det_worker_set_condition(
    struct det_worker *worker, enum det_worker_condition condition, bool has);

/* incarnation.c, run.c */
DET_MUST_CHECK int det_incarnation_new(struct det_worker *worker, struct det_incarnation **ret);
void det_incarnation_hold(struct det_incarnation *incarnation);
void det_incarnation_drop(struct det_incarnation *incarnation);
DET_MUST_CHECK int det_run_new(
    struct det_worker *worker, enum det_run_kind kind, uint16_t action, struct det_run **ret);
/* A run of close(), held by the incarnation alone. */
DET_MUST_CHECK int det_run_new_close(struct det_incarnation *incarnation, struct det_run **ret);
void det_run_free(struct det_run *run);
/* Submits it. */
void det_run_start(struct det_run *run, det_time timeout);
/* True if it was abandoned: it has no worker then. Checks its duration, cancels, reports, and sets
 * `due`. */
bool det_run_watch(struct det_run *run);
/* Abandons the run at once; false: not possible now. */
bool det_run_abandon(struct det_run *run);
void det_run_cancel(struct det_run *run);

/* collect.c */
void det_collect_visit(struct det_worker *worker);
void det_collect_done(struct det_worker *worker, struct det_run *run);
void det_collect_lost(struct det_worker *worker);
void det_collect_soon(struct det_worker *worker);
/* Observes at once; next() is called with the result, not with the next tick. */
void det_collect_again(struct det_worker *worker);
/* True if the age of the observation permits a call of next(). */
bool det_collect_is_fresh(struct det_worker *worker);

/* act.c */
void det_act_start(struct det_worker *worker, uint16_t action);
void det_act_visit(struct det_worker *worker);
void det_act_done(struct det_worker *worker, struct det_run *run);
void det_act_lost(struct det_worker *worker, uint16_t action, det_time took);
void det_act_cancel(struct det_worker *worker);
void det_act_forget(struct det_worker *worker);

/* stop.c */
/* The clock of stops: monotonic, without the time of our own walks (tick_walk.c). */
det_time det_stop_now(const struct det_workers *workers);
void det_stop_shutdown(struct det_worker *top, det_time grace, const char *reason);
/* Ends the stop of a worker that is requested again, unless it is being closed. */
void det_stop_revoke(struct det_worker *worker);
/* Makes it stay down after its stop. */
void det_stop_rest(struct det_worker *worker, const char *reason);
void det_stop_restart(struct det_worker *worker, const char *reason);
/* A manual restart, which is not counted as a failure. */
void det_stop_restart_by_order(struct det_worker *worker, const char *reason);
void det_stop_visit(struct det_worker *worker);
void det_stop_force(struct det_worker *worker);
/* Reports that its close() does not return, unless it was forced already. */
void det_stop_note_hung_close(struct det_worker *worker);
void det_stop_all(struct det_workers *workers);
void det_stop_gone(struct det_workers *workers);

/* circuit.c */
/* A child has failed permanently, or had to restart. */
void det_circuit_failure(struct det_worker *child, const char *reason);
/* Removes a worker from the counts of circuits. */
void det_circuit_forget(struct det_worker *worker);
void det_circuit_visit(struct det_worker *worker);
bool det_circuit_is_open(const struct det_worker *worker);
void det_panic_note(
    struct det_worker *worker, enum det_worker_event_kind kind, const char *text,
    const char *action);
bool det_panic_is_open(struct det_worker *worker);

/* worker_documents.c */
void det_record_identity(struct det_worker *worker);
void det_record_desired(struct det_worker *worker);
void det_record_observed(struct det_worker *worker);
void det_record_drop(struct det_worker *worker);
uint64_t det_record_startups(struct det_workers *workers, const struct det_worker *worker);
void det_record_free_known(struct det_workers *workers);
DET_MUST_CHECK int det_record_remember(
    struct det_workers *workers, const char *kind, const char *id, uint64_t startups);

/* True if an order to disable it is recorded, from an earlier run or life. */
bool det_record_is_off(const struct det_worker *worker);
/* Room for it exists once the worker is recorded. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_record_set_off(
    struct det_workers *workers, const char *kind, const char *id, bool is_off);

/* Drops the documents of an identity without a worker, and forgets it. */
void det_record_drop_known(struct det_workers *workers, struct det_known *known);
struct det_known *det_record_known(struct det_workers *workers, const char *kind, const char *id);

/* unclaimed.c */
DET_MUST_CHECK int det_unclaimed_add(struct det_workers *workers, struct det_known *known);
/* True if it has unclaimed children. */
bool det_unclaimed_below(const struct det_worker *worker);
/* Drops unclaimed documents below the worker. Call when all its requested children exist, or when
 * it is removed. */
void det_unclaimed_drop(struct det_worker *parent);
void det_unclaimed_free(struct det_workers *workers);

/* order.c: persistent orders to disable workers. */
#define DET_ORDERED_OFF "ordered_off" /* the member of a document */
/* On the calling thread: durable when it returns 0. */
DET_MUST_CHECK int det_order_save(
    struct det_workers *workers, const char *kind, const char *id, bool is_off);
/* Applies it to a worker that was just created. */
void det_order_restore(struct det_worker *worker);

/* manual_worker.c: persistent manual workers. */
DET_MUST_CHECK int det_manual_load(struct det_workers *workers, struct det_error *reterr);
/* Applies the knowledge of earlier runs to a worker that was just created. */
void det_manual_restore(struct det_worker *worker);
void det_manual_forget_all(struct det_workers *workers);
/* On the calling thread: durable when it returns 0. */
DET_MUST_CHECK int det_manual_save(
    struct det_workers *workers, const char *parent, const struct det_child_spec *spec,
    const char *states, bool is_ordered_off, struct det_error *reterr);
/* Drops its spec, and those of all manual workers below it. */
DET_MUST_CHECK int det_manual_drop(
    struct det_workers *workers, const char *id, bool with_below, struct det_error *reterr);
/* True if there is a manual request of its name, beside others. */
bool det_manual_has(const struct det_worker *worker);
/* True if there is a manual request of this id whose parent does not exist yet. */
bool det_manual_waits(const struct det_workers *workers, const char *id);
/* A request for a parent that does not exist yet. */
void det_manual_wait(
    struct det_workers *workers, const char *parent, struct det_child_request *request_take);
/* Another origin takes the worker over: the manual request keeps its own spec. */
void det_manual_disown(struct det_worker *worker, enum det_child_request_origin origin);
/* Before its removal: manual requests below it wait until it is back, unless it was deleted. */
void det_manual_keep(struct det_worker *worker);

/* worker_list.c, history.c */
void det_history_state(struct det_worker *worker, uint16_t from, uint16_t to, const char *reason);
void det_history_action(
    struct det_worker *worker, const char *action, int code, det_time took, const char *text);
void det_history_free(struct det_worker *worker);
void det_history_write(const struct det_worker *worker, struct det_buffer *buffer);
/* Writes the rows after `after`, the oldest first; returns the number of forgotten ones. */
void det_history_write_after(
    const struct det_worker *worker, uint64_t after, struct det_buffer *buffer, uint64_t *ret_lost);
void det_metrics_take(struct det_worker *worker, struct det_run *run);

#endif
