/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* schema.c - the tables: created if there are none, otherwise compared with postgres/tables.def,
 * after an upgrade if they have an older schema.
 *
 * Creating is one transaction. An advisory lock, held by the transaction, separates two processes;
 * the second one finds the tables. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/postgres.h"

/* Limit of listed missing parts. */
#define MISSING_MAX 8

struct column {
    const char *table, *name, *type, *more;
};

/* A column without a name ends a table: `type` is its constraint, `more` its options. */
static const struct column columns[] = {
#define DET_POSTGRES_TABLE(name)              { #name, NULL, NULL, NULL },
#define DET_POSTGRES_COLUMN(name, type, more) { NULL, #name, type, more },
#define DET_POSTGRES_END(constraint, options) { NULL, NULL, constraint, options },
#define DET_POSTGRES_AFTER(text)
#include "store/postgres/tables.def"
#undef DET_POSTGRES_TABLE
#undef DET_POSTGRES_COLUMN
#undef DET_POSTGRES_END
#undef DET_POSTGRES_AFTER
};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])

static const char *const afterwards[] = {
#define DET_POSTGRES_TABLE(name)
#define DET_POSTGRES_COLUMN(name, type, more)
#define DET_POSTGRES_END(constraint, options)
#define DET_POSTGRES_AFTER(text) text,
#include "store/postgres/tables.def"
#undef DET_POSTGRES_TABLE
#undef DET_POSTGRES_COLUMN
#undef DET_POSTGRES_END
#undef DET_POSTGRES_AFTER
};

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

char *det_postgres_qualify(const struct postgres_store *store, const char *text)
{
    struct det_buffer buffer;
    char *copy = NULL;

    det_buffer_init(&buffer, store->store.allocator);
    for (const char *c = text; *c; c++) {
        if (*c == '@')
            det_buffer_format(&buffer, "\"%s\"%s", store->url.schema, is_name(c[1]) ? "." : "");
        else
            det_buffer_append_char(&buffer, *c);
    }
    if (det_buffer_status(&buffer) == 0)
        copy = det_string_copy(store->store.allocator, det_buffer_text(&buffer));
    det_buffer_deinit(&buffer);
    return copy;
}

int det_postgres_send_once(struct postgres_exchange *exchange, const char *text)
{
    const struct postgres_store *store = exchange->connection->store;
    struct postgres_statement statement = { .slot = UINT_MAX };

    statement.text = det_postgres_qualify(store, text);
    if (!statement.text)
        return DET_ERR_NO_MEMORY;
    det_postgres_exchange_send(exchange, &statement, NULL);
    det_free_string(store->store.allocator, statement.text);
    return 0;
}

/* Sends the tables one after the other. */
static int send_tables(struct postgres_exchange *exchange)
{
    struct det_buffer text;
    int r = 0;

    det_buffer_init(&text, exchange->connection->store->store.allocator);
    for (size_t i = 0; r == 0 && i < COLUMN_COUNT; i++) {
        const struct column *column = &columns[i];

        if (column->table) {
            det_buffer_clear(&text);
            det_buffer_format(&text, "CREATE TABLE @%s (", column->table);
        } else if (column->name) {
            det_buffer_format(&text, "%s %s %s, ", column->name, column->type, column->more);
        } else {
            det_buffer_format(&text, "%s)%s", column->type, column->more);
            r = det_buffer_status(&text);
            if (r == 0)
                r = det_postgres_send_once(exchange, det_buffer_text(&text));
        }
    }
    det_buffer_deinit(&text);
    for (size_t i = 0; r == 0 && i < sizeof afterwards / sizeof afterwards[0]; i++)
        r = det_postgres_send_once(exchange, afterwards[i]);
    return r;
}

struct creation {
    const char *identity;
    int failure;
    bool is_there, has_schema;
    char taken[64]; /* an existing table with one of our names; "": none */
};

