/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_pull_source.c - the rows of a URL, page by page, once or again and again.
 *
 *     due --GET--> page --rows--> its end --cursor--> due now
 *      ^  \--304, or an error row after retries--\       |
 *      '------------- after `every` -------------+--no cursor--> done, without `every`
 *
 * The cursor is moved with the rows of a page. After a crash in the middle of a page it is fetched
 * again, and the rows that were emitted are skipped by their number. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/http_pull_page.h"
#include "http/client.h"
#include "os/os.h"

#define ROWS_MAX  4096 /* of one turn */
#define TIMEOUT   (30 * DET_SECOND)
#define RETRIES   3
#define RETRY_MAX DET_MINUTE /* the longest Retry-After that is obeyed */
#define URL_MAX   8192

static const char place[] = "{cursor}";

struct http_pull {
    struct http_pull_settings settings;
    const struct det_allocator *allocator;
    char secret[SETTINGS_SECRET_MAX + 1];
    char ca_file[DET_PATH_MAX];
    det_time every, timeout;
    struct line_row line_row;
    struct http_client *client;
    struct http_pull_page page;
    char etag[256];  /* of the page */
    det_time due_at; /* monotonic */
    bool has_page;
    bool has_secret;
    bool is_loaded; /* libcurl */
};

static int check_url(
    const struct http_pull *pull, const struct settings *settings, struct det_error *reterr)
{
    const struct http_pull_settings *value = &pull->settings;
    char url[URL_MAX];
    int r;

    r = settings_need(
        settings, "url", value->url, "{url: \"http://localhost:8080/items\"}", reterr);
    if (r < 0)
        return r;
    if (http_pull_url(value->url, "x", url, sizeof url) < 0 || !http_client_takes(url))
        return settings_fail_key(
            settings, "url", reterr,
            "url must be http or https without a password: http://HOST[:PORT]/PATH; put secrets "
            "into bearer_file");
    if (*value->cursor && !strstr(value->url, place))
        return settings_fail_key(
            settings, "url", reterr,
            "url has no place for the cursor: add %s, such as http://HOST/items?after=%s", place,
            place);
    if ((*value->cursor || *value->rows) && value->as != HTTP_PULL_JSON)
        return settings_fail(
            settings, NULL, reterr, "rows and cursor are paths in a body of JSON: remove them");
    return 0;
}

static int check_headers(
    const struct http_pull *pull, const struct settings *settings, struct det_error *reterr)
{
    const struct http_pull_settings *value = &pull->settings;

    for (uint32_t i = 0; i < value->headers_count; i++) {
        const char *colon = strchr(value->headers[i], ':');

        /* The value is not printed: it may be a secret. */
        if (!colon || colon == value->headers[i] || strpbrk(value->headers[i], "\r\n"))
            return settings_fail_key(
                settings, "headers", reterr,
                "headers[%u] is not a header: write one line, such as \"Accept: text/plain\"", i);
    }
    if (*value->bearer_file && *value->bearer_environment)
        return settings_fail_key(
            settings, "bearer_file", reterr, "set bearer_file or bearer_environment, not both");
    return 0;
}

static int fill_settings(
    struct http_pull *pull, const struct settings *settings, const char *folder,
    struct det_error *reterr)
{
    const struct http_pull_settings *value = &pull->settings;
    enum line_format format = value->as == HTTP_PULL_TEXT ? LINE_TEXT : LINE_JSON;
    int r;

