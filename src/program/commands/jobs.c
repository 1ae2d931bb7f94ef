/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - `detent jobs`: lists, retries and cancels jobs of durable slots.
 *
 *     jobs                    reads the store
 *     jobs retry|cancel ID    `detent up` serves the store --> sends it a request
 *                             otherwise ------------------> changes the store itself */
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "client/instance_change.h"
#include "client/served_store.h"
#include "inspect/job_print.h"
#include "inspect/print_tasks.h"
#include "store/jobs.h"
#include "terminal/args.h"

/* Rows of a table, which is kept in memory. JSON is limited only by --limit. */
#define ROWS_MAX  1000
#define PAGE_SIZE 256
#define WORDS     "retry cancel"
#define PATIENCE  (60 * DET_SECOND)
#define MADE_BY   "a 'detent up' with a durable slot"

enum {
    OPTION_QUEUE,
    OPTION_STATE,
    OPTION_ORDER,
    OPTION_LIMIT,
    OPTION_AFTER,
    OPTION_REASON,
    OPTION_STORE,
};

static const struct cli_option option_table[] = {
    [OPTION_QUEUE] = { "queue", 'q', "SLOT", NULL, "only jobs of this durable slot" },
    [OPTION_STATE] = { "state", 0, "STATE", "queued delayed running done failed",
                       "only jobs in this state" },
    [OPTION_ORDER] = { "order", 0, "ORDER", "newest oldest", "sort order (default newest)" },
    [OPTION_LIMIT] = { "limit", 'n', "N", NULL, "at most N jobs (default 1000 in a table)" },
    [OPTION_AFTER] = { "after", 0, "KEY", NULL, "only jobs after this key: the next page" },
    [OPTION_REASON] = { "reason", 'r', "TEXT", NULL,
                        "with cancel: record the reason in a waiting job" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "key", 1, true },      { "id", 0, false },    { "slot", 2, false },   { "state", 0, false },
    { "attempts", 4, true }, { "since", 3, false }, { "reason", 0, false },
};

/* Listing. */

struct listing {
    struct cli_store store;
    struct det_job_query query;
    struct table table;
    struct det_json_writer json;
    size_t count, limit, page; /* `limit` 0: none; `page`: rows of this page */
    uint64_t last;
    bool is_cut, has_running;
    det_time now;
};

static enum cli_style style_of(enum det_job_state state)
{
    switch (state) {
    case DET_JOB_QUEUED:
    case DET_JOB_DELAYED:
        return CLI_PLAIN;
    case DET_JOB_RUNNING:
        return CLI_BLUE;
    case DET_JOB_DONE:
        return CLI_GREEN;
    case DET_JOB_FAILED:
        return CLI_RED;
    }
    return CLI_PLAIN;
}

static void add_row(struct listing *listing, const struct det_job_row *row)
{
    struct table *table = &listing->table;
    char time[INSTANCE_TIME_TEXT];

    table_add(table, CLI_PLAIN, "%llu", (unsigned long long)row->key);
    table_add(table, CLI_BOLD, "%s", row->id);
    table_add(table, CLI_PLAIN, "%s", row->queue);
    table_add(
        table, row->is_damaged ? CLI_RED : style_of(row->state), "%s%s",
        det_jobs_state_name(row->state), row->is_damaged ? ", damaged" : "");
    table_add(table, CLI_PLAIN, "%u", row->attempts);
    table_add(
        table, CLI_PLAIN, "%s",
        instance_time(row->ended_at ? row->ended_at : row->submitted_at, time));
    table_add(table, CLI_PLAIN, "%s", row->reason);
}

static int take_row(void *context, const struct det_job_row *row)
{
    struct listing *listing = context;

    if (listing->limit && listing->count == listing->limit) {
        listing->is_cut = true;
        return 1;
    }
    listing->count++;
    listing->page++;
    det_assert(!listing->limit || listing->count <= listing->limit);
    listing->last = row->key;
    listing->has_running |= row->state == DET_JOB_RUNNING;
    if (listing->store.cli->is_json) {
        job_line(&listing->json, row);
        cli_print_line(listing->store.cli, &listing->json);
    } else {
        add_row(listing, row);
    }
    return cli_is_stopped(listing->store.cli) ? 1 : 0;
}

/* Reads in pages, so that a long list does not block writers. */
static int list_pages(struct listing *listing)
{
    struct det_store *store = listing->store.store;
    int r;

    listing->last = listing->query.after;
    listing->query.limit = PAGE_SIZE;
    do {
        listing->page = 0;
        listing->query.after = listing->last;
        r = store->ops->jobs->list(store, &listing->query, take_row, listing);
    } while (r == 0 && listing->page == PAGE_SIZE);
    return r < 0 ? cli_report_store_error(&listing->store, r, NULL) : CLI_OK;
}

