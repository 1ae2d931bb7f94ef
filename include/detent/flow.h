/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow.h - flows: pipelines of supervised stages. Every row is appended to a log before it counts.
 *
 *     RECORD(reading) FIELD(sensor, str(32)) FIELD(celsius, f64) END
 *
 *     SOURCE(read,    reading)                            readings.flow
 *     TRANSFORM(warm, reading, reading)
 *     SINK(print,     reading)
 *     EDGE(read, warm)
 *     EDGE(warm, print)
 *
 * and a function per stage, typed by the template <detent/flow/define.h>:
 *
 *     static int read(struct det_stage_call *call)      a source: enum det_source_result
 *     static int warm(struct det_stage_call *call, const struct reading *in)
 *     {
 *         return in->celsius > 30 ? warm_emit(call, *in) : 0;
 *     }
 *     static int print(struct det_stage_call *call, const struct reading *in)
 *
 * Each stage is a component with a machine of its own, and so is the pipeline; det_pipeline_open()
 * makes them and is the only way to reach them.
 *
 *     source --ring--> transform --ring--> sink      a ring holds rows until each reader is done
 *        |                 |                |
 *        +----------------+----------------+---> one journal: rows, errors, progress, state, facts
 *
 * A turn of a stage appends one group: its outputs, its errors, how far it has read, and what has
 * changed in its state or cursor. A group survives a crash whole or not at all, so each input row
 * has its outputs exactly once, wherever the process ended.
 *
 * A run is finished when every source has ended and every row was processed. A run that ended in
 * another way (stop, failure, kill -9) is continued by the next open: nothing that was emitted is
 * emitted again, and no input is lost. A sink may get a row again whose receipt did not survive;
 * the position of the row is the key to recognise it.
 *
 * Rows that leave the process wait until they have the durability of the journal: a sink, and a
 * transform that is asynchronous, get a row when it is acknowledged. Other stages do not wait, so a
 * long pipeline pays for one sync, not for one per stage. */
#ifndef DETENT_FLOW_H
#define DETENT_FLOW_H

#include <detent/journal.h>
#include <detent/record.h>

DET_BEGIN

struct det_stage_call;

enum det_stage_kind {
    DET_STAGE_SOURCE,
    DET_STAGE_TRANSFORM,
    DET_STAGE_STATEFUL,
    DET_STAGE_JOIN,
    DET_STAGE_SINK,
};
#define DET_STAGE_KINDS 5

enum det_stage_flags {
    DET_STAGE_INFINITE = 1, /* SOURCE: ends only when the flow stops */
    DET_STAGE_ASYNC = 2,    /* SOURCE, TRANSFORM, SINK: the functions may block; they run on a
                             * pool */
    DET_STAGE_LIVE = 4,     /* JOIN: the reference side never ends; its rows interleave */
    DET_STAGE_BUFFERED = 8, /* SINK: rows count as delivered after flush() */
};

enum det_join_kind {
    DET_JOIN_INNER,  /* a row without a match is dropped */
    DET_JOIN_LEFT,   /* ... is joined with NULL */
    DET_JOIN_STRICT, /* ... ends the stage's output with a poison end */
};

/* When a stateful stage emits. */
enum det_emission_kind {
    DET_EMIT_AT_END, /* when its input has ended */
    DET_EMIT_ALWAYS, /* after each row */
    DET_EMIT_EVERY,  /* after each `rows` rows (of one key), and the rest at the end */
    DET_EMIT_WITHIN, /* `time` after the first row of a period, and at the end; the state is
                      * reset */
};
struct det_emission {
    enum det_emission_kind kind;
    uint32_t rows; /* EVERY: greater than 0 */
    det_time time; /* WITHIN: greater than 0 */
};

/* How the output of a stage ends. A fan-in passes on the worst end of its inputs. */
enum det_end_kind {
    DET_END_NONE,      /* it has not ended */
    DET_END_NATURAL,   /* all rows were processed */
    DET_END_TRUNCATED, /* the flow was stopped; the next open continues. Stateful stages keep their
                        * state and emit nothing */
    DET_END_POISON,    /* rows before it may be incomplete: a strict join found no match */
};

/* Results of a source's next(), beside negative errors. An error becomes a row of the stage's
 * errors, and next() is called again after a pause. */
