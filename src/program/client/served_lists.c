/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* served_lists.c - lists of a served store: definitions, instances, due work, jobs, documents. They
 * are read in pages, each after the last row of the previous one. */
#include <detent/tool/documents.h>
#include <detent/tool/machine.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "client/served_internal.h"
#include "inspect/pending.h"
#include "inspect/print_tasks.h"
#include "store/document.h"
#include "store/jobs.h"
#include "store/row.h"
#include "store/store.h"

/* Visits a row: returns the result of the visit, or an error. */
typedef int each_fn(void *context, const struct det_json_value *json);

/* Sends the request, visits the rows and ends the call. */
static int each_row(struct served_call *call, each_fn *each, void *context)
{
    const struct det_json_value *json = NULL;
    int answer = 0, r;

    r = served_ask(call);
    while (r == 0 && answer == 0 && (r = served_next(call, &json)) > 0) {
        answer = each(context, json);
        r = 0;
    }
    r = served_end(call, r);
    return r < 0 ? r : answer;
}

/* 0: no limit. */
static void query_limit(struct served_call *call, size_t limit)
{
    served_query_number(call, "limit", limit && limit < SERVED_PAGE ? limit : SERVED_PAGE);
}

/* Definitions. */

struct definitions {
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec);
    void *context;
};

static int take_definition(void *context, const struct det_json_value *json)
{
    const struct definitions *definitions = context;

    return definitions->visit(
        definitions->context, show_text(json, "name"),
        (uint32_t)det_json_get_number(json, "version"), det_json_get_text(json, "spec"));
}

int served_machines(
    struct det_store *store,
    int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
    void *context)
{
    struct definitions definitions = { visit, context };
    struct served_call call;

    served_begin(&call, store);
    det_buffer_append_text(&call.path, "/v1/definitions");
    return each_row(&call, take_definition, &definitions);
}

/* Instances. */

struct listing {
    const struct det_machine *machine;
    const struct det_store_query *query;
    size_t count;
    int (*visit)(void *context, const struct det_store_listed *row);
    void *context;
};

static int take_instance(void *context, const struct det_json_value *json)
{
    struct listing *listing = context;
    struct det_store_listed row = {
        .id = show_text(json, "id"),
        .is_stopped = det_json_get_bool(json, "stopped"),
        .sequence = det_json_get_number(json, "sequence"),
        .started_at = det_json_get_time(json, "started_at"),
        .moved_at = det_json_get_time(json, "moved_at"),
    };
    uint16_t state = 0;
    int r = 0;

    if (listing->query->after && strcmp(row.id, listing->query->after) <= 0)
        return 0;
    if (!listing->query->ids_only)
        r = det_row_state_find(listing->machine, show_text(json, "state"), &state);
    row.state = state;
    det_assert(!listing->query->limit || listing->count < listing->query->limit);
    if (r == 0)
        r = listing->visit(listing->context, &row);
    return r == 0 && ++listing->count == listing->query->limit ? SERVED_ENOUGH : r;
}

/* The API accepts only ids, a store any text: sends the longest prefix that may be an id; rows up
 * to the text are skipped when they arrive. */
static void query_after(struct served_call *call, const char *after)
{
    char id[DET_ID_MAX + 1];
    size_t size = after ? strnlen(after, DET_ID_MAX) : 0;

    snprintf(id, sizeof id, "%.*s", (int)size, size ? after : "");
    while (*id && !det_store_id_is_valid(id))
        id[--size] = '\0';
    served_query(call, "after", *id ? id : NULL);
}

int served_list(
    struct det_store *store, const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row), void *context)
{
    struct listing listing = { machine, query, 0, visit, context };
    struct served_call call;
    int r;

    served_begin(&call, store);
    served_machine_path(&call, machine, "/instances");
    det_assert(!query->has_state || query->state < machine->state_count);
    if (query->has_state)
        served_query(&call, "state", machine->states[query->state].name);
    if (query->stopped != DET_STORE_ANY)
        served_query(&call, "stopped", query->stopped == DET_STORE_STOPPED ? "true" : "false");
    served_query_time(&call, "moved_before", query->moved_before);
    served_query_bool(&call, "dead", query->has_dead);
    served_query_bool(&call, "locked", query->is_locked);
    served_query_bool(&call, "ids", query->ids_only);
    query_limit(&call, query->limit);
    query_after(&call, query->after);
    r = each_row(&call, take_instance, &listing);
    return r == SERVED_ENOUGH ? 0 : r;
}

