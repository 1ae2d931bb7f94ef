/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_url.h - what the commands on a store share: opening it, finding the definition of a
 * machine, finding an instance by its id, and telling what went wrong, with an exit code.
 *
 *     --store URL, else $DETENT_STORE, else store: of detent.yaml ---------> the store
 *     --machine FILE, else machines: of detent.yaml, else the store's own --> a definition
 *
 * A definition for reading is rather the store's, since what is there was written by it; one for
 * writing is rather the project's, since that is what is meant from now on. */
#ifndef DET_INSPECT_STORE_URL_H
#define DET_INSPECT_STORE_URL_H

#include <detent/driver/store.h>

#include "base/text.h"
#include "config/project_file.h"
#include "os/os.h"
#include "terminal/command.h"

/* The options that they have. */
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

/* Binds the functions that a definition names, once it was read from a file or from the store.
 * Complains, and returns an exit code. */
typedef int store_bind_fn(void *context, struct det_machine *machine);

struct cli_store;
/* Looks, before a store is made, whether what is meant for it is right, so that a mistake leaves
 * none behind; the definitions that files have can be asked for. Complains, and returns an exit
 * code. */
typedef int store_judge_fn(void *context, struct cli_store *store);

/* What is wanted of a store. */
struct store_wish {
    const char *url;     /* NULL: not given */
    const char *machine; /* a name, or a file that ends in .fsm; NULL: any */
    bool is_writing;     /* else it is opened for reading, and disturbs nobody */
    bool is_alone;       /* it cannot be done through a `detent up` that has the store */
    bool may_make;       /* it is made if it is not there */
    const char *made_by; /* what makes one that has what is looked for; NULL: `detent start` */
    bool may_be_damaged; /* the machines that it has need not be readable */
    bool accepts_loss;   /* it may be copied though it has lost what it had acknowledged */
    /* The identity of the store that the `detent up` of this project serves; NULL: none. If it is
     * this one, it is not opened for writing, and `is_served` says so. */
    const char *served;
    store_bind_fn *bind; /* NULL: functions stay names, and what needs one cannot be done */
    void *bind_context;
    store_judge_fn *judge; /* NULL: there is nothing to look at */
    void *judge_context;
};

/* A machine that the store or the project knows. */
struct store_machine {
    struct store_machine *next;
    const char *name;
    uint32_t version;       /* in the store */
    const char *text;       /* the definition in the store; NULL: none */
    const char *path;       /* the file of it; NULL: none is known */
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
    struct store_wish wish;
    const char *wanted;             /* the name of the machine; NULL: any */
    struct store_machine *machines; /* in the order of their names */
    int error;                      /* that was complained about last; 0: none of the store's */
    bool is_served;                 /* by a `detent up`, who is to be asked to write */
    bool has_loss;                  /* it has lost what it had acknowledged, and that was said */
    struct config_file project;
    char folder[DET_PATH_MAX]; /* of the project; "": there is none */
};

/* Complains, and returns an exit code. Close it in either case. Who wants to write waits up to 5 s
 * for another one who does. */
DET_MUST_CHECK int cli_store_open(
    struct cli *cli, const struct store_wish *wish, struct cli_store *store);
/* The same for the store at this URL, for reading, whatever project there is; `address` is borrowed
 * until it is closed. */
DET_MUST_CHECK int cli_store_open_at(struct cli *cli, const char *address, struct cli_store *store);
void cli_store_close(struct cli_store *store);

/* As det_store_open_with(), but while another process has it, it waits, for five seconds or until a
 * signal wants the end; after a second it says for whom. `reterr` is not NULL. */
DET_MUST_CHECK int cli_store_open_in_turn(
    struct cli *cli, const char *address, const struct det_store_options *options,
    struct det_store **ret, struct det_error *reterr);

/* Whether nobody serves it: a file that nobody has open for writing, or a shared store without a
 * node that is alive. False also where that cannot be told, as with a lock file that cannot be
 * opened. */
bool cli_store_is_unserved(const struct cli_store *store);

/* The exit code of an error. */
int cli_store_exit(int code);
/* Complains with the error's own text if it has one, and returns the exit code. */
int cli_store_complain(struct cli_store *store, int code, const struct det_error *error);

/* The definition of a machine, served. Complains, and returns an exit code. */
DET_MUST_CHECK int cli_store_machine(
    struct cli_store *store, const char *name, struct det_machine **ret);
/* The same without the store: the definition that a file has. `name` NULL: that of --machine. */
DET_MUST_CHECK int cli_store_definition(
    struct cli_store *store, const char *name, struct det_machine **ret);
/* The same for a definition given as text, which the store then has. */
DET_MUST_CHECK int cli_store_define(
    struct cli_store *store, const char *name, const char *text, struct det_machine **ret);
/* The same for the one machine that is meant where none is named: --machine, or the only one. */
DET_MUST_CHECK int cli_store_only_machine(struct cli_store *store, struct det_machine **ret);
/* The machine of the instance with this id. Complains when there is none, with the nearest id, and
 * when it could be one of several. */
DET_MUST_CHECK int cli_store_find(
    struct cli_store *store, const char *id, struct det_machine **ret);

/* Calls `each` for the machines that are wanted and that the store has, with their definitions;
 * stops at an exit code other than CLI_OK, and returns it. */
typedef int cli_store_each_fn(void *context, struct det_machine *machine);
DET_MUST_CHECK int cli_store_each(struct cli_store *store, cli_store_each_fn *each, void *context);
/* The same for instances of a machine, page by page: `each` may call the store. */
typedef int cli_store_id_fn(void *context, struct det_machine *machine, const char *id);
DET_MUST_CHECK int cli_store_instances(
    struct cli_store *store, struct det_machine *machine, const struct det_store_query *query,
    cli_store_id_fn *each, void *context);

/* "1 instance", "2 instances": as arguments of a format with %llu and %s. */
#define STORE_COUNT(count) (unsigned long long)(count), det_plural(count)

#endif