enum det_source_result {
    DET_SOURCE_IDLE = 0, /* no row now: call again after det_stage_wake() or the time of
                          * det_stage_wake_at() */
    DET_SOURCE_MORE = 1, /* call again */
    DET_SOURCE_DONE = 2, /* the end of a finite source */
};

/* Functions of a stage, untyped; the template makes them from typed ones, connectors fill them
 * directly. Those of other kinds are NULL. All run on the pipeline's loop and must not block,
 * except those of DET_STAGE_ASYNC stages, and open() and close(), which run on a pool. A function
 * that fails with a negative result without det_stage_reject() or det_stage_fail() rejects the row
 * as DET_REJECT_UNKNOWN. */
struct det_stage_functions {
    /* Once per open of the run, before the first row; sets call->self. Optional. A negative result
     * fails the flow. */
    int (*open)(struct det_stage_call *call);
    /* Once, after the last call; not if open() failed. Optional. */
    void (*close)(struct det_stage_call *call);
    /* SOURCE: emits some rows and moves the cursor. The cursor is saved in the group of the rows;
     * after a crash the source gets the last saved one. `cursor` is NULL without a cursor record,
     * and all zero at first. */
    int (*next)(struct det_stage_call *call, void *cursor);
    /* SOURCE, optional: rows up to this sequence of the stage's stream are acknowledged. On the
     * loop. */
    void (*acknowledged)(struct det_stage_call *call, uint64_t sequence);
    /* TRANSFORM: emits any number of rows. A negative result rejects the row and drops what it
     * emitted. */
    int (*process)(struct det_stage_call *call, const void *in);
    /* STATEFUL: folds a row into the state (of its key), and may emit; a new state is all zero. A
     * negative result rejects the row; the state is then as it was before the row. */
    int (*accumulate)(struct det_stage_call *call, void *state, const void *in);
    /* STATEFUL: emits from a state (of one key). A negative result fails the stage. */
    int (*emit)(struct det_stage_call *call, void *state);
    /* JOIN: `reference` is the last reference row with the key of `in`; NULL in a left join without
     * one. */
    int (*join)(struct det_stage_call *call, const void *reference, const void *in);
    /* SINK with a cursor, optional: once per run, before its first row. The cursor is saved before
     * a row is delivered. A negative result fails the stage. */
    int (*begin)(struct det_stage_call *call, void *cursor);
    /* SINK: delivers a row, or keeps it until flush(). call->run and call->row.position are unique
     * for ever: use them as the key of what is done. The cursor is saved with the receipt of the
     * row. A negative result rejects the row, except DET_ERR_CANCELLED while the stage is
     * cancelled: the next open delivers the row again. */
    int (*deliver)(struct det_stage_call *call, void *cursor, const void *in);
    /* SINK, BUFFERED: makes everything delivered durable; called after a batch, and at the end. It
     * may reject rows that were delivered since the last flush: it sets call->row to the `row` of
     * their deliver(), and calls det_stage_reject(). A negative result fails the stage; the rows
     * are delivered again by the next open. */
    int (*flush)(struct det_stage_call *call, void *cursor);
    /* Optional: the last call before the stage ends its output; may emit, but a sink. Also called
     * when the flow is drained. A negative result fails the stage. */
    int (*drain)(struct det_stage_call *call);
};

struct det_stage {
    const char *name; /* lower_snake; on disk */
    enum det_stage_kind kind;
    unsigned flags;                  /* enum det_stage_flags */
    struct det_record_ref in;        /* none: SOURCE */
    struct det_record_ref reference; /* JOIN */
    struct det_record_ref out;       /* none: SINK */
    struct det_record_ref cursor;    /* SOURCE, SINK: optional */
    struct det_record_ref state;     /* STATEFUL */
    const char *key;                 /* STATEFUL, JOIN: expression over `in`; NULL: one state */
    const char *reference_key;       /* JOIN: expression over `reference` */
    enum det_join_kind join;
    struct det_emission emission;
    uint16_t concurrency;     /* ASYNC transform: calls at the same time; 0: 1. Order is kept */
    uint16_t reference_batch; /* LIVE: reference rows in a row before the other side gets a turn;
                               * 0: 8 */
    uint32_t window;          /* rows that its readers may lag; 0: that of the pipeline */
    const char *use;          /* name of a connector that has the functions; NULL: `functions` */
    const char *settings;     /* of the connector: YAML flow style, "{path: a.csv}" */
    const char *const *with;  /* names of middleware, NULL at the end; NULL: none */
    const struct det_stage_functions *functions;
};

