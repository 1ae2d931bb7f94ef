/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* send.c - start, send and stop, as called by users. */
#include <string.h>

#include "base/assert.h"
#include "base/reserved.h"
#include "base/text.h"
#include "base/unset.h"
#include "runtime/node.h"
#include "runtime/quick.h"
#include "runtime/turn.h"

/* Size of a cache line, and the number of lines of a resident and of a store's instance that are
 * prefetched. */
#define LINE         ((size_t)64)
#define ASKED_MAX    (6 * LINE)
#define HANDLE_ASKED (4 * LINE)

static const struct det_send_options no_options = { 0 };

/* A call of the API and its error, which is written only on failure. The turn exists once it has
 * begun. */
struct call {
    struct det_runtime *runtime;
    struct det_served *served;
    struct det_shard *shard;
    const char *instance;
    uint64_t hash;
    uint64_t fence; /* fence of the caller's lock; 0: none */
    bool is_hasty;  /* does not wait for locks */
    const struct det_send_options *options;
    struct det_error *wanted; /* the caller's; NULL: not wanted */
    struct det_error *reterr; /* NULL, or `error` */
    struct det_error error;
    struct det_turn turn;
};

/* Not inlined: a plain send has no options. */
__attribute__((noinline)) static int check_options(
    const struct det_send_options *options, struct det_error *reterr)
{
    if (!det_reserved_is_zero(options->reserved))
        return det_reserved_check(options->reserved, "a send", reterr);
    if (!options->event_id || det_store_id_is_valid(options->event_id))
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID, "an event id must have 1 to %d characters of A-Z a-z 0-9 . _ : -",
        DET_ID_MAX);
}

static int begin(
    struct call *call, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance, const struct det_send_options *options, struct det_error *wanted)
{
    int r;

    det_assert(runtime && machine && instance);
    call->runtime = runtime;
    call->instance = instance;
    call->fence = 0;
    call->is_hasty = false;
    call->options = options ? options : &no_options;
    call->wanted = wanted;
    call->reterr = wanted ? &call->error : NULL;
    call->error.code = 0;
    r = det_served_get(runtime, machine, call->reterr, &call->served);
    if (r < 0)
        return r;
    call->hash = det_served_hash(runtime, instance);
    call->shard = det_served_shard(runtime, call->hash);
    det_index_prefetch(det_served_index(runtime, call->served, call->shard), call->hash);
    return options ? check_options(options, call->reterr) : 0;
}

static struct det_turn *begin_turn(struct call *call, enum det_turn_kind kind)
{
    struct det_turn *turn = &call->turn;

    det_turn_init(turn, call->runtime, call->served, call->hash);
    turn->kind = kind;
    turn->request.event_id = call->options->event_id;
    turn->request.trace = call->options->trace;
    turn->request.expected = call->options->expected;
    turn->request.visit = call->options->visit;
    turn->request.fence = call->fence;
    turn->error = call->reterr;
    return turn;
}

static int finish(struct call *call, int r, const struct det_sent *sent, struct det_sent *ret)
{
    if (r == 0) {
        if (ret)
            *ret = *sent;
        return 0;
    }
    if (!call->wanted)
        return r;
    if (call->error.code != r)
        det_error_set(&call->error, r, "%s", det_error_text(r));
    *call->wanted = call->error;
    return r;
}

static int check_event(const struct det_served *served, const void *event, struct det_error *reterr)
{
    const struct det_machine *machine = served->machine;
    int r;

    det_assert(event);
    r = det_decide_check(served, event, reterr);
    if (r < 0)
        return r;
    if (machine->events[det_event_kind(event)].is_internal)
        return det_error_set(
            reterr, DET_ERR_INVALID, "%s of %s is internal: only effects and timeouts send it",
            machine->events[det_event_kind(event)].name, machine->name);
    return 0;
}

static int check_events(
    const struct det_served *served, const void *const *events, size_t count,
    struct det_error *reterr)
{
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = check_event(served, events[i], reterr);
    return r;
}

int det_send_check(
    const struct det_served *served, const struct det_send_options *options,
    const void *const *events, size_t count, struct det_error *reterr)
{
    int r;

    r = check_options(options, reterr);
    return r < 0 ? r : check_events(served, events, count, reterr);
}

static int check_batch(const struct call *call, const void *const *events, size_t count)
{
    if (count == 0 || count > DET_BATCH_MAX)
        return det_error_set(
            call->reterr, DET_ERR_INVALID, "a batch must have 1 to %d events, not %zu",
            DET_BATCH_MAX, count);
    return check_events(call->served, events, count, call->reterr);
}

