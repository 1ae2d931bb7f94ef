/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task.h - keeps work running: restart, backoff, limits, slots, trees.
 *
 * A task is one of three kinds with one lifecycle:
 *
 *     function   runs on a pool thread and may block; stops when it looks at its context
 *     step       is called by the loop again and again, and never blocks
 *     process    a program of its own; stopped by SIGTERM, then SIGKILL to its whole group
 *
 *              add                              start           end of the attempt
 *     (spec) ------> held ------> waiting ----------> running ------------------+
 *              depends_on,  \  a permit of            | timeout, cancel         |
 *              schedule      \ concurrent_max         v                         v
 *                             \               stopping -> (stuck)            policy
 *                              \                                      /    |       \
 *                               +---<--- backoff <---- failed --------     |        done
 *                               +---<--- resting <---- always, schedule ---+
 *
 * A crash of a process is contained; one in a function or a step takes your program with it. A
 * function that ignores its cancellation is reported as stuck and keeps its name; no attempt of a
 * task ever starts while another one of it lives.
 *
 * One loop owns everything: registry, slots, tree, limits; one thread at a time has it. Calls on it
 * are answered at once. A call from another thread takes the place of a supervisor's own thread
 * that sleeps, and does what it asks for itself; if that is awake, or the loop is yours, the call
 * is queued and waits for the answer, and before that for room in the queue, unless its name has
 * `try`. A thread that waits for an end (det_waiter_wait(), det_tasks_stop()) may run what the
 * sleeping loop has to do meanwhile, steps and callbacks too: set `loop` if they depend on their
 * thread, and hold no lock that they take.
 *
 * Identity is an id, never a name: ids are not used again. A name belongs to one task from its
 * admission until it is fully removed. */
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

typedef uint64_t det_task_id; /* from 1; 0 is no task */

/* Work. */

/* 0: succeeded. DET_ERR_CANCELLED: stopped as asked. Another negative error: failed; a text and an
 * exit code come from det_task_fail() and det_task_fatal(). Each attempt calls it once. */
typedef int det_task_fn(struct det_task_context *context, void *argument);

/* What a step answers, or an error as above. */
enum det_step_result {
    DET_STEP_DONE = 0,  /* succeeded */
    DET_STEP_AGAIN = 1, /* call again, after the others had their turn */
    DET_STEP_WAIT = 2,  /* call again after det_tasks_wake(), det_task_wake_at() or a cancel */
};
typedef int det_step_fn(struct det_task_context *context, void *argument);

enum det_stream {
    DET_STREAM_OUTPUT,
    DET_STREAM_ERROR,
};

/* A line that a process wrote, without its end; on the loop. Longer ones than DET_LINE_MAX come in
 * pieces, all but the last with `is_cut`. `dropped` is how many bytes were thrown away since the
 * last line because the process wrote faster than `bytes_per_second_max`; a line that this breaks
 * off is cut too, and at the end of a stream a cut line of no bytes may only report that. */
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

/* What to run. Strings and lists are copied when the task is added. */
struct det_process_spec {
    const char *const *argv;        /* NULL-terminated; never a shell; argv[0] is sought in PATH */
    const char *const *environment; /* NULL-terminated "NAME=value"; NULL: the caller's own */
    const char *folder;             /* NULL: the caller's own */
    const char *user;               /* NULL: the caller's; another one needs the right to change */
    int stop_signal;                /* 0: SIGTERM */
    bool has_notify;                /* gives it NOTIFY_SOCKET and listens: READY=1, STATUS=... */
    bool ends_with_us;              /* killed when we die, by whatever; what it has started, too,
                                       in the world of a guard (guard.h) */
    uint64_t bytes_per_second_max;  /* of its output; 0: 16 MiB; lines over it are dropped and
                                       counted, at most once a second */
    const struct det_process_limit *limits; /* may be NULL */
    size_t limit_count;
    const int *success_codes; /* exit codes that count as success beside 0 */
    size_t success_code_count;
    const int *fatal_codes; /* exit codes that are never tried again */
    size_t fatal_code_count;
};

/* The tree. */

enum det_strategy {
    DET_STRATEGY_ONE_FOR_ONE,  /* only the one that failed runs again */
    DET_STRATEGY_ALL_FOR_ONE,  /* all of the group are stopped in reverse order and start again */
    DET_STRATEGY_REST_FOR_ONE, /* it, and those of the group that were added after it */
};

