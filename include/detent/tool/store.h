/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/store.h - reads a store as a whole: its identity, its log, how much is in it. */
#ifndef DETENT_TOOL_STORE_H
#define DETENT_TOOL_STORE_H

#include <detent/store.h>
#include <detent/trace.h>

DET_BEGIN

/* Which store it is: 32 hexadecimal digits, the same as long as it exists, also in copies of it. A
 * store in memory has a new one each time it is opened. */
DET_API const char *det_store_identity(const struct det_store *store);

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
    const char *event;        /* NULL: a start, or a cancel */
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
    uint64_t after;            /* only rows after this position */
    size_t limit;              /* at most so many rows that are wanted; 0: no limit */
    const char *machine, *id;  /* only of these; NULL: any */
    const char *event, *state; /* only this event, or into this state; NULL: any */
    det_time since, until;     /* only from then on, and before then; 0: any */
    bool is_backward;          /* the newest first, and before `after`; 0: from the end */
    size_t budget;             /* rows looked at, at most, wanted or not; 0: no limit */
    bool wants_end; /* backward: DET_ERR_BUSY unless it begins with the last row that is there */
};

/* Reads the log: starts and events of all instances, in one order. `ret_next` is where to go on:
 * the `after` of the next call. Up to it the log is complete and final, so that a reader who
 * continues from it misses no row and meets none twice, also after a restart, and from another
 * opening; backwards, 0 says that the beginning was reached.
 *   - What was pruned is no longer in it, and what is pruned meanwhile may or may not be.
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
    /* Timers that are armed, effects that have not ended, and dead ones; of machines only. */
    uint64_t timers, effects, dead;
};

/* Counts: each machine by its name, followed by those of its states that have instances. `visit`
 * may use the store; a non-zero answer ends it and is returned. `ret_bytes` is what it takes: the
 * file and its log, or the tables with their indexes; 0 for a store in memory, which does not know.
 * It looks at every instance (sqlite: 0.6 s for a million): to know often, count what the log says.
 * From any thread; of a store in memory while a runtime uses it. */
DET_API int det_store_count(
    struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes) DET_MUST_CHECK;

DET_END
#endif
