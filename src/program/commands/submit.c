/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* submit.c - `detent submit`: gives a job to a detent that is up. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "client/remote.h"
#include "inspect/print_tasks.h"
#include "terminal/args.h"

#define RETRIES_MAX 1000000
/* The store of a durable slot takes its time when it fails, and says why then. */
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
    [OPTION_REPLACE] = { "replace", 0, NULL, NULL, "stop the one that runs, and be the next" },
    [OPTION_REPLACE_ALL] = { "replace-all", 0, NULL, NULL, "the same, and empty the queue" },
    [OPTION_DROP] = { "drop", 0, NULL, NULL, "only if nothing runs; else refuse it" },
    [OPTION_NEW_SLOT] = { "new-slot", 0, NULL, NULL, "make the slot if there is none" },
    [OPTION_NAME] = { "name", 'n', "NAME", NULL, "of the job; else made from the program" },
    [OPTION_FOLDER] = { "folder", 0, "FOLDER", NULL, "where it runs; else the current folder" },
    [OPTION_TIMEOUT] = { "timeout", 't', "TIME", NULL, "of one attempt; else none" },
    [OPTION_RETRIES] = { "retries", 'r', "N", NULL, "how often it is tried again; else never" },
    [OPTION_WAIT] = { "wait", 'w', NULL, NULL, "wait for its end, and exit as it did" },
    [OPTION_PROJECT] = REMOTE_OPTION_PROJECT,
    { NULL, 0, NULL, NULL, NULL },
};

/* One job on its way. */
struct job {
    struct remote remote;
    const struct cli_args *args;
    const char *slot; /* NULL: its own name */
    char *folder;
    bool waits;
    uint64_t retries;
    det_time timeout;
    json_int_t id; /* once it is submitted; 0: not yet */
    bool is_durable;
    char label[DET_TASK_NAME_MAX + 1];
    int exit; /* once it has ended */
};

/* What the slot does when something runs in it. */
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

/* Words go through JSON, which has no place for other bytes: better not run than run otherwise. */
static bool is_sendable(struct cli *cli, const char *word)
{
    if (!word || det_utf8_check(word, strlen(word)) == strlen(word))
        return true;
    cli_complain(cli, "'%s' is not UTF-8; let a script say it: -- sh FILE", word);
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
        cli_complain(cli, "what to run stands behind two dashes: detent submit SLOT -- COMMAND");
    else if (args->dashes_at > 1)
        cli_complain(
            cli, "'%s' is too much: only a slot stands before the two dashes", args->operands[1]);
    else if (args->dashes_at == 0 && is_for_slot(args))
        cli_complain(
            cli, "--replace, --replace-all, --drop and --new-slot need a slot: "
                 "detent submit SLOT -- COMMAND");
    else if (!admission_of(args))
        cli_complain(cli, "--replace, --replace-all and --drop exclude each other");
    else
        return are_sendable(job, cli) &&
               (!timeout || cli_args_span(cli, "timeout", timeout, 1, &job->timeout)) &&
               (!retries ||
                cli_args_number(cli, "retries", retries, 0, RETRIES_MAX, &job->retries));
    return false;
}

static int set(json_t *object, const char *key, json_t *value_take)
{
    return json_object_set_new(object, key, value_take);
}

/* NULL: no memory. */
static json_t *run_of(const struct cli_args *args)
{
    json_t *run = json_array();

    for (size_t i = args->dashes_at; i < args->operand_count; i++) {
        if (json_array_append_new(run, cli_json_text(args->operands[i])) < 0) {
            json_decref(run);
            return NULL;
        }
    }
    return run;
}

static json_t *body_of(const struct job *job)
{
    const char *name = job->args->values[OPTION_NAME];
    json_t *body = json_pack(
        "{s:o, s:s, s:o, s:b, s:I}", "run", run_of(job->args), "admission", admission_of(job->args),
        "folder", cli_json_text(job->folder), "wait", job->waits, "retries",
        (json_int_t)job->retries);

    if (!body || (name && set(body, "name", cli_json_text(name)) < 0) ||
        (job->args->values[OPTION_NEW_SLOT] && set(body, "new_slot", json_true()) < 0) ||
        (job->timeout && set(body, "timeout_ns", json_integer(job->timeout)) < 0)) {
        json_decref(body);
        return NULL;
    }
    return body;
}

/* "sleep-1" where the other side says it, else the id. */
static void learn_label(struct job *job, const json_t *submitted)
{
    const char *name = show_text(submitted, "name");

    job->id = show_number(submitted, "id");
    job->is_durable = json_is_true(json_object_get(submitted, "durable"));
    if (!*name || !det_text_copy(job->label, sizeof job->label, name))
        snprintf(job->label, sizeof job->label, "job %lld", (long long)job->id);
}

