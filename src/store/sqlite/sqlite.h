/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite.h - the store in one SQLite file: what the files of the driver share.
 *
 *     senders --> group --> writer connection --> <file>-wal --- checkpoint ---> <file>
 *                           (one leader at a time, one transaction per batch)
 *     readers --> a pool of read connections, each with one transaction at a time
 *     <file>.lock is locked as long as it is open for writing
 *
 * Invariants
 *   1. The writer connection is used only inside the group: by a leader, or alone.
 *   2. A commit reads all its conditions, and encodes all its values, before its first write. So
 *      one that is refused has written nothing, and no savepoint is needed.
 *   3. Once a write or a sync failed, or the end of a COMMIT is not known, `is_poisoned` stays set:
 *      nothing is written any more, and closing does not checkpoint.
 *   4. A handle says what its row says, or is stale: then it is read again before it counts. */
#ifndef DET_STORE_SQLITE_SQLITE_H
#define DET_STORE_SQLITE_SQLITE_H

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "os/os.h"
#include "store/chain.h"
#include "store/group.h"
#include "store/log.h"
#include "store/row.h"
#include "store/sql/page.h"
#include "store/sql/renames.h"
#include "store/sql/sql.h"

#define DET_SQLITE_SCHEMA         7
#define DET_SQLITE_APPLICATION_ID 0x64657465
/* After how many pages in the log they are brought into the file. */
#define DET_SQLITE_CHECKPOINT_PAGES 10000

/* Parameters of statements of sql/statements.def for what PostgreSQL asks its server: the clock,
 * which opening of the file this is, and a clock that is never set back. */
#define SQLITE_NOW    "?13"
#define SQLITE_OWNER  "?14"
#define SQLITE_STEADY "?15"

enum sqlite_statement {
#define SQLITE_STATEMENT(name, text) STATEMENT_##name,
#include "store/sqlite/statements.def"
#undef SQLITE_STATEMENT
    STATEMENT_COUNT
};

/* What a parameter is bound to, where it need not be bound again when it is wanted again: a number,
 * NULL, or a name, which is compared with the copy here that SQLite has. What lies elsewhere is
 * bound each time: SQLite is told that it never changes, and that holds for one step only. */
#define BOUND_NAME_MAX 40
enum sqlite_bound_kind { BOUND_NOT, BOUND_NULL, BOUND_NUMBER, BOUND_NAME };
struct sqlite_bound {
    enum sqlite_bound_kind kind;
    int64_t number; /* or the size */
    char name[BOUND_NAME_MAX];
};
/* Of the statements that write an event: there half of the parameters are what they were. */
#define BOUND_MAX 18
/* How many events one statement inserts, where there are so many. */
#define SQLITE_ROWS 16

struct sqlite_connection {
    sqlite3 *database;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct sqlite_bound updated[BOUND_MAX], inserted[BOUND_MAX];
    struct sqlite_bound *appended; /* BOUND_MAX of each row; NULL: of a reader */
    bool is_failed;                /* input or output has failed on it */
    const struct det_allocator *allocator;
    const struct det_store *store;
    struct sqlite_connection *next; /* of those that are free */
    struct det_buffer values;       /* decoded structs of the row that is loaded */
};

/* One use of a statement: bind in order, step, look at the columns, end. */
struct sqlite_call {
    struct sqlite_connection *connection;
    sqlite3_stmt *statement;
    struct sqlite_bound *kept; /* what its parameters are already; NULL: not known */
    int kept_count;
    int bound; /* parameters so far */
    int code;  /* of SQLite; the first one that is not good stays */
};

/* The driver's handle of an instance. */
struct sqlite_instance {
    const struct det_machine *machine;
    char *id;
    int64_t key;
    uint64_t sequence;
    int64_t last_event;
    int64_t owned; /* while it is loaded: how many of its rows were not seen yet */
    struct det_chain_hash hash;
    char *reason;           /* NULL: none */
    struct det_buffer data; /* the record of the data, as in the row: most commits do not change it,
                               but the row's checksum covers it */
    uint64_t prunings;      /* the store's, when this was read */
    bool is_stale;
};

/* What a leader works with while it writes a commit; kept from one to the next. */
struct sqlite_scratch {
    struct det_buffer bytes, spans, hashes;
    size_t next_span;
};

/* An event as a row to be. Texts are their owners', who keep them for the batch; the payload is the
 * scratch's. */
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

