/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* retry.c - `detent retry`: retries dead letters. */
#include <string.h>

#include "client/instance_change.h"
#include "client/served_store.h"

enum { OPTION_LIST, OPTION_MACHINE, OPTION_STORE };

static const struct cli_option option_table[] = {
    [OPTION_LIST] = { "list", 'l', NULL, NULL,
                      "only list dead letters, of one instance or of all" },
    [OPTION_MACHINE] = STORE_OPTION_MACHINE,
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "key", 0, false },     { "effect or timer", 0, false },
    { "attempts", 2, true }, { "last error", 0, false },
    { "asked", 1, true },
};

struct letters {
    struct cli_store store;
    struct table table;
    struct det_json_writer json;
};

static void show_letter(
    struct letters *letters, const struct instance *instance, const struct det_store_effect *row)
{
    struct cli *cli = letters->store.cli;
    char key[INSTANCE_KEY_TEXT], why[INSTANCE_WHY_TEXT], when[INSTANCE_WHEN_TEXT];

    if (cli->is_json) {
        instance_item_begin(&letters->json, "effect", instance->machine->name, instance->id);
        instance_effect_line(
            &letters->json, letters->store.store, instance->machine, instance->id, row);
        det_json_close(&letters->json, '}');
        cli_print_line(cli, &letters->json);
        return;
    }
    table_add(
        &letters->table, CLI_BOLD, "%s",
        instance_key(letters->store.store, instance->machine, instance->id, row, key));
    table_add(&letters->table, CLI_PLAIN, "%s", instance->machine->effects[row->effect].name);
    table_add(&letters->table, CLI_PLAIN, "%u", row->attempts);
    table_add(&letters->table, CLI_RED, "%s", instance_why(row->last_error, row->reason, why));
    table_add(&letters->table, CLI_PLAIN, "%s", instance_when(row->at, instance->now, when));
}

static void show_timer(
    struct letters *letters, const struct instance *instance, const struct det_store_timer *row)
{
    const struct det_machine *machine = instance->machine;
    const char *name = instance_timer_name(machine, row->timer);
    char key[INSTANCE_KEY_TEXT], why[INSTANCE_WHY_TEXT], when[INSTANCE_WHEN_TEXT];

    if (letters->store.cli->is_json) {
        instance_item_begin(&letters->json, "timer", machine->name, instance->id);
        instance_dead_timer_line(&letters->json, machine, instance->id, row);
        det_json_close(&letters->json, '}');
        cli_print_line(letters->store.cli, &letters->json);
        return;
    }
    table_add(&letters->table, CLI_BOLD, "%s", instance_timer_key(machine, instance->id, row, key));
    table_add(&letters->table, CLI_PLAIN, "%s", *name ? name : machine->events[row->event].name);
    table_add(&letters->table, CLI_PLAIN, "%u", row->attempts);
    table_add(&letters->table, CLI_RED, "%s", instance_why(row->last_error, row->reason, why));
    table_add(&letters->table, CLI_PLAIN, "%s", instance_when(row->due, instance->now, when));
}

static void show_letters(struct letters *letters, const struct instance *instance)
{
    for (const struct instance_timer *t = instance->timers; t; t = t->next) {
        if (t->row.is_dead)
            show_timer(letters, instance, &t->row);
    }
    for (const struct instance_effect *e = instance->effects; e; e = e->next) {
        if (e->row.is_dead)
            show_letter(letters, instance, &e->row);
    }
}

static int show_instance(void *context, struct det_machine *machine, const char *id)
{
    struct letters *letters = context;
    struct instance instance;
    int code = instance_open(&letters->store, machine, id, &instance);

    if (code != CLI_OK)
        return code;
    show_letters(letters, &instance);
    instance_close(&instance);
    return CLI_OK;
}

static int show_machine(void *context, struct det_machine *machine)
{
    static const struct det_store_query query = { .has_dead = true };
    struct letters *letters = context;

    return cli_store_instances(&letters->store, machine, &query, show_instance, letters);
}

static int show(struct letters *letters, const struct cli_args *args)
{
    struct det_machine *machine;
    int code;

    if (args->operand_count == 0) {
        code = cli_store_each(&letters->store, show_machine, letters);
    } else {
        code = cli_store_find(&letters->store, args->operands[0], &machine);
        if (code == CLI_OK)
            code = show_instance(letters, machine, args->operands[0]);
    }
    if (code == CLI_OK)
        table_show(&letters->table, "There are no dead letters.");
    return code;
}

static int list(struct cli *cli, const struct cli_args *args, const struct store_request *request)
{
    struct letters letters;
    int code;

    table_init(&letters.table, cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&letters.json, cli->allocator);
    code = served_store_open(cli, request, &letters.store);
    if (code == CLI_OK)
        code = show(&letters, args);
    cli_store_close(&letters.store);
    det_json_writer_deinit(&letters.json);
    table_deinit(&letters.table);
    return code;
}

