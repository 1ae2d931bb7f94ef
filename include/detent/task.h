/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task.h - supervises tasks: restart, backoff, limits, slots, trees.
 *
 * A task is one of three kinds with one lifecycle:
 *
 *     function   runs on a pool thread and may block; stops when it checks its context
 *     step       is called by the loop repeatedly, and never blocks
 *     process    a separate program; stopped by SIGTERM, then SIGKILL to its whole group
 *
 *              add                              start           end of the attempt
 *     (spec) ------> held ------> waiting ----------> running ------------------+
 *              depends_on,  \  a permit of            | timeout, cancel         |
 *              schedule      \ concurrent_max         v                         v
 *                             \               stopping -> (stuck)            policy
 *                              \                                      /    |
 *                               +---<--- backoff <---- failed --------     |        done
 *                               +---<--- resting <---- always, schedule ---+
 *
 * A crash of a process is contained; a crash of a function or a step ends your program. A function
 * that ignores its cancellation is reported as stuck and keeps its name; no attempt of a task ever
 * starts while another attempt lives.
 *
 * One loop owns registry, slots, tree and limits; one thread at a time has the loop. A call on that
 * thread runs at once. A call from another thread runs the loop itself if the supervisor's own
 * thread sleeps. If that thread is awake, or the loop is yours, the call is queued and waits for
 * the answer; it waits for room in the queue unless its name contains `try`. A thread that waits
 * for an end (det_waiter_wait(), det_tasks_stop()) may run steps and callbacks of the sleeping
 * loop: set `loop` if they depend on their thread, and hold no lock that they take.
 *
 * Tasks are identified by id, never by name: ids are not reused. A name belongs to one task from
 * its admission until it is fully removed. */
#ifndef DETENT_TASK_H
#define DETENT_TASK_H

#include <detent/bus.h>
#include <detent/loop.h>
#include <detent/policy.h>
#include <detent/schedule.h>

DET_BEGIN

struct det_tasks;
struct det_task_context;
struct det_waiter;

typedef uint64_t det_task_id; /* from 1; 0: no task */

/* The work of a task. */

/* A task function, called once per attempt. 0: succeeded. DET_ERR_CANCELLED: stopped as
 * requested. Another negative error: failed; det_task_fail() and det_task_fatal() add a text and
 * an exit code. */
typedef int det_task_fn(struct det_task_context *context, void *argument);

/* Return values of a step, beside the errors above. */
enum det_step_result {
    DET_STEP_DONE = 0,  /* succeeded */
    DET_STEP_AGAIN = 1, /* call again, after a turn of the others */
    DET_STEP_WAIT = 2,  /* call again after det_tasks_wake(), det_task_wake_at() or a cancel */
};
typedef int det_step_fn(struct det_task_context *context, void *argument);

enum det_stream {
    DET_STREAM_OUTPUT,
    DET_STREAM_ERROR,
};

/* A line of a process's output, without its newline; on the loop. Lines longer than DET_LINE_MAX
 * come in pieces, all but the last with `is_cut`. `dropped` is the number of bytes dropped since
 * the last line because the process exceeded `bytes_per_second_max`. A line interrupted by this is
 * cut; at the end of a stream an empty cut line may only report the drop. */
#define DET_LINE_MAX 4096
struct det_line {
    det_task_id id;
    const char *name;
    enum det_stream stream;
    const char *text; /* borrowed; size bytes, any bytes */
    size_t size;
    bool is_cut;
    uint64_t dropped;
};

