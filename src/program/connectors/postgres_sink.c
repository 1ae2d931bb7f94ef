/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_sink.c - the sink `postgres`: rows into a table, exactly once.
 *
 *     deliver: keeps the row | flush: one transaction: positions, COPY [, INSERT ... ON CONFLICT]
 *
 * Invariants
 *   1. A transaction has rows and their positions, or nothing.
 *   2. After a lost connection the saved positions decide whether the last transaction happened;
 *      what they cover is not sent again.
 *   3. Each connection gets a new epoch, and a transaction of an older epoch fails: a server that
 * is
 *      late with the transaction of a killed process cannot write after its successor has read the
 *      positions.
 *   4. When a row does not fit the table, the batch is halved until the row is alone: it is
 * rejected
 *      alone. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "connectors/delivered.h"
#include "connectors/pg_link.h"
#include "connectors/postgres_batch.h"
#include "connectors/rejections.h"
#include "connectors/row_key.h"
#include "os/os.h"

#define REC_SPEC "connectors/postgres_sink.rec"
#include <detent/rec/declare.h>

/* A batch is written from this size on before the flush. */
#define BATCH_LARGE 4194304
/* How long a lost server is tried again, unless the settings say otherwise. */
#define RETRY_FOR DET_MINUTE
#define PAUSE_MIN (100 * DET_MILLISECOND)
#define PAUSE_MAX (5 * DET_SECOND)

/* CREATE TABLE IF NOT EXISTS would need the permission to create also when the table exists. */
#define CREATE_POSITIONS                                                                  \
    "DO $$ BEGIN IF to_regclass('detent_flow_delivered') IS NULL THEN CREATE TABLE "      \
    "detent_flow_delivered (flow text NOT NULL, stage text NOT NULL, run text NOT NULL, " \
    "epoch bigint NOT NULL, positions text NOT NULL, updated_at timestamptz NOT NULL "    \
    "DEFAULT now(), PRIMARY KEY (flow, stage, run)); END IF; END $$; "

struct postgres_sink {
    struct pg_link link;
    struct postgres_sink_settings settings;
    struct sql_mapping mapping;
    struct postgres_batch_rows batch;
    struct det_buffer statements;
    struct rejections rejections;
    struct delivered delivered; /* pending: what is in the batch */
    struct delivered sending;   /* pending: what is in the transaction */
    det_time retry_for;
    int64_t epoch; /* of this connection */
    size_t part;   /* rows of the next transaction */
};

static const char *remedy_of(enum pg_outcome outcome)
{
    return outcome == PG_FATAL ? "make the table and its permissions fit, or add 'create: true'"
                               : "check the server and the network";
}

static int fail_stage(struct postgres_sink *sink, enum pg_outcome outcome, const char *what)
{
    if (outcome == PG_CANCELLED)
        return DET_ERR_CANCELLED;
    if (det_buffer_status(&sink->statements) < 0)
        return det_stage_fail(sink->link.call, DET_ERR_NO_MEMORY, "PostgreSQL: out of memory");
    return det_stage_fail(
        sink->link.call, outcome == PG_FATAL ? DET_ERR_INVALID : DET_ERR_IO,
        "PostgreSQL: cannot %s: %s; %s, then resume the flow", what, sink->link.text,
        remedy_of(outcome));
}

/* Names are lower_snake and ids; a quote would be doubled. */
static void write_literal(struct det_buffer *buffer, const char *text)
{
    det_buffer_append_char(buffer, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            det_buffer_append_char(buffer, '\'');
        det_buffer_append_char(buffer, *text);
    }
    det_buffer_append_char(buffer, '\'');
}

static void write_identity(struct postgres_sink *sink, const char *between)
{
    const struct det_stage_call *call = sink->link.call;
    char run[ROW_RUN_TEXT];

    write_literal(&sink->statements, call->flow);
    det_buffer_append_text(&sink->statements, between);
    write_literal(&sink->statements, call->stage->name);
    det_buffer_append_text(&sink->statements, between);
    write_literal(&sink->statements, row_run(call, run));
}