/* The events of a batch that are not inserted yet: nothing in a batch reads events. */
struct sqlite_append {
    bool is_on; /* else each is inserted at once */
    size_t count;
    struct sqlite_row rows[SQLITE_ROWS]; /* without their payloads */
    size_t offsets[SQLITE_ROWS];         /* of their payloads, which move when the bytes grow */
    struct det_buffer bytes;
    struct sqlite_bound bound[SQLITE_ROWS * BOUND_MAX];
};

/* How far a store was acknowledged. */
struct sqlite_mark {
    uint64_t generation;
    uint64_t salts; /* of the log, as bytes */
    uint64_t frames;
    int64_t position;
    det_time at;
    /* How much of the log is in the file; an older program does not say. */
    uint64_t checkpointed; /* frames */
    uint64_t page_at;      /* offset in the file of the page of the last frame */
    uint32_t page_size, page_sum;
    uint32_t file_sum; /* of that page as the file had it, and of the header of the file */
    bool has_page;
    bool is_closed; /* all was in the file and synced */
};

struct sqlite_store {
    union {
        struct det_store store;
        struct det_sql_store sql; /* begins with it */
    };
    char *path, *vfs; /* vfs NULL: SQLite's own choice */
    uint64_t cache_pages;
    uint64_t checkpoint_pages; /* in the log, after which they are brought into the file */
    struct det_file *lock, *kept[2];
    struct det_group *group, *job_group; /* the second one: puts of jobs */
    struct sqlite_connection writer;     /* database NULL: for reading only */
    struct sqlite_scratch scratch;
    struct sqlite_append append;
    bool was_there;    /* the file, before it was opened for writing */
    bool accepts_loss; /* what a store has lost does not keep it from being copied */
    int64_t loss;      /* for reading only: against `lost_mark`, as det_sqlite_mark_lost() says */
    struct sqlite_mark lost_mark;
    char job_owner[17]; /* which opening this is: what runs under another one runs no more */
    det_time job_epoch; /* the wall clock when BOOT was 0, as it was when the owner was made */
    int64_t next_position;
    int64_t committed;            /* the last position that is */
    struct det_file *mark;        /* NULL: it cannot be written */
    uint64_t mark_generation;     /* that was written last */
    int wal_pages, checkpoint_at; /* how long the log is; how long it may become */
    atomic_bool is_poisoned, checkpoint_wanted;
    _Atomic uint64_t prunings;
    struct det_condition *given_back; /* to the pool below; with `sql.mutex` */
    struct sqlite_connection *readers, *free;
    unsigned reader_count;
};

