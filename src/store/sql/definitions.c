/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definitions.c - serves a machine: stores its definition, and checks that stored rows fit it.
 *
 * If the store has never had another definition, all rows come from this one, and the check is
 * skipped. */
#include <detent/tool/machine.h>

#include "store/sql/definitions.h"

#include "store/row.h"
#include "store/sql/page.h"
#include "store/sql/renames.h"

/* Indexed by the numbers of USED_NAMES. */
static const struct {
    int (*find)(const struct det_machine *machine, const char *name);
    const char *kind, *users;
} uses[] = {
    { NULL, NULL, NULL },
    { det_machine_find_state, "state", "instances in it" },
    { det_row_timer_seek, "timer", "some that are armed" },
    { det_machine_find_event, "event", "armed timers that send it" },
    { det_machine_find_effect, "effect", "some that have not ended" },
    { det_machine_find_event, "event", "effects that it requested" },
};
#define USE_COUNT ((int64_t)(sizeof uses / sizeof uses[0]))

int det_sql_definition_open(
    const struct det_store *store, const struct det_machine *machine,
    struct det_sql_definition *ret)
{
    int r;

    ret->machine = machine;
    det_buffer_init(&ret->spec, store->allocator);
    r = det_row_spec(machine, &ret->spec);
    if (r < 0)
        det_buffer_deinit(&ret->spec);
    else
        det_chain_fingerprint(det_buffer_text(&ret->spec), ret->fingerprint);
    return r;
}

void det_sql_definition_close(struct det_sql_definition *definition)
{
    det_buffer_deinit(&definition->spec);
}

void det_sql_definition_add(
    struct det_sql_values *values, const struct det_sql_definition *definition)
{
    det_sql_add_text(values, definition->machine->name);
    det_sql_add_number(values, definition->machine->version);
    det_sql_add_text(values, definition->fingerprint);
}

int det_sql_used_check(void *context, const struct det_sql_row *row)
{
    const struct det_sql_used *used = context;
    const struct det_machine *machine = used->machine;
    int64_t use = det_sql_number(row, 0);
    const char *name = det_sql_text(row, 1);
    int r;

    r = det_sql_status(row);
    if (r < 0)
        return r;
    if (use < 1 || use >= USE_COUNT)
        return DET_ERR_CORRUPT;
    if (uses[use].find(machine, name) >= 0)
        return 0;
    return det_error_set(
        used->reterr, DET_ERR_VERSION,
        "version %u of %s has no %s \"%s\", but the store has %s: %lld; bring the name back, "
        "or migrate the instances first (\"detent diff\" shows what else is stranded)",
        machine->version, machine->name, uses[use].kind, name, uses[use].users,
        (long long)det_sql_number(row, 2));
}

struct serving {
    struct det_store *store;
    struct det_sql_definition definition;
    struct det_sql_used used;
    bool is_newest, is_sole;
    struct det_error reason; /* error of the database */
};

static int read_definitions(void *context, const struct det_sql_row *row)
{
    struct serving *serving = context;

    serving->is_newest = det_sql_number(row, 1) > 0;
    serving->is_sole =
        serving->definition.spec.size && serving->is_newest && det_sql_number(row, 0) == 0;
    return det_sql_status(row);
}

static int check_fits(struct serving *serving)
{
    struct det_sql_values values = { 0 }, name = { 0 };
    const struct det_sql_question definitions = { .statement = DET_SQL_DEFINITIONS,
                                                  .values = &values,
                                                  .read = read_definitions,
                                                  .context = serving,
                                                  .has_row = true };
    const struct det_sql_question names = { .statement = DET_SQL_USED_NAMES,
                                            .values = &name,
                                            .read = det_sql_used_check,
                                            .context = &serving->used,
                                            .is_scan = true };
    int r;

    det_sql_definition_add(&values, &serving->definition);
    det_sql_add_text(&name, serving->definition.machine->name);
    r = det_sql_ask(serving->store, &definitions, 1, &serving->reason);
    if (r == 0 && !serving->is_sole)
        r = det_sql_ask(serving->store, &names, 1, &serving->reason);
    return r;
}

static int keep_definition(struct serving *serving)
{
    struct det_sql_values values = { 0 };
    struct det_sql_change change = { .statement = DET_SQL_DEFINITION_KEEP,
                                     .values = &values,
                                     .is_repeatable = true };

    det_sql_definition_add(&values, &serving->definition);
    det_sql_add_text(&values, det_buffer_text(&serving->definition.spec));
    return det_sql_change(serving->store, &change, &serving->reason);
}

int det_sql_serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr)
{
    struct serving serving = { .store = store, .used = { machine, reterr } };
    int r;

    if (reterr)
        reterr->code = 0;
    r = det_sql_definition_open(store, machine, &serving.definition);
    if (r < 0)
        return det_error_set(
            reterr, r, "%s cannot be served: %s", machine->name, det_error_text(r));
    /* Another process may have migrated the store since it was opened. */
    r = det_sql_renames_read(store, &serving.reason);
    if (r == 0)
        r = check_fits(&serving);
    if (r == 0 && !serving.is_newest && !det_sql_is_read_only(store))
        r = keep_definition(&serving);
    det_sql_definition_close(&serving.definition);
    if (r < 0 && (!reterr || reterr->code != r))
        (void)det_error_set(
            reterr, r, "%s cannot be served: %s", machine->name,
            det_sql_reason(&serving.reason, r));
    return r;
}

/* A machine in the store. */

struct machine_row {
    const char *name, *spec;
    uint32_t version;
};

/* Rows are kept in memory: there are at most as many machines as definitions. */
static int read_machine(void *context, const struct det_sql_row *row)
{
    struct machine_row machine = { .name = det_sql_text(row, 0),
                                   .version = (uint32_t)det_sql_number(row, 1),
                                   .spec = det_sql_text(row, 2) };
    int r;

    r = det_sql_check(row, 3);
    if (r == 0)
        r = det_sql_page_keep(context, &machine.name);
    if (r == 0)
        r = det_sql_page_keep(context, &machine.spec);
    if (r == 0)
        r = det_sql_page_add(context, &machine);
    return r < 0 ? r : 0;
}

int det_sql_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context)
{
    struct det_sql_page page;
    const struct det_sql_question question = { .statement = DET_SQL_DEFINITION_LIST,
                                               .read = read_machine,
                                               .context = &page };
    const struct machine_row *row = NULL;
    int r;

    det_sql_page_init(&page, store->allocator, sizeof *row);
    r = det_sql_ask(store, &question, 1, NULL);
    while (r == 0 && (row = det_sql_page_next(&page, row)))
        r = visit(context, row->name, row->version, row->spec);
    det_sql_page_deinit(&page);
    return r;
}
