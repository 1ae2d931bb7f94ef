/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machines.c - opens a store, serves machines, and reports what happens to their instances. */
#include <detent/driver/loop.h>

#include "daemon/machines.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "daemon/telemetry.h"
#include "inspect/store_internal.h"

#define NOTES_MAX 4096
#define NOTE_TEXT 512
#define STOP_SPAN (5 * DET_SECOND)

/* A message from any thread to the loop. */
struct note {
    struct det_post post;
    struct up_machines *machines;
    bool is_failure;
    struct det_trace_context trace; /* without flags: none, or not sampled */
    char name[128];
    char instance[DET_ID_MAX + 1]; /* "": none */
    char text[NOTE_TEXT];
};

/* The subject of a message. */
struct about {
    const char *machine;
    const char *instance;                  /* NULL: none */
    const struct det_trace_context *trace; /* NULL: none */
    bool is_failure;
};

static void log_note(struct up *up, const struct note *note)
{
    enum det_log_level level = note->is_failure ? DET_LOG_WARNING : DET_LOG_INFO;

    serve_log_step(
        up, level, note->name, note->instance, note->trace.flags ? &note->trace : NULL, note->text);
}

static void print_note(void *argument)
{
    struct note *note = argument;
    struct up_machines *machines = note->machines;
    struct up *up = machines->up;
    uint64_t hidden = atomic_exchange(&machines->hidden, 0);

    det_assert(atomic_load(&machines->notes) > 0);
    if (hidden)
        up_note_failure(
            up, UP_NAME, "%llu step%s %s not shown: too many at once", (unsigned long long)hidden,
            det_plural(hidden), det_is_or_are(hidden));
    if (!up_has_output_room(up))
        ;
    else if (up_logger(up) && note->instance[0])
        log_note(up, note);
    else if (note->is_failure)
        up_note_failure(up, note->name, "%s", note->text);
    else
        up_note(up, note->name, "%s", note->text);
    DET_DELETE(up_allocator(up), note);
    atomic_fetch_sub(&machines->notes, 1);
}

/* Posts a message. Any thread. */
static void post_note(
    struct up_machines *machines, const struct about *about, const char *format, ...)
    DET_PRINTF(3, 4);

static void post_note(
    struct up_machines *machines, const struct about *about, const char *format, ...)
{
    struct note *note = NULL;
    va_list arguments;

    if (!about->is_failure && up_options(machines->up)->is_quiet)
        return;
    if (atomic_fetch_add(&machines->notes, 1) < NOTES_MAX)
        note = DET_NEW(up_allocator(machines->up), struct note);
    if (!note) {
        atomic_fetch_sub(&machines->notes, 1);
        atomic_fetch_add(&machines->hidden, 1);
        return;
    }
    note->post = (struct det_post){ .run = print_note, .argument = note };
    note->machines = machines;
    note->is_failure = about->is_failure;
    if (about->trace)
        note->trace = *about->trace;
    snprintf(note->name, sizeof note->name, "%s", about->machine);
    snprintf(note->instance, sizeof note->instance, "%s", about->instance ? about->instance : "");
    va_start(arguments, format);
    vsnprintf(note->text, sizeof note->text, format, arguments);
    va_end(arguments);
    det_loop_post(up_loop(machines->up), &note->post);
}