/* A group counts restarts; when there are too many, or a member fails for good, it fails: its
 * members are stopped, and its own group treats that as the failure of a member, and lets it begin
 * anew as a whole after the backoff of the default policy. A group at the top that fails stays
 * stopped, and its tasks end as failed; until det_tasks_group_start() it takes no new ones
 * (DET_ERR_CLOSED). */
#define DET_TASK_GROUP_DEPTH_MAX 16 /* groups within groups; one more is DET_ERR_LIMIT */
struct det_task_group_spec {
    const char *name;   /* shares its name space with tasks */
    const char *parent; /* NULL: at the top */
    enum det_strategy strategy;
    struct det_intensity intensity;
};

enum det_condition_kind {
    DET_WHEN_RUNNING,   /* an attempt has started */
    DET_WHEN_HEALTHY,   /* it is ready, and its last health check, if it has any, passed */
    DET_WHEN_COMPLETED, /* it has succeeded */
};
/* Asked when a task is to start: one that runs goes on when what it depends on begins anew. What
 * has completed for good meets every condition, and is remembered while another task depends on
 * it. */
struct det_dependency {
    const char *name; /* of a task, or of a group: all of its members */
    enum det_condition_kind when;
};

/* How a task becomes ready. */
enum det_ready_by {
    DET_READY_WHEN_STARTED, /* at once */
    DET_READY_BY_NOTIFY,    /* det_task_ready(), or READY=1 of a process */
    DET_READY_BY_CHECK,     /* when `check` passes for the first time */
};
/* A check: a process that exits with 0, or a function that returns 0, on threads for checks alone.
 * Before the task is ready only `within` counts, however often it fails. A function may look at the
 * context of the task, but says nothing through it; the end of the attempt, which cancels that
 * context, waits for it. A process is killed with the attempt. TASK_READY is published when the
 * task is ready or healthy again, TASK_UNHEALTHY when a check of one that is ready fails,
 * CHECK_POSTPONED when our own process cannot start one, which counts for nothing. */
struct det_check {
    const char *const *argv; /* NULL: none, or `run` */
    int (*run)(struct det_task_context *context, void *argument);
    det_time every;      /* 0: 1 s until it is ready, then 10 s */
    det_time timeout;    /* of one check; 0: 5 s */
    uint32_t fails_max;  /* in a row; then the attempt counts as failed; 0: 3 */
    bool only_readiness; /* stops when the task is ready */
};
struct det_readiness {
    enum det_ready_by by;
    det_time within; /* else the attempt counts as failed; 0: 60 s; DET_NEVER */
    struct det_check check;
};

/* A task. Exactly one of function, step and process is set. */
struct det_task_spec {
    const char *name; /* 1 to DET_TASK_NAME_MAX bytes of UTF-8 without control characters */
    det_task_fn *function;
    det_step_fn *step;
    const struct det_process_spec *process;
    void *argument;
    /* Once: when the task is removed, before its waiters return; or by the call that was to add
     * it, when that fails, whatever the error. */
    void (*release)(void *argument);
    struct det_policy policy;
    struct det_schedule schedule;
    const char *group; /* NULL: at the top */
    const struct det_dependency *depends_on;
    size_t depends_on_count;
    struct det_readiness readiness;
};

/* How it ended. */
struct det_task_end {
    det_task_id id;
    enum det_task_outcome outcome;
    enum det_rejection rejection;
    uint32_t attempts;
    uint32_t restarts; /* attempts that followed another one; those of a schedule do not count */
    int32_t exit_code;
    bool has_exit_code;
    int signal;
    char reason[DET_TASK_REASON_MAX + 1];
};

/* In the work itself. A function may use these on its thread, a step on the loop. */

/* The task's name, its id, the number of this attempt (from 1), and its world. */
DET_API const char *det_task_name(const struct det_task_context *context);
DET_API det_task_id det_task_id_of(const struct det_task_context *context);
DET_API uint32_t det_task_attempt(const struct det_task_context *context);
DET_API struct det_world *det_task_world(const struct det_task_context *context);
/* Asked to stop: by a cancel, a timeout, a shutdown. */
DET_API bool det_task_is_cancelled(const struct det_task_context *context);
/* Functions: blocks until the monotonic deadline (0), or until it is cancelled (DET_ERR_CANCELLED,
 * also when that was so before). */
