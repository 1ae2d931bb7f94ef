/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.h - saves, lists and follows documents as lines of text, for the cases about them. */
#ifndef DET_CONFORM_DOCUMENTS_H
#define DET_CONFORM_DOCUMENTS_H

#include <detent/tool/documents.h>

#include "conform/conform.h"

#define LINES_MAX 8192

/* The visited rows, one line each. */
struct lines {
    char text[LINES_MAX];
    size_t size, count, stop_at; /* 0: never */
    int answer;                  /* of the visit at which it stops */
    struct det_document_position position;
};

/* A store without documents skips the test. */
#define NEEDS_DOCUMENTS(state)                                \
    do {                                                      \
        if (!((struct box *)*(state))->store->ops->documents) \
            return;                                           \
    } while (0)

static inline struct det_document_save saving(
    const char *id, enum det_document_role role, const char *text)
{
    return (struct det_document_save){ .kind = "link",
                                       .id = id,
                                       .role = role,
                                       .is_drop = !text,
                                       .text = text,
                                       .size = text ? strlen(text) : 0 };
}

/* NULL: dropped. */
static inline struct det_document_saved save_role(
    struct box *box, const char *id, enum det_document_role role, const char *text)
{
    struct det_document_save save = saving(id, role, text);
    struct det_document_saved saved;
    struct det_error error = { 0 };

    if (det_store_documents_save(box->store, &save, 1, &saved, &error) < 0)
        fail_msg("%s", error.text);
    return saved;
}

static inline struct det_document_saved save(struct box *box, const char *id, const char *text)
{
    return save_role(box, id, DET_DOCUMENT_OBSERVED, text);
}

static inline int end_line(struct lines *lines)
{
    assert_true(lines->size < LINES_MAX);
    return ++lines->count == lines->stop_at ? lines->answer : 0;
}

static inline int note_document(void *context, const struct det_document *row)
{
    struct lines *lines = context;

    lines->size += (size_t)snprintf(
        lines->text + lines->size, LINES_MAX - lines->size, "%s %s %s %llu %llu %.*s\n", row->kind,
        row->id, det_document_role_name(row->role), (unsigned long long)row->sync,
        (unsigned long long)row->version, (int)row->size, row->text);
    assert_true(row->created_at > 0 && row->updated_at >= row->created_at);
    return end_line(lines);
}

static inline int note_delta(void *context, const struct det_delta *row)
{
    struct lines *lines = context;

    lines->size += (size_t)snprintf(
        lines->text + lines->size, LINES_MAX - lines->size, "%llu %s %s %s %s %llu %.*s\n",
        (unsigned long long)row->sync, det_document_change_name(row->change), row->kind, row->id,
        det_document_role_name(row->role), (unsigned long long)row->version, (int)row->size,
        row->text);
    assert_true(row->at > 0);
    return end_line(lines);
}

static inline struct lines *list_of(struct det_store *store, struct det_document_query query)
{
    static struct lines lines;

    lines = (struct lines){ 0 };
    assert_int_equal(
        det_store_documents_list(store, &query, note_document, &lines, &lines.position), 0);
    return &lines;
}

static inline struct lines *deltas_of(struct det_store *store, struct det_document_query query)
{
    static struct lines lines;

    lines = (struct lines){ 0 };
    assert_int_equal(
        det_store_documents_deltas(store, &query, note_delta, &lines, &lines.position), 0);
    return &lines;
}

static inline void assert_documents(struct box *box, const char *text)
{
    assert_string_equal(list_of(box->store, (struct det_document_query){ 0 })->text, text);
}

static inline void assert_deltas(struct box *box, uint64_t after, const char *text)
{
    assert_string_equal(
        deltas_of(box->store, (struct det_document_query){ .after = after })->text, text);
}

static inline void assert_position(struct box *box, uint64_t latest, uint64_t oldest)
{
    struct det_document_position position;

    assert_int_equal(det_store_documents_position(box->store, &position), 0);
    assert_int_equal(position.latest, latest);
    assert_int_equal(position.oldest, oldest);
}

/* Returns the number of dropped deltas. */
static inline uint64_t compact(struct box *box, struct det_document_keep keep)
{
    uint64_t count = 99;

    assert_int_equal(det_store_documents_compact(box->store, &keep, &count), 0);
    return count;
}

#endif
