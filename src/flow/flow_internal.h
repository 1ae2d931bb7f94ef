/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_internal.h - declarations shared by the files of this folder: a pipeline, its stages and
 * edges, a turn of a stage, and calls of its functions.
 *
 *     pipeline_open.c   makes all of it              restore.c      what the log says about an
 *     pipeline.c        pipeline.fsm                                 earlier open
 *     requests.c        calls from any thread        facts.c        the stream `system`
 *     stage.c           life that all kinds share    checkpoint.c   checkpoints, retention
 *     stages/           a kind: its .fsm, its turn   run_folder.c   numbers of runs
 *     turn.c            outputs of a turn            job.c          functions on the pool
 *     commit.c          the group of a turn          stage_call.c   what functions may call
 *
 * Everything here belongs to the thread of the loop, except: fields that are atomic, those of a
 * running job, and `wait` of a stage, which is under its mutex. */
#ifndef DET_FLOW_INTERNAL_H
#define DET_FLOW_INTERNAL_H

#include <detent/driver/loop.h>
#include <detent/flow.h>
#include <detent/supervise.h>

#include <stdatomic.h>

#include "flow/log_rows.h"
#include "flow/ring.h"
#include "os/os.h"
#include "os/pool.h"

struct det_flow_stage;
struct det_flow_table;
struct det_flow_job;

/* Rows and bytes of a turn, and rows that a turn reads; what one input emits may exceed it. */
#define DET_TURN_ROWS  256
#define DET_TURN_BYTES 262144

/* What a turn of a stage, or a job of it, has made and not appended yet.
 *
 * Invariants
 *   1. The i-th output row has its value in the ring's slot written + 1 + i if i < reserved, else
 *      in `values`.
 *   2. `rows` point into `bytes`, also after that has grown. */
struct det_flow_turn {
    const struct det_allocator *allocator;
    struct det_journal_row *rows;
    size_t count, capacity;
    uint8_t *bytes;
    size_t size, bytes_capacity;
    struct det_ring *ring; /* NULL: of a job */
    uint64_t reserved;
    uint64_t room; /* what det_stage_room() counts down from */
    unsigned char *values;
    size_t value_size, value_capacity; /* capacity in values */
    uint64_t outputs;                  /* rows for the stage's stream */
    uint64_t data, errors, rejected;   /* DATA rows among them; rows for the errors; marked rows */
    uint8_t end;                       /* enum det_end_kind: an END row is among them */
    bool is_complete;                  /* has its PROGRESS row */
};

/* Where a turn was before an input, to drop what the input has emitted. */
struct det_flow_turn_mark {
    size_t count, size;
    uint64_t outputs, data, errors, rejected;
};

/* An edge: the place of `to` in the rows of `from`. */
struct det_flow_edge {
    struct det_ring_reader reader; /* released: what a restart would begin with */
    struct det_flow_stage *from, *to;
    uint16_t flags;              /* enum det_edge_flags */
    bool is_left;                /* the rest is for the next open */
    struct det_input_mark done;  /* appended with a PROGRESS row; done.sequence == reader.read */
    struct det_input_mark taken; /* processed by the turn under way */
    uint64_t given;              /* the last sequence given to a job; without jobs taken.sequence */
    struct {
        _Atomic uint64_t written, read;
    } shown;
};

/* A call of a stage's function: on the loop, or in a job. */
struct det_flow_call {
    struct det_stage_call base; /* first */
    struct det_flow_stage *stage;
    struct det_flow_turn *turn;
    const void *input; /* value of the row in hand; NULL: none */
    const struct det_record *input_record;
    bool is_rejected, is_failed;
    bool rejects_at_once; /* a rejection is a row of its own: of a source, of a flush */
    enum det_row_rejection why;
    int code;
    det_time wake_at; /* wanted by the function; DET_NEVER: none */
    size_t begin;     /* bytes of the turn at the begin of the call */
    char text[DET_ERROR_TEXT_MAX];
};

/* Counts for other threads. */
struct det_stage_shown {
    _Atomic uint64_t rows_in, rows_out, errors, rejected, keys, turns, blocked;
    _Atomic int64_t last_at;
    _Atomic unsigned state, end;
    atomic_bool has_failed;
};

/* What of a stage is in the log. */
struct det_stage_kept {
    uint64_t rows_out, errors, rejected;
    uint8_t end; /* of its output */
    uint64_t state_rows;
    uint64_t state_from; /* 0: none */
    det_time period;     /* WITHIN: wall time of its begin; 0: none */
};

