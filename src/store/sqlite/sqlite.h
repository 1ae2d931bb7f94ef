/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite.h - the store in one SQLite file: declarations shared by the files of the driver.
 *
 *     senders --> group --> writer connection --> <file>-wal --- checkpoint ---> <file>
 *                           (one leader at a time, one transaction per batch)
 *     readers --> a pool of read connections, each with one transaction at a time
 *     <file>.lock is locked as long as it is open for writing
 *
 * Invariants
 *   1. The writer connection is used only inside the group: by a leader, or alone.
 *   2. A commit reads all its conditions, and encodes all its values, before its first write. So a
 *      refused commit has written nothing, and no savepoint is needed.
 *   3. Once a write or a sync failed, or the outcome of a COMMIT is unknown, `is_poisoned` stays
 *      set: nothing more is written, and closing does not checkpoint.
 *   4. A handle equals its row, or is stale: then the row is read again before the handle is
 *      used. */
#ifndef DET_STORE_SQLITE_SQLITE_H
#define DET_STORE_SQLITE_SQLITE_H

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/assert.h"
#include "base/buffer.h"
#include "os/os.h"
#include "store/chain.h"
#include "store/group_commit.h"
#include "store/log.h"
#include "store/row.h"
#include "store/sql/page.h"
#include "store/sql/renames.h"
#include "store/sql/sql.h"

#define DET_SQLITE_SCHEMA         7
#define DET_SQLITE_APPLICATION_ID 0x64657465
/* Number of pages in the log that triggers a checkpoint. */
#define DET_SQLITE_CHECKPOINT_PAGES 10000

/* Parameters of statements of sql/statements.def for values that a PostgreSQL statement gets from
 * its server: the clock, the identity of this opening, and a clock that is never set back. */
#define SQLITE_NOW    "?13"
#define SQLITE_OWNER  "?14"
#define SQLITE_STEADY "?15"

enum sqlite_statement {
#define SQLITE_STATEMENT(name, text) STATEMENT_##name,
#include "store/sqlite/statements.def"
#undef SQLITE_STATEMENT
    STATEMENT_COUNT
};

/* The cached binding of a parameter, which need not be bound again for an equal value: a number,
 * NULL, or a name, which is compared with the copy here that SQLite uses. Other values are bound
 * each time: SQLite assumes that they never change, which holds for one step only. */
#define BOUND_NAME_MAX 40
enum sqlite_bound_kind { BOUND_NOT, BOUND_NULL, BOUND_NUMBER, BOUND_NAME };
struct sqlite_bound {
    enum sqlite_bound_kind kind;
    int64_t number; /* or the size */
    char name[BOUND_NAME_MAX];
};
/* For statements that write an event: half of their parameters repeat. */
#define BOUND_MAX 18
/* Number of events per INSERT in large batches. */
#define SQLITE_ROWS 16

struct sqlite_connection {
    sqlite3 *database;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct sqlite_bound updated[BOUND_MAX], inserted[BOUND_MAX];
    struct sqlite_bound *appended; /* BOUND_MAX of each row; NULL: a reader */
    bool is_failed;                /* its input or output has failed */
    const struct det_allocator *allocator;
    const struct det_store *store;
    struct sqlite_connection *next; /* next free connection */
    struct det_buffer values;       /* decoded structs of the row under load */
};

/* One use of a statement: bind in order, step, read the columns, end. */
struct sqlite_call {
    struct sqlite_connection *connection;
    sqlite3_stmt *statement;
    struct sqlite_bound *kept; /* cached bindings of its parameters; NULL: none */
    int kept_count;
    int bound; /* number of bound parameters */
    int code;  /* of SQLite; the first error stays */
};

/* The driver's handle of an instance. */
struct sqlite_instance {
    const struct det_machine *machine;
    char *id;
    int64_t key;
    uint64_t sequence;
    int64_t last_event;
    int64_t owned; /* while loading: number of its rows not seen yet */
    struct det_chain_hash hash;
    char *reason;           /* NULL: none */
    struct det_buffer data; /* the record of the data, as in the row: most commits do not change it,
                             * but the row's checksum covers it */
    uint64_t prunings;      /* the store's counter when this was read */
    bool is_stale;
};

