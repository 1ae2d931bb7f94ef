/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connection.c - connections to the file, and the use of their statements. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* Longest wait for another process that opens, closes or recovers the file. */
#define BUSY_MS 5000

static const char *const statement_texts[STATEMENT_COUNT] = {
#define SQLITE_STATEMENT(name, text) [STATEMENT_##name] = (text),
#include "store/sqlite/statements.def"
#undef SQLITE_STATEMENT
};

int det_sqlite_error(int code)
{
    if (code == SQLITE_IOERR_NOMEM)
        return DET_ERR_NO_MEMORY;
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOMEM:
        return DET_ERR_NO_MEMORY;
    case SQLITE_FULL:
        return DET_ERR_NO_SPACE;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return DET_ERR_READ_ONLY;
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR: /* a statement that does not fit the tables */
        return DET_ERR_CORRUPT;
    case SQLITE_NOTADB:
        return DET_ERR_FOREIGN;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return DET_ERR_BUSY;
    case SQLITE_TOOBIG:
        return DET_ERR_LIMIT;
    default:
        return DET_ERR_IO;
    }
}

int det_sqlite_settle(sqlite3 *database, int code, bool is_log)
{
    sqlite3_file *file = NULL;
    int number = 0;

    if (code != SQLITE_IOERR_WRITE)
        return code;
    (void)sqlite3_file_control(
        database, "main", is_log ? SQLITE_FCNTL_JOURNAL_POINTER : SQLITE_FCNTL_FILE_POINTER, &file);
    if (file && file->pMethods)
        (void)file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
    return number == EFBIG ? SQLITE_FULL : code;
}

const char *det_sqlite_remedy(int r)
{
    switch (r) {
    case DET_ERR_NO_SPACE:
        return "make space on the disk, or raise the limit on the size of files, then try again";
    case DET_ERR_READ_ONLY:
        return "change its permissions, or open it for reading only";
    case DET_ERR_CORRUPT:
        return "take the newest backup; nothing was changed";
    case DET_ERR_FOREIGN:
        return "give another path; this file was left as it is";
    case DET_ERR_BUSY:
        return "another process keeps it busy; try again";
    case DET_ERR_NO_MEMORY:
        return "nothing was changed";
    default:
        return "check the path, its folder, their permissions, and the disk";
    }
}

int det_sqlite_explain(
    const struct sqlite_store *store, sqlite3 *database, int code, const char *what,
    struct det_error *reterr)
{
    int number = database ? sqlite3_system_errno(database) : 0;
    const char *text = number ? strerrordesc_np(number) : NULL;
    int r = det_sqlite_error(code);

    (void)det_error_set(
        reterr, r, "%s: cannot %s: %s%s%s; %s", store->path, what, sqlite3_errstr(code),
        text ? ": " : "", text ? text : "", det_sqlite_remedy(r));
    if (reterr && r == DET_ERR_IO)
        reterr->cause = number;
    return r;
}

