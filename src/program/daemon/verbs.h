/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* verbs.h - the verbs of `detent up`, and how they read their arguments. */
#ifndef DET_DAEMON_VERBS_H
#define DET_DAEMON_VERBS_H

#include "daemon/daemon.h"

/* `request` is borrowed for the call of this function. It finishes the call or keeps it. */
typedef void socket_verb_fn(
    void *context, const struct socket_request *request, struct socket_call *call);

struct socket_verb {
    const char *name;
    socket_verb_fn *run;
};

/* Ends with a NULL name. The context is the struct up. */
extern const struct socket_verb up_verbs[];

/* What an argument may be; the type of a value in JSON says little. */
enum up_argument_type {
    UP_TEXT, /* not empty */
    UP_BOOLEAN,
    UP_COUNT,   /* a whole number from 0 */
    UP_TEXTS,   /* an array of texts */
    UP_MAPPING, /* an object whose values are texts */
};

struct up_argument {
    const char *name; /* NULL: the last one */
    enum up_argument_type type;
};

/* Whether all arguments are of the table, and of its types; else the call is failed. */
bool up_arguments_check(
    const struct socket_request *request, struct socket_call *call,
    const struct up_argument *table);
/* Their values, checked before; NULL, false and `otherwise` where there are none. */
const char *up_argument_text(const struct socket_request *request, const char *name);
bool up_argument_is_set(const struct socket_request *request, const char *name);
uint64_t up_argument_count(
    const struct socket_request *request, const char *name, uint64_t otherwise);
json_t *up_argument(const struct socket_request *request, const char *name);

/* task_orders.c: 1, or 0: it is none, or an error. */
DET_MUST_CHECK int up_is_slot(struct up *up, const char *name);
socket_verb_fn up_run_restart, up_run_stop, up_run_drain;
/* submit_requests.c */
socket_verb_fn up_run_submit;
/* job_requests.c */
socket_verb_fn up_run_job;
/* worker_requests.c */
socket_verb_fn up_run_workers_list, up_run_workers_show, up_run_workers_history,
    up_run_workers_upsert, up_run_workers_delete, up_run_workers_order, up_run_workers_dump,
    up_run_workers_summary;

#endif
