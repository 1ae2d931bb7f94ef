/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_rows.c - reads and prints rows of a flow's run. */
#include "inspect/flow_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "flow/log_rows.h"
#include "record/varint.h"

#define SYSTEM      "system"
#define CHECKPOINTS "checkpoints"
/* Rows of a block that is read to page backwards. */
#define BLOCK_FIRST 256
#define INPUTS_MAX  64 /* of a stage, that are shown */

/* The view. */

static size_t largest_record(const struct det_flow *flow)
{
    size_t largest = 1;

    for (size_t i = 0; flow && i < flow->stage_count; i++) {
        const struct det_record *records[] = { det_record_of(flow->stages[i].in),
                                               det_record_of(flow->stages[i].out),
                                               det_record_of(flow->stages[i].reference),
                                               det_record_of(flow->stages[i].state) };

        for (size_t j = 0; j < sizeof records / sizeof *records; j++)
            if (records[j] && records[j]->size > largest)
                largest = records[j]->size;
    }
    return largest;
}

int flow_view_init(
    struct flow_view *view, const struct det_allocator *allocator, const struct det_flow *flow,
    struct det_journal *journal, uint64_t run)
{
    *view =
        (struct flow_view){ .allocator = allocator, .flow = flow, .journal = journal, .run = run };
    view->value_size = largest_record(flow);
    view->value = det_alloc_zero(allocator, view->value_size);
    return view->value ? 0 : DET_ERR_NO_MEMORY;
}

void flow_view_deinit(struct flow_view *view)
{
    if (view->value)
        det_free(view->allocator, view->value, view->value_size);
    view->value = NULL;
}

int flow_find_stream(struct det_journal *journal, const char *name)
{
    const char *at;

    for (uint16_t stream = 0; (at = det_journal_stream_name(journal, stream)); stream++) {
        if (strcmp(at, name) == 0)
            return stream;
    }
    return -1;
}

const char *flow_near_stream(struct det_journal *journal, const char *name)
{
    const char *words[2] = { NULL }; /* the nearest one so far, and the next */

    for (uint16_t stream = 0; (words[1] = det_journal_stream_name(journal, stream)); stream++) {
        const char *const *from = words[0] ? words : words + 1;
        int nearest = det_text_nearest(name, from, words[0] ? 2 : 1);

        if (nearest >= 0)
            words[0] = from[nearest];
    }
    return words[0];
}

/* The stage of a stream: the name up to a dot. */
static const struct det_stage *stage_of(struct flow_view *view, const char *stream)
{
    size_t size = strcspn(stream, ".");

    if (size >= sizeof view->stage)
        return NULL;
    memcpy(view->stage, stream, size);
    view->stage[size] = '\0';
    for (size_t i = 0; view->flow && i < view->flow->stage_count; i++) {
        if (strcmp(view->flow->stages[i].name, view->stage) == 0)
            return &view->flow->stages[i];
    }
    return NULL;
}

const char *flow_row_kind(const struct det_journal_row *row)
{
    switch ((enum det_flow_row)row->kind) {
    case DET_ROW_DATA:
        return "data";
    case DET_ROW_END:
        return "end";
    case DET_ROW_REJECTED:
        return "rejected";
    case DET_ROW_PROGRESS:
        return "progress";
    case DET_ROW_STATE:
        return "state";
    case DET_ROW_GONE:
        return "gone";
    case DET_ROW_FACT:
        return "fact";
    case DET_ROW_CHECKPOINT:
    case DET_ROW_CHECKPOINT_END:
        return "checkpoint";
    }
    return "unknown";
}

/* Writing. */

static void write_value(
    struct flow_view *view, struct det_json_writer *json, const char *key,
    const struct det_record *record, const void *data, size_t size)
{
    struct det_error error = { 0 };

    if (!record) {
        det_json_null(json, key);
        return;
    }
    det_assert(record->size <= view->value_size);
    if (det_record_decode(record, data, size, view->value, &error) == 0) {
        det_json_record(json, key, record, view->value, 0);
        return;
    }
    det_json_null(json, key);
    det_json_text(json, "error", error.text);
}

static void write_end(struct det_json_writer *json, const struct det_journal_row *row)
{
    static const char *const names[] = { "none", "natural", "truncated", "poison" };
    enum det_end_kind end = DET_END_NONE;
    uint64_t rows = 0;

    if (det_end_row_read(row->data, row->size, &end, &rows) < 0 || end > DET_END_POISON) {
        det_json_text(json, "error", "the row is malformed");
        return;
    }
    det_json_text(json, "end", names[end]);
    det_json_number(json, "rows", rows);
}