/* Buffers of a leader for writing a commit; reused by the next one. */
struct sqlite_scratch {
    struct det_buffer bytes, spans, hashes;
    size_t next_span;
};

/* An event to be inserted. Texts are borrowed during the batch; the payload belongs to the
 * scratch. */
struct sqlite_row {
    int64_t position, instance, previous;
    uint64_t sequence, version, visit;
    const char *from, *to, *event, *outcome, *event_id, *cause;
    uint16_t choice;
    bool is_timeout;
    det_time at;
    struct det_chain_bytes payload;
    struct det_chain_hash hash;
    const struct det_trace_context *trace;
};

/* The events of a batch that are not inserted yet: no statement of a batch reads events. */
struct sqlite_append {
    bool is_on; /* false: each is inserted at once */
    size_t count;
    struct sqlite_row rows[SQLITE_ROWS]; /* without their payloads */
    size_t offsets[SQLITE_ROWS];         /* offsets of their payloads, which move when the buffer
                                          * grows */
    struct det_buffer bytes;
    struct sqlite_bound bound[SQLITE_ROWS * BOUND_MAX];
};

/* The last acknowledged commit of a store. */
struct sqlite_mark {
    uint64_t generation;
    uint64_t salts; /* salts of the log, as bytes */
    uint64_t frames;
    int64_t position;
    det_time at;
    /* The part of the log that is in the file; older versions do not record this. */
    uint64_t checkpointed; /* frames */
    uint64_t page_at;      /* offset in the file of the page of the last frame */
    uint32_t page_size, page_sum;
    uint32_t file_sum; /* checksums of that page in the file, and of the header of the file */
    bool has_page;
    bool is_closed; /* everything was in the file and synced */
};

struct sqlite_store {
    union {
        struct det_store store;
        struct det_sql_store sql; /* embedded as the first member */
    };
    char *path, *vfs; /* vfs NULL: SQLite's default */
    uint64_t cache_pages;
    uint64_t checkpoint_pages; /* number of pages in the log that triggers a checkpoint */
    struct det_file *lock, *kept[2];
    struct det_group *group, *job_group; /* the second group: puts of jobs */
    struct sqlite_connection writer;     /* database NULL: opened for reading */
    struct sqlite_scratch scratch;
    struct sqlite_append append;
    bool was_there;    /* the file existed before it was opened for writing */
    bool accepts_loss; /* a backup is permitted although commits are lost */
    int64_t loss;      /* opened for reading: the result of det_sqlite_mark_lost() for
                        * `lost_mark` */
    struct sqlite_mark lost_mark;
    char job_owner[17]; /* identity of this opening: jobs running under another one have stopped */
    det_time job_epoch; /* the wall clock at BOOT 0, computed with the owner */
    int64_t next_position;
    int64_t committed;            /* the last committed position */
    struct det_file *mark;        /* NULL: cannot be written */
    uint64_t mark_generation;     /* generation of the last write */
    int wal_pages, checkpoint_at; /* pages in the log now, and those that trigger a checkpoint */
    atomic_bool is_poisoned, checkpoint_wanted;
    _Atomic uint64_t prunings;
    struct det_condition *given_back; /* signals the pool below; with `sql.mutex` */
    struct sqlite_connection *readers, *free;
    unsigned reader_count;
};

static inline struct sqlite_store *sqlite_store_of(struct det_store *store)
{
    return (struct sqlite_store *)(void *)store;
}

/* The writer is in a transaction. */
static inline void sqlite_assert_writing(const struct sqlite_store *store)
{
    det_assert(store->writer.database && !sqlite3_get_autocommit(store->writer.database));
}

static inline det_time sqlite_now(const struct sqlite_store *store)
{
    return det_world_now(store->store.world, DET_CLOCK_WALL);
}

static inline int sqlite_changed_rows(const struct sqlite_store *store)
{
    return sqlite3_changes(store->writer.database);
}

