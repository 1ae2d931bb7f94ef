/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.c - documents in the memory store. They end with the process: use them for tests
 * and for data that need not outlive it.
 *
 *     ids:      each id with its documents, in the order of kinds and roles; by name, and in an
 *               array that a list sorts if ids were added or removed since
 *     deltas:   an array of pointers: the delta of sync id n is at n - oldest
 *
 * memory/documents_read.c lists and compacts them.
 *
 * Invariants, under the store's mutex
 *   1. An id in the map is also in the array, at its `index`, and has a document.
 *   2. There is a delta for every sync id of the `delta_count` up to `latest`.
 *   3. A save first judges, then reserves memory, then applies. Applying cannot fail. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/memory/documents.h"

#define CAPACITY_MIN 16u

/* Copies a text with a final 0 to `*place` and advances it. */
static const char *put_text(char **place, const char *text, size_t size)
{
    char *begin = *place;

    if (size)
        memcpy(begin, text, size);
    begin[size] = 0;
    *place += size + 1;
    return begin;
}

/* Making. */

static struct memory_document *document_open(
    struct memory_store *store, const struct det_document_cell *cell)
{
    size_t kind_size = strlen(cell->kind);
    size_t size = sizeof(struct memory_document) + kind_size + 1 + cell->size + 1;
    struct memory_document *document = det_alloc_zero(store->store.allocator, size);
    char *place;

    if (!document)
        return NULL;
    place = (char *)(document + 1);
    document->block_size = size;
    document->row = (struct det_document){
        .role = cell->role,
        .sync = cell->sync,
        .version = cell->version,
        .created_at = cell->created_at,
        .updated_at = cell->updated_at,
        .size = cell->size,
    };
    document->row.kind = put_text(&place, cell->kind, kind_size);
    document->row.text = put_text(&place, cell->text, cell->size);
    return document;
}

static void document_close(struct memory_store *store, struct memory_document *document)
{
    if (document)
        det_free(store->store.allocator, document, document->block_size);
}

static struct memory_delta *delta_open(
    struct memory_store *store, const struct det_document_changed *changed, det_time now)
{
    const struct det_document_cell *cell = changed->cell;
    size_t kind_size = strlen(cell->kind), id_size = strlen(cell->id);
    size_t size = sizeof(struct memory_delta) + kind_size + id_size + changed->size + 3;
    struct memory_delta *delta = det_alloc_zero(store->store.allocator, size);
    char *place;

    if (!delta)
        return NULL;
    place = (char *)(delta + 1);
    delta->block_size = size;
    delta->row = (struct det_delta){
        .sync = changed->sync,
        .at = now,
        .role = cell->role,
        .change = changed->change,
        .version = changed->version,
        .size = changed->size,
    };
    delta->row.kind = put_text(&place, cell->kind, kind_size);
    delta->row.id = put_text(&place, cell->id, id_size);
    delta->row.text = put_text(&place, changed->text, changed->size);
    return delta;
}

void det_memory_delta_close(struct memory_store *store, struct memory_delta *delta)
{
    if (delta)
        det_free(store->store.allocator, delta, delta->block_size);
}

static struct memory_document_id *id_open(struct memory_store *store, const char *text)
{
    size_t size = strlen(text) + 1;
    struct memory_document_id *id = det_alloc_zero(store->store.allocator, sizeof *id + size);

    if (!id)
        return NULL;
    id->id = memcpy(id + 1, text, size);
    det_list_init(&id->documents);
    return id;
}

static void id_close(struct memory_store *store, struct memory_document_id *id)
{
    if (id)
        det_free(store->store.allocator, id, sizeof *id + strlen(id->id) + 1);
}

/* Finding. */

static int compare_places(
    const char *kind, enum det_document_role role, const struct det_document *row)
{
    int order = strcmp(kind, row->kind);

    return order != 0 ? order : (role > row->role) - (role < row->role);
}

/* NULL: no such document. */
static struct memory_document *find_document(
    struct memory_document_id *id, const char *kind, enum det_document_role role)
{
    if (!id)
        return NULL;
    DET_LIST_EACH(node, &id->documents)
    {
        if (compare_places(kind, role, &memory_document_at(node)->row) == 0)
            return memory_document_at(node);
    }
    return NULL;
}

/* The ids. */

/* Grows an array to `count` pointers; NULL: no memory. */
static void *grow_pointers(
    const struct memory_store *store, void *pointers, size_t count, size_t *capacity)
{
    size_t wanted = *capacity ? *capacity : CAPACITY_MIN;

    while (wanted < count)
        wanted *= 2;
    pointers = det_realloc(
        store->store.allocator, pointers, *capacity * sizeof(void *), wanted * sizeof(void *));
    if (pointers)
        *capacity = wanted;
    return pointers;
}

