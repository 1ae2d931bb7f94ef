/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_routes.c - flows: their state, their rows and facts. */
#include <string.h>

#include <detent/tool/flow_draw.h>

#include "api/api_internal.h"
#include "api/flow_reading.h"

/* Rows that are read for one page, if the stream has few of them. */
#define BUDGET 200000

static void fail_error(struct api_call *call, int r)
{
    if (r == DET_ERR_NOT_FOUND)
        api_fail(call, r, "there is no flow '%s'", call->parameters[0]);
    else if (r < 0)
        api_fail(call, r, "%s", det_error_text(r));
}

/* State. */

static void write_flows(struct up *up, struct api_call *call)
{
    int r;

    det_json_open(&call->json, NULL, '{');
    r = up_write_flows(up, &call->json, "items");
    det_json_close(&call->json, '}');
    fail_error(call, r);
}

void api_list_flows(struct api_call *call)
{
    api_on_daemon(call, write_flows, NULL);
}

static void write_flow(struct up *up, struct api_call *call)
{
    fail_error(call, up_write_flow(up, &call->json, call->parameters[0]));
}

void api_get_flow(struct api_call *call)
{
    api_on_daemon(call, write_flow, NULL);
}

/* The diagram. */

static void draw_flow(struct api_call *call, const struct det_flow *flow, enum api_format format)
{
    const struct det_draw_options options = {
        .drawing = format == API_FORMAT_MERMAID ? DET_DRAW_MERMAID_FLOWCHART : DET_DRAW_DOT,
    };
    struct det_error error = { 0 };
    int64_t size = det_flow_draw(flow, &options, NULL, 0, &error);
    char *text = size < 0 ? NULL : det_arena_alloc(&call->arena, (size_t)size + 1);

    if (size >= 0 && !text)
        size = det_error_set(&error, DET_ERR_NO_MEMORY, "out of memory");
    if (size >= 0)
        size = det_flow_draw(flow, &options, text, (size_t)size + 1, &error);
    if (size < 0)
        api_fail_with(call, (int)size, &error);
    else
        api_write_drawing(call, format, text, (size_t)size);
}

void api_get_flow_diagram(struct api_call *call)
{
    enum api_format format;
    struct up_flow_hold hold;

    if (!api_read_format(call, &format))
        return;
    if (up_flow_hold(call->api->up, call->parameters[0], &hold) < 0) {
        fail_error(call, DET_ERR_NOT_FOUND);
        return;
    }
    draw_flow(call, hold.definition->flow, format);
    up_flow_release(call->api->up, &hold);
}

/* Rows. */

static int take_row(void *user, struct flow_view *view, const struct det_journal_row *row)
{
    struct api_call *call = user;

    if (api_page_is_full(call))
        return 1;
    flow_row_write(view, &call->json, NULL, row);
    return det_buffer_status(&call->json.text);
}

bool api_flow_has_stream(const struct det_flow *flow, const char *stream)
{
    size_t size = strcspn(stream, ".");

    for (size_t i = 0; i < flow->stage_count; i++) {
        const char *name = flow->stages[i].name;

        if (strlen(name) == size && strncmp(name, stream, size) == 0)
            return !stream[size] || strcmp(stream + size, ".errors") == 0 ||
                   strcmp(stream + size, ".state") == 0;
    }
    return strcmp(stream, "system") == 0 || strcmp(stream, "checkpoints") == 0;
}