static inline struct sqlite_instance *sqlite_instance_of(struct det_store_instance *instance)
{
    return (struct sqlite_instance *)(void *)instance;
}

static inline struct det_chain_bytes det_sqlite_hash_bytes(const struct det_chain_hash *hash)
{
    return (struct det_chain_bytes){ hash->bytes, sizeof hash->bytes };
}

/* sqlite/place.c */

/* True if a file that is not empty exists at the path with this suffix. */
bool det_sqlite_is_there(const struct sqlite_store *store, const char *suffix);
/* True if this process may create files beside the store's. */
bool det_sqlite_folder_is_ours(const struct sqlite_store *store);
/* Checks that a store can exist at the path, or does exist if required. */
DET_MUST_CHECK int det_sqlite_place(
    const struct sqlite_store *store, const struct det_store_options *options,
    struct det_error *reterr);
/* The lock file stays when the store is closed: removing it could remove that of another
 * process. */
DET_MUST_CHECK int det_sqlite_lock_file(struct sqlite_store *store, struct det_error *reterr);

/* sqlite/connection.c */

/* Converts a code of SQLite; 0 for success. */
int det_sqlite_error(int code);
/* A write beyond the limit on file sizes is a failed write to SQLite, but nothing was written:
 * returns SQLITE_FULL, as on a full disk. Other codes are returned unchanged. `is_log`: the write
 * was to the log, else to the file. */
int det_sqlite_settle(sqlite3 *database, int code, bool is_log);
/* The remedy for an error, for its message. */
const char *det_sqlite_remedy(int r);
/* Fills `reterr`: the file, the operation, SQLite's message. Returns the error of `code`. */
int det_sqlite_explain(
    const struct sqlite_store *store, sqlite3 *database, int code, const char *what,
    struct det_error *reterr);
DET_MUST_CHECK int det_sqlite_connect(
    struct sqlite_store *store, bool can_write, bool can_create,
    struct sqlite_connection *connection, struct det_error *reterr);
void det_sqlite_disconnect(struct sqlite_connection *connection);
/* Takes a connection of the pool, waiting if necessary, and begins a reading transaction. */
DET_MUST_CHECK int det_sqlite_reader(struct sqlite_store *store, struct sqlite_connection **ret);
void det_sqlite_reader_end(struct sqlite_store *store, struct sqlite_connection *reader);

/* Begins the use of a statement. The call keeps an error, and det_sqlite_step() returns it. */
void det_sqlite_call(
    struct sqlite_connection *connection, enum sqlite_statement statement,
    struct sqlite_call *call);
void det_sqlite_text(struct sqlite_call *call, const char *text); /* A NULL text becomes NULL */
void det_sqlite_text_n(struct sqlite_call *call, const char *text, size_t size);
/* Like det_sqlite_text(), for a text that often repeats. */
void det_sqlite_name(struct sqlite_call *call, const char *name);
void det_sqlite_number(struct sqlite_call *call, int64_t number);
void det_sqlite_bytes(struct sqlite_call *call, struct det_chain_bytes bytes);
void det_sqlite_null(struct sqlite_call *call);
/* 1: a row; 0: no more rows; or an error. */
DET_MUST_CHECK int det_sqlite_step(struct sqlite_call *call);
/* Columns of the row, from 0. A text is never NULL if `is_nullable` is false. */
const char *det_sqlite_get_text(struct sqlite_call *call, int column, bool is_nullable);
int64_t det_sqlite_get_number(struct sqlite_call *call, int column);
struct det_chain_bytes det_sqlite_get_bytes(struct sqlite_call *call, int column);
/* DET_ERR_CORRUPT: not the size of a hash. */
DET_MUST_CHECK int det_sqlite_get_hash(
    struct sqlite_call *call, int column, struct det_chain_hash *ret);
/* DET_ERR_CORRUPT: the column says that the row does not match its checksum. */
DET_MUST_CHECK int det_sqlite_get_complete(struct sqlite_call *call, int column);
void det_sqlite_end(struct sqlite_call *call);
/* Steps and ends a statement without rows. */
DET_MUST_CHECK int det_sqlite_run(struct sqlite_call *call);
/* A statement without parameters and rows. */
DET_MUST_CHECK int det_sqlite_do(
    struct sqlite_connection *connection, enum sqlite_statement statement);
