/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* registry.h - declarations shared by the files of src/task: a task, the supervisor, and the steps
 * between them. Everything is for the owner loop, except where a comment says `any thread`.
 *
 *     add, submit                                                       (registry.c, slots.c)
 *        -> struct det_task, its actor in state held                    (actor.c)
 *        -> the tree releases it                                        (task_tree.c)
 *        -> a permit                                                    (permit.c)
 *        -> an attempt: function, step or process                       (attempt.c)
 *        -> policy: pause, or done                                      (plan.c)
 *        -> done: on the list `ended`; reap() removes it from the indexes, reports its end,
 *           frees its place in the slot, notifies the tree              (registry.c)
 *
 * Invariants
 *   1. A task is in `ids` from the moment its id is published until its end is reported; in `names`
 *      exactly while its actor is supervised and its end is not reported.
 *   2. No recursion from task to task: a returned permit, an end, a release by the tree are noted
 *      and executed by the loop in `settle()`, one after the other.
 *   3. No user code runs between a change of the indexes and its event. */
#ifndef DET_TASK_REGISTRY_H
#define DET_TASK_REGISTRY_H

#include <stdatomic.h>

#include <detent/driver/loop.h>
#include <detent/slot.h>
#include <detent/supervise.h>

#include "base/arena.h"
#include "base/id_map.h"
#include "base/list.h"
#include "base/map.h"
#include "os/os.h"
#include "os/pool.h"
#include "task/bus.h"

struct det_slot;
struct group;
struct task_extras;
struct attempt;
struct plan;
struct checks;
struct needs;
struct anchor;

enum task_kind {
    TASK_FUNCTION,
    TASK_STEP,
    TASK_PROCESS,
};

/* The result of an attempt. */
enum attempt_result {
    ATTEMPT_SUCCEEDED,
    ATTEMPT_FAILED,
    ATTEMPT_FATAL,
    ATTEMPT_CANCELLED,
    ATTEMPT_FORCED,
};

struct attempt_end {
    int code; /* the error; 0: none, or an exit code */
    int32_t exit_code;
    uint8_t result; /* enum attempt_result */
    uint8_t signal;
    bool has_exit_code;
    bool is_shortage; /* it never began: our own process lacks descriptors, processes or memory */
};

/* The context of the work. A function writes it on its thread between start and end of its
 * attempt. */
struct det_task_context {
    int32_t exit_code;
    uint8_t is_cancelled; /* atomic */
    bool is_fatal;
    bool has_exit_code;
    bool is_notified; /* det_task_ready() was called */
};

/* The place of a task or group in its group. */
struct member {
    struct det_list siblings; /* in the order added */
    uint64_t order;           /* order of adding, from 1 */
    bool is_group;
};

/* The function of an attempt; NULL for a process. */
struct task_work {
    union {
        det_task_fn *function;
        det_step_fn *step;
    };
    void *argument;
    void (*release)(void *argument);
};

/* By the loop's clock. */
struct task_times {
    det_time since;      /* when this state began */
    det_time started_at; /* start of the last attempt */
    det_time deadline;   /* of the attempt, of a stop, of a pause; DET_NEVER: none */
    det_time delay;      /* the last delay of this streak */
};

/* The attempts of a task and their results. */
struct task_attempts {
    struct attempt_end ended;
    struct attempt_end last; /* the last ended attempt, if `has_last` */
    uint32_t number, failures, restarts;
    uint8_t outcome; /* enum det_task_outcome, once it is known */
    uint8_t rejection;
    bool has_succeeded : 1; /* one of the attempts */
    bool is_restarting : 1; /* the next one is a restart, not a scheduled run */
    bool is_stopped : 1;    /* it has ended after a stop request */
    bool has_last : 1;
    bool is_last : 1;      /* no attempt follows the running one */
    bool is_unhealthy : 1; /* it is ended because of its checks */
    bool has_stepped : 1;  /* its step has ended, which is not published yet */
};