/* The cursor of a source or sink. */
struct det_stage_cursor {
    const struct det_record *record; /* NULL: none */
    void *value;                     /* the functions' */
    size_t max;                      /* bytes of an encoded one */
    uint8_t *kept, *next;            /* encoded: of the last group; of the turn under way */
    size_t kept_size, next_size;
};

/* Its functions on the pool, and what a blocked one waits for. */
struct det_stage_pool {
    struct det_flow_job *life; /* open() and close() */
    struct det_flow_job **jobs;
    uint32_t job_count;
    uint32_t first, running; /* jobs in the order of their inputs: first, first + 1, ... */
    struct det_mutex *mutex;
    struct det_condition *changed;
    bool wake_wanted; /* under the mutex */
    atomic_bool is_cancelled;
};

struct det_flow_stage {
    struct det_component component;
    struct det_pipeline *pipeline;
    const struct det_component_def *def;
    const struct det_stage *spec;
    struct det_stage_functions functions;
    unsigned flags; /* enum det_stage_flags */
    uint16_t index;
    uint16_t stream, error_stream, state_stream;
    const struct det_record *in, *reference, *out;
    size_t out_max; /* bytes of an encoded output */
    struct det_ring ring;
    struct det_flow_edge **inputs, **outputs;
    struct det_input_mark *marks; /* for a PROGRESS row: one for each input */
    uint16_t input_count, output_count, next_input;
    struct det_flow_turn turn;
    struct det_flow_call call;
    struct det_stage_cursor cursor;
    struct det_stage_kept kept;
    det_time period;        /* as kept.period, with the turn under way */
    uint64_t last_position; /* of its last group */
    struct det_flow_table *table;
    struct det_stage_pool pool;
    void *particular; /* of its kind: stages/ */
    struct det_post wake_post;
    atomic_bool wake_posted;
    bool is_open;           /* open() succeeded: close() is to be called */
    bool has_begun;         /* SINK: begin() is done with, in this open or an earlier one */
    bool is_drained;        /* drain() was called */
    bool is_woken;          /* by det_stage_wake(), since its last call */
    bool is_blocked;        /* its turn waits for its readers */
    bool waits_for_journal; /* for room, or for an acknowledgement */
    struct {
        int code;
        char text[DET_ERROR_TEXT_MAX];
    } failure;
    struct det_stage_shown shown;
};

/* The record of the states of a stateful stage: its own, that of its connector, or one that the
 * connector makes. Close it, also NULL. */
DET_MUST_CHECK int det_stage_state_open(
    const struct det_flow_stage *stage, const struct det_record **ret, struct det_error *reterr);
void det_stage_state_close(const struct det_flow_stage *stage, const struct det_record *record);

/* A fact that has not been appended yet; the reason is a text of the pipeline or of a stage. */
struct det_pending_fact {
    enum det_flow_fact_kind kind;
    const struct det_flow_stage *stage;
    const char *reason;
};

struct det_pipeline_facts {
    struct det_pending_fact *waiting; /* a queue */
    uint32_t first, count, capacity;
    uint16_t stream;
    uint64_t last_position;
};

struct det_pipeline_checkpoints {
    uint16_t stream;
    uint64_t bytes;    /* appended since the last one */
    uint64_t position; /* of the last one */
    uint64_t floor;    /* to release when it is acknowledged; 0: none */
    struct det_journal_row *rows;
    uint8_t *data;
    size_t data_size;
};

/* How many stages have reported what. */
struct det_pipeline_reports {
    uint32_t opened, running, sources_ended, completed, ended;
    struct det_flow_stage *failed; /* the first one */
};

/* Why it stops. */
struct det_pipeline_intent {
    bool is_stop, is_cancel, has_failed;
    det_time deadline; /* monotonic; DET_NEVER: none */
    char reason[DET_ERROR_TEXT_MAX];
    int code;
};

