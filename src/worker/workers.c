/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.c - a supervisor of workers: opening, ticking, stopping, closing. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <detent/driver/loop.h>
#include <detent/tool/documents.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "base/text.h"
#include "worker/limits.h"
#include "worker/worker_tree.h"

void det_workers_now(struct det_workers *workers)
{
    struct det_world *world = workers->world;

    workers->now = world->ops->now(world, DET_CLOCK_MONOTONIC);
    workers->wall_ahead = world->ops->now(world, DET_CLOCK_WALL) - workers->now;
}

/* xorshift64*: spreading needs no secure random numbers. */
det_time det_workers_chance(struct det_workers *workers, det_time span)
{
    uint64_t x = workers->chance;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    workers->chance = x;
    return span > 0 ? (det_time)((x * 0x2545f4914f6cdd1dU >> 1) % (uint64_t)span) : 0;
}

const struct det_worker_kind *det_workers_kind(const struct det_workers *workers, const char *name)
{
    for (size_t i = 0; i < workers->kinds.count; i++)
        if (!strcmp(workers->kinds.all[i]->name, name))
            return workers->kinds.all[i];
    return NULL;
}

void det_worker_publish(struct det_worker *worker, struct det_worker_event event)
{
    struct det_workers *workers = worker->workers;

    if (!workers->on_event)
        return;
    event.at = workers->now;
    event.wall = workers->now + workers->wall_ahead;
    event.identity = &worker->identity;
    workers->on_event(workers->user, &event);
}

DET_PRINTF(2, 3)
static const char *format_reason(struct det_reason *reason, const char *format, ...)
{
    char text[2 * DET_WORKER_REASON_MAX];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    det_text_copy(reason->text, sizeof reason->text, text);
    return reason->text;
}

/* Starts the jobs that were submitted in this turn of the loop. */

static void release_threads(void *argument)
{
    struct det_workers *workers = argument;

    det_assert(workers->hold.is_held);
    workers->hold.is_held = false;
    det_worker_threads_release(workers->actors);
    det_worker_threads_release(workers->collectors);
}

void det_workers_hold_threads(struct det_workers *workers)
{
    if (workers->hold.is_held)
        return;
    workers->hold.is_held = true;
    det_worker_threads_hold(workers->actors);
    det_worker_threads_hold(workers->collectors);
    workers->hold.post = (struct det_post){ .run = release_threads, .argument = workers };
    det_loop_post(workers->loop, &workers->hold.post);
}

/* Ticking, and periodic compaction of deltas. */

static int compact(void *argument, struct det_store *store)
{
    struct det_workers *workers = argument;
    const struct det_worker_limits *limits = &workers->limits;
    struct det_document_keep keep = {
        .since = workers->compaction.since,
        .count_max = limits->deltas_max,
        .bytes_max = limits->deltas_bytes_max,
    };

    return det_store_documents_compact(store, &keep, NULL);
}

static void compacted(void *argument, int code)
{
    struct det_workers *workers = argument;

    det_workers_now(workers);
    det_assert(workers->compaction.is_running);
    workers->compaction.is_running = false;
    if (code < 0 && workers->root)
        det_worker_publish(
            workers->root, (struct det_worker_event){ .kind = DET_WORKER_EVENT_STORE_FAILED,
                                                      .code = code,
                                                      .reason = det_error_text(code) });
}

static void consider_compacting(struct det_workers *workers)
{
    if (workers->limits.compact_every == DET_NEVER || workers->compaction.is_running ||
        workers->own_store || workers->now < workers->compaction.at)
        return;
    workers->compaction.at = workers->now + workers->limits.compact_every;
    workers->compaction.since = workers->now + workers->wall_ahead - workers->limits.deltas_age_max;
    workers->compaction.is_running = true;
    workers->compaction.job =
        (struct det_recorder_job){ .run = compact, .done = compacted, .argument = workers };
    det_recorder_send(workers->recorder, &workers->compaction.job);
}

