/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* order.c - persistent orders to disable a worker: a member of the document of the role "spec",
 * beside a manual spec, or alone. */
#include <string.h>

#include <detent/tool/documents.h>

#include "base/memory.h"
#include "worker/worker_tree.h"
#include "json/writer.h"

/* Another process may save the same document at the same time. */
#define ATTEMPTS 5

struct reading {
    struct det_arena arena;
    const char *kind;
    struct det_datum *map; /* NULL: no document yet */
    uint64_t version;
};

static int read_one(void *context, const struct det_document *document)
{
    struct reading *reading = context;

    if (strcmp(document->kind, reading->kind) != 0)
        return 0;
    reading->version = document->version;
    return det_datum_from_yaml(
        &reading->arena, document->id, document->text, document->size, &reading->map, NULL);
}

/* All existing members except the order, and the new one. */
static void write_all(struct det_json_writer *json, const struct det_datum *map, bool is_off)
{
    const struct det_datum *first = map && map->kind == DET_DATUM_MAP ? map->first : NULL;

    for (const struct det_datum *item = first; item; item = item->next) {
        if (!strcmp(item->key, DET_ORDERED_OFF))
            continue;
        det_json_key(json, item->key);
        det_datum_to_json(item, &json->text);
    }
    if (is_off)
        det_json_bool(json, DET_ORDERED_OFF, true);
    det_json_close(json, '}');
}

static int save(
    struct det_workers *workers, const struct reading *reading, const char *id, bool is_off)
{
    struct det_document_save save = { .kind = reading->kind,
                                      .id = id,
                                      .role = DET_DOCUMENT_SPEC,
                                      .has_expected = true,
                                      .expected = reading->version };
    struct det_json_writer json;
    int r;

    det_json_writer_init(&json, workers->allocator);
    json.text.limit = DET_DOCUMENT_MAX;
    det_json_open(&json, NULL, '{');
    write_all(&json, reading->map, is_off);
    save.is_drop = json.text.size == strlen("{}");
    save.text = save.is_drop ? NULL : det_buffer_text(&json.text);
    save.size = save.is_drop ? 0 : json.text.size;
    r = det_buffer_status(&json.text);
    if (r == 0)
        r = det_store_documents_save(workers->store, &save, 1, NULL, NULL);
    det_buffer_deinit(&json.text);
    return r;
}

static int attempt(struct det_workers *workers, const char *kind, const char *id, bool is_off)
{
    struct det_document_query query = { .id = id, .has_role = true, .role = DET_DOCUMENT_SPEC };
    struct reading reading = { .kind = kind };
    int r;

    det_arena_init(&reading.arena, workers->allocator);
    r = det_store_documents_list(workers->store, &query, read_one, &reading, NULL);
    if (r == 0 && (is_off || reading.map))
        r = save(workers, &reading, id, is_off);
    det_arena_deinit(&reading.arena);
    return r;
}

int det_order_save(struct det_workers *workers, const char *kind, const char *id, bool is_off)
{
    int r = DET_ERR_CONFLICT;

    for (int i = 0; i < ATTEMPTS && r == DET_ERR_CONFLICT; i++)
        r = attempt(workers, kind, id, is_off);
    return r;
}

void det_order_restore(struct det_worker *worker)
{
    worker->rest.is_ordered_off = det_record_is_off(worker);
    worker->seen.is_disabled = worker->rest.is_disabled || worker->rest.is_ordered_off;
}
