/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel.c - messages between a program and a relay: three queues under one lock.
 *
 * A message is in at most one queue, which owns one reference to it. */
#include "kinds/channel.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

#define INBOUND_MAX  100
#define OUTBOUND_MAX 100
#define PENDING_MAX  1000
/* Size limit of one push. */
#define BATCH_BYTES 1048576
#define TEXTS       4

struct queue {
    struct det_list messages;
    uint32_t count, max;
};

struct channel {
    struct det_channel base; /* for workers of modules */
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_mutex *mutex;
    struct det_condition *moved; /* something came into a queue, or left one */
    struct queue inbound, outbound, pending;
    bool is_inbound_full;
    bool has_receiver;
    uint32_t batch; /* size limit of the next push in messages */
    uint64_t delivered, acknowledged, dropped;
    char dropped_because[CHANNEL_REASON_MAX + 1];
};

static void assert_queue(const struct queue *queue)
{
    det_assert(det_list_is_empty(&queue->messages) == (queue->count == 0));
}

/* Under the lock. Only messages that the relay has handed out may exceed the limit of their
 * queue. */
static void assert_channel(const struct channel *channel)
{
    assert_queue(&channel->inbound);
    assert_queue(&channel->outbound);
    assert_queue(&channel->pending);
    det_assert(channel->outbound.count <= channel->outbound.max);
    det_assert(channel->pending.count <= channel->pending.max);
    det_assert(channel->batch >= 1 && channel->batch <= CHANNEL_BATCH_MAX);
    det_assert(!channel->is_inbound_full || channel->inbound.count > channel->inbound.max / 2);
}

static int check_text(const char *text, size_t max, size_t *ret_size)
{
    *ret_size = strlen(text);
    if (*ret_size > max)
        return DET_ERR_LIMIT;
    return det_utf8_check(text, *ret_size) == *ret_size ? 0 : DET_ERR_MALFORMED;
}

int channel_message_open(
    const struct det_allocator *allocator, const struct det_message *text,
    struct channel_message **ret)
{
    const char *texts[TEXTS] = { text->instance, text->content, text->email, text->trace_id };
    size_t sizes[TEXTS], block = sizeof(struct channel_message);
    struct channel_message *message;
    char *place;
    int r;

    for (int i = 0; i < TEXTS; i++) {
        texts[i] = texts[i] ? texts[i] : "";
        r = check_text(texts[i], i == 1 ? DET_MESSAGE_MAX : DET_MESSAGE_KEY_MAX, &sizes[i]);
        if (r < 0)
            return r;
        block += sizes[i] + 1;
    }
    message = det_alloc_zero(allocator, block);
    if (!message)
        return DET_ERR_NO_MEMORY;
    place = (char *)(message + 1);
    for (int i = 0; i < TEXTS; i++) {
        memcpy(place, texts[i], sizes[i] + 1);
        texts[i] = place;
        place += sizes[i] + 1;
        message->size += sizes[i];
    }
    det_assert(place == (char *)message + block);
    message->text = (struct det_message){ texts[0], texts[1], texts[2], texts[3] };
    message->allocator = allocator;
    message->block = block;
    message->references = 1;
    det_list_init(&message->node);
    *ret = message;
    return 0;
}

void channel_message_close(struct channel_message *message)
{
    uint32_t before;

    if (!message)
        return;
    before = __atomic_fetch_sub(&message->references, 1, __ATOMIC_ACQ_REL);
    det_assert(before > 0);
    if (before == 1)
        det_free(message->allocator, message, message->block);
}

void channel_messages_close(struct det_list *messages)
{
    for (struct det_list *node; (node = det_list_take(messages));)
        channel_message_close(DET_CONTAINER(node, struct channel_message, node));
}

static void queue_init(struct queue *queue, uint32_t max, uint32_t otherwise)
{
    det_list_init(&queue->messages);
    queue->max = max ? max : otherwise;
}

static void queue_put(struct queue *queue, struct channel_message *message)
{
    /* In no other queue. */
    det_assert(det_list_is_empty(&message->node));
    det_list_append(&queue->messages, &message->node);
    queue->count++;
}

static struct channel_message *queue_take(struct queue *queue)
{
    struct det_list *node = det_list_take(&queue->messages);