static int list_all(struct listing *listing)
{
    struct cli *cli = listing->store.cli;
    int code = list_pages(listing);

    if (code != CLI_OK || cli->is_json)
        return code;
    table_show(&listing->table, "There are no such jobs.");
    if (listing->is_cut)
        cli_print_error(cli, "There are more: --after %llu\n", (unsigned long long)listing->last);
    /* Its process was killed, and its claim has not lapsed. */
    if (listing->has_running && cli_store_is_unserved(&listing->store))
        cli_print_error(cli, "No process serves this store: start 'detent up', or your program\n");
    return CLI_OK;
}

static bool read_query(struct cli *cli, const struct cli_args *args, struct listing *listing)
{
    uint64_t limit = cli->is_json ? 0 : ROWS_MAX;

    listing->query.queue = args->values[OPTION_QUEUE];
    listing->query.has_state = args->values[OPTION_STATE] != NULL;
    if (args->values[OPTION_STATE] &&
        det_jobs_state_find(args->values[OPTION_STATE], &listing->query.state) < 0)
        return false;
    listing->query.is_newest_first =
        !args->values[OPTION_ORDER] || strcmp(args->values[OPTION_ORDER], "newest") == 0;
    if (args->values[OPTION_AFTER] &&
        !cli_args_number(
            cli, "after", args->values[OPTION_AFTER], 0, INT64_MAX, &listing->query.after))
        return false;
    if (args->values[OPTION_LIMIT] &&
        !cli_args_number(cli, "limit", args->values[OPTION_LIMIT], 1, UINT32_MAX, &limit))
        return false;
    listing->limit = (size_t)limit;
    return true;
}

static int needs_jobs(const struct cli_store *store)
{
    if (store->ops->jobs)
        return CLI_OK;
    cli_report_error(store->cli, "%s: this kind of store does not support jobs", store->url);
    return CLI_USAGE;
}

static int list(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE], .made_by = MADE_BY };
    struct listing listing = { .count = 0 };
    int code;

    if (!read_query(cli, args, &listing))
        return CLI_USAGE;
    table_init(&listing.table, cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&listing.json, cli->allocator);
    code = served_store_open(cli, &request, &listing.store);
    if (code == CLI_OK)
        code = needs_jobs(&listing.store);
    if (code == CLI_OK)
        code = list_all(&listing);
    cli_store_close(&listing.store);
    det_json_writer_deinit(&listing.json);
    table_deinit(&listing.table);
    return code;
}

/* Changing a job. */

struct changing {
    struct cli_store store;
    struct daemon_client *client; /* of the `up` that serves the store; NULL: none */
    struct det_job_change change;
    /* Jobs found by the id. */
    size_t count;
    char queue[DET_JOB_NAME_MAX + 1], task[DET_JOB_NAME_MAX + 1];
    uint64_t key;
    enum det_job_state state;
};

static int take_found(void *context, const struct det_job_row *row)
{
    struct changing *changing = context;

    changing->count++;
    changing->key = row->key;
    changing->state = row->state;
    (void)det_text_copy(changing->queue, sizeof changing->queue, row->queue);
    (void)det_text_copy(changing->task, sizeof changing->task, row->task);
    return 0;
}

/* An id is unique only within its slot. */
static int find(struct changing *changing)
{
    const struct det_job_query query = { .queue = changing->change.queue,
                                         .id = changing->change.id,
                                         .limit = 2 };
    struct det_store *store = changing->store.store;
    int r;

    r = store->ops->jobs->list(store, &query, take_found, changing);
    if (r < 0)
        return cli_report_store_error(&changing->store, r, NULL);
    changing->change.queue = changing->queue;
    if (changing->count == 1)
        return CLI_OK;
    if (changing->count == 0)
        cli_report_error(
            changing->store.cli, "there is no job '%s'; 'detent jobs' lists all jobs",
            changing->change.id);
    else
        cli_report_error(
            changing->store.cli, "several slots have a job '%s'; select one with --queue",
            changing->change.id);
    return changing->count ? CLI_CONFLICT : CLI_NOT_FOUND;
}

static int ask(struct changing *changing, struct det_error *reterr)
{
    struct det_json_writer body = daemon_body(changing->client);
    const struct det_json_value *answer = NULL;
    struct det_buffer path;
    int r;

    if (changing->change.reason)
        det_json_text(&body, "reason", changing->change.reason);
    det_buffer_init(&path, changing->store.cli->allocator);
    det_buffer_append_text(&path, "/v1/slots/");
    daemon_path_add(&path, changing->queue);
    det_buffer_append_text(&path, "/submissions/");
    daemon_path_add(&path, changing->change.id);
    det_buffer_append_text(&path, changing->change.verb == DET_JOB_RETRY ? "/retry" : "/cancel");
    r = daemon_client_call(
        changing->client, "POST", daemon_path_text(&path), &body, PATIENCE, &answer, reterr);
    det_buffer_deinit(&path);
    return r;
}

