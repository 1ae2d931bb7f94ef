/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervise.h - components: long-running state machines, driven by one gateway.
 *
 * A component is a machine (a spec with FSM_CONTEXT), a context (a struct of yours that holds a
 * struct det_component called `component`), a dispatch function per state and an action function
 * per action. An executor runs any number of components on one loop, cooperatively. For every
 * component the same loop, and it alone, steps the machine and executes actions:
 *
 *     external event?  --------------------------+      Block: park until there is one
 *        | none                                  |      Poll: take one if it is there
 *     dispatch function of the state             |      Ignore: leave them where they are
 *        CONTINUE    park until woken            |
 *        AGAIN       run again after the others  v
 *        TRANSITION  ------------------------> step the machine: guard, exit, move, entry,
 *        TERMINATE   --> completion, end         then the actions in order; then the events
 *        error       --> the failure event       that actions produced
 *
 * Nothing dies in silence. An error of a dispatch function, of an action or of a hook, an event
 * that the state does not take, an answer that is none of the four, a closed control channel: each
 * becomes the failure event of the spec, and the machine decides. If that cannot be (the failure
 * event itself is not taken, or an action on its way fails, or the completion function fails), the
 * last resort is recorded: the component ends as failed, with the reason, and its waiters return.
 * The completion function runs exactly once, whatever the way.
 *
 *     supervise -> parked <-> ready -> running -> ... -> ended      (of a component)
 *
 * Rows of a component's spec, beside those of docs/machines.md:
 *
 *     #define FSM_CONTEXT pump              struct pump is the context
 *     DISPATCH(CREATED, BLOCK)              waits for an event from outside
 *     DISPATCH(RUNNING, POLL, pump_run)     events from outside first, else this function
 *     DISPATCH(OPENING, IGNORE, pump_open)  events from outside stay queued
 *     FAILURE(ERROR)                        the event that errors become; every state takes it
 *     CLOSED(RUNNING, DRAIN)                what a closed control channel means; else FAILURE
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
 * Everything but handles is for the thread that turns the executor's loop. */
#ifndef DETENT_SUPERVISE_H
#define DETENT_SUPERVISE_H

#include <detent/driver/loop.h>
#include <detent/machine.h>

DET_BEGIN

/* What a dispatch function answers; or a negative error. */
enum det_directive {
    DET_DIRECTIVE_CONTINUE = 0,   /* nothing to do now: parks until a wake, an event, a timer */
    DET_DIRECTIVE_TRANSITION = 1, /* the event written to `ret` has happened */
    DET_DIRECTIVE_TERMINATE = 2,  /* done, although the state is not final */
    DET_DIRECTIVE_AGAIN = 3,      /* more to do, once the other components had their turn */
};

/* Where a failure came from. */
enum det_failure_source {
    DET_FAILURE_NONE,
    DET_FAILURE_DISPATCH,   /* a dispatch function returned an error, or an answer that is none */
    DET_FAILURE_ACTION,     /* an action failed; those after it did not run */
    DET_FAILURE_HOOK,       /* an exit or transition hook failed: not moved; entry: moved */
    DET_FAILURE_UNHANDLED,  /* the state does not take the event, or a guard refused it */
    DET_FAILURE_CLOSED,     /* no sender of events from outside is left */
    DET_FAILURE_COMPLETION, /* the completion function failed */
    DET_FAILURE_ABORTED,    /* det_handle_abort(), or the executor was closed */
};

/* A failure as actions, the completion function and waiters see it. */
struct det_failure {
    enum det_failure_source source;
    int code;                      /* the error; 0: there was no failure */
    bool is_last_resort;           /* the machine could not handle it: it ended outside its table */
    char text[DET_ERROR_TEXT_MAX]; /* "dispatch of running: port 3: input or output failed" */
};

/* How a component ended. */
struct det_component_end {
    unsigned state;             /* where its machine stood */
    struct det_failure failure; /* of the last failure on its way; code 0: there was none */
};

/* The untyped functions of the spec's rows; the template makes them from typed ones. */
typedef int det_dispatch_fn(void *context, void *ret);
typedef int det_completion_fn(void *context, const struct det_component_end *end);
typedef bool det_invariant_fn(const void *context);

