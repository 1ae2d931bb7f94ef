/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.h - events of tasks, for observers. Nothing is decided by an event: commands, replies and
 * completions have channels of their own, which lose nothing.
 *
 *     owner loop --publish--> ring of the last events (sequence = place in the ring)
 *                                | pushes the sequence into each subscriber's queue
 *                                v
 *     subscriber's own FIFO -> on_event(), one at a time, in order
 *
 * Publishing never blocks and never fails. A subscriber whose queue is full loses the new event,
 * and only it; what was lost is counted (det_bus_lost(), det_subscription_counts()), and one
 * SUBSCRIBER_OVERFLOWED event says how many once there is room again. The default ring and queue
 * hold 16,384 events, and the supervisor ends and starts tasks in portions of half of that, so that
 * a subscriber on the loop sees every end of a burst; of more than that which one call publishes,
 * such as an add of 10,000 tasks in one turn, the oldest are lost.
 *
 * A subscriber that must see everything is lossless: `is_lossless` keeps copies in a queue of its
 * own that grows. Once that has `capacity` events, new work waits until half of them are delivered:
 * no attempt starts, adds and submissions from other threads wait, those on the loop, from a
 * subscriber's own thread and with `try` in their name are DET_ERR_BUSY. What runs goes on and is
 * published; the loop never waits. Or it is called inside of publish (DET_DELIVER_LOSSLESS).
 *
 * A subscriber so slow that the ring has come around to what it has queued sees
 * SUBSCRIBER_OVERFLOWED with the reason "lagged", it alone; its sequence is that of the last event
 * missed. When a callback fails, SUBSCRIBER_FAILED is published to the others; the subscriber stays
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

/* How a task came to its end. */
enum det_task_outcome {
    DET_TASK_OUTCOME_NONE,
    DET_TASK_OUTCOME_COMPLETED,
    DET_TASK_OUTCOME_FAILED,        /* no more retries */
    DET_TASK_OUTCOME_FATAL,         /* said so itself */
    DET_TASK_OUTCOME_CANCELLED,     /* asked to stop, and did */
    DET_TASK_OUTCOME_FORCE_ABORTED, /* asked to stop, and did not in time */
    DET_TASK_OUTCOME_REJECTED,      /* never ran: see the rejection */
    DET_TASK_OUTCOME_COUNT,
};

/* Why a task was not admitted. */
enum det_rejection {
    DET_REJECTION_NONE,
    DET_REJECTION_ALREADY_EXISTS,
    DET_REJECTION_BATCH_REJECTED, /* another of its batch was not admitted */
    DET_REJECTION_SLOT_BUSY,
    DET_REJECTION_QUEUE_FULL,
    DET_REJECTION_SUPERSEDED, /* a replace took its place */
    DET_REJECTION_REMOVED,    /* taken out of the queue */
    DET_REJECTION_PURGED,     /* the slot was purged, or replaced as a whole */
    DET_REJECTION_SHUTTING_DOWN,
    DET_REJECTION_FAILED, /* no memory, say; the reason says it */
    DET_REJECTION_COUNT,
};

enum det_backoff_source {
    DET_BACKOFF_AFTER_FAILURE,
    DET_BACKOFF_AFTER_SUCCESS,
};

#define DET_TASK_NAME_MAX   127 /* bytes of a name of a task, slot or group */
#define DET_TASK_REASON_MAX 191

/* A field that does not belong to the kind is zero. Borrowed for the call. */
struct det_task_event {
    uint64_t sequence; /* of this bus, from 1, without gaps; a gap seen is a loss */
    det_time at;       /* wall */
    uint64_t id;       /* of the task; 0: about none */
    enum det_task_event_kind kind;
    uint32_t attempt;  /* from 1 */
    det_time delay;    /* BACKOFF_SCHEDULED: until the next attempt */
    det_time timeout;  /* ATTEMPT_TIMED_OUT: the limit */
    det_time duration; /* of the attempt, on its four ends */
    uint64_t count;    /* depth of the slot's queue; events lost; runs missed */
    int32_t exit_code; /* where has_exit_code */
    uint8_t signal;    /* that ended the process; 0: none */
    uint8_t outcome;   /* TASK_FINISHED: enum det_task_outcome */
    uint8_t rejection; /* enum det_rejection */
    uint8_t source;    /* BACKOFF_SCHEDULED: enum det_backoff_source */
    bool has_exit_code;
    bool is_restart; /* ATTEMPT_STARTING: neither the first one nor one of a schedule */
    char name[DET_TASK_NAME_MAX + 1];
    char reason[DET_TASK_REASON_MAX + 1]; /* for people; never parse it */
};

/* The stable names for logs: "task_added", "completed", "queue_full". Never NULL. */
DET_API const char *det_task_event_label(enum det_task_event_kind kind);
DET_API const char *det_task_outcome_label(enum det_task_outcome outcome);
DET_API const char *det_rejection_label(enum det_rejection rejection);

