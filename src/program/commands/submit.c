/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit.c - `detent submit`: submits a job to the running daemon. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "client/remote.h"
#include "inspect/print_tasks.h"
#include "terminal/args.h"

#define RETRIES_MAX 1000000
/* The failing store of a durable slot takes time to report its error. */
#define PATIENCE (30 * DET_SECOND)

enum {
    OPTION_REPLACE,
    OPTION_REPLACE_ALL,
    OPTION_DROP,
    OPTION_NEW_SLOT,
    OPTION_NAME,
    OPTION_FOLDER,
    OPTION_TIMEOUT,
    OPTION_RETRIES,
    OPTION_WAIT,
    OPTION_PROJECT,
};

static const struct cli_option option_table[] = {
    [OPTION_REPLACE] = { "replace", 0, NULL, NULL, "stop the running job and run next" },
    [OPTION_REPLACE_ALL] = { "replace-all", 0, NULL, NULL, "like --replace, and empty the queue" },
    [OPTION_DROP] = { "drop", 0, NULL, NULL, "refuse the job if the slot is busy" },
    [OPTION_NEW_SLOT] = { "new-slot", 0, NULL, NULL, "create the slot if it does not exist" },
    [OPTION_NAME] = { "name", 'n', "NAME", NULL, "name of the job (default: from the program)" },
    [OPTION_FOLDER] = { "folder", 0, "FOLDER", NULL, "working folder (default: the current one)" },
    [OPTION_TIMEOUT] = { "timeout", 't', "TIME", NULL, "timeout of one attempt (default none)" },
    [OPTION_RETRIES] = { "retries", 'r', "N", NULL, "number of retries (default 0)" },
    [OPTION_WAIT] = { "wait", 'w', NULL, NULL,
                      "wait for the end of the job and exit with its code" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

/* A submission. */
struct job {
    struct remote remote;
    const struct cli_args *args;
    const char *slot; /* NULL: its own name */
    char *folder;
    bool waits;
    uint64_t retries;
    det_time timeout;
    int64_t id; /* once it is submitted; 0: not yet */
    bool is_durable;
    char label[DET_TASK_NAME_MAX + 1];
    int exit; /* once it has ended */
};

/* Returns the admission for a busy slot. */
static const char *admission_of(const struct cli_args *args)
{
    static const struct {
        int option;
        const char *name;
    } ways[] = {
        { OPTION_REPLACE, "replace" },
        { OPTION_REPLACE_ALL, "replace-all" },
        { OPTION_DROP, "drop" },
    };
    const char *found = NULL;

    for (size_t i = 0; i < 3; i++) {
        if (!args->values[ways[i].option])
            continue;
        if (found)
            return NULL;
        found = ways[i].name;
    }
    return found ? found : "queue";
}

/* JSON carries only UTF-8; other arguments are refused rather than changed. */
static bool is_sendable(struct cli *cli, const char *word)
{
    if (!word || det_utf8_check(word, strlen(word)) == strlen(word))
        return true;
    cli_report_error(cli, "'%s' is not UTF-8; put the command into a script: -- sh FILE", word);
    return false;
}

static bool are_sendable(const struct job *job, struct cli *cli)
{
    for (size_t i = 0; i < job->args->operand_count; i++) {
        if (!is_sendable(cli, job->args->operands[i]))
            return false;
    }
    return is_sendable(cli, job->args->values[OPTION_NAME]);
}

static bool is_for_slot(const struct cli_args *args)
{
    return args->values[OPTION_REPLACE] || args->values[OPTION_REPLACE_ALL] ||
           args->values[OPTION_DROP] || args->values[OPTION_NEW_SLOT];
}

static bool read_words(struct job *job, struct cli *cli)
{
    const struct cli_args *args = job->args;
    const char *timeout = args->values[OPTION_TIMEOUT], *retries = args->values[OPTION_RETRIES];

    if (!args->has_dashes || args->operand_count == args->dashes_at)
        cli_report_error(cli, "the command must follow two dashes: detent submit SLOT -- COMMAND");
    else if (args->dashes_at > 1)
        cli_report_error(
            cli, "unexpected argument '%s': only a slot may precede the two dashes",
            args->operands[1]);
    else if (args->dashes_at == 0 && is_for_slot(args))
        cli_report_error(
            cli, "--replace, --replace-all, --drop and --new-slot need a slot: "
                 "detent submit SLOT -- COMMAND");
    else if (!admission_of(args))
        cli_report_error(cli, "--replace, --replace-all and --drop exclude each other");
    else
        return are_sendable(job, cli) &&
               (!timeout || cli_args_span(cli, "timeout", timeout, 1, &job->timeout)) &&
               (!retries ||
                cli_args_number(cli, "retries", retries, 0, RETRIES_MAX, &job->retries));
    return false;
}

static struct det_json_writer body_of(const struct job *job)
{
    const char *name = job->args->values[OPTION_NAME];
    struct det_json_writer body = daemon_body(job->remote.client);

    det_json_open(&body, "run", '[');
    for (size_t i = job->args->dashes_at; i < job->args->operand_count; i++)
        det_json_text(&body, NULL, job->args->operands[i]);
    det_json_close(&body, ']');
    det_json_text(&body, "admission", admission_of(job->args));
    det_json_text(&body, "folder", job->folder);
    det_json_bool(&body, "wait", job->waits);
    det_json_number(&body, "retries", job->retries);
    if (name)
        det_json_text(&body, "name", name);
    if (job->args->values[OPTION_NEW_SLOT])
        det_json_bool(&body, "new_slot", true);
    if (job->timeout)
        det_json_signed(&body, "timeout_ns", job->timeout);
    return body;
}

/* "sleep-1" if the daemon sends it, else the id. */
static void learn_label(struct job *job, const struct det_json_value *submitted)
{
    const char *name = show_text(submitted, "name");

    job->id = det_json_get_signed(submitted, "id");
    job->is_durable = det_json_get_bool(submitted, "durable");
    if (!*name || !det_text_copy(job->label, sizeof job->label, name))
        snprintf(job->label, sizeof job->label, "job %lld", (long long)job->id);
}

static void report_submitted(const struct job *job, const struct det_json_value *data)
{
    struct cli *cli = job->remote.cli;
    int64_t depth = det_json_get_signed(data, "depth");
    const char *state = show_text(data, "state");

    if (*state)
        cli_print_error(
            cli, "%s: this job exists already: %s; nothing was submitted\n", job->label, state);
    else if (job->is_durable)
        cli_print_error(cli, "%s: stored\n", job->label);
    else if (det_json_get_bool(data, "started"))
        cli_print_error(cli, "%s: started\n", job->label);
    else if (depth <= 1)
        cli_print_error(cli, "%s: waits and runs next\n", job->label);
    else
        cli_print_error(cli, "%s: waits in a queue of %lld\n", job->label, (long long)depth);
}

static void report_end(const struct job *job, const struct det_json_value *end)
{
    const char *reason = show_text(end, "reason"), *outcome = show_text(end, "outcome");
    int64_t attempts = det_json_get_signed(end, "attempts");
    char tries[48] = "";

    if (attempts > 1)
        snprintf(
            tries, sizeof tries, " after %lld attempt%s", (long long)attempts,
            det_plural((uint64_t)attempts));
    cli_print_error(
        job->remote.cli, "%s: %s%s%s%s\n", job->label,
        strcmp(outcome, "force_aborted") == 0 ? "forced to end" : outcome, tries,
        *reason ? ": " : "", reason);
}

/* Returns the exit code of the job, if it has one. */
static int exit_of(const struct det_json_value *end)
{
    bool is_right = strcmp(show_text(end, "outcome"), "completed") == 0;
    int64_t code = 0;

    if (strcmp(show_text(end, "outcome"), "rejected") == 0)
        return CLI_REFUSED;
    /* A stopped or timed out job may have exited with 0. */
    if (det_json_value_i64(det_json_get(end, "exit_code"), &code) == 0 && (is_right || code != 0))
        return (int)(code & 0xFF);
    return is_right ? CLI_OK : CLI_FAILURE;
}

static void take_part(struct job *job, const struct det_json_value *data)
{
    struct cli *cli = job->remote.cli;
    bool is_end = strcmp(show_text(data, "kind"), "end") == 0;

    if (is_end)
        job->exit = exit_of(data);
    else
        learn_label(job, data);
    if (cli->is_json)
        cli_print_value(cli, data);
    else if (is_end)
        report_end(job, data);
    else
        report_submitted(job, data);
    cli_flush(cli);
}

static void report_running(const struct job *job)
{
    struct cli *cli = job->remote.cli;

    if (job->is_durable)
        cli_print_error(
            cli, "%s: still running; 'detent jobs cancel %s --queue %s' stops it\n", job->label,
            job->label, job->slot);
    else
        cli_print_error(cli, "%s: still running; 'detent stop' stops it\n", job->label);
}

/* The first part has a deadline, the end of the job has none. */
static int follow(struct job *job)
{
    const struct det_json_value *data = NULL;
    struct det_error error = { 0 };
    int parts = job->waits ? 2 : 1, r = 1;

    for (int i = 0; i < parts && r > 0; i++) {
        det_time deadline = i == 0 ? remote_within(PATIENCE) : DET_NEVER;

        r = daemon_client_next(job->remote.client, deadline, &data, &error);
        if (r <= 0)
            break;
        take_part(job, data);
    }
    if (r == 0)
        r = det_error_set(&error, DET_ERR_IO, "the answer ends too early");
    if (r == DET_ERR_CANCELLED && job->label[0])
        report_running(job);
    if (r == DET_ERR_CLOSED && job->label[0] && job->is_durable)
        cli_print_error(
            job->remote.cli, "%s: stored; it starts with the next 'detent up'\n", job->label);
    return r < 0 ? remote_report_error(&job->remote, r, &error) : job->exit;
}

static int submit(struct job *job)
{
    struct det_json_writer body = body_of(job);
    struct det_error error = { 0 };
    struct det_buffer path;
    int r;

    det_buffer_init(&path, job->remote.cli->allocator);
    det_buffer_append_text(&path, "/v1/");
    if (job->slot) {
        det_buffer_append_text(&path, "slots/");
        daemon_path_add(&path, job->slot);
        det_buffer_append_char(&path, '/');
    }
    det_buffer_append_text(&path, "submissions");
    r = daemon_client_ask(job->remote.client, "POST", daemon_path_text(&path), &body, NULL, &error);
    det_buffer_deinit(&path);
    return r < 0 ? remote_report_error(&job->remote, r, &error) : follow(job);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *folder = args->values[OPTION_FOLDER] ? args->values[OPTION_FOLDER] : ".";
    struct job job = { .args = args, .waits = args->values[OPTION_WAIT] != NULL };
    int code;

    if (!read_words(&job, cli))
        return CLI_USAGE;
    job.slot = args->dashes_at == 1 ? args->operands[0] : NULL;
    code = remote_open(cli, args->values[OPTION_PROJECT], &job.remote);
    if (code != CLI_OK)
        return code;
    job.folder = realpath(folder, NULL);
    if (!job.folder) {
        cli_report_error(cli, "there is no folder '%s'", folder);
        code = CLI_NOT_FOUND;
    } else {
        code = is_sendable(cli, job.folder) ? submit(&job) : CLI_USAGE;
    }
    free(job.folder);
    remote_close(&job.remote);
    return code;
}

extern const struct cli_command cli_command_submit;
const struct cli_command cli_command_submit = {
    .name = "submit",
    .summary = "submit a job to the running daemon",
    .about = "Runs a command in the running daemon: in a slot, where it waits for its turn, or\n"
             "by itself. It gets the environment of detent up and the current folder. No shell\n"
             "is used; if you need one, write -- sh -c '...'.\n"
             "\n"
             "With --wait it returns at the end of the job, with the exit code of the job; 1 if\n"
             "a signal or a timeout ended it, and 6 if it was refused or removed from the queue.\n"
             "\n"
             "    detent submit batch --wait --timeout 10m -- sh nightly.sh",
    .operand = { .form = "[SLOT] -- COMMAND...", .most = CLI_OPERANDS_ANY, .names = "slots" },
    .options = option_table,
    .run = run_command,
};
