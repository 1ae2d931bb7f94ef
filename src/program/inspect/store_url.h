/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_url.h - shared by the commands on a store: opening it, finding the definition of a machine
 * and an instance by its id, and reporting errors with an exit code.
 *
 *     --store URL, else $DETENT_STORE, else store: of detent.yaml ---------> the store
 *     --machine FILE, else machines: of detent.yaml, else the store's own --> a definition
 *
 * Reading prefers the store's definition, which wrote the data; writing prefers the project's,
 * which applies from now on. */
#ifndef DET_INSPECT_STORE_URL_H
#define DET_INSPECT_STORE_URL_H

#include <detent/driver/store.h>

#include "base/text.h"
#include "config/project_file.h"
#include "os/os.h"
#include "terminal/command.h"

/* Options of these commands. */
#define STORE_OPTION_URL                                   \
    {                                                      \
        "store", 's', "URL", NULL,                         \
            "sqlite:FILE or postgres://...; else that of " \
            "detent.yaml"                                  \
    }
#define STORE_OPTION_MACHINE                                                 \
    {                                                                        \
        "machine", 'm', "NAME", NULL, "of this machine, or of the .fsm file" \
    }

/* Binds the functions that a definition names, after it was read from a file or from the store.
 * Complains, and returns an exit code. */
typedef int store_bind_fn(void *context, struct det_machine *machine);

struct cli_store;
/* Opens the store, whose URL is known, by the process that serves it, for reading: sets `store` and
 * `served_error`. False: none does, or it is not to be asked. */
typedef bool store_served_fn(struct cli_store *store);
/* Validates the input before a store is created, so that a mistake leaves no store; definitions
 * from files are available. Complains, and returns an exit code. */
typedef int store_validate_fn(void *context, struct cli_store *store);

/* Options for opening a store. */
struct store_request {
    const char *url;     /* NULL: not given */
    const char *machine; /* a name, or a file that ends in .fsm; NULL: any */
    bool is_writing;     /* otherwise it is opened for reading, without blocking others */
    bool is_alone;       /* not possible through a `detent up` that has the store */
    bool may_make;       /* create it if it does not exist */
    const char *made_by; /* the command that creates it, for messages; NULL: `detent start` */
    bool may_be_damaged; /* its machines may be unreadable */
    bool accepts_loss;   /* it may be copied although it has lost acknowledged data */
    /* NULL: it is opened here in any case. Otherwise, if it is served by another process,
     * `is_served` is set, and that process must do the writes. */
    store_served_fn *open_served;
    const char *served_for; /* writing: what that one must serve, as /v1/served names it */
    store_bind_fn *bind;    /* NULL: functions stay unbound, and operations that need them fail */
    void *bind_context;
    store_validate_fn *validate; /* NULL: nothing to validate */
    void *validate_context;
};

/* A machine of the store or the project. */
struct store_machine {
    struct store_machine *next;
    const char *name;
    uint32_t version;       /* in the store */
    const char *text;       /* the definition in the store; NULL: none */
    const char *path;       /* its file; NULL: unknown */
    struct det_spec *spec;  /* once it was read */
    struct det_machine *it; /* once it is served */
    bool is_stored;         /* the store knows it */
};

struct cli_store {
    struct cli *cli;
    struct det_arena arena;
    const char *address; /* the URL as it was given */
    const char *url;     /* the same for messages: without a password */
    struct det_store *store;
    const struct det_store_ops *ops;
    struct store_request request;
    const char *wanted;             /* the name of the machine; NULL: any */
    struct store_machine *machines; /* in the order of their names */
    int error;                      /* last reported error of the store; 0: none */
    bool is_served;                 /* read by a `detent up`, which must do the writes */
    const struct det_error
        *served_error; /* its last one that is about the connection, not the data;
                                             NULL: it is not served */
    bool has_loss;     /* it has lost acknowledged data, which was reported */
    struct config_file project;
    char folder[DET_PATH_MAX]; /* of the project; "": there is none */
};

/* Opens a store. Complains, and returns an exit code. Close it even after an error. A writer waits
 * up to 5 s for another one. */
DET_MUST_CHECK int cli_store_open(
    struct cli *cli, const struct store_request *request, struct cli_store *store);
/* Opens the store at this URL for reading, whatever the project; `address` is borrowed until it is
 * closed. */
DET_MUST_CHECK int cli_store_open_at(struct cli *cli, const char *address, struct cli_store *store);
void cli_store_close(struct cli_store *store);

/* Like det_store_open_with(), but while another process has it, waits for five seconds or until a
 * signal; reports the wait after a second. `reterr` is not NULL. */
DET_MUST_CHECK int cli_store_open_in_turn(
    struct cli *cli, const char *address, const struct det_store_options *options,
    struct det_store **ret, struct det_error *reterr);

/* Writes the path of a SQLite file to `target`; false: it is another kind of store, or too long. */
bool cli_store_file(const char *address, char target[DET_PATH_MAX]);

/* Returns true if no process serves it: a file that none has open for writing, or a shared store
 * without a live node. False also if unknown, for instance if the lock file cannot be opened. */
bool cli_store_is_unserved(const struct cli_store *store);

/* Reports the error with its own text if it has one, and returns the exit code. */
int cli_report_store_error(struct cli_store *store, int code, const struct det_error *error);

/* Returns the definition of a machine, served. Complains, and returns an exit code. */
DET_MUST_CHECK int cli_store_machine(
    struct cli_store *store, const char *name, struct det_machine **ret);
/* Returns the definition of a file without the store. `name` NULL: that of --machine. */
DET_MUST_CHECK int cli_store_definition(
    struct cli_store *store, const char *name, struct det_machine **ret);
/* Uses a definition given as text, which the store then has. */
DET_MUST_CHECK int cli_store_define(
    struct cli_store *store, const char *name, const char *text, struct det_machine **ret);
/* Returns the one machine that is meant if none is named: --machine, or the only one. */
DET_MUST_CHECK int cli_store_only_machine(struct cli_store *store, struct det_machine **ret);
/* Returns the machine of the instance with this id. Reports an error if there is none, with the
 * nearest id, and if there are several. */
DET_MUST_CHECK int cli_store_find(
    struct cli_store *store, const char *id, struct det_machine **ret);

/* Calls `each` for the selected machines of the store, with their definitions; stops at an exit
 * code other than CLI_OK, and returns it. */
typedef int cli_store_each_fn(void *context, struct det_machine *machine);
DET_MUST_CHECK int cli_store_each(struct cli_store *store, cli_store_each_fn *each, void *context);
/* Calls `each` for instances of a machine, page by page: it may call the store. */
typedef int cli_store_id_fn(void *context, struct det_machine *machine, const char *id);
DET_MUST_CHECK int cli_store_instances(
    struct cli_store *store, struct det_machine *machine, const struct det_store_query *query,
    cli_store_id_fn *each, void *context);

/* "1 instance", "2 instances": as arguments of a format with %llu and %s. */
#define STORE_COUNT(count) (unsigned long long)(count), det_plural(count)

#endif
