/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* start.c - `detent start`: starts a new instance in a store. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/memory.h"
#include "client/follow.h"
#include "client/instance_change.h"
#include "client/served_store.h"
#include "store/store.h"
#include "terminal/args.h"

enum { OPTION_DATA, OPTION_ID, OPTION_WAIT, OPTION_TIMEOUT, OPTION_SUCCESS, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_DATA] = { "data", 'd', "JSON", NULL, "initial data; @FILE reads a file" },
    [OPTION_ID] = { "id", 0, "EVENT_ID", NULL,
                    "event id; started again with it, the instance starts once" },
    [OPTION_WAIT] = { "wait", 'w', NULL, NULL,
                      "wait until the instance reaches a final state or stops" },
    [OPTION_TIMEOUT] = { "timeout", 't', "TIME", NULL, "with --wait: give up after this long" },
    [OPTION_SUCCESS] = { "success", 0, "STATES", NULL,
                         "with --wait: exit with 1 in final states other than these" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

struct starting {
    const struct cli_args *args;
    struct store_request request;
    const char *machine; /* name; NULL: that of the file */
    const char *id;
    det_time timeout;
    struct act act;
    void *data; /* initial data, once it was read */
    size_t size;
};

/* Once: standard input can be read only once. */
static int read_data(struct starting *starting, const struct det_machine *machine)
{
    const struct det_record *record = det_machine_data(machine);
    struct cli *cli = starting->act.store.cli;

    if (starting->data)
        return CLI_OK;
    starting->size = record->size;
    starting->data = det_alloc_zero(cli->allocator, record->size);
    if (!starting->data)
        return cli_no_memory(cli);
    starting->act.option = "--data";
    return act_read_json(
        &starting->act, machine->name, starting->args->values[OPTION_DATA], record,
        DET_TEXT_PARTIAL, starting->data);
}

/* There is no store yet: the definition is in a file. */
static int find_definition(void *context, struct cli_store *store)
{
    struct starting *starting = context;
    struct det_machine *machine;
    int code = cli_store_definition(store, starting->machine, &machine);

    return code == CLI_OK ? read_data(starting, machine) : code;
}

static int start(struct starting *starting)
{
    const char *const *values = starting->args->values;
    struct act *act = &starting->act;
    struct det_error error = { 0 };
    struct det_machine *machine;
    struct det_sent sent;
    int code, r;

    code = starting->machine ? cli_store_machine(&act->store, starting->machine, &machine)
                             : cli_store_only_machine(&act->store, &machine);
    if (code == CLI_OK)
        code = read_data(starting, machine);
    if (code != CLI_OK)
        return code;
    act->machine = machine;
    act->id = starting->id;
    r = act_start(act, starting->data, values[OPTION_ID], &sent, &error);
    /* The id belongs to another event, not to the start. */
    if (r == 0 && sent.is_duplicate && sent.sequence != 0)
        r = DET_ERR_EXISTS;
    if (r < 0)
        return act_report_error(act, r, &error);
    act_report(act, NULL, &sent);
    if (!values[OPTION_WAIT])
        act_report_pending(act);
    return CLI_OK;
}

/* Returns true if the state is one of the words, which are separated by commas. */
static bool is_listed(const char *words, const char *state)
{
    size_t length = strlen(state);

    for (const char *word = words; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (strncmp(word, state, length) == 0 && (word[length] == ',' || word[length] == '\0'))
            return true;
    }
    return false;
}

/* Returns the exit code for the final state. */
static int exit_of(const struct starting *starting, const struct instance *instance)
{
    const char *success = starting->args->values[OPTION_SUCCESS];

    if (success)
        return is_listed(success, instance_state(instance)) ? CLI_OK : CLI_FAILURE;
    return instance->loaded.head.is_stopped ? CLI_FAILURE : CLI_OK;
}

/* Opens the store for reading only: the program that serves it may need it for itself. */
static int wait_for_end(struct cli *cli, const struct starting *starting)
{
    struct store_request request = { .url = starting->request.url,
                                     .machine = starting->request.machine };
    struct instance instance;
    struct cli_store store;
    int code;

    if (!request.machine)
        request.machine = starting->machine;
    code = served_store_open(cli, &request, &store);
    if (code == CLI_OK)
        code = instance_find(&store, starting->id, &instance);
    if (code == CLI_OK) {
        struct follow follow = { .instance = &instance, .is_shown = true };

        code = follow_until_end(&follow, starting->timeout);
        if (code == CLI_OK)
            code = exit_of(starting, &instance);
        else if (code == CLI_TIMEOUT)
            cli_report_error(cli, "%s is still %s", starting->id, instance_state(&instance));
        instance_close(&instance);
    }
    cli_store_close(&store);
    return code;
}

static bool check_id(struct cli *cli, const char *what, const char *id)
{
    if (det_store_id_is_valid(id))
        return true;
    cli_report_error(cli, "an %s has 1 to %d characters of A-Z a-z 0-9 . _ : -", what, DET_ID_MAX);
    return false;
}

static bool read_words(struct cli *cli, struct starting *starting)
{
    const struct cli_args *args = starting->args;
    const char *machine = args->operands[0], *event_id = args->values[OPTION_ID];
    bool waits = args->values[OPTION_WAIT] != NULL;

    if (!check_id(cli, "id", args->operands[1]) ||
        (event_id && !check_id(cli, "event id", event_id)))
        return false;
    if (!waits && (args->values[OPTION_TIMEOUT] || args->values[OPTION_SUCCESS])) {
        cli_report_error(cli, "--timeout and --success need --wait");
        return false;
    }
    if (cli_has_suffix(machine, CLI_SPEC_SUFFIX))
        starting->request.machine = machine;
    else
        starting->machine = machine;
    starting->id = args->operands[1];
    starting->timeout = DET_NEVER;
    return !args->values[OPTION_TIMEOUT] ||
           cli_args_span(cli, "timeout", args->values[OPTION_TIMEOUT], 0, &starting->timeout);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct starting starting = { .args = args };
    int code;

    starting.request = (struct store_request){ .url = args->values[OPTION_STORE],
                                               .may_make = true,
                                               .validate = find_definition,
                                               .validate_context = &starting };
    if (!read_words(cli, &starting))
        return CLI_USAGE;
    code = act_open(cli, &starting.request, &starting.act);
    if (code == CLI_OK)
        code = start(&starting);
    act_close(&starting.act);
    det_free(cli->allocator, starting.data, starting.size);
    if (code != CLI_OK || !args->values[OPTION_WAIT])
        return code;
    cli_flush(cli);
    return wait_for_end(cli, &starting);
}

extern const struct cli_command cli_command_start;
const struct cli_command cli_command_start = {
    .name = "start",
    .summary = "start a new instance of a machine",
    .about = "Starts an instance in the initial state of its machine, and returns when it is on\n"
             "the disk. MACHINE is a name that the project or the store knows, or a .fsm file.\n"
             "The store is created if it does not exist. Omitted fields of the data are zero.\n"
             "\n"
             "    detent start order.fsm o-1 --store sqlite:orders.db --data '{\"total\": 42}'\n"
             "\n"
             "With --wait it prints the events of the instance, and exits with 0 in a final\n"
             "state, 1 if the instance was stopped, 5 at the timeout. Without --id, an existing\n"
             "instance is exit code 4.",
    .operand = { .form = "MACHINE ID", .least = 2, .most = 2, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