/* Ticks get at most half of the time of the loop: if a tick takes longer than the pause between
 * two, ticks become less frequent, and other work continues. While everything stops there is no
 * other work. */
static det_time next_tick(const struct det_workers *workers)
{
    det_time tick = workers->limits.tick, least = 2 * workers->tick.last_took;

    if (workers->tick.is_hurried)
        return workers->tick.began;
    if (workers->stopping.is_wanted)
        return workers->now + tick;
    return workers->tick.began + (tick > least ? tick : least);
}

/* Fails only without memory, and only if it was not set before. */
static int arm(struct det_workers *workers)
{
    return det_loop_timer_set(workers->loop, &workers->tick.timer, next_tick(workers));
}

/* A tick for each level of the tree and each state towards STOPPED would take long for idle
 * workers. States may form a cycle: after this many the normal ticks continue. In a tree so large
 * that a tick takes long there is always progress, and no need to hurry. */
#define HURRIES_MAX 64

void det_workers_hurry(struct det_workers *workers)
{
    if (!workers->stopping.is_wanted || workers->stopping.is_over || workers->tick.is_hurried ||
        workers->tick.hurries >= HURRIES_MAX || workers->tick.last_took > workers->limits.tick / 20)
        return;
    workers->tick.hurries++;
    workers->tick.is_hurried = true;
    if (!workers->tick.walking)
        arm(workers);
}

/* A slice, and the timer for the next one. */
static void go_on_walking(struct det_workers *workers)
{
    det_time pause = det_tick_slice(workers);

    if (workers->stopping.is_over)
        return;
    /* Without memory for the timer, which only a call from outside may need, the walk continues
     * with the next tick. */
    if (workers->tick.at)
        (void)!det_loop_timer_set(workers->loop, &workers->tick.timer, workers->now + pause);
    else if (
        workers->tick.is_hurried || workers->stopping.is_wanted ||
        2 * workers->tick.last_took > workers->limits.tick)
        arm(workers);
}

static void on_timer(void *argument)
{
    struct det_workers *workers = argument;

    /* Resources of a tick may be closed already. */
    if (workers->stopping.is_over)
        return;
    if (!workers->tick.at) {
        if (!workers->tick.is_hurried)
            workers->tick.hurries = 0;
        workers->tick.is_hurried = false;
        det_tick_begin(workers);
    }
    /* First: its place among the timers is free now, so setting it needs no memory. */
    arm(workers);
    go_on_walking(workers);
    if (!workers->stopping.is_over && !workers->tick.at)
        consider_compacting(workers);
}

void det_workers_tick_now(struct det_workers *workers)
{
    if (workers->is_paused && !workers->stopping.is_wanted) {
        det_workers_tick(workers);
        return;
    }
    /* The walk continues, not from the root: else workers at its end would never be visited. */
    if (workers->tick.at && !workers->stopping.is_wanted) {
        workers->tick.is_hurried = true;
        det_worker_visit(workers->root);
        return;
    }
    det_tick_begin(workers);
    go_on_walking(workers);
}

/* The first tick, on the loop; not without memory for a timer. A paused supervisor needs one for
 * its end. */
struct beginning {
    struct det_workers *workers;
    int r;
};

static void begin(void *argument)
{
    struct beginning *beginning = argument;
    struct det_workers *workers = beginning->workers;

    workers->compaction.at = det_add_time(workers->now, workers->limits.compact_every);
    workers->tick.began = workers->now;
    beginning->r = arm(workers);
    if (!workers->is_paused && beginning->r == 0)
        det_workers_tick(workers);
    if (workers->is_paused)
        det_loop_timer_cancel(workers->loop, &workers->tick.timer);
}

/* Opening. */

static int add_kind(
    struct det_workers *workers, const struct det_worker_kind *kind, struct det_error *reterr)
{
    int r;

    r = det_worker_kind_check(kind, reterr);
    if (r == 0)
        r = det_worker_limits_check_kind(&workers->limits, kind, reterr);
    if (r < 0)
        return r;
    if (det_workers_kind(workers, kind->name))
        return det_error_set(
            reterr, DET_ERR_EXISTS, "two kinds of worker are named %s", kind->name);
    det_assert(workers->kinds.count < workers->kinds.room);
    workers->kinds.all[workers->kinds.count++] = kind;
    return 0;
}

