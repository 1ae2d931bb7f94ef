/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect.h - effects of a definition as the commands and HTTP calls of a detent.yaml.
 *
 *     the runtime's pool --effect_run--> input (JSON) --command or call--> outcome --> event
 *                                                            \--failed: told, tried again
 *
 * Invariants
 *   1. Sensitive values leave only by the input of the command or the body of the call: no text
 *      that is told has a value of a record or a secret in it. The memory of either is wiped.
 *   2. Whatever runs has a deadline: its own timeout, or effects_stop(), whichever comes first.
 *      That of a command is kept to a fifth of a second, that of a call to a second.
 *   3. What comes back is bounded by EFFECT_BODY_MAX.
 *   4. An attempt that this process has no descriptor, process or memory to start is postponed and
 *      not counted. Once the process runs or a byte of the request is sent, it counts, whatever
 *      fails: it would be repeated without limit.
 *   5. An attempt that effects_stop() cuts off is postponed and not counted either: a stop happens
 *      once in the life of a process.
 *
 * Once all are bound nothing changes but `stop_at`: any number of threads may run effects. */
#ifndef DET_DAEMON_EFFECT_H
#define DET_DAEMON_EFFECT_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "config/config.h"
#include "config/module.h"

#define EFFECT_BODY_MAX 1048576
#define EFFECT_WHY_TEXT DET_ERROR_TEXT_MAX

/* A failed attempt, told on the thread that made it. */
struct effect_failure {
    const struct det_effect_call *call;
    const char *why;
    bool is_put_off; /* it is not counted: it was not started, or we stop */
};

struct effect_binding {
    const struct config_effect *config;
    const struct det_machine *machine;
    unsigned effect; /* its index there */
};

struct effects {
    struct modules modules; /* the first member: functions of modules know it by that */
    const struct det_allocator *allocator;
    struct det_world *world;
    struct effect_binding *bindings;
    size_t count, capacity;
    bool has_http;
    _Atomic det_time stop_at;          /* monotonic; DET_NEVER: nobody wants it to stop */
    const _Atomic det_time *forced_at; /* the same, from the thread of signals; NULL: none */
    _Atomic det_time short_until; /* monotonic: until then nobody is told again of a shortage */
    void (*tell)(void *user, const struct effect_failure *failure);
    void *user;
};

/* The configuration must stay. Before there are threads. 0, DET_ERR_NO_MEMORY or DET_ERR_IO. */
DET_MUST_CHECK int effects_open(
    struct effects *effects, const struct det_allocator *allocator, struct det_world *world,
    const struct config *config);
void effects_close(struct effects *effects);
/* Binds the effects of a definition that its part of the file lists, and that was checked together
 * with it. The runtime's `user` is then the struct effects. 0 or DET_ERR_NOT_FOUND. */
DET_MUST_CHECK int effects_bind(
    struct effects *effects, const struct config_machine *config, struct det_machine *machine);
/* The same for a definition of a module. */
DET_MUST_CHECK int effects_bind_module(
    struct effects *effects, const struct config_machine *config, struct module_machine *machine);
/* Whether it is one of them, or a module's. */
bool effects_has(const struct effects *effects, const char *machine, const char *effect);
/* For det_runtime_options.effect_policy. */
const struct det_effect_policy *effects_policy(
    void *user, const struct det_machine *machine, unsigned effect);
/* What runs at this (monotonic) time is cut off and postponed; nothing begins afterwards. From any
 * thread. */
void effects_stop(struct effects *effects, det_time at);

/* The parts. */

/* What came of one attempt. `code` is the exit code or the status; -1: there is none, and `why`
 * says what happened. */
struct effect_outcome {
    int code;
    int error;            /* where there is no code */
    det_time retry_after; /* what a server that is busy asks for; 0: nothing */
    bool is_success;
    bool is_shortage; /* it did not begin: we have no descriptor, process or memory for it */
    bool is_cut_off;  /* we stop */
    bool is_strict;   /* the body is an answer or empty; else it may be anything */
    struct det_buffer body;
    char why[EFFECT_WHY_TEXT];
};

/* The (monotonic) time at which an attempt that begins now must be over. */
det_time effect_deadline(const struct effects *effects, const struct effect_binding *binding);
bool effect_is_over(const struct effects *effects, det_time deadline);
/* Says that it is over, and why: its deadline, or effects_stop(). */
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

/* effect_answer.c: what the runtime is told. DET_EFFECT_DONE, DET_EFFECT_PRODUCED with the event,
 * or an error with the reason in outcome->why. */
DET_MUST_CHECK int effect_answer(
    const struct effects *effects, const struct effect_binding *binding,
    struct effect_outcome *outcome, void *ret);

#endif
