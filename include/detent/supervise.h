/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervise.h - components: long-running state machines, driven by one gateway.
 *
 * A component is a machine (a spec with FSM_CONTEXT), a context (a struct of yours that holds a
 * struct det_component named `component`), a dispatch function per state and an action function per
 * action. An executor runs any number of components on one loop, cooperatively. The gateway is one
 * loop for every component, and the only code that steps the machine and executes actions:
 *
 *     external event?  --------------------------+      Block: park until there is one
 *        | none                                  |      Poll: take one if it is there
 *     dispatch function of the state             |      Ignore: leave it in the queue
 *        CONTINUE    park until woken            |
 *        AGAIN       run again after the others  v
 *        TRANSITION  ------------------------> step the machine: guard, exit, move, entry,
 *        TERMINATE   --> completion, end         then the actions in order; then the events
 *        error       --> the failure event       that actions produced
 *
 * No failure is silent. An error of a dispatch function, action or hook, an unhandled event, an
 * invalid return value, a closed control channel: each becomes the failure event of the spec, and
 * the machine decides. If that is not possible (the failure event itself is not accepted, an action
 * of its transition fails, or the completion function fails), the last resort is recorded: the
 * component ends as failed, with the reason, and its waiters return. The completion function runs
 * exactly once in every case.
 *
 *     supervise -> parked <-> ready -> running -> ... -> ended      (of a component)
 *
 * Rows of a component's spec, beside those of docs/machines.md:
 *
 *     #define FSM_CONTEXT pump              struct pump is the context
 *     DISPATCH(CREATED, BLOCK)              waits for an event from outside
 *     DISPATCH(RUNNING, POLL, pump_run)     events from outside first, else this function
 *     DISPATCH(OPENING, IGNORE, pump_open)  events from outside stay queued
 *     FAILURE(ERROR)                        the event of errors; every state accepts it
 *     CLOSED(RUNNING, DRAIN)                event of a closed control channel; default: FAILURE
 *     COMPLETION(pump_completed)            runs exactly once, at the end
 *     INVARIANT(pump_is_sound)              asserted after every step
 *
 * FINAL states terminate; they need no DISPATCH. GUARD, HOOK and EFFECT functions get the context:
 *
 *     static bool has_room(const struct pump *pump, const struct pump_event *event);
 *     static int enter(struct pump *pump, const struct pump_event *event);              a HOOK
 *     static int open_port(struct pump *pump, const struct pump_event *event,
 *                          struct pump_event *ret);       an EFFECT: enum det_effect_result
 *     static int pump_run(struct pump *pump, struct pump_event *ret);       enum det_directive
 *     static int pump_completed(struct pump *pump, const struct det_component_end *end);
 *     static bool pump_is_sound(const struct pump *pump);
 *
 * All functions except those on handles are for the thread that turns the executor's loop. */
#ifndef DETENT_SUPERVISE_H
#define DETENT_SUPERVISE_H

#include <detent/driver/loop.h>
#include <detent/machine.h>

DET_BEGIN

/* Return values of a dispatch function, beside negative errors. */
enum det_directive {
    DET_DIRECTIVE_CONTINUE = 0,   /* no work now: park until a wake, an event or a timer */
    DET_DIRECTIVE_TRANSITION = 1, /* step the machine with the event written to `ret` */
    DET_DIRECTIVE_TERMINATE = 2,  /* end the component, although the state is not final */
    DET_DIRECTIVE_AGAIN = 3,      /* more work, after a turn of the other components */
};

/* Source of a failure. */
enum det_failure_source {
    DET_FAILURE_NONE,
    DET_FAILURE_DISPATCH,   /* a dispatch function returned an error or an invalid value */
    DET_FAILURE_ACTION,     /* an action failed; later actions did not run */
    DET_FAILURE_HOOK,       /* an exit or transition hook failed before the move, or an entry hook
                             * after it */
    DET_FAILURE_UNHANDLED,  /* the state does not accept the event, or a guard refused it */
    DET_FAILURE_CLOSED,     /* no sender of external events is left */
    DET_FAILURE_COMPLETION, /* the completion function failed */
    DET_FAILURE_ABORTED,    /* det_handle_abort(), or the executor was closed */
};

/* A failure, as passed to actions, the completion function and waiters. */
struct det_failure {
    enum det_failure_source source;
    int code;                      /* the error; 0: no failure */
    bool is_last_resort;           /* the machine could not handle the failure: the component ended
                                    * outside of its table */
    char text[DET_ERROR_TEXT_MAX]; /* "dispatch of running: port 3: input or output failed" */
};