static size_t count_kinds(const struct det_workers_options *options)
{
    size_t count = 0;

    while (options->kinds && options->kinds[count])
        count++;
    return count;
}

static int take_kinds(
    struct det_workers *workers, const struct det_workers_options *options,
    struct det_error *reterr)
{
    size_t count = count_kinds(options);
    int r;

    workers->kinds.room = count + 1;
    workers->kinds.all =
        DET_NEW_ARRAY(workers->allocator, workers->kinds.room, const struct det_worker_kind *);
    if (!workers->kinds.all)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = add_kind(workers, det_application(), reterr);
    for (size_t i = 0; i < count && r == 0; i++)
        r = add_kind(workers, options->kinds[i], reterr);
    return r;
}

static int take_provided(struct det_workers *workers, const struct det_provided *provided)
{
    size_t count = 0;

    while (provided && provided[count].name)
        count++;
    if (!count)
        return 0;
    workers->provided = DET_NEW_ARRAY(workers->allocator, count, struct det_provided);
    if (!workers->provided)
        return DET_ERR_NO_MEMORY;
    memcpy(workers->provided, provided, count * sizeof *provided);
    workers->provided_count = count;
    return 0;
}

static int open_loop(struct det_workers *workers, const struct det_workers_options *options)
{
    int r;

    workers->loop = options->loop;
    if (workers->loop)
        return 0;
    r = det_loop_open(workers->world, workers->allocator, &workers->own_loop);
    workers->loop = workers->own_loop;
    return r;
}

static int open_store(
    struct det_workers *workers, const struct det_workers_options *options,
    struct det_error *reterr)
{
    struct det_store_options memory = { .world = workers->world, .allocator = workers->allocator };
    int r;

    workers->store = options->store;
    if (!workers->store) {
        r = det_store_open_with("memory:", &memory, &workers->own_store, reterr);
        if (r < 0)
            return r;
        workers->store = workers->own_store;
    }
    /* The documents of our own store are not readable by others. */
    r = det_recorder_open(
        workers->world, workers->allocator, options->store, workers->loop,
        workers->own_store != NULL, &workers->recorder);
    return r < 0
               ? det_error_set(
                     reterr, r, "the store cannot keep documents of workers: %s", det_error_text(r))
               : 0;
}

static int open_threads(struct det_workers *workers)
{
    const struct det_worker_limits *limits = &workers->limits;
    int r;

    r = det_mutex_open(workers->world, &workers->mutex);
    if (r == 0)
        r = det_condition_open(workers->world, &workers->changed);
    if (r == 0)
        r = det_worker_threads_open(
            workers->allocator, workers->loop, "act", limits->action_threads, limits->hung_max,
            &workers->actors);
    if (r == 0)
        r = det_worker_threads_open(
            workers->allocator, workers->loop, "collect", limits->collector_threads,
            limits->hung_max, &workers->collectors);
    return r;
}

static int open_root(
    struct det_workers *workers, const struct det_workers_options *options,
    struct det_error *reterr)
{
    const char *name = options->name ? options->name : "root";
    int r;

    if (!det_name_is_valid(name) || strlen(name) > DET_WORKER_NAME_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the name of the root is 1 to %d bytes of [A-Za-z0-9._-]",
            DET_WORKER_NAME_MAX);
    r = det_scope_values_init(&workers->scope, workers->allocator, options->globals, reterr);
    if (r < 0)
        return r;
    workers->scope_generation = ++workers->generations;
    r = det_worker_make(workers, NULL, name, det_application(), DET_REQUEST_YAML, &workers->root);
    if (r < 0)
        return det_error_set(reterr, r, "the root cannot be created: %s", det_error_text(r));
    r = det_manual_load(workers, reterr);
    if (r == 0) {
        det_manual_restore(workers->root);
        det_order_restore(workers->root);
        workers->root->children.has_unclaimed = det_unclaimed_below(workers->root);
    }
    return r;
}