static int set_up(struct sqlite_store *store, sqlite3 *database, bool can_write)
{
    char text[64];
    int code;

    sqlite3_extended_result_codes(database, 1);
    code = sqlite3_busy_timeout(database, BUSY_MS);
    if (code == SQLITE_OK)
        code = det_sqlite_checksum_open(database);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (code == SQLITE_OK && !can_write)
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(
            database,
            "PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0; PRAGMA synchronous = FULL;"
            "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;"
            "PRAGMA journal_size_limit = 67108864",
            NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    sqlite3_snprintf(
        sizeof text, text, "PRAGMA cache_size = %llu",
        (unsigned long long)(can_write ? store->cache_pages : store->cache_pages / 4 + 1));
    return sqlite3_exec(database, text, NULL, NULL, NULL);
}

static int open_at(
    struct sqlite_store *store, const char *place, int flags, struct sqlite_connection *connection)
{
    int code;

    code = sqlite3_open_v2(place, &connection->database, flags, store->vfs);
    return code == SQLITE_OK
               ? set_up(store, connection->database, (flags & SQLITE_OPEN_READWRITE) != 0)
               : code;
}

/* "file:orders.db?immutable=1", with special characters escaped as %25. */
static void write_uri(const char *path, struct det_buffer *text)
{
    det_buffer_append_text(text, path[0] == '/' ? "file://" : "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            det_buffer_format(text, "%%%02X", (unsigned)*path);
        else
            det_buffer_append_char(text, *path);
    }
    det_buffer_append_text(text, "?immutable=1");
}

/* Opens the file without its log. */
static int open_alone(struct sqlite_store *store, int flags, struct sqlite_connection *connection)
{
    struct det_buffer text;
    int code = SQLITE_NOMEM;

    (void)sqlite3_close(connection->database);
    connection->database = NULL;
    det_buffer_init(&text, store->store.allocator);
    write_uri(store->path, &text);
    if (det_buffer_status(&text) == 0)
        code = open_at(store, det_buffer_text(&text), flags | SQLITE_OPEN_URI, connection);
    det_buffer_deinit(&text);
    return code;
}

/* To read a file with a log, SQLite creates files beside it; true if this process lacks the
 * permission. */
static bool is_shut_out(const struct sqlite_store *store, int code)
{
    return ((code & 0xff) == SQLITE_READONLY || (code & 0xff) == SQLITE_CANTOPEN) &&
           !det_sqlite_folder_is_ours(store);
}

/* The file alone is complete if its log is empty and no process has it open. */
static int open_to_read(
    struct sqlite_store *store, int flags, struct sqlite_connection *connection,
    struct det_error *reterr)
{
    int code;

    flags |= SQLITE_OPEN_READONLY;
    code = open_at(store, store->path, flags, connection);
    if (code != SQLITE_OK && is_shut_out(store, code)) {
        if (det_sqlite_is_there(store, "-wal"))
            return det_error_set(
                reterr, DET_ERR_READ_ONLY,
                "%s: there are commits in %s-wal, and reading them needs permission to write to "
                "the "
                "folder; read the store as a user with that permission",
                store->path, store->path);
        if (!det_sqlite_is_there(store, "-shm"))
            code = open_alone(store, flags, connection);
    }
    if (code == SQLITE_OK)
        return 0;
    return det_sqlite_explain(store, connection->database, code, "open it", reterr);
}

static int open_to_write(
    struct sqlite_store *store, int flags, struct sqlite_connection *connection,
    struct det_error *reterr)
{
    int code;

    code = open_at(store, store->path, flags | SQLITE_OPEN_READWRITE, connection);
    if (code == SQLITE_OK)
        return 0;
    return det_sqlite_explain(store, connection->database, code, "open it", reterr);
}

int det_sqlite_connect(
    struct sqlite_store *store, bool can_write, bool can_create,
    struct sqlite_connection *connection, struct det_error *reterr)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int r;

    det_assert(!connection->database && (can_write || !can_create));
    connection->allocator = store->store.allocator;
    connection->store = &store->store;
    det_buffer_init(&connection->values, store->store.allocator);
    if (can_write)
        r = open_to_write(store, flags | (can_create ? SQLITE_OPEN_CREATE : 0), connection, reterr);
    else
        r = open_to_read(store, flags, connection, reterr);
    if (r < 0)
        det_sqlite_disconnect(connection);
    return r;
}

void det_sqlite_disconnect(struct sqlite_connection *connection)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(connection->statements[i]);
        connection->statements[i] = NULL;
    }
    if (connection->database) {
        int code = sqlite3_close(connection->database);

        /* Nothing of it is in use. */
        det_assert(code == SQLITE_OK);
    }
    connection->database = NULL;
    memset(connection->updated, 0, sizeof connection->updated);
    memset(connection->inserted, 0, sizeof connection->inserted);
    det_buffer_deinit(&connection->values);
}

/* Under the mutex: the free readers are distinct readers of the pool. */
static void assert_readers(const struct sqlite_store *store)
{
    unsigned count = 0;

    for (const struct sqlite_connection *free = store->free; DET_CHECKS && free;
         free = free->next) {
        det_assert(free >= store->readers && free < store->readers + store->reader_count);
        count++;
        det_assert(count <= store->reader_count);
    }
}

int det_sqlite_reader(struct sqlite_store *store, struct sqlite_connection **ret)
{
    struct det_world *world = store->store.world;
    struct sqlite_connection *reader;
    int r = 0;

    det_mutex_lock(world, store->sql.mutex);
    while (!store->free && r == 0)
        r = det_condition_wait(world, store->given_back, store->sql.mutex, DET_NEVER);
    assert_readers(store);
    reader = store->free;
    if (reader)
        store->free = reader->next;
    det_mutex_unlock(world, store->sql.mutex);
    if (!reader)
        return r;
    /* The previous user may have lacked the memory to end the transaction. */
    r = det_sqlite_roll_back(reader);
    if (r == 0)
        r = det_sqlite_do(reader, STATEMENT_BEGIN_READ);
    if (r < 0) {
        det_sqlite_reader_end(store, reader);
        return r;
    }
    *ret = reader;
    return 0;
}