struct det_task {
    struct det_component component;
    struct det_id_node node;
    struct det_tasks *tasks;
    struct det_task_context context;
    const struct det_policy *policy; /* of `tasks`, shared */
    struct task_work work;
    struct task_extras *extras; /* parts that few tasks have; NULL: none */
    struct attempt *attempt;    /* a running function or process; NULL: none, or a step */
    struct det_list line;       /* in the line for a permit; or in the list of ended tasks */
    struct det_list turn;       /* in the list of startable tasks; or in that of tasks to stop */
    struct member member;       /* its place in its group */
    struct det_list place;      /* among the owners of its slot, or in its queue */
    struct group *group;        /* never NULL: the root by default */
    struct anchor *anchor;      /* NULL: no task depends on it */
    struct det_slot *slot;      /* NULL: none */
    struct det_waiter *waiters;
    char *reason; /* reason of the last failure; NULL: none */
    struct task_times times;
    struct task_attempts attempts;
    uint32_t ticket;  /* number in the line for a permit */
    uint8_t kind;     /* enum task_kind */
    uint8_t standing; /* a bit for each enum det_condition_kind that holds */
    uint8_t wishes;   /* requests of a running step about its own task; see actor.c */
    bool has_permit : 1;
    bool is_registered : 1; /* in `names` */
    bool is_removing : 1;   /* a removal was requested */
    bool is_stopping : 1;   /* its slot knows about the stop request */
    bool is_ready : 1;
    bool is_healthy : 1;
    bool is_stuck : 1;
    bool is_on_hold : 1; /* stopped by det_tasks_hold(), until a restart */
    const char *name;    /* follows the struct */
};

/* Parts that few tasks have; one arena with all their strings. */
struct task_extras {
    struct det_arena arena;
    const struct det_process_spec *process;
    const struct det_dependency *depends_on;
    size_t depends_on_count;
    const struct det_readiness *readiness; /* NULL: ready when started, no checks */
    struct plan *plan;                     /* its schedule; NULL: none */
    struct needs *needs;                   /* the bound depends_on; NULL: not in the tree */
    struct checks *checks;                 /* of the running attempt; NULL: none */
};

/* A shared policy; there are few, since most tasks set none. */
struct shared_policy {
    struct det_policy policy; /* the first member: a task points to it */
    struct det_list all;
    uint64_t users;
};

/* All tasks by id and by name. */
struct task_index {
    struct det_id_map ids;
    struct det_map names;
    uint64_t next_id;
    uint64_t registered, queued;
};

/* Groups and dependencies. */
struct task_tree {
    struct group *root;
    struct det_list groups; /* all but the root, parents first */
    struct det_map group_names;
    struct det_map anchors;    /* names that a task depends on */
    struct det_list startable; /* by `turn`: tasks to check */
    uint64_t walks;            /* counter of walks along dependencies */
    bool is_stopping;          /* the ordered stop of all tasks is under way */
};

/* Threads for checks that are functions. */
struct check_threads {
    struct det_pool *pool; /* NULL: not needed yet */
    uint32_t pool_size;    /* number of its threads */
    uint32_t running;      /* on the pool or waiting for one of its threads */
    struct det_list loose; /* checks whose attempt ended before them */
};

/* The limits of concurrent attempts and of function threads. */
struct permits {
    struct det_list line, pool_line;
    uint32_t used, pool_used;
    uint32_t pool_size;     /* number of pool threads */
    bool is_pool_exhausted; /* a function waits for a thread, which was published */
    uint32_t next_ticket;
};

/* Noted actions, executed one after the other: invariant 2. */
struct settling {
    struct det_list ended;    /* by `line`: done, to be reaped */
    struct det_list rejected; /* by `line`: removed from their queue, to be published */
    struct det_post post;
    bool is_running, is_wanted, is_posted;
};