/* Sets `ret` to the first number of the first row, if there is a row. */
DET_MUST_CHECK int det_sqlite_ask_number(
    struct sqlite_connection *connection, enum sqlite_statement statement, int64_t *ret);
/* Rolls back the transaction, if there is one. After a failure the connection has failed, and is
 * still in the transaction. */
int det_sqlite_roll_back(struct sqlite_connection *connection);

/* sqlite/session.c */

/* One statement on a connection of the pool. */
struct sqlite_question {
    enum sqlite_statement statement;
    void (*bind)(struct sqlite_call *call, void *context); /* NULL: no parameters */
    int (*read)(struct sqlite_call *call, void *context);
    void *context;
};
/* Calls `read` for each row; a non-zero return value ends the walk and is returned. A search should
 * return 1 for its row: then 0 means not found. */
DET_MUST_CHECK int det_sqlite_ask(
    struct sqlite_store *store, const struct sqlite_question *question);

/* sqlite/tables.c */
DET_MUST_CHECK int det_sqlite_tables_create(
    struct sqlite_store *store, struct sqlite_connection *connection, struct det_error *reterr);
/* DET_ERR_CORRUPT, with the missing and mistyped columns. */
DET_MUST_CHECK int det_sqlite_tables_check(
    struct sqlite_store *store, sqlite3 *database, struct det_error *reterr);

/* sqlite/checksum.c: registers row_checksum() on a connection; a code of SQLite. */
DET_MUST_CHECK int det_sqlite_checksum_open(sqlite3 *database);

/* sqlite/schema.c: checks, creates or upgrades the tables, and reads the identity. */
DET_MUST_CHECK int det_sqlite_schema(
    struct sqlite_store *store, struct sqlite_connection *connection,
    const struct det_store_options *options, struct det_error *reterr);

/* sqlite/upgrade.c: upgrades an older schema, in a transaction that is left open. */
DET_MUST_CHECK int det_sqlite_upgrade(
    struct sqlite_store *store, struct sqlite_connection *connection, int64_t schema,
    struct det_error *reterr);

/* sqlite/mark.c: the last acknowledged commit, beside the file. */
/* Finds the mark of this store; of any store, while this one has no identity. */
bool det_sqlite_mark_find(const struct sqlite_store *store, struct sqlite_mark *ret);
/* True if acknowledged frames were in the log only. */
bool det_sqlite_mark_is_in_log(const struct sqlite_mark *mark);
/* True if the last writer closed the store with everything in the file and synced. The mark then
 * says that the store is open. Call this with the file locked, before the first write. */
bool det_sqlite_mark_take_closed(const struct sqlite_store *store);
/* Called while closing, after a successful checkpoint. */
void det_sqlite_mark_set_closed(const struct sqlite_store *store);
/* Number of positions lost against a mark; 0: none; -1: changes without positions. `database` must
 * have read something; `position` is the last existing one. */
int64_t det_sqlite_mark_lost(const struct sqlite_mark *mark, sqlite3 *database, int64_t position);
/* DET_ERR_CORRUPT, with the loss and the remedy. */
int det_sqlite_mark_refuse(
    const struct sqlite_store *store, const struct sqlite_mark *mark, int64_t lost,
    struct det_error *reterr);
/* For a store opened for reading: stores the loss against `mark` in `loss`. The mark must be read
 * before everything else. */
DET_MUST_CHECK int det_sqlite_mark_compare(
    struct sqlite_store *store, struct sqlite_connection *reader, const struct sqlite_mark *mark,
    struct det_error *reterr);
/* DET_ERR_CORRUPT: commits are lost. */
DET_MUST_CHECK int det_sqlite_mark_open(struct sqlite_store *store, struct det_error *reterr);
/* Called after a durable transaction, before it is acknowledged. */
void det_sqlite_mark_write(struct sqlite_store *store);
/* Called before a checkpoint: after a power failure an older mark would not match the file. */
void det_sqlite_mark_sync(struct sqlite_store *store);
void det_sqlite_mark_close(struct sqlite_store *store);