void det_sqlite_reader_end(struct sqlite_store *store, struct sqlite_connection *reader)
{
    struct det_world *world = store->store.world;

    det_assert(reader >= store->readers && reader < store->readers + store->reader_count);
    (void)det_sqlite_roll_back(reader);
    det_mutex_lock(world, store->sql.mutex);
    reader->next = store->free;
    store->free = reader;
    assert_readers(store);
    det_mutex_unlock(world, store->sql.mutex);
    det_condition_signal(world, store->given_back);
}

/* Keeps the first error code. */
static void note_code(struct sqlite_call *call, int code)
{
    if (code == SQLITE_OK)
        return;
    if (call->code == SQLITE_OK)
        call->code = code;
    if ((code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_NOMEM)
        call->connection->is_failed = true;
    if (call->kept)
        memset(call->kept, 0, (size_t)call->kept_count * sizeof *call->kept);
}

static void find_kept(
    struct sqlite_connection *connection, enum sqlite_statement statement, struct sqlite_call *call)
{
    call->kept_count = BOUND_MAX;
    if (statement == STATEMENT_INSTANCE_UPDATE) {
        call->kept = connection->updated;
    } else if (statement == STATEMENT_EVENT_INSERT) {
        call->kept = connection->inserted;
    } else if (statement == STATEMENT_EVENT_INSERT_MANY) {
        call->kept = connection->appended;
        call->kept_count = SQLITE_ROWS * BOUND_MAX;
    }
}

void det_sqlite_call(
    struct sqlite_connection *connection, enum sqlite_statement statement, struct sqlite_call *call)
{
    sqlite3_stmt **kept = &connection->statements[statement];

    det_check(connection->database && (size_t)statement < STATEMENT_COUNT);
    /* A statement has one use at a time. */
    det_check(!*kept || !sqlite3_stmt_busy(*kept));
    *call = (struct sqlite_call){ .connection = connection };
    if (!*kept)
        note_code(
            call, sqlite3_prepare_v3(
                      connection->database, statement_texts[statement], -1,
                      SQLITE_PREPARE_PERSISTENT, kept, NULL));
    call->statement = *kept;
    find_kept(connection, statement, call);
}

/* The next parameter; false: skip binding. `ret`: its cached binding, or NULL. */
static inline bool next_bound(struct sqlite_call *call, struct sqlite_bound **ret)
{
    int index = call->bound++;

    det_assert(!call->kept || index < call->kept_count);
    det_check(!call->statement || index < sqlite3_bind_parameter_count(call->statement));
    *ret = call->kept ? &call->kept[index] : NULL;
    return call->code == SQLITE_OK;
}

/* Like next_bound(), for values cached by kind and number; false also if the value is bound
 * already. */
static inline bool must_bind(struct sqlite_call *call, enum sqlite_bound_kind kind, int64_t number)
{
    struct sqlite_bound *kept;

    if (!next_bound(call, &kept))
        return false;
    if (!kept)
        return true;
    if (kind != BOUND_NOT && kept->kind == kind && kept->number == number)
        return false;
    kept->kind = kind;
    kept->number = number;
    return true;
}

void det_sqlite_text_n(struct sqlite_call *call, const char *text, size_t size)
{
    if (must_bind(call, text ? BOUND_NOT : BOUND_NULL, 0))
        note_code(
            call, sqlite3_bind_text64(
                      call->statement, call->bound, text, size, SQLITE_STATIC, SQLITE_UTF8));
}

void det_sqlite_text(struct sqlite_call *call, const char *text)
{
    det_sqlite_text_n(call, text, text ? strlen(text) : 0);
}

void det_sqlite_name(struct sqlite_call *call, const char *name)
{
    size_t size = name ? strlen(name) : 0;
    struct sqlite_bound *kept;

    if (!call->kept || !name || size >= BOUND_NAME_MAX) {
        det_sqlite_text(call, name);
        return;
    }
    if (!next_bound(call, &kept) || (kept->kind == BOUND_NAME && kept->number == (int64_t)size &&
                                     memcmp(kept->name, name, size) == 0))
        return;
    kept->kind = BOUND_NAME;
    kept->number = (int64_t)size;
    memcpy(kept->name, name, size);
    note_code(
        call,
        sqlite3_bind_text(call->statement, call->bound, kept->name, (int)size, SQLITE_STATIC));
}

void det_sqlite_number(struct sqlite_call *call, int64_t number)
{
    if (must_bind(call, BOUND_NUMBER, number))
        note_code(call, sqlite3_bind_int64(call->statement, call->bound, number));
}

void det_sqlite_bytes(struct sqlite_call *call, struct det_chain_bytes bytes)
{
    if (must_bind(call, bytes.data ? BOUND_NOT : BOUND_NULL, 0))
        note_code(
            call, sqlite3_bind_blob64(
                      call->statement, call->bound, bytes.data, bytes.size, SQLITE_STATIC));
}

void det_sqlite_null(struct sqlite_call *call)
{
    det_sqlite_text(call, NULL);
}

int det_sqlite_step(struct sqlite_call *call)
{
    int code;

    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    det_check(call->statement);
    code = sqlite3_step(call->statement);
    if (code == SQLITE_ROW)
        return 1;
    if (code == SQLITE_DONE)
        return 0;
    code = det_sqlite_settle(call->connection->database, code, true);
    note_code(call, code);
    return det_sqlite_error(code);
}

const char *det_sqlite_get_text(struct sqlite_call *call, int column, bool is_nullable)
{
    const char *text = (const char *)sqlite3_column_text(call->statement, column);

    det_check(column >= 0 && column < sqlite3_data_count(call->statement));
    if (text)
        return text;
    if (sqlite3_errcode(call->connection->database) == SQLITE_NOMEM)
        note_code(call, SQLITE_NOMEM);
    return is_nullable ? NULL : "";
}

int64_t det_sqlite_get_number(struct sqlite_call *call, int column)
{
    det_check(column >= 0 && column < sqlite3_data_count(call->statement));
    return sqlite3_column_int64(call->statement, column);
}

struct det_chain_bytes det_sqlite_get_bytes(struct sqlite_call *call, int column)
{
    const void *data = sqlite3_column_blob(call->statement, column);
    int size = sqlite3_column_bytes(call->statement, column);

    det_check(column >= 0 && column < sqlite3_data_count(call->statement));
    /* The column type alone identifies a blob without bytes. */
    if (!data && sqlite3_column_type(call->statement, column) == SQLITE_BLOB && size == 0)
        data = "";
    if (!data && sqlite3_errcode(call->connection->database) == SQLITE_NOMEM)
        note_code(call, SQLITE_NOMEM);
    return (struct det_chain_bytes){ data, (size_t)size };
}

int det_sqlite_get_hash(struct sqlite_call *call, int column, struct det_chain_hash *ret)
{
    struct det_chain_bytes bytes = det_sqlite_get_bytes(call, column);

    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    if (!bytes.data || bytes.size != DET_CHAIN_SIZE)
        return DET_ERR_CORRUPT;
    memcpy(ret->bytes, bytes.data, DET_CHAIN_SIZE);
    return 0;
}

int det_sqlite_get_complete(struct sqlite_call *call, int column)
{
    bool is_complete = det_sqlite_get_number(call, column) == 1;

    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    return is_complete ? 0 : DET_ERR_CORRUPT;
}

void det_sqlite_end(struct sqlite_call *call)
{
    /* It returns the code of the last step. */
    if (call->statement)
        (void)sqlite3_reset(call->statement);
    call->statement = NULL;
}

int det_sqlite_run(struct sqlite_call *call)
{
    int r;

    r = det_sqlite_step(call);
    det_sqlite_end(call);
    return r > 0 ? 0 : r;
}

int det_sqlite_roll_back(struct sqlite_connection *connection)
{
    int r = 0;

    if (!sqlite3_get_autocommit(connection->database))
        r = det_sqlite_do(connection, STATEMENT_ROLLBACK);
    if (r < 0)
        connection->is_failed = true;
    det_assert(r < 0 || sqlite3_get_autocommit(connection->database));
    return r;
}

int det_sqlite_do(struct sqlite_connection *connection, enum sqlite_statement statement)
{
    struct sqlite_call call;

    det_sqlite_call(connection, statement, &call);
    return det_sqlite_run(&call);
}

int det_sqlite_ask_number(
    struct sqlite_connection *connection, enum sqlite_statement statement, int64_t *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, statement, &call);
    r = det_sqlite_step(&call);
    if (r > 0)
        *ret = det_sqlite_get_number(&call, 0);
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}
