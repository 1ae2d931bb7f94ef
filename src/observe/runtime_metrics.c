/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime_metrics.c - counts reported events.
 *
 * A cache has a place for each combination of indices, empty until the first occurrence: then the
 * series is looked up. Two threads that look it up at once find the same series. */
#include "observe/runtime_metrics.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/row.h"

#define BUCKETS 64
/* Maximum number of cached transitions of a machine: 512 KiB of places. */
#define PLACES_MAX 65536
#define OUTCOMES   (DET_OUTCOME_DEAD_LETTER + 1)
/* Maximum number of submissions that are counted by slot. */
#define SUBMISSIONS_MAX 4096
#define SLOT_PREFIX     "slot:"
#define OTHER           "other"

enum result { DONE, PRODUCED, FAILED, RESULTS };
static const char *const result_names[] = {
    [DONE] = "done", [PRODUCED] = "produced", [FAILED] = "failed"
};

static const char *const incident_names[] = {
    [DET_INCIDENT_EFFECT_FAILED] = "effect_failed",
    [DET_INCIDENT_EFFECT_DEAD] = "effect_dead",
    [DET_INCIDENT_PRODUCT_REJECTED] = "product_rejected",
    [DET_INCIDENT_TIMEOUT_REJECTED] = "timeout_rejected",
    [DET_INCIDENT_EVENT_DEAD] = "event_dead",
    [DET_INCIDENT_EVENT_FAILED] = "event_failed",
    [DET_INCIDENT_NOT_LOADED] = "not_loaded",
    [DET_INCIDENT_EFFECTS_QUEUED] = "effects_queued",
};

typedef _Atomic(struct det_series *) place;

/* A registered machine and its places. */
struct known {
    struct known *next; /* in the same bucket */
    const struct det_machine *machine;
    size_t place_count;
    place *transitions; /* by state, event (the last one: no event) and outcome; NULL: too many */
    place *durations;   /* by state */
    place *attempts;    /* by effect and result */
    place *took;        /* by effect */
    place *lateness;    /* one */
    place places[];
};

/* A task in a slot. */
struct submission {
    struct submission *next; /* in the same bucket */
    uint64_t id;
    char label[sizeof SLOT_PREFIX + DET_TASK_NAME_MAX];
};

struct det_monitor {
    struct det_metrics *metrics;
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_mutex *mutex; /* protects additions to `known` */
    _Atomic(struct known *) known[BUCKETS];
    struct det_series *commit_took, *batch_events;
    struct submission *submissions[BUCKETS]; /* used by the thread that reports tasks */
    size_t submission_count;
};

static void set_gauge(
    struct det_monitor *monitor, enum det_metric metric, const char *name, int64_t value)
{
    det_series_set(det_metrics_series(monitor->metrics, metric, &name), value);
}

int det_monitor_open(
    struct det_metrics *metrics, struct det_world *world, const struct det_allocator *allocator,
    struct det_monitor **ret)
{
    struct det_monitor *monitor = DET_NEW(allocator, struct det_monitor);
    int r;

    if (!monitor)
        return DET_ERR_NO_MEMORY;
    monitor->metrics = metrics;
    monitor->world = det_world_or_real(world);
    monitor->allocator = allocator;
    monitor->commit_took = det_metrics_only(metrics, DET_METRIC_COMMIT_DURATION);
    monitor->batch_events = det_metrics_only(metrics, DET_METRIC_BATCH_EVENTS);
    set_gauge(monitor, DET_METRIC_BUILD_INFO, det_version(), 1);
    r = det_mutex_open(monitor->world, &monitor->mutex);
    if (r < 0) {
        DET_DELETE(allocator, monitor);
        return r;
    }
    *ret = monitor;
    return 0;
}

static size_t known_size(const struct known *known)
{
    return sizeof *known + known->place_count * sizeof(place);
}