    r = check_url(pull, settings, reterr);
    if (r == 0)
        r = check_headers(pull, settings, reterr);
    if (r == 0)
        r = settings_duration(settings, "every", value->every, 0, &pull->every, reterr);
    if (r == 0)
        r = settings_duration(settings, "timeout", value->timeout, TIMEOUT, &pull->timeout, reterr);
    if (r == 0 && *value->ca_file)
        r = settings_path(settings, "ca_file", value->ca_file, folder, pull->ca_file, reterr);
    if (r == 0)
        r = line_row_init(&pull->line_row, settings, format, value->field, pull->allocator, reterr);
    pull->line_row.unit = "row";
    pull->line_row.flags = (value->strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                           (value->partial ? (unsigned)DET_TEXT_PARTIAL : 0u);
    return r;
}

static void free_pull(struct http_pull *pull)
{
    http_pull_page_deinit(&pull->page);
    http_client_close(pull->client);
    line_row_deinit(&pull->line_row);
    explicit_bzero(pull->secret, sizeof pull->secret);
    DET_DELETE(pull->allocator, pull);
}

/* `reads_secret`: for open(), not for a check. */
static int make_pull(
    const struct det_stage *stage, const struct det_allocator *allocator, const char *folder,
    bool reads_secret, struct http_pull **ret, struct det_error *reterr)
{
    struct http_pull *pull = DET_NEW(allocator, struct http_pull);
    struct settings settings;
    int r;

    if (!pull)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "'%s': out of memory", stage->name);
    pull->allocator = allocator;
    http_pull_page_init(&pull->page, allocator);
    r = settings_open(
        &settings, stage, allocator, http_pull_settings_record(), &pull->settings, NULL, reterr);
    if (r == 0) {
        r = fill_settings(pull, &settings, folder, reterr);
        pull->has_secret = *pull->settings.bearer_file || *pull->settings.bearer_environment;
        if (r == 0 && reads_secret && pull->has_secret)
            r = settings_secret(
                &settings, pull->settings.bearer_file, pull->settings.bearer_environment, folder,
                pull->secret, reterr);
        settings_close(&settings);
    }
    if (r < 0) {
        free_pull(pull);
        return r;
    }
    *ret = pull;
    return 0;
}

static int http_pull_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct http_pull *pull = NULL;
    int r;

    r = make_pull(stage, NULL, folder, false, &pull, reterr);
    if (r == 0)
        free_pull(pull);
    return r;
}

static bool is_cancelled(void *user)
{
    return det_stage_is_cancelled(user);
}

static void http_pull_close(struct det_stage_call *call)
{
    free_pull(call->self);
}

static int http_pull_open(struct det_stage_call *call)
{
    struct http_client_options options = { .allocator = call->allocator,
                                           .world = call->world,
                                           .is_cancelled = is_cancelled,
                                           .user = call };
    struct http_pull *pull = NULL;
    struct det_error error;
    int r;

    r = make_pull(call->stage, call->allocator, call->folder, true, &pull, &error);
    if (r < 0)
        return settings_refuse(call, &error);
    r = http_client_open(&options, &pull->client);
    if (r < 0) {
        free_pull(pull);
        return det_stage_fail(call, r, "libcurl cannot be set up: %s", det_error_text(r));
    }
    call->self = pull;
    return 0;
}

static void take_line(void *user, const char *line, size_t size)
{
    static const char name[] = "etag:";
    struct http_pull *pull = user;

    if (size < sizeof name || strncasecmp(line, name, sizeof name - 1) != 0)
        return;
    line += sizeof name - 1;
    size -= sizeof name - 1;
    while (size && (*line == ' ' || *line == '\t')) {
        line++;
        size--;
    }
    while (size && (unsigned char)line[size - 1] <= ' ')
        size--;
    *pull->etag = 0;
    if (size < sizeof pull->etag && !memchr(line, 0, size)) {
        memcpy(pull->etag, line, size);
        pull->etag[size] = 0;
        if (det_utf8_check(pull->etag, size) != size)
            *pull->etag = 0;
    }
}

/* Returns false without memory. */
static bool add_lines(
    const struct http_pull *pull, const struct http_pull_cursor *cursor, struct http_lines *lines)
{
    char bearer[SETTINGS_SECRET_MAX + 16];
    bool is_good = true;

    for (uint32_t i = 0; i < pull->settings.headers_count && is_good; i++)
        is_good = http_lines_add_line(lines, pull->settings.headers[i]);
    if (is_good && pull->has_secret) {
        (void)snprintf(bearer, sizeof bearer, "Bearer %s", pull->secret);
        is_good = http_lines_add(lines, "Authorization", bearer);
        explicit_bzero(bearer, sizeof bearer);
    }
    if (is_good && *cursor->etag && cursor->rows == 0)
        is_good = http_lines_add(lines, "If-None-Match", cursor->etag);
    return is_good;
}

