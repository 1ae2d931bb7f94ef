/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machines.c - opens a store, serves machines, and tells what happens to their instances. */
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

/* Something to tell, from a thread to the loop. */
struct note {
    struct det_post post;
    struct up_machines *machines;
    bool is_failure;
    struct det_trace_context trace; /* without flags: none, or one that nobody keeps */
    char name[128];
    char instance[DET_ID_MAX + 1]; /* "": about none */
    char text[NOTE_TEXT];
};

/* What something to tell is about. */
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

    if (hidden)
        up_note_failure(
            up, UP_NAME, "%llu step%s %s not shown: there were too many at once",
            (unsigned long long)hidden, det_plural(hidden), det_is_or_are(hidden));
    if (!up_output_has_room(&up->output))
        ;
    else if (up->log && note->instance[0])
        log_note(up, note);
    else if (note->is_failure)
        up_note_failure(up, note->name, "%s", note->text);
    else
        up_note(up, note->name, "%s", note->text);
    DET_DELETE(up->output.outer->allocator, note);
    atomic_fetch_sub(&machines->notes, 1);
}

/* From any thread. */
static void tell(struct up_machines *machines, const struct about *about, const char *format, ...)
    DET_PRINTF(3, 4);

static void tell(struct up_machines *machines, const struct about *about, const char *format, ...)
{
    struct note *note = NULL;
    va_list arguments;

    if (!about->is_failure && machines->up->options->is_quiet)
        return;
    if (atomic_fetch_add(&machines->notes, 1) < NOTES_MAX)
        note = DET_NEW(machines->up->output.outer->allocator, struct note);
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
    det_loop_post(machines->up->loop, &note->post);
}

/* "o-1: pending -> charging (pay)" */
static void observe(void *user, const struct det_note *note)
{
    struct up_machines *machines = user;
    const struct det_machine *machine = note->machine;
    const char *event = note->event == UINT16_MAX ? NULL : machine->events[note->event].name;
    const char *from = machine->states[note->from].name, *to = machine->states[note->to].name;
    const char *by = note->is_timeout ? ", by a timer" : note->cause ? ", by an effect" : "";
    const struct about about = { machine->name, note->instance, note->trace, false };

    up_steps_observe(note);
    machines->up->options->front->notice(machines->up);
    up_observe_note(machines->up->observe, note);
    switch ((enum det_outcome)note->outcome) {
    case DET_OUTCOME_GOTO:
        if (event)
            tell(machines, &about, "%s: %s -> %s (%s%s)", note->instance, from, to, event, by);
        else
            tell(machines, &about, "%s: started, %s", note->instance, to);
        break;
    case DET_OUTCOME_STAY:
        tell(machines, &about, "%s: stays %s (%s%s)", note->instance, to, event, by);
        break;
    case DET_OUTCOME_STOP:
        tell(
            machines, &about, "%s: stopped in %s (%s%s)", note->instance, to,
            event ? event : "by hand", by);
        break;
    case DET_OUTCOME_DEFERRED:
        tell(machines, &about, "%s: %s is kept until %s is left", note->instance, event, to);
        break;
    case DET_OUTCOME_DEAD_LETTER: /* told as trouble */
    case DET_OUTCOME_UNHANDLED:
    case DET_OUTCOME_IGNORED:
        break;
    }
}

/* A failed attempt of a command or a call was told by the effect itself, which knows more. */
static void trouble(void *user, const struct det_incident *what)
{
    struct up_machines *machines = user;

    up_observe_trouble(machines->up->observe, what);
    if (what->kind == DET_INCIDENT_EFFECTS_QUEUED) {
        tell(
            machines, &(struct about){ .machine = UP_NAME, .is_failure = true }, "%s%s", what->text,
            what->code == DET_ERR_LIMIT ? "; raise limits.effects in " CONFIG_FILE_NAME : "");
        return;
    }
    if (what->kind != DET_INCIDENT_EFFECT_FAILED ||
        !effects_has(&machines->effects, what->machine->name, what->name))
        tell(
            machines,
            &(struct about){
                .machine = what->machine->name, .instance = what->instance, .is_failure = true },
            "%s", what->text);
}

