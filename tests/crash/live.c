/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* live.c - senders, timers and effects of a runtime on a recorded disk, and its power cuts. */
#include "crash/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/driver/store.h>
#include <detent/driver/world.h>

#include "os/os.h"

#define FSM_SPEC "crash/parcel.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "crash/parcel.fsm"
#include <detent/fsm/define.h>

#define REPORTED_MAX 10

static void must(bool is_well, const char *what)
{
    if (is_well)
        return;
    fprintf(stderr, "crash: %s\n", what);
    abort();
}

static void count_note(struct parcel_data *data, const struct parcel_event *event)
{
    (void)event;
    data->notes++;
}

/* A random number, at least one. */
static int rest(struct live *live, unsigned seconds_max)
{
    det_time seconds = 1 + (det_time)det_sim_random_below(live->bed.sim, seconds_max);

    return det_world_sleep(live->world, seconds * DET_SECOND);
}

/* The first attempt of some effects fails. */
static bool fails(struct live *live, const struct det_effect_call *call)
{
    return call->attempt == 1 && det_sim_chance(live->bed.sim, 300000);
}

static int charge(
    struct det_effect_call *call, const struct parcel_data *data, const struct parcel_event *event,
    struct parcel_event *ret)
{
    struct live *live = call->move.user;

    (void)data;
    if (fails(live, call))
        return DET_ERR_IO;
    if (det_sim_chance(live->bed.sim, 200000) && rest(live, 400) < 0)
        return DET_ERR_NO_MEMORY;
    *ret = parcel_charged((struct label){ event->pay.number });
    return DET_EFFECT_PRODUCED;
}

static int deliver(
    struct det_effect_call *call, const struct parcel_data *data, const struct parcel_event *event,
    struct parcel_event *ret)
{
    (void)data, (void)event;
    if (fails(call->move.user, call))
        return DET_ERR_IO;
    *ret = parcel_arrived();
    return DET_EFFECT_PRODUCED;
}

const struct det_machine *parcel_definition(void)
{
    return &parcel_machine;
}

void live_id(char target[32], char letter, unsigned number)
{
    snprintf(target, 32, "%c-%u", letter, number);
}

/* Records promises from here on. */
static void mark(struct live *live)
{
    if (live->is_revived)
        return;
    if (live->promise_count == live->promise_capacity) {
        live->promise_capacity = live->promise_capacity ? 2 * live->promise_capacity : 256;
        live->promises = realloc(live->promises, live->promise_capacity * sizeof *live->promises);
        must(live->promises, "no memory");
    }
    live->promises[live->promise_count++] = live->promise;
    crash_disk_mark(&live->bed.disks[0], live->promise_count);
}

static void observe(void *user, const struct det_note *note)
{
    struct live *live = user;
    unsigned instance = (unsigned)strtoul(note->instance + 2, NULL, 10);

    must(instance < LIVE_INSTANCES, "a note of an instance that was not started");
    if (live->is_revived)
        return;
    live->promise.reported[instance] = (int64_t)note->sequence;
    mark(live);
}

int live_open_runtime(struct live *live)
{
    struct det_runtime_options options = { .world = live->world,
                                           .user = live,
                                           .observer = live,
                                           .observe = observe,
                                           .shards = 4,
                                           .snapshots = { .every = 5, .events_kept = 12 } };
    int r;

    r = det_runtime_open(live->store, &options, &live->runtime, NULL);
    return r < 0 ? r : det_runtime_serve(live->runtime, parcel_definition(), NULL);
}

static struct parcel_event random_event(struct live *live, unsigned number)
{
    struct letter letter = { 0 };

    switch (det_sim_random_below(live->bed.sim, 6)) {
    case 0:
    case 1:
        return parcel_pay((struct label){ number });
    case 2:
        return parcel_ship();
    case 3:
        return parcel_again();
    default:
        snprintf(letter.address, sizeof letter.address, "house %u", number);
        return parcel_note(letter);
    }
}

/* The next commit of the instance, if no other precedes it. */
static void report_early(struct live *live, unsigned instance)
{
    live->promise.reported[instance]++;
    mark(live);
}

