/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* manual_worker.c - manually created workers: documents of the role "spec", read at the start, and
 * passed to their parents when those are created. The number of startups of each worker is read
 * with them. */
#include <string.h>

#include <detent/tool/documents.h>

#include "base/memory.h"
#include "base/text.h"
#include "worker/worker_tree.h"
#include "json/writer.h"

struct det_restored {
    struct det_list node;
    struct det_child_request *request;
    char parent[]; /* id of the parent */
};

static void free_restored(struct det_workers *workers, struct det_restored *restored)
{
    det_free(workers->allocator, restored, sizeof *restored + strlen(restored->parent) + 1);
}

static int keep(struct det_workers *workers, const char *parent, struct det_child_request *request)
{
    size_t size = strlen(parent) + 1;
    struct det_restored *restored = det_alloc_zero(workers->allocator, sizeof *restored + size);

    if (!restored) {
        det_child_request_free(workers, request);
        return DET_ERR_NO_MEMORY;
    }
    memcpy(restored->parent, parent, size);
    restored->request = request;
    det_list_append(&workers->earlier.restored, &restored->node);
    return 0;
}

static const char *text_of(const struct det_datum *map, const char *key)
{
    const struct det_datum *datum = det_datum_get(map, key);

    return datum && datum->kind == DET_DATUM_TEXT ? datum->text : NULL;
}

static uint64_t number_of(const struct det_datum *map, const char *key)
{
    const struct det_datum *datum = det_datum_get(map, key);

    if (!datum)
        return 0;
    if (datum->kind == DET_DATUM_UNSIGNED)
        return datum->as.large;
    return datum->kind == DET_DATUM_SIGNED && datum->as.number > 0 ? (uint64_t)datum->as.number : 0;
}

static bool is_true(const struct det_datum *map, const char *key)
{
    const struct det_datum *datum = det_datum_get(map, key);

    return datum && datum->kind == DET_DATUM_BOOL && datum->as.truth;
}

struct loading {
    struct det_workers *workers;
    struct det_error *reterr;
};

/* State names are resolved when the parent is created. */
static int load_states(
    struct det_workers *workers, const struct det_datum *map, struct det_child_request *request)
{
    const struct det_datum *list = det_datum_get(map, "run_in");
    struct det_buffer names;
    int r;

    if (!list || list->kind != DET_DATUM_LIST || !list->count)
        return 0;
    det_buffer_init(&names, workers->allocator);
    for (const struct det_datum *item = list->first; item; item = item->next)
        if (item->kind == DET_DATUM_TEXT)
            det_buffer_format(&names, "%s\n", item->text);
    r = det_buffer_status(&names);
    request->states = r ? NULL : det_string_copy(workers->allocator, det_buffer_text(&names));
    det_buffer_deinit(&names);
    return request->states ? 0 : DET_ERR_NO_MEMORY;
}

static int load_spec(
    struct loading *loading, const struct det_document *document, const struct det_datum *map)
{
    struct det_child_spec spec = {
        .name = text_of(map, "name"),
        .kind = text_of(map, "kind"),
        .config = text_of(map, "config"),
        .variables = text_of(map, "variables"),
        .location = text_of(map, "location"),
        .is_disabled = is_true(map, "disabled"),
    };
    const char *parent = text_of(map, "parent");
    bool is_off = is_true(map, DET_ORDERED_OFF);
    struct det_child_request *request;
    int r;

    r = det_record_set_off(loading->workers, document->kind, document->id, is_off);
    if (r < 0 || (is_off && !parent))
        return r;
    if (!parent)
        return det_error_set(
            loading->reterr, DET_ERR_CORRUPT,
            "the store has a manually created worker without a parent");
    r = det_child_request_new(
        loading->workers, &spec, DET_REQUEST_MANUAL, &request, loading->reterr);
    if (r < 0)
        return r;
    r = load_states(loading->workers, map, request);
    if (r == 0)
        return keep(loading->workers, parent, request);
    det_child_request_free(loading->workers, request);
    return r;
}

static int load_identity(
    struct loading *loading, const struct det_document *document, uint64_t startups)
{
    struct det_workers *workers = loading->workers;
    int r;

    if (startups > INT64_MAX)
        return det_error_set(
            loading->reterr, DET_ERR_CORRUPT,
            "the store has a worker with an impossible count of "
            "startups: %s",
            document->id);
    r = det_record_remember(workers, document->kind, document->id, startups);
    return r < 0 ? r
                 : det_unclaimed_add(
                       workers, det_record_known(workers, document->kind, document->id));
}

