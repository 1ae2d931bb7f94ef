/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.c - counts of one snapshot. Reads every instance, 0.6 s for a million, since an index of
 * states would make every transition more expensive. */
#include <detent/tool/store.h>

#include "os/os.h"
#include "store/count.h"
#include "store/sqlite/sqlite.h"

/* Columns of COUNT_INSTANCES, and of COUNT_OTHERS: machine, timers, effects, dead. */
enum { OF_MACHINE, OF_STATE, OF_STOPPED };
enum { OF_TIMERS = 1, OF_EFFECTS, OF_DEAD };

static int add_instance(struct sqlite_call *call, struct det_count *count)
{
    bool is_stopped = det_sqlite_get_number(call, OF_STOPPED) != 0;
    const struct det_store_counted row = {
        .machine = det_sqlite_get_text(call, OF_MACHINE, false),
        .state = det_sqlite_get_text(call, OF_STATE, false),
        .running = !is_stopped,
        .stopped = is_stopped,
    };

    return call->code == SQLITE_OK ? det_count_add(count, &row) : det_sqlite_error(call->code);
}

static int add_others(struct sqlite_call *call, struct det_count *count)
{
    const struct det_store_counted row = {
        .machine = det_sqlite_get_text(call, OF_MACHINE, false),
        .timers = (uint64_t)det_sqlite_get_number(call, OF_TIMERS),
        .effects = (uint64_t)det_sqlite_get_number(call, OF_EFFECTS),
        .dead = (uint64_t)det_sqlite_get_number(call, OF_DEAD),
    };

    return call->code == SQLITE_OK ? det_count_add(count, &row) : det_sqlite_error(call->code);
}

static int add_each(
    struct sqlite_connection *reader, enum sqlite_statement statement,
    int (*add)(struct sqlite_call *call, struct det_count *count), struct det_count *count)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, statement, &call);
    while ((r = det_sqlite_step(&call)) > 0) {
        r = add(&call, count);
        if (r < 0)
            break;
    }
    det_sqlite_end(&call);
    return r;
}

/* The size of the file and its log. */
static uint64_t size_of(sqlite3 *database)
{
    static const int which[] = { SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER };
    sqlite3_int64 total = 0;

    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        sqlite3_file *file = NULL;
        sqlite3_int64 size = 0;

        if (sqlite3_file_control(database, "main", which[i], (void *)&file) == SQLITE_OK && file &&
            file->pMethods && file->pMethods->xFileSize(file, &size) == SQLITE_OK)
            total += size;
    }
    return (uint64_t)total;
}

int det_sqlite_count(
    struct det_store *base, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_connection *reader;
    struct det_count count;
    uint64_t bytes;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    det_count_init(&count, base->allocator);
    r = add_each(reader, STATEMENT_COUNT_OTHERS, add_others, &count);
    if (r == 0)
        r = add_each(reader, STATEMENT_COUNT_INSTANCES, add_instance, &count);
    bytes = size_of(reader->database);
    det_sqlite_reader_end(store, reader);
    if (r == 0)
        r = det_count_report(&count, visit, context);
    det_count_deinit(&count);
    if (r == 0)
        *ret_bytes = bytes;
    return r;
}