/* Takes over the positions of this run: waits for a transaction that has them in use. */
static void compose_takeover(struct postgres_sink *sink)
{
    struct det_buffer *text = &sink->statements;

    det_buffer_clear(text);
    det_buffer_append_text(
        text,
        "INSERT INTO detent_flow_delivered AS own (flow, stage, run, epoch, positions) VALUES (");
    write_identity(sink, ", ");
    det_buffer_append_text(
        text, ", 1, '') ON CONFLICT (flow, stage, run) DO UPDATE SET epoch = own.epoch + 1 "
              "RETURNING epoch, positions");
}

static void compose_batch(struct postgres_sink *sink)
{
    struct det_buffer *text = &sink->statements;

    det_buffer_clear(text);
    /* The cast fails if another connection has taken over. */
    det_buffer_append_text(
        text, "WITH own AS (UPDATE detent_flow_delivered SET updated_at = now(), positions = '");
    delivered_write(&sink->sending, text);
    det_buffer_format(
        text, "' WHERE epoch = %lld AND (flow, stage, run) = (", (long long)sink->epoch);
    write_identity(sink, ", ");
    det_buffer_append_text(
        text, ") RETURNING 1) SELECT CASE WHEN count(*) = 1 THEN 1 ELSE ('another connection has "
              "taken over ' || count(*))::int END FROM own; ");
    postgres_write_copy(&sink->mapping.table, text);
}

static enum pg_outcome run(
    struct postgres_sink *sink, const struct det_view *copied, PGresult **ret)
{
    /* fail_stage() reports it. */
    if (det_buffer_status(&sink->statements) < 0)
        return PG_FATAL;
    return pg_link_run(&sink->link, det_buffer_text(&sink->statements), copied, ret);
}

static enum pg_outcome take_over(struct postgres_sink *sink)
{
    PGresult *result = NULL;
    enum pg_outcome outcome;
    const char *epoch;
    bool is_read;

    compose_takeover(sink);
    outcome = run(sink, NULL, &result);
    if (outcome != PG_DONE)
        return outcome;
    is_read = result && PQntuples(result) == 1 && PQnfields(result) == 2;
    epoch = is_read ? PQgetvalue(result, 0, 0) : "";
    is_read = is_read && det_parse_i64(det_view_text(epoch), &sink->epoch) == 0;
    is_read =
        is_read &&
        delivered_read(&sink->sending, PQgetvalue(result, 0, 1), (size_t)PQgetlength(result, 0, 1));
    PQclear(result);
    if (is_read)
        return PG_DONE;
    (void)det_text_copy(
        sink->link.text, sizeof sink->link.text, "detent_flow_delivered has a row that is damaged");
    return PG_FATAL;
}

static enum pg_outcome prepare_session(struct postgres_sink *sink, bool is_first)
{
    struct det_buffer *text = &sink->statements;
    enum pg_outcome outcome;

    det_buffer_clear(text);
    if (is_first)
        det_buffer_append_text(text, CREATE_POSITIONS);
    if (is_first && sink->settings.create) {
        sql_write_create(&sink->mapping.table, text);
        det_buffer_append_text(text, "; ");
    }
    postgres_write_staging(&sink->mapping.table, text);
    outcome = run(sink, NULL, NULL);
    return outcome == PG_DONE ? take_over(sink) : outcome;
}

static enum pg_outcome connect_once(struct postgres_sink *sink, bool is_first)
{
    enum pg_outcome outcome;

    outcome = pg_link_connect(&sink->link);
    if (outcome == PG_DONE)
        outcome = prepare_session(sink, is_first);
    if (outcome != PG_DONE)
        pg_link_disconnect(&sink->link);
    return outcome;
}

/* Tries again with growing pauses until `retry_for` has passed. */
static enum pg_outcome reconnect(struct postgres_sink *sink)
{
    struct det_world *world = det_world_or_real(sink->link.call->world);
    det_time begin = det_world_now(world, DET_CLOCK_MONOTONIC), pause = PAUSE_MIN;