/* The wall clock, as last read by the loop. */
struct wall_clock {
    det_time time, read_at;
    det_time apart; /* offset of the wall clock from the loop's clock */
};

struct tasks_shutdown {
    struct det_timer deadline;
    uint32_t stubborn_count;
    char stubborn[DET_TASK_REASON_MAX + 1]; /* names of tasks that did not stop in time */
};

/* The running step. */
struct running_step {
    const struct det_task *task;           /* NULL: none runs */
    det_time wake_at;                      /* latest time of its next call */
    char failure[DET_TASK_REASON_MAX + 1]; /* reason of its failure */
};

/* Calls from other threads; under the mutex of the status, except `posted`. */
struct tasks_intake {
    struct det_condition *has_room;
    struct det_signal *signals; /* unused ones */
    uint32_t count, waiters;
    atomic_uint posted; /* unexecuted calls without a waiting caller */
};

/* State for any thread, under its mutex. */
struct tasks_status {
    struct det_mutex *mutex;
    struct det_condition *changed; /* signals a change of the fields below, or a cancelled
                                    * function */
    uint32_t holds;                /* external queues that may still add tasks */
    bool is_idle;                  /* empty, and not held: for det_tasks_run() */
    bool is_shutting_down;
    bool is_empty, has_verdict, is_over, is_running, has_ended_bus, is_ending_bus;
    int verdict;
};

struct det_tasks {
    struct det_component component; /* supervisor.fsm */
    struct det_tasks_options options;
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_loop *loop;
    struct det_loop *own_loop; /* NULL: the user's loop */
    struct det_executor *executor;
    struct det_bus *bus;
    struct det_pool *pool;
    struct det_policy defaults; /* resolved */
    struct det_list policies;   /* by `all` */
    struct task_index index;
    struct task_tree tree;
    struct check_threads checks;
    struct det_map slots;
    struct permits permits;
    struct settling settling;
    uint64_t chance; /* state of the random numbers */
    struct wall_clock wall;
    struct tasks_shutdown shutdown;
    struct det_tasks_counts counts;
    struct running_step step;
    char obstacle[DET_TASK_REASON_MAX + 1]; /* what the queried task waits for */
    struct tasks_status status;
    struct tasks_intake intake;
};

/* registry.c */
DET_MUST_CHECK int det_task_make(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_task **ret,
    struct det_error *reterr);
/* For a task that was never admitted, or after its end was reported. */
void det_task_free(struct det_task *task);
/* Admits a made task under its name; it is held until the tree releases it. On failure the task is
 * unchanged. The following four functions are its steps, for admitting several at once: into the
 * index of names, into the tree with an actor, and published. */
DET_MUST_CHECK int det_task_admit(struct det_task *task, struct det_error *reterr);
DET_MUST_CHECK int det_task_index(struct det_task *task, struct det_error *reterr);
void det_task_unindex(struct det_task *task);
DET_MUST_CHECK int det_task_enter(struct det_task *task, struct det_error *reterr);
void det_task_announce(struct det_task *task);
void det_task_publish_refused(
    struct det_task *task, enum det_rejection rejection, const char *reason);
enum det_rejection det_rejection_of(int code);
DET_MUST_CHECK int det_name_check(const char *what, const char *name, struct det_error *reterr);
/* Requests its end; true if this call did it. Removes a queued task as well. */
bool det_task_remove(struct det_task *task);
struct det_task *det_task_find(struct det_tasks *tasks, det_task_id id);
/* Executes noted actions soon: ends, permits, releases. */
void det_tasks_settle_soon(struct det_tasks *tasks);

/* loop_call.c */
/* Any thread: runs `run` as the owner of the loop, and returns its result. It must be short, and
 * must not run user code that depends on the thread of the loop. */
DET_MUST_CHECK int det_tasks_call(
    struct det_tasks *tasks, bool may_wait, int (*run)(struct det_tasks *tasks, void *argument),
    void *argument);