DET_API int det_task_wait(struct det_task_context *context, det_time deadline) DET_MUST_CHECK;
/* Functions: calls `run` unless it is cancelled already; then DET_ERR_CANCELLED. */
DET_API int det_task_unless_cancelled(
    struct det_task_context *context, det_task_fn *run, void *argument) DET_MUST_CHECK;
/* Says why it fails; returns `code`, which is negative: `return det_task_fail(context, ...)`. */
DET_API int det_task_fail(struct det_task_context *context, int code, const char *format, ...)
    DET_PRINTF(3, 4);
/* det_task_fail() without a further attempt. */
DET_API int det_task_fatal(struct det_task_context *context, int code, const char *format, ...)
    DET_PRINTF(3, 4);
DET_API void det_task_set_exit_code(struct det_task_context *context, int32_t code);
/* DET_READY_BY_NOTIFY. */
DET_API void det_task_ready(struct det_task_context *context);
/* Steps: when to be called at the latest (monotonic), after DET_STEP_WAIT. */
DET_API void det_task_wake_at(struct det_task_context *context, det_time at);

/* A part of the work that can be cancelled by itself: the parent's cancel reaches it, its own does
 * not reach the parent. In your memory; zero it, give it a parent of either kind, or none. */
struct det_scope {
    const struct det_task_context *context;
    const struct det_scope *parent;
    uint8_t is_cancelled; /* atomic */
};
DET_API void det_scope_cancel(struct det_scope *scope);
DET_API bool det_scope_is_cancelled(const struct det_scope *scope);

/* The supervisor of all. */

