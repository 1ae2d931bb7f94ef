/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_sink.c - the sink `machine`: an event to an instance of a machine for each row, through
 * the API of a running `detent up`.
 *
 * The key of the row is the id of the event: an instance takes it once, however often it is sent.
 * Events are sent in batches; those that failed are sent again, in their order. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "connectors/http_request.h"
#include "connectors/machine_request.h"
#include "connectors/rejections.h"
#include "connectors/row_key.h"
#include "connectors/row_template.h"
#include "os/os.h"
#include "json/reader.h"
#include "json/writer.h"

#define REC_SPEC "connectors/machine_sink.rec"
#include <detent/rec/declare.h>

#define TIMEOUT    (30 * DET_SECOND)
#define RETRY_FOR  DET_MINUTE
#define PAUSE_MIN  (100 * DET_MILLISECOND)
#define PAUSE_MAX  (5 * DET_SECOND)
#define BATCH      200
#define BATCH_MAX  1000 /* of the API */
#define BODY_LARGE 4194304
#define SOCKET     ".detent/detent.sock"

/* An event until it is sent. */
struct kept {
    struct det_row_info row;
    size_t begin, end;             /* of its object in `sends` */
    size_t start_begin, start_end; /* of the body that starts its instance, in `starts` */
    bool is_done;
};

struct machine_sink {
    struct http_sender sender;
    struct machine_sink_settings settings;
    struct settings source; /* keeps the names of members */
    bool has_source;
    struct columns columns;
    struct row_value id;
    struct row_template event;
    struct machine_members payload, data;
    struct rejections rejections;
    struct det_expression_scratch scratch;
    struct det_buffer sends, starts, body, answer, text;
    struct kept *kept;
    size_t count, capacity, left; /* left: not done yet */
    det_time timeout;
    int folder;      /* of the socket; -1 */
    char base[1100]; /* begin of all URLs */
    char bearer[SETTINGS_SECRET_MAX + 8];
    char project[DET_PATH_MAX];
    char ca_file[DET_PATH_MAX];
    char reason[256]; /* of the last failed send */
};

static const char *const trees[] = { "payload", "data", NULL };

static int check_place(
    struct machine_sink *sink, const struct settings *settings, const char *folder,
    struct det_error *reterr)
{
    const struct machine_sink_settings *value = &sink->settings;
    size_t size = strlen(value->url);

    if (*value->url && *value->project)
        return settings_fail_key(
            settings, "project", reterr, "project and url exclude each other: remove one");
    if (*value->url && !http_client_takes(value->url))
        return settings_fail_key(
            settings, "url", reterr, "not an http or https URL; use for example https://host:8080");
    if (!*value->url && (*value->bearer_file || *value->bearer_environment))
        return settings_fail_key(
            settings, "url", reterr, "a bearer token needs url:; a project has none");
    if (*value->ca_file &&
        settings_path(settings, "ca_file", value->ca_file, folder, sink->ca_file, reterr) < 0)
        return DET_ERR_INVALID;
    while (size > 0 && value->url[size - 1] == '/')
        size--;
    snprintf(
        sink->base, sizeof sink->base, "%.*s", size ? (int)size : 16,
        size ? value->url : "http://localhost");
    return settings_path(
        settings, "project", *value->project ? value->project : ".", folder, sink->project, reterr);
}