static void write_text(struct det_json_writer *json, const char *key, struct det_view text)
{
    det_json_bytes(json, key, text.data, text.size);
}

/* Why, code, text; the rest is the input. */
int flow_rejected_read(const struct det_journal_row *row, struct flow_rejected *ret)
{
    struct det_byte_source source = { .data = row->data, .size = row->size };
    struct det_varint code = { 0, DET_NOWHERE }, length = { 0, DET_NOWHERE };
    size_t end;

    if (row->size)
        code = det_get_varint(&source, 1);
    if (code.end != DET_NOWHERE)
        length = det_get_varint(&source, code.end);
    if (length.end == DET_NOWHERE || !det_source_has(&source, length.end, (size_t)length.number))
        return DET_ERR_MALFORMED;
    end = length.end + (size_t)length.number;
    *ret = (struct flow_rejected){
        .why = source.data[0],
        .code = code.number > 0 && code.number <= INT32_MAX ? -(int)code.number : 0,
        .text = det_view_of((const char *)source.data + length.end, (size_t)length.number),
        .input = source.data + end,
        .input_size = row->size - end,
    };
    return 0;
}

static void write_rejected(
    struct flow_view *view, struct det_json_writer *json, const struct det_stage *stage,
    const struct det_journal_row *row)
{
    struct flow_rejected rejected;

    if (flow_rejected_read(row, &rejected) < 0) {
        det_json_text(json, "error", "the row is malformed");
        return;
    }
    det_json_text(json, "why", det_row_rejection_name(rejected.why));
    if (rejected.code)
        det_json_text(json, "code", det_error_name(rejected.code));
    write_text(json, "text", rejected.text);
    if (rejected.input_size)
        write_value(
            view, json, "value", stage ? det_record_of(stage->in) : NULL, rejected.input,
            rejected.input_size);
    else
        det_json_null(json, "value");
}

