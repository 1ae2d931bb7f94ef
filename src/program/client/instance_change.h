/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* instance_change.h - what the commands share that change an instance in a store: start, send,
 * cancel, retry.
 *
 *     the `up` of this project serves it --> that one is asked (instance_change_remote.c)
 *     nobody does -------------------------> a runtime of our own
 *
 * The output is the same. A runtime of our own is passive: the one commit is made, and what follows
 * from it, timers and effects, stays in the store for a program that serves it. Functions of the
 * definition are names here, unless the wish binds them: effects need none, guards and hooks cannot
 * do without. */
#ifndef DET_CLIENT_INSTANCE_CHANGE_H
#define DET_CLIENT_INSTANCE_CHANGE_H

#include <detent/lock.h>

#include "client/daemon_client.h"
#include "inspect/stored_instance.h"

struct act {
    struct cli_store store;
    struct det_runtime *runtime;       /* NULL: `up` is asked */
    struct daemon_client *client;      /* to it; NULL: none serves this store */
    const struct det_machine *machine; /* of the command, once it is known */
    const char *id;
    const char *option; /* that the JSON came by: "--data" */
    bool is_told;       /* the steps are printed as they are committed */
};

/* Complains, and returns an exit code. Close it in either case. */
DET_MUST_CHECK int act_open(struct cli *cli, const struct store_wish *wish, struct act *act);
void act_close(struct act *act);

/* The changes, as those of the runtime; the error has the details. */
DET_MUST_CHECK int act_start(
    struct act *act, const void *data, const char *event_id, struct det_sent *ret,
    struct det_error *reterr);
DET_MUST_CHECK int act_send(
    struct act *act, const void *event, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr);
DET_MUST_CHECK int act_stop(
    struct act *act, const char *reason, struct det_sent *ret, struct det_error *reterr);
DET_MUST_CHECK int act_retry(struct act *act, const char *key, struct det_error *reterr);

/* What went wrong with the instance, with what to do about it; returns the exit code. */
int act_complain(struct act *act, int code, const struct det_error *error);
/* The JSON of an option: itself, or that of the file behind an @ (@- is standard input), read into
 * a zeroed struct of the record. NULL: an empty object. `what` carries it, for messages. */
DET_MUST_CHECK int act_read_json(
    struct act *act, const char *what, const char *text, const struct det_record *record,
    unsigned flags, void *value);
/* What became of it: for JSON an object, otherwise what the steps have not told. */
void act_report(struct act *act, const char *event, const struct det_sent *sent);
/* Says which effects and timers wait for a program; nothing where one serves the store. */
void act_tell_pending(struct act *act);

/* instance_change.c: tells a step. */
void act_tell_step(void *user, const struct det_note *note);
/* instance_change_remote.c: the `up` of this project, if it runs and has a store for that: "store"
 * of machines, or "jobs". The identity of the store is written to `target` of 33 bytes. NULL: there
 * is none. */
struct daemon_client *act_find_up(struct cli *cli, const char *what, char *target);
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