void det_monitor_forget(struct det_monitor *monitor)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        struct known *next, *known = atomic_exchange(&monitor->known[i], NULL);

        for (; known; known = next) {
            next = known->next;
            det_free(monitor->allocator, known, known_size(known));
        }
    }
}

static size_t bucket_of(const struct det_machine *machine)
{
    return ((uintptr_t)machine >> 6) % BUCKETS;
}

static struct known *find_machine(struct det_monitor *monitor, const struct det_machine *machine)
{
    struct known *known =
        atomic_load_explicit(&monitor->known[bucket_of(machine)], memory_order_acquire);

    while (known && known->machine != machine)
        known = known->next;
    return known;
}

static size_t transition_count(const struct det_machine *machine)
{
    size_t count = (size_t)machine->state_count * ((size_t)machine->event_count + 1) * OUTCOMES;

    return count <= PLACES_MAX ? count : 0;
}

static struct known *known_open(
    const struct det_monitor *monitor, const struct det_machine *machine)
{
    size_t transitions = transition_count(machine), states = machine->state_count,
           effects = machine->effect_count;
    struct known head = { .machine = machine,
                          .place_count = transitions + states + effects * (RESULTS + 1) + 1 };
    struct known *known = det_alloc_zero(monitor->allocator, known_size(&head));

    if (!known)
        return NULL;
    known->machine = machine;
    known->place_count = head.place_count;
    known->transitions = transitions ? known->places : NULL;
    known->durations = known->places + transitions;
    known->attempts = known->durations + states;
    known->took = known->attempts + effects * RESULTS;
    known->lateness = known->took + effects;
    det_assert(known->lateness + 1 == known->places + known->place_count);
    return known;
}

void det_monitor_add_machine(struct det_monitor *monitor, const struct det_machine *machine)
{
    struct known *known;

    det_mutex_lock(monitor->world, monitor->mutex);
    known = find_machine(monitor, machine) ? NULL : known_open(monitor, machine);
    if (known) {
        known->next = atomic_load(&monitor->known[bucket_of(machine)]);
        atomic_store_explicit(&monitor->known[bucket_of(machine)], known, memory_order_release);
    }
    det_mutex_unlock(monitor->world, monitor->mutex);
}

/* Returns the series of a place; NULL: the place is not cached. */
static struct det_series *series_at(
    struct det_monitor *monitor, place *at, enum det_metric metric, const char *const *values)
{
    struct det_series *series = at ? atomic_load_explicit(at, memory_order_acquire) : NULL;

    if (series)
        return series;
    series = det_metrics_series(monitor->metrics, metric, values);
    if (at)
        atomic_store_explicit(at, series, memory_order_release);
    return series;
}

static const char *event_name(const struct det_note *note)
{
    if (note->event != UINT16_MAX)
        return note->machine->events[note->event].name;
    return note->outcome == DET_OUTCOME_STOP ? "stop" : "start";
}

static void count_transition(
    struct det_monitor *monitor, const struct known *known, const struct det_note *note)
{
    const struct det_machine *machine = note->machine;
    size_t event = note->event == UINT16_MAX ? machine->event_count : note->event;
    size_t index =
        (note->from * ((size_t)machine->event_count + 1) + event) * OUTCOMES + note->outcome;
    place *at = known && known->transitions ? &known->transitions[index] : NULL;
    const char *const values[] = { machine->name, machine->states[note->from].name,
                                   event_name(note), det_outcome_name(note->outcome) };
    det_series_count(series_at(monitor, at, DET_METRIC_TRANSITIONS, values), 1);
}

static void count_duration(
    struct det_monitor *monitor, const struct known *known, const struct det_note *note)
{
    const char *const values[] = { note->machine->name, note->machine->states[note->from].name };

    det_series_observe(
        series_at(
            monitor, known ? &known->durations[note->from] : NULL, DET_METRIC_STATE_DURATION,
            values),
        note->at - note->since);
}

