/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* registry.h - what the files of src/task share: a task, the supervisor of all, and the steps by
 * which one hands over to the other. Everything here is for the owner loop, but what says `any
 * thread`.
 *
 *     add, submit                                                       (registry.c, slots.c)
 *        -> struct det_task, its actor in state held                    (actor.c)
 *        -> the tree releases it                                        (tree.c)
 *        -> a permit                                                    (permit.c)
 *        -> an attempt: function, step or process                       (attempt.c)
 *        -> policy: pause, or done                                      (plan.c)
 *        -> done: on the list `ended`; reap() takes it out of the indexes, tells its end, frees its
 *           slot's place, tells the tree                                (registry.c)
 *
 * Invariants
 *   1. A task is in `ids` from the moment its id is known outside until its end is told; in `names`
 *      exactly while its actor is supervised and its end not told.
 *   2. Nothing recurses from task to task: a permit that is given back, an end, a release by the
 *      tree are noted and done by the loop in `settle()`, one after the other.
 *   3. No user code runs between a change of the indexes and the event that tells it. */
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

/* How an attempt came to its end. */
enum attempt_result {
    ATTEMPT_SUCCEEDED,
    ATTEMPT_FAILED,
    ATTEMPT_FATAL,
    ATTEMPT_CANCELLED,
    ATTEMPT_FORCED,
};

struct attempt_end {
    int code; /* the error; 0: none, or it has an exit code */
    int32_t exit_code;
    uint8_t result; /* enum attempt_result */
    uint8_t signal;
    bool has_exit_code;
    bool is_shortage; /* it never began: our own process has no descriptor, process or memory */
};

/* What the work sees. A function writes it on its thread between start and end of its attempt. */
struct det_task_context {
    int32_t exit_code;
    uint8_t is_cancelled; /* atomic */
    bool is_fatal;
    bool has_exit_code;
    bool is_notified; /* det_task_ready() was called */
};

/* A place in a group, of a task or of a group within it. */
struct member {
    struct det_list siblings; /* in the order added */
    uint64_t order;           /* of that, from 1 */
    bool is_group;
};

/* What an attempt calls, or NULL for a process. */
struct task_work {
    union {
        det_task_fn *function;
        det_step_fn *step;
    };
    void *argument;
    void (*release)(void *argument);
};

/* Of the loop's clock. */
struct task_times {
    det_time since;      /* in this state */
    det_time started_at; /* the last attempt */
    det_time deadline;   /* of the attempt, of a stop, of a pause; DET_NEVER: none */
    det_time delay;      /* the last one of this streak */
};

/* The attempts of a task, and what they have come to. */
struct task_attempts {
    struct attempt_end ended;
    struct attempt_end last; /* of the last attempt that has ended, where `has_last` */
    uint32_t number, failures, restarts;
    uint8_t outcome; /* enum det_task_outcome, once it is known */
    uint8_t rejection;
    bool has_succeeded : 1; /* one of them */
    bool is_restarting : 1; /* the next one is a restart, not a run of the schedule */
    bool is_stopped : 1;    /* it has ended after it was asked to stop */
    bool has_last : 1;
    bool is_last : 1;      /* none follows the one that runs */
    bool is_unhealthy : 1; /* it is ended because of its checks */
    bool has_stepped : 1;  /* its step has come to its end, and that is still to be published */
};

struct det_task {
    struct det_component component;
    struct det_id_node node;
    struct det_tasks *tasks;
    struct det_task_context context;
    const struct det_policy *policy; /* of `tasks`, shared */
    struct task_work work;
    struct task_extras *extras; /* what few tasks have; NULL: nothing of it */
    struct attempt *attempt;    /* a function or a process that runs; NULL: none, or a step */
    struct det_list line;       /* of those that wait for a permit; of the ended */
    struct det_list turn;  /* of those that may have become startable; of those to be stopped */
    struct member member;  /* in its group */
    struct det_list place; /* among the owners of its slot, or in its queue */
    struct group *group;   /* never NULL: the root, if it has no other */
    struct anchor *anchor; /* NULL: nobody depends on it */
    struct det_slot *slot; /* NULL: none */
    struct det_waiter *waiters;
    char *reason; /* of the last failure; NULL: none */
    struct task_times times;
    struct task_attempts attempts;
    uint32_t ticket;  /* in the line for a permit */
    uint8_t kind;     /* enum task_kind */
    uint8_t standing; /* a bit for each enum det_condition_kind that is so */
    uint8_t wishes;   /* what a step that runs now has asked for its own task; see actor.c */
    bool has_permit : 1;
    bool is_registered : 1; /* in `names` */
    bool is_removing : 1;   /* a removal was asked for */
    bool is_stopping : 1;   /* its slot knows that it was told to stop */
    bool is_ready : 1;
    bool is_healthy : 1;
    bool is_stuck : 1;
    bool is_on_hold : 1; /* by hand, until it is told to restart */
    const char *name;    /* behind this struct */
};