static void tell_failure(void *user, const struct effect_failure *failure)
{
    const struct det_effect_call *call = failure->call;
    struct about about = { call->move.machine, call->move.instance, NULL, true };
    struct det_trace_context attempt;

    if (call->trace) {
        attempt = det_episode_attempt_context(call->trace, call->key, call->attempt);
        about.trace = &attempt;
    }
    if (failure->is_put_off)
        tell(
            user, &about, "%s: %s postponed; attempt %u is not counted: %s", call->move.instance,
            call->effect, call->attempt, failure->why);
    else
        tell(
            user, &about, "%s: %s failed, attempt %u: %s", call->move.instance, call->effect,
            call->attempt, failure->why);
}

/* Opening. */

/* The same order as for the commands on a store. */
const char *up_store_address(struct up *up)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets the environment here */
    const char *given = getenv("DETENT_STORE");

    if (given && *given)
        return given;
    return store_url_in(&up->file.arena, up->project, up->file.config.store);
}

static int find_url(struct up_machines *machines)
{
    struct det_arena *arena = &machines->up->file.arena;

    machines->address = up_store_address(machines->up);
    machines->url = machines->address ? store_url_shown(arena, machines->address) : NULL;
    return machines->url ? 0 : DET_ERR_NO_MEMORY;
}

static int open_runtime(struct up_machines *machines, struct det_error *reterr)
{
    const struct det_allocator *allocator = machines->up->output.outer->allocator;
    const struct det_store_options store = { .allocator = allocator };
    const struct det_runtime_options options = {
        .allocator = allocator,
        .pool_threads = machines->up->effects_max,
        .user = &machines->effects,
        .effect_policy = effects_policy,
        .observe = observe,
        .incident = trouble,
        .meter = &up_meter,
        .observer = machines,
    };
    int r = 0;

    machines->store = machines->up->shared;
    if (!machines->store)
        r = cli_store_open_in_turn(
            machines->up->cli, machines->address, &store, &machines->store, reterr);
    return r < 0 ? r : det_runtime_open(machines->store, &options, &machines->runtime, reterr);
}

/* The definition of a module instead of that of the spec. */
static int bind_module(
    struct up_machines *machines, const struct config_machine *config, struct det_machine **machine,
    struct det_error *reterr)
{
    struct module_machine *found;
    int r;

    r = modules_load(
        &machines->effects.modules, config, machines->up->project, *machine, &found, reterr);
    if (r < 0)
        return r;
    *machine = &found->machine;
    r = effects_bind_module(&machines->effects, config, found);
    return r < 0 ? det_error_set(reterr, r, "%s: %s", config->name, det_error_text(r)) : 0;
}