/* How a component ended. */
struct det_component_end {
    unsigned state;             /* the last state of its machine */
    struct det_failure failure; /* the last failure; code 0: none */
};

/* The untyped functions of the spec's rows; the template generates them from typed ones. */
typedef int det_dispatch_fn(void *context, void *ret);
typedef int det_completion_fn(void *context, const struct det_component_end *end);
typedef bool det_invariant_fn(const void *context);

struct det_dispatch {
    det_dispatch_fn *run; /* NULL: the state only waits */
    uint16_t mode;        /* enum det_dispatch_mode */
    uint16_t closed;      /* the event of CLOSED, or DET_CLOSED_FAILS */
};
#define DET_CLOSED_FAILS UINT16_MAX

/* Limits of the events produced by actions: how many may wait, and how many may follow each other
 * without another event, so that an endless cycle is a failure. */
#define DET_COMPONENT_PRODUCED_MAX 8
#define DET_COMPONENT_CHAIN_MAX    1000
/* Limit of nested det_component_offer() calls from functions of components. */
#define DET_COMPONENT_DEPTH_MAX 32

struct det_component_def {
    const struct det_machine *machine;
    const struct det_dispatch *dispatch; /* by state */
    det_completion_fn *completed;        /* NULL: none */
    det_invariant_fn *invariant;         /* NULL: none */
    size_t offset;                       /* of the struct det_component in the context */
    uint16_t failure;                    /* the event of failures */
};

struct det_executor;
struct det_handle;

struct det_component_link {
    struct det_component_link *next, *previous;
};

/* Embedded in the context as a member named `component`; zero before the first use. */
struct det_component {
    /* Private to the executor: do not use. */
    struct {
        const struct det_component_def *def; /* NULL: not supervised, or ended */
        struct det_executor *executor;
        union {
            struct det_handle *handle;   /* NULL: none */
            struct det_failure *failure; /* without a handle: the last one, or NULL */
        };
        struct det_component_link all, ready; /* in the lists of the executor */
        struct det_timer timer;               /* AFTER of the state, det_component_wake_at() */
        det_time timeout_at;                  /* DET_NEVER: none */
        det_time wake_at;                     /* DET_NEVER: none */
        uint16_t state;                       /* of its machine */
        uint16_t timeout_event;
        uint16_t request; /* the last external event that caused a step; UINT16_MAX: none */
        uint8_t phase;
        bool has_handle : 1, is_started : 1, wake_wanted : 1, end_wanted : 1;
        bool closed_reported : 1, timer_stale : 1, failure_lost : 1;
    } internal;
};

/* From det_supervise() until it has ended. On the loop's thread, as the state. */
static inline bool det_component_is_supervised(const struct det_component *component)
{
    return component->internal.def != NULL;
}

/* The state of its machine. */
static inline unsigned det_component_state(const struct det_component *component)
{
    return component->internal.state;
}