static int load(void *context, const struct det_document *document)
{
    struct loading *loading = context;
    struct det_arena arena;
    struct det_datum *map;
    int r;

    det_arena_init(&arena, loading->workers->allocator);
    r = det_datum_from_yaml(
        &arena, document->id, document->text, document->size, &map, loading->reterr);
    if (r == 0 && document->role == DET_DOCUMENT_SPEC)
        r = load_spec(loading, document, map);
    else if (r == 0)
        r = load_identity(loading, document, number_of(map, "startups"));
    det_arena_deinit(&arena);
    return r;
}

int det_manual_load(struct det_workers *workers, struct det_error *reterr)
{
    static const enum det_document_role roles[] = { DET_DOCUMENT_IDENTITY, DET_DOCUMENT_SPEC };
    struct loading loading = { workers, reterr };
    int r = 0;

    for (size_t i = 0; i < sizeof roles / sizeof roles[0] && r == 0; i++) {
        struct det_document_query query = { .below = workers->root->identity.id,
                                            .has_role = true,
                                            .role = roles[i] };

        r = det_recorder_load(workers->recorder, &query, load, &loading);
    }
    if (r < 0 && reterr && !reterr->code)
        det_error_set(
            reterr, r, "the documents of workers in the store cannot be read: %s",
            det_error_text(r));
    return r;
}

/* The latest request wins. */
static void forget_older(struct det_worker *worker, const struct det_child_request *request)
{
    struct det_child_request *older =
        det_child_requests_find(worker, request->name, DET_REQUEST_MANUAL);

    if (!older)
        return;
    det_child_requests_remove(worker, older);
    det_child_request_free(worker->workers, older);
}

void det_manual_restore(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    for (struct det_list *node = workers->earlier.restored.next, *next;
         node != &workers->earlier.restored; node = next) {
        struct det_restored *restored = DET_CONTAINER(node, struct det_restored, node);

        next = node->next;
        if (strcmp(restored->parent, worker->identity.id) != 0)
            continue;
        det_list_remove(node);
        forget_older(worker, restored->request);
        det_child_request_find_states(worker, restored->request);
        det_child_requests_insert(worker, &worker->requests.all, restored->request);
        worker->attention |= DET_CHECK_REQUESTS;
        free_restored(workers, restored);
    }
}

void det_manual_forget_all(struct det_workers *workers)
{
    struct det_list *node;

    while ((node = det_list_take(&workers->earlier.restored))) {
        struct det_restored *restored = DET_CONTAINER(node, struct det_restored, node);

        det_child_request_free(workers, restored->request);
        free_restored(workers, restored);
    }
}

static void write_member(struct det_json_writer *json, const char *name, const char *text)
{
    if (text)
        det_json_text(json, name, text);
}

/* By name, since a later version of the kind may number its states differently. */
static void write_states(struct det_json_writer *json, const char *states)
{
    const char *end;

    if (!states)
        return;
    det_json_open(json, "run_in", '[');
    for (const char *at = states; (end = strchr(at, '\n')); at = end + 1)
        det_json_bytes(json, NULL, at, (size_t)(end - at));
    det_json_close(json, ']');
}

/* Documents of removed specs. */
struct dropping {
    struct det_arena arena;
    struct det_buffer saves; /* struct det_document_save */
    const char *kept;        /* a kind to keep; NULL: none */
};

static int drop_one(void *context, const struct det_document *document)
{
    struct dropping *dropping = context;
    struct det_document_save save = { .role = document->role, .is_drop = true };

    if (dropping->kept && !strcmp(dropping->kept, document->kind))
        return 0;
    save.kind = det_arena_copy(&dropping->arena, document->kind);
    save.id = det_arena_copy(&dropping->arena, document->id);
    if (!save.kind || !save.id)
        return DET_ERR_NO_MEMORY;
    det_buffer_append(&dropping->saves, &save, sizeof save);
    return det_buffer_status(&dropping->saves);
}

/* Drops the documents that the query finds, together with `save`, which may be NULL. */
static int replace(
    struct det_workers *workers, const struct det_document_query *query,
    const struct det_document_save *save, struct det_error *reterr)
{
    struct dropping dropping = { .kept = save ? save->kind : NULL };
    int r;

    det_arena_init(&dropping.arena, workers->allocator);
    det_buffer_init(&dropping.saves, workers->allocator);
    r = det_store_documents_list(workers->store, query, drop_one, &dropping, NULL);
    if (r == 0 && save)
        det_buffer_append(&dropping.saves, save, sizeof *save);
    r = r ? r : det_buffer_status(&dropping.saves);
    if (r < 0)
        det_error_set(reterr, r, "the specs in the store cannot be read: %s", det_error_text(r));
    else if (dropping.saves.size)
        r = det_store_documents_save(
            workers->store, (const struct det_document_save *)(void *)dropping.saves.data,
            dropping.saves.size / sizeof *save, NULL, reterr);
    det_buffer_deinit(&dropping.saves);
    det_arena_deinit(&dropping.arena);
    return r;
}