static inline struct sqlite_store *sqlite_store_of(struct det_store *store)
{
    return (struct sqlite_store *)(void *)store;
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

/* Whether there is a file that is not empty at the path with this suffix. */
bool det_sqlite_is_there(const struct sqlite_store *store, const char *suffix);
/* Whether this process may make files beside the store's. */
bool det_sqlite_folder_is_ours(const struct sqlite_store *store);
/* Whether a store can be there, or is, if it must be. */
DET_MUST_CHECK int det_sqlite_place(
    const struct sqlite_store *store, const struct det_store_options *options,
    struct det_error *reterr);
/* The lock file stays when the store is closed: removing it could remove another one's. */
DET_MUST_CHECK int det_sqlite_lock_file(struct sqlite_store *store, struct det_error *reterr);

/* sqlite/connection.c */

/* What a code of SQLite is for us; 0 for its good ones. */
int det_sqlite_error(int code);
/* A write beyond the limit on the size of files is to SQLite a failed one, but it is known that
 * nothing was written: SQLITE_FULL, as on a full disk. Any other code as it is. `is_log`: it was a
 * write to the log, else to the file. */
int det_sqlite_settle(sqlite3 *database, int code, bool is_log);
/* What to do about an error, for its message. */
const char *det_sqlite_remedy(int r);
/* Fills `reterr`: which file, what was tried, what SQLite says. Returns the error of `code`. */
int det_sqlite_explain(
    const struct sqlite_store *store, sqlite3 *database, int code, const char *what,
    struct det_error *reterr);
DET_MUST_CHECK int det_sqlite_connect(
    struct sqlite_store *store, bool can_write, bool can_create,
    struct sqlite_connection *connection, struct det_error *reterr);
void det_sqlite_disconnect(struct sqlite_connection *connection);
/* Takes a connection of the pool, waiting if need be, and begins to read. */
DET_MUST_CHECK int det_sqlite_reader(struct sqlite_store *store, struct sqlite_connection **ret);
void det_sqlite_reader_end(struct sqlite_store *store, struct sqlite_connection *reader);

/* Begins the use of a statement. An error is kept in the call, and det_sqlite_step() returns it. */
void det_sqlite_call(
    struct sqlite_connection *connection, enum sqlite_statement statement,
    struct sqlite_call *call);
void det_sqlite_text(struct sqlite_call *call, const char *text); /* NULL is NULL */
void det_sqlite_text_n(struct sqlite_call *call, const char *text, size_t size);
/* The same, for a text that is often what it was the last time. */
void det_sqlite_name(struct sqlite_call *call, const char *name);
void det_sqlite_number(struct sqlite_call *call, int64_t number);
void det_sqlite_bytes(struct sqlite_call *call, struct det_chain_bytes bytes);
void det_sqlite_null(struct sqlite_call *call);
/* 1: there is a row; 0: there is none any more; or an error. */
DET_MUST_CHECK int det_sqlite_step(struct sqlite_call *call);
/* Columns of the row, from 0. A text is never NULL where `is_nullable` is false. */
const char *det_sqlite_get_text(struct sqlite_call *call, int column, bool is_nullable);
int64_t det_sqlite_get_number(struct sqlite_call *call, int column);
struct det_chain_bytes det_sqlite_get_bytes(struct sqlite_call *call, int column);
/* DET_ERR_CORRUPT when it has not the size of a hash. */
DET_MUST_CHECK int det_sqlite_get_hash(
    struct sqlite_call *call, int column, struct det_chain_hash *ret);
/* DET_ERR_CORRUPT when this column says that the row does not match its checksum. */
DET_MUST_CHECK int det_sqlite_get_whole(struct sqlite_call *call, int column);
void det_sqlite_end(struct sqlite_call *call);
/* The end of a statement that gives no rows: steps and ends. */
DET_MUST_CHECK int det_sqlite_run(struct sqlite_call *call);
/* A statement without parameters and rows. */
DET_MUST_CHECK int det_sqlite_do(
    struct sqlite_connection *connection, enum sqlite_statement statement);
/* Sets `ret` to the first number of the first row of such a statement, if there is a row. */
DET_MUST_CHECK int det_sqlite_ask_number(
    struct sqlite_connection *connection, enum sqlite_statement statement, int64_t *ret);
/* Ends a transaction, if there is one, without its changes. When that fails the connection has
 * failed, and is still in it. */
int det_sqlite_roll_back(struct sqlite_connection *connection);

/* sqlite/session.c */

/* One statement, with a connection of the pool. */
struct sqlite_question {
    enum sqlite_statement statement;
    void (*bind)(struct sqlite_call *call, void *context); /* NULL: it has no parameters */
    int (*read)(struct sqlite_call *call, void *context);
    void *context;
};
/* Lets each row be read; a non-zero answer ends it and is returned. So a row that is looked for is
 * best answered with 1: then 0 says that there is none. */
DET_MUST_CHECK int det_sqlite_ask(
    struct sqlite_store *store, const struct sqlite_question *question);

/* sqlite/tables.c */
DET_MUST_CHECK int det_sqlite_tables_create(
    struct sqlite_store *store, struct sqlite_connection *connection, struct det_error *reterr);
/* DET_ERR_CORRUPT, with what is missing or of another type. */
DET_MUST_CHECK int det_sqlite_tables_check(
    struct sqlite_store *store, sqlite3 *database, struct det_error *reterr);

/* sqlite/checksum.c: the function row_checksum() of a connection; a code of SQLite. */
DET_MUST_CHECK int det_sqlite_checksum_open(sqlite3 *database);

/* sqlite/schema.c: the gate, and which store it is. */
DET_MUST_CHECK int det_sqlite_schema(
    struct sqlite_store *store, struct sqlite_connection *connection,
    const struct det_store_options *options, struct det_error *reterr);

/* sqlite/upgrade.c: from an older schema to ours, in a transaction that is left open. */
DET_MUST_CHECK int det_sqlite_upgrade(
    struct sqlite_store *store, struct sqlite_connection *connection, int64_t schema,
    struct det_error *reterr);

/* sqlite/mark.c: what was acknowledged, beside the file. */
/* The mark of this store, if there is one; of any, as long as this one has no identity. */
bool det_sqlite_mark_find(const struct sqlite_store *store, struct sqlite_mark *ret);
/* Whether acknowledged frames were in the log only. */
bool det_sqlite_mark_is_in_log(const struct sqlite_mark *mark);
/* Whether the last writer has closed it with all of it in the file and synced. From then on the
 * mark says that it is open; while this process has it locked, before anything is written. */
bool det_sqlite_mark_take_closed(const struct sqlite_store *store);
/* While it is closed, after a checkpoint that went well. */
void det_sqlite_mark_set_closed(const struct sqlite_store *store);
/* How many positions the store has lost against a mark; 0: nothing; -1: changes without positions.
 * `database` has read something; `position` is the last one that is there. */
int64_t det_sqlite_mark_lost(const struct sqlite_mark *mark, sqlite3 *database, int64_t position);
/* DET_ERR_CORRUPT, with what is lost and what to do. */
int det_sqlite_mark_refuse(
    const struct sqlite_store *store, const struct sqlite_mark *mark, int64_t lost,
    struct det_error *reterr);
/* Of a store that is being opened for reading: keeps what it has lost against `mark` in `loss`. The
 * mark was read before anything else. */
DET_MUST_CHECK int det_sqlite_mark_compare(
    struct sqlite_store *store, struct sqlite_connection *reader, const struct sqlite_mark *mark,
    struct det_error *reterr);
/* DET_ERR_CORRUPT when something is lost. */
DET_MUST_CHECK int det_sqlite_mark_open(struct sqlite_store *store, struct det_error *reterr);
/* After a durable transaction, before it is acknowledged. */
void det_sqlite_mark_write(struct sqlite_store *store);
/* Before a checkpoint: after a power failure an older mark would not match the file. */
void det_sqlite_mark_sync(struct sqlite_store *store);
void det_sqlite_mark_close(struct sqlite_store *store);

/* sqlite/batch.c */
int det_sqlite_commit(
    struct det_store *base, struct det_store_commit *const *commits, size_t count);
det_group_write_fn det_sqlite_write;
/* Runs something in a transaction of its own on the writer, alone. 0: committed; else nothing was
 * changed, or it is not known (DET_ERR_IO). */
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
    int64_t owned; /* what is added to `instances.owned` */
};
/* The handle of a new one, in the commit. */
DET_MUST_CHECK int det_sqlite_instance_open(
    struct sqlite_store *store, struct det_store_commit *commit);