static void send_creation(struct postgres_exchange *exchange, void *context)
{
    struct creation *creation = context;
    struct postgres_parameters schema = { 0 }, row = { 0 };

    det_postgres_add_text(&schema, exchange->connection->store->url.schema);
    det_postgres_add_text(&row, creation->identity);
    det_postgres_add_number(&row, POSTGRES_SCHEMA);
    det_postgres_add_text(&row, det_version());
    det_postgres_ask(exchange, POSTGRES_CREATION_LOCK, &schema);
    creation->failure = 0;
    /* A user who may create tables in a schema may lack the right to create schemas. */
    if (!creation->has_schema)
        creation->failure = det_postgres_send_once(exchange, "CREATE SCHEMA IF NOT EXISTS @");
    if (creation->failure == 0)
        creation->failure = send_tables(exchange);
    /* Without every table no commit is permitted. */
    if (creation->failure < 0)
        exchange->is_broken = true;
    det_postgres_ask_once(exchange, POSTGRES_CREATE_STORE_ROW, &row);
}

/* Checks whether the tables exist, and lists conflicting ones. */
static int find_store(
    struct postgres_store *store, struct creation *ret, struct postgres_failure *retfail)
{
    static const char names[] = ""
#define DET_POSTGRES_TABLE(name) #name " "
#define DET_POSTGRES_COLUMN(name, type, more)
#define DET_POSTGRES_END(constraint, options)
#define DET_POSTGRES_AFTER(text)
#include "store/postgres/tables.def"
#undef DET_POSTGRES_TABLE
#undef DET_POSTGRES_COLUMN
#undef DET_POSTGRES_END
#undef DET_POSTGRES_AFTER
        ;
    struct postgres_parameters parameters = { 0 };
    PGresult *row;
    int r;

    det_postgres_add_text(&parameters, store->url.schema);
    det_postgres_add_text(&parameters, names);
    r = det_postgres_query(store, POSTGRES_FIND_STORE, &parameters, &row, retfail);
    if (r == 0) {
        ret->is_there = det_postgres_number(row, 0, 0) > 0;
        ret->has_schema = det_postgres_number(row, 0, 1) > 0;
        snprintf(ret->taken, sizeof ret->taken, "%s", det_postgres_text(row, 0, 2));
    }
    PQclear(row);
    return r;
}

static int report_failure(const struct postgres_failure *failure, int r, struct det_error *reterr)
{
    return det_error_set(
        reterr, r, "PostgreSQL: %s", failure->text[0] ? failure->text : det_error_text(r));
}

/* If another process is first, its tables are used. */
static int create_tables(struct postgres_store *store, bool has_schema, struct det_error *reterr)
{
    char identity[33];
    struct creation creation = { .identity = identity, .has_schema = has_schema };
    const struct postgres_job job = { send_creation, NULL, &creation, false, 1 };
    struct postgres_failure failure;
    int r, again;

    det_postgres_random(store, identity);
    r = det_postgres_run(store, &job, &failure);
    if (r == 0)
        return 0;
    if (creation.failure < 0)
        return det_error_set(
            reterr, creation.failure, "PostgreSQL: out of memory: cannot create the tables");
    again = find_store(store, &creation, NULL);
    if (again == 0 && creation.is_there)
        return 0;
    return report_failure(&failure, r, reterr);
}

struct verification {
    struct postgres_store *store;
    struct det_buffer missing;
    char identity[64];
    int64_t schema;
    bool has_row;
};

static bool has_column(const PGresult *rows, const char *table, const struct column *column)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        if (strcmp(det_postgres_text(rows, i, 0), table) == 0 &&
            strcmp(det_postgres_text(rows, i, 1), column->name) == 0)
            return strcmp(det_postgres_text(rows, i, 2), column->type) == 0;
    }
    return false;
}