/* What options are where they are zero. */
#define DET_POOL_THREADS   256
#define DET_TASKS_MAX      1000000
#define DET_INTAKE_MAX     16384
#define DET_SLOT_DEPTH_MAX 100
#define DET_BUS_CAPACITY   16384
struct det_tasks_options {
    struct det_world *world; /* NULL: the real one, or that of `loop` */
    const struct det_allocator *allocator;
    struct det_loop *loop;     /* yours; NULL: a thread of its own */
    uint32_t pool_threads;     /* functions that run at the same time; 0: DET_POOL_THREADS. Threads
                                  are started as they are needed, and stay; what waits for one
                                  says so (POOL_EXHAUSTED, waits_for) */
    uint32_t concurrent_max;   /* attempts at the same time, first come first served; 0: no limit */
    uint32_t tasks_max;        /* registered or queued; 0: DET_TASKS_MAX */
    uint32_t intake_max;       /* calls from other threads that wait or were posted; 0:
                                  DET_INTAKE_MAX */
    uint32_t slot_depth_max;   /* queued in one slot, unless it says otherwise; 0:
                                  DET_SLOT_DEPTH_MAX */
    uint32_t bus_capacity;     /* events kept in the ring, 400 bytes each; 0: DET_BUS_CAPACITY; at
                                  most 1,048,576; rounded up to a power of two */
    det_time grace;            /* of a shutdown as a whole; 0: 60 s; negative: force at once */
    det_time subscriber_grace; /* to drain subscribers at the end; 0: 5 s; negative: drop */
    struct det_policy defaults;
    /* Output of processes, on the loop; NULL: it is thrown away. */
    void (*on_line)(void *user, const struct det_line *line);
    /* The last thing that happens to a task, on the loop, after it was removed: a name is free, an
     * end is known. May use the tasks. */
    void (*on_end)(void *user, const struct det_task_end *end);
    /* All registered tasks and all queued ones are gone, on the loop. */
    void (*on_empty)(void *user);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Opens a supervisor of tasks and starts its thread, unless options.loop is yours. NULL options are
 * all zero. DET_ERR_INVALID: an option, with the reason; DET_ERR_NO_MEMORY. */
DET_API int det_tasks_open(
    const struct det_tasks_options *options, struct det_tasks **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Shuts down if that was not done, and then waits for functions that are stuck; only the end of the
 * program ends those. Not from a callback; with a loop of yours, on the thread that turns it. */
DET_API void det_tasks_close(struct det_tasks *tasks);
DET_SCOPED_CLOSE(tasks)
DET_API struct det_bus *det_tasks_bus(struct det_tasks *tasks);

/* Admits a task; it starts on its own. DET_ERR_EXISTS: the name is taken; DET_ERR_CLOSED: shutting
 * down; DET_ERR_LIMIT: too many tasks, or calls; DET_ERR_NOT_FOUND: a group or dependency;
 * DET_ERR_INVALID: the spec, with the reason; DET_ERR_BUSY: on the loop, and a lossless subscriber
 * cannot keep up (bus.h). `ret_waiter` (may be NULL) gets a waiter for its end. */
DET_API int det_tasks_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_waiter **ret_waiter,
    det_task_id *ret, struct det_error *reterr) DET_MUST_CHECK;
/* det_tasks_add(), but DET_ERR_BUSY at once when the intake is full; then nothing was published. */
DET_API int det_tasks_try_add(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_waiter **ret_waiter,
    det_task_id *ret, struct det_error *reterr) DET_MUST_CHECK;
/* All of them or none. They may depend on each other. `ret` (may be NULL) gets `count` ids. None at
 * all is 0 at once, also while shutting down. */
DET_API int det_tasks_add_batch(
    struct det_tasks *tasks, const struct det_task_spec *specs, size_t count, det_task_id *ret,
    struct det_error *reterr) DET_MUST_CHECK;
DET_API int det_tasks_add_group(
    struct det_tasks *tasks, const struct det_task_group_spec *spec,
    struct det_error *reterr) DET_MUST_CHECK;

/* Non-blocking variants for threads that must not wait, with an answer later or none. The spec is
 * copied, but for its `argument`. Calls of a thread are taken in the order in which it made them,
 * posted or not, and many of them wake the loop once. 0: it will be done. DET_ERR_BUSY: intake_max
 * calls are under way, or a lossless subscriber cannot keep up; DET_ERR_NO_MEMORY: nothing is done,
 * and `release` was called. The answer is given on the loop, once: 0 with the id, or an error as of
 * det_tasks_add(). Where there is none, a failure is published: TASK_ADD_FAILED with the reason. */
struct det_answer {
    void (*run)(void *user, int result, det_task_id id, const struct det_error *error);
    void *user;
};
DET_API int det_tasks_post_add(
    struct det_tasks *tasks, const struct det_task_spec *spec,
    const struct det_answer *answer) DET_MUST_CHECK;
/* Non-blocking det_tasks_remove(). Does not report whether the task existed. */
DET_API int det_tasks_post_remove(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;

/* Asks a task to stop, or takes it out of its slot's queue; returns before it has. 1: this call
 * did it; 0: there is no such task, or it is stopping already. */
DET_API int det_tasks_remove(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Removes a task and waits until it has ended: 1 and 0 as above, or DET_ERR_TIMEOUT at the
 * (monotonic) deadline; the removal continues. Not on the loop. */
DET_API int det_tasks_stop(struct det_tasks *tasks, det_task_id id, det_time deadline)
    DET_MUST_CHECK;
/* The attempt that runs may come to its own end, and none follows; one that waits, backs off or
 * rests ends at once. 1, or 0: no such task, or it is stopping already. */
DET_API int det_tasks_drain(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Ends the attempt that runs, if one does, and begins the next at once; the streak of failures is
 * forgotten. A task that waits, backs off, rests or is on hold begins at once too. 1, or 0: no such
 * task. */
DET_API int det_tasks_restart(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* Stops a task and keeps it, held in its place: in its group, and for those that depend on it. Only
 * det_tasks_restart() releases it. 1; 0: no such task, or it is held so already, queued, or about
 * to end. Returns before it has stopped. */
DET_API int det_tasks_hold(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* A step that waits is called again. Does not wait itself. 1, or 0: no such task. */
DET_API int det_tasks_wake(struct det_tasks *tasks, det_task_id id) DET_MUST_CHECK;
/* The id of a name; 0: none. */
DET_API det_task_id det_tasks_find(struct det_tasks *tasks, const char *name);
/* Stops a group, members in reverse order; it stays, and det_tasks_group_start() starts it again.
 * 1, or 0: no such group. Returns before they have stopped. */
DET_API int det_tasks_group_cancel(struct det_tasks *tasks, const char *group) DET_MUST_CHECK;
DET_API int det_tasks_group_start(struct det_tasks *tasks, const char *group) DET_MUST_CHECK;

/* A waiter for the end of a task that is there. DET_ERR_NOT_FOUND. */
DET_API int det_tasks_watch(struct det_tasks *tasks, det_task_id id, struct det_waiter **ret)
    DET_MUST_CHECK;
/* Waits for the end: after it the name is free. DET_ERR_TIMEOUT at the (monotonic) deadline. Not on
 * the loop, unless it has ended. */
DET_API int det_waiter_wait(struct det_waiter *waiter, det_time deadline, struct det_task_end *ret)
    DET_MUST_CHECK;
/* Harmless to the task, at any time before the tasks are closed. */
DET_API void det_waiter_close(struct det_waiter *waiter);
DET_SCOPED_CLOSE(waiter)

/* Inspection. Texts are borrowed for the call of `each`, which runs on the loop and must not change
 * the tasks; a negative answer of it ends the walk and is returned. */
struct det_task_info {
    det_task_id id;
    const char *name, *group, *slot; /* NULL: none */
    const char *kind;                /* "function", "step", "process" */
    const char *state;               /* of its machine: "running", "backoff", ... */
    const char *waits_for;           /* held: the dependency; waiting: the permit or thread, with
                                        its holders; NULL: nothing */
    const char *reason;              /* of the last failure; "" : none */
    bool is_ready, is_healthy, is_removing;
    bool is_on_hold;            /* by det_tasks_hold() */
    uint32_t attempt, failures; /* failures of this streak */
    uint64_t restarts;          /* since it was added; runs of a schedule do not count */
    det_time since;             /* wall: in this state */
    det_time next_at;           /* wall: the next attempt, in backoff and resting; 0: unknown */
    int64_t process;            /* its number; 0: none runs */
    struct det_task_end last;   /* of the last attempt that ended, as an outcome; NONE: none has */
};
/* In the order of ids. */
DET_API int det_tasks_each(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_task_info *info),
    void *user) DET_MUST_CHECK;
DET_API int det_tasks_get(
    struct det_tasks *tasks, det_task_id id,
    int (*each)(void *user, const struct det_task_info *info), void *user) DET_MUST_CHECK;

/* Whether a dependency would be met now: 1, or 0, also when there is no such task or group. */
DET_API int det_tasks_is_met(struct det_tasks *tasks, const struct det_dependency *dependency)
    DET_MUST_CHECK;

struct det_task_group_info {
    const char *name, *parent; /* NULL: at the top */
    enum det_strategy strategy;
    const char *state;
    uint32_t members, restarts, restarts_max; /* in the window */
    det_time window;
    const char *reason;
};
/* Parents before children, in the order added. */
DET_API int det_tasks_each_group(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_task_group_info *info),
    void *user) DET_MUST_CHECK;

struct det_tasks_counts {
    uint64_t registered, queued, running, waiting, backing_off, resting, held, stuck;
    uint64_t added, finished, restarts, rejected; /* since open */
    uint64_t events_lost;                         /* by subscribers of the bus, since open */
};
/* How many tasks are in each condition now, and what happened since open. From any thread. */
DET_API struct det_tasks_counts det_tasks_counts(struct det_tasks *tasks);

/* Until nothing is registered and nothing is queued, also in durable queues (durable.h), or a
 * shutdown has ended; then shuts down. Once: DET_ERR_BUSY for a second one. With a loop of your own
 * it turns that loop. */
DET_API int det_tasks_run(struct det_tasks *tasks, struct det_error *reterr) DET_MUST_CHECK;
/* One shutdown for all callers: requested -> no more admissions -> all are asked to stop,
 * dependents first -> joined under one deadline -> the rest is forced -> verdict -> subscribers
 * drain. All callers, also late ones, get the same answer: 0, or DET_ERR_TIMEOUT with the names of
 * those that did not stop in time. Not from a callback, for which det_tasks_begin_shutdown() is. */
DET_API int det_tasks_shutdown(struct det_tasks *tasks, struct det_error *reterr);
/* Non-blocking variant for the loop's thread: begins the shutdown; on_empty() reports its end. */
DET_API void det_tasks_begin_shutdown(struct det_tasks *tasks);
/* Forces whatever still runs, without waiting for the grace period. */
DET_API void det_tasks_force(struct det_tasks *tasks);

DET_END
#endif
