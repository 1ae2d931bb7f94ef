/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit.c - asynchronous sends, many in one commit.
 *
 *     queue --> inbox --> begun in the batch --------------------------> finished --> done
 *                     --its instance is busy, or an earlier send to it is postponed--> postponed:
 *                       first in the next round
 *                     --other processes were first each time--> postponed, in front: retried
 *                       until its deadline
 *
 * A store that does not block has no commit to share: each send takes the usual path, as do sends
 * with due timers or locks. */
#include "runtime/submit.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "runtime/node.h"

/* With this many postponed sends no new ones are taken. */
#define PUT_OFF_MAX 1024
/* Bits for ids of postponed sends in a round; a power of two. */
#define MARKS 1024
/* A writer that waits for an instance checks for new sends at this interval. */
#define WAIT_SPAN (5 * DET_MILLISECOND)

struct chain {
    struct det_send *first, **last;
    size_t count;
};

struct det_writer {
    struct det_runtime *runtime;
    struct det_thread *thread;
    struct det_mutex *mutex;
    struct det_condition *filled;
    /* Under the mutex. */
    struct chain queue;
    bool is_asleep, is_closing;
    /* Used by the thread alone. */
    struct det_batch *batch;
    struct chain inbox, put_off, finished;
    det_time now;      /* when the round began */
    bool is_contended; /* a send of this round met other processes, and is retried */
    /* In this round: ids of postponed sends, and those of them whose instance another thread
     * has. */
    uint64_t marks[MARKS / 64], others[MARKS / 64];
};

struct det_writers {
    uint32_t count; /* number of running threads */
    uint32_t capacity;
    struct det_writer *all;
};

static void chain_init(struct chain *chain)
{
    *chain = (struct chain){ .last = &chain->first };
}

static void chain_append(struct chain *chain, struct det_send *send)
{
    send->internal.next = NULL;
    *chain->last = send;
    chain->last = &send->internal.next;
    chain->count++;
}

static void chain_prepend(struct chain *chain, struct det_send *send)
{
    send->internal.next = chain->first;
    if (!chain->first)
        chain->last = &send->internal.next;
    chain->first = send;
    chain->count++;
}

static struct det_send *chain_take(struct chain *chain)
{
    struct det_send *send = chain->first;

    if (!send)
        return NULL;
    det_assert(chain->count > 0);
    chain->first = send->internal.next;
    chain->count--;
    if (!chain->first)
        chain_init(chain);
    return send;
}

/* The target is empty. */
static void chain_move(struct chain *source, struct chain *target)
{
    det_assert(!target->first && !target->count);
    if (!source->first)
        return;
    *target = *source;
    chain_init(source);
}

static void finish(
    struct det_writer *writer, struct det_send *send, int r, const struct det_error *error)
{
    struct det_error *reterr = send->error;

    send->result = r;
    if (r < 0 && reterr && error->code == r)
        *reterr = *error;
    else if (r < 0)
        det_error_set(reterr, r, "%s", det_error_text(r));
    chain_append(&writer->finished, send);
}

static bool is_closing(struct det_writer *writer)
{
    bool is;

    det_mutex_lock(writer->runtime->world, writer->mutex);
    is = writer->is_closing;
    det_mutex_unlock(writer->runtime->world, writer->mutex);
    return is;
}

/* True: other processes were first each time, so the send goes to the front of the postponed ones.
 * The sends of its batch do not wait for it. */
static bool try_again(struct det_writer *writer, struct det_send *send, int result)
{
    if (result != DET_ERR_CONTENTION)
        return false;
    if (!send->internal.deadline)
        send->internal.deadline = det_add_time(writer->now, writer->runtime->options.send_deadline);
    if (writer->now >= send->internal.deadline || is_closing(writer))
        return false;
    chain_prepend(&writer->put_off, send);
    writer->is_contended = true;
    return true;
}

static void ended(struct det_batch_item *item)
{
    struct det_send *send = item->of.submitted.send;

    if (try_again(item->of.submitted.writer, send, item->result))
        return;
    if (item->result == 0)
        send->sent = item->sent;
    if (item->result == DET_ERR_LOCKED && send->error)
        det_lock_explain(item->turn.runtime, send->machine, send->instance, &item->error);
    finish(item->of.submitted.writer, send, item->result, &item->error);
}

