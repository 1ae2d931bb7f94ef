/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres.h - the store on PostgreSQL: declarations shared by the files of the driver.
 * docs/formats/sql_schema.md has the tables.
 *
 *     commits of many threads -- group -- a writer: one statement for all, with arrays
 *     everything else --------------------- a job: some statements in one pipeline
 *                                            |
 *                                         a connection of the pool, libpq in pipeline mode
 *
 * A connection:
 *
 *     closed --connect, check--> free --take--> taken --give--> free
 *       ^                                         |
 *       +------------- lost, or in an unexpected state
 *
 * Invariants
 *   1. A transaction ends with the Sync at the end of its pipeline, and never before. A transaction
 *      that was cut off before the Sync was sent did not happen; one that was not answered after it
 *      has an unknown outcome. An unknown commit is never sent again.
 *   2. Every connection is checked before its first use: the server syncs, it is the same store,
 *      and the last acknowledged commit exists. If that commit is missing, the server was restored
 *      to an earlier state, and all further commits fail (`is_poisoned`).
 *   3. Locks on instances are taken in the order of their keys, locks on other rows after that of
 *      their instance; code that takes rows out of this order skips locked ones.
 *   4. Texts of statements are constant except for the schema, whose name is checked when opening.
 *      All values are parameters. */
#ifndef DET_STORE_POSTGRES_POSTGRES_H
#define DET_STORE_POSTGRES_POSTGRES_H

#include <libpq-fe.h>
#include <stdatomic.h>

#include <detent/driver/store.h>
#include <detent/tool/store.h>

#include "base/buffer.h"
#include "store/chain.h"
#include "store/group_commit.h"
#include "store/sql/renames.h"
#include "store/sql/sql.h"

#define POSTGRES_SCHEMA      7  /* the version of the tables */
#define POSTGRES_NAME_MAX    63 /* bytes in a name in PostgreSQL */
#define POSTGRES_RESULTS_MAX 40 /* statements in one pipeline */
#define POSTGRES_OPTIONS_MAX 64 /* of a connection */
#define POSTGRES_TEXT_MAX    240

/* Nanoseconds since 1970 by the server's clock, exact: its unit is the microsecond. */
#define POSTGRES_CLOCK "((extract(epoch FROM clock_timestamp()) * 1000000)::int8 * 1000)"

/* Fixed statements, see postgres/statements.def. */
enum postgres_statement_id {
#define DET_POSTGRES_STATEMENT(name, text) POSTGRES_##name,
#include "store/postgres/statements.def"
#undef DET_POSTGRES_STATEMENT
    POSTGRES_STATEMENT_COUNT
};
/* Statements of commits, which are composed of parts; see postgres/statement_parts.c. */
#define POSTGRES_PART_COUNT    8
#define POSTGRES_VARIANT_COUNT (1u << POSTGRES_PART_COUNT)
/* A number for each statement that a connection may have prepared. */
#define POSTGRES_SLOT_COUNT (POSTGRES_STATEMENT_COUNT + POSTGRES_VARIANT_COUNT)

struct postgres_statement {
    char *text;       /* NULL: not composed yet */
    unsigned slot;    /* UINT_MAX: never prepared */
    uint8_t *columns; /* commits: the parameter number of each column */
    size_t column_count;
};

/* A parsed URL. */
struct postgres_url {
    char schema[POSTGRES_NAME_MAX + 1];
    bool is_pooled;
    PQconninfoOption *given;
    const char *keywords[POSTGRES_OPTIONS_MAX], *values[POSTGRES_OPTIONS_MAX];
    char options[512], timeout_seconds[24], timeout_ms[24];
};

/* The outcome of a pipeline. */
enum postgres_action {
    POSTGRES_DONE,
    POSTGRES_RETRY,
    POSTGRES_RECONNECT,
    POSTGRES_UNKNOWN,
    POSTGRES_FATAL,
};
struct postgres_failure {
    enum postgres_action action;
    int result;                   /* result for the caller, unless it is retried */
    char sqlstate[6];             /* "": none */
    char text[POSTGRES_TEXT_MAX]; /* for people */
};

struct postgres_connection {
    struct postgres_store *store;
    PGconn *pq; /* NULL: closed */
    struct det_poller *poller;
    unsigned watched;
    const atomic_bool *stop_wanted; /* NULL, or a flag that ends waiting */
    bool is_taken;
    uint8_t prepared[(POSTGRES_SLOT_COUNT + 7) / 8];
};

struct postgres_batch;
struct postgres_listener;
struct postgres_store;