void det_monitor_note(struct det_monitor *monitor, const struct det_note *note)
{
    const struct det_machine *machine = note->machine;
    const struct known *known = find_machine(monitor, machine);

    det_assert(note->from < machine->state_count && (size_t)note->outcome < OUTCOMES);
    det_assert(note->event < machine->event_count || note->event == UINT16_MAX);
    count_transition(monitor, known, note);
    if (note->since && (note->outcome == DET_OUTCOME_GOTO || note->outcome == DET_OUTCOME_STOP))
        count_duration(monitor, known, note);
}

void det_monitor_incident(struct det_monitor *monitor, const struct det_incident *incident)
{
    const char *values[] = { incident->machine->name, NULL };

    det_assert(incident->kind < sizeof incident_names / sizeof *incident_names);
    values[1] = incident_names[incident->kind];
    det_series_count(det_metrics_series(monitor->metrics, DET_METRIC_INCIDENTS, values), 1);
}

void det_monitor_commit(struct det_monitor *monitor, const struct det_commit_figures *figures)
{
    const char *const values[] = { det_error_name(figures->result) };

    det_series_observe(monitor->commit_took, figures->took);
    det_series_observe(monitor->batch_events, (int64_t)figures->events);
    if (figures->result < 0)
        det_series_count(
            det_metrics_series(monitor->metrics, DET_METRIC_COMMITS_FAILED, values), 1);
}

static enum result result_of(int answer)
{
    if (answer < 0)
        return FAILED;
    return answer == DET_EFFECT_PRODUCED ? PRODUCED : DONE;
}

void det_monitor_attempt(struct det_monitor *monitor, const struct det_attempt_figures *figures)
{
    const struct known *known = find_machine(monitor, figures->machine);
    enum result result = result_of(figures->result);
    const char *const values[] = { figures->machine->name, figures->name, result_names[result] };
    place *attempts = known ? &known->attempts[figures->effect * RESULTS + result] : NULL;
    place *took = known ? &known->took[figures->effect] : NULL;

    det_assert(figures->effect < figures->machine->effect_count);
    det_series_count(series_at(monitor, attempts, DET_METRIC_EFFECT_ATTEMPTS, values), 1);
    det_series_observe(series_at(monitor, took, DET_METRIC_EFFECT_DURATION, values), figures->took);
}

void det_monitor_timeout(
    struct det_monitor *monitor, const struct det_machine *machine, det_time late)
{
    const struct known *known = find_machine(monitor, machine);

    det_series_observe(
        series_at(
            monitor, known ? known->lateness : NULL, DET_METRIC_TIMER_LATENESS, &machine->name),
        late);
}

void det_monitor_unhandled(
    struct det_monitor *monitor, const struct det_machine *machine, unsigned state, unsigned event)
{
    const char *values[] = { machine->name, NULL, NULL };

    det_assert(state < machine->state_count && event < machine->event_count);
    values[1] = machine->states[state].name;
    values[2] = machine->events[event].name;
    det_series_count(det_metrics_series(monitor->metrics, DET_METRIC_EVENTS_UNHANDLED, values), 1);
}

/* Tasks. */

/* Submissions until they finish; those beyond the limit count as other. */

static struct submission **find_submission(struct det_monitor *monitor, uint64_t id)
{
    struct submission **at = &monitor->submissions[id % BUCKETS];

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void add_submission(struct det_monitor *monitor, const struct det_task_event *event)
{
    struct submission **at = find_submission(monitor, event->id), *submission;

    if (*at || event->id == 0 || monitor->submission_count == SUBMISSIONS_MAX)
        return;
    submission = DET_NEW(monitor->allocator, struct submission);
    if (!submission)
        return;
    submission->id = event->id;
    snprintf(submission->label, sizeof submission->label, SLOT_PREFIX "%s", event->name);
    det_assert(monitor->submission_count < SUBMISSIONS_MAX);
    monitor->submission_count++;
    *at = submission;
}

static void drop_submission(struct det_monitor *monitor, uint64_t id)
{
    struct submission **at = find_submission(monitor, id), *submission = *at;

    if (!submission)
        return;
    det_assert(monitor->submission_count > 0);
    *at = submission->next;
    monitor->submission_count--;
    DET_DELETE(monitor->allocator, submission);
}

static void drop_submissions(struct det_monitor *monitor)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        while (monitor->submissions[i])
            drop_submission(monitor, monitor->submissions[i]->id);
    }
    det_assert(monitor->submission_count == 0);
}