/* Any thread: called before new work; 0 at once, unless a lossless subscriber cannot keep up. */
DET_MUST_CHECK int det_tasks_wait_for_subscribers(
    struct det_tasks *tasks, bool may_wait, struct det_error *reterr);
/* Called by the bus: the subscribers have caught up. */
void det_tasks_relieved(void *argument);
/* A posted call, in separate memory that `run` frees. */
struct det_posted_call {
    struct det_post post;
    struct det_tasks *tasks;
    void (*run)(struct det_tasks *tasks, struct det_posted_call *call);
};
/* Any thread: `run` is called on the loop later. DET_ERR_BUSY: the intake is full, nothing was
 * done. */
DET_MUST_CHECK int det_tasks_post(struct det_tasks *tasks, struct det_posted_call *call);
/* Any thread: runs the call if the loop is available without a wait; false: `run` was not called.
 * Messages that it has posted run here, too, without the thread of the loop. */
DET_MUST_CHECK bool det_tasks_try(
    struct det_tasks *tasks, int (*run)(struct det_tasks *tasks, void *argument), void *argument,
    int *ret);
/* A posted add or submission: its copies, and the receiver of the answer. */
struct det_posted_task {
    struct det_posted_call call;
    struct det_arena arena;
    struct det_task_spec spec;
    const char *slot; /* NULL: none, or the task's own */
    int admission;
    struct det_answer answer; /* without `run`: no receiver */
};
/* Copies and posts. After a failure `release` was called. */
DET_MUST_CHECK int det_tasks_post_task(
    struct det_tasks *tasks, const struct det_task_spec *spec, const char *slot, int admission,
    const struct det_answer *answer,
    void (*run)(struct det_tasks *tasks, struct det_posted_call *call));
/* On the loop, at the end of `run`: gives the answer and frees the call. */
void det_posted_task_end(
    struct det_posted_task *posted, int result, det_task_id id, const struct det_error *error);
/* Any thread: true on the loop's own thread, which must not wait for the loop. */
bool det_tasks_is_waiting_for_itself(const struct det_tasks *tasks);
/* A condition for one waiting thread, under the mutex. NULL without memory: the common
 * condition. */
struct det_signal {
    struct det_condition *condition;
    struct det_signal *next;
};
struct det_signal *det_signal_take(struct det_tasks *tasks);
/* Accepts NULL. */
void det_signal_put(struct det_tasks *tasks, struct det_signal *signal);
struct det_condition *det_signal_condition(struct det_tasks *tasks, struct det_signal *signal);
void det_signals_close(struct det_tasks *tasks);

/* tasks.c */
/* Checks whether the last task is gone, and notifies the waiting threads. */
void det_tasks_check_empty(struct det_tasks *tasks);
/* Any thread: while held, det_tasks_run() continues without registered tasks. After letting go,
 * call det_tasks_nudge(), which waits for a user's loop. */
void det_tasks_keep(struct det_tasks *tasks);
void det_tasks_let_go(struct det_tasks *tasks);
void det_tasks_nudge(struct det_tasks *tasks);
uint64_t det_tasks_chance(struct det_tasks *tasks);
bool det_tasks_is_open(const struct det_tasks *tasks);
det_time det_tasks_wall(struct det_tasks *tasks);
/* Converts a time of the loop to wall time: the same result each time, unless the wall clock was
 * set. */
det_time det_tasks_wall_of(struct det_tasks *tasks, det_time at);
DET_MUST_CHECK int det_tasks_share_policy(
    struct det_tasks *tasks, const struct det_policy *policy, const struct det_policy **ret,
    struct det_error *reterr);
/* Accepts NULL. */
void det_tasks_unshare_policy(struct det_tasks *tasks, const struct det_policy *policy);

/* task_event.c: events about a task, and others */
/* Initializes everything except the reason, of which only the first byte is written. */
void det_task_event_init(
    struct det_task_event *event, const struct det_task *task, enum det_task_event_kind kind);
