/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_care.c - `detent store info`, `verify`, `compact` and `backup`. */
#include <detent/tool/store.h>
#include <string.h>

#include "base/memory.h"
#include "commands/store_verbs.h"
#include "inspect/stored_instance.h"
#include "terminal/table.h"
#include "json/writer.h"

int store_unsupported(struct cli_store *store, const char *what, const char *remedy)
{
    cli_report_error(
        store->cli, "%s does not support 'detent store %s'; %s", store->url, what, remedy);
    return CLI_USAGE;
}

/* Verifying. */

struct check {
    struct cli *cli;
    struct det_json_writer json;
    uint64_t findings;
    uint64_t total;
};

static void print_finding(struct check *check, const struct det_store_finding *row)
{
    struct cli *cli = check->cli;

    cli_progress_end(cli);
    if (cli->is_json) {
        instance_item_begin(&check->json, "finding", row->machine, row->id);
        det_json_number(&check->json, "sequence", row->sequence);
        det_json_text(&check->json, "text", row->text);
        det_json_close(&check->json, '}');
        cli_print_line(cli, &check->json);
        return;
    }
    if (row->id)
        cli_print_in(cli, CLI_BOLD, "%s %s", row->machine ? row->machine : "", row->id);
    if (row->sequence)
        cli_print(cli, ", event %llu", (unsigned long long)row->sequence);
    cli_print(cli, "%s%s\n", row->id || row->sequence ? ": " : "", row->text);
}

static int take_finding(void *context, const struct det_store_finding *row)
{
    struct check *check = context;

    check->findings++;
    print_finding(check, row);
    return cli_is_stopped(check->cli) ? 1 : 0;
}

static void take_progress(void *context, uint64_t done, uint64_t total)
{
    struct check *check = context;

    check->total = total;
    cli_progress(check->cli, "verifying", done, total);
}

int store_verify(struct cli_store *store, const char *path)
{
    struct check check = { .cli = store->cli };
    int r;

    (void)path;
    if (!store->ops->check)
        return store_unsupported(store, "verify", "use the checks of its server");
    det_json_writer_init(&check.json, store->cli->allocator);
    r = store->ops->check(store->store, take_finding, take_progress, &check);
    cli_progress_end(store->cli);
    det_json_writer_deinit(&check.json);
    if (r < 0)
        return cli_report_store_error(store, r, NULL);
    if (r > 0 || cli_is_stopped(store->cli))
        return CLI_INTERRUPTED;
    if (check.findings)
        cli_print_error(
            store->cli, "%s: %llu finding%s in %llu instance%s; nothing was changed; %s\n",
            store->url, STORE_COUNT(check.findings), STORE_COUNT(check.total),
            store->ops->repair ? "'detent store repair' restores what it can; else take the newest "
                                 "backup that has none"
                               : "take the newest backup that has none");
    else
        cli_print_error(
            store->cli, "%s: %llu instance%s verified: ok\n", store->url, STORE_COUNT(check.total));
    if (store->store->advice)
        cli_print_error(store->cli, "%s: %s\n", store->url, store->store->advice);
    return check.findings ? CLI_FAILURE : CLI_OK;
}

/* Contents. */

static const struct table_column columns[] = {
    { "machine", 0, false },
    { "version", 1, true },
    { "state", 0, false },
    { "instances", 0, true },
};

struct info {
    struct cli_store *store;
    struct table table;
    struct det_json_writer json;
    uint64_t *counts; /* by state, and the stopped ones */
    uint64_t total;
};

static int count_row(void *context, const struct det_store_listed *row)
{
    struct info *info = context;

    info->counts[row->state]++;
    info->total++;
    return cli_is_stopped(info->store->cli) ? 1 : 0;
}

static void add_rows(struct info *info, const struct det_machine *machine)
{
    bool is_first = true;

    for (size_t i = 0; i < machine->state_count; i++) {
        if (!info->counts[i])
            continue;
        table_add(&info->table, CLI_BOLD, "%s", is_first ? machine->name : "");
        if (is_first)
            table_add(&info->table, CLI_PLAIN, "%u", machine->version);
        else
            table_add(&info->table, CLI_PLAIN, "%s", "");
        table_add(&info->table, CLI_PLAIN, "%s", machine->states[i].name);
        table_add(&info->table, CLI_PLAIN, "%llu", (unsigned long long)info->counts[i]);
        is_first = false;
    }
}