struct det_pipeline {
    struct det_component component;
    struct det_handle *handle;
    const struct det_flow *flow;
    uint16_t stage_count, edge_count; /* of the flow */
    const struct det_allocator *allocator;
    struct det_world *world;
    struct det_loop *loop;
    struct det_executor *executor;
    struct det_pool *pool; /* NULL: no function needs it */
    struct det_journal *journal;
    struct det_journal_watcher watcher;
    struct det_flow_stage *stages;
    struct det_flow_edge *edges;
    struct det_pipeline_options options;
    char *folder; /* of its runs; NULL: in memory */
    uint64_t run_number;
    uint64_t run; /* its identity */
    uint64_t fingerprint;
    bool owns_loop, is_loop_started, is_watching, is_resumed;
    uint16_t source_count;
    struct det_pipeline_facts facts;
    struct det_pipeline_checkpoints checkpoints;
    struct det_pipeline_reports reports;
    struct det_pipeline_intent intent;
    enum det_flow_fact_kind last_fact; /* of the end; 0: not yet */
    struct det_mutex *mutex;
    struct det_condition *changed;
    struct det_pipeline_end end; /* under the mutex */
    bool has_ended;              /* under the mutex: no stage runs */
    bool is_end_posted;
    struct det_post end_post, free_post;
};

/* ---- turn.c */

void det_flow_turn_init(
    struct det_flow_turn *turn, const struct det_allocator *allocator, struct det_ring *ring,
    size_t value_size);
void det_flow_turn_deinit(struct det_flow_turn *turn);
/* Empties it; outputs get slots of the ring up to its credit now. */
void det_flow_turn_begin(struct det_flow_turn *turn);
static inline bool det_flow_turn_is_empty(const struct det_flow_turn *turn)
{
    return turn->count == 0;
}
/* Room for one more row with `size` bytes of data; then turn->bytes + turn->size is where they
 * go. */
DET_MUST_CHECK int det_flow_turn_reserve(struct det_flow_turn *turn, size_t size);
/* Adds a row whose `size` bytes were written at turn->bytes + turn->size. Returns it to be
 * filled. */
struct det_journal_row *det_flow_turn_add(
    struct det_flow_turn *turn, uint16_t stream, enum det_flow_row kind, size_t size);
/* The place for the value of the next output. NULL: out of memory. */
void *det_flow_turn_value(struct det_flow_turn *turn);
struct det_flow_turn_mark det_flow_turn_mark(const struct det_flow_turn *turn);
void det_flow_turn_rewind(struct det_flow_turn *turn, const struct det_flow_turn_mark *mark);
/* Appends the rows of a job's turn. After DET_ERR_NO_MEMORY the turn is as before. */
DET_MUST_CHECK int det_flow_turn_take(
    struct det_flow_turn *turn, const struct det_flow_turn *other, uint16_t stream);
/* Moves values that had no slot into the ring, which has the credit now. */
DET_MUST_CHECK int det_flow_turn_settle(struct det_flow_turn *turn);

/* ---- commit.c */

enum { DET_COMMIT_BLOCKED = 0, DET_COMMIT_DONE = 1 };
/* Completes the turn under way and appends its group. DONE: also if there was nothing to append.
 * BLOCKED: without credit or room in the journal; the stage is woken when it may try again. Or the
 * error that fails the stage, with its text set. */
int det_stage_commit(struct det_flow_stage *stage);
/* What is to be continued before the next turn: as det_stage_commit() if a turn is complete, else
 * DONE. */
static inline int det_stage_finish_turn(struct det_flow_stage *stage)
{
    return stage->turn.is_complete ? det_stage_commit(stage) : DET_COMMIT_DONE;
}
/* Adds the END row to the turn. */
DET_MUST_CHECK int det_stage_write_end(struct det_flow_stage *stage, enum det_end_kind end);
/* Copies the counts for other threads. */
void det_stage_show(struct det_flow_stage *stage);
/* The progress as of the last group; `inputs` has room for all. */
void det_stage_progress(
    const struct det_flow_stage *stage, struct det_input_mark *inputs,
    struct det_flow_progress *ret);

/* ---- stage_call.c */

extern const struct det_stage_calls det_flow_stage_calls;
void det_flow_call_init(
    struct det_flow_call *call, struct det_flow_stage *stage, struct det_flow_turn *turn);
/* Before a function is called about a row; `slot` NULL: none. */
void det_flow_call_begin(
    struct det_flow_call *call, const struct det_slot *slot, const void *input,
    const struct det_record *record);
/* After a function has returned `r`: 0 if it succeeded or a row was rejected, which is then in the
 * turn, instead of what was added since the mark (NULL: of a source, whose rows stay); else the
 * failure of the stage, in the call. */
DET_MUST_CHECK int det_flow_call_end(
    struct det_flow_call *call, int r, const struct det_flow_turn_mark *mark);