/* sqlite/write_batch.c */
int det_sqlite_commit(
    struct det_store *base, struct det_store_commit *const *commits, size_t count);
det_group_write_fn det_sqlite_write;
/* Runs a function in its own transaction on the writer, alone. 0: committed; else nothing was
 * changed, or the outcome is unknown (DET_ERR_IO). */
DET_MUST_CHECK int det_sqlite_alone(
    struct sqlite_store *store, int (*run)(struct sqlite_store *store, void *context),
    void *context);

/* sqlite/jobs_put.c: of `job_group` */
det_group_write_fn det_sqlite_jobs_write;

/* sqlite/commit.c: on the writer. */
struct sqlite_write {
    struct sqlite_store *store;
    struct det_store_commit *commit;
    struct sqlite_instance *instance;
    det_time now;
    int64_t owned; /* increment of `instances.owned` */
};
/* Creates the handle of a new instance, in the commit. */
DET_MUST_CHECK int det_sqlite_instance_open(
    struct sqlite_store *store, struct det_store_commit *commit);
void det_sqlite_instance_close(struct sqlite_store *store, struct sqlite_instance *instance);
/* Makes the handle equal to its row. */
DET_MUST_CHECK int det_sqlite_instance_refresh(
    struct sqlite_store *store, struct sqlite_instance *instance);
/* `ret_dirty` becomes true once a write must be undone after an error. */
DET_MUST_CHECK int det_sqlite_write_commit(struct sqlite_write *write, bool *ret_dirty);
/* Appends a value to the scratch. */
DET_MUST_CHECK int det_sqlite_encode_payload(
    struct sqlite_scratch *scratch, const struct det_machine *machine, const void *event);
DET_MUST_CHECK int det_sqlite_encode_data(
    struct sqlite_scratch *scratch, const struct det_machine *machine, const void *data);
/* The next encoded value, in the order of encoding. */
struct det_chain_bytes det_sqlite_next_value(struct sqlite_scratch *scratch);

/* sqlite/append.c: inserts events. */
void det_sqlite_append_init(struct sqlite_store *store);
void det_sqlite_append_deinit(struct sqlite_store *store);
/* Begins a batch; `is_many`: with many events. */
void det_sqlite_append_begin(struct sqlite_store *store, bool is_many);
DET_MUST_CHECK int det_sqlite_append(struct sqlite_store *store, const struct sqlite_row *row);
/* Inserts the rest. */
DET_MUST_CHECK int det_sqlite_append_end(struct sqlite_store *store);

/* sqlite/changes.c: changes of a commit beyond the head and the events. */
/* Checks that the event id is new, and that rows to take or update exist. `ret_owned` is the
 * increment of `instances.owned` when they are applied. */
DET_MUST_CHECK int det_sqlite_changes_check(const struct sqlite_write *write, int64_t *ret_owned);
/* Weight of an answer in `instances.owned`. */
#define SQLITE_OWNED_ANSWER ((int64_t)1 << 32)
/* Adds to `instances.owned`, in a transaction of the writer. */
DET_MUST_CHECK int det_sqlite_own(struct sqlite_store *store, int64_t key, int64_t owned);
/* Encodes the values to set, in the order of their use by apply. */
DET_MUST_CHECK int det_sqlite_changes_encode(const struct sqlite_write *write);
DET_MUST_CHECK int det_sqlite_changes_apply(const struct sqlite_write *write);

/* sqlite/load.c */

/* A head as in a row, with its checksum verified. Texts point into the row. */
struct sqlite_head {
    struct det_chain_head head;
    int64_t key;
    uint32_t checksum;
};
/* Reads the common columns of INSTANCE_LOAD, INSTANCE_NEXT and SNAPSHOT_READ. */
DET_MUST_CHECK int det_sqlite_head_read(struct sqlite_call *call, struct sqlite_head *ret);
/* Opens the handle of an instance, with copies of the values that it needs. */
DET_MUST_CHECK int det_sqlite_handle_open(
    struct sqlite_store *store, const struct det_machine *machine, const struct sqlite_head *row,
    struct sqlite_instance **ret);