int det_manual_save(
    struct det_workers *workers, const char *parent, const struct det_child_spec *spec,
    const char *states, bool is_ordered_off, struct det_error *reterr)
{
    struct det_document_save save = { .kind = spec->kind, .role = DET_DOCUMENT_SPEC };
    struct det_document_query query = { .has_role = true, .role = DET_DOCUMENT_SPEC };
    struct det_buffer id;
    struct det_json_writer json;
    int r;

    det_buffer_init(&id, workers->allocator);
    det_buffer_format(&id, "%s/%s", parent, spec->name);
    det_json_writer_init(&json, workers->allocator);
    json.text.limit = DET_DOCUMENT_MAX;
    det_json_open(&json, NULL, '{');
    write_member(&json, "parent", parent);
    write_member(&json, "name", spec->name);
    write_member(&json, "kind", spec->kind);
    write_member(&json, "config", spec->config);
    write_member(&json, "variables", spec->variables);
    write_member(&json, "location", spec->location);
    write_states(&json, states);
    det_json_bool(&json, "disabled", spec->is_disabled);
    if (is_ordered_off)
        det_json_bool(&json, DET_ORDERED_OFF, true);
    det_json_close(&json, '}');
    save.id = query.id = det_buffer_text(&id);
    save.text = det_buffer_text(&json.text);
    save.size = json.text.size;
    r = det_buffer_status(&id) ? det_buffer_status(&id) : det_buffer_status(&json.text);
    r = r ? det_error_set(reterr, r, "the spec of %s does not fit a document", spec->name)
          : replace(workers, &query, &save, reterr);
    det_buffer_deinit(&id);
    det_buffer_deinit(&json.text);
    return r;
}

int det_manual_drop(
    struct det_workers *workers, const char *id, bool with_below, struct det_error *reterr)
{
    struct det_document_query query = {
        .id = with_below ? NULL : id, .below = id, .has_role = true, .role = DET_DOCUMENT_SPEC
    };

    return replace(workers, &query, NULL, reterr);
}

bool det_manual_waits(const struct det_workers *workers, const char *id)
{
    const char *slash = strrchr(id, '/');
    size_t size = slash ? (size_t)(slash - id) : 0;

    for (struct det_list *node = workers->earlier.restored.next;
         node != &workers->earlier.restored && slash; node = node->next) {
        const struct det_restored *restored = DET_CONTAINER(node, struct det_restored, node);

        if (strlen(restored->parent) == size && !memcmp(restored->parent, id, size) &&
            !strcmp(restored->request->name, slash + 1))
            return true;
    }
    return false;
}

bool det_manual_has(const struct det_worker *worker)
{
    const struct det_worker *parent = worker->parent;

    if (worker->place.origin == DET_REQUEST_MANUAL)
        return true;
    if (!parent)
        return false;
    return det_child_requests_find(parent, worker->identity.name, DET_REQUEST_MANUAL) ||
           det_manual_waits(worker->workers, worker->identity.id);
}

/* Returns the original spec to the request. */
static void give_back(struct det_worker *worker)
{
    struct det_child_request *request =
        det_child_requests_find(worker->parent, worker->identity.name, worker->place.origin);

    if (!request || request->is_changed)
        return;
    request->spec = worker->spec;
    request->is_changed = true;
    memset(&worker->spec, 0, sizeof worker->spec);
}

/* Without memory the worker returns only with the next opening of the store. */
void det_manual_wait(
    struct det_workers *workers, const char *parent, struct det_child_request *request_take)
{
    if (keep(workers, parent, request_take) < 0 && workers->root)
        det_worker_publish(
            workers->root,
            (struct det_worker_event){ .kind = DET_WORKER_EVENT_CHILD_REFUSED,
                                       .code = DET_ERR_NO_MEMORY,
                                       .reason = det_error_text(DET_ERR_NO_MEMORY) });
}

void det_manual_disown(struct det_worker *worker, enum det_child_request_origin origin)
{
    if (worker->place.origin == origin)
        return;
    give_back(worker);
    worker->place.origin = origin;
}

void det_manual_keep(struct det_worker *worker)
{
    struct det_workers *workers = worker->workers;

    if (workers->stopping.is_wanted || worker->leaving.is_deleted)
        return;
    if (worker->place.origin == DET_REQUEST_MANUAL && worker->parent)
        give_back(worker);
    for (struct det_list *node = worker->requests.all.next, *next; node != &worker->requests.all;
         node = next) {
        struct det_child_request *request = DET_CONTAINER(node, struct det_child_request, node);

        next = node->next;
        if (request->origin != DET_REQUEST_MANUAL)
            continue;
        det_child_requests_remove(worker, request);
        det_manual_wait(workers, worker->identity.id, request);
    }
}
