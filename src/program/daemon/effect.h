/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect.h - effects of a definition as the commands and HTTP calls of a detent.yaml.
 *
 *     the runtime's pool --effect_run--> input (JSON) --command or call--> outcome --> event
 *                                                            \--failed: reported, retried
 *
 * Invariants
 *   1. Sensitive values leave only in the input of the command or the body of the call: no reported
 *      text has a value of a record or a secret. The memory of both is wiped.
 *   2. Every attempt has a deadline: its timeout or effects_stop(), whichever is first. Precision
 *      is 200 ms for a command, one second for a call.
 *   3. An answer has at most EFFECT_BODY_MAX bytes.
 *   4. An attempt that cannot start for lack of descriptors, processes or memory is postponed and
 *      not counted. Once the process runs or a byte of the request is sent, it counts, whatever
 *      fails: otherwise it would be repeated without limit.
 *   5. An attempt that effects_stop() interrupts is postponed and not counted: a process stops only
 *      once.
 *
 * After binding only `stop_at` and `short_until` change: any number of threads may run effects. */
#ifndef DET_DAEMON_EFFECT_H
#define DET_DAEMON_EFFECT_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "config/config.h"
#include "config/module.h"

#define EFFECT_BODY_MAX 1048576
#define EFFECT_WHY_TEXT DET_ERROR_TEXT_MAX

/* A failed attempt, reported on the thread that ran it. */
struct effect_failure {
    const struct det_effect_call *call;
    const char *why;
    bool is_put_off; /* not counted: it did not start, or detent is stopping */
};

struct effect_binding {
    const struct config_effect *config;
    const struct det_machine *machine;
    unsigned effect; /* index in the definition */
};

struct effects {
    struct modules modules; /* first: functions of modules cast to it */
    const struct det_allocator *allocator;
    struct det_world *world;
    struct effect_binding *bindings;
    size_t count, capacity;
    bool has_http;
    _Atomic det_time stop_at;          /* monotonic; DET_NEVER: no stop is requested */
    const _Atomic det_time *forced_at; /* the same, set by the signal thread; NULL: none */
    _Atomic det_time short_until;      /* monotonic: no report of a shortage before */
    void (*report)(void *user, const struct effect_failure *failure);
    void *user;
};

/* The configuration must outlive the effects. Call before there are threads. 0, DET_ERR_NO_MEMORY
 * or DET_ERR_IO. */
DET_MUST_CHECK int effects_open(
    struct effects *effects, const struct det_allocator *allocator, struct det_world *world,
    const struct config *config);
void effects_close(struct effects *effects);
/* Binds the effects that the file lists for a definition; both were checked together. The runtime's
 * `user` is then the struct effects. 0 or DET_ERR_NOT_FOUND. */
DET_MUST_CHECK int effects_bind(
    struct effects *effects, const struct config_machine *config, struct det_machine *machine);
/* The same for the definition of a module. */
DET_MUST_CHECK int effects_bind_module(
    struct effects *effects, const struct config_machine *config, struct module_machine *machine);
/* True if the effect is bound here. */
bool effects_has(const struct effects *effects, const char *machine, const char *effect);
/* For det_runtime_options.effect_policy. */
const struct det_effect_policy *effects_policy(
    void *user, const struct det_machine *machine, unsigned effect);
/* Interrupts and postpones attempts that still run at this monotonic time; none starts afterwards.
 * Any thread. */
void effects_stop(struct effects *effects, det_time at);

/* The parts. */

/* Result of an attempt. `code` is the exit code or the status; -1: none, and `why` has the
 * reason. */
struct effect_outcome {
    int code;
    int error;            /* if there is no code */
    det_time retry_after; /* delay that the server asks for; 0: none */
    bool is_success;
    bool is_shortage; /* it could not start: no descriptor, process or memory */
    bool is_cut_off;  /* detent is stopping */
    bool is_strict;   /* the body must be an answer or empty */
    struct det_buffer body;
    char why[EFFECT_WHY_TEXT];
};

/* The monotonic deadline of an attempt that starts now. */
det_time effect_deadline(const struct effects *effects, const struct effect_binding *binding);
bool effect_is_over(const struct effects *effects, det_time deadline);
/* Sets the outcome of an interrupted attempt: its timeout, or effects_stop(). */
void effect_time_out(
    const struct effects *effects, const struct effect_binding *binding, det_time deadline,
    struct effect_outcome *outcome);

/* effect_command.c, effect_http.c */
void effect_command(
    struct effects *effects, const struct effect_binding *binding, const struct det_buffer *input,
    struct effect_outcome *outcome);
void effect_http(
    struct effects *effects, const struct effect_binding *binding,
    const struct det_effect_call *call, const struct det_buffer *input,
    struct effect_outcome *outcome);

/* effect_answer.c: the result for the runtime. DET_EFFECT_DONE, DET_EFFECT_PRODUCED with the event,
 * or an error with the reason in outcome->why. */
DET_MUST_CHECK int effect_answer(
    const struct effects *effects, const struct effect_binding *binding,
    struct effect_outcome *outcome, void *ret);

#endif
