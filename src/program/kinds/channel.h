/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel.h - messages between a program and a relay: shared by the program and the communicator,
 * which transports them. It outlives the worker, so that nothing is lost when the worker restarts.
 *
 *     program --send--> outbound --drain--> pending --push--> relay
 *                                              |  removed when the relay has acknowledged it, or
 *                                              |  can never accept it: counted, with the reason
 *     program <--receive-- inbound <--deliver-- pull <-- relay
 *                             |  full: no pull until half of it is received
 *
 * Any thread may call. A message is delivered at least once: if the acknowledgement is lost, it is
 * pushed again; `trace_id` identifies it. */
#ifndef DET_KINDS_CHANNEL_H
#define DET_KINDS_CHANNEL_H

#include <detent/channel.h>

#include "base/list.h"

#define CHANNEL_REASON_MAX 160
#define CHANNEL_BATCH_MAX  1000

/* The first member is the struct det_channel that workers of modules inherit. */
struct channel;

/* A message; shared, and constant except for the members of the channel. */
struct channel_message {
    struct det_message text; /* no member is NULL */
    size_t size;             /* total bytes of its texts */
    /* Owned by the channel. */
    struct det_list node;
    const struct det_allocator *allocator;
    size_t block;
    uint32_t references;
    bool is_pending;
};

/* DET_ERR_LIMIT: a text is too long; DET_ERR_MALFORMED: it is not UTF-8. */
DET_MUST_CHECK int channel_message_open(
    const struct det_allocator *allocator, const struct det_message *text,
    struct channel_message **ret);
/* Releases a reference. NULL is allowed. */
void channel_message_close(struct channel_message *message);
/* Closes every message of a list, and empties it. */
void channel_messages_close(struct det_list *messages);

struct channel_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    uint32_t inbound_max;  /* 0: 100; when full, nothing is pulled until half of them are
                            * received */
    uint32_t outbound_max; /* 0: 100; what does not fit becomes pending at once */
    uint32_t pending_max;  /* 0: 1000 */
};
DET_MUST_CHECK int channel_open(const struct channel_options *options, struct channel **ret);
/* Call it when no thread uses the channel. */
void channel_close(struct channel *channel);

/* For the program. Both wait until the deadline (monotonic) if necessary; 0: no wait. */

/* DET_ERR_TIMEOUT: both queues stayed full; and as channel_message_open(). */
DET_MUST_CHECK int channel_send(
    struct channel *channel, const struct det_message *text, det_time deadline);
/* Returns the oldest message, which the caller closes. DET_ERR_TIMEOUT: none has arrived. */
DET_MUST_CHECK int channel_receive(
    struct channel *channel, det_time deadline, struct channel_message **ret_take);

/* Returns true if a worker has called det_channel_receive(): messages are left to it. */
bool channel_has_receiver(struct channel *channel);

/* Counters. */
struct channel_counts {
    uint32_t inbound, outbound, pending;
    uint64_t delivered, acknowledged, dropped;
    char dropped_because[CHANNEL_REASON_MAX + 1]; /* reason of the last one; "": none */
    bool is_inbound_full;
};
void channel_check(struct channel *channel, struct channel_counts *ret);

/* For the communicator. */

/* Returns false if the program must receive first. */
bool channel_wants_more(struct channel *channel);
/* Takes over the whole list, even beyond the limit: messages that the relay has handed out are not
 * dropped. */
void channel_deliver(struct channel *channel, struct det_list *messages_take);
/* Counts invalid messages as dropped. */
void channel_refuse(struct channel *channel, uint32_t count, const char *because);
/* Moves sent messages to the pending ones, as far as there is room; returns how many are
 * pending. */
uint32_t channel_drain(struct channel *channel);
/* The oldest of the pending, to be pushed together, at most CHANNEL_BATCH_MAX: one after a failure,
 * twice as many after each success; at least one, else at most 1 MiB. Returns how many; they are
 * there until channel_unpeek(), whatever happens to them meanwhile. */
uint32_t channel_peek(struct channel *channel, struct channel_message **ret_list);
void channel_unpeek(struct channel_message *const *list, uint32_t count);
/* Removes acknowledged messages. */
void channel_acknowledge(
    struct channel *channel, struct channel_message *const *list, uint32_t count);
/* A push has failed: the next one has one message. */
void channel_push_failed(struct channel *channel);
/* Removes a message that the relay can never accept. */
void channel_drop(struct channel *channel, struct channel_message *message, const char *because);

#endif