/* What few tasks have; one block of an arena with all its strings. */
struct task_extras {
    struct det_arena arena;
    const struct det_process_spec *process;
    const struct det_dependency *depends_on;
    size_t depends_on_count;
    const struct det_readiness *readiness; /* NULL: ready when started, no checks */
    struct plan *plan;                     /* its schedule; NULL: none */
    struct needs *needs;                   /* what depends_on means; NULL: not in the tree */
    struct checks *checks;                 /* while it runs; NULL: none */
};

/* The policies in use; few, for most tasks say nothing. */
struct shared_policy {
    struct det_policy policy; /* first: a task has a pointer to it */
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

/* Groups, and who depends on whom. */
struct task_tree {
    struct group *root;
    struct det_list groups; /* all but the root, parents first */
    struct det_map group_names;
    struct det_map anchors;    /* names that somebody depends on */
    struct det_list startable; /* by `turn`: to be looked at */
    uint64_t walks;            /* along dependencies, so far */
    bool is_stopping;          /* all of them, in order */
};

/* Checks that are functions. */
struct check_threads {
    struct det_pool *pool; /* NULL: none was needed yet */
    uint32_t pool_size;    /* threads that it has */
    uint32_t running;      /* on the pool or waiting for one of its threads */
    struct det_list loose; /* whose attempt has ended before them */
};

/* The limit of concurrent attempts, and that of the threads of functions. */
struct permits {
    struct det_list line, pool_line;
    uint32_t used, pool_used;
    uint32_t pool_size;     /* threads that the pool has */
    bool is_pool_exhausted; /* a function waits for one, and that was published */
    uint32_t next_ticket;
};

/* What was noted and is done one after the other: invariant 2. */
struct settling {
    struct det_list ended;    /* by `line`: done, and to be reaped */
    struct det_list rejected; /* by `line`: left their queue, and to be published */
    struct det_post post;
    bool is_running, is_wanted, is_posted;
};

/* The wall clock, as the loop has read it last. */
struct wall_clock {
    det_time time, read_at;
    det_time apart; /* from the loop's clock to the wall clock */
};

struct tasks_shutdown {
    struct det_timer deadline;
    uint32_t stubborn_count;
    char stubborn[DET_TASK_REASON_MAX + 1]; /* names of those that did not stop in time */
};

/* The step that runs now. */
struct running_step {
    const struct det_task *task;           /* NULL: none runs */
    det_time wake_at;                      /* when it wants to be called again at the latest */
    char failure[DET_TASK_REASON_MAX + 1]; /* why it fails */
};

/* Calls from other threads; under the mutex of the status, but `posted`. */
struct tasks_intake {
    struct det_condition *has_room;
    struct det_signal *signals; /* that nobody uses now */
    uint32_t count, waiters;
    atomic_uint posted; /* calls without an answer that have not run */
};

/* What any thread may ask, under its mutex. */
struct tasks_status {
    struct det_mutex *mutex;
    struct det_condition *changed; /* any of the facts below, or a function is cancelled */
    uint32_t holds;                /* queues elsewhere from which something may still come */
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
    struct det_loop *own_loop; /* NULL: the user's */
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
    uint64_t chance; /* the state of a sequence of random numbers */
    struct wall_clock wall;
    struct tasks_shutdown shutdown;
    struct det_tasks_counts counts;
    struct running_step step;
    char obstacle[DET_TASK_REASON_MAX + 1]; /* what the task that was asked about waits for */
    struct tasks_status status;
    struct tasks_intake intake;
};

/* registry.c */
DET_MUST_CHECK int det_task_make(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_task **ret,
    struct det_error *reterr);
/* For one that was never admitted, or after its end was told. */
void det_task_free(struct det_task *task);
/* Admits a made task under its name; it is held until the tree releases it. On failure the task is
 * as it was. The four steps of it, for those who admit several at once: into the index of names,
 * into the tree with an actor, and told to everybody. */
DET_MUST_CHECK int det_task_admit(struct det_task *task, struct det_error *reterr);
DET_MUST_CHECK int det_task_index(struct det_task *task, struct det_error *reterr);
void det_task_unindex(struct det_task *task);
DET_MUST_CHECK int det_task_enter(struct det_task *task, struct det_error *reterr);
void det_task_announce(struct det_task *task);
void det_task_tell_refused(struct det_task *task, enum det_rejection rejection, const char *reason);
enum det_rejection det_rejection_of(int code);
DET_MUST_CHECK int det_name_check(const char *what, const char *name, struct det_error *reterr);
/* Asks for its end; true when this call did it. Takes it out of a queue as well. */
bool det_task_remove(struct det_task *task);
struct det_task *det_task_find(struct det_tasks *tasks, det_task_id id);
/* Does what was noted: ends, permits, releases. Soon, or now when nothing is under way. */
void det_tasks_settle_soon(struct det_tasks *tasks);
void det_tasks_settle(struct det_tasks *tasks);

/* call.c */
/* Any thread: runs `run` as the owner of the loop, and returns its answer. It is short, and runs no
 * code of the user's that counts on the thread of the loop. */
DET_MUST_CHECK int det_tasks_call(
    struct det_tasks *tasks, bool may_wait, int (*run)(struct det_tasks *tasks, void *argument),
    void *argument);
/* Any thread: before new work; 0 at once, unless a lossless subscriber cannot keep up. */
DET_MUST_CHECK int det_tasks_wait_for_subscribers(
    struct det_tasks *tasks, bool may_wait, struct det_error *reterr);
/* The bus: they have caught up. */
void det_tasks_relieved(void *argument);
/* A call that nobody waits for, in memory of its own that `run` frees. */
struct det_posted_call {
    struct det_post post;
    struct det_tasks *tasks;
    void (*run)(struct det_tasks *tasks, struct det_posted_call *call);
};
/* Any thread: `run` is called on the loop, later. DET_ERR_BUSY: the intake is full, nothing was
 * done. */
DET_MUST_CHECK int det_tasks_post(struct det_tasks *tasks, struct det_posted_call *call);
/* Any thread: the same if the loop can be had without a wait; false: `run` was not called. What it
 * has posted runs here too, and does not wait for the thread of the loop. */
DET_MUST_CHECK bool det_tasks_try(
    struct det_tasks *tasks, int (*run)(struct det_tasks *tasks, void *argument), void *argument,
    int *ret);
/* A posted add or submission: the copies that it takes, and who is told. */
struct det_posted_task {
    struct det_posted_call call;
    struct det_arena arena;
    struct det_task_spec spec;
    const char *slot; /* NULL: none, or the task's own */
    int admission;
    struct det_answer answer; /* without `run`: nobody */
};
/* Copies and posts. After a failure `release` was called. */
DET_MUST_CHECK int det_tasks_post_task(
    struct det_tasks *tasks, const struct det_task_spec *spec, const char *slot, int admission,
    const struct det_answer *answer,
    void (*run)(struct det_tasks *tasks, struct det_posted_call *call));
/* On the loop, at the end of `run`: gives the answer and frees it. */
void det_posted_task_end(
    struct det_posted_task *posted, int result, det_task_id id, const struct det_error *error);
/* Any thread: whether it is the loop's own, on which to wait for what the loop does is in vain. */
bool det_tasks_is_waiting_for_itself(const struct det_tasks *tasks);
/* A condition for one who waits, under the mutex. NULL, for want of memory: that of all. */
struct det_signal {
    struct det_condition *condition;
    struct det_signal *next;
};
struct det_signal *det_signal_take(struct det_tasks *tasks);
/* Takes NULL. */
void det_signal_put(struct det_tasks *tasks, struct det_signal *signal);
struct det_condition *det_signal_condition(struct det_tasks *tasks, struct det_signal *signal);
void det_signals_close(struct det_tasks *tasks);

/* tasks.c */
/* Whether the last one is gone; then those who wait for that are told. */
void det_tasks_look_empty(struct det_tasks *tasks);
/* Any thread: while it is kept det_tasks_run() goes on, though nothing is registered. Who lets it
 * go nudges it then, which waits for the loop if that is the user's. */
void det_tasks_keep(struct det_tasks *tasks);
void det_tasks_let_go(struct det_tasks *tasks);
void det_tasks_nudge(struct det_tasks *tasks);
uint64_t det_tasks_chance(struct det_tasks *tasks);
bool det_tasks_is_open(const struct det_tasks *tasks);
det_time det_tasks_wall(struct det_tasks *tasks);
/* A time of the loop as wall time: the same whenever it is asked, unless the wall clock was set. */
det_time det_tasks_wall_of(struct det_tasks *tasks, det_time at);
DET_MUST_CHECK int det_tasks_share_policy(
    struct det_tasks *tasks, const struct det_policy *policy, const struct det_policy **ret,
    struct det_error *reterr);
/* Takes NULL. */
void det_tasks_unshare_policy(struct det_tasks *tasks, const struct det_policy *policy);

/* task_event.c: events about a task, and the rest */
/* All but the reason, of which only the first byte is written. */
void det_task_event_init(
    struct det_task_event *event, const struct det_task *task, enum det_task_event_kind kind);
void det_task_tell(struct det_task *task, enum det_task_event_kind kind);
void det_tasks_publish(struct det_tasks *tasks, struct det_task_event *event);
void det_event_set_text(char *target, size_t size, const char *text);

/* actor.c: events of the actor, from outside of it */
/* What the end of an attempt is as an outcome. */
enum det_task_outcome det_attempt_outcome(const struct attempt_end *end);
void det_actor_release(struct det_task *task);
void det_actor_hold(struct det_task *task);
void det_actor_grant(struct det_task *task);
void det_actor_restart(struct det_task *task);
void det_actor_cancel(struct det_task *task);
void det_actor_ended(struct det_task *task, const struct attempt_end *end);
/* Not healthy, or not ready in time. */
void det_actor_expire(struct det_task *task, const char *reason);
/* No patience any more. */
void det_actor_force(struct det_task *task);
/* A held one ends as failed. */
void det_actor_give_up(struct det_task *task, const char *reason);
const char *det_actor_state(const struct det_task *task);
bool det_actor_is_held(const struct det_task *task);
/* In line for a permit. */
bool det_actor_is_waiting(const struct det_task *task);
/* An attempt runs, and was not told to stop. */
bool det_actor_is_running(const struct det_task *task);
bool det_actor_has_attempt(const struct det_task *task);
/* The attempt was told to stop, and not because it is the last. */
bool det_actor_begins_anew(const struct det_task *task);
bool det_actor_is_paused(const struct det_task *task);
/* Adds it to struct det_tasks_counts by its state. */
int det_actor_count(struct det_task *task, void *argument);
DET_MUST_CHECK int det_actor_start(struct det_task *task, struct det_error *reterr);
/* Takes back a start that nobody has heard of. */
void det_actor_abandon(struct det_task *task);

/* permit.c */
/* True when it was granted at once. */
bool det_permit_ask(struct det_task *task);
void det_permit_leave(struct det_task *task);
void det_permit_return(struct det_task *task);
void det_permits_grant(struct det_tasks *tasks);
/* What one who waits in line waits for, and who has it. */
void det_permit_obstacle(const struct det_task *task, char *target, size_t size);

/* attempt.c */
/* An error is the attempt's end, with a reason. */
DET_MUST_CHECK int det_attempt_start(struct det_task *task);
/* Asks for its end; true: it has ended already, as `task->ended` says. */
bool det_attempt_stop(struct det_task *task);
bool det_attempt_force(struct det_task *task);
/* One call of a step: enum det_directive; at its end `task->ended` says how. */
int det_attempt_step(struct det_task *task);
/* Frees what it took; its end is known. */
void det_attempt_close(struct det_task *task);
void det_task_set_reason(struct det_task *task, const char *reason);
int64_t det_attempt_process(const struct det_task *task);

/* plan.c */
bool det_plan_will_retry(const struct det_task *task, bool is_late);
bool det_plan_will_repeat(const struct det_task *task, bool is_late);
DET_MUST_CHECK int det_plan_backoff(struct det_task *task);
/* Of an attempt that never began for want of something of our own: it counts for nothing. */
DET_MUST_CHECK int det_plan_put_off(struct det_task *task);
DET_MUST_CHECK int det_plan_rest(struct det_task *task);
/* An attempt that follows another one, by a policy or by hand. */
void det_plan_count_restart(struct det_task *task);
/* When to look at a pause again at the latest. */
det_time det_plan_look(struct det_task *task);
void det_plan_drop(struct det_task *task);
DET_MUST_CHECK int det_plan_open(
    struct det_task *task, const struct det_schedule *schedule, struct det_error *reterr);
det_time det_plan_next_wall(struct det_task *task);

/* waiter.c */
DET_MUST_CHECK int det_waiter_open(struct det_task *task, struct det_waiter **ret);
/* On the loop: nobody waits for it, but `tell` is called on the loop, once, when the task ends, and
 * now if it has ended. The waiter must not be closed before. */
void det_waiter_set_tell(
    struct det_waiter *waiter, void (*tell)(void *context, const struct det_task_end *end),
    void *context);
/* Those of the task are told. */
void det_waiters_tell(struct det_task *task, const struct det_task_end *end);

/* slots.c: what the registry tells slots */
/* An owner is gone, or was told to stop. */
void det_slot_owner_removed(struct det_task *task);
void det_slot_owner_stopping(struct det_task *task);
/* Takes a queued one out; its end is told. */
void det_slot_take_out(struct det_task *task);
/* Nothing queued starts any more. */
void det_slots_close(struct det_tasks *tasks);
void det_slots_init(struct det_tasks *tasks);
void det_slots_deinit(struct det_tasks *tasks);
const char *det_slot_name(const struct det_slot *slot);

/* tree.c: what tasks tell the tree */
void det_tree_init(struct det_tasks *tasks);
DET_MUST_CHECK int det_tree_open(struct det_tasks *tasks);
void det_tree_close(struct det_tasks *tasks);
/* All it depends on must be there, and not depend on it. Its group is set. */
DET_MUST_CHECK int det_tree_join(struct det_task *task, struct det_error *reterr);
/* Harmless for one that has not joined. */
void det_tree_leave(struct det_task *task);
bool det_tree_allows(const struct det_task *task);
/* It is not on hold any more; once all else allows it, it begins at once. */
void det_tree_resume(struct det_task *task);
/* What a held one waits for, until the next call; NULL: nothing. */
const char *det_tree_obstacle(const struct det_task *task);
/* It was held: by the tree, or because the tree does not allow its next attempt. */
void det_tree_held(struct det_task *task);
/* Whatever others may wait for has changed: it runs, is told to stop, is ready, is healthy. */
void det_tree_changed(struct det_task *task);
/* An attempt has failed and will be tried again. */
void det_tree_attempt_failed(struct det_task *task);
void det_tree_attempt_closed(struct det_task *task);
/* Releases what may go; from settle(). */
void det_tree_settle(struct det_tasks *tasks);
/* All that are registered, in the order of groups and of admission; a negative answer ends it. The
 * walk may end tasks, but must not reap them. */
int det_tree_each_task(
    struct det_tasks *tasks, int (*each)(struct det_task *task, void *argument), void *argument);
const char *det_group_name(const struct group *group);
struct group *det_group_find(struct det_tasks *tasks, const char *name);
/* It stops or has failed: no member of it will be tried again by itself. */
bool det_group_gives_up(const struct group *group);

/* stop_order.c */
/* Asks all to stop, in order: some now, others when those before them have left. */
void det_tree_stop_all(struct det_tasks *tasks);
/* The same without any order. */
void det_tree_stop_at_once(struct det_tasks *tasks);

/* check.c: readiness and health of an attempt */
DET_MUST_CHECK int det_checks_validate(const struct det_task_spec *spec, struct det_error *reterr);
/* Before the attempt is started; on failure the reason says why. */
DET_MUST_CHECK int det_checks_start(struct det_task *task);
/* The attempt runs: it is ready now, or the first check begins. */
void det_checks_begin(struct det_task *task);
/* The work says that it is ready. */
void det_checks_notified(struct det_task *task);
/* The attempt was told to stop: no more checks. */
void det_checks_quiet(struct det_task *task);
/* Whether the end of the attempt has to wait for a check, a function that cannot be killed; then
 * the actor is told of the end once that has returned. */
bool det_checks_delay(struct det_task *task);
/* The attempt has ended, and waits for a check. */
bool det_checks_are_last(const struct det_task *task);
void det_checks_stop(struct det_task *task);
/* Those that are left behind; all tasks are gone. */
void det_checks_close(struct det_tasks *tasks);

#endif
