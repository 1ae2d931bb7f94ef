/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload.h - reloads detent.yaml while `detent up` runs, for SIGHUP or a client. */
#ifndef DET_DAEMON_RELOAD_H
#define DET_DAEMON_RELOAD_H

#include <detent/base.h>

#include "daemon/reload_outcome.h"

struct up;
struct up_reload;
struct up_request;

/* A request of a client, and its result. */
struct up_reload_order {
    bool is_plan; /* only makes the plan; nothing is changed */
    /* Results, set when the request is finished. */
    enum reload_outcome outcome;
    bool is_applied; /* the new file is in effect */
};

/* The answer is {"kind":"reload",...}. The order must outlive the request. */
void up_order_reload(struct up *up, struct up_request *request, struct up_reload_order *order);
/* SIGHUP: requests a reload, which starts after the running one. */
void up_reload_on_signal(struct up *up);
/* Call between two turns of the loop: runs a requested reload, which turns the loop. */
void up_reload_between_turns(struct up *up);

/* Call after up_life_open(). 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int up_reload_open(struct up *up);
/* Call after the last reload; waits for a question to the store, whose time is limited by now. */
void up_reload_close(struct up *up);
/* Call after the loop is closed; NULL does nothing. */
void up_reload_free(struct up_reload *reload);
/* Closes the files that reloads have replaced; call it after closing all parts that point into
 * them. */
void up_retired_close(struct up *up);

#endif
