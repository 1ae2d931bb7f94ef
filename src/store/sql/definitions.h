/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definitions.h - the definitions of machines in a SQL store: serving and listing them. */
#ifndef DET_STORE_SQL_DEFINITIONS_H
#define DET_STORE_SQL_DEFINITIONS_H

#include "base/buffer.h"
#include "store/sql/sql.h"

/* A definition as a row. */
struct det_sql_definition {
    const struct det_machine *machine;
    struct det_buffer spec; /* empty: only a builder can make this definition */
    char fingerprint[33];
};
DET_MUST_CHECK int det_sql_definition_open(
    const struct det_store *store, const struct det_machine *machine,
    struct det_sql_definition *ret);
void det_sql_definition_close(struct det_sql_definition *definition);
/* Adds the first three parameters of DEFINITIONS and DEFINITION_KEEP. */
void det_sql_definition_add(
    struct det_sql_values *values, const struct det_sql_definition *definition);

/* Reads a row of USED_NAMES: DET_ERR_VERSION and a sentence if the machine lacks the name. */
struct det_sql_used {
    const struct det_machine *machine;
    struct det_error *reterr;
};
int det_sql_used_check(void *context, const struct det_sql_row *row);

int det_sql_serve(
    struct det_store *store, const struct det_machine *machine, struct det_error *reterr);
int det_sql_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context);

#endif
