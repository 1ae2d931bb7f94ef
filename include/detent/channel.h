/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel.h - messages to and from a relay, for workers in modules. A worker of the kind
 * communicator transports them (docs/communicator.md).
 *
 *     struct det_channel *channel = det_worker_inherited(context, DET_CHANNEL_NAME);
 *
 *     r = det_channel_send(channel, &(struct det_message){ .content = "42 bottles" }, 0);
 *
 * `detent up` provides one channel for all workers of its tree. Messages wait while the tree has no
 * communicator. The channel outlives every worker. Any thread may make these calls; they need no
 * library. */
#ifndef DETENT_CHANNEL_H
#define DETENT_CHANNEL_H

#include <detent/world.h>

DET_BEGIN

/* The name by which workers inherit it: det_worker_inherited(). */
#define DET_CHANNEL_NAME    "channel"

#define DET_MESSAGE_MAX     524288 /* bytes in the content of a message */
#define DET_MESSAGE_KEY_MAX 254    /* bytes in each of the other texts */

/* A message. Texts are UTF-8; NULL means "". */
struct det_message {
    const char *instance; /* sender or receiver */
    const char *content;
    const char *email;
    const char *trace_id; /* distinguishes two deliveries of one message */
};

struct det_channel;

/* Implemented by the program; call the functions below instead. */
struct det_channel_calls {
    int (*send)(struct det_channel *channel, const struct det_message *message, det_time deadline);
    int (*receive)(
        struct det_channel *channel, det_time deadline,
        void (*take)(void *user, const struct det_message *message), void *user);
};
struct det_channel {
    const struct det_channel_calls *calls;
};

/* Queues a message for the relay. The message is kept until the relay acknowledges it, as long as
 * the process lives, and is delivered at least once. Waits for room until the deadline (monotonic);
 * 0: does not wait. DET_ERR_TIMEOUT: 1,100 messages are queued; DET_ERR_LIMIT: a text is too long;
 * DET_ERR_MALFORMED: a text is not UTF-8; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK static inline int det_channel_send(
    struct det_channel *channel, const struct det_message *message, det_time deadline)
{
    return channel->calls->send(channel, message, deadline);
}

/* Calls `take` with the oldest received message, borrowed for the call. After the first call
 * `detent up` stops logging messages and leaves them to the caller. Waits like det_channel_send().
 * DET_ERR_TIMEOUT: no message. */
DET_MUST_CHECK static inline int det_channel_receive(
    struct det_channel *channel, det_time deadline,
    void (*take)(void *user, const struct det_message *message), void *user)
{
    return channel->calls->receive(channel, deadline, take, user);
}

DET_END
#endif
