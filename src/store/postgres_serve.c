/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_serve.c - a machine is served: its definition is kept, and what is stored must fit it.
 *
 * Where this definition is the only one that was ever served, everything that is stored came from
 * it, and nothing needs to be looked at. */
#include <stdio.h>
#include <string.h>

#include "store/postgres.h"
#include "store/row.h"

struct serving {
    const struct det_machine *machine;
    const char *spec;
    char fingerprint[33];
    struct det_error *reterr;
    bool is_sole;
};

static void send_definitions(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, serving->machine->name);
    det_postgres_add_text(&parameters, serving->fingerprint);
    det_postgres_ask(exchange, POSTGRES_DEFINITIONS, &parameters);
}

static int take_definitions(struct postgres_exchange *exchange, void *context)
{
    struct serving *serving = context;

    serving->is_sole = serving->spec[0] && det_postgres_number(exchange->results[0], 0, 0) > 0 &&
                       det_postgres_number(exchange->results[0], 0, 1) == 0;
    return 0;
}

/* Counting goes through whole tables, for which the usual plans are not made. */
static void send_names(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, serving->machine->name);
    det_postgres_ask(exchange, POSTGRES_SCAN, NULL);
    det_postgres_ask(exchange, POSTGRES_USED_NAMES, &parameters);
}

static bool has_name(const struct det_machine *machine, int64_t kind, const char *name)
{
    switch (kind) {
    case 1:
        return det_machine_find_state(machine, name) >= 0;
    case 2:
        return det_machine_find_event(machine, name) >= 0;
    case 3:
        return det_machine_find_effect(machine, name) >= 0;
    default:
        return det_machine_find_timer(machine, name) >= 0;
    }
}

static int take_names(struct postgres_exchange *exchange, void *context)
{
    static const char *const kinds[] = { "", "the state", "the event", "the effect", "the timer" };
    static const char *const uses[] = { "", "instances are in it", "timers will send it",
                                        "effects have not ended", "are armed" };
    const struct serving *serving = context;
    const PGresult *rows = exchange->results[1];

    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t kind = det_postgres_number(rows, i, 0);
        const char *name = det_postgres_text(rows, i, 1);

        if (!has_name(serving->machine, kind, name))
            return det_error_set(
                serving->reterr, DET_ERR_VERSION,
                "version %u of %s does not have %s %s any more, but in the store %lld %s; bring it "
                "back, or migrate them; detent diff shows what else would be stranded",
                serving->machine->version, serving->machine->name, kinds[kind], name,
                (long long)det_postgres_number(rows, i, 2), uses[kind]);
    }
    return 0;
}

static void send_definition(struct postgres_exchange *exchange, void *context)
{
    const struct serving *serving = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, serving->machine->name);
    det_postgres_add_number(&parameters, serving->machine->version);
    det_postgres_add_text(&parameters, serving->fingerprint);
    det_postgres_add_text(&parameters, serving->spec);
    det_postgres_ask(exchange, POSTGRES_DEFINITION_KEEP, &parameters);
}

int det_postgres_serve(
    struct det_store *base, const struct det_machine *machine, struct det_error *reterr)
{
    struct postgres_store *store = postgres_store_of(base);
    struct serving serving = { .machine = machine, .spec = "", .reterr = reterr };
    const struct postgres_job definitions = { send_definitions, take_definitions, &serving, true,
                                              0 };
    const struct postgres_job names = { send_names, take_names, &serving, true, 0 };
    const struct postgres_job keep = { send_definition, NULL, &serving, true, 0 };
    struct postgres_failure failure = { 0 };
    int r;

    det_chain_fingerprint(serving.spec, serving.fingerprint);
    r = det_postgres_run(store, &definitions, &failure);
    if (r == 0 && !serving.is_sole)
        r = det_postgres_run(store, &names, &failure);
    if (r == 0 && !store->is_read_only && !serving.is_sole)
        r = det_postgres_run(store, &keep, &failure);
    if (r < 0 && failure.action != POSTGRES_DONE)
        return det_error_set(
            reterr, r, "%s cannot be served: PostgreSQL: %s", machine->name, failure.text);
    return r;
}