/* Prefetches all memory that the send will access, as soon as the slot is available. */
static void prefetch_slot(const struct det_index_slot *slot, const struct det_served *served)
{
    size_t end = served->id_offset < ASKED_MAX ? served->id_offset : ASKED_MAX;

    det_index_prefetch_at(slot->resident, 0);
    det_index_prefetch_at(slot->resident, served->id_offset);
    det_index_prefetch_at(slot->handle, 0);
    det_index_prefetch_at(slot->next, 0);
    for (size_t at = LINE; at < end; at += LINE)
        det_index_prefetch_at(slot->resident, at);
    for (size_t at = LINE; at < HANDLE_ASKED; at += LINE)
        det_index_prefetch_at(slot->handle, at);
}

/* The slot of the instance; NULL: not in memory. Lock held. */
static struct det_index_slot *find_slot(const struct call *call)
{
    const struct det_index *index = det_served_index(call->runtime, call->served, call->shard);
    struct det_index_slot *first = det_index_find_first(index, call->hash);

    if (!first)
        return NULL;
    prefetch_slot(first, call->served);
    if (strcmp(first->resident->id, call->instance) == 0)
        return first;
    return det_index_find(index, call->hash, call->instance);
}

/* Runs the turn on the instance in `slot`, or NULL: unknown. The lock is held before and not
 * after. */
static int run_turn(
    struct call *call, const struct det_index_slot *slot, const void *const *events, size_t count,
    struct det_sent *ret)
{
    int r;

    r = det_turn_take(&call->turn, call->instance, slot);
    if (r == 0)
        return det_turn_run(&call->turn, events, count, ret);
    det_shard_unlock(call->runtime, call->shard);
    return r;
}

static bool may_be_quick(const struct call *call)
{
    const struct det_send_options *options = call->options;

    return call->runtime->is_quick && !options->event_id && !options->expected && !options->visit &&
           !options->trace && !call->fence && !call->shard->is_closing;
}

static int run_once(
    struct call *call, const void *const *events, size_t count, struct det_sent *ret)
{
    struct det_index_slot *slot;
    int r = 0;

    det_shard_lock(call->runtime, call->shard);
    slot = find_slot(call);
    if (slot && count == 1 && may_be_quick(call))
        r = det_quick_send(call->runtime, call->shard, &slot, events[0], call->reterr, ret);
    if (r == 0) {
        begin_turn(call, DET_TURN_SEND);
        return run_turn(call, slot, events, count, ret);
    }
    det_shard_unlock(call->runtime, call->shard);
    return r < 0 ? r : 0;
}

/* A passive runtime fires due timers first, under the same lock. */
static int catch_up(const struct call *call)
{
    if (!call->runtime->options.is_passive)
        return 0;
    return det_overdue_fire(call->runtime, call->served, call->instance, call->fence, call->reterr);
}

static int run_in_turn(
    struct call *call, const void *const *events, size_t count, struct det_sent *ret)
{
    int r;

    r = catch_up(call);
    return r < 0 ? r : run_once(call, events, count, ret);
}

static struct det_send_lock send_lock_of(const struct call *call)
{
    return (struct det_send_lock){ .runtime = call->runtime,
                                   .machine = call->served->machine,
                                   .instance = call->instance,
                                   .fence = call->fence,
                                   .is_hasty = call->is_hasty };
}

/* Repeats the call after locks of others, and takes a lock if the runtime locks. */
static int run_guarded(
    struct call *call, const void *const *events, size_t count, struct det_sent *ret)
{
    struct det_send_lock lock = send_lock_of(call);
    int r;

    do {
        r = det_send_lock_enter(&lock, call->reterr);
        if (r < 0)
            return r;
        call->fence = lock.fence;
        r = run_in_turn(call, events, count, ret);
    } while (det_send_lock_leave(&lock, r, call->reterr));
    return r;
}

static int run_locked(
    struct call *call, const void *const *events, size_t count, struct det_sent *ret)
{
    struct det_node *node = call->runtime->node;
    int r;

    det_node_enter(node);
    r = run_guarded(call, events, count, ret);
    det_node_leave(node);
    return r;
}

static int send_events(
    struct call *call, const void *const *events, size_t count, struct det_sent *ret)
{
    int r;

    if (call->runtime->options.locking == DET_LOCKING_LEASE)
        return run_locked(call, events, count, ret);
    r = run_in_turn(call, events, count, ret);
    return r == DET_ERR_LOCKED ? run_locked(call, events, count, ret) : r;
}

