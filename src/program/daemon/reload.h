/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload.h - a detent.yaml that is read again while `detent up` runs.
 *
 *     SIGHUP, detent reload --> read and check all --> plan --> told --> applied
 *                                    | wrong                       \--> --plan: that was all
 *                                    +--> told; nothing has changed
 *
 *     reload.c        the command
 *     reload_plan.c   what is different, and what of it can be done now
 *     reload_try.c    whether certificates and modules can be loaded
 *     reload_apply.c  doing it
 *     reload_run.c    SIGHUP and the verb: the plan is made, told and carried out
 *
 * Tasks, groups and slots are changed one by one. What machines are made of cannot be changed while
 * they run: where they are different they are closed and opened again, and their effects are cut
 * off and tried again. The HTTP API is paused meanwhile: connections, streams and calls that wait
 * outlive a reload, and new requests wait for its end. Connections of before it end as they were
 * set up, each behind the answer that is on its way.
 *
 * Invariants
 *   1. Nothing is done before all of the file is right, all that it names can be loaded, and
 *      nothing would be stranded by it.
 *   2. What cannot be opened all the same gives way to what was there before: its definitions and
 *      its modules are kept as they were loaded until the new ones serve. Tasks come behind that.
 *   3. What cannot be changed while it runs stays as it was until a restart; the plan says so, each
 *      time: it compares with what runs, not with what was read last. */
#ifndef DET_DAEMON_RELOAD_H
#define DET_DAEMON_RELOAD_H

#include "daemon/verbs.h"

enum reload_change { RELOAD_ADDED, RELOAD_REMOVED, RELOAD_CHANGED };

struct reload_item {
    struct reload_item *next;
    enum reload_change change;
    const char *subject; /* "task", "slot"; of a whole section its name */
    const char *name;    /* NULL: the whole section */
    const char *runs;    /* as a text, how it runs; NULL: it does not */
    bool needs_restart;  /* it is not done now */
};

struct reload {
    struct up *up;
    struct up next; /* what is chosen of the new file, and where it is: nothing of it runs */
    struct reload_item *first, **end;
    size_t count;
    bool pauses_api, reopens_machines; /* the latter with the former */
    bool has_new_http;
    bool may_ask_store; /* it has answered a moment ago, or is a file */
    bool asks_store;    /* it would have to, and may not */
    bool is_applied;    /* the new file is in the place of the old one */
    struct cli cli;     /* whose talk is kept below */
    char *text;
    size_t text_size;
};

/* Reads the file again, checks it and makes the plan. CLI_OK or an exit code, and then `text` says
 * what is wrong. Close it in either case. */
DET_MUST_CHECK int reload_open(struct up *up, struct reload *reload);
void reload_close(struct reload *reload);
/* Does what the plan says, once. An error: if it is not applied, what was there before goes on, or
 * the run ends, which was told. */
DET_MUST_CHECK int reload_apply(struct reload *reload, struct det_error *reterr);
/* "added", "now": of an item. */
const char *reload_change_word(enum reload_change change);

/* reload_plan.c: fills the list. CLI_OK or an exit code, with what is wrong on the reload's cli. */
DET_MUST_CHECK int reload_plan(struct reload *reload);

/* reload_try.c: the same. */
DET_MUST_CHECK int reload_try(struct reload *reload);

/* reload_run.c: the verb: with {plan: true} it is only told. */
socket_verb_fn up_run_reload;

#endif
