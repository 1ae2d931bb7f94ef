/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_check.c - verifies the documents of a store and their deltas through the store's own
 * operations, page by page, for all drivers. */
#include <stdio.h>

#include "store/document.h"
#include "store/store.h"

#define PAGE_ROWS 500

struct checking {
    struct det_store *store;
    int (*visit)(void *context, const struct det_store_finding *row);
    void *context;
    struct det_document_fields fields;
    struct det_document_position position; /* of the page */
    char last[DET_DOCUMENT_ID_MAX + 1];    /* the id of the last document */
    uint64_t next;                         /* the expected sync id */
    size_t count;                          /* number of items in the page */
    int answer;                            /* return value of the visitor that ended the walk */
};

static int report_finding(struct checking *checking, const char *text)
{
    checking->answer =
        checking->visit(checking->context, &(struct det_store_finding){ .text = text });
    return checking->answer;
}

static int inspect_document(void *context, const struct det_document *row)
{
    struct checking *checking = context;
    struct det_error error = { 0 };
    char text[DET_ERROR_TEXT_MAX + DET_DOCUMENT_ID_MAX + DET_DOCUMENT_KIND_MAX + 32];
    int r;

    checking->count++;
    (void)det_text_copy(checking->last, sizeof checking->last, row->id);
    r = det_document_fields_read(&checking->fields, row->text, row->size, &error);
    if (r == DET_ERR_NO_MEMORY)
        return r;
    if (r == 0 && row->sync && row->sync <= checking->position.latest && row->version)
        return 0;
    (void)snprintf(
        text, sizeof text, "the document %s %s, %s: %s", row->kind, row->id,
        det_document_role_name(row->role),
        r < 0 ? error.text : "its version or sync id is too high");
    return report_finding(checking, text);
}

static int inspect_delta(void *context, const struct det_delta *row)
{
    struct checking *checking = context;
    struct det_error error = { 0 };
    char text[DET_ERROR_TEXT_MAX + 64];
    int r;

    checking->count++;
    /* Deltas may have been compacted since the last page. */
    if (checking->next < checking->position.oldest)
        checking->next = checking->position.oldest;
    r = det_document_fields_read(&checking->fields, row->text, row->size, &error);
    if (r == DET_ERR_NO_MEMORY)
        return r;
    if (r == 0 && row->sync == checking->next) {
        checking->next++;
        return 0;
    }
    (void)snprintf(
        text, sizeof text, "the delta with the sync id %llu: %s", (unsigned long long)row->sync,
        r < 0 ? error.text : "those before it are missing");
    checking->next = row->sync + 1;
    return report_finding(checking, text);
}

static int check_documents(struct checking *checking)
{
    struct det_document_query query = { .limit = PAGE_ROWS };
    int r;

    do {
        checking->count = 0;
        r = det_store_documents_list(
            checking->store, &query, inspect_document, checking, &checking->position);
        query.after_id = checking->last;
    } while (r == 0 && checking->count >= PAGE_ROWS);
    return r;
}

static int check_deltas(struct checking *checking)
{
    struct det_document_query query = { .limit = PAGE_ROWS };
    int r;

    do {
        checking->count = 0;
        r = det_store_documents_deltas(
            checking->store, &query, inspect_delta, checking, &checking->position);
        query.after = checking->next - 1;
    } while (r == 0 && checking->count >= PAGE_ROWS);
    if (r == 0 && checking->next < checking->position.oldest)
        checking->next = checking->position.oldest;
    if (r == 0 && checking->next != checking->position.latest + 1)
        r = report_finding(
            checking, "the newest deltas of documents do not match the position of the store");
    return r;
}

/* Reports a document that is too damaged to be read as a finding. */
static int excuse_damage(struct checking *checking, int r, const char *text)
{
    return r == DET_ERR_CORRUPT && !checking->answer ? report_finding(checking, text) : r;
}

int det_documents_check(
    struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
    void *context)
{
    struct checking checking = { .store = store, .visit = visit, .context = context, .next = 1 };
    int r;

    det_document_fields_init(&checking.fields, store->allocator);
    r = excuse_damage(&checking, check_documents(&checking), "not all documents can be read");
    if (r == 0)
        r = excuse_damage(
            &checking, check_deltas(&checking), "not all deltas of documents can be read");
    det_document_fields_deinit(&checking.fields);
    return r;
}