/* "o-1: pending -> charging (pay)" */
static void observe_step(void *user, const struct det_note *note)
{
    struct up_machines *machines = user;
    const struct det_machine *machine = note->machine;
    const char *event = note->event == UINT16_MAX ? NULL : machine->events[note->event].name;
    const char *from = machine->states[note->from].name, *to = machine->states[note->to].name;
    const char *by = note->is_timeout ? ", by a timer" : note->cause ? ", by an effect" : "";
    const struct about about = { machine->name, note->instance, note->trace, false };

    det_assert(note->from < machine->state_count && note->to < machine->state_count);
    det_assert(!event || note->event < machine->event_count);
    up_steps_observe(note);
    up_options(machines->up)->front->notice(machines->up);
    up_observe_note(up_observe(machines->up), note);
    switch ((enum det_outcome)note->outcome) {
    case DET_OUTCOME_GOTO:
        if (event)
            post_note(machines, &about, "%s: %s -> %s (%s%s)", note->instance, from, to, event, by);
        else
            post_note(machines, &about, "%s: started, %s", note->instance, to);
        break;
    case DET_OUTCOME_STAY:
        post_note(machines, &about, "%s: stays %s (%s%s)", note->instance, to, event, by);
        break;
    case DET_OUTCOME_STOP:
        post_note(
            machines, &about, "%s: stopped in %s (%s%s)", note->instance, to,
            event ? event : "on request", by);
        break;
    case DET_OUTCOME_DEFERRED:
        post_note(
            machines, &about, "%s: %s is deferred until %s is left", note->instance, event, to);
        break;
    case DET_OUTCOME_DEAD_LETTER: /* reported as an incident */
    case DET_OUTCOME_UNHANDLED:
    case DET_OUTCOME_IGNORED:
        break;
    }
}

/* Reports an incident. Failed attempts of commands and calls are reported in report_failure(), with
 * more details. */
static void report_incident(void *user, const struct det_incident *what)
{
    struct up_machines *machines = user;

    up_observe_incident(up_observe(machines->up), what);
    if (what->kind == DET_INCIDENT_EFFECTS_QUEUED) {
        post_note(
            machines, &(struct about){ .machine = UP_NAME, .is_failure = true }, "%s%s", what->text,
            what->code == DET_ERR_LIMIT ? "; raise limits.effects in " CONFIG_FILE_NAME : "");
        return;
    }
    if (what->kind != DET_INCIDENT_EFFECT_FAILED ||
        !effects_has(&machines->effects, what->machine->name, what->name))
        post_note(
            machines,
            &(struct about){
                .machine = what->machine->name, .instance = what->instance, .is_failure = true },
            "%s", what->text);
}

static void report_failure(void *user, const struct effect_failure *failure)
{
    const struct det_effect_call *call = failure->call;
    struct about about = { call->move.machine, call->move.instance, NULL, true };
    struct det_trace_context attempt;

    if (call->trace) {
        attempt = det_episode_attempt_context(call->trace, call->key, call->attempt);
        about.trace = &attempt;
    }
    if (failure->is_put_off)
        post_note(
            user, &about, "%s: %s postponed; attempt %u is not counted: %s", call->move.instance,
            call->effect, call->attempt, failure->why);
    else
        post_note(
            user, &about, "%s: %s failed, attempt %u: %s", call->move.instance, call->effect,
            call->attempt, failure->why);
}

/* Opening. */

/* Same order of precedence as in commands that open a store. */
const char *up_store_address(struct up *up)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed */
    const char *given = getenv("DETENT_STORE");

    if (given && *given)
        return given;
    return store_url_in(up_config_arena(up), up_folder(up), up_config(up)->store);
}

static int find_url(struct up_machines *machines)
{
    struct det_arena *arena = up_config_arena(machines->up);

    machines->address = up_store_address(machines->up);
    machines->url = machines->address ? store_url_shown(arena, machines->address) : NULL;
    return machines->url ? 0 : DET_ERR_NO_MEMORY;
}

static int open_runtime(struct up_machines *machines, struct det_error *reterr)
{
    const struct det_allocator *allocator = up_allocator(machines->up);
    const struct det_store_options store = { .allocator = allocator };
    const struct det_runtime_options options = {
        .allocator = allocator,
        .pool_threads = up_effects_max(machines->up),
        .user = &machines->effects,
        .effect_policy = effects_policy,
        .observe = observe_step,
        .incident = report_incident,
        .meter = &up_meter,
        .observer = machines,
    };
    int r = 0;

    machines->store = up_shared_store(machines->up);
    if (!machines->store)
        r = cli_store_open_in_turn(
            up_cli(machines->up), machines->address, &store, &machines->store, reterr);
    return r < 0 ? r : det_runtime_open(machines->store, &options, &machines->runtime, reterr);
}