static void send_one(struct live *live)
{
    unsigned number = live->promise.begun++;
    struct live_send *send = &live->sends[number];
    struct parcel_event event = random_event(live, number);
    struct det_send_options options = { 0 };
    struct det_sent sent;
    char instance[32], id[32];
    int r;

    send->instance = (unsigned)det_sim_random_below(live->bed.sim, LIVE_INSTANCES);
    live_id(instance, 'p', send->instance);
    live_id(id, 's', number);
    options.event_id = id;
    mark(live);
    if (live->answers_early)
        report_early(live, send->instance);
    r = parcel_send_with(live->runtime, instance, event, &options, &sent, NULL);
    must(r == 0 || r == DET_ERR_UNHANDLED || r == DET_ERR_LIMIT, "a send failed");
    if (r < 0)
        return;
    send->sequence = sent.sequence;
    live->answered[live->promise.answered++] = number;
    mark(live);
}

static void sender(void *argument)
{
    struct live *live = argument;

    for (unsigned i = 0; i < live->sends_each; i++) {
        send_one(live);
        if (det_sim_chance(live->bed.sim, 500000))
            must(rest(live, 300) == 0, "no memory");
    }
}

/* Senders at the same time; timers fire and effects end meanwhile. */
static void run_phase(struct live *live)
{
    struct det_thread *threads[LIVE_SENDERS];

    for (unsigned i = 0; i < LIVE_SENDERS; i++)
        must(det_thread_start(live->world, "sender", sender, live, &threads[i]) == 0, "no thread");
    for (unsigned i = 0; i < LIVE_SENDERS; i++)
        det_thread_join(live->world, threads[i]);
    must(det_sim_advance(live->bed.sim, 10 * DET_MINUTE) == 0, "no end");
}

static void open_store(struct live *live, unsigned level)
{
    struct det_store_options options = { .world = live->world, .connections = 1 };
    struct det_error error = { 0 };

    live->bed.active = &live->bed.disks[level];
    if (det_store_open_with(crash_bed_url(level), &options, &live->store, &error) < 0)
        snprintf(live->text, sizeof live->text, "%s", error.text);
}

static void close_all(struct live *live)
{
    det_runtime_close(live->runtime);
    det_store_close(live->store);
    live->runtime = NULL;
    live->store = NULL;
}

void live_run(struct live *live, uint64_t seed)
{
    char instance[32];

    crash_bed_open(&live->bed, seed);
    live->world = det_sim_world(live->bed.sim);
    live->bed.disks[0].fault.ignores_syncs = live->ignores_syncs;
    for (unsigned i = 0; i < LIVE_INSTANCES; i++)
        live->promise.reported[i] = -1;
    for (unsigned phase = 0; phase < 3; phase++) {
        open_store(live, 0);
        must(live->store, live->text);
        must(live_open_runtime(live) == 0, "no runtime");
        for (unsigned i = 0; phase == 0 && i < LIVE_INSTANCES; i++) {
            live_id(instance, 'p', i);
            must(
                det_runtime_start(
                    live->runtime, parcel_definition(), instance, NULL, NULL, NULL, NULL) == 0,
                "no start");
        }
        run_phase(live);
        close_all(live);
    }
}

void live_end(struct live *live)
{
    crash_bed_close(&live->bed);
    free(live->promises);
}

/* The remains continue until nothing is due. */
static bool revive(struct live *live, const struct live_promise *promise)
{
    live->is_revived = true;
    live->revived++;
    if (live_open_runtime(live) < 0 || det_sim_advance(live->bed.sim, 2 * DET_DAY) < 0) {
        snprintf(live->text, sizeof live->text, "it cannot be revived");
        return false;
    }
    det_runtime_close(live->runtime);
    live->runtime = NULL;
    return live_check(live, promise, true);
}

static int inspect(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    static const struct live_promise nothing = { .reported = { -1, -1, -1, -1 } };
    struct live *live = context;
    const struct live_promise *promise = cut->mark ? &live->promises[cut->mark - 1] : &nothing;
    bool is_well = false;

    (void)disk;
    live->states++;
    live->text[0] = 0;
    open_store(live, 1);
    if (live->store) {
        is_well = live_check(live, promise, false);
        if (is_well && live->revive_every && cut->state / 64 % live->revive_every == 0)
            is_well = revive(live, promise);
    }
    close_all(live);
    if (!is_well && live->wrong++ < REPORTED_MAX)
        printf(
            "place %zu, state %016llx: %s\n", cut->place, (unsigned long long)cut->state,
            live->text);
    return 0;
}

void live_cut(struct live *live, const struct crash_cut_options *options)
{
    (void)crash_cut_each(&live->bed.disks[0], options, &live->bed.disks[1], inspect, live, NULL);
}