/* It was read and checked a moment ago, and may have changed since. */
static int define(struct up_machines *machines, size_t index, struct det_error *reterr)
{
    const struct config_machine *config = &machines->list[index];
    struct cli_problems problems = { .count = 0 };
    struct det_machine *machine;
    int r;

    if (cli_machine_load(machines->up->cli, config->spec, &machines->specs[index]) != CLI_OK)
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

/* What is kept while they rest. */
static int prepare(struct up_machines *machines, struct det_error *reterr)
{
    struct up *up = machines->up;
    const struct det_allocator *allocator = up->output.outer->allocator;
    int r;

    machines->specs = DET_NEW_ARRAY(allocator, machines->count, struct det_spec *);
    machines->served = DET_NEW_ARRAY(allocator, machines->count, struct det_machine *);
    r = machines->specs && machines->served
            ? effects_open(&machines->effects, allocator, up->cli->world, &up->file.config)
            : DET_ERR_NO_MEMORY;
    machines->effects.tell = tell_failure;
    machines->effects.user = machines;
    machines->effects.forced_at = up_deadline_forced_at(up);
    if (r == 0)
        r = find_url(machines);
    if (r < 0)
        return det_error_set(reterr, r, "machines cannot be served: %s", det_error_text(r));
    for (size_t i = 0; r == 0 && i < machines->count; i++) {
        prefix_learn(&up->prefix, machines->list[i].name);
        if (machines->list[i].is_served)
            r = define(machines, i, reterr);
    }
    return r;
}

static int begin(struct up_machines *machines, struct det_error *reterr)
{
    struct up *up = machines->up;
    int r;

    up->machines = machines;
    /* Of a reload that changes it 'detent' says that it needs a restart. */
    if (!up->effects_max)
        up->effects_max = config_effects(&up->file.config);
    r = open_runtime(machines, reterr);
    for (size_t i = 0; r == 0 && i < machines->count; i++) {
        if (!machines->served[i])
            continue;
        det_monitor_know(up->observe->monitor, machines->served[i]);
        r = det_runtime_serve(machines->runtime, machines->served[i], reterr);
    }
    return r;
}

int up_machines_open(struct up *up, struct det_error *reterr)
{
    struct up_machines *machines = DET_NEW(up->output.outer->allocator, struct up_machines);
    int r;

    if (!machines)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    machines->up = up;
    machines->list = up->file.config.machines;
    machines->count = up->file.config.machine_count;
    up->machines = machines;
    r = prepare(machines, reterr);
    return r < 0 ? r : begin(machines, reterr);
}

void up_machines_stop(struct up *up)
{
    if (up->machines)
        effects_stop(&up->machines->effects, det_loop_now(up->loop) + STOP_SPAN);
}

/* The opposite of begin(). */
static void end(struct up_machines *machines)
{
    struct up *up = machines->up;

    det_runtime_close(machines->runtime);
    machines->runtime = NULL;
    /* The last notes: all were posted by now. */
    (void)det_loop_turn(up->loop, 0);
    (void)det_loop_turn(up->loop, 0);
    det_assert(atomic_load(&machines->notes) == 0);
    if (!up->shared)
        det_store_close(machines->store);
    machines->store = NULL;
    /* Another definition may come to be where one of these was. */
    if (up->observe && up->observe->monitor)
        det_monitor_forget(up->observe->monitor);
    up->machines = NULL;
}

struct up_machines *up_machines_rest(struct up *up)
{
    struct up_machines *machines = up->machines;

    if (!machines)
        return NULL;
    effects_stop(&machines->effects, det_loop_now(up->loop));
    end(machines);
    modules_rest(&machines->effects.modules);
    return machines;
}

int up_machines_wake(struct up_machines *machines, struct det_error *reterr)
{
    int r;

    effects_stop(&machines->effects, DET_NEVER);
    machines->up->machines = machines;
    r = modules_wake(&machines->effects.modules, machines->up->project, reterr);
    return r < 0 ? r : begin(machines, reterr);
}

static void close_specs(struct up_machines *machines)
{
    const struct det_allocator *allocator = machines->up->output.outer->allocator;

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
    close_specs(machines);
    effects_close(&machines->effects);
    DET_DELETE(machines->up->output.outer->allocator, machines);
}

void up_machines_close(struct up *up)
{
    struct up_machines *machines = up->machines;

    /* A reload that failed closes those that it has just opened. */
    if (machines && up->state < UP_STOPPING)
        effects_stop(&machines->effects, det_loop_now(up->loop));
    if (machines)
        end(machines);
    up_machines_free(machines);
}

size_t up_machines_count(const struct up *up)
{
    const struct up_machines *machines = up->machines;
    size_t count = 0;

    for (size_t i = 0; machines && machines->served && i < machines->count; i++)
        count += machines->served[i] != NULL;
    return count;
}

void up_machines_say(struct up *up)
{
    const struct up_machines *machines = up->machines;

    for (size_t i = 0; machines && i < machines->count; i++) {
        if (machines->served[i])
            cli_say(up->cli, "Serves %s from %s.\n", machines->list[i].name, machines->url);
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