int det_send_under(
    const struct det_send_all *send, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr)
{
    DET_UNSET struct call call;
    DET_UNSET struct det_sent sent;
    int r;

    r = begin(&call, send->runtime, send->machine, send->instance, options, reterr);
    if (r == 0)
        r = check_batch(&call, send->events, send->count);
    call.fence = send->fence;
    call.is_hasty = send->is_hasty;
    if (r == 0)
        r = send_events(&call, send->events, send->count, &sent);
    return finish(&call, r, &sent, ret);
}

/* NOLINTBEGIN(readability-function-size): each has the event, the target, options and outputs */

int det_runtime_send_all(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *const *events, size_t count, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr)
{
    return det_send_under(
        &(struct det_send_all){ .runtime = runtime,
                                .machine = machine,
                                .instance = instance,
                                .events = events,
                                .count = count },
        options, ret, reterr);
}

int det_runtime_send(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *event, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr)
{
    DET_UNSET struct call call;
    DET_UNSET struct det_sent sent;
    int r;

    r = begin(&call, runtime, machine, instance, options, reterr);
    if (r == 0)
        r = check_event(call.served, event, call.reterr);
    if (r == 0)
        r = send_events(&call, &event, 1, &sent);
    return finish(&call, r, &sent, ret);
}

/* NOLINTEND(readability-function-size) */

/* The instance exists: the same start again, or another one. The lock is held before and not
 * after. */
static int start_again(struct call *call, struct det_sent *ret)
{
    int r;

    call->turn.kind = DET_TURN_SEND;
    call->turn.request.expected = call->turn.request.visit = 0;
    r = det_turn_run(&call->turn, NULL, 0, ret);
    if (r == 0 && !ret->is_duplicate)
        r = det_error_set(
            call->reterr, DET_ERR_EXISTS, "%s %s called %s already exists",
            det_article(call->served->machine->name), call->served->machine->name, call->instance);
    return r;
}

static int start(struct call *call, const void *data, struct det_sent *ret)
{
    struct det_turn *turn = begin_turn(call, DET_TURN_START);
    int r;

    turn->request.start_data = data;
    turn->request.is_start = true;
    det_shard_lock(turn->runtime, turn->shard);
    r = det_turn_take(turn, call->instance, NULL);
    if (r == 0)
        return start_again(call, ret);
    if (r == DET_ERR_NOT_FOUND)
        r = det_resident_add(
            turn->runtime, turn->served, turn->hash, call->instance, &turn->resident);
    if (r < 0) {
        det_shard_unlock(turn->runtime, turn->shard);
        return r;
    }
    turn->is_claimed = true;
    det_cache_make_room(turn->runtime, turn->shard);
    return det_turn_run(turn, NULL, 0, ret);
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters, as all sends have */
int det_runtime_start(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *data, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr)
{
    DET_UNSET struct call call;
    DET_UNSET struct det_sent sent;
    int r;

    r = begin(&call, runtime, machine, instance, options, reterr);
    if (r == 0)
        r = start(&call, data, &sent);
    return finish(&call, r, &sent, ret);
}

static int stop_once(struct call *call, const char *reason, struct det_sent *ret)
{
    struct det_turn *turn = begin_turn(call, DET_TURN_STOP);

    turn->request.stop_reason = reason;
    det_shard_lock(call->runtime, call->shard);
    return run_turn(call, NULL, NULL, 0, ret);
}

static int stop_guarded(struct call *call, const char *reason, struct det_sent *ret)
{
    struct det_send_lock lock = send_lock_of(call);
    int r;

    do {
        r = det_send_lock_enter(&lock, call->reterr);
        if (r < 0)
            return r;
        call->fence = lock.fence;
        r = catch_up(call);
        if (r == 0)
            r = stop_once(call, reason, ret);
    } while (det_send_lock_leave(&lock, r, call->reterr));
    return r;
}

static int stop(struct call *call, const char *reason, struct det_sent *ret)
{
    struct det_node *node = call->runtime->node;
    size_t length = reason ? strlen(reason) : 0;
    int r;

    if (reason && (length > DET_REASON_MAX || det_utf8_check(reason, length) != length))
        return det_error_set(
            call->reterr, DET_ERR_INVALID, "a reason is UTF-8 of at most %d bytes", DET_REASON_MAX);
    det_node_enter(node);
    r = stop_guarded(call, reason, ret);
    det_node_leave(node);
    return r;
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters, as all sends have */
int det_runtime_cancel(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const char *reason, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr)
{
    DET_UNSET struct call call;
    DET_UNSET struct det_sent sent;
    int r;

    r = begin(&call, runtime, machine, instance, options, reterr);
    if (r == 0)
        r = stop(&call, reason, &sent);
    return finish(&call, r, &sent, ret);
}
