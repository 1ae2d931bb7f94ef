/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* statement_parts.c - composes the statement that writes a batch of commits from the parts that
 * the batch needs.
 *
 *     c   locks the heads in the order of their keys, and judges: fence, lock, sequence
 *     ..  each part with conditions locks its rows and judges: timers, effects, event ids
 *     v   the worst verdict of each commit, as an array: 0 is success
 *     ..  each part writes the rows of the commits with verdict 0
 *
 * One statement is the whole transaction; a failed commit leaves nothing behind, and the others
 * succeed. A row that another transaction changed while this one waited for its lock is judged in
 * its new version. A row inserted since is not visible and causes a unique violation; the whole
 * statement is then repeated.
 *
 * The plain statement is for batches of single events only: it judges while it updates, and returns
 * the successful commits. The others are then repeated with the statement above, which returns the
 * reasons. postgres/statement_parts.def has the texts. */
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/postgres/checksum.h"
#include "store/postgres/commit_batch.h"

#define DET_POSTGRES_TEXT(name, text) static const char name[] = text;
#define DET_POSTGRES_PART(check, judges, write)
#include "store/postgres/statement_parts.def"
#undef DET_POSTGRES_TEXT
#undef DET_POSTGRES_PART

static const struct part {
    const char *check; /* "": no condition */
    const char *judges;
    const char *write;
} parts[] = {
#define DET_POSTGRES_TEXT(name, text)
#define DET_POSTGRES_PART(check, judges, write) { check, judges, write },
#include "store/postgres/statement_parts.def"
#undef DET_POSTGRES_TEXT
#undef DET_POSTGRES_PART
};
_Static_assert(sizeof parts / sizeof parts[0] == POSTGRES_PART_COUNT, "a bit for each");

static const struct {
    const char *name, *type;
} columns[] = {
#define NUMBER                         "int8[]"
#define FLAG                           "bool[]"
#define TEXT                           "text[]"
#define BYTES                          "bytea[]"
#define DET_POSTGRES_ARRAY(name, type) { #name, type },
#include "store/postgres/columns.def"
#undef DET_POSTGRES_ARRAY
#undef NUMBER
#undef FLAG
#undef TEXT
#undef BYTES
    { "owner", "text" },
};
_Static_assert(sizeof columns / sizeof columns[0] == POSTGRES_COLUMN_COUNT + 1, "each has a name");

static size_t find_column(const char *name, size_t length)
{
    size_t i = 0;

    while (strlen(columns[i].name) != length || memcmp(columns[i].name, name, length) != 0) {
        i++;
        det_assert(i < sizeof columns / sizeof columns[0]);
    }
    return i;
}

/* The parameter number of a column, assigned on first use. */
static size_t number_of(struct postgres_statement *statement, uint8_t column)
{
    for (size_t i = 0; i < statement->column_count; i++) {
        if (statement->columns[i] == column)
            return i + 1;
    }
    statement->columns[statement->column_count++] = column;
    return statement->column_count;
}

/* Expands a token in braces: a parameter or a special word. */
static void append_token(
    struct det_buffer *buffer, struct postgres_statement *statement, const char *token,
    size_t length)
{
    static const char through[] = "through ";
    size_t column;

    if (length == 5 && memcmp(token, "clock", 5) == 0) {
        det_buffer_append_text(buffer, POSTGRES_CLOCK);
        return;
    }
    if (length > sizeof through && memcmp(token, through, sizeof through - 1) == 0) {
        det_buffer_format(
            buffer, "(SELECT a FROM v)[%.*s::int4] = 0", (int)(length - sizeof through + 1),
            token + sizeof through - 1);
        return;
    }
    column = find_column(token, length);
    det_buffer_format(
        buffer, "$%zu::%s", number_of(statement, (uint8_t)column), columns[column].type);
}

static void append_part(
    struct det_buffer *buffer, struct postgres_statement *statement, const char *text)
{
    const char *open;

    while ((open = strchr(text, '{'))) {
        size_t length = strcspn(open + 1, "}");

        det_buffer_append(buffer, text, (size_t)(open - text));
        append_token(buffer, statement, open + 1, length);
        text = open + length + 2;
    }
    det_buffer_append_text(buffer, text);
}

static void assemble_statement(
    struct det_buffer *buffer, struct postgres_statement *statement, unsigned bits)
{
    append_part(buffer, statement, heads);
    for (size_t i = 0; i < POSTGRES_PART_COUNT; i++) {
        if (bits >> i & 1 && parts[i].check[0])
            append_part(buffer, statement, parts[i].check);
    }
    det_buffer_append_text(buffer, verdict_begin);
    for (size_t i = 0; i < POSTGRES_PART_COUNT; i++) {
        if (bits >> i & 1 && parts[i].check[0])
            det_buffer_format(buffer, " UNION ALL SELECT n, code FROM %s", parts[i].judges);
    }
    det_buffer_append_text(buffer, verdict_end);
    for (size_t i = 0; i < POSTGRES_PART_COUNT; i++) {
        if (bits >> i & 1)
            append_part(buffer, statement, parts[i].write);
    }
    det_buffer_append_text(buffer, answer);
}

static int make_statement(
    struct postgres_store *store, unsigned bits, struct postgres_statement *statement)
{
    struct det_buffer buffer;
    int r;

    statement->columns = DET_NEW_ARRAY(store->store.allocator, POSTGRES_COLUMN_COUNT + 1, uint8_t);
    if (!statement->columns)
        return DET_ERR_NO_MEMORY;
    det_buffer_init(&buffer, store->store.allocator);
    if (bits)
        assemble_statement(&buffer, statement, bits);
    else
        append_part(&buffer, statement, plain);
    r = det_buffer_status(&buffer);
    if (r == 0) {
        statement->text = det_postgres_qualify(store, det_buffer_text(&buffer));
        statement->slot = POSTGRES_STATEMENT_COUNT + bits;
    }
    det_buffer_deinit(&buffer);
    if (!statement->text) {
        DET_DELETE_ARRAY(store->store.allocator, statement->columns, POSTGRES_COLUMN_COUNT + 1);
        *statement = (struct postgres_statement){ 0 };
        return DET_ERR_NO_MEMORY;
    }
    return 0;
}

const struct postgres_statement *det_postgres_variant(struct postgres_store *store, unsigned bits)
{
    struct postgres_statement *statement = &store->variants[bits];
    int r = 0;

    det_assert(bits < POSTGRES_VARIANT_COUNT);
    det_mutex_lock(store->store.world, store->sql.mutex);
    if (!statement->text)
        r = make_statement(store, bits, statement);
    det_mutex_unlock(store->store.world, store->sql.mutex);
    return r < 0 ? NULL : statement;
}

void det_postgres_variants_close(struct postgres_store *store)
{
    for (size_t i = 0; i < POSTGRES_VARIANT_COUNT; i++) {
        struct postgres_statement *statement = &store->variants[i];

        if (!statement->text)
            continue;
        det_free_string(store->store.allocator, statement->text);
        DET_DELETE_ARRAY(store->store.allocator, statement->columns, POSTGRES_COLUMN_COUNT + 1);
    }
}