static bool is_marked(const uint64_t *marks, uint64_t hash)
{
    return marks[hash % MARKS / 64] >> (hash % 64) & 1;
}

static void mark(uint64_t *marks, uint64_t hash)
{
    marks[hash % MARKS / 64] |= (uint64_t)1 << (hash % 64);
}

/* The store may also be busy with loading: then no thread has the instance. Lock held. */
static bool has_writer(const struct det_turn *turn)
{
    return turn->resident && turn->resident->is_claimed;
}

/* Instances of this batch are free again after it. Lock held. */
static bool is_others(const struct det_turn *turn)
{
    return turn->resident->owner != det_thread_self(turn->runtime->world);
}

/* 0; 1: its instance has a writer, so it has to wait; or an error. */
static int begin_send(struct det_writer *writer, struct det_send *send, uint64_t hash)
{
    struct det_runtime *runtime = writer->runtime;
    struct det_batch_item *item = det_batch_next(writer->batch);
    struct det_turn *turn = &item->turn;
    struct det_served *served;
    int r;

    r = det_served_get(runtime, send->machine, &item->error, &served);
    if (r == 0)
        r = det_send_check(served, &send->options, &send->event, 1, &item->error);
    if (r < 0)
        return r;
    det_turn_init(turn, runtime, served, hash);
    turn->request.event_id = send->options.event_id;
    turn->request.trace = send->options.trace;
    turn->request.expected = send->options.expected;
    turn->request.visit = send->options.visit;
    turn->error = send->error ? &item->error : NULL;
    turn->is_batched = true;
    item->event = send->event;
    item->ended = ended;
    item->of.submitted.send = send;
    item->of.submitted.writer = writer;
    det_shard_lock(runtime, turn->shard);
    r = det_turn_take(turn, send->instance, NULL);
    if (r == 0) {
        det_batch_begin(writer->batch, item);
        return 0;
    }
    if (r == DET_ERR_BUSY && has_writer(turn)) {
        if (is_others(turn))
            mark(writer->others, hash);
        r = 1;
    }
    det_shard_unlock(runtime, turn->shard);
    return r;
}

static void time_out(struct det_writer *writer, struct det_send *send)
{
    struct det_error error;

    det_error_set(&error, DET_ERR_TIMEOUT, "the instance was busy for too long");
    error.waited = writer->runtime->options.send_deadline;
    finish(writer, send, DET_ERR_TIMEOUT, &error);
}

/* Later sends to the same instance stay after this one. While another thread has the instance, each
 * waits at most as long as a send may; time spent after sends of this writer does not count. */
static void put_off(struct det_writer *writer, struct det_send *send, uint64_t hash)
{
    mark(writer->marks, hash);
    if (!is_marked(writer->others, hash))
        send->internal.deadline = 0;
    else if (!send->internal.deadline)
        send->internal.deadline = det_add_time(writer->now, writer->runtime->options.send_deadline);
    if (send->internal.deadline && writer->now >= send->internal.deadline)
        time_out(writer, send);
    else
        chain_append(&writer->put_off, send);
}

static void try_send(struct det_writer *writer, struct det_send *send)
{
    uint64_t hash = det_served_hash(writer->runtime, send->instance);
    int r = 1;

    if (!det_batch_is_full(writer->batch) && !is_marked(writer->marks, hash))
        r = begin_send(writer, send, hash);
    if (r > 0)
        put_off(writer, send, hash);
    else if (r < 0)
        finish(writer, send, r, &writer->batch->items[writer->batch->count].error);
}

/* In a passive runtime due timers come first; and a lock is held for one send only. */
static bool goes_alone(const struct det_writer *writer)
{
    const struct det_runtime_options *options = &writer->runtime->options;

    return writer->batch->capacity == 1 || options->is_passive ||
           options->locking == DET_LOCKING_LEASE;
}

static void send_alone(struct det_writer *writer, struct det_send *send)
{
    struct det_sent sent = { 0 };

    send->result = det_send_under(
        &(struct det_send_all){ .runtime = writer->runtime,
                                .machine = send->machine,
                                .instance = send->instance,
                                .events = &send->event,
                                .count = 1,
                                .is_hasty = true },
        &send->options, &sent, send->error);
    if (send->result == 0)
        send->sent = sent;
    chain_append(&writer->finished, send);
}

/* `done` may free the send or submit it again. */
static void report_done(struct det_writer *writer)
{
    struct det_send *send;

    while ((send = chain_take(&writer->finished)))
        send->done(send);
}