enum det_edge_flags {
    DET_EDGE_REFERENCE = 1, /* feeds the reference side of a join */
    DET_EDGE_BACK = 2,      /* closes a cycle */
};
struct det_edge {
    uint16_t from, to; /* indexes of stages */
    uint16_t flags;    /* enum det_edge_flags */
};

struct det_flow {
    const char *name; /* lower_snake */
    const struct det_stage *stages;
    const struct det_edge *edges;
    uint16_t stage_count, edge_count;
};
#define DET_FLOW_STAGES_MAX 512
#define DET_FLOW_EDGES_MAX  2048

/* Checks names, roles, connection, reachability and cycles: every rule of docs/flows.md. Reports
 * the first finding. */
DET_API int det_flow_check(const struct det_flow *flow, struct det_error *reterr) DET_MUST_CHECK;
/* Equal for flows with equal stages, records and edges, whatever their order in the file. */
DET_API uint64_t det_flow_fingerprint(const struct det_flow *flow);

/* ---- calls of a stage's functions */

/* About the row in hand: the input. For a source all is zero but `sequence`: that of the last row
 * that it had emitted before this call, so the n-th row that it emits gets `sequence` + n. */
struct det_row_info {
    uint64_t position;    /* in the journal of the run; unique in the run */
    uint64_t sequence;    /* in the stream of its stage */
    uint16_t stream;      /* of that stage, in the journal of the run; positions of a stream grow */
    uint64_t correlation; /* position of the source row it comes from */
    det_time event_time;  /* wall */
};

/* Why a row was rejected. VALIDATION and DOMAIN stay in the stage's stream, marked, and readers
 * skip them; the others go to its errors. Those of sources and sinks all go to the errors. */
enum det_row_rejection {
    DET_REJECT_UNKNOWN,
    DET_REJECT_TIMEOUT,
    DET_REJECT_REMOTE,
    DET_REJECT_RATE_LIMITED,
    DET_REJECT_PERMANENT,
    DET_REJECT_DESERIALIZATION,
    DET_REJECT_VALIDATION,
    DET_REJECT_DOMAIN,
};
#define DET_REJECTIONS 8
/* "unknown", "timeout", "remote", "rate_limited", ... */
DET_API const char *det_row_rejection_name(enum det_row_rejection why);

/* Argument of every function of a stage, valid during the call. For det_stage_wake() it is valid
 * for any thread, from open() to the end of close(): use the one of open(). */
struct det_stage_call {
    const struct det_stage_calls *calls;
    const struct det_stage *stage;
    const char *flow;   /* name of the flow */
    uint64_t run;       /* identity of the run: random, the same after each open, not 0 */
    const char *folder; /* that relative paths of settings are relative to; NULL: the working
                         * directory */
    struct det_world *world;
    const struct det_allocator *allocator;
    void *self;   /* of the functions: set by open() */
    void *user;   /* from the options of the pipeline */
    det_time now; /* wall time at the begin of the turn */
    struct det_row_info row;
};

/* Implemented by the pipeline; call the functions below instead. */
struct det_stage_calls {
    int (*emit)(struct det_stage_call *call, const void *value, det_time event_time);
    int (*reject)(struct det_stage_call *call, enum det_row_rejection why, const char *format, ...)
        DET_PRINTF(3, 4);
    int (*fail)(struct det_stage_call *call, int code, const char *format, ...) DET_PRINTF(3, 4);
    bool (*is_cancelled)(struct det_stage_call *call);
    int (*wait)(struct det_stage_call *call, det_time deadline);
    void (*wake)(struct det_stage_call *call);
    void (*wake_at)(struct det_stage_call *call, det_time monotonic);
    uint32_t (*room)(struct det_stage_call *call);
    void (*keep)(struct det_stage_call *call, uint64_t states);
};

/* What one call of a function may emit, in bytes of the journal: a group has all of it. */
#define DET_STAGE_OUTPUT_MAX 8388608
/* Emits one row of the stage's record, copied. 0; DET_ERR_RANGE and the like: the value cannot be
 * encoded; DET_ERR_LIMIT: DET_STAGE_OUTPUT_MAX; DET_ERR_NO_MEMORY. The event time is that of the
 * input, for a source that of the turn. */