/* Reports problems of these columns in `missing`. */
static int find_missing(void *context, const PGresult *rows)
{
    struct verification *verification = context;
    const char *table = "";
    size_t count = 0;

    det_buffer_clear(&verification->missing);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (columns[i].table)
            table = columns[i].table;
        if (columns[i].name && !has_column(rows, table, &columns[i]) && count++ < MISSING_MAX)
            det_buffer_format(
                &verification->missing, "%s%s.%s (%s)", verification->missing.size ? ", " : "",
                table, columns[i].name, columns[i].type);
    }
    if (count > MISSING_MAX)
        det_buffer_format(&verification->missing, " and %zu more", count - MISSING_MAX);
    if (det_buffer_status(&verification->missing) < 0)
        return DET_ERR_NO_MEMORY;
    return count ? DET_ERR_FOREIGN : 0;
}

static int refuse_columns(const struct verification *verification, struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_FOREIGN,
        "the schema %s: take the newest backup, or another schema; it lacks, or has with another "
        "type: %s",
        verification->store->url.schema, det_buffer_text(&verification->missing));
}

static int refuse_table(
    const struct postgres_store *store, const char *table, struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_FOREIGN,
        "the schema %s has a table \"%s\" that is not detent's; choose another schema with "
        "schema=... in "
        "the URL",
        store->url.schema, table);
}

/* The identity and version, before the columns: a newer schema may have others. */
static int read_row(struct verification *verification, struct det_error *reterr)
{
    struct postgres_store *store = verification->store;
    struct postgres_failure failure;
    PGresult *row;
    int r;

    r = det_postgres_query(store, POSTGRES_STORE_ROW, NULL, &row, &failure);
    verification->has_row = PQntuples(row) == 1;
    if (verification->has_row) {
        snprintf(
            verification->identity, sizeof verification->identity, "%s",
            det_postgres_text(row, 0, 0));
        verification->schema = det_postgres_number(row, 0, 1);
    }
    PQclear(row);
    if ((r < 0 && strncmp(failure.sqlstate, "42", 2) == 0 &&
         strcmp(failure.sqlstate, "42501") != 0) ||
        (r == 0 && (!verification->has_row || strlen(verification->identity) != 32)))
        return refuse_table(store, "store", reterr);
    return r < 0 ? report_failure(&failure, r, reterr) : 0;
}

static int verify_schema(const struct verification *verification, struct det_error *reterr)
{
    const struct postgres_store *store = verification->store;
    bool is_older = verification->schema >= 1 && verification->schema < POSTGRES_SCHEMA;

    if (verification->schema == POSTGRES_SCHEMA || (is_older && !store->sql.is_read_only))
        return 0;
    (void)det_error_set(
        reterr, DET_ERR_VERSION,
        "the tables in the schema %s have schema version %lld, this program supports %d; %s",
        store->url.schema, (long long)verification->schema, POSTGRES_SCHEMA,
        is_older ? "upgrade them with \"detent store upgrade\" or open the store for writing"
                 : "use a newer detent");
    if (reterr) {
        reterr->expected = POSTGRES_SCHEMA;
        reterr->actual = (uint64_t)verification->schema;
    }
    return DET_ERR_VERSION;
}

/* If another process is first, its upgrade is used. */
static int upgrade_tables(struct verification *verification, struct det_error *reterr)
{
    struct postgres_failure failure = { 0 };
    int r, again;

    r = det_postgres_upgrade(
        verification->store, verification->schema, find_missing, verification, &failure);
    if (r == 0)
        return 0;
    if (r == DET_ERR_FOREIGN && verification->missing.size)
        return refuse_columns(verification, reterr);
    again = read_row(verification, NULL);
    if (again == 0 && verification->schema == POSTGRES_SCHEMA)
        return 0;
    /* A prerequisite is missing, or a new object exists already. */
    if (strncmp(failure.sqlstate, "42", 2) == 0 && strcmp(failure.sqlstate, "42501") != 0)
        return det_error_set(
            reterr, DET_ERR_FOREIGN,
            "the tables in the schema %s are not those of version %lld: %s; take the newest "
            "backup; nothing was changed",
            verification->store->url.schema, (long long)verification->schema, failure.text);
    return report_failure(&failure, r, reterr);
}

