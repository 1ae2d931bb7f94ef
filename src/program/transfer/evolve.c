/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* evolve.c - reads two definitions, opens the store, and compares. */
#include "transfer/evolve.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "terminal/input.h"

static const char *const option_names[DET_COMPARE_KINDS] = {
    [DET_NAME_STATE] = "--rename-state",
    [DET_NAME_EVENT] = "--rename-event",
    [DET_NAME_EFFECT] = "--rename-effect",
    [DET_NAME_TIMER] = "--rename-timer",
};

static size_t count_char(const char *text, char c)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == c;
    return count;
}

/* "old=new" of `length` bytes. */
static int add_rename(
    struct evolve *evolve, enum det_name_kind kind, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    struct det_rename *rename = &evolve->renames[evolve->rename_count];
    size_t first = equals ? (size_t)(equals - text) : 0;

    det_assert(kind < DET_COMPARE_KINDS);
    if (first == 0 || first + 1 == length) {
        cli_report_error(
            evolve->cli, "%s takes pairs such as paid=settled,sent=shipped, not '%.*s'",
            option_names[kind], (int)length, text);
        return CLI_USAGE;
    }
    rename->kind = kind;
    rename->from = det_arena_copy_n(&evolve->arena, text, first);
    rename->to = det_arena_copy_n(&evolve->arena, equals + 1, length - first - 1);
    if (!rename->from || !rename->to)
        return cli_no_memory(evolve->cli);
    evolve->rename_count++;
    return CLI_OK;
}

static int read_renames(struct evolve *evolve, const char *const *values)
{
    size_t count = 0;
    int code = CLI_OK;

    for (size_t kind = 0; kind < DET_COMPARE_KINDS; kind++)
        count += values[kind] ? count_char(values[kind], ',') + 1 : 0;
    evolve->renames = det_arena_array(&evolve->arena, count, sizeof *evolve->renames);
    if (!evolve->renames)
        return cli_no_memory(evolve->cli);
    for (size_t kind = 0; kind < DET_COMPARE_KINDS; kind++) {
        for (const char *at = values[kind]; at && code == CLI_OK;) {
            size_t length = strcspn(at, ",");

            code = add_rename(evolve, (enum det_name_kind)kind, at, length);
            at = at[length] ? at + length + 1 : NULL;
        }
    }
    det_assert(code == CLI_OK ? evolve->rename_count == count : evolve->rename_count < count);
    return code;
}

const char *evolve_rename(const struct evolve *evolve, enum det_name_kind kind, const char *name)
{
    for (size_t i = 0; i < evolve->rename_count; i++) {
        if (evolve->renames[i].kind == kind && strcmp(evolve->renames[i].from, name) == 0)
            return evolve->renames[i].to;
    }
    return name;
}

/* Returns the machine of the store, by the definition with which it was last served. */
static int read_stored(struct evolve *evolve, const char *name)
{
    const struct det_spec_options options = { .allocator = evolve->cli->allocator };
    const struct store_machine *found = evolve->store.machines;

    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    if (!found || !found->is_stored) {
        cli_report_error(
            evolve->cli, "%s has no machine '%s'; 'detent list' shows all", evolve->store.url,
            name);
        return CLI_NOT_FOUND;
    }
    if (!found->text) {
        cli_report_error(
            evolve->cli, "%s does not keep the definition of '%s'", evolve->store.url, name);
        return CLI_NOT_FOUND;
    }
    if (det_spec_read(name, found->text, strlen(found->text), &options, &evolve->stored_spec) < 0)
        return cli_no_memory(evolve->cli);
    evolve->stored = det_spec_machine(evolve->stored_spec);
    if (evolve->stored)
        return CLI_OK;
    cli_report_error(
        evolve->cli, "the definition of '%s' in %s cannot be read by this program", name,
        evolve->store.url);
    return CLI_FAILURE;
}

static int serve_stored(struct evolve *evolve)
{
    struct det_error error = { 0 };
    int r;

    r = evolve->store.ops->serve(evolve->store.store, evolve->stored, &error);
    return r < 0 ? cli_report_store_error(&evolve->store, r, &error) : CLI_OK;
}

static int open_store(struct evolve *evolve, const struct evolve_request *request)
{
    const struct store_request of_store = { .url = request->url,
                                            .is_writing = request->is_writing,
                                            .is_alone = true };
    int code = cli_store_open(evolve->cli, &of_store, &evolve->store);

    evolve->has_store = true;
    if (code == CLI_OK)
        code = read_stored(evolve, request->machine ? request->machine : evolve->new->name);
    /* A writer of names must be alone; counting needs the machine served. */
    return code == CLI_OK && !request->is_writing ? serve_stored(evolve) : code;
}

