/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* locks.c - `detent locks`: locked instances, their holders, and until when. */
#include "client/served_store.h"
#include "inspect/explain.h"
#include "terminal/args.h"

enum { OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "id", 0, false },     { "machine", 2, false }, { "owner", 0, false },
    { "lapses", 0, false }, { "fence", 1, true },
};

struct locks {
    struct cli_store *store;
    struct table table;
    struct det_json_writer json;
};

static void show(
    struct locks *locks, const struct det_machine *machine, const char *id,
    const struct det_store_lease *lease)
{
    struct cli_store *store = locks->store;
    char when[INSTANCE_WHEN_TEXT];

    if (store->cli->is_json) {
        instance_item_begin(&locks->json, "lock", machine->name, id);
        explain_lock_line(&locks->json, lease);
        det_json_close(&locks->json, '}');
        cli_print_line(store->cli, &locks->json);
        return;
    }
    table_add(&locks->table, CLI_BOLD, "%s", id);
    table_add(&locks->table, CLI_PLAIN, "%s", machine->name);
    table_add(&locks->table, CLI_PLAIN, "%s", lease->owner);
    table_add(
        &locks->table, CLI_PLAIN, "%s",
        instance_when(lease->expires_at, store->ops->now(store->store), when));
    table_add(&locks->table, CLI_PLAIN, "%llu", (unsigned long long)lease->token);
}

static int take(void *context, struct det_machine *machine, const char *id)
{
    struct locks *locks = context;
    struct det_store_lease lease = { .token = 0 };
    int r = explain_lock_of(locks->store, machine, id, &lease);

    if (r == DET_ERR_NOT_FOUND || (r == 0 && !lease.owner[0]))
        return CLI_OK; /* It has lapsed or was released. */
    if (r < 0)
        return instance_report_error(locks->store, machine->name, id, r);
    show(locks, machine, id, &lease);
    return CLI_OK;
}

static int take_machine(void *context, struct det_machine *machine)
{
    static const struct det_store_query query = { .is_locked = true };
    struct locks *locks = context;

    return cli_store_instances(locks->store, machine, &query, take, locks);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };
    struct cli_store store;
    struct locks locks = { .store = &store };
    int code;

    table_init(&locks.table, cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&locks.json, cli->allocator);
    code = served_store_open(cli, &request, &store);
    if (code == CLI_OK)
        code = cli_store_each(&store, take_machine, &locks);
    if (code == CLI_OK)
        table_show(&locks.table, "No instance is locked.");
    cli_store_close(&store);
    det_json_writer_deinit(&locks.json);
    table_deinit(&locks.table);
    return code;
}

extern const struct cli_command cli_command_locks;
const struct cli_command cli_command_locks = {
    .name = "locks",
    .summary = "show locked instances and their holders",
    .about = "Prints the held locks by machine and id. Processes that wait for a lock are not\n"
             "shown: they poll, and the store does not know them.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