static int get_once(
    struct http_pull *pull, const struct http_pull_cursor *cursor, struct http_result *ret)
{
    struct http_lines lines = { NULL };
    char url[URL_MAX];
    struct http_call get = { .url = url,
                             .lines = &lines,
                             .timeout = pull->timeout,
                             .body = &pull->page.body,
                             .body_max = HTTP_PULL_BODY_MAX,
                             .ca_file = pull->ca_file,
                             .on_line = take_line,
                             .user = pull };
    int r;

    det_buffer_clear(&pull->page.body);
    det_arena_deinit(&pull->page.arena);
    det_arena_init(&pull->page.arena, pull->allocator);
    *pull->etag = 0;
    *ret = (struct http_result){ 0 };
    r = http_pull_url(pull->settings.url, cursor->cursor, url, sizeof url);
    if (r < 0)
        return r;
    r = add_lines(pull, cursor, &lines) ? http_client_call(pull->client, &get, ret)
                                        : DET_ERR_NO_MEMORY;
    http_lines_deinit(&lines);
    return r;
}

static bool is_transient(int r, const struct http_result *result)
{
    if (r == DET_ERR_TIMEOUT || r == DET_ERR_IO)
        return true;
    return r == 0 && (result->status == 429 || result->status == 408 || result->status >= 500);
}

/* Waits before another attempt. */
static int wait_before(
    struct det_stage_call *call, unsigned attempt, const struct http_result *result)
{
    static const det_time delays[RETRIES] = { 100 * DET_MILLISECOND, 500 * DET_MILLISECOND,
                                              2 * DET_SECOND };
    det_time delay = result->retry_after ? result->retry_after : delays[attempt];
    det_time end;
    int r = 0;

    if (delay > RETRY_MAX)
        delay = RETRY_MAX;
    end = det_world_now(call->world, DET_CLOCK_MONOTONIC) + delay;
    while (r == 0)
        r = det_stage_wait(call, end);
    return r == DET_ERR_TIMEOUT ? 0 : r;
}

static int get_with_retries(
    struct det_stage_call *call, struct http_pull *pull, const struct http_pull_cursor *cursor,
    struct http_result *ret)
{
    int r;

    for (unsigned attempt = 0;; attempt++) {
        int waited;

        r = get_once(pull, cursor, ret);
        if (attempt == RETRIES || !is_transient(r, ret))
            return r;
        waited = wait_before(call, attempt, ret);
        if (waited < 0)
            return waited;
    }
}

/* After `every`; without it the source has failed. */
static int give_up(struct det_stage_call *call, struct http_pull *pull, int code, const char *text)
{
    enum det_row_rejection why = code == DET_ERR_TIMEOUT     ? DET_REJECT_TIMEOUT
                                 : code == DET_ERR_MALFORMED ? DET_REJECT_DESERIALIZATION
                                                             : DET_REJECT_REMOTE;

    if (!pull->every)
        return det_stage_fail(call, code, "%s", text);
    (void)det_stage_reject(call, why, "%s", text);
    det_stage_wake_at(call, pull->due_at);
    return DET_SOURCE_IDLE;
}

static int fail_get(
    struct det_stage_call *call, struct http_pull *pull, int r, const struct http_result *result)
{
    struct det_error error;

    if (r == DET_ERR_CANCELLED)
        return DET_SOURCE_IDLE;
    if (r == DET_ERR_LIMIT)
        (void)det_error_set(&error, r, "the body has more than %u MiB", HTTP_PULL_BODY_MAX >> 20);
    else
        (void)det_error_set(&error, r, "%s", *result->text ? result->text : det_error_text(r));
    return give_up(call, pull, r, error.text);
}

/* 4xx: the request is wrong, and will be. */
static int fail_status(struct det_stage_call *call, struct http_pull *pull, unsigned status)
{
    struct det_error error;

    if (status >= 400 && status < 500 && status != 429 && status != 408)
        return det_stage_fail(
            call, DET_ERR_IO, "the server answered with status %u: correct url, headers or bearer",
            status);
    (void)det_error_set(&error, DET_ERR_IO, "the server answered with status %u", status);
    return give_up(call, pull, DET_ERR_IO, error.text);
}

