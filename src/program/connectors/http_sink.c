/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_sink.c - the sink `http`: a request for each row or for a batch, with the key of the row as
 * its Idempotency-Key. At least once: a server that knows keys makes it exactly once. */
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "connectors/http_request.h"
#include "connectors/rejections.h"
#include "connectors/row_json.h"
#include "connectors/row_key.h"
#include "connectors/row_template.h"
#include "connectors/settings.h"
#include "os/os.h"

#define REC_SPEC "connectors/http_sink.rec"
#include <detent/rec/declare.h>

#define TIMEOUT     (30 * DET_SECOND)
#define RETRY_FOR   DET_MINUTE
#define BATCH_MAX   10000
#define BODY_LARGE  4194304
#define HEADERS_MAX 16

struct header {
    const char *name; /* in the arena of the settings */
    struct row_template value;
};

struct http_sink {
    struct http_sender sender;
    struct http_sink_settings settings;
    struct settings source; /* keeps the texts of the headers */
    struct columns columns;
    struct row_template url;
    struct header headers[HEADERS_MAX];
    struct rejections rejections;
    size_t header_count;
    det_time timeout;
    bool is_jsonl, has_source;
    struct det_buffer body, text;
    struct det_row_info *rows; /* of the body */
    size_t row_count, row_max;
    char bearer[SETTINGS_SECRET_MAX + 8];
    char ca_file[DET_PATH_MAX];
};

static const char *const trees[] = { "headers", NULL };

/* A row must not choose the host: fields are only in the path and the query. */
static int check_url(
    const struct http_sink *sink, const struct settings *settings, struct det_error *reterr)
{
    const char *url = sink->settings.url, *host = strstr(url, "://"), *field = strchr(url, '{');
    const char *path = host ? strchr(host + 3, '/') : NULL;

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return settings_fail_key(
            settings, "url", reterr, "not an http or https URL; use for example http://host/rows");
    if (field && (!path || field < path))
        return settings_fail_key(
            settings, "url", reterr, "a field is possible only in the path, after the host");
    if (path ? memchr(url, '@', (size_t)(path - url)) != NULL : strchr(url, '@') != NULL)
        return settings_fail_key(
            settings, "url", reterr,
            "a user or password is not possible in the URL; use bearer_file:");
    return 0;
}

static bool is_method(const char *method)
{
    static const char *const methods[] = { "", "POST", "PUT", "PATCH", "DELETE" };

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i], method) == 0)
            return true;
    return false;
}

static int check_batch(
    const struct http_sink *sink, const struct settings *settings, struct det_error *reterr)
{
    const struct http_sink_settings *value = &sink->settings;

    if (!is_method(value->method))
        return settings_fail_key(
            settings, "method", reterr, "unknown method '%s': use POST, PUT, PATCH or DELETE",
            value->method);
    if (value->batch > BATCH_MAX)
        return settings_fail_key(settings, "batch", reterr, "at most %d rows", BATCH_MAX);
    if (*value->format && strcmp(value->format, "json") != 0 && strcmp(value->format, "jsonl") != 0)
        return settings_fail_key(
            settings, "format", reterr, "unknown word '%s': use json or jsonl", value->format);
    if (value->batch > 1 && strchr(value->url, '{'))
        return settings_fail_key(
            settings, "url", reterr,
            "fields in the URL need one request for each row: remove "
            "batch:");
    return 0;
}

