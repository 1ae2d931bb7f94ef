/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.h - task events, for observers. detent itself does not depend on these events: commands,
 * replies and completions have their own, lossless channels.
 *
 *     owner loop --publish--> ring of the last events (sequence = place in the ring)
 *                                | pushes the sequence into each subscriber's queue
 *                                v
 *     subscriber's own FIFO -> on_event(), one at a time, in order
 *
 * Publishing never blocks and never fails. If the queue of a subscriber is full, that subscriber
 * alone loses the new event. Lost events are counted (det_bus_lost(), det_subscription_counts()).
 * When the queue has room again, one SUBSCRIBER_OVERFLOWED event has the number of lost events. The
 * default ring and queue hold 16,384 events. The supervisor ends and starts tasks in portions of
 * half of that, so a loop subscriber sees every end of a burst. If one call publishes more, such as
 * an add of 10,000 tasks in one turn, the oldest events are lost.
 *
 * A lossless subscriber (`is_lossless`) sees every event: it keeps copies in its own growing queue.
 * When that queue has `capacity` events, new work waits until half of them are delivered: no
 * attempt starts, and adds and submissions from other threads wait. Calls on the loop, calls from a
 * subscriber's own thread, and calls with `try` in their name return DET_ERR_BUSY. Running attempts
 * continue and publish events; the loop never waits. A DET_DELIVER_LOSSLESS subscriber is called
 * during publish instead.
 *
 * If the ring overwrites queued events of a slow subscriber, that subscriber alone gets
 * SUBSCRIBER_OVERFLOWED with the reason "lagged"; the sequence is that of the last event missed.
 * When a callback fails, the other subscribers get SUBSCRIBER_FAILED; the subscriber stays
 * subscribed. */
#ifndef DETENT_BUS_H
#define DETENT_BUS_H

#include <detent/world.h>

DET_BEGIN

struct det_bus;
struct det_subscription;

enum det_task_event_kind {
#define DET_TASK_EVENT(name, label, about) DET_TASK_EVENT_##name,
#include <detent/task_events.def>
    DET_TASK_EVENT_COUNT,
};

/* How a task ended. */
enum det_task_outcome {
    DET_TASK_OUTCOME_NONE,
    DET_TASK_OUTCOME_COMPLETED,
    DET_TASK_OUTCOME_FAILED,        /* failed, and the policy permits no more retries */
    DET_TASK_OUTCOME_FATAL,         /* reported a fatal error */
    DET_TASK_OUTCOME_CANCELLED,     /* stopped on request */
    DET_TASK_OUTCOME_FORCE_ABORTED, /* did not stop in time and was killed */
    DET_TASK_OUTCOME_REJECTED,      /* never ran; see the rejection */
    DET_TASK_OUTCOME_COUNT,
};

/* Why a task was not admitted. */
enum det_rejection {
    DET_REJECTION_NONE,
    DET_REJECTION_ALREADY_EXISTS,
    DET_REJECTION_BATCH_REJECTED, /* another of its batch was not admitted */
    DET_REJECTION_SLOT_BUSY,
    DET_REJECTION_QUEUE_FULL,
    DET_REJECTION_SUPERSEDED, /* replaced by a newer submission */
    DET_REJECTION_REMOVED,    /* removed from the queue */
    DET_REJECTION_PURGED,     /* the slot was purged or replaced */
    DET_REJECTION_SHUTTING_DOWN,
    DET_REJECTION_FAILED, /* an error, such as out of memory; see the reason */
    DET_REJECTION_COUNT,
};

enum det_backoff_source {
    DET_BACKOFF_AFTER_FAILURE,
    DET_BACKOFF_AFTER_SUCCESS,
};

#define DET_TASK_NAME_MAX   127 /* bytes in the name of a task, slot or group */
#define DET_TASK_REASON_MAX 191

/* An event. Fields that do not belong to the kind are zero. Borrowed for the call. */
struct det_task_event {
    uint64_t sequence; /* number within this bus, from 1, without gaps; a gap seen is a loss */
    det_time at;       /* wall time */
    uint64_t id;       /* task id; 0: no task */
    enum det_task_event_kind kind;
    uint32_t attempt;  /* number of the attempt, from 1 */
    det_time delay;    /* BACKOFF_SCHEDULED: delay before the next attempt */
    det_time timeout;  /* ATTEMPT_TIMED_OUT: the limit */
    det_time duration; /* duration of the attempt, in the four events that end one */
    uint64_t count;    /* depth of the slot's queue; events lost; runs missed */
    int32_t exit_code; /* valid if has_exit_code */
    uint8_t signal;    /* the signal that ended the process; 0: none */
    uint8_t outcome;   /* TASK_FINISHED: enum det_task_outcome */
    uint8_t rejection; /* enum det_rejection */
    uint8_t source;    /* BACKOFF_SCHEDULED: enum det_backoff_source */
    bool has_exit_code;
    bool is_restart; /* ATTEMPT_STARTING: a restart; not the first attempt or a scheduled one */
    char name[DET_TASK_NAME_MAX + 1];
    char reason[DET_TASK_REASON_MAX + 1]; /* for people; do not parse it */
};