/* Gets a page. 1: there is one; otherwise a result of next(). */
static int get_page(
    struct det_stage_call *call, struct http_pull *pull, struct http_pull_cursor *cursor)
{
    struct http_result result;
    struct det_error error;
    struct det_view row;
    int r;

    pull->due_at = det_world_now(call->world, DET_CLOCK_MONOTONIC) + pull->every;
    r = get_with_retries(call, pull, cursor, &result);
    if (r < 0)
        return fail_get(call, pull, r, &result);
    if (result.status == 304) {
        if (!pull->every) {
            cursor->is_done = true;
            return DET_SOURCE_DONE;
        }
        det_stage_wake_at(call, pull->due_at);
        return DET_SOURCE_IDLE;
    }
    if (result.status < 200 || result.status > 299)
        return fail_status(call, pull, result.status);
    r = http_pull_page_read(&pull->page, pull->settings.as, pull->settings.rows, &error);
    if (r < 0)
        return r == DET_ERR_NO_MEMORY ? r : give_up(call, pull, DET_ERR_MALFORMED, error.text);
    while (pull->page.number < cursor->rows && http_pull_page_next(&pull->page, &row))
        ;
    pull->has_page = true;
    return 1;
}

/* All rows of the page were emitted. */
static int end_page(
    struct det_stage_call *call, struct http_pull *pull, struct http_pull_cursor *cursor)
{
    char next[sizeof cursor->cursor];
    int r;

    pull->has_page = false;
    *next = 0;
    if (*pull->settings.cursor) {
        r = http_pull_page_cursor(&pull->page, pull->settings.cursor, next, sizeof next);
        if (r < 0)
            return det_stage_fail(
                call, r, "the cursor at '%.64s' is not a text of at most %zu bytes",
                pull->settings.cursor, sizeof next - 1);
    }
    cursor->rows = 0;
    cursor->pages++;
    if (*next && strcmp(next, cursor->cursor) != 0) {
        memcpy(cursor->cursor, next, sizeof next);
        *cursor->etag = 0;
        return DET_SOURCE_MORE;
    }
    /* The last page is asked for again: with its rows so far, unless it is unchanged. */
    memcpy(cursor->etag, pull->etag, sizeof cursor->etag);
    if (!pull->every) {
        cursor->is_done = true;
        return DET_SOURCE_DONE;
    }
    det_stage_wake_at(call, pull->due_at);
    return DET_SOURCE_IDLE;
}

static int http_pull_next(struct det_stage_call *call, void *cursor_memory)
{
    struct http_pull_cursor *cursor = cursor_memory;
    struct http_pull *pull = call->self;
    uint32_t room = det_stage_room(call);
    struct det_view row;
    int r;

    if (cursor->is_done && !pull->every)
        return DET_SOURCE_DONE;
    if (!pull->has_page) {
        if (det_world_now(call->world, DET_CLOCK_MONOTONIC) < pull->due_at && pull->every &&
            cursor->rows == 0 && pull->due_at) {
            det_stage_wake_at(call, pull->due_at);
            return DET_SOURCE_IDLE;
        }
        r = get_page(call, pull, cursor);
        if (r != 1 || !pull->has_page)
            return r;
    }
    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        if (!http_pull_page_next(&pull->page, &row))
            return end_page(call, pull, cursor);
        cursor->rows = pull->page.number;
        r = line_row_emit(call, &pull->line_row, row, "the body", pull->page.number);
        if (r < 0)
            return r;
    }
    return DET_SOURCE_MORE;
}

const struct det_connector http_pull_source = {
    CONNECTOR_HEAD(http_pull, source),
    .flags = DET_STAGE_ASYNC,
    .cursor = { .get = http_pull_cursor_record },
    .functions = { .open = http_pull_open, .close = http_pull_close, .next = http_pull_next },
    .check = http_pull_check,
};