/* A transaction of several exchanges, on one connection. */
struct postgres_session {
    struct postgres_store *store;
    struct postgres_connection *connection;
    struct postgres_failure failure; /* of the last one */
    det_time span;                   /* time limit of one exchange; long unless it is changed after
                                      * opening */
};

struct postgres_store {
    union {
        struct det_store store;
        struct det_sql_store sql; /* embedded as the first member */
    };
    struct postgres_url url;
    det_time timeout;
    char channel[48];
    struct det_group *group, *job_group; /* the second group: puts of jobs */
    struct postgres_batch *batches;      /* one for each writer */
    unsigned writer_count;
    struct postgres_listener *listener; /* NULL: no listener */
    struct postgres_statement statements[POSTGRES_STATEMENT_COUNT];

    struct det_condition *freed; /* `sql.mutex` protects this and the following fields */
    uint64_t tickets, turn;      /* connections are assigned in the order of requests */
    struct postgres_connection *connections;
    unsigned connection_count;
    struct postgres_statement variants[POSTGRES_VARIANT_COUNT];
    int64_t next_key, last_key; /* reserved keys of new instances */
    int64_t witness_key;        /* the last acknowledged commit; 0: none */
    uint64_t witness_sequence;
    det_time swept_at;                   /* time of the last deletion of expired event ids */
    char unreachable[POSTGRES_TEXT_MAX]; /* why there is no connection; see `is_unreachable` */
    struct {
        uint64_t final; /* no row will appear up to this position */
        uint64_t seen;  /* nor up to this one, once `writers` are done */
        char *writers;  /* names of transactions, separated by one space; NULL: unknown */
    } log;

    struct det_condition *limited; /* `wait_limit` was set */
    bool is_queueing;              /* `place` is in use */
    struct det_condition *place_freed;
    struct postgres_session place; /* this node's place in the queue of an instance */
    _Atomic det_time wait_limit;   /* monotonic: no wait ends later; see `cancel` */
    _Atomic det_time offset;       /* offset of the server's clock from the boot clock */
    _Atomic det_time last_now;     /* the last time returned by `now` */
    atomic_bool is_poisoned;
    atomic_bool
        is_unreachable; /* the last connection attempt failed, and nothing was received since */
};

/* The handle of an instance: the state needed by its next commit. Data and reason are as stored. */
struct postgres_instance {
    const struct det_machine *machine;
    int64_t key;
    uint64_t sequence;
    det_time started_at;
    struct det_chain_hash hash;
    char *data;
    const char *reason; /* NULL: none */
    char *reason_room;  /* NULL, or DET_REASON_MAX + 1 bytes */
    size_t data_size, data_capacity;
    char id[DET_ID_MAX + 1];
};

static inline struct postgres_store *postgres_store_of(struct det_store *store)
{
    return (struct postgres_store *)(void *)store;
}

static inline struct postgres_instance *postgres_instance_of(struct det_store_instance *instance)
{
    return (struct postgres_instance *)(void *)instance;
}

/* postgres/connection_url.c */
/* DET_ERR_INVALID, with a text that never contains a password. */
DET_MUST_CHECK int det_postgres_url_init(
    struct postgres_url *url, const char *rest, const struct det_store_options *options,
    struct det_error *reterr);
void det_postgres_url_deinit(struct postgres_url *url);
/* The error of libpq, in one line, without the password. */
void det_postgres_url_scrub(
    const struct postgres_url *url, const char *text, char *target, size_t capacity);

/* postgres/server_error.c */
/* The line of sqlstate.def for a code. */
void det_postgres_failure_of(const char *sqlstate, struct postgres_failure *ret);

/* postgres/exchange.c: statements and their results. */
struct postgres_exchange {
    struct postgres_connection *connection;
    struct postgres_failure failure;
    unsigned expected;                    /* expected answers before the Sync's */
    unsigned completed;                   /* good answers received */
    uint64_t silent;                      /* a bit for each answer without a result, such as that of
                                           * a prepare */
    unsigned slots[POSTGRES_RESULTS_MAX]; /* statements prepared in this exchange */
    unsigned slot_count, prepared_count;
    PGresult *results[POSTGRES_RESULTS_MAX]; /* results of the statements, in their order */
    unsigned result_count;
    bool is_broken;  /* libpq failed to queue a statement; nothing was sent completely */
    bool is_rubbish; /* an answer cannot belong to the statement sent */
};
struct postgres_values {
    int count;
    const char *const *values;
    const int *lengths;
};
void det_postgres_exchange_init(
    struct postgres_exchange *exchange, struct postgres_connection *connection);
