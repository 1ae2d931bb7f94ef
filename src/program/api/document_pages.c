/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_pages.c - pages of worker documents and of their deltas, from the store. */
#include "api/document_pages.h"

#include <string.h>

#include "api/api_internal.h"
#include "inspect/document_read.h"
#include "store/document.h"

/* Stored text is valid JSON, so parsing fails only without memory. */
static void note_failure(struct det_json_writer *json, int result)
{
    if (result == DET_ERR_NO_MEMORY)
        json->text.error = result;
}

static void write_delta(
    struct det_json_writer *json, const struct det_delta *delta, bool is_revealed)
{
    const struct det_json_value *change = NULL;
    struct det_arena arena;

    if (cli_document_may_show(delta->role, is_revealed)) {
        det_json_raw(json, "delta", delta->text, delta->size);
        return;
    }
    det_arena_init(&arena, json->text.allocator);
    note_failure(json, cli_document_parse(&arena, delta->text, delta->size, &change));
    cli_delta_put(json, "delta", change, true);
    det_arena_deinit(&arena);
}

void api_delta_line(struct det_json_writer *json, const struct det_delta *delta, bool is_revealed)
{
    det_json_open(json, NULL, '{');
    det_json_number(json, "sync", delta->sync);
    det_json_time(json, "at", delta->at);
    det_json_text(json, "id", delta->id);
    det_json_text(json, "worker_kind", delta->kind);
    det_json_text(json, "role", det_document_role_name(delta->role));
    det_json_text(json, "change", det_document_change_name(delta->change));
    det_json_number(json, "version", delta->version);
    write_delta(json, delta, is_revealed);
    det_json_close(json, '}');
}

static void document_line(
    struct det_json_writer *json, const struct det_document *document, bool is_revealed)
{
    struct det_view text = det_view_of(document->text, document->size);
    const struct det_json_value *object = NULL;
    struct det_arena arena;

    det_json_open(json, NULL, '{');
    det_json_text(json, "id", document->id);
    det_json_text(json, "worker_kind", document->kind);
    det_json_text(json, "role", det_document_role_name(document->role));
    det_json_number(json, "sync", document->sync);
    det_json_number(json, "version", document->version);
    det_json_time(json, "created_at", document->created_at);
    det_json_time(json, "updated_at", document->updated_at);
    if (cli_document_may_show(document->role, is_revealed)) {
        det_json_raw(json, "document", text.data, text.size);
    } else {
        det_arena_init(&arena, json->text.allocator);
        note_failure(json, cli_document_parse(&arena, text.data, text.size, &object));
        cli_document_put(json, "document", object, true);
        det_arena_deinit(&arena);
    }
    det_json_close(json, '}');
}

bool api_documents_query(struct api_call *call, struct det_document_query *ret)
{
    const char *role = api_query(call, "role");

    *ret = (struct det_document_query){ .has_role = role != NULL };
    if (!api_query_worker(call, "below", &ret->below) || !api_query_kind(call, &ret->kind))
        return false;
    if (!role || det_document_role_find(role, &ret->role) == 0)
        return true;
    api_fail(call, DET_ERR_INVALID, "'role' must be identity, desired, observed or spec");
    return false;
}

bool api_documents_reveal(struct api_call *call, bool *ret)
{
    if (!api_query_bool(call, "reveal", ret))
        return false;
    if (*ret && !http_request(call->exchange)->is_trusted) {
        api_fail(call, DET_ERR_REFUSED, "secrets are shown only over the unix socket");
        return false;
    }
    return true;
}

/* Pages. */

struct page {
    struct api_call *call;
    size_t count, limit;
    uint64_t sync;                      /* sync id of the last delta */
    char last[DET_DOCUMENT_ID_MAX + 1]; /* id of the last document */
    bool is_cut, is_revealed;
};

static bool is_full(const struct page *page)
{
    return page->count >= page->limit || api_page_is_full(page->call);
}

/* Documents with the same id stay on one page. */
static int take_document(void *context, const struct det_document *document)
{
    struct page *page = context;

    page->is_cut = is_full(page) && strcmp(page->last, document->id) != 0;
    if (page->is_cut)
        return 1;
    page->count++;
    (void)det_text_copy(page->last, sizeof page->last, document->id);
    document_line(&page->call->json, document, page->is_revealed);
    return det_buffer_status(&page->call->json.text);
}

static int take_delta(void *context, const struct det_delta *delta)
{
    struct page *page = context;

    page->is_cut = is_full(page);
    if (page->is_cut)
        return 1;
    page->count++;
    page->sync = delta->sync;
    api_delta_line(&page->call->json, delta, page->is_revealed);
    return det_buffer_status(&page->call->json.text);
}

static void fail_store(struct api_call *call, int code)
{
    api_fail(
        call, code, "%s",
        code == DET_ERR_UNSUPPORTED ? "this kind of store does not support documents"
                                    : det_error_text(code));
}

static void write_position(
    struct det_json_writer *json, const struct det_document_position *position)
{
    det_json_number(json, "position", position->latest);
    det_json_number(json, "oldest", position->oldest);
    det_json_close(json, '}');
}

void api_list_documents(struct api_call *call)
{
    struct page page = { .call = call };
    struct det_document_query query;
    struct det_document_position position = { 0 };
    int r;

    if (!api_query_limit(call, &page.limit) || !api_documents_query(call, &query) ||
        !api_documents_reveal(call, &page.is_revealed) ||
        !api_query_worker(call, "after", &query.after_id) || !api_reader_take(call))
        return;
    query.limit = page.limit;
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    r = det_store_documents_list(
        call->reader->store.store, &query, take_document, &page, &position);
    /* A full page may be followed by an empty one: the store does not read beyond its limit. */
    page.is_cut |= page.count >= page.limit;
    det_json_close(&call->json, ']');
    det_json_text(&call->json, "next", page.is_cut ? page.last : NULL);
    write_position(&call->json, &position);
    if (r < 0)
        fail_store(call, r);
}

/* The page is empty if the store has dropped deltas after the cursor: the client then reads all
 * documents and continues from `position`. */
void api_list_deltas(struct api_call *call)
{
    struct page page = { .call = call };
    struct det_document_query query;
    struct det_document_position position = { 0 };
    bool is_behind;
    int r;

    if (!api_query_limit(call, &page.limit) || !api_documents_query(call, &query) ||
        !api_documents_reveal(call, &page.is_revealed) || !api_reader_take(call))
        return;
    query.after = *(const uint64_t *)call->own;
    query.limit = page.limit + 1;
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    r = det_store_documents_deltas(call->reader->store.store, &query, take_delta, &page, &position);
    is_behind = query.after + 1 < position.oldest;
    if (is_behind) {
        det_buffer_clear(&call->json.text);
        call->json.needs_comma = false;
        det_json_open(&call->json, NULL, '{');
        det_json_open(&call->json, "items", '[');
    }
    det_json_close(&call->json, ']');
    if (page.is_cut && !is_behind)
        det_json_number(&call->json, "next", page.sync);
    else
        det_json_text(&call->json, "next", NULL);
    det_json_bool(&call->json, "bootstrap", is_behind);
    write_position(&call->json, &position);
    if (r < 0)
        fail_store(call, r);
}
