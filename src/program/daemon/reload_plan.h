/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_plan.h - the plan of a reload, shared by its files.
 *
 * Tasks, groups and slots are changed one by one. Machines cannot change while they run: if they
 * differ they are closed and opened again, and their effects are interrupted and retried. The HTTP
 * API is paused meanwhile: connections, streams and waiting calls outlive a reload, and new
 * requests wait for its end. Existing connections keep their settings until their pending answers
 * are sent.
 *
 * Invariants
 *   1. Nothing is applied before the whole file is valid, all that it names can be loaded, and no
 *      instance would be stranded.
 *   2. If the new parts cannot be opened, the old ones continue: their definitions and modules stay
 *      loaded until the new ones serve. Tasks are changed last.
 *   3. Parts that cannot be changed at run time stay until a restart. Every plan reports them: it
 *      compares with the running state, not with the file that was read last. */
#ifndef DET_DAEMON_RELOAD_PLAN_H
#define DET_DAEMON_RELOAD_PLAN_H

#include "daemon/daemon.h"
#include "daemon/project_internal.h"
#include "daemon/reload_outcome.h"

enum reload_change { RELOAD_ADDED, RELOAD_REMOVED, RELOAD_CHANGED };

struct reload_item {
    struct reload_item *next;
    enum reload_change change;
    const char *subject; /* "task", "slot", or the name of a whole section */
    const char *name;    /* NULL: the whole section */
    const char *runs;    /* the running version as text; NULL: none */
    bool needs_restart;  /* not applied now */
};

struct reload {
    struct up *up;
    struct up_project next; /* the new file; nothing of it runs */
    struct reload_item *first, **end;
    size_t count;
    bool pauses_api, reopens_machines; /* reopens_machines implies pauses_api */
    bool has_new_http;
    bool may_ask_store;   /* the store has just answered, or is a file */
    bool asks_store;      /* the plan needs the store, and may_ask_store is false */
    bool is_stranding;    /* a definition would strand instances */
    bool is_store_failed; /* the store could not be compared with a new definition */
    bool is_applied;      /* the new file has replaced the old one */
    bool is_lost;         /* neither the new parts nor the old ones could be opened */
    struct cli cli;       /* its messages are kept in `text` */
    char *text;
    size_t text_size;
};

/* Reads and checks the file, and makes the plan. CLI_OK, or an exit code with messages in `text`.
 * Call reload_close() even after an error. */
DET_MUST_CHECK int reload_open(struct up *up, struct reload *reload);
void reload_close(struct reload *reload);
/* Applies the plan, once. On an error without `is_applied` the old parts continue, or the run ends
 * after a message. */
DET_MUST_CHECK int reload_apply(struct reload *reload, struct det_error *reterr);
/* The word for a change: "added". */
const char *reload_change_word(enum reload_change change);

/* reload_plan.c: makes the list. CLI_OK, or an exit code after messages to the reload's cli. */
DET_MUST_CHECK int reload_plan(struct reload *reload);

/* reload_try.c: loads what the new file names. Returns like reload_plan(). */
DET_MUST_CHECK int reload_try(struct reload *reload);

#endif
