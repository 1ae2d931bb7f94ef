/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verify.c - replays an instance from its records, and compares the results. */
#include <string.h>

#include "base/memory.h"
#include "machine/history_replay.h"
#include "runtime/walk.h"

struct verify {
    const struct det_machine *machine;
    struct det_replay replay;
    struct det_store_snapshot snapshot;
    bool has_snapshot;
    int (*visit)(void *context, const struct det_drift *drift);
    void *context;
};

static int report_drift(const struct verify *verify, const struct det_replay_drift *found)
{
    return verify->visit(
        verify->context, &(struct det_drift){
                             .sequence = found->sequence,
                             .event = found->event,
                             .from = found->from,
                             .recorded = found->recorded,
                             .derived = found->derived,
                             .text = found->text,
                         });
}

static const char *state_name(const struct verify *verify, unsigned state)
{
    return verify->machine->states[state].name;
}

/* Compares the snapshot with the state derived from the same events. */
static int compare_snapshot(const struct verify *verify, const struct det_replay_event *event)
{
    const struct det_store_head *head = &verify->snapshot.loaded.head;
    struct det_replay_drift found = {
        .sequence = event->sequence,
        .event = event->event,
        .from = event->from,
        .recorded = event->to,
        .text = "the state of the snapshot does not match its last event",
    };

    if (!verify->has_snapshot || head->sequence != event->sequence ||
        strcmp(state_name(verify, head->state), event->to) == 0)
        return 0;
    found.derived = state_name(verify, head->state);
    return report_drift(verify, &found);
}

static int visit_event(void *context, const struct det_store_event *row)
{
    struct verify *verify = context;
    const struct det_store_head *head = &verify->snapshot.loaded.head;
    struct det_replay_event event = {
        .sequence = row->sequence,
        .from = state_name(verify, row->from),
        .to = state_name(verify, row->to),
        .event = row->event != UINT16_MAX ? verify->machine->events[row->event].name : NULL,
        .outcome = row->outcome,
        .choice = row->choice,
    };
    struct det_replay_drift found;
    int r = 0;

    if (verify->replay.steps == 0 && verify->has_snapshot && head->sequence + 1 == row->sequence)
        det_replay_begin(&verify->replay, head->sequence, state_name(verify, head->state));
    if (!det_replay_step(&verify->replay, &event, &found))
        r = report_drift(verify, &found);
    return r == 0 ? compare_snapshot(verify, &event) : r;
}

/* A damaged snapshot is reported, and not used. */
static int load_snapshot(struct verify *verify, const struct det_turn *turn, void *data)
{
    const struct det_runtime *runtime = turn->runtime;
    struct det_replay_drift found = { .text = "the snapshot is damaged" };
    int r;

    verify->snapshot.loaded.data = data;
    r = runtime->ops->snapshot(runtime->store, turn->resident->handle, &verify->snapshot);
    verify->has_snapshot = r == 0;
    if (r == DET_ERR_CORRUPT)
        return report_drift(verify, &found);
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

/* The start; if it is not kept, any initial state is acceptable. */
static int load_start(struct verify *verify, const struct det_turn *turn, void *data)
{
    const struct det_runtime *runtime = turn->runtime;
    struct det_replay_drift found = { .text = "the start is damaged" };
    struct det_store_start start = { .data = data };
    int r;

    r = runtime->ops->start(runtime->store, turn->resident->handle, &start);
    if (r == DET_ERR_CORRUPT)
        return report_drift(verify, &found);
    if (r == 0)
        det_replay_begin(&verify->replay, 0, state_name(verify, start.state));
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

static int end(struct verify *verify, const struct det_store_head *head)
{
    const struct det_store_head *kept = &verify->snapshot.loaded.head;
    struct det_replay_drift found;

    if (verify->replay.steps == 0 && verify->has_snapshot)
        det_replay_begin(&verify->replay, kept->sequence, state_name(verify, kept->state));
    if (det_replay_end(&verify->replay, head->sequence, state_name(verify, head->state), &found))
        return 0;
    return report_drift(verify, &found);
}

/* The instance is claimed, so its head belongs to the last event. */
static int run_verify(struct verify *verify, const struct det_turn *turn)
{
    const struct det_runtime *runtime = turn->runtime;
    size_t size = turn->served->data_size;
    void *data = det_alloc_zero(runtime->allocator, size);
    int r;

    if (data == NULL)
        return DET_ERR_NO_MEMORY;
    r = load_start(verify, turn, data);
    if (r == 0)
        r = load_snapshot(verify, turn, data);
    if (r == 0)
        r = runtime->ops->events(runtime->store, turn->resident->handle, 0, visit_event, verify);
    if (r == 0)
        r = end(verify, &turn->resident->head);
    det_free(runtime->allocator, data, size);
    return r;
}

int det_runtime_verify(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_drift *drift), void *context, uint64_t *ret_steps,
    struct det_error *reterr)
{
    struct verify verify = { .machine = machine, .visit = visit, .context = context };
    struct det_turn turn;
    int r;

    r = det_walk_begin(&turn, runtime, machine, instance, reterr);
    if (r < 0)
        return r;
    det_replay_init(&verify.replay, machine);
    r = run_verify(&verify, &turn);
    det_walk_end(&turn);
    if (r < 0)
        return det_error_set(reterr, r, "%s %s: %s", machine->name, instance, det_error_text(r));
    if (r == 0 && ret_steps)
        *ret_steps = verify.replay.steps;
    return r;
}