static int fill(
    struct det_workers *workers, const struct det_workers_options *options,
    struct det_error *reterr)
{
    int r;

    r = det_worker_limits_resolve(&options->limits, &workers->limits, reterr);
    if (r == 0)
        r = take_kinds(workers, options, reterr);
    if (r < 0)
        return r;
    r = take_provided(workers, options->provided);
    if (r == 0)
        r = open_loop(workers, options);
    if (r == 0)
        r = open_threads(workers);
    if (r < 0)
        return det_error_set(reterr, r, "workers cannot be opened: %s", det_error_text(r));
    r = open_store(workers, options, reterr);
    return r < 0 ? r : open_root(workers, options, reterr);
}

static void seed(struct det_workers *workers)
{
    workers->world->ops->random(workers->world, &workers->chance, sizeof workers->chance);
    workers->chance |= 1;
}

static void free_all(struct det_workers *workers);

int det_workers_open(
    const struct det_workers_options *options, struct det_workers **ret, struct det_error *reterr)
{
    struct det_workers *workers;
    struct beginning beginning = { 0 };
    struct det_world *world = options->world;
    int r = det_reserved_check(options->reserved, "a supervisor of workers", reterr);

    if (r < 0)
        return r;
    workers = DET_NEW(options->allocator, struct det_workers);
    beginning.workers = workers;
    if (!workers)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    if (!world && options->loop)
        world = det_loop_world(options->loop);
    workers->world = det_world_or_real(world);
    workers->allocator = options->allocator;
    workers->on_event = options->on_event;
    workers->user = options->user;
    workers->is_paused = options->is_paused;
    workers->tick.timer = (struct det_timer){ .run = on_timer, .argument = workers };
    workers->making.timer = (struct det_timer){ .run = det_children_continue, .argument = workers };
    det_list_init(&workers->making.workers);
    workers->scratch.format = format_reason;
    det_list_init(&workers->earlier.restored);
    seed(workers);
    det_workers_now(workers);
    det_map_init(
        &workers->map, options->allocator, workers->chance, offsetof(struct det_worker, place.key));
    det_map_init(
        &workers->earlier.known, options->allocator, workers->chance,
        offsetof(struct det_known, key));
    det_map_init(&workers->earlier.unclaimed, options->allocator, workers->chance, 0);
    r = fill(workers, options, reterr);
    /* The threads may post to the loop before it runs. */
    if (r == 0 && !workers->own_loop)
        det_loop_claim(workers->loop);
    if (r == 0 && workers->own_loop) {
        r = det_loop_start(workers->own_loop, "workers");
        if (r < 0)
            det_error_set(reterr, r, "cannot start a thread for workers: %s", det_error_text(r));
    }
    if (r == 0)
        r = det_workers_call(workers, begin, &beginning);
    if (r == 0 && beginning.r < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "timer: out of memory");
    if (r < 0) {
        free_all(workers);
        return r;
    }
    *ret = workers;
    return 0;
}

/* The end. */

static void stop(void *argument)
{
    struct det_workers *workers = argument;

    det_stop_all(workers);
    det_workers_tick_now(workers);
}

static bool has_stopped(struct det_workers *workers)
{
    bool has;

    det_mutex_lock(workers->world, workers->mutex);
    has = workers->stopping.is_over;
    det_mutex_unlock(workers->world, workers->mutex);
    return has;
}

static int wait_for_end(struct det_workers *workers)
{
    int r = 0;

    if (det_loop_is_mine(workers->loop)) {
        while (!has_stopped(workers) && r >= 0)
            r = det_loop_turn(workers->loop, DET_NEVER);
        return r < 0 ? r : 0;
    }
    det_mutex_lock(workers->world, workers->mutex);
    while (!workers->stopping.is_over && r == 0)
        r = det_condition_wait(workers->world, workers->changed, workers->mutex, DET_NEVER);
    det_mutex_unlock(workers->world, workers->mutex);
    return r;
}