    for (;;) {
        enum pg_outcome outcome = connect_once(sink, false);
        det_time now = det_world_now(world, DET_CLOCK_MONOTONIC);

        if ((outcome != PG_LOST && outcome != PG_RETRY) || now - begin >= sink->retry_for)
            return outcome;
        if (det_stage_wait(sink->link.call, now + pause) == DET_ERR_CANCELLED)
            return PG_CANCELLED;
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
}

static int read_settings(
    struct postgres_sink *sink, const struct det_stage *stage,
    const struct det_allocator *allocator, const char *folder, char *secret,
    struct det_error *reterr)
{
    struct sql_mapping_settings wanted = { .dialect = SQL_POSTGRES };
    struct postgres_sink_settings *value = &sink->settings;
    struct det_error error = { 0 };
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, postgres_sink_settings_record(), value, sql_mapping_trees,
        reterr);
    if (r < 0)
        return r;
    wanted.table = value->table;
    wanted.keys = value->key[0];
    wanted.key_size = sizeof value->key[0];
    wanted.key_count = value->key_count;
    r = settings_need(&settings, "url", value->url, "url: postgres://user@host/database", reterr);
    if (r == 0 && pg_link_check_url(value->url, &error) < 0)
        r = settings_fail_key(&settings, "url", reterr, "%s", error.text);
    if (r == 0)
        r = settings_duration(
            &settings, "retry_for", value->retry_for, RETRY_FOR, &sink->retry_for, reterr);
    if (r == 0 && secret && (*value->password_file || *value->password_environment))
        r = settings_secret(
            &settings, value->password_file, value->password_environment, folder, secret, reterr);
    if (r == 0)
        r = sql_mapping_init(&sink->mapping, allocator, &settings, &wanted, reterr);
    settings_close(&settings);
    return r;
}

static int postgres_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct postgres_sink *sink = DET_NEW(NULL, struct postgres_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(sink, stage, NULL, folder, NULL, reterr);
    if (r == 0)
        sql_mapping_deinit(&sink->mapping);
    DET_DELETE(NULL, sink);
    return r;
}

static void free_sink(struct det_stage_call *call, struct postgres_sink *sink)
{
    pg_link_deinit(&sink->link, call->allocator);
    sql_mapping_deinit(&sink->mapping);
    postgres_batch_deinit(&sink->batch);
    rejections_deinit(&sink->rejections);
    det_buffer_deinit(&sink->statements);
    DET_DELETE(call->allocator, sink);
}

static int set_up(struct det_stage_call *call, struct postgres_sink *sink)
{
    char secret[SETTINGS_SECRET_MAX + 1] = "";
    struct det_error error = { 0 };
    enum pg_outcome outcome;
    int r;

    r = read_settings(sink, call->stage, call->allocator, call->folder, secret, &error);
    if (r == 0)
        r = pg_link_init(&sink->link, call, sink->settings.url, secret, &error);
    explicit_bzero(secret, sizeof secret);
    if (r < 0)
        return settings_refuse(call, &error);
    outcome = connect_once(sink, true);
    /* Another process has created a table at the same time. */
    if (outcome == PG_DATA)
        outcome = connect_once(sink, true);
    if (outcome != PG_DONE)
        return fail_stage(sink, outcome, "use the database");
    sink->delivered = sink->sending;
    return 0;
}

static int postgres_open(struct det_stage_call *call)
{
    struct postgres_sink *sink = DET_NEW(call->allocator, struct postgres_sink);
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    postgres_batch_init(&sink->batch, call->allocator);
    rejections_init(&sink->rejections, call->allocator);
    det_buffer_init(&sink->statements, call->allocator);
    r = set_up(call, sink);
    if (r < 0)
        free_sink(call, sink);
    else
        call->self = sink;
    return r;
}

static void postgres_close(struct det_stage_call *call)
{
    free_sink(call, call->self);
    call->self = NULL;
}

