/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flows_internal.h - flows in the daemon, shared by its files: flows.c, flow_host.c, flow_notes.c,
 * flow_status.c, flow_orders.c. */
#ifndef DET_DAEMON_FLOWS_INTERNAL_H
#define DET_DAEMON_FLOWS_INTERNAL_H

#include <detent/supervise.h>

#include "base/list.h"
#include "config/flow_file.h"
#include "config/socket_place.h"
#include "daemon/daemon.h"
#include "daemon/flows.h"
#include "os/os.h"

/* Threads for the pipelines of all flows. */
#define UP_FLOW_LOOPS 2
/* The folder of the state of flows, relative to that of the project. */
#define UP_FLOWS_FOLDER SOCKET_FOLDER "/flows"

enum up_flow_stop { UP_FLOW_GO, UP_FLOW_STOP_DRAIN, UP_FLOW_STOP_CANCEL };

/* Counts of a stage or of all sinks, a moment ago. */
struct up_flow_rate {
    uint64_t before;
    double per_second;
};

struct up_flow {
    struct det_component component;
    struct up_flows *flows;
    struct up_flow *following; /* the next flow */
    char *name;
    struct det_loop *loop;              /* of its pipeline */
    struct flow_definition *definition; /* that of the pipeline */
    struct flow_definition *next;       /* for the next opening; NULL: the same again */
    char *journal;                      /* URL; NULL: in memory */
    /* What was requested, until the pipeline is closed. */
    enum up_flow_stop stop;
    det_time stop_timeout; /* 0: that of the flow */
    bool is_start_wanted, is_leaving;
    atomic_bool is_run_ordered; /* its sources begin as soon as its stages are ready */
    bool was_stopped;           /* by a client: a reload does not start it */
    /* How it went. */
    struct det_pipeline *pipeline; /* while it is open: see the first invariant of flows.h */
    struct det_pipeline *opened;   /* the same, for the thread of its loop */
    int result;                    /* of the last opening */
    struct det_error error;
    struct det_pipeline_end end; /* of the last run; its outcome is DET_PIPELINE_RUNS before */
    uint64_t run;
    det_time since;     /* wall: when the state shown last changed */
    det_time opened_at; /* monotonic */
    uint32_t failures;  /* in a row */
    det_time delay;     /* the last one */
    det_time due_at;    /* monotonic: the end of the delay */
    uint64_t restarts;
    /* Between the two loops; each is posted again only after it has arrived. */
    struct det_post work, done, ended;
    struct det_journal_watcher watcher;
    /* Guarded by the lock of the flows. */
    bool is_open;
    size_t holds;
    /* The last sample: flow_status.c. */
    struct det_stage_status *stages;
    struct det_edge_status *edges;
    struct up_flow_rate *rates; /* of the output of each stage; of the input of a sink */
    struct up_flow_rate *edge_rates;
    size_t stage_count, edge_count;
    det_time sampled_at; /* monotonic; 0: never */
};

struct up_flows {
    struct up *up;
    struct det_loop *loops[UP_FLOW_LOOPS];
    size_t loop_count, next_loop;
    struct det_mutex *lock;
    struct det_condition *released;
    struct up_flow *first; /* in the order of the file; changed under the lock */
    size_t count;
    struct det_timer timer; /* samples */
    struct det_list waits;  /* orders that wait: flow_orders.c */
    struct det_post sweep;
    bool has_begun, is_stopping, is_sweeping;
};

/* run_parts.c */
struct up_flows *up_flows(const struct up *up);
void up_set_flows(struct up *up, struct up_flows *flows);

/* flows.c. Returns the flow with this name; NULL: none. On the loop of the daemon. */
struct up_flow *up_flows_find(const struct up_flows *flows, const char *name);

/* Frees flows that are over, after the callbacks of this turn; unless the run stops. */
void up_flows_sweep(struct up_flows *flows);

/* flow_host.c */

/* Begins to supervise a flow, which is down. Takes the definition, also after an error. */
DET_MUST_CHECK int up_flow_open(
    struct up_flows *flows, const char *name, struct flow_definition *definition_take,
    struct up_flow **ret, struct det_error *reterr);
/* The flow is over, or was never started. */
void up_flow_close(struct up_flow *flow);
/* The run begins: opens it, and starts its sources unless they wait for an order. */
void up_flow_begin(struct up_flow *flow);
/* An order: opens it if necessary, and starts its sources. */
void up_flow_start(struct up_flow *flow);
void up_flow_stop(struct up_flow *flow, enum up_flow_stop stop, det_time timeout);
/* Stops it for ever. */
void up_flow_leave(struct up_flow *flow, enum up_flow_stop stop, det_time timeout);
/* Continues with another definition. */
void up_flow_replace(struct up_flow *flow, struct flow_definition *definition_take);
bool up_flow_is_over(const struct up_flow *flow);
/* True if it is closed and will not be opened by itself. */
bool up_flow_is_down(const struct up_flow *flow);
/* The name of its state: that of its pipeline while it is open. */
const char *up_flow_state(const struct up_flow *flow);
/* Why it is in this state; "": nothing to say. */
const char *up_flow_reason(const struct up_flow *flow);

/* flow_notes.c: messages about the life of a flow. */

/* On the loop of the flow. */
void up_flow_fact(void *user, const struct det_flow_fact *fact);
void up_flow_note_refusal(struct up_flow *flow);
void up_flow_note_retry(struct up_flow *flow, det_time delay);

/* flow_status.c */

/* Memory for the samples of its definition. */
DET_MUST_CHECK int up_flow_samples_open(struct up_flow *flow);
void up_flow_samples_close(struct up_flow *flow);
/* Reads the pipeline, which is open. */
void up_flow_sample(struct up_flow *flow);
void up_flows_sample_begin(struct up_flows *flows);

/* flow_orders.c: the state of the flow has changed; answers orders that wait for it. */
void up_flow_changed(struct up_flow *flow);
void up_flow_orders_close(struct up_flows *flows);

#endif