/* Uses the definition of the module instead of that of the spec. */
static int bind_module(
    struct up_machines *machines, const struct config_machine *config, struct det_machine **machine,
    struct det_error *reterr)
{
    struct module_machine *found;
    int r;

    r = modules_load(
        &machines->effects.modules, config, up_folder(machines->up), *machine, &found, reterr);
    if (r < 0)
        return r;
    *machine = &found->machine;
    r = effects_bind_module(&machines->effects, config, found);
    return r < 0 ? det_error_set(reterr, r, "%s: %s", config->name, det_error_text(r)) : 0;
}

/* Loads and checks the spec again: it may have changed since the file was read. */
static int define_machine(struct up_machines *machines, size_t index, struct det_error *reterr)
{
    const struct config_machine *config = &machines->list[index];
    struct cli_problems problems = { .count = 0 };
    struct det_machine *machine;
    int r;

    det_assert(index < machines->count && !machines->served[index]);
    if (cli_machine_load(up_cli(machines->up), config->spec, &machines->specs[index]) != CLI_OK)
        return det_error_set(reterr, DET_ERR_DEFINITION, "%s cannot be served", config->name);
    machine = det_spec_machine(machines->specs[index]);
    if (config_check_machine(config, machine, &problems) < 0)
        return det_error_set(
            reterr, DET_ERR_DEFINITION, "%s: %s", config->spec, problems.items[0].text);
    r = config->module ? bind_module(machines, config, &machine, reterr)
                       : effects_bind(&machines->effects, config, machine);
    if (r < 0 && !config->module)
        return det_error_set(reterr, r, "%s: %s", config->name, det_error_text(r));
    machines->served[index] = machine;
    return r;
}

/* Loads what machines keep while they rest. */
static int prepare_machines(struct up_machines *machines, struct det_error *reterr)
{
    struct up *up = machines->up;
    const struct det_allocator *allocator = up_allocator(up);
    int r;

    machines->specs = DET_NEW_ARRAY(allocator, machines->count, struct det_spec *);
    machines->served = DET_NEW_ARRAY(allocator, machines->count, struct det_machine *);
    r = machines->specs && machines->served
            ? effects_open(&machines->effects, allocator, up_cli(up)->world, up_config(up))
            : DET_ERR_NO_MEMORY;
    machines->effects.report = report_failure;
    machines->effects.user = machines;
    machines->effects.forced_at = up_deadline_forced_at(up);
    if (r == 0)
        r = find_url(machines);
    if (r < 0)
        return det_error_set(reterr, r, "machines cannot be served: %s", det_error_text(r));
    for (size_t i = 0; r == 0 && i < machines->count; i++) {
        prefix_learn(up_prefix(up), machines->list[i].name);
        if (machines->list[i].is_served)
            r = define_machine(machines, i, reterr);
    }
    return r;
}

static int begin_serving(struct up_machines *machines, struct det_error *reterr)
{
    struct up *up = machines->up;
    int r;

    det_assert(!machines->runtime && !machines->store);
    up_set_machines(up, machines);
    /* A reload cannot change it: the plan reports that it needs a restart. */
    if (!up_effects_max(up))
        up_set_effects_max(up, config_effects(up_config(up)));
    r = open_runtime(machines, reterr);
    for (size_t i = 0; r == 0 && i < machines->count; i++) {
        if (!machines->served[i])
            continue;
        det_monitor_add_machine(up_observe(up)->monitor, machines->served[i]);
        r = det_runtime_serve(machines->runtime, machines->served[i], reterr);
    }
    return r;
}

int up_machines_open(struct up *up, struct det_error *reterr)
{
    struct up_machines *machines = DET_NEW(up_allocator(up), struct up_machines);
    int r;

    det_assert(!up_machines(up));
    if (!machines)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    machines->up = up;
    machines->list = up_config(up)->machines;
    machines->count = up_config(up)->machine_count;
    up_set_machines(up, machines);
    r = prepare_machines(machines, reterr);
    return r < 0 ? r : begin_serving(machines, reterr);
}

