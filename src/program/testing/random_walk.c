/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_walk.c - a random walk: starts instances, sends what is legal and what is not, lets time
 * pass. */
#include <detent/tool/machine.h>

#include "testing/random_walk.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "testing/random_record.h"
#include "testing/transition_index.h"
#include "testing/walk_internal.h"

/* Chances in millionths. */
#define ADVANCES     300000
#define STOPS        3000
#define LEGAL        750000
#define HAS_ID       125000
#define TO_NEXT_DUE  500000
#define TO_FAR_DUE   60000 /* if it is more than an hour ahead: nearer ones reveal more */
#define POOL_THREADS 4

static void observe_note(void *context, const struct det_note *note)
{
    struct walk *walk = context;
    uint64_t seen[] = { note->sequence, note->from, note->to, note->event, (uint64_t)note->at };
    size_t edge;

    det_sim_note(walk->stage.sim, seen, sizeof seen);
    walk->result->events++;
    edge = walk_model_note(walk, note);
    walk_steer_note(walk, note, edge);
    if (walk->options->coverage)
        cli_coverage_note(walk->options->coverage, note, edge);
    if (walk->options->trace)
        cli_trace_step(walk->options->trace, note);
}

static void receive_incident(void *context, const struct det_incident *incident)
{
    walk_model_incident(context, incident);
}

static int open_memory(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    size_t size = det_machine_data(walk->machine)->size;

    walk->event = det_alloc_zero(allocator, walk->machine->event_size);
    walk->model.data = det_alloc_zero(allocator, size);
    walk->before = det_alloc_zero(allocator, size);
    walk->after = det_alloc_zero(allocator, size);
    return walk->event && walk->model.data && walk->before && walk->after ? 0 : DET_ERR_NO_MEMORY;
}

static int open_walk(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    struct det_sim_options sim = { .seed = walk->options->seed, .allocator = allocator };
    struct det_runtime_options runtime = {
        .allocator = allocator,
        .pool_threads = POOL_THREADS,
        .observe = observe_note,
        .incident = receive_incident,
        .observer = walk,
    };
    int r;

    r = open_memory(walk);
    if (r == 0)
        r = walk_steer_open(walk);
    return r < 0 ? r : cli_stage_open(&walk->stage, &sim, &runtime);
}

static void close_walk(struct walk *walk)
{
    const struct det_allocator *allocator = walk->options->allocator;
    size_t size = det_machine_data(walk->machine)->size;

    walk->result->hash = cli_stage_close(&walk->stage);
    walk_steer_close(walk);
    det_free(allocator, walk->event, walk->machine->event_size);
    det_free(allocator, walk->model.data, size);
    det_free(allocator, walk->before, size);
    det_free(allocator, walk->after, size);
}

static void start_instance(struct walk *walk)
{
    int r;

    snprintf(
        walk->instance, sizeof walk->instance, "it-%llu",
        (unsigned long long)++walk->result->instances);
    memset(walk->before, 0, det_machine_data(walk->machine)->size);
    cli_random_record(walk->stage.sim, det_machine_data(walk->machine), walk->before);
    /* An entry hook may refuse the start: by chance, so not for ever. */
    do
        r = det_runtime_start(
            walk->stage.runtime, walk->machine, walk->instance, walk->before, NULL, NULL, NULL);
    while (r == DET_ERR_ACTION_FAILED);
    if (r < 0)
        walk_fail(walk, "the start failed: %s", det_error_text(r));
}

static bool takes_event(const struct walk *walk, unsigned event)
{
    return det_machine_step(walk->machine, walk->model.state, event)->outcome !=
           DET_OUTCOME_UNHANDLED;
}

/* Mostly an event that the state takes from outside, sometimes any other. */
static unsigned choose_event(struct walk *walk)
{
    unsigned count = walk->machine->event_count;
    unsigned first = (unsigned)det_sim_random_below(walk->stage.sim, count);

    if (!det_sim_chance(walk->stage.sim, LEGAL))
        return first;
    for (unsigned i = 0; i < count; i++) {
        unsigned event = (first + i) % count;

        if (takes_event(walk, event) && !walk->machine->events[event].is_internal)
            return event;
    }
    return first;
}

