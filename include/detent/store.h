/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.h - where instances live. A store is opened by URL and given to a runtime.
 *
 *     memory:            this process only, gone when it is closed; bounded; for tests and for
 *                        machines that need not outlive the process
 *     sqlite:orders.db   one file; one process writes, others may read
 *     postgres://user@host/database?schema=detent     shared by any number of processes; whatever
 *     postgresql://...   else libpq takes in a URL works too
 *
 * A commit in the last two is on the disk when the sender has its answer. A store outlives the
 * runtimes on it, and serves one runtime at a time. The drivers are listed in
 * src/store/drivers.def; what a driver must do is driver/store.h. */
#ifndef DETENT_STORE_H
#define DETENT_STORE_H

#include <detent/trace.h>
#include <detent/world.h>

DET_BEGIN

struct det_store;

/* Limits of what a store keeps of one instance. */
#define DET_ID_MAX          128  /* bytes of an instance id or an event id: [A-Za-z0-9._:-] */
#define DET_HISTORY_MAX     64   /* states kept in an instance's history */
#define DET_DEFERRED_MAX    16   /* events an instance keeps for later */
#define DET_EFFECTS_PENDING 1024 /* effects of one instance that have not ended */
#define DET_DEAD_MAX        64   /* dead effects kept; older ones are forgotten */
#define DET_BATCH_MAX       256  /* events in one commit */

struct det_store_options {
    struct det_world *world;               /* NULL: the real one */
    const struct det_allocator *allocator; /* NULL: the default one */
    uint32_t events_kept;                  /* memory: per instance; 0: 64; at most 65,536 */
    /* memory: how many event ids are remembered per instance; 0: 64; at most 65,536. An older one
     * is forgotten: sent again it would be applied again. A send with an id looks through them. */
    uint32_t event_ids_kept;
    /* sqlite, postgres: how long an event id is remembered at least; 0: 7 days. */
    det_time event_ids_span;
    bool is_read_only; /* sqlite, postgres: changes nothing, and needs nobody's leave */
    /* sqlite, read only: also back up a store that has lost what it had acknowledged, as it is. */
    bool accepts_loss;
    bool must_exist;      /* sqlite: do not create it; postgres: do not create the tables */
    uint32_t connections; /* sqlite: for reading, 0: 2; postgres: in all, 0: 4; at most 64 */
    det_time timeout;     /* postgres: for one statement and for connecting; 0: 10 s */
    const char *identity; /* refuse any other store than this one (DET_ERR_FOREIGN); NULL: any */
};

/* DET_ERR_UNSUPPORTED for a scheme that is not known, DET_ERR_INVALID for a URL or an option that
 * the driver does not take. */
DET_API int det_store_open(const char *url, struct det_store **ret, struct det_error *reterr)
    DET_MUST_CHECK;
DET_API int det_store_open_with(
    const char *url, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Which store it is: 32 hexadecimal digits, the same as long as it exists, also in copies of it. A
 * store in memory has a new one each time it is opened. */
DET_API const char *det_store_identity(const struct det_store *store);
/* Limits how long calls wait for the server of the store, those under way and later ones: until
 * `span` from now, and not at all with 0. DET_NEVER removes the limit. From any thread, at any
 * time, also while another one closes the runtime; the last call counts. For a stop with a deadline
 * while the server is away. Past the limit a call that was sent and not answered ends with
 * DET_ERR_CANCELLED: it is not known whether it happened. A call that was not sent yet ends with
 * DET_ERR_CLOSED: nothing happened. No effect on stores without a server. Does not wait itself. */
DET_API void det_store_cancel(struct det_store *store, det_time span);
/* Not while a runtime uses it. */
DET_API void det_store_close(struct det_store *store);
DET_SCOPED_CLOSE(store)

/* A row of the log: the start of an instance, or an event. Names are those of today, also where
 * they were others then. All of it is valid during the call only. */
struct det_store_logged {
    uint64_t position; /* its place in the log; later rows have higher ones, and none has it again
                        */
    const char *machine, *id;
    bool is_start;
    uint64_t sequence, visit; /* the visit afterwards; a start has the sequence 0 */
    uint32_t version;         /* of the definition that wrote it */
    const char *from, *to;    /* states; a start has no `from`: NULL */
    const char *event;        /* NULL: a start, or a stop by hand */
    const char *outcome;      /* "start", or "goto", "stay", "stop", "deferred", "dead_letter" */
    uint16_t choice;          /* which alternative was taken; 0: the first, or there is no choice */
    bool is_timeout;          /* a timer sent it */
    det_time at;
    const char *event_id; /* NULL: none */
    const char *cause;    /* the key of the effect that produced it; NULL: none */
    const void *payload;  /* a record, encoded: of the event, or for a start the data that it began
                             with; NULL: none */
    size_t payload_size;
    const struct det_trace_context *trace; /* NULL: none */
};

/* What to read of the log. Zero values: all, the oldest first. */
struct det_store_log_query {
    uint64_t after;            /* only rows behind this position */
    size_t limit;              /* at most so many rows that are wanted; 0: no limit */
    const char *machine, *id;  /* only of these; NULL: any */
    const char *event, *state; /* only this event, or into this state; NULL: any */
    det_time since, until;     /* only from then on, and before then; 0: any */
    bool is_backward;          /* the newest first, and before `after`; 0: from the end */
    size_t budget;             /* rows looked at, at most, wanted or not; 0: no limit */
    bool wants_end; /* backward: DET_ERR_BUSY unless it begins with the last row that is there */
};

/* Reads the log: starts and events of all instances, in one order. `ret_next` is where to go on:
 * the `after` of the next call. Up to it the log is complete and final, so that who goes on from it
 * misses nothing and meets nothing twice, also after a restart, and from another opening;
 * backwards, 0 says that the beginning was reached.
 *   - What was pruned is not in it any more, and what is pruned meanwhile may or may not be.
 *   - Rows that older programs have written may share a position. They are given together, so that
 *     there may be more of them than `limit` and `budget` say.
 *   - Where several processes write, rows come when all are there that could come before them.
 *     Backwards, DET_ERR_BUSY: transactions that were under way at the first look at the log still
 *     are, so that nothing of it is known to be final; try again.
 * A non-zero answer of `visit`, which may use the store, ends it and is returned, without
 * `ret_next`: the caller knows which row was the last. From any thread, also while a runtime uses
 * the store. DET_ERR_UNSUPPORTED for a store in memory: one order of all that many threads send
 * would cost each of them more than the send. */
DET_API int det_store_log(
    struct det_store *store, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next) DET_MUST_CHECK;

/* How much there is of a machine, or of a state of it. */
struct det_store_counted {
    const char *machine, *state; /* state NULL: of the whole machine */
    uint64_t running, stopped;   /* instances */
    /* Timers that are armed, effects that have not ended, and dead ones; told of machines only. */
    uint64_t timers, effects, dead;
};

/* Counts: each machine by its name, and behind it those of its states that have instances. `visit`
 * may use the store; a non-zero answer ends it and is returned. `ret_bytes` is what it takes: the
 * file and its log, or the tables with their indexes; 0 for a store in memory, which does not
 * know. It looks at every instance (sqlite: 0.6 s for a million), so who wants to
 * know often does better to count what the log says. From any thread; of a store in memory while
 * a runtime uses it. */
DET_API int det_store_count(
    struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes) DET_MUST_CHECK;

DET_END
#endif