static int check_names(const struct evolve *evolve, const struct evolve_request *request)
{
    if (request->machine || strcmp(evolve->old->name, evolve->new->name) == 0)
        return CLI_OK;
    cli_report_error(
        evolve->cli, "%s is not a definition of '%s', but of '%s'", request->new_path,
        evolve->old->name, evolve->new->name);
    return CLI_USAGE;
}

int evolve_open(struct cli *cli, const struct evolve_request *request, struct evolve *evolve)
{
    int code;

    det_assert(request->old_path || request->needs_store || request->url);
    memset(evolve, 0, sizeof *evolve);
    evolve->cli = cli;
    det_arena_init(&evolve->arena, cli->allocator);
    code = read_renames(evolve, request->renames);
    if (code == CLI_OK)
        code = cli_machine_load(cli, request->new_path, &evolve->new_spec);
    if (code == CLI_OK)
        evolve->new = det_spec_machine(evolve->new_spec);
    if (code == CLI_OK && request->old_path)
        code = cli_machine_load(cli, request->old_path, &evolve->old_spec);
    if (code == CLI_OK && (request->needs_store || request->url))
        code = open_store(evolve, request);
    if (code != CLI_OK)
        return code;
    evolve->old = evolve->old_spec ? det_spec_machine(evolve->old_spec) : evolve->stored;
    return check_names(evolve, request);
}

void evolve_close(struct evolve *evolve)
{
    if (evolve->has_store)
        cli_store_close(&evolve->store);
    det_spec_close(evolve->old_spec);
    det_spec_close(evolve->new_spec);
    det_spec_close(evolve->stored_spec);
    det_arena_deinit(&evolve->arena);
}

/* Keeps the results of the comparison until they are printed. */
struct gathering {
    struct evolve *evolve;
    struct evolve_change **changes_end;
    struct evolve_hazard **hazards_end;
    bool has_failed;
};

static void take_change(void *context, const struct det_change *change)
{
    struct gathering *gathering = context;
    struct evolve_change *kept = det_arena_alloc(&gathering->evolve->arena, sizeof *kept);

    if (kept) {
        kept->it = *change;
        kept->it.text = det_arena_copy(&gathering->evolve->arena, change->text);
    }
    if (!kept || !kept->it.text) {
        gathering->has_failed = true;
        return;
    }
    *gathering->changes_end = kept;
    gathering->changes_end = &kept->next;
    gathering->evolve->change_count++;
}

static void take_hazard(void *context, const struct det_hazard *hazard)
{
    struct gathering *gathering = context;
    struct evolve_hazard *kept = det_arena_alloc(&gathering->evolve->arena, sizeof *kept);

    if (kept) {
        kept->it = *hazard;
        kept->it.text = det_arena_copy(&gathering->evolve->arena, hazard->text);
    }
    if (!kept || !kept->it.text) {
        gathering->has_failed = true;
        return;
    }
    *gathering->hazards_end = kept;
    gathering->hazards_end = &kept->next;
    gathering->evolve->hazard_count++;
}

static int count_hazards(struct evolve *evolve)
{
    int code = CLI_OK;

    if (!evolve->has_store) {
        evolve->stranded = evolve->hazard_count;
        return CLI_OK;
    }
    if (evolve->hazards || evolve->rename_count)
        code = evolve_count(evolve);
    for (struct evolve_hazard *hazard = evolve->hazards; hazard && code == CLI_OK;
         hazard = hazard->next) {
        hazard->count = evolve_count_of(evolve, hazard->it.kind, hazard->it.name, &hazard->stopped);
        evolve->stranded += hazard->count > 0;
    }
    det_assert(evolve->stranded <= evolve->hazard_count);
    return code;
}

int evolve_compare(struct evolve *evolve)
{
    struct gathering gathering = { evolve, &evolve->changes, &evolve->hazards, false };
    struct det_compare compare = {
        .old = evolve->old,
        .new = evolve->new,
        .allocator = evolve->cli->allocator,
        .renames = evolve->renames,
        .rename_count = evolve->rename_count,
        .change = take_change,
        .hazard = take_hazard,
        .context = &gathering,
    };
    struct det_error error;
    int r;

    det_assert(evolve->change_count == 0 && evolve->hazard_count == 0);
    r = det_compare_machines(&compare, &error);
    if (r == DET_ERR_NO_MEMORY || gathering.has_failed)
        return cli_no_memory(evolve->cli);
    if (r < 0) {
        cli_report_error(evolve->cli, "%s", error.text);
        return CLI_USAGE;
    }
    return count_hazards(evolve);
}
