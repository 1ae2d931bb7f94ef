/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents_look.c - lists the documents and their deltas on PostgreSQL: the position and
 * the rows in one transaction, so that they are of one moment. */
#include "store/document.h"
#include "store/postgres/postgres.h"

struct looking {
    const struct det_document_query *query;
    const char *low, *high;
    int (*document)(void *context, const struct det_document *document);
    int (*delta)(void *context, const struct det_delta *delta);
    void *context;
    struct det_document_position position;
    PGresult *rows;
};

static int64_t bounded(uint64_t number)
{
    return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

static void send_look(struct postgres_exchange *exchange, void *context)
{
    const struct looking *looking = context;
    const struct det_document_query *query = looking->query;
    struct postgres_parameters parameters = { 0 };

    det_postgres_ask(exchange, POSTGRES_BEGIN_READING, NULL);
    det_postgres_ask(exchange, POSTGRES_DOCUMENT_POSITION, NULL);
    if (query) {
        det_postgres_add_text(&parameters, query->kind);
        det_postgres_add_text(&parameters, query->id);
        det_postgres_add_text(&parameters, query->below);
        det_postgres_add_text(
            &parameters, query->has_role ? det_document_role_name(query->role) : NULL);
    }
    if (looking->document) {
        det_postgres_add_text(&parameters, looking->low);
        det_postgres_add_text(&parameters, looking->high);
        det_postgres_add_text(&parameters, query->after_id);
        det_postgres_add_number(&parameters, bounded(query->limit));
        det_postgres_ask(exchange, POSTGRES_DOCUMENT_LIST, &parameters);
    } else if (looking->delta) {
        det_postgres_add_number(&parameters, bounded(query->after));
        det_postgres_add_number(&parameters, bounded(query->limit));
        det_postgres_ask(exchange, POSTGRES_DELTA_LIST, &parameters);
    }
    det_postgres_ask(exchange, POSTGRES_END_READING, NULL);
}

/* The rows are taken along: they are shown when the connection is free again. */
static int take_look(struct postgres_exchange *exchange, void *context)
{
    struct looking *looking = context;
    const PGresult *position = exchange->results[1];

    if (PQntuples(position) != 1)
        return det_postgres_exchange_doubt(exchange);
    looking->position.latest = (uint64_t)det_postgres_number(position, 0, 0);
    looking->position.oldest = (uint64_t)det_postgres_number(position, 0, 1);
    if (looking->query) {
        looking->rows = exchange->results[2];
        exchange->results[2] = NULL;
    }
    return 0;
}

static const char *text_of(const PGresult *rows, int row, int column)
{
    const char *text = det_postgres_text(rows, row, column);

    return text ? text : "";
}

/* The column that tells whether a row matches its checksum, in both lists. */
enum { OF_WHOLE = 8 };

static int show_document(const struct looking *looking, int i)
{
    const PGresult *rows = looking->rows;
    struct det_chain_bytes text = det_postgres_bytes(rows, i, 7);
    struct det_document row = {
        .kind = text_of(rows, i, 0),
        .id = text_of(rows, i, 1),
        .sync = (uint64_t)det_postgres_number(rows, i, 3),
        .version = (uint64_t)det_postgres_number(rows, i, 4),
        .created_at = det_postgres_number(rows, i, 5),
        .updated_at = det_postgres_number(rows, i, 6),
        .text = text.data ? text.data : "",
        .size = text.size,
    };
    int r;

    r = det_document_role_find(text_of(rows, i, 2), &row.role);
    return r < 0 ? r : looking->document(looking->context, &row);
}

static int show_delta(const struct looking *looking, int i)
{
    const PGresult *rows = looking->rows;
    struct det_chain_bytes text = det_postgres_bytes(rows, i, 7);
    struct det_delta row = {
        .sync = (uint64_t)det_postgres_number(rows, i, 0),
        .at = det_postgres_number(rows, i, 1),
        .kind = text_of(rows, i, 2),
        .id = text_of(rows, i, 3),
        .version = (uint64_t)det_postgres_number(rows, i, 6),
        .text = text.data ? text.data : "",
        .size = text.size,
    };
    int r;

    r = det_document_role_find(text_of(rows, i, 4), &row.role);
    if (r == 0)
        r = det_document_change_find(text_of(rows, i, 5), &row.change);
    return r < 0 ? r : looking->delta(looking->context, &row);
}

static int look(struct det_store *base, struct looking *looking, struct det_document_position *ret)
{
    const struct postgres_job job = { send_look, take_look, looking, true, 0 };
    int r;

    r = det_postgres_run(postgres_store_of(base), &job, NULL);
    if (r == 0 && ret)
        *ret = looking->position;
    for (int i = 0; r == 0 && looking->rows && i < PQntuples(looking->rows); i++) {
        if (!det_postgres_bool(looking->rows, i, OF_WHOLE))
            r = DET_ERR_CORRUPT;
        else
            r = looking->document ? show_document(looking, i) : show_delta(looking, i);
    }
    PQclear(looking->rows);
    return r;
}

int det_postgres_documents_list(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    struct looking looking = { .query = query, .document = visit, .context = context };
    struct det_buffer high;
    int r;

    det_buffer_init(&high, base->allocator);
    r = det_document_range(query, &looking.low, &high);
    looking.high = det_buffer_text(&high);
    if (r == 0)
        r = look(base, &looking, ret);
    det_buffer_deinit(&high);
    return r;
}

int det_postgres_documents_deltas(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret)
{
    struct looking looking = { .query = query, .delta = visit, .context = context };

    return look(base, &looking, ret);
}

int det_postgres_documents_position(struct det_store *base, struct det_document_position *ret)
{
    struct looking looking = { 0 };

    return look(base, &looking, ret);
}