    if (!node)
        return NULL;
    det_assert(queue->count > 0);
    queue->count--;
    return DET_CONTAINER(node, struct channel_message, node);
}

/* For workers of modules. */

static int send_for_worker(
    struct det_channel *base, const struct det_message *message, det_time deadline)
{
    return channel_send(DET_CONTAINER(base, struct channel, base), message, deadline);
}

static int receive_for_worker(
    struct det_channel *base, det_time deadline,
    void (*take)(void *user, const struct det_message *message), void *user)
{
    struct channel *channel = DET_CONTAINER(base, struct channel, base);
    struct channel_message *message;
    int r;

    det_mutex_lock(channel->world, channel->mutex);
    channel->has_receiver = true;
    det_mutex_unlock(channel->world, channel->mutex);
    r = channel_receive(channel, deadline, &message);
    if (r < 0)
        return r;
    take(user, &message->text);
    channel_message_close(message);
    return 0;
}

static const struct det_channel_calls calls_for_workers = {
    .send = send_for_worker,
    .receive = receive_for_worker,
};

int channel_open(const struct channel_options *options, struct channel **ret)
{
    struct channel *channel = DET_NEW(options->allocator, struct channel);
    int r;

    if (!channel)
        return DET_ERR_NO_MEMORY;
    channel->base.calls = &calls_for_workers;
    channel->world = det_world_or_real(options->world);
    channel->allocator = options->allocator;
    queue_init(&channel->inbound, options->inbound_max, INBOUND_MAX);
    queue_init(&channel->outbound, options->outbound_max, OUTBOUND_MAX);
    queue_init(&channel->pending, options->pending_max, PENDING_MAX);
    channel->batch = CHANNEL_BATCH_MAX;
    r = det_mutex_open(channel->world, &channel->mutex);
    if (r == 0)
        r = det_condition_open(channel->world, &channel->moved);
    if (r < 0) {
        channel_close(channel);
        return r;
    }
    *ret = channel;
    return 0;
}

void channel_close(struct channel *channel)
{
    if (!channel)
        return;
    channel_messages_close(&channel->inbound.messages);
    channel_messages_close(&channel->outbound.messages);
    channel_messages_close(&channel->pending.messages);
    det_condition_close(channel->world, channel->moved);
    det_mutex_close(channel->world, channel->mutex);
    DET_DELETE(channel->allocator, channel);
}

static void lock_channel(struct channel *channel)
{
    det_mutex_lock(channel->world, channel->mutex);
}

static void unlock_channel(struct channel *channel)
{
    assert_channel(channel);
    det_mutex_unlock(channel->world, channel->mutex);
}

/* Under the lock. */
static int wait_until(struct channel *channel, det_time deadline)
{
    if (!deadline)
        return DET_ERR_TIMEOUT;
    return det_condition_wait(channel->world, channel->moved, channel->mutex, deadline);
}

/* Under the lock. */
static void drain_queues(struct channel *channel)
{
    struct channel_message *message;

    while (channel->pending.count < channel->pending.max &&
           (message = queue_take(&channel->outbound))) {
        message->is_pending = true;
        queue_put(&channel->pending, message);
    }
    det_condition_broadcast(channel->world, channel->moved);
}

int channel_send(struct channel *channel, const struct det_message *text, det_time deadline)
{
    struct channel_message *message;
    int r;

    r = channel_message_open(channel->allocator, text, &message);
    if (r < 0)
        return r;
    lock_channel(channel);
    while (r == 0 && channel->outbound.count >= channel->outbound.max) {
        /* In an outage a long time passes between two attempts, while there may be room. */
        drain_queues(channel);
        if (channel->outbound.count >= channel->outbound.max)
            r = wait_until(channel, deadline);
    }
    if (r == 0)
        queue_put(&channel->outbound, message);
    unlock_channel(channel);
    if (r < 0)
        channel_message_close(message);
    return r;
}

int channel_receive(struct channel *channel, det_time deadline, struct channel_message **ret_take)
{
    struct channel_message *message;
    int r = 0;

    lock_channel(channel);
    while (r == 0 && channel->inbound.count == 0)
        r = wait_until(channel, deadline);
    message = r == 0 ? queue_take(&channel->inbound) : NULL;
    if (channel->inbound.count <= channel->inbound.max / 2)
        channel->is_inbound_full = false;
    unlock_channel(channel);
    if (message)
        *ret_take = message;
    return r;
}