static bool is_header_name(const char *name)
{
    for (const char *at = name; *at; at++)
        if (!strchr("-_", *at) && !(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
            !(*at >= '0' && *at <= '9'))
            return false;
    return *name != 0;
}

static int add_header(
    struct http_sink *sink, const struct settings *settings, const struct det_datum *item,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    struct header *header = &sink->headers[sink->header_count];
    struct det_error error = { 0 };
    int r;

    if (sink->header_count == HEADERS_MAX || !is_header_name(item->key) || !item->text)
        return settings_fail(
            settings, item, reterr, "at most %d headers with a name and a text: {X-Origin: plant}",
            HEADERS_MAX);
    if (strcasecmp(item->key, "authorization") == 0 || strcasecmp(item->key, "cookie") == 0)
        return settings_fail(
            settings, item, reterr,
            "secrets do not belong into settings: use bearer_file: or "
            "bearer_environment:");
    r = row_template_init(&header->value, allocator, item->key, item->text, &sink->columns, &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    if (r < 0)
        return settings_fail(settings, item, reterr, "%s", error.text);
    if (sink->row_max > 1 && row_template_has_fields(&header->value)) {
        row_template_deinit(&header->value);
        return settings_fail(
            settings, item, reterr,
            "fields in a header need one request for each row: remove batch:");
    }
    header->name = item->key;
    sink->header_count++;
    return 0;
}

static int add_headers(
    struct http_sink *sink, const struct settings *settings, const struct det_allocator *allocator,
    struct det_error *reterr)
{
    const struct det_datum *map = det_datum_get(settings->root, "headers");
    int r = 0;

    if (map && map->kind != DET_DATUM_MAP)
        return settings_fail(
            settings, map, reterr, "expected a map of headers, found %s",
            det_datum_kind_text(map->kind));
    for (const struct det_datum *item = map ? map->first : NULL; item && r == 0; item = item->next)
        r = add_header(sink, settings, item, allocator, reterr);
    return r;
}

static int compile(
    struct http_sink *sink, const struct det_stage *stage, const struct settings *settings,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    struct det_error error = { 0 };
    int r;

    r = columns_init(&sink->columns, allocator, det_record_of(stage->in), COLUMNS_NESTED);
    if (r < 0)
        return det_error_set(reterr, r, "%s: out of memory", settings->what);
    r = row_template_init(&sink->url, allocator, "url", sink->settings.url, &sink->columns, &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    if (r < 0)
        return settings_fail_key(settings, "url", reterr, "%s", error.text);
    return add_headers(sink, settings, allocator, reterr);
}

/* `folder` and the secret are used only with a call. */
static int read_settings(
    struct http_sink *sink, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, bool reads_secret, struct det_error *reterr)
{
    struct http_sink_settings *value = &sink->settings;
    struct settings *settings = &sink->source;
    char secret[SETTINGS_SECRET_MAX + 1] = "";
    int r;

    r = settings_open(
        settings, stage, allocator, http_sink_settings_record(), value, trees, reterr);
    if (r < 0)
        return r;
    sink->has_source = true;
    sink->is_jsonl = strcmp(value->format, "jsonl") == 0;
    sink->row_max = value->batch > 1 ? value->batch : 1;
    r = settings_need(settings, "url", value->url, "url: http://host/rows", reterr);
    if (r == 0)
        r = check_url(sink, settings, reterr);
    if (r == 0)
        r = check_batch(sink, settings, reterr);
    if (r == 0)
        r = settings_duration(settings, "timeout", value->timeout, TIMEOUT, &sink->timeout, reterr);
    if (r == 0)
        r = settings_duration(
            settings, "retry_for", value->retry_for, RETRY_FOR, &sink->sender.retry_for, reterr);
    if (r == 0 && *value->ca_file)
        r = settings_path(settings, "ca_file", value->ca_file, folder, sink->ca_file, reterr);
    if (r == 0 && reads_secret && (*value->bearer_file || *value->bearer_environment))
        r = settings_secret(
            settings, value->bearer_file, value->bearer_environment, folder, secret, reterr);
    if (*secret)
        snprintf(sink->bearer, sizeof sink->bearer, "Bearer %s", secret);
    explicit_bzero(secret, sizeof secret);
    if (r == 0)
        r = compile(sink, stage, settings, allocator, reterr);
    return r;
}

static void free_sink(struct http_sink *sink, const struct det_allocator *allocator)
{
    http_sender_close(&sink->sender);
    for (size_t i = 0; i < sink->header_count; i++)
        row_template_deinit(&sink->headers[i].value);
    row_template_deinit(&sink->url);
    columns_deinit(&sink->columns);
    rejections_deinit(&sink->rejections);
    det_buffer_deinit(&sink->body);
    det_buffer_deinit(&sink->text);
    if (sink->rows)
        DET_DELETE_ARRAY(allocator, sink->rows, sink->row_max);
    if (sink->has_source)
        settings_close(&sink->source);
    explicit_bzero(sink->bearer, sizeof sink->bearer);
    DET_DELETE(allocator, sink);
}

static int http_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct http_sink *sink = DET_NEW(NULL, struct http_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(sink, stage, NULL, folder, false, reterr);
    free_sink(sink, NULL);
    return r;
}

static int http_open(struct det_stage_call *call)
{
    struct http_sink *sink = DET_NEW(call->allocator, struct http_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    det_buffer_init(&sink->body, call->allocator);
    det_buffer_init(&sink->text, call->allocator);
    rejections_init(&sink->rejections, call->allocator);
    r = read_settings(sink, call->stage, call->allocator, call->folder, true, &error);
    if (r < 0)
        r = settings_refuse(call, &error);
    if (r == 0) {
        sink->rows = DET_NEW_ARRAY(call->allocator, sink->row_max, struct det_row_info);
        r = sink->rows ? http_sender_open(&sink->sender, call, NULL) : DET_ERR_NO_MEMORY;
    }
    if (r < 0)
        free_sink(sink, call->allocator);
    else
        call->self = sink;
    return r;
}

static void http_close(struct det_stage_call *call)
{
    free_sink(call->self, call->allocator);
    call->self = NULL;
}

static void add_row(struct http_sink *sink, const struct det_stage_call *call, const void *in)
{
    bool is_array = sink->row_max > 1 && !sink->is_jsonl;

    if (is_array)
        det_buffer_append_char(&sink->body, sink->row_count ? ',' : '[');
    row_json(call, &sink->columns, sink->settings.key_field, in, &sink->body);
    if (sink->is_jsonl)
        det_buffer_append_char(&sink->body, '\n');
    sink->rows[sink->row_count++] = call->row;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

/* DET_ERR_INVALID: a value cannot be that of a header. */
static int add_lines(struct http_sink *sink, const void *in, struct http_lines *lines)
{
    const char *name = *sink->settings.key_header ? sink->settings.key_header : "Idempotency-Key";
    const struct det_row_info *first = &sink->rows[0], *last = &sink->rows[sink->row_count - 1];
    char one[ROW_KEY_MAX], key[ROW_KEY_MAX + 24];

    (void)row_key(sink->sender.call, first->position, one);
    if (last == first)
        snprintf(key, sizeof key, "%s", one);
    else
        snprintf(key, sizeof key, "%s-%" PRIu64, one, last->position);
    if (!http_lines_add(lines, name, key) ||
        !http_lines_add(
            lines, "Content-Type", sink->is_jsonl ? "application/x-ndjson" : "application/json") ||
        !http_lines_add(lines, "Expect", "") ||
        (*sink->bearer && !http_lines_add(lines, "Authorization", sink->bearer)))
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < sink->header_count; i++) {
        det_buffer_clear(&sink->text);
        row_template_render(&sink->headers[i].value, in, ROW_TEMPLATE_PLAIN, &sink->text);
        if (has_control(det_buffer_text(&sink->text)))
            return DET_ERR_INVALID;
        if (det_buffer_status(&sink->text) < 0 ||
            !http_lines_add(lines, sink->headers[i].name, det_buffer_text(&sink->text)))
            return DET_ERR_NO_MEMORY;
    }
    return 0;
}

/* Rejects all rows of the request. Returns the result of deliver() for the row in hand. */
static int reject_rows(struct http_sink *sink, enum det_row_rejection why, const char *text)
{
    struct det_stage_call *call = sink->sender.call;

    if (sink->row_max == 1)
        return det_stage_reject(call, why, "%s", text);
    for (size_t i = 0; i < sink->row_count; i++)
        if (rejections_add(&sink->rejections, &sink->rows[i], why, text) < 0)
            return det_stage_fail(call, DET_ERR_NO_MEMORY, "http: out of memory");
    return 0;
}

static int settle(struct http_sink *sink, enum http_outcome outcome)
{
    struct det_stage_call *call = sink->sender.call;

    switch (outcome) {
    case HTTP_DONE:
        return 0;
    case HTTP_CANCELLED:
        return DET_ERR_CANCELLED;
    case HTTP_REFUSED:
        return reject_rows(sink, DET_REJECT_PERMANENT, sink->sender.text);
    case HTTP_SHUT_OUT:
        return det_stage_fail(
            call, DET_ERR_REFUSED,
            "http: %s; check bearer_file or bearer_environment, then resume the flow",
            sink->sender.text);
    case HTTP_FAILED:
        break;
    }
    return det_stage_fail(
        call, DET_ERR_IO, "http: %s; check the server and the network, then resume the flow",
        sink->sender.text);
}

static int send_request(struct http_sink *sink, const void *in, const struct http_lines *lines)
{
    struct http_call wanted = { .method = *sink->settings.method ? sink->settings.method : NULL,
                                .timeout = sink->timeout,
                                .lines = lines,
                                .send = sink->body.data,
                                .send_size = sink->body.size,
                                .ca_file = sink->ca_file };

    det_buffer_clear(&sink->text);
    row_template_render(&sink->url, in, ROW_TEMPLATE_URL, &sink->text);
    if (det_buffer_status(&sink->text) < 0)
        return det_stage_fail(sink->sender.call, DET_ERR_NO_MEMORY, "http: out of memory");
    wanted.url = det_buffer_text(&sink->text);
    return settle(sink, http_sender_send(&sink->sender, &wanted));
}

/* Sends what was collected. `in` is the last row; NULL: nothing needs its fields. */
static int send_rows(struct http_sink *sink, const void *in)
{
    struct http_lines lines = { NULL };
    int r;

    if (sink->row_max > 1 && !sink->is_jsonl)
        det_buffer_append_char(&sink->body, ']');
    r = det_buffer_status(&sink->body);
    if (r == 0)
        r = add_lines(sink, in, &lines);
    if (r == DET_ERR_INVALID)
        r = reject_rows(sink, DET_REJECT_VALIDATION, "a field in a header has a control character");
    else if (r < 0)
        r = det_stage_fail(sink->sender.call, r, "http: out of memory");
    else
        r = send_request(sink, in, &lines);
    http_lines_deinit(&lines);
    det_buffer_clear(&sink->body);
    sink->row_count = 0;
    return r;
}

static int http_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct http_sink *sink = call->self;

    (void)cursor;
    sink->sender.call = call;
    add_row(sink, call, in);
    if (sink->row_count == sink->row_max || sink->body.size >= BODY_LARGE)
        return send_rows(sink, in);
    return 0;
}

static int http_flush(struct det_stage_call *call, void *cursor)
{
    struct http_sink *sink = call->self;
    int r;

    (void)cursor;
    sink->sender.call = call;
    r = sink->row_count > 0 ? send_rows(sink, NULL) : 0;
    return r < 0 ? r : rejections_report(&sink->rejections, call);
}

const struct det_connector http_sink = {
    .name = "http",
    .about = "a request for each row or batch, with an Idempotency-Key",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = http_open,
                   .close = http_close,
                   .deliver = http_deliver,
                   .flush = http_flush },
    .check = http_check,
};