/* True if any send was finished. */
static bool run_round(struct det_writer *writer)
{
    struct chain first;
    struct det_send *send;
    bool is_any;

    chain_init(&first);
    chain_move(&writer->put_off, &first);
    memset(writer->marks, 0, sizeof writer->marks);
    memset(writer->others, 0, sizeof writer->others);
    writer->is_contended = false;
    writer->now = det_world_now(writer->runtime->world, DET_CLOCK_MONOTONIC);
    while ((send = chain_take(&first)))
        try_send(writer, send);
    for (size_t i = 0; i < DET_BATCH_TURNS && writer->put_off.count < PUT_OFF_MAX &&
                       (send = chain_take(&writer->inbox));
         i++) {
        if (goes_alone(writer))
            send_alone(writer, send);
        else
            try_send(writer, send);
    }
    det_batch_end(writer->batch);
    is_any = writer->finished.first;
    report_done(writer);
    return is_any;
}

static void wait_for(struct det_writer *writer, const struct det_send *send, det_time until)
{
    struct det_runtime *runtime = writer->runtime;
    uint64_t hash = det_served_hash(runtime, send->instance);
    struct det_shard *shard = det_served_shard(runtime, hash);
    const struct det_index_slot *slot;
    struct det_served *served;
    int r;

    r = det_served_get(runtime, send->machine, NULL, &served);
    if (r < 0)
        return;
    det_shard_lock(runtime, shard);
    slot = det_index_find(det_served_index(runtime, served, shard), hash, send->instance);
    if (slot && slot->resident->is_claimed)
        r = det_shard_wait(runtime, shard, until);
    /* Checked again in either case. */
    (void)r;
    det_shard_unlock(runtime, shard);
}

static void pause_at_random(struct det_writer *writer)
{
    struct det_world *world = writer->runtime->world;

    /* A simulated world that ends refuses to sleep; the deadline still limits the loop. */
    (void)!det_world_sleep(world, (det_time)(det_world_random_u64(world) % (uint64_t)WAIT_SPAN));
}

/* All sends wait for instances with other writers: waits for the first of them, briefly. */
static void stall(struct det_writer *writer)
{
    const struct det_send *first = writer->put_off.first;
    det_time until = det_add_time(writer->now, WAIT_SPAN);

    det_assert(first && first->internal.deadline);
    if (writer->is_contended)
        pause_at_random(writer);
    else
        wait_for(
            writer, first, until < first->internal.deadline ? until : first->internal.deadline);
}

/* False: closing, and no send is left. */
static bool gather(struct det_writer *writer)
{
    struct det_world *world = writer->runtime->world;

    if (writer->inbox.first)
        return true;
    det_mutex_lock(world, writer->mutex);
    while (!writer->queue.first && !writer->put_off.first && !writer->is_closing) {
        writer->is_asleep = true;
        (void)det_condition_wait(world, writer->filled, writer->mutex, DET_NEVER);
    }
    writer->is_asleep = false;
    chain_move(&writer->queue, &writer->inbox);
    det_mutex_unlock(world, writer->mutex);
    return writer->inbox.first || writer->put_off.first;
}

static void run_writer(void *argument)
{
    struct det_writer *writer = argument;

    while (gather(writer)) {
        if (!run_round(writer))
            stall(writer);
    }
}

static int start_one(struct det_runtime *runtime, struct det_writer *writer)
{
    int r;

    writer->runtime = runtime;
    chain_init(&writer->queue);
    chain_init(&writer->inbox);
    chain_init(&writer->put_off);
    chain_init(&writer->finished);
    r = det_mutex_open(runtime->world, &writer->mutex);
    if (r == 0)
        r = det_condition_open(runtime->world, &writer->filled);
    if (r == 0)
        r = det_batch_open(runtime, runtime->ops->is_quick ? 1 : DET_BATCH_TURNS, &writer->batch);
    if (r == 0)
        r = det_thread_start(runtime->world, "det-writer", run_writer, writer, &writer->thread);
    return r;
}

static void close_one(struct det_runtime *runtime, struct det_writer *writer)
{
    det_assert(!writer->queue.first && !writer->put_off.first);
    det_batch_close(writer->batch);
    det_condition_close(runtime->world, writer->filled);
    det_mutex_close(runtime->world, writer->mutex);
}