static int add_id(struct memory_store *store, const char *text, struct memory_document_id **ret)
{
    struct memory_documents *documents = &store->documents;
    struct memory_document_id *id, **ids;
    int r;

    ids = documents->ids;
    if (documents->id_count == documents->id_capacity)
        ids = grow_pointers(store, ids, documents->id_count + 1, &documents->id_capacity);
    if (!ids)
        return DET_ERR_NO_MEMORY;
    documents->ids = ids;
    id = id_open(store, text);
    if (!id)
        return DET_ERR_NO_MEMORY;
    r = det_map_put(&documents->id_of, id);
    if (r < 0) {
        id_close(store, id);
        return r;
    }
    id->index = documents->id_count;
    ids[documents->id_count++] = id;
    documents->is_sorted = false;
    *ret = id;
    return 0;
}

static void remove_id(struct memory_store *store, struct memory_document_id *id)
{
    struct memory_documents *documents = &store->documents;
    struct memory_document_id *last = documents->ids[--documents->id_count];

    det_assert(id->index <= documents->id_count && documents->ids[id->index] == id);
    documents->ids[id->index] = last;
    last->index = id->index;
    documents->is_sorted = false;
    (void)det_map_remove(&documents->id_of, id->id);
    id_close(store, id);
}

/* Saving: objects to create before any change. */

struct made {
    struct memory_document **documents; /* for each cell; NULL: none needed */
    struct memory_document_id **ids;    /* for each cell; NULL: the id exists already */
    struct memory_delta **deltas;       /* of each change */
};

static int make_cell(
    struct memory_store *store, const struct det_document_cell *cell, struct made *made,
    size_t index)
{
    if (!cell->is_changed || !cell->is_there)
        return 0;
    made->documents[index] = document_open(store, cell);
    if (!made->documents[index])
        return DET_ERR_NO_MEMORY;
    if (det_map_get(&store->documents.id_of, cell->id))
        return 0;
    return add_id(store, cell->id, &made->ids[index]);
}

static int make_deltas(
    struct memory_store *store, const struct det_document_stage *stage, struct made *made,
    det_time now)
{
    struct memory_documents *documents = &store->documents;
    size_t count = documents->delta_first + documents->delta_count + stage->change_count;
    struct memory_delta **deltas = documents->deltas;

    if (count > documents->delta_capacity)
        deltas = grow_pointers(store, deltas, count, &documents->delta_capacity);
    if (!deltas)
        return DET_ERR_NO_MEMORY;
    documents->deltas = deltas;
    for (size_t i = 0; i < stage->change_count; i++) {
        made->deltas[i] = delta_open(store, &stage->changes[i], now);
        if (!made->deltas[i])
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

static int make_rows(
    struct memory_store *store, struct det_document_stage *stage, struct made *made, det_time now)
{
    struct det_arena *arena = &stage->arena;
    int r = 0;

    made->documents = det_arena_array(arena, stage->cell_count, sizeof(struct memory_document *));
    made->ids = det_arena_array(arena, stage->cell_count, sizeof(struct memory_document_id *));
    made->deltas = det_arena_array(arena, stage->change_count, sizeof(struct memory_delta *));
    if (!made->documents || !made->ids || !made->deltas)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; r == 0 && i < stage->cell_count; i++)
        r = make_cell(store, stage->cells[i], made, i);
    return r < 0 ? r : make_deltas(store, stage, made, now);
}

static void free_rows(
    struct memory_store *store, const struct det_document_stage *stage, const struct made *made)
{
    for (size_t i = 0; made->documents && i < stage->cell_count; i++)
        document_close(store, made->documents[i]);
    for (size_t i = 0; made->ids && i < stage->cell_count; i++) {
        if (made->ids[i])
            remove_id(store, made->ids[i]);
    }
    for (size_t i = 0; made->deltas && i < stage->change_count; i++)
        det_memory_delta_close(store, made->deltas[i]);
}

/* Applying. */

static void put_document(struct memory_document_id *id, struct memory_document *document)
{
    struct det_list *place = &id->documents;

    DET_LIST_EACH(node, &id->documents)
    {
        if (compare_places(document->row.kind, document->row.role, &memory_document_at(node)->row) <
            0) {
            place = node;
            break;
        }
    }
    document->row.id = id->id;
    det_list_insert_before(place, &document->node);
}

static void apply_cell(
    struct memory_store *store, const struct det_document_cell *cell,
    struct memory_document *document)
{
    struct memory_document_id *id = det_map_get(&store->documents.id_of, cell->id);
    struct memory_document *old = find_document(id, cell->kind, cell->role);

    if (old) {
        det_list_remove(&old->node);
        document_close(store, old);
    }
    if (document)
        put_document(id, document);
    else if (id && det_list_is_empty(&id->documents))
        remove_id(store, id);
}

static void apply_save(
    struct memory_store *store, const struct det_document_stage *stage, const struct made *made)
{
    struct memory_documents *documents = &store->documents;

    /* Additions before removals: two cells may have the same id. */
    for (size_t i = 0; i < stage->cell_count; i++) {
        if (stage->cells[i]->is_changed && made->documents[i])
            apply_cell(store, stage->cells[i], made->documents[i]);
    }
    for (size_t i = 0; i < stage->cell_count; i++) {
        if (stage->cells[i]->is_changed && !made->documents[i])
            apply_cell(store, stage->cells[i], NULL);
    }
    if (stage->drops_deltas)
        det_memory_deltas_drop(store, documents->delta_count);
    for (size_t i = 0; i < stage->change_count; i++)
        documents->deltas[documents->delta_first + documents->delta_count++] = made->deltas[i];
    documents->latest = stage->latest;
    det_assert(documents->delta_count <= documents->latest);
    det_assert(documents->id_of.count == documents->id_count);
}

static int save_locked(
    struct memory_store *store, struct det_document_stage *stage, struct det_error *reterr)
{
    det_time now = det_memory_now(&store->store);
    struct made made = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < stage->cell_count; i++) {
        struct det_document_cell *cell = stage->cells[i];
        struct memory_document *there =
            find_document(det_map_get(&store->documents.id_of, cell->id), cell->kind, cell->role);

        if (there)
            r = det_document_stage_fill(stage, cell, &there->row);
    }
    if (r == 0)
        r = det_document_stage_validate(stage, store->documents.latest, now, reterr);
    if (r < 0 || !stage->change_count)
        return r;
    r = make_rows(store, stage, &made, now);
    if (r == 0)
        apply_save(store, stage, &made);
    else
        free_rows(store, stage, &made);
    return r;
}