/* Returns true if the table, the state and the random answers explain the error. */
static bool is_explained(const struct walk *walk, unsigned event, bool was_running, int error)
{
    const struct det_event_def *def = &walk->machine->events[event];
    const struct det_transition *step = det_machine_step(walk->machine, walk->model.state, event);

    if (def->is_internal || !was_running)
        return error == (def->is_internal ? DET_ERR_INVALID : DET_ERR_STOPPED) ||
               error == DET_ERR_STOPPED;
    if (error == DET_ERR_LIMIT)
        return true;
    if (step->outcome == DET_OUTCOME_UNHANDLED)
        return error == DET_ERR_UNHANDLED && def->unhandled == DET_UNHANDLED_ERROR;
    if (error == DET_ERR_REFUSED)
        return cli_may_be_refused(walk->machine, walk->model.state, event);
    return error == DET_ERR_ACTION_FAILED;
}

static void check_unchanged(struct walk *walk, const struct walk_view *before, const char *why)
{
    struct walk_view now;

    if (walk_observe(walk, &now, walk->after) < 0 || !walk_is_same(walk, before, &now))
        walk_fail(walk, "%s has changed something", why);
}

/* Sends the same event id again: it gets the first answer and changes nothing. */
static void send_again(
    struct walk *walk, const struct det_send_options *options, const struct det_sent *first)
{
    struct walk_view before;
    struct det_sent again;
    int r;

    /* The effects of the first one are done before the second one is checked. */
    if (det_sim_settle(walk->stage.sim) < 0 || walk_observe(walk, &before, walk->before) < 0)
        return;
    r = det_runtime_send(
        walk->stage.runtime, walk->machine, walk->instance, walk->event, options, &again, NULL);
    if (r < 0 || !again.is_duplicate || again.sequence != first->sequence ||
        again.outcome != first->outcome)
        walk_fail(walk, "the same event id again did not get the first answer");
    check_unchanged(walk, &before, "the same event id again");
}

static void send_event(struct walk *walk, unsigned event)
{
    const struct det_event_def *def = &walk->machine->events[event];
    bool has_id = det_sim_chance(walk->stage.sim, HAS_ID), was_running = walk->model.is_running;
    struct det_send_options options = { 0 };
    struct walk_view before;
    struct det_sent sent = { .outcome = DET_OUTCOME_UNHANDLED };
    char id[32];
    int r;

    snprintf(id, sizeof id, "event-%llu", (unsigned long long)walk->result->steps);
    options.event_id = has_id ? id : NULL;
    walk->decisions++;
    memset(walk->event, 0, walk->machine->event_size);
    memcpy(walk->event, &event, sizeof event);
    if (det_record_of(def->payload))
        cli_random_record(
            walk->stage.sim, det_record_of(def->payload),
            (char *)walk->event + def->payload_offset);
    r = walk_observe(walk, &before, walk->before);
    if (r == 0)
        r = det_runtime_send(
            walk->stage.runtime, walk->machine, walk->instance, walk->event, &options, &sent, NULL);
    if (r < 0) {
        walk->result->refused++;
        if (!is_explained(walk, event, was_running, r))
            walk_fail(
                walk, "sending %s failed with %s: unexpected error", def->name, det_error_name(r));
        check_unchanged(walk, &before, "a refused event");
    } else if (sent.outcome == DET_OUTCOME_IGNORED) {
        check_unchanged(walk, &before, "an ignored event");
    } else if (has_id && (sent.outcome == DET_OUTCOME_GOTO || sent.outcome == DET_OUTCOME_STAY)) {
        send_again(walk, &options, &sent);
    }
}

static int find_due(void *context, const struct det_timer_record *row)
{
    det_time *due = context;

    *due = row->due < *due ? row->due : *due;
    return 0;
}

/* Advances to the next timer if requested, else at random to it or by some span. */
static int advance_time(struct walk *walk, bool to_due)
{
    static const det_time scales[] = { DET_MILLISECOND, 100 * DET_MILLISECOND, 5 * DET_SECOND };
    det_time now = det_world_now(walk->stage.world, DET_CLOCK_WALL), due = DET_NEVER, scale;
    int r;

    r = det_runtime_timers(
        walk->stage.runtime, walk->machine, walk->instance, find_due, &due, NULL);
    if (r < 0)
        return r;
    if (due > now && due != DET_NEVER &&
        (to_due ||
         det_sim_chance(walk->stage.sim, due - now > DET_HOUR ? TO_FAR_DUE : TO_NEXT_DUE)))
        return det_sim_advance(walk->stage.sim, due - now);
    scale = scales[det_sim_random_below(walk->stage.sim, sizeof scales / sizeof *scales)];
    return det_sim_advance(
        walk->stage.sim, (det_time)det_sim_random_below(walk->stage.sim, 60) * scale);
}

