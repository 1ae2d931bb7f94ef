/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_change.h - shared by the commands that change an instance: start, send, cancel,
 * retry.
 *
 *     `detent up` serves the store --> a request to it (instance_change_remote.c)
 *     otherwise --------------------> a runtime in this process
 *
 * The output is the same. The runtime in this process is passive: it makes the one commit and
 * leaves timers and effects in the store for a program that serves it. Functions of the definition
 * are only names, unless the options bind them: effects need no function, guards and hooks do. */
#ifndef DET_CLIENT_INSTANCE_CHANGE_H
#define DET_CLIENT_INSTANCE_CHANGE_H

#include <detent/lock.h>

#include "client/daemon_client.h"
#include "inspect/stored_instance.h"

struct act {
    struct cli_store store;
    struct det_runtime *runtime;       /* NULL: requests go to `up` */
    struct daemon_client *client;      /* to `up`; NULL: it does not serve this store */
    const struct det_machine *machine; /* of the command, once it is known */
    const char *id;
    const char *option; /* of the JSON: "--data" */
    bool prints_steps;  /* print the steps as they are committed */
};

/* Reports errors and returns an exit code. Close it even after an error. */
DET_MUST_CHECK int act_open(struct cli *cli, const struct store_request *request, struct act *act);
void act_close(struct act *act);

/* The changes, with the results of the runtime; the error has the details. */
DET_MUST_CHECK int act_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr);
DET_MUST_CHECK int act_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr);
DET_MUST_CHECK int act_stop(
    struct act *act, const char *reason, struct det_sent *ret, struct det_error *reterr);
DET_MUST_CHECK int act_retry(struct act *act, const char *key, struct det_error *reterr);

/* Reports an error of the instance with a remedy; returns the exit code. */
int act_report_error(struct act *act, int code, const struct det_error *error);
/* Reads the JSON of an option, or of the file after an @ (@- is standard input), into a zeroed
 * struct of the record. NULL: an empty object. `what` carries it, for messages. */
DET_MUST_CHECK int act_read_json(
    struct act *act, const char *what, const char *text, const struct det_record *record,
    unsigned flags, void *value);
/* Prints the result: an object for JSON, otherwise what the steps have not printed. */
void act_report(struct act *act, const char *event, const struct det_sent *sent);
/* Lists the effects and timers that wait for a program, unless one serves the store. */
void act_report_pending(struct act *act);

/* instance_change.c: prints a step. */
void act_report_step(void *user, const struct det_note *note);
/* instance_change_remote.c */
DET_MUST_CHECK int act_ask_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr);
DET_MUST_CHECK int act_ask_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr);
DET_MUST_CHECK int act_ask_stop(
    struct act *act, const char *reason, struct det_sent *ret, struct det_error *reterr);
DET_MUST_CHECK int act_ask_retry(struct act *act, const char *key, struct det_error *reterr);

#endif