static int refuse(struct changing *changing)
{
    struct cli *cli = changing->store.cli;
    const char *state = det_jobs_state_name(changing->state);

    if (changing->change.verb == DET_JOB_RETRY)
        cli_report_error(
            cli, "%s is %s; only failed jobs can be retried", changing->change.id, state);
    else if (changing->state == DET_JOB_RUNNING)
        cli_report_error(
            cli, "%s runs in another process; stop it there: detent stop %s#%llu",
            changing->change.id, changing->task, (unsigned long long)changing->key);
    else
        cli_report_error(cli, "%s is already %s", changing->change.id, state);
    return CLI_REFUSED;
}

static void report(const struct changing *changing)
{
    bool is_retry = changing->change.verb == DET_JOB_RETRY;
    struct cli *cli = changing->store.cli;
    struct det_json_writer json;

    if (!cli->is_json) {
        cli_print(
            cli, "%s: %s\n", changing->change.id,
            is_retry                                                 ? "will be retried"
            : changing->client && changing->state == DET_JOB_RUNNING ? "is being stopped"
                                                                     : "is cancelled");
        return;
    }
    cli_json_begin(cli, &json, is_retry ? "retried" : "cancelled");
    det_json_text(&json, "queue", changing->queue);
    det_json_text(&json, "id", changing->change.id);
    cli_json_end(cli, &json);
}

static int change(struct changing *changing)
{
    struct det_store *store = changing->store.store;
    struct det_error error = { 0 };
    int code = find(changing), r;

    if (code != CLI_OK)
        return code;
    if (changing->client)
        r = ask(changing, &error);
    else
        r = store->ops->jobs->change(store, &changing->change);
    if (r == DET_ERR_NOT_FOUND)
        return refuse(changing);
    if (r < 0)
        return cli_report_store_error(&changing->store, r, &error);
    report(changing);
    return CLI_OK;
}

static int change_one(struct cli *cli, const struct cli_args *args)
{
    struct changing changing = {
        .change = { .verb =
                        strcmp(args->operands[0], "retry") == 0 ? DET_JOB_RETRY : DET_JOB_CANCEL,
                    .queue = args->values[OPTION_QUEUE],
                    .id = args->operands[1],
                    .reason = args->values[OPTION_REASON] },
    };
    struct store_request request = { .url = args->values[OPTION_STORE],
                                     .is_writing = true,
                                     .served_for = "jobs",
                                     .made_by = MADE_BY };
    struct det_error error = { 0 };
    int code, r = 0;

    if (changing.change.verb == DET_JOB_CANCEL && !changing.change.reason)
        changing.change.reason = "cancelled";
    code = served_store_open(cli, &request, &changing.store);
    if (code == CLI_OK && changing.store.is_served)
        r = served_store_connect(&changing.store, &changing.client, &error);
    if (r < 0)
        code = cli_report_store_error(&changing.store, r, &error);
    if (code == CLI_OK)
        code = needs_jobs(&changing.store);
    if (code == CLI_OK)
        code = change(&changing);
    daemon_client_close(changing.client);
    cli_store_close(&changing.store);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    char hint[CLI_CHOICE_TEXT];

    if (args->operand_count == 0)
        return list(cli, args);
    if (!cli_choice_has(WORDS, args->operands[0])) {
        cli_report_error(
            cli, "unknown verb '%s': use retry or cancel%s", args->operands[0],
            cli_choice_hint(WORDS, args->operands[0], hint));
        return CLI_USAGE;
    }
    if (args->operand_count == 1) {
        cli_report_error(cli, "jobs %s needs the id of a job", args->operands[0]);
        return CLI_USAGE;
    }
    return change_one(cli, args);
}

extern const struct cli_command cli_command_jobs;
const struct cli_command cli_command_jobs = {
    .name = "jobs",
    .summary = "list, retry or cancel jobs of durable slots",
    .about = "Prints one line per job in the store, in the order of submission; jobs that have\n"
             "ended are kept for seven days.\n"
             "\n"
             "    detent jobs --state failed\n"
             "    detent jobs retry nightly-7\n"
             "\n"
             "'jobs retry' puts a failed job at the end of its queue again, with all its\n"
             "previous attempts. 'jobs cancel' removes a job that waits, or whose process is\n"
             "gone; it stops a running job if the detent up of this project runs it.",
    .operand = { .form = "[retry|cancel ID]", .least = 0, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