/* Due work. */

int served_due(
    struct det_store *store, const struct det_machine *machine,
    const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), void *context, det_time *ret_next)
{
    const struct det_json_value *answer = NULL;
    bool is_timer = query->kind == DET_DUE_TIMERS;
    struct served_call call;
    int r;

    if (query->limit > PENDING_DUE_MAX || query->kind == DET_DUE_ANY)
        return DET_ERR_LIMIT;
    served_begin(&call, store);
    served_machine_path(&call, machine, "/due");
    served_query(&call, "kind", is_timer ? "timers" : "effects");
    served_query_time(&call, "from", query->from);
    served_query_number(&call, "limit", query->limit);
    r = served_get(&call, &answer);
    if (r == 0) {
        *ret_next = det_json_is(det_json_get(answer, "next"), DET_JSON_STRING)
                        ? det_json_get_time(answer, "next")
                        : DET_NEVER;
        DET_JSON_EACH (json, det_json_get(answer, "items")) {
            struct det_store_due row = { show_text(json, "id"), det_json_get_time(json, "due"),
                                         is_timer };

            r = r == 0 ? visit(context, &row) : r;
        }
    }
    return served_end(&call, r);
}

/* Jobs of durable slots. */

struct jobs {
    struct det_store *store;
    const struct det_job_query *query;
    size_t count;
    int (*visit)(void *context, const struct det_job_row *row);
    void *context;
};

static int take_job(void *context, const struct det_json_value *json)
{
    struct jobs *jobs = context;
    const struct det_json_value *body = det_json_get(json, "body");
    struct det_job_row row = {
        .key = det_json_get_number(json, "key"),
        .queue = show_text(json, "queue"),
        .id = show_text(json, "id"),
        .task = show_text(json, "work"),
        .body = det_json_is(body, DET_JSON_STRING) ? body->text.data : "",
        .body_size = det_json_is(body, DET_JSON_STRING) ? body->text.size : 0,
        .attempts = (uint32_t)det_json_get_number(json, "attempts"),
        .owner = "",
        .submitted_at = det_json_get_time(json, "submitted_at"),
        .ended_at = det_json_get_time(json, "ended_at"),
        .reason = show_text(json, "reason"),
        .is_damaged = det_json_get_bool(json, "damaged"),
    };
    int r;

    if (det_jobs_state_find(show_text(json, "state"), &row.state) < 0)
        return served_invalid(jobs->store);
    det_assert(!jobs->query->limit || jobs->count < jobs->query->limit);
    row.due_at = det_json_get_time(json, row.state == DET_JOB_RUNNING ? "claimed_until" : "due_at");
    r = jobs->visit(jobs->context, &row);
    return r == 0 && ++jobs->count == jobs->query->limit ? SERVED_ENOUGH : r;
}

static int list_jobs(
    struct det_store *store, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *row), void *context)
{
    struct jobs jobs = { store, query, 0, visit, context };
    struct served_call call;
    int r;

    served_begin(&call, store);
    det_buffer_append_text(&call.path, "/v1/submissions");
    served_query(&call, "queue", query->queue);
    served_query(&call, "id", query->id);
    served_query(&call, "state", query->has_state ? det_jobs_state_name(query->state) : NULL);
    served_query(&call, "order", query->is_newest_first ? "newest" : "oldest");
    query_limit(&call, query->limit);
    served_query_number(&call, "after", query->after);
    r = each_row(&call, take_job, &jobs);
    return r == SERVED_ENOUGH ? 0 : r;
}

const struct det_job_ops served_jobs = { .list = list_jobs };

/* Documents of workers. The unix socket also returns secrets; the command redacts them. */

struct documents {
    struct det_store *store;
    int (*document)(void *context, const struct det_document *row);
    int (*delta)(void *context, const struct det_delta *row);
    void *context;
    uint64_t last;  /* sync id of the last delta */
    bool is_behind; /* some of the next deltas were deleted */
};

