/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.c - documents in SQL: lists of documents and of deltas, each with the position of the
 * same snapshot, and deletion of old deltas. */
#include "store/sql/documents.h"

#include <string.h>

/* Columns of DOCUMENT_LIST. */
enum {
    DOCUMENT_KIND,
    DOCUMENT_ID,
    DOCUMENT_ROLE,
    DOCUMENT_SYNC,
    DOCUMENT_VERSION,
    DOCUMENT_CREATED_AT,
    DOCUMENT_UPDATED_AT,
    DOCUMENT_TEXT,
    DOCUMENT_COMPLETE,
};

/* Columns of DELTA_LIST. */
enum {
    DELTA_SYNC,
    DELTA_AT,
    DELTA_KIND,
    DELTA_ID,
    DELTA_ROLE,
    DELTA_CHANGE,
    DELTA_VERSION,
    DELTA_TEXT,
    DELTA_COMPLETE,
};

struct document_walk {
    const struct det_document_query *query;
    int (*document)(void *context, const struct det_document *document);
    int (*delta)(void *context, const struct det_delta *delta);
    void *context;
    size_t count;
    char last[DET_DOCUMENT_ID_MAX + 1]; /* the id of the last document */
    bool is_complete;                   /* the limit is reached */
};

static int read_position(void *context, const struct det_sql_row *row)
{
    *(struct det_document_position *)context =
        (struct det_document_position){ .latest = det_sql_count(row, 0),
                                        .oldest = det_sql_count(row, 1) };
    return det_sql_status(row);
}

static int read_document(const struct det_sql_row *row, struct det_document *ret)
{
    struct det_chain_bytes text = det_sql_bytes(row, DOCUMENT_TEXT);
    int found, r;

    *ret = (struct det_document){
        .kind = det_sql_text(row, DOCUMENT_KIND),
        .id = det_sql_text(row, DOCUMENT_ID),
        .sync = det_sql_count(row, DOCUMENT_SYNC),
        .version = det_sql_count(row, DOCUMENT_VERSION),
        .created_at = det_sql_number(row, DOCUMENT_CREATED_AT),
        .updated_at = det_sql_number(row, DOCUMENT_UPDATED_AT),
        .text = text.data ? text.data : "",
        .size = text.size,
    };
    found = det_document_role_find(det_sql_text(row, DOCUMENT_ROLE), &ret->role);
    r = det_sql_check(row, DOCUMENT_COMPLETE);
    return r < 0 ? r : found;
}

/* The limit counts rows, but does not separate those of one id. */
static int visit_document(void *context, const struct det_sql_row *row)
{
    struct document_walk *walk = context;
    struct det_document document;
    int r;

    r = read_document(row, &document);
    if (r < 0)
        return r;
    if (walk->query->limit && walk->count >= walk->query->limit &&
        strcmp(walk->last, document.id) != 0) {
        walk->is_complete = true;
        return 1;
    }
    walk->count++;
    (void)det_text_copy(walk->last, sizeof walk->last, document.id);
    return walk->document(walk->context, &document);
}

static int visit_delta(void *context, const struct det_sql_row *row)
{
    const struct document_walk *walk = context;
    struct det_chain_bytes text = det_sql_bytes(row, DELTA_TEXT);
    struct det_delta delta = {
        .sync = det_sql_count(row, DELTA_SYNC),
        .at = det_sql_number(row, DELTA_AT),
        .kind = det_sql_text(row, DELTA_KIND),
        .id = det_sql_text(row, DELTA_ID),
        .version = det_sql_count(row, DELTA_VERSION),
        .text = text.data ? text.data : "",
        .size = text.size,
    };
    int role = det_document_role_find(det_sql_text(row, DELTA_ROLE), &delta.role);
    int change = det_document_change_find(det_sql_text(row, DELTA_CHANGE), &delta.change);
    int r;

    r = det_sql_check(row, DELTA_COMPLETE);
    if (r == 0)
        r = role;
    if (r == 0)
        r = change;
    return r < 0 ? r : walk->delta(walk->context, &delta);
}