void det_postgres_exchange_deinit(struct postgres_exchange *exchange);
/* Puts a statement into the pipeline; `values` may be NULL. */
void det_postgres_exchange_send(
    struct postgres_exchange *exchange, const struct postgres_statement *statement,
    const struct postgres_values *values);
/* Ends the pipeline and waits; fills failure, and the results if it is DONE. */
void det_postgres_exchange_finish(struct postgres_exchange *exchange, det_time deadline);
/* Reports answers that make no sense: none of them is trusted. Drops the connection; the outcome of
 * the exchange is unknown. Returns the result for that. */
int det_postgres_exchange_doubt(struct postgres_exchange *exchange);

/* postgres/connection.c */
/* Connects and checks; `reterr` may be NULL. DET_ERR_IO, DET_ERR_TIMEOUT: a retry may help. */
DET_MUST_CHECK int det_postgres_connect(
    struct postgres_connection *connection, det_time deadline, struct det_error *reterr);
void det_postgres_disconnect(struct postgres_connection *connection);
/* Waits until the socket is readable or, if requested, writable; or until poller_wake(). */
DET_MUST_CHECK int det_postgres_wait(
    struct postgres_connection *connection, bool is_writing, det_time deadline);
/* True if calls must not wait for the server; see `cancel`. */
bool det_postgres_is_cancelled(const struct postgres_store *store);
/* Implements the operation `cancel`. */
void det_postgres_cancel(struct det_store *base, det_time at);
/* Takes a sample of the server's clock, which has just arrived. */
void det_postgres_clock(struct postgres_store *store, det_time server);
det_time det_postgres_now(struct det_store *base);

/* Parameters of a statement, all binary. */
#define POSTGRES_PARAMETERS_MAX 20
struct postgres_parameters {
    int count;
    const char *values[POSTGRES_PARAMETERS_MAX];
    int lengths[POSTGRES_PARAMETERS_MAX];
    unsigned char numbers[POSTGRES_PARAMETERS_MAX][8];
};

/* postgres/connection_pool.c: jobs on any free connection. */
struct postgres_job {
    void (*send)(struct postgres_exchange *exchange, void *context);
    int (*take)(struct postgres_exchange *exchange, void *context); /* NULL: no results to read */
    void *context;
    bool is_repeatable;    /* may be repeated after an unknown outcome */
    unsigned attempts_max; /* 0: as often as the time limit permits */
};
/* DET_ERR_IO: unknown outcome. `retfail` (may be NULL) is the failure. */
DET_MUST_CHECK int det_postgres_run(
    struct postgres_store *store, const struct postgres_job *job, struct postgres_failure *retfail);
/* Like det_postgres_run(), with another time limit of one exchange; 0: that of the store. */
#define POSTGRES_LONG_SPAN (10 * DET_MINUTE) /* a job that reads whole tables */
DET_MUST_CHECK int det_postgres_run_for(
    struct postgres_store *store, const struct postgres_job *job, det_time span,
    struct postgres_failure *retfail);
/* Runs one reading statement on any free connection. `ret` is its result, which PQclear() frees,
 * NULL after an error; `retfail` may be NULL. */
DET_MUST_CHECK int det_postgres_query(
    struct postgres_store *store, enum postgres_statement_id id,
    const struct postgres_parameters *parameters, PGresult **ret, struct postgres_failure *retfail);

/* postgres/value.c */
void det_postgres_add_number(struct postgres_parameters *parameters, int64_t number);
void det_postgres_add_text(struct postgres_parameters *parameters, const char *text);
void det_postgres_add_bytes(struct postgres_parameters *parameters, struct det_chain_bytes bytes);
/* Sends a statement with parameters. */
void det_postgres_ask(
    struct postgres_exchange *exchange, enum postgres_statement_id id,
    const struct postgres_parameters *parameters);
/* Like det_postgres_ask(), for a statement whose tables are created in the same transaction. */
void det_postgres_ask_once(
    struct postgres_exchange *exchange, enum postgres_statement_id id,
    const struct postgres_parameters *parameters);
/* True if the result has exactly these columns of numbers. */
bool det_postgres_has_numbers(const PGresult *result, int columns);
/* 0 for NULL and for a value that is not a number. */
int64_t det_postgres_number(const PGresult *result, int row, int column);
bool det_postgres_bool(const PGresult *result, int row, int column);
/* NULL for NULL. */
const char *det_postgres_text(const PGresult *result, int row, int column);
struct det_chain_bytes det_postgres_bytes(const PGresult *result, int row, int column);

/* postgres/connection_pool.c */
DET_MUST_CHECK int det_postgres_session_open(
    struct postgres_session *session, struct postgres_store *store);