struct det_executor_options {
    uint32_t budget; /* steps of one component before the others get a turn; 0: 64 */
    const struct det_allocator *allocator;
    /* Called after every step of every component, on the loop; for logs, tests and traces. `event`
     * is its id, or -1 for the start; `from` and `to` may be equal. */
    void (*observe)(
        void *observer, const struct det_component *component, unsigned from, unsigned to,
        int event);
    void *observer;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Counts since open. */
struct det_executor_counts {
    uint64_t supervised, ended, failed; /* components; `ended` includes failed ones */
    uint64_t steps;                     /* transitions of machines */
    uint64_t turns;                     /* runs of components */
    uint64_t repeats; /* repeated requests that were ignored, such as a second stop */
};

/* Opens an executor on `loop`, which is borrowed and must outlive it. `options` NULL: all zero. */
DET_API int det_executor_open(
    struct det_loop *loop, const struct det_executor_options *options, struct det_executor **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Closes the executor. Live components end as aborted, in the order of their start. If the loop
 * holds a message of the executor, its allocator is used once more: by the next turn, or when the
 * loop is closed. */
DET_API void det_executor_close(struct det_executor *executor);
DET_SCOPED_CLOSE(executor)
DET_API struct det_loop *det_executor_loop(const struct det_executor *executor);
DET_API struct det_executor_counts det_executor_counts(const struct det_executor *executor);

/* Zero: a handle with a control queue of 100 events. */
struct det_supervise_options {
    uint32_t control_capacity; /* 0: 100 */
    bool without_handle;       /* no control channel, no waiters: the owner of the context offers
                                * events on the loop, and `ret` may be NULL */
    /* Called on the loop after each published change of state and its actions. */
    void (*on_state)(void *user, unsigned state);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Starts the machine in its initial state, arms its timeout, and makes the component ready; its
 * entry hook runs first, so that the machine can handle its failure. The context must stay until
 * the component has ended: until its completion function, or without one a wait, has returned.
 * Prefer <name>_supervise() of the template. DET_ERR_NO_MEMORY; DET_ERR_EXISTS: the context is
 * supervised already; DET_ERR_CLOSED: the executor is being closed; DET_ERR_INVALID: on_state
 * without a handle. */
DET_API int det_supervise(
    struct det_executor *executor, const struct det_component_def *def, void *context,
    const struct det_supervise_options *options, struct det_handle **ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* The following functions are for the loop's thread. */

/* Runs the component in this or the next turn; several wakes count as one. Harmless after its
 * end. */
DET_API void det_component_wake(struct det_component *component);
/* Wakes the component at a monotonic time; the earlier of two counts; DET_NEVER cancels. Each call
 * of the dispatch function cancels the wake, which must then be set again. Fails only with
 * DET_ERR_NO_MEMORY. */
DET_API int det_component_wake_at(struct det_component *component, det_time at) DET_MUST_CHECK;
/* Sends an event to the component immediately, as an external one: its actions and the events that
 * these produced are done when this returns. Dispatch functions are not called; they run in the
 * component's turn. 0; DET_ERR_UNHANDLED: the state does not accept the event, DET_ERR_REFUSED: a
 * guard refused; both change nothing and are no failure. Other errors are the first failure on the
 * way, which the machine has handled. DET_ERR_CLOSED: the component has ended. DET_ERR_INVALID: not
 * an event of its machine, or an internal one. DET_ERR_LIMIT: offers are nested
 * DET_COMPONENT_DEPTH_MAX deep. DET_ERR_BUSY: called from a function of this component during its
 * run: return the event from its dispatch function, or produce it by an action. */
DET_API int det_component_offer(struct det_component *component, const void *event) DET_MUST_CHECK;
/* Like det_component_offer(), and then runs the component until it parks, in this call instead of
 * in its turn: for work that the loop's thread must complete now. Inside of any component it equals
 * det_component_offer(). The component may have ended afterwards. */
DET_API int det_component_deliver(struct det_component *component, const void *event)
    DET_MUST_CHECK;
/* Reverts a det_supervise() without a handle: the completion function does not run. Not from inside
 * of the component. */
DET_API void det_component_forget(struct det_component *component);
/* Sets the text of a failure, in a function of the component: `return det_component_fail(...)`.
 * Returns `code`, which is negative. */
DET_API int det_component_fail(struct det_component *component, int code, const char *format, ...)
    DET_PRINTF(3, 4);
/* The failure being handled: in guards, hooks and actions of the failure event, and in later steps
 * until the component parks. Code 0: none. */
DET_API const struct det_failure *det_component_failure(const struct det_component *component);

/* The following functions are for any thread. */

/* Queues an event for the component (a copy of the event struct). DET_ERR_LIMIT: the queue is full;
 * DET_ERR_CLOSED: the component has ended or det_handle_hang_up() was called. Events are taken in
 * the order sent. Prefer <name>_handle_send() of the template. */
DET_API int det_handle_send(struct det_handle *handle, const void *event) DET_MUST_CHECK;
/* Closes the control channel: queued events are still taken, then the CLOSED row of the state
 * applies. */
DET_API void det_handle_hang_up(struct det_handle *handle);
DET_API void det_handle_wake(struct det_handle *handle);
/* Ends the component without stepping its machine; its completion function runs. Does not wait. */
DET_API void det_handle_abort(struct det_handle *handle);
/* The last published state: after the actions of its step. */
DET_API unsigned det_handle_state(const struct det_handle *handle);
/* Number of published states; starts at 1. */
DET_API uint64_t det_handle_changes(const struct det_handle *handle);
/* Waits until more than `seen` changes were published or the component ended; then 0.
 * DET_ERR_TIMEOUT at the (monotonic) deadline. Not on the loop's thread. */
DET_API int det_handle_wait_change(struct det_handle *handle, uint64_t seen, det_time deadline)
    DET_MUST_CHECK;
DET_API bool det_handle_has_ended(const struct det_handle *handle);
/* Waits for the end of the component. 0, also after a failure: see `ret` (may be NULL).
 * DET_ERR_TIMEOUT at the deadline. Not on the loop's thread. */
DET_API int det_handle_wait(
    struct det_handle *handle, det_time deadline, struct det_component_end *ret) DET_MUST_CHECK;
/* Releases the handle and closes the control channel like det_handle_hang_up(); the component runs
 * until its machine ends it. Does not wait. */
DET_API void det_handle_close(struct det_handle *handle);
DET_SCOPED_CLOSE(handle)

DET_END
#endif
