/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* remote.h - shared by the commands that control the running daemon: finds it, sends requests, and
 * turns errors into messages and exit codes. */
#ifndef DET_CLIENT_REMOTE_H
#define DET_CLIENT_REMOTE_H

#include <detent/bus.h>

#include "client/daemon_client.h"
#include "os/os.h"
#include "terminal/command.h"
#include "terminal/table.h"

/* Timeout of an answer that needs no waiting. */
#define REMOTE_PATIENCE (10 * DET_SECOND)

/* The option of all these commands. */
#define REMOTE_OPTION_PROJECT                                                                   \
    {                                                                                           \
        "project", 'C', "FOLDER", NULL, "folder of the detent.yaml (default: this or a parent)" \
    }

struct remote {
    struct cli *cli;
    struct daemon_client *client;
    char project[DET_PATH_MAX];
    bool follows;   /* the exit of the daemon is not a failure */
    bool has_ended; /* the daemon has exited */
};

/* Connects to the daemon of this project; NULL: of the current folder. Reports errors and returns
 * an exit code; after CLI_OK it needs remote_close(). */
DET_MUST_CHECK int remote_open(struct cli *cli, const char *project, struct remote *ret);
void remote_close(struct remote *remote);

/* Reports an error, except Ctrl-C and the expected exit of the daemon; returns the exit code. */
int remote_report_error(struct remote *remote, int code, const struct det_error *error);
/* Returns a (monotonic) deadline. */
det_time remote_within(det_time patience);

/* Sends a GET and passes each part of the answer to `each`, which returns an exit code: any but
 * CLI_OK ends it. Reports errors and returns an exit code. */
typedef int remote_each_fn(void *user, const struct det_json_value *data);
DET_MUST_CHECK int remote_each(
    struct remote *remote, const char *path, remote_each_fn *each, void *user);
/* Prints each part as a line, for --json. */
DET_MUST_CHECK int remote_print(struct remote *remote, const char *path);

/* A stream that continues until the daemon ends it or exits, which is not a failure, or until
 * Ctrl-C. */
struct remote_stream {
    const char *path;
    remote_each_fn *each;
    int (*on_time)(void *user); /* at the (monotonic) deadline; sets the next one */
    det_time deadline;          /* DET_NEVER: none */
    void *user;
};
DET_MUST_CHECK int remote_follow(struct remote *remote, struct remote_stream *stream);
/* Reports the end of a followed stream: the daemon has exited, or it dropped a slow reader, which
 * is a failure. Returns the exit code. */
int remote_report_end(struct remote *remote);

/* Sends a request; the answer is valid until the next one. Reports errors and returns an exit
 * code. */
DET_MUST_CHECK int remote_call(
    struct remote *remote, const char *method, const char *path, struct det_json_writer *body_take,
    det_time patience, const struct det_json_value **ret);
/* Runs a whole command: shows the answer to a GET, or to a POST without a body. Returns an exit
 * code. */
DET_MUST_CHECK int remote_command(
    struct cli *cli, const char *project, const char *method, const char *path,
    void (*show)(struct cli *cli, const struct det_json_value *answer));

/* All parts of an answer. */
struct remote_list {
    struct det_arena values;
    const struct det_json_value **items;
    size_t count, room;
    bool is_read;
};
/* Reads all parts. Reports errors and returns an exit code; then the list is empty. */
DET_MUST_CHECK int remote_list(struct remote *remote, const char *path, struct remote_list *ret);
/* Reads the groups, then the tasks. */
DET_MUST_CHECK int remote_tree(struct remote *remote, struct remote_list *ret);
void remote_list_free(struct remote_list *list); /* also a zeroed one */
/* Prints a table with a row per part, or a text if there is none; for --json the parts. */
typedef void remote_row_fn(struct table *table, const struct det_json_value *row, det_time now);
struct remote_table {
    const struct table_column *columns;
    size_t column_count;
    remote_row_fn *add_row;
    const char *none;
};
DET_MUST_CHECK int remote_print_table(
    struct remote *remote, const char *path, const struct remote_table *form);

/* Returns the object with this "name", or NULL. */
const struct det_json_value *remote_find(const struct remote_list *list, const char *name);
/* Returns true if the task is in the group of this name, or in a group below it. `tree` has the
 * groups; if it was not read, only the task's own group counts. */
bool remote_is_in_group(
    const struct remote_list *tree, const struct det_json_value *task, const char *name);
/* "; did you mean 'web'?" with the nearest name of the list, or "". */
#define REMOTE_HINT_TEXT (DET_TASK_NAME_MAX + 32)
const char *remote_hint(
    struct cli *cli, const struct remote_list *list, const char *name, char *target);

#endif