void det_sqlite_instance_close(struct sqlite_store *store, struct sqlite_instance *instance);
/* Makes sure that the handle says what its row says. */
DET_MUST_CHECK int det_sqlite_instance_refresh(
    struct sqlite_store *store, struct sqlite_instance *instance);
/* `ret_dirty` becomes true once something was written that an error must undo. */
DET_MUST_CHECK int det_sqlite_write_commit(struct sqlite_write *write, bool *ret_dirty);
/* Appends a value to the scratch. */
DET_MUST_CHECK int det_sqlite_encode_payload(
    struct sqlite_scratch *scratch, const struct det_machine *machine, const void *event);
DET_MUST_CHECK int det_sqlite_encode_data(
    struct sqlite_scratch *scratch, const struct det_machine *machine, const void *data);
/* The next of the encoded values, in the order in which they were encoded. */
struct det_chain_bytes det_sqlite_next_value(struct sqlite_scratch *scratch);

/* sqlite/append.c: events become rows. */
void det_sqlite_append_init(struct sqlite_store *store);
void det_sqlite_append_deinit(struct sqlite_store *store);
/* The beginning of a batch; `is_many`: with many events. */
void det_sqlite_append_begin(struct sqlite_store *store, bool is_many);
DET_MUST_CHECK int det_sqlite_append(struct sqlite_store *store, const struct sqlite_row *row);
/* The end: inserts what is left. */
DET_MUST_CHECK int det_sqlite_append_end(struct sqlite_store *store);

/* sqlite/changes.c: what a commit changes beyond the head and the events. */
/* Reads: whether the event id is new, and what is taken or updated is there. `ret_owned` is what
 * applying them adds to `instances.owned`. */