/* Binds the columns from `version` to `checksum`, which is that of the head, and the increment of
 * `owned`. */
void det_sqlite_bind_head(
    struct sqlite_call *call, const struct det_chain_head *head, int64_t last_event, int64_t owned);
/* sqlite/repair.c */
int det_sqlite_repair(
    struct det_store *base, const struct det_machine *machine, const char *id,
    int (*derive)(
        void *context, struct det_store_instance *instance, struct det_store_loaded *loaded),
    void *context);
int det_sqlite_load(
    struct det_store *base, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret);
void det_sqlite_release(struct det_store *store, struct det_store_instance *instance);

/* sqlite/events.c */

/* An event as in a row; texts and bytes point into the row. */
struct sqlite_event {
    struct det_chain_event event;
    struct det_chain_hash hash;
    int64_t previous;
    bool has_trace;
    struct det_trace_context trace;
};
/* DET_ERR_CORRUPT: no event at that position, or one of another instance. End `call` after using
 * the row, also after an error. */
DET_MUST_CHECK int det_sqlite_event_read(
    struct sqlite_connection *connection, int64_t position, int64_t key, struct sqlite_call *call,
    struct sqlite_event *ret);
/* The part of an event needed to walk back. */
struct sqlite_step {
    int64_t position, previous;
    uint64_t sequence;
};
/* DET_ERR_CORRUPT also if the sequence is not the expected one. */
DET_MUST_CHECK int det_sqlite_step_read(
    struct sqlite_connection *connection, int64_t key, int64_t position, uint64_t expected,
    struct sqlite_step *ret);
int det_sqlite_events(
    struct det_store *base, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context);
/* Previous states from the events, most recent first, continued by the snapshot. */
DET_MUST_CHECK int det_sqlite_history(
    const struct sqlite_store *store, struct sqlite_connection *reader,
    const struct sqlite_instance *instance, struct det_store_loaded *loaded);

/* sqlite/log.c */
int det_sqlite_log(
    struct det_store *base, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next);

/* sqlite/prune.c */
int det_sqlite_prune(
    struct det_store *base, struct det_store_instance *instance, uint64_t sequence,
    det_time answers_before, uint64_t *ret);

/* sqlite/list.c */

int det_sqlite_list(
    struct det_store *base, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context);
int det_sqlite_due(
    struct det_store *base, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context,
    det_time *ret_next);
/* sqlite/session.c */
/* Reads renames added since the last call. */
DET_MUST_CHECK int det_sqlite_renames_refresh(
    struct sqlite_store *store, struct sqlite_connection *connection);
int det_sqlite_migrate(
    struct det_store *base, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr);

/* sqlite/lease.c */
/* The process that opens the file for writing is the only writer: all former holders are gone. */
int det_sqlite_lease_free_all(struct sqlite_store *store);
int det_sqlite_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret);
int det_sqlite_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret);

/* sqlite/keep.c, sqlite/check.c */
/* SQLite's checks report read errors and lack of memory as damage: returns that error; 0: real
 * damage. */
int det_sqlite_finding(const char *text);
int det_sqlite_check_loss(struct det_store *base, struct det_error *reterr);
int det_sqlite_backup(struct det_store *base, const char *path, struct det_error *reterr);
int det_sqlite_compact(struct det_store *base, struct det_error *reterr);
/* Checkpoints the log if it is long. Called after a commit, outside of the group. */
void det_sqlite_checkpoint(struct sqlite_store *store);
/* Called while closing: afterwards the mark records that everything is in the file. */
void det_sqlite_checkpoint_last(struct sqlite_store *store);
int det_sqlite_check(
    struct det_store *base, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context);

/* sqlite/documents.c */
extern const struct det_document_ops det_sqlite_documents;

/* sqlite/jobs.c */
extern const struct det_job_ops det_sqlite_jobs;

#endif