static void tell_submitted(const struct job *job, const json_t *data)
{
    struct cli *cli = job->remote.cli;
    json_int_t depth = show_number(data, "depth");
    const char *state = show_text(data, "state");

    if (*state)
        cli_say(
            cli, "%s: a job of that name was there already: %s; nothing was submitted\n",
            job->label, state);
    else if (job->is_durable)
        cli_say(cli, "%s: is in the store\n", job->label);
    else if (json_is_true(json_object_get(data, "started")))
        cli_say(cli, "%s: started\n", job->label);
    else if (depth <= 1)
        cli_say(cli, "%s: waits, and is the next\n", job->label);
    else
        cli_say(cli, "%s: waits in a queue of %lld\n", job->label, (long long)depth);
}

static void tell_end(const struct job *job, const json_t *end)
{
    const char *reason = show_text(end, "reason"), *outcome = show_text(end, "outcome");
    json_int_t attempts = show_number(end, "attempts");
    char tries[48] = "";

    if (attempts > 1)
        snprintf(
            tries, sizeof tries, " after %lld attempt%s", (long long)attempts,
            det_plural((uint64_t)attempts));
    cli_say(
        job->remote.cli, "%s: %s%s%s%s\n", job->label,
        strcmp(outcome, "force_aborted") == 0 ? "forced to end" : outcome, tries,
        *reason ? ": " : "", reason);
}

/* That of the job where it has one. */
static int exit_of(const json_t *end)
{
    const json_t *code = json_object_get(end, "exit_code");
    bool is_right = strcmp(show_text(end, "outcome"), "completed") == 0;

    if (strcmp(show_text(end, "outcome"), "rejected") == 0)
        return CLI_REFUSED;
    /* One that was stopped in time may have said 0 all the same. */
    if (json_is_integer(code) && (is_right || json_integer_value(code) != 0))
        return (int)(json_integer_value(code) & 0xFF);
    return is_right ? CLI_OK : CLI_FAILURE;
}

static int take_part(void *user, json_t *data)
{
    struct job *job = user;
    struct cli *cli = job->remote.cli;
    bool is_end = strcmp(show_text(data, "kind"), "end") == 0;

    if (is_end)
        job->exit = exit_of(data);
    else
        learn_label(job, data);
    if (cli->is_json)
        cli_json(cli, json_incref(data));
    else if (is_end)
        tell_end(job, data);
    else
        tell_submitted(job, data);
    cli_flush(cli);
    return CLI_OK;
}

static void tell_going_on(const struct job *job)
{
    struct cli *cli = job->remote.cli;

    if (job->is_durable)
        cli_say(
            cli, "%s: goes on; 'detent jobs cancel %s --queue %s' ends it\n", job->label,
            job->label, job->slot);
    else
        cli_say(cli, "%s: goes on; detent stop ends it\n", job->label);
}

/* The first part comes soon; the end comes when it comes. */
static int follow(struct job *job)
{
    struct det_error error = { 0 };
    json_t *data = NULL;
    int parts = job->waits ? 2 : 1, r = 1;

    for (int i = 0; i < parts && r > 0; i++) {
        det_time deadline = i == 0 ? remote_within(PATIENCE) : DET_NEVER;

        r = daemon_client_next(job->remote.client, deadline, &data, &error);
        if (r <= 0)
            break;
        (void)take_part(job, data);
        json_decref(data);
    }
    if (r == 0)
        r = det_error_set(&error, DET_ERR_MALFORMED, "the answer ends too early");
    if (r == DET_ERR_CANCELLED && job->label[0])
        tell_going_on(job);
    if (r == DET_ERR_CLOSED && job->label[0] && job->is_durable)
        cli_say(
            job->remote.cli, "%s: is in the store, and runs with the next 'detent up'\n",
            job->label);
    return r < 0 ? remote_complain(&job->remote, r, &error) : job->exit;
}

static int submit(struct job *job)
{
    json_t *body = body_of(job);
    struct det_error error = { 0 };
    struct det_buffer path;
    int r;

    if (!body)
        return cli_no_memory(job->remote.cli);
    det_buffer_init(&path, job->remote.cli->allocator);
    det_buffer_append_text(&path, "/v1/");
    if (job->slot) {
        det_buffer_append_text(&path, "slots/");
        daemon_path_add(&path, job->slot);
        det_buffer_append_char(&path, '/');
    }
    det_buffer_append_text(&path, "submissions");
    r = daemon_client_ask(job->remote.client, "POST", daemon_path_text(&path), body, &error);
    det_buffer_deinit(&path);
    return r < 0 ? remote_complain(&job->remote, r, &error) : follow(job);
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
        cli_complain(cli, "there is no folder '%s'", folder);
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
    .summary = "give a job to a detent that is up",
    .about =
        "Runs a command under the detent that is up: in a slot, where it waits for its turn, or "
        "by\n"
        "itself. It gets the environment of detent up, and the current folder. No shell is used: "
        "write\n"
        "-- sh -c '...' if one is meant.\n"
        "\n"
        "With --wait it comes back at the end of the job, with the exit code of the job; 1 if it "
        "has\n"
        "none, since a signal or a timeout ended it, and 6 if it was refused or thrown out of the "
        "queue.\n"
        "\n"
        "    detent submit batch --wait --timeout 10m -- sh nightly.sh",
    .operand = { .form = "[SLOT] -- COMMAND...", .most = CLI_OPERANDS_ANY, .names = "slots" },
    .options = option_table,
    .run = run_command,
};