static int memory_save(
    struct det_store *base, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr)
{
    struct memory_store *store = memory_store_of(base);
    struct det_document_stage stage;
    int r;

    r = det_document_stage_open(&stage, base->allocator, saves, count, reterr);
    if (r == 0) {
        det_mutex_lock(base->world, store->mutex);
        r = save_locked(store, &stage, reterr);
        det_mutex_unlock(base->world, store->mutex);
    }
    if (r == 0)
        det_document_stage_answer(&stage, ret);
    else if (r == DET_ERR_NO_MEMORY)
        (void)det_error_set(reterr, r, "out of memory: cannot save documents");
    det_document_stage_close(&stage);
    return r;
}

static int memory_restore(
    struct det_store *base, const struct det_document *document, uint64_t floor, bool *ret_is_new)
{
    struct memory_store *store = memory_store_of(base);
    struct det_document_stage stage;
    int r;

    r = det_document_stage_open_restored(&stage, base->allocator, document, floor);
    if (r == 0) {
        det_mutex_lock(base->world, store->mutex);
        r = save_locked(store, &stage, NULL);
        det_mutex_unlock(base->world, store->mutex);
    }
    *ret_is_new = r == 0 && det_document_stage_is_new(&stage);
    det_document_stage_close(&stage);
    return r;
}

void det_memory_documents_init(struct memory_store *store)
{
    det_map_init(
        &store->documents.id_of, store->store.allocator, store->seed,
        offsetof(struct memory_document_id, id));
}

void det_memory_documents_deinit(struct memory_store *store)
{
    struct memory_documents *documents = &store->documents;
    struct det_list *node;

    for (size_t i = 0; i < documents->id_count; i++) {
        while ((node = det_list_take(&documents->ids[i]->documents)))
            document_close(store, memory_document_at(node));
        id_close(store, documents->ids[i]);
    }
    det_memory_deltas_drop(store, documents->delta_count);
    det_map_deinit(&documents->id_of);
    if (documents->ids)
        DET_DELETE_ARRAY(store->store.allocator, documents->ids, documents->id_capacity);
    if (documents->deltas)
        DET_DELETE_ARRAY(store->store.allocator, documents->deltas, documents->delta_capacity);
}

const struct det_document_ops det_memory_documents = {
    .save = memory_save,
    .list = det_memory_documents_list,
    .deltas = det_memory_documents_deltas,
    .position = det_memory_documents_position,
    .compact = det_memory_documents_compact,
    .restore = memory_restore,
};