/* Sets the failure of the call, if there is one, as that of the component. Returns it, or `r`. */
int det_stage_fail_by(struct det_flow_stage *stage, const struct det_flow_call *call, int r);

/* ---- input.c */

/* Rows that can be taken from the edge now: written, not taken, and acknowledged if `acknowledged`
 * (then the stage is woken when more are). */
uint64_t det_edge_available(struct det_flow_edge *edge, bool acknowledged);
/* The next edge with rows, in turn; NULL: none. `ret_count`: its rows. */
struct det_flow_edge *det_stage_next_input(
    struct det_flow_stage *stage, bool acknowledged, uint64_t *ret_count);
/* Notes that the row was processed. DET_ERR_CORRUPT: an end that does not count the rows before
 * it. */
DET_MUST_CHECK int det_edge_take(struct det_flow_edge *edge, const struct det_slot *slot);
/* Leaves the rows that were not taken to the next open: `from` does not wait for this reader. */
void det_edge_leave(struct det_flow_edge *edge);
/* The worst end of its inputs; DET_END_NONE: not all of them have ended. */
enum det_end_kind det_stage_input_end(const struct det_flow_stage *stage);

/* ---- stage.c */

/* The fields of the stage that the flow determines are set, and its edges counted. */
DET_MUST_CHECK int det_stage_open(struct det_flow_stage *stage, struct det_error *reterr);
/* Also after a failed open. */
void det_stage_close(struct det_flow_stage *stage);
DET_MUST_CHECK int det_stage_open_jobs(
    struct det_flow_stage *stage, uint32_t count, uint32_t inputs);
bool det_stage_needs_pool(const struct det_flow_stage *stage);
/* Actions and dispatch of every kind. */
void det_stage_start_opening(struct det_flow_stage *stage);
/* 1: open() has succeeded; 0: not yet. */
DET_MUST_CHECK int det_stage_opening(struct det_flow_stage *stage);
/* 1: every function has returned and close() was called; 0: not yet. */
DET_MUST_CHECK int det_stage_closing(struct det_flow_stage *stage);
/* Makes functions on the pool return. */
void det_stage_cancel(struct det_flow_stage *stage);
/* Makes a blocked next() return. */
void det_stage_interrupt(struct det_flow_stage *stage);
/* An empty turn, at the current time. */
void det_stage_begin_turn(struct det_flow_stage *stage);
/* The last turns: drain(), and the end of the output. 1: all is appended; 0: not yet. */
DET_MUST_CHECK int det_stage_finish(struct det_flow_stage *stage, enum det_end_kind end);
void det_stage_note_failure(struct det_flow_stage *stage);
void det_stage_report_opened(struct det_flow_stage *stage);
void det_stage_report_running(struct det_flow_stage *stage);
void det_stage_report_draining(struct det_flow_stage *stage);
void det_stage_report_completed(struct det_flow_stage *stage);
void det_stage_report_cancelled(struct det_flow_stage *stage);
void det_stage_report_failed(struct det_flow_stage *stage);
/* The completion of the component. */
void det_stage_report_ended(struct det_flow_stage *stage);

/* What the pipeline asks of stages: a step of the machine, see stages/. */
enum det_stage_request {
    DET_STAGE_INITIALIZE,
    DET_STAGE_READY,
    DET_STAGE_START,
    DET_STAGE_BEGIN_DRAIN,
    DET_STAGE_CANCEL,
};
/* The kinds. */
struct det_stage_kind_def {
    const struct det_component_def *component;
    /* Its particular part, after its common one was opened; may be NULL. */
    int (*open)(struct det_flow_stage *stage, struct det_error *reterr);
    void (*close)(struct det_flow_stage *stage);
    void (*request)(struct det_flow_stage *stage, enum det_stage_request request);
};
/* SOURCE: remembers the last group, to call acknowledged() when it is. */
void det_source_note_group(struct det_flow_stage *stage);
/* SOURCE: calls acknowledged(), if more rows are. */
void det_source_acknowledge(struct det_flow_stage *stage);
extern const struct det_stage_kind_def det_source_kind, det_transform_kind, det_stateful_kind,
    det_join_kind, det_sink_kind;
const struct det_stage_kind_def *det_stage_kind_of(enum det_stage_kind kind);

/* ---- job.c */