static void close_writers(struct det_runtime *runtime, struct det_writers *writers)
{
    if (!writers)
        return;
    for (uint32_t i = 0; writers->all && i < writers->capacity; i++)
        close_one(runtime, &writers->all[i]);
    if (writers->all)
        DET_DELETE_ARRAY(runtime->allocator, writers->all, writers->capacity);
    DET_DELETE(runtime->allocator, writers);
}

/* Starts as many threads as possible; none is an error. */
static int start(struct det_runtime *runtime, struct det_writers **ret)
{
    struct det_writers *writers = DET_NEW(runtime->allocator, struct det_writers);
    int r = 0;

    if (!writers)
        return DET_ERR_NO_MEMORY;
    writers->capacity = runtime->options.writers;
    writers->all = DET_NEW_ARRAY(runtime->allocator, writers->capacity, struct det_writer);
    if (!writers->all)
        r = DET_ERR_NO_MEMORY;
    while (r == 0 && writers->count < writers->capacity) {
        r = start_one(runtime, &writers->all[writers->count]);
        writers->count += r == 0;
    }
    if (writers->count == 0) {
        close_writers(runtime, writers);
        return r;
    }
    *ret = writers;
    return 0;
}

/* The first submit starts the threads. */
static int get_writers(struct det_runtime *runtime, struct det_writers **ret)
{
    struct det_writers *writers = atomic_load_explicit(&runtime->writers, memory_order_acquire);
    int r = 0;

    if (!writers) {
        det_mutex_lock(runtime->world, runtime->mutex);
        writers = atomic_load(&runtime->writers);
        if (!writers && runtime->are_writers_stopped)
            r = DET_ERR_CLOSED;
        else if (!writers)
            r = start(runtime, &writers);
        atomic_store(&runtime->writers, writers);
        det_mutex_unlock(runtime->world, runtime->mutex);
    }
    det_assert(r < 0 || writers);
    *ret = writers;
    return r;
}

static struct det_writer *writer_for(struct det_writers *writers, uint64_t hash)
{
    /* Uses other bits than the shards and the indices. */
    return &writers->all[(hash >> 24 & UINT16_MAX) % writers->count];
}

int det_runtime_submit(struct det_runtime *runtime, struct det_send *send)
{
    struct det_writers *writers;
    struct det_writer *writer;
    int r;

    det_assert(runtime && send->machine && send->instance && send->event && send->done);
    r = get_writers(runtime, &writers);
    if (r < 0)
        return r;
    send->sent = (struct det_sent){ 0 };
    send->internal.deadline = 0;
    writer = writer_for(writers, det_served_hash(runtime, send->instance));
    det_mutex_lock(runtime->world, writer->mutex);
    if (writer->is_closing) {
        r = DET_ERR_CLOSED;
    } else {
        chain_append(&writer->queue, send);
        if (writer->is_asleep)
            det_condition_signal(runtime->world, writer->filled);
        writer->is_asleep = false;
    }
    det_mutex_unlock(runtime->world, writer->mutex);
    return r;
}

struct det_batch *det_writers_batch(struct det_runtime *runtime, const void *self)
{
    struct det_writers *writers = atomic_load_explicit(&runtime->writers, memory_order_acquire);

    for (uint32_t i = 0; writers && i < writers->count; i++) {
        if (atomic_load(&writers->all[i].batch->owner) == self)
            return writers->all[i].batch;
    }
    return NULL;
}

void det_writers_stop(struct det_runtime *runtime)
{
    struct det_writers *writers;

    det_mutex_lock(runtime->world, runtime->mutex);
    runtime->are_writers_stopped = true;
    writers = atomic_load(&runtime->writers);
    det_mutex_unlock(runtime->world, runtime->mutex);
    for (uint32_t i = 0; writers && i < writers->count; i++) {
        struct det_writer *writer = &writers->all[i];

        det_mutex_lock(runtime->world, writer->mutex);
        writer->is_closing = true;
        det_condition_signal(runtime->world, writer->filled);
        det_mutex_unlock(runtime->world, writer->mutex);
    }
    for (uint32_t i = 0; writers && i < writers->count; i++)
        det_thread_join(runtime->world, writers->all[i].thread);
}

void det_writers_close(struct det_runtime *runtime)
{
    close_writers(runtime, atomic_exchange(&runtime->writers, NULL));
}
