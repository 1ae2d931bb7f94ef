/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel.h - messages to and from a relay, for workers of a module: what a worker of the kind
 * communicator carries (docs/communicator.md).
 *
 *     struct det_channel *channel = det_worker_inherited(context, DET_CHANNEL_NAME);
 *
 *     r = det_channel_send(channel, &(struct det_message){ .content = "42 bottles" }, 0);
 *
 * `detent up` provides one channel for all workers of its tree, also when there is no communicator
 * in it yet: messages wait. It outlives every worker. All calls are for any thread, and need no
 * library. */
#ifndef DETENT_CHANNEL_H
#define DETENT_CHANNEL_H

#include <detent/world.h>

DET_BEGIN

/* The name by which workers inherit it: det_worker_inherited(). */
#define DET_CHANNEL_NAME    "channel"

#define DET_MESSAGE_MAX     524288 /* bytes of a content */
#define DET_MESSAGE_KEY_MAX 254    /* bytes of each of the other texts */

/* What a message says; UTF-8. NULL is "" in each. */
struct det_message {
    const char *instance; /* whom it is for, or from */
    const char *content;
    const char *email;
    const char *trace_id; /* tells two deliveries of one message */
};

struct det_channel;

/* The program's side; use the functions below. */
struct det_channel_calls {
    int (*send)(struct det_channel *channel, const struct det_message *message, det_time deadline);
    int (*receive)(
        struct det_channel *channel, det_time deadline,
        void (*take)(void *user, const struct det_message *message), void *user);
};
struct det_channel {
    const struct det_channel_calls *calls;
};

/* Takes a message to be pushed. It is kept until the relay has acknowledged it, as long as the
 * process lives, and arrives at least once. Waits for room until the deadline, monotonic; 0: not at
 * all. DET_ERR_TIMEOUT: 1,100 messages wait already; DET_ERR_LIMIT: a text is too long;
 * DET_ERR_MALFORMED: one is not UTF-8; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK static inline int det_channel_send(
    struct det_channel *channel, const struct det_message *message, det_time deadline)
{
    return channel->calls->send(channel, message, deadline);
}

/* Calls `take` with the oldest message that was pulled, which is borrowed for the call. From the
 * first call on, `detent up` no longer logs messages: they are the caller's. Waits as above.
 * DET_ERR_TIMEOUT: none has come. */
DET_MUST_CHECK static inline int det_channel_receive(
    struct det_channel *channel, det_time deadline,
    void (*take)(void *user, const struct det_message *message), void *user)
{
    return channel->calls->receive(channel, deadline, take, user);
}

DET_END
#endif
