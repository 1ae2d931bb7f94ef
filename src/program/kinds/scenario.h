/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario.h - demonstrations of workers for `detent scenario`, in real or in virtual time. The
 * list is scenario.def.
 *
 * A scenario is either a config, or a function that drives the workers itself.
 * All of it runs on one thread: the caller turns the loop, so that a function of a scenario may
 * call the workers directly, and waits with det_scenario_wait(). */
#ifndef DET_KINDS_SCENARIO_H
#define DET_KINDS_SCENARIO_H

#include <detent/workers.h>

struct det_scenario_run;

struct det_scenario {
    const char *name;    /* the root is called scenario-<name> */
    const char *summary; /* summary in one line */
    const char *config;  /* YAML for det_workers_apply(); XOR: */
    /* Drives the workers, and returns when it has nothing more to do, or when det_scenario_wait()
     * says so. What fails in it is the failure of the run. */
    int (*run)(struct det_scenario_run *run, struct det_error *reterr);
    det_time duration; /* time until everything was shown */
    /* Before the workers are opened and after they are closed: for what run->provided needs. NULL:
     * nothing to do. `end` is called only when `begin` has succeeded. */
    int (*begin)(struct det_scenario_run *run, struct det_error *reterr);
    void (*end)(struct det_scenario_run *run);
    bool is_real_only; /* it needs descriptors: not in virtual time */
};

/* A log line of a function of a scenario, besides the events of workers. */
struct det_scenario_note {
    det_time wall;
    const char *name; /* "relay_counts" */
    const char *text; /* "auth_calls=1 pushed=2 received=3" */
};

struct det_scenario_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    det_time duration; /* 0: until det_scenario_stop() */
    det_time tick;     /* 0: 100 ms */
    /* Each may be NULL. All on the thread that runs the scenario. */
    void (*on_event)(void *user, const struct det_worker_event *event);
    void (*on_note)(void *user, const struct det_scenario_note *note);
    /* The workers are there and nothing has been asked of them yet: to watch signals on the loop,
     * say. Undone in on_end(). An error ends the run. */
    int (*on_begin)(void *user, struct det_scenario_run *run, struct det_error *reterr);
    /* The workers have stopped; they and the store are still there. */
    void (*on_end)(void *user, struct det_scenario_run *run);
    void *user;
};

#define DET_SCENARIO_PROVIDED_MAX 8

struct det_scenario_run {
    const struct det_scenario *scenario;
    const struct det_scenario_options *options;
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_loop *loop;
    struct det_store *store; /* in memory; workers have it as "documents" */
    struct det_workers *workers;
    det_time until; /* monotonic; DET_NEVER: until it is stopped */
    bool stop_wanted, force_wanted, stop_begun;
    /* For the workers, beside "documents": det_scenario_provide() in begin(). */
    struct det_provided provided[DET_SCENARIO_PROVIDED_MAX];
    size_t provided_count;
    void *state; /* the scenario's own */
};

/* In the order of scenario.def; NULL at the end. */
const struct det_scenario *const *det_scenarios(void);
/* Returns the scenario with this name; NULL: none. */
const struct det_scenario *det_scenario_find(const char *name);
/* Returns the most similar name; NULL: none is near. */
const char *det_scenario_nearest(const char *name);

/* Runs it: opens a store and the workers, applies the config or calls the function, lets time pass,
 * stops the workers. 0: they stopped cleanly; DET_ERR_TIMEOUT: some had to be killed, `reterr`
 * names them; DET_ERR_INVALID: the scenario has both or neither, or a time is negative. Do not call
 * it from a callback. */
DET_MUST_CHECK int det_scenario_run(
    const struct det_scenario *scenario, const struct det_scenario_options *options,
    struct det_error *reterr);

/* For callbacks: requests the end; the second request kills the remaining workers at once. */
void det_scenario_stop(struct det_scenario_run *run);

/* For functions of scenarios. */
/* Waits until the monotonic deadline: 0. DET_ERR_CANCELLED: the run must end, or its time is over;
 * return then. */
DET_MUST_CHECK int det_scenario_wait(struct det_scenario_run *run, det_time deadline);
/* Waits until the worker is in that state, for at most `span`: DET_ERR_TIMEOUT. `state` NULL: until
 * no worker has this id. */
DET_MUST_CHECK int det_scenario_wait_state(
    struct det_scenario_run *run, const char *id, const char *state, det_time span);
void det_scenario_print(struct det_scenario_run *run, const char *name, const char *format, ...)
    DET_PRINTF(3, 4);
/* Call it in begin(): workers inherit `thing` by this name. DET_ERR_LIMIT. */
DET_MUST_CHECK int det_scenario_provide(
    struct det_scenario_run *run, const char *name, void *thing);

/* Levels of log lines, the least important first; as in worker_events.def. */
enum det_scenario_level {
    DET_SCENARIO_TRACE,
    DET_SCENARIO_DEBUG,
    DET_SCENARIO_INFO,
    DET_SCENARIO_WARN,
    DET_SCENARIO_ERROR,
};
enum det_scenario_level det_scenario_level_of(enum det_worker_event_kind kind);

#endif