/* Returns true if it cannot progress: no event from outside, no timer, no effect. */
static bool is_over(struct walk *walk)
{
    struct walk_view view;

    if (!walk->model.is_running)
        return true;
    for (unsigned i = 0; i < walk->machine->event_count; i++) {
        if (takes_event(walk, i) && !walk->machine->events[i].is_internal)
            return false;
    }
    return walk_observe(walk, &view, walk->after) == 0 && view.timers == 0 &&
           view.instance.effects_pending == 0;
}

static int stop_instance(struct walk *walk)
{
    return det_runtime_cancel(
        walk->stage.runtime, walk->machine, walk->instance, "manual stop", NULL, NULL, NULL);
}

static int move_by_chance(struct walk *walk)
{
    if (det_sim_chance(walk->stage.sim, STOPS))
        return stop_instance(walk);
    if (det_sim_chance(walk->stage.sim, ADVANCES))
        return advance_time(walk, false);
    send_event(walk, choose_event(walk));
    return 0;
}

static int move_once(struct walk *walk)
{
    unsigned event = 0;
    int r = 0;

    switch (walk_steer_aim(walk, &event)) {
    case WALK_AIM_NONE:
        r = move_by_chance(walk);
        break;
    case WALK_AIM_SEND:
        send_event(walk, event);
        break;
    case WALK_AIM_WAIT:
        r = advance_time(walk, true);
        break;
    case WALK_AIM_RESTART:
        r = stop_instance(walk);
        break;
    }
    return r;
}

static int walk_step(struct walk *walk)
{
    int r = move_once(walk);

    if (r == 0)
        r = det_sim_settle(walk->stage.sim);
    if (r < 0) {
        walk_fail(walk, "the simulation ended: %s", det_error_text(r));
        return r;
    }
    walk_check(walk);
    if (is_over(walk) && !*walk->result->violation) {
        start_instance(walk);
        r = det_sim_settle(walk->stage.sim);
    }
    return r;
}

/* The record of an instance: each event follows the one before. */
struct record_check {
    struct walk *walk;
    uint64_t sequence;
    unsigned state;
};

static int check_row(void *context, const struct det_event_record *row)
{
    struct record_check *check = context;

    if (check->sequence && (row->sequence != check->sequence + 1 || row->from != check->state))
        walk_fail(
            check->walk, "event %llu does not follow the one before in the record",
            (unsigned long long)row->sequence);
    check->sequence = row->sequence;
    check->state = row->to;
    return 0;
}

static int make_steps(struct walk *walk)
{
    struct record_check check = { .walk = walk };
    int r;

    start_instance(walk);
    r = det_sim_settle(walk->stage.sim);
    while (r == 0 && walk->result->steps < walk->options->steps && !*walk->result->violation &&
           !walk->options->is_stopped(walk->options->context)) {
        walk->result->steps++;
        r = walk_step(walk);
    }
    det_assert(walk->result->steps <= walk->options->steps);
    det_assert(walk->result->refused <= walk->result->steps);
    if (r == 0)
        r = det_runtime_events(
            walk->stage.runtime, walk->machine, walk->instance, 0, check_row, &check, NULL);
    return r;
}

int walk_machine(
    const struct det_machine *machine, const struct walk_options *options, struct walk_result *ret)
{
    struct walk walk = { .machine = machine, .options = options, .result = ret, .decisions = 1 };
    struct cli_stubs stubs = walk_stubs(&walk);
    int r;

    *ret = (struct walk_result){ 0 };
    r = open_walk(&walk);
    cli_stubs_use(&stubs);
    if (r == 0) {
        det_time from = cli_stage_now(&walk.stage);

        r = cli_stage_note(&walk.stage, make_steps(&walk));
        ret->virtual_time = cli_stage_now(&walk.stage) - from;
    }
    close_walk(&walk);
    cli_stubs_use(NULL);
    return r < 0 && *ret->violation ? 0 : r;
}