struct det_dispatch {
    det_dispatch_fn *run; /* NULL: only waits */
    uint16_t mode;        /* enum det_dispatch_mode */
    uint16_t closed;      /* the event of CLOSED, or DET_CLOSED_FAILS */
};
#define DET_CLOSED_FAILS UINT16_MAX

/* Events that actions have produced and that are not yet taken; and how many in a row may come of
 * actions alone, so that a circle of them is a failure and not a standstill. */
#define DET_COMPONENT_PRODUCED_MAX 8
#define DET_COMPONENT_CHAIN_MAX    1000
/* How deep the functions of components may offer events to one another. */
#define DET_COMPONENT_DEPTH_MAX 32

struct det_component_def {
    const struct det_machine *machine;
    const struct det_dispatch *dispatch; /* [state] */
    det_completion_fn *completed;        /* NULL: none */
    det_invariant_fn *invariant;         /* NULL: none */
    size_t offset;                       /* of the struct det_component in the context */
    uint16_t failure;                    /* the event that errors become */
};

struct det_executor;
struct det_handle;

/* Its place among the components of an executor; the executor's. */
struct det_component_link {
    struct det_component_link *next, *previous;
};

/* In the context, as a member called `component`; zero before the first use. Read-only for you. */
struct det_component {
    const struct det_component_def *def; /* NULL: not supervised, or ended */
    struct det_executor *executor;
    union {
        struct det_handle *handle;   /* if it has one */
        struct det_failure *failure; /* else: its last failure, or NULL; a handle keeps its own */
    };
    struct det_component_link all, ready;
    struct det_timer timer; /* AFTER of the state, and det_component_wake_at() */
    det_time timeout_at;    /* DET_NEVER: none */
    det_time wake_at;       /* DET_NEVER: none */
    uint16_t state;         /* of its machine */
    uint16_t timeout_event;
    uint16_t request; /* the event from outside that moved it last; UINT16_MAX: none */
    uint8_t phase;    /* the executor's, as what follows */
    bool has_handle : 1, is_started : 1, wake_wanted : 1, end_wanted : 1;
    bool closed_told : 1, timer_stale : 1, failure_lost : 1;
};

