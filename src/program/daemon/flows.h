/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flows.h - the flows of a detent.yaml, run by the daemon.
 *
 *     open --> each flow: flow_host.fsm, on the loop of the daemon
 *                 | open, close: posts               ^ opened, ended, closed, facts: posts
 *                 v                                  |
 *              loops of flows: a few threads, each with the pipelines of many flows
 *
 * Other threads read the journal of a flow while they hold it.
 *
 * Invariants
 *   1. A pipeline is opened and closed on the thread of its loop. The loop of the daemon uses it
 *      between the posts `opened` and `close` only.
 *   2. A pipeline is closed when no thread holds it. A holder waits for nothing but the disk.
 *   3. Nothing here points into a configuration, which a reload may free. */
#ifndef DET_DAEMON_FLOWS_H
#define DET_DAEMON_FLOWS_H

#include <detent/flow.h>

#include "daemon/loop_request.h"

struct config_flow;
struct up;

/* Opens the flows of the file. Close them even after an error. */
DET_MUST_CHECK int up_flows_open(struct up *up, struct det_error *reterr);
/* Begins the flows that start automatically: after all parts are open. */
void up_flows_begin(struct up *up);
/* Requests the stop of all flows: what is in flight is processed; the second call cancels. */
void up_flows_stop(struct up *up);
/* True if no pipeline is open, or there are no flows. */
bool up_flows_are_over(const struct up *up);
/* Number of flows whose pipelines are open. */
size_t up_flows_open_count(const struct up *up);
void up_flows_close(struct up *up);

/* Number of flows. */
size_t up_flows_count(const struct up *up);
/* True if a flow runs, will run, or could be started by an order: the run is not done. */
bool up_has_flows(const struct up *up);
/* Applies the current file: adds, removes and replaces flows. */
DET_MUST_CHECK int up_flows_reload(struct up *up, struct det_error *reterr);

/* True if a flow of this name runs, or will run, with another definition. */
struct flow_definition;
bool up_flow_would_change(
    const struct up *up, const char *name, const struct flow_definition *definition);

/* Answers of the HTTP API, on the loop. DET_ERR_NOT_FOUND: no such flow. */
DET_MUST_CHECK int up_write_flows(struct up *up, struct det_json_writer *json, const char *key);
DET_MUST_CHECK int up_write_flow(struct up *up, struct det_json_writer *json, const char *name);
/* Calls `see` for each flow that is down or backs off because it has failed. */
typedef void up_failed_flow_fn(void *user, const char *name, const char *reason);
void up_each_failed_flow(const struct up *up, up_failed_flow_fn *see, void *user);
/* Writes the number of flows by state, as an object; null: there are no flows. */
void up_write_flows_figures(struct up *up, struct det_json_writer *json, const char *key);

/* Orders. */
enum up_flow_order_kind { UP_FLOW_RUN, UP_FLOW_DRAIN, UP_FLOW_CANCEL };
struct up_flow_order {
    const char *name;
    enum up_flow_order_kind kind;
    det_time timeout; /* DRAIN: then it is cancelled; 0: that of the flow */
    bool waits;       /* answered when the flow has stopped, or runs */
};
/* Answers with the flow, as up_write_flow(). */
void up_order_flow(struct up *up, struct up_request *request, const struct up_flow_order *order);

/* Any thread. A flow, held so that its definition and its journal can be read. */
struct up_flow_hold {
    struct flow_definition *definition;
    struct det_journal *journal; /* NULL: the pipeline is not open */
    uint64_t run;                /* of the journal */
    const char *folder;          /* of its state; NULL: it is in memory only */
    void *internal;
};
/* DET_ERR_NOT_FOUND: no such flow. */
DET_MUST_CHECK int up_flow_hold(struct up *up, const char *name, struct up_flow_hold *ret);
void up_flow_release(struct up *up, struct up_flow_hold *hold);

#endif