static int compile_id(
    struct machine_sink *sink, const struct settings *settings,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    struct det_error error = { 0 };
    int r;

    r = row_value_init(
        &sink->id, allocator, sink->settings.id, &sink->columns, det_record_of(settings->stage->in),
        &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    if (r < 0)
        return settings_fail_key(settings, "id", reterr, "%s", error.text);
    r = row_template_init(
        &sink->event, allocator, "event", sink->settings.event, &sink->columns, &error);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    return r < 0 ? settings_fail_key(settings, "event", reterr, "%s", error.text) : 0;
}

static int compile(
    struct machine_sink *sink, const struct settings *settings,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    int r;

    r = columns_init(&sink->columns, allocator, det_record_of(settings->stage->in), COLUMNS_NESTED);
    if (r < 0)
        return det_error_set(reterr, r, "%s: out of memory", settings->what);
    r = compile_id(sink, settings, allocator, reterr);
    if (r == 0)
        r = machine_members_init(
            &sink->payload, settings, "payload", allocator, &sink->columns, reterr);
    if (r == 0)
        r = machine_members_init(&sink->data, settings, "data", allocator, &sink->columns, reterr);
    if (r == 0 && sink->data.is_set && !sink->settings.start)
        r = settings_fail_key(settings, "data", reterr, "data is for a start: add start: true");
    return r;
}

static int check_needed(
    const struct machine_sink_settings *value, const struct settings *settings,
    struct det_error *reterr)
{
    int r;

    r = settings_need(settings, "machine", value->machine, "machine: order", reterr);
    if (r == 0)
        r = settings_need(settings, "id", value->id, "id: order_id", reterr);
    if (r == 0)
        r = settings_need(settings, "event", value->event, "event: paid", reterr);
    if (r == 0 && value->batch > BATCH_MAX)
        r = settings_fail_key(settings, "batch", reterr, "at most %d rows", BATCH_MAX);
    if (r == 0 && !det_name_is_valid(value->machine))
        r = settings_fail_key(
            settings, "machine", reterr, "'%s' is not a name of a machine", value->machine);
    return r;
}

static int read_settings(
    struct machine_sink *sink, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, bool reads_secret, struct det_error *reterr)
{
    struct machine_sink_settings *value = &sink->settings;
    struct settings *settings = &sink->source;
    char secret[SETTINGS_SECRET_MAX + 1] = "";
    int r;

    r = settings_open(
        settings, stage, allocator, machine_sink_settings_record(), value, trees, reterr);
    if (r < 0)
        return r;
    sink->has_source = true;
    sink->capacity = value->batch ? value->batch : BATCH;
    r = check_needed(value, settings, reterr);
    if (r == 0)
        r = check_place(sink, settings, folder, reterr);
    if (r == 0)
        r = settings_duration(settings, "timeout", value->timeout, TIMEOUT, &sink->timeout, reterr);
    if (r == 0)
        r = settings_duration(
            settings, "retry_for", value->retry_for, RETRY_FOR, &sink->sender.retry_for, reterr);
    if (r == 0 && reads_secret && (*value->bearer_file || *value->bearer_environment))
        r = settings_secret(
            settings, value->bearer_file, value->bearer_environment, folder, secret, reterr);
    if (*secret)
        snprintf(sink->bearer, sizeof sink->bearer, "Bearer %s", secret);
    explicit_bzero(secret, sizeof secret);
    return r < 0 ? r : compile(sink, settings, allocator, reterr);
}

static void init_sink(struct machine_sink *sink, const struct det_allocator *allocator)
{
    struct det_buffer *const buffers[] = { &sink->sends, &sink->starts, &sink->body, &sink->answer,
                                           &sink->text };

    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        det_buffer_init(buffers[i], allocator);
    rejections_init(&sink->rejections, allocator);
    sink->folder = -1;
    sink->sender.answer = &sink->answer;
}

static void free_sink(struct machine_sink *sink, const struct det_allocator *allocator)
{
    struct det_buffer *const buffers[] = { &sink->sends, &sink->starts, &sink->body, &sink->answer,
                                           &sink->text };

    http_sender_close(&sink->sender);
    if (sink->folder >= 0)
        (void)close(sink->folder);
    row_value_deinit(&sink->id);
    row_template_deinit(&sink->event);
    machine_members_deinit(&sink->payload);
    machine_members_deinit(&sink->data);
    columns_deinit(&sink->columns);
    rejections_deinit(&sink->rejections);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        det_buffer_deinit(buffers[i]);
    if (sink->kept)
        DET_DELETE_ARRAY(allocator, sink->kept, sink->capacity);
    if (sink->has_source)
        settings_close(&sink->source);
    explicit_bzero(sink->bearer, sizeof sink->bearer);
    DET_DELETE(allocator, sink);
}

static int machine_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct machine_sink *sink = DET_NEW(NULL, struct machine_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    init_sink(sink, NULL);
    r = read_settings(sink, stage, NULL, folder, false, reterr);
    free_sink(sink, NULL);
    return r;
}

/* The path of the socket may be longer than an address: it is reached through its folder. */
static int open_sender(struct machine_sink *sink, struct det_stage_call *call)
{
    char path[64];

    if (*sink->settings.url)
        return http_sender_open(&sink->sender, call, NULL);
    sink->folder = open(sink->project, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (sink->folder < 0)
        return det_stage_fail(
            call, DET_ERR_NOT_FOUND,
            "%s: cannot open the folder of the project; check project:", sink->project);
    if (faccessat(sink->folder, SOCKET, F_OK, 0) < 0)
        return det_stage_fail(
            call, DET_ERR_NOT_FOUND,
            "%s: no 'detent up' runs there; start it, then resume the flow, or correct project:",
            sink->project);
    snprintf(path, sizeof path, "/proc/self/fd/%d/" SOCKET, sink->folder);
    return http_sender_open(&sink->sender, call, path);
}

static int machine_open(struct det_stage_call *call)
{
    struct machine_sink *sink = DET_NEW(call->allocator, struct machine_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    init_sink(sink, call->allocator);
    r = read_settings(sink, call->stage, call->allocator, call->folder, true, &error);
    if (r < 0)
        r = settings_refuse(call, &error);
    if (r == 0) {
        sink->kept = DET_NEW_ARRAY(call->allocator, sink->capacity, struct kept);
        r = sink->kept ? open_sender(sink, call) : DET_ERR_NO_MEMORY;
    }
    if (r < 0)
        free_sink(sink, call->allocator);
    else
        call->self = sink;
    return r;
}

static void machine_close(struct det_stage_call *call)
{
    free_sink(call->self, call->allocator);
    call->self = NULL;
}

/* Appends "id":ID with the id as text. */
static int write_id(
    struct machine_sink *sink, const void *in, struct det_buffer *buffer, struct det_error *reterr)
{
    int r;

    det_buffer_clear(&sink->text);
    r = row_value_write(&sink->id, in, false, &sink->scratch, &sink->text, reterr);
    if (r < 0)
        return r;
    det_buffer_append_text(buffer, "\"id\":");
    det_json_quote(buffer, det_view_of(det_buffer_text(&sink->text), sink->text.size));
    return det_buffer_status(&sink->text);
}

static int write_send(
    struct machine_sink *sink, const struct det_stage_call *call, const void *in,
    struct det_error *reterr)
{
    struct det_buffer *sends = &sink->sends;
    char key[ROW_KEY_MAX];
    int r;

    det_buffer_append_text(sends, "{\"machine\":");
    det_json_quote(sends, det_view_text(sink->settings.machine));
    det_buffer_append_char(sends, ',');
    r = write_id(sink, in, sends, reterr);
    if (r < 0)
        return r;
    det_buffer_clear(&sink->text);
    row_template_render(&sink->event, in, ROW_TEMPLATE_PLAIN, &sink->text);
    det_buffer_append_text(sends, ",\"event\":");
    det_json_quote(sends, det_view_of(det_buffer_text(&sink->text), sink->text.size));
    det_buffer_append_text(sends, ",\"event_id\":");
    det_json_quote(sends, det_view_text(row_key(call, call->row.position, key)));
    if (sink->payload.is_set) {
        det_buffer_append_text(sends, ",\"payload\":");
        r = machine_members_write(&sink->payload, in, &sink->scratch, sends, reterr);
    }
    det_buffer_append_char(sends, '}');
    return r;
}

static int write_start(struct machine_sink *sink, const void *in, struct det_error *reterr)
{
    struct det_buffer *starts = &sink->starts;
    int r;

    det_buffer_append_char(starts, '{');
    r = write_id(sink, in, starts, reterr);
    if (r == 0 && sink->data.is_set) {
        det_buffer_append_text(starts, ",\"data\":");
        r = machine_members_write(&sink->data, in, &sink->scratch, starts, reterr);
    }
    det_buffer_append_char(starts, '}');
    return r;
}

static int keep_event(struct machine_sink *sink, struct det_stage_call *call, const void *in)
{
    struct kept *kept = &sink->kept[sink->count];
    struct det_error error = { 0 };
    int r;

    *kept = (struct kept){ .row = call->row,
                           .begin = sink->sends.size,
                           .start_begin = sink->starts.size };
    r = write_send(sink, call, in, &error);
    if (r == 0 && sink->settings.start)
        r = write_start(sink, in, &error);
    if (det_buffer_status(&sink->sends) < 0 || det_buffer_status(&sink->starts) < 0 ||
        r == DET_ERR_NO_MEMORY)
        return det_stage_fail(call, DET_ERR_NO_MEMORY, "machine: out of memory");
    if (r < 0) {
        buffer_cut(&sink->sends, kept->begin);
        buffer_cut(&sink->starts, kept->start_begin);
        return det_stage_reject(call, DET_REJECT_VALIDATION, "%s", error.text);
    }
    kept->end = sink->sends.size;
    kept->start_end = sink->starts.size;
    sink->count++;
    sink->left++;
    return 0;
}

static int settle(struct machine_sink *sink, enum http_outcome outcome)
{
    struct det_stage_call *call = sink->sender.call;

    switch (outcome) {
    case HTTP_DONE:
        return 0;
    case HTTP_CANCELLED:
        return DET_ERR_CANCELLED;
    case HTTP_SHUT_OUT:
        return det_stage_fail(
            call, DET_ERR_REFUSED,
            "machine: %s; use a token with the scope 'send', then resume the flow",
            sink->sender.text);
    case HTTP_REFUSED:
        return det_stage_fail(
            call, DET_ERR_INVALID, "machine: %s; check project: or url:", sink->sender.text);
    case HTTP_FAILED:
        break;
    }
    return det_stage_fail(
        call, DET_ERR_IO, "%s: %s; start 'detent up' there, then resume the flow",
        *sink->settings.url ? sink->settings.url : sink->project, sink->sender.text);
}

/* Posts a body; the answer is in `answer`. */
static enum http_outcome post(
    struct machine_sink *sink, const char *path, const char *data, size_t size)
{
    struct http_call call = {
        .send = data, .send_size = size, .timeout = sink->timeout, .ca_file = sink->ca_file
    };
    struct http_lines lines = { NULL };
    enum http_outcome outcome = HTTP_FAILED;
    char url[1400];

    snprintf(url, sizeof url, "%s%s", sink->base, path);
    call.url = url;
    call.lines = &lines;
    if (http_lines_add(&lines, "Content-Type", "application/json") &&
        http_lines_add(&lines, "Expect", "") &&
        (!*sink->bearer || http_lines_add(&lines, "Authorization", sink->bearer)))
        outcome = http_sender_send(&sink->sender, &call);
    else
        snprintf(sink->sender.text, sizeof sink->sender.text, "out of memory");
    http_lines_deinit(&lines);
    return outcome;
}

static int reject_event(
    struct machine_sink *sink, struct kept *kept, enum det_row_rejection why, const char *text)
{
    if (rejections_add(&sink->rejections, &kept->row, why, text) < 0)
        return det_stage_fail(sink->sender.call, DET_ERR_NO_MEMORY, "machine: out of memory");
    kept->is_done = true;
    return 0;
}

/* An instance that was started meanwhile is there, too: the next send shows it. */
static int start_instance(struct machine_sink *sink, struct kept *kept)
{
    enum http_outcome outcome;
    char path[200];

    snprintf(path, sizeof path, "/v1/machines/%s/instances", sink->settings.machine);
    outcome = post(
        sink, path, sink->starts.data + kept->start_begin, kept->start_end - kept->start_begin);
    if (outcome == HTTP_REFUSED && sink->sender.status == 409)
        return 0;
    if (outcome != HTTP_REFUSED)
        return settle(sink, outcome);
    return reject_event(sink, kept, DET_REJECT_PERMANENT, sink->sender.text);
}

/* The result of one send. Returns 1 if it must be sent again later. */
static int take_result(
    struct machine_sink *sink, struct kept *kept, const struct det_json_value *item)
{
    const struct det_json_value *error = det_json_get(item, "error");
    const char *code = det_json_get_text(error, "code"), *text = det_json_get_text(error, "text");

    text = text ? text : "unknown error";
    switch (machine_result_of(error && !code ? "UNKNOWN" : code)) {
    case MACHINE_SENT:
        kept->is_done = true;
        break;
    case MACHINE_MISSING:
        if (sink->settings.start)
            return start_instance(sink, kept);
        return reject_event(sink, kept, DET_REJECT_PERMANENT, text);
    case MACHINE_LATER:
        snprintf(sink->reason, sizeof sink->reason, "%s", text);
        return 1;
    case MACHINE_REFUSED:
        return reject_event(sink, kept, DET_REJECT_DOMAIN, text);
    case MACHINE_UNUSABLE:
        return reject_event(sink, kept, DET_REJECT_PERMANENT, text);
    }
    return 0;
}

/* Results are in the order of the sends. Returns 1 if some must be sent again later. */
static int take_results(struct machine_sink *sink, const struct det_json_value *items)
{
    struct kept *kept = sink->kept;
    int r = 0, later = 0;

    DET_JSON_EACH (item, items) {
        while (kept->is_done)
            kept++;
        r = take_result(sink, kept, item);
        if (r < 0)
            return r;
        later |= r;
        sink->left -= kept->is_done;
        kept++;
    }
    return later;
}

static int read_answer(struct machine_sink *sink)
{
    const struct det_json_value *root = NULL, *items;
    struct det_arena arena;
    struct det_error error = { 0 };
    int r;

    /* The tree borrows the text, and a start overwrites the answer. */
    det_buffer_clear(&sink->body);
    det_buffer_append(&sink->body, det_buffer_text(&sink->answer), sink->answer.size);
    det_arena_init(&arena, sink->sender.call->allocator);
    r = det_buffer_status(&sink->body);
    if (r == 0)
        r = det_json_read(
            &arena, det_view_of(det_buffer_text(&sink->body), sink->body.size), &root, &error);
    items = r == 0 ? det_json_get(root, "items") : NULL;
    if (r == DET_ERR_NO_MEMORY)
        r = det_stage_fail(sink->sender.call, r, "machine: out of memory");
    else if (!items || items->kind != DET_JSON_ARRAY || items->count != sink->left)
        r = det_stage_fail(
            sink->sender.call, DET_ERR_MALFORMED,
            "machine: the answer is not that of a batch; check that project: or url: is that of "
            "'detent up'");
    else
        r = take_results(sink, items);
    det_arena_deinit(&arena);
    return r;
}

static int post_events(struct machine_sink *sink)
{
    const char *between = "";
    int r;

    det_buffer_clear(&sink->body);
    det_buffer_append_text(&sink->body, "{\"sends\":[");
    for (const struct kept *kept = sink->kept; kept < sink->kept + sink->count; kept++) {
        if (kept->is_done)
            continue;
        det_buffer_append_text(&sink->body, between);
        det_buffer_append(&sink->body, sink->sends.data + kept->begin, kept->end - kept->begin);
        between = ",";
    }
    det_buffer_append_text(&sink->body, "]}");
    r = det_buffer_status(&sink->body);
    if (r < 0)
        return det_stage_fail(sink->sender.call, r, "machine: out of memory");
    r = settle(sink, post(sink, "/v1/batches", sink->body.data, sink->body.size));
    return r < 0 ? r : read_answer(sink);
}

static int flush_events(struct machine_sink *sink)
{
    struct det_stage_call *call = sink->sender.call;
    struct det_world *world = det_world_or_real(call->world);
    det_time begin = det_world_now(world, DET_CLOCK_MONOTONIC), pause = PAUSE_MIN;

    while (sink->left > 0) {
        int r = post_events(sink);
        det_time now = det_world_now(world, DET_CLOCK_MONOTONIC);

        if (r < 0)
            return r;
        if (r == 0)
            continue;
        if (now + pause - begin > sink->sender.retry_for)
            return det_stage_fail(
                call, DET_ERR_BUSY, "machine: %s; correct that, then resume the flow",
                sink->reason);
        if (det_stage_wait(call, now + pause) == DET_ERR_CANCELLED)
            return DET_ERR_CANCELLED;
        pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
    }
    det_buffer_clear(&sink->sends);
    det_buffer_clear(&sink->starts);
    sink->count = 0;
    return 0;
}

static int machine_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct machine_sink *sink = call->self;
    int r;

    (void)cursor;
    sink->sender.call = call;
    det_assert(sink->count < sink->capacity);
    r = keep_event(sink, call, in);
    if (r == 0 && (sink->count == sink->capacity || sink->sends.size >= BODY_LARGE))
        r = flush_events(sink);
    return r;
}

static int machine_flush(struct det_stage_call *call, void *cursor)
{
    struct machine_sink *sink = call->self;
    int r;

    (void)cursor;
    sink->sender.call = call;
    r = flush_events(sink);
    return r < 0 ? r : rejections_report(&sink->rejections, call);
}

const struct det_connector machine_sink = {
    .name = "machine",
    .about = "an event to an instance of a machine, once for each row",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = machine_open,
                   .close = machine_close,
                   .deliver = machine_deliver,
                   .flush = machine_flush },
    .check = machine_check,
};
