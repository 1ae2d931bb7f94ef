/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel.h - messages between a program and a relay: what the program has in common with the
 * communicator, which carries them. It outlives the worker, so that nothing is lost when that
 * begins anew.
 *
 *     program --send--> outbound --drain--> pending --push--> relay
 *                                              |  gone when the relay has acknowledged it, or
 *                                              |  when it can never be taken: counted, with why
 *     program <--receive-- inbound <--deliver-- pull <-- relay
 *                             |  full: not pulled until half of it is received
 *
 * All of it is for any thread. A message is delivered at least once: if the acknowledgement is
 * lost, it is pushed again; `trace_id` tells. */
#ifndef DET_KINDS_CHANNEL_H
#define DET_KINDS_CHANNEL_H

#include <detent/channel.h>

#include "base/list.h"

#define CHANNEL_REASON_MAX 160
#define CHANNEL_BATCH_MAX  1000

/* Its first member is the struct det_channel that workers of modules inherit. */
struct channel;

/* A message; shared, and constant but for what belongs to the channel. */
struct channel_message {
    struct det_message text; /* no NULL in it */
    size_t size;             /* bytes of all its texts */
    /* Of the channel. */
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
/* One reference less. Takes NULL. */
void channel_message_close(struct channel_message *message);
/* Each of a list, which is empty then. */
void channel_messages_close(struct det_list *messages);

struct channel_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    uint32_t inbound_max;  /* 0: 100; then nothing is pulled until half of them are received */
    uint32_t outbound_max; /* 0: 100; what does not fit becomes pending at once */
    uint32_t pending_max;  /* 0: 1000 */
};
DET_MUST_CHECK int channel_open(const struct channel_options *options, struct channel **ret);
/* When nobody uses it any more. */
void channel_close(struct channel *channel);

/* For the program. Both wait until the deadline, monotonic, if they have to; 0: not at all. */

/* DET_ERR_TIMEOUT: both queues are full, and stayed so; and as channel_message_open(). */
DET_MUST_CHECK int channel_send(
    struct channel *channel, const struct det_message *text, det_time deadline);
/* The oldest one, yours to close. DET_ERR_TIMEOUT: none has come. */
DET_MUST_CHECK int channel_receive(
    struct channel *channel, det_time deadline, struct channel_message **ret_take);

/* Whether a worker has received by det_channel_receive(): messages are left to it. */
bool channel_has_receiver(struct channel *channel);

/* How it stands. */
struct channel_counts {
    uint32_t inbound, outbound, pending;
    uint64_t delivered, acknowledged, dropped;
    char dropped_because[CHANNEL_REASON_MAX + 1]; /* the last one; "": none was */
    bool is_inbound_full;
};
void channel_look(struct channel *channel, struct channel_counts *ret);

/* For the communicator. */

/* False: the program must receive first. */
bool channel_wants_more(struct channel *channel);
/* Takes all of the list. May be more than there is room for: what the relay has handed out is not
 * thrown away. */
void channel_deliver(struct channel *channel, struct det_list *messages_take);
/* So many messages came that are none: they count as dropped. */
void channel_refuse(struct channel *channel, uint32_t count, const char *because);
/* Moves what was sent to what is pending, as far as there is room; how many are pending. */
uint32_t channel_drain(struct channel *channel);
/* The oldest of the pending, to be pushed together, at most CHANNEL_BATCH_MAX: one after a failure,
 * twice as many after each success; at least one, else at most 1 MiB. Returns how many; they are
 * there until channel_unpeek(), whatever happens to them meanwhile. */
uint32_t channel_peek(struct channel *channel, struct channel_message **ret_list);
void channel_unpeek(struct channel_message *const *list, uint32_t count);
/* They have arrived. */
void channel_acknowledge(
    struct channel *channel, struct channel_message *const *list, uint32_t count);
/* A push has failed: the next one is of one message. */
void channel_push_failed(struct channel *channel);
/* It can never be taken. */
void channel_drop(struct channel *channel, struct channel_message *message, const char *because);

#endif
