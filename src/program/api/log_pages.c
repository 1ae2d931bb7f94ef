/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_pages.c - pages of the log: all starts and events of the store. */
#include <detent/tool/machine.h>
#include <detent/tool/store.h>

#include "api/log_pages.h"

#include <string.h>

#include "api/api_internal.h"
#include "base/memory.h"

/* Rows that are read for one page, if filters skip most of them. */
#define BUDGET 50000

/* Returns the record of the payload of a row; NULL: unknown. */
static const struct det_record *record_of(
    struct api_reader *reader, const struct det_store_logged *row)
{
    const struct det_machine *machine = api_reader_find(reader, row->machine);
    int event;

    if (!machine)
        return NULL;
    if (row->is_start)
        return det_machine_data(machine);
    event = row->event ? det_machine_find_event(machine, row->event) : -1;
    return event < 0 ? NULL : det_machine_payload(machine, (unsigned)event);
}

static void write_payload(
    struct det_json_writer *json, struct api_reader *reader, const struct det_store_logged *row)
{
    const struct det_allocator *allocator = json->text.allocator;
    const struct det_record *record = row->payload ? record_of(reader, row) : NULL;
    void *value = record ? det_alloc_zero(allocator, record->size) : NULL;

    if (value && det_record_decode(record, row->payload, row->payload_size, value, NULL) == 0)
        det_json_record(json, row->is_start ? "data" : "payload", record, value, 0);
    if (value)
        det_free(allocator, value, record->size);
}

void api_log_line(
    struct det_json_writer *json, struct api_reader *reader, const struct det_store_logged *row)
{
    char trace[DET_TRACEPARENT_TEXT];

    det_json_open(json, NULL, '{');
    det_json_text(json, "type", row->is_start ? "start" : "event");
    det_json_number(json, "position", row->position);
    det_json_text(json, "machine", row->machine);
    det_json_text(json, "id", row->id);
    det_json_number(json, "sequence", row->sequence);
    det_json_time(json, "at", row->at);
    det_json_number(json, "version", row->version);
    if (row->is_start) {
        det_json_text(json, "state", row->to);
    } else {
        det_json_text(json, "event", row->event);
        det_json_text(json, "from", row->from);
        det_json_text(json, "to", row->to);
        det_json_text(json, "outcome", row->outcome);
        det_json_number(json, "choice", row->choice);
        det_json_number(json, "visit", row->visit);
        det_json_bool(json, "timeout", row->is_timeout);
        det_json_text(json, "event_id", row->event_id);
        det_json_text(json, "cause", row->cause);
    }
    if (row->trace)
        det_json_text(json, "traceparent", det_trace_format(row->trace, trace));
    write_payload(json, reader, row);
    det_json_close(json, '}');
}

struct page {
    struct api_call *call;
    size_t count;
    uint64_t last;
};

static int take_row(void *context, const struct det_store_logged *row)
{
    struct page *page = context;

    /* Rows that share a position are not separated. */
    if (api_page_is_full(page->call) && row->position != page->last)
        return 1;
    page->last = row->position;
    page->count++;
    api_log_line(&page->call->json, page->call->reader, row);
    return det_buffer_status(&page->call->json.text);
}

static bool read_query(struct api_call *call, struct det_store_log_query *query)
{
    uint64_t after = 0;

    *query = (struct det_store_log_query){
        .machine = api_query(call, "machine"),
        .event = api_query(call, "event"),
        .state = api_query(call, "state"),
        .budget = BUDGET,
    };
    if (!api_query_limit(call, &query->limit) || !api_query_id(call, "id", &query->id) ||
        !api_query_number(call, "after", 0, INT64_MAX, &after) ||
        !api_query_bool(call, "backward", &query->is_backward) ||
        !api_query_time(call, "since", &query->since) ||
        !api_query_time(call, "until", &query->until))
        return false;
    query->after = after;
    return true;
}

/* Returns true if there may be more rows: backwards until the start of the log; forwards after a
 * full page or a used-up budget. */
static bool has_more(
    const struct det_store_log_query *query, const struct page *page, uint64_t next)
{
    if (api_page_is_full(page->call))
        return next > 0;
    if (query->is_backward)
        return next > 0;
    return next > query->after && (page->count >= query->limit || next - query->after >= BUDGET);
}

void api_list_log(struct api_call *call)
{
    struct page page = { .call = call };
    struct det_store_log_query query;
    uint64_t next = 0;
    bool is_cut;
    int r;

    if (!read_query(call, &query) || !api_reader_take(call))
        return;
    det_json_open(&call->json, NULL, '{');
    det_json_open(&call->json, "items", '[');
    r = det_store_log(call->reader->store.store, &query, take_row, &page, &next);
    if (r > 0)
        next = page.last;
    is_cut = r >= 0 && has_more(&query, &page, next);
    det_json_close(&call->json, ']');
    if (is_cut)
        det_json_number(&call->json, "next", next);
    else
        det_json_text(&call->json, "next", NULL);
    det_json_number(&call->json, "position", next);
    det_json_close(&call->json, '}');
    if (r == DET_ERR_BUSY)
        api_fail(
            call, r, "the end of the log is unknown while transactions are in progress; retry");
    else if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}