void up_machines_stop(struct up *up)
{
    if (up_machines(up))
        effects_stop(&up_machines(up)->effects, det_loop_now(up_loop(up)) + STOP_SPAN);
}

/* The opposite of begin_serving(). */
static void end_serving(struct up_machines *machines)
{
    struct up *up = machines->up;

    det_runtime_close(machines->runtime);
    machines->runtime = NULL;
    /* The last messages: all are posted by now. */
    (void)det_loop_turn(up_loop(up), 0);
    (void)det_loop_turn(up_loop(up), 0);
    det_assert(atomic_load(&machines->notes) == 0);
    if (!up_shared_store(up))
        det_store_close(machines->store);
    machines->store = NULL;
    /* Another definition may get the same address. */
    if (up_observe(up) && up_observe(up)->monitor)
        det_monitor_forget(up_observe(up)->monitor);
    up_set_machines(up, NULL);
}

struct up_machines *up_machines_rest(struct up *up)
{
    struct up_machines *machines = up_machines(up);

    if (!machines)
        return NULL;
    effects_stop(&machines->effects, det_loop_now(up_loop(up)));
    end_serving(machines);
    modules_suspend(&machines->effects.modules);
    return machines;
}

int up_machines_wake(struct up_machines *machines, struct det_error *reterr)
{
    int r;

    det_assert(!machines->runtime && !up_machines(machines->up));
    effects_stop(&machines->effects, DET_NEVER);
    up_set_machines(machines->up, machines);
    r = modules_resume(&machines->effects.modules, up_folder(machines->up), reterr);
    return r < 0 ? r : begin_serving(machines, reterr);
}

static void close_specs(struct up_machines *machines)
{
    const struct det_allocator *allocator = up_allocator(machines->up);

    for (size_t i = 0; machines->specs && i < machines->count; i++)
        det_spec_close(machines->specs[i]);
    if (machines->specs)
        DET_DELETE_ARRAY(allocator, machines->specs, machines->count);
    if (machines->served)
        DET_DELETE_ARRAY(allocator, machines->served, machines->count);
}

void up_machines_free(struct up_machines *machines)
{
    if (!machines)
        return;
    det_assert(!machines->runtime && atomic_load(&machines->notes) == 0);
    close_specs(machines);
    effects_close(&machines->effects);
    DET_DELETE(up_allocator(machines->up), machines);
}

void up_machines_close(struct up *up)
{
    struct up_machines *machines = up_machines(up);

    /* A failed reload closes the machines that it has opened. */
    if (machines && !up_is_stopping(up))
        effects_stop(&machines->effects, det_loop_now(up_loop(up)));
    if (machines)
        end_serving(machines);
    up_machines_free(machines);
}

size_t up_machines_count(const struct up *up)
{
    const struct up_machines *machines = up_machines(up);
    size_t count = 0;

    for (size_t i = 0; machines && machines->served && i < machines->count; i++)
        count += machines->served[i] != NULL;
    return count;
}

void up_machines_print(struct up *up)
{
    const struct up_machines *machines = up_machines(up);

    for (size_t i = 0; machines && i < machines->count; i++) {
        if (machines->served[i])
            cli_print_error(
                up_cli(up), "Serves %s from %s.\n", machines->list[i].name, machines->url);
    }
}

const struct det_spec *up_machines_spec(const struct up_machines *machines, const char *name)
{
    for (size_t i = 0; i < machines->count; i++) {
        if (machines->specs[i] && strcmp(machines->list[i].name, name) == 0)
            return machines->specs[i];
    }
    return NULL;
}

struct det_machine *up_machines_find(struct up_machines *machines, const char *name)
{
    for (size_t i = 0; i < machines->count; i++) {
        if (machines->served[i] && strcmp(machines->list[i].name, name) == 0)
            return machines->served[i];
    }
    return NULL;
}