enum det_job_phase { DET_JOB_FREE, DET_JOB_RUNNING, DET_JOB_DONE };
struct det_flow_job {
    struct det_job job;
    struct det_flow_call call;
    struct det_flow_turn turn;
    enum det_job_phase phase; /* the loop's */
    int (*run)(struct det_flow_job *job);
    int result;
    struct det_flow_edge *edge; /* of its inputs */
    struct det_slot *slots;
    unsigned char *values;
    size_t value_size;
    uint32_t count, done, capacity; /* inputs; those that were processed */
    uint32_t joined;                /* TRANSFORM: those whose outputs are in the stage's turn */
    uint64_t room;                  /* SOURCE: rows that may be emitted */
};
/* `inputs`: room for this many. */
DET_MUST_CHECK int det_flow_job_open(
    struct det_flow_stage *stage, uint32_t inputs, struct det_flow_job **ret);
void det_flow_job_close(struct det_flow_job *job);
/* Runs it on the pool; the stage is woken when it is DONE. */
void det_flow_job_submit(struct det_flow_job *job, int (*run)(struct det_flow_job *job));
/* Copies up to `count` rows of the edge, after the last one given, into the job. */
void det_flow_job_give(struct det_flow_job *job, struct det_flow_edge *edge, uint64_t count);

/* ---- facts.c */

/* The text of a failure for people, without what the gateway adds: "dispatch of running: x: not
 * found" is "x". `target` has DET_ERROR_TEXT_MAX bytes. */
void det_flow_reason(const struct det_failure *failure, char *target);

DET_MUST_CHECK int det_facts_open(struct det_pipeline *pipeline, struct det_error *reterr);
void det_facts_close(struct det_pipeline *pipeline);
void det_facts_add(
    struct det_pipeline *pipeline, enum det_flow_fact_kind kind, const struct det_flow_stage *stage,
    const char *reason);
/* Appends facts that wait for room. True: none waits. */
bool det_facts_flush(struct det_pipeline *pipeline);

/* ---- checkpoint.c */

DET_MUST_CHECK int det_checkpoints_open(struct det_pipeline *pipeline, struct det_error *reterr);
void det_checkpoints_close(struct det_pipeline *pipeline);
/* Appends one. DET_ERR_BUSY: no room in the journal. */
DET_MUST_CHECK int det_checkpoint_append(struct det_pipeline *pipeline);
/* After a group was appended: appends a checkpoint when it is time. */
void det_checkpoint_count(struct det_pipeline *pipeline, uint64_t bytes);
/* After more was acknowledged: releases what is not needed. */
void det_checkpoint_acknowledged(struct det_pipeline *pipeline);

/* ---- restore.c, run_folder.c */

/* Opens the journal of the last run, or of a new one, and sets what identifies the run. */
DET_MUST_CHECK int det_run_open(struct det_pipeline *pipeline, struct det_error *reterr);
/* The first checkpoint of a new run is acknowledged: it is the last run now. */
DET_MUST_CHECK int det_run_begin(struct det_pipeline *pipeline, struct det_error *reterr);
/* The last checkpoint of a log. DET_ERR_NOT_FOUND: none. */
DET_MUST_CHECK int det_checkpoint_find(
    struct det_journal *journal, uint16_t stream, struct det_checkpoint_end *ret,
    uint64_t *ret_position, struct det_error *reterr);
/* Sets stages, edges, states and rings to what the log says. */
DET_MUST_CHECK int det_run_restore(struct det_pipeline *pipeline, struct det_error *reterr);

/* ---- pipeline.c */

extern const struct det_component_def *const det_pipeline_component_def;
DET_MUST_CHECK int det_pipeline_materialize(struct det_pipeline *pipeline);
/* A stage has reported, or the journal has failed. */
void det_pipeline_notice(struct det_pipeline *pipeline);
void det_pipeline_totals(
    const struct det_pipeline *pipeline, uint64_t *rows_in, uint64_t *rows_out, uint64_t *errors);

/* ---- requests.c */

/* The component has ended. */
void det_pipeline_publish_end(struct det_pipeline *pipeline, const struct det_pipeline_end *end);
/* Waits until every stage has ended, too. */
void det_pipeline_wait_stages(struct det_pipeline *pipeline);
/* Reports the end when every stage has ended, too. */
void det_pipeline_check_end(struct det_pipeline *pipeline);
/* The result of a request: one that comes after the end has no effect. */
static inline int det_pipeline_sent(int r)
{
    return r == DET_ERR_CLOSED ? 0 : r;
}

#endif