bool channel_has_receiver(struct channel *channel)
{
    bool has_receiver;

    lock_channel(channel);
    has_receiver = channel->has_receiver;
    unlock_channel(channel);
    return has_receiver;
}

void channel_check(struct channel *channel, struct channel_counts *ret)
{
    *ret = (struct channel_counts){ 0 };
    lock_channel(channel);
    ret->inbound = channel->inbound.count;
    ret->outbound = channel->outbound.count;
    ret->pending = channel->pending.count;
    ret->delivered = channel->delivered;
    ret->acknowledged = channel->acknowledged;
    ret->dropped = channel->dropped;
    ret->is_inbound_full = channel->is_inbound_full;
    memcpy(ret->dropped_because, channel->dropped_because, sizeof ret->dropped_because);
    unlock_channel(channel);
}

bool channel_wants_more(struct channel *channel)
{
    bool wants_more;

    lock_channel(channel);
    wants_more = !channel->is_inbound_full;
    unlock_channel(channel);
    return wants_more;
}

void channel_deliver(struct channel *channel, struct det_list *messages_take)
{
    lock_channel(channel);
    for (struct det_list *node; (node = det_list_take(messages_take));) {
        queue_put(&channel->inbound, DET_CONTAINER(node, struct channel_message, node));
        channel->delivered++;
    }
    if (channel->inbound.count >= channel->inbound.max)
        channel->is_inbound_full = true;
    det_condition_broadcast(channel->world, channel->moved);
    unlock_channel(channel);
}

uint32_t channel_drain(struct channel *channel)
{
    uint32_t count;

    lock_channel(channel);
    drain_queues(channel);
    count = channel->pending.count;
    unlock_channel(channel);
    return count;
}

uint32_t channel_peek(struct channel *channel, struct channel_message **ret_list)
{
    struct det_list *head = &channel->pending.messages;
    uint32_t count = 0;
    size_t size = 0;

    lock_channel(channel);
    for (struct det_list *node = head->next; node != head && count < channel->batch;
         node = node->next) {
        struct channel_message *message = DET_CONTAINER(node, struct channel_message, node);

        size += message->size;
        if (count && size > BATCH_BYTES)
            break;
        __atomic_add_fetch(&message->references, 1, __ATOMIC_RELAXED);
        det_assert(message->is_pending);
        ret_list[count++] = message;
    }
    det_assert(count > 0 || channel->pending.count == 0);
    unlock_channel(channel);
    return count;
}

void channel_unpeek(struct channel_message *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        channel_message_close(list[i]);
}

/* Under the lock. Another thread may have been faster, for instance a worker that was abandoned. */
static bool is_removed(struct channel *channel, struct channel_message *message)
{
    if (!message->is_pending)
        return false;
    message->is_pending = false;
    det_list_remove(&message->node);
    det_assert(channel->pending.count > 0);
    channel->pending.count--;
    channel_message_close(message);
    det_condition_broadcast(channel->world, channel->moved);
    return true;
}

void channel_acknowledge(
    struct channel *channel, struct channel_message *const *list, uint32_t count)
{
    det_assert(count <= CHANNEL_BATCH_MAX);
    lock_channel(channel);
    for (uint32_t i = 0; i < count; i++)
        channel->acknowledged += is_removed(channel, list[i]);
    channel->batch =
        channel->batch * 2 < CHANNEL_BATCH_MAX ? channel->batch * 2 : CHANNEL_BATCH_MAX;
    unlock_channel(channel);
}

void channel_push_failed(struct channel *channel)
{
    lock_channel(channel);
    channel->batch = 1;
    unlock_channel(channel);
}

/* Under the lock. */
static void note_dropped(struct channel *channel, uint32_t count, const char *because)
{
    channel->dropped += count;
    (void)det_text_copy(channel->dropped_because, sizeof channel->dropped_because, because);
}

void channel_drop(struct channel *channel, struct channel_message *message, const char *because)
{
    lock_channel(channel);
    if (is_removed(channel, message))
        note_dropped(channel, 1, because);
    unlock_channel(channel);
}

void channel_refuse(struct channel *channel, uint32_t count, const char *because)
{
    lock_channel(channel);
    note_dropped(channel, count, because);
    unlock_channel(channel);
}
