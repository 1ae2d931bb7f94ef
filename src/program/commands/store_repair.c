/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_repair.c - `detent store repair`: restores damaged heads of instances if their checksums
 * prove the result. `store verify` finds the damage. */
#include <string.h>

#include <detent/runtime.h>

#include "commands/store_verbs.h"
#include "inspect/stored_instance.h"
#include "json/writer.h"

/* A damaged instance. Its findings follow each other, and the first one counts. */
struct damage {
    struct damage *next;
    const char *machine, *id; /* NULL: not about an instance */
    const char *text;
};

struct repair {
    struct cli_store *store;
    struct det_runtime *runtime;
    struct det_json_writer json;
    struct damage *first, *last;
    uint64_t repaired, failed;
    bool is_dry; /* the store is open for reading */
};

/* `why` it is not restored; NULL: it is, or can be. */
static void report_result(
    struct repair *repair, const char *machine, const char *id, const char *why)
{
    struct cli *cli = repair->store->cli;

    if (why)
        repair->failed++;
    else
        repair->repaired++;
    if (cli->is_json) {
        instance_item_begin(&repair->json, "repair", machine, id);
        det_json_bool(&repair->json, "ok", !why);
        det_json_bool(&repair->json, "dry_run", repair->is_dry);
        det_json_text(&repair->json, "text", why);
        det_json_close(&repair->json, '}');
        cli_print_line(cli, &repair->json);
    } else if (why) {
        cli_print(cli, "%s\n", why);
    } else {
        cli_print_in(cli, CLI_BOLD, "%s %s", machine, id);
        cli_print(cli, ": its head %s restored\n", repair->is_dry ? "can be" : "is");
    }
}

/* `found` is the known damage; NULL: none is known. */
static int repair_instance(
    struct repair *repair, const struct det_machine *machine, const char *id, const char *found)
{
    struct cli *cli = repair->store->cli;
    struct det_error error = { 0 };
    int r;

    r = det_runtime_repair(repair->runtime, machine, id, &error);
    if (r == DET_ERR_NO_MEMORY)
        return cli_no_memory(cli);
    if (r == DET_ERR_EXISTS && !found) {
        cli_print_error(
            cli, "the head of %s '%s' is not damaged; there is nothing to repair\n", machine->name,
            id);
        return CLI_OK;
    }
    if (r == DET_ERR_EXISTS)
        (void)det_error_set(
            &error, r, "%s %s cannot be repaired: %s; only a head can be derived again",
            machine->name, id, found);
    if (r == 0 || (r == DET_ERR_READ_ONLY && repair->is_dry))
        report_result(repair, machine->name, id, NULL);
    else
        report_result(repair, machine->name, id, error.text);
    return CLI_OK;
}

static int repair_one(struct repair *repair, const char *id)
{
    struct det_machine *machine;
    int code = cli_store_find(repair->store, id, &machine);

    return code == CLI_OK ? repair_instance(repair, machine, id, NULL) : code;
}

/* The damage, in the order in which it is found. */

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool copy_text(struct det_arena *arena, const char *text, const char **ret)
{
    *ret = text ? det_arena_copy(arena, text) : NULL;
    return !text || *ret;
}

static bool is_selected(const struct repair *repair, const struct det_store_finding *row)
{
    const char *wanted = repair->store->wanted;
    const struct damage *last = repair->last;

    if (wanted && !is_same(wanted, row->machine))
        return false;
    return !last || !row->id || !is_same(last->id, row->id) ||
           !is_same(last->machine, row->machine);
}

static int take_finding(void *context, const struct det_store_finding *row)
{
    struct repair *repair = context;
    struct det_arena *arena = &repair->store->arena;
    struct damage *damage;

    if (cli_is_stopped(repair->store->cli))
        return 1;
    if (!is_selected(repair, row))
        return 0;
    damage = det_arena_alloc(arena, sizeof *damage);
    if (!damage || !copy_text(arena, row->machine, &damage->machine) ||
        !copy_text(arena, row->id, &damage->id))
        return DET_ERR_NO_MEMORY;
    damage->text = row->sequence
                       ? det_arena_format(
                             arena, "event %llu: %s", (unsigned long long)row->sequence, row->text)
                       : det_arena_copy(arena, row->text);
    if (!damage->text)
        return DET_ERR_NO_MEMORY;
    *(repair->last ? &repair->last->next : &repair->first) = damage;
    repair->last = damage;
    return 0;
}

static void take_progress(void *context, uint64_t done, uint64_t total)
{
    const struct repair *repair = context;

    cli_progress(repair->store->cli, "verifying", done, total);
}

static int find_damages(struct repair *repair)
{
    struct cli_store *store = repair->store;
    int r;

    r = store->ops->check(store->store, take_finding, take_progress, repair);
    cli_progress_end(store->cli);
    if (r < 0)
        return cli_report_store_error(store, r, NULL);
    return r > 0 ? CLI_INTERRUPTED : CLI_OK;
}

static int repair_damage(struct repair *repair, const struct damage *damage)
{
    struct det_machine *machine;
    int code;

    if (!damage->machine || !damage->id) {
        report_result(repair, damage->machine, damage->id, damage->text);
        return CLI_OK;
    }
    code = cli_store_machine(repair->store, damage->machine, &machine);
    return code == CLI_OK ? repair_instance(repair, machine, damage->id, damage->text) : code;
}

static int repair_all(struct repair *repair)
{
    struct cli_store *store = repair->store;
    struct det_machine *machine;
    int code = CLI_OK;

    if (store->wanted)
        code = cli_store_machine(store, store->wanted, &machine);
    if (code == CLI_OK)
        code = find_damages(repair);
    for (const struct damage *d = repair->first; code == CLI_OK && d; d = d->next)
        code = cli_is_stopped(store->cli) ? CLI_INTERRUPTED : repair_damage(repair, d);
    if (code == CLI_OK && !repair->first)
        cli_print_error(store->cli, "%s: nothing is damaged\n", store->url);
    return code;
}

static void summarize(const struct repair *repair)
{
    struct cli *cli = repair->store->cli;

    if (repair->repaired + repair->failed == 0)
        return;
    cli_print_error(
        cli, "%s: %llu instance%s %srestored", repair->store->url, STORE_COUNT(repair->repaired),
        repair->is_dry ? "can be " : "");
    if (repair->failed)
        cli_print_error(cli, ", %llu not", (unsigned long long)repair->failed);
    cli_print_error(cli, "%s\n", repair->is_dry ? "; nothing was changed" : "");
}

int store_repair(struct cli_store *store, const char *id)
{
    const struct det_runtime_options options = {
        .world = store->cli->world,
        .allocator = store->cli->allocator,
        .is_passive = true,
        .shards = 1,
    };
    struct repair repair = { .store = store, .is_dry = !store->request.is_writing };
    struct det_error error = { 0 };
    int code, r;

    if (!store->ops->repair || !store->ops->check)
        return store_unsupported(store, "repair", "restore a backup");
    /* The stored data was written with the definition of the store. */
    store->request.is_writing = false;
    r = det_runtime_open(store->store, &options, &repair.runtime, &error);
    if (r < 0)
        return cli_report_store_error(store, r, &error);
    det_json_writer_init(&repair.json, store->cli->allocator);
    code = id ? repair_one(&repair, id) : repair_all(&repair);
    if (code == CLI_OK)
        summarize(&repair);
    det_json_writer_deinit(&repair.json);
    det_runtime_close(repair.runtime);
    return code == CLI_OK && repair.failed ? CLI_FAILURE : code;
}