/* The stable names for logs: "task_added", "completed", "queue_full". Never NULL. */
DET_API const char *det_task_event_label(enum det_task_event_kind kind);
DET_API const char *det_task_outcome_label(enum det_task_outcome outcome);
DET_API const char *det_rejection_label(enum det_rejection rejection);

/* Formats an event as one line without a newline, cut if necessary: text for people, such as "[42]
 * attempt_failed web attempt=3 exit_code=1: connection refused", or a JSON object. Both escape
 * control characters and invalid UTF-8. Returns the length, like snprintf(). Every event fits in
 * DET_TASK_EVENT_LINE_MAX bytes. */
#define DET_TASK_EVENT_LINE_MAX 2560
DET_API size_t det_task_event_text(const struct det_task_event *event, char *target, size_t size);
DET_API size_t det_task_event_json(const struct det_task_event *event, char *target, size_t size);

enum det_delivery {
    DET_DELIVER_THREAD,   /* on its own thread; may block without an effect on others */
    DET_DELIVER_LOOP,     /* on the owner loop, after the turn that published; must not block */
    DET_DELIVER_LOSSLESS, /* on the owner loop, during publish: for an audit. No queue, no loss. The
                           * callback must be quick and must not call the tasks API */
};

struct det_subscriber {
    const char *name;  /* copied; NULL: "subscriber" */
    uint32_t capacity; /* capacity of the queue; 0: 16384, lossless 65536; at most
                        * DET_SUBSCRIBER_CAPACITY_MAX */
    enum det_delivery delivery;
    bool is_lossless; /* THREAD, LOOP: lose no event; new work waits for this subscriber, see the
                       * head of this file */
    /* A negative return value is published as SUBSCRIBER_FAILED, unless the event was a
     * diagnostic. */
    int (*on_event)(void *user, const struct det_task_event *event);
    /* LOSSLESS: called after each turn of the loop that published events; may be NULL. An error is
     * published as RUNTIME_FAILURE, once until a call succeeds again. */
    int (*on_turn)(void *user);
    /* Called after the last event; may be NULL. Must not block. */
    void (*on_close)(void *user);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};
#define DET_SUBSCRIBER_CAPACITY_MAX 1048576
#define DET_SUBSCRIBERS_MAX         32

struct det_subscription_counts {
    uint64_t delivered, dropped, lagged, failed;
    uint64_t wakes; /* wakeups of the subscriber's thread or of the loop: at most one per drain */
};

/* Subscribes to later events. Any thread. DET_ERR_LIMIT: too many subscribers; DET_ERR_CLOSED: the
 * bus has ended. If `ret` is NULL, the subscription ends with the bus. */
DET_API int det_bus_subscribe(
    struct det_bus *bus, const struct det_subscriber *subscriber, struct det_subscription **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Ends a subscription. Queued events are delivered until the (monotonic) deadline (0: not at all),
 * the rest is dropped; this call delivers the queue of a LOOP subscriber. DET_ERR_TIMEOUT: a
 * callback still runs; its resources must stay, and the subscription may be stopped again.
 * LOSSLESS: calls on_turn() once more and returns its error. A subscription that is not stopped
 * this way ends with the bus at shutdown and stays valid until the tasks are closed; stopping it
 * then is harmless. Not from its own callback. */
DET_API int det_subscription_stop(struct det_subscription *subscription, det_time deadline);
DET_API struct det_subscription_counts det_subscription_counts(
    const struct det_subscription *subscription);

/* Reads without a subscription. Any thread. Returns 1 with the event after *cursor that is still in
 * the ring, and moves the cursor to it; 0: no event yet. *ret_lost is the number of lost events
 * between the cursor and this event. A cursor of 0 starts at the oldest event; the sequence of any
 * event continues after that event. */
DET_API int det_bus_read(
    struct det_bus *bus, uint64_t *cursor, struct det_task_event *ret, uint64_t *ret_lost);
/* The sequence of the newest event; 0: none. */
DET_API uint64_t det_bus_newest(const struct det_bus *bus);
/* Events lost so far by all subscribers, including ended ones. */
DET_API uint64_t det_bus_lost(const struct det_bus *bus);

/* Ready-made subscribers. */

/* Writes each event as a line through `write`, for example to stderr. */
struct det_task_log_writer {
    int (*write)(void *user, const char *line, size_t size); /* including its newline */
    void *user;
    bool is_json;
};
/* `writer` is borrowed until the subscription ends. */
DET_API struct det_subscriber det_task_log_subscriber(const struct det_task_log_writer *writer);

/* The audit file: every event as a JSON line, lossless, flushed and synced once per turn of the
 * loop; see docs/formats/task-journal.md. The file is opened for appending, and a torn last line is
 * cut off. After a failed sync nothing more is written, and the failure is published as
 * RUNTIME_FAILURE. */
struct det_task_journal;
DET_API int det_task_journal_open(
    struct det_world *world, const char *path, const struct det_allocator *allocator,
    struct det_task_journal **ret, struct det_error *reterr) DET_MUST_CHECK;
/* Call this after the subscription has ended. Accepts NULL. */
DET_API void det_task_journal_close(struct det_task_journal *journal);
DET_API struct det_subscriber det_task_journal_subscriber(struct det_task_journal *journal);

DET_END
#endif