void det_task_publish(struct det_task *task, enum det_task_event_kind kind);
void det_tasks_publish(struct det_tasks *tasks, struct det_task_event *event);
void det_event_set_text(char *target, size_t size, const char *text);

/* actor.c: events of the actor, sent by other files */
/* The outcome for the end of an attempt. */
enum det_task_outcome det_attempt_outcome(const struct attempt_end *end);
void det_actor_release(struct det_task *task);
void det_actor_hold(struct det_task *task);
void det_actor_grant(struct det_task *task);
void det_actor_restart(struct det_task *task);
void det_actor_cancel(struct det_task *task);
void det_actor_ended(struct det_task *task, const struct attempt_end *end);
/* Not healthy, or not ready in time. */
void det_actor_expire(struct det_task *task, const char *reason);
/* The grace period is over. */
void det_actor_force(struct det_task *task);
/* Ends a held task as failed. */
void det_actor_give_up(struct det_task *task, const char *reason);
const char *det_actor_state(const struct det_task *task);
bool det_actor_is_held(const struct det_task *task);
/* True in the line for a permit. */
bool det_actor_is_waiting(const struct det_task *task);
/* True if an attempt runs and was not asked to stop. */
bool det_actor_is_running(const struct det_task *task);
bool det_actor_has_attempt(const struct det_task *task);
/* True if the attempt was asked to stop for a restart. */
bool det_actor_restarts(const struct det_task *task);
bool det_actor_is_paused(const struct det_task *task);
/* Adds the task to struct det_tasks_counts by its state. */
int det_actor_count(struct det_task *task, void *argument);
DET_MUST_CHECK int det_actor_start(struct det_task *task, struct det_error *reterr);
/* Undoes an unpublished start. */
void det_actor_abandon(struct det_task *task);

/* permit.c */
/* True if it was granted at once. */
bool det_permit_ask(struct det_task *task);
void det_permit_leave(struct det_task *task);
void det_permit_return(struct det_task *task);
void det_permits_grant(struct det_tasks *tasks);
/* Writes what a task in line waits for, and the holders. */
void det_permit_obstacle(const struct det_task *task, char *target, size_t size);

/* attempt.c */
/* An error is the attempt's end, with a reason. */
DET_MUST_CHECK int det_attempt_start(struct det_task *task);
/* Requests the end of the attempt; true: it has ended already, see `task->ended`. */
bool det_attempt_stop(struct det_task *task);
bool det_attempt_force(struct det_task *task);
/* One call of a step: enum det_directive; at its end `task->ended` has the result. */
int det_attempt_step(struct det_task *task);
/* Frees the resources of an ended attempt. */
void det_attempt_close(struct det_task *task);
void det_task_set_reason(struct det_task *task, const char *reason);
int64_t det_attempt_process(const struct det_task *task);

/* plan.c */
bool det_plan_will_retry(const struct det_task *task, bool is_late);
bool det_plan_will_repeat(const struct det_task *task, bool is_late);
DET_MUST_CHECK int det_plan_backoff(struct det_task *task);
/* For an attempt that never began for lack of our own resources: it does not count. */
DET_MUST_CHECK int det_plan_put_off(struct det_task *task);
DET_MUST_CHECK int det_plan_rest(struct det_task *task);
/* Counts an attempt after the first one, by policy or manual. */
void det_plan_count_restart(struct det_task *task);
/* Latest time of the next check of a pause. */
det_time det_plan_check(struct det_task *task);
void det_plan_drop(struct det_task *task);
DET_MUST_CHECK int det_plan_open(
    struct det_task *task, const struct det_schedule *schedule, struct det_error *reterr);
det_time det_plan_next_wall(struct det_task *task);

/* waiter.c */
DET_MUST_CHECK int det_waiter_open(struct det_task *task, struct det_waiter **ret);
/* On the loop: sets a callback instead of waiting. `report` is called on the loop, once, when the
 * task ends, or now if it has ended. The waiter must not be closed before. */