static void add_members(struct info *info, const struct det_machine *machine)
{
    det_json_open(&info->json, NULL, '{');
    det_json_text(&info->json, "machine", machine->name);
    det_json_number(&info->json, "version", machine->version);
    det_json_open(&info->json, "states", '{');
    for (size_t i = 0; i < machine->state_count; i++)
        det_json_number(&info->json, machine->states[i].name, info->counts[i]);
    det_json_close(&info->json, '}');
    det_json_close(&info->json, '}');
}

static int add_machine(void *context, struct det_machine *machine)
{
    struct info *info = context;
    const struct cli_store *store = info->store;
    int r;

    info->counts = DET_NEW_ARRAY(store->cli->allocator, machine->state_count, uint64_t);
    if (!info->counts)
        return cli_no_memory(store->cli);
    r = store->ops->list(store->store, machine, &(struct det_store_query){ 0 }, count_row, info);
    if (r == 0 && store->cli->is_json)
        add_members(info, machine);
    else if (r == 0)
        add_rows(info, machine);
    DET_DELETE_ARRAY(store->cli->allocator, info->counts, machine->state_count);
    if (r > 0)
        return CLI_INTERRUPTED;
    return r < 0 ? cli_report_store_error(info->store, r, NULL) : CLI_OK;
}

static void print_info(struct info *info)
{
    struct cli *cli = info->store->cli;

    if (cli->is_json) {
        cli_print_line(cli, &info->json);
        return;
    }
    cli_print(
        cli, "%s\nidentity %s, schema %u, %llu instance%s\n", info->store->url,
        det_store_identity(info->store->store), info->store->store->schema,
        STORE_COUNT(info->total));
    if (table_rows(&info->table)) {
        cli_print(cli, "\n");
        table_print(&info->table, 0);
    }
}

int store_info(struct cli_store *store, const char *path)
{
    struct info info = { .store = store };
    int code;

    (void)path;
    table_init(&info.table, store->cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&info.json, store->cli->allocator);
    det_json_open(&info.json, NULL, '{');
    det_json_text(&info.json, "type", "store");
    det_json_text(&info.json, "store", store->url);
    det_json_text(&info.json, "identity", det_store_identity(store->store));
    det_json_number(&info.json, "schema", store->store->schema);
    det_json_open(&info.json, "machines", '[');
    code = cli_store_each(store, add_machine, &info);
    det_json_close(&info.json, ']');
    det_json_number(&info.json, "instances", info.total);
    det_json_close(&info.json, '}');
    if (code == CLI_OK)
        print_info(&info);
    det_json_writer_deinit(&info.json);
    table_deinit(&info.table);
    return code;
}

/* Compact and backup. */

int store_compact(struct cli_store *store, const char *path)
{
    struct det_error error = { 0 };
    int r;

    (void)path;
    if (!store->ops->compact)
        return store_unsupported(store, "compact", "use VACUUM of its server");
    r = store->ops->compact(store->store, &error);
    if (r < 0)
        return cli_report_store_error(store, r, &error);
    cli_print_error(store->cli, "%s: compacted\n", store->url);
    return CLI_OK;
}

/* Accepts the URL that the copy will have. */
static int read_path(struct cli_store *store, const char **path)
{
    static const char scheme[] = "sqlite:";

    if (strncmp(*path, scheme, sizeof scheme - 1) == 0)
        *path += sizeof scheme - 1;
    if (!strstr(*path, "://") && strcmp(*path, "memory:") != 0)
        return CLI_OK;
    cli_report_error(
        store->cli,
        "a backup is a file, not '%s'; use 'detent store export' to copy to another kind of store",
        *path);
    return CLI_USAGE;
}

int store_backup(struct cli_store *store, const char *path)
{
    struct det_error error = { 0 };
    int code, r;

    code = read_path(store, &path);
    if (code != CLI_OK)
        return code;
    if (!store->ops->backup)
        return store_unsupported(store, "backup", "use pg_dump or 'detent store export'");
    r = store->ops->backup(store->store, path, &error);
    if (r < 0)
        return cli_report_store_error(store, r, &error);
    cli_print_error(store->cli, "%s: copied to %s\n", store->url, path);
    return CLI_OK;
}
