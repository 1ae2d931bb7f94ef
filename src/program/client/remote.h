/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* remote.h - what the commands share that talk to a `detent up` in another terminal: finding it,
 * asking it, and telling what went wrong, with an exit code. */
#ifndef DET_CLIENT_REMOTE_H
#define DET_CLIENT_REMOTE_H

#include <detent/bus.h>

#include "client/daemon_client.h"
#include "os/os.h"
#include "terminal/command.h"

/* For an answer that needs no waiting. */
#define REMOTE_PATIENCE (10 * DET_SECOND)

/* The option that all of them have. */
#define REMOTE_OPTION_PROJECT                                                            \
    {                                                                                    \
        "project", 'C', "FOLDER", NULL, "of the detent.yaml; else this one or one above" \
    }

struct remote {
    struct cli *cli;
    struct daemon_client *client;
    char project[DET_PATH_MAX];
    bool follows;   /* the end of the other side is no failure */
    bool has_ended; /* and it has come */
};

/* Connects to the one of this project; NULL: of the current folder. Complains, and returns an exit
 * code; after CLI_OK it needs remote_close(). */
DET_MUST_CHECK int remote_open(struct cli *cli, const char *project, struct remote *ret);
void remote_close(struct remote *remote);

/* Complains, unless the user did it by Ctrl-C, or it is the end that was waited for; returns
 * the exit code. */
int remote_complain(struct remote *remote, int code, const struct det_error *error);
/* A (monotonic) deadline. */
det_time remote_within(det_time patience);

/* Gets what is at this path, and gives each part of the answer to `each`, which returns an exit
 * code: another one than CLI_OK ends it. Complains, and returns an exit code. */
typedef int remote_each_fn(void *user, json_t *data);
DET_MUST_CHECK int remote_each(
    struct remote *remote, const char *path, remote_each_fn *each, void *user);
/* The parts as they are, a line each: for --json. */
DET_MUST_CHECK int remote_print(struct remote *remote, const char *path);
/* A whole command about one answer: it is shown by `each`, whose user is the remote, or printed as
 * it is for --json. `body_take` is that of a POST; NULL: a GET. Returns an exit code. */
DET_MUST_CHECK int remote_command(
    struct cli *cli, const char *project, const char *path, json_t *body_take,
    remote_each_fn *each);
/* All parts in one array, which is the caller's. */
DET_MUST_CHECK int remote_list(struct remote *remote, const char *path, json_t **ret);
/* The groups, then the tasks. */
DET_MUST_CHECK int remote_tree(struct remote *remote, json_t **ret);

/* Of a list of objects the one with this "name"; NULL: none. */
json_t *remote_find(const json_t *list, const char *name);
/* Whether the task is in the group of this name, or in one below it. `tree` has the groups; without
 * them (NULL) only its own group counts. */
bool remote_is_in_group(const json_t *tree, const json_t *task, const char *name);
/* "; did you mean 'web'?" with the nearest name of the list, or "". */
#define REMOTE_HINT_TEXT (DET_TASK_NAME_MAX + 32)
const char *remote_hint(struct cli *cli, const json_t *list, const char *name, char *target);

#endif