static inline int det_stage_emit(struct det_stage_call *call, const void *value)
{
    return call->calls->emit(call, value, 0);
}
/* Like det_stage_emit(), with an event time (wall, not 0). */
static inline int det_stage_emit_at(
    struct det_stage_call *call, const void *value, det_time event_time)
{
    return call->calls->emit(call, value, event_time);
}
/* Rejects the row in hand: `return det_stage_reject(call, DET_REJECT_VALIDATION, "cents is 0");` In
 * a source: adds a row to the errors of the stage. Returns a negative error. */
#define det_stage_reject(call, why, ...) (((call)->calls->reject)((call), (why), __VA_ARGS__))
/* Fails the stage, and with it the flow: `return det_stage_fail(call, DET_ERR_IO, "...");` Returns
 * `code`, which is negative. (The parentheses: test libraries have macros with such names.) */
#define det_stage_fail(call, code, ...) (((call)->calls->fail)((call), (code), __VA_ARGS__))
/* ASYNC functions, and open(): true if the function should return soon. */
static inline bool det_stage_is_cancelled(struct det_stage_call *call)
{
    return call->calls->is_cancelled(call);
}
/* ASYNC functions, and open(): waits until the (monotonic) deadline. DET_ERR_TIMEOUT then;
 * DET_ERR_CANCELLED at once if the function should return; 0 after a det_stage_wake(). */
static inline int det_stage_wait(struct det_stage_call *call, det_time deadline)
{
    return call->calls->wait(call, deadline);
}
/* Any thread: calls next() again. Several wakes may count as one. */
static inline void det_stage_wake(struct det_stage_call *call)
{
    call->calls->wake(call);
}
/* SOURCE: calls next() again at a (monotonic) time; the earliest one counts. */
static inline void det_stage_wake_at(struct det_stage_call *call, det_time monotonic)
{
    call->calls->wake_at(call, monotonic);
}
/* SOURCE: rows that can be emitted in this call without exceeding the window. More may be emitted;
 * they wait for the readers. */
static inline uint32_t det_stage_room(struct det_stage_call *call)
{
    return call->calls->room(call);
}

/* STATEFUL, in accumulate(): removes the oldest states, by the first row of their key, until there
 * are at most `states` (at least 1). The state in hand is not removed. */
static inline void det_stage_keep(struct det_stage_call *call, uint64_t states)
{
    call->calls->keep(call, states);
}

/* A connector: a stage without C. The program has a list of them (src/program/connectors). */
struct det_connector {
    const char *name;             /* "csv" */
    const char *about;            /* one line for people */
    unsigned kinds;               /* 1 << enum det_stage_kind, ... */
    unsigned flags;               /* enum det_stage_flags that its stages get */
    struct det_record_ref cursor; /* SOURCE, SINK */
    struct det_record_ref state;  /* STATEFUL */
    struct det_stage_functions functions;
    /* Checks settings without opening anything, for `detent check`. */
    int (*check)(const struct det_stage *stage, const char *folder, struct det_error *reterr);
    /* STATEFUL, instead of `state`: makes the record of the states of one stage from its settings.
     * Both or none. The record lives until it is closed, after the last use of a state. */
    int (*open_state)(
        const struct det_stage *stage, const struct det_allocator *allocator,
        const struct det_record **ret, struct det_error *reterr);
    void (*close_state)(const struct det_record *record, const struct det_allocator *allocator);
};

/* ---- a running flow */

/* The states of pipeline.fsm.
 *
 *     created -> materializing -> materialized -> ready -> running -> source_completed
 *                                                             |              |
 *                                            drain            +-> draining <-+ -> drained
 *     failure, cancel, abort: any of these -> abort_requested -> failed, cancelled */
enum det_pipeline_state {
    DET_PIPELINE_CREATED,
    DET_PIPELINE_MATERIALIZING, /* stages open */
    DET_PIPELINE_MATERIALIZED,  /* stages that are no sources start */
    DET_PIPELINE_READY,         /* waits for det_pipeline_run() */
    DET_PIPELINE_RUNNING,
    DET_PIPELINE_SOURCE_COMPLETED, /* every source has ended */
    DET_PIPELINE_ABORT_REQUESTED,  /* stages end now */
    DET_PIPELINE_DRAINING,         /* what is in flight is processed */
    DET_PIPELINE_DRAINED,          /* the end: everything was processed */
    DET_PIPELINE_FAILED,           /* the end */
    DET_PIPELINE_CANCELLED,        /* the end: stopped by request */
};
/* "created", "running", ...; the name in facts and on screens. */
DET_API const char *det_pipeline_state_name(enum det_pipeline_state state);