/* The rows from `first` on that the server has. */
static size_t count_done(const struct postgres_sink *sink, size_t first)
{
    size_t count = 0;

    while (first + count < sink->batch.count &&
           sink->batch.rows[first + count].info.position <=
               sink->sending.done[sink->batch.rows[first + count].info.stream])
        count++;
    return count;
}

static enum pg_outcome send_part(struct postgres_sink *sink, size_t first, size_t count)
{
    struct det_view lines = postgres_batch_lines(&sink->batch, first, count);
    enum pg_outcome outcome;

    for (size_t i = first; i < first + count; i++)
        delivered_add(&sink->sending, &sink->batch.rows[i].info);
    compose_batch(sink);
    outcome = run(sink, &lines, NULL);
    if (outcome == PG_DONE)
        delivered_commit(&sink->sending);
    else
        delivered_roll_back(&sink->sending);
    return outcome;
}

/* Rejects a row that does not fit; its position is saved with the next rows. */
static int reject_row(struct postgres_sink *sink, size_t index)
{
    const struct det_row_info *info = &sink->batch.rows[index].info;

    if (rejections_add(&sink->rejections, info, DET_REJECT_PERMANENT, sink->link.text) < 0)
        return det_stage_fail(sink->link.call, DET_ERR_NO_MEMORY, "PostgreSQL: out of memory");
    delivered_add(&sink->sending, info);
    delivered_commit(&sink->sending);
    return 0;
}

/* One transaction, and what follows from its outcome; `first` moves on. */
static int send_next(struct postgres_sink *sink, size_t *first)
{
    size_t left = sink->batch.count - *first;
    size_t count = sink->part && sink->part < left ? sink->part : left;
    enum pg_outcome outcome = PG_LOST;

    if (sink->link.pq)
        outcome = send_part(sink, *first, count);
    switch (outcome) {
    case PG_DONE:
        *first += count;
        sink->part = count < left ? count * 2 : 0;
        return 0;
    case PG_DATA:
        if (strstr(sink->link.text, "another connection has taken over"))
            return fail_stage(sink, PG_FATAL, "write a batch");
        sink->part = count > 1 ? count / 2 : 1;
        return count > 1 ? 0 : reject_row(sink, (*first)++);
    case PG_LOST:
    case PG_RETRY:
        outcome = reconnect(sink);
        *first += outcome == PG_DONE ? count_done(sink, *first) : 0;
        break;
    case PG_CANCELLED:
    case PG_FATAL:
        break;
    }
    return outcome == PG_DONE ? 0 : fail_stage(sink, outcome, "write a batch");
}

static int send_batch(struct postgres_sink *sink)
{
    size_t first = 0;
    int r = 0;

    while (first < sink->batch.count && r == 0)
        r = send_next(sink, &first);
    if (r < 0)
        return r;
    postgres_batch_clear(&sink->batch);
    delivered_commit(&sink->delivered);
    return 0;
}

static int postgres_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct postgres_sink *sink = call->self;
    int r;

    (void)cursor;
    sink->link.call = call;
    if (delivered_has(&sink->delivered, &call->row))
        return 0;
    r = postgres_batch_add(&sink->batch, &sink->mapping, &call->row, in);
    if (r < 0)
        return det_stage_fail(call, r, "PostgreSQL: out of memory");
    delivered_add(&sink->delivered, &call->row);
    return sink->batch.lines.size >= BATCH_LARGE ? send_batch(sink) : 0;
}

static int postgres_flush(struct det_stage_call *call, void *cursor)
{
    struct postgres_sink *sink = call->self;
    int r;

    (void)cursor;
    sink->link.call = call;
    r = send_batch(sink);
    return r < 0 ? r : rejections_report(&sink->rejections, call);
}

const struct det_connector postgres_sink = {
    .name = "postgres",
    .about = "rows into a table of PostgreSQL, exactly once",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = postgres_open,
                   .close = postgres_close,
                   .deliver = postgres_deliver,
                   .flush = postgres_flush },
    .check = postgres_check,
};