/* A process to run. Strings and lists are copied when the task is added. */
struct det_process_spec {
    const char *const *argv;        /* NULL-terminated; not passed to a shell; argv[0] is searched
                                     * in PATH */
    const char *const *environment; /* NULL-terminated "NAME=value"; NULL: the caller's own */
    const char *folder;             /* NULL: the caller's own */
    const char *user;               /* NULL: the caller's; another user needs the privilege to
                                     * change to it */
    int stop_signal;                /* 0: SIGTERM */
    bool has_notify;                /* set NOTIFY_SOCKET and receive messages: READY=1,
                                     * STATUS=... */
    bool ends_with_us;              /* kill the process when ours ends for any reason; in the
                                     * world of a guard (driver/process_guard.h) also kill its
                                     * descendants */
    uint64_t bytes_per_second_max;  /* limit of its output; 0: 16 MiB; further lines are dropped and
                                     * counted, at most once a second */
    const struct det_process_limit *limits; /* may be NULL */
    size_t limit_count;
    const int *success_codes; /* exit codes of success beside 0 */
    size_t success_code_count;
    const int *fatal_codes; /* exit codes that forbid a retry */
    size_t fatal_code_count;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* The tree of groups. */

enum det_strategy {
    DET_STRATEGY_ONE_FOR_ONE,  /* restart only the failed member */
    DET_STRATEGY_ALL_FOR_ONE,  /* stop all members in reverse order and start them again */
    DET_STRATEGY_REST_FOR_ONE, /* stop and restart the failed member and those added after it */
};

/* A group counts restarts. When it exceeds its intensity, or a member fails permanently, the group
 * fails: its members are stopped. The parent group treats this as the failure of a member, and
 * restarts the group as a whole after the backoff of the default policy. A failed group at the top
 * stays stopped, its tasks end as failed, and it accepts no new ones (DET_ERR_CLOSED) until
 * det_tasks_group_start(). */
#define DET_TASK_GROUP_DEPTH_MAX 16 /* nesting of groups; one more is DET_ERR_LIMIT */
struct det_task_group_spec {
    const char *name;   /* unique among groups and tasks */
    const char *parent; /* NULL: at the top */
    enum det_strategy strategy;
    struct det_intensity intensity;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

enum det_condition_kind {
    DET_WHEN_RUNNING,   /* an attempt has started */
    DET_WHEN_HEALTHY,   /* the task is ready, and its last health check, if any, passed */
    DET_WHEN_COMPLETED, /* the task has succeeded */
};
/* A condition for starting a task. It is checked at the start only: a running task continues when
 * its dependency restarts. A task that has completed permanently meets every condition, and is
 * remembered while another task depends on it. */
struct det_dependency {
    const char *name; /* name of a task, or of a group: all of its members */
    enum det_condition_kind when;
};

/* How a task becomes ready. */
enum det_ready_by {
    DET_READY_WHEN_STARTED, /* at once */
    DET_READY_BY_NOTIFY,    /* by det_task_ready(), or READY=1 of a process */
    DET_READY_BY_CHECK,     /* when `check` passes for the first time */
};
/* A check: a process that exits with 0, or a function that returns 0, on separate threads. Until
 * the task is ready only `within` limits it; failed checks do not count. A function may read the
 * context of the task, but must not report through it. The end of the attempt cancels that context
 * and waits for the function; a process is killed with the attempt. Events: TASK_READY when the
 * task is ready or healthy again, TASK_UNHEALTHY when a check of a ready task fails,
 * CHECK_POSTPONED when this process lacks resources to start a check, which then does not count. */
struct det_check {
    const char *const *argv; /* NULL: none, or `run` */
    int (*run)(struct det_task_context *context, void *argument);
    det_time every;      /* 0: 1 s until it is ready, then 10 s */
    det_time timeout;    /* limit of one check; 0: 5 s */
    uint32_t fails_max;  /* consecutive failed checks that fail the attempt; 0: 3 */
    bool only_readiness; /* end the checks when the task is ready */
};
struct det_readiness {
    enum det_ready_by by;
    det_time within; /* time to become ready, else the attempt fails; 0: 60 s; DET_NEVER */
    struct det_check check;
};

/* A task. Exactly one of function, step and process is set. */
struct det_task_spec {
    const char *name; /* 1 to DET_TASK_NAME_MAX bytes of UTF-8 without control characters */
    det_task_fn *function;
    det_step_fn *step;
    const struct det_process_spec *process;
    void *argument;
    /* Called once: when the task is removed, before its waiters return; or by the call that failed
     * to add the task, whatever the error. */
    void (*release)(void *argument);
    struct det_policy policy;
    struct det_schedule schedule;
    const char *group; /* NULL: at the top */
    const struct det_dependency *depends_on;
    size_t depends_on_count;
    struct det_readiness readiness;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* The end of a task. */
struct det_task_end {
    det_task_id id;
    enum det_task_outcome outcome;
    enum det_rejection rejection;
    uint32_t attempts;
    uint32_t restarts; /* attempts after the first one, not counting those of a schedule */
    int32_t exit_code;
    bool has_exit_code;
    int signal;
    char reason[DET_TASK_REASON_MAX + 1];
};

/* For the work itself: a function on its thread, a step on the loop. */

/* The task's name, id, number of this attempt (from 1), and world. */
DET_API const char *det_task_name(const struct det_task_context *context);
DET_API det_task_id det_task_id_of(const struct det_task_context *context);
DET_API uint32_t det_task_attempt(const struct det_task_context *context);
DET_API struct det_world *det_task_world(const struct det_task_context *context);
/* True if the task must stop: after a cancel, a timeout or a shutdown. */
DET_API bool det_task_is_cancelled(const struct det_task_context *context);
/* Functions: blocks until the monotonic deadline (0), or until the task is cancelled
 * (DET_ERR_CANCELLED, even if it was cancelled before). */
DET_API int det_task_wait(struct det_task_context *context, det_time deadline) DET_MUST_CHECK;
/* Functions: calls `run`, or returns DET_ERR_CANCELLED if the task is already cancelled. */
DET_API int det_task_unless_cancelled(
    struct det_task_context *context, det_task_fn *run, void *argument) DET_MUST_CHECK;
/* Sets the reason of the failure; returns `code`, which is negative: `return det_task_fail(context,
 * ...)`. */
DET_API int det_task_fail(struct det_task_context *context, int code, const char *format, ...)
    DET_PRINTF(3, 4);
/* Like det_task_fail(), without a further attempt. */
DET_API int det_task_fatal(struct det_task_context *context, int code, const char *format, ...)
    DET_PRINTF(3, 4);
DET_API void det_task_set_exit_code(struct det_task_context *context, int32_t code);
/* Reports readiness, for DET_READY_BY_NOTIFY. */
DET_API void det_task_ready(struct det_task_context *context);
/* Steps: latest time (monotonic) of the next call after DET_STEP_WAIT. */
DET_API void det_task_wake_at(struct det_task_context *context, det_time at);

/* A part of the work that can be cancelled separately: a cancel of the parent reaches the scope,
 * its own cancel does not reach the parent. In your memory; zero it, then set a parent of either
 * kind, or none. */
struct det_scope {
    const struct det_task_context *context;
    const struct det_scope *parent;
    struct {
        uint8_t is_cancelled; /* atomic */
    } internal;               /* do not use */
};
DET_API void det_scope_cancel(struct det_scope *scope);
DET_API bool det_scope_is_cancelled(const struct det_scope *scope);

/* The supervisor of tasks. */

/* Defaults of zero options. */
#define DET_POOL_THREADS   256
#define DET_TASKS_MAX      1000000
#define DET_INTAKE_MAX     16384
#define DET_SLOT_DEPTH_MAX 100
#define DET_BUS_CAPACITY   16384
struct det_tasks_options {
    struct det_world *world; /* NULL: the real one, or that of `loop` */
    const struct det_allocator *allocator;
    struct det_loop *loop;     /* your own loop; NULL: the supervisor starts a thread */
    uint32_t pool_threads;     /* functions that run at once; 0: DET_POOL_THREADS. Threads are
                                * started on demand and stay; a task that waits for one reports it
                                * (POOL_EXHAUSTED, waits_for) */
    uint32_t concurrent_max;   /* attempts at once, first come first served; 0: no limit */
    uint32_t tasks_max;        /* registered and queued tasks; 0: DET_TASKS_MAX */
    uint32_t intake_max;       /* waiting and posted calls from other threads; 0: DET_INTAKE_MAX */
    uint32_t slot_depth_max;   /* default depth of a slot's queue; 0: DET_SLOT_DEPTH_MAX */
    uint32_t bus_capacity;     /* events kept in the ring, 400 bytes each; 0: DET_BUS_CAPACITY; at
                                  most 1,048,576; rounded up to a power of two */
    det_time grace;            /* time limit of a shutdown; 0: 60 s; negative: kill at once */
    det_time subscriber_grace; /* time to drain subscribers at the end; 0: 5 s; negative: drop their
                                * events */
    struct det_policy defaults;
    /* Output of processes, on the loop; NULL: discarded. */
    void (*on_line)(void *user, const struct det_line *line);
    /* Called on the loop after a task was removed: its name is free, its end is known. May use the
     * tasks. */
    void (*on_end)(void *user, const struct det_task_end *end);
    /* Called on the loop when no registered or queued task is left. */
    void (*on_empty)(void *user);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Opens a supervisor of tasks and starts its thread, unless options.loop is set. `options` NULL:
 * all zero. DET_ERR_INVALID: an option, with the reason; DET_ERR_NO_MEMORY. */
DET_API int det_tasks_open(
    const struct det_tasks_options *options, struct det_tasks **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Shuts down if necessary, then waits for stuck functions without a limit. Not from a callback;
 * with your own loop, on the thread that turns it. */
DET_API void det_tasks_close(struct det_tasks *tasks);
DET_SCOPED_CLOSE(tasks)
DET_API struct det_bus *det_tasks_bus(struct det_tasks *tasks);

/* Admits a task, which starts asynchronously. DET_ERR_EXISTS: the name is taken; DET_ERR_CLOSED:
 * shutting down; DET_ERR_LIMIT: too many tasks or calls; DET_ERR_NOT_FOUND: a group or dependency;
 * DET_ERR_INVALID: the spec, with the reason; DET_ERR_BUSY: on the loop, and a lossless subscriber
 * cannot keep up (bus.h). `ret_waiter` (may be NULL) gets a waiter for the end of the task. */
DET_API int det_tasks_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_waiter **ret_waiter,
    det_task_id *ret, struct det_error *reterr) DET_MUST_CHECK;
/* Like det_tasks_add(), but DET_ERR_BUSY at once if the intake is full; then no event is
 * published. */
DET_API int det_tasks_try_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_waiter **ret_waiter,
    det_task_id *ret, struct det_error *reterr) DET_MUST_CHECK;
/* Admits all tasks or none. They may depend on each other. `ret` (may be NULL) gets `count` ids. A
 * count of 0 returns 0, even while shutting down. */
DET_API int det_tasks_add_batch(
    struct det_tasks *tasks, const struct det_task_spec *specs, size_t count, det_task_id *ret,
    struct det_error *reterr) DET_MUST_CHECK;
DET_API int det_tasks_add_group(
    struct det_tasks *tasks, const struct det_task_group_spec *spec,
    struct det_error *reterr) DET_MUST_CHECK;

/* Non-blocking variants for threads that must not wait; the answer comes later or not at all. The
 * spec is copied except for its `argument`. Calls of a thread are executed in order, posted or not,
 * and many of them wake the loop once. 0: the call will be executed. DET_ERR_BUSY: intake_max calls
 * are under way, or a lossless subscriber cannot keep up; DET_ERR_NO_MEMORY: the call is dropped,
 * and `release` was called. The answer is given on the loop, once: 0 with the id, or an error of
 * det_tasks_add(). Without an answer callback a failure is published: TASK_ADD_FAILED with the
 * reason. */
struct det_answer {
    void (*run)(void *user, int result, det_task_id id, const struct det_error *error);
    void *user;
};
DET_API int det_tasks_post_add(
    struct det_tasks *tasks, const struct det_task_spec *spec,
    const struct det_answer *answer) DET_MUST_CHECK;
/* Non-blocking variant of det_tasks_remove(). Does not report whether the task existed. */
DET_API int det_tasks_post_remove(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;

/* Stops a task, or removes it from its slot's queue; does not wait. 1: this call did it; 0: no such
 * task, or it is stopping already. */
DET_API int det_tasks_remove(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Removes a task and waits for its end: 1 and 0 as det_tasks_remove(), or DET_ERR_TIMEOUT at the
 * (monotonic) deadline; the removal continues. Not on the loop. */
DET_API int det_tasks_stop(struct det_tasks *tasks, det_task_id id, det_time deadline)
    DET_MUST_CHECK;
/* Lets the running attempt finish and starts no further one; a task that waits, backs off or rests
 * ends at once. 1; 0: no such task, or it is stopping already. */
DET_API int det_tasks_drain(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Ends the running attempt, if any, and starts the next one at once; the streak of failures is
 * reset. A task that waits, backs off, rests or is on hold also starts at once. 1; 0: no such
 * task. */
DET_API int det_tasks_restart(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Stops a task without removing it: it keeps its place in its group and for dependent tasks. Only
 * det_tasks_restart() releases it. 1; 0: no such task, or it is on hold already, queued, or about
 * to end. Does not wait. */
DET_API int det_tasks_hold(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Calls a waiting step again. Does not wait. 1; 0: no such task. */
DET_API int det_tasks_wake(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* The id of a named task; 0: none. */
DET_API det_task_id det_tasks_find(struct det_tasks *tasks, const char *name);
/* Stops a group, members in reverse order; it stays, and det_tasks_group_start() starts it again.
 * 1; 0: no such group. Does not wait. */
DET_API int det_tasks_group_cancel(struct det_tasks *tasks, const char *group) DET_MUST_CHECK;
DET_API int det_tasks_group_start(struct det_tasks *tasks, const char *group) DET_MUST_CHECK;

/* Opens a waiter for the end of an existing task. DET_ERR_NOT_FOUND. */
DET_API int det_tasks_watch(struct det_tasks *tasks, det_task_id id, struct det_waiter **ret)
    DET_MUST_CHECK;
/* Waits for the end of the task; afterwards its name is free. DET_ERR_TIMEOUT at the (monotonic)
 * deadline. Not on the loop, unless the task has ended. */
DET_API int det_waiter_wait(struct det_waiter *waiter, det_time deadline, struct det_task_end *ret)
    DET_MUST_CHECK;
/* Closes a waiter, at any time before the tasks are closed; no effect on the task. */
DET_API void det_waiter_close(struct det_waiter *waiter);
DET_SCOPED_CLOSE(waiter)

/* Inspection. Texts are borrowed for the call of `each`, which runs on the loop and must not change
 * the tasks; a negative return value ends the walk and is returned. */
struct det_task_info {
    det_task_id id;
    const char *name, *group, *slot; /* NULL: none */
    const char *kind;                /* "function", "step", "process" */
    const char *state;               /* state of the task's machine: "running", "backoff", ... */
    const char *waits_for;           /* held: the dependency; waiting: the permit or thread, with
                                      * its holders; NULL: none */
    const char *reason;              /* reason of the last failure; "": none */
    bool is_ready, is_healthy, is_removing;
    bool is_on_hold;            /* stopped by det_tasks_hold() */
    uint32_t attempt, failures; /* failures: consecutive ones */
    uint64_t restarts;          /* since the task was added, not counting runs of a schedule */
    det_time since;             /* wall time at which this state began */
    det_time next_at;           /* wall time of the next attempt, in backoff and resting; 0:
                                 * unknown */
    int64_t process;            /* process id; 0: no process */
    struct det_task_end last;   /* outcome of the last finished attempt; NONE: no attempt has
                                 * finished */
};
/* Visits all tasks by id. */
DET_API int det_tasks_each(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_task_info *info),
    void *user) DET_MUST_CHECK;
DET_API int det_tasks_get(
    struct det_tasks *tasks, det_task_id id,
    int (*each)(void *user, const struct det_task_info *info), void *user) DET_MUST_CHECK;

/* 1: the dependency is met now; 0: it is not, or no such task or group exists. */
DET_API int det_tasks_is_met(struct det_tasks *tasks, const struct det_dependency *dependency)
    DET_MUST_CHECK;

struct det_task_group_info {
    const char *name, *parent; /* NULL: at the top */
    enum det_strategy strategy;
    const char *state;
    uint32_t members, restarts, restarts_max; /* restarts: within the window */
    det_time window;
    const char *reason;
};
/* Visits all groups, parents before children, in the order added. */
DET_API int det_tasks_each_group(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_task_group_info *info),
    void *user) DET_MUST_CHECK;

struct det_tasks_counts {
    uint64_t registered, queued, running, waiting, backing_off, resting, held, stuck;
    uint64_t added, finished, restarts, rejected; /* since open */
    uint64_t events_lost;                         /* by all subscribers of the bus, since open */
};
/* Number of tasks by condition now, and counts since open. Any thread. */
DET_API struct det_tasks_counts det_tasks_counts(struct det_tasks *tasks);

/* Waits until no task is registered or queued, including durable queues (durable.h), or a shutdown
 * has ended; then shuts down. One caller at a time: DET_ERR_BUSY for a second one. With your own
 * loop, this turns that loop. */
DET_API int det_tasks_run(struct det_tasks *tasks, struct det_error *reterr) DET_MUST_CHECK;
/* One shutdown for all callers: requested -> no more admissions -> all tasks are stopped,
 * dependents first -> joined under one deadline -> the rest is killed -> verdict -> subscribers
 * drain. All callers, including late ones, get the same answer: 0, or DET_ERR_TIMEOUT with the
 * names of the tasks that did not stop in time. Not from a callback: call
 * det_tasks_begin_shutdown() there. */
DET_API int det_tasks_shutdown(struct det_tasks *tasks, struct det_error *reterr);
/* Non-blocking variant for the loop's thread: begins the shutdown; on_empty() reports its end. */
DET_API void det_tasks_begin_shutdown(struct det_tasks *tasks);
/* Kills everything that still runs, without waiting for the grace period. */
DET_API void det_tasks_force(struct det_tasks *tasks);

DET_END
#endif