/* The event as one line without its end, cut if need be: text for people
 * "[42] attempt_failed web attempt=3 exit_code=1: connection refused", or a JSON object. Control
 * characters and what is not UTF-8 are escaped in both. Returns the length, as snprintf() does; in
 * DET_TASK_EVENT_LINE_MAX bytes every event fits. */
#define DET_TASK_EVENT_LINE_MAX 2560
DET_API size_t det_task_event_text(const struct det_task_event *event, char *target, size_t size);
DET_API size_t det_task_event_json(const struct det_task_event *event, char *target, size_t size);

enum det_delivery {
    DET_DELIVER_THREAD,   /* on a thread of its own; may block without effect on others */
    DET_DELIVER_LOOP,     /* on the owner loop, by the thread that has it, after the turn that
                             published; must not block */
    DET_DELIVER_LOSSLESS, /* on the owner loop inside of publish, in every case: for an audit. No
                             queue, nothing lost; it must be quick, and must not use the tasks */
};

struct det_subscriber {
    const char *name;  /* copied; NULL: "subscriber" */
    uint32_t capacity; /* of its queue; 0: 16384, lossless 65536; at most
                          DET_SUBSCRIBER_CAPACITY_MAX */
    enum det_delivery delivery;
    bool is_lossless; /* THREAD, LOOP: loses nothing; new work waits for it, see above */
    /* A negative error is published as SUBSCRIBER_FAILED, unless the event was a diagnostic. */
    int (*on_event)(void *user, const struct det_task_event *event);
    /* LOSSLESS: after each turn of the loop in which something was published; may be NULL. An error
     * is published as RUNTIME_FAILURE, once until it has succeeded again. */
    int (*on_turn)(void *user);
    /* After the last event; may be NULL. It must not block. */
    void (*on_close)(void *user);
    void *user;
};
#define DET_SUBSCRIBER_CAPACITY_MAX 1048576
#define DET_SUBSCRIBERS_MAX         32

struct det_subscription_counts {
    uint64_t delivered, dropped, lagged, failed;
    uint64_t wakes; /* of its thread or of the loop: at most one for each drain */
};

/* From any thread; sees what is published after it. DET_ERR_LIMIT for too many, DET_ERR_CLOSED once
 * the bus has ended. `ret` may be NULL: then it ends with the bus. */
DET_API int det_bus_subscribe(
    struct det_bus *bus, const struct det_subscriber *subscriber, struct det_subscription **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Ends it: what is queued is delivered until the (monotonic) deadline (0: never), then dropped;
 * what is queued for LOOP is delivered by this call. If a callback still runs then, DET_ERR_TIMEOUT
 * is returned, and what it uses must stay; the subscription is still there, and may be ended again.
 * For LOSSLESS, on_turn() is called once more, and its error returned. Those that are not ended
 * this way end with the bus, by a shutdown, and are there until the tasks are closed: to end them
 * once more is harmless. Not from its own callback. */
DET_API int det_subscription_stop(struct det_subscription *subscription, det_time deadline);
DET_API struct det_subscription_counts det_subscription_counts(
    const struct det_subscription *subscription);

/* Reading without subscribing, from any thread: the event after *cursor that is still in the ring.
 * 1 with the event, and the cursor on it; 0 when there is none yet. *ret_lost is how many are gone
 * for ever between the cursor and this event. A cursor of 0 begins at the oldest one; the sequence
 * of any event continues after it. */
DET_API int det_bus_read(
    struct det_bus *bus, uint64_t *cursor, struct det_task_event *ret, uint64_t *ret_lost);
/* The sequence of the newest event; 0: none. */
DET_API uint64_t det_bus_newest(const struct det_bus *bus);
/* How many events subscribers have lost so far, of all of them, those that have ended too. */
DET_API uint64_t det_bus_lost(const struct det_bus *bus);

/* Ready-made subscribers. */

/* Writes each event as a line through `write` (say to stderr). */
struct det_task_log_writer {
    int (*write)(void *user, const char *line, size_t size); /* with its newline */
    void *user;
    bool is_json;
};
/* `writer` is borrowed for as long as the subscription lives. */
DET_API struct det_subscriber det_task_log_subscriber(const struct det_task_log_writer *writer);

/* The audit: every event as a JSON line in a file, lossless, flushed and synced once per turn of
 * the loop. docs/formats/task-journal.md. Opened for appending; a torn last line is cut off.
 * After a failed sync it writes no more and the failure is published as RUNTIME_FAILURE. */
struct det_task_journal;
DET_API int det_task_journal_open(
    struct det_world *world, const char *path, const struct det_allocator *allocator,
    struct det_task_journal **ret, struct det_error *reterr) DET_MUST_CHECK;
/* After its subscription has ended. */
DET_API void det_task_journal_close(struct det_task_journal *journal);
DET_API struct det_subscriber det_task_journal_subscriber(struct det_task_journal *journal);

DET_END
#endif