static int revive(struct act *act, const char *effect, const char *key)
{
    struct cli *cli = act->store.cli;
    struct det_error error = { 0 };
    struct det_json_writer json;
    int r;

    r = act_retry(act, key, &error);
    if (r < 0)
        return cli_report_store_error(&act->store, r, &error);
    if (!cli->is_json) {
        cli_print(cli, "%s: %s will be retried\n", key, effect);
        return CLI_OK;
    }
    det_json_writer_init(&json, cli->allocator);
    instance_item_begin(&json, "retried", act->machine->name, act->id);
    det_json_text(&json, "effect", effect);
    det_json_text(&json, "key", key);
    cli_json_end(cli, &json);
    return CLI_OK;
}

/* A key may be shortened to the part after the id: 3/0. */
static bool matches_key(const char *key, const char *wanted)
{
    size_t length = strlen(key), tail = wanted ? strlen(wanted) : 0;

    return !wanted || strcmp(key, wanted) == 0 ||
           (tail < length && key[length - tail - 1] == '/' &&
            strcmp(key + length - tail, wanted) == 0);
}

/* Checks that a key matches at most one dead letter, as a full key does. */
static int check_key(struct act *act, const struct instance *instance, const char *wanted)
{
    char key[INSTANCE_KEY_TEXT];
    struct det_buffer keys;
    size_t count = 0;

    det_buffer_init(&keys, act->store.cli->allocator);
    for (const struct instance_effect *e = instance->effects; wanted && e; e = e->next) {
        if (!e->row.is_dead ||
            !matches_key(
                instance_key(act->store.store, act->machine, act->id, &e->row, key), wanted))
            continue;
        det_buffer_format(&keys, "%s%s", count++ ? ", " : "", key);
    }
    if (count > 1)
        cli_report_error(
            act->store.cli, "'%s' matches %zu dead letters of %s; use a full key: %s", wanted,
            count, act->id, det_buffer_text(&keys));
    det_buffer_deinit(&keys);
    return count > 1 ? CLI_CONFLICT : CLI_OK;
}

static int retry_all(struct act *act, const struct instance *instance, const char *wanted)
{
    char key[INSTANCE_KEY_TEXT];
    int code = check_key(act, instance, wanted);
    size_t count = 0;

    for (const struct instance_timer *t = instance->timers; t && code == CLI_OK; t = t->next) {
        const char *name = instance_timer_name(act->machine, t->row.timer);

        if (!t->row.is_dead ||
            !matches_key(instance_timer_key(act->machine, act->id, &t->row, key), wanted))
            continue;
        code = revive(act, *name ? name : act->machine->events[t->row.event].name, key);
        count++;
    }
    for (const struct instance_effect *e = instance->effects; e && code == CLI_OK; e = e->next) {
        if (!e->row.is_dead ||
            !matches_key(
                instance_key(act->store.store, act->machine, act->id, &e->row, key), wanted))
            continue;
        code = revive(act, act->machine->effects[e->row.effect].name, key);
        count++;
    }
    if (code != CLI_OK || count)
        return code;
    if (wanted)
        cli_report_error(
            act->store.cli, "%s has no dead letter '%s'; 'detent retry --list %s' lists them",
            act->id, wanted, act->id);
    else
        cli_report_error(act->store.cli, "%s has no dead letters", act->id);
    return CLI_NOT_FOUND;
}

static int retry(struct cli *cli, const struct cli_args *args, const struct store_request *request)
{
    const char *wanted = args->operand_count > 1 ? args->operands[1] : NULL;
    struct instance instance;
    struct act act;
    int code = act_open(cli, request, &act);

    act.id = args->operands[0];
    if (code == CLI_OK)
        code = instance_find(&act.store, act.id, &instance);
    if (code == CLI_OK) {
        act.machine = instance.machine;
        code = retry_all(&act, &instance, wanted);
        instance_close(&instance);
    }
    act_close(&act);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct store_request request = { .url = args->values[OPTION_STORE],
                                           .machine = args->values[OPTION_MACHINE] };

    if (args->values[OPTION_LIST] && args->operand_count <= 1)
        return list(cli, args, &request);
    if (args->values[OPTION_LIST] || args->operand_count == 0) {
        cli_report_error(cli, "retry needs the id of an instance, or --list");
        return CLI_USAGE;
    }
    return retry(cli, args, &request);
}

extern const struct cli_command cli_command_retry;
const struct cli_command cli_command_retry = {
    .name = "retry",
    .summary = "retry dead letters: effects and timers that failed too often",
    .about = "An effect or timer that failed too often is a dead letter. This command makes it\n"
             "due again, with the same key; a program that serves the store runs it. Without a\n"
             "key it retries all dead letters of the instance. With --list it only lists them,\n"
             "of one instance or of the whole store.",
    .operand = { .form = "[ID [KEY]]", .least = 0, .most = 2 },
    .options = option_table,
    .run = run_command,
};