int api_flow_fail_stream(
    const struct det_flow *flow, const char *name, const char *stream, struct det_error *reterr)
{
    const char *words[2] = { NULL }, *suffix = strchr(stream, '.'); /* the nearest one, the next */
    char stage[DET_JOURNAL_NAME_MAX + 1];

    (void)snprintf(stage, sizeof stage, "%.*s", (int)strcspn(stream, "."), stream);
    for (size_t i = 0; i < flow->stage_count; i++) {
        const char *const *from = words[0] ? words : words + 1;
        int nearest;

        words[1] = flow->stages[i].name;
        nearest = det_text_nearest(stage, from, words[0] ? 2 : 1);
        words[0] = nearest < 0 ? words[0] : from[nearest];
    }
    suffix = suffix && strcmp(suffix, ".state") == 0 ? ".state" : suffix ? ".errors" : "";
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND, "the flow '%s' has no stream '%.96s'%s%s%s%s", name, stream,
        words[0] ? "; did you mean '" : "", words[0] ? words[0] : "", words[0] ? suffix : "",
        words[0] ? "'?" : "");
}

static int read_rows(
    struct api_call *call, struct flow_reading *reading, const struct flow_rows_query *query,
    struct flow_rows_page *page, struct det_error *reterr)
{
    int r;

    if (query->stream && !api_flow_has_stream(reading->hold.definition->flow, query->stream))
        return api_flow_fail_stream(
            reading->hold.definition->flow, call->parameters[0], query->stream, reterr);
    /* A flow that has not run has no rows. */
    if (!reading->view.journal)
        return 0;
    r = flow_rows_read(&reading->view, query, take_row, call, page, reterr);
    return r == DET_ERR_NOT_FOUND ? 0 : r;
}

static void write_page(
    struct api_call *call, const struct flow_reading *reading, const struct flow_rows_page *page)
{
    struct det_json_writer *json = &call->json;

    det_json_close(json, ']');
    if (page->has_more)
        det_json_number(json, "next", page->next);
    else
        det_json_null(json, "next");
    det_json_number(json, "position", page->position);
    det_json_number(json, "run", reading->view.run);
    det_json_close(json, '}');
}

static void list_rows(struct api_call *call, const char *stream, const char *kind)
{
    struct flow_rows_query query = { .stream = stream, .kind = kind, .budget = BUDGET };
    struct flow_rows_page page = { 0 };
    struct det_error error = { 0 };
    struct flow_reading reading;
    uint64_t run = 0;
    int r;

    if (!api_query_limit(call, &query.limit) ||
        !api_query_number(call, "after", 0, INT64_MAX, &query.after) ||
        !api_query_number(call, "run", 1, 999999, &run) ||
        !api_query_bool(call, "backward", &query.is_backward))
        return;
    r = flow_reading_open(call->api, call->parameters[0], run, &reading, &error);
    if (r == 0) {
        det_json_open(&call->json, NULL, '{');
        det_json_open(&call->json, "items", '[');
        r = read_rows(call, &reading, &query, &page, &error);
        write_page(call, &reading, &page);
        flow_reading_close(&reading);
    }
    if (r < 0)
        api_fail_with(call, r, &error);
}

bool api_query_stream(struct api_call *call, const char **ret)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    const char *stream = api_query(call, "stream");
    size_t size = stream ? strlen(stream) : 1;

    *ret = stream;
    if (size > 0 && size <= DET_JOURNAL_NAME_MAX && (!stream || strspn(stream, letters) == size))
        return true;
    api_fail(
        call, DET_ERR_INVALID, "'stream' must have 1 to %d characters of a-z 0-9 _ . -",
        DET_JOURNAL_NAME_MAX);
    return false;
}

static bool query_kind(struct api_call *call, const char **ret)
{
    static const char *const kinds[] = { "data", "rejected", "end", "fact" };

    *ret = api_query(call, "kind");
    for (size_t i = 0; *ret && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(*ret, kinds[i]) == 0)
            return true;
    if (*ret)
        api_fail(call, DET_ERR_INVALID, "'kind' must be data, rejected, end or fact");
    return !*ret;
}

void api_list_flow_rows(struct api_call *call)
{
    const char *stream, *kind;

    if (api_query_stream(call, &stream) && query_kind(call, &kind))
        list_rows(call, stream, kind);
}

void api_list_flow_facts(struct api_call *call)
{
    list_rows(call, "system", NULL);
}