static void write_progress(struct det_json_writer *json, const struct det_journal_row *row)
{
    struct det_input_mark inputs[INPUTS_MAX];
    struct det_flow_progress progress = { .inputs = inputs, .input_capacity = INPUTS_MAX };

    if (det_progress_row_read(row->data, row->size, &progress) < 0) {
        det_json_text(json, "error", "the row is malformed");
        return;
    }
    det_json_number(json, "rows_out", progress.rows_out);
    det_json_number(json, "errors", progress.errors);
    det_json_number(json, "rejected", progress.rejected);
    det_json_open(json, "inputs", '[');
    for (uint32_t i = 0; i < progress.input_count; i++) {
        det_json_open(json, NULL, '{');
        det_json_number(json, "sequence", inputs[i].sequence);
        det_json_number(json, "rows", inputs[i].rows);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

static void write_state(
    struct flow_view *view, struct det_json_writer *json, const struct det_stage *stage,
    const struct det_journal_row *row)
{
    const struct det_record *record = NULL;
    struct det_state_row state;

    if (det_state_row_read(row->data, row->size, &state) < 0) {
        det_json_text(json, "error", "the row is malformed");
        return;
    }
    if (stage)
        record = det_record_of(stage->kind == DET_STAGE_JOIN ? stage->reference : stage->state);
    det_json_number(json, "rows", state.rows);
    write_value(view, json, "value", record, state.state, state.state_size);
}

static void write_fact(
    struct flow_view *view, struct det_json_writer *json, const struct det_journal_row *row)
{
    struct det_flow_fact fact = { 0 };
    struct det_error error = { 0 };

    if (det_flow_fact_read(row, view->stage, view->text, &fact, &error) < 0) {
        det_json_text(json, "error", error.text);
        return;
    }
    det_json_text(json, "fact", det_flow_fact_name(fact.kind));
    det_json_text(json, "stage", fact.stage);
    det_json_text(json, "reason", fact.reason && *fact.reason ? fact.reason : NULL);
    det_json_number(json, "rows_in", fact.rows_in);
    det_json_number(json, "rows_out", fact.rows_out);
    det_json_number(json, "rejected", fact.errors);
}

static void write_content(
    struct flow_view *view, struct det_json_writer *json, const struct det_journal_row *row,
    const struct det_stage *stage)
{
    switch ((enum det_flow_row)row->kind) {
    case DET_ROW_DATA:
        write_value(
            view, json, "value", stage ? det_record_of(stage->out) : NULL, row->data, row->size);
        return;
    case DET_ROW_END:
        write_end(json, row);
        return;
    case DET_ROW_REJECTED:
        write_rejected(view, json, stage, row);
        return;
    case DET_ROW_PROGRESS:
        write_progress(json, row);
        return;
    case DET_ROW_STATE:
        write_state(view, json, stage, row);
        return;
    case DET_ROW_FACT:
        write_fact(view, json, row);
        return;
    case DET_ROW_GONE:
    case DET_ROW_CHECKPOINT:
    case DET_ROW_CHECKPOINT_END:
        return;
    }
}

void flow_row_write(
    struct flow_view *view, struct det_json_writer *json, const char *key,
    const struct det_journal_row *row)
{
    const char *stream = det_journal_stream_name(view->journal, row->stream);
    bool is_fact = row->kind == DET_ROW_FACT;
    const struct det_stage *stage = stage_of(view, stream ? stream : "");

    det_json_open(json, key, '{');
    det_json_number(json, "position", row->position);
    det_json_text(json, "stream", stream);
    det_json_number(json, "sequence", row->sequence);
    det_json_text(json, "kind", flow_row_kind(row));
    det_json_time(json, "at", row->at);
    if (!is_fact) {
        det_json_time(json, "event_time", row->event_time);
        det_json_number(json, "correlation", row->correlation);
        if (row->parent)
            det_json_number(json, "parent", row->parent);
        else
            det_json_null(json, "parent");
    }
    write_content(view, json, row, stage);
    det_json_close(json, '}');
}

/* Progress. */

static int open_last(
    struct det_journal *journal, const char *stage, struct det_journal_reader **ret)
{
    struct det_journal_reader_options options = { .one_stream = true };
    char name[DET_JOURNAL_NAME_MAX + 1];
    uint64_t position = 0;
    int stream;

    (void)snprintf(name, sizeof name, "%s.state", stage);
    stream = flow_find_stream(journal, name);
    if (stream < 0 || det_journal_last(journal, (uint16_t)stream, NULL, &position) < 0 || !position)
        return DET_ERR_NOT_FOUND;
    options.stream = (uint16_t)stream;
    options.from = options.until = position;
    return det_journal_reader_open(journal, &options, ret, NULL);
}

/* The last row of a turn is its PROGRESS row. */
bool flow_read_place(struct det_journal *journal, const char *stage, uint32_t input, uint64_t *ret)
{
    struct det_input_mark inputs[INPUTS_MAX];
    struct det_flow_progress progress = { .inputs = inputs, .input_capacity = INPUTS_MAX };
    struct det_journal_reader *reader;
    struct det_journal_row row;
    bool is_found = false;

    if (open_last(journal, stage, &reader) < 0)
        return false;
    if (det_journal_reader_next(reader, &row, NULL) > 0 && row.kind == DET_ROW_PROGRESS)
        is_found = det_progress_row_read(row.data, row.size, &progress) == 0 &&
                   input < progress.input_count;
    det_journal_reader_close(reader);
    if (is_found)
        *ret = inputs[input].sequence;
    return is_found;
}

/* Pages. */

struct paging {
    struct flow_view *view;
    const struct flow_rows_query *query;
    int stream; /* -1: all */
    flow_row_fn *each;
    void *user;
    struct flow_rows_page *page;
    size_t count, seen;
};

static bool is_shown(const struct paging *paging, const struct det_journal_row *row)
{
    if (paging->stream >= 0 && row->stream != paging->stream)
        return false;
    if (paging->query->kind && strcmp(paging->query->kind, flow_row_kind(row)) != 0)
        return false;
    if (paging->stream >= 0 && !paging->query->is_stream_only_data)
        return true;
    return row->kind == DET_ROW_DATA || row->kind == DET_ROW_REJECTED || row->kind == DET_ROW_END ||
           row->kind == DET_ROW_FACT;
}

static int open_reader(
    const struct paging *paging, uint64_t from, uint64_t until, struct det_journal_reader **ret,
    struct det_error *reterr)
{
    struct det_journal_reader_options options = { .from = from, .until = until };

    if (paging->stream >= 0) {
        options.one_stream = true;
        options.stream = (uint16_t)paging->stream;
    }
    return det_journal_reader_open(paging->view->journal, &options, ret, reterr);
}

/* Returns 1 when the page is complete. */
static int take_row(struct paging *paging, const struct det_journal_row *row)
{
    int r;

    paging->seen++;
    if (is_shown(paging, row)) {
        if (paging->count == paging->query->limit)
            return 1;
        r = paging->each(paging->user, paging->view, row);
        if (r != 0)
            return r;
        paging->count++;
    }
    paging->page->next = row->position;
    return paging->query->budget && paging->seen >= paging->query->budget ? 1 : 0;
}

static int read_forward(struct paging *paging, struct det_error *reterr)
{
    uint64_t begin = det_journal_begin(paging->view->journal), from = paging->query->after + 1;
    struct det_journal_reader *reader;
    struct det_journal_row row;
    int r;

    if (from < begin)
        from = begin;
    paging->page->next = paging->query->after;
    if (from > paging->page->position)
        return 0;
    r = open_reader(paging, from, paging->page->position, &reader, reterr);
    if (r < 0)
        return r;
    while ((r = det_journal_reader_next(reader, &row, reterr)) > 0) {
        r = take_row(paging, &row);
        if (r != 0)
            break;
    }
    det_journal_reader_close(reader);
    paging->page->has_more = r > 0;
    /* Rows of other streams up to the end need not be read again. */
    if (r == 0)
        paging->page->next = paging->page->position;
    return r < 0 ? r : 0;
}

/* Rows [from, until] are read forwards to find the positions of the last `count` matching ones. */
static int find_last(
    struct paging *paging, uint64_t from, uint64_t until, uint64_t *positions, size_t wanted,
    size_t *ret_count, struct det_error *reterr)
{
    struct det_journal_reader *reader;
    struct det_journal_row row;
    size_t count = 0;
    int r = open_reader(paging, from, until, &reader, reterr);

    if (r < 0)
        return r;
    while ((r = det_journal_reader_next(reader, &row, reterr)) > 0) {
        if (is_shown(paging, &row))
            positions[count++ % wanted] = row.position;
    }
    det_journal_reader_close(reader);
    *ret_count = count;
    return r;
}

static int show_one(struct paging *paging, uint64_t position, struct det_error *reterr)
{
    struct det_journal_reader *reader;
    struct det_journal_row row;
    int r = open_reader(paging, position, position, &reader, reterr);

    if (r < 0)
        return r;
    r = det_journal_reader_next(reader, &row, reterr);
    if (r > 0)
        r = paging->each(paging->user, paging->view, &row);
    det_journal_reader_close(reader);
    return r;
}

/* Shows the found rows, newest first. */
static int show_last(
    struct paging *paging, const uint64_t *positions, size_t wanted, size_t count,
    struct det_error *reterr)
{
    size_t shown = count < wanted ? count : wanted;
    int r = 0;

    for (size_t i = 0; r == 0 && i < shown; i++) {
        uint64_t position = positions[(count - 1 - i) % wanted];

        r = show_one(paging, position, reterr);
        if (r == 0)
            paging->page->next = position;
    }
    return r;
}

/* Doubles the block before the end until it has enough rows. */
static int read_backward(struct paging *paging, struct det_error *reterr)
{
    uint64_t begin = det_journal_begin(paging->view->journal), until = paging->page->position;
    uint64_t block = BLOCK_FIRST, from = 0;
    size_t wanted = paging->query->limit, count = 0;
    uint64_t *positions;
    int r = 0;

    if (paging->query->after && paging->query->after <= until)
        until = paging->query->after - 1;
    if (until < begin || until == 0)
        return 0;
    positions = DET_NEW_ARRAY(paging->view->allocator, wanted, uint64_t);
    if (!positions)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    do {
        from = until - begin < block ? begin : until - block + 1;
        r = find_last(paging, from, until, positions, wanted, &count, reterr);
        block *= 2;
    } while (r == 0 && count < wanted && from > begin &&
             (!paging->query->budget || block < paging->query->budget));
    paging->page->next = from;
    if (r == 0)
        r = show_last(paging, positions, wanted, count, reterr);
    paging->page->has_more = count > wanted || from > begin || r > 0;
    DET_DELETE_ARRAY(paging->view->allocator, positions, wanted);
    return r < 0 ? r : 0;
}

int flow_rows_read(
    struct flow_view *view, const struct flow_rows_query *query, flow_row_fn *each, void *user,
    struct flow_rows_page *ret, struct det_error *reterr)
{
    struct paging paging = {
        .view = view, .query = query, .stream = -1, .each = each, .user = user, .page = ret
    };

    *ret = (struct flow_rows_page){ .position = det_journal_acknowledged(view->journal) };
    if (query->stream)
        paging.stream = flow_find_stream(view->journal, query->stream);
    if (query->stream && paging.stream < 0) {
        const char *near = flow_near_stream(view->journal, query->stream);

        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "there is no stream '%.96s'%s%s%s", query->stream,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return query->is_backward ? read_backward(&paging, reterr) : read_forward(&paging, reterr);
}