/* Facts about the life of a flow. */
enum det_flow_fact_kind {
#define DET_FLOW_FACT(name, number, text, is_of_stage) DET_FLOW_FACT_##name = (number),
#include <detent/flow_facts.def>
#undef DET_FLOW_FACT
};
/* "running", "stage_failed", ...; NULL for another number. */
DET_API const char *det_flow_fact_name(enum det_flow_fact_kind kind);

/* Texts are borrowed for the call. */
struct det_flow_fact {
    enum det_flow_fact_kind kind;
    uint64_t position;  /* in the journal; 0 in a callback when it is not known yet */
    det_time at;        /* wall */
    const char *stage;  /* NULL: about the pipeline */
    const char *reason; /* "": none */
    /* Totals of the run: of the stage; of the pipeline rows of sources, rows that sinks
     * received. */
    uint64_t rows_in, rows_out, errors;
};
/* Reads a row of the stream `system` of a run's log (docs/formats/flow-log.md); the texts are in
 * `row` or in `stage`, which has DET_JOURNAL_NAME_MAX + 1 bytes, and `reason`, which has
 * DET_ERROR_TEXT_MAX. */
DET_API int det_flow_fact_read(
    const struct det_journal_row *row, char *stage, char *reason, struct det_flow_fact *ret,
    struct det_error *reterr) DET_MUST_CHECK;

enum det_pipeline_outcome {
    DET_PIPELINE_RUNS, /* it has not ended */
    DET_PIPELINE_COMPLETED,
    DET_PIPELINE_STOPPED,    /* drained or cancelled by request; the next open continues */
    DET_PIPELINE_HAS_FAILED, /* the next open continues */
};
struct det_pipeline_end {
    enum det_pipeline_outcome outcome;
    enum det_pipeline_state state;      /* DRAINED, FAILED or CANCELLED */
    enum det_end_kind end;              /* the worst end that a sink received */
    int code;                           /* of the failure; 0: none */
    char reason[DET_ERROR_TEXT_MAX];    /* of the failure or the stop; "": none */
    uint64_t rows_in, rows_out, errors; /* of the run: rows of sources, rows that sinks received,
                                         * rows in errors */
};

struct det_stage_status {
    const char *name;
    enum det_stage_kind kind;
    const char *state;                  /* of its machine: "running"; see docs/flows.md */
    const char *reason;                 /* of its failure; "": none */
    enum det_end_kind end;              /* of its output, or for a sink of its input */
    uint64_t rows_in, rows_out, errors; /* of the run */
    uint64_t rejected;                  /* of `errors`, those that stay in its stream, marked */
    uint64_t keys;                      /* STATEFUL, JOIN: states or reference rows */
    uint64_t turns;                     /* since open: groups appended */
    uint64_t blocked; /* since open: turns that ended without credit or room in the journal */
    det_time last_at; /* monotonic time of its last turn; 0: none */
};
struct det_edge_status {
    uint16_t from, to;
    uint64_t written; /* sequence of the last row in the stream of `from` */
    uint64_t read;    /* ... of the last row that `to` is done with */
    uint32_t lag;     /* rows between them */
    uint32_t credit;  /* rows that `from` may write before this edge stops it */
    uint32_t window;
};