struct det_executor_options {
    uint32_t budget; /* steps of one component before the others have their turn; 0: 64 */
    const struct det_allocator *allocator;
    /* Called after every step of every component, on the loop; for logs, tests and traces. `event`
     * is its id, or -1 for the start; `from` and `to` may be equal. */
    void (*observe)(
        void *observer, const struct det_component *component, unsigned from, unsigned to,
        int event);
    void *observer;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* What has happened since open. */
struct det_executor_counts {
    uint64_t supervised, ended, failed; /* components; failed ones are among the ended */
    uint64_t steps;                     /* transitions of machines */
    uint64_t turns;                     /* times that a component was run */
    uint64_t repeats; /* requests that came again and were ignored: a second stop */
};

/* Runs on `loop`, which stays yours and must outlive it. NULL options are all zero. */
DET_API int det_executor_open(
    struct det_loop *loop, const struct det_executor_options *options, struct det_executor **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Components that have not ended end now, as aborted, in the order of their start. Its allocator is
 * used once more if the loop has a message of it: by the next turn, or when the loop is closed. */
DET_API void det_executor_close(struct det_executor *executor);
DET_SCOPED_CLOSE(executor)
DET_API struct det_loop *det_executor_loop(const struct det_executor *executor);
DET_API struct det_executor_counts det_executor_counts(const struct det_executor *executor);

/* Zero: a handle with a control queue of 100 events. */
struct det_supervise_options {
    uint32_t control_capacity; /* 0: 100 */
    bool without_handle;       /* no control channel, no waiters: the owner of the context offers
                                  events on the loop, and `ret` may be NULL */
    /* Called on the loop when the state was published: once per change, after its actions. */
    void (*on_state)(void *user, unsigned state);
    void *user;
};

/* Starts the machine in its initial state, with its timeout, and makes it ready to run; its entry
 * hook is the first that runs then, so that its failure finds the machine. The context must stay
 * until the component has ended: until its completion function has returned, or, without one, until
 * a wait has. Prefer <name>_supervise() of the template. Fails for memory; DET_ERR_EXISTS when the
 * context is supervised already, DET_ERR_CLOSED while the executor is closed, DET_ERR_INVALID for
 * an on_state without a handle. */
DET_API int det_supervise(
    struct det_executor *executor, const struct det_component_def *def, void *context,
    const struct det_supervise_options *options, struct det_handle **ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* On the loop's thread: */

/* It runs in this or the next turn; one wake or many are the same. Harmless once it has ended. */
DET_API void det_component_wake(struct det_component *component);
/* A wake at a monotonic time; the earlier one counts; DET_NEVER takes it back. Any run of the
 * dispatch function takes it back too, so that it is asked for anew. Fails only for memory. */
DET_API int det_component_wake_at(struct det_component *component, det_time at) DET_MUST_CHECK;
/* Gives it an event right now, as one from outside: what the event implies, actions and what they
 * produced, has happened when this returns. Dispatch functions are not called; they have a turn of
 * their own. 0; DET_ERR_UNHANDLED when the state does not take it and DET_ERR_REFUSED when a guard
 * said no: then nothing has happened, and it is not a failure; other errors are those of the first
 * failure on the way, which the machine has handled. DET_ERR_CLOSED: has ended. DET_ERR_INVALID: no
 * event of its machine, or an internal one. DET_ERR_LIMIT: functions of components offer to others
 * in turn, DET_COMPONENT_DEPTH_MAX deep. DET_ERR_BUSY: it is called from a function of this very
 * component, which is in the middle of its run: let its dispatch function return the event, or an
 * action produce it. */
DET_API int det_component_offer(struct det_component *component, const void *event) DET_MUST_CHECK;
/* The same, and then it runs until it parks, now and not in a turn of its own: for what the thread
 * that has the loop at the moment should see through to the end. Inside of any component it is
 * det_component_offer(). The component may be gone afterwards. */
DET_API int det_component_deliver(struct det_component *component, const void *event)
    DET_MUST_CHECK;
/* Takes back a det_supervise() without a handle, as if it had not been: its completion function
 * does not run. Not from inside the component. */
DET_API void det_component_forget(struct det_component *component);
/* In a function of the component, so that the failure has a text: `return det_component_fail(...)`.
 * Returns `code`, which is negative. */
DET_API int det_component_fail(struct det_component *component, int code, const char *format, ...)
    DET_PRINTF(3, 4);
/* The failure that is being handled: in guards, hooks and actions of the failure event, and in what
 * follows from it until the component parks. Code 0: there is none. */
DET_API const struct det_failure *det_component_failure(const struct det_component *component);

/* From any thread: */

/* Queues an event for the component (a copy of the event struct). DET_ERR_LIMIT when the queue is
 * full; DET_ERR_CLOSED when the component has ended or det_handle_hang_up() was called. Events are
 * taken in the order sent. Prefer <name>_handle_send() of the template. */
DET_API int det_handle_send(struct det_handle *handle, const void *event) DET_MUST_CHECK;
/* Closes the control channel: what is queued is still taken, then the state's CLOSED counts. */
DET_API void det_handle_hang_up(struct det_handle *handle);
DET_API void det_handle_wake(struct det_handle *handle);
/* Ends it without asking its machine; its completion function runs. Does not wait. */
DET_API void det_handle_abort(struct det_handle *handle);
/* The state as last published: after the actions that came with it. */
DET_API unsigned det_handle_state(const struct det_handle *handle);
/* How often the state was published; begins at 1. */
DET_API uint64_t det_handle_changes(const struct det_handle *handle);
/* Waits until more than `seen` changes were published, or it ended; then 0. DET_ERR_TIMEOUT at the
 * (monotonic) deadline. Not on the loop's thread. */
DET_API int det_handle_wait_change(struct det_handle *handle, uint64_t seen, det_time deadline)
    DET_MUST_CHECK;
DET_API bool det_handle_has_ended(const struct det_handle *handle);
/* Waits for its end. 0, also when it ended with a failure: see `ret` (may be NULL).
 * DET_ERR_TIMEOUT at the deadline. Not on the loop's thread. */
DET_API int det_handle_wait(
    struct det_handle *handle, det_time deadline, struct det_component_end *ret) DET_MUST_CHECK;
/* Releases the handle, as det_handle_hang_up() does; the component runs until its machine ends it.
 * Does not wait. */
DET_API void det_handle_close(struct det_handle *handle);
DET_SCOPED_CLOSE(handle)

DET_END
#endif
