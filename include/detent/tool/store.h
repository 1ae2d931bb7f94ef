/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/store.h - reads a store as a whole: its identity, its log, its counts. */
#ifndef DETENT_TOOL_STORE_H
#define DETENT_TOOL_STORE_H

#include <detent/store.h>
#include <detent/trace.h>

DET_BEGIN

/* The identity of a store: 32 hexadecimal digits, the same for its whole life and in its copies. A
 * memory store has a new one each time it is opened. */
DET_API const char *det_store_identity(const struct det_store *store);

/* A row of the log: the start of an instance, or an event. Names are the current ones, even in rows
 * written before a rename. Borrowed for the call. */
struct det_store_logged {
    uint64_t position; /* its place in the log; later rows have higher positions, and no position is
                        * used again */
    const char *machine, *id;
    bool is_start;
    uint64_t sequence, visit; /* visit: after the event; a start has the sequence 0 */
    uint32_t version;         /* version of the definition that wrote the row */
    const char *from, *to;    /* states; a start has no `from`: NULL */
    const char *event;        /* NULL: a start, or a cancel */
    const char *outcome;      /* "start", or "goto", "stay", "stop", "deferred", "dead_letter" */
    uint16_t choice;          /* number of the chosen alternative; 0: the first, or there is no
                               * choice */
    bool is_timeout;          /* a timer sent it */
    det_time at;
    const char *event_id; /* NULL: none */
    const char *cause;    /* key of the effect that produced the event; NULL: none */
    const void *payload;  /* an encoded record: the event, or for a start the initial data; NULL:
                           * none */
    size_t payload_size;
    const struct det_trace_context *trace; /* NULL: none */
};

/* Selects rows of the log. Zero values: all, the oldest first. */
struct det_store_log_query {
    uint64_t after;            /* only rows after this position */
    size_t limit;              /* at most this many selected rows; 0: no limit */
    const char *machine, *id;  /* only these; NULL: any */
    const char *event, *state; /* only this event, or into this state; NULL: any */
    det_time since, until;     /* only rows in [since, until); 0: any */
    bool is_backward;          /* the newest first, and before `after`; 0: from the end */
    size_t budget;             /* at most this many rows are read, selected or not; 0: no limit */
    bool wants_end; /* backward: DET_ERR_BUSY unless the walk begins with the last existing row */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Reads the log: starts and events of all instances, in one order. `ret_next` is the `after` of the
 * next call. Up to it the log is complete and final: a reader that continues from it misses no row
 * and reads none twice, even after a restart or with another opening of the store. Backward, 0
 * means that the beginning was reached.
 *   - Pruned rows are not in the log; rows pruned during the call may be missing.
 *   - Rows written by old versions may share a position. They are returned together, so their
 *     number may exceed `limit` and `budget`.
 *   - With several writing processes, a row is returned once all rows that could precede it exist.
 *     Backward, DET_ERR_BUSY: the transactions of the first call are still under way, so no row is
 *     known to be final; try again.
 * A non-zero return value of `visit`, which may use the store, ends the call and is returned,
 * without `ret_next`: the caller has seen the last row. Any thread, even while a runtime uses the
 * store. DET_ERR_UNSUPPORTED for a memory store: one order over the sends of many threads would
 * cost each thread more than the send. */
DET_API int det_store_log(
    struct det_store *store, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next) DET_MUST_CHECK;

/* Counts of a machine, or of one of its states. */
struct det_store_counted {
    const char *machine, *state; /* state NULL: the whole machine */
    uint64_t running, stopped;   /* instances */
    /* Armed timers, pending effects and dead ones; for machines only. */
    uint64_t timers, effects, dead;
};

/* Counts instances: each machine by name, followed by those of its states that have instances.
 * `visit` may use the store; a non-zero return value ends the call and is returned. `ret_bytes` is
 * the size of the file and its log, or of the tables and their indexes; 0 for a memory store. Reads
 * every instance (sqlite: 0.7 s for a million); for frequent use follow the log instead. Any
 * thread; for a memory store only while a runtime uses it. */
DET_API int det_store_count(
    struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes) DET_MUST_CHECK;

DET_END
#endif