DET_MUST_CHECK int det_sqlite_changes_check(const struct sqlite_write *write, int64_t *ret_owned);
/* Of an answer, in `instances.owned`. */
#define SQLITE_OWNED_ANSWER ((int64_t)1 << 32)
/* Adds to `instances.owned`, in a transaction of the writer. */
DET_MUST_CHECK int det_sqlite_own(struct sqlite_store *store, int64_t key, int64_t owned);
/* Encodes the values of what is set, in the order in which apply uses them. */
DET_MUST_CHECK int det_sqlite_changes_encode(const struct sqlite_write *write);
DET_MUST_CHECK int det_sqlite_changes_apply(const struct sqlite_write *write);

/* sqlite/load.c */

/* A head as a row has it, with its checksum looked at. The texts are the row's. */
struct sqlite_head {
    struct det_chain_head head;
    int64_t key;
    uint32_t checksum;
};
/* Reads the columns that INSTANCE_LOAD, INSTANCE_NEXT and SNAPSHOT_READ have in common. */
DET_MUST_CHECK int det_sqlite_head_read(struct sqlite_call *call, struct sqlite_head *ret);
/* The handle of an instance, which has copies of what it needs of the row. */
DET_MUST_CHECK int det_sqlite_handle_open(
    struct sqlite_store *store, const struct det_machine *machine, const struct sqlite_head *row,
    struct sqlite_instance **ret);
/* The columns from `version` to `checksum`, which is that of the head, and what is to be added to
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

/* An event as a row has it; texts and bytes are the row's. */
struct sqlite_event {
    struct det_chain_event event;
    struct det_chain_hash hash;
    int64_t previous;
    bool has_trace;
    struct det_trace_context trace;
};
/* DET_ERR_CORRUPT when there is none at that position, or it is another instance's. `call` must be
 * ended when the row is not looked at any more, also after an error. */
DET_MUST_CHECK int det_sqlite_event_read(
    struct sqlite_connection *connection, int64_t position, int64_t key, struct sqlite_call *call,
    struct sqlite_event *ret);
/* The same in short, for a walk back. */
struct sqlite_step {
    int64_t position, previous;
    uint64_t sequence;
};
/* DET_ERR_CORRUPT also when it has not the sequence that is expected there. */
DET_MUST_CHECK int det_sqlite_step_read(
    struct sqlite_connection *connection, int64_t key, int64_t position, uint64_t expected,
    struct sqlite_step *ret);
int det_sqlite_events(
    struct det_store *base, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context);
/* Previous states from the events, most recent first, and from the snapshot where they end. */
DET_MUST_CHECK int det_sqlite_history(
    const struct sqlite_store *store, struct sqlite_connection *reader,
    const struct sqlite_instance *instance, struct det_store_loaded *loaded);

/* sqlite/log.c */
int det_sqlite_log(
    struct det_store *base, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next);

/* sqlite/count.c */
int det_sqlite_count(
    struct det_store *base, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes);

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
/* Reads the renames that were added since. */
DET_MUST_CHECK int det_sqlite_renames_refresh(
    struct sqlite_store *store, struct sqlite_connection *connection);
int det_sqlite_migrate(
    struct det_store *base, const struct det_machine *machine, const struct det_rename *renames,
    size_t count, uint64_t *ret, struct det_error *reterr);

/* sqlite/lease.c */
/* The one who opens the file for writing is the only writer: all former holders are gone. */
int det_sqlite_lease_free_all(struct sqlite_store *store);
int det_sqlite_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret);
int det_sqlite_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret);

/* sqlite/keep.c, sqlite/check.c */
/* SQLite's checks tell what they could not read, or had no memory for, among the damage: that
 * error; 0: it is damage. */
int det_sqlite_complaint(const char *text);
int det_sqlite_check_loss(struct det_store *base, struct det_error *reterr);
int det_sqlite_backup(struct det_store *base, const char *path, struct det_error *reterr);
int det_sqlite_compact(struct det_store *base, struct det_error *reterr);
/* Brings the log into the file if there is much of it. After a commit, outside the group. */
void det_sqlite_checkpoint(struct sqlite_store *store);
/* While it is closed: the mark knows then that all is in the file. */
void det_sqlite_checkpoint_last(struct sqlite_store *store);
int det_sqlite_check(
    struct det_store *base, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context);

/* sqlite/documents.c */
extern const struct det_document_ops det_sqlite_documents;

/* sqlite/jobs.c */
extern const struct det_job_ops det_sqlite_jobs;

#endif