static int verify_columns(struct verification *verification, struct det_error *reterr)
{
    struct postgres_store *store = verification->store;
    struct postgres_parameters parameters = { 0 };
    struct postgres_failure failure;
    PGresult *rows;
    int r;

    det_postgres_add_text(&parameters, store->url.schema);
    r = det_postgres_query(store, POSTGRES_COLUMNS, &parameters, &rows, &failure);
    if (r == 0)
        r = find_missing(verification, rows);
    PQclear(rows);
    if (r == DET_ERR_FOREIGN && verification->missing.size)
        return refuse_columns(verification, reterr);
    return r < 0 ? report_failure(&failure, r, reterr) : 0;
}

/* Checked now, since the first commit could not report a good message. */
static int verify_rights(struct postgres_store *store, struct det_error *reterr)
{
    struct postgres_parameters parameters = { 0 };
    struct postgres_failure failure;
    const char *table;
    PGresult *row;
    int r;

    det_postgres_add_text(&parameters, store->url.schema);
    r = det_postgres_query(store, POSTGRES_RIGHTS, &parameters, &row, &failure);
    if (r < 0)
        return report_failure(&failure, r, reterr);
    table = det_postgres_text(row, 0, 1);
    if (table && table[0])
        r = det_error_set(
            reterr, DET_ERR_READ_ONLY,
            "PostgreSQL: user %s has no right to write the table %s of the schema %s; let its "
            "owner "
            "GRANT that, or open the store for reading only",
            det_postgres_text(row, 0, 0), table, store->url.schema);
    PQclear(row);
    return r;
}

/* Only the expected store is upgraded. */
static int verify_store(
    struct postgres_store *store, const char *identity, struct det_error *reterr)
{
    struct verification verification = { .store = store };
    int r;

    det_buffer_init(&verification.missing, store->store.allocator);
    r = read_row(&verification, reterr);
    if (r == 0)
        r = verify_schema(&verification, reterr);
    if (r == 0 && identity && strcmp(identity, verification.identity) != 0)
        r = det_error_set(
            reterr, DET_ERR_FOREIGN, "the store in the schema %s is %s, and not %s",
            store->url.schema, verification.identity, identity);
    if (r == 0 && verification.schema < POSTGRES_SCHEMA)
        r = upgrade_tables(&verification, reterr);
    if (r == 0)
        r = verify_columns(&verification, reterr);
    if (r == 0 && !store->sql.is_read_only)
        r = verify_rights(store, reterr);
    det_buffer_deinit(&verification.missing);
    if (r < 0)
        return r;
    memcpy(store->store.identity, verification.identity, sizeof store->store.identity);
    store->store.schema = POSTGRES_SCHEMA;
    return 0;
}

int det_postgres_schema_open(
    struct postgres_store *store, bool must_exist, const char *identity, struct det_error *reterr)
{
    struct creation creation = { 0 };
    struct postgres_failure failure;
    int r;

    r = find_store(store, &creation, &failure);
    if (r < 0)
        return report_failure(&failure, r, reterr);
    if (!creation.is_there && creation.taken[0])
        return refuse_table(store, creation.taken, reterr);
    if (!creation.is_there) {
        if (must_exist || store->sql.is_read_only)
            return det_error_set(
                reterr, DET_ERR_NOT_FOUND,
                "the schema %s of this database contains no store; create it with \"detent "
                "start FILE.fsm ID --store URL\"",
                store->url.schema);
        r = create_tables(store, creation.has_schema, reterr);
        if (r < 0)
            return r;
    }
    return verify_store(store, identity, reterr);
}
