/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* value.c - parameters and results in PostgreSQL's binary form: numbers of 8 bytes, big-endian;
 * texts and bytes unchanged. */
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "store/postgres/postgres.h"

/* The type number of int8 in the server. */
#define POSTGRES_INT8 20

static void add_value(struct postgres_parameters *parameters, const void *value, size_t size)
{
    det_assert(parameters->count < POSTGRES_PARAMETERS_MAX);
    parameters->values[parameters->count] = value;
    parameters->lengths[parameters->count++] = (int)size;
}

void det_postgres_add_number(struct postgres_parameters *parameters, int64_t number)
{
    unsigned char *bytes = parameters->numbers[parameters->count];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)number >> (56 - 8 * i));
    add_value(parameters, bytes, 8);
}

void det_postgres_add_text(struct postgres_parameters *parameters, const char *text)
{
    add_value(parameters, text, text ? strlen(text) : 0);
}

void det_postgres_add_bytes(struct postgres_parameters *parameters, struct det_chain_bytes bytes)
{
    add_value(parameters, bytes.data, bytes.size);
}

static struct postgres_values values_of(const struct postgres_parameters *parameters)
{
    if (!parameters)
        return (struct postgres_values){ 0 };
    return (struct postgres_values){ parameters->count, parameters->values, parameters->lengths };
}

void det_postgres_ask(
    struct postgres_exchange *exchange, enum postgres_statement_id id,
    const struct postgres_parameters *parameters)
{
    const struct postgres_values values = values_of(parameters);

    det_postgres_exchange_send(exchange, &exchange->connection->store->statements[id], &values);
}

void det_postgres_ask_once(
    struct postgres_exchange *exchange, enum postgres_statement_id id,
    const struct postgres_parameters *parameters)
{
    const struct postgres_values values = values_of(parameters);
    struct postgres_statement statement = exchange->connection->store->statements[id];

    statement.slot = UINT_MAX;
    det_postgres_exchange_send(exchange, &statement, &values);
}

bool det_postgres_has_numbers(const PGresult *result, int columns)
{
    int i = 0;

    while (i < columns && PQftype(result, i) == POSTGRES_INT8)
        i++;
    return i == columns && PQnfields(result) == columns;
}

int64_t det_postgres_number(const PGresult *result, int row, int column)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(result, row, column);
    uint64_t number = 0;

    if (PQgetisnull(result, row, column) || PQgetlength(result, row, column) != 8)
        return 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return (int64_t)number;
}

bool det_postgres_bool(const PGresult *result, int row, int column)
{
    return !PQgetisnull(result, row, column) && PQgetvalue(result, row, column)[0] != 0;
}

const char *det_postgres_text(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

struct det_chain_bytes det_postgres_bytes(const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column))
        return (struct det_chain_bytes){ NULL, 0 };
    return (struct det_chain_bytes){ PQgetvalue(result, row, column),
                                     (size_t)PQgetlength(result, row, column) };
}