/* Zero: in memory, on a thread of its own, starts by itself, continues the last run. */
struct det_pipeline_options {
    const char *journal; /* "file:folder/of/this/flow", its runs are folders in it; NULL:
                          * "memory:" */
    enum det_journal_durability durability;
    struct det_loop *loop; /* NULL: a thread of its own. Else open and close on its thread, or while
                            * it does not run */
    struct det_world *world;
    const struct det_allocator *allocator;
    const struct det_connector *const *connectors; /* NULL at the end */
    const char *folder;    /* that relative paths of settings are relative to; NULL: the working
                         * directory */
    void *user;            /* of the stages' calls and of the callbacks */
    bool waits_for_run;    /* manual start: sources begin with det_pipeline_run() */
    bool begin_new_run;    /* although the last run has not completed */
    uint32_t window;       /* rows between a stage and its slowest reader; 0: 16,384 within 4 MiB */
    uint32_t threads;      /* of the pool for ASYNC stages; 0: 4 */
    det_time stop_timeout; /* graceful stop becomes a cancel; 0: 30 s */
    /* How much of the log is kept at least; both 0: all, in memory 64 MiB. What the next open needs
     * is always kept. */
    uint64_t retain_size;
    det_time retain_age;
    struct det_journal_threads *journal_threads; /* shared by many flows; NULL: one of its own */
    /* Lifecycle facts as they are appended, on the loop. */
    void (*on_fact)(void *user, const struct det_flow_fact *fact);
    /* The end, on the loop: the last call. The pipeline may be closed from it if `loop` was set. */
    void (*on_end)(void *user, const struct det_pipeline_end *end);
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};
#define DET_PIPELINE_WINDOW_MAX  1048576 /* rows */
#define DET_PIPELINE_THREADS_MAX 256

struct det_pipeline;

/* Opens the flow's last run, or begins one, and starts it. `flow` and everything it refers to must
 * outlive the pipeline; the options are copied, their texts are borrowed for the call, but `folder`
 * and the connectors outlive the pipeline. A run that was written by a flow with another
 * fingerprint is refused (DET_ERR_CONFLICT). */
DET_API int det_pipeline_open(
    const struct det_flow *flow, const struct det_pipeline_options *options,
    struct det_pipeline **ret, struct det_error *reterr) DET_MUST_CHECK;
/* The following requests are for any thread and do not wait. They return 0, also when they have no
 * effect, or DET_ERR_LIMIT: too many requests wait. */

/* Starts the sources if all stages are ready (DET_PIPELINE_READY). Has no effect before, and a
 * second time. */
DET_API int det_pipeline_run(struct det_pipeline *pipeline);
/* Sources stop, everything in flight is processed; after `timeout` (0: that of the options) the
 * rest is cancelled. No effect after a cancel. */
DET_API int det_pipeline_drain(struct det_pipeline *pipeline, det_time timeout);
/* Stages end now; what was not processed stays in the journal for the next open. */
DET_API int det_pipeline_cancel(struct det_pipeline *pipeline);
/* Like cancel, but the flow ends as failed, with this reason (copied, and cut to
 * DET_OWNER_MAX bytes). */
DET_API int det_pipeline_abort(struct det_pipeline *pipeline, const char *reason);

/* Any thread. */
DET_API enum det_pipeline_state det_pipeline_state(const struct det_pipeline *pipeline);
/* Waits for a state of at least this number: DET_PIPELINE_READY, DET_PIPELINE_RUNNING. 0, also if
 * it has ended; DET_ERR_TIMEOUT at the (monotonic) deadline. Not on the loop's thread. */
DET_API int det_pipeline_wait_state(
    struct det_pipeline *pipeline, enum det_pipeline_state state, det_time deadline) DET_MUST_CHECK;
/* Waits for the end. 0, and how it ended; DET_ERR_TIMEOUT at the (monotonic) deadline. Not on the
 * loop's thread, except with the deadline 0. */
DET_API int det_pipeline_wait(
    struct det_pipeline *pipeline, det_time deadline, struct det_pipeline_end *ret) DET_MUST_CHECK;
/* Snapshot of stages and edges, any thread. The counts are in and out: the capacities, then the
 * numbers of stages and edges; as many as fit are written. Texts live as long as the pipeline. */
DET_API int det_pipeline_status(
    struct det_pipeline *pipeline, struct det_stage_status *stages, size_t *stage_count,
    struct det_edge_status *edges, size_t *edge_count);
/* Number of the run, from 1; 0: in memory. */
DET_API uint64_t det_pipeline_run_number(const struct det_pipeline *pipeline);
/* Borrowed; for readers of its streams. */
DET_API struct det_journal *det_pipeline_journal(struct det_pipeline *pipeline);
/* Cancels the flow if it runs, waits, and closes the journal. Waits also for functions of ASYNC
 * stages that do not return. */
DET_API void det_pipeline_close(struct det_pipeline *pipeline);
DET_SCOPED_CLOSE(pipeline)

DET_END
#endif