static void add_query(struct det_sql_values *values, const struct det_document_query *query)
{
    det_sql_add_text(values, query->kind);
    det_sql_add_text(values, query->id);
    det_sql_add_text(values, query->below);
    det_sql_add_text(values, query->has_role ? det_document_role_name(query->role) : NULL);
}

/* Reads the position, if requested, and the rows. */
static int ask_both(
    struct det_store *store, const struct det_sql_question *rows, struct det_document_position *ret)
{
    const struct det_sql_question questions[] = {
        { .statement = DET_SQL_DOCUMENT_POSITION,
          .read = read_position,
          .context = ret,
          .has_row = true },
        *rows,
    };

    return ret ? det_sql_ask(store, questions, 2, NULL) : det_sql_ask(store, rows, 1, NULL);
}

int det_sql_documents_list(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    struct document_walk walk = { .query = query, .document = visit, .context = context };
    struct det_sql_values values = { 0 };
    const struct det_sql_question rows = { .statement = DET_SQL_DOCUMENT_LIST,
                                           .values = &values,
                                           .read = visit_document,
                                           .context = &walk };
    struct det_buffer high;
    const char *low;
    int r;

    det_buffer_init(&high, store->allocator);
    r = det_document_range(query, &low, &high);
    if (r == 0) {
        add_query(&values, query);
        det_sql_add_text(&values, low);
        det_sql_add_text(&values, det_buffer_text(&high));
        det_sql_add_text(&values, query->after_id);
        det_sql_add_count(&values, query->limit);
        r = ask_both(store, &rows, ret);
    }
    det_buffer_deinit(&high);
    return walk.is_complete ? 0 : r;
}

int det_sql_documents_deltas(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret)
{
    struct document_walk walk = { .delta = visit, .context = context };
    struct det_sql_values values = { 0 };
    const struct det_sql_question rows = {
        .statement = DET_SQL_DELTA_LIST, .values = &values, .read = visit_delta, .context = &walk
    };

    add_query(&values, query);
    det_sql_add_count(&values, query->after);
    det_sql_add_count(&values, query->limit);
    return ask_both(store, &rows, ret);
}

int det_sql_documents_position(struct det_store *store, struct det_document_position *ret)
{
    const struct det_sql_question question = { .statement = DET_SQL_DOCUMENT_POSITION,
                                               .read = read_position,
                                               .context = ret,
                                               .has_row = true };

    return det_sql_ask(store, &question, 1, NULL);
}

static int read_number(void *context, const struct det_sql_row *row)
{
    *(int64_t *)context = det_sql_number(row, 0);
    return det_sql_status(row);
}

int det_sql_documents_compact(
    struct det_store *store, const struct det_document_keep *keep, uint64_t *ret)
{
    struct det_sql_values limits = { 0 }, values = { 0 };
    int64_t last = 0;
    const struct det_sql_question old = { .statement = DET_SQL_DELTA_OLD,
                                          .values = &limits,
                                          .read = read_number,
                                          .context = &last,
                                          .has_row = true };
    struct det_sql_change drop = { .statement = DET_SQL_DELTA_DROP,
                                   .values = &values,
                                   .is_repeatable = true };
    int r;

    *ret = 0;
    if (det_sql_is_read_only(store))
        return DET_ERR_READ_ONLY;
    det_sql_add_number(&limits, keep->since);
    det_sql_add_count(&limits, keep->count_max);
    det_sql_add_count(&limits, keep->bytes_max);
    r = det_sql_ask(store, &old, 1, NULL);
    if (r < 0 || last <= 0)
        return r;
    det_sql_add_number(&values, last);
    det_sql_add_number(&values, DET_DELTAS_DROPPED_AT_ONCE);
    return det_sql_change_all(store, &drop, DET_DELTAS_DROPPED_AT_ONCE, ret);
}