void det_waiter_set_notify(
    struct det_waiter *waiter, void (*report)(void *context, const struct det_task_end *end),
    void *context);
/* Notifies the waiters of the task. */
void det_waiters_notify(struct det_task *task, const struct det_task_end *end);

/* slots.c: notifications from the registry */
/* An owner is gone, or was asked to stop. */
void det_slot_owner_removed(struct det_task *task);
void det_slot_owner_stopping(struct det_task *task);
/* Removes a queued task and reports its end. */
void det_slot_take_out(struct det_task *task);
/* Queued tasks do not start any longer. */
void det_slots_close(struct det_tasks *tasks);
void det_slots_init(struct det_tasks *tasks);
void det_slots_deinit(struct det_tasks *tasks);
const char *det_slot_name(const struct det_slot *slot);

/* task_tree.c: notifications from tasks */
void det_tree_init(struct det_tasks *tasks);
DET_MUST_CHECK int det_tree_open(struct det_tasks *tasks);
void det_tree_close(struct det_tasks *tasks);
/* Its dependencies must exist, and must not depend on it. Its group is set. */
DET_MUST_CHECK int det_tree_join(struct det_task *task, struct det_error *reterr);
/* Harmless for a task that has not joined. */
void det_tree_leave(struct det_task *task);
bool det_tree_allows(const struct det_task *task);
/* Ends the hold; the task starts once everything else permits it. */
void det_tree_resume(struct det_task *task);
/* Describes the cause that holds a task, valid until the next call; NULL: none. */
const char *det_tree_obstacle(const struct det_task *task);
/* The task is held: by the tree, or because the tree does not permit its next attempt. */
void det_tree_held(struct det_task *task);
/* A condition for others has changed: the task runs, is asked to stop, is ready, is healthy. */
void det_tree_changed(struct det_task *task);
/* An attempt has failed and will be repeated. */
void det_tree_attempt_failed(struct det_task *task);
void det_tree_attempt_closed(struct det_task *task);
/* Releases startable tasks; called by settle(). */
void det_tree_settle(struct det_tasks *tasks);
/* Visits all registered tasks in the order of groups and of admission; a negative return value ends
 * the walk. The visitor may end tasks, but must not reap them. */
int det_tree_each_task(
    struct det_tasks *tasks, int (*each)(struct det_task *task, void *argument), void *argument);
const char *det_group_name(const struct group *group);
struct group *det_group_find(struct det_tasks *tasks, const char *name);
/* True if the group stops or has failed: its members are not retried. */
bool det_group_gives_up(const struct group *group);

/* stop_order.c */
/* Asks all tasks to stop, in order: some now, others when those before them have left. */
void det_tree_stop_all(struct det_tasks *tasks);
/* Asks all tasks to stop at once. */
void det_tree_stop_at_once(struct det_tasks *tasks);

/* health_check.c: readiness and health of an attempt */
DET_MUST_CHECK int det_checks_validate(const struct det_task_spec *spec, struct det_error *reterr);
/* Called before the attempt is started; on failure the reason is set. */
DET_MUST_CHECK int det_checks_start(struct det_task *task);
/* The attempt runs: it is ready now, or the first check begins. */
void det_checks_begin(struct det_task *task);
/* The work has reported readiness. */
void det_checks_notified(struct det_task *task);
/* The attempt was asked to stop: no more checks. */
void det_checks_quiet(struct det_task *task);
/* True if the end of the attempt must wait for a check function, which cannot be killed; the actor
 * gets the end when that function has returned. */
bool det_checks_delay(struct det_task *task);
/* True if the attempt has ended and waits for a check. */
bool det_checks_are_last(const struct det_task *task);
void det_checks_stop(struct det_task *task);
/* Closes detached checks; all tasks are gone. */
void det_checks_close(struct det_tasks *tasks);

#endif
