/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.h - documents of the memory store, shared by its files. */
#ifndef DET_STORE_MEMORY_DOCUMENTS_H
#define DET_STORE_MEMORY_DOCUMENTS_H

#include "store/document.h"
#include "store/memory/memory.h"

/* All documents of one id. */
struct memory_document_id {
    const char *id; /* follows the struct */
    size_t index;
    struct det_list documents;
};

struct memory_document {
    struct det_list node;
    struct det_document row; /* its texts follow the struct */
    size_t block_size;
};

struct memory_delta {
    struct det_delta row; /* its texts follow the struct */
    size_t block_size;
};

static inline struct memory_document *memory_document_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct memory_document, node);
}

/* Under the store's mutex. */
void det_memory_delta_close(struct memory_store *store, struct memory_delta *delta);
/* Drops the oldest `count` deltas. */
void det_memory_deltas_drop(struct memory_store *store, size_t count);

/* Operations. */
int det_memory_documents_list(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret);
int det_memory_documents_deltas(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret);
int det_memory_documents_position(struct det_store *base, struct det_document_position *ret);
int det_memory_documents_compact(
    struct det_store *base, const struct det_document_keep *keep, uint64_t *ret);

#endif
