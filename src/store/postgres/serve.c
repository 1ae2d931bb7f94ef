/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve.c - a machine is served: its definition is kept, and what is stored must fit it.
 *
 * Where this definition is the only one that was ever served, everything that is stored came from
 * it, and nothing needs to be looked at. */
#include <stdio.h>
#include <string.h>

#include <detent/spec.h>

#include "base/memory.h"
#include "store/postgres/postgres.h"
#include "store/row.h"

struct serving {
    const struct postgres_definition *definition;
    struct det_error *reterr;
    bool is_newest, is_sole;
};

/* What is found under the numbers of USED_NAMES. */
static const struct {
    int (*find)(const struct det_machine *machine, const char *name);
    const char *kind, *users;
} used[] = {
    { NULL, NULL, NULL },
    { det_machine_find_state, "state", "instances in it" },
    { det_machine_find_event, "event", "armed timers that send it" },
    { det_machine_find_effect, "effect", "some that have not ended" },
    { det_row_timer_seek, "timer", "some that are armed" },
    { det_machine_find_event, "event", "effects that it asked for" },
};

int det_postgres_definition_fits(
    const struct det_machine *machine, const PGresult *names, struct det_error *reterr)
{
    for (int i = 0; i < PQntuples(names); i++) {
        int64_t kind = det_postgres_number(names, i, 0);
        const char *name = det_postgres_text(names, i, 1);

        if (used[kind].find(machine, name) < 0)
            return det_error_set(
                reterr, DET_ERR_VERSION,
                "version %u of %s has no %s \"%s\", but the store has %s: %lld; bring the name "
                "back, or migrate the instances first (\"detent diff\" shows what else is "
                "stranded)",
                machine->version, machine->name, used[kind].kind, name, used[kind].users,
                (long long)det_postgres_number(names, i, 2));
    }
    return 0;
}

/* The text is "" for one that only a builder can make. */
int det_postgres_definition_open(
    const struct postgres_store *store, const struct det_machine *machine,
    struct postgres_definition *ret)
{
    const struct det_allocator *allocator = store->store.allocator;
    int64_t size;

    *ret = (struct postgres_definition){ .machine = machine };
    size = det_machine_write(machine, allocator, NULL, 0, NULL);
    if (size == DET_ERR_UNSUPPORTED || size == DET_ERR_LIMIT)
        size = 0;
    if (size < 0)
        return (int)size;
    ret->size = (size_t)size + 1;
    ret->spec = det_alloc_zero(allocator, ret->size);
    if (!ret->spec)
        return DET_ERR_NO_MEMORY;
    if (size > 0)
        size = det_machine_write(machine, allocator, ret->spec, ret->size, NULL);
    if (size < 0) {
        det_postgres_definition_close(store, ret);
        return (int)size;
    }
    det_chain_fingerprint(ret->spec, ret->fingerprint);
    return 0;
}

void det_postgres_definition_close(
    const struct postgres_store *store, struct postgres_definition *definition)
{
    det_free(store->store.allocator, definition->spec, definition->size);
}

void det_postgres_definition_add(
    struct postgres_parameters *parameters, const struct postgres_definition *definition)
{
    det_postgres_add_text(parameters, definition->machine->name);
    det_postgres_add_number(parameters, definition->machine->version);
    det_postgres_add_text(parameters, definition->fingerprint);
}

static void send_definitions(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_definition_add(&parameters, serving->definition);
    det_postgres_ask(exchange, POSTGRES_DEFINITIONS, &parameters);
}

static int take_definitions(struct postgres_exchange *exchange, void *context)
{
    struct serving *serving = context;

    serving->is_newest = det_postgres_number(exchange->results[0], 0, 1) > 0;
    serving->is_sole = serving->definition->spec[0] && serving->is_newest &&
                       det_postgres_number(exchange->results[0], 0, 0) == 0;
    return 0;
}

/* Counting goes through whole tables, for which the usual plans are not made. */
static void send_names(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, serving->definition->machine->name);
    det_postgres_ask(exchange, POSTGRES_SCAN, NULL);
    det_postgres_ask(exchange, POSTGRES_USED_NAMES, &parameters);
}

static int take_names(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;

    return det_postgres_definition_fits(
        serving->definition->machine, exchange->results[1], serving->reterr);
}

static void send_definition(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_definition_add(&parameters, serving->definition);
    det_postgres_add_text(&parameters, serving->definition->spec);
    det_postgres_ask(exchange, POSTGRES_DEFINITION_KEEP, &parameters);
}

static int serve(
    struct postgres_store *store, struct serving *serving, struct postgres_failure *retfail)
{
    const struct postgres_job definitions = { send_definitions, take_definitions, serving, true,
                                              0 };
    const struct postgres_job names = { send_names, take_names, serving, true, 0 };
    const struct postgres_job keep = { send_definition, NULL, serving, true, 0 };
    int r;

    /* Somebody else may have migrated it since we opened. */
    r = det_postgres_renames_read(store, retfail);
    if (r < 0 && retfail->action == POSTGRES_DONE)
        return det_error_set(
            serving->reterr, r, "%s cannot be served: the renames of the store cannot be read: %s",
            serving->definition->machine->name, det_error_text(r));
    if (r == 0)
        r = det_postgres_run(store, &definitions, retfail);
    if (r == 0 && !serving->is_sole)
        r = det_postgres_run(store, &names, retfail);
    if (r == 0 && !store->sql.is_read_only && !serving->is_newest)
        r = det_postgres_run(store, &keep, retfail);
    return r;
}

int det_postgres_serve(
    struct det_store *base, const struct det_machine *machine, struct det_error *reterr)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_failure failure = { 0 };
    struct postgres_definition definition;
    struct serving serving = { .definition = &definition, .reterr = reterr };
    int r;

    r = det_postgres_definition_open(store, machine, &definition);
    if (r < 0)
        return det_error_set(
            reterr, r, "%s cannot be served: %s", machine->name, det_error_text(r));
    r = serve(store, &serving, &failure);
    det_postgres_definition_close(store, &definition);
    if (r < 0 && failure.action != POSTGRES_DONE)
        return det_error_set(
            reterr, r, "%s cannot be served: PostgreSQL: %s", machine->name, failure.text);
    return r;
}
