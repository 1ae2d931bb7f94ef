/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents_read.c - lists the documents of the memory store and their deltas, and drops old
 * deltas. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/memory/documents.h"

static struct det_document_position position_of(const struct memory_documents *documents)
{
    return (struct det_document_position){ documents->latest,
                                           documents->latest - documents->delta_count + 1 };
}

static int by_id(const void *left, const void *right)
{
    return strcmp(
        (*(struct memory_document_id *const *)left)->id,
        (*(struct memory_document_id *const *)right)->id);
}

static void sort_ids(struct memory_documents *documents)
{
    if (documents->is_sorted || !documents->id_count)
        return;
    qsort(documents->ids, documents->id_count, sizeof(struct memory_document_id *), by_id);
    for (size_t i = 0; i < documents->id_count; i++)
        documents->ids[i]->index = i;
    documents->is_sorted = true;
}

/* Listing. */

static bool is_wanted(
    const struct det_document_query *query, const char *kind, const char *id,
    enum det_document_role role)
{
    return (!query->kind || strcmp(query->kind, kind) == 0) &&
           (!query->id || strcmp(query->id, id) == 0) &&
           (!query->below || det_document_is_below(id, query->below)) &&
           (!query->has_role || query->role == role);
}

struct visiting {
    const struct det_document_query *query;
    int (*visit)(void *context, const struct det_document *document);
    void *context;
    size_t count;
};

static int visit_id(struct visiting *visiting, const struct memory_document_id *id)
{
    int r = 0;

    for (struct det_list *node = id->documents.next; r == 0 && node != &id->documents;
         node = node->next) {
        const struct det_document *row = &memory_document_at(node)->row;

        if (!is_wanted(visiting->query, row->kind, row->id, row->role))
            continue;
        visiting->count++;
        r = visiting->visit(visiting->context, row);
    }
    return r;
}

/* The index of the first id after this one, or at it. */
static size_t place_of(const struct memory_documents *documents, const char *id, bool is_behind)
{
    size_t from = 0, to = documents->id_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(documents->ids[middle]->id, id);

        if (order > 0 || (order == 0 && !is_behind))
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* The index of the first selected id. */
static size_t first_place(
    const struct memory_documents *documents, const struct det_document_query *query)
{
    size_t after = query->after_id ? place_of(documents, query->after_id, true) : 0;
    size_t below = query->below ? place_of(documents, query->below, false) : 0;

    return after > below ? after : below;
}

static int list_locked(struct memory_store *store, struct visiting *visiting)
{
    struct memory_documents *documents = &store->documents;
    const struct det_document_query *query = visiting->query;
    const struct memory_document_id *id;
    int r = 0;

    if (query->id) {
        id = det_map_get(&documents->id_of, query->id);
        return id && (!query->after_id || strcmp(query->id, query->after_id) > 0)
                   ? visit_id(visiting, id)
                   : 0;
    }
    sort_ids(documents);
    for (size_t i = first_place(documents, query); r == 0 && i < documents->id_count; i++) {
        id = documents->ids[i];
        if (query->limit && visiting->count >= query->limit)
            break;
        if (query->below && strncmp(id->id, query->below, strlen(query->below)) != 0)
            break;
        r = visit_id(visiting, id);
    }
    return r;
}

int det_memory_documents_list(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    struct memory_store *store = memory_store_of(base);
    struct visiting visiting = { query, visit, context, 0 };
    int r;

    det_mutex_lock(base->world, store->mutex);
    if (ret)
        *ret = position_of(&store->documents);
    r = list_locked(store, &visiting);
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

int det_memory_documents_deltas(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret)
{
    struct memory_store *store = memory_store_of(base);
    struct memory_documents *documents = &store->documents;
    struct det_document_position position;
    uint64_t sync;
    size_t count = 0;
    int r = 0;

    det_mutex_lock(base->world, store->mutex);
    position = position_of(documents);
    if (ret)
        *ret = position;
    sync = query->after < position.oldest ? position.oldest : query->after + 1;
    for (; r == 0 && sync <= position.latest && query->after < sync; sync++) {
        const struct det_delta *row =
            &documents->deltas[documents->delta_first + (sync - position.oldest)]->row;

        if (!is_wanted(query, row->kind, row->id, row->role))
            continue;
        r = visit(context, row);
        if (++count == query->limit)
            break;
    }
    det_mutex_unlock(base->world, store->mutex);
    return r;
}

int det_memory_documents_position(struct det_store *base, struct det_document_position *ret)
{
    struct memory_store *store = memory_store_of(base);

    det_mutex_lock(base->world, store->mutex);
    *ret = position_of(&store->documents);
    det_mutex_unlock(base->world, store->mutex);
    return 0;
}

/* Compacting. */

/* Number of the oldest deltas to drop. */
static size_t count_old(
    const struct memory_documents *documents, const struct det_document_keep *keep)
{
    struct memory_delta *const *deltas =
        documents->deltas ? documents->deltas + documents->delta_first : NULL;
    size_t count = documents->delta_count, by_age = 0, by_count = 0, by_bytes = count;
    uint64_t bytes = 0;

    while (keep->since && by_age < count && deltas[by_age]->row.at < keep->since)
        by_age++;
    if (keep->count_max && count > keep->count_max)
        by_count = count - (size_t)keep->count_max;
    while (keep->bytes_max && by_bytes &&
           (bytes += deltas[by_bytes - 1]->row.size) <= keep->bytes_max)
        by_bytes--;
    if (!keep->bytes_max)
        by_bytes = 0;
    by_age = by_age > by_count ? by_age : by_count;
    return by_age > by_bytes ? by_age : by_bytes;
}

void det_memory_deltas_drop(struct memory_store *store, size_t count)
{
    struct memory_documents *documents = &store->documents;

    det_assert(count <= documents->delta_count);
    for (size_t i = 0; i < count; i++)
        det_memory_delta_close(store, documents->deltas[documents->delta_first + i]);
    documents->delta_first += count;
    documents->delta_count -= count;
    if (documents->delta_first < documents->delta_count)
        return;
    /* The remaining deltas are few, so moving them to the front is cheap. */
    if (documents->delta_count)
        memcpy(
            documents->deltas, documents->deltas + documents->delta_first,
            documents->delta_count * sizeof(struct memory_delta *));
    documents->delta_first = 0;
}

int det_memory_documents_compact(
    struct det_store *base, const struct det_document_keep *keep, uint64_t *ret)
{
    struct memory_store *store = memory_store_of(base);

    det_mutex_lock(base->world, store->mutex);
    *ret = count_old(&store->documents, keep);
    det_memory_deltas_drop(store, (size_t)*ret);
    det_mutex_unlock(base->world, store->mutex);
    return 0;
}