static int take_document(void *context, const struct det_json_value *json)
{
    const struct documents *documents = context;
    const struct det_json_value *text = det_json_get(json, "document");
    struct det_document row = {
        .kind = show_text(json, "worker_kind"),
        .id = show_text(json, "id"),
        .sync = det_json_get_number(json, "sync"),
        .version = det_json_get_number(json, "version"),
        .created_at = det_json_get_time(json, "created_at"),
        .updated_at = det_json_get_time(json, "updated_at"),
    };

    if (!text || det_document_role_find(show_text(json, "role"), &row.role) < 0)
        return served_invalid(documents->store);
    row.text = text->raw.data;
    row.size = text->raw.size;
    return documents->document(documents->context, &row);
}

static int take_delta(void *context, const struct det_json_value *json)
{
    struct documents *documents = context;
    const struct det_json_value *text = det_json_get(json, "delta");
    const char *change = show_text(json, "change");
    struct det_delta row = {
        .sync = det_json_get_number(json, "sync"),
        .at = det_json_get_time(json, "at"),
        .kind = show_text(json, "worker_kind"),
        .id = show_text(json, "id"),
        .version = det_json_get_number(json, "version"),
    };

    if (!text || det_document_role_find(show_text(json, "role"), &row.role) < 0)
        return served_invalid(documents->store);
    while (row.change < DET_DOCUMENT_DROPPED &&
           strcmp(det_document_change_name(row.change), change) != 0)
        row.change++;
    row.text = text->raw.data;
    row.size = text->raw.size;
    documents->last = row.sync;
    return documents->delta(documents->context, &row);
}

static void take_position(struct served_call *call, struct det_document_position *ret)
{
    const struct det_json_value *page = daemon_client_page(call->client);

    ret->latest = det_json_get_number(page, "position");
    ret->oldest = det_json_get_number(page, "oldest");
}

static void query_documents(struct served_call *call, const struct det_document_query *query)
{
    served_query(call, "below", query->below);
    served_query(call, "kind", query->kind);
    served_query(call, "role", query->has_role ? det_document_role_name(query->role) : NULL);
    served_query_bool(call, "reveal", true);
}

/* Reads the first page for the position at which the changes end. */
static int read_position(struct det_store *store, struct det_document_position *ret)
{
    const struct det_json_value *json = NULL;
    struct served_call call;
    int r;

    served_begin(&call, store);
    det_buffer_append_text(&call.path, "/v1/documents");
    served_query_number(&call, "limit", 1);
    r = served_ask(&call);
    if (r == 0)
        r = served_next(&call, &json);
    if (r >= 0)
        take_position(&call, ret);
    return served_end(&call, r < 0 ? r : 0);
}

static int list_documents(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    struct documents documents = { .store = store, .document = visit, .context = context };
    struct served_call call;
    int r = ret ? read_position(store, ret) : 0;

    if (r < 0)
        return r;
    served_begin(&call, store);
    det_buffer_append_text(&call.path, "/v1/documents");
    query_documents(&call, query);
    query_limit(&call, 0);
    served_query(&call, "after", query->after_id);
    return each_row(&call, take_document, &documents);
}

/* Lists the deltas after the last one. If some were deleted, the answer has none and reports
 * this. */
static int list_behind(
    struct det_store *store, const struct det_document_query *query, struct documents *documents)
{
    const struct det_json_value *json = NULL, *page;
    struct served_call call;
    int answer = 0, r;

    served_begin(&call, store);
    det_buffer_append_text(&call.path, "/v1/deltas");
    query_documents(&call, query);
    query_limit(&call, 0);
    served_query_number(&call, "after", documents->last);
    r = served_ask(&call);
    while (r == 0 && answer == 0 && (r = served_next(&call, &json)) > 0) {
        answer = take_delta(documents, json);
        r = 0;
    }
    page = r < 0 || answer ? NULL : daemon_client_page(call.client);
    documents->is_behind = det_json_get_bool(page, "bootstrap");
    if (documents->is_behind)
        documents->last = det_json_get_number(page, "oldest") - 1;
    r = served_end(&call, r);
    return r < 0 ? r : answer;
}

/* Like a store, lists the remaining deltas. */
static int list_deltas(
    struct det_store *store, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret)
{
    struct documents documents = {
        .store = store, .delta = visit, .context = context, .last = query->after
    };
    int r = ret ? read_position(store, ret) : 0;

    do {
        if (r == 0)
            r = list_behind(store, query, &documents);
    } while (r == 0 && documents.is_behind);
    return r;
}

const struct det_document_ops served_documents = {
    .list = list_documents,
    .deltas = list_deltas,
    .position = read_position,
};
