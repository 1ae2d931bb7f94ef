/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_states.h - a reload and the events that change its state, shared by reload.c and
 * reload_run.c. */
#ifndef DET_DAEMON_RELOAD_STATES_H
#define DET_DAEMON_RELOAD_STATES_H

#include <detent/supervise.h>

#include "daemon/reload.h"

/* The client that waits for the answer; `request` is NULL for a signal, or after a disconnect. */
struct up_reload_client {
    struct up_request *request;
    struct up_reload_order *order; /* of the request */
};

struct up_reload {
    struct det_component component;
    struct up *up;
    const struct det_allocator *allocator;
    void (*refuse_client)(struct up *up); /* the run stops; a client may be waiting */
    bool is_signalled;                    /* SIGHUP arrived, and no reload has started for it */
    bool is_plan;                         /* the client requests only the plan */
    bool store_has_answered;              /* while this reload was probing */
    struct up_reload_client client;
    struct det_thread *probe; /* asks the store; NULL: none */
    struct det_post probe_post;
    int probe_result; /* set by the thread before it posts */
};

/* Starts in the state IDLE, without a handle. */
DET_MUST_CHECK int reload_supervise(struct up_reload *reload, struct det_executor *executor);

/* Offer one event each; see reload.fsm. True: the state has changed. */
void reload_on_signal(struct up_reload *reload);
bool reload_on_request(
    struct up_reload *reload, const struct up_reload_client *client, bool is_plan);
bool reload_on_turn(struct up_reload *reload);
void reload_on_probe(struct up_reload *reload);
void reload_on_answer(struct up_reload *reload);
void reload_on_apply(struct up_reload *reload);
void reload_on_finish(struct up_reload *reload);
void reload_on_stop(struct up_reload *reload);
bool reload_is_probing(const struct up_reload *reload);

#endif