static void count_restart(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting)
{
    const struct submission *submission = *find_submission(monitor, event->id);
    const char *name = is_lasting ? event->name : submission ? submission->label : OTHER;

    det_series_count(det_metrics_series(monitor->metrics, DET_METRIC_RESTARTS, &name), 1);
}

static void note_task(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting)
{
    const char *const name = event->name;

    if (event->kind == DET_TASK_EVENT_ATTEMPT_STARTING && event->is_restart)
        count_restart(monitor, event, is_lasting);
    if (event->kind == DET_TASK_EVENT_TASK_FINISHED)
        drop_submission(monitor, event->id);
    if (is_lasting && event->kind == DET_TASK_EVENT_BACKOFF_SCHEDULED)
        set_gauge(monitor, DET_METRIC_BACKOFF, name, event->delay);
    if (is_lasting && (event->kind == DET_TASK_EVENT_ATTEMPT_STARTING ||
                       event->kind == DET_TASK_EVENT_TASK_FINISHED))
        set_gauge(monitor, DET_METRIC_BACKOFF, name, 0);
    if (!is_lasting && event->kind == DET_TASK_EVENT_TASK_REMOVED) {
        det_metrics_forget(monitor->metrics, DET_METRIC_BACKOFF, &name);
        det_metrics_forget(monitor->metrics, DET_METRIC_RESTARTS, &name);
    }
}

static void count_rejected(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting)
{
    const char *const values[] = { is_lasting ? event->name : OTHER,
                                   det_rejection_label((enum det_rejection)event->rejection) };

    det_series_count(det_metrics_series(monitor->metrics, DET_METRIC_SLOT_REJECTED, values), 1);
}

static void note_slot(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting)
{
    const char *const name = event->name;

    if (event->kind == DET_TASK_EVENT_SLOT_SUBMITTED)
        add_submission(monitor, event);
    if (event->kind == DET_TASK_EVENT_SLOT_REJECTED) {
        drop_submission(monitor, event->id);
        count_rejected(monitor, event, is_lasting);
    }
    if (is_lasting)
        set_gauge(monitor, DET_METRIC_SLOT_QUEUE_DEPTH, name, (int64_t)event->count);
    else
        det_metrics_forget(monitor->metrics, DET_METRIC_SLOT_QUEUE_DEPTH, &name);
}

static void count_lost(struct det_monitor *monitor, const struct det_task_event *event)
{
    const char *const name = event->name;

    det_series_count(
        det_metrics_series(monitor->metrics, DET_METRIC_TASK_EVENTS_LOST, &name), event->count);
}

void det_monitor_task(
    struct det_monitor *monitor, const struct det_task_event *event, bool is_lasting)
{
    if (event->kind == DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED) {
        count_lost(monitor, event);
        return;
    }
    if (event->kind == DET_TASK_EVENT_SLOT_SUBMITTED ||
        event->kind == DET_TASK_EVENT_SLOT_REJECTED || event->kind == DET_TASK_EVENT_SLOT_CHANGED)
        note_slot(monitor, event, is_lasting);
    else
        note_task(monitor, event, is_lasting);
}

void det_monitor_close(struct det_monitor *monitor)
{
    if (!monitor)
        return;
    det_monitor_forget(monitor);
    drop_submissions(monitor);
    det_mutex_close(monitor->world, monitor->mutex);
    DET_DELETE(monitor->allocator, monitor);
}
