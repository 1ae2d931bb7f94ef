/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.h - documents of the SQL stores, except for saves, which each driver isolates in its
 * own way. struct det_document_ops has the contracts. */
#ifndef DET_STORE_SQL_DOCUMENTS_H
#define DET_STORE_SQL_DOCUMENTS_H

#include "store/document.h"
#include "store/sql/sql.h"

int det_sql_documents_list(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret);
int det_sql_documents_deltas(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret);
int det_sql_documents_position(struct det_store *store, struct det_document_position *ret);
int det_sql_documents_compact(
    struct det_store *store, const struct det_document_keep *keep, uint64_t *ret);

#endif
