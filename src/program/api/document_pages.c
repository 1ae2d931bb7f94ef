/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_pages.c - what the store has about workers: documents, and what has changed in them. */
#include "api/document_pages.h"

#include <string.h>

#include "api/api_internal.h"
#include "inspect/document_read.h"

static const char *key_of(const struct member *member, char target[64])
{
    snprintf(
        target, 64, "%.*s", (int)(member->key.size < 63 ? member->key.size : 63), member->key.data);
    return target;
}

/* An object of a spec, with its secrets cut off; `is_modified`: its values are {"old", "new"}. */
static void put_fields(struct line *line, const char *key, struct det_view text, bool is_modified)
{
    struct det_error error;
    struct members members;
    char name[64];

    line_open(line, key, '{');
    if (members_read(&members, NULL, text, &error) < 0)
        members.count = 0;
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];

        if (!cli_document_is_secret(member->key)) {
            line_raw(line, key_of(member, name), member->raw.data, member->raw.size);
        } else if (!is_modified) {
            line_text(line, key_of(member, name), DOCUMENT_REDACTED);
        } else {
            line_open(line, key_of(member, name), '{');
            line_text(line, "old", DOCUMENT_REDACTED);
            line_text(line, "new", DOCUMENT_REDACTED);
            line_close(line, '}');
        }
    }
    line_close(line, '}');
}

static void put_delta(struct line *line, const struct det_delta *delta)
{
    struct det_error error;
    struct members members;
    char name[64];

    if (delta->role != DET_DOCUMENT_SPEC) {
        line_raw(line, "delta", delta->text, delta->size);
        return;
    }
    line_open(line, "delta", '{');
    if (members_read(&members, NULL, det_view_of(delta->text, delta->size), &error) < 0)
        members.count = 0;
    for (size_t i = 0; i < members.count; i++)
        put_fields(
            line, key_of(&members.items[i], name), members.items[i].raw,
            det_view_equal(members.items[i].key, det_view_text("modified")));
    line_close(line, '}');
}

void api_delta_line(struct line *line, const struct det_delta *delta)
{
    line_open(line, NULL, '{');
    line_number(line, "sync", delta->sync);
    line_time(line, "at", delta->at);
    line_text(line, "id", delta->id);
    line_text(line, "worker_kind", delta->kind);
    line_text(line, "role", det_document_role_name(delta->role));
    line_text(line, "change", det_document_change_name(delta->change));
    line_number(line, "version", delta->version);
    put_delta(line, delta);
    line_close(line, '}');
}

static void document_line(struct line *line, const struct det_document *document)
{
    struct det_view text = det_view_of(document->text, document->size);

    line_open(line, NULL, '{');
    line_text(line, "id", document->id);
    line_text(line, "worker_kind", document->kind);
    line_text(line, "role", det_document_role_name(document->role));
    line_number(line, "sync", document->sync);
    line_number(line, "version", document->version);
    line_time(line, "created_at", document->created_at);
    line_time(line, "updated_at", document->updated_at);
    if (document->role == DET_DOCUMENT_SPEC)
        put_fields(line, "document", text, false);
    else
        line_raw(line, "document", text.data, text.size);
    line_close(line, '}');
}

bool api_documents_query(struct api_call *call, struct det_document_query *ret)
{
    const char *role = api_query(call, "role");

    *ret = (struct det_document_query){ .has_role = role != NULL };
    if (!api_query_worker(call, "below", &ret->below) || !api_query_kind(call, &ret->kind))
        return false;
    if (!role)
        return true;
    for (ret->role = DET_DOCUMENT_IDENTITY; ret->role <= DET_DOCUMENT_SPEC; ret->role++) {
        if (strcmp(det_document_role_name(ret->role), role) == 0)
            return true;
    }
    api_fail(call, DET_ERR_INVALID, "'role' is identity, desired, observed or spec");
    return false;
}

/* Pages. */

struct page {
    struct api_call *call;
    size_t count, limit;
    uint64_t sync;                      /* of the last delta */
    char last[DET_DOCUMENT_ID_MAX + 1]; /* the id of the last document */
    bool is_cut;
};

static bool is_full(const struct page *page)
{
    return page->count >= page->limit || api_page_is_full(page->call);
}

/* Those of one id are not parted. */
static int take_document(void *context, const struct det_document *document)
{
    struct page *page = context;

    page->is_cut = is_full(page) && strcmp(page->last, document->id) != 0;
    if (page->is_cut)
        return 1;
    page->count++;
    (void)det_text_copy(page->last, sizeof page->last, document->id);
    document_line(&page->call->line, document);
    return det_buffer_status(&page->call->line.text);
}

static int take_delta(void *context, const struct det_delta *delta)
{
    struct page *page = context;

    page->is_cut = is_full(page);
    if (page->is_cut)
        return 1;
    page->count++;
    page->sync = delta->sync;
    api_delta_line(&page->call->line, delta);
    return det_buffer_status(&page->call->line.text);
}

static void fail_store(struct api_call *call, int code)
{
    api_fail(
        call, code, "%s",
        code == DET_ERR_UNSUPPORTED ? "this kind of store keeps no documents"
                                    : det_error_text(code));
}

static void put_position(struct line *line, const struct det_document_position *position)
{
    line_number(line, "position", position->latest);
    line_number(line, "oldest", position->oldest);
    line_close(line, '}');
}

void api_list_documents(struct api_call *call)
{
    struct page page = { .call = call };
    struct det_document_query query;
    struct det_document_position position = { 0 };
    int r;

    if (!api_query_limit(call, &page.limit) || !api_documents_query(call, &query) ||
        !api_query_worker(call, "after", &query.after_id) || !api_reader_take(call))
        return;
    query.limit = page.limit;
    line_open(&call->line, NULL, '{');
    line_open(&call->line, "items", '[');
    r = det_store_documents_list(
        call->reader->store.store, &query, take_document, &page, &position);
    /* The store ends behind the last id that it may begin with: there may be no more. */
    page.is_cut |= page.count >= page.limit;
    line_close(&call->line, ']');
    line_text(&call->line, "next", page.is_cut ? page.last : NULL);
    put_position(&call->line, &position);
    if (r < 0)
        fail_store(call, r);
}

/* Where some of those that are asked for have gone there are none: the position says where to go
 * on when all documents were read. */
void api_list_deltas(struct api_call *call)
{
    struct page page = { .call = call };
    struct det_document_query query;
    struct det_document_position position = { 0 };
    bool is_behind;
    int r;

    if (!api_query_limit(call, &page.limit) || !api_documents_query(call, &query) ||
        !api_reader_take(call))
        return;
    query.after = *(const uint64_t *)call->own;
    query.limit = page.limit + 1;
    line_open(&call->line, NULL, '{');
    line_open(&call->line, "items", '[');
    r = det_store_documents_deltas(call->reader->store.store, &query, take_delta, &page, &position);
    is_behind = query.after + 1 < position.oldest;
    if (is_behind) {
        det_buffer_clear(&call->line.text);
        call->line.needs_comma = false;
        line_open(&call->line, NULL, '{');
        line_open(&call->line, "items", '[');
    }
    line_close(&call->line, ']');
    if (page.is_cut && !is_behind)
        line_number(&call->line, "next", page.sync);
    else
        line_text(&call->line, "next", NULL);
    line_bool(&call->line, "bootstrap", is_behind);
    put_position(&call->line, &position);
    if (r < 0)
        fail_store(call, r);
}