void det_postgres_session_close(struct postgres_session *session);
/* One exchange, without retries. */
DET_MUST_CHECK int det_postgres_session_run(
    struct postgres_session *session, const struct postgres_job *job);
/* `ret` (may be NULL) is cleared and replaced. */
DET_MUST_CHECK int det_postgres_session_ask(
    struct postgres_session *session, enum postgres_statement_id id,
    const struct postgres_parameters *parameters, PGresult **ret);

/* postgres/schema.c */
/* Creates, verifies, and reads the identity of the store. */
DET_MUST_CHECK int det_postgres_schema_open(
    struct postgres_store *store, bool must_exist, const char *identity, struct det_error *reterr);
/* The text of a statement with the schema before each name that begins with '@'; NULL:
 * no memory. */
char *det_postgres_qualify(const struct postgres_store *store, const char *text);
/* Sends a statement that is used once; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_postgres_send_once(struct postgres_exchange *exchange, const char *text);

/* postgres/upgrade.c: upgrades an older schema. `validate` gets the upgraded answer to
 * POSTGRES_COLUMNS; its error rolls the upgrade back. Also fails if another process was first. */
DET_MUST_CHECK int det_postgres_upgrade(
    struct postgres_store *store, int64_t schema,
    int (*validate)(void *context, const PGresult *rows), void *context,
    struct postgres_failure *retfail);

/* postgres.c: 32 hexadecimal digits. */
void det_postgres_random(struct postgres_store *store, char target[33]);

/* postgres/statement_parts.c */
/* The statement of a commit with these parts; NULL: no memory. */
const struct postgres_statement *det_postgres_variant(struct postgres_store *store, unsigned bits);
void det_postgres_variants_close(struct postgres_store *store);

/* postgres/queue.c */
int det_postgres_queue(
    struct det_store *base, struct det_store_instance *handle, struct det_store_place **ret);
void det_postgres_leave_queue(struct det_store *base, struct det_store_place *place);

/* postgres/log.c */
void det_postgres_log_close(struct postgres_store *store);
int det_postgres_log(
    struct det_store *base, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next);

/* postgres/instance.c */
struct postgres_instance *det_postgres_instance_open(
    struct postgres_store *store, const struct det_machine *machine, const char *id);
DET_MUST_CHECK int det_postgres_instance_reserve(
    struct postgres_store *store, struct postgres_instance *instance, size_t data_size,
    bool has_reason);
/* Memory for them is reserved. */
void det_postgres_instance_keep(
    struct postgres_instance *instance, struct det_chain_bytes data, const char *reason);
void det_postgres_instance_close(struct postgres_store *store, struct postgres_instance *instance);

/* The operations of the store; the contract of each is in driver/store.h. */
int det_postgres_batches_open(struct postgres_store *store);
void det_postgres_batches_close(struct postgres_store *store);
int det_postgres_commit(
    struct det_store *base, struct det_store_commit *const *commits, size_t count);
int det_postgres_load(
    struct det_store *store, const struct det_machine *machine, const char *id,
    const struct det_store_rows *rows, struct det_store_loaded *ret);
void det_postgres_release(struct det_store *store, struct det_store_instance *instance);
int det_postgres_events(
    struct det_store *base, struct det_store_instance *handle, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context);
int det_postgres_list(
    struct det_store *base, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context);
int det_postgres_due(
    struct det_store *base, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context,
    det_time *ret_next);
int det_postgres_nodes(struct det_store *store, uint64_t *ret);
int det_postgres_adopt(
    struct det_store *base, const struct det_machine *machine, size_t limit, size_t *ret);
int det_postgres_lease(
    struct det_store *store, const struct det_store_lease_change *change,
    struct det_store_lease *ret);
int det_postgres_lock(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_lease_change *change, struct det_store_lease *ret);
int det_postgres_prune(
    struct det_store *base, struct det_store_instance *instance, uint64_t sequence,
    det_time answers_before, uint64_t *ret);
void det_postgres_listen(struct det_store *base, void (*wake)(void *context), void *context);
void det_postgres_listen_close(struct postgres_store *store);
/* postgres/jobs_put.c */
DET_MUST_CHECK int det_postgres_jobs_open(struct postgres_store *store);
int det_postgres_check(
    struct det_store *base, int (*visit)(void *context, const struct det_store_finding *row),
    void (*progress)(void *context, uint64_t done, uint64_t total), void *context);
/* postgres/jobs.c */
extern const struct det_job_ops det_postgres_jobs;

/* postgres/documents.c */
extern const struct det_document_ops det_postgres_documents;

#endif