void det_workers_cancel(struct det_workers *workers)
{
    int r;

    if (has_stopped(workers))
        return;
    /* Without memory for the call the stop is not requested. */
    r = det_workers_call(workers, stop, workers);
    (void)r;
}

static void stop_once(void *argument)
{
    struct det_workers *workers = argument;

    if (!workers->stopping.is_wanted)
        stop(workers);
}

int det_workers_stop(struct det_workers *workers, struct det_error *reterr)
{
    int r;

    r = det_workers_call(workers, stop_once, workers);
    if (r == 0)
        r = wait_for_end(workers);
    if (r < 0)
        return det_error_set(reterr, r, "workers could not be stopped: %s", det_error_text(r));
    if (!workers->stopping.forced)
        return 0;
    return det_error_set(
        reterr, DET_ERR_TIMEOUT, "%u worker%s did not stop in time and %s taken down, first %s",
        workers->stopping.forced, det_plural(workers->stopping.forced),
        det_was_or_were(workers->stopping.forced), workers->stopping.forced_first);
}

/* Waiting calls are abandoned: no thread will turn the loop for them. */
static void hang_up(struct det_workers *workers)
{
    det_mutex_lock(workers->world, workers->mutex);
    workers->stopping.is_closing = true;
    det_condition_broadcast(workers->world, workers->changed);
    det_mutex_unlock(workers->world, workers->mutex);
}

/* Messages posted to a user's loop must have run before the supervisor is freed. */
static void settle(struct det_workers *workers)
{
    while (workers->outstanding.runs || workers->outstanding.recordings ||
           workers->outstanding.incarnations || workers->compaction.is_running ||
           workers->hold.is_held)
        if (det_loop_turn(workers->loop, DET_NEVER) < 0)
            break;
    det_loop_timer_cancel(workers->loop, &workers->tick.timer);
    det_loop_timer_cancel(workers->loop, &workers->making.timer);
}

static void free_rest(struct det_workers *workers)
{
    det_assert(!workers->root && !workers->gone);
    det_assert(!workers->outstanding.runs && !workers->outstanding.incarnations);
    det_assert(!workers->outstanding.recordings && !workers->outstanding.observing);
    det_assert(!workers->compaction.is_running && !workers->hold.is_held);
    if (workers->kinds.all)
        DET_DELETE_ARRAY(workers->allocator, workers->kinds.all, workers->kinds.room);
    if (workers->provided)
        DET_DELETE_ARRAY(workers->allocator, workers->provided, workers->provided_count);
    det_manual_forget_all(workers);
    det_unclaimed_free(workers);
    det_record_free_known(workers);
    det_scope_values_deinit(&workers->scope);
    det_map_deinit(&workers->map);
    if (workers->own_store)
        det_store_close(workers->own_store);
    det_condition_close(workers->world, workers->changed);
    det_mutex_close(workers->world, workers->mutex);
    DET_DELETE(workers->allocator, workers);
}

/* A root that never began has no runs. */
static void free_all(struct det_workers *workers)
{
    /* From here on only this thread runs the loop, so that no code uses a closed thread pool. */
    if (workers->own_loop)
        det_loop_stop(workers->own_loop);
    det_worker_threads_close(workers->actors);
    workers->actors = NULL;
    det_worker_threads_close(workers->collectors);
    workers->collectors = NULL;
    det_recorder_close(workers->recorder);
    if (workers->loop)
        settle(workers);
    if (workers->own_loop)
        det_loop_close(workers->own_loop);
    if (workers->root)
        det_worker_free(workers->root);
    workers->root = NULL;
    det_workers_free_gone(workers);
    free_rest(workers);
}

void det_workers_close(struct det_workers *workers)
{
    int r = 0;

    if (!workers)
        return;
    while (!has_stopped(workers) && r != DET_ERR_DEADLOCK && r != DET_ERR_LIMIT)
        r = det_workers_stop(workers, NULL);
    hang_up(workers);
    free_all(workers);
}
